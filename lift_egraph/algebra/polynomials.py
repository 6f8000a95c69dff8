"""Polynomials over (xor, and) in words: bit i is the coefficient of the power i.

They are multiplied modulo one whose power is the number of bits, of which the first term is left out.
"""

from __future__ import annotations

from lift_egraph.algebra.linear_bits import size_of
from lift_egraph.algebra.semirings import SEMIRINGS
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.nat import nat
from lift_egraph.language.types import I32, Scalar

OF_BITS = next(s for s in SEMIRINGS if s.plus == "bit_xor")


def product(t: Scalar, modulus: ir.Literal, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    """The product of two polynomials over (xor, and), whose coefficients are bits, modulo one of as many bits."""
    a = ir.Var("$sum", t)
    carried = ir.Call("select", (_bit_is_one(a, ir.Literal(size_of(t) - 1, t), t), modulus, OF_BITS.zero(t)))
    doubled = ir.Call("bit_xor", (ir.Call("shift_left", (a, ir.Literal(1, t))), carried))
    return horner(t, first, a, doubled, second)


def horner(t: Scalar, polynomial: ir.Expr, a: ir.Var, step: ir.Expr, value: ir.Expr) -> ir.Expr:
    """The sum of what as many steps as each power of a polynomial says make of a value, from the highest on."""
    k, j = ir.Var("$step", I32), ir.Var("$number", I32)
    number = ir.Call("sub", (ir.Literal(size_of(t) - 1, I32), k))
    place = number if t == I32 else ir.Call(f"to_{t.name}", (number,))
    more = ir.Call("select", (_bit_is_one(polynomial, place, t), value, OF_BITS.zero(t)))
    numbers = ir.Generate(nat(size_of(t)), ir.Lambda(j, j))
    return ir.ReduceSeq(ir.Lambda(ir.PairBinder(a, k), ir.Call("bit_xor", (step, more))), OF_BITS.zero(t), numbers)


def _bit_is_one(term: ir.Expr, place: ir.Expr, t: Scalar) -> ir.Expr:
    bit = ir.Call("bit_and", (ir.Call("shift_right", (term, place)), ir.Literal(1, t)))
    return ir.Call("ne", (bit, OF_BITS.zero(t)))


def multiplies_polynomials(function: ir.Function) -> bool:
    """Whether an operator is the product of polynomials over (xor, and) modulo another.

    It is associative and commutative, and 1 is neutral, as in any ring of polynomials modulo one of them.
    """
    if not isinstance(function, ir.Lambda) or not isinstance(function.body, ir.ReduceSeq):
        return False
    match function.binder:
        case ir.PairBinder(first=ir.Var(type=Scalar() as t) as p, second=ir.Var() as q) if t.is_integer:
            numbers = {e for e in ir.subterms(function.body) if isinstance(e, ir.Literal) and e.type == t}
            return any(alpha_equal(function.body, product(t, m, p, q)) for m in numbers)
    return False
