"""Ranges of inputs: read, printed, kept, and refused where they mean nothing."""

from __future__ import annotations

import re

import pytest

from lift_egraph.api import LiftError, naive_term, parse_program, print_program, specialise
from lift_egraph.language import build as b

TEXT = (
    "program f(x: [f32]N in 0.1..10, cols: [[i32]K]M in -1..2 * N, v: [f32x4]2 in -1e-05..1.0, "
    "pairs: [(i32, i32)]M in 0..N, starts: [i32](M + 1) in offsets(K * N)) where N = 8, K = 2, M = 3 =\n"
    "  map(sqrt, x)\n"
)


def test_ranges_are_kept_from_text_to_the_naive_kernel() -> None:
    program = parse_program(TEXT)
    assert print_program(program, 200) == TEXT
    special = specialise(program)
    assert [str(r) for _, r in special.ranges] == ["0.1..10", "-1..16", "-1e-05..1.0", "0..8", "offsets(16)"]
    assert parse_program(print_program(naive_term(special))).ranges == special.ranges


def test_python_says_them_in_annotations() -> None:
    @b.program(sizes={"N": 8})
    def root(x: "[f32]N in 0.1..N"):  # pyright: ignore  # noqa: F722
        return b.map_(b.sqrt, x)

    assert root == parse_program("program root(x: [f32]N in 0.1..N) where N = 8 = map(sqrt, x)")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("x: f32 in 1..1", "<text>:1:21: the input x: f32 has the range 1..1, which has no two numbers"),
        ("x: f32 in 1.0..1.00000001", "no two numbers"),
        ("x: [i32]N in N..N - 1", "empty"),
        ("x: f32 in 0..inf", "the bounds of a range of f32 are finite numbers or sizes, got inf"),
        ("x: f32 in 0..1e39", "beyond that of f32"),
        ("x: i32 in 0..0.5", "the bounds of a range of i32 are whole numbers or sizes, got 0.5"),
        ("x: i32 in 0..2147483649", "beyond that of i32"),
        ("x: i32 in 0..M", "'M' is no known size"),
        ("x: f32 in true..1", "expected a size"),
        ("x: bool in 0..1", "the input x: bool can have no range"),
        ("x: [(f32, i32)]N in 0..1", "can have no range"),
        ("x: [(f32, bool)]N in 0..1", "can have no range"),
        ("x: f32 in 0", "a range is low..high, or offsets(end)"),
        ("x: f32 in offsets(4)", "x: f32 cannot be offsets(4): offsets are an array of i32"),
        ("x: [f32]N in offsets(4)", "offsets are an array of i32"),
        ("x: [i32]1 in offsets(4)", "of n rows there are n + 1 offsets, at least 2"),
        ("x: [i32]N in offsets(-4)", "-4 elements are beyond the range of i32"),
        ("x: [i32]N in offsets(M)", "'M' is no known size"),
    ],
)
def test_what_is_no_range(declared: str, message: str) -> None:
    with pytest.raises(LiftError, match=re.escape(message)):
        parse_program(f"program f({declared}) = x")


def test_a_range_that_is_empty_at_some_size() -> None:
    program = parse_program("program f(x: [i32]N in 2..N) = x")
    with pytest.raises(LiftError, match=r"f at N = 2: .* has the range 2..2, which is empty"):
        specialise(program, {"N": 2})
