"""Evaluates the C text of index expressions as a C compiler would, for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lift_egraph.codegen.text.scalar_text import index_helpers


@dataclass(frozen=True)
class CInt:
    """An ``int``, or a ``long``: overflow is an error, division goes toward zero."""

    value: int
    bits: int = 32

    def __post_init__(self) -> None:
        assert -(1 << (self.bits - 1)) <= self.value < 1 << (self.bits - 1), f"overflow: {self.value}"

    def _with(self, other: object, value) -> CInt:
        right = other if isinstance(other, CInt) else CInt(int(other))  # pyright: ignore[reportArgumentType]
        return CInt(value(self.value, right.value), max(self.bits, right.bits))

    def __add__(self, other: object) -> CInt:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: object) -> CInt:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: object) -> CInt:
        return self._with(other, lambda a, b: a * b)

    def __neg__(self) -> CInt:
        return CInt(-self.value, self.bits)

    def __floordiv__(self, other: object) -> CInt:
        return self._with(other, _quotient)

    def __mod__(self, other: object) -> CInt:
        return self._with(other, lambda a, b: a - b * _quotient(a, b))

    def __lt__(self, other: object) -> bool:
        return self._with(other, lambda a, b: int(a < b)).value == 1

    def __ge__(self, other: object) -> bool:
        return not self < other


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _helper(definition: str):
    """A helper function of the printer, read from its C text."""
    matched = re.fullmatch(r"static inline (int|long) (\w+)\(\1 a, \1 b\) \{ return (.*); \}", definition)
    assert matched is not None, definition
    kind, name, body = matched.groups()
    if "?" in body:
        test, chosen, other = re.fullmatch(r"(.*) \? (.*) : (.*)", body).groups()  # pyright: ignore
        body = f"({chosen}) if ({test}) else ({other})"
    body = re.sub(r"\((a % b < 0)\)", r"int(\1)", body)
    code = re.sub(r"\b(\d+)\b", r"C(\1)", body).replace("/", "//")
    bits = 64 if kind == "long" else 32

    def call(a: CInt, b: CInt) -> CInt:
        return eval(code, {"a": CInt(a.value, bits), "b": CInt(b.value, bits), "C": CInt, "int": int})

    return name, call


def evaluate_c(text: str, helpers: set[str], values: Mapping[str, int]) -> int:
    """The value of the text of an index expression."""
    names = {name: CInt(value) for name, value in values.items()}
    functions = dict(map(_helper, index_helpers(helpers)))
    code = re.sub(r"\(long\)(\w+)|\b(\d+)(L?)\b", _literal, text).replace("/", "//")
    return eval(code, {**names, **functions, "long": lambda x: CInt(x.value, 64), "C": CInt}).value


def _literal(found: re.Match[str]) -> str:
    name, number, suffix = found.groups()
    return f"long({name})" if name else f"C({number}, {64 if suffix else 32})"
