"""Programs that only add and multiply floats, with i32 in place of f32.

They compute polynomials of their inputs, and so over whole numbers that wrap: exactly, in every order. A fraction
among their numbers stands for one more input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import F32, I32, DataType, leaves, scalar_of
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value, leaves_of, map_leaves

ADDED, KEPT, MULTIPLIED = ("add", "sub"), ("neg", "select"), ("mul",)
HIGHEST = 1000  # degrees above it count as this
FEW_BITS = 1 << 24  # floats that are whole numbers below it are such numbers


@dataclass(frozen=True)
class Degree:
    """Of polynomials: in all inputs together, and in each element at the most."""

    total: int
    single: int

    def __or__(self, other: Degree) -> Degree:
        return Degree(max(self.total, other.total), max(self.single, other.single))


def is_polynomial(term: ir.Part) -> bool:
    """Whether a term computes polynomials of its inputs of f32, if any, and decides nothing by them.

    >>> from lift_egraph.language.syntax import parse_program
    >>> [is_polynomial(parse_program(f"program p(x: [f32]8) = map(fun a => {e}, x)").body) for e in ("a * a", "a / a")]
    [True, False]
    """
    return all(map(_is_fit, ir.subterms(term)))


def reads_floats(program: ir.Program) -> bool:
    """Whether a program has inputs of f32."""
    return any(map(_has_floats, program.inputs))


def _has_floats(given: ir.Input) -> bool:
    return any(scalar_of(leaf) == F32 for _, _, leaf in leaves(given.type))


def _is_fit(term: ir.Part) -> bool:
    if isinstance(term, ir.Call):
        result, *given = (scalar_of(type_of(e)) for e in (term, *term.arguments))
        if not any(t.is_float for t in (result, *given)):
            return True
        of_integers = term.op == "to_f32" and given[0].is_integer
        return result == F32 and (term.op in (*ADDED, *KEPT, *MULTIPLIED) or of_integers)
    return not isinstance(term, ir.Literal) or not term.type.is_float or term.type == F32


def fractions_in(term: ir.Part) -> frozenset[float]:
    """The numbers of f32 in a term that are no whole ones."""
    return frozenset(float(t.value) for t in _floats(term) if _whole(t) is None)


def _floats(term: ir.Part) -> Iterator[ir.Literal]:
    return (t for t in ir.subterms(term) if isinstance(t, ir.Literal) and t.type == F32)


def _whole(number: ir.Literal) -> int | None:
    value = float(number.value)
    return int(value) if value.is_integer() and abs(value) < FEW_BITS else None


def over_integers(program: ir.Program, values: Mapping[float, int]) -> ir.Program:
    """A program that `is_polynomial` with i32 for f32, and with whole numbers for its fractions."""

    def number(given: ir.Literal) -> ir.Expr:
        whole = _whole(given)
        return ir.Literal(values[float(given.value)] if whole is None else whole, I32)

    def call(given: ir.Call, arguments: tuple[Any, ...]) -> ir.Expr:
        return ir.Call("to_i32" if given.op == "to_f32" else given.op, arguments)

    return _translated(program, number, call)


def random_integers(program: ir.Program, given: Mapping[str, Value], seed: int) -> dict[str, Value]:
    """Inputs for `over_integers` of a program: any numbers for those of f32; others, which may be indices, as given."""
    generator = np.random.default_rng(seed)

    def drawn(leaf: np.ndarray) -> np.ndarray:
        if np.asarray(leaf).dtype != np.float32:
            return leaf
        return generator.integers(-(2**31), 2**31, np.shape(leaf), np.int32)

    return {i.name: map_leaves(drawn, given[i.name]) for i in program.inputs}


def degree_of(program: ir.Program, given: Mapping[str, Value]) -> Degree:
    """The degree of what a program that `is_polynomial` computes; `given` are inputs at its sizes.

    The degree of a sum is the larger one, that of a product the sum: the program is run on these.
    """
    names = [i.name for i in program.inputs if _has_floats(i)]

    def degree(chosen: frozenset[str], of_fraction: int) -> int:
        inputs = {
            i.name: map_leaves(lambda leaf, on=i.name in chosen: _ones(leaf, on), given[i.name]) for i in program.inputs
        }
        found = evaluate(_degrees(program, of_fraction).body, inputs)
        return max((int(leaf.max(initial=0)) for leaf in leaves_of(found) if leaf.dtype.kind == "i"), default=0)

    fractions = fractions_in(program.body)
    alone = [degree(frozenset({name}), 0) for name in names] + ([degree(frozenset(), 1)] if fractions else [])
    return Degree(degree(frozenset(names), 1), max(alone, default=0))


def _ones(leaf: np.ndarray, chosen: bool) -> np.ndarray:
    leaf = np.asarray(leaf)
    return np.full(leaf.shape, int(chosen), np.int32) if leaf.dtype == np.float32 else leaf


def _degrees(program: ir.Program, of_fraction: int) -> ir.Program:
    """The program with degrees in place of values."""
    nothing = ir.Literal(0, I32)

    def number(given: ir.Literal) -> ir.Expr:
        return ir.Literal(of_fraction, I32) if _whole(given) is None else nothing

    def call(given: ir.Call, arguments: tuple[Any, ...]) -> ir.Expr:
        if not scalar_of(type_of(given)).is_float:
            return ir.Call(given.op, arguments)
        if given.op in ADDED:
            return ir.Call("max", arguments)
        if given.op in MULTIPLIED:
            return ir.Call("min", (ir.Call("add", arguments), ir.Literal(HIGHEST, I32)))
        if given.op == "to_f32":
            return ir.Call("mul", (ir.Call("to_i32", arguments), nothing))
        return arguments[0] if given.op == "neg" else ir.Call(given.op, arguments)

    return _translated(program, number, call)


def _translated(
    program: ir.Program, number: Callable[[ir.Literal], ir.Expr], call: Callable[[ir.Call, tuple[Any, ...]], ir.Expr]
) -> ir.Program:
    """A program with i32 for f32, other numbers and other calls."""
    known: dict[int, tuple[Any, Any]] = {}

    def change(part: Any) -> Any:
        if part == F32:
            return I32
        if isinstance(part, tuple):
            return tuple(map(change, part))
        if not isinstance(part, ir.Expr | ir.Lambda | ir.Vectorize | ir.PairBinder | DataType):
            return part
        if id(part) not in known:
            known[id(part)] = part, made(part)
        return known[id(part)][1]

    def made(part: Any) -> Any:
        if isinstance(part, ir.Literal) and part.type == F32:
            return number(part)
        if isinstance(part, ir.Call):
            return call(part, change(part.arguments))
        assert is_dataclass(part)
        return replace(part, **{f.name: change(getattr(part, f.name)) for f in fields(part) if f.init})  # pyright: ignore

    return replace(program, inputs=change(program.inputs), body=change(program.body), ranges=(), laws=())
