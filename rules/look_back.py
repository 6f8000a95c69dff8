"""Scans in one pass, where groups of work-items look back over the totals of the groups before them.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ELEMENT,
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    acts,
    app,
    as_scalar,
    as_vector,
    at,
    chunked,
    cod,
    combine,
    eq,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    join,
    lane_width,
    look_back,
    make_pair,
    map_,
    map_level,
    reduce_,
    rewrite,
    rule,
    scalar_like,
    scan,
    scan_exclusive,
    scan_exclusive_seq,
    scan_seq,
    split,
    tile,
    to_memory,
    ty,
    zip_,
)
from lift_egraph.rules.scans import CHUNK, OFFSET, TOTALS, monoid, with_map

SCANNED, RUN, KEPT, BEFORE, START = "$scanned", "$run", "$kept", "$before", "$start"
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


@dataclass(frozen=True)
class _Runs:
    """A scan whose groups look back, and whose items have runs of `q` elements of a group's `n`: what all of it needs.

    `t` is the type of a total, `u` that of an element, of which there are `m`; a group looks at `w` others at once.
    """

    n: i64
    q: i64
    m: i64
    w: i64
    t: Ty
    u: Ty

    @property
    def names(self) -> tuple[V, ...]:
        """The variables that it binds, whose types must be there: of a run, of a chunk, of the totals of its runs, of
        what stands before these; and those of what comes after: of what stands before a chunk, and a run, and of what
        is kept.
        """
        run, items = Ty.arr(self.q, self.u), self.n / self.q
        of_items = (V(name, Ty.arr(items, self.t)) for name in (TOTALS, BEFORE))
        own, kept = V(ELEMENT, self.t), V(KEPT, Ty.arr(items, Ty.pair(self.t, run)))
        return V(RUN, run), V(CHUNK, Ty.arr(self.n, self.u)), *of_items, V(OFFSET, self.t), own, kept

    @property
    def before(self) -> tuple[V, ...]:
        """Around what makes the total of a run."""
        return self.names[:2]

    @property
    def after(self) -> tuple[V, ...]:
        """Around what scans a run."""
        return self.names[0], *self.names[4:]

    @property
    def where(self) -> tuple[FactLike, ...]:
        """The conditions for its numbers."""
        groups = self.m / self.n
        return *chunked(self.m, self.n), *chunked(self.n, self.q), tile(groups, self.w), self.w <= groups

    def scan(self, op: Op, e: Ex, z: Ex, xs: Ex, total: Callable[[Ex], Ex], scanned: Callable[[Ex, Ex], Ex]) -> Ex:
        """The scan, by the total of a run, and what is scanned of one by what all before it give."""
        run, chunk, totals, before, offset, element, kept = self.names
        runs, last = split(self.q, Ex(chunk)), self.n / self.q - 1
        of_chunk = combine(op, at(last, Ex(before)), at(last, Ex(totals)))
        found = Fn.lam(P.var(before), make_pair(of_chunk, zip_(Ex(before), runs)))
        named = app(found, scan_exclusive(op, e, Ex(totals)))
        first = app(Fn.lam(P.var(totals), named), map_(Fn.lam(P.var(run), total(Ex(run))), runs))
        own = scanned(combine(op, Ex(offset), Ex(element)), Ex(run))
        second = join(map_(Fn.lam(P.pair(P.var(element), P.var(run)), own), Ex(kept)))
        functions = Fn.lam(P.var(chunk), first), op, z, Fn.lam(P.pair(P.var(offset), P.var(kept)), second)
        return join(look_back(self.w, *functions, split(self.n, xs)))


@rule(
    "scan ⊕ z (map g xs) = join (lookBack w (λc. let ts = map (λr. reduce ⊕ e (map g r)) (split q c) in let ps = "
    "scanExclusive ⊕ e ts in (at (n / q - 1) ps ⊕ at (n / q - 1) ts, zip ps (split q c))) ⊕ z (λ(o, k). join (map "
    "(λ(p, r). scan ⊕ (o ⊕ p) (map g r)) k)) (split n xs)),  n | m, the length, q | n, w <= m / n, ⊕ associative, e "
    "its right identity;  the same without g, and for scanExclusive",
    source="decoupled look-back: Merrill and Garland; a run of neighbours for each work-item",
    phase="lowering",
    reassociates=True,
    notes={
        **{"n < m": ONE_CHUNK, "q < n": ONE_CHUNK, "q < n becomes q <= n": ONE_CHUNK},
        **{"q < n becomes q < (n + 1)": ONE_CHUNK, "w <= (m / n)": ANY_NUMBER, "w becomes w + 1": ANY_NUMBER},
        **{"w becomes n": ANY_NUMBER, "w becomes n / q": ANY_NUMBER},
    },
)
def scan_of_runs_by_looking_back(
    a: Ex, op: Op, z: Ex, e: Ex, g: Fn, xs: Ex, n: i64, q: i64, m: i64, w: i64, t: Ty, u: Ty
):
    runs = _Runs(n, q, m, w, t, u)
    where = eq(Ty.arr(m, u)).to(ty(xs)), *runs.where, *monoid(op, e, t), eq(t).to(ty(z))
    for elements, unused in with_map(g, runs.names[1], *runs.after):
        for scanned in (scan, scan_exclusive):
            left = scanned(op, z, elements(xs))
            yield egglog.rule(eq(a).to(left), *where).then(*runs.names)  # the conditions need them to exist
            own = lambda start, run: scanned(op, start, elements(run))  # noqa: B023, E731
            yield rewrite(left).to(
                runs.scan(op, e, z, xs, lambda run: reduce_(op, e, elements(run)), own),  # noqa: B023
                *where,
                *unused,
                *(fvo(op).not_contains(name) for name in runs.names),
                *(fresh(name, e) for name in runs.names[:3]),
            )


@rule(
    "scanSeq f z xs = let s = z in join (lookBack w (λc. let ts = map (λr. reduce ⊙ e (map m r)) (split q c) in let ps "
    "= scanExclusive ⊙ e ts in (at (n / q - 1) ps ⊙ at (n / q - 1) ts, zip ps (split q c))) ⊙ e (λ(o, k). join (map "
    "(λ(p, r). scanSeq f (act (o ⊙ p, s)) r) k)) (split n xs)),  n | the length, q | n, w at most the chunks, f (s, x) "
    "= act (m x, s), an action of the monoid (⊙, e);  the same for scanExclusiveSeq",
    source="003 §8.3 by decoupled look-back: Merrill and Garland",
    phase="lowering",
    reassociates=True,
    notes={
        **{"n < k": ONE_CHUNK, "q < n": ONE_CHUNK, "w <= (k / n)": ANY_NUMBER, "w becomes w + 1": ANY_NUMBER},
        **{"w becomes n": ANY_NUMBER, "w becomes n / q": ANY_NUMBER},
    },
)
def scan_by_action_looking_back(
    a: Ex, f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex, n: i64, q: i64, k: i64, w: i64, t: Ty, u: Ty, v: Ty
):
    runs, s = _Runs(n, q, k, w, t, u), V(START, v)
    where = (
        *(acts(f, m, op, one, act), eq(t).to(cod(m)), eq(Ty.arr(k, u)).to(ty(xs)), eq(v).to(ty(z))),
        *runs.where,
    )
    for scanned in (
        lambda start, array: scan_seq(f, start, array),
        lambda start, array: scan(Op.fn(f), start, array),
        lambda start, array: scan_exclusive_seq(f, start, array),
    ):
        yield egglog.rule(eq(a).to(scanned(z, xs)), *where).then(s, *runs.names)  # the conditions need them to exist
        own = lambda p, run: scanned(app(act, make_pair(p, Ex(s))), run)  # noqa: B023, E731
        made = runs.scan(op, one, one, xs, lambda run: reduce_(op, one, map_(m, run)), own)
        yield rewrite(scanned(z, xs)).to(
            app(Fn.lam(P.var(s), made), z),
            *where,
            *(fvf(g).not_contains(name) for g in (f, act) for name in (s, *runs.after)),
            *(fvf(m).not_contains(name) for name in (s, *runs.before)),
            *(fvo(op).not_contains(name) for name in (s, *runs.names)),
            *(fresh(name, one) for name in (s, *runs.names[:3])),
            fresh(s, xs),
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
look_back_run_rules = (scan_of_runs_by_looking_back, scan_by_action_looking_back)
chunk_staging_rules = (stage_chunk,)
