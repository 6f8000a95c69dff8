"""Stages that are little become a row's, which one group computes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.derivation.derive import Step, derive, replay, turned
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.changes.one_row import with_one_row
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.phases import Leg
from tests.reaching import leads_to

SHARES = "let s = reduce(add, 0.0, {x}) in map(fun v => v / s, {x})"
LITTLE = {
    "of an input": ("xs: [f32]70", SHARES.format(x="xs")),
    "of two inputs": (
        "xs: [f32]70, ys: [f32]9",
        "let m = reduce(max, 0.0, xs) in let s = reduce(add, 0.0, ys) in map(fun x => (x - m) * s, xs)",
    ),
    "beside places": (
        "xs: [f32]70, k: f32",
        "let s = reduce(add, k, xs) in "
        "map(fun (x, i) => if i < 9 then x / s else x, zip(xs, generate(70, fun i => i)))",
    ),
    "of what has a name": (
        "A: [[f32]8]9",
        f"let y = map(fun a => reduce(add, 0.0, a), A) in {SHARES.format(x='y')}",
    ),
    "of what has none": ("A: [[f32]2]1500", "reduce(add, 0.0, map(fun a => reduce(max, 0.0, a), A)) * 2.0"),
    "of a slice": ("xs: [f32]70", "let s = reduce(add, 0.0, slice(3, 60, xs)) in map(fun x => x / s, xs)"),
    "of a step": (
        "A: [[f32]8]8, v: [f32]8",
        "iterate(3, fun x => let y = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A) in "
        f"{SHARES.format(x='y')}, v)",
    ),
}
NOT = {
    "one kernel does": ("xs: [f32]70", "reduce(add, 0.0, xs)"),
    "no fold": ("xs: [f32]70", "let y = map(fun x => x + 1.0, xs) in map(fun x => x * x, y)"),
    "too long": ("xs: [f32]100000", SHARES.format(x="xs")),
    "much is computed": (
        "xs: [f32]60000",
        f"let s = reduce(add, 0.0, xs) in map(fun x => {' + '.join(['x * s'] * 10)}, xs)",
    ),
    "in order": (
        "xs: [f32]70",
        "let s = reduceSeq(fun (s, x) => s * 0.5 + x, 0.0, xs) in map(fun x => x - s, xs)",
    ),
    "rows": ("A: [[f32]8]9", f"map(fun a => {SHARES.format(x='a')}, A)"),
    "empty": ("xs: [f32]0", SHARES.format(x="xs")),
}


def program(text: tuple[str, str]) -> ir.Program:
    return parse_program("program p({}) = {}".format(*text))


def legs(term: ir.Expr) -> list[Leg]:
    *named, alone = with_one_row(term, 48 << 10)
    return [*(Leg("naming", t, 8, "gpu") for t in named), Leg("one_row", alone, 8, "gpu")]


@pytest.mark.parametrize("name", LITTLE)
def test_what_is_little_is_a_row(name: str):
    given = program(LITTLE[name])
    now = given.body
    for leg in legs(now):
        assert leads_to(*((leg.term, leg.phase, now) if leg.is_backwards else (now, leg.phase, leg.term)))
        now = leg.term
    inputs = random_inputs(given, 0, "float")
    before, after = (list(leaves_of(evaluate(t, inputs))) for t in (given.body, now))
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NOT)
def test_other_programs_stay_as_they_are(name: str):
    assert with_one_row(program(NOT[name]).body, 48 << 10) == []


def test_what_does_not_fit_is_a_kernel_before():
    shares = f"let e = map(fun x => exp(x), xs) in {SHARES.format(x='e')}"
    fits, does_not = (legs(program((f"xs: [f32]{n}", shares)).body)[-1].term for n in (8000, 20000))
    assert isinstance(fits, ir.At)
    assert isinstance(does_not, ir.Apply)


def test_a_search_for_gpus_begins_with_it():
    term = program(LITTLE["of what has a name"]).body
    limits = replace(Budget(1).phase_limits, iterations=MOST_STEPS)
    ways = {d.name: [p.name for p, _ in Changes(d, limits, lambda p: p).of((term, ()))] for d in (NVIDIA, POCL)}
    assert ways["nvidia"][:2] == ["naming", "one_row"]
    assert ways["pocl"] == []
    as_it_is = program(NOT["no fold"]).body
    assert not [*Changes(NVIDIA, limits, lambda p: p).of((as_it_is, ()))]


def test_names_are_derived_from_the_end():
    given = program(LITTLE["of an input"])
    leg = legs(given.body)[0]
    steps = [s for s in turned(derive(leg.term, given.body, leg.phase, 8)) if isinstance(s, Step)]
    assert alpha_equal(steps[0].before, given.body)
    assert alpha_equal(steps[-1].after, leg.term)
    assert all(alpha_equal(a.after, b.before) for a, b in pairwise(steps))
    assert all(step.backwards and replay(step, leg.phase) for step in steps)


@pytest.mark.parametrize("result", ["f32", "pair", "array"])
def test_one_group_writes_the_result(result: str):
    """No other kernel copies what is at the first place of an array of one."""
    total = "reduceSeq(add, 0.0, toLocal(mapLcl(0, fun x => x * x, row)))"
    of_total = {"f32": "t", "pair": "(t, t * t)", "array": "mapLcl(0, fun x => x * t, row)"}
    row = f"fun row => let t = {total} in {of_total[result]}"
    given = parse_program(f"program p(xs: [f32]64) = at(0, mapWrg(0, {row}, split(64, xs)))")
    assert len(compile_program(given, NVIDIA).kernels) == 1
