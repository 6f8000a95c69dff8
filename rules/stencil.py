"""Stencils: overlapped tiling. Windows over an array are windows over tiles of it that overlap.

A tile of k windows of size n at steps s has the length n + (k - 1)·s, and the next one begins k·s further. The array
may be a padded one: the tiles then read across its boundary as the windows did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import egglog

from lift_egraph.dsl import (
    CHUNKS_OF_ONE,
    ONE_CHUNK,
    Ex,
    Fn,
    P,
    Ty,
    V,
    app,
    chunked,
    eq,
    fresh,
    i64,
    join,
    map_,
    rewrite,
    rule,
    slide,
    transpose,
    ty,
)


@dataclass(frozen=True)
class Grid:
    """Nested arrays: the term, the lengths from outside to inside, and the type of the elements."""

    term: Ex
    lengths: tuple[i64, ...]
    element: Ty

    def apply(self, function: Fn, depth: int) -> Ex:
        """The function on what lies `depth` arrays deep."""
        for length in self.lengths[1:depth][::-1]:
            function = Fn.map(length, function)
        return map_(function, self.term)

    def transpose(self, depth: int) -> Grid:
        """The array at a depth and the one inside it exchanged."""
        a, b = self.lengths[depth : depth + 2]
        swapped = (*self.lengths[:depth], b, a, *self.lengths[depth + 2 :])
        f = Fn.transpose(nested(self.lengths[depth:], self.element))
        return Grid(transpose(self.term) if depth == 0 else self.apply(f, depth), swapped, self.element)

    def join(self, depth: int) -> Grid:
        """The array at a depth and the one inside it joined."""
        a, b = self.lengths[depth : depth + 2]
        joined = (*self.lengths[:depth], a * b, *self.lengths[depth + 2 :])
        f = Fn.join(nested(self.lengths[depth:], self.element))
        return Grid(join(self.term) if depth == 0 else self.apply(f, depth), joined, self.element)


def nested(lengths: Sequence[i64], element: Ty) -> Ty:
    """The type of nested arrays of these lengths."""
    for length in reversed(lengths):
        element = Ty.arr(length, element)
    return element


def windows(size: i64, step: i64, grid: Grid) -> Grid:
    """All windows over a grid, which extend in each of its dimensions, as `slide2d` makes them in two."""
    length, *inner = grid.lengths
    count = (length - size) / step + 1
    if not inner:
        return Grid(slide(size, step, grid.term), (count,), Ty.arr(size, grid.element))
    row = V("$row", nested(inner, grid.element))
    within = windows(size, step, Grid(Ex(row), tuple(inner), grid.element))
    rows = slide(size, step, map_(Fn.lam(P.var(row), within.term), grid.term))
    found = Grid(rows, (count, size, *within.lengths), within.element)
    for depth in range(1, len(grid.lengths)):
        found = found.transpose(depth)
    return Grid(found.term, (count, *within.lengths), Ty.arr(size, within.element))


def tiled_windows(size: i64, step: i64, k: i64, grid: Grid) -> Ex:
    """The windows over a grid by way of overlapping tiles, each of k windows in every dimension."""
    dimensions = len(grid.lengths)
    length = size + (k - 1) * step
    tiles = windows(length, k * step, grid)
    one = V("$tile", tiles.element)
    inside = windows(size, step, Grid(Ex(one), (length,) * dimensions, grid.element))
    each = tiles.apply(Fn.lam(P.var(one), inside.term), dimensions)
    found = Grid(each, (*tiles.lengths, *(k for _ in range(dimensions))), inside.element)
    for done in range(dimensions):  # bring the tile's own dimension out to the dimension of tiles, and join the two
        for depth in range(dimensions - 1, done, -1):
            found = found.transpose(depth)
        found = found.join(done)
    return found.term


@rule(
    "slide n s xs = join (map (slide n s) (slide (n + (k - 1)·s) (k·s) xs)),  k | the number of windows",
    source="000 §2.4.2 (slide); overlapped tiling in one dimension",
    notes={"k < (((a - n) / s) + 1)": ONE_CHUNK, "k > 1": CHUNKS_OF_ONE},
)
def slide_tiling(n: i64, s: i64, k: i64, a: i64, xs: Ex, t: Ty):
    count = (a - n) / s + 1
    yield rewrite(slide(n, s, xs)).to(
        tiled_windows(n, s, k, Grid(xs, (a,), t)), eq(Ty.arr(a, t)).to(ty(xs)), s > 0, *chunked(count, k), k > 1
    )


@rule(
    "slide2d n s xss = untile2d (map2d (slide2d n s) (slide2d (n + (k - 1)·s) (k·s) xss)),  k | both numbers of "
    "windows",
    source="overlapped tiling in two dimensions, by slide_tiling in each",
    notes={"k < (((a - n) / s) + 1)": ONE_CHUNK, "k > 1": CHUNKS_OF_ONE},
)
def slide_tiling_2d(n: i64, s: i64, k: i64, a: i64, b: i64, xss: Ex, t: Ty, u: Ty, v: V):
    rows, columns = (a - n) / s + 1, (b - n) / s + 1
    yield rewrite(map_(Fn.transpose(u), slide(n, s, map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), xss)))).to(
        tiled_windows(n, s, k, Grid(xss, (a, b), t)),
        eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss)),
        s > 0,
        *chunked(rows, k),
        eq(columns % k).to(i64(0)),
        k > 1,
    )


@rule(
    "slide3d n s xsss = untile3d (map3d (slide3d n s) (slide3d (n + (k - 1)·s) (k·s) xsss)),  k | all numbers of "
    "windows,  slide3d n s = map (map transpose) ∘ map transpose ∘ slide n s ∘ map (slide2d n s)",
    source="overlapped tiling in three dimensions, by slide_tiling in each",
    notes={"k < (((a - n) / s) + 1)": ONE_CHUNK, "k > 1": CHUNKS_OF_ONE},
)
def slide_tiling_3d(
    n: i64, s: i64, k: i64, a: i64, b: i64, c: i64, d: i64, xsss: Ex, t: Ty, u: Ty, w: Ty, r: Ty, v: V, q: V
):
    rows, columns, layers = (a - n) / s + 1, (b - n) / s + 1, (c - n) / s + 1
    plane = map_(Fn.transpose(u), slide(n, s, map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), Ex(q))))
    cubes = map_(Fn.transpose(w), slide(n, s, map_(Fn.lam(P.var(q), plane), xsss)))
    yield rewrite(map_(Fn.map(d, Fn.transpose(r)), cubes)).to(
        tiled_windows(n, s, k, Grid(xsss, (a, b, c), t)),
        eq(Ty.arr(a, Ty.arr(b, Ty.arr(c, t)))).to(ty(xsss)),
        s > 0,
        *chunked(rows, k),
        eq(columns % k).to(i64(0)),
        eq(layers % k).to(i64(0)),
        k > 1,
    )


@rule("map (slide n s) xss = transpose (map transpose (slide n s (transpose xss)))", source="slide_of_transpose")
def map_of_slide(v: V, n: i64, s: i64, a: i64, b: i64, xss: Ex, t: Ty):
    yield rewrite(map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), xss)).to(
        transpose(map_(Fn.transpose(Ty.arr(n, Ty.arr(a, t))), slide(n, s, transpose(xss)))),
        eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss)),
    )


@rule(
    "map (map f) (slide n s xs) = slide n s (map f xs):  f once for each element, not for each window with it",
    source="000 §2.4.2 (slide)",
)
def map_map_of_slide(f: Fn, n: i64, s: i64, xs: Ex):
    yield rewrite(map_(Fn.map(n, f), slide(n, s, xs))).to(slide(n, s, map_(f, xs)))


@rule(
    "map (λp. b) (slide n s (map (λq. c) (slide m r xs))) = map (λw. let p = map (λq. c) (slide m r w) in b) "
    "(slide (m + (n - 1)·r) (s·r) xs),  w fresh",
    source="new: two steps of a stencil in one pass over the array",
)
def stencil_fusion(e: Ex, p: P, b: Ex, n: i64, s: i64, q: P, c: Ex, m: i64, r: i64, xs: Ex, a: i64, t: Ty):
    length = m + (n - 1) * r
    window = V("$window", Ty.arr(length, t))
    left = map_(Fn.lam(p, b), slide(n, s, map_(Fn.lam(q, c), slide(m, r, xs))))
    array = eq(Ty.arr(a, t)).to(ty(xs))
    yield egglog.rule(eq(e).to(left), array).then(window)
    first = map_(Fn.lam(q, c), slide(m, r, Ex(window)))
    yield rewrite(left).to(
        map_(Fn.lam(P.var(window), app(Fn.lam(p, b), first)), slide(length, s * r, xs)),
        array,
        fresh(window, b),
        fresh(window, c),
    )


@rule("let v = xs in slide n s v = slide n s xs", phase="simplification")
def apply_slide(v: V, n: i64, s: i64, xs: Ex):
    yield rewrite(app(Fn.lam(P.var(v), slide(n, s, Ex(v))), xs)).to(slide(n, s, xs))


stencil_rules = (slide_tiling, slide_tiling_2d, slide_tiling_3d, map_of_slide, map_map_of_slide, stencil_fusion)
stencil_simplification = (apply_slide,)
