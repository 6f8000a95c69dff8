"""Folds whose accumulator is an array of a few elements as folds of a tuple of them.

The states of a hidden Markov model, a vector that matrices multiply, and a delay line are arrays by nature. What is
known of a fold is known of its accumulator's components, so these are taken apart, and what the operator does to the
array is written out for each element. The result is an array again. That is done to long folds alone, and where they
are parallel then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeVar, Union

from lift_egraph.algebra.expressions import MOST_LEAVES, binder_of, computed_once, right_nested, simplified
from lift_egraph.algebra.kept import is_parallel
from lift_egraph.algebra.laws import associative
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in
from lift_egraph.language.check import element_type, size_of, type_of
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.respelled import respelled
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.tuples import component
from lift_egraph.language.types import BOOL, I32, Array, DataType, Pair, Scalar

T = TypeVar("T", bound=ir.Part)
Value = Union[ir.Expr, "_Both", "list[Value]"]  # a list has the elements of an array
Known = Mapping[ir.Var, Value]
LONG = 1024  # elements of an array whose fold is worth it
MOST_STEPS = 400  # elements that are written out
OF_ONE_TYPE = (ir.Reduce, *ir.SCANS)  # whose elements are what their accumulator is


@dataclass(frozen=True)
class _Both:
    """A pair of which something is written out."""

    first: Value
    second: Value


class _NotWritten(LiftError):
    """An array of no known elements, or a pattern that hides them."""


def with_tuples_for_arrays(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program with each fold of an array of a few elements as one of a tuple, where it is long, and parallel then.

    Parameters
    ----------
    sizes
        Values for sizes, beside those of the program.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> step = "fun (s, x) => map(fun v => 0.5 * v + x, s)"
    >>> leaks = parse_program(f"program leaks(xs: [f32]N) where N = 9999 = reduceSeq({step}, fill(2, 1.0), xs)")
    >>> print(print_term(with_tuples_for_arrays(leaks).body))
    let (s5, s6) =
      reduceSeq(fun ((s1, s2), x) => (0.5 * s1 + x, 0.5 * s2 + x), (1.0, 1.0), xs) in
    concat(fill(1, s5), fill(1, s6))
    """
    known = {**dict(program.sizes), **(sizes or {})}
    return respelled(program, lambda named: _Folds(known, names_in(named)).of(named))


@dataclass
class _Folds:
    """Terms with their folds of arrays changed; `sizes` are those that have values, `taken` all names."""

    sizes: Mapping[str, int]
    taken: set[str]

    def of(self, term: T) -> T:
        made = ir.map_parts(term, self.of)
        if isinstance(made, ir.WHOLE_FOLDS) and isinstance(made.operator, ir.Lambda) and self.is_long(made.array):
            t = type_of(made.initial)
            if not _has_arrays(t) or not 0 < (self.count(t) or 0) <= MOST_LEAVES:
                return made
            try:
                t = self.closed(t)
                return self.changed(made, made.operator, t) or made  # pyright: ignore[reportReturnType]
            except LiftError:
                return made
        return made

    def is_long(self, array: ir.Expr) -> bool:
        return (size_of(array).substitute(self.sizes).constant or 0) >= LONG

    def count(self, t: DataType) -> int | None:
        """The scalars in a value of a type; None if they are not known, or vectors."""
        match t:
            case Scalar():
                return 1
            case Pair(first=a, second=b):
                one, other = self.count(a), self.count(b)
                return None if one is None or other is None else one + other
            case Array(size=n, element=element):
                length, each = n.substitute(self.sizes).constant, self.count(element)
                return None if length is None or each is None else length * each
        return None

    def closed(self, t: DataType) -> DataType:
        """A type with values for its sizes."""
        match t:
            case Pair(first=a, second=b):
                return Pair(self.closed(a), self.closed(b))
            case Array(size=n, element=element):
                return Array(n.substitute(self.sizes), self.closed(element))
        return t

    def changed(self, fold: ir.WholeFold, operator: ir.Lambda, t: DataType) -> ir.Expr | None:
        """A fold of a tuple, and the array that is made of it; None if it is no better."""
        is_of_one = isinstance(fold, OF_ONE_TYPE)
        variables, elements, results = (self.variables(t, operator) for _ in range(3))
        binder, body, first = operator.binder, operator.body, _shaped(t, variables)
        x = ir.Var(fresh_name("x", self.taken), element_type(fold.array))
        own: ir.Binder = binder_of(elements) if is_of_one else x
        element: Value = _shaped(t, elements) if is_of_one else x
        if isinstance(binder, ir.PairBinder) and not is_of_one:
            own, known = binder.second, dict(_bound(binder.first, first))
        else:
            known = dict(_bound(binder, _Both(first, element)))
        written = _Written(self.sizes)
        body = simplified(right_nested(written.leaves(written.of(body, known), t)))
        made = ir.Lambda(ir.PairBinder(binder_of(variables), own), computed_once(body))
        start, array = right_nested(written.leaves(fold.initial, t)), fold.array
        if is_of_one:
            array = ir.Map(ir.Lambda(x, right_nested(written.leaves(x, t))), array)
        if not (is_parallel(made) or (is_of_one and associative(made))):
            return None
        folded = replace(fold, operator=made, initial=start, array=array)
        back = ir.Lambda(binder_of(results), _packed(t, iter(results)))
        return ir.Apply(back, folded) if isinstance(fold, ir.Reduce | ir.ReduceSeq) else ir.Map(back, folded)

    def variables(self, t: DataType, operator: ir.Lambda) -> list[ir.Var]:
        """New ones for the scalars of a value, called as what binds it."""
        (first, *_) = ir.bound_variables(operator.binder)
        return [ir.Var(fresh_name(first.name, self.taken), scalar) for scalar in _scalars(t)]


def _has_arrays(t: DataType) -> bool:
    return isinstance(t, Array) or (isinstance(t, Pair) and (_has_arrays(t.first) or _has_arrays(t.second)))


def _scalars(t: DataType) -> Iterator[Scalar]:
    match t:
        case Pair(first=a, second=b):
            yield from _scalars(a)
            yield from _scalars(b)
        case Array(size=n, element=element):
            for _ in range(n.constant or 0):
                yield from _scalars(element)
        case Scalar():
            yield t


def _shaped(t: DataType, variables: Sequence[ir.Var]) -> Value:
    """A value of a type whose scalars are these."""
    left = iter(variables)

    def made(t: DataType) -> Value:
        match t:
            case Pair(first=a, second=b):
                return _Both(made(a), made(b))
            case Array(size=n, element=element):
                return [made(element) for _ in range(n.constant or 0)]
        return next(left)

    return made(t)


def _packed(t: DataType, left: Iterator[ir.Expr]) -> ir.Expr:
    """The same as a term."""
    match t:
        case Pair(first=a, second=b):
            return ir.MakePair(_packed(a, left), _packed(b, left))
        case Array(size=n, element=element):
            one = nat(1)
            return reduce(ir.Concat, [ir.Fill(one, _packed(element, left)) for _ in range(n.constant or 0)])
    return next(left)


def _bound(binder: ir.Binder, value: Value) -> Iterator[tuple[ir.Var, Value]]:
    if isinstance(binder, ir.Var):
        yield binder, value
    else:
        yield from _bound(binder.first, _part(0, value))
        yield from _bound(binder.second, _part(1, value))


def _part(index: int, value: Value) -> Value:
    if isinstance(value, _Both):
        return value.second if index else value.first
    assert isinstance(value, ir.Expr)
    return component(index, value)


def _decided(call: ir.Call) -> ir.Expr:
    """A comparison of places as what it gives, and a choice by that as what is chosen; other operations as they are."""
    match call:
        case ir.Call(op="select", arguments=(ir.Literal(value=value), a, b)):
            return a if value else b
        case ir.Call(op=op, arguments=(ir.Literal(value=a, type=t), ir.Literal(value=b))) if (
            t.is_integer and OPERATIONS[op].kind == "comparison"
        ):
            return ir.Literal(bool(OPERATIONS[op].meaning(a, b)), BOOL)
    return call


class _Written:
    """Writes out what a term makes of arrays whose elements are known, for each of its elements."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes, self.steps = sizes, 0

    def number(self, size: Nat) -> int:
        """The value of a size."""
        value = size.substitute(self.sizes).constant
        if value is None or value > MOST_STEPS:
            raise _NotWritten("its length is not known, or large")
        return value

    def of(self, term: ir.Expr, known: Known) -> Value:
        """The value of a term, for what variables are known to be."""
        if ir.free_variables(term).isdisjoint(known):
            return term
        match term:
            case ir.Var():
                return known[term]
            case ir.Apply(function=f, argument=argument):
                return self.applied(f, self.of(argument, known), known)
            case ir.Component(index=i, pair=pair):
                return _part(i, self.of(pair, known))
            case ir.MakePair(first=a, second=b):
                return _Both(self.of(a, known), self.of(b, known))
            case ir.Call(op=op, arguments=arguments):
                return _decided(ir.Call(op, tuple(self.term(self.of(a, known)) for a in arguments)))
            case ir.Reduce(operator=f, initial=z, array=xs) | ir.ReduceSeq(operator=f, initial=z, array=xs):
                made = self.of(z, known)
                for x in self.elements(self.of(xs, known)):
                    made = self.applied(f, _Both(made, x), known)
                return made
            case ir.At(index=i, array=xs):
                return self.elements(self.of(xs, known))[self.number(nat(i))]
        return self.array(term, known)

    def array(self, term: ir.Expr, known: Known) -> list[Value]:
        """The elements of an array that needs what is known."""

        def inside(array: ir.Expr) -> list[Value]:
            return self.elements(self.of(array, known))

        match term:
            case ir.Map(function=f, array=xs):
                return [self.applied(f, x, known) for x in inside(xs)]
            case ir.Zip(first=xs, second=ys):
                return [_Both(x, y) for x, y in zip(inside(xs), inside(ys), strict=True)]
            case ir.Concat(first=xs, second=ys):
                return [*inside(xs), *inside(ys)]
            case ir.Slice(start=start, length=n, array=xs):
                return inside(xs)[self.number(start) :][: self.number(n)]
            case ir.Split(chunk=chunk, array=xs):
                made, n = inside(xs), self.number(chunk)
                return [made[i : i + n] for i in range(0, len(made), n)]
            case ir.Join(array=xss):
                return [x for row in inside(xss) for x in self.elements(row)]
            case ir.Transpose(array=xss):
                return [list(column) for column in zip(*map(self.elements, inside(xss)), strict=True)]
            case ir.Fill(size=n, value=value):
                return [self.of(value, known)] * self.number(n)
            case ir.Generate(size=n, function=f):
                return [self.applied(f, ir.Literal(i, I32), known) for i in range(self.number(n))]
        raise _NotWritten(f"the elements of {ir.name_of(term)} are not written out")

    def applied(self, function: ir.Function, value: Value, known: Known) -> Value:
        self.steps += 1
        if self.steps > MOST_STEPS or not isinstance(function, ir.Lambda):
            raise _NotWritten("it is too much to be written out")
        return self.of(function.body, {**known, **dict(_bound(function.binder, value))})

    def elements(self, value: Value) -> list[Value]:
        if isinstance(value, list):
            return value
        assert isinstance(value, ir.Expr)
        return [self.element(i, value) for i in range(self.number(size_of(value)))]

    def element(self, i: int, array: ir.Expr) -> Value:
        """An element of an array that needs nothing that is known, as it is or as what it is made of."""
        match array:
            case ir.Map(function=f, array=xs):
                return self.applied(f, self.element(i, xs), {})
            case ir.Zip(first=xs, second=ys):
                return _Both(self.element(i, xs), self.element(i, ys))
            case ir.Fill(value=value):
                return value
            case ir.Generate(function=f):
                return self.applied(f, ir.Literal(i, I32), {})
            case ir.Transpose(array=xss):
                return [ir.At(nat(i), ir.At(nat(j), xss)) for j in range(self.number(size_of(xss)))]
        return ir.At(nat(i), array)

    def leaves(self, value: Value, t: DataType) -> list[ir.Expr]:
        """The scalars of a value of a type."""
        match t:
            case Pair(first=a, second=b):
                return [*self.leaves(_part(0, value), a), *self.leaves(_part(1, value), b)]
            case Array(element=element):
                return [leaf for x in self.elements(value) for leaf in self.leaves(x, element)]
        return [self.term(value)]

    def term(self, value: Value) -> ir.Expr:
        if isinstance(value, ir.Expr):
            return value
        if isinstance(value, _Both):
            return ir.MakePair(self.term(value.first), self.term(value.second))
        raise _NotWritten("an array is no scalar")
