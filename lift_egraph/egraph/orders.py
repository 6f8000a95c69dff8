"""Orders of access as terms: reversal, strides, shifts and index functions, one after the other and undone.

`order_form` recognises the order that an index function is at the length of its array, so that orders are equal by what
they do there and not by spelling; `reordered` reads an order back as a term that applies it to an array.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.index_arrays import REVERSE, order_at
from lift_egraph.language.nat import Nat, nat


class KnownOrder(NamedTuple):
    """An order as an operation of the e-graph, applied to numbers, a text, or other orders.

    Attributes
    ----------
    op
        ``Order_identity``, ``Order_reverse``, ``Order_stride`` of a stride and how many elements it has,
        ``Order_shift`` of a distance and the length of the array, ``Order_of`` the text of an index function,
        ``Order_then`` of two orders, the second of which is applied to the index that the first gives, or
        ``Order_inverse`` of a permutation.
    """

    op: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return WORDS[self.op].format(*self.arguments)


WORDS = {
    "Order_identity": "i", "Order_reverse": "reverse", "Order_stride": "stride {0}", "Order_shift": "shift {0}",
    "Order_of": "{0}", "Order_then": "({0} then {1})", "Order_inverse": "inverse {0}",
}  # fmt: skip

IDENTITY = KnownOrder("Order_identity")
REVERSED = KnownOrder("Order_reverse")


@lru_cache(maxsize=4096)
def read_order(text: str) -> ir.IndexFunction:
    """The index function of a text over the variable ``i``."""
    from lift_egraph.language.syntax import parse_size

    return ir.IndexFunction("i", parse_size(text))


def index_function(order: KnownOrder) -> ir.IndexFunction:
    """The index function of an order that is neither of others.

    Examples
    --------
    >>> print(index_function(KnownOrder("Order_stride", (4, 2))).body)
    2 * (i % 4) + (i / 4)
    """
    i = nat("i")
    match order:
        case KnownOrder("Order_identity"):
            return ir.IndexFunction("i", i)
        case KnownOrder("Order_reverse"):
            return REVERSE
        case KnownOrder("Order_stride", (stride, count)):
            return ir.IndexFunction("i", count * (i % stride) + i // stride)
        case KnownOrder("Order_shift", (distance, length)):
            return ir.IndexFunction("i", (i + distance) % length)
    assert order.op == "Order_of", order
    return read_order(order.arguments[0])


def order_form(function: ir.IndexFunction, size: Nat) -> KnownOrder:
    """The order that an index function is in an array of this size.

    Examples
    --------
    >>> half = ir.IndexFunction("j", (nat("j") + nat("n") // 2) % nat("n"))
    >>> order_form(half, nat(8))
    KnownOrder(op='Order_shift', arguments=(4, 8))
    """
    at_size = order_at(function, size)
    if at_size == REVERSE:
        return REVERSED
    length = size.constant
    for known in _candidates(at_size, length) if length else (IDENTITY,):
        if order_at(index_function(known), size) == at_size:
            return known
    return KnownOrder("Order_of", (str(at_size.body),))


def _candidates(function: ir.IndexFunction, length: int) -> tuple[KnownOrder, ...]:
    """What an order may be, from where the first two elements come from: the others tell whether it is."""
    try:
        first, second = (function.body.evaluate({function.variable: i}) for i in (0, 1))
    except (LiftError, ZeroDivisionError):
        return (IDENTITY,)
    shift = (KnownOrder("Order_shift", (first, length)),) if 0 < first < length else ()
    is_count = 1 < second < length and length % second == 0
    return (IDENTITY, *shift, *((KnownOrder("Order_stride", (length // second, second)),) if is_count else ()))


def reordered(order: KnownOrder, array: ir.Expr, *, backwards: bool = False) -> ir.Expr:
    """An array in an order; `backwards`, the array that is this one in the order, which is then a permutation."""
    match order:
        case KnownOrder("Order_then", (first, second)):
            near, far = (second, first) if backwards else (first, second)
            return reordered(near, reordered(far, array, backwards=backwards), backwards=backwards)
        case KnownOrder("Order_inverse", (permutation,)):
            return reordered(permutation, array, backwards=not backwards)
    return (ir.Scatter if backwards else ir.Gather)(index_function(order), array)
