"""Intervals of floats hold whatever comes out of any operation on numbers in them: rounded, fused, or with an error."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.algebra.bounded import bounds
from lift_egraph.algebra.floats import of_cast, of_floats
from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import F16, F32, F64, Scalar

TINY = float(np.finfo(np.float32).smallest_subnormal)
ENDS = (0.0, -0.0, TINY, -TINY, 2.0**-126, 1.0, -1.0, 0.1, 0.7, 1 / 3, 3.0, -9.0, 1e30, -1e30, 3e38, inf, -inf)
TYPES = (F16, F32, F64)
BINARY = ("add", "sub", "mul", "div", "min", "max", "pow")
UNARY = ("neg", "abs", "floor", "ceil", "sqrt", "exp", "log", "tanh", "erf", "atan", "sin", "cos", "rsqrt")


def rounded(t: Scalar, number: float) -> float:
    with np.errstate(all="ignore"):
        return float(NUMPY_TYPES[t.name](number))


def some(t: Scalar) -> st.SearchStrategy[float]:
    own = st.floats(-100, 100) | st.sampled_from(ENDS)
    return own.map(lambda number: rounded(t, number))


@st.composite
def interval_and_number(draw: st.DrawFn, t: Scalar) -> tuple[tuple[float, float], float]:
    """An interval, and a number in it, often an end."""
    low, high = sorted((draw(some(t)), draw(some(t))))
    inside = draw(some(t))
    return (low, high), draw(st.sampled_from((low, high, min(max(inside, low), high))))


def holds(interval: tuple[float, float], number: float) -> bool:
    return number != number or interval[0] <= number <= interval[1]


@given(st.data())
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("op", BINARY)
def test_results_of_two_numbers_are_between(op: str, t: Scalar, data: st.DataObject) -> None:
    (one, a), (other, b) = (data.draw(interval_and_number(t)) for _ in range(2))
    found = of_floats(op, t, [one, other]) or (-inf, inf)
    of = NUMPY_TYPES[t.name]
    with np.errstate(all="ignore"):
        assert holds(found, float(OPERATIONS[op].meaning(of(a), of(b))))
    if op in ("add", "sub", "mul") and inf not in (abs(a), abs(b)):
        x, y = Fraction(a), Fraction(b)
        exact = {"add": x + y, "sub": x - y, "mul": x * y}[op]
        assert found[0] <= exact <= found[1]


@given(st.data())
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("op", UNARY)
def test_results_of_one_number_are_between(op: str, t: Scalar, data: st.DataObject) -> None:
    own, a = data.draw(interval_and_number(t))
    found = of_floats(op, t, [own]) or (-inf, inf)
    with np.errstate(all="ignore"):
        assert holds(found, float(OPERATIONS[op].meaning(NUMPY_TYPES[t.name](a))))


@given(st.data())
def test_casts_are_between(data: st.DataObject) -> None:
    own, a = data.draw(interval_and_number(F64))
    assert holds(of_cast(F32, own), rounded(F32, a))
    assert holds(of_cast(F16, own), rounded(F16, a))


@pytest.mark.parametrize("op", BINARY[:3])
def test_ends_that_are_rounded_to_the_nearest_do_not_hold_what_is_fused(op: str) -> None:
    """The twin of the mistake: a product that is not rounded is beyond its rounded end."""
    third = np.float32(1 / 3)
    found = of_floats(op, F32, [(third, third), (0.1, 0.1)])
    assert found is not None
    assert found[0] < found[1] == np.nextafter(np.float32(found[0]), np.float32(inf))


def test_what_is_exact_stays_so() -> None:
    unit = (0.0, 1.0)
    assert of_floats("mul", F32, [unit, unit]) == unit
    assert of_floats("sub", F32, [(1.0, 1.0), unit]) == unit
    assert of_floats("mul", F32, [(-1.0, 1.0), (-1.0, 1.0)]) == (-1.0, 1.0)
    assert of_floats("mul", F32, [(0.0, 0.5), (0.0, 2.0)]) == unit


def test_numbers_that_are_not_normal_may_count_as_zero() -> None:
    assert of_floats("div", F32, [(1.0, 1.0), (TINY, 1.0)]) is None
    assert of_floats("log", F32, [(TINY, 1.0)]) == (-inf, 0.0)
    assert of_floats("add", F32, [(TINY, 1.0), (0.0, 0.0)]) == (0.0, 1.0)


def test_choices_hold_their_conditions() -> None:
    x = ir.Var("x", F32)
    chosen = ir.Call("select", (x > 1.0, ir.Literal(1.0, F32), x))
    assert bounds(chosen) == (-inf, 1.0)
    assert bounds(ir.Call("select", (x < 0.0, -x, x))) == (0.0, inf)
    never = ir.Call("select", (ir.Call("abs", (x,)) >= 0.0, ir.Literal(1.0, F32), ir.Literal(5.0, F32)))
    assert bounds(never) == (1.0, 5.0), "a NaN is not at least 0"


def test_literals_are_rounded_to_their_type() -> None:
    tenth = float(np.float32(0.1))
    assert bounds(ir.Literal(0.1, F32)) == (tenth, tenth) != (0.1, 0.1)
    assert bounds(ir.Literal(0.1, F64)) == (0.1, 0.1) != (nextafter(0.1, 1), 0.1)
