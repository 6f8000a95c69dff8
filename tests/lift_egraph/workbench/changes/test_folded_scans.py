"""Folds of scans become one fold of both, where that is parallel."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench import explain_way
from lift_egraph.workbench.changes.actions import with_actions
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.folded_scans import with_folded_scans
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn

SMALLEST = "fun ((v, i), (w, j)) => if w < v then (w, j) else (v, i)"
OF_ROWS = "fun (a, b) => map(add, zip(a, b))"
FOLDS = {
    "the smallest prefix sum": "reduce(min, 0.0, scan(add, 0.0, xs))",
    "the largest fall": "reduce(max, 0.0, map(fun (p, m) => p - m, zip(xs, scan(min, inf, xs))))",
    "the same with a name": "let m = scan(min, inf, xs) in reduce(max, 0.0, map(fun (p, m) => p - m, zip(xs, m)))",
    "where it is": f"reduce({SMALLEST}, (0, -1), zip(scan(add, 0, is), generate(64, id)))",
    "the longest run": "reduce(max, 0, scanSeq(fun (n, x) => select(x > 0, n + 1, 0), 0, is))",
    "how many": "reduce(add, 0, map(fun s => select(s > 9, 1, 0), scanExclusive(add, 0, is)))",
    "by a loop": "reduceSeq(fun (t, s) => min(t, s), 9.0, map(fun x => x + 1.0, scanExclusiveSeq(add, 0.0, xs)))",
    "of rows": "map(fun row => reduce(min, 0.0, scan(add, 0.0, row)), split(8, xs))",
    "of a scan of a scan": "reduce(max, 0, scan(min, 0, scan(max, 0, is)))",
    "second of three": "reduceSeq(fun (t, (x, (s, i))) => t + x * s, 0.0, zip(xs, scan(min, 9.0, xs), is))",
    "last of three": "reduce(add, 0.0, map(fun (x, i, s) => x * s, zip(xs, is, scanExclusive(min, 9.0, xs))))",
    "two of three": "reduce(max, 0.0, map(fun (x, s, q) => x - s + q, zip(xs, scan(min, 9.0, xs), "
    "scan(max, -9.0, xs))))",
    "all three": "reduce(max, 0.0, map(fun (a, b, c) => a - b + c, zip(scan(max, 0.0, xs), scan(min, 9.0, xs), "
    "scan(max, -9.0, xs))))",
    "a scan of what a map makes": "reduce(max, 0.0, map(fun (p, m) => p - m, zip(xs, scan(min, inf, map(abs, xs)))))",
    "beside what a map makes": "reduce(max, 0.0, map(fun (p, m) => p - m, zip(map(abs, xs), "
    "scan(min, inf, map(abs, xs)))))",
    "a map behind": "reduce(max, 0.0, map(fun (m, p) => p - m, zip(scan(min, inf, xs), map(abs, xs))))",
}
OTHERS = {
    "it is no fold that is parallel": "reduce(max, 0.0, scanSeq(fun (s, x) => s * s + x, 0.0, xs))",
    "the scan is read twice": "let s = scan(add, 0.0, xs) in (reduce(min, 0.0, s), s)",
    "rows read it": "let s = scan(add, 0.0, xs) in map(fun x => reduce(min, x, s), xs)",
    "a part is a product": "reduce(max, 0.0, map(fun (p, m) => p - m, zip(xs, scan(min, inf, map(fun x => "
    "reduce(add, 0.0, map(fun y => x * y, xs)), xs)))))",
    "rows are scanned": f"reduce({OF_ROWS}, fill(8, 0.0), scan({OF_ROWS}, fill(8, 0.0), split(8, xs)))",
}


def program(body: str) -> ir.Program:
    return parse_program(f"program p(xs: [f32]64, is: [i32]64) = {body}")


@in_turn(8)
@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_of_a_scan_is_one_fold(name: str):
    given = program(FOLDS[name])
    changes = Changes(POCL, Limits(iterations=MOST_STEPS), lambda phase: phase)
    _, (made, way) = next(changes.of((given.body, ())))
    assert way[0].name == "folded_scans"
    assert not any(isinstance(t, ir.SCANS + ir.SCAN_LOOPS) for t in ir.subterms(made))
    inputs = random_inputs(given, 0, "integer")
    sides = (list(leaves_of(evaluate(t, inputs))) for t in (given.body, made))
    assert all(np.array_equal(a, b) for a, b in zip(*sides, strict=True))


@pytest.mark.parametrize("name", OTHERS)
def test_other_scans_are_left(name: str):
    assert with_folded_scans(program(OTHERS[name]).body, Rows(POCL)) is None


def test_cascades_are_folded_where_chunks_keep_no_array():
    largest = "reduce(max, 0.0, map(fun (p, m) => p - m, zip(r, scan(min, inf, r))))"
    fall, few = parse_program(f"program p(r: [f32]4000) = {largest}").body, f"map(fun r => {largest}, A)"
    assert with_folded_scans(fall, Rows(POCL)) is not None
    assert with_folded_scans(fall, Rows(NVIDIA)) is None
    for count, is_folded in ((2, False), (300, True)):
        body = parse_program(f"program p(A: [[f32]4000]{count}) = {few}").body
        assert (with_folded_scans(body, Rows(POCL)) is not None) == is_folded


@in_turn(3)
def test_one_fold_is_explained():
    given = program("reduce(min, 0, scan(max, 0, is))")
    made = with_folded_scans(given.body, Rows(POCL))
    assert made is not None
    found = explain_way(given, (Leg("folded_scans", made, 3, "cpu"),))
    assert found.complete, str(found)
    assert found.sound
    assert "fold_of_scan" in {checked.step.rule.name for checked in found.steps}


@in_turn(6)
@pytest.mark.parametrize("name", ["all three", "a scan of what a map makes"])
def test_zips_of_three_and_mapped_arrays_are_explained(name: str):
    given = program(FOLDS[name])
    made = with_folded_scans(given.body, Rows(POCL))
    assert made is not None
    found = explain_way(given, (Leg("folded_scans", made, 16, "cpu"),))
    assert found.complete, str(found)
    assert found.sound
    used = {checked.step.rule.name for checked in found.steps}
    assert {"fold_of_scan", "scan_first" if name == "all three" else "scan_seq_fusion"} <= used


def test_folds_of_few_long_rows_are_reductions():
    text = "program p(A: [[f32]4000]2) = map(fun row => reduce(min, 0.0, scan(add, 0.0, row)), A)"
    made = with_folded_scans(parse_program(text).body, Rows(POCL))
    assert made is not None
    acted = with_actions(made, Rows(POCL))
    assert acted is not None
    assert any(isinstance(t, ir.Reduce) for t in ir.subterms(acted))
