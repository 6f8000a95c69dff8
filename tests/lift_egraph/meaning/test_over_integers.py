"""Programs that add and multiply floats, over whole numbers: which they are, their degrees, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.api import evaluate, parse_program, random_inputs, run, specialise
from lift_egraph.language.types import I32, array
from lift_egraph.meaning.over_integers import (
    HIGHEST,
    Degree,
    degree_of,
    fractions_in,
    is_polynomial,
    over_integers,
    random_integers,
    reads_floats,
)

POLYNOMIAL = {
    "convolution": Degree(2, 1), "dot": Degree(2, 1), "gaussian": Degree(2, 1), "gemv": Degree(3, 1),
    "j2d5pt": Degree(2, 1), "mm": Degree(2, 1), "scal": Degree(2, 1), "spmv": Degree(2, 1), "stencil2d": Degree(2, 1),
}  # fmt: skip


def small(name: str):
    source = programs.load(name)
    return specialise(source, {size: 40 if size == "K" else 20 for size, _ in source.sizes})


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_degrees_of_the_bundled_programs(name: str):
    program = small(name)
    assert reads_floats(program)
    assert is_polynomial(program.body)
    assert degree_of(program, random_inputs(program)) == POLYNOMIAL[name]


@pytest.mark.parametrize("name", ["asum", "gradient", "kmeans", "nbody", "mss"])
def test_others_are_none(name: str):
    assert not is_polynomial(programs.load(name).body)


@pytest.mark.parametrize(
    ("element", "degree"),
    [
        ("a * a * b + 2.0", Degree(3, 2)),
        ("a * (b - a) * 0.5", Degree(3, 2)),
        ("neg(b) + to_f32(i) * 3.0", Degree(1, 1)),
        ("select(i < 3, a * a, 1.0)", Degree(2, 2)),
        ("to_f32(i)", Degree(0, 0)),
        ("reduce(mul, 1.0, fill(5, a))", Degree(5, 5)),
        ("at(0, iterate(50, map(fun v => v * v), fill(1, a)))", Degree(HIGHEST, HIGHEST)),
    ],
)
def test_degrees(element: str, degree: Degree):
    text = f"program p(x: [f32]8, y: [f32]8, n: [i32]8) = map(fun (a, (b, i)) => {element}, zip(x, zip(y, n)))"
    program = parse_program(text)
    assert is_polynomial(program.body)
    assert degree_of(program, random_inputs(program)) == degree


@pytest.mark.parametrize(
    "element", ["abs(a)", "max(a, b)", "a / b", "select(a < b, a, b)", "to_f32(to_i32(a))", "sqrt(a)"]
)
def test_what_decides_by_floats_is_no_polynomial(element: str):
    text = f"program p(x: [f32]8, y: [f32]8) = map(fun (a, b) => {element}, zip(x, y))"
    assert not is_polynomial(parse_program(text).body)


def test_values_wrap_and_fractions_are_numbers_of_their_own():
    program = parse_program("program p(x: [f32]50) = map(fun a => a * a * 0.25 - a + 3.0, x)")
    assert fractions_in(program.body) == {0.25}
    whole = over_integers(program, {0.25: 7})
    assert whole.inputs[0].type == array(I32, 50)
    inputs = random_integers(program, random_inputs(program), 0)
    x = np.asarray(inputs["x"])
    assert x.dtype == np.int32
    assert abs(x.astype(np.int64)).max() > 2**30
    assert np.array_equal(np.asarray(evaluate(whole.body, inputs)), x * x * np.int32(7) - x + np.int32(3))


def test_inputs_of_doubles_that_are_only_moved_stay():
    program = parse_program("program p(x: [f32]8, y: [f64]8, k: f64) = (map(fun v => v * v, x), gather(reverse, y))")
    assert reads_floats(program)
    assert is_polynomial(program.body)
    given = random_inputs(program)
    inputs = random_integers(program, given, 0)
    assert inputs["y"] is given["y"]
    assert inputs["k"] is given["k"]
    assert run(over_integers(program, {}), inputs)[1].dtype == np.float64
    assert degree_of(program, given) == Degree(2, 2)


def test_inputs_that_may_be_indices_stay():
    program = parse_program("program p(x: [f32]8, n: [i32]8) = lookup(n, x)")
    given = random_inputs(program)
    assert random_integers(program, given, 0)["n"] is given["n"]
