"""How a kernel's term was derived: phase by phase, in single-rule steps that are applied again and interpreted.

What a search leaves behind is the term that was taken from each phase. The steps between two of them are found when
somebody asks (`lift_egraph.derivation.derive.derive`), in a child process that can be stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import indent
from typing import Any

from lift_egraph.algebra.declared import believe
from lift_egraph.algebra.distributing import distributions_in
from lift_egraph.algebra.places import distinct_in
from lift_egraph.derivation.derive import derive, turned
from lift_egraph.derivation.parts import abridged
from lift_egraph.derivation.steps import Step, World
from lift_egraph.egraph.operators import reasons, uses_in
from lift_egraph.egraph.rule import told
from lift_egraph.egraph.rule_files import RuleIn, rule_of
from lift_egraph.errors import LiftError, RunProblem, SearchProblem
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, canonical
from lift_egraph.language.syntax import print_program, print_term
from lift_egraph.meaning.agreement import Comparer, Comparison
from lift_egraph.process.child import Stream
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.phases import Leg
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.report import Report

WIDTH = 100  # columns of terms
MEMORY = 2 << 30  # bytes for the process that looks for the steps
NAIVE = (
    "no rules lead to a naive kernel that copies results: it has a work-item for each element of a stage, and loops as "
    "written"
)
STARTUP = 5.0  # seconds for a child to import egglog and register the rules


@dataclass(frozen=True)
class CheckedStep:
    """A step, whether running its rule alone gives it again, and whether both terms compute the same."""

    step: Step
    replays: bool
    comparison: Comparison

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against it."""
        return self.replays and self.comparison.equal is not False

    def __str__(self) -> str:
        return f"{'replayed' if self.replays else 'DOES NOT REPLAY'}; {self.comparison}"


@dataclass(frozen=True)
class ExplainedLeg:
    """The steps of one phase.

    Attributes
    ----------
    problem
        Why the steps do not lead from the seed to the term of the leg; empty where they do.
    """

    leg: Leg
    seed: ir.Expr
    steps: tuple[CheckedStep, ...] = ()
    problem: str = "not begun"
    seconds: float = 0.0

    @property
    def laws(self) -> tuple[str, ...]:
        """What is known of the operators of the seed that are no built-in operation, and of its places, and why."""
        uses = {canonical(use.operator): use for use in reversed(uses_in(self.seed))}
        places = (f"no two of {print_term(i)} are one place: {why}" for i, why in distinct_in(self.seed).items())
        distributive = map(str, distributions_in(self.seed))
        return (*(reason for use in reversed(uses.values()) for reason in reasons(use)), *distributive, *places)


@dataclass(frozen=True)
class Explanation:
    """A program, and the phases and steps that lead from it to a low-level term."""

    program: ir.Program
    legs: tuple[ExplainedLeg, ...]
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether the steps lead from the program to the term without a gap."""
        return not any(leg.problem for leg in self.legs)

    @property
    def sound(self) -> bool:
        """Whether every step replays, and none changes what is computed."""
        return all(checked.sound for checked in self.steps)

    @property
    def steps(self) -> tuple[CheckedStep, ...]:
        """The steps of all phases."""
        return tuple(checked for leg in self.legs for checked in leg.steps)

    @property
    def flagged(self) -> dict[str, tuple[str, ...]]:
        """The rules among the steps that may change results of floats, with their flags (`FLAGS`)."""
        return {checked.step.rule.name: checked.step.rule.flags for checked in self.steps if checked.step.rule.flags}

    @property
    def exactness(self) -> str:
        """What the steps may change in the results of floats, in a sentence."""
        if not self.flagged:
            return "No step changes results of floats by a bit."
        rules = ", ".join(f"{name} ({', '.join(flags)})" for name, flags in self.flagged.items())
        return f"Results of floats may change by {rules}; all other steps keep each bit."

    @property
    def seconds(self) -> float:
        """How long it took to find and check the steps."""
        return sum(leg.seconds for leg in self.legs)

    @property
    def summary(self) -> str:
        """What was found, in a sentence or two."""
        steps = self.steps
        compared = sum(c.comparison.equal is not None for c in steps)
        wrong = sum(not c.sound for c in steps)
        count = f"{len(steps)} step{'' if len(steps) == 1 else 's'}"
        phases = f"{len(self.legs)} phase{'' if len(self.legs) == 1 else 's'}"
        lead = "lead from the program to the kernel's term" if self.complete else "are known; there is a gap"
        checks = f"{wrong} of them WRONG" if wrong else f"all replay, {compared} interpreted equal"
        left_out = len(steps) - compared
        unseen = f", {left_out} too much to interpret" if left_out and not wrong else ""
        return f"{count} in {phases} {lead}: {checks}{unseen}; {self.seconds:.1f} s."

    def __str__(self) -> str:
        """Headings for the phases, numbered steps, and what they lead to."""
        lines = [print_program(self.program).rstrip()]
        count = 0
        for number, leg in enumerate(self.legs, 1):
            lines += ["", f"{number}. {leg.leg}", *(f"   {law}" for law in leg.laws)]
            for checked in leg.steps:
                count += 1
                lines += ["", _step_as_text(count, checked)]
            if leg.problem:
                lines += ["", f"   GAP: {leg.problem}"]
            elif not leg.steps:
                lines += ["   changes nothing"]
            elif number < len(self.legs):
                lines += ["", "   so that the program is", indent(print_term(leg.leg.term, WIDTH - 4), "    ")]
        if self.legs:
            lines += ["", "The kernel's term:", indent(print_term(self.legs[-1].leg.term, WIDTH - 4), "    ")]
        return "\n".join([*lines, "", *((self.exactness,) if self.complete else ()), self.summary])

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "program": print_program(self.program),
            "complete": self.complete,
            "sound": self.sound,
            "flagged": {name: list(flags) for name, flags in self.flagged.items()},
            "seconds": round(self.seconds, 2),
            "phases": [
                {
                    "phase": str(found.leg),
                    "laws": list(found.laws),
                    "steps": [_step_to_json(checked) for checked in found.steps],
                    "problem": found.problem,
                    "term": print_term(found.leg.term),
                    "seconds": round(found.seconds, 2),
                }
                for found in self.legs
            ],
        }


def _step_as_text(number: int, checked: CheckedStep) -> str:
    step = checked.step
    before, after = (indent(text, " " * 10).lstrip() for text in abridged(*step.parts, WIDTH - 10))
    backwards = " (from right to left)" if step.backwards else ""
    return "\n".join(
        (
            f"  {number:3}  {step.rule.name}{backwards}  at {step.place}",
            f"       {step.rule.law}",
            f"          {before}",
            f"        = {after}",
            f"       {checked}",
        )
    )


def _step_to_json(checked: CheckedStep) -> dict[str, Any]:
    step = checked.step
    return {
        "rule": step.rule.name,
        "law": step.rule.law,
        "source": step.rule.source,
        "backwards": step.backwards,
        "place": step.place,
        "path": list(step.path),
        "before": step.part,
        "after": step.result,
        "replays": checked.replays,
        "equal": checked.comparison.equal,
        "compared": checked.comparison.how,
    }


def explain_candidate(
    report: Report,
    candidate: Candidate | None = None,
    *,
    time_limit: float = 600.0,
    listen: Listener = lambda event: None,
) -> Explanation:
    """How a candidate of a report was derived; that of the best kernel by default.

    Parameters
    ----------
    time_limit, listen
        As for `explain_way`.

    Raises
    ------
    SearchProblem
        If the report has no valid kernel, or does not know how it was found.
    """
    chosen = candidate or report.best
    if chosen is None or not chosen.way:
        raise SearchProblem("the report holds no kernel of which it knows how it was found")
    return explain_way(report.source, chosen.way, time_limit=time_limit, listen=listen)


def explain_way(
    program: ir.Program, way: tuple[Leg, ...], *, time_limit: float = 600.0, listen: Listener = lambda event: None
) -> Explanation:
    """The steps that lead from a program through the terms of some phases.

    Parameters
    ----------
    program
        The program at concrete sizes.
    way
        The phases.
    time_limit
        In seconds. What is not found then is a gap; the steps found before are kept. The same holds after Ctrl-C.
    listen
        Called with an `Event` for each thing that is tried.

    Raises
    ------
    RunProblem
        If the child process failed.
    RuleProblem
        If a rule of the user's is not to be found as it was, or a declared law does not hold.
    """
    believe(program.laws)
    seeds = (program.body, *(leg.term for leg in way))
    found = [ExplainedLeg(leg, seed) for leg, seed in zip(way, seeds, strict=False)]
    stream = Stream(_derived, program, way, time_limit=time_limit + STARTUP, memory_limit=MEMORY)
    interrupted, now, began = False, 0, time.perf_counter()
    try:
        for number, message in stream:
            now, leg = number, found[number]
            if isinstance(message, CheckedStep):
                leg = replace(leg, steps=(*leg.steps, message))
            elif isinstance(message, _Done):
                leg = replace(leg, problem=message.problem, seconds=message.seconds)
            else:
                listen(Event(f"{number + 1} {leg.leg.name}", f"{message}; {len(leg.steps)} steps found"))
            found[number] = leg
        end = stream.end
        if end.kind == "error":
            raise RunProblem(f"the search for the steps failed: {end.text}")
        problem = {"finished": "", "time": f"not found within {time_limit:g} s"}.get(end.kind, end.text)
    except KeyboardInterrupt:
        interrupted, problem = True, "interrupted"
    if problem and found and found[now].problem == ExplainedLeg.problem:
        seconds = time.perf_counter() - began - sum(leg.seconds for leg in found)
        found[now] = replace(found[now], problem=problem, seconds=seconds)
    return Explanation(program, tuple(found), interrupted)


@dataclass(frozen=True)
class _Done:
    """The end of a leg, with what keeps it from being complete."""

    problem: str
    seconds: float


def _derived(program: ir.Program, way: tuple[Leg, ...]) -> Iterator[tuple[int, str | CheckedStep | _Done]]:
    """What the child process sends: the number of the leg, and news of it."""
    believe(program.laws)
    comparer = Comparer(program)
    seed = program.body
    phases = [leg.phase for leg in way]
    in_files = [rule_of(own) for leg in way for own in leg.rules if isinstance(own, RuleIn)]
    for number, (leg, phase) in enumerate(zip(way, phases, strict=True)):
        began, problem, now = time.perf_counter(), "", seed
        first, then = (leg.term, seed) if leg.is_backwards else (seed, leg.term)
        world = World(phase.about(first))
        try:
            found = derive(first, then, phase, leg.iterations, world)
            for item in turned(found) if leg.is_backwards else found:
                if isinstance(item, Step):
                    if not alpha_equal(item.before, now):
                        raise SearchProblem(f"the step {item} does not begin where the one before it ended")
                    now = item.after
                    shown = replace(item, rule=told(item.rule)) if item.rule in in_files else item
                    yield number, CheckedStep(shown, world.replays(item), comparer.compare(item.before, item.after))
                else:
                    yield number, item
            if not alpha_equal(now, leg.term):
                problem = "the steps end at another term"
        except LiftError as gap:
            problem = NAIVE if alpha_equal(naive_term(program).body, leg.term) else str(gap)
        yield number, _Done(problem, time.perf_counter() - began)
        seed = leg.term
