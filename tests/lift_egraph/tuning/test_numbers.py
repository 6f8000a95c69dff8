"""The numbers of terms: read, written back, and left out of shapes."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.tuning.numbers import Rewritten, numbers, shape
from tests.pipelines import pipelines


def body(text: str) -> ir.Expr:
    return parse_program(f"program p({text}").body


def with_numbers(structure: Any, values: Sequence[int]) -> Any:
    return Rewritten(structure, range(len(values)))(values)


@given(pipelines())
def test_a_term_with_its_own_numbers_is_the_same(program: ir.Program):
    assert with_numbers(program.body, numbers(program.body)) == program.body


@given(pipelines())
def test_a_shape_does_not_know_the_names_of_binders(program: ir.Program):
    renamed = unique_names(program.body, base=lambda name: f"other_{name}")
    assert shape(renamed) == shape(program.body)
    assert numbers(renamed) == numbers(program.body)


def test_every_number_is_there_once():
    term = body("x: [f32]64) = join(map(fun row => mapSeq(vectorize(4, abs), asVector(4, row)), split(16, x)))")
    assert sorted(numbers(term)) == [
        4,
        4,
        16,
        16,
        16,
        64,
    ]  # that of a variable stands where it is bound and where it is used
    other = with_numbers(term, [{64: 96, 16: 24, 4: 8}[n] for n in numbers(term)])
    assert str(type_of(other)) == "[f32x8]12"


def test_what_is_equal_is_made_once():
    term = body("x: [f32]64) = zip(split(8, x), split(8, x))")
    made = Rewritten(term, [{64: 0, 8: 1}[n] for n in numbers(term)])([32, 4])
    assert made == body("x: [f32]32) = zip(split(4, x), split(4, x))")
    assert isinstance(made, ir.Zip)
    assert made.first is made.second


def test_numbers_beside_terms_count():
    term = body("x: [f32]8) = split(2, x)")
    pair = (term, ((8, (2,)),), "name")
    assert numbers(pair) == (*numbers(term), 8, 2)
    assert with_numbers(pair, [3, 9, 9, 3])[1:] == (((9, (3,)),), "name")


def test_shapes_differ_where_terms_do():
    one, two = body("x: [f32]8) = map(abs, x)"), body("x: [f32]8) = map(sqrt, x)")
    assert shape(one) != shape(two)
    assert shape(body("x: [f32]8) = slide(3, 1, x)")) == shape(body("x: [f32]9) = slide(5, 2, x)"))


def test_too_few_and_too_many_numbers_are_refused():
    term = body("x: [f32]8) = split(2, x)")
    with pytest.raises(SizeProblem, match="more numbers than it is given"):
        with_numbers(term, [2])
    with pytest.raises(SizeProblem, match="fewer numbers than 3"):
        with_numbers(term, [2, 8, 8])
