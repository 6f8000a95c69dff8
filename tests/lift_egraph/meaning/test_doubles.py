"""Values in double precision without bounds are those with bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from lift_egraph.api import parse_program, programs, random_inputs, specialise
from lift_egraph.language import ir
from lift_egraph.meaning.agreement import Comparer
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.doubles import evaluate_doubles
from lift_egraph.meaning.values import leaves_of
from tests.strategies import programs as random_programs


def same_values(program: ir.Program) -> None:
    for kind in ("integer", "float"):
        inputs = random_inputs(program, 3, kind)
        value, bound = evaluate_bounded(program.body, inputs)
        plain = evaluate_doubles(program.body, inputs)
        for a, b, doubt in zip(leaves_of(value), leaves_of(plain), leaves_of(bound), strict=True):
            assert a.dtype == b.dtype
            known = np.isfinite(doubt) & np.isfinite(a)  # what overflows in the types themselves does not in doubles
            assert np.allclose(a[known], b[known], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["mm", "j2d5pt", "asum", "horner", "scan", "histogram", "spmv", "kmeans", "mss"])
def test_bundled_programs(name: str):
    program = programs.load(name)
    same_values(specialise(program, {size: 8 for size, _ in program.sizes}))


@given(random_programs())
def test_random_programs(program: ir.Program):
    same_values(program)


def test_operations_that_keep_the_precision_meet_those_that_do_not():
    same_values(
        parse_program(
            "program p(xs: [f32]40, A: [[f32]40]40) = (concat(xs, map(fun x => 0.1 * x, xs)), scan(add, 0.0, xs), "
            "map(fun row => reduce(add, 0.0, map(fun (a, b) => a * b, zip(row, xs))), A), "
            "map(fun x => f32(f16(select(x > 0.0, x, 0.1))), xs))"
        )
    )


def test_whole_numbers_that_become_floats_are_doubles():
    same_values(parse_program("program p(n: [i32]3) = map(fun i => to_f32(i), n)"))
    same_values(parse_program("program p(n: [i32]3) = map(fun i => to_f32(i + 99999) * to_f32(i + 99999), n)"))


def test_what_rounding_decides_is_not_different():
    # 3 * 0.1 - 0.3 is 0 or not
    text = "program p(xs: [f32]8) = map(fun x => {}, xs)"
    bodies = "x * 0.1 * 3.0 > x * 0.3", "x * 0.3 > x * 0.1 * 3.0"
    before, after = (parse_program(text.format(body)) for body in bodies)
    found = Comparer(before).compare(before.body, after.body)
    assert found.equal
    certain, wrong = (parse_program(text.format(body)) for body in ("x > 0.5", "x > 1.5"))
    assert Comparer(certain).compare(certain.body, wrong.body).equal is False
