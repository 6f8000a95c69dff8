"""Components of an accumulator that are together one of up to 16 values: states of a finite automaton.

Where an operator only asks which of a few values they are, as `lift_egraph.algebra.reached` makes it do, or where they
are truth values, an element says what becomes of each state, in a word (`lift_egraph.algebra.automata`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from lift_egraph.algebra.automata import WORDS, OfWords, field_of, word_of
from lift_egraph.algebra.bounded import Known, where_it_holds
from lift_egraph.algebra.cases import conjuncts, decided, undecided
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.reached import State, becoming, is_state, values_of
from lift_egraph.algebra.residues import as_type
from lift_egraph.language import ir
from lift_egraph.language.types import BOOL, Scalar

MOST_BOOLS = 4


@dataclass(frozen=True)
class States(OfWords):
    """Components of an accumulator that are one of a few states, of which all other values behave like one.

    It has what `lift_egraph.algebra.matrices.Block` has; its entries are whether there is a word, and what becomes of
    each state as one.
    """

    group: tuple[int, ...]
    scalars: tuple[Scalar, ...]
    states: tuple[State, ...]
    others: int  # the place of the state that other values behave like
    word: Scalar
    entries: tuple[ir.Expr, ...]

    @property
    def why(self) -> str:
        """What the states are, in words."""
        shown = ", ".join(_shown(s) for s in self.states)
        return f"of {len(self.states)} states, {shown}, and an element says what becomes of each, in a word"

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What becomes of the values."""
        is_word, word = data
        code: ir.Expr = ir.Literal(self.others, self.word)
        for n, state in reversed(list(enumerate(self.states))):
            if n != self.others:
                code = ir.Call("select", (is_state(values, state), ir.Literal(n, self.word), code))
        found = field_of(self.word, word, code)
        return [ir.Call("select", (is_word, self._value(found, i), v)) for i, v in enumerate(values)]

    def valid(self, data: Sequence[ir.Expr]) -> list[ir.Expr]:
        """Any word as one that says of each state that it becomes one of the states, as those of elements and their
        products do.
        """
        is_word, word = data
        count = ir.Literal(len(self.states), self.word)
        places = (ir.Literal(n, self.word) for n in range(len(self.states)))
        fields = [ir.Call("mod", (field_of(self.word, word, place), count)) for place in places]
        return [is_word, word_of(self.word, fields)]

    def _value(self, code: ir.Expr, place: int) -> ir.Expr:
        """A component of the state of a number: a field of a word that has all of them, and the least added to it; one
        after the other, where they are far apart.
        """
        t, values = self.scalars[place], [int(state[place]) for state in self.states]
        least, bits = min(values), WORDS[self.word]
        if max(values) - least >= 1 << bits:
            *others, last = (ir.Literal(v, t) for v in values)
            found: ir.Expr = last
            for n, value in reversed(list(enumerate(others))):
                found = ir.Call("select", (ir.Call("eq", (code, ir.Literal(n, self.word))), value, found))
            return found
        table = ir.Literal(sum((v - least) << bits * n for n, v in enumerate(values)), self.word)
        found = field_of(self.word, table, code)
        if t == BOOL:
            return ir.Call("ne", (found, ir.Literal(0, self.word)))
        return ir.Call("add", (as_type(found, t), ir.Literal(least, t)))


def states(group: Sequence[int], results: Sequence[ir.Expr], variables: Sequence[ir.Var]) -> States:
    """Expressions as what becomes of the few states that variables have together.

    Raises
    ------
    NotLinear
        If more is asked of them than which of these they are, or they become others.
    """
    types = [v.type for v in variables if isinstance(v.type, Scalar) and (v.type.is_integer or v.type == BOOL)]
    if len(types) < len(variables):
        raise NotLinear("a float has more than a few states")
    tests = {c: s for r in results for c, s in _tests(r, variables)}
    if all(t == BOOL for t in types) and len(types) <= MOST_BOOLS:
        first: list[State] = list(product((False, True), repeat=len(types)))
        other = None
    else:
        none = {c: ir.Literal(False, BOOL) for c in tests}
        other = [decided(r, none) for r in results]
        if not tests or any(not ir.free_variables(e).isdisjoint(variables) for e in other):
            raise NotLinear("more is asked of it than which of a few states it is")
        first = list(dict.fromkeys(tests.values()))
    made = becoming(variables, results, first)
    if made is None:
        raise NotLinear("it becomes another state than a few")
    found = [*made]
    others = 0 if other is None else next((n for n, b in enumerate(made.values()) if b == other), None)
    if others is None or len(found) < 2:
        raise NotLinear("other values behave like none of its states")
    word = next((w for w, bits in WORDS.items() if len(found) <= 1 << bits), None)
    if word is None:
        raise NotLinear("it has more than a few states")
    numbers = {state: n for n, state in enumerate(found)}
    codes = [code_of(b, numbers, word, {}) for b in made.values()]
    entries = ir.Literal(True, BOOL), word_of(word, codes)
    return States(tuple(group), tuple(types), tuple(found), others, word, entries)


def code_of(terms: Sequence[ir.Expr], numbers: Mapping[State, int], word: Scalar, known: Known) -> ir.Expr:
    """The number of the state that expressions give together."""
    condition = next((c for e in terms if (c := undecided(e)) is not None), None)
    if condition is None:
        *rest, last = product(*(values_of(e, known) or () for e in terms))
        made: ir.Expr = ir.Literal(numbers[last], word)
        for state in rest:
            made = ir.Call("select", (is_state(terms, state), ir.Literal(numbers[state], word), made))
        return made
    ways = list[ir.Expr]()
    for holds in (True, False):
        there = where_it_holds(condition, holds, known)
        if there is not None:
            outcome = {condition: ir.Literal(holds, BOOL)}
            ways.append(code_of([decided(e, outcome) for e in terms], numbers, word, there))
    return ways[0] if ways[0] == ways[-1] else ir.Call("select", (condition, *ways))


def _tests(term: ir.Part, variables: Sequence[ir.Var]) -> Iterator[tuple[ir.Expr, State]]:
    """The conditions that ask whether variables are one state, and which."""
    if isinstance(term, ir.Call) and term.op == "select":
        if (state := _asked(term.arguments[0], variables)) is not None:
            yield term.arguments[0], state
        for part in term.arguments[1:]:
            yield from _tests(part, variables)


def _asked(condition: ir.Expr, variables: Sequence[ir.Var]) -> State | None:
    """The state that a condition asks for: all the variables' values; None for other conditions."""
    values = dict[ir.Expr, "int | bool"]()
    for part in conjuncts(condition):
        match part:
            case ir.Var():
                values[part] = True
            case ir.Call(op="not", arguments=(ir.Var() as v,)):
                values[v] = False
            case ir.Call(op="eq", arguments=(ir.Var() as v, ir.Literal(value=value))):
                values[v] = int(value)
            case _:
                return None
    if len(values) != len(variables) or set(values) != set(variables):
        return None
    state = tuple(values[v] for v in variables)
    return state if is_state(variables, state) == reduce(_and, conjuncts(condition)) else None


def _and(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Call("and", (a, b))


def _shown(state: State) -> str:
    parts = [str(v).lower() if isinstance(v, bool) else str(v) for v in state]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
