"""What is expected of kernels, as others are measured."""

from __future__ import annotations

from lift_egraph.learned.strategies import ByFamily, Family, Point, Strategy


def expected(strategy: Strategy, family: Family, predicted: float) -> float:
    return strategy.expected([Point(family, predicted)])[0]


def test_kernels_that_fail_are_expected_to_be_slow():
    strategy = ByFamily()
    strategy.fail(Point(("a",), 1.0))
    assert expected(strategy, ("a",), 1.0) > expected(strategy, ("b",), 1.0)


def test_one_failure_is_less_than_several():
    """The other kernels of its family still have their turn before much slower ones."""
    strategy = ByFamily()
    strategy.learn(Point(("slow",), 1.0), 7.0)
    strategy.fail(Point(("a",), 1.0))
    assert 1.0 < expected(strategy, ("a",), 1.0) < expected(strategy, ("slow",), 1.0)
    for _ in range(4):
        strategy.fail(Point(("a",), 1.0))
    assert expected(strategy, ("a",), 1.0) > expected(strategy, ("slow",), 1.0)


def test_one_wrong_prediction_does_not_outweigh_the_others_of_its_family():
    strategy = ByFamily()
    for measured in (2.0, 200.0, 2.0):
        strategy.learn(Point(("a",), 1.0), measured)
    assert expected(strategy, ("a",), 5.0) == 10.0


def test_what_nothing_is_known_of_is_believed_or_expected_to_be_as_good_as_the_best_known():
    strategy = ByFamily()
    strategy.learn(Point(("a",), 1.0), 4.0)
    assert expected(strategy, ("c",), 2.0) == 2.0
    strategy.learn(Point(("b",), 1.0), 0.5)
    assert expected(strategy, ("c",), 2.0) == 1.0


def test_a_prediction_of_nothing_teaches_nothing():
    strategy = ByFamily()
    strategy.learn(Point((), 0.0), 1.0)
    assert expected(strategy, (), 3.0) == 3.0
