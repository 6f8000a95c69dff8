"""How large the numbers in a kernel's index arithmetic can become, as expressions of the open sizes.

Kernels with sizes as arguments compute indices in 32 bits, like those with constants whose range is known to fit.
What must not exceed 32 bits is collected here; whoever binds the sizes checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from lift_egraph.codegen.c_ast import Body, Computed, For
from lift_egraph.codegen.c_walk import walk
from lift_egraph.language.nat import Atom, Nat, NatVar, Operation, is_at_least, maximum, nat

INT_MAX = 2**31 - 1


def largest_values(body: Body, sizes: Iterable[Nat]) -> list[Nat]:
    """Upper bounds of everything that the indices of a body compute on the way, without those that others cover.

    The sizes themselves are known to fit.

    Bounds that are numbers are left out: where those leave 32 bits the kernel's text computes in 64.
    """
    found: dict[Nat, None] = {}
    limits = {s.variable.name: _most(s.count) * s.step - 1 for s in walk(body) if isinstance(s, For)}
    for part in walk(body):
        if isinstance(part, Nat):
            for bound in _bounds(part, limits):
                if bound.constant is None:
                    found[bound] = None
    fitting = tuple(sizes)
    kept: list[Nat] = []
    for bound in found:
        if any(is_at_least(size, bound) for size in fitting):
            continue
        if not any(other != bound and is_at_least(other, bound) for other in kept):
            kept = [other for other in kept if not is_at_least(bound, other)] + [bound]
    return kept


def _most(count: Nat) -> Nat:
    """An upper bound of a count that data may decide."""
    known = {v.name: v.below - 1 for v in count.variables if isinstance(v, Computed) and v.below is not None}
    return count.substitute(known) if known else count


def _bounds(value: Nat, limits: Mapping[str, Nat]) -> Iterator[Nat]:
    """Bounds of the sum of the positive terms, of that of the negative ones, and of what stands inside."""
    yield from (_sum(value, sign, limits) for sign in (1, -1))
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Operation):
                yield from _bounds(atom.left, limits)
                yield from _bounds(atom.right, limits)
                if atom.symbol in ("/", "%") and not is_at_least(atom.left, 0):
                    # the rest of a negative number in C, made positive: see `index_text`
                    yield 2 * _magnitude(atom.right, limits) - 1
                    if atom.symbol == "/":
                        yield _magnitude(atom.left, limits) + _magnitude(atom.right, limits) - 1


def _sum(value: Nat, sign: int, limits: Mapping[str, Nat]) -> Nat:
    """An upper bound of the absolute value of the sum of the terms with a sign."""
    terms = [(m, abs(c)) for m, c in value.terms if c * sign > 0]
    return sum((c * prod((_size(a, limits) for a in m), start=nat(1)) for m, c in terms), start=nat(0))


def _size(atom: Atom, limits: Mapping[str, Nat]) -> Nat:
    """An upper bound of an atom's absolute value."""
    if isinstance(atom, NatVar):
        if atom.name in limits:
            high = limits[atom.name].range[1]
            return limits[atom.name] if high is None else maximum(nat(high), 0)
        if isinstance(atom, Computed) and atom.below is not None:
            return atom.below - 1
        if isinstance(atom, Computed) and atom.high is None:
            return nat(INT_MAX)  # any number that the data holds; it is clamped at once
        if atom.high is None:
            return nat(atom)
        return nat(max(abs(atom.low or 0), abs(atom.high)))
    left = _magnitude(atom.left, limits)
    if atom.symbol == "%":
        return _magnitude(atom.right, limits)
    if atom.symbol == "/":
        return left // maximum(atom.right, 1)
    right = _magnitude(atom.right, limits)
    if atom.symbol == "min" and is_at_least(atom.left, 0):
        return right
    return maximum(left, right)


def _magnitude(value: Nat, limits: Mapping[str, Nat]) -> Nat:
    positive, negative = (_sum(value, sign, limits) for sign in (1, -1))
    return positive if not negative.terms else maximum(positive, negative)
