"""Folds that remember the element before become reductions of elements and those before them."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.recalled import recalling_of
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.actions import with_actions
from lift_egraph.workbench.changes.recalled import with_recalled
from lift_egraph.workbench.phases import Leg
from tests.reaching import leads_to

REMEMBER = {
    "a distance": "fun ((last, way), x) => (x, way + abs(x - last)), (0, 0), i",
    "words": (
        "fun ((n, inside), c) => if c == 2 then (n, 0) else (if inside == 1 then (n, 1) else (n + 1, 1)), (0, 0), i"
    ),
    "a step up and a sum": (
        "fun ((most, (last, sum)), (x, y)) => (max(most, y - last), (y, sum + x * y)), (0, (0, 0)), zip(i, i)"
    ),
}
DO_NOT = {
    "it is carried on": "fun ((n, last), x) => (n + last, last * x), (0, 0), i",
    "nothing reads it": "fun ((n, last), x) => (n + x, x), (0, 0), i",
    "it stays a loop": "fun ((n, last), x) => (n * n + last, x), (0, 0), i",
}


def fold(text: str) -> ir.Program:
    return parse_program(f"program p(i: [i32]1000) = reduceSeq({text})")


@pytest.mark.parametrize("name", REMEMBER)
def test_a_fold_that_remembers_is_a_reduction(name: str):
    program = fold(REMEMBER[name])
    term, inputs = program.body, random_inputs(program, 0, "integer")
    for change in (with_recalled, with_actions):
        made = change(term)
        assert made is not None
        assert leads_to(term, Leg("algebra", made, 8, "cpu").phase, made)
        term = made
    assert any(isinstance(t, ir.Reduce) for t in ir.subterms(term))
    sides = (list(leaves_of(evaluate(t, inputs))) for t in (program.body, term))
    assert all(np.array_equal(a, b) for a, b in zip(*sides, strict=True))


@pytest.mark.parametrize("name", DO_NOT)
def test_other_folds_are_left(name: str):
    assert with_recalled(fold(DO_NOT[name]).body) is None


def test_what_is_remembered_is_left_out_of_the_accumulator():
    body = fold(REMEMBER["a step up and a sum"]).body
    assert isinstance(body, ir.ReduceSeq)
    found = recalling_of(body.operator)
    assert found is not None
    assert [v.name for v in ir.bound_variables(found.step.binder)] == ["most", "sum", "$y0", "$y1", "x", "y"]
