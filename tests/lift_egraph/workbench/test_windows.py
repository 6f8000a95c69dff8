"""Stencils on GPUs: a work-item computes neighbours in the last dimension but one, and the rules lead there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import Extracted, best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.nesting import check_nesting
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.phases import lowering_phase
from lift_egraph.workbench.plan import planned_phase
from lift_egraph.workbench.windows import rows_of_windows

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
GRIDS = {"blur": ("mapGlb(0)", "mapGlb(1)"), "cubes": ("mapGlb(0)", "mapGlb(1)", "mapGlb(2)")}


def lowered(term: ir.Expr) -> list[Extracted]:
    *_, state = run_phase(term, lowering_phase(NVIDIA, (), Limits()))
    model = StructuralCost().on(NVIDIA)
    return best_terms(state.graph, state.root, model, 8, key=skeleton, tries=60, per_shape=3, patience=200)


@pytest.mark.parametrize("program", [BLUR, CUBES], ids=lambda program: program.name)
def test_work_items_compute_rows_of_a_column(program: ir.Program):
    plan, *_ = rows_of_windows(program.body)
    (step,) = plan.steps
    *_, (reached, _) = search_stage(
        program.body, Stage(planned_phase(step.name, step.tiling, (), Limits(iterations=8)), step.sketch, step.weigh)
    )
    assert reached.term is not None
    found = lowered(reached.term)
    for each in found:
        check_nesting(each.term)
    inputs = random_inputs(program, 0, "integer")
    item = next(t.term for t in found if levels(t.term) == {"mapSeq", *GRIDS[program.name]})
    kernel = compile_program(replace(program, body=item), replace(NVIDIA, emission=POCL.emission))
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(kernel, "inputs"), evaluate(program.body, inputs))


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
    assert not list(rows_of_windows(parse_program(text).body))
