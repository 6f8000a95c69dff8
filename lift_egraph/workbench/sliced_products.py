"""Products of matrices with few results, whose sums are long: slices of them are products of a batch.

With a group for each tile of the results, most of a GPU would have nothing to do. So the sums are cut into slices, the
products of a slice's rows and columns are those of a batch, for which there are plans, and what they are is added up by
a second kernel. The terms are built here as the rules build them; that they do is what the phases ``padding``,
``rows_at_a_time`` and ``slices`` show.

Source: "split K" of CUTLASS and cuBLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from lift_egraph.algebra.laws import associative, neutral
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute, with_part
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.workbench.long_rows import in_maps
from lift_egraph.workbench.padding import DEPTH, factors_of, padded_with, product_total
from lift_egraph.workbench.plan import length_of
from lift_egraph.workbench.remainders import rows_turned

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


@dataclass
class SlicedProducts:
    """Builds the terms for a device with so many compute units."""

    compute_units: int
    padded: Tiling = field(default_factory=dict)
    slices: Tiling = field(default_factory=dict)

    def steps(self, term: ir.Expr) -> Iterator[tuple[str, Tiling, ir.Expr]]:
        """The phases, with the lengths of parts and the term that each leads to: none if no sums are cut."""
        padded, in_rows, in_slices = (in_maps(term, partial(self.map, step)) for step in range(3))
        if self.padded:
            yield "padding", self.padded, padded
        if self.slices:
            yield "rows_at_a_time", self.slices, in_rows
            yield "slices", {}, in_slices

    def map(self, step: int, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """What a map is after one of the steps."""
        product = _product(p, body, xs)
        if product is None:
            return ir.Map(ir.Lambda(p, body), xs)
        n = length_of(product.both)
        slices = slices_of(length_of(xs), length_of(product.columns), n, self.compute_units)
        length = n + -n % (slices * DEPTH)
        if slices == 1 or (length > n and not factors_of(product.total)):
            return product.term
        if length > n:
            self.padded = merged(self.padded, {n: (slices * DEPTH,)})
            product = product.padded(length)
        self.slices = merged(self.slices, {length: (length // slices,)})
        return (product.term, product.in_rows(length // slices), product.in_slices(length // slices))[step]


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
        return _map(self.p, _map(self.q, self.body, self.columns), self.rows)

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

    def padded(self, length: int) -> _Product:
        """With zeros behind rows and columns."""
        rows, columns = (_map(v, padded_with(v, length), xs) for v, xs in ((self.p, self.rows), (self.q, self.columns)))
        p, q = ir.Var(self.p.name, element_type(rows)), ir.Var(self.q.name, element_type(columns))
        made = substitute(self.body, {self.p: p, self.q: q})
        total = product_total(p, q, made)
        assert total is not None
        return _Product(p, q, made, total, rows, columns)

    def in_rows(self, length: int) -> ir.Expr:
        """With the totals of slices of a length, for each element of the result."""
        cut = ir.Zip(ir.Split(nat(length), self.both.first), ir.Split(nat(length), self.both.second))
        left, right = ir.Var("$left", element_type(cut.first)), ir.Var("$right", element_type(cut.second))
        parts = _map(ir.PairBinder(left, right), self.total_of(ir.Zip(left, right)), cut)
        return replace(self, body=with_part(self.body, self.total, replace(self.total, array=parts))).term

    def in_slices(self, length: int) -> ir.Expr:
        """With the products of slices of a length, and then the total of these for each element of the result."""
        sides = (self.p, self.rows), (self.q, self.columns)
        rows, columns = (ir.Transpose(_map(v, ir.Split(nat(length), v), xs)) for v, xs in sides)
        of_rows, of_columns = ir.Var("$rows", element_type(rows)), ir.Var("$columns", element_type(columns))
        row, column = ir.Var("$row", element_type(of_rows)), ir.Var("$column", element_type(of_columns))
        own = self.total_of(substitute(self.both, {self.p: row, self.q: column}))
        products = _map(row, _map(column, own, of_columns), of_rows)
        parts = rows_turned(ir.Transpose(_map(ir.PairBinder(of_rows, of_columns), products, ir.Zip(rows, columns))))
        parts_of_row = ir.Var("$parts", element_type(parts))
        of_one = ir.Var("$part", element_type(parts_of_row))
        made: ir.Expr = replace(self.total, array=of_one)
        if self.body != self.total:
            named = ir.Var("$total", type_of(self.total))
            made = ir.Apply(ir.Lambda(named, with_part(self.body, self.total, named)), made)
        return _map(parts_of_row, _map(of_one, made, parts_of_row), parts)


def _map(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Map:
    return ir.Map(ir.Lambda(p, body), xs)
