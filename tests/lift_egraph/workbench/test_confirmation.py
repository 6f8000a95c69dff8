"""The best kernel is found on a host that is slow now and then: the device's clock is simulated."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from functools import partial
from statistics import median

import numpy as np
import pytest

from lift_egraph.workbench.confirmation import FIRST, MOST, ROUNDS, Session, sessions, sign_test, slowdown

SEARCHES, KERNELS = 200, 31
BEST, BESIDE_MS = 1.38, 2.5
SECONDS, OLD_SECONDS = 1.5, 0.9


class Host:
    """A clock, and kernels that take up to 2.6 times as long in bursts of 0.6 s, with 1.5 s between two."""

    def __init__(self, seed: int) -> None:
        self._draw, self.now = np.random.default_rng(seed), 0.0
        lengths = self._draw.exponential(np.tile((1.5, 0.6), 40))
        self._changes, self._factors = np.cumsum(lengths).tolist(), self._draw.uniform(1.3, 2.6, 81).tolist()

    def run(self, ms: float) -> float:
        """What a run takes that takes so long at best."""
        at = bisect(self._changes, self.now)
        took = ms * (self._factors[at] if at % 2 else 1.0) * (1 + self._draw.exponential(0.02))
        self.now += 1e-3 * took
        return took

    def single(self, ms: float) -> list[float]:
        """All runs of a kernel that is measured."""
        end, found = self.now + 0.05, list[float]()
        while len(found) < 5 or self.now < end:
            found.append(self.run(ms))
        return found

    def turns(self, kernels: Sequence[float], who: Sequence[int], rounds: int, seconds: float) -> list[list[float]]:
        """As a device's worker takes them, after a build."""
        self.now += 0.1
        end, found = self.now + seconds, [list[float]() for _ in who]
        while len(found[0]) < rounds and (not found[0] or self.now < end):
            for own, n in zip(found, who, strict=True):
                own.append(median(self.run(kernels[n]) for _ in range(2)))
        return found


class Searched:
    """A search that measured kernels, of which one is the best by 5 % at least."""

    def __init__(self, seed: int) -> None:
        self.host, draw = Host(seed), np.random.default_rng(1000 + seed)
        self.kernels = draw.permutation([BEST, *(BEST * draw.uniform(1.05, 3.0, KERNELS - 1))]).tolist()
        runs, beside = [], []
        for ms in self.kernels:
            self.host.now += draw.uniform(0.2, 0.8)
            before = self.beside_ms()
            runs.append(self.host.single(ms))
            beside.append(max(before, self.beside_ms()))
        self.times = [median(own) for own in runs]
        pairs = zip(runs, beside, strict=True)
        self.promised = [min(own) / slowdown(other, min(beside)) for own, other in pairs]

    def beside_ms(self) -> float:
        """The least of some runs of another kernel."""
        return min(self.host.run(BESIDE_MS) for _ in range(3))

    def best_by_times(self) -> float:
        """The best in one session of all whose time was near the best time."""
        by_time = sorted(range(KERNELS), key=self.times.__getitem__)
        who = [n for n in by_time if self.times[n] <= 1.1 * self.times[by_time[0]] or n in by_time[:2]][:MOST]
        turns = self.host.turns(self.kernels, who, ROUNDS, OLD_SECONDS)
        return self.kernels[who[min(range(len(who)), key=lambda n: median(turns[n]))]]

    def best(self) -> tuple[float, float]:
        """The best of the last session, and the seconds that were left."""
        end, found = self.host.now + SECONDS, None
        turns = partial(self.host.turns, self.kernels)
        for session in sessions(self.promised, self.times, turns, lambda: end - self.host.now):
            found = session if session.finalists else found
        assert found is not None
        levelled = found.levelled
        return self.kernels[min(found.finalists, key=lambda n: median(levelled[n]))], end - self.host.now


def test_the_best_kernel_is_chosen_whatever_the_host_did_while_it_was_measured():
    found = [Searched(seed).best() for seed in range(SEARCHES)]
    assert {ms for ms, _ in found} == {BEST}
    assert min(left for _, left in found) > -0.15  # a round that was begun


def test_times_alone_choose_another_one_in_many_searches():
    found = [Searched(seed).best_by_times() for seed in range(SEARCHES // 4)]
    assert sum(ms > BEST for ms in found) > SEARCHES // 4 // 10


def asked(
    promised: Sequence[float], times: Sequence[float], seconds: float, beside: int | None = None, slow: float = 1.0
) -> list[tuple[tuple[int, ...], bool]]:
    """Which kernels meet, and whether the best is among them, where each takes `slow` times what it promised."""
    clock = [seconds]

    def turns(who: Sequence[int], rounds: int, seconds: float) -> list[list[float]]:
        clock[0] -= 1e-3 * sum(promised[n] for n in who)
        return [[slow * promised[n]] * rounds for n in who]

    found = sessions(promised, times, turns, lambda: clock[0], beside)
    return [(tuple(session.times), bool(session.finalists)) for session in found]


def test_many_meet_for_some_rounds_then_the_better_half():
    times = [1 + n / 100 for n in range(12)]
    assert asked(times, times, 10) == [(tuple(range(FIRST)), False), (tuple(range(MOST)), True)]
    assert asked(times, times, 1.3) == [(tuple(range(MOST)), True)]  # there is no time for many


def test_what_may_be_fast_takes_part_however_long_it_took():
    assert asked([1.0, 1.01, 1.02], [1.0, 2.0, 3.0], 10) == [((0, 1, 2), True)]
    assert asked([1.0, 1.5, 2.0], [1.0, 1.5, 2.0], 10) == [((0, 1), True)]  # the best two in any case


def test_what_was_measured_as_faster_than_the_best_in_turns_meets_it_too():
    assert asked([1.0, 1.1, 1.5, 1.6, 2.5], [1.0, 1.1, 1.5, 1.6, 2.5], 10, slow=2.0) == [
        ((0, 1), True),
        ((0, 2, 3), True),
    ]


def test_the_naive_kernel_is_timed_beside_the_last_if_it_is_not_far_behind():
    assert asked([3.0, 1.0, 1.1], [3.0, 1.0, 1.1], 10, beside=0) == [((1, 2, 0), True)]
    assert asked([5.0, 1.0, 1.1], [5.0, 1.0, 1.1], 10, beside=0) == [((1, 2), True)]


def test_the_naive_kernel_is_the_best_if_it_is_the_fastest_beside_the_last_and_no_time_is_left():
    def turns(who: Sequence[int], rounds: int, seconds: float) -> list[list[float]]:
        return [[1.0 if n == 0 else 1.5] * rounds for n in who]  # it was measured while the host was slow

    *_, last = sessions([1.5, 1.0, 1.1], [1.5, 1.0, 1.1], turns, iter([10.0, 10.0, 10.0, 0.0]).__next__, beside=0)
    assert last.finalists == (0, 1, 2)


@pytest.mark.parametrize(("seconds", "meet"), [(2.0, []), (5.0, [((0, 1), True)]), (7.6, [((0, 1, 2), True)])])
def test_long_kernels_meet_as_far_as_there_is_time_for_some_turns_of_each(seconds: float, meet: list[object]):
    times = [400.0, 410.0, 420.0, 430.0]
    assert asked(times, times, seconds) == meet


def test_a_session_that_fails_or_had_no_time_is_the_last_and_does_not_count():
    for times in ([], [[0.5, 0.5], [0.4, 0.4]]):  # two rounds say nothing
        failed = list(sessions([1.0, 1.1], [1.0, 1.1], lambda *_, times=times: times, lambda: 10.0))
        assert failed == [Session({})]


def test_a_slow_half_of_the_rounds_changes_no_order():
    """The medians of the times themselves are 3 and 2.2: the host became slow between the kernels of a round."""
    session = Session({0: (1.0, 1.0, 3.0, 3.0, 3.0), 1: (1.1, 1.1, 1.1, 3.3, 3.3)}, (0, 1))
    assert median(session.levelled[0]) < median(session.levelled[1])
    assert sign_test(*session.times.values()) > 0.05
