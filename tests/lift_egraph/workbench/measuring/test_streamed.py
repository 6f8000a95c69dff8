"""The results of kernels as streams: which are tried, and that their derivation is a step by a rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.measuring.streamed import streamed
from lift_egraph.workbench.phases import Found, naive_leg
from tests.codegen.low_level import with_caches
from tests.reaching import leads_to

TWICE = "mapGlb(0, fun row => mapSeq(fun x => x * 2.0, row), A)"
DEVICE = with_caches(POCL, 1024)


def candidate(body: str, rows: int = 16) -> Candidate:
    program = parse_program(f"program twice(A: [[f32]16]{rows}) = {body}")
    plan = compile_program(program, DEVICE)
    return Candidate(program, plan, 1.0, 1.0, (naive_leg(program.body, "cpu"),))


def one(found: list[Found]) -> Found:
    (only,) = found
    return only


@pytest.mark.parametrize(
    "body",
    [
        TWICE,
        f"join({TWICE})",
        f"let u = toGlobal({TWICE}) in transpose(mapGlb(0, fun row => mapSeq(fun x => x + 1.0, row), u))",
    ],
)
def test_long_results_are_tried_as_streams_by_the_rule_alone(body: str):
    given = candidate(body)
    found = one(list(streamed(given, DEVICE)))
    leg = found.way[-1]
    assert leads_to(given.program.body, leg.phase, found.term)
    assert [t.space for t in ir.subterms(found.term) if isinstance(t, ir.ToMemory) and t.space == "stream"] == [
        "stream"
    ]
    assert leg.name == "streams"


@pytest.mark.parametrize(
    ("given", "device"),
    [
        pytest.param(candidate(TWICE, 15), DEVICE, id="the cache holds it"),
        pytest.param(candidate(TWICE), with_caches(NVIDIA, 1024), id="no such stores on the device"),
        pytest.param(replace(candidate(TWICE), way=()), DEVICE, id="not found by a search"),
    ],
)
def test_others_are_not(given: Candidate, device: Device):
    assert not list(streamed(given, device))


def test_a_stream_is_not_tried_as_one_again():
    given = candidate(TWICE)
    found = one(list(streamed(given, DEVICE)))
    again = replace(given, program=replace(given.program, body=found.term), way=found.way)
    assert not list(streamed(again, DEVICE))
