"""Index expressions that remember how they were put together, for kernels without index simplification.

A `PlainNat` is a `Nat`, in normal form like any other, that carries the expression it was computed from. Equality,
ranges and every decision of the code generator look at the normal form; only the printer asks for `left`, `right`
and `symbol`. The loop variables of a kernel are made with `plain`; what is computed from them stays plain.

Source: 000 §4.3.3, where Figure 4.6 shows an index before and after simplification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lift_egraph.language.nat import Atom, Nat, NatLike, NatVar, nat, operate

_NEUTRAL = {"+": 0, "-": 0, "*": 1}


@dataclass(frozen=True, eq=False, repr=False)
class PlainNat(Nat):
    """``left symbol right`` as it was written, beside its normal form; a leaf has no symbol.

    Examples
    --------
    >>> i, j = plain(NatVar("i", 0, 9)), plain(NatVar("j", 0, 3))
    >>> index = (i * 4 + j) // 4
    >>> print(index, "=", index.text())
    i = (i * 4 + j) / 4
    >>> index == nat(NatVar("i", 0, 9))
    True
    """

    symbol: str = ""
    left: Nat = field(default=nat(0))
    right: Nat = field(default=nat(0))

    __hash__: ClassVar[Callable[[Nat], int]] = Nat.__hash__  # pyright: ignore[reportIncompatibleVariableOverride]

    def __getstate__(self) -> dict[str, object]:
        return {"terms": self.terms, "symbol": self.symbol, "left": self.left, "right": self.right}

    @property
    def mentioned(self) -> frozenset[NatVar]:
        """The variables in the expression as written: simplification may have removed some."""
        return self.variables if not self.symbol else self.left.mentioned | self.right.mentioned

    def text(self) -> str:
        """The expression as written."""
        return _text(self)

    @classmethod
    def extreme(cls, symbol: str, left: Nat, right: Nat) -> Nat:
        return _node(symbol, left, right)

    # --- replacing ------------------------------------------------------------------------------

    def substitute(self, values: Mapping[str, NatLike]) -> Nat:
        if not any(v.name in values for v in self.mentioned):
            return self
        if not self.symbol:
            return simple(self).substitute(values)
        whole = simple(self).substitute({name: simple(nat(value)) for name, value in values.items()})
        return PlainNat(whole.terms, self.symbol, self.left.substitute(values), self.right.substitute(values))

    def rebuild(self, replace: Callable[[Atom], Nat | None]) -> Nat:
        """As for any `Nat`; where an operation is replaced, those parts of the written form that equal it are."""
        replaced: dict[Nat, Nat] = {}

        def noted(atom: Atom) -> Nat | None:
            new = replace(atom)
            if new is not None and not isinstance(atom, NatVar):
                replaced[nat(atom)] = new
            return None if new is None else simple(new)

        whole = simple(self).rebuild(noted)
        written = _rebuilt(self, replace, replaced)
        return _with_terms(whole, written) if simple(written) == whole else whole


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "floordiv"), ("%", "mod")):
    # the result's normal form, and this node on top
    setattr(PlainNat, f"__{_name}__", lambda self, other, sign=_sign: _node(sign, self, nat(other)))
    setattr(PlainNat, f"__r{_name}__", lambda self, other, sign=_sign: _node(sign, nat(other), self))


def plain(value: NatLike) -> PlainNat:
    """A leaf: what is computed from it is remembered."""
    return PlainNat(nat(value).terms)


def simple(value: Nat) -> Nat:
    """The normal form alone."""
    return Nat(value.terms) if isinstance(value, PlainNat) else value


def parts(value: Nat) -> tuple[str, Nat, Nat] | None:
    """Symbol and operands of the written form; None where there is only the normal form."""
    return (value.symbol, value.left, value.right) if isinstance(value, PlainNat) and value.symbol else None


def _node(symbol: str, left: Nat, right: Nat) -> Nat:
    neutral = _NEUTRAL.get(symbol)  # the sums that normal forms and addresses start from are nobody's
    if neutral is not None and type(right) is Nat and right.constant == neutral:
        return left
    if symbol in "+*" and type(left) is Nat and left.constant == neutral:
        return right
    return PlainNat(operate(symbol, simple(left), simple(right)).terms, symbol, left, right)


def _with_terms(whole: Nat, written: Nat) -> Nat:
    found = parts(written)
    return PlainNat(whole.terms, *found) if found else written


def _rebuilt(value: Nat, replace: Callable[[Atom], Nat | None], replaced: Mapping[Nat, Nat]) -> Nat:
    known = replaced.get(value)
    if known is not None:
        return known
    found = parts(value)
    if found is None:
        leaf = simple(value)
        return leaf.rebuild(lambda atom: replace(atom) if isinstance(atom, NatVar) else replaced.get(nat(atom)))
    symbol, left, right = found
    left, right = _rebuilt(left, replace, replaced), _rebuilt(right, replace, replaced)
    return PlainNat(operate(symbol, simple(left), simple(right)).terms, symbol, left, right)


def _text(value: Nat) -> str:
    found = parts(value)
    if found is None:
        return str(value)
    symbol, left, right = found
    if symbol in ("min", "max"):
        return f"{symbol}({_text(left)}, {_text(right)})"
    return f"{_operand(left, symbol, False)} {symbol} {_operand(right, symbol, True)}"


def _operand(value: Nat, symbol: str, is_right: bool) -> str:
    return _text(value) if binds_tighter(value, symbol, is_right) else f"({_text(value)})"


def binds_tighter(value: Nat, symbol: str, is_right: bool) -> bool:
    """Whether an operand of an operation reads the same without parentheses."""
    found = parts(value)
    if found is None:
        return value.is_atomic
    sums, products = ("+", "-"), ("*", "/", "%")
    if found[0] in ("min", "max") or (symbol in sums and found[0] in products):
        return True
    return not is_right and ((symbol in sums and found[0] in sums) or (symbol == "*" == found[0]))
