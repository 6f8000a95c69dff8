"""Phases within limits: every stop reason, and what is kept."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import cloudpickle
import pytest

from lift_egraph.api import StructuralCost, alpha_equal, best_terms, parse_program, programs, rules, specialise, type_of
from lift_egraph.dsl import Ex, rule
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import forms
from lift_egraph.egraph.saturate import Limits, Phase, Saturation, StopReason, run_phase, saturate
from lift_egraph.language import ir
from lift_egraph.rules.fusion import map_fusion
from lift_egraph.rules.movement import map_backwards, map_strided
from lift_egraph.rules.opencl_vector import vectorise_reduce
from lift_egraph.rules.packing import pack_vectors
from lift_egraph.rules.partition import reduce_reordered
from lift_egraph.rules.rows import map_of_operands
from tests.command import ctrl_c
from tests.depth import in_turn
from tests.in_process import no_children


def mm(size: int = 64) -> ir.Expr:
    return specialise(programs.load("mm"), {"M": size, "N": size, "K": size}).body


def phase(limits: Limits, tiles: dict[int, tuple[int, ...]] | None = None) -> Phase:
    return Phase("algorithmic", rules.algorithmic, rules.simplification, tiles or {64: (8,)}, (), limits)


def test_iterations_are_bounded_and_reported():
    seen: list[Saturation] = []
    done = saturate(mm(), phase(Limits(iterations=3)), on_iteration=seen.append)
    assert done.stop_reason is StopReason.ITERATIONS
    assert [i.number for i in done.iterations] == [1, 2, 3]
    assert len(seen) == 4  # the start, and each iteration
    assert done.iterations[0].matches["split_join"] >= 1
    assert done.graph.tuples > seen[0].graph.tuples


def test_a_program_without_matches_saturates():
    term = specialise(programs.load("scal"), {"N": 7}).body
    with no_children():
        done = saturate(term, Phase("none", (rules.fusion.map_fusion,), rules.simplification))
    assert done.stop_reason is StopReason.SATURATED
    assert alpha_equal(best_terms(done.graph, done.root, StructuralCost(), 1)[0].term, term)


@pytest.mark.parametrize(
    "rule", [map_backwards, map_strided, reduce_reordered, vectorise_reduce, pack_vectors], ids=lambda r: r.name
)
def test_rules_leave_their_own_results_alone(rule):
    searched = Phase("one rule", (rule,), rules.simplification, {64: (8,)}, (8,), Limits(iterations=9))
    first, *_, done = run_phase(mm(), searched)
    assert done.graph.node_count > first.graph.node_count
    assert done.stop_reason is StopReason.SATURATED


def test_operands_that_are_names_are_not_named_again():
    def grown(body: str) -> int:
        program = parse_program(f"program p(xs: [f32]8, ys: [f32]8) = map(fun (x, y) => {body}, zip(xs, ys))")
        searched = Phase("operands", (map_of_operands,), rules.simplification, limits=Limits(iterations=9))
        first, *_, done = run_phase(program.body, searched)
        assert done.stop_reason is StopReason.SATURATED
        return done.graph.node_count - first.graph.node_count

    assert grown("x * y") == 0
    assert grown("x * abs(y)") > 0


@pytest.mark.parametrize("apart", ["map(abs, map(sqrt, xs))", "map(fun x => abs(x), map(fun y => sqrt(y), xs))"])
def test_maps_meet_after_one_iteration(apart: str):
    maps = (apart, "map(fun x => abs(sqrt(x)), xs)")
    one, together = (parse_program(f"program p(xs: [f32]8) = {body}") for body in maps)
    searched = Phase("fused", (map_fusion,), rules.simplification, limits=Limits(iterations=1))
    *_, done = run_phase(one.body, searched)
    assert locate(done.graph, done.root, together.body) is not None


@in_turn(2)
def test_the_whole_book_stays_lean():
    exploring = tuple(r for r in rules.all_rules if r.phase != "simplification")
    searched = Phase("book", exploring, rules.simplification, {1024: (32,)}, (), Limits(iterations=3))
    *_, done = run_phase(mm(1024), searched)
    assert done.graph.tuples < 5950  # 200 more if names in stock have types and `let v = v in b` is another term than b


def test_nodes_are_bounded():
    with no_children():
        done = saturate(mm(), phase(Limits(iterations=50, nodes=3000)))
    assert done.stop_reason is StopReason.NODES
    assert done.graph.tuples <= 3000


@in_turn(2)
def test_time_is_bounded_and_the_last_graph_kept():
    began = time.perf_counter()
    done = saturate(mm(), phase(Limits(iterations=50, nodes=10**9, seconds=0.5)))
    assert done.stop_reason in (StopReason.TIME, StopReason.MEMORY)
    assert time.perf_counter() - began < 30
    assert type_of(best_terms(done.graph, done.root, StructuralCost(), 1)[0].term) == type_of(mm())


@in_turn(2)
def test_memory_is_bounded_and_the_last_graph_kept():
    limits = Limits(iterations=50, nodes=10**9, seconds=60, memory_mb=180)
    done = saturate(mm(), phase(limits, {64: (2, 4, 8, 16, 32)}))
    assert done.stop_reason is StopReason.MEMORY
    assert done.graph.tuples > 0


@pytest.mark.usefixtures("interruptible")
def test_interrupt_returns_soon():
    searched = phase(Limits(50, 10**9, 60.0), {64: (2, 4, 8, 16, 32)})
    with ctrl_c(0.5) as soon:
        done = saturate(mm(), searched, on_iteration=lambda state: soon() if state.iterations else None)
    assert done.stop_reason is StopReason.INTERRUPTED
    assert done.iterations


def test_phases_run_the_same_in_this_process():
    inside = list(run_phase(mm(), phase(Limits(iterations=2))))[-1]
    outside = saturate(mm(), phase(Limits(iterations=2)))
    assert (inside.graph.tuples, inside.graph.node_count) == (outside.graph.tuples, outside.graph.node_count)


def test_rules_travel_by_name():
    for chosen in rules.all_rules:
        assert pickle.loads(pickle.dumps(chosen)) is chosen, chosen.name


SCRIPT = """
from lift_egraph.dsl import EMPTY, Ex, Fn, Ty, eq, fv, i64, join, map_, rewrite, rule, ty

def rows(xss: Ex, n: i64, t: Ty):
    return eq(Ty.arr(n, t)).to(ty(xss))

@rule("map join xss = xss, which is wrong, but closed")
def mine(xss: Ex, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.join(u), xss)).to(join(xss), rows(xss, n, t), eq(fv(xss)).to(EMPTY))
"""


def test_rules_of_a_script_travel_with_what_they_use():
    written = {"__name__": "__main__"}
    exec(SCRIPT, written)
    mine = pickle.loads(cloudpickle.dumps(written["mine"]))
    assert isinstance(mine, Rule)
    assert mine is not written["mine"]
    assert (mine.name, mine.law) == ("mine", "map join xss = xss, which is wrong, but closed")
    assert mine.body.__globals__["Fn"] is written["Fn"]
    assert str(forms(mine)) == str(forms(written["mine"]))  # pyright: ignore[reportArgumentType]


def test_a_second_phase_starts_from_the_first():
    with no_children():
        first = saturate(mm(), phase(Limits(iterations=3)))
        seed = best_terms(first.graph, first.root, StructuralCost(), 1)[0]
        second = saturate(seed.term, replace(phase(Limits(iterations=4)), rules=rules.lowering))
    assert type_of(best_terms(second.graph, second.root, StructuralCost(lowered=True), 1)[0].term) == type_of(mm())


def test_a_rule_that_fails_fails_again():
    @rule("xs = xs")
    def broken(xs: Ex):
        raise ArithmeticError("it cannot be read")
        yield

    term = parse_program("program p(xs: [f32]4) = map(abs, xs)").body
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="it cannot be read"):
            next(run_phase(term, Phase("broken", (broken,), ())))
