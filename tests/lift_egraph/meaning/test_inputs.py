"""Random inputs have the shapes and the element types of the program's inputs."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.errors import SizeProblem
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs

PROGRAM = parse_program("program f(m: [[f32]3]2, ts: [(f64, [i32]2, bool)]4, v: [f32x4]2, s: f32) = m")


def test_shapes_and_types() -> None:
    values = random_inputs(PROGRAM)
    first, (second, third) = values["ts"]
    shown = [
        (np.asarray(x).shape, str(np.asarray(x).dtype)) for x in (first, second, third, *list(values.values())[2:])
    ]
    assert shown == [
        ((4,), "float64"), ((4, 2), "int32"), ((4,), "bool"), ((2, 4), "float32"), ((), "float32"),
    ]  # fmt: skip


def test_seeds_decide_the_values() -> None:
    one, again, other = (random_inputs(PROGRAM, seed)["m"] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_kinds() -> None:
    program = parse_program("program f(xs: [f32]10000, ks: [i32]1000) = xs")
    floats, integers = (random_inputs(program, kind=kind) for kind in ("float", "integer"))
    xs, whole = np.asarray(floats["xs"]), np.asarray(integers["xs"])
    assert -1 <= xs.min() < -0.9
    assert 0.9 < xs.max() < 1
    assert set(whole.tolist()) == set(range(-3, 4))
    assert set(np.asarray(floats["ks"]).tolist()) == set(range(4))


def test_open_sizes_are_refused() -> None:
    with pytest.raises(SizeProblem, match="open size"):
        random_inputs(programs.load("dot"))
