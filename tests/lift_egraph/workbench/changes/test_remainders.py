"""Lengths that nothing divides: parts and rests that the phase proves, and a search that starts from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.tiling import chunk_size
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import size_of, specialise, type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, run
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench import Budget, Found, explain_way
from lift_egraph.workbench.changes.remainders import WithRests, chunk_for, vector_of
from lift_egraph.workbench.changes.steps import MOST_STEPS
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.exploration.stage_cut import cut
from lift_egraph.workbench.phases import remainders_phase
from lift_egraph.workbench.planning.plan import length_of
from lift_egraph.workbench.planning.plans import plans
from tests.depth import in_turn
from tests.in_process import no_children
from tests.reaching import leads_to

CPU = replace(POCL, compute_units=2, vector_width=16)
FAST = Budget(limits=Limits(iterations=2, nodes=5_000), seeds=1, lowered=2, staged=1, copies=1, stage_seeds=1)
LONG = 1 << 12  # from which arrays are cut into chunks for work-items, to keep the interpreter's work small

ODD = {  # and the number of parts
    "saxpy": ("program p(a: f32, x: [f32]131, y: [f32]131) = map(fun (u, v) => a * u + v, zip(x, y))", 2),
    "a long map": ("program p(x: [f32]8265) = map(abs, x)", 3),
    "a reduction": ("program p(x: [f32]101, y: [f32]101) = reduce(add, 0.0, map(mul, zip(x, y)))", 2),
    "a product of matrices": (
        """program p(A: [[f32]3]67, B: [[f32]73]3) =
             map(fun row => map(fun col => reduce(add, 0.0, map(mul, zip(row, col))), transpose(B)), A)""", 4),
    "a product of few rows and columns": (
        """program p(A: [[f32]3]19, B: [[f32]3]31) =
             map(fun row => map(fun col => reduce(add, 0.0, map(mul, zip(row, col))), B), A)""", 4),
    "a stencil in two dimensions": (
        """program p(A: [[f32]66]67) = map2d(fun w => at(1, at(0, w)) - at(2, at(1, w)),
             slide2d(3, 1, pad2d(1, 1, clamp, A)))""", 2),
    "a stencil that folds its windows": (
        """program p(A: [[f32]67]71) = map2d(fun w => reduce(add, 0.0, join(w)),
             slide2d(3, 1, pad2d(1, 1, clamp, A)))""", 2),
    "rows that are reduced": (
        """program p(A: [[f32]67]131, x: [f32]67, y: [f32]131) =
             map(fun (row, u) => 2.0 * reduce(add, 0.0, map(mul, zip(row, x))) + u, zip(A, y))""", 2),
    "a nest of three": ("program p(A: [[[f32]65]2]67) = map3d(fun v => v * v, A)", 2),
    "two stages": (
        "program p(x: [f32]83) = map(fun u => u * 2.0, map(fun w => at(0, w) - at(2, w), slide(3, 1, map(abs, x))))",
        6),
    "steps of an iterate": (
        "program p(x: [f32]83, y: [f32]83) = iterate(3, fun u => map(fun (a, b) => a * 2.0 - b, zip(u, y)), x)", 2),
    "a scan": ("program p(x: [f32]32801, z: f32) = scan(add, z, x)", 3),
    "what stands before each product": (
        "program p(x: [i32]32801, y: [i32]32801) = scanExclusive(add, 0, map(mul, zip(x, y)))", 3),
    "a reduction of a scan": (
        "program p(x: [f32]101) = reduce(max, 0.0, scanSeq(fun (s, v) => s * 0.5 + v, 0.0, x))", 3),
    "a reduction of what is calculated from a scan": (
        "program p(x: [i32]101) = reduce(max, 0, map(abs, scanSeq(fun (s, v) => s * 3 - v, 0, x)))", 3),
    "folds of scans beside what has the name that they would get": (
        """program p(x: [i32]101) = let array = scanSeq(add, 0, x) in let f = fun v => v * array[5] in
             let z = scanSeq(fun (s, v) => s * 3 - v, 0, x) in
             (reduce(add, 0, map(f, scanSeq(max, 0, x))), map(f, z))""", 7),
    "sums by index": (
        "program p(is: [i32]32801 in 0..3, x: [i32]32801) = reduceByIndex(add, fill(3, 0), is, map(abs, x))", 2),
    "what is generated": ("program p(x: [f32]67) = generate(83, fun i => reduce(add, f32(i), x))", 2),
    "generated rows": ("program p(x: [i32]67) = map(fun v => generate(83, fun i => i * v), x)", 2),
    "few columns that are folded": (
        """program p(A: [[f32]37]9) =
             map(fun col => reduceSeq(fun (s, x) => s - 2.0 * x, 0.0, col), transpose(A))""", 2),
    "maps in lets and beside each other": (
        """program p(A: [[f32]67]131) = map(fun row => let t = reduce(max, 0.0, row) in let y = map(fun v => v + t, row)
             in concat(map(fun v => v + 1.0, y), map(abs, slice(0, 66, row))), A)""", 2),
    "short rows": (
        """program p(A: [[f32]3]67) = map(fun v => let n = at(0, v) + at(2, v) in map(fun c => c * n, v), A)""", 2),
    "columns of each matrix of an array": (
        """program p(x: [[[f32]67]5]3) = map(fun plane => transpose(map(fun col =>
             let m = reduce(max, 0.0, col) in map(fun v => v - m, col), transpose(plane))), x)""", 2),
    "two results": ("program p(x: [f32]83) = (map(abs, x), reduce(max, 0.0, x))", 4),
}  # fmt: skip


def apart() -> WithRests:
    return WithRests(chunk_for(CPU, LONG, 8), vector_of(CPU))


@in_turn(8)
@pytest.mark.parametrize("what", ODD)
def test_the_phase_proves_the_parts_equal_to_the_program(what: str) -> None:
    text, count = ODD[what]
    program = parse_program(text)
    plan = apart()
    term = plan.term(program.body)
    assert type_of(term) == type_of(program.body)
    parts = cut(term)
    assert parts is not None
    assert len(parts.stages) == count
    assert leads_to(program.body, remainders_phase(plan.tiling, (plan.width,), Limits(iterations=MOST_STEPS)), term)
    inputs = random_inputs(program, 0, "integer")
    pairs = zip(leaves_of(evaluate(term, inputs)), leaves_of(evaluate(program.body, inputs)), strict=True)
    assert all(np.array_equal(found, wanted) for found, wanted in pairs)


def test_rows_in_tuples_have_vectors_along_them():
    """The lanes of vectors would else be in other rows."""
    program = parse_program(
        """program p(A: [[f32]67]131) =
             map(fun row => let twice = map(fun v => v + v, row) in (map(abs, twice), twice), A)"""
    )
    plan = apart()
    term = plan.term(program.body)
    assert isinstance(term, ir.Map)
    assert list(plan.tiling) == [67]
    assert leads_to(program.body, remainders_phase(plan.tiling, (plan.width,), Limits(iterations=MOST_STEPS)), term)


def test_rows_of_uneven_length_are_left_together():
    program = parse_program(
        """program p(offsets: [i32]102 in offsets(97), x: [f32]97) =
             map(fun w => reduceRange(add, 0.0, w[0], w[1], x), slide(2, 1, offsets))"""
    )
    plan = apart()
    assert plan.term(program.body) == program.body
    assert not plan.tiling


def test_many_rows_of_uneven_length_are_cut_where_no_chunks_of_them_are_alike():
    text = """program p(offsets: [i32](M + 1) in offsets(97), x: [f32]97) =
                map(fun w => reduceRange(add, 0.0, w[0], w[1], x), slide(2, 1, offsets))"""
    for rows, lengths in ((2048, None), (2053, (2048, 5))):
        program = specialise(parse_program(text), {"M": rows})
        plan = replace(apart(), shares=16)
        term = plan.term(program.body)
        assert (term == program.body) == (lengths is None)
        if lengths:
            assert plan.tiling == {rows: (16,)}
            assert tuple(length_of(t) for t in ir.subterms(term) if isinstance(t, ir.Map)) == lengths
        inputs = random_inputs(program, 0, "integer")
        assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))


@pytest.mark.parametrize("n", [1, 2, 3, 13, 61, 64, 80, 1024])
def test_short_and_round_lengths_stay_whole(n: int) -> None:
    for body in ("map(abs, x)", f"scan(add, 0.0, concat(x, fill({32 * 1024 - n}, 0.0)))"):
        program = parse_program(f"program p(x: [f32]{n}) = {body}")
        plan = apart()
        assert plan.term(program.body) == program.body
        assert not plan.tiling


def test_a_scan_without_plans_stays_whole() -> None:
    """Its parts would be loops as it is."""
    program = parse_program("program p(x: [f32]8265) = scan(add, 0.0, x)")
    assert apart().term(program.body) == program.body


def test_what_stands_for_a_part_of_an_input_is_put_back() -> None:
    program = parse_program(ODD["a product of matrices"][0])
    term = apart().term(program.body)
    parts = cut(term)
    assert parts is not None
    for stage in parts.stages:
        alone = parts.program(stage, program)
        assert not any(isinstance(t, ir.Slice) for t in ir.subterms(alone.body))
    assert alpha_equal(parts.joined(parts.stages), term)


def test_a_reduction_has_its_rest_in_its_row_unless_columns_are_for_vectors() -> None:
    for what, folds in (("rows that are reduced", 2), ("a product of matrices", 1)):
        parts = cut(apart().term(parse_program(ODD[what][0]).body))
        assert parts is not None
        assert {sum(isinstance(t, ir.Reduce) for t in ir.subterms(s)) for s in parts.stages.values()} == {folds}


def found_for(text: str) -> tuple[ir.Program, list[Found]]:
    program = specialise(parse_program(text))
    return program, [f for f in search(program, CPU, FAST, StructuralCost()) if isinstance(f, Found)]


def test_rows_whose_ranges_are_counted_by_indices_get_lanes() -> None:
    program, found = found_for(
        """program p(rhs: [[f32]8]67) = map(fun b =>
             reduceSeq(fun (s, (i, x)) => x - s * reduceRange(add, 0.0, 0, i, b), 0.0, zip(generate(8, id), b)), rhs)"""
    )
    vectorised = [(f.term, t) for f in found for t in ir.subterms(f.term) if isinstance(t, ir.Vectorize)]
    in_lanes = [term for term, f in vectorised if any(isinstance(t, ir.ReduceRangeSeq) for t in ir.subterms(f))]
    assert in_lanes
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(in_lanes[0], inputs), evaluate(program.body, inputs))
    assert compile_program(replace(program, body=in_lanes[0]), CPU)


def test_a_reduction_by_an_operator_of_ones_own_goes_on_from_what_kernels_computed() -> None:
    program, found = found_for("program p(x: [i32]8209) = reduce(fun (a, b) => a + b + a * b, 0, x)")
    parallel = [f.term for f in found if any(isinstance(t, ir.MapLevel) for t in ir.subterms(f.term))]
    assert parallel
    inputs = random_inputs(program, 0, "integer")
    assert {int(np.asarray(evaluate(term, inputs))) for term in parallel} == {int(np.asarray(run(program, inputs)))}
    assert compile_program(replace(program, body=parallel[0]), CPU).kernels


@in_turn(8)
@pytest.mark.parametrize("n", [67, 101, 131])
def test_a_prime_length_gets_vectors(n: int) -> None:
    program, found = found_for(f"program p(x: [f32]{n}) = map(fun v => v * 2.0, x)")
    inputs = random_inputs(program, 0, "integer")
    wanted = evaluate(program.body, inputs)
    lanes = [size_of(t.array).constant for f in found for t in ir.subterms(f.term) if isinstance(t, ir.AsVector)]
    assert lanes
    for each in found:
        assert np.array_equal(evaluate(each.term, inputs), wanted)
    assert min(len(compile_program(replace(program, body=f.term), CPU).kernels) for f in found if len(f.way) > 2) == 1


@pytest.mark.parametrize(("n", "rest"), [(1291, 11), (1009, 1), (777, 9), (1021, 13)])
def test_a_rest_is_shorter_than_what_a_smaller_chunk_divides(n: int, rest: int) -> None:
    chunk = chunk_for(CPU, LONG, 8)(n, True)
    assert chunk is not None
    assert n % chunk == rest


@pytest.mark.parametrize("n", [32771, 100003, 500009, 1_000_003, 16_777_213])
def test_groups_have_the_longest_part_that_their_chunks_divide(n: int) -> None:
    """One work-item takes the rest, so it is not as long as what all items of all groups have one element of."""
    budget = Budget()
    chunk = chunk_for(NVIDIA, budget.long_array, budget.chunks_per_unit)(n, True)
    assert chunk is not None
    whole = n - n % chunk
    assert n % chunk < 2048
    own = chunk_size(whole, NVIDIA.groups)
    assert own is not None
    assert own % NVIDIA.group_sizes[-1] == 0
    assert chunk_for(NVIDIA, budget.long_array, budget.chunks_per_unit)(whole, True) is None
    program = parse_program(f"program p(x: [f32]{n}) = reduce(add, 0.0, x)")
    parts = WithRests(chunk_for(NVIDIA, budget.long_array, budget.chunks_per_unit), 4, in_lanes=False)
    assert any(step.name == "groups" for p in plans(parts.term(program.body), NVIDIA) for step in p.steps)


@in_turn(3)
def test_a_search_from_parts_is_explained() -> None:
    program, found = found_for(ODD["steps of an iterate"][0])
    each = next(f for f in found if f.way[0].name == "remainders")
    with no_children():
        explanation = explain_way(program, each.way)
    assert explanation.complete
    assert explanation.sound
    assert {"map_with_rest", "rest_in_vector"} <= {checked.step.rule.name for checked in explanation.steps}


@pytest.mark.parametrize(("length", "is_cut"), [(255, True), (256, False)])
def test_rows_that_a_group_shares_may_be_any_number(length: int, is_cut: bool) -> None:
    program = parse_program(f"program p(A: [[f32]{length}]1021) = map(fun a => reduce(max, 0.0, a), A)")
    plan = WithRests(chunk_for(NVIDIA, LONG, 8), vector_of(NVIDIA), in_lanes=False)
    plan.term(program.body)
    assert (1021 in plan.tiling) == is_cut


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        pytest.param("(A: [[f32]77]3001) = map(map(fun v => v * v), A)", [], id="elements of short rows"),
        pytest.param("(A: [[f32]1537]3001) = map(map(fun v => v * v), A)", [1537], id="elements of long rows"),
        pytest.param("(A: [[[f32]8]77]77) = map(map(fun v => 2.0 * reduce(add, 0.0, v)), A)", [], id="folds"),
        pytest.param(
            "(A: [[f32]301]4003) = map(fun r => scanSeq(fun (s, v) => 0.5 * s + v, 0.0, r), A)", [4003], id="scans"
        ),
    ],
)
def test_work_items_of_a_gpu_guard_what_no_block_or_vector_takes(text: str, lengths: list[int]) -> None:
    plan = WithRests(chunk_for(NVIDIA, LONG, 8), vector_of(NVIDIA), in_lanes=False)
    plan.term(parse_program(f"program p{text}").body)
    assert list(plan.tiling) == lengths


def test_what_a_nest_reads_is_computed_once() -> None:
    """Also where its rows have rests, which stand outside of it."""
    text = "map(map(fun v => v + 1.0), map(map(fun v => reduce(add, v, A[0])), A))"
    program = parse_program(f"program p(A: [[f32]1537]64) = {text}")
    term = WithRests(chunk_for(NVIDIA, LONG, 8), vector_of(NVIDIA), in_lanes=False).term(program.body)
    assert sum(isinstance(t, ir.Reduce) for t in ir.subterms(term)) == 1
