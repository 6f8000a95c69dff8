"""What a parametric term and a device ask of the parameters.

The patterns ask that lengths divide; the kernels, how many work-items a group has and how much memory these need. Both
are numbers of the term and of its kernels at each point where it was derived, and are read as its own numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from lift_egraph.codegen.c_ast import Allocate, Buffer, Load
from lift_egraph.codegen.c_walk import walk
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.language import ir
from lift_egraph.language.check import array_type, type_of
from lift_egraph.language.types import WIDTHS, bytes_of
from lift_egraph.tuning.conditions import Condition
from lift_egraph.tuning.forms import Form, read_forms
from lift_egraph.tuning.parametric import Parametric
from lift_egraph.tuning.space import Space

UNLIMITED = 1 << 40


@dataclass(frozen=True)
class Demand:
    """A number that must be a whole one, of at least 1, or one of the widths, or within a limit of the device.

    `kind` is ``parts`` (how often a length divides another), ``width``, or the limit: ``items`` of a group, bytes of
    ``local`` memory of a group, or of ``private`` memory of a work-item.
    """

    kind: str
    form: Form
    why: str


def demands_of(
    programs: Sequence[ir.Program], points: Sequence[Mapping[str, int]], device: Device
) -> tuple[Demand, ...]:
    """What low-level programs of one shape ask for, derived at some points, as expressions of their variables.

    What no kernel is generated for, and what is no expression of them, is not asked.
    """
    found = [list(_asked(program.body)) for program in programs]
    forms = _read([[number for _, number, _ in row] for row in found], points)
    made = [Demand(kind, form, why) for (kind, _, why), form in zip(found[0], forms, strict=True) if form is not None]
    free = replace(device, local_memory=UNLIMITED, max_work_group=UNLIMITED)
    try:
        needs = [_needs(compile_program(program, free)) for program in programs]
    except LiftError:  # stand-ins can be too large for any device
        needs = [_needs_of_term(program.body) for program in programs]
    for key, numbers in needs[0].items():
        rows = [there.get(key, []) for there in needs]
        if all(len(row) == len(numbers) for row in rows):
            forms = [form for form in _read(rows, points) if form is not None]
            if len(forms) == len(numbers):
                made.append(Demand(key[0], sum(forms, Form(())), _WHY[key[0]]))
    return tuple(dict.fromkeys(made))


_WHY = {
    "items": "the work-items of a group",
    "local": "the bytes of local memory of a group",
    "private": "the bytes of private memory of a work-item",
}


def space_of(
    parametric: Parametric[Any],
    demands: Sequence[Demand],
    sizes: Mapping[str, int],
    device: Device,
    bounds: Mapping[str, tuple[int, ...]] | None = None,
    *,
    least: int = 1,
) -> Space:
    """The points at which a parametric term fits its sizes and a device.

    Parameters
    ----------
    bounds
        The values that some parameters may have.
    least
        Of each parameter, and of what parameters divide a length into.

    Raises
    ------
    SearchProblem
        If nothing bounds a parameter.
    """
    limits = _limits(device)
    conditions = [Condition(Form.of(name), among=values) for name, values in (bounds or {}).items()]
    conditions += [Condition(Form.of(name), least) for name in parametric.parameters]
    conditions += [Condition(form.at(sizes), low=0) for form in dict.fromkeys(parametric.forms) if form.terms]
    for demand in demands:
        form = demand.form.at(sizes)
        if demand.kind == "width":
            conditions.append(Condition(form, among=WIDTHS, why=demand.why))
        elif demand.kind == "parts":
            conditions.append(Condition(form, least if form.names else 1, why=demand.why))
        else:
            conditions.append(Condition(form, 0, limits[demand.kind], why=demand.why, whole=False))
    return Space(parametric.parameters, tuple(dict.fromkeys(conditions)))


def _limits(device: Device) -> dict[str, float]:
    return {"items": device.max_work_group, "local": device.most_local, "private": device.private_bytes}


def _read(rows: Sequence[Sequence[int]], points: Sequence[Mapping[str, int]]) -> list[Form | None]:
    """The expressions that numbers are, None where one is none."""
    found: list[Form | None] = []
    for column in zip(*rows, strict=True):
        try:
            (form,) = read_forms([[n] for n in column], points)
        except SearchProblem:
            form = None
        found.append(form)
    return found


def _asked(term: ir.Part) -> Iterator[tuple[str, int, str]]:
    """What the patterns of a term ask for: the kind, the number, and whose it is."""
    for part in ir.subterms(term):
        match part:
            case ir.Split(chunk=chunk, array=array):
                yield "parts", _length(array) // chunk.evaluate({}), "the parts of a split"
            case ir.AsVector(width=width, array=array):
                yield "width", width, "the width of a vector"
                yield "parts", _length(array) // width, "the vectors of an array"
            case ir.Slide(size=size, step=step, array=array):
                count = (_length(array) - size.evaluate({})) // step.evaluate({}) + 1
                yield "parts", count, "the windows of a slide"
            case ir.Slice(start=start, length=length, array=array):
                yield "parts", _length(array) - start.evaluate({}) - length.evaluate({}) + 1, "what a slice leaves"
            case ir.LookBack(width=width, array=array):
                yield "parts", _length(array) // width.evaluate({}), "the rounds of a look back"
            case ir.At(index=index, array=array):
                yield "parts", _length(array) - index.evaluate({}), "what lies behind an element"


def _length(array: ir.Expr) -> int:
    return array_type(array, "a length").size.evaluate({})


def _needs_of_term(term: ir.Expr) -> dict[tuple[str, int], list[int]]:
    """What a term needs of a device: the work-items of its groups, and the memory that it asks for or that holds the
    accumulators of a work-item.
    """
    lengths: dict[int, int] = {}
    found: dict[tuple[str, int], list[int]] = {}

    def walk_term(part: ir.Part, in_item: bool, copies: int) -> None:
        by_items = isinstance(part, ir.MapLevel) and part.level.kind in ("lcl", "glb")
        own = 1
        if isinstance(part, ir.MapLevel) and part.level.kind == "lcl":
            own = _length(part.array)
            lengths[part.level.dimension] = max(lengths.get(part.level.dimension, 1), own)
        if isinstance(part, ir.ToMemory) and (space := part.address_space) != "global":
            count = copies if space == "local" else 1
            found.setdefault((space, 0), []).append(count * bytes_of(type_of(part.value)))
        elif isinstance(part, ir.REDUCTION_LOOPS) and in_item and not _has_items(part.operator):
            found.setdefault(("private", 0), []).append(bytes_of(type_of(part.initial)))
        for inner in ir.parts(part):
            inside = by_items and not isinstance(inner, ir.Expr)
            walk_term(inner, in_item or inside, copies * own if inside else copies)

    walk_term(term, False, 1)
    if lengths:
        found["items", 0] = [prod(lengths.values())]
    return found


def _has_items(step: ir.Function) -> bool:
    """Whether the items of a group share what a loop goes on with."""
    return any(isinstance(part, ir.MapLevel) and part.level.kind == "lcl" for part in ir.subterms(step))


def _needs(plan: Plan) -> dict[tuple[str, int], list[int]]:
    """What the kernels of a plan need of a device, by its kind and the kernel: of memory for each array."""
    found: dict[tuple[str, int], list[int]] = {}
    for place, kernel in enumerate(plan.kernels):
        if kernel.launch.local_size:
            found["items", place] = [prod(kernel.launch.local_size)]
        used: dict[str, Buffer] = {}
        for part in walk(kernel.body):
            if isinstance(part, Allocate | Load) and part.buffer.space in ("local", "private"):
                used.setdefault(part.buffer.name, part.buffer)
        for buffer in used.values():
            found.setdefault((buffer.space, place), []).append(buffer.bytes)
    return found
