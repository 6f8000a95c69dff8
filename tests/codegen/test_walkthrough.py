"""Reads are explained by the views that lowering really asks."""

from __future__ import annotations

import pytest

from lift_egraph.api import LiftError, parse_program, specialise
from lift_egraph.codegen.c_ast import Load
from lift_egraph.codegen.c_walk import loads
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC
from lift_egraph.codegen.walkthrough import explain, reads
from lift_egraph.programs import load
from tests.codegen import low_level as low


def test_the_first_read_of_the_dot_product_is_figure_4_5() -> None:
    first, *_ = reads(specialise(load("partial_dot"), {"N": 1024}))
    assert [str(step).split()[0] for step in first.steps] == [
        "component", "access", "access", "split(2)", "access", "split(128)", "zip", "memory",
    ]  # fmt: skip
    assert first.steps[-1].choices == ()
    assert str(first.index) == "i + 2 * lcl_0 + 128 * wrg_0"


def test_every_explained_index_is_one_of_the_kernel() -> None:
    program = specialise(low.mm_tiled(4), {"M": 8, "K": 12, "N": 16})
    (kernel,) = compile_program(program, GENERIC).kernels
    real = {(load.buffer.name, load.index) for load in loads(kernel.body)}
    for read in reads(program):
        if isinstance(read.place, Load) and read.place.buffer.space != "private":
            assert (read.place.buffer.name, read.index) in real


def test_the_components_of_a_tuple_are_read_one_by_one() -> None:
    found = [read for read in reads(specialise(low.partial_dot(128, 6), {"N": 256})) if read.variable.startswith("ab")]
    assert [(read.variable, str(read.steps[-1]).split()[1]) for read in found] == [("ab.0", "xs"), ("ab.1", "ys")]


def test_what_does_not_disappear_is_not_called_simplified() -> None:
    program = parse_program("program p(x: [f32]64) = mapGlb(0, fun e => e, join(transpose(split(4, x))))")
    text = explain(program, "e")
    assert "as 0 <=" not in text
    assert text.endswith("in normal form x[4 * (glb_0 % 16) + (glb_0 / 16)]")


def test_an_unknown_variable_is_refused_with_those_there_are() -> None:
    program = parse_program("program p(x: [f32]64) = mapGlb(0, fun e => e, x)")
    with pytest.raises(LiftError, match=r"no function reads 'y' from an array; there are e"):
        explain(program, "y")
