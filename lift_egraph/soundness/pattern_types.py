"""Types of a rule's left-hand side: what every variable of it must be for a match to exist.

Patterns are typed by their signatures, in the domain of open types (`lift_egraph.soundness.unification.Typing`). One
method for each other operation gives the type of its result and notes what its parts and sizes must satisfy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from lift_egraph.egraph.pattern_nodes import CONSTANTS, KINDS, PAD_CONSTANT, PATTERN_NODES, PatternNode
from lift_egraph.egraph.rule_forms import Constant, Equation, Form, Hole, Node, Pattern
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.inference import result_type
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import F32, WIDTHS, DataType
from lift_egraph.soundness.unification import ARITHMETIC, RELATIONS, SOLUTIONS, Made, Type, Typing

Solved = tuple[Typing, list[dict[str, int]]]
# sizes are solved for
DOMAINS = {"offset": (1, 2, 0, 3, 5), "count": (1, 2, 3, 4, 0, 7), "width": WIDTHS, "level": (0, 1)}


def typing_of(form: Form, equal: tuple[tuple[Pattern, Pattern], ...] = ()) -> Typing:
    """The types of a form, in which some parts have equal types.

    Raises
    ------
    TypeProblem
        If the parts of its left-hand side or its conditions do not fit.
    """
    t = Typing()
    infer = Inference(t)
    infer(form.left)
    for c in form.conditions:
        if isinstance(c, Equation):
            infer.equation(c)
        else:
            infer.fact(c)
    for a, b in equal:
        t.equate(infer(a), infer(b))
    for value in (*t.numbers, *t.lawful):
        found = t.find(value)
        if isinstance(found, Made) and found.kind == "pair":
            raise TypeProblem("a pair stands where a number is needed")
    return t


def type_of_pattern(pattern: Pattern) -> DataType:
    """The type of a term of the e-graph without variables.

    Raises
    ------
    TypeProblem
        If its parts do not fit.
    """
    typing = Typing()
    t = Inference(typing)(pattern)
    for sizes in typing.solutions():
        return typing.concrete(t, sizes, lambda _: F32)
    raise TypeProblem(f"no sizes fit {pattern}")


def solved(form: Form, equal: tuple[tuple[Pattern, Pattern], ...] = (), most: int = SOLUTIONS) -> Solved:
    """The types of a form in which some parts have equal types, and up to `most` sizes that fit; not to be changed.

    Raises
    ------
    TypeProblem
        If the parts of its left-hand side or its conditions do not fit.
    """
    return _solved(form.left, form.conditions, equal, most)


@lru_cache(maxsize=256)
def _solved(
    left: Pattern, conditions: tuple[Equation | Node, ...], equal: tuple[tuple[Pattern, Pattern], ...], most: int
) -> Solved:
    typing = typing_of(Form(left, left, conditions), equal)  # rules that differ on the right have the same
    return typing, typing.solutions(most)


class Inference:
    """Types of patterns, noted in a `Typing`."""

    def __init__(self, typing: Typing) -> None:
        self.t = typing

    def __call__(self, p: Pattern) -> Any:
        if isinstance(p, Hole):
            return self.hole(p)
        if isinstance(p, Constant):
            return p
        if p.op in ARITHMETIC:
            for part in p.parts:
                self(part)
            return p
        if p.op in PATTERN_NODES:
            return self.signed(PATTERN_NODES[p.op], p.parts)
        if p.op in CONSTANTS and not CONSTANTS[p.op].signature.functions:
            return self.constant(p.op, *p.parts)
        if p.op in ("call1", "call2", "call3"):
            return self.call(*p.parts)
        if p.op not in _OTHERS:
            raise TypeProblem(f"{p.op} cannot stand in a pattern")
        return _OTHERS[p.op](self, *p.parts)

    def hole(self, p: Hole) -> Any:
        if p.sort == "i64":
            self.t.values.setdefault(p.name, p)
            return p
        if p.name not in self.t.values:
            self.t.values[p.name] = (self.t.open(), self.t.open()) if p.sort == "Fn" else self.t.open()
        return self.t.values[p.name]

    def text(self, p: Pattern, role: str) -> None:
        if isinstance(p, Hole):
            if role == "permutation":  # of all orders that gather takes, scatter takes only these
                self.t.roles[p.name] = role
            self.t.roles.setdefault(p.name, role)
            self.t.values.setdefault(p.name, None)

    def order(self, p: Pattern, role: str) -> None:
        if isinstance(p, Hole):
            self.text(p, role)
        elif isinstance(p, Node):
            for part in p.parts:
                if p.op in ("Order_then", "Order_inverse"):
                    self.order(part, "permutation" if p.op == "Order_inverse" else role)
                elif p.op != "Order_of":
                    self(part)

    def domain(self, p: Pattern, *values: int) -> None:
        self(p)
        if isinstance(p, Hole) and values:
            self.t.domains.setdefault(p.name, values)

    def number(self, t: Type) -> Type:
        self.t.numbers.append(t)
        return t

    # --- conditions ---

    def equation(self, c: Equation) -> None:
        sort = next((p.sort for p in (c.left, c.right) if not isinstance(p, Constant)), "i64")
        if sort == "i64":
            self.t.equate_sizes(self(c.left), self(c.right))
        elif sort in ("Ty", "Ex", "P", "V"):
            self.t.equate(self(c.left), self(c.right))

    def fact(self, c: Node) -> None:
        if c.op in RELATIONS and all(_is_size(p) for p in c.parts):
            self.t.conditions.append((c.op, self(c.parts[0]), self(c.parts[1])))
        elif c.op == "lane_width":
            self.domain(c.parts[0], *WIDTHS)
        elif c.op == "scalar_like":
            self.t.plain.append(self(c.parts[0]))
        elif c.op in ("associative", "commutative"):
            self.t.lawful.append(self(c.parts[0]))
        elif c.op in ("identity", "neutral"):
            t = self(c.parts[0])
            self.t.lawful.append(t)
            self.t.equate(t, self(c.parts[1]))
        elif c.op == "distributes":
            times, plus, zero = map(self, c.parts)
            self.t.equate(times, plus)
            self.t.equate(times, zero)
        elif c.op == "combines":
            f, g, op = map(self, c.parts)
            element = self.t.open()
            for function, a in ((f, Made("pair", (op, element))), (g, element)):
                self.t.equate(function[0], a)
                self.t.equate(function[1], op)
        elif c.op == "recalls":
            f, g, first, whole = map(self, c.parts)
            state, element, rest = self.t.open(), self.t.open(), self.t.open()
            for function, a, b in (
                (f, Made("pair", (state, element)), state),
                (g, Made("pair", (rest, Made("pair", (element, element)))), rest),
                (first, Made("pair", (state, element)), rest),
                (whole, Made("pair", (rest, element)), state),
            ):
                self.t.equate(function[0], a)
                self.t.equate(function[1], b)
        elif c.op in ("kept_within", "kept_along"):
            f, *given, g, z = map(self, c.parts)
            state, element = self.t.open(), self.t.open()
            for h in given:
                self.t.equate(h[1], element)
            for function in (f, g):
                self.t.equate(function[0], Made("pair", (state, element)))
                self.t.equate(function[1], state)
            self.t.equate(z, state)
        elif c.op in ("tabulates", "tabulates_first"):
            f, z, *rest, words, step, start, value, places, steps, found = map(self, c.parts)
            element, own = self.t.open(), self.t.open() if rest else z
            typed = [
                (f, Made("pair", (z, element)), z),
                (step, Made("pair", (words, Made("pair", (start, element)))), start),
                (value, start, own),
                (steps, Made("pair", (words, Made("pair", (places, element)))), places),
                (found, Made("pair", (start, places)), start),
            ]
            if rest:
                (h, others, whole), other = rest, self.t.open()
                typed += [
                    (h, Made("pair", (other, Made("pair", (own, element)))), other),
                    (others, z, other),
                    (whole, Made("pair", (own, other)), z),
                ]
            for function, a, b in typed:
                self.t.equate(function[0], a)
                self.t.equate(function[1], b)
        elif c.op == "cascades":
            f, g, h, first, others, whole = map(self, c.parts)
            state, element, own, rest = (self.t.open() for _ in range(4))
            for function, a, b in (
                (f, Made("pair", (state, element)), state),
                (g, Made("pair", (own, element)), own),
                (h, Made("pair", (rest, Made("pair", (own, element)))), rest),
                (first, state, own),
                (others, state, rest),
                (whole, Made("pair", (own, rest)), state),
            ):
                self.t.equate(function[0], a)
                self.t.equate(function[1], b)
        elif c.op == "acts":
            f, m, op, one, act = map(self, c.parts)
            state, element, matrix = self.t.open(), self.t.open(), self(c.parts[2])
            for function, a, b in (
                (f, Made("pair", (state, element)), state),
                (m, element, matrix),
                (act, Made("pair", (matrix, state)), state),
            ):
                self.t.equate(function[0], a)
                self.t.equate(function[1], b)
            self.t.equate(one, op)
        elif c.op == "steady":
            f, zero, power, op, one, onward = map(self, c.parts)
            state, element = self.t.open(), self.t.open()
            pairs = (f, Made("pair", (state, element))), (onward, Made("pair", (op, Made("pair", (state, state)))))
            for function, a in pairs:
                self.t.equate(function[0], a)
                self.t.equate(function[1], state)
            self.t.equate(zero, state)
            self.t.equate(power, op)
            self.t.equate(one, op)
        elif c.op == "built_in":
            self.number(self(c.parts[0]))
            self.text(c.parts[1], "operator")
        elif c.op == "tile":
            self(c.parts[0])
            self(c.parts[1])
        elif c.op in ("stage_local", "stage_private"):
            self(c.parts[0])

    def ty(self, e: Pattern) -> Type:
        return self(e)

    pty = vty = ty

    def cod(self, f: Pattern) -> Type:
        return self(f)[1]

    # --- types, binders, functions, operators ---

    def Ty_scalar(self, name: Pattern) -> Type:
        if not isinstance(name, Constant):
            return self.number(self.t.open())
        return Made("scalar", (name.value,))

    def Ty_vec(self, name: Pattern, width: Pattern) -> Type:
        self.domain(width, *WIDTHS)
        return Made("lanes", (self(width), self.Ty_scalar(name)))

    def Ty_arr(self, n: Pattern, t: Pattern) -> Type:
        return Made("arr", (self(n), self(t)))

    def Ty_pair(self, a: Pattern, b: Pattern) -> Type:
        return Made("pair", (self(a), self(b)))

    def Ty_lanes(self, n: Pattern, t: Pattern) -> Type:
        self.domain(n, *WIDTHS)
        inner = self(t)
        self.t.plain.append(inner)
        return Made("lanes", (self(n), inner))

    def V___init__(self, name: Pattern, t: Pattern) -> Type:
        return self(t)

    def V_of(self, tag: Pattern, p: Pattern, n: Pattern) -> Type:
        return Made("arr", (self(n), self(p)))

    def P_var(self, v: Pattern) -> Type:
        return self(v)

    P_pair = Ty_pair

    def Fn_lam(self, p: Pattern, b: Pattern) -> Any:
        return self(p), self(b)

    def Fn_vec(self, n: Pattern, f: Pattern) -> Any:
        self.domain(n, *WIDTHS)
        a, b = self(f)
        self.t.plain += [a, b]
        return Made("lanes", (self(n), a)), Made("lanes", (self(n), b))

    def constant(self, op: str, *parts: Pattern) -> Any:
        """A function without a name for its argument: a pattern that lacks its last part, or for zip both."""
        *given, t = parts
        argument = self(t)
        signature = CONSTANTS[op].signature
        arrays = (argument,) if len(signature.terms) == 1 else self.t.parts_of_pair(argument)
        return argument, result_type(signature, (*map(self, given), *arrays), self.t)

    def Fn_map(self, n: Pattern, f: Pattern) -> Any:
        a, b = self(f)
        return Made("arr", (self(n), a)), Made("arr", (self(n), b))

    def Fn_reduce(self, op: Pattern, z: Pattern, t: Pattern) -> Any:
        argument = self(t)
        return argument, result_type(ir.Reduce.signature, (self(op), self(z), argument), self.t)

    def Op_scalar(self, name: Pattern) -> Type:
        self.text(name, "operator")
        return self.number(self.t.open())

    def Op_fn(self, f: Pattern) -> Type:
        a, result = self(f)
        self.t.equate(a, Made("pair", (result, result)))
        return result

    def Op_lift(self, op: Pattern) -> Type:
        return Made("arr", (self.t.open_size(), self(op)))

    # --- terms ---

    def Ex___init__(self, v: Pattern) -> Type:
        return self(v)

    def Ex_input(self, name: Pattern, t: Pattern) -> Type:
        self.text(name, "input")
        return self(t)

    def Ex_literal(self, text: Pattern, t: Pattern) -> Type:
        self.text(text, "literal")
        return self.number(self(t))

    def call(self, name: Pattern, *arguments: Pattern) -> Type:
        """A scalar operation; a scalar beside vectors counts for each lane."""
        self.text(name, f"call{len(arguments)}")
        op = OPERATIONS.get(name.value) if isinstance(name, Constant) else None
        types = [self(a) for a in arguments]
        packed = next((t for t in map(self.t.find, types) if isinstance(t, Made) and t.kind == "lanes"), None)
        width, result = (None, types[-1]) if packed is None else packed.parts
        condition = types.pop(0) if len(types) == 3 else None
        for t in types:
            self._equate(t, result, width)
        if condition is not None:
            self._equate(condition, Made("scalar", ("bool",)), width)
        if op and op.kind == "lanes":
            lane = self.number(self.t.open())
            self.t.equate(types[0], Made("lanes", (self.t.open_size(), lane)))
            return lane
        if op and op.kind == "logic":
            self.t.equate(result, Made("scalar", ("bool",)))
        self.number(result)
        given = Made("scalar", (op.result.name,)) if op and op.result else result
        return given if width is None else Made("lanes", (width, given))

    def _equate(self, t: Type, scalar: Type, width: Any) -> None:
        found = self.t.find(t)
        is_packed = width is not None and not (isinstance(found, Made) and found.kind == "scalar")
        self.t.equate(t, Made("lanes", (width, scalar)) if is_packed else scalar)

    def component(self, i: Pattern, a: Pattern) -> Type:
        if not isinstance(i, Constant):
            raise TypeProblem("component needs the number 0 or 1")
        return self.t.parts_of_pair(self(a))[i.value]

    def combine(self, op: Pattern, a: Pattern, b: Pattern) -> Type:
        t = self(op)
        self.t.equate(t, self(a))
        self.t.equate(t, self(b))
        return t

    # --- patterns, by their signatures ---

    def signed(self, operation: PatternNode, parts: tuple[Pattern, ...]) -> Type:
        left, arguments = iter(parts), []
        for p in operation.signature.parameters:
            own = [next(left) for _ in (KINDS[p.kind].sorts if p.form is None else ("part",))]
            if p.form is not None:
                arguments.append(self(own[0]))
                continue
            for part, sort in zip(own, KINDS[p.kind].sorts, strict=True):
                if sort == "Order":
                    self.order(part, "permutation" if operation.name == "scatter" else p.kind)
                elif sort == "String":
                    self.text(part, p.kind)
                else:
                    self.domain(part, *DOMAINS.get(p.kind, ()))
            arguments.append(self(own[0]) if KINDS[p.kind].sorts == ("i64",) else None)
        if operation is PAD_CONSTANT:
            self.number(arguments[2])
            if isinstance(parts[2], Hole):
                self.t.literals.add(parts[2].name)
        return result_type(operation.signature, arguments, self.t)


def _is_size(p: Pattern) -> bool:
    return isinstance(p.value, int) if isinstance(p, Constant) else p.sort == "i64"


_OTHERS: dict[str, Callable[..., Any]] = {
    op: getattr(Inference, op)
    for op in (
        "ty", "pty", "vty", "cod", "Ty_scalar", "Ty_vec", "Ty_arr", "Ty_pair", "Ty_lanes", "V___init__", "V_of",
        "P_var", "P_pair", "Fn_lam", "Fn_vec", "Fn_map", "Fn_reduce", "Op_scalar", "Op_fn", "Op_lift", "Ex___init__",
        "Ex_input", "Ex_literal", "component", "combine",
    )
}  # fmt: skip
