"""Ranges of elements that are looked up at places from arrays, as ranges of arrays that are looked up."""

import numpy as np
import pytest

from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.elements import with_elements
from lift_egraph.language.looked_up import with_lookups
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import run

ROWS = "map(fun w => {}, slide(2, 1, offsets))".format
SUM = "reduceRange(add, 0.0, w[0], w[1], {})".format
RANGES = {
    SUM("map(fun (v, c) => v * x[c], zip(values, cols))"):
        SUM("map(fun (v, u) => v * u, zip(values, lookup(cols, x)))"),
    "generate(F, fun f => " + SUM("generate(K, fun p => values[p] * B[cols[p]][f])") + ")":
        "map(fun b => " + SUM("map(fun (v, u) => v * u, zip(values, lookup(cols, b)))") + ", transpose(B))",
    SUM("map(fun c => x[c] - x[c] * B[c][1], cols)"):
        SUM("map(fun (u, r) => u - u * r[1], zip(lookup(cols, x), lookup(cols, B)))"),
    SUM("map(fun (c, v) => x[c] * v * B[c][c], zip(cols, values))"):
        SUM("map(fun ((c, (u, r)), v) => u * v * r[c], zip(zip(cols, zip(lookup(cols, x), lookup(cols, B))), values))"),
    SUM("map(fun (v, c) => reduce(add, v, map(fun d => x[d], lookup(fill(2, c), cols))), zip(values, cols))"): None,
    SUM("map(fun (v, c) => reduce(add, v, map(fun r => r[c], B)), zip(values, cols))"): None,
    SUM("map(fun c => x[c + 1], cols)"): None,
}  # fmt: skip


@pytest.mark.parametrize("written", RANGES)
def test_what_is_looked_up_stands_beside_what_a_range_goes_along(written: str):
    program, wanted = with_elements(program_of(written)), RANGES[written]
    made = with_lookups(program)
    assert alpha_equal(made.body, (program if wanted is None else program_of(wanted)).body), print_term(made.body)
    inputs = random_inputs(specialise(program), kind="integer")
    assert np.array_equal(run(specialise(made), inputs), run(specialise(program_of(written)), inputs))


def program_of(row: str) -> ir.Program:
    inputs = "offsets: [i32](M + 1) in offsets(K), cols: [i32]K in 0..N, values: [f32]K, x: [f32]N, B: [[f32]F]N"
    return parse_program(f"program p({inputs}) where M = 6, N = 5, K = 14, F = 4 = {ROWS(row)}")
