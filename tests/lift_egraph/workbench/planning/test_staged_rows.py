"""Rows of a matrix times a vector by groups: chunks of the vector, and a tree of sums, in local memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, Device
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.plan import Plan
from lift_egraph.workbench.planning.staged_rows import staged_rows
from lift_egraph.workbench.planning.trees import trees
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

GEMV = """program gemv(A: [[f32]512]24, x: [f32]512, y: [f32]24) =
  map(fun (own, old) => 2.0 * reduce(add, 0.0, map(mul, zip(own, x))) + old, zip(A, y))"""
DOTS = """program dots(x: [f32]512, y: [f32]512) =
  map(fun pairs => reduce(add, 0.0, map(mul, pairs)), split(128, zip(x, y)))"""


@in_turn(6)
@pytest.mark.parametrize(
    ("text", "plans", "kept"), [(GEMV, staged_rows, 3 * 8 * 34), (DOTS, trees, 64 + 64)], ids=["rows", "tree"]
)
def test_sums_meet_in_local_memory(text: str, plans: Callable[[ir.Expr, Device], Iterator[Plan]], kept: int):
    program = parse_program(text)
    *_, plan = plans(program.body, NVIDIA)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes <= 4 * kept
    assert kernel.source.count("barrier(") >= 3


@pytest.mark.parametrize(
    "text",
    [GEMV.replace("zip(own, x)", "zip(x, own)"), GEMV.replace("512", "500"), GEMV.replace("24", "12")],
    ids=["the vector is first", "a length that nothing divides", "rows that nothing divides"],
)
def test_others_have_no_such_plan(text: str):
    assert not list(staged_rows(parse_program(text).body, NVIDIA))
    assert not list(trees(parse_program(text).body, NVIDIA))
