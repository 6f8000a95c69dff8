"""Terms go into an e-graph and come back the same."""

from __future__ import annotations

import random

import egglog
import pytest
from hypothesis import given, settings

from lift_egraph.api import alpha_equal, equal_values, evaluate, parse_program, random_inputs, type_of
from lift_egraph.egraph.analyses import analyses
from lift_egraph.egraph.encoding import MAXIMAL_DEPTH, check_depth, new_graph, to_egg
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.read_back import from_egg
from lift_egraph.egraph.rule import together
from lift_egraph.egraph.sorts import tile
from lift_egraph.errors import LiftError, SizeProblem, TypeProblem
from lift_egraph.language import build as b, ir
from lift_egraph.language.build import F32, Input, array
from lift_egraph.rules.movement import map_backwards, map_strided
from tests.depth import depth
from tests.lift_egraph.language.test_signature import frozen
from tests.strategies import programs

XS = Input("xs", array(F32, 8))


def there_and_back(term: ir.Expr) -> ir.Expr:
    graph = frozen(term)
    choice = MemberSampler(graph).sample(graph.roots["root"], random.Random(0))
    assert choice is not None
    assert graph.type_of(graph.roots["root"]) == type_of(term)
    return from_egg(graph, choice)


def test_each_component_has_its_own_type():
    for body in ("map(fun p => get(0, p), xs)", "map(fun p => get(1, p), xs)", "map(fun (a, b) => (b, a), xs)"):
        there_and_back(parse_program(f"program p(xs: [(f32, i32)]4) = {body}").body)


ROWS = Input("rows", array(F32, 4, 6))
SOME = {
    "gather": b.gather(b.reverse, XS),
    "gather by stride": b.gather(b.stride(2), XS),
    "scatter": b.scatter(lambda i, n: (i + 1) % n, XS),
    "slide": b.slide(3, 1, XS),
    "slice, concat": b.concat(b.slice_(2, 3, XS), XS),
    "pad": b.pad(1, 2, "mirror", XS),
    "pad with a constant": b.pad(1, 2, b.constant(-0.5), XS),
    "lookup": b.lookup(b.generate(3, lambda i: i * 2), XS),
    "at, fill": b.fill(3, b.at(7, XS)),
    "let and pairs": b.map_(lambda x: b.let(b.tuple_(x, 1.0), lambda p, q: p * q), XS),
    "pair patterns": b.map_(lambda x, y: x + y, b.zip_(XS, XS)),
    "known operators": b.reduce_(b.max_, float("-inf"), XS),
    "any operator": b.reduce_(lambda x, y: x * y - y, 1.0, XS),
    "lifted operators": b.reduce_(lambda r, s: b.map_(b.add, b.zip_(r, s)), b.fill(6, 0.0), ROWS),
    "levels": b.map_wrg(1, b.map_lcl(1, b.map_seq(b.neg)), b.split(2, ROWS)),
    "memory": b.to_global(b.map_glb(0, lambda x: b.to_private(x + 1.0), XS)),
    "tiles": b.reduce_seq(lambda acc, x: acc + b.to_local_twice(b.to_local_ahead(x)), 0.0, XS),
    "vectors": b.as_scalar(b.map_(b.vectorize(4, lambda x: x * x), b.as_vector(4, XS))),
    "a number beside vectors": b.map_(lambda v: b.max_(2.0 * v, v * 3.0), b.as_vector(4, XS)),
    "dot": b.map_(lambda v, w: b.dot(v, w) * b.dot(w, w), b.zip_(b.as_vector(4, XS), b.as_vector(4, XS))),
    "loops": b.reduce_seq(lambda acc, x: acc + x * x, 0.0, XS),
    "scans": b.scan(b.max_, 0.0, b.scan_seq(lambda acc, x: acc * x - x, 1.0, XS)),
    "exclusive scans": b.scan_exclusive(b.max_, 0.0, b.scan_exclusive_seq(lambda acc, x: acc * x - x, 1.0, XS)),
    "ranges": b.reduce_range(b.max_, 0.0, 1, b.to_i32(b.reduce_range_seq(lambda a, x: a - x, 0.5, 0, 3, XS)), XS),
    "by index": b.reduce_by_index(
        b.add, b.reduce_by_index_seq(b.to_i32, lambda acc, x: acc - x, b.fill(3, 0.0), XS), b.fill(8, 1), XS
    ),
    "at once": b.reduce_by_index_glb(b.to_i32, lambda acc, x: acc - x, b.fill(3, 0.0), XS),
    "in memory": b.reduce_by_index_atomic(b.to_i32, lambda acc, x: acc + x, b.fill(3, 0.0), XS),
    "look back": b.look_back(4, lambda x: (x * x, x), b.max_, 0.0, lambda before, x: before - x, XS),
    "by sub-groups": b.reduce_sub(4, b.max_, 0.0, XS),
    "transpose, join": b.join(b.transpose(ROWS)),
    "calls": b.map_(lambda x: b.select(x < 0.0, b.sqrt(-x), b.pow_(x, 2.0)), XS),
    "halving": b.iterate(3, b.map_(b.reduce_(b.add, 0.0)) @ b.split(2), XS),
    "halving with an outer variable": b.map_(lambda y: b.iterate(2, b.map_(b.reduce_(b.add, y)) @ b.split(2), XS), XS),
    "sizes of steps": b.iterate(3, lambda h: b.map_(lambda p: b.at(1, p) / type_of(h).size, b.split(2, h)), XS),
}


@pytest.mark.parametrize("term", SOME.values(), ids=SOME)
def test_round_trip_of_every_pattern(term):
    assert alpha_equal(there_and_back(term), term)


def test_an_iterate_that_keeps_the_length_comes_back_at_that_length():
    term = b.iterate(2, b.map_(lambda x: x + x), XS)
    back = there_and_back(term)
    assert isinstance(back, ir.Iterate)
    inputs = random_inputs(ir.Program("p", (XS,), term))
    assert equal_values(evaluate(term, inputs), evaluate(back, inputs))


def test_every_node_is_tried():
    used = {type(t) for term in SOME.values() for t in ir.subterms(term)}
    nodes = {cls for cls in vars(ir).values() if isinstance(cls, type) and issubclass(cls, ir.Expr)}
    assert nodes - used == {ir.Expr, ir.Component}


def test_a_component():
    pair = Input("pair", type_of(ir.MakePair(XS, XS)))
    assert alpha_equal(there_and_back(b.get(1, pair)), b.get(1, pair))


@settings(max_examples=depth(25, 1000))
@given(programs(low_level=True, steps=4))
def test_round_trip_of_random_programs(program):
    """Values are compared too, for an iterate comes back at the length of its argument."""
    try:
        check_depth(program.body)
    except LiftError:
        return
    back = there_and_back(program.body)
    assert type_of(back) == type_of(program.body)
    if not any(isinstance(t, ir.Iterate) for t in ir.subterms(program.body)):
        assert alpha_equal(back, program.body)
    inputs = random_inputs(program)
    assert equal_values(evaluate(program.body, inputs), evaluate(back, inputs))


@pytest.mark.parametrize(
    ("left", "right"),
    [("reverse", "i => 7 - i"), ("stride(4)", "i => i / 2 + (i % 2) * 4"), ("i => (i + 8) % n", "j => j")],
)
def test_equal_orders_are_one_node(left, right):
    one, other = (
        parse_program(f"program p(xs: [f32]8) = gather({order}, scatter({order}, xs))").body for order in (left, right)
    )
    assert str(to_egg(one)) == str(to_egg(other))
    assert alpha_equal(one, other)


def test_an_order_of_an_ill_typed_array_is_compared_as_it_is_written():
    gathered = ir.Gather(b.reverse, ir.Join(XS))
    assert alpha_equal(gathered, gathered)
    assert not alpha_equal(gathered, ir.Gather(b.stride(2), ir.Join(XS)))


@pytest.mark.parametrize(("length", "stride"), [(8, 4), (8, 2), (24, 12), (1000, 100)])
def test_rules_spell_orders_as_programs_do(length, stride):
    graph = new_graph()
    xs = Input("xs", array(F32, length))
    root = graph.let("root", to_egg(b.map_(b.abs_, xs)))
    graph.register(tile(egglog.i64(length), egglog.i64(stride)))
    graph.run(together(analyses).saturate())
    graph.run(together((map_strided.ruleset, map_backwards.ruleset)) * 2)  # they first mark the array
    for order in (b.stride(length // stride), b.reverse):
        graph.check(egglog.eq(root).to(to_egg(b.scatter(order, b.map_(b.abs_, b.gather(order, xs))))))


def test_open_sizes_are_refused():
    with pytest.raises(SizeProblem, match="concrete sizes"):
        to_egg(b.join(b.split(2, Input("xs", array(F32, "N")))))


def test_deep_terms_are_refused():
    term: ir.Expr = XS
    for _ in range(MAXIMAL_DEPTH):
        term = ir.Gather(b.reverse, term)
    with pytest.raises(TypeProblem, match="deep"):
        check_depth(term)
