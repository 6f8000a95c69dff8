"""Barriers stand where work-items exchange data, once and never in divergent control flow.

The four cases of the thesis (000 §4.3.4); Oclgrind says that none is missing, and that none can be left out.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.build import (
    add,
    as_scalar,
    as_vector,
    gather,
    id_,
    join,
    map_lcl,
    map_seq,
    map_wrg,
    program,
    reduce_seq,
    reverse,
    scatter,
    split,
    to_local,
    transpose,
    vectorize,
    zip_,
)
from lift_egraph.language.check import specialise
from tests.codegen.corpus.devices import missing
from tests.codegen.corpus.harness import Bench, Case

BARRIER = re.compile(r"\n *barrier\([^)]*\);")


def increment(x: Any) -> Any:
    return x + 1.0


def in_groups(group: Callable[[Any], Any], size: int = 16) -> ir.Program:
    """A program that applies a function to each group of elements; 64 elements in all."""

    @program
    def groups(xs: "[f32]N"):
        return join(map_wrg(0, group, split(size, xs)))

    return specialise(groups, {"N": 64})


def staged(c: Any) -> Any:
    return to_local(map_lcl(0, increment, c))


def copied_rows(rows: Any) -> Any:
    return to_local(map_lcl(0, map_seq(id_), rows))


def two_staged(c: Any) -> Any:
    return map_lcl(0, lambda x, y: x - y, gather(reverse, zip_(staged(c), to_local(map_lcl(0, id_, c)))))


def nested(c: Any) -> Any:
    rows = to_local(map_lcl(1, map_lcl(0, increment), split(4, c)))
    return join(map_lcl(1, map_lcl(0, increment), transpose(rows)))


def in_two_dimensions() -> ir.Program:
    @program
    def tiles(xs: "[f32]N"):
        return join(map_wrg(1, lambda b: join(map_wrg(0, nested, split(16, b))), split(32, xs)))

    return specialise(tiles, {"N": 64})


@dataclass(frozen=True)
class Example:
    made: ir.Program
    barriers: int
    launch: Launch | None = None


ONE_ROUND, TWO_ROUNDS = Launch((64, 1, 1), (16, 1, 1)), Launch((32, 1, 1), (16, 1, 1))
EXAMPLES = {
    "zip": Example(in_groups(two_staged), 1),
    "nested": Example(in_two_dimensions(), 1),
    "nested, in loops": Example(in_two_dimensions(), 1, Launch((4, 4, 1), (2, 2, 1))),
    "in sequence": Example(in_groups(lambda c: map_lcl(0, increment, staged(c))), 0),
    "in sequence, in loops": Example(
        in_groups(lambda c: map_lcl(0, increment, staged(c))), 0, Launch((16, 1, 1), (4, 1, 1))
    ),
    "split": Example(in_groups(lambda c: map_lcl(0, reduce_seq(add, 0.0), split(4, staged(c)))), 1),
    "one item": Example(
        in_groups(lambda c: map_lcl(0, increment, to_local(map_lcl(0, reduce_seq(add, 0.0), split(16, staged(c)))))), 1
    ),
    "group of one": Example(
        in_groups(lambda c: map_lcl(0, lambda r: map_seq(id_, gather(reverse, r)), copied_rows(split(16, c)))), 0
    ),
    "join": Example(in_groups(lambda c: map_lcl(0, id_, join(copied_rows(split(4, c))))), 1),
    "gather": Example(in_groups(lambda c: map_lcl(0, id_, gather(reverse, staged(c)))), 1),
    "scatter": Example(in_groups(lambda c: map_lcl(0, id_, to_local(scatter(reverse, map_lcl(0, id_, c))))), 1),
    "asVector": Example(
        in_groups(lambda c: as_scalar(map_lcl(0, vectorize(4, increment), as_vector(4, staged(c))))), 1
    ),
    "asScalar": Example(
        in_groups(
            lambda c: map_lcl(0, id_, as_scalar(to_local(map_lcl(0, vectorize(4, increment), as_vector(4, c)))))
        ),
        1,
    ),
    "one round of groups": Example(in_groups(lambda c: map_lcl(0, id_, gather(reverse, staged(c)))), 1, ONE_ROUND),
    "two rounds of groups": Example(in_groups(lambda c: map_lcl(0, id_, gather(reverse, staged(c)))), 2, TWO_ROUNDS),
}  # fmt: skip


def plan_of(example: Example) -> Plan:
    return compile_program(example.made, GENERIC, launch=example.launch)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Bench]:
    if reason := missing("oclgrind"):
        pytest.skip(reason)
    with Bench("oclgrind") as bench:
        yield bench


@pytest.mark.parametrize("name", EXAMPLES)
def test_as_many_barriers_as_needed(name: str) -> None:
    assert len(BARRIER.findall(plan_of(EXAMPLES[name]).source)) == EXAMPLES[name].barriers


@pytest.mark.parametrize("name", EXAMPLES)
def test_none_is_missing_and_none_can_be_left_out(name: str, simulator: Bench) -> None:
    case, plan = Case.of(EXAMPLES[name].made), plan_of(EXAMPLES[name])
    outcome = simulator.outcome(case, plan)
    assert outcome.kind == "right", outcome.message
    for barrier in BARRIER.finditer(plan.source):
        without = plan.source[: barrier.start()] + plan.source[barrier.end() :]
        assert simulator.outcome(case, replace(plan, source=without)).kind == "wrong"


def test_nested_maps_have_no_barrier_inside() -> None:
    source = plan_of(EXAMPLES["nested, in loops"]).source
    (barrier,) = BARRIER.findall(source)
    depth = source[: source.index(barrier)].count("{") - source[: source.index(barrier)].count("}")
    groups = len(re.findall(r"for \(int wrg_", source))
    assert depth == 1 + groups, "the barrier stands in the loops over groups, and in no other"


def test_none_in_divergent_control_flow() -> None:
    exchanged = lambda r: map_lcl(0, id_, gather(reverse, staged(r)))  # noqa: E731

    @program
    def rows(xs: "[f32]N"):
        group = lambda g: join(map_lcl(1, exchanged, split(8, g)))  # noqa: E731
        return join(map_wrg(1, lambda b: join(map_wrg(0, group, split(24, b))), split(48, xs)))

    made = specialise(rows, {"N": 96})
    assert "barrier" in compile_program(made, GENERIC).source
    with pytest.raises(NestingProblem) as problem:
        compile_program(made, GENERIC, launch=Launch((16, 4, 1), (8, 2, 1)))
    assert "mapLcl(1) over 3 elements, but with 2 work-items" in str(problem.value)
    assert problem.value.subterm.startswith("mapLcl(1"), "it says where"
