"""Sampled elements are those of the whole value, and terms are compared in whole or in part."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lift_egraph.api import Limits, Phase, evaluate, parse_program, programs, random_inputs, rules, specialise, type_of
from lift_egraph.language import ir
from lift_egraph.language.types import Array
from lift_egraph.meaning.agreement import Comparer
from lift_egraph.meaning.elements import element
from lift_egraph.meaning.workload import workload
from tests.depth import in_turn
from tests.lift_egraph.egraph.test_locate import members


@in_turn(6)
@pytest.mark.parametrize("name", ["mm", "j2d5pt", "gemv", "scal"])
def test_an_element_is_that_of_the_whole(name: str):
    program = specialise(programs.load(name), dict.fromkeys(dict(programs.load(name).sizes), 8))
    chosen = rules.algorithmic + rules.lowering
    phase = Phase("all", chosen, rules.simplification, {8: (4,)}, (4,), Limits(3, 4000))
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    assert isinstance(expected, np.ndarray)
    rng = random.Random(1)
    for _, term in members(program.body, phase, 25):
        place = tuple(rng.randrange(n) for n in expected.shape)
        for index in place:
            term = element(term, index)
        assert not isinstance(type_of(term), Array)
        assert np.isclose(evaluate(term, inputs), expected[place])  # pyright: ignore


def test_an_element_costs_no_more_than_it_must():
    text = "program p(A: [[f32]64]64) = join(map(map(fun row => map(fun x => x * 2.0, row)), split(8, transpose(A))))"
    body = parse_program(text).body
    assert workload(body) >= 4096
    assert workload(element(element(body, 10), 3)) < 10


def test_an_element_of_vectors_leaves_the_others_out():
    text = "program p(A: [[f32]64]64) = asScalar(map(vectorize(4, fun r => map(fun x => x * 2.0, r)), asVector(4, A)))"
    term = parse_program(text).body
    single = element(element(term, 9), 3)
    inputs = random_inputs(parse_program(text), 0, "integer")
    assert workload(single) < 10 < workload(term)
    assert evaluate(single, inputs) == np.asarray(evaluate(term, inputs))[9, 3]


@pytest.mark.parametrize(
    ("stages", "most"),
    [
        ("let t = map(reduce(add, 0.0), A) in let u = map(fun (a, v) => v * reduce(max, 0.0, a), zip(A, t)) in "
         "map(fun a => map(mul, zip(a, u)), A)", 600),
        ("let B = map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), A), A) in "
         "map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), A), B)", 6000),
        ("let t = map(reduce(add, 0.0), A) in let n = reduce(add, 0.0, t) in "
         "map(fun (a, v) => map(fun x => x * v - n, a), zip(A, t))", 4500),
    ],
    ids=["rows, and rows beside them", "two products", "one that all of it is read of"],
)  # fmt: skip
def test_an_element_needs_no_more_of_the_stages_before_it_than_it_reads(stages: str, most: int):
    program = parse_program(f"program p(A: [[f32]64]64) = {stages}")
    single, inputs = element(element(program.body, 5), 62), random_inputs(program, 0, "integer")
    assert workload(single) < most < workload(program.body)
    assert evaluate(single, inputs) == np.asarray(evaluate(program.body, inputs))[5, 62]


def body(text: str) -> ir.Program:
    return parse_program(f"program p(x: [f32]N, A: [[f32]N]N) where N = 4096 = {text}")


SMALL, LARGE = {"N": 16}, {"N": 4096}
DOT = "reduce(add, 0.0, map(fun (a, b) => a * b, zip({}, {})))"
PRODUCT = "map(fun row => map(fun col => " + DOT + ", transpose(A)), A)"


@in_turn(6)
@pytest.mark.parametrize(
    ("before", "after", "sizes", "equal", "how"),
    [
        ("map(abs, x)", "map(abs, map(abs, x))", SMALL, True, "the whole result"),
        ("map(abs, x)", "x", SMALL, False, "the whole result"),
        ("A", "transpose(A)", SMALL, False, "the whole result"),
        ("x", "A", SMALL, False, "type"),
        (PRODUCT.format("row", "col"), PRODUCT.format("col", "row"), LARGE, True, "6 elements"),
        (PRODUCT.format("row", "col"), PRODUCT.format("col", "col"), LARGE, False, "6 elements"),
        ("reduce(add, 0.0, join(" + PRODUCT.format("row", "col") + "))", "0.0", LARGE, None, "too much"),
    ],
)  # fmt: skip
def test_terms_are_compared(before: str, after: str, sizes: dict[str, int], equal: bool | None, how: str):
    left, right = (specialise(body(text), sizes) for text in (before, after))
    found = Comparer(left).compare(left.body, right.body)
    assert found.equal is equal, found
    assert how in found.how


def test_sums_in_another_order_are_equal_though_they_round_differently():
    program = specialise(body("map(fun row => reduce(add, 0.0, map(fun e => 0.1 * e, row)), A)"), {"N": 512})
    other = specialise(
        body(
            "map(fun row => "
            "reduce(add, 0.0, map(reduce(add, 0.0), transpose(split(32, map(fun e => 0.1 * e, row))))), A)"
        ),
        {"N": 512},
    )
    assert Comparer(program).compare(program.body, other.body).equal


@pytest.mark.parametrize("kind", ["clamp", "mirror", "wrap"])
def test_an_element_of_a_border_is_one_of_the_array(kind: str):
    padded = body(f"map(pad(2, 1, {kind}), pad(1, 2, {kind}, A))")
    special = specialise(padded, {"N": 4})
    inputs = random_inputs(special)
    whole = evaluate(special.body, inputs)
    for i, j in ((0, 0), (0, 3), (6, 6), (5, 1), (2, 4)):
        single = element(element(special.body, i), j)
        assert not any(isinstance(part, ir.Pad) for part in ir.subterms(single))
        assert evaluate(single, inputs) == whole[i, j]


def test_reductions_of_all_prefixes_take_half_the_square_of_what_they_read():
    def work(n: int, high: str) -> int:
        text = f"program p(xs: [f32]N) where N = {n} = generate(N, fun i => reduceRange(add, 0.0, 0, {high}, xs))"
        return workload(specialise(parse_program(text)).body)

    assert work(4096, "i + 1") == pytest.approx(work(4096, "4096") / 2, rel=0.01)
    assert work(4096, "i + 1") == pytest.approx(16 * work(1024, "i + 1"), rel=0.05)
