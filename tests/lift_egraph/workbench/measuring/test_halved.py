"""Loops over the lanes of a vector by halves: which are tried, and that their derivation is steps by a rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.measuring.halved import halved
from lift_egraph.workbench.phases import Found, naive_leg
from tests.reaching import leads_to


def row(op: str, initial: str, width: int = 8) -> str:
    vectors = f"asVector({width}, transpose(split({width}, r)))"
    lanes = f"asScalar(mapSeq(vectorize({width}, reduceSeq({op}, {initial})), {vectors}))"
    return f"mapGlb(0, fun r => reduceSeq({op}, {initial}, {lanes}), X)"


def candidate(body: str) -> Candidate:
    program = parse_program(f"program rows(X: [[f32]64]3) = {body}")
    return Candidate(program, compile_program(program, POCL), 1.0, 1.0, (naive_leg(program.body, "cpu"),))


def exact(given: Candidate) -> Candidate:
    return replace(given, way=tuple(replace(leg, exact=True) for leg in given.way))


def one(found: list[Found]) -> Found:
    (only,) = found
    return only


@pytest.mark.parametrize(("op", "initial"), [("add", "1.5"), ("max", "-inf")])
def test_lanes_are_combined_by_halves_by_the_rule_alone(op: str, initial: str, runner: Runner):
    given = candidate(row(op, initial))
    found = one(list(halved(given, POCL)))
    leg = found.way[-1]
    assert leads_to(given.program.body, leg.phase, found.term)
    assert (leg.name, leg.iterations) == ("halves", 2)
    program = replace(given.program, body=found.term)
    plan, inputs = compile_program(program, POCL), random_inputs(program, 0, "integer")
    assert "float4" in plan.source
    assert "float2" in plan.source
    runner.load_inputs(op, inputs)
    assert np.array_equal(runner.run(plan, op), evaluate(given.program.body, inputs))


@pytest.mark.parametrize(
    ("given", "device"),
    [
        pytest.param(candidate(row("add", "0.0", 2)), POCL, id="two lanes"),
        pytest.param(candidate(row("add", "0.0")), NVIDIA, id="work-items are the lanes"),
        pytest.param(candidate(row("(fun (acc, x) => acc - x)", "0.0")), POCL, id="the order counts"),
        pytest.param(replace(candidate(row("add", "0.0")), way=()), POCL, id="not found by a search"),
        pytest.param(exact(candidate(row("add", "0.0"))), POCL, id="sums stay in their order"),
    ],
)
def test_others_are_not(given: Candidate, device: Device):
    assert not list(halved(given, device))


def test_what_is_halved_is_not_halved_again():
    given = candidate(row("add", "0.0"))
    found = one(list(halved(given, POCL)))
    again = replace(given, program=replace(given.program, body=found.term), way=found.way)
    assert not list(halved(again, POCL))
