"""Scans in one pass: groups that look back over the totals of those before them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.api import Runner, find_device
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC, NVIDIA, POCL
from lift_egraph.codegen.lowering.look_back import words_of
from lift_egraph.errors import DeviceProblem, NestingProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.planning.group_folds import group_folds
from lift_egraph.workbench.planning.look_back import (
    LongScan,
    chunk_beside_rest,
    long_scans,
    look_back,
    looking_back,
    looking_back_of_runs,
    looks_back,
)
from lift_egraph.workbench.planning.plan import Plan, nests, plan_of
from lift_egraph.workbench.planning.plans import plans
from tests.codegen.opencl import as_pocl_likes, in_one_build, needs_opencl, results
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

# the groups, how many are looked at at once, and the program; a group has 16 items with 8 elements
PROGRAMS = {
    "sums": (37, 4, "(xs: [i32]{n}) = scan(add, 3, xs)"),
    "one_by_one": (11, 1, "(xs: [f32]{n}) = scan(max, 0.5, xs)"),
    "many_at_once": (130, 100, "(xs: [f32]{n}) = scan(min, 7.0, xs)"),
}
IN_ORDER = "program in_order(xs: [i32]45) = lookBack(6, fun x => (x, x), fun (a, b) => b, 7, fun (o, x) => o - x, xs)"


def program_of(name: str) -> tuple[ir.Program, Plan]:
    """A program, and the plan for it."""
    groups, ahead, text = PROGRAMS[name]
    program = parse_program(f"program {name}{text.format(n=128 * groups)}")
    (nest,) = nests(program.body)
    return program, plan_of(looking_back, nest, (), part=4, left=4, run=8, ahead=ahead, width=4)


@needs_opencl
@in_turn(3)
def test_groups_look_back() -> None:
    programs, terms = [parse_program(IN_ORDER)], [parse_program(IN_ORDER).body]
    for program, plan in map(program_of, PROGRAMS):
        programs.append(program)
        terms.append(reached(program, plan))
    made = [compile_program(replace(p, body=term), NVIDIA) for p, term in zip(programs, terms, strict=True)]
    with Runner(find_device()) as runner:
        for program, plan in zip(programs, map(as_pocl_likes, in_one_build(made)), strict=True):
            inputs = random_inputs(program, 0, "integer")
            (found,) = results(runner, plan, inputs)
            assert np.array_equal(found, evaluate(program.body, inputs)), program.name


def test_they_are_two_kernels_that_share_a_state() -> None:
    program, plan = program_of("sums")
    zero, scan = compile_program(replace(program, body=reached(program, plan)), NVIDIA).kernels
    shared = {a.name for a in zero.arguments}
    assert shared < {a.name for a in scan.arguments}
    assert zero.launch.global_size[0] >= 2 * (37 + 1)  # a ticket, and a state for each group
    assert scan.launch.global_size[0] == 37 * 16
    assert "atomic_inc" in scan.source
    assert scan.source.count("barrier(") <= 11


def test_a_device_must_say_that_groups_go_on() -> None:
    program, plan = program_of("sums")
    term = replace(program, body=reached(program, plan))
    assert compile_program(term, POCL).kernels
    with pytest.raises(DeviceProblem, match="nothing says that generic goes on"):
        compile_program(term, GENERIC)
    nest = next(nests(parse_program("program p(xs: [f32]1048576) = scan(add, 0, xs)").body))
    assert list(look_back(nest, NVIDIA))
    assert not list(look_back(nest, replace(NVIDIA, groups_progress=False)))


# the groups, how many are looked at at once, whether in vectors, and the program, as above
OF_RUNS = {
    "average": (9, 3, True, "(xs: [f32]{n}) = scanSeq(fun (s, x) => s + 0.25 * (x - s), 1.0, xs)"),
    "restarts": (7, 7, True, "(go: [bool]{n}, xs: [i32]{n}) = scanSeq(fun (s, (g, x)) => if g then x else s + x, 5, "
                 "zip(go, xs))"),
    "places": (4, 2, True, "(xs: [i32]{n}) = scanExclusive(add, 3, map(fun x => if x > 1 then 1 else 0, xs))"),
    "paths": (3, 3, True, "(xs: [f32]{n}, ys: [f32]{n}) = scanSeq(fun ((a, b), (x, y)) => (max(a - 1.0, b) + x, "
              "max(a, b - 2.0) + y), (0.0, -1.0), zip(xs, ys))"),
    "long_sums": (5, 1, False, "(xs: [i32]{n}) = scan(add, 7i64, map(fun x => to_i64(x) * 3000000000i64, xs))"),
    "of_three": (4, 4, True, "(xs: [f32]{n}, ys: [i32]{n}, zs: [bool]{n}) = scanSeq(fun ((a, b, c), (x, y, z)) => (if "
                "z then x else a + x, b + y, c && z), (0.0, 1, true), zip(xs, ys, zs))"),
    "from_inputs": (4, 4, True, "(xs: [i32]{n}, ys: [i32]{n}, z: (i32, bool)) = scanSeq(fun ((s, q), (x, y)) => "
                   "(s + x, q != (y > 1)), z, zip(xs, ys))"),
    "before": (6, 6, True, "(xs: [f32]{n}) = scanExclusiveSeq(fun (s, x) => max(s - 1.0, x), 2.0, xs)"),
}  # fmt: skip


def of_runs(name: str) -> tuple[ir.Program, Plan]:
    """A program of those, and the plan for it."""
    groups, ahead, in_vectors, text = OF_RUNS[name]
    program = parse_program(f"program {name}{text.format(n=128 * groups)}")
    body = program.body
    assert isinstance(body, ir.Scan | ir.ScanSeq | ir.ScanExclusive | ir.ScanExclusiveSeq)
    found = action_of(body.operator)
    total = type_of(found.one) if isinstance(found, Action) else type_of(body.initial)
    numbers = {"part": 4, "left": 4, "run": 8, "ahead": ahead} | ({"width": 4} if in_vectors else {})
    return program, looking_back_of_runs(LongScan(body, total), numbers)


@needs_opencl
@in_turn(3)
def test_groups_look_back_at_what_runs_give() -> None:
    programs, plans_of = zip(*map(of_runs, OF_RUNS), strict=True)
    terms = [reached(program, plan) for program, plan in zip(programs, plans_of, strict=True)]
    made = [compile_program(replace(p, body=term), NVIDIA) for p, term in zip(programs, terms, strict=True)]
    with Runner(find_device()) as runner:
        for program, plan in zip(programs, map(as_pocl_likes, in_one_build(made)), strict=True):
            for kind in ("integer", "float"):
                inputs = random_inputs(program, 0, kind)
                wanted = leaves_of(evaluate(program.body, inputs))
                for part, expected in zip(results(runner, plan, inputs), wanted, strict=True):
                    assert np.allclose(part, expected, atol=1e-3), (program.name, kind)


@pytest.mark.parametrize(
    ("text", "words"),
    [("(xs: [f32]65536) = scanSeq(fun (s, x) => 0.5 * s + x, 0.0, xs)", 2),
     ("(xs: [i32]65536) = scanExclusive(add, 0, xs)", 1), ("(xs: [i64]65536) = scan(add, 0i64, xs)", 2),
     ("(xs: [f32]65536) = scanSeq(fun (s, x) => s * s + x, 0.0, xs)", None),
     ("(xs: [f32]65536) = scanSeq(fun (s, x) => max(0.5 * s + x, 0.0), 0.0, xs)", None),
     ("(xs: [f32]4096) = scanSeq(fun (s, x) => 0.5 * s + x, 0.0, xs)", None),
     ("(xs: [f32]65537) = scanSeq(fun (s, x) => 0.5 * s + x, 0.0, xs)", None)],
    ids=["a recurrence", "exclusive", "64 bits", "no action", "no known monoid", "few elements", "a prime"],
)  # fmt: skip
def test_which_scans_look_back(text: str, words: int | None) -> None:
    body = parse_program(f"program p{text}").body
    assert looks_back(body, NVIDIA) == (words is not None)
    assert not looks_back(body, POCL)
    found = [words_of(found.total) for found in long_scans(body) if looks_back(body, NVIDIA)]
    assert found == ([words] if words else [])


def test_what_remains_of_a_long_scan_is_scanned_first() -> None:
    for length, chunk in ((1000003, 512), (65537, 8192), (65536, None), (4097, None)):  # 67 elements remain, and 1
        scan = parse_program(f"program p(xs: [f32]{length}) = scanSeq(fun (s, x) => 0.5 * s + x, 0.0, xs)").body
        assert chunk_beside_rest(scan, NVIDIA) == chunk
        assert chunk_beside_rest(scan, POCL) is None


@pytest.mark.parametrize(
    "scan",
    ["scan(fun ((a, b), (c, d)) => (a * c, b * c + d), (1, 0), zip(xs, xs))",
     "scanExclusive(fun ((a, b), (c, d)) => (a * c, b * c + d), (1, 0), zip(xs, xs))", "scan(add, 5, map(abs, xs))",
     "scanSeq(fun (s, x) => 3 * s + x, 7, xs)"],
)  # fmt: skip
def test_groups_look_back_behind_what_remains(scan: str) -> None:
    made = LongRows(Rows(NVIDIA)).outside(parse_program(f"program p(xs: [i32]65603) = {scan}").body)
    assert isinstance(made, ir.Concat)
    assert looks_back(made.second, NVIDIA)


def test_what_is_scanned_again_is_not_computed_again() -> None:
    body = parse_program("program p(xs: [f32]65603) = scan(add, 0.0, map(abs, scan(max, 0.0, xs)))").body
    assert LongRows(Rows(NVIDIA)).outside(body) is body


TOTALS = {
    "of 64 bits": "(xs: [i64]45) = lookBack(6, fun x => (x, x), add, 4294967296i64, fun (a, x) => a * x, xs)",
    "a double": "(xs: [f64]45) = lookBack(6, fun x => (x, x), max, -3.5f64, fun (a, x) => a * x, xs)",
    "an affine map": "(xs: [i32]45) = lookBack(4, fun x => ((x, 2 * x), x), fun ((a, b), (c, d)) => (a * c, b * c + "
    "d), (1, 0), fun ((a, b), x) => a - b + x, xs)",
    "of several types": "(xs: [i32]45) = lookBack(40, fun x => ((x, to_u8(x), x > 1, to_f64(x), to_f16(x)), x), "
    "fun ((a, b, c, d, e), (f, g, h, i, j)) => (a + f, b + g, c != h, d + i, max(e, j)), "
    "(3, 250u8, true, 0.5f64, 0.0f16), fun ((a, b, c, d, e), x) => (a, b, c, d, e), xs)",
}


@needs_opencl
def test_totals_have_words() -> None:
    programs = [parse_program(f"program p{n}{text}") for n, text in enumerate(TOTALS.values())]
    made = [compile_program(p, NVIDIA) for p in programs]
    with Runner(find_device()) as runner:
        for program, plan in zip(programs, map(as_pocl_likes, in_one_build(made)), strict=True):
            inputs = random_inputs(program, 0, "integer")
            wanted = leaves_of(evaluate(program.body, inputs))
            for part, expected in zip(results(runner, plan, inputs), wanted, strict=True):
                assert np.array_equal(part, expected), program.body


BESIDE = (
    "program p(xs: [i32]50) = concat(scanSeq(add, 0, slice(0, 5, xs)), let s = reduceSeq(add, 0, slice(0, 5, xs)) in "
    "lookBack(6, fun x => (x, x), add, s, fun (a, x) => a + x, slice(5, 45, xs)))"
)


@needs_opencl
def test_groups_write_their_part_of_an_array() -> None:
    program = parse_program(BESIDE)
    made = compile_program(program, NVIDIA)
    assert len(made.kernels) == 4  # the first part, what the second begins with, no group has started, and the groups
    with Runner(find_device()) as runner:
        (plan,) = map(as_pocl_likes, in_one_build([made]))
        inputs = random_inputs(program, 0, "integer")
        assert np.array_equal(results(runner, plan, inputs)[0], evaluate(program.body, inputs))


def test_totals_are_no_arrays() -> None:
    text = "program p(xs: [[i32]4]45) = lookBack(5, fun x => (x, x), fun (a, b) => map(add, zip(a, b)), fill(4, 0), "
    with pytest.raises(NestingProblem, match="no arrays or vectors"):
        compile_program(parse_program(f"{text}fun (a, x) => a, xs)"), NVIDIA)


def test_the_plan_comes_first_and_costs_least() -> None:
    program = parse_program("program p(xs: [f32]16777216) = scan(add, 0, xs)")
    (nest,) = nests(program.body)
    best = next(plans(program.body, NVIDIA))
    assert best.steps[0].name == "look_back"
    made = [
        compile_program(replace(program, body=reached(program, plan)), NVIDIA, with_text=False)
        for plan in (best, next(group_folds(nest, NVIDIA)))
    ]
    costs = [float(predict(plan, NVIDIA)) for plan in made]
    assert costs[0] < costs[1]
    assert made[0].kernels[1].local_bytes < 2 * 4 * 16 * 256  # a chunk is scanned in the place of its copy


@pytest.mark.parametrize(
    "text",
    ["(xs: [f32]65537) = scan(add, 0.0, xs)", "(xs: [i64]65536) = scan(add, to_i64(0), xs)",
     "(X: [[f32]65536]4) = map(scan(add, 0.0), X)", "(xs: [f32]16384) = scan(add, 0.0, xs)"],
    ids=["a prime", "64 bits", "rows", "few elements"],
)  # fmt: skip
def test_others_have_no_such_plan(text: str) -> None:
    (nest,) = nests(parse_program(f"program p{text}").body)
    assert not list(look_back(nest, NVIDIA))
