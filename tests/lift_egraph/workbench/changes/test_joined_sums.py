"""Sums of sums in products of matrices are one sum, for which there are plans."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench.changes.joined_sums import with_joined_sums
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.planning.plan import nests, planned_phase
from lift_egraph.workbench.planning.products import product_of

HEAD = "program p(X: [[[f32]4]6]5, Y: [[[f32]4]7]6, W: [[[[f32]4]3]2]5, V: [[[[f32]4]3]2]7, u: [f32]6) = {}"
SUM = "reduce(add, 0.0, map(fun (r, s) => reduce(add, {}, map({}, zip(r, s))), zip(x, y)))"
ROWS = "map(fun x => map(fun y => {}, transpose(Y)), X)"
SQUARES = "fun (a, b) => (a - b) * (a - b)"
JOINED = {
    "a contraction of two axes": (
        ROWS.format(SUM.format("0.0", "mul")), ROWS.format("reduce(add, 0.0, map(mul, zip(join(x), join(y))))")
    ),
    "distances of matrices": (
        ROWS.format(SUM.format("0.0", SQUARES)),
        ROWS.format(f"reduce(add, 0.0, map({SQUARES}, zip(join(x), join(y))))"),
    ),
    "three axes": (
        "map(fun x => map(fun y => reduce(add, 0.0, map(fun (a, b) => reduce(add, 0.0, map(fun (r, s) => "
        "reduce(add, 0.0, map(mul, zip(r, s))), zip(a, b))), zip(x, y))), V), W)",
        "map(fun x => map(fun y => reduce(add, 0.0, map(mul, "
        "zip(join(map(fun a => join(a), x)), join(map(fun b => join(b), y))))), V), W)",
    ),
    "rows of one read backwards": (
        "map(fun x => map(fun y => reduce(add, 0.0, map(fun (r, s) => reduce(add, 0.0, map(mul, "
        "zip(gather(reverse, r), s))), zip(x, y))), transpose(Y)), X)",
        ROWS.format("reduce(add, 0.0, map(mul, zip(join(map(fun r => gather(reverse, r), x)), join(y))))"),
    ),
}
LEFT = {
    "sums from something": ROWS.format(SUM.format("1.0", "mul")),
    "products with what is outside": ROWS.format(SUM.format("0.0", "fun (a, b) => a * b * r[0]")),
    "other operators": ROWS.format(SUM.format("0.0", "mul").replace("reduce(add", "reduce(max", 1)),
    "sums of each matrix": "map(fun x => reduce(add, 0.0, map(fun r => reduce(add, 0.0, r), x)), X)",
}


@pytest.mark.parametrize("what", JOINED)
def test_the_phase_joins_them(what: str):
    given, wanted = (parse_program(HEAD.format(body)).body for body in JOINED[what])
    made = with_joined_sums(given)
    assert alpha_equal(made, wanted)
    last = [*run_phase(given, planned_phase("joined_sums", {}, (), Limits(iterations=4)))][-1]
    assert locate(last.graph, last.root, made) is not None


@pytest.mark.parametrize("what", LEFT)
def test_what_is_no_sum_of_sums_is_left(what: str):
    term = parse_program(HEAD.format(LEFT[what])).body
    assert with_joined_sums(term) is term


def test_a_search_begins_with_the_product():
    start = parse_program(HEAD.format(JOINED["a contraction of two axes"][0])).body, ()
    assert next(map(product_of, nests(start[0]))) is None
    *_, (_, found) = Changes(POCL, Limits(iterations=MOST_STEPS), lambda phase: phase).of(start)
    product = next(map(product_of, nests(found[0])))
    assert product is not None
    assert (product.rows, product.columns, product.length) == (5, 7, 24)
