"""Ways through the C-like tree: copies of a body at several values of an index, and what is kept with a node."""

from __future__ import annotations

from functools import cache

import pytest

from lift_egraph.codegen.c_ast import Barrier, Block, Body, CExpr, Computed, For, IndexValue, Lane, Name, Operate, Store
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
    waits,
    walk,
    with_body,
)
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.lowering.host import lower_program
from lift_egraph.codegen.optimise import ALL, NONE, Optimisations
from lift_egraph.codegen.passes.common_indices import share_indices
from lift_egraph.codegen.passes.powers import whole_powers
from lift_egraph.codegen.passes.sines import pair_sines
from lift_egraph.codegen.passes.steps import stepped
from lift_egraph.errors import LiftError
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.scalar import OPERATIONS
from tests.codegen.corpus.programs import numbered

OWN = nat(NatVar("get_local_id(0)", 0, 3))
VALUES: tuple[tuple[Nat, ...], ...] = (tuple(map(nat, range(4))), tuple(OWN + 4 * k for k in range(3)), (OWN, nat(0)))


def place(store: Store) -> CExpr:
    return store.place.vector if isinstance(store.place, Lane) else store.place


@cache
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


def test_a_statement_waits_where_a_barrier_is_in_it() -> None:
    barrier, loop = Barrier(("local",)), next(s for s in bodies(ALL)[0] if isinstance(s, For))
    assert waits(barrier)
    assert not waits(loop)
    assert waits(Block((loop, with_body(loop, (Block((barrier,)),)))))


def test_passes_keep_the_statements_that_they_do_not_change() -> None:
    kept, steps = 0, 0
    for body in bodies(ALL):
        if not any(map(functions, body)):
            assert whole_powers(body) is pair_sines(body, set()) is body
        for made in (stepped(body), share_indices(body, set())):
            if len(made) == len(body):
                assert all(new is old or new != old for new, old in zip(made, body, strict=True))
                kept += made == body
                steps += made != body
    assert kept > 20
    assert steps > 5
