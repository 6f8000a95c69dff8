"""Several steps of a stencil in one: overlapping tiles of what a step makes, each computed from a larger tile.

A tile of the padded result of a step reaches beyond that result. What lies outside of it is not computed: a tile has
any values there, and is read at other places, those that the boundary means.

Source: Krishnamoorthy et al., "Effective automatic parallelization of stencil computations", PLDI 2007; Holewinski et
al., "High-performance code generation for stencil computations on GPU architectures", ICS 2012.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    P,
    Ty,
    V,
    app,
    call2,
    call3,
    eq,
    fresh,
    fvf,
    generate,
    i64,
    lookup,
    map_,
    pad,
    pad_constant,
    rewrite,
    rule,
    slice_,
    slide,
    tile,
    transpose,
    ty,
    zip_,
)

I32 = Ty.scalar("i32")
PLACE, TILE, MADE, COLUMN = "$place", "$tile", "$made", "$column"

WINDOWS = "(((((k + a) + r) - n) / s) + 1)"
ANY_PADDING = "any padding is right, and with this one h divides the number of windows"
TILE_WINDOWS = "(((k + a) + r) - n)"
CLAMPED = "a place before the first is taken for the first"
NOT_READ = "what is behind the tile is not read"
ONE_BY_ONE = "windows of which each begins at the next element are no tiles"


def number_of(n: i64) -> V:
    """The variable for the number of a tile of n elements: functions of tiles in tiles have different ones."""
    return V(egglog.join("$number", n.to_string()), I32)


def number(value: i64) -> Ex:
    """A whole number as a term."""
    return Ex.literal(value.to_string(), I32)


def padded_rows(left: i64, right: i64, value: Ex, matrix: Ex, column: V) -> Ex:
    """A matrix with rows of one value before and after it."""
    return transpose(map_(Fn.lam(P.var(column), pad_constant(left, right, value, Ex(column))), transpose(matrix)))


def tiles_of_step(f: Fn, m: i64, n: i64, s: i64, xs: Ex, t: Ty, made: Ty, count: i64, read: Fn) -> Ex:
    """Tiles of n elements, s apart, of ``map f (slide m 1 xs)``, each read in another order, by its number."""
    tile, j = V(TILE, Ty.arr(n + m - 1, t)), number_of(n)
    each = map_(Fn.lam(P.var(tile), map_(f, slide(m, i64(1), Ex(tile)))), slide(n + m - 1, s, xs))
    return map_(read, zip_(each, generate(count, Fn.lam(P.var(j), Ex(j)))))


def places_inside(n: i64, s: i64, k: i64, d: i64, j: V) -> Ex:
    """For tile j of n elements, s apart, the nearest places to its own that are at most d - 1 behind place k."""
    p = V(PLACE, I32)
    start = call2("mul", Ex(j), number(s))
    place = call2("min", call2("max", call2("add", start, Ex(p)), number(k)), number(k + d - 1))
    return generate(n, Fn.lam(P.var(p), call2("sub", place, start)))


def places_beside(n: i64, s: i64, k: i64, d: i64, j: V) -> Ex:
    """The places of its elements in tile j after one other, which stands for all but the d elements from place k on."""
    p = V(PLACE, I32)
    place = call2("add", call2("mul", Ex(j), number(s)), Ex(p))
    inside = call2("and", call2("le", number(k), place), call2("lt", place, number(k + d)))
    return generate(n, Fn.lam(P.var(p), call3("select", inside, call2("add", Ex(p), number(i64(1))), number(i64(0)))))


def read_inside(n: i64, s: i64, k: i64, d: i64, u: Ty) -> Fn:
    """A tile, with its number, read at the nearest places to its own that are at most d - 1 behind place k."""
    e, j = V(MADE, Ty.arr(n, u)), number_of(n)
    return Fn.lam(P.pair(P.var(e), P.var(j)), lookup(places_inside(n, s, k, d, j), Ex(e)))


def read_with(value: Ex, n: i64, s: i64, k: i64, d: i64, u: Ty, column: V | None) -> Fn:
    """A tile, with its number, that has a value, or rows of it, but for the d elements from place k on."""
    e, j = V(MADE, Ty.arr(n, u)), number_of(n)
    rim = pad_constant(1, 0, value, Ex(e)) if column is None else padded_rows(i64(1), i64(0), value, Ex(e), column)
    return Fn.lam(P.pair(P.var(e), P.var(j)), lookup(places_beside(n, s, k, d, j), rim))


@rule(
    "slide n s (pad k r clamp (map f (slide m 1 xs))) = map (λ(e, j). lookup (generate n (λp. min (max (s·j + p) k) "
    "(k + d - 1) - s·j)) e) (zip (map (λt. map f (slide m 1 t)) (slide (n + m - 1) s (pad k r clamp xs))) (generate c "
    "(λj. j))),  d the length of the result of f, c = (d + k + r - n) / s + 1,  n > k,  (c - 1)·s < k + d",
    source="new: overlapped tiles of the padded result of a step",
    notes={"s > 1": ONE_BY_ONE},
)
def slide_of_step(f: Fn, n: i64, s: i64, k: i64, r: i64, m: i64, xs: Ex, a: i64, d: i64, t: Ty, u: Ty, e: Ex):
    made = map_(f, slide(m, i64(1), xs))
    left = slide(n, s, pad(k, r, "clamp", made))
    count = (d + k + r - n) / s + 1
    tile = V(TILE, Ty.arr(n + m - 1, t))
    where = eq(Ty.arr(a, t)).to(ty(xs)), eq(Ty.arr(d, u)).to(ty(made))
    yield egglog.rule(eq(e).to(left), *where).then(tile)  # the condition needs it to exist
    yield rewrite(left).to(
        tiles_of_step(f, m, n, s, pad(k, r, "clamp", xs), t, u, count, read_inside(n, s, k, d, u)),
        *where,
        s > 1,
        n > k,
        (count - 1) * s < k + d,
        fvf(f).not_contains(tile),
    )


@rule(
    "slide n s (pad k r (constant z) (map f (slide m 1 xs))) = map (λ(e, j). lookup (generate n (λp. if k <= s·j + p < "
    "k + d then p + 1 else 0)) (pad 1 0 (constant z) e)) (zip (map (λt. map f (slide m 1 t)) (slide (n + m - 1) s (pad "
    "k r (constant z) xs))) (generate c (λj. j))),  d the length of the result of f, c = (d + k + r - n) / s + 1;  the "
    "same for rows of a matrix, where pad is transpose ∘ map (pad k r (constant z)) ∘ transpose",
    source="new: overlapped tiles of the padded result of a step",
    notes={
        "s > 1": ONE_BY_ONE,
        "0 becomes -1 at place 1": CLAMPED,
        **{f"0 becomes {size} at place 2": NOT_READ for size in ("1", "n", "s")},
    },
)
def slide_of_step_constant(
    f: Fn, n: i64, s: i64, k: i64, r: i64, m: i64, xs: Ex, a: i64, b: i64, c: i64, d: i64, u: Ty, z: Ex, v: V, e: Ex
):
    made, count = map_(f, slide(m, i64(1), xs)), (d + k + r - n) / s + 1
    of_rows, of_tiles = V(COLUMN, Ty.arr(a, u)), V(COLUMN, Ty.arr(n, u))
    elements = eq(Ty.arr(a, u)).to(ty(xs)), eq(Ty.arr(d, u)).to(ty(made))
    rows = eq(Ty.arr(a, Ty.arr(b, u))).to(ty(xs)), eq(Ty.arr(d, Ty.arr(c, u))).to(ty(made))
    for padded, outside, t, own, column, lengths in (
        (pad_constant(k, r, z, made), pad_constant(k, r, z, xs), u, u, None, elements),
        (
            *(padded_rows(k, r, z, made, v), padded_rows(k, r, z, xs, of_rows)),
            *(Ty.arr(b, u), Ty.arr(c, u), of_tiles, rows),
        ),
    ):
        left, tile = slide(n, s, padded), V(TILE, Ty.arr(n + m - 1, t))
        names = [V(MADE, Ty.arr(n, own)), number_of(n), *((of_tiles, of_rows) if column is not None else ())]
        for name in (tile, *names):  # the conditions need them to exist
            yield egglog.rule(eq(e).to(left), *lengths).then(name)
        yield rewrite(left).to(
            tiles_of_step(f, m, n, s, outside, t, own, count, read_with(z, n, s, k, d, own, column)),
            *lengths,
            s > 1,
            fvf(f).not_contains(tile),
            *(fresh(name, z) for name in (*names, *(() if column is None else (v,)))),
        )


@rule(
    "let v = xs in map f (zip v ys) = map f (zip xs ys),  v not free in f and ys",
    source="new: β, for what is read once",
)
def let_of_side(v: V, f: Fn, xs: Ex, ys: Ex):
    yield rewrite(app(Fn.lam(P.var(v), map_(f, zip_(Ex(v), ys))), xs)).to(
        map_(f, zip_(xs, ys)), fvf(f).not_contains(v), fresh(v, ys)
    )


@rule(
    "pad k r b (pad m n b xs) = pad (k + m) (r + n) b xs,  b = clamp, or constant z;  the same for map (pad k r b) "
    "(map (pad m n b) xss)",
    source="new: what is added twice",
)
def pad_of_pad(k: i64, r: i64, m: i64, n: i64, z: Ex, v: V, w: V, xs: Ex):
    def each(row: V, padded: Ex, rows: Ex) -> Ex:
        return map_(Fn.lam(P.var(row), padded), rows)

    for padded, conditions in (
        (lambda before, after, array: pad(before, after, "clamp", array), ()),
        (lambda before, after, array: pad_constant(before, after, z, array), (fresh(v, z), fresh(w, z))),
    ):
        yield rewrite(padded(k, r, padded(m, n, xs))).to(padded(k + m, r + n, xs))
        yield rewrite(each(v, padded(k, r, Ex(v)), each(w, padded(m, n, Ex(w)), xs))).to(
            each(w, padded(k + m, r + n, Ex(w)), xs), *conditions
        )


@rule(
    "padRows k r (map (pad m n (constant z)) xss) = map (pad m n (constant z)) (padRows k r xss),  padRows k r = "
    "transpose ∘ map (pad k r (constant z)) ∘ transpose",
    source="new: the same on all sides",
)
def pad_rows_of_pad(k: i64, r: i64, m: i64, n: i64, z: Ex, v: V, w: V, xss: Ex, a: i64, b: i64, t: Ty):
    def wide(row: V, matrix: Ex) -> Ex:
        return map_(Fn.lam(P.var(row), pad_constant(m, n, z, Ex(row))), matrix)

    column = V(COLUMN, Ty.arr(a, t))
    left = padded_rows(k, r, z, wide(w, xss), v)
    where = (eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss)),)
    yield egglog.rule(left, *where).then(column)  # the condition needs it to exist
    yield rewrite(left).to(
        wide(w, padded_rows(k, r, z, xss, column)), *where, fresh(v, z), fresh(w, z), fresh(column, z)
    )


@rule(
    "map f (slide n s (pad k r b xs)) = slice 0 c (map f (slide n s (pad k (r + e) b xs))),  c the number of "
    "windows, e = s·(h - c mod h), c mod h > 0,  b = clamp, or constant z;  the same for rows of a matrix, where pad "
    "is transpose ∘ map (pad k r (constant z)) ∘ transpose",
    source="new: so many windows that h divides them, of which those are kept that there were",
    notes={
        f"({WINDOWS} % h) > 0": "what h divides needs no padding",
        f"{WINDOWS} % h": ANY_PADDING,
        f"{TILE_WINDOWS} / s becomes s / {TILE_WINDOWS} at place 2": ANY_PADDING,
        "((k + a) + r) - n becomes n - ((k + a) + r) at place 2": ANY_PADDING,
    },
)
def windows_of_padded(f: Fn, n: i64, s: i64, k: i64, r: i64, xs: Ex, a: i64, h: i64, z: Ex, v: V, t: Ty):
    c = (k + a + r - n) / s + 1
    for padded in (
        lambda after: pad(k, after, "clamp", xs),
        lambda after: pad_constant(k, after, z, xs),
        lambda after: padded_rows(k, after, z, xs, v),
    ):
        yield rewrite(map_(f, slide(n, s, padded(r)))).to(
            slice_(0, c, map_(f, slide(n, s, padded(r + (h - c % h) * s)))),
            *(eq(Ty.arr(a, t)).to(ty(xs)), tile(c, h), h > 0, h < c, c % h > 0),
        )


step_rules = (slide_of_step, slide_of_step_constant, pad_of_pad)
side_rules = (let_of_side,)
boundary_rules = (pad_rows_of_pad,)
step_rest_rules = (windows_of_padded,)
