"""Random inputs have the shapes and the element types of the program's inputs."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import parse_program, programs, random_inputs, specialise
from lift_egraph.errors import SizeProblem
from lift_egraph.meaning.values import leaves_of

PROGRAM = parse_program("program f(m: [[f32]3]2, ts: [(f64, [i32]2, bool)]4, v: [f32x4]2, s: f32) = m")


def test_whole_numbers_of_any_size_and_sign_are_drawn_where_there_is_no_range():
    text = "program p(xs: [i32]999, n: i64, c: u8, ys: [i32]999 in 2..5) = (map(fun x => x, xs), n, c, ys)"
    values = {name: np.asanyarray(value) for name, value in random_inputs(parse_program(text), 0, "any").items()}
    assert [np.shape(values[name]) for name in ("xs", "n", "c")] == [(999,), (), ()]
    assert [values[name].dtype for name in ("xs", "n", "c")] == [np.int32, np.int64, np.uint8]
    assert values["xs"].min() < -(1 << 30)
    assert values["xs"].max() > 1 << 30
    assert np.count_nonzero(np.abs(values["xs"]) < 8) > 50
    assert set(np.unique(values["ys"])) == {2, 3, 4}


def test_floats_of_any_size_are_drawn_and_numbers_that_the_program_mentions():
    text = "program p(xs: [f32]9999, hs: [f16]99, ys: [f32]99 in 0..1) = map(fun x => x > 12345.5, xs)"
    values = {name: np.asanyarray(value) for name, value in random_inputs(parse_program(text), 0, "any").items()}
    assert np.abs(values["xs"]).max() >= 1 << 20
    assert {12344.5, 12345.5, 12346.5} < set(values["xs"].tolist())
    assert np.isfinite(values["hs"]).all()
    assert values["ys"].min() >= 0
    assert values["ys"].max() < 1


def test_shapes_and_types() -> None:
    values = random_inputs(PROGRAM)
    first, (second, third) = values["ts"]
    shown = [
        (np.asarray(x).shape, str(np.asarray(x).dtype)) for x in (first, second, third, *list(values.values())[2:])
    ]
    assert shown == [
        ((4,), "float64"), ((4, 2), "int32"), ((4,), "bool"), ((2, 4), "float32"), ((), "float32"),
    ]  # fmt: skip


def test_seeds_decide_the_values() -> None:
    one, again, other = (random_inputs(PROGRAM, seed)["m"] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_kinds() -> None:
    program = parse_program("program f(xs: [f32]10000, ks: [i32]1000) = xs")
    floats, integers = (random_inputs(program, kind=kind) for kind in ("float", "integer"))
    xs, whole = np.asarray(floats["xs"]), np.asarray(integers["xs"])
    assert -1 <= xs.min() < -0.9
    assert 0.9 < xs.max() < 1
    assert set(whole.tolist()) == set(range(-3, 4))
    assert set(np.asarray(floats["ks"]).tolist()) == set(range(4))


def test_open_sizes_are_refused() -> None:
    with pytest.raises(SizeProblem, match="open size"):
        random_inputs(programs.load("dot"))


@pytest.mark.parametrize(
    ("t", "low", "high", "whole"),
    [
        ("f32", "0.1", "10", {1, 2, 3, 4, 5, 6, 7}),
        ("f32", "100", "200", {100, 101, 102, 103, 104, 105, 106}),
        ("f32", "-9", "0", {-7, -6, -5, -4, -3, -2, -1}),
        ("f32", "0.1", "0.9", {i / 8 for i in range(1, 8)}),
        ("f64", "1e30", "1e31", None),
        ("f32", "1.0", "1.0000002", None),
        ("i32", "0", "N", set(range(1000))),
        ("i32", "-2", "1", {-2, -1, 0}),
    ],
)
def test_values_are_in_the_range(t: str, low: str, high: str, whole: set[float] | None) -> None:
    text = f"program f(xs: [{t}]20000 in {low}..{high}, ys: [f32]N) where N = 1000 = xs"
    program = specialise(parse_program(text))
    ((_, within),) = program.ranges
    assert within.numbers is not None
    for kind in ("float", "integer"):
        xs = np.asarray(random_inputs(program, kind=kind)["xs"])
        least, bound = (xs.dtype.type(number) for number in within.numbers)
        assert (least <= xs).all()
        assert (xs < bound).all()
    if whole is not None:
        assert set(xs.tolist()) == whole


def test_the_numbers_of_tuples_are_in_their_range() -> None:
    program = parse_program("program f(ps: [((u8, u8), [u8]9)]99 in 40..43, q: (f64, f64) in 0.5..0.6) = ps")
    made = random_inputs(program)
    assert [set(np.ravel(leaf).tolist()) for leaf in leaves_of(made["ps"])] == [{40, 41, 42}] * 3
    assert all(0.5 <= leaf < 0.6 for leaf in leaves_of(made["q"]))


def test_an_open_range_is_refused() -> None:
    with pytest.raises(SizeProblem, match="open"):
        random_inputs(parse_program("program f(xs: [i32]4 in 0..N, ys: [f32]N) = xs"))
