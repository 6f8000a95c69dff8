"""The chance that a polynomial is 0 at a random point of Z/2^m, held against all points of small ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.algebra.chances import chance_of_zero

EXPONENTS = [(i, j) for i in range(4) for j in range(4 - i)]
Coefficients = dict[tuple[int, int], int]


def share_of_zeros(coefficients: Coefficients, bits: int) -> float:
    x, y = np.meshgrid(np.arange(2**bits), np.arange(2**bits))
    total = sum(c * x**i * y**j for (i, j), c in coefficients.items())
    return float(np.mean(total % 2**bits == 0))


def bound(coefficients: Coefficients, bits: int) -> float:
    used = [exponents for exponents, c in coefficients.items() if c]
    return chance_of_zero(max(map(sum, used)), max(map(max, used)), bits)


@given(st.dictionaries(st.sampled_from(EXPONENTS), st.integers(0, 15), min_size=1), st.integers(1, 4))
def test_no_polynomial_with_an_odd_coefficient_is_zero_more_often(coefficients: Coefficients, bits: int):
    if any(c % 2 for c in coefficients.values()):
        assert share_of_zeros(coefficients, bits) <= bound(coefficients, bits) + 1e-12


@pytest.mark.parametrize("bits", [1, 3, 5])
@pytest.mark.parametrize("coefficients", [{(1, 0): 1}, {(1, 1): 1}], ids=["x", "x·y"])
def test_sums_and_products_of_two_reach_it(coefficients: Coefficients, bits: int):
    assert share_of_zeros(coefficients, bits) == bound(coefficients, bits)


def test_the_bound_over_fields_does_not_hold():
    """Of a square one element in 2^(m/2) is 0, not two in 2^m."""
    assert share_of_zeros({(2, 0): 1}, 6) == 2**-3 > 2 * 2**-6


def test_even_coefficients_are_what_is_left_out():
    assert share_of_zeros({(1, 0): 16}, 4) == 1 > bound({(1, 0): 16}, 4)


def test_of_high_degrees_nothing_is_said_at_once():
    assert [chance_of_zero(degree, single, 25) for degree in (1000, 10**12) for single in (1, 2, 1000)] == 6 * [1.0]
