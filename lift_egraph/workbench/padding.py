"""Products of matrices whose lengths no tile divides, padded to lengths that tiles do: for groups, which guard a tile.

Rows and columns are padded with copies of the last one, of which nothing is kept; what is added up is padded with
zeros. Nothing of that is in memory: it is a view, read where a tile is copied. The term is built here as the rules
`lift_egraph.rules.remainders.padding_rules` build it; that they do is what the phase ``padding`` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array, Scalar
from lift_egraph.workbench.long_rows import in_maps
from lift_egraph.workbench.plan import length_of
from lift_egraph.workbench.products import ELEMENTS
from lift_egraph.workbench.remainders import lifted

FEWEST = 32  # rows and columns of a product that has tiles
LEAST_WORK = 1 << 20  # multiplications of a product that is worth a guarded tile
LEAST_ROWS = 1 << 16  # and of rows with one array, for groups that share a row
DEPTH = 16  # what is added up in a tile is a multiple of it
DEPTHS = ((DEPTH, 3),)
WASTES = ((128, 16), (64, 16), (64, 8), (32, 3))  # multiples of a length, and which part of it they may add at most
ROW_WASTES = ((128, 8), (32, 8))


def padded_length(n: int, wastes: tuple[tuple[int, int], ...] = WASTES) -> int:
    """The length that an array of a length is padded to: itself, if the least multiple divides it."""
    if n % min(multiple for multiple, _ in wastes) == 0:
        return n
    return next((n + -n % k for k, part in wastes if (-n % k) * part <= n), n)


@dataclass
class Padding:
    """Builds the term; `tiling` has the lengths with what they are padded to multiples of."""

    tiling: Tiling = field(default_factory=dict)

    def term(self, term: ir.Expr) -> ir.Expr:
        """The term with its products of matrices, outside of all other loops, and those of batches, padded."""
        return in_maps(term, self.map)

    def map(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, times: int = 1) -> ir.Expr:
        """A map, by its parameter, body and array; how many there are."""
        match body:
            case ir.Map(function=ir.Lambda(binder=q, body=inner), array=ys) if is_pure(ys):
                if ir.free_variables(ys).isdisjoint(ir.bound_variables(p)):
                    return self.product(p, q, inner, ys, xs, times)
                return lifted(p, self.map(q, inner, ys, times * length_of(xs)), xs)
        return self.of_rows(p, body, xs)

    def product(self, p: ir.Binder, q: ir.Binder, body: ir.Expr, ys: ir.Expr, xs: ir.Expr, times: int) -> ir.Expr:
        """Rows times columns, and what is made of each product."""
        as_it_is = ir.Map(ir.Lambda(p, ir.Map(ir.Lambda(q, body), ys)), xs)
        total = _only_total(body)
        if total is None or not isinstance(p, ir.Var) or not isinstance(q, ir.Var) or set(_sides(total)) != {p, q}:
            return as_it_is
        lengths = length_of(xs), length_of(ys), length_of(total.array)
        is_read_once = all(sum(t == side for t in ir.subterms(body)) == 1 for side in (p, q))
        if not is_read_once or min(lengths[:2]) < FEWEST or times * prod(lengths) < LEAST_WORK:
            return as_it_is
        depth = padded_length(lengths[2], DEPTHS)
        if depth == lengths[2]:
            return self.kept(p, self.kept(q, body, ys), xs)
        self.note(lengths[2], depth)
        row, column = _wider(p, depth), _wider(q, depth)
        columns = self.kept(column, substitute(body, {p: row, q: column}), ir.Map(ir.Lambda(q, _padded(q, depth)), ys))
        return self.kept(row, columns, ir.Map(ir.Lambda(p, _padded(p, depth)), xs))

    def kept(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """A map over an array that is padded, if it has to be, of which the first elements are kept."""
        n = length_of(xs)
        padded = padded_length(n)
        if padded == n:
            return lifted(p, body, xs)
        self.note(n, padded)
        view = ir.Pad(nat(0), nat(padded - n), ir.Boundary("clamp"), xs)
        return ir.Slice(nat(0), nat(n), lifted(p, body, view))

    def of_rows(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """Rows times one array, and what is made of each product: what is added up is padded."""
        has_maps = sum(isinstance(t, ir.Map) for t in ir.subterms(body)) > 1
        total, n = None if has_maps else _only_total(body), length_of(xs)
        length = 0 if total is None else length_of(total.array)
        depth = padded_length(length, ROW_WASTES)
        if total is not None and depth != length and n * length >= LEAST_ROWS and not isinstance(xs, ir.Transpose):
            self.note(length, depth)
            first, second = (_padded(side, depth) for side in _sides(total))
            assert isinstance(total.array, ir.Map)
            array = ir.Map(total.array.function, ir.Zip(first, second))
            wide = ir.Reduce(total.operator, total.initial, array)
            body = _with_total(body, total, wide)
        return ir.Map(ir.Lambda(p, body), xs)

    def note(self, n: int, padded: int) -> None:
        """Keep that a length is padded to a multiple of some number that leads to no other length."""
        k = next(k for k in (DEPTH, 32, 64, 128) if n + -n % k == padded and k < n)
        self.tiling[n] = tuple(dict.fromkeys((*self.tiling.get(n, ()), k)))


def _only_total(body: ir.Expr) -> ir.Reduce | None:
    """The sum of products of scalars that is the only fold of a function, and begins with 0."""
    match [t for t in ir.subterms(body) if isinstance(t, ir.FOLDS)]:
        case [ir.Reduce(ir.Lambda() as plus, ir.Literal(value=0), ir.Map(ir.Lambda() as times, ir.Zip())) as total]:
            is_product = _calls(plus) == "add" and _calls(times) == "mul" and type_of(total) in ELEMENTS
            return total if is_product and all(map(is_pure, _sides(total))) else None
    return None


def _calls(f: ir.Lambda) -> str | None:
    """The operation that a function of two is."""
    match f:
        case ir.Lambda(binder=ir.PairBinder(first=ir.Var() as a, second=ir.Var() as b), body=ir.Call(op=op) as call):
            return op if call.arguments == (a, b) else None
    return None


def _sides(total: ir.Reduce) -> tuple[ir.Expr, ir.Expr]:
    assert isinstance(total.array, ir.Map)
    assert isinstance(total.array.array, ir.Zip)
    return total.array.array.first, total.array.array.second


def _with_total(body: ir.Expr, total: ir.Expr, other: ir.Expr) -> ir.Expr:
    """A body with another term for its only fold."""
    if body is total:
        return other

    def inside(part: ir.Part) -> ir.Part:
        if isinstance(part, ir.Lambda):
            return ir.Lambda(part.binder, _with_total(part.body, total, other))
        return _with_total(part, total, other) if isinstance(part, ir.Expr) else part

    return ir.map_parts(body, inside)


def _padded(array: ir.Expr, length: int) -> ir.Expr:
    """An array with zeros behind its scalars."""
    t = type_of(array)
    assert isinstance(t, Array)
    assert isinstance(t.element, Scalar)
    zero = ir.Boundary("constant", ir.Literal(0.0 if t.element.is_float else 0, t.element))
    return ir.Pad(nat(0), nat(length - length_of(array)), zero, array)


def _wider(row: ir.Var, length: int) -> ir.Var:
    assert isinstance(row.type, Array)
    return ir.Var(row.name, Array(nat(length), row.type.element))

