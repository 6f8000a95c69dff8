"""Macro rules: each is derived from small rules, and its result means what the program means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lift_egraph import ir, programs
from lift_egraph.binders import alpha_equal
from lift_egraph.check import specialise, type_of
from lift_egraph.errors import SizeProblem
from lift_egraph.guided import Guided
from lift_egraph.inputs import random_inputs
from lift_egraph.interp import evaluate
from lift_egraph.rewriting import World, makes_names
from lift_egraph.saturate import StopReason
from lift_egraph.sketch import call
from lift_egraph.soundness import equal_values
from lift_egraph.syntax import parse_program
from rules import macros
from rules.macros import Macro

MM = specialise(programs.load("mm"), {"M": 8, "N": 16, "K": 12})
MATRIX = parse_program("program negated(xss: [[f32]16]8) = map(map(fun x => 0.0 - x), xss)")
VECTOR = parse_program("program doubled(xs: [f32]32) = map(fun x => x + x, xs)")
STENCIL = parse_program(
    "program sums(xs: [f32]16) = map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(1, 1, clamp, xs)))"
)


def derive(program: ir.Program, macro: Macro) -> Guided:
    found = macro(program.body)
    assert found.term is not program.body
    for stage in found.stages:
        assert stage.stop_reason is StopReason.SATISFIED
        assert stage.iterations, f"{stage.stage.phase.name} had nothing to do"
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(found.term, inputs), evaluate(program.body, inputs))
    return found


def lengths(term: ir.Expr, kind: type[ir.Expr] = ir.Map) -> list[int | None]:
    found = [t.array for t in ir.subterms(term) if isinstance(t, kind)]  # pyright: ignore
    return [t.size.constant for t in map(type_of, found)]  # pyright: ignore


JACOBI = specialise(programs.load("j2d5pt"), {"M": 8, "N": 16})
CASES: list[tuple[ir.Program, Macro, Callable[[ir.Expr], bool]]] = [
    (MM, macros.tiling((8, 16), (2, 4)), lambda t: lengths(t).count(4) == 3 and 2 in lengths(t)),
    (MATRIX, macros.tiling_on_grid((8, 16), 2, call("sub")), lambda t: {4, 8, 2} <= set(lengths(t))),
    (MM, macros.register_blocking_2d((8, 16), (2, 4), 12), lambda t: 2 in lengths(t) and 4 in lengths(t)),
    (MM, macros.register_blocking_1d(8, 2, 12), lambda t: 2 in lengths(t)),
    (MM, macros.split_reduction((8, 16), (2, 4), 12, 3), lambda t: sorted(lengths(t, ir.Reduce)) == [3, 4]),  # pyright: ignore
    (
        STENCIL,
        macros.overlapped_tiling(16, 4, 3),
        lambda t: [str(w.size) for w in ir.subterms(t) if isinstance(w, ir.Slide)] == ["3", "6"],
    ),
    (VECTOR, macros.vectorised_loads(4), lambda t: any(isinstance(p, ir.Vectorize) for p in ir.subterms(t))),
    (
        VECTOR,
        macros.local_memory_staging(8, 32),
        lambda t: any(isinstance(p, ir.ToMemory) and p.space == "local" for p in ir.subterms(t)),
    ),
]


@pytest.mark.parametrize(("program", "macro", "holds"), CASES, ids=[f"{m.name} of {p.name}" for p, m, _ in CASES])
def test_a_macro_is_derived_from_small_rules(program: ir.Program, macro: Macro, holds: Callable[[ir.Expr], bool]):
    assert holds(derive(program, macro).term)


CHAINS = {
    "tile rows": """
        slide_tiling 1.1, slide_of_map 1.1.0.1, map_fusion_of_pattern 1.1.0, apply_slide 1.1.0.0.1, map_of_join 1,
        map_fusion 1.0, apply_pattern 1.0.0.1, map_of_join, map_fusion 0, apply_pattern 0.0.1""",
    "turn": """
        map_of_slide 0.0.1.1.1.2, slide_of_transpose 0.0.1.1.1, map_transpose_of_map_transpose 0.0.1.1,
        map_map_of_transpose 0.0.1""",
    "tile columns": """
        slide_tiling 0.0.1.0.1.1.1, map_of_join 0.0.1.0.1.1, map_of_join 0.0.1.0.1, map_fusion 0.0.1.0.1.0.1,
        map_fusion 0.0.1.0.1.0, apply_pattern 0.0.1.0.1.0.0.1, apply_pattern 0.0.1.0.1.0.0.1.1,
        slide_of_transpose 0.0.1.0.1.0.1, map_of_join 0.0.1.0, map_fusion 0.0.1.0.0, apply_pattern 0.0.1.0.0.0.1,
        map_fusion_of_pattern 0.0.1.0.0""",
}


def test_overlapped_tiling_in_2d_is_a_chain_of_small_rules():
    """What `explain` finds, which takes longer than to follow it."""
    found = derive(JACOBI, macros.overlapped_tiling_2d((8, 16), (4, 2), 3))
    assert [str(t.size) for t in ir.subterms(found.term) if isinstance(t, ir.Slide)] == ["3", "3", "4", "6"]
    inputs = random_inputs(JACOBI, 0, "integer")
    expected = evaluate(JACOBI.body, inputs)
    term = JACOBI.body
    for stage in found.stages:
        phase = stage.stage.phase
        world = World(phase)
        node = world.encode(term)
        for step in CHAINS[phase.name].split(","):
            name, _, place = step.strip().partition(" ")
            (rule,) = (r for r in (*phase.rules, *phase.simplification) if r.name == name)
            path = tuple(int(i) for i in place.split(".") if i)
            (node,) = (after for at, after in world.apply(node, rule.ruleset, makes_names(rule)) if at == path)
            assert equal_values(evaluate(world.decode(node), inputs), expected)
        assert stage.term is not None
        term = stage.term
        assert alpha_equal(world.decode(node), term)


def test_macros_compose():
    both = macros.tiling((8, 16), (2, 4)) + macros.reduce_outwards((8, 16), (2, 4), 12)
    assert both.stages == macros.register_blocking_2d((8, 16), (2, 4), 12).stages
    assert str(both).startswith("tiling, then reduce outwards:")


def test_a_macro_that_does_not_apply_says_what_is_missing():
    found = macros.vectorised_loads(5)(VECTOR.body)
    assert not found.found
    assert "vectorize" in found.stages[0].why_not


def test_blocks_must_divide():
    with pytest.raises(SizeProblem, match="blocks of 5 do not divide a length of 8"):
        macros.tiling((8, 16), (5, 4))
