"""Rules are proved for all sizes; wrong ones are not, and the sizes and the index say why."""

from __future__ import annotations

import sys

import egglog
import pytest

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    app,
    eq,
    gather,
    i64,
    join,
    map_,
    pad,
    reduce_,
    reduce_seq,
    rewrite,
    rule,
    scatter,
    slice_,
    split,
    transpose,
    ty,
)
from lift_egraph.errors import InputProblem
from lift_egraph.rules import all_rules
from lift_egraph.soundness.proofs import integers
from lift_egraph.soundness.proofs.prove import prove_rule
from lift_egraph.soundness.proofs.table import known_proof, proof_of
from tests.depth import depth, in_turn
from tests.rules.wrong_twins import TWINS

SLOW = ("slide_tiling_2d", "slide_tiling_3d", "copy_in_rounds")
EVERY = depth(12, 1)  # by default one of so many
AT_LEAST = 130
BOOK = [r for i, r in enumerate(all_rules) if i % EVERY == 0 and (EVERY == 1 or r.name not in SLOW)]
PLANTED = [t for i, t in enumerate(TWINS) if i % EVERY == 0 and (EVERY == 1 or t.of not in SLOW)]


def test_the_table_holds_the_rules_as_they_are():
    known = {r.name: known_proof(r) for r in all_rules}
    changed = [name for name, proof in known.items() if proof is None]
    assert not changed, f"rules that changed since they were proved: {changed}; run `python -m tests.proofs`"
    assert sum(proof is not None and proof.proved for proof in known.values()) >= AT_LEAST


@in_turn(6)
@pytest.mark.parametrize("rule", BOOK, ids=lambda r: r.name)
def test_the_table_says_what_a_new_proof_says(rule):
    found, known = prove_rule(rule), known_proof(rule)
    assert known is not None
    assert (found.proved, found.reason.partition("!")[0]) == (known.proved, known.reason.partition("!")[0])


@in_turn(8)
@pytest.mark.parametrize("twin", PLANTED, ids=lambda t: f"{t.of}: {t.mistake}")
def test_a_wrong_rule_has_no_proof(twin):
    proof = prove_rule(twin.rule)
    assert not proof.proved, twin.rule.law
    assert proof.reason


@rule("split n (join xss) = xss, whatever their rows")
def any_rows(n: i64, m: i64, k: i64, xss: Ex, t: Ty):
    yield rewrite(split(n, join(xss))).to(xss, eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)))


@rule("join (split n xs) = xs, turned")
def turned_chunks(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(join(split(n, xs))).to(
        join(transpose(split(m / n, xs))), eq(Ty.arr(m, t)).to(ty(xs)), eq(m % n).to(i64(0)), m > 0
    )


@rule("slice 0 n (slice 1 m xs) = slice 0 n xs")
def forgets_a_start(n: i64, m: i64, xs: Ex):
    yield rewrite(slice_(0, n, slice_(1, m, xs))).to(slice_(0, n, xs))


@rule("map f xs = scatter r (map f (gather r xs)),  r i = i / 2")
def no_permutation(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(scatter("i / 2", map_(f, gather("i / 2", xs))))


@rule("gather (i + 1) xs = gather (i + 1) xs")
def out_of_the_array(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_(f, gather("i + 1", xs)))


@rule("map f xs = map f (slice 3 n (pad 3 0 wrap xs))")
def pads_too_far(f: Fn, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(f, xs)).to(map_(f, slice_(3, n, pad(3, 0, "wrap", xs))), eq(Ty.arr(n, t)).to(ty(xs)), n > 0)


@rule("map (λp. b) xs = map (λx. let p = x in b) xs, but x may be free in b")
def captures(p: P, b: Ex, xs: Ex, n: i64, t: Ty, e: Ex):
    x, left, array = V("$x", t), map_(Fn.lam(p, b), xs), eq(Ty.arr(n, t)).to(ty(xs))
    yield egglog.rule(eq(e).to(left), array).then(x)
    yield rewrite(left).to(map_(Fn.lam(P.var(x), app(Fn.lam(p, b), Ex(x))), xs), array)


@rule("reduceSeq f z (join xss) = reduceSeq (λ(a, c). reduceSeq f z c) z xss")
def forgets_the_state(op: Op, z: Ex, xss: Ex, t: Ty, n: i64, m: i64, u: Ty):
    a, c = V("$acc", u), V("$x", Ty.arr(n, t))
    f = Fn.lam(P.pair(P.var(a), P.var(c)), reduce_(op, z, Ex(c)))
    yield rewrite(reduce_(op, z, join(xss))).to(
        reduce_seq(f, z, xss), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)), eq(u).to(ty(z))
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (any_rows, "it needs"),
        (turned_chunks, "they are different elements, for m = "),
        (forgets_a_start, "at [0]: xs[1] and xs[0]"),
        (no_permutation, "the order is no permutation, for xs of 2"),
        (out_of_the_array, "the order leaves the array"),
        (pads_too_far, "pad may have no elements to pad from"),
        (captures, "b may depend on"),
        (forgets_the_state, ""),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_what_is_wrong_is_shown(wrong, why):
    proof = prove_rule(wrong)
    assert not proof.proved
    assert why in proof.text


@rule("join (split n xs) = xs, where no array is that long")
def matches_nothing(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(join(split(n, xs))).to(transpose(xs), eq(Ty.arr(m, Ty.arr(m, t))).to(ty(xs)), m < 0)


def test_what_holds_nowhere_is_not_proved():
    assert prove_rule(matches_nothing).reason.startswith("no sizes are known")


def test_without_the_solver_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    integers.z3.cache_clear()
    try:
        with pytest.raises(InputProblem, match=r"lift-egraph\[prove\]"):
            prove_rule(captures)
        assert proof_of(next(r for r in all_rules if r.name == "split_join")).proved  # from the table
    finally:
        integers.z3.cache_clear()
