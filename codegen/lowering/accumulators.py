"""Accumulators: memory that each step of a fold reads and updates. What it writes must not be read after that.

`in_place` says where a step may write over what it reads; where it may not, the new value has memory of its own first.
"""

from __future__ import annotations

from lift_egraph.codegen.c_ast import CExpr, If, IndexValue, Statement, any_index, known_index
from lift_egraph.codegen.lowering.in_place import are_apart, components, one_place, updates_in_place
from lift_egraph.codegen.lowering.places import is_within
from lift_egraph.codegen.lowering.sharing import copy_for, store_data
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.term_views import Environment, Mapped, bindings
from lift_egraph.codegen.lowering.views import Access, Pairs, View
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nat import Nat
from lift_egraph.language.types import DataType, is_data, width_of

FEW_VARIABLES = 16  # of a private array, which are all in registers


def bind_step(lowering: State, pattern: ir.Binder, target: View, element: View) -> ir.Binder:
    """Binds what a step takes: the accumulator, of which the pattern is returned, is the memory that it updates."""
    if isinstance(pattern, ir.PairBinder):
        # the old value is not read: it is the memory that the step updates
        lowering.environment |= bindings(pattern.first, target)
        lowering.bind(pattern.second, element)
        return pattern.first
    lowering.environment[pattern] = Pairs(target, element)
    return pattern


def update_accumulator(lowering: State, body: ir.Expr, pattern: ir.Binder, target: View, maker: ir.Expr) -> None:
    """One step of a fold: the new value takes the place of the old one."""
    t = type_of(body)
    if is_data(t) and not isinstance(body, ir.REDUCTION_LOOPS):
        store_data(lowering, lowering.consume(body), target, t)
    elif isinstance(body, ir.Apply) and is_data(type_of(body.argument)):
        lambda_ = ir.function_body(body.function)
        lowering.bind(lambda_.binder, lowering.consume(body.argument), lasting=True)
        with lowering.lanes(body.function):
            update_accumulator(lowering, lambda_.body, pattern, target, maker)
    elif are_apart(body, pattern):
        _update_apart(lowering, body, pattern, target, maker)
    elif (one := one_place(body, pattern, lambda xs: _counts(lowering, xs))) and _update_one(lowering, *one, target):
        return
    elif updates_in_place(body, pattern):
        lowering.produce(body, target)
    else:
        space = target.space or "private"
        spare = lowering.allocate_default("next", body, maker, None if space == "private" else space)
        lowering.produce(body, spare)
        copy_for(lowering, body, spare, target)


def emit_within(lowering: State, step: list[Statement], computed: CExpr, place: Nat, size: Nat) -> None:
    """What is done at a computed place, if that is one of an array of this size; `place` may be any index."""
    if is_within(computed, size):
        lowering.statements += step
    else:
        lowering.emit(If((place, size - 1 - place), tuple(step)))


def _update_apart(lowering: State, body: ir.Expr, pattern: ir.Binder, target: View, maker: ir.Expr) -> None:
    """A step of a tuple whose arrays are apart: its numbers are computed before these change, and written after."""
    old = lowering.environment | bindings(pattern, target)
    numbers: list[tuple[View, View, DataType]] = []
    arrays: list[tuple[ir.Expr, ir.Binder, View]] = []
    for part, inner in components(body, pattern):
        place, t = _place_of(inner, old), type_of(part)
        if is_data(t):
            numbers.append((lowering.named("next", lowering.consume(part), t, lasting=True), place, t))
        else:
            arrays.append((part, inner, place))
    for part, inner, place in arrays:
        update_accumulator(lowering, part, inner, place, maker)
    for value, place, t in numbers:
        store_data(lowering, value, place, t)


def _place_of(pattern: ir.Binder, views: Environment) -> View:
    """The place of what a pattern binds."""
    if isinstance(pattern, ir.Var):
        return views[pattern]
    return Pairs(_place_of(pattern.first, views), _place_of(pattern.second, views))


def _counts(lowering: State, array: ir.Expr) -> bool:
    """Whether an array has the index at each place."""
    match lowering.environment.get(array) if isinstance(array, ir.Var) else array:
        case ir.Generate(function=ir.Lambda() as lambda_) | Mapped(function=lambda_, array=None):
            return lambda_.body == lambda_.binder
    return False


def _update_one(lowering: State, term: ir.MapLevel, place: ir.Expr, value: ir.Expr, target: View) -> bool:
    """``acceptor[place] = value``, for a map that keeps all other elements.

    Not where each lane has a place of its own. Nor where the elements are variables, and the place is no index of a
    loop: a few of them, or any number in groups of work-items.
    """
    size = size_of(term.array)
    with lowering.block() as read:
        array = lowering.consume(term.array)
        computed = lowering.consume(place).resolve((), ())
    if not isinstance(computed, IndexValue):
        are_variables = (size.range[1] or 0) <= FEW_VARIABLES or any(level.kind == "wrg" for level in lowering.threads)
        if width_of(computed.type) > 1 or (target.space == "private" and are_variables):
            return False
    lowering.statements += read
    if isinstance(computed, IndexValue):
        given = index = computed.value
    else:
        wanted = lowering.name("place", computed)
        given, index = any_index(wanted), known_index(wanted, size - 1)
    with lowering.block() as step:
        lowering.bind(ir.function_body(term.function).binder, Access(index, array))
        store_data(lowering, lowering.consume(value), Access(index, target), type_of(value))
    emit_within(lowering, step, computed, given, size)
    return True
