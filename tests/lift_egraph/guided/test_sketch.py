"""Sketches: what satisfies them, the cheapest first, and what is said where nothing does."""

from __future__ import annotations

import re

import pytest

from lift_egraph.api import alpha_equal, equal_values, evaluate, parse_program, programs, rules, sketch as s
from lift_egraph.egraph.saturate import Limits, Phase, Saturation, run_phase
from lift_egraph.errors import SketchProblem, SyntaxProblem
from lift_egraph.guided.matcher import Matcher, satisfying
from lift_egraph.guided.readings import Forms
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.meaning.inputs import random_inputs
from tests.depth import in_turn

pytestmark = pytest.mark.usefixtures("in_process")

MM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})


def saturation(program: ir.Program, iterations: int) -> Saturation:
    phase = Phase(
        "all", rules.algorithmic, rules.simplification, {8: (2, 4)}, (), Limits(iterations=iterations, nodes=10**6)
    )
    *_, last = run_phase(program.body, phase)
    return last


@pytest.fixture(scope="module")
def mm() -> Saturation:
    return saturation(MM, 4)


def maps(term: ir.Part, lengths: tuple[int, ...]) -> bool:
    """The meaning of a nest of maps on a term, without e-graphs."""
    if not lengths:
        return True
    for t in ir.subterms(term):
        length = getattr(type_of(t.array), "size").constant if isinstance(t, ir.Map) else None  # noqa: B009
        if isinstance(t, ir.Map) and length == lengths[0] and maps(t.function, lengths[1:]):
            return True
    return False


@in_turn(6)
@pytest.mark.parametrize("lengths", [(8, 8), (4, 2, 8), (2, 4, 8), (2, 2, 4, 4), (4, 4, 2, 2), (2, 4, 2, 4)])
def test_a_nest_is_found_and_keeps_the_result(mm: Saturation, lengths: tuple[int, ...]):
    inputs = random_inputs(MM, 0, "integer")
    matches = satisfying(mm.graph, mm.root, s.nest(*(s.map_(length=n) for n in lengths)), count=3)
    assert matches
    assert [m.cost for m in matches] == sorted(m.cost for m in matches)
    for match in matches:
        assert maps(match.term, lengths)
        assert equal_values(evaluate(match.term, inputs), evaluate(MM.body, inputs))


def test_the_program_satisfies_its_own_shape(mm: Saturation):
    exact = s.map_(
        s.map_(s.reduce_(s.call("add"), s.ANY, s.map_(s.call("mul"), s.zip_())), s.transpose(s.input_("B"))),
        s.input_("A"),
    )
    (match,) = satisfying(mm.graph, mm.root, exact)
    assert alpha_equal(match.term, MM.body)


@pytest.mark.parametrize(
    "sketch",
    [
        s.nest(s.map_(length=2), s.reduce_(length=8), s.call("mul")),
        s.join(s.map_(s.ANY, s.named("xs", s.split(2)))),
        s.contains(s.one_of(s.split(4), s.transpose(s.input_("B")))),
        s.of_type("[[f32]8]8", s.transpose(s.ANY)),
    ],
)
def test_every_class_with_a_satisfying_member_has_the_form(mm: Saturation, sketch: s.Sketch):
    forms, matcher = Forms(mm.graph)(sketch), Matcher(mm.graph)
    satisfied = {c for c in mm.graph.nodes if matcher.best(c, sketch) is not None}
    table = matcher._table(sketch)  # without regard to forms
    assert set(table) == satisfied
    assert satisfied
    assert satisfied <= forms


def test_members_are_not_looked_for_where_no_class_has_the_form(mm: Saturation):
    def weigh(*site: object) -> float:
        raise AssertionError("a member was looked for")

    assert not Matcher(mm.graph, weigh).matches(mm.root, s.nest(s.map_(), s.map_(length=5)))
    with pytest.raises(AssertionError):
        Matcher(mm.graph, weigh).matches(mm.root, s.nest(s.map_(), s.map_(length=4)))


def test_no_node_is_read_for_a_sketch_of_whose_parts_one_has_no_class(mm: Saturation, monkeypatch: pytest.MonkeyPatch):
    def read(*site: object) -> None:
        raise AssertionError("a node was read")

    monkeypatch.setattr("lift_egraph.guided.readings.read", read)
    assert not Forms(mm.graph)(s.map_(s.call("sqrt"), length=4))
    with pytest.raises(AssertionError):
        Forms(mm.graph)(s.map_(length=4))


def test_functions_without_names_read_as_their_body():
    program = parse_program("program p(xs: [[[f32]2]4]8) = map(join, xs)")
    graph = saturation(program, 0)
    assert satisfying(graph.graph, graph.root, s.map_(s.join()))
    assert satisfying(graph.graph, graph.root, s.map_(s.join(s.named("argument"))))
    assert not satisfying(graph.graph, graph.root, s.map_(s.transpose()))


def test_names_say_what_stands_for_them(mm: Saturation):
    (match,) = satisfying(mm.graph, mm.root, s.join(s.map_(s.ANY, s.named("chunks", s.split(2, s.named("whole"))))))
    whole = match.names["whole"]
    assert isinstance(whole, ir.Input)
    assert whole.name == "A"
    assert isinstance(match.names["chunks"], ir.Split)


def test_types_and_alternatives(mm: Saturation):
    wanted = s.contains(s.named("piece", s.of_type("[[[f32]8]2]4", s.split())))
    (match,) = satisfying(mm.graph, mm.root, wanted)
    piece = match.names["piece"]
    assert isinstance(piece, ir.Expr)
    assert str(type_of(piece)) == "[[[f32]8]2]4"
    either = s.contains(s.one_of(s.split(3), s.split(4)))
    assert satisfying(mm.graph, mm.root, either)
    assert not satisfying(mm.graph, mm.root, s.contains(s.split(3)))


@pytest.mark.parametrize(
    ("sketch", "says"),
    [
        (s.nest(s.map_(length=8), s.map_(length=5)), "satisfies map 5; map works on lengths 2, 4, 8 there"),
        (s.nest(s.map_(), s.call("div")), "satisfies div; there is no div at all"),
        (s.contains(s.join(s.transpose(s.input_("A")))), "its parts are satisfied"),
        (s.join(s.contains(s.input_("B"))), None),
        (s.input_("A"), "but not the program"),
    ],
)
def test_what_no_term_satisfies_is_named(mm: Saturation, sketch: s.Sketch, says: str | None):
    matcher = Matcher(mm.graph)
    if says is None:
        assert type_of(matcher.require(mm.root, sketch).term) == type_of(MM.body)
        return
    with pytest.raises(SketchProblem, match=re.escape(says)):
        matcher.require(mm.root, sketch)


def test_members_that_let_a_variable_escape_are_left_out():
    program = parse_program("program p(xs: [f32]8) = map(fun x => let (a, b) = (1.0, x) in a, xs)")
    found = saturation(program, 2)
    for match in satisfying(found.graph, found.root, s.ANY, count=5):
        assert not ir.free_variables(match.term)


def test_text_form():
    text = "map 32 > mapGlb(0) 4 > reduceSeq 8 > mul"
    assert str(s.parse_nest(text)) == text
    for wrong, says in [("mapp 3", "meant map?"), ("map 3 > > mul", "step 2"), ("mul > map", "unknown pattern 'mul'")]:
        with pytest.raises(SyntaxProblem, match=re.escape(says)):
            s.parse_nest(wrong)
