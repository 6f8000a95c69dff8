"""Accumulators that are one of up to 16 neighbouring numbers: states of a finite automaton, in any way of its steps.

What becomes of each state is a field of a word, and a word after a word is one: what the second has in the place that
the first gives. So the state may also choose a place in an array, as that of a table of next states.

Source: Ladner and Fischer, "Parallel Prefix Computation", JACM 1980 (any finite automaton); fields of a word instead of
arrays of states as in Mytkowicz, Musuvathi and Schulte, "Data-parallel finite-state machines", ASPLOS 2014.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from lift_egraph.algebra.bounded import bounds, limits, within
from lift_egraph.algebra.cases import decided
from lift_egraph.algebra.expressions import Binary
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.residues import as_type
from lift_egraph.language import ir
from lift_egraph.language.binders import with_parts
from lift_egraph.language.types import BOOL, I64, U32, Scalar

WORDS = {U32: 3, I64: 4}  # bits of a field: a word has as many fields as one may say


class OfWords:
    """What blocks have in common whose entries are whether there is a word, and what becomes of each state as one."""

    word: Scalar

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        return BOOL, self.word

    @property
    def ones(self) -> tuple[ir.Expr, ...]:
        """No word."""
        return ir.Literal(False, BOOL), ir.Literal(0, self.word)

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        return composed(self.word, first, second)


@dataclass(frozen=True)
class Automaton(OfWords):
    """One component of an accumulator that is one of a few neighbouring numbers.

    It has what `lift_egraph.algebra.matrices.Block` has; its entries are whether there is a word, and what becomes of
    each state as one: there are other numbers beside the states, which stay as they are where there is none.
    """

    type: Scalar
    group: tuple[int, ...]
    low: int
    word: Scalar
    entries: tuple[ir.Expr, ...]
    high: int

    @property
    def why(self) -> str:
        """What the states are, in words."""
        count, bits = self.high - self.low + 1, WORDS[self.word]
        states = f"of {count} states from {self.low} to {self.high}"
        return f"{states}, and an element says what becomes of each, in {bits} bits of a word"

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What becomes of a value."""
        low, high = (ir.Literal(n, self.type) for n in (self.low, self.low + (1 << WORDS[self.word]) - 1))
        moved = ir.Call("min", (ir.Call("max", (values[0], low)), high))
        found = as_type(field_of(self.word, data[1], as_type(ir.Call("sub", (moved, low)), self.word)), self.type)
        return [ir.Call("select", (data[0], ir.Call("add", (found, low)), values[0]))]


def automaton(t: Scalar, component: int, term: ir.Expr, variable: ir.Var) -> Automaton:
    """An expression as what becomes of each of the few numbers that a variable is moved to wherever it occurs.

    Raises
    ------
    NotLinear
        If it occurs otherwise, or what it becomes is not known to be one of these numbers.
    """
    found = set(_uses(term, variable))
    if len(found) != 1 or not t.is_integer:
        raise NotLinear("it is no number of a few")
    (moved,) = found
    low, high = bounds(moved)
    word = next((w for w, bits in WORDS.items() if high - low < 1 << bits), None)
    if word is None or low + (1 << WORDS[word]) - 1 > limits(t)[1]:
        raise NotLinear("it has more than a few states")
    fields: list[ir.Expr] = []
    for state in range(low, high + 1):
        entry = decided(with_parts(term, {moved: ir.Literal(state, t)}), {})
        if not within(bounds(entry), (low, high)):
            raise NotLinear("it becomes another number than those of its states")
        field = as_type(ir.Call("sub", (entry, ir.Literal(low, t))) if low else entry, word)
        if state == high:  # so it is for the numbers behind it, which are moved to it
            copies = (low + (1 << WORDS[word]) - high) * WORDS[word]
            field = ir.Call("mul", (field, ir.Literal(((1 << copies) - 1) // ((1 << WORDS[word]) - 1), word)))
        fields.append(field)
    return Automaton(t, (component,), low, word, (ir.Literal(True, BOOL), word_of(word, fields)), high)


def _uses(term: ir.Part, variable: ir.Var) -> Iterator[ir.Expr]:
    """The parts in which a variable is moved between two literals, or itself."""
    if isinstance(term, ir.Var):
        yield from (term,) * (term == variable)
        return
    if isinstance(term, ir.Lambda):
        raise NotLinear("it is used in a function")
    match term:
        case ir.Call(
            op="min", arguments=(ir.Call(op="max", arguments=(ir.Var() as v, ir.Literal())), ir.Literal())
        ) | ir.Call(op="min", arguments=(ir.Var() as v, ir.Literal())) if v == variable:
            yield term
        case _:
            for part in ir.parts(term):
                yield from _uses(part, variable)


def word_of(word: Scalar, fields: Sequence[ir.Expr]) -> ir.Expr:
    """A word of its fields, from the lowest on."""
    first, *others = fields
    places = (ir.Literal(WORDS[word] * n, word) for n in range(1, len(fields)))
    moved = (ir.Call("shift_left", (f, place)) for f, place in zip(others, places, strict=True))
    return reduce(_or, moved, first)


def field_of(word: Scalar, data: ir.Expr, state: ir.Expr) -> ir.Expr:
    """What a word says of a state."""
    bits = WORDS[word]
    place = ir.Call("mul", (state, ir.Literal(bits, word)))
    return ir.Call("bit_and", (ir.Call("shift_right", (data, place)), ir.Literal((1 << bits) - 1, word)))


def composed(word: Scalar, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Whether there is a word, and the one of what the second says of what the first says of each state.

    This is associative: a field is a place of each other word, so that all words are functions on the numbers of their
    fields. What is no word is neutral.
    """
    bits = WORDS[word]
    mask = ir.Literal((1 << bits) - 1, word)
    fields: list[ir.Expr] = []
    for n in range(1 << bits):
        place = ir.Literal(bits * n, word)
        state = ir.Call("bit_and", (ir.Call("shift_right", (first[1], place)), mask))
        fields.append(ir.Call("shift_left", (field_of(word, second[1], state), place)))
    both = reduce(_or, fields)
    after = ir.Call("select", (first[0], both, second[1]))
    return [ir.Call("or", (first[0], second[0])), ir.Call("select", (second[0], after, first[1]))]


def _or(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Call("bit_or", (a, b))


def words_in(op: Binary) -> list[int]:
    """Where in the results of an operator stands whether there is a word, and behind it what two of them compose."""
    first, second = op.first, ir.bound_variables(op.second)
    return [
        i
        for i, v in enumerate(first[1:])
        if v.type in WORDS and list(op.results[i : i + 2]) == composed(v.type, first[i : i + 2], second[i : i + 2])
    ]


def composes_words(op: Binary) -> bool:
    """Whether an operator composes words of its first argument with others: it is a reduction's, and nothing else that
    its large expressions might be is looked for.
    """
    for i, v in enumerate(op.first[1:]):
        first, made = op.first[i : i + 2], list(op.results[i : i + 2])
        match made[1]:
            case ir.Call(op="select", arguments=(is_word, ir.Call(op="select", arguments=(_, _, word)), _)) if (
                v.type in WORDS and made == composed(v.type, first, (is_word, word))
            ):
                return True
    return False
