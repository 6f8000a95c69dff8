"""Schedules compared on one program, and how an e-graph grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.api import Growth, alpha_equal, equal_values, evaluate, programs, rules, specialise, stage, tiling
from lift_egraph.egraph.saturate import Limits, Phase, StopReason, run_phase
from lift_egraph.errors import InputProblem
from lift_egraph.guided.schedules import Comparison, compare
from lift_egraph.guided.sketch import map_, nest, reduce_seq
from lift_egraph.guided.stages import Reached
from lift_egraph.meaning.inputs import random_inputs
from tests.depth import in_turn
from tests.in_process import no_children

MM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})
ALL = Phase("everything", rules.algorithmic, rules.simplification, {8: (4,)}, (), Limits(iterations=3))
TILE = tiling((8, 8), (4, 4)).stages[0]
LOOPS = stage("loops", rules.reduction.loop_rules, nest(map_(), map_(), reduce_seq()))
SEEN: list[tuple[str, Reached]] = []


@pytest.fixture(scope="module")
def found() -> Comparison:
    tiled = nest(map_(length=2), map_(length=2), map_(length=4), map_(length=4))
    return compare(
        MM,
        {"at once": (ALL,), "in steps": (TILE, LOOPS)},
        (tiled, nest(reduce_seq())),
        on_iteration=lambda name, run: SEEN.append((name, run)),
    )


@in_turn(3)
def test_each_phase_starts_from_what_the_last_one_reached(found: Comparison):
    assert [r.stage.phase.name for r in found["in steps"].runs] == ["tile", "loops"]
    assert [r.stop_reason for r in found["in steps"].runs] == [StopReason.SATISFIED] * 2
    assert [r.stop_reason for r in found["at once"].runs] == [StopReason.ITERATIONS]
    inputs = random_inputs(MM, 0, "integer")
    for outcome in found.outcomes:
        assert equal_values(evaluate(outcome.term, inputs), evaluate(MM.body, inputs))
        assert outcome.seconds == sum(r.seconds for r in outcome.runs)
    assert alpha_equal(found["at once"].term, MM.body)  # nothing is shorter
    (first, *_), (last, *_) = SEEN, SEEN[::-1]
    assert (first[0], first[1].iterations) == ("at once", ())
    assert last == ("in steps", found["in steps"].runs[-1])


def test_what_only_one_reaches(found: Comparison):
    tiled, looped = found.sketches
    assert all(outcome.reaches(tiled) is not None for outcome in found.outcomes)
    reached = found["in steps"].reaches(looped)
    assert reached is not None
    assert found["at once"].reaches(looped) is None
    assert found["in steps"].holds(reached)
    assert not found["at once"].holds(reached)
    assert found["at once"].holds(MM.body)
    only = found.only_in("in steps", 10)
    assert only
    assert all(found["in steps"].holds(t) and not found["at once"].holds(t) for t in only)
    drawn = found["in steps"].draw(10)
    assert drawn == found["in steps"].draw(10)
    assert len(drawn) == len(set(drawn))


def test_the_comparison_is_a_table(found: Comparison):
    text = str(found)
    assert text.startswith("schedule  phase       ended by          iterations  seconds")
    assert "\nin steps  tile        sketch satisfied" in text
    assert "\n          loops       sketch satisfied" in text
    rows = [line.split() for line in text.splitlines()]
    assert [str(found.sketches[1]), "no", "yes"] in rows
    assert "at once ends with\n  map(\n    fun row =>" in text
    assert " terms drawn from in steps, " in text


@no_children()
def test_equal_schedules_have_nothing_of_their_own():
    short = replace(ALL, limits=Limits(iterations=2))
    again = compare(MM, {"one": (short,), "two": (short,)})
    assert not again.only_in("one", 10)
    assert not again.only_in("two", 10)


@no_children()
def test_a_stage_that_fails_ends_its_schedule():
    never = stage("never", (), nest(map_(length=3)))
    (outcome,) = compare(MM, {"stuck": (never, LOOPS)}).outcomes
    assert [r.stage.phase.name for r in outcome.runs] == ["never"]
    assert outcome.runs[0].term is None
    assert alpha_equal(outcome.term, MM.body)


def test_what_arrived_before_an_interrupt_is_kept():
    def interrupt(name: str, run: Reached) -> None:
        if len(run.iterations) == 2:
            raise KeyboardInterrupt

    (outcome,) = compare(MM, {"cut short": (ALL, LOOPS)}, on_iteration=interrupt).outcomes
    assert [(r.stage.phase.name, r.stop_reason, len(r.iterations)) for r in outcome.runs] == [
        ("everything", StopReason.INTERRUPTED, 2)
    ]
    assert outcome.holds(MM.body)
    assert outcome.last.graph.tuples == outcome.runs[0].tuples


def test_schedules_without_phases_are_refused():
    with pytest.raises(InputProblem, match="the schedule nothing has no phases"):
        compare(MM, {"something": (ALL,), "nothing": ()})
    with pytest.raises(InputProblem, match="no schedules to compare"):
        compare(MM, {})


@in_turn(3)
def test_growth_is_that_of_the_e_graph():
    states = list(run_phase(MM.body, ALL, by_rule=True))
    growth = Growth(states[-1].iterations)
    for state in states[1:]:
        last = state.iterations[-1]
        graph = state.graph
        assert (last.tuples, last.nodes, last.classes) == (graph.tuples, graph.node_count, graph.class_count)
    plain = list(run_phase(MM.body, ALL))
    assert [i.tuples for i in plain[-1].iterations] == [i.tuples for i in growth.iterations]  # asking changes nothing
    alone = replace(ALL, rules=(rules.split_join.split_join,), simplification=(), limits=Limits(iterations=1))
    *_, split = run_phase(MM.body, alone)
    before = states[0].graph
    added = split.graph.node_count - before.node_count, split.graph.class_count - before.class_count
    assert (growth.nodes["split_join"][0], growth.classes["split_join"][0]) == added
    assert added > (0, 0)
    assert {name for i in growth.iterations for name, count in i.matches.items() if count} == set(growth.nodes)
    totals = [sum(counts) for counts in growth.nodes.values()]
    assert totals == sorted(totals, reverse=True)
    lines = str(growth).splitlines()
    assert lines[0].split() == ["iteration", "1", "2", "3"]
    assert lines[2].split() == ["e-nodes", *(str(i.nodes) for i in growth.iterations)]
    assert len({len(line) for line in lines}) == 1
