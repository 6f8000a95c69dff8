"""Sizes as arguments of kernels: one text for all sizes, empty ones too; what sizes must fulfil is checked."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.api import parse_program, random_inputs, run, specialise
from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import GENERIC, POCL
from lift_egraph.codegen.plans.arrays import load_plan, read_plan, save_plan
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.run import Runner, run_directory
from lift_egraph.errors import NestingProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.meaning.values import leaves_of
from tests.codegen import low_level as low
from tests.codegen.opencl import as_pocl_likes, needs_opencl, results
from tests.depth import in_turn

SIZES = (0, 1, 2, 3, 13, 16, 31, 33)


def check(runner: Runner, plan: Plan, special: ir.Program) -> None:
    """The plan's result is that of the interpreter, bit for bit on whole numbers."""
    inputs = random_inputs(special, 3, "integer")
    for found, wanted in zip(
        results(runner, as_pocl_likes(plan), inputs), leaves_of(run(special, inputs)), strict=True
    ):
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted, err_msg=plan.source)


stencil, tiles, rows, found, wrapped, growing, keeping, two_stage = map(
    parse_program,
    (
        """
        program stencil(xs: [f32]N) =
          mapGlb(0, fun w => at(0, w) - at(2, w) * 2.0 + at(1, w), slide(3, 1, pad(1, 1, clamp, xs)))
        """,
        """-- tiles of four, reversed in local memory
        program tiles(xs: [f32]N) =
          join(mapWrg(0, fun c => mapLcl(0, id, gather(reverse, toLocal(mapLcl(0, id, c)))), split(4, xs)))
        """,
        """-- a group for each row, a loop over its elements
        program rows(A: [[f32]N]M) =
          mapWrg(0, fun row => mapLcl(0, fun x => x * 2.0, gather(reverse, row)), A)
        """,
        """
        program found(xs: [f32]N, places: [i32]M) =
          mapGlb(0, fun (x, i) => x * to_f32(i), zip(lookup(places, xs), generate(M, id)))
        """,
        """
        program wrapped(A: [[f32]N]M) =
          mapGlb(1, fun row => mapGlb(0, reduceSeq(add, 0.0), slide(3, 1, pad(1, 1, wrap, row))), A)
        """,
        """-- steps between two temporaries that must have room for the longest of their arrays
        program growing(xs: [f32]N) =
          iterate(5, fun (a: [f32]n) => mapGlb(0, fun x => x + 1.0, pad(1, 2, clamp, a)), xs)
        """,
        """-- steps of two kernels each, whose memory serves again
        program keeping(xs: [f32]N) =
          iterate(6, fun a => let b = mapGlb(0, fun x => x + 1.0, a) in mapGlb(0, sub, zip(b, gather(reverse, a))), xs)
        """,
        """
        program dot(xs: [f32]N, ys: [f32]N) =
          reduceSeq(add, 0.0,
            mapGlb(0, reduceSeq(fun (a, p) => a + get(0, p) * get(1, p), 0.0), split(4, zip(xs, ys))))
        """,
    ),
)
KEPT = {  # rows of an open length that are kept to be read again: in global memory
    "twice": """
        program twice(A: [[f32]N]M) =
          mapGlb(0,
            fun row => let r = mapSeq(fun v => v * 2.0, row) in mapSeq(fun v => v + 1.0, gather(reverse, concat(r, r))),
            A)
    """,
    "inner": """
        program inner(A: [[f32]N]M) =
          mapGlb(0, fun row => reduceSeq(add, 0.0, slice(1, N - 2, mapSeq(fun v => v * 2.0, row))), A)
    """,
    "grouped": """
        program grouped(A: [[f32]N]M) =
          mapWrg(0,
            fun row => mapLcl(0, fun v => v + 1.0, gather(reverse, slice(1, N - 1, mapLcl(0, fun v => v * 2.0, row)))),
            A)
    """,
}
CASES = [
    *(
        (low.mm_naive(), {"M": m, "K": k, "N": n})
        for m, k, n in zip(SIZES, SIZES[3:] + SIZES[:3], SIZES[::-1], strict=True)
    ),
    *((two_stage, {"N": 4 * n}) for n in SIZES),
    *((stencil, {"N": n}) for n in SIZES[1:]),
    *((tiles, {"N": 4 * n}) for n in SIZES),
    *((rows, {"M": m, "N": n}) for m, n in ((0, 3), (3, 0), (1, 1), (2, 63), (3, 64), (2, 65), (5, 200))),
    *((found, {"N": 5, "M": n}) for n in SIZES),
    *((wrapped, {"M": 2, "N": n}) for n in SIZES[1:]),
    *((low.mm_tiled(4), {"M": 4 * m, "K": 4 * k, "N": 4 * n}) for m, k, n in ((0, 1, 1), (1, 0, 1), (2, 3, 1))),
    *((low.j2d5pt(2, 4), {"M": 2 * m, "N": 4 * n}) for m, n in ((1, 1), (2, 3), (5, 4))),
    *((low.partial_dot(32, 3), {"N": 32 * n}) for n in (0, 1, 5)),
    *((growing, {"N": n}) for n in (1, 5)),
    (keeping, {"N": 5}),
    *((parse_program(text), {"M": m, "N": n}) for text in KEPT.values() for m, n in ((0, 3), (1, 3), (3, 70))),
]


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize(("made", "sizes"), CASES, ids=[f"{p.name}-{'-'.join(map(str, s.values()))}" for p, s in CASES])
def test_one_kernel_for_all_sizes(runner: Runner, made: ir.Program, sizes: dict[str, int]) -> None:
    check(runner, compile_open(made, POCL).at(sizes), specialise(made, sizes))


@needs_opencl
@pytest.mark.parametrize(
    ("made", "sizes"),
    [
        (low.mm_naive(), {"M": 0, "K": 3, "N": 4}),
        (low.mm_naive(), {"M": 2, "K": 0, "N": 4}),
        (two_stage, {"N": 0}),
        (tiles, {"N": 0}),
        (rows, {"M": 3, "N": 0}),
        (low.partial_dot(32, 3), {"N": 0}),
    ],
)
def test_empty_arrays_with_constant_sizes(runner: Runner, made: ir.Program, sizes: dict[str, int]) -> None:
    special = specialise(made, sizes)
    check(runner, compile_program(special, POCL), special)


@needs_opencl
@pytest.mark.parametrize("sizes", [{"M": 0, "K": 0, "N": 5}, {"M": 0, "K": 0, "N": 0}, {"M": 3, "K": 0, "N": 5}])
def test_a_sparse_matrix_may_have_no_rows_and_no_elements(runner: Runner, sizes: dict[str, int]) -> None:
    """Its offsets are one number where it has no rows, so there are no windows of two."""
    spmv = parse_program(
        """program spmv(offsets: [i32](M + 1) in offsets(K), cols: [i32]K in 0..N, values: [f32]K, x: [f32]N) =
             mapGlb(0,
               fun w => reduceRangeSeq(fun (s, (v, x)) => s + v * x, 0.0, w[0], w[1], zip(values, lookup(cols, x))),
               slide(2, 1, offsets))"""
    )
    offsets, elements = np.zeros(sizes["M"] + 1, np.int32), np.zeros(0, np.float32)
    given = {"offsets": offsets, "cols": offsets[:0], "values": elements, "x": np.ones(sizes["N"], np.float32)}
    runner.load_inputs("empty", given)
    result = runner.run(compile_open(spmv, POCL).at(sizes), "empty")
    assert np.array_equal(result, np.zeros(sizes["M"]))


def test_windows_end_with_the_array_at_open_sizes() -> None:
    sums = compile_open(
        parse_program("program p(xs: [f32]N) = mapGlb(0, fun w => reduceSeq(add, 0.0, w), slide(5, 2, xs))"), GENERIC
    )
    for length, windows in ((3, 0), (5, 1), (7, 2)):
        assert sums.at({"N": length}).outputs[0].shape == (windows,)
    for length, message in ((1, "a window of 5 does not fit"), (4, "does not tile"), (6, "does not tile")):
        with pytest.raises(SizeProblem, match=message):
            sums.at({"N": length})


def test_some_sizes_stay_open() -> None:
    part = specialise(low.mm_naive(), {"K": 8}, keep=("M", "N"))
    plan = compile_open(part, GENERIC)
    assert [s.size for s in plan.sizes] == ["M", "N"]
    assert "i < 8" in plan.source
    assert "const int K" not in plan.source
    assert [a.name for a in plan.kernels[0].arguments] == ["A", "B", "result", "M", "N"]
    assert [a.kind for a in plan.kernels[0].arguments] == ["buffer"] * 3 + ["size"] * 2


def test_lengths_and_launches_are_expressions() -> None:
    plan = compile_open(low.mm_naive(), GENERIC)
    assert {b.name: str(b.length) for b in plan.buffers} == {"A": "K * M", "B": "K * N", "result": "M * N"}
    at_sizes = plan.at({"M": 3, "K": 4, "N": 5})
    assert [b.length for b in at_sizes.buffers] == [12, 20, 15]
    assert [b.shape for b in at_sizes.buffers] == [(3, 4), (4, 5), (3, 5)]
    assert at_sizes.kernels[0].launch.global_size == (3, 5, 1)
    assert [(s.name, s.value) for s in at_sizes.sizes] == [("K", 4), ("M", 3), ("N", 5)]


def test_shapes_tell_sizes_that_lengths_are_linear_in() -> None:
    inputs = "starts: [i32](M + 1), xs: [f32](2 * N), ys: [f32](M * K)"
    plan = compile_open(parse_program(f"program p({inputs}) = (mapGlb(0, id, xs), mapGlb(0, id, ys))"), GENERIC)
    given = {"starts": np.zeros(6, np.int32), "xs": np.zeros(8, np.float32), "ys": np.zeros(10, np.float32)}
    assert plan.sizes_of(given) == {"M": 5, "N": 4}


def test_groups_of_maps_over_open_sizes_are_as_the_device_likes() -> None:
    """Groups of one work-item are for those that do much work: the loop that shares the elements out is none."""
    scaled = parse_program("program scaled(xs: [f32]N) = mapGlb(0, fun x => x * 2.0, xs)")
    assert compile_open(scaled, POCL).kernels[0].launch.local_size is None
    special = specialise(scaled, {"N": 1000})
    assert compile_program(special, POCL, any_launch=True).kernels[0].launch.local_size is None
    sums = parse_program("program sums(A: [[f32]N]M) = mapGlb(0, fun row => reduceSeq(add, 0.0, row), A)")
    assert compile_open(sums, POCL).kernels[0].launch.local_size == (1, 1, 1)


def test_indices_are_simplified_below_open_bounds() -> None:
    flat = parse_program("program flat(A: [[f32]N]M) = mapGlb(0, mapSeq(id), split(N, join(A)))")
    source = compile_open(flat, GENERIC).source
    assert "N * glb_0 + i" in source
    assert "%" not in source.split("kernel void")[1]


@pytest.mark.parametrize(
    ("made", "sizes", "message"),
    [
        (two_stage, {}, "needs a value for the size N"),
        (two_stage, {"N": 4, "Q": 1}, "no open size 'Q'; it has N"),
        (two_stage, {"N": -4}, "the size N of dot is -4, not 0 to 2147483647"),
        (two_stage, {"N": 6}, r"dot at N = 6: split\(4\) does not divide an array of length N; N % 4 is 2"),
        (stencil, {"N": 0}, r"pad\(clamp\) needs an array of length 1 or more"),
        (low.mm_naive(), {"M": 1 << 16, "K": 1 << 16, "N": 1}, "leaves 32 bits: specialise the sizes; .* 4294967295"),
        (low.mm_naive(), {"M": (1 << 30) + 1, "K": 1, "N": 1}, "too many work-items"),
    ],
)
def test_sizes_that_are_wrong(made: ir.Program, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(SizeProblem, match=message):
        compile_open(made, GENERIC).at(sizes)


def test_lengths_that_must_only_be_equal_are_compared_when_they_are_known() -> None:
    made = parse_program("program p(x: [f32]N, y: [[f32]D](N / D)) = mapGlb(0, add, zip(x, join(y)))")
    plan = compile_open(made, POCL)
    assert plan.at({"N": 12, "D": 4})
    with pytest.raises(SizeProblem, match="zip needs N and D \\* \\(N / D\\) to be equal"):
        plan.at({"N": 13, "D": 4})


def test_the_limit_of_32_bits_is_exact() -> None:
    plan = compile_open(low.mm_naive(), GENERIC)
    assert plan.at({"M": 1 << 16, "K": 1 << 15, "N": 1}).kernels  # the last index is 2^31 - 1
    with pytest.raises(SizeProblem, match="32 bits"):
        plan.at({"M": 1 << 16, "K": (1 << 15) + 1, "N": 1})


def test_rests_of_negative_numbers_stay_within_32_bits() -> None:
    """C's rest plus the divisor is computed on the way: almost twice the size."""
    text = "program p(xs: [bool]N) = reduceSeq(or, false, gather(i => (i / 2 - i % 2) % n, xs))"
    plan = compile_open(parse_program(text), GENERIC)
    assert "% N + N) % N" in plan.source
    assert plan.at({"N": 1 << 30}).kernels
    with pytest.raises(SizeProblem, match="32 bits"):
        plan.at({"N": (1 << 30) + 1})
    large = compile_program(specialise(parse_program(text), {"N": 2**31 - 4}), GENERIC).source
    assert "% 2147483644L + 2147483644L) % 2147483644L" in large
    small = compile_program(specialise(parse_program(text), {"N": 1 << 30}), GENERIC).source
    assert "(long)" not in small


def test_constant_sizes_beyond_32_bits_are_computed_in_64() -> None:
    large = specialise(low.mm_naive(), {"M": 1 << 16, "K": 1 << 16, "N": 4})
    assert "(long)" in compile_program(large, GENERIC).source
    small = specialise(low.mm_naive(), {"M": 1 << 15, "K": 1 << 16, "N": 4})
    assert "(long)" not in compile_program(small, GENERIC).source


def test_open_sizes_are_refused_where_numbers_are_needed() -> None:
    whole = parse_program("""
        program whole(A: [[f32]N]M) =
          mapWrg(0, fun row => mapLcl(0, id, gather(reverse, toLocal(mapLcl(0, id, row)))), A)
    """)
    with pytest.raises(SizeProblem, match=r"lies in local memory.* but N is open: specialise N.*toGlobal"):
        compile_open(whole, GENERIC)
    with pytest.raises(SizeProblem, match="mm is open in the size K, M, N: give it a value"):
        compile_program(low.mm_naive(), GENERIC)


def test_names_of_sizes_that_c_does_not_accept() -> None:
    doubled = parse_program("program doubled(xs: [f32]float, lane: f32) = mapGlb(0, fun x => x * lane, xs)")
    plan = compile_open(doubled, GENERIC)
    assert [(s.name, s.size) for s in plan.sizes] == [("float_", "float")]
    assert "const int float_" in plan.source
    assert plan.at({"float": 7}).buffers[0].length == 7


@needs_opencl
def test_a_directory_with_open_sizes(tmp_path) -> None:
    plan = compile_open(two_stage, POCL)
    save_plan(plan, tmp_path)
    content = json.loads((tmp_path / "launch.json").read_text())
    assert content["sizes"] == [{"name": "N", "size": "N", "low": 0, "high": 2**31 - 1}]
    assert content["requires"][0] == {
        "expression": "N % 4", "low": 0, "high": 0, "because": "split(4) does not divide an array of length N",
    }  # fmt: skip
    again = read_plan(tmp_path)
    assert isinstance(again, OpenPlan)
    without_trees = tuple(replace(k, source="", body=(), launch=again.kernels[0].launch) for k in plan.kernels)
    assert tuple(replace(k, launch=again.kernels[0].launch) for k in again.kernels) == without_trees
    assert again.buffers == plan.buffers
    assert again.requirements == plan.requirements
    assert load_plan(tmp_path, {"N": 8}).buffers[0].length == 8
    with pytest.raises(SizeProblem, match="needs a value"):
        load_plan(tmp_path)
    xs = np.arange(12, dtype=np.float32)
    assert run_directory(tmp_path, {"xs": xs, "ys": xs}) == 506
    with pytest.raises(SizeProblem, match="N % 4"):
        run_directory(tmp_path, {"xs": xs[:5], "ys": xs[:5]})


def reordered(text: str) -> OpenPlan:
    return compile_open(parse_program(f"program reordered(xs: [f32]N) = {text}"), GENERIC)


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("mapGlb(0, id, gather(reverse, xs))", (0, 1, 7), ()),
        ("mapGlb(0, id, gather(i => (i + 3) % n, xs))", (0, 1, 7), ()),
        ("mapGlb(0, id, gather(i => i % (n / 2), xs))", (2, 7), (0, 1)),
        ("mapGlb(0, id, gather(i => (i % 2) * (n / 2) + i / 2, xs))", (0, 1, 7, 8), ()),
        ("mapGlb(0, id, gather(i => 3, xs))", (4, 9), (0, 3)),
        ("scatter(reverse, mapGlb(0, id, xs))", (0, 1, 7), ()),
        ("scatter(i => (i + 3) % n, mapGlb(0, id, xs))", (0, 1, 7), ()),
        ("scatter(i => (i % 4) * (n / 4) + i / 4, mapGlb(0, id, xs))", (0, 4, 12), (3, 6)),
        ("scatter(i => (i % (n / 4)) * 4 + i / (n / 4), mapGlb(0, id, xs))", (4, 12), (3, 6)),
        ("join(mapGlb(0, fun c => scatter(i => 3 * i % n, mapSeq(id, c)), split(4, xs)))", (0, 8), ()),
        ("join(mapGlb(0, fun c => mapSeq(id, gather(i => i * (3 - i), c)), split(4, xs)))", (0, 8), ()),
    ],
)
def test_index_functions_at_open_sizes(text: str, right: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    plan = reordered(text)
    for size in right:
        assert plan.at({"N": size}).buffers[0].length == size
    for size in wrong:
        with pytest.raises(SizeProblem, match=r"the indices i =>|a stride of"):
            plan.at({"N": size})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mapGlb(0, id, gather(i => i + 1, xs))", "leave an array of length N"),
        ("mapGlb(0, id, gather(i => i - 1, xs))", "leave an array of length N"),
        ("mapGlb(0, id, gather(i => n / (i + 1), xs))", "divide by what depends on the index"),
        ("scatter(i => i / 2, mapGlb(0, id, xs))", "cannot be shown to be a permutation of N elements"),
    ],
)
def test_index_functions_that_are_wrong_at_open_sizes(text: str, message: str) -> None:
    with pytest.raises(SizeProblem, match=message):
        reordered(text)


def test_private_memory_of_open_length() -> None:
    copied = parse_program("""
        program copied(A: [[f32]N]M) =
          mapGlb(0, fun row => let r = toPrivate(mapSeq(id, row)) in mapSeq(id, gather(reverse, r)), A)
    """)
    with pytest.raises((SizeProblem, NestingProblem), match="specialise N"):
        compile_open(copied, GENERIC)
