"""Which reductions of prefixes become scans; that the phase of rules gets there is what makes the change."""

import pytest

from lift_egraph.api import parse_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
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
    ],
)
def test_reductions_of_all_prefixes_are_scans(body: str, then: type[ir.Expr]) -> None:
    assert isinstance(changed(body), then)
