"""Computed places of arrays: how an element is read there, and which places are sums of multiples of variables.

Source: Feautrier, "Dataflow analysis of array and scalar references", 1991 (affine places of loops).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from lift_egraph.language import ir
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import I32

Place = ir.Expr | Nat  # computed, or known
Bounds = Mapping[ir.Var, Nat | None]  # of variables: how many places they count, from 0 on, if they do that


def looked_up_in(array: ir.Expr, place: Place) -> ir.Expr:
    """The element of an array at a place: what ``xs[i]`` means."""
    if isinstance(place, Nat):
        return ir.At(place, array)
    return ir.At(nat(0), ir.Lookup(ir.Fill(nat(1), place), array))


def computed_place(term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    """The array and the computed place of an element that is `looked_up_in` it; None for other terms."""
    match term:
        case ir.At(index=at, array=ir.Lookup(indices=ir.Fill(value=place), array=array)) if at == nat(0):
            return array, place
    return None


@dataclass(frozen=True)
class Affine:
    """A place beside that of a loop: multiples of what loops inside of it count, and a size."""

    counts: tuple[tuple[ir.Var, int], ...]
    start: Nat

    def ends(self, bounds: Bounds) -> tuple[Nat, Nat]:
        """The first and the last of these places."""
        last = self.start
        for v, times in self.counts:
            last = last + times * ((bounds[v] or nat(1)) - 1)
        return self.start, last

    def after(self, first: Nat) -> Place:
        """The place, counted from another one."""
        start = self.start - first
        if not self.counts:
            return start
        terms = [v if times == 1 else ir.Call("mul", (ir.Literal(times, I32), v)) for v, times in self.counts]
        return reduce(_plus, terms if start == nat(0) else [*terms, _number(start)])


def affine(place: ir.Expr) -> Affine | None:
    """A place as a sum of multiples of variables and a size, if it is one."""
    match place:
        case ir.Literal(value=int() as number):
            return Affine((), nat(number))
        case ir.SizeLiteral(size=size):
            return Affine((), size)
        case ir.Var():
            return Affine(((place, 1),), nat(0))
        case ir.Call(op="add" | "sub" | "mul" as op, arguments=(a, b)):
            left, right = affine(a), affine(b)
            if left is None or right is None:
                return None
            if op != "mul":
                return _sum(left, right, 1) if op == "add" else difference(left, right)
            for number, of in ((left, right), (right, left)):
                if not number.counts and (times := number.start.constant) is not None:
                    return _sum(Affine((), nat(0)), of, times)
    return None


def difference(left: Affine, right: Affine) -> Affine:
    """How far one place is behind another."""
    return _sum(left, right, -1)


def _sum(left: Affine, right: Affine, times: int) -> Affine:
    counts = dict(left.counts)
    for v, own in right.counts:
        counts[v] = counts.get(v, 0) + times * own
    named = sorted(((v, c) for v, c in counts.items() if c), key=lambda item: item[0].name)
    return Affine(tuple(named), left.start + times * right.start)


def _plus(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Call("add", (a, b))


def _number(size: Nat) -> ir.Expr:
    return ir.SizeLiteral(size) if size.constant is None else ir.Literal(size.constant, I32)
