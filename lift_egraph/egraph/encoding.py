"""Terms with concrete sizes as egglog terms: `to_egg`. `lift_egraph.egraph.frozen.from_egg` is the way back."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import lru_cache

from egglog.egraph import ActionLike

from lift_egraph.egraph.sorts import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    app,
    as_scalar,
    as_vector,
    associative,
    at,
    call1,
    call2,
    call3,
    commutative,
    component,
    fill,
    gather,
    generate,
    iterate,
    iterate_text,
    join,
    lookup,
    make_pair,
    map_,
    map_level,
    neutral,
    pad,
    pad_constant,
    reduce_,
    reduce_seq,
    scatter,
    slide,
    split,
    to_memory,
    transpose,
    zip_,
)
from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import array_type, codomain, domain, iterate_step, size_of, type_of
from lift_egraph.language.index_arrays import order_at
from lift_egraph.language.nat import Nat
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Array, DataType, Pair, Scalar, Vector

MAXIMAL_DEPTH = 140  # egglog's Python layer recurses; deeper terms would end in a RecursionError


@lru_cache(maxsize=4096)
def type_to_egg(t: DataType) -> Ty:
    """A type with concrete sizes as an egglog term."""
    if isinstance(t, Scalar):
        return Ty.scalar(t.name)
    if isinstance(t, Vector):
        return Ty.vec(t.scalar.name, t.width)
    if isinstance(t, Pair):
        return Ty.pair(type_to_egg(t.first), type_to_egg(t.second))
    return Ty.arr(size_to_egg(t.size), type_to_egg(t.element))


def size_to_egg(size: Nat) -> int:
    """A concrete size.

    Raises
    ------
    SizeProblem
        If the size is symbolic: specialise the program first.
    """
    value = size.constant
    if value is None:
        raise SizeProblem(f"the e-graph needs concrete sizes, got {size}: specialise the program first")
    return value


@lru_cache(maxsize=4096)
def pattern_to_egg(pattern: ir.Pattern) -> P:
    """A binding pattern as an egglog term."""
    if isinstance(pattern, ir.Var):
        return P.var(V(pattern.name, type_to_egg(pattern.type)))
    return P.pair(pattern_to_egg(pattern.first), pattern_to_egg(pattern.second))


def function_to_egg(f: ir.Function) -> Fn:
    """A function as an egglog term."""
    if isinstance(f, ir.Vectorize):
        return Fn.vec(f.width, function_to_egg(f.function))
    return Fn.lam(pattern_to_egg(f.pattern), to_egg(f.body))


def operator_to_egg(f: ir.Function) -> Op:
    """A reduction operator; known scalar operators and their elementwise lifting are recognised."""
    name = known_operator(f)
    if name is not None:
        op, depth = name
        made = Op.scalar(op)
        for _ in range(depth):
            made = made.lift()
        return made
    return Op.fn(function_to_egg(f))


def known_operator(f: ir.Function) -> tuple[str, int] | None:
    """The name of a binary operator with known laws, and how often it is lifted to arrays.

    ``λ(a, b). a + b`` is ``("add", 0)``; ``λ(a, b). map(λ(x, y). x + y, zip(a, b))`` is ``("add", 1)``.
    """
    if not isinstance(f, ir.Lambda) or not isinstance(f.pattern, ir.PairPattern):
        return None
    a, b, body = f.pattern.first, f.pattern.second, f.body
    if isinstance(body, ir.Call) and body.arguments == (a, b) and body.op in LAWS and a != b:
        return body.op, 0
    if isinstance(body, ir.Map) and isinstance(body.array, ir.Zip) and (body.array.first, body.array.second) == (a, b):
        inner = known_operator(body.function)
        return None if inner is None else (inner[0], inner[1] + 1)
    return None


def to_egg(term: ir.Expr) -> Ex:
    """A term with concrete sizes as an egglog term.

    Raises
    ------
    SizeProblem
        If a size is symbolic.
    TypeProblem
        If the term is nested too deeply for the e-graph.
    """
    given = term.__dict__.get("_encoded")
    if given is not None:
        return given
    try:
        return _NODES[type(term)](term)
    except RecursionError:
        raise TypeProblem("the term is nested too deeply for the e-graph") from None


def encoded(term: ir.Expr, form: Ex) -> ir.Expr:
    """The same term, which `to_egg` turns into a given form: one that uses nodes that no term of `ir` has."""
    made = copy(term)
    made.__dict__["_encoded"] = form
    return made


def depth(term: ir.Part) -> int:
    """The nesting depth of a term."""
    return 1 + max((depth(p) for p in ir.parts(term)), default=0)


def check_depth(term: ir.Expr) -> None:
    """Raise a `TypeProblem` for a term nested too deeply for egglog's Python layer."""
    if depth(term) > MAXIMAL_DEPTH:
        raise TypeProblem(f"the term is nested {depth(term)} deep; the e-graph takes at most {MAXIMAL_DEPTH}")


def literal_text(literal: ir.Literal) -> str:
    """The value as text from which `literal_value` gets it back exactly."""
    return repr(literal.value)


def _call_to_egg(e: ir.Call) -> Ex:
    arguments = [to_egg(a) for a in e.arguments]
    return (call1, call2, call3)[len(arguments) - 1](e.op, *arguments)


def _pad_to_egg(e: ir.Pad) -> Ex:
    left, right = size_to_egg(e.left), size_to_egg(e.right)
    if e.boundary.value is not None:
        return pad_constant(left, right, to_egg(e.boundary.value), to_egg(e.array))
    return pad(left, right, e.boundary.kind, to_egg(e.array))


def _iterate_to_egg(e: ir.Iterate) -> Ex:
    """A body that keeps the length is rewritten like any function; one that changes it is kept as text."""
    step = check_step(e, array_type(e.array, "iterate"))
    if step is not None:
        return iterate(e.times, function_to_egg(step), to_egg(e.array))
    from lift_egraph.language.syntax import print_iterate_body

    outer = ir.free_variables(e.function)
    if outer:
        names = ", ".join(sorted(v.name for v in outer))
        raise TypeProblem(
            f"the e-graph cannot hold an iterate that changes the length of its array and uses {names} from outside: "
            "make it an input, or keep the length"
        )
    return iterate_text(e.times, print_iterate_body(e), type_to_egg(type_of(e)), to_egg(e.array))


def check_step(e: ir.Iterate, array: Array) -> ir.Lambda | None:
    """The body of an iterate at the length of its argument, if it keeps that length."""
    step = iterate_step(e, array.size)
    return step if domain(step) == codomain(step) else None


@lru_cache(maxsize=4096)
def _variable_to_egg(v: ir.Var) -> Ex:
    return Ex(V(v.name, type_to_egg(v.type)))


@lru_cache(maxsize=4096)
def _input_to_egg(e: ir.Input) -> Ex:
    return Ex.input(e.name, type_to_egg(e.type))


def index_text(e: ir.Gather | ir.Scatter) -> str:
    """The index function of an array as text, over the variable ``i``."""
    return str(order_at(e.indices, size_of(e.array)).body)


_NODES = {
    ir.Var: _variable_to_egg,
    ir.Input: _input_to_egg,
    ir.Literal: lambda e: Ex.literal(literal_text(e), type_to_egg(e.type)),
    ir.Call: _call_to_egg,
    ir.MakePair: lambda e: make_pair(to_egg(e.first), to_egg(e.second)),
    ir.Component: lambda e: component(e.index, to_egg(e.pair)),
    ir.Apply: lambda e: app(function_to_egg(e.function), to_egg(e.argument)),
    ir.Map: lambda e: map_(function_to_egg(e.function), to_egg(e.array)),
    ir.Reduce: lambda e: reduce_(operator_to_egg(e.operator), to_egg(e.initial), to_egg(e.array)),
    ir.Zip: lambda e: zip_(to_egg(e.first), to_egg(e.second)),
    ir.Split: lambda e: split(size_to_egg(e.chunk), to_egg(e.array)),
    ir.Join: lambda e: join(to_egg(e.array)),
    ir.Transpose: lambda e: transpose(to_egg(e.array)),
    ir.Gather: lambda e: gather(index_text(e), to_egg(e.array)),
    ir.Scatter: lambda e: scatter(index_text(e), to_egg(e.array)),
    ir.Slide: lambda e: slide(size_to_egg(e.size), size_to_egg(e.step), to_egg(e.array)),
    ir.Pad: _pad_to_egg,
    ir.Iterate: _iterate_to_egg,
    ir.At: lambda e: at(size_to_egg(e.index), to_egg(e.array)),
    ir.Generate: lambda e: generate(size_to_egg(e.size), function_to_egg(e.function)),
    ir.Fill: lambda e: fill(size_to_egg(e.size), to_egg(e.value)),
    ir.Lookup: lambda e: lookup(to_egg(e.indices), to_egg(e.array)),
    ir.MapLevel: lambda e: map_level(e.level.kind, e.level.dimension, function_to_egg(e.function), to_egg(e.array)),
    ir.ReduceSeq: lambda e: reduce_seq(function_to_egg(e.operator), to_egg(e.initial), to_egg(e.array)),
    ir.ToMemory: lambda e: to_memory(e.space, to_egg(e.value)),
    ir.AsVector: lambda e: as_vector(e.width, to_egg(e.array)),
    ir.AsScalar: lambda e: as_scalar(to_egg(e.array)),
}


def operator_laws(names: Iterable[str] = tuple(LAWS)) -> list[ActionLike]:
    """The facts about scalar operators that rules ask for."""
    facts: list[ActionLike] = []
    for name in names:
        laws = LAWS[name]
        op = Op.scalar(name)
        if laws.associative:
            facts.append(associative(op))
        if laws.commutative:
            facts.append(commutative(op))
        for scalar, value in laws.neutral.items():
            facts.append(neutral(op, Ex.literal(literal_text(ir.Literal(value, Scalar(scalar))), Ty.scalar(scalar))))
    return facts
