"""Maps over few long rows that are folded: the terms in which rows are taken in chunks.

A row's reduction is what its chunks give, by a map over rows and chunks that has enough elements for the device, and
then the reduction of these few; `chunks` beside this says how many. The terms are built here as the rules of
`lift_egraph.rules.rows` build them; that they do is what the phases ``rows_apart`` and ``long_rows`` show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from lift_egraph.algebra.actions import Action, action_of, seen_first
from lift_egraph.algebra.expressions import scalars
from lift_egraph.algebra.laws import associative, commutative, neutral
from lift_egraph.algebra.steady import steady_of
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.language import ir
from lift_egraph.language.binders import Let, fresh_name, in_lets, names_in, out_of_lets, with_part
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Scalar
from lift_egraph.workbench.changes.chunked import (
    EVEN,
    FOLDS,
    SCANS,
    chunked_by_action,
    chunked_by_totals,
    chunked_steadily,
)
from lift_egraph.workbench.changes.chunks import Rows, chunk_of
from lift_egraph.workbench.changes.outside import in_maps
from lift_egraph.workbench.changes.remainders import part
from lift_egraph.workbench.planning.long_columns import points_of_columns
from lift_egraph.workbench.planning.look_back import SCANS as ALL_SCANS, AnyScan, chunk_beside_rest, looks_back
from lift_egraph.workbench.planning.plan import columns_of, length_of

CHUNKED_SCANS = (ir.Scan, ir.ScanSeq, ir.ScanExclusiveSeq)  # that act in chunks
LEAST_COLUMNS = 1 << 19  # elements of columns that are folded, each kind by a map of its own
LEAST_SCAN = 512  # elements of a row that is scanned by a map of its own


def folds(body: ir.Expr) -> Iterator[ir.Expr]:
    """The folds whose results a function's body needs in any case, and once: outside of all loops."""
    if isinstance(body, ir.FOLDS):
        yield body
    elif isinstance(body, ir.Call | ir.MakePair | ir.Component):
        for inner in ir.parts(body):
            if isinstance(inner, ir.Expr):
                yield from folds(inner)
    elif isinstance(body, ir.Apply):
        yield from folds(body.argument)
        if isinstance(body.function, ir.Lambda):
            yield from folds(body.function.body)


@dataclass
class LongRows:
    """Builds the terms; `tiling` has the sizes of the chunks, `numbers` are for names."""

    rows: Rows
    tiling: Tiling = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def apart(self, term: ir.Expr) -> ir.Expr:
        """The term with a map for each long reduction of few rows."""
        return in_maps(term, self._apart)

    def in_chunks(self, term: ir.Expr) -> ir.Expr:
        """The term with its long scans, and the long reductions and scans of few rows, in chunks: one reduction of each
        map.
        """
        return in_maps(term, self._in_chunks, self.outside)

    def outside(self, term: ir.Expr) -> ir.Expr:
        """A scan outside of all loops in chunks, if it acts like a monoid and is long, or a fold by one matrix, or by
        what is known to act alone; else the term itself.

        For other folds there are plans whose vectors read what lies side by side.
        """
        if looks_back(term, self.rows.device):
            return term
        chunk = chunk_beside_rest(term, self.rows.device)
        if chunk and isinstance(term, ALL_SCANS) and is_pure(_mapped(term.array)):  # it is read several times
            return self._with_rest(term, chunk)
        if (made := self.steadily(term, 1)) is not None:
            return in_lets(*made)
        has_plans = self.rows.device.has_groups and isinstance(term, ir.ScanExclusiveSeq)  # once it acts everywhere
        if isinstance(term, CHUNKED_SCANS) and isinstance(term.operator, ir.Lambda) and not has_plans:
            return self.scan(term, term.operator, 1)
        return term

    def steadily(self, term: ir.Expr, rows: int) -> tuple[tuple[Let, ...], ir.Expr] | None:
        """A long fold or scan of so many rows as lets and what is made of them, if it multiplies by one matrix; so a
        scan by an associative operator, in rows, and a fold of which only what acts is known. What remains stands
        first.
        """
        if not isinstance(term, FOLDS + SCANS) or not is_pure(_mapped(term.array)):
            return None
        n = length_of(term.array)
        found = steady_of(term.operator)
        takes_long = found is not None and found.takes_long
        has_groups = self.rows.device.has_groups
        acting = action_of(term.operator) if isinstance(term, FOLDS) else None
        is_shared = isinstance(acting, Action) and associative(acting.operator)
        if has_groups and rows == 1 and is_shared:
            return None  # by other plans
        has_lanes = found is not None and not takes_long and not has_groups
        aside = self.rows.aside(rows, n) if isinstance(term, FOLDS) and has_lanes else None
        chunks = aside or self.rows.chunks(rows, n, in_lanes=True)
        if not chunks:
            return None
        reduces = isinstance(term, ir.Reduce | ir.Scan) and associative(term.operator)
        if reduces and (rows == 1 or not isinstance(term, ir.Scan)):
            return None
        chunk = chunk_of(n, chunks, in_lanes=not aside)
        rest = n - chunk * chunks
        if rest >= chunk:
            return None
        widths = self.rows.device.widths if has_lanes else ()
        lanes = next((w for w in widths if chunk % w == 0 and chunk >= EVEN * w), None)
        first = part(0, rest, term.array) if rest else None
        start = replace(_fold_of(term), array=first) if first is not None else term.initial
        array = part(rest, n - rest, term.array) if rest else term.array
        number = next(self.numbers)
        if isinstance(term, ir.Scan) and reduces:
            made = chunked_by_totals(term, start, array, chunk, number)
        else:
            made = chunked_steadily(term, start, array, chunk, number, lanes)
        if made is None and isinstance(term, FOLDS) and not is_shared:
            made = chunked_by_action(term, start, array, chunk, number)
        if made is None:
            return None
        self.offer(chunk, n, n - rest)
        if lanes:
            self.offer(lanes, chunk)
        for factors in made.powers:
            self.offer(factors, chunk)
            chunk //= factors
        is_scan = isinstance(term, SCANS) and first is not None
        return made.lets, ir.Concat(replace(term, array=first), made.result) if is_scan else made.result

    def named(self, body: ir.Expr, rows: int) -> tuple[tuple[Let, ...], ir.Expr]:
        """The body of a function of so many rows as lets, of its long folds and scans in chunks, and what is left."""
        if (made := self.steadily(body, rows)) is not None:
            return made
        match body:
            case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c):
                (before, argument), (inside, left) = self.named(c, rows), self.named(b, rows)
                if before or inside:
                    return (*before, (q, argument), *inside), left
            case ir.MakePair(first=a, second=b):
                (before, first), (then, second) = self.named(a, rows), self.named(b, rows)
                return (*before, *then), ir.MakePair(first, second) if before or then else body
            case ir.Call(op=op, arguments=arguments) if len(arguments) <= 2:  # as `let_outwards` has it
                found = [self.named(a, rows) for a in arguments]
                lets = tuple(let for own, _ in found for let in own)
                return lets, ir.Call(op, tuple(a for _, a in found)) if lets else body
        return (), body

    def scans(self, body: ir.Expr, rows: int) -> ir.Expr:
        """The body of a function of so many rows with its long scans in chunks, where they are."""
        if isinstance(body, CHUNKED_SCANS) and isinstance(body.operator, ir.Lambda):
            return self.scan(body, body.operator, rows)
        if isinstance(body, ir.Apply) and isinstance(body.function, ir.Lambda):
            inside = ir.Lambda(body.function.binder, self.scans(body.function.body, rows))
            return ir.Apply(inside, self.scans(body.argument, rows))
        if is_pure(body):
            return body
        return ir.map_parts(body, lambda part: self.scans(part, rows) if isinstance(part, ir.Expr) else part)

    def scan(self, term: ir.Scan | ir.ScanSeq | ir.ScanExclusiveSeq, f: ir.Lambda, rows: int) -> ir.Expr:
        """A scan in chunks, which start from what the chunks before them give; what remains stands first."""
        z, n = term.initial, length_of(term.array)
        chunks, found = self.rows.chunks(rows, n, in_lanes=True), action_of(f)
        by_totals = isinstance(term, ir.Scan) and associative(f)
        if by_totals or not isinstance(found, Action) or not chunks or not is_pure(_mapped(term.array)):
            return term
        if found.against(n, seen_first(term)):
            return term
        chunk = n // chunks
        rest = n % chunk
        if rest >= chunks:
            return term
        self.offer(chunk, n, n - rest)
        taken = names_in(term)  # the scan may read something that has such a name

        def in_chunks(start: ir.Expr, array: ir.Expr) -> ir.Expr:
            split = ir.Split(nat(chunk), array)
            types = ("c", element_type(split)), ("s", type_of(z)), ("p", type_of(found.one))
            c, s, q = (ir.Var(fresh_name(name, taken), t) for name, t in types)
            totals = ir.Map(ir.Lambda(c, ir.Reduce(found.operator, found.one, ir.Map(found.matrix, c))), split)
            starts = ir.Map(
                ir.Lambda(q, ir.Apply(found.act, ir.MakePair(q, start))),
                ir.ScanExclusive(found.operator, found.one, totals),
            )
            each = ir.Lambda(ir.PairBinder(s, c), replace(term, initial=s, array=c))
            return ir.Join(ir.Map(each, ir.Zip(starts, split)))

        if not rest:
            return in_chunks(z, term.array)
        first = part(0, rest, term.array)
        reduced = (ir.Reduce if isinstance(term, ir.Scan) else ir.ReduceSeq)(f, z, first)
        return ir.Concat(replace(term, array=first), in_chunks(reduced, part(rest, n - rest, term.array)))

    def _with_rest(self, term: AnyScan, chunk: int) -> ir.Expr:
        """A scan whose first elements are apart, so that chunks divide the others."""
        n = length_of(term.array)
        rest = n % chunk
        self.offer(chunk, n)
        first = part(0, rest, term.array)
        fold = ir.Reduce if isinstance(term, ir.SCANS) else ir.ReduceSeq
        others = replace(term, initial=fold(term.operator, term.initial, first), array=part(rest, n - rest, term.array))
        return ir.Concat(replace(term, array=first), others)

    def offer(self, chunk: int, *lengths: int) -> None:
        """Let arrays of these lengths be cut into chunks of this one."""
        for n in lengths:
            self.tiling = merged(self.tiling, {n: (chunk,)})

    def _apart(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        several, body = self._count_apart(body, xs), self._with_scan_first(body, xs)
        match body:
            case ir.MakePair(first=a, second=b) if several:
                return ir.Zip(self._apart(p, a, xs), self._apart(p, b, xs))
            case ir.Call(op=op, arguments=(a, b)) if several > 1:
                x, y = ir.Var("$x", type_of(a)), ir.Var("$y", type_of(b))
                both = ir.Lambda(ir.PairBinder(x, y), ir.Call(op, (x, y)))
                return ir.Map(both, ir.Zip(self._apart(p, a, xs), self._apart(p, b, xs)))
            case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c) if self._is_shared(c, xs) or (
                several and (several > 1 or scalars(type_of(body)) is None or self._count_apart(b, xs))
            ):
                of_rows = self._apart(p, c, xs)
                s = ir.Var(f"$rows{next(self.numbers)}", type_of(of_rows))
                return ir.Apply(ir.Lambda(s, self._apart(ir.PairBinder(q, p), b, ir.Zip(s, xs))), of_rows)
        return _by_rows(p, body, xs)

    def _count_apart(self, body: ir.Expr, xs: ir.Expr) -> int:
        """How many folds of a function's body are for maps of their own: those that are computed in chunks, and those
        of columns, which neighbouring work-items read.
        """
        rows = length_of(xs)
        if self.rows.device.has_groups and columns_of(xs) is not None:
            return sum(isinstance(t, ir.Reduce) and rows * length_of(t.array) >= LEAST_COLUMNS for t in folds(body))
        return sum(self.chunks_of(fold, rows) is not None for fold in folds(body))

    def _with_scan_first(self, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """A function's body with a name, before all others, for a scan that groups share and a map reads."""
        lets, left = out_of_lets(body)
        if not isinstance(left, ir.Map) or not self._is_shared(left.array, xs):
            return body
        if not ir.free_variables(left.array).isdisjoint(v for q, _ in lets for v in ir.bound_variables(q)):
            return body
        s = ir.Var(f"$scanned{next(self.numbers)}", type_of(left.array))
        return ir.Apply(ir.Lambda(s, in_lets(lets, ir.Map(left.function, s))), left.array)

    def _is_shared(self, scan: ir.Expr, xs: ir.Expr) -> bool:
        """Whether what is computed of each row is a scan of it that the work-items of a group share."""
        if not self.rows.device.has_groups or not isinstance(scan, ir.Scan | ir.ScanExclusive):
            return False
        n = length_of(scan.array)
        return is_pure(_mapped(scan.array)) and n >= LEAST_SCAN and n * length_of(xs) >= LEAST_COLUMNS

    def _in_chunks(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, around: int = 1) -> ir.Expr:
        rows = around * length_of(xs)
        match body:
            case ir.Map(function=ir.Lambda(binder=q, body=inner), array=ys) if is_pure(ys) and not is_pure(body):
                return _outwards(p, self._in_chunks(q, inner, ys, rows), xs)
        lets, left = self.named(body, rows)
        if lets:
            return _maps_of_lets(p, lets, left, xs)
        body = self.scans(body, rows)
        if around == 1 and self._are_long_columns(body, xs):
            return ir.Map(ir.Lambda(p, body), xs)
        found = [(fold, chunks) for fold in folds(body) if (chunks := self.chunks_of(fold, rows))]
        if len(found) != 1:
            return ir.Map(ir.Lambda(p, body), xs)
        ((fold, chunks),) = found
        assert isinstance(fold, ir.Reduce)
        return self.chunked(p, body, xs, fold, chunks)

    def _are_long_columns(self, body: ir.Expr, xs: ir.Expr) -> bool:
        """Whether there are plans for what is made of one fold of each column, all of a chunk in a group."""
        found = [fold for fold in folds(body) if isinstance(fold, ir.Reduce)]
        if not self.rows.device.has_groups or columns_of(xs) is None or len(found) != 1:
            return False
        return bool(points_of_columns(length_of(xs), length_of(found[0].array), self.rows.device))

    def chunks_of(self, fold: ir.Expr, rows: int) -> int | None:
        """The chunks in which a fold of each row is computed, if it is a reduction that can be."""
        if not isinstance(fold, ir.Reduce) or not rows:
            return None
        chunks = self.rows.chunks(rows, length_of(fold.array), _in_lanes(fold))
        may_be_taken_apart = associative(fold.operator) and neutral(fold.operator, fold.initial)
        return chunks if is_pure(_mapped(fold.array)) and may_be_taken_apart else None

    def chunked(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, fold: ir.Reduce, chunks: int) -> ir.Expr:
        """A map of a function with one reduction, in so many chunks and a rest."""
        op, z, array = fold.operator, fold.initial, fold.array
        x = ir.Var("$total", type_of(z))
        if with_part(body, fold, x) is body:  # in a let inside of the body, it may need what that binds
            return ir.Map(ir.Lambda(p, body), xs)
        n = length_of(array)
        chunk = self.rows.chunk(n, chunks, _in_lanes(fold))
        whole, rest = chunk * chunks, n - chunk * chunks
        self.offer(chunk, n, whole)
        g, elements = (array.function, array.array) if isinstance(array, ir.Map) else (None, array)
        first = part(0, whole, elements) if rest else elements
        c = ir.Var("$chunk", element_type(ir.Split(nat(chunk), first)))
        own = ir.Reduce(op, z, ir.Map(g, c) if g else c)
        partial = ir.Map(ir.Lambda(p, ir.Map(ir.Lambda(c, own), ir.Split(nat(chunk), first))), xs)
        s = ir.Var("$partial", element_type(partial))
        if body is fold and not rest:
            return ir.Map(ir.Lambda(s, ir.Reduce(op, z, s)), partial)
        total = ir.Reduce(op, x, part(whole, rest, array)) if rest else x
        let = ir.Apply(ir.Lambda(x, with_part(body, fold, total)), ir.Reduce(op, z, s))
        return ir.Map(ir.Lambda(ir.PairBinder(s, p), let), ir.Zip(partial, xs))


def _in_lanes(fold: ir.Reduce) -> bool:
    """Whether the lanes of vectors have chunks: where neighbouring elements are not folded side by side."""
    return not isinstance(type_of(fold.initial), Scalar) or not commutative(fold.operator)


def _maps_of_lets(p: ir.Binder, lets: Sequence[Let], left: ir.Expr, xs: ir.Expr) -> ir.Expr:
    """A map of a function that binds lets as a let for each, of a map, and a map of what is left."""
    if not lets:
        return ir.Map(ir.Lambda(p, left), xs)
    (q, value), *others = lets
    of_rows = ir.Map(ir.Lambda(p, value), xs)
    s = ir.Var(f"$parts{len(lets)}", type_of(of_rows))
    return ir.Apply(ir.Lambda(s, _maps_of_lets(ir.PairBinder(q, p), others, left, ir.Zip(s, xs))), of_rows)


def _fold_of(term: ir.Expr) -> ir.Reduce | ir.ReduceSeq:
    """The fold that a scan makes of all elements; a fold as it is."""
    assert isinstance(term, FOLDS + SCANS)
    of_operator = ir.Reduce if isinstance(term, ir.Reduce | ir.Scan) else ir.ReduceSeq
    return of_operator(term.operator, term.initial, term.array)


def _outwards(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
    """A map of a function whose body reads the results of a map, with these computed by a map of their own."""
    match body:
        case ir.Map(function=f, array=ir.Zip(first=ir.Map() as partial, second=ys)):
            of_rows = ir.Map(ir.Lambda(p, partial), xs)
            s = ir.Var("$partials", element_type(of_rows))
            each = ir.Map(f, ir.Zip(s, ys))
            return ir.Map(ir.Lambda(ir.PairBinder(s, p), each), ir.Zip(of_rows, xs))
        case ir.Map(function=f, array=ir.Map() as partial):
            of_rows = ir.Map(ir.Lambda(p, partial), xs)
            s = ir.Var("$partials", element_type(of_rows))
            return ir.Map(ir.Lambda(s, ir.Map(f, s)), of_rows)
    return ir.Map(ir.Lambda(p, body), xs)


def _by_rows(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
    """A map over columns that has a map over each of them, beside names of it, as one over rows; or as it is."""
    named, binder, array = list[tuple[ir.Binder, ir.Expr]](), p, xs
    while isinstance(binder, ir.PairBinder) and isinstance(array, ir.Zip):
        named.append((binder.first, array.first))
        binder, array = binder.second, array.second
    match body, array:
        case ir.Map(function=ir.Lambda(binder=ir.Var() as v, body=b), array=ys), ir.Transpose(array=rows) if (
            named and ys == binder and binder not in ir.free_variables(b)
        ):
            (q, arrays), *others = named
            for other, beside in others:
                q, arrays = ir.PairBinder(q, other), ir.Zip(arrays, beside)
            row = ir.Var("$row", element_type(rows))
            each = ir.Map(ir.Lambda(ir.PairBinder(v, q), b), ir.Zip(row, arrays))
            return ir.Transpose(ir.Map(ir.Lambda(row, each), rows))
    return ir.Map(ir.Lambda(p, body), xs)


def _mapped(array: ir.Expr) -> ir.Expr:
    """What a fold reads, without what it computes of each element on the fly."""
    return array.array if isinstance(array, ir.Map) else array
