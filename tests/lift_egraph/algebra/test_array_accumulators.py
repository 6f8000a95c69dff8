"""Folds of small arrays are parallel where folds of their elements as tuples are."""

from __future__ import annotations

import pytest

from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import Array
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import run
from lift_egraph.records.searched import as_searched
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals

IDENTITY = "generate(2, fun i => generate(2, fun j => if i == j then 1.0 else 0.0))"
PRODUCT = "map(fun row => map(fun c => reduce(add, 0.0, map(mul, zip(row, c))), transpose(q)), p)"
PARALLEL = {
    "a vector that matrices multiply": """program p(M: [[[f32]3]3]N in -0.5..0.5) where N = 1024 =
        reduceSeq(fun (v, m) => map(fun row => reduce(add, 0.0, map(mul, zip(row, v))), m), fill(3, 1.0), M)""",
    "the best ways to a few states": """program p(E: [[f32]K]N, T: [[f32]K]K) where N = 1024, K = 3 =
        reduceSeq(
          fun (s, e) => map(fun (row, v) => v + reduce(max, -inf, map(add, zip(s, row))), zip(T, e)),
          fill(K, 0.0), E)""",
    "a delay line": """program p(x: [f32]N) where N = 1024 =
        scanSeq(fun (s, v) => concat(slice(1, 3, s), fill(1, v + 0.5 * s[0])), fill(4, 0.0), x)""",
    "the states before each element": """program p(x: [f32]N) where N = 1024 =
        scanExclusiveSeq(fun (s, v) => map(fun a => 0.5 * a + v, s), fill(3, 1.0), x)""",
    "products of matrices": f"""program p(A: [[[f32]2]2]N in -0.7..0.7) where N = 1024 =
        reduce(fun (p, q) => {PRODUCT}, {IDENTITY}, A)""",
    "all products of matrices": f"""program p(A: [[[f32]2]2]N in -0.7..0.7) where N = 1024 =
        scan(fun (p, q) => {PRODUCT}, {IDENTITY}, A)""",
    "an array beside a number": """program p(x: [f32]N) where N = 1024 =
        reduceSeq(fun ((s, n), v) => (map(fun a => a + v * n, s), 0.5 * n + 1.0), (fill(2, 0.0), 0.0), x)""",
    "a pair that is named as one": """program p(x: [f32]N) where N = 1024 =
        reduceSeq(fun t => map(fun a => 0.5 * a + t[1], t[0]), fill(2, 0.0), x)""",
    "in a map over rows": """program p(X: [[f32]N]M) where M = 2, N = 1024 =
        map(fun x => reduceSeq(fun (s, v) => map(fun a => 0.5 * a + v, s), fill(2, 0.0), x), X)""",
}


@pytest.mark.parametrize("name", PARALLEL)
def test_folds_of_small_arrays_are_those_of_tuples(name: str):
    source = parse_program(PARALLEL[name])
    program, changed = specialise(source), specialise(as_searched(source))
    assert type_of(changed.body) == type_of(program.body)
    folds = [t for t in ir.subterms(changed.body) if isinstance(t, ir.WHOLE_FOLDS)]
    assert not any(isinstance(type_of(fold.initial), Array) for fold in folds)
    assert not [*refusals(changed.body)]
    for seed in range(2):
        inputs = random_inputs(program, seed)
        assert equal_values(run(program, inputs), run(changed, inputs))


@pytest.mark.parametrize(
    "fold",
    [
        "reduceSeq(fun (s, v) => map(fun a => a * a + v, s), fill(3, 1.0), x)",  # no more parallel than before
        "reduceSeq(fun (s, v) => map(fun a => 0.5 * a + v, s), fill(3, 1.0), slice(0, 9, x))",  # short
        "reduceSeq(fun (s, v) => map(fun a => 0.5 * a + v, s), fill(17, 1.0), x)",  # too many
        "reduceSeq(fun (s, v) => map(fun a => a + s[to_i32(v)], s), fill(3, 1.0), x)",  # at a place of the data
        "reduceSeq(fun (s, v) => gather(reverse, s), fill(3, 1.0), x)",
    ],
)
def test_other_folds_of_arrays_stay(fold: str):
    changed = as_searched(parse_program(f"program p(x: [f32]N) where N = 1024 = {fold}"))
    folds = [t for t in ir.subterms(changed.body) if isinstance(t, ir.ReduceSeq)]
    assert any(isinstance(type_of(one.initial), Array) for one in folds)
