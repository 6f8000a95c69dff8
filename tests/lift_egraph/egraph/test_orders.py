"""Orders of access as terms: what is recognised, what is equal, and how they are read back."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import evaluate, parse_program, rules
from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import new_graph, to_egg
from lift_egraph.egraph.frozen import FrozenEGraph, freeze
from lift_egraph.egraph.orders import IDENTITY, KnownOrder, index_function, order_form, reordered
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.egraph.sorts import gather, order_to_egg
from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.index_arrays import index_values
from lift_egraph.language.nat import nat
from lift_egraph.language.types import F32, Array
from lift_egraph.rules.movement import gather_in_order, order_rules
from tests.depth import in_turn
from tests.reaching import leads_to

REVERSE, STRIDE, SHIFT = (
    KnownOrder("Order_reverse"),
    KnownOrder("Order_stride", (4, 3)),
    KnownOrder("Order_shift", (5, 12)),
)
OWN = KnownOrder("Order_of", ("(5 * i) % 12",))
LENGTH = 12
XS = ir.Input("xs", Array(nat(LENGTH), F32))


def then(first: KnownOrder, second: KnownOrder) -> KnownOrder:
    return KnownOrder("Order_then", (first, second))


def inverse(order: KnownOrder) -> KnownOrder:
    return KnownOrder("Order_inverse", (order,))


def places(order: KnownOrder) -> np.ndarray:
    """Where each element comes from, by the definitions."""
    match order:
        case KnownOrder("Order_then", (first, second)):
            return places(second)[places(first)]
        case KnownOrder("Order_inverse", (permutation,)):
            return np.argsort(places(permutation))
    return index_values(index_function(order), LENGTH, "order")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("n - 1 - i", REVERSE),
        ("11 - i", REVERSE),
        ("i % 4 * 3 + i / 4", STRIDE),
        ("(n / 4) * (i % 4) + i / 4", STRIDE),
        ("(i + 5) % n", SHIFT),
        ("(i + n - 7) % 12", SHIFT),
        ("i + 0 * n", IDENTITY),
        ("i * 5 % 12", OWN),
        ("i % 4", KnownOrder("Order_of", ("i % 4",))),
        ("i / 2", KnownOrder("Order_of", ("i / 2",))),
    ],
)
def test_orders_are_recognised_however_they_are_spelt(text: str, known: KnownOrder):
    body = parse_program(f"program p(xs: [f32]12) = gather(i => {text}, xs)").body
    assert isinstance(body, ir.Gather)
    assert order_form(body.indices, nat(LENGTH)) == known
    assert (places(known) == index_values(body.indices, LENGTH, "order")).all()


@pytest.mark.parametrize("length", range(1, 13))
def test_what_is_recognised_is_the_order(length: int):
    i, n = nat("i"), nat("n")
    for a in range(1, length + 1):
        for body in ((i + a) % n, n - a - i, (i % a) * (n // a) + i // a, i * a % n):
            function = ir.IndexFunction("i", body)
            known = order_form(function, nat(length))
            found, wanted = (ir.IndexFunction("i", f.body) for f in (index_function(known), function))
            try:
                expected = index_values(wanted, length, "order")
            except SizeProblem:  # it leaves the array
                continue
            assert (index_values(found, length, "order") == expected).all(), (body, known)


def classes(*orders: KnownOrder) -> tuple[FrozenEGraph, list[int]]:
    """An e-graph with orders after the analyses, and the class of each order."""
    graph = new_graph()
    for k, order in enumerate(orders):
        graph.let(f"order{k}", gather(order_to_egg(order), to_egg(XS)))
    graph.run(settled())
    frozen = freeze(graph, {f"order{k}" for k in range(len(orders))})
    roots = (frozen.roots[f"order{k}"] for k in range(len(orders)))
    return frozen, [next(n for n in frozen.nodes[c] if n.op == "gather").classes[0] for c in roots]


@in_turn(6)
@pytest.mark.parametrize("one", [REVERSE, STRIDE, SHIFT, OWN], ids=str)
@pytest.mark.parametrize("other", [REVERSE, STRIDE, SHIFT, OWN], ids=str)
def test_equal_orders_are_in_one_class_and_others_are_not(one: KnownOrder, other: KnownOrder):
    both = then(one, other)
    orders = [
        *(one, other, both, inverse(both), IDENTITY, then(both, inverse(both)), then(inverse(both), both)),
        *(then(inverse(other), inverse(one)), inverse(inverse(one)), then(one, IDENTITY), then(IDENTITY, one)),
        *(inverse(one), then(then(other, one), both)),
    ]
    graph, owners = classes(*orders)
    for order, owner in zip(orders, owners, strict=True):
        assert (places(graph.order(owner)) == places(order)).all()
    assert owners[4] == owners[5] == owners[6]
    assert owners[3] == owners[7]
    assert owners[0] == owners[8] == owners[9] == owners[10]


def test_shifts_and_strides_have_forms_of_their_own():
    shifts = then(SHIFT, KnownOrder("Order_shift", (9, 12)))
    graph, owners = classes(shifts, inverse(SHIFT), inverse(STRIDE), then(STRIDE, KnownOrder("Order_stride", (3, 4))))
    assert [graph.order(c) for c in owners] == [
        KnownOrder("Order_shift", (2, 12)),
        KnownOrder("Order_shift", (7, 12)),
        KnownOrder("Order_stride", (3, 4)),
        IDENTITY,
    ]


@pytest.mark.parametrize("order", [then(OWN, inverse(STRIDE)), inverse(then(OWN, SHIFT)), inverse(OWN)], ids=str)
@pytest.mark.parametrize("backwards", [False, True])
def test_orders_are_read_as_gathers_and_scatters(order: KnownOrder, backwards: bool):
    term = reordered(order, XS, backwards=backwards)
    xs = np.arange(LENGTH, dtype=np.float32)
    wanted = np.argsort(places(order)) if backwards else places(order)
    assert (evaluate(term, {"xs": xs}) == xs[wanted]).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gather(i => i % 2 * 6 + i / 2, gather(i => i % 6 * 2 + i / 6, xs))", "xs"),
        ("scatter(i => (i + 1) % n, xs)", "gather(i => (i + 11) % 12, xs)"),
        (
            "scatter(i => i * 5 % n, scatter(i => i * 7 % n, gather(i => i * 7 % n, xs)))",
            "scatter(i => i * 5 % 12, xs)",
        ),
        ("gather(reverse, gather(i => (i + 3) % n, gather(i => (i + 9) % n, gather(i => 11 - i, xs))))", "xs"),
    ],
)
def test_reordered_twice_is_reordered_once(one: str, other: str):
    start, wanted = (parse_program(f"program p(xs: [f32]12) = {body}").body for body in (one, other))
    phase = Phase("orders", order_rules, (*rules.simplification, gather_in_order), limits=Limits(iterations=6))
    assert leads_to(start, phase, wanted)
