"""The analytical estimate orders kernels as devices do; no device is needed."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from lift_egraph.codegen.devices import INTEL, NVIDIA, POCL, Device
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.codegen.plans.launch_file import launch_of, plan_of
from lift_egraph.errors import InputProblem
from lift_egraph.extract.accesses import analyse
from lift_egraph.extract.analytical import Prediction, predict
from lift_egraph.extract.footprint import Footprint, footprint_of
from lift_egraph.extract.private_vectors import in_private_vectors
from lift_egraph.extract.shared_vectors import in_shared_vectors
from lift_egraph.extract.unrolled import in_one_step
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from tests.codegen import low_level as low
from tests.depth import in_turn

DEVICES = [POCL, INTEL, NVIDIA]
MILLION = 1 << 20


def prediction(term: ir.Program, device: Device = POCL, launch: Launch | None = None, **sizes: int) -> Prediction:
    return predict(low.plan_of(term, device, launch, **sizes), device)


def ms(term: ir.Program, device: Device = POCL, launch: Launch | None = None, **sizes: int) -> float:
    return prediction(term, device, launch, **sizes).device_ms


SCAL_ITEMS = parse_program("program scal(alpha: f32, xs: [f32]N) = mapGlb(0, fun x => alpha * x, xs)")
SCAL_SEQUENTIAL = parse_program("program scal(alpha: f32, xs: [f32]N) = mapSeq(fun x => alpha * x, xs)")
BY_ROWS = parse_program("program copy(xss: [[f32]N]N) = mapGlb(0, mapSeq(id), xss)")
BY_COLUMNS = parse_program("program copy(xss: [[f32]N]N) = mapGlb(0, mapSeq(id), transpose(xss))")


def sums(chunks: str) -> ir.Program:
    return parse_program(f"program sums(xs: [f32]N) = mapGlb(0, reduceSeq(add, 0.0), {chunks})")


@in_turn(8)
@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("term", "sizes"),
    [
        (low.mm_naive(), {"M": 64, "N": 96, "K": 32}),
        (low.mm_blocked(4, 8), {"M": 64, "N": 96, "K": 32}),
        (low.mm_tiled(), {"M": 64, "N": 96, "K": 32}),
        (low.dot(4096), {"N": 1 << 16}),
        (low.scal(4096), {"N": 1 << 16}),
        (low.gemv(), {"M": 64, "K": 256}),
        (low.j2d5pt(), {"M": 64, "N": 64}),
        (low.partial_dot(), {"N": 1 << 14}),
    ],
    ids=lambda value: value.name if isinstance(value, ir.Program) else "",
)
def test_predictions_are_positive_and_finite(term, sizes, device):
    found = prediction(term, device, **sizes)
    assert len(found.kernels) == len(low.plan_of(term, device, **sizes).kernels)
    for kernel in found.kernels:
        assert 0 < kernel.ms < math.inf
        assert kernel.instructions > 0
        assert sum(kernel.loads.values()) > 0
        assert sum(kernel.stores.values()) > 0
    assert found.predicted_ms > found.device_ms


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_the_cost_grows_with_the_size(device):
    small, middle, large = (ms(low.mm_naive(), device, M=n, N=n, K=n) for n in (128, 512, 2048))
    assert small < middle < large


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_twice_the_elements_take_twice_as_long(device):
    once, twice = (ms(SCAL_ITEMS, device, N=n * MILLION) for n in (64, 128))
    assert twice == pytest.approx(2 * once, rel=0.1)


def test_counts_of_a_matrix_product():
    (kernel,) = prediction(low.mm_naive(), M=32, N=64, K=128).kernels
    assert kernel.flops == 2 * 32 * 64 * 128
    assert sum(kernel.loads.values()) == 2 * 32 * 64 * 128
    assert kernel.stores == {"strided": 32 * 64}  # mapGlb 0 runs over the rows
    assert kernel.parallelism == 2


def test_register_blocks_load_less():
    (naive,) = prediction(low.mm_naive(), M=256, N=256, K=256).kernels
    (blocked,) = prediction(low.mm_blocked(4, 8), M=256, N=256, K=256).kernels
    assert blocked.flops == naive.flops
    assert sum(blocked.loads.values()) < sum(naive.loads.values()) / 2


def test_dot_counts_as_its_products_and_sums():
    text = "program p(xs: [f32]N, ys: [f32]N) = mapGlb(0, dot, zip(asVector(4, xs), asVector(4, ys)))"
    (kernel,) = prediction(parse_program(text), DEVICES[0], N=1024).kernels
    assert kernel.flops == 7 * 256


@pytest.mark.parametrize("device", [POCL, INTEL], ids=lambda d: d.name)
@pytest.mark.parametrize("size", [256, 512, 1024])
def test_blocked_products_beat_naive_ones_on_cpus(size, device):
    naive, thin, blocked = (
        ms(term, device, M=size, N=size, K=size)
        for term in (low.mm_naive(), low.mm_blocked(1, 16), low.mm_blocked(8, 16))
    )
    assert blocked < thin < naive


def test_accumulators_that_do_not_fit_in_registers_spill():
    fits, spills = (ms(low.mm_blocked(rows, 16), M=512, N=512, K=512) for rows in (16, 64))
    assert fits < spills


def test_local_tiles_pay_off_on_gpus_only():
    sizes = {"M": 1024, "N": 1024, "K": 1024}
    assert ms(low.mm_tiled(), NVIDIA, **sizes) < ms(low.mm_naive(), NVIDIA, **sizes)
    assert ms(low.mm_tiled(), **sizes) > 5 * ms(low.mm_blocked(), **sizes)


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_barriers_are_counted(device):
    (kernel,) = prediction(low.mm_tiled(16), device, M=64, N=64, K=64).kernels
    assert kernel.barriers == 2 * 4 * 16  # in 4 steps of 16 groups


def test_contiguous_vectors_beat_strided_gathers():
    assert ms(low.scal(65536, 16), N=16 * MILLION) < ms(BY_COLUMNS, N=4096) / 5
    assert ms(BY_ROWS, N=4096) < ms(BY_COLUMNS, N=4096) / 5


def test_cpus_like_contiguous_chunks_and_gpus_neighbouring_elements():
    n, chunk = 64 * MILLION, 256
    chunks, neighbours = sums(f"split({chunk}, xs)"), sums(f"transpose(split({n // chunk}, xs))")
    assert ms(chunks, N=n) < ms(neighbours, N=n) / 3
    assert ms(neighbours, NVIDIA, N=n) < ms(chunks, NVIDIA, N=n)


@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
def test_many_work_items_beat_one(device):
    """Not so with Intel's compiler, that gathers what they read: one took 0.12 ms for these, many took 0.20."""
    n = 256 * 1024
    assert ms(SCAL_ITEMS, device, N=n) < ms(SCAL_SEQUENTIAL, device, N=n)


def test_a_group_for_each_element_is_slow_on_a_cpu():
    alone = ms(SCAL_ITEMS, launch=Launch((MILLION, 1, 1), (1, 1, 1)), N=MILLION)
    assert alone > 5 * ms(SCAL_ITEMS, launch=Launch((MILLION, 1, 1), (4096, 1, 1)), N=MILLION)


def test_the_intel_compiler_vectorises_across_work_items():
    columns = sums("transpose(split(400, xs))")
    together = ms(columns, INTEL, N=200 * 400)
    assert together < ms(columns, POCL, N=200 * 400) / 2
    assert together < ms(columns, INTEL, Launch((400, 1, 1), (1, 1, 1)), N=200 * 400) / 2


PACKED_SUMS = parse_program("""program sums(xs: [f32]N) = join(mapGlb(0, fun chunk => reduceSeq(
    fun (acc, row) => asScalar(mapSeq(vectorize(16, fun (a, x) => a + x * 2.0), asVector(16, zip(acc, row)))),
    fill(64, 0.0), split(64, chunk)), split(8192, xs)))""")


def test_sums_that_a_compiler_joins_to_vectors_do_not_spill():
    """64 accumulators, that vectors are put together from, are 4 registers with PoCL; Intel's compiler keeps them."""
    root = analyse(low.plan_of(PACKED_SUMS, POCL, N=MILLION).kernels[0])
    joined = in_private_vectors(root)
    loop, inside = (max((r for r, _ in each.walk()), key=lambda r: len(r.chains)) for each in (root, joined))
    assert (len(loop.chains), len(inside.chains)) == (64, 4)
    assert (loop.shuffles, inside.shuffles) == (128, 0)
    assert sorted(inside.held.values()) == [64] * 4
    assert sum(loop.held.values()) == sum(inside.held.values())
    slow, fast = (ms(PACKED_SUMS, device, N=MILLION) for device in (INTEL, POCL))
    assert slow > 3 * fast


def test_sums_in_vectors_of_different_lanes_are_not_joined_twice():
    text = """program sums(xs: [f32]N) = join(mapGlb(0, fun chunk => reduceSeq(
        fun (acc, x) => join(mapSeq(
            fun p => asScalar(mapSeq(vectorize(2, fun a => a + x), asVector(2, p))), split(4, acc))),
        fill(8, 0.0), chunk), split(8192, xs)))"""
    root = analyse(low.plan_of(parse_program(text), POCL, N=MILLION).kernels[0])
    assert root.lane_of
    for vector in set(root.lane_of.values()):
        assert sum(other == vector for other in root.lane_of.values()) == len(vector.split())


DIVISIONS, ROOTS = "x / y / (x + y) / (x * y)", "rsqrt(rsqrt(rsqrt(x * y)))"


@pytest.mark.parametrize(
    ("device", "operation", "times"),
    [(POCL, DIVISIONS, 0.5), (POCL, ROOTS, 0.5), (INTEL, DIVISIONS, 0.5), (INTEL, ROOTS, 1.0)],
    ids=lambda value: getattr(value, "name", None),
)
def test_half_a_vector_is_divided_in_half_the_time(device, operation, times):
    """A kernel with half vectors has twice as many of them."""

    def cycles(width: int) -> float:
        text = f"""program f(xs: [f32]N, ys: [f32]N) = join(mapGlb(0, fun p => asScalar(mapSeq(vectorize({width},
            fun (x, y) => {operation}), asVector({width}, p))), split(8192, zip(xs, ys))))"""
        plan = low.plan_of(parse_program(text), device, N=1 << 14)
        (kernel,) = predict(plan, device).kernels
        return kernel.compute_ms

    assert cycles(8) / cycles(16) == pytest.approx(2 * times, rel=0.3)


@pytest.mark.parametrize("device", [POCL, INTEL], ids=lambda d: d.name)
def test_loops_whose_addresses_do_not_move_evenly_stay_scalar(device):
    """Jacobi's stencil took three times as long where the neighbour's index is a maximum."""

    def instructions(xs: str) -> float:
        pairs = f"split(8192, slide(2, 1, {xs}))"
        text = f"program p(xs: [f32]N) = mapGlb(0, mapSeq(fun w => at(0, w) + at(1, w)), {pairs})"
        (kernel,) = prediction(parse_program(text), device, N=(1 << 20) + (xs == "xs")).kernels
        return kernel.parts["instructions"]

    assert instructions("pad(1, 0, clamp, xs)") > 4 * instructions("xs")


@pytest.mark.parametrize(("operator", "zero", "apart"), [("add", "0.0", True), ("mul", "1.0", True), ("max", "0.0", 0)])
def test_the_intel_compiler_makes_vectors_of_sums(operator, zero, apart):
    """A row's sum in a scalar loop differs from that in order; its log says so of products, too, and not of maxima."""
    text = f"program p(xs: [f32]N) = mapGlb(0, reduceSeq({operator}, {zero}), split(65536, xs))"
    own, other = (ms(parse_program(text), device, N=MILLION) for device in (INTEL, POCL))
    assert (own < other / 4) == apart


def test_loops_that_call_functions_stay_scalar():
    """Says the log of Intel's compiler; two exponentials an element took it 25 ms, which were predicted as 6."""
    lanes, scalars = (
        f"program p(xs: [f32]N) = join(mapGlb(0, {f}, split(65536, xs)))"
        for f in ("fun p => asScalar(mapSeq(vectorize(16, exp), asVector(16, p)))", "mapSeq(exp)")
    )
    assert ms(parse_program(scalars), INTEL, N=MILLION) > 4 * ms(parse_program(lanes), INTEL, N=MILLION)


@pytest.mark.parametrize("device", [POCL, INTEL], ids=lambda d: d.name)
def test_sums_that_begin_in_each_step_do_not_wait_for_the_last(device):
    sums = "mapSeq(vectorize(8, fun w => reduceSeq(add, 0.0, mapSeq(abs, w))), asVector(8, x))"
    text = f"program p(xs: [f32]N) = mapGlb(0, fun x => asScalar({sums}), split(8192, slide(9, 1, xs)))"
    plan = low.plan_of(parse_program(text), device, N=MILLION + 8)
    assert any(region.begun & region.chains.keys() for region, _ in analyse(plan.kernels[0]).walk())
    (kernel,) = predict(plan, device).kernels
    assert kernel.parts["chains"] < kernel.parts["instructions"] / 10


def test_one_accumulator_is_a_chain():
    assert ms(low.asum(65536), N=MILLION) < ms(sums("split(65536, xs)"), N=MILLION) / 4


@pytest.mark.parametrize("device", [POCL, INTEL], ids=lambda d: d.name)
def test_a_chain_goes_on_through_a_loop_that_leaves_its_accumulator_alone(device):
    windows = "map(transpose, slide(17, 1, map(slide(17, 1), xss)))"
    as_one = f"mapGlb(0, mapSeq(fun w => reduceSeq(max, 0.0, join(w))), {windows})"
    by_rows = f"mapGlb(0, mapSeq(reduceSeq(fun (most, row) => max(most, reduceSeq(max, 0.0, row)), 0.0)), {windows})"
    one, rows = (parse_program(f"program sums(xss: [[f32]N]N) = {term}") for term in (as_one, by_rows))
    assert ms(one, device, N=144) > 3 * ms(rows, device, N=144)  # each row begins another chain, beside the last


@pytest.mark.parametrize(("sums", "waits"), [
    ("mapSeq(reduceSeq(fun (s, v) => s + v * k, 0.0), x)", True),  # all steps of the inner loop add to one element
    ("reduceSeq(fun (sums, row) => mapSeq(fun (s, v) => s + v * k, zip(sums, row)), fill(40, 0.0), x)", False),
], ids=["one in each loop", "another in each step"])  # fmt: skip
def test_an_element_of_an_array_that_a_loop_adds_to_is_a_chain(sums: str, waits: bool):
    term = f"mapGlb(0, fun x => mapSeq(fun k => reduceSeq(add, 0.0, {sums}), at(0, x)), xs)"
    program = parse_program(f"program sums(xs: [[[f32]40]30]64) = {term}")
    one_by_one = 4 * 40 * 30 * 40 * 64 / POCL.compute_units / POCL.clock_mhz / 1e3  # four cycles for each
    assert (prediction(program, POCL).kernels[0].parts["chains"] > one_by_one / 6) == waits


def test_one_item_of_a_group_hides_nothing():
    """A kernel of 1000003 elements, by one work-item of its group, took 11.7 ms on an H100."""
    loop = "reduceSeq(fun (h, x) => h * 31 + x, 7)"
    one = parse_program(f"program p(xs: [i32]1000003) = mapGlb(0, {loop}, split(1000003, xs))")
    assert 4 < ms(one, NVIDIA) < 50


def test_lanes_that_have_nothing_to_do_load_nothing():
    terms = (sums(f"split({MILLION // items}, xs)") for items in (1, 8))
    one, eight = (prediction(term, NVIDIA, N=MILLION).kernels[0].parts["strided"] for term in terms)
    assert eight == pytest.approx(one, rel=0.1)


def test_mathematical_functions_are_heavy():
    tangents = parse_program("program p(xs: [f32]N) = join(mapGlb(0, mapSeq(tanh), split(65536, xs)))")
    assert ms(tangents, N=MILLION) > 5 * ms(low.scal(65536, 16), N=MILLION)


def test_functions_that_a_kernel_spells_out_become_vectors():
    """PoCL: `exp` of single floats is text of the kernel without a branch, that of `log` has one; lanes are a call."""
    text = "program p(xs: [f32]N) = join(mapGlb(0, mapSeq({}), split(65536, xs)))"
    exp, log, tanh = (ms(parse_program(text.format(op)), N=MILLION) for op in ("exp", "log", "tanh"))
    assert 5 * exp < log < tanh


def test_traffic_is_the_data_where_it_exceeds_the_cache():
    (kernel,) = prediction(low.scal(65536), N=32 * MILLION).kernels
    assert kernel.bytes_moved == pytest.approx(3 * 4 * 32 * MILLION, rel=0.01)  # what is overwritten is fetched, too
    assert kernel.ms == pytest.approx(kernel.bytes_moved / (46 * 1e6))


def test_a_stencil_reads_each_row_from_memory_once():
    plan = low.plan_of(low.j2d5pt(), M=4096, N=4096)
    footprint = Footprint(analyse(plan.kernels[0]))
    assert footprint.fetched(1 << 20).lines * 64 == pytest.approx(2 * 4 * 4096**2, rel=0.2)


def test_accesses_that_differ_only_by_where_they_begin_are_one_with_a_start_each():
    (kernel,) = low.plan_of(low.j2d5pt(), M=4096, N=4096).kernels
    innermost, _ = max(analyse(kernel).walk(), key=lambda found: len(found[0].path))
    loads, stores = (
        [access for access in innermost.accesses if access.kind == kind] for kind in ("load", "store")
    )
    assert innermost.accessed == sum(len(access.starts) for access in innermost.accesses) > len(innermost.accesses)
    assert max(len(access.starts) for access in loads) >= 3 > len(stores)


def test_lines_that_are_stored_to_are_moved_as_often_as_one_says():
    footprint = footprint_of(low.plan_of(low.scal(65536), N=32 * MILLION).kernels[0])
    assert footprint.size(store_moves=2.0) == pytest.approx(1.5 * footprint.size())
    assert footprint.fetched(1 << 20, store_moves=2.0).lines * 64 == footprint.size(store_moves=2.0)


def test_a_column_of_a_large_power_of_two_falls_out_of_the_cache():
    footprint = Footprint(analyse(low.plan_of(BY_COLUMNS, N=4096).kernels[0]))
    misses = footprint.fetched(1 << 20)
    assert misses.strided == pytest.approx(4096**2, rel=0.01)


def test_lines_of_the_same_set_push_each_other_out():
    def rows_at_once(rows: int, columns: int) -> float:
        backwards = f"asVector({rows}, map(gather(reverse), xss))"
        sums = f"asScalar(mapGlb(0, vectorize({rows}, reduceSeq(add, 0.0)), {backwards}))"
        return ms(parse_program(f"program sums(xss: [[f32]N]M) = {sums}"), M=2048, N=columns)

    crowded, fewer, apart = rows_at_once(16, 4096), rows_at_once(8, 4096), rows_at_once(16, 4096 + 16)
    assert crowded > 3 * max(fewer, apart)


def rows_in_lanes(pitch: int) -> ir.Program:
    kernel = "asScalar(mapGlb(0, vectorize(8, mapSeq(fun x => x * 2.0)), asVector(8, X)))"
    return parse_program(f"program p(X: [[f32]{pitch}]M) = {kernel}")


def test_stores_of_rows_that_meet_in_a_set_wait_for_each_line():
    """Rows of 1024 floats begin in one set: 8 of them, read and written, are twice its lines, and take 5 ns an element;
    rows of 1040 floats take 0.6 (Zen 3).
    """
    together, apart = (ms(rows_in_lanes(pitch), M=8192) / pitch for pitch in (1024, 1040))
    assert 4 * apart < together < 16 * apart


def test_loops_that_read_squares_move_by_their_width():
    root = analyse(low.plan_of(rows_in_lanes(1024), POCL, M=8192).kernels[0])
    loop = next(region for region, _ in root.walk() if region.loop and region.loop.kind == "seq")
    assert {access.strides[-1] for access in loop.accesses} == {8}


def test_leaps_within_a_page_are_foreseen():
    """A row of 4 KB, every fourth line first, takes 1.2 times as long as line by line; of 16 KB, 2.6 times (Zen 3)."""
    text = "program p(X: [[f32]K]M) = mapGlb(0, fun row => mapSeq(reduceSeq(add, 0.0), transpose(split(64, row))), X)"
    walks = [footprint_of(low.plan_of(parse_program(text), POCL, K=k, M=4096).kernels[0]) for k in (1024, 4096)]
    within, beyond = (walk.fetched(1 << 25) for walk in walks)
    assert within.strided < 0.1 * within.lines
    assert beyond.strided > 0.5 * beyond.lines


@pytest.mark.parametrize("device", [POCL, INTEL], ids=lambda d: d.name)
def test_loops_around_unrolled_ones_become_vectors(device):
    """25 products for each element, all in one step: a sum of its own, which no other step waits for (11 ms for 66)."""
    text = """program p(xs: [f32]N, ws: [f32]25) =
      join(mapGlb(0, mapSeq(fun w => reduceSeq(fun (s, x, v) => s + x * v, 0.0, zip(w, ws))),
        split(4096, slide(25, 1, xs))))"""
    plan = low.plan_of(parse_program(text), device, N=MILLION + 24)
    loop = next(region for region, _ in analyse(plan.kernels[0]).walk() if region.loop and region.loop.kind == "seq")
    whole = in_one_step(loop)
    assert whole is not None
    assert not whole.children
    assert whole.operations == dict.fromkeys(loop.children[0].operations, 25)
    assert [len(access.starts) for access in whole.accesses if access.buffer == "xs"] == [25]
    (kernel,) = predict(plan, device).kernels
    cycles = kernel.parts["instructions"] * 1e-3 * device.compute_units * device.clock_mhz * 1e6 / MILLION
    assert cycles < 2 * 25 / device.lanes  # of an element
    (inner,) = loop.children
    own = inner.path[-1]._replace(is_unrolled=False)
    assert in_one_step(replace(loop, children=[replace(inner, path=(*loop.path, own))])) is None


def test_short_walks_are_not_foreseen():
    def lanes(chunk: int) -> float:
        chunks = f"asVector(16, transpose(map(split({chunk}), split(131072, xs))))"
        sums = f"asScalar(mapGlb(0, vectorize(16, mapSeq(reduceSeq(add, 0.0))), {chunks}))"
        return ms(parse_program(f"program sums(xs: [f32]N) = {sums}"), N=16 * MILLION)

    assert lanes(16) > 2 * lanes(128)


def test_what_no_map_shares_out_all_work_items_do():
    text = """program p(A: [[f32]64]N, B: [[f32]64]N) =
                mapGlb(1, fun c => mapGlb(0, fun x => x + 1.0, toGlobal(
                  mapSeq(fun row => reduceSeq(fun (acc, a, b) => acc + a * b, 0.0, zip(row, c)), A))), B)"""
    (kernel,) = prediction(parse_program(text), N=32).kernels
    assert kernel.flops == 32 * (32 * 32 * 64 * 2) + 32 * 32


NEIGHBOURS, APART = "transpose(split(4096, xs))", "split(256, xs)"


@pytest.mark.parametrize(
    ("chunks", "gathers", "widths"),
    [(NEIGHBOURS, False, [16]), (APART, False, [1] * 16), (NEIGHBOURS, True, [1] * 16)],
)
def test_vectors_across_work_items_gather_what_does_not_lie_side_by_side(chunks, gathers, widths):
    """Or all, as Intel's compiler does where their ids are ints."""
    (kernel,) = low.plan_of(sums(chunks), INTEL, N=MILLION).kernels
    regions = [region for region, _ in in_shared_vectors(analyse(kernel), 16, gathers).walk()]
    loads = [access for region in regions for access in region.accesses if access.kind == "load"]
    assert [access.width for access in loads for _ in access.starts] == widths
    assert regions[1].trips == 4096 // 16


def test_steps_that_are_unrolled_load_side_by_side():
    """Few work-items of a GPU keep its memory busy then: measured, a third of copy's rate."""
    columns = parse_program("program sums(xss: [[f32]N]N) = mapGlb(0, reduceSeq(add, 0.0), transpose(xss))")
    assert ms(columns, NVIDIA, N=8192) < 5 * ms(SCAL_ITEMS, NVIDIA, N=64 * MILLION)


def test_copies_that_are_read_once_take_no_registers_of_a_gpu():
    """The compiler loads each where it is read; what is read twice stays."""
    text = """program p(A: [[f32]250]N) = mapGlb(0, fun row =>
        let own = toPrivate(mapSeq(id, row)) in reduceSeq(fun (acc, x) => acc + {value}, 0.0, own), A)"""
    once, twice = (low.plan_of(text.replace("{value}", v), NVIDIA, N=1 << 16) for v in ("x", "x * x"))
    places = [analyse(plan.kernels[0]).passing for plan in (once, twice)]
    assert [len(found) for found in places] == [250, 0]
    assert not any(place.startswith("acc") for place in places[0])
    spilling = [predict(plan, NVIDIA).kernels[0].parts["spills"] for plan in (once, twice)]
    assert spilling[1] > spilling[0] == 0


def test_lines_that_no_cache_of_a_gpu_keeps_are_fetched_for_each_element():
    def rows(count: int) -> float:
        text = f"""program sums(xs: [f32]N) =
                     mapGlb(0, fun rows => reduceSeq(fun (acc, column) => mapSeq(add, zip(acc, column)),
                       fill({count}, 0.0), transpose(rows)), split({count}, split(256, xs)))"""
        return ms(parse_program(text), NVIDIA, N=64 * MILLION)

    assert rows(16) > 4 * ms(sums("transpose(split(262144, xs))"), NVIDIA, N=64 * MILLION)


def test_a_plan_without_trees():
    plan = low.plan_of(low.scal(4096), N=1 << 16)
    with pytest.raises(InputProblem, match="no statements"):
        predict(plan_of(launch_of(plan), plan.source), POCL)


def test_it_is_quick():
    plans = [low.plan_of(low.mm_blocked(8, 16), M=1024, N=1024, K=1024) for _ in range(5)]  # each is estimated once
    times = []
    for plan in plans:
        start = time.thread_time()
        predict(plan, POCL)
        times.append(time.thread_time() - start)
    assert min(times) < 0.03
