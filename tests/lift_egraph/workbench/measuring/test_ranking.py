"""What the race of kernels learns from those that it measured."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

from lift_egraph import programs
from lift_egraph.api import specialise
from lift_egraph.codegen.devices import POCL
from lift_egraph.extract.baseline import naive_term
from lift_egraph.learned.strategies import Greedy, Strategy
from lift_egraph.process.child import End
from lift_egraph.workbench import Budget
from lift_egraph.workbench.candidates import Candidate, make_candidate
from lift_egraph.workbench.measuring.lanes import Clock, SearchEnd
from lift_egraph.workbench.measuring.race import Race
from lift_egraph.workbench.phases import Found, Leg, family
from tests.codegen.devices.test_devices import INFO

PROGRAM = specialise(programs.load("scal"), {"N": 64})


def leg(name: str, iterations: int = 3, **facts: Any) -> Leg:
    return Leg(name, PROGRAM.body, iterations, "cpu", **facts)


def test_a_family_is_what_restructured_a_term():
    tiled, lowering = leg("algorithmic", tiling={64: (4,)}), leg("lowering")
    assert family([tiled, lowering]) == family([leg("algorithmic", tiling={64: (8,)}), leg("lowering", widths=(8,))])
    assert family([tiled, lowering]) != family([tiled, lowering, leg("memory", spaces=("private",))])
    assert family([leg("algorithmic", 0), lowering]) == family([lowering]) == ()
    assert family([leg("groups"), lowering]) != family([leg("groups"), leg("sharing")])


def raced(measured: dict[str, float], predicted: dict[str, float], strategy: Strategy | None = None) -> list[str]:
    """The order in which terms are measured, one at a time, that take and are predicted to take so long by name.

    A name's first letter is its family.
    """
    order: list[str] = []
    naive = make_candidate(naive_term(PROGRAM), 0.0, replace(INFO, kind="cpu"), POCL)

    def make(found: Found) -> Candidate:
        name = found.way[0].spaces[1]
        kernel = replace(naive.plan.kernels[0], source=name)
        return replace(naive, plan=replace(naive.plan, kernels=(kernel,)), predicted_ms=predicted[name], way=found.way)

    inbox: SimpleQueue[Any] = SimpleQueue()
    for number, name in enumerate(predicted):
        body = replace(PROGRAM.inputs[1], name=name)
        way = (leg("memory", spaces=(name[0], name)),)
        inbox.put(Found(float(number), body, way))
    inbox.put(SearchEnd(End("finished", "finished")))

    class Lanes(SimpleNamespace):
        busy, ended, patience, interprets, working = 0, "", None, False, staticmethod(nullcontext)

        def free(self, beside: bool) -> bool:
            return self.busy == 0 and race.is_compiled

        def submit(self, candidate: Candidate, next_ones: list[Candidate]) -> None:
            self.busy += 1
            name = candidate.plan.kernels[0].source
            order.append(name)
            candidate.measured_ms, candidate.message = measured[name], "all equal"
            done: Future[Candidate] = Future()
            done.set_result(candidate)
            inbox.put(done)

        def done(self, message: Future[Candidate]) -> Candidate:
            self.busy -= 1
            return message.result()

    class Compiled(Race):
        @property
        def is_compiled(self) -> bool:
            return not self._backlog and not self._searching

    race = Compiled([], make, strategy=strategy)
    race.run(inbox, Lanes(), Budget(5), Clock(60), 1, lambda event: None)  # pyright: ignore[reportArgumentType]
    return order


def test_a_family_that_is_predicted_wrongly_costs_one_kernel(monkeypatch):
    spaces = "lift_egraph.workbench.measuring.race.family"
    monkeypatch.setattr(spaces, lambda way: tuple(s for x in way for s in x.spaces[:1]))
    predicted = {"a1": 1.0, "a2": 1.1, "a3": 1.2, "b1": 2.0, "b2": 2.1}
    measured = {"a1": 9.0, "a2": 9.0, "a3": 9.0, "b1": 2.0, "b2": 2.0}
    assert raced(measured, predicted) == ["a1", "b1", "b2", "a2", "a3"]
    assert raced(measured, predicted, Greedy()) == ["a1", "a2", "a3", "b1", "b2"]
