"""What an e-graph knows of its terms: types, free variables, operator laws, and names kept in stock.

Types and free variables of patterns follow from their signatures. These rules run to saturation between all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import egglog
from egglog import Ruleset, String, eq, i64, rewrite, ruleset, set_
from egglog.egraph import FactLike

from lift_egraph.egraph import sorts
from lift_egraph.egraph.pattern_nodes import CONSTANTS, KINDS, PATTERN_NODES, PatternNode
from lift_egraph.egraph.rule import together
from lift_egraph.egraph.sorts import Ex, Fn, Names, Op, Order, P, Ty, V, bvs, cod, fv, fvf, fvo, pty, ty, vty
from lift_egraph.language.inference import made_type
from lift_egraph.language.scalar import LAWS, NUMPY_TYPES, OPERATIONS
from lift_egraph.language.signature import FunctionForm, Parameter
from lift_egraph.language.types import Scalar

_SORTS: dict[str, Any] = {"i64": i64, "String": String, "Order": Order}


class _Made:
    """Types and sizes as terms of the e-graph (`lift_egraph.language.inference.Makes`)."""

    def scalar(self, name: str) -> Ty:
        return Ty.scalar(name)

    def array(self, size: i64, element: Ty) -> Ty:
        return Ty.arr(size, element)

    def pair(self, first: Ty, second: Ty) -> Ty:
        return Ty.pair(first, second)

    def lanes(self, width: i64, t: Ty) -> Ty:
        return Ty.lanes(width, t)

    def number(self, value: int) -> i64:
        return i64(value)

    def arithmetic(self, sign: str, left: i64, right: i64) -> i64:
        return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[sign]


class _Match:
    """A pattern applied to variables, as rules about it match it.

    Attributes
    ----------
    numbers, parts
        The variables: for numbers and texts, and for terms and functions.
    facts
        The facts that give the types of the parts.
    """

    def __init__(self, node: PatternNode) -> None:
        self.node, self.signature = node, node.signature
        self.names: dict[str, Any] = {n: egglog.var(n, Ty) for n in self.signature.type_variables}
        self.names |= {n: egglog.var(n, i64) for n in self.signature.sizes}
        self.numbers: list[Any] = []
        for p in self.signature.parameters:
            for i, sort in enumerate(KINDS[p.kind].sorts if p.form is None else ()):
                new = egglog.var(f"{p.name}{i}", _SORTS[sort])
                self.numbers.append(self.names.get(p.name, new))
        self.parts = [self._part(p) for p in self.signature.parts]
        typed = zip(self.signature.parts, self.parts, strict=True)
        self.facts = [self._fact(p, part) for p, part in typed if not p.is_operator]
        # a division by zero would end the run
        self.facts += [self.names[str(c.left)] > i64(0) for c in self.signature.conditions if c.relation == ">"]

    @property
    def term(self) -> Ex:
        return getattr(sorts, self.node.name)(*self.numbers, *self.parts)

    @property
    def combined(self) -> list[Ty]:
        """The types that its operators combine."""
        return [self.type(p.form.result) for p in self.signature.functions if p.is_operator]  # pyright: ignore

    def _part(self, p: Parameter) -> Any:
        return egglog.var(p.name, Op if p.is_operator else Fn if p.is_function else Ex)

    def _fact(self, p: Parameter, part: Any) -> FactLike:
        if isinstance(p.form, FunctionForm):
            return eq(self.type(p.form.result)).to(cod(part))
        return eq(self.type(p.form)).to(ty(part))

    def type(self, form: Any) -> Ty:
        return made_type(form, self.names, _Made())


_MATCHES = [_Match(node) for node in PATTERN_NODES.values()]


@ruleset
def _types(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, r: P, v: V, s: String, t: Ty, u: Ty, w: Ty, n: i64, m: i64,
    op: Op, index: Ty,
):  # fmt: skip
    def has(term: Ex, result: Ty, *facts: FactLike):
        return egglog.rule(eq(e).to(term), *facts).then(set_(ty(e)).to(result))

    for match in _MATCHES:
        yield has(match.term, match.type(match.signature.result), *match.facts)
    for use in (eq(q).to(P.var(v)), eq(e).to(Ex(v))):  # names in stock may never be used
        yield egglog.rule(use, eq(v).to(V(s, t))).then(set_(vty(v)).to(t))
        for tag in ("chunk", "slice", "column"):
            yield egglog.rule(use, eq(v).to(V.of(tag, p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(p).to(P.var(v)), eq(t).to(vty(v))).then(set_(pty(p)).to(t))
    yield egglog.rule(eq(r).to(P.pair(p, q)), eq(t).to(pty(p)), eq(u).to(pty(q))).then(set_(pty(r)).to(Ty.pair(t, u)))
    yield has(Ex(v), t, eq(t).to(vty(v)))
    yield has(Ex.input(s, t), t)
    yield has(Ex.literal(s, t), t)
    yield has(sorts.component(i64(0), x), t, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(sorts.component(i64(1), x), u, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(sorts.combine(op, x, y), t, eq(t).to(ty(x)))
    # functions
    yield egglog.rule(eq(f).to(Fn.lam(p, x)), eq(u).to(ty(x))).then(set_(cod(f)).to(u))
    yield egglog.rule(eq(f).to(Fn.vec(n, g)), eq(u).to(cod(g))).then(set_(cod(f)).to(Ty.lanes(n, u)))
    for constant, match in _constants():
        arguments = [match.type(p.form) for p in match.signature.terms]
        argument = Ty.pair(*arguments) if len(arguments) > 1 else arguments[0]
        yield egglog.rule(eq(f).to(constant(*match.numbers, index)), eq(index).to(argument)).then(
            set_(cod(f)).to(match.type(match.signature.result))
        )
    yield egglog.rule(eq(f).to(Fn.map(n, g)), eq(u).to(cod(g))).then(set_(cod(f)).to(Ty.arr(n, u)))
    yield egglog.rule(eq(f).to(Fn.reduce(op, z, t)), eq(u).to(ty(z))).then(set_(cod(f)).to(u))
    # vectors at the leaves
    yield rewrite(Ty.lanes(n, Ty.scalar(s))).to(Ty.vec(s, n))
    yield rewrite(Ty.lanes(n, Ty.pair(t, u))).to(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u)))
    yield rewrite(Ty.lanes(n, Ty.arr(m, t))).to(Ty.arr(m, Ty.lanes(n, t)))
    yield rewrite(Ty.vec(s, n)).to(Ty.lanes(n, Ty.scalar(s)))
    yield rewrite(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u))).to(Ty.lanes(n, Ty.pair(t, u)))
    yield rewrite(Ty.arr(m, Ty.lanes(n, t))).to(Ty.lanes(n, Ty.arr(m, t)))
    yield egglog.rule(eq(t).to(Ty.scalar(s))).then(sorts.scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), sorts.scalar_like(u)).then(sorts.scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.pair(u, w)), sorts.scalar_like(u), sorts.scalar_like(w)).then(sorts.scalar_like(t))
    whole = sorts.without_floats
    for scalar in (name for name in NUMPY_TYPES if not Scalar(name).is_float):
        yield egglog.rule(eq(t).to(Ty.scalar(scalar))).then(whole(t))
    yield egglog.rule(eq(t).to(Ty.lanes(n, u)), whole(u)).then(whole(t))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), whole(u)).then(whole(t))
    yield egglog.rule(eq(t).to(Ty.pair(u, w)), whole(u), whole(w)).then(whole(t))


def _constants() -> Iterator[tuple[Any, _Match]]:
    """The functions that are a pattern of terms only, without a name for its argument."""
    for name, node in CONSTANTS.items():
        if not node.signature.functions:
            yield getattr(Fn, name.removeprefix("Fn_")), _Match(node)


@ruleset
def _calls(e: Ex, x: Ex, y: Ex, z: Ex, q: String, r: String, s: String, n: i64, name: String, own: String):
    """A call has the scalar of its last argument, or its own, in as many lanes as its vectors have; dot has none."""
    for arity, call in ((1, sorts.call1), (2, sorts.call2), (3, sorts.call3)):
        arguments = (x, y, z)[:arity]
        for wide in product((False, True), repeat=arity):
            types = [Ty.vec(u, n) if w else Ty.scalar(u) for u, w in zip((q, r, s)[-arity:], wide, strict=True)]
            typed = [eq(t).to(ty(a)) for t, a in zip(types, arguments, strict=True)]
            for scalar, of_result in ((s, sorts.keeps(name)), (own, sorts.gives(name, own))):
                result = Ty.vec(scalar, n) if any(wide) else Ty.scalar(scalar)
                yield egglog.rule(eq(e).to(call(name, *arguments)), of_result, *typed).then(set_(ty(e)).to(result))
    for across in (op.name for op in OPERATIONS.values() if op.kind == "lanes"):
        vectors = eq(Ty.vec(s, n)).to(ty(x)), eq(Ty.vec(s, n)).to(ty(y))
        yield egglog.rule(eq(e).to(sorts.call2(across, x, y)), *vectors).then(set_(ty(e)).to(Ty.scalar(s)))


@ruleset
def _scopes(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, v: V, s: String, t: Ty, n: i64, op: Op, r: P, other: Op
):  # fmt: skip
    def mentions(term: Ex, *inside: Ex | Fn | Op):
        names = [fvo(i) if isinstance(i, Op) else fvf(i) if isinstance(i, Fn) else fv(i) for i in inside]
        bound = [egglog.var(f"names{i}", Names) for i in range(len(inside))]
        total = sorts.EMPTY
        for b in bound:
            total = total | b
        return egglog.rule(eq(e).to(term), *(eq(b).to(a) for a, b in zip(names, bound, strict=True))).then(
            set_(fv(e)).to(total)
        )

    for match in _MATCHES:
        yield mentions(match.term, *match.parts)
    yield egglog.rule(eq(p).to(P.var(v))).then(set_(bvs(p)).to(sorts.EMPTY.insert(v)))
    yield egglog.rule(
        eq(r).to(P.pair(p, q)), eq(a := egglog.var("a", Names)).to(bvs(p)), eq(b := egglog.var("b", Names)).to(bvs(q))
    ).then(set_(bvs(r)).to(a | b))
    yield egglog.rule(eq(e).to(Ex(v))).then(set_(fv(e)).to(sorts.EMPTY.insert(v)))
    for closed in (Ex.input(s, t), Ex.literal(s, t)):
        yield mentions(closed)
    for unary in (sorts.call1(s, x), sorts.component(n, x)):
        yield mentions(unary, x)
    yield mentions(sorts.call2(s, x, y), x, y)
    yield mentions(sorts.call3(s, x, y, z), x, y, z)
    yield mentions(sorts.combine(op, x, y), op, x, y)
    yield egglog.rule(
        eq(f).to(Fn.lam(p, x)), eq(a).to(fv(x)), eq(b).to(bvs(p))
    ).then(set_(fvf(f)).to(a - b))  # fmt: skip
    for same in (Fn.vec(n, g), Fn.map(n, g)):
        yield egglog.rule(eq(f).to(same), eq(a).to(fvf(g))).then(set_(fvf(f)).to(a))
    for constant, match in _constants():
        yield egglog.rule(eq(f).to(constant(*match.numbers, t))).then(set_(fvf(f)).to(sorts.EMPTY))
    yield egglog.rule(eq(f).to(Fn.reduce(op, z, t)), eq(a).to(fv(z)), eq(b).to(fvo(op))).then(set_(fvf(f)).to(a | b))
    yield egglog.rule(eq(op).to(Op.scalar(s))).then(set_(fvo(op)).to(sorts.EMPTY))
    yield egglog.rule(eq(op).to(Op.fn(f)), eq(a).to(fvf(f))).then(set_(fvo(op)).to(a))
    yield egglog.rule(eq(op).to(other.lift()), eq(a).to(fvo(other))).then(set_(fvo(op)).to(a))


@ruleset
def _operators(
    op: Op, z: Ex, x: Ex, y: Ex, e: Ex, w: Ex, low: Ex, high: Ex, f: Fn, t: Ty, u: Ty, n: i64, m: i64, number: String
):
    """Laws of operators in use: of those lifted to arrays, and with which number an idempotent one may begin again."""
    lifted, start = op.lift(), sorts.fill(n, z)
    for with_operator, with_start in (
        (eq(y).to(sorts.reduce_(lifted, z, x)), eq(y).to(sorts.reduce_(lifted, start, x))),
        (eq(f).to(Fn.reduce(lifted, z, t)), eq(f).to(Fn.reduce(lifted, start, t))),
    ):
        yield egglog.rule(sorts.associative(op), with_operator).then(sorts.associative(lifted))
        yield egglog.rule(sorts.commutative(op), with_operator).then(sorts.commutative(lifted))
        yield egglog.rule(sorts.neutral(op, z), with_start).then(sorts.neutral(lifted, start))
    start_of_each = Ty.arr(n, t)
    for in_use, of_start in (
        (eq(y).to(sorts.scan(lifted, x, e)), start_of_each),
        (eq(y).to(sorts.scan_exclusive(lifted, x, e)), start_of_each),
        (eq(y).to(sorts.reduce_range(lifted, x, low, high, e)), start_of_each),
        (eq(y).to(sorts.reduce_by_index(lifted, x, w, e)), Ty.arr(m, start_of_each)),
    ):
        yield egglog.rule(sorts.associative(op), in_use).then(sorts.associative(lifted))
        yield egglog.rule(sorts.commutative(op), in_use).then(sorts.commutative(lifted))
        yield egglog.rule(
            sorts.identity(op, z), in_use, eq(t).to(ty(z)), eq(of_start).to(ty(x))
        ).then(sorts.identity(lifted, start))  # fmt: skip
    start = Ex.literal(number, u)
    for name in (name for name, laws in LAWS.items() if laws.idempotent):
        known = Op.scalar(name)
        yield egglog.rule(eq(y).to(sorts.reduce_(known, start, x))).then(sorts.neutral(known, start))
        yield egglog.rule(eq(f).to(Fn.reduce(known, start, t))).then(sorts.neutral(known, start))


@ruleset
def _orders(p: Order, q: Order, a: i64, b: i64, n: i64):
    """Two orders one after the other, and orders undone; an inverse is one of a permutation, as those of terms are.

    That `then` is associative follows where it matters: the rule that makes it of gathers meets them in either way. As
    an equation of orders it would have no end.
    """
    then, inverse, identity, reverse = Order.then, Order.inverse, Order.identity(), Order.reverse()
    yield rewrite(then(identity, p)).to(p)
    yield rewrite(then(p, identity)).to(p)
    for one, other in ((reverse, reverse), (Order.stride(a, b), Order.stride(b, a)), (p, inverse(p)), (inverse(p), p)):
        yield rewrite(then(one, other)).to(identity)
    yield rewrite(then(Order.shift(a, n), Order.shift(b, n))).to(Order.shift((a + b) % n, n), n > 0)
    yield rewrite(Order.shift(0, n)).to(identity)
    yield rewrite(inverse(identity)).to(identity)
    yield rewrite(inverse(reverse)).to(reverse)
    yield rewrite(inverse(Order.stride(a, b))).to(Order.stride(b, a))
    yield rewrite(inverse(Order.shift(a, n))).to(Order.shift(n - a, n), a > 0, a < n)
    yield rewrite(inverse(inverse(p))).to(p)
    yield rewrite(inverse(then(p, q))).to(then(inverse(q), inverse(p)))


@ruleset
def _names(
    p: P, q: P, x: Ex, y: Ex, z: Ex, xs: Ex, op: Op, t: Ty, n: i64, m: i64, v: V, e: Ex, level: String, d: i64
):  # fmt: skip
    """Names that side conditions mention must exist first: a query matches existing terms only."""
    for mapped in (sorts.map_(Fn.lam(p, x), xs), sorts.map_level(level, d, Fn.lam(p, x), xs)):
        yield egglog.rule(eq(e).to(mapped), eq(Ty.arr(m, t)).to(ty(xs)), sorts.tile(m, n)).then(V.of("chunk", p, n))
    rows = [sorts.map_(Fn.lam(pair, x), sorts.zip_(y, z)) for pair in (P.pair(P.var(v), q), P.pair(q, P.var(v)))]
    for row in (*rows, sorts.reduce_seq(Fn.lam(P.pair(P.var(v), q), x), y, z)):
        yield egglog.rule(eq(e).to(sorts.map_(Fn.lam(p, row), xs)), eq(Ty.arr(n, t)).to(ty(xs))).then(
            V.of("slice", P.var(v), n)
        )
    for match in _MATCHES:
        for combined in match.combined:
            yield egglog.rule(eq(e).to(match.term), *match.facts).then(
                V(sorts.ACCUMULATOR, combined), V(sorts.ELEMENT, combined)
            )
    yield egglog.rule(eq(Ty.arr(n, t)).to(ty(sorts.combine(op.lift(), z, x)))).then(
        V(sorts.LANE, t), V(sorts.LEFT, t), V(sorts.RIGHT, t)
    )


analyses: tuple[Ruleset, ...] = (_types, _calls, _scopes, _operators, _orders, _names)


def settled(others: Iterable[Ruleset] = ()) -> egglog.Schedule:
    """The analyses and other rules to saturation.

    Types and scopes go as deep as terms: they come by themselves, as most of a round's time goes to rules that find
    nothing.
    """
    deep = together((_types, _calls)).saturate(), _scopes.saturate()
    return egglog.seq(*deep, together((_operators, _orders, _names, *others)) * 1).saturate()
