"""Kernels of programs that only add and multiply, with i32 in place of f32, on random 32-bit numbers.

What the program computes is a polynomial of its inputs then, exactly and in every order, so a kernel is right bit for
bit or not at all: how likely one that computes another polynomial passes is known (`lift_egraph.algebra.chances`). Of
floats only the rounding is left to show. Where the sizes are too large for that, the kernels of the same plan at small
ones are taken.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lift_egraph.algebra.chances import chance_of_zero
from lift_egraph.caching import cached_property
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import Comparison, Reference, compare, quickly
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.meaning.agreement import loops
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.flops import scalar_operations
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.over_integers import (
    Degree,
    degree_of,
    fractions_in,
    is_polynomial,
    over_integers,
    random_integers,
    reads_floats,
)
from lift_egraph.meaning.values import Value
from lift_egraph.meaning.workload import workload
from lift_egraph.workbench.validation.interpreting import Interpreting
from lift_egraph.workbench.validation.small_sizes import twin

MOST_OPERATIONS = 1e7  # of a program that is run on whole numbers: one second in the interpreter, for its degrees
MOST_TURNS = 2e4  # of its loops that are interpreted one by one: half a second
BITS, COMMON = 32, 8  # of the numbers, and of a common divisor of all coefficients that is not noticed
NAME = "32-bit integers"


@dataclass(frozen=True)
class Outcome:
    """What became of a kernel on whole numbers; `message` says what was compared."""

    valid: bool
    message: str


@dataclass(frozen=True)
class _Case:
    """A program at some sizes on whole numbers."""

    program: ir.Program
    values: Mapping[float, int]
    given: Mapping[str, Value]
    reference: Reference
    degree: Degree

    def has_result(self, value: Value) -> bool:
        """Whether a value is the program's result."""
        return not compare(type_of(self.program.body), self.reference, value).wrong


@dataclass
class WholeNumbers:
    """What the kernels of a program with i32 for f32 are held against.

    Parameters
    ----------
    source, program
        With open sizes, and at the wanted ones.
    compiled
        Makes the kernels of a low-level term.

    Attributes
    ----------
    interpreting
        Whether something is interpreted for a kernel at the moment.
    """

    source: ir.Program
    program: ir.Program
    compiled: Callable[[ir.Program], Plan]
    seed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    interpreting: Interpreting = field(default_factory=Interpreting, init=False)
    _cases: dict[tuple[tuple[str, int], ...], _Case] = field(default_factory=dict)

    @cached_property
    def is_fit(self) -> bool:
        """Whether the program computes polynomials of floats."""
        return reads_floats(self.program) and is_polynomial(self.program.body)

    def check(self, lowered: ir.Program, runner: Runner) -> Outcome | None:
        """Run the kernels of a low-level program with i32 for f32; None where nothing can be said of them.

        Raises
        ------
        BuildProblem, RunProblem, DeviceProblem
            If they cannot be built or run.
        """
        if not self.is_fit or not is_polynomial(lowered.body):
            return None
        program, where = self.program, ""
        if _work(program) > MOST_OPERATIONS or max(map(loops, (program.body, lowered.body))) > MOST_TURNS:
            with self.interpreting.counted():
                found = twin(self.source, dict(program.sizes), lowered)
            if found is None or _work(found.program) > MOST_OPERATIONS:
                return None
            program, lowered = found.program, found.lowered
            where = f" at {', '.join(f'{name} = {size}' for name, size in program.sizes)}"
        if not fractions_in(lowered.body) <= fractions_in(program.body):
            return None
        try:
            with self.interpreting.counted():
                case = self._case(program)
                degree = case.degree | degree_of(lowered, case.given)
                whole = over_integers(lowered, case.values)
                plan = self.compiled(whole)
        except LiftError:  # what the code generator has for floats alone
            return None
        name = f"{NAME}{where}"
        runner.load_inputs(name, case.reference.inputs)

        def compared(optimised: bool) -> Comparison:
            result = runner.run(plan, name, optimised=optimised)
            return compare(type_of(case.program.body), case.reference, result)

        try:
            found = quickly(compared, lambda comparison: not comparison.wrong)
        finally:
            runner.forget_inputs(name)
        if found.wrong:
            if where and not case.has_result(evaluate(whole.body, case.reference.inputs)):
                return None  # what has other sizes is not the same term
            return Outcome(False, f"with i32 for f32, on random 32-bit integers{where}: {found.message}")
        equal = f"with i32 for f32, on random 32-bit integers{where}: all {found.elements} elements equal bit for bit"
        return Outcome(True, f"{equal}; {_in_words(degree)}")

    def _case(self, program: ir.Program) -> _Case:
        with self.lock:
            if program.sizes not in self._cases:
                given = random_inputs(program, self.seed)
                draw = random.Random(self.seed)
                values = {number: draw.randrange(-(2**31), 2**31) for number in sorted(fractions_in(program.body))}
                whole, inputs = over_integers(program, values), random_integers(program, given, self.seed + 1)
                reference = Reference(inputs, *evaluate_bounded(whole.body, inputs))
                self._cases[program.sizes] = _Case(whole, values, given, reference, degree_of(program, given))
            return self._cases[program.sizes]


def _work(program: ir.Program) -> float:
    """The operations of a program, or about how many elements it takes where ranges say how many."""
    return scalar_operations(program.body) or workload(program.body)


def _in_words(degree: Degree) -> str:
    """How likely a kernel passes that computes other polynomials."""
    chance = chance_of_zero(degree.total, degree.single, BITS - COMMON + 1)
    if chance >= 1:
        return f"polynomials of degree {degree.total} are too many for a bound on the chance that a wrong kernel passes"
    return (
        f"a kernel that computes other polynomials, of degree {degree.total} at most, passes with a probability of "
        f"at most {chance:.1g}, unless it is wrong by multiples of {2**COMMON} alone"
    )
