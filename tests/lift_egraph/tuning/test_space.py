"""Spaces are counted as one by one, drawn from evenly, and refuse what is not in them."""

from collections import Counter
from itertools import product
from math import comb, inf, prod

import pytest
from hypothesis import given, strategies as st

from lift_egraph.errors import SearchProblem, SizeProblem
from lift_egraph.tuning.conditions import Condition, divisors
from lift_egraph.tuning.forms import Form
from lift_egraph.tuning.space import Point, Space
from tests.depth import in_turn

NAMES = ("a", "b", "c")
WIDTHS = (1, 2, 4, 8)


def tiles(m: int, n: int, k: int, group: int, local: int) -> Space:
    """Blocks of items times lines and columns, in steps of a depth, as in a product of matrices."""
    of = Form.of
    memory = of("items", "lines", "depth", coefficient=4) + of("width", "depth", coefficient=4)
    return Space(
        ("items", "lines", "width", "depth"),
        (
            Condition(of(coefficient=m, items=-1, lines=-1)),
            Condition(of(coefficient=n, width=-1)),
            Condition(of("width"), among=WIDTHS),
            Condition(of(coefficient=k, depth=-1)),
            Condition(of("lines", "depth", items=-1), why="the parts of a tile"),
            Condition(of("items"), high=group, why="the work-items of a group"),
            Condition(memory, 0, local, why="the bytes of local memory", whole=False),
        ),
    )


def one_by_one(space: Space, domains: dict[str, list[int]]) -> list[Point]:
    points = (dict(zip(space.parameters, values, strict=True)) for values in product(*domains.values()))
    return [p for p in points if all(c.holds(p) for c in space.conditions)]


def key(point: Point) -> tuple[int, ...]:
    return tuple(point.values())


@in_turn(3)
@given(
    st.integers(1, 90),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 64),
    st.sampled_from((64, 300, 1000, 9000)),
)
def test_as_many_points_as_one_by_one(m: int, n: int, k: int, group: int, local: int):
    space = tiles(m, n, k, group, local)
    domains = {"items": divisors(m), "lines": divisors(m), "width": divisors(n), "depth": divisors(k)}
    expected = one_by_one(space, domains)
    assert space.count == len(expected)
    assert sorted(map(key, space)) == sorted(map(key, expected))


@st.composite
def conditions(draw: st.DrawFn) -> list[Condition]:
    """Any conditions over three parameters, each of which divides a number."""
    made = [Condition(Form.of(coefficient=draw(st.integers(1, 60)), **{name: -1})) for name in NAMES]
    for _ in range(draw(st.integers(0, 4))):
        form = Form(())
        for _ in range(draw(st.integers(1, 2))):
            powers = {name: draw(st.integers(-2, 2)) for name in NAMES}
            form = form + Form.of(coefficient=draw(st.integers(1, 24)), **powers)
        high = draw(st.one_of(st.just(inf), st.integers(1, 400)))
        among = draw(st.one_of(st.none(), st.just((1, 2, 3, 4, 8, 12))))
        made.append(Condition(form, draw(st.integers(0, 3)), high, among, whole=draw(st.booleans())))
    return made


@given(conditions())
def test_any_conditions_count_as_one_by_one(chosen: list[Condition]):
    space = Space(NAMES, tuple(chosen))
    expected = one_by_one(space, {name: divisors(int(chosen[k].form.terms[0][0])) for k, name in enumerate(NAMES)})
    assert space.count == len(expected)
    assert sorted(map(key, space)) == sorted(map(key, expected))


def test_a_fraction_is_none_of_some_numbers():
    """Although its numerator may be."""
    among = Condition(Form.of(b=-1), 0, among=(1, 2, 3), whole=False)
    space = Space(("b",), (Condition(Form.of(coefficient=2, b=-1)), among))
    assert list(space) == [{"b": 1}]


def test_what_is_at_least_one_need_not_be_whole():
    sizes = Condition(Form.of(coefficient=3, b=-1)), Condition(Form.of(coefficient=2, c=-1))
    space = Space(("b", "c"), (*sizes, Condition(Form.of(coefficient=2, b=-1, c=1), 1, whole=False)))
    assert sorted(map(key, space)) == [(1, 1), (1, 2), (3, 2)]


def test_a_space_of_more_than_a_million_points_is_counted_exactly():
    powers = {2: 8, 3: 3, 5: 2, 7: 1}
    number, names = prod(p**e for p, e in powers.items()), ("a", "b", "c", "d")
    space = Space(names, (Condition(Form.of(coefficient=number, **dict.fromkeys(names, -1))),))
    assert space.count == prod(comb(e + len(names), len(names)) for e in powers.values()) == 1_299_375
    assert all(point in space for point in space.sample(100))


def test_draws_are_even():
    space = tiles(24, 16, 12, 16, 600)
    count, draws = space.count, 200
    found = Counter(key(point) for seed in range(draws) for point in space.sample(5, seed))
    expected = 5 * draws / count
    chi_squared = sum((found[key(point)] - expected) ** 2 / expected for point in space)
    assert 60 < count < 400
    assert abs(chi_squared - count) < 3.5 * (2 * count) ** 0.5  # its mean and standard deviation, if draws are even


def test_draws_differ_from_each_other_and_are_the_same_for_a_seed():
    space = tiles(24, 16, 12, 16, 600)
    drawn = space.sample(40, seed=7)
    assert len({key(point) for point in drawn}) == 40
    assert drawn == space.sample(40, seed=7) != space.sample(40, seed=8)
    assert sorted(map(key, space.sample(10**6))) == sorted(map(key, space))


def test_neighbours_are_points_and_lead_everywhere():
    space = tiles(12, 8, 6, 16, 200)
    start = space[0]
    seen, waiting = {key(start)}, [start]
    while waiting:
        for point in space.neighbours(waiting.pop()):
            assert point in space
            if key(point) not in seen:
                seen.add(key(point))
                waiting.append(point)
    assert len(seen) == space.count
    assert all(start != other for other in space.neighbours(start))


WRONG = {
    "the work-items of a group must be at most 4, and is 8": {"items": 8, "depth": 8},
    "the parts of a tile must be a whole number, and is 0.5": {"items": 4, "lines": 2, "depth": 1},
    "width must be one of 1, 2, 4, 8, and is 16": {"width": 16},
    "the bytes of local memory must be at most 600, and is 2400": {"items": 4, "lines": 6, "depth": 24},
    r"24 / \(items \* lines\) must be a whole number, and is 4.8": {"lines": 5},
    "items must be at least 1, not 0": {"items": 0},
    "there is no parameter rows: there are items, lines, width, depth": {"rows": 4},
}


@pytest.mark.parametrize("message", WRONG)
def test_points_that_are_none_are_refused(message: str):
    space = tiles(24, 16, 24, 4, 600)
    point = {"items": 1, "lines": 1, "width": 1, "depth": 1}
    space.require(point)
    with pytest.raises(SizeProblem, match=message):
        space.require({**point, **WRONG[message]})


def test_a_parameter_without_bounds_is_refused():
    with pytest.raises(SearchProblem, match="nothing bounds the parameter b"):
        Space(("a", "b"), (Condition(Form.of(coefficient=8, a=-1)),)).count  # noqa: B018


def test_conditions_that_sizes_break_leave_no_point():
    space = Space(("a",), (Condition(Form.of(coefficient=8, a=-1)), Condition(Form.constant(3), among=(2, 4))))
    assert space.count == 0
    assert space.sample(5) == []
    with pytest.raises(IndexError, match="there are 0 points"):
        space[0]
