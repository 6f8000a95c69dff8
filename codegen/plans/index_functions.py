"""What the index functions of gather and scatter ask of open sizes: to stay within the array, and to permute it.

At concrete sizes every index is tried (`lift_egraph.language.check`); here bounds are expressions of the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from lift_egraph.codegen.plans.open_plan import Requirement
from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import Atom, Nat, NatVar, Operation, is_at_least, maximum, minimum, nat

Interval = tuple[Nat, Nat]


def indices_stay_within(function: ir.IndexFunction, n: Nat) -> Iterator[Requirement]:
    """The requirements under which an index function is defined on an array of length `n` and stays within it.

    They may ask more than is needed: bounds of the parts of an index are added up.

    Raises
    ------
    SizeProblem
        If no sizes fulfil them.
    """
    index = NatVar(function.variable, 0, None)
    body = function.body.substitute({function.variable: nat(index), "n": n})
    shown = f"the indices {function.variable} => {function.body}"
    for divisor in _divisors(body):
        if index in divisor.variables:
            raise SizeProblem(f"{shown} divide by what depends on the index: specialise the sizes")
        if n % divisor != nat(0):  # else there is no element where the divisor is 0
            yield Requirement(divisor, 1, None, f"{shown} divide by {divisor}")
    low, high = _interval(body, index, n)
    for margin in (low, n - 1 - high):
        if (margin.constant or 0) < 0:
            raise SizeProblem(f"{shown} leave an array of length {n}")
        yield Requirement(margin, 0, None, f"{shown} may leave an array of length {n}")


def indices_permute(function: ir.IndexFunction, n: Nat) -> Iterator[Requirement]:
    """The requirements under which an index function that stays within an array permutes it.

    Raises
    ------
    SizeProblem
        If it is neither a reversal, a rotation nor the reordering with a stride.
    """
    index = NatVar(function.variable, 0, None)
    body = function.body.substitute({function.variable: nat(index), "n": n})
    if _is_injective(body, index):
        return
    for atom in _atoms(body):
        if atom.symbol != "%":
            continue
        if body == nat(atom) and atom.right == n and _is_injective(atom.left, index):
            return
        stride, rest = atom.right, body - nat(index) // atom.right
        for part in (stride, *(a.right for a in _atoms(stride) if a.symbol == "/")):
            other = n // part
            if atom.left == nat(index) and (stride, rest) in ((part, other * nat(atom)), (other, part * nat(atom))):
                yield Requirement(n % part, 0, 0, f"a stride of {part} does not divide an array of length {n}")
                return
    raise SizeProblem(
        f"scatter({function.variable} => {function.body}) cannot be shown to be a permutation of {n} elements at all "
        "sizes: specialise them"
    )


def _is_injective(value: Nat, index: NatVar) -> bool:
    slope = value.coefficient_of(index)
    return slope is not None and slope.constant in (1, -1)


def _atoms(value: Nat) -> Iterator[Operation]:
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Operation):
                yield atom


def _divisors(value: Nat) -> Iterator[Nat]:
    """What an index divides by, on the whole and in its parts."""
    for atom in _atoms(value):
        yield from _divisors(atom.left)
        yield from _divisors(atom.right)
        if atom.symbol in ("/", "%"):
            yield atom.right


def _interval(value: Nat, index: NatVar, n: Nat) -> Interval:
    """Bounds of an index on an array of length `n`; sizes are not negative."""
    low, high = nat(0), nat(0)
    for monomial, coefficient in value.terms:
        ends = [_of_atom(atom, index, n) for atom in monomial]
        if all(is_at_least(least, 0) for least, _ in ends):
            least, most = prod((low for low, _ in ends), start=nat(1)), prod((high for _, high in ends), start=nat(1))
        else:
            corners = [prod(corner, start=nat(1)) for corner in product(*ends)]
            least, most = corners[0], corners[0]
            for corner in corners[1:]:
                least, most = minimum(least, corner), maximum(most, corner)
        if coefficient < 0:
            least, most = most, least
        low, high = low + coefficient * least, high + coefficient * most
    return low, high


def _of_atom(atom: Atom, index: NatVar, n: Nat) -> Interval:
    if isinstance(atom, NatVar):
        return (nat(0), n - 1) if atom == index else (nat(atom), nat(atom))
    if atom.symbol == "%":
        return nat(0), atom.right - 1
    low, high = _interval(atom.left, index, n)
    if atom.symbol == "/":
        return low // atom.right, high // atom.right
    other_low, other_high = _interval(atom.right, index, n)
    choose = minimum if atom.symbol == "min" else maximum
    return choose(low, other_low), choose(high, other_high)
