"""Folds by operators that are not associative as reductions by one that is: matrices act on the accumulator.

If each component of ``f (s, x)`` is linear in the components of the accumulator s over a semiring, with anything that
x gives as coefficients, then f multiplies s by a matrix that x gives, and products of matrices are associative. Entries
that are zero or one in all products are no data, and entries that stay equal are kept once, so that no dense matrix is
made. Components that do not depend on each other may be linear over different semirings.

Source: 003 §4.2 to §4.6, after Sato and Iwasaki, "Automatic parallelization via matrix multiplication", PLDI 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Union

from lift_egraph.algebra.adjoined import Adjoined, adjoined
from lift_egraph.algebra.against import against_linearity, not_associative, not_distributive
from lift_egraph.algebra.automata import Automaton, automaton, composes_words
from lift_egraph.algebra.bounded import Interval, bounds, is_float, within
from lift_egraph.algebra.clamps import Clamp, ScaledClamp, clamp, scaled_clamp
from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.declared import believe, believed
from lift_egraph.algebra.equations import leaves_of_value
from lift_egraph.algebra.expressions import (
    Binary,
    binder_of,
    computed_once,
    numbered,
    opened,
    packed,
    right_nested,
    shaped_binder,
)
from lift_egraph.algebra.linear import NeedsRange, NotLinear, linear_form
from lift_egraph.algebra.matrices import Block, closed_block
from lift_egraph.algebra.moebius import Moebius, moebius
from lift_egraph.algebra.nonnegative import INTERVAL, NON_NEGATIVE, NonNegative
from lift_egraph.algebra.once import Once, once
from lift_egraph.algebra.own_semirings import own_semirings
from lift_egraph.algebra.residues import Residues, kept, residues_in
from lift_egraph.algebra.semirings import SEMIRINGS, Semiring, semirings_on
from lift_egraph.algebra.states import States, states
from lift_egraph.algebra.tables import Table, moved_table, table
from lift_egraph.algebra.trials import counterexample
from lift_egraph.errors import RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import DataType, Scalar

MOST_ENTRIES = 16
Acting = Union[Block, Clamp, ScaledClamp, Moebius, Table, Automaton, States, Once, Adjoined]


@dataclass(frozen=True)
class Action:
    """A fold's operator f as the action of a monoid: ``f (s, x) = act (matrix x, s)``, and acting with p and then with
    q is acting with ``operator (p, q)``, which is associative and has the neutral element `one`.

    Attributes
    ----------
    why
        The semirings over which f is linear, in words.
    is_matrix
        Whether what acts are matrices, and acting with them is a product.
    longest
        Of how many elements floats hold what acts; None if none are known to be too many.
    intervals
        Between which numbers each component of the accumulator is, or for which of these it stands; None for any.
    """

    matrix: ir.Lambda
    operator: ir.Lambda
    one: ir.Expr
    act: ir.Lambda
    why: str
    is_matrix: bool
    longest: int | None = None
    intervals: tuple[Interval | None, ...] = ()

    def against(self, length: int, first: ir.Expr | None = None) -> str | None:
        """Why it may not act for so many elements; None if it may.

        Parameters
        ----------
        first
            An accumulator of which more is asked than what the fold makes of it (`seen_first`).
        """
        if first is not None and any(self.intervals):
            parts = leaves_of_value(first) or (None,) * len(self.intervals)
            for part, interval in zip(parts, self.intervals, strict=True):
                if interval and (part is None or not within(bounds(part), interval)):
                    return f"{print_term(first)} stands for another number from {interval[0]} to {interval[1]} there"
        if self.longest is None or length <= self.longest:
            return None
        if self.longest == 0:
            return (
                "data may multiply to what floats do not hold: factors from -1 to 1 would do, by the ranges of inputs, "
                "k: f32 in -1..1, or as min(max(k, -1.0), 1.0)"
            )
        return f"the factors of {length} elements multiply to what floats do not hold; those of {self.longest} would do"


def seen_first(fold: ir.Expr) -> ir.Expr | None:
    """What a scan begins with, where that is its first result."""
    return fold.initial if isinstance(fold, ir.ScanExclusive | ir.ScanExclusiveSeq) else None


@dataclass(frozen=True)
class Refusal:
    """Why a fold's operator is not known to act like a monoid."""

    why: str

    def __str__(self) -> str:
        return self.why


NOT_NEGATIVE = (
    "where nothing is negative it is linear over (max, ·): ranges of inputs from 0, as 0..1, and a first value that is "
    "not negative would do"
)
COMPOSES = Refusal("it composes what becomes of each state")


def action_of(function: ir.Function) -> Action | Refusal:
    """A fold's operator as the action of a monoid, or why it is none that is known.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> s, x = ir.Var("s", F32), ir.Var("x", F32)
    >>> found = action_of(ir.Lambda(ir.PairBinder(s, x), s * 3.0 + x))
    >>> found.why
    's is linear in the accumulator over (+, ·)'
    """
    found = _action_of(function, believed())
    if isinstance(found, Refusal) and found != COMPOSES and (also := not_associative(function)):
        return Refusal(f"{found}; {also}")
    return found


@lru_cache(maxsize=1024)
def _action_of(function: ir.Function, _: int) -> Action | Refusal:
    op = opened(function)
    if op is None:
        return Refusal("the accumulator is no scalar or tuple of scalars")
    if [v.type for v in op.first] != [type_of(r) for r in op.results]:
        return Refusal("the accumulator has other components than the result")
    if why := compensates(function):
        return Refusal(why)
    if composes_words(op):
        return COMPOSES
    blocks: list[Acting] = []
    for group in op.independent():
        found = _block(op, group)
        if isinstance(found, Refusal):
            return found
        blocks.append(found)
    if not any(b.entries for b in blocks):
        return Refusal("it leaves the accumulator as it is")
    if sum(len(b.entries) for b in blocks) > MOST_ENTRIES:
        return Refusal(f"its matrix has more than {MOST_ENTRIES} entries")
    made = _action(op, blocks, type_of(ir.function_body(function).body))
    if not _acts(op, made, blocks):
        return Refusal("what was found of it is wrong on random values")
    if any(isinstance(b, Block) and not b.semiring.has_normal_forms for b in blocks):
        try:  # what is believed of a semiring of the user's makes the product associative: that is no proof of ours
            believe((ir.Law("associative", made.operator), ir.Law("neutral", made.operator, made.one)))
        except RuleProblem as problem:
            return Refusal(f"products of its matrices: {problem.text}")
    return made


def linear_rows(op: Binary, group: Sequence[int]) -> tuple[Semiring, Scalar, list[list[ir.Expr]]] | Refusal:
    """The semiring over which some components of an accumulator are linear in these, their type, and for each the
    coefficients of all and what is added; or why they are not.
    """
    variables = [op.first[i] for i in group]
    types = {v.type for v in variables}
    t = types.pop()
    if types or not isinstance(t, Scalar):
        return _of_several_types(op, group)
    refused: list[tuple[NotLinear, Semiring]] = []
    others = residues_in(op.results[i] for i in group) if t.is_integer else (NON_NEGATIVE,) if t.is_float else ()
    for semiring in (*semirings_on(t), *own_semirings(t), *others):
        try:
            forms = [linear_form(semiring, t, op.results[i], variables) for i in group]
        except NotLinear as problem:
            refused.append((problem, semiring))
            continue
        return semiring, t, [[*(form[v] for v in variables), form[None]] for form in forms]
    for semiring in SEMIRINGS:
        if semiring not in semirings_on(t) and (why := not_distributive(semiring, t)):
            with suppress(NotLinear):
                for i in group:
                    linear_form(semiring, t, op.results[i], variables)
                floats = f"{semiring}, no semiring on {t} as it is on floats"
                return Refusal(f"{_names(variables)} would be linear over {floats}: {why}")
    # the semiring whose operations go furthest says best why not, if there are values that show it
    if not refused:
        return Refusal(f"no semiring of {t} is known")
    furthest = sorted(refused, key=lambda r: -r[0].depth)
    for problem, semiring in furthest:
        holds_for_some = isinstance(semiring, Residues | NonNegative)
        if semiring.has_normal_forms and not holds_for_some and (against := against_linearity(op, group, semiring)):
            return Refusal(f"{problem}: {against}")
    return Refusal(str(furthest[0][0]))


def _of_several_types(op: Binary, group: Sequence[int]) -> Refusal:
    """Why components of several types are not linear: where one that needs no other is not, that is why."""
    for i in group:
        alone = frozenset(op.first) & ir.free_variables(op.results[i]) <= {op.first[i]}
        if alone and isinstance(found := _block(op, [i]), Refusal):
            return found
    variables = [op.first[i] for i in group]
    why = f"{_names(variables)} depend on each other and have different types"
    if against := against_linearity(op, group):
        return Refusal(f"{why}: {against}")
    problems = list[NotLinear]()
    for i, v in zip(group, variables, strict=True):
        assert isinstance(v.type, Scalar)
        for semiring in semirings_on(v.type):
            try:
                linear_form(semiring, v.type, op.results[i], variables)
            except NotLinear as problem:
                problems.append(problem)
    furthest = max(problems, key=lambda p: p.depth, default=None)
    return Refusal(f"{why}: {furthest}" if furthest else why)


def _block(op: Binary, group: Sequence[int]) -> Acting | Refusal:
    """The matrix of some components, or the clamp or the table of one, or what sets them."""
    found = linear_rows(op, group)
    if not isinstance(found, Refusal):
        semiring, t, rows = found
        return closed_block(semiring, t, tuple(group), rows)
    v = op.first[group[0]]
    if len(group) == 1 and isinstance(v.type, Scalar):
        of_floats, of_others = (clamp, scaled_clamp, table, moebius), (table, clamp, moved_table, automaton)
        for made in of_floats if v.type.is_float else of_others:
            try:
                return made(v.type, group[0], op.results[group[0]], v)
            except NeedsRange as problem:
                found = Refusal(f"{found}; {problem}")
            except NotLinear:
                pass
    with suppress(NotLinear):
        return states(group, [op.results[i] for i in group], [op.first[i] for i in group])
    with suppress(NotLinear):
        return once(group, [op.results[i] for i in group], [op.first[i] for i in group])
    with suppress(NotLinear):
        return adjoined(op, group)
    return Refusal(f"{found}; {NOT_NEGATIVE}") if _is_linear_from_zero(op, group) else found


def _is_linear_from_zero(op: Binary, group: Sequence[int]) -> bool:
    """Whether some components are linear over ``(max, ·)`` where they are not negative, and all else is from 0 to 1."""
    variables = [op.first[i] for i in group]
    alone = (p for i in group for p in ir.subterms(op.results[i]) if isinstance(p, ir.Var | ir.Input) and is_float(p))
    moved: dict[ir.Expr, ir.Expr] = {p: kept(p, INTERVAL if p in variables else (0.0, 1.0)) for p in alone}
    try:
        for i in group:
            t = op.first[i].type
            if not isinstance(t, Scalar) or not t.is_float:
                return False
            linear_form(NON_NEGATIVE, t, with_parts(op.results[i], moved), variables)
    except NotLinear:
        return False
    return True


def _action(op: Binary, blocks: Sequence[Acting], t: DataType) -> Action:
    types = [t for b in blocks for t in b.types]
    first, second, matrix = (numbered(name, types) for name in "pqm")
    state = numbered("s", [v.type for v in op.first])
    products: list[ir.Expr] = []
    results: dict[int, ir.Expr] = {}
    start = 0
    for b in blocks:
        own = slice(start, start := start + len(b.entries))
        products += b.product(first[own], second[own])
        results |= zip(b.group, b.applied(matrix[own], [state[i] for i in b.group]), strict=True)
    given = [e for b in blocks for e in b.entries]
    why = "; ".join(
        f"{_names([op.first[i] for i in b.group])} {'is' if len(b.group) == 1 else 'are'} {b.why}" for b in blocks
    )
    return Action(
        ir.Lambda(op.second, computed_once(right_nested(given))),
        ir.Lambda(ir.PairBinder(binder_of(first), binder_of(second)), computed_once(right_nested(products))),
        right_nested([one for b in blocks for one in b.ones]),
        ir.Lambda(
            ir.PairBinder(binder_of(matrix), shaped_binder(state, t)),
            packed([results[i] for i in range(len(state))], t),
        ),
        why,
        all(isinstance(b, Block | Moebius) for b in blocks),
        min((b.longest for b in blocks if isinstance(b, Block | ScaledClamp) and b.longest is not None), default=None),
        tuple(_interval(next(b for b in blocks if i in b.group)) for i in range(len(op.first))),
    )


def _interval(b: Acting) -> Interval | None:
    """Between which numbers what acts keeps an accumulator."""
    return b.semiring.interval if isinstance(b, Block) and isinstance(b.semiring, Residues | NonNegative) else None


def _acts(op: Binary, made: Action, blocks: Sequence[Acting]) -> bool:
    """Whether random values bear out what an action is."""
    act, times = opened(made.act, both=True), opened(made.operator, both=True)
    given = opened(ir.Lambda(ir.PairBinder(ir.Var("$none", op.first[0].type), op.second), made.matrix.body))
    if act is None or times is None or given is None:
        return False
    elements = ir.bound_variables(op.second)
    matrix = given.at([op.first[0]], elements)
    p, q = (_valid(blocks, v) for v in (times.first, ir.bound_variables(times.second)))
    laws = ((op.results, act.at(matrix, op.first)), (act.at(times.at(p, q), op.first), act.at(q, act.at(p, op.first))))
    poles = any(isinstance(b, Moebius) for b in blocks)  # where the one divides by zero, and the other does not
    return all(counterexample(left, right, poles=poles) is None for left, right in laws)


def _valid(blocks: Sequence[Acting], data: Sequence[ir.Expr]) -> list[ir.Expr]:
    """What elements may give, and products of that, of any entries."""
    made, start = list[ir.Expr](), 0
    for b in blocks:
        own = data[start : (start := start + len(b.entries))]
        made += b.valid(own) if isinstance(b, States) else own
    return made


def _names(variables: Sequence[ir.Var]) -> str:
    *first, last = [v.name.lstrip("$") for v in variables]
    return f"{', '.join(first)} and {last}" if first else last
