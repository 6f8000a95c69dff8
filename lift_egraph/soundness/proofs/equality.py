"""Whether two values are equal for all sizes and indices; if not, at which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.egraph.rule_forms import Pattern, shown
from lift_egraph.soundness.proofs.integers import Integers, z3
from lift_egraph.soundness.proofs.loops import as_fold, concatenated, followed, integers_in, prefix, whole
from lift_egraph.soundness.proofs.scopes import Scopes
from lift_egraph.soundness.proofs.values import (
    Arr,
    Call,
    Cond,
    Function,
    Lanes,
    Loop,
    Made,
    Neutral,
    Number,
    Pair,
    Repeat,
    Unknown,
    Value,
    at,
    component,
    reflected,
)

DEPTH = 4  # laws of loops that are used one after the other


class Differs(Exception):
    """Two values that may differ: why, under which hypotheses, at which indices."""

    def __init__(
        self, reason: str, hypotheses: tuple[Any, ...], sides: tuple[Value, Value] | None = None,
        indices: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.reason, self.hypotheses, self.sides, self.indices = reason, hypotheses, sides, indices


class NoPart(Exception):
    """A part of a state that a loop is not expected to read."""


@dataclass(frozen=True)
class Where:
    """Hypotheses, and the indices of the element that is looked at."""

    hypotheses: tuple[Any, ...] = ()
    indices: tuple[Any, ...] = ()

    def given(self, *facts: Any) -> Where:
        return replace(self, hypotheses=(*self.hypotheses, *facts))

    def below(self, index: Any, size: Any) -> Where:
        """At one more index."""
        return Where((*self.hypotheses, index >= 0, index < size), (*self.indices, index))


class Equality:
    """Proves values equal.

    Parameters
    ----------
    laws
        For each operator that has any, the names of its laws and what is neutral for it.
    """

    def __init__(self, integers: Integers, scopes: Scopes, laws: dict[Pattern, dict[str, Value | None]]) -> None:
        self.integers, self.scopes, self.laws = integers, scopes, laws
        self.depth = 0

    def prove(self, a: Value, b: Value, where: Where) -> None:
        """Prove two values equal.

        Raises
        ------
        Differs
            If they are not known to be.
        """
        if a is b:
            return
        if isinstance(a, Cond) or isinstance(b, Cond):
            self.cases(a, b, where)
        elif isinstance(a, Arr) and isinstance(b, Arr):
            self.integer(a.size, b.size, where, "the lengths differ")
            i = self.integers.new("i")
            self.prove(a.at(i), b.at(i), where.below(i, a.size))
        elif isinstance(a, Lanes) and isinstance(b, Lanes):
            self.integer(a.width, b.width, where, "the widths differ")
            j = self.integers.new("lane")
            self.prove(a.lane(j), b.lane(j), where.below(j, a.width))
        elif isinstance(a, Pair) and isinstance(b, Pair):
            self.prove(a.first, b.first, where)
            self.prove(a.second, b.second, where)
        elif isinstance(a, Number) and isinstance(b, Number):
            self.integer(a.value, b.value, where, "two numbers differ", (a, b))
        elif isinstance(a, Neutral) and isinstance(b, Neutral):
            self.neutral(a, b, where)
        else:
            raise Differs("they have different forms", where.hypotheses, (a, b), where.indices)

    def holds(self, a: Value, b: Value, where: Where) -> bool:
        """Whether two values can be proved equal."""
        try:
            self.prove(a, b, where)
        except (Differs, NoPart):
            return False
        return True

    def functions(self, f: Function, g: Function, where: Where) -> None:
        """Prove two functions equal."""
        x = reflected(Neutral(Made(str(self.integers.new("x")))), f.domain)
        self.prove(f.apply(x), g.apply(x), where)

    def cases(self, a: Value, b: Value, where: Where) -> None:
        solver = z3()
        condition = a.condition if isinstance(a, Cond) else b.condition  # pyright: ignore[reportAttributeAccessIssue]
        for holds in (True, False):
            case = where.given(condition if holds else solver.Not(condition))
            if not self.integers.excluded(case.hypotheses):
                x, y = (
                    (v.yes if holds else v.no) if isinstance(v, Cond) and v.condition.eq(condition) else v
                    for v in (a, b)
                )
                self.prove(x, y, case)

    def integer(self, a: Any, b: Any, where: Where, reason: str, sides: Any = None) -> None:
        if not self.integers.follows(where.hypotheses, a == b):
            raise Differs(reason, (*where.hypotheses, a != b), sides, where.indices)

    # --- unknown values ---

    def neutral(self, a: Neutral, b: Neutral, where: Where) -> None:
        """Prove two unknown values equal, as they are or in another form that a law gives them."""
        try:
            self.as_they_are(a, b, where)
        except (Differs, NoPart) as problem:
            for x, y in self.other_forms(a, b, where):
                if self.holds(x, y, where):
                    return
            if isinstance(problem, Differs):
                raise
            reason = "a loop reads another part of its state"
            raise Differs(reason, where.hypotheses, (a, b), where.indices) from None

    def as_they_are(self, a: Neutral, b: Neutral, where: Where) -> None:
        if [kind for kind, _ in a.way] != [kind for kind, _ in b.way]:
            raise Differs("they are different terms", where.hypotheses, (a, b), where.indices)
        self.heads(a, b, where)
        for (kind, i), (_, j) in zip(a.way, b.way, strict=True):
            if kind == "component":
                if i != j:
                    raise Differs("they are different components", where.hypotheses, (a, b), where.indices)
            elif not self.integers.follows(where.hypotheses, i == j):
                raise Differs("they are different elements", (*where.hypotheses, i != j), (a, b), where.indices)

    def heads(self, a: Neutral, b: Neutral, where: Where) -> None:
        x, y = a.head, b.head
        if x is y:
            return
        if isinstance(x, Unknown) and isinstance(y, Unknown) and x.name == y.name:
            self.scope(x, y, where, (a, b))
            for u, v in zip(x.arguments, y.arguments, strict=True):
                self.prove(u, v, where)
        elif isinstance(x, Call) and isinstance(y, Call) and (x.name, len(x.arguments)) == (y.name, len(y.arguments)):
            for u, v in zip(x.arguments, y.arguments, strict=True):
                self.prove(u, v, where)
        elif isinstance(x, Loop) and isinstance(y, Loop) and x.kind == y.kind:
            self.loops(self.joined(x, where), self.joined(y, where), where)
        elif isinstance(x, Repeat) and isinstance(y, Repeat):
            x, y = (self.once(r, where) for r in (x, y))
            self.integer(x.times, y.times, where, "they are applied at different times")
            self.prove(x.start, y.start, where)
            self.functions(x.step, y.step, where)
        else:
            raise Differs("they are different terms", where.hypotheses, (a, b), where.indices)

    def loops(self, x: Loop, y: Loop, where: Where) -> None:
        """Prove two loops equal: they begin the same way, and so does each step from the same state."""
        self.integer(x.array.size, y.array.size, where, "the loops have different lengths")
        self.prove(x.initial, y.initial, where)
        i = self.integers.new("i")
        state = reflected(Neutral(Made(str(self.integers.new("state")))), x.state)
        one, other = (loop.step.apply(Pair(state, loop.array.at(i))) for loop in (x, y))
        self.prove(one, other, where.below(i, x.array.size))

    def scope(self, x: Unknown, y: Unknown, where: Where, sides: tuple[Value, Value]) -> None:
        """Prove that what an unknown term may depend on is the same in two scopes."""
        mine, other = dict(x.scope), dict(y.scope)
        for leaf in (*mine, *other):
            if leaf not in mine or leaf not in other:
                reason = f"{x.name} may depend on {shown(leaf)}, which is bound on one side only"
                raise Differs(reason, where.hypotheses, sides, where.indices)
        if not self.scopes.same_order(x.scope, y.scope):
            reason = f"{x.name} is under binders in another order, which may share names"
            raise Differs(reason, where.hypotheses, sides, where.indices)
        for leaf, value in mine.items():
            self.prove(value, other[leaf], where)

    # --- laws ---

    def other_forms(self, a: Neutral, b: Neutral, where: Where) -> Iterator[tuple[Value, Value]]:
        """Pairs of values, one of them in another form."""
        if self.depth < DEPTH:
            self.depth += 1
            try:
                for form in self.forms(a, b, where):
                    yield form, b
                for form in self.forms(b, a, where):
                    yield a, form
                yield from self.permuted(a, b, where)
            finally:
                self.depth -= 1

    def forms(self, x: Neutral, other: Neutral, where: Where) -> Iterator[Value]:
        """What an unknown value is by a law of loops, if it is that of a loop."""
        head, way = x.head, x.way
        if isinstance(head, Repeat) and z3().is_int_value(head.times) and head.times.as_long() <= 1:
            yield followed(head.start if head.times.as_long() == 0 else head.step.apply(head.start), way)
        if not isinstance(head, Loop):
            return
        first = 0 if head.kind == "fold" else 1
        if len(way) > first and way[first][0] == "at":
            yield self.part_of_state(head, way, first, where)
        if head.kind != "fold":
            fold = prefix(head, way[0][1])
            yield followed(reflected(Neutral(fold), fold.state), way[1:])
            return
        if self.integers.follows(where.hypotheses, head.array.size == 0):
            yield followed(head.initial, way)
        flat = self.flattened(head, where)
        if flat is not None:
            yield followed(reflected(Neutral(flat), flat.state), way)
        is_fold = isinstance(other.head, Loop) and other.head.kind == "fold"
        if not is_fold and self.integers.follows(where.hypotheses, head.array.size >= 1):
            last = head.array.size - 1
            before = replace(head, array=Arr(last, head.array.at))
            state = reflected(Neutral(before), head.state)
            yield followed(head.step.apply(Pair(state, head.array.at(last))), way)

    def joined(self, loop: Loop, where: Where) -> Loop:
        """A fold that goes on from another by the same step as one fold."""
        while loop.kind == "fold" and (inner := as_fold(loop.initial)) is not None:
            try:
                self.functions(inner.step, loop.step, where)
            except (Differs, NoPart):
                break
            first, second = self.joined(self.flattened(inner, where) or inner, where), loop.array
            loop = replace(first, array=concatenated(first.array, second), operator=loop.operator)
        return loop

    def part_of_state(self, loop: Loop, way: Any, first: int, where: Where) -> Value:
        """One element of the state of a loop, as a loop of its own: each step makes it of this element alone."""
        index = way[first][1]
        state = loop.state.element  # pyright: ignore[reportAttributeAccessIssue]

        def element_only(value: Value) -> Arr:
            def read(k: Any) -> Value:
                if not self.integers.follows(where.hypotheses, k == index):
                    raise NoPart
                return value

            return Arr(loop.state.size, read)  # pyright: ignore[reportAttributeAccessIssue]

        domain = replace(loop.step.domain, first=state)  # pyright: ignore[reportArgumentType, reportCallIssue]
        step = Function(
            domain, lambda x: at(loop.step.apply(Pair(element_only(component(x, 0)), component(x, 1))), index)
        )
        own = replace(loop, step=step, initial=at(loop.initial, index), state=state, operator=None)
        return followed(reflected(Neutral(own, way[:first]), state), way[first + 1 :])

    def flattened(self, loop: Loop, where: Where) -> Loop | None:
        """A fold of folds as one fold: each goes on from the state of the one before, or adds up a part."""
        solver = z3()
        array = loop.array

        def inner(i: Any, name: str) -> tuple[Any, Loop] | None:
            made = Neutral(Made(name))
            state = reflected(made, loop.state)
            found = loop.step.apply(Pair(state, array.at(i)))
            head = whole(found)
            if isinstance(head, Loop) and head.kind == "fold" and self.holds(head.initial, state, where):
                return state, head
            element = whole(array.at(i))
            law = self.laws.get(loop.operator, {}) if loop.operator is not None else {}
            if isinstance(element, Loop) and element.operator == loop.operator and "associative" in law:
                start = law.get("neutral")
                if start is not None and self.holds(element.initial, start, where):
                    return state, replace(element, step=loop.step)
            return None

        i, j = self.integers.new("i"), self.integers.new("i")
        one, other = inner(i, str(self.integers.new("state"))), inner(j, str(self.integers.new("state")))
        if one is None or other is None:
            return None
        here = where.below(i, array.size).below(j, array.size)
        try:
            self.functions(one[1].step, other[1].step, here)
            self.integer(one[1].array.size, other[1].array.size, here, "")
        except (Differs, NoPart):
            return None
        n = one[1].array.size
        if any(str(v) == str(i) for v in integers_in(n)):
            return None

        def element(k: Any) -> Value:
            q, r = self.integers.divide(k, n)
            found = inner(q, "state")
            assert found is not None
            return found[1].array.at(r)

        length = solver.simplify(array.size * n)
        return replace(one[1], array=Arr(length, element), initial=loop.initial, operator=loop.operator)

    def permuted(self, x: Neutral, y: Neutral, where: Where) -> Iterator[tuple[Value, Value]]:
        """The elements of a fold by a commutative operator in the order of another fold."""
        a, b = x.head, y.head
        if not (isinstance(a, Loop) and isinstance(b, Loop)) or x.way or y.way or a.operator != b.operator:
            return
        law = {} if a.operator is None else self.laws.get(a.operator, {})
        if not {"associative", "commutative"} <= law.keys() or {a.kind, b.kind} != {"fold"}:
            return
        a, b = (self.flattened(loop, where) or loop for loop in (a, b))
        i, j = self.integers.new("i"), self.integers.new("i")
        for one, other in ((a, b), (b, a)):
            base, moved = one.array.at(i), other.array.at(i)
            if not (isinstance(base, Neutral) and isinstance(moved, Neutral) and base.way and moved.way):
                continue
            if not base.way[0][1].eq(i):
                continue

            def source(k: Any, other: Loop = other) -> Any:
                return other.array.at(k).way[0][1]  # pyright: ignore[reportAttributeAccessIssue]

            here = where.below(i, other.array.size)
            both = here.below(j, other.array.size)
            in_order = Arr(one.array.size, lambda k, one=one, source=source: one.array.at(source(k)))
            if (
                self.integers.follows(here.hypotheses, z3().And(source(i) >= 0, source(i) < one.array.size))
                and self.integers.follows(both.hypotheses, z3().Implies(source(i) == source(j), i == j))
                and self.integers.follows(where.hypotheses, one.array.size == other.array.size)
            ):
                moved = replace(one, array=in_order)
                yield reflected(Neutral(moved), moved.state), reflected(Neutral(other), other.state)

    def once(self, r: Repeat, where: Where) -> Repeat:
        """Repetitions of repetitions of one function as one."""
        while (
            isinstance(r.start, Arr)
            and r.start.origin is not None
            and isinstance(inner := r.start.origin.head, Repeat)
            and not r.start.origin.way
        ):
            try:
                self.functions(r.step, inner.step, where)
            except Differs:
                break
            r = Repeat(r.times + inner.times, r.step, inner.start)
        return r
