"""Laws of operators: found where they hold, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.algebra import laws
from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.normal_forms import equal_over
from lift_egraph.algebra.orders import equal_in_all_orders
from lift_egraph.algebra.semirings import SEMIRINGS
from lift_egraph.algebra.trials import counterexample, evaluate
from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F32, I32, Scalar

X, Y, Z = (ir.Var(name, F32) for name in "xyz")
PAIR, FOUR = "(f32, f32)", "(f32, f32, f32, f32)"
FIRST_LEAST = "fun ((a, i), (b, j)) => select(a <= b, (a, i), (b, j))"

#  operator, type of its elements, associative, commutative, idempotent
OPERATORS = {
    "larger by select": ("fun (a, b) => select(a > b, a, b)", "f32", True, True, True),
    "smaller by select": ("fun (a, b) => select(b < a, b, a)", "i32", True, True, True),
    "sum backwards": ("fun (a, b) => b + a", "f32", True, True, False),
    "the first": ("fun (a, b) => a", "f32", True, False, True),
    "the last": ("fun (a, b) => b", "(f32, i32)", True, False, True),
    "difference": ("fun (a, b) => a - b", "f32", False, False, False),
    "mean of two": ("fun (a, b) => (a + b) * 0.5", "f32", False, True, True),
    "sum and product": ("fun (a, b) => a + b + a * b", "f32", True, True, False),
    "sum less product": ("fun (a, b) => a - b * a", "f32", False, False, False),
    "sum of absolutes": ("fun (a, b) => abs(a) + abs(b)", "f32", False, True, False),
    "lexicographic minimum": ("fun (p, q) => select(p < q, p, q)", "(i32, f32)", True, True, True),
    "first place of the least": (FIRST_LEAST, "(f32, i32)", True, False, True),
    "last place of the least": ("fun ((a, i), (b, j)) => select(a < b, (a, i), (b, j))", PAIR, True, False, True),
    "place of the other": ("fun ((a, i), (b, j)) => select(a < b, (a, j), (b, i))", PAIR, False, False, True),
    "two by two matrices": (
        "fun ((a, b, c, d), (e, f, g, h)) => (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)",
        FOUR, True, False, False,
    ),
    "two by two matrices, one index wrong": (
        "fun ((a, b, c, d), (e, f, g, h)) => (a * e + b * g, a * f + b * h, c * e + d * g, c * g + d * h)",
        FOUR, False, False, False,
    ),
    "complex product": ("fun ((a, b), (c, d)) => (a * c - b * d, a * d + b * c)", PAIR, True, True, False),
    "complex product, wrong": ("fun ((a, b), (c, d)) => (a * c - b * d, a * d - b * c)", PAIR, False, False, False),
    "affine maps": ("fun ((a, b), (c, d)) => (a * c, b * c + d)", PAIR, True, False, False),
    "affine maps on whole numbers": ("fun ((a, b), (c, d)) => (a * c, b * c + d)", "(i32, i32)", True, False, False),
    "affine maps of max and +": ("fun ((a, b), (c, d)) => (a + c, max(b + c, d))", PAIR, True, False, False),
    "such that wrap": ("fun ((a, b), (c, d)) => (a + c, max(b + c, d))", "(i32, i32)", False, False, False),
    "clamps": ("fun ((a, b), (c, d)) => (min(max(a, c), d), min(max(b, c), d))", PAIR, True, False, False),
    "sum where a flag is set": (
        "fun ((f, a), (g, b)) => (f || g, select(g, b, a + b))", "(bool, f32)", True, False, False,
    ),
    "exclusive or": ("fun (a, b) => select(a, not(b), b)", "bool", True, True, False),
    "implication": ("fun (a, b) => not(a) || b", "bool", False, False, False),
    "quotient": ("fun (a, b) => a / b", "f32", False, False, False),
    "saturating sum": ("fun (a, b) => min(a + b, 100.0)", "f32", False, True, False),
    "sum and largest": ("fun ((a, b), (c, d)) => (a + c, max(b, d))", "(i32, f32)", True, True, False),
    "let": ("fun (a, b) => let c = b in c + a", "f32", True, True, False),
}  # fmt: skip


def operator(text: str, t: str) -> ir.Function:
    body = parse_program(f"program p(xs: [{t}]8, z: {t}) = reduce({text}, z, xs)").body
    assert isinstance(body, ir.Reduce)
    return body.operator


@pytest.mark.parametrize("name", OPERATORS)
def test_laws_of_operators(name):
    text, t, associative, commutative, idempotent = OPERATORS[name]
    op = operator(text, t)
    found = laws.associative(op), laws.commutative(op), laws.idempotent(op)
    assert tuple(law is not None for law in found) == (associative, commutative, idempotent)


@pytest.mark.parametrize(
    ("text", "t", "operation"),
    [
        ("fun (a, b) => b + a", "f32", "add"),
        ("fun (a, b) => select(a < b, b, a)", "f32", "max"),
        ("fun (a, b) => select(a < b, a, b)", "i32", "min"),
        ("fun (a, b) => not(not(a) || not(b))", "bool", "and"),
        ("fun (a, b) => a - b", "f32", None),
        ("fun (a, b) => select(a < 1.0, b, a)", "f32", None),
    ],
)
def test_operations_in_other_words(text, t, operation):
    found = laws.built_in(operator(text, t))
    assert (found and found[0]) == operation


def value(text: str, t: str) -> ir.Expr:
    return parse_program(f"program p(xs: [{t}]8) = reduce(fun (a, b) => a, {text}, xs)").body.initial


@pytest.mark.parametrize(
    ("name", "start", "holds"),
    [
        ("affine maps", "(1.0, 0.0)", True),
        ("affine maps", "(0.0, 1.0)", False),
        ("complex product", "(1.0, 0.0)", True),
        ("larger by select", "3.0", True),  # counting it again changes nothing
        ("sum backwards", "3.0", False),
        ("first place of the least", "(inf, 0)", True),
        ("last place of the least", "(1.0, 0.0)", False),  # it would hide an equal one
        ("affine maps of max and +", "(0.0, -inf)", True),
        ("clamps", "(-inf, inf)", True),
        ("sum and product", "0.0", True),
        ("two by two matrices", "(1.0, 0.0, 0.0, 1.0)", True),
    ],
)
def test_what_a_reduction_may_begin_with_again(name, start, holds):
    text, t, *_ = OPERATORS[name]
    assert (laws.neutral(operator(text, t), value(start, t)) is not None) == holds


def test_what_annihilates_and_what_distributes():
    times, plus = operator("fun (a, b) => a + b", "f32"), operator("fun (a, b) => max(a, b)", "f32")
    assert laws.distributes(times, plus)
    assert not laws.distributes(plus, times)
    assert laws.annihilating(times, value("-inf", "f32"))
    assert not laws.annihilating(times, value("0.0", "f32"))
    both = operator("fun (a, b) => a * b", "i32"), operator("fun (a, b) => a + b", "i32")
    assert laws.distributes(*both)


def test_a_counterexample_to_associativity_is_one():
    found = laws.against_associativity(operator("fun (a, b) => a - b", "f32"))
    assert found is not None
    given = dict(found.values)
    a, b, c = (given[name] for name in "abc")
    assert (a - b) - c == found.left != found.right == a - (b - c)


@pytest.mark.parametrize(("semiring", "t"), [(s, Scalar(t)) for s in SEMIRINGS for t in s.types], ids=str)
def test_the_semirings_are_semirings(semiring, t):
    generator = np.random.default_rng(0)
    dtype = NUMPY_TYPES[t.name]
    a, b, c = (ir.Var(name, t) for name in "abc")
    drawn = {v: generator.integers(0, 2 if t.name == "bool" else 9, 200).astype(dtype) for v in (a, b, c)}
    plus, times = (lambda x, y, op=op: ir.Call(op, (x, y)) for op in (semiring.plus, semiring.times))
    zero, one = semiring.zero(t), semiring.one(t)
    for left, right in (
        (plus(a, b), plus(b, a)),
        (plus(plus(a, b), c), plus(a, plus(b, c))),
        (times(times(a, b), c), times(a, times(b, c))),
        (times(a, b), times(b, a)),
        (times(a, plus(b, c)), plus(times(a, b), times(a, c))),
        (plus(zero, a), a),
        (times(one, a), a),
        (times(zero, a), zero),
    ):
        assert np.array_equal(*np.broadcast_arrays(evaluate(left, drawn), evaluate(right, drawn)))


def expressions(t: Scalar, operations: tuple[str, ...]):
    leaves = st.sampled_from([*(ir.Var(name, t) for name in "xyz"), ir.Literal(1, t), ir.Literal(2, t)])
    return st.recursive(
        leaves,
        lambda inner: st.builds(lambda op, a, b: ir.Call(op, (a, b)), st.sampled_from(operations), inner, inner),
        max_leaves=6,
    )


@given(expressions(I32, ("add", "mul", "sub")), expressions(I32, ("add", "mul", "sub")))
def test_equal_polynomials_are_equal(left, right):
    if equal_over(SEMIRINGS[0], I32, left, right):
        assert counterexample([left], [right]) is None


@given(expressions(F32, ("max", "add")), expressions(F32, ("max", "add")))
def test_equal_polynomials_over_max_and_sum_are_equal(left, right):
    if equal_over(SEMIRINGS[1], F32, left, right):
        assert counterexample([left], [right]) is None


@given(expressions(F32, ("max", "min")), expressions(F32, ("max", "min")))
def test_all_orders_decide_what_chooses(left, right):
    decided = equal_in_all_orders([left], [right])
    assert decided is not None
    assert decided == (counterexample([left], [right]) is None)  # 256 draws of nine values meet all orders of three


def test_orders_beside_numbers_and_infinity():
    least = ir.Call("min", (X, ir.Literal(float("inf"), F32)))
    assert equal_in_all_orders([least], [X])
    assert not equal_in_all_orders([ir.Call("min", (X, ir.Literal(3.0, F32)))], [X])
    assert equal_in_all_orders([X + Y], [Y + X]) is None


def test_conditions_are_decided_both_ways():
    c = X > Y
    assert equal_over(SEMIRINGS[0], F32, ir.Call("select", (c, Z, Z)), Z)
    assert equal_over(SEMIRINGS[0], F32, ir.Call("select", (c, X + Z, Y + Z)), Z + ir.Call("select", (c, X, Y)))
    assert not equal_over(SEMIRINGS[0], F32, ir.Call("select", (c, X, Y)), ir.Call("select", (c, Y, X)))


def test_what_changes_nothing_behind_need_not_be_neutral_in_front():
    text = (
        "program p(xs: [(f32, i32)]N) = scan(fun ((a, i), (b, j)) => if b > a then (b, j) else (a, i), (-inf, 0), xs)"
    )
    largest = parse_program(text).body
    assert isinstance(largest, ir.Scan)
    assert isinstance(largest.operator, ir.Lambda)
    assert laws.right_identity(largest.operator, largest.initial)
    (a, i), (b, j) = (
        ir.bound_variables(part) for part in (largest.operator.binder.first, largest.operator.binder.second)
    )  # pyright: ignore
    exchanged = ir.Lambda(ir.PairBinder(ir.PairBinder(b, j), ir.PairBinder(a, i)), largest.operator.body)
    assert laws.right_identity(exchanged, largest.initial) is None  # of -inf, the place would be 0


def test_components_that_have_nothing_in_common_are_proved_apart():
    box = ", ".join(f"select({n}1 {'<' if i % 2 else '>'} {n}0, {n}1, {n}0)" for i, n in enumerate("abcdef"))
    first, second = (", ".join(f"{n}{k}" for n in "abcdef") for k in (0, 1))
    t = " , ".join(["f32"] * 6)
    fold = parse_program(f"program p(xs: [({t})]N) = reduce(fun (({first}), ({second})) => ({box}), xs[0], xs)").body
    assert isinstance(fold, ir.Reduce)
    assert laws.associative(fold.operator) == "the same for all orders of the values"


def test_components_that_are_no_polynomials_are_proved_beside_those_that_are():
    text = "program p(xs: [(i32, bool)]N) = scanSeq(fun ((s, q), (x, b)) => (s + x, q != b), (3, true), xs)"
    fold = parse_program(text).body
    assert isinstance(fold, ir.ScanSeq)
    found = action_of(fold.operator)
    assert isinstance(found, Action)
    assert laws.right_identity(found.operator, found.one) == (
        "the same polynomials over (+, ·), else the same in all cases of their conditions"
    )
