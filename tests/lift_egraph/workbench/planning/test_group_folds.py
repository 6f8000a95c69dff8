"""Scans, and reductions in order, by groups: runs of items, what these have in parts, and the totals of all chunks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.planning.group_folds import group_folds, group_sweeps
from lift_egraph.workbench.planning.plan import nests
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

AFFINE = "fun ((a, b), (c, d)) => (a * c, b * c + d)"
MATRICES = "(1, 0), map(fun x => (x, 3), xs)"
PROGRAMS = {
    "sums": ("(xs: [i32]65536) = scan(add, 3, xs)", 3, True),
    "awkward chunks": ("(xs: [i32]36000) = scanExclusive(max, 0, map(fun x => 2 * x, xs))", 3, True),
    "one chunk": ("(xs: [i32]4096) = scan(max, 5, xs)", 1, True),
    "rows": ("(X: [[i32]1000]7, Y: [[i32]1000]7) = map(fun (x, y) => scan(add, 0, map(mul, zip(x, y))), zip(X, Y))", 1,
             False),
    "pairs": (f"(xs: [i32]65536) = scan({AFFINE}, {MATRICES})", 3, True),
    "a reduction in order": (f"(xs: [i32]65536) = reduce({AFFINE}, {MATRICES})", 2, True),
    "reductions of rows": (f"(X: [[i32]4096]5) = map(fun xs => reduce({AFFINE}, {MATRICES}), X)", 1, True),
}  # fmt: skip


@in_turn(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_items_meet_in_local_memory(name: str) -> None:
    text, kernels, in_vectors = PROGRAMS[name]
    program = parse_program(f"program p{text}")
    (nest,) = nests(program.body)
    plan = next(group_folds(nest, NVIDIA))
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    found, wanted = (leaves_of(evaluate(body, inputs)) for body in (term, program.body))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    made = compile_program(replace(program, body=term), NVIDIA).kernels
    assert len(made) == kernels
    assert made[0].local_bytes
    assert made[0].source.count("barrier(") >= (1 if plan.steps[0].name == "sub_group_folds" else 2)
    assert ("int4" in made[0].source) == in_vectors


def test_what_items_have_is_scanned_as_a_tree():
    program = parse_program("program p(X: [[i32]256]7) = map(scanExclusive(max, 5), X)")
    (nest,) = nests(program.body)
    plan = next(group_sweeps(nest, NVIDIA))
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    for items in (64, 32, 16, 8, 4, 2):  # 128 have runs; up, and down again
        assert kernel.source.count(f"if (get_local_id(0) < {items})") == 2


def test_the_numbers_of_a_plan_are_parameters() -> None:
    """They are tried at stand-in sizes, where each has a prime of its own."""
    (nest,) = nests(parse_program("program p(xs: [i32]65536) = scan(add, 0, xs)").body)
    recipe = next(group_folds(nest, NVIDIA)).recipe
    assert recipe is not None
    assert dict(recipe.numbers) == {"part": 16, "left": 32, "run": 8, "last_left": 4, "width": 4}
    numbers = {"part": 3, "left": 5, "run": 8, "last_left": 7, "width": 4}
    program = parse_program("program p(xs: [i32]9240) = scan(add, 0, xs)")
    term = reached(program, recipe.at(program.body, numbers))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    assert {3, 4, 5, 7, 8, 11} <= {int(n) for n in re.findall(r"[(](\d+)", print_term(term))}


def test_a_long_reduction_has_few_totals() -> None:
    """The one group that folds them works while all others are done."""
    (nest,) = nests(parse_program(f"program p(xs: [i32]16777216) = reduce({AFFINE}, {MATRICES})").body)
    recipe = next(group_folds(nest, NVIDIA)).recipe
    assert recipe is not None
    assert dict(recipe.numbers) == {"part": 32, "left": 32, "run": 16, "last_left": 32, "width": 4}


@pytest.mark.parametrize(
    "text",
    ["(xs: [i32]65537) = scan(add, 0, xs)", "(xs: [i32]16) = scan(add, 0, xs)",
     "(X: [[i32]64]64) = map(scan(add, 0), transpose(X))"],
    ids=["a prime", "few elements", "columns"],
)  # fmt: skip
def test_others_have_no_such_plan(text: str) -> None:
    (nest,) = nests(parse_program(f"program p{text}").body)
    assert not list(group_folds(nest, NVIDIA))
