"""Descriptions of devices in TOML files: the built-in ones in this folder, and those of users."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from lift_egraph.codegen.devices.description import Cpu, Device, Gpu
from lift_egraph.codegen.devices.levels import ORDER, Level, why_not
from lift_egraph.errors import DeviceProblem, InputProblem
from lift_egraph.files import read_text

FOLDER = Path(__file__).parent
_MAY_BE_ZERO = ("unroll_by", "unroll_long", "launch_overhead", "group_ns", "barrier_cycles")


def names() -> tuple[str, ...]:
    """The names of the built-in descriptions.

    >>> names()
    ('cpu', 'generic', 'intel', 'nvidia', 'pocl')
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def built_in(name: str) -> Device:
    """A built-in description.

    >>> built_in("nvidia").platform
    'NVIDIA CUDA'
    """
    return load_device(FOLDER / f"{name}.toml")


def load_device(path: Path | str) -> Device:
    """The description of a device in a TOML file; the ``README.md`` beside the built-in ones shows how to write it.

    Raises
    ------
    DeviceProblem
        If the file cannot be read, is not TOML, or has a key or value that no device has; the message names it.
    """
    path = Path(path)
    try:
        table = tomllib.loads(read_text(path))
    except InputProblem as problem:
        raise DeviceProblem(str(problem)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise DeviceProblem(f"{path} is not TOML: {problem}") from None
    try:
        return _device(re.sub(r"[^\w.+-]", "_", path.stem), table)  # a kernel's text mentions the name
    except _Wrong as problem:
        raise DeviceProblem(f"{path}: {problem}") from None


class _Wrong(Exception):
    """What is wrong in a file, and at which key."""


def _close(name: str, known: Iterable[str]) -> str:
    from lift_egraph.language.grammar import suggestion  # it builds the parser of programs

    return suggestion(name, known)


def _device(name: str, table: dict[str, Any]) -> Device:
    like, variants = table.pop("like", None), table.pop("variants", [])
    base = None
    if like is not None:
        if like not in names():
            close = _close(like, names()) if isinstance(like, str) else ""
            raise _Wrong(f"like: there is no description {like!r}{close}; there are {', '.join(names())}")
        base = built_in(like)
    if not isinstance(variants, list) or not all(isinstance(v, dict) for v in variants):
        raise _Wrong("variants: expected tables, each under [[variants]]")
    device = _possible(_made(Device, table, base, "", name=name, variants=()), "")
    places = [f"variants[{number}]." for number, _ in enumerate(variants, 1)]
    own = [_possible(_made(Device, v, device, place), place) for place, v in zip(places, variants, strict=True)]
    rest = {key: value for key, value in table.items() if key != "named"}
    inherited = [_possible(_made(Device, rest, v, "", name=name), "") for v in base.variants] if base else []
    return replace(device, variants=(*own, *inherited))


def _possible(device: Device, place: str) -> Device:
    """The device, if its levels fit its limits."""
    figures = device.throughput
    warp = figures.warp if isinstance(figures, Gpu) else None
    problem = why_not(device.levels, device.max_work_group, warp, device.cache, device.local_memory)
    if problem:
        raise _Wrong(place + problem)
    if device.emission.exchange != "none" and not device.sub_group:
        raise _Wrong(f"{place}emission.exchange: there is no level sub_group, which says among how many")
    return device


def _levels(tables: Any, base: tuple[Level, ...] | None, place: str) -> tuple[Level, ...]:
    """The levels of a device; what a table does not say is as in the level of the same name in `base`."""
    if not (isinstance(tables, list) and tables and all(isinstance(table, dict) for table in tables)):
        raise _Wrong(f"{place}levels: expected tables, each under [[levels]], got {tables!r}")
    found = {level.name: level for level in base or ()}
    for number, table in enumerate(tables, 1):
        here, name = f"{place}levels[{number}].", table.get("name")
        if name not in ORDER:
            raise _Wrong(f"{here}name: expected {' or '.join(map(repr, ORDER))}, got {name!r}")
        rest = {key: value for key, value in table.items() if key != "name"}
        found[name] = _made(Level, rest, found.get(name), here, name=name)
    return tuple(found[name] for name in ORDER if name in found)


def _made(cls: Any, table: dict[str, Any], base: Any, place: str, **given: Any) -> Any:
    """A dataclass from a table; what that does not say is as in `base`, or by default."""
    known = {f.name: f for f in fields(cls) if f.name not in ("name", "variants")}
    types = get_type_hints(cls)
    if cls is Device:
        kind = table.get("kind", base and base.kind)
        if base and kind != base.kind:
            raise _Wrong(f"{place}kind: what it is based on is a {base.kind}, got {kind!r}")
        types["throughput"] = Gpu if kind == "gpu" else Cpu
    for key, value in table.items():
        if key not in known:
            raise _Wrong(f"{place}{key}: there is no such key{_close(key, known)}")
        given[key] = _value(types[key], key, value, getattr(base, key, None), place)
    if base is not None:
        return replace(base, **given)
    missing = [n for n, f in known.items() if n not in given and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        hint = 'say it, or base the file on another description: like = "cpu"'
        raise _Wrong(f"{', '.join(place + n for n in missing)}: missing; {hint}")
    return cls(**given)


def _value(expected: Any, key: str, value: Any, base: Any, place: str) -> Any:
    """A value as a field of the expected type holds it."""
    if expected == tuple[Level, ...]:
        return _levels(value, base, place)
    if is_dataclass(expected):
        if isinstance(value, dict):
            return _made(expected, value, base, f"{place}{key}.")
        right, wanted = False, f"a table, [{key}]"
    elif expected in (int, float):
        least = "of at least 0" if key in _MAY_BE_ZERO else "above 0"
        is_number = type(value) is int or (type(value) is float and expected is float)
        right = is_number and (0 < value < 2**63 or (value == 0 and key in _MAY_BE_ZERO))
        wanted = f"a {'whole ' if expected is int else ''}number {least} and below 2^63"
    elif expected in (tuple[float, ...], tuple[int, ...]):
        kinds = (int,) if expected == tuple[int, ...] else (int, float)
        right = isinstance(value, list) and bool(value) and all(type(v) in kinds and 0 < v < 2**63 for v in value)
        wanted = f"a list of {'whole ' * (float not in kinds)}numbers above 0 and below 2^63"
        value = tuple(value) if right else value
    elif expected == tuple[str, ...]:
        right, wanted = isinstance(value, list) and all(isinstance(v, str) for v in value), "a list of texts"
        value = tuple(value) if right else value
    elif expected in (bool, str):
        right, wanted = type(value) is expected, "true or false" if expected is bool else "a text"
    else:
        right, wanted = value in get_args(expected), " or ".join(map(repr, get_args(expected)))
    if not right:
        raise _Wrong(f"{place}{key}: expected {wanted}, got {value!r}")
    return value
