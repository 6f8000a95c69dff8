"""Random terms of a wanted type over the variables in scope, as they stand around and inside a match of a rule.

They are full of what provokes capture: few names, shadowing, free variables from outside. The options of every
choice begin with the simplest, so that a counterexample shrinks by choosing earlier ones.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.index_arrays import REVERSE
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair, Scalar, Vector

Choose = Callable[[Sequence[Any]], Any]  # one of several options, such as a `Recorder` or a `Replayer`
NAMES = ("x", "y", "z", "u", "v", "w", "r", "s", "p", "q", "a", "b", "c", "d", "e", "f")


class Recorder:
    """Chooses at random, after choices that are given, and notes which option was taken."""

    def __init__(self, rng: random.Random, given: Sequence[int] = ()) -> None:
        self.rng, self.given, self.taken = rng, given, []

    def __call__(self, options: Sequence[Any]) -> Any:
        at = len(self.taken)
        index = self.given[at] if at < len(self.given) else self.rng.randrange(len(options))
        self.taken.append(index)
        return options[index]


class Replayer:
    """Repeats choices; those that are missing or out of range become the simplest."""

    def __init__(self, taken: Sequence[int]) -> None:
        self.given, self.taken = taken, []

    def __call__(self, options: Sequence[Any]) -> Any:
        at = len(self.taken)
        index = self.given[at] if at < len(self.given) else 0
        index = index if index < len(options) else 0
        self.taken.append(index)
        return options[index]


@dataclass(frozen=True)
class Context:
    """The variables in scope, the scalar type of most numbers, and the variables that terms should mention."""

    choose: Choose
    real: Scalar
    scope: tuple[ir.Var, ...] = ()
    urged: tuple[ir.Var, ...] = ()

    # --- choices ---

    def one_of(self, *options: Any) -> Any:
        return self.choose(options)

    def size(self) -> int:
        return self.one_of(2, 3, 4, 2, 3, 1, 5)

    def element(self, *, vectors: bool = True) -> DataType:
        """The type of the elements of an array."""
        real = self.real
        packed = (Vector(real, 2), Array(nat(2), Vector(real, 4))) if vectors else ()
        row, pair = self.row(), Pair(real, real)
        usual = (real, real, real, real, row, pair, self.row(), I32)
        odd = (Array(nat(2), row), Pair(row, real), Array(nat(3), pair), Array(nat(2), BOOL))
        return self.one_of(*usual, *odd, *packed)

    def row(self) -> Array:
        return Array(nat(self.size()), self.real)

    # --- scope ---

    def bind(self, *patterns: ir.Binder) -> Context:
        """The context inside binders of these patterns."""
        new = tuple(v for p in patterns for v in ir.bound_variables(p))
        urged = tuple(v for v in self.urged if v not in new)
        return replace(self, scope=tuple(v for v in self.scope if v not in new) + new, urged=urged)

    def urging(self, variables: set[ir.Var]) -> Context:
        """For terms that should use some of the variables, where they are in scope."""
        return replace(self, urged=tuple(v for v in self.scope if v in variables))

    def without(self, variables: set[ir.Var]) -> Context:
        """For terms in which the variables are not free."""
        return replace(self, scope=tuple(v for v in self.scope if v not in variables))

    def closed(self) -> Context:
        """For terms without free variables."""
        return replace(self, scope=(), urged=())

    def variable(self, t: DataType, avoid: tuple[ir.Binder, ...] = ()) -> ir.Var:
        taken = {v for p in avoid for v in ir.bound_variables(p)}
        free = [v for v in (ir.Var(n, t) for n in NAMES) if v not in taken]
        return self.one_of(free[0], free[0], free[0], free[1])

    def pattern(self, t: DataType, avoid: tuple[ir.Binder, ...] = ()) -> ir.Binder:
        """A pattern without a variable of those to avoid."""
        if isinstance(t, Pair) and self.one_of(True, True, False):
            first = self.pattern(t.first, avoid)
            return ir.PairBinder(first, self.pattern(t.second, (*avoid, first)))
        return self.variable(t, avoid)

    # --- terms ---

    def term(self, t: DataType) -> ir.Expr:
        """A term of a type."""
        if isinstance(t, Scalar):
            return self.number(t, self.one_of(1, 2, 0)) if t.name != "bool" else self.comparison()
        known = self._known(t)
        if known and self.one_of(True, False):
            return self.one_of(*known)
        if isinstance(t, Pair):
            return ir.MakePair(self.term(t.first), self.term(t.second))
        if isinstance(t, Vector):
            return self.input(t)
        return self.array(t.size.constant or 0, t.element)

    def number(self, t: Scalar, depth: int) -> ir.Expr:
        kind = self.one_of("leaf", "operation", "operation", "product") if depth else "leaf"
        if kind == "leaf":
            return self.leaf(t)
        if kind == "product":
            return ir.Call("mul", (self.leaf(t), self.leaf(t)))
        op = self.one_of("add", "sub", "min", "max")
        return ir.Call(op, (self.number(t, depth - 1), self.number(t, depth - 1)))

    def comparison(self) -> ir.Expr:
        return ir.Call(self.one_of("lt", "le"), (self.leaf(self.real), self.leaf(self.real)))

    def leaf(self, t: Scalar) -> ir.Expr:
        if self.urged and self.one_of(True, True, False):
            urged = [e for v in self.urged for e in self._inside(v) if type_of(e) == t]
            if urged:
                return self.one_of(*urged)
        known = [e for v in reversed(self.scope) for e in self._inside(v) if type_of(e) == t]
        fixed = [ir.Input(f"a_{t}", t), self.literal(2, t)]
        if not known or self.one_of(*range(6)) == 5:
            return self.one_of(*fixed)
        return self.one_of(*known)

    def _inside(self, e: ir.Expr) -> Iterator[ir.Expr]:
        t = type_of(e)
        if isinstance(t, Pair):
            yield from self._inside(ir.Component(0, e))
            yield from self._inside(ir.Component(1, e))
        elif isinstance(t, Array):
            last = (t.size.constant or 1) - 1
            yield from self._inside(ir.At(nat(self.one_of(0, last)), e))
        else:
            yield e

    def literal(self, value: float, t: Scalar) -> ir.Literal:
        return ir.Literal(float(value) if t.is_float else int(value), t)

    def input(self, t: DataType) -> ir.Input:
        return ir.Input(f"{self.one_of('a', 'b')}_{re.sub(r'[^a-z0-9]+', '_', str(t)).strip('_')}", t)

    def array(self, n: int, element: DataType, depth: int = 1) -> ir.Expr:
        t = Array(nat(n), element)
        known = self._known(t)
        kinds = ("input", "variable", "variable", "map", "reverse")
        if self.urged:
            kinds = ("map", "variable", "map", "input")
        kind = self.one_of(*kinds) if depth else "input"
        if kind == "variable" and known:
            return self.one_of(*known)
        if kind == "map":
            return ir.Map(self.function(self.real, element), self.array(n, self.real, depth - 1))
        if kind == "reverse":
            return ir.Gather(REVERSE, self.array(n, element, depth - 1))
        return self.input(t)

    def _known(self, t: DataType) -> list[ir.Var]:
        """The variables of a type, only the urged ones if there are any."""
        return [v for v in self.urged if v.type == t] or [v for v in self.scope if v.type == t]

    def function(self, t: DataType, u: DataType) -> ir.Lambda:
        """A function that mostly uses its argument, and mostly does not shadow what it should mention."""
        p = self.pattern(t, self.urged if self.one_of(True, True, True, False) else ())
        inner = self.bind(p)
        if self.one_of(False, True):
            inner = inner.urging({*inner.urged, *ir.bound_variables(p)})
        return ir.Lambda(p, inner.term(u))

    def using(self, term: ir.Expr, variables: Iterable[ir.Var]) -> ir.Expr:
        """The term, made to depend on variables as far as their types are its own."""
        missing = sorted({*variables} - ir.free_variables(term), key=str)
        t = type_of(term)
        if not missing or isinstance(t, Vector):
            return term
        if isinstance(t, Pair):
            return ir.MakePair(self.using(ir.Component(0, term), missing), ir.Component(1, term))
        if isinstance(t, Array):
            p = self.variable(t.element, (*missing,))
            return ir.Map(ir.Lambda(p, self.using(p, missing)), term)
        assert isinstance(t, Scalar)
        for v in missing:
            inside = list(self._inside(v))
            leaves = [e for e in inside if type_of(e) == t != BOOL]
            if leaves:
                term = ir.Call("sub", (term, self.one_of(*leaves)))
            elif others := [e for e in inside if isinstance(type_of(e), Scalar)]:
                term = self._depending(term, t, self.one_of(*others))
        return term

    def _depending(self, term: ir.Expr, t: Scalar, other: ir.Expr) -> ir.Expr:
        """The term, or another one where a scalar of another type says so."""
        of = type_of(other)
        assert isinstance(of, Scalar)
        condition = other if of == BOOL else ir.Call("lt", (other, self.literal(2, of)))
        changed = ir.Call("not", (term,)) if t == BOOL else ir.Call("add", (term, self.literal(1, t)))
        return ir.Call("select", (condition, term, changed))

    # --- operators of reductions ---

    def odd_operator(self, t: DataType) -> ir.Lambda:
        """An operator that is neither associative nor commutative, and mentions the scope if it can."""
        a = self.variable(t, self.urged)
        b = self.variable(t, (a, *self.urged))
        scope = tuple(v for v in self.scope if (v in self.urged or not v.name.startswith("$")) and v not in (a, b))
        other = replace(self, scope=scope, urged=tuple(v for v in self.urged if v in scope))
        if not isinstance(t, Scalar):
            inner = replace(other, scope=(*scope, a, b), urged=(a,))
            return ir.Lambda(ir.PairBinder(a, b), inner.using(inner.term(t), (a, b)))
        if t == BOOL:
            return ir.Lambda(ir.PairBinder(a, b), ir.Call("and", (ir.Call("not", (a,)), b)))
        mixed = ir.Call("add", (a, other.leaf(t)))
        operands = self.one_of((mixed, b), (b, mixed), (b, mixed))  # a fold with the second depends on the order
        return ir.Lambda(ir.PairBinder(a, b), ir.Call("sub", operands))

    # --- what stands around ---

    def around(self, term: ir.Expr) -> ir.Expr:
        """The term as part of a larger one, of any type."""
        t = type_of(term)
        kind = self.one_of("plain", "plain", "pair", "reverse", "zip", "transpose", "join", "split", "map")
        if kind == "pair":
            return ir.MakePair(self.leaf(self.real), term)
        if not isinstance(t, Array):
            return term
        n = t.size.constant or 1
        if kind == "zip":
            return ir.Zip(term, self.array(n, self.real))
        if kind == "split":
            return ir.Split(nat(self.one_of(1, n)), term)
        if kind == "reverse":
            return ir.Gather(REVERSE, term)
        if kind == "map":
            p = self.pattern(t.element)
            inner = self.bind(p)
            return ir.Map(ir.Lambda(p, inner.using(inner.term(self.real), ir.bound_variables(p))), term)
        if isinstance(t.element, Array) and kind in ("transpose", "join"):
            return ir.Transpose(term) if kind == "transpose" else ir.Join(term)
        return term


AFFINE = "affine"  # (a, b) ⊕ (c, d) = (a·c, a·d + b)
UNEVEN = "uneven"  # |a - b| - a·b: 0 may be counted again after one element, but not after two
FIRST = "first"  # a ⊕ b = a: what stands behind changes nothing, and nothing is neutral before it
OWN_LAWS = {
    AFFINE: ("associative", "identity", "neutral"),
    FIRST: ("associative", "identity", "neutral"),
    UNEVEN: ("commutative", "neutral"),
}  # of operators that a user makes


def laws_on(t: DataType) -> tuple[str, ...]:
    """The operators with laws on a type; on arrays they work elementwise."""
    if isinstance(t, Array):
        return tuple(op for op in laws_on(t.element) if op not in OWN_LAWS)
    if isinstance(t, Pair):
        same = t.first == t.second and isinstance(t.first, Scalar) and t.first != BOOL
        return (AFFINE, FIRST) if same else ()
    known = tuple(op for op, laws in LAWS.items() if isinstance(t, Scalar) and t.name in laws.neutral)
    return (*known, UNEVEN) if t in (F32, F64, I32) else known


def has_laws(op: str | None, laws: Iterable[str]) -> bool:
    """Whether an operator has some laws."""
    return op in LAWS or set(laws) <= set(OWN_LAWS.get(op or "", ()))


def operator_on(op: str, t: DataType) -> ir.Lambda:
    """An operator with laws, on arrays elementwise."""
    a, b = ir.Var("x", t), ir.Var("y", t)
    if op == UNEVEN:
        apart = ir.Call("abs", (ir.Call("sub", (a, b)),))
        return ir.Lambda(ir.PairBinder(a, b), ir.Call("sub", (apart, ir.Call("mul", (a, b)))))
    if op == FIRST:
        return ir.Lambda(ir.PairBinder(a, b), a)
    if op == AFFINE:
        assert isinstance(t, Pair)
        p, q, r, s = (ir.Var(name, t.first) for name in ("x", "y", "u", "v"))
        made = ir.MakePair(ir.Call("mul", (p, r)), ir.Call("add", (ir.Call("mul", (p, s)), q)))
        return ir.Lambda(ir.PairBinder(ir.PairBinder(p, q), ir.PairBinder(r, s)), made)
    pair = ir.PairBinder(a, b)
    if isinstance(t, Array):
        return ir.Lambda(pair, ir.Map(operator_on(op, t.element), ir.Zip(a, b)))
    return ir.Lambda(pair, ir.Call(op, (a, b)))


def neutral(op: str, t: DataType) -> ir.Expr:
    """The element that an operator may count again."""
    if isinstance(t, Array):
        return ir.Fill(t.size, neutral(op, t.element))
    if isinstance(t, Pair):
        return ir.MakePair(neutral("mul", t.first), neutral("add", t.second))
    assert isinstance(t, Scalar)
    return ir.Literal(0.0 if t.is_float else 0, t) if op == UNEVEN else ir.Literal(LAWS[op].neutral[t.name], t)
