"""Distributing the elements of an array: contiguous chunks, or chunks of elements that lie apart (strided).

Source: 001 §4.3 (Figure 4.3 c and d) and §5.2: blocks of neighbours suit caches, interleaved tiles coalesced access.
"""

from __future__ import annotations

from lift_egraph.dsl import (
    CHUNKS_OF_ONE,
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    as_it_stands,
    associative,
    chunked,
    commutative,
    eq,
    fill,
    fresh,
    i64,
    join,
    lane_width,
    made,
    map_,
    map_level,
    neutral,
    pty,
    reduce_,
    rewrite,
    rule,
    seen,
    split,
    tile,
    transpose,
    ty,
)
from lift_egraph.rules.split_join import in_chunks


@rule(
    "map (λp. b) xs = join (transpose (map (λc. map (λp. b) c) (transpose (split (m / n) xs)))),  n | m = length, "
    "c fresh",
    source="001 §4.3, Figure 4.3 d",
    notes={"n < m": ONE_CHUNK},
)
def split_join_strided(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk)))
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(transpose(map_(each, transpose(split(m / n, xs))))), *in_chunks(p, b, xs, t, n, m)
    )


@rule(
    "map f xs = join (join (transpose (map (split w) (split n (map f ys))))),  "
    "ys = join (map join (transpose (split (m / n) (split w xs)))),  w | n | m = length",
    source="001 §4.3, Figure 4.3 d, for vectors; CUTLASS's kernels, whose threads have vectors that lie apart",
    notes={"n < m": ONE_CHUNK, "w < n": "a chunk of one piece is one of neighbours"},
)
def map_interleaved(e: Ex, f: Fn, g: Fn, xs: Ex, ys: Ex, w: i64, n: i64, m: i64, t: Ty, u: Ty):
    yield seen(xs, eq(e).to(map_(f, xs)))
    yield made(ys, eq(e).to(map_(f, xs)), eq(e).to(join(join(transpose(map_(g, split(n, map_(f, ys))))))))
    pieces = map_(Fn.join(Ty.arr(n / w, Ty.arr(w, t))), transpose(split(m / n, split(w, xs))))
    yield rewrite(map_(f, xs)).to(
        join(join(transpose(map_(Fn.split(w, Ty.arr(n, u)), split(n, map_(f, join(pieces))))))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(m, u)).to(ty(map_(f, xs))),
        *chunked(m, n),
        lane_width(w),
        eq(n % w).to(i64(0)),
        w < n,
        as_it_stands(xs),
    )


@rule(
    "transpose (map transpose (map join (transpose (split k (split w xss))))) = "
    "map (λr. map join (transpose (split k (split w r)))) (transpose xss)",
    source="new: what interleaved chunks of columns have of a row",
)
def transpose_of_interleaved_chunks(xss: Ex, w: i64, k: i64, c: i64, a: i64, b: i64, n: i64, t: Ty):
    row = V("$row", Ty.arr(a, t))

    def chunks(xs: Ex, element: Ty) -> Ex:
        return map_(Fn.join(Ty.arr(c, Ty.arr(w, element))), transpose(split(k, split(w, xs))))

    yield rewrite(transpose(map_(Fn.transpose(Ty.arr(n, Ty.arr(b, t))), chunks(xss, Ty.arr(b, t))))).to(
        map_(Fn.lam(P.var(row), chunks(Ex(row), t)), transpose(xss)), eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss))
    )


@rule(
    "mapX (λp. b) xs = join (mapX (λc. mapSeq (λp. b) c) (split n xs)),  X = Glb, Wrg or Lcl, n | length, c fresh",
    source="001 §5.2.1 (Serialize); 000 Figure 2.10a",
    phase="lowering",
    notes={"n < m": ONE_CHUNK},
)
def thread_coarsening(p: P, b: Ex, xs: Ex, d: i64, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_level("seq", 0, Fn.lam(p, b), Ex(chunk)))
    for kind in ("glb", "wrg", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(p, b), xs)).to(
            join(map_level(kind, d, each, split(n, xs))), *in_chunks(p, b, xs, t, n, m)
        )


@rule(
    "mapLcl (λp. b) xs = join (mapLcl (λc. mapSeq (λp. b) c) (split n xs)),  n = length, c fresh",
    source="001 §5.2.1 (Serialize), of all that a group has",
    phase="lowering",
)
def one_item(p: P, b: Ex, xs: Ex, d: i64, t: Ty, n: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_level("seq", 0, Fn.lam(p, b), Ex(chunk)))
    yield rewrite(map_level("lcl", d, Fn.lam(p, b), xs)).to(
        join(map_level("lcl", d, each, split(n, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        tile(n, n),
        eq(t).to(pty(p)),
        fresh(chunk, b),
    )


@rule(
    "mapX (λp. b) xs = join (transpose (mapX (λc. mapSeq (λp. b) c) (transpose (split (m / n) xs)))),  X = Glb, Wrg or "
    "Lcl, n | m = length, c fresh",
    source="001 §4.3, Figure 4.3 d; 000 §5.4.2 (coalesced access)",
    phase="lowering",
    notes={"n < m": ONE_CHUNK},
)
def thread_coarsening_strided(p: P, b: Ex, xs: Ex, d: i64, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_level("seq", 0, Fn.lam(p, b), Ex(chunk)))
    for kind in ("glb", "wrg", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(p, b), xs)).to(
            join(transpose(map_level(kind, d, each, transpose(split(m / n, xs))))), *in_chunks(p, b, xs, t, n, m)
        )


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (join (transpose (split n xs))),  n | length, ⊕ associative and commutative",
    source="000 Figure 2.9c: partialReduce = partialReduce ∘ gather p",
    reassociates=True,
    commutes=True,
    notes={"neutral(op, z)": "what is reordered is then split, for which z must be neutral", "n < m": ONE_CHUNK},
)
def reduce_reordered(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, e: Ex):
    reordered = join(transpose(split(n, xs)))
    yield seen(xs, eq(e).to(reduce_(op, z, xs)))
    yield made(reordered, eq(e).to(reduce_(op, z, xs)), eq(e).to(reduce_(op, z, reordered)))
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, reordered),
        eq(Ty.arr(m, t)).to(ty(xs)),
        *chunked(m, n),
        associative(op),
        commutative(op),
        neutral(op, z),
        as_it_stands(xs),
    )


@rule(
    "map (reduce ⊕ z) (split n xs) = join (map (map (reduce ⊕ z)) (map (split n) (split (k·n) xs))),  k | length / n",
    source="000 Figure 2.9c: partialReduce = join ∘ map partialReduce ∘ split",
    notes={"(k * n) < m": ONE_CHUNK, "k > 1": CHUNKS_OF_ONE},
)
def partial_reduce_in_parts(op: Op, z: Ex, xs: Ex, n: i64, m: i64, k: i64, t: Ty):
    each = Fn.reduce(op, z, Ty.arr(n, t))
    yield rewrite(map_(each, split(n, xs))).to(
        join(map_(Fn.map(k, each), map_(Fn.split(n, Ty.arr(k * n, t)), split(k * n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m / n, k),
        eq(m % (k * n)).to(i64(0)),
        k * n < m,
        k > 1,
    )


@rule(
    "map (reduce ⊕ z) (split n xs) = fill 1 (reduce ⊕ z xs),  n = length",
    source="000 Figure 2.9c: partialReduce = reduce",
)
def partial_reduce_to_one(op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))).to(
        fill(1, reduce_(op, z, xs)), eq(Ty.arr(n, t)).to(ty(xs))
    )


@rule(
    "map (reduce ⊕ z) (split n xs) = map (reduce ⊕ z) (split (n / k) (map (reduce ⊕ z) (split k xs))),  k | n, "
    "⊕ associative, z neutral",
    source="000 Figure 2.9c: partialReduce = iterate partialReduce, one step",
    reassociates=True,
    notes={"k < n": ONE_CHUNK, "k > 1": CHUNKS_OF_ONE},
)
def partial_reduce_in_steps(op: Op, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    yield rewrite(map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))).to(
        map_(Fn.reduce(op, z, Ty.arr(n / k, t)), split(n / k, map_(Fn.reduce(op, z, Ty.arr(k, t)), split(k, xs)))),
        *chunked(n, k),
        k > 1,
        associative(op),
        neutral(op, z),
    )


strided_rules = (split_join_strided,)
interleaving_rules = (map_interleaved,)
interleaved_rules = (transpose_of_interleaved_chunks,)
one_item_rules = (one_item,)
coarsening_rules = (thread_coarsening, thread_coarsening_strided)
partial_reduce_rules = (reduce_reordered, partial_reduce_in_parts, partial_reduce_to_one, partial_reduce_in_steps)
