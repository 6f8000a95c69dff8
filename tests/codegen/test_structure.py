"""The text of generated kernels: what the thesis's listings show, and what must be refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from lift_egraph.api import Runner, random_inputs
from lift_egraph.codegen.devices import GENERIC, INTEL, NVIDIA, POCL
from lift_egraph.codegen.plans import launch_file
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.codegen.plans.launch_file import launch_of
from lift_egraph.files import json_text
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import run
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench import compile_low_level
from tests.codegen import low_level as low
from tests.codegen.low_level import plan_of
from tests.codegen.opencl import needs_opencl, results, text_of
from tests.depth import in_turn


def body_of(plan: Plan) -> list[str]:
    """The statements of the (last) kernel, without indentation."""
    lines = [line.strip() for line in plan.kernels[-1].source.splitlines()]
    return lines[lines.index(next(line for line in lines if line.startswith("kernel void"))) + 1 : -1]


def test_a_result_that_another_is_made_of_is_computed_in_its_place_and_nothing_copied() -> None:
    program = parse_program(
        """program p(x: [f32]64, v: [f32]64) = let w = mapGlb(0, neg, v) in
             let u = mapGlb(1, mapGlb(0, neg), split(8, v)) in
             let columns = transpose(split(8, w)) in
             (mapGlb(0, add, zip(x, join(u))), mapGlb(0, id, w), (columns, mapGlb(1, mapGlb(0, id), u)))"""
    )
    plan = plan_of(program, optimise=low.APART)
    arguments = [{a.name for a in kernel.arguments} for kernel in plan.kernels]
    assert arguments == [
        {"v", "result_1_0"},
        {"v", "result_1_1_1"},
        {"x", "result_1_1_1", "result_0"},
        {"result_1_0", "result_1_1_0"},
    ]
    assert plan.kernels[-1].launch.global_size == (8, 8, 1)


def test_the_partial_dot_product_is_listing_4_6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lift_egraph.codegen.lowering.iterate.UNROLLED_TERMS", 0)
    plan = plan_of(low.partial_dot(), N=1024)
    assert plan.kernels[0].launch == Launch((512, 1, 1), (64, 1, 1))
    assert body_of(plan) == [
        "local float tmp[64];",
        "local float tmp1[32];",
        "const int lcl_0 = get_local_id(0);",
        "const int wrg_0 = get_group_id(0);",
        "float acc = 0.0f;",
        "#pragma unroll",
        "for (int i = 0; i < 2; i += 1) {",
        "const int at = i + 2 * lcl_0 + 128 * wrg_0;",
        "acc = acc + xs[at] * ys[at];",
        "}",
        "tmp[lcl_0] = acc;",
        "int n = 64;",
        "local float *in = tmp;",
        "local float *out = tmp1;",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "for (int iter = 0; iter < 6; iter += 1) {",
        "if (get_local_id(0) < n / 2) {",
        "float a = 0.0f;",
        "#pragma unroll",
        "for (int j = 0; j < 2; j += 1) {",
        "a = a + in[j + 2 * lcl_0];",
        "}",
        "out[lcl_0] = a;",
        "}",
        "n = n / 2;",
        "in = out;",
        "out = (out == tmp) ? tmp1 : tmp;",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "}",
        "if (get_local_id(0) < 1) {",
        "result[wrg_0] = tmp[0];",
        "}",
    ]


def test_a_short_iterate_is_unrolled_in_two_buffers() -> None:
    lines = body_of(plan_of(low.partial_dot(), N=1024))
    assert [line for line in lines if line.startswith("local")] == ["local float tmp[64];", "local float tmp1[32];"]
    guards = [line for line in lines if line.startswith("if (get_local_id(0) <")]
    assert guards == [f"if (get_local_id(0) < {n}) {{" for n in (32, 16, 8, 4, 2, 1, 1)]
    stored = [line for line in lines if re.match(r"tmp1?\[.*\] =", line)]
    assert [line.partition("[")[0] for line in stored] == ["tmp", *["tmp1", "tmp"] * 3]
    assert sum(line.startswith("barrier") for line in lines) == 6  # the last item copies its own element


def test_only_short_loops_are_unrolled_by_the_device() -> None:
    def unrolled(rows: int, length: int) -> int:
        sums = parse_program("""
            program sums(xs: [[[f32]K]M]N) =
              mapGlb(0, reduceSeq(fun (acc, row) => reduceSeq(add, acc, row), 0.0), xs)
        """)

        lines = body_of(plan_of(sums, N=5, M=rows, K=length))
        return lines.count("#pragma unroll")

    assert unrolled(4, 32) == 2  # 128 steps in all
    assert unrolled(8, 32) == 1  # 256
    assert unrolled(4, 33) == 0


def test_loops_with_barriers_are_not_unrolled() -> None:
    lines = body_of(plan_of(low.mm_tiled(4), NVIDIA, M=8, K=8, N=8))
    assert lines[lines.index("for (int i = 0; i < 2; i += 1) {") - 1] != "#pragma unroll"


def test_loops_count_in_the_steps_of_their_indices() -> None:
    every_fourth = parse_program("""
        program every_fourth(xs: [[f32]4]N, ys: [f32]N) =
          mapSeq(fun (row, y) => y + at(0, row), zip(xs, ys))
    """)
    columns = parse_program("program columns(xs: [[f32]4]N) = mapSeq(at(0), xs)")
    far_apart = parse_program("program far_apart(xs: [[f32]K]N) = reduceSeq(add, 0.0, map(at(0), xs))")

    assert "for (int i = 0; i < 5; i += 1) {" in body_of(plan_of(every_fourth, N=5))  # ys[i] stands in the way
    assert "i / " not in plan_of(columns, N=5).source
    assert "for (int i = 0; i < 65536; i += 16) {" in body_of(plan_of(far_apart, N=1 << 12, K=16))
    assert "for (int i = 0; i < 65536; i += 1) {" in body_of(plan_of(far_apart, N=1 << 16, K=1 << 15))


def test_stepped_loops_keep_vector_accesses_aligned() -> None:
    doubled = parse_program("""
        program doubled(xs: [f32]N) =
          join(
            mapGlb(0, fun chunk => asScalar(mapSeq(vectorize(4, fun x => x * 2.0), asVector(4, chunk))), split(64, xs)))
    """)
    lines = body_of(plan_of(doubled, NVIDIA, N=256))
    assert "for (int i = 0; i < 64; i += 4) {" in lines
    assert not [line for line in lines if "float4_u" in line]


def test_long_loops_of_groups_are_unrolled_in_part_on_cpus() -> None:
    def unrolled(dialect) -> list[str]:
        lines = body_of(plan_of(low.mm_tiled(64), dialect, M=128, K=128, N=128))
        return [f"{line}: {after}" for line, after in itertools.pairwise(lines) if line.startswith("#pragma")]

    assert unrolled(POCL) == ["#pragma unroll 4: for (int j = 0; j < 64; j += 1) {"]
    assert unrolled(INTEL) == unrolled(POCL)
    assert unrolled(GENERIC) == []
    assert "#pragma" not in plan_of(low.mm_naive(), POCL, M=64, K=64, N=64).source


def test_accumulators_that_start_with_themselves_are_not_copied() -> None:
    sums = parse_program("""
        program sums(xs: [[[f32]9]10]N) =
          mapGlb(0,
            fun rows =>
              mapSeq(id,
                reduceSeq(
                  fun (acc, row) => reduceSeq(fun (both, x) => mapSeq(fun c => c + x, both), acc, row),
                  fill(2, 0.0),
                  rows)),
            xs)
    """)
    lines = body_of(plan_of(sums, N=3))
    assert [line for line in lines if line.startswith("for")] == [
        "for (int i1 = 0; i1 < 90; i1 += 9) {",
        "for (int j1 = 0; j1 < 9; j1 += 1) {",
    ]
    assert [line for line in lines if line.startswith("acc")] == [f"acc_{k} = acc_{k} + x;" for k in (0, 1)]


def test_register_blocks_are_named_vectors() -> None:
    lines = body_of(plan_of(low.mm_blocked(2, 16), M=4, K=8, N=256))
    assert lines == [
        "const int glb_0 = get_global_id(0);",
        "for (int i = 0; i < 256; i += 16) {",
        "float16 acc_0 = (float16)(0.0f);",
        "float16 acc_1 = (float16)(0.0f);",
        "#pragma unroll",
        "for (int j1 = 0; j1 < 8; j1 += 1) {",
        "const float16 ab_1 = *(global const float16_u *)(B + i + 256 * j1);",
        "const int A_at = 16 * glb_0 + j1;",
        "acc_0 = acc_0 + A[A_at] * ab_1;",
        "acc_1 = acc_1 + A[A_at + 8] * ab_1;",
        "}",
        "*(global float16_u *)(result + 512 * glb_0 + i) = acc_0;",
        "*(global float16_u *)(result + 512 * glb_0 + i + 256) = acc_1;",
        "}",
    ]
    others = body_of(plan_of(low.mm_blocked(2, 16), INTEL, M=4, K=8, N=256))
    assert others[-4:-1] == [
        "const int result_at = 512 * glb_0 + i;",
        "*(global float16_u *)(result + result_at) = acc_0;",
        "*(global float16_u *)(result + result_at + 256) = acc_1;",
    ]


def test_pocl_reads_local_memory_at_the_own_index_alone() -> None:
    def step(dialect) -> str:
        lines = body_of(plan_of(low.mm_tiled(4), dialect, M=8, K=8, N=8))
        return next(line for line in lines if " * " in line and line.startswith("acc"))

    assert step(POCL).endswith(" + tmp[j + 4 * lcl_1] * (tmp1 + 4 * j)[lcl_0];")
    assert step(INTEL).endswith(" + tmp[j + 4 * lcl_1] * tmp1[4 * j + lcl_0];")


def test_dialects_differ_in_vector_accesses() -> None:
    sizes = {"M": 4, "K": 8, "N": 32}
    assert "vload16(0, B + i + 32 * j1)" in plan_of(low.mm_blocked(2, 16), GENERIC, **sizes).source
    assert "vload" not in plan_of(low.mm_blocked(2, 16), POCL, **sizes).source


@pytest.mark.parametrize(
    ("element", "width", "pieces"),
    [
        ("f32", 16, "(exp(a.lo), exp(a.hi))"),
        ("f64", 8, "(exp(a.lo), exp(a.hi))"),
        ("f64", 16, "(exp(a.lo.lo), exp(a.lo.hi), exp(a.hi.lo), exp(a.hi.hi))"),
    ],
)
def test_functions_of_wide_vectors_are_computed_in_pieces_on_pocl(element: str, width: int, pieces: str) -> None:
    text = f"program powers(xs: [{element}]N) = asScalar(mapGlb(0, vectorize({width}, exp), asVector({width}, xs)))"
    assert pieces in plan_of(text, N=32).source


@needs_opencl
def test_dot_is_the_built_in_function() -> None:
    text = """
    program dot(xs: [f32]N, ys: [f32]N) =
      toGlobal(mapGlb(0, fun r => reduceSeq(fun (s, (a, b)) => s + dot(a, b), 0.0, r),
        split(8, zip(asVector(4, xs), asVector(4, ys)))))
    """
    found = compile_low_level(parse_program(text), {"N": 1024})
    (kernel,) = found.plan.kernels
    assert found.verdict.valid
    assert kernel.name == "dot_"
    assert re.search(r"\bdot\(\*\(global const float4_u \*\)", kernel.source)


def test_padded_vectors_have_a_fast_path() -> None:
    source = plan_of(low.j2d5pt(4, 16), M=64, N=64).source
    assert source.count("?") - source.count("static inline") == 2, "only the left and the right neighbour need a check"
    assert "(16 * j >= 1) ? (*(global const float16_u *)" in source


def test_tiles_in_local_memory_need_two_barriers_a_step() -> None:
    plan = plan_of(low.mm_tiled(16), M=64, K=64, N=64)
    assert plan.kernels[0].source.count("barrier(CLK_LOCAL_MEM_FENCE)") == 2
    assert plan.kernels[0].local_bytes == 2 * 16 * 16 * 4


def test_no_barrier_while_each_work_item_copies_elements_of_its_own() -> None:
    twice = parse_program("""
        program twice(xs: [(f32, f32)]N) =
          join(
            mapWrg(0,
              fun c => join(mapLcl(0, mapSeq(add), toLocal(mapLcl(0, mapSeq(fun (x, y) => (y, x)), split(4, c))))),
              split(64, xs)))
    """)
    assert "barrier" not in "\n".join(body_of(plan_of(twice, N=128)))


def test_vectors_that_overlap_those_of_other_work_items_need_a_barrier() -> None:
    windows = parse_program("""
        program windows(xs: [f32]N) =
          mapWrg(0,
            fun chunk =>
              mapLcl(0, fun w => at(0, asVector(4, w)), slide(4, 1, toLocal(mapLcl(0, fun x => x + 1.0, chunk)))),
            split(16, xs))
    """)
    text = "\n".join(body_of(plan_of(windows, N=64)))
    assert "(local const float4_u *)(tmp + lcl_0)" in text
    assert text.count("barrier") == 1


def test_the_components_of_a_vector_of_four_scalars() -> None:
    turned = parse_program("""
        program turned(xs: [f32]N, ys: [f32]N) =
          mapGlb(0,
            fun (x, y) =>
              at(0,
                asVector(4, generate(4, fun i => select(i == 0, x, select(i == 1, y, select(i == 2, x + y, 0.5)))))),
            zip(xs, ys))
    """)
    assert body_of(plan_of(turned, N=8)) == [
        "const int glb_0 = get_global_id(0);",
        "const float x = xs[glb_0];",
        "const float y = ys[glb_0];",
        "*(global float4_u *)(result + 4 * glb_0) = (float4)(x, y, x + y, 0.5f);",
    ]


def test_tuples_are_written_in_turn_unless_a_write_would_change_what_is_read() -> None:
    both = parse_program("""
        program both(xs: [f32]N) =
          mapGlb(0, reduceSeq(fun (acc, x) => (get(0, acc) + x, get(1, acc) * x), (0.0, 1.0)), split(4, xs))
    """)
    swapped = parse_program("""
        program swapped(xs: [f32]N) =
          mapGlb(0, reduceSeq(fun (acc, x) => (get(1, acc), get(0, acc) + x), (0.0, 1.0)), split(4, xs))
    """)

    assert "next" not in plan_of(both, N=16).source
    assert body_of(plan_of(both, N=16))[1:3] == ["float acc_0 = 0.0f;", "float acc_1 = 1.0f;"]
    assert plan_of(swapped, N=16).source.count("const float next") == 1


def test_control_flow_follows_the_launch() -> None:
    doubled = parse_program("program doubled(xs: [f32]N) = mapGlb(0, fun x => x + x, xs)")
    assert "for" not in body_of(plan_of(doubled, N=64))[0]
    assert body_of(plan_of(doubled, launch=Launch((64, 1, 1), (64, 1, 1)), N=50))[0] == "if (get_global_id(0) < 50) {"
    assert body_of(plan_of(doubled, launch=Launch((16, 1, 1)), N=64))[0] == (
        "for (int glb_0 = get_global_id(0); glb_0 < 64; glb_0 += get_global_size(0)) {"
    )


def test_a_reduction_of_parallel_results_is_two_kernels() -> None:
    plan = plan_of(low.dot(64, 4), optimise=low.APART, N=256)
    assert [k.launch.global_size for k in plan.kernels] == [(4, 1, 1), (1, 1, 1)]
    lengths = [(b.role, b.length) for b in plan.buffers]
    assert lengths == [("input", 256), ("input", 256), ("temporary", 4), ("output", 1)]


def test_a_plan_survives_json() -> None:
    plan = plan_of(low.scal(32, 4), N=96)
    content = launch_of(plan)
    again = launch_file.plan_of(msgspec.json.decode(json_text(content), type=launch_file.LaunchFile), plan.source)
    assert launch_of(again) == content
    assert (again.buffers, again.scalars, again.options) == (plan.buffers, plan.scalars, plan.options)
    assert [k.arguments for k in again.kernels] == [k.arguments for k in plan.kernels]


def test_indices_beyond_32_bits_are_computed_in_64() -> None:
    source = plan_of(low.mm_naive(), M=1 << 16, K=1 << 16, N=2).source
    assert "A[65536L * (long)glb_0" in source or "A[65536 * (long)glb_0" in source


def test_private_arrays_stay_arrays_where_the_dialect_says_so() -> None:
    device = replace(NVIDIA, emission=replace(NVIDIA.emission, named_arrays=False))
    source = plan_of(low.mm_blocked(4, 4), device, M=8, K=8, N=8).source
    assert "float4 acc[4];" in source
    assert "#pragma unroll" in source


ROWS = """
    program rows(xs: [[f32]640]4) =
      mapGlb(0, fun row => let e = asScalar(mapSeq(vectorize(16, exp), asVector(16, row))) in
        let s = reduceSeq(add, 0.0, e) in asScalar(mapSeq(vectorize(16, fun v => v / s), asVector(16, e))), xs)
"""


def test_a_private_array_that_no_registers_hold_stays_an_array() -> None:
    (kernel,) = plan_of(parse_program(ROWS)).kernels
    assert "float16 tmp[40];" in kernel.source
    assert "for (" in kernel.source
    assert kernel.launch.local_size == (1, 1, 1)  # PoCL loses what several work-items write to such arrays
    short = plan_of(parse_program(ROWS.replace("640", "256"))).source
    assert "tmp_0" in short
    assert "tmp[" not in short


SCORES = """
    program scores(Q: [[f32]64]512, K: [[f32]64]{keys}) =
      mapGlb(0, fun q => let s = mapSeq(fun k => reduceSeq(fun (acc, a, b) => acc + a * b, 0.0, zip(q, k)), K) in
        let top = reduceSeq(max, -inf, s) in mapSeq(fun v => v - top, s), Q)
"""


def test_on_a_gpu_an_array_of_many_stays_one_where_its_compiler_would_unroll_a_long_text() -> None:
    many = plan_of(parse_program(SCORES.format(keys=129)), NVIDIA).source
    assert "[129];" in many
    assert len(many) < 3000
    few = plan_of(parse_program(SCORES.format(keys=8)), NVIDIA).source
    assert "tmp_7" in few
    assert "[8];" not in few


def test_it_is_no_array_in_groups_of_several_work_items_on_pocl() -> None:
    shared = plan_of(parse_program(ROWS), launch=Launch((4, 1, 1), (2, 1, 1))).source
    assert "tmp_39" in shared
    assert "float16 tmp[" not in shared


def test_a_value_used_behind_a_loop_is_read_behind_it() -> None:
    scaled = parse_program("""
        program scaled(xs: [f32]N, ys: [[f32]K]N) =
          mapGlb(0, fun (x, row) => let total = reduceSeq(add, 0.0, row) in x * total + x, zip(xs, ys))
    """)
    lines = body_of(plan_of(scaled, N=5, K=100))
    read = next(k for k, line in enumerate(lines) if "= xs[glb_0]" in line)
    assert lines.index("}") < read < next(k for k, line in enumerate(lines) if line.startswith("result["))


def test_elements_chosen_at_run_time_are_variables_on_pocl() -> None:
    chosen = parse_program("""
        program chosen(xs: [[f32]4]N, i: [i32]4) =
          mapGlb(0, fun row => lookup(i, toPrivate(mapSeq(fun x => x + 1.0, row))), xs)
    """)
    assert "== 0 ? tmp_0 : " in plan_of(chosen, N=4).source
    assert "float tmp[4];" in plan_of(chosen, INTEL, N=4).source


def test_an_iterate_over_kernels_is_one_text_between_two_temporaries() -> None:
    smoothed = parse_program("""
        program smoothed(xs: [f32]N) =
          iterate(5, fun (row: [f32]n) => mapGlb(0, reduceSeq(add, 0.0), slide(3, 1, pad(1, 1, clamp, row))), xs)
    """)
    plan = plan_of(smoothed, optimise=low.APART, N=8)
    assert [[a.name for a in k.arguments] for k in plan.kernels] == [
        ["xs", "tmp"], ["tmp", "tmp1"], ["tmp1", "tmp"], ["tmp", "tmp1"], ["tmp1", "result"],
    ]  # fmt: skip
    assert len({k.name for k in plan.kernels}) == 1
    assert plan.source.count("kernel void") == 1


@pytest.mark.parametrize(("length", "asked"), [(8, ""), (200, " 32"), (1000, " 32")])
def test_long_loops_are_unrolled_on_nvidia_by_the_size_of_their_body(length: int, asked: str) -> None:
    sums = parse_program("program sums(xs: [[f32]K]N) = mapGlb(0, reduceSeq(add, 0.0), xs)")
    lines = body_of(plan_of(sums, NVIDIA, N=300, K=length))
    assert [line for line in lines if line.startswith("#pragma")] == [f"#pragma unroll{asked}"]


def test_a_long_loop_over_tiles_is_unrolled_on_nvidia_less_than_a_small_one() -> None:
    lines = body_of(plan_of(low.mm_tiled(16), NVIDIA, M=256, N=256, K=256))
    assert [line for line in lines if line.startswith("#pragma")] == ["#pragma unroll 16", "#pragma unroll"]


def test_sine_and_cosine_of_one_value_are_computed_together_on_nvidia() -> None:
    turned = parse_program("program turned(xs: [f32]N) = mapGlb(0, fun x => (sin(2.0 * x), cos(2.0 * x)), xs)")
    lines = body_of(plan_of(turned, NVIDIA, N=512))
    assert "const float sine = sincos(2.0f * x, &cosine);" in lines
    assert not any(re.search(r"\b(sin|cos)\(", line) for line in lines)
    assert "sincos" not in plan_of(turned, POCL, N=512).source


@pytest.mark.parametrize(("columns", "copies"), [(8, 8), (97, 1)])
def test_short_loops_are_not_unrolled_where_that_makes_a_long_text(columns: int, copies: int) -> None:
    plan = plan_of(
        """program scores(Q: [[f32]31]4, K: [[f32]31]N) =
             mapGlb(0, fun q =>
               let s = toPrivate(mapSeq(fun k => reduceSeq(fun (t, (a, b)) => t + a * b, 0.0, zip(q, k)), K)) in
               reduceSeq(fun (t, a) => t + exp(a), 0.0, s), Q)""",
        N=columns,
    )  # fmt: skip
    assert "#pragma unroll" in text_of(plan)
    assert text_of(plan).count("K[") == copies


@needs_opencl
def test_small_whole_powers_are_products(runner: Runner) -> None:
    program = parse_program(
        """program powers(x: [f32]8, y: [f64]8, h: [f16]8) =
             (mapGlb(0, fun a => pow(a - 1, 2) + pow(a, 3) / pow(a * 2, 4), x),
              mapGlb(0, fun a => pow(pow(a, 2) + 1, 3), y),
              mapGlb(0, fun a => pow(a, 2), h), mapGlb(0, fun a => pow(a, 5), x), mapGlb(0, fun a => pow(a, 0.5), x))"""
    )  # fmt: skip
    plan = plan_of(program)
    assert text_of(plan).count("pow(") == 1  # halves are rounded once
    values = np.linspace(0.5, 3, 8)
    inputs = {"x": values.astype(np.float32), "y": values, "h": values.astype(np.float16)}
    for found, right in zip(results(runner, plan, inputs), leaves_of(run(program, inputs)), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3 if found.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize(("results_each", "stays"), [(4, False), (49, True)])
def test_private_arrays_stay_arrays_where_a_compiler_would_unroll_the_loops_for_each_variable(
    results_each: int, stays: bool
) -> None:
    """PoCL took 18 s for 49 loops of 64 steps."""
    plan = plan_of(
        f"""program blocks(x: [[f32]64]N, y: [[f32]64]{results_each}) =
             mapGlb(0, fun row =>
               let s = toPrivate(mapSeq(fun k => reduceSeq(fun (t, (a, b)) => t + abs(a - b), 0.0, zip(k, row)), y)) in
               reduceSeq(fun (t, a) => min(t, a), inf, s), x)""",
        N=128,
    )  # fmt: skip
    assert (f"[{results_each}];" in text_of(plan)) == stays


@needs_opencl
def test_a_program_without_inputs_is_run(runner: Runner) -> None:
    plan = plan_of(parse_program("program squares() = mapGlb(0, fun i => i * i, generate(5, id))"))
    (found,) = results(runner, plan, {})
    assert found.tolist() == [0, 1, 4, 9, 16]


SPECIAL = [0, 1, np.inf, 3e38, 1.2e-38, np.nan, -1, -0.0]
GEOMETRIC = np.geomspace(2e-38, 3e38, 56)


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize(
    ("written", "right", "units", "values"),
    [
        ("sin(a)", np.sin, 4, [*SPECIAL, *np.pi / 2 * np.arange(-40, 41, 2), 38999, -9e6, 3e9, -np.inf, *np.ones(11)]),
        ("cos(a)", np.cos, 4, [*SPECIAL, *np.pi / 2 * np.arange(-39, 42, 2), 38999, -9e6, 3e9, -np.inf, *np.ones(11)]),
        ("exp(a)", np.exp, 3, [*SPECIAL, *np.linspace(-87, 88.7, 53), -np.inf, -1e30, 200]),
        ("log(a)", np.log, 3, [*SPECIAL, *GEOMETRIC[::2], *np.linspace(0.99, 1.01, 28)]),
        ("floor(a)", np.floor, 0, [*SPECIAL, -np.inf, -0.5, 2**23 + 1, -(2**23) - 1, *np.linspace(-3, 3, 52)]),
        ("ceil(a)", np.ceil, 0, [*SPECIAL, -np.inf, -0.5, 2**23 + 1, -(2**23) - 1, *np.linspace(-3, 3, 52)]),
        ("sqrt(a)", np.sqrt, 0.5, [*SPECIAL, *GEOMETRIC]),
        ("rsqrt(a)", lambda a: 1 / np.sqrt(a), 1.5, [*SPECIAL, *GEOMETRIC]),
        *((f"pow(a, {c})", lambda a, c=c: a ** np.float32(eval(c)), 16, [*SPECIAL, *GEOMETRIC])
          for c in ("2.4", "1.0 / 3.0", "-0.75", "7.5")),
        *((f"pow({c}, a)", lambda a, c=c: np.float64(np.float32(eval(c))) ** a, 16,
           [*SPECIAL, -np.inf, -3e38, *np.linspace(-152, 130, 54) / np.log2(eval(c))])
          for c in ("10.0", "0.5", "1.0 + 0.01", "3e38", "1.2e-38")),
    ],
)  # fmt: skip
def test_slow_functions_are_spelled_out_on_pocl(
    runner: Runner, written: str, right: Callable[[np.ndarray], np.ndarray], units: int, values: list[Any]
) -> None:
    """They are wrong by no more units than OpenCL allows, also for very large and small numbers."""
    program = parse_program(
        f"""program values(x: [f32]64) =
             (mapGlb(0, fun a => {written}, x),
              asScalar(mapGlb(0, vectorize(8, fun a => {written}), asVector(8, x))),
              asScalar(mapGlb(0, vectorize(16, fun a => {written}), asVector(16, x))))"""
    )
    plan = plan_of(program)
    assert re.search(rf"own_{written.partition('(')[0]}(_of)?_float\(x\[", text_of(plan))
    x = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        wanted = right(x.astype(np.float64))
        one_unit = np.spacing(np.abs(wanted).astype(np.float32))
        for found in results(runner, plan, {"x": x}):
            same = (found == wanted.astype(np.float32)) | (np.isnan(found) & np.isnan(wanted))
            assert np.all(same | (np.abs(found - wanted) <= units * one_unit))


@needs_opencl
def test_whole_groups_ask_once_whether_there_is_something_to_do_on_pocl(runner: Runner) -> None:
    """PoCL makes vectors of what their work-items do, and not where each of them asks."""
    program = parse_program("program twice(x: [f32]1009) = mapGlb(0, fun v => v * 2.0, x)")
    plan, x = plan_of(program), np.arange(1009, dtype=np.float32)
    assert "if (get_group_id(0) < 3) {" in text_of(plan)
    assert "} else if (get_global_id(0) < 1009) {" in text_of(plan)
    assert "get_group_id" not in text_of(plan_of(program, INTEL))
    (found,) = results(runner, plan, {"x": x})
    assert np.array_equal(found, 2 * x)


@needs_opencl
def test_groups_at_no_border_do_not_ask_where_they_are_on_pocl(runner: Runner) -> None:
    """So the items of whole groups become vectors, also where the device would take all of them as one group."""
    text = "program p(x: [f32]N) = mapGlb(0, fun w => w[0] - w[3], slide(4, 1, pad(1, 2, {}, x)))"
    modes = {"wrap": "wrap", "clamp": "edge", "mirror": "symmetric", "constant(0.0)": "constant"}
    for n, (boundary, mode) in zip((50000, 49995, 50015, 49960), modes.items(), strict=True):
        plan, x = plan_of(text.format(boundary), N=n), np.arange(n, dtype=np.float32) % 17
        inside = text_of(plan).split("if (get_group_id(0) >= 1 && get_group_id(0) < ")[1].split("else")[0]
        assert "x[glb_0 - 1] - x[glb_0 + 2]" in inside
        padded = np.pad(x, (1, 2), mode)  # pyright: ignore
        assert np.array_equal(results(runner, plan, {"x": x})[0], padded[:-3] - padded[3:])
    assert "get_group_id" not in text_of(plan_of(text.format("wrap"), INTEL, N=50000))


@needs_opencl
def test_conditions_without_branches_on_cpus(runner: Runner) -> None:
    """What is read behind a branch keeps compilers from vectors; much work, and computed places, are worth one."""
    program = parse_program("""program kept(a: [bool]100, b: [bool]100, i: [i32]100, x: [f32]100) =
      (mapGlb(0, fun (a, b, x) => (a || x < 0.5) && !(a && b), zip(a, b, x)),
       mapGlb(0, fun (a, x, i) => a && exp(x) < 1.5 || b[i], zip(a, x, i)))""")
    assert " && " not in text_of(plan_of(program)).split("result_1")[0]
    assert text_of(plan_of(program)).count("&&") == text_of(plan_of(program)).count("||") == 1
    assert " & " not in text_of(plan_of(program, NVIDIA))
    inputs = random_inputs(program, 3)
    found = results(runner, plan_of(program), inputs)
    assert all(np.array_equal(f, r) for f, r in zip(found, leaves_of(run(program, inputs)), strict=True))


@needs_opencl
def test_halves_are_converted_by_instructions_on_pocl(runner: Runner) -> None:
    """Its functions of scalars take 100 times as long; all halves, and what is rounded to them, are NumPy's."""
    program = parse_program("program scaled(x: [f16]65536, a: f16) = mapGlb(0, fun v => v * a, x)")
    plan = plan_of(program)
    assert "vstore_half_rte(" not in text_of(plan)
    assert "half_to_global(" in text_of(plan)
    assert "half_to_global(" not in plan_of(program, INTEL).source
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    for a in np.array([1.0, 0.3, -1000.0], np.float16):
        with np.errstate(over="ignore", invalid="ignore"):
            right = x * a
        (found,) = results(runner, plan, {"x": x, "a": a})
        assert np.array_equal(found, right, equal_nan=True)


@needs_opencl
def test_powers_of_what_is_not_known_are_spelled_out_on_pocl(runner: Runner) -> None:
    """PoCL's function takes 1 µs for a scalar; loops with this one become vectors."""
    program = parse_program(
        """program powers(x: [f32]640, y: [f32]640) =
             (mapGlb(0, fun (a, b) => pow(a, b), zip(x, y)),
              asScalar(mapGlb(0, vectorize(16, fun (a, b) => pow(a, b)), zip(asVector(16, x), asVector(16, y)))))"""
    )
    plan = plan_of(program)
    assert "own_pow_by_float(x[" in text_of(plan)
    ends = np.array([0, 1, 0.5, 2, 3, 2.5, 1e-42, 3e38, 2**24 + 2, 2**31, 0.9999999, np.inf], np.float32)
    ends = np.array([*ends, *-ends, np.nan], np.float32)
    near_1 = 1 + np.linspace(-1e-4, 1e-4, 15)
    x = np.array([*np.repeat(ends, len(ends)), *near_1], np.float32)
    y = np.array([*np.tile(ends, len(ends)), *np.linspace(-8e5, 8e5, 15)], np.float32)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float64) ** y
        single = wanted.astype(np.float32)
        for found in results(runner, plan, {"x": x, "y": y}):
            same = (found == single) & (np.signbit(found) == np.signbit(single)) | (np.isnan(found) & np.isnan(wanted))
            assert np.all(same | (np.abs(found - wanted) <= 2 * np.spacing(np.abs(single))))


@needs_opencl
def test_what_is_one_instruction_is_so_in_double_precision_on_pocl(runner: Runner) -> None:
    program = parse_program(
        """program values(x: [f64]8) =
             asScalar(mapGlb(0, vectorize(4, fun a => (floor(a) + ceil(a) * sqrt(a)) * rsqrt(a)), asVector(4, x)))"""
    )
    plan, x = plan_of(program), np.linspace(0.3, 5, 8)
    assert "own_floor_double4(a) + own_ceil_double4(a) * own_sqrt_double4(a)) * own_rsqrt_double4(a)" in text_of(plan)
    (found,) = results(runner, plan, {"x": x})
    np.testing.assert_allclose(found, (np.floor(x) + np.ceil(x) * np.sqrt(x)) / np.sqrt(x), rtol=1e-15)


@needs_opencl
def test_powers_by_small_whole_numbers_of_loops_are_products(runner: Runner) -> None:
    """Others are those by data, and by numbers whose products round more often than the function may be wrong."""
    program = parse_program(
        """program powers(x: [f32]8, y: [f64]8, k: [i32]8) =
             (asScalar(mapGlb(0, vectorize(4, fun a => reduceSeq(fun (s, i) => s + pow(a, -f32(i + 1)), 0.0,
                generate(32, id))), asVector(4, x))),
              mapGlb(0, fun a => reduceSeq(fun (s, i) => let e = f64(i) in s + pow(a, e - 4) * e, 0.0f64,
                generate(9, id)), y),
              mapGlb(0, fun (a, e) => pow(a, f32(e)) + pow(a, -33), zip(x, k)),
              mapGlb(0, fun a => reduceSeq(fun (s, i) => s + pow(a, f32(i)), 0.0, generate(34, id)), x))"""
    )  # fmt: skip
    plan = plan_of(program, optimise=low.APART)
    assert [len(re.findall(r"pow(_by_float)?\(", k.source)) for k in plan.kernels] == [0, 0, 2, 1]
    values = np.linspace(0.75, 1.5, 8)
    inputs = {"x": values.astype(np.float32), "y": values, "k": np.arange(8, dtype=np.int32)}
    for found, right in zip(results(runner, plan, inputs), leaves_of(run(program, inputs)), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6 if found.dtype == np.float32 else 1e-14)


def test_what_lies_between_the_kernels_of_a_step_serves_later_steps_again() -> None:
    shifted = parse_program("""
        program shifted(xs: [f32]N) =
          iterate(9, fun row => let y = mapGlb(0, fun x => x * 2.0, row) in
            mapGlb(0, add, zip(y, gather(reverse, y))), xs)
    """)
    plan = plan_of(shifted, optimise=low.APART, N=8)
    assert len(plan.kernels) == 18
    assert len([b for b in plan.buffers if b.role == "temporary"]) == 6  # of steps: 2; within: 4
    assert plan.source.count("kernel void") == 2
    arguments = [[a.name for a in k.arguments] for k in plan.kernels]
    assert arguments[6:10] == arguments[2:6]
    assert arguments[10:14] == arguments[2:6]


READ_BEFORE = {  # a place that the accumulator has, of an array that counts: it is a number that stands for no array
    "bound": """mapSeq(id, reduceSeq(fun (a, i) =>
        let k = ids[a[0]] in mapSeq(fun e => (e + k + 1) % 8, a), x, steps))""",
    "beside an array": """let (a, n) = reduceSeq(fun ((a, n), i) =>
        (mapSeq(fun e => (e + 1 + n) % 8, a), ids[a[0]]), (x, 0), steps) in
      (mapSeq(id, a), mapSeq(fun _ => n, generate(1, fun j => j)))""",
    "of two arrays": """let (a, c) = reduceSeq(fun ((a, c), i) => let k = ids[a[3]] in
        (mapSeq(fun (e, j) => select(j == 3, (e + 1) % 8, e), zip(a, ids)),
         mapSeq(fun (e, j) => select(j == k, e + 1, e), zip(c, ids))), (x, x), steps) in
      (mapSeq(id, a), mapSeq(id, c))""",
    "of each lane": """let many = generate(64, fun j => j) in
      asScalar(mapGlb(0, vectorize(4, fun v => let a = reduceSeq(fun (a, i) =>
        mapSeq(fun (e, j) => select(j == v, e + i + v, e), zip(a, many)), fill(64, 0), steps) in a[3] + a[v]),
        asVector(4, x)))""",
}


@needs_opencl
@pytest.mark.parametrize("what", READ_BEFORE)
def test_what_an_accumulator_says_of_places_is_read_before_it_is_changed(what: str, runner: Runner) -> None:
    body = f"let ids = generate(8, fun j => j) in {READ_BEFORE[what]}"
    program = parse_program(f"program p(x: [i32]8 in 0..8, steps: [i32]5 in 0..8) = {body}")
    inputs = random_inputs(program, 3, "integer")
    for found, right in zip(results(runner, plan_of(program), inputs), leaves_of(run(program, inputs)), strict=True):
        assert np.array_equal(found, right)


@needs_opencl
def test_accumulators_are_changed_in_place_where_one_element_is_new_or_each_follows_from_itself(runner: Runner) -> None:
    program = parse_program(
        """program p(x: [i32]20 in -9..9, steps: [(i32, i32)]9 in -1..23) = let places = generate(20, fun j => j) in
             (mapSeq(id, reduceSeq(
                fun (a, (i, v)) => let s = a[3] + v in
                  mapSeq(fun ((j, e), old) => select(v > 0 && i == j, e + s + old, e), zip(zip(places, a), x)),
                x, steps)),
              mapSeq(id, reduceSeq(fun (a, (i, v)) => mapSeq(fun (e, j) => select(j != 2, e, a[0] + v), zip(a, places)),
                x, steps)),
              mapSeq(id, reduceSeq(fun (a, (i, v)) => let b = at(0, a) in mapSeq(fun e => e + b * v, a), x, steps)),
              let (a, (n, c)) = reduceSeq(fun ((a, (n, c)), (i, v)) =>
                (mapSeq(fun (e, j) => select(j == i, e + n, e), zip(a, places)), (n + a[i], mapSeq(fun e => e + n, c))),
                (x, (0, x)), steps) in
              (mapSeq(id, a), (mapSeq(id, c), mapSeq(fun _ => n, generate(1, fun j => j)))))"""
    )
    plan = plan_of(program)
    assert not re.search(r"next[0-9]*_?[0-9]*\[", text_of(plan))
    assert "a[place] =" in text_of(plan)
    assert "a1[2] = a1[0] +" in text_of(plan)
    inputs = random_inputs(program, 3, "float")
    for found, right in zip(results(runner, plan, inputs), leaves_of(run(program, inputs)), strict=True):
        assert np.array_equal(found, right)


@needs_opencl
def test_a_number_of_a_group_is_in_local_memory_alone_and_beside_an_array(runner: Runner) -> None:
    program = parse_program(
        """program p(A: [[f32]8]4) = join(mapWrg(0, fun row =>
             let s = toLocal(reduceSeq(add, 0.0, row)) in
             let (a, n) = reduceSeq(
               fun ((a, n), x) => toLocal((mapLcl(0, fun v => v + x, a), n + 1)),
               toLocal((mapLcl(0, id, row), 0)), row) in
             mapLcl(0, fun v => v * s + to_f32(n), a), A))"""
    )
    inputs = random_inputs(program, 3, "integer")
    (found,) = results(runner, plan_of(program), inputs)
    assert np.array_equal(found, run(program, inputs))
