"""An e-graph that holds one term after another, beside one made for each."""

from __future__ import annotations

import random
from collections import Counter

import egglog
import pytest

from lift_egraph.api import programs, specialise
from lift_egraph.egraph.analyses import analyses, settled
from lift_egraph.egraph.encoding import new_graph, operator_laws, to_egg
from lift_egraph.egraph.exact_terms import read_only_member
from lift_egraph.egraph.frozen import FrozenEGraph, freeze
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.read_back import Choice, from_egg
from lift_egraph.egraph.rule import together
from lift_egraph.egraph.scratch import ROOT, Schedule, Scratch
from lift_egraph.egraph.sorts import tile
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.rules import algorithmic, simplification
from tests.depth import in_turn

DOT = ("dot", {"N": 12})
TERMS = [
    specialise(programs.load(name), sizes).body
    for name, sizes in (("mm", {"M": 4, "K": 6, "N": 8}), DOT, ("j2d5pt", {"N": 4, "M": 4}), DOT)
]
TILES = (tile(4, 2), tile(12, 3), tile(8, 4))
CLEANING = together((*analyses, *(r.ruleset for r in simplification))).saturate()
EXPLORING = egglog.run(together(r.ruleset for r in algorithmic))


def shape(graph: FrozenEGraph) -> tuple[int, int, int, Counter[str]]:
    """What does not depend on how classes are numbered."""
    operators = Counter(n.op for nodes in graph.nodes.values() for n in nodes)
    return graph.tuples, graph.node_count, graph.class_count, operators


@pytest.fixture(scope="module")
def scratch() -> Scratch:
    Scratch()  # the first is told the analyses, the others are given the commands that told it
    return Scratch()


def test_facts_have_no_names():
    """Each would be a table, which every push copies."""
    tables = Scratch(TILES)._graph._egraph.freeze().functions.values()
    assert tables
    assert not any(table.is_let_binding for table in tables)


@in_turn(3)
def test_terms_held_one_after_the_other_are_as_in_an_e_graph_each(scratch: Scratch):
    compiled = [(schedule, scratch.compiled(schedule)) for schedule in (CLEANING, EXPLORING)]
    for term in TERMS:
        own = new_graph()
        root = own.let(ROOT, to_egg(term))
        own.register(*operator_laws(), *TILES)
        with scratch.holding(to_egg(term), TILES) as held:
            for _ in range(2):
                for schedule, same in compiled:
                    own.run(schedule)
                    held.run(same)
                expected, found = freeze(own, {ROOT: root}), held.freeze()
                assert shape(found) == shape(expected)
                ops = [Counter(n.op for n in g.nodes[g.roots[ROOT]]) for g in (expected, found)]
                assert ops[0] == ops[1]


def test_knowledge_that_comes_kind_by_kind_is_the_same(scratch: Scratch):
    schedules = CLEANING, settled(r.ruleset for r in simplification)
    together_, apart = (scratch.compiled(schedule) for schedule in schedules)
    exploring = scratch.compiled(EXPLORING)
    for term in TERMS:
        shapes = []
        for cleaning in (together_, apart):
            with scratch.holding(to_egg(term), TILES) as held:
                held.run(cleaning, exploring, cleaning)
                shapes.append(shape(held.freeze()))
        assert shapes[0] == shapes[1]


def test_a_term_with_the_names_of_the_e_graph_is_held_as_it_is(scratch: Scratch):
    for term in TERMS:
        with scratch.holding(to_egg(term)) as held:
            before = held.freeze()
        node = read_only_member(before, before.roots[ROOT])
        with scratch.holding(node) as held:
            after = held.freeze()
        assert shape(after) == shape(before)
        assert read_only_member(after, after.roots[ROOT]) == node


def test_nothing_is_left_of_a_term_whatever_happens(scratch: Scratch):
    with scratch.holding(to_egg(TERMS[1])) as held:
        before = held.freeze()
    with pytest.raises(ZeroDivisionError):
        _fail_while_holding(scratch)
    with scratch.holding(to_egg(TERMS[1])) as held:
        assert shape(held.freeze()) == shape(before)


def _fail_while_holding(scratch: Scratch) -> None:
    schedule = scratch.compiled(EXPLORING)
    with scratch.holding(to_egg(TERMS[0]), TILES) as held:
        held.run(schedule)
        raise ZeroDivisionError


def test_rules_that_are_gone_leave_their_name_to_no_others():
    """Egglog names rulesets by their address, and an e-graph runs what it was told first under a name."""
    own, shared = Scratch(), Scratch()
    cleaning = [(scratch, scratch.compiled(CLEANING)) for scratch in (own, shared)]
    compiled = {rule.name: own.compiled(egglog.run(rule.ruleset)) for rule in algorithmic}

    def grown(scratch: Scratch, clean: Schedule, step: Schedule) -> int:
        with scratch.holding(to_egg(TERMS[0]), TILES) as held:
            held.run(clean, step)
            return held.freeze().tuples

    expected = {name: grown(*cleaning[0], step) for name, step in compiled.items()}
    assert len(set(expected.values())) > 2
    for rule in (*algorithmic, *reversed(algorithmic)):
        step = shared.compiled(egglog.run(together((rule.ruleset,))))
        assert grown(*cleaning[1], step) == expected[rule.name], rule.name


def test_terms_side_by_side_have_names_of_their_own():
    term = to_egg(parse_program("program twice(xs: [f32]4) = map(fun x => x + x, xs)").body)
    scratch = Scratch()
    cleaning = scratch.compiled(settled())
    with scratch.holding_all({"root0000": (term, ()), "root0001": (term, ())}, (), ()) as held:
        held.run(cleaning)
        frozen = held.freeze()
    one, other = (from_egg(frozen, read_choice_of(frozen, root)) for root in ("root0000", "root0001"))
    assert frozen.roots["root0000"] != frozen.roots["root0001"]
    assert [i.name for t in (one, other) for i in ir.subterms(t) if isinstance(i, ir.Input)] == ["xs_0000", "xs_0001"]


def read_choice_of(frozen: FrozenEGraph, root: str) -> Choice:
    found = MemberSampler(frozen).sample(frozen.roots[root], random.Random(0))
    assert found is not None
    return found
