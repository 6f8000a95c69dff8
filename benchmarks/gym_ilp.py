"""DAG extraction as an integer program for HiGHS: the exact peer of our extractor."""

from __future__ import annotations

import collections
import math
import time
from typing import NamedTuple

import networkx as nx
import numpy as np

from lift_egraph.extract.choices import Options

FREE = math.inf


class Solved(NamedTuple):
    """What HiGHS found: the node chosen for each class, or None; the bound that it proved; and its seconds."""

    chosen: dict[int, int] | None
    lower_bound: float
    is_optimal: bool
    seconds: float


def solve(options: Options, roots: tuple[int, ...], seconds: float, first: dict[int, int] | None = None) -> Solved:
    """The best DAG for the roots.

    A variable of 0 or 1 for each node; a class is chosen if one of its nodes is, and is if a chosen node needs it.
    Within a strongly connected component each class has a place, and a chosen node's is after those that it needs.

    Parameters
    ----------
    first
        The node chosen for each class by a DAG to begin with.
    """
    import highspy

    began = time.perf_counter()
    roots = tuple(r for r in roots if options[r])
    nodes = [(c, o) for c, own in enumerate(options) for o in own]
    members: dict[int, list[int]] = collections.defaultdict(list)
    for i, (c, _) in enumerate(nodes):
        members[c].append(i)
    component = _components(options)
    sizes = collections.Counter(component.values())
    places = {c: len(nodes) + i for i, c in enumerate(c for c in members if sizes[component[c]] > 1)}
    rows = _Rows()
    for c, own in members.items():
        rows.add([(i, 1.0) for i in own], 1.0 if c in roots else 0.0, 1.0)
        by_part: dict[int, list[int]] = collections.defaultdict(list)
        for i in own:
            for part in nodes[i][1].needs:
                by_part[part].append(i)
        for part, users in by_part.items():
            rows.add([(i, 1.0) for i in members[part]] + [(i, -1.0) for i in users], 0.0, FREE)
            if component[part] == component[c]:
                most = float(sizes[component[c]])
                rows.add([(places[c], 1.0), (places[part], -1.0)] + [(i, -most) for i in users], 1.0 - most, FREE)
    count = len(nodes) + len(places)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, len(rows.lower)
    lp.col_cost_ = np.array([o.cost for _, o in nodes] + [0.0] * len(places))
    lp.col_lower_ = np.zeros(count)
    lp.col_upper_ = np.array([1.0] * len(nodes) + [sizes[component[c]] - 1.0 for c in places])
    lp.row_lower_, lp.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(rows.starts)
    lp.a_matrix_.index_ = np.array(rows.columns)
    lp.a_matrix_.value_ = np.array(rows.values)
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger] * len(nodes) + [kinds.kContinuous] * len(places)
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9)):
        solver.setOptionValue(name, value)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(lp)
    if first is not None:
        start = highspy.HighsSolution()
        start.col_value = [1.0 if first.get(c) == o.node else 0.0 for c, o in nodes] + _depths(options, first, places)
        solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    values = solver.getSolution().col_value
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    chosen = {c: o.node for (c, o), value in zip(nodes, values, strict=False) if value > 0.5} if found else None
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Solved(chosen, info.mip_dual_bound, optimal, time.perf_counter() - began)


class _Rows:
    """Constraints, row after row."""

    def __init__(self) -> None:
        self.starts, self.columns = [0], list[int]()
        self.values, self.lower, self.upper = list[float](), list[float](), list[float]()

    def add(self, terms: list[tuple[int, float]], lower: float, upper: float) -> None:
        summed: dict[int, float] = collections.defaultdict(float)
        for column, value in terms:
            summed[column] += value
        self.columns += summed
        self.values += summed.values()
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


def _components(options: Options) -> dict[int, int]:
    graph = nx.DiGraph()
    graph.add_nodes_from(c for c, own in enumerate(options) if own)
    graph.add_edges_from((c, part) for c, own in enumerate(options) for o in own for part in o.needs)
    return {c: i for i, found in enumerate(nx.strongly_connected_components(graph)) for c in found}


def _depths(options: Options, first: dict[int, int], places: dict[int, int]) -> list[float]:
    """A place for each class of a component that agrees with a DAG: of the classes below it, the longest path."""
    needs = {o.node: o.needs for own in options for o in own}
    graph = nx.DiGraph((c, part) for c, node in first.items() for part in needs.get(node, ()) if part in first)
    depth: dict[int, float] = {}
    for c in reversed(list(nx.topological_sort(graph))):
        depth[c] = max((depth[k] + (c in places) for k in graph.successors(c)), default=0.0)
    return [depth.get(c, 0.0) for c in places]
