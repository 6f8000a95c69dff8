"""Terms are found again in an e-graph by their form."""

from __future__ import annotations

import random

import pytest

from lift_egraph.api import LiftError, Limits, Phase, alpha_equal, programs, rules, run_phase, specialise
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.read_back import from_egg
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_program
from tests.depth import in_turn

EVERYTHING = """
program everything(x: [f32]8, xss: [[f32]4]8, i: [i32]8) =
  (gather(i => i * 3 % 8, scatter(i => 7 - i, lookup(i, x))),
   (iterate(2, fun (ys: [f32]n) => map(reduce(add, 0.0), split(2, ys)), x),
    (map(fun w => at(1, w), slide(3, 1, pad(1, 1, clamp, pad(1, 1, constant(0.5), generate(6, fun k => to_f32(k)))))),
     (asScalar(map(vectorize(4, fun v => v * v), asVector(4, x))),
      map(fun row => toPrivate(reduceSeq(fun (a, b) => a + b, 0.0, row)), join(split(2, transpose(transpose(xss)))))))))
"""


def members(term: ir.Expr, phase: Phase, count: int):
    """Members of the root of a saturated e-graph, each with what it is drawn from."""
    *_, last = run_phase(term, phase)
    sampler, rng, made = MemberSampler(last.graph), random.Random(0), 0
    while made < count:
        choice = sampler.sample(last.root, rng)
        assert choice is not None
        try:
            member = from_egg(last.graph, choice)
        except LiftError:  # an open member
            continue
        made += 1
        yield last, member


@in_turn(8)
@pytest.mark.parametrize(
    ("name", "chosen"),
    [("mm", rules.algorithmic), ("asum", rules.algorithmic + rules.lowering), ("j2d5pt", rules.algorithmic)],
)
def test_every_member_is_found_again(name: str, chosen):
    term = specialise(programs.load(name), dict.fromkeys(dict(programs.load(name).sizes), 16)).body
    phase = Phase("all", chosen, rules.simplification, {16: (4,)}, (4,), Limits(3, 4000))
    distinct = set()
    for saturation, member in members(term, phase, 40):
        found = locate(saturation.graph, saturation.root, member)
        assert found is not None
        assert alpha_equal(from_egg(saturation.graph, found), member)
        distinct.add(member)
    assert len(distinct) > 10


def test_every_pattern_is_found():
    program = parse_program(EVERYTHING)
    (state, *_) = run_phase(program.body, Phase("none", (), ()))
    for term in (program.body, parse_program(print_program(program)).body):
        found = locate(state.graph, state.root, term)
        assert found is not None
        assert alpha_equal(from_egg(state.graph, found), program.body)


@pytest.mark.parametrize(
    ("old", "new"),
    [("at(1, w)", "at(2, w)"), ("7 - i", "i"), ("v * v", "v + v"), ("clamp", "wrap"), ("0.5", "0.25"),
     ("iterate(2", "iterate(1")],
)  # fmt: skip
def test_another_term_is_not_found(old: str, new: str):
    (state, *_) = run_phase(parse_program(EVERYTHING).body, Phase("none", (), ()))
    assert old in EVERYTHING
    assert locate(state.graph, state.root, parse_program(EVERYTHING.replace(old, new)).body) is None


def test_variables_of_another_binder_are_told_apart():
    text = "program p(xss: [[f32]4]4) = map(fun a => map(fun b => reduce(add, 0.0, {}), xss), xss)"
    (state, *_) = run_phase(parse_program(text.format("a")).body, Phase("none", (), ()))
    assert locate(state.graph, state.root, parse_program(text.format("a")).body) is not None
    assert locate(state.graph, state.root, parse_program(text.format("b")).body) is None
