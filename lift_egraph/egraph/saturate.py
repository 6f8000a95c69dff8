"""Saturation: phases of rules over a term, within limits, ending for a stated reason.

`run_phase` runs in the present process, one iteration a call, with a guard before each; `saturate`
runs it in a child process, which can be stopped at any time and leaves its last snapshot behind.
"""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import egglog
from egglog import i64
from egglog.egraph import ActionLike

from lift_egraph.algebra.distributing import Distribution, distributions_in
from lift_egraph.algebra.places import distinct_in
from lift_egraph.caching import cached_property
from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import check_depth, to_egg, type_to_egg
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.operators import Use, distribution_fact, facts_of, uses_in
from lift_egraph.egraph.rule import Rule, together
from lift_egraph.egraph.scratch import ROOT, Held, Schedule, Scratch
from lift_egraph.egraph.sorts import V
from lift_egraph.errors import RunProblem
from lift_egraph.language import ir
from lift_egraph.process.child import Stream

MARKS = {"local": sorts.stage_local, "private": sorts.stage_private}


class StopReason(enum.Enum):
    """Why a saturation ended."""

    SATISFIED = "sketch satisfied"
    SATURATED = "saturated"
    ITERATIONS = "iteration limit"
    NODES = "node limit"
    TIME = "time limit"
    MEMORY = "memory limit"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Limits:
    """Bounds of one phase; the first that is reached ends it.

    Attributes
    ----------
    iterations
        How often all rules are run.
    nodes
        Tuples in egglog's tables.
    seconds
        Wall-clock time.
    memory_mb
        Megabytes of the child process, where the phase runs in one (`lift_egraph.guided.stages.guide`).
    """

    iterations: int = 6
    nodes: int = 60_000
    seconds: float = 30.0
    memory_mb: int = 1000


@dataclass(frozen=True)
class Phase:
    """A named set of rules with the facts that steer them.

    Attributes
    ----------
    rules
        The rules to explore with, one iteration at a time.
    simplification
        The rules run to saturation after each iteration.
    tiles
        Chunk sizes by array length: ``{1024: (32,)}`` lets arrays of length 1024 be split by 32.
    widths
        The vector widths that vectorisation may introduce.
    limits
        When to stop.
    staging
        The address spaces, ``local`` and ``private``, that binders of parallel maps, and of loops around them, are
        marked for.
    operators
        Operators of reductions whose laws are looked for.
    distinct
        Indices of reductions by index that are distinct places.
    distributive
        Operators that distribute over those by which what they give is folded.
    """

    name: str
    rules: tuple[Rule, ...]
    simplification: tuple[Rule, ...]
    tiles: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    limits: Limits = Limits()
    staging: tuple[str, ...] = ()
    operators: tuple[Use, ...] = ()
    distinct: tuple[ir.Expr, ...] = ()
    distributive: tuple[Distribution, ...] = ()

    def about(self, term: ir.Expr) -> Phase:
        """The phase for a term: with what is known of the operators of its reductions, and of their places."""
        uses, distinct, distributive = known = uses_in(term), tuple(distinct_in(term)), distributions_in(term)
        if known == (self.operators, self.distinct, self.distributive):
            return self
        return replace(self, operators=uses, distinct=distinct, distributive=distributive)

    @property
    def facts(self) -> list[ActionLike]:
        """What an e-graph is told for the phase, beside the laws of scalar operations."""
        tiles = [sorts.tile(i64(n), i64(c)) for n, chunks in self.tiles.items() for c in chunks]
        widths = (sorts.lane_width(i64(w)) for w in self.widths)
        places = (sorts.distinct(to_egg(indices)) for indices in self.distinct)
        others = map(distribution_fact, self.distributive)
        return [*tiles, *widths, *places, *others, *(fact for use in self.operators for fact in facts_of(use))]


@dataclass(frozen=True)
class Iteration:
    """What one iteration did: how large the e-graph is, how long it took, and the matches of each rule.

    `nodes` and `classes` are those of terms and functions; `tuples` counts all rows of egglog's tables. `made` has for
    each rule that matched how many of both it adds by itself to the e-graph before the iteration, if that was asked.
    """

    number: int
    tuples: int
    seconds: float
    matches: Mapping[str, int]
    nodes: int = 0
    classes: int = 0
    made: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Saturation:
    """The outcome of a phase: the last e-graph that was reached, and why it went no further."""

    phase: str
    graph: FrozenEGraph
    iterations: list[Iteration]
    stop_reason: StopReason

    @property
    def root(self) -> int:
        """The class of the phase's term."""
        return self.graph.roots[ROOT]


class Prepared:
    """An e-graph that was told the rules of a phase, for one term after another."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.scratch = Scratch()
        cleaning = settled(r.ruleset for r in phase.simplification)
        exploring = together(r.ruleset for r in phase.rules)
        self.cleaning, self.exploring = map(self.scratch.compiled, (cleaning, exploring))

    @cached_property
    def apart(self) -> dict[str, Schedule]:
        """Each rule by itself; it is to be asked for before a term is held."""
        return {r.name: self.scratch.compiled(egglog.run(r.ruleset)) for r in self.phase.rules}


_IDLE: dict[tuple[tuple[int, ...], ...], list[Prepared]] = {}
_MOST_IDLE = 12  # kinds of phases


@contextmanager
def _prepared(phase: Phase) -> Iterator[Prepared]:
    """An e-graph with the rules of a phase: to tell it takes longer than to run them on a small term."""
    key = tuple(tuple(id(r.ruleset) for r in rules) for rules in (phase.rules, phase.simplification))
    idle = _IDLE.pop(key, [])
    found = idle.pop() if idle else Prepared(phase)
    is_whole = False
    try:
        yield found
        is_whole = True
    except GeneratorExit:
        is_whole = True
        raise
    finally:
        _IDLE[key] = [*_IDLE.pop(key, []), *idle, *[found] * is_whole]
        while len(_IDLE) > _MOST_IDLE:
            del _IDLE[next(iter(_IDLE))]


def marks(term: ir.Expr, phase: Phase) -> list[ActionLike]:
    """What an e-graph is told of the binders whose data is staged in memory: of parallel maps and loops around them."""
    if not phase.staging:
        return []
    functions = [t.function for t in ir.subterms(term) if _is_parallel(t)]
    functions += [t.operator for t in ir.subterms(term) if isinstance(t, ir.ReduceSeq) and _has_parallel(t.operator)]
    return [
        MARKS[space](V(binder.name, type_to_egg(binder.type)))
        for function in functions
        if isinstance(function, ir.Lambda)
        for binder in ir.bound_variables(function.binder)
        for space in phase.staging
    ]


def _is_parallel(term: ir.Part) -> TypeGuard[ir.MapLevel]:
    return isinstance(term, ir.MapLevel) and term.level != ir.SEQ


def _has_parallel(function: ir.Function) -> bool:
    return isinstance(function, ir.Lambda) and any(_is_parallel(t) for t in ir.subterms(function.body))


def run_phase(term: ir.Expr, phase: Phase, *, by_rule: bool = False) -> Iterator[Saturation]:
    """Run a phase in this process and yield the e-graph after each iteration.

    Each yielded `Saturation` has the stop reason that holds if no further one follows.

    Parameters
    ----------
    by_rule
        Whether iterations tell what each rule makes by itself, which takes several times as long.

    Raises
    ------
    SizeProblem
        If a size of the term is open.
    TypeProblem
        If the term is nested too deeply for the e-graph.
    """
    check_depth(term)
    facts = (*phase.about(term).facts, *marks(term, phase))
    with _prepared(phase) as prepared, _holding(prepared, term, facts, by_rule) as held:
        began = time.perf_counter()
        held.run(prepared.cleaning)
        frozen = held.freeze()
        done: list[Iteration] = []
        limits = phase.limits
        growth = 2.0
        while True:
            reason = _stop(frozen, done, limits, began, growth)
            yield Saturation(phase.name, frozen, list(done), reason or StopReason.ITERATIONS)
            if reason is not None:
                return
            made = _made(held, prepared, frozen) if by_rule else {}
            tick = time.perf_counter()
            matches = _matches(held.run(prepared.exploring), phase)
            held.run(prepared.cleaning)
            before, frozen = frozen.tuples, held.freeze()
            growth = frozen.tuples / max(before, 1)
            seconds, size = time.perf_counter() - tick, (frozen.node_count, frozen.class_count)
            done.append(Iteration(len(done) + 1, frozen.tuples, seconds, matches, *size, made))
            if frozen.tuples == before and not any(matches.values()):
                yield Saturation(phase.name, frozen, list(done), StopReason.SATURATED)
                return


def _holding(
    prepared: Prepared, term: ir.Expr, facts: Sequence[ActionLike], by_rule: bool
) -> AbstractContextManager[Held]:
    if by_rule:
        _ = prepared.apart  # no rule can be told to an e-graph that holds a term
    return prepared.scratch.holding(to_egg(term), facts)


def _made(held: Held, prepared: Prepared, frozen: FrozenEGraph) -> dict[str, tuple[int, int]]:
    """How many nodes and classes each rule that matches adds by itself."""
    with held.trial():
        matches = _matches(held.run(prepared.exploring), prepared.phase)
    found = {}
    for name in (name for name, count in matches.items() if count):
        with held.trial():
            held.run(prepared.apart[name])
            graph = held.freeze()
        found[name] = graph.node_count - frozen.node_count, graph.class_count - frozen.class_count
    return found


def _stop(
    frozen: FrozenEGraph, done: list[Iteration], limits: Limits, began: float, growth: float
) -> StopReason | None:
    if len(done) >= 2 and done[-1].tuples == done[-2].tuples:
        return StopReason.SATURATED
    if len(done) >= limits.iterations:
        return StopReason.ITERATIONS
    if frozen.tuples * max(growth, 1.0) > limits.nodes:  # the next iteration would likely pass the limit
        return StopReason.NODES
    if time.perf_counter() - began > limits.seconds:
        return StopReason.TIME
    return None


def _matches(counts: Iterable[tuple[Any, int]], phase: Phase) -> dict[str, int]:
    """Matches by rule name; egglog counts them by declaration."""
    owners = {declaration: r.name for r in phase.rules for declaration in r.ruleset.__egg_ruleset__.rules}
    found: Counter[str] = Counter()
    for declaration, count in counts:
        if declaration in owners:
            found[owners[declaration]] += count
    return dict(found)


def snapshots(term: ir.Expr, phase: Phase) -> Iterator[Saturation | Iteration]:
    """What a child process sends home: the e-graph after each iteration while it is small, else the iteration alone.

    A large e-graph takes seconds to receive, in which no interrupt would be heard; it is sent once, at the end.
    """
    unsent: Saturation | None = None
    for state in run_phase(term, phase):
        if state.graph.tuples <= LARGEST_SNAPSHOT:
            unsent = None
            yield state
        else:
            unsent = state
            yield state.iterations[-1]
    if unsent is not None:
        yield unsent


def saturate(
    term: ir.Expr, phase: Phase, *, on_iteration: Callable[[Saturation], None] = lambda saturation: None
) -> Saturation:
    """Run a phase in a child process and return the e-graph it reached, and why it stopped.

    Parameters
    ----------
    on_iteration
        Called with the state after each iteration.

    Returns
    -------
    Saturation
        The last e-graph that arrived (of a run that is cut short, the last of at most 100,000 tuples). Its stop
        reason is that of the limit that was reached: iterations, nodes, time, memory; `CRASHED` if the child
        died; `INTERRUPTED` after Ctrl-C, once there is anything.

    Raises
    ------
    RunProblem
        If the child failed before the first iteration.
    KeyboardInterrupt
        If Ctrl-C came before the first iteration.
    """
    limits = phase.limits
    child = Stream(
        snapshots, term, phase, time_limit=limits.seconds + STARTUP_SECONDS, memory_limit=limits.memory_mb << 20
    )
    last: Saturation | None = None
    try:
        for message in child:
            if isinstance(message, Saturation):
                last = message
            elif last is not None:
                last = replace(last, iterations=[*last.iterations, message])
            if last is not None:
                on_iteration(last)
    except KeyboardInterrupt:
        if last is None:
            raise
        return replace(last, stop_reason=StopReason.INTERRUPTED)
    end = child.end
    assert end is not None
    if last is None:
        raise RunProblem(f"saturation failed before its first iteration: {end.text or end.kind}")
    return replace(last, stop_reason=ENDS.get(end.kind, last.stop_reason))


LARGEST_SNAPSHOT = 100_000  # tuples of an e-graph that is sent home after each iteration
STARTUP_SECONDS = 5.0  # a child imports egglog and registers the rules before its clock should run
ENDS = {
    "time": StopReason.TIME,
    "memory": StopReason.MEMORY,
    "crashed": StopReason.CRASHED,
    "error": StopReason.CRASHED,
}
