"""Barriers stand where work-items exchange data, once and never in divergent control flow.

The four cases of the thesis (000 §4.3.4); Oclgrind says that none is missing, and that none can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from lift_egraph.codegen.c_ast import Barrier, Buffer, Const, For, Load, Statement, Store
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import GENERIC
from lift_egraph.codegen.lowering.views import ThreadVar
from lift_egraph.codegen.passes.barriers import _Accesses, _Placing, place_barriers  # pyright: ignore[reportPrivateUsage]
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import nat
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import I32
from tests.codegen.corpus.harness import Bench, Case
from tests.depth import in_turn

BARRIER = re.compile(r"\n *barrier\([^)]*\);")
INCREMENT = "fun x => x + 1.0"
STAGED = f"toLocal(mapLcl(0, {INCREMENT}, c))"
REVERSED = f"mapLcl(0, id, gather(reverse, {STAGED}))"
COPIED_ROWS = "toLocal(mapLcl(0, mapSeq(id), split({}, c)))"
SUMS = f"mapLcl(0, reduceSeq(add, 0.0), split({{}}, {STAGED}))"
NESTED = f"""
    join(mapLcl(1, mapLcl(0, {INCREMENT}), transpose(toLocal(mapLcl(1, mapLcl(0, {INCREMENT}), split(4, c))))))
"""


def program(body: str) -> ir.Program:
    return parse_program(f"program p(xs: [f32]64) = {body}")


def in_groups(group: str) -> ir.Program:
    """A program that computes something of each group c of elements."""
    return program(f"join(mapWrg(0, fun c => {group}, split(16, xs)))")


TWO_DIMENSIONS = program(f"join(mapWrg(1, fun b => join(mapWrg(0, fun c => {NESTED}, split(16, b))), split(32, xs)))")


@dataclass(frozen=True)
class Example:
    made: ir.Program
    barriers: int
    launch: Launch | None = None


EXAMPLES = {
    "zip": Example(in_groups(f"mapLcl(0, sub, gather(reverse, zip({STAGED}, toLocal(mapLcl(0, id, c)))))"), 1),
    "nested": Example(TWO_DIMENSIONS, 1),
    "nested, in loops": Example(TWO_DIMENSIONS, 1, Launch((4, 4, 1), (2, 2, 1))),
    "in sequence": Example(in_groups(f"mapLcl(0, {INCREMENT}, {STAGED})"), 0),
    "in sequence, in loops": Example(in_groups(f"mapLcl(0, {INCREMENT}, {STAGED})"), 0, Launch((16, 1, 1), (4, 1, 1))),
    "split": Example(in_groups(SUMS.format(4)), 1),
    "one item": Example(in_groups(f"mapLcl(0, {INCREMENT}, toLocal({SUMS.format(16)}))"), 1),
    "group of one": Example(
        in_groups(f"mapLcl(0, fun r => mapSeq(id, gather(reverse, r)), {COPIED_ROWS.format(16)})"), 0
    ),
    "join": Example(in_groups(f"mapLcl(0, id, join({COPIED_ROWS.format(4)}))"), 1),
    "gather": Example(in_groups(REVERSED), 1),
    "scatter": Example(in_groups("mapLcl(0, id, toLocal(scatter(reverse, mapLcl(0, id, c))))"), 1),
    "asVector": Example(in_groups(f"asScalar(mapLcl(0, vectorize(4, {INCREMENT}), asVector(4, {STAGED})))"), 1),
    "asScalar": Example(
        in_groups(f"mapLcl(0, id, asScalar(toLocal(mapLcl(0, vectorize(4, {INCREMENT}), asVector(4, c)))))"), 1
    ),
    "stored transposed, in rounds": Example(
        in_groups(
            "join(mapLcl(0, mapSeq(id), split(2, join("
            "toLocal(transpose(split(4, join(mapSeq(mapLcl(0, id), split(8, c))))))))))"
        ),
        1,
    ),
    "one round of groups": Example(in_groups(REVERSED), 1, Launch((64, 1, 1), (16, 1, 1))),
    "two rounds of groups": Example(in_groups(REVERSED), 2, Launch((32, 1, 1), (16, 1, 1))),
}


def plan_of(example: Example) -> Plan:
    return compile_program(example.made, GENERIC, launch=example.launch)


@pytest.mark.parametrize("name", EXAMPLES)
def test_as_many_barriers_as_needed(name: str) -> None:
    assert len(BARRIER.findall(plan_of(EXAMPLES[name]).source)) == EXAMPLES[name].barriers


@in_turn(6)
@pytest.mark.parametrize("name", EXAMPLES)
def test_none_is_missing_and_none_can_be_left_out(name: str, benches: Callable[[str], Bench]) -> None:
    simulator, case, plan = benches("oclgrind"), Case.of(EXAMPLES[name].made), plan_of(EXAMPLES[name])
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


def test_atomic_operations_do_not_race_with_each_other_in_loops_either() -> None:
    bins, out = Buffer("bins", "local", I32, (4,)), Buffer("out", "global", I32, (16,))

    def loop(number: int, made: Callable[[Load, Load], Store]) -> For:
        i = ThreadVar(f"lcl_{number}", 0, 15, dimension=0)
        return For(i, nat(16), ir.Level("lcl", 0), 16, (made(Load(bins, nat(i) % 4), Load(out, nat(i))),))

    cleared, last = loop(0, lambda b, _: Store(b, Const(0, I32))), loop(3, lambda b, o: Store(o, b))
    for by, barriers in (("add", 2), ("", 3)):
        added = [loop(n, lambda b, _, by=by: Store(b, Const(1, I32), by=by)) for n in (1, 2)]
        body = place_barriers((cleared, *added, last), {0: 16})
        assert sum(isinstance(s, Barrier) for s in body) == barriers


def test_what_a_statement_accesses_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again in each round of each loop around it, which are gone through twice."""
    asked, found_of = list[Statement](), _Placing.accesses_of

    def counted(placing: _Placing, item: Statement, through_pointers: bool) -> _Accesses:
        asked.append(item)
        return found_of(placing, item, through_pointers)

    monkeypatch.setattr(_Placing, "accesses_of", counted)
    numbers, group = list[int](), REVERSED
    for length in (2, 4, 8):
        group = f"join(mapSeq(fun c => {group}, split({length}, c)))"
        asked.clear()
        compile_program(in_groups(group), GENERIC)
        numbers.append(len(asked))
    one, two, three = numbers
    assert three - two <= two - one


def test_none_in_divergent_control_flow() -> None:
    rows = f"join(mapLcl(1, fun c => {REVERSED}, split(8, g)))"
    made = parse_program(f"""
        program rows(xs: [f32]96) =
          join(mapWrg(1, fun b => join(mapWrg(0, fun g => {rows}, split(24, b))), split(48, xs)))
    """)
    assert "barrier" in compile_program(made, GENERIC).source
    with pytest.raises(NestingProblem) as problem:
        compile_program(made, GENERIC, launch=Launch((16, 4, 1), (8, 2, 1)))
    assert "mapLcl(1) over 3 elements, but with 2 work-items" in str(problem.value)
    assert problem.value.subterm.startswith("mapLcl(1"), "it says where"
