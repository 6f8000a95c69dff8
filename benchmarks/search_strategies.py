"""Unguided, guided and random rewriting with the same rules for the same time, on mm and two stencils.

Each strategy has the high-level rules of `optimize` and those that lead to the goals. Guided search takes a few of
them for each stage of a goal, and a sketch that ends it; unguided search saturates with all at once; random rewriting
walks from the program again and again. What each has reached is judged in the same way: which goals are among it, and
what the best of its terms costs: the cheapest are mapped to a CPU by the rules that `optimize` uses, compiled, and
predicted by the analytical model. Judging does not count as search.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import goals
import harness
from random_walks.walks import random_walks

from lift_egraph.api import LiftError, Matcher, StructuralCost, parse_program, rules as book, specialise, vector_widths
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.saturate import STARTUP_SECONDS, Limits, Phase, run_phase
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided.sketch import ANY, Sketch, join, map_, slide
from lift_egraph.guided.stages import Stage, guide
from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names
from lift_egraph.process.child import Stream
from lift_egraph.process.child_process import resident_bytes
from lift_egraph.programs import load
from lift_egraph.rules import macros
from lift_egraph.workbench import Budget, lowering_phase

DEVICE = replace(POCL, compute_units=2)
BUDGET = Budget()
MEMORY = 6000  # MB, judging included
SEEDS = 5  # terms of each strategy that are mapped to the device
KERNELS = 6  # compiled for each of them
LOWERING = Limits(iterations=6, nodes=60_000, seconds=20.0)
JUDGING = 600.0  # seconds


@dataclass(frozen=True)
class Case:
    """A program with goals, each with the stages that lead to it."""

    program: ir.Program
    goals: dict[str, tuple[Stage, ...]]

    @property
    def sketches(self) -> dict[str, Sketch]:
        """What is wanted: the last stage's sketch of each goal."""
        return {name: stages[-1].sketch for name, stages in self.goals.items()}

    def phase(self, seconds: float) -> Phase:
        """The rules of `optimize` and of all stages at once, with the stages' tiles."""
        phases = [s.phase for stages in self.goals.values() for s in stages]
        rules = tuple(dict.fromkeys((*book.algorithmic, *(r for p in phases for r in p.rules))))
        tiles: dict[int, tuple[int, ...]] = {}
        for n, chunks in ((n, c) for p in phases for n, c in p.tiles.items()):
            tiles[n] = tuple(dict.fromkeys((*tiles.get(n, ()), *chunks)))
        limits = Limits(iterations=100, nodes=10**9, seconds=seconds, memory_mb=MEMORY)
        return Phase("all at once", rules, macros.SIMPLIFICATION, tiles, (), limits)


def cases() -> tuple[Case, ...]:
    """Matrix multiplication and stencils in one and two dimensions."""
    p = goals.Problem(tile=8)  # blocks of 32 by 32, as published, are more than a core has registers for
    named = {g.name: g for g in goals.goals(p)}
    sizes, tile = (p.size, p.size), (p.tile, p.tile)
    permuted = named["loop permutation"].stages[:-1]
    mm = Case(
        p.program,
        {
            "tiles": macros.tiling(sizes, tile).stages,
            "blocks": macros.register_blocking_2d(sizes, tile, p.size).stages,
            "chunks": permuted[:-1],
            "permuted": permuted,
        },
    )
    n, outer, inner = 1 << 22, 4096, 64
    line = parse_program(
        f"program sums(xs: [f32]{n}) = map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(1, 1, clamp, xs)))"
    )
    tiles = macros.overlapped_tiling(n, outer, 3)
    within = join(map_(map_(ANY, slide(3, 1), length=inner), slide(inner + 2, inner), length=outer // inner))
    twice = join(map_(within, slide(outer + 2, outer), length=n // outer))
    again = replace(macros.overlapped_tiling(outer, inner, 3).stages[0], sketch=twice)
    grid = specialise(load("j2d5pt"))
    plane = macros.overlapped_tiling_2d((4096, 4096), (64, 32), 3)
    return (
        mm,
        Case(line, {"tiles": tiles.stages, "tiles in tiles": (*tiles.stages, again)}),
        Case(grid, {"bands": plane.stages[:1], "turned bands": plane.stages[:2], "tiles": plane.stages}),
    )


# --- strategies, each in a child process ------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a strategy reached, and how large it became."""

    seconds: float
    peak_mb: float
    found: tuple[str, ...]
    predicted_ms: float | None
    nodes: int | None = None
    classes: int | None = None
    terms: int | None = None
    steps_per_second: float | None = None


def guided(case: Case) -> Outcome:
    """Every goal by its sketches; a stage that several goals begin with is searched for each."""
    runs = {name: guide(case.program.body, stages) for name, stages in case.goals.items()}
    found = tuple(name for name, run in runs.items() if run.found)
    reached = [runs[name].term for name in found]
    stages = [s for run in runs.values() for s in run.stages]
    (predicted,) = in_child(best_prediction, case.program, reached)
    return Outcome(
        sum(run.seconds for run in runs.values()),
        max(run.peak_mb for run in runs.values()),
        found,
        predicted,
        sum(s.nodes for s in stages),
        sum(s.classes for s in stages),
    )


def unguided(case: Case, seconds: float) -> Outcome:
    """One saturation; what counts is the e-graph after the last iteration that ended in time."""
    child = Stream(grow, case, seconds, time_limit=seconds + STARTUP_SECONDS, memory_limit=MEMORY << 20)
    states = [state for state in child if state[1] <= seconds]
    iterations, used, peak, nodes, classes = states[-1]
    ((found, predicted),) = in_child(judged_saturation, case, iterations)
    return Outcome(used, peak, found, predicted, nodes, classes)


def grow(case: Case, seconds: float) -> Iterator[tuple[int, float, float, int, int]]:
    """Iterations, seconds, MB, e-nodes and e-classes after each iteration."""
    began = time.perf_counter()
    for state in run_phase(case.program.body, case.phase(seconds)):
        used, graph = time.perf_counter() - began, state.graph
        yield len(state.iterations), used, resident_bytes() / 1e6, graph.node_count, graph.class_count


def judged_saturation(case: Case, iterations: int) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """The goals in the e-graph after some iterations, and the best prediction of its terms."""
    phase = case.phase(1e9)
    *_, last = run_phase(case.program.body, replace(phase, limits=replace(phase.limits, iterations=iterations)))
    seeds = [term for _, term in cheapest(last.graph, last.root)]
    found = tuple(contained(last.graph, last.root, case.sketches))
    yield from ((found, p) for p in best_prediction(case.program, seeds))


def at_random(case: Case, seconds: float, seed: int) -> Outcome:
    """Random walks for a time."""
    ((used, peak, terms, steps, found, predicted),) = in_child(walk, case, seconds, seed, more=seconds)
    return Outcome(used, peak, found, predicted, terms=terms, steps_per_second=steps / used)


def walk(case: Case, seconds: float, seed: int) -> Iterator[tuple[Any, ...]]:
    """Seconds, MB, visited terms, steps, goals, best prediction."""
    used, peak, terms, steps = 0.0, 0.0, 0, 0
    found: set[str] = set()
    seeds: list[tuple[float, ir.Expr]] = []
    for visited in random_walks(case.program.body, case.phase(seconds), seed=seed):
        used, steps, terms = used + visited.seconds, steps + visited.steps, terms + len(visited.terms)
        peak = max(peak, resident_bytes() / 1e6)
        missing = {name: sketch for name, sketch in case.sketches.items() if name not in found}
        found |= contained(visited.graph, visited.root, missing)
        seeds = distinct([*seeds, *cheapest(visited.graph, visited.root)])[:SEEDS]
        if used >= seconds:
            break
    ordered = tuple(name for name in case.goals if name in found)
    for predicted in best_prediction(case.program, [term for _, term in seeds]):
        yield used, peak, terms, steps, ordered, predicted


def in_child(function: Any, *arguments: Any, more: float = 0.0) -> list[Any]:
    """The messages of a generator in a child process, which has to finish."""
    child = Stream(function, *arguments, time_limit=JUDGING + more, memory_limit=MEMORY << 20)
    found = list(child)
    if child.end.kind != "finished":
        raise SystemExit(f"{function.__name__} {child.end.text}\n{child.end.output}")
    return found


# --- judging ----------------------------------------------------------------------------------------------


def contained(graph: FrozenEGraph, root: ClassId, sketches: dict[str, Sketch]) -> set[str]:
    """The sketches that a member of a class satisfies."""
    matcher = Matcher(graph)
    return {name for name, sketch in sketches.items() if matcher.best(root, sketch) is not None}


def cheapest(graph: FrozenEGraph, root: ClassId) -> list[tuple[float, ir.Expr]]:
    """The high-level terms that `optimize` would map to the device."""
    found = best_terms(
        graph,
        root,
        StructuralCost(),
        SEEDS,
        tries=BUDGET.seed_tries,
        per_shape=SEEDS,
        key=skeleton,
        plainness=BUDGET.plainness,
    )
    return [(f.cost, f.term) for f in found]


def distinct(found: Sequence[tuple[float, ir.Expr]]) -> list[tuple[float, ir.Expr]]:
    """Terms that compute differently, cheapest first."""
    by_key: dict[Any, tuple[float, ir.Expr]] = {}
    for cost, term in sorted(found, key=lambda f: f[0]):
        by_key.setdefault(skeleton(term), (cost, term))
    return list(by_key.values())


def best_prediction(program: ir.Program, seeds: Iterable[ir.Expr]) -> Iterator[float | None]:
    """The least milliseconds that the analytical model predicts for a kernel of one of the terms, or the program."""
    best: float | None = None
    seeds = {skeleton(term): term for term in (program.body, *seeds)}.values()
    phase = lowering_phase(DEVICE, vector_widths(program, DEVICE, BUDGET.widths), LOWERING)
    for seed in seeds:
        *_, lowered = run_phase(seed, phase)
        terms = best_terms(
            lowered.graph,
            lowered.root,
            StructuralCost().on(DEVICE),
            BUDGET.lowered,
            tries=BUDGET.lowered_tries,
            per_shape=BUDGET.lowered_per_shape,
            key=skeleton,
        )
        for found in terms[:KERNELS]:
            candidate = replace(program, body=unique_names(found.term))
            try:
                plan = compile_program(candidate, DEVICE)
                predicted = predict(plan, DEVICE).predicted_ms
            except LiftError:  # legal in the e-graph's eyes, but not for the code generator
                continue
            best = predicted if best is None else min(best, predicted)
    yield best


# --- the table --------------------------------------------------------------------------------------------


def row(case: Case, name: str, outcomes: Sequence[Outcome]) -> harness.Row:
    """The medians of some runs; with several, each goal with the number of runs that reached it."""

    def median(values: Iterable[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return statistics.median(known) if known else None

    counts = {goal: sum(goal in o.found for o in outcomes) for goal in case.goals}
    reached = [f"{g} {n} of {len(outcomes)}" if len(outcomes) > 1 else g for g, n in counts.items() if n]
    terms = median(o.terms for o in outcomes)
    return (
        case.program.name,
        name,
        median(o.seconds for o in outcomes),
        median(o.peak_mb for o in outcomes),
        outcomes[0].nodes,
        outcomes[0].classes,
        None if terms is None else int(terms),
        median(o.steps_per_second for o in outcomes),
        ", ".join(reached) or "none",
        median(o.predicted_ms for o in outcomes),
    )


def main() -> None:
    parser = harness.options("search_strategies", __doc__ or "", has_device=False)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each strategy (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="of random rewriting (default: %(default)s)")
    parser.add_argument("--only", nargs="*", help="names of programs")
    arguments = parser.parse_args()
    rows: list[harness.Row] = []
    chosen = [c for c in cases() if not arguments.only or c.program.name in arguments.only]
    for case in chosen:
        (plain,) = in_child(best_prediction, case.program, [])
        rows.append((case.program.name, "none", 0.0, None, None, None, 1, None, "none", plain))
        rows.append(row(case, "guided", [guided(case)]))
        rows.append(row(case, "unguided", [unguided(case, arguments.seconds)]))
        seeds = range(arguments.seeds)
        walks = [at_random(case, arguments.seconds, seed) for seed in seeds]
        rows.append(row(case, f"random, median of {len(walks)}", walks))
        harness.show("so far", HEADINGS, rows)
    harness.report(
        arguments.out,
        f"Search strategies with {arguments.seconds:g} s each",
        HEADINGS,
        rows,
        notes=(
            *(f"{c.program.name}: {len(c.phase(0).rules)} rules; goals {', '.join(c.goals)}" for c in chosen),
            "guided: seconds of all goals together, each of which ends as soon as it is reached; it takes a sketch for "
            "each stage; e-nodes and e-classes are summed over the stages, the peak is that of one process",
            "unguided: the e-graph after the last iteration that ended in time, and the seconds until then; a goal "
            "that it holds need not be among the terms that rank first",
            "random: a walk has up to 60 steps of a random rule at a random place; terms are those visited, each "
            "counted once in 4,000 steps",
            f"predicted: by the analytical model, for two CPU cores and the best kernel made of the program as it is "
            f"or of the terms that were found, of unguided and random search the {SEEDS} that rank first",
        ),
    )


HEADINGS = (
    "program", "search", "seconds", "peak MB", "e-nodes", "e-classes", "terms", "steps/s", "goals reached",
    "predicted ms",
)  # fmt: skip

if __name__ == "__main__":
    import search_strategies  # child processes import what they run: it must have a module's name

    search_strategies.main()
