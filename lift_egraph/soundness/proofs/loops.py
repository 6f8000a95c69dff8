"""Loops as other loops: an element of a scan as a fold, one array after another as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lift_egraph.soundness.proofs.values import Arr, Cond, Loop, Neutral, Value, at, component, lane


def prefix(scan: Loop, index: Any) -> Loop:
    """An element of a scan as a fold of what stands before it."""
    count = index + 1 if scan.kind == "scan" else index
    return replace(scan, kind="fold", array=Arr(count, scan.array.at))


def as_fold(value: Value) -> Loop | None:
    """The fold that a value is."""
    head = whole(value)
    if isinstance(head, Loop) and head.kind == "fold":
        return head
    if isinstance(value, Arr):
        value = value.origin or value
    if isinstance(value, Neutral) and isinstance(value.head, Loop) and value.head.kind != "fold":
        (kind, index), *rest = value.way
        return None if rest or kind != "at" else prefix(value.head, index)
    return None


def concatenated(a: Arr, b: Arr) -> Arr:
    """One array after another."""
    return Arr(a.size + b.size, lambda i: Cond(i < a.size, a.at(i), b.at(i - a.size)))


def whole(value: Value) -> Any:
    """The head of an unknown value, if that is all of it."""
    if isinstance(value, Arr):
        value = value.origin or value
    return value.head if isinstance(value, Neutral) and not value.way else None


def followed(value: Value, way: Any) -> Value:
    """The part of a value to which a way leads."""
    for kind, i in way:
        value = at(value, i) if kind == "at" else component(value, i) if kind == "component" else lane(value, i)
    return value


def integers_in(e: Any) -> Iterator[Any]:
    """The integers in a formula."""
    if not e.children():
        yield e
    for c in e.children():
        yield from integers_in(c)
