"""Lengths that nothing divides: the greatest part that a chunk size divides, and a rest, one after the other.

The phase that runs these rules offers, by ``tile(n, k)``, a chunk size k for arrays of length n that k does not divide.
The part of length n - n mod k is then split, blocked and vectorised as any array whose length k divides. What remains
is less than k elements; where a vector has more, a whole vector is computed, of which the new elements are kept.
The other way is to pad the array to a multiple of k, and to keep what was asked for (`padding_rules`): a guarded tile.
"""

from __future__ import annotations

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    associative,
    bvs,
    call2,
    call3,
    concat,
    eq,
    fresh,
    fv,
    fvf,
    fvo,
    generate,
    i64,
    lane_width,
    map_,
    named,
    neutral,
    pad,
    pad_constant,
    reduce_,
    reduce_by_index,
    reduce_seq,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    scan_exclusive_seq,
    scan_seq,
    slice_,
    tile,
    transpose,
    ty,
    zip_,
)
from lift_egraph.rules.stencil_steps import I32, number

ANY_PADDING = "any padding is right, and with this one k divides the length"
PADDING_BEFORE = "what is neutral may stand before the elements as well"
_OTHER_PADDING = {
    f"k - (n % k) becomes {size}": ANY_PADDING for size in ("k", "(k - (n % k)) + 1", "(k - (n % k)) + -1")
}
_ANY_PADDING_OF_FOLDED = {
    "Ty.arr(n, t) = ty(xs)": "z may be counted any number of times",
    "(n % k) > 0": "what k divides needs no padding",
    "n % k": ANY_PADDING,
    "k - (n % k) becomes n % k": ANY_PADDING,
    **_OTHER_PADDING,
    **{f"0 becomes {size}": PADDING_BEFORE for size in ("1", "k", "k - (n % k)")},
}
COMMUTE = "products commute"
_WITH_Z = "pad_constant(0, k - (n % k), z"


def with_rest(xs: Ex, t: Ty, n: i64, k: i64) -> tuple[FactLike, ...]:
    """The conditions that n elements are chunks of k and a rest."""
    return eq(Ty.arr(n, t)).to(ty(xs)), tile(n, k), k > 0, k < n, n % k > 0


@rule("map f xs = concat (map f (slice 0 m xs)) (map f (slice m (n - m) xs)),  m = n - n mod k > 0")
def map_with_rest(f: Fn, xs: Ex, n: i64, k: i64, t: Ty):
    m = n - n % k
    yield rewrite(map_(f, xs)).to(
        concat(map_(f, slice_(0, m, xs)), map_(f, slice_(m, n % k, xs))), *with_rest(xs, t, n, k)
    )


@rule("reduce ⊕ z xs = reduce ⊕ (reduce ⊕ z (slice 0 m xs)) (slice m (n - m) xs),  m = n - n mod k > 0")
def reduce_with_rest(op: Op, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    m = n - n % k
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, reduce_(op, z, slice_(0, m, xs)), slice_(m, n % k, xs)), *with_rest(xs, t, n, k)
    )


@rule(
    "reduceSeq f z xs = reduceSeq f (reduceSeq f z (slice 0 r xs)) (slice r (n - r) xs),  r = n mod k > 0;  the same "
    "for reduce"
)
def fold_with_rest(op: Op, f: Fn, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    r = n % k
    for fold in (lambda z, xs: reduce_seq(f, z, xs), lambda z, xs: reduce_(op, z, xs)):
        yield rewrite(fold(z, xs)).to(fold(fold(z, slice_(0, r, xs)), slice_(r, n - r, xs)), *with_rest(xs, t, n, k))


@rule(
    "reduceByIndex ⊕ zs is xs = reduceByIndex ⊕ (reduceByIndex ⊕ zs (slice 0 m is) (slice 0 m xs)) (slice m (n - m) "
    "is) (slice m (n - m) xs),  m = n - n mod k > 0"
)
def reduce_by_index_with_rest(op: Op, zs: Ex, places: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    m, r = n - n % k, n % k
    first = reduce_by_index(op, zs, slice_(0, m, places), slice_(0, m, xs))
    yield rewrite(reduce_by_index(op, zs, places, xs)).to(
        reduce_by_index(op, first, slice_(m, r, places), slice_(m, r, xs)), *with_rest(xs, t, n, k)
    )


@rule(
    "scan ⊕ z xs = concat (scan ⊕ z (slice 0 r xs)) (scan ⊕ (reduce ⊕ z (slice 0 r xs)) (slice r (n - r) xs)),  "
    "r = n mod k > 0;  the same for scanExclusive, and for scanSeq and scanExclusiveSeq with reduceSeq"
)
def scan_with_rest(op: Op, f: Fn, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    r = n % k
    first = slice_(0, r, xs)
    for scanned, reduced in (
        (lambda z, xs: scan(op, z, xs), lambda z, xs: reduce_(op, z, xs)),
        (lambda z, xs: scan_exclusive(op, z, xs), lambda z, xs: reduce_(op, z, xs)),
        (lambda z, xs: scan_seq(f, z, xs), lambda z, xs: reduce_seq(f, z, xs)),
        (lambda z, xs: scan_exclusive_seq(f, z, xs), lambda z, xs: reduce_seq(f, z, xs)),
    ):
        yield rewrite(scanned(z, xs)).to(
            concat(scanned(z, first), scanned(reduced(z, first), slice_(r, n - r, xs))), *with_rest(xs, t, n, k)
        )


@rule(
    "map f xs = let v = xs in map f v,  v not free in f; where a rest will follow",
    notes={"(n % k) > 0": "an array needs a name only where a rest will follow"},
)
def map_of_named(f: Fn, xs: Ex, n: i64, k: i64, t: Ty, e: Ex):
    v = V("$array", Ty.arr(n, t))
    yield from named(e, v, xs, lambda r: map_(f, r), with_rest(xs, t, n, k), fvf(f).not_contains(v))


@rule(
    "reduce ⊕ z xs = let v = xs in reduce ⊕ z v,  v fresh, where a rest will follow;  the same for an array that is "
    "mapped",
    source="new: what is computed and then folded in parts, by its name",
    notes={"(n % k) > 0": "an array needs a name only where a rest will follow"},
)
def reduce_of_named(e: Ex, op: Op, z: Ex, f: Fn, xs: Ex, n: i64, k: i64, t: Ty):
    v = V("$folded", Ty.arr(n, t))
    unused = [fv(z).not_contains(v), fvo(op).not_contains(v)]
    yield from named(e, v, xs, lambda r: reduce_(op, z, r), with_rest(xs, t, n, k), *unused)
    mapped = *unused, fvf(f).not_contains(v)
    yield from named(e, v, xs, lambda r: reduce_(op, z, map_(f, r)), with_rest(xs, t, n, k), *mapped)


@rule(
    "map f (slice s r xs) = slice (w - r) r (map f (slice (s + r - w) w xs)),  r < w <= s + r",
    notes={"r < w becomes r <= w": "a rest of w elements is a vector as it stands"},
)
def rest_in_vector(f: Fn, xs: Ex, s: i64, r: i64, w: i64):
    yield rewrite(map_(f, slice_(s, r, xs))).to(
        slice_(w - r, r, map_(f, slice_(s + r - w, w, xs))), lane_width(w), r < w, w <= s + r
    )


@rule("map (λp. concat b c) xs = transpose (concat (transpose (map (λp. b) xs)) (transpose (map (λp. c) xs)))")
def concat_outwards(p: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, concat(b, c)), xs)).to(
        transpose(concat(transpose(map_(Fn.lam(p, b), xs)), transpose(map_(Fn.lam(p, c), xs))))
    )


@rule("map (λp. slice s r b) xs = transpose (slice s r (transpose (map (λp. b) xs)))")
def slice_outwards(p: P, b: Ex, xs: Ex, s: i64, r: i64):
    yield rewrite(map_(Fn.lam(p, slice_(s, r, b)), xs)).to(transpose(slice_(s, r, transpose(map_(Fn.lam(p, b), xs)))))


@rule("map (λp. transpose b) xs = map transpose (map (λp. b) xs)")
def transpose_outwards(p: P, b: Ex, xs: Ex, t: Ty):
    yield rewrite(map_(Fn.lam(p, transpose(b)), xs)).to(map_(Fn.transpose(t), map_(Fn.lam(p, b), xs)), eq(t).to(ty(b)))


@rule("slice s r (map f xs) = map f (slice s r xs)")
def slice_of_map(f: Fn, xs: Ex, s: i64, r: i64):
    yield rewrite(slice_(s, r, map_(f, xs))).to(map_(f, slice_(s, r, xs)))


@rule("slice s r (zip xs ys) = zip (slice s r xs) (slice s r ys)")
def slice_of_zip(xs: Ex, ys: Ex, s: i64, r: i64):
    yield rewrite(slice_(s, r, zip_(xs, ys))).to(zip_(slice_(s, r, xs), slice_(s, r, ys)))


@rule("slice s r (transpose xss) = transpose (map (λrow. slice s r row) xss)")
def slice_of_transpose(xss: Ex, s: i64, r: i64, m: i64, n: i64, t: Ty):
    row = V("$row", Ty.arr(n, t))
    yield rewrite(slice_(s, r, transpose(xss))).to(
        transpose(map_(Fn.lam(P.var(row), slice_(s, r, Ex(row))), xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule("slice s r (slice a b xs) = slice (a + s) r xs")
def slice_of_slice(xs: Ex, s: i64, r: i64, a: i64, b: i64):
    yield rewrite(slice_(s, r, slice_(a, b, xs))).to(slice_(a + s, r, xs))


@rule(
    "map f xs = slice 0 n (map f (pad 0 r clamp xs)),  r = k - n mod k",
    notes={
        "(n % k) > 0": "what k divides needs no padding",
        "n % k": ANY_PADDING,
        "k - (n % k) becomes n": ANY_PADDING,
        **_OTHER_PADDING,
    },
)
def map_of_padded(f: Fn, xs: Ex, n: i64, k: i64, t: Ty):
    yield rewrite(map_(f, xs)).to(slice_(0, n, map_(f, pad(0, k - n % k, "clamp", xs))), *with_rest(xs, t, n, k))


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (pad 0 r (constant z) xs),  r = k - n mod k, ⊕ associative, z neutral, a scalar",
    notes=_ANY_PADDING_OF_FOLDED,
)
def reduce_of_padded(op: Op, z: Ex, xs: Ex, n: i64, k: i64, t: Ty, s: String):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, pad_constant(0, k - n % k, z, xs)),
        *with_rest(xs, t, n, k),
        eq(Ty.scalar(s)).to(ty(z)),
        associative(op),
        neutral(op, z),
    )


@rule(
    "reduce (+) z (map (·) (zip xs ys)) = reduce (+) z (map (·) (zip (pad 0 r z xs) (pad 0 r z ys))),  "
    "r = k - n mod k, z neutral, a scalar",
    notes={
        "Ty.arr(n, t) = ty(xs)": ANY_PADDING,
        "(n % k) > 0": "what k divides needs no padding",
        "P.pair(P.var(a), P.var(b)) becomes P.pair(P.var(b), P.var(a))": COMMUTE,
        f"zip_({_WITH_Z}, xs), {_WITH_Z}, ys)) becomes zip_({_WITH_Z}, ys), {_WITH_Z}, xs))": COMMUTE,
    },
)
def products_of_padded(z: Ex, xs: Ex, ys: Ex, a: V, b: V, n: i64, k: i64, t: Ty, s: String):
    plus, products = Op.scalar("add"), Fn.lam(P.pair(P.var(a), P.var(b)), call2("mul", Ex(a), Ex(b)))

    def total(first: Ex, second: Ex) -> Ex:
        return reduce_(plus, z, map_(products, zip_(first, second)))

    yield rewrite(total(xs, ys)).to(
        total(pad_constant(0, k - n % k, z, xs), pad_constant(0, k - n % k, z, ys)),
        *with_rest(xs, t, n, k),
        eq(Ty.scalar(s)).to(ty(z)),
        neutral(plus, z),
    )


@rule(
    "reduce (+) z (map (λa. a · a) xs) = reduce (+) z (map (λa. a · a) (pad 0 r z xs)),  r = k - n mod k, z neutral, a "
    "scalar",
    notes=_ANY_PADDING_OF_FOLDED,
)
def squares_of_padded(z: Ex, xs: Ex, a: V, n: i64, k: i64, t: Ty, s: String):
    plus, squares = Op.scalar("add"), Fn.lam(P.var(a), call2("mul", Ex(a), Ex(a)))
    yield rewrite(reduce_(plus, z, map_(squares, xs))).to(
        reduce_(plus, z, map_(squares, pad_constant(0, k - n % k, z, xs))),
        *with_rest(xs, t, n, k),
        eq(Ty.scalar(s)).to(ty(z)),
        neutral(plus, z),
    )


@rule(
    "reduce ⊕ z (map (λp. b) xs) = reduce ⊕ z (map (λ(p, i). select (i < n) b z) (zip (pad 0 r clamp xs) (generate "
    "(n + r) (λi. i)))),  r = k - n mod k, i fresh, ⊕ associative, z neutral, a scalar",
    source="new: of what stands behind the elements nothing is folded",
    notes={"(n % k) > 0": "what k divides needs no padding"},
)
def mapped_of_padded(e: Ex, op: Op, z: Ex, p: P, b: Ex, xs: Ex, n: i64, k: i64, t: Ty, s: String):
    i, r = V("$place", I32), k - n % k
    left, where = reduce_(op, z, map_(Fn.lam(p, b), xs)), (*with_rest(xs, t, n, k), eq(Ty.scalar(s)).to(ty(z)))
    yield egglog.rule(eq(e).to(left), *where).then(i)  # the conditions need it to exist
    within = call3("select", call2("lt", Ex(i), number(n)), b, z)
    places = generate(n + r, Fn.lam(P.var(i), Ex(i)))
    yield rewrite(left).to(
        reduce_(op, z, map_(Fn.lam(P.pair(p, P.var(i)), within), zip_(pad(0, r, "clamp", xs), places))),
        *where,
        associative(op),
        neutral(op, z),
        fresh(i, b),
        fresh(i, z),
        absent(p, z),
        bvs(p).not_contains(i),
    )


@rule(
    "scan ⊕ z xs = slice 0 n (scan ⊕ z (pad 0 r clamp xs)),  r = k - n mod k;  the same for scanExclusive",
    source="new: what stands behind the elements changes none before it",
    notes={
        "(n % k) > 0": "what k divides needs no padding",
        "n % k": ANY_PADDING,
        "k - (n % k) becomes n": ANY_PADDING,
        **_OTHER_PADDING,
    },
)
def scan_of_padded(op: Op, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    for scanned in (scan, scan_exclusive):
        yield rewrite(scanned(op, z, xs)).to(
            slice_(0, n, scanned(op, z, pad(0, k - n % k, "clamp", xs))), *with_rest(xs, t, n, k)
        )


@rule(
    "zip (pad l r c xs) ys = let v = pad l r c xs in zip v ys,  v fresh;  the same for zip ys (pad l r c xs)",
    source="new: a view by its name",
)
def name_padded(e: Ex, xs: Ex, ys: Ex, c: Ex, l: i64, r: i64, n: i64, t: Ty):  # noqa: E741
    padded = pad_constant(l, r, c, xs)
    for tag, form in (("$padded", lambda r: zip_(r, ys)), ("$beside", lambda r: zip_(ys, r))):
        v = V(tag, Ty.arr(l + n + r, t))
        yield from named(e, v, padded, form, (eq(Ty.arr(n, t)).to(ty(xs)),), fresh(v, ys))


remainder_rules = (
    map_with_rest,
    reduce_with_rest,
    scan_with_rest,
    reduce_by_index_with_rest,
    map_of_named,
    reduce_of_named,
    rest_in_vector,
    concat_outwards,
    slice_outwards,
    transpose_outwards,
    slice_of_map,
    slice_of_zip,
    slice_of_transpose,
    slice_of_slice,
)
padding_rules = (
    map_of_padded,
    reduce_of_padded,
    products_of_padded,
    squares_of_padded,
    mapped_of_padded,
    scan_of_padded,
    name_padded,
)
first_rest_rules = (fold_with_rest,)
