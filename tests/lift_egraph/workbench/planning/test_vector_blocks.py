"""Products on a CPU whose work-items have blocks of results in vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.plan import nests
from lift_egraph.workbench.planning.vector_blocks import vector_blocks
from tests.codegen.low_level import APART
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

CPU = replace(POCL, vector_width=4, compute_units=2)
PRODUCTS = {
    "rows times columns": """program p(A: [[f32]8]12, B: [[f32]16]8) =
      map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)""",
    "columns times rows": """program p(A: [[f32]12]8, B: [[f32]8]16) =
      map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), B), transpose(A))""",
    "many of them": """program p(A: [[[f32]8]12]3, B: [[[f32]16]8]3) =
      map(fun (x, y) => map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(y)), x),
          zip(A, B))""",
}


@in_turn(8)
@pytest.mark.parametrize("what", PRODUCTS)
def test_work_items_hold_blocks_in_vectors(what: str):
    program = parse_program(PRODUCTS[what])
    (nest,) = nests(program.body)
    found = list(vector_blocks(nest, CPU))
    numbers = [dict(plan.recipe.numbers) for plan in found if plan.recipe]
    assert numbers == [{"tall": 6, "broad": 8, "width": 4}] * (1 if what == "many of them" else 2)
    inputs = random_inputs(program, 0, "integer")
    for plan in found:
        term = reached(program, plan)
        assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
        *_, kernel = compile_program(replace(program, body=term), CPU, optimise=APART).kernels
        assert kernel.source.count("float4 vectors_") == 12
        assert kernel.launch.global_size[:2] == (2, 2)


def test_columns_of_one_block_have_no_such_plan():
    program = parse_program(PRODUCTS["rows times columns"].replace("16", "8"))
    (nest,) = nests(program.body)
    assert not list(vector_blocks(nest, CPU))


def test_low_and_broad_blocks_are_tried_beside_high_ones():
    program = parse_program(PRODUCTS["rows times columns"].replace("16", "32"))
    (nest,) = nests(program.body)
    numbers = [dict(plan.recipe.numbers) for plan in vector_blocks(nest, CPU) if plan.recipe]
    assert [(n["tall"], n["broad"]) for n in numbers] == [(6, 8), (6, 8), (2, 16)]
