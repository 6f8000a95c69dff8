"""The way back from e-graphs: a choice of nodes as the term or the function that it denotes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.orders import reordered
from lift_egraph.egraph.pattern_nodes import CONSTANTS, PATTERN_NODES, PatternNode
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import stem, unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, Pair, Scalar


class Choice(NamedTuple):
    """One member of a class of terms or functions: a node, and a choice for each Ex or Fn child.

    `class_id` is the class it belongs to; the children of other sorts are read from the e-graph.
    """

    class_id: ClassId
    node: ENode
    parts: tuple[Choice, ...]


def from_egg(graph: FrozenEGraph, choice: Choice) -> ir.Expr:
    """The term that a choice of nodes denotes, with unique binder names.

    Raises
    ------
    TypeProblem
        If the term is open: a class may be closed while one of its members mentions a variable.
    """
    return closed_term(open_term(graph, choice))


def closed_term(term: ir.Expr) -> ir.Expr:
    """What `open_term` read, with unique binder names.

    Raises
    ------
    TypeProblem
        If the term is open.
    """
    loose = ir.free_variables(term)
    if loose:
        raise TypeProblem(f"the extracted term uses unbound variables: {', '.join(sorted(v.name for v in loose))}")
    return unique_names(term, base=stem)


def open_term(graph: FrozenEGraph, choice: Choice) -> ir.Expr:
    """The term that a choice of nodes denotes, which may mention variables that it does not bind.

    Variables are named by their classes, so equal ones of two terms have one name.
    """
    return _Reader(graph).expr(choice)


def open_terms(graph: FrozenEGraph) -> Callable[[Choice], ir.Expr]:
    """`open_term` for many choices, which share what they have in common."""
    return _Reader(graph, {}).expr


def open_function(graph: FrozenEGraph, choice: Choice) -> ir.Function:
    """The function that a choice of nodes denotes, which may mention variables that it does not bind."""
    return _Reader(graph).function(choice)


def read_part(graph: FrozenEGraph, choice: Choice) -> ir.Part:
    """The term or function that a choice of nodes denotes; it may be open, and its names are those of the e-graph.

    Raises
    ------
    TypeProblem
        If it is an operator alone, whose form depends on the type of its arguments.
    """
    sort = graph.sorts[choice.class_id]
    if sort == "Ex":
        return open_term(graph, choice)
    if sort == "Fn":
        return open_function(graph, choice)
    raise TypeProblem("an operator has no form without the type of its arguments: name the reduction around it")


class _Reader:
    def __init__(self, graph: FrozenEGraph, known: dict[int, tuple[Choice, ir.Expr]] | None = None):
        self.graph, self.known = graph, known

    def expr(self, c: Choice) -> ir.Expr:
        if self.known is None:
            return self.read(c)
        if id(c) not in self.known:
            self.known[id(c)] = c, self.read(c)  # the choice is kept, so that no other gets its id
        return self.known[id(c)][1]

    def read(self, c: Choice) -> ir.Expr:
        op = c.node.op
        if op in _READERS:
            return _READERS[op](self, c)
        operation = PATTERN_NODES[op]
        return operation.term(c.node.children[: len(operation.numbers)], self.parts(c, operation))

    def function(self, c: Choice) -> ir.Function:
        n = c.node
        if n.op == "Fn_lam":
            return ir.Lambda(self.graph.pattern(n.classes[0]), self.expr(c.parts[0]))
        if n.op == "Fn_vec":
            inner = self.function(c.parts[0])
            assert isinstance(inner, ir.Lambda)
            return ir.Vectorize(int(n.children[0]), inner)
        domain = self.graph.domain(c.class_id)
        if domain is None:
            raise TypeProblem("a function in the e-graph has no type")
        v = ir.Var(f"x_{c.class_id}", domain)
        if n.op == "Fn_zip":
            assert isinstance(domain, Pair)
            a, b = ir.Var(f"x_{c.class_id}", domain.first), ir.Var(f"y_{c.class_id}", domain.second)
            return ir.Lambda(ir.PairBinder(a, b), ir.Zip(a, b))
        return ir.Lambda(v, self.constant(c, v))

    def constant(self, c: Choice, v: ir.Var) -> ir.Expr:
        """The body of a function without a name for its argument, such as ``join``."""
        operation = CONSTANTS[c.node.op]
        return operation.term(c.node.children[: len(operation.numbers)], (*self.parts(c, operation, v), v))

    def parts(self, c: Choice, operation: PatternNode, array: ir.Expr | None = None) -> tuple[ir.Part, ...]:
        """The parts of a pattern; `array` is the one that a function without a name for its argument lacks."""
        made: list[ir.Part] = []
        for part, p in zip(c.parts, operation.signature.parts, strict=array is None):
            if p.is_operator:
                at, is_array = operation.signature.combined_in(p)
                of = type_of(array) if array is not None else self.graph.type_of(c.parts[at].class_id)
                if of is None or (is_array and not isinstance(of, Array)):
                    raise TypeProblem("what an operator in the e-graph combines has no type")
                made.append(self.operator(part, of.element if isinstance(of, Array) and is_array else of))
            else:
                made.append(self.function(part) if p.is_function else self.expr(part))
        return tuple(made)

    def operator(self, c: Choice, t: DataType) -> ir.Function:
        n = c.node
        if n.op == "Op_fn":
            return self.function(c.parts[0])
        a, b = ir.Var(f"a_{c.class_id}", t), ir.Var(f"b_{c.class_id}", t)
        if n.op == "Op_scalar":
            return ir.Lambda(ir.PairBinder(a, b), ir.Call(str(n.children[0]), (a, b)))
        if not isinstance(t, Array):
            raise TypeProblem(f"an operator on arrays combines values of the type {t}")
        inner = self.operator(c.parts[0], t.element)
        return ir.Lambda(ir.PairBinder(a, b), ir.Map(inner, ir.Zip(a, b)))

    def combine(self, c: Choice) -> ir.Expr:
        op, a, b = c.parts
        t = self.graph.type_of(c.class_id)
        if t is None:
            raise TypeProblem("what an operator in the e-graph combines has no type")
        f = self.operator(op, t)
        assert isinstance(f, ir.Lambda)
        return ir.Apply(f, ir.MakePair(self.expr(a), self.expr(b)))


def literal_value(text: str, t: Scalar) -> float | int | bool:
    """The value that `lift_egraph.egraph.encoding.literal_text` printed."""
    if t.name == "bool":
        return text == "True"
    return int(text) if t.is_integer else float(text)


def _literal(r: _Reader, c: Choice) -> ir.Expr:
    t = r.graph.type_at(c.node.classes[0])
    assert isinstance(t, Scalar)
    return ir.Literal(literal_value(str(c.node.children[0]), t), t)


def _call(r: _Reader, c: Choice) -> ir.Expr:
    return ir.Call(str(c.node.children[0]), tuple(r.expr(p) for p in c.parts))


# what is no pattern, and what is none with its operation in the e-graph
_READERS: dict[str, Callable[[_Reader, Choice], ir.Expr]] = {
    "Ex___init__": lambda r, c: r.graph.variable(c.node.classes[0]),
    "Ex_input": lambda r, c: ir.Input(str(c.node.children[0]), r.graph.type_at(c.node.classes[0])),
    "Ex_literal": _literal,
    "call1": _call,
    "call2": _call,
    "call3": _call,
    "component": lambda r, c: ir.Component(int(c.node.children[0]), r.expr(c.parts[0])),
    "combine": _Reader.combine,
    "gather": lambda r, c: reordered(r.graph.order(c.node.classes[0]), r.expr(c.parts[0])),
    "scatter": lambda r, c: reordered(r.graph.order(c.node.classes[0]), r.expr(c.parts[0]), backwards=True),
}
