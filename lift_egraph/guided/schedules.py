"""Schedules of phases on the same program, compared: how large their e-graphs get, and what only one of them reaches.

A schedule is a sequence of phases and stages. A phase runs to its limits, a stage until its sketch is satisfied; the
cheapest term of a phase, or the cheapest that satisfies the sketch, is where the next one starts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lift_egraph.caching import cached_property
from lift_egraph.egraph.growth import columns
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.read_back import from_egg
from lift_egraph.egraph.saturate import ENDS, LARGEST_SNAPSHOT, STARTUP_SECONDS, Phase, Saturation, StopReason
from lift_egraph.errors import InputProblem, LiftError, RunProblem
from lift_egraph.guided.matcher import Matcher
from lift_egraph.guided.sketch import ANY, Sketch
from lift_egraph.guided.stages import Reached, Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.syntax import print_term
from lift_egraph.process.child import Stream

DRAWN = 30  # how many members of each e-graph are looked for in the others
TRIES = 10  # how often a member is drawn for each that is wanted


@dataclass(frozen=True)
class Outcome:
    """What a schedule reached.

    Attributes
    ----------
    runs
        Its phases, as far as they ran; the term of each, the cheapest there is or that satisfies the sketch, is where
        the next one starts.
    last
        The last e-graph: that of the last phase, or an earlier state if it was cut short.
    """

    name: str
    runs: tuple[Reached, ...]
    last: Saturation = field(repr=False)

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.last.graph)

    @property
    def seconds(self) -> float:
        """Of all phases, extraction included."""
        return sum(run.seconds for run in self.runs)

    @property
    def term(self) -> ir.Expr:
        """The cheapest term that it ended with, which satisfies the last sketch if that was reached."""
        last = self.runs[-1].term
        return self._matcher.require(self.last.root, ANY).term if last is None else last

    def reaches(self, sketch: Sketch) -> ir.Expr | None:
        """The cheapest term of the last e-graph that satisfies a sketch, or None if there is none."""
        found = self._matcher.matches(self.last.root, sketch)
        return found[0].term if found else None

    def holds(self, term: ir.Expr) -> bool:
        """Whether the last e-graph has this term for the program, up to the names of binders."""
        return locate(self.last.graph, self.last.root, term) is not None

    def draw(self, count: int, seed: int = 0) -> list[ir.Expr]:
        """Some different terms of the last e-graph for the program, the shortest first."""
        sampler, rng = MemberSampler(self.last.graph), random.Random(seed)
        found: dict[ir.Expr, ir.Expr] = {}
        for _ in range(TRIES * count):
            choice = sampler.sample(self.last.root, rng)
            if choice is None or len(found) == count:
                break
            try:
                term = from_egg(self.last.graph, choice)
            except LiftError:  # an open member of a closed class
                continue
            found.setdefault(canonical(term), term)
        return sorted(found.values(), key=lambda t: sum(1 for _ in ir.subterms(t)))


@dataclass(frozen=True)
class Comparison:
    """Schedules on one program."""

    outcomes: tuple[Outcome, ...]
    sketches: tuple[Sketch, ...] = ()

    def __getitem__(self, name: str) -> Outcome:
        return next(o for o in self.outcomes if o.name == name)

    def only_in(self, name: str, count: int = DRAWN, seed: int = 0) -> list[ir.Expr]:
        """Of some terms drawn from a schedule's e-graph those that no other schedule has, the shortest first."""
        others = [o for o in self.outcomes if o.name != name]
        return [term for term in self[name].draw(count, seed) if not any(o.holds(term) for o in others)]

    def __str__(self) -> str:
        heads = ("schedule", "phase", "ended by", "iterations", "seconds", "tuples", "e-nodes", "e-classes")
        rows: list[Sequence[str]] = [heads]
        for outcome in self.outcomes:
            for number, run in enumerate(outcome.runs):
                size = (run.tuples, run.nodes, run.classes)
                ends = (run.stop_reason.value, str(len(run.iterations)), f"{run.seconds:.2f}")
                rows.append(("" if number else outcome.name, run.stage.phase.name, *ends, *map(str, size)))
        lines = [columns(rows, 3), ""]
        if self.sketches:
            names = [o.name for o in self.outcomes]
            reached = [
                (str(s), *("no" if o.reaches(s) is None else "yes" for o in self.outcomes)) for s in self.sketches
            ]
            lines += [columns([("reaches", *names), *reached]), ""]
        for outcome in self.outcomes:
            lines += [f"{outcome.name} ends with", _indented(outcome.term)]
        for outcome in self.outcomes:
            drawn, only = outcome.draw(DRAWN), self.only_in(outcome.name)
            lines.append(f"of {len(drawn)} terms drawn from {outcome.name}, {len(only)} are in no other")
            lines += [_indented(only[0])] if only else []
        return "\n".join(lines)

    __repr__ = __str__


def compare(
    program: ir.Program | ir.Expr,
    schedules: Mapping[str, Sequence[Phase | Stage]],
    sketches: Sequence[Sketch] = (),
    *,
    on_iteration: Callable[[str, Reached], None] = lambda name, run: None,
) -> Comparison:
    """Run schedules on one program of concrete sizes, each in a child process, and compare what they reach.

    Parameters
    ----------
    sketches
        What to look for in the last e-graph of each.
    on_iteration
        Called with the name of the schedule and the state of its present phase after each iteration.

    Raises
    ------
    InputProblem
        If a schedule has no phases.
    RunProblem
        If a child fails before its first iteration.
    """
    term = program.body if isinstance(program, ir.Program) else program
    empty = [name for name, phases in schedules.items() if not phases]
    if empty or not schedules:
        raise InputProblem(f"the schedule {empty[0]} has no phases" if empty else "there are no schedules to compare")
    outcomes = (run_schedule(term, name, phases, on_iteration=on_iteration) for name, phases in schedules.items())
    return Comparison(tuple(outcomes), tuple(sketches))


def run_schedule(
    term: ir.Expr,
    name: str,
    phases: Sequence[Phase | Stage],
    *,
    on_iteration: Callable[[str, Reached], None] = lambda name, run: None,
) -> Outcome:
    """Run a schedule in a child process; cut short, by a limit or Ctrl-C, it keeps what arrived.

    Raises
    ------
    RunProblem
        If the child process fails before its first iteration.
    """
    all_limits = [p.phase.limits if isinstance(p, Stage) else p.limits for p in phases]
    seconds = sum(limits.seconds for limits in all_limits) + STARTUP_SECONDS
    memory = max(limits.memory_mb for limits in all_limits)
    child = Stream(_states, term, tuple(phases), time_limit=seconds, memory_limit=memory << 20)
    runs: dict[int, Reached] = {}
    last: Saturation | None = None
    reason: StopReason | None = None
    try:
        for number, run, state in child:
            runs[number] = run
            last = state or last
            on_iteration(name, run)
        reason = ENDS.get(child.end.kind)
    except KeyboardInterrupt:
        if last is None:
            raise
        reason = StopReason.INTERRUPTED
    if last is None:
        raise RunProblem(f"the schedule {name} failed before its first iteration: {child.end.text or child.end.kind}")
    done = list(runs.values())
    if reason is not None:
        done[-1] = replace(done[-1], stop_reason=reason)
    return Outcome(name, tuple(done), last)


def _states(term: ir.Expr, phases: tuple[Phase | Stage, ...]) -> Iterator[tuple[int, Reached, Saturation | None]]:
    """The state of each phase after each iteration, with its e-graph where that is small or the last of the phase."""
    for number, phase in enumerate(phases):
        early = isinstance(phase, Stage)
        last: tuple[Reached, Saturation] | None = None
        for last in search_stage(term, phase if early else Stage(phase, ANY), early=early):
            run, state = last
            yield number, run, state if run.tuples <= LARGEST_SNAPSHOT else None
        assert last is not None
        run, state = last
        if run.tuples > LARGEST_SNAPSHOT:
            yield number, run, state
        if run.term is None:
            return
        term = run.term


def _indented(term: ir.Expr) -> str:
    return "\n".join(f"  {line}" for line in print_term(term).splitlines())
