"""Products of matrices among the nests of a stage, whose plans cut rows and columns.

Both matrices stand in memory, or are views of what does: each window over the channels of an image is a column of a
matrix, and each filter a row of another, of which no memory holds more than a tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from lift_egraph.codegen.devices import registers_of
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.types import F32, F64, I32, I64, Array, DataType, Scalar, array
from lift_egraph.workbench.planning.padded import DEPTH, VIEW_DEPTHS, VIEW_MULTIPLES, multiple_of, padded_length
from lift_egraph.workbench.planning.plan import Nest, Step, length_of, zipped

ELEMENTS = (F32, F64, I32, I64)
VIEWS = (ir.Input, ir.Var, ir.Map, ir.Join, ir.Split, ir.Transpose, ir.Slide, ir.Pad, ir.Lambda, ir.Literal)


@dataclass(frozen=True)
class Product:
    """Rows of one matrix times columns of another.

    Attributes
    ----------
    rows, columns, length
        The numbers of both, and the length of each.
    element
        The type of the elements of both.
    products
        How many products there are.
    lies_across
        Of both, whether neighbouring elements of neighbouring rows or columns lie side by side in memory.
    pitches
        Of both, how many elements lie between neighbouring rows, or columns, in memory; 0 of views.
    changes_places
        Whether the columns are first in the products of elements.
    views
        Whether the matrices are views, for which the steps `as_matrices` come first.
    padding
        By how much the rows, columns and lengths of views are longer than they were written.
    is_whole
        Whether nothing else is computed of each result.
    """

    rows: int
    columns: int
    length: int
    element: Scalar
    products: int
    lies_across: tuple[bool, bool]
    pitches: tuple[int, int] = (0, 0)
    changes_places: bool = False
    views: bool = False
    padding: tuple[int, int, int] = (0, 0, 0)
    is_whole: bool = True

    @property
    def words(self) -> int:
        """How many registers of a GPU's work-item an element takes, and how many floats' room in a vector."""
        return registers_of(self.element)

    @property
    def padded(self) -> Product:
        """The same with lengths that tiles divide, of views: nothing of that is in memory."""
        rows, columns = padded_length(self.rows), padded_length(self.columns)
        length = padded_length(self.length, VIEW_DEPTHS, DEPTH)
        padding = rows - self.rows, columns - self.columns, length - self.length
        return replace(self, rows=rows, columns=columns, length=length, padding=padding)

    @property
    def as_matrices(self) -> tuple[Step, ...]:
        """The steps that make matrices of views, and pad them."""
        if not self.views:
            return ()
        padded = self.rows, self.columns, self.length
        written = tuple(n - more for n, more in zip(padded, self.padding, strict=True))
        as_written = Step("matrices", self._of_matrices(written), {})
        if padded == written:
            return (as_written,)
        lengths = {n: m for n, m in zip(written, padded, strict=True) if n != m}
        facts: Tiling = {n: (multiple_of(n, m, VIEW_MULTIPLES),) for n, m in lengths.items()}
        return as_written, Step("padding", self._of_matrices(padded, is_bare=True), facts)

    def _of_matrices(self, lengths: tuple[int, ...], is_bare: bool = False) -> sk.Sketch:
        """What contains the product of two matrices; a bare one has nothing around the products of a row."""
        rows, columns, length = lengths
        factors = sk.map_(sk.ANY, sk.zip_())
        of_rows, of_columns = (sk.of_type(array(self.element, n, length)) for n in (rows, columns))
        each = sk.map_(sk.reduce_(sk.ANY, sk.ANY, factors, length=length), of_columns)
        return sk.contains(sk.map_(each if is_bare else sk.contains(each), of_rows))


def product_of(nest: Nest) -> Product | None:
    """The product of matrices that a nest is, if it is one of numbers: one whose results are kept."""
    element = nest.result
    if len(nest.maps) < 2 or element not in ELEMENTS or not nest.reads_map or nest.is_folded:
        return None
    assert isinstance(element, Scalar)
    rows, columns = nest.rows, nest.maps[-1]
    if len(nest.maps) < 4 and _is_stored(rows, element) and _is_stored(columns, element):
        (first, pitch), (second, other) = _lines(rows, nest), _lines(columns, nest)
        products = prod(map(length_of, nest.maps)) // (length_of(rows) * length_of(columns))
        lies_across, pitches = (first, second), (pitch, other)
        lengths, is_first = (length_of(rows), length_of(columns), nest.length), _is_first(nest)
        return Product(*lengths, element, products, lies_across, pitches, is_first, is_whole=nest.is_whole)
    return _of_views(nest, element)


def sides_of(array: ir.Expr) -> tuple[ir.Expr, ...]:
    """The two arrays whose elements an array that is folded has functions of, if it has."""
    match array:
        case ir.Map(array=ir.Zip(first=first, second=second)):
            return first, second
    return ()


def _is_first(nest: Nest) -> bool:
    """Whether the first of what is multiplied is of the columns."""
    return any(not ir.free_variables(side).isdisjoint(nest.bound[-1]) for side in sides_of(nest.array)[:1])


def _of_views(nest: Nest, element: Scalar) -> Product | None:
    """The product of one map's elements with what the others make of views, in whatever order they stand, if it is one.

    Where there are but two, the elements of the outer one are rows.
    """
    if not all(_is_view(xs) for xs in nest.maps):
        return None
    first, second = [_maps_of(side, nest) for side in sides_of(nest.array)] or [set[int](), set[int]()]
    if first & second or first | second != set(range(len(nest.maps))):
        return None
    rows, others = (first, second) if len(first) == 1 and (0 in first or len(second) > 1) else (second, first)
    if len(rows) != 1 or not others:
        return None
    outer, inner = nest.maps[min(rows)], [nest.maps[at] for at in sorted(others)]
    sizes = [_elements(type_of(xs), element) // max(length_of(xs), 1) for xs in (outer, inner[-1])]
    if sizes != [nest.length] * 2:
        return None
    columns = prod(map(length_of, inner))
    across = False, any(_is_side_by_side(part) for xs in inner for part in ir.subterms(xs))
    lengths = length_of(outer), columns, nest.length
    is_first = rows is second
    return Product(*lengths, element, 1, across, changes_places=is_first, views=True, is_whole=nest.is_whole)


def _maps_of(side: ir.Expr, nest: Nest) -> set[int]:
    """The maps whose elements an array reads, also by what maps inside of them take."""
    read, found = ir.free_variables(side), set[int]()
    for at in reversed(range(len(nest.maps))):
        if not read.isdisjoint(nest.bound[at]):
            found.add(at)
            read |= ir.free_variables(nest.maps[at])
    return found


def _is_side_by_side(part: ir.Part) -> bool:
    """Whether windows begin at neighbouring elements in memory."""
    if not isinstance(part, ir.Slide):
        return False
    return isinstance(part.array, ir.Transpose) or not isinstance(element_type(part.array), Array)


def _is_view(xs: ir.Expr) -> bool:
    """Whether an array is only read in another order: nothing is computed for it."""
    return all(isinstance(part, VIEWS) for part in ir.subterms(xs))


def _elements(t: DataType, element: Scalar) -> int:
    """The number of elements in nested arrays of them; 0 for others, and where a length is open."""
    count = 1
    while isinstance(t, Array):
        count *= t.size.constant or 0
        t = t.element
    return count if t == element else 0


def _is_stored(matrix: ir.Expr, element: DataType) -> bool:
    """Whether an array is a matrix of these elements that stands in memory, by rows or by columns."""
    t = type_of(matrix)
    is_matrix = isinstance(t, Array) and isinstance(t.element, Array) and t.element.element == element
    return is_matrix and isinstance(_in_memory(matrix)[0], ir.Input | ir.Var)


def _in_memory(matrix: ir.Expr) -> tuple[ir.Expr, bool]:
    """What a matrix is a view of, and whether it stands there by columns."""
    inner = _unpadded(matrix)
    return (inner.array, True) if isinstance(inner, ir.Transpose) else (inner, False)


def _lines(matrix: ir.Expr, nest: Nest) -> tuple[bool, int]:
    """Whether a matrix stands in memory by columns, or one of which each product has a slice, and how many elements lie
    between its neighbouring rows, or columns, there.
    """
    stored, across = _in_memory(matrix)
    if isinstance(stored, ir.Var) and not across:
        known = ((binder, xs) for binder, xs in zip(nest.binders, nest.maps, strict=True) if binder is not None)
        arrays = (of for binder, xs in known for of in zipped(binder, xs))
        match next((array for variables, array in arrays if stored in variables), None):
            case ir.Transpose(array=ir.Map(function=ir.Lambda(binder=row, body=ir.Split(array=of)), array=whole)):
                if row == of and _is_stored(whole, nest.result):
                    stored, across = _in_memory(whole)
    line = element_type(stored)
    assert isinstance(line, Array)
    return across, line.size.constant or 0


def _unpadded(matrix: ir.Expr) -> ir.Expr:
    """A matrix without what is added behind its rows, and behind the elements of each."""
    match matrix:
        case ir.Pad(array=inner):
            return _unpadded(inner)
        case ir.Map(function=ir.Lambda(binder=row, body=ir.Pad(array=array)), array=inner) if array == row:
            return _unpadded(inner)
    return matrix
