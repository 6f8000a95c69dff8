"""Lanes that go along rows side by side: what they read comes in squares."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC, POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn

STEP = "fun (s, x) => 0.5 * s + x, 1.0"


def in_lanes(lanes: int, chunk: int, fold: str = f"reduceSeq({STEP})", elements: str = "xs") -> str:
    return (
        f"(xs: [f32]{2 * lanes * chunk}) = join(mapGlb(0, fun rows => asScalar(mapSeq(vectorize({lanes}, {fold}), "
        f"asVector({lanes}, split({chunk}, rows)))), split({lanes * chunk}, {elements})))"
    )


SQUARES = {  # and how many vectors of how many lanes a step reads
    "four lanes": (in_lanes(4, 12), 4, 4),
    "eight": (in_lanes(8, 8), 8, 8),
    "sixteen": (in_lanes(16, 32), 16, 16),
    "steps that are left": (in_lanes(4, 15), 4, 4),
    "two arrays": (
        "(xs: [f32]64, ys: [f32]64) = join(mapGlb(0, fun rows => asScalar(mapSeq(vectorize(4, reduceSeq("
        "fun (s, a, b) => s + a * b, 0.0)), asVector(4, split(8, rows)))), split(32, zip(xs, ys))))", 8, 4,
    ),
}  # fmt: skip
OTHERS = {
    "two lanes": in_lanes(2, 16),
    "chunks shorter than a vector": in_lanes(8, 4),
    "a function of each element's place": in_lanes(4, 8, elements="gather(reverse, xs)"),
    "bytes": in_lanes(8, 16, "reduceSeq(fun (s, x) => 3 * s + to_i32(x), 1)").replace("f32", "u8"),
    "every second element": in_lanes(4, 8, elements="gather(i => 2 * (i % 32) + i / 32, xs)"),
}


def read(text: str) -> list[str]:
    """The vectors that a kernel reads, by their types."""
    return re.findall(r"= \*\(global const (?:float|uchar)(\d+)_u \*\)", text)


@in_turn(6)
@needs_opencl
@pytest.mark.parametrize("what", SQUARES)
def test_a_square_is_read_in_vectors(what: str, runner: Runner):
    text, vectors, lanes = SQUARES[what]
    program = parse_program(f"program p{text}")
    plan = compile_program(program, POCL)
    assert read(plan.source) == vectors * [str(lanes)]
    assert "_u *)" not in compile_program(program, GENERIC).source
    inputs = random_inputs(program, 0, "float")
    runner.load_inputs(what, inputs)
    assert np.allclose(runner.run(plan, what), evaluate(program.body, inputs), rtol=1e-6)


@pytest.mark.parametrize("what", OTHERS)
def test_other_lanes_are_put_together_one_by_one(what: str):
    assert not read(compile_program(parse_program(f"program p{OTHERS[what]}"), POCL).source)
