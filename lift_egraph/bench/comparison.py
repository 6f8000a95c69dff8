"""A kernel beside its peers: results compared, then timed in turns.

Of each peer the best of its schedules is timed: which one that is, a few runs say. Compilation and first runs are in no
time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lift_egraph.bench.folder import PeerTime
from lift_egraph.bench.peers import Peer
from lift_egraph.bench.timing import SPIN, interleaved
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.errors import LiftError
from lift_egraph.meaning.values import leaves_of

TRIED = 3  # runs that say which schedule is the best
TOLERANCE = 1e-3  # of the largest element
APART = 1e-3  # of all elements: the nearest of two that are as near may be either
Call = Callable[[], object]


@dataclass(frozen=True)
class _Ready:
    """A peer that is right, and how long a run took."""

    peer: Peer
    ms: float
    call: Call | None = None


def compared(
    runner: Runner, ours: Mapping[str, Plan], others: Sequence[Peer], rounds: int, inputs: str = "floats"
) -> tuple[dict[str, float], list[PeerTime]]:
    """The milliseconds of our plans, and of the best schedule of each peer, in turns.

    The result of the first plan, which was validated, is what those of peers are compared with.
    """
    expected = [np.asarray(leaf) for leaf in leaves_of(runner.run(next(iter(ours.values())), inputs))]
    best: dict[str, _Ready] = {}
    problems: dict[str, str] = {}
    for peer in others:
        if peer.milliseconds:
            continue
        found = peer.problem or _ready(runner, peer, expected, inputs)
        if isinstance(found, str):
            problems[peer.library] = f"{peer.how}: {found}" if peer.how else found
        elif peer.library not in best or found.ms < best[peer.library].ms:
            best[peer.library] = found
    calls = {library: ready.call for library, ready in best.items() if ready.call}
    plans = {library: ready.peer.plan for library, ready in best.items() if ready.peer.plan}
    times = interleaved(runner, {**ours, **plans}, calls, rounds, inputs)
    made = [PeerTime(library, ready.peer.how, times[library]) for library, ready in best.items()]
    made += [PeerTime(peer.library, peer.how, peer.milliseconds(rounds)) for peer in others if peer.milliseconds]
    made += [PeerTime(library, problem=text) for library, text in problems.items() if library not in best]
    return {name: times[name] for name in ours}, made


def _ready(runner: Runner, peer: Peer, expected: Sequence[np.ndarray], inputs: str) -> _Ready | str:
    """A peer whose result is right, or what is wrong with it."""
    try:
        if peer.plan:
            problem = difference(expected, list(leaves_of(runner.run(peer.plan, inputs))))
            return problem or _Ready(peer, runner.measure(peer.plan, inputs, repeats=TRIED, min_time=0.0).median_ms)
        assert peer.make is not None
        call = peer.make()
        result = call()
        problem = difference(expected, list(result) if isinstance(result, tuple) else [result])
        return problem or _Ready(peer, _milliseconds(call), call)
    except (LiftError, RuntimeError, ValueError) as wrong:  # a schedule that is not for these sizes
        return str(wrong).partition("\n")[0] or type(wrong).__name__


def _milliseconds(call: Call) -> float:
    found = []
    for _ in range(TRIED):
        time.sleep(SPIN / 4)
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return 1e3 * statistics.median(found)


def difference(expected: Sequence[np.ndarray], found: Sequence[object]) -> str:
    """What is wrong with a result; empty if it is as expected, up to rounding.

    >>> difference([np.array([1.0, 2.0])], [[1.0, 2.0001]]), difference([np.array([1.0, 2.0])], [[1.0, 2.1]])
    ('', 'a wrong result: 1 of 2 elements differ')
    """
    if len(expected) != len(found):
        return f"{len(found)} results, not {len(expected)}"
    for right, value in zip(expected, found, strict=True):
        flat, given = np.ravel(right).astype(np.float64), np.ravel(np.asarray(value)).astype(np.float64)
        if flat.size != given.size:
            return f"{given.size} elements, not {flat.size}"
        near = np.abs(given - flat) <= TOLERANCE * max(1e-30, float(np.abs(flat).max(initial=0.0)))
        wrong = int(flat.size - np.count_nonzero(near))
        if wrong > APART * flat.size:
            return f"a wrong result: {wrong} of {flat.size} elements differ"
    return ""
