"""Hypothesis strategies for types, values, terms and programs of the language.

A random term is grown forwards: starting from the inputs, a pattern that fits the type of a term at
hand is applied to it, again and again. All sizes are small numbers, so every program can be run.

>>> from hypothesis import given
>>> @given(programs())
... def every_program_has_a_type(program): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from lift_egraph.language import build as b, ir
from lift_egraph.language.check import type_of
from lift_egraph.language.functions import Section
from lift_egraph.language.nat import nat
from lift_egraph.language.programs import make_program
from lift_egraph.language.scalar import COMPARISONS, EQUALITIES
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair, Scalar, Vector, leaves, width_of

Draw = Callable[[st.SearchStrategy[Any]], Any]
Move = tuple[str, Callable[[Draw], ir.Expr]]

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16)
MOST_ELEMENTS = 600
STORED = b.to_global, b.to_stream, b.to_local, b.to_local_twice, b.to_private

sizes = st.sampled_from(SIZES)
scalars = st.sampled_from((F32, F32, F64, I32, BOOL))


def data_types(scalar: st.SearchStrategy[Scalar] = scalars, max_leaves: int = 3) -> st.SearchStrategy[DataType]:
    """Scalars, tuples and arrays of them, of at most `MOST_ELEMENTS` scalars."""
    grown = st.recursive(
        scalar,
        lambda inner: st.builds(Pair, inner, inner) | st.builds(lambda n, t: Array(nat(n), t), sizes, inner),
        max_leaves=max_leaves,
    )
    return grown.filter(lambda t: elements(t) <= MOST_ELEMENTS)


def elements(t: DataType) -> int:
    """The number of scalars in a value of a type of concrete sizes."""
    total = 0
    for _, lengths, leaf in leaves(t):
        count = width_of(leaf)
        for length in lengths:
            count *= length.constant or 0
        total += count
    return total


@st.composite
def programs(draw: Draw, low_level: bool = False, steps: int = 6, whole: bool = False) -> ir.Program:
    """A well-typed program at concrete sizes.

    Parameters
    ----------
    low_level
        Whether address spaces, vectors and the maps and reductions of the low level may occur (in no
        particular nesting: such a program types and has a value, but may be no legal kernel).
    steps
        The most patterns that are applied one after the other, in every body anew.
    whole
        Whether all numbers are whole and stay small, so that results of whole inputs are exact in any order.
    """
    types = draw(st.lists(data_types(), min_size=0, max_size=2))
    first = Array(nat(draw(sizes)), draw(data_types(max_leaves=2)))
    types = [t for t in (first, *types) if elements(t) <= MOST_ELEMENTS] or [F32]
    inputs = tuple(ir.Input(f"in{i}", t) for i, t in enumerate(types))
    return make_program("random", inputs, lambda: draw(terms(inputs, low_level, steps, whole=whole)), {})


@st.composite
def terms(
    draw: Draw, known: tuple[ir.Expr, ...], low_level: bool = False, steps: int = 6, depth: int = 2, whole: bool = False
) -> ir.Expr:
    """A well-typed term over some given ones; `depth` limits how functions nest."""
    pool = list(known)
    for _ in range(draw(st.integers(1, steps))):
        term = pool[-1] if draw(st.booleans()) else draw(st.sampled_from(pool))
        grower = _Grower(tuple(pool), low_level, depth, whole)
        moves = list(grower.moves(term))
        if moves:
            _, move = draw(st.sampled_from(moves))
            made = move(draw)
            if elements(type_of(made)) <= MOST_ELEMENTS:
                pool.append(made)
    return pool[-1]


class _Grower:
    """The ways in which a term can be extended by one pattern."""

    def __init__(self, pool: tuple[ir.Expr, ...], low_level: bool, depth: int, whole: bool) -> None:
        self.pool = pool
        self.low_level = low_level
        self.depth = depth
        self.whole = whole

    def moves(self, e: ir.Expr) -> Iterator[Move]:
        t = type_of(e)
        yield from self._any(e)
        if isinstance(t, Scalar):
            yield from _scalar(e, t, self.pool, self.whole)
        elif isinstance(t, Vector):
            yield "vector", lambda draw: e + e
        elif isinstance(t, Pair):
            yield "get", lambda draw: b.get(0, e)
            yield "rest", lambda draw: b.rest(e)
            if self.depth:
                yield "destructure", lambda draw: b.let(e, lambda p, q: self.body(draw, p, q))
        else:
            assert t.size.constant is not None
            yield from self._array(e, t.size.constant, t.element)
            if isinstance(t.element, Array):
                yield "join", lambda draw: b.join(e)
                yield "transpose", lambda draw: b.transpose(e)

    def body(self, draw: Draw, *variables: ir.Expr) -> ir.Expr:
        return draw(terms((*self.pool[:1], *variables), self.low_level, 3, self.depth - 1, self.whole))

    def function(self, draw: Draw) -> Any:
        return lambda x: self.body(draw, x)

    def _any(self, e: ir.Expr) -> Iterator[Move]:
        yield "tuple", lambda draw: b.tuple_(e, draw(st.sampled_from(self.pool)))
        yield "fill", lambda draw: b.fill(draw(sizes), e)
        if self.depth:
            yield "let", lambda draw: b.let(e, self.function(draw))
            yield "generate", lambda draw: b.generate(draw(sizes), self.function(draw))
        if self.low_level:
            yield (
                "to_memory",
                lambda draw: draw(st.sampled_from(STORED))(e),
            )

    def _array(self, e: ir.Expr, n: int, element: DataType) -> Iterator[Move]:
        yield "split", lambda draw: b.split(draw(st.sampled_from(divisors(n))), e)
        yield "gather", lambda draw: b.gather(draw(index_functions(n)), e)
        yield "scatter", lambda draw: b.scatter(draw(permutations(n)), e)
        yield "zip", lambda draw: b.zip_(e, draw(st.sampled_from(of_length(n, self.pool))))
        yield "lookup", lambda draw: b.lookup(b.generate(draw(sizes), lambda i: i * draw(small) - 1), e)
        alike = [x for x in self.pool if isinstance(t := type_of(x), Array) and t.element == element]
        yield "concat", lambda draw: b.concat(e, draw(st.sampled_from(alike)))
        if n:
            yield "slice", lambda draw: b.slice_(*draw(slices(n)), e)
            yield "at", lambda draw: b.at(draw(st.integers(0, n - 1)), e)
            yield "slide", lambda draw: b.slide(*draw(windows(n)), e)
            yield "pad", lambda draw: _pad(draw, e, n, element)
        if self.depth:
            yield "map", lambda draw: b.map_(self.function(draw), e)
            yield "iterate", lambda draw: b.iterate(draw(small), b.map_(_endomorphism(draw)), e)
        if n % 4 == 0 and n:
            yield "halve", lambda draw: b.iterate(2, b.map_(b.at(0)) @ b.split(2), e)
        yield from self._reductions(e, element)
        if self.low_level:
            yield from self._low_level(e, n, element)

    def _reductions(self, e: ir.Expr, element: DataType) -> Iterator[Move]:
        if isinstance(element, Scalar) and element != BOOL:
            zero = _zero(element)
            operators = (b.add, b.min_, b.max_, lambda x, y: x + y * 1)
            inside = (lambda x: x + x) if self.whole else (lambda x: x * x)
            yield "reduce", lambda draw: b.reduce_(draw(st.sampled_from(operators)), zero, e)
            yield "scan", lambda draw: b.scan(draw(st.sampled_from(operators)), zero, e)
            yield "scan_exclusive", lambda draw: b.scan_exclusive(draw(st.sampled_from(operators)), zero, e)
            ends = st.sampled_from((-1, 0, 1, 2, 9))
            yield (
                "reduce_range",
                lambda draw: b.reduce_range(draw(st.sampled_from(operators)), zero, draw(ends), draw(ends), e),
            )
            if self.low_level:
                yield "reduce_seq", lambda draw: b.reduce_seq(lambda acc, x: acc + inside(x), zero, e)
                step = lambda acc, x: acc - inside(x) * acc  # noqa: E731
                yield "scan_seq", lambda draw: b.scan_seq(step, zero, e)
                yield "scan_exclusive_seq", lambda draw: b.scan_exclusive_seq(step, zero, e)
                yield "reduce_range_seq", lambda draw: b.reduce_range_seq(step, zero, draw(ends), draw(ends), e)
            count = lambda acc, x: (b.get(0, acc) + 1, b.get(0, acc) - b.get(1, acc))  # noqa: E731
            yield "fold pairs", lambda draw: b.reduce_seq(count, b.tuple_(0, 0), e)
        if isinstance(element, Array) and element.element in (F32, F64, I32):
            zeros = b.fill(element.size, _zero(element.element))
            yield "add arrays", lambda draw: b.reduce_(lambda x, y: b.map_(b.add, b.zip_(x, y)), zeros, e)
        if element == BOOL:
            yield "reduce", lambda draw: b.reduce_(draw(st.sampled_from((b.and_, b.or_))), True, e)

    def _low_level(self, e: ir.Expr, n: int, element: DataType) -> Iterator[Move]:
        if self.depth:
            levels = (b.map_seq, b.map_glb(0), b.map_glb(1), b.map_wrg(2), b.map_lcl(0))
            yield "map_level", lambda draw: draw(st.sampled_from(levels))(self.function(draw), e)
        if element in (F32, F64, I32) and n % 4 == 0:
            yield "as_vector", lambda draw: b.as_vector(draw(st.sampled_from((2, 4))), e)
            inside = (lambda x: x + x) if self.whole else (lambda x: x * x)
            yield "vectorize", lambda draw: (b.as_scalar @ b.map_seq(b.vectorize(4, inside)) @ b.as_vector(4))(e)
        if isinstance(element, Vector):
            yield "as_scalar", lambda draw: b.as_scalar(e)


small = st.integers(0, 3)


def divisors(n: int) -> list[int]:
    """The lengths of chunks of an array of a length."""
    return [d for d in range(1, n + 1) if n % d == 0] or [1]


def of_length(n: int, pool: tuple[ir.Expr, ...]) -> list[ir.Expr]:
    """The arrays of a length in a pool, or one if there is none."""
    same = [e for e in pool if isinstance(t := type_of(e), Array) and t.size == nat(n)]
    return same or [b.generate(n, lambda i: i + 1)]


def slices(n: int) -> st.SearchStrategy[tuple[int, int]]:
    """Starts and lengths of parts of an array of a length."""
    return st.integers(0, n - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(1, n - start)))


def windows(n: int) -> st.SearchStrategy[tuple[int, int]]:
    """Sizes and steps of windows that tile an array of a length."""
    return st.sampled_from([(w, s) for w in range(1, n + 1) for s in range(1, 4) if (n - w) % s == 0])


def permutations(n: int) -> st.SearchStrategy[ir.IndexFunction]:
    """Index functions that are permutations of an array of a length."""
    strides = [b.stride(d) for d in range(1, n + 1) if n % d == 0]
    rotations = [b.index_function(lambda i, n, k=k: (i + k) % n) for k in range(min(n, 3))]
    return st.sampled_from([b.reverse, *strides, *rotations])


def index_functions(n: int) -> st.SearchStrategy[ir.IndexFunction]:
    """Index functions that stay within an array of a length."""
    return permutations(n) | st.sampled_from([b.index_function(lambda i: i // 2), b.index_function(lambda i: i % 1)])


def _zero(t: Scalar) -> ir.Expr:
    return b.literal(0, I32) if t == I32 else b.literal(0.0, t)


def _scalar(e: ir.Expr, t: Scalar, pool: tuple[ir.Expr, ...], whole: bool) -> Iterator[Move]:
    alike = st.sampled_from([x for x in pool if type_of(x) == t])
    if t == BOOL:
        yield "not", lambda draw: b.not_(e)
        yield "and", lambda draw: b.and_(e, draw(alike))
        yield "equal", lambda draw: Section(draw(st.sampled_from(EQUALITIES)))(e, draw(alike))
        yield "select", lambda draw: b.select(e, draw(alike), True)
        return
    reals = (0.0, 1.0, -2.0) if whole else (0.0, 1.0, -2.5, 0.1, 1e20, -float("inf"))
    number = st.sampled_from((0, 1, -2) if t == I32 else reals)
    operators = st.sampled_from((b.add, b.sub, b.min_, b.max_, *(() if whole else (b.mul,))))
    yield "arithmetic", lambda draw: draw(operators)(e, draw(alike))
    yield "number", lambda draw: draw(st.sampled_from((b.add, b.sub, b.max_)))(draw(number), e)
    yield "negation", lambda draw: draw(st.sampled_from((b.neg, b.abs_)))(e)
    yield "compare", lambda draw: Section(draw(st.sampled_from(COMPARISONS)))(e, draw(alike))
    yield "select", lambda draw: b.select(e < draw(alike), e, -e)
    yield "cast", lambda draw: draw(st.sampled_from((b.to_f32, b.to_f64)))(e)
    if t.is_float and not whole:
        yield "float", lambda draw: draw(st.sampled_from((b.sin, b.floor, lambda x: b.sqrt(abs(x)))))(e)


def _endomorphism(draw: Draw) -> Any:
    def change(x: ir.Expr) -> ir.Expr:
        t = type_of(x)
        return x + x if isinstance(t, Scalar) and t != BOOL and draw(st.booleans()) else x

    return change


def _pad(draw: Draw, e: ir.Expr, n: int, element: DataType) -> ir.Expr:
    left, right = draw(st.integers(0, min(n, 3))), draw(st.integers(0, min(n, 2)))
    edges: list[Any] = ["clamp", "mirror", "wrap"]
    if isinstance(element, Scalar) and element.is_float:
        edges.append(b.constant(-1.5))
    return b.pad(left, right, draw(st.sampled_from(edges)), e)
