"""Layers of convolutions on CPUs: strips of windows and blocks of filters, in registers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench import Budget
from lift_egraph.workbench.exploration.search import _Search  # pyright: ignore[reportPrivateUsage]
from lift_egraph.workbench.phases import Found
from lift_egraph.workbench.planning.layers import layers
from lift_egraph.workbench.planning.plan import nests
from tests.codegen.low_level import APART
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn


def layer(rows: int, columns: int, channel: str) -> ir.Program:
    """A layer of six filters, over two channels."""
    return parse_program(
        f"""program layer(X: [[[f32]{columns}]{rows}]2, F: [[[[f32]3]3]2]6) =
              map(fun f => map2d(fun w => reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))),
                map(transpose, transpose(map(fun channel => slide2d(3, 1, {channel}), X)))), F)"""
    )


NARROW = replace(POCL, vector_width=8)
LAYERS = {  # and the phases, and the vectors of sums
    "with borders": (layer(5, 24, "pad2d(1, 1, constant(0.0), channel)"), ["borders", "blocking", "columns"], 6),
    "in strips": (layer(4, 82, "channel"), ["blocking", "tiling", "columns"], 10),
    "of one vector": (layer(3, 56, "pad2d(1, 1, constant(0.0), channel)"), ["borders", "blocking", "tiling"], 3),
}


@in_turn(6)
@needs_opencl
@pytest.mark.parametrize("what", LAYERS)
def test_strips_of_windows_are_summed_in_registers(what: str, runner: Runner):
    program, phases, sums = LAYERS[what]
    (nest,) = nests(program.body)
    (plan,) = layers(nest, NARROW)
    assert [step.name for step in plan.steps] == phases
    search = _Search(NARROW, Budget(10), StructuralCost(), plan.widths)
    terms = [item.term for item in search.followed(plan, (program.body, ())) if isinstance(item, Found)]
    inputs = random_inputs(program, 0, "integer")
    right = evaluate(program.body, inputs)
    assert all(np.array_equal(evaluate(term, inputs), right) for term in terms)
    plans = [compile_program(replace(program, body=term), NARROW, optimise=APART) for term in terms]
    made = next(p for p in plans if len(set(re.findall(r"acc_\d+(?:_\d+)?", p.kernels[-1].source))) == sums)
    assert len(made.kernels) == 1 + ("borders" in phases)
    assert len(made.buffers) == 3 + ("borders" in phases)  # products are added up at once
    runner.load_inputs(what, inputs)
    assert np.array_equal(runner.run(made, what), right)


def test_products_of_stored_matrices_are_no_layers():
    program = parse_program(
        """program mm(A: [[f32]64]64, B: [[f32]64]64) = map(fun a => map(fun b =>
             reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)"""
    )
    (nest,) = nests(program.body)
    assert not list(layers(nest, POCL))
