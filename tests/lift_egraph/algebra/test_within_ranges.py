"""Folds that are parallel for the values that their inputs have: ranges count, and whatever else bounds elements."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.bounded import Interval
from lift_egraph.algebra.ranged import leaf_bounds
from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
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
        assert (interval is None) == (np.asarray(leaf).dtype.kind == "f")
        assert interval is None or (interval[0] <= np.min(leaf) and np.max(leaf) <= interval[1])
    assert "reduce" in body or any(i is not None and i[0] > -300 for i in found)
