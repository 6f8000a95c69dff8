"""Folds of ranges, such as the rows of a sparse matrix: kernels against NumPy, and offsets that are none."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.api import (
    LiftError,
    Runner,
    equal_values,
    evaluate,
    naive_term,
    parse_program,
    random_inputs,
    run,
    specialise,
)
from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.plans.arrays import load_plan, save_plan
from lift_egraph.language import ir

SIZES = {"M": 20, "N": 30, "K": 70}
ROWS = "program p(ends: [i32]21, xs: [f32]70, ys: [i32]70) = map(fun w => {}, slide(2, 1, ends))"
FOLDS = (
    "reduceRange(max, -inf, w[0], w[1], xs)",
    "reduceRangeSeq(fun (a, (x, y)) => a * 0.5 - select(y > 1, x, 1.0), 0.5, w[0], w[1], zip(xs, ys))",
    "reduceRangeSeq(fun ((a, n), x) => (max(a, x), n + 1), (0.0, 0), 3, w[1], xs)",
    "reduceRange(fun (a, b) => map(add, zip(a, b)), fill(3, 1.0), w[0], w[1], slide(3, 1, pad(1, 1, clamp, xs)))",
    "reduceRange(add, 0, w[0], 12, map(fun y => reduceRange(add, 0, y, 3, ys), ys))",
)


def test_rows_of_a_sparse_matrix() -> None:
    program = specialise(programs.load("spmv"), SIZES)
    inputs = random_inputs(program, 1, "integer")
    starts, cols, values, x = (np.asarray(inputs[i.name]) for i in program.inputs)
    assert starts[0] == 0
    assert starts[-1] == 70
    lengths = np.diff(starts)
    assert lengths.min() >= 0
    assert len(set(lengths.tolist())) > 3
    rows = [np.dot(values[a:b], x[cols[a:b]]) for a, b in pairwise(starts)]
    assert equal_values(evaluate(program.body, inputs), np.float32(rows))


@pytest.mark.parametrize("fold", FOLDS)
def test_kernels_keep_ranges_in_the_array(fold: str, runner: Runner) -> None:
    program = specialise(parse_program(ROWS.format(fold)))
    inputs = random_inputs(program, 2, "integer")
    inputs["ends"] = np.random.default_rng(0).integers(-9, 80, 21).astype(np.int32)
    plan = compile_program(naive_term(program), POCL)
    runner.load_inputs("inputs", inputs)
    assert equal_values(runner.run(plan, "inputs"), evaluate(program.body, inputs))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 1, "element 0 is 1, but offsets begin with 0 and end with 70"),
        (20, 71, "element 20 is 71, but offsets begin with 0 and end with 70"),
        (7, 69, "element 8 is"),
        (3, -5, "element 3 is -5, less than"),
    ],
)
def test_what_are_no_offsets_is_refused(place: int, value: int, message: str, runner: Runner, tmp_path: Path) -> None:
    program = programs.load("spmv")
    special = specialise(program, SIZES)
    inputs = random_inputs(special, 1)
    inputs["offsets"][place] = value  # pyright: ignore
    with pytest.raises(LiftError, match=re.escape(message)):
        run(special, inputs)
    runner.load_inputs("inputs", inputs)
    for naive, sizes in ((naive_term(special), {}), (naive_term(replace(program, sizes=())), SIZES)):
        save_plan(compile_open(naive, POCL, any_launch=True), tmp_path)
        plan = load_plan(tmp_path, sizes)
        with pytest.raises(LiftError, match=f"the input offsets: {re.escape(message)}"):
            runner.run(plan, "inputs")


def test_operators_of_ranges_are_read_from_left_to_right() -> None:
    given = parse_program("program p(xs: [f32]9) = reduceRange(fun (a, b) => a - b, 1.0, 2, 5, xs)")
    assert isinstance(given.body, ir.ReduceRange)
    assert run(given, {"xs": np.arange(9, dtype=np.float32)}) == 1 - 2 - 3 - 4
