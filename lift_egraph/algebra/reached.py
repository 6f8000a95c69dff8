"""Folds whose accumulator, or some components of it together, is only ever one of a few values: those that are reached
from the first one, whatever the elements are.

A switch that waits for three equal inputs before it follows them has two components that need each other: what it
says, and how many inputs said otherwise. Both together are one of six pairs. So the fold is also one by the function
that asks first which of these its accumulator is, and then does what the operator makes of that pair: that depends on
the element alone, and `lift_egraph.algebra.states` has such pairs as states.

Source: the reachable states of a product of automata, as in Hopcroft and Ullman, "Introduction to Automata Theory,
Languages, and Computation", 1979, §2.2; the values are found as in Cousot and Cousot, "Abstract interpretation", POPL
1977, with sets of values for intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from typing import Union

from lift_egraph.algebra.bounded import Known, bounds, is_whole, where_it_holds
from lift_egraph.algebra.cases import decided, undecided
from lift_egraph.algebra.equations import leaves_of_value
from lift_egraph.algebra.expressions import Binary, computed_once, fold_step, packed, shaped_binder
from lift_egraph.algebra.residues import kept
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import domain, type_of
from lift_egraph.language.types import BOOL, Pair, Scalar

MOST_STATES = 16
MOST_OUTCOMES = 64  # of conditions, for one state
State = tuple[Union[int, bool], ...]
Outcome = tuple[tuple[ir.Expr, ...], tuple[State, ...]]  # what the components become, and which states that may be


@lru_cache(maxsize=1024)
def reached_of(function: ir.Function, initial: ir.Expr, given: ir.Lambda | None = None) -> ir.Lambda | None:
    """A fold's operator that asks first which of the few values that are reached from an initial one its accumulator
    is; of those components that are few together. None if there are none.

    Parameters
    ----------
    given
        What makes the elements, if that is known: they are moved between its bounds.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program(
    ...     "program p(xs: [f32]N) = reduceSeq(fun (s, x) => if s == 9 then 6 else (if x > 0.0 then 9 else s), 9, xs)"
    ... ).body
    >>> print_term(reached_of(fold.operator, fold.initial))
    'fun (s, x) => select(s == 9, 6, select(x > 0.0, 9, 6))'
    """
    op, z = fold_step(function, both=True), leaves_of_value(initial)
    if op is None or z is None or [v.type for v in op.first] != [type_of(e) for e in z]:
        return None
    made = leaves_of_value(given.body) if given else None
    elements = zip(ir.bound_variables(op.second), made or (), strict=False)
    moved: dict[ir.Var, ir.Expr] = {v: kept(v, bounds(e)) for v, e in elements if is_whole(v)}
    results = [substitute(r, moved) for r in op.results]
    found = list(results)
    for group in together(op):
        variables, first = [op.first[i] for i in group], [z[i] for i in group]
        if not all(isinstance(e, ir.Literal) and _has_few(e) for e in first):
            continue
        start = tuple(_value(e) for e in first)
        states = becoming(variables, [results[i] for i in group], [start])
        if states is None or len(states) < 2:
            continue
        for place, i in enumerate(group):
            *others, (_, last) = states.items()
            at_last = last[place]
            for state, b in reversed(others):
                at_last = ir.Call("select", (is_state(variables, state), b[place], at_last))
            found[i] = at_last
    if found == results:
        return None
    t, argument = type_of(ir.function_body(function).body), domain(function)
    assert isinstance(argument, Pair)
    binder = shaped_binder(ir.bound_variables(op.second), argument.second)
    return ir.Lambda(ir.PairBinder(shaped_binder(op.first, t), binder), computed_once(packed(found, t)))


def together(op: Binary) -> list[list[int]]:
    """The components that need each other, or themselves."""
    needs = op.needs()
    groups = {tuple(j for j in sorted(own) if i in needs[j]) for i, own in enumerate(needs) if i in own}
    return [list(g) for g in sorted(groups)]


def becoming(
    variables: Sequence[ir.Var], results: Sequence[ir.Expr], first: Sequence[State]
) -> dict[State, list[ir.Expr]] | None:
    """The values that variables take from some first ones on, whatever else is in what they become, with what they
    become there; None if these are not known to be few.
    """
    states = [*first]
    made = dict[State, list[ir.Expr]]()
    while len(made) < len(states):
        state = states[len(made)]
        made[state] = _at_state(variables, results, state)
        found = outcomes(made[state])
        if found is None:
            return None
        states += [s for s in dict.fromkeys(s for _, values in found for s in values) if s not in states]
        if len(states) > MOST_STATES:
            return None
    return made


def _at_state(variables: Sequence[ir.Var], results: Sequence[ir.Expr], state: State) -> list[ir.Expr]:
    """What variables become where they have certain values."""
    known: dict[ir.Expr, ir.Literal] = {
        v: ir.Literal(value, v.type) for v, value in zip(variables, state, strict=True) if isinstance(v.type, Scalar)
    }
    return [decided(r, known) for r in results]


def is_state(parts: Sequence[ir.Expr], state: State) -> ir.Expr:
    """Whether expressions have certain values."""

    def has(v: ir.Expr, value: int | bool) -> ir.Expr:
        t = type_of(v)
        if t == BOOL:
            return v if value else ir.Call("not", (v,))
        assert isinstance(t, Scalar)
        return ir.Call("eq", (v, ir.Literal(value, t)))

    return reduce(lambda a, b: ir.Call("and", (a, b)), map(has, parts, state))


def outcomes(terms: Sequence[ir.Expr]) -> list[Outcome] | None:
    """What expressions give for each way in which the conditions in them come out, with the values that this may be;
    None if there are many ways, or many values.
    """
    found = list[Outcome]()
    try:
        for made, known in ways(terms):
            sets = [values_of(e, known) for e in made]
            if any(s is None for s in sets) or len(found) >= MOST_OUTCOMES:
                return None
            found.append((made, tuple(product(*(s for s in sets if s is not None)))))
            if len(found[-1][1]) > MOST_STATES:
                return None
    except RecursionError:
        return None
    return found


def ways(terms: Sequence[ir.Expr], known: Known | None = None) -> Iterator[tuple[tuple[ir.Expr, ...], Known]]:
    """Expressions without choices, for each way in which their conditions come out, and what is known then."""
    known = known or {}
    condition = next((c for e in terms if (c := undecided(e)) is not None), None)
    if condition is None:
        yield tuple(terms), known
        return
    for holds in (True, False):
        there = where_it_holds(condition, holds, known)
        if there is not None:
            outcome = {condition: ir.Literal(holds, BOOL)}
            yield from ways([decided(e, outcome) for e in terms], there)


def values_of(term: ir.Expr, known: Known) -> Sequence[int | bool] | None:
    """The values that an expression may give; None if they are not known to be few."""
    if isinstance(term, ir.Literal):
        return (_value(term),) if _has_few(term) else None
    if not is_whole(term):
        return None
    low, high = bounds(term, known)
    return range(low, high + 1) if high - low < MOST_STATES else None


def _has_few(e: ir.Expr) -> bool:
    return type_of(e) == BOOL or is_whole(e)


def _value(e: ir.Expr) -> int | bool:
    assert isinstance(e, ir.Literal)
    return bool(e.value) if e.type == BOOL else int(e.value)
