"""The legality of the best terms, and how many are kept."""

from __future__ import annotations

import pytest

from lift_egraph.api import Limits, Phase, StructuralCost, programs as bundled, run_phase, specialise
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.errors import ModelProblem
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import type_of
from lift_egraph.language.nesting import check_nesting
from lift_egraph.language.syntax import parse_program
from lift_egraph.rules import algorithmic, lowering, simplification


def test_a_cost_that_is_no_number(lowered):
    class Unsure(StructuralCost):
        def rate(self, *_):
            return Rating(float("nan"), None)

    with pytest.raises(ModelProblem, match=r"^the cost model Unsure rates a node \w+ with nan; a cost is a number$"):
        best_terms(lowered, lowered.roots["root"], Unsure(), 1)


@pytest.fixture(scope="module")
def lowered() -> FrozenEGraph:
    program = specialise(bundled.load("mm"), {"M": 8, "K": 8, "N": 8})
    phase = Phase("test", algorithmic[:3] + lowering, simplification, tiles={8: (4,)}, limits=Limits(iterations=3))
    *_, last = run_phase(program.body, phase)
    return last.graph


def test_lowered_terms_are_legal_and_distinct(lowered):
    found = best_terms(lowered, lowered.roots["root"], StructuralCost(units=8, lowered=True), 60)
    assert len(found) > 10
    assert len({canonical(e.term) for e in found}) == len(found)
    assert [e.cost for e in found] == sorted(e.cost for e in found)
    for e in found:
        check_nesting(e.term)
        assert any(isinstance(t, ir.MapLevel) and t.level.kind in ("glb", "wrg") for t in ir.subterms(e.term))


def test_what_is_not_lowered_is_not_found(lowered):
    for e in best_terms(lowered, lowered.roots["root"], StructuralCost(units=8, lowered=True), 20):
        assert not any(isinstance(t, ir.Reduce) for t in ir.subterms(e.term))
    unlowered = best_terms(lowered, lowered.roots["root"], StructuralCost(), 1)
    assert unlowered[0].cost <= 1e6


@pytest.mark.parametrize("to", ["toLocal", "toLocalAhead", "toLocalTwice"])
def test_local_memory_has_no_place_around_groups(to: str):
    body = f"{to}(mapWrg(0, fun row => mapLcl(0, abs, row), xs))"
    *_, last = run_phase(parse_program(f"program p(xs: [[f32]4]8) = {body}").body, Phase("none", (), ()))
    assert not best_terms(last.graph, last.graph.roots["root"], StructuralCost(units=8, lowered=True), 1)


@pytest.mark.parametrize(
    "body",
    [
        "let a = mapGlb(1, mapGlb(0, abs), xs) in mapLcl(1, mapLcl(0, abs), a)",
        "let a = mapGlb(1, mapGlb(0, abs), xs) in let b = mapLcl(1, mapLcl(0, abs), xs) in zip(a, b)",
        "let a = mapGlb(1, mapGlb(0, abs), xs) in let b = mapLcl(0, fun r => r, xs) in mapGlb(1, mapGlb(0, abs), a)",
        "mapSeq(fun row => mapLcl(0, abs, row), mapGlb(1, mapGlb(0, abs), xs))",
        "reduceSeq(fun (a, row) => mapLcl(0, add, zip(a, row)), fill(4, 0.0), mapGlb(1, mapGlb(0, abs), xs))",
    ],
)
def test_what_work_items_share_has_no_place_beside_kernels(body: str):
    *_, last = run_phase(parse_program(f"program p(xs: [[f32]4]8) = {body}").body, Phase("none", (), ()))
    assert not best_terms(last.graph, last.graph.roots["root"], StructuralCost(units=8, lowered=True), 1)


def test_per_shape_and_key_limit_what_is_kept(lowered):
    model = StructuralCost(units=8, lowered=True)
    root = lowered.roots["root"]
    by_skeleton = best_terms(lowered, root, model, 20, key=skeleton)
    assert len({skeleton(e.term) for e in by_skeleton}) == len(by_skeleton)
    few = best_terms(lowered, root, model, 100, per_shape=1)
    assert len(few) <= len(KBest(lowered, model).vertices(root))


LETS = """program f(xs: [f32]64) = map(fun x =>
    let a = x + 1.0 in let b = x * 2.0 in let c = sqrt(b) in max(1.0, min(2.0, 3.0 / (a + 4.0 * (b - c)))), xs)"""


def test_where_numbers_get_their_names_is_no_other_computation():
    outside, inside, again, loop = (
        skeleton(parse_program(f"program f(x: f32, xs: [f32]8) = {body}").body)
        for body in (
            "let d = x + 1.0 in max(2.0, d)",
            "max(2.0, let d = x + 1.0 in d)",
            "let d = x + 1.0 in max(d, d + 1.0)",
            "at(0, map(fun y => let d = y + 1.0 in max(2.0, d), xs))",
        )
    )
    assert outside == inside
    assert len({outside, again, loop}) == 3
    assert outside == skeleton(parse_program("program f(x: f32, xs: [f32]8) = max(2.0, x + 1.0)").body)
    before, within = (
        skeleton(parse_program(f"program f(x: f32, xs: [f32]8) = {body}").body)
        for body in ("let d = x + 1.0 in map(fun y => y * d, xs)", "map(fun y => let d = x + 1.0 in y * d, xs)")
    )
    assert before != within  # it is computed once, or in each step


def test_names_of_numbers_in_other_places_come_after_other_loops():
    """A let could stand at many places of a long expression: nine tries are spent on loops."""
    program = parse_program(LETS)
    phase = Phase("test", algorithmic, simplification, tiles={64: (8,)}, limits=Limits(iterations=4))
    *_, last = run_phase(program.body, phase)
    root, model = last.graph.roots["root"], StructuralCost()
    found = best_terms(last.graph, root, model, 8, tries=9, key=skeleton, plainness=0.001)
    assert len({tuple(type_of(t.array) for t in ir.subterms(e.term) if isinstance(t, ir.Map)) for e in found}) >= 2
