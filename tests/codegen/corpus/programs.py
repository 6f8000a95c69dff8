"""A Hypothesis strategy for legal low-level programs: every pattern, in every nesting that OpenCL allows.

A term is grown forwards: to a value at hand a pattern that fits its type is applied, again and again. `Place`
knows which maps are around it, so which levels of the thread hierarchy are still free there. Programs are
small, their sizes concrete, and their numbers small integers, so that most results are exact.

>>> from hypothesis import given
>>> @given(programs())
... def every_program_compiles(program): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from lift_egraph.language import build as b, ir
from lift_egraph.language.check import type_of
from lift_egraph.language.functions import checked
from lift_egraph.language.nat import nat
from lift_egraph.language.programs import make_program
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair, Scalar, Vector, is_data
from tests.codegen.corpus.values import Pick, number, value
from tests.strategies import divisors, elements, of_length

Move = Callable[[], ir.Expr]
Pool = tuple[ir.Expr, ...]

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 31, 32, 33)
MOST_ELEMENTS = 256  # of one value
MOST_PRIVATE = 32  # elements that a work-item computes at once
MOST_WORK = 2048  # elements times the loops around them

_LEVELS = tuple(ir.Level(kind, d) for kind in ("glb", "wrg", "lcl") for d in range(3))


@dataclass(frozen=True)
class Place:
    """What is around a term: the maps from the outside in, how often it runs, how much deeper functions may nest."""

    above: tuple[ir.Level, ...] = ()
    repeat: int = 1
    depth: int = 4

    def inside(self, level: ir.Level, count: int) -> Place:
        return Place((*self.above, level), self.repeat * max(count, 1), self.depth - 1)

    @property
    def kinds(self) -> set[str]:
        return {level.kind for level in self.above}

    @property
    def is_host(self) -> bool:
        """Whether whole kernels run here."""
        return not self.above

    @property
    def levels(self) -> list[ir.Level]:
        """The parallel levels whose results can be read here: those of whole kernels, or of one group."""
        return [level for level in _LEVELS if self._is_free(level) and (self.is_host or level.kind == "lcl")]

    @property
    def grid_levels(self) -> list[ir.Level]:
        """The further dimensions of mapGlb or mapWrg that may start inside one: nothing may read their results here."""
        return [] if self.is_host else [v for v in _LEVELS if v.kind in ("glb", "wrg") and self._is_free(v)]

    def _is_free(self, level: ir.Level) -> bool:
        if level in self.above:
            return False
        if level.kind == "lcl":
            return ir.Level("wrg", level.dimension) in self.above
        other = {"glb": "wrg", "wrg": "glb"}[level.kind]
        return not self.kinds & {"seq", "lcl", other}

    def fits(self, t: DataType) -> bool:
        """Whether a value of a type may be computed here."""
        most = MOST_ELEMENTS if self.is_host or self.kinds <= {"wrg", "glb"} else MOST_PRIVATE * 2
        return elements(t) <= most and elements(t) * self.repeat <= MOST_WORK


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> ir.Program:
    """A legal low-level program at concrete sizes."""
    return grown(lambda options: draw(st.sampled_from(options)), "random")


def numbered(number: int) -> ir.Program:
    """The legal low-level program of a number: the corpus are those of the first numbers."""
    return grown(Random(number).choice, f"p{number}")


def grown(pick: Pick, name: str) -> ir.Program:
    """A legal low-level program that follows some choices."""
    types = [Array(nat(pick(SIZES)), element_type(pick)) for _ in range(pick((1, 2)))]
    types = [t for t in types if elements(t) <= MOST_ELEMENTS] or [Array(nat(8), F32)]
    types += [pick((F32, I32, BOOL))] * pick((0, 0, 1))
    inputs = tuple(ir.Input(f"in{i}", t) for i, t in enumerate(types))

    def body() -> ir.Expr:
        grower = Grower(pick)
        result = grower.parallel(inputs[0], Place(), inputs)
        for _ in range(pick((0, 0, 1, 2, 3))):
            if pick((True, False)):
                result = grower.step(result, Place(), inputs)
            else:
                result = b.let(result, lambda r: grower.step(r, Place(), (*inputs, r)))
        return result

    return make_program(name, inputs, body, {})


def element_type(pick: Pick) -> DataType:
    """The type of an input's elements."""
    scalar = pick((F32, F32, F32, I32, I32, BOOL, F64))
    other, small = pick((F32, I32, BOOL)), nat(pick((1, 2, 3, 4, 8)))
    return pick(
        (
            scalar,
            scalar,
            Array(nat(pick(SIZES)), scalar),
            Array(small, scalar),
            Pair(scalar, other),
            Array(small, Pair(scalar, other)),
            Pair(Array(small, scalar), other),
            Array(small, Array(nat(pick((1, 2, 3, 4))), scalar)),
            Vector(pick((F32, I32)), pick((2, 4))),
        )
    )


class Grower:
    """Grows terms that follow some choices."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick

    # --- terms --------------------------------------------------------------------------------------

    def term(self, start: ir.Expr, place: Place, pool: Pool, steps: int = 3) -> ir.Expr:
        """A value made from `start` (and others of the pool) by a few patterns."""
        made = start
        for _ in range(self.pick(range(1, steps + 1))):
            made = self.step(made, place, pool)
        return made

    def step(self, e: ir.Expr, place: Place, pool: Pool) -> ir.Expr:
        """One more pattern around a value, or the value itself where nothing fits."""
        moves = [*self.moves(e, place, pool)]
        for _ in range(3):
            made = checked(self.pick(moves)())
            if place.fits(type_of(made)):
                return made
        return e

    def body(self, place: Place, pool: Pool, *bound: ir.Expr, is_last: bool = False) -> ir.Expr:
        """The body of a function of some bound variables."""
        everything = (*pool, *bound)
        start = self.pick(bound)
        if (
            is_last
            and place.grid_levels
            and place.depth > 0
            and isinstance(type_of(start), Array)
            and self.pick((True, False))
        ):
            if self.pick((True, False)):
                start = self.step(start, place, everything)
            return self.grid(start, place, everything)
        if place.kinds == {"wrg"} and place.depth > 0 and self.pick((True, True, False)):
            return self.term(self.parallel(start, place, everything), place, everything, 2)
        if is_data(type_of(start)) and (place.depth <= 0 or self.pick((True, True, True, False))):
            return value(self.pick, type_of(start) if self.pick((True, False)) else self.pick((F32, I32)), everything)
        if place.depth <= 0:
            return start
        return self.term(start, place, everything)

    def function(self, place: Place, pool: Pool) -> Callable[..., ir.Expr]:
        return lambda x: self.body(place, pool, *_parts(x), is_last=True)

    # --- the patterns that fit ----------------------------------------------------------------------

    def moves(self, e: ir.Expr, place: Place, pool: Pool) -> Iterator[Move]:
        """The ways in which a value can be extended by one pattern."""
        t = type_of(e)
        if isinstance(t, Pair):
            yield lambda: b.get(0, e)
            yield lambda: b.rest(e)
            yield lambda: b.let(e, lambda p, q: self.body(replace(place, depth=place.depth - 1), pool, p, q))
        elif isinstance(t, Array):
            yield from self.layout(e, t, pool)
            yield from self.computing(e, t, place, pool)
        else:
            yield lambda: b.let(e, lambda x: value(self.pick, t, (*pool, x)))
            yield lambda: b.fill(self.pick((1, 2, 3, 4)), e)
            length = self.pick((1, 2, 3, 5))
            yield lambda: b.let(e, lambda x: b.generate(length, lambda i: value(self.pick, t, (*pool, x, i))))
        yield lambda: b.let(e, lambda x: self.body(replace(place, depth=place.depth - 1), pool, x))
        yield lambda: b.tuple_(e, self.pick(pool))

    def layout(self, e: ir.Expr, t: Array, pool: Pool) -> Iterator[Move]:
        """The patterns that only move data, also mapped over the elements."""
        n = t.size.constant or 0
        yield lambda: b.split(self.pick(divisors(n)), e)
        yield lambda: b.gather(self.pick(_index_functions(n)), e)
        yield lambda: b.scatter(self.pick(_permutations(n)), e)
        if windows := _windows(n):
            yield lambda: b.slide(*self.pick(windows), e)
        yield lambda: b.zip_(e, self.pick(of_length(n, pool)))
        if n or isinstance(t.element, Scalar):
            yield lambda: self.pad(e, n, t.element)
        alike = [x for x in pool if isinstance(u := type_of(x), Array) and u.element == t.element]
        yield lambda: b.concat(*self.pick(((e, self.pick((e, *alike))), (self.pick((e, *alike)), e))))
        if n:  # an empty array has no edges, and nothing can be looked up in it
            yield lambda: b.lookup(self.indices(n, pool), e)
            yield lambda: b.at(self.pick(range(n)), e)
            start = self.pick(range(n))
            yield lambda: b.slice_(start, self.pick(range(1, n - start + 1)), e)
        if isinstance(t.element, Array):
            yield lambda: b.join(e)
            yield lambda: b.transpose(e)
            yield lambda: b.map_(lambda row: checked(self.pick([*self.layout(row, type_of(row), ())])()), e)
        if isinstance(t.element, Pair):
            yield lambda: b.map_(lambda pair: b.get(0, pair), e)
            yield lambda: b.map_(lambda p, q: b.tuple_(q, p), e)
        if isinstance(t.element, Vector):
            yield lambda: b.as_scalar(e)
        elif not _has_vectors(t.element) and (widths := [w for w in (2, 4, 8, 16) if n % w == 0]):
            yield lambda: b.as_vector(self.pick(widths), e)

    def computing(self, e: ir.Expr, t: Array, place: Place, pool: Pool) -> Iterator[Move]:
        """The patterns that compute."""
        n = t.size.constant or 0
        if place.depth <= 0:
            return
        levels = place.levels
        if levels:
            for _ in range(3):
                yield lambda: self.parallel(e, place, pool)
        if elements(t) <= MOST_PRIVATE * 2:
            yield lambda: self.map(ir.SEQ, e, place, pool)
            yield lambda: self.stored(self.map(ir.SEQ, e, place, pool), place)
            yield lambda: self.stored(e, place)
        yield lambda: self.reduction(e, t, place, pool)
        yield lambda: self.reduction(e, t, place, pool)
        yield lambda: self.iterate(e, t, place, pool)
        if isinstance(t.element, Scalar) and (widths := [w for w in (2, 4, 8, 16) if n % w == 0]):
            yield lambda: self.vectors(e, self.pick(widths), place, pool)

    def pad(self, e: ir.Expr, n: int, element: DataType) -> ir.Expr:
        edges: list[Any] = ["clamp", "mirror", "wrap"] if n else []
        if isinstance(element, Scalar):
            edges.append(b.constant(True if element == BOOL else 2 if element == I32 else -1.0))
        edge = self.pick(edges)
        most = 2 if isinstance(edge, b.constant) else min(n, 3)
        return b.pad(self.pick(range(most + 1)), self.pick(range(most + 1)), edge, e)

    def indices(self, n: int, pool: Pool) -> ir.Expr:
        known = [p for p in pool if isinstance(t := type_of(p), Array) and t.element == I32]
        if known and self.pick((True, False)):
            return self.pick(known)
        scale, offset = self.pick((-1, 0, 1, 2)), self.pick((0, 1, -1, n))
        return b.generate(self.pick((1, 2, 3, 4, 7)), lambda i: i * scale + offset)

    # --- maps, vectors and memory -------------------------------------------------------------------

    def map(self, level: ir.Level, e: ir.Expr, place: Place, pool: Pool) -> ir.Expr:
        """A map of some function; at the group's level its result may be placed in memory."""
        t = type_of(e)
        assert isinstance(t, Array)
        return _map_at(level, self.function(place.inside(level, t.size.constant or 0), pool), e)

    def parallel(self, e: ir.Expr, place: Place, pool: Pool) -> ir.Expr:
        """A map at one of the levels that are free here."""
        t = type_of(e)
        if not isinstance(t, Array):
            return e
        if elements(t) * place.repeat > MOST_WORK:
            return e
        n = t.size.constant or 0
        level = self.pick(place.levels)
        if level.kind in ("glb", "wrg") and not isinstance(t.element, Array) and self.pick((True, True, False)):
            chunk = self.pick([d for d in divisors(n) if d > 1] or [1])
            made = self.map(level, b.split(chunk, e), place, pool)
            return b.join(made) if isinstance(type_of(made).element, Array) else made  # pyright: ignore
        return self.map(level, e, place, pool)

    def grid(self, e: ir.Expr, place: Place, pool: Pool) -> ir.Expr:
        """A map in a further dimension of the grid, at the end of a function."""
        t = type_of(e)
        if not isinstance(t, Array) or elements(t) * place.repeat > MOST_WORK:
            return e
        made = self.map(self.pick(place.grid_levels), e, place, pool)
        t = type_of(made)
        assert isinstance(t, Array)
        forms = [made, made, made, b.scatter(self.pick(_permutations(t.size.constant or 0)), made)]
        if isinstance(t.element, Array):
            forms += [b.join(made), b.transpose(made)]
        if len(pool) > 1:
            forms.append(b.tuple_(made, self.pick(pool)))
        return self.pick(forms)

    def stored(self, e: ir.Expr, place: Place) -> ir.Expr:
        spaces = [b.to_private, b.to_global]
        if "wrg" in place.kinds:
            spaces += [b.to_local, b.to_local]
        if place.is_host:
            spaces = [b.to_global]
        return self.pick(spaces)(e)

    def vectors(self, e: ir.Expr, width: int, place: Place, pool: Pool) -> ir.Expr:
        """A vectorised map, or one over vectors."""
        wide = b.as_vector(width, e)
        level = self.pick([ir.SEQ, *place.levels])
        scalars = tuple(p for p in pool if isinstance(type_of(p), Scalar))

        def lane(x: ir.Expr) -> ir.Expr:
            return value(self.pick, type_of(x), (*scalars, x))

        made = _map_at(level, b.vectorize(width, lane), wide)
        return self.pick((b.as_scalar(made), b.as_scalar(made), made))

    # --- reductions and iterations --------------------------------------------------------------------

    def reduction(self, e: ir.Expr, t: Array, place: Place, pool: Pool) -> ir.Expr:
        """A sequential reduction to a scalar, a tuple, or an array; or a scan."""
        inner = place.inside(ir.SEQ, t.size.constant or 0)
        kind = self.pick(("scalar", "scalar", "pair", "array", "array", "scan"))
        if kind == "array" or not is_data(t.element):
            start = self.accumulator(t.element, pool)
            if inner.fits(type_of(start)):
                made = b.reduce_seq(
                    lambda acc, x: self.endo(acc, replace(inner, depth=1), (*pool, *_parts(x))), start, e
                )
                return self.stored(made, place) if self.pick((False, False, True)) else made
        scalar = self.pick((F32, I32, BOOL))
        if kind in ("scalar", "scan"):
            fold = self.pick((b.scan_seq, b.scan_exclusive_seq)) if kind == "scan" else b.reduce_seq
            return fold(lambda acc, x: self.folded(acc, (*pool, *_parts(x))), number(self.pick, scalar, ()), e)
        other = self.pick((F32, I32))
        start = b.tuple_(number(self.pick, scalar, ()), number(self.pick, other, ()))
        return b.reduce_seq(
            lambda acc, x: b.tuple_(
                self.folded(b.get(0, acc), (*pool, *_parts(x), b.get(1, acc))), self.folded(b.get(1, acc), _parts(x))
            ),
            start,
            e,
        )

    def folded(self, acc: ir.Expr, pool: Pool) -> ir.Expr:
        """The accumulator with one more element."""
        t = type_of(acc)
        if t == BOOL:
            return self.pick((b.and_, b.or_))(acc, value(self.pick, BOOL, pool))
        return self.pick((b.add, b.add, b.sub, b.min_, b.max_))(acc, value(self.pick, t, pool))

    def accumulator(self, element: DataType, pool: Pool) -> ir.Expr:
        """The start of a reduction to an array."""
        shapes: list[DataType] = [Array(nat(n), s) for n in (1, 2, 3, 4) for s in (F32, I32)]
        shapes += [Array(nat(2), Array(nat(3), F32)), Array(nat(2), Pair(F32, I32))]
        if isinstance(element, Array) and not _has_vectors(element):
            shapes += [element] * 8
        return self.constant(self.pick(shapes))

    def constant(self, t: DataType) -> ir.Expr:
        if isinstance(t, Array):
            return b.fill(t.size, self.constant(t.element))
        if isinstance(t, Pair):
            return b.tuple_(self.constant(t.first), self.constant(t.second))
        assert isinstance(t, Scalar)
        return number(self.pick, t, ())

    def iterate(self, e: ir.Expr, t: Array, place: Place, pool: Pool) -> ir.Expr:
        """An iteration that keeps the length, or shrinks it."""
        n = t.size.constant or 0
        inside = place if place.is_host else replace(place, above=(*place.above, ir.SEQ))
        inside = replace(inside, repeat=place.repeat * 2, depth=1)
        powers = [(c, k) for c in (2, 3) for k in (1, 2, 3) if n and n % c**k == 0]
        if isinstance(t.element, Scalar) and powers and self.pick((True, False)):
            chunk, times = self.pick(powers)
            level = self.pick([ir.SEQ, *inside.levels])
            element = t.element
            zero = number(self.pick, element, ())

            def shrink(xs: ir.Expr) -> ir.Expr:
                def one(c: ir.Expr) -> ir.Expr:
                    return b.reduce_seq(lambda acc, x: self.folded(acc, (x,)), zero, c)

                return _map_at(level, one, b.split(chunk, xs))

            made = b.iterate(times, shrink, e)
        elif isinstance(t.element, Scalar) and n and n <= 16 and self.pick((True, False, False)):
            level = self.pick([ir.SEQ, *inside.levels])
            edge, element = self.pick(("clamp", "mirror", "wrap")), t.element

            def grow(xs: ir.Expr) -> ir.Expr:
                return _map_at(level, lambda x: value(self.pick, element, (x,)), b.pad(1, self.pick((0, 1)), edge, xs))

            made = b.iterate(self.pick((1, 2, 3)), grow, e)
        else:
            made = ir.Iterate(
                self.pick((0, 1, 2, 3)),
                "size",
                b.to_function(lambda xs: self.endo(xs, inside, pool), t, "iterate"),  # pyright: ignore
                e,
            )
        return self.stored(made, place) if self.pick((False, False, True)) else made

    def endo(self, e: ir.Expr, place: Place, pool: Pool) -> ir.Expr:
        """A value of the same type as a given one."""
        t = type_of(e)
        if is_data(t):
            return value(self.pick, t, (*pool, e))
        if isinstance(t, Pair):
            return b.tuple_(self.endo(b.get(0, e), place, pool), self.endo(b.rest(e), place, pool))
        assert isinstance(t, Array)
        n = t.size.constant or 0
        level = self.pick([ir.SEQ, *place.levels, *place.levels])
        inner = place.inside(level, n)

        def change(x: ir.Expr) -> ir.Expr:
            return self.endo(x, inner, pool)

        def order() -> ir.IndexFunction:
            return self.pick(_permutations(n))

        forms: list[Move] = [lambda: _map_at(level, lambda x: self.endo(x, inner, (*pool, *_parts(x))), e)] * 3
        if alike := [p for p in pool if isinstance(other := type_of(p), Array) and other.size == t.size]:
            both = lambda x, y: self.endo(x, inner, (*pool, *_parts(y)))  # noqa: E731
            forms += [lambda: _map_at(level, both, b.zip_(e, self.pick(alike)))] * 3
        forms += [
            lambda: b.gather(order(), _map_at(level, change, e)),
            lambda: _map_at(level, change, b.gather(order(), e)),
            lambda: b.scatter(order(), _map_at(level, change, e)),
        ]
        chunk = self.pick(divisors(n))
        forms.append(lambda: b.join(_map_at(level, lambda c: self.endo(c, inner, pool), b.split(chunk, e))))
        if isinstance(t.element, Array):
            forms.append(lambda: b.transpose(self.endo(b.transpose(e), place, pool)))
        if isinstance(t.element, Scalar) and n:
            edge = self.pick(("clamp", "mirror", "wrap"))

            def window(w: ir.Expr) -> ir.Expr:
                return b.reduce_seq(lambda acc, x: self.folded(acc, (x,)), number(self.pick, t.element, ()), w)  # pyright: ignore

            forms.append(lambda: _map_at(level, window, b.slide(3, 1, b.pad(1, 1, edge, e))))
            if widths := [w for w in (2, 4) if n % w == 0]:
                width = self.pick(widths)
                lanes = lambda: b.vectorize(width, lambda x: value(self.pick, type_of(x), (x,)))  # noqa: E731
                forms.append(lambda: b.as_scalar(_map_at(level, lanes(), b.as_vector(width, e))))
        made = self.pick(forms)()
        return b.to_local(made) if "wrg" in place.kinds and self.pick((False,) * 5 + (True,)) else made


# --- helpers --------------------------------------------------------------------------------------------


def _map_at(level: ir.Level, function: Any, e: ir.Expr) -> ir.Expr:
    if level == ir.SEQ:
        return b.map_seq(function, e)
    return {"glb": b.map_glb, "wrg": b.map_wrg, "lcl": b.map_lcl}[level.kind](level.dimension, function, e)


def _parts(e: ir.Expr) -> Pool:
    """A value and, of a tuple, its components."""
    t = type_of(e)
    if isinstance(t, Pair):
        return (e, *_parts(b.get(0, e)), *_parts(b.rest(e)))
    return (e,)


def _has_vectors(t: DataType) -> bool:
    if isinstance(t, Pair):
        return _has_vectors(t.first) or _has_vectors(t.second)
    return _has_vectors(t.element) if isinstance(t, Array) else isinstance(t, Vector)


def _windows(n: int) -> list[tuple[int, int]]:
    """Sizes and steps of windows that tile an array of a length."""
    return [(w, s) for w in range(1, min(n, 6) + 1) for s in range(1, 4) if (n - w) % s == 0]


def _permutations(n: int) -> list[ir.IndexFunction]:
    """Index functions that are permutations of an array of a length."""
    strides = [b.stride(d) for d in range(2, n + 1) if n % d == 0]
    rotations = [b.index_function(lambda i, n, k=k: (i + k) % n) for k in range(1, min(n, 3))]
    return [b.reverse, b.reverse, *strides, *rotations]


def _index_functions(n: int) -> list[ir.IndexFunction]:
    """Index functions that stay within an array of a length."""
    some = (lambda i: i // 2, lambda i: i % 1, lambda i, n: (3 * i + 1) % n, lambda i, n: (i * i) % n)
    return [*_permutations(n), *(b.index_function(f) for f in some)]
