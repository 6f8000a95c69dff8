"""Which folds of a program become reductions by associative operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard, TypeVar

from lift_egraph.algebra.actions import Action, Refusal, action_of, seen_first
from lift_egraph.algebra.cascades import parts_of
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.kept import against_bounds, keeping_of
from lift_egraph.algebra.laws import associative, built_in, in_parts, neutral
from lift_egraph.algebra.recalled import recalling_of
from lift_egraph.algebra.steady import steady_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.egraph.operators import making
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.joined_folds import with_joined_folds
from lift_egraph.workbench.changes.long_rows import LongRows, folds
from lift_egraph.workbench.changes.outside import map_outside
from lift_egraph.workbench.planning.look_back import looks_back
from lift_egraph.workbench.planning.plan import length_of

T = TypeVar("T", bound=ir.Part)
REDUCTIONS = (ir.Reduce, *ir.SCANS)
LEFT_TO_RIGHT = (ir.Reduce, ir.ReduceSeq)
REDUCTION_OF = {ir.ReduceSeq: ir.Reduce, ir.ScanSeq: ir.Scan, ir.ScanExclusiveSeq: ir.ScanExclusive}


def with_actions(term: ir.Expr, rows: Rows | None = None) -> ir.Expr | None:
    """The term with its folds as reductions by associative operators; None if there are none of these.

    Operators that are built-in operations in other words are these. Folds that combine the accumulator with a function
    of each element are reductions everywhere. Those whose operators act like a monoid, which takes more work, are so
    outside of all loops, and in functions of maps over few long `rows`, if it is known what these are. Scans that are
    taken in chunks are left as they are: only their chunks act.
    """
    made = _acted(_from_identities(_in_plain_words(_combined_everywhere(_in_plain_words(term)))), rows)
    return None if alpha_equal(made, term) else made


def _in_plain_words(term: T) -> T:
    made = ir.map_parts(term, _in_plain_words)
    if isinstance(made, REDUCTIONS) and isinstance(made.operator, ir.Lambda) and known_operator(made.operator) is None:
        found = built_in(made.operator)
        if found is not None:
            t = type_of(made.initial)
            a, b = ir.Var("$a", t), ir.Var("$b", t)
            operator = ir.Lambda(ir.PairBinder(a, b), ir.Call(found[0], (a, b)))
            return replace(made, operator=operator)
    return made


def _combined_everywhere(term: T) -> T:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    made = ir.map_parts(term, _combined_everywhere)
    return _combined(made) if _may_act(made) else made  # pyright: ignore[reportReturnType]


def _acted(term: ir.Expr, rows: Rows | None) -> ir.Expr:
    """The term with its folds outside of all loops changed, and in long rows."""
    made = map_outside(term, lambda part: _acted(part, rows))
    if isinstance(made, ir.Map) and rows:
        return _acted_in(made, rows, 1)
    is_left = rows and (LongRows(rows).outside(made) is not made or looks_back(made, rows.device))
    is_whole = _may_act(made) and not is_left
    return _action(made) if is_whole else made


def _from_identities(term: T) -> T:
    """A term whose reductions by operations begin with what is neutral, as their parts do, wherever they stand."""
    if isinstance(term, ir.MapLevel):
        return term
    made = ir.map_parts(term, _from_identities)
    if isinstance(made, ir.Reduce) and (known := known_operator(made.operator)) and not known[1]:
        return _from_identity(made, known[0])  # pyright: ignore[reportReturnType]
    return made


def _from_identity(fold: ir.Reduce, op: str) -> ir.Expr:
    """A reduction by an operation from what is neutral, if it is from something else, and that beside it.

    A number that may be counted again, as for ``max``, is neutral enough.
    """
    t = type_of(fold.initial)
    is_number = isinstance(fold.initial, ir.Literal) and neutral(fold.operator, fold.initial)
    if not isinstance(t, Scalar) or is_number:
        return fold
    whole = ir.Reduce(fold.operator, ir.Literal(LAWS[op].neutral[t.name], t), fold.array)
    return ir.Call(op, (fold.initial, whole))


def _acted_in(term: ir.Map, rows: Rows, around: int) -> ir.Expr:
    """A map with the folds of long rows changed, inside of as many others."""
    count = around * length_of(term.array)
    match term.function:
        case ir.Lambda(binder=binder, body=ir.Map() as inner):
            return ir.Map(ir.Lambda(binder, _acted_in(inner, rows, count)), term.array)
        case ir.Lambda(binder=binder, body=body):
            loops = [f for f in folds(body) if isinstance(f, LEFT_TO_RIGHT)]
            long = [
                f
                for f in loops
                if rows.chunks(count, length_of(f.array), in_lanes=True) and not LongRows(rows).steadily(f, count)
            ]
            return ir.Map(ir.Lambda(binder, with_parts(body, {f: _action(f) for f in long})), term.array)
    return term


def _action(fold: ir.Expr) -> ir.Expr:
    """A fold whose operator acts like a monoid as the reduction or scan of what acts."""
    if not _may_act(fold) or not isinstance(found := action_of(fold.operator), Action):
        return fold
    may_act = found.against(length_of(fold.array), seen_first(fold)) is None
    if not may_act or not associative(found.operator):  # products of clamps are not known to be: but chunks have them
        return fold
    matrices = ir.Map(found.matrix, fold.array)
    if isinstance(fold, ir.Reduce | ir.ReduceSeq):
        product = ir.Reduce(found.operator, found.one, matrices)
        return ir.Apply(found.act, ir.MakePair(product, fold.initial))
    scanned = ir.ScanExclusive if isinstance(fold, ir.ScanExclusive | ir.ScanExclusiveSeq) else ir.Scan
    products = scanned(found.operator, found.one, matrices)
    p = ir.Var("$p", type_of(found.one))
    return ir.Map(ir.Lambda(p, ir.Apply(found.act, ir.MakePair(p, fold.initial))), products)


def _combined(fold: ir.WholeFold) -> ir.WholeFold:
    """A fold that combines the accumulator with a function of each element as the reduction of what that gives."""
    found = combining_of(fold.operator)
    made = REDUCTION_OF.get(type(fold), type(fold))
    if found is None:
        return fold
    is_operation = known_operator(found.operator) or built_in(found.operator)
    if not is_operation and not in_parts(made, found.operator, fold.initial):
        return fold
    is_as_it_is = found.element.body == found.element.binder  # as one variable is: so the simplification has it
    array = fold.array if is_as_it_is else ir.Map(found.element, fold.array)
    return made(found.operator, fold.initial, array)


def refusals(term: ir.Expr) -> Iterator[str]:
    """Why folds outside of all loops, or of rows, stay loops; those that go on from row to row are one."""
    joined = with_joined_folds(term)
    return _refusals(term if joined is None else joined)


def _refusals(term: ir.Expr) -> Iterator[str]:
    if _may_act(term):
        found = action_of(term.operator)
        f = term.operator
        is_parallel = _combined(term) is not term or _is_parallel_in_parts(f) or steady_of(f) is not None
        given = making(term)
        is_parallel = is_parallel or (keeping_of(f, term.initial) or keeping_of(f, term.initial, given)) is not None
        if isinstance(found, Refusal) and not is_parallel:
            bounds = against_bounds(f, term.initial, given)
            yield f"the fold by {print_term(term.operator)} stays a loop: {found}" + (f"; {bounds}" if bounds else "")
        elif (
            isinstance(found, Action)
            and (isinstance(term, ir.SCANS + ir.SCAN_LOOPS) or not is_parallel)
            and (against := found.against(length_of(term.array), seen_first(term)))
        ):
            yield f"the fold by {print_term(f)} stays a loop: that {found.why} does not help, as {against}"
    for part in ir.parts(term):
        if isinstance(part, ir.Expr):
            yield from _refusals(part)
    if isinstance(term, ir.Apply | ir.Map):
        yield from _refusals(ir.function_body(term.function).body)


def _is_parallel_in_parts(f: ir.Function) -> bool:
    """Whether it is a cascade, or remembers the element before, and is parallel without that."""
    recalling = recalling_of(f)
    steps = (f,) if recalling is None else (f, recalling.step)
    return any(parts_of(g) or (g is not f and isinstance(action_of(g), Action)) for g in steps)


def _may_act(term: ir.Part) -> TypeGuard[ir.WholeFold]:
    """Whether a term folds a whole array by an operator that is no reduction's as it stands."""
    return isinstance(term, ir.WHOLE_FOLDS) and isinstance(term.operator, ir.Lambda) and not _is_reduction(term)


def _is_reduction(fold: ir.Expr) -> bool:
    if not isinstance(fold, REDUCTIONS):
        return False
    return known_operator(fold.operator) is not None or in_parts(type(fold), fold.operator, fold.initial)
