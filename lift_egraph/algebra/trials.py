"""Scalar expressions on random values: what was proven is tried all the same, and what is wrong is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lift_egraph.algebra.expressions import Binary, leaves, looked_up, opened, simplified
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, F16, F32, F64, I32, Array, Scalar

COUNT = 256
PLACES = 64  # of arrays, whose elements at other places are those of the rests modulo so many
MOST_STEPS = 64  # of a loop
MOST_AROUND = 1 << 20  # numbers that floats are drawn around: beside larger ones rounding shows …
MOST_EXACT = 1 << 53  # … and whole numbers, of which doubles have all up to this
A_PART = "a part"  # that has any value: what holds then holds, and what does not may all the same
_CLOSE = {F16: 2e-2, F32: 2e-6, F64: 1e-9}  # numbers that were computed beforehand are rounded to the type
Scope = Mapping[ir.Expr, np.ndarray]


@dataclass(frozen=True)
class Counterexample:
    """Values with which two expressions differ, and what they give."""

    values: tuple[tuple[str, object], ...]
    left: object
    right: object

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"for {given} they are {self.left} and {self.right}"


@dataclass(frozen=True)
class _Steps:
    """A known number of steps of a loop, over numbers that follow from that of the step."""

    length: int
    place: ir.Var
    of_place: ir.Expr

    def at(self, place: int) -> ir.Expr:
        """The element at a place."""
        return substitute(self.of_place, {self.place: ir.Literal(place, I32)})


@dataclass(frozen=True)
class Counted(_Steps):
    """A loop on scalars with a known number of steps."""

    accumulator: ir.Var
    element: ir.Var
    body: ir.Expr
    initial: ir.Expr


@lru_cache(maxsize=1024)
def counted(term: ir.Expr) -> Counted | None:
    """A term as such a loop; None if it is none, or has many steps."""
    if not isinstance(term, ir.Reduce | ir.ReduceSeq) or not isinstance(term.array, ir.Generate):
        return None
    length = term.array.size.constant
    match term.operator, term.array.function:
        case (
            ir.Lambda(binder=ir.PairBinder(first=ir.Var(type=Scalar()) as s, second=ir.Var() as x), body=body),
            ir.Lambda(binder=ir.Var() as i, body=element),
        ) if length is not None and length <= MOST_STEPS:
            try:
                made, start, of_place = parts = [simplified(part) for part in (body, term.initial, element)]
            except LiftError:
                return None
            return Counted(length, i, of_place, s, x, made, start) if all(map(_is_scalar, parts)) else None
    return None


@dataclass(frozen=True)
class CountedTuple(_Steps):
    """The same on tuples of scalars."""

    operator: Binary
    element: ir.Var
    initial: tuple[ir.Expr, ...]


@lru_cache(maxsize=1024)
def counted_tuple(term: ir.Expr) -> tuple[CountedTuple, int] | None:
    """A component of such a loop, and which it is, if a term is one; None for other terms."""
    loop = term
    while isinstance(loop, ir.Component):
        loop = loop.pair
    if loop is term or not isinstance(loop, ir.Reduce | ir.ReduceSeq) or not isinstance(loop.array, ir.Generate):
        return None
    length, operator = loop.array.size.constant, opened(loop.operator)
    match operator, loop.array.function:
        case (
            Binary(second=ir.Var() as x, results=results),
            ir.Lambda(binder=ir.Var() as i, body=element),
        ) if length is not None and length <= MOST_STEPS:
            try:
                start, of_place = tuple(leaves(simplified(loop.initial))), simplified(element)
            except LiftError:
                return None
            if all(map(_is_scalar, (*results, *start, of_place))):
                return CountedTuple(length, i, of_place, operator, x, start), [*leaves(loop)].index(term)
    return None


def _is_scalar(term: ir.Expr) -> bool:
    """Whether an expression is made of scalars, by their operations and by such loops."""
    if isinstance(term, ir.Call):
        return all(map(_is_scalar, term.arguments))
    if isinstance(term, ir.Literal | ir.Var | ir.Input):
        return isinstance(term.type, Scalar)
    return counted(term) is not None or counted_tuple(term) is not None


def evaluate(term: ir.Expr, scope: Scope, done: dict[int, np.ndarray] | None = None) -> np.ndarray:
    """A scalar expression on arrays of values for its variables, inputs and other parts; floats are doubles.

    `done` has what operations in this scope gave, by their identities: written-out lets share large parts.
    """
    done = {} if done is None else done
    if id(term) in done:
        return done[id(term)]
    if term in scope:
        return scope[term]
    if (found := looked_up(term)) is not None and found[0] in scope:
        place = np.zeros(COUNT, np.int64)
        for p in found[1]:
            place = place * 17 + evaluate(p, scope)
        return scope[found[0]][np.arange(COUNT), place % PLACES]
    if isinstance(term, ir.Literal):
        return np.asarray(term.value, np.float64 if term.type.is_float else NUMPY_TYPES[term.type.name])
    if (loop := counted(term)) is not None:
        made = evaluate(loop.initial, scope)
        for i in range(loop.length):
            made = evaluate(loop.body, {**scope, loop.accumulator: made, loop.element: evaluate(loop.at(i), scope)})
        return made
    if (part := counted_tuple(term)) is not None:
        steps, which = part
        state = tuple(evaluate(leaf, scope) for leaf in steps.initial)
        for i in range(steps.length):
            inside = {**scope, **dict(zip(steps.operator.first, state, strict=True))}
            inside[steps.element] = evaluate(steps.at(i), scope)
            state = tuple(evaluate(result, inside) for result in steps.operator.results)
        return state[which]
    assert isinstance(term, ir.Call), term
    arguments = [evaluate(a, scope, done) for a in term.arguments]
    with np.errstate(all="ignore"):
        made = done[id(term)] = np.asarray(OPERATIONS[term.op].meaning(*arguments))
    return made


def atoms(term: ir.Expr, seen: set[int] | None = None) -> Iterator[ir.Expr]:
    """The largest parts of an expression that are no scalar operations or literals; operations `seen` have no more."""
    seen = set() if seen is None else seen
    if isinstance(term, ir.Call):
        if id(term) not in seen:
            seen.add(id(term))
            for a in term.arguments:
                yield from atoms(a, seen)
    elif (loop := counted(term)) is not None:
        yield from atoms(loop.initial)
        yield from (a for a in atoms(loop.body) if a not in (loop.accumulator, loop.element))
        yield from atoms(loop.at(0))
    elif (part := counted_tuple(term)) is not None:
        steps, _ = part
        for leaf in steps.initial:
            yield from atoms(leaf)
        own = {*steps.operator.first, steps.element}
        yield from (a for result in steps.operator.results for a in atoms(result) if a not in own)
        yield from atoms(steps.at(0))
    elif (found := looked_up(term)) is not None and (
        isinstance(found[0], ir.Var) or not ir.free_variables(found[0])
    ):
        yield found[0]
        for place in found[1]:
            yield from atoms(place)
    elif not isinstance(term, ir.Literal):
        yield term


def counterexample(
    left: Sequence[ir.Expr],
    right: Sequence[ir.Expr],
    seed: int = 0,
    *,
    fractions: bool = False,
    poles: bool = False,
) -> Counterexample | None:
    """Small whole numbers, and for integers also the largest ones, for which expressions differ; None if none is found.

    On floats they are computed in double precision, where small whole numbers are exact; what is not finite on both
    sides, or differs by rounding alone, is no counterexample. With `fractions` floats are no whole numbers; nor are
    they with `poles`, and beside a pole more is rounding.
    """
    found, _ = tried(left, right, seed, fractions=fractions or poles, poles=poles)
    return found


def tried(
    left: Sequence[ir.Expr],
    right: Sequence[ir.Expr],
    seed: int = 0,
    *,
    fractions: bool = False,
    around: bool = False,
    poles: bool = False,
) -> tuple[Counterexample | None, int]:
    """The same, and for how many values one side was a finite number, or both are one infinity.

    With `around` some values are around numbers that the expressions mention, where a case may begin.
    """
    seen, done = set[int](), dict[int, np.ndarray]()
    names = list(dict.fromkeys(a for e in (*left, *right) for a in atoms(e, seen)))
    generator = np.random.default_rng(seed)
    scope = {name: drawn(type_of(name), generator, fractions) for name in names}
    bounds = _mentioned((*left, *right)) if around else np.empty(0)
    if bounds.size:
        scope = {name: _around(bounds, values, generator) for name, values in scope.items()}
    known = np.ones(COUNT, bool)
    for a, b in zip(left, right, strict=True):
        x, y = (np.broadcast_to(evaluate(e, scope, done), COUNT) for e in (a, b))
        differs = np.asarray(~_same(x, y, type_of(a), poles))
        if differs.any():
            at = int(np.argmax(differs))
            values = tuple((shown(n), scope[n][at].item()) for n in names if scope[n].ndim == 1)
            return Counterexample(values, x[at].item(), y[at].item()), 0
        known &= np.isfinite(x) | np.isfinite(y) | (x == y)
    return None, int(known.sum())


def mentioned(terms: Iterable[ir.Expr]) -> set[float]:
    """The numbers in terms, and what is computed of such numbers alone."""
    constant, found = set[int](), dict[ir.Expr, None]()
    for term in terms:
        for part in reversed([*ir.subterms(term)]):  # from the inside out
            if isinstance(part, ir.Literal) or (
                isinstance(part, ir.Call) and all(id(inner) in constant for inner in ir.parts(part))
            ):
                constant.add(id(part))
                found[part] = None
    numbers = {evaluate(t, {}).item() for t in found if isinstance(type_of(t), Scalar) and type_of(t) != BOOL}
    return {v for v in numbers if np.isfinite(v)}


def _mentioned(terms: Iterable[ir.Expr]) -> np.ndarray:
    """The numbers that terms mention, with both signs."""
    sizes = {abs(float(v)) for v in mentioned(terms)}
    return np.array(sorted({*sizes, *(-v for v in sizes)}))


def _around(bounds: np.ndarray, values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Values some of which are moved to where numbers are, which these values may be less or greater than, or equal."""
    is_whole = values.dtype.kind in "iu"
    bounds = bounds[np.abs(bounds) <= (MOST_EXACT if is_whole else MOST_AROUND)]
    if values.dtype == bool or not bounds.size:
        return values
    moved = np.where(generator.random(values.shape) < 0.5, values, 0) + generator.choice(bounds, values.shape)
    fits = generator.random(values.shape) < 0.5
    if is_whole:
        limits = np.iinfo(values.dtype)
        fits &= (moved >= limits.min) & (moved <= limits.max) & (moved == np.floor(moved))
    return np.where(fits, moved, values).astype(values.dtype)


def _same(x: np.ndarray, y: np.ndarray, t: object, poles: bool = False) -> np.ndarray:
    if isinstance(t, Scalar) and t in _CLOSE:
        unknown = ~np.isfinite(x) & ~np.isfinite(y)
        with np.errstate(all="ignore"):
            # one over a small number is as much farther off as it is larger
            most = _CLOSE[t] * (1 + np.abs(y) * (1 + np.abs(y) * poles))
            return unknown | (x == y) | (np.abs(x - y) <= most)
    return x == y


def drawn(t: object, generator: np.random.Generator, fractions: bool) -> np.ndarray:
    """Random values of a scalar type; for an array, such elements."""
    if isinstance(t, Array):
        while isinstance(t, Array):
            t = t.element
        return np.stack([drawn(t, generator, fractions) for _ in range(PLACES)], axis=1)
    assert isinstance(t, Scalar)
    if t == BOOL:
        return generator.integers(0, 2, COUNT).astype(bool)
    dtype = np.float64 if t.is_float else NUMPY_TYPES[t.name]
    if t.is_float and fractions:
        return generator.uniform(-4, 5, COUNT)
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -4
    values = generator.integers(low, 5, COUNT).astype(dtype)
    if not t.is_float:
        limits = np.iinfo(NUMPY_TYPES[t.name])
        large = generator.choice(np.array([limits.min, limits.max], dtype), COUNT)
        values = np.where(generator.random(COUNT) < 0.25, large, values)
    return values


def shown(term: ir.Expr) -> str:
    """What an atom is called in counterexamples."""
    return term.name.lstrip("$") if isinstance(term, ir.Var | ir.Input) else A_PART
