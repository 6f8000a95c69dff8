"""Random legal low-level programs are right on every OpenCL implementation at hand.

By default each has programs of its own, so that there are more of them. ``LIFT_CORPUS=10000 pytest -n 0 -s
tests/codegen/test_corpus.py`` runs so many on all, ``LIFT_CORPUS_FIRST=4000`` goes on with the 4000th, and
``python -m tests.codegen.corpus 4711`` runs one by its number.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given

from lift_egraph.api import alpha_equal, parse_program, print_program
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.language import ir
from lift_egraph.language.check import check_program
from lift_egraph.language.nesting import check_nesting
from tests.codegen.corpus.devices import PLATFORMS
from tests.codegen.corpus.harness import OPEN_REFUSALS, REFUSALS, Bench, Case, bench_on
from tests.codegen.corpus.programs import numbered, programs
from tests.depth import depth, in_turn

COUNT = int(os.environ.get("LIFT_CORPUS", depth(10, 10_000)))
APART = "LIFT_CORPUS" not in os.environ and depth(COUNT, 0)  # programs between the first of one and of the next
FIRST = int(os.environ.get("LIFT_CORPUS_FIRST", "0"))
STEP = 100


@given(programs())
def test_programs_are_well_typed_legal_and_survive_being_printed(program: ir.Program) -> None:
    check_program(program)
    check_nesting(program.body)
    assert alpha_equal(parse_program(print_program(program)).body, program.body)


@pytest.mark.timeout(60 + COUNT * 2)
@pytest.mark.parametrize("name", PLATFORMS)
def test_the_corpus_is_right(name: str) -> None:
    counts = outcomes(name, COUNT)
    assert counts["refused"] <= 2 + COUNT // 50
    assert counts["unbounded"] <= 2 + COUNT // 50


@pytest.mark.timeout(60 + COUNT * 2)
@pytest.mark.parametrize("name", PLATFORMS)
def test_the_corpus_is_right_at_open_sizes(name: str) -> None:
    count = COUNT // 2
    counts = outcomes(name, count, with_open_sizes=True)
    assert counts["right"] >= count * 3 // 4, "most programs compile with sizes as arguments"


def outcomes(name: str, count: int, *, with_open_sizes: bool = False) -> Counter[str]:
    """How many programs of the corpus end how; fails if any is wrong, or refused without a known reason."""
    option, known = ("--open ", OPEN_REFUSALS) if with_open_sizes else ("", REFUSALS)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    first = FIRST + APART * [*PLATFORMS].index(name)
    with bench_on(name) as bench:
        for start in range(first, first + count, STEP):
            cases = [Case.of(numbered(n)) for n in range(start, min(start + STEP, first + count))]
            for case, outcome in zip(cases, bench.run(cases, with_open_sizes=with_open_sizes), strict=True):
                counts[outcome.kind] += 1
                has_reason = any(re.search(text, outcome.message) for text in known)
                if outcome.kind == "wrong" or (outcome.kind == "refused" and not has_reason):
                    number = case.program.name.removeprefix("p")
                    wrong.append(
                        f"program {number} (python -m tests.codegen.corpus {option}{number} --on {name}) is "
                        f"{outcome.kind}: {outcome.message}\n{print_program(case.program)}"
                    )
            print(f"{name}: programs {first} to {start + len(cases) - 1}: {dict(counts)}", flush=True)
    assert not wrong, "\n".join(wrong)
    return counts


ONCE_WRONG = {
    "global memory that each work-item writes and reads": """
        program copies(in0: [[f32]8]16) =
          mapGlb(2,
            fun x => mapGlb(0, fun y => y * -1.0, toGlobal(reduceSeq(fun (a, y) => mapSeq(fun z => -at(7, x), a),
              fill(2, -3.0), x))),
            in0)""",
    "an array of nothing in local memory": """
        program nothing(in0: [[f32]0]7) =
          mapWrg(0, fun x => pad(1, 1, constant(2.0), toLocal(mapLcl(0, fun y => y + 1.0, x))), in0)""",
}


@in_turn(6)
@pytest.mark.parametrize("what", ONCE_WRONG)
@pytest.mark.parametrize("name", PLATFORMS)
def test_what_the_corpus_found_stays_right(benches: Callable[[str], Bench], name: str, what: str) -> None:
    (outcome,) = benches(name).run([Case.of(parse_program(ONCE_WRONG[what]))])
    assert outcome.kind == "right", outcome.message


LAUNCHES = (
    Launch((4, 2, 2), (2, 2, 1)),
    Launch((3, 3, 3), (1, 3, 1)),
    Launch((8, 4, 4), (4, 2, 2)),
    Launch((1, 1, 1), (1, 1, 1)),
    Launch((5, 2, 3)),
)


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_any_launch_is_right(benches: Callable[[str], Bench], launch: Launch) -> None:
    cases = [Case.of(numbered(n)) for n in range(12)]
    for case, outcome in zip(cases, benches("oclgrind").run(cases, launch), strict=True):
        assert outcome.kind in ("right", "refused"), f"{case.program.name}: {outcome.message}"
