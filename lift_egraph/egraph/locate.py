"""Where a term stands in a frozen e-graph: the member of a class that it is, up to the names of binders.

`from_egg` gives binders new names, so a term that was read from an e-graph, or from a file, is found again by its form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lift_egraph.egraph.encoding import check_step, size_to_egg
from lift_egraph.egraph.frozen import Choice, ClassId, ENode, FrozenEGraph, open_term, read_order, term_classes
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import array_type, pattern_type, size_of
from lift_egraph.language.index_arrays import order_at

Scope = Mapping[ir.Var, ClassId]  # the class of each variable bound around a part
Form = tuple[str, tuple[Any, ...], tuple[ir.Part, ...]]  # operator, numbers and texts, parts


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
            forms = tuple(_forms(term))
            self.known[key] = self._first(owner, lambda n: self._expr_parts(owner, n, term, forms, scope))
        return self.known[key]

    def _first(self, owner: ClassId, parts: Callable[[ENode], tuple[Choice, ...] | None]) -> Choice | None:
        for node in self.graph.nodes[owner]:
            inside = parts(node)
            if inside is not None:
                return Choice(owner, node, inside)
        return None

    def _expr_parts(
        self, owner: ClassId, node: ENode, term: ir.Expr, forms: tuple[Form, ...], scope: Scope
    ) -> tuple[Choice, ...] | None:
        if isinstance(term, ir.Var):
            return () if node.op == "Ex___init__" and scope.get(term) == node.classes[0] else None
        if isinstance(term, ir.Input | ir.Literal):
            known = node.op in ("Ex_input", "Ex_literal") and open_term(self.graph, Choice(owner, node, ())) == term
            return () if known else None
        if node.op == "combine":
            return self._combine(node, term, scope)
        if node.op == "iterate_text" and isinstance(term, ir.Iterate):
            return self._iterate_text(owner, node, term, scope)
        for op, numbers, parts in forms:
            if node.op == op and _same(node, numbers, term):
                return self._all(node, parts, scope)
        return None

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
            inner = self._bound(n.classes[0], f.pattern, scope)
            return None if inner is None else self._all(n, (f.body,), inner)
        if n.op == "Fn_vec" or self.graph.domain(owner) != pattern_type(f.pattern):
            return None
        if n.op == "Fn_zip":
            return () if _is_zip(f) else None
        v, body = f.pattern, f.body
        array = getattr(body, "array", None)
        if not isinstance(v, ir.Var) or array != v:
            return None
        match n.op, body:
            case ("Fn_join", ir.Join()) | ("Fn_transpose", ir.Transpose()):
                return ()
            case "Fn_split", ir.Split(chunk=chunk):
                return () if chunk.constant == n.children[0] else None
            case "Fn_map", ir.Map(function=g) if v not in ir.free_variables(g):
                return self._all(n, (g,), scope)
            case "Fn_reduce", ir.Reduce(operator=g, initial=z) if v not in ir.free_variables(g) | ir.free_variables(z):
                return self._all(n, (g, z), scope)
        return None

    def _bound(self, owner: ClassId, pattern: ir.Pattern, scope: Scope) -> Scope | None:
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
        if not isinstance(f, ir.Lambda) or not isinstance(f.pattern, ir.PairPattern):
            return None
        pair = (f.pattern.first, f.pattern.second)
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

    def _iterate_text(self, owner: ClassId, node: ENode, term: ir.Iterate, scope: Scope) -> tuple[Choice, ...] | None:
        inside = self._all(node, (term.array,), scope)
        if inside is None:
            return None
        read = open_term(self.graph, Choice(owner, node, inside))
        assert isinstance(read, ir.Iterate)
        same = alpha_equal(ir.Iterate(read.times, read.size, read.function, term.array), term)
        return inside if same else None


def _is_zip(f: ir.Lambda) -> bool:
    match f:
        case ir.Lambda(pattern=ir.PairPattern(first=a, second=b), body=ir.Zip(first=c, second=d)):
            return (a, b) == (c, d)
    return False


def _same(node: ENode, numbers: tuple[Any, ...], term: ir.Expr) -> bool:
    own = node.children[: len(node.children) - len(node.classes)]
    if isinstance(term, ir.Gather | ir.Scatter):
        return order_at(read_order(own[0]), size_of(term.array)) == numbers[0]
    return own == numbers


def _forms(term: ir.Expr) -> Iterator[Form]:
    """How the e-graph may spell a term: operator, numbers and texts, parts."""
    match term:
        case ir.Call(op=op, arguments=arguments):
            yield f"call{len(arguments)}", (op,), arguments
        case ir.MakePair(first=a, second=b):
            yield "make_pair", (), (a, b)
        case ir.Component(index=i, pair=a):
            yield "component", (i,), (a,)
        case ir.Apply(function=f, argument=a):
            yield "app", (), (f, a)
        case ir.Map(function=f, array=a):
            yield "map_", (), (f, a)
        case ir.MapLevel(level=level, function=f, array=a):
            yield "map_level", (level.kind, level.dimension), (f, a)
        case ir.Reduce(operator=f, initial=z, array=a):
            yield "reduce_", (), (f, z, a)
        case ir.ReduceSeq(operator=f, initial=z, array=a):
            yield "reduce_seq", (), (f, z, a)
        case ir.Zip(first=a, second=b):
            yield "zip_", (), (a, b)
        case ir.Split(chunk=n, array=a):
            yield "split", (size_to_egg(n),), (a,)
        case ir.Join(array=a):
            yield "join", (), (a,)
        case ir.Transpose(array=a):
            yield "transpose", (), (a,)
        case ir.Gather(indices=f, array=a) | ir.Scatter(indices=f, array=a):
            yield "gather" if isinstance(term, ir.Gather) else "scatter", (order_at(f, size_of(a)),), (a,)
        case ir.Slide(size=n, step=m, array=a):
            yield "slide", (size_to_egg(n), size_to_egg(m)), (a,)
        case ir.Pad(left=n, right=m, boundary=ir.Boundary(kind=kind, value=value), array=a):
            ends = (size_to_egg(n), size_to_egg(m))
            yield ("pad", (*ends, kind), (a,)) if value is None else ("pad_constant", ends, (value, a))
        case ir.Iterate(times=n, array=a):
            step = check_step(term, array_type(a, "iterate"))
            if step is not None:
                yield "iterate", (n,), (step, a)
        case ir.At(index=n, array=a):
            yield "at", (size_to_egg(n),), (a,)
        case ir.Generate(size=n, function=f):
            yield "generate", (size_to_egg(n),), (f,)
        case ir.Fill(size=n, value=a):
            yield "fill", (size_to_egg(n),), (a,)
        case ir.Lookup(indices=a, array=b):
            yield "lookup", (), (a, b)
        case ir.ToMemory(space=space, value=a):
            yield "to_memory", (space,), (a,)
        case ir.AsVector(width=n, array=a):
            yield "as_vector", (n,), (a,)
        case ir.AsScalar(array=a):
            yield "as_scalar", (), (a,)
        case _:
            pass
