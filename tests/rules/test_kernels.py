"""What macro rules derive becomes kernels that are right: tiles in local memory, packed arrays, wide vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.api import guide, parse_program, programs, specialise
from lift_egraph.guided.sketch import call, reduce_seq
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.rules.macros import Macro, local_tiles, overlapped_tiling, overlapped_tiling_2d
from lift_egraph.rules.reduction import combine_lifted
from lift_egraph.workbench import compile_low_level
from tests.depth import in_turn
from tests.rules.test_goals import SMALL, goals

pytestmark = pytest.mark.usefixtures("in_process")

SUMS = parse_program(
    "program sums(xs: [f32]128) = map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(1, 1, clamp, xs)))"
)
JACOBI = specialise(programs.load("j2d5pt"), {"M": 32, "N": 64})


def kernels(program: ir.Program, term: ir.Expr) -> list[str]:
    """The text of the kernels, whose results are held against the interpreter's."""
    found = compile_low_level(ir.Program(program.name, program.inputs, term))
    assert found.verdict.valid
    return [k.source for k in found.plan.kernels]


@in_turn(6)
@pytest.mark.parametrize(
    ("program", "macro", "tile"),
    [
        (SUMS, overlapped_tiling(128, 16, 3) + local_tiles(1, reduce_seq(length=3)), 18),
        (JACOBI, overlapped_tiling_2d((32, 64), (8, 16), 3) + local_tiles(2, call("mul")), 10 * 18),
    ],
    ids=["1D", "2D"],
)
def test_overlapping_tiles_in_local_memory(program: ir.Program, macro: Macro, tile: int):
    (text,) = kernels(program, macro(program.body).term)
    assert f"local float tmp[{tile}];" in text
    assert text.count("barrier(CLK_LOCAL_MEM_FENCE);") == 1
    assert "get_group_id(0)" in text


@in_turn(3)
def test_packed_arrays_and_wide_vectors():
    """The last of the seven goals, with every operator unfolded to loops, as a kernel needs it."""
    *first, last = goals.goals(SMALL)[-1].stages
    rules = (*last.phase.rules, combine_lifted)
    last = replace(last, weigh=lowered, phase=replace(last.phase, rules=rules))
    (text,) = kernels(SMALL.program, guide(SMALL.program.body, (*first, last)).term)
    assert "global float *restrict tmp" in text
    assert "float4_u *)(tmp" in text
    assert "get_global_id(0)" in text
