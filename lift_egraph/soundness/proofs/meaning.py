"""The value of a pattern of a rule, for all terms and sizes that it may stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lift_egraph.egraph.orders import KnownOrder, index_function, read_order
from lift_egraph.egraph.pattern_nodes import CONSTANTS
from lift_egraph.egraph.rule_forms import Constant, Hole, Node, Pattern
from lift_egraph.language.nat import nat
from lift_egraph.soundness.proofs.integers import Integers, z3
from lift_egraph.soundness.proofs.scopes import Scopes, bound
from lift_egraph.soundness.proofs.typed import Typed
from lift_egraph.soundness.proofs.values import (
    Arr,
    Call,
    Cond,
    Function,
    Lanes,
    Loop,
    Neutral,
    Number,
    Pair,
    PairType,
    Repeat,
    Scope,
    Unknown,
    Value,
    at,
    component,
    lane,
    packed,
    reflected,
    size_of,
    width_of,
)

LOOPS = {
    "reduce_": "fold", "reduce_seq": "fold", "scan": "scan", "scan_seq": "scan",
    "scan_exclusive": "exclusive scan", "scan_exclusive_seq": "exclusive scan",
}  # fmt: skip


class NotUnderstood(Exception):
    """A part of a rule whose values this cannot describe."""


class Meaning:
    """Values of patterns, by their types and what the rule says about names."""

    def __init__(self, typed: Typed, scopes: Scopes, integers: Integers) -> None:
        self.typed, self.scopes, self.integers = typed, scopes, integers
        self.zero = integers.number(0)
        self._sources: dict[Any, Any] = {}
        self._placed: dict[Any, list[tuple[Any, Any]]] = {}

    def __call__(self, p: Pattern, scope: Scope = ()) -> Any:
        """The value of a term or function in a scope."""
        scope = self.scopes.seen(p, scope)
        if isinstance(p, Hole):
            return self.unknown(p, scope)
        assert isinstance(p, Node), p
        if p.op.startswith("Fn_"):
            return self.function(p, scope)
        if p.op.startswith("Op_"):
            return self.operator(p, scope)
        if p.op in LOOPS:
            return self.loop(p, scope)
        if p.op in ("call1", "call2", "call3"):
            return self.call(p.parts[0], tuple(self(a, scope) for a in p.parts[1:]))
        if p.op in _TERMS:
            return _TERMS[p.op](self, p, scope)
        raise NotUnderstood(p.op)

    # --- variables ---

    def unknown(self, p: Hole, scope: Scope) -> Any:
        if p.sort == "Fn":
            domain, codomain = map(self.typed.resolved, self.typed.types[p])
            return Function(domain, lambda x: reflected(Neutral(Unknown(p.name, scope, (x,))), codomain))
        t = self.typed.resolved(self.typed.types[p])
        if p.sort == "Op":
            return Function(PairType(t, t), lambda x: reflected(Neutral(Unknown(p.name, scope, (x,))), t))
        return reflected(Neutral(Unknown(p.name, scope)), t)

    def variable(self, p: Node, scope: Scope) -> Value:
        (v,) = p.parts
        for leaf, value in reversed(scope):
            if leaf == v:
                return value
            if not self.scopes.apart(leaf, v):
                raise NotUnderstood("a variable that may be bound by another binder")
        return reflected(Neutral(Unknown(str(v), ())), self.typed.resolved(self.typed.types[p]))

    # --- functions ---

    def function(self, p: Node, scope: Scope) -> Function:
        domain = self.typed.resolved(self.typed.types[p][0])
        if p.op == "Fn_lam":
            binder, body = p.parts
            return Function(domain, lambda x: self(body, scope + bound(binder, x)))
        if p.op == "Fn_vec":
            width, inner = self.integers.size(p.parts[0]), self(p.parts[1], scope)
            return Function(domain, lambda x: packed(width, lambda j: inner.apply(lane(x, j)), self.zero))
        if p.op == "Fn_map":
            inner = self(p.parts[1], scope)
            return Function(domain, lambda x: mapped(inner, x))
        if p.op == "Fn_reduce":
            return Function(domain, lambda x: self.loop(p, scope, x))
        name = next(n for n in (f"{p.op.removeprefix('Fn_')}_", p.op.removeprefix("Fn_")) if n in _LAYOUTS)
        numbers = [self.integers.size(n) for n in p.parts[: len(CONSTANTS[p.op].numbers)]]

        def apply(x: Value) -> Value:
            arrays = (component(x, 0), component(x, 1)) if name == "zip_" else (x,)
            return _LAYOUTS[name](self, *numbers, *arrays)

        return Function(domain, apply)

    def operator(self, p: Node, scope: Scope) -> Function:
        t = self.typed.resolved(self.typed.types[p])
        both = PairType(t, t)
        if p.op == "Op_fn":
            return Function(both, self(p.parts[0], scope).apply)
        if p.op == "Op_lift":
            inner = self(p.parts[0], scope)
            return Function(both, lambda x: mapped(inner, self.zip(component(x, 0), component(x, 1))))
        return Function(both, lambda x: self.call(p.parts[0], (component(x, 0), component(x, 1))))

    # --- patterns that compute ---

    def call(self, name: Pattern, arguments: tuple[Value, ...]) -> Value:
        """A scalar operation; on vectors lane by lane, but for one that is of all lanes."""
        if isinstance(name, Constant) and name.value == "dot":
            raise NotUnderstood("dot")
        wide = [a for a in arguments if isinstance(a, Lanes)]
        if not wide:
            return Neutral(Call(name, arguments))
        if isinstance(name, Hole):
            raise NotUnderstood("operations on vectors that may be any")
        return Lanes(
            wide[0].width, lambda j: self.call(name, tuple(a.lane(j) if isinstance(a, Lanes) else a for a in arguments))
        )

    def loop(self, p: Node, scope: Scope, array: Value | None = None) -> Value:
        operator, start = p.parts[:2]
        state = self.typed.resolved(self.typed.types[start])
        kind = LOOPS.get(p.op, "fold")
        xs: Value = self(p.parts[2], scope) if array is None else array
        size = size_of(xs)
        named = operator if isinstance(operator, Hole | Node) and operator.sort == "Op" else None
        head = Loop(kind, self(operator, scope), self(start, scope), Arr(size, lambda i: at(xs, i)), state, named)
        if kind == "fold":
            return reflected(Neutral(head), state)
        return Arr(size, lambda i: reflected(Neutral(head, (("at", i),)), state), Neutral(head))

    def iterate(self, p: Node, scope: Scope) -> Value:
        times, step, start = p.parts
        head = Repeat(self.integers.size(times), self(step, scope), self(start, scope))
        return reflected(Neutral(head), self.typed.resolved(self.typed.types[start]))

    def literal(self, p: Node, scope: Scope) -> Value:
        return Neutral(Call(p))

    # --- orders ---

    def source(self, order: Pattern, i: Any, n: Any) -> Any:
        """Where an element at an index comes from."""
        if isinstance(order, Hole):
            source = z3().Function(f"order {order.name}", *([z3().IntSort()] * 3))(i, n)
            self.integers.facts.append(z3().Implies(z3().And(i >= 0, i < n), z3().And(source >= 0, source < n)))
            return source
        if isinstance(order, Node) and order.op == "Order_then":
            return self.source(order.parts[1], self.source(order.parts[0], i, n), n)
        if isinstance(order, Node) and order.op == "Order_inverse":
            return self.target(order.parts[0], i, n)
        body, values = self.order(order)
        return self.integers.index(body, lambda name: {"i": i, "n": n}.get(name, values.get(name)))

    def order(self, order: Pattern) -> tuple[Any, dict[str, Any]]:
        """An index function, and what the names of its sizes stand for."""
        values: dict[str, Any] = {}
        if isinstance(order, Node) and order.op != "Order_of":
            values = {f"size{k}": self.integers.size(part) for k, part in enumerate(order.parts)}
            return index_function(KnownOrder(order.op, tuple(map(nat, values)))).body, values
        (text,) = order.parts if isinstance(order, Node) else (order,)

        def put(p: Pattern) -> str:
            if isinstance(p, Constant):
                return str(p.value)
            if isinstance(p, Node) and p.op == "join":
                return "".join(map(put, p.parts))
            if isinstance(p, Node) and p.op == "i64_to_string":
                name = f"size{len(values)}"
                values[name] = self.integers.size(p.parts[0])
                return name
            raise NotUnderstood(f"an order {p}")

        return read_order(put(text)).body, values

    def target(self, order: Pattern, i: Any, n: Any) -> Any:
        """Which element a permutation puts at an index."""
        solver = z3()
        key = order, solver.simplify(i, som=True), solver.simplify(n, som=True)
        if key not in self._sources:
            found = self.integers.new("target")
            self._sources[key] = found
            placed = self._placed.setdefault(order, [])
            known = self.source(order, found, n)
            inside = solver.And(i >= 0, i < n)
            self.integers.facts.append(solver.Implies(inside, solver.And(found >= 0, found < n, known == i)))
            placed.append((found, n))
        return self._sources[key]

    def gather(self, order: Pattern, array: Value) -> Value:
        n = size_of(array)

        def element(i: Any) -> Value:
            self._placed.setdefault(order, []).append((i, n))
            return at(array, self.source(order, i, n))

        return Arr(n, element)

    def scatter(self, order: Pattern, array: Value) -> Value:
        n, solver = size_of(array), z3()

        def element(i: Any) -> Value:
            found = self.target(order, i, n)
            for other, m in self._placed.get(order, ()):  # it is one to one
                inside = solver.And(n == m, other >= 0, other < n, found >= 0, found < n)
                same = self.source(order, other, m) == self.source(order, found, n)
                self.integers.facts.append(solver.Implies(solver.And(inside, same), other == found))
            return at(array, found)

        return Arr(n, element)

    # --- patterns that move data ---

    def zip(self, a: Value, b: Value) -> Value:
        return Arr(size_of(a), lambda i: Pair(at(a, i), at(b, i)))

    def split(self, n: Any, xs: Value) -> Value:
        count = self.integers.divide(size_of(xs), n)[0]
        return Arr(count, lambda i: Arr(n, lambda j: at(xs, i * n + j)))

    def join(self, xss: Value) -> Value:
        n = size_of(at(xss, self.zero))

        def element(i: Any) -> Value:
            q, r = self.integers.divide(i, n)
            return at(at(xss, q), r)

        return Arr(size_of(xss) * n, element)

    def transpose(self, xss: Value) -> Value:
        m, n = size_of(xss), size_of(at(xss, self.zero))
        return Arr(n, lambda j: Arr(m, lambda i: at(at(xss, i), j)))

    def slice(self, start: Any, length: Any, xs: Value) -> Value:
        return Arr(length, lambda i: at(xs, start + i))

    def concat(self, a: Value, b: Value) -> Value:
        m = size_of(a)
        return Arr(m + size_of(b), lambda i: Cond(i < m, at(a, i), at(b, i - m)))

    def slide(self, size: Any, step: Any, xs: Value) -> Value:
        count = self.integers.divide(size_of(xs) - size, step)[0] + 1
        return Arr(count, lambda i: Arr(size, lambda j: at(xs, i * step + j)))

    def pad(self, left: Any, right: Any, boundary: Pattern, xs: Value) -> Value:
        n, solver = size_of(xs), z3()

        def element(i: Any) -> Value:
            if boundary == Constant("clamp"):
                source = solver.If(i < left, 0, solver.If(i < left + n, i - left, n - 1))
            elif boundary == Constant("wrap"):
                source = self.integers.divide(i - left, n)[1]
            else:
                sorts = [solver.IntSort()] * 3
                source = solver.Function(f"boundary {boundary}", *sorts)(i - left, n)
                inside = solver.And(i >= 0, i < left + n + right, n > 0)
                self.integers.facts.append(solver.Implies(inside, solver.And(source >= 0, source < n)))
            return at(xs, source)

        return Arr(left + n + right, element)

    def pad_constant(self, left: Any, right: Any, value: Value, xs: Value) -> Value:
        n = size_of(xs)
        inside: Callable[[Any], Any] = lambda i: z3().And(left <= i, i < left + n)  # noqa: E731
        return Arr(left + n + right, lambda i: Cond(inside(i), at(xs, i - left), value))

    def padded(self, p: Node, scope: Scope) -> Value:
        left, right = (self.integers.size(part) for part in p.parts[:2])
        array = self(p.parts[3], scope)
        if p.op == "pad":
            return self.pad(left, right, p.parts[2], array)
        return self.pad_constant(left, right, self(p.parts[2], scope), array)

    def as_vector(self, width: Any, xs: Value) -> Value:
        count = self.integers.divide(size_of(xs), width)[0]
        return Arr(count, lambda i: packed(width, lambda j: at(xs, i * width + j), self.zero))

    def as_scalar(self, xs: Value) -> Value:
        width = width_of(at(xs, self.zero), self.zero)

        def element(i: Any) -> Value:
            q, r = self.integers.divide(i, width)
            return lane(at(xs, q), r)

        return Arr(size_of(xs) * width, element)


def mapped(f: Function, xs: Value) -> Value:
    """A function on each element."""
    return Arr(size_of(xs), lambda i: f.apply(at(xs, i)))


_LAYOUTS: dict[str, Callable[..., Value]] = {
    "zip_": Meaning.zip,
    "split": Meaning.split,
    "join": Meaning.join,
    "transpose": Meaning.transpose,
    "slice_": Meaning.slice,
    "concat": Meaning.concat,
    "slide": Meaning.slide,
    "as_vector": Meaning.as_vector,
    "as_scalar": Meaning.as_scalar,
    "at": lambda m, n, xs: at(xs, n),
    "fill": lambda m, n, x: Arr(n, lambda i: x),
    "component": lambda m, k, x: component(x, k.as_long()),
    "make_pair": lambda m, a, b: Pair(a, b),
}


def _layout(m: Meaning, p: Node, scope: Scope) -> Value:
    """An operation on sizes and terms."""
    values = (m.integers.size(x) if isinstance(x, Constant) or x.sort == "i64" else m(x, scope) for x in p.parts)
    return _LAYOUTS[p.op](m, *values)


_TERMS: dict[str, Callable[[Meaning, Node, Scope], Value]] = {
    **dict.fromkeys(_LAYOUTS, _layout),
    "Ex___init__": Meaning.variable,
    "Ex_input": Meaning.literal,
    "Ex_literal": Meaning.literal,
    **dict.fromkeys(("app", "iterate_step"), lambda m, p, s: m(p.parts[0], s).apply(m(p.parts[1], s))),
    "combine": lambda m, p, s: m(p.parts[0], s).apply(Pair(m(p.parts[1], s), m(p.parts[2], s))),
    "map_": lambda m, p, s: mapped(m(p.parts[0], s), m(p.parts[1], s)),
    "map_level": lambda m, p, s: mapped(m(p.parts[2], s), m(p.parts[3], s)),
    "to_memory": lambda m, p, s: m(p.parts[1], s),
    "generate": lambda m, p, s: Arr(m.integers.size(p.parts[0]), lambda i: m(p.parts[1], s).apply(Number(i))),
    "iterate": Meaning.iterate,
    "gather": lambda m, p, s: m.gather(p.parts[0], m(p.parts[1], s)),
    "scatter": lambda m, p, s: m.scatter(p.parts[0], m(p.parts[1], s)),
    "pad": Meaning.padded,
    "pad_constant": Meaning.padded,
}
