"""Automata of few states over few elements are folded by a table of words, in chunks."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.automata import table_steps
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

ROWS = Rows(POCL)
CHUNKS = ROWS.chunks(1, 1 << 20, in_lanes=True) or 0
LENGTHS = {"even": 32 * CHUNKS, "with a rest": 32 * CHUNKS + 3}
NEXT = "if s == 0 then (if c == 47 then 1 else 0) else (if s == 1 then (if c == 42 then 2 else 0) else " + (
    "(if s == 2 then (if c == 42 then 3 else 2) else (if c == 47 then 0 else 2)))"
)
BY_TABLE = {
    "a fold": f"reduceSeq(fun (s, c) => {NEXT}, 0, cs)",
    "a scan": f"scanSeq(fun (s, c) => {NEXT}, 0, cs)",
    "a fold of a range": "reduceSeq(fun (s, k) => (2 * s + k) % 7, 0, ks)",
    "and a count": f"let (s, n) = reduceSeq(fun ((s, n), c) => let t = {NEXT} in (t, if t == 2 then n + 1 else n), "
    "(0, 0), cs) in (s, n)",
    "and whether it was never so": "reduceSeq(fun ((s, ok), c) => ((s * 3 + to_i32(c)) % 13, ok && s != 12), "
    "(0, true), cs)",
}  # fmt: skip
OTHERS = {
    "a bool": "reduceSeq(fun (q, c) => if c == 34 then !q else q, false, cs)",
    "numbers that are clamped": "reduceSeq(fun (d, c) => if c == 40 then min(d + 1, 9) else max(d - 1, 0), 0, cs)",
    "a sum": "reduceSeq(fun (s, c) => s + to_i32(c), 0, cs)",
    "the last of some": "reduceSeq(fun (s, c) => if c < 9 then to_i32(c) else s, 0, cs)",
}


def program_of(fold: str, n: int) -> ir.Program:
    return with_ranges(parse_program(f"program p(cs: [u8]{n}, ks: [i32]{n} in 0..2) = {fold}"))


@in_turn(4)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", BY_TABLE)
def test_rules_lead_to_the_table_and_it_gives_the_same(name: str, length: str):
    n = LENGTHS[length]
    program = program_of(BY_TABLE[name], n)
    (step,) = table_steps(program.body, ROWS, 1)
    draw = np.random.default_rng(1)
    text = draw.choice(np.frombuffer(b"/* a\xff", np.uint8), n)
    inputs = {"cs": text, "ks": draw.integers(0, 2, n).astype(np.int32)}
    assert equal_values(evaluate(step.term, inputs), evaluate(program.body, inputs))
    assert leads_to(program.body, Leg(step.phase, step.term, 8, POCL.mapping, step.tiling).phase, step.term)


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_simpler_law_makes_parallel_has_none(name: str):
    assert not list(table_steps(program_of(OTHERS[name], LENGTHS["even"]).body, ROWS, 1))


def test_short_folds_and_those_of_gpus_have_none():
    body = program_of(BY_TABLE["a fold"], LENGTHS["even"]).body
    assert not list(table_steps(body, ROWS))
    assert not list(table_steps(body, Rows(NVIDIA), 1))
