"""``iterate``: the same function again and again, on an array that may shrink.

Source: 000 §4.3.5, Listing 4.6 (double buffering in local memory).
"""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.codegen.c_ast import Body, Buffer, For, Point, SetIndex, Swap
from lift_egraph.codegen.lowering.sharing import allocate
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.views import Memory, View
from lift_egraph.codegen.names import c_name
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names
from lift_egraph.language.check import array_type, iterate_step, iterate_steps, size_of
from lift_egraph.language.ir import SEQ
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.sizes import substitute_nats
from lift_egraph.language.types import Array

UNROLLED_TERMS = 256  # subterms that the unrolled steps of one iterate may have together


def runs_in_local_memory(term: ir.Iterate) -> bool:
    """Whether the work-items of a group take part in each step."""
    return any(isinstance(t, ir.MapLevel) and t.level.kind == "lcl" for t in ir.subterms(term.function))


def step_by_step(lowering: State, term: ir.Iterate) -> View:
    """Each step computed into new memory, from the previous one; many that keep the length in turns into two."""
    is_long = term.times > 2 and term.times * sum(1 for _ in ir.subterms(term.function)) > UNROLLED_TERMS
    length = size_of(term.array)
    if is_long and size_of(iterate_step(term, length).body) == length:
        return in_turns(lowering, term)
    view = lowering.consume(term.array)
    for step in iterate_steps(term):
        made: ir.Lambda = unique_names(step, lowering.taken)
        lowering.bind(made.binder, view)
        view = lowering.consume(made.body)
    return view


def in_turns(lowering: State, term: ir.Iterate) -> View:
    """A loop that takes two steps at once, from one array to the other and back."""
    arrays = [lowering.allocate_default("tmp", term, part, None) for part in (term.array, term)]
    lowering.produce(term.array, arrays[0])

    def step(source: View, target: View) -> None:
        made: ir.Lambda = unique_names(iterate_step(term, size_of(term.array)), lowering.taken)
        lowering.bind(made.binder, source)
        lowering.produce(made.body, target)

    with lowering.loop(nat(term.times // 2)):
        step(arrays[0], arrays[1])
        step(arrays[1], arrays[0])
    if term.times % 2:
        step(arrays[0], arrays[1])
    return arrays[term.times % 2]


def double_buffered(lowering: State, term: ir.Iterate) -> View:
    """The steps, one after the other, read from one local buffer and write to the other.

    Raises
    ------
    NestingProblem
        If the function takes the array apart.
    """
    t = array_type(term.array, "iterate")
    if term.times == 0:
        return lowering.materialise(term.array, "local")
    lengths = _lengths(term)
    whole = allocate(lowering, "tmp", Array(_longest(lengths[::2]), t.element), "local")
    assert isinstance(whole, Memory)
    first = whole.resized(t.size)
    lowering.produce(term.array, first)
    if not isinstance(term.function.binder, ir.Var):
        raise NestingProblem("iterate: the function of an iterate over local memory takes the array as one variable")
    second = allocate(lowering, "tmp", Array(_longest(lengths[1::2]), t.element), "local")
    assert isinstance(second, Memory)
    if t.size.constant is not None and term.times * sum(1 for _ in ir.subterms(term.function)) <= UNROLLED_TERMS:
        unrolled(lowering, term, first, second)
    else:
        looped(lowering, term, first, second)
    return (second if term.times % 2 else first).resized(size_of(term))


def unrolled(lowering: State, term: ir.Iterate, first: Memory, second: Memory) -> None:
    """Every step with its own length as a number: no pointers to exchange, and guards that compilers can count."""
    read, write = first.resized(size_of(term.array)), second
    for step in iterate_steps(term):
        made: ir.Lambda = unique_names(step, lowering.taken)
        assert isinstance(made.binder, ir.Var)
        lowering.environment[made.binder] = read
        write = write.resized(size_of(made.body))
        lowering.produce(made.body, write)
        read, write = write, read


def looped(lowering: State, term: ir.Iterate, first: Memory, second: Memory) -> None:
    """A loop whose pointers and length change with each step."""
    start = size_of(term.array)
    ranges = [length.range for length in _lengths(term)[:-1]]
    lows, highs = [low or 0 for low, _ in ranges], [high for _, high in ranges if high is not None]
    size = NatVar(c_name(term.size, lowering.taken), min(lows), max(highs) if len(highs) == len(ranges) else None)
    # the bound of a mapLcl inside is checked at run time, so one text serves all sizes
    body: ir.Lambda = unique_names(substitute_nats(term.function, {term.size: nat(size)}), lowering.taken)
    next_size = size_of(body.body)
    once = next_size.substitute({size.name: start})
    assert isinstance(body.binder, ir.Var)
    pairs = [
        (_pointer(lowering, "in", a.buffer, b.buffer), _pointer(lowering, "out", a.buffer, b.buffer), a, b)
        for a, b in zip(first.cells, second.cells, strict=True)
    ]
    read = Memory(tuple(replace(a, buffer=r, sizes=(nat(size), *a.sizes[1:])) for r, _, a, _ in pairs))
    write = Memory(tuple(replace(a, buffer=w, sizes=(next_size, *a.sizes[1:])) for _, w, a, _ in pairs))
    lowering.emit(SetIndex(size, start, declare=True))
    for r, w, a, b in pairs:
        lowering.emit(Point(r, w, a.buffer, b.buffer))
    lowering.environment[body.binder] = read
    counter = NatVar(c_name("iter", lowering.taken), 0, term.times - 1)
    with lowering.block() as statements:
        lowering.loops.append((SEQ, nat(counter), nat(term.times)))
        lowering.produce(body.body, write)
        lowering.loops.pop()
        if once != start:
            lowering.emit(SetIndex(size, next_size, declare=False))
        for r, w, a, b in pairs:
            lowering.emit(Swap(r, w, a.buffer, b.buffer))
    steps: Body = tuple(statements)
    lowering.emit(For(counter, nat(term.times), SEQ, 1, steps))


def _lengths(term: ir.Iterate) -> list[Nat]:
    """The lengths of the array before the first step and after each, up to the first step that keeps it."""
    lengths = [size_of(term.array)]
    while len(lengths) <= term.times and lengths[-2:-1] != lengths[-1:]:
        lengths.append(size_of(iterate_step(term, lengths[-1]).body))
    return lengths


def _longest(lengths: list[Nat]) -> Nat:
    return max(lengths, key=lambda n: n.range[1] or 0)


def _pointer(lowering: State, name: str, first: Buffer, second: Buffer) -> Buffer:
    return replace(first, name=c_name(name, lowering.taken), targets=(first.name, second.name))
