"""Macro rules: each is derived from small rules, and its result means what the program means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from lift_egraph.api import Macro, alpha_equal, equal_values, evaluate, parse_program, programs, random_inputs
from lift_egraph.derivation.steps import World, makes_names
from lift_egraph.egraph.saturate import Phase, StopReason
from lift_egraph.errors import SizeProblem
from lift_egraph.guided.sketch import call
from lift_egraph.guided.stages import Guided
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.meaning.values import Value
from lift_egraph.rules import macros
from tests.depth import in_turn

pytestmark = pytest.mark.usefixtures("in_process")

MM = specialise(programs.load("mm"), {"M": 8, "N": 16, "K": 12})
MATRIX = parse_program("program negated(xss: [[f32]16]8) = map(map(fun x => 0.0 - x), xss)")
VECTOR = parse_program("program doubled(xs: [f32]32) = map(fun x => x + x, xs)")
STENCIL = parse_program(
    "program sums(xs: [f32]16) = map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(1, 1, clamp, xs)))"
)


def derive(program: ir.Program, macro: Macro, chains: Sequence[str]) -> Guided:
    """What a macro derives; each stage is a chain of small rules, and every step on the way keeps the result."""
    found = macro(program.body)
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    seed = program.body
    for stage, chain in zip(found.stages, chains, strict=True):
        assert stage.stop_reason is StopReason.SATISFIED
        assert stage.term is not None
        assert any(alpha_equal(t, stage.term) for t in follow(seed, stage.stage.phase, chain, inputs, expected))
        seed = stage.term
    return found


def follow(
    seed: ir.Expr, phase: Phase, chain: str, inputs: Mapping[str, np.ndarray], expected: Value
) -> Iterator[ir.Expr]:
    """What the rules of a chain make of a term, each at its place; a rule may make more than one thing there."""
    world = World(phase)
    nodes = [world.encode(seed)]
    for step in chain.split(","):
        name, _, place = step.strip().partition(" ")
        (rule,) = (r for r in (*phase.rules, *phase.simplification) if r.name == name)
        path = tuple(int(i) for i in place.split(".") if i)
        made = [world.apply(node, rule.ruleset, makes_names(rule)) for node in nodes]
        nodes = [after for options in made for at, after in options if at == path and world.is_closed(after)]
        assert nodes, f"{name} makes nothing at {place}"
        for node in nodes:
            assert equal_values(evaluate(world.decode(node), inputs), expected), step
    yield from map(world.decode, nodes)


def lengths(term: ir.Expr, kind: type[ir.Expr] = ir.Map) -> list[int | None]:
    found = [t.array for t in ir.subterms(term) if isinstance(t, kind)]  # pyright: ignore
    return [t.size.constant for t in map(type_of, found)]  # pyright: ignore


JACOBI = specialise(programs.load("j2d5pt"), {"M": 8, "N": 16})

# For each stage what `explain` finds, which takes longer than to follow it: rules, and the places where they apply.


def sizes(term: ir.Expr) -> list[str]:
    return [str(w.size) for w in ir.subterms(term) if isinstance(w, ir.Slide)]


def in_local(term: ir.Expr) -> bool:
    return any(isinstance(p, ir.ToMemory) and p.space == "local" for p in ir.subterms(term))


CASES: list[tuple[ir.Program, Macro, tuple[str, ...], Callable[[ir.Expr], bool]]] = [
    (
        MATRIX,
        macros.tiling_on_grid((8, 16), 2, call("sub")),
        ("split_join, split_join 0.0.1.0.1", "map_fission 0.0.1, map_fission 0.0.1.1, map_map_on_matrix 0.0.1.1"),
        lambda t: {4, 8, 2} <= set(lengths(t)),
    ),
    (
        MM,
        macros.register_blocking_2d((8, 16), (2, 4), 12),
        (
            "split_join, split_join 0.0.1.0.1, map_fission 0.0.1, map_map_interchange 0.0.1.1",
            """map_reduce_interchange 0.0.1.1.0.0.1.0.1, map_reduce_interchange 0.0.1.1.0.0.1,
            map_map_zip_right 0.0.1.1.0.0.1.2.0.0.1.0, transpose_of_transpose 0.0.1.1.0.0.1.2.0.0.1,
            map_identity 0.0.1.1.0.0.1.2.0.0.1.1.1.0, map_map_zip_left 0.0.1.1.0.0.1.2.0,
            transpose_of_transpose 0.0.1.1.0.0.1.2, map_identity 0.0.1.1.0.0.1.2.1.0.0""",
        ),
        lambda t: {2, 4} <= set(lengths(t)) and lengths(t, ir.Reduce) == [12],  # pyright: ignore
    ),
    (
        MM,
        macros.register_blocking_1d(8, 2, 12),
        (
            "split_join, map_map_interchange 0.0.1",
            """map_reduce_interchange 0.0.1.0.0.1, map_map_zip_left 0.0.1.0.0.1.2.0,
            transpose_of_transpose 0.0.1.0.0.1.2, map_identity 0.0.1.0.0.1.2.1.0.0""",
        ),
        lambda t: 2 in lengths(t),
    ),
    (
        MM,
        macros.split_reduction((8, 16), (2, 4), 12, 3),
        (
            """split_join, split_join 0.0.1.0.1, split_join 0.0.1.0.1.0.0.1.0.1.2, map_fission 0.0.1,
            map_map_interchange 0.0.1.1, partial_reduce 0.0.1.1.0.0.1.0.1.0.1,
            split_of_join 0.0.1.1.0.0.1.0.1.0.1.2.1, split_of_zip 0.0.1.1.0.0.1.0.1.0.1.2.1.1,
            zip_takes_names 0.0.1.1.0.0.1.0.1.0.1.2.1.1, map_fusion 0.0.1.1.0.0.1.0.1.0.1.2.1,
            apply_pattern 0.0.1.1.0.0.1.0.1.0.1.2.1.0.1, map_fusion 0.0.1.1.0.0.1.0.1.0.1.2,
            apply_pattern 0.0.1.1.0.0.1.0.1.0.1.2.0.1""",
        ),
        lambda t: sorted(lengths(t, ir.Reduce)) == [3, 4],  # pyright: ignore
    ),
    (
        STENCIL,
        macros.overlapped_tiling(16, 4, 3) + macros.local_tiles(1),
        (
            "slide_tiling 1, map_of_join, map_fusion 0, apply_pattern 0.0.1",
            "map_to_wrg0 0, map_to_lcl0 0.2.1, reduce_to_seq 0.2.1.2.1, combine_scalars 0.2.1.2.1.0.1",
            "stage_in_local 0",
        ),
        lambda t: sizes(t) == ["3", "6"] and in_local(t),
    ),
    (
        JACOBI,
        macros.overlapped_tiling_2d((8, 16), (4, 2), 3) + macros.local_tiles(2),
        (
            """slide_tiling 1.1, slide_of_map 1.1.0.1, map_fusion_of_pattern 1.1.0, apply_slide 1.1.0.0.1,
            map_of_join 1, map_fusion 1.0, apply_pattern 1.0.0.1, map_of_join, map_fusion 0, apply_pattern 0.0.1""",
            """map_of_slide 0.0.1.1.1.2, slide_of_transpose 0.0.1.1.1, map_transpose_of_map_transpose 0.0.1.1,
            map_map_of_transpose 0.0.1""",
            """slide_tiling 0.0.1.0.1.1.1, map_of_join 0.0.1.0.1.1, map_of_join 0.0.1.0.1,
            map_fusion 0.0.1.0.1.0.1, map_fusion 0.0.1.0.1.0, apply_pattern 0.0.1.0.1.0.0.1,
            apply_pattern 0.0.1.0.1.0.0.1.1, slide_of_transpose 0.0.1.0.1.0.1, map_of_join 0.0.1.0,
            map_fusion 0.0.1.0.0, apply_pattern 0.0.1.0.0.0.1, map_fusion_of_pattern 0.0.1.0.0""",
            """map_to_wrg0 0.0.1.0.0, map_to_wrg1 0, map_to_lcl0 0.2.1.0.0.2.1.0.1,
            map_to_lcl1 0.2.1.0.0.2.1.0.1.2.1""",
            "stage_block_in_local 0.2.1.0.0",
        ),
        lambda t: sizes(t) == ["3", "3", "4", "6"] and in_local(t),
    ),
    (
        VECTOR,
        macros.vectorised_loads(4),
        ("vectorise_map",),
        lambda t: any(isinstance(p, ir.Vectorize) for p in ir.subterms(t)),
    ),
    (
        VECTOR,
        macros.local_memory_staging(8, 32),
        ("split_join, map_to_wrg0 0, map_to_lcl0 0.2.1", "stage_in_local 0"),
        in_local,
    ),
]


@in_turn(8)
@pytest.mark.parametrize(
    ("program", "macro", "chains", "holds"), CASES, ids=[f"{m.name} of {p.name}" for p, m, _, _ in CASES]
)
def test_a_macro_is_derived_from_small_rules(
    program: ir.Program, macro: Macro, chains: Sequence[str], holds: Callable[[ir.Expr], bool]
):
    assert holds(derive(program, macro, chains).term)


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
