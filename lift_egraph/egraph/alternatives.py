"""Alternatives of functions as rules: what a function computes, at some sizes, is also computed by another algorithm.

The sizes are numbers, those that are chosen among them, so what a type checker says of both sides holds for the rule.
The inputs are its variables; an input that has a range is none, as its alternative was not tried on other values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any

import egglog
from egglog import Ruleset, eq, rewrite
from egglog.declarations import Ident

from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import encoded, known_operator, operator_to_egg, to_egg, type_to_egg
from lift_egraph.egraph.pattern_nodes import PATTERN_NODES, form_of
from lift_egraph.egraph.rule import Rule, own_name
from lift_egraph.egraph.sorts import Ex, Fn, Op, P, V, fv, ty, vty
from lift_egraph.errors import RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names, with_parts
from lift_egraph.language.definitions import at_sizes
from lift_egraph.language.pretty import print_term
from lift_egraph.language.signature import Parameter

Sizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class AlternativeRule(Rule):
    """The rule that an alternative is at some sizes."""

    alternative: ir.Alternative | None = None
    sizes: Sizes = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return rule_at, (self.alternative, self.sizes)

    @property
    def place(self) -> str:
        """Where the alternative is declared: file, line and column."""
        return self.alternative.place if self.alternative else ""

    @property
    def file(self) -> Path | None:
        """The file with the program that the alternative is of; None if a Python program gave it."""
        path = Path(re.sub(r":\d+:\d+$", "", self.place))
        return path if path.suffix == ".lift" and path.is_file() else None


def name_at(alternative: ir.Alternative, sizes: Sizes) -> str:
    """What a rule is called: ``sum_1 at n = 64, chunk = 8``."""
    return f"{alternative.name} at {', '.join(f'{n} = {value}' for n, value in sizes)}" if sizes else alternative.name


def rule_named(name: str, alternatives: Iterable[ir.Alternative]) -> Rule | None:
    """The rule that is called so, of some alternatives; None if there is none."""
    head, _, text = name.partition(" at ")
    sizes = tuple((n, int(value)) for n, value in re.findall(r"(\w+) = (\d+)", text))
    found = next((a for a in alternatives if a.name == head), None)
    return found and rule_at(found, sizes)


@lru_cache(maxsize=1024)
def rule_at(alternative: ir.Alternative, sizes: Sizes) -> Rule:
    """The rule that an alternative is at some sizes.

    Raises
    ------
    RuleProblem
        If it may not be taken there, or if the function has parts that stand for sizes in the e-graph.
    """
    name = name_at(alternative, sizes)
    both = at_sizes(alternative, dict(sizes))
    if both is None:
        raise RuleProblem(name, alternative.place, "the alternative may not be taken at these sizes")
    of, other = both
    ruleset = Ruleset(Ident(own_name(name), __name__))
    for one in _rules(of, unique_names(other.body, base=lambda n: f"${n} of {alternative.name}")):
        ruleset.append(one)
    call = f"{of.name}({', '.join(i.name for i in of.inputs)})"
    return AlternativeRule(
        name,
        f"{call} = {print_term(of.body, 1 << 30)} = {print_term(other.body, 1 << 30)}",
        "an alternative, tried on random sizes and inputs",
        "alternatives",
        "algorithmic",
        True,
        True,
        ruleset,
        lambda: (),
        alternative=alternative,
        sizes=sizes,
    )


def _rules(of: ir.Program, other: ir.Expr) -> Iterator[egglog.RewriteOrRule]:
    ranged = dict(of.ranges)
    holes = {i: egglog.var(f"x{k}", Ex) for k, i in enumerate(of.inputs) if i.name not in ranged}
    pattern = _Pattern(holes)
    named = unique_names(of.body)
    left = pattern.expr(named)
    mentioned = {t for t in ir.subterms(of.body) if isinstance(t, ir.Input)}
    where = [eq(type_to_egg(i.type)).to(ty(hole)) for i, hole in holes.items() if i in mentioned]
    where += [eq(type_to_egg(v.type)).to(vty(name)) for v, name in pattern.names.items()]
    outside = [(pattern.names[v], holes[i]) for v, i in _above(named) if i in holes]
    right = to_egg(with_parts(other, {i: encoded(i, hole) for i, hole in holes.items()}))
    above = [(V(v.name, type_to_egg(v.type)), hole) for v, i in _above(other) if (hole := holes.get(i)) is not None]
    if above:
        whole = egglog.var("whole", Ex)
        yield egglog.rule(eq(whole).to(left), *where).then(*(v for v, _ in above))  # the conditions need them to exist
    yield rewrite(left).to(right, *where, *(fv(hole).not_contains(v) for v, hole in (*outside, *above)))


def _above(term: ir.Part, bound: frozenset[ir.Var] = frozenset()) -> Iterator[tuple[ir.Var, ir.Input]]:
    """The variables that are bound around the inputs of a term."""
    if isinstance(term, ir.Input):
        yield from ((v, term) for v in sorted(bound, key=lambda v: v.name))
    inner = bound | frozenset(ir.bound_variables(term.binder)) if isinstance(term, ir.Lambda) else bound
    for part in ir.parts(term):
        yield from _above(part, inner)


class _Pattern:
    """A term, all binders of which have names of their own, as what matches it whatever they are called.

    The names are variables then, and stand in `names`.
    """

    def __init__(self, holes: Mapping[ir.Input, Ex]) -> None:
        self.holes = holes
        self.names: dict[ir.Var, V] = {}

    def expr(self, term: ir.Expr) -> Ex:
        if isinstance(term, ir.Input) and term in self.holes:
            return self.holes[term]
        if isinstance(term, ir.Var):
            return Ex(self.names[term])
        form = form_of(term)
        if form is None:
            return to_egg(term)
        node = PATTERN_NODES.get(form.op)
        parameters = repeat(None) if node is None else node.signature.parts
        parts = [self.part(part, p) for part, p in zip(form.parts, parameters, strict=False)]
        return getattr(sorts, form.op)(*form.numbers, *parts)

    def part(self, part: ir.Part, parameter: Parameter | None) -> Ex | Fn | Op:
        if isinstance(part, ir.Expr):
            return self.expr(part)
        if parameter is None or not parameter.is_operator:
            return self.function(part)
        return operator_to_egg(part) if known_operator(part) is not None else Op.fn(self.function(part))

    def function(self, f: ir.Function) -> Fn:
        if isinstance(f, ir.Vectorize):
            return Fn.vec(f.width, self.function(f.function))
        return Fn.lam(self.binder(f.binder), self.expr(f.body))

    def binder(self, binder: ir.Binder) -> P:
        if isinstance(binder, ir.PairBinder):
            return P.pair(self.binder(binder.first), self.binder(binder.second))
        name = self.names[binder] = egglog.var(f"v{len(self.names)}", V)
        return P.var(name)
