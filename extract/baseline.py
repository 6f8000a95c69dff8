"""The naive low-level term: one work-item an element, every reduction a loop. What optimisation is measured against."""

from __future__ import annotations

from lift_egraph.errors import SearchProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute, unique_names
from lift_egraph.language.check import type_of

MOST_DIMENSIONS = 3
COMPUTING = (ir.Call, *ir.FOLDS, ir.ToMemory)  # the nodes that do more than rearrange data


def computes(term: ir.Part) -> bool:
    """Whether a term does more than rearrange data."""
    return any(isinstance(t, COMPUTING) for t in ir.subterms(term))


def naive_term(program: ir.Program) -> ir.Program:
    """The program with its outer maps on work-items, and everything inside them sequential.

    Raises
    ------
    SearchProblem
        If the program has nothing to compute.
    """
    if not computes(program.body):
        raise SearchProblem(
            f"{program.name} computes nothing: it only rearranges its inputs, so there is no kernel to find"
        )
    lowered = _lower(program.body, _depth(program.body))
    return ir.Program(program.name, program.inputs, unique_names(lowered), program.sizes)


def _depth(term: ir.Expr) -> int:
    """How many maps stand directly inside each other at the outside of a term."""
    if isinstance(term, ir.Map) and computes(term.function):
        return min(MOST_DIMENSIONS, 1 + _depth(ir.function_body(term.function).body))
    if isinstance(term, ir.Join | ir.Transpose | ir.Split | ir.Scatter | ir.AsScalar) or (
        isinstance(term, ir.Map) and not computes(term.function)
    ):
        return _depth(term.array)
    return 0


def _lower(term: ir.Expr, dimensions: int) -> ir.Expr:
    """`dimensions`: how many of the maps to come are parallel; the innermost of them is dimension 0."""
    if isinstance(term, ir.Map) and computes(term.function):
        level = ir.Level("glb", dimensions - 1) if dimensions else ir.SEQ
        body = _lower_function(term.function, max(dimensions - 1, 0))
        return ir.MapLevel(level, body, _lower(term.array, 0))
    if isinstance(term, ir.Reduce | ir.Scan):
        return _loop(term)
    if isinstance(term, ir.Join | ir.Transpose | ir.Split | ir.Scatter | ir.AsScalar | ir.Map):
        return ir.map_parts(term, lambda p: _lower(p, dimensions) if isinstance(p, ir.Expr) else p)
    return ir.map_parts(term, lambda p: _lower(p, 0) if isinstance(p, ir.Expr) else _lower_function(p, 0))


def _lower_function(f: ir.Function, dimensions: int) -> ir.Function:
    if isinstance(f, ir.Vectorize):
        return ir.Vectorize(f.width, ir.Lambda(f.function.binder, _lower(f.function.body, 0)))
    return ir.Lambda(f.binder, _lower(f.body, dimensions))


def _loop(term: ir.Reduce | ir.Scan) -> ir.Expr:
    """A reduction or scan as a loop; a map in front of it is applied on the fly (000, Listing 5.7)."""
    operator = _lower_function(ir.function_body(term.operator), 0)
    initial = _lower(term.initial, 0)
    made = ir.ReduceSeq if isinstance(term, ir.Reduce) else ir.ScanSeq
    acc = ir.Var("acc", type_of(term.initial))
    assert isinstance(operator, ir.Lambda)
    if isinstance(term.array, ir.Map) and isinstance(term.array.function, ir.Lambda) and computes(term.array.function):
        inner = unique_names(term.array.function)
        value = _applied(operator, acc, _lower(inner.body, 0))
        return made(ir.Lambda(ir.PairBinder(acc, inner.binder), value), initial, _lower(term.array.array, 0))
    return made(operator, initial, _lower(term.array, 0))


def _applied(operator: ir.Lambda, acc: ir.Var, value: ir.Expr) -> ir.Expr:
    """The operator's body with its parameters replaced, or a `let` where the value would be computed twice."""
    match operator.binder:
        case ir.PairBinder(ir.Var() as a, ir.Var() as b) if sum(t == b for t in ir.subterms(operator.body)) <= 1:
            return substitute(operator.body, {a: acc, b: value})
    return ir.Apply(operator, ir.MakePair(acc, value))
