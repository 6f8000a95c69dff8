"""Ways through the C-like tree: copies of a body at several values of an index, and what is kept with a node."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.c_ast import Body, CExpr, Computed, For, IndexValue, Lane, Name, Operate, Store
from lift_egraph.codegen.c_walk import (
    buffers,
    children,
    copies,
    functions,
    loads,
    mentioned,
    names,
    statements,
    stores,
    substitute,
    walk,
    with_body,
)
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.lowering.host import lower_program
from lift_egraph.codegen.optimise import ALL, NONE, Optimisations
from lift_egraph.errors import LiftError
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.scalar import OPERATIONS
from tests.codegen.corpus.programs import numbered

OWN = nat(NatVar("get_local_id(0)", 0, 3))
VALUES: tuple[tuple[Nat, ...], ...] = (tuple(map(nat, range(4))), tuple(OWN + 4 * k for k in range(3)), (OWN, nat(0)))


def place(store: Store) -> CExpr:
    return store.place.vector if isinstance(store.place, Lane) else store.place


def bodies(optimise: Optimisations) -> list[Body]:
    found: list[Body] = []
    for number in range(40):
        try:
            host, _ = lower_program(numbered(number), DEVICES["pocl"], None, optimise)
        except LiftError:
            continue
        found += [kernel.body for kernel in host.kernels]
    return found


@pytest.mark.parametrize("optimise", [ALL, NONE], ids=["normal forms", "as written"])
def test_copies_are_what_is_substituted(optimise: Optimisations) -> None:
    loops = [s for body in bodies(optimise) for s in statements(body) if isinstance(s, For)]
    assert len(loops) > 50
    for number, loop in enumerate(loops):
        name, values = loop.variable.name, VALUES[number % len(VALUES)]
        alone = [substitute(loop.body, {name: value}) for value in values]
        together = copies(loop.body, name, values)
        assert repr(together) == repr(alone)
        for one, other in zip(together, alone, strict=True):
            assert [*names(one)] == [part.name for part in walk(other) if isinstance(part, Name)]
            assert [*map(mentioned, one)] == [*map(mentioned, other)]
            operated = [part for part in walk(other) if isinstance(part, Operate)]
            assert sum(map(functions, one)) == sum(OPERATIONS[part.op].kind == "float" for part in operated)
            assert [*stores(one)] == [*map(place, (s for s in statements(other) if isinstance(s, Store)))]
            places = (*loads(other), *stores(other))
            assert buffers(one) == {place.buffer.name for place in places if place.buffer.space == "global"}


def test_children_of_an_index_are_the_data_that_it_reads() -> None:
    value = IndexValue(OWN)
    index = nat(Computed("<data>", 0, 3, value)) + OWN
    assert (children(index), children(value)) == ((value,), (OWN,))
    assert children(OWN) == ()
    assert mentioned(index) == {"<data>", "get_local_id(0)"}


def test_what_a_statement_stores_is_found_once() -> None:
    loop = next(s for body in bodies(ALL) for s in statements(body) if isinstance(s, For) and stores(s))
    assert stores(loop) is stores(loop)


def test_a_statement_with_its_own_body_is_the_same() -> None:
    loop = next(s for body in bodies(ALL) for s in statements(body) if isinstance(s, For))
    assert with_body(loop, list(loop.body)) is loop
    assert with_body(loop, (*loop.body, loop)).body == (*loop.body, loop)
