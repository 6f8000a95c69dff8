"""Plans whose groups reduce by sub-groups, where the device has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, NVIDIA
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.padding import Padding
from lift_egraph.workbench.phases import sharing_phase
from lift_egraph.workbench.planning.plan import Plan
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.planning.short_rows import has_rows_of_lanes
from tests.lift_egraph.workbench.planning.test_plans import reached

TREES = replace(NVIDIA, emission=replace(NVIDIA.emission, exchange="none"))
NAMES = {"sub_groups", "sub_group_folds", "sub_group_tree"}
# the program, and the barriers of a group by sub-groups and without
PROGRAMS = {
    "sub_groups": ("(X: [[f32]512]4) = map(fun r => let top = reduce(max, -9.0, r) in let e = map(fun x => x - top, r) "
                   "in let s = reduce(add, 0.0, e) in map(fun x => x + s, e), X)", 3, 5),
    "sub_group_folds": ("(X: [[i32]512]4) = map(fun r => reduce(fun ((a, b), (c, d)) => (a * c, b * c + d), (1, 0), "
                        "zip(r, r)), X)", 1, 2),
    "sub_group_tree": ("(X: [[f32]512]4) = map(reduce(add, 0.0), X)", 1, 8),
}  # fmt: skip


def lowered(program: ir.Program, plan: Plan) -> ir.Expr:
    """The low-level term that a plan leads to."""
    term = reached(program, plan)
    if plan.lowered_by is None:
        return term
    *_, state = run_phase(term, sharing_phase(plan.widths, Limits()))
    return best_terms(state.graph, state.root, StructuralCost().on(NVIDIA), 1)[0].term


def plans_for(term: ir.Expr, name: str) -> Iterator[Plan]:
    return (plan for plan in plans(term, NVIDIA) if any(step.name == name for step in plan.steps))


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_right_and_wait_less(name: str) -> None:
    text, fewer, more = PROGRAMS[name]
    program = parse_program(f"program p{text}")
    own = next(plans_for(program.body, name))
    other = next(plans_for(program.body, {"sub_groups": "groups", "sub_group_tree": "tree"}.get(name, "group_folds")))
    terms = [lowered(program, plan) for plan in (own, other)]
    inputs = random_inputs(program, 0, "integer")
    assert any(isinstance(t, ir.ReduceSub) for t in ir.subterms(terms[0]))
    made = [compile_program(replace(program, body=term), NVIDIA) for term in terms]
    values = (leaves_of(evaluate(term, inputs)) for term in (terms[0], program.body))
    assert all(np.array_equal(found, wanted) for found, wanted in zip(*values, strict=True))
    assert [plan.kernels[0].source.count("barrier(") for plan in made] == [fewer, more]
    assert float(predict(made[0], NVIDIA)) <= float(predict(made[1], NVIDIA))


def test_they_are_for_devices_with_sub_groups() -> None:
    for text, _, _ in PROGRAMS.values():
        body = parse_program(f"program p{text}").body
        of_devices = (plans(body, device) for device in (NVIDIA, TREES))
        names = [{step.name for plan in found for step in plan.steps} & NAMES for found in of_devices]
        assert names[0]
        assert not names[1]


@pytest.mark.parametrize(
    ("rows", "group"),
    [("[[f32]96]1024", (32, 4, 1)), ("[[f32]77]1026", (32, 4, 1)), ("[[f32]96]1025", (32, 1, 1))],
)
def test_a_short_row_is_one_sub_groups_who_keeps_what_it_computes_of_it(
    rows: str, group: tuple[int, int, int]
) -> None:
    program = parse_program(f"program p{PROGRAMS['sub_groups'][0]}".replace("[[f32]512]4", rows))
    padded = Padding(NVIDIA).term(program.body) if "96" not in rows else program.body
    plan = next(plans_for(padded, "row_lanes"))
    term = lowered(replace(program, body=padded), plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.launch.local_size == group
    assert kernel.source.count("barrier(") <= 1  # of the other plan, whose cost has e in local memory


@pytest.mark.parametrize("sizes", [(4, 300, 77), (3, 2, 205, 77), (12, 100, 100)])
def test_batches_of_rows_are_further_dimensions_of_groups(sizes: tuple[int, ...]) -> None:
    *outer, rows, length = sizes
    body = ("map(fun (r, q) => let z = map(fun (x, y) => x + y, zip(r, q)) in let m = reduce(max, -9.0, z) in "
            "map(fun x => m - x, z), zip(rows, M))")  # fmt: skip
    array = f"[[f32]{length}]{rows}"
    for number in reversed(outer):
        array, body = f"[{array}]{number}", f"map(fun rows => {body}, rows)"
    body = body.removesuffix("rows)") + "X)"
    program = parse_program(f"program p(X: {array}, M: [[f32]{length}]{rows}) = {body}")
    padded = Padding(NVIDIA).term(program.body)
    term = lowered(replace(program, body=padded), next(plans_for(padded, "row_lane_levels")))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.launch.local_size == (32, 4, 1)
    groups = [n // items for n, items in zip(kernel.launch.global_size, kernel.launch.local_size, strict=True)]
    assert groups == [-(-rows // 4), *reversed(outer), 1][:3]
    assert kernel.local_bytes == 0


@pytest.mark.parametrize("length", [96, 1024])  # the latter is as many elements an item as there are items
def test_what_each_fold_of_a_row_adds_up_its_items_compute(length: int) -> None:
    program = parse_program(f"program p(X: [[f32]{length}]1024, Y: [[f32]{length}]1024) = map(fun (x, y) => "
                            "reduce(add, 0.0, map(mul, zip(x, y))) / reduce(add, 0.0, map(fun a => a * a, x)), "
                            "zip(X, Y))")  # fmt: skip
    assert has_rows_of_lanes(program.body, NVIDIA)  # no rest of the rows is apart
    term = lowered(program, next(plans_for(program.body, "row_lane_levels")))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes == 0
    assert "barrier(" not in kernel.source


def test_rests_stay_apart_on_a_cpu_with_sub_groups() -> None:
    """It has no plans for them, so that rows that nothing divides are cut for its vectors."""
    rows = parse_program("program p(X: [[f32]96]1203) = map(fun r => reduce(add, 0.0, r), X)").body
    assert has_rows_of_lanes(rows, NVIDIA)
    assert INTEL.sub_group
    assert not has_rows_of_lanes(rows, INTEL)


def test_few_rows_or_short_ones_are_no_sub_groups() -> None:
    for others in ("[[f32]100]1024", "[[f32]96]8", "[[f32]32]1024"):
        other = parse_program(f"program p{PROGRAMS['sub_groups'][0]}".replace("[[f32]512]4", others))
        assert not list(plans_for(other.body, "row_lanes"))
        assert not has_rows_of_lanes(other.body, NVIDIA)
