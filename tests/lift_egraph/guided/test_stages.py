"""Guided search: stages with seeds, early ends, and why a stage fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from egglog import rewrite

from lift_egraph.api import SketchProblem, equal_values, evaluate, programs, rules, sketch as sk, specialise
from lift_egraph.egraph.rule import rule
from lift_egraph.egraph.saturate import Limits, Phase, StopReason
from lift_egraph.egraph.sorts import Ex, transpose as transpose_
from lift_egraph.errors import RunProblem
from lift_egraph.guided.stages import Reached, Stage, guide
from lift_egraph.meaning.inputs import random_inputs
from tests.depth import in_turn
from tests.in_process import no_children

MM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})
RESTRICTED = (*rules.interchange.interchange_rules, rules.split_join.split_join, rules.fusion.map_fission)
SPLIT = Phase("split", RESTRICTED, rules.simplification, {8: (4,)})
MOVE = Phase("reorder", rules.interchange.interchange_rules, rules.simplification)
ALL = Phase("tile", rules.algorithmic, rules.simplification, {8: (4,)}, (), Limits(iterations=9, nodes=30_000))
LOOP = Stage(
    Phase("loops", rules.reduction.loop_rules, rules.simplification), sk.parse_nest("map 2 > map 2 > reduceSeq")
)


def untile(body: sk.Sketch) -> sk.Sketch:
    """Blocks put together again."""
    return sk.join(sk.map_(sk.map_(sk.join(), sk.transpose(sk.map_(body, length=2))), length=2))


def test_each_stage_starts_from_the_term_before():
    seen: list[Reached] = []
    tiled = untile(sk.map_(sk.map_(sk.reduce_(), length=4), length=4))
    inside = untile(sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(sk.map_(sk.call("mul"))), sk.zip_()), length=8))
    found = guide(MM.body, (Stage(SPLIT, tiled), Stage(MOVE, inside), LOOP), on_iteration=seen.append)
    assert found.found
    assert [s.stop_reason for s in found.stages] == [StopReason.SATISFIED] * 3
    assert len(seen) == sum(len(s.iterations) + 1 for s in found.stages)  # the start, and each iteration
    inputs = random_inputs(MM, 0, "integer")
    for stage in found.stages:
        assert stage.term is not None
        assert equal_values(evaluate(stage.term, inputs), evaluate(MM.body, inputs))
        assert stage.nodes > stage.classes > 0
        assert stage.peak_mb > 10
    assert found.seconds == sum(s.seconds for s in found.stages)


@no_children()
def test_a_dot_product_takes_the_built_in_function():
    program = specialise(programs.load("dot"), {"N": 16})
    vector = rules.opencl_vector
    used = (vector.vectorise_map, vector.vectorise_zip, vector.reduce_by_dot, *rules.reduction.loop_rules)
    phase = Phase("vectors", used, rules.simplification, widths=(4,))
    found = guide(
        program.body, (Stage(phase, sk.reduce_seq(sk.contains(sk.call("dot")), sk.ANY, sk.zip_(), length=4)),)
    )
    assert found.found, found.stages[-1].why_not
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(found.term, inputs), evaluate(program.body, inputs))


@no_children()
def test_a_stage_ends_with_the_iteration_that_satisfies_it():
    found = guide(MM.body, (Stage(ALL, sk.nest(sk.map_(length=2), sk.map_(length=4))),))
    assert len(found.stages[0].iterations) == 1
    assert not guide(MM.body, (Stage(ALL, sk.nest(sk.map_(length=8), sk.map_(length=8))),)).stages[0].iterations


@no_children()
def test_a_failure_names_the_stage_and_the_part():
    short = replace(ALL, limits=replace(ALL.limits, iterations=1))
    found = guide(
        MM.body, (Stage(short, sk.nest(sk.map_(length=2))), Stage(short, sk.nest(sk.reduce_seq(length=2))), LOOP)
    )
    assert not found.found
    assert len(found.stages) == 2
    with pytest.raises(SketchProblem) as problem:
        _ = found.term
    assert "stage 2 of 3, tile, ended (iteration limit) after 1 iterations" in str(problem.value)
    assert "there is no reduceSeq at all" in str(problem.value)


@in_turn(2)
def test_a_stage_that_is_cut_short_keeps_its_figures():
    endless = replace(ALL, tiles={8: (2, 4)}, limits=Limits(iterations=99, nodes=10**9, seconds=60, memory_mb=200))
    found = guide(MM.body, (Stage(endless, sk.nest(sk.map_(length=5))),))
    assert found.stages[0].stop_reason is StopReason.MEMORY
    assert found.stages[0].tuples > 1000
    assert "map 5" in found.stages[0].why_not


@rule("transpose (transpose xs) = xs")
def fails_when_it_is_read(xs: Ex):
    yield rewrite(transpose_(transpose_(xs))).to(nothing_of_this_name)  # noqa: F821  # pyright: ignore


def test_a_rule_that_fails_is_what_a_failure_says():
    with pytest.raises(RunProblem, match="NameError: name 'nothing_of_this_name' is not defined"):
        guide(MM.body, (Stage(replace(ALL, rules=(fails_when_it_is_read,)), sk.nest(sk.map_(length=5))),))


def test_nothing_to_do_is_the_program():
    assert guide(MM.body, ()).term is MM.body
