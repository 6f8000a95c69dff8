"""The parameters of functions in a text: their names, their types, and the sizes that these name first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lift_egraph.errors import TypeProblem
from lift_egraph.language import functions, ir
from lift_egraph.language.check import type_of
from lift_egraph.language.grammar import Misplaced, Tree
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.scopes import Scope
from lift_egraph.language.type_text import read_type
from lift_egraph.language.types import Array, DataType, Pair, substitute_sizes

UNUSED = "_"  # may be bound several times, and names nothing then


def whole_lengths(annotation: Tree) -> Iterator[str]:
    """The names that are the whole length of an array in the annotation of a parameter."""
    if annotation.kind == "array_type" and annotation.items[1].kind == "name":
        yield annotation.items[1].items[0]
    for part in annotation.items:
        if isinstance(part, Tree):
            yield from whole_lengths(part)


def lengths_given(binders: list[Tree], given: Iterable[ir.Expr], scope: Scope, new: frozenset[str]) -> dict[str, Nat]:
    """The sizes that the parameters' annotations name first, in the types of what the function is applied to."""
    found: dict[str, Nat] = {}
    for binder, variable in zip(binders, given, strict=True):
        name, annotation = binder.items
        if annotation is None:
            continue
        wanted, has = read_type(annotation, scope.size), type_of(variable)
        for size, length in _paired_sizes(wanted, has):
            found |= {n: length for n in new - found.keys() if size == nat(n)}
        if substitute_sizes(wanted, dict(found)) != has:
            raise Misplaced(f"{name} is declared as {wanted}, but is given {has}", binder.place, TypeProblem)
    return found


def _paired_sizes(wanted: DataType, has: DataType) -> Iterator[tuple[Nat, Nat]]:
    """The lengths that stand in one place of two types."""
    match wanted, has:
        case Array(), Array():
            yield wanted.size, has.size
            yield from _paired_sizes(wanted.element, has.element)
        case Pair(), Pair():
            yield from _paired_sizes(wanted.first, has.first)
            yield from _paired_sizes(wanted.second, has.second)


def binders_of(pattern: Tree) -> Iterable[Tree]:
    """The names in a pattern, with their annotations."""
    if pattern.kind == "bind":
        yield pattern
    else:
        for entry in pattern.items:
            yield from binders_of(entry)


def names_of(tree: Tree, scope: Scope, later: frozenset[str] = frozenset()) -> functions.Names:
    """The parameters; annotations with sizes that are known `later`, by what is given, are compared then."""
    if tree.kind == "bind":
        name, annotation = tree.items
        known = None if annotation is None or not later.isdisjoint(whole_lengths(annotation)) else annotation
        return functions.Bind(name, None if known is None else read_type(known, scope.size))
    return functions.nested([names_of(entry, scope, later) for entry in tree.items])


def require_distinct(named: Iterable[Tree]) -> None:
    """Raise a `Misplaced` for a name that is there twice."""
    seen: set[str] = set()
    for tree in named:
        if tree.items[0] in seen and not (tree.kind == "bind" and tree.items[0] == UNUSED):
            raise Misplaced(f"{tree.items[0]!r} is declared twice", tree.place)
        seen.add(tree.items[0])


def binder_name(tree: Tree) -> str:
    """A name that is bound, which is no word of the language."""
    name = tree.items[0]
    if name in functions.RESERVED:
        raise Misplaced(f"{name!r} is a word of the language; choose another name", tree.place)
    return name
