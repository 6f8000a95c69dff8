"""Plans: how the loops of a stage are cut for a CPU, read off the stage itself, so that no search need find them.

A plan is data: the facts that steer each phase, and the sketch at which the phase ends. The small rules of the book
lead there in an e-graph (`lift_egraph.guided.stages`), so what a plan leads to is as right as they are, and a plan that
they cannot reach is given up. Reductions inside of maps have plans: rows of partial results are kept in registers, so
that an element that is read once serves a whole block, and what is read in vectors is packed in the order of its use.

A user's plans come from a function like `plans`, which may yield some of ours for another device, or make its own::

    def narrow(term, device):
        yield from plans(term, replace(device, vector_width=2))

    optimize(program, plans=narrow)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lift_egraph import rules as book
from lift_egraph.codegen.devices import Cpu, Device, Gpu
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.matcher import Weigh, term_size
from lift_egraph.guided.weights import in_lanes
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import WIDTHS, Array, DataType, Scalar, array

BLOCKS = (12, 8, 6, 16, 4, 5, 3, 2)  # rows whose partial results are kept in registers
ACCUMULATORS = 12  # vectors of partial results that hide the latency of sums
LONG, CHUNKS = 1 << 15, 8  # the length from which an array is reduced in chunks, and how many for each compute unit
GPU_BLOCKS, GPU_WIDTH = (8, 4), 4  # the same on a GPU, and the width of its vectors
GROUPS, ITEMS, FEW = 2, (512, 256, 128, 64), 16  # on a GPU: groups for each unit, their work-items and last results
SPARE = 3  # registers beside the partial results

PLANNED = {
    "packing": book.packing,
    "blocking": book.blocking,
    "columns": book.columns,
    "lanes": book.lanes,
    "groups": book.groups,
}


@dataclass(frozen=True)
class Step:
    """One phase of a plan, what steers it, the sketch that ends it, and which term that satisfies it is taken.

    Its name is that of the phase in `PLANNED`.
    """

    name: str
    sketch: sk.Sketch
    tiling: Tiling
    widths: tuple[int, ...] = ()
    weigh: Weigh = term_size


@dataclass(frozen=True)
class Plan:
    """The phases that lead from a stage to a high-level term, and the widths of vectors to lower that with.

    The work of each element may be `shared` by the items of a group.
    """

    steps: tuple[Step, ...]
    widths: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True)
class Nest:
    """A reduction with the arrays of the maps around it, from outside to inside, and what these bind."""

    maps: tuple[ir.Expr, ...]
    bound: tuple[frozenset[ir.Var], ...]
    length: int
    result: DataType
    reads_map: bool

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
    """A phase of a plan."""
    return Phase(name, PLANNED[name], book.simplification, tiling, widths, limits)


def plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for a stage on a device, the most promising first."""
    alike: dict[tuple[tuple[ir.Expr, ...], int, DataType], Nest] = {}
    for nest in nests(term):
        known = alike.setdefault((nest.maps, nest.length, nest.result), nest)
        if nest.reads_map and not known.reads_map:
            alike[nest.maps, nest.length, nest.result] = nest
    if isinstance(device.throughput, Gpu):
        lets = any(isinstance(t, ir.Apply) for t in ir.subterms(term))
        for nest in alike.values():
            if len(nest.maps) > 1:
                yield from _products(nest, GPU_WIDTH, GPU_BLOCKS)
            elif not (nest.maps and isinstance(nest.maps[-1], ir.Transpose)):
                yield from _groups(nest, device, lets)
        return
    cpu = device.throughput
    for nest in alike.values():
        made: list[Plan] = []
        if len(nest.maps) > 1 and (width := _width(_length(nest.maps[-1]), device, cpu)):
            made += _products(nest, width, _blocks(width, device, cpu))
        in_columns = bool(nest.maps) and isinstance(nest.maps[-1], ir.Transpose)
        for others in () if made else (_columns, _lanes) if in_columns else (_lanes, _columns):
            made += others(nest, device, cpu)
        yield from made


def nests(term: ir.Expr) -> Iterator[Nest]:
    """The reductions of a stage to scalars, each with the maps that repeat it."""

    def walk(part: ir.Part, maps: tuple[ir.Expr, ...], bound: tuple[frozenset[ir.Var], ...]) -> Iterator[Nest]:
        if isinstance(part, ir.Reduce):
            result, length = type_of(part.initial), _length(part.array)
            if isinstance(result, Scalar) and length:
                yield Nest(maps, bound, length, result, isinstance(part.array, ir.Map))
        for inner in ir.parts(part):
            if isinstance(part, ir.Map) and inner is part.function:
                binder = part.function.binder if isinstance(part.function, ir.Lambda) else None
                own = frozenset(ir.bound_variables(binder)) if binder else frozenset[ir.Var]()
                yield from walk(inner, (*maps, part.array), (*bound, own))
            else:
                yield from walk(inner, maps, bound)

    yield from walk(term, (), ())


def _length(array: ir.Expr) -> int:
    t = type_of(array)
    return (t.size.constant or 0) if isinstance(t, Array) else 0


def _written(array: ir.Expr) -> sk.Sketch:
    """The sketch of an input or a variable, also in another layout; any array otherwise."""
    match array:
        case ir.Input(name=name):
            return sk.input_(name)
        case ir.Var():
            return sk.variable()
        case ir.Transpose(array=inner):
            return sk.transpose(_written(inner))
        case ir.Zip(first=first, second=second):
            return sk.zip_(_written(first), _written(second))
        case _:
            return sk.ANY


def _width(length: int, device: Device, cpu: Cpu) -> int | None:
    """Two hardware vectors at once, or less if the length or the language asks for it."""
    lanes = min(device.vector_width, cpu.most_lanes)
    return next((w for w in (2 * lanes, lanes, lanes // 2) if 1 < w <= WIDTHS[-1] and length % w == 0), None)


def _blocks(width: int, device: Device, cpu: Cpu) -> list[int]:
    """How many vectors of partial results registers hold beside each other, the best number first."""
    lanes = min(device.vector_width, cpu.most_lanes)
    registers, parts = (32 if lanes >= 16 else 16) - SPARE, max(1, width // lanes)
    fitting = [b for b in BLOCKS if b * parts <= registers]
    return sorted(fitting, key=lambda b: abs(b * parts - ACCUMULATORS))


def _lanes(nest: Nest, device: Device, cpu: Cpu) -> Iterator[Plan]:
    """Reductions of a length, whose partial results are the lanes of a vector: of a long one, by chunks."""
    long = nest.length >= LONG and not nest.maps
    chunk = chunk_size(nest.length, device.compute_units * CHUNKS) if long else nest.length
    width = _width(chunk or 1, device, cpu)
    if chunk is None or width is None or width >= chunk:
        return
    element = sk.map_() if nest.reads_map else sk.ANY
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=chunk // width))
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.transpose(sk.split(width))))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=width))
    if long:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), chunk: (width,)}
    else:
        tiling = {chunk: (width,)}
    yield Plan((Step("lanes", sketch, tiling, (width,), in_lanes(tiling, width)),), (width,))


def _columns(nest: Nest, device: Device, cpu: Cpu) -> Iterator[Plan]:
    """Blocks of several vectors of columns, whose elements lie side by side in each row that is reduced."""
    columns = _length(nest.maps[-1]) if nest.maps else 1
    width = _width(columns, device, cpu)
    if width is None:
        return
    for count in [c for c in (8, 4) if columns % (c * width) == 0 and c * width < columns][:1]:
        block = count * width
        element = sk.map_(sk.map_(length=count)) if nest.reads_map else sk.ANY
        inner = sk.of_type(array(nest.result, count), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
        vectors = sk.contains(sk.map_(sk.contains(inner), sk.transpose(sk.split(width)), length=width))
        step = Step("columns", sk.contains(sk.map_(vectors, sk.split(block))), {columns: (block,), block: (count,)})
        yield Plan((step,), (width,))


def _products(nest: Nest, width: int, blocks: Iterable[int]) -> Iterator[Plan]:
    """Blocks of rows, of the first two lengths that fit, times vectors of columns."""
    rows, columns = _length(nest.rows), _length(nest.maps[-1])
    for block in [b for b in blocks if rows % b == 0 and b < rows][:2]:
        element = sk.map_(sk.map_(length=block)) if nest.reads_map else sk.ANY
        inner = sk.of_type(array(nest.result, block), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
        across = sk.contains(sk.map_(sk.contains(inner), length=columns))
        sketch = sk.contains(sk.map_(across, sk.split(block, _written(nest.rows)), length=rows // block))
        blocking = Step("blocking", sketch, {rows: (block,)})
        packing = Step("packing", sk.contains(sk.to_memory("global")), {}, (width,))
        packed, direct = Plan((packing, blocking), (width,)), Plan((blocking,), (width,))
        yield from (direct, packed) if isinstance(nest.maps[-1], ir.Transpose) else (packed, direct)


def _groups(nest: Nest, device: Device, lets: bool) -> Iterator[Plan]:
    """Reductions by the work-items of a group, neighbours of neighbouring elements, and then of what these have: of a
    long one, by chunks.
    """
    long = nest.length >= LONG and not nest.maps
    chunk = chunk_size(nest.length, device.compute_units * GROUPS) if long else nest.length
    if chunk is None:
        return
    for items in [
        n
        for n in (ITEMS if long else ITEMS[1:])
        if chunk % n == 0 and chunk // n not in (1, n) and n != nest.length // chunk
    ][:2]:
        parts, count = items // FEW, nest.length // chunk
        element = sk.map_() if nest.reads_map else sk.ANY
        own = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=chunk // items))
        shared = sk.map_(own, sk.transpose(sk.split(items)), length=items)
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.split(parts, shared), length=FEW)))
        tiling: Tiling = {chunk: (items,), items: (parts,)}
        if long:
            sketch = sk.contains(sk.map_(sketch, sk.split(chunk), length=count))
            tiling = {nest.length: (chunk,), **tiling}
        weigh = in_lanes(tiling, items, (chunk, items), lets=lets)
        yield Plan((Step("groups", sketch, tiling, (), weigh),), (), shared=True)
