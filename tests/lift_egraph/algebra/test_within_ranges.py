"""Folds that are parallel for the values that their inputs have: ranges count, and whatever else bounds elements."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.chunked import in_chunks
from lift_egraph.algebra import clamps, normal_forms
from lift_egraph.algebra.actions import Action, Refusal, _action_of, action_of
from lift_egraph.algebra.bounded import Interval
from lift_egraph.algebra.laws import proof
from lift_egraph.algebra.nonnegative import NON_NEGATIVE
from lift_egraph.algebra.ranged import leaf_bounds
from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F32
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value, leaves_of, map_leaves
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.changes.bounded import with_bounds
from lift_egraph.workbench.changes.chunks import Rows
from tests.depth import in_turn

HASH = "fun (h, c) => (h * 31 + c) % 65521"
NEIGHBOURS = "fun ((here, best), x) => let e = max(here, 0) + x in (e, max(best, e))"
INPUTS = (
    "xs: [i32]N in 0..256, ys: [i32]N in -9..10, zs: [i32]N, fs: [f32]N in 0..9, m: [[i32]N]3 in 0..60, "
    "u: [i32]N in 0..N, t: [[i32]4]9 in 0..9, v: [u8]16 in 0..4, w: [i32]99, h: [i32]80 in 0..20, "
    "ps: [(i32, i32)]N in 0..256"
)
DO = {
    "a hash": f"reduceSeq({HASH}, 7, xs)",
    "beside floats": "scanSeq(fun (s, (y, f)) => max(0, min(s + y, 255)), 0, zip(ys, fs))",
    "of a part": f"reduceSeq({HASH}, 7, slice(3, N - 3, xs))",
    "of rows": "map(fun row => scanSeq(fun (s, x) => (s + x) % 12, 0, row), m)",
    "of what a let binds": f"let t = gather(reverse, xs) in reduceSeq({HASH}, 7, t)",
    "of a map beside another array": "reduceSeq(fun (h, (c, f)) => (h * 31 + c) % 65521, 7, "
    "zip(map(fun z => z % 99 + 98, zs), fs))",
    "of pairs": "reduceSeq(fun (h, (c, d)) => (h * 31 + c + d) % 65521, 7, ps)",
    "of places": f"reduceSeq({HASH}, 7, generate(24, fun i => 3 * i))",
    "carries of decimals": "scanSeq(fun ((c, d), (x, y)) => let t = x + y + c in (t / 10, t % 10), (0, 0), "
    "zip(map(fun x => x % 10, xs), map(fun y => abs(y), ys)))",
    "a check digit": "reduceSeq(fun ((s, odd), d) => let t = (if odd then (if d > 4 then 2 * d - 9 else 2 * d) else d) "
    "in ((s + t) % 10, !odd), (0, false), gather(reverse, map(fun x => x % 10, xs)))",
    "a size": f"reduceSeq({HASH}, 7, u)",
    "places in an array of any length": "reduceSeq(fun (s, i) => (s + i % 7) % 12, 0, generate(N, fun i => i))",
    "sums that are not too many to wrap around": f"reduceSeq({NEIGHBOURS}, (0, -99), ys)",
    "those of a map": f"reduceSeq({NEIGHBOURS}, (0, -99), map(fun z => z % 999, zs))",
    "a table of next states": "reduceSeq(fun (s, c) => t[s][c % 4], 0, zs)",
    "one of states that are counted": "scanSeq(fun ((n, s), c) => let q = v[to_i32(s) * 4 + c % 4] in "
    "((if q == s then n + 1 else n), q), (0, 1u8), xs)",
    "one that is computed": "let a = generate(36, fun i => (i * 5 + i / 3) % 9) in "
    "scanExclusiveSeq(fun (s, c) => a[s * 4 + c % 4], 8, xs)",
    "a depth that has a floor, and the deepest": "reduceSeq(fun ((d, most), y) => let e = max(d + y, 0) in "
    "(e, max(most, e)), (0, 0), ys)",
    "a depth that branches at its floor": "scanSeq(fun (d, y) => if y > 0 then d + 5 else "
    "(if d > 0 then d - 1 else d), 0, ys)",
    "one that may go one below": "scanSeq(fun (d, y) => if y > 0 then d + 5 else (if d >= 0 then d - 1 else -1), 0, "
    "ys)",
    "of both ends": f"reduceSeq({HASH}, 7, concat(xs, map(abs, ys)))",
}
DO_NOT = {
    "less than its floor": "reduceSeq(fun (d, y) => if y > 0 then d + 5 else (if d > 0 then d - 2 else 0), 0, ys)",
    "no range": f"reduceSeq({HASH}, 7, zs)",
    "negative": f"reduceSeq({HASH}, 7, ys)",
    "one that has none beside it": "reduceSeq(fun (h, (c, z)) => (h * 31 + c + z) % 65521, 7, zip(xs, zs))",
    "it is parallel anyway": "reduceSeq(fun (h, c) => h * 31 + c, 7, xs)",
    "a table of any numbers": "reduceSeq(fun (s, c) => w[s * 4 + c], 0, xs)",
    "a table of many states": "reduceSeq(fun (s, c) => h[s * 4 + c % 4], 0, xs)",
    "neighbours of any numbers": f"reduceSeq({NEIGHBOURS}, (0, -99), zs)",
    "floats beside it": "reduceSeq(fun (s, (y, f)) => max(0, s + y + to_i32(f)), 0, zip(ys, fs))",
    "a name that is another inside": f"map(fun xs => reduceSeq({HASH}, 7, xs), "
    "map(fun (x, z) => fill(4, z), zip(xs, zs)))",
}  # fmt: skip


def of(body: str) -> ir.Program:
    return parse_program(f"program p({INPUTS}) where N = 24 = {body}")


@in_turn(8)
@pytest.mark.parametrize("name", DO)
def test_folds_of_elements_in_ranges_are_parallel(name: str) -> None:
    given = of(DO[name])
    made = with_ranges(given)
    assert made.body != given.body
    assert with_ranges(made) is made
    before, after = specialise(given), specialise(made)
    bounded = with_bounds(after.body, Rows(POCL)) or after.body
    assert [*refusals(before.body)]
    assert not [*refusals(after.body)]
    for seed in range(3):
        inputs = random_inputs(before, seed, "integer")
        for term in (after.body, bounded):
            assert equal_values(evaluate(before.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize("name", DO_NOT)
def test_others_stay(name: str) -> None:
    given = of(DO_NOT[name])
    assert with_ranges(given) is given


@pytest.mark.parametrize(
    "body",
    [
        "zip(map(fun (x, f) => (x % 7, f, x + 1), zip(xs, fs)), ys)",
        "map(fun w => w[1], slide(3, 1, concat(xs, ys)))",
        "map(fun row => map(fun (r, x) => r - x, zip(row, xs)), m)",
        "(lookup(zs, ys), transpose(m), fill(3, 5), generate(N, fun i => N - i))",
        "let (a, b) = (xs, ys) in map(fun (x, y) => min(x, y), zip(b, a))",
        "map(fun p => let (x, y) = p in (y, x), zip(xs, zs))",
        "reduce(add, 0, xs)",
    ],
)
def test_elements_are_between_their_bounds(body: str) -> None:
    program = specialise(of(body))
    ranges: dict[str, Interval] = {"xs": (0, 255), "ys": (-9, 9), "m": (0, 59)}
    found = leaf_bounds(program.body, ranges, {})
    inputs = random_inputs(program, 1)
    leaves = tuple(leaves_of(evaluate(program.body, inputs)))
    assert len(found) == len(leaves)
    for interval, leaf in zip(found, leaves, strict=True):
        assert interval is not None or np.asarray(leaf).dtype.kind == "f"
        assert interval is None or (interval[0] <= np.min(leaf) and np.max(leaf) <= interval[1])
    assert "reduce" in body or any(i is not None and i[0] > -300 for i in found)


OF_FLOATS = (
    "xs: [f32]N in -1..1, ks: [f32]N in 0..1, ns: [f32]N in -1..0, bs: [f32]N in 1..2, ys: [f32]N, is: [i32]N in 0..9, "
    "ps: [(f32, f32)]N in 0..1, m: [[(f32, f32)]N]3 in 0..1, t: [f32]9 in -1..1, hs: [f16]N in 0..1, "
    "ds: [f64]N in -1..1, k: f32 in 0.0..1.0, q: (f32, f32) in 0..1, d: f32 in 0.125..2, g: f32 in 1..1.5"
)
FLOATS_DO = {
    "a factor and what is added": "scanSeq(fun (s, (k, x)) => max(k * s + x, 0.0), 0.0, zip(ks, xs))",
    "one number": "reduceSeq(fun (s, x) => min(max(k * s + x, 0.0), 4.0), 0.0, ys)",
    "the rest of it": "reduceSeq(fun (s, x) => max((1.0 - k) * s + k * x, -2.0), 0.0, ys)",
    "of tuples": "scanSeq(fun (s, (a, b)) => min(max(a * s - b, -1.0), 5.0), 0.0, ps)",
    "a component": "reduceSeq(fun (s, x) => max(q[0] * s + q[1] * x, 0.0), 0.0, ys)",
    "an element that is looked up": "scanSeq(fun (s, (x, i)) => max(t[i] * s + x, 0.0), 0.0, zip(ys, is))",
    "one at a place": "scanSeq(fun (s, x) => max(t[3] * s + x, 0.0), 0.0, ys)",
    "of rows": "map(fun row => scanSeq(fun (s, (k, x)) => max(k * s - x, -1.0), 0.0, row), m)",
    "what is clamped and multiplied": "scanSeq(fun (s, (k, x)) => k * max(s + x, 0.0), 0.0, zip(ks, xs))",
    "and turned around": "scanSeq(fun (s, (n, x)) => n * min(max(s + x, -0.5), 1.0), 0.0, zip(ns, xs))",
    "a clamp that is chosen": "reduceSeq(fun (s, (k, x)) => k * (if x > 0.0 then max(s, x) else s), 1.0, zip(ks, xs))",
    "a quotient": "scanSeq(fun (s, (b, x)) => max((s + x) / b, 0.0), 0.0, zip(bs, xs))",
    "what a let binds": "let e = exp(-d) in scanSeq(fun (s, x) => max(s * e + x, 0.0), 0.0, ys)",
    "a gate of any data": "scanSeq(fun (s, (a, x)) => max(s * a + x, 0.0), 0.0, "
    "zip(map(fun y => 1.0 / (1.0 + exp(y)), ys), xs))",
    "factors that multiply to a float": "scanSeq(fun (s, x) => min(max(g * s + x, -3.0), 3.0), 0.0, xs)",
    "the most likely way": "scanSeq(fun ((u, v), (a, e)) => (max(u * a, v * k) * e, max(u * (1.0 - a), "
    "v * (1.0 - k)) * (1.0 - e)), (0.5, 0.25), ps)",
    "the most reliable one": "reduceSeq(fun ((u, v, w), (a, b)) => (max(u, v * a), max(v * b, w), max(w * a, u * b)), "
    "(1.0, 0.0, 0.0), ps)",
    "halves": "scanSeq(fun (s, h) => max(h * s + h, 0.5f16), 0.0f16, hs)",
    "doubles": "scanSeq(fun (s, x) => max(x * s + x, -0.5), 0.0f64, ds)",
}
FLOATS_DO_NOT = {
    "factors that are too large": "scanSeq(fun (s, (b, x)) => max(b * b * b * b * b * s + x, 0.0), 0.0, zip(bs, ys))",
    "no range": "scanSeq(fun (s, y) => max(y * s + 1.0, 0.0), 0.0, ys)",
    "a first value that is negative": "reduceSeq(fun ((u, v), (a, b)) => (max(u * a, v * b), max(u * b, v * a)), "
    "(1.0, -1.0), ps)",
    "factors above 1": "reduceSeq(fun ((u, v), b) => (max(u * b, v), max(u, v * b)), (1.0, 0.0), bs)",
    "of any sign": "scanSeq(fun (s, x) => x * max(s, 0.0), 0.0, xs)",
    "it is parallel anyway": "reduceSeq(fun (s, (k, x)) => k * s + x, 0.0, zip(ks, xs))",
    "a division by what may be 0": "scanSeq(fun (s, (k, x)) => max(s / k, x), 0.0, zip(ks, xs))",
    "a name that is another inside": "map(fun ks => scanSeq(fun (s, k) => max(k * s + 1.0, 0.0), 0.0, ks), "
    "split(4, ys))",
}


def of_floats(body: str, n: int = 24) -> ir.Program:
    return parse_program(f"program p({OF_FLOATS}) where N = {n} = {body}")


def at_ends(program: ir.Program, seed: int) -> dict[str, Value]:
    """Inputs that are often at the ends of their ranges, next to these, or as small as numbers are."""
    made, generator, ranges = random_inputs(program, seed, "integer"), np.random.default_rng(seed), dict(program.ranges)

    def moved(name: str, leaf: np.ndarray) -> np.ndarray:
        leaf = np.asarray(leaf)
        numbers = ranges[name].numbers if name in ranges else (-9, 9)
        if leaf.dtype.kind != "f" or numbers is None:
            return leaf
        of, info = leaf.dtype.type, np.finfo(leaf.dtype)
        low, high = of(numbers[0]), of(numbers[1])
        small = [of(-0.0), info.tiny, info.smallest_subnormal, -info.tiny, -info.smallest_subnormal]
        pool = [low, high, np.nextafter(low, high), np.nextafter(high, low), *(n for n in small if low <= n <= high)]
        return np.asarray(np.where(generator.random(leaf.shape) < 0.7, generator.choice(pool, leaf.shape), leaf), of)

    return {name: map_leaves(lambda leaf, name=name: moved(name, leaf), value) for name, value in made.items()}


def acted(fold: ir.Expr) -> ir.Expr:
    """A term with what acts in place of its folds."""
    made = ir.map_parts(fold, lambda part: acted(part) if isinstance(part, ir.Expr) else part)
    if isinstance(made, ir.Map) and isinstance(made.function, ir.Lambda):
        return ir.Map(ir.Lambda(made.function.binder, acted(made.function.body)), made.array)
    if isinstance(made, ir.Apply) and isinstance(made.function, ir.Lambda):
        return ir.Apply(ir.Lambda(made.function.binder, acted(made.function.body)), made.argument)
    if not isinstance(made, ir.WHOLE_FOLDS) or not isinstance(found := action_of(made.operator), Action):
        return made
    matrices = ir.Map(found.matrix, made.array)
    if isinstance(made, ir.ReduceSeq):
        return ir.Apply(found.act, ir.MakePair(ir.Reduce(found.operator, found.one, matrices), made.initial))
    p = ir.Var("$p", type_of(found.one))
    return ir.Map(
        ir.Lambda(p, ir.Apply(found.act, ir.MakePair(p, made.initial))), ir.Scan(found.operator, found.one, matrices)
    )


@pytest.mark.parametrize("name", FLOATS_DO)
def test_folds_of_floats_in_ranges_are_parallel(name: str) -> None:
    given = of_floats(FLOATS_DO[name])
    made = with_ranges(given)
    assert made.body != given.body
    assert with_ranges(made) is made
    before, after = specialise(given), specialise(made)
    assert [*refusals(before.body)]
    assert not [*refusals(after.body)]
    bounded = with_bounds(after.body, Rows(POCL)) or after.body
    one, chunks = acted(bounded), in_chunks(acted(bounded))
    assert one != bounded
    for seed in range(4):
        inputs = at_ends(before, seed)
        loop = [np.asarray(leaf, float) for leaf in leaves_of(evaluate(before.body, inputs))]
        assert np.isfinite(loop).all()
        for term in (after.body, bounded, one, chunks):
            for leaf, wanted in zip(leaves_of(evaluate(term, inputs)), loop, strict=True):
                assert np.allclose(np.asarray(leaf, float), wanted, rtol=2e-2 if name == "halves" else 1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FLOATS_DO_NOT)
def test_other_folds_of_floats_stay(name: str) -> None:
    given = of_floats(FLOATS_DO_NOT[name])
    assert with_ranges(given) is given
    told = [*refusals(specialise(given).body)]
    assert all("range" in text for text in told)
    assert bool(told) == (name != "it is parallel anyway")


def test_bounds_are_moved_where_they_decide_alone() -> None:
    operator = with_ranges(of_floats(FLOATS_DO["a factor and what is added"])).body.operator  # pyright: ignore
    literals = [e.value for e in ir.subterms(operator) if isinstance(e, ir.Literal)]
    assert literals == [0.0, 1.0, 0.0]


def test_how_long_a_fold_may_be_counts() -> None:
    body = FLOATS_DO["factors that multiply to a float"]
    assert with_ranges(of_floats(body, 200)).body != of_floats(body, 200).body
    assert with_ranges(of_floats(body, 300)).body == of_floats(body, 300).body


def test_clamps_that_are_not_turned_around_are_found_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the mistake: a negative factor exchanges the bounds."""
    operator = with_ranges(of_floats(FLOATS_DO["and turned around"])).body.operator  # pyright: ignore
    assert isinstance(_action_of.__wrapped__(operator, 0), Action)
    monkeypatch.setattr(clamps, "_multiplied", lambda low, high, by, t: (low * by, high * by))
    found = _action_of.__wrapped__(operator, 0)
    assert isinstance(found, Refusal)
    assert "wrong on random values" in found.why


def test_products_distribute_over_the_larger_of_two_where_nothing_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the twin of the mistake, which asks for no sign, pass the trials."""
    a, b, c = (ir.Var(name, F32) for name in "abc")
    zero = ir.Literal(0.0, F32)
    p, q, r = (ir.Call("max", (v, zero)) for v in (a, b, c))

    def sides(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> tuple[list[ir.Expr], list[ir.Expr]]:
        return [ir.Call("max", (a, b)) * c], [ir.Call("max", (a * c, b * c))]

    assert proof(*sides(p, q, r)) == "the same polynomials over (max, ·) of what is not negative"
    assert proof(*sides(a, b, c)) is None
    assert proof([ir.Call("max", (a, zero))], [a]) is None
    monkeypatch.setattr(normal_forms, "is_negative", lambda term: False)
    (left,), (right,) = sides(a, b, c)
    assert normal_forms.equal_over(NON_NEGATIVE, F32, left, right)
    assert proof([left], [right]) is None


def test_what_is_computed_of_floats_is_between_its_bounds() -> None:
    element = "(sqrt(k * k), (1.0 - k) / b, to_f32(i) * k, if k > 0.5 then k else 0.5)"
    program = specialise(of_floats(f"map(fun (k, (b, i)) => {element}, zip(ks, bs, is))"))
    ranges: dict[str, Interval] = {"ks": (0.0, 1.0), "bs": (1.0, 2.0), "is": (0, 8)}
    found = leaf_bounds(program.body, ranges, {})
    for seed in range(4):
        for interval, leaf in zip(found, leaves_of(evaluate(program.body, at_ends(program, seed))), strict=True):
            assert interval is not None
            assert interval[0] <= np.min(leaf)
            assert np.max(leaf) <= interval[1]
    assert found[2:] == ((0.0, 8.0), (0.5, 1.0))
