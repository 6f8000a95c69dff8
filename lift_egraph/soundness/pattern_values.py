"""What the parts of a pattern stand for, once its variables have values: terms, functions, types, sets of names.

Every term has two forms: its meaning in `lift_egraph.language.ir`, and how it stands in the e-graph, which knows nodes
(`combine`, `Fn.map` …) that no program has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import binder_to_egg, to_egg, type_to_egg
from lift_egraph.egraph.expressions import made
from lift_egraph.egraph.orders import KnownOrder, index_function, order_form
from lift_egraph.egraph.pattern_nodes import CONSTANTS, PATTERN_NODES, PatternNode
from lift_egraph.egraph.read_back import literal_value
from lift_egraph.egraph.rule_forms import Constant, Hole, Node, Pattern
from lift_egraph.language import ir
from lift_egraph.language.check import binder_type, codomain, domain, size_of, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.types import F32, Array, DataType, Pair, Scalar, Vector, lanes
from lift_egraph.soundness.random_terms import operator_on
from lift_egraph.soundness.unification import size_value


class Rejected(Exception):
    """A draw that a rule's conditions exclude."""


@dataclass(frozen=True)
class Operator:
    """A binary operator: a function for its element type; its name in the e-graph; its law's name, if it has one."""

    function: ir.Lambda
    egg: sorts.Op
    law: str | None


@dataclass(frozen=True)
class Term:
    """A term or function, and its form in the e-graph."""

    meaning: Any
    egg: Any


@dataclass
class Values:
    """The values of a pattern's variables, by name, and through them those of all its parts.

    `skolems` are the variables that stand for names which rules derive (``V.of``), and these names in the e-graph.
    """

    values: dict[str, Any] = field(default_factory=dict)
    skolems: dict[ir.Var, sorts.V] = field(default_factory=dict)

    def value(self, p: Pattern) -> Any:
        """What a pattern stands for: a `Term`, an `Operator`, a type, a number, a text."""
        if isinstance(p, Hole):
            if p.name not in self.values:
                raise Rejected(f"nothing says what {p.name} is")
            return self.values[p.name]
        if isinstance(p, Constant):
            return p.value
        size = size_value(p, self.values) if p.sort == "i64" else None
        if size is not None:
            return size
        if p.sort == "String":
            return _text(self, p)
        if p.sort == "Order":
            return _order(self, p)
        if p.op in PATTERN_NODES:
            return _pattern(self, p.op, p.parts)
        if p.op in _OTHERS:
            return _OTHERS[p.op](self, *p.parts)
        if p.op in CONSTANTS:
            return _function(self, p.op, p.parts)
        raise Rejected(f"{p.op} stands for no part of a program")

    def operator(self, p: Pattern, t: DataType) -> Operator:
        """The operator that a pattern stands for, on elements of a type."""
        if isinstance(p, Hole):
            return self.value(p)
        assert isinstance(p, Node)
        if p.op == "Op_fn":
            f = self.value(p.parts[0])
            if not isinstance(f.meaning, ir.Lambda) or not isinstance(f.meaning.binder, ir.PairBinder):
                raise Rejected("a function that is no operator")
            return Operator(f.meaning, made("Op_fn", f.egg), None)
        if p.op == "Op_lift":
            if not isinstance(t, Array):
                raise Rejected(f"a lifted operator on {t}")
            inner = self.operator(p.parts[0], t.element)
            a, b = ir.Var("$p", t), ir.Var("$q", t)
            f = ir.Lambda(ir.PairBinder(a, b), ir.Map(inner.function, ir.Zip(a, b)))
            return Operator(f, made("Op_lift", inner.egg), inner.law)
        law = self.value(p.parts[0])
        f = operator_on(law, t)
        if isinstance(t, Array | Pair):
            raise Rejected(f"a scalar operator on {t}")
        return Operator(f, made("Op_scalar", law), law)

    def pattern(self, p: Pattern) -> ir.Binder:
        """The binding pattern, or variable, that a pattern stands for."""
        if isinstance(p, Hole):
            return self.value(p)
        assert isinstance(p, Node)
        if p.op == "P_pair":
            return ir.PairBinder(self.pattern(p.parts[0]), self.pattern(p.parts[1]))
        if p.op == "P_var":
            return self.pattern(p.parts[0])
        if p.op == "V___init__":
            return ir.Var(self.value(p.parts[0]), self.value(p.parts[1]))
        if p.op == "V_of":
            return self._skolem(p)
        raise Rejected(f"{p.op} is no name that a program has")

    def _skolem(self, p: Node) -> ir.Var:
        """A variable for a name that rules derive from a binder: programs that were rewritten have such names."""
        tag, of, size = self.value(p.parts[0]), self.pattern(p.parts[1]), self.value(p.parts[2])
        names = "_".join(v.name.strip("$") for v in ir.bound_variables(of))
        variable = ir.Var(f"${tag}_{names}_{size}", Array(nat(size), binder_type(of)))
        self.skolems[variable] = made("V_of", tag, binder_to_egg(of), size)
        return variable

    def names(self, p: Pattern) -> frozenset[Any] | None:
        """The set of variables that a pattern stands for; None if it is no such set."""
        if not isinstance(p, Node):
            return None
        if p.op == "Set_empty":
            return frozenset()
        if p.op == "bvs":
            return frozenset(ir.bound_variables(self.pattern(p.parts[0])))
        if p.op in ("fv", "fvf"):
            return ir.free_variables(self.value(p.parts[0]).meaning)
        if p.op == "fvo":
            return ir.free_variables(self._any_operator(p.parts[0]))
        parts = [self.names(part) for part in p.parts[:1]]
        if not parts or parts[0] is None:
            return None
        if p.op in ("Set_insert", "Set_remove"):
            name = frozenset((self.pattern(p.parts[1]),))
            return parts[0] | name if p.op == "Set_insert" else parts[0] - name
        second = self.names(p.parts[1]) if len(p.parts) == 2 else None
        if second is None:
            return None
        combined = {"Set___sub__": frozenset.__sub__, "Set___or__": frozenset.__or__, "Set___and__": frozenset.__and__}
        return combined[p.op](parts[0], second) if p.op in combined else None

    def _any_operator(self, p: Pattern) -> ir.Lambda:
        if isinstance(p, Node) and p.op == "Op_lift":
            return self._any_operator(p.parts[0])
        return self.operator(p, F32).function


def _text(i: Values, p: Node) -> str:
    """A text that is put together: of parts, or a number in digits."""
    parts = [i.value(part) for part in p.parts]
    if p.op not in ("join", "i64_to_string"):
        raise Rejected(f"{p.op} stands for no text")
    return "".join(map(str, parts))


def _order(i: Values, p: Node) -> str:
    """An order as the text of an index function."""
    if p.op in ("Order_then", "Order_inverse"):
        raise Rejected("no program has an order that is one of others")
    return str(index_function(KnownOrder(p.op, tuple(map(i.value, p.parts)))).body)


def _pattern(i: Values, op: str, parts: Sequence[Pattern]) -> Term:
    operation = PATTERN_NODES[op]
    numbers, inside = _arguments(i, operation, parts)
    meaning = operation.term(numbers, tuple(p.meaning for p in inside))
    if isinstance(meaning, ir.Gather | ir.Scatter):  # a text that is a stride, say, is that in a program
        numbers = (order_form(meaning.indices, size_of(meaning.array)),)
    return Term(meaning, made(op, *numbers, *(p.egg for p in inside)))


def _function(i: Values, op: str, parts: Sequence[Pattern]) -> Term:
    """A function without a name for its argument: a pattern that lacks its array."""
    operation = CONSTANTS[op]
    *given, t = parts
    v = ir.Var("$v", i.value(t))
    numbers, inside = _arguments(i, operation, given, v)
    body = operation.term(numbers, (*(p.meaning for p in inside), v))
    return Term(ir.Lambda(v, body), made(op, *numbers, *(p.egg for p in inside), type_to_egg(v.type)))


def _arguments(
    i: Values, operation: PatternNode, parts: Sequence[Pattern], array: ir.Expr | None = None
) -> tuple[tuple[Any, ...], list[Term]]:
    """The numbers and texts, and the parts; `array` is the last part where it is not among them."""
    count = len(operation.numbers)
    inside = list(zip(operation.signature.parts, parts[count:], strict=array is None))
    found = {p.name: i.value(part) for p, part in inside if not p.is_operator}
    for p, part in inside:
        if p.is_operator:
            at, is_array = operation.signature.combined_in(p)
            of = type_of(array if array is not None else found[operation.signature.parts[at].name].meaning)
            operator = i.operator(part, of.element if isinstance(of, Array) and is_array else of)
            found[p.name] = Term(operator.function, operator.egg)
    return tuple(i.value(p) for p in parts[:count]), [found[p.name] for p, _ in inside]


def _lam(i: Values, p: Pattern, b: Pattern) -> Term:
    body, pattern = i.value(b), i.pattern(p)
    return Term(ir.Lambda(pattern, body.meaning), made("Fn_lam", binder_to_egg(pattern), body.egg))


def _vec(i: Values, n: Pattern, f: Pattern) -> Term:
    inner = i.value(f)
    wide = ir.Vectorize(i.value(n), inner.meaning)
    codomain(wide)
    return Term(wide, made("Fn_vec", i.value(n), inner.egg))


def _zip(i: Values, t: Pattern) -> Term:
    pair = i.value(t)
    assert isinstance(pair, Pair)
    a, b = ir.Var("$p", pair.first), ir.Var("$q", pair.second)
    return Term(ir.Lambda(ir.PairBinder(a, b), ir.Zip(a, b)), made("Fn_zip", type_to_egg(pair)))


def _map(i: Values, n: Pattern, f: Pattern) -> Term:
    inner, size = i.value(f), i.value(n)
    v = ir.Var("$v", Array(nat(size), domain(inner.meaning)))
    return Term(ir.Lambda(v, ir.Map(inner.meaning, v)), made("Fn_map", size, inner.egg))


def _combine(i: Values, op: Pattern, a: Pattern, b: Pattern) -> Term:
    left, right = i.value(a), i.value(b)
    operator = i.operator(op, type_of(left.meaning))
    meaning = ir.Apply(operator.function, ir.MakePair(left.meaning, right.meaning))
    return Term(meaning, made("combine", operator.egg, left.egg, right.egg))


def _variable(i: Values, v: Pattern) -> Term:
    binder = i.pattern(v)
    assert isinstance(binder, ir.Var)
    return Term(binder, to_egg(binder))


def _literal(i: Values, text: Pattern, t: Pattern) -> Term:
    scalar = i.value(t)
    if not isinstance(scalar, Scalar):
        raise Rejected(f"a literal of the type {scalar}")
    try:
        meaning = ir.Literal(literal_value(i.value(text), scalar), scalar)
    except ValueError as problem:
        raise Rejected(f"{i.value(text)} is no {scalar}") from problem
    return Term(meaning, made("Ex_literal", i.value(text), type_to_egg(scalar)))


def _input(i: Values, name: Pattern, t: Pattern) -> Term:
    return Term(ir.Input(i.value(name), i.value(t)), made("Ex_input", i.value(name), type_to_egg(i.value(t))))


def _call(i: Values, op: Pattern, *arguments: Pattern) -> Term:
    name, parts = i.value(op), [i.value(a) for a in arguments]
    call = made(f"call{len(parts)}", name, *(p.egg for p in parts))
    return Term(ir.Call(name, tuple(p.meaning for p in parts)), call)


_OTHERS: dict[str, Callable[..., Any]] = {
    "Ty_scalar": lambda i, n: Scalar(i.value(n)),
    "Ty_vec": lambda i, s, n: Vector(Scalar(i.value(s)), i.value(n)),
    "Ty_arr": lambda i, n, t: Array(nat(i.value(n)), i.value(t)),
    "Ty_pair": lambda i, a, b: Pair(i.value(a), i.value(b)),
    "Ty_lanes": lambda i, n, t: lanes(i.value(n), i.value(t)),
    "Fn_lam": _lam,
    "Fn_vec": _vec,
    "Fn_zip": _zip,
    "Fn_map": _map,
    "Ex___init__": _variable,
    "Ex_input": _input,
    "Ex_literal": _literal,
    "call1": _call,
    "call2": _call,
    "call3": _call,
    "component": lambda i, n, a: Term(
        ir.Component(i.value(n), i.value(a).meaning), made("component", i.value(n), i.value(a).egg)
    ),
    "combine": _combine,
}
