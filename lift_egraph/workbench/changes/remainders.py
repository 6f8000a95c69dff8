"""Where a search starts for lengths that nothing divides: a program as parts of lengths that chunks divide, and rests.

The term is built here, outermost part first, as the rules of `lift_egraph.rules.remainders` build it; that they do is
what the phase ``remainders`` shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, prod

from lift_egraph.algebra.laws import associative
from lift_egraph.codegen.devices import Device
from lift_egraph.extract.baseline import computes
from lift_egraph.extract.tiling import Tiling, chunk_size, merged
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in
from lift_egraph.language.check import codomain, domain, element_type, size_of, type_of
from lift_egraph.language.lane_ranges import has_differing_ranges
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import I32, DataType, Scalar, leaves
from lift_egraph.workbench.planning.plan import LONG, length_of
from lift_egraph.workbench.planning.range_plans import FEWEST

SHORTEST = 4  # chunks that are worth a rest
LEAST = 16  # elements of a chunk: what every block and vector divides
BLOCKS = (4, 5, 6)  # of rows: a length that one of them divides will do
FEWEST_LANES = 8  # for which few rows are in blocks
FEW_RESULTS = 8  # elements for each result of a reduction by index that chunks may have for themselves
OF_LANE = 16  # numbers of a result, of rows and of components, that a lane has for itself
LONG_ROW = 1 << 10  # elements of a row that a GPU's vectors take, and one that is left
SHARED = 256  # elements of a row from which the items of a group share it
TRIED = 32  # lengths for which groups' chunks are looked for
LARGEST_REST = 1 / 32  # of the elements, where a smaller chunk leaves less


Chunk = Callable[[int, bool], "int | None"]


def chunk_for(device: Device, long: int, chunks_per_unit: int) -> Chunk:
    """The chunk size that leaves a rest of an array of a length; None where the length will do as it is.

    Scalars are cut for vectors, or pairs of them; rows that are reduced for blocks, so their rest is short.

    Parameters
    ----------
    long, chunks_per_unit
        As for `lift_egraph.extract.tiling.tilings`.
    """
    least = max(device.vector_width, LEAST)
    parts = device.compute_units * chunks_per_unit

    def chunk(n: int, of_scalars: bool) -> int | None:
        if device.has_groups and of_scalars and n >= LONG:
            return _for_groups(n, device, parts, least)
        if n >= max(long, SHORTEST * parts * least) and (chunk_size(n, parts) or 1) % least:
            return parts * least
        is_good = n % least == 0 if of_scalars else any(n % block == 0 for block in BLOCKS)
        if is_good or n < SHORTEST * least:
            return None
        chunks = (2 * least, least) if of_scalars else (least, least // 2)
        return next((k for k in chunks if n % k <= min(n * LARGEST_REST, chunks[-1] - 1)), chunks[-1])

    return chunk


def _for_groups(n: int, device: Device, parts: int, least: int) -> int | None:
    """The chunk of a group whose work-items have as many elements each, of so many parts of a long array.

    One work-item takes what is left: among the lengths that chunks for groups and chunks for items divide, the longest
    is taken, so the rest is short.
    """
    items, by_items = device.group_sizes[0], n >= SHORTEST * parts * least

    def chunk(m: int, each: int) -> int | None:
        found = chunk_size(m, device.groups)
        fits = found and found % each == 0 and not (by_items and (chunk_size(m, parts) or 1) % least)
        return found if fits else None

    if chunk(n, device.group_sizes[-1]):
        return None
    for rest in range(n % items or items, items * TRIED, items):
        found = chunk(n - rest, items)
        if found and found > rest:
            return found
    other = parts * least if by_items else items
    return other if n % other else None


def vector_of(device: Device) -> int:
    """The lanes that a rest is filled up to."""
    return max(device.vector_width, 4)


@dataclass
class WithRests:
    """Builds the term; `tiling` has the chunk sizes that left a rest.

    Maps in functions of rows are cut where vectors compute them `in_lanes`: groups share them as they stand, and
    work-items have an element each. Many rows of uneven length are cut so that they can be shared out in `shares`
    chunks, where these are several. What `fits` as it stands is not cut.
    """

    chunk: Chunk
    width: int
    in_lanes: bool = True
    shares: int = 1
    fits: Callable[[ir.Expr], bool] = lambda term: False
    tiling: Tiling = field(default_factory=dict)

    def term(self, term: ir.Expr) -> ir.Expr:
        """A term outside of all loops, its parts one after the other."""
        match term:
            case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
                return ir.Apply(ir.Lambda(binder, self.term(body)), self.term(argument))
            case ir.Iterate(function=ir.Lambda(binder=binder, body=body) as step) if domain(step) == codomain(step):
                return replace(term, function=ir.Lambda(binder, self.term(body)), array=self.term(term.array))
            case ir.Map(function=ir.Lambda()) if computes(term.function):
                return self.map(term)
            case ir.Reduce():
                return self.reduce(term)
            case ir.Scan() | ir.ScanExclusive():
                return self.scan(term)
            case ir.ReduceByIndex():
                return self.by_index(term)
            case ir.Generate(function=ir.Lambda()) if computes(term.function):
                return self.generated(term, nested=False)
        return self.parts(term)

    def parts(self, term: ir.Expr) -> ir.Expr:
        """A term whose own length stays, with the rests of its parts."""
        if is_pure(term) or isinstance(term, ir.Iterate | ir.Generate):
            return term
        return ir.map_parts(term, lambda p: self.term(p) if isinstance(p, ir.Expr) and not is_pure(p) else p)

    def left(
        self, array: ir.Expr, of_scalars: bool, of_folds: bool = False, of_blocks: bool = False
    ) -> tuple[int, int] | None:
        """The lengths of the part that chunks divide, and of the rest.

        Few folds, one in each lane, are worth a rest where one vector is full; few rows of such, where a block is.
        """
        n = size_of(array).constant
        k = self.chunk(n, of_scalars) if n else None
        if of_folds and self.in_lanes and k is None and n and n > self.width and n % self.width:
            k = self.width
        if of_blocks and k is None and n and n > BLOCKS[-1] and all(n % block for block in BLOCKS):
            k = min(BLOCKS, key=lambda block: (n % block, -block))
        if n is None or k is None:
            return None
        return self.cut(n, k)

    def left_of_uneven(self, rows: ir.Expr) -> tuple[int, int] | None:
        """The lengths of the part of rows of uneven length that work-items have chunks of, and of the rest."""
        n = length_of(rows)
        if self.shares == 1 or n < FEWEST or chunk_size(n, self.shares):
            return None
        return self.cut(n, self.shares)

    def cut(self, n: int, k: int) -> tuple[int, int]:
        """The lengths of the part of an array that chunks of a size divide, and of the rest."""
        self.tiling = merged(self.tiling, {n: (k,)})
        return n - n % k, n % k

    def map(self, term: ir.Map, nested: bool = False) -> ir.Expr:
        if self.fits(term):
            return term
        element = type_of(term).element  # pyright: ignore[reportAttributeAccessIssue]
        is_element = all(not sizes for _, sizes, _ in leaves(element))
        inside = [type(t) for t in ir.subterms(term.function)]
        # rows of uneven length are neither in the lanes of vectors nor in blocks
        is_uneven = has_differing_ranges(term.function)
        in_blocks = not is_uneven
        in_blocks &= is_element or any(issubclass(t, ir.FOLDS) for t in inside) or self.fills_lanes(element)
        in_blocks &= not (is_element and self.shares_rows(term))
        in_blocks &= is_element or not (self.in_lanes and _folds_windows(term.function))
        in_blocks &= not ((nested or not is_element) and self.guards(term, nested))
        of_folds = (nested or isinstance(term.array, ir.Transpose)) and any(issubclass(t, ir.FOLDS) for t in inside)
        of_blocks = not is_element and self.is_product(term.function)
        if not is_pure(term.array):
            whole = ir.Var(fresh_name("array", names_in(term)), type_of(term.array))
            made, array = self.map(ir.Map(term.function, whole), nested), self.term(term.array)
            if isinstance(made, ir.Map) and made.array == whole:
                return replace(made, array=array)
            return ir.Apply(ir.Lambda(whole, made), array)
        cut = self.left(term.array, is_element, is_element and of_folds, of_blocks) if in_blocks else None
        if is_uneven and not nested:
            cut = self.left_of_uneven(term.array)
        if cut is None:
            return self.rows(term, nested)
        m, r = cut
        first = self.rows(ir.Map(term.function, part(0, m, term.array)), nested)
        if is_element and not is_uneven and r < self.width <= m + r:
            last = self.rows(ir.Map(term.function, part(m + r - self.width, self.width, term.array)), nested)
            return ir.Concat(first, ir.Slice(nat(self.width - r), nat(r), last))
        return ir.Concat(first, self.map(ir.Map(term.function, part(m, r, term.array)), nested))

    def fills_lanes(self, element: DataType) -> bool:
        """Whether each lane of a vector has a result of its own, though that is several numbers."""
        lengths = [prod(n.constant or inf for n in sizes) for _, sizes, _ in leaves(element)]
        return self.in_lanes and sum(lengths) <= OF_LANE

    def shares_rows(self, term: ir.Map) -> bool:
        """Whether groups share each of the rows that are folded: then there may be any number of them."""
        if self.in_lanes or isinstance(term.array, ir.Transpose):
            return False
        folded = [ir.array_of_loop(t) for t in ir.subterms(term.function) if isinstance(t, ir.FOLDS)]
        return bool(folded) and all(array and length_of(array) >= SHARED for array in folded)

    def guards(self, term: ir.Map, nested: bool) -> bool:
        """Whether work-items, of which some have nothing to do, fold what they alone read, with no blocks to share it,
        or make each element of a short row of scalars: what is left is a large part of it.
        """
        if self.in_lanes:
            return False
        if ir.has_folds(term.function):
            body = ir.function_body(term.function).body
            is_apart = isinstance(body, ir.Map) and is_pure(body.array)  # a row of folds, else one work-item's
            return not ir.free_variables(term.function) and (nested or is_apart)
        is_scalar = all(not sizes for _, sizes, _ in leaves(element_type(term.array)))
        return is_scalar and length_of(term.array) < LONG_ROW

    def is_product(self, function: ir.Function) -> bool:
        """Whether a row is one of a product, of folds that fill vectors: blocks of rows share what these read."""
        match function:
            case ir.Lambda(body=ir.Map(function=fold, array=array) as body) if is_pure(array):
                is_full = FEWEST_LANES <= self.width <= (size_of(array).constant or 0)
                of_scalars = isinstance(type_of(body).element, Scalar)  # pyright: ignore[reportAttributeAccessIssue]
                return is_full and of_scalars and ir.has_folds(fold)
        return False

    def rows(self, term: ir.Map, nested: bool) -> ir.Expr:
        """A map whose own length will do, with the rests of maps inside of its function outside of it.

        A reduction has its rest where it is, if no other map has elements for vectors.
        """
        function = term.function
        assert isinstance(function, ir.Lambda)
        body = function.body
        if isinstance(body, ir.Generate) and computes(body.function):
            body = self.generated(body, nested=True)
            if not isinstance(body, ir.Generate):
                return lifted(function.binder, body, term.array)
        if isinstance(body, ir.Map) and is_pure(body.array) and computes(body.function):
            return lifted(function.binder, self.map(body, nested=True), term.array)
        if isinstance(body, ir.Transpose) and isinstance(body.array, ir.Map) and is_pure(body.array.array):
            turned_back = self.map(body.array, nested=True) if computes(body.array.function) else body.array
            if turned_back != body.array:
                return lifted(function.binder, ir.Transpose(turned_back), term.array)
        if nested or isinstance(term.array, ir.Transpose):
            return term
        return ir.Map(ir.Lambda(function.binder, self.inside(body)), term.array)

    def inside(self, term: ir.Expr) -> ir.Expr:
        """A term in a function, its reductions with rests, and its maps beside each other or in lets."""
        if isinstance(term, ir.Reduce):
            array = term.array.array if isinstance(term.array, ir.Map) else term.array
            return self.reduce(term) if is_pure(array) else term
        if isinstance(term, ir.Map):
            is_read = self.in_lanes and is_pure(term.array) and computes(term.function)
            return self.map(term, nested=True) if is_read and not ir.has_folds(term.function) else term
        if not isinstance(term, ir.Call | ir.Apply | ir.MakePair | ir.Concat):
            return term
        return ir.map_parts(term, lambda p: self.inside(p) if isinstance(p, ir.Expr) else self.inside_function(p))

    def inside_function(self, function: ir.Function) -> ir.Function:
        if isinstance(function, ir.Lambda):
            return ir.Lambda(function.binder, self.inside(function.body))
        return function

    def generated(self, term: ir.Generate, nested: bool) -> ir.Expr:
        """What is generated as a map over its indices, if that leaves a rest."""
        index = ir.Var("$i", I32)
        mapped = ir.Map(term.function, ir.Generate(term.size, ir.Lambda(index, index)))
        apart = self.map(mapped, nested)
        return term if apart == mapped else apart

    def reduce(self, term: ir.Reduce) -> ir.Expr:
        array = term.array
        mapped = array.array if isinstance(array, ir.Map) else array
        if not is_pure(mapped):
            return self.reduce_of_named(term, mapped)
        cut = self.left(array, True)
        if cut is None:
            return term
        m, r = cut
        first = ir.Reduce(term.operator, term.initial, part(0, m, array))
        return ir.Reduce(term.operator, first, part(m, r, array))

    def reduce_of_named(self, term: ir.Reduce, computed: ir.Expr) -> ir.Expr:
        """A reduction of what something else than a map computes, which is in memory then; maps are fused with it."""
        if not isinstance(computed, ir.Map):
            whole = ir.Var(fresh_name("array", names_in(term)), type_of(computed))
            mapped = replace(term.array, array=whole) if isinstance(term.array, ir.Map) else whole
            of_name = replace(term, array=mapped)
            made = self.reduce(of_name)
            if made != of_name:
                return ir.Apply(ir.Lambda(whole, made), self.term(computed))
        return replace(term, array=self.term(term.array))

    def scan(self, term: ir.Scan | ir.ScanExclusive) -> ir.Expr:
        """The rest stands first: so little is reduced for what the others start from."""
        array = term.array
        mapped = array.array if isinstance(array, ir.Map) else array
        is_long = (size_of(array).constant or 0) >= LONG
        cut = self.left(array, True) if is_long and is_pure(mapped) else None
        if cut is None:
            return term if is_pure(mapped) else replace(term, array=self.term(array))
        m, r = cut
        first = part(0, r, array)
        start = ir.Reduce(term.operator, term.initial, first)
        return ir.Concat(replace(term, array=first), replace(term, initial=start, array=part(r, m, array)))

    def by_index(self, term: ir.ReduceByIndex) -> ir.Expr:
        """The rest is combined with what the others give, which may have results of their own for chunks."""
        initial, indices, array = term.initial, term.indices, term.array
        is_read = all(is_pure(xs.array if isinstance(xs, ir.Map) else xs) for xs in (indices, array))
        is_long = (size_of(array).constant or 0) >= max(LONG, FEW_RESULTS * (size_of(initial).constant or 0))
        cut = self.left(array, True) if is_long and is_read and associative(term.operator) else None
        if cut is None:
            return self.parts(term)
        m, r = cut
        first = replace(term, indices=part(0, m, indices), array=part(0, m, array))
        return replace(term, initial=first, indices=part(m, r, indices), array=part(m, r, array))


def _folds_windows(function: ir.Function) -> bool:
    """Whether elements of a row are folds of what is read of this row, as those of a stencil: rows share nothing that
    blocks of them would read once.
    """
    match function:
        case ir.Lambda(binder=row, body=ir.Map(function=fold, array=array)):
            return ir.has_folds(fold) and not ir.free_variables(array).isdisjoint(ir.bound_variables(row))
    return False


def part(start: int, length: int, array: ir.Expr) -> ir.Expr:
    """A part of an array, as near to the inputs as it gets."""
    match array:
        case ir.Map(function=function, array=inner):
            return ir.Map(function, part(start, length, inner))
        case ir.Zip(first=first, second=second):
            return ir.Zip(part(start, length, first), part(start, length, second))
        case ir.Transpose(array=inner):
            row = ir.Var("$row", type_of(inner).element)  # pyright: ignore[reportAttributeAccessIssue]
            return ir.Transpose(ir.Map(ir.Lambda(row, ir.Slice(nat(start), nat(length), row)), inner))
        case ir.Slice(start=before, array=inner):
            return ir.Slice(before + start, nat(length), inner)
    return ir.Slice(nat(start), nat(length), array)


def lifted(binder: ir.Binder, body: ir.Expr, array: ir.Expr) -> ir.Expr:
    """A map of a function whose body has parts of arrays, with these outside of it."""
    match body:
        case ir.Concat(first=first, second=second):
            sides = (turned(lifted(binder, side, array)) for side in (first, second))
            return turned(ir.Concat(*sides))
        case ir.Slice(start=start, length=length, array=inner):
            return turned(ir.Slice(start, length, turned(lifted(binder, inner, array))))
        case ir.Transpose(array=inner):
            return rows_turned(lifted(binder, inner, array))
    return ir.Map(ir.Lambda(binder, body), array)


def rows_turned(term: ir.Expr) -> ir.Expr:
    """An array of matrices, each of them transposed; twice is not at all."""
    match term:
        case ir.Map(function=ir.Lambda(binder=binder, body=ir.Transpose(array=inner)), array=array) if inner == binder:
            return array
    matrix = ir.Var("$rows", type_of(term).element)  # pyright: ignore[reportAttributeAccessIssue]
    return ir.Map(ir.Lambda(matrix, ir.Transpose(matrix)), term)


def turned(term: ir.Expr) -> ir.Expr:
    """A matrix transposed; twice is not at all."""
    return term.array if isinstance(term, ir.Transpose) else ir.Transpose(term)
