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
    strategy = ByFamily(boldness=0.0)
    for measured in (2.0, 200.0, 2.0):
        strategy.learn(Point(("a",), 1.0), measured)
    assert expected(strategy, ("a",), 5.0) == 10.0


def test_what_nothing_is_known_of_is_believed_or_expected_to_be_as_good_as_the_best_known():
    strategy = ByFamily(promising=0.0)
    strategy.learn(Point(("a",), 1.0), 4.0)
    assert expected(strategy, ("c",), 2.0) == 2.0
    strategy.learn(Point(("b",), 1.0), 0.5)
    assert expected(strategy, ("c",), 2.0) == 1.0


def test_a_prediction_of_nothing_teaches_nothing():
    strategy = ByFamily(promising=0.0)
    strategy.learn(Point((), 0.0), 1.0)
    assert expected(strategy, (), 3.0) == 3.0


def order(measured: dict[str, float], predicted: dict[str, float], strategy: Strategy) -> str:
    """The order of kernels whose names begin with that of their family."""
    waiting, found = dict(predicted), ""
    while waiting:
        names = list(waiting)
        times = strategy.expected([Point((name[0],), waiting[name]) for name in names])
        name = names[times.index(min(times))]
        strategy.learn(Point((name[0],), waiting.pop(name)), measured[name])
        found += f"{name} "
    return found.strip()


def test_where_predictions_tie_each_family_shows_what_it_is_worth():
    predicted = {"a1": 1.0, "a2": 1.0, "a3": 1.0, "b1": 1.0, "b2": 1.0, "c1": 1.4, "d1": 1.6}
    measured = {"a1": 0.9, "a2": 0.9, "a3": 0.9, "b1": 0.5, "b2": 0.5, "c1": 2.0, "d1": 3.0}
    assert order(measured, predicted, ByFamily()) == "a1 b1 c1 b2 a2 a3 d1"
    assert order(measured, predicted, ByFamily(promising=0.0)).startswith("a1 a2 a3")


def test_what_little_is_known_of_may_be_better_than_it_was():
    strategy = ByFamily(promising=0.0)
    for _ in range(9):
        strategy.learn(Point(("often",), 1.0), 1.0)
    strategy.learn(Point(("once",), 1.0), 1.1)
    assert expected(strategy, ("once",), 1.0) < expected(strategy, ("often",), 1.0) < 1.0
