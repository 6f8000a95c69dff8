"""Folds as reductions by associative operators: which are, what they give, and why others are not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.chunked import in_chunks
from lift_egraph.algebra.actions import Action, Refusal, action_of
from lift_egraph.algebra.expressions import right_nested
from lift_egraph.algebra.laws import (
    COMPOSED,
    FRACTIONS,
    against_associativity,
    associative,
    commutative,
    neutral,
    right_identity,
)
from lift_egraph.egraph.operators import facts_of, uses_in
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals, with_actions
from tests.depth import in_turn

#  operator, initial value, inputs besides xs, the array, how many entries its matrices keep
LINEAR = {
    "horner": ("fun (s, x) => 0.5 * s + x", "0.0", "", "xs", 2),
    "horner with a variable": ("fun (s, x) => k * s + x", "0.0", ", k: f32", "xs", 2),
    "first-order recurrence": ("fun (s, (a, b)) => s * a + b", "1.0", ", ys: [f32]16", "zip(xs, ys)", 2),
    "running quotient": ("fun (s, x) => (s + x) / 2.0", "1.0", "", "xs", 2),
    "steps towards an element": ("fun (s, x) => iterate(3, fun y => y + 2.0 * (x - y), s)", "0.0", "", "xs", 2),
    "steps in steps": (
        "fun (s, x) => iterate(2, fun y => iterate(8, fun z => k * z - z - z, y) + x, s)", "0.0", ", k: f32", "xs", 2,
    ),
    "difference": ("fun (s, x) => s - x", "0.0", "", "xs", 1),
    "alternating sum": ("fun (s, x) => x - s", "0.0", "", "xs", 2),
    "polynomial hash": ("fun (s, x) => s * 31 + x", "7", ", ys: [i32]16", "ys", 2),
    "polynomial hash by a shift": ("fun (s, x) => shift_left(s, 5) - s + x", "7", ", ys: [i32]16", "ys", 2),
    "complement": ("fun (s, x) => bit_not(s) + x", "7", ", ys: [i32]16", "ys", 2),
    "maximum segment sum": ("fun ((m, c), x) => let d = max(c + x, x) in (max(m, d), d)", "(-inf, -inf)", "", "xs", 4),
    "maximum segment sum from zero": (
        "fun ((m, c), x) => let d = max(c + x, 0.0) in (max(m, d), d)", "(0.0, 0.0)", "", "xs", 4,
    ),
    "largest prefix": ("fun ((m, s), x) => (max(m, s + x), s + x)", "(-inf, 0.0)", "", "xs", 2),
    "least prefix": ("fun ((m, s), x) => (min(m, s + x), s + x)", "(inf, 0.0)", "", "xs", 2),
    "mean and variance": ("fun ((s, q), x) => (s + x, q + x * x)", "(0.0, 0.0)", "", "xs", 2),
    "sum and largest": ("fun ((s, m), x) => (s + x, max(m, x))", "(0.0, -inf)", "", "xs", 2),
    "fibonacci": ("fun ((a, b), x) => (b, a + b)", "(0, 1)", ", ys: [i32]16", "ys", 4),
    "second-order recurrence": ("fun ((a, b), x) => (b, 2.0 * a - b + x)", "(0.0, 0.0)", "", "xs", 6),
    "power and polynomial": ("fun ((p, s), x) => (p * 2.0, s + p * x)", "(1.0, 0.0)", "", "xs", 2),
    "longest run": (
        "fun ((c, b), x) => let d = select(x > 0.0, c + 1.0, 0.0) in (d, max(b, d))", "(0.0, 0.0)", "", "xs", 4,
    ),
    "clamped by one choice after the other": (
        "fun (s, x) => let t = s + x in if t > 3.0 then 3.0 else (if t < -2.0 then -2.0 else t)", "0.0", "", "xs", 3,
    ),
    "clamped from below first": (
        "fun (s, x) => let t = s + x in if -1.0 >= t then -1.0 else (if t < 3.0 then t else 3.0)", "0.0", "", "xs", 3,
    ),
    "a choice by both": (
        "fun (s, (x, y)) => if y > 0 && x > s then x else s", "0.0", ", ys: [i32]16", "zip(xs, ys)", 1,
    ),
    "a choice by one of both": (
        "fun (s, (x, y)) => if x > s || y > 0 then x else s", "0.0", ", ys: [i32]16", "zip(xs, ys)", 2,
    ),
    "bounded queue": ("fun (s, x) => min(max(s + x, 0.0), 9.0)", "0.0", "", "xs", 3),
    "queue with a drain": ("fun (s, x) => max(min(s, 9.0 - x) + x - 1.0, 0.0)", "0.0", "", "xs", 3),
    "clamped": ("fun (s, x) => min(max(s, x), 3.0)", "0.0", "", "xs", 2),
    "any after all": ("fun (s, x) => s && x > 0.0 || x > 1.0", "true", "", "xs", 2),
    "last positive": ("fun (s, x) => select(x > 0.0, x, s)", "0.0", "", "xs", 2),
    "sum since the last zero": ("fun (s, x) => select(x == 0.0, 0.0, s + x)", "0.0", "", "xs", 2),
    "larger by select": ("fun (s, x) => select(s < x + 1.0, x + 1.0, s)", "0.0", "", "xs", 1),
    "distributed": ("fun (s, x) => x * (s + 2.0 * (x - s))", "1.0", "", "xs", 2),
    "rotation": (
        "fun ((a, b), (x, y)) => (a * x - b * y, a * y + b * x)", "(1.0, 0.0)", ", ys: [f32]16", "zip(xs, ys)", 4,
    ),
    "tank": ("fun (s, x) => if s > 0.0 then s + x else x", "0.0", "", "xs", 2),
    "checksum of bits": ("fun (s, y) => bit_xor(bit_and(s, 6), y)", "7", ", ys: [i32]16", "ys", 2),
    "register": ("fun (s, (y, z)) => bit_or(bit_and(s, y), z)", "1", ", ys: [i32]16", "zip(ys, ys)", 2),
    "thermostat": ("fun (on, x) => if on then x < 2.0 else x < 0.0", "false", "", "xs", 2),
    "comments": (
        "fun (s, y) => if s == 0 then (if y == 1 then 1 else 0) else (if s == 1 then (if y == 2 then 2 else 0) else "
        "(if y == 3 then 0 else 2))", "0", ", ys: [i32]16", "ys", 4,
    ),
    "in order": ("fun (s, y) => if s < 1 then y else (if s <= 2 then 3 else -y)", "0", ", ys: [i32]16", "ys", 5),
    "carry": ("fun (c, y) => (min(max(c, -1), 1) + y) / 3", "0", ", ys: [i32]16", "ys", 4),
    "carry that is also compared": (
        "fun (c, y) => select(c < 5, min(max(c, 0), 1) * y, 7)", "0", ", ys: [i32]16", "ys", None,
    ),
    "one of many states": (
        "fun (s, y) => let t = min(max(s, 2), 13) in (t * t + y % 3 + 3) % 12 + 2", "5", ", ys: [i32]16", "ys", 2,
    ),
    "eight states and a sum": (
        "fun ((n, s), y) => let t = min(max(s, -4), 3) in (n + y, (t * t + abs(y % 9)) % 8 - 4)", "(0, 2)",
        ", ys: [i32]16", "ys", 3,
    ),
    "first place": ("fun (p, (y, i)) => if p < 0 && y == 2 then i else p", "-1", ", ys: [i32]16", "zip(ys, ys)", 2),
    "first of all": (
        "fun ((f, m), x) => if f == 0 && x > 1.0 then (1, x) else (f, m)", "(0, -1.0)", "", "xs", 3,
    ),
    "last of the largest": (
        "fun ((m, i), (x, j)) => if x >= m then (x, j) else (m, i)", "(-1.0, 7)", ", ys: [i32]16", "zip(xs, ys)", 3,
    ),
    "least cost of two states": (
        "fun ((a, b), x) => (min(a + x, b + 1.0), min(a + 1.0, b + x))", "(0.0, 0.0)", "", "xs", None,
    ),
}  # fmt: skip
NOT_LINEAR = {
    "square": ("fun (s, x) => s * s + x", "0.0", "xs", "multiplies the accumulator with itself"),
    "branch": ("fun (s, x) => select(s > 1.0, s - 1.0, s + x)", "0.0", "xs", "branches on the accumulator"),
    "division": ("fun (s, y) => y / s", "1", "ys", "divides by the accumulator and cuts off"),
    "mean of a fraction": ("fun (s, x) => 0.5 * (s + x / s)", "1.0", "xs", "divides by the accumulator"),
    "fraction of squares": ("fun (s, x) => x / (1.0 + s * s)", "1.0", "xs", "divides by the accumulator"),
    "absolute": ("fun (s, x) => abs(s) + x", "0.0", "xs", "applies abs to the accumulator"),
    "root": ("fun (s, x) => sqrt(s) + x", "0.0", "xs", "applies sqrt"),
    "product of two": ("fun ((a, b), x) => (a * b, b + x)", "(1.0, 1.0)", "xs", "multiplies the accumulator"),
    "sums that wrap": ("fun (s, y) => max(s + y, 0)", "0", "ys", "no semiring on i32"),
    "whole quotient": ("fun (s, y) => (s + y) / 2", "0", "ys", "applies / to the accumulator"),
    "remainder": ("fun (s, y) => (s * 31 + y) % 1009", "0", "ys", "applies %"),
    "largest of sum and product": ("fun (s, x) => max(2.0 * s, s + x)", "0.0", "xs", "not linear"),
    "two types": ("fun ((a, n), x) => (a + to_f32(n), n + 1)", "(0.0, 0)", "xs", "different types"),
    "two types, one by itself": (
        "fun ((v, n), x) => if v > 1.0 then (0.0, n + 1) else (v + x, n)",
        "(0.0, 0)",
        "xs",
        "branches on the accum",
    ),
    "carry of many": ("fun (s, y) => (min(max(s, 0), 6) + y) / 3", "0", "ys", "applies / to the accumulator"),
    "cast": ("fun (s, x) => to_f32(to_i32(s)) + x", "0.0", "xs", "applies to_f32"),
    "negated maximum": ("fun (s, x) => 0.0 - max(s, x)", "0.0", "xs", "not linear"),
    "unused element": ("fun (s, x) => s", "0.0", "xs", "leaves the accumulator as it is"),
    "envelope": ("fun (s, x) => if x > s then x else 0.5 * s", "0.0", "xs", "branches on the accumulator"),
    "moved apart": ("fun (s, x) => if s > 0.0 then s + x else x - 1.0", "0.0", "xs", "branches on the accumulator"),
    "bounds that cross": (
        "fun (s, x) => if s + x > 1.0 then 1.0 else (if s + x < 2.0 then 2.0 else s + x)", "0.0", "xs", "branches",
    ),
    "another number than the bound": (
        "fun (s, x) => if s + x > 3.0 then 4.0 else (if s + x < 2.0 then 2.0 else s + x)", "0.0", "xs", "branches",
    ),
    "two less where it is one": ("fun (s, y) => if s > 0 then s - 2 else -y", "0", "ys", "branches"),
    "sum of whole numbers from zero": ("fun (s, y) => if s > 0 then s + y else y", "0", "ys", "branches"),
    "many states": (
        "fun (s, y) => if s == 0 then 1 else (if s == 1 then 2 else (if s == 2 then 3 else (if s == 3 then 4 else "
        "(if s == 4 then 5 else (if s == 5 then y else 0)))))",
        "0",
        "ys",
        "branches on the accumulator",
    ),
    "another state in between": ("fun (s, y) => if s == 1 then y else s + 1", "0", "ys", "branches on the accumulator"),
    "largest product": (
        "fun ((a, b), x) => (max(x, max(a * x, b * x)), min(x, min(a * x, b * x)))",
        "(1.0, 1.0)",
        "xs",
        "applies * to the accumulator",
    ),
    "rotated sum": (
        "fun (h, y) => bit_or(shift_left(h, 5), bit_and(shift_right(h, 27), 31)) + y",
        "0",
        "ys",
        "applies bit_or",
    ),
    "compensated sum": (
        "fun ((s, c), x) => let y = x - c in let t = s + y in (t, (t - s) - y)",
        "(0.0, 0.0)",
        "xs",
        "s + (x - c) - s - (x - c) is not 0.0 as it is rounded",
    ),
    "what cancels, of elements of an array": (
        "fun (s, y) => s + (xs[y] - xs[y])",
        "0.0",
        "ys",
        "xs[y] - xs[y] is not 0.0 as it is rounded",
    ),
    "cut off": ("fun (s, x) => floor(s + x)", "0.0", "xs", "applies floor"),
    "states and a number": (
        "fun ((on, n), y) => (n % 3 == 0, select(on, n + y, n * 2))",
        "(false, 0)",
        "ys",
        "over (or, and) and (+, ·), f (a ⊕ b) ⊕ f (false, 0) is not f (a) ⊕ f (b)",
    ),
    "associative it is not": (
        "fun (a, b) => a * a - b",
        "0.0",
        "xs",
        "f (f (a, b), c) is not f (a, f (b, c)), for a = ",
    ),
    "array": ("fun (s, x) => map(fun a => a * x, s)", "generate(4, fun i => 1.0)", "xs", "no scalar or tuple"),
}


def fold(text: str, start: str, more: str = ", ys: [i32]16", array: str = "xs") -> ir.Program:
    return parse_program(f"program p(xs: [f32]16{more}) = reduceSeq({text}, {start}, {array})")


@in_turn(8)
@pytest.mark.parametrize("name", LINEAR)
def test_linear_folds_are_reductions(name):
    text, start, more, array, entries = LINEAR[name]
    program = fold(text, start, more, array)
    found = action_of(program.body.operator)
    assert isinstance(found, Action), str(found)
    assert associative(found.operator)
    assert neutral(found.operator, found.one)
    assert entries in (None, print_term(found.one).count(",") + 1)
    changed = with_actions(program.body)
    assert changed is not None
    assert any(isinstance(t, ir.Reduce) for t in ir.subterms(changed))
    for seed in range(3):
        inputs = random_inputs(program, seed, "integer")
        for term in (changed, in_chunks(changed)):
            assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize(
    "text",
    [
        "fun (s, x) => max(abs(x), s * 0.5)",
        "fun (s, x) => if abs(x) > 0.5 * s then abs(x) else 0.5 * s",
        "fun (s, x) => min(max(s * 0.5 + x, 0.0), 1.0)",
        "fun (s, x) => max(-2.0 * s + x, -3.0)",
        "fun (s, x) => select(x > 0.0, min(s * x, 5.0), s - 1.0)",
        "fun (s, x) => min(max(s * 0.0, x), 2.0)",
        "fun (s, x) => max(s, x) * 0.5",
        "fun (s, x) => max(s, x) / 4.0 - 1.0",
        "fun (s, x) => 2.0 * min(max(s + x, -1.0), 1.0)",
        "fun (s, x) => max(s + 0.5 * (x - s), x - 1.0)",
        "fun (s, x) => max(s / 2.0, x)",
        "fun (s, x) => if x > s then x else s + 0.25 * (x - s)",
    ],
)
def test_products_of_what_is_multiplied_and_clamped_act_as_the_fold_does(text: str):
    program = fold(text, "1.0")
    found, folded = action_of(program.body.operator), program.body
    assert isinstance(found, Action), str(found)
    assert found.why == "s is multiplied, shifted and clamped"
    product = ir.Reduce(found.operator, found.one, ir.Map(found.matrix, folded.array))
    acted = ir.Apply(found.act, ir.MakePair(product, folded.initial))
    for seed in range(5):
        inputs = random_inputs(program, seed, "integer")
        assert equal_values(evaluate(folded, inputs), evaluate(acted, inputs))


@pytest.mark.parametrize(
    ("text", "matrix"),
    [
        ("fun (s, x) => (x * s + 1.0) / (s + 5.0)", "true, x, 1.0, 1.0, 5.0"),
        ("fun (s, x) => x + 6.0 + 1.0 / s", "true, x + 6.0, 1.0, 1.0, 0.0"),
        ("fun (s, x) => x / (4.0 - 0.5 * s)", "true, 0.0, x, -0.5, 4.0"),
        ("fun (s, x) => 1.0 / (1.0 / (s + abs(x)) + 1.0)", "true, 1.0, abs(x), 1.0, 1.0 + abs(x)"),
        (  # of 1 - w / (w + 1) is 1 left: what is taken away does not round it off
            "fun (s, x) => let w = s + abs(x) in (1.0 - w / (w + 1.0)) * w",
            "true, 1.0, abs(x), 1.0, abs(x) + 1.0",
        ),
    ],
)
def test_products_of_fractions_act_as_the_fold_does(text: str, matrix: str) -> None:
    program = fold(text, "1.5")
    found, folded = action_of(program.body.operator), program.body
    assert isinstance(found, Action), str(found)
    assert found.why == "s is a fraction of linear functions of the accumulator"
    assert print_term(found.matrix.body) == f"({matrix})"
    assert associative(found.operator) == FRACTIONS
    assert right_identity(found.operator, found.one)
    assert neutral(found.operator, found.one)
    changed = with_actions(folded)
    assert changed is not None
    inputs = random_inputs(program, 0)
    for term in (changed, in_chunks(changed)):
        np.testing.assert_allclose(evaluate(term, inputs), evaluate(folded, inputs), rtol=1e-5)


def test_products_of_fractions_stay_between_bounds() -> None:
    """Entries of 9 to the power of 400 are no floats."""
    program = parse_program("program p(xs: [f32]400 in 8..9) = reduceSeq(fun (s, x) => 1.0 / (x + s), 0.0, xs)")
    changed, inputs = with_actions(program.body), random_inputs(program, 0)
    assert changed is not None
    np.testing.assert_allclose(evaluate(changed, inputs), evaluate(program.body, inputs), rtol=1e-6)


def test_words_of_next_states_are_composed_in_one_way_alone() -> None:
    """What the first says of what the second says is no such operator, nor is a word whose fields are too wide."""

    def swapped(part: Any) -> Any:
        others = {"$p1": "$q1", "$q1": "$p1"}
        return ir.Var(others[part.name], part.type) if isinstance(part, ir.Var) and part.name in others else (
            ir.map_parts(part, swapped)
        )  # fmt: skip

    def wide(part: Any) -> Any:
        return ir.Literal(15, part.type) if isinstance(part, ir.Literal) and part.value == 7 else (
            ir.map_parts(part, wide)
        )  # fmt: skip

    wrapping = "fun (s, y) => let t = min(max(s, 0), 6) in (t * t + abs(y)) % 7"
    assert isinstance(action_of(fold(wrapping, "0", array="ys").body.operator), Refusal)
    text = wrapping.replace("abs(y)", "abs(y % 9)")
    found = action_of(fold(text, "0", array="ys").body.operator)
    assert isinstance(found, Action)
    assert isinstance(found.operator.binder, ir.PairBinder)
    assert associative(found.operator) == COMPOSED
    composing = ir.Lambda(ir.PairBinder(found.operator.binder.first, found.matrix.binder), ir.Apply(
        found.operator, ir.MakePair(right_nested(ir.bound_variables(found.operator.binder.first)), found.matrix.body)
    ))  # fmt: skip
    assert str(action_of(composing)) == "it composes what becomes of each state"
    for change in (swapped, wide):
        other = ir.Lambda(found.operator.binder, change(found.operator.body))
        assert associative(other) is None
        assert against_associativity(other)


def test_products_that_are_divided_by_a_negative_number_are_not_associative() -> None:
    def signed(part: Any) -> Any:
        return part.arguments[0] if isinstance(part, ir.Call) and part.op == "abs" else ir.map_parts(part, signed)

    found = action_of(fold("fun (s, x) => x / (4.0 - s)", "0.0").body.operator)
    assert isinstance(found, Action)
    assert associative(found.operator)
    assert associative(signed(found.operator)) is None
    assert against_associativity(signed(found.operator))


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_others_are_refused_with_a_reason(name):
    text, start, array, why = NOT_LINEAR[name]
    found = action_of(fold(text, start, array=array).body.operator)
    assert isinstance(found, Refusal)
    assert why in str(found)
    assert name in ("unused element", "array") or re.search(r" is not .*, for .* = .* they are .* and ", str(found))


def test_constant_entries_are_folded_away():
    text, start, more, array, _ = LINEAR["largest prefix"]
    found = action_of(fold(text, start, more, array).body.operator)
    assert isinstance(found, Action)
    assert print_term(found.operator.body) == "(max($p0, $q0 + $p1), $q1 + $p1)"
    assert found.why == "m and s are linear in the accumulator over (max, +)"


def test_entries_that_stay_equal_are_kept_once():
    found = action_of(fold("fun ((a, b), x) => (2.0 * a + x * b, 2.0 * b)", "(0.0, 0.0)").body.operator)
    assert isinstance(found, Action)
    assert print_term(found.matrix.body) == "(2.0, x)"
    assert commutative(found.operator)


def test_wrapping_is_shown_by_an_example():
    found = action_of(fold("fun (s, y) => max(s + y, 0)", "0", array="ys").body.operator)
    assert "a + max(b, c) is not max(a + b, a + c), for a =" in str(found)


def test_of_components_of_several_types_one_is_named_that_is_not_linear():
    operator = """fun ((depth, star), c) => let close = star && c == 47 && depth > 0 in
        (if c == 42 then depth + 1 else (if close then depth - 1 else depth), c == 42 && not(close))"""
    (reason,) = refusals(fold(operator, "(0, false)", array="ys").body)
    assert "depth and star depend on each other and have different types: select(" in reason
    assert "branches on the accumulator, so it is not linear over (+, ·)" in reason


def test_what_is_multiplied_and_clamped_acts():
    assert not [*refusals(fold("fun (s, x) => max(s * x, x)", "1.0").body)]
    assert not [*refusals(fold("fun ((s, t), x) => let u = max(s * x, x) in (u, max(u, t))", "(1.0, 0.0)").body)]


@pytest.mark.parametrize(
    "text",
    [
        "fun (s, x) => max(s, x) * x",
        "fun (s, x) => if x > s then x else s + 0.5 * x",
        "fun (s, x) => if abs(x) > s then abs(x) else 0.5 * s",
        "fun (s, x) => max(0.5 * s + x, 0.25 * s - x)",
    ],
)
def test_what_only_looks_clamped_does_not_act(text: str):
    assert isinstance(action_of(fold(text, "1.0").body.operator), Refusal)


@pytest.mark.parametrize(("t", "acts"), [("f32", True), ("f64", False)])
def test_what_rounding_makes_of_a_choice_is_no_more_than_that_of_its_type(t: str, acts: bool):
    step = "fun (s, x) => if x > s then x else s + 0.1 * x - 0.10000001 * s"
    body = parse_program(f"program p(xs: [{t}]16) = reduceSeq({step}, 0.0, xs)").body
    assert isinstance(action_of(body.operator), Action) == acts


def test_numbers_of_a_fraction_are_rounded_also_beside_a_pole():
    text = "fun (p, x) => let q = p + 0.01 in let gain = q / (q + 0.5) in (1.0 - gain) * q"
    found = action_of(fold(text, "1.0").body.operator)
    assert isinstance(found, Action), str(found)


def test_what_is_no_sequential_fold_stays():
    assert with_actions(parse_program("program p(xs: [f32]16) = reduce(add, 0.0, map(abs, xs))").body) is None


@pytest.mark.parametrize(
    ("operator", "kept", "other"),
    [
        ("fun (s, x) => (min(max(s, 0), 96) * 31 + to_i32(x)) % 97", "5", "-5"),
        ("fun ((u, v), x) => (max(max(u, 0) * min(abs(x), 1), max(v, 0)), max(u, 0))", "(0.5, 0.0)", "(-1.0, 2.0)"),
    ],
)
def test_scans_that_begin_with_what_does_not_act_stay(operator: str, kept: str, other: str) -> None:
    """What acts takes another number for it, and it is the first result."""
    xs = "[u8]N" if "%" in operator else "[f32]N"
    texts = [f"program p(xs: {xs}) where N = 16 = scanExclusiveSeq({operator}, {z}, xs)" for z in (kept, other)]
    programs = [specialise(parse_program(text)) for text in texts]
    told = [[str(f) for use in uses_in(p.body) for f in facts_of(use) if "acts(" in str(f)] for p in programs]
    assert [bool(facts) for facts in told] == [True, False]
    assert with_actions(programs[1].body) is None
    (reason,) = refusals(programs[1].body)
    assert "stands for another number" in reason
    acted = with_actions(programs[0].body)
    assert acted is not None
    for seed in range(3):
        inputs = random_inputs(programs[0], seed, "integer")
        assert equal_values(evaluate(programs[0].body, inputs), evaluate(acted, inputs))
