"""Lengths that no tile or chunk divides, padded to lengths that they do: for groups, which guard what they read.

Rows and columns of products, also of distances, and of what is folded, are padded with copies of the last one, of which
nothing is kept, and so are long scans; products that are added up are padded with zeros, other folds with what changes
nothing, or by the places of their elements. Nothing of that is in memory: it is a view, read where a tile is copied.
The term is built here as the rules `lift_egraph.rules.remainders.padding_rules` build it; that they do is what the
phase ``padding`` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from lift_egraph.algebra.laws import associative, neutral
from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets, out_of_lets, substitute, with_parts
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import I32, Array, Scalar
from lift_egraph.workbench.changes.outside import in_maps
from lift_egraph.workbench.changes.remainders import lifted
from lift_egraph.workbench.planning.padded import DEPTHS, WASTES, Wastes, multiple_of, multiples_in, padded_length
from lift_egraph.workbench.planning.plan import columns_of, length_of, map_of, nests, variables_of
from lift_egraph.workbench.planning.products import ELEMENTS, sides_of
from lift_egraph.workbench.planning.short_rows import LANES, OWN_ROWS, ROWS, SHORT, has_lanes

LONGEST = 1 << 23  # elements of a fold whose loads are guarded: of more, that takes longer than a rest, H200
LEAST_PART = 32  # which part of a long array stands behind it at most
SHARED, LARGEST_CHUNK = 1 << 11, 1 << 18  # elements of an array that groups share, and of what its length is padded to
FEWEST = 32  # rows and columns of a product that has tiles
LEAST_WORK = 1 << 20  # multiplications of a product that is worth a guarded tile
LEAST_ROWS = 1 << 16  # elements of rows that are folded, for groups that share a row
LONG_ROW = 1 << 10  # elements of a row that groups share, however few there are
ROW_WASTES = ((512, 32), (128, 8), (64, 8), (32, 3))
LENGTH_WASTES = ((16384, 32), (4096, 32), (2048, 32), (512, 32), (256, 16), (128, 8), (64, 8))  # of columns
COLUMN_WASTES = ((32, 3),)
ROWS_OF_GROUP = ((ROWS, 8),)
LANES_OF_ROW, ROWS_OF_LANES = ((32, 1),), ((OWN_ROWS, 8),)  # of rows that a sub-group each has
MULTIPLES = multiples_in(DEPTHS, WASTES, ROW_WASTES, LENGTH_WASTES, ROWS_OF_LANES)
SMALLEST_GROUP, SHARE = 64, 32  # work-items that share a row, or a column, whose length they divide


def chunk_of_padded(n: int) -> int:
    """What divides the length that so many elements are padded to: a power of two, so that groups have chunks of it."""
    return min(max(SHARED, 1 << (n // LEAST_PART).bit_length() - 1), LARGEST_CHUNK)


@dataclass
class Padding:
    """Builds the term; `tiling` has the lengths with what they are padded to multiples of.

    `stays` says whether some long fold outside of all loops cannot be padded.
    """

    device: Device
    tiling: Tiling = field(default_factory=dict)
    stays: bool = False

    def term(self, term: ir.Expr) -> ir.Expr:
        """The term with its products of matrices, outside of all other loops, and those of batches, padded, and its
        long folds.
        """
        made = in_maps(term, self.map, self.outside)
        if self.stays:  # cut in another way, it would have no small sizes with the others
            self.tiling = {}
            made = in_maps(term, self.map)
        return made

    def outside(self, term: ir.Expr) -> ir.Expr:
        """A long fold or scan outside of all loops, of a length that groups take chunks of; or the term itself."""
        if not isinstance(term, ir.Reduce | ir.Scan | ir.ScanExclusive):
            return term
        n = length_of(term.array)
        chunk = chunk_of_padded(n) if SHARED <= n <= LONGEST else 1
        if n % chunk == 0:
            return term
        length = n + -n % chunk
        if isinstance(term, ir.Reduce) and isinstance(term.array, ir.Map) and ir.has_folds(term.array.function):
            padded = self.of_folds(term, length)
        else:
            padded = _padded_fold(term, length) if isinstance(term, ir.Reduce) else _padded_scan(term, length)
        if padded is None:
            self.stays = True
            return term
        self.tiling = merged(self.tiling, {n: (chunk,)})
        return padded

    def of_folds(self, fold: ir.Reduce, length: int) -> ir.Expr | None:
        """A fold of what rows are folded to, each by a kernel before: what changes nothing stands behind that."""
        if not _is_open(fold):
            return None
        assert isinstance(fold.initial, ir.Literal)
        lets, array = out_of_lets(in_maps(fold.array, self.map, self.outside))
        return in_lets(lets, replace(fold, array=padded_with(array, length, fold.initial)))

    def map(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, times: int = 1, repeats: bool = False) -> ir.Expr:
        """A map, by its parameter, body and array; how many there are, and whether they fold the same elements."""
        match body:
            case ir.Map(function=ir.Lambda(binder=q, body=inner), array=ys) if is_pure(ys):
                if ir.free_variables(ys).isdisjoint(ir.bound_variables(p)):
                    return self.product(p, q, inner, ys, xs, times)
                repeats = repeats or any(nest.repeats for nest in nests(map_of(p, body, xs)))
                return lifted(p, self.map(q, inner, ys, times * length_of(xs), repeats), xs)
        return self.of_rows(p, body, xs, 1 if repeats else times)

    def product(self, p: ir.Binder, q: ir.Binder, body: ir.Expr, ys: ir.Expr, xs: ir.Expr, times: int) -> ir.Expr:
        """Rows times columns, and what is made of each product."""
        as_it_is = ir.Map(ir.Lambda(p, ir.Map(ir.Lambda(q, body), ys)), xs)
        total = product_total(p, q, body)
        if total is None:
            return as_it_is
        assert isinstance(p, ir.Var)
        assert isinstance(q, ir.Var)
        lengths = length_of(xs), length_of(ys), length_of(total.array)
        if min(lengths[:2]) < FEWEST or times * prod(lengths) < LEAST_WORK:
            return as_it_is
        depth = padded_length(lengths[2], DEPTHS) if factors_of(total) else lengths[2]
        if depth == lengths[2]:
            return self.kept(p, self.kept(q, body, ys), xs)
        self.note(lengths[2], depth)
        (row, rows), (column, columns) = widened(p, xs, depth), widened(q, ys, depth)
        return self.kept(row, self.kept(column, substitute(body, {p: row, q: column}), columns), rows)

    def kept(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, wastes: Wastes = WASTES) -> ir.Expr:
        """A map over an array that is padded, if it has to be, of which the first elements are kept."""
        n = length_of(xs)
        padded = padded_length(n, wastes)
        if padded == n:
            return lifted(p, body, xs)
        return self.first(n, padded, lifted(p, body, _repeated(xs, padded)))

    def first(self, n: int, padded: int, made: ir.Expr) -> ir.Slice:
        """The first elements of what is made of an array that is padded."""
        self.note(n, padded)
        return ir.Slice(nat(0), nat(n), made)

    def of_rows(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, batches: int) -> ir.Expr:
        """Rows that are folded, and what is made of that, for each of some batches: what is folded is padded with what
        changes nothing, if that is known of each fold.
        """
        as_it_is = ir.Map(ir.Lambda(p, body), xs)
        folds = [t for t in ir.subterms(body) if isinstance(t, ir.FOLDS)]
        are_nested = any(sum(isinstance(t, ir.FOLDS) for t in ir.subterms(fold)) > 1 for fold in folds)
        if are_nested:
            return as_it_is
        columns = columns_of(xs)
        in_columns = columns is not None
        wide, lengths, has_own = dict[ir.Expr, ir.Expr](), dict[int, int](), False
        for fold in folds:
            length = length_of(fold.array) if isinstance(fold, ir.Reduce) else 0
            wastes, enough = (LENGTH_WASTES, SHARE) if in_columns else (ROW_WASTES, SMALLEST_GROUP)
            if not in_columns and has_lanes(batches * length_of(xs), length, self.device):
                wastes, has_own = (*ROW_WASTES, *LANES_OF_ROW), True
            depth = padded_length(length, wastes, enough)
            if depth != length:
                assert isinstance(fold, ir.Reduce)
                is_alone = batches * length_of(xs) == 1
                is_worth = batches * length_of(xs) * length >= LEAST_ROWS or length >= LONG_ROW or is_alone
                padded = _padded_fold(fold, depth) if is_worth else None
                if padded is None:
                    return as_it_is
                wide[fold], lengths[length] = padded, depth
        for length, depth in lengths.items():
            self.note(length, depth)
        body = with_parts(body, wide)
        if columns is not None and folds and length_of(xs) * length_of(columns.array) >= LEAST_ROWS:
            return self.of_columns(p, body, xs)
        if any(map(partial(_is_shared, p, length_of(xs)), folds)):
            return self.kept(p, body, xs, ROWS_OF_GROUP)
        if has_own:
            return self.kept(p, body, xs, ROWS_OF_LANES)
        return ir.Map(ir.Lambda(p, body), xs) if wide else as_it_is

    def of_columns(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """Of columns that are padded, if they have to be, the first ones."""
        n = length_of(xs)
        padded = padded_length(n, COLUMN_WASTES)
        if padded == n:
            return ir.Map(ir.Lambda(p, body), xs)
        return self.first(n, padded, ir.Map(ir.Lambda(p, body), _repeated_columns(xs, padded)))

    def note(self, n: int, padded: int) -> None:
        """Keep that a length is padded to a multiple of some number that leads to no other length."""
        self.tiling = merged(self.tiling, {n: (multiple_of(n, padded, MULTIPLES),)})


def _is_shared(p: ir.Binder, rows: int, fold: ir.Expr) -> bool:
    """Whether a few of a group's work-items share what is folded of a row, if there is a multiple of them of that."""
    reads_row = any(isinstance(v.type, Array) for v in variables_of(p) & ir.free_variables(fold))
    length = length_of(fold.array) if isinstance(fold, ir.Reduce) and reads_row else 0
    length = padded_length(length, ROW_WASTES, SMALLEST_GROUP) if length else 0
    return LANES * 2 <= length <= SHORT and length % LANES == 0 and rows * length >= LEAST_ROWS


def product_total(p: ir.Binder, q: ir.Binder, body: ir.Expr) -> ir.Reduce | None:
    """The fold of what is made of a row and a column, if that is all that a function reads of them."""
    total = _only_total(body)
    if total is None or not isinstance(p, ir.Var) or not isinstance(q, ir.Var) or set(sides_of(total.array)) != {p, q}:
        return None
    return total if all(sum(t == side for t in ir.subterms(body)) == 1 for side in (p, q)) else None


def _only_total(body: ir.Expr) -> ir.Reduce | None:
    """The reduction of what is made of two arrays to a scalar that is the only fold of a function."""
    match [t for t in ir.subterms(body) if isinstance(t, ir.FOLDS)]:
        case [ir.Reduce() as total] if type_of(total) in ELEMENTS:
            return total
    return None


def factors_of(fold: ir.Reduce) -> tuple[ir.Expr, ...]:
    """The arrays whose products a fold adds up from 0: two, or one whose squares it adds up; none of another fold."""
    if known_operator(fold.operator) != ("add", 0) or not isinstance(fold.initial, ir.Literal) or fold.initial.value:
        return ()
    match fold.array:
        case ir.Map(function=f, array=ir.Zip(first=first, second=second) as both) if is_pure(both):
            return (first, second) if known_operator(f) == ("mul", 0) else ()
        case ir.Map(function=ir.Lambda(binder=v, body=ir.Call(op="mul", arguments=(a, b))), array=array):
            return (array,) if a == b == v and is_pure(array) else ()
    return ()


def _padded_fold(fold: ir.Reduce, length: int) -> ir.Reduce | None:
    """A fold of more elements, of which those behind the others change nothing, if that is known."""
    if not isinstance(fold.initial, ir.Literal) or not isinstance(type_of(fold), Scalar):
        return None
    match fold.array, [padded_with(array, length) for array in factors_of(fold)]:
        case ir.Map(function=f), [first, second]:
            return replace(fold, array=ir.Map(f, ir.Zip(first, second)))
        case ir.Map(function=f), [only]:
            return replace(fold, array=ir.Map(f, only))
        case _:
            pass
    if not _is_open(fold):
        return None
    match fold.array:
        case ir.Map(function=ir.Lambda(binder=p, body=body), array=xs) if is_pure(xs):
            return replace(fold, array=_within(p, body, xs, length, fold.initial))
        case array if is_pure(array):
            return replace(fold, array=padded_with(array, length, fold.initial))
    return None


def _is_open(fold: ir.Reduce) -> bool:
    """Whether a fold of scalars may have any number of more elements, like those that it begins with."""
    of_scalars = isinstance(fold.initial, ir.Literal) and isinstance(type_of(fold), Scalar)
    return of_scalars and bool(associative(fold.operator) and neutral(fold.operator, fold.initial))


def _padded_scan(term: ir.Scan | ir.ScanExclusive, length: int) -> ir.Slice | None:
    """The first elements of a scan of more, of what is made of an array for it, too; no part of a longer array."""
    match term.array:
        case array if any(isinstance(t, ir.Slice) for t in ir.subterms(array)):
            return None
        case ir.Map(array=xs) as made if is_pure(xs):
            array = replace(made, array=_repeated(xs, length))
        case array if is_pure(array):
            array = _repeated(array, length)
        case _:
            return None
    return ir.Slice(nat(0), nat(length_of(term.array)), replace(term, array=array))


def _within(p: ir.Binder, body: ir.Expr, xs: ir.Expr, length: int, other: ir.Literal) -> ir.Map:
    """A map over an array, and another value for what stands behind its elements."""
    place, n = ir.Var("$place", I32), length_of(xs)
    inside = ir.Call("lt", (place, ir.Literal(n, I32)))
    both = ir.Zip(_repeated(xs, length), ir.Generate(nat(length), ir.Lambda(place, place)))
    return ir.Map(ir.Lambda(ir.PairBinder(p, place), ir.Call("select", (inside, body, other))), both)


def _repeated(array: ir.Expr, length: int) -> ir.Expr:
    """An array with copies of its last element behind it."""
    return ir.Pad(nat(0), nat(length - length_of(array)), ir.Boundary("clamp"), array)


def _repeated_columns(xs: ir.Expr, length: int) -> ir.Expr:
    """Columns with copies of the last one behind them, and arrays beside them."""
    match xs:
        case ir.Zip(first=first, second=second):
            return ir.Zip(_repeated_columns(first, length), _repeated_columns(second, length))
        case ir.Transpose(array=rows):
            row = ir.Var("$row", element_type(rows))
            return ir.Transpose(ir.Map(ir.Lambda(row, _repeated(row, length)), rows))
    return _repeated(xs, length)


def padded_with(array: ir.Expr, length: int, value: ir.Literal | None = None) -> ir.Expr:
    """An array with a value behind its scalars, or zeros."""
    t = type_of(array)
    assert isinstance(t, Array)
    assert isinstance(t.element, Scalar)
    value = ir.Literal(0.0 if t.element.is_float else 0, t.element) if value is None else value
    return ir.Pad(nat(0), nat(length - length_of(array)), ir.Boundary("constant", value), array)


def widened(row: ir.Var, rows: ir.Expr, length: int) -> tuple[ir.Var, ir.Expr]:
    """A parameter and its array with zeros behind the elements of each row."""
    assert isinstance(row.type, Array)
    wide = ir.Var(row.name, Array(nat(length), row.type.element))
    return wide, map_of(row, padded_with(row, length), rows)
