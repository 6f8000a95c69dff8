"""Products on a GPU whose work-items keep blocks of results in registers, and have no tiles in local memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, NVIDIA
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.plan import nests
from lift_egraph.workbench.planning.register_blocks import register_blocks
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

COLUMNS = """program p(A: [[f32]256]12, B: [[f32]256]12) =
  map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), transpose(A))"""


@in_turn(6)
@pytest.mark.parametrize(
    ("dialect", "held", "of_each"), [("nvidia", 2, "reduce"), ("intel", 0, "reduce"), ("nvidia", 2, "2.0 * reduce")]
)
def test_work_items_keep_blocks_in_registers(dialect: str, held: int, of_each: str):
    program, device = parse_program(COLUMNS.replace("reduce", of_each)), DEVICES[dialect]
    (nest,) = nests(program.body)
    (plan,) = register_blocks(nest, device)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), device).kernels
    assert not kernel.local_bytes
    assert str(term).count("ToMemory(space='private'") == held


def test_rows_of_one_block_have_no_such_plan():
    program = parse_program(COLUMNS.replace("256", "8"))
    (nest,) = nests(program.body)
    assert not list(register_blocks(nest, NVIDIA))
