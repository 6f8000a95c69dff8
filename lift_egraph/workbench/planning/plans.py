"""Plans: how the loops of a stage are cut for a device, read off the stage itself, so that no search need find them.

Which kinds of plans are tried, and in which order, is said here; each kind has its module (`README.md` lists them).

A user's plans come from a function like `plans`, which may yield some of ours for another device, or make its own::

    def narrow(term, device):
        yield from plans(term, replace(device, vector_width=2))

    optimize(program, plans=narrow)

One of its own says which phases to run, how arrays may be split there, and the sketch at which each ends. This cuts
maps of 65536 elements into chunks of 64, whose vectors may have 8 lanes::

    from lift_egraph.api import sketch
    from lift_egraph.workbench import Plan, Step

    def in_chunks(term, device):
        yield Plan((Step("tiling", sketch.parse_nest("map 1024 > map 64"), {65536: (64,)}),), (8,))

The report names a plan that rules did not lead to, with what its sketch asks in vain, and rules that make such; one of
yours that is to have a part in it is given as ``optimize(program, rules=…, plans=…)``.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.types import DataType, Scalar
from lift_egraph.workbench.planning.group_folds import group_folds, group_sweeps
from lift_egraph.workbench.planning.group_reductions import group_reductions
from lift_egraph.workbench.planning.index_plans import index_plans
from lift_egraph.workbench.planning.lanes import lanes, runs
from lift_egraph.workbench.planning.layers import layers
from lift_egraph.workbench.planning.long_columns import long_columns
from lift_egraph.workbench.planning.look_back import look_back, look_back_of_runs
from lift_egraph.workbench.planning.packed_products import packed_products, products_of_lines
from lift_egraph.workbench.planning.plan import Nest, Plan, columns_of, length_of, nests
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
from lift_egraph.workbench.planning.tiles import further_tiles, tiles
from lift_egraph.workbench.planning.trees import trees
from lift_egraph.workbench.planning.vector_blocks import vector_blocks
from lift_egraph.workbench.planning.vector_columns import vector_columns
from lift_egraph.workbench.planning.vectors import beside, width_for
from lift_egraph.workbench.planning.window_tiles import window_tiles
from lift_egraph.workbench.planning.windows import bands_of_rows, rows_of_windows


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
    yield from look_back_of_runs(term, device)
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
            is_product = nest.maps in products
            by_items = () if device.has_groups else _by_items(nest, device, is_product)
            yield from _by_groups(nest, device, lets, is_product) if device.has_groups else by_items
    yield from stencils if has_layers else ()
    if device.has_groups:
        yield from trees(term, device)
        yield from staged_rows(term, device)
        yield from staged_columns(term, device)


def further_plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """What `plans` leaves out of long lists of a kind, for a search that has much time; the most promising first."""
    for nest in nests(term) if device.has_groups else ():
        if nest.fold is ir.Reduce and nest.commutes and isinstance(nest.result, Scalar):
            yield from further_tiles(nest, device)


def plans_in_groups(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans whose groups meet in local memory, or share what they read, also for devices on which that is slow.

    `plans` has them for GPUs only, and scans as trees for none; they are ``optimize(plans=plans_in_groups)``.
    """
    yield from staged_loops(term, device)
    for nest in nests(term):
        yield from group_sweeps(nest, device)
        if nest.fold is ir.Reduce and nest.commutes and isinstance(nest.result, Scalar):
            yield from tiles(nest, device)
            yield from register_blocks(nest, device)
    yield from trees(term, device)
    yield from staged_rows(term, device)
    yield from staged_columns(term, device)
    yield from window_tiles(term, device)


def _by_groups(nest: Nest, device: Device, lets: bool, is_product: bool) -> Iterator[Plan]:
    """Where a group's work-items share its work."""
    if len(nest.maps) > 1 and not nest.repeats:
        yield from row_lanes(nest, device) if device.level("group").partition == "strided" else ()
        yield from group_reductions(nest, device, lets)
    if len(nest.maps) > 1:
        yield from small_products(nest, device)
        yield from tiles(nest, device)
        blocks = [int(n) for n in device.level("item").workers]
        yield from packed_products(nest, device.widths[0], blocks) if is_product else ()
        yield from register_blocks(nest, device)
    elif device.level("group").partition == "strided":
        in_columns = bool(nest.maps) and columns_of(nest.maps[-1]) is not None
        yield from () if in_columns else row_lanes(nest, device)
        yield from long_columns(nest, device) if in_columns else short_rows(nest, device)
        yield from shared_columns(nest, device) if in_columns else group_reductions(nest, device, lets)


def _by_items(nest: Nest, device: Device, is_product: bool) -> list[Plan]:
    """Where each work-item does much work by itself; blocks of rows share their columns where these are the same."""
    # rows of several maps that are none of a product have lanes first
    made: list[Plan] = [*lanes(nest, device)] if len(nest.maps) > 1 and not nest.repeats else []
    width = width_for(length_of(nest.maps[-1]), device) if len(nest.maps) > 1 else None
    if width and is_product:
        blocks = beside(width, device)
        made += [*layers(nest, device), *products_of_lines(nest, width, blocks, device)]
        made += [*vector_blocks(nest, device), *packed_products(nest, width, blocks, pads=True)]
    if row_width := width_for(nest.length, device):
        made += row_blocks(nest, row_width, beside(row_width, device))
    in_columns = bool(nest.maps) and isinstance(nest.maps[-1], ir.Transpose)
    for others in () if width else (vector_columns, lanes) if in_columns else (lanes, vector_columns):
        made += [plan for plan in others(nest, device) if plan not in made]
    return made


def _in_order(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions to tuples, and those whose elements must stay in order."""
    if device.has_groups:
        yield from group_folds(nest, device)
    elif not nest.maps:
        if nest.commutes:
            yield from lanes(nest, device)
        yield from runs(nest, device)
