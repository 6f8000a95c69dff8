"""What a rule does to an e-graph of several terms: what is new, where it matched, and what the terms must be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from egglog import i64
from egglog.egraph import ActionLike

from lift_egraph.caching import cached_property
from lift_egraph.egraph import sorts
from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.members import MemberSampler, Site, changes
from lift_egraph.egraph.read_back import Choice, open_terms
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Constant, Node, forms, subpatterns
from lift_egraph.language import ir
from lift_egraph.language.check import binder_type, type_of
from lift_egraph.language.types import Array, DataType, Pair
from lift_egraph.soundness.clashes import sides

MATCHED = ("matched", "matched_function")


@dataclass(frozen=True)
class Step:
    """An e-graph before and after a rule."""

    old: FrozenEGraph
    new: FrozenEGraph

    @cached_property
    def made(self) -> set[Site]:
        """What is new."""
        return changes(self.old, self.new)

    @cached_property
    def sampler(self) -> MemberSampler:
        """Draws members that use what is new."""
        return MemberSampler(self.new, self.made)

    @cached_property
    def read(self) -> Callable[[Choice], ir.Expr]:
        """Reads members, which share what they have in common."""
        return open_terms(self.new)

    @cached_property
    def misnamed(self) -> str | None:
        """A function that the rule made and that states another argument than its class has: rules would trust it."""
        for owner, node in self.made:
            own = self.new.own_domain(node)
            others = (self.new.own_domain(n) for n in self.new.nodes[owner])
            if own is not None and (of := next((t for t in others if t not in (None, own)), None)) is not None:
                return f"a function of {own} that stands for one of {of}"
        return None

    @cached_property
    def _matched(self) -> dict[int, set[ClassId]]:
        """The classes where each of the rule's declarations matched."""
        found: dict[int, set[ClassId]] = {}
        for name in MATCHED:
            for number, where in self.new.facts.get(name, ()):
                found.setdefault(int(number), set()).add(int(where))
        return found

    def matched_in(self, root: str) -> set[int]:
        """Which of the rule's declarations matched in the term of a root."""
        below, waiting = {self.new.roots[root]}, [self.new.roots[root]]
        while waiting:
            for n in self.new.nodes[waiting.pop()]:
                waiting += (fresh := set(n.classes) - below)
                below |= fresh
        return {number for number, where in self._matched.items() if where & below}

    def changes_in(self, root: str) -> bool:
        """Whether the class of a root has a member that uses what is new."""
        return self.sampler.reaches(self.new.roots[root])


def names_in(rule: Rule) -> Iterator[str]:
    """The names of variables and inputs that a rule states itself."""
    for form in forms(rule):
        stated = (side for c in form.conditions for side in sides(c))
        for whole in (form.left, form.right, *stated):
            for p in subpatterns(whole):
                if isinstance(p, Node) and p.op in ("V___init__", "Ex_input") and isinstance(p.parts[0], Constant):
                    yield p.parts[0].value


def array_lengths(term: ir.Expr) -> set[int]:
    """The lengths of all arrays in a term of concrete sizes."""
    return {n for t in _types(term) for n in _lengths(t)}


def tiles_of_all(terms: Iterable[ir.Expr]) -> Iterator[ActionLike]:
    for n in sorted(set().union(*map(array_lengths, terms))):
        yield from _tiles_of(n)


@cache
def _tiles_of(n: int) -> tuple[ActionLike, ...]:
    """The divisors of a length, and one number that is none, but divides a length that no array need have.

    Making such facts takes longer than using them, so they are kept.
    """
    odd = next((d for d in range(2, n) if n % d), None)
    beside = () if odd is None else (sorts.tile(i64(2 * odd), i64(odd)),)
    return *(sorts.tile(i64(n), i64(d)) for d in range(1, n + 1) if n % d == 0 or d == odd), *beside


def _types(term: ir.Expr) -> Iterator[DataType]:
    for part in ir.subterms(term):
        if isinstance(part, ir.Expr):
            yield type_of(part)
        elif isinstance(part, ir.Lambda):
            yield binder_type(part.binder)


def _lengths(t: DataType) -> Iterator[int]:
    if isinstance(t, Array):
        if t.size.constant is not None:
            yield t.size.constant
        yield from _lengths(t.element)
    elif isinstance(t, Pair):
        yield from _lengths(t.first)
        yield from _lengths(t.second)
