"""Groups that wait for what the groups before them have found: one pass over an array that is scanned.

A group takes its number when it starts, so all groups before it have started too. It publishes its total, looks back
over those of some groups before it at once until one of these has published all before it, too, and goes on.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from lift_egraph.codegen.c_ast import CExpr, LookBack
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.memory import memory
from lift_egraph.codegen.lowering.sharing import allocate, store_data
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.term_views import component
from lift_egraph.codegen.lowering.views import Access, Choices, Pairs, View
from lift_egraph.codegen.names import c_name
from lift_egraph.errors import DeviceProblem, NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.nesting import GROUPS
from lift_egraph.language.types import I32, Array, DataType, Scalar, bytes_of, leaves

FLAGGED = 2  # words of 32 bits in memory for each of a total: it and its flag
NAMES = ("states", "seen_states", "last", "k", "from")


def words_of(t: DataType) -> int | None:
    """How many words of 32 bits a total has; None for arrays and vectors."""
    of_scalars = all(isinstance(leaf, Scalar) and not around for _, around, leaf in leaves(t))
    return sum(-(-bytes_of(leaf) // 4) for _, _, leaf in leaves(t)) if of_scalars else None


def published(count: Nat, t: DataType) -> ir.Var:
    """What the groups of a kernel publish: how many have started, and a state for each, the words of a total."""
    return ir.Var("published$", Array(FLAGGED * (nat(words_of(t) or 1) * count + 1), I32))


def check_look_back(term: ir.LookBack, device: Device) -> None:
    """Check that groups can look back over totals.

    Raises
    ------
    DeviceProblem
        If nothing says that groups of the device which have started go on while others wait for them.
    NestingProblem
        If the totals are no scalars or tuples of them, or nothing says how many groups there are.
    """
    t = type_of(term.initial)
    if not device.groups_progress:
        raise DeviceProblem(
            f"lookBack: groups wait for those before them, and nothing says that {device.name} goes on with these"
        )
    if words_of(t) is None:
        raise NestingProblem(f"lookBack: a total is published word by word, so it has no arrays or vectors; not {t}")
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
    t = type_of(term.initial)
    states, words = lowering.environment[published(count, t)], words_of(t)
    assert words is not None, "check_look_back has refused others"
    choices = [c for c, _, _ in leaves(t)]
    array, initial = lowering.consume(term.array), lowering.consume(term.initial)
    with lowering.loop(count, GROUPS, ticket=(_first(states), _first(_shared(lowering, "ticket", I32)))) as index:
        lowering.bind(first.binder, Access(index, array))
        made = lowering.consume(first.body)
        operands = [allocate(lowering, name, t, "private") for name in ("before", "next", "combined")]
        with lowering.block() as combine:
            lowering.bind(operator.binder, Pairs(*operands[:2]))
            store_data(lowering, lowering.consume(operator.body), operands[2], t)
        offset = Access(nat(0), _shared(lowering, "offset", t))

        def named(name: str, number: int) -> tuple[str, ...]:
            return tuple(c_name(name, lowering.taken) for _ in range(number))

        lowering.emit(
            LookBack(
                states.resolve((nat(FLAGGED),), ()),
                index,
                width,
                _scalars(component(0, made), choices),
                _scalars(initial, choices),
                tuple(scalar for operand in operands for scalar in _scalars(operand, choices)),
                tuple(combine),
                _first(_shared(lowering, "seen", I32, 2 * FLAGGED * words * width)),
                _first(_shared(lowering, "left", I32)),
                _scalars(offset, choices),
                tuple(c_name(name, lowering.taken) for name in NAMES),
                *(named("own", len(choices)), named("near", words), named("far", words)),
            )
        )
        before = lowering.named("offset", offset, t)
        lowering.bind(second.binder, Pairs(before, component(1, made)))
        lowering.produce(second.body, Access(index, acceptor))


def _shared(lowering: State, name: str, element: DataType, length: int = 1) -> View:
    """Local memory of a group."""
    made = memory(name, Array(nat(length), element), "local", lowering.taken, origin=lowering.term)
    lowering.locals += [cell.buffer for cell in made.cells]
    return made


def _first(array: View) -> CExpr:
    return array.resolve((nat(0),), ())


def _scalars(value: View, choices: Sequence[Choices]) -> tuple[CExpr, ...]:
    return tuple(value.resolve((), path) for path in choices)
