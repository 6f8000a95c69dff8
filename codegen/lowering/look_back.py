"""Groups that wait for what the groups before them have found: one pass over an array that is scanned.

A group takes its number when it starts, so all groups before it have started too. It publishes its total, looks back
over those of some groups before it at once until one of these has published all before it, too, and goes on.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from lift_egraph.codegen.c_ast import CExpr, LookBack
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.memory import memory
from lift_egraph.codegen.lowering.sharing import allocate, store_data
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.term_views import component
from lift_egraph.codegen.lowering.views import Access, Pairs, Value, View
from lift_egraph.codegen.names import c_name
from lift_egraph.errors import DeviceProblem, NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.nesting import GROUPS
from lift_egraph.language.types import I32, SCALAR_BYTES, Array, Scalar

WORDS = 2  # of 32 bits: the flag and the value that a group publishes
NAMES = ("own", "states", "seen_states", "last", "k", "near", "far", "from")


def published(count: Nat) -> ir.Var:
    """What the groups of a kernel publish: how many have started, and a state for each."""
    return ir.Var("published$", Array(WORDS * (count + 1), I32))


def check_look_back(term: ir.LookBack, device: Device) -> None:
    """Check that groups can look back over totals.

    Raises
    ------
    DeviceProblem
        If nothing says that groups of the device which have started go on while others wait for them.
    NestingProblem
        If the totals have no 32 bits, or nothing says how many groups there are.
    """
    t = type_of(term.initial)
    if not device.groups_progress:
        raise DeviceProblem(
            f"lookBack: groups wait for those before them, and nothing says that {device.name} goes on with these"
        )
    if not isinstance(t, Scalar) or SCALAR_BYTES[t.name] != 4:
        raise NestingProblem(f"lookBack: a total is published with its flag in 64 bits, so it has 32; not {t}")
    if size_of(term.array).constant is None or term.width.constant is None:
        raise NestingProblem("lookBack: each group has a state, but their number is open: specialise the sizes")


def look_back(lowering: State, term: ir.LookBack, acceptor: View) -> None:
    """What each group computes before it looks back, and then.

    Raises
    ------
    NestingProblem
        If there is not one group for each element.
    """
    count, width = size_of(term.array), term.width.constant or 1
    first, second, operator = map(ir.function_body, (term.first, term.second, term.operator))
    others = any(level.dimension and n != 1 for level, n in lowering.threads.items() if level.kind == "lcl")
    if count.constant != lowering.threads[GROUPS] or others:
        raise NestingProblem("lookBack: there is a group of one dimension for each element, neither more nor fewer")
    t, states = type_of(term.initial), lowering.environment[published(count)]
    assert isinstance(t, Scalar), "check_look_back has refused others"
    array, initial = lowering.consume(term.array), lowering.consume(term.initial).resolve((), ())
    with lowering.loop(count, GROUPS, ticket=(_first(states), _first(_shared(lowering, "ticket", I32)))) as index:
        lowering.bind(first.binder, Access(index, array))
        made = lowering.consume(first.body)
        operands = [allocate(lowering, name, t, "private") for name in ("before", "next", "combined")]
        with lowering.block() as combine:
            lowering.bind(operator.binder, Pairs(*operands[:2]))
            store_data(lowering, lowering.consume(operator.body), operands[2], t)
        offset = _shared(lowering, "offset", t)
        lowering.emit(
            LookBack(
                states.resolve((nat(WORDS),), ()),
                index,
                width,
                component(0, made).resolve((), ()),
                initial,
                tuple(o.resolve((), ()) for o in operands),
                tuple(combine),
                _first(_shared(lowering, "seen", I32, 2 * WORDS * width)),
                _first(_shared(lowering, "left", I32)),
                _first(offset),
                tuple(c_name(name, lowering.taken) for name in NAMES),
            )
        )
        before = lowering.name("offset", _first(offset))
        lowering.bind(second.binder, Pairs(Value(before), component(1, made)))
        lowering.produce(second.body, Access(index, acceptor))


def _shared(lowering: State, name: str, element: Scalar, length: int = 1) -> View:
    """Local memory of a group."""
    made = memory(name, Array(nat(length), element), "local", lowering.taken, origin=lowering.term)
    lowering.locals += [cell.buffer for cell in made.cells]
    return made


def _first(array: View) -> CExpr:
    return array.resolve((nat(0),), ())
