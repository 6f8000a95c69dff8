"""The places of a term where rules match and almost match, and what is missing there, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lift_egraph.derivation.fits import Absent, Fit, Mismatch, RuleMatcher
from lift_egraph.derivation.parts import part_text
from lift_egraph.derivation.steps import World
from lift_egraph.derivation.words import failure_text, pattern_text
from lift_egraph.egraph.exact_terms import Node, Path, class_of, place_of
from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Constant, Pattern, forms
from lift_egraph.language import ir
from lift_egraph.language.binders import stem


@dataclass(frozen=True)
class NearMiss:
    """A place where a rule almost matches.

    Attributes
    ----------
    path, place, part
        The place, as numbers and in words, and what stands there.
    reasons
        The conditions that fail, with their values, where the left-hand side fits; else the one part of it that
        does not fit.
    fits
        Whether the left-hand side fits.
    """

    rule: Rule
    path: Path
    place: str
    part: str
    reasons: tuple[str, ...]
    fits: bool

    def __str__(self) -> str:
        return f"at {self.place}: {'; '.join(self.reasons)}"


def matching_places(view: View, rule: Rule) -> set[Path]:
    """The places where a rule matches.

    In an e-graph terms also become equal where no left-hand side stands: what a rule makes may be there already,
    elsewhere in the term, and then equals what it was made of.
    """
    return {
        path
        for form in forms(rule)
        for path, _, owner in view.places
        if any(view.matcher.fits(form, owner, failing=False))
    }


def near_misses(view: View, rule: Rule) -> list[NearMiss]:
    """Where a rule almost matches, the nearest first.

    First come the places where its left-hand side fits but conditions fail, then those where all of its left-hand
    side fits but one part, the more of it the earlier.
    """
    found: list[tuple[tuple[int, int], NearMiss]] = []
    unlike: dict[tuple[Path, Any], list[Mismatch]] = {}
    rewrites = forms(rule)
    for path, _, owner in view.places:
        fits = [fit for form in rewrites for fit in view.matcher.fits(form, owner)]
        for fit in fits:
            if fit.failed:
                miss = view.near_miss(rule, path, tuple(view.failures(fit)), True)
                found.append(((0, len(fit.failed)), miss))
        for form in () if fits else rewrites:
            mismatch = view.matcher.nearest(form, owner)
            if mismatch is not None:
                unlike.setdefault((path, mismatch.found), []).append(mismatch)
    for (path, _), several in unlike.items():
        expected = " or ".join(dict.fromkeys(pattern_text(m.expected) for m in several))
        wanted = several[0].expected
        there = view.show_value(several[0].found, "i64" if isinstance(wanted, Constant) else wanted.sort)
        miss = view.near_miss(rule, path, (f"expected {expected}, found {there}",), False)
        found.append(((1, -max(m.shared for m in several)), miss))
    found.sort(key=lambda pair: pair[0])  # it is stable: outermost places first
    return list(dict.fromkeys(miss for _, miss in found))


class View:
    """A term in its e-graph: its places with their classes, and what stands for variables of rules as text."""

    def __init__(self, world: World, term: Node):
        self.term = term
        self.graph: FrozenEGraph = world.look(term)
        self.matcher = RuleMatcher(self.graph)
        self.places = [
            (path, part, owner) for path, part in term.places() if (owner := class_of(self.graph, part)) is not None
        ]
        self._parts: dict[ClassId, Node] = {owner: part for _, part, owner in reversed(self.places)}
        self._texts: dict[Node, str] = {}

    def show(self, part: Node) -> str:
        if part not in self._texts:
            self._texts[part] = part_text(self.graph, part)
        return self._texts[part]

    def near_miss(self, rule: Rule, path: Path, reasons: tuple[str, ...], fits: bool) -> NearMiss:
        """A near miss at a place."""
        return NearMiss(rule, path, place_of(self.term, path), self.show(self.term.at(path)), reasons, fits)

    def failures(self, fit: Fit) -> Iterator[str]:
        """The conditions that fail, with their values."""

        def value(pattern: Pattern) -> Any:
            return self.matcher.known(pattern, fit.values)

        for condition in fit.failed:
            yield failure_text(condition, dict(fit.values), value, self.show_value)

    def show_value(self, value: Any, sort: str) -> str:
        """What stands for a variable of a sort, as text."""
        if isinstance(value, Absent):
            return str(value.parts[0]).lstrip("$")
        if sort == "Ty":
            return str(self.graph.type_at(value))
        if sort == "V":
            return stem(self.graph.variable(value).name)
        if sort == "P":
            return self._pattern(self.graph.pattern(value))
        if sort not in ("Ex", "Fn", "Op"):
            return str(value)
        part = self._parts.get(value)
        if part is None:
            return self.graph.nodes[value][0].op
        if part.op == "Op_scalar":
            return str(part.children[0])
        if part.op == "Op_fn":
            return self.show_value(self._class(part.children[0]), "Fn")
        if part.op == "Fn_lam":
            binder = self.graph.pattern(self._class(part.children[0]))
            body = part.children[1]
            assert isinstance(body, Node)
            return f"fun {self._pattern(binder)} => {self.show(body)}"
        return self.show(part)

    def _class(self, part: Any) -> ClassId:
        found = class_of(self.graph, part)
        assert found is not None
        return found

    def _pattern(self, pattern: ir.Binder) -> str:
        if isinstance(pattern, ir.Var):
            return stem(pattern.name)
        return f"({self._pattern(pattern.first)}, {self._pattern(pattern.second)})"
