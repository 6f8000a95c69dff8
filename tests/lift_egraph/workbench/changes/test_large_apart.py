"""Large arrays that a function of rows names are stages of their own, on devices whose groups share rows."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.exploration.stage_cut import cut

LIMITS = Limits(iterations=MOST_STEPS, nodes=20_000)
CENTRED = "map(fun c => let m = reduce(add, 0.0, c) / 40.0 in map(fun x => x - m, c), {})"
SCALED = "map(fun (c, w) => map(fun x => x * w, c), {})"
GROUP = "fun h => let m = reduce(max, 0.0, join(h)) in map(map(fun x => x - m), h)"
PROGRAMS = {
    "by a name": f"""program p(X: [[[f32]40]12]6, g: [f32]12) =
      map(fun a => let d = {CENTRED.format("a")} in {SCALED.format("zip(d, g)")}, X)""",
    "after what it needs": f"""program p(X: [[[f32]40]12]6, g: [f32]12) =
      map(fun a => let t = reduce(add, 0.0, join(a)) in let d = {CENTRED.format("map(map(fun x => x * t), a)")} in
        {SCALED.format("zip(d, g)")}, X)""",
    "beside another array": f"""program p(X: [[[f32]40]12]6, g: [f32]12) =
      map(fun a => {SCALED.format(f"zip({CENTRED.format('a')}, g)")}, X)""",
    "behind another array": f"""program p(X: [[[f32]40]12]6, g: [f32]12) =
      map(fun a => map(fun (w, c) => map(fun x => x * w, c), zip(g, {CENTRED.format('a')})), X)""",
    "in groups that are joined": f"""program p(X: [[[f32]40]12]6, g: [f32]12) =
      map(fun a => {SCALED.format(f"zip(join(map({GROUP}, split(3, a))), g)")}, X)""",
    "in a batch": f"""program p(X: [[[[f32]40]12]2]3, g: [f32]12) =
      map(fun b => map(fun a => let d = {CENTRED.format("a")} in {SCALED.format("zip(d, g)")}, b), X)""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_large_array_is_a_stage_of_its_own(text: str):
    program = parse_program(text)
    changes = Changes(NVIDIA, LIMITS, lambda phase: phase)
    term = next(then for phase, (then, _) in changes.of((program.body, ())) if phase.name == "large_apart")
    parts = cut(term)
    assert parts is not None
    *_, last = parts.stages.values()
    assert not ir.has_folds(last)
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize(
    ("device", "body"),
    [
        (POCL, f"let d = {CENTRED.format('a')} in {SCALED.format('zip(d, g)')}"),
        (NVIDIA, f"let d = {CENTRED.format('slice(0, 2, a)')} in {SCALED.format('zip(d, slice(0, 2, g))')}"),
        (NVIDIA, f"let d = map(map(fun x => x * x), a) in {SCALED.format('zip(d, g)')}"),
    ],
    ids=["cores have rows of their own", "it is small", "its elements need no fold"],
)
def test_others_stay_where_they_are(device, body: str):
    program = parse_program(f"program p(X: [[[f32]40]12]6, g: [f32]12) = map(fun a => {body}, X)")
    changes = Changes(device, LIMITS, lambda phase: phase)
    assert "large_apart" not in [phase.name for phase, _ in changes.of((program.body, ()))]
