"""Products in blocks of rows that registers are made for, though these do not divide the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.language.pretty import print_program
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.packed_products import packed_products, products_of_lines
from lift_egraph.workbench.planning.plan import Plan, nests
from tests.lift_egraph.workbench.planning.test_plans import reached

SMALL = replace(POCL, cache=1 << 12)  # bytes, which do not hold what is read again
BLOCKS = (6, 4)
TIMES = "map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), {}), {})"


def product(rows: int, is_transposed: bool = False) -> ir.Program:
    shape, of_rows = (f"[[f32]{rows}]8", "transpose(A)") if is_transposed else (f"[[f32]8]{rows}", "A")
    return parse_program(f"program p(A: {shape}, B: [[f32]32]8) = {TIMES.format('transpose(B)', of_rows)}")


def plans(program: ir.Program, pads: bool = True) -> list[Plan]:
    (nest,) = nests(program.body)
    return [*products_of_lines(nest, 8, BLOCKS, SMALL), *packed_products(nest, 8, BLOCKS, pads)]


@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "columns, packed too"])
def test_rows_are_padded_to_blocks_that_registers_are_made_for(is_transposed: bool):
    program = product(64, is_transposed)
    padded = [plan for plan in plans(program) if any(step.name == "padding" for step in plan.steps)]
    assert [plan.steps[-1].name for plan in padded] == ["blocking"] * len(padded)
    names = {step.name for plan in padded for step in plan.steps}
    assert names >= {"padding", "packing", "row_packing" if is_transposed else "blocking"}
    assert not any(plan.recipe for plan in padded)
    inputs = random_inputs(program, 0, "integer")
    for plan in padded:
        term = reached(program, plan)
        assert "split(6," in (text := print_program(replace(program, body=term)))
        assert "pad(0, 2, clamp," in text
        assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))


@pytest.mark.parametrize(
    ("rows", "pads"),
    [
        pytest.param(60, True, id="six divides them"),
        pytest.param(64, False, id="groups guard what they read"),
        pytest.param(20, True, id="four more are too many"),
    ],
)
def test_others_are_not(rows: int, pads: bool):
    (nest,) = nests(product(rows).body)
    found = [*packed_products(nest, 8, BLOCKS, pads)]
    assert found
    assert not any(step.name == "padding" for plan in found for step in plan.steps)
