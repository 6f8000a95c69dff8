"""Loops over places as loops over elements: the same values, in the form that rules and plans know."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.elements import with_elements
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import run
from lift_egraph.records.searched import as_searched
from tests.depth import depth, in_turn

INPUTS = "xs: [f32]N, ys: [f32]N, ks: [i32]N, A: [[f32]K]M, B: [[f32]N]K, T: [[[f32]K]M]N, C: [[i32]K]M"

LOOPS = {
    "generate(N, fun i => xs[i] * ys[i])": "map(fun (a, b) => a * b, zip(xs, ys))",
    "generate(N, fun i => xs[i] * to_f32(i))": "map(fun (x, i) => x * to_f32(i), zip(xs, generate(N, id)))",
    "let f = fun i => xs[i] in generate(N - 1, fun i => f(i) + f(i + 1))": "map(fun w => w[0] + w[1], slide(2, 1, xs))",
    "let f = fun (i, j) => A[min(i, M - 1)][j] in generate(M, fun i => generate(K, fun j => 2.0 * f(i, j)))":
        "map(fun a => map(fun x => 2.0 * x, a), A)",
    "generate(N, fun i => xs[ks[i]])": "map(fun k => xs[k], ks)",
    "generate(N, fun i => xs[N - 1 - i] + ys[i])": None,
    "generate(N - 2, fun i => xs[i + 2] - xs[i])": "map(fun w => w[2] - w[0], slide(3, 1, xs))",
    "generate(N - 2, fun i => xs[1 + i])": "slice(1, N - 2, xs)",
    "generate(N / 2, fun i => xs[2 * i] + xs[2 * i + 1])": None,  # an open size may be odd
    "generate(M, fun i => A[i])": "A",
    "generate(K, fun j => reduce(add, 0.0, map(fun row => row[j], A)))":
        "map(fun c => reduce(add, 0.0, c), transpose(A))",
    "generate(N, fun j => reduceSeq(fun (s, (row, x)) => s + row[j] * x, 0.0, zip(B, A[0])))":
        "map(fun b => reduceSeq(fun (s, (y, x)) => s + y * x, 0.0, zip(b, A[0])), transpose(B))",
    "generate(K, fun j => reduce(add, 0.0, map(fun row => row[j] + row[0], A)))": None,
    "generate(M, fun i => A[i][i])": None,
    "generate(M, fun i => let row = A[i] in generate(K, fun k => row[k] + B[k][0]))":
        "map(fun row => map(fun (a, b) => a + b[0], zip(row, B)), A)",
    "generate(M, fun i => generate(N, fun j => reduce(add, 0.0, generate(K, fun k => A[i][k] * B[k][j]))))":
        "map(fun a => map(fun b => reduce(add, 0.0, map(fun (x, y) => x * y, zip(a, b))), transpose(B)), A)",
    "generate(M, fun i => generate(K, fun j => reduceSeq(fun (s, n) => s + T[n][i][j], 0.0, generate(N, fun n => n))))":
        "map(fun t => map(fun u => reduceSeq(fun (s, x) => s + x, 0.0, u), transpose(t)), transpose(T))",
    "generate(N, fun i => 0.5 * (xs[max(i - 1, 0)] + xs[min(i + 1, N - 1)]))":
        "map(fun w => 0.5 * (w[0] + w[2]), slide(3, 1, pad(1, 1, clamp, xs)))",
    "generate(N, fun i => xs[i - 1] + ys[i])":
        "map(fun (x, y) => x + y, zip(slice(0, N, pad(1, 0, clamp, xs)), ys))",
    "generate(N - 2, fun i => reduce(add, 0.0, generate(3, fun a => xs[i + a])))":
        "map(fun w => reduce(add, 0.0, w), slide(3, 1, xs))",
    "generate(N, fun i => if i == 0 || i > N then 2.0 else xs[i - 1])": "slice(0, N, pad(1, 0, constant(2.0), xs))",
    "generate(N, fun i => (if i > 0 then xs[i - 1] else 0.0) + xs[i] + (if i < N - 1 then xs[i + 1] else 0.0))":
        "map(fun w => w[0] + w[1] + w[2], slide(3, 1, pad(1, 1, constant(0.0), xs)))",
    "generate(M, fun i => generate(K, fun j => let ok = i >= 2 && 0 < j in if ok then A[i - 2][j - 1] else 0.0))":
        "map(fun a => slice(0, K, pad(1, 0, constant(0.0), a)), slice(0, M, pad(2, 0, constant(0.0), A)))",
    "generate(N, fun i => reduceSeq(fun (s, k) => s + (if i + k < N then xs[i + k] else 0.0), 0.0, generate(3, id)))":
        "map(fun w => reduceSeq(fun (s, x) => s + x, 0.0, w), slide(3, 1, pad(0, 2, constant(0.0), xs)))",
    "generate(N, fun i => if i != N - 1 && ys[i] > 0.0 then xs[i + 1] else 1.0)":
        "map(fun (x, y) => if y > 0.0 then x else 1.0, zip(slice(1, N, pad(0, 1, constant(1.0), xs)), ys))",
    "generate(N, fun i => if i < N - 1 then xs[i + 2] else 1.0)":  # the last place is still outside
        "map(fun (x, i) => if i < N - 1 then x else 1.0, zip(slice(2, N, pad(0, 2, clamp, xs)), generate(N, id)))",
    "generate(N, fun i => if i < 1 then 0.0 else -to_f32(ks[i - 1]))":  # no whole number gives 0.0
        "map(fun (k, i) => if i < 1 then 0.0 else -to_f32(k), zip(slice(0, N, pad(1, 0, clamp, ks)), generate(N, id)))",
    "generate(N, fun i => if i >= 1 then if i <= N then -2.0 * xs[i - 1] else 0.0 else 0.0)":
        "map(fun x => -2.0 * x, slice(0, N, pad(1, 0, constant(-0.0), xs)))",
    "generate(N, fun i => if i < 1 then 0.0 else to_f32(ks[i - 1]) / 2.0)":
        "map(fun k => to_f32(k) / 2.0, slice(0, N, pad(1, 0, constant(0), ks)))",
    "generate(N, fun i => if i >= 1 then inf * xs[i - 1] else 0.0)":  # NaN of a zero
        "map(fun (x, i) => if i >= 1 then inf * x else 0.0, zip(slice(0, N, pad(1, 0, clamp, xs)), generate(N, id)))",
    "generate(N, fun i => xs[(i + N - 1) % N] - 2.0 * xs[i] + xs[(i + 1) % N])":
        "map(fun w => w[0] - 2.0 * w[1] + w[2], slide(3, 1, pad(1, 1, wrap, xs)))",
    "generate(M, fun i => let k = (2 + i) % M in generate(K, fun j => A[k][(j + 2 * K - 1) % K]))":
        "map(fun a => slice(0, K, pad(1, 0, wrap, a)), slice(2, M, pad(0, 2, wrap, A)))",
    "generate(N, fun i => reduce(add, 0.0, generate(3, fun j => xs[(i + j) % N])))":
        "map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(0, 2, wrap, xs)))",
    "generate(N, fun i => (if i == 0 then xs[N - 1] else xs[i - 1]) + (if i + 1 < N then xs[i + 1] else xs[0]))":
        "map(fun w => w[0] + w[2], slide(3, 1, pad(1, 1, wrap, xs)))",
    "generate(N, fun i => (if i > 0 then xs[i - 1] else xs[0]) - (if i == N - 1 then xs[i] else xs[i + 1]))":
        "map(fun w => w[0] - w[2], slide(3, 1, pad(1, 1, clamp, xs)))",
    "generate(M, fun i => let k = (if i < 2 then i + M - 2 else i - 2) in generate(K, fun j => -A[k][j]))":
        "map(fun a => map(fun x => -x, a), slice(0, M, pad(2, 0, wrap, A)))",
    "generate(N, fun i => if i > 0 then xs[i - 1] else xs[1])":
        "map(fun (x, i) => if i > 0 then x else xs[1], zip(slice(0, N, pad(1, 0, clamp, xs)), generate(N, id)))",
    "generate(M, fun i => if A[i][3] > 0.0 then A[i][0] else A[i][1])":
        "map(fun a => if a[3] > 0.0 then a[0] else a[1], A)",
    "generate(N, fun i => xs[(i - 1) % N])": None,  # the rest of -1 is no place
    "generate(N, fun i => xs[(i + N - 7) % N])": None,  # of which are fewer than before the array
    "generate(N, fun i => xs[(i + 1) % M])": None,
    "map(fun i => xs[i] + 1.0, generate(N, fun i => i))": "map(fun x => x + 1.0, xs)",
    "generate(N, fun i => xs[min(i + 1, N - 2)])": None,  # which bounds more than the array does
    "generate(N, fun i => xs[i * i])": None,
    "generate(N, fun i => xs[i / 2] + xs[i])": None,
    "generate(2 * N, fun i => xs[i])": "pad(0, N, clamp, xs)",
    "generate(M, fun i => xs[i + K])": "slice(K, M, pad(0, M + K - N, clamp, xs))",
    "generate(M, fun i => xs[i])": None,  # fewer elements than there are, of these sizes
    "generate(K, fun k => reduce(add, 0.0, generate(N, fun i => if i + k < N then xs[i] * xs[i + k] else 0.0)))":
        "map(fun (w, k) => reduce(add, 0.0, "
        "map(fun (x, y, i) => if i + k < N then x * y else 0.0, zip(xs, w, generate(N, id)))), "
        "zip(slide(N, 1, pad(0, K - 1, clamp, xs)), generate(K, id)))",
    "generate(K, fun k => reduce(add, 0.0, generate(N, fun i => xs[i] * (if i + k < N then xs[i + k] else 0.0))))":
        "map(fun w => reduce(add, 0.0, map(mul, zip(xs, w))), slide(N, 1, pad(0, K - 1, constant(0.0), xs)))",
    "generate(N + 1, fun i => xs[i])": "pad(0, 1, clamp, xs)",
    "reduceSeq(fun (s, i) => C[s][i], 0, generate(K, id))": "reduceSeq(fun (s, c) => c[s], 0, transpose(C))",
    "reduceSeq(fun (t, i) => map(fun x => x + t[i], t), xs, generate(N, id))": None,  # whose array changes
    "generate(N - K, fun i => generate(K - 4, fun j => xs[i + j - 1]))": None,  # of no steps: a window of no elements
}


@pytest.mark.parametrize("written", LOOPS)
def test_loops_over_places_become_loops_over_elements(written: str):
    program, wanted = program_of(written), LOOPS[written]
    made = with_elements(program)
    if wanted is None:
        assert made is program
    else:
        assert alpha_equal(made.body, program_of(wanted).body), print_term(made.body)
        inputs = random_inputs(specialise(program), kind="integer")
        np.testing.assert_array_equal(run(specialise(made), inputs), run(specialise(program), inputs))


@pytest.mark.parametrize("written", [
    "generate(N + 1, fun i => if i < N then if i >= 1 then xs[i - 1] else -0.0 else 0.0)",
    "generate(N, fun i => (if i >= 1 then xs[i - 1] else -0.0, if i >= 1 then xs[i - 1] else 0.0))",
    "generate(N, fun i => 1.0 / fill(N, 0.0)[i] + 2.0 / fill(N, -0.0)[i])",
])
def test_elements_outside_keep_the_sign_of_zero(written: str):
    program = parse_program(f"program p(xs: [f32]N) where N = 3 = {written}")
    made, inputs = with_elements(program), {"xs": np.ones(3, np.float32)}
    with np.errstate(divide="ignore"):
        found, wanted = (np.array(run(specialise(p), inputs)) for p in (made, program))
    assert made is not program
    assert found.tobytes() == wanted.tobytes()


def program_of(text: str) -> ir.Program:
    return parse_program(f"program p({INPUTS}) where N = 6, M = 5, K = 4 = {text}")


def places(names: list[str], length: str) -> st.SearchStrategy[str]:
    """Where an array of a length may be read by loops that count these: within it, or not."""
    v, c = st.sampled_from(names), st.integers(0, 3)
    moved = st.builds("{} {} {}".format, v, st.sampled_from("+-"), c)
    scaled = st.builds("{} * {} + {}".format, c, v, c)
    ends = st.sampled_from([f"{length} - 1", "0"])
    kept = st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), moved, ends)
    both = st.builds("{} + {}".format, v, v)
    ahead = st.sampled_from([length, f"2 * {length}", "3"])
    turned = st.builds("({} + {} - {}) % {}".format, v, ahead, c, st.just(length))
    edges = [
        "{0} == 0 then {1} - 1 else {0} - 1", "{0} >= 1 then {0} - 1 else {0}", "{0} + 2 < {1} then {0} + 2 else 0",
        "{0} < {1} - 1 then {0} + 1 else 0", "{0} < 2 then {0} + {1} - 2 else {0} - 2", "{0} > 0 then 2 else {0} - 1",
    ]
    edge = st.builds(lambda e, v: f"(if {e.format(v, length)})", st.sampled_from(edges), v)
    return st.one_of(v, v, moved, kept, scaled, both, turned, edge, st.builds(f"{length} - 1 - {{}}".format, v))


@st.composite
def loops(draw: st.DrawFn, names: tuple[str, ...] = (), deep: int = 3) -> str:
    """Loops over places whose results are numbers, or sums of what is read there."""
    if not names or (deep and draw(st.booleans())):
        name = f"i{len(names)}"
        body = draw(loops((*names, name), deep - 1))
        length = draw(st.sampled_from(["N", "M", "N - 1", "N + 1", "M - 2", "2", "3"]))
        if not names or body[:8] == "generate" or draw(st.booleans()):
            made = f"generate({length}, fun {name} => {body})"
            return made if len(names) < 1 or body[:8] == "generate" else f"reduce(add, 0, {made})"
        return f"reduceSeq(fun (s, {name}) => 3 * s + {body}, 1, generate({length}, id))"
    counted = [*names]
    reads = st.one_of(
        st.builds("xs[{}]".format, places(counted, "N")),
        st.builds("A[{}][{}]".format, places(counted, "M"), places(counted, "N")),
        st.builds("A[{}][{}]".format, places(counted, "M"), places(counted, "N")),
    )
    guards = st.sampled_from([
        "(if {0} >= 0 && {0} < {1} then {2} else 7)", "(if {0} < 0 || {0} > {1} - 1 then 7 else {2})",
        "(if 0 < {0} + 1 && !({0} >= {1}) then {2} else 7)", "(if {0} != 0 then {2} else 7)",
        "(if {0} < {1} then {2} else 7)", "(if {0} == {1} - 1 then 7 else {2})",
        "(if {0} >= 0 then if {0} < {1} then {2} else 7 else 7)",
    ])
    at, rows, beside = places(counted, "N"), places(counted, "M"), st.sampled_from([0, 0, 0, 1, -1])
    reads |= st.builds(lambda g, p, k: g.format(p, "N", f"xs[{p} + {k}]"), guards, at, beside)
    reads |= st.builds(
        lambda g, h, p, q, k: h.format(q, "N", g.format(p, "M", f"A[{p} + {k}][{q}]")), guards, guards, rows, at, beside
    )
    first, second = draw(reads), draw(reads)
    return draw(st.sampled_from([f"{first} * {second}", f"{first} - 2 * {second}", f"{first} + {counted[-1]}", first]))


@in_turn(2)
@settings(max_examples=depth(25, 3000), deadline=None, suppress_health_check=list(HealthCheck))
@given(loops(), st.integers(1, 6), st.integers(1, 6))
@example("generate(M, fun i => reduce(add, 0, generate(M - 2, fun j => xs[i] * xs[i])))", 1, 1)  # of fewer than none
def test_random_loops_over_places_mean_the_same(written: str, n: int, m: int):
    text = f"program p(xs: [i32]N in -9..9, A: [[i32]N]M in -9..9) where N = {n}, M = {m} = {written}"
    try:
        program = parse_program(text)
        special = specialise(program)
    except LiftError:
        assume(False)
        return
    made = as_searched(program)
    inputs = random_inputs(special, kind="integer")
    assert np.array_equal(run(specialise(made), inputs), run(special, inputs)), print_term(made.body)
