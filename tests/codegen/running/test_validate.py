"""Right results are judged valid, and results with one planted fault are not."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import parse_program, run
from lift_egraph.codegen.running.validate import References, judge, references, references_for
from lift_egraph.language import ir


def program(element: str = "x * y") -> ir.Program:
    """Sums of products of rows with a vector; `element` instead of the product."""
    return parse_program(f"""
        program mv(A: [[f32]64]8, v: [f32]64) =
          map(fun row => reduce(add, 0.0, map(fun (x, y) => {element}, zip(row, v))), A)
    """)


def made(it: ir.Program) -> tuple[References, np.ndarray, np.ndarray]:
    """The references of a program, and the results of a right kernel."""
    reference = references(it, seed=1)
    return reference, run(it, reference.integers.inputs), run(it, reference.floats.inputs)


def changed(array: np.ndarray, index: int, value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


def test_right_results():
    reference, whole, floats = made(program())
    verdict = judge(reference, whole, floats)
    assert verdict.valid
    assert verdict.bitwise
    assert 0 < verdict.max_error < verdict.error_bound < 1e-2
    assert verdict.message.startswith(
        "on integers: 8 of 8 elements equal bit for bit; on floats: 8 of 8 elements, whose"
    )


def test_one_bit_wrong_on_integers():
    reference, whole, floats = made(program())
    verdict = judge(reference, changed(whole, 3, np.nextafter(whole[3], np.float32(np.inf))), floats)
    assert not verdict.valid
    assert not verdict.bitwise
    assert "output[3] is" in verdict.message
    assert "1 of 8 elements are wrong" in verdict.message


@pytest.mark.parametrize("factor", [10, -10, 1.5])
def test_beyond_the_bound_on_floats(factor):
    reference, whole, floats = made(program())
    wrong = changed(floats, 5, reference.floats.value[5] + factor * reference.floats.bound[5])
    verdict = judge(reference, whole, wrong)
    assert not verdict.valid
    assert verdict.bitwise
    assert verdict.max_error > verdict.error_bound == reference.floats.bound[5]
    assert "output[5] is" in verdict.message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_a_number(value):
    reference, whole, floats = made(program())
    assert not judge(reference, changed(whole, 0, value), floats).valid
    verdict = judge(reference, whole, changed(floats, 0, value))
    assert not verdict.valid
    assert verdict.max_error == np.inf


def test_expected_classes_of_non_finite_values():
    it = program("x / y")
    inputs = {"A": np.ones((8, 64), np.float32), "v": np.ones(64, np.float32)}
    inputs["v"][3] = 0
    reference = references_for(it, inputs, inputs)
    right = run(it, inputs)
    assert np.isinf(right).all()
    assert judge(reference, right, right).valid
    assert not judge(reference, right, -right).valid
    assert not judge(reference, changed(right, 2, np.nan), right).valid
    assert not judge(reference, right, changed(right, 2, 1e30)).valid


def test_inexact_arithmetic_falls_back_to_the_bound():
    reference, whole, floats = made(program("x * 0.2 * y"))
    verdict = judge(reference, np.nextafter(whole, np.float32(np.inf)), floats)
    assert verdict.valid
    assert not verdict.bitwise
    assert "on integers: 8 of 8 elements, whose arithmetic is inexact, within" in verdict.message
    assert not judge(reference, changed(whole, 1, whole[1] + 0.01), floats).valid


def test_sums_too_large_to_be_exact():
    reference, whole, floats = made(program("x * y * 131073.0 * 131073.0"))
    verdict = judge(reference, whole, floats)
    assert verdict.valid
    assert not verdict.bitwise


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(7, np.float32), r"output is float32 of shape (7,), not float32 of shape (8,)"),
        (np.zeros(8), "output is float64 of shape (8,), not float32"),
        ((np.zeros(8), np.zeros(8)), "output is a tuple, not float32"),
    ],
)
def test_wrong_kind_of_output(wrong, message):
    reference, whole, _ = made(program())
    verdict = judge(reference, whole, wrong)
    assert not verdict.valid
    assert message in verdict.message


def test_pairs():
    it = parse_program("program parts(xs: [f32]4) = map(fun x => (x, to_i32(x), x < 0.0), xs)")
    inputs = {"xs": np.float32([-1, 0, 1, 2])}
    reference = references_for(it, inputs, inputs)
    first, (second, third) = run(it, inputs)
    assert (second.dtype, third.dtype) == (np.int32, np.bool_)
    assert judge(reference, (first, (second, third)), (first, (second, third))).bitwise
    verdict = judge(reference, (first, (changed(second, 3, 5), third)), (first, (second, third)))
    assert "output.1.0[3] is 5, not 2" in verdict.message
    assert not judge(reference, (first, (second, ~third)), (first, (second, third))).valid
    assert not judge(reference, (first, second), (first, (second, third))).valid


def test_elements_that_hang_on_rounding_are_named():
    it = parse_program("program buckets(xs: [f32]4) = map(fun x => to_i32(x * 0.1), xs)")
    inputs = {"xs": np.float32([10, 15, 25, 35])}
    reference = references_for(it, inputs, inputs)
    right = run(it, inputs)
    verdict = judge(reference, changed(right, 0, 0), right)
    assert verdict.valid
    assert "1 of 4 elements not compared: they have no finite error bound" in verdict.message
    nothing = {"xs": np.full(4, 10, np.float32)}
    assert not judge(references_for(it, nothing, nothing), right, right).valid


def test_empty_and_scalar_results():
    it = parse_program("program none(xs: [f64]0) = map(fun v => v + v, xs)")
    reference = references_for(it, {"xs": np.zeros(0)}, {"xs": np.zeros(0)})
    assert judge(reference, np.zeros(0), np.zeros(0)).valid
    it = parse_program("program next(i: i32) = i + 1")
    reference = references_for(it, {"i": np.int32(4)}, {"i": np.int32(5)})
    assert judge(reference, np.int32(5), np.int32(6)).valid
    assert "output is 6, not 5" in judge(reference, np.int32(6), np.int32(6)).message
