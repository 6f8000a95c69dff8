"""What a plan is, and the loops that it is made for.

A plan is data: the facts that steer each phase, and the sketch at which the phase ends. The small rules of the book
lead there in an e-graph (`lift_egraph.guided.stages`), so what a plan leads to is as right as they are, and a plan that
they cannot reach is given up. `lift_egraph.workbench.planning.plans` makes those for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice
from typing import Any

from lift_egraph import rules as book
from lift_egraph.algebra.expressions import scalars
from lift_egraph.algebra.laws import associative, commutative
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.matcher import Weigh, term_size
from lift_egraph.language import ir
from lift_egraph.language.binders import bound_parts, fresh_name
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, is_data

PLANNED = {
    "inlining": book.inlining,
    "naming": book.naming,
    "one_row": book.one_row,
    "algebra": book.algebra,
    "joined_sums": book.joined_sums,
    "folded_scans": book.folded_scans,
    "distinct_places": book.distinct_places,
    "atomic_places": book.atomic_places,
    "siblings": book.siblings,
    "tables": book.tables,
    "products_apart": book.products_apart,
    "padding": book.padding,
    "large_apart": book.large_apart,
    "rows_apart": book.rows_apart,
    "long_rows": book.long_rows,
    "scans": book.chunked_scan_rules,
    "index_chunks": book.chunked_index_rules,
    "packing": book.packing,
    "row_packing": book.row_packing,
    "borders": book.borders,
    "matrices": book.matrices,
    "tiling": book.tiling,
    "slices": book.slices,
    "slice_levels": book.slice_levels,
    "interleaving": book.interleaving,
    "items": book.tiling,
    "blocking": book.blocking,
    "rows_at_a_time": book.rows_at_a_time,
    "columns": book.columns,
    "rows_of_steps": book.rows_of_steps,
    "stencil_steps": book.stencil_steps,
    "step_tiles": book.step_tiles,
    "tiles_of_steps": book.tiles_of_steps,
    "step_levels": book.step_levels,
    "window_tiles": book.window_tiles,
    "rows": book.rows,
    "lanes": book.lanes,
    "groups": book.groups,
    "sharing_columns": book.sharing_columns,
    "scan_blocks": book.scan_block_rules,
    "loops": book.loops,
    "views": book.views,
    "levels": book.levels,
    "first_tile": book.first_tile,
    "second_tile": book.second_tile,
    "registers": book.registers,
    "item_loops": book.item_loops,
    "row_sums": book.row_sums,
    "column_sums": book.column_sums,
    "range_columns": book.range_columns,
    "range_column_levels": book.range_column_levels,
    "row_loops": book.row_loops,
    "row_tile": book.row_tile,
    "group_folds": book.group_folds,
    "sub_group_folds": book.sub_group_folds,
    "group_sweeps": book.group_sweeps,
    "group_fold_levels": book.group_fold_levels,
    "item_folds": book.item_folds,
    "item_sides": book.item_sides,
    "look_back": book.look_back,
    "look_back_runs": book.look_back_runs,
    "look_back_levels": book.look_back_levels,
    "chunk_staging": book.chunk_staging,
    "sub_groups": book.sub_groups,
    "sub_group_tree": book.sub_group_tree,
    "row_lanes": book.row_lanes,
    "row_lane_levels": book.row_lane_levels,
    "tree": book.tree,
    "tree_levels": book.tree_levels,
    "column_levels": book.column_levels,
    "column_tile": book.column_tile,
    "window_levels": book.window_levels,
    "window_copies": book.window_copies,
    "loop_tile": book.loop_tile,
    "item_vectors": book.item_vectors,
    "vector_tile": book.vector_tile,
    "block_levels": book.block_levels,
    "block_registers": book.block_registers,
    "vector_levels": book.vector_levels,
}
Mapped = Callable[[ir.Binder, ir.Expr, ir.Expr], ir.Expr]  # a map, or what is made of it, by parameter, body and array
SPARE = 3  # registers beside the partial results of a work-item: for what it reads in a step
LONG = 1 << 15  # the length from which an array is reduced, or scanned, in chunks
# the phases that copy data to local memory
COPYING = ("first_tile", "second_tile", "loop_tile", "row_tile", "column_tile", "window_copies", "vector_tile")


@dataclass(frozen=True)
class Step:
    """One phase of a plan, what steers it, the sketch that ends it, and which term that satisfies it is taken.

    Attributes
    ----------
    name
        That of the phase in `PLANNED`, whose rules run.
    sketch
        What to look for after each iteration (`lift_egraph.guided.sketch`).
    tiling
        By which chunks the rules may split arrays of a length.
    widths
        Of vectors that they may make.
    weigh
        What a node of the term that is taken counts: the least of those that satisfy the sketch.
    """

    name: str
    sketch: sk.Sketch
    tiling: Tiling
    widths: tuple[int, ...] = ()
    weigh: Weigh = term_size


@dataclass(frozen=True)
class Plan:
    """The phases that lead from a stage to another term, and the widths of vectors to lower that with.

    Attributes
    ----------
    steps
        The phases, each of which starts from the term that the one before reached.
    widths
        Of vectors, for lowering what they lead to.
    lowered_by
        The phase that does so: ``sharing`` where the items of a group share the work of each element, none where it is
        a low-level term.
    recipe
        By which it is made again with other numbers, if it has one.
    """

    steps: tuple[Step, ...]
    widths: tuple[int, ...]
    lowered_by: str | None = "lowering"
    recipe: Recipe | None = None


@dataclass(frozen=True)
class Recipe:
    """How a plan is made of loops and numbers: for other sizes of the program too.

    Attributes
    ----------
    make
        Makes the plan, a function of a module.
    loops
        Finds the loops of a term, also a function of a module: `nests`, but for stencils.
    place
        Of the loops among those of the term.
    numbers
        Those of the plan by their names: its parameters. Those that are called ``width`` are widths of vectors.
    multiples
        What a number is a multiple of.
    """

    make: Callable[[Any, Mapping[str, int]], Plan]
    loops: Callable[[ir.Expr], Iterator[Any]]
    place: int
    numbers: tuple[tuple[str, int], ...]
    multiples: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> object:
        """What plans have in common that differ in their numbers alone."""
        return self.make, self.place, tuple(name for name, _ in self.numbers)

    def at(self, term: ir.Expr, numbers: Mapping[str, int]) -> Plan:
        """The plan for a term, the same program at any sizes, with other numbers."""
        loops = next(islice(self.loops(term), self.place, None))
        return replace(self.make(loops, numbers), recipe=replace(self, numbers=tuple(numbers.items())))


def plan_of(
    make: Callable[[Nest, Mapping[str, int]], Plan],
    nest: Nest,
    multiples: tuple[tuple[str, str], ...] = (),
    **numbers: int,
) -> Plan:
    """The plan with these numbers, which knows how it was made."""
    return replace(make(nest, numbers), recipe=Recipe(make, nests, nest.place, tuple(numbers.items()), multiples))


@dataclass(frozen=True)
class Nest:
    """A reduction or scan with the arrays of the maps around it, from outside to inside, and their parameters.

    `fold` is its pattern, of `array`. Its operator is associative; `commutes` says whether it is commutative too.
    `place` counts those of a term. `repeats` says whether it reads elements of the last array that another map around
    it takes again and again, as a product of matrices does; `is_whole` whether it is all that the innermost map
    computes, `is_row` whether that map is all that the one around it computes. It `is_folded` if what its maps compute
    is reduced or scanned.
    """

    fold: type[ir.Expr]
    maps: tuple[ir.Expr, ...]
    binders: tuple[ir.Binder | None, ...]
    length: int
    result: DataType
    array: ir.Expr = field(compare=False)
    commutes: bool = True
    place: int = field(default=0, compare=False)
    repeats: bool = field(default=False, compare=False)
    is_whole: bool = field(default=True, compare=False)
    is_row: bool = field(default=True, compare=False)
    is_folded: bool = field(default=False, compare=False)

    @cached_property
    def bound(self) -> tuple[frozenset[ir.Var], ...]:
        """What each map binds."""
        return tuple(map(_bound, self.binders))

    @property
    def reads_map(self) -> bool:
        """Whether what is reduced is computed for it."""
        return isinstance(self.array, ir.Map)

    @property
    def rows(self) -> ir.Expr:
        """The array of the innermost map around the last one whose elements all take the same elements of the last."""
        needed = ir.free_variables(self.maps[-1])
        for outer, bound in zip(self.maps[-2::-1], self.bound[-2::-1], strict=True):
            if needed.isdisjoint(bound):
                return outer
            needed |= ir.free_variables(outer)
        return self.maps[-2]


def planned_phase(name: str, tiling: Tiling, widths: tuple[int, ...], limits: Limits) -> Phase:
    """A phase of a plan, whose rules look for what lets bind."""
    return Phase(name, PLANNED[name], book.lets_kept, tiling, widths, limits, ("local",) if name in COPYING else ())


def nests(term: ir.Expr) -> Iterator[Nest]:
    """The reductions of a stage to scalars and tuples of them, and the scans that have no arrays, each with the maps
    that repeat it.
    """

    def walk(
        part: ir.Part, maps: tuple[ir.Expr, ...], binders: tuple[ir.Binder | None, ...], whole: tuple[bool, bool, bool]
    ) -> Iterator[Nest]:
        is_whole, is_row, is_folded = whole
        is_fold = isinstance(part, ir.Reduce | ir.Scan | ir.ScanExclusive)
        if is_fold:
            result, length = type_of(part.initial), length_of(part.array)
            is_fitting = scalars(result) is not None if isinstance(part, ir.Reduce) else is_data(result)
            if is_fitting and length and associative(part.operator):
                commutes = commutative(part.operator) is not None
                facts = commutes, next(places), _repeats(binders, maps, part.array), *whole
                yield Nest(type(part), maps, binders, length, result, part.array, *facts)
        inside = is_whole and isinstance(part, ir.Lambda), is_row, is_folded or is_fold
        for inner in ir.parts(part):
            if isinstance(part, ir.Map) and inner is part.function:
                binder = part.function.binder if isinstance(part.function, ir.Lambda) else None
                yield from walk(inner, (*maps, part.array), (*binders, binder), (True, is_whole, is_folded))
            else:
                yield from walk(inner, maps, binders, inside)

    places = count()
    yield from walk(term, (), (), (True, True, False))


def _bound(binder: ir.Binder | None) -> frozenset[ir.Var]:
    return frozenset() if binder is None else variables_of(binder)


def _repeats(binders: tuple[ir.Binder | None, ...], maps: tuple[ir.Expr, ...], array: ir.Expr) -> bool:
    """Whether what an array reads of the last map is the same for all elements of another map."""
    if not binders or binders[-1] is None:
        return False
    read = ir.free_variables(array)
    for variables, part in zipped(binders[-1], maps[-1]):
        needed = ir.free_variables(part)
        for outer, of_outer in zip(maps[-2::-1], map(_bound, binders[-2::-1]), strict=True):
            if variables & read and needed.isdisjoint(of_outer):
                return True
            needed |= ir.free_variables(outer)
    return False


def map_of(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Map:
    """A map by its parameter, body and array."""
    return ir.Map(ir.Lambda(p, body), xs)


def one_side(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> tuple[ir.Binder, ir.Expr, ir.Expr]:
    """A map by its parameter, body and array: one of a function of pairs without the sides that it does not read."""
    free = ir.free_variables(body)
    while isinstance(p, ir.PairBinder) and isinstance(xs, ir.Zip):
        if not free & variables_of(p.first):
            p, xs = p.second, xs.second
        elif not free & variables_of(p.second):
            p, xs = p.first, xs.first
        else:
            break
    return p, body, xs


def named_of_all(
    p: ir.Binder, body: ir.Apply, xs: ir.Expr, base: str, taken: set[str], named: Mapped, then: Mapped
) -> ir.Apply:
    """What a function of rows names first, as `named` makes it of all rows, with a name like `base`, and what `then`
    makes of the rest.
    """
    assert isinstance(body.function, ir.Lambda)
    of_rows = named(*one_side(p, body.argument, xs))
    s = ir.Var(fresh_name(base, taken), type_of(of_rows))
    rest = ir.PairBinder(body.function.binder, p), body.function.body, ir.Zip(s, xs)
    return ir.Apply(ir.Lambda(s, then(*one_side(*rest))), of_rows)


def variables_of(binder: ir.Binder) -> frozenset[ir.Var]:
    """What a binder binds."""
    return frozenset(ir.bound_variables(binder))


def zipped(binder: ir.Binder, array: ir.Expr) -> Iterator[tuple[frozenset[ir.Var], ir.Expr]]:
    """The arrays of which a map takes elements, with the variables that these are bound to."""
    return ((variables_of(part), of) for part, of in bound_parts(binder, array))


def columns_of(xs: ir.Expr) -> ir.Transpose | None:
    """The columns of a matrix among the arrays that are zipped, whose elements lie apart, if there are any.

    Those of a matrix of rows are none: the numbers of such an element lie side by side.
    """
    match xs:
        case ir.Transpose() if is_data(type_of(xs).element.element):  # pyright: ignore[reportAttributeAccessIssue]
            return xs
        case ir.Zip(first=first, second=second):
            return columns_of(first) or columns_of(second)
    return None


def length_of(array: ir.Expr) -> int:
    """The length of an array, 0 if that is open."""
    t = type_of(array)
    return (t.size.constant or 0) if isinstance(t, Array) else 0
