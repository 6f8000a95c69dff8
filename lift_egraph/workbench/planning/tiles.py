"""Plans for products of matrices on GPUs, whose groups keep tiles of both in local memory.

The loops are cut twice, for groups and for work-items; the sums become loops outside of the work-items, over views of
tiles; then the levels of the device, the copies, and what is held in registers follow, each in a phase of its own.

Where there are few tiles, the sums of each are in slices before that: a slice belongs to other items of the group, and
what they have of all slices meets in local memory, so that a unit has warps enough to wait for none.

What else is computed of each sum, as ``alpha * s``, is a loop of the same work-items over what they hold in registers.

Source: 000 §5.3.1 and Figure 5.5; the shapes of CLBlast's and CUTLASS's kernels, whose slices are "sliced K" there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from operator import itemgetter

from lift_egraph.codegen.devices import REGISTER, Device
from lift_egraph.codegen.passes.prefetch import LEAST_IN_TURN, MOST_HELD
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.types import array
from lift_egraph.rules.macros import chunk_facts, untiled
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, nests, plan_of
from lift_egraph.workbench.planning.products import Product, product_of

TILE_ITEMS = ((16, 16), (8, 32), (16, 32), (8, 16), (16, 8), (4, 32), (8, 8), (4, 16), (4, 8))  # of a group
LEAST_GROUP = 64  # work-items of a group, with all slices
TILE_DEPTHS = (16, 8)  # of a tile
TILE_ROWS, TILE_COLUMNS = (4, 8, 16), (4, 8, 16)  # of a work-item whose group keeps tiles in local memory
TILE_RESULTS = (32, 128)  # registers of a work-item for them, from and to
TILE_SLICES = (1, 2, 4)  # of the sums of a tile, each of other work-items
FEW_RESULTS = 16  # registers, from so many where the matrices are views, whose plans have no other points
TILE_PLANS, TILE_ALIKE = 6, 2  # how many plans are tried, and of these with blocks of one shape
SURE_PLANS = 2  # of these, at least, with no more local memory than OpenCL reports
READS, LATENCY = 3.0, 128.0  # what reads of local memory cost beside arithmetic; items that hide half of latency
MEETING = 256.0  # what it costs to add the results of one more slice, beside an element of the sums
PADDED = 9 / 8  # tiles with what stands behind their rows
MULTIPLES = (("tall", "wide"), ("tall", "width"), ("broad", "high"), ("broad", "width"), ("depth", "width"))


def tiles(nest: Nest, device: Device) -> Iterator[Plan]:
    """Products of matrices whose groups keep tiles of both in local memory, those that promise most first."""
    found, is_padded = _by_promise(nest, device)
    for numbers in _first(found):
        yield in_tiles(nest, numbers, is_padded)


def further_tiles(nest: Nest, device: Device) -> Iterator[Plan]:
    """What `tiles` leaves out, those that promise most first: the best of all may be some percent faster."""
    found, is_padded = _by_promise(nest, device)
    first = _first(found)
    for _, numbers in found:
        if numbers not in first:
            yield in_tiles(nest, numbers, is_padded)


def _by_promise(nest: Nest, device: Device) -> tuple[list[tuple[bool, dict[str, int]]], bool]:
    """The numbers that fit a product, each after whether memory is sure to be enough; and whether it is padded."""
    factors = product_of(nest)
    if factors is None or not device.widths:
        return [], False
    found = _fitting(factors, device)
    if factors.views and not found:
        factors = factors.padded
        found = _fitting(factors, device)
    found.sort(key=itemgetter(0, 1))
    return [(is_sure, numbers) for *_, is_sure, numbers in found], any(factors.padding)


def _first(found: Sequence[tuple[bool, dict[str, int]]]) -> list[dict[str, int]]:
    """Those in front, various ones, of which some are sure to have enough memory."""
    first = _various([numbers for _, numbers in found])[:TILE_PLANS]
    sure = _various([numbers for is_sure, numbers in found if is_sure], 1)[:SURE_PLANS]
    others = [numbers for numbers in sure if numbers not in first]
    return [*first[: TILE_PLANS - len(others)], *others]


def has_tiles_of_views(term: ir.Expr, device: Device) -> bool:
    """Whether a term has products of views with tiles for groups, whatever the lengths of its loops."""
    if not device.has_groups:
        return False
    products = ((nest, product_of(nest)) for nest in nests(term))
    return any(factors and factors.views and any(tiles(nest, device)) for nest, factors in products)


def _fitting(factors: Product, device: Device) -> list[tuple[float, int, bool, dict[str, int]]]:
    """The numbers that fit, each after its cost, how tall the blocks are, and whether memory is sure to be enough."""
    words, found = factors.words, list[tuple[float, int, bool, dict[str, int]]]()
    vector = max(device.widths) // words
    if vector < 2:
        return found
    wide_lanes = max(vector // TILE_COLUMNS[0], 1)
    rows, columns, products = factors.rows, factors.columns, factors.products
    shapes = product(TILE_ITEMS, TILE_ROWS, TILE_COLUMNS, TILE_DEPTHS, TILE_SLICES)
    for (high, wide), tall, lanes, depth, slices in shapes:
        broad, length = lanes * wide_lanes, factors.length // slices
        items, tile = high * wide, (high * tall, wide * broad)
        parts = zip((rows, columns, length), (*tile, depth), strict=True)
        fits = all(n % chunk == 0 and chunk < n for n, chunk in parts)
        fits &= factors.length % slices == tall % slices == 0
        least = FEW_RESULTS if factors.views or slices > 1 else TILE_RESULTS[0]
        held = least <= tall * lanes * words <= TILE_RESULTS[1]
        held &= LEAST_GROUP <= slices * items <= device.max_work_group
        in_turn = tall * broad * words >= LEAST_IN_TURN  # then what is copied ahead must fit into registers too
        if in_turn:
            ahead = depth == max(TILE_DEPTHS) // words and sum(tile) * depth * words <= MOST_HELD * items
            near = max(2 // words, 1)  # groups on a unit: sums of doubles take twice as long, and hide as much
            held &= ahead and slices == 1 and near * items <= device.resident(2 * tall * broad * words)
        elements = sum(tile) * depth * (1 + in_turn) + (prod(tile) if slices > 1 else 0)
        shared = slices * REGISTER * words * elements * PADDED
        if fits and held and all(n * depth % items == 0 for n in tile) and shared <= device.most_local:
            rounds = -(-products * (rows // tile[0]) * (columns // tile[1]) // device.compute_units)
            near = max(int(device.level("group").local_memory / shared), 1)  # groups on a unit
            running = min(slices * items * min(rounds, near), device.resident(2 * tall * broad * words)) * (1 + in_turn)
            reads = 1 + READS * (1 / tall + 1 / broad / 2)  # a row of items reads the same of the first matrix
            element = reads * (1 + LATENCY / running) + MEETING * (slices - 1) / factors.length
            numbers = {"tall": tall, "broad": broad, "high": high, "wide": wide, "depth": depth, "width": vector}
            numbers |= {"slices": slices} if slices > 1 else {}
            found.append((rounds * prod(tile) * element, tall, shared <= device.local_memory, numbers))
    return found


def in_tiles(nest: Nest, numbers: Mapping[str, int], is_padded: bool = False) -> Plan:
    """The plan with these numbers for a product of matrices, whose tiles are copied in vectors where they can be.

    Views may be padded to what tiles divide.

    Lines of odd lengths are read element by element, neighbours by neighbouring items: their vectors are not aligned.
    """
    factors = product_of(nest)
    assert factors is not None
    items, width = numbers["high"] * numbers["wide"], numbers["width"]
    first, second = (numbers[n] * numbers[m] * numbers["depth"] for n, m in (("high", "tall"), ("wide", "broad")))
    across = not factors.views or not factors.lies_across[1]
    aligned = [pitch % width == 0 for pitch in factors.pitches]
    in_vectors = [n % (items * width) == 0 for n in (first, second)]
    make = InTiles(aligned[0] and in_vectors[0], across and aligned[1] and in_vectors[1], is_padded)
    return plan_of(make, nest, MULTIPLES + (("tall", "slices"),) * ("slices" in numbers), **numbers)


def _various(points: list[dict[str, int]], most: int = TILE_ALIKE) -> list[dict[str, int]]:
    """Those in front, but not too many with blocks of one shape."""
    alike: dict[tuple[int, int, int], list[dict[str, int]]] = {}
    for point in points:
        alike.setdefault((point["tall"], point["broad"], point.get("slices", 1)), []).append(point)
    chosen = [point for found in alike.values() for point in found[:most]]
    return [point for point in points if point in chosen]


@dataclass(frozen=True)
class InTiles:
    """Groups of `high` times `wide` work-items, with `tall` times `broad` results each.

    They read from tiles in local memory, copied for `depth` elements of the sums at a time, in vectors or as scalars.
    """

    first_in_vectors: bool
    second_in_vectors: bool
    is_padded: bool = False

    def __call__(self, nest: Nest, numbers: Mapping[str, int]) -> Plan:
        """The plan for a nest."""
        factors = product_of(nest)
        assert factors is not None
        return self.of(factors.padded if self.is_padded else factors, numbers)

    def of(self, factors: Product, numbers: Mapping[str, int]) -> Plan:
        """The plan for a product of matrices."""
        tall, broad, high, wide = (numbers[name] for name in ("tall", "broad", "high", "wide"))
        slices = numbers.get("slices", 1)
        depth, width, items, length = numbers["depth"], numbers["width"], high * wide, factors.length // slices
        lengths, tile = (factors.rows, factors.columns), (high * tall, wide * broad)
        counts, chunks = (lengths[0] // tile[0], lengths[1] // tile[1]), length // depth

        def level(name: str) -> sk.MapSketch:
            return partial(sk.map_level, name)

        def in_order(both: Sequence[sk.Sketch]) -> Sequence[sk.Sketch]:
            """What belongs to both matrices, as their elements stand in products."""
            return both[::-1] if factors.changes_places else both

        def block(held: sk.Sketch) -> sk.Sketch:
            """The tiles of groups, put together of the blocks of work-items."""
            return sk.contains(untiled(counts, sk.contains(untiled((high, wide), held))))

        sums = sk.reduce_(
            sk.ANY, sk.ANY, sk.map_(sk.map_(sk.map_(length=broad), length=tall), sk.zip_()), length=length
        )
        of_tiles = [sk.of_type(array(factors.element, chunks, depth, n), sk.split(depth)) for n in tile]
        tiles = sk.zip_(*in_order(of_tiles))

        def loop(inner: sk.Sketch, arrays: sk.Sketch, high_map: sk.MapSketch, wide_map: sk.MapSketch) -> sk.Sketch:
            """A loop in which each work-item goes on with its block."""
            items = high_map(sk.contains(wide_map(sk.contains(inner), length=wide)), length=high)
            return sk.contains(sk.reduce_seq(sk.contains(items), sk.ANY, arrays, length=chunks))

        def outside(arrays: sk.Sketch) -> sk.Sketch:
            return sk.contains(untiled(counts, loop(sk.reduce_seq(length=depth), arrays, sk.map_, sk.map_)))

        lanes = sk.map_seq(sk.contains(sk.map_seq(sk.vectorize(width), length=broad // width)), length=tall)
        item = sk.reduce_seq(sk.contains(lanes), length=depth)
        by_items = loop(item, tiles, level("mapLcl(1)"), level("mapLcl(0)"))
        own_map = not factors.is_whole and slices == 1  # of the work-items, for what follows each sum
        if own_map:
            each = sk.map_level("mapLcl(0)", sk.contains(lanes), length=wide)
            by_items = sk.contains(sk.map_level("mapLcl(1)", sk.contains(each), by_items, length=high))
        in_groups = untiled(counts, by_items, outer=level("mapWrg(1)"), inner=level("mapWrg(0)"))
        if factors.products > 1:
            in_groups = sk.map_level("mapWrg(2)", sk.contains(in_groups))
        copies: Tiling = {items: (wide,)}
        for n in tile:
            for elements in (n * depth, n * depth // width):
                copies = merged(copies, {elements: (items,)})

        def copied(lies_across: bool, n: int, in_vectors: bool) -> sk.Sketch:
            """A tile in local memory, read in the order in which it is stored."""
            rounds: sk.Sketch = sk.contains(sk.map_seq(sk.map_level("mapLcl(1)", length=high)))
            if in_vectors:
                rounds = sk.split(n if lies_across else depth, sk.as_scalar(rounds))
            return sk.to_memory("local", rounds if lies_across else sk.transpose(rounds))

        in_vectors = self.first_in_vectors, self.second_in_vectors
        first, second = in_order([*map(copied, factors.lies_across, tile, in_vectors)])
        vectors = sk.contains(sk.to_memory("private")) if tall % width == 0 else sk.ANY
        held = sk.map_level("mapLcl(0)", vectors)
        by_item = sk.map_level("mapLcl(0)", sk.ANY if own_map else sk.map_seq(sk.as_scalar()))
        stored = sk.map_level("mapLcl(1)", sk.contains(by_item))
        written = replace(stored, parts=(stored.parts[0], sk.reduce_seq(sk.contains(held))))
        grid = sk.contains(untiled(counts, sk.map_(sk.map_(length=tile[1]), length=tile[0])))
        steps = (
            *factors.as_matrices,
            Step("tiling", grid, chunk_facts(lengths, tile)),
            *(self.in_slices(tile, numbers, length) if slices > 1 else ()),
            *(self.interleaved(tile, broad, width) if broad > width and slices == 1 else ()),
            Step("items", block(sk.map_(sk.map_(length=broad), length=tall)), chunk_facts(tile, (tall, broad))),
            Step("blocking", block(sums if factors.is_whole else sk.contains(sums)), {}),
            Step("loops", outside(sk.ANY), {length: (depth,)}),
            Step("views", outside(tiles), {}),
            Step("levels", sk.contains(in_groups), {}, (width,), lowered),
            Step("first_tile", sk.contains(first), copies, (width,)),
            Step("second_tile", sk.contains(sk.let(second, sk.contains(first))), copies, (width,)),
            Step("registers", sk.contains(sk.map_level("mapWrg(0)", sk.contains(written))), {}, (width,)),
        )
        return Plan(steps, (width,), lowered_by=None)

    @staticmethod
    def interleaved(tile: tuple[int, int], broad: int, width: int) -> Iterator[Step]:
        """The step after which the columns of a tile stand in pieces of a `width`, as work-items have them."""
        rows, columns = tile
        pieces = sk.join(sk.map_(sk.join(), sk.transpose(sk.split(columns // broad, sk.split(width)))))
        matrix = sk.map_(sk.map_(sk.ANY, pieces, length=columns), length=rows)
        yield Step("interleaving", sk.contains(matrix), {columns: (broad,)}, (width,))

    @staticmethod
    def in_slices(tile: tuple[int, int], numbers: Mapping[str, int], length: int) -> Iterator[Step]:
        """The steps after which slices of the sums of a tile, of this length, meet in local memory.

        An item adds up a part of the rows of the block that it has of one slice, of all slices.
        """
        tall, broad, high, wide = (numbers[name] for name in ("tall", "broad", "high", "wide"))
        slices, width, rows = numbers["slices"], numbers["width"], tall // numbers["slices"]
        own = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.zip_()), length=length))
        total = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(own, sk.zip_()), length=slices))
        each = sk.map_(sk.contains(sk.map_(total, length=tile[1])), length=tile[0])
        yield Step("rows_at_a_time", sk.contains(each), {length * slices: (length,)})
        product = sk.contains(sk.map_(sk.contains(sk.map_(own, length=tile[1])), length=tile[0]))
        parts = sk.contains(sk.map_(product, sk.zip_(), length=slices))
        yield Step(
            "slices", sk.contains(sk.map_(sk.contains(sk.map_(sk.contains(sk.reduce_(length=slices)))), parts)), {}
        )
        meeting = sk.contains(sk.to_memory("local", sk.map_level("mapLcl(2)", product, sk.zip_(), length=slices)))
        lanes = sk.map_seq(sk.vectorize(width, sk.contains(sk.reduce_seq(length=slices))), length=broad // width)
        columns = sk.contains(sk.map_level("mapLcl(0)", sk.contains(lanes), length=wide))
        share = sk.contains(sk.map_level("mapLcl(2)", sk.contains(sk.map_seq(columns, length=rows)), length=slices))
        facts = merged(chunk_facts(tile, (tall, broad)), {tall: (rows,)})
        yield Step("slice_levels", sk.contains(sk.map_level("mapLcl(1)", share, meeting, length=high)), facts, (width,))
