"""Programs that say the same in other words are searched as one: the same term, and the same values."""

import numpy as np
import pytest

from lift_egraph.language import ir
from lift_egraph.language.accumulators_first import with_accumulators_first
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.folds_outside import with_folds_outside
from lift_egraph.language.lets_outside import with_lets_outside
from lift_egraph.language.maps_together import with_maps_together
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import run
from lift_egraph.records.searched import as_searched

MOST = "reduce(max, -inf, row)"
NORM = f"map(fun row => let m = {MOST} in map(fun x => x - m, row), A)"
CENTRED = f"map(fun row => let m = {MOST} in reduce(add, 0.0, map(fun x => let c = x - m in c * c, row)), A)"
ATTENTION = "map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)"
TOTAL = "reduce(add, 0.0, xs)"
SPELLINGS = {
    "reduceByIndex(add, is, ks, is)": (
        "reduceByIndex(fun (a, b) => b + a, is, ks, is)",
        "reduceByIndex(fun (a, b) => let s = b + a in s, is, ks, is)",
        "let both = zip(ks, is) in reduceByIndex(add, is, map(fun (k, i) => k, both), map(fun (k, i) => i, both))",
    ),
    "reduceByIndex(max, is, ks, is)": (
        "reduceByIndex(fun (a, b) => if a > b then a else b, is, ks, is)",
        "reduceByIndex(fun (a, b) => if a <= b then b else a, is, ks, is)",
    ),
    NORM: (
        f"let ms = map(fun row => {MOST}, A) in map(fun (m, row) => map(fun x => x - m, row), zip(ms, A))",
        f"let ms = map(fun row => {MOST}, A) in map(fun (row, m) => map(fun x => x - m, row), zip(A, ms))",
        f"let ms = map(fun row => {MOST}, A) in generate(M, fun i => generate(K, fun j => A[i][j] - ms[i]))",
        f"map(fun row => map(fun x => x - {MOST}, row), A)",
        f"let T = transpose(transpose(A)) in map(fun row => map(fun x => x - {MOST}, row), A)",
    ),
    CENTRED: (
        f"let C = map(fun row => let m = {MOST} in map(fun x => x - m, row), A) in "
        "map(fun r => reduce(add, 0.0, map(fun c => c * c, r)), C)",
    ),
    TOTAL: ("let s = scan(add, 0.0, xs) in s[K - 1]", "(scan(add, 0.0, map(fun x => x, xs)))[K - 1]"),
    "let t = reduce(max, 0.0, xs) in t * 2.0": (
        "let s = map(fun v => v * 2.0, scan(max, 0.0, xs)) in s[K - 1]",
    ),
    "map(fun (x, y) => let a = x + 1.0 in a * y, zip(xs, ys))": (
        "map(mul, zip(let m = map(fun v => v + 1.0, xs) in m, ys))",
        "let m = map(fun v => v + 1.0, xs) in map(mul, zip(m, ys))",
    ),
    "reduce(add, 0.0, map(fun (i, x) => let w = to_f32(i) in w * x, zip(generate(K, fun i => i), xs)))": (
        "let w = generate(K, fun i => to_f32(i)) in reduce(add, 0.0, map(mul, zip(w, xs)))",
    ),
}


@pytest.mark.parametrize(("plain", "other"), [(p, other) for p, others in SPELLINGS.items() for other in others])
def test_other_words_are_searched_as_one(plain: str, other: str):
    wanted, made = (specialise(as_searched(program_of(text))).body for text in (plain, other))
    in_one_line = alpha_equal(simple(wanted), simple(made))
    assert in_one_line, f"{print_term(made)}\nand not {print_term(wanted)}"
    program = program_of(other)
    inputs = random_inputs(specialise(program), kind="integer")
    assert np.array_equal(run(specialise(as_searched(program)), inputs), run(specialise(program), inputs))


def simple(term: ir.Expr) -> ir.Expr:
    """A term by which a plain one and what was put together are compared: with lets of variables written out."""
    return with_lets_outside(ir.Program("p", (), term, ())).body


@pytest.mark.parametrize(
    "written",
    [
        f"let S = {ATTENTION} in map(fun s => let m = reduce(max, -inf, s) in map(fun x => x - m, s), S)",
        f"let P = map(fun r => map(fun x => x * 2.0, r), {ATTENTION}) in map(fun p => map(fun q => "
        "reduce(add, 0.0, map(mul, zip(p, q))), B), P)",
        "let s = scan(add, 0.0, xs) in map(fun v => v / s[K - 1], s)",
        "let m = map(fun v => v + 1.0, xs) in zip(m, m)",
        "let s = map(reduce(max, -inf), A) in map(fun w => reduce(add, 0.0, w), slide(2, 1, s))",
        "let w = gather(reverse, xs) in generate(K, fun i => w[is[i]])",
        "map(fun x => reduce(max, x, xs), ys)",
        "map(fun row => map(transpose, slide(2, 1, slide(2, 1, row))), A)",
    ],
)
def test_what_has_kernels_of_its_own_stays_apart(written: str):
    program = program_of(written)
    made = with_maps_together(with_folds_outside(with_lets_outside(program)))
    assert alpha_equal(made.body, program.body), print_term(made.body)


def test_what_does_not_commute_stays_in_its_order():
    for operator in ("fun (a, b) => b - a", "fun (a, b) => if b < a then 0 else 1", "fun (a, b) => min(b, b) * a + a"):
        program = program_of(f"reduceSeq({operator}, 0, is)")
        made = with_accumulators_first(program)
        inputs = random_inputs(specialise(program), kind="integer")
        assert np.array_equal(run(specialise(made), inputs), run(specialise(program), inputs))


def test_the_larger_of_floats_stays_in_its_order_for_zeros_have_signs():
    program = program_of("reduceSeq(fun (s, x) => max(x, s), 0.0, xs)")
    assert with_accumulators_first(program) is program


def program_of(text: str) -> ir.Program:
    inputs = "xs: [f32]K, ys: [f32]K, ks: [i32]K in 0..K, is: [i32]K, A: [[f32]K]M, B: [[f32]N]K"
    return parse_program(f"program p({inputs}) where N = 6, M = 5, K = 70 = {text}")
