"""From Python functions to lambdas: the part of building terms that the builder and the parser share.

A function argument (of ``map``, say) is given without types. `to_function` gives it the type of
what it is applied to, binds its parameters to fresh variables and calls it, so that every type
error comes up where the term is built. What may stand for a function:

- a Python callable; its parameters name the binders, and two or more take a tuple apart;
- an `Abstraction`, the same with an explicit, possibly nested binding pattern (the parser's form);
- a `Section` (a scalar operation), a `PartialPattern` that lacks its last argument, a `Composition` with
  ``@``, a `Vectorized` function, a `Stored` function;
- a finished `lift_egraph.language.ir.Lambda` or `lift_egraph.language.ir.Vectorize`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name
from lift_egraph.language.check import type_of
from lift_egraph.language.computed_places import looked_up_in
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.sizes import size_value
from lift_egraph.language.tuples import on_tuples, select_arrays
from lift_egraph.language.types import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    U8,
    Array,
    DataType,
    Pair,
    Scalar,
    Vector,
    scalar_of,
    tuple_components,
    without_lanes,
)

# --- names in scope --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """The names of the binders and of the sizes that are open around the term being built."""

    names: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()


_SCOPE: ContextVar[Scope] = ContextVar("scope", default=Scope())  # noqa: B039 - Scope is immutable


def scope() -> Scope:
    """The scope of the term being built."""
    return _SCOPE.get()


@contextmanager
def opened(names: Iterable[str] = (), sizes: Iterable[str] = ()) -> Iterator[None]:
    """Open binders and sizes for the terms that are built in the ``with`` block."""
    now = _SCOPE.get()
    token = _SCOPE.set(Scope(now.names | frozenset(names), now.sizes | frozenset(sizes)))
    try:
        yield
    finally:
        _SCOPE.reset(token)


def keep_open(names: Iterable[str]) -> None:
    """Open binders for what is built in the rest of the ``with`` block of `opened`."""
    now = _SCOPE.get()
    _SCOPE.set(Scope(now.names | frozenset(names), now.sizes))


# --- values ----------------------------------------------------------------------------------------


def literal(value: float, type: Scalar | None = None) -> ir.Literal:
    """A number or truth value as a term; without a type, a float is ``f32`` and an int ``i32``.

    Raises
    ------
    TypeProblem
        If the type cannot hold the value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return ir.Literal(value, _literal_type(value, type, BOOL))
    if isinstance(value, int) and (type is None or type.is_integer):
        limits = np.iinfo(NUMPY_TYPES[(type or I32).name])
        if not limits.min <= value <= limits.max:
            raise TypeProblem(f"{value} is beyond the range of {type or I32}")
        return ir.Literal(value, type or I32)
    chosen = _literal_type(value, type, F32, F64, F16)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) and not (isinstance(value, float) and not math.isfinite(value)):
        raise TypeProblem(f"the number is beyond the range of {chosen}")
    if math.isfinite(number) and abs(number) > float(np.finfo(NUMPY_TYPES[chosen.name]).max):
        raise TypeProblem(f"{number} is beyond the range of {chosen}")
    return ir.Literal(number, chosen)


def _literal_type(value: float, wanted: Scalar | None, *possible: Scalar) -> Scalar:
    if wanted is None:
        return possible[0]
    if wanted not in possible:
        number = "; select(c, 1, 0) makes numbers of bools" if wanted == BOOL else ""
        raise TypeProblem(f"{value!r} is no value of the type {wanted}{number}")
    return wanted


def as_expr(value: Any, like: DataType | None = None) -> ir.Expr:
    """A term from a term, a number, a size or a tuple of them; numbers take the type `like` where it is scalar.

    A size is an i32, cast where `like` is of other numbers.

    Raises
    ------
    TypeProblem
        If it is a function, or anything else.
    """
    if isinstance(value, ir.Expr):
        return value
    if isinstance(value, bool | int | float | np.generic):
        scalar = like.scalar if isinstance(like, Vector) else like
        return literal(value, scalar if isinstance(scalar, Scalar) else None)  # pyright: ignore[reportArgumentType]
    if isinstance(value, Nat):
        size, scalar = size_value(value), like.scalar if isinstance(like, Vector) else like
        if value.constant is not None and isinstance(scalar, Scalar) and scalar != BOOL:
            return literal(value.constant, scalar)
        return size if not isinstance(scalar, Scalar) or scalar in (I32, BOOL) else ir.Call(f"to_{scalar}", (size,))
    if isinstance(value, tuple) and len(value) >= 2:
        first, rest = (like.first, like.second) if isinstance(like, Pair) else (None, None)
        tail = value[1:] if len(value) > 2 else value[1]
        return ir.MakePair(as_expr(value[0], first), as_expr(tail, rest))
    if callable(value):
        missing = f"; {value.missing}" if isinstance(value, PartialPattern) else ""
        raise TypeProblem(f"expected a value, got a function{missing}")
    given = "a list; a tuple is (a, b)" if isinstance(value, list) else repr(value)
    raise TypeProblem(f"expected a term, a number or a tuple of them, got {given}")


def checked(term: ir.Expr) -> ir.Expr:
    """The term, after making sure that it has a type."""
    type_of(term)
    return term


def scalar_call(op: str, *arguments: Any) -> ir.Expr:
    """A scalar operation on terms, numbers and sizes; a number or size takes the type of the terms beside it.

    A number with a point takes that of floats alone. Without such, it is an f32, as all numbers and sizes are beside it
    or where the operation is one on floats. One that is cast and that no i32 is has the type of the result at once.
    Of tuples, one is selected, two are compared, or the least of two is taken (`lift_egraph.language.tuples`).
    """
    if OPERATIONS[op].kind == "cast" and isinstance(arguments[0], int) and not _is_i32(arguments[0]):
        return literal(arguments[0], OPERATIONS[op].result)
    values = arguments[1:] if op == "select" else arguments
    types = [type_of(a) for a in values if isinstance(a, ir.Expr)]
    with_point = OPERATIONS[op].kind == "float" or any(isinstance(a, float) for a in values)
    like = next((t for t in types if isinstance(t, Scalar | Vector | Pair)), F32 if with_point else None)
    of_floats = like if isinstance(like, Pair) or (like is not None and scalar_of(like).is_float) else F32
    condition = tuple(as_expr(_no_truth(a), BOOL) for a in arguments[: len(arguments) - len(values)])
    given = condition + tuple(as_expr(a, of_floats if isinstance(a, float) else like) for a in values)
    if len(given) == OPERATIONS[op].arity > 1 and any(isinstance(type_of(a), Pair) for a in given):
        return on_tuples(op, given)
    if op == "select" and isinstance(type_of(given[-1]), Array) and type_of(given[-1]) == type_of(given[1]):
        return select_arrays(*given)
    return checked(ir.Call(op, given))


def _is_i32(number: int) -> bool:
    limits = np.iinfo(np.int32)
    return limits.min <= number <= limits.max


def _no_truth(made: Any) -> Any:
    """What a user's Python made, if it is no truth value that terms were compared for."""
    if isinstance(made, bool):
        hint = f"use equal(a, b) and not_equal(a, b), and literal({made}) for the value"
        raise TypeProblem(f"here is {made}: Python's == and != say whether terms are written alike; {hint}")
    return made


def indexed(array: ir.Expr, index: Any) -> ir.Expr:
    """``array[index]``: for a number or a size `at`, for a computed index what `lookup` reads, which keeps it inside.

    Raises
    ------
    TypeProblem, SizeProblem
        If there is no array, the index is no i32, or a known index is outside.
    """
    if isinstance(index, slice):
        raise TypeProblem("a part of an array is slice_(start, length, xs)")
    if isinstance(index, int | Nat) and not isinstance(index, bool):
        t, place = type_of(array), nat(index)
        if isinstance(t, Array) and place.constant is not None and place.constant < 0:
            last = f"the last element is at {t.size - 1}"
            raise SizeProblem(f"at({place}) is outside an array of length {t.size}; {last}")
        return checked(ir.At(place, array))
    place = as_expr(index)
    if type_of(place) == U8:
        place = ir.Call("to_i32", (place,))
    if type_of(place) != I32:
        cast = "; cast with to_i32" if isinstance(type_of(place), Scalar) else ""
        raise TypeProblem(f"the index of an element is an i32 or a size, got {type_of(place)}{cast}")
    return checked(looked_up_in(array, place))


HIDDEN = "_x"  # the binder of a function that was written without one; printing never writes such a name


# --- functions -------------------------------------------------------------------------------------


class Composable:
    """A function that ``@`` composes: ``(f @ g)(x)`` is ``f(g(x))``."""

    def __matmul__(self, inner: Any) -> Composition:
        return Composition(self, inner)

    def __rmatmul__(self, outer: Any) -> Composition:
        return Composition(outer, self)

    def __call__(self, argument: Any) -> Any:
        return apply(self, as_expr(argument))


class Typed(Composable):
    """A function that knows itself what it is on an argument of a type (`lift_egraph.language.definitions`)."""

    def __call__(self, *arguments: Any) -> ir.Expr:
        return self.applied(as_expr(arguments[0] if len(arguments) == 1 else tuple(arguments)))

    def on(self, argument: DataType, where: str) -> ir.Lambda:
        """The lambda; see `to_function`."""
        raise NotImplementedError

    def applied(self, argument: ir.Expr) -> ir.Expr:
        """What it gives for an argument."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bind:
    """A named binder, and the type that it is annotated with, if any."""

    name: str
    type: DataType | None = None


Names = Union[Bind, tuple["Names", "Names"]]


@dataclass(frozen=True)
class Abstraction(Composable):
    """``fun names => body``: the body is called with the bound variables from left to right."""

    names: Names
    body: Callable[..., Any]


@dataclass(frozen=True)
class Section(Composable):
    """A scalar operation by itself: called on terms it is applied, as an argument it is a function."""

    op: str

    def __call__(self, *arguments: Any) -> ir.Expr:
        return scalar_call(self.op, *arguments)


class Identity(Composable):
    """The function that returns its argument."""

    def __call__(self, argument: Any) -> ir.Expr:
        return as_expr(argument)


@dataclass(frozen=True)
class Composition(Composable):
    """``outer`` after ``inner``."""

    outer: Any
    inner: Any


@dataclass(frozen=True)
class Vectorized(Composable):
    """A function applied lane by lane."""

    width: int
    function: Any


@dataclass(frozen=True)
class Stored(Composable):
    """A function whose result is kept in an address space: ``toLocal(f)`` of the thesis."""

    space: str
    function: Any

    def __call__(self, argument: Any) -> ir.Expr:
        return ir.ToMemory(self.space, apply(self.function, as_expr(argument)))


@dataclass(frozen=True)
class PartialPattern(Composable):
    """A pattern of the language with some of its arguments; the last missing one completes the term.

    `kinds` says what each argument is: ``size`` (`Nat`), ``count`` (int, or `iterate`'s `Nat`), ``function``,
    ``value``, ``index`` (index function), ``boundary`` or ``any`` (a value or a function); `called` what it is called.
    """

    name: str
    kinds: tuple[str, ...]
    make: Callable[..., Any]
    given: tuple[Any, ...] = ()
    called: tuple[str, ...] = ()

    def __call__(self, *arguments: Any) -> Any:
        total = len(self.given) + len(arguments)
        if not arguments or total > len(self.kinds):
            raise TypeProblem(f"{self.takes}, not {total}")
        kinds = self.kinds[len(self.given) : total]
        given = (*self.given, *(_convert(self, k, a) for k, a in zip(kinds, arguments, strict=True)))
        if total < len(self.kinds):
            return replace(self, given=given)
        made = self.make(*given)
        return checked(made) if isinstance(made, ir.Expr) else made

    def spread(self, argument: DataType) -> int:
        """How many arguments a value of the type gives: as a tuple all that are missing, where these are values."""
        missing = self.kinds[len(self.given) :]
        components = tuple_components(argument)
        return len(missing) if set(missing) == {"value"} and len(components) >= len(missing) else 1

    @property
    def missing(self) -> str:
        """What is needed to complete the term, in words."""
        return f"{self.takes}, and has {len(self.given)}"

    @property
    def takes(self) -> str:
        """How many arguments it takes, and what they are called."""
        arguments = f"argument{'s' * (len(self.kinds) != 1)} ({', '.join(self.called or self.kinds)})"
        return f"{self.name} takes {len(self.kinds)} {arguments}"


def _convert(pattern: PartialPattern, kind: str, value: Any) -> Any:
    if kind == "size":
        return _to_size(pattern, value)
    if kind == "count":
        value = nat(value) if pattern.name == "iterate" and isinstance(value, str) else value
        if isinstance(value, Nat):
            if value.constant is None:
                if pattern.name != "iterate":
                    raise TypeProblem(f"{pattern.name} takes a number there, not the size {value}")
                return value
            value = value.constant
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeProblem(f"{pattern.name} takes a number there, got {value!r}")
    if kind == "value" and not isinstance(value, Nat | bool | int | float | np.generic | tuple):
        return as_expr(value)
    if kind == "function" and not is_function(value):
        raise TypeProblem(f"{pattern.name} takes a function there, got {_described(value)}")
    return value


def _to_size(pattern: PartialPattern, value: Any) -> Nat:
    if isinstance(value, bool) or not isinstance(value, Nat | int | str):
        raise TypeProblem(f"{pattern.name} takes a size there, got {_described(value)}")
    return nat(value)


def _described(value: Any) -> str:
    return f"a value of the type {type_of(value)}" if isinstance(value, ir.Expr) else repr(value)


def is_function(value: Any) -> bool:
    """Whether `to_function` accepts the value."""
    return callable(value) or isinstance(value, ir.Lambda | ir.Vectorize)


def to_function(function: Any, argument: DataType, where: str) -> ir.Function:
    """The lambda of a function that is applied to an argument of a type.

    Parameters
    ----------
    function
        See the module's documentation.
    argument
        The type of what it is applied to.
    where
        The pattern that applies it, for messages.

    Raises
    ------
    TypeProblem, SizeProblem
        If the function does not fit the type, or its body is wrong.
    """
    if isinstance(function, ir.Lambda | ir.Vectorize):
        return function
    if isinstance(function, Typed):
        return function.on(argument, where)
    if isinstance(function, Section):
        letters = ("x",) if OPERATIONS[function.op].arity == 1 else ("a", "b", "c")
        names = nested([*map(Bind, letters[: OPERATIONS[function.op].arity])])
        return _bind(Abstraction(names, function), argument, where)
    if isinstance(function, Vectorized):
        width, lane = without_lanes(argument)
        if width != function.width:
            raise TypeProblem(f"{where}: vectorize({function.width}) is applied to {argument}")
        inner = to_function(function.function, lane, f"vectorize({width})")
        if isinstance(inner, ir.Vectorize):
            raise TypeProblem("vectorize does not nest")
        return ir.Vectorize(width, inner)
    if isinstance(function, Composition):
        return _then(to_function(function.inner, argument, where), argument, lambda e: apply(function.outer, e))
    if isinstance(function, Stored):
        stored = to_function(function.function, argument, where)
        return _then(stored, argument, lambda e: ir.ToMemory(function.space, e))
    if isinstance(function, Abstraction):
        return _bind(function, argument, where)
    if isinstance(function, PartialPattern):
        return _bind(Abstraction(_hidden(function.spread(argument)), function), argument, where)
    if isinstance(function, Identity):
        return _bind(Abstraction(Bind(HIDDEN), function), argument, where)
    if least := _least_of_any_number(function):
        if (count := len(tuple_components(argument))) < least:
            name = function.__name__.rstrip("_")
            raise TypeProblem(f"{where}: {name} takes {least} values or more, but is given {argument}")
        return _bind(Abstraction(_hidden(count), function), argument, where)
    if callable(function):
        names = nested([*map(Bind, parameter_names(function))])
        return _bind(Abstraction(names, lambda *variables: _no_truth(function(*variables))), argument, where)
    raise TypeProblem(f"{where} takes a function, got {_described(function)}")


def apply(function: Any, argument: ir.Expr) -> ir.Expr:
    """A function applied to a term: patterns directly, lambdas by a ``let`` that keeps the argument shared."""
    if isinstance(function, Composition):
        return apply(function.outer, apply(function.inner, argument))
    one_argument = isinstance(function, PartialPattern) and function.spread(type_of(argument)) == 1
    if one_argument or isinstance(function, Identity | Stored | Typed):
        return as_expr(function(argument))
    if isinstance(function, Section) and OPERATIONS[function.op].arity == 1:
        return function(argument)
    return checked(ir.Apply(to_function(function, type_of(argument), "application"), argument))


def _then(function: ir.Function, argument: DataType, step: Callable[[ir.Expr], ir.Expr]) -> ir.Lambda:
    if isinstance(function, ir.Lambda):
        with opened(v.name for v in ir.bound_variables(function.binder)):
            return ir.Lambda(function.binder, checked(step(function.body)))
    return _bind(Abstraction(Bind(HIDDEN), lambda x: step(checked(ir.Apply(function, x)))), argument, "composition")


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters of a Python function, but those with a default.

    Raises
    ------
    TypeProblem
        If they are unknown, of any number, or none.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        raise TypeProblem(f"the parameters of {function!r} are unknown; wrap it in a lambda") from None
    free = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not free or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise TypeProblem("a function in a term takes one or more named parameters")
    return tuple(p.name for p in free)


def _least_of_any_number(function: Any) -> int:
    """How many values a function such as `build.zip_` takes at least that takes any number of them, else 0."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()] if inspect.isfunction(function) else []
    return len(kinds) - 1 if kinds and kinds[-1] is inspect.Parameter.VAR_POSITIONAL else 0


def _hidden(count: int) -> Names:
    return nested([Bind(HIDDEN)] * count)


def nested(entries: Sequence[Names]) -> Names:
    """The names in pairs, as tuples are."""
    return entries[0] if len(entries) == 1 else (entries[0], nested(entries[1:]))


def bound_names(names: Names) -> tuple[str, ...]:
    """The names that are bound, from left to right."""
    return (names.name,) if isinstance(names, Bind) else (*bound_names(names[0]), *bound_names(names[1]))


def _bind(function: Abstraction, argument: DataType, where: str) -> ir.Lambda:
    taken = set(scope().names | RESERVED)
    given = f"{where}: the function takes {written(function.names)}, but is given {argument}"
    pattern = _bound(function.names, argument, where, taken, given)
    variables = ir.bound_variables(pattern)
    with opened(v.name for v in variables):
        return ir.Lambda(pattern, checked(as_expr(function.body(*variables))))


def written(names: Names) -> str:
    """The parameters as the text has them: ``(a, b, c)``."""
    if isinstance(names, Bind):
        return names.name
    parts: list[str] = []
    while not isinstance(names, Bind):
        parts.append(written(names[0]))
        names = names[1]
    return f"({', '.join([*parts, names.name])})"


def _bound(names: Names, t: DataType, where: str, taken: set[str], given: str) -> ir.Binder:
    if isinstance(names, Bind):
        if names.type is not None and names.type != t:
            raise TypeProblem(f"{where}: {names.name} is declared as {names.type}, but is given {t}")
        return ir.Var(fresh_name(names.name, taken), t)
    if not isinstance(t, Pair):
        raise TypeProblem(given)
    first = _bound(names[0], t.first, where, taken, given)
    return ir.PairBinder(first, _bound(names[1], t.second, where, taken, given))


# fmt: off
KEYWORDS = frozenset((
    "program", "function", "alternative", "where", "fun", "let", "in", "if", "then", "else", "true", "false",
    "inf", "inf16", "inf64",
))
PATTERN_NAMES = frozenset((
    *(node.signature.name for node in ir.PATTERNS if node not in (ir.MapLevel, ir.ToMemory)),
    "mapGlb", "mapWrg", "mapLcl", "mapSeq", *map(ir.memory_name, ir.SPACES),
    "map2d", "slide2d", "pad2d", "zip2d", "map3d", "slide3d", "pad3d", "zip3d", "get", "rest", "vectorize", "id",
))
# fmt: on
RESERVED = KEYWORDS | PATTERN_NAMES | OPERATIONS.keys()
