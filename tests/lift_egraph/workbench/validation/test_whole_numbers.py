"""Kernels on whole numbers in place of floats: what is said of right ones, and that wrong ones are seen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from lift_egraph.api import Runner, describe, find_device, naive_term, parse_program, programs, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.language import ir
from lift_egraph.workbench import Candidate
from lift_egraph.workbench.measuring.evaluation import hold
from lift_egraph.workbench.validation.whole_numbers import Outcome, WholeNumbers
from tests.codegen.opencl import needs_opencl

TEXT = "program p(A: [[f32]N]N, v: [f32]N) where N = 16 = map(fun r => reduce(add, 0.0, map(fun (a, b) => {}, {})), A)"
RIGHT = parse_program(TEXT.format("a * b * 0.25", "zip(r, v)"))


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(find_device()) as made:
        yield made


def held(program: ir.Program, lowered: ir.Program, runner: Runner) -> Outcome | None:
    compiled = partial(compile_program, device=describe(find_device()))
    return WholeNumbers(program, specialise(program), compiled).check(lowered, runner)


@needs_opencl
def test_right_kernels_pass_with_a_chance_for_wrong_ones(runner: Runner):
    found = held(RIGHT, naive_term(specialise(RIGHT)), runner)
    assert found is not None
    assert found.valid
    assert found.message == (
        "with i32 for f32, on random 32-bit integers: all 16 elements equal bit for bit; a kernel that computes other "
        "polynomials, of degree 3 at most, passes with a probability of at most 3e-06, unless it is wrong by multiples "
        "of 256 alone"
    )


@needs_opencl
def test_no_chance_is_told_where_degrees_are_too_high_for_one(runner: Runner):
    power = " * ".join(60 * "x")
    powers = parse_program(f"program p(v: [f32]N) where N = 16 = scan(mul, 1.0, map(fun x => {power}, v))")
    found = held(powers, naive_term(specialise(powers)), runner)
    assert found is not None
    assert found.valid
    assert found.message.endswith(
        "polynomials of degree 960 are too many for a bound on the chance that a wrong kernel passes"
    )


@needs_opencl
@pytest.mark.parametrize(
    ("element", "pairs"),
    [("a * b * 0.25 + a - a * b * 0.25", "zip(r, v)"), ("a * b * 0.25", "zip(v, v)"), ("a * 0.25", "zip(r, v)")],
)
def test_wrong_ones_do_not(runner: Runner, element: str, pairs: str):
    wrong = naive_term(specialise(parse_program(TEXT.format(element, pairs))))
    found = held(RIGHT, wrong, runner)
    assert found is not None
    assert not found.valid
    assert "16 of 16 elements are wrong" in found.message


@needs_opencl
def test_large_sizes_are_checked_at_small_ones(runner: Runner):
    mm = programs.load("mm")
    found = held(mm, naive_term(specialise(mm)), runner)
    assert found is not None
    assert found.valid
    assert found.message.startswith("with i32 for f32, on random 32-bit integers at K = 64, M = 64, N = 64: all 4096")


STEPS = """program p(v: [f32]P) where P = 200003, steps = 60 =
  map(fun x => {} reduceSeq(fun (s, k) => s * x, 0.5, generate(steps, id)), v)"""


@needs_opencl
def test_ranges_are_counted_as_what_they_read(runner: Runner):
    text = "program p(v: [f32]N) where N = 65536 = generate(N, fun i => reduceRange(add, 0.0, 0, i, v))"
    prefixes = parse_program(text)
    found = held(prefixes, naive_term(specialise(prefixes)), runner)
    assert found is not None
    assert " at N = " in found.message


@needs_opencl
def test_places_and_conditions_are_counted_as_they_are_interpreted_too(runner: Runner):
    sums = parse_program("""program p(A: [[f32]N]N) where N = 1501 =
      generate(2 * N - 1, fun d => reduce(add, 0.0, generate(N, fun i =>
        let j = d - i in if j >= 0 && j < N then A[i][j] else 0.0)))""")
    found = held(sums, naive_term(specialise(sums)), runner)
    assert found is not None
    assert " at N = " in found.message


@needs_opencl
@pytest.mark.parametrize("before", ["", "60.0 +", "reduceSeq(fun (s, k) => s + x, 0.5, generate(60, id)) +"])
def test_small_sizes_are_those_of_all_loops_and_of_no_other_numbers(runner: Runner, before: str):
    program = parse_program(STEPS.format(before))
    found = held(program, naive_term(specialise(program)), runner)
    assert found is None if "generate" in before else found is not None and found.valid


@pytest.mark.parametrize("name", ["asum", "scan", "nbody"])
def test_nothing_is_said_of_other_programs(name: str):
    program = programs.load(name)
    special = specialise(program, {size: 16 for size, _ in program.sizes})
    numbers = WholeNumbers(program, special, lambda lowered: pytest.fail("it is compiled"))
    assert numbers.check(special, None) is None  # pyright: ignore[reportArgumentType]


def test_a_kernel_that_is_wrong_there_has_no_time():
    (right, wrong) = (
        Candidate(RIGHT, None, 0.0, 1.0, valid=True, measured_ms=1.0, message="all equal")  # pyright: ignore
        for _ in range(2)
    )
    hold(right, Outcome(True, "here too"))
    hold(wrong, Outcome(False, "not here"))
    assert (right.valid, right.measured_ms, right.message) == (True, 1.0, "all equal; here too")
    assert (wrong.valid, wrong.measured_ms, wrong.message) == (False, None, "not here")


@needs_opencl
def test_other_fractions_say_nothing(runner: Runner):
    other = parse_program(TEXT.format("a * b * 0.5", "zip(r, v)"))
    assert held(RIGHT, naive_term(specialise(other)), runner) is None
