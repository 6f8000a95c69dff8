"""Kernels for any launch: the result does not depend on how many work-items there are, or in which groups."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from lift_egraph.api import Runner, parse_program, specialise
from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import GENERIC, NVIDIA, POCL
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.errors import DeviceProblem, NestingProblem, SizeProblem
from lift_egraph.language import ir
from tests.codegen import low_level as low
from tests.codegen.opencl import needs_opencl
from tests.codegen.test_sizes import check, rows, stencil, tiles, two_stage, wrapped
from tests.depth import in_turn

# every work-item of a group reads what all others have written
summed = parse_program("""
    program summed(xs: [f32]N) =
      join(mapWrg(0, fun c =>
        let held = toLocal(mapLcl(0, fun x => x * 2.0, c)) in
        mapLcl(0, fun x => x + reduceSeq(add, 0.0, held), gather(reverse, held)), split(6, xs)))
""")
# the items of a group in a dimension in which there is one group
met = parse_program("""
    program met(xs: [f32]N) =
      join(mapWrg(0, fun c =>
        let parts = toLocal(mapLcl(1, fun part => mapLcl(0, abs, part), split(3, c))) in
        mapLcl(0, reduceSeq(add, 0.0), transpose(parts)), split(6, xs)))
""")


def launches(*sizes: tuple[int, ...]) -> list[Launch]:
    """Launches in one dimension, from the global size and perhaps the local one."""
    return [Launch((n[0], 1, 1), (n[1], 1, 1) if len(n) > 1 else None) for n in sizes]


PLANE = [Launch((1, 1, 1)), Launch((2, 3, 1)), Launch((64, 16, 1)), Launch((6, 4, 1), (3, 2, 1))]
CASES = [
    (made, sizes, launch)
    for made, sizes, tried in (
        (low.mm_naive(), {"M": 7, "K": 5, "N": 9}, PLANE),
        (two_stage, {"N": 52}, launches((1,), (5,), (128, 32), (10, 5))),
        (stencil, {"N": 31}, launches((1,), (30, 3), (7, 7), (64,))),
        (wrapped, {"M": 5, "N": 17}, PLANE),
        (tiles, {"N": 52}, launches((1, 1), (6, 3), (256, 8))),
        (summed, {"N": 42}, launches((1, 1), (4, 4), (64, 16))),
        (met, {"N": 42}, [Launch((n, m, 1), (a, b, 1)) for n, m, a, b in ((1, 1, 1, 1), (6, 2, 3, 2), (9, 4, 3, 2))]),
        (rows, {"M": 5, "N": 13}, launches((2, 2), (15, 5))),
        (low.partial_dot(32, 3), {"N": 96}, launches((1, 1), (14, 7))),
    )
    for launch in tried
]
NAMES = [f"{p.name}-{x.global_size}-{x.local_size}".replace(" ", "") for p, _, x in CASES]


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("is_open", [False, True], ids=["constant", "open"])
@pytest.mark.parametrize(("made", "sizes", "launch"), CASES, ids=NAMES)
def test_any_launch(runner: Runner, made: ir.Program, sizes: dict[str, int], launch: Launch, is_open: bool) -> None:
    special = specialise(made, sizes)
    if is_open:
        plan = compile_open(made, POCL, any_launch=True).at(sizes)
    else:
        plan = compile_program(special, POCL, any_launch=True)
    assert "reqd_work_group_size" not in plan.kernels[0].source
    check(runner, plan, special)
    check(runner, plan.launched(launch), special)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (((0, 1, 1),), "sizes of 1 or more"),
        (((4, -1, 1), (1, 1, 1)), "sizes of 1 or more"),
        (((4, 1, 1), (0, 1, 1)), "sizes of 1 or more"),
        (((100, 1, 1), (30, 1, 1)), "must divide its work-items"),
    ],
)
def test_launches_that_no_device_takes(sizes: tuple[tuple[int, int, int], ...], message: str) -> None:
    with pytest.raises(DeviceProblem, match=message):
        Launch(*sizes)


@needs_opencl
@pytest.mark.parametrize("groups", [1, 2, 5, 40])
def test_a_known_local_size_leaves_the_number_of_groups_free(runner: Runner, groups: int) -> None:
    made, sizes = low.mm_tiled(4), {"M": 12, "K": 8, "N": 20}
    special = specialise(made, sizes)
    plan = compile_program(special, POCL, any_launch=True, launch=Launch((4, 4, 1), (4, 4, 1)))
    assert "reqd_work_group_size(4, 4, 1)" in plan.source
    check(runner, plan.launched(Launch((4 * groups, 4, 1), (4, 4, 1))), special)
    check(runner, plan.launched(Launch((4, 4 * groups, 1), (4, 4, 1))), special)
    with pytest.raises(DeviceProblem, match="the local size of dimension 0 must be 4"):
        plan.launched(Launch((8, 8, 1), (8, 8, 1)))


def test_rounds_over_work_groups_end_in_a_barrier() -> None:
    """000 Figure 4.9: a group that takes another tile must not write before all have read the last one."""
    once = compile_program(specialise(tiles, {"N": 64}), GENERIC).source
    rounds = compile_program(specialise(tiles, {"N": 64}), GENERIC, any_launch=True).source
    assert once.count("barrier(") == 1
    assert rounds.count("barrier(") == 2
    body = rounds[rounds.index("get_group_id") :]
    assert body.rindex("barrier(") > body.rindex("result[")
    assert "wrg_0 += get_num_groups(0)" in rounds
    assert "+= get_local_size(0)" in rounds


def test_what_needs_a_local_size_says_so() -> None:
    with pytest.raises(NestingProblem, match="local size"):
        compile_program(specialise(low.mm_tiled(4), {"M": 8, "K": 8, "N": 8}), GENERIC, any_launch=True)


def test_launches_that_are_refused() -> None:
    plan = compile_program(specialise(tiles, {"N": 64}), GENERIC, any_launch=True)
    with pytest.raises(DeviceProblem, match="at most 2"):
        plan.launched(Launch((1 << 31, 1, 1), (1, 1, 1)))
    assert plan.launched(Launch((8, 8, 1), (4, 4, 1))).kernels[0].launch == Launch((8, 1, 1), (4, 1, 1))
    fixed = compile_program(specialise(tiles, {"N": 64}), GENERIC)
    with pytest.raises(DeviceProblem, match="one launch only"):
        fixed.launched(Launch((8, 1, 1), (4, 1, 1)))


def test_loops_that_share_out_many_elements_stay_within_32_bits() -> None:
    """The last index and the stride are added up before they are compared with the length."""
    copied = parse_program("program copied(xs: [bool]N) = mapGlb(0, id, xs)")
    groups = parse_program("program groups(xs: [bool]N) = mapWrg(0, mapLcl(0, id), split(2147483647, xs))")
    fits = specialise(copied, {"N": 1 << 30})
    assert compile_program(fits, GENERIC, any_launch=True).kernels
    large = specialise(copied, {"N": 2**31 - 1})
    assert compile_program(large, GENERIC).kernels  # without a loop
    with pytest.raises(SizeProblem, match=r"shared out by up to 1073741824 .* beyond the 32-bit index range"):
        compile_program(large, GENERIC, any_launch=True)
    with pytest.raises(SizeProblem, match=r"shared out by 1000 .* beyond the 32-bit index range"):
        compile_program(large, GENERIC, launch=Launch((1000, 1, 1)))
    with pytest.raises(SizeProblem, match=r"mapLcl\(0\), shared out by 256"):
        compile_program(specialise(groups, {"N": 2**31 - 1}), GENERIC)


def test_groups_of_the_devices_choice_are_refused_where_the_kernel_must_know_them() -> None:
    special = specialise(summed, {"N": 12})
    with pytest.raises(DeviceProblem, match=r"the launch needs a local size\n  in mapWrg\(0"):
        compile_program(special, GENERIC, launch=Launch((12, 1, 1)))
    assert compile_program(special, GENERIC, launch=Launch((12, 1, 1)), any_launch=True).kernels


def shared_sums(length: int, shared: int) -> ir.Program:
    """Rows of a length, each with a sum that is shared by some work-items of its group."""
    return parse_program(
        f"""program p(X: [[f32]{length}]8) =
              mapWrg(0, fun row =>
                let s = reduceSeq(add, 0.0, toLocal(mapLcl(0, reduceSeq(add, 0.0), split({length // shared}, row)))) in
                mapLcl(0, fun x => x - s, row), X)"""
    )


@pytest.mark.parametrize(
    ("length", "shared", "items"),
    [(1024, 128, 128), (1024, 256, 256), (512, 128, 512), (2048, 16, 256), (2048, 1024, 256)],
)
def test_groups_on_a_gpu_are_not_as_large_as_their_longest_map(length: int, shared: int, items: int) -> None:
    assert compile_program(shared_sums(length, shared), NVIDIA).kernels[0].launch.local_size == (items, 1, 1)


def test_neighbours_of_a_warp_lie_in_the_innermost_dimension() -> None:
    def group(rows: int, columns: int) -> object:
        text = f"program p(X: [[f32]{columns}]{rows}) = mapGlb(1, mapGlb(0, abs), X)"
        return compile_program(parse_program(text), NVIDIA).kernels[0].launch.local_size

    assert group(100, 100) == (32, 8, 1)
    assert group(100, 10) == (16, 16, 1)
    assert group(100, 1) == (1, 256, 1)


def test_groups_that_are_too_large_keep_whole_sub_groups():
    blocks = parse_program("""
        program sums(X: [[[[i32]32]8]8]4) =
          mapWrg(0, fun a => mapLcl(2, fun b => mapLcl(1, fun c => reduceSub(16, add, 0, mapLcl(0, id, c)), b), a), X)
    """)
    (kernel,) = compile_program(blocks, NVIDIA).kernels
    assert kernel.launch.local_size
    assert kernel.launch.local_size[0] == 32
    assert prod(kernel.launch.local_size) <= NVIDIA.max_work_group
    with pytest.raises(DeviceProblem, match="16 work-items a group, fewer than a sub-group"):
        compile_program(blocks, replace(NVIDIA, max_work_group=16))
