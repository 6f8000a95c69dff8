"""Every evaluation in single precision lies within the bound, and the bound says something."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.meaning.bounds import BoundedDomain, evaluate_bounded
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, interpret
from lift_egraph.meaning.values import map_leaves
from tests.depth import depth
from tests.lift_egraph.meaning.terms import parsed
from tests.strategies import programs

DOT = "reduce(add, 0.0, map(mul, zip(a, b)))"


def bounded(text: str, **values: np.ndarray):
    """What a text's term is worth, and the bound on its error."""
    return evaluate_bounded(parsed(text, values), values)


def applied(op: str, *arrays: np.ndarray, offset: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """An operation on arrays; with `offset`, on arguments that carry an error from a multiplication by 1.1."""
    values = dict(zip("xy", arrays, strict=False))
    arguments = ", ".join(f"{name} * 1.1" if offset else name for name in values)
    text = (
        f"map(fun x => {op}({arguments}), x)"
        if len(arrays) == 1
        else f"map(fun (x, y) => {op}({arguments}), zip(x, y))"
    )
    term = parsed(text, values)
    value, bound = evaluate_bounded(term, values)
    assert_within(evaluate(term, values), value, bound)
    return value, bound


def assert_within(single: np.ndarray, value: np.ndarray, bound: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(single, np.float64) - value)
    same = (single == value) | (np.isnan(single) & np.isnan(value))
    assert np.all(same | (difference <= bound) | np.isinf(bound))


def reassociated_sum(terms: np.ndarray, rng: np.random.Generator) -> np.float32:
    """The sum in single precision, of random pairs of partial sums."""
    partial = terms.astype(np.float32)
    while len(partial) > 1:
        partial = rng.permutation(partial)
        pairs = rng.integers(1, len(partial) // 2 + 1)
        partial = np.concatenate([partial[: 2 * pairs : 2] + partial[1 : 2 * pairs : 2], partial[2 * pairs :]])
    return partial[0]


@settings(max_examples=depth(75, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(low_level=True, whole=True), st.booleans(), st.integers(0, 1000), st.sampled_from((1, 1 << 26)))
def test_random_programs(program, whole, seed, budget):
    inputs = random_inputs(program, seed, "integer" if whole else "float")
    single = interpret(program.body, inputs, {}, Plain(), budget)
    bounded = interpret(program.body, inputs, {}, BoundedDomain(), budget)

    def compare(one, other):
        if isinstance(one, tuple):
            compare(one[0], other[0])
            compare(one[1], other[1])
        else:
            error = np.zeros(one.shape) if other.error is None else other.error
            assert not whole or not error.any()
            assert_within(one, other.value, error)

    compare(single, bounded)


class TestSums:
    @pytest.mark.parametrize("n", [1, 2, 3, 31, 257, 4096])
    def test_any_order_is_inside_and_the_bound_is_not_vacuous(self, n):
        rng = np.random.default_rng(n)
        a, b = (rng.uniform(-1, 1, n).astype(np.float32) for _ in range(2))
        value, bound = bounded(DOT, a=a, b=b)
        exact = math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
        assert abs(value - exact) <= 1e-3 * bound
        for _ in range(20):
            assert abs(float(reassociated_sum(a * b, rng)) - value) <= bound
        assert bound < 1e-2 * np.abs(a * b).sum()

    @pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
    def test_dot_in_any_order_is_inside(self, order):
        rng = np.random.default_rng(0)
        a, b = (rng.uniform(-1, 1, (64, 4)).astype(np.float32) for _ in range(2))
        text = "map(dot, zip(asVector(4, a), asVector(4, b)))"
        value, bound = bounded(text, a=a.ravel(), b=b.ravel())
        np.testing.assert_allclose(value, (a.astype(np.float64) * b).sum(-1), rtol=1e-12)
        total = np.zeros(64, np.float32)
        for k in order:
            total = total + a[:, k] * b[:, k]
        assert_within(total, value, bound)
        assert (bound < 1e-5).all()
        assert not bounded(text, a=np.arange(256, dtype=np.float32), b=np.ones(256, np.float32))[1].any()

    def test_contraction_is_inside(self):
        a, b, c = np.random.default_rng(0).uniform(-1, 1, (3, 500)).astype(np.float32)
        value, bound = bounded("map(add, zip(map(mul, zip(a, b)), c))", a=a, b=b, c=c)
        assert_within((a.astype(np.float64) * b + c).astype(np.float32), value, bound)
        assert bound.max() < 1e-6

    def test_what_has_no_bound_has_none_after_a_product_with_zero(self):
        rows, unknown = np.eye(64, dtype=np.float32), "map(fun b => 1.0 / (1.1 * b - 0.11), bs)"
        text = f"map(fun r => reduce(add, 0.0, map(mul, zip(r, {unknown}))), rows)"
        _, bound = bounded(text, rows=rows, bs=np.full(64, 0.1, np.float32))
        assert np.isposinf(bound).all()

    def test_small_integers_are_exact(self):
        x = np.random.default_rng(0).integers(-3, 4, 4096).astype(np.float32)
        assert bounded("reduce(add, 0.0, map(fun x => x * x, xs))", xs=x) == ((x * x).sum(), 0)
        assert bounded("reduce(add, 0.0, map(fun x => x * 0.25, xs))", xs=x)[1] == 0

    @pytest.mark.parametrize("weight", [0.2, 2.0**22])
    def test_inexact_integers_are_noticed(self, weight):
        text = f"reduce(add, 1.0, map(fun x => x * {weight}, xs))"
        assert bounded(text, xs=np.arange(1, 101, dtype=np.float32))[1] > 0

    def test_overflow_in_some_order(self):
        text = "reduce(add, 0.0, xs)"
        assert np.isinf(bounded(text, xs=np.float32([3e38, 3e38, -3e38]))[1])
        assert bounded(text, xs=np.float32([1, np.inf, 2])) == (np.inf, 0)
        value, bound = bounded(text, xs=np.float32([1, np.nan, 2]))
        assert np.isnan(value)
        assert bound == 0

    def test_products_and_extremes(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(0.5, 2, 60).astype(np.float32)
        value, bound = bounded("reduce(mul, 1.0, xs)", xs=x)
        for _ in range(20):
            assert abs(float(np.multiply.accumulate(rng.permutation(x))[-1]) - value) <= bound
        assert bound < 1e-4 * abs(value)
        assert bounded("reduce(mul, 1.0, xs)", xs=np.arange(1, 6, dtype=np.float32))[1] == 0
        assert bounded("reduce(max, -inf, xs)", xs=x) == (x.max(), 0)

    def test_double_precision(self):
        x = np.random.default_rng(0).uniform(-1, 1, 1000)
        value, bound = bounded("reduce(add, 0.0f64, xs)", xs=x)
        assert abs(value - math.fsum(x)) <= bound < 1e-9
        assert applied("mul", np.float64([3, 0.1]), np.float64([5, 0.3]))[1].tolist()[0] == 0


UNARY, BINARY = (
    [op.name for op in OPERATIONS.values() if op.kind in ("arithmetic", "float") and op.arity == n] for n in (1, 2)
)


class TestOperations:
    @pytest.mark.parametrize("offset", [False, True])
    @pytest.mark.parametrize("op", UNARY)
    def test_unary(self, op, offset):
        high = 0.9 if op in ("asin", "acos") else 5
        x = np.random.default_rng(2).uniform(0.1, high, 400).astype(np.float32)
        value, bound = applied(op, x, offset=offset)
        finite = np.isfinite(bound)
        assert finite.mean() > 0.95
        if op not in ("floor", "ceil"):
            assert np.median(bound[finite] / (np.abs(value[finite]) + 0.01)) < 1e-5

    @pytest.mark.parametrize("offset", [False, True])
    @pytest.mark.parametrize("op", BINARY)
    def test_binary(self, op, offset):
        rng = np.random.default_rng(3)
        a, b = (rng.uniform(0.2, 3, 400).astype(np.float32) for _ in range(2))
        value, bound = applied(op, a, b, offset=offset)
        assert np.median(bound / (np.abs(value) + 0.01)) < 1e-4

    @pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max"])
    def test_special_values(self, op):
        special = np.float32([0, -0.0, 1, -2, 3e38, -3e38, 1e-40, np.inf, -np.inf, np.nan])
        a, b = (g.ravel() for g in np.meshgrid(special, special))
        _, bound = applied(op, a, b)
        assert np.isfinite(bound).mean() > 0.8
        applied(op, a, b, offset=True)

    @pytest.mark.parametrize("op", UNARY)
    def test_special_arguments(self, op):
        special = np.float32([0, -0.0, 1, -2, 3e38, -3e38, 1e-40, 100, -100, np.inf, -np.inf, np.nan])
        applied(op, special)
        applied(op, special, offset=True)

    def bound_of(self, body: str, *values: float) -> list[float]:
        return bounded(f"map(fun x => {body}, xs)", xs=np.float32(values))[1].tolist()

    def test_angles_near_where_they_jump(self):
        """And near 0, where any angle is near."""
        found = self.bound_of("atan2(x * 1.1 - 3.3, -1.0)", 3, 1) + self.bound_of("atan2(x * 1.1 - 3.3, 1.0)", 3)
        assert np.isinf(found).tolist() == [True, False, False]
        assert np.isinf(self.bound_of("atan2(x * 1.1 - 3.3, x * 1.1 - 3.3)", 3, 1)).tolist() == [True, False]

    def test_inverse_functions_near_the_ends_of_their_domains(self):
        assert np.isfinite(self.bound_of("asin(x * 0.3)", 3, 1, 3.4)).tolist() == [True, True, False]

    def test_division_by_something_near_zero(self):
        assert np.isinf(self.bound_of("1.0 / (x * 1.1 - 3.3)", 3, 1)).tolist() == [True, False]

    def test_powers_of_negative_numbers(self):
        x = np.float32([-1.5, -0.3, 2, 0])
        assert np.isfinite(applied("pow", x, np.float32([2, 3, 2, 2]))[1]).all()
        assert np.isfinite(self.bound_of("pow(x * 1.1, 2.0)", *x)).all()

    @pytest.mark.parametrize(
        ("body", "values", "bounds"),
        [
            ("x * 0.1 < 0.3", (3, 6), [np.inf, 0]),
            ("not(x * 0.1 < 0.3)", (3, 6), [np.inf, 0]),
            ("x * 0.1 < 0.3 && x > 5.0", (3, 6), [0, 0]),
            ("x * 0.1 < 0.3 || x > 5.0", (3, 6), [np.inf, 0]),
            ("to_i32(x * 0.1)", (10, 15), [np.inf, 0]),
            ("floor(x * 0.1)", (10, 15), [1, 0]),
            ("sqrt(x * 0.1 - 0.3)", (3, -3), [np.inf, np.inf]),  # whether there is a root
            ("sqrt(x)", (-3,), [0]),
            ("select(x * 0.1 > 0.3, 1.0, 3.0)", (3, 6), [2, 0]),  # bounded by its branches
            ("select(x * 0.1 > 0.3, 1, 3)", (3, 6), [np.inf, 0]),
        ],
    )
    def test_decisions_that_rounding_may_turn(self, body, values, bounds):
        assert self.bound_of(body, *values) == bounds

    def test_tangent_at_its_pole(self):
        pole, beside = self.bound_of("tan(x * 1.1)", np.pi / 2.2, 1.3)
        assert pole == np.inf
        assert beside < 1e-4

    def test_rounding_of_an_inexact_value_that_looks_exact(self):
        first, before = self.bound_of("max(x * 0.1, 1.0)", 1, 3)
        assert first == 0
        exact, inexact = self.bound_of("max(x * 0.1, 1.0) * 3.0", 1, 3)
        assert exact == 0
        assert inexact > 3 * before + 2.0**-24 > 2.0**-24

    def test_an_index_that_rounding_may_turn(self):
        _, bound = bounded("lookup(map(fun x => to_i32(x * 0.1), xs), xs)", xs=np.float32([10, 15]))
        assert bound.tolist() == [np.inf, 0]

    def test_casts(self):
        exact, rounded = bounded("map(to_f32, numbers)", numbers=np.int32([2**24, 2**24 + 1]))[1]
        assert exact == 0
        assert 1 <= rounded < 2.1
        assert bounded("map(to_f32, ps)", ps=np.array([True, False]))[0].tolist() == [1, 0]


def test_a_quotient_of_zero_is_zero():
    """What follows a histogram: frequencies, some of them 0, and their logarithm where they are not."""
    counts = np.array([0, 3, 4], np.int32)
    entropy = "map(fun q => select(q > 0.0, q * log(q), 0.0), map(fun c => to_f32(c) / 7.0, counts))"
    _, bound = bounded(entropy, counts=counts)
    assert bound[0] == 0
    assert bound[1:].min() > 0
    assert bound[1:].max() < 1e-6
    _, bound = bounded("map(fun c => 0.0 / (to_f32(c) - 0.1 * 30.0), counts)", counts=counts)
    assert bound[0] == 0
    assert np.isinf(bound[1])  # its divisor may be 0


def test_pairs_and_shapes():
    value, bound = bounded("map(fun x => (x, x / 3.0), xs)", xs=np.arange(4, dtype=np.float32))
    assert map_leaves(np.shape, value) == map_leaves(np.shape, bound)
    assert not bound[0].any()
    assert bound[1][1] > 0


def test_large_programs(capsys):
    rng = np.random.default_rng(0)
    inputs = {name: rng.uniform(-1, 1, (512, 512)).astype(np.float32) for name in "AB"}
    product = f"map(fun a => map(fun b => {DOT}, transpose(B)), A)"
    start = time.perf_counter()
    value, bound = bounded(product, **inputs)
    with capsys.disabled():
        print(f"\nbounded matrix product 512: {time.perf_counter() - start:.2f} s", end="")
    assert_within(inputs["A"] @ inputs["B"], value, bound)
    assert bound.max() < 2e-2
