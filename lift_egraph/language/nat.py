"""Sizes and index expressions: integer polynomials in normal form, with ranges.

One class, `Nat`, serves both the sizes in types (``M``, ``N/4``) and the indices in kernels
(``4*i + j``). A value is a sum of terms, each an integer coefficient times a product of atoms;
atoms are variables (which know their range) and the non-polynomial operations floor division,
modulo, minimum and maximum. Equal polynomials are equal objects, so ``==`` decides size
equality. Simplification uses ranges: ``(4*i + j) / 4`` is ``i`` where ``0 <= j < 4``.

Source: 000 §4.3.3 (simplifying array accesses).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from numbers import Integral
from operator import add, attrgetter, floordiv, mod, mul, sub
from typing import Union

from lift_egraph.caching import cached_property, hashed_once
from lift_egraph.errors import SizeProblem

Bound = int | None  # None: unbounded on that side


@dataclass(frozen=True)
class NatVar:
    """A size or index variable with its inclusive range ``low <= name <= high``.

    `below` is a bound that is no number: ``name < below``, as for the index of a loop over an open size.
    """

    name: str
    low: Bound = 0
    high: Bound = None
    below: Nat | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        cls.__hash__ = NatVar.__hash__  # else a dataclass would make one of all its fields

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def key(self) -> tuple[int, str]:
        """What atoms are ordered by."""
        return 0, self.name

    def range(self) -> tuple[Bound, Bound]:
        return self.low, self.high

    def __str__(self) -> str:
        return self.name


@hashed_once
@dataclass(frozen=True)
class Operation:
    """``left op right`` for the operations that polynomials lack: ``/``, ``%``, ``min``, ``max``."""

    symbol: str
    left: Nat
    right: Nat

    @cached_property
    def key(self) -> tuple[int, str]:
        """What atoms are ordered by."""
        return 1, str(self)

    def range(self) -> tuple[Bound, Bound]:
        low, high = self.left.range
        if self.symbol == "/":
            # only by positive divisors; the quotient shrinks toward zero with the divisor
            d_low, d_high = self.right.range
            smallest = max(d_low or 1, 1)
            q_low = None if low is None else (low // smallest if low < 0 else (low // d_high if d_high else 0))
            q_high = None if high is None else (high // smallest if high >= 0 else -1)
            return q_low, q_high
        if self.symbol == "%":
            d_high = self.right.range[1]
            top = None if d_high is None else d_high - 1
            if low is not None and low >= 0 and high is not None:
                top = high if top is None else min(high, top)
            return 0, top
        r_low, r_high = self.right.range
        lows, highs = (low, r_low), (high, r_high)
        if self.symbol == "min":
            known = [h for h in highs if h is not None]
            return (None if None in lows else min(lows)), (min(known) if known else None)  # pyright: ignore
        known = [x for x in lows if x is not None]
        return (max(known) if known else None), (None if None in highs else max(highs))  # pyright: ignore

    def __str__(self) -> str:
        if self.symbol in ("min", "max"):
            return f"{self.symbol}({self.left}, {self.right})"
        return f"{_parenthesised(self.left)} {self.symbol} {_parenthesised(self.right)}"


Atom = Union[NatVar, Operation]
Monomial = tuple[Atom, ...]  # sorted; a repeated atom is a power


_atom_key = attrgetter("key")


def _parenthesised(value: Nat) -> str:
    text = str(value)
    return text if value.is_atomic else f"({text})"


@hashed_once
@dataclass(frozen=True, eq=False)
class Nat:
    """An integer expression in normal form.

    Build one with `nat` and the operators ``+ - * // %``, and with `minimum` and `maximum`;
    never from `terms` directly.

    Examples
    --------
    >>> i, j = nat(NatVar("i", 0, 9)), nat(NatVar("j", 0, 3))
    >>> print((4 * i + j) // 4, (4 * i + j) % 4)
    i j
    >>> N = nat("N")
    >>> 4 * (N // 4) + N % 4 == N
    True
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:
        return hash(self.terms)

    def __eq__(self, other: object) -> bool:
        return self.terms == other.terms if isinstance(other, Nat) else NotImplemented

    @property
    def is_atomic(self) -> bool:
        if len(self.terms) != 1:
            return not self.terms
        monomial, coefficient = self.terms[0]
        if not monomial:
            return coefficient >= 0
        (atom, *others) = monomial
        return coefficient == 1 and not others and (isinstance(atom, NatVar) or atom.symbol in ("min", "max"))

    @cached_property
    def constant(self) -> int | None:
        """The value, if this is a number."""
        if not self.terms:
            return 0
        monomial, coefficient = self.terms[0]
        return coefficient if len(self.terms) == 1 and not monomial else None

    @cached_property
    def range(self) -> tuple[Bound, Bound]:
        """Inclusive bounds that hold for all values of the variables in their ranges."""
        low: Bound = 0
        high: Bound = 0
        for monomial, coefficient in self.terms:
            t_low, t_high = _product_range(monomial, coefficient)
            low = None if low is None or t_low is None else low + t_low
            high = None if high is None or t_high is None else high + t_high
        return low, high

    @cached_property
    def variables(self) -> frozenset[NatVar]:
        found: set[NatVar] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, NatVar):
                    found.add(atom)
                else:
                    found |= atom.left.variables | atom.right.variables
        return frozenset(found)

    @property
    def mentioned(self) -> frozenset[NatVar]:
        """The variables in the text of this expression; the value depends on no others."""
        return self.variables

    def __add__(self, other: NatLike) -> Nat:
        return _sum(self, other if isinstance(other, Nat) else _nat(other), 1)

    @cached_property
    def _apart(self) -> tuple[tuple[tuple[Monomial, int], ...], int] | None:
        """All terms but the number, which stands last, and that; None where a remainder may be merged with a sum."""
        if any(type(atom) is Operation and atom.symbol == "%" for monomial, _ in self.terms for atom in monomial):
            return None
        if self.terms and not self.terms[-1][0]:
            return self.terms[:-1], self.terms[-1][1]
        return self.terms, 0

    def plus(self, number: int) -> Nat:
        """The sum with a number, as ``+`` makes it: where nothing can be merged, no other term changes."""
        if self._apart is None:
            return _normal({**dict(self.terms), (): dict(self.terms).get((), 0) + number})
        others, own = self._apart
        return Nat(_with_number(others, own + number))

    def beyond(self, other: Nat) -> int | None:
        """The difference to another expression, if that is a number."""
        if self._apart is None or other._apart is None:
            return (self - other).constant
        (others, own), (of_other, number) = self._apart, other._apart
        return own - number if others == of_other else None

    def __radd__(self, other: NatLike) -> Nat:
        return nat(other) + self

    def __sub__(self, other: NatLike) -> Nat:
        return _sum(self, other if isinstance(other, Nat) else _nat(other), -1)

    def __rsub__(self, other: NatLike) -> Nat:
        return nat(other) - self

    def __neg__(self) -> Nat:
        return nat(0) - self

    def __mul__(self, other: NatLike) -> Nat:
        right = nat(other)
        for value, factor in ((self, right.constant), (right, self.constant)):
            if factor is not None:
                return Nat(tuple([(m, factor * c) for m, c in value.terms]) if factor else ())
        total: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in right.terms:
                key = tuple(sorted(m1 + m2, key=_atom_key))
                total[key] = total.get(key, 0) + c1 * c2
        return _normal(total)

    def __rmul__(self, other: NatLike) -> Nat:
        return self * other

    def __floordiv__(self, other: NatLike) -> Nat:
        return _floor_div(self, nat(other))

    def __truediv__(self, other: object) -> Nat:
        """As ``//``: sizes have no fractions, and in the text form, too, ``/`` rounds down."""
        return self // other if isinstance(other, Nat | int | str) else NotImplemented

    def __rfloordiv__(self, other: NatLike) -> Nat:
        return nat(other) // self

    def __mod__(self, other: NatLike) -> Nat:
        if type(other) is int and other > 0 and type(self) is Nat:  # how far behind an aligned place: asked often
            uneven = [(m, c) for m, c in self.terms if c % other]
            if not uneven or (len(uneven) == 1 and not uneven[0][0]):
                return _nat(uneven[0][1] % other if uneven else 0)
        return _modulo(self, nat(other))

    def __rmod__(self, other: NatLike) -> Nat:
        return nat(other) % self

    @classmethod
    def extreme(cls, symbol: str, left: Nat, right: Nat) -> Nat:
        """The ``min`` or ``max`` of two expressions."""
        return _extreme(symbol, left, right)

    def substitute(self, values: Mapping[str, NatLike]) -> Nat:
        """This expression with variables replaced by name, in normal form again."""
        if values.keys().isdisjoint([v.name for v in self.variables]):
            return self
        total: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            if not any(_has_value(atom, values) for atom in monomial):
                total[monomial] = total.get(monomial, 0) + coefficient
                continue
            product = _substitute_atom(monomial[0], values)
            for atom in monomial[1:]:
                product = product * _substitute_atom(atom, values)
            if type(product) is not Nat:  # it may remember how it is added
                return self._of_atoms(lambda atom: _substitute_atom(atom, values))
            for m, c in product.terms:
                total[m] = total.get(m, 0) + coefficient * c
        return _normal(total)

    def rebuild(self, replace: Callable[[Atom], Nat | None]) -> Nat:
        """This expression with some atoms replaced (``None`` keeps an atom), innermost last."""

        def rebuilt(atom: Atom) -> Nat:
            new = replace(atom)
            if new is not None or isinstance(atom, NatVar):
                return nat(atom) if new is None else new
            return operate(atom.symbol, atom.left.rebuild(replace), atom.right.rebuild(replace))

        return self._of_atoms(rebuilt)

    def _of_atoms(self, value_of: Callable[[Atom], Nat]) -> Nat:
        """The sum of products of what stands for each atom."""
        products: list[Nat] = []
        for monomial, coefficient in self.terms:
            product = nat(coefficient)
            for atom in monomial:
                product = product * value_of(atom)
            products.append(product)
        if any(type(product) is not Nat for product in products):  # they may remember how they are added
            return sum(products, nat(0))
        total: dict[Monomial, int] = {}
        for product in products:
            for m, c in product.terms:
                total[m] = total.get(m, 0) + c
        return _normal(total)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The number this is for given values of all its variables.

        Raises
        ------
        SizeProblem
            If a variable has no value.
        """
        try:
            return _value(self, values)
        except KeyError:
            missing = sorted(v.name for v in self.variables if v.name not in values)
            raise SizeProblem(f"no value is given for {', '.join(missing)} in the size {self}") from None

    def coefficient_of(self, variable: NatVar) -> Nat | None:
        """The ``c`` of ``c * variable + rest`` if the expression is affine in the variable, else None."""
        slope = nat(0)
        for monomial, coefficient in self.terms:
            count = monomial.count(variable)
            others = tuple([a for a in monomial if a != variable]) if count else monomial
            if count > 1 or any(isinstance(a, Operation) and variable in nat(a).variables for a in others):
                return None
            if count == 1:
                slope = slope + _normal({others: coefficient})
        return slope

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in self.terms:
            factors = [str(a) if isinstance(a, NatVar) or a.symbol in ("min", "max") else f"({a})" for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            product = " * ".join(factors)
            if len(self.terms) == 1 and coefficient == 1 and len(monomial) == 1:
                product = str(monomial[0])
            if not text:
                text = ("-" if coefficient < 0 else "") + product
            else:
                text += (" - " if coefficient < 0 else " + ") + product
        return text

    def __repr__(self) -> str:
        return f"nat({str(self)!r})"


NatLike = Union[Nat, NatVar, Operation, int, str]


def nat(value: NatLike) -> Nat:
    """A `Nat` from a number, a variable or a variable's name."""
    return value if isinstance(value, Nat) else _nat(value)


@lru_cache(maxsize=65536)
def _nat(value: Union[NatVar, Operation, int, str]) -> Nat:
    if isinstance(value, int):
        return Nat((((), int(value)),) if value else ())
    if isinstance(value, str):
        return _nat(NatVar(value))
    if isinstance(value, Integral):  # NumPy's
        return _nat(int(value))
    if not isinstance(value, NatVar | Operation):
        raise SizeProblem(f"expected a size, got {value!r}; beside a size, a term stands first")
    return Nat((((value,), 1),))


ARITHMETIC: dict[str, Callable[[Nat, Nat], Nat]] = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod}
"""The signs that stand between sizes."""


def operations(value: Nat) -> Iterator[Operation]:
    """The operations in an expression, also in the operands of others."""
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Operation):
                yield atom
                yield from operations(atom.left)
                yield from operations(atom.right)


def minimum(left: NatLike, right: NatLike) -> Nat:
    """The smaller of two expressions, decided by ranges where they tell."""
    return operate("min", nat(left), nat(right))


def maximum(left: NatLike, right: NatLike) -> Nat:
    """The larger of two expressions, decided by ranges where they tell."""
    return operate("max", nat(left), nat(right))


def operate(symbol: str, left: Nat, right: Nat) -> Nat:
    """``left symbol right`` in normal form, for ``min``, ``max`` and the signs of `ARITHMETIC`."""
    if symbol in ARITHMETIC:
        return ARITHMETIC[symbol](left, right)
    return (type(right) if type(left) is Nat else type(left)).extreme(symbol, left, right)


def is_less(left: NatLike, right: NatLike) -> bool:
    """Whether ``left < right`` follows from the ranges of the variables (False: not known)."""
    return _is_at_least_number(nat(right) - nat(left), 1)


def is_at_least(left: NatLike, right: NatLike) -> bool:
    """Whether ``left >= right`` follows from the ranges of the variables (False: not known)."""
    return _is_at_least_number(nat(left) - nat(right), 0)


def _is_at_least_number(value: Nat, number: int) -> bool:
    """Whether ``value >= number`` for all values of its variables within their ranges and bounds.

    Variables with a bound that is no number are replaced by what makes the value least, so the bounds of one
    variable meet those of others: ``N - i - 1 >= 0`` for ``i < N``.
    """
    low = value.range[0]
    if low is not None:
        return low >= number
    bounded = [v for v in value.variables if v.below is not None and v.low is not None]
    for variable in sorted(bounded, key=lambda v: v.name):
        slope = value.coefficient_of(variable)
        if slope is None:
            continue
        low, high = slope.range
        if low is not None and low >= 0:
            return _is_at_least_number(value.substitute({variable.name: variable.low or 0}), number)
        if high is not None and high <= 0 and variable.below is not None:
            return _is_at_least_number(value.substitute({variable.name: variable.below - 1}), number)
    return False


def divides(divisor: NatLike, value: NatLike) -> bool | None:
    """Whether the divisor divides the value: True, False, or None where that is open."""
    rest = nat(value) % nat(divisor)
    if rest.constant is not None:
        return rest.constant == 0
    return None


def may_be_equal(left: NatLike, right: NatLike) -> bool:
    """Whether two sizes are equal wherever all divisors in them divide: ``4 * (n / 4)`` and ``n``."""
    return not _times_divisors(nat(left) - nat(right)).terms


def _times_divisors(value: Nat) -> Nat:
    """A value without quotients outside of other operations, multiplied by their divisors as if these divided."""
    for atom in (a for monomial, _ in value.terms for a in monomial):
        if isinstance(atom, Operation) and atom.symbol == "/":
            most, total = max(monomial.count(atom) for monomial, _ in value.terms), nat(0)
            for monomial, coefficient in value.terms:
                times = monomial.count(atom)
                rest = _normal({tuple(a for a in monomial if a != atom): coefficient})
                for factor in (*(atom.left,) * times, *(atom.right,) * (most - times)):
                    rest = rest * factor
                total = total + rest
            return _times_divisors(total)
    return value


def _has_value(atom: Atom, values: Mapping[str, NatLike]) -> bool:
    if isinstance(atom, NatVar):
        return atom.name in values
    return not values.keys().isdisjoint([v.name for side in (atom.left, atom.right) for v in side.variables])


def _substitute_atom(atom: Atom, values: Mapping[str, NatLike]) -> Nat:
    if isinstance(atom, NatVar):
        return nat(values[atom.name]) if atom.name in values else nat(atom)
    return operate(atom.symbol, atom.left.substitute(values), atom.right.substitute(values))


def _value(value: Nat, values: Mapping[str, int]) -> int:
    total = 0
    for monomial, coefficient in value.terms:
        for atom in monomial:
            coefficient *= values[atom.name] if isinstance(atom, NatVar) else _result(atom, values)
        total += coefficient
    return total


def _result(atom: Operation, values: Mapping[str, int]) -> int:
    left, right = _value(atom.left, values), _value(atom.right, values)
    if atom.symbol in ("min", "max"):
        return min(left, right) if atom.symbol == "min" else max(left, right)
    if right == 0:
        what = "division" if atom.symbol == "/" else "remainder"
        raise SizeProblem(f"{what} of the size {left} by zero")
    return left // right if atom.symbol == "/" else left % right


def _product_range(monomial: Monomial, coefficient: int) -> tuple[Bound, Bound]:
    low: Bound = coefficient
    high: Bound = coefficient
    for atom in monomial:
        a_low, a_high = atom.range()
        if low is not None and high is not None and a_low is not None and a_high is not None:
            corners = [low * a_low, low * a_high, high * a_low, high * a_high]
            low, high = min(corners), max(corners)
        elif a_low is not None and a_low >= 0 and low is not None and low >= 0:
            low, high = low * a_low, None
        elif a_low is not None and a_low >= 0 and high is not None and high <= 0:
            low, high = None, high * a_low
        else:
            low, high = None, None
    return low, high


def _with_number(terms: tuple[tuple[Monomial, int], ...], number: int) -> tuple[tuple[Monomial, int], ...]:
    return (*terms, ((), number)) if number else terms


def _normal(total: dict[Monomial, int]) -> Nat:
    kept = {m: c for m, c in total.items() if c}
    if len(kept) < 2:
        return Nat(tuple(kept.items()))
    while _merge_quotient_and_rest(kept):
        pass
    ordered = sorted(kept.items(), key=lambda mc: (-len(mc[0]) if mc[0] else 1, [_atom_key(a) for a in mc[0]]))
    return Nat(tuple(ordered))


def _merge_quotient_and_rest(total: dict[Monomial, int]) -> bool:
    """Replace one ``c*b*(x/b) + c*(x%b)`` by ``c*x``."""
    for monomial, coefficient in total.items():
        for atom in monomial:
            if type(atom) is not Operation or atom.symbol != "%":
                continue
            rest = list(monomial)
            rest.remove(atom)
            scaled = _scale(_floor_div(atom.left, atom.right) * atom.right, tuple(rest), coefficient)
            if scaled and all(total.get(m) == c for m, c in scaled.items()):
                del total[monomial]
                for m in scaled:
                    del total[m]
                for m, c in _scale(atom.left, tuple(rest), coefficient).items():
                    total[m] = total.get(m, 0) + c
                    if not total[m]:
                        del total[m]
                return True
    return False


def _scale(value: Nat, by: Monomial, coefficient: int) -> dict[Monomial, int]:
    return {tuple(sorted(m + by, key=_atom_key)): c * coefficient for m, c in value.terms}


def _sum(left: Nat, right: Nat, sign: int) -> Nat:
    if not right.terms:
        return left
    number = right.constant
    if number is not None and type(left) is Nat:
        return left.plus(sign * number)
    total = dict(left.terms)
    for monomial, coefficient in right.terms:
        total[monomial] = total.get(monomial, 0) + sign * coefficient
    return _normal(total)


def _extreme(symbol: str, left: Nat, right: Nat) -> Nat:
    if left == right or is_at_least(right, left):
        return left if symbol == "min" else right
    if is_at_least(left, right):
        return right if symbol == "min" else left
    return nat(Operation(symbol, left, right))


def _exact_monomial(monomial: Monomial, coefficient: int, divisor: Nat) -> Nat | None:
    """``coefficient * monomial / divisor`` where the divisor is one term that divides it."""
    if len(divisor.terms) != 1:
        return None
    d_monomial, d_coefficient = divisor.terms[0]
    if coefficient % d_coefficient:
        return None
    rest = list(monomial)
    for atom in d_monomial:
        if atom not in rest:
            return None
        rest.remove(atom)
    return _normal({tuple(rest): coefficient // d_coefficient})


def _split_by(value: Nat, divisor: Nat) -> tuple[Nat, Nat]:
    """``value = divisor * quotient + rest`` with as much as possible in the quotient."""
    if value == divisor:
        return nat(1), nat(0)
    number = divisor.constant
    if number and (apart := value._apart):  # nothing is merged: the terms go to the one or the other
        others, own = apart
        divided = tuple((m, c // number) for m, c in others if not c % number)
        left = others if not divided else tuple(term for term in others if term[1] % number)
        return Nat(_with_number(divided, own // number)), Nat(_with_number(left, own % number))
    quotient, rest = nat(0), nat(0)
    for monomial, coefficient in value.terms:
        exact = _exact_monomial(monomial, coefficient, divisor)
        if exact is not None:
            quotient = quotient + exact
        elif number and not monomial:
            quotient, rest = quotient + coefficient // number, rest + coefficient % number
        else:
            rest = rest + _normal({monomial: coefficient})
    return quotient, rest


def _is_rest(rest: Nat, divisor: Nat) -> bool:
    return is_at_least(rest, 0) and is_less(rest, divisor)


@lru_cache(maxsize=65536)
def _floor_div(value: Nat, divisor: Nat) -> Nat:
    number = divisor.constant
    if number == 0:
        raise SizeProblem(f"division of the size {value} by zero")
    if number == 1:
        return value
    if number is not None and value.constant is not None:
        return nat(value.constant // number)
    quotient, rest = _split_by(value, divisor)
    if rest.constant == 0 or _is_rest(rest, divisor):
        return quotient
    if quotient.terms:
        return quotient + _floor_div(rest, divisor)
    if number is not None and number > 0:
        common = _content(rest, number)
        if common > 1:
            return _floor_div(_normal({m: c // common for m, c in rest.terms}), nat(number // common))
        scaled = _in_multiples(rest, number)
        if scaled is not None:
            factor, multiples, _ = scaled
            return _floor_div(multiples, nat(number // factor))
        inner = _single_atom(rest)
        if isinstance(inner, Operation) and inner.symbol == "/" and (inner.right.range[0] or 0) > 0:
            return _floor_div(inner.left, inner.right * number)
        if isinstance(inner, Operation) and inner.symbol == "%" and divides(divisor, inner.right):
            return _modulo(_floor_div(inner.left, divisor), _floor_div(inner.right, divisor))
        if (times := _known_quotient(rest, number)) is not None:
            return nat(times)
    return nat(Operation("/", rest, divisor))


def _known_quotient(value: Nat, number: int) -> int | None:
    """How often a number goes into a value, if that is so for all that the value may be."""
    low, high = value.range
    known = low is not None and high is not None and low // number == high // number
    return low // number if known and low is not None else None


@lru_cache(maxsize=65536)
def _modulo(value: Nat, divisor: Nat) -> Nat:
    number = divisor.constant
    if number == 0:
        raise SizeProblem(f"remainder of the size {value} by zero")
    if number is not None and value.constant is not None:
        return nat(value.constant % number)
    _, rest = _split_by(value, divisor)
    if rest.constant == 0 or _is_rest(rest, divisor):
        return rest
    inside = _without_rests(rest, divisor)
    if inside is not rest:
        return _modulo(inside, divisor)
    if number is not None and number > 0:
        common = _content(rest, number)
        if common > 1:
            return common * _modulo(_normal({m: c // common for m, c in rest.terms}), nat(number // common))
        scaled = _in_multiples(rest, number)
        if scaled is not None:
            factor, multiples, remainder = scaled
            return factor * _modulo(multiples, nat(number // factor)) + remainder
        if (times := _known_quotient(rest, number)) is not None:
            return rest - times * number
    return nat(Operation("%", rest, divisor))


def _without_rests(value: Nat, divisor: Nat) -> Nat:
    """The sum with ``x`` for each ``x % m`` where the divisor divides ``m``, and with the rest of both operands of a
    minimum or maximum that have the same: the same, modulo the divisor.
    """
    total, found = nat(0), False
    for monomial, coefficient in value.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Operation) and atom.symbol == "%" and divides(divisor, atom.right):
            total, found = total + coefficient * atom.left, True
        elif isinstance(atom, Operation) and (rest := _rest_of_both(atom, divisor)) is not None:
            total, found = total + coefficient * rest, True
        else:
            total = total + _normal({monomial: coefficient})
    return total if found else value


def _rest_of_both(atom: Operation, divisor: Nat) -> int | None:
    """What both operands of a minimum or maximum leave, if that is the same number."""
    if atom.symbol not in ("min", "max"):
        return None
    left, right = (_modulo(operand, divisor).constant for operand in (atom.left, atom.right))
    return left if left == right else None


def _in_multiples(value: Nat, number: int) -> tuple[int, Nat, Nat] | None:
    """``value = factor * multiples + rest`` with ``0 <= rest < factor``, for a factor that divides the number.

    Then ``value / number = multiples / (number / factor)``: the four lanes of a vector lie in one row.
    """
    factors = {gcd(coefficient, number) for monomial, coefficient in value.terms if monomial}
    for factor in sorted(factors - {1, number}, reverse=True):
        multiples, rest = _split_by(value, nat(factor))
        if multiples.terms and _is_rest(rest, nat(factor)):
            return factor, multiples, rest
    return None


def _content(value: Nat, number: int) -> int:
    common = number
    for _, coefficient in value.terms:
        common = gcd(common, coefficient)
    return common


def _single_atom(value: Nat) -> Atom | None:
    if len(value.terms) == 1 and value.terms[0][1] == 1 and len(value.terms[0][0]) == 1:
        return value.terms[0][0][0]
    return None
