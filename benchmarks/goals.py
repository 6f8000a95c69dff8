"""The seven goals of sketch-guided equality saturation for matrix multiplication, guided and unguided.

Each goal is a version of mm, 1024³ with tiles of 32 by 32 and chunks of 4 of the sum, that a sketch describes:
the versions of TVM's tutorial on matrix multiplication for CPUs, as in Koehler et al., "Guided equality saturation",
POPL 2024. Guided, each is reached in at most three sketches, the goal's own included. Unguided, the rules of all
stages of a goal run together, with its own sketch alone; and, as somebody would search who does not know which rules
lead there, every rule of the book runs, with all seven sketches watched in one saturation. Every term that is found
guided is compared with the program on a smaller instance by the tests.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import harness

from lift_egraph.api import Matcher, rules as book, sketch as sk, specialise
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.saturate import ENDS, STARTUP_SECONDS, Limits, Phase, StopReason, run_phase
from lift_egraph.guided.stages import Guided, Stage, guide
from lift_egraph.language import ir
from lift_egraph.process.child import Stream
from lift_egraph.programs import load
from lift_egraph.rules.fusion import map_fusion
from lift_egraph.rules.interchange import interchange_rules
from lift_egraph.rules.macros import SIMPLIFICATION, register_blocking_2d, split_reduction, stage, untiled
from lift_egraph.rules.opencl_parallel import map_to_glb0, map_to_seq
from lift_egraph.rules.opencl_vector import vectorise_map
from lift_egraph.rules.packing import keep_block_in_private, pack_blocks
from lift_egraph.rules.reduction import combine_lifted_with_map, reduce_map_to_seq, split_reduce_seq

LOWERING = (reduce_map_to_seq, combine_lifted_with_map, map_to_seq)


@dataclass(frozen=True)
class Problem:
    """Square matrices, the length of a tile and of a chunk of the sum, and the lanes of a vector."""

    size: int = 1024
    tile: int = 32
    chunk: int = 4
    lanes: int = 8

    @property
    def program(self) -> ir.Program:
        """Matrix multiplication at this size."""
        return specialise(load("mm"), {"M": self.size, "K": self.size, "N": self.size})

    @property
    def count(self) -> int:
        """The number of tiles in a row or column."""
        return self.size // self.tile


@dataclass(frozen=True)
class Goal:
    """A version of mm, and the stages that lead to it."""

    name: str
    stages: tuple[Stage, ...]

    @property
    def sketch(self) -> sk.Sketch:
        """The last stage's: what is wanted in the end."""
        return self.stages[-1].sketch


def goals(p: Problem) -> tuple[Goal, ...]:
    """The seven goals, from the plainest."""
    add = sk.call("add", sk.ANY, sk.call("mul"))
    sizes, tile, n, k = (p.size, p.size), (p.tile, p.tile), p.tile, p.chunk
    chunks = {p.size: (p.chunk,)}

    def result(
        block: sk.Sketch, *, outer: Callable[..., sk.PatternSketch] = sk.map_seq, packed: bool = False
    ) -> sk.Sketch:
        columns = sk.split(n, sk.transpose())
        if packed:
            columns = sk.Contains(sk.to_memory("global", sk.ANY))
        body = sk.map_seq(block, columns, length=p.count)
        return sk.join(outer(sk.map_(sk.join(), sk.transpose(body)), length=p.count))

    lanes = sk.map_seq(sk.vectorize(p.lanes, add), length=n // p.lanes)
    chunks_of_sum, chunk, rows = sk.reduce_seq(length=p.size // k), sk.reduce_seq(length=k), sk.map_seq(length=n)
    by_steps = sk.nest(chunks_of_sum, chunk, rows, sk.map_seq(add, length=n)).inner
    by_vectors = sk.nest(chunks_of_sum, chunk, rows, lanes).inner
    by_rows = sk.nest(chunks_of_sum, rows, chunk, lanes).inner
    in_registers = sk.Contains(sk.to_memory("private", by_rows))

    blocking = register_blocking_2d(sizes, tile, p.size).stages
    row_of_block = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(sk.call("mul"), length=n)), length=k)
    permuted = (
        *split_reduction(sizes, tile, p.size, k).stages,
        stage(
            "reorder",
            (*interchange_rules, map_fusion),
            untiled(
                (p.count, p.count),
                sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(row_of_block, length=n)), length=p.size // k),
            ),
        ),
    )

    def lowered(sketch: sk.Sketch, *rules: Rule) -> Stage:
        return stage("lower", (*LOWERING, *rules), sketch, tiles=chunks, widths=(p.lanes,))

    naive = sk.map_seq(sk.map_seq(sk.reduce_seq(add, length=p.size), length=p.size), length=p.size)
    parallel = result(in_registers, outer=lambda *a, **o: sk.map_level("mapGlb(0)", *a, **o), packed=True)
    vectors = (vectorise_map,)
    return (
        Goal("baseline", (lowered(naive),)),
        Goal("blocking", (*blocking, lowered(result(by_steps), split_reduce_seq))),
        Goal("vectorisation", (*blocking, lowered(result(by_vectors), split_reduce_seq, *vectors))),
        Goal("loop permutation", (*permuted, lowered(result(by_rows), *vectors))),
        Goal("array packing", (*permuted, lowered(result(by_rows, packed=True), *vectors, pack_blocks))),
        Goal(
            "cache blocks",
            (*permuted, lowered(result(in_registers, packed=True), *vectors, pack_blocks, keep_block_in_private)),
        ),
        Goal("parallel", (*permuted, lowered(parallel, *vectors, pack_blocks, keep_block_in_private, map_to_glb0))),
    )


def unguided(p: Problem, goal: Goal, limits: Limits) -> Stage:
    """All rules that lead to a goal, and its own sketch alone."""
    used = tuple(dict.fromkeys(rule for s in goal.stages for rule in s.phase.rules))
    tiles = {p.size: (p.tile, p.chunk)} if len(goal.stages) > 1 else {}
    return Stage(Phase("all at once", used, SIMPLIFICATION, tiles, (p.lanes,), limits), goal.sketch)


@dataclass(frozen=True)
class Watched:
    """How far one saturation got, and which sketches have been satisfied after which iteration.

    Seconds are by the clock, and CPU seconds those of the process.
    """

    found: dict[str, tuple[int, float, float]]
    iterations: int
    seconds: float
    cpu_seconds: float
    peak_mb: float
    nodes: int
    classes: int
    stop_reason: StopReason


def watch(term: ir.Expr, phase: Phase, sketches: dict[str, sk.Sketch]) -> Iterator[tuple[Any, ...]]:
    """Run a phase in this process and look for each sketch after each iteration, until all are satisfied.

    Yields the fields of `Watched`: classes of a script cannot be sent home.
    """
    found: dict[str, tuple[int, float, float]] = {}
    began, began_cpu = time.perf_counter(), time.process_time()
    for state in run_phase(term, phase):
        done, matcher = len(state.iterations), Matcher(state.graph)
        for name, sketch in sketches.items():
            if name not in found and matcher.best(state.root, sketch) is not None:
                found[name] = done, time.perf_counter() - began, time.process_time() - began_cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        reason = StopReason.SATISFIED if len(found) == len(sketches) else state.stop_reason
        graph = state.graph
        seconds = time.perf_counter() - began, time.process_time() - began_cpu
        yield dict(found), done, *seconds, peak, graph.node_count, graph.class_count, reason
        if reason is StopReason.SATISFIED:
            return


def whole_book(p: Problem, limits: Limits) -> Watched:
    """Every rule of the book in one saturation that is searched for all goals."""
    exploring = tuple(r for r in book.all_rules if r.phase != "simplification")
    tiles = {p.size: (p.tile, p.chunk)}
    phase = Phase("whole book", exploring, book.simplification, tiles, (p.lanes,), limits, ("local", "private"))
    sketches = {goal.name: goal.sketch for goal in goals(p)}
    seconds = limits.seconds + STARTUP_SECONDS
    child = Stream(watch, p.program.body, phase, sketches, time_limit=seconds, memory_limit=limits.memory_mb << 20)
    last = None
    for message in child:
        last = Watched(*message)
        print(f"whole book, iteration {last.iterations}: {last.nodes} e-nodes, {', '.join(last.found) or 'none'} found")
    assert last is not None, child.end
    return replace(last, stop_reason=ENDS.get(child.end.kind, last.stop_reason))


def main() -> None:
    parser = harness.options("goals", __doc__ or "", has_device=False)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each goal, unguided (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=1000, help="MB for each goal, unguided (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="for each goal, unguided (default: %(default)s)")
    parser.add_argument("--guided-only", action="store_true", help="leave out the unguided searches")
    arguments = parser.parse_args()
    p = Problem()
    rows: list[harness.Row] = []
    found: list[Guided] = []
    free = Limits(iterations=100, nodes=10**9, seconds=arguments.seconds, memory_mb=arguments.memory)
    for goal in goals(p):
        guided = guide(p.program.body, goal.stages)
        found.append(guided)
        rows.append((goal.name, "guided", len(goal.stages), *figures(guided)))
        if not arguments.guided_only:
            alone = [guide(p.program.body, (unguided(p, goal, free),)) for _ in range(arguments.runs)]
            _, *slowest = figures(max(alone, key=lambda g: (not g.found, g.cpu_seconds)))
            rows.append((goal.name, "unguided", 1, f"{sum(g.found for g in alone)} of {len(alone)}", *slowest))
    if not arguments.guided_only:
        every = whole_book(p, free)
        for goal in goals(p):
            at, *seconds = every.found.get(goal.name, (every.iterations, every.seconds, every.cpu_seconds))
            is_found = goal.name in every.found
            ended = StopReason.SATISFIED if is_found else every.stop_reason
            size = (every.peak_mb, every.nodes, every.classes)
            rows.append((goal.name, "whole book", 1, "yes" if is_found else "no", *seconds, *size, at, ended.value))
    harness.report(
        arguments.out,
        f"The seven goals of mm, {p.size}³, tile {p.tile}×{p.tile}×{p.chunk}",
        ("goal", "", "sketches", *FIGURES),
        rows,
        notes=(
            f"all guided goals together: {sum(g.seconds for g in found):.1f} s, at most "
            f"{max(g.peak_mb for g in found):.0f} MB",
            "CPU seconds are those of the search process, which other work on the machine does not change much",
            "seconds are those of saturation, matching and extraction in the search process, without its start; the "
            "start of the interpreter with egglog takes another 1 to 2 s for each search",
            "e-nodes and e-classes are those of the largest stage, terms and functions only",
            f"unguided: the rules of all stages and the goal's sketch alone, within {free.seconds:.0f} s and "
            f"{free.memory_mb} MB, in {arguments.runs} runs: figures are those of the slowest; those of a search that "
            "failed are of its last iteration",
            f"whole book: all {len(book.all_rules)} rules, in one saturation that is searched for all seven sketches "
            "after each iteration, within the same limits; memory and sizes are those of its last iteration",
        ),
    )


FIGURES = ("found", "seconds", "CPU seconds", "peak MB", "e-nodes", "e-classes", "iterations", "ended by")


def figures(found: Guided) -> tuple[str, float, float, float, int, int, int, str]:
    """What a row says of a search."""
    largest = max(found.stages, key=lambda s: s.nodes)
    iterations = sum(len(s.iterations) for s in found.stages)
    last = found.stages[-1].stop_reason.value
    return (
        "yes" if found.found else "no",
        found.seconds,
        found.cpu_seconds,
        found.peak_mb,
        largest.nodes,
        largest.classes,
        iterations,
        last,
    )


if __name__ == "__main__":
    main()
