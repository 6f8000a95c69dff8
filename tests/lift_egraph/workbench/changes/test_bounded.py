"""Folds whose whole numbers stay between bounds are reductions: rests modulo a number, and clamps."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.bounded import bounds
from lift_egraph.algebra.kept import keeping_of, kept_of
from lift_egraph.algebra.trials import drawn, evaluate as values_of
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.operators import making
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import I32, I64, U32
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.changes.bounded import with_bounds
from lift_egraph.workbench.changes.cascades import cascade_steps
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

ROWS = Rows(POCL)
HASH = "(h * 31 + to_i32(c)) % 65521"
DO = {
    "a hash modulo a prime": f"reduceSeq(fun (h, c) => {HASH}, 7, text)",
    "a hash by a shift": "reduceSeq(fun (h, c) => (shift_left(h, 8) + to_i32(c)) % 65521, 7, text)",
    "Adler-32": "reduceSeq(fun ((a, b), c) => let s = (a + c) % 65521u32 in (s, (b + s) % 65521u32), (1u32, 0u32), "
    "map(fun u => u % 256u32, us))",
    "Fletcher, scanned": "scanSeq(fun ((a, b), c) => let s = (a + to_i32(c)) % 255 in (s, (b + s) % 255), (0, 0), "
    "text)",
    "hashes of words": f"scanSeq(fun (h, (c, i)) => if i < 0 then to_i32(c) else {HASH}, 0, zip(text, is))",
    "Rabin and Karp": "reduceSeq(fun ((h, p), c) => ((h + to_i32(c) * p) % 65521, p * 31 % 65521), (0, 1), text)",
    "a hash of numbers": "reduce(fun (h, i) => (h * 31 + i) % 65521, 7, map(fun i => bit_and(i, 255), is))",
    "a product": "reduceSeq(fun (s, c) => s * (1i64 + to_i64(c)) % 1000000007i64, 1i64, text)",
    "a clamp": "reduceSeq(fun (s, x) => max(0, min(s + x % 17, 255)), 100, is)",
    "before each": "scanExclusiveSeq(fun (s, x) => min(max(s - x % 5, -9), 30), -2, is)",
}
DO_NOT = {
    "the elements have no bounds": ("(s * 31 + x) % 97", "7", "is", "s * 31 + x is only known to be from -2147483648"),
    "products wrap around": ("(s * 40000 + to_i32(x)) % 65521", "7", "text", "only known to be from -2147483648"),
    "it may be negative": (
        "(s * 3 - to_i32(x)) % 97",
        "7",
        "text",
        "s * 3 - to_i32(x) is only known to be from -543 to",
    ),
    "it begins above": ("(s * 2 + to_i32(x)) % 97", "97", "text", ""),
    "it begins below": ("(s * 2 + to_i32(x)) % 97", "-1", "text", "s * 2 + to_i32(x) is only known to be from -192"),
    "a square": ("(s * s + to_i32(x)) % 97", "7", "text", "s * s + to_i32(x)"),
    "a clamp of what wraps": ("max(0, min(s + x, 255))", "7", "is", ""),
    "a clamp of what f64 has not": (
        "to_i32(min(max(to_i64(s) + shift_right(to_i64(x), 1) * 1125899906842624i64 - 100i64, 0i64), 255i64))",
        "7",
        "text",
        "",
    ),
    "a clamp with no other side": ("max(s + to_i32(x), 0)", "7", "text", ""),
}


def program_of(fold: str) -> ir.Program:
    return parse_program(f"program p(text: [u8]4096, is: [i32]4096, us: [u32]4096) = {fold}")


@in_turn(8)
@pytest.mark.parametrize("name", DO)
def test_a_fold_between_bounds_is_one_in_chunks(name: str):
    program = program_of(DO[name])
    assert not [*refusals(program.body)]
    term = with_bounds(program.body, ROWS)
    assert term is not None
    leg = Leg("algebra", term, 8, "cpu")
    assert leads_to(program.body, leg.phase, term)
    chunked = LongRows(ROWS).in_chunks(term)
    acted = with_actions(term)
    others = [t for t in (acted, chunked) if t is not None and t != term]
    assert others
    inputs = random_inputs(program, 0, "integer")
    inputs["text"] = np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)
    wanted = list(leaves_of(evaluate(program.body, inputs)))
    for other in (term, *others):
        assert all(np.array_equal(a, b) for a, b in zip(wanted, leaves_of(evaluate(other, inputs)), strict=True))


@pytest.mark.parametrize("name", DO_NOT)
def test_other_folds_are_left(name: str):
    step, start, array, why = DO_NOT[name]
    body = program_of(f"reduceSeq(fun (s, x) => {step}, {start}, {array})").body
    assert isinstance(body, ir.ReduceSeq)
    assert keeping_of(body.operator, body.initial) is None
    assert with_bounds(body, ROWS) is None
    (said,) = refusals(body)
    assert "they are" in said
    assert why in said


@pytest.mark.parametrize("name", [*DO, "a clamp of what wraps", "it begins above", "it begins below"])
def test_an_accumulator_stays_between_its_bounds(name: str):
    fold = DO[name] if name in DO else "reduceSeq(fun (s, x) => {}, {}, {})".format(*DO_NOT[name][:3])
    body = program_of(fold).body
    assert isinstance(body, ir.FOLDS)
    kept = kept_of(body.operator, body.initial, making(body))
    assert kept is not None
    folds = (ir.ScanSeq(f, body.initial, body.array) for f in (body.operator, kept))
    inputs = random_inputs(program_of(fold), 1, "integer")
    inputs["is"] = np.random.default_rng(1).integers(-(2**31), 2**31, 4096).astype(np.int32)
    one, other = (list(leaves_of(evaluate(f, inputs))) for f in folds)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_what_grows_by_one_a_step_is_bounded_by_the_longest_array():
    step = "if c < 128u8 then (depth + 1, fixes) else (max(depth - 1, 0), if depth == 0 then fixes + 1 else fixes)"
    program = program_of(f"reduceSeq(fun ((depth, fixes), c) => {step}, (0, 0), text)")
    assert not [*refusals(program.body)]
    term = with_bounds(program.body, ROWS)
    assert term is not None
    *_, last = cascade_steps(term, ROWS, least=2)
    inputs = random_inputs(program, 0)
    inputs["text"] = np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)
    sides = (leaves_of(evaluate(t, inputs)) for t in (program.body, term, last.term))
    assert len({tuple(int(leaf) for leaf in side) for side in sides}) == 1


@pytest.mark.parametrize(("step", "start"), [("s + 2", "0"), ("s + 1", "2"), ("s * 2", "1"), ("s + to_i32(x)", "0")])
def test_what_grows_faster_or_from_higher_may_wrap(step: str, start: str):
    body = program_of(f"reduceSeq(fun (s, x) => if x < 9u8 then {step} else max(s - 1, 0), {start}, text)").body
    assert isinstance(body, ir.ReduceSeq)
    assert keeping_of(body.operator, body.initial) is None


def test_bounds_hold_for_all_values():
    draw = np.random.default_rng(0)
    operations = ("add", "sub", "mul", "min", "max", "mod", "div", "bit_and", "shift_right", "shift_left")
    for t in (I32, I64, U32):
        variables = [ir.Var(name, t) for name in "abc"]
        for _ in range(60):
            made: list[ir.Expr] = [*variables, *(ir.Literal(int(n), t) for n in (0, 1, 7, 31, 97, 65521))]
            for _ in range(6):
                a, b = (made[int(i)] for i in draw.integers(0, len(made), 2))
                made.append(ir.Call(str(draw.choice(operations)), (a, b)))
            term = made[-1]
            known = dict.fromkeys(variables[:2], (0, 40))
            scope: dict[ir.Expr, np.ndarray] = {v: drawn(t, draw, fractions=False) for v in variables}
            scope |= {v: draw.integers(0, 41, len(scope[v])).astype(scope[v].dtype) for v in variables[:2]}
            low, high = bounds(term, known)
            found = np.atleast_1d(values_of(term, scope))
            assert low <= int(found.min()), term
            assert int(found.max()) <= high, term
