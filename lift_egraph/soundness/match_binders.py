"""The binders of one program around a match: those of the rule's left-hand side, and those around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lift_egraph.egraph.rule_forms import Form, Hole, Node, Pattern, holes, subpatterns
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.types import DataType, Pair
from lift_egraph.soundness.clashes import Clash
from lift_egraph.soundness.pattern_values import Rejected, Values
from lift_egraph.soundness.random_terms import Choose, Context
from lift_egraph.soundness.unification import Typing


@dataclass(frozen=True)
class Prepared:
    """A form with the types and sizes that fit it, and what its programs shall be like.

    Attributes
    ----------
    number
        Which of the rule's forms it is.
    clash
        The clash that they have.
    broken
        The number of the one condition that they break.
    """

    form: Form
    typing: Typing
    solutions: list[dict[str, int]]
    clashes: tuple[Clash, ...]
    number: int = 0
    clash: Clash | None = None
    broken: int | None = None


class Binders(Values):
    """The names of a match, made from choices; `_holes` and `_type` say what there is to bind."""

    prepared: Prepared
    choose: Choose
    context: Context
    clash: Clash | None

    def _holes(self) -> set[Hole]:
        raise NotImplementedError

    def _type(self, t: Any) -> DataType:
        raise NotImplementedError

    def _binders(self, p: Pattern) -> list[ir.Binder]:
        """Choose the binding patterns, and return them."""
        found: list[ir.Binder] = []
        form = self.prepared.form
        literal = [v.name for v in sorted(self._made_names(form), key=str)]
        for node in subpatterns(p):
            if isinstance(node, Node) and node.op == "Fn_lam":
                self._bind(node.parts[0], (), literal)
                found.append(self.pattern(node.parts[0]))
        return found

    def _unbound(self) -> list[ir.Binder]:
        """Choose the variables that the left-hand side mentions without a binder: they are bound around it."""
        found: list[ir.Binder] = []
        for hole in sorted(self._holes(), key=str):
            if hole.sort in ("P", "V") and hole.name not in self.values:
                self._bind(hole, (), [])
                found.append(self.values[hole.name])
        bound_elsewhere = {h for h in _free(self.prepared.form.left, frozenset()) if self.values[h.name] not in found}
        return [*found, *(self.values[h.name] for h in sorted(bound_elsewhere, key=str))]

    def _bind(self, p: Pattern, avoid: tuple[ir.Binder, ...], literal: list[str]) -> tuple[ir.Binder, ...]:
        if isinstance(p, Hole):
            if p.name not in self.values:
                self.values[p.name] = self._binder(p, avoid, literal)
            made = self.values[p.name]
            if {v for q in avoid for v in ir.bound_variables(q)} & set(ir.bound_variables(made)):
                raise Rejected("a variable is bound twice in one pattern")
            return (*avoid, made)
        if isinstance(p, Node) and p.op in ("P_pair", "P_var"):
            for part in p.parts:
                avoid = self._bind(part, avoid, literal)
            return avoid
        return (*avoid, self.pattern(p))

    def _binder(self, p: Hole, avoid: tuple[ir.Binder, ...], literal: list[str]) -> ir.Binder:
        t = self._type(self.prepared.typing.values[p.name])
        if self.clash is not None:
            same = self._same(p)
            if same is not None:
                return same
            known = [self.values.get(h.name) for h in self._holes() if h.sort in ("P", "V")]
            avoid = (*avoid, *(binder for binder in known if binder is not None))
        elif literal and self.choose((False,) * 7 + (True,)):
            return ir.Var(self.choose(literal), t)
        return self.context.variable(t, avoid) if p.sort == "V" else self.context.pattern(t, avoid)

    def _same(self, p: Hole) -> ir.Binder | None:
        """What a binder shares with another that is known already."""
        clash = self.clash
        if clash is None or not clash.shares or p not in (clash.binder, clash.other):
            return None
        other = clash.other if p == clash.binder else clash.binder
        return self.values.get(other.name) if isinstance(other, Hole) else self._made(other)

    def _made(self, binder: Hole | Node) -> ir.Binder:
        """What the rule binds on one side."""
        for hole in sorted(holes(binder), key=str):  # a derived name is that of a binder
            if hole.sort in ("P", "V") and hole.name not in self.values and binder != hole:
                self._bind(hole, (), [])
        return self.pattern(binder)

    def _clashing(self) -> list[ir.Var]:
        """Choose the variable that is free where it clashes, and bind it around the match."""
        if self.clash is None or self.clash.shares:
            return []
        self.free = self.choose(ir.bound_variables(self._made(self.clash.binder)))
        return [self.free]

    def _made_names(self, form: Form) -> set[ir.Var]:
        """The variables with names of its own that the rule introduces, as far as they are known already."""
        found: set[ir.Var] = set()
        for node in subpatterns(form.right):
            if isinstance(node, Node) and node.op in ("V___init__", "V_of"):
                try:
                    found.update(ir.bound_variables(self.pattern(node)))
                except (Rejected, LiftError):
                    continue
        return found

    def _outer(self, provoking: set[ir.Var]) -> list[ir.Binder]:
        """Binders around the match: mostly of the names and types that the rule binds."""
        context = self.context
        found: list[ir.Binder] = []
        likely = sorted(provoking, key=str)
        for _ in range(self.choose((0, 1, 2, 1, 2))):
            t = context.real
            if likely and self.choose((True, True, True, False)):
                found.append(self.choose(likely))
            else:
                found.append(context.pattern(self.choose((t, context.row(), Pair(t, t)))))
        return found


def _free(p: Pattern, bound: frozenset[Hole]) -> Iterator[Hole]:
    """The variables that a pattern mentions where it does not bind them."""
    if not isinstance(p, Node):
        return
    if p.op == "Ex___init__" and isinstance(p.parts[0], Hole) and p.parts[0] not in bound:
        yield p.parts[0]
    inner = bound | holes(p.parts[0]) if p.op == "Fn_lam" else bound
    for part in p.parts:
        yield from _free(part, inner)
