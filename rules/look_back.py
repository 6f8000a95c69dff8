"""Scans in one pass, where groups of work-items look back over the totals of the groups before them.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ELEMENT,
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    app,
    as_scalar,
    as_vector,
    at,
    chunked,
    combine,
    eq,
    fv,
    fvo,
    i64,
    join,
    lane_width,
    look_back,
    make_pair,
    map_,
    map_level,
    rewrite,
    rule,
    scalar_like,
    scan,
    split,
    tile,
    to_memory,
    ty,
)
from lift_egraph.rules.scans import CHUNK, OFFSET, monoid

SCANNED = "$scanned"
ANY_NUMBER = "at how many totals a group looks at once is no part of the meaning"


@rule(
    "scan ⊕ z xs = join (lookBack w (λc. let s = scan ⊕ e c in (at (n - 1) s, s)) ⊕ z (λ(o, s). map (λx. o ⊕ x) s) "
    "(split n xs)),  n | m, the length, w <= m / n, ⊕ associative, e its right identity",
    source="decoupled look-back: Merrill and Garland",
    phase="lowering",
    reassociates=True,
    notes={"n < m": ONE_CHUNK, "w <= (m / n)": ANY_NUMBER, "w becomes w + 1": ANY_NUMBER, "w becomes n": ANY_NUMBER},
)
def scan_by_looking_back(a: Ex, op: Op, z: Ex, e: Ex, xs: Ex, n: i64, m: i64, w: i64, t: Ty):
    offset, element, chunk, scanned = V(OFFSET, t), V(ELEMENT, t), V(CHUNK, Ty.arr(n, t)), V(SCANNED, Ty.arr(n, t))
    names = offset, element, chunk, scanned
    where = eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), tile(m / n, w), w <= m / n, *monoid(op, e, t)
    yield egglog.rule(eq(a).to(scan(op, z, xs)), *where).then(*names)  # the conditions need them to exist
    kept = Fn.lam(P.var(scanned), make_pair(at(n - 1, Ex(scanned)), Ex(scanned)))
    moved = map_(Fn.lam(P.var(element), combine(op, Ex(offset), Ex(element))), Ex(scanned))
    first = Fn.lam(P.var(chunk), app(kept, scan(op, e, Ex(chunk))))
    second = Fn.lam(P.pair(P.var(offset), P.var(scanned)), moved)
    yield rewrite(scan(op, z, xs)).to(
        join(look_back(w, first, op, z, second, split(n, xs))),
        *where,
        *(fvo(op).not_contains(name) for name in names),
        fv(e).not_contains(chunk),
    )


@rule(
    "lookBack k (λv. b) ⊕ z f xs = lookBack k (λv. let v = join (toLocal (split n (asScalar (join (mapSeq (mapLcl(0) "
    "id) (split q (asVector w v))))))) in b) ⊕ z f xs,  v an array of scalars, n, w and w · q | its length",
    source="000 Figure 2.10d, in rounds in which neighbours take neighbouring vectors",
    phase="memory",
    notes={
        "k becomes k + 1": ANY_NUMBER,
        "k becomes n": ANY_NUMBER,
        "k becomes q": ANY_NUMBER,
        "n becomes q": "q divides the length, too",
    },
)
def stage_chunk(k: i64, v: V, b: Ex, op: Op, z: Ex, f: Fn, xs: Ex, n: i64, q: i64, w: i64, l: i64, m: i64, t: Ty):  # noqa: E741
    vector, part = V("$vector", Ty.lanes(w, t)), V("$part", Ty.arr(q, Ty.lanes(w, t)))
    taken = map_level("lcl", 0, Fn.lam(P.var(vector), Ex(vector)), Ex(part))
    copy = as_scalar(join(map_level("seq", 0, Fn.lam(P.var(part), taken), split(q, as_vector(w, Ex(v))))))
    staged = app(Fn.lam(P.var(v), b), join(to_memory("local", split(n, copy))))
    yield rewrite(look_back(k, Fn.lam(P.var(v), b), op, z, f, xs)).to(
        look_back(k, Fn.lam(P.var(v), staged), op, z, f, xs),
        eq(Ty.arr(l, Ty.arr(m, t))).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        lane_width(w),
        eq(m % w).to(i64(0)),
        tile(m / w, q),
        eq(m / w % q).to(i64(0)),
        scalar_like(t),
    )


look_back_rules = (scan_by_looking_back,)
chunk_staging_rules = (stage_chunk,)
