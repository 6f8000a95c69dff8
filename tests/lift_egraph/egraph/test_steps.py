"""Iterates that change the length of their array: rules inside of their steps and between them, and the way back."""

from __future__ import annotations

import pytest

from lift_egraph.api import Limits, Phase, alpha_equal, parse_program, rules, run_phase
from lift_egraph.egraph.encoding import MAXIMAL_DEPTH, check_depth
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.steps import one_more_step
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import iterate_steps, type_of
from lift_egraph.language.syntax import parse_term, print_term

SIZES = {"xs": "[f32]16"}
HALVING = "fun (h: [f32]n) => map(reduce(add, 0.0), split(2, h))"
FUSED = "fun (h: [f32]n) => map(fun p => reduce(add, 0.0, map(abs, p)), split(2, h))"


@pytest.fixture(scope="module")
def rewritten() -> tuple[FrozenEGraph, int]:
    """A tree of sums in halves, saturated with the rules of stages and of iterations."""
    halving = HALVING.replace("split(2, h)", "split(2, map(abs, h))")
    program = parse_program(f"program tree(xs: [f32]16) = map(neg, iterate(3, {halving}, map(sqrt, xs)))")
    chosen = (*rules.iteration_rules, *rules.inlining_rules, *rules.fusion_rules, rules.map_fusion_of_pattern)
    simplification = rules.simplification + rules.let_simplification
    phase = Phase("steps", (*chosen, rules.split_of_map), simplification, limits=Limits(6, 10**5))
    *_, done = run_phase(program.body, phase)
    return done.graph, done.root


@pytest.mark.parametrize(
    "reached",
    [
        f"map(neg, iterate(3, {FUSED}, map(sqrt, xs)))",
        f"map(neg, iterate(2, {FUSED}, map(fun p => reduce(add, 0.0, map(fun x => abs(sqrt(x)), p)), split(2, xs))))",
        f"map(fun p => -reduce(add, 0.0, map(abs, p)), split(2, iterate(2, {FUSED}, map(sqrt, xs))))",
    ],
    ids=["inside", "before", "after"],
)
def test_rules_apply_to_steps(rewritten: tuple[FrozenEGraph, int], reached: str) -> None:
    assert locate(*rewritten, parse_term(reached, SIZES)) is not None


@pytest.mark.parametrize(
    "text",
    [
        HALVING,
        "fun (h: [f32]k) => gather(i => (i + 1) % n, slice(k / 2, k / 2, h))",
        "fun (h: [f32]n) => map(fun (a, b) => a + b * n, zip(slice(0, n / 2, h), slice(n / 2, n / 2, h)))",
        "fun (h: [f32]n) => map(fun w => at(1, w), slide(3, 1, h))",
        "fun (h: [f32]n) => slice(0, n / 2, iterate(2, fun (r: [f32]m) => gather(i => (i + 1) % m, r), h))",
    ],
)
def test_steps_are_one_iterate(text: str) -> None:
    whole = parse_term(f"iterate(3, {text}, xs)", SIZES)
    assert isinstance(whole, ir.Iterate)
    made = whole.array
    for step in iterate_steps(whole):
        made = one_more_step(step, made)
    assert alpha_equal(made, whole), print_term(made)


def test_other_steps_are_iterates_of_their_own() -> None:
    made = parse_term("xs", SIZES)
    for start, length in ((0, 8), (0, 4), (1, 2)):
        made = one_more_step(_slice(start, length, made), made)
    halving = "iterate(2, fun (h: [f32]n) => slice(0, n / 2, h), xs)"
    assert print_term(made, 200) == f"iterate(1, fun (h: [f32]4) => slice(1, 2, h), {halving})"


def _slice(start: int, length: int, array: ir.Expr) -> ir.Lambda:
    h = ir.Var("h", type_of(array))
    term = parse_term(f"slice({start}, {length}, h)", [h])
    return ir.Lambda(h, term)


def test_a_length_that_settles_and_no_steps() -> None:
    for times in (0, 6):
        term = parse_term(f"iterate({times}, fun (h: [f32]n) => slice(0, (n + 3) / 2, h), xs)", SIZES)
        (state, *_) = run_phase(term, Phase("none", (), ()))
        assert state.graph.type_of(state.root) == type_of(term)
    assert {"iterate", "iterate_step"} <= {n.op for nodes in state.graph.nodes.values() for n in nodes}


def test_too_many_steps_are_refused() -> None:
    steps = MAXIMAL_DEPTH
    shorter = f"iterate({steps}, fun (h: [f32]n) => slice(0, n - 1, h), xs)"
    with pytest.raises(TypeProblem, match=f"nested {steps + 4} deep; the e-graph takes at most {steps}"):
        check_depth(parse_program(f"program p(xs: [f32]{2 * steps}) = {shorter}").body)
