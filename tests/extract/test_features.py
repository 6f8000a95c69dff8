"""Features are what instrumented kernels count; those beyond the published ones say what they are meant to."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.errors import InputProblem, NestingProblem
from lift_egraph.extract.cache_lines import _warps_in, lines_of, warp_and_line
from lift_egraph.extract.events import MemoryAccess, events_of
from lift_egraph.extract.features import NAMES, PUBLISHED, feature_table, features
from lift_egraph.extract.iteration_domain import Axis, Domain, grid
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.nat import Nat, NatVar, maximum, minimum, nat
from lift_egraph.language.syntax import parse_program
from tests.codegen import low_level as low
from tests.codegen.corpus.programs import numbered
from tests.codegen.opencl import needs_opencl
from tests.depth import depth
from tests.extract.agreement import differences, pocl, unknown
from tests.extract.instrumented import run

BATCH = 16


def agree(plans: list[Plan], device: Device) -> None:
    """Check that the features of plans are what their kernels count, and that there is something to count."""
    context, wrong = pocl(), list[str]()
    for start in range(0, len(plans), BATCH):
        batch = plans[start : start + BATCH]
        for plan, counts in zip(batch, run(context, batch, *warp_and_line(device)), strict=True):
            assert counts.accesses > 0
            wrong += differences(plan, device, counts)
    assert not wrong, "\n".join(wrong)


@needs_opencl
@pytest.mark.timeout(60 + depth(6, 300) * 3)
@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
def test_features_of_random_terms_are_what_their_kernels_count(device: Device) -> None:
    wanted, plans, number = depth(6, 300), list[Plan](), 70
    while len(plans) < wanted:
        number += 1
        try:
            plan = compile_program(numbered(number), device)
        except NestingProblem:  # what code generation refuses, as the corpus knows
            continue
        if unknown(plan) in ("", "lines") and len(plan.kernels) > 0:
            plans.append(plan)
    agree(plans, device)


BORDERS = """
    program p(A: [[f32]N]M) =
      mapGlb(1, fun rows => mapGlb(0, fun w => reduceSeq(add, 0.0, join(w)),
        map(transpose, slide(3, 1, transpose(rows)))), slide(3, 1, pad(1, 1, clamp, map(pad(1, 1, constant(0.0)), A))))
"""
TILES_OF_ODD_LENGTHS = """
    program q(A: [[f32]N]M) =
      join(mapWrg(0, fun rows =>
        let tile = toLocal(mapLcl(0, mapSeq(id), rows)) in
        toGlobal(mapLcl(0, fun column => reduceSeq(add, 0.0, column), transpose(tile))), split(5, A)))
"""

ROWS_IN_LANES = """
    program r(A: [[f32]N]M) =
      mapGlb(0, fun rows => mapSeq(fun v => v * 2.0, join(map(fun c => asVector(4, c), transpose(rows)))), split(4, A))
"""


@needs_opencl
@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
def test_features_of_known_kernels_are_what_they_count(device: Device) -> None:
    others = [(parse_program(BORDERS), {"M": 9, "N": 37}), (parse_program(TILES_OF_ODD_LENGTHS), {"M": 20, "N": 12})]
    others.append((parse_program(ROWS_IN_LANES), {"M": 16, "N": 64}))  # whose steps are taken four at a time
    made = [(replace(p, name=f"{p.name}_{k}"), sizes) for k, (p, sizes) in enumerate([*low.SMALL, *others])]
    agree([low.plan_of(program, device, **sizes) for program, sizes in made], device)


PLACES = "mapGlb(0, fun i => {}, generate(N, fun i => i))"
BY_INDICES = [
    "if i > 0 then x[i - 1] else 0.0",
    "if i + 4 < N then x[i] * x[i + 4] else x[i] + x[i / 2] + x[i % 5]",
    "if i == 3 then 0.0 else x[max(i - 2, 0)]",
    "if i <= 2 || !(i * 2 < 30) then x[0] else 1.0",
    "if i >= 2 && N - i > 5 then x[i] else (if i < 1 then x[N - 1] else 0.0)",
    "reduceRangeSeq(add, 0.0, i, i + 3, x)",
    "reduceRangeSeq(add, 0.0, 0, i + 1, x)",
    "reduceRangeSeq(add, 0.0, i / 2, 2 * i, x)",
    "reduceSeq(fun (a, (v, j)) => a + (if i + j < 10 then v else 0.0), 0.0, zip(x, generate(N, fun j => j)))",
]


@needs_opencl
@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
def test_what_indices_decide_is_counted_though_the_text_computes_it_as_data(device: Device) -> None:
    """Of branches by values of `generate` both sides were counted, and a guess of the steps of ranges."""
    rows = "mapGlb(0, fun (i, row) => reduceRangeSeq(add, 0.0, i, N, row), zip(generate(N, fun i => i), split(N, y)))"
    bodies = [*(PLACES.format(body) for body in BY_INDICES), rows]
    texts = [f"program g{n}(x: [f32]N, y: [f32](N * N)) = {body}" for n, body in enumerate(bodies)]
    plans = [low.plan_of(text, device, N=21) for text in texts]
    assert [unknown(plan) for plan in plans] == [""] * len(plans)
    agree(plans, device)


def test_what_data_decides_or_may_wrap_around_stays_unknown() -> None:
    head = "program p(x: [f32]N, y: [i32]N) ="
    for body, kept in (
        ("mapGlb(0, fun (v, w) => if w > 0 then v else 0.0, zip(x, y))", "all"),
        ("mapGlb(0, fun (i, w) => if i > w then x[i] else 0.0, zip(generate(N, fun i => i), y))", "all"),
        (PLACES.format("if i * 1000000000 > 0 then x[i] else 0.0"), "all"),
        (PLACES.format("x[i * 1000000000]"), "lines"),
    ):
        assert unknown(low.plan_of(f"{head} {body}", POCL, N=21)) == kept


def test_a_loop_of_several_steps_at_once_moves_by_all_of_them() -> None:
    (kernel,) = compile_program(specialise(parse_program(ROWS_IN_LANES), {"M": 16, "N": 64}), POCL).kernels
    (load,) = (access for access in events_of(kernel).accesses if access.kind == "load")
    assert str(load.address) == "256 * glb_0 + 4 * i"


@needs_opencl
def test_features_of_other_launches_and_of_open_sizes_are_what_kernels_count() -> None:
    free = compile_program(specialise(low.mm_naive(), {"M": 7, "K": 5, "N": 9}), NVIDIA, any_launch=True)
    opened = compile_open(replace(low.mm_naive(), name="opened"), NVIDIA).at({"M": 7, "K": 5, "N": 9})
    agree([free.launched(Launch((4, 6, 1), (2, 3, 1))), opened], NVIDIA)


BINS = """
    program h(x: [i32]N in 0..16) = reduceByIndexAtomic(fun i => i, fun (acc, i) => acc + 1, fill(16, 0), x)
"""


@needs_opencl
def test_a_loop_that_all_work_items_share_may_stand_between_those_of_their_groups() -> None:
    """What counts in a kernel's text has no place for atomic operations: each is a store."""
    plan = low.plan_of(parse_program(BINS), NVIDIA, N=10_000)
    (counts,) = run(pocl(), [plan], *warp_and_line(NVIDIA))
    assert {line.split()[1] for line in differences(plan, NVIDIA, counts)} == {"global_stores", "local_stores"}
    groups = plan.kernels[1].launch.global_size[0] // plan.kernels[1].launch.local_size[0]
    stores = round(features(plan, NVIDIA)["local_stores"] * counts.items)
    assert stores == counts.events["local_stores"] + 10_000 == 16 * groups + 10_000


LISTING_6_1 = """
    program example(xs: [f32]N, ys: [f32]N) =
      join(mapWrg(0, fun chunk =>
        let sums = toLocal(mapLcl(0, fun (x, y) => x + y, chunk)) in mapLcl(0, fun s => 2.0 * s, sums),
        split(64, zip(xs, ys))))
"""


def test_listing_6_1_loads_and_stores_as_the_thesis_says() -> None:
    found = features(low.plan_of(LISTING_6_1, NVIDIA, N=1024), NVIDIA)
    counts = [found[name] for name in ("global_loads", "global_stores", "local_loads", "local_stores")]
    assert counts == [2, 1, 1, 1]
    assert [found[f"global_size_{d}"] for d in range(3)] == [1024, 1, 1]
    assert [found[f"local_size_{d}"] for d in range(3)] == [64, 1, 1]
    assert found["local_memory"] == 64 * 4


@pytest.mark.parametrize("chunk", [1, 2, 4, 8, 32, 64])
def test_listing_6_2_touches_as_many_lines_as_its_chunks_are_apart(chunk: int) -> None:
    """Of 32 words each, by warps of 32: with chunks as long as a line each item has its own."""
    program = f"program example(xs: [f32]N) = mapGlb(0, mapSeq(fun x => x * 2.0), split({chunk}, xs))"
    found = features(low.plan_of(program, NVIDIA, N=1 << 16), NVIDIA)
    assert found["lines_per_load"] == found["lines_per_store"] == found["lines_per_access"] == min(chunk, 32)


def test_all_features_have_their_place_and_are_finite() -> None:
    for device in (POCL, NVIDIA):
        found = features(low.plan_of(low.mm_tiled(), device, M=64, N=64, K=64), device)
        assert tuple(found) == NAMES
        assert tuple(found)[: len(PUBLISHED)] == PUBLISHED
        assert all(type(value) is float and np.isfinite(value) for value in found.values())


@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
def test_plans_without_text_have_the_same_features(device: Device) -> None:
    for program, sizes in low.SMALL:
        special = specialise(program, sizes)
        printed, bare = (compile_program(special, device, with_text=text) for text in (True, False))
        assert features(bare, device) == features(printed, device)
        assert [k.body for k in bare.kernels] == [k.body for k in printed.kernels]
        assert not bare.source
        assert not any(kernel.source for kernel in bare.kernels)


def test_a_table_has_a_row_for_each_plan() -> None:
    plans = [low.plan_of(low.mm_tiled(tile), NVIDIA, M=64, N=64, K=64) for tile in (4, 8)]
    table = feature_table(iter(plans), NVIDIA)
    assert table.tolist() == [list(features(plan, NVIDIA).values()) for plan in plans]
    assert feature_table([], NVIDIA).shape == (0, len(NAMES))


def test_sizes_that_are_arguments_count_as_their_values() -> None:
    program = low.mm_naive()
    opened = features(compile_open(program, NVIDIA).at({"M": 64, "N": 32, "K": 16}), NVIDIA)
    known = features(low.plan_of(program, NVIDIA, M=64, N=32, K=16), NVIDIA)
    assert opened["global_loads"] * opened["global_size_0"] * opened["global_size_1"] == 2 * 64 * 32 * 16
    for name in ("operations_per_byte", "operations_per_touched_byte", "vector_width", "register_tile"):
        assert opened[name] == known[name]
    assert opened["working_set_last"] < 1


def test_a_plan_without_statements_has_no_features() -> None:
    plan = low.plan_of(low.scal(), POCL, N=1 << 17)
    read = replace(plan, kernels=tuple(replace(k, body=()) for k in plan.kernels))
    with pytest.raises(InputProblem, match="scal has no statements"):
        features(read, POCL)


def test_what_nothing_is_computed_in_is_no_kernel_beside_others() -> None:
    """Its estimate was refused, as that of a plan that was read from a file, and with it the features of the plan."""
    text = "program p(A: [[f32]9]0) = reduceSeq(add, 2.0, mapGlb(0, reduceSeq(add, 0.0), A))"
    plan = compile_program(parse_program(text), POCL)
    assert [len(kernel.body) > 0 for kernel in plan.kernels] == [True]
    assert plan.source.count("kernel void") == 1
    assert features(plan, POCL)["launches"] == 1


def of(program: ir.Program | str, device: Device = POCL, **sizes: int) -> dict[str, float]:
    return features(low.plan_of(program, device, **sizes), device)


def test_working_sets_tell_inputs_that_fit_into_a_cache() -> None:
    small, large = (of(low.j2d5pt(), M=n, N=n) for n in (512, 8192))
    assert small["working_set_last"] < 1 < large["working_set_last"]
    assert (
        small["beyond_last"] * 1.05 < large["beyond_last"] / 16 * 1.2
    )  # a work-item of the larger has 16 times the row


def test_vectors_and_blocks_are_seen() -> None:
    naive = of(low.mm_naive(), M=512, N=512, K=512)
    blocked = of(low.mm_blocked(8, 16), M=512, N=512, K=512)
    assert naive["vector_width"] == 1 < blocked["vector_width"]
    assert (naive["register_tile"], blocked["register_tile"]) == (1, 8 * 16)
    assert naive["registers"] < blocked["registers"]
    assert naive["operations_per_byte"] < blocked["operations_per_byte"]
    assert (
        naive["operations_per_touched_byte"] == blocked["operations_per_touched_byte"] == 2 * 512**3 / (3 * 512**2 * 4)
    )


def test_arithmetic_that_fills_no_vector_is_seen() -> None:
    naive, blocked = of(low.mm_naive(), M=512, N=512, K=512), of(low.mm_blocked(8, 16), M=512, N=512, K=512)
    assert (naive["operation_lanes"], blocked["operation_lanes"]) == (1 / 16, 1)


def test_idle_lanes_and_slack() -> None:
    program = "program p(xs: [f32]N) = join(mapWrg(0, mapLcl(0, fun x => x + 1.0), split(8, xs)))"
    found = of(program, NVIDIA, N=8 * 133)
    assert found["idle_lanes"] == 1 - 8 / 32
    assert found["groups_per_unit"] == 133 / 132
    assert found["imbalance"] == pytest.approx(2 / (133 / 132))


def test_functions_and_launches_are_counted() -> None:
    found = of("program p(xs: [f32]N) = mapGlb(0, fun x => sqrt(x) + 1.0, mapGlb(0, fun x => exp(x), xs))", N=8192)
    assert found["launches"] == 2
    assert found["functions"] == 1  # of each work-item: half of them have another addition
    assert found["operations"] == 1.5


# --- domains ------------------------------------------------------------------------------------------

AXES = (Axis("i", 5), Axis("j", 7), Axis("k", 3))
VARIABLES = {axis.name: nat(NatVar(axis.name, 0, axis.length - 1)) for axis in AXES}


@st.composite
def conditions(draw: st.DrawFn) -> Nat:
    """Sums of indices, some with a quotient, a rest or a minimum."""
    total = nat(draw(st.integers(-6, 9)))
    for variable in VARIABLES.values():
        total = total + draw(st.integers(-3, 3)) * variable
    other = VARIABLES[draw(st.sampled_from("ijk"))]
    kind = draw(st.sampled_from(["", "", "/", "%", "min", "max"]))
    number = draw(st.integers(1, 4))
    more = {"/": other // number, "%": other % number, "min": minimum(other, number), "max": maximum(other, number)}
    return total + more.get(kind, nat(0))


@given(st.lists(conditions(), max_size=3), st.lists(st.lists(conditions(), min_size=1, max_size=2), max_size=2))
def test_the_size_of_a_domain_is_the_number_of_its_points(inside: list[Nat], excluded: list[list[Nat]]) -> None:
    domain = Domain(AXES).where(inside)
    for conjunction in excluded:
        domain = domain.except_where(conjunction)
    count = 0
    for point in product(*(range(axis.length) for axis in AXES)):
        values = {axis.name: index for axis, index in zip(AXES, point, strict=True)}
        holds = all(c.evaluate(values) >= 0 for c in inside)
        count += holds and not any(all(c.evaluate(values) >= 0 for c in each) for each in excluded)
    assert domain.size == count


def test_long_domains_are_counted_without_their_points() -> None:
    i, j = nat(NatVar("i", 0, (1 << 30) - 1)), nat(NatVar("j", 0, 15))
    domain = Domain((Axis("i", 1 << 30), Axis("j", 16))).where([i + j - 3, (1 << 30) - 1 - i])
    assert domain.size == (1 << 34) - (3 + 2 + 1)


def test_a_sample_of_a_box_lies_evenly_and_stands_for_all() -> None:
    values, each = grid([Axis("i", 1000)], most=999, sample=10)
    assert values["i"].tolist() == list(range(50, 1000, 100))
    assert each == 100


@st.composite
def accesses(draw: st.DrawFn) -> tuple[MemoryAccess, Launch]:
    """Accesses of work-items in two dimensions and of a loop, some clamped, divided, or only of the first items."""
    local, groups = (draw(st.tuples(st.integers(1, most), st.integers(1, 2))) for most in (20, 3))
    (x, y), size = (nat(NatVar(n, 0, 119)) for n in "xy"), [n * k for n, k in zip(local, groups, strict=True)]
    address = nat(draw(st.integers(0, 9)))
    strides = st.sampled_from([0, 1, 2, 3, 32, 100, -1])
    for index in (x, y, nat(NatVar("s", 0, 2))):
        address = address + draw(strides) * index
    more = [nat(0), nat(0), minimum(x, 5), 40 * maximum(y - 1, 0), 64 * (x // 4) + x % 4, x * y]
    address = address + draw(st.sampled_from(more))
    axes = [Axis(n, size[d], "glb", d, size[d], f"get_global_id({d})") for d, n in enumerate("xy")]
    domain = Domain((*axes, Axis("get_global_id(2)", 1, "glb", 2, 1), Axis("s", 3)))
    domain = domain.where([draw(st.integers(1, 100)) - x] if draw(st.booleans()) else [])
    element = draw(st.sampled_from([1, 4, 8]))
    access = MemoryAccess("load", "global", "a", address, element, element * draw(st.sampled_from([1, 4])), domain)
    return access, Launch((*size, 1), (*local, 1))


@given(accesses(), st.sampled_from([4, 8]), st.sampled_from([64, 128]))
def test_the_lines_of_an_access_are_those_of_each_warp(given: tuple[MemoryAccess, Launch], warp: int, line: int):
    access, launch = given
    assert launch.local_size is not None
    (width, height, _), items = launch.local_size, prod(launch.local_size)
    lines = warps = running = 0
    for *group, step, start in product(
        *(range(n // k) for n, k in zip(launch.global_size[:2], launch.local_size[:2], strict=True)),
        range(3),
        range(0, items, warp),
    ):
        begin = list[int]()
        for number in range(start, min(start + warp, items)):
            place = {"x": group[0] * width + number % width, "y": group[1] * height + number // width, "s": step}
            if all(c.evaluate(place) >= 0 for c in access.domain.conditions):
                begin.append((access.address.evaluate(place)) * access.element_bytes)
        apart = [each - begin[0] for each in begin]
        lines += len({n for each in apart for n in range(each // line, (each + access.bytes - 1) // line + 1)})
        warps, running = warps + bool(begin), running + len(begin)
    assert lines_of(access, launch, warp, line) == (lines, warps, running)


def test_accesses_that_move_evenly_need_no_warps() -> None:
    """Half of the time of features went into lines that depend on the strides alone."""
    _warps_in.cache_clear()
    of("program p(A: [[f32]N]M) = mapGlb(1, mapGlb(0, fun x => x + 1.0), A)", NVIDIA, M=64, N=64)
    assert _warps_in.cache_info().misses == 0


VECTORS = "program v(xs: [f32]N) = asScalar(mapGlb(0, vectorize(4, fun x => x * 2.0 + 1.0), asVector(4, xs)))"
SUMS = "program s(A: [[f32]64]N) = mapGlb(0, fun row => reduceSeq(add, 0.0, row), A)"
STAGES = "program t(xs: [f32]N) = mapGlb(0, fun x => x * 2.0, toGlobal(mapGlb(0, fun x => x + 1.0, xs)))"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            VECTORS,
            {"access_share": 1 / 2, "scalar_accesses": 0, "operation_width": 4, "operations_per_result": 2}
            | {"statements": 4, "longest_body": 4, "temporaries": 0, "touched_per_data": 1, "chained_operations": 0},
        ),
        (
            SUMS,
            {"access_share": 65 / 129, "scalar_accesses": 1, "operations_per_result": 64, "loop_steps": 64 / 129}
            | {"loop_trips": 64, "chained_operations": 1, "spills_share": 0, "index_work": 0},
        ),
        (STAGES, {"temporaries": 1 / 2, "operations_per_result": 2, "touched_per_data": 2, "statements": 6}),
    ],
    ids=("vectors", "sums", "stages"),
)
def test_what_estimates_are_made_of_is_what_the_text_says(text: str, known: dict[str, float]) -> None:
    found = features(low.plan_of(text, POCL, N=1 << 12), POCL)
    assert {name: found[name] for name in known} == pytest.approx(known)


def test_shares_of_an_estimate_say_what_it_waits_for() -> None:
    sums, vectors = (features(low.plan_of(text, POCL, N=1 << 12), POCL) for text in (SUMS, VECTORS))
    assert sums["instructions_share"] > sums["chains_share"] > 0.2
    assert vectors["chains_share"] == 0
    assert vectors["launch_share"] > 0.5 > vectors["strided_share"]
    for device in (POCL, NVIDIA):
        small, large = (features(low.plan_of(VECTORS, device, N=1 << n), device) for n in (12, 26))
        assert 0 < small["of_bound"] < large["of_bound"] <= 1
        assert large["launch_share"] < 0.1 < small["launch_share"]
