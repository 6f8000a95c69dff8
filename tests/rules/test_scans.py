"""What scans are equal to: each rule leads to the term that its law says, and that means the same."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import Limits, Phase, equal_values, evaluate, parse_program, random_inputs, rules, run_phase
from lift_egraph.egraph.locate import locate
from lift_egraph.language import ir
from lift_egraph.meaning.values import leaves_of
from tests.depth import in_turn

SEGMENTED = "fun ((s, a), (t, b)) => ({flag}, select({chosen}, b, {sum}))"
FLAGGED = "[i32]8, xs: [f32]8) = scan({operator}, (false, 0.0), map(fun (i, x) => (i > 0, x), zip(is, xs)))"
LAWS = {
    "scan_in_chunks": (
        "(xs: [f32]8, z: f32) = scan(add, z, xs)",
        "join(map(fun (o, c) => scan(add, o, c), zip(scanExclusive(add, z, map(fun c => reduce(add, 0.0, c), split(4, "
        "xs))), split(4, xs))))"),
    "name_scanned": (
        "(xs: [f32]8, z: f32) = scanExclusive(add, z, map(abs, xs))",
        "let ts = map(abs, xs) in scanExclusive(add, z, ts)"),
    "scan_in_one_chunk": (
        "(xs: [f32]8, z: f32) = scan(fun (a, b) => a - b, z, xs)",
        "join(map(fun c => scan(fun (a, b) => a - b, z, c), split(8, xs)))"),
    "scan_by_sweeps": (
        "(xs: [f32]8, z: f32) = scanExclusive(mul, z, xs)",
        "join(map(fun (o, p) => scanExclusive(mul, o, p), zip(let ts = map(fun p => p[0] * p[1], split(2, xs)) in "
        "scanExclusive(mul, z, ts), split(2, xs))))"),
    "scan_then_combine": (
        "(xs: [i32]8) = scan(max, 3, xs)",
        "let v = map(scan(max, -2147483648), split(4, xs)) in join(map(fun (o, c) => map(fun x => max(o, x), c), "
        "zip(scanExclusive(max, 3, map(fun c => c[3], v)), v)))"),
    "scan_in_blocks": (
        "(xs: [f32]8) = scan(mul, 2.0, map(abs, xs))",
        "join(scanSeq(fun (b, c) => let o = b[3] in map(fun x => o * x, scan(mul, 1.0, map(abs, c))), fill(4, 2.0), "
        "split(4, xs)))"),
    "last_of_scan": ("(xs: [f32]8) = at(7, scan(fun (a, b) => a - b, 1.0, xs))",
                     "reduce(fun (a, b) => a - b, 1.0, xs)"),
    "at_of_scan": ("(xs: [f32]8) = at(5, scan(add, 1.0, xs))", "reduce(add, 1.0, slice(0, 6, xs))"),
    "reductions_of_prefixes": (
        "(xs: [f32]8) = generate(8, fun i => reduceRange(fun (a, b) => a - b, 1.0, 0, i + 1, xs))",
        "scan(fun (a, b) => a - b, 1.0, xs)"),
    "reductions_of_tails": (
        "(xs: [f32]8) = generate(8, fun i => reduceRange(mul, 2.0, i, 8, xs))",
        "gather(reverse, scan(mul, 2.0, gather(reverse, xs)))"),
    "horners_rule": (
        "(xs: [f32]8) = reduce(max, -inf, generate(9, fun i => reduceRange(add, 2.0, i, 8, xs)))",
        "max(reduceSeq(fun (a, x) => max(a, 2.0) + x, -inf, xs), 2.0)"),
    "fold_of_scan": (
        "(xs: [f32]8, ys: [f32]8) = reduceSeq(fun (t, (x, y)) => t * x - y, 2.0, zip(scanSeq(fun (s, x) => s - x, 1.0, "
        "xs), ys))",
        "get(1, reduceSeq(fun ((s, t), (x, y)) => let n = let (s, x) = (s, x) in s - x in (n, let (t, (x, y)) = "
        "(t, (n, y)) in t * x - y), (1.0, 2.0), zip(xs, ys)))"),
    "scan_first": (
        "(xs: [f32]8, ys: [f32]8) = reduceSeq(fun (t, (x, (y, s))) => t * x - y * s, 2.0, zip(xs, ys, "
        "scanSeq(fun (s, x) => s - x, 1.0, xs)))",
        "reduceSeq(fun (t, (s, (x, y))) => let (t, (x, (y, s))) = (t, (x, (y, s))) in t * x - y * s, 2.0, "
        "zip(scanSeq(fun (s, x) => s - x, 1.0, xs), xs, ys))"),
    "scan_by_exclusive": (
        "(xs: [f32]8) = scan(fun (a, b) => a - b, 1.0, xs)",
        "map(fun (a, x) => let (p, q) = (a, x) in p - q, zip(scanExclusive(fun (a, b) => a - b, 1.0, xs), xs))"),
    "exclusive_by_shift": (
        "(xs: [f32]8) = scanExclusive(min, 1.0, xs)", "concat(fill(1, 1.0), slice(0, 7, scan(min, 1.0, xs)))"),
    "map_scan_interchange": (
        "(A: [[f32]8]4) = map(fun row => scanExclusive(add, 1.0, row), A)",
        "transpose(scanExclusive(fun (a, b) => map(add, zip(a, b)), fill(4, 1.0), transpose(map(fun row => row, A))))"),
    "scan_with_rest": (
        "(xs: [f32]9) = scan(fun (a, b) => a - b, 1.0, xs)",
        "concat(scan(fun (a, b) => a - b, 1.0, slice(0, 1, xs)), scan(fun (a, b) => a - b, reduce(fun (a, b) => a - b, "
        "1.0, slice(0, 1, xs)), slice(1, 8, xs)))"),
}  # fmt: skip


def steps(program: ir.Program, rule: str) -> object:
    """The e-graph after a rule and what simplifies."""
    chosen = tuple(r for r in rules.all_rules if r.name == rule)
    *_, reached = run_phase(
        program.body, Phase("one", chosen, rules.lets_kept, {8: (4, 2, 8), 9: (4,)}, (), Limits(iterations=2))
    )
    return reached


@in_turn(8)
@pytest.mark.parametrize("rule", LAWS)
def test_a_law_leads_to_what_it_says(rule: str) -> None:
    before, after = LAWS[rule]
    inputs, _, _ = before.partition(" = ")
    program, wanted = parse_program(f"program p{before}"), parse_program(f"program p{inputs} = {after}")
    reached = steps(program, rule)
    assert locate(reached.graph, reached.root, wanted.body) is not None
    values = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, values), evaluate(wanted.body, values))


def flagged(flag: str, chosen: str, total: str) -> ir.Program:
    operator = SEGMENTED.format(flag=flag, chosen=chosen, sum=total)
    return parse_program(f"program p(is: {FLAGGED.format(operator=operator)}")


def in_chunks(program: ir.Program) -> bool:
    reached = steps(program, "scan_in_chunks")
    return any(node.op == "join" for nodes in reached.graph.nodes.values() for node in nodes)


def test_sums_that_begin_again_at_flags_are_associative() -> None:
    program = flagged("s || t", "t", "a + b")
    assert in_chunks(program)
    operator = program.body.operator
    rng = np.random.default_rng(0)
    drawn = [(bool(rng.integers(2)), np.float32(rng.integers(-9, 9))) for _ in range(90)]
    for x, y, z in zip(drawn[::3], drawn[1::3], drawn[2::3], strict=True):
        assert combined(operator, combined(operator, x, y), z) == combined(operator, x, combined(operator, y, z))
        assert combined(operator, (False, np.float32(0)), x) == x == combined(operator, x, (False, np.float32(0)))


@pytest.mark.parametrize(
    "parts", [("s && t", "t", "a + b"), ("s || t", "s", "a + b"), ("s || t", "t", "a - b"), ("s || t", "t", "b + b")]
)
def test_what_is_nearly_so_is_not(parts: tuple[str, str, str]) -> None:
    assert not in_chunks(flagged(*parts))


def combined(operator: ir.Lambda, x: tuple[bool, np.float32], y: tuple[bool, np.float32]) -> tuple[bool, np.float32]:
    first, second = operator.binder.first, operator.binder.second  # pyright: ignore[reportAttributeAccessIssue]
    values = {}
    for binder, value in ((first, x), (second, y)):
        values |= {binder.first.name: np.asarray(value[0]), binder.second.name: np.asarray(value[1])}
    flag, total = leaves_of(evaluate(operator.body, {}, values))
    return bool(flag), np.float32(total)
