"""Guided search: phases with seeds.

A stage saturates from a seed with the rules of its phase until a sketch is satisfied; the cheapest satisfying
term is the next stage's seed, in a new e-graph. `guide` runs the stages in a child process and returns what each
one reached as a value, also where the search is cut short.

Source: Koehler et al., "Guided equality saturation", POPL 2024; macro rules: 000 §5.5 and §7.2.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lift_egraph.egraph.saturate import ENDS, STARTUP_SECONDS, Iteration, Phase, Saturation, StopReason, run_phase
from lift_egraph.errors import RunProblem, SketchProblem
from lift_egraph.guided.matcher import Matcher, Weigh, term_size
from lift_egraph.guided.nearest import Nearest, nearest
from lift_egraph.guided.sketch import Sketch
from lift_egraph.language import ir
from lift_egraph.process.child import Stream


@dataclass(frozen=True)
class Stage:
    """A phase that ends as soon as a sketch is satisfied.

    Attributes
    ----------
    phase
        Its rules, tiles and limits.
    sketch
        What to look for after each iteration.
    weigh
        Which satisfying term is the cheapest: what a node counts. Infinity rules a node out.
    """

    phase: Phase
    sketch: Sketch
    weigh: Weigh = term_size


@dataclass(frozen=True)
class Reached:
    """How far a stage got.

    Attributes
    ----------
    term
        The cheapest term that satisfies the stage's sketch; None while there is none.
    why_not
        Which part of the sketch is not satisfied, where none is; or the error that ended the search.
    seconds, cpu_seconds
        Of saturation, matching and extraction together, by the clock and of the search process.
    peak_mb
        The peak resident memory of the search process in this stage, in 10⁶ bytes; the interpreter and
        egglog take some 90 of them. 0 where the system does not say.
    nearest
        Where the stage failed, a term that lacks one part of the sketch, if there is one.
    """

    stage: Stage
    term: ir.Expr | None
    why_not: str
    iterations: tuple[Iteration, ...]
    stop_reason: StopReason
    seconds: float
    peak_mb: float
    tuples: int
    nodes: int
    classes: int
    nearest: Nearest | None = None
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Guided:
    """The stages of a guided search, in order; the last one has no term if the search failed."""

    program: ir.Expr
    stages: tuple[Reached, ...]
    wanted: int

    @property
    def found(self) -> bool:
        """Whether every stage reached its sketch."""
        return len(self.stages) == self.wanted and all(s.term is not None for s in self.stages)

    @property
    def term(self) -> ir.Expr:
        """The term that the last stage reached.

        Raises
        ------
        SketchProblem
            If the search failed; the message names the stage, what the sketch asks in vain, and the nearest term.
        """
        if self.found:
            if not self.stages:
                return self.program
            assert self.stages[-1].term is not None
            return self.stages[-1].term
        last = self.stages[-1]
        raise SketchProblem(
            f"stage {len(self.stages)} of {self.wanted}, {last.stage.phase.name}, ended ({last.stop_reason.value}) "
            f"after {len(last.iterations)} iterations: {last.why_not or 'it was not reached'}"
            f"{f'; {last.nearest}' if last.nearest else ''}"
        )

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return sum(s.seconds for s in self.stages)

    @property
    def cpu_seconds(self) -> float:
        """Of all stages."""
        return sum(s.cpu_seconds for s in self.stages)

    @property
    def peak_mb(self) -> float:
        """The largest of all stages."""
        return max((s.peak_mb for s in self.stages), default=0.0)


def search_stages(program: ir.Expr, stages: Sequence[Stage]) -> Iterator[Reached]:
    """Run stages in this process; yields the state of the present stage after each iteration.

    A state with a term is the last one of its stage.
    """
    seed = program
    for stage in stages:
        last: Reached | None = None
        for last, state in search_stage(seed, stage):
            if last.term is None and _is_last(state, stage):
                last = replace(last, nearest=nearest(Matcher(state.graph, stage.weigh), state.root, stage.sketch))
            yield last
        assert last is not None
        if last.term is None:
            return
        seed = last.term


def _is_last(state: Saturation, stage: Stage) -> bool:
    """Whether no other state follows; before the last one the reason to stop is that of no iterations left."""
    return state.stop_reason is not StopReason.ITERATIONS or len(state.iterations) >= stage.phase.limits.iterations


def search_stage(seed: ir.Expr, stage: Stage, *, early: bool = True) -> Iterator[tuple[Reached, Saturation]]:
    """The state of a stage after each iteration, with its e-graph; `early`: until its sketch is satisfied."""
    _forget_peak()
    began, began_cpu = time.perf_counter(), time.process_time()
    for state in run_phase(seed, stage.phase):
        matcher = Matcher(state.graph, stage.weigh)
        found = matcher.matches(state.root, stage.sketch)
        reached = Reached(
            stage,
            found[0].term if found else None,
            "" if found else matcher.why_not(state.root, stage.sketch),
            tuple(state.iterations),
            StopReason.SATISFIED if found and early else state.stop_reason,
            time.perf_counter() - began,
            _peak_mb(),
            state.graph.tuples,
            state.graph.node_count,
            state.graph.class_count,
            cpu_seconds=time.process_time() - began_cpu,
        )
        yield reached, state
        if found and early:
            break


def guide(
    program: ir.Expr, stages: Sequence[Stage], *, on_iteration: Callable[[Reached], None] = lambda reached: None
) -> Guided:
    """Run the stages of a guided search in a child process.

    Parameters
    ----------
    on_iteration
        Called with the state of the present stage after each iteration.

    Returns
    -------
    Guided
        What each stage reached. A stage that was cut short has the figures of its last iteration, and the
        limit that was reached as its stop reason; after Ctrl-C it is `StopReason.INTERRUPTED`.

    Raises
    ------
    RunProblem
        If the child failed before the first iteration.
    """
    if not stages:
        return Guided(program, (), 0)
    seconds = sum(s.phase.limits.seconds for s in stages) + STARTUP_SECONDS
    memory = max(s.phase.limits.memory_mb for s in stages)
    child = Stream(search_stages, program, tuple(stages), time_limit=seconds, memory_limit=memory << 20)
    done: list[Reached] = []
    fresh = True  # whether the next state begins a stage
    reason: StopReason | None = None
    try:
        for state in child:
            if fresh:
                done.append(state)
            done[-1] = state
            fresh = state.term is not None
            on_iteration(state)
        reason = ENDS.get(child.end.kind)
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    if not done:
        if reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        raise RunProblem(f"the search failed before its first iteration: {child.end.text}")
    if reason is not None:
        why_not = child.end.text if reason is StopReason.CRASHED else ""
        if fresh and len(done) < len(stages):
            done.append(Reached(stages[len(done)], None, why_not, (), reason, 0.0, 0.0, 0, 0, 0))
        elif not fresh:
            done[-1] = replace(done[-1], stop_reason=reason, why_not=why_not or done[-1].why_not)
    return Guided(program, tuple(done), len(stages))


_RESET_PEAK = "5"  # proc(5): resets the peak resident set size


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def _peak_mb() -> float:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(line.split()[1]) * 1024 / 1e6
