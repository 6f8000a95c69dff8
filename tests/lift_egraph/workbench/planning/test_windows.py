"""Stencils: on GPUs a work-item computes neighbours in the last dimension but one, on CPUs bands of rows in vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import Extracted, best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.nesting import check_nesting
from lift_egraph.language.pretty import print_program
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.phases import lowering_phase
from lift_egraph.workbench.planning.plan import Plan, planned_phase
from lift_egraph.workbench.planning.windows import bands_of_rows, rows_of_windows
from tests.depth import in_turn

BLUR = parse_program(
    """program blur(A: [[f32]24]16, W: [f32]9) =
         map2d(fun w => reduce(add, 0.0, map(mul, zip(join(w), W))), slide2d(3, 1, pad2d(1, 1, clamp, A)))"""
)
CUBES = parse_program(
    """program cubes(u: [[[f32]16]16]16) =
         map(map(map(fun w => at(1, at(1, at(0, w))) + at(1, at(0, at(1, w))) - 2.0 * at(1, at(1, at(1, w))))),
           map(map(transpose) . transpose,
             slide(3, 1, map(slide2d(3, 1), pad(1, 1, clamp, map(pad2d(1, 1, clamp), u))))))"""
)
TALL = parse_program(
    """program tall(A: [[f32]48]256, W: [f32]9) =
         map2d(fun w => reduce(add, 0.0, map(mul, zip(join(w), W))), slide2d(3, 1, pad2d(1, 1, clamp, A)))"""
)
DEEP = parse_program(
    """program deep(u: [[[f32]16]5]64) =
         map(map(map(fun w => at(1, at(1, at(0, w))) + at(1, at(0, at(1, w))) - 2.0 * at(1, at(1, at(1, w))))),
           map(map(transpose) . transpose,
             slide(3, 1, map(slide2d(3, 1), pad(1, 1, clamp, map(pad2d(1, 1, clamp), u))))))"""
)
BANDS = {"tall": 8, "deep": 8}
GRIDS = {"blur": ("mapGlb(0)", "mapGlb(1)"), "cubes": ("mapGlb(0)", "mapGlb(1)", "mapGlb(2)")}


def lowered(term: ir.Expr, device: Device = NVIDIA, widths: tuple[int, ...] = ()) -> list[Extracted]:
    *_, state = run_phase(term, lowering_phase(device, widths, Limits()))
    model = StructuralCost().on(device)
    return best_terms(state.graph, state.root, model, 8, key=skeleton, tries=60, per_shape=3, patience=200)


def planned(term: ir.Expr, plan: Plan) -> ir.Expr:
    """What the steps of a plan lead to."""
    for step in plan.steps:
        phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=8))
        *_, (reached, _) = search_stage(term, Stage(phase, step.sketch, step.weigh))
        assert reached.term is not None, step.name
        term = reached.term
    return term


def on_a_grid(program: ir.Program, plan: Plan) -> ir.Expr:
    """A term of a plan whose work-items take some rows each."""
    found = (each.term for each in lowered(planned(program.body, plan), widths=plan.widths))
    term = next(t for t in found if levels(t) == {"mapSeq", *GRIDS[program.name]})
    check_nesting(term)
    return term


@in_turn(6)
@pytest.mark.parametrize("program", [BLUR, CUBES], ids=lambda program: program.name)
@pytest.mark.parametrize("in_vectors", [True, False])
def test_work_items_compute_rows_of_columns(program: ir.Program, in_vectors: bool):
    if not in_vectors:
        text = print_program(program)
        program = parse_program(
            text.replace("[[f32]24]16", "[[f32]25]16").replace("[[[f32]16]16]16", "[[[f32]15]16]16")
        )
    plan, *_ = rows_of_windows(program.body, NVIDIA)
    term = on_a_grid(program, plan)
    assert any(isinstance(part, ir.Vectorize) for part in ir.subterms(term)) == in_vectors
    inputs = random_inputs(program, 0, "integer")
    kernel = compile_program(replace(program, body=term), NVIDIA)
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(kernel, "inputs"), evaluate(program.body, inputs))


def test_rows_of_vectors_are_a_parameter():
    plan, *others = rows_of_windows(BLUR.body, NVIDIA)
    assert [dict(p.recipe.numbers)["rows"] for p in (plan, *others) if p.recipe] == [4, 2, 8]
    assert plan.recipe
    again = plan.recipe.at(BLUR.body, {"rows": 2, "width": 2})
    assert levels(on_a_grid(BLUR, again)) == {"mapSeq", *GRIDS["blur"]}


@in_turn(6)
@pytest.mark.parametrize("program", [TALL, DEEP], ids=lambda program: program.name)
def test_work_items_of_a_cpu_compute_bands_of_rows_in_vectors(program: ir.Program):
    device = replace(POCL, compute_units=2)
    plan, *_ = bands_of_rows(program.body, device)
    (step,) = plan.steps
    *_, (reached, _) = search_stage(
        program.body, Stage(planned_phase(step.name, step.tiling, (), Limits(iterations=8)), step.sketch, step.weigh)
    )
    assert reached.term is not None
    inputs = random_inputs(program, 0, "integer")
    item = next(
        t.term
        for t in lowered(reached.term, device, plan.widths)
        if levels(t.term) == {"mapSeq", "mapGlb(0)"} and any(isinstance(s, ir.Vectorize) for s in ir.subterms(t.term))
    )
    kernel = compile_program(replace(program, body=item), POCL)
    assert kernel.kernels[0].launch.global_size == (BANDS[program.name], 1, 1)
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(kernel, "inputs"), evaluate(program.body, inputs))


def test_every_core_has_several_bands():
    device = replace(POCL, compute_units=8)
    assert [dict(plan.steps[0].tiling) for plan in bands_of_rows(TALL.body, device)] == [{256: (8,)}] * 2
    assert not list(bands_of_rows(TALL.body, replace(POCL, compute_units=16)))


def levels(term: ir.Expr) -> set[str]:
    return {t.level.name for t in ir.subterms(term) if isinstance(t, ir.MapLevel)}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("program p(A: [[f32]16]16) = map(map(abs), A)", id="no windows"),
        pytest.param("program p(x: [f32]16) = map(reduce(add, 0.0), slide(3, 1, x))", id="one dimension"),
        pytest.param("program p(A: [[f32]13]13) = map2d(fun w => at(0, at(0, w)), slide2d(3, 1, A))", id="a prime"),
    ],
)
def test_others_have_no_such_plan(text: str):
    term = parse_program(text).body
    assert not list(rows_of_windows(term, NVIDIA))
    assert not list(bands_of_rows(term, POCL))
