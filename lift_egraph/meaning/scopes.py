"""Where a term is evaluated: what its variables are, and the maps around it."""

from __future__ import annotations

from dataclasses import dataclass

from lift_egraph.language import ir
from lift_egraph.meaning.values import Tree


@dataclass(frozen=True)
class Scope:
    """The bound variables, each with the number of batch axes of its value, and the lengths of all batch axes."""

    values: dict[ir.Var, tuple[int, Tree]]
    batch: tuple[int, ...]

    @property
    def depth(self) -> int:
        return len(self.batch)

    def deeper(self, size: int) -> Scope:
        return Scope(self.values, (*self.batch, size))

    def bind(self, pattern: ir.Binder, value: Tree) -> Scope:
        values = dict(self.values)

        def put(part: ir.Binder, tree: Tree) -> None:
            if isinstance(part, ir.Var):
                values[part] = (self.depth, tree)
            else:
                put(part.first, tree[0])
                put(part.second, tree[1])

        put(pattern, value)
        return Scope(values, self.batch)
