"""The memory phase: work-groups stage their data in local memory, work-items in registers."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import best_terms, judge, parse_program, references, rules, run, specialise, workbench
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.egraph.kbest import KBest
from lift_egraph.egraph.saturate import Limits, Phase, Saturation, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.shapes import Shape
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import F32
from tests.codegen.opencl import needs_opencl

GROUPS = """
program squares(x: [f32]N) where N = 256 =
  join(mapWrg(0, fun c => mapLcl(0, fun v => v * v + 1.0, c), split(64, x)))
"""
ITEMS = """
program sums(x: [[f32]N]M) where N = 8, M = 32 =
  mapGlb(0, fun row => reduceSeq(fun (acc, v) => acc + v * v, 0.0, row), x)
"""


def staged(text: str, space: str) -> tuple[ir.Program, list[ir.Expr]]:
    program = specialise(parse_program(text))
    phase = Phase("memory", rules.memory_rules, rules.simplification, limits=Limits(iterations=1), staging=(space,))
    *_, done = run_phase(program.body, phase)
    found = best_terms(done.graph, done.root, StructuralCost(lowered=True), 8, per_shape=2)
    return program, [f.term for f in found if any(isinstance(t, ir.ToMemory) for t in ir.subterms(f.term))]


@pytest.mark.parametrize(("text", "space"), [(GROUPS, "local"), (ITEMS, "private")])
def test_staged_terms_mean_the_same(text: str, space: str):
    program, found = staged(text, space)
    inputs = references(program).integers.inputs
    assert found
    for term in found:
        assert {t.space for t in ir.subterms(term) if isinstance(t, ir.ToMemory)} == {space}
        lowered = ir.Program(program.name, program.inputs, term)
        assert np.array_equal(run(lowered, inputs), run(program, inputs))


@pytest.mark.parametrize(("length", "is_copied"), [(1024, True), (1025, False)])
def test_no_copy_is_larger_than_private_memory(length: int, is_copied: bool):
    _, found = staged(ITEMS.replace("N = 8,", f"N = {length},"), "private")
    arrays = [t for term in found for t in ir.subterms(term) if isinstance(t, ir.ToMemory) and type_of(t) != F32]
    assert bool(arrays) == is_copied


def test_without_marks_nothing_is_staged():
    program = specialise(parse_program(GROUPS))
    phase = Phase("memory", rules.memory_rules, rules.simplification, limits=Limits(iterations=1))
    done: Saturation
    *_, done = run_phase(program.body, phase)
    shapes = [v.shape for v in KBest(done.graph, StructuralCost(lowered=True)).vertices(done.root)]
    assert all(isinstance(s, Shape) and not s.staged for s in shapes)


@needs_opencl
@pytest.mark.parametrize(("text", "space"), [(GROUPS, "local"), (ITEMS, "private")])
def test_staged_kernels_are_valid(text: str, space: str):
    program, found = staged(text, space)
    reference = references(program)
    plan = compile_program(ir.Program(program.name, program.inputs, found[0]), POCL)
    assert ("local float" in plan.source) == (space == "local")
    assert ("barrier" in plan.source) <= (space == "local")
    with Runner(find_device()) as runner:
        workbench.load_references(runner, reference)
        assert judge(reference, runner.run(plan, "integers"), runner.run(plan, "floats")).valid
