"""Choices that are a ``max`` or a ``min``, for all values; whole numbers must not wrap around."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.linear import as_extreme, by_one_condition
from lift_egraph.algebra.trials import evaluate
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program

EXTREMES = {
    "select(d > 0, d - 1, 0)": "max(d - 1, 0)",
    "select(d > 0, d - 1, d)": "max(d - 1, 0)",
    "select(d >= 1, d - 1, 0)": "max(d - 1, 0)",
    "select(0 < d, d, 0)": "max(d, 0)",
    "select(d < 9, d + 1, d)": "min(d + 1, 9)",
    "select(d >= 9, d, d + 1)": "min(9, d + 1)",
    "select(d > 1, d - 1, 0)": "max(d - 1, 0)",
    "select(x > 2, 2, select(x < 0, 0, x))": "min(max(0, x), 2)",
    "select(x < 0, 0, select(x < 2, x, 2))": "max(min(x, 2), 0)",
}
OTHERS = (
    "select(x > 0, x - 1, 0)",  # the least number less one is the largest
    "select(d > 0, d - 2, 0)",
    "select(d > 2, d - 1, 0)",
    "select(d > 0, d - 1, 1)",
    "select(x > 0, 0, select(x < 2, 2, x))",  # bounds that cross
    "select(x > 2, 3, select(x < 0, 0, x))",
    "select(x > 2, 2, select(d < 0, 0, d))",
)


def choice(text: str) -> ir.Expr:
    """A choice by a number x and one from 0 to 9, d."""
    program = parse_program(f"program p(x: i32, d: i32) = {text}")
    d = ir.Input("d", program.inputs[1].type)
    bounded = parse_program("program p(x: i32, d: i32) = min(max(d, 0), 9)").body

    def moved(part: ir.Part) -> ir.Part:
        return bounded if part == d else ir.map_parts(part, moved)

    made = moved(program.body)
    assert isinstance(made, ir.Expr)
    return made


@pytest.mark.parametrize("text", EXTREMES)
def test_a_choice_is_an_extreme_for_all_values(text: str) -> None:
    given = choice(text)
    made = as_extreme(given)
    assert made == as_extreme(choice(EXTREMES[text]))
    ends = np.array([*range(-12, 13), -(2**31), 1 - 2**31, 2**31 - 2, 2**31 - 1], np.int32)
    xs, ds = (grid.ravel() for grid in np.meshgrid(ends, ends))
    scope: dict[ir.Expr, np.ndarray] = {
        v: ds if v.name == "d" else xs for v in ir.subterms(given) if isinstance(v, ir.Input)
    }  # fmt: skip
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(evaluate(given, scope), evaluate(made, scope))


@pytest.mark.parametrize("text", OTHERS)
def test_others_stay_choices(text: str) -> None:
    made = as_extreme(choice(text))
    assert isinstance(made, ir.Call)
    assert made.op == "select"


def test_a_choice_by_several_conditions_is_one_by_one() -> None:
    x = ir.Input("x", parse_program("program p(x: i32) = x").inputs[0].type)

    def is_free(part: ir.Expr) -> bool:
        return x not in ir.subterms(part)

    for text, wanted in (
        ("select(d > 0 && x > 1 && d > 3, 7, d)", "select(d > 0 && d > 3, select(x > 1, 7, d), d)"),
        ("select(x > 1 || d > 0, 7, d)", "select(d > 0, 7, select(x > 1, 7, d))"),
    ):
        assert by_one_condition(choice(text), is_free) == choice(wanted)
    assert by_one_condition(choice("select(x > 1 && x < 5, 7, d)"), is_free) == choice("select(x > 1 && x < 5, 7, d)")
