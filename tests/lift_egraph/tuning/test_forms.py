"""Numbers as expressions: products by their factors, sums as linear forms."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from lift_egraph.errors import SearchProblem, SizeProblem
from lift_egraph.tuning.forms import Form, read_forms
from lift_egraph.tuning.stand_ins import stand_ins

POINTS = stand_ins(["M", "N"], ["rows", "columns", "width"], widths=["width"], count=5)
READ = {
    "a product of all": (lambda M, rows, columns, width, **_: 3 * rows * columns * width, "3 * columns * rows * width"),
    "a power of two times a width": (lambda rows, width, **_: 4 * rows * width, "4 * rows * width"),
    "a square": (lambda rows, **_: rows * rows, "rows * rows"),
    "a quotient": (lambda M, rows, columns, **_: M // (rows * columns), "M / (columns * rows)"),
    "a constant that is a stand-in too": (lambda **_: 5, "5"),
    "a coefficient that is the prime of another": (lambda rows, **_: 5 * rows, "5 * rows"),
    "what a pad leaves": (lambda N, **_: N + 2, "N + 2"),
    "a window": (lambda columns, **_: 2 * columns + 1, "2 * columns + 1"),
    "windows of a tile": (lambda M, rows, **_: (M - 2) // 1 + rows, "M + rows - 2"),
    "a sum of two": (lambda rows, columns, width, **_: (rows + columns) * width, "columns * width + rows * width"),
}  # fmt: skip


@pytest.mark.parametrize("what", READ)
def test_numbers_are_read(what: str):
    value, text = READ[what]
    beside = lambda rows, columns, width, **_: (rows * width, columns * width)  # noqa: E731
    rows = [(value(**point), *beside(**point)) for point in POINTS]
    form = read_forms(rows, POINTS)[0]
    assert str(form) == text
    assert [form.number(point) for point in POINTS] == [row[0] for row in rows]


def test_what_is_no_expression_is_not_read():
    odd: list[Callable[..., int]] = [lambda rows, **_: rows % 4, lambda M, width, **_: M // width**3 + rows_of(M)]
    for value in odd:
        with pytest.raises(SearchProblem, match="no expression of M, N, rows, columns, width is"):
            read_forms([(value(**point),) for point in POINTS], POINTS)


def rows_of(n: int) -> int:
    return sum(map(int, str(n)))


def test_a_form_that_is_no_whole_number_says_where():
    form = Form.of("N", rows=-1, width=-1)
    with pytest.raises(
        SizeProblem, match=r"N / \(rows \* width\) is no whole number where N = 12, rows = 5, width = 2"
    ):
        form.number({"N": 12, "rows": 5, "width": 2})


def test_values_of_some_variables_leave_a_form_of_the_others():
    form = Form.of("N", rows=-1) + Form.of("width", coefficient=2)
    assert str(form.at({"N": 12})) == "12 / rows + 2 * width"
    assert form.at({"N": 12, "rows": 5, "width": 2}).value({}) == Fraction(32, 5)


def test_stand_ins_have_primes_of_their_own():
    points = stand_ins(["N"], ["width", "chunk", "parts"], widths=["width"], multiples={"chunk": ["width"]}, count=4)
    for point in points:
        assert point["chunk"] % point["width"] == 0
        assert all(point["N"] % point[name] == 0 for name in ("width", "chunk", "parts"))
        assert point["N"] > point["chunk"] * point["parts"]
    assert len({tuple(point.values()) for point in points}) == 4
