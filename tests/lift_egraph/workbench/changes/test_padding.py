"""Products of matrices at lengths that no tile divides are padded: what the phase proves, and where it leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.padding import (
    LANES_OF_ROW,
    LONGEST,
    ROW_WASTES,
    ROWS_OF_LANES,
    Padding,
    chunk_of_padded,
)
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.planning.padded import DEPTHS, WASTES, padded_length
from lift_egraph.workbench.planning.plan import nests, planned_phase
from lift_egraph.workbench.planning.products import product_of
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached
from tests.lift_egraph.workbench.planning.test_tiles import small_tiles

DOT = "reduce(add, 0.0, map(mul, zip(a, b)))"
PRODUCTS = {  # and the numbers of rows, of columns, and of what is added up, where there are tiles
    "three odd lengths": (
        f"program p(A: [[f32]53]61, B: [[f32]350]53) = map(fun a => map(fun b => {DOT}, transpose(B)), A)",
        (64, 384, 64)),
    "only what is added up": (
        f"program p(A: [[f32]301]64, B: [[f32]301]64) = map(fun a => map(fun b => {DOT}, B), A)", (64, 64, 304)),
    "only rows, of a square": (
        f"program p(A: [[f64]112]112, B: [[f64]112]112) = map(fun a => map(fun b => {DOT}, B), A)", (128, 128, 112)),
    "whole numbers": (
        "program p(A: [[i32]112]111, B: [[i32]112]112) = "
        "map(fun a => map(fun b => reduce(add, 0, map(mul, zip(b, a))), B), A)", (128, 128, 112)),
    "rows of a length that only half of a warp's items divide": (
        "program p(A: [[f32]352]300) = map(fun a => reduce(max, 0.0, a), A)", None),
    "columns": (
        "program p(A: [[f32]301]250) = map(fun c => 2.0 * reduce(max, -9.0, c), transpose(A))", None),
    "sums of columns, times a vector": (
        "program p(A: [[f32]302]320, x: [f32]320) = map(fun c => reduce(add, 0.0, map(mul, zip(c, x))), transpose(A))",
        None),
    "columns beside an array": (
        "program p(A: [[f32]302]320, ms: [f32]302) = "
        "map(fun (m, c) => reduce(add, 0.0, map(fun v => (v - m) * (v - m), c)), zip(ms, transpose(A)))", None),
    "a long sum outside of all loops": (
        """program p(x: [f32]40001) = let m = reduce(add, 0.0, x) in
             reduce(max, -9.0, map(fun v => abs(v - m), x))""", None),
    "a sum of few thousands": (
        "program p(x: [f32]2049) = 2.0 * reduce(add, 0.0, x)", None),
    "a sum of what rows are folded to": (
        "program p(A: [[i32]101]2050) = reduce(add, 0, map(fun a => 2 * reduce(max, 0, map(fun v => v * v, a)), A))",
        None),
    "few long rows": (
        "program p(A: [[f32]1501]7) = map(fun a => reduce(add, 0.0, map(fun v => abs(v), a)), A)", None),
    "a scan": (
        "program p(x: [i32]3001) = let y = scan(add, 1, x) in map(fun (u, v) => u * v, zip(y, x))", None),
    "a scan of what is made of an array": (
        "program p(x: [f32]3001, y: [f32]3001) = scanExclusive(max, -9.0, map(fun (u, v) => u - v, zip(x, y)))", None),
    "distances": (
        "program p(A: [[f32]24]313, B: [[f32]24]217) = map(fun a => map(fun b => "
        "sqrt(reduce(add, 0.0, map(fun (x, y) => (x - y) * (x - y), zip(b, a)))), B), A)", (320, 224, 24)),
    "a batch": (
        f"""program p(A: [[[f32]50]60]9, B: [[[f32]61]50]9) =
              map(fun (x, y) => map(fun a => map(fun b => {DOT}, transpose(y)), x), zip(A, B))""", (64, 64, 64)),
    "of what another makes": (
        f"""program p(A: [[f32]128]128, B: [[f32]128]90, C: [[f32]90]128) =
              let h = map(fun a => map(fun b => {DOT}, B), A) in map(fun a => map(fun b => {DOT}, C), h)""",
        (128, 128, 96)),
    "with elements of other arrays": (
        f"program p(A: [[f32]251]200, u: [f32]200, B: [[f32]251]100, C: [[f32]100]200) = "
        f"map(fun (a, v, c) => map(fun (b, w) => v * {DOT} + w, zip(B, c)), zip(A, u, C))", (224, 128, 256)),
    "a matrix and a vector": (
        f"program p(A: [[f32]301]231, b: [f32]301, u: [f32]231) = map(fun (a, v) => {DOT} + v, zip(A, u))", None),
    "squares of rows": (
        "program p(A: [[f32]301]231) = map(fun a => sqrt(reduce(add, 0.0, map(fun v => v * v, a))), A)", None),
    "largest elements of rows": (
        "program p(A: [[f32]301]231) = map(fun a => 2.0 * reduce(max, -9.0, a), A)", None),
    "two folds of a row": (
        """program p(A: [[f32]301]231) = map(fun a => let m = reduce(max, -9.0, a) in
             let e = map(fun v => abs(v - m), a) in let t = reduce(add, 0.0, e) in map(fun v => v + t, e), A)""", None),
    "what is made of rows": (
        "program p(A: [[f32]301]231) = map(fun a => reduce(add, 0.0, map(fun v => v + 1.0, a)), A)", None),
    "folds of what is made of a row": (
        """program p(A: [[f32]301]231) = map(fun a => let m = reduce(add, 0.0, a) in
             let s = reduce(add, 0.0, map(fun v => (v - m) * (v - m), a)) in map(fun v => (v - m) * s, a), A)""", None),
    "distances of rows to a vector": (
        """program p(A: [[f32]301]231, b: [f32]301) =
             map(fun a => reduce(max, 0.0, map(fun (u, v) => abs(u - v), zip(a, b))), A)""", None),
}  # fmt: skip
AS_IT_IS = {
    "lengths that tiles divide": (
        f"program p(A: [[f32]64]96, B: [[f32]64]224) = map(fun a => map(fun b => {DOT}, B), A)"),
    "few columns": f"program p(A: [[f32]6001]301, B: [[f32]6001]5) = map(fun a => map(fun b => {DOT}, B), A)",
    "little work": f"program p(A: [[f32]61]61, B: [[f32]61]61) = map(fun a => map(fun b => {DOT}, B), A)",
    "columns that depend on the row": (
        f"program p(A: [[f32]101]101, B: [[f32]101]101) = "
        f"map(fun a => map(fun (b, c) => c * {DOT}, zip(B, a)), A)"),
    "rows that are read again": (
        f"program p(A: [[f32]301]64, B: [[f32]301]64) = map(fun a => map(fun b => {DOT} * a[0], B), A)"),
    "little to add up": (
        f"program p(A: [[f32]13]320, B: [[f32]13]320) = map(fun a => map(fun b => {DOT}, B), A)"),
    "no products, of which only the sums have a length that nothing divides": (
        "program p(A: [[f32]301]64, B: [[f32]301]64) = "
        "map(fun a => map(fun b => reduce(add, 0.0, map(fun (x, y) => abs(x - y), zip(a, b))), B), A)"),
    "a sum that begins elsewhere": (
        "program p(A: [[i32]109]128, B: [[i32]109]128) = "
        "map(fun a => map(fun b => reduce(add, 7, map(mul, zip(b, a))), B), A)"),
    "a sum of what is made of a row that begins elsewhere": (
        "program p(A: [[f32]301]231) = map(fun a => reduce(add, 1.0, map(fun v => v + 1.0, a)), A)"),
    "two folds of a row, of which one may not be padded": (
        "program p(A: [[f32]301]231) = map(fun a => let m = reduce(max, 0.0, a) in "
        "reduce(add, m, map(fun v => exp(v - m), a)), A)"),
    "folds of folded rows": (
        "program p(A: [[[f32]301]9]231) = map(fun a => reduce(add, 0.0, map(fun r => reduce(max, 0.0, r), a)), A)"),
    "loops": "program p(A: [[f32]301]231) = map(fun a => reduceSeq(fun (s, v) => s * 0.5 + v, 0.0, a), A)",
    "a long sum that would be guarded for long": f"program p(x: [f32]{LONGEST + 1}) = reduce(add, 0.0, x)",
    "a total that is no sum": (
        "program p(A: [[f32]301]64, B: [[f32]301]64) = "
        "map(fun a => map(fun b => reduce(max, 0.0, map(mul, zip(a, b))), B), A)"),
}  # fmt: skip


@in_turn(8)
@pytest.mark.parametrize("what", PRODUCTS)
def test_the_phase_proves_padded_products_equal(what: str) -> None:
    text, lengths = PRODUCTS[what]
    program = parse_program(text)
    changes = Changes(NVIDIA, Limits(iterations=MOST_STEPS, nodes=20_000), lambda phase: phase)
    *before, (phase, (term, _)) = changes.of((program.body, ()))
    assert phase.name == "padding"
    assert alpha_equal(Padding(NVIDIA).term(before[-1][1][0] if before else program.body), term)
    assert type_of(term) == type_of(program.body)
    made = [product for nest in nests(term) if (product := product_of(nest))]
    assert not lengths or lengths in [(p.rows, p.columns, p.length) for p in made]
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize("what", AS_IT_IS)
def test_others_stay_as_they_are(what: str) -> None:
    program, plan = parse_program(AS_IT_IS[what]), Padding(NVIDIA)
    assert plan.term(program.body) == program.body
    assert not plan.tiling


@pytest.mark.parametrize("length", [70_001, 999_983, 3_000_017, LONGEST - 1])
def test_a_long_array_is_padded_by_little_to_chunks_for_groups(length: int) -> None:
    chunk = chunk_of_padded(length)
    assert -length % chunk < length / 32
    assert chunk % NVIDIA.group_sizes[0] == 0


def test_a_device_without_groups_pads_nothing() -> None:
    program = parse_program(PRODUCTS["three odd lengths"][0])
    changes = Changes(POCL, Limits(iterations=MOST_STEPS), lambda phase: phase)
    assert not any(phase.name == "padding" for phase, _ in changes.of((program.body, ())))


def test_padded_lengths_are_near_and_have_large_divisors() -> None:
    lengths = {997: 1024, 1000: 1024, 1024: 1024, 96: 96, 700: 704, 100: 128, 36: 36, 33: 33, 31: 31, 1: 1, 0: 0}
    assert {n: padded_length(n) for n in lengths} == lengths
    assert all(padded_length(n) <= n * 4 / 3 for n in range(2000))
    for n in range(2000):
        for wastes in (WASTES, ROW_WASTES, DEPTHS, ROWS_OF_LANES, (*ROW_WASTES, *LANES_OF_ROW)):
            if (length := padded_length(n, wastes)) != n:
                plan = Padding(NVIDIA)
                plan.note(n, length)
                assert all(k < n and n + -n % k == length for k in plan.tiling[n])


@in_turn(3)
def test_tiles_are_guarded() -> None:
    """Both are copied with zeros and copies of the last row behind; what is kept is written alone."""
    program = parse_program(PRODUCTS["three odd lengths"][0])
    padded = replace(program, body=Padding(NVIDIA).term(program.body))
    term = reached(padded, small_tiles(padded))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes
    assert "index_min" in kernel.source  # of copies of the last row
    assert "< 53" in kernel.source  # of zeros
    assert "< 61" in kernel.source  # of what is kept
    assert "global const float4" not in kernel.source  # no vector of lines of odd lengths is aligned
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


def test_the_phase_needs_the_lengths() -> None:
    """What no fact offers is not padded."""
    program = parse_program(PRODUCTS["three odd lengths"][0])
    term = Padding(NVIDIA).term(program.body)
    *_, reached = run_phase(program.body, planned_phase("padding", {}, (), Limits(iterations=MOST_STEPS)))
    assert locate(reached.graph, reached.root, term) is None
