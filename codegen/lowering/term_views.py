"""From terms to views: the patterns that only move data cost nothing, they become views.

`view_of` reads a term that computes no array; `write_step` is the way back, from the place where a
term's value is wanted to the place where the value of its argument has to go.

Source: 000 §4.3.3, Table 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Union

from lift_egraph.codegen.c_ast import CExpr, Const, IndexValue, Operate, Pack
from lift_egraph.codegen.lowering import views
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import inner_size, size_of, type_of
from lift_egraph.language.describe import describe
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import result_type
from lift_egraph.language.types import DataType, Scalar, Vector, without_lanes

Environment = Mapping[Union[ir.Var, ir.Input], views.View]


def lane_count(array: ir.Expr) -> int:
    """The number of lanes at the leaves of an array of vectors."""
    return without_lanes(type_of(array))[0]


def operate(term: ir.Call, arguments: tuple[CExpr, ...]) -> CExpr:
    """A scalar operation applied to scalars and vectors; dot counts equal lanes too, so they are repeated for it."""
    op = term.op
    if op == "dot":
        arguments = tuple(_with_lanes(a, type_of(t)) for a, t in zip(arguments, term.arguments, strict=True))
    result = result_type(op, tuple(a.type for a in arguments))
    assert isinstance(result, Scalar | Vector)
    return Operate(op, arguments, result)


def _with_lanes(value: CExpr, t: DataType) -> CExpr:
    return Pack((value,), t) if isinstance(t, Vector) and isinstance(value.type, Scalar) else value


def component(index: int, view: views.View) -> views.View:
    """One component of a pair, or of an array of pairs."""
    if isinstance(view, views.Pairs):
        return view.second if index else view.first
    return views.Component(index, view)


def bindings(pattern: ir.Binder, view: views.View) -> dict[ir.Var | ir.Input, views.View]:
    """The views of the variables of a pattern that takes a value apart."""
    if isinstance(pattern, ir.Var):
        return {pattern: view}
    return bindings(pattern.first, component(0, view)) | bindings(pattern.second, component(1, view))


def layout_view(term: ir.Expr, arguments: list[views.View]) -> views.View:
    """The view of a pattern that moves data, given the views of its parts.

    Raises
    ------
    NestingProblem
        If the pattern computes, and nothing says how.
    """
    match term:
        case ir.Zip() | ir.MakePair():
            return views.Pairs(arguments[0], arguments[1])
        case ir.Component(index=index):
            return component(index, arguments[0])
        case ir.Split(chunk=chunk):
            return views.Split(chunk, arguments[0])
        case ir.Join(array=array):
            return views.Join(inner_size(array), arguments[0])
        case ir.Slice(start=start):
            return views.Shifted(start, arguments[0])
        case ir.Concat(first=first):
            return views.Concat(size_of(first), arguments[0], arguments[1])
        case ir.Transpose():
            return views.Transpose(arguments[0])
        case ir.Gather(indices=indices, array=array):
            return views.Reorder(indices, size_of(array), arguments[0])
        case ir.Slide(step=step):
            return views.Slide(step, arguments[0])
        case ir.Pad(left=left, boundary=boundary, array=array):
            return views.Pad(left, size_of(array), boundary, arguments[0])
        case ir.At(index=index):
            return views.Access(index, arguments[0])
        case ir.Fill():
            return views.Repeat(arguments[0])
        case ir.Lookup(array=array):
            return views.Lookup(arguments[0], size_of(array), arguments[1])
        case ir.AsVector(width=width):
            return views.AsVector(width, arguments[0])
        case ir.AsScalar(array=array):
            return views.AsScalar(lane_count(array), arguments[0])
    raise NestingProblem(f"{describe(term)} has no implementation: lower it to mapSeq, reduceSeq, mapGlb, … first")


def view_of(term: ir.Expr, environment: Environment) -> views.View:
    """The view of a pure term; scalars are computed where they are used."""
    match term:
        case ir.Var() | ir.Input():
            return environment[term]
        case ir.Literal(value=value, type=type):
            return views.Value(Const(value, type))
        case ir.SizeLiteral(size=size):
            return views.Value(IndexValue(size))
        case ir.Call(arguments=arguments):
            return views.Value(operate(term, tuple(view_of(a, environment).resolve((), ()) for a in arguments)))
        case ir.Apply(function=function, argument=argument):
            lambda_ = ir.function_body(function)
            bound = bindings(lambda_.binder, view_of(argument, environment))
            return view_of(lambda_.body, {**environment, **bound})
        case ir.Map(function=function, array=array):
            return Mapped(ir.function_body(function), environment, view_of(array, environment))
        case ir.Generate(function=function):
            return Mapped(ir.function_body(function), environment, None)
    return layout_view(term, [view_of(p, environment) for p in ir.parts(term) if isinstance(p, ir.Expr)])


@dataclass(frozen=True)
class Mapped(views.View):
    """A map or generate whose function is pure, applied when an element is asked for."""

    function: ir.Lambda
    environment: Environment = field(compare=False, hash=False, repr=False)
    array: views.View | None  # None: generate, the function takes the index

    @property
    def space(self) -> str | None:
        return self.array.space if self.array else None

    def resolve(self, indices: views.Indices, choices: views.Choices) -> CExpr:
        index, rest = indices[0], indices[1:]
        argument = views.Access(index, self.array) if self.array else views.Value(IndexValue(index))
        inner = {**self.environment, **bindings(self.function.binder, argument)}
        return view_of(self.function.body, inner).resolve(rest, choices)


@dataclass(frozen=True)
class MappedWrite(views.View):
    """The way back through a map that only moves data: an element is written where the map puts it."""

    function: ir.Lambda
    base: views.View

    def resolve(self, indices: views.Indices, choices: views.Choices) -> CExpr:
        index, rest = indices[0], indices[1:]
        target = _write_through(self.function, views.Access(index, self.base))
        assert target is not None
        return target.resolve(rest, choices)


def _write_through(function: ir.Lambda, acceptor: views.View) -> views.View | None:
    term: ir.Expr = function.body
    while term != function.binder:
        step = write_step(term, acceptor)
        if step is None:
            return None
        term, acceptor = step
    return acceptor


def write_step(term: ir.Expr, acceptor: views.View) -> tuple[ir.Expr, views.View] | None:
    """Where the argument of a pattern has to be written so that its value ends up in the acceptor.

    None for patterns without such a way back: those that copy elements or drop them.
    """
    match term:
        case ir.Join(array=array):
            return array, views.Split(inner_size(array), acceptor)
        case ir.Split(chunk=chunk, array=array):
            return array, views.Join(chunk, acceptor)
        case ir.Slice(start=start, length=length, array=array):
            return array, views.Trimmed(start, length, acceptor)
        case ir.Transpose(array=array):
            return array, views.Transpose(acceptor)
        case ir.Scatter(indices=indices, array=array):
            return array, views.Reorder(indices, size_of(array), acceptor)
        case ir.At(array=array) if size_of(array) == nat(1):
            return array, views.Repeat(acceptor)
        case ir.AsScalar(array=array):
            return array, views.AsVector(lane_count(array), acceptor)
        case ir.AsVector(width=width, array=array):
            return array, views.AsScalar(width, acceptor)
        case ir.Map(function=ir.Lambda() as function, array=array):
            if _write_through(function, acceptor) is not None:
                return array, MappedWrite(function, acceptor)
    return None
