"""Sizes in normal form: a simplified expression has the value of the plain one, everywhere."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.errors import SizeProblem
from lift_egraph.language.nat import Nat, NatVar, divides, is_at_least, is_less, maximum, may_be_equal, minimum, nat
from lift_egraph.language.syntax import parse_size

RANGES = {"i": (0, 3), "j": (1, 4), "k": (-2, 2)}
VARIABLES = {name: NatVar(name, low, high) for name, (low, high) in RANGES.items()}
EVERYWHERE = [
    dict(zip(RANGES, point, strict=True)) for point in product(*(range(low, high + 1) for low, high in RANGES.values()))
]


@dataclass(frozen=True)
class Sample:
    """An expression in normal form, beside the function that computes it step by step."""

    simplified: Nat
    plain: Callable[[dict[str, int]], int]


OPERATIONS: dict[str, tuple[Callable[..., Nat], Callable[[int, int], int]]] = {
    "+": (operator.add, operator.add), "-": (operator.sub, operator.sub), "*": (operator.mul, operator.mul),
    "/": (operator.floordiv, operator.floordiv), "%": (operator.mod, operator.mod),
    "min": (minimum, min), "max": (maximum, max),
}  # fmt: skip


def _applied(symbol: str, a: Sample, b: Sample) -> Sample:
    simplify, compute = OPERATIONS[symbol]
    return Sample(simplify(a.simplified, b.simplified), lambda v: compute(a.plain(v), b.plain(v)))


numbers = st.integers(-4, 8).map(lambda n: Sample(nat(n), lambda v: n))
names = st.sampled_from(sorted(RANGES)).map(lambda x: Sample(nat(VARIABLES[x]), lambda v: v[x]))
positive = st.integers(1, 6).map(lambda n: Sample(nat(n), lambda v: n)) | st.integers(1, 3).map(
    lambda n: Sample(n * nat(VARIABLES["j"]), lambda v: n * v["j"])
)
expressions = st.recursive(
    numbers | names,
    lambda inner: (
        st.builds(_applied, st.sampled_from(("+", "-", "*", "min", "max")), inner, inner)
        | st.builds(_applied, st.sampled_from("/%"), inner, positive)
    ),
    max_leaves=7,
)


@given(expressions)
def test_simplification_keeps_the_value(sample: Sample) -> None:
    low, high = sample.simplified.range
    for point in EVERYWHERE:
        value = sample.plain(point)
        assert sample.simplified.evaluate(point) == value
        assert low is None or low <= value
        assert high is None or value <= high


@given(expressions, st.integers(-9, 9))
def test_a_number_is_added_as_a_variable_that_becomes_it(sample: Sample, number: int) -> None:
    assert sample.simplified + number == (sample.simplified + nat("x")).substitute({"x": number})


@given(expressions, expressions, st.integers(-9, 9))
def test_the_distance_is_the_difference_where_that_is_a_number(one: Sample, other: Sample, number: int) -> None:
    left, right = one.simplified, other.simplified
    assert left.beyond(right) == (left - right).constant
    assert (left + number).beyond(left) == number


@given(expressions, st.integers(2, 8), st.integers(-9, 9))
def test_what_a_number_divides_is_taken_out_of_a_sum(sample: Sample, number: int, more: int) -> None:
    assert (number * sample.simplified + more) // number == sample.simplified + more // number
    assert (number * sample.simplified + more) % number == nat(more % number)


@given(expressions, expressions)
def test_comparisons_hold_everywhere(left: Sample, right: Sample) -> None:
    for point in EVERYWHERE:
        if is_less(left.simplified, right.simplified):
            assert left.plain(point) < right.plain(point)
        if is_at_least(left.simplified, right.simplified):
            assert left.plain(point) >= right.plain(point)


@given(expressions, positive)
def test_divisibility_holds_everywhere(value: Sample, divisor: Sample) -> None:
    answer = divides(divisor.simplified, value.simplified)
    for point in EVERYWHERE:
        if answer is not None:
            assert (value.plain(point) % divisor.plain(point) == 0) is answer


@given(expressions)
def test_printed_sizes_are_read_back(sample: Sample) -> None:
    size = sample.simplified.substitute({"k": 2})  # the names in a text are never negative
    again = parse_size(str(size))
    for point in EVERYWHERE:
        assert again.evaluate(point) == size.evaluate(point)


N, M, K = nat("N"), nat("M"), nat("K")
i, j = nat(NatVar("i", 0, 7)), nat(NatVar("j", 0, 3))


@pytest.mark.parametrize(
    ("simplified", "expected"),
    [
        ((N + M) * (N - M), N * N - M * M),
        ((4 * i + j) // 4, i),
        ((4 * i + j) % 4, j),
        ((N * i + 5 * N) // N, i + 5),
        ((4 * i + j + 33) % 64, (4 * i + j + 33) % 64),
        ((i + 65) % 64, i + 1),
        ((i + 65) // 64 + (i - 9) // 16, nat(0)),
        (4 * (N // 4) + N % 4, N),
        (N // 2 // 4, N // 8),
        (N % 8 % 4, N % 4),
        (minimum(4 * N + 2, 8 * i + 6) % 4, nat(2)),
        (maximum(4 * N, 8 * i + 6) % 2, nat(0)),
        ((2 * N) // 4, N // 2),
        (N / 2, N // 2),
        ((6 * N) % 4, 2 * ((3 * N) % 2)),
        (minimum(j, 3), j),
        (maximum(j, 3), nat(3)),
        (minimum(N, M), minimum(N, M)),
        (N - N, nat(0)),
    ],
)
def test_normal_forms(simplified: Nat, expected: Nat) -> None:
    assert simplified == expected


P = nat(NatVar("P", 1, None))
wg, lid = nat(NatVar("wg", 0, 15)), nat(NatVar("l", 0, 7))
row, column = (wg * 8 + lid) // 8, (wg * 8 + lid) % 8

RULES = [
    # 000 §4.3.3 (and the slides): the rules by their numbers
    ("4.1 x / y = 0 if x < y", i // 8, nat(0)),
    ("4.2 (x * y + z) / y = x + z / y", (N * 8 + K) // 8, N + K // 8),
    ("4.2 with a variable", (N * P + K) // P, N + K // P),
    ("4.3 x mod y = x if x < y", i % 8, i),
    ("4.4 (x / y) * y + x mod y = x", N // 8 * 8 + N % 8, N),
    ("4.4 with a variable", N // P * P + N % P, N),
    ("4.5 (x * y) mod y = 0", (N * 8) % 8, nat(0)),
    ("4.5 with a variable", (N * P) % P, nat(0)),
    ("4.6 (x + y) mod z = (x mod z + y mod z) mod z", (N % 8 + K % 8) % 8, (N + K) % 8),
    ("4.6 with a variable", (N % P + K % P) % P, (N + K) % P),
    ("4.6 where one part is small", (8 * N + i) % 8, i),
    ("Figure 4.6", (row + column * 16) // 16 * 16 + (row + column * 16) % 16, lid * 16 + wg),
    # further ones
    ("(x mod (y * z)) / y = (x / y) mod z", (N % 16) // 4, (N // 4) % 4),
    ("x / y / z = x / (y * z)", N // 4 // 4, N // 16),
    ("three digits", N // 16 * 16 + N % 16 // 4 * 4 + N % 16 % 4, N),
    ("c * (x mod y) mod y = c * x mod y", (3 * (N % 8)) % 8, (3 * N) % 8),
]


@pytest.mark.parametrize(("name", "before", "after"), RULES, ids=[name for name, _, _ in RULES])
def test_the_rules_of_the_thesis(name: str, before: Nat, after: Nat) -> None:
    assert before == after, name


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(1, 6), st.integers(1, 6), st.integers(-3, 3))
def test_the_rules_hold_on_numbers(x: int, z: int, y: int, c: int, k: int) -> None:
    """The rules for rests of rests, also for negative numbers."""
    n, m = nat(NatVar("n", None)), nat(NatVar("m", None))
    values = {"n": x, "m": z}
    assert (n % (y * c) // y).evaluate(values) == x % (y * c) // y
    assert ((k * (n % (y * c)) + m) % y).evaluate(values) == (k * (x % (y * c)) + z) % y
    assert (n // (y * c) * y * c + n % (y * c) // y * y + n % y).evaluate(values) == x


def test_substitution_simplifies_again() -> None:
    assert ((N + 3) // 4).substitute({"N": 4 * M + 1}) == M + 1
    assert (N // 4 + N % 4).rebuild(lambda atom: nat(9) if atom == NatVar("N") else None) == nat(3)


def test_coefficients() -> None:
    variable = NatVar("i", 0, 7)
    assert (4 * i * N + j).coefficient_of(variable) == 4 * N
    assert (i * i).coefficient_of(variable) is None
    assert (i // 2).coefficient_of(variable) is None


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-9, 9), st.integers(-3, 3))
def test_sizes_that_may_be_equal_are_so_where_divisors_divide(a: int, b: int, times: int, more: int) -> None:
    left = N // M * (M + 1) - (N + M) // M + times * (N // M // K * K)
    right = N // M * times + N - 1
    assert may_be_equal(left, right)
    assert may_be_equal(left + more, right) == (more == 0)
    values = {"M": a, "K": b, "N": a * b * abs(times)}
    assert left.evaluate(values) == right.evaluate(values)


def test_what_cannot_be_computed_is_a_size_problem() -> None:
    with pytest.raises(SizeProblem, match="division of the size N by zero"):
        N // 0
    with pytest.raises(SizeProblem, match="remainder of the size N by zero"):
        N % 0
    with pytest.raises(SizeProblem, match="no value is given for M"):
        (N + M).evaluate({"N": 1})


def test_the_lanes_of_a_vector_lie_in_one_row() -> None:
    item, lane = nat(NatVar("item", 0, 255)), nat(NatVar("lane", 0, 3))
    flat = 4 * item + lane + 128 * nat("N")
    assert flat // 128 == item // 32 + nat("N")
    assert flat % 128 == 4 * (item % 32) + lane
    assert (4 * item + 3) // 128 == item // 32
    wide = nat(NatVar("wide", 0, 4))
    assert (4 * item + wide) // 128 != item // 32


@given(st.integers(1, 12), st.integers(-12, 12), st.integers(0, 12), st.integers(2, 48))
def test_division_by_multiples_keeps_the_value(factor: int, offset: int, top: int, divisor: int) -> None:
    first, rest = NatVar("first", 0, 20), NatVar("rest", 0, top)
    value = factor * nat(first) + nat(rest) + offset
    for a, b in product(range(21), range(top + 1)):
        number = factor * a + b + offset
        point = {"first": a, "rest": b}
        assert (value // divisor).evaluate(point) == number // divisor
        assert (value % divisor).evaluate(point) == number % divisor


def test_numbers_of_numpy_are_sizes() -> None:
    assert nat(np.int64(7)) == nat(7)
    assert nat("N").substitute({"N": np.int32(4)}) == nat(4)
