"""Plans for sums of few long columns on GPUs: groups have chunks of rows, and a second kernel adds up what they have.

All columns of a chunk, or a block of them, are the work of one group, whose items read neighbouring columns, several of
them each; what these have meets in local memory. With a group for a few whole columns, most of the device would have
nothing to do.

Source: the two kernels of long sums; the transposed products of matrices and vectors of cuBLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes, lowered
from lift_egraph.language import ir
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, columns_of, length_of
from lift_egraph.workbench.planning.shared_columns import by_sharing_items, shared_sum

FEW = 512  # columns of a group, at most
LEAST = 1 << 11  # elements of a column
SHARES = (64, 32, 16, 8, 4, 2)  # work-items of a column of a chunk
MOST_SHARED, ENOUGH = 16, 512  # of them where there are many columns; work-items of a group that has more of them
CHUNKS = (4, 8, 2, 1)  # groups for each compute unit, about
MOST_PLANS = 3
BLOCK = 32  # columns of a group of the second kernel, and of the first where all are too many, if it divides them
LASTS = (32, 16, 8, 4)  # work-items of each column in the second kernel


@dataclass(frozen=True)
class Point:
    """How columns are summed up: so many chunks, of which a group has as many columns as its `width`; of each column
    its items `share` a chunk, and `last` of the second kernel, whose groups have a `block` of columns, what is left.
    """

    chunks: int
    width: int
    share: int
    block: int
    last: int


def points_of_columns(columns: int, length: int, device: Device) -> list[Point]:
    """The points at which there are plans for so many columns of a length, those that promise most first."""
    block = BLOCK if columns % BLOCK == 0 else columns
    if length < LEAST or block > FEW or columns // block >= device.compute_units:
        return []
    made: dict[int, Point] = {}
    for share, more in product(SHARES, CHUNKS):
        width = columns if columns <= FEW and columns * share <= device.max_work_group else block
        if width * share > (ENOUGH if share > MOST_SHARED else device.max_work_group):
            continue
        count = 1 << (more * device.compute_units * width // columns).bit_length() - 1
        own, rest = divmod(length, count * share)
        lasts = (n for n in LASTS if count % n == 0 and count > n and block * n <= device.max_work_group)
        # sketches tell what they are of by their lengths
        last = next((n for n in lasts if len({columns, count, share, own, own * share, count // n, n}) == 7), 0)
        if not rest and last and own > 1 and {width, columns // width}.isdisjoint((count, share, own)):
            made.setdefault(share, Point(count, width, share, block, last))
    return list(made.values())[:MOST_PLANS]


def long_columns(nest: Nest, device: Device) -> Iterator[Plan]:
    """Sums of columns that lie side by side, where blocks of whole columns are too few for the device."""
    if len(nest.maps) == 1 and columns_of(nest.maps[-1]) is not None:
        columns = length_of(nest.maps[-1])
        for point in points_of_columns(columns, nest.length, device):
            yield _in_chunks(nest, columns, point)


def _in_chunks(nest: Nest, columns: int, point: Point) -> Plan:
    count, width, share, block, last = point.chunks, point.width, point.share, point.block, point.last
    rows = nest.length // count
    reads_products = isinstance(nest.array, ir.Map) and isinstance(nest.array.array, ir.Zip)
    products = sk.map_(sk.ANY, sk.zip_() if reads_products else sk.ANY) if nest.reads_map else sk.ANY
    own, total = sk.contains(sk.reduce_(sk.ANY, sk.ANY, products, length=rows)), sk.contains(sk.reduce_(length=count))
    whole = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(own, length=count), length=count))
    chunks = sk.contains(sk.map_(sk.contains(sk.map_(own, length=columns)), length=count))

    each = sk.contains(shared_sum(rows, share, sk.map_() if nest.reads_map else sk.ANY))
    parts = sk.contains(sk.map_(sk.contains(sk.map_(each, length=columns)), length=count))
    sums = shared_sum(count, last)
    of_chunk, in_groups = sk.map_(each, length=columns), by_sharing_items(rows, share, columns)
    if width < columns:
        of_chunk = sk.join(sk.map_(sk.map_(each, length=width), sk.split(width)))
        in_groups = sk.map_level("mapWrg(1)", by_sharing_items(rows, share, width), length=columns // width)
    chunks_in_blocks = sk.contains(sk.map_(sk.contains(of_chunk), length=count))
    blocks = sk.join(sk.map_(sk.map_(sums, length=block), sk.split(block, chunks_in_blocks)))
    of_chunks = sk.contains(sk.map_level("mapWrg(0)", sk.contains(in_groups), length=count))
    of_blocks = sk.map_level("mapWrg(0)", by_sharing_items(count, last, block), sk.split(block, of_chunks))
    shares = {rows: (share,), count: (last,)}
    steps = (
        Step("rows_at_a_time", sk.contains(sk.map_(whole, length=columns)), {nest.length: (rows,)}),
        Step("slices", sk.contains(sk.map_(total, chunks, length=columns)), {}),
        Step("groups", sk.contains(sk.map_(sums, parts, length=columns)), shares, (), in_lanes((rows, count), share)),
        Step("tiling" if block < columns else "column_sums", sk.contains(blocks), {columns: (block,)}),
        Step("sharing_columns", sk.contains(sk.join(of_blocks)), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)
