"""Functions such as sines out of loops that do not change what they are computed of: a table of them is a stage.

In ``map (λx. map (λk. reduce + 0 (map (λj. x_j · cos (k · j)) js)) ks) xs`` the cosines are the same for each x. They
are named where they stand, and the name is moved outwards: through each map or loop that changes it, as an array of
all that it computes, and out of the first map that does not. The terms are built here as the rules of
`lift_egraph.rules` build them; that they do is what the phase ``tables`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import Nat
from lift_egraph.language.types import Array, Scalar, bytes_of
from lift_egraph.rules.tables import NAMED
from lift_egraph.workbench.planning.plan import length_of, one_side, variables_of

FEW = 4  # times that a table is read
LARGEST = 1 << 24  # bytes of a table
MOST = 8  # tables of a program
Named = tuple[ir.Binder, ir.Expr, ir.Expr]  # a name, what it stands for, and the term that has it: a let


def with_tables(term: ir.Expr) -> Iterator[ir.Expr]:
    """The term with a table of what a map computes again and again, then with another one, until there are no more."""
    plan, made = Tables(), term
    for _ in range(MOST):
        made = plan.with_table(made)
        if made is None:
            return
        yield made


_SCALARS = (ir.Call, ir.Var, ir.Input, ir.Literal, ir.SizeLiteral)


@dataclass
class Tables:
    """Tables out of a term, one at a time."""

    numbers: Iterator[int] = field(default_factory=count)

    def with_table(self, term: ir.Expr) -> ir.Expr | None:
        """The term with its first table before the map that does not change it; None if there is none."""
        match term:
            case ir.Map(function=ir.Lambda(binder=p, body=body) as function, array=xs):
                for s, made, rest in self._named(body) if length_of(xs) >= FEW else ():
                    kind = type_of(made)
                    is_table = isinstance(kind, Array) and bytes_of(kind) <= LARGEST
                    if is_table and not variables_of(p) & ir.free_variables(made):
                        return _let(s, made, ir.Map(ir.Lambda(p, rest), xs))
                inner = self.with_table(body)
                if inner is not None:
                    return replace(term, function=replace(function, body=inner))
            case ir.Apply(function=ir.Lambda(body=body) as function):
                inner = self.with_table(body)
                if inner is not None:
                    return replace(term, function=replace(function, body=inner))
        found: list[ir.Expr] = []

        def first(part: ir.Part) -> ir.Part:
            if found or not isinstance(part, ir.Expr) or (made := self.with_table(part)) is None:
                return part
            found.append(made)
            return made

        whole = ir.map_parts(term, first)
        return whole if found else None

    def _named(self, term: ir.Expr) -> Iterator[Named]:
        """The lets that a term can be: of what takes long to compute, moved outwards as far as the term goes."""
        match term:
            case ir.Call(op=op, arguments=operands) if len(operands) < 3:
                for i, operand in enumerate(operands):
                    before, after = operands[:i], operands[i + 1 :]
                    if _takes_long(operand):
                        x = ir.Var(f"$called{next(self.numbers)}", type_of(operand))
                        yield x, operand, ir.Call(op, (*before, x, *after))
                    for s, made, rest in self._named(operand):
                        yield s, made, ir.Call(op, (*before, rest, *after))
            case ir.MakePair(first=a, second=b):
                yield from ((s, made, ir.MakePair(rest, b)) for s, made, rest in self._named(a))
                yield from ((s, made, ir.MakePair(a, rest)) for s, made, rest in self._named(b))
            case ir.Apply(function=ir.Lambda(binder=q, body=body), argument=c):
                if _is_used(q, c, body):
                    yield q, c, body
                yield from ((s, made, _let(q, rest, body)) for s, made, rest in self._named(c))
                for s, made, rest in self._named(body):
                    if not variables_of(q) & ir.free_variables(made):
                        yield s, made, _let(q, c, rest)
            case ir.Reduce(array=xs):
                yield from ((s, made, replace(term, array=rest)) for s, made, rest in self._named(xs))
            case ir.ReduceSeq(operator=ir.Lambda(binder=ir.PairBinder(first=a, second=p), body=body), array=xs):
                for s, made, rest in self._named(body):
                    read = ir.free_variables(made)
                    if variables_of(p) & read and not variables_of(a) & read and (table := self._table(p, made, xs)):
                        column, of_all = table
                        step = ir.Lambda(ir.PairBinder(a, ir.PairBinder(s, p)), rest)
                        yield column, of_all, replace(term, operator=step, array=ir.Zip(column, xs))
            case ir.Map(function=ir.Lambda(binder=p, body=body), array=xs):
                yield from ((s, made, replace(term, array=rest)) for s, made, rest in self._named(xs))
                for s, made, rest in self._named(body):
                    if not variables_of(p) & ir.free_variables(made):
                        yield s, made, ir.Map(ir.Lambda(p, rest), xs)
                        continue
                    if table := self._table(p, made, xs):
                        column, of_all = table
                        yield column, of_all, ir.Map(*_sides(s, p, rest, column, xs))
            case ir.Generate(size=n, function=ir.Lambda(binder=i, body=body)) if body != i:
                yield from self._named(ir.Map(ir.Lambda(i, body), _places(n)))
            case _:
                pass

    def _table(self, p: ir.Binder, made: ir.Expr, xs: ir.Expr) -> tuple[ir.Var, ir.Expr] | None:
        """A name for what is made of all elements of an array, and the map that makes it, if the array is only read."""
        q, value, ys = one_side(p, made, xs)
        if not is_pure(ys):
            return None
        of_all = ir.Map(ir.Lambda(q, value), ys)
        return ir.Var(f"$table{next(self.numbers)}", type_of(of_all)), of_all


def _is_used(q: ir.Binder, c: ir.Expr, body: ir.Expr) -> bool:
    """Whether a let binds a number by operations that take long, or for such that need no more than that."""
    if not isinstance(c, ir.Call) or not all(isinstance(t, _SCALARS) for t in ir.subterms(c) if isinstance(t, ir.Expr)):
        return False
    inside = (ir.free_variables(t) for t in ir.subterms(body) if _takes_long(t))
    known = ir.free_variables(c) | variables_of(q)
    return any(map(_takes_long, ir.subterms(c))) or any(free & variables_of(q) and free <= known for free in inside)


def _takes_long(term: ir.Part) -> bool:
    return isinstance(term, ir.Call) and term.op in NAMED


def _sides(s: ir.Binder, p: ir.Binder, body: ir.Expr, column: ir.Var, xs: ir.Expr) -> tuple[ir.Lambda, ir.Expr]:
    """The function and the array of a map of what is named beside the elements, without what it does not read."""
    q, body, array = one_side(ir.PairBinder(s, p), body, ir.Zip(column, xs))
    match q, array:
        case ir.PairBinder(second=ir.PairBinder()), ir.Zip(first=first, second=ir.Zip() as others):
            r, _, ys = one_side(q.second, body, others)
            return ir.Lambda(ir.PairBinder(q.first, r), body), ir.Zip(first, ys)
    return ir.Lambda(q, body), array


def _places(n: Nat) -> ir.Expr:
    i = ir.Var("$i", Scalar("i32"))
    return ir.Generate(n, ir.Lambda(i, i))


def _let(p: ir.Binder, argument: ir.Expr, body: ir.Expr) -> ir.Apply:
    return ir.Apply(ir.Lambda(p, body), argument)
