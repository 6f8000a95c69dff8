"""What is specified by all prefixes of an array, or by all its tails, as one scan, or as one fold.

Tails are what is left of an array from each place on. What is folded of each is a scan from the end, if the operator is
associative and commutative. Where these are folded in turn, as a sum of products, the products of all tails are not
needed, if ⊗ distributes over ⊕: ``(a ⊕ e) ⊗ x`` is what was folded of the tails before, with x behind each, and with
the tail that begins at x. The condition ``distributes(⊗, ⊕, z)`` says so, and that z annihilates, ``z ⊗ x = z``
(`lift_egraph.algebra.distributing`); it is told to an e-graph for the operators of its term.

Source: Bird, "An introduction to the theory of lists", 1987.
"""

from __future__ import annotations

from collections.abc import Iterator

import egglog

from lift_egraph.dsl import (
    ACCUMULATOR,
    ELEMENT,
    Ex,
    Fn,
    Op,
    Order,
    P,
    Ty,
    V,
    associative,
    call2,
    combine,
    commutative,
    distributes,
    eq,
    fv,
    fvo,
    gather,
    generate,
    i64,
    map_,
    reduce_,
    reduce_range,
    reduce_seq,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    ty,
)

WHOLE = Ty.scalar("i32")
ZERO, ONE = (Ex.literal(text, WHOLE) for text in ("0", "1"))


def _arrays(size: i64, i: V, j: V, each: Ex) -> Iterator[Ex]:
    """What is made of each place of an array."""
    made = Fn.lam(P.var(i), each)
    yield map_(made, generate(size, Fn.lam(P.var(j), Ex(j))))
    yield generate(size, made)


@rule(
    "map (λi. reduceRange ⊕ z 0 i xs) (generate n (λj. j)) = scanExclusive ⊕ z xs,  n = length, i not free in ⊕, z and "
    "xs;  with i + 1 for i: scan ⊕ z xs;  the same for generate n (λi. reduceRange ⊕ z 0 i xs)",
    source="Bird 1987, the scan lemma",
)
def reductions_of_prefixes(op: Op, z: Ex, xs: Ex, i: V, j: V, n: i64, t: Ty):
    for end, scanned in (
        (Ex(i), scan_exclusive),
        (call2("add", Ex(i), ONE), scan),
        (call2("add", ONE, Ex(i)), scan),
    ):
        for prefixes in _arrays(n, i, j, reduce_range(op, z, ZERO, end, xs)):
            yield rewrite(prefixes).to(
                scanned(op, z, xs),
                eq(Ty.arr(n, t)).to(ty(xs)),
                *(fvo(op).not_contains(i), fv(z).not_contains(i), fv(xs).not_contains(i)),
            )


@rule(
    "map (λi. reduceRange ⊕ z i n xs) (generate n (λj. j)) = gather r (scan ⊕ z (gather r xs)),  r i = n - 1 - i, "
    "n = length, ⊕ associative and commutative, i not free in ⊕, z and xs;  with i + 1 for i: scanExclusive;  the same "
    "for generate n (λi. reduceRange ⊕ z i n xs)",
    source="Bird 1987, the scan lemma, from the end",
    reassociates=True,
    commutes=True,
)
def reductions_of_tails(op: Op, z: Ex, xs: Ex, i: V, j: V, n: i64, t: Ty):
    backwards, end = Order.reverse(), Ex.literal(n.to_string(), WHOLE)
    for begin, scanned in (
        (Ex(i), scan),
        (call2("add", Ex(i), ONE), scan_exclusive),
        (call2("add", ONE, Ex(i)), scan_exclusive),
    ):
        for tails in _arrays(n, i, j, reduce_range(op, z, begin, end, xs)):
            yield rewrite(tails).to(
                gather(backwards, scanned(op, z, gather(backwards, xs))),
                *(eq(Ty.arr(n, t)).to(ty(xs)), associative(op), commutative(op)),
                *(fvo(op).not_contains(i), fv(z).not_contains(i), fv(xs).not_contains(i)),
            )


@rule(
    "reduce ⊕ z (map (λi. reduceRange ⊗ e i n xs) (generate n (λj. j))) = reduceSeq (λ(a, x). (a ⊕ e) ⊗ x) z xs,  "
    "n = length, ⊗ distributes over ⊕, z annihilates for ⊗, i not free in ⊗, e and xs, a and x fresh;  of n + 1 tails, "
    "the empty one too: reduceSeq (λ(a, x). (a ⊕ e) ⊗ x) z xs ⊕ e;  the same for generate n (λi. reduceRange ⊗ e i n "
    "xs)",
    source="Bird 1987, Horner's rule",
    reassociates=True,
)
def horners_rule(a: Ex, plus: Op, times: Op, z: Ex, e: Ex, xs: Ex, i: V, j: V, n: i64, m: i64, t: Ty):
    acc, x = V(ACCUMULATOR, t), V(ELEMENT, t)
    where = distributes(times, plus, z), eq(Ty.arr(n, t)).to(ty(xs))
    step = combine(times, combine(plus, Ex(acc), e), Ex(x))
    fold = reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(x)), step), z, xs)
    unused = (
        *(fvo(times).not_contains(i), fv(e).not_contains(i), fv(xs).not_contains(i)),
        *(term.not_contains(name) for term in (fvo(times), fvo(plus), fv(e)) for name in (acc, x)),
    )
    each = reduce_range(times, e, Ex(i), Ex.literal(n.to_string(), WHOLE), xs)
    for size, whole, same in ((n, fold, ()), (m, combine(plus, fold, e), (eq(n + 1).to(m),))):
        for tails in _arrays(size, i, j, each):
            left = reduce_(plus, z, tails)
            yield egglog.rule(eq(a).to(left), *where, *same).then(acc, x)  # the conditions need them to exist
            yield rewrite(left).to(whole, *where, *same, *unused)


prefix_rules = (reductions_of_prefixes, reductions_of_tails, horners_rule)
