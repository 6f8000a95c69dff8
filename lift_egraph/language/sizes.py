"""The sizes in terms and programs: which there are, and others in their place."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import Nat, NatLike
from lift_egraph.language.types import I32, Array, DataType, Pair, substitute_sizes


def substitute_nats(term: Any, values: dict[str, NatLike]) -> Any:
    """A term with size variables replaced by name, in its nodes and in the types of its binders."""
    if isinstance(term, Nat):
        return term.substitute(values)
    if isinstance(term, ir.IndexFunction):
        inner = {k: v for k, v in values.items() if k not in (term.variable, "n")}
        return ir.IndexFunction(term.variable, term.body.substitute(inner))
    if isinstance(term, ir.Var | ir.Input):
        return type(term)(term.name, substitute_sizes(term.type, values))
    if isinstance(term, ir.SizeLiteral):
        return size_value(term.size.substitute(values))
    if isinstance(term, ir.Literal | ir.Level | ir.Boundary) or not hasattr(term, "__dataclass_fields__"):
        if isinstance(term, tuple):
            return tuple(substitute_nats(x, values) for x in term)
        return term
    if isinstance(term, ir.Iterate):
        count = None if term.count is None else term.count.substitute(values)
        number = None if count is None else count.constant
        times, count = (term.times, count) if number is None else (number, None)
        values = {k: v for k, v in values.items() if k != term.size}
        inner = substitute_nats(term.function, values)
        return ir.Iterate(times, term.size, inner, substitute_nats(term.array, values), count)
    return type(term)(*(substitute_nats(getattr(term, f), values) for f in term.__dataclass_fields__))


def size_value(size: Nat) -> ir.Expr:
    """A size as a term of the type i32.

    Raises
    ------
    SizeProblem
        If it is a number beyond i32.
    """
    number = size.constant
    if number is None:
        return ir.SizeLiteral(size)
    if not -(1 << 31) <= number < 1 << 31:
        raise SizeProblem(f"the size {number} as a value is beyond the range of i32")
    return ir.Literal(number, I32)


def number_of(term: ir.Expr) -> int | None:
    """The number that a term is, as a literal or as a size that is known."""
    match term:
        case ir.Literal(value=int() as value) if not isinstance(value, bool):
            return value
        case ir.SizeLiteral(size=size):
            return size.constant
    return None


def solved(size: Nat, length: Nat) -> tuple[str, Nat] | None:
    """The only name in a size, and what it is where the size is a length; None where it is not linear in one.

    Where the size is no such length, that one is another.

    >>> from lift_egraph.language.nat import nat
    >>> [str(part) for part in solved(2 * nat("N") + 1, nat(9)) or ()]
    ['N', '4']
    """
    names, terms = [*size.variables], dict(size.terms)
    if len(names) != 1:
        return None
    factor, more = terms.pop((names[0],), 0), terms.pop((), 0)
    return (names[0].name, (length - more) // factor) if factor and not terms else None


def require_size(name: str, value: object, least: int = 0) -> None:
    """Check that a value can be a size.

    Raises
    ------
    SizeProblem
        If it is no whole number, below the least, or beyond the range of an index.
    """
    if not isinstance(value, Integral):
        raise SizeProblem(f"the size {name} must be a whole number, got {value!r}")
    if value < least:
        raise SizeProblem(f"the size {name} must be at least {least}, got {value}")
    if int(value) >= 1 << 31:
        raise SizeProblem(f"the size {name} = {value} is beyond the 32-bit index range")


def sizes_in(term: ir.Part) -> frozenset[str]:
    """The names of sizes in the arguments of patterns that no iterate binds (found once per node)."""
    known = term.__dict__.get("_sizes")
    if known is None:
        known = term.__dict__["_sizes"] = _find_sizes(term)
    return known


def _find_sizes(term: ir.Part) -> frozenset[str]:
    found: set[str] = set()
    bound: set[str] = set()
    for part in ir.subterms(term):
        if isinstance(part, ir.Iterate):
            bound.add(part.size)
        for name in part.__dataclass_fields__:  # pyright: ignore[reportAttributeAccessIssue]
            value = getattr(part, name)
            if isinstance(value, Nat):
                found |= {v.name for v in value.variables}
            elif isinstance(value, ir.IndexFunction):
                found |= {v.name for v in value.body.variables} - {value.variable, "n"}
    return frozenset(found - bound)


def size_variables(program: ir.Program) -> tuple[str, ...]:
    """The names of the sizes a program is open in: in order of appearance in its inputs, then those only elsewhere."""
    names: list[str] = []

    def visit(t: DataType) -> None:
        if isinstance(t, Array):
            visit(t.element)
            names.extend(sorted(v.name for v in t.size.variables))
        elif isinstance(t, Pair):
            visit(t.first)
            visit(t.second)

    for item in program.inputs:
        visit(item.type)
    elsewhere = sizes_in(program.body).union(*(values.sizes for _, values in program.ranges))
    return tuple(dict.fromkeys((*names, *sorted(elsewhere))))
