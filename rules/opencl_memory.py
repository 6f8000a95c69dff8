"""Staging data in faster memory, at marked binders only: ``f => toLocal f`` everywhere would match everything."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    P,
    Ty,
    V,
    app,
    eq,
    i64,
    map_level,
    rewrite,
    rule,
    stage_local,
    stage_private,
    to_memory,
    ty,
    vty,
)


@rule(
    "mapWrg (λv. b) = mapWrg (λv. let v = toLocal (mapLcl id v) in b),  v marked",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_in_local(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("local", map_level("lcl", d, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, t)).to(vty(v)),
    )


@rule(
    "mapWrg(0) (λv. b) = mapWrg(0) (λv. let v = toLocal (mapLcl(1) (mapLcl(0) id) v) in b),  v marked, a matrix",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_block_in_local(v: V, b: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    item, row = V("$item", t), V("$row", Ty.arr(m, t))
    copy_row = map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copy = to_memory("local", map_level("lcl", 1, Fn.lam(P.var(row), copy_row), Ex(v)))
    yield rewrite(map_level("wrg", 0, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", 0, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, Ty.arr(m, t))).to(vty(v)),
    )


@rule(
    "mapX (λv. b) = mapX (λv. let v = toPrivate (mapSeq id v) in b),  X = Glb or Lcl, v marked",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_in_private(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("private", map_level("seq", 0, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    for kind in ("glb", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(P.var(v), b), xs)).to(
            map_level(kind, d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
            stage_private(v),
            eq(Ty.arr(n, t)).to(vty(v)),
        )


@rule("mapX f xs = toGlobal (mapX f xs),  X = Glb or Wrg", source="000 Figure 2.10d", phase="memory")
def result_in_global(f: Fn, xs: Ex, d: i64):
    for kind in ("glb", "wrg"):
        yield rewrite(map_level(kind, d, f, xs)).to(to_memory("global", map_level(kind, d, f, xs)))


@rule("mapLcl f xs = toLocal (mapLcl f xs)", source="000 Figure 2.10d", phase="memory")
def result_in_local(f: Fn, xs: Ex, d: i64):
    yield rewrite(map_level("lcl", d, f, xs)).to(to_memory("local", map_level("lcl", d, f, xs)))


@rule("let v = xs in b = let v = toGlobal xs in b,  xs an array", source="new: lowering chooses else", phase="memory")
def let_in_global(p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(app(Fn.lam(p, b), xs)).to(app(Fn.lam(p, b), to_memory("global", xs)), eq(Ty.arr(n, t)).to(ty(xs)))


memory_rules = (stage_in_local, stage_in_private, let_in_global)
block_rules = (stage_block_in_local,)
result_rules = (result_in_global,)
shared_rules = (result_in_local,)
