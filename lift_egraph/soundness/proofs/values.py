"""What patterns of rules denote, when nothing is known of the terms in them: arrays as functions of indices.

A value has the form that its type says: an array is a function of an index, a pair is two values, a vector is a
function of a lane, which stands below all arrays and pairs. At the leaves stand unknown values: a `Neutral` is a head,
such as a variable of the rule in its scope, and the way to a part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from lift_egraph.egraph.rule_forms import Pattern

Int = Any  # an integer of z3


# --- types ---


@dataclass(frozen=True)
class ArrayType:
    size: Int
    element: Type


@dataclass(frozen=True)
class PairType:
    first: Type
    second: Type


@dataclass(frozen=True)
class LanesType:
    """Vectors of a scalar, or of a type that is not known."""

    width: Int
    element: LeafType


@dataclass(frozen=True)
class LeafType:
    """A type of which nothing is known, or a scalar."""

    name: str


Type = Union[ArrayType, PairType, LanesType, LeafType]


# --- values ---


@dataclass(frozen=True, eq=False)
class Arr:
    """An array; `origin` is the unknown value that it is, if it is one."""

    size: Int
    at: Callable[[Int], Value]
    origin: Neutral | None = None


@dataclass(frozen=True, eq=False)
class Lanes:
    width: Int
    lane: Callable[[Int], Value]


@dataclass(frozen=True, eq=False)
class Pair:
    first: Value
    second: Value


@dataclass(frozen=True, eq=False)
class Cond:
    """One value where a condition on integers holds, and another elsewhere."""

    condition: Any
    yes: Value
    no: Value


@dataclass(frozen=True, eq=False)
class Number:
    """An integer as a value of a program."""

    value: Int


@dataclass(frozen=True, eq=False)
class Neutral:
    """A part of what a head stands for; a way is of ``("at", i)``, ``("component", 0)`` and ``("lane", j)``."""

    head: Head
    way: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Function:
    """A function; that of an operator takes a pair."""

    domain: Type
    apply: Callable[[Value], Value]


Value = Union[Arr, Lanes, Pair, Cond, Number, Neutral]

# --- heads ---

Scope = tuple[tuple[Pattern, Value], ...]  # what names stand for, the innermost last


@dataclass(frozen=True, eq=False)
class Unknown:
    """A variable of the rule in its scope, applied to arguments if it is a function."""

    name: str
    scope: Scope
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Made:
    """Something new: equal to itself only."""

    name: str


@dataclass(frozen=True, eq=False)
class Call:
    """A scalar operation, or a literal."""

    name: Any
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Loop:
    """A fold from left to right or a scan; `kind` says which."""

    kind: str
    step: Function
    initial: Value
    array: Arr
    state: Type
    operator: Pattern | None = None


@dataclass(frozen=True, eq=False)
class Repeat:
    """A function applied a number of times."""

    times: Int
    step: Function
    start: Value


Head = Union[Unknown, Made, Call, Loop, Repeat]


def reflected(neutral: Neutral, t: Type) -> Value:
    """An unknown value in the form that its type says."""
    head, way = neutral.head, neutral.way
    match t:
        case ArrayType(size, element):
            return Arr(size, lambda i: reflected(Neutral(head, (*way, ("at", i))), element), neutral)
        case PairType(first, second):
            sides = (first, 0), (second, 1)
            return Pair(*(reflected(Neutral(head, (*way, ("component", k))), s) for s, k in sides))
        case LanesType(width, _):
            return Lanes(width, lambda j: Neutral(head, (*way, ("lane", j))))
    return neutral


def at(array: Value, index: Int) -> Value:
    """An element."""
    if isinstance(array, Cond):
        return Cond(array.condition, at(array.yes, index), at(array.no, index))
    assert isinstance(array, Arr), array
    return array.at(index)


def size_of(array: Value) -> Int:
    """The length; both sides of a condition have the same."""
    while isinstance(array, Cond):
        array = array.yes
    assert isinstance(array, Arr), array
    return array.size


def component(pair: Value, number: int) -> Value:
    """The first or the second."""
    if isinstance(pair, Cond):
        return Cond(pair.condition, component(pair.yes, number), component(pair.no, number))
    assert isinstance(pair, Pair), pair
    return pair.second if number else pair.first


def lane(value: Value, number: Int) -> Value:
    """The value with one lane of each vector."""
    match value:
        case Arr(size, element):
            return Arr(size, lambda i: lane(element(i), number))
        case Pair(first, second):
            return Pair(lane(first, number), lane(second, number))
        case Cond(condition, yes, no):
            return Cond(condition, lane(yes, number), lane(no, number))
        case Lanes():
            return value.lane(number)
    raise TypeError("a value without lanes")


def width_of(value: Value, zero: Int) -> Int:
    """How many lanes the vectors in a value have."""
    match value:
        case Arr():
            return width_of(value.at(zero), zero)
        case Pair():
            return width_of(value.first, zero)
        case Cond():
            return width_of(value.yes, zero)
        case Lanes():
            return value.width
    raise TypeError("a value without lanes")


def packed(width: Int, values: Callable[[Int], Value], zero: Int) -> Value:
    """The values of all lanes as one, with its vectors below all arrays and pairs."""
    first = values(zero)
    while isinstance(first, Cond):
        first = first.yes
    match first:
        case Arr(size):
            return Arr(size, lambda i: packed(width, lambda j: at(values(j), i), zero))
        case Pair():
            return Pair(*(packed(width, lambda j, k=k: component(values(j), k), zero) for k in (0, 1)))
    return Lanes(width, values)
