"""What the names in a text mean where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import Let
from lift_egraph.language.check import type_of
from lift_egraph.language.grammar import Misplaced, Place, Tree, suggestion
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import I32, size_names
from lift_egraph.language.unapplied import Met


@dataclass(frozen=True)
class Scope:
    """What the names in the text mean; with `any_size`, unknown names in sizes are sizes too.

    `lets` takes what local functions of arrays are applied to in a body.
    """

    values: Mapping[str, Any]  # terms, and local functions
    sizes: frozenset[str]
    any_size: bool = False
    met: Met = field(default_factory=Met)
    lets: list[Let] | None = None

    def size(self, name: str, place: Place) -> Nat:
        if isinstance(meant := self.values.get(name), Nat):
            return meant
        if not self.any_size and name not in self.sizes:
            value, meant = self.values.get(name), "is no known size"
            if name in self.values:
                kind = f" of the type {type_of(value)}" if isinstance(value, ir.Expr) and type_of(value) != I32 else ""
                before = f"known before: where {name} = ?" if isinstance(value, ir.Input) else "known before"
                place_hint = "" if kind else f", which is {before}; an element at a computed place is xs[i]"
                meant = f"is a value{kind}, not a size{place_hint}"
            raise Misplaced(f"{name!r} {meant}{suggestion(name, self.sizes)}", place, SizeProblem)
        return nat(name)

    def is_size(self, name: str) -> bool:
        """Whether a name by itself is a size."""
        return isinstance(self.values[name], Nat) if name in self.values else name in self.sizes

    def with_new_size(self, pattern: Tree) -> Scope:
        """The scope in ``fun (x: [t]n) =>``, where ``n`` may be a new name."""
        match pattern:
            case Tree("bind", (_, Tree("array_type", (_, Tree("name", (name,)))))):
                return replace(self, sizes=self.sizes | {name})
        return self


def outer_scope(known: Iterable[ir.Input | ir.Var]) -> Scope:
    """The scope of a term by itself."""
    values = {item.name: item for item in known}
    sizes = frozenset(n for item in values.values() for n in size_names(item.type))
    return Scope(values, sizes, any_size=True)


@dataclass(frozen=True)
class Itself:
    """What the name of a function means inside of it, and what to write instead, for messages."""

    instead: str
