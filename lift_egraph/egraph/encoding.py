"""Terms with concrete sizes as egglog terms: `to_egg`. `lift_egraph.egraph.read_back.from_egg` is the way back."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from itertools import repeat

import egglog
from egglog import String
from egglog.egraph import ActionLike

from lift_egraph.egraph import sorts
from lift_egraph.egraph.expressions import made
from lift_egraph.egraph.pattern_nodes import PATTERN_NODES, concrete_size, form_of
from lift_egraph.egraph.sorts import Ex, Fn, Op, P, Ty, associative, commutative, identity, neutral
from lift_egraph.egraph.steps import changing_steps
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.scalar import LAWS, OPERATIONS
from lift_egraph.language.signature import Parameter
from lift_egraph.language.types import I32, DataType, Pair, Scalar, Vector

MAXIMAL_DEPTH = 1200  # egglog's Python layer recurses; terms twice as deep would end in a RecursionError


def new_graph() -> egglog.EGraph:
    """An e-graph that knows the results of scalar operations."""
    graph = empty_graph()
    graph.register(*operation_results())
    return graph


def empty_graph() -> egglog.EGraph:
    """An e-graph in which the numbers of terms stay what they are.

    egglog's Python layer binds what occurs twice in a term, numbers above all, to the names ``$__expr_1``,
    ``$__expr_2``, … (in an order that differs between processes). Each use of a name is a variable of its core, which
    is called after the name and how often it was used before: the twelfth use of ``$__expr_2`` and the second of
    ``$__expr_21`` are both ``$__expr_211``, and in one command the later one takes the place of the earlier, so that
    ``split(4, xs)`` becomes ``split(1, xs)``. It cannot happen where all names have one length.
    """
    graph = egglog.EGraph()
    graph._state.expr_to_let_counter = 10**9
    return graph


def operation_results() -> Iterator[ActionLike]:
    """What the types of calls follow from."""
    for op in OPERATIONS.values():
        if op.result is not None:
            yield sorts.gives(String(op.name), String(op.result.name))
        elif op.kind != "lanes":
            yield sorts.keeps(String(op.name))


@lru_cache(maxsize=4096)
def type_to_egg(t: DataType) -> Ty:
    """A type with concrete sizes as an egglog term."""
    if isinstance(t, Scalar):
        return Ty.scalar(t.name)
    if isinstance(t, Vector):
        return Ty.vec(t.scalar.name, t.width)
    if isinstance(t, Pair):
        return Ty.pair(type_to_egg(t.first), type_to_egg(t.second))
    return Ty.arr(concrete_size(t.size), type_to_egg(t.element))


@lru_cache(maxsize=4096)
def binder_to_egg(pattern: ir.Binder) -> P:
    """A binding pattern as an egglog term."""
    if isinstance(pattern, ir.Var):
        return made("P_var", made("V___init__", pattern.name, type_to_egg(pattern.type)))
    return made("P_pair", binder_to_egg(pattern.first), binder_to_egg(pattern.second))


def function_to_egg(f: ir.Function) -> Fn:
    """A function as an egglog term."""
    if isinstance(f, ir.Vectorize):
        return made("Fn_vec", f.width, function_to_egg(f.function))
    return made("Fn_lam", binder_to_egg(f.binder), to_egg(f.body))


def operator_to_egg(f: ir.Function) -> Op:
    """A reduction operator; known scalar operators and their elementwise lifting are recognised."""
    name = known_operator(f)
    if name is not None:
        op, depth = name
        known = made("Op_scalar", op)
        for _ in range(depth):
            known = made("Op_lift", known)
        return known
    return made("Op_fn", function_to_egg(f))


def known_operator(f: ir.Function) -> tuple[str, int] | None:
    """The name of a binary operator with known laws, and how often it is lifted to arrays.

    ``λ(a, b). a + b`` is ``("add", 0)``; ``λ(a, b). map(λ(x, y). x + y, zip(a, b))`` is ``("add", 1)``.
    """
    if not isinstance(f, ir.Lambda) or not isinstance(f.binder, ir.PairBinder):
        return None
    a, b, body = f.binder.first, f.binder.second, f.body
    if isinstance(body, ir.Call) and body.arguments == (a, b) and body.op in LAWS and a != b:
        return body.op, 0
    if isinstance(body, ir.Map) and isinstance(body.array, ir.Zip) and (body.array.first, body.array.second) == (a, b):
        inner = known_operator(body.function)
        return None if inner is None else (inner[0], inner[1] + 1)
    return None


def combined(operator: ir.Function, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    """What a binary operator makes of two terms: the operation itself, where it is one."""
    match known_operator(operator):
        case (name, 0):
            return ir.Call(name, (first, second))
    return ir.Apply(operator, ir.MakePair(first, second))


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
        return _LEAVES.get(type(term), _pattern_to_egg)(term)
    except RecursionError:
        raise TypeProblem(
            "the term is nested too deeply for the e-graph: repeat a step by iterate or reduceSeq"
        ) from None


def encoded(term: ir.Expr, form: Ex) -> ir.Expr:
    """The same term, which `to_egg` turns into a given form: one that uses nodes that no term of `ir` has."""
    same = copy(term)
    same.__dict__["_encoded"] = form
    return same


def depth(term: ir.Part) -> int:
    """The nesting depth of a term, in which steps that change the length of an array are inside of each other."""
    return 1 + changing_steps(term) + max((depth(p) for p in ir.parts(term)), default=0)


def check_depth(term: ir.Expr) -> None:
    """Check that a term is not nested too deeply for egglog's Python layer.

    Raises
    ------
    TypeProblem
        If it is deeper than `MAXIMAL_DEPTH`.
    """
    if depth(term) > MAXIMAL_DEPTH:
        raise TypeProblem(f"the term is nested {depth(term)} deep; the e-graph takes at most {MAXIMAL_DEPTH}")


def literal_text(literal: ir.Literal) -> str:
    """The value as text from which `literal_value` gets it back exactly."""
    return repr(literal.value)


def _part_to_egg(part: ir.Part, parameter: Parameter | None) -> Ex | Fn | Op:
    if isinstance(part, ir.Expr):
        return to_egg(part)
    return operator_to_egg(part) if parameter is not None and parameter.is_operator else function_to_egg(part)


def _pattern_to_egg(e: ir.Expr) -> Ex:
    form = form_of(e)
    assert form is not None
    operation = PATTERN_NODES.get(form.op)
    parameters = repeat(None) if operation is None else operation.signature.parts
    parts = (_part_to_egg(part, p) for part, p in zip(form.parts, parameters, strict=False))
    return made(form.op, *form.numbers, *parts)


@lru_cache(maxsize=4096)
def _variable_to_egg(v: ir.Var) -> Ex:
    return made("Ex___init__", made("V___init__", v.name, type_to_egg(v.type)))


@lru_cache(maxsize=4096)
def _input_to_egg(e: ir.Input) -> Ex:
    return made("Ex_input", e.name, type_to_egg(e.type))


_LEAVES = {
    ir.Var: _variable_to_egg,
    ir.Input: _input_to_egg,
    ir.Literal: lambda e: made("Ex_literal", literal_text(e), type_to_egg(e.type)),
    ir.SizeLiteral: lambda e: made("Ex_literal", str(concrete_size(e.size)), type_to_egg(I32)),
}


def operator_laws() -> list[ActionLike]:
    """The facts about scalar operators that rules ask for."""
    facts: list[ActionLike] = []
    for name, laws in LAWS.items():
        op = Op.scalar(name)
        if laws.associative:
            facts.append(associative(op))
        if laws.commutative:
            facts.append(commutative(op))
        for scalar, value in laws.neutral.items():
            start = Ex.literal(literal_text(ir.Literal(value, Scalar(scalar))), Ty.scalar(scalar))
            facts += [neutral(op, start), identity(op, start)]
    return facts
