"""Types of a rule's left-hand side: what every variable of it must be for a match to exist.

One method for each operation gives the type of its result and notes what its parts and sizes must satisfy.
"""

from __future__ import annotations

from typing import Any

from lift_egraph.egraph.rule_forms import Constant, Equation, Form, Hole, Node, Pattern
from lift_egraph.errors import TypeProblem
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.soundness.unification import ARITHMETIC, RELATIONS, Made, Size, Type, Typing


def typing_of(form: Form) -> Typing:
    """The types of a form.

    Raises
    ------
    TypeProblem
        If the parts of its left-hand side or its conditions do not fit.
    """
    t = Typing()
    infer = _Inference(t)
    infer(form.left)
    for c in form.conditions:
        if isinstance(c, Equation):
            infer.equation(c)
        else:
            infer.fact(c)
    for value in (*t.numbers, *t.lawful):
        found = t.find(value)
        if isinstance(found, Made) and found.kind == "pair":
            raise TypeProblem("a pair stands where a number is needed")
    return t


class _Inference:
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
        method = getattr(self, p.op.strip("_"), None)
        if method is None:
            raise TypeProblem(f"{p.op} cannot stand in a pattern")
        return method(*p.parts)

    def hole(self, p: Hole) -> Any:
        if p.sort == "i64":
            self.t.values.setdefault(p.name, p)
            return p
        if p.name not in self.t.values:
            self.t.values[p.name] = (self.t.open(), self.t.open()) if p.sort == "Fn" else self.t.open()
        return self.t.values[p.name]

    def text(self, p: Pattern, role: str) -> None:
        if isinstance(p, Hole):
            self.t.roles.setdefault(p.name, role)
            self.t.values.setdefault(p.name, None)

    def domain(self, p: Pattern, *values: int) -> None:
        self(p)
        if isinstance(p, Hole):
            self.t.domains.setdefault(p.name, values)

    def array(self, p: Pattern) -> tuple[Size, Type]:
        return self.as_array(self(p))

    def as_array(self, t: Type) -> tuple[Size, Type]:
        found = self.t.find(t)
        if isinstance(found, Made) and found.kind == "arr":
            return found.parts
        n, element = self.t.open_size(), self.t.open()
        self.t.unify(t, Made("arr", (n, element)))
        return n, element

    def number(self, t: Type) -> Type:
        self.t.numbers.append(t)
        return t

    # --- conditions ---

    def equation(self, c: Equation) -> None:
        sort = next((p.sort for p in (c.left, c.right) if not isinstance(p, Constant)), "i64")
        if sort == "i64":
            self.t.equal_sizes(self(c.left), self(c.right))
        elif sort in ("Ty", "Ex", "P", "V"):
            self.t.unify(self(c.left), self(c.right))

    def fact(self, c: Node) -> None:
        if c.op in RELATIONS and all(_is_size(p) for p in c.parts):
            self.t.conditions.append((c.op, self(c.parts[0]), self(c.parts[1])))
        elif c.op == "lane_width":
            self.domain(c.parts[0], 2, 4)
        elif c.op == "scalar_like":
            self.t.plain.append(self(c.parts[0]))
        elif c.op in ("associative", "commutative"):
            self.t.lawful.append(self(c.parts[0]))
        elif c.op == "neutral":
            t = self(c.parts[0])
            self.t.lawful.append(t)
            self.t.unify(t, self(c.parts[1]))
        elif c.op == "tile":
            self(c.parts[0])
            self(c.parts[1])
        elif c.op in ("stage_local", "stage_private"):
            self(c.parts[0])

    def ty(self, e: Pattern) -> Type:
        return self(e)

    pty = vty = ty

    def dom(self, f: Pattern) -> Type:
        return self(f)[0]

    def cod(self, f: Pattern) -> Type:
        return self(f)[1]

    # --- types, binders, functions, operators ---

    def Ty_scalar(self, name: Pattern) -> Type:
        if not isinstance(name, Constant):
            return self.number(self.t.open())
        return Made("scalar", (name.value,))

    def Ty_vec(self, name: Pattern, width: Pattern) -> Type:
        self.domain(width, 2, 4)
        return Made("lanes", (self(width), self.Ty_scalar(name)))

    def Ty_arr(self, n: Pattern, t: Pattern) -> Type:
        return Made("arr", (self(n), self(t)))

    def Ty_pair(self, a: Pattern, b: Pattern) -> Type:
        return Made("pair", (self(a), self(b)))

    def Ty_lanes(self, n: Pattern, t: Pattern) -> Type:
        self.domain(n, 2, 4)
        inner = self(t)
        self.t.plain.append(inner)
        return Made("lanes", (self(n), inner))

    def V___init(self, name: Pattern, t: Pattern) -> Type:
        return self(t)

    def V_of(self, tag: Pattern, p: Pattern, n: Pattern) -> Type:
        return Made("arr", (self(n), self(p)))

    def P_var(self, v: Pattern) -> Type:
        return self(v)

    P_pair = Ty_pair

    def Fn_lam(self, p: Pattern, b: Pattern) -> Any:
        return self(p), self(b)

    def Fn_vec(self, n: Pattern, f: Pattern) -> Any:
        self.domain(n, 2, 4)
        a, b = self(f)
        self.t.plain += [a, b]
        return Made("lanes", (self(n), a)), Made("lanes", (self(n), b))

    def Fn_join(self, t: Pattern) -> Any:
        return (argument := self(t)), self._join(argument)

    def Fn_transpose(self, t: Pattern) -> Any:
        return (argument := self(t)), self._transpose(argument)

    def Fn_zip(self, t: Pattern) -> Any:
        n, a, b = self.t.open_size(), self.t.open(), self.t.open()
        self.t.unify(self(t), Made("pair", (Made("arr", (n, a)), Made("arr", (n, b)))))
        return self(t), Made("arr", (n, Made("pair", (a, b))))

    def Fn_split(self, n: Pattern, t: Pattern) -> Any:
        return (argument := self(t)), self._split(self(n), argument)

    def Fn_map(self, n: Pattern, f: Pattern) -> Any:
        a, b = self(f)
        return Made("arr", (self(n), a)), Made("arr", (self(n), b))

    def Fn_reduce(self, op: Pattern, z: Pattern, t: Pattern) -> Any:
        argument = self(t)
        _, element = self.as_array(argument)
        self.t.unify(self(op), element)
        self.t.unify(self(z), element)
        return argument, element

    def Op_scalar(self, name: Pattern) -> Type:
        self.text(name, "operator")
        return self.number(self.t.open())

    def Op_fn(self, f: Pattern) -> Type:
        a, result = self(f)
        self.t.unify(a, Made("pair", (result, result)))
        return result

    def Op_lift(self, op: Pattern) -> Type:
        return Made("arr", (self.t.open_size(), self(op)))

    # --- terms ---

    def Ex___init(self, v: Pattern) -> Type:
        return self(v)

    def Ex_input(self, name: Pattern, t: Pattern) -> Type:
        self.text(name, "input")
        return self(t)

    def Ex_literal(self, text: Pattern, t: Pattern) -> Type:
        self.text(text, "literal")
        return self.number(self(t))

    def call1(self, op: Pattern, a: Pattern) -> Type:
        self.text(op, "call1")
        return self._call(op, self(a))

    def call2(self, op: Pattern, a: Pattern, b: Pattern) -> Type:
        self.text(op, "call2")
        self.t.unify(self(a), self(b))
        return self._call(op, self(a))

    def call3(self, op: Pattern, a: Pattern, b: Pattern, c: Pattern) -> Type:
        self.text(op, "call3")
        self.t.unify(self(a), Made("scalar", ("bool",)))
        self.t.unify(self(b), self(c))
        return self._call(op, self(b))

    def _call(self, name: Pattern, t: Type) -> Type:
        op = OPERATIONS.get(name.value) if isinstance(name, Constant) else None
        if op and op.kind == "lanes":
            lane = self.number(self.t.open())
            self.t.unify(t, Made("lanes", (self.t.open_size(), lane)))
            return lane
        if op and op.kind == "logic":
            self.t.unify(t, Made("scalar", ("bool",)))
        self.number(t)
        return Made("scalar", (op.result.name,)) if op and op.result else t

    make_pair = Ty_pair

    def component(self, i: Pattern, a: Pattern) -> Type:
        if not isinstance(i, Constant):
            raise TypeProblem("component needs the number 0 or 1")
        parts = self.t.open(), self.t.open()
        self.t.unify(self(a), Made("pair", parts))
        return parts[i.value]

    def app(self, f: Pattern, x: Pattern) -> Type:
        a, b = self(f)
        self.t.unify(a, self(x))
        return b

    def combine(self, op: Pattern, a: Pattern, b: Pattern) -> Type:
        t = self(op)
        self.t.unify(t, self(a))
        self.t.unify(t, self(b))
        return t

    def map(self, f: Pattern, x: Pattern) -> Type:
        n, element = self.array(x)
        a, b = self(f)
        self.t.unify(a, element)
        return Made("arr", (n, b))

    def map_level(self, kind: Pattern, d: Pattern, f: Pattern, x: Pattern) -> Type:
        self.text(kind, "level")
        self.domain(d, 0, 1)
        return self.map(f, x)

    def reduce(self, op: Pattern, z: Pattern, x: Pattern) -> Type:
        _, element = self.array(x)
        self.t.unify(self(op), element)
        self.t.unify(self(z), element)
        return element

    def reduce_seq(self, f: Pattern, z: Pattern, x: Pattern) -> Type:
        _, element = self.array(x)
        a, result = self(f)
        self.t.unify(result, self(z))
        self.t.unify(a, Made("pair", (result, element)))
        return result

    def zip(self, a: Pattern, b: Pattern) -> Type:
        n, first = self.array(a)
        m, second = self.array(b)
        self.t.equal_sizes(n, m)
        return Made("arr", (n, Made("pair", (first, second))))

    def split(self, n: Pattern, x: Pattern) -> Type:
        return self._split(self(n), self(x))

    def _split(self, n: Size, t: Type) -> Type:
        m, element = self.as_array(t)
        self.t.conditions.append(("divides", n, m))
        return Made("arr", (_size("i64___truediv__", m, n), Made("arr", (n, element))))

    def join(self, x: Pattern) -> Type:
        return self._join(self(x))

    def _join(self, t: Type) -> Type:
        m, row = self.as_array(t)
        n, element = self.as_array(row)
        return Made("arr", (_size("i64___mul__", m, n), element))

    def transpose(self, x: Pattern) -> Type:
        return self._transpose(self(x))

    def _transpose(self, t: Type) -> Type:
        m, row = self.as_array(t)
        n, element = self.as_array(row)
        return Made("arr", (n, Made("arr", (m, element))))

    def gather(self, indices: Pattern, x: Pattern) -> Type:
        self.text(indices, "indices")
        return Made("arr", self.array(x))

    scatter = gather

    def slide(self, size: Pattern, step: Pattern, x: Pattern) -> Type:
        m, element = self.array(x)
        n, k = self(size), self(step)
        rest = _size("i64___sub__", m, n)
        self.t.conditions += [("i64___le__", n, m), ("divides", k, rest)]
        count = _size("i64___add__", _size("i64___truediv__", rest, k), Constant(1))
        return Made("arr", (count, Made("arr", (n, element))))

    def pad(self, left: Pattern, right: Pattern, boundary: Pattern, x: Pattern) -> Type:
        self.text(boundary, "boundary")
        return self._pad(left, right, x)

    def pad_constant(self, left: Pattern, right: Pattern, value: Pattern, x: Pattern) -> Type:
        self.t.unify(self(value), self.number(self.array(x)[1]))
        return self._pad(left, right, x)

    def _pad(self, left: Pattern, right: Pattern, x: Pattern) -> Type:
        m, element = self.array(x)
        for amount in (left, right):
            self.domain(amount, 1, 2, 0)
            self.t.conditions.append(("i64___le__", self(amount), m))
        return Made("arr", (_size("i64___add__", _size("i64___add__", self(left), m), self(right)), element))

    def iterate(self, times: Pattern, f: Pattern, x: Pattern) -> Type:
        self.domain(times, 1, 2, 3, 4, 0)
        a, b = self(f)
        t = Made("arr", self.array(x))
        self.t.unify(a, t)
        self.t.unify(b, t)
        return t

    def at(self, index: Pattern, x: Pattern) -> Type:
        m, element = self.array(x)
        self.domain(index, 0, 1, 2)
        self.t.conditions.append(("i64___lt__", self(index), m))
        return element

    def generate(self, n: Pattern, f: Pattern) -> Type:
        a, b = self(f)
        self.t.unify(a, Made("scalar", ("i32",)))
        return Made("arr", (self(n), b))

    def fill(self, n: Pattern, z: Pattern) -> Type:
        return Made("arr", (self(n), self(z)))

    def lookup(self, indices: Pattern, x: Pattern) -> Type:
        n, index = self.array(indices)
        self.t.unify(index, Made("scalar", ("i32",)))
        return Made("arr", (n, self.array(x)[1]))

    def to_memory(self, space: Pattern, x: Pattern) -> Type:
        self.text(space, "space")
        return self(x)

    def as_vector(self, width: Pattern, x: Pattern) -> Type:
        m, element = self.array(x)
        self.domain(width, 2, 4)
        self.t.plain.append(element)
        self.t.conditions.append(("divides", self(width), m))
        return Made("arr", (_size("i64___truediv__", m, self(width)), Made("lanes", (self(width), element))))

    def as_scalar(self, x: Pattern) -> Type:
        m, packed = self.array(x)
        width, element = self.t.open_size(), self.t.open()
        self.t.domains[width.name] = (2, 4)
        self.t.plain.append(element)
        self.t.unify(packed, Made("lanes", (width, element)))
        return Made("arr", (_size("i64___mul__", m, width), element))


def _size(op: str, a: Size, b: Size) -> Node:
    return Node(op, (a, b), "i64")


def _is_size(p: Pattern) -> bool:
    return isinstance(p.value, int) if isinstance(p, Constant) else p.sort == "i64"
