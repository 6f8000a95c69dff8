"""How near a stage came that failed: the nearest term, the part of the sketch that it lacks, and who makes that."""

from __future__ import annotations

import pytest

from lift_egraph.api import Limits, Phase, SketchProblem, alpha_equal, guide, makers, parse_program, rules, run_phase
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.matcher import Matcher
from lift_egraph.guided.nearest import nearest
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.workbench.exploration.why_not import why_not_reached
from tests.in_process import no_children

PROGRAM = parse_program("program p(xs: [f32]64) = map(fun x => sqrt(abs(x)), xs)")
PHASE = Phase("parts", (rules.split_join.split_join,), rules.simplification, {64: (8,)}, limits=Limits(iterations=2))
WANTED = sk.join(sk.map_(sk.map_(sk.call("sqrt"), length=8), sk.to_memory("local")))


def test_the_nearest_term_has_all_but_one_part():
    *_, last = run_phase(PROGRAM.body, PHASE)
    found = nearest(Matcher(last.graph), last.root, WANTED)
    assert found is not None
    assert found.lacks == sk.to_memory("local")
    split = parse_program("program p(xs: [f32]64) = join(map(fun c => map(fun x => sqrt(abs(x)), c), split(8, xs)))")
    assert alpha_equal(found.term, split.body)


def test_where_two_parts_are_missing_what_has_both_is():
    *_, last = run_phase(PROGRAM.body, PHASE)
    matcher = Matcher(last.graph)
    both = sk.map_(sk.call("sin"), sk.to_memory("local"))
    found = nearest(matcher, last.root, sk.join(both))
    assert found is not None
    assert found.lacks == both
    assert nearest(matcher, last.root, sk.slide(3, 1, both)) is None


@no_children()
def test_a_failed_search_says_what_its_nearest_term_lacks():
    found = guide(PROGRAM.body, (Stage(PHASE, WANTED),))
    with pytest.raises(SketchProblem, match=r"there is no toLocal at all; the nearest term lacks toLocal:\njoin"):
        _ = found.term


def test_a_failed_stage_of_a_plan_names_rules_that_it_did_not_have():
    *_, (reached, saturation) = search_stage(PROGRAM.body, Stage(PHASE, sk.join(sk.map_(sk.ANY, sk.transpose()))))
    text = why_not_reached(reached, saturation)
    assert "lacks transpose; of other rules " in text
    named = text.partition("of other rules ")[2].partition(" and ")[0].split(", ")
    book = {rule.name: rule for rule in rules.all_rules}
    assert set(named) <= {rule.name for rule in makers(sk.transpose(), book.values())}
    assert "partial_reduce_strided" in named


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (sk.map_level("mapGlb(0)"), "map_to_glb0"),
        (sk.map_level("mapPar"), "map_to_glb0"),
        (sk.call("dot"), "reduce_by_dot"),
        (sk.as_vector(4), "vectorise_map"),
        (sk.vectorize(4), "vectorise_map"),
        (sk.contains(sk.reduce_seq(length=4)), "reduce_to_seq"),
    ],
)
def test_makers(part: sk.Sketch, name: str):
    found = [rule.name for rule in makers(part, rules.all_rules)]
    assert name in found
    assert len(found) < len(rules.all_rules) / 2


def test_nothing_makes_any_term():
    assert makers(sk.ANY, rules.all_rules) == ()


def test_makers_of_most_of_a_part_come_first():
    assert makers(sk.transpose(sk.split(8)), rules.all_rules)[0] is rules.partial_reduce_strided
