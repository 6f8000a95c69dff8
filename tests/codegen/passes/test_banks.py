"""Rows of local arrays are apart where work-items would meet in one bank, and only there."""

from __future__ import annotations

import re

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.errors import DeviceProblem
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program


def transposed(rows: int = 32, columns: int = 32, element: str = "f32") -> ir.Program:
    """A matrix, transposed in local memory by a group: what is written by rows is read by columns."""
    return parse_program(
        f"""program p(xs: [[[{element}]{columns}]{rows}]2) =
              mapWrg(0, fun tile =>
                mapSeq(mapLcl(0, id), transpose(toLocal(mapSeq(mapLcl(0, id), tile)))), xs)"""
    )


def length(program: ir.Program, device: Device = NVIDIA) -> int:
    found = re.search(r"local \w+ tmp\[(\d+)\]", compile_program(program, device).source)
    assert found is not None
    return int(found[1])


def test_rows_as_long_as_there_are_banks_are_apart():
    assert length(transposed()) == 32 * 33
    assert length(transposed(columns=64)) == 32 * 65
    assert length(transposed(element="f64")) == 32 * 33


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(transposed(columns=33), id="rows of another length"),
        pytest.param(transposed(element="u8"), id="elements of parts of words"),
    ],
)
def test_other_rows_stay(program: ir.Program):
    assert length(program) == 32 * (33 if "33" in str(program.inputs[0].type) else 32)


def test_a_cpu_has_no_banks():
    assert length(transposed(), POCL) == 32 * 32


def test_rows_stay_where_there_is_no_room_for_gaps():
    assert length(transposed(rows=384)) == 384 * 32
    with pytest.raises(DeviceProblem):
        compile_program(transposed(rows=416), NVIDIA)


def test_items_that_read_neighbouring_vectors_are_apart():
    vectors = "asScalar(mapSeq(vectorize(4, fun v => v + v), asVector(4, part)))"
    program = parse_program(
        f"""program p(xs: [[[f32]256]4]2) =
              mapWrg(0, fun tile =>
                mapSeq(fun row => mapLcl(0, fun part => {vectors}, split(8, row)),
                       toLocal(mapSeq(mapLcl(0, id), tile))), xs)"""
    )
    assert length(program) == 4 * (256 + 4 * 256 // 32)
