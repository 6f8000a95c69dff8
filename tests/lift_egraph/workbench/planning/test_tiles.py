"""Products on a GPU: groups keep tiles of both matrices in local memory, at the numbers of a plan and at others."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F64
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.programs import load
from lift_egraph.workbench import Budget
from lift_egraph.workbench.exploration import by_plans, search as search_module
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.phases import Found
from lift_egraph.workbench.planning.plan import Plan, nests
from lift_egraph.workbench.planning.plans import further_plans, plans
from lift_egraph.workbench.planning.products import product_of
from lift_egraph.workbench.planning.tiles import TILE_RESULTS, has_tiles_of_views, in_tiles, tiles
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

PRODUCTS = {  # of matrices, and how many of both are copied by columns
    "rows times columns": (
        """program p(A: [[f32]32]64, B: [[f32]256]32) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)""", 1),
    "rows times rows, of doubles": (
        """program p(A: [[f64]64]128, B: [[f64]64]128) =
             map(fun a => map(fun b => reduce(add, 0.0f64, map(mul, zip(a, b))), B), A)""", 2),
    "columns times columns, of several matrices": (
        """program p(A: [[[f32]128]64]2, B: [[[f32]128]64]2) =
             map(fun (x, y) =>
               map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(y)), transpose(x)),
               zip(A, B))""", 0),
    "rows times rows, that of the inner map first": (
        """program p(A: [[f32]32]64, B: [[f32]32]256) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(b, a))), B), A)""", 2),
}  # fmt: skip

FEW = Budget(600, limits=Limits(2, 5_000), seeds=1, lowered=2, staged=0, copies=1, stage_seeds=1)

LAYER = parse_program(
    """program layer(X: [[[f32]16]8]16, F: [[[[f32]3]3]16]32) =
         map(fun f => map2d(fun w => reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))),
           map(transpose, transpose(map(fun channel => slide2d(3, 1, pad2d(1, 1, constant(0.0), channel)), X)))), F)"""
)


def small_tiles(program: ir.Program, **numbers: int) -> Plan:
    """The plan for the product of a program with small tiles."""
    nest, *_ = (nest for nest in nests(program.body) if product_of(nest))
    width = 2 if nest.result == F64 else 4
    return in_tiles(nest, {"tall": 8, "broad": 4, "high": 4, "wide": 8, "depth": 8, "width": width, **numbers})


@in_turn(8)
@pytest.mark.parametrize("what", PRODUCTS)
def test_a_group_keeps_tiles_in_local_memory_on_a_gpu(what: str):
    text, by_columns = PRODUCTS[what]
    program = parse_program(text)
    plan = small_tiles(program)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    copies = [t.value for t in ir.subterms(term) if isinstance(t, ir.ToMemory) and t.space == "local"]
    assert len(copies) == 2
    assert sum(isinstance(value, ir.Transpose) for value in copies) == by_columns
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes
    assert kernel.source.count("barrier(") == 2
    (checked,) = compile_program(replace(program, body=term), NVIDIA.run_once).kernels
    assert [bool(re.search(r"#pragma unroll \d", k.source)) for k in (kernel, checked)] == [True, False]


@in_turn(3)
def test_what_follows_each_sum_is_computed_of_the_results_in_registers():
    program = parse_program(
        """program p(A: [[[f32]16]64]2, B: [[[f32]64]16]2, s: f32) =
             map(fun (x, y) => map(fun a => map(fun b => s * reduce(add, 0.0, map(mul, zip(a, b))), transpose(y)), x),
               zip(A, B))"""
    )
    term = reached(program, small_tiles(program))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes
    assert kernel.source.count("barrier(") == 2
    assert kernel.source.count(" = s * (float4)(slice") == 8


@in_turn(3)
def test_a_layer_of_convolutions_is_a_product_of_matrices_that_no_memory_holds():
    plan = small_tiles(LAYER, tall=4)
    assert plan.steps[0].name == "matrices"
    term = reached(LAYER, plan)
    inputs = random_inputs(LAYER, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(LAYER.body, inputs))
    compiled = compile_program(replace(LAYER, body=term), NVIDIA)
    (kernel,) = compiled.kernels
    assert not [b for b in compiled.buffers if b.role == "temporary"]
    assert kernel.source.count("local float") == 2
    windows = max(line.count("?") for line in kernel.source.splitlines())
    assert windows == 2  # each element of a window is asked for its place once, in both dimensions


IN_OTHER_ORDERS = {  # layers, rows, columns and lengths of the products, and whether windows lie side by side
    "of a batch": (
        """program p(X: [[[[f32]18]10]4]3, F: [[[[f32]3]3]4]32) =
             map(fun image => map(fun f => map2d(fun w => reduce(add, 0.0, map(mul, zip(join(join(f)), join(join(w))))),
               map(transpose, transpose(map(fun channel => slide2d(3, 1, channel), image)))), F), X)""",
        (32, 384, 36), True, {"depth": 4, "wide": 4, "tall": 4}),
    "channels last, filters inside": (
        """program p(X: [[[[f32]8]10]10]2, F: [[[[f32]8]3]3]32) =
             map(fun image => map2d(fun w => map(fun f =>
               reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))), F), slide2d(3, 1, image)), X)""",
        (32, 128, 72), False, {"tall": 4}),
    "of signals, of odd lengths": (
        """program p(X: [[[f32]45]7]4, F: [[[f32]5]7]61) =
             map(fun signal => map(fun f => map(fun w => reduce(add, 0.0, map(mul, zip(join(w), join(f)))),
               map(transpose, slide(5, 1, transpose(signal)))), F), X)""",
        (61, 164, 35), True, {}),
}  # fmt: skip


@pytest.mark.parametrize("what", IN_OTHER_ORDERS)
def test_windows_are_a_matrix_in_whatever_order_their_loops_stand(what: str):
    text, lengths, lies_across, _ = IN_OTHER_ORDERS[what]
    program = parse_program(text)
    (nest,) = nests(program.body)
    factors = product_of(nest)
    assert factors is not None
    assert (factors.rows, factors.columns, factors.length) == lengths
    assert factors.views
    assert factors.lies_across == (False, lies_across)
    assert has_tiles_of_views(program.body, NVIDIA)
    assert not has_tiles_of_views(program.body, POCL)


@in_turn(3)
@pytest.mark.parametrize("what", ["of a batch", "channels last, filters inside"])
def test_layers_in_other_orders_are_products_of_matrices(what: str):
    text, _, _, numbers = IN_OTHER_ORDERS[what]
    program = parse_program(text)
    term = reached(program, small_tiles(program, **numbers))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    compiled = compile_program(replace(program, body=term), NVIDIA)
    assert [b for b in compiled.buffers if b.role == "temporary"] == []


@in_turn(3)
def test_windows_of_odd_lengths_are_padded_and_nothing_of_that_is_in_memory():
    program = parse_program(IN_OTHER_ORDERS["of signals, of odd lengths"][0])
    (nest,) = nests(program.body)
    factors = product_of(nest)
    assert factors is not None
    assert (factors.padded.rows, factors.padded.columns, factors.padded.length) == (64, 192, 40)
    plan = next(tiles(nest, NVIDIA))
    assert [step.name for step in plan.steps[:2]] == ["matrices", "padding"]
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    compiled = compile_program(replace(program, body=term), NVIDIA)
    assert [b for b in compiled.buffers if b.role == "temporary"] == []


@in_turn(6)
@pytest.mark.parametrize("what", ["columns times columns, of several matrices", "a layer of convolutions"])
def test_slices_of_the_sums_belong_to_other_items_and_meet_in_local_memory(what: str):
    program = parse_program(PRODUCTS[what][0]) if what in PRODUCTS else LAYER
    term = reached(program, small_tiles(program, tall=4, slices=2))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.launch.local_size is not None
    assert kernel.launch.local_size[2] == 2
    assert kernel.source.count("local float") - kernel.source.count("(local float") == 3
    assert kernel.source.count("barrier(") == 3


@in_turn(3)
def test_large_blocks_take_vectors_that_lie_apart_and_tiles_in_turn():
    """A work-item's columns are 16 apart, as those of its neighbours lie between, and so are its results."""
    program = parse_program(
        """program p(A: [[f32]64]64, B: [[f32]256]64) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)"""
    )
    term = reached(program, small_tiles(program, tall=8, broad=16, high=4, wide=4, depth=8))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    read = re.findall(r"tmp3_\d = \*\(local const float4 \*\)\(tmp \+ tmp_at(?: \+ (\d+))?\)", kernel.source)
    assert read == ["", "16", "32", "48"]
    assert kernel.source.count("barrier(") == 2
    updates = re.findall(r"_(\d+)_(\d+) = \w+ \+", kernel.source)
    assert updates[14:18] == [("0", "14"), ("0", "15"), ("1", "15"), ("1", "14")]


def test_some_plans_need_no_more_local_memory_than_opencl_reports():
    program = specialise(load("mm"), dict.fromkeys("MNK", 1024))
    (nest,) = nests(program.body)
    wide = replace(NVIDIA, fixed_local=231424)
    first, *others = (dict(plan.recipe.numbers) for plan in tiles(nest, wide) if plan.recipe)
    assert first["slices"] * first["high"] * first["wide"] == 512
    plain = [dict(plan.recipe.numbers) for plan in tiles(nest, NVIDIA) if plan.recipe]
    assert first not in plain
    assert plain[0] in others


def test_what_the_first_plans_leave_out_is_for_searches_with_much_time():
    term = specialise(load("mm"), dict.fromkeys("MNK", 1024)).body
    (nest,) = nests(term)
    first, others = [*tiles(nest, NVIDIA)], [*further_plans(term, NVIDIA)]
    assert len(others) > 4 * len(first)
    recipes = [plan.recipe for plan in (*first, *others)]
    assert len({*recipes}) == len(recipes)
    assert not [*further_plans(term, POCL)]


@pytest.mark.parametrize(("seconds", "calls"), [(90, 0), (91, 1)])
def test_a_search_asks_for_further_plans_if_it_has_more_than_the_default_time(
    seconds: float, calls: int, monkeypatch: pytest.MonkeyPatch
):
    asked: list[ir.Expr] = []

    def none(term: ir.Expr, device: object) -> list[Plan]:
        asked.append(term)
        return []

    monkeypatch.setattr(search_module, "further_plans", none)
    program = parse_program("program p(x: [f32]64) = map(fun v => v + 1.0, x)")
    list(search(program, NVIDIA, Budget(seconds=seconds, lowered=1, seeds=1), StructuralCost()))
    assert len(asked) == calls


def test_products_of_doubles_have_tiles_of_half_the_elements():
    """An element takes two registers and the room of two, and a vector has half as many."""
    program = parse_program(
        """program p(A: [[f64]64]1024, B: [[f64]1024]64) =
             map(fun a => map(fun b => reduce(add, 0.0f64, map(mul, zip(a, b))), transpose(B)), A)"""
    )
    (nest,) = nests(program.body)
    numbers = [dict(plan.recipe.numbers) for plan in tiles(nest, NVIDIA) if plan.recipe]
    assert numbers
    assert {n["width"] for n in numbers} == {2}
    assert all(2 * n["tall"] * n["broad"] <= TILE_RESULTS[1] for n in numbers)


def test_products_of_what_is_computed_on_the_way_have_no_tiles():
    program = parse_program(
        """program p(A: [[f32]32]32, B: [[f32]128]32) = map(fun a => map(fun b =>
             reduce(add, 0.0, map(mul, zip(a, b))), transpose(map(map(abs), B))), A)"""
    )
    assert all(p.lowered_by for p in plans(program.body, NVIDIA))


@in_turn(3)
def test_a_plan_with_tiles_has_other_points(monkeypatch: pytest.MonkeyPatch):
    source = load("mm")
    program = specialise(source, {"M": 128, "K": 64, "N": 256})
    plan = small_tiles(program, slices=4)
    monkeypatch.setattr(by_plans, "plans", lambda *_: [plan])
    terms: set[ir.Expr] = set()
    for item in search(program, NVIDIA, FEW, StructuralCost(), source=source):
        if isinstance(item, Found):
            terms.add(item.term)
        elif isinstance(item, Tunable) and item.base.way[-1].name == "registers":
            break
    else:
        pytest.fail("no plan with tiles has parameters")
    assert item.base.term in terms
    space = item.space(NVIDIA)
    assert item.numbers in space
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    for point in space.sample(3, 0):
        assert point["high"] * point["wide"] * point["slices"] <= NVIDIA.max_work_group
        term = item.found(point).term
        assert np.array_equal(evaluate(term, inputs), expected)
        compile_program(replace(program, body=term), NVIDIA)
