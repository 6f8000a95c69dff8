"""Reductions by index: each element is combined with the result at a place that is computed for it.

Where each element has a work-item, the results are combined in memory (`atomics`), and those of a group first in local
memory.
"""

from __future__ import annotations

from lift_egraph.codegen.c_ast import Load, Store, any_index, known_index
from lift_egraph.codegen.lowering.accumulators import bind_step, emit_within, update_accumulator
from lift_egraph.codegen.lowering.atomics import combination
from lift_egraph.codegen.lowering.sharing import allocate, allocate_for, by_one, copy
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.views import Access, View
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nesting import GLOBAL, LOCAL


def reduce_by_index(lowering: State, term: ir.IndexLoop, acceptor: View) -> None:
    """The results are updated where they are wanted, or in memory of their own: they are read there, too.

    Where each element has a work-item, what they start from is there already: a kernel before this one wrote it.
    """
    t, size = type_of(term), size_of(term)
    level = ir.SEQ if isinstance(term, ir.ReduceByIndexSeq) else GLOBAL
    is_there = acceptor.space in ("global", "local")
    target = acceptor if is_there or level is GLOBAL else allocate_for(lowering, "bins", term, "global")
    combined = combination(term) if isinstance(term, ir.ReduceByIndexAtomic) else None
    bins = allocate(lowering, "bins", t, "local") if combined and LOCAL in lowering.threads else None
    if level is ir.SEQ:
        copy(lowering, lowering.consume(term.initial), target, t)
    if combined and bins:
        with lowering.loop(size, LOCAL) as index:
            _store_at_once(lowering, Access(index, bins), lowering.consume(combined.neutral))
    place, operator = ir.function_body(term.place), ir.function_body(term.operator)
    array = lowering.consume(term.array)
    with lowering.loop(size_of(term.array), level) as index:
        lowering.bind(place.binder, Access(index, array))
        computed = lowering.consume(place.body).resolve((), ())
        wanted = lowering.name("place", computed)
        with lowering.block() as step:
            current = Access(known_index(wanted, size - 1), bins or target)
            accumulator = bind_step(lowering, operator.binder, current, Access(index, array))
            if combined:
                added, everywhere = lowering.consume(combined.added), bins is not None
                _store_at_once(lowering, current, added, combined.op, everywhere)
            elif not isinstance(term, ir.ReduceByIndexAtomic):
                update_accumulator(lowering, operator.body, accumulator, current, term)
        emit_within(lowering, step, computed, any_index(wanted), size)
    if combined and bins:
        with lowering.loop(size, LOCAL) as index:
            _store_at_once(lowering, Access(index, target), Access(index, bins), combined.op)
    elif target is not acceptor:
        copy(lowering, target, acceptor, t)


def _store_at_once(lowering: State, place: View, value: View, by: str = "", everywhere: bool = True) -> None:
    """Writes a scalar, or combines it with what is there: in all groups, or in one of those that do alike."""
    target = place.resolve((), ())
    made = Store(target, value.resolve((), ()), by=by, origin=lowering.term)
    assert isinstance(target, Load)
    lowering.emit(made if everywhere else by_one(lowering, target, made))
