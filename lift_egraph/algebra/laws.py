"""Laws of binary operators: proved on the scalar expressions of their bodies, and then tried on random values.

An operator on tuples may mix what its components do, as the product of two matrices does. Sums of floats obey the laws
of real numbers, as rules that use them say that they ``reassociate``.

Source: 003 §4.1, §5.3.4 and §8.3, where operators are opaque and have to be declared.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from lift_egraph.algebra.automata import words_in
from lift_egraph.algebra.cases import equal_in_all_cases
from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.declared import HOW, is_believed
from lift_egraph.algebra.equations import Leaves, Sides, arguments_of, leaves_of_value, operator, sides
from lift_egraph.algebra.keys import Keys
from lift_egraph.algebra.moebius import multiplies_fractions
from lift_egraph.algebra.nonnegative import NON_NEGATIVE
from lift_egraph.algebra.normal_forms import equal_over
from lift_egraph.algebra.orders import equal_in_all_orders
from lift_egraph.algebra.polynomials import multiplies_polynomials
from lift_egraph.algebra.residues import residues_in
from lift_egraph.algebra.semirings import Semiring, semirings_on
from lift_egraph.algebra.sums import Sums
from lift_egraph.algebra.trials import Counterexample, counterexample
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import BOOL, Scalar

OF_POLYNOMIALS, PRODUCTS = ("associative", "commutative"), "products of polynomials modulo one"
FRACTIONS = "products of matrices, all multiples of which are one"
NO_WORD, COMPOSED = ir.Literal(False, BOOL), "what becomes of each state, one step after the other"


def proof(left: Leaves, right: Leaves) -> str | None:
    """Why expressions are equal one by one, or None if that is not known.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> x, y = ir.Var("x", F32), ir.Var("y", F32)
    >>> proof([x + y], [y + x])
    'the same polynomials over (+, ·)'
    >>> proof([x - y], [y - x]) is None
    True
    """
    if counterexample(left, right) is not None:  # a few values cost less than all orders
        return None
    return _proof(left, right)


def _proof(left: Leaves, right: Leaves) -> str | None:
    if equal_in_all_orders(left, right):
        return "the same for all orders of the values"
    used: dict[str, None] = {}
    others: list[tuple[ir.Expr, ir.Expr]] = []
    for a, b in zip(left, right, strict=True):
        t = type_of(a)
        semiring = isinstance(t, Scalar) and next((s for s in _semirings(t, a, b) if equal_over(s, t, a, b)), None)
        if semiring:
            used[str(semiring)] = None
        else:
            others.append((a, b))
    polynomials = f"the same polynomials over {' and '.join(used)}"
    if not others:
        return polynomials
    sums = Sums()
    if equal_in_all_orders([sums.of(e) for e in left], [sums.of(e) for e in right]):
        return "the same for all orders of the sums in them"
    keys = Keys()
    if equal_in_all_orders([keys.of(e) for e in left], [keys.of(e) for e in right]):
        return "the same for all orders of the values and of what is computed of each"
    if equal_in_all_cases(*zip(*others, strict=True)):
        cases = "the same in all cases of their conditions"
        return f"{polynomials}, else {cases}" if used else cases
    return None


def _semirings(t: Scalar, left: ir.Expr, right: ir.Expr) -> tuple[Semiring, ...]:
    """Over which two expressions may be equal: those of the type, the rests modulo what they are taken of, and that of
    what is not negative.
    """
    others = residues_in((left, right)) if t.is_integer else (NON_NEGATIVE,) if t.is_float else ()
    return (*semirings_on(t), *others)


@lru_cache(maxsize=1024)
def _proven(name: str, function: ir.Function, about: ir.Expr | ir.Function | None = None) -> str | None:
    if name in OF_POLYNOMIALS and multiplies_polynomials(function):
        return PRODUCTS
    found = None if compensates(function) else sides(name, function, about)
    if found and name == "associative" and multiplies_fractions(function):
        return FRACTIONS if counterexample(*found) is None else None
    op = operator(function)
    if op and found and name == "associative":
        return _proof_beside([j for i in words_in(op) for j in (i, i + 1)], found)
    return None if found is None else proof(*found)


def _proof_beside(known: Collection[int], found: Sides) -> str | None:
    """Why expressions are equal one by one, of which some are known to be."""
    if not known:
        return proof(*found)
    left, right = ([e for i, e in enumerate(side) if i not in known] for side in found)
    how = COMPOSED if len(known) == len(found[0]) else proof(left, right)
    if how is None or counterexample(*found) is not None:
        return None
    return how if how == COMPOSED else f"{COMPOSED}, and {how}"


def _why(name: str, function: ir.Function, about: ir.Expr | ir.Function | None = None) -> str | None:
    """Why a law holds: as it was declared, or by a proof; None if that is not known."""
    return HOW if is_believed(name, function, about) else _proven(name, function, about)


def associative(function: ir.Function) -> str | None:
    """Why ``(a ⊕ b) ⊕ c = a ⊕ (b ⊕ c)``, or None if that is not known."""
    return _why("associative", function)


def commutative(function: ir.Function) -> str | None:
    """Why ``a ⊕ b = b ⊕ a``, or None if that is not known."""
    return _why("commutative", function)


def idempotent(function: ir.Function) -> str | None:
    """Why ``a ⊕ a = a``, or None if that is not known."""
    return _why("idempotent", function)


def right_identity(function: ir.Function, value: ir.Expr) -> str | None:
    """Why ``a ⊕ e = a``, or None if that is not known.

    What chunks begin with stands behind what was before them, so that no more is needed of it. An operator that keeps
    the first of equal values, such as that of the first largest element, often has none on the left.
    """
    return HOW if is_believed("neutral", function, value) else _changes_nothing_behind(function, value)


@lru_cache(maxsize=1024)
def _changes_nothing_behind(function: ir.Function, value: ir.Expr) -> str | None:
    op, e = operator(function), leaves_of_value(value)
    if op is None or e is None or len(e) != len(op.first):
        return None
    a, *_ = arguments_of(op)
    return _proof_beside([j for i in words_in(op) if e[i] == NO_WORD for j in (i, i + 1)], (op.at(a, e), a))


def annihilating(function: ir.Function, value: ir.Expr) -> str | None:
    """Why ``z ⊕ a = z = a ⊕ z``, or None if that is not known."""
    return _why("annihilating", function, value)


def distributes(times: ir.Function, plus: ir.Function) -> str | None:
    """Why ``a ⊗ (b ⊕ c) = a ⊗ b ⊕ a ⊗ c`` and ``(b ⊕ c) ⊗ a = b ⊗ a ⊕ c ⊗ a``, or None if that is not known."""
    return _why("distributes", times, plus)


def neutral(function: ir.Function, start: ir.Expr) -> str | None:
    """Why a reduction may begin with a value again in each part: ``z ⊕ a ⊕ z = z ⊕ a`` and ``z ⊕ z = z``.

    That holds of what is neutral on both sides, and for some operators, such as those that choose, of any value.
    """
    return HOW if is_believed("neutral", function, start) else _begins_again(function, start)


@lru_cache(maxsize=1024)
def _begins_again(function: ir.Function, start: ir.Expr) -> str | None:
    if multiplies_polynomials(function) and isinstance(start, ir.Literal) and start.value == 1:
        return PRODUCTS
    op, z = operator(function), leaves_of_value(start)
    if op is None or z is None or len(z) != len(op.first):
        return None
    a, *_ = arguments_of(op)
    begun, count = op.at(z, a), len(z)
    known = [j for i in words_in(op) if z[i] == NO_WORD for j in (i, i + 1, i + count, i + 1 + count)]
    return _proof_beside(known, ((*op.at(begun, z), *op.at(z, z)), (*begun, *z)))


def in_parts(pattern: type[ir.Expr], operator: ir.Function, start: ir.Expr) -> bool:
    """Whether a reduction or a scan may be computed in parts as it is: by an associative operator, from a value with
    which each part may begin.
    """
    begins = neutral if pattern is ir.Reduce else right_identity
    return bool(associative(operator) and begins(operator, start))


@lru_cache(maxsize=1024)
def built_in(function: ir.Function) -> tuple[str, str] | None:
    """The built-in operation with laws that an operator is in other words, and why; None if there is none."""
    op = operator(function)
    if op is None or len(op.first) != 1:
        return None
    t = op.first[0].type
    assert isinstance(t, Scalar)
    a, b, _ = arguments_of(op)
    body = op.at(a, b)
    for name, laws in LAWS.items():
        how = t.name in laws.neutral and proof(body, [ir.Call(name, (*a, *b))])
        if how:
            return name, how
    return None


def against_associativity(function: ir.Function) -> Counterexample | None:
    """Values for which an operator is not associative, if any are found."""
    found = sides("associative", function)
    return None if found is None else counterexample(*found)
