"""Reductions by sub-groups: the items of one pass on what they have, and the first has it all, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lift_egraph.api import Runner
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, NVIDIA, POCL, Device
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.errors import DeviceProblem, LiftError, NestingProblem, SizeProblem
from lift_egraph.extract.accesses import analyse
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.events import events_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from tests.codegen.corpus.devices import missing
from tests.codegen.opencl import as_pocl_likes, in_one_build, results
from tests.depth import in_turn

LEAST = "fun ((a, i), (b, j)) => (select(b < a, b, a), select(b < a, j, i)), (inf, 0)"
IN_ORDER = "fun ((a, b), (c, d)) => (a * c, b * c + d), (1, 5)"  # linear functions, which do not commute
GROUPS = "(xs: [{t}]512) = join(mapWrg(0, fun c => mapLcl(0, {last}), split({chunk}, xs)))"
SUMS = "reduceSub(4, add, 0.0, reduceSub(16, add, 0.0, mapLcl(0, reduceSeq(add, 0.0), split(4, c))))"
PROGRAMS = {
    "sums": GROUPS.format(t="f32", chunk=256, last=f"id, {SUMS}"),
    "places": GROUPS.format(t="f32", chunk=64, last=f"id, reduceSub(16, {LEAST}, zip(c, generate(64, id)))"),
    "in_order": GROUPS.format(t="i32", chunk=64, last=f"fun (a, b) => a * 7 + b, reduceSub(8, {IN_ORDER}, zip(c, c))"),
    "few": GROUPS.format(t="i32", chunk=4, last="id, reduceSub(2, max, 3, c)"),
    "words": GROUPS.format(t="i64", chunk=32, last="id, reduceSub(8, add, to_i64(4000000000), c)"),
    "doubles": GROUPS.format(t="f64", chunk=32, last="id, reduceSub(8, add, to_f64(3), c)"),
    "bytes": GROUPS.format(t="u8", chunk=32, last="id, reduceSub(8, max, to_u8(3), c)"),
    "halves": GROUPS.format(t="f16", chunk=32, last="id, reduceSub(8, max, to_f16(3), c)"),
    "turns": GROUPS.format(
        t="i32", chunk=64, last="id, join(mapSeq(fun r => reduceSub(16, add, 1, mapLcl(0, neg, r)), split(32, c)))"
    ),
    "rows": "(X: [[i32]32]16) = join(mapWrg(0, fun cs => join(mapLcl(1, fun c => mapLcl(0, id, reduceSub(16, add, 1, "
    "mapLcl(0, neg, c))), cs)), split(4, X)))",
}
ROWS = """program kept_rows(X: [[i32]{n}]8) = join(mapWrg(0, mapLcl(1, fun s =>
    let wide = pad(0, {r}, constant(-9), s) in
    let m = at(0, reduceSub({w}, max, -9, mapLcl(0, reduceSeq(max, -9), transpose(split({w}, wide))))) in
    let e = {to}(mapLcl(0, fun x => m - x, s)) in
    let all = pad(0, {r}, constant(0), e) in
    let t = at(0, reduceSub({w}, add, 0, mapLcl(0, reduceSeq(add, 0), transpose(split({w}, all))))) in
    mapLcl(0, fun x => x * 3 + t, e)), split(4, X)))"""
LIKE_NVIDIA = replace(NVIDIA, emission=replace(NVIDIA.emission, exchange="intel"))  # all but that text
DOUBLE = "program p(xs: [f32]64) = mapWrg(0, fun c => {}, split(64, xs))"


def program_of(name: str) -> Any:
    return parse_program(f"program {name}{PROGRAMS[name]}")


def rows_of(device: Device) -> Any:
    """Rows of a length that no sub-group divides, of each of which a sub-group keeps what it computes."""
    width = device.sub_group
    return parse_program(ROWS.format(to="toPrivate", w=width, n=3 * width + 5, r=width - 5))


@pytest.mark.skipif(bool(missing("intel")), reason="Intel's runtime has sub-groups")
@in_turn(3)
@pytest.mark.parametrize("device", [INTEL, LIKE_NVIDIA], ids=["intel", "as for nvidia"])
def test_they_are_right_where_they_run(another_runner: Runner, device: Device) -> None:
    programs = [program_of(name) for name in PROGRAMS]
    made = [compile_program(program, device) for program in programs]
    programs.append(replace(program_of("in_order"), name="in_rounds"))  # fewer items than elements
    items = device.sub_group
    made.append(compile_program(programs[-1], device, launch=Launch((8 * items, 1, 1), (items, 1, 1))))
    programs.append(rows_of(device))
    made.append(compile_program(programs[-1], device))
    for program, plan in zip(programs, map(as_pocl_likes, in_one_build(made)), strict=True):
        inputs = random_inputs(program, 0, "integer")
        wanted = leaves_of(evaluate(program.body, inputs))
        for computed, right in zip(results(another_runner, plan, inputs), wanted, strict=True):
            assert np.array_equal(computed, right), program.name


def test_a_level_costs_one_barrier_and_its_first_items_write() -> None:
    plan = compile_program(program_of("sums"), NVIDIA)
    (kernel,) = plan.kernels
    assert kernel.launch == Launch((2 * 64, 1, 1), (64, 1, 1))
    assert kernel.source.count("barrier(") == 1
    assert kernel.local_bytes == 4 * (4 + 1)  # what items have they keep
    assert "shfl.sync.down" in plan.source
    steps = [int(line.split(", ")[1].rstrip(");")) for line in kernel.source.split("\n") if "= passed_float(" in line]
    assert steps == [1, 2, 4, 8, 1, 2]
    assert "if (lcl_0 % 16 < 1)" in kernel.source
    assert "if (get_local_id(0) < 32) {" in kernel.source  # whole sub-groups take part in the second level


def test_each_item_of_a_row_that_is_a_sub_groups_knows_its_sum_and_keeps_its_elements() -> None:
    (kernel,) = compile_program(rows_of(NVIDIA), NVIDIA).kernels
    assert kernel.launch.local_size == (32, 4, 1)
    assert kernel.source.count("= first_int(") == 2
    assert "barrier(" not in kernel.source
    assert kernel.local_bytes == 0
    wide = parse_program(ROWS.format(to="toLocal", w=16, n=53, r=11))  # two rows a sub-group
    assert "= first_int(" not in compile_program(wide, NVIDIA).source


@pytest.mark.parametrize(("items", "length"), [(16, 1024), (32, 8192)])
def test_groups_stay_large_where_items_would_gain_nothing_or_keep_too_much(items: int, length: int) -> None:
    text = f"program p(X: [[f32]{length}]64) = mapWrg(0, fun r => let m = at(0, reduceSub({items}, max, 0.0, " \
           "slice(0, 32, r))) in mapLcl(0, fun x => x - m, r), X)"  # fmt: skip
    (kernel,) = compile_program(parse_program(text), NVIDIA).kernels
    assert kernel.launch.local_size == (256, 1, 1)


def test_groups_are_of_whole_sub_groups() -> None:
    for device, items in ((NVIDIA, 32), (INTEL, 16)):
        (kernel,) = compile_program(program_of("few"), device).kernels
        assert kernel.launch.local_size == (items, 1, 1)
        assert "if (lcl_0 < 4)" in kernel.source
    assert "intel_reqd_sub_group_size(16)" in kernel.source


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (DeviceProblem, "reduceSub(64, add, 0.0, c)", "64 work-items are more than a sub-group of nvidia has"),
        (NestingProblem, "reduceSub(1, add, 0.0, mapLcl(0, fun x => at(0, reduceSub(1, add, 0.0, c)), c))",
         "reduceSub stands inside another mapLcl"),
        (SizeProblem, "reduceSub(6, add, 0.0, c)", r"reduceSub\(6\) does not divide an array of length 64"),
        (NestingProblem, "reduceSub(4, fun (a, b) => map(add, zip(a, b)), fill(2, 0.0), split(2, c))",
         r"scalars and tuples of them, not \[f32\]2"),
    ],
    ids=["too many", "in an item", "no divisor", "arrays"],
)  # fmt: skip
def test_what_cannot_be_is_refused(kind: type[LiftError], text: str, says: str) -> None:
    with pytest.raises(kind, match=says):
        compile_program(parse_program(DOUBLE.format(text)), NVIDIA)


def test_a_number_of_items_that_no_doubling_reaches_is_refused() -> None:
    text = "program p(xs: [f32]96) = mapWrg(0, fun c => reduceSub(6, add, 0.0, c), split(96, xs))"
    with pytest.raises(NestingProblem, match="a power of two of work-items combine"):
        compile_program(parse_program(text), NVIDIA)


def test_a_device_must_say_how_items_pass_values() -> None:
    for device in (POCL, replace(NVIDIA, emission=replace(NVIDIA.emission, exchange="none"))):
        with pytest.raises(DeviceProblem, match=r"nothing says that those of \w+ can: emission\.exchange"):
            compile_program(program_of("sums"), device)
    with pytest.raises(DeviceProblem, match="whole sub-groups, of 32 work-items each, not 48"):
        compile_program(program_of("few"), NVIDIA, launch=Launch((48, 1, 1), (48, 1, 1)))
    outside = parse_program("program p(xs: [f32]64) = reduceSub(8, add, 0.0, xs)")
    with pytest.raises(NestingProblem, match="reduceSub must stand inside a mapWrg, but stands inside nothing"):
        compile_program(outside, NVIDIA)


def test_what_is_passed_on_is_counted() -> None:
    (kernel,) = compile_program(program_of("places"), NVIDIA).kernels
    assert sum(times * region.passed for region, times in analyse(kernel).walk()) == 512 * 2 * 4
    assert sum(n * domain.size for domain, n in events_of(kernel).barriers.items()) == 512
    (words,) = compile_program(program_of("words"), NVIDIA).kernels
    assert max(region.passed for region, _ in analyse(words).walk()) == 2 * 3
    chained = compile_program(program_of("in_order"), NVIDIA)
    assert float(predict(chained, NVIDIA)) > 0
