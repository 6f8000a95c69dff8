"""How tiles follow each other in local memory: which ways are tried, and that their derivation is a step by a rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.measuring.turns import in_turns
from lift_egraph.workbench.phases import naive_leg
from tests.reaching import leads_to

SUMS = """join(mapWrg(0, fun rows =>
    mapLcl(0, id, reduceSeq(
      fun (sums, tile) =>
        let near = toLocal(mapSeq(mapLcl(0, id), tile)) in
        mapLcl(0, fun (s, line) => s + reduceSeq(add, 0.0, line), zip(sums, gather(reverse, transpose(near)))),
      fill(16, 0.0), split(8, transpose(toLocal(mapSeq(mapLcl(0, id), rows)))))),
    split(16, A)))"""


def candidate(body: str) -> Candidate:
    program = parse_program(f"program sums(A: [[f32]40]64) = {body}")
    return Candidate(program, compile_program(program, NVIDIA), 1.0, 1.0, (naive_leg(program.body, "gpu"),))


def spaces(term: ir.Expr) -> list[str]:
    return [t.space for t in ir.subterms(term) if isinstance(t, ir.ToMemory)]


def test_tiles_of_loops_are_tried_in_each_way_by_the_rule_alone():
    given = candidate(SUMS)
    found = list(in_turns(given, NVIDIA))
    assert [spaces(f.term) for f in found] == [[space, "local"] for space in ir.TILE_SPACES]
    for way in found:
        assert way.way[-1].name == "turns"
        assert leads_to(given.program.body, way.way[-1].phase, way.term)
        again = replace(given, program=replace(given.program, body=way.term), way=way.way)
        assert not list(in_turns(again, NVIDIA))


@pytest.mark.parametrize(
    ("given", "device"),
    [
        pytest.param(candidate(SUMS.replace("let near = toLocal(mapSeq(mapLcl(0, id), tile))", "let near = tile")),
                     NVIDIA, id="no loop copies"),
        pytest.param(candidate(SUMS), POCL, id="a device that reads nothing ahead"),
        pytest.param(replace(candidate(SUMS), way=()), NVIDIA, id="not found by a search"),
    ],
)  # fmt: skip
def test_others_are_not(given: Candidate, device: Device):
    assert not list(in_turns(given, device))
