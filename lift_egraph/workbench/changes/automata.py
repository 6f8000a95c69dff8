"""Which folds and scans find their next state in a table of words: automata of a few states over few elements.

The terms are built here as the rules of `lift_egraph.rules.automata` build them; that they do is what the phases
``long_rows`` and ``algebra`` show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.automata import composes_words
from lift_egraph.algebra.cascades import Cascade, tabulated_parts
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.expressions import opened, scalars
from lift_egraph.algebra.kept import keeping_of
from lift_egraph.algebra.laws import in_parts
from lift_egraph.algebra.steady import steady_of
from lift_egraph.algebra.tabulated import Tabulated, tabulated_of
from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, in_lets, names_in, with_parts
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import DataType
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.fold_steps import FoldStep, one_more_each
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.changes.outside import all_outside
from lift_egraph.workbench.changes.remainders import part
from lift_egraph.workbench.planning.plan import LONG, length_of

FEW = 3  # numbers that act, as a clamp has: what they do takes no longer than to look for a word
LEAST = 3  # states of the first components of an accumulator
LEFT_TO_RIGHT = (ir.Reduce, ir.ReduceSeq)


def table_steps(term: ir.Expr, rows: Rows, least: int = LONG) -> Iterator[FoldStep]:
    """The term with those long folds and scans outside of all loops by tables that no simpler law makes parallel, one
    more at a time.

    Parameters
    ----------
    least
        The elements of an array that is long enough.
    """
    return one_more_each(term, lambda now: _step(now, rows, least))


def _step(term: ir.Expr, rows: Rows, least: int) -> FoldStep | None:
    if rows.device.has_groups:
        return None
    for fold in all_outside(term):
        if not isinstance(fold, (*LEFT_TO_RIGHT, ir.ScanSeq)) or not isinstance(fold.operator, ir.Lambda):
            continue
        if not is_pure(fold.array) or length_of(fold.array) < least:
            continue
        chunks = _Chunks.of(fold, rows)
        made = chunks.made() if chunks else None
        if chunks and made is not None:
            return FoldStep("long_rows", chunks.tiling, with_parts(term, {fold: made}))
    return None


def _is_simple(fold: ir.Reduce | ir.ReduceSeq | ir.ScanSeq) -> bool:
    """Whether a fold is a reduction as it is, or what acts are a few numbers, but no words, nor rests of divisions."""
    f, z = fold.operator, fold.initial
    if isinstance(fold, ir.Reduce) and in_parts(ir.Reduce, f, z):
        return True
    if combining_of(f) or steady_of(f):
        return True
    bounded = keeping_of(f, z)
    found = action_of(bounded or f)
    if not isinstance(found, Action) or (bounded and found.is_matrix):
        return False
    entries, op = scalars(type_of(found.one)), opened(found.operator)
    return entries is not None and len(entries) <= FEW and not (op and composes_words(op))


@dataclass(frozen=True)
class _Chunks:
    """A long fold in chunks: what becomes of each state in each of them, and then of the one state that there is."""

    fold: ir.Reduce | ir.ReduceSeq | ir.ScanSeq
    chunk: int
    tiling: Tiling
    array: ir.Expr  # what chunks divide
    rest: ir.Expr | None

    @staticmethod
    def of(fold: ir.Reduce | ir.ReduceSeq | ir.ScanSeq, rows: Rows) -> _Chunks | None:
        """The chunks of a fold; None if it has too few elements."""
        xs, n = fold.array, length_of(fold.array)
        chunks = rows.chunks(1, n, in_lanes=True)
        if not chunks:
            return None
        chunk, plan = n // chunks, LongRows(rows)
        plan.offer(chunk, n)
        whole = n // chunk * chunk
        if whole == n:
            return _Chunks(fold, chunk, plan.tiling, xs, None)
        return _Chunks(fold, chunk, plan.tiling, part(0, whole, xs), part(whole, n - whole, xs))

    def made(self) -> ir.Expr | None:
        """The fold by a table of words; None if it has none."""
        f, z = self.fold.operator, self.fold.initial
        found = tabulated_of(f, z)
        if found is not None and _is_simple(self.fold):
            return None
        if found is not None:
            return self._scanned(found) if isinstance(self.fold, ir.ScanSeq) else self._folded(found)
        parts = tabulated_parts(f, z) if isinstance(self.fold, ir.ReduceSeq) else None
        return self._beside(*parts) if parts and _has_more(parts[1]) else None

    def _folded(self, found: Tabulated) -> ir.Expr:
        ws, ts, totals = self._totals(found)
        last: ir.Expr = ir.ReduceSeq(found.found, found.start, ts)
        if self.rest is not None:
            last = ir.ReduceSeq(self._by_name(found.step, ws, self._place(found)), last, self.rest)
        return in_lets(((ws, found.words), (ts, totals)), ir.Apply(found.value, last))

    def _scanned(self, found: Tabulated) -> ir.Expr:
        ws, ts, totals = self._totals(found)
        p, c = self._place(found), self._chunk()
        step = self._by_name(found.step, ws, p)
        starts = ir.ScanExclusiveSeq(found.found, found.start, ts)
        ss = self._var("$starts", type_of(starts))
        each = ir.Lambda(ir.PairBinder(p, c), ir.Map(found.value, ir.ScanSeq(step, p, c)))
        made: ir.Expr = ir.Join(ir.Map(each, ir.Zip(ss, self._split())))
        if self.rest is not None:
            last = ir.ReduceSeq(found.found, found.start, ts)
            made = ir.Concat(made, ir.Map(found.value, ir.ScanSeq(step, last, self.rest)))
        return in_lets(((ws, found.words), (ts, totals), (ss, starts)), made)

    def _beside(self, cascade: Cascade, found: Tabulated, acting: Action) -> ir.Expr:
        """The first components by the table, and what acts on the others beside them."""
        ws, ts, totals = self._totals(found)
        p, c, x = self._place(found), self._chunk(), self._var("$x", element_type(self.array))
        q, z = self._var("$acc", type_of(acting.one)), self.fold.initial
        acted = ir.Apply(acting.matrix, ir.MakePair(ir.Apply(found.value, p), x))
        stepped = ir.MakePair(
            ir.Apply(found.step, ir.MakePair(ws, ir.MakePair(p, x))),
            ir.Apply(acting.operator, ir.MakePair(q, acted)),
        )
        both = ir.Lambda(ir.PairBinder(ir.PairBinder(p, q), x), stepped)
        each = ir.Lambda(ir.PairBinder(p, c), ir.ReduceSeq(both, ir.MakePair(p, acting.one), c))
        parts = ir.Map(each, ir.Zip(ir.ScanExclusiveSeq(found.found, found.start, ts), self._split()))
        qs = self._var("$parts", type_of(parts))
        product = ir.Reduce(acting.operator, acting.one, ir.Map(ir.Lambda(ir.PairBinder(p, q), q), qs))
        last = ir.Apply(found.value, ir.Component(0, ir.At(nat(length_of(parts) - 1), qs)))
        others = ir.Apply(acting.act, ir.MakePair(product, ir.Apply(cascade.others, z)))
        whole = ir.Apply(cascade.whole, ir.MakePair(last, others))
        made = in_lets(((ws, found.words), (ts, totals), (qs, parts)), whole)
        return made if self.rest is None else ir.ReduceSeq(self.fold.operator, made, self.rest)

    def _totals(self, found: Tabulated) -> tuple[ir.Var, ir.Var, ir.Expr]:
        """Names for the words and for what chunks make of all states, and that."""
        ws, ps = self._var("$words", type_of(found.words)), self._var("$places", type_of(found.places))
        c = self._chunk()
        folded = ir.ReduceSeq(self._by_name(found.steps, ws, ps), found.places, c)
        totals = ir.Map(ir.Lambda(c, folded), self._split())
        return ws, self._var("$totals", type_of(totals)), totals

    def _by_name(self, step: ir.Lambda, words: ir.Var, own: ir.Var) -> ir.Lambda:
        x = self._var("$x", element_type(self.array))
        return ir.Lambda(ir.PairBinder(own, x), ir.Apply(step, ir.MakePair(words, ir.MakePair(own, x))))

    def _split(self) -> ir.Expr:
        return ir.Split(nat(self.chunk), self.array)

    def _chunk(self) -> ir.Var:
        return self._var("$chunk", element_type(self._split()))

    def _place(self, found: Tabulated) -> ir.Var:
        return self._var("$place", type_of(found.start))

    def _var(self, name: str, t: DataType) -> ir.Var:
        taken = names_in(self.fold)
        return ir.Var(fresh_name(name, taken) if name in taken else name, t)


def _has_more(found: Tabulated) -> bool:
    """Whether it has more states than a bool."""
    entries = scalars(type_of(found.places))
    return entries is not None and len(entries) >= LEAST
