"""Plans: how the loops of a stage are cut for a device, read off the stage itself, so that no search need find them.

Reductions inside of maps have plans: rows of partial results are kept in registers, so that an element that is read
once serves a whole block, and what is read in vectors is packed in the order of its use.

A user's plans come from a function like `plans`, which may yield some of ours for another device, or make its own::

    def narrow(term, device):
        yield from plans(term, replace(device, vector_width=2))

    optimize(program, plans=narrow)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes
from lift_egraph.language import ir
from lift_egraph.language.types import DataType, Scalar, array
from lift_egraph.workbench.planning.group_folds import group_folds
from lift_egraph.workbench.planning.index_plans import index_plans
from lift_egraph.workbench.planning.layers import layers
from lift_egraph.workbench.planning.long_columns import long_columns
from lift_egraph.workbench.planning.look_back import look_back
from lift_egraph.workbench.planning.plan import LONG, SPARE, Nest, Plan, Step, columns_of, length_of, nests, plan_of
from lift_egraph.workbench.planning.products import product_of
from lift_egraph.workbench.planning.range_plans import range_plans
from lift_egraph.workbench.planning.register_blocks import register_blocks
from lift_egraph.workbench.planning.row_blocks import row_blocks
from lift_egraph.workbench.planning.scan_plans import scan_plans
from lift_egraph.workbench.planning.shared_columns import shared_columns
from lift_egraph.workbench.planning.short_rows import row_lanes, short_rows
from lift_egraph.workbench.planning.small_products import small_products
from lift_egraph.workbench.planning.staged_columns import staged_columns
from lift_egraph.workbench.planning.staged_loops import staged_loops
from lift_egraph.workbench.planning.staged_rows import staged_rows
from lift_egraph.workbench.planning.stencil_steps import window_blocks
from lift_egraph.workbench.planning.tiles import tiles
from lift_egraph.workbench.planning.trees import shared_out, trees
from lift_egraph.workbench.planning.vector_blocks import vector_blocks
from lift_egraph.workbench.planning.window_tiles import window_tiles
from lift_egraph.workbench.planning.windows import bands_of_rows, rows_of_windows

ACCUMULATORS = 12  # vectors of partial results that hide the latency of sums
LONG_RUN = 32  # elements of each work-item of a largest group that is worth it for one row
SHARED_RUN = 4  # elements of each work-item of a largest group that is worth a second kernel
FEW, GROUP_PLANS = 16, 2  # last results of a group's work-items; how many plans are tried
MORE_GROUPS = 2  # times the groups, of half as many items: as fast for one array, and faster for two, H100
FAR, NEAR, ELEMENT = 4, 2, 4  # the parts of the last cache, and of a unit's own, for what is read again; bytes of f32
STRIP, STRIP_ROWS = (256, 4096), (8, 4)  # columns of a strip, from and to, and rows that are added at a time
PACKED = sk.as_scalar(sk.to_memory("global"))
CHAINS, CHAIN = 4, 4  # vectors of partial results beside each other, and the fewest elements that each adds up
RUN = 2048  # the most elements that a lane takes one after the other


def plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for a stage on a device, the most promising first."""
    alike: dict[tuple[tuple[ir.Expr, ...], int, DataType], Nest] = {}
    every = [*nests(term)]
    products = {nest.maps for nest in every if nest.repeats}
    for nest in every:
        if nest.fold is not ir.Reduce:
            yield from look_back(nest, device) if device.has_groups else ()
            yield from group_folds(nest, device) if device.has_groups else scan_plans(nest, device)
            continue
        known = alike.setdefault((nest.maps, nest.length, nest.result), nest)
        if nest.reads_map and not known.reads_map:
            alike[nest.maps, nest.length, nest.result] = nest
    yield from index_plans(term, device)
    yield from () if device.has_groups else range_plans(term, device)
    lets = any(isinstance(t, ir.Apply) for t in ir.subterms(term))
    in_groups = device.has_groups
    stencils = [*bands_of_rows(term, device)]
    if in_groups:
        stencils = [*rows_of_windows(term, device), *window_tiles(term, device), *window_blocks(term, device)]
    has_layers = any((factors := product_of(nest)) and factors.views for nest in alike.values())
    yield from () if has_layers else stencils
    yield from staged_loops(term, device) if device.has_groups else ()
    for nest in alike.values():
        if not nest.commutes or not isinstance(nest.result, Scalar):
            yield from _in_order(nest, device)
        else:
            by_items = () if device.has_groups else _by_items(nest, device, nest.maps in products)
            yield from _by_groups(nest, device, lets) if device.has_groups else by_items
    yield from stencils if has_layers else ()
    if device.has_groups:
        yield from trees(term, device)
        yield from staged_rows(term, device)
        yield from staged_columns(term, device)


def plans_in_groups(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans whose groups meet in local memory, or share what they read, also for devices on which that is slow.

    `plans` has them for GPUs only; for a CPU they are ``optimize(plans=plans_in_groups)``.
    """
    yield from staged_loops(term, device)
    for nest in nests(term):
        if nest.fold is ir.Reduce and nest.commutes and isinstance(nest.result, Scalar):
            yield from tiles(nest, device)
            yield from register_blocks(nest, device)
    yield from trees(term, device)
    yield from staged_rows(term, device)
    yield from staged_columns(term, device)
    yield from window_tiles(term, device)


def _by_groups(nest: Nest, device: Device, lets: bool) -> Iterator[Plan]:
    """Where a group's work-items share its work."""
    if len(nest.maps) > 1 and not nest.repeats:
        yield from row_lanes(nest, device) if device.level("group").partition == "strided" else ()
        yield from _groups(nest, device, lets)
    if len(nest.maps) > 1:
        yield from small_products(nest, device)
        yield from tiles(nest, device)
        yield from _products(nest, device.widths[0], [int(n) for n in device.level("item").workers])
        yield from register_blocks(nest, device)
    elif device.level("group").partition == "strided":
        in_columns = bool(nest.maps) and columns_of(nest.maps[-1]) is not None
        yield from () if in_columns else row_lanes(nest, device)
        yield from long_columns(nest, device) if in_columns else short_rows(nest, device)
        yield from shared_columns(nest, device) if in_columns else _groups(nest, device, lets)


def _by_items(nest: Nest, device: Device, is_product: bool) -> list[Plan]:
    """Where each work-item does much work by itself; blocks of rows share their columns where these are the same."""
    # rows of several maps that are none of a product have lanes first
    made: list[Plan] = [*_lanes(nest, device)] if len(nest.maps) > 1 and not nest.repeats else []
    width = _width(length_of(nest.maps[-1]), device) if len(nest.maps) > 1 else None
    if width and is_product:
        blocks = _blocks(width, device)
        made += [*layers(nest, device), *_products_of_lines(nest, width, blocks, device)]
        made += [*vector_blocks(nest, device), *_products(nest, width, blocks)]
    if row_width := _width(nest.length, device):
        made += row_blocks(nest, row_width, _blocks(row_width, device))
    in_columns = bool(nest.maps) and isinstance(nest.maps[-1], ir.Transpose)
    for others in () if width else (_columns, _lanes) if in_columns else (_lanes, _columns):
        made += [plan for plan in others(nest, device) if plan not in made]
    return made


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


def _width(length: int, device: Device) -> int | None:
    """The first width that the length and the language allow."""
    return next((w for w in device.widths if length % w == 0), None)


def _blocks(width: int, device: Device) -> list[int]:
    """How many vectors of partial results registers hold beside each other, the best number first."""
    parts = max(1, width // device.lanes)
    fitting = [int(b) for b in device.level("item").workers if b * parts <= device.registers - SPARE]
    return sorted(fitting, key=lambda b: abs(b * parts - ACCUMULATORS))


def _lanes(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions of a length, whose partial results are the lanes of a vector: of a long one, by chunks.

    They are in several vectors at first, whose sums do not wait for each other.
    """
    long = nest.length >= LONG and not nest.maps
    chunk = chunk_size(nest.length, device.groups) if long else nest.length
    width = _width(chunk or 1, device)
    if chunk is None or width is None or width >= chunk:
        return
    own = {"chunk": chunk} if long else {}
    if chunk % (width * CHAINS) == 0 and chunk >= width * CHAINS * CHAIN:
        yield plan_of(_in_lanes, nest, (("chunk", "width"),), width=width, chains=CHAINS, **own)
    yield plan_of(_in_lanes, nest, (("chunk", "width"),), width=width, **own)


def _in_lanes(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial results in the lanes of vectors of a `width`, of each `chunk` if there is one."""
    width, chunk, chains = numbers["width"], numbers.get("chunk", nest.length), numbers.get("chains", 1)
    element = sk.map_() if nest.reads_map else sk.ANY
    own = chunk // width
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=own // chains))
    tiling: Tiling = {chunk: (width,)}
    if chains > 1:
        inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(inner, sk.transpose(sk.split(chains))), length=chains))
        tiling = {**tiling, own: (chains,)}
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.transpose(sk.split(width))))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=width))
    if "chunk" in numbers:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), **tiling}
    weigh = in_lanes(tiling, width, chains=numbers.get("chains", 0))
    return Plan((Step("lanes", sketch, tiling, (width,), weigh),), (width,))


def _in_order(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions to tuples, and those whose elements must stay in order."""
    if device.has_groups:
        yield from group_folds(nest, device)
    elif not nest.maps:
        if nest.commutes:
            yield from _lanes(nest, device)
        yield from _runs(nest, device)


def _runs(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions whose elements must stay in order: each lane of a vector has a run of neighbouring elements."""
    for width in [w for w in device.widths if w <= device.lanes]:
        parts = nest.length // (width * RUN)
        chunk = chunk_size(nest.length, parts) if nest.length >= LONG else nest.length
        run = chunk and next((r for r in range(RUN, 1, -1) if chunk % (r * width) == 0), None)
        if chunk and run and len({nest.length, chunk, run, chunk // run, nest.length // chunk}) >= 4:
            long = {"chunk": chunk} if chunk < nest.length else {}
            yield plan_of(_in_runs, nest, (("chunk", "run"),) if long else (), run=run, width=width, **long)


def _in_runs(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial results of a `run` of elements in each lane of vectors of a `width`, of each `chunk` if there is one."""
    width, run, chunk = numbers["width"], numbers["run"], numbers.get("chunk", nest.length)
    element = sk.map_() if nest.reads_map else sk.ANY
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=run))
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.split(run)))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=chunk // run))
    tiling: Tiling = {chunk: (run,)}
    if "chunk" in numbers:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), **tiling}
    return Plan((Step("lanes", sketch, tiling, (width,), in_lanes(tiling, width)),), (width,))


def _columns(nest: Nest, device: Device) -> Iterator[Plan]:
    """Blocks of several vectors of columns, whose elements lie side by side in each row that is reduced."""
    columns = length_of(nest.maps[-1]) if nest.maps else 1
    width = _width(columns, device)
    if width is None:
        return
    for vectors in [c for c in (8, 4) if columns % (c * width) == 0 and c * width < columns][:1]:
        yield plan_of(_in_columns, nest, vectors=vectors, width=width)
    widest = columns // max(device.compute_units, 2) // width * width
    strip = next((n for n in range(min(widest, STRIP[1]), STRIP[0] - 1, -width) if columns % n == 0), None)
    rows = next((n for n in STRIP_ROWS if nest.length % n == 0 and n < nest.length), None)
    if strip and rows and nest.reads_map and isinstance(nest.maps[-1], ir.Transpose):
        yield plan_of(_in_strips, nest, vectors=strip // width, width=width, rows=rows)


def _in_columns(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Blocks of some `vectors` of a `width`."""
    columns, held, width = length_of(nest.maps[-1]), numbers["vectors"], numbers["width"]
    block = held * width
    element = sk.map_(sk.map_(length=held)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, held), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    vectors = sk.contains(sk.map_(sk.contains(inner), sk.transpose(sk.split(width)), length=width))
    step = Step("columns", sk.contains(sk.map_(vectors, sk.split(block))), {columns: (block,), block: (held,)})
    return Plan((step,), (width,))


def _in_strips(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Strips of some `vectors` of a `width`, of which some `rows` are added at a time.

    What lies side by side in memory is so read from a few rows at a time, for longer than a block of columns is wide,
    and each partial result, which the first cache holds, is stored once for these rows.
    """
    columns, held, width, rows = length_of(nest.maps[-1]), numbers["vectors"], numbers["width"], numbers["rows"]
    strip, count = held * width, nest.length // numbers["rows"]
    own = sk.contains(sk.reduce_(length=rows))
    in_rows = sk.contains(sk.map_(sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(own, sk.zip_(), length=count)))))
    sums = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(own, length=held)), length=count)
    vectors = sk.map_(
        sk.contains(sk.of_type(array(nest.result, held), sums)), sk.transpose(sk.split(width)), length=width
    )
    in_strips = sk.contains(sk.map_(sk.contains(vectors), sk.split(strip)))
    steps = (
        Step("rows_at_a_time", in_rows, {nest.length: (rows,)}),
        Step("columns", in_strips, {columns: (strip,), strip: (held,)}),
    )
    return Plan(steps, (width,))


def _products(nest: Nest, width: int, blocks: Iterable[int]) -> Iterator[Plan]:
    """Blocks of rows, of the first two lengths that fit, times vectors of columns."""
    rows = length_of(nest.rows)
    for block in [b for b in blocks if rows % b == 0 and b < rows][:2]:
        packed, direct = (plan_of(make, nest, block=block, width=width) for make in (_packed_product, _product))
        yield from (direct, packed) if isinstance(nest.maps[-1], ir.Transpose) else (packed, direct)


def _in_blocks(nest: Nest, block: int, columns: int, rows: sk.Sketch) -> sk.Sketch:
    """Blocks of rows, each with so many columns."""
    element = sk.map_(sk.map_(length=block)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, block), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    across = sk.contains(sk.map_(sk.contains(inner), length=columns))
    return sk.contains(sk.map_(across, sk.split(block, rows), length=length_of(nest.rows) // block))


def _product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A `block` of rows times vectors of a `width`."""
    block = numbers["block"]
    sketch = _in_blocks(nest, block, length_of(nest.maps[-1]), _written(nest.rows))
    return Plan((Step("blocking", sketch, {length_of(nest.rows): (block,)}),), (numbers["width"],))


def _packed_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with what is read in vectors packed before in the order of its use."""
    direct = _product(nest, numbers)
    packing = Step("packing", sk.contains(sk.to_memory("global")), {}, direct.widths)
    return replace(direct, steps=(packing, *direct.steps))


def _packs_rows(nest: Nest, width: int) -> bool:
    """Whether the rows are columns in memory: elements of one after the other lie in other lines of the caches."""
    rows = nest.rows
    is_transposed = rows is nest.maps[0] and isinstance(rows, ir.Transpose) and not ir.free_variables(rows)
    return is_transposed and length_of(rows) % width == 0


def _twice_packed_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A packed product, with packed rows."""
    packed, block, rows = _packed_product(nest, numbers), numbers["block"], length_of(nest.rows)
    row_packing = Step("row_packing", sk.contains(sk.map_(sk.ANY, PACKED, length=rows)), {}, packed.widths)
    blocking = Step("blocking", _in_blocks(nest, block, length_of(nest.maps[-1]), PACKED), {rows: (block,)})
    return replace(packed, steps=(packed.steps[0], row_packing, blocking))


def _products_of_lines(nest: Nest, width: int, blocks: Iterable[int], device: Device) -> Iterator[Plan]:
    """Products for which everything is read as it lies in memory: with packed rows, where these are columns there.

    Columns are in tiles that a unit's own cache holds while all rows pass, where the last cache does not hold all of
    them: else each block of rows brings them from memory.
    """
    rows, columns = length_of(nest.rows), length_of(nest.maps[-1])
    block = next((b for b in blocks if rows % b == 0 and b < rows), None)
    if block and _packs_rows(nest, width):
        yield plan_of(_twice_packed_product, nest, block=block, width=width)
    if FAR * ELEMENT * nest.length * columns <= device.cache or device.has_groups:
        return
    most = max(device.caches[-1] // (NEAR * ELEMENT * nest.length), width)
    tile = next((n for n in range(most // width * width, 0, -width) if columns % n == 0 and n < columns), None)
    if tile and block:
        yield plan_of(_cached_product, nest, (("tile", "width"),), block=block, width=width, tile=tile)


def _cached_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A packed product of a `block` of rows and vectors of a `width`, in tiles of some columns.

    Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
    """
    rows, columns, block, tile = length_of(nest.rows), length_of(nest.maps[-1]), numbers["block"], numbers["tile"]
    of_rows = _written(nest.rows)

    def tiled(inner: sk.Sketch) -> sk.Sketch:
        return sk.contains(sk.map_(inner, sk.split(tile), length=columns // tile))

    sums = sk.contains(sk.reduce_(length=nest.length))
    each_row = sk.map_(sk.contains(sk.map_(sums, sk.variable(), length=tile)), of_rows, length=rows)
    packed = _packed_product(nest, numbers)
    tiling = Step("tiling", tiled(sk.contains(each_row)), {columns: (tile,)})
    blocking = Step("blocking", tiled(_in_blocks(nest, block, tile, of_rows)), {rows: (block,)})
    return replace(packed, steps=(packed.steps[0], tiling, blocking))


def _groups(nest: Nest, device: Device, lets: bool) -> Iterator[Plan]:
    """Reductions by the work-items of a group, neighbours of neighbouring elements, and then of what these have: of a
    long one, by chunks.
    """
    largest = int(device.level("group").workers[0])
    shared = SHARED_RUN * largest
    long = nest.length >= shared and not nest.maps
    chunk = chunk_size(nest.length, min(device.groups, max(nest.length // shared, 2))) if long else nest.length
    if chunk is None:
        return
    cuts = [*product(device.group_sizes, (chunk, 2 * chunk) if long else (chunk,))]
    if long and chunk % MORE_GROUPS == 0:
        cuts.insert(1, (int(largest) // 2, chunk // MORE_GROUPS))
    for items, chunk in [
        (n, c)
        for n, c in cuts
        if (long or n < largest or nest.length >= n * LONG_RUN)
        and nest.length % c == c % n == 0
        and c // n not in (1, n)  # sketches tell chunks, and what is in them, by their lengths
        and nest.length // c not in (n, c)
    ][:GROUP_PLANS]:
        parts, count, width = items // FEW, nest.length // chunk, device.sub_group
        shared = shared_out(nest, items, chunk)
        meetings = [("groups", parts, sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.split(parts, shared), length=FEW)))]
        if width and items % width == 0 and items > width:  # one barrier instead of two
            by_sub_groups = sk.reduce_(sk.ANY, sk.ANY, sk.reduce_sub(width, shared, length=items))
            meetings.insert(0, ("sub_groups", width, by_sub_groups))
        for name, part, meeting in meetings:
            sketch = sk.contains(meeting)
            tiling: Tiling = {chunk: (items,), items: (part,)}
            if long:
                sketch = sk.contains(sk.map_(sketch, sk.split(chunk), length=count))
                tiling = {nest.length: (chunk,), **tiling}
            weigh = in_lanes(tiling, items, (chunk, items), lets=lets)
            yield Plan((Step(name, sketch, tiling, (), weigh),), (), lowered_by="sharing")
