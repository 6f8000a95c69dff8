"""The passes over the statements of a kernel, one after the other."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from lift_egraph.codegen.c_ast import Body, Buffer
from lift_egraph.codegen.c_walk import known_names
from lift_egraph.codegen.devices import Device, Dialect, Gpu
from lift_egraph.codegen.lowering.little_work import LoweredKernel
from lift_egraph.codegen.optimise import Optimisations
from lift_egraph.codegen.passes.aligned import aligned_reads
from lift_egraph.codegen.passes.banks import space_rows
from lift_egraph.codegen.passes.barriers import barriers_after_maps, place_barriers
from lift_egraph.codegen.passes.borders import borders_apart
from lift_egraph.codegen.passes.common_indices import share_indices
from lift_egraph.codegen.passes.invariants import move_invariants
from lift_egraph.codegen.passes.lane_copies import lanes_copied
from lift_egraph.codegen.passes.local_places import in_one_place
from lift_egraph.codegen.passes.nested_loops import nested_loops
from lift_egraph.codegen.passes.powers import whole_powers
from lift_egraph.codegen.passes.prefetch import read_ahead
from lift_egraph.codegen.passes.private_arrays import as_variables, is_long
from lift_egraph.codegen.passes.quotients import by_reciprocals
from lift_egraph.codegen.passes.rows_in_results import rows_in_results
from lift_egraph.codegen.passes.serpentine import to_and_fro
from lift_egraph.codegen.passes.sines import pair_sines
from lift_egraph.codegen.passes.steps import stepped
from lift_egraph.codegen.passes.streaming import settle_streams
from lift_egraph.codegen.passes.tidy import inline_constants, sink_constants
from lift_egraph.codegen.passes.together import Room, loops_together
from lift_egraph.codegen.passes.transposed import transposed_reads
from lift_egraph.codegen.passes.unrolling import Stays, mark_short_loops
from lift_egraph.codegen.passes.whole_vectors import whole_vectors


class Improved(NamedTuple):
    """A kernel after all passes but those that spell it.

    Attributes
    ----------
    body
        Its statements.
    arrays
        Its local arrays.
    stays
        Which private arrays are no variables.
    taken
        The names in use.
    """

    body: Body
    arrays: tuple[Buffer, ...]
    stays: Stays
    taken: set[str]


def improved(lowered: LoweredKernel, device: Device, optimise: Optimisations, names: set[str], alone: bool) -> Improved:
    """A kernel after all passes but those that spell it.

    Parameters
    ----------
    names
        Those in use around the kernel.
    alone
        Whether one work-item a group is right.
    """
    dialect = device.emission
    taken = names | known_names(lowered.body)
    body = lowered.body if optimise.barriers else barriers_after_maps(lowered.body)
    local_counts = {level.dimension: n for level, n in lowered.threads.counts.items() if level.kind == "lcl"}
    body, arrays = in_one_place(body, lowered.locals, local_counts)
    body = place_barriers(body, local_counts)
    if arrays and isinstance(device.throughput, Gpu):
        spaced, spaced_arrays = space_rows(body, arrays, local_counts, device.throughput)
        if sum(b.bytes for b in spaced_arrays) <= device.most_local:
            body, arrays = spaced, spaced_arrays
    if arrays:
        unasked = dialect.reads_ahead
        body, arrays = read_ahead(body, arrays, local_counts, taken, device.most_local, unasked=unasked)
    body = move_invariants(body)
    if dialect.whole_vectors:
        body = whole_vectors(body)
    body, stays = as_variables(body, device, alone, bool(local_counts))
    body = sink_constants(inline_constants(body))
    if dialect.aligned_vectors:
        body = aligned_reads(body, taken)
    if optimise.indices:
        body = nested_loops(body, taken)
    if dialect.transposes:
        body = transposed_reads(lanes_copied(body, taken) if alone and stays is is_long else body, taken)
    if dialect.to_and_fro:
        body = to_and_fro(body)
    body = mark_short_loops(body)
    if dialect.borders_apart and optimise.control_flow:
        body = borders_apart(body, taken)
    if dialect.reciprocals:
        body = by_reciprocals(body, taken)
    body = settle_streams(body, device.own_caches if dialect.streams else inf)
    if dialect.loops_together and not arrays:
        body = loops_together(body, Room(device.registers // 2, dialect.inline_math), taken)
    if dialect.rows_in_results:
        body = rows_in_results(body, stays)
    return Improved(body, tuple(arrays), stays, taken)


def spelled(body: Body, dialect: Dialect, optimise: Optimisations, taken: set[str]) -> Body:
    """The statements of a kernel as they are printed; names of values that are shared join those in use."""
    printed = whole_powers(body)
    if optimise.indices:
        printed = share_indices(stepped(printed), taken, sums_apart=dialect.sums_apart)
    return pair_sines(printed, taken) if dialect.sincos else printed
