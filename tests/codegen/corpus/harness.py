"""Runs random programs on an OpenCL implementation and judges what comes back.

Several programs share one build, because builds take longer than the runs of such small kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest

from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import GENERIC, INTEL, POCL, Device
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References, compare, judge, references
from lift_egraph.errors import BuildProblem, DeviceProblem, LiftError, NestingProblem, SizeProblem
from lift_egraph.language import ir
from tests.codegen.corpus.devices import environment, found, missing
from tests.codegen.corpus.opened import opened

_DEVICES = {"pocl": POCL, "intel": INTEL, "oclgrind": GENERIC}
_CHECKS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNIFORM_WRITES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": "20",
    "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",  # its check of uninitialised reads knows no `freeze` instruction
}
BATCH = 32

# What code generation refuses although the nesting of the maps is legal: see `codegen`.
REFUSALS = (
    "work-items exchange data inside mapLcl",  # a barrier that not all work-items of a group would reach
    "lies in private memory, shared out over mapLcl",  # toPrivate of what another work-item reads
    "lies in private memory, but its elements are made by different work-items",
    "a component of a vector is chosen by a loop that is not unrolled",
)
OPEN_REFUSALS = (
    *REFUSALS,
    "no size can be open",  # every length is one that a pattern needs as a number
    "specialise",  # memory of an open length, or a permutation that is not shown
)
_TIME_LIMIT = 60.0


@dataclass(frozen=True)
class Case:
    """A program with what it should compute."""

    program: ir.Program
    references: References

    @staticmethod
    def of(program: ir.Program, seed: int = 0) -> Case:
        return Case(program, references(program, seed))


@dataclass(frozen=True)
class Outcome:
    """What came of one program: `kind` is ``right``, ``refused`` (no kernel was made), ``wrong``, or ``unbounded``
    (it ran without complaint, but no element of the result has a finite error bound).
    """

    kind: str
    message: str = ""


class Bench:
    """One OpenCL implementation under test.

    Parameters
    ----------
    name
        ``pocl``, ``intel`` or ``oclgrind``, whose reports count as errors.
    """

    def __init__(self, name: str) -> None:
        self.device = self.device_of(name)
        self.is_simulator = name == "oclgrind"
        self._folder = TemporaryDirectory()
        self._log = Path(self._folder.name, "oclgrind.log")
        checks = {**_CHECKS, "OCLGRIND_LOG": str(self._log)} if self.is_simulator else {}
        self._runner = Runner(found()[name], time_limit=_TIME_LIMIT, environment={**environment(), **checks})

    @staticmethod
    def device_of(name: str) -> Device:
        """The device that kernels for an implementation are made for."""
        return _DEVICES[name]

    def run(
        self, cases: Sequence[Case], launch: Launch | None = None, *, with_open_sizes: bool = False
    ) -> Iterator[Outcome]:
        """The outcome of each program, in order."""
        for start in range(0, len(cases), BATCH):
            batch = cases[start : start + BATCH]
            plans: list[Plan | Outcome] = []
            for number, case in enumerate(batch):
                named = replace(case.program, name=f"{case.program.name}_{number}")
                try:
                    plan = self.open_plan(named) if with_open_sizes else None
                    plans.append(plan or compile_program(named, self.device, launch=launch))
                except (NestingProblem, DeviceProblem) as problem:
                    plans.append(Outcome("refused", f"{type(problem).__name__}: {problem}"))
            source = merged([p for p in plans if isinstance(p, Plan)])
            for case, plan in zip(batch, plans, strict=True):
                yield plan if isinstance(plan, Outcome) else self.judged(case, replace(plan, source=source), plan)

    def open_plan(self, program: ir.Program) -> Plan | Outcome:
        """The plan of a program whose kernels take sizes as arguments, at the program's own sizes."""
        why = "no size can be open"
        for made, sizes in opened(program):
            try:
                return compile_open(made, self.device).at(sizes)
            except (NestingProblem, DeviceProblem, SizeProblem) as problem:
                why = f"{type(problem).__name__}: {problem}"
        return Outcome("refused", why)

    def judged(self, case: Case, plan: Plan, alone: Plan) -> Outcome:
        """The outcome of a plan; where the build of a whole batch fails or the device's compiler crashes, of the plan
        alone.
        """
        try:
            outcome = self.outcome(case, plan)
            if "crashed with" not in outcome.message:
                return outcome
        except BuildProblem:
            pass
        try:
            return self.outcome(case, alone)
        except BuildProblem as problem:
            return Outcome("wrong", f"BuildProblem: {problem}")

    def outcome(self, case: Case, plan: Plan) -> Outcome:
        """Runs a plan on integers (and on floats, where that is fast) and compares the results."""
        try:
            integers = self.results(plan, case.references.integers.inputs)
            if self.is_simulator:
                reports = self.reports()
                if reports:
                    return Outcome("wrong", f"Oclgrind reports\n{reports}")
                check = compare(case.references.type, case.references.integers, integers)
                kind = "unbounded" if check.elements and check.elements == check.unbounded else "right"
                return Outcome("wrong" if check.wrong else kind, check.message)
            floats = self.results(plan, case.references.floats.inputs)
        except BuildProblem:
            raise
        except LiftError as problem:
            return Outcome("wrong", f"{type(problem).__name__}: {problem}\n{self.reports()}".strip())
        verdict = judge(case.references, integers, floats)
        if verdict.valid:
            return Outcome("right", verdict.message)
        checks = (
            compare(case.references.type, reference, values)
            for reference, values in ((case.references.integers, integers), (case.references.floats, floats))
        )
        return Outcome("wrong" if any(c.wrong for c in checks) else "unbounded", verdict.message)

    def results(self, plan: Plan, inputs: Mapping[str, Any]) -> Any:
        used = {p.value for p in (*plan.inputs, *plan.scalars)}
        self._runner.load_inputs("inputs", {name: value for name, value in inputs.items() if name in used})
        try:
            return self._runner.run(plan, "inputs")
        finally:
            self._runner.forget_inputs("inputs")

    def reports(self) -> str:
        """What Oclgrind has reported on the last plan."""
        if not self._log.exists() or not (text := self._log.read_text().strip()):
            return ""
        self._runner.close()  # a process reports no more than so many errors: the next plan needs a new one
        self._log.unlink()
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()
        self._folder.cleanup()


def bench_on(name: str) -> Bench:
    """An implementation under test; where it is missing, the test is skipped."""
    if reason := missing(name):
        pytest.skip(reason)
    return Bench(name)


def merged(plans: Sequence[Plan]) -> str:
    """One source text with the kernels of several plans."""
    preamble: dict[str, None] = {}
    kernels: list[str] = []
    for plan in plans:
        texts = list({k.name: k.source for k in plan.kernels}.values())
        start = plan.source.index(texts[0])
        preamble |= dict.fromkeys(line for line in plan.source[:start].splitlines() if not line.startswith("//"))
        kernels += texts
    return "\n".join((*preamble, *kernels))
