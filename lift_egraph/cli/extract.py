"""The command line's ``lift-egraph extract``: the cheapest terms of an e-graph in a file."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lift_egraph.cli import options
from lift_egraph.cli.options import Json

if TYPE_CHECKING:
    from lift_egraph.extract.dag import Extracted, Extraction
    from lift_egraph.extract.gym import PricedGraph


class Cost(StrEnum):
    """What counts: each occurrence of a node, or each node once."""

    tree = "tree"
    dag = "dag"


def extract(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.json", help="An e-graph as extraction-gym has them; also .json.gz.")
    ],
    cost: Annotated[
        Cost, typer.Option(help="Count a node as often as it occurs (tree), or once for all roots (dag).")
    ] = Cost.dag,
    best: Annotated[int, typer.Option(min=1, help="How many extractions to show.")] = 1,
    apart: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="By which share of their nodes DAGs must differ, each two of them (Jaccard distance).",
        ),
    ] = 0.0,
    seconds: Annotated[
        float, typer.Option("--seconds", callback=options.check_budget, metavar="SECONDS", help="Time for the search.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the local search.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the extractions here, as JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Extract the cheapest terms for the roots of an e-graph.

    The best tree is found exactly. The best DAG is searched for: reductions, local search, branch and bound; a lower
    bound is shown, and whether the best is proven. Ctrl-C ends the search and shows what was found so far.
    """
    from lift_egraph.cli.show import print_json
    from lift_egraph.extract.dag import extract_trees
    from lift_egraph.extract.diverse import best_dags
    from lift_egraph.extract.gym import read_gym
    from lift_egraph.files import json_text, replacing, require_writable_file

    if out is not None:
        require_writable_file(out)
    graph = read_gym(file)
    if cost is Cost.tree:
        found = extract_trees(graph, best)
    else:
        found = best_dags(
            graph, best, apart=apart, seconds=seconds, seed=seed,
            listen=lambda better: typer.echo(f"found a DAG of cost {better:.9g}", err=True),
        )  # fmt: skip
    content = {"file": str(file), "measure": cost.value, "seed": seed, **_facts(graph, found)}
    if as_json:
        print_json(content)
    else:
        _show(file, graph, cost, best, found)
    if out is not None:
        with replacing(out) as target:
            target.write(json_text(content).encode())
        typer.echo(f"wrote {out}", err=True)
    if found.ended == "interrupted":
        raise typer.Exit(130)


def _facts(graph: PricedGraph, found: Extracted) -> dict[str, Any]:
    return {
        "lower_bound": found.lower_bound,
        "proven": found.is_proven,
        "ended": found.ended,
        "seconds": round(found.seconds, 3),
        "extractions": [_term(graph, extraction) for extraction in found.best],
    }


def _term(graph: PricedGraph, extraction: Extraction) -> dict[str, Any]:
    """An extraction as plain data: each node after its parts, which are places in the list."""
    nodes = [(graph.nodes[step.node], step.parts) for step in extraction.steps]
    return {
        "dag_cost": extraction.dag_cost,
        "tree_cost": extraction.tree_cost if extraction.tree_cost < math.inf else None,
        "roots": extraction.roots,
        "nodes": [
            {"node": node.name, "op": node.op, "eclass": graph.classes[node.owner], "parts": parts}
            for node, parts in nodes
        ],
    }


def _show(file: Path, graph: PricedGraph, cost: Cost, best: int, found: Extracted) -> None:
    from lift_egraph.cli.show import stdout, table_of

    console = stdout()
    roots = "1 root" if len(graph.roots) == 1 else f"{len(graph.roots)} roots"
    console.print(f"{file.name}: {len(graph.nodes)} nodes, {len(graph.classes)} classes, {roots}", soft_wrap=True)
    table = table_of("#", "DAG cost", "tree cost", "nodes", "differs by")
    for rank, e in enumerate(found.best, 1):
        differs = min((e.difference(other) for other in found.best[: rank - 1]), default=None)
        share = "–" if differs is None else f"{100 * differs:.1f} %"
        table.add_row(str(rank), f"{e.dag_cost:.9g}", f"{e.tree_cost:.9g}", str(len(e.steps)), share)
    console.print(table)
    least = found.best[0].tree_cost if cost is Cost.tree else found.best[0].dag_cost
    if found.is_proven:
        console.print("No extraction is cheaper than the first: proven.")
    else:
        of = f", {100 * found.lower_bound / least:.3g} % of the first" if least else ""
        console.print(f"Every extraction costs at least {found.lower_bound:.9g}{of}: the first may not be the best.")
    if len(found.best) < best:
        console.print(f"Found {len(found.best)} of the {best} asked for.")
    console.print(f"Search ended: {found.ended}; {found.seconds:.1f} s.")
