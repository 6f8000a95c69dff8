"""Validation of iterates whose errors have no finite bound after all steps, with the interpreter as the device."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References, references
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench.validation.few_steps import FewSteps, with_fewer_steps
from lift_egraph.workbench.validation.references import load_references
from tests.lift_egraph.workbench.validation.test_sampled import Interpreter

POWER = """program power(A: [[f32]64]64, x: [f32]64) = iterate({steps}, fun v =>
    let y = map(fun row => reduce(add, 0.0, map(mul, zip(row, v))), A) in
    let n = rsqrt(reduce(add, 0.0, map(fun e => e * e, y))) in map(fun e => {last}, y), x)"""


def power(steps: int = 20, last: str = "e * n") -> ir.Program:
    return parse_program(POWER.format(steps=steps, last=last))


def compiled(lowered: ir.Program) -> Any:
    return lowered


def reference_of(program: ir.Program) -> References:
    return with_fewer_steps(program, references(program), compiled)


def test_only_where_nothing_could_be_compared_are_there_fewer_steps() -> None:
    assert not isinstance(reference_of(power(2)), FewSteps)
    made = reference_of(power())
    assert isinstance(made, FewSteps)
    assert not np.isfinite(made.floats.bound).any()
    assert np.isfinite(made.shorter.floats.bound).all()
    assert "the whole result of 4 of 20 steps was compared" in made.how
    hopeless = parse_program("program p(x: [f32]4) = iterate(9, map(fun e => sqrt(abs(e - e))), x)")
    assert not isinstance(reference_of(hopeless), FewSteps)


def test_kernels_of_the_same_steps_are_right_or_wrong() -> None:
    program = power()
    made, runner = reference_of(program), cast(Runner, Interpreter())
    load_references(runner, made)

    def valid(other: ir.Program) -> bool:
        lowered = naive_term(other)
        return made.check(lowered, compiled(lowered), runner).valid

    assert valid(program)
    assert not valid(power(last="e * n + 0.01"))
    assert not valid(power(19))
