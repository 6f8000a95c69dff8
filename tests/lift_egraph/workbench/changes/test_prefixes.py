"""Which reductions of prefixes become scans; that the phase of rules gets there is what makes the change."""

import pytest

from lift_egraph.api import parse_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.workbench.changes.steps import Changes


def changed(body: str) -> ir.Expr:
    program = specialise(parse_program(f"program p(xs: [f32]N) where N = 16 = {body}"))
    changes = Changes(POCL, Limits(8, nodes=10_000, seconds=60), lambda phase: phase)
    *_, term = program.body, *(start[0] for _, start in changes.of((program.body, ())))
    return term


@pytest.mark.parametrize(
    ("body", "then"),
    [
        ("generate(N, fun i => reduceRange(add, 1.0, 0, i, xs))", ir.ScanExclusive),
        ("map(fun i => reduceRange(add, 1.0, 0, 1 + i, xs), generate(N, fun i => i))", ir.Scan),
        ("generate(N, fun i => reduceRange(add, 1.0, 1, i, xs))", ir.Generate),
        ("generate(N, fun i => reduceRange(add, f32(i), 0, i, xs))", ir.Generate),
        ("generate(N / 2, fun i => reduceRange(add, 1.0, 0, i, xs))", ir.Generate),
        ("generate(N, fun i => reduceRange(add, 1.0, i, N, xs))", ir.Gather),
        ("map(fun i => reduceRange(max, 1.0, i + 1, N, xs), generate(N, fun i => i))", ir.Gather),
        ("generate(N, fun i => reduceRange(add, 1.0, i, N - 1, xs))", ir.Generate),
        ("generate(N, fun i => reduceRange(fun (a, b) => a - b, 1.0, i, N, xs))", ir.Generate),
    ],
)
def test_reductions_of_all_prefixes_and_tails_are_scans(body: str, then: type[ir.Expr]) -> None:
    assert isinstance(changed(body), then)


SUM = "let ((m0, m1), s0) = (reduce({product}, {one}, map(fun x => (x, x), xs)), {zero}) in {act}"
PRODUCTS = SUM.format(
    product="fun ((p0, p1), (q0, q1)) => (q0 * p0, q0 * p1 + q1)", one="(1.0, 0.0)", zero="0.0", act="m0 * s0 + m1"
)
SUMS = SUM.format(
    product="fun ((p0, p1), (q0, q1)) => (q0 + p0, max(q0 + p1, q1))", one="(0.0, -inf)", zero="-inf",
    act="max(m0 + s0, m1)",
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "then"),
    [
        ("reduce(add, 0.0, generate(N, fun i => reduceRange(mul, 1.0, i, N, xs)))", PRODUCTS),
        (
            "reduce(add, 3.0, map(fun i => reduceRange(mul, 1.0, i, N, xs), generate(N, fun i => i)))",
            f"3.0 + ({PRODUCTS})",
        ),
        ("reduce(max, -inf, generate(N + 1, fun i => reduceRange(add, 0.0, i, N, xs)))", f"max({SUMS}, 0.0)"),
        (
            "reduce(max, -inf, generate(N, fun i => reduceRange(mul, 1.0, i, N, xs)))",
            "reduce(max, -inf, gather(reverse, scan(mul, 1.0, gather(reverse, xs))))",
        ),
    ],
)
def test_sums_of_products_of_tails_are_one_reduction(body: str, then: str) -> None:
    wanted = specialise(parse_program(f"program p(xs: [f32]N) where N = 16 = {then}")).body
    assert alpha_equal(changed(body), wanted)
