"""Quotients of single precision by what does not change in a loop are products with its reciprocal.

A division takes five times as long as a product, and units for it are few. OpenCL lets quotients be wrong by 2.5 units
in the last place: the product with a rounded reciprocal is so by 1.5, where the reciprocal is a normal number. Both
sides are scaled by a power of two where it is none.

    for (…) … x / s …
    becomes
    const float scale = …, reciprocal = 1 / (s * scale);
    for (…) … (x * scale) * reciprocal …

Where 49 / 49 is no longer 1, its whole part is 0: in programs of which some kernel `jumps` quotients stay.

Source: the option ``-freciprocal-math`` of compilers, which leaves out the scale.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.c_ast import (
    AROUND,
    Allocate,
    Body,
    CExpr,
    Choose,
    Const,
    For,
    If,
    Let,
    LetIndex,
    Load,
    Name,
    Operate,
    Pack,
    SetIndex,
    SinCos,
    Statement,
)
from lift_egraph.codegen.c_walk import loads, mentioned, names, rewrite, statements, stores, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.scalar import COMPARISONS, OPERATIONS
from lift_egraph.language.types import BOOL, F32, scalar_of

LEAST = 16  # steps of a loop, from which what is computed before it is worth it: rows of 8 took 1.2 times as long
_LARGE, _SCALE = 2.0**100, 2.0**64  # from where on reciprocals may be none that are normal; by what is scaled then


def jumps(body: Body) -> bool:
    """Whether a kernel computes something of floats that is quite another where they differ in the last place.

    Comparisons, whole parts and casts to whole numbers do so, and powers: those of negative numbers are none where the
    exponent is not whole.
    """
    return any(isinstance(part, Operate) and _jumps(part) for part in walk(body))


def _jumps(part: Operate) -> bool:
    if not scalar_of(part.arguments[0].type).is_float:
        return False
    if part.op == "pow":
        return not isinstance(part.arguments[1], Const)
    is_whole = OPERATIONS[part.op].kind == "cast" and not scalar_of(part.type).is_float
    return is_whole or part.op in (*COMPARISONS, "floor", "ceil")


def by_reciprocals(body: Body, taken: set[str]) -> Body:
    """A kernel's body whose loops multiply by reciprocals; `taken` are names that are in use, which new ones join."""
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and statement.expected >= LEAST:
            known: dict[CExpr, tuple[Name, Name]] = {}
            for divisor in _divisors(statement):
                scale, reciprocal = Name(c_name("scale", taken), F32), Name(c_name("reciprocal", taken), F32)
                known[divisor] = scale, reciprocal
                made.append(Let(scale.name, _scale_of(divisor), origin=statement.origin))
                scaled = Operate("mul", (divisor, scale), F32)
                made.append(
                    Let(reciprocal.name, Operate("div", (Const(1.0, F32), scaled), F32), origin=statement.origin)
                )
            statement = rewrite(statement, lambda part, known=known: _product(part, known)) if known else statement
        if isinstance(statement, AROUND):
            statement = with_body(statement, by_reciprocals(statement.body, taken))
        made.append(statement)
    return tuple(made)


def _divisors(loop: For) -> dict[CExpr, None]:
    """By what the steps of a loop divide that is the same for all of them, and at hand before it."""
    inside = [*statements(loop.body)]
    changing = {s.variable.name for s in (loop, *inside) if isinstance(s, For | LetIndex | SetIndex)}
    own = {place.buffer.name for place in stores(loop)} | {s.buffer.name for s in inside if isinstance(s, Allocate)}
    declared = {name for s in inside for name in _names_of(s)}
    loops = [s for s in (loop, *inside) if isinstance(s, For)]
    is_run = all((s.count.range[0] or 0) > 0 for s in loops) and not any(
        isinstance(part, If | Choose) for part in walk(loop.body)
    )

    def is_at_hand(load: Load) -> bool:
        in_memory = is_run and not load.buffer.mutable  # else it may lie outside of the array
        return (load.buffer.space == "private" and load.buffer.name not in own) or in_memory

    return {
        divisor: None
        for divisor in map(_divisor, walk(loop.body))
        if divisor is not None
        and not mentioned(divisor) & changing
        and declared.isdisjoint(names(divisor))
        and all(map(is_at_hand, loads(divisor)))
    }


def _names_of(statement: Statement) -> Iterator[str]:
    match statement:
        case Let(name=name):
            yield name
        case SinCos(sine=sine, cosine=cosine):
            yield from (sine, cosine)


def _divisor(part: object) -> CExpr | None:
    """The number that all lanes of a quotient of single precision are divided by; None of others."""
    match part:
        case Operate(op="div", arguments=(_, divisor), type=t) if scalar_of(t) == F32:
            number = divisor.items[0] if isinstance(divisor, Pack) and len(divisor.items) == 1 else divisor
            return number if number.type == F32 and isinstance(number, Name | Load) else None
    return None


def _scale_of(divisor: CExpr) -> CExpr:
    size, one = Operate("abs", (divisor,), F32), Const(1.0, F32)
    is_large, is_small = (
        Operate(op, (size, Const(bound, F32)), BOOL) for op, bound in (("gt", _LARGE), ("lt", 1 / _LARGE))
    )
    enlarged = Operate("select", (is_small, Const(_SCALE, F32), one), F32)
    return Operate("select", (is_large, Const(1 / _SCALE, F32), enlarged), F32)


def _product(part: object, known: dict[CExpr, tuple[Name, Name]]) -> CExpr | None:
    divisor = _divisor(part)
    if divisor not in known or divisor is None:
        return None
    assert isinstance(part, Operate)
    scale, reciprocal = known[divisor]
    number = rewrite(part.arguments[0], lambda inner: _product(inner, known))
    return Operate("mul", (Operate("mul", (number, scale), part.type), reciprocal), part.type)
