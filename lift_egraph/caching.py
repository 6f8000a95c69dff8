"""Attributes that are computed once, also where several threads share a value.

`functools.cached_property` of Python 3.11 holds a lock of its class meanwhile. Terms are computed from their parts, of
other classes: two threads that begin with terms of two classes, each a part of the other's, wait for each other for
ever. Here two threads may compute the same attribute twice, as with Python 3.12, and get the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


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
