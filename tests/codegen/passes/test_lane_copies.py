"""Rows that lanes go along again and again are copied, lanes beside each other."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC, POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl, text_of
from tests.depth import in_turn


def of_rows(function: str, n: int = 131, m: int = 9, t: str = "f32", inputs: str = "") -> str:
    """A function of each row of a matrix, 16 of them at once, beside another matrix."""
    return (
        f"program p(xs: [[{t}]{n}]32, ys: [[{t}]{n}]{m}{inputs}) = "
        f"asScalar(mapGlb(0, vectorize(16, fun x => {function}), asVector(16, xs)))"
    )


DOT = "reduceSeq(fun (s, a, b) => s + a * b, 0.0, zip(x, y))"
COPIED = {  # and how many copies there are
    "doubles": (of_rows(f"mapSeq(fun y => {DOT}, ys)", n=67, t="f64"), 1),
    "two loops over one row": (of_rows(f"(mapSeq(fun y => {DOT}, ys), mapSeq(fun y => 1.0 - {DOT}, ys))"), 2),
    "twice in a step": (of_rows(f"mapSeq(fun y => {DOT} + reduceSeq(fun (s, a) => max(s, a), 0.0, x), ys)"), 1),
}
OTHERS = {
    "seldom": of_rows(f"mapSeq(fun y => {DOT}, ys)", m=7),
    "short rows": of_rows(f"mapSeq(fun y => {DOT}, ys)", n=127),
    "long rows": of_rows(f"mapSeq(fun y => {DOT}, ys)", n=513),
    "another row in each step": of_rows(
        "mapSeq(fun (y, k) => reduceSeq(fun (s, a, b) => s + a * b, 0.0, zip(slice(0, 131, x), y)), "
        "zip(map(fun y => slice(0, 131, y), ys), slide(131, 3, x)))",
        n=155,
    ).replace("zip(slice(0, 131, x), y)", "zip(k, y)"),
}


def copied(text: str) -> list[str]:
    """The arrays of copies that a kernel declares."""
    return re.findall(r"^ *(?:float|double)16 (lanes\d*)\[\d+\];$", text, re.MULTILINE)


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("what", COPIED)
def test_rows_are_copied_once(what: str, runner: Runner):
    text, copies = COPIED[what]
    program = parse_program(text)
    plan = compile_program(program, POCL)
    assert len(copied(text_of(plan))) == copies
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    for found, right in zip(_leaves(runner.run(plan, what)), _leaves(evaluate(program.body, inputs)), strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("what", OTHERS)
def test_others_are_not_copied(what: str):
    program = parse_program(OTHERS[what])
    for device in (POCL, GENERIC):
        assert not copied(text_of(compile_program(program, device)))


def _leaves(tree: object) -> list[np.ndarray]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [np.asarray(tree)]
