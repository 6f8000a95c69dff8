"""Few long rows are folded in chunks beside each other; many rows, and short ones, are left as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.operators import facts_of, reasons, uses_in
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench import explain_way
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.exploration.stage_cut import cut
from lift_egraph.workbench.phases import Leg
from lift_egraph.workbench.planning.plan import LONG, nests
from lift_egraph.workbench.planning.plans import plans
from tests.depth import in_turn
from tests.in_process import no_children
from tests.reaching import leads_to

DEVICE = POCL
ROWS = Rows(DEVICE)
CHUNKS = ROWS.chunks(2, 1 << 20, in_lanes=True) or 0
N = 32 * CHUNKS + 3  # with a rest
LOUDEST = "fun ((m, i), (x, j)) => select(abs(x) > m, (abs(x), j), (m, i))"
INDEXED = f"zip(row, generate({N}, fun i => i))"
SEGMENT = "fun ((best, here), x) => let ends = max(here + x, x) in (max(best, ends), ends)"
BODIES = {
    "horner": "reduceSeq(fun (s, x) => s * k + x, 0.0, row)",
    "segment sum": f"reduceSeq({SEGMENT}, (-inf, -inf), row)",
    "loudest": f"reduce({LOUDEST}, (0.0, 0), {INDEXED})",
    "two": f"(reduceSeq(fun (s, x) => s * k + x, 1.0, row), reduce({LOUDEST}, (0.0, 0), {INDEXED}))",
    "then": "sqrt(abs(reduceSeq(fun (s, x) => s * k + x, 0.0, row))) + 1.0",
    "product": "reduceSeq(fun (s, x) => s * k + x, 0.0, row) * reduceSeq(fun (s, x) => s - x, 1.0, row)",
    "scan": "scan(fun (s, x) => s + k * (x - s), 0.0, row)",
    "sums": "scan(add, 1.0, row)",
    "filter": "let (s, t) = reduceSeq(fun ((s, t), x) => (t, x - k * s), (1.0, 0.0), row) in s + t",
    "levels": "let ys = scan(fun (s, x) => s + k * (x - s), 0.0, row) in map(fun (x, y) => x - y, zip(row, ys))",
    "dependent": (
        f"let (m, i) = reduce({LOUDEST}, (0.0, 0), {INDEXED}) in reduceSeq(fun (s, x) => s * k + x * m, 0.0, row)"
    ),
    "after": f"let a = reduce(max, -inf, row) in let (m, i) = reduce({LOUDEST}, (0.0, 0), {INDEXED}) in (a - m, i)",
    "in a let": f"let m = k + 1.0 in reduceSeq({SEGMENT.replace('here + x', 'here + x * m')}, (-inf, -inf), row)",
    "array": "let s = reduceSeq(fun (s, x) => s * k + x, 0.0, row) in map(fun x => x - s, row)",
}


def legs(body: ir.Expr) -> tuple[Leg, ...]:
    made, kind = list[Leg](), DEVICE.mapping
    acted = with_actions(body, ROWS)
    if acted is not None:
        made.append(Leg("algebra", acted, 3, kind))
    body, plan = body if acted is None else acted, LongRows(ROWS)
    apart = plan.apart(body)
    if not alpha_equal(apart, body):
        made.append(Leg("rows_apart", apart, 4, kind))
    term = plan.in_chunks(apart)
    return (*made, Leg("long_rows", term, 9, kind, plan.tiling)) if plan.tiling else tuple(made)


def in_rows(body: str) -> ir.Program:
    return parse_program(f"program p(xs: [[f32]{N}]2, k: f32 in 0..1) = map(fun row => {body}, xs)")


@in_turn(8)
@pytest.mark.parametrize("name", BODIES)
def test_the_folds_of_few_long_rows_are_taken_apart(name: str):
    program = in_rows(BODIES[name])
    way = legs(program.body)
    assert way[-1].name == "long_rows"
    assert any(isinstance(t, ir.Split) for t in ir.subterms(way[-1].term))
    check(program, way)


def test_a_fold_in_a_let_inside_of_an_operation_stays():
    """In chunks of its own, it would use what the let binds outside of that."""
    body = "sqrt(let m = k + 1.0 in reduce(add, 0.0, map(fun x => x * m, row)))"
    program = parse_program(f"program p(xs: [[f32]{LONG}]2, k: f32) = map(fun row => {body}, xs)")
    plan = LongRows(ROWS)
    assert alpha_equal(plan.in_chunks(plan.apart(program.body)), program.body)
    assert not plan.tiling


SHIFTED = "select(bit_and(c, 1u32) == 1u32, bit_xor(shift_right(c, 1u32), 3988292384u32), shift_right(c, 1u32))"
CRC = f"fun (c, x) => bit_xor({SHIFTED}, x)"
BIQUAD = """fun ((y, (s, t)), x) =>
  let out = 2.0 * x + s in (out, (3.0 * x - out + t, 2.0 * x + (k - 1.0) * out))"""  # sums stay small for k = 1


@in_turn(8)
@pytest.mark.parametrize(
    ("scan", "starts"),
    [
        ("scan(fun (s, x) => min(max(s + x, 0.0), 5.0), 0.0, xs)", ir.ScanExclusive),
        ("scan(fun (s, x) => k * (x - s), 0.0, xs)", ir.ScanExclusiveSeq),
        (f"scanSeq({BIQUAD}, (0.0, (0.0, 0.0)), xs)", ir.ScanExclusiveSeq),
    ],
)
@pytest.mark.parametrize("length", [N, N - 3], ids=["with a rest", "in chunks"])
def test_a_long_scan_is_taken_in_chunks_of_which_alone_matrices_are_made(scan: str, starts: type[ir.Expr], length: int):
    program = parse_program(f"program p(xs: [f32]{length}, k: f32 in 0..1) = let xs = map(neg, xs) in {scan}")
    (leg,) = legs(program.body)
    assert leg.name == "long_rows"
    assert sum(isinstance(t, starts) for t in ir.subterms(leg.term)) == 1
    check(program, (leg,))


@in_turn(6)
@pytest.mark.parametrize("fold", [BODIES["horner"], BODIES["filter"]], ids=["horner", "filter"])
@pytest.mark.parametrize("rows", [None, 2], ids=["alone", "in rows"])
def test_neighbours_are_in_lanes_of_a_long_fold_by_one_matrix(fold: str, rows: int | None):
    length, body = LONG + 3, fold.replace("row", "xs") if rows is None else f"map(fun row => {fold}, xs)"
    t = f"[i32]{length}" if rows is None else f"[[i32]{length}]{rows}"
    program = parse_program(f"program p(xs: {t}) = {body.replace('.0', '').replace('k', '3')}")
    (leg,) = legs(program.body)
    assert any(isinstance(t, ir.Transpose) for t in ir.subterms(leg.term))
    check(program, (leg,))


def test_words_of_bits_are_folded_in_chunks_whose_matrix_is_a_word():
    program = parse_program(f"program p(xs: [u32]{N}) = reduceSeq({CRC}, 7u32, xs)")
    way = legs(program.body)
    (leg,) = way
    assert not any(
        isinstance(t, ir.Transpose) for t in ir.subterms(leg.term)
    )  # a step for each element would take long
    check(program, way)
    (use,) = [u for u in uses_in(program.body) if u.pattern is ir.ReduceSeq]
    (reason,) = reasons(use)
    assert "a matrix that is the same for all elements: its bits are linear in those before" in reason


def check(program: ir.Program, way: tuple[Leg, ...]) -> None:
    before = program.body
    for leg in way:
        assert leads_to(before, leg.phase, leg.term)
        before = leg.term
    inputs = random_inputs(program, 0, "integer") | ({"k": np.float32(1)} if len(program.inputs) > 1 else {})
    assert equal_values(evaluate(program.body, inputs), evaluate(way[-1].term, inputs))


@in_turn(6)
@pytest.mark.parametrize("length", [N, N - 3], ids=["with a rest", "in chunks"])
def test_rows_of_matrices_are_rows(length: int):
    fold = f"reduce({LOUDEST}, (0.0, 0), zip(row, generate({length}, fun i => i)))"
    program = parse_program(f"program p(xs: [[[f32]{length}]1]2) = map(fun m => map(fun row => {fold}, m), xs)")
    way = legs(program.body)
    assert way[-1].name == "long_rows"
    check(program, way)


@in_turn(8)
@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("segment sum", {"fold_by_action", "reduce_with_rest", "name_reduction", "map_fission_of_reduced"}),
        ("scan", {"scan_in_steady_chunks", "scan_with_rest", "let_out_of_pair", "map_of_let_named"}),
        ("horner", {"fold_in_steady_chunks", "fold_with_rest", "map_of_let_named"}),
        ("sums", {"scan_in_named_chunks", "map_of_let_named"}),
    ],
)
def test_the_steps_are_explained(body: str, rules: set[str]):
    program = in_rows(BODIES[body])
    with no_children():
        found = explain_way(program, legs(program.body))
    assert found.complete, str(found)
    assert found.sound
    assert rules <= {checked.step.rule.name for checked in found.steps}


def test_the_matrix_of_a_recurrence_with_constant_coefficients_is_no_data():
    program = in_rows(BODIES["filter"])
    made = legs(program.body)[-1].term
    of_matrices = [t for t in ir.subterms(made) if isinstance(t, ir.Reduce) and type(type_of(t)).__name__ == "Pair"]
    assert of_matrices
    assert all(isinstance(t.array, ir.Fill) for t in of_matrices)


@pytest.mark.parametrize(("rows", "length"), [(5000, 37), (2, 100), (5000, 4000)])
def test_folds_that_act_stay_loops_in_many_rows_and_in_short_ones(rows: int, length: int):
    fold = "reduceSeq(fun (s, x) => s * k + x, 0.0, row)"
    program = parse_program(f"program p(xs: [[f32]{length}]{rows}, k: f32) = map(fun row => {fold}, xs)")
    assert legs(program.body) == ()


def test_folds_of_a_function_of_the_elements_are_reductions_in_any_rows():
    fold = "reduceSeq(fun (s, x) => s + x * x, 0.0, row)"
    program = parse_program(f"program p(xs: [[f32]37]5000) = map(fun row => {fold}, xs)")
    (leg,) = legs(program.body)
    assert any(isinstance(t, ir.Reduce) for t in ir.subterms(leg.term))


def test_what_depends_on_the_accumulator_stays():
    fold = "reduceSeq(fun (s, x) => s * s + x, 0.0, row)"
    program = parse_program(f"program p(xs: [[f32]{N}]2) = map(fun row => {fold}, xs)")
    assert legs(program.body) == ()
    (reason,) = refusals(program.body)
    assert "s * s multiplies the accumulator with itself" in reason


def test_a_scan_whose_factors_overflow_stays_a_loop():
    def of(factor: float, fold: str = "scanSeq") -> ir.Expr:
        text = f"program p(xs: [f32]{N}) = {fold}(fun (s, x) => max(s * {factor} + x, -5.0), 1.0, xs)"
        return parse_program(text).body

    assert legs(of(0.99))
    assert not [*refusals(of(0.99))]
    assert legs(of(1.1)) == ()
    (reason,) = refusals(of(1.1))
    assert "multiplied, shifted and clamped does not help" in reason
    assert f"the factors of {N} elements" in reason
    assert legs(of(0.99, "reduceSeq"))
    assert not [*refusals(of(0.99, "reduceSeq"))]
    assert legs(of(1.1, "reduceSeq")) == ()
    (reason,) = refusals(of(1.1, "reduceSeq"))
    assert f"the factors of {N} elements" in reason
    told = {factor: [str(f) for use in uses_in(of(factor)) for f in facts_of(use)] for factor in (0.99, 1.1)}
    assert any("acts(" in fact for fact in told[0.99])
    assert not any("acts(" in fact for fact in told[1.1])


@pytest.mark.parametrize("fold", ["scanSeq", "reduceSeq"])
def test_factors_of_data_may_overflow_where_the_loop_does_not(fold: str):
    """A thousand factors of 2 are infinite, and that less infinity is a NaN; the loop stays between its bounds."""

    def of(step: str) -> ir.Expr:
        text = f"program p(xs: [f32]{N}, k: f32) = {fold}(fun (s, x) => {step}, 1.0, xs)"
        return parse_program(text).body

    (reason,) = refusals(of("min(max(k * s + x, -1.0), 1.0)"))
    assert "data may multiply to what floats do not hold" in reason
    assert legs(of("min(max(k * s + x, -1.0), 1.0)")) == ()
    for step in ("min(max(max(min(k, 1.0), -1.0) * s + x, -1.0), 1.0)", "max(s * x, x)"):
        assert not [*refusals(of(step))]
        assert legs(of(step))


def test_a_gpu_has_a_chunk_for_each_item_of_a_warp_and_shares_sums_in_groups():
    rows = Rows(NVIDIA)
    chunks = rows.chunks(19, 4801, in_lanes=True)
    assert chunks is not None
    assert chunks % 32 == 0
    assert rows.chunks(19, 4801, in_lanes=False) is None  # a group has a row
    assert rows.chunks(128, 1 << 20, in_lanes=False) == 2
    assert rows.chunks(128, 1 << 19, in_lanes=False) == 4  # of two an item had as many elements as there are items


@pytest.mark.parametrize(
    ("rows", "fold"),
    [
        (2, "map(fun row => reduceSeq(fun (s, x) => s * k + x, 0.0, row), xs)"),
        (1, f"scanSeq({BIQUAD}, (0.0, (0.0, 0.0)), xs)"),
        (1, f"reduceSeq({CRC}, 7u32, xs)"),
    ],
    ids=["rows", "scan", "bits"],
)
def test_a_gpu_takes_recurrences_in_about_as_many_chunks_as_each_has_elements(rows: int, fold: str):
    n = 1000003
    element = "u32" if "u32" in fold else "f32"
    t = f"[{element}]{n}" if rows == 1 else f"[[{element}]{n}]{rows}"
    plan = LongRows(Rows(replace(NVIDIA, groups_progress=False)))  # else groups look back
    plan.in_chunks(parse_program(f"program p(xs: {t}, k: f32) = {fold}").body)
    (chunk,) = min((chunks for length, chunks in plan.tiling.items() if length > n // 2), key=len)
    assert 1 / 2 < chunk / (n / chunk) < 2  # what the chunks give is folded by one work-item


NORMALISED = """let m = reduce(add, 0.0, c) * 0.5 in let s = reduce(add, 0.0, map(fun v => (v - m) * (v - m), c)) in
    map(fun v => (v - m) * s, c)"""


@in_turn(6)
@pytest.mark.parametrize(
    "text",
    [
        f"let XT = transpose(X) in transpose(map(fun c => {NORMALISED}, XT))",
        f"transpose(map(fun c => {NORMALISED}, transpose(X)))",
    ],
    ids=["by a name", "where it stands"],
)
def test_a_gpu_folds_columns_by_maps_of_their_own_and_has_rows_for_the_rest(text: str):
    program = parse_program(f"program p(X: [[f32]1024]600) = {text}")
    changes = Changes(NVIDIA, Limits(iterations=MOST_STEPS, nodes=20_000), lambda phase: phase)
    terms = {phase.name: term for phase, (term, _) in changes.of((program.body, ()))}
    term = terms["rows_apart"]
    parts = cut(term)
    assert parts is not None
    *folds, rest = parts.stages.values()
    assert [sum(isinstance(t, ir.Reduce) for t in ir.subterms(fold)) for fold in folds] == [1, 1]
    assert isinstance(rest, ir.Map)
    assert isinstance(rest.array, ir.Input)
    assert type_of(rest.array) == program.inputs[0].type  # by rows, as the matrix lies in memory
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))
    on_a_cpu = Changes(POCL, Limits(iterations=MOST_STEPS), lambda phase: phase)
    assert "rows_apart" not in [phase.name for phase, _ in on_a_cpu.of((program.body, ()))]


@pytest.mark.parametrize(
    "row",
    [
        "let c = scan(add, 0.0, map(fun v => v * v, r)) in map(fun v => v / (c[599] + 1.0), c)",
        "let t = reduce(add, 1.0, r) in map(fun v => v / t, scanExclusive(max, 0.0, r))",
    ],
    ids=["by a name", "read by a map"],
)
def test_a_gpu_scans_rows_by_a_map_of_its_own_if_more_is_done_with_them(row: str):
    program = parse_program(f"program p(X: [[f32]600]1024) = map(fun r => {row}, X)")
    changes = Changes(NVIDIA, Limits(iterations=MOST_STEPS, nodes=20_000), lambda phase: phase)
    term = next(term for phase, (term, _) in changes.of((program.body, ())) if phase.name == "rows_apart")
    parts = cut(term)
    assert parts is not None
    scanned, rest = parts.stages.values()
    scans = (ir.Scan, ir.ScanExclusive)
    assert [any(isinstance(t, scans) for t in ir.subterms(stage)) for stage in (scanned, rest)] == [True, False]


def test_the_lets_of_a_scan_stand_before_what_takes_a_component():
    program = parse_program(
        f"program p(xs: [f32]{N}, k: f32 in 0..1) = map(fun (y, s) => y, scanSeq({BIQUAD}, (0.0, (0.0, 0.0)), xs))"
    )
    (leg,) = legs(program.body)
    parts = cut(leg.term)
    assert parts is not None
    assert sum(isinstance(stage, ir.Map) for stage in parts.stages.values()) == 2  # what chunks give, and their scans
    check(program, (leg,))


@pytest.mark.parametrize("length", [600011, 1 << 20, 100003])
def test_groups_of_a_gpu_share_few_long_rows_of_any_length(length: int):
    rows = Rows(NVIDIA)
    items = NVIDIA.group_sizes[0]
    chunks = rows.chunks(3, length, in_lanes=False)
    assert chunks is not None
    chunk = rows.chunk(length, chunks, in_lanes=False)
    assert chunk % items == 0
    assert 0 <= length - chunks * chunk < 4 * items
    assert rows.chunks(NVIDIA.compute_units, length, in_lanes=False) is None
    text = f"program p(xs: [[f32]{length}]3) = map(fun row => sqrt(reduce(add, 0.0, map(abs, row))), xs)"
    program = parse_program(text)
    plan = LongRows(rows)
    made = plan.in_chunks(program.body)
    (nest,) = [n for n in nests(made) if n.length == chunk]
    assert any(nest.length in step.tiling for p in plans(made, NVIDIA) for step in p.steps)
    assert plan.tiling
