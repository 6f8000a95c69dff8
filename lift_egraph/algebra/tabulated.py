"""Folds of automata with few states over few elements, by tables of words.

A word says of each state what it becomes by an element. A state is the place of its field in a word, so that a step
shifts the word of its element by the state: the low bits of what is left are the next state, and nothing masks those
above, as only the low bits of a shift count. With up to 10 states the fields have the 6 bits of a shift, with up to 16
they have 4, which are taken times 4. What a chunk of elements makes of each state is found by a step for each.

Source: Vognsen, "Shift-based DFAs", 2022; Mytkowicz, Musuvathi and Schulte, "Data-parallel finite-state machines",
ASPLOS 2014 (all states at once); Ladner and Fischer, "Parallel Prefix Computation", JACM 1980.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from lift_egraph.algebra.bounded import Interval, bounds, limits
from lift_egraph.algebra.cases import decided
from lift_egraph.algebra.equations import leaves_of_value
from lift_egraph.algebra.expressions import Binary, binder_of, fold_step, packed, right_nested
from lift_egraph.algebra.reached import State, becoming
from lift_egraph.algebra.residues import as_type, kept
from lift_egraph.algebra.states import code_of
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import domain, type_of
from lift_egraph.language.computed_places import looked_up_in
from lift_egraph.language.nat import nat
from lift_egraph.language.types import BOOL, I32, I64, U8, Array, Pair, Scalar

MOST_ELEMENTS = 256
FIELDS = {10: (6, 1), 16: (4, 4)}  # for up to so many states: the bits of a field, and what they are taken times


@dataclass(frozen=True)
class Tabulated:
    """A fold's operator f from a value z on as an automaton with a table of words.

    Attributes
    ----------
    words
        The array of the words of all elements.
    step
        What an element x makes of the place of a state: ``step (words, (place, x))``.
    start
        The place of z.
    value
        The state at a place: ``value (step (words, (place, x))) = f (value place, x)``, and ``value start = z``.
    places
        Those of all states, as a tuple.
    steps
        What an element makes of all of them: ``steps (words, (places, x))``.
    found
        What became of a place, among what became of all: ``found (place, places)``.
    """

    words: ir.Expr
    step: ir.Lambda
    start: ir.Expr
    value: ir.Lambda
    places: ir.Expr
    steps: ir.Lambda
    found: ir.Lambda


@lru_cache(maxsize=1024)
def tabulated_of(function: ir.Function, initial: ir.Expr) -> Tabulated | None:
    """A fold's operator from an initial value on with a table; None if its states or the elements are not known to be
    few.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program("program p(xs: [u8]N) = reduceSeq(fun (s, x) => if x == 0 then (s + 1) % 3 else s, 0, xs)")
    >>> found = tabulated_of(fold.body.operator, fold.body.initial)
    >>> print(print_term(found.step.body))
    shift_right(words[to_i32(x)], place)
    """
    op, z = fold_step(function, both=True), leaves_of_value(initial)
    if op is None or z is None or ir.free_variables(function) or not all(isinstance(e, ir.Literal) for e in z):
        return None
    if [v.type for v in op.first] != [type_of(e) for e in z] or any(not _has_few(v.type) for v in op.first):
        return None
    elements = ir.bound_variables(op.second)
    if len(elements) != 1 or (between := _between(op, x := elements[0])) is None:
        return None
    first = tuple(bool(e.value) if e.type == BOOL else int(e.value) for e in z if isinstance(e, ir.Literal))
    made = becoming(op.first, op.results, [first])
    if made is None or len(made) < 2:
        return None
    fields = next((f for most, f in FIELDS.items() if len(made) <= most), None)
    argument = domain(function)
    if fields is None or not isinstance(argument, Pair):
        return None
    states = dict(sorted(made.items()))
    return _tabulated(op, states, list(states).index(first), x, between, fields, argument)


def _tabulated(
    op: Binary,
    states: dict[State, list[ir.Expr]],
    start: int,
    x: ir.Var,
    between: Interval,
    fields: tuple[int, int],
    argument: Pair,
) -> Tabulated:
    bits, times = fields
    assert isinstance(x.type, Scalar)
    size, numbers = between[1] - between[0] + 1, {state: n for n, state in enumerate(states)}
    ways = (
        _number([decided(substitute(e, dict(zip(op.first, _literals(op, s), strict=True))), {}) for e in b], numbers)
        for s, b in states.items()
    )
    unit = bits // times  # of a state's number, in its field
    parts = [ir.Call("mul", (e, ir.Literal(unit << bits * n, I64))) for n, e in enumerate(ways)]
    i = ir.Var("i", I32)
    element = as_type(i, x.type)
    if between[0]:
        element = ir.Call("add", (element, ir.Literal(between[0], x.type)))
    word = substitute(reduce(_add, parts), {x: element})
    words = ir.Map(ir.Lambda(i, word), ir.Generate(nat(size), ir.Lambda(i, i)))

    table, place, own = ir.Var("words", Array(nat(size), I64)), ir.Var("place", I64), ir.Var("x", argument.second)
    found = looked_up_in(table, _place_of(own, between))
    whole = [ir.Literal(bits * n, I64) for n in range(len(states))]
    held = [ir.Var(f"place{n}", I64) for n in range(len(states))]
    given = ir.Var("word", I64)
    all_steps = right_nested([_moved(given, h, times) for h in held])
    chosen: ir.Expr = held[-1]
    masked = ir.Call("bit_and", (place, ir.Literal(63, I64)))
    for n in reversed(range(len(held) - 1)):
        chosen = ir.Call("select", (ir.Call("eq", (masked, ir.Literal(bits * n, I64))), held[n], chosen))
    shape = argument.first
    values = packed([_component(place, [s[k] for s in states], v, fields) for k, v in enumerate(op.first)], shape)
    return Tabulated(
        words,
        ir.Lambda(ir.PairBinder(table, ir.PairBinder(place, own)), _moved(found, place, times)),
        ir.Literal(bits * start, I64),
        ir.Lambda(place, values),
        right_nested(whole),
        ir.Lambda(
            ir.PairBinder(table, ir.PairBinder(binder_of(held), own)), ir.Apply(ir.Lambda(given, all_steps), found)
        ),
        ir.Lambda(ir.PairBinder(place, binder_of(held)), chosen),
    )


def _place_of(x: ir.Var, between: Interval) -> ir.Expr:
    """The place of an element's word: a place outside of an array is moved to the nearest inside."""
    low, _ = between
    if not low and x.type in (U8, I32):
        return as_type(x, I32)
    assert isinstance(x.type, Scalar)
    moved = kept(x, between)
    return as_type(ir.Call("sub", (moved, ir.Literal(low, x.type))) if low else moved, I32)


def _moved(word: ir.Expr, place: ir.Expr, times: int) -> ir.Expr:
    """The place that a word has for a state's, with other bits above it."""
    found = ir.Call("shift_right", (word, place))
    if times == 1:
        return found
    return ir.Call("mul", (ir.Call("bit_and", (found, ir.Literal(15, I64))), ir.Literal(times, I64)))


def _component(place: ir.Expr, values: Sequence[int | bool], v: ir.Var, fields: tuple[int, int]) -> ir.Expr:
    """A component of the state at a place: a field of a word that has all of them, and the least added to it; one after
    the other, where they are far apart.
    """
    bits, t, least = fields[0], v.type, int(min(values))
    assert isinstance(t, Scalar)
    if max(values) - least < 1 << bits and (max(values) - least) << bits * (len(values) - 1) < 1 << 63:
        word = ir.Literal(sum((int(value) - least) << bits * n for n, value in enumerate(values)), I64)
        found = ir.Call("bit_and", (ir.Call("shift_right", (word, place)), ir.Literal((1 << bits) - 1, I64)))
        if t == BOOL:
            return ir.Call("ne", (found, ir.Literal(0, I64))) if least == 0 else ir.Literal(True, BOOL)
        return ir.Call("add", (as_type(found, t), ir.Literal(least, t))) if least else as_type(found, t)
    masked = ir.Call("bit_and", (place, ir.Literal(63, I64)))
    made: ir.Expr = ir.Literal(values[-1], t)
    for n in reversed(range(len(values) - 1)):
        here = ir.Call("eq", (masked, ir.Literal(bits * n, I64)))
        made = ir.Call("select", (here, ir.Literal(values[n], t), made))
    return made


def _number(terms: Sequence[ir.Expr], numbers: dict[State, int]) -> ir.Expr:
    """The number of the state that expressions give together."""
    states = list(numbers)
    if len(terms) == 1 and type_of(terms[0]) != BOOL and int(states[-1][0]) - int(states[0][0]) == len(states) - 1:
        least, whole = int(states[0][0]), as_type(terms[0], I64)
        return ir.Call("sub", (whole, ir.Literal(least, I64))) if least else whole
    return code_of(terms, numbers, I64, {})


def _between(op: Binary, x: ir.Var) -> Interval | None:
    """The few numbers that an element is: those of its type, or those that it is moved between wherever it occurs."""
    assert isinstance(x.type, Scalar)
    if not x.type.is_integer:
        return None
    uses = {bounds(moved) for r in op.results for moved in _uses(r, x)}
    found = next(iter(uses)) if len(uses) == 1 else None
    if found is None or found[1] - found[0] >= MOST_ELEMENTS:
        found = limits(x.type)
    return found if found[1] - found[0] < MOST_ELEMENTS else None


def _uses(term: ir.Part, x: ir.Var) -> Iterator[ir.Expr]:
    """The parts in which an element is moved between two numbers, or itself."""
    match term:
        case ir.Var():
            yield from (term,) * (term == x)
        case ir.Call(op="min", arguments=(ir.Call(op="max", arguments=(ir.Var() as v, ir.Literal())), ir.Literal())) | (
            ir.Call(op="min" | "max", arguments=(ir.Var() as v, ir.Literal()))
        ) if v == x:
            yield term
        case _:
            for part in ir.parts(term):
                yield from _uses(part, x)


def _literals(op: Binary, state: State) -> list[ir.Expr]:
    return [ir.Literal(value, v.type) for v, value in zip(op.first, state, strict=True) if isinstance(v.type, Scalar)]


def _has_few(t: object) -> bool:
    return isinstance(t, Scalar) and (t == BOOL or t.is_integer)


def _add(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Call("add", (a, b))
