"""Generated kernels compute what the interpreter computes."""

# ruff: noqa: F722, F821, UP037 - annotations are types of LIFT
from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.dialect import DIALECTS
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir
from lift_egraph.language.build import (
    F64,
    abs_,
    add,
    and_,
    as_scalar,
    as_vector,
    at,
    constant,
    dot,
    fill,
    gather,
    generate,
    get,
    id_,
    iterate,
    join,
    let,
    literal,
    lookup,
    map_,
    map_glb,
    map_lcl,
    map_seq,
    map_wrg,
    max_,
    min_,
    or_,
    pad,
    pad2d,
    program,
    reduce_seq,
    reverse,
    scatter,
    select,
    slide,
    slide2d,
    split,
    sqrt,
    to_f32,
    to_f64,
    to_global,
    to_i32,
    to_local,
    to_private,
    transpose,
    tuple_,
    zip_,
)
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import leaves
from lift_egraph.meaning.interp import run
from tests.codegen import low_level as low
from tests.codegen.opencl import in_one_build, run_plan, text_of

CASES: list[tuple[Any, dict[str, int]]] = []
BATCH = 16  # plans of one build


def case(**sizes: int):
    def add_case(made: ir.Program) -> ir.Program:
        CASES.append((made, sizes))
        return made

    return add_case


for made, sizes in (
    (low.mm_naive(), {"M": 7, "K": 5, "N": 3}),
    (low.mm_naive(), {"M": 1, "K": 1, "N": 1}),
    (low.mm_blocked(4, 8), {"M": 8, "K": 13, "N": 24}),
    (low.mm_blocked(1, 2), {"M": 3, "K": 1, "N": 2}),
    (low.mm_tiled(4), {"M": 8, "K": 12, "N": 16}),
    (low.dot(64, 8), {"N": 256}),
    (low.asum(32, 8), {"N": 96}),
    (low.scal(32, 4), {"N": 96}),
    (low.gemv(4), {"M": 5, "K": 64}),
    (low.j2d5pt(4, 4), {"M": 8, "N": 12}),
    (low.j2d5pt(2, 8), {"M": 4, "N": 8}),
    (low.partial_dot(128, 6), {"N": 256}),
    (low.partial_dot(32, 3), {"N": 32}),
    (low.prefetched(4), {"N": 12}),
):
    CASES.append((made, sizes))


def indices_of(xs):
    return generate(type_of(xs).size, lambda i: i)


def better(best, x):
    wins = get(1, x) > get(1, best)
    return tuple_(select(wins, get(0, x), get(0, best)), select(wins, get(1, x), get(1, best)))


@case(N=3, K=4)
@program
def a_value_read_before_the_loop_that_follows(xs: "[[f32]K]N"):
    def one(row):
        return let(
            to_private(map_seq(lambda x: x + 1.0, row)),
            lambda kept: let(at(0, kept), lambda first: reduce_seq(lambda acc, x: acc + x * first, 0.0, kept) * first),
        )

    return map_glb(0, one, xs)


@case(N=37)
@program
def argmax(xs: "[f32]N"):
    return reduce_seq(better, tuple_(0, -1e30), zip_(indices_of(xs), xs))


@case(N=24)
@program
def integers(xs: "[i32]N", ys: "[i32]N"):
    return map_glb(0, lambda x, y: tuple_(x / y, x % y, min_(x, y), abs_(x) - max_(x, y)), zip_(xs, ys))


@case(N=24)
@program
def vector_integers(xs: "[i32]N", ys: "[i32]N"):
    def body(x, y):
        return x / y + x % y * abs_(y) - min_(x, y)

    return join(
        map_glb(
            0,
            lambda chunk: as_scalar(low.map_vectors(4, body, as_vector(4, chunk))),
            split(8, zip_(xs, ys)),
        )
    )


@case(N=16)
@program
def dots(xs: "[f32]N", ys: "[f32]N"):
    return map_glb(0, lambda x, y: dot(x, y) - dot(y, y), zip_(as_vector(4, xs), as_vector(4, ys)))


@case(N=16)
@program
def dots_in_double_precision(xs: "[f64]N", ys: "[f64]N"):
    pairs = as_vector(2, zip_(xs, ys))
    return reduce_seq(lambda acc, p: acc + dot(get(0, p), get(1, p)), literal(0.0, F64), pairs)


@case(N=16)
@program
def dots_of_equal_lanes(xs: "[f32]N", ys: "[f32]N"):
    return map_glb(0, lambda x, y: dot(at(0, as_vector(4, fill(4, x))), at(0, as_vector(4, fill(4, y)))), zip_(xs, ys))


@case(N=64)
@program
def dots_in_the_lanes_of_vectors(xs: "[f32]N", ys: "[f32]N"):
    first = at(0, as_vector(4, ys))
    dots = generate(16, lambda i: dot(at(0, lookup(fill(1, i), as_vector(4, xs))), first))
    return as_scalar(low.map_vectors(4, lambda d: d + 1.0, as_vector(4, dots)))


@case(N=16)
@program
def dots_of_padded_vectors(xs: "[f32]N"):
    return map_glb(0, lambda v: dot(v, v), as_vector(4, pad(1, 3, constant(1.0), xs)))


@case(N=16)
@program
def comparisons(xs: "[f32]N", ys: "[f32]N"):
    return map_glb(0, lambda x, y: tuple_(x < y, and_(x <= 0.0, y > 0.0)), zip_(xs, ys))


@case(N=16)
@program
def vector_select(xs: "[f32]N", ys: "[f32]N", flags: "[bool]N"):
    def body(x, y, f):
        return select(and_(x < y, f), x * 2.0, 1.0)

    return as_scalar(low.map_vectors(8, body, as_vector(8, zip_(xs, ys, flags))))


@case(N=16)
@program
def vector_flags(xs: "[f32]N"):
    return as_scalar(low.map_vectors(8, lambda x: x < 0.25, as_vector(8, xs)))


@case(N=16)
@program
def vector_doubles(xs: "[f64]N", limit: "f64"):
    return as_scalar(
        low.map_vectors(4, lambda x: select(x < limit, to_f64(to_f32(x)), sqrt(abs_(x))), as_vector(4, xs))
    )


@case(N=11)
@program
def casts(xs: "[f32]N"):
    return map_glb(0, lambda x: to_f64(to_i32(x * 3.0)) * 0.1, xs)


@case(N=13)
@program
def no_pad_slide(xs: "[f32]N"):
    return map_glb(0, lambda w: reduce_seq(add, 0.0, w), slide(3, 1, xs))


@case(N=14)
@program
def reversed_and_scattered(xs: "[f32]N"):
    return scatter(lambda i, n: (i + 3) % n, map_glb(0, lambda x: x * 2.0, gather(reverse, xs)))


@case(N=12)
@program
def scattered_inside(xs: "[f32]N"):
    return join(map_glb(0, lambda c: map_seq(id_, scatter(reverse, map_seq(lambda x: x + 1.0, c))), split(4, xs)))


@case(N=9)
@program
def generated(xs: "[f32]N"):
    return map_glb(0, lambda x, i: x * to_f32(i), zip_(xs, indices_of(xs)))


@case(N=16)
@program
def generated_vectors(xs: "[f32]N"):
    return as_scalar(low.map_vectors(4, lambda x, i: x * to_f32(i), as_vector(4, zip_(xs, indices_of(xs)))))


@case(N=9, M=5)
@program
def looked_up(xs: "[f32]N", places: "[i32]M"):
    return map_glb(0, lambda x: x + 1.0, lookup(places, xs))


@case(N=16, M=8)
@program
def looked_up_vectors(xs: "[f32]N", places: "[i32]M"):
    return as_scalar(low.map_vectors(4, lambda x: x + 1.0, as_vector(4, lookup(places, xs))))


@case(N=6)
@program
def ends(xs: "[f32]N"):
    return tuple_(at(0, xs) + at(5, xs), at(2, xs))


def stencil(edge, n):
    @program
    def padded(xs: "[f32]N"):
        windows = slide(3, 1, pad(1, 1, edge, xs))
        return map_glb(0, lambda w: at(0, w) - at(2, w) * 2.0 + at(1, w), windows)

    return padded, {"N": n}


def vector_stencil(edge, n, width, left=2, right=2):
    @program
    def padded(xs: "[f32]N"):
        shifts = [map_(at(k), slide(left + right + 1, 1, pad(left, right, edge, xs))) for k in range(3)]
        vectors = as_vector(width, zip_(*shifts))
        return as_scalar(low.map_vectors(width, lambda a, b, c: a - 2.0 * b + c, vectors))

    return padded, {"N": n}


for kind in ("clamp", "mirror", "wrap", constant(0.5)):
    CASES += [stencil(kind, 1), stencil(kind, 17), vector_stencil(kind, 16, 4), vector_stencil(kind, 4, 4)]


@case(N=24)
@program
def pairs_in_and_out(ps: "[(f32, i32)]N"):
    return map_glb(0, lambda a, b: tuple_(b, a + 1.0), ps)


@case(N=8)
@program
def scalars_by_value(alpha: "f32", pair: "(i32, f32)", xs: "[f32]N"):
    return map_glb(0, lambda x: alpha * x + to_f32(get(0, pair)) * get(1, pair), xs)


@case(N=32)
@program
def normalised(xs: "[f32]N"):
    total = reduce_seq(add, 0.0, map_glb(0, lambda c: reduce_seq(lambda a, x: a + abs_(x), 0.0, c), split(8, xs)))
    return let(total, lambda s: map_glb(0, lambda x: x / s, xs))


@case(N=32)
@program
def two_steps(xs: "[f32]N"):
    first = map_glb(0, lambda c: map_seq(lambda x: x * x, c), split(4, xs))
    return map_glb(0, lambda w: reduce_seq(add, 0.0, w), slide(5, 1, join(first)))


@case(N=16)
@program
def sequential_only(xs: "[f32]N"):
    return map_seq(lambda x: x + 1.0, map_seq(lambda x: x * 3.0, xs))


@case(N=12)
@program
def prefix_sums(xs: "[f32]N"):
    return map_glb(
        0,
        lambda c: reduce_seq(lambda acc, x: map_seq(lambda a: a + x, gather(reverse, acc)), fill(3, 0.0), c),
        split(4, xs),
    )


@case(N=64)
@program
def halved(xs: "[f32]N"):
    return join(
        map_glb(
            0, lambda c: iterate(3, lambda v: map_seq(lambda p: reduce_seq(add, 0.0, p), split(2, v)), c), split(16, xs)
        )
    )


@case(N=64)
@program
def reversed_in_local(xs: "[f32]N"):
    return join(
        map_wrg(
            0,
            lambda c: map_lcl(0, id_, gather(reverse, to_local(map_lcl(0, lambda x: x + 1.0, c)))),
            split(16, xs),
        )
    )


@case(N=60)
@program
def partly_filled_groups(xs: "[f32]N"):
    def group(c):
        return let(
            to_local(map_lcl(0, lambda p: reduce_seq(add, 0.0, p), split(5, c))),
            lambda sums: map_lcl(0, lambda x: x + reduce_seq(add, 0.0, sums), c),
        )

    return join(map_wrg(0, group, split(20, xs)))


def lcl_vectors(width, function, xs):
    vectorised = low.map_vectors(width, function, xs)
    return ir.MapLevel(ir.Level("lcl", 0), vectorised.function, vectorised.array)


@case(N=64)
@program
def local_vectors(xs: "[f32]N"):
    def group(c):
        doubled = to_local(lcl_vectors(4, lambda x: x * 2.0, as_vector(4, c)))
        return map_lcl(0, lambda x: x + 1.0, gather(reverse, as_scalar(doubled)))

    return join(map_wrg(0, group, split(16, xs)))


@case(M=6, N=10)
@program
def transposed(A: "[[f32]N]M"):
    return transpose(map_glb(0, lambda row: map_seq(lambda x: x * 2.0, row), A))


@case(M=6, N=10)
@program
def layout_map_written(A: "[[f32]N]M"):
    return map_(gather(reverse), map_glb(0, lambda row: map_seq(lambda x: x * 2.0, row), A))


@case(M=6, N=10)
@program
def layout_map_joined(A: "[[f32]N]M"):
    return map_(join, map_glb(0, lambda row: map_seq(lambda c: map_seq(id_, c), split(5, row)), A))


@case(N=20)
@program
def words_of_c(float: "[f32]N", kernel: "f32"):
    return map_glb(0, lambda double: let(double * kernel, lambda half: half * half), float)


@case(N=12)
@program
def global_inside(xs: "[f32]N"):
    def work(c):
        return map_seq(id_, gather(reverse, to_global(map_seq(lambda x: x * 2.0, c))))

    return join(map_glb(0, work, split(4, xs)))


@case(M=4, N=12)
@program
def running_pairs(A: "[[f32]N]M"):
    def step(acc, x):
        return tuple_(get(0, acc) + x, max_(get(1, acc), x))

    return map_glb(0, lambda row: reduce_seq(step, tuple_(0.0, -1000.0), row), A)


@case(M=4, N=12)
@program
def array_of_pairs_accumulated(A: "[[f32]N]M"):
    def step(acc, col):
        return map_seq(lambda a, x: tuple_(get(0, a) + x, get(1, a) * x), zip_(acc, col))

    return map_seq(id_, reduce_seq(step, fill(type_of(A).size, tuple_(0.0, 1.0)), transpose(A)))


@case(N=32)
@program
def vector_pairs_reduced(xs: "[f32]N", ys: "[f32]N"):
    def step(acc, xy):
        wins = get(0, xy) > get(0, acc)
        return tuple_(select(wins, get(0, xy), get(0, acc)), get(1, acc) + get(1, xy))

    def lanes(col):
        return reduce_seq(step, tuple_(-1000.0, 0.0), col)

    found = low.map_vectors(4, lanes, as_vector(4, transpose(split(4, zip_(xs, ys)))))
    return reduce_seq(step, tuple_(-1000.0, 0.0), as_scalar(found))


@case(L=3, M=4, N=5)
@program
def three_dimensions(A: "[[[f32]N]M]L"):
    return map_glb(2, lambda p: map_glb(1, lambda r: map_glb(0, lambda x: x * x, r), p), A)


@case(N=1)
@program
def one_element(xs: "[f32]N"):
    return map_glb(0, lambda x: x + 1.0, xs)


@case(N=60)
@program
def iterated_three_to_one(xs: "[f32]N"):
    def group(c):
        def step(v):
            return map_lcl(0, lambda p: to_local(reduce_seq(add, 0.0, p)), split(2, v))

        return map_lcl(0, id_, iterate(2, step, map_lcl(0, lambda x: to_local(x * 2.0), c)))

    return join(map_wrg(0, group, split(20, xs)))


@case(N=16)
@program
def global_inside_group(xs: "[f32]N"):
    def group(c):
        return map_lcl(0, id_, gather(reverse, to_global(map_lcl(0, lambda x: x + 1.0, c))))

    return join(map_wrg(0, group, split(8, xs)))


@case(N=16)
@program
def used_twice(xs: "[f32]N"):
    squares = map_glb(0, lambda x: x * x, xs)
    return let(squares, lambda s: tuple_(map_glb(0, lambda a: a + 1.0, gather(reverse, s)), at(3, s)))


@case(N=16)
@program
def two_reductions(xs: "[f32]N"):
    def total(f):
        return reduce_seq(add, 0.0, map_glb(0, lambda c: reduce_seq(lambda a, x: a + f(x), 0.0, c), split(4, xs)))

    return total(abs_) / total(lambda x: x * x)


@case(N=8, M=4)
@program
def computed_lookup(xs: "[f32]N", places: "[i32]M"):
    found = pad(1, 1, constant(7.0), lookup(map_seq(lambda i: i * 2 + 1, places), xs))
    return map_glb(0, lambda w: at(0, w) - at(2, w), slide(3, 1, found))


@case(M=6, N=7)
@program
def boxes(A: "[[f32]N]M"):
    windows = slide2d(3, 1, pad2d(1, 1, constant(2.0), A))
    return map_glb(1, lambda row: map_glb(0, lambda w: reduce_seq(max_, -1e9, join(w)), row), windows)


@case(M=6, N=8)
@program
def vector_boxes(A: "[[f32]N]M"):
    windows = slide2d(3, 1, pad2d(1, 1, "mirror", A))

    def line(row):
        return as_scalar(low.map_vectors(4, lambda w: reduce_seq(add, 0.0, join(w)), as_vector(4, row)))

    return map_glb(0, line, windows)


@case(N=12)
@program
def all_small(xs: "[f64]N", flags: "[bool]N"):
    return reduce_seq(lambda acc, x, f: and_(acc, or_(x < 1.5, f)), True, zip_(xs, flags))


@case(N=24)
@program
def shared_by_work_items(xs: "[f32]N"):
    def group(c):
        held = to_private(map_lcl(0, lambda x: x * 2.0, c))
        return let(held, lambda h: map_lcl(0, lambda a, b: a + b, zip_(h, c)))

    return join(map_wrg(0, group, split(8, xs)))


@case(N=16)
@program
def lets_in_lanes(xs: "[f32]N"):
    def body(x):
        return let(x * x, lambda y: let(y + x, lambda z: z * z - y))

    return as_scalar(low.map_vectors(8, body, as_vector(8, xs)))


@case(M=5, N=6)
@program
def columns_in_lanes(A: "[[f32]M]N"):
    """Gathered lanes, read and written."""
    sums = low.map_vectors(2, lambda col: map_seq(lambda x: x + 1.0, col), as_vector(2, A))
    return as_scalar(sums)


@case(M=4, N=6)
@program
def accumulated_twice(A: "[[f32]N]M"):
    def step(acc, row):
        return map_seq(lambda a, x: reduce_seq(lambda s, y: s + y * x, a, row), zip_(acc, row))

    return reduce_seq(step, fill(type_of(at(0, A)).size, 0.5), A)


def random_value(t, rng):
    arrays = []
    for _, dims, leaf in leaves(t):
        shape = tuple(d.constant for d in dims)
        dtype = NUMPY_TYPES[str(leaf)]
        if str(leaf) == "bool":
            arrays.append(rng.integers(0, 2, shape).astype(bool))
        elif str(leaf) == "i32":
            arrays.append(rng.integers(-6, 7, shape).astype(np.int32))
        else:
            arrays.append(rng.standard_normal(shape).astype(dtype))
    return arrays


def nested(t, arrays):
    """The interpreter's form of a value: a pair of leaves for each pair type."""
    from lift_egraph.language.types import Array, Pair

    while isinstance(t, Array):
        t = t.element
    if isinstance(t, Pair):
        return (nested(t.first, arrays), nested(t.second, arrays))
    return arrays.pop(0)


def flattened(value):
    return [leaf for part in value for leaf in flattened(part)] if isinstance(value, tuple) else [np.asarray(value)]


def check(special: ir.Program, plan: Plan) -> None:
    """The plan computes what the interpreter computes."""
    rng = np.random.default_rng(7)
    flat, values = {}, {}
    for item in special.inputs:
        arrays = random_value(item.type, rng)
        named = [b for b in (*plan.buffers, *plan.scalars) if b.value == item.name]
        for (choices, _, _), data in zip(leaves(item.type), arrays, strict=True):
            flat[next(b.name for b in named if b.components == choices)] = data
        values[item.name] = nested(item.type, list(arrays))
    for want, got in zip(flattened(run(special, values)), run_plan(plan, flat), strict=True):
        np.testing.assert_allclose(got, want.ravel(), rtol=2e-5, atol=1e-5, err_msg=text_of(plan))


@cache
def plans(dialect: str, batch: int) -> list[Plan]:
    """Some of the cases' plans for a dialect, in one build."""
    chosen = list(enumerate(CASES))[batch * BATCH : (batch + 1) * BATCH]
    specials = [replace(specialise(made, sizes), name=f"{made.name}_{n}") for n, (made, sizes) in chosen]
    return in_one_build([compile_program(special, DIALECTS[dialect]) for special in specials])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("dialect", ["pocl", "generic"])
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{p.name}-{'-'.join(map(str, s.values()))}" for p, s in CASES]
)
def test_agrees_with_the_interpreter(number: int, dialect: str) -> None:
    check(specialise(*CASES[number]), plans(dialect, number // BATCH)[number % BATCH])


@program
def iterated_that_grows(xs: "[f32]N"):
    """Local arrays of 4, 6, … and 16 elements, in groups of 8."""

    def group(c):
        grown = iterate(6, lambda v: to_local(map_lcl(0, lambda x: x + 1.0, pad(1, 1, "clamp", v))), c)
        return join(map_lcl(0, map_seq(id_), split(2, grown)))

    return map_wrg(0, group, split(4, xs))


@pytest.mark.parametrize(
    ("made", "size"),
    [(low.partial_dot(16, 3), 64), (iterated_three_to_one, 60), (iterated_that_grows, 8)],
    ids=["halves", "short", "grows"],
)
def test_iterates_too_long_to_unroll_agree(monkeypatch: pytest.MonkeyPatch, made: ir.Program, size: int) -> None:
    monkeypatch.setattr("lift_egraph.codegen.lowering.iterate.UNROLLED_TERMS", 0)
    special = specialise(made, {"N": size})
    check(special, compile_program(special, DIALECTS["pocl"]))
