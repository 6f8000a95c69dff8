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

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice, product

from lift_egraph import rules as book
from lift_egraph.codegen.devices import Cpu, Device, Gpu
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.matcher import Weigh, term_size
from lift_egraph.guided.weights import in_lanes, lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import F32, WIDTHS, Array, DataType, Scalar, array

BLOCKS = (12, 8, 6, 16, 4, 5, 3, 2)  # rows whose partial results are kept in registers
ACCUMULATORS = 12  # vectors of partial results that hide the latency of sums
LONG, CHUNKS = 1 << 15, 8  # the length from which an array is reduced in chunks, and how many for each compute unit
GPU_BLOCKS, GPU_WIDTH = (8, 4), 4  # the same on a GPU, and the width of its vectors
GROUPS, ITEMS, FEW = 2, (512, 256, 128, 64), 16  # on a GPU: groups for each unit, their work-items and last results
SPARE = 3  # registers beside the partial results
TILE_ITEMS, TILE_DEPTHS = ((8, 32), (16, 32), (8, 16), (16, 16), (4, 32)), (16, 8)  # of a group; of a tile
TILE_ROWS, TILE_COLUMNS = (4, 8, 16), (4, 8)  # of a work-item whose group keeps tiles in local memory
TILE_RESULTS, TILE_PLANS = (32, 128), 4  # results of a work-item, from and to; how many plans are tried
READS, LATENCY = 2.0, 64.0  # what reads of local memory cost beside arithmetic; work-items that hide half of latency

PLANNED = {
    "packing": book.packing,
    "tiling": book.tiling,
    "items": book.tiling,
    "blocking": book.blocking,
    "columns": book.columns,
    "lanes": book.lanes,
    "groups": book.groups,
    "loops": book.loops,
    "levels": book.levels,
    "first_tile": book.first_tile,
    "second_tile": book.second_tile,
    "registers": book.registers,
}
COPYING = {"first_tile": ("local",), "second_tile": ("local",)}  # the memory to which a phase copies data


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
    """The phases that lead from a stage to another term, and the widths of vectors to lower that with.

    `lowered_by` names the phase that lowers what they lead to: ``sharing`` where the items of a group share the work of
    each element, none where it is a low-level term. By its `recipe`, if it has one, a plan is made again with other
    numbers.
    """

    steps: tuple[Step, ...]
    widths: tuple[int, ...]
    lowered_by: str | None = "lowering"
    recipe: Recipe | None = None


@dataclass(frozen=True)
class Recipe:
    """How a plan is made of a nest and numbers: for other sizes of the program too.

    Attributes
    ----------
    make
        Makes the plan, a function of a module.
    place
        Of the nest among those of the term, in the order of `nests`.
    numbers
        Those of the plan by their names: its parameters. Those that are called ``width`` are widths of vectors.
    multiples
        What a number is a multiple of.
    """

    make: Callable[[Nest, Mapping[str, int]], Plan]
    place: int
    numbers: tuple[tuple[str, int], ...]
    multiples: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> object:
        """What plans have in common that differ in their numbers alone."""
        return self.make, self.place, tuple(name for name, _ in self.numbers)

    def at(self, term: ir.Expr, numbers: Mapping[str, int]) -> Plan:
        """The plan for a term, the same program at any sizes, with other numbers."""
        nest = next(islice(nests(term), self.place, None))
        return replace(self.make(nest, numbers), recipe=replace(self, numbers=tuple(numbers.items())))


def _plan_of(
    make: Callable[[Nest, Mapping[str, int]], Plan],
    nest: Nest,
    multiples: tuple[tuple[str, str], ...] = (),
    **numbers: int,
) -> Plan:
    """The plan with these numbers, which knows how it was made."""
    return replace(make(nest, numbers), recipe=Recipe(make, nest.place, tuple(numbers.items()), multiples))


@dataclass(frozen=True)
class Nest:
    """A reduction with the arrays of the maps around it, from outside to inside, and what these bind.

    `place` counts those of a term.
    """

    maps: tuple[ir.Expr, ...]
    bound: tuple[frozenset[ir.Var], ...]
    length: int
    result: DataType
    reads_map: bool
    place: int = field(default=0, compare=False)

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
    return Phase(name, PLANNED[name], book.simplification, tiling, widths, limits, COPYING.get(name, ()))


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
                yield from _tiles(nest, device, device.throughput)
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
                yield Nest(maps, bound, length, result, isinstance(part.array, ir.Map), next(places))
        for inner in ir.parts(part):
            if isinstance(part, ir.Map) and inner is part.function:
                binder = part.function.binder if isinstance(part.function, ir.Lambda) else None
                own = frozenset(ir.bound_variables(binder)) if binder else frozenset[ir.Var]()
                yield from walk(inner, (*maps, part.array), (*bound, own))
            else:
                yield from walk(inner, maps, bound)

    places = count()
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
    yield _plan_of(_in_lanes, nest, (("chunk", "width"),), width=width, **({"chunk": chunk} if long else {}))


def _in_lanes(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial results in the lanes of vectors of a `width`, of each `chunk` if there is one."""
    width, chunk = numbers["width"], numbers.get("chunk", nest.length)
    element = sk.map_() if nest.reads_map else sk.ANY
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=chunk // width))
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.transpose(sk.split(width))))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=width))
    tiling: Tiling = {chunk: (width,)}
    if "chunk" in numbers:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), **tiling}
    return Plan((Step("lanes", sketch, tiling, (width,), in_lanes(tiling, width)),), (width,))


def _columns(nest: Nest, device: Device, cpu: Cpu) -> Iterator[Plan]:
    """Blocks of several vectors of columns, whose elements lie side by side in each row that is reduced."""
    columns = _length(nest.maps[-1]) if nest.maps else 1
    width = _width(columns, device, cpu)
    if width is None:
        return
    for vectors in [c for c in (8, 4) if columns % (c * width) == 0 and c * width < columns][:1]:
        yield _plan_of(_in_columns, nest, vectors=vectors, width=width)


def _in_columns(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Blocks of some `vectors` of a `width`."""
    columns, held, width = _length(nest.maps[-1]), numbers["vectors"], numbers["width"]
    block = held * width
    element = sk.map_(sk.map_(length=held)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, held), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    vectors = sk.contains(sk.map_(sk.contains(inner), sk.transpose(sk.split(width)), length=width))
    step = Step("columns", sk.contains(sk.map_(vectors, sk.split(block))), {columns: (block,), block: (held,)})
    return Plan((step,), (width,))


def _products(nest: Nest, width: int, blocks: Iterable[int]) -> Iterator[Plan]:
    """Blocks of rows, of the first two lengths that fit, times vectors of columns."""
    rows = _length(nest.rows)
    for block in [b for b in blocks if rows % b == 0 and b < rows][:2]:
        packed, direct = (_plan_of(make, nest, block=block, width=width) for make in (_packed_product, _product))
        yield from (direct, packed) if isinstance(nest.maps[-1], ir.Transpose) else (packed, direct)


def _product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A `block` of rows times vectors of a `width`."""
    rows, columns, block = _length(nest.rows), _length(nest.maps[-1]), numbers["block"]
    element = sk.map_(sk.map_(length=block)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, block), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    across = sk.contains(sk.map_(sk.contains(inner), length=columns))
    sketch = sk.contains(sk.map_(across, sk.split(block, _written(nest.rows)), length=rows // block))
    return Plan((Step("blocking", sketch, {rows: (block,)}),), (numbers["width"],))


def _packed_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with what is read in vectors packed before in the order of its use."""
    direct = _product(nest, numbers)
    packing = Step("packing", sk.contains(sk.to_memory("global")), {}, direct.widths)
    return replace(direct, steps=(packing, *direct.steps))


def _tiles(nest: Nest, device: Device, gpu: Gpu) -> Iterator[Plan]:
    """Products of matrices whose groups keep tiles of both in local memory, those that promise most first."""
    if not (1 < len(nest.maps) < 4 and nest.reads_map and all(map(_is_stored, (nest.rows, nest.maps[-1])))):
        return
    rows, columns, found = _length(nest.rows), _length(nest.maps[-1]), list[tuple[float, dict[str, int]]]()
    for (high, wide), tall, broad, depth in product(TILE_ITEMS, TILE_ROWS, TILE_COLUMNS, TILE_DEPTHS):
        items, tile = high * wide, (high * tall, wide * broad)
        parts = zip((rows, columns, nest.length), (*tile, depth), strict=True)
        fits = all(n % chunk == 0 and chunk < n for n, chunk in parts)
        held = TILE_RESULTS[0] <= tall * broad <= TILE_RESULTS[1] and items <= device.max_work_group
        if fits and held and all(n * depth % items == 0 for n in tile) and sum(tile) * depth * 4 <= device.local_memory:
            rounds = -(-(rows // tile[0] * (columns // tile[1])) // device.compute_units)
            running = min(items * rounds, gpu.registers // (2 * tall * broad))
            reads = 1 + READS * (1 / broad + broad / GPU_WIDTH / tall)
            numbers = {"tall": tall, "broad": broad, "high": high, "wide": wide, "depth": depth, "width": GPU_WIDTH}
            found.append((rounds * tile[0] * tile[1] * reads * (1 + LATENCY / running), numbers))
    multiples = (("tall", "wide"), ("tall", "width"), ("broad", "high"), ("broad", "width"), ("depth", "width"))
    for _, numbers in sorted(found, key=lambda made: made[0])[:TILE_PLANS]:
        items, width = numbers["high"] * numbers["wide"], numbers["width"]
        first, second = (numbers[n] * numbers[m] * numbers["depth"] for n, m in (("high", "tall"), ("wide", "broad")))
        make = _InTiles(first % (items * width) == 0, second % (items * width) == 0)
        yield _plan_of(make, nest, multiples, **numbers)


def _is_stored(array: ir.Expr) -> bool:
    """Whether an array is a matrix of floats that stands in memory, by rows or by columns."""
    t = type_of(array)
    is_matrix = isinstance(t, Array) and isinstance(t.element, Array) and t.element.element == F32
    return is_matrix and isinstance(array.array if isinstance(array, ir.Transpose) else array, ir.Input | ir.Var)


@dataclass(frozen=True)
class _InTiles:
    """Groups of `high` times `wide` work-items, with `tall` times `broad` results each.

    They read from tiles in local memory, copied for `depth` elements of the sums at a time, in vectors or as scalars.
    """

    first_in_vectors: bool
    second_in_vectors: bool

    def __call__(self, nest: Nest, numbers: Mapping[str, int]) -> Plan:
        """The plan for a nest."""
        tall, broad, high, wide = (numbers[name] for name in ("tall", "broad", "high", "wide"))
        depth, width, items, length = numbers["depth"], numbers["width"], high * wide, nest.length
        lengths, tile = (_length(nest.rows), _length(nest.maps[-1])), (high * tall, wide * broad)
        counts, chunks = (lengths[0] // tile[0], lengths[1] // tile[1]), length // depth

        def level(name: str) -> Callable[..., sk.PatternSketch]:
            return partial(sk.map_level, name)

        def block(held: sk.Sketch) -> sk.Sketch:
            """The tiles of groups, put together of the blocks of work-items."""
            return sk.contains(together(counts, sk.contains(together((high, wide), held))))

        sums = sk.reduce_(
            sk.ANY, sk.ANY, sk.map_(sk.map_(sk.map_(length=broad), length=tall), sk.zip_()), length=length
        )
        tiles = sk.zip_(*(sk.of_type(array(F32, chunks, depth, n), sk.split(depth)) for n in tile))

        def loop(
            inner: sk.Sketch, high_map: Callable[..., sk.PatternSketch], wide_map: Callable[..., sk.PatternSketch]
        ):
            """A loop over the tiles, in which each work-item goes on with its block."""
            items = high_map(sk.contains(wide_map(sk.contains(inner), length=wide)), length=high)
            return sk.reduce_seq(sk.contains(items), sk.ANY, tiles, length=chunks)

        outside = loop(sk.reduce_seq(length=depth), sk.map_, sk.map_)
        lanes = sk.map_seq(sk.contains(sk.map_seq(sk.vectorize(width), length=broad // width)), length=tall)
        by_items = loop(sk.reduce_seq(sk.contains(lanes), length=depth), level("mapLcl(1)"), level("mapLcl(0)"))
        in_groups = together(counts, sk.contains(by_items), level("mapWrg(1)"), level("mapWrg(0)"))
        for _ in nest.maps[2:]:
            in_groups = sk.map_level("mapWrg(2)", sk.contains(in_groups))
        copies: dict[int, tuple[int, ...]] = {items: (wide,)}
        for n in tile:
            for elements in (n * depth, n * depth // width):
                copies[elements] = tuple(dict.fromkeys((*copies.get(elements, ()), items)))

        def copied(matrix: ir.Expr, n: int, in_vectors: bool) -> sk.Sketch:
            """A tile in local memory, read in the order in which it is stored."""
            by_rows, rounds = isinstance(matrix, ir.Transpose), sk.contains(sk.map_seq(sk.map_level("mapLcl(1)")))
            if in_vectors:
                rounds = sk.split(n if by_rows else depth, sk.as_scalar(rounds))
            return sk.to_memory("local", rounds if by_rows else sk.transpose(rounds))

        first = copied(nest.rows, tile[0], self.first_in_vectors)
        second = copied(nest.maps[-1], tile[1], self.second_in_vectors)
        held = sk.map_level("mapLcl(0)", sk.contains(sk.to_memory("private")))
        stored = sk.map_level("mapLcl(1)", sk.contains(sk.map_level("mapLcl(0)", sk.map_seq(sk.as_scalar()))))
        written = replace(stored, parts=(stored.parts[0], sk.reduce_seq(sk.contains(held))))
        grid = sk.contains(together(counts, sk.map_(sk.map_(length=tile[1]), length=tile[0])))
        steps = (
            Step("tiling", grid, _tilings(lengths, tile)),
            Step("items", block(sk.map_(sk.map_(length=broad), length=tall)), _tilings(tile, (tall, broad))),
            Step("blocking", block(sums), {}),
            Step("loops", sk.contains(together(counts, sk.contains(outside))), {length: (depth,)}),
            Step("levels", sk.contains(in_groups), {}, (width,), lowered),
            Step("first_tile", sk.contains(first), copies, (width,)),
            Step("second_tile", sk.contains(sk.let(second, sk.contains(first))), copies, (width,)),
            Step("registers", sk.contains(sk.map_level("mapWrg(0)", sk.contains(written))), {}, (width,)),
        )
        return Plan(steps, (width,), lowered_by=None)


def together(
    counts: tuple[int, int],
    block: sk.Sketch,
    outer: Callable[..., sk.PatternSketch] = sk.map_,
    inner: Callable[..., sk.PatternSketch] = sk.map_,
) -> sk.PatternSketch:
    """A matrix put together of blocks: ``join (map (map join ∘ transpose ∘ map block) …)``."""
    return sk.join(outer(sk.map_(sk.join(), sk.transpose(inner(block, length=counts[1]))), length=counts[0]))


def _tilings(lengths: tuple[int, int], chunks: tuple[int, int]) -> Tiling:
    """The facts that let arrays of two lengths be split, each by a chunk."""
    (rows, columns), (tall, broad) = lengths, chunks
    return {rows: tuple({tall, broad})} if rows == columns else {rows: (tall,), columns: (broad,)}


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
        yield Plan((Step("groups", sketch, tiling, (), weigh),), (), lowered_by="sharing")
