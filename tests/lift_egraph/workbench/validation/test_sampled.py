"""Validation beyond the interpreter's reach, with the interpreter in the device's place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import SizeProblem, TimeProblem
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F32
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, run
from lift_egraph.meaning.samples import evaluated, leaf_at
from lift_egraph.meaning.time_limit import require_time, within
from lift_egraph.meaning.values import Value, leaves_of
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.validation import references
from lift_egraph.workbench.validation.references import reference_of, room_for
from lift_egraph.workbench.validation.sampled import TOO_LONG, Sampled, another_order
from lift_egraph.workbench.validation.small_sizes import twin, with_open_lengths
from tests.codegen.devices.test_devices import INFO
from tests.depth import in_turn

MM = programs.load("mm")
SIZES = dict.fromkeys("MNK", 128)
BLOCKED = """
program mm(A: [[f32]128]128, B: [[f32]128]128) =
  mapGlb(0, fun row =>
    join(reduceSeq(fun (acc, (a, b)) => mapSeq(fun (line, part) =>
        mapSeq(fun (s, y) => s + a * y, zip(line, part)), zip(acc, split(32, b))),
      fill(4, fill(32, 0.0)), zip(row, B))), A)
"""


class Interpreter:
    """Runs low-level programs in the place of their plans; `spoil` may change what comes out."""

    def __init__(self, spoil: Callable[[str, Any], None] = lambda name, result: None) -> None:
        self.inputs: dict[str, Any] = {}
        self.spoil = spoil
        self.optimised: list[tuple[str, bool]] = []

    def load_inputs(self, name: str, inputs: Any) -> None:
        self.inputs[name] = inputs

    def run(self, plan: ir.Program, name: str, *, optimised: bool = True) -> Value:
        self.optimised.append((name.partition(" ")[0] if "=" in name else "", optimised))
        result = evaluate(plan.body, self.inputs[name])
        self.spoil(name, result)
        return result


@pytest.fixture(scope="module")
def sampled() -> Sampled:
    return Sampled(MM, specialise(MM, SIZES), lambda p: cast(Any, p), seed=0, seconds=0.3)


def checked(sampled: Sampled, spoil: Callable[[str, Any], None] = lambda name, result: None):
    runner = Interpreter(spoil)
    references.load_references(cast(Runner, runner), sampled)
    sampled.loaded.clear()
    return sampled.check(naive_term(sampled.program), cast(Any, naive_term(sampled.program)), cast(Runner, runner))


def test_a_right_kernel_is_valid_and_says_what_was_compared(sampled: Sampled):
    first, second = checked(sampled), checked(sampled)
    assert first.valid
    assert "the same plan at K = " in first.message
    assert "of all 16384 elements as the first right kernel's" in second.message
    assert second.compared > 2 * 144
    assert "elements on integers" in sampled.how


@pytest.mark.parametrize(("wrong", "is_valid"), [(0, True), (1, True), (2, False)])
def test_small_sizes_are_built_without_optimisations_unless_they_are_wrong_so(
    sampled: Sampled, wrong: int, is_valid: bool
):
    """A device's compiler may take a minute to optimise what it unrolls; what it does wrong without is not ours."""
    left = wrong

    def spoil(name: str, result: np.ndarray) -> None:
        nonlocal left
        if name.startswith("integers at") and left:
            left, result[0, 0] = left - 1, -1e6

    runner = Interpreter(spoil)
    references.load_references(cast(Runner, runner), sampled)
    sampled.loaded.clear()
    term = naive_term(sampled.program)
    assert sampled.check(term, cast(Any, term), cast(Runner, runner)).valid == is_valid
    small = [optimised for name, optimised in runner.optimised if name]
    assert small == [False, False] + ([True, True] if wrong else [])
    assert all(optimised for name, optimised in runner.optimised if not name)


@pytest.mark.parametrize(
    ("where", "at", "said"),
    [
        ("integers", (0, 0), "output[0, 0] is"),  # a sample
        ("floats", (127, 127), "output[127, 127] is"),
        ("integers", (5, 77), "output[5, 77] is"),  # differs from the first right kernel's
        ("integers at K = ", (1, 1), "the same plan at"),
    ],
)
def test_a_wrong_element_is_found(sampled: Sampled, where: str, at: tuple[int, int], said: str):
    def spoil(name: str, result: np.ndarray) -> None:
        if name == where or (name.startswith(where) and "=" in where):
            result[at] += 1

    assert checked(sampled).valid
    verdict = checked(sampled, spoil)
    assert not verdict.valid
    assert said in verdict.message


def test_a_loop_of_a_length_with_large_divisors_alone_is_checked_at_a_small_one():
    source = parse_program("program p(x: [f32]N) where N = 2000001 = reduce(add, 0.0, x)")  # 3 times a prime
    lowered = parse_program("program p(x: [f32]2000001) = reduceSeq(add, 0.0, x)")
    found = twin(source, {"N": 2000001}, lowered)
    assert found is not None
    assert found.program.sizes[0][1] < 100


def test_exponents_are_no_sizes():
    """Users begin minima with a large number."""
    source = parse_program("program h(xs: [f32]100000) = reduce(min, 3.4e38, map(fun x => x + 1e-38, xs))")
    lowered = parse_program(
        "program h(xs: [f32]100000) = reduceSeq(min, 3.4e+38, mapSeq(fun x => x + 1e-38, join(split(100, xs))))"
    )
    found = twin(source, {}, lowered)
    assert found
    assert dict(found.program.sizes)["length100000"] < 1000
    assert with_open_lengths(parse_program("program h(xs: [f32]38) = map(fun x => x + 3.4e38, xs)"))


def test_a_small_length_is_not_below_that_of_its_windows():
    source = parse_program("""program p(x: [f32]N) where N = 1000003, L = 200, S = 20 =
      let sums = map(fun w => reduce(add, 0.0, w), slide(L, 1, x)) in
      zip(sums, map(fun w => reduce(add, 0.0, w), slide(S, 1, slice(L - S, N - L + S, x))))""")
    lowered = parse_program("""program p(x: [f32]1000003) =
      let sums = mapGlb(0, reduceSeq(add, 0.0), slide(200, 1, x)) in
      zip(sums, mapGlb(0, reduceSeq(add, 0.0), slide(20, 1, slice(180, 999823, x))))""")
    found = twin(source, dict(source.sizes), lowered)
    assert found is not None
    inputs = random_inputs(found.program, 0, "integer")
    assert equal_values(run(found.lowered, inputs), run(found.program, inputs))


def test_long_chunks_are_shorter_at_small_sizes():
    source = parse_program("program p(x: [f32]N) where N = 100003 = reduce(add, 0.0, x)")
    lowered = parse_program("""program p(x: [f32]100003) = reduceSeq(add, reduceSeq(add, 0.0,
        mapGlb(0, reduceSeq(add, 0.0), split(6250, slice(0, 100000, x)))), slice(100000, 3, x))""")
    found = twin(source, {"N": 100003}, lowered)
    assert found is not None
    assert dict(found.program.sizes) == {"N": 67}  # 16 chunks, as of the large size, of 4 elements, and 3 behind them
    inputs = random_inputs(found.program, 0, "integer")
    assert np.array_equal(run(found.lowered, inputs), run(found.program, inputs))


def test_chunks_that_take_long_are_fewer_at_small_sizes():
    step = "fun (s, y) => reduceSeq(fun (c, i) => c * 3, s, generate(8, id)) + y"
    source = parse_program(f"program p(x: [i32]N) where N = 1048576 = reduceSeq({step}, 7, x)")
    lowered = parse_program(f"""program p(x: [i32]1048576) =
      let ts = asScalar(mapGlb(0, vectorize(16, reduceSeq({step}, 0)), asVector(16, split(4096, x)))) in
      let q = reduceSeq(mul, 1, join(split(16, fill(256, -1970898431)))) in
      reduceSeq(fun (s, t) => q * s + t, 7, ts)""")  # 3 to the power of 8 · 16
    found = twin(source, {"N": 1048576}, lowered)
    assert found is not None
    assert dict(found.program.sizes) == {"N": 12288}  # three vectors of chunks of 256 elements
    inputs = random_inputs(found.program, 0, "integer")
    assert np.array_equal(run(found.lowered, inputs), run(found.program, inputs))


def test_there_are_fewer_chunks_whose_totals_are_taken_in_parts():
    source = parse_program("program p(x: [i32]N) where N = 4000003 = reduce(add, 0, x)")
    lowered = parse_program("""program p(x: [i32]4000003) =
      let totals = toGlobal(mapGlb(0, reduceSeq(add, 0), split(3520, slice(1283, 3998720, x)))) in
      let parts = toGlobal(mapGlb(0, reduceSeq(add, 0), split(71, totals))) in
      reduceSeq(add, reduceSeq(add, 0, slice(0, 1283, x)), join(split(8, parts)))""")
    found = twin(source, {"N": 4000003}, lowered)
    assert found is not None
    ((_, small),) = found.program.sizes
    assert (small - 1283) % 3520 == 0  # chunks as long as those of the large size
    assert small < 400_000
    inputs = random_inputs(found.program, 0, "integer")
    assert np.array_equal(run(found.lowered, inputs), run(found.program, inputs))


def test_a_twin_of_a_padded_array_has_a_shorter_one():
    """Its chunks are as many parts as others divide, and as much stands behind the last one."""
    source = parse_program("program p(x: [f32]N) where N = 134217741 = reduce(add, 0.0, map(abs, x))")
    within = "fun (s, (v, i)) => s + select(i < 134217741, abs(v), 0.0)"
    chunk = f"reduceSeq(add, 0.0, mapSeq(reduceSeq({within}, 0.0), transpose(split(512, c))))"
    padded = "zip(pad(0, 4083, clamp, x), generate(134221824, fun i => i))"
    body = f"reduceSeq(add, 0.0, mapSeq(fun c => {chunk}, split(1016832, {padded})))"
    found = twin(source, {"N": 134217741}, parse_program(f"program p(x: [f32]134217741) = {body}"))
    assert found is not None
    length = dict(found.program.sizes)["N"]
    assert length < 10_000
    assert f"< {length}" in print_term(found.lowered.body)
    inputs = random_inputs(found.program, 0, "integer")
    assert equal_values(evaluate(found.program.body, inputs), evaluate(found.lowered.body, inputs))


def test_a_padded_array_in_chunks_of_two_lengths_has_shorter_ones_of_both():
    """There are as many of each, and all that they are cut into divides them."""
    source = parse_program("program p(x: [f32]N) where N = 1000003 = reduce(add, 0.0, x) + reduce(add, 0.0, x)")
    padded = "pad(0, 15805, constant(0.0), x)"
    cut = "reduceSeq(add, 0.0, mapSeq(reduceSeq(add, 0.0), split({}, {})))"
    both = [
        cut.format(totals, f"mapSeq(fun c => {cut.format(part, 'c')}, split({chunk}, {padded}))")
        for totals, part, chunk in ((64, 32, 1984), (128, 8, 3968))
    ]
    found = twin(source, {"N": 1000003}, parse_program(f"program p(x: [f32]1000003) = {' + '.join(both)}"))
    assert found is not None
    length, text = dict(found.program.sizes)["N"] + 15805, print_term(found.lowered.body)
    assert length < 50_000
    assert all(f"split({length // count}, pad(" in text for count in (512, 256))
    inputs = random_inputs(found.program, 0, "integer")
    assert equal_values(evaluate(found.program.body, inputs), evaluate(found.lowered.body, inputs))


def test_a_plan_is_shrunk_with_the_numbers_that_are_parts_of_its_sizes():
    found = twin(MM, SIZES, parse_program(BLOCKED))
    assert found is not None
    assert dict(found.program.sizes) == dict.fromkeys("KMN", 96)  # 3 * 32, as 128 is 4 * 32
    inputs = random_inputs(found.program, 0, "integer")
    assert np.array_equal(run(found.lowered, inputs), run(found.program, inputs))


def test_lengths_in_numbers_become_small_too():
    text = """program far(A: [f32]8000, B: [f32]6000, w: [f32]3) =
      reduce(max, 0.0, map(fun a => reduce(min, 9.0, map(fun b => abs(a - b), B)), A)) + w[2]"""
    low = """program far(A: [f32]8000, B: [f32]6000, w: [f32]3) = reduceSeq(max, 0.0, join(mapGlb(0,
      mapSeq(fun a => reduceSeq(min, 9.0, mapSeq(fun b => abs(a - b), B))), split(16, A)))) + w[2]"""
    found = twin(parse_program(text), {}, parse_program(low))
    assert found is not None
    assert dict(found.program.sizes) == {"length8000": 48, "length6000": 16}
    inputs = random_inputs(found.program, 0, "integer")
    assert np.array_equal(run(found.lowered, inputs), run(found.program, inputs))


def test_lengths_that_must_be_their_numbers_stay():
    text = "program f(x: [f32]100, y: [f32]64, z: [f32]36, u: [f32]50) = (map(add, zip(x, concat(y, z))), map(abs, u))"
    opened = with_open_lengths(parse_program(text))
    assert opened is not None
    assert dict(opened.sizes) == {"length50": 50}
    made = with_open_lengths(parse_program("program f() = reduce(add, 0.0, map(to_f32, generate(900, id))) / 900.0"))
    assert made is not None
    assert dict(made.sizes) == {"length900": 900}
    assert with_open_lengths(parse_program("program f(x: [f32]N, y: [f32]3) where N = 99 = (x, map(abs, y))")) is None


@pytest.mark.parametrize(
    ("source", "lowered", "small"),
    [
        (
            "program last(xs: [f32]N) where N = 3011 = generate(2 * N, fun i => xs[min(i / 2 + 1, N - 1)])",
            "program last(xs: [f32]3011) = mapGlb(0, fun i => xs[min(i / 2 + 1, 3010)], generate(6022, id))",
            "mapGlb(0, fun i => xs[min(i / 2 + 1, 35)], generate(72, id))",
        ),
        (
            "program rest(xs: [f32]N) where N = 3003 = map(abs, xs)",
            "program rest(xs: [f32]3003) = concat(asScalar(mapGlb(0, abs, asVector(16, slice(0, 2992, xs)))), "
            "mapGlb(0, abs, slice(2992, 11, xs)))",
            "concat(asScalar(mapGlb(0, abs, asVector(16, slice(0, 48, xs)))), mapGlb(0, abs, slice(48, 11, xs)))",
        ),
    ],
    ids=["what sizes make", "what a rest leaves"],
)
def test_numbers_that_follow_from_sizes_become_small_ones(source: str, lowered: str, small: str):
    program = parse_program(source)
    found = twin(program, dict(program.sizes), parse_program(lowered))
    assert found is not None
    assert " ".join(print_term(found.lowered.body).split()).replace("( ", "(") == small


def test_time_and_memory_decide(monkeypatch: pytest.MonkeyPatch):
    program = specialise(MM, SIZES)

    def made(seconds: float, free: int):
        monkeypatch.setattr(references, "available_memory", lambda: free)
        room = room_for(program, INFO, 2)
        return room.workers, reference_of(MM, program, room, lambda p: cast(Any, p), seconds=seconds)

    workers, reference = made(10, 1 << 30)
    assert isinstance(reference, References)
    for seconds, free, kinds, wanted in (
        (1e-3, 1 << 30, ("integers", "floats"), 2),
        (10, 2 << 20, ("integers", "floats"), 2),
        (10, 3 << 19, ("integers", "floats"), 1),
        (10, 3 << 18, ("integers",), 1),
    ):
        workers, reference = made(seconds, free)
        assert (workers, cast(Sampled, reference).kinds, reference.timed) == (wanted, kinds, kinds[-1])
    monkeypatch.setattr(references, "available_memory", lambda: None)
    assert room_for(program, INFO, 2, 1 << 18) == references.Room(("integers", "floats"), 1, True)
    assert room_for(program, INFO, 2, 1 << 10) == references.Room(("integers",), 1, False)
    with pytest.raises(SizeProblem, match="GiB of memory"):
        made(10, 1 << 16)


def test_leaves_of_tuples_are_single_elements():
    body = parse_program("program p(x: [f32]4) = (map(fun a => (a, a + 1.0), x), reduce(add, 0.0, x))").body
    x = np.arange(4, dtype=np.float32)
    values = [evaluate(leaf_at(body, path, at), {"x": x}) for path, at in (((0, 1), (2,)), ((1,), ()))]
    assert values == [3, 6]


def test_a_difference_that_takes_too_long_to_interpret_is_no_agreement():
    dot = programs.load("dot")
    hurried = Sampled(dot, specialise(dot, {"N": 1 << 14}), lambda p: cast(Any, p), seed=0, seconds=1e-9)

    def verdict(wrong: float):
        def spoil(name: str, result: np.ndarray) -> None:
            if name == "integers":
                result += wrong

        return checked(hurried, spoil)

    assert "no elements on integers" in hurried.how
    assert verdict(0).valid
    assert verdict(0).valid
    assert not (unlike := verdict(1)).valid
    assert "too long to interpret" in unlike.message
    hurried.seconds = 1.0
    assert "output is" in verdict(1).message
    assert hurried.sets["integers"].known


@pytest.mark.parametrize(
    ("body", "at", "is_known"),
    [
        ("reduce(add, 0.0, map(fun x => x / 3.0, xs))", (), True),
        ("(0.5, reduce(add, 0.0, map(fun x => x / 3.0, xs)))", (), True),
        ("map(fun x => x / 3.0, xs)", (0,), True),  # the first sample
        ("map(fun x => (x, x / 3.0), xs)", (511,), True),  # the second: the last element
        ("map(fun x => reduce(add, 0.0, map(fun y => x / y, xs)), xs)", (7,), False),
    ],
)
def test_where_results_differ_at_samples_nothing_is_interpreted_again(
    monkeypatch: pytest.MonkeyPatch, body: str, at: tuple[int, ...], is_known: bool
):
    source = parse_program(f"program p(xs: [f32]N in 1..2) where N = 512 = {body}")
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.MOST_SAMPLES", 2)
    reference = Sampled(source, specialise(source), lambda p: cast(Any, p), seed=0, seconds=30.0)
    looked: list[ir.Expr] = []
    look = reference._looked_at  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(reference, "_looked_at", lambda term, inputs: [looked.append(term), look(term, inputs)][1])

    def spoiled(name: str, result: Any, by: float) -> None:
        if name == "floats":
            leaf = result[1] if isinstance(result, tuple) else result
            leaf[at] *= np.float32(1 + by)

    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert checked(reference).valid
    assert checked(reference, lambda name, result: spoiled(name, result, 2**-23)).valid
    assert bool(looked) is not is_known
    assert not reference.interpreting
    assert not checked(reference, lambda name, result: spoiled(name, result, 0.01)).valid


SMOOTHED = "program p(xs: [f32]N) where N = 16 = reduceSeq(fun (s, x) => 0.9 * s + x, 0.0, xs)"


@pytest.mark.parametrize(("factor", "is_right"), [(1 + 1e-6, True), (1.01, False)], ids=["rounded", "wrong"])
@pytest.mark.parametrize(
    "source",
    [programs.load("horner"), parse_program(SMOOTHED)],
    ids=["k is between 0.99 and 1", "0.9 is no whole number"],
)
def test_what_is_no_whole_number_may_be_rounded_otherwise(
    monkeypatch: pytest.MonkeyPatch, source: ir.Program, factor: float, is_right: bool
):
    hurried = Sampled(source, specialise(source, {"N": 1 << 14}), lambda p: cast(Any, p), seed=0, seconds=1e-9)

    def spoil(name: str, result: np.ndarray) -> None:
        if name == "integers":
            result *= np.float32(factor)

    assert checked(hurried).valid
    assert checked(hurried, spoil).valid == is_right
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert checked(hurried, spoil).valid == is_right


def test_a_fold_without_a_bound_is_compared_at_a_small_size():
    """Its error may grow until nothing is known of it, and its length is a prime that no number of the term gives."""
    source = parse_program(
        "program h(xs: [f32]N) where N = 5003 = reduceSeq(fun (s, x) => sqrt(s * s + x * x), 0.0, xs)"
    )
    program = specialise(source, {})
    reference = reference_of(source, program, room_for(program, INFO, 1), lambda p: cast(Any, p), seconds=60.0)
    assert isinstance(reference, Sampled)
    assert "no finite bound" in reference.how
    assert checked(reference).valid

    def spoil(name: str, result: np.ndarray) -> None:
        result[...] *= 1.001 if "=" in name else 1

    assert not checked(reference, spoil).valid


@in_turn(8)
@pytest.mark.parametrize(
    ("sizes", "turns", "x", "where"),
    [
        ("where N = 53 ", "N", "x", "N = 4"),
        ("", "53", "x", "length53 = 4"),
        ("", "53", "length53", "4 turns of each loop"),  # the name that the number would have
    ],
    ids=["of a size", "of a number", "of a number that stays"],
)
def test_a_fold_whose_error_soon_has_no_bound_is_compared_after_few_steps(sizes: str, turns: str, x: str, where: str):
    """As that of what is normalised in each step: a few steps say what more cannot."""
    source = parse_program(f"""program h({x}: f32 in 0.1..1) {sizes}=
      let v = reduceSeq(
        fun (v, i) =>
          let n = reduce(add, 0.0, map(fun c => c * c * c * c, v)) in map(fun c => c * c * c * c / n + {x}, v),
        fill(2, 0.5), generate({turns}, id)) in
      log(v[0])""")
    program = specialise(source)
    reference = reference_of(source, program, room_for(program, INFO, 1), lambda p: cast(Any, p), seconds=1.0)
    assert isinstance(reference, Sampled)
    verdict = checked(reference)
    assert verdict.valid
    assert verdict.message.startswith(f"the same plan at {where}: on integers: 1 of 1 elements, whose arithmetic is")

    def spoil(name: str, result: np.ndarray) -> None:
        result[...] += 0.1 if " at " in name else 0

    assert not checked(reference, spoil).valid


def test_an_iterate_whose_error_soon_has_no_bound_is_compared_after_few_steps():
    """At small sizes: the first stage is too long for all of its bounds to be finite, after two steps already."""
    source = parse_program("""program h(X: [[f32]12]N) where N = 900 =
      let S = map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))) / N, transpose(X)), transpose(X)) in
      iterate(40, fun u =>
        let w = map(fun r => reduce(add, 0.0, map(mul, zip(r, u))), S) in
        let n = sqrt(reduce(add, 0.0, map(fun q => q * q, w))) in
        map(fun q => q / n, w), fill(12, 1.0))""")
    reference = Sampled(source, specialise(source), lambda p: cast(Any, p), seed=0, seconds=1e-9)
    verdict = checked(reference)
    assert verdict.valid
    assert "4 turns of each loop: " in verdict.message

    def spoil(name: str, result: np.ndarray) -> None:
        result[...] *= 1.5 if " at " in name else 1

    assert not checked(reference, spoil).valid


@in_turn(6)
@pytest.mark.parametrize(("factor", "is_right"), [(1 + 1e-6, True), (1.5, False)], ids=["rounded", "wrong"])
@pytest.mark.parametrize("has_small", [False, True], ids=["no small sizes", "no bound at small sizes either"])
def test_a_difference_without_a_bound_is_no_agreement(
    monkeypatch: pytest.MonkeyPatch, factor: float, is_right: bool, has_small: bool
):
    """Interpreted elements say nothing where no bound is known: then the first right kernel's result decides."""
    source = parse_program(
        "program h(xs: [f32]N) where N = 5003 = reduceSeq(fun (s, x) => sqrt(s * s + x * x), 0.0, xs)"
    )
    reference = Sampled(source, specialise(source), lambda p: cast(Any, p), seed=0, seconds=1.0)
    assert checked(reference).valid

    def spoil(name: str, result: np.ndarray) -> None:
        result[...] *= 1 if "=" in name else factor

    if has_small:
        for sizes, found in reference.small.items():
            unknown = (replace(r, bound=np.full_like(r.bound, np.inf)) for r in (found.integers, found.floats))
            reference.small[sizes] = References(found.type, *unknown)
    else:
        monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert checked(reference, spoil).valid == is_right


def test_rounding_of_long_sums_takes_results_farther():
    """Mean and variance by Welford's method, in f32 one step after the other, were off by 3 % after 2²² steps."""
    step = "fun ((k, m), x) => let k = k + 1.0 in (k, m + (x - m) / k)"
    short, long = (f"program w(xs: [f32]{n}) = reduceSeq({step}, (0.0, 0.0), xs)" for n in (1 << 12, 1 << 22))
    assert [another_order(parse_program(text).body) for text in (short, long)] == [1e-3, 2.0**-5]


@pytest.mark.parametrize(("wrong", "is_right"), [(0, True), (1, False)], ids=["right", "wrong"])
@pytest.mark.parametrize("whole", ["x", "(x, x)"], ids=["one result", "a tuple, each of whose elements counts"])
def test_without_any_bound_the_first_right_kernel_agrees_bit_for_bit(whole: str, wrong: int, is_right: bool):
    """How floats are rounded decides what whole numbers they are."""
    text = f"map(fun a => let x = to_i32(1e8 * (0.1 * a)) in {whole}, xs)"
    source = parse_program(f"program p(xs: [f32]N in 1..2) where N = 12 = {text}")
    reference = Sampled(source, specialise(source), lambda p: cast(Any, p), seed=0, seconds=1.0)

    def spoil(name: str, result: Value) -> None:
        for leaf in leaves_of(result):
            leaf[...] += wrong

    verdict = checked(reference, spoil)
    assert (verdict.valid, verdict.is_open) == (is_right, not is_right)


HALVES = """program sums(xs: [i32]1024) =
  reduceSeq(add, 0, map(fun c => reduceSeq(add, 0, c), split(512, map(fun i => i + {first}, xs))))"""


@pytest.mark.parametrize(("first", "is_right"), [(0, True), (1, False)], ids=["right", "wrong"])
def test_a_kernel_without_small_sizes_is_held_against_the_first_right_one(
    monkeypatch: pytest.MonkeyPatch, first: int, is_right: bool
):
    source = parse_program("program sums(xs: [i32]N) where N = 1024 = reduce(add, 0, xs)")
    reference = Sampled(source, specialise(source), lambda p: cast(Any, p), seed=0, seconds=0.0)
    runner = cast(Runner, Interpreter())
    references.load_references(runner, reference)
    other = parse_program(HALVES.format(first=first))
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert not reference.check(other, cast(Any, other), runner).valid  # nothing to hold it against
    monkeypatch.undo()
    naive = naive_term(reference.program)
    assert reference.check(naive, cast(Any, naive), runner).valid
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert reference.check(other, cast(Any, other), runner).valid == is_right


def test_a_component_of_which_nothing_can_be_compared_is_checked_at_small_sizes():
    """The bounds of a coupled recurrence grow with each step; the place that no element falls into is exact."""
    source = parse_program("""program p(xs: [f32]N, k: f32 in 0.01..0.05) where N = 3001 =
      let ys = map(fun (y, v) => y, scanSeq(fun ((y, v), x) => (y + v, 0.9 * v + k * (x - y)), (0.0, 0.0), xs)) in
      (reduceByIndex(add, fill(2, 0.0), map(fun x => 0, xs), map(abs, ys)), reduce(add, 0.0, ys))""")
    program = specialise(source)
    reference = reference_of(source, program, room_for(program, INFO, 1), lambda p: cast(Any, p), seconds=30.0)
    assert isinstance(reference, Sampled)


UNBOUNDED = """program p(xs: [f32]N in 1..2) where N = 12 = map(fun a => to_i32(1e8 * (0.1 * a)), xs)"""


def test_what_was_interpreted_is_not_interpreted_again_for_samples(monkeypatch: pytest.MonkeyPatch):
    source = parse_program(UNBOUNDED)
    program = specialise(source)
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.evaluated", pytest.fail)
    reference = reference_of(source, program, room_for(program, INFO, 1), lambda p: cast(Any, p), seconds=30.0)
    assert isinstance(reference, Sampled)
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.twin", lambda *_: None)
    assert checked(reference).valid
    wrong = Sampled(source, program, lambda p: cast(Any, p), seed=0, seconds=30.0, whole=reference.whole)
    assert not checked(wrong, lambda name, result: np.add(result, 1, out=result)).valid


def test_a_reference_is_interpreted_within_its_time(monkeypatch: pytest.MonkeyPatch):
    """What was expected to take less than it does becomes samples."""
    source = parse_program("program p(xs: [f32]N) where N = 200000 = reduceSeq(fun (s, x) => sin(s + x), 0.0, xs)")
    program = specialise(source)
    monkeypatch.setattr(references, "effort", lambda term: 0)
    began = time.process_time()
    reference = reference_of(source, program, room_for(program, INFO, 1), lambda p: cast(Any, p), seconds=0.02)
    assert time.process_time() - began < 1
    assert isinstance(reference, Sampled)
    assert reference.why == TOO_LONG


def test_samples_are_those_for_which_there_was_time():
    clock = iter([False, False, True])

    def meaning(term: ir.Expr, inputs: object, shared: object) -> tuple[Value, Value]:
        if next(clock):
            raise TimeProblem("over")
        return np.zeros(()), np.zeros(())

    places = [(ir.Literal(float(n), F32), np.array([n])) for n in range(3)]
    assert np.shape(evaluated(places, {}, 60.0, meaning=meaning).value) == (2,)
    clock = iter([True])
    with pytest.raises(TimeProblem):
        evaluated(places, {}, 60.0, meaning=meaning)


def test_small_sizes_that_take_too_long_are_tried_once(monkeypatch: pytest.MonkeyPatch, sampled: Sampled):
    tried: list[None] = []

    def slow(*_: object, **__: object) -> References:
        tried.append(None)
        raise TimeProblem("over")

    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.references", slow)
    reference = replace(sampled, small={})
    assert checked(reference).message.startswith("no small sizes of this plan were found")
    first = len(tried)
    assert checked(reference).valid
    assert first == len(tried) > 0


def test_a_kernel_whose_time_is_over_is_not_taken_for_one_without_small_sizes(sampled: Sampled):
    with within(0.0), pytest.raises(TimeProblem):
        checked(sampled)
    require_time()


@pytest.mark.parametrize("has_small", [False, True], ids=["no small sizes", "small sizes"])
def test_one_sample_is_interpreted_however_long_it_takes_where_nothing_else_can_be_compared(
    monkeypatch: pytest.MonkeyPatch, has_small: bool
):
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.RATE", 0.0)
    reference = Sampled(MM, specialise(MM, SIZES), lambda p: cast(Any, p), seed=0, seconds=1e-9)
    if not has_small:
        monkeypatch.setattr(Sampled, "_twin", lambda *_: None)
    assert "no elements on integers and no elements on floats" in reference.how
    for _ in range(2):
        verdict = checked(reference)
        assert verdict.valid
        assert ("of samples, 1 of 1 elements" in verdict.message) is not has_small


def test_a_lane_sees_what_another_one_interpreted_meanwhile(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lift_egraph.workbench.validation.sampled.RATE", 0.0)
    reference = Sampled(MM, specialise(MM, SIZES), lambda p: cast(Any, p), seed=0, seconds=1e-9)
    look = reference._has_late_samples  # pyright: ignore[reportPrivateUsage]
    assert [look(None), look(None), look(reference.sets[reference.timed].samples)] == [True, True, False]
