"""How kernels race for the time of a budget."""

from __future__ import annotations

from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

from lift_egraph.workbench import Budget
from lift_egraph.workbench.race import Race


def test_the_time_may_end_between_two_looks_at_the_clock():
    class Clock:
        seconds, spent, looks = 1.0, 1.0, 0

        @property
        def left(self) -> float:
            self.looks += 1
            return 0.1 if self.looks == 1 else -0.1

    clock, lanes = Clock(), SimpleNamespace(busy=0, free=lambda beside: False)
    race = Race([], cast(Any, None))
    race.run(SimpleQueue(), cast(Any, lanes), Budget(1), cast(Any, clock), 1, lambda event: None)
    assert clock.looks > 1
    assert race.stop_reason == "time limit"
