"""Long folds by guessed states, against a walk over the operator for each step."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning import shortcuts
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.bounds_recurrences import _in_blocks, _known, _one_by_one, _solved
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.recurrences import LONG, Steps
from lift_egraph.meaning.values import leaves_of, map_leaves
from lift_egraph.meaning.workload import effort, workload
from tests.depth import in_turn
from tests.lift_egraph.meaning.terms import parsed

WELFORD = """
    reduceSeq(fun ((n, m, s), a) =>
        let k = n + 1.0 in let d = a - m in let next = m + d / k in (k, next, s + d * (a - next)),
      (0.0, 0.0, 0.0), xs)
"""
TEXTS = [
    "reduceSeq(fun (acc, a) => acc * at(3, xs) + a, 0.0, xs)",  # Horner's rule
    "scanSeq(fun (y, a) => 0.9 * y + 0.1 * a, 0.0, xs)",
    "map(fun x => reduceSeq(fun (s, a) => let b = a * a in sqrt(abs(s * x - b) + 0.5), x, xs), at(0, split(5, xs)))",
    "reduceSeq(fun ((i, m), (j, a)) => (select(a > m, j, i), max(m, a)), (0, 0.0), zip(generate(600, id), xs))",
    "scan(fun ((s, n), (t, m)) => (s && t || not(t), select(s, m, n + m)), (false, 2.0), "
    "map(fun x => (x > 0.2, 1.0), xs))",
    "scanSeq(fun (s, i) => (s * 7 + i) % 11 + s / 3, 1, generate(600, id))",
    "scanSeq(fun (s, i) => (s * 7 - i) % 11 + s / 3, 1, generate(600, id))",
    "scanSeq(fun (s, i) => "
    "reduceSeq(fun (c, k) => bit_xor(shift_right(c, 1), shift_left(bit_and(c, 3), 29) + k), s * i, "
    "generate(6, fun k => k * 3 - s)), -1, generate(600, id))",
    WELFORD,
]


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch):
    """Runs something with the interpreter walking over the operator at each step."""

    def run(function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(shortcuts, "LONG", 1 << 40)
            return function(*arguments)

    return run


@in_turn(8)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_states_are_those_of_the_walk(text: str, whole: bool, walks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shortcuts, "RUN", 250)
    drawn = np.random.default_rng(1).uniform(-1, 1, 600).astype(np.float32)
    values = {"xs": np.rint(drawn) if whole else drawn}
    term = parsed(text, values)
    for one, other in zip(*map(leaves_of, (evaluate(term, values), walks(evaluate, term, values))), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    fast, slow = evaluate_bounded(term, values), walks(evaluate_bounded, term, values)
    for a, b, e, f in zip(*map(leaves_of, (fast[0], slow[0], fast[1], slow[1])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert not f[e == 0].any()
        assert (f * (1 - 1e-9) <= e).all()
        np.testing.assert_allclose(e, f, rtol=1.0, atol=1e-8)


def test_a_wrong_guess_is_noticed(walks, monkeypatch: pytest.MonkeyPatch):
    values = {"xs": np.random.default_rng(1).uniform(-1, 1, 600).astype(np.float32)}
    term = parsed(TEXTS[0], values)
    guess = Steps.states

    def off(self, start, columns):
        return map_leaves(lambda a: a * a.dtype.type(1 + 1e-6), guess(self, start, columns))

    expected, exact = evaluate(term, values), walks(evaluate_bounded, term, values)
    monkeypatch.setattr(Steps, "states", off)
    assert evaluate(term, values) == expected
    value, bound = evaluate_bounded(term, values)
    assert abs(value - exact[0]) + exact[1] <= bound < 1e-4


def test_folds_of_tuples_take_longer():
    one, two = (
        parse_program(f"program p(xs: [f32]4096) = reduceSeq({text}, xs)").body
        for text in ("fun (s, x) => s * s + x, 0.0", "fun ((s, t), x) => (t * s, s + x), (0.0, 0.0)")
    )
    assert effort(two) > 3 * effort(one)


def test_folds_that_are_walked_take_longer():
    fast, slow = (
        parse_program(f"program p(xs: [u8]4096, t: [i32]256) = reduceSeq(fun (s, x) => {text}, 0, xs)").body
        for text in ("bit_xor(s, 3) * 5 + to_i32(x)", "t[bit_and(s, 255)] * 5 + to_i32(x)")
    )
    assert effort(slow) > 20 * effort(fast)


def test_a_long_fold_that_begins_with_no_finite_number_has_a_bound():
    text = "reduceSeq(fun ((most, last), a) => let s = max(last + a, a) in (max(most, s), s), (-inf, -inf), xs)"
    xs = np.linspace(-1, 1.5, 3000, dtype=np.float32)
    values, bounds = evaluate_bounded(parse_program(f"program p(xs: [f32]3000) = {text}").body, {"xs": xs})
    assert all(0 < bound < 1e-2 * abs(value) for value, bound in zip(values, bounds, strict=True))


@pytest.mark.parametrize(
    ("text", "relative"),
    [
        ("scanSeq(fun (s, x) => s + 0.1 * (x - s), 0.0, xs)", 1e-6),
        ("scanSeq(fun (s, x) => s - s * 0.25 + (x - s) / 3.0, 0.0, xs)", 1e-6),
        ("scanSeq(fun (s, x) => select(x > 0.0, s + 0.5 * (x - s), s - 0.25 * (s + x)), 0.0, xs)", 1e-6),
        ("scanSeq(fun (s, x) => -(0.5 * s - x) + 0.25 * (s + s), 1.0, xs)", 1e-4),
        ("reduceSeq(fun ((m, s), x) => let d = max(s + x, 0.0) in (max(m, d), d), (0.0, 0.0), xs)", 1e-2),
        ("reduceSeq(fun ((s, m), x) => let t = max(0.99 * s + x, 0.0) in (t, max(m, t)), (0.0, 0.0), xs)", 1e-4),
        ("reduceSeq(fun ((n, m), x) => (n + 1.0, m + (x - m) / (n + 1.0)), (0.0, 0.0), xs)", 1e-5),
        (
            "scanSeq(fun ((x, p), m) => let q = p + 0.01 in let k = q / (q + 0.3) in (x + k * (m - x), (1.0 - k) * q), "
            "(0.0, 1.0), xs)",
            1e-4,
        ),
        ("scanSeq(fun (s, x) => sqrt(0.5 * s * s + x * x), 0.0, xs)", 1e-5),
        ("scanSeq(fun (s, x) => s * exp(-0.1 - s) + abs(x), 0.0, xs)", 1e-5),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_errors_that_cancel_have_bounds_after_thousands_of_steps(text: str, relative: float, whole: bool):
    """Where an operator reads its accumulator twice, and where one of two errors is the larger."""
    xs = np.random.default_rng(0).uniform(-1, 1, 20_011).astype(np.float32)
    xs = np.rint(3 * xs) if whole else xs
    term = parse_program(f"program p(xs: [f32]20011) = {text}").body
    found = evaluate_bounded(term, {"xs": xs})
    for single, value, bound in zip(leaves_of(evaluate(term, {"xs": xs})), *map(leaves_of, found), strict=True):
        assert (np.abs(np.float64(single) - value) <= bound).all()
        assert bound.max() <= relative * max(1, np.abs(value).max())


@in_turn(6)
@pytest.mark.parametrize(
    "text",
    [
        "scanSeq(fun ((a, b), x) => (b - a, a * 0.5 + x), (0.1, 0.2), xs)",
        "scanSeq(fun (s, x) => s * s - x * s, 0.1, xs)",
        "reduceSeq(fun (row, x) => map(fun w => at(1, w) - at(0, w) * x, slide(2, 1, pad(0, 1, wrap, row))), xs, xs)",
        "map(fun w => at(1, w) - at(0, w), slide(2, 1, map(fun x => reduceSeq(fun (s, y) => s * x + y, x, xs), xs)))",
    ],
)
def test_errors_of_several_sources_are_not_taken_for_one(text: str):
    """Differences of two states, of a state's elements and of two folds cancel nothing; a square is not affine."""
    generator = np.random.default_rng(1)
    for _ in range(5):
        xs = generator.uniform(-0.6, 0.6, 100).astype(np.float32)
        term = parse_program(f"program p(xs: [f32]100) = {text}").body
        found = evaluate_bounded(term, {"xs": xs})
        for single, value, bound in zip(leaves_of(evaluate(term, {"xs": xs})), *map(leaves_of, found), strict=True):
            assert (np.abs(np.float64(single) - value) <= bound).all()
            assert np.isfinite(bound[:20]).all()


def test_errors_without_bounds_grow_in_blocks_as_one_by_one():
    rng = np.random.default_rng(0)
    base, factors = rng.random((2, 3000)), rng.random((2, 2, 3000)) / 4
    base[0, 1000], factors[1, 0, 1500:1600], factors[:, :, 2000:] = np.inf, 0, np.inf
    for first in (np.zeros(2), np.array([0.0, np.inf])):
        expected = _known(_one_by_one(first, base, factors))
        np.testing.assert_allclose(_known(_in_blocks(first, base, factors)), expected, rtol=1e-6)


def test_errors_of_many_folds_at_once_are_those_of_each():
    rng = np.random.default_rng(0)
    first, base = rng.random((2, 3)), rng.random((2, 3, 2000))
    factors = rng.random((2, 2, 3, 2000)) / 2
    factors[:, :, 1] = 0
    found = _solved(list(first), list(base), [list(row) for row in factors])
    for fold in range(3):
        expected = _one_by_one(first[:, fold], base[:, fold], factors[:, :, fold])
        np.testing.assert_allclose([errors[fold] for errors in found], expected, rtol=1e-12)


@in_turn(4)
@pytest.mark.parametrize(
    "step",
    [
        "x / s",
        "select(s == 0.0, x, x / (s - s))",
        "abs(s) * 0.5 - rsqrt(abs(x)) / (1.0 + s * s)",
        "to_f64(to_i32(s * 8.0)) / 7.0 + x",
        "select(s > x || not(s < 0.25), s * 0.5 - x, -s / 3.0)",
    ],
)
def test_doubles_in_steps_are_those_of_the_walk(step: str, walks):
    """Python's own numbers refuse to be divided by zero."""
    values = {"xs": np.random.default_rng(2).uniform(-1, 1, 300)}
    values["xs"][[0, 7, 8, 90]] = 0
    term = parse_program(f"program p(xs: [f64]300) = scanSeq(fun (s, x) => {step}, 0.0f64, xs)").body
    found, expected = evaluate(term, values), walks(evaluate, term, values)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_what_a_step_of_a_short_fold_makes_is_gone_before_the_next():
    """So few slices do: each of many steps of a loop over time was evaluated slice by slice."""
    body = "reduceSeq(fun (s, i) => sin(s) * x + s, x, generate({}, id))"
    short, shorter, long = (
        workload(parse_program(f"program p(x: f32) = {body.format(n)}").body) for n in (LONG - 1, 2, LONG)
    )
    assert short == shorter == 3
    assert long == 3 * LONG
