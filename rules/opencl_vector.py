"""Vectorisation: the lanes of a short vector are consecutive elements of the mapped array."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.rule import rule
from lift_egraph.sorts import Ex, Fn, P, Ty, as_scalar, as_vector, lane_width, map_, scalar_like, ty


@rule(
    "map f xs = asScalar (map (vectorize w f) (asVector w xs)),  w | length, no vectors in xs and f",
    source="000 Listings 5.10 and 5.11",
    phase="lowering",
)
def vectorise_map(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.vec(w, Fn.lam(p, b)), as_vector(w, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        scalar_like(t),
        eq(u).to(ty(b)),
        scalar_like(u),
    )


vector_rules = (vectorise_map,)
