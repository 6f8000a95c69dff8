"""The harness of the corpus finds faults: wrong kernels, planted in right ones, are reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError
from tests.codegen.corpus.harness import Bench, Case
from tests.codegen.corpus.programs import numbered
from tests.depth import depth, in_turn

PLANS = depth(1, 8)  # faults of each kind
LAST = 3000  # program of the corpus in which to plant


@dataclass(frozen=True)
class Fault:
    """A way to spoil the text of a kernel: the first match of `right` becomes `wrong`.

    Some spoilt kernels are right all the same (a guard around work that all may do, a sum that starts with zero in
    memory); `least` says how many of eight must be reported on each device. `where` describes the kernels in which
    the fault matters.
    """

    right: str
    wrong: str | Callable[[re.Match[str]], str]
    least: dict[str, int]
    where: str = ""
    everywhere: bool = False  # every match is spoilt


_WRITE = r"(\n *result(?:_\d)*\[)([^\]]*)(\] = )"
_LOOP = r"(for \(int (\w+) = 0; \2 < )(\d+)(; \2 \+= (\d+))"
_GUARD = r"if \(get_local_id\((\d)\) < (\d+)\)"
_SUM = r"(\n *(?:float|int) acc\w*) = [^;]*;"
_READ_LATER = r"local \w+ (\w+)\[[\s\S]*barrier\([^)]*\);[\s\S]*(?:=[^=;]*|[(,] *)\b\1\b"  # behind a barrier
_SOME = "get_local_id(0) + get_local_id(1) + get_local_id(2) < 1"
BOTH = {"pocl": 8, "oclgrind": 8}

FAULTS = {
    "dropped barriers": Fault(r"\n *barrier\([^)]*\);", "", {"oclgrind": 7}, _READ_LATER, everywhere=True),
    "barrier that some leave out": Fault(r"(barrier\([^)]*\);)", rf"if ({_SOME}) \1", {"oclgrind": 7}),
    "write one further": Fault(_WRITE, r"\g<1>\2 + 1\3", BOTH),
    "write one before": Fault(_WRITE, r"\g<1>\2 - 1\3", BOTH),
    "write far outside": Fault(_WRITE, r"\g<1>\2 + 300\3", BOTH),
    "read behind the end": Fault(r"(= in0(?:_\d)*\[)([^\]]*)(\])", r"\g<1>\2 + 4000\3", {"oclgrind": 8}),
    "loop one step short": Fault(_LOOP, r"\g<1>\3 - \5\4", {"pocl": 6, "oclgrind": 6}),
    "loop one step long": Fault(_LOOP, r"\g<1>\3 + \5\4", {"oclgrind": 6}),
    "guard too narrow": Fault(_GUARD, r"if (get_local_id(\1) < \2 - 1)", {"oclgrind": 7}),
    "guard left out": Fault(_GUARD, "if (1)", {"oclgrind": 6}),
    "start left out": Fault(_SUM, r"\1;", {"oclgrind": 5}),
}


@cache
def plans(kind: str) -> tuple[tuple[Case, Plan, Plan], ...]:
    """The first programs of the corpus in which a fault can be planted, with the right and the wrong plan."""
    return tuple(planted for planted, _ in zip(_plans(kind), range(PLANS), strict=False))


def _plans(kind: str) -> Iterator[tuple[Case, Plan, Plan]]:
    fault = FAULTS[kind]
    for number in count():
        assert number < LAST, f"too few programs of the corpus match {fault.right}"
        plan = _compiled(number)
        if plan is None or not (re.search(fault.right, plan.source) and re.search(fault.where, plan.source)):
            continue
        spoilt = re.sub(fault.right, fault.wrong, plan.source, count=0 if fault.everywhere else 1)
        yield Case.of(numbered(number)), plan, replace(plan, source=spoilt)


@cache
def _compiled(number: int) -> Plan | None:
    """The plan of a program of the corpus, if it has one kernel: of several, some may compute in vain."""
    try:
        plan = compile_program(numbered(number), Bench.device_of("oclgrind"))
    except LiftError:
        return None
    return plan if len(plan.kernels) == 1 else None


@in_turn(6)
@pytest.mark.parametrize(("kind", "device"), [(kind, device) for kind, f in FAULTS.items() for device in f.least])
def test_planted_faults_are_reported(kind: str, device: str, benches: Callable[[str], Bench]) -> None:
    survivors, bench = [], benches(device)
    for case, right, wrong in plans(kind):
        outcome = bench.outcome(case, right)
        assert outcome.kind == "right", outcome.message
        if bench.outcome(case, wrong).kind != "wrong":
            survivors.append(wrong.source)
    assert (PLANS - len(survivors)) / PLANS >= FAULTS[kind].least[device] / 8, "\n".join(survivors)
