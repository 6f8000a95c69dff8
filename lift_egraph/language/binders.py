"""Names: fresh variables, substitution, and equality up to the names of binders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import size_of
from lift_egraph.language.index_arrays import order_at
from lift_egraph.language.nat import nat
from lift_egraph.language.sizes import substitute_nats

Let = tuple[ir.Binder, ir.Expr]  # and what it is bound to


def stem(name: str) -> str:
    """A name without the numbers of e-classes behind it: ``x`` for ``x_12_3``."""
    return re.sub(r"(_\d+)+$", "", name)


def fresh_name(base: str, taken: set[str]) -> str:
    """A name like `base` that is not in `taken`; it is added to `taken`."""
    plain = stem(base).rstrip("0123456789") or "x"
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{plain}{count}"
    taken.add(name)
    return name


def names_in(term: ir.Part) -> set[str]:
    """All names of variables, binders and inputs that occur in a term."""
    found: set[str] = set()
    for part in ir.subterms(term):
        if isinstance(part, ir.Var | ir.Input):
            found.add(part.name)
        elif isinstance(part, ir.Lambda):
            found |= {v.name for v in ir.bound_variables(part.binder)}
    return found


def unique_names(term: Any, taken: set[str] | None = None, base: Callable[[str], str] = str) -> Any:
    """The same term with every binder named differently from all others and from `taken`.

    Inputs keep their names. Code generation and substitution rely on it. `base` says which name to start
    from for each binder.
    """
    used = set(taken or ()) | {p.name for p in ir.subterms(term) if isinstance(p, ir.Input)}
    return _rename(term, {}, lambda name: fresh_name(base(name), used))


def _rename(term: Any, names: dict[ir.Var, ir.Var], new: Callable[[str], str]) -> Any:
    if isinstance(term, ir.Var):
        return names.get(term, term)
    if isinstance(term, ir.Lambda):
        inner = dict(names)
        pattern = _rename_pattern(term.binder, inner, new)
        return ir.Lambda(pattern, _rename(term.body, inner, new))
    made = ir.map_parts(term, lambda part: _rename(part, names, new))
    if "_type" in vars(term):  # which names do not change
        vars(made)["_type"] = vars(term)["_type"]
    return made


def _rename_pattern(pattern: ir.Binder, names: dict[ir.Var, ir.Var], new: Callable[[str], str]) -> ir.Binder:
    if isinstance(pattern, ir.Var):
        names[pattern] = ir.Var(new(pattern.name), pattern.type)
        return names[pattern]
    first = _rename_pattern(pattern.first, names, new)
    return ir.PairBinder(first, _rename_pattern(pattern.second, names, new))


def canonical(term: Any) -> Any:
    """The term with binders (also of sizes and indices) numbered: equal for terms that differ in names only."""
    return _number(term, {}, count())


def _number(term: Any, names: dict[ir.Var, ir.Var], numbers: Iterator[int]) -> Any:
    if isinstance(term, ir.Var):
        return names.get(term, term)
    if isinstance(term, ir.Lambda):
        inner = dict(names)
        pattern = _rename_pattern(term.binder, inner, lambda _: f"${next(numbers)}")
        return ir.Lambda(pattern, _number(term.body, inner, numbers))
    if isinstance(term, ir.IndexFunction):
        return ir.IndexFunction("$i", term.body.substitute({term.variable: nat("$i")}))
    if isinstance(term, ir.Iterate):
        size = f"$n{next(numbers)}"
        function = substitute_nats(term.function, {term.size: nat(size)})
        term = replace(term, size=size, function=function)
    elif isinstance(term, ir.Gather | ir.Scatter):
        return type(term)(_number(_order(term), names, numbers), _number(term.array, names, numbers))
    return ir.map_parts(term, lambda part: _number(part, names, numbers))


def _order(term: ir.Gather | ir.Scatter) -> ir.IndexFunction:
    try:
        return order_at(term.indices, size_of(term.array))
    except LiftError:  # the array is ill-typed: its order is compared as it is written
        return term.indices


def in_lets(lets: Sequence[Let], body: ir.Expr) -> ir.Expr:
    """A term inside of lets, the first of which is the outermost."""
    for binder, value in reversed(lets):
        body = ir.Apply(ir.Lambda(binder, body), value)
    return body


def out_of_lets(term: ir.Expr) -> tuple[tuple[Let, ...], ir.Expr]:
    """The lets that a term is inside of, the outermost first, and what they are around: `in_lets` the other way."""
    lets: list[Let] = []
    while isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        lets.append((term.function.binder, term.argument))
        term = term.function.body
    return tuple(lets), term


def bound_parts(binder: ir.Binder, value: ir.Expr) -> Iterator[tuple[ir.Binder, ir.Expr]]:
    """The parts of a binder, and what each stands for, or for an element of."""
    if isinstance(binder, ir.PairBinder) and isinstance(value, ir.Zip | ir.MakePair):
        yield from bound_parts(binder.first, value.first)
        yield from bound_parts(binder.second, value.second)
    else:
        yield binder, value


def bound_to(binder: ir.Binder, value: ir.Expr) -> Iterator[tuple[ir.Var, ir.Expr]]:
    """The variables of a binder, with what each stands for, or for a part or an element of."""
    return ((v, of) for part, of in bound_parts(binder, value) for v in ir.bound_variables(part))


def with_part(term: ir.Expr, part: ir.Expr, instead: ir.Expr) -> ir.Expr:
    """The term with another for a part of it, such as its name, where that very part stands outside of functions."""
    if term is part:
        return instead
    return ir.map_parts(term, lambda p: with_part(p, part, instead) if isinstance(p, ir.Expr) else p)


def with_parts(term: Any, others: Mapping[ir.Expr, ir.Expr]) -> Any:
    """The term with others for all that equals some parts, also in functions.

    Nothing is renamed: what a binder binds in a part, it binds in the other.
    """
    made = others.get(term)
    return ir.map_parts(term, lambda part: with_parts(part, others)) if made is None else made


def alpha_equal(left: Any, right: Any) -> bool:
    """Whether two terms are equal up to the names of their binders."""
    return canonical(left) == canonical(right)


def substitute(term: Any, values: dict[ir.Var, ir.Expr]) -> Any:
    """The term with free variables replaced, binders renamed where they would capture."""
    if isinstance(term, ir.Var):
        return values.get(term, term)
    if isinstance(term, ir.Lambda):
        bound = set(ir.bound_variables(term.binder))
        free = ir.free_variables(term)
        inner = {v: e for v, e in values.items() if v not in bound and v in free}
        if not inner:
            return term
        incoming = {v.name for e in inner.values() for v in ir.free_variables(e)}
        if any(v.name in incoming for v in bound):
            taken = incoming | {v.name for v in free}
            term = _rename(term, {}, lambda name: fresh_name(name, taken))
        return ir.Lambda(term.binder, substitute(term.body, inner))
    return ir.map_parts(term, lambda part: substitute(part, values))
