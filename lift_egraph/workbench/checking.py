"""What is known of a program before any search: its types, the laws of its operators, and what declarations hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from lift_egraph.algebra.declared import believe
from lift_egraph.egraph.operators import reasons, uses_in
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.pretty import print_program
from lift_egraph.records.searched import as_searched
from lift_egraph.workbench.additions import additions_of
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.demands import require_elements, require_result


@dataclass(frozen=True)
class Known:
    """What is known of a program at concrete sizes.

    Attributes
    ----------
    program
        It itself, at its sizes.
    laws
        What is known of the operators of its folds, and why; in words.
    loops
        Why folds stay loops.
    checks
        How often declared laws were tried, and alternatives compared.
    """

    program: ir.Program
    laws: tuple[str, ...]
    loops: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def result(self) -> str:
        """The type of its result."""
        return str(type_of(self.program.body))

    @property
    def head(self) -> str:
        """Its name, the types of its inputs with their ranges, and its sizes, as they are written."""
        text, _, _ = print_program(replace(self.program, laws=(), alternatives=())).partition("=\n")
        return " ".join(text.split()).removeprefix("program ").replace("( ", "(")

    def to_json(self) -> Mapping[str, object]:
        """As one JSON value."""
        known = {"laws": self.laws, "loops": self.loops, "checks": self.checks}
        return {"program": self.head, "result": self.result} | {name: list(texts) for name, texts in known.items()}


def look_at(program: ir.Program, sizes: dict[str, int] | None = None, seconds: float = inf) -> Known:
    """What is known of a program before any search.

    Parameters
    ----------
    sizes
        Others than its own.
    seconds
        For trying declared laws, and as many for comparing alternatives.

    Raises
    ------
    RuleProblem
        If a law does not hold, or an alternative disagrees with its function, with values for which it is so.
    SizeProblem, TypeProblem
        If it has no meaning at these sizes.
    """
    require_elements(program, sizes or {})
    trials = believe(program.laws, seconds)
    made = additions_of((), None, alternatives=program.alternatives, seconds=seconds)
    special = specialise(as_searched(program, sizes), sizes)
    require_result(special)
    loops = tuple(dict.fromkeys(refusals(special.body)))
    laws = tuple(dict.fromkeys(text for use in uses_in(special.body) for text in reasons(use)))
    known = tuple(text for text in laws if " stays a loop: " not in text)
    return Known(specialise(program, sizes), known, loops, (*map(str, trials), *made.checks))
