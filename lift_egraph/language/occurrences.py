"""Where a function stands in a term: its inputs for parts of that, and its sizes for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import sizes_in_types
from lift_egraph.language.nat import Nat, NatLike
from lift_egraph.language.sizes import size_variables, solved, substitute_nats

Sizes = tuple[tuple[str, int], ...]


def stands_at(function: ir.Program, term: ir.Expr) -> Sizes | None:
    """The sizes at which a term of concrete sizes is what a function computes; None if it is not."""
    return _Match(function).sizes_of(term)


def parts_of(function: ir.Program, term: ir.Expr) -> dict[str, ir.Expr] | None:
    """What the inputs of a function stand for in a term that is what it computes; None if it is not."""
    found = _Match(function)
    return found.holes if found.sizes_of(term) is not None else None


def keeps_alternatives(before: ir.Program, after: ir.Program, sizes: Mapping[str, int]) -> bool:
    """Whether the functions that alternatives are for still stand in a program, at the same sizes, after a change."""
    if before is after or not before.alternatives:
        return True
    values: dict[str, NatLike] = {**dict(before.sizes), **sizes}
    if not values.keys() >= {*size_variables(before)}:
        return False
    return _standing(before, values) <= _standing(after, values)


def _standing(program: ir.Program, values: dict[str, NatLike]) -> set[tuple[str, Sizes]]:
    body = substitute_nats(program.body, values)
    parts = [part for part in ir.subterms(body) if isinstance(part, ir.Expr)]
    found = ((a.name, stands_at(a.of, part)) for a in program.alternatives for part in parts)
    return {(name, at) for name, at in found if at is not None}


class _Match:
    """A function with open sizes, held against a term: its inputs stand for parts of that."""

    def __init__(self, of: ir.Program) -> None:
        self.of = of
        self.fixed = {name for name, _ in of.ranges}
        self.holes: dict[str, ir.Expr] = {}
        self.sizes: dict[str, int] = {}

    def sizes_of(self, term: ir.Expr) -> Sizes | None:
        if not self.part(self.of.body, term):
            return None
        bound = {v for t in ir.subterms(term) if isinstance(t, ir.Lambda) for v in ir.bound_variables(t.binder)}
        if any(not ir.free_variables(hole).isdisjoint(bound) for hole in self.holes.values()):
            return None
        try:
            body = substitute_nats(self.of.body, dict(self.sizes))
            inputs = substitute_nats(self.of.inputs, dict(self.sizes))
            given = {i: self.holes[i.name] for i in inputs if i.name in self.holes}
            fits = all(type_of(hole) == i.type for i, hole in given.items())
            same = fits and alpha_equal(with_parts(body, given), term)
        except LiftError:
            return None
        return tuple(sorted(self.sizes.items())) if same else None

    def part(self, pattern: Any, term: Any) -> bool:
        if isinstance(pattern, ir.Input):
            if pattern.name in self.fixed and pattern.name != getattr(term, "name", None):
                return False
            for wanted, got in sizes_in_types(pattern.type, type_of(term)):
                self.size(wanted, got)
            known = self.holes.setdefault(pattern.name, term)
            return known == term
        if isinstance(pattern, ir.Var):
            return isinstance(term, ir.Var)
        if isinstance(pattern, Nat):
            return isinstance(term, Nat) and self.size(pattern, term)
        if isinstance(pattern, tuple):
            return isinstance(term, tuple) and len(pattern) == len(term) and all(map(self.part, pattern, term))
        if isinstance(pattern, ir.SizeLiteral):
            return isinstance(term, ir.Literal)
        if not isinstance(pattern, ir.Expr | ir.Lambda | ir.Vectorize):
            return True  # compared as a whole in the end
        if type(pattern) is not type(term):
            return False
        names = (name for name in vars(type(pattern))["__dataclass_fields__"] if name != "binder")
        return all(self.part(getattr(pattern, name), getattr(term, name)) for name in names)

    def size(self, wanted: Nat, given: Nat) -> bool:
        number = given.constant
        if number is None:
            return False
        if (found := solved(wanted, given)) is not None:
            name, value = found
            return value.constant is not None and self.sizes.setdefault(name, value.constant) == value.constant
        return wanted.constant in (None, number)
