"""Laws that users declare: tried on random values, and then believed in this process.

A law is about what an operator computes, so it is known by that: with its lets written out, for any names, and in the
order in which folds have their accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from time import perf_counter

from lift_egraph.algebra.equations import Leaves, arguments_of, operator, sides
from lift_egraph.algebra.trials import A_PART, COUNT, MOST_STEPS, tried
from lift_egraph.errors import RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.accumulators_first import accumulator_first
from lift_egraph.language.binders import canonical, unique_names
from lift_egraph.language.pretty import print_term

SEEDS = 6  # of the values that a law is tried on: whole numbers, then fractions
_ORDER = [seed for pair in zip(range(SEEDS // 2), range(SEEDS // 2, SEEDS), strict=True) for seed in pair]
_LEAST = 2  # of these, both kinds of numbers
_BELIEVED: dict[object, ir.Law] = {}
HOW = "equal, as was declared and tried on random values"


@dataclass(frozen=True)
class Trial:
    """On how many values a law held, and whether there was time for all that are wanted."""

    law: ir.Law
    values: int
    enough: bool = True

    def __str__(self) -> str:
        few = "" if self.enough else only_of(SEEDS * COUNT)
        return f"{_found(self.law)} on {self.values} values{few}"


def only_of(wanted: int) -> str:
    """What is said behind a number of trials that is less than was wanted."""
    return f" only, of {wanted} that are wanted: there was no time for more"


def believe(laws: Iterable[ir.Law], seconds: float = inf) -> list[Trial]:
    """Try laws, and believe those that hold; returns how often those were tried that were not believed before.

    Parameters
    ----------
    seconds
        For all of them; each is tried on some values however long that takes.

    Raises
    ------
    RuleProblem
        If one does not hold, with values for which it fails, or cannot be tried.
    """
    trials, end = list[Trial](), perf_counter() + seconds
    for law in laws:
        key = _key(law.name, law.operator, law.about)
        if key is None or key not in _BELIEVED:
            trials.append(_try(law, end))
            _BELIEVED[key] = law
    return trials


def believed() -> int:
    """How many laws are believed: what follows from them may be kept for as long as they are so many."""
    return len(_BELIEVED)


def laws_believed() -> tuple[ir.Law, ...]:
    """The laws that are believed."""
    return tuple(_BELIEVED.values())


def is_believed(name: str, function: ir.Function, about: ir.Expr | ir.Function | None = None) -> bool:
    """Whether a law was declared, and held on all values that it was tried on."""
    return bool(_BELIEVED) and _key(name, function, about) in _BELIEVED


def _key(name: str, function: ir.Function, about: ir.Expr | ir.Function | None) -> object:
    form = _form(function)
    if form is None:
        return None
    if about is None:
        return name, form, None
    return name, form, _form(about) if isinstance(about, ir.Lambda | ir.Vectorize) else canonical(about)


def _form(function: ir.Function) -> Leaves | None:
    op = operator(accumulator_first(unique_names(function)))
    return None if op is None else op.at(*arguments_of(op)[:2])


def _try(law: ir.Law, end: float) -> Trial:
    found = sides(law.name, law.operator, law.about)
    if found is None:
        raise RuleProblem(law.called, law.place, "only operators on scalars and tuples of them have laws")
    known = count = 0
    for seed in _ORDER:
        if count >= _LEAST and perf_counter() > end:
            break
        against, finite = tried(*found, seed, fractions=seed >= SEEDS // 2, around=True)
        if against is not None and A_PART in dict(against.values):
            why = f"it has a loop that cannot be tried, of more than {MOST_STEPS} steps, or over an array"
            raise RuleProblem(law.called, law.place, f"whether it is {_in_words(law)} is not known: {why}")
        if against is not None:
            raise RuleProblem(law.called, law.place, f"it is not {_in_words(law)}: {against}")
        known, count = known + finite, count + 1
    if known < COUNT * count / SEEDS:
        why = "on most values that it was tried on neither side is a finite number"
        raise RuleProblem(law.called, law.place, f"whether it is {_in_words(law)} is not known: {why}")
    return Trial(law, count * COUNT, count == SEEDS)


_EQUATIONS = {
    "associative": "associative, f(f(a, b), c) = f(a, f(b, c))",
    "commutative": "commutative, f(a, b) = f(b, a)",
    "idempotent": "idempotent, f(a, a) = a",
    "neutral": "so that {} is neutral, f({}, a) = a = f(a, {})",
    "annihilating": "so that {} annihilates, f({}, a) = {} = f(a, {})",
    "distributes": "distributive, f(a, g(b, c)) = g(f(a, b), f(a, c)) and f(g(b, c), a) = g(f(b, a), f(c, a))",
}


def _found(law: ir.Law) -> str:
    """A law that holds, in short."""
    match law.name:
        case "neutral" | "annihilating" as name if isinstance(law.about, ir.Expr):
            return f"{print_term(law.about)} is {name} for {law.called}"
        case "distributes":
            return f"{law.called} is distributive"
    return f"{law.called} is {law.name}"


def _in_words(law: ir.Law) -> str:
    about = "" if law.about is None else print_term(law.about)
    return _EQUATIONS[law.name].replace("{}", about)
