"""Which folds are taken one part after the other: those whose operator is linear in some components once others are
known.

The terms are built here as the rules of `lift_egraph.rules.cascades` build them; that they do is what the phases
``algebra`` and ``long_rows`` show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.algebra.actions import Action
from lift_egraph.algebra.cascades import Cascade, acts_associatively, parts_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in, with_parts
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.workbench.changes.actions import with_actions
from lift_egraph.workbench.changes.chunked import FOLDS
from lift_egraph.workbench.changes.chunks import Rows, chunk_of
from lift_egraph.workbench.changes.fold_steps import FoldStep, one_more_each
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.changes.outside import all_outside
from lift_egraph.workbench.changes.remainders import part
from lift_egraph.workbench.planning.plan import LONG, length_of

EXCLUSIVE = (ir.ScanExclusive, ir.ScanExclusiveSeq)


def cascade_steps(term: ir.Expr, rows: Rows, least: int = LONG) -> Iterator[FoldStep]:
    """The term with those of its folds outside of all loops in parts that are parallel then, one more at a time.

    Parameters
    ----------
    least
        The elements of an array that is long enough.
    """
    return one_more_each(term, lambda now: _step(now, rows, least))


def _step(term: ir.Expr, rows: Rows, least: int) -> FoldStep | None:
    for fold in _folds(term):
        known = fold.operator if known_operator(fold.operator) is None else None
        found = parts_of(known) if isinstance(known, ir.Lambda) and with_actions(fold) is None else None
        if found is None or not is_pure(fold.array) or length_of(fold.array) < least:
            continue
        tiling, made = _in_chunks(fold, found, rows) or ({}, _in_parts(fold, found))
        return FoldStep("long_rows" if tiling else "algebra", tiling, with_parts(term, {fold: made}))
    return None


def _folds(term: ir.Expr) -> Iterator[ir.WholeFold]:
    """The folds outside of all loops."""
    return (part for part in all_outside(term) if isinstance(part, ir.WHOLE_FOLDS))


def _in_parts(fold: ir.WholeFold, found: Cascade) -> ir.Expr:
    """The first components scanned, and the others folded beside them."""
    z, xs = fold.initial, fold.array
    start, others = _kept(found.first, z), _kept(found.others, z)
    scanned = ir.ScanExclusiveSeq(found.step, start, xs)
    # the name that the rule gives stays free for a fold of what these are beside
    ss = ir.Var(fresh_name("$firsts", {"$firsts"} | names_in(fold)), type_of(scanned))
    beside = ir.Zip(ss, xs)
    if isinstance(fold, FOLDS):
        last = (ir.At(nat(length_of(xs) - 1), array) for array in (ss, xs))
        made = ir.Apply(found.step, ir.MakePair(*last))
        both = ir.MakePair(made, ir.ReduceSeq(found.rest, others, beside))
        return ir.Apply(ir.Lambda(ss, ir.Apply(found.whole, both)), scanned)
    if isinstance(fold, EXCLUSIVE):
        both = ir.Zip(ss, ir.ScanExclusiveSeq(found.rest, others, beside))
    else:
        both = ir.Zip(ir.Map(found.step, beside), ir.ScanSeq(found.rest, others, beside))
    return ir.Apply(ir.Lambda(ss, ir.Map(found.whole, both)), scanned)


def _kept(function: ir.Lambda, z: ir.Expr) -> ir.Expr:
    """What a function keeps of a tuple: the component itself, if it is one that is written out."""
    known: dict[ir.Expr, ir.Expr] = {}
    ahead: list[tuple[ir.Binder, ir.Expr]] = [(function.binder, z)]
    for binder, value in ahead:
        if isinstance(binder, ir.PairBinder) and isinstance(value, ir.MakePair):
            ahead += [(binder.first, value.first), (binder.second, value.second)]
        elif isinstance(binder, ir.Var):
            known[binder] = value
    return known.get(function.body, ir.Apply(function, z))


def _in_chunks(fold: ir.WholeFold, found: Cascade, rows: Rows) -> tuple[Tiling, ir.Expr] | None:
    """A long fold in chunks, each of which starts from where its first components do; what remains stands first."""
    one, other = acts_associatively(found.step), acts_associatively(found.rest)
    sides = ((one, found.first), (other, found.others))
    if any(acting and acting.against(0, ir.Apply(own, fold.initial)) for acting, own in sides):
        return None
    n = length_of(fold.array)
    chunks = None if rows.device.has_groups else rows.chunks(1, n, in_lanes=True)
    if not isinstance(fold, FOLDS) or one is None or other is None or not chunks:
        return None
    chunk = chunk_of(n, chunks, in_lanes=True)
    rest = n - chunk * chunks
    if rest >= chunk:
        return None
    z = replace(fold, array=part(0, rest, fold.array)) if rest else fold.initial
    split = ir.Split(nat(chunk), part(rest, n - rest, fold.array) if rest else fold.array)
    plan = LongRows(rows)
    plan.offer(chunk, n, n - rest)
    return plan.tiling, _from_starts(found, one, other, z, split)


def _from_starts(found: Cascade, one: Action, other: Action, z: ir.Expr, split: ir.Expr) -> ir.Expr:
    start, others = ir.Apply(found.first, z), ir.Apply(found.others, z)
    c = ir.Var("$chunk", element_type(split))
    s, q, x, p = (
        ir.Var("$start", type_of(start)),
        ir.Var("$acc", type_of(other.one)),
        ir.Var("$x", element_type(c)),
        ir.Var("$acting", type_of(one.one)),
    )
    totals = ir.Map(ir.Lambda(c, ir.Reduce(one.operator, one.one, ir.Map(one.matrix, c))), split)
    moved = ir.Lambda(ir.PairBinder(s, p), ir.Apply(one.act, ir.MakePair(p, s)))
    starts = ir.ScanExclusiveSeq(moved, start, totals)
    beside = ir.MakePair(s, x)
    acted = ir.Apply(other.operator, ir.MakePair(q, ir.Apply(other.matrix, beside)))
    step = ir.Lambda(
        ir.PairBinder(ir.PairBinder(s, q), x), ir.MakePair(ir.Apply(found.step, beside), acted)
    )  # fmt: skip
    each = ir.Lambda(ir.PairBinder(s, c), ir.ReduceSeq(step, ir.MakePair(s, other.one), c))
    parts = ir.Map(each, ir.Zip(starts, split))
    ps = ir.Var("$parts", type_of(parts))
    acting = ir.Reduce(other.operator, other.one, ir.Map(ir.Lambda(ir.PairBinder(s, q), q), ps))
    last = ir.Component(0, ir.At(nat(length_of(parts) - 1), ps))
    whole = ir.Apply(found.whole, ir.MakePair(last, ir.Apply(other.act, ir.MakePair(acting, others))))
    return ir.Apply(ir.Lambda(ps, whole), parts)
