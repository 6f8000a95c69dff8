"""Common parts of indices are computed once and have a name.

Two things are shared where they occur at least twice: the part of an address that is no literal number
(``A[A_at]``, ``A[A_at + 1024]``, …), and a quotient, rest, minimum or maximum inside indices. Each is declared at the
start of the innermost block that binds one of its variables, so outside of the loops that it does not depend on; but
not outside of a loop with a barrier, and never before the last barrier, since a value that lives across a barrier
costs memory on devices that run the work-items of a group one after the other.

Source: new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import Nat, NatVar, Operation, nat, operate, operations

_NAMES = {"/": "quotient", "%": "rest", "min": "least", "max": "most"}
_Path = tuple[int, ...]  # leads to a body: the number of a statement, and 0 for its body, again and again


@dataclass(eq=False)
class _Scope:
    """A run of statements between barriers: where constants may stand, which variables it binds."""

    parent: _Scope | None
    variables: frozenset[NatVar]
    uses: dict[Nat, list[str]] = field(default_factory=dict)  # the arrays that each part is used with
    shared: dict[Nat, c_ast.SharedVar] = field(default_factory=dict)

    def home(self, part: Nat) -> _Scope:
        """The outermost scope in which the part may be computed."""
        scope = self
        while scope.parent is not None and not scope.variables & part.variables:
            scope = scope.parent
        return scope

    def known(self, part: Nat) -> Nat | None:
        """The constant that stands for a part here."""
        found = self.home(part).shared.get(part)
        return None if found is None else nat(found)


def share_indices(body: c_ast.Body, taken: set[str], *, sums_apart: bool = False) -> c_ast.Body:
    """The body with shared parts of its indices in constants.

    Parameters
    ----------
    taken
        The names of the kernel's arguments; others are found in the body.
    sums_apart
        Leave the addresses of vectors and of local memory as they are; see `Dialect.sums_apart`.
    """
    names = taken | c_walk.known_names(body)
    body = _Operations(names).share(body)
    return _Addresses(names, sums_apart).share(body)


class _Sharing:
    """One walk to count, and one to replace."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.scopes: dict[_Path, _Scope] = {}
        self.changing: set[str] = set()
        self.replacing = False

    def parts(self, item: c_ast.Load | Nat) -> Iterator[Nat]:
        """What could be shared in an address or another index."""
        raise NotImplementedError

    def change(self, item: c_ast.Load | Nat, scope: _Scope) -> Any:
        """The item with its shared parts replaced; None where there are none."""
        raise NotImplementedError

    def declared(self, scope: _Scope, run: list[c_ast.Statement]) -> list[c_ast.Statement]:
        """A run of statements, with the constants of its scope."""
        raise NotImplementedError

    def share(self, body: c_ast.Body) -> c_ast.Body:
        self.changing = {s.variable.name for s in c_walk.statements(body) if isinstance(s, c_ast.SetIndex)}
        self.visit(body, None, frozenset(), ())
        for scope in self.scopes.values():
            for part, arrays in scope.uses.items():
                if len(arrays) > 1:
                    scope.shared[part] = c_ast.SharedVar(c_name(_name(part, arrays), self.names), *part.range, part)
                    self.replacing = True
        return self.visit(body, None, frozenset(), ()) if self.replacing else body

    def visit(self, body: c_ast.Body, parent: _Scope | None, variables: frozenset[NatVar], path: _Path) -> c_ast.Body:
        """Counts the parts in a body, or replaces them."""
        variables |= {s.variable for s in body if isinstance(s, c_ast.LetIndex)}
        if any(map(c_walk.waits, body)):
            parent = None
        result: list[c_ast.Statement] = []
        run: list[c_ast.Statement] = []
        scope = self.scope(path, parent, variables)
        for number, statement in enumerate(body):
            if not c_walk.waits(statement):
                run.append(self.statement(statement, scope, (*path, number)))
                continue
            result += self.declared(scope, run)
            result += self.declared(inner := self.scope((*path, number), None, variables), [])
            result.append(self.statement(statement, inner, (*path, number)))
            run, scope = [], self.scope((*path, number, -1), None, variables)
        return (*result, *self.declared(scope, run))

    def scope(self, path: _Path, parent: _Scope | None, variables: frozenset[NatVar]) -> _Scope:
        return self.scopes.setdefault(path, _Scope(parent, variables))

    def statement(self, statement: c_ast.Statement, scope: _Scope, path: _Path) -> c_ast.Statement:
        if not c_walk.mentioned(statement):  # no index in it is more than a number
            return statement
        if not isinstance(statement, c_ast.AROUND):
            return self.item(statement, scope)
        own = frozenset({statement.variable}) if isinstance(statement, c_ast.For) else frozenset()
        outer = None if c_walk.waits(statement) else scope
        made = c_walk.with_body(statement, self.visit(statement.body, outer, own, (*path, 0)))
        if isinstance(made, c_ast.If):
            conditions = tuple(self.item(c, scope) for c in made.conditions)
            made = made if all(map(is_, conditions, made.conditions)) else replace(made, conditions=conditions)
        return made

    def item(self, item: Any, scope: _Scope) -> Any:
        """A statement without a body, or a condition, counted or replaced."""
        if self.replacing:
            return c_walk.rewrite(item, lambda part: self.replaced(part, scope))
        self.count(item, "", scope)
        return item

    def replaced(self, part: Any, scope: _Scope) -> Any:
        if not c_walk.mentioned(part):
            return part
        return self.change(part, scope) if isinstance(part, c_ast.Load | Nat) else None

    def count(self, item: Any, array: str, scope: _Scope) -> None:
        if not c_walk.mentioned(item):
            return
        if isinstance(item, c_ast.Load):
            if item.buffer.space == "private":
                return
            array = item.buffer.name
        if isinstance(item, c_ast.Load | Nat):
            for part in self.parts(item):
                scope.home(part).uses.setdefault(part, []).append(array)
        for child in () if isinstance(item, Nat) else c_walk.children(item):
            self.count(child, array, scope)

    def is_fixed(self, index: Nat) -> bool:
        """Whether an index is made from constants of the kernel only."""
        return not any(isinstance(v, c_ast.Computed) or v.name in self.changing for v in index.variables)


class _Operations(_Sharing):
    """Quotients, rests, minima and maxima."""

    def parts(self, item: c_ast.Load | Nat) -> Iterator[Nat]:
        if isinstance(item, Nat) and (found := [*operations(item)]) and self.is_fixed(item):
            yield from map(nat, found)

    def change(self, item: c_ast.Load | Nat, scope: _Scope) -> Any:
        if isinstance(item, c_ast.Load):
            return item if item.buffer.space == "private" else None
        if not any(scope.known(nat(o)) for o in operations(item)) or not self.is_fixed(item):
            return None
        return item.rebuild(lambda atom: scope.known(nat(atom)))

    def declared(self, scope: _Scope, run: list[c_ast.Statement]) -> list[c_ast.Statement]:
        """Operations in other operations come first."""
        if not self.replacing:
            return run
        made: list[c_ast.Statement] = []
        for part, variable in sorted(scope.shared.items(), key=lambda item: _depth(item[0])):
            (atom,) = part.terms[0][0]
            assert isinstance(atom, Operation)
            left, right = (self.change(side, scope) or side for side in (atom.left, atom.right))
            made.append(
                c_ast.LetIndex(variable, operate(atom.symbol, left, right), origin=run[0].origin if run else None)
            )
        return made + run


class _Addresses(_Sharing):
    """The parts of addresses that are no literal numbers."""

    def __init__(self, names: set[str], sums_apart: bool) -> None:
        super().__init__(names)
        self.sums_apart = sums_apart

    def parts(self, item: c_ast.Load | Nat) -> Iterator[Nat]:
        base = self.base(item) if isinstance(item, c_ast.Load) else None
        if base is not None:
            yield base

    def base(self, load: c_ast.Load) -> Nat | None:
        """The address without its literal part, where it is worth a name."""
        if load.buffer.space == "private" or not self.is_fixed(load.index):
            return None
        if self.sums_apart and (load.width > 1 or load.buffer.space == "local"):
            return None
        base = Nat(tuple([(m, c) for m, c in load.index.terms if m]))
        return base if len(base.terms) > 1 else None

    def change(self, item: c_ast.Load | Nat, scope: _Scope) -> Any:
        base = self.base(item) if isinstance(item, c_ast.Load) else None
        known = None if base is None else scope.known(base)
        return replace(item, index=item.index - base + known) if known else None  # pyright: ignore

    def declared(self, scope: _Scope, run: list[c_ast.Statement]) -> list[c_ast.Statement]:
        """An address stands before the first statement that uses it."""
        waiting: dict[c_ast.SharedVar, Nat] = {v: part for part, v in scope.shared.items()} if self.replacing else {}
        result: list[c_ast.Statement] = []
        for statement in run:
            if waiting:
                used = {v for part in c_walk.walk(statement) if isinstance(part, Nat) for v in part.variables}
                for variable in [v for v in waiting if v in used]:
                    result.append(c_ast.LetIndex(variable, waiting.pop(variable), origin=statement.origin))
            result.append(statement)
        assert not waiting
        return result


def in_full(index: Nat) -> Nat:
    """An index with its shared parts written out, to tell what divides it."""
    while shared := {v.name: v.value for v in index.variables if isinstance(v, c_ast.SharedVar)}:
        index = index.substitute(shared)
    return index


def _depth(index: Nat) -> int:
    return sum(1 for _ in operations(index))


def _name(part: Nat, arrays: list[str]) -> str:
    if len(part.terms) == 1:
        return _NAMES[next(operations(part)).symbol]
    return f"{arrays[0]}_at" if len(set(arrays)) == 1 else "at"
