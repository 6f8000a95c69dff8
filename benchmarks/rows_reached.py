"""Which low-level terms of Table 4.2 are reached from the plain program of their row, up to parameters.

The kernels of two terms are alike if they have the same loops around the same operations, copies, barriers and
accesses: work-items, groups or steps, scalars or vectors, and which loops move each access. How often a loop runs, how
wide a vector is, what is unrolled and what things are called are parameters. No device is needed.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import harness
from rows import ROWS, Row

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, Device
from lift_egraph.codegen.plans.kernel import Plan as Compiled
from lift_egraph.errors import LiftError
from lift_egraph.extract.accesses import Access, Loop, Region, analyse
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import ir
from lift_egraph.workbench.additions import Additions
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.phases import Found
from lift_egraph.workbench.planning.plan import Plan, nests
from lift_egraph.workbench.planning.plans import plans_in_groups
from lift_egraph.workbench.planning.tiles import in_tiles

DIALECTS = ("pocl", "intel", "nvidia")
HEADINGS = ("row", "device", "reached", "likeness", "the most alike, by the phases", "terms", "seconds")
POINTS = {  # of plans in tiles: the row's own, where tiles are copied in one round; on a GPU, of a plan found at others
    ("mm_nvidia", "pocl"): {"tall": 8, "broad": 32, "high": 4, "wide": 4, "depth": 64, "width": 16},
    ("mm_nvidia", "intel"): {"tall": 8, "broad": 32, "high": 4, "wide": 4, "depth": 64, "width": 16},
    ("mm_nvidia", "nvidia"): {"tall": 8, "broad": 4, "high": 8, "wide": 16, "depth": 8, "width": 4},  # without slices
}
ASKED_FOR = (  # phases no CPU has unasked
    *("registers", "block_registers", "loop_tile", "row_tile", "tree_levels", "column_tile", "window_copies"),
    "vector_tile",
)


@dataclass(frozen=True)
class Likest:
    """The found term whose kernels are the most alike: how much, whether they are, and by which phases."""

    likeness: float = 0.0
    is_alike: bool = False
    phases: tuple[str, ...] = ()


def shape(plan: Compiled) -> tuple[str, ...]:
    """The kernels of a plan without parameters, as lines."""
    return tuple(line for kernel in plan.kernels for line in ("kernel", *_lines(analyse(kernel), 1)))


def _lines(region: Region, depth: int) -> list[str]:
    found = {f"{o.op} {'vectors' if o.width > 1 else 'scalars'}" for o in region.operations}
    found |= {_access(access, region) for access in region.accesses}
    found |= {"barrier"} if region.barriers else set()
    lines = ["  " * depth + text for text in sorted(found)]
    inner = {(f"{'  ' * depth}loop {_level(c.path[-1])}", *_lines(c, depth + 1)) for c in region.children}
    return [*lines, *(line for one in sorted(inner) for line in one)]


def _access(access: Access, region: Region) -> str:
    """The memory, what is moved, and the loops that move it."""
    moved = sorted({_level(loop) for s, loop in zip(access.strides, region.path, strict=False) if s})
    is_named = access.space == "global" and not access.buffer.startswith(("tmp", "between"))
    what = ("vector " if access.width > 1 else "") + ("by data " if access.irregular else "")
    return f"{access.kind} {what}{access.buffer if is_named else access.space} by {', '.join(moved)}"


def _level(loop: Loop) -> str:
    return loop.kind if loop.kind == "seq" else f"{loop.kind} {loop.dimension}"


def asked_for(name: str, dialect: str, term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plan for a row's own numbers, and on a CPU those of groups, the shortest first."""
    made = list(plans_in_groups(term, device))
    if (name, dialect) in POINTS:
        own = in_tiles(next(nests(term)), POINTS[name, dialect])
        makes = [plan.recipe.make for plan in made if plan.recipe]
        if not device.has_groups or (own.recipe and own.recipe.make in makes):
            yield own
    if not device.has_groups:
        yield from sorted(made, key=lambda plan: len(plan.steps))


def found_shapes(row: Row, dialect: str, device: Device, seconds: float) -> Iterator[tuple[Found, tuple[str, ...]]]:
    """What a search finds for the plain program of a row, with the shapes of its kernels."""
    program = row.plain_program(dialect, row.sizes_on(dialect, "small"))
    began = time.perf_counter()
    additions = Additions(plans=partial(asked_for, row.name, dialect))
    budget = Budget(seconds=max(seconds, Budget().seconds))
    for item in search(program, device, budget, StructuralCost(), additions):
        if isinstance(item, Found):
            try:
                yield item, shape(compile_program(replace(program, body=item.term), device))
            except LiftError:  # legal in the e-graph's eyes, but not for the code generator
                continue
        if time.perf_counter() - began > seconds:
            return


def likest(row: Row, dialect: str, device: Device, seconds: float) -> tuple[Likest, int]:
    """The most alike of what is found for a row, and how many terms were looked at; none follows one that is alike."""
    wanted = shape(compile_program(row.program(dialect, row.sizes_on(dialect, "small")), device))
    best, count, known = Likest(), 0, set[tuple[str, ...]]()
    for found, made in found_shapes(row, dialect, device, seconds):
        count += 1
        if made in known:
            continue
        known.add(made)
        ratio = difflib.SequenceMatcher(None, wanted, made, autojunk=False).ratio()
        if ratio > best.likeness:
            best = Likest(ratio, made == wanted, tuple(leg.name for leg in found.way))
        if best.is_alike:
            break
    return best, count


def table(seconds: float, names: Mapping[str, Row], dialects: tuple[str, ...]) -> Iterator[harness.Row]:
    """The lines, row by row. Whether loops are in parts, or read ahead, follows from their numbers: none is here."""
    for row in names.values():
        for dialect in dialects:
            began = time.perf_counter()
            emission = replace(DEVICES[dialect].emission, reads_ahead=False, borders_apart=False)
            best, count = likest(row, dialect, replace(DEVICES[dialect], emission=emission), seconds)
            unasked = not best.is_alike or DEVICES[dialect].has_groups or best.phases[-1] not in ASKED_FOR
            reached = ("yes" if unasked else "if asked") if best.is_alike else "no"
            spent = time.perf_counter() - began
            yield row.title, dialect, reached, best.likeness, ", ".join(best.phases), count, spent


def main() -> None:
    parser = harness.options("rows_reached", __doc__ or "", has_device=False)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search (default: %(default)s)")
    parser.add_argument("--rows", nargs="*", default=[row.name for row in ROWS], choices=[row.name for row in ROWS])
    parser.add_argument("--on", nargs="*", default=DIALECTS, choices=DIALECTS, help="descriptions of devices")
    arguments = parser.parse_args()
    rows: list[harness.Row] = []
    for line in table(arguments.seconds, {r.name: r for r in ROWS if r.name in arguments.rows}, tuple(arguments.on)):
        rows.append(line)
        print(*line, flush=True)
    harness.report(
        arguments.out,
        "Rows of Table 4.2 that are reached from plain programs",
        HEADINGS,
        rows,
        notes=(
            f"{sum(row[2] != 'no' for row in rows)} of {len(rows)} are reached: the kernels are the same up to "
            "parameters",
            "if asked: on CPUs local memory is slow, and no search follows such plans there; with "
            "`optimize(plans=plans_in_groups)` it does",
            "likeness: the share of the lines of both shapes that is in both; terms: how many were looked at",
            "by how much a loop moves an access is a parameter too: chunks of neighbours and strided ones are alike",
        ),
    )


if __name__ == "__main__":
    main()
