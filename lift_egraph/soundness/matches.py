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
from lift_egraph.egraph.encoding import encoded, function_to_egg, literal_text, operator_to_egg, to_egg, type_to_egg
from lift_egraph.egraph.rule_forms import (
    LAWS,
    STARTS,
    Constant,
    Equation,
    Form,
    Hole,
    Node,
    Pattern,
    condition_holes,
    holes,
)
from lift_egraph.language import ir
from lift_egraph.language.check import binder_type, domain, type_of
from lift_egraph.language.index_arrays import REVERSE
from lift_egraph.language.scalar import LAWS as LAWS_OF, OPERATIONS
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair, Scalar, Vector
from lift_egraph.soundness.clashes import PARTS, breaks_names, is_about_names
from lift_egraph.soundness.found_laws import facts_of, found_laws
from lift_egraph.soundness.match_binders import Binders, Prepared
from lift_egraph.soundness.pattern_values import Operator, Rejected, Term
from lift_egraph.soundness.random_terms import OWN_LAWS, Choose, Context, has_laws, laws_on, neutral, operator_on

ELEMENTS = 1 << 14  # of the largest array in a program


def _whole(arity: int) -> tuple[str, ...]:
    """The operations on all numbers that give whole numbers of whole numbers."""
    known = (op for op in OPERATIONS.values() if op.kind == "arithmetic" and op.name != "div")
    return tuple(op.name for op in known if op.arity == arity)


ROTATION = "(i + 1) % n"  # an order that does not undo itself
OPTIONS = {
    "level": ("seq", "glb", "wrg", "lcl"),
    "space": ("private", "local", "global"),
    "boundary": ("clamp", "mirror", "wrap"),
    "permutation": (str(REVERSE.body), ROTATION, "i", "(i + n / 2) % n"),
    "indices": (str(REVERSE.body), ROTATION, "i", "i / 2", ROTATION, "0"),  # gather reads what it likes
    "operator": tuple(op for op in laws_on(I32) if op not in OWN_LAWS),
    "input": ("a", "b"),
    "call1": (*_whole(1), "floor", "sqrt"),
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
    form
        Which of the rule's forms it is a match of.
    broken
        The number of the condition that it breaks; None if the rule must fire.
    claims
        The laws that the rule states of operators: the law, the operator, and what shall be neutral.
    """

    program: ir.Program
    facts: tuple[ActionLike, ...]
    form: int = 0
    broken: int | None = None
    claims: tuple[tuple[str, ir.Lambda, ir.Expr | None], ...] = ()


class Match(Binders):
    """A match of one form, made from choices."""

    def __init__(self, prepared: Prepared, choose: Choose) -> None:
        super().__init__()
        self.prepared, self.choose = prepared, choose
        self.clash = prepared.clash
        conditions = prepared.form.conditions
        self.broken = None if prepared.broken is None else conditions[prepared.broken]
        self.kept = tuple(c for c in conditions if c is not self.broken)

    def example(self) -> Example:
        real = self.choose((F32, I32, F64))
        context = Context(self.choose, real)
        self.context = context
        self.sizes = self.choose(self.prepared.solutions)
        self.typing = self.prepared.typing.copy()
        form = self.prepared.form
        self.values |= found_laws(self.kept, self.typing, self.choose, real, self.sizes)
        self._constrain()
        self._types()
        self._texts()
        binders = self._binders(form.left)
        provoking = {v for p in binders for v in ir.bound_variables(p)} | self._made_names(form)
        outer = [*self._outer(provoking), *self._unbound(), *self._clashing()]
        inside = context.bind(*outer)
        self._terms(form, inside, provoking)
        for c in self.kept:
            self._require(c)
        if self.broken is not None and is_about_names(self.broken) and not breaks_names(self, self.broken):
            raise Rejected(f"{self.broken} holds")
        if self._is_lawful(self.broken):
            raise Rejected(f"{self.broken} holds of every built-in operator")
        match = self._root(form.left, inside)
        program = self._around(match, outer, context)
        inputs = {p.name: p for p in ir.subterms(program) if isinstance(p, ir.Input)}
        type_of(program)
        if any(elements(i.type) < 0 for i in inputs.values()):
            raise Rejected("an array of a negative length")
        if max(elements(type_of(p)) for p in ir.subterms(program) if isinstance(p, ir.Expr)) > ELEMENTS:
            raise Rejected("more elements than are looked at")
        self.bound = {v for f in ir.subterms(program) if isinstance(f, ir.Lambda) for v in ir.bound_variables(f.binder)}
        ordered = tuple(inputs[name] for name in sorted(inputs))
        whole, facts = ir.Program("example", ordered, program), tuple(self._facts(form))
        return Example(whole, facts, self.prepared.number, self.prepared.broken, tuple(self._claims(form)))

    # --- types and names ---

    def _constrain(self) -> None:
        """Choose for what must be a number or have no vectors before anything else is chosen."""
        real = self.context.real
        odd = (BOOL, Pair(real, real))
        lawful = (real, real, self.context.row(), *odd)
        if isinstance(self.broken, Node) and self.broken.op in LAWS:  # where some operator has only the other laws
            lawful = odd[1:] if self.broken.op == "commutative" else (real,)
        for t in self.typing.numbers:
            self.typing.concrete(t, self.sizes, lambda _: real)
        for t in self.typing.lawful:
            self.typing.concrete(t, self.sizes, lambda _: self.choose(lawful))
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
            found |= condition_holes(c)
        return {h for h in found if h.name in self.typing.values}

    def _texts(self) -> None:
        for name, role in self.typing.roles.items():
            if name in self.values:
                continue
            if role == "literal":
                self.values[name] = literal_text(self.context.literal(self.choose((2, 0, 1)), self.context.real))
            elif role in OPTIONS:
                self.values[name] = self.choose(OPTIONS[role])
            else:
                raise Rejected(f"{name} may be any text")

    # --- terms ---

    def _terms(self, form: Form, inside: Context, provoking: set[ir.Var]) -> None:
        scopes: dict[str, list[set[ir.Var]]] = {}
        self._scopes(form.left, (), scopes)
        laws = [c for c in self.kept if isinstance(c, Node) and c.op in LAWS]
        self.starts = {c.parts[1].name: c.parts[0] for c in laws if c.op in STARTS and isinstance(c.parts[1], Hole)}
        exact = {h for c in laws if c.op == "identity" for h in holes(c.parts[1])}
        self.counted = {name for name in self.starts if all(h.name != name for h in exact)}
        self.lawful: dict[str, set[str]] = {}
        for c in laws:
            for hole in holes(c):
                self.lawful.setdefault(hole.name, set()).add(c.op)
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
            used = visible - self._hidden(hole) if self.choose((False, True, True)) else None
            self.values[hole.name] = self._part(hole, context, used)

    def _part(self, hole: Hole, context: Context, used: set[ir.Var] | None) -> Term | Operator:
        """A random operator, function or term, which depends on its arguments and `used` if that is not None."""
        if hole.sort == "Op":
            return self._operator(hole, context)
        if hole.sort == "Fn":
            a, b = self.typing.values[hole.name]
            f = context.function(self._type(a), self._type(b))
            if used is not None:
                wanted = {*used, *ir.bound_variables(f.binder)}
                f = ir.Lambda(f.binder, context.bind(f.binder).using(f.body, wanted))
            return Term(f, function_to_egg(f))
        t = self._type(self.typing.values[hole.name])
        if hole.name in self.typing.literals:
            assert isinstance(t, Scalar)
            made = self.context.literal(self.choose((2, 0, 1)), t)
        elif hole.name in self.starts:
            operator = self.operator(self.starts[hole.name], t)
            if operator.law is None:
                raise Rejected("the operator has no neutral element")
            made = neutral(operator.law, type_of(operator.function.body))
            if hole.name in self.counted and self.choose((True, False)):  # an idempotent one may begin with any number
                made = self._counted_again(operator, made)
        else:
            made = context.using(context.term(t), used or ())
        return Term(made, to_egg(made))

    def _counted_again(self, operator: Operator, start: ir.Expr) -> ir.Expr:
        """Another start that a built-in operation may count again."""
        law = LAWS_OF.get(operator.law or "")
        if not isinstance(start, ir.Literal) or law is None or not law.idempotent or start.type == BOOL:
            return start
        return self.context.literal(self.choose((1, 0, 3)), start.type)

    def _part_with_clash(self, hole: Hole, context: Context, visible: set[ir.Var]) -> Term | Operator:
        """A part that mentions the variable that clashes, if it shall, and else none that would."""
        hidden = self._hidden(hole)
        if self.clash is not None and self.clash.other == hole:
            context = context.without(hidden - {self.free}).urging({self.free})
            made = self._part(hole, context, {self.free, *(visible - hidden)})
            if self.free not in ir.free_variables(made.function if isinstance(made, Operator) else made.meaning):
                raise Rejected(f"{self.free.name} is not free in {hole}")
            return made
        return self._part(hole, context.without(hidden).urging(visible), visible - hidden)

    def _hidden(self, hole: Hole) -> set[ir.Var]:
        """What would clash with a part if it were free in it."""
        binders = (c.binder for c in self.prepared.clashes if c.other == hole and not c.shares)
        return {v for binder in binders for v in ir.bound_variables(self._made(binder))}

    def _scopes(self, p: Pattern, above: tuple[ir.Binder, ...], found: dict[str, list[set[ir.Var]]]) -> None:
        if isinstance(p, Hole):
            found.setdefault(p.name, []).append({v for q in above for v in ir.bound_variables(q)})
        elif isinstance(p, Node):
            if p.op == "Fn_lam":
                self._scopes(p.parts[1], (*above, self.pattern(p.parts[0])), found)
                return
            for part in p.parts:
                self._scopes(part, above, found)

    def _operator(self, hole: Hole, context: Context) -> Operator:
        t = self._type(self.typing.values[hole.name])
        asked, spared = self.lawful.get(hole.name, ()), None
        if isinstance(self.broken, Node) and self.broken.op in LAWS and hole in holes(self.broken.parts[0]):
            spared = None if self.broken.op in STARTS else self.broken.op
        known = [op for op in laws_on(t) if has_laws(op, asked) and not (spared and has_laws(op, (spared,)))]
        if known and (asked or spared or self.choose((True, False, False))):
            law = self.choose(known)
            f = operator_on(law, t)
            return Operator(f, operator_to_egg(f), law)
        if asked and spared is None:
            raise Rejected(f"no operator on {t} has the laws")
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
            if not has_laws(self.value(c.parts[0]).law, (c.op,)) and self.broken is None:
                raise Rejected(f"an operator that is not {c.op}")
        elif c.op == "!=" and all(map(_is_text, c.parts)) and self.value(c.parts[0]) == self.value(c.parts[1]):
            raise Rejected("equal texts")

    def _is_lawful(self, c: Equation | Node | None) -> bool:
        """Whether a condition asks a law of a built-in operator, which all of them have."""
        of = c.parts[0] if isinstance(c, Node) and c.op in ("associative", "commutative") else None
        return isinstance(of, Node) and of.op == "Op_scalar" and has_laws(self.value(of.parts[0]), ())

    def _claims(self, form: Form) -> Iterator[tuple[str, ir.Lambda, ir.Expr | None]]:
        """The laws that the rule states of operators where it matches."""
        for c in form.claims:
            start = self.value(c.parts[1]).meaning if c.op in STARTS else None
            if start is not None:
                of: DataType = type_of(start)
            elif isinstance(c.parts[0], Hole):
                of = type_of(self.value(c.parts[0]).function.body)
            else:
                of = self.context.real
            yield c.op, self.operator(c.parts[0], of).function, start

    def _facts(self, form: Form) -> Iterator[ActionLike]:
        """The facts that steer the rule, and those that its program needs."""
        yield from facts_of(self.kept, self.value)
        if self.choose((False, True)):
            yield from self._names_of_others(form)
        for variable, derived in self.skolems.items():
            if variable in self.bound:
                yield egglog.union(sorts.V(variable.name, type_to_egg(variable.type))).with_(derived)
        for operator in self.values.values():
            if isinstance(operator, Operator) and operator.law in OWN_LAWS:
                for law in OWN_LAWS[operator.law]:
                    start = (to_egg(neutral(operator.law, type_of(operator.function.body))),) * (law in STARTS)
                    yield getattr(sorts, law)(operator.egg, *start)
        for c in form.conditions:
            if isinstance(c, Node):
                if c.op == "tile":
                    length, part = (self.value(p) for p in c.parts)
                    if part <= length:  # no phase offers chunks that are longer than the array
                        yield sorts.tile(egglog.i64(length), egglog.i64(part))
                elif c.op == "lane_width":
                    yield sorts.lane_width(egglog.i64(self.value(c.parts[0])))
                elif c.op in ("stage_local", "stage_private"):
                    binder = self.pattern(c.parts[0])
                    assert isinstance(binder, ir.Var)
                    yield getattr(sorts, c.op)(sorts.V(binder.name, type_to_egg(binder.type)))

    def _names_of_others(self, form: Form) -> Iterator[ActionLike]:
        """The names that the rule makes, as other matches made them before, also in arrays of another type."""
        other = self.choose(tuple(t for t in (F32, I32, F64) if t != self.context.real))
        for v in sorted(self._made_names(form), key=str):
            if v not in self.skolems:
                for t in dict.fromkeys((v.type, with_scalar(v.type, other))):
                    yield sorts.V(v.name, type_to_egg(t))


def with_scalar(t: DataType, scalar: Scalar) -> DataType:
    """The type with another scalar in place of all numbers."""
    if isinstance(t, Array):
        return Array(t.size, with_scalar(t.element, scalar))
    if isinstance(t, Pair):
        return Pair(with_scalar(t.first, scalar), with_scalar(t.second, scalar))
    if isinstance(t, Vector):
        return Vector(scalar, t.width)
    return t if t == BOOL else scalar


def elements(t: DataType) -> int:
    """How many scalars or vectors a value of a type of concrete sizes has."""
    if isinstance(t, Array):
        return (t.size.constant or 0) * elements(t.element)
    return elements(t.first) + elements(t.second) if isinstance(t, Pair) else 1


def _is_text(p: Pattern) -> bool:
    return isinstance(p.value, str) if isinstance(p, Constant) else p.sort == "String"
