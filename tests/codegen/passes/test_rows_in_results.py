"""Rows that a work-item keeps lie in the result that is computed of them, and others do not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate

LAYING = replace(POCL, emission=replace(POCL.emission, rows_in_results=True))
LANES = "asScalar(mapSeq(vectorize(4, fun v => {}), asVector(4, {})))"
KEPT = "let e = toPrivate(mapSeq(fun v => v * v, row)) in let s = reduceSeq(add, 0.0, e) in"
IN_LANES = f"let e = {LANES.format('v * v', 'row')} in let s = reduceSeq(add, 0.0, e) in {LANES.format('v - s', 'e')}"
TWO = f"{KEPT} let f = toPrivate(mapSeq(fun v => v + 1.0, row)) in"
BACK = "gather(reverse, e)"
CASES = {  # the body of a map over rows of 1024, and whether what is kept lies in the result
    "element by element": (f"{KEPT} mapSeq(fun v => v - s, e)", True),
    "in vectors": (IN_LANES, True),
    "with what else is read": (f"{KEPT} mapSeq(fun (v, w) => v * s + w, zip(e, row))", True),
    "one of two": (f"{TWO} mapSeq(fun (v, w) => v * s + w, zip(e, f))", False),
    "backwards": (f"{KEPT} mapSeq(fun v => v - s, {BACK})", False),
    "also elsewhere": (f"{KEPT} mapSeq(fun (v, w) => v * s + w, zip(e, {BACK}))", False),
    "in parts": (f"{KEPT} mapSeq(fun v => v - s, slice(0, 1000, e))", False),
}
ARRAY = re.compile(r"tmp\d*\[(1024|256)\];")


@pytest.mark.parametrize("what", CASES)
def test_rows_lie_in_the_results_that_are_computed_of_them(what: str, runner: Runner):
    body, is_laid = CASES[what]
    program = parse_program(f"program p(X: [[f32]1024]6) = mapGlb(0, fun row => {body}, X)")
    plan = compile_program(program, LAYING)
    assert (ARRAY.search(plan.source) is None) == is_laid
    assert ARRAY.search(compile_program(program, POCL).source)
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    assert np.allclose(runner.run(plan, what), evaluate(program.body, inputs), rtol=1e-6)


def test_what_is_written_around_the_caches_is_not_read_there():
    program = parse_program(f"program p(X: [[f32]1024]65536) = toStream(mapGlb(0, fun row => {IN_LANES}, X))")
    assert ARRAY.search(compile_program(program, LAYING).source)
