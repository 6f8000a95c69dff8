"""Functions that loops do not change what they are computed of are tables before the loops."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.steps import MOST_STEPS
from lift_egraph.workbench.changes.tabled import with_tables
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

HEAD = "program p(A: [[f32]6]9, B: [[f32]6]5, s: f32) = "
TABLES = {
    "of two places, in the second of two sums": (
        """map(fun a => let y = map(abs, a) in map(fun k =>
          let re = reduce(add, 0.0, y) in
          let im = reduce(add, 0.0, map(fun (v, n) => v * sin(s * to_f32(k * n)), zip(y, generate(6, id)))) in
          re * im, generate(4, id)), A)""",
        1,
    ),
    "of elements of another array, twice": (
        "map(fun a => map(fun b => reduce(add, 0.0, map(fun (x, y) => x * cos(y) + sin(y), zip(a, b))), B), A)",
        2,
    ),
    "of a number that has a name": (
        """map(fun a => map(fun (v, n) => let angle = s * pow(2.0, to_f32(n)) in v * cos(angle),
          zip(a, generate(6, id))), A)""",
        2,
    ),
    "of what is generated": ("map(fun a => generate(7, fun k => a[0] * exp(to_f32(k) * s)), A)", 1),
    "in a pair": ("map(fun a => map(fun (v, w) => (v * exp(w), w), zip(a, B[0])), A)", 1),
    "in a loop": (
        """map(fun a => map(fun k => reduceSeq(fun ((re, im), (v, n)) => let t = s * to_f32(k * n) in
          (re + v * cos(t), im - v * sin(t)), (0.0, 0.0), zip(a, generate(6, id))), generate(4, id)), A)""",
        3,
    ),
    "that the loop changes": ("map(fun a => map(fun (v, w) => v * exp(v + w), zip(a, B[0])), A)", 0),
    "of a number that has a name, which the loop changes": (
        "map(fun a => map(fun n => let k = s * to_f32(n) in a[0] * pow(a[1], k), generate(6, id)), A)",
        0,
    ),
    "that is one number": ("map(fun a => map(fun v => v * exp(s), a), A)", 0),
}


@in_turn(8)
@pytest.mark.parametrize("name", TABLES)
def test_what_is_the_same_for_all_rows_is_a_table(name: str):
    text, count = TABLES[name]
    program = parse_program(HEAD + text)
    term, steps = program.body, list(with_tables(program.body))
    assert len(steps) == count
    for step in steps:
        assert leads_to(term, Leg("tables", step, MOST_STEPS, POCL.mapping).phase, step)
        term = step
    inputs = random_inputs(program, 3, "float")
    assert equal_values(evaluate(term, inputs), evaluate(program.body, inputs))
    loops = [t for t in ir.subterms(term) if isinstance(t, ir.Map) and program.inputs[0] in ir.subterms(t.array)]
    named = {t.op for loop in loops for t in ir.subterms(loop) if isinstance(t, ir.Call)} & {"sin", "cos", "exp", "pow"}
    assert not count or not named
