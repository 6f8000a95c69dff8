"""Programs of the corpus with some of their sizes open: arguments of the kernels instead of constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.api import LiftError, parse_program, print_program, type_of
from lift_egraph.language import ir
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import Array, DataType, Pair


def opened(program: ir.Program) -> Iterator[tuple[ir.Program, dict[str, int]]]:
    """A program with open sizes, and their values in the given one: first with all lengths open, then with each.

    Equal lengths of inputs have one name. Sizes that a pattern needs as a number stay numbers.
    """
    lengths = sorted({n for i in program.inputs for n in _lengths(i.type)})
    for chosen in (lengths, *([n] for n in reversed(lengths) if len(lengths) > 1)):
        names = {n: f"S{n}" for n in chosen}
        inputs = tuple(ir.Input(i.name, _renamed(i.type, names)) for i in program.inputs)
        sizes = {name: n for n, name in names.items()}
        try:
            made = parse_program(print_program(replace(program, inputs=inputs, sizes=tuple(sizes.items()))))
            type_of(made.body)
        except LiftError:
            continue
        if chosen:
            yield made, sizes


def _lengths(t: DataType) -> list[int]:
    if isinstance(t, Array):
        return [n for n in [t.size.constant] if n is not None] + _lengths(t.element)
    return [*_lengths(t.first), *_lengths(t.second)] if isinstance(t, Pair) else []


def _renamed(t: DataType, names: dict[int, str]) -> DataType:
    if isinstance(t, Array):
        size: Nat = t.size
        if size.constant in names:
            size = nat(names[size.constant])
        return Array(size, _renamed(t.element, names))
    return Pair(_renamed(t.first, names), _renamed(t.second, names)) if isinstance(t, Pair) else t
