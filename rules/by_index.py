"""Reductions by index: as loops, in chunks that run beside each other, each with results of its own, and with all
elements at once.

The last is for places that are distinct, ``distinct(is)``: then no element waits for another. An e-graph is told of the
indices of its term that are (`lift_egraph.algebra.places`), as those of elements that are kept by flags are, if a scan
of the flags numbers them. Elements of one place wait for each other where a device combines them with the result in
memory, in no known order: for operators to which no order matters.

Source: Henriksen et al., "Compiling generalized histograms for GPU", SC 2020; Blelloch, "Prefix sums and their
applications", 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ACCUMULATOR,
    ELEMENT,
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    associative,
    at,
    bvs,
    call2,
    call3,
    chunked,
    combine,
    commutative,
    concat,
    distinct,
    eq,
    fill,
    fresh,
    fv,
    fvf,
    fvo,
    generate,
    i64,
    identity,
    join,
    make_pair,
    map_,
    named,
    reduce_,
    reduce_by_index,
    reduce_by_index_atomic,
    reduce_by_index_glb,
    reduce_by_index_seq,
    rewrite,
    rule,
    slice_,
    split,
    transpose,
    ty,
    zip_,
)

PLACE, PLACES, CHUNK, INDEX, FIRST, SECOND, ROW = "$place", "$places", "$chunk", "$i", "$first", "$second", "$row"
PLACE_OF, INDEX_OF = (f"V({name}, Ty.scalar(i32))" for name in (PLACE, INDEX))
SPARE = "what has no place behind the results is left out as well: with n of them no element needs a branch"
RESULT, ADDED, EITHER_SIDE = f"Ex(V({ACCUMULATOR}, t))", f"Ex(V({ELEMENT}, v))", "the operator commutes"
COMPUTED = f"app(g, {ADDED})"
Maps = tuple[Fn | None, Fn | None]  # the functions of the maps that make the indices and the elements, if there are any


def _map(f: Fn | None, xs: Ex) -> Ex:
    return xs if f is None else map_(f, xs)


def _apply(f: Fn | None, x: Ex) -> Ex:
    return x if f is None else app(f, x)


def _unused(maps: Maps, op: Op, names: tuple[V, ...]) -> tuple[FactLike, ...]:
    """The conditions that no name is free in the functions and the operator."""
    functions = [fvf(f) for f in maps if f is not None]
    return tuple(free.not_contains(name) for free in (*functions, fvo(op)) for name in names)


def _kept(i: Ex, length: Ex, place: Ex, otherwise: Ex) -> Ex:
    """A place, where an index is one of a length; another one where it is not."""
    inside = call2("and", call2("ge", i, Ex.literal("0", Ty.scalar("i32"))), call2("lt", i, length))
    return call3("select", inside, place, otherwise)


def _with_rows(d: V, p: P, i: V, x: V, both: Ex, rows: Ex) -> Ex:
    """The places and elements of all rows, one after the other, with the rows' numbers."""
    of_row = Fn.lam(P.pair(P.var(i), P.var(x)), make_pair(make_pair(Ex(d), Ex(i)), Ex(x)))
    return join(map_(Fn.lam(P.pair(P.var(d), p), map_(of_row, both)), rows))


def _to_loop(
    loop: Callable[[Fn, Fn, Ex, Ex], Ex],
    given: tuple[FactLike, ...],
    maps: Maps,
    *parts: *tuple[Ex, Op, Ex, Ex, Ex, Ty, Ty, Ty, i64, i64],
) -> Iterator[Any]:
    (f, g), (a, op, zs, places, xs, t, u, v, k, m) = maps, parts
    acc, place, x = names = V(ACCUMULATOR, t), V(PLACE, u), V(ELEMENT, v)
    where = eq(Ty.arr(k, t)).to(ty(zs)), eq(Ty.arr(m, u)).to(ty(places)), eq(Ty.arr(m, v)).to(ty(xs)), *given
    each, left = P.pair(P.var(place), P.var(x)), reduce_by_index(op, zs, _map(f, places), _map(g, xs))
    yield egglog.rule(eq(a).to(left), *where).then(*names)  # the conditions need them to exist
    step = Fn.lam(P.pair(P.var(acc), each), combine(op, Ex(acc), _apply(g, Ex(x))))
    made = loop(Fn.lam(each, _apply(f, Ex(place))), step, zs, zip_(places, xs))
    yield rewrite(left).to(made, *where, *_unused(maps, op, names))


@rule(
    "reduceByIndex ⊕ zs is xs = reduceByIndexSeq (λ(i, x). i) (λ(acc, (i, x)). acc ⊕ x) zs (zip is xs)",
    source="new",
    phase="lowering",
)
def reduce_by_index_to_seq(a: Ex, op: Op, zs: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    yield from _to_loop(reduce_by_index_seq, (), (None, None), a, op, zs, places, xs, t, u, v, k, m)


@rule(
    "reduceByIndex ⊕ zs is (map g xs) = reduceByIndexSeq (λ(i, x). i) (λ(acc, (i, x)). acc ⊕ g x) zs (zip is xs)",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def reduce_by_index_map_to_seq(a: Ex, op: Op, zs: Ex, places: Ex, g: Fn, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    yield from _to_loop(reduce_by_index_seq, (), (None, g), a, op, zs, places, xs, t, u, v, k, m)


@rule(
    "reduceByIndex ⊕ zs (map f is) (map g xs) = reduceByIndexSeq (λ(i, x). f i) (λ(acc, (i, x)). acc ⊕ g x) zs (zip is "
    "xs)",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def reduce_by_index_maps_to_seq(
    a: Ex, op: Op, zs: Ex, f: Fn, places: Ex, g: Fn, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64
):
    yield from _to_loop(reduce_by_index_seq, (), (f, g), a, op, zs, places, xs, t, u, v, k, m)


def _in_chunks(
    maps: Maps, a: Ex, op: Op, zs: Ex, e: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64, n: i64
) -> Iterator[Any]:
    f, g = maps
    start, every = V(ELEMENT, t), V(CHUNK, Ty.arr(m / n, t))
    own_places, own = V(PLACES, Ty.arr(n, u)), V(CHUNK, Ty.arr(n, v))
    names = start, every, own_places, own
    where = (
        eq(Ty.arr(k, t)).to(ty(zs)),
        eq(Ty.arr(m, u)).to(ty(places)),
        eq(Ty.arr(m, v)).to(ty(xs)),
        *chunked(m, n),
        associative(op),
        identity(op, e),
        eq(t).to(ty(e)),
    )
    left = reduce_by_index(op, zs, _map(f, places), _map(g, xs))
    yield egglog.rule(eq(a).to(left), *where).then(*names)
    inside = reduce_by_index(op, fill(k, e), _map(f, Ex(own_places)), _map(g, Ex(own)))
    of_chunks = map_(Fn.lam(P.pair(P.var(own_places), P.var(own)), inside), zip_(split(n, places), split(n, xs)))
    total = Fn.lam(P.pair(P.var(start), P.var(every)), reduce_(op, Ex(start), Ex(every)))
    yield rewrite(left).to(
        map_(total, zip_(zs, transpose(of_chunks))),
        *where,
        *_unused(maps, op, names),
        *(fv(e).not_contains(name) for name in (own_places, own)),
    )


@rule(
    "reduceByIndex ⊕ zs is xs = map (λ(z, c). reduce ⊕ z c) (zip zs (transpose (map (λ(i, x). reduceByIndex ⊕ (fill k "
    "e) i x) (zip (split n is) (split n xs))))),  k = length of zs, n | length, ⊕ associative, e its right identity",
    source="Henriksen et al.: subhistograms",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def reduce_by_index_in_chunks(
    a: Ex, op: Op, zs: Ex, e: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64, n: i64
):
    yield from _in_chunks((None, None), a, op, zs, e, places, xs, t, u, v, k, m, n)


@rule(
    "reduceByIndex ⊕ zs is (map g xs) = map (λ(z, c). reduce ⊕ z c) (zip zs (transpose (map (λ(i, x). reduceByIndex ⊕ "
    "(fill k e) i (map g x)) (zip (split n is) (split n xs))))),  k = length of zs, n | length, ⊕ associative, e its "
    "right identity",
    source="Henriksen et al.: subhistograms",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def reduce_by_index_of_map_in_chunks(
    a: Ex, op: Op, zs: Ex, e: Ex, places: Ex, g: Fn, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64, n: i64
):
    yield from _in_chunks((None, g), a, op, zs, e, places, xs, t, u, v, k, m, n)


@rule(
    "reduceByIndex ⊕ zs (map f is) (map g xs) = map (λ(z, c). reduce ⊕ z c) (zip zs (transpose (map (λ(i, x). "
    "reduceByIndex ⊕ (fill k e) (map f i) (map g x)) (zip (split n is) (split n xs))))),  k = length of zs, "
    "n | length, ⊕ associative, e its right identity",
    source="Henriksen et al.: subhistograms",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def reduce_by_index_of_maps_in_chunks(
    a: Ex, op: Op, zs: Ex, e: Ex, f: Fn, places: Ex, g: Fn, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64, n: i64
):
    yield from _in_chunks((f, g), a, op, zs, e, places, xs, t, u, v, k, m, n)


@rule(
    "reduceByIndex ⊕ zs is xs = reduceByIndexGlb (λ(i, x). i) (λ(acc, (i, x)). acc ⊕ x) zs (zip is xs),  no two of is "
    "one place",
    source="new: Blelloch's pack",
    phase="lowering",
)
def reduce_by_index_to_glb(a: Ex, op: Op, zs: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    given = (distinct(places),)
    yield from _to_loop(reduce_by_index_glb, given, (None, None), a, op, zs, places, xs, t, u, v, k, m)


@rule(
    "reduceByIndex ⊕ zs is xs = reduceByIndexAtomic (λ(i, x). i) (λ(acc, (i, x)). acc ⊕ x) zs (zip is xs),  "
    "⊕ associative and commutative",
    source="Henriksen et al.: one histogram for all threads",
    phase="lowering",
    reassociates=True,
    commutes=True,
    notes={f"combine(op, {RESULT}, {ADDED}) becomes combine(op, {ADDED}, {RESULT})": EITHER_SIDE},
)
def reduce_by_index_to_atomic(a: Ex, op: Op, zs: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    given = associative(op), commutative(op)
    yield from _to_loop(reduce_by_index_atomic, given, (None, None), a, op, zs, places, xs, t, u, v, k, m)


@rule(
    "reduceByIndex ⊕ zs is (map g xs) = reduceByIndexAtomic (λ(i, x). i) (λ(acc, (i, x)). acc ⊕ g x) zs (zip is xs),  "
    "⊕ associative and commutative",
    source="Henriksen et al.: one histogram for all threads",
    phase="lowering",
    reassociates=True,
    commutes=True,
    notes={f"combine(op, {RESULT}, {COMPUTED}) becomes combine(op, {COMPUTED}, {RESULT})": EITHER_SIDE},
)
def reduce_by_index_map_to_atomic(
    a: Ex, op: Op, zs: Ex, places: Ex, g: Fn, xs: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64
):
    given = associative(op), commutative(op)
    yield from _to_loop(reduce_by_index_atomic, given, (None, g), a, op, zs, places, xs, t, u, v, k, m)


@rule(
    "reduceByIndex (λ((p, q), (r, s)). (x, y)) zs is xs = zip (reduceByIndex (λ(p, r). x) (map first zs) is (map first "
    "xs)) (reduceByIndex (λ(q, s). y) (map second zs) is (map second xs)),  q and s not free in x, p and r not in y",
    source="new: Meijer et al.'s banana split, from right to left",
)
def reduce_by_index_of_sides(
    a: Ex, p: P, q: P, r: P, s: P, x: Ex, y: Ex, zs: Ex, places: Ex, xs: Ex, t: Ty, u: Ty, n: i64
):
    step = Fn.lam(P.pair(P.pair(p, q), P.pair(r, s)), make_pair(x, y))
    left, starts = reduce_by_index(Op.fn(step), zs, places, xs), eq(Ty.arr(n, Ty.pair(t, u))).to(ty(zs))
    first, second = V(FIRST, t), V(SECOND, u)
    yield egglog.rule(eq(a).to(left), starts).then(first, second)
    sides = P.pair(P.var(first), P.var(second))
    one, other = Fn.lam(sides, Ex(first)), Fn.lam(sides, Ex(second))
    yield rewrite(left).to(
        zip_(
            reduce_by_index(Op.fn(Fn.lam(P.pair(p, r), x)), map_(one, zs), places, map_(one, xs)),
            reduce_by_index(Op.fn(Fn.lam(P.pair(q, s), y)), map_(other, zs), places, map_(other, xs)),
        ),
        starts,
        *(absent(of_second, x) for of_second in (q, s)),
        *(absent(of_first, y) for of_first in (p, r)),
    )


@rule(
    "map f (zip (reduceByIndex ⊕ zs is xs) ys) = let s = reduceByIndex ⊕ zs is xs in map f (zip s ys),  s fresh;  the "
    "same for zip ys (reduceByIndex ⊕ zs is xs), for that alone, and for pairs with ys",
    source="new: what is computed of each row is a stage of its own, `map_of_let_named`",
)
def let_reduction_by_index(a: Ex, f: Fn, op: Op, zs: Ex, places: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    results, starts = reduce_by_index(op, zs, places, xs), eq(Ty.arr(n, t)).to(ty(zs))
    one, other = (V(name, Ty.arr(n, t)) for name in ("$results", "$others"))
    for form, s, unused in (
        (lambda r: map_(f, zip_(r, ys)), one, (fvf(f).not_contains(one), fresh(one, ys))),
        (lambda r: map_(f, zip_(ys, r)), other, (fvf(f).not_contains(other), fresh(other, ys))),
        (lambda r: map_(f, r), one, (fvf(f).not_contains(one),)),
        (lambda r: make_pair(r, ys), one, (fresh(one, ys),)),
        (lambda r: make_pair(ys, r), other, (fresh(other, ys),)),
    ):
        yield from named(a, s, results, form, (starts,), *unused)


@rule(
    "map (λp. reduceByIndex ⊕ zs is vs) xs = split k (reduceByIndexAtomic (λ((d, i), x). if 0 <= i && i < k then "
    "d * k + i else -1) (λ(acc, ((d, i), x)). acc ⊕ x) (join (map (λp. zs) xs)) (join (map (λ(d, p). map (λ(i, x). "
    "((d, i), x)) (zip is vs)) (zip (generate n (λd. d)) xs)))),  k > 0 and n the lengths of zs and xs, n k < 2^31, "
    "⊕ associative and commutative",
    source="Henriksen et al.: one histogram for all threads, of all rows",
    phase="lowering",
    reassociates=True,
    commutes=True,
    notes={f"combine(op, {RESULT}, {ADDED}) becomes combine(op, {ADDED}, {RESULT})": EITHER_SIDE},
)
def reduce_by_index_of_rows(
    a: Ex, p: P, op: Op, zs: Ex, places: Ex, vs: Ex, xs: Ex, t: Ty, v: Ty, w: Ty, k: i64, m: i64, n: i64
):
    whole = Ty.scalar("i32")
    acc, i, x, d = V(ACCUMULATOR, t), V(PLACE, whole), V(ELEMENT, v), V(ROW, whole)
    rows = map_(Fn.lam(p, reduce_by_index(op, zs, places, vs)), xs)
    where = (
        *(eq(Ty.arr(k, t)).to(ty(zs)), eq(Ty.arr(m, whole)).to(ty(places)), eq(Ty.arr(m, v)).to(ty(vs))),
        *(eq(Ty.arr(n, w)).to(ty(xs)), k > 0, n * k < i64(1 << 31), associative(op), commutative(op)),
    )
    yield egglog.rule(eq(a).to(rows), *where).then(acc, i, x, d)  # the conditions need them to exist
    number, length = P.pair(P.var(d), P.var(i)), Ex.literal(k.to_string(), whole)
    place = _kept(Ex(i), length, call2("add", call2("mul", Ex(d), length), Ex(i)), Ex.literal("-1", whole))
    each = P.pair(number, P.var(x))
    rows_of = generate(n, Fn.lam(P.var(d), Ex(d)))
    elements = _with_rows(d, p, i, x, zip_(places, vs), zip_(rows_of, xs))
    step = Fn.lam(P.pair(P.var(acc), each), combine(op, Ex(acc), Ex(x)))
    made = reduce_by_index_atomic(Fn.lam(each, place), step, join(map_(Fn.lam(p, zs), xs)), elements)
    yield rewrite(rows).to(
        split(k, made),
        *where,
        *(fvo(op).not_contains(name) for name in (acc, i, x, d)),
        *(absent_in_operator(p, op), fresh(d, places), fresh(d, vs), bvs(p).not_contains(d)),
    )


@rule("reduceByIndex (λ(a, b). op(a, b)) zs is xs = reduceByIndex op zs is xs", source="new: eta")
def reduce_by_index_in_plain_words(s: String, a: V, b: V, zs: Ex, places: Ex, xs: Ex):
    step = Fn.lam(P.pair(P.var(a), P.var(b)), call2(s, Ex(a), Ex(b)))
    yield rewrite(reduce_by_index(Op.fn(step), zs, places, xs)).to(reduce_by_index(Op.scalar(s), zs, places, xs))


def _fused(
    loop: Callable[[Fn, Fn, Ex, Ex], Ex], *parts: *tuple[Ex, Fn, Fn, Fn, Ex, Ex, Ex, Ty, Ty, Ty, i64, i64]
) -> Iterator[Any]:
    a, f, g, h, zs, mapped, others, t, u, v, k, m = parts
    acc, one, other = names = V(ACCUMULATOR, t), V(PLACE, u), V(ELEMENT, v)
    where = eq(Ty.arr(k, t)).to(ty(zs)), eq(Ty.arr(m, u)).to(ty(mapped)), eq(Ty.arr(m, v)).to(ty(others))
    unused = tuple(fvf(f).not_contains(name) for name in names[1:])
    unused += tuple(free.not_contains(name) for free in (fvf(g), fvf(h)) for name in names)
    for beside in (lambda x, y: (x, y), lambda x, y: (y, x)):
        left = loop(f, g, zs, zip_(*beside(map_(h, mapped), others)))
        yield egglog.rule(eq(a).to(left), *where).then(*names)
        each, value = P.pair(*beside(P.var(one), P.var(other))), make_pair(*beside(app(h, Ex(one)), Ex(other)))
        step = Fn.lam(P.pair(P.var(acc), each), app(g, make_pair(Ex(acc), value)))
        made = loop(Fn.lam(each, app(f, value)), step, zs, zip_(*beside(mapped, others)))
        yield rewrite(left).to(made, *where, *unused)


@rule(
    "reduceByIndexGlb f g zs (zip (map h is) xs) = reduceByIndexGlb (λ(i, x). f (h i, x)) (λ(acc, (i, x)). g (acc, (h "
    "i, x))) zs (zip is xs);  the same for zip is (map h xs)",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def at_once_fusion(a: Ex, f: Fn, g: Fn, h: Fn, zs: Ex, mapped: Ex, others: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    yield from _fused(reduce_by_index_glb, a, f, g, h, zs, mapped, others, t, u, v, k, m)


@rule(
    "reduceByIndexAtomic f g zs (zip (map h is) xs) = reduceByIndexAtomic (λ(i, x). f (h i, x)) (λ(acc, (i, x)). g "
    "(acc, (h i, x))) zs (zip is xs);  the same for zip is (map h xs)",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def in_memory_fusion(a: Ex, f: Fn, g: Fn, h: Fn, zs: Ex, mapped: Ex, others: Ex, t: Ty, u: Ty, v: Ty, k: i64, m: i64):
    yield from _fused(reduce_by_index_atomic, a, f, g, h, zs, mapped, others, t, u, v, k, m)


@rule(
    "reduceByIndexAtomic f g zs (join (map (λ(d, p). map (λ(i, x). ((d, i), x)) (zip (map h is) vs)) ys)) = "
    "reduceByIndexAtomic (λ((d, i), x). f ((d, h i), x)) (λ(acc, ((d, i), x)). g (acc, ((d, h i), x))) zs (join (map "
    "(λ(d, p). map (λ(i, x). ((d, i), x)) (zip is vs)) ys)),  d and p not free in h;  the same for zip is (map h vs)",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def rows_in_memory_fusion(
    a: Ex, f: Fn, g: Fn, h: Fn, zs: Ex, d: V, p: P, i: V, x: V, mapped: Ex, vs: Ex, ys: Ex, t: Ty, u: Ty, k: i64, m: i64
):
    acc, one, other = V(ACCUMULATOR, t), V(PLACE, u), V(ELEMENT, u)
    where = eq(Ty.arr(k, t)).to(ty(zs)), eq(Ty.arr(m, u)).to(ty(mapped))

    def loop(f: Fn, g: Fn, i: V, x: V, both: Ex) -> Ex:
        return reduce_by_index_atomic(f, g, zs, _with_rows(d, p, i, x, both, ys))

    for before, after, (place, element), (of_place, of_element) in (
        (zip_(map_(h, mapped), vs), zip_(mapped, vs), (one, x), (app(h, Ex(one)), Ex(x))),
        (zip_(vs, map_(h, mapped)), zip_(vs, mapped), (i, other), (Ex(i), app(h, Ex(other)))),
    ):
        left = loop(f, g, i, x, before)
        yield egglog.rule(eq(a).to(left), *where).then(acc, Ex(one), Ex(other))  # the conditions need them to exist
        each = P.pair(P.pair(P.var(d), P.var(place)), P.var(element))
        value = make_pair(make_pair(Ex(d), of_place), of_element)
        step = Fn.lam(P.pair(P.var(acc), each), app(g, make_pair(Ex(acc), value)))
        yield rewrite(left).to(
            loop(Fn.lam(each, app(f, value)), step, place, element, after),
            *where,
            absent_in_function(p, h),
            *(fvf(function).not_contains(name) for function in (f, g, h) for name in (acc, d, place, element)),
            *(fresh(d, Ex(name)) for name in (i, x, place, element)),
            *(fresh(acc, Ex(name)) for name in (d, place, element)),
            fresh(place, Ex(element)),
        )


@rule(
    "reduceByIndex (lift ⊕) zs is xs = split w (reduceByIndex ⊕ (join zs) (map (λ(i, j). if 0 <= i && i < k then i * w "
    "+ j else -1) (join (map (λi. generate w (λj. (i, j))) is))) (join xs)),  k > 0 the length of zs, w > 0 that of "
    "their arrays, k w < 2^31",
    source="new: arrays are combined element by element",
    notes={
        "(k * w) < 2147483648": "what wraps around needs more memory than a check has",
        "k becomes k + 1": "what is behind the last array is outside of all",
    },
)
def reduce_by_index_of_arrays(a: Ex, op: Op, zs: Ex, places: Ex, xs: Ex, t: Ty, k: i64, m: i64, w: i64):
    whole, arrays = Ty.scalar("i32"), reduce_by_index(op.lift(), zs, places, xs)
    i, j = V(PLACE, whole), V(INDEX, whole)
    where = eq(Ty.arr(k, Ty.arr(w, t))).to(ty(zs)), eq(Ty.arr(m, whole)).to(ty(places))
    where += k > 0, w > 0, k * w < i64(1 << 31)
    count, width = (Ex.literal(n.to_string(), whole) for n in (k, w))
    place = _kept(Ex(i), count, call2("add", call2("mul", Ex(i), width), Ex(j)), Ex.literal("-1", whole))
    numbers = join(map_(Fn.lam(P.var(i), generate(w, Fn.lam(P.var(j), make_pair(Ex(i), Ex(j))))), places))
    made = reduce_by_index(op, join(zs), map_(Fn.lam(P.pair(P.var(i), P.var(j)), place), numbers), join(xs))
    yield rewrite(arrays).to(split(w, made), *where)


@rule(
    "reduceByIndexGlb f g zs xs = slice 0 m (reduceByIndexGlb (λ(x, i). let p = f x in if 0 <= p && p < m then p else "
    "m + i) (λ(acc, (x, i)). g (acc, x)) (concat zs (fill n (at 0 zs))) (zip xs (generate n (λi. i)))),  m and n the "
    "lengths of zs and xs, m > 0, m + n < 2^31",
    source="new: a store takes less time than a branch that nobody foresees",
    phase="lowering",
    notes={
        "(m + n) < 2147483648": "what wraps around needs more memory than a check has",
        f"{PLACE_OF} becomes {INDEX_OF} at place 2": "a place before the first is none, and may stay what it is",
        "m becomes m + 1 at place 2": "the place behind the results is none of theirs",
        "m becomes m + 1 at place 3": SPARE,
        "n becomes n + 1 at place 1": SPARE,
        "n becomes n + -1 at place 1": SPARE,
        "n becomes m at place 1": SPARE,
    },
)
def left_out_behind(a: Ex, f: Fn, g: Fn, zs: Ex, xs: Ex, t: Ty, v: Ty, m: i64, n: i64):
    whole = Ty.scalar("i32")
    acc, x, i, p = V(ACCUMULATOR, t), V(ELEMENT, v), V(INDEX, whole), V(PLACE, whole)
    left = reduce_by_index_glb(f, g, zs, xs)
    where = eq(Ty.arr(m, t)).to(ty(zs)), eq(Ty.arr(n, v)).to(ty(xs)), m > 0, m + n < i64(1 << 31)
    yield egglog.rule(eq(a).to(left), *where).then(acc, x, i, p)
    length = Ex.literal(m.to_string(), whole)
    kept = _kept(Ex(p), length, Ex(p), call2("add", length, Ex(i)))
    each = P.pair(P.var(x), P.var(i))
    made = reduce_by_index_glb(
        Fn.lam(each, app(Fn.lam(P.var(p), kept), app(f, Ex(x)))),
        Fn.lam(P.pair(P.var(acc), each), app(g, make_pair(Ex(acc), Ex(x)))),
        concat(zs, fill(n, at(0, zs))),
        zip_(xs, generate(n, Fn.lam(P.var(i), Ex(i)))),
    )
    unused = tuple(fvf(f).not_contains(name) for name in (x, i))
    unused += tuple(fvf(g).not_contains(name) for name in (acc, x, i))
    yield rewrite(left).to(slice_(0, m, made), *where, *unused)


distinct_index_rules = (reduce_by_index_to_glb, at_once_fusion, left_out_behind)
atomic_index_rules = (
    *(reduce_by_index_of_sides, reduce_by_index_in_plain_words, let_reduction_by_index, reduce_by_index_of_rows),
    *(reduce_by_index_to_atomic, reduce_by_index_map_to_atomic, in_memory_fusion, rows_in_memory_fusion),
    reduce_by_index_of_arrays,
)
chunked_index_rules = (reduce_by_index_in_chunks, reduce_by_index_of_map_in_chunks, reduce_by_index_of_maps_in_chunks)
index_loop_rules = (reduce_by_index_to_seq, reduce_by_index_map_to_seq, reduce_by_index_maps_to_seq)
