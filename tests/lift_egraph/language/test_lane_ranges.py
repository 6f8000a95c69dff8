"""Ranges that all elements of a map have alike, or not."""

from __future__ import annotations

import pytest

from lift_egraph.language.lane_ranges import has_shared_ranges
from lift_egraph.language.syntax import parse_program


@pytest.mark.parametrize(("operator", "initial", "element"), [("add", "0.0", "f32"), ("or", "false", "bool")])
def test_rows_have_ranges_of_their_own_whatever_they_combine(operator: str, initial: str, element: str) -> None:
    """Rows of truth values too: what such a range gives is a condition, which has no truth while a term is built."""
    head = f"program p(offsets: [i32](M + 1) in offsets(K), xs: [{element}]K) where M = 4, K = 9 = "
    one = f"reduceRange({operator}, {initial}, %s, xs)"
    rows = parse_program(head + f"map(fun w => {one % 'w[0], w[1]'}, slide(2, 1, offsets))")
    alike = parse_program(head + f"map(fun i => {one % 'offsets[0], offsets[1]'}, offsets)")
    assert not has_shared_ranges(rows.body)
    assert has_shared_ranges(alike.body)
