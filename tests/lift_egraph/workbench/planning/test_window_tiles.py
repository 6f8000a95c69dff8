"""Windows along the lines of a matrix: a group copies an overlapping tile to local memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, NVIDIA
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.planning.window_tiles import window_tiles
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

ROWS = """program rows(image: [[f32]256]12, w: [f32]17) =
  map(fun row => map(fun v => reduce(add, 0.0, map(mul, zip(v, w))), slide(17, 1, row)),
    map(pad(8, 8, constant(0.0)), image))"""
COLUMNS = ROWS.replace("256]12", "32]128").replace("0.0)), image", "0.0)), transpose(image)")


@in_turn(6)
@pytest.mark.parametrize(
    ("text", "items", "tile"), [(ROWS, (16, 4, 1), 4 * 144), (COLUMNS, (16, 8, 1), 16 * 80)], ids=["rows", "columns"]
)
def test_tiles_overlap_in_local_memory(text: str, items: tuple[int, ...], tile: int):
    program = parse_program(text)
    (plan,) = window_tiles(program.body, NVIDIA)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.launch.local_size == items
    assert 4 * tile <= kernel.local_bytes <= 4 * (tile + items[0])  # lines may be padded


@pytest.mark.parametrize(
    "text",
    [
        ROWS.replace("256", "250"),
        ROWS.replace("12", "10"),
        ROWS.replace("256", "128"),
        ROWS.replace("17", "16").replace("pad(8", "pad(7"),
        "program p(x: [f32]256) = map(fun v => reduce(add, 0.0, v), slide(17, 1, pad(8, 8, constant(0.0), x)))",
    ],
    ids=["odd windows", "odd lines", "one tile", "a tile that the items of a group do not divide", "one line"],
)
def test_others_have_no_such_plan(text: str):
    assert not list(window_tiles(parse_program(text).body, NVIDIA))


def test_no_search_on_a_cpu_follows_them_unasked():
    body = parse_program(ROWS).body
    names = [[step.name for plan in plans(body, device) for step in plan.steps] for device in (NVIDIA, INTEL)]
    assert ["window_copies" in found for found in names] == [True, False]
