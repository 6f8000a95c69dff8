"""Hypothesis strategy for high-level programs of several stages, as users write them.

A stage takes a value that is there (an input, or the result of an earlier stage) to the next one: element by
element, by a stencil, a reduction, a product, another order. Results are bound by ``let`` or stand where they are used,
and may be used several times, whole or row by row.

>>> from hypothesis import given
>>> @given(pipelines())
... def every_pipeline_has_a_type(program): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from lift_egraph.language import build as b, ir
from lift_egraph.language.check import type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.programs import make_program
from lift_egraph.language.types import F32, Array, DataType
from tests.strategies import elements

Draw = Callable[[st.SearchStrategy[Any]], Any]
Move = Callable[[], ir.Expr]

LENGTHS = (1, 2, 3, 4, 5, 6, 8, 9, 12)
MOST_ELEMENTS = 400


@st.composite
def pipelines(draw: Draw, stages: int = 4, scale: int = 1) -> ir.Program:
    """A program of at most so many stages over arrays of one to three dimensions; `scale` multiplies their lengths."""
    lengths = st.sampled_from([scale * n for n in LENGTHS])
    shapes = draw(st.lists(st.lists(lengths, min_size=1, max_size=3), min_size=1, max_size=2))
    inputs = tuple(ir.Input(f"in{i}", array_of(shape)) for i, shape in enumerate(shapes))
    inputs = tuple(i for i in inputs if elements(i.type) <= MOST_ELEMENTS * scale) or (ir.Input("in0", array_of([8])),)
    count = draw(st.integers(1, stages))
    return make_program("pipeline", inputs, lambda: _grown(draw, inputs, count, MOST_ELEMENTS * scale), {})


def array_of(shape: list[int]) -> DataType:
    """The type of nested arrays of floats."""
    t: DataType = F32
    for n in reversed(shape):
        t = Array(nat(n), t)
    return t


def _grown(draw: Draw, pool: tuple[ir.Expr, ...], stages: int, most: int) -> ir.Expr:
    """A stage after those in the pool, and what follows it."""
    term = pool[-1] if draw(st.booleans()) else draw(st.sampled_from(pool))
    made = draw(st.sampled_from(list(_moves(draw, term, pool, most))))()
    if elements(type_of(made)) > most:
        made = _each(made, lambda x: x * 0.5) if made is term else _each(term, lambda x: x + 1.0)
    if stages == 1:
        return b.tuple_(made, draw(st.sampled_from(pool))) if draw(st.integers(0, 4)) == 0 else made
    if draw(st.booleans()):
        return b.let(made, lambda v: _grown(draw, (*pool, v), stages - 1, most))
    return _grown(draw, (*pool, made), stages - 1, most)


def _moves(draw: Draw, e: ir.Expr, pool: tuple[ir.Expr, ...], most: int) -> Iterator[Move]:
    scalar = draw(st.sampled_from(_FUNCTIONS))
    yield lambda: _each(e, scalar)
    same = [x for x in pool if type_of(x) == type_of(e)]
    yield lambda: _with(e, draw(st.sampled_from(same)), draw(st.sampled_from((b.add, b.sub, b.max_))))
    t = type_of(e)
    if not isinstance(t, Array):
        arrays = [x for x in pool if isinstance(type_of(x), Array)]
        yield lambda: _each(draw(st.sampled_from(arrays)), lambda x: x - e)
        return
    n = t.size.constant or 1
    yield lambda: b.let(_sum(e), lambda s: _each(e, lambda x: x - s * 0.125))
    yield lambda: _sum(e)
    order = draw(st.sampled_from([b.reverse, *(b.stride(d) for d in range(2, n) if n % d == 0)]))
    yield lambda: b.gather(order, e)
    yield lambda: b.scatter(order, e)
    yield lambda: b.iterate(2, lambda x: _each(x, scalar), e)
    yield lambda: b.iterate(draw(st.integers(1, 6)), lambda x: _each(_with(x, e, b.add), lambda y: y * 0.5), e)
    yield lambda: b.concat(b.slice_(n // 2, n - n // 2, e), e)
    yield lambda: _with(e, b.gather(b.reverse, e), b.sub)
    yield lambda: b.map_(b.at(draw(st.integers(0, 1))), b.slide(2, 1, b.pad(0, 1, "wrap", e)))
    divisors = [d for d in range(2, n) if n % d == 0]
    if divisors:
        yield lambda: b.split(draw(st.sampled_from(divisors)), e)
    if isinstance(t.element, Array):
        yield from _matrix_moves(draw, e, t.element, scalar)
        return
    window = draw(st.sampled_from(_WINDOWS))
    edge = draw(st.sampled_from(("clamp", "mirror", "wrap")))

    def smooth(x: ir.Expr) -> ir.Expr:
        return b.map_(window, b.slide(3, 1, b.pad(1, 1, edge, x)))

    yield lambda: smooth(e)
    yield lambda: b.iterate(draw(st.integers(1, 3)), smooth, e)
    yield lambda: b.scan(b.add, 0.0, e)
    yield lambda: b.map_(lambda x: _each(e, lambda y: b.min_(x, y)), e)
    yield lambda: b.lookup(b.generate(draw(st.sampled_from(LENGTHS)), lambda i: i * 2 - 1), e)
    yield lambda: b.map_(lambda p: b.get(0, p) * b.to_f32(b.get(1, p)), b.zip_(e, b.generate(n, lambda i: i % 3)))
    yield lambda: b.generate(draw(st.sampled_from(LENGTHS)), lambda i: b.reduce_(b.add, b.to_f32(i), e))
    rows = [x for x in pool if isinstance(r := type_of(x), Array) and r.element == t]
    if rows:
        yield lambda: b.map_(lambda row: _dot(row, e), draw(st.sampled_from(rows)))


def _matrix_moves(draw: Draw, e: ir.Expr, row: Array, scalar: Callable[[ir.Expr], ir.Expr]) -> Iterator[Move]:
    yield lambda: b.transpose(e)
    yield lambda: b.join(e)
    yield lambda: b.map_(_sum, e)
    yield lambda: b.map_(lambda r: b.let(_sum(r), lambda s: _each(r, lambda x: x - s * 0.25)), e)
    yield lambda: b.map_(lambda r: b.let(_each(r, scalar), lambda y: _with(y, b.gather(b.reverse, y), b.add)), e)
    yield lambda: b.at(0, e)
    yield lambda: b.reduce_(lambda x, y: _with(x, y, b.add), _zeros(row), e)
    if isinstance(row.element, Array):
        return
    plane = lambda w: _sum(w) * 0.125  # noqa: E731
    yield lambda: b.map_(b.map_(plane), b.slide2d(3, 1, b.pad2d(1, 1, "clamp", e)))
    yield lambda: b.map_(lambda r: b.map_(lambda c: _dot(r, c), e), e)
    yield lambda: b.map_(lambda r: b.map_(draw(st.sampled_from(_WINDOWS)), b.slide(3, 1, b.pad(1, 1, "clamp", r))), e)


_FUNCTIONS: tuple[Callable[[ir.Expr], ir.Expr], ...] = (
    lambda x: x + 1.0,
    lambda x: x * 0.5,
    lambda x: b.max_(x, 0.0),
    lambda x: b.abs_(x) - x * 0.25,
    lambda x: b.select(x < 1.0, x, 2.0 - x),
    lambda x: b.sqrt(b.abs_(x)),
)
_WINDOWS: tuple[Callable[[ir.Expr], ir.Expr], ...] = (
    lambda w: b.reduce_(b.add, 0.0, w),
    lambda w: b.at(0, w) - b.at(2, w) * 0.5,
    lambda w: b.reduce_(b.max_, 0.0, b.map_(lambda x: x * 0.5, w)),
)


def _each(e: ir.Expr, f: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """A function on each scalar of a value."""
    return b.map_(lambda x: _each(x, f), e) if isinstance(type_of(e), Array) else f(e)


def _with(e: ir.Expr, other: ir.Expr, f: Callable[[Any, Any], ir.Expr]) -> ir.Expr:
    """A function on each pair of scalars of two values of one type."""
    if isinstance(type_of(e), Array):
        return b.map_(lambda p: _with(b.get(0, p), b.get(1, p), f), b.zip_(e, other))
    return f(e, other)


def _sum(e: ir.Expr) -> ir.Expr:
    while isinstance(t := type_of(e), Array) and isinstance(t.element, Array):
        e = b.join(e)
    return b.reduce_(b.add, 0.0, e)


def _dot(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    return b.reduce_(b.add, 0.0, b.map_(b.mul, b.zip_(x, y)))


def _zeros(t: DataType) -> ir.Expr:
    return b.fill(t.size, _zeros(t.element)) if isinstance(t, Array) else b.literal(0.0, F32)
