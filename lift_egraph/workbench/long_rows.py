"""Maps over few long rows that are folded: how many chunks a row is taken in, and the term in which it is.

A row's reduction is what its chunks give, by a map over rows and chunks that has enough elements for the device, and
then the reduction of these few. The term is built here as the rules of `lift_egraph.rules.rows` build it; that they do
is what the phase ``long_rows`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lift_egraph.algebra.expressions import scalars
from lift_egraph.algebra.laws import associative, commutative, neutral
from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Scalar
from lift_egraph.workbench.plan import length_of
from lift_egraph.workbench.remainders import part

RUN = 32  # the fewest elements of a chunk


@dataclass(frozen=True)
class Rows:
    """How long rows are taken apart on a device."""

    device: Device

    def chunks(self, rows: int, length: int, in_lanes: bool) -> int | None:
        """The chunks of each of so many rows; None where there are rows enough, or they are too short.

        Parameters
        ----------
        in_lanes
            Whether lanes of vectors have a chunk each; else neighbouring elements.
        """
        device = self.device
        lanes = (max(device.group_sizes, default=1) if device.has_groups else device.lanes) if in_lanes else 1
        if rows >= device.compute_units * max(lanes, 2):
            return None
        wanted = lanes * max(device.groups // rows, 1)
        while wanted > lanes and length // wanted < RUN:
            wanted -= lanes
        return wanted if length // wanted >= RUN else None


def folds(body: ir.Expr) -> Iterator[ir.Expr]:
    """The folds whose results a function's body needs in any case, and once: outside of all loops."""
    if isinstance(body, ir.FOLDS):
        yield body
    elif isinstance(body, ir.Call | ir.MakePair):
        for inner in ir.parts(body):
            if isinstance(inner, ir.Expr):
                yield from folds(inner)
    elif isinstance(body, ir.Apply):
        yield from folds(body.argument)


@dataclass
class LongRows:
    """Builds the term; `tiling` has the sizes of the chunks."""

    rows: Rows
    tiling: Tiling = field(default_factory=dict)

    def term(self, term: ir.Expr) -> ir.Expr:
        """A term outside of all loops, its parts one after the other."""
        match term:
            case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
                return ir.Apply(ir.Lambda(binder, self.term(body)), self.term(argument))
            case ir.Map(function=ir.Lambda(binder=binder, body=body), array=array) if is_pure(array):
                return self.map(binder, body, array)
        if is_pure(term):
            return term
        return ir.map_parts(term, lambda p: self.term(p) if isinstance(p, ir.Expr) else p)

    def map(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """A map of a function with this body."""
        found = [(fold, chunks) for fold in folds(body) if (chunks := self.chunks_of(fold, length_of(xs)))]
        if not found:
            return ir.Map(ir.Lambda(p, body), xs)
        match body:
            case ir.MakePair(first=a, second=b):
                return ir.Zip(self.map(p, a, xs), self.map(p, b, xs))
            case ir.Call(op=op, arguments=(a, b)) if len(found) > 1:
                x, y = ir.Var("x", type_of(a)), ir.Var("y", type_of(b))
                both = ir.Lambda(ir.PairBinder(x, y), ir.Call(op, (x, y)))
                return ir.Map(both, ir.Zip(self.map(p, a, xs), self.map(p, b, xs)))
            case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c) if len(found) > 1 or not _is_scalar(body):
                return ir.Map(ir.Lambda(ir.PairBinder(q, p), b), ir.Zip(self.map(p, c, xs), xs))
        if len(found) > 1:
            return ir.Map(ir.Lambda(p, body), xs)
        ((fold, chunks),) = found
        assert isinstance(fold, ir.Reduce)
        return self.chunked(p, body, xs, fold, chunks)

    def chunks_of(self, fold: ir.Expr, rows: int) -> int | None:
        """The chunks in which a fold of each row is computed, if it is a reduction that can be."""
        if not isinstance(fold, ir.Reduce) or not rows:
            return None
        mapped = fold.array.array if isinstance(fold.array, ir.Map) else fold.array
        in_lanes = not isinstance(type_of(fold.initial), Scalar) or not commutative(fold.operator)
        chunks = self.rows.chunks(rows, length_of(fold.array), in_lanes)
        may_be_taken_apart = associative(fold.operator) and neutral(fold.operator, fold.initial)
        return chunks if is_pure(mapped) and may_be_taken_apart else None

    def chunked(self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, fold: ir.Reduce, chunks: int) -> ir.Expr:
        """A map of a function with one reduction, in so many chunks and a rest."""
        op, z, array = fold.operator, fold.initial, fold.array
        n = length_of(array)
        chunk = n // chunks
        whole, rest = chunk * chunks, n - chunk * chunks
        self.tiling |= {n: (chunk,), whole: (chunk,)}
        g, elements = (array.function, array.array) if isinstance(array, ir.Map) else (None, array)
        first = part(0, whole, elements) if rest else elements
        c = ir.Var("chunk", type_of(ir.Split(nat(chunk), first)).element)  # pyright: ignore
        own = ir.Reduce(op, z, ir.Map(g, c) if g else c)
        partial = ir.Map(ir.Lambda(p, ir.Map(ir.Lambda(c, own), ir.Split(nat(chunk), first))), xs)
        s = ir.Var("partial", type_of(partial).element)  # pyright: ignore
        if body is fold and not rest:
            return ir.Map(ir.Lambda(s, ir.Reduce(op, z, s)), partial)
        x = ir.Var("total", type_of(z))
        total = ir.Reduce(op, x, part(whole, rest, array)) if rest else x
        let = ir.Apply(ir.Lambda(x, _with(body, fold, total)), ir.Reduce(op, z, s))
        return ir.Map(ir.Lambda(ir.PairBinder(s, p), let), ir.Zip(partial, xs))


def _is_scalar(body: ir.Expr) -> bool:
    return scalars(type_of(body)) is not None


def _with(body: ir.Expr, fold: ir.Expr, instead: ir.Expr) -> ir.Expr:
    """The body with another term for a fold of it."""
    if body is fold:
        return instead
    return ir.map_parts(body, lambda p: _with(p, fold, instead) if isinstance(p, ir.Expr) else p)
