"""The language as egglog sorts, the analyses that rules rely on, and `to_egg`.

Encoding: pointful terms with named binders that carry their type; fresh names are Skolem terms
derived from the pattern they replace, so one rule gives one name; a free-variable analysis guards
scope, so that no rule needs substitution. Sizes are concrete integers. Constant functions
(`Fn.join(t)` …) are indexed by the type of their argument: polymorphic ones would merge
instances of different sizes.

Every use of egglog's declarations of the language lives here; `lift_egraph.frozen` reads e-graphs back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import egglog
from egglog import Ruleset, Set, String, StringLike, eq, function, i64, i64Like, relation, rewrite, ruleset, set_
from egglog.egraph import ActionLike, FactLike

from lift_egraph import ir
from lift_egraph.check import codomain, domain, type_of
from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.nat import Nat
from lift_egraph.scalar import LAWS
from lift_egraph.types import Array, DataType, Pair, Scalar, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable

MAXIMAL_DEPTH = 140  # egglog's Python layer recurses; deeper terms would end in a RecursionError


class Ty(egglog.Expr):
    """Types."""

    @classmethod
    def scalar(cls, name: StringLike) -> Ty: ...
    @classmethod
    def vec(cls, name: StringLike, width: i64Like) -> Ty: ...
    @classmethod
    def arr(cls, size: i64Like, element: Ty) -> Ty: ...
    @classmethod
    def pair(cls, first: Ty, second: Ty) -> Ty: ...
    @classmethod
    def lanes(cls, width: i64Like, t: Ty) -> Ty: ...


class V(egglog.Expr):
    """Binder names."""

    def __init__(self, name: StringLike, t: Ty) -> None: ...
    @classmethod
    def of(cls, tag: StringLike, pattern: P, index: i64Like) -> V: ...


class P(egglog.Expr):
    """Binding patterns."""

    @classmethod
    def var(cls, v: V) -> P: ...
    @classmethod
    def pair(cls, first: P, second: P) -> P: ...


class Op(egglog.Expr):
    """Binary operators of reductions."""

    @classmethod
    def scalar(cls, name: StringLike) -> Op: ...
    @classmethod
    def fn(cls, f: Fn) -> Op: ...
    def lift(self) -> Op: ...


class Fn(egglog.Expr):
    """Functions: lambdas, `vectorize`, and layout functions without a name for their argument."""

    @classmethod
    def lam(cls, p: P, body: Ex) -> Fn: ...
    @classmethod
    def vec(cls, width: i64Like, f: Fn) -> Fn: ...
    @classmethod
    def join(cls, t: Ty) -> Fn: ...
    @classmethod
    def transpose(cls, t: Ty) -> Fn: ...
    @classmethod
    def zip(cls, t: Ty) -> Fn: ...
    @classmethod
    def split(cls, n: i64Like, t: Ty) -> Fn: ...
    @classmethod
    def map(cls, n: i64Like, f: Fn) -> Fn: ...
    @classmethod
    def reduce(cls, op: Op, z: Ex, t: Ty) -> Fn: ...


class Ex(egglog.Expr):
    """Terms."""

    def __init__(self, v: V) -> None: ...
    @classmethod
    def input(cls, name: StringLike, t: Ty) -> Ex: ...
    @classmethod
    def literal(cls, text: StringLike, t: Ty) -> Ex: ...


@function
def call1(op: StringLike, a: Ex) -> Ex: ...
@function
def call2(op: StringLike, a: Ex, b: Ex) -> Ex: ...
@function
def call3(op: StringLike, a: Ex, b: Ex, c: Ex) -> Ex: ...
@function
def make_pair(a: Ex, b: Ex) -> Ex: ...
@function
def component(index: i64Like, a: Ex) -> Ex: ...
@function
def app(f: Fn, x: Ex) -> Ex: ...
@function
def combine(op: Op, a: Ex, b: Ex) -> Ex: ...
@function
def map_(f: Fn, x: Ex) -> Ex: ...
@function
def reduce_(op: Op, z: Ex, x: Ex) -> Ex: ...
@function
def zip_(a: Ex, b: Ex) -> Ex: ...
@function
def split(n: i64Like, x: Ex) -> Ex: ...
@function
def join(x: Ex) -> Ex: ...
@function
def transpose(x: Ex) -> Ex: ...
@function
def gather(indices: StringLike, x: Ex) -> Ex: ...
@function
def scatter(indices: StringLike, x: Ex) -> Ex: ...
@function
def slide(size: i64Like, step: i64Like, x: Ex) -> Ex: ...
@function
def pad(left: i64Like, right: i64Like, boundary: StringLike, x: Ex) -> Ex: ...
@function
def pad_constant(left: i64Like, right: i64Like, value: Ex, x: Ex) -> Ex: ...
@function
def iterate(times: i64Like, f: Fn, x: Ex) -> Ex: ...
@function
def iterate_text(times: i64Like, body: StringLike, result: Ty, x: Ex) -> Ex: ...
@function
def at(index: i64Like, x: Ex) -> Ex: ...
@function
def generate(n: i64Like, f: Fn) -> Ex: ...
@function
def fill(n: i64Like, z: Ex) -> Ex: ...
@function
def lookup(indices: Ex, x: Ex) -> Ex: ...
@function
def map_level(kind: StringLike, dimension: i64Like, f: Fn, x: Ex) -> Ex: ...
@function
def reduce_seq(f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def to_memory(space: StringLike, x: Ex) -> Ex: ...
@function
def as_vector(width: i64Like, x: Ex) -> Ex: ...
@function
def as_scalar(x: Ex) -> Ex: ...


# --- analyses -------------------------------------------------------------------------------------

Names = Set[V]


@function(merge=lambda old, new: old)
def ty(e: Ex) -> Ty: ...
@function(merge=lambda old, new: old)
def vty(v: V) -> Ty: ...
@function(merge=lambda old, new: old)
def pty(p: P) -> Ty: ...
@function(merge=lambda old, new: old)
def dom(f: Fn) -> Ty: ...
@function(merge=lambda old, new: old)
def cod(f: Fn) -> Ty: ...
@function(merge=lambda old, new: old & new)
def fv(e: Ex) -> Names: ...
@function(merge=lambda old, new: old & new)
def fvf(f: Fn) -> Names: ...
@function(merge=lambda old, new: old)
def bvs(p: P) -> Names: ...


tile = relation("tile", i64, i64)  # tile(N, n): arrays of length N may be split into chunks of n
lane_width = relation("lane_width", i64)  # widths of vectors that rules may introduce
associative = relation("associative", Op)
commutative = relation("commutative", Op)
neutral = relation("neutral", Op, Ex)
scalar_like = relation("scalar_like", Ty)  # types without vectors at the leaves

EMPTY = Set[V].empty()
LANE = "$lane"
ACCUMULATOR = "$acc"  # not an identifier of the text form, so no binder of a program has this name


def absent(p: P, e: Ex) -> egglog.Fact:
    """The capture condition: no variable of the pattern is free in the term."""
    return eq(fv(e) - bvs(p)).to(fv(e))


def absent_in_function(p: P, f: Fn) -> egglog.Fact:
    """The capture condition for a function: no variable of the pattern is free in it."""
    return eq(fvf(f) - bvs(p)).to(fvf(f))


def fresh(v: V, e: Ex) -> egglog.Fact:
    """The capture condition for a new name: it is not free in the term."""
    return fv(e).not_contains(v)


@ruleset
def _types(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, r: P, v: V, s: String,
    t: Ty, u: Ty, w: Ty, n: i64, m: i64, k: i64, op: Op,
):  # fmt: skip
    def has(term: Ex, result: Ty, *facts: FactLike):
        return egglog.rule(eq(e).to(term), *facts).then(set_(ty(e)).to(result))

    def is_array(term: Ex, size: i64, element: Ty):
        return eq(Ty.arr(size, element)).to(ty(term))

    yield egglog.rule(eq(v).to(V(s, t))).then(set_(vty(v)).to(t))
    yield egglog.rule(eq(v).to(V.of("chunk", p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(v).to(V.of("slice", p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(p).to(P.var(v)), eq(t).to(vty(v))).then(set_(pty(p)).to(t))
    yield egglog.rule(eq(r).to(P.pair(p, q)), eq(t).to(pty(p)), eq(u).to(pty(q))).then(set_(pty(r)).to(Ty.pair(t, u)))
    yield has(Ex(v), t, eq(t).to(vty(v)))
    yield has(Ex.input(s, t), t)
    yield has(Ex.literal(s, t), t)
    yield has(make_pair(x, y), Ty.pair(t, u), eq(t).to(ty(x)), eq(u).to(ty(y)))
    yield has(component(i64(0), x), t, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(component(i64(1), x), u, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(app(f, x), u, eq(u).to(cod(f)))
    yield has(combine(op, x, y), t, eq(t).to(ty(x)))
    yield has(map_(f, x), Ty.arr(n, u), is_array(x, n, t), eq(u).to(cod(f)))
    yield has(map_level(s, m, f, x), Ty.arr(n, u), is_array(x, n, t), eq(u).to(cod(f)))
    yield has(reduce_(op, z, x), t, eq(t).to(ty(z)))
    yield has(reduce_seq(f, z, x), t, eq(t).to(ty(z)))
    yield has(zip_(x, y), Ty.arr(n, Ty.pair(t, u)), is_array(x, n, t), is_array(y, n, u))
    yield has(split(n, x), Ty.arr(m / n, Ty.arr(n, t)), is_array(x, m, t), n > 0)
    yield has(join(x), Ty.arr(m * n, t), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(x)))
    yield has(transpose(x), Ty.arr(n, Ty.arr(m, t)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(x)))
    yield has(gather(s, x), t, eq(t).to(ty(x)))
    yield has(scatter(s, x), t, eq(t).to(ty(x)))
    yield has(slide(n, k, x), Ty.arr((m - n) / k + 1, Ty.arr(n, t)), is_array(x, m, t), k > 0)
    yield has(pad(n, k, s, x), Ty.arr(n + m + k, t), is_array(x, m, t))
    yield has(pad_constant(n, k, z, x), Ty.arr(n + m + k, t), is_array(x, m, t))
    yield has(iterate(n, f, x), t, eq(t).to(ty(x)))
    yield has(iterate_text(n, s, t, x), t)
    yield has(at(n, x), t, is_array(x, m, t))
    yield has(generate(n, f), Ty.arr(n, t), eq(t).to(cod(f)))
    yield has(fill(n, x), Ty.arr(n, t), eq(t).to(ty(x)))
    yield has(lookup(x, y), Ty.arr(n, u), is_array(x, n, t), is_array(y, m, u))
    yield has(to_memory(s, x), t, eq(t).to(ty(x)))
    yield has(as_vector(n, x), Ty.arr(m / n, Ty.lanes(n, t)), is_array(x, m, t), n > 0)
    yield has(as_scalar(x), Ty.arr(m * n, t), eq(Ty.arr(m, Ty.lanes(n, t))).to(ty(x)))
    # functions
    yield egglog.rule(eq(f).to(Fn.lam(p, x)), eq(t).to(pty(p)), eq(u).to(ty(x))).then(
        set_(dom(f)).to(t), set_(cod(f)).to(u)
    )
    yield egglog.rule(eq(f).to(Fn.vec(n, g)), eq(t).to(dom(g)), eq(u).to(cod(g))).then(
        set_(dom(f)).to(Ty.lanes(n, t)), set_(cod(f)).to(Ty.lanes(n, u))
    )
    for constant, argument, result in (
        (Fn.join(t), Ty.arr(m, Ty.arr(n, u)), Ty.arr(m * n, u)),
        (Fn.transpose(t), Ty.arr(m, Ty.arr(n, u)), Ty.arr(n, Ty.arr(m, u))),
        (Fn.zip(t), Ty.pair(Ty.arr(n, u), Ty.arr(n, w)), Ty.arr(n, Ty.pair(u, w))),
        (Fn.split(n, t), Ty.arr(m, u), Ty.arr(m / n, Ty.arr(n, u))),
    ):
        yield egglog.rule(eq(f).to(constant), eq(t).to(argument)).then(set_(dom(f)).to(t), set_(cod(f)).to(result))
    yield egglog.rule(eq(f).to(Fn.map(n, g)), eq(t).to(dom(g)), eq(u).to(cod(g))).then(
        set_(dom(f)).to(Ty.arr(n, t)), set_(cod(f)).to(Ty.arr(n, u))
    )
    yield egglog.rule(eq(f).to(Fn.reduce(op, z, t)), eq(u).to(ty(z))).then(set_(dom(f)).to(t), set_(cod(f)).to(u))
    # vectors at the leaves
    yield rewrite(Ty.lanes(n, Ty.scalar(s))).to(Ty.vec(s, n))
    yield rewrite(Ty.lanes(n, Ty.pair(t, u))).to(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u)))
    yield rewrite(Ty.lanes(n, Ty.arr(m, t))).to(Ty.arr(m, Ty.lanes(n, t)))
    yield rewrite(Ty.vec(s, n)).to(Ty.lanes(n, Ty.scalar(s)))
    yield rewrite(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u))).to(Ty.lanes(n, Ty.pair(t, u)))
    yield rewrite(Ty.arr(m, Ty.lanes(n, t))).to(Ty.lanes(n, Ty.arr(m, t)))
    yield egglog.rule(eq(t).to(Ty.scalar(s))).then(scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), scalar_like(u)).then(scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.pair(u, w)), scalar_like(u), scalar_like(w)).then(scalar_like(t))


@ruleset
def _calls(e: Ex, x: Ex, y: Ex, z: Ex, s: String, r: String, n: i64, t: Ty):
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        yield egglog.rule(eq(e).to(call2(op, x, y)), eq(Ty.scalar(s)).to(ty(x))).then(set_(ty(e)).to(Ty.scalar("bool")))
        yield egglog.rule(eq(e).to(call2(op, x, y)), eq(Ty.vec(s, n)).to(ty(x))).then(set_(ty(e)).to(Ty.vec("bool", n)))
    for op in ("add", "sub", "mul", "div", "mod", "min", "max", "pow", "and", "or"):
        yield egglog.rule(eq(e).to(call2(op, x, y)), eq(t).to(ty(x))).then(set_(ty(e)).to(t))
    yield egglog.rule(eq(e).to(call3("select", x, y, z)), eq(t).to(ty(y))).then(set_(ty(e)).to(t))
    for op in ("neg", "abs", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "not"):
        yield egglog.rule(eq(e).to(call1(op, x)), eq(t).to(ty(x))).then(set_(ty(e)).to(t))
    for op, result in (("to_f32", "f32"), ("to_f64", "f64"), ("to_i32", "i32")):
        yield egglog.rule(eq(e).to(call1(op, x)), eq(Ty.scalar(s)).to(ty(x))).then(set_(ty(e)).to(Ty.scalar(result)))
        yield egglog.rule(eq(e).to(call1(op, x)), eq(Ty.vec(s, n)).to(ty(x))).then(set_(ty(e)).to(Ty.vec(result, n)))


@ruleset
def _scopes(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, v: V, s: String, t: Ty, n: i64, m: i64, k: i64, op: Op, r: P
):
    def mentions(term: Ex, *inside: Ex | Fn):
        names = [fvf(i) if isinstance(i, Fn) else fv(i) for i in inside]
        bound = [egglog.var(f"names{i}", Names) for i in range(len(inside))]
        total = EMPTY
        for b in bound:
            total = total | b
        return egglog.rule(eq(e).to(term), *(eq(b).to(a) for a, b in zip(names, bound, strict=True))).then(
            set_(fv(e)).to(total)
        )

    yield egglog.rule(eq(p).to(P.var(v))).then(set_(bvs(p)).to(EMPTY.insert(v)))
    yield egglog.rule(
        eq(r).to(P.pair(p, q)), eq(a := egglog.var("a", Names)).to(bvs(p)), eq(b := egglog.var("b", Names)).to(bvs(q))
    ).then(set_(bvs(r)).to(a | b))
    yield egglog.rule(eq(e).to(Ex(v))).then(set_(fv(e)).to(EMPTY.insert(v)))
    for closed in (Ex.input(s, t), Ex.literal(s, t)):
        yield mentions(closed)
    for unary in (
        call1(s, x), component(n, x), split(n, x), join(x), transpose(x), gather(s, x), scatter(s, x), slide(n, m, x),
        pad(n, m, s, x), iterate_text(n, s, t, x), at(n, x), fill(n, x), to_memory(s, x), as_vector(n, x), as_scalar(x),
    ):  # fmt: skip
        yield mentions(unary, x)
    for binary in (call2(s, x, y), make_pair(x, y), zip_(x, y), pad_constant(n, m, x, y), lookup(x, y)):
        yield mentions(binary, x, y)
    yield mentions(call3(s, x, y, z), x, y, z)
    yield mentions(generate(n, f), f)
    for applied in (app(f, x), map_(f, x), iterate(n, f, x), map_level(s, n, f, x)):
        yield mentions(applied, f, x)
    yield mentions(reduce_seq(f, z, x), f, z, x)
    for operator, inside in ((op, ()), (Op.fn(f), (f,))):
        if inside:
            yield mentions(reduce_(operator, z, x), f, z, x)
            yield mentions(combine(operator, x, y), f, x, y)
    for closed_operator in (Op.scalar(s), op.lift()):
        yield mentions(reduce_(closed_operator, z, x), z, x)
        yield mentions(combine(closed_operator, x, y), x, y)
    yield egglog.rule(
        eq(f).to(Fn.lam(p, x)), eq(a).to(fv(x)), eq(b).to(bvs(p))
    ).then(set_(fvf(f)).to(a - b))  # fmt: skip
    for same in (Fn.vec(n, g), Fn.map(n, g)):
        yield egglog.rule(eq(f).to(same), eq(a).to(fvf(g))).then(set_(fvf(f)).to(a))
    for constant in (Fn.join(t), Fn.transpose(t), Fn.zip(t), Fn.split(n, t)):
        yield egglog.rule(eq(f).to(constant)).then(set_(fvf(f)).to(EMPTY))
    for closed_operator in (Op.scalar(s), op.lift()):
        yield egglog.rule(eq(f).to(Fn.reduce(closed_operator, z, t)), eq(a).to(fv(z))).then(set_(fvf(f)).to(a))
    yield egglog.rule(eq(f).to(Fn.reduce(Op.fn(g), z, t)), eq(a).to(fv(z)), eq(b).to(fvf(g))).then(
        set_(fvf(f)).to(a | b)
    )


@ruleset
def _operators(op: Op, z: Ex, x: Ex, y: Ex, n: i64):
    yield egglog.rule(associative(op), eq(y).to(reduce_(op.lift(), z, x))).then(associative(op.lift()))
    yield egglog.rule(commutative(op), eq(y).to(reduce_(op.lift(), z, x))).then(commutative(op.lift()))
    yield egglog.rule(neutral(op, z), eq(y).to(reduce_(op.lift(), fill(n, z), x))).then(neutral(op.lift(), fill(n, z)))


@ruleset
def _names(f: Fn, p: P, q: P, x: Ex, z: Ex, op: Op, t: Ty, u: Ty, n: i64, m: i64, v: V):
    """Names that side conditions mention must exist first: a query matches existing terms only."""
    yield egglog.rule(eq(f).to(Fn.lam(p, x)), tile(m, n)).then(V.of("chunk", p, n))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), eq(f).to(Fn.lam(P.pair(P.var(v), q), x))).then(V.of("slice", P.var(v), n))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), eq(f).to(Fn.lam(P.pair(q, P.var(v)), x))).then(V.of("slice", P.var(v), n))
    yield egglog.rule(eq(t).to(ty(reduce_(op, z, x)))).then(V(ACCUMULATOR, t))
    yield egglog.rule(eq(Ty.arr(n, t)).to(ty(combine(op.lift(), z, x)))).then(V(LANE, t))


analyses: tuple[Ruleset, ...] = (_types, _calls, _scopes, _operators, _names)


# --- to_egg ---------------------------------------------------------------------------------------


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
    try:
        return _NODES[type(term)](term)
    except RecursionError:
        raise TypeProblem("the term is nested too deeply for the e-graph") from None


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
    array = type_of(e.array)
    assert isinstance(array, Array)
    step = check_step(e, array)
    if step is not None:
        return iterate(e.times, function_to_egg(step), to_egg(e.array))
    from lift_egraph.syntax import print_iterate_body

    return iterate_text(e.times, print_iterate_body(e), type_to_egg(type_of(e)), to_egg(e.array))


def check_step(e: ir.Iterate, array: Array) -> ir.Lambda | None:
    """The body of an iterate at the length of its argument, if it keeps that length."""
    from lift_egraph.check import iterate_step

    step = iterate_step(e, array.size)
    return step if domain(step) == codomain(step) else None


def index_text(indices: ir.IndexFunction) -> str:
    """An index function as text, over the variable ``i``."""
    from lift_egraph.nat import nat

    return str(indices.body.substitute({indices.variable: nat("i")}))


_NODES = {
    ir.Var: lambda e: Ex(V(e.name, type_to_egg(e.type))),
    ir.Input: lambda e: Ex.input(e.name, type_to_egg(e.type)),
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
    ir.Gather: lambda e: gather(index_text(e.indices), to_egg(e.array)),
    ir.Scatter: lambda e: scatter(index_text(e.indices), to_egg(e.array)),
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
