"""The audit of saturated e-graphs finds unions that are wrong only together."""

from __future__ import annotations

import json

import egglog
import pytest
from egglog import eq, i64, rewrite

from lift_egraph.api import Limits, Phase, check_rule, parse_program, programs, rules, run_phase, specialise
from lift_egraph.egraph import sorts as s
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.language import ir
from lift_egraph.soundness.audit import audit
from tests.command import lift
from tests.depth import in_turn

# --- a name that one rule leaves behind, and another takes for new


@rule("map (λp. b) xs = join (map (λc. map (λp. b) c) (split n xs))")
def chunks_named_twice(p: s.P, b: s.Ex, xs: s.Ex, t: s.Ty, n: i64, m: i64):
    chunk = s.V.of("chunk", p, n)
    yield rewrite(s.map_(s.Fn.lam(p, b), xs)).to(
        s.join(s.map_(s.Fn.lam(s.P.var(chunk), s.map_(s.Fn.lam(p, b), s.Ex(chunk))), s.split(n, xs))),
        eq(s.Ty.arr(m, t)).to(s.ty(xs)), eq(t).to(s.pty(p)), s.tile(m, n), eq(m % n).to(i64(0)), n < m,
    )  # fmt: skip


@rule("map (λp. reduce ⊕ z ys) xs = let c = ys in map (λp. reduce ⊕ z c) xs,  p not free in ys")
def reduced_array_named(p: s.P, op: s.Op, z: s.Ex, xs: s.Ex, ys: s.Ex, n: i64, t: s.Ty):
    chunk = s.V.of("chunk", p, n)
    yield rewrite(s.map_(s.Fn.lam(p, s.reduce_(op, z, ys)), xs)).to(
        s.app(s.Fn.lam(s.P.var(chunk), s.map_(s.Fn.lam(p, s.reduce_(op, z, s.Ex(chunk))), xs)), ys),
        eq(s.Ty.arr(n, t)).to(s.ty(ys)), eq(t).to(s.pty(p)), s.absent(p, ys),
    )  # fmt: skip


# --- a fact that one rule states too freely, and another trusts


@rule("reduce ⊕ z xs = reduce ⊕ z (gather id xs), and z is neutral")
def every_start_is_neutral(e: s.Ex, op: s.Op, z: s.Ex, xs: s.Ex):
    yield egglog.rule(eq(e).to(s.reduce_(op, z, xs))).then(s.neutral(op, z))
    yield rewrite(s.reduce_(op, z, xs)).to(s.reduce_(op, z, s.gather("i", xs)))


NAMED = parse_program("program named(xs: [f32]4, ys: [f32]2) = map(fun x => reduce(add, 0.0, ys), xs)")
STARTED = parse_program("program started(xs: [f32]4, a: f32) = reduce(add, a, xs)")
PAIRS = {
    "name": (chunks_named_twice, reduced_array_named, NAMED),
    "fact": (every_start_is_neutral, rules.reduction.partial_reduce, STARTED),
}


def saturated(program: ir.Program, chosen: tuple[Rule, ...], iterations: int = 3, nodes: int = 20_000) -> FrozenEGraph:
    tiles = {4: (2,), 6: (2, 3), 8: (2, 4)}
    phase = Phase("audit", chosen, rules.simplification, tiles, (2,), Limits(iterations, nodes, 60.0))
    return list(run_phase(program.body, phase))[-1].graph


@in_turn(6)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_unions_that_are_wrong_only_together_are_found(pair):
    first, second, program = pair
    for alone in (first, second):
        if alone not in rules.all_rules:  # the check knows of names and facts that other rules leave behind
            assert check_rule(alone, 40, simplification=rules.simplification, shrink_steps=0).counterexample is not None
        assert not audit(saturated(program, (alone,), 1)).disagreements
    found = audit(saturated(program, (first, second))).disagreements
    assert found
    assert "differ:\n" in str(found[0])


@in_turn(6)
@pytest.mark.parametrize("name", ["mm", "dot", "j2d5pt", "gemv"])
def test_our_rules_agree_on_whole_e_graphs(name):
    program = programs.load(name)
    small = specialise(program, {size: 4 if name == "mm" else 8 for size, _ in program.sizes})
    found = audit(saturated(small, rules.algorithmic + rules.lowering, 3, 2000))
    assert found.classes > 50
    assert found.members == found.nodes > found.classes
    assert not found.disagreements, str(found.disagreements[0])


def test_a_wrong_union_is_found_where_it_is():
    @rule("transpose xss = xss")
    def forget(xss: s.Ex):
        yield rewrite(s.join(xss)).to(s.join(xss), eq(xss).to(xss))
        yield rewrite(s.split(2, xss)).to(s.gather("n - 1 - i", s.split(2, xss)))

    program = parse_program("program wrong(xs: [f32]4) = map(reduce(add, 0.0), split(2, xs))")
    graph = saturated(program, (forget,), 1)
    found = audit(graph).disagreements
    assert found
    assert "split(2, xs)" in found[0].first
    assert "gather" in found[0].second


UNTRUE = """\
import egglog
from lift_egraph.dsl import Ex, Op, eq, gather, i64, neutral, reduce_, rewrite, rule
from lift_egraph.rules.reduction import partial_reduce

@rule("reduce and z is neutral")
def every_start_is_neutral(e: Ex, op: Op, z: Ex, xs: Ex):
    yield egglog.rule(eq(e).to(reduce_(op, z, xs))).then(neutral(op, z))
    yield rewrite(reduce_(op, z, xs)).to(reduce_(op, z, gather("i", xs)))
"""


@in_turn(3)
def test_the_command(tmp_path):
    (tmp_path / "started.lift").write_text("program started(xs: [f32]N, a: f32) where N = 4 = reduce(add, a, xs)\n")
    (tmp_path / "mine.py").write_text(UNTRUE)
    program = tmp_path / "started.lift"
    right = lift("rules", "audit", program)
    assert right.exit_code == 0, right.output
    assert " 0 classes whose members differ" in right.stdout
    program.write_text("program started(xs: [f32]N, a: f32) where N = 40 = reduce(add, a, xs)\n")
    told = json.loads(lift("rules", "audit", program, "--json").stdout)
    assert (told["sizes"], told["made_smaller"]) == ({"N": 6}, {"N": 40})
    asked = lift("rules", "audit", program, "--size", "N=5", "--json")  # what is given is taken as it is
    assert json.loads(asked.stdout)["made_smaller"] == {}
    assert "made smaller" not in asked.stderr
    assert told["nodes"] == told["members"] > told["classes"]  # whatever a rule made was compared
    wrong = lift("rules", "audit", program, "partial_reduce", tmp_path / "mine.py")
    assert wrong.exit_code == 1
    assert "WRONG two members of class" in wrong.stdout
