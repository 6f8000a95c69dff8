"""Sub-groups that reduce what their work-items have: values are passed from item to item, without memory.

Each item combines what it has with what its neighbour has, then with what the item two places on has made of that, then
four places on, so that the first item of some has all of theirs in order; where all need that, it is passed back.
Whatever else items of a sub-group have, all of them take part: those without an element have the initial value.

Source: Khronos, "The OpenCL Extension Specification", cl_khr_subgroup_shuffle_relative; NVIDIA, "PTX ISA", shfl.sync.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lift_egraph.codegen.c_ast import CExpr, If, Passed
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.launch import is_of_one
from lift_egraph.codegen.lowering.sharing import allocate, copy, store_data
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.views import Access, Choices, Indices, Memory, Pairs, Repeat, View
from lift_egraph.errors import DeviceProblem, NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.describe import blame
from lift_egraph.language.nat import Nat, is_at_least, nat
from lift_egraph.language.nesting import LOCAL
from lift_egraph.language.types import DataType, Pair, Scalar


@dataclass(frozen=True)
class PassedOn(View):
    """What the work-item `by` places on has in the same private place, or the first of the sub-group."""

    base: View
    by: int | None

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return Passed(self.base.resolve(indices, choices), self.by)


def check_sub_groups(term: ir.Part, device: Device, threads: Mapping[ir.Level, int | None]) -> None:
    """Check that the work-items of a kernel's groups can reduce as a term says.

    Raises
    ------
    DeviceProblem
        If work-items of the device pass no values to each other, or fewer do, or groups have sub-groups in part.
    NestingProblem
        If no doubling of distances reaches all elements, or they are no scalars.
    """
    for part in ir.subterms(term):
        if isinstance(part, ir.ReduceSub) and (problem := _problem(part, device, threads[LOCAL])):
            raise blame(problem, part)


def _problem(term: ir.ReduceSub, device: Device, items: int | None) -> DeviceProblem | NestingProblem | None:
    number, width = term.items.constant, device.sub_group
    if not width:
        return DeviceProblem(
            f"reduceSub: work-items pass values to each other, and nothing says that those of {device.name} can: "
            "emission.exchange"
        )
    if number is None or number.bit_count() != 1:
        return NestingProblem(f"reduceSub: a power of two of work-items combine what they have, not {term.items}")
    if number > width:
        return DeviceProblem(f"reduceSub: {number} work-items are more than a sub-group of {device.name} has ({width})")
    if items is None or items % width:
        had = f"{items} work-items" if items else "a local size that only the launch says"
        return DeviceProblem(f"reduceSub: groups must have whole sub-groups, of {width} work-items each, not {had}")
    if not _is_of_scalars(t := type_of(term.initial)):
        return NestingProblem(f"reduceSub: work-items pass scalars and tuples of them, not {t}")
    return None


def _is_of_scalars(t: DataType) -> bool:
    return _is_of_scalars(t.first) and _is_of_scalars(t.second) if isinstance(t, Pair) else isinstance(t, Scalar)


def of_sub_groups(lowering: State, term: ir.ReduceSub) -> View:
    """What sub-groups reduce elements to: where one has them all, and a group no other beside it, each item knows it.

    Else it is in local memory.
    """
    if lowering.threads[LOCAL] != lowering.sub_group or not is_of_one(term, lowering.sub_group):
        return lowering.materialise(term, "local")
    t = type_of(term.initial)
    own = _combined(lowering, term, _elements(lowering, term.array, True), nat(0), lowering.sub_group)
    with lowering.loop(term.items, LOCAL):
        store_data(lowering, PassedOn(own, None), own, t)
        _combine(lowering, term, lowering.consume(term.initial), own, own)
    return Repeat(own)


def reduce_sub(lowering: State, term: ir.ReduceSub, acceptor: View) -> None:
    """What the work-items of a group have, each an element in each round, and what sub-groups make of that."""
    if acceptor.space == "private":
        made = allocate(lowering, "tmp", type_of(term), "local")
        reduce_sub(lowering, term, made)
        copy(lowering, made, acceptor, type_of(term))
        return
    size, items = size_of(term.array), lowering.threads[LOCAL]
    number, width = term.items.constant, lowering.sub_group
    assert number is not None, "check_sub_groups has refused it"
    assert items is not None, "check_sub_groups has refused it"
    most = size.range[1]
    at_once = most is not None and most <= items
    rounds = nat(1) if at_once else (size + (items - 1)) // items
    busy = min(items, -(-most // width) * width) if at_once and most is not None else items  # of whole sub-groups
    array, initial = _elements(lowering, term.array, at_once), lowering.consume(term.initial)
    with lowering.loop(rounds) as turn:
        own = _combined(lowering, term, array, turn * items, busy)
        if size == nat(number):
            with lowering.loop(nat(1), LOCAL):  # the first item alone, which needs no barrier to read it again
                _combine(lowering, term, initial, own, Access(nat(0), acceptor))
        else:
            with lowering.loop(nat(busy), LOCAL) as item:
                index = turn * items + item
                with _where(lowering, size - 1 - index, -(item % number)):
                    _combine(lowering, term, initial, own, Access(index // number, acceptor))


def _combined(lowering: State, term: ir.ReduceSub, array: View, start: Nat, busy: int) -> View:
    """What each of the `busy` work-items has after a round: the first of some has made it of all of theirs."""
    t, size, initial = type_of(term.initial), size_of(term.array), lowering.consume(term.initial)
    number = term.items.constant
    assert number is not None, "check_sub_groups has refused it"
    own, other = (_of_item(lowering, name, t) for name in ("own", "other"))
    with lowering.loop(nat(busy), LOCAL) as item:
        index = start + item
        element = Access(index, array)
        if not is_at_least(size - 1 - index, 0):
            store_data(lowering, initial, own, t)
        with _where(lowering, size - 1 - index):
            store_data(lowering, element, own, t)
        for by in (1 << k for k in range(number.bit_length() - 1)):
            store_data(lowering, PassedOn(own, by), other, t)
            _combine(lowering, term, own, other, own)
    return own


def _combine(lowering: State, term: ir.ReduceSub, first: View, second: View, place: View) -> None:
    operator = ir.function_body(term.operator)
    lowering.bind(operator.binder, Pairs(first, second))
    store_data(lowering, lowering.consume(operator.body), place, type_of(term.initial))


def _elements(lowering: State, array: ir.Expr, at_once: bool) -> View:
    """The elements: those that the items make for it, one each, they keep."""
    makes = isinstance(array, ir.MapLevel) and array.level == LOCAL
    return lowering.materialise(array, "private") if makes and at_once else lowering.consume(array)


def _of_item(lowering: State, name: str, t: DataType) -> View:
    """A private variable that keeps what a work-item has between maps over the items of a group."""
    made = allocate(lowering, name, t, "private")
    assert isinstance(made, Memory)
    for cell in made.cells:
        lowering.homes[cell.buffer.name] |= {LOCAL.dimension}
    return made


@contextmanager
def _where(lowering: State, *conditions: Nat) -> Iterator[None]:
    """Under conditions, index expressions of at least 0."""
    needed = tuple(c for c in conditions if not is_at_least(c, 0))
    with lowering.block() as body:
        yield
    for statement in [If(needed, tuple(body))] if needed else body:
        lowering.emit(statement)
