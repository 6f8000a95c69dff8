"""Why a mutant of a rule that no example catches is as right as the rule.

A condition may be redundant: the others imply it. Or it is a guard: it keeps a rule from what is right and useless,
such as one chunk that is the whole array; the rule notes it (`lift_egraph.egraph.rule.Rule.notes`), and the check of
the rule without it must find nothing wrong. What is right without a condition is right with any other in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_edits import Rewrite
from lift_egraph.egraph.rule_forms import Equation, Form, Hole, Node, Pattern, forms, holes, replace_holes, shown
from lift_egraph.errors import RuleProblem, TypeProblem
from lift_egraph.soundness.implied_names import implied
from lift_egraph.soundness.instances import Instances
from lift_egraph.soundness.mutations import Mutant
from lift_egraph.soundness.near_misses import FEW, contraries
from lift_egraph.soundness.pattern_types import solved
from lift_egraph.soundness.same_patterns import same


class Redundancy:
    """What is known of the mutants of one rule: `known` before one is checked, `why` after a check without a find."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._instances = Instances(rule)
        self._without: dict[tuple[Rewrite, str], str] = {}
        self._allowed: dict[tuple[Rewrite, str], list[Equation | Node]] = {}

    def known(self, mutant: Mutant) -> str | None:
        """Why a mutant is as right as the rule, as the two do the same wherever the conditions hold."""
        if mutant.sizes is not None and not self._sizes_fit(mutant, Node("!=", mutant.sizes, "Unit")):
            return "both sizes are equal, as the conditions and types say"
        if mutant.condition is None:
            form = self._form(mutant)
            right = next(f.right for f in forms(mutant.rule) if f.left == form.left)
            sides = (self._with_equal_types(form, side) for side in (right, form.right))
            return "the same up to names and to what commutes" if same(*sides) else None
        if mutant.kind == "removed":
            return None if self.noted(mutant) is not None else self._unneeded(mutant)
        reason = self._without.get((mutant.rewrite, mutant.condition))
        if reason is not None:
            return f"the rule is right without the condition ({reason})"
        return self._lets_nothing_in(mutant)

    def apart(self, mutant: Mutant) -> tuple[tuple[Equation | Node, ...], ...]:
        """What holds of sizes where a condition on sizes that a mutant changed does not; empty for other changes."""
        if mutant.condition is None:
            return ()
        form = self._form(mutant)
        number, c = next((i, c) for i, c in enumerate(form.conditions) if shown(c) == mutant.condition)
        return tuple(contraries(form, number, c)) if isinstance(c, Node) and c.op != "scalar_like" else ()

    def noted(self, mutant: Mutant) -> str | None:
        """What the rule notes of the condition that a mutant lacks, of what it has in its place, or of a size."""
        notes, removed = dict(self.rule.notes), mutant.kind == "removed"
        names = (mutant.condition or "",) if removed else mutant.names
        found = next((notes[name] for name in names if name in notes), None)
        return notes.get(shown(mutant.sizes[0])) if found is None and mutant.sizes is not None else found

    def why(self, mutant: Mutant) -> str | None:
        """Why a mutant in which no check found anything wrong is as right as the rule; None if nothing says so."""
        if mutant.is_offer:
            return "what a phase offers is a choice among what is right"
        noted = self.noted(mutant)
        if noted is None:
            return None
        reason = f"noted: {noted}"
        if mutant.kind == "removed":
            self._without[mutant.rewrite, mutant.condition or ""] = reason
        elif (changed := self._changed(mutant)) is not None:
            self._allowed.setdefault((mutant.rewrite, mutant.condition or ""), []).append(changed[1])
        return reason

    def _with_equal_types(self, form: Form, side: Pattern) -> Pattern:
        """One side of a form, with one name for all types that are equal wherever it matches."""
        typing, _ = solved(form)
        first: dict[Any, Hole] = {}
        types = sorted((h for h in holes(side) if h.sort == "Ty" and h.name in typing.values), key=str)
        equal = {h.name: first.setdefault(typing.find(typing.values[h.name]), h) for h in types}
        return replace_holes(side, {name: h for name, h in equal.items() if name != h.name})

    def _unneeded(self, mutant: Mutant) -> str | None:
        """Why the other conditions leave nothing to a condition; None if they do."""
        if self._is_implied(mutant):
            reason = "the other conditions imply it"
        elif not self._is_broken(mutant):
            reason = "no program breaks the condition alone"
        else:
            return None
        self._without[mutant.rewrite, mutant.condition or ""] = reason
        return reason

    def _form(self, mutant: Mutant) -> Form:
        return next(form for form in self._instances.forms if form.declared == mutant.rewrite)

    def _lets_nothing_in(self, mutant: Mutant) -> str | None:
        """Why no sizes fit that the changed condition allows, but neither the condition nor one that is as right."""
        form, changed = self._form(mutant), self._changed(mutant)
        if changed is None:
            return None
        number, c = changed
        if implied(form.conditions[number], (c, *(o for i, o in enumerate(form.conditions) if i != number))):
            return "with the others it implies the condition"
        others = replace(form, conditions=(*(o for i, o in enumerate(form.conditions) if i != number), *_offered(form)))
        if not self._fits(others, c):
            return None  # it never fires
        for allowed in (form.conditions[number], *self._allowed.get((mutant.rewrite, mutant.condition or ""), ())):
            against = list(contraries(form, number, allowed))
            if against and not any(self._fits(others, c, *contrary) for contrary in against):
                by = "the condition" if allowed == form.conditions[number] else shown(allowed)
                return f"with the other conditions it allows no more than {by}"
        return None

    def _is_implied(self, mutant: Mutant) -> bool:
        """Whether the other conditions on names imply one."""
        conditions = self._form(mutant).conditions
        removed = next((i for i, c in enumerate(conditions) if shown(c) == mutant.condition), None)
        return removed is not None and implied(conditions[removed], (*conditions[:removed], *conditions[removed + 1 :]))

    def _changed(self, mutant: Mutant) -> tuple[int, Equation | Node] | None:
        """The place of the condition that was changed, and what it became; None if there is none any more."""
        before = self._form(mutant)
        after = next(f for f in forms(mutant.rule) if f.left == before.left)
        if len(after.conditions) != len(before.conditions):
            return None
        return next(((i, c) for i, c in enumerate(after.conditions) if c != before.conditions[i]), None)

    def _sizes_fit(self, mutant: Mutant, *conditions: Equation | Node) -> bool:
        return self._fits(self._form(mutant), *conditions)

    def _fits(self, form: Form, *conditions: Equation | Node) -> bool:
        try:
            return bool(solved(replace(form, conditions=(*form.conditions, *conditions)), (), FEW)[1])
        except TypeProblem:
            return False

    def _is_broken(self, mutant: Mutant) -> bool:
        """Whether some program breaks a condition and keeps the others, as far as a search finds."""
        instances = self._instances
        for (form, number), known in instances.conditions.items():
            here = instances.forms[form]
            if known and here.declared == mutant.rewrite and shown(here.conditions[number]) == mutant.condition:
                return self._draws(form, number)
        return False

    def _draws(self, form: int, number: int) -> bool:
        for turn in self._instances.breaking(form, number):
            try:
                self._instances.draw(f"spared/{turn}", False, turn)
            except RuleProblem:
                continue
            return True
        return False


def _offered(form: Form) -> tuple[Node, ...]:
    """What holds of the chunks that a phase offers: they are no longer than their array."""
    tiles = (c for c in form.conditions if isinstance(c, Node) and c.op == "tile")
    return tuple(Node("i64___le__", (tile.parts[1], tile.parts[0]), "Unit") for tile in tiles)
