"""Folds of rows as folds of columns, and nested maps in the order of their results: the same values."""

import numpy as np
import pytest

from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.columns import with_columns
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import run

ROWS = "fun (u, v) => map(add, zip(u, v))"
TABLES = "fun (u, v) => map(fun (p, q) => map(add, zip(p, q)), zip(u, v))"
PRODUCT = "map(fun a => map(fun b => reduce(add, 0.0, map(fun (x, y) => x * y, zip(a, b))), transpose(B)), A)"
FOLDS = {
    f"reduce({ROWS}, fill(K, 0.0), A)": "map(fun c => reduce(add, 0.0, c), transpose(A))",
    "reduceSeq(fun (u, v) => map(fun (x, y) => 2.0 * y - x, zip(v, u)), xs, A)":
        "map(fun (z, c) => reduceSeq(fun (y, x) => 2.0 * y - x, z, c), zip(xs, transpose(A)))",
    "reduceSeq(fun (u, (x, r)) => map(fun (s, y) => s + x * y, zip(u, r)), fill(N, 0.0), zip(xs, B))":
        "map(fun c => reduceSeq(fun (s, (x, y)) => s + x * y, 0.0, zip(xs, c)), transpose(B))",
    f"map(fun a => reduce({ROWS}, fill(N, 0.0), map(fun (x, r) => map(fun y => x * y, r), zip(a, B))), A)": PRODUCT,
    f"reduce({TABLES}, fill(M, fill(N, 0.0)), map(fun (c, r) => map(fun x => map(fun y => x * y, r), c), "
    "zip(transpose(A), B)))": PRODUCT,
    "reduce(fun (u, v) => map2d(max, zip2d(u, v)), fill(K, fill(N, 0.0)), T)":
        "map(fun t => map(fun c => reduce(max, 0.0, c), transpose(t)), transpose(T))",
    "transpose(map(fun a => map(fun b => a[0] + b[0], B), A))": "map(fun b => map(fun a => a[0] + b[0], A), B)",
    "map(transpose, map(fun t => map(fun a => map(fun b => a[0] + b[0], t), A), T))":
        "map(fun t => map(fun b => map(fun a => a[0] + b[0], A), t), T)",
    "reduceSeq(fun (u, v) => map(fun (x, y) => x + y * u[0], zip(u, v)), xs, A)": None,  # reads all of the row
    "transpose(map(fun a => map(fun x => x + a[0], a), A))": None,
    "reduceSeq(fun (u, v) => map(add, zip(v, v)), xs, A)": None,
    "transpose(A)": None,
}


@pytest.mark.parametrize("written", FOLDS)
def test_folds_of_rows_become_folds_of_columns(written: str):
    program, wanted = program_of(written), FOLDS[written]
    made = with_columns(program)
    if wanted is None:
        assert alpha_equal(made.body, program.body)
    else:
        assert alpha_equal(made.body, program_of(wanted).body), print_term(made.body)
        inputs = random_inputs(specialise(program), kind="integer")
        assert np.array_equal(run(specialise(made), inputs), run(specialise(program), inputs))


def program_of(text: str) -> ir.Program:
    inputs = "xs: [f32]K, A: [[f32]K]M, B: [[f32]N]K, T: [[[f32]N]K]M"
    return parse_program(f"program p({inputs}) where N = 6, M = 5, K = 4 = {text}")
