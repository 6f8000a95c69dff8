"""One program around a match of a rule, made from a sequence of choices.

Every variable of the rule's left-hand side gets a random term in the scope it stands in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import egglog
from egglog.egraph import ActionLike

from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import encoded, function_to_egg, operator_to_egg, to_egg, type_to_egg
from lift_egraph.egraph.rule_forms import Constant, Equation, Form, Hole, Node, Pattern, holes, subpatterns
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import binder_type, domain, type_of
from lift_egraph.language.index_arrays import REVERSE
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import F32, F64, I32, Array, DataType, Pair, Scalar
from lift_egraph.soundness.clashes import PARTS, Clash, breaks_names
from lift_egraph.soundness.found_laws import facts_of, found_laws
from lift_egraph.soundness.pattern_values import Operator, Rejected, Term, Values
from lift_egraph.soundness.random_terms import ASSOCIATIVE, Choose, Context, neutral, operator_on
from lift_egraph.soundness.unification import Typing

STARTS = ("identity", "neutral")
LAWS = ("associative", "commutative", *STARTS)


def _whole(arity: int) -> tuple[str, ...]:
    """The operations on all numbers that give whole numbers of whole numbers."""
    known = (op for op in OPERATIONS.values() if op.kind == "arithmetic" and op.name != "div")
    return tuple(op.name for op in known if op.arity == arity)


OPTIONS = {
    "level": ("seq", "glb", "wrg", "lcl"),
    "space": ("private", "local", "global"),
    "boundary": ("clamp", "mirror", "wrap"),
    "indices": (str(REVERSE.body), "i"),
    "operator": ASSOCIATIVE,
    "call1": _whole(1),
    "call2": _whole(2),
    "call3": ("select",),
}


@dataclass(frozen=True)
class Example:
    """A program with a match of a rule.

    Attributes
    ----------
    program
        The program.
    facts
        What the rule's conditions ask for beside it: tile sizes, vector widths, marked binders.
    """

    program: ir.Program
    facts: tuple[ActionLike, ...]


@dataclass(frozen=True)
class Prepared:
    """A form with the types and sizes that fit it, and the clash that its programs shall have."""

    form: Form
    typing: Typing
    solutions: list[dict[str, int]]
    clashes: tuple[Clash, ...]
    clash: Clash | None = None


class Match(Values):
    """A match of one form, made from choices."""

    def __init__(self, prepared: Prepared, choose: Choose, careful: bool) -> None:
        super().__init__()
        self.prepared, self.choose, self.careful = prepared, choose, careful
        self.clash = prepared.clash

    def example(self) -> Example:
        real = self.choose((F32, I32, F64))
        context = Context(self.choose, real)
        self.context = context
        self.sizes = self.choose(self.prepared.solutions)
        self.typing = self.prepared.typing.copy()
        form = self.prepared.form
        self.values |= found_laws(form, self.typing, self.choose, real)
        self._constrain()
        self._types()
        self._texts()
        binders = self._binders(form.left)
        provoking = {v for p in binders for v in ir.bound_variables(p)} | self._made_names(form)
        outer = [*self._outer(provoking), *self._unbound(), *self._clashing()]
        inside = context.bind(*outer)
        self._terms(form, inside, provoking)
        if self.careful:
            for c in form.conditions:
                self._require(c)
        match = self._root(form.left, inside)
        program = self._around(match, outer, context)
        inputs = {p.name: p for p in ir.subterms(program) if isinstance(p, ir.Input)}
        type_of(program)
        ordered = tuple(inputs[name] for name in sorted(inputs))
        return Example(ir.Program("example", ordered, program), tuple(self._facts(form)))

    # --- types and names ---

    def _constrain(self) -> None:
        """Choose for what must be a number or have no vectors before anything else is chosen."""
        real = self.context.real
        for t in self.typing.numbers:
            self.typing.concrete(t, self.sizes, lambda _: real)
        for t in self.typing.lawful:
            self.typing.concrete(t, self.sizes, lambda _: self.choose((real, real, self.context.row())))
        for t in self.typing.plain:
            self.typing.concrete(t, self.sizes, lambda _: self.context.element(vectors=False))

    def _type(self, t: Any) -> DataType:
        return self.typing.concrete(t, self.sizes, lambda _: self.context.element())

    def _types(self) -> None:
        for hole in sorted(self._holes(), key=str):
            if hole.sort == "Ty":
                self.values[hole.name] = self._type(self.typing.values[hole.name])
            elif hole.sort == "i64":
                self.values[hole.name] = self.sizes.get(hole.name, 0)

    def _holes(self) -> set[Hole]:
        form = self.prepared.form
        found = holes(form.left)
        for c in form.conditions:
            found |= holes(c.left) | holes(c.right) if isinstance(c, Equation) else holes(c)
        return {h for h in found if h.name in self.typing.values}

    def _texts(self) -> None:
        for name, role in self.typing.roles.items():
            if name in self.values:
                continue
            if role not in OPTIONS:
                raise Rejected(f"{name} may be any text")
            self.values[name] = self.choose(OPTIONS[role])

    def _binders(self, p: Pattern) -> list[ir.Binder]:
        """Choose the binding patterns, and return them."""
        found: list[ir.Binder] = []
        form = self.prepared.form
        literal = [v.name for v in sorted(self._made_names(form), key=str)]
        for node in subpatterns(p):
            if isinstance(node, Node) and node.op == "Fn_lam":
                self._bind(node.parts[0], (), literal)
                found.append(self.pattern(node.parts[0]))
        return found

    def _unbound(self) -> list[ir.Binder]:
        """Choose the variables that the left-hand side mentions without a binder: they are bound around it."""
        found: list[ir.Binder] = []
        for hole in sorted(self._holes(), key=str):
            if hole.sort in ("P", "V") and hole.name not in self.values:
                self._bind(hole, (), [])
                found.append(self.values[hole.name])
        return found

    def _bind(self, p: Pattern, avoid: tuple[ir.Binder, ...], literal: list[str]) -> tuple[ir.Binder, ...]:
        if isinstance(p, Hole):
            if p.name not in self.values:
                self.values[p.name] = self._binder(p, avoid, literal)
            made = self.values[p.name]
            if {v for q in avoid for v in ir.bound_variables(q)} & set(ir.bound_variables(made)):
                raise Rejected("a variable is bound twice in one pattern")
            return (*avoid, made)
        if isinstance(p, Node) and p.op in ("P_pair", "P_var"):
            for part in p.parts:
                avoid = self._bind(part, avoid, literal)
            return avoid
        return (*avoid, self.pattern(p))

    def _binder(self, p: Hole, avoid: tuple[ir.Binder, ...], literal: list[str]) -> ir.Binder:
        t = self._type(self.typing.values[p.name])
        if self.clash is not None:
            same = self._same(p)
            if same is not None:
                return same
            known = [self.values.get(h.name) for h in self._holes() if h.sort in ("P", "V")]
            avoid = (*avoid, *(binder for binder in known if binder is not None))
        elif literal and self.choose((False,) * 7 + (True,)):
            return ir.Var(self.choose(literal), t)
        return self.context.variable(t, avoid) if p.sort == "V" else self.context.pattern(t, avoid)

    def _same(self, p: Hole) -> ir.Binder | None:
        """What a binder shares with another that is known already."""
        clash = self.clash
        if clash is None or not clash.shares or p not in (clash.binder, clash.other):
            return None
        other = clash.other if p == clash.binder else clash.binder
        return self.values.get(other.name) if isinstance(other, Hole) else self._made(other)

    def _made(self, binder: Hole | Node) -> ir.Binder:
        """What the rule binds on one side."""
        try:
            return self.pattern(binder)
        except KeyError as problem:
            raise Rejected(f"the type of {binder} is not known") from problem

    def _clashing(self) -> list[ir.Var]:
        """Choose the variable that is free where it clashes, and bind it around the match."""
        if self.clash is None or self.clash.shares:
            return []
        self.free = self.choose(ir.bound_variables(self._made(self.clash.binder)))
        return [self.free]

    def _made_names(self, form: Form) -> set[ir.Var]:
        """The variables with fixed names that the rule introduces."""
        found = set()
        for node in subpatterns(form.right):
            if isinstance(node, Node) and node.op == "V___init__" and isinstance(node.parts[0], Constant):
                t = self._made_type(node.parts[1])
                if t is not None:
                    found.add(ir.Var(node.parts[0].value, t))
        return found

    def _made_type(self, t: Pattern) -> DataType | None:
        try:
            return self.value(t)
        except (KeyError, Rejected, LiftError):
            return None

    def _outer(self, provoking: set[ir.Var]) -> list[ir.Binder]:
        """Binders around the match: mostly of the names and types that the rule binds."""
        context = self.context
        found: list[ir.Binder] = []
        likely = sorted(provoking, key=str)
        for _ in range(self.choose((0, 1, 2, 1, 2))):
            t = context.real
            if likely and self.choose((True, True, True, False)):
                found.append(self.choose(likely))
            else:
                found.append(context.pattern(self.choose((t, context.row(), Pair(t, t)))))
        return found

    # --- terms ---

    def _terms(self, form: Form, inside: Context, provoking: set[ir.Var]) -> None:
        scopes: dict[str, list[set[ir.Var]]] = {}
        self._scopes(form.left, (), scopes)
        laws = [c for c in form.conditions if isinstance(c, Node) and c.op in LAWS]
        if not self.careful and self.clash is None:
            laws = []
        self.starts = {c.parts[1].name: c.parts[0] for c in laws if c.op in STARTS and isinstance(c.parts[1], Hole)}
        self.lawful = {h.name for c in laws for h in holes(c)}
        wanted = [h for h in self._holes() if h.sort in PARTS]
        for hole in sorted(wanted, key=lambda h: (h.sort != "Op", str(h))):
            if hole.name in self.values:
                continue
            visible = set.intersection(*scopes[hole.name]) if hole.name in scopes else set()
            context = inside.bind(*sorted(visible, key=str))
            hidden = provoking - visible
            if self.clash is not None:
                self.values[hole.name] = self._part_with_clash(hole, context, visible)
                continue
            mode = self.choose(("inner", "inner", "capture", "capture", "free", "closed"))
            if mode == "inner":
                context = context.urging(visible)
            elif mode == "capture":
                context = context.urging(hidden)
            elif mode == "closed" and not visible:
                context = context.closed()
            used = visible if self.choose((False, True, True)) else None
            self.values[hole.name] = self._part(hole, context, used)

    def _part(self, hole: Hole, context: Context, used: set[ir.Var] | None) -> Term | Operator:
        """A random operator, function or term, which depends on its arguments and `used` if that is not None."""
        if hole.sort == "Op":
            return self._operator(hole, context, hole.name in self.lawful)
        if hole.sort == "Fn":
            a, b = self.typing.values[hole.name]
            f = context.function(self._type(a), self._type(b))
            if used is not None:
                wanted = {*used, *ir.bound_variables(f.binder)}
                f = ir.Lambda(f.binder, context.bind(f.binder).using(f.body, wanted))
            return Term(f, function_to_egg(f))
        t = self._type(self.typing.values[hole.name])
        if hole.name in self.starts:
            operator = self.operator(self.starts[hole.name], t)
            if operator.law is None:
                raise Rejected("the operator has no neutral element")
            made = neutral(operator.law, type_of(operator.function.body))
        else:
            made = context.using(context.term(t), used or ())
        return Term(made, to_egg(made))

    def _part_with_clash(self, hole: Hole, context: Context, visible: set[ir.Var]) -> Term | Operator:
        """A part that mentions the variable that clashes, if it shall, and else none that would."""
        clashes = [c for c in self.prepared.clashes if c.other == hole]
        if self.clash in clashes:
            made = self._part(hole, context.urging({self.free}), {self.free, *visible})
            if self.free not in ir.free_variables(made.function if isinstance(made, Operator) else made.meaning):
                raise Rejected(f"{self.free.name} is not free in {hole}")
            return made
        hidden = {v for c in clashes for v in ir.bound_variables(self._made(c.binder))}
        return self._part(hole, context.without(hidden).urging(visible), visible - hidden)

    def _scopes(self, p: Pattern, above: tuple[ir.Binder, ...], found: dict[str, list[set[ir.Var]]]) -> None:
        if isinstance(p, Hole):
            found.setdefault(p.name, []).append({v for q in above for v in ir.bound_variables(q)})
        elif isinstance(p, Node):
            if p.op == "Fn_lam":
                self._scopes(p.parts[1], (*above, self.pattern(p.parts[0])), found)
                return
            for part in p.parts:
                self._scopes(part, above, found)

    def _operator(self, hole: Hole, context: Context, lawful: bool) -> Operator:
        t = self._type(self.typing.values[hole.name])
        has_laws = isinstance(_scalar_leaf(t), Scalar)
        if has_laws and (lawful or self.choose((True, False, False))):
            law = self.choose(ASSOCIATIVE)
            f = operator_on(law, t)
            return Operator(f, operator_to_egg(f), law)
        if lawful:
            raise Rejected(f"no operator on {t} has laws")
        f = context.odd_operator(t)
        return Operator(f, operator_to_egg(f), None)

    def _root(self, left: Pattern, inside: Context) -> ir.Expr:
        value = self.value(left)
        if not isinstance(value, Term):
            raise Rejected("the left-hand side is neither a term nor a function")
        if isinstance(value.meaning, ir.Expr):
            return encoded(value.meaning, value.egg)
        t = domain(value.meaning)
        if self.choose((True, False)):
            argument = inside.term(t)
            return encoded(ir.Apply(value.meaning, argument), sorts.app(value.egg, to_egg(argument)))
        array = inside.array(inside.size(), t)
        return encoded(ir.Map(value.meaning, array), sorts.map_(value.egg, to_egg(array)))

    def _around(self, match: ir.Expr, outer: list[ir.Binder], context: Context) -> ir.Expr:
        for depth in range(len(outer), 0, -1):
            p = outer[depth - 1]
            here = context.bind(*outer[:depth])
            beside = context.bind(*outer[: depth - 1])
            body = here.around(match)
            t = binder_type(p)
            if self.choose((True, True, False)):
                match = ir.Map(ir.Lambda(p, body), beside.array(self.choose((2, 3)), t))
            else:
                match = ir.Apply(ir.Lambda(p, body), beside.term(t))
        return context.around(match)

    # --- conditions ---

    def _require(self, c: Equation | Node) -> None:
        """Reject the draw if a condition on names, texts or laws fails; others are left to the rule."""
        if breaks_names(self, c):
            raise Rejected(str(c))
        if isinstance(c, Equation):
            if _is_text(c.left) and _is_text(c.right) and self.value(c.left) != self.value(c.right):
                raise Rejected(f"{c.left} is not {c.right}")
        elif c.op in LAWS and isinstance(c.parts[0], Hole):
            if self.values[c.parts[0].name].law is None:
                raise Rejected("an operator without laws")
        elif c.op == "!=" and all(map(_is_text, c.parts)) and self.value(c.parts[0]) == self.value(c.parts[1]):
            raise Rejected("equal texts")

    def _facts(self, form: Form) -> Iterator[ActionLike]:
        """The facts that steer the rule, and the laws of operators that are none of the built-in ones."""
        yield from facts_of(form, self.value)
        for c in form.conditions:
            if isinstance(c, Node):
                if c.op == "tile":
                    yield sorts.tile(*(egglog.i64(self.value(p)) for p in c.parts))
                elif c.op == "lane_width":
                    yield sorts.lane_width(egglog.i64(self.value(c.parts[0])))
                elif c.op in ("stage_local", "stage_private"):
                    binder = self.pattern(c.parts[0])
                    assert isinstance(binder, ir.Var)
                    yield getattr(sorts, c.op)(sorts.V(binder.name, type_to_egg(binder.type)))


def _is_text(p: Pattern) -> bool:
    return isinstance(p.value, str) if isinstance(p, Constant) else p.sort == "String"


def _scalar_leaf(t: DataType) -> DataType:
    return _scalar_leaf(t.element) if isinstance(t, Array) else t
