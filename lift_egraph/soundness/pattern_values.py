"""What the parts of a pattern stand for, once its variables have values: terms, functions, types, sets of names.

Every term has two forms: its meaning in `lift_egraph.language.ir`, and how it stands in the e-graph, which knows nodes
(`combine`, `Fn.map` …) that no program has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import pattern_to_egg, type_to_egg
from lift_egraph.egraph.frozen import literal_value, read_order
from lift_egraph.egraph.rule_forms import Constant, Hole, Node, Pattern
from lift_egraph.language import ir
from lift_egraph.language.check import codomain, domain, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.types import F32, Array, DataType, Pair, Scalar, Vector, lanes
from lift_egraph.soundness.random_terms import known_operator
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
    """The values of a pattern's variables, by name, and through them those of all its parts."""

    values: dict[str, Any] = field(default_factory=dict)

    def value(self, p: Pattern) -> Any:
        """What a pattern stands for: a `Term`, an `Operator`, a type, a number, a text."""
        if isinstance(p, Hole):
            return self.values[p.name]
        if isinstance(p, Constant):
            return p.value
        size = size_value(p, self.values) if p.sort == "i64" else None
        if size is not None:
            return size
        return _OPERATIONS[p.op](self, *p.parts)

    def operator(self, p: Pattern, t: DataType) -> Operator:
        """The operator that a pattern stands for, on elements of a type."""
        if isinstance(p, Hole):
            return self.values[p.name]
        assert isinstance(p, Node)
        if p.op == "Op_fn":
            f = self.value(p.parts[0])
            if not isinstance(f.meaning, ir.Lambda) or not isinstance(f.meaning.pattern, ir.PairPattern):
                raise Rejected("a function that is no operator")
            return Operator(f.meaning, sorts.Op.fn(f.egg), None)
        if p.op == "Op_lift":
            if not isinstance(t, Array):
                raise Rejected(f"a lifted operator on {t}")
            inner = self.operator(p.parts[0], t.element)
            a, b = ir.Var("$p", t), ir.Var("$q", t)
            f = ir.Lambda(ir.PairPattern(a, b), ir.Map(inner.function, ir.Zip(a, b)))
            return Operator(f, inner.egg.lift(), inner.law)
        law = self.value(p.parts[0])
        f = known_operator(law, t)
        if isinstance(t, Array | Pair):
            raise Rejected(f"a scalar operator on {t}")
        return Operator(f, sorts.Op.scalar(law), law)

    def pattern(self, p: Pattern) -> ir.Pattern:
        """The binding pattern, or variable, that a pattern stands for."""
        if isinstance(p, Hole):
            return self.values[p.name]
        assert isinstance(p, Node)
        if p.op == "P_pair":
            return ir.PairPattern(self.pattern(p.parts[0]), self.pattern(p.parts[1]))
        if p.op == "P_var":
            return self.pattern(p.parts[0])
        if p.op == "V___init__":
            return ir.Var(self.value(p.parts[0]), self.value(p.parts[1]))
        raise Rejected(f"{p.op} is no name that a program has")

    def variable(self, p: Pattern) -> Any:
        if isinstance(p, Node) and p.op == "V_of":
            return p  # a name that no program has
        return self.pattern(p)

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
            name = frozenset((self.variable(p.parts[1]),))
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


def _plain(build: Callable[..., ir.Expr], egg: Callable[..., Any]) -> Callable[..., Term]:
    """An operation whose parts are terms, functions, numbers or texts."""

    def make(values: Values, *parts: Pattern) -> Term:
        found = [values.value(p) for p in parts]
        meanings = [v.meaning if isinstance(v, Term) else v for v in found]
        eggs = [v.egg if isinstance(v, Term) else v for v in found]
        return Term(build(*meanings), egg(*eggs))

    return make


def _named(build: Callable[..., ir.Expr], egg: Callable[..., Any]) -> Callable[..., Term]:
    """A constant function over a type."""

    def make(values: Values, *parts: Pattern) -> Term:
        *given, t = (values.value(p) for p in parts)
        v = ir.Var("$v", t)
        return Term(ir.Lambda(v, build(*given, v)), egg(*given, type_to_egg(t)))

    return make


def _lam(i: Values, p: Pattern, b: Pattern) -> Term:
    body, pattern = i.value(b), i.pattern(p)
    return Term(ir.Lambda(pattern, body.meaning), sorts.Fn.lam(pattern_to_egg(pattern), body.egg))


def _vec(i: Values, n: Pattern, f: Pattern) -> Term:
    inner = i.value(f)
    made = ir.Vectorize(i.value(n), inner.meaning)
    codomain(made)
    return Term(made, sorts.Fn.vec(i.value(n), inner.egg))


def _zip(i: Values, t: Pattern) -> Term:
    pair = i.value(t)
    assert isinstance(pair, Pair)
    a, b = ir.Var("$p", pair.first), ir.Var("$q", pair.second)
    return Term(ir.Lambda(ir.PairPattern(a, b), ir.Zip(a, b)), sorts.Fn.zip(type_to_egg(pair)))


def _map(i: Values, n: Pattern, f: Pattern) -> Term:
    inner, size = i.value(f), i.value(n)
    v = ir.Var("$v", Array(nat(size), domain(inner.meaning)))
    return Term(ir.Lambda(v, ir.Map(inner.meaning, v)), sorts.Fn.map(size, inner.egg))


def _reduce_function(i: Values, op: Pattern, z: Pattern, t: Pattern) -> Term:
    array, start = i.value(t), i.value(z)
    operator = i.operator(op, array.element)
    v = ir.Var("$v", array)
    made = ir.Lambda(v, ir.Reduce(operator.function, start.meaning, v))
    return Term(made, sorts.Fn.reduce(operator.egg, start.egg, type_to_egg(array)))


def _reduce(i: Values, op: Pattern, z: Pattern, x: Pattern) -> Term:
    start, array = i.value(z), i.value(x)
    operator = i.operator(op, type_of(start.meaning))
    return Term(
        ir.Reduce(operator.function, start.meaning, array.meaning), sorts.reduce_(operator.egg, start.egg, array.egg)
    )


def _combine(i: Values, op: Pattern, a: Pattern, b: Pattern) -> Term:
    left, right = i.value(a), i.value(b)
    operator = i.operator(op, type_of(left.meaning))
    meaning = ir.Apply(operator.function, ir.MakePair(left.meaning, right.meaning))
    return Term(meaning, sorts.combine(operator.egg, left.egg, right.egg))


def _variable(i: Values, v: Pattern) -> Term:
    binder = i.pattern(v)
    assert isinstance(binder, ir.Var)
    return Term(binder, sorts.Ex(sorts.V(binder.name, type_to_egg(binder.type))))


def _literal(i: Values, text: Pattern, t: Pattern) -> Term:
    scalar = i.value(t)
    if not isinstance(scalar, Scalar):
        raise Rejected(f"a literal of the type {scalar}")
    meaning = ir.Literal(literal_value(i.value(text), scalar), scalar)
    return Term(meaning, sorts.Ex.literal(i.value(text), type_to_egg(scalar)))


def _input(i: Values, name: Pattern, t: Pattern) -> Term:
    return Term(ir.Input(i.value(name), i.value(t)), sorts.Ex.input(i.value(name), type_to_egg(i.value(t))))


def _iterate(times: int, f: ir.Function, x: ir.Expr) -> ir.Expr:
    assert isinstance(f, ir.Lambda)
    return ir.Iterate(times, "n", f, x)


def _pad_constant(left: int, right: int, value: ir.Expr, x: ir.Expr) -> ir.Expr:
    if not isinstance(value, ir.Literal):
        raise Rejected("the value of pad is no literal")
    return ir.Pad(nat(left), nat(right), ir.Boundary("constant", value), x)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "Ty_scalar": lambda i, n: Scalar(i.value(n)),
    "Ty_vec": lambda i, s, n: Vector(Scalar(i.value(s)), i.value(n)),
    "Ty_arr": lambda i, n, t: Array(nat(i.value(n)), i.value(t)),
    "Ty_pair": lambda i, a, b: Pair(i.value(a), i.value(b)),
    "Ty_lanes": lambda i, n, t: lanes(i.value(n), i.value(t)),
    "Fn_lam": _lam,
    "Fn_vec": _vec,
    "Fn_join": _named(ir.Join, sorts.Fn.join),
    "Fn_transpose": _named(ir.Transpose, sorts.Fn.transpose),
    "Fn_split": _named(lambda n, v: ir.Split(nat(n), v), sorts.Fn.split),
    "Fn_zip": _zip,
    "Fn_map": _map,
    "Fn_reduce": _reduce_function,
    "Ex___init__": _variable,
    "Ex_input": _input,
    "Ex_literal": _literal,
    "call1": _plain(lambda op, a: ir.Call(op, (a,)), sorts.call1),
    "call2": _plain(lambda op, a, b: ir.Call(op, (a, b)), sorts.call2),
    "call3": _plain(lambda op, a, b, c: ir.Call(op, (a, b, c)), sorts.call3),
    "make_pair": _plain(ir.MakePair, sorts.make_pair),
    "component": _plain(ir.Component, sorts.component),
    "app": _plain(ir.Apply, sorts.app),
    "combine": _combine,
    "map_": _plain(ir.Map, sorts.map_),
    "map_level": _plain(lambda k, d, f, x: ir.MapLevel(ir.Level(k, 0 if k == "seq" else d), f, x), sorts.map_level),
    "reduce_": _reduce,
    "reduce_seq": _plain(ir.ReduceSeq, sorts.reduce_seq),
    "zip_": _plain(ir.Zip, sorts.zip_),
    "split": _plain(lambda n, x: ir.Split(nat(n), x), sorts.split),
    "join": _plain(ir.Join, sorts.join),
    "transpose": _plain(ir.Transpose, sorts.transpose),
    "gather": _plain(lambda t, x: ir.Gather(read_order(t), x), sorts.gather),
    "scatter": _plain(lambda t, x: ir.Scatter(read_order(t), x), sorts.scatter),
    "slide": _plain(lambda n, k, x: ir.Slide(nat(n), nat(k), x), sorts.slide),
    "pad": _plain(lambda a, b, k, x: ir.Pad(nat(a), nat(b), ir.Boundary(k), x), sorts.pad),
    "pad_constant": _plain(_pad_constant, sorts.pad_constant),
    "iterate": _plain(_iterate, sorts.iterate),
    "at": _plain(lambda n, x: ir.At(nat(n), x), sorts.at),
    "generate": _plain(lambda n, f: ir.Generate(nat(n), f), sorts.generate),
    "fill": _plain(lambda n, z: ir.Fill(nat(n), z), sorts.fill),
    "lookup": _plain(ir.Lookup, sorts.lookup),
    "to_memory": _plain(ir.ToMemory, sorts.to_memory),
    "as_vector": _plain(ir.AsVector, sorts.as_vector),
    "as_scalar": _plain(ir.AsScalar, sorts.as_scalar),
}
