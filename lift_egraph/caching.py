"""What is computed once: attributes, also where several threads share a value, and functions of one large object.

`functools.cached_property` of Python 3.11 holds a lock of its class meanwhile. Terms are computed from their parts, of
other classes: two threads that begin with terms of two classes, each a part of the other's, wait for each other for
ever. Here two threads may compute the same attribute twice, as with Python 3.12, and get the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import fields
from functools import cache, wraps
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")
K = TypeVar("K")


class cached_property(Generic[T]):
    """A method as an attribute that is kept in the object's ``__dict__`` once it is computed, without a lock."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, "", compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        made = instance.__dict__[self.name] = self.compute(instance)
        return made


def hashed_once(made: type[T]) -> type[T]:
    """A frozen dataclass whose hash is computed once, and leaves the process with no value of it.

    Hashes of strings differ from process to process.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @hashed_once
    ... @dataclass(frozen=True)
    ... class Word:
    ...     letters: str
    >>> word = Word("abc")
    >>> hash(word) == hash(Word("abc")), word.__getstate__()
    (True, {'letters': 'abc'})
    """
    cached = cached_property(made.__hash__)
    cached.__set_name__(made, "_hash")
    names = [field.name for field in fields(made)]  # pyright: ignore[reportArgumentType]
    made._hash = cached  # type: ignore[attr-defined]
    made.__hash__ = lambda self: self._hash  # type: ignore[method-assign]
    made.__getstate__ = lambda self: {name: getattr(self, name) for name in names}  # type: ignore[attr-defined]
    return made


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass."""
    return tuple(field.name for field in fields(kind))


def kept_with(compute: Callable[[K], T]) -> Callable[[K], T]:
    """A function of one object that is computed once for this very object, and forgotten with it.

    For objects that take long to compare, such as a kernel's tree. All who ask get the same result.

    Examples
    --------
    >>> class Text(str):
    ...     pass
    >>> @kept_with
    ... def length(text: Text) -> int:
    ...     print("computed")
    ...     return len(text)
    >>> one = Text("abc")
    >>> length(one), length(one)
    computed
    (3, 3)
    """
    known: dict[int, tuple[weakref.ref[K], T]] = {}

    @wraps(compute)
    def found(of: K) -> T:
        number = id(of)
        kept = known.get(number)
        if kept is None or kept[0]() is not of:
            made = compute(of)
            kept = known[number] = weakref.ref(of, lambda _: known.pop(number, None)), made
        return kept[1]

    return found
