"""Single terms rewritten by rules: what the e-graph does, and walks that keep the program."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from benchmarks.random_walks.terms import first_member
from benchmarks.random_walks.walks import Rewriting, random_step, random_walks
from lift_egraph.api import Phase, equal_values, evaluate, random_inputs, rules as book, specialise, type_of
from lift_egraph.derivation.steps import World
from lift_egraph.egraph.exact_terms import read_only_member
from lift_egraph.egraph.read_back import from_egg
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_term
from lift_egraph.programs import load
from lift_egraph.rules.fusion import map_fusion
from lift_egraph.rules.simplification import transpose_of_transpose
from tests.depth import in_turn

EXPLORING = (*book.algorithmic, *book.loop_rules, *book.vector_rules, *book.movement_rules, *book.stencil_rules[:2])
PROGRAMS = {
    "mm": ({"M": 8, "K": 4, "N": 8}, {8: (4, 2), 4: (2,)}),
    "j2d5pt": ({"N": 8, "M": 8}, {8: (4, 2)}),
    "asum": ({"N": 16}, {16: (4,)}),
}


def walking(name: str, rules: tuple[Any, ...] = EXPLORING) -> tuple[ir.Program, Phase]:
    sizes, tiles = PROGRAMS[name]
    return specialise(load(name), sizes), Phase("walk", rules, book.simplification, tiles, (2,))


@in_turn(6)
@pytest.mark.parametrize("name", ["mm", "j2d5pt"])
def test_a_step_is_one_of_the_rule_in_an_e_graph_and_no_rule_is_missed(name: str):
    program, phase = walking(name)
    rewriting, world, choose = Rewriting(phase), World(phase), random.Random(3)
    term = rewriting.start(program.body)
    for number in range(6):
        counts = rewriting.counts(term)
        if number % 5 == 0:
            start = read_only_member(rewriting.graph, term)
            places = {i: world.apply(start, r.ruleset, True) for i, r in enumerate(EXPLORING)}
            assert {EXPLORING[i].name for i, found in places.items() if found} == {EXPLORING[i].name for i in counts}
        rule = choose.choice(sorted(counts))
        after = rewriting.step(term, rule, choose.randrange(counts[rule]))
        before, meaning = read_only_member(rewriting.graph, term), rewriting.decode(after)
        assert world.reaches(before, [EXPLORING[rule]], meaning), EXPLORING[rule].name
        term = after


@in_turn(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_visited_has_the_type_and_the_value_of_the_program(name: str):
    program, phase = walking(name, tuple(r for r in EXPLORING if r.phase == "algorithmic"))
    visited = next(random_walks(program.body, phase, seed=5, batch=300))
    assert len(visited.terms) > 10
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    for member in random.Random(0).sample(visited.terms, min(len(visited.terms), 30)):
        term = from_egg(visited.graph, first_member(visited.graph, member))
        assert type_of(term) == type_of(program.body)
        assert equal_values(evaluate(term, inputs), expected), print_term(term)


@in_turn(3)
def test_equal_seeds_walk_equally():
    program, phase = walking("mm")

    def walked(seed: int) -> list[tuple[Any, ...]]:
        batches = itertools.islice(random_walks(program.body, phase, seed=seed, batch=150), 2)
        return [(v.steps, v.walks, v.terms, v.graph.nodes) for v in batches]

    first = walked(7)
    assert first == walked(7)
    assert first != walked(8)
    assert first[0] != first[1]


def test_encoding_and_decoding_are_inverse():
    for name in PROGRAMS:
        program, phase = walking(name)
        rewriting = Rewriting(phase)
        term = rewriting.encode(program.body)
        assert rewriting.sizes[rewriting.encode(rewriting.decode(term))] == rewriting.sizes[term]
        assert type_of(rewriting.decode(term)) == type_of(program.body)


def test_a_step_is_simplified():
    program = parse_program("program p(xss: [[f32]8]4) = map(map(abs), transpose(transpose(map(map(neg), xss))))")
    rewriting = Rewriting(Phase("fuse", (map_fusion,), (transpose_of_transpose,)))
    after = random_step(rewriting, rewriting.start(program.body), random.Random(0))
    assert after is not None
    assert "transpose" not in print_term(rewriting.decode(after))


def test_where_no_rule_applies_there_is_no_step():
    rewriting = Rewriting(Phase("nothing", (transpose_of_transpose,), ()))
    term = rewriting.start(specialise(load("asum"), {"N": 4}).body)
    assert random_step(rewriting, term, random.Random(0)) is None
