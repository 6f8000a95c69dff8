"""Products of matrices with few results, whose sums are long: slices of them are products of a batch.

With a group for each tile of the results, most of a GPU would have nothing to do. So the sums are cut into slices, the
products of a slice's rows and columns are those of a batch, for which there are plans, and what they are is added up by
a second kernel. The terms are built here as the rules build them; that they do is what the phases ``padding``,
``rows_at_a_time`` and ``slices`` show.

Source: "split K" of CUTLASS and cuBLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lift_egraph.algebra.laws import associative, neutral
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute, with_part, with_parts
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.workbench.changes.outside import in_maps
from lift_egraph.workbench.changes.padding import LENGTH_WASTES, factors_of, product_total, widened
from lift_egraph.workbench.changes.remainders import rows_turned
from lift_egraph.workbench.planning.padded import DEPTH
from lift_egraph.workbench.planning.plan import length_of, map_of

TILE = 64  # rows and columns of a group's results, about
GROUPS = 2  # of each compute unit, about
LEAST_SLICE = 256  # elements of a slice
FEWEST, MOST = 8, 256  # slices: fewer are those of a group's work-items
FEW_TILES = 8  # compute units for each tile, at least: else groups with smaller tiles have enough to do


def slices_of(rows: int, columns: int, length: int, compute_units: int) -> int:
    """Into how many slices sums of a length are cut, a power of two; one where there are tiles enough."""
    tiles = -(-rows // TILE) * -(-columns // TILE)
    wanted = min(GROUPS * compute_units // tiles, length // LEAST_SLICE, MOST)
    slices = 1 << max(wanted.bit_length() - 1, 0)
    return slices if slices >= FEWEST and FEW_TILES * tiles <= compute_units else 1


def sliced_products(term: ir.Expr, compute_units: int) -> Iterator[tuple[str, Tiling, ir.Expr]]:
    """The phases that cut the sums of products outside of all loops, with the lengths of parts and the term that each
    leads to, for a device with so many compute units; none if there is nothing to cut.
    """
    slices: dict[_Product, int] = {}

    def look(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        product = _product(p, body, xs)
        if product is not None and (count := product.slices(compute_units)) > 1:
            slices[product] = count
        return map_of(p, body, xs)

    in_maps(term, look)
    if not slices:
        return
    divisors = {product: _divisor(product.length, count * DEPTH) for product, count in slices.items()}
    padded = {product: product.padded(k) for product, k in divisors.items()}
    lengths = {product: made.length // slices[product] for product, made in padded.items()}
    multiples = [{product.length: (k,)} for product, k in divisors.items() if padded[product] != product]
    if multiples:
        yield "padding", merged(*multiples), with_parts(term, {of.term: made.term for of, made in padded.items()})
    parts = merged(*({padded[product].length: (length,)} for product, length in lengths.items()))
    yield "rows_at_a_time", parts, with_parts(term, {of.term: padded[of].in_rows(n) for of, n in lengths.items()})
    yield "slices", {}, with_parts(term, {of.term: padded[of].in_slices(n) for of, n in lengths.items()})


def _divisor(length: int, least: int) -> int:
    """What divides the length that sums are padded to, a multiple of the `least`: as sums of columns are, if it can be,
    so that all that has columns of a length has one other.
    """
    wastes = ((k, part) for k, part in LENGTH_WASTES if k % least == 0)
    return next((k for k, part in wastes if k < length and (-length % k) * part <= length), least)


def _product(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> _Product | None:
    """The product of matrices that a map is, if what it adds up can be cut."""
    match p, body:
        case ir.Var(), ir.Map(function=ir.Lambda(binder=ir.Var() as q, body=inner), array=ys) if is_pure(ys):
            total = None if p in ir.free_variables(ys) else product_total(p, q, inner)
            if total is not None and associative(total.operator) and neutral(total.operator, total.initial):
                return _Product(p, q, inner, total, xs, ys)
    return None


@dataclass(frozen=True)
class _Product:
    """``map (λp. map (λq. body) columns) rows``, whose body has a `total` of what is made of p and q."""

    p: ir.Var
    q: ir.Var
    body: ir.Expr
    total: ir.Reduce
    rows: ir.Expr
    columns: ir.Expr

    @property
    def term(self) -> ir.Expr:
        return map_of(self.p, map_of(self.q, self.body, self.columns), self.rows)

    @property
    def length(self) -> int:
        """Of a row, and of a column."""
        return length_of(self.both)

    def slices(self, compute_units: int) -> int:
        """Into how many slices the sums are cut, if zeros may stand behind rows and columns where they have to."""
        slices = slices_of(length_of(self.rows), length_of(self.columns), self.length, compute_units)
        return slices if self.length % (slices * DEPTH) == 0 or factors_of(self.total) else 1

    @property
    def both(self) -> ir.Zip:
        """The row and the column, in the order in which elements are made of them."""
        assert isinstance(self.total.array, ir.Map)
        assert isinstance(self.total.array.array, ir.Zip)
        return self.total.array.array

    def total_of(self, both: ir.Expr) -> ir.Reduce:
        """The total of other rows and columns."""
        assert isinstance(self.total.array, ir.Map)
        return replace(self.total, array=replace(self.total.array, array=both))

    def padded(self, multiple: int) -> _Product:
        """With zeros behind rows and columns, to a multiple of a length."""
        length = self.length + -self.length % multiple
        if length == self.length:
            return self
        (p, rows), (q, columns) = widened(self.p, self.rows, length), widened(self.q, self.columns, length)
        made = _product(p, map_of(q, substitute(self.body, {self.p: p, self.q: q}), columns), rows)
        assert made is not None
        return made

    def in_rows(self, length: int) -> ir.Expr:
        """With the totals of slices of a length, for each element of the result."""
        cut = ir.Zip(ir.Split(nat(length), self.both.first), ir.Split(nat(length), self.both.second))
        left, right = ir.Var("$left", element_type(cut.first)), ir.Var("$right", element_type(cut.second))
        parts = map_of(ir.PairBinder(left, right), self.total_of(ir.Zip(left, right)), cut)
        return replace(self, body=with_part(self.body, self.total, replace(self.total, array=parts))).term

    def in_slices(self, length: int) -> ir.Expr:
        """With the products of slices of a length, and then the total of these for each element of the result."""
        sides = (self.p, self.rows), (self.q, self.columns)
        rows, columns = (ir.Transpose(map_of(v, ir.Split(nat(length), v), xs)) for v, xs in sides)
        of_rows, of_columns = ir.Var("$rows", element_type(rows)), ir.Var("$columns", element_type(columns))
        row, column = ir.Var("$row", element_type(of_rows)), ir.Var("$column", element_type(of_columns))
        own = self.total_of(substitute(self.both, {self.p: row, self.q: column}))
        products = map_of(row, map_of(column, own, of_columns), of_rows)
        parts = rows_turned(ir.Transpose(map_of(ir.PairBinder(of_rows, of_columns), products, ir.Zip(rows, columns))))
        parts_of_row = ir.Var("$parts", element_type(parts))
        of_one = ir.Var("$part", element_type(parts_of_row))
        made: ir.Expr = replace(self.total, array=of_one)
        if self.body != self.total:
            named = ir.Var("$total", type_of(self.total))
            made = ir.Apply(ir.Lambda(named, with_part(self.body, self.total, named)), made)
        return map_of(parts_of_row, map_of(of_one, made, parts_of_row), parts)
