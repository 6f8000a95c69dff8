"""The rows of the benchmark against hand-written kernels: both sides are right, and the generated text stays small."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.rows import ROWS, Row
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References, judge, references_for
from lift_egraph.language.check import type_of
from tests.codegen.opencl import as_pocl_likes, needs_opencl
from tests.depth import in_turn

LARGEST_TEXT = 64 << 10  # bytes; the thesis reports 7 MB for a matrix product without index simplification
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
each_dialect = pytest.mark.parametrize("dialect", ["pocl", "nvidia"])


def reference_of(row: Row, dialect: str) -> References:
    """What the kernels of a row compute: one function in all dialects whose programs take and give the same."""
    first, program = (row.program(d, row.sizes["check"]) for d in ("pocl", dialect))
    same = (first.inputs, type_of(first.body)) == (program.inputs, type_of(program.body))
    return interpreted(row, "pocl" if same else dialect)


@cache
def interpreted(row: Row, dialect: str) -> References:
    program = row.program(dialect, row.sizes["check"])
    return references_for(program, row.inputs(program, 0, "integer"), row.inputs(program, 0, "float"))


@in_turn(8)
@needs_opencl
@each_dialect  # the text for NVIDIA is OpenCL C that others take too
@each_row
@pytest.mark.parametrize("side", ["generated", "by hand"])
def test_both_sides_compute_what_the_interpreter_does(
    row: Row, dialect: str, side: str, runner: Runner, another_runner: Runner
) -> None:
    on = runner if dialect == "pocl" else another_runner
    sizes = row.sizes["check"]
    plan = (
        row.by_hand(dialect, sizes)
        if side == "by hand"
        else compile_program(row.program(dialect, sizes), DEVICES[dialect])
    )
    reference = reference_of(row, dialect)
    results = []
    for inputs in (reference.integers.inputs, reference.floats.inputs):
        on.load_inputs("inputs", inputs)
        results.append(on.run(as_pocl_likes(plan), "inputs"))
    verdict = judge(reference, *results)
    assert verdict.valid, verdict.message


@in_turn(3)
@each_dialect
@each_row
def test_the_text_does_not_grow_with_the_sizes(row: Row, dialect: str) -> None:
    plans = [
        compile_program(row.program(dialect, row.sizes_on(dialect, which)), DEVICES[dialect])
        for which in ("small", "large")
    ]
    for plan in plans:
        assert len(plan.source) < LARGEST_TEXT
        assert all(k.local_bytes <= 48 << 10 for k in plan.kernels)
    lines = [plan.source.count("\n") for plan in plans]
    assert abs(lines[0] - lines[1]) <= 0.1 * lines[0]


@in_turn(3)
@each_row
def test_both_sides_share_their_buffers(row: Row) -> None:
    for dialect in ("pocl", "nvidia"):
        sizes = row.sizes["check"]
        ours, theirs = compile_program(row.program(dialect, sizes), DEVICES[dialect]), row.by_hand(dialect, sizes)
        for role in ("input", "output"):
            mine, other = (
                {(b.value, b.components, b.element, b.shape) for b in plan.buffers if b.role == role}
                for plan in (ours, theirs)
            )
            assert mine == other
