"""Siblings that read the same arrays become one, by the rules of the book; others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.extract.baseline import computes
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.siblings import siblings_together
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

TOGETHER = {
    "beside each other": "(reduce(min, inf, x), reduce(max, -inf, x))",
    "in lets, with another between them": (
        "let a = reduce(add, 0.0, x) in let b = a * a in let c = reduce(max, 0.0, map(abs, x)) in (a, (b, c))"
    ),
    "in computations": "reduce(add, 0.0, map(fun v => v * v, x)) / reduce(add, 0.0, x)",
    "of other arrays, too": (
        "let a = reduce(add, 0.0, map(fun (p, q) => p * q, zip(x, y))) in let b = reduce(add, 0.0, y) in (a, b)"
    ),
}
APART = {
    "one needs the other": (
        "let m = reduce(add, 0.0, x) in let d = reduce(add, 0.0, map(fun v => v - m, x)) in (m, d)"
    ),
    "they read other arrays": "(reduce(add, 0.0, x), reduce(add, 0.0, y))",
    "one of them has an order": "(reduce(add, 0.0, x), reduce(fun (a, b) => a * 0.5 + b, 0.0, x))",
    "maps of other arrays": "(map(fun v => v + 1.0, x), map(fun v => v * v, y))",
}


def program(body: str, length: int = 32768) -> ir.Program:
    return parse_program(f"program p(x: [f32]{length}, y: [f32]{length}) = {body}")


def reached(term: ir.Expr, few: int = 0) -> ir.Expr:
    """The last of the steps, each of which the rules of its phase are shown to reach."""
    for step in siblings_together(term, few):
        phase = Leg("siblings", step, 8, "cpu").phase
        assert leads_to(term, phase, step)
        term = step
    return term


def same_values(one: ir.Program, body: ir.Expr) -> bool:
    inputs = random_inputs(one, 0, "integer")
    sides = (list(leaves_of(evaluate(term, inputs))) for term in (one.body, body))
    return all(np.array_equal(a, b) for a, b in zip(*sides, strict=True))


@in_turn(6)
@pytest.mark.parametrize("name", TOGETHER)
def test_reductions_become_one(name: str):
    before = program(TOGETHER[name])
    after = reached(before.body)
    assert sum(isinstance(t, ir.Reduce) for t in ir.subterms(after)) == 1
    assert same_values(before, after)


def test_maps_of_a_tuple_become_one_map_and_one_kernel_that_writes_where_each_belongs():
    before = program("(map(fun v => v + 1.0, x), (map(fun v => v * v, x), map(fun (v, w) => v - w, zip(x, y))))")
    after = reached(before.body)
    assert sum(isinstance(t, ir.Map) and computes(t.function) for t in ir.subterms(after)) == 1
    assert same_values(before, after)
    lowered = parse_program(
        "program p(x: [f32]64) = let both = mapGlb(0, fun v => (v + 1.0, v * v), x) in "
        "(map(fun (a, b) => a, both), map(fun (a, b) => b, both))"
    )
    plan = compile_program(lowered, POCL)
    assert len(plan.kernels) == 1
    assert all(b.role != "temporary" for b in plan.buffers)


@pytest.mark.parametrize("name", APART)
def test_others_stay_apart(name: str):
    assert list(siblings_together(program(APART[name]).body)) == []


def test_short_arrays_stay_apart():
    assert list(siblings_together(program(TOGETHER["beside each other"], 1024).body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "(reduce(min, inf, c), reduce(max, -inf, c))",
        "let m = reduce(add, 0.0, c) / 32768.0 in reduce(add, 0.0, map(fun v => v * v, c)) / 32768.0 - m * m",
    ],
)
def test_reductions_of_few_long_columns_become_one(body: str):
    columns = parse_program(f"program p(A: [[f32]3]32768) = map(fun c => {body}, transpose(A))")
    made = reached(columns.body, few=4)
    assert sum(isinstance(t, ir.Reduce) for t in ir.subterms(made)) == 1
    assert same_values(columns, made)
    assert not list(siblings_together(columns.body, few=3))
