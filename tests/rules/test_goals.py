"""The goals of the benchmark, at a size that the interpreter can check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lift_egraph.api import equal_values, evaluate, guide, random_inputs, type_of
from lift_egraph.egraph.saturate import StopReason
from lift_egraph.language import ir
from tests.depth import in_turn

pytestmark = pytest.mark.usefixtures("in_process")

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import goals  # noqa: E402
import tiling  # noqa: E402

SMALL = goals.Problem(size=16, tile=8, chunk=4, lanes=4)


@in_turn(6)
@pytest.mark.parametrize("goal", goals.goals(SMALL), ids=lambda goal: goal.name)
def test_a_goal_is_reached_in_three_sketches_and_keeps_the_result(goal):
    assert len(goal.stages) <= 3
    found = guide(SMALL.program.body, goal.stages)
    assert found.found, found.stages[-1].why_not
    assert all(s.stop_reason is StopReason.SATISFIED and s.iterations for s in found.stages)
    inputs = random_inputs(SMALL.program, 0, "integer")
    assert equal_values(evaluate(found.term, inputs), evaluate(SMALL.program.body, inputs))
    below = {type(t) for t in ir.subterms(found.term)}
    assert (ir.Vectorize in below) == (goal.name not in ("baseline", "blocking"))
    spaces = {t.space for t in ir.subterms(found.term) if isinstance(t, ir.ToMemory)}
    assert ("global" in spaces) == (goal.name in ("array packing", "cache blocks", "parallel"))
    assert ("private" in spaces) == (goal.name in ("cache blocks", "parallel"))
    parallel = {t.level.kind for t in ir.subterms(found.term) if isinstance(t, ir.MapLevel)} - {"seq"}
    assert parallel == ({"glb"} if goal.name == "parallel" else set())


@in_turn(6)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_tiling_is_found_in_every_dimension_and_keeps_the_result(dimensions: int):
    sizes = tiling.lengths(dimensions, 2)
    program = tiling.program(sizes)
    found = tiling.tiling(sizes, 2)(program.body)
    assert len(found.stages) == dimensions
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(found.term, inputs), evaluate(program.body, inputs))
    maps = [t.array for t in ir.subterms(found.term) if isinstance(t, ir.Map)]
    assert {t.size.constant for t in map(type_of, maps)} >= {2, *range(5, 5 + dimensions)}
