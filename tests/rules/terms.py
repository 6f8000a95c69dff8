"""Random terms around a match of a rule, full of what provokes capture: few names, shadowing, free outer variables.

`Context` draws patterns, functions and terms of a wanted type over the variables in scope. A *careful* context
keeps to the side conditions of the rule at hand, so that it must fire; one that is not careful mentions above all
what they forbid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from lift_egraph import ir
from lift_egraph.check import pattern_type, type_of
from lift_egraph.nat import nat
from lift_egraph.types import F32, F64, I32, Array, DataType, Pair, Scalar

Draw = Callable[[st.SearchStrategy[Any]], Any]
Choose = Callable[[Sequence[Any]], Any]
REVERSE = ir.IndexFunction("i", nat("n") - 1 - nat("i"))
ASSOCIATIVE = ("add", "min", "max")
NEUTRAL = {
    "add": {"f32": 0.0, "f64": 0.0, "i32": 0},
    "min": {"f32": float("inf"), "f64": float("inf"), "i32": 2**31 - 1},
    "max": {"f32": float("-inf"), "f64": float("-inf"), "i32": -(2**31)},
}


@dataclass(frozen=True)
class Context:
    """The variables in scope, the scalar type of all numbers, and whether side conditions are kept.

    The variables that a side condition forbids are `urged` where it is not kept.
    """

    choose: Choose
    real: Scalar
    careful: bool
    scope: tuple[ir.Var, ...] = ()
    urged: tuple[ir.Var, ...] = ()

    # --- choices ---

    def one_of(self, *options: Any) -> Any:
        return self.choose(options)

    def size(self) -> int:
        return self.one_of(2, 3, 4, 6) if self.careful else self.one_of(2, 2, 2, 3)

    def composite(self) -> int:
        return self.one_of(4, 6, 8)

    def element(self) -> DataType:
        """The type of the elements of an array."""
        if not self.careful:
            return self.one_of(self.real, self.row())
        return self.one_of(self.real, self.real, self.real, Pair(self.real, self.real), self.row(), I32)

    def row(self) -> Array:
        return Array(nat(self.size()), self.real)

    # --- scope ---

    def bind(self, *patterns: ir.Pattern) -> Context:
        new = tuple(v for p in patterns for v in ir.bound_variables(p))
        urged = tuple(v for v in self.urged if v not in new)
        return replace(self, scope=tuple(v for v in self.scope if v not in new) + new, urged=urged)

    def without(self, *patterns: ir.Pattern) -> Context:
        """For terms that must not mention variables of these patterns (or just do, if side conditions are not kept)."""
        named = {v for p in patterns for v in ir.bound_variables(p)}
        if self.careful:
            return replace(self, scope=tuple(v for v in self.scope if v not in named))
        return replace(self, urged=tuple(v for v in self.scope if v in named))

    def split(self, *patterns: ir.Pattern, broken: int | None = None) -> tuple[Context, Context]:
        """`without` for two terms; where side conditions are not kept, only one of them (which?) breaks its own."""
        kept = replace(self, careful=True).without(*patterns)
        if self.careful:
            return kept, kept
        loose = self.without(*patterns)
        first = self.one_of(0, 1) if broken is None else broken
        return (kept, loose) if first else (loose, kept)

    def mentioning(self, *patterns: ir.Pattern) -> Context:
        """For terms that should use variables of these patterns, which are in scope."""
        named = {v for p in patterns for v in ir.bound_variables(p)}
        return replace(self, urged=(*self.urged, *(v for v in self.scope if v in named)))

    def closed(self) -> Context:
        """For terms that must not mention any variable, if side conditions are kept."""
        return replace(self, scope=()) if self.careful else self

    def variable(self, t: DataType, avoid: tuple[ir.Pattern, ...] = ()) -> ir.Var:
        taken = {v for p in avoid for v in ir.bound_variables(p)}
        names = ("x", "y", "z", "u", "v", "w")
        free = [ir.Var(n, t) for n in names if ir.Var(n, t) not in taken]
        return self.one_of(*free[:2]) if self.careful else self.one_of(free[0], free[0], free[0], free[1])

    def pattern(self, t: DataType, avoid: tuple[ir.Pattern, ...] = (), always: bool = False) -> ir.Pattern:
        """A pattern without a variable of those to avoid, where side conditions are kept (or always)."""
        return self._pattern(t, avoid if self.careful or always else ())

    def _pattern(self, t: DataType, avoid: tuple[ir.Pattern, ...]) -> ir.Pattern:
        if isinstance(t, Pair) and self.one_of(True, True, False):
            first = self._pattern(t.first, avoid)
            return ir.PairPattern(first, self._pattern(t.second, (*avoid, first)))
        return self.variable(t, avoid)

    # --- terms ---

    def term(self, t: DataType) -> ir.Expr:
        """A term of a type."""
        if t == self.real:
            return self.number(2)
        if isinstance(t, Scalar):
            return self.leaf(t)
        known = self._known(t)
        if known and self.one_of(True, False):
            return self.one_of(*known)
        if isinstance(t, Pair):
            return ir.MakePair(self.term(t.first), self.term(t.second))
        assert isinstance(t, Array)
        return self.array(t.size.constant or 0, t.element)

    def number(self, depth: int) -> ir.Expr:
        kind = self.one_of("operation", "operation", "product", "leaf") if depth else "leaf"
        if kind == "leaf":
            return self.leaf(self.real)
        if kind == "product":
            return ir.Call("mul", (self.leaf(self.real), self.leaf(self.real)))
        return ir.Call(self.one_of("add", "sub", "min", "max"), (self.number(depth - 1), self.number(depth - 1)))

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

    def literal(self, value: float, t: Scalar | None = None) -> ir.Literal:
        t = t or self.real
        return ir.Literal(float(value) if t.is_float else int(value), t)

    def input(self, t: DataType) -> ir.Input:
        return ir.Input(f"{self.one_of('a', 'b')}_{re.sub(r'[^a-z0-9]+', '_', str(t)).strip('_')}", t)

    def array(self, n: int, element: DataType, depth: int = 1) -> ir.Expr:
        t = Array(nat(n), element)
        known = self._known(t)
        kinds = ("input", "variable", "variable", "map", "reverse") if self.careful else ("variable", "map")
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

    def function(self, t: DataType, u: DataType, avoid: tuple[ir.Pattern, ...] = ()) -> ir.Lambda:
        p = self.pattern(t, avoid)
        return ir.Lambda(p, self.bind(p).term(u))

    # --- operators of reductions ---

    def operator(self) -> ir.Lambda:
        """A known operator, or one that is neither associative nor commutative and mentions the scope."""
        known = self.one_of(True, False) if self.careful else self.one_of(False, False, True)
        return self.known_operator(self.one_of(*ASSOCIATIVE)) if known else self.odd_operator()

    def known_operator(self, op: str) -> ir.Lambda:
        a, b = ir.Var("x", self.real), ir.Var("y", self.real)
        return ir.Lambda(ir.PairPattern(a, b), ir.Call(op, (a, b)))

    def odd_operator(self) -> ir.Lambda:
        a = self.variable(self.real, self.urged)
        b = self.variable(self.real, (a, *self.urged))
        scope = tuple(v for v in self.scope if not v.name.startswith("$") and v not in (a, b))
        urged = tuple(v for v in self.urged if v in scope)
        other = replace(self, scope=scope, urged=urged).leaf(self.real)
        return ir.Lambda(ir.PairPattern(a, b), ir.Call("sub", (ir.Call("add", (a, other)), b)))

    def lifted_operator(self, op: str, n: int) -> ir.Lambda:
        row = Array(nat(n), self.real)
        a, b = ir.Var("r", row), ir.Var("s", row)
        return ir.Lambda(ir.PairPattern(a, b), ir.Map(self.known_operator(op), ir.Zip(a, b)))

    def neutral(self, op: str) -> ir.Literal:
        return self.literal(NEUTRAL[op][self.real.name]) if self.real.is_float else ir.Literal(NEUTRAL[op]["i32"], I32)


Match = Callable[[Context], ir.Expr]


@st.composite
def programs(draw: Draw, match: Match, careful: bool, outer: str = "x") -> ir.Program:
    """Programs as `program` makes them."""
    return program(lambda options: draw(st.sampled_from(options)), match, careful, outer)


def program(choose: Choose, match: Match, careful: bool, outer: str = "x") -> ir.Program:
    """A program with a match somewhere in it: at the top, or in the body of a map or a let.

    Where side conditions are not kept, a row ``x`` and a number, named `outer`, are bound around the match: its
    own binders mostly have these names and types, so that a captured variable still has a value, a wrong one.
    """
    real = choose((F32, F64, I32))
    context = Context(choose, real, careful)
    row = ir.Var("x", Array(nat(2), real))
    if careful:
        kinds = (real, context.row(), Pair(real, real))
        patterns = [context.pattern(choose(kinds)) for _ in range(choose((0, 1, 2)))]
    else:
        patterns = [row, ir.Var(outer, real)]
    term = _around(context, match, patterns)
    inputs = {p.name: p for p in ir.subterms(term) if isinstance(p, ir.Input)}
    return ir.Program("example", tuple(inputs[name] for name in sorted(inputs)), term)


def _around(context: Context, match: Match, patterns: list[ir.Pattern]) -> ir.Expr:
    if not patterns:
        return _outside(context, match(context))
    p, t = patterns[0], pattern_type(patterns[0])
    body = _around(context.bind(p), match, patterns[1:])
    if context.one_of(True, True, False):
        return _outside(context, ir.Map(ir.Lambda(p, body), context.array(context.one_of(2, 3), t)))
    return ir.Apply(ir.Lambda(p, body), context.term(t))


def _outside(context: Context, term: ir.Expr) -> ir.Expr:
    """The term as part of a larger one."""
    t = type_of(term)
    kind = context.one_of("plain", "pair", "reverse", "zip", "transpose", "join", "split", "map")
    if kind == "pair":
        return ir.MakePair(context.term(context.real), term)
    if not isinstance(t, Array):
        return term
    n = t.size.constant or 1
    if kind == "zip":
        return ir.Zip(term, context.array(n, context.real))
    if kind == "split":
        return ir.Split(nat(context.one_of(1, n)), term)
    if kind == "reverse":
        return ir.Gather(REVERSE, term)
    if kind == "map":
        p = context.pattern(t.element)
        return ir.Map(ir.Lambda(p, context.bind(p).term(context.real)), term)
    if isinstance(t.element, Array) and kind in ("transpose", "join"):
        return ir.Transpose(term) if kind == "transpose" else ir.Join(term)
    return term
