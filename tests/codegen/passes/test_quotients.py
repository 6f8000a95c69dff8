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
LARGEST = "reduceSeq(max, (0.0, 0), zip(qs, generate(256, fun i => i)))"
BINS = "mapSeq(fun v => floor(v / t), row)"
LANES = "asScalar(mapSeq(vectorize(4, fun v => v / t), asVector(4, row)))"
DIVIDED = f"mapGlb(0, fun (row, t) => {EACH}, zip(X, s))"
CASES = {  # and whether a reciprocal is taken
    "by an element": (DIVIDED, True),
    "in vectors": (DIVIDED.replace(EACH, LANES), True),
    "by a sum": (f"mapGlb(0, fun row => let t = reduceSeq(add, 0.0, row) in {EACH}, X)", True),
    "by what changes": ("mapGlb(0, fun row => mapSeq(fun (v, t) => v / t, zip(row, s)), X)", False),
    "of few": ("mapGlb(0, fun (row, t) => mapSeq(fun v => v / t, slice(0, 4, row)), zip(X, s))", False),
    "whose whole part counts": (DIVIDED.replace(EACH, BINS), False),
    "that are cut off": (DIVIDED.replace("v / t", "to_i32(v / t)"), False),
    "that are compared": (DIVIDED.replace("v / t", "select(v / t < 1.0, v, t)"), False),
    "of which the largest is wanted": (f"mapGlb(0, fun qs => {LARGEST}, {DIVIDED})", False),
    "that are exponents": (DIVIDED.replace("v / t", "pow(-2.0, v / t)"), False),
    "by which powers are taken": (DIVIDED.replace("v / t", "pow(v / t, 3.0)"), True),
    "whose whole part the next kernel takes": (f"mapGlb(0, fun row => mapSeq(floor, row), {DIVIDED})", False),
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


@pytest.mark.parametrize("next_one", [False, True])
def test_quotients_that_are_whole_stay_whole(next_one: bool, runner: Runner):
    """49 times the rounded reciprocal of 49 is less than 1, whichever kernel takes the whole part."""
    body = CASES["whose whole part the next kernel takes"][0] if next_one else DIVIDED.replace(EACH, BINS)
    program = parse_program(f"program p(X: [[f32]256]64, s: [f32]64) = {body}")
    s = np.arange(1, 65, dtype=np.float32)
    X = s[:, None] * np.arange(256, dtype=np.float32)
    runner.load_inputs("bins", {"X": X, "s": s})
    found = runner.run(compile_program(program, POCL), "bins")
    assert np.array_equal(found, np.tile(np.arange(256, dtype=np.float32), (64, 1)))


def test_names_of_scales_and_reciprocals_are_free(runner: Runner):
    program = parse_program("""
        program p(X: [[f32]64]16, s: [f32]16, a: f32) =
          let scale = abs(a) in
          mapGlb(0,
            fun (row, t) => let reciprocal = t * scale in mapSeq(fun v => v / reciprocal + scale, row),
            zip(X, s))
    """)
    X, s, a = np.ones((16, 64), np.float32), 2 ** np.arange(16, dtype=np.float32), np.float32(-4)
    runner.load_inputs("names", {"X": X, "s": s, "a": np.array(a)})
    found = runner.run(compile_program(program, POCL), "names")
    assert np.array_equal(found, X / (s[:, None] * 4) + 4)
