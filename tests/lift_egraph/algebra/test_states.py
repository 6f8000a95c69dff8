"""Components that are together one of a few states, and the words of what becomes of each."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.kept import keeping_of
from lift_egraph.algebra.reached import reached_of
from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.operators import making
from lift_egraph.egraph.saturate import run_phase
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.changes.bounded import with_bounds
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn

ROWS = Rows(POCL)
TURNS = "let q = p + d in (q, if q == 3 then -1 else (if q == 0 then 1 else d))"
SWITCHES = {
    "truth values that need each other": "reduceSeq(fun ((a, b), x) => (b, a != (x > 0.0)), (false, true), xs)",
    "text with escapes": "scanSeq(fun ((quoted, escaped), c) => (if c == 2 && !escaped then !quoted else quoted, "
    "c == 1 && !escaped && quoted), (false, false), is)",
    "a switch that waits": "scanSeq(fun ((on, n), i) => if i == on then (on, 0) else "
    "(if n + 1 >= 3 then (i, 0) else (on, n + 1)), (0, 0), map(fun i => bit_and(i, 1), is))",
    "one that waits for floats": "scanExclusiveSeq(fun ((on, n), x) => let y = x > 0.0 in if y == on then (on, 0) else "
    "(if n >= 1 then (y, 0) else (on, n + 1)), (false, 0), xs)",
    "up and down": f"reduceSeq(fun ((p, d), i) => if i == 0 then (p, d) else ({TURNS}), (0, 1), is)",
    "and how often it turned": "reduceSeq(fun ((p, d, n), i) => if i == 0 then (p, d, n) else (let q = p + d in "
    "(q, if q == 3 then -1 else (if q == 0 then 1 else d), if q == 3 then n + 1 else n)), (0, 1, 0), is)",
    "states that are no neighbours": "scanSeq(fun (s, i) => if s == 10 then (if i == 2 then s + 3 else s) else "
    "(if i == 1 then s - 3 else (if i == 0 then s + 4 else 10)), 10, map(fun i => i % 2, is))",
    "states far apart": "scanSeq(fun ((more, low, high, wrong), i) => let c = i * 37 + 120 in if more > 0 then (if "
    "c >= low && c <= high then (more - 1, 128, 191, wrong) else (0, 0, 127, true)) else (if c < 128 then (0, 0, 127, "
    "wrong) else (if c <= 194 then (1, 128, 191, wrong) else (if c == 224 then (2, 160, 191, wrong) else (if c < 240 "
    "then (2, 128, 191, wrong) else (if c == 240 then (3, 144, 191, wrong) else (0, 0, 127, true)))))), "
    "(0, 0, 127, false), is)",
}  # fmt: skip
OTHERS = {
    "more than 16 pairs": "reduceSeq(fun ((a, b), i) => if i == 0 then ((a + b) % 5, b) else (a, (a * b + 1) % 5), "
    "(1, 1), is)",
    "it may be any number": "reduceSeq(fun ((a, b), i) => (b, if a == 1 then i else a * b), (1, 1), is)",
    "nobody knows where it begins": "reduceSeq(fun ((a, b), i) => (b, if a == 1 then 0 else a * b), (k, 1), is)",
    "a float": "reduceSeq(fun ((a, b), x) => (b, if a == 1.0 then 0.0 else a * b), (1.0, 0.0), xs)",
}


def program_of(fold: str, size: int = 256) -> ir.Program:
    return parse_program(f"program p(xs: [f32]{size}, is: [i32]{size}, k: i32) = {fold}")


def values(term: ir.Expr, program: ir.Program) -> list[np.ndarray]:
    inputs = random_inputs(program, 0, "integer")
    inputs["xs"] = np.random.default_rng(0).uniform(-1, 1, len(inputs["xs"])).astype(np.float32)
    return list(leaves_of(evaluate(term, inputs)))


@in_turn(8)
@pytest.mark.parametrize("name", SWITCHES)
def test_components_of_a_few_states_are_a_fold_of_words(name: str):
    program = program_of(SWITCHES[name])
    body = program.body
    assert not [*refusals(body)]
    term = with_bounds(body, ROWS) or body
    acted = with_actions(term)
    wanted = values(body, program)
    for other in (term, acted):
        assert other is None or all(map(np.array_equal, wanted, values(other, program)))


def test_the_rule_asks_first_which_state_it_is():
    body = program_of(SWITCHES["states that are no neighbours"]).body
    term = with_bounds(body, ROWS)
    assert term is not None
    assert any(locate(s.graph, s.root, term) for s in run_phase(body, Leg("algebra", term, 8, "cpu").phase))


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_loops(name: str):
    body = program_of(OTHERS[name]).body
    assert isinstance(body, ir.ReduceSeq)
    assert reached_of(body.operator, body.initial, making(body)) is None
    assert keeping_of(body.operator, body.initial, making(body)) is None
    assert [*refusals(body)]


def test_pairs_that_are_no_states_behave_like_one():
    body = program_of(SWITCHES["up and down"]).body
    assert isinstance(body, ir.ReduceSeq)
    asked = reached_of(body.operator, body.initial)
    assert asked
    assert isinstance(action_of(asked), Action)
    elsewhere = parse_program("program p(is: [i32]9) = reduceSeq(fun ((p, d), i) => (p, d), (7, 7), is)").body
    assert isinstance(elsewhere, ir.ReduceSeq)
    fold = ir.ReduceSeq(asked, elsewhere.initial, elsewhere.array)
    acted = with_actions(fold)
    assert acted is not None
    inputs = {"is": np.arange(9, dtype=np.int32) % 2}
    assert [int(v) for v in leaves_of(evaluate(acted, inputs))] == [int(v) for v in leaves_of(evaluate(fold, inputs))]


def test_ranges_of_inputs_say_which_states_there_are():
    step = "if i == on then (on, 0) else (if n >= 1 then (i, 0) else (on, n + 1))"
    text = f"scanSeq(fun ((on, n), i) => {step}, (0, 0), is)"
    free, known = (parse_program(f"program p(is: [i32]4096{r}) = {text}") for r in ("", " in 0..2"))
    assert [*refusals(with_ranges(free).body)]
    assert not [*refusals(with_ranges(known).body)]
