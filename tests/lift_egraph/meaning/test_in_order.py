"""The results that a program has bit for bit: as loops from left to right compute them, in the program's own types."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import evaluate, parse_program
from lift_egraph.meaning.in_order import evaluate_in_order, in_words, unlike

LENGTH = 3000  # long enough for another order
X, Y = np.random.default_rng(0).normal(size=(2, LENGTH)).astype(np.float32)


def in_order(body: str) -> tuple[np.ndarray, np.ndarray]:
    program = parse_program(f"program p(x: [f32]{LENGTH}, y: [f32]{LENGTH}) = {body}")
    value, bound = evaluate_in_order(program.body, {"x": X, "y": Y})
    assert isinstance(value, np.ndarray)
    assert isinstance(bound, np.ndarray)
    return value, bound


@pytest.mark.parametrize(
    ("body", "terms"),
    [
        ("reduce(add, 0.0, x)", X),
        ("reduce(add, 0.0, map(fun (a, b) => a * b, zip(x, y)))", X * Y),
        ("reduce(fun (acc, p) => acc + p, 0.0, map(fun (a, b) => a / b, zip(x, y)))", X / Y),
        ("at(2999, scan(add, 0.0, x))", X),
    ],
)
def test_sums_are_those_of_a_loop(body: str, terms: np.ndarray):
    total = np.float32(0)
    for term in terms:
        total = np.float32(total + term)
    value, bound = in_order(body)
    assert value.dtype == np.float32
    assert value.tobytes() == total.tobytes()
    assert bound == 0
    assert total != np.float32(terms.sum())  # else another order is not told from this one


def test_a_product_of_matrices_is_that_of_loops():
    a, b = X[:300].reshape(10, 30), Y[:300].reshape(30, 10)
    body = "map(fun r => map(fun c => reduce(add, 0.0, map(fun (u, v) => u * v, zip(r, c))), transpose(b)), a)"
    program = parse_program(f"program p(a: [[f32]30]10, b: [[f32]10]30) = {body}")
    value, _ = evaluate_in_order(program.body, {"a": a, "b": b})
    expected = np.zeros((10, 10), np.float32)
    for k in range(30):
        expected += a[:, k, None] * b[None, k]
    assert np.array_equal(np.asarray(value), expected)


def test_functions_that_only_come_near_keep_their_bounds():
    value, bound = in_order("map(fun a => exp(a), x)")
    assert (bound > 0).all()
    assert value.dtype == np.float64
    body = parse_program("program p(x: [f32]9) = map(fun a => sqrt(floor(a)) + exp(a) - pow(a, exp(a)), x)").body
    assert unlike(body) == ("exp", "pow")
    assert in_words(body).endswith("bounds only, as exp and pow do not round alike on all devices")


def test_half_precision_may_be_computed_in_single():
    body = parse_program("program p(x: [f16]9) = map(fun a => a * a, x)").body
    assert unlike(body) == ("mul",)


def test_whole_numbers_of_floats_that_are_none_are_not_known():
    program = parse_program("program p(x: [f32]3) = map(to_i32, x)")
    _, bound = evaluate_in_order(program.body, {"x": np.float32([1.5, np.nan, 1e30])})
    assert np.asarray(bound).tolist() == [0, np.inf, np.inf]


def test_whole_numbers_of_floats_are_known_though_these_are_rounded():
    program = parse_program("program p(x: [f32]3) = map(fun a => (to_i32(1e8 * (0.1 * a)), to_i64(9.3e18 * a)), x)")
    (value, wide), (bound, wider) = evaluate_in_order(program.body, {"x": np.float32([0.5, 0.7, 0.9])})
    assert np.asarray(bound).tolist() == np.asarray(wider).tolist() == [0, 0, 0]
    assert np.asarray(value).tolist() == (np.float32(1e8) * (np.float32(0.1) * np.float32([0.5, 0.7, 0.9]))).tolist()
    assert np.asarray(wide).dtype == np.int64
    _, (_, beyond) = evaluate_in_order(program.body, {"x": np.float32([0.5, 0.7, 1.0])})
    assert np.asarray(beyond)[2] == np.inf


def test_whole_numbers_are_as_ever():
    program = parse_program("program p(n: [i32]99) = reduce(add, 0, map(fun a => a * a, n))")
    n = np.random.default_rng(1).integers(-(2**31), 2**31, 99, dtype=np.int32)
    value, bound = evaluate_in_order(program.body, {"n": n})
    assert value == evaluate(program.body, {"n": n})
    assert bound == 0
