"""Where a term stands in a frozen e-graph: the member of a class that it is, up to the names of binders.

`from_egg` gives binders new names, so a term that was read from an e-graph, or from a file, is found again by its form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.orders import KnownOrder, index_function, order_form
from lift_egraph.egraph.pattern_nodes import CONSTANTS, Form, form_of
from lift_egraph.egraph.read_back import Choice, open_term
from lift_egraph.language import ir
from lift_egraph.language.check import binder_type, size_of

Scope = Mapping[ir.Var, ClassId]  # the class of each variable bound around a part


def locate(graph: FrozenEGraph, class_id: ClassId, term: ir.Expr) -> Choice | None:
    """The member of a class that equals a closed term up to the names of binders, or None if there is none."""
    return _Locator(graph).expr(class_id, term, {})


class _Locator:
    def __init__(self, graph: FrozenEGraph):
        self.graph = graph
        self.known: dict[Any, Choice | None] = {}

    def expr(self, owner: ClassId, term: ir.Expr, scope: Scope) -> Choice | None:
        key = (owner, term, frozenset((v, scope[v]) for v in ir.free_variables(term) if v in scope))
        if key not in self.known:
            form = form_of(term)
            self.known[key] = self._first(owner, lambda n: self._expr_parts(owner, n, term, form, scope))
        return self.known[key]

    def _first(self, owner: ClassId, parts: Callable[[ENode], tuple[Choice, ...] | None]) -> Choice | None:
        for node in self.graph.nodes[owner]:
            inside = parts(node)
            if inside is not None:
                return Choice(owner, node, inside)
        return None

    def _expr_parts(
        self, owner: ClassId, node: ENode, term: ir.Expr, form: Form | None, scope: Scope
    ) -> tuple[Choice, ...] | None:
        if isinstance(term, ir.Var):
            return () if node.op == "Ex___init__" and scope.get(term) == node.classes[0] else None
        if isinstance(term, ir.Input | ir.Literal):
            known = node.op in ("Ex_input", "Ex_literal") and open_term(self.graph, Choice(owner, node, ())) == term
            return () if known else None
        if node.op == "combine":
            return self._combine(node, term, scope)
        same = form is not None and node.op == form.op and self._has_numbers(node, term, form)
        return self._all(node, form.parts, scope) if form is not None and same else None

    def _has_numbers(self, node: ENode, term: ir.Expr, form: Form) -> bool:
        """Whether a node has the numbers, texts and orders of a term; rules may spell an order in other ways."""
        if not isinstance(term, ir.Gather | ir.Scatter):
            return node.children[: len(node.children) - len(node.classes)] == form.numbers
        own = (KnownOrder(n.op, n.children) for n in self.graph.nodes[node.classes[0]] if not n.classes)
        return any(order_form(index_function(o), size_of(term.array)) == form.numbers[0] for o in own)

    def _all(self, node: ENode, parts: tuple[ir.Part, ...], scope: Scope) -> tuple[Choice, ...] | None:
        found = []
        for owner, part in zip(term_classes(self.graph, node), parts, strict=True):
            choice = self._part(owner, part, scope)
            if choice is None:
                return None
            found.append(choice)
        return tuple(found)

    def _part(self, owner: ClassId, part: ir.Part, scope: Scope) -> Choice | None:
        sort = self.graph.sorts[owner]
        if sort == "Ex":
            return self.expr(owner, part, scope) if isinstance(part, ir.Expr) else None
        assert isinstance(part, ir.Lambda | ir.Vectorize)
        return self.function(owner, part, scope) if sort == "Fn" else self.operator(owner, part, scope)

    def function(self, owner: ClassId, f: ir.Function, scope: Scope) -> Choice | None:
        return self._first(owner, lambda n: self._function_parts(owner, n, f, scope))

    def _function_parts(self, owner: ClassId, n: ENode, f: ir.Function, scope: Scope) -> tuple[Choice, ...] | None:
        if isinstance(f, ir.Vectorize):
            return self._all(n, (f.function,), scope) if n.op == "Fn_vec" and n.children[0] == f.width else None
        if n.op == "Fn_lam":
            inner = self._bound(n.classes[0], f.binder, scope)
            return None if inner is None else self._all(n, (f.body,), inner)
        if n.op == "Fn_vec" or self.graph.domain(owner) != binder_type(f.binder):
            return None
        if n.op == "Fn_zip":
            return () if _is_zip(f) else None
        v, body = f.binder, f.body
        operation = CONSTANTS[n.op]
        if not isinstance(v, ir.Var) or not isinstance(body, ir.Expr) or type(body) is not operation.node:
            return None
        form = form_of(body)
        assert form is not None
        *others, array = form.parts
        if array != v or any(v in ir.free_variables(p) for p in others):
            return None
        same = form.numbers == n.children[: len(form.numbers)]
        return self._all(n, tuple(others), scope) if same else None

    def _bound(self, owner: ClassId, pattern: ir.Binder, scope: Scope) -> Scope | None:
        node = self.graph.nodes[owner][0]
        if isinstance(pattern, ir.Var):
            if node.op != "P_var" or self.graph.variable(node.classes[0]).type != pattern.type:
                return None
            shadowed = {v: c for v, c in scope.items() if c != node.classes[0]}
            return {**shadowed, pattern: node.classes[0]}
        if node.op == "P_var":
            return None
        first = self._bound(node.classes[0], pattern.first, scope)
        return None if first is None else self._bound(node.classes[1], pattern.second, first)

    def operator(self, owner: ClassId, f: ir.Function, scope: Scope) -> Choice | None:
        return self._first(owner, lambda n: self._operator_parts(n, f, scope))

    def _operator_parts(self, n: ENode, f: ir.Function, scope: Scope) -> tuple[Choice, ...] | None:
        if n.op == "Op_fn":
            return self._all(n, (f,), scope)
        if not isinstance(f, ir.Lambda) or not isinstance(f.binder, ir.PairBinder):
            return None
        pair = (f.binder.first, f.binder.second)
        match n.op, f.body:
            case "Op_scalar", ir.Call(op=op, arguments=arguments):
                return () if op == n.children[0] and arguments == pair else None
            case "Op_lift", ir.Map(function=g, array=ir.Zip(first=a, second=b)) if (a, b) == pair:
                return self._all(n, (g,), scope) if not {a, b} & ir.free_variables(g) else None
        return None

    def _combine(self, node: ENode, term: ir.Expr, scope: Scope) -> tuple[Choice, ...] | None:
        match term:
            case ir.Apply(function=f, argument=ir.MakePair(first=a, second=b)):
                return self._all(node, (f, a, b), scope)
        return None


def _is_zip(f: ir.Lambda) -> bool:
    match f:
        case ir.Lambda(binder=ir.PairBinder(first=a, second=b), body=ir.Zip(first=c, second=d)):
            return (a, b) == (c, d)
    return False
