"""Local functions that nothing is given to: what is wrong in them whatever that would be.

A function has the types of what it is applied to, so one that is never applied has none. It is read all the same where
its parameters have annotations. Of others the parts are read that mention no parameter, and names must mean something;
where all parameters are operands of arithmetic, so that they are scalars, some scalar types must fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from lift_egraph.errors import LiftError
from lift_egraph.language import build, functions, ir
from lift_egraph.language.grammar import Misplaced, Tree
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar

ARITHMETIC = ("+", "-", "*", "/", "%", "&&", "||")  # neither of arrays nor of tuples
SCALARS = tuple(map(Scalar, dict.fromkeys(("f32", *NUMPY_TYPES))))
MOST_TRIED = 2  # parameters of which all scalar types are tried


class Reader(Protocol):
    """Reads parts of a text in the scope of a function, and with values of other names."""

    def meaning(self, tree: Tree, values: Mapping[str, Any]) -> Any:
        """The term or the function that a tree denotes."""
        ...

    def value(self, tree: Tree, values: Mapping[str, Any]) -> ir.Expr:
        """The term that a tree denotes."""
        ...

    def names(self, pattern: Tree) -> functions.Names:
        """The parameters of a function."""
        ...

    def trying(self) -> Reader:
        """Another one for the same scope: functions that it meets are forgotten."""
        ...


@dataclass
class Met:
    """The functions of a text that were met, and which of them were applied."""

    functions: dict[int, tuple[Tree, Reader]] = field(default_factory=dict)
    applied: dict[int, Tree] = field(default_factory=dict)  # keeps the trees, so that their numbers stay theirs

    def meet(self, tree: Tree, reader: Reader) -> None:
        self.functions.setdefault(id(tree), (tree, reader))

    def apply(self, tree: Tree) -> None:
        self.applied[id(tree)] = tree

    def require_right(self) -> None:
        """Raise what is wrong in a function that was not applied, and in those that are met by reading it."""
        looked_at: set[int] = set()
        while left := self.functions.keys() - self.applied.keys() - looked_at:
            for key in sorted(left, key=[*self.functions].index):
                looked_at.add(key)
                tree, reader = self.functions[key]
                _require_function(tree, reader, frozenset(), {})


def _require_function(tree: Tree, reader: Reader, unknown: frozenset[str], known: Mapping[str, Any]) -> None:
    pattern, body = tree.items
    binders = [*_binders(reader.names(pattern))]
    names = {b.name for b in binders}
    typed = {b.name: ir.Var(b.name, b.type) for b in binders if b.type is not None}
    known = {name: value for name, value in known.items() if name not in names} | typed
    unknown = (unknown | names) - typed.keys()
    open_ = unknown & _mentioned(body)
    if not open_:
        reader.value(body, known)
        return
    _require(body, reader, unknown, known)
    if len(open_) <= MOST_TRIED and all(_is_scalar(name, body) for name in open_):
        _try_scalars(body, reader, sorted(open_), known)


def _require(tree: Tree, reader: Reader, unknown: frozenset[str], known: Mapping[str, Any]) -> None:
    """Raise what is wrong in a tree whatever the types of unknown names are."""
    if not unknown & _mentioned(tree):
        reader.meaning(tree, known)
    elif tree.kind == "fun":
        _require_function(tree, reader, unknown, known)
    elif tree.kind == "let":
        pattern, value, body = tree.items
        _require(value, reader, unknown, known)
        names = {b.name for b in _binders(reader.names(pattern))}
        rest = {name: meant for name, meant in known.items() if name not in names}
        if pattern.kind == "bind" and not unknown & _mentioned(value):
            (name,) = names
            _require(body, reader, unknown - names, rest | {name: reader.meaning(value, known)})
        else:
            _require(body, reader, unknown | names, rest)
    else:
        for part in _parts(tree):
            _require(part, reader, unknown, known)


def _try_scalars(body: Tree, reader: Reader, names: list[str], known: Mapping[str, Any]) -> None:
    """Raise what is wrong with the first types of parameters if no types fit."""
    first: Misplaced | LiftError | None = None
    for types in product(SCALARS, repeat=len(names)):
        given = {name: ir.Var(name, t) for name, t in zip(names, types, strict=True)}
        try:
            reader.trying().value(body, {**known, **given})
        except (Misplaced, LiftError) as problem:
            first = first or problem
        else:
            return
    assert first is not None
    raise first


def _binders(names: functions.Names) -> Iterator[functions.Bind]:
    if isinstance(names, functions.Bind):
        yield names
    else:
        for part in names:
            yield from _binders(part)


def _trees(tree: Tree) -> Iterator[Tree]:
    return (item for item in tree.items if isinstance(item, Tree))


def _mentioned(tree: Tree) -> set[str]:
    """The names in a tree, also where they are another's."""
    if tree.kind == "name":
        return {tree.items[0]}
    return set[str]().union(*map(_mentioned, _trees(tree)))


def _parts(tree: Tree) -> Iterator[Tree]:
    """The parts that are terms or functions: of a pattern not its sizes, index functions and boundaries."""
    if tree.kind == "call":
        callee, *arguments = tree.items
        pattern = build.BUILTINS.get(callee.items[0]) if callee.kind == "name" else None
        kinds = pattern.kinds if isinstance(pattern, functions.PartialPattern) else ()
        for number, argument in enumerate(arguments):
            makes_size = callee.items[0] == "iterate" and argument.kind == "fun"  # its argument's length has a name
            if number >= len(kinds) or (kinds[number] in ("value", "function", "any") and not makes_size):
                yield argument
        yield callee
    elif tree.kind != "index":
        yield from _trees(tree)


def _is_scalar(name: str, tree: Tree) -> bool:
    """Whether a name is an operand of arithmetic, where it means what it means around the tree."""
    if tree.kind in ("fun", "let") and name in _bound(tree.items[0]):
        return tree.kind == "let" and _is_scalar(name, tree.items[1])
    calculates = tree.kind == "negate" or (tree.kind == "infix" and tree.items[0] in ARITHMETIC)
    return any((calculates and part.items[:1] == (name,)) or _is_scalar(name, part) for part in _trees(tree))


def _bound(pattern: Tree) -> set[str]:
    if pattern.kind == "bind":
        return {pattern.items[0]}
    return set[str]().union(*map(_bound, _trees(pattern)))
