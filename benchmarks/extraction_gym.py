"""Our DAG extractor on the e-graphs of extraction-gym, beside greedy extraction and an integer program."""

from __future__ import annotations

import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import harness
import msgspec
from gym_ilp import solve

from lift_egraph.extract.choices import ordered
from lift_egraph.extract.dag import Extraction, extract_dag, extract_trees, extraction_of, options_of
from lift_egraph.extract.gym import PricedGraph, read_gym
from lift_egraph.extract.reduction import reduced
from lift_egraph.files import replacing

HEADINGS = (
    "graph", "nodes", "classes", "tree", "greedy DAG", "ours", "HiGHS", "best known", "gap %", "greedy gap %",
    "seconds", "CPU s", "lower bound", "proven",
)  # fmt: skip
KNOWN = harness.RESULTS / "extraction_gym_best.json"
FAMILIES = ("rover", "flexc", "tensat")


class Best(msgspec.Struct, omit_defaults=True):
    """The cheapest DAG known of a graph, the largest lower bound known, and who found each."""

    cost: float
    found_by: str
    lower_bound: float = 0.0
    bound_by: str = ""


def greedy_dag(graph: PricedGraph) -> Extraction:
    """What extraction-gym calls faster-greedy-dag: each class keeps the set of nodes that its cheapest DAG has.

    A node costs what the union of its children's sets costs; a class whose set becomes cheaper is passed on to its
    users until nothing changes.
    """
    options = options_of(graph)
    users: list[set[int]] = [set() for _ in options]
    for c, own in enumerate(options):
        for option in own:
            for part in option.needs:
                users[part].add(c)
    costs, sets = [math.inf] * len(options), [dict[int, float]() for _ in options]
    waiting = dict.fromkeys(range(len(options)))
    chosen: dict[int, int] = {}
    while waiting:
        c = next(iter(waiting))
        del waiting[c]
        for option in options[c]:
            if any(costs[k] == math.inf or c in sets[k] for k in option.needs):
                continue
            merged: dict[int, float] = {}
            for k in option.needs:
                merged.update(sets[k])
            merged[c] = option.cost
            cost = sum(merged.values())
            if cost < costs[c] * (1 - 1e-12):
                costs[c], sets[c], chosen[c] = cost, merged, option.node
                waiting.update(dict.fromkeys(users[c]))
    return extraction_of(graph, chosen)


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """A result, its seconds, and those of this process on a processor."""
    began, before = time.perf_counter(), time.process_time()
    return call(), time.perf_counter() - began, time.process_time() - before


def key_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


# --- the best known ---------------------------------------------------------------------------------------


def read_known() -> dict[str, Best]:
    return msgspec.json.decode(KNOWN.read_bytes(), type=dict[str, Best]) if KNOWN.exists() else {}


def write_known(known: dict[str, Best]) -> None:
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1)
    with replacing(KNOWN) as file:
        file.write(text + b"\n")


def improve_known(path: Path, known: dict[str, Best], seconds: float) -> None:
    """Look for a better DAG, and for a larger lower bound: ours, and then HiGHS from there on the reduced problem."""
    graph, name = read_gym(path), key_of(path)

    def learn(found: Extraction, lower: float, by: str) -> None:
        best = known.get(name)
        if best is None or found.dag_cost < best.cost * (1 - 1e-9):
            bound = (best.lower_bound, best.bound_by) if best else (0.0, "")
            best = known[name] = Best(found.dag_cost, by, *bound)
        if lower > best.lower_bound * (1 + 1e-9):
            best.lower_bound, best.bound_by = min(lower, best.cost), by
        write_known(known)

    ours = extract_dag(graph, seconds=seconds / 2, patience=10**9, seed=1)
    learn(ours.best[0], ours.lower_bound, f"ours, {ours.seconds:.0f} s")
    print(f"{name}: ours {ours.best[0].dag_cost:.9g}, at least {ours.lower_bound:.6g}, {ours.ended}", flush=True)
    if ours.is_proven:
        return
    problem = reduced(options_of(graph), graph.roots, ours.best[0].dag_cost)
    first = {graph.nodes[step.node].owner: step.node for step in ours.best[0].steps}
    solved = solve(problem.options, problem.roots, seconds, first)
    found = extraction_of(graph, {**problem.free, **(solved.chosen or first)})
    learn(found, solved.lower_bound, f"HiGHS from ours, {solved.seconds:.0f} s")
    print(f"{name}: HiGHS {found.dag_cost:.9g}, at least {solved.lower_bound:.6g}", flush=True)


# --- the table --------------------------------------------------------------------------------------------


def measure(path: Path, seconds: float, best: Best | None, ilp_seconds: float) -> list[Any]:
    """The row of a graph."""
    graph = read_gym(path)
    tree = extract_trees(graph).best[0]
    greedy = greedy_dag(graph)
    ours, took, processor = timed(lambda: extract_dag(read_gym(path), seconds=seconds))
    solved = solve(options_of(graph), graph.roots, ilp_seconds) if ilp_seconds else None
    exact = None
    if solved is not None and solved.chosen is not None and ordered(graph.roots, _needs(graph, solved.chosen)):
        exact = extraction_of(graph, solved.chosen).dag_cost
    cost = ours.best[0].dag_cost
    least = min(c for c in (cost, greedy.dag_cost, tree.dag_cost, exact, best and best.cost) if c is not None)
    return [
        key_of(path), len(graph.nodes), len(graph.classes), _exact(tree.dag_cost), _exact(greedy.dag_cost),
        _exact(cost), None if exact is None else _exact(exact), _exact(least),
        100 * (cost / least - 1), 100 * (greedy.dag_cost / least - 1), took, processor,
        _exact(max(ours.lower_bound, best.lower_bound if best else 0.0)), "ours" if ours.is_proven
        else "HiGHS" if best and best.lower_bound >= best.cost * (1 - 1e-9) else "no",
    ]  # fmt: skip


def _needs(graph: PricedGraph, chosen: dict[int, int]) -> Callable[[int], tuple[int, ...]]:
    return lambda c: graph.nodes[chosen[c]].children


def _exact(cost: float) -> str:
    return f"{cost:.6g}"


def main() -> None:
    parser = harness.options("extraction_gym", __doc__ or "", has_device=False)
    parser.add_argument("folder", type=Path, help="of extraction-gym: rover, flexc and tensat with their graphs")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each graph (default: %(default)s)")
    parser.add_argument("--families", nargs="*", default=FAMILIES, help="folders to take (default: all)")
    parser.add_argument("--no-ilp", action="store_true", help="leave HiGHS out also where highspy is installed")
    parser.add_argument("--best-known", type=float, metavar="SECONDS", help="first look longer for better DAGs")
    parser.add_argument("--note", action="append", default=[], help="a line to add below the table; again for each")
    arguments = parser.parse_args()
    known = read_known()
    paths = [path for family in arguments.families for path in sorted((arguments.folder / family).glob("*.json*"))]
    if not paths:
        parser.error(f"{arguments.folder} has no graphs")
    for path in paths:
        if arguments.best_known:
            improve_known(path, known, arguments.best_known)
    has_ilp = importlib.util.find_spec("highspy") is not None and not arguments.no_ilp
    rows = []
    for path in paths:
        best = read_known().get(key_of(path))
        rows.append(measure(path, arguments.seconds, best, arguments.seconds if has_ilp else 0.0))
        print(*rows[-1], flush=True)
    notes = []
    for family in arguments.families:
        own = [row for row in rows if row[0].startswith(f"{family}/")]
        if own:
            ours, greedy = statistics.mean(row[8] for row in own), statistics.mean(row[9] for row in own)
            slowest = max(row[10] for row in own)
            means = f"mean gap {ours:.3g} %, greedy DAG {greedy:.3g} %, at most {slowest:.1f} s"
            notes.append(f"{family}, {len(own)} graphs: {means}.")
    notes += [*NOTES, *arguments.note, *([f"highspy {version('highspy')}."] if has_ilp else [])]
    harness.report(arguments.out, "DAG extraction on extraction-gym's e-graphs", HEADINGS, rows, notes=notes)


NOTES = (
    "Costs count each chosen node once, over all roots. tree: the best trees. greedy DAG: the algorithm of "
    "faster-greedy-dag. HiGHS: the plain integer program on the whole graph with the same limit of time (one thread), "
    "– if it finds nothing. gap: of ours to the best known. seconds: reading and our extractor.",
    "Best known: the least of all columns and of extraction_gym_best.json: ours, run longer, and HiGHS from there on "
    "the reduced problem (--best-known; 150 s and 300 s for the graphs that are proven by neither within a minute). "
    "extraction-gym publishes no values for single graphs. The lower bound is the larger one of ours in this run and "
    "of that file. proven: by whom the best known is known to be optimal.",
)


if __name__ == "__main__":
    main()
