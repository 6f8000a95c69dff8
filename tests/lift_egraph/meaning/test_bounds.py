"""Every evaluation in single precision lies within the bound, and the bound says something."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lift_egraph.language import ir
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.syntax import parse_term
from lift_egraph.language.types import BOOL, F32, F64, I32, Scalar, array
from lift_egraph.meaning.bounds import BoundedDomain, evaluate_bounded
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, interpret
from lift_egraph.meaning.values import map_leaves
from tests.depth import depth
from tests.strategies import programs

X, Y = ir.Var("x", F32), ir.Var("y", F32)
ADD, MUL, MAX = (ir.Lambda(ir.PairBinder(X, Y), ir.Call(op, (X, Y))) for op in ("add", "mul", "max"))


def f32(value: float) -> ir.Literal:
    return ir.Literal(value, F32)


def xs(*sizes: int, name: str = "xs") -> ir.Input:
    return ir.Input(name, array(F32, *sizes))


def applied(op: str, *arrays: np.ndarray, scalar: Scalar = F32, offset: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """An operation on arrays; with `offset`, on arguments that carry an error from a multiplication by 1.1."""
    names = [f"a{k}" for k in range(len(arrays))]
    variables = [ir.Var(n, scalar) for n in names]
    factor = ir.Literal(1.1, scalar)
    arguments = tuple(ir.Call("mul", (v, factor)) if offset else v for v in variables)
    body: ir.Expr = ir.Call(op, arguments)
    inputs = [ir.Input(n, array(scalar, len(arrays[0]))) for n in names]
    if len(arrays) == 1:
        term = ir.Map(ir.Lambda(variables[0], body), inputs[0])
    else:
        term = ir.Map(ir.Lambda(ir.PairBinder(*variables), body), ir.Zip(*inputs))
    values = dict(zip(names, arrays, strict=True))
    value, bound = evaluate_bounded(term, values)
    single = evaluate(term, values)
    assert_within(single, value, bound)
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


@settings(max_examples=depth(150, 1000), deadline=None, suppress_health_check=list(HealthCheck))
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
        dot = ir.Reduce(ADD, f32(0.0), ir.Map(MUL, ir.Zip(xs(n, name="a"), xs(n, name="b"))))
        value, bound = evaluate_bounded(dot, {"a": a, "b": b})
        exact = math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
        assert abs(value - exact) <= 1e-3 * bound
        for _ in range(20):
            assert abs(float(reassociated_sum(a * b, rng)) - value) <= bound
        assert bound < 1e-2 * np.abs(a * b).sum()

    @pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
    def test_dot_in_any_order_is_inside(self, order):
        rng = np.random.default_rng(0)
        a, b = (rng.uniform(-1, 1, (64, 4)).astype(np.float32) for _ in range(2))
        term = parse_term("map(dot, zip(asVector(4, a), asVector(4, b)))", {"a": "[f32]256", "b": "[f32]256"})
        value, bound = evaluate_bounded(term, {"a": a.ravel(), "b": b.ravel()})
        np.testing.assert_allclose(value, (a.astype(np.float64) * b).sum(-1), rtol=1e-12)
        total = np.zeros(64, np.float32)
        for k in order:
            total = total + a[:, k] * b[:, k]
        assert_within(total, value, bound)
        assert (bound < 1e-5).all()
        whole = {"a": np.arange(256, dtype=np.float32), "b": np.ones(256, np.float32)}
        assert not evaluate_bounded(term, whole)[1].any()

    def test_contraction_is_inside(self):
        rng = np.random.default_rng(0)
        a = rng.uniform(-1, 1, (3, 500)).astype(np.float32)
        values = dict(zip("abc", a, strict=True))
        product = ir.Map(MUL, ir.Zip(xs(500, name="a"), xs(500, name="b")))
        value, bound = evaluate_bounded(ir.Map(ADD, ir.Zip(product, xs(500, name="c"))), values)
        fused = (a[0].astype(np.float64) * a[1] + a[2]).astype(np.float32)
        assert_within(fused, value, bound)
        assert bound.max() < 1e-6

    def test_small_integers_are_exact(self):
        x = np.random.default_rng(0).integers(-3, 4, 4096).astype(np.float32)
        square = ir.Map(ir.Lambda(X, ir.Call("mul", (X, X))), xs(4096))
        value, bound = evaluate_bounded(ir.Reduce(ADD, f32(0.0), square), {"xs": x})
        assert (value, bound) == ((x * x).sum(), 0)
        weighted = ir.Map(ir.Lambda(X, ir.Call("mul", (X, f32(0.25)))), xs(4096))
        assert evaluate_bounded(ir.Reduce(ADD, f32(0.0), weighted), {"xs": x})[1] == 0

    @pytest.mark.parametrize("weight", [0.2, 2.0**22])
    def test_inexact_integers_are_noticed(self, weight):
        x = np.arange(1, 101, dtype=np.float32)
        weighted = ir.Map(ir.Lambda(X, ir.Call("mul", (X, f32(weight)))), xs(100))
        assert evaluate_bounded(ir.Reduce(ADD, f32(1.0), weighted), {"xs": x})[1] > 0

    def test_overflow_in_some_order(self):
        value, bound = evaluate_bounded(ir.Reduce(ADD, f32(0.0), xs(3)), {"xs": np.float32([3e38, 3e38, -3e38])})
        assert np.isinf(bound)
        value, bound = evaluate_bounded(ir.Reduce(ADD, f32(0.0), xs(3)), {"xs": np.float32([1, np.inf, 2])})
        assert (value, bound) == (np.inf, 0)
        value, bound = evaluate_bounded(ir.Reduce(ADD, f32(0.0), xs(3)), {"xs": np.float32([1, np.nan, 2])})
        assert np.isnan(value)
        assert bound == 0

    def test_products_and_extremes(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(0.5, 2, 60).astype(np.float32)
        value, bound = evaluate_bounded(ir.Reduce(MUL, f32(1.0), xs(60)), {"xs": x})
        for _ in range(20):
            assert abs(float(np.multiply.accumulate(rng.permutation(x))[-1]) - value) <= bound
        assert bound < 1e-4 * abs(value)
        assert evaluate_bounded(ir.Reduce(MUL, f32(1.0), xs(5)), {"xs": np.arange(1, 6, dtype=np.float32)})[1] == 0
        assert evaluate_bounded(ir.Reduce(MAX, f32(-np.inf), xs(60)), {"xs": x}) == (x.max(), 0)

    def test_double_precision(self):
        x = np.random.default_rng(0).uniform(-1, 1, 1000)
        v, w = ir.Var("v", F64), ir.Var("w", F64)
        add = ir.Lambda(ir.PairBinder(v, w), ir.Call("add", (v, w)))
        value, bound = evaluate_bounded(
            ir.Reduce(add, ir.Literal(0.0, F64), ir.Input("xs", array(F64, 1000))), {"xs": x}
        )
        assert abs(value - math.fsum(x)) <= bound < 1e-9
        assert applied("mul", np.float64([3, 0.1]), np.float64([5, 0.3]), scalar=F64)[1].tolist()[0] == 0


UNARY, BINARY = (
    [op.name for op in OPERATIONS.values() if op.kind in ("arithmetic", "float") and op.arity == n] for n in (1, 2)
)


class TestOperations:
    @pytest.mark.parametrize("offset", [False, True])
    @pytest.mark.parametrize("op", UNARY)
    def test_unary(self, op, offset):
        x = np.random.default_rng(2).uniform(0.1, 5, 400).astype(np.float32)
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

    def test_division_by_something_near_zero(self):
        tiny = ir.Call("sub", (ir.Call("mul", (X, f32(1.1))), f32(3.3)))
        term = ir.Map(ir.Lambda(X, ir.Call("div", (f32(1.0), tiny))), xs(2))
        assert np.isinf(evaluate_bounded(term, {"xs": np.float32([3, 1])})[1]).tolist() == [True, False]

    def test_powers_of_negative_numbers(self):
        x = np.float32([-1.5, -0.3, 2, 0])
        assert np.isfinite(applied("pow", x, np.float32([2, 3, 2, 2]), offset=False)[1]).all()
        square = ir.Map(ir.Lambda(X, ir.Call("pow", (ir.Call("mul", (X, f32(1.1))), f32(2.0)))), xs(4))
        assert np.isfinite(evaluate_bounded(square, {"xs": x})[1]).all()

    def rounded(self) -> ir.Expr:
        return ir.Call("mul", (X, f32(0.1)))

    def bound_of(self, body: ir.Expr, *values: float) -> list[float]:
        term = ir.Map(ir.Lambda(X, body), xs(len(values)))
        return evaluate_bounded(term, {"xs": np.float32(values)})[1].tolist()

    def test_decisions_that_rounding_may_turn(self):
        edge = f32(0.3)
        assert self.bound_of(ir.Call("lt", (self.rounded(), edge)), 3, 6) == [np.inf, 0]
        assert self.bound_of(ir.Call("not", (ir.Call("lt", (self.rounded(), edge)),)), 3, 6) == [np.inf, 0]
        sure = ir.Call("gt", (X, f32(5.0)))
        assert self.bound_of(ir.Call("and", (ir.Call("lt", (self.rounded(), edge)), sure)), 3, 6) == [0, 0]
        assert self.bound_of(ir.Call("or", (ir.Call("lt", (self.rounded(), edge)), sure)), 3, 6) == [np.inf, 0]
        assert self.bound_of(ir.Call("to_i32", (self.rounded(),)), 10, 15) == [np.inf, 0]
        up, same = self.bound_of(ir.Call("floor", (self.rounded(),)), 10, 15)
        assert (up, same) == (1, 0)

    def test_whether_a_root_exists_may_hang_on_rounding(self):
        difference = ir.Call("sub", (self.rounded(), f32(0.3)))
        assert self.bound_of(ir.Call("sqrt", (difference,)), 3, -3) == [np.inf, np.inf]
        assert self.bound_of(ir.Call("sqrt", (X,)), -3) == [0]

    def test_tangent_at_its_pole(self):
        tangent = ir.Call("tan", (ir.Call("mul", (X, f32(1.1))),))
        pole, beside = self.bound_of(tangent, np.pi / 2.2, 1.3)
        assert pole == np.inf
        assert beside < 1e-4

    def test_rounding_of_an_inexact_value_that_looks_exact(self):
        one = ir.Call("max", (self.rounded(), f32(1.0)))
        assert self.bound_of(one, 1, 3)[0] == 0
        before = self.bound_of(one, 1, 3)[1]
        exact, inexact = self.bound_of(ir.Call("mul", (one, f32(3.0))), 1, 3)
        assert exact == 0
        assert inexact > 3 * before + 2.0**-24 > 2.0**-24

    def test_select_is_bounded_by_its_branches(self):
        positive = ir.Call("gt", (self.rounded(), f32(0.3)))
        jump = ir.Call("select", (positive, f32(1.0), f32(3.0)))
        assert self.bound_of(jump, 3, 6) == [2, 0]
        whole = ir.Call("select", (positive, ir.Literal(1, I32), ir.Literal(3, I32)))
        assert self.bound_of(whole, 3, 6) == [np.inf, 0]

    def test_an_index_that_rounding_may_turn(self):
        index = ir.Call("to_i32", (self.rounded(),))
        term = ir.Lookup(ir.Map(ir.Lambda(X, index), xs(2)), xs(2))
        assert evaluate_bounded(term, {"xs": np.float32([10, 15])})[1].tolist() == [np.inf, 0]

    def test_casts(self):
        i = ir.Var("i", I32)
        numbers = ir.Input("is", array(I32, 2))
        term = ir.Map(ir.Lambda(i, ir.Call("to_f32", (i,))), numbers)
        exact, rounded = evaluate_bounded(term, {"is": np.int32([2**24, 2**24 + 1])})[1]
        assert exact == 0
        assert 1 <= rounded < 2.1
        p = ir.Var("p", BOOL)
        term = ir.Map(ir.Lambda(p, ir.Call("to_f32", (p,))), ir.Input("ps", array(BOOL, 2)))
        assert evaluate_bounded(term, {"ps": np.array([True, False])})[0].tolist() == [1, 0]


def test_pairs_and_shapes():
    term = ir.Map(ir.Lambda(X, ir.MakePair(X, ir.Call("div", (X, f32(3.0))))), xs(4))
    value, bound = evaluate_bounded(term, {"xs": np.arange(4, dtype=np.float32)})
    assert map_leaves(np.shape, value) == map_leaves(np.shape, bound)
    assert not bound[0].any()
    assert bound[1][1] > 0


def test_large_programs(capsys):
    rng = np.random.default_rng(0)
    n = 512
    row, col = ir.Var("row", array(F32, n)), ir.Var("col", array(F32, n))
    dot = ir.Reduce(ADD, f32(0.0), ir.Map(MUL, ir.Zip(row, col)))
    product = ir.Map(ir.Lambda(row, ir.Map(ir.Lambda(col, dot), ir.Transpose(xs(n, n, name="B")))), xs(n, n, name="A"))
    inputs = {name: rng.uniform(-1, 1, (n, n)).astype(np.float32) for name in "AB"}
    start = time.perf_counter()
    value, bound = evaluate_bounded(product, inputs)
    with capsys.disabled():
        print(f"\nbounded matrix product 512: {time.perf_counter() - start:.2f} s", end="")
    assert_within(inputs["A"] @ inputs["B"], value, bound)
    assert bound.max() < 2e-2
