"""Which folds that go on from row to row become one; that the phase of rules gets there is what makes the change."""

import pytest

from lift_egraph.api import parse_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.changes.joined_folds import with_joined_folds
from lift_egraph.workbench.changes.steps import Changes

FOLD = "reduceSeq(fun (t, x) => t * t + x, {start}, {array})"
BOTH = "reduceSeq(fun ((t, n), x) => (t * n + x, t - n), {start}, {array})"


@pytest.mark.parametrize(
    ("body", "then"),
    [
        (
            f"reduceSeq(fun (s, row) => {FOLD.format(start='s', array='row')}, 1.0, A)",
            FOLD.format(start="1.0", array="join(A)"),
        ),
        (
            f"reduceSeq(fun ((s, n), row) => {BOTH.format(start='(s, n)', array='map(abs, row)')}, (1.0, 2.0), A)",
            BOTH.format(start="(1.0, 2.0)", array="join(map(fun row => map(abs, row), A))"),
        ),
        ("reduceSeq(fun (s, row) => reduce(max, s, row), 1.0, A)", "reduce(max, 1.0, join(A))"),
    ],
)
def test_folds_that_go_on_from_row_to_row_are_one(body: str, then: str) -> None:
    program, wanted = (
        specialise(parse_program(f"program p(A: [[f32]4]8, ys: [f32]4) = {term}")) for term in (body, then)
    )
    changes = Changes(POCL, Limits(8, nodes=10_000, seconds=60), lambda phase: phase)
    name, made = next((s.name, start[0]) for s, start in changes.of((program.body, ())))
    assert name == "joined_sums"
    assert alpha_equal(made, wanted.body)


@pytest.mark.parametrize(
    "body",
    [
        f"reduceSeq(fun (s, row) => {FOLD.format(start='1.0', array='row')} + s, 1.0, A)",
        f"reduceSeq(fun (s, row) => {FOLD.format(start='s', array='map(fun x => x * s, row)')}, 1.0, A)",
        "reduceSeq(fun (s, row) => reduceSeq(fun (t, x) => t * s + x, s, row), 1.0, A)",
        "reduceSeq(fun (s, row) => reduceSeq(fun (t, x) => t * row[0] + x, s, ys), 1.0, A)",
        f"reduceSeq(fun ((s, n), row) => {BOTH.format(start='(n, s)', array='row')}, (1.0, 2.0), A)",
    ],
)
def test_others_stay(body: str) -> None:
    assert with_joined_folds(parse_program(f"program p(A: [[f32]4]8, ys: [f32]4) = {body}").body) is None


@pytest.mark.parametrize(("step", "count"), [("t * 0.5 + x", 0), ("t * t + x", 1)])
def test_it_is_said_why_the_one_fold_stays_a_loop(step: str, count: int) -> None:
    text = f"reduceSeq(fun (s, row) => reduceSeq(fun (t, x) => {step}, s, row), 1.0, A)"
    found = list(refusals(parse_program(f"program p(A: [[f32]4]8) = {text}").body))
    assert len(found) == count
    assert all(f"the fold by fun (t, x) => {step} stays a loop" in why for why in found)
