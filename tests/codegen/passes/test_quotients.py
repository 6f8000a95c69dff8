"""Quotients by what does not change in a loop are products, and as near as OpenCL asks for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program

EACH = "mapSeq(fun v => v / t, row)"
LANES = "asScalar(mapSeq(vectorize(4, fun v => v / t), asVector(4, row)))"
DIVIDED = f"mapGlb(0, fun (row, t) => {EACH}, zip(X, s))"
CASES = {  # and whether a reciprocal is taken
    "by an element": (DIVIDED, True),
    "in vectors": (DIVIDED.replace(EACH, LANES), True),
    "by a sum": (f"mapGlb(0, fun row => let t = reduceSeq(add, 0.0, row) in {EACH}, X)", True),
    "by what changes": ("mapGlb(0, fun row => mapSeq(fun (v, t) => v / t, zip(row, s)), X)", False),
    "of few": ("mapGlb(0, fun (row, t) => mapSeq(fun v => v / t, slice(0, 4, row)), zip(X, s))", False),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_loops_divide_by_is_inverted_before_them(what: str):
    body, is_inverted = CASES[what]
    program = parse_program(f"program p(X: [[f32]256]256, s: [f32]256) = {body}")
    assert ("* reciprocal" in compile_program(program, POCL).source) == is_inverted
    exact = replace(POCL, emission=POCL.emission.exact)
    assert "reciprocal" not in compile_program(program, exact).source


def test_products_with_reciprocals_are_as_near_as_quotients(runner: Runner):
    """Also where the reciprocal is no normal number: what both sides are scaled by."""
    program = parse_program(f"program p(X: [[f32]256]12, s: [f32]12) = {DIVIDED}")
    s = np.array([3, -7e-3, 1e38, 3.4e38, 2e-38, 1e-30, 1e30, np.inf, -np.inf, 0, np.nan, 1.9e19], np.float32)
    numbers = np.geomspace(1e-37, 3e38, 253, dtype=np.float32)
    X = np.tile(np.append(numbers, np.array([0, np.inf, -1], np.float32)), (12, 1))
    runner.load_inputs("quotients", {"X": X, "s": s})
    found = runner.run(compile_program(program, POCL), "quotients")
    with np.errstate(all="ignore"):
        right = X.astype(np.float64) / s[:, None].astype(np.float64)
        as_float = right.astype(np.float32)
        near = np.abs(found - right) <= 2.5 * 2.0**-23 * np.abs(right) + 2.0**-126
    at_end = (found == as_float) | (np.isnan(found) & np.isnan(as_float))
    assert np.all(near | at_end)
