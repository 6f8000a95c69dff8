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
from lift_egraph.language.nesting import check_nesting
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


def test_per_shape_and_key_limit_what_is_kept(lowered):
    model = StructuralCost(units=8, lowered=True)
    root = lowered.roots["root"]
    by_skeleton = best_terms(lowered, root, model, 20, key=skeleton)
    assert len({skeleton(e.term) for e in by_skeleton}) == len(by_skeleton)
    few = best_terms(lowered, root, model, 100, per_shape=1)
    assert len(few) <= len(KBest(lowered, model).vertices(root))
