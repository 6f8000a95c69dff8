"""Validation of iterates whose errors grow with each step, until no bound of them is finite: with fewer steps.

The kernels of a step are the same then, from one temporary to the other and back, and all of their result is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard, TypeVar

from lift_egraph.algebra.laws import associative
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References, Verdict, judge, references_for
from lift_egraph.language import ir
from lift_egraph.language.check import codomain, domain
from lift_egraph.language.nat import nat
from lift_egraph.meaning.folds import fold_form
from lift_egraph.workbench.planning.plan import length_of

T = TypeVar("T", bound=ir.Part)
STEPS = (4, 3, 2)  # the first, the last, and one in each direction between the temporaries; or as many as have bounds


@dataclass(frozen=True)
class FewSteps(References):
    """References of which no element has a finite bound, and those of the same program with fewer steps."""

    shorter: References
    steps: int
    times: tuple[int, ...]
    compiled: Callable[[ir.Program], Plan]

    @property
    def how(self) -> str:
        """What is compared, in a sentence."""
        counts = " and ".join(f"{self.steps} of {n}" for n in dict.fromkeys(self.times) if n > self.steps)
        return (
            f"the whole result of {counts} steps was compared with the interpreter's, on two sets of inputs: after all "
            f"of them the error has no finite bound{self.exactly}"
        )

    @property
    def bounded(self) -> bool:
        """Whether any element can be compared after fewer steps."""
        return self.shorter.bounded

    def check(self, lowered: ir.Program, plan: Plan, runner: Runner) -> Verdict:
        """Compile a low-level program with fewer steps, run that on both sets of inputs, and compare its results."""
        if sorted(steps_of(lowered.body)) != sorted(self.times):
            return Verdict(False, 0.0, 0.0, False, "its steps are not those of the program, so it was not compared", 0)
        tried = self.compiled(replace(lowered, body=with_few_steps(lowered.body, self.steps)))
        return judge(self.shorter, runner.run(tried, "integers"), runner.run(tried, "floats"))


def with_fewer_steps(
    program: ir.Program, whole: References, compiled: Callable[[ir.Program], Plan]
) -> References | FewSteps:
    """The references of a program, or, if nothing can be compared with them, what can be with fewer steps.

    Parameters
    ----------
    compiled
        Makes the kernels of a low-level term.
    """
    times = steps_of(program.body)
    if whole.bounded:
        return whole
    for steps in [n for n in STEPS if any(n < t for t in times)]:
        short = replace(program, body=with_few_steps(program.body, steps))
        given = whole.integers.inputs, whole.floats.inputs
        shorter = references_for(short, *given, exact=bool(whole.exactly))
        bounded = shorter.integers.bounded and shorter.floats.bounded
        if bounded or (steps == STEPS[-1] and shorter.bounded):
            sets = whole.integers, whole.floats, shorter
            return FewSteps(whole.type, *sets, steps, times, compiled, exactly=whole.exactly)
    return whole


def _keeps(term: ir.Part) -> bool:
    return isinstance(term, ir.Iterate) and domain(term.function) == codomain(term.function)


def steps_of(term: ir.Part) -> tuple[int, ...]:
    """How many steps the iterates of a term have that keep the length of their array."""
    return tuple(t.times for t in ir.subterms(term) if isinstance(t, ir.Iterate) and _keeps(t))


def with_few_steps(term: T, most: int) -> T:
    """The term with so many steps at most of the iterates that keep the length of their array.

    >>> from lift_egraph.language.syntax import parse_program
    >>> program = parse_program("program p(x: [f32]8) = iterate(99, map(abs), x)")
    >>> with_few_steps(program.body, 4).times
    4
    """
    made = ir.map_parts(term, lambda part: with_few_steps(part, most))
    return replace(made, times=min(made.times, most)) if isinstance(made, ir.Iterate) and _keeps(made) else made


def turns_of(term: ir.Part) -> tuple[int, ...]:
    """How many turns the loops of a term have: the folds by operators that are neither built in nor associative."""
    return tuple(length_of(t.array) for t in ir.subterms(term) if _is_loop(t))


def with_few_turns(term: T, most: int) -> T:
    """The term with so many turns at most of its loops.

    >>> from lift_egraph.language.syntax import parse_program
    >>> program = parse_program("program p(x: f32) = reduceSeq(fun (s, i) => sin(s), x, generate(99, id))")
    >>> turns_of(program.body), turns_of(with_few_turns(program.body, 4))
    ((99,), (4,))
    """
    made = ir.map_parts(term, lambda part: with_few_turns(part, most))
    if not _is_loop(made) or length_of(made.array) <= most:
        return made
    return replace(made, array=ir.Slice(nat(0), nat(most), made.array))


def _is_loop(term: ir.Part) -> TypeGuard[ir.Reduce | ir.ReduceSeq]:
    is_fold = isinstance(term, ir.Reduce | ir.ReduceSeq)
    return is_fold and fold_form(term.operator) is None and not associative(term.operator)
