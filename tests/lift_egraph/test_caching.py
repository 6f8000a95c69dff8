"""Attributes that are computed once."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import dataclass
from typing import Any

from lift_egraph.caching import cached_property, kept_with


def test_it_is_computed_once():
    class Counted:
        times = 0

        @cached_property
        def value(self) -> int:
            """The times."""
            self.times += 1
            return self.times

    one = Counted()
    assert (one.value, one.value, one.times) == (1, 1, 1)
    assert isinstance(Counted.value, cached_property)
    assert Counted.value.__doc__ == "The times."


def test_threads_do_not_wait_for_each_other():
    both = threading.Barrier(2, timeout=20)

    class Above:
        def __init__(self, below: Any = None) -> None:
            self.below = below

        @cached_property
        def depth(self) -> int:
            if self.below is None:
                return 0
            if self.below.below is None:
                both.wait()  # both threads are in a term now
            return 1 + self.below.depth

    class Other(Above):
        depth = cached_property(Above.depth.compute)
        depth.__set_name__(Above, "depth")

    found: list[int] = []
    terms = Above(Other()), Other(Above())
    threads = [threading.Thread(target=lambda t=t: found.append(t.depth), daemon=True) for t in terms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert found == [1, 1]


def test_what_is_kept_with_an_object_is_computed_once_for_it_and_goes_with_it():
    @dataclass(frozen=True)
    class Large:
        number: int

    class Result:
        pass

    made = list[int]()

    @kept_with
    def result(of: Large) -> Result:
        made.append(of.number)
        return Result()

    one, equal = Large(1), Large(1)
    assert result(one) is result(one) is not result(equal)
    assert made == [1, 1]
    kept = weakref.ref(result(one))
    del one
    gc.collect()
    assert kept() is None
    for number in range(20):  # at addresses that others had
        result(Large(number))
    assert made == [1, 1, *range(20)]
