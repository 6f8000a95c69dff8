"""Functions on scalars and tuples of them as scalar expressions: one for each leaf of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets, substitute, unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.computed_places import computed_place
from lift_egraph.language.tuples import component
from lift_egraph.language.types import DataType, Pair, Scalar

MOST_LEAVES = 16
LARGE = 8  # nodes of a part that is computed once where it occurs several times
MOST_NODES = 4000  # of an expression in which all lets are written out


@dataclass(frozen=True)
class Binary:
    """A function of two arguments: scalar variables for the leaves of the first, the binder of the second as it is, and
    an expression for each leaf of the result, without lets.
    """

    first: tuple[ir.Var, ...]
    second: ir.Binder
    results: tuple[ir.Expr, ...]

    def at(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
        """The results for other leaves of the arguments."""
        names = dict(zip((*self.first, *ir.bound_variables(self.second)), (*first, *second), strict=True))
        return tuple(substitute(r, names) for r in self.results)

    def independent(self) -> list[list[int]]:
        """The components of the first argument in groups that do not depend on each other."""
        state = {v: i for i, v in enumerate(self.first)}
        groups = [{i} for i in state.values()]
        for i, result in enumerate(self.results):
            together = {i, *(state[v] for v in ir.free_variables(result) if v in state)}
            met = [g for g in groups if g & together]
            groups = [g for g in groups if not g & together] + [together.union(*met)]
        return sorted(sorted(g) for g in groups)

    def needs(self) -> list[set[int]]:
        """The components of the first argument that each component of the result needs, and what these need in turn.

        Of a fold's step: those that count for it sooner or later.
        """
        names = {v: i for i, v in enumerate(self.first)}
        found = [{names[v] for v in ir.free_variables(r) if v in names} for r in self.results]
        for _ in found:
            found = [own.union(*(found[i] for i in own)) for own in found]
        return found


def scalars(t: DataType) -> tuple[Scalar, ...] | None:
    """The leaves of a type that is a scalar or made of scalars; None for other types."""
    if isinstance(t, Pair):
        first, second = scalars(t.first), scalars(t.second)
        return None if first is None or second is None else first + second
    return (t,) if isinstance(t, Scalar) else None


def packed(leaves: Sequence[ir.Expr], t: DataType) -> ir.Expr:
    """A value of a type with these leaves."""
    left = iter(leaves)

    def pack(t: DataType) -> ir.Expr:
        return ir.MakePair(pack(t.first), pack(t.second)) if isinstance(t, Pair) else next(left)

    return pack(t)


def right_nested(leaves: Sequence[ir.Expr]) -> ir.Expr:
    """A tuple; the leaf itself if there is one alone."""
    *first, made = leaves
    for leaf in reversed(first):
        made = ir.MakePair(leaf, made)
    return made


def computed_once(term: ir.Expr) -> ir.Expr:
    """The same value, with large parts of scalar expressions that occur several times bound by lets around it.

    Lets are written out where operators are taken apart; a few inside of each other would make a long text of them.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.types import F32
    >>> x, y = ir.Var("x", F32), ir.Var("y", F32)
    >>> length = ir.Call("sqrt", (x * x + y * y + x * y,))
    >>> print(print_term(computed_once(ir.MakePair(x / length, y / length))))
    let part0 = sqrt(x * x + y * y + x * y) in (x / part0, y / part0)
    """
    uses, sizes = Counter[ir.Expr](), dict[ir.Expr, int]()

    def count_uses(part: ir.Expr) -> int:
        uses[part] += 1
        if part not in sizes:
            inside = ir.parts(part) if isinstance(part, ir.Call | ir.MakePair) else ()
            below = [count_uses(p) for p in inside if isinstance(p, ir.Expr)]
            sizes[part] = 1 + sum(below) if below else sum(1 for _ in ir.subterms(part))
        return sizes[part]

    count_uses(term)
    many = [p for p in sizes if isinstance(p, ir.Call) and uses[p] > 1 and sizes[p] >= LARGE]  # the inner ones first
    names: dict[ir.Expr, ir.Var] = {part: ir.Var(f"$part{n}", type_of(part)) for n, part in enumerate(many)}

    def named(part: ir.Expr) -> ir.Expr:
        return names[part] if part in names else inside(part)

    def inside(part: ir.Expr) -> ir.Expr:
        return ir.map_parts(part, named) if isinstance(part, ir.Call | ir.MakePair) else part

    return in_lets([(name, inside(part)) for part, name in names.items()], inside(term))


def binder_of(variables: Sequence[ir.Var]) -> ir.Binder:
    """A binder for such a tuple."""
    *first, made = variables
    for v in reversed(first):
        made = ir.PairBinder(v, made)
    return made


def shaped_binder(variables: Sequence[ir.Var], t: DataType) -> ir.Binder:
    """A binder of these variables for values of a type."""
    left = iter(variables)

    def bind(t: DataType) -> ir.Binder:
        return ir.PairBinder(bind(t.first), bind(t.second)) if isinstance(t, Pair) else next(left)

    return bind(t)


def numbered(prefix: str, types: Sequence[DataType]) -> tuple[ir.Var, ...]:
    """Variables that no program has, as its names have no ``$``."""
    return tuple(ir.Var(f"${prefix}{i}", t) for i, t in enumerate(types))


def opened(function: ir.Function, *, both: bool = False) -> Binary | None:
    """A function of a pair as scalar expressions of the leaves of its first argument, or of `both`.

    Returns
    -------
    Binary or None
        None if its first argument (or both) or its result is not made of scalars, or it is too large.
    """
    if not isinstance(function, ir.Lambda):
        return None
    renamed: ir.Lambda = unique_names(function, {v.name for v in ir.free_variables(function)})
    binder, body = renamed.binder, renamed.body
    if isinstance(binder, ir.Var):
        if not isinstance(binder.type, Pair):
            return None
        parts = ir.Var("$first", binder.type.first), ir.Var("$second", binder.type.second)
        body = substitute(body, {binder: ir.MakePair(*parts)})
        binder = ir.PairBinder(*parts)
    names = count()
    first, body = _taken_apart(binder.first, body, names)
    if both:
        others, body = _taken_apart(binder.second, body, names)
        second = None if others is None else binder_of(others)
    else:
        second = binder.second
    if first is None or second is None or scalars(type_of(body)) is None:
        return None
    try:
        results = tuple(leaves(simplified(body)))
    except LiftError:
        return None
    return Binary(first, second, results)


def fold_step(function: ir.Function, *, both: bool = False) -> Binary | None:
    """A fold's operator as `opened`: its result has the components of its first argument, which is the accumulator.

    Returns
    -------
    Binary or None
        None if that is not so, or where `opened` gives None.
    """
    op = opened(function, both=both)
    return op if op and [v.type for v in op.first] == [type_of(r) for r in op.results] else None


def _taken_apart(binder: ir.Binder, body: ir.Expr, names: Iterator[int]) -> tuple[tuple[ir.Var, ...] | None, ir.Expr]:
    """Scalar variables for what a binder binds, and the body with them."""
    found: list[ir.Var] = []
    for v in ir.bound_variables(binder):
        types = scalars(v.type)
        if types is None or len(found) + len(types) > MOST_LEAVES:
            return None, body
        own = [ir.Var(f"${v.name}_{next(names)}", t) for t in types] if isinstance(v.type, Pair) else [v]
        if isinstance(v.type, Pair):
            body = substitute(body, {v: packed(own, v.type)})
        found += own
    return tuple(found), body


def simplified(term: ir.Expr) -> ir.Expr:
    """The term with its lets written out, components of pairs taken, and no choice between equals.

    Raises
    ------
    LiftError
        If that makes it too large.
    """
    return _Written().whole(term)


@dataclass(frozen=True)
class _Written:
    """Writes lets out; `sizes` has the nodes of terms that were written, by the terms' identities."""

    sizes: dict[int, tuple[ir.Part, int]] = field(default_factory=dict)

    def whole(self, term: ir.Expr) -> ir.Expr:
        made = self.term(term, {})
        self.size(made)
        return made

    def term(self, term: ir.Expr, known: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
        """The term with what variables are known to be."""
        match term:
            case ir.Var():
                return known.get(term, term)
            case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
                return self.term(body, {**known, **dict(_bound(binder, self.term(argument, known)))})
            case ir.Component(index=i, pair=pair):
                return component(i, self.term(pair, known))
            case ir.MakePair(first=a, second=b):
                return ir.MakePair(self.term(a, known), self.term(b, known))
            case ir.Call(op=op, arguments=arguments):
                made = ir.Call(op, tuple(self.term(a, known) for a in arguments))
                self.size(made)
                return chosen(made)
        return substitute(term, {v: known[v] for v in ir.free_variables(term) if v in known})

    def size(self, term: ir.Part) -> int:
        """The nodes of a term, if they are not too many."""
        if id(term) not in self.sizes:
            nodes = 1 + sum(map(self.size, ir.parts(term)))
            if nodes > MOST_NODES:
                raise LiftError("the expression is too large")
            self.sizes[id(term)] = term, nodes
        return self.sizes[id(term)][1]


def chosen(term: ir.Call) -> ir.Expr:
    """What a select gives if both of its choices are one; other operations as they are."""
    match term:
        case ir.Call(op="select", arguments=(_, yes, no)) if yes == no:
            return yes
    return term


def looked_up(term: ir.Expr) -> tuple[ir.Expr, tuple[ir.Expr, ...]] | None:
    """The array and the computed places of a scalar in it, from outside; None for other terms."""
    return _found_in(term) if isinstance(term, ir.At) and isinstance(type_of(term), Scalar) else None


def _found_in(term: ir.Expr) -> tuple[ir.Expr, tuple[ir.Expr, ...]] | None:
    if (found := computed_place(term)) is None:
        return None
    (array, place), inner = found, _found_in(found[0])
    return (array, (place,)) if inner is None else (inner[0], (*inner[1], place))


def _bound(binder: ir.Binder, value: ir.Expr) -> Iterator[tuple[ir.Var, ir.Expr]]:
    if isinstance(binder, ir.Var):
        yield binder, value
    else:
        yield from _bound(binder.first, component(0, value))
        yield from _bound(binder.second, component(1, value))


def leaves(term: ir.Expr) -> Iterator[ir.Expr]:
    """The scalars of a tuple, from left to right."""
    if isinstance(type_of(term), Pair):
        yield from leaves(component(0, term))
        yield from leaves(component(1, term))
    else:
        yield term
