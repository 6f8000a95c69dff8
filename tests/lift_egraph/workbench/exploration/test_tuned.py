"""Plans with other numbers: what a plan led to becomes a term with parameters, and is tried at other points."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.errors import SearchProblem
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.features import features
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.tuning.conditions import Condition
from lift_egraph.tuning.forms import Form
from lift_egraph.tuning.space import Point, Space
from lift_egraph.workbench import Budget
from lift_egraph.workbench.explanation import explain_way
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.exploration.tuned import Tunable, Tuning, structure_of
from lift_egraph.workbench.phases import Found
from tests.depth import in_turn

CPU = replace(POCL, vector_width=4, compute_units=2)
BUDGET = Budget(60, tiled_first=0, seeds=1, cpu_blocks=(2,))
SOURCE = parse_program("program gemv(A: [[f32]K]M, x: [f32]K) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)")
SIZES = {"M": 6, "K": 64}


@cache
def tunables_of(source: ir.Program, **sizes: int) -> list[Tunable]:
    found: list[Tunable] = []
    for item in search(specialise(source, sizes), CPU, BUDGET, StructuralCost(), source=source):
        if isinstance(item, Tunable):
            found.append(item)
        elif found:
            break
    return found


def first() -> Tunable:
    return tunables_of(SOURCE, **SIZES)[0]


def test_at_the_numbers_of_the_plan_it_is_what_the_plan_led_to():
    tunable = first()
    assert tunable.numbers == {"width": 8}
    again = tunable.found(tunable.numbers)
    assert structure_of(again) == structure_of(tunable.base)
    assert again.way == tunable.base.way


def test_the_term_of_a_point_is_found_without_its_way():
    tunable = first()
    for point in tunable.space(CPU):
        term, found = tunable.term(point), tunable.found(point)
        assert term == replace(specialise(SOURCE, SIZES), body=found.term)
        bare, printed = compile_program(term, CPU, with_text=False), compile_program(term, CPU)
        assert features(bare, CPU) == features(printed, CPU)


def test_all_points_compute_the_same_and_have_kernels():
    tunable, program = first(), specialise(SOURCE, SIZES)
    inputs = random_inputs(program, 0, "integer")
    points = list(tunable.space(CPU))
    assert [point["width"] for point in points] == [2, 4, 8, 16]
    for point in points:
        term = tunable.found(point).term
        assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
        compile_program(replace(program, body=term), CPU)


@in_turn(3)
def test_another_point_is_explained_by_the_same_phases_with_its_numbers():
    found = first().found({"width": 4})
    assert [leg.name for leg in found.way] == ["lanes", "lowering"]
    assert found.way[0].tiling == {64: (4,)}
    assert [leg.widths for leg in found.way] == [(4,), (4,)]
    explained = explain_way(specialise(SOURCE, SIZES), found.way)
    assert explained.complete, str(explained)
    assert explained.sound


def test_without_open_sizes_nothing_has_parameters():
    special = specialise(SOURCE, SIZES)
    items = search(special, CPU, BUDGET, StructuralCost())
    assert not any(isinstance(item, Tunable) for item in islice(items, 20))


def test_a_program_that_other_sizes_do_not_fit_has_no_parameters():
    fixed = parse_program(
        "program p(A: [[f32]60]M, x: [f32]60) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)"
    )
    items = search(specialise(fixed, {"M": 6}), CPU, BUDGET, StructuralCost(), source=fixed)
    assert not any(isinstance(item, Tunable) for item in islice(items, 20))


def candidate(found: Found, milliseconds: float | None) -> Any:
    return SimpleNamespace(program=SimpleNamespace(body=found.term), measured_ms=milliseconds)


def widths(found: list[Found]) -> set[int]:
    return {item.way[0].widths[0] for item in found}


@pytest.mark.parametrize("is_measured_before", [True, False])
def test_other_points_are_tried_when_a_plan_was_measured(is_measured_before: bool):
    tunable, tuning = first(), Tuning(CPU, points=10)
    if is_measured_before:
        assert tuning.learn(candidate(tunable.base, 2.0)) == []
        tried = tuning.hear(tunable)
    else:
        assert tuning.hear(tunable) == []
        tried = tuning.learn(candidate(tunable.base, 2.0))
    assert widths(tried) == {2, 4, 16}
    assert tuning.learn(candidate(tried[0], 1.0)) == []  # there are no others


def test_the_neighbours_of_what_is_faster_are_tried():
    tunable, tuning = first(), Tuning(CPU, points=0)
    tuning.hear(tunable)
    (four, sixteen) = sorted(tuning.learn(candidate(tunable.base, 2.0)), key=lambda f: f.way[0].widths)
    assert (widths([four]), widths([sixteen])) == ({4}, {16})
    assert tuning.learn(candidate(sixteen, 3.0)) == []  # it is slower, and has no other neighbour
    assert widths(tuning.learn(candidate(four, 1.0))) == {2}


def test_what_failed_teaches_nothing():
    tuning = Tuning(CPU, points=10)
    tuning.hear(first())
    assert tuning.learn(candidate(first().base, None)) == []


def test_a_space_without_bounds_is_not_tried():
    class Unbounded(SimpleNamespace):
        def space(self, device: object) -> Any:
            return Space(("any",), (Condition(Form.of("any")),))

    tuning, base = Tuning(CPU, points=4), first().base
    tuning.hear(cast(Any, Unbounded(base=base, numbers={"any": 1})))
    assert tuning.learn(candidate(base, 1.0)) == []


def test_points_that_the_space_does_not_know_to_be_none_are_left_out():
    tunable, tuning = first(), Tuning(CPU, points=10)

    class Picky(SimpleNamespace):
        base, numbers, space, term = tunable.base, tunable.numbers, tunable.space, tunable.term

        def found(self, point: Point) -> Found:
            if point["width"] == 2:
                raise SearchProblem("no")
            return tunable.found(point)

    tuning.hear(cast(Any, Picky()))
    assert widths(tuning.learn(candidate(tunable.base, 2.0))) == {4, 16}


@in_turn(3)
def test_the_height_of_a_band_of_a_stencil_is_a_parameter():
    source = parse_program(
        """program cross(A: [[i32]N]M) =
             map2d(fun w => at(1, at(0, w)) + at(0, at(1, w)) + at(2, at(1, w)),
               slide2d(3, 1, pad2d(1, 1, clamp, A)))"""
    )
    sizes = {"M": 64, "N": 48}
    tunable, program = tunables_of(source, **sizes)[0], specialise(source, sizes)
    assert tunable.numbers == {"rows": 8, "width": 8}
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    for point in ({"rows": 4, "width": 16}, {"rows": 16, "width": 4}):
        assert point in tunable.space(CPU)
        found = tunable.found(point)
        assert found.way[0].tiling == {64: (point["rows"],)}
        assert np.array_equal(evaluate(found.term, inputs), expected)
