"""Products with few results of long sums: slices of the sums are products of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.changes.sliced_products import sliced_products, slices_of
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.planning.plan import nests
from lift_egraph.workbench.planning.products import Product, product_of

SMALL = Changes(NVIDIA, Limits(iterations=MOST_STEPS, nodes=20_000), lambda phase: phase)
COVARIANCES = """program p(X: [[i32]40]K) where K = 2051 =
  map(fun a => map(fun b => reduce(add, 0, map(mul, zip(a, b))) - 7, transpose(X)), transpose(X))"""


@pytest.mark.parametrize(
    ("sizes", "slices"),
    [
        pytest.param((64, 64, 1 << 20), 256, id="one tile: most slices"),
        pytest.param((200, 200, 3001), 8, id="slices of some hundred elements"),
        pytest.param((512, 512, 512), 1, id="two slices are those of work-items"),
        pytest.param((1024, 1024, 1 << 16), 1, id="tiles enough"),
        pytest.param((2048, 64, 2048), 1, id="smaller tiles will do"),
        pytest.param((8, 8, 100), 1, id="short sums"),
    ],
)
def test_so_many_slices_that_the_device_has_work(sizes: tuple[int, int, int], slices: int) -> None:
    assert slices_of(*sizes, compute_units=132) == slices


def test_the_slices_of_columns_are_products_of_a_batch() -> None:
    """What follows each sum, the padding, and how the matrices lie in memory are kept; the meaning is the same."""
    program = specialise(parse_program(COVARIANCES), {})
    (way,) = SMALL._sliced_products(program.body)  # pyright: ignore[reportPrivateUsage]
    assert [(name, tiling) for name, tiling, _ in way] == [
        ("padding", {2051: (128,)}),
        ("rows_at_a_time", {2176: (272,)}),
        ("slices", {}),
    ]
    (found,) = (made for made in map(product_of, nests(way[-1][-1])) if made)
    assert found == Product(40, 40, 272, found.element, products=8, lies_across=(True, True), pitches=(40, 40))
    inputs = random_inputs(program, 0)
    expected = evaluate(program.body, inputs)
    for *_, term in way:
        np.testing.assert_array_equal(evaluate(term, inputs), expected)


def test_the_phases_lead_there() -> None:
    program = specialise(parse_program(COVARIANCES), {})
    *_, (_, (term, way)) = SMALL.of((program.body, ()))
    assert [leg.name for leg in way][:3] == ["padding", "rows_at_a_time", "slices"]
    assert any(product_of(nest) for nest in nests(term))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("map(fun a => map(fun b => reduce(max, 0.0, map(mul, zip(a, b))), X), X)", id="padded no fold"),
        pytest.param(
            "map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))) * at(0, a), X), X)", id="row read twice"
        ),
        pytest.param("map(fun a => reduce(add, 0.0, a), X)", id="no product"),
    ],
)
def test_other_maps_stay(body: str) -> None:
    program = specialise(parse_program(f"program p(X: [[f32]5003]40) = {body}"), {})
    assert not list(sliced_products(program.body, 132))


def test_a_cpu_has_few_units() -> None:
    program = specialise(parse_program(COVARIANCES), {})
    on_a_cpu = Changes(POCL, Limits(iterations=MOST_STEPS), lambda phase: phase)
    assert not list(on_a_cpu._sliced_products(program.body))  # pyright: ignore[reportPrivateUsage]
