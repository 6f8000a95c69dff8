"""How kernels race for the time of a budget."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lift_egraph import programs
from lift_egraph.api import specialise
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.saturate import StopReason
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.learned.strategies import ByFamily
from lift_egraph.process.child import End
from lift_egraph.workbench import Budget
from lift_egraph.workbench.candidates import Candidate, make_candidate
from lift_egraph.workbench.confirmation import ROUNDS
from lift_egraph.workbench.exploration.tuned import Tuning
from lift_egraph.workbench.measuring.lanes import Clock, SearchEnd
from lift_egraph.workbench.measuring.race import Race, _Ready  # pyright: ignore[reportPrivateUsage]
from lift_egraph.workbench.phases import Found, Leg, PhaseSummary
from lift_egraph.workbench.report import Report
from tests.codegen.devices.test_devices import INFO


def test_the_time_may_end_between_two_looks_at_the_clock():
    class Clock:
        seconds, spent, looks = 1.0, 1.0, 0

        @property
        def left(self) -> float:
            self.looks += 1
            return 0.1 if self.looks == 1 else -0.1

    lanes = SimpleNamespace(busy=0, ended="", patience=None, interprets=False, free=lambda beside: False)
    clock = Clock()
    race = Race([], cast(Any, None))
    race.run(SimpleQueue(), cast(Any, lanes), Budget(1), cast(Any, clock), 1, lambda event: None)
    assert clock.looks > 1
    assert race.stop_reason == "time limit"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_that_went_nowhere_ends_it():
    lanes = SimpleNamespace(busy=0, ended="", patience=None, interprets=False, free=lambda beside: False)

    class Clock:
        seconds = spent = 1.0

        @property
        def left(self) -> float:
            with suppress(KeyboardInterrupt):  # as callbacks of weak references do
                os.kill(os.getpid(), signal.SIGINT)
            return 0.1

    race = Race([], cast(Any, None))
    with pytest.raises(KeyboardInterrupt):
        race.run(SimpleQueue(), cast(Any, lanes), Budget(1), cast(Any, Clock()), 1, lambda event: None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("spent", "finds", "ends"), [(0.7, 1, False), (0.9, 1, True), (0.9, 0, False)])
def test_the_search_ends_after_its_share_if_something_of_it_waits(spent: float, finds: int, ends: bool):
    clock: Any = SimpleNamespace(spent=spent, seconds=1.0)
    race = Race([], cast(Any, None))
    for _ in range(finds):
        race._hear(found("x"), clock, lambda event: None)  # pyright: ignore[reportPrivateUsage]
    assert race.lets_search_end(Budget(1), clock) is ends
    race._backlog.clear()  # pyright: ignore[reportPrivateUsage]
    assert not race.lets_search_end(Budget(1), clock)


PROGRAM = specialise(programs.load("scal"), {"N": 64})
NAIVE = make_candidate(naive_term(PROGRAM), 0.0, replace(INFO, kind="cpu"), POCL)


def found(name: str) -> Found:
    return Found(0.0, replace(PROGRAM.inputs[1], name=name), (Leg("lowering", PROGRAM.body, 1, "cpu"),))


class Told(Tuning):
    """Proposes some terms as soon as a certain one was measured."""

    def __init__(self, after: str, proposed: dict[str, float]) -> None:
        super().__init__(POCL, 0)
        self.after, self.proposed = after, proposed

    def learn(self, candidate: Candidate) -> list[Found]:
        return [found(name) for name in self.proposed] if candidate.plan.kernels[0].source == self.after else []


def order(
    predicted: dict[str, float],
    tuning: Told,
    budget: Budget,
    become: Callable[[Candidate], None] = lambda c: None,
    naive: Candidate | None = None,
    first_ms: float = float("inf"),
    seconds: float = 60.0,
) -> list[str]:
    """The order in which terms are measured, one at a time, that all take what they are predicted to take.

    What becomes of them may be another thing.
    """
    measured: list[str] = []
    times = {**predicted, **tuning.proposed}

    def make(item: Found) -> Candidate:
        assert isinstance(item.term, ir.Input)
        kernel = replace(NAIVE.plan.kernels[0], source=item.term.name)
        plan, program = replace(NAIVE.plan, kernels=(kernel,)), replace(PROGRAM, body=item.term)
        return replace(NAIVE, program=program, plan=plan, predicted_ms=times[item.term.name], way=item.way)

    inbox: SimpleQueue[Any] = SimpleQueue()
    for name in predicted:
        inbox.put(found(name))
    inbox.put(SearchEnd(End("finished", "finished")))

    class Lanes(SimpleNamespace):
        busy, ended, patience, interprets, working = 0, "", None, False, staticmethod(nullcontext)

        def free(self, beside: bool) -> bool:
            return self.busy == 0 and not beside

        def submit(self, candidate: Candidate, next_ones: list[Candidate]) -> None:
            self.busy += 1
            measured.append("naive" if candidate is naive else candidate.plan.kernels[0].source)
            candidate.measured_ms, candidate.message = candidate.predicted_ms, "all equal"
            become(candidate)
            done: Future[Candidate] = Future()
            done.set_result(candidate)
            inbox.put(done)

        def done(self, message: Future[Candidate]) -> Candidate:
            self.busy -= 1
            return message.result()

        def in_turns(self, *_: object) -> list[tuple[float, ...]]:
            return []

    race = Race([naive] if naive else [], make, 5e3, first_ms, tuning=tuning)
    race.run(inbox, cast(Any, Lanes()), budget, Clock(seconds), 1, lambda event: None)
    return measured


@pytest.mark.parametrize(("is_ready", "interprets", "made"), [(True, True, 0), (False, True, 1), (True, False, 1)])
def test_nothing_is_compiled_beside_the_interpreter_while_something_waits(is_ready: bool, interprets: bool, made: int):
    names: list[str] = []

    def make(item: Found) -> Candidate:
        names.append("a")
        return replace(NAIVE, program=replace(PROGRAM, body=item.term), way=item.way)

    class Clock:
        seconds, spent, looks = 10.0, 1.0, 0

        @property
        def left(self) -> float:
            self.looks += 1
            return 5.0 if self.looks <= 4 else 0.0

    lanes: Any = SimpleNamespace(
        busy=0, ended="", patience=None, interprets=interprets, working=nullcontext, free=lambda beside: False
    )
    race = Race([], make)
    race._take(found("a"))
    if is_ready:
        race._ready.append(_Ready(NAIVE, race._point(NAIVE), False, False))
    race.run(SimpleQueue(), lanes, Budget(10), cast(Any, Clock()), 1, lambda event: None)
    assert len(names) == made


LEAST = Budget(60, measured=2, measured_per_rank=0)


def test_other_points_of_a_plan_are_measured_in_the_order_of_what_is_expected():
    tuning = Told("a", {"a better": 0.5, "a worse": 2.0, "almost": 1.1})
    assert order({"a": 1.0, "b": 1.05, "c": 3.0}, tuning, replace(LEAST, measured=9)) == ["a", "a better", "b", "c"]
    assert order({"a": 1.0, "b": 1.05, "c": 3.0}, Told("a", {"almost": 1.1}), replace(LEAST, measured=9)) == [
        "a", "b", "almost", "c"
    ]  # fmt: skip


def test_other_points_follow_when_enough_others_were_measured():
    assert order({"a": 1.0, "b": 1.5, "c": 3.0}, Told("b", {"a better": 0.5}), LEAST) == ["a", "b", "a better"]
    nothing = replace(LEAST, tuning_share=0.0)
    assert order({"a": 1.0, "b": 1.5, "c": 3.0}, Told("b", {"a better": 0.5}), nothing) == ["a", "b"]


def test_a_point_that_the_search_found_itself_is_no_other_point():
    assert order({"a": 1.0, "b": 1.5}, Told("a", {"b": 1.5}), replace(LEAST, tuning_share=0.0)) == ["a", "b"]


def times_in_turns(race: Race, turns: Callable[[list[Candidate], int], list[tuple[float, ...]]]) -> list[float | None]:
    """The times before of what meets in turns, once the search has ended."""
    asked: list[float | None] = []

    class Lanes(SimpleNamespace):
        busy, ended, patience, interprets = 0, "", None, False

        def free(self, beside: bool) -> bool:
            return False

        def in_turns(self, candidates: list[Candidate], rounds: int, seconds: float) -> list[tuple[float, ...]]:
            asked.extend(c.measured_ms for c in candidates)
            return turns(candidates, rounds)

    inbox: SimpleQueue[Any] = SimpleQueue()
    inbox.put(SearchEnd(End("finished", "finished")))
    race.run(inbox, cast(Any, Lanes()), Budget(60), Clock(60), 1, lambda event: None)
    return asked


def test_the_best_are_timed_in_turns_at_the_end():
    def turns(candidates: list[Candidate], rounds: int) -> list[tuple[float, ...]]:
        return [tuple(ms for _ in range(rounds)) for ms in (1.2, 1.1, 1.1, 1.3, 3.6)]

    times = 3.0, 1.0, 1.05, 1.02, 1.5, 1.04
    made = [replace(NAIVE, measured_ms=ms, spread_ms=(ms, ms), valid=True, message="all equal") for ms in times]
    race = Race(made, cast(Any, None))
    assert times_in_turns(race, turns) == [1.0, 1.02, 1.04, 1.05, 3.0]  # the last one is naive
    found = Report(PROGRAM, "", "", [], race.candidates, 10, 1.0)
    assert [c.measured_ms for c in found.valid] == [1.1, 1.1, 1.2, 1.3, 1.5, 3.6]
    assert [len(c.turns_ms) for c in found.valid] == [ROUNDS] * 4 + [0, 0]
    assert found.best is race.candidates[3]
    assert found.speedup == 3.6 / 1.1
    assert [found.is_tie(c) for c in found.valid] == [False, True, False, False, False, False]
    assert found.runner_up is found.valid[1]
    assert found.p_value(found.valid[2]) == 2 * 0.5**ROUNDS


def test_what_was_too_slow_while_its_host_was_slow_is_tried_once_more():
    def always(candidate: Candidate) -> None:
        name = candidate.plan.kernels[0].source
        candidate.beside_ms = {"a": 2.0, "b": 1.0, "c": 1.1}[name]
        if name != "b":
            candidate.measured_ms, candidate.message, candidate.failure = None, "far slower", "too slow"

    enough = replace(LEAST, measured=9)
    assert order({"b": 1.0, "a": 1.1, "c": 1.2}, Told("", {}), enough, always) == ["b", "a", "c", "a"]


def test_what_nothing_could_be_compared_with_goes_again_when_there_is_something():
    def become(candidate: Candidate) -> None:
        name = candidate.plan.kernels[0].source
        candidate.is_open = name != "c" and not any(c == "c" for c in seen)
        candidate.valid = not candidate.is_open
        seen.append(name)

    seen: list[str] = []
    enough = replace(LEAST, measured=9)
    assert order({"a": 1.0, "b": 1.1, "c": 3.0}, Told("", {}), enough, become) == ["a", "b", "c", "a", "b"]


def test_a_naive_kernel_that_takes_long_goes_as_soon_as_others_can_only_be_compared_with_it():
    def become(candidate: Candidate) -> None:
        name = candidate.plan.kernels[0].source
        candidate.is_open = name in "ab" and all(n in "ab" for n in seen)
        candidate.valid = not candidate.is_open
        seen.append(name)

    seen: list[str] = []
    naive, enough = replace(NAIVE, predicted_ms=300.0), replace(LEAST, measured=9)
    found = order({"a": 1.0, "b": 1.1}, Told("", {}), enough, become, naive=naive, first_ms=1e3)
    assert found == ["a", "naive", "a", "b"]


@pytest.mark.parametrize(
    ("seconds", "measured"), [(0.1, ["naive", "a", "b"]), (0.3, ["a", "b", "naive"]), (9.0, ["a", "b"])]
)
def test_a_naive_kernel_that_takes_long_goes_late(seconds: float, measured: list[str]):
    naive = replace(NAIVE, predicted_ms=1e3 * seconds)
    told = Told("", {})
    assert order({"a": 1.0, "b": 1.1}, told, replace(LEAST, measured=9), naive=naive, first_ms=1e3) == measured


def test_a_naive_kernel_that_goes_late_goes_though_the_time_is_over_if_nothing_else_went():
    naive = replace(NAIVE, predicted_ms=0.0)
    assert order({}, Told("", {}), LEAST, naive=naive, first_ms=-1.0, seconds=1e-9) == ["naive"]


@pytest.mark.parametrize(("best", "measured"), [(1.0, ["c", "long", "b"]), (2.0, ["c", "b", "long"])])
def test_a_kernel_that_takes_long_to_build_goes_late_unless_much_is_expected_of_it(best: float, measured: list[str]):
    budget = replace(LEAST, measured=9, long_source=3)
    assert order({"c": 1.5, "b": 3.0, "long": best}, Told("", {}), budget) == measured


@pytest.mark.parametrize(
    ("best", "measured"), [("long", ["c", "long", "b"]), ("a long text", ["c", "b", "a long text"])]
)
def test_the_longer_a_kernel_is_the_later_it_goes(best: str, measured: list[str]):
    budget = replace(LEAST, measured=9, long_source=3)
    assert order({"c": 1.5, "b": 3.0, best: 1.0}, Told("", {}), budget) == measured


def test_what_was_timed_while_its_host_was_slow_meets_the_best():
    def turns(candidates: list[Candidate], rounds: int) -> list[tuple[float, ...]]:
        return [rounds * ((1.1 if c.measured_ms == 1.0 else 0.9),) for c in candidates]

    timed = [(1.0, 5.0, ""), (2.0, 10.0, ""), (2.1, 5.1, ""), (1.9, 10.0, "another host")]
    made = [replace(NAIVE, measured_ms=ms, beside_ms=b, host=h, valid=True, message="all equal") for ms, b, h in timed]
    race = Race([], cast(Any, None))
    race.candidates.extend(made)
    assert times_in_turns(race, turns) == [1.0, 2.0]
    assert Report(PROGRAM, "", "", [], race.candidates, 10, 1.0).best is made[1]


def test_without_time_for_the_last_turns_what_was_measured_stands():
    def turns(candidates: list[Candidate], rounds: int) -> list[tuple[float, ...]]:
        return [rounds * (9.0,) if len(candidates) > 4 else (9.0,) for _ in candidates]

    made = [replace(NAIVE, measured_ms=1 + n / 100, valid=True, message="all equal") for n in range(6)]
    race = Race([], cast(Any, None))
    race.candidates.extend(made)
    times_in_turns(race, turns)
    assert [(c.measured_ms, c.turns_ms) for c in made] == [(1 + n / 100, ()) for n in range(6)]


@pytest.mark.parametrize(("predicted", "is_long"), [(100.0, False), (200.0, True)])
def test_a_kernel_is_long_if_all_its_runs_take_long(predicted: float, is_long: bool):
    race = Race([], lambda item: replace(NAIVE, predicted_ms=predicted), 5e3)
    race._take(found("x"))
    race._compile(Budget(10), lambda event: None)
    assert [r.is_long for r in race._ready] == [is_long]


@pytest.mark.parametrize(("is_known", "chosen"), [(False, 1), (True, 2)])
def test_of_long_kernels_that_promise_as_much_the_first_that_was_found_goes_before_any_is_right(
    is_known: bool, chosen: int
):
    clock: Any = SimpleNamespace(spent=9.0, seconds=10.0, left=1.0)
    made = [replace(NAIVE, predicted_ms=ms) for ms in (900.0, 500.0, 450.0, 470.0)]
    race = Race([], cast(Any, None))
    race._ready.extend(_Ready(candidate, race._point(candidate), True, False) for candidate in made)
    race._best_ms = 800.0 if is_known else float("inf")
    assert race._next(clock, 0.0, enough=False) is made[chosen]


@pytest.mark.parametrize(
    ("predicted", "spent", "goes"), [(200.0, 2.0, False), (200.0, 3.0, True), (900.0, 3.0, False), (900.0, 6.0, True)]
)
def test_what_takes_much_of_the_budget_waits_longer_for_others(predicted: float, spent: float, goes: bool):
    clock: Any = SimpleNamespace(spent=spent, seconds=10.0, left=10.0 - spent)
    candidate = replace(NAIVE, predicted_ms=predicted)
    for fits_limit in (False, True):  # which is longer on a crowded machine
        race = Race([], cast(Any, None))
        race._ready.append(_Ready(candidate, race._point(candidate), not fits_limit, False))
        assert (race._next(clock, 0.0, enough=False) is candidate) is goes


@pytest.mark.parametrize(
    ("predicted", "spent", "is_first", "goes"),
    [(30.0, 2.0, True, False), (20.0, 2.0, True, True), (30.0, 6.0, True, True), (30.0, 2.0, False, True)],
)
def test_what_takes_some_time_waits_until_the_first_of_each_family_are_compiled(
    predicted: float, spent: float, is_first: bool, goes: bool
):
    clock: Any = SimpleNamespace(spent=spent, seconds=10.0, left=10.0 - spent)
    race, candidate = Race([], cast(Any, None)), replace(NAIVE, predicted_ms=predicted)
    race._ready.append(_Ready(candidate, race._point(candidate), False, False))
    for number in range(5):
        race._take(found(f"x{number}"))
    if not is_first:
        del race._backlog[:4]
    assert (race._next(clock, 0.0, enough=False) is candidate) is goes


@pytest.mark.parametrize(("best", "goes"), [(190.0, False), (210.0, True)])
def test_what_is_expected_to_be_much_faster_than_the_best_goes_though_enough_were_measured(best: float, goes: bool):
    clock: Any = SimpleNamespace(spent=2.0, seconds=10.0, left=8.0)
    race = Race([], cast(Any, None), strategy=ByFamily(boldness=0.0, promising=0.0))
    candidate = replace(NAIVE, predicted_ms=100.0)
    race._ready.append(_Ready(candidate, race._point(candidate), False, False))
    race._best_ms = best
    assert (race._next(clock, 0.0, enough=True) is candidate) is goes


@pytest.mark.parametrize(
    ("left", "why"), [(3.0, "enough kernels were measured"), (0.1, "the time was over before all that it found")]
)
def test_a_search_says_why_it_ended_and_why_some_were_not_run(left: float, why: str):
    clock: Any = SimpleNamespace(spent=2.0, seconds=10.0, left=left)
    lanes: Any = SimpleNamespace(busy=0, ended="", patience=None, interprets=False, free=lambda beside: False)
    race = Race([], lambda item: replace(NAIVE, predicted_ms=100.0))
    race._hear(PhaseSummary("algorithmic", 1, 1, 1, 1, 1.0, StopReason.TIME.value), clock, lambda event: None)
    race._hear(SearchEnd(End("finished", "finished")), clock, lambda event: None)
    race._ready.append(_Ready(NAIVE, race._point(NAIVE), False, False))
    race.run(SimpleQueue(), lanes, Budget(10), clock, 1, lambda event: None)
    assert race.stop_reason.startswith(f"time limit of a phase; {why}")
