"""Terms of the e-graph as values of their own, with its names: what a derivation rewrites step by step.

`lift_egraph.language.ir` has no form for some of the e-graph's nodes (`combine`, functions without a name for their
argument), and `from_egg` renames binders; a `Node` is exact, and can be put back into an e-graph and found there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union

from lift_egraph.caching import cached_property, hashed_once
from lift_egraph.egraph.expressions import made
from lift_egraph.egraph.frozen import Child, ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.pattern_nodes import name_in_language, pattern_node, place_name
from lift_egraph.egraph.read_back import Choice

Path = tuple[int, ...]
_NOT_TERMS = ("Ty_", "P_", "V_", "Order_")


@hashed_once
@dataclass(frozen=True)
class Node:
    """A term of the e-graph with its names: an operator, numbers and strings, and parts of any sort."""

    op: str
    children: tuple[Union[Node, int, str], ...]

    def at(self, path: Path) -> Node:
        """The part at a place: the number of the child at each level."""
        node = self
        for i in path:
            node = node.children[i]
            assert isinstance(node, Node)
        return node

    def replaced(self, path: Path, part: Node) -> Node:
        """This with another part at a place."""
        if not path:
            return part
        i, *rest = path
        child = self.children[i]
        assert isinstance(child, Node)
        changed = child.replaced(tuple(rest), part)
        return Node(self.op, (*self.children[:i], changed, *self.children[i + 1 :]))

    def parts(self) -> Iterator[Node]:
        """This and every part of any sort."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.parts()

    def places(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Every part that is a term, function or operator, with its place, outermost first."""
        yield path, self
        for i, child in enumerate(self.children):
            if isinstance(child, Node) and not child.op.startswith(_NOT_TERMS):
                yield from child.places((*path, i))

    @cached_property
    def size(self) -> int:
        """The number of nodes that are terms, functions or operators."""
        return sum(1 for _ in self.places())

    @property
    def complexity(self) -> tuple[int, int]:
        """What simplification makes less: the size, and how much stands in the scope of lets."""
        lets = (part.children[0] for _, part in self.places() if part.op == "app")
        return self.size, sum(f.size for f in lets if isinstance(f, Node))


def alike(left: Node, right: Node) -> int:
    """How many nodes two terms share from their roots on; what names bind, and types, do not count.

    Examples
    --------
    >>> xs = Node("Ex_input", ("xs",))
    >>> alike(Node("split", (4, Node("join", (xs,)))), Node("split", (4, xs)))
    1
    """
    if left.op != right.op or len(left.children) != len(right.children):
        return 0
    parts = [*zip(left.children, right.children, strict=True)]
    if any(a != b for a, b in parts if not (isinstance(a, Node) and isinstance(b, Node))):
        return 0
    terms = (pair for pair in parts if isinstance(pair[0], Node) and not pair[0].op.startswith(_NOT_TERMS))
    return 1 + sum(alike(a, b) for a, b in terms if isinstance(a, Node) and isinstance(b, Node))


_SILENT = ("Fn_lam", "Op_fn", "Op_lift")


def place_of(term: Node, path: Path) -> str:
    """A place in a term as the patterns on the way to it: ``map.f/reduce.xs`` is the array of the reduce in a map.

    Examples
    --------
    >>> xs = Node("Ex_input", ("xs",))
    >>> place_of(Node("map_", (Node("Fn_join", ()), Node("split", (4, xs)))), (1, 1))
    'map.xs/split'
    """
    steps: list[str] = []
    for position in path:
        below = [i for i, c in enumerate(term.children) if isinstance(c, Node) and not c.op.startswith(_NOT_TERMS)]
        if term.op not in _SILENT:
            at = below.index(position)
            suffix = f".{dict(enumerate(_names(term.op))).get(at, at + 1)}" if len(below) > 1 else ""
            steps.append(_spelt(term) + suffix)
        child = term.children[position]
        assert isinstance(child, Node)
        term = child
    return "/".join(steps) or "the whole"


def _names(op: str) -> tuple[str, ...]:
    """What the parts of an operation are called, if it is a pattern."""
    pattern = pattern_node(op)
    return () if pattern is None else tuple(place_name(p) for p in pattern.signature.parts)


def _spelt(term: Node) -> str:
    if term.op.startswith("call"):
        return str(term.children[0])
    pattern = pattern_node(term.op)
    if pattern is None:
        return term.op
    return re.sub(r"[()]", "", name_in_language(pattern, term.children))


def renamed(node: ENode, image: Mapping[ClassId, ClassId]) -> tuple[str, tuple[Child, ...]]:
    """The operator and children of a node with its classes replaced."""
    if node.op == "V_of":
        tag, pattern, index = node.children
        return node.op, (tag, image[pattern], index)  # pyright: ignore[reportArgumentType]
    numbers = node.children[: len(node.children) - len(node.classes)]
    return node.op, (*numbers, *[image[c] for c in node.classes])


def is_class(node: ENode, position: int) -> bool:
    """Whether a child is a class; numbers and texts come first in every operator but one."""
    if node.op == "V_of":
        return position == 1
    return position >= len(node.children) - len(node.classes)


def read_choice(graph: FrozenEGraph, choice: Choice) -> Node:
    """A member of a class with all its names and types."""
    parts = iter(choice.parts)
    return _read(graph, choice.node, lambda c: read_choice(graph, next(parts)))


def read_only_member(graph: FrozenEGraph, class_id: ClassId) -> Node:
    """The only member of a class of an e-graph that holds one term."""
    return _read(graph, graph.nodes[class_id][0], lambda c: read_only_member(graph, c))


def _read(graph: FrozenEGraph, node: ENode, term: Callable[[ClassId], Node]) -> Node:
    children: list[Node | int | str] = []
    for position, child in enumerate(node.children):
        if not is_class(node, position):
            children.append(child)
        elif graph.sorts[child] in ("Ex", "Fn", "Op"):  # pyright: ignore[reportArgumentType]
            children.append(term(child))  # pyright: ignore[reportArgumentType]
        else:
            children.append(_plain(graph, child))  # pyright: ignore[reportArgumentType]
    return Node(node.op, tuple(children))


def _plain(graph: FrozenEGraph, class_id: ClassId, above: frozenset[ClassId] = frozenset()) -> Node:
    """A type, pattern, name or order; types have a second spelling with lanes, and orders others, that are circular."""
    inside = above | {class_id}
    ordered = sorted(graph.nodes[class_id], key=lambda n: n.op in ("Ty_lanes", "Order_then", "Order_inverse"))
    node = next(n for n in ordered if not any(c in inside for c in n.classes))
    children = tuple(
        _plain(graph, c, inside) if is_class(node, i) else c  # pyright: ignore[reportArgumentType]
        for i, c in enumerate(node.children)
    )
    return Node(node.op, children)


def class_of(graph: FrozenEGraph, term: Node) -> ClassId | None:
    index: dict[Any, ClassId] | None = graph.__dict__.get("_index")
    if index is None:
        index = {(n.op, n.children): c for c, nodes in graph.nodes.items() for n in nodes}
        graph.__dict__["_index"] = index
    memo: dict[Node, ClassId | None] = graph.__dict__.setdefault("_found", {})
    if term not in memo:
        children = [class_of(graph, c) if isinstance(c, Node) else c for c in term.children]
        memo[term] = None if any(c is None for c in children) else index.get((term.op, tuple(children)))
    return memo[term]


def choice_of(graph: FrozenEGraph, term: Node) -> Choice | None:
    """A term as a member of its class, or None if the e-graph does not hold it."""
    owner = class_of(graph, term)
    if owner is None:
        return None
    children = tuple(class_of(graph, c) if isinstance(c, Node) else c for c in term.children)
    node = next(n for n in graph.nodes[owner] if (n.op, n.children) == (term.op, children))
    parts = [c for c in term.children if isinstance(c, Node) and not c.op.startswith(_NOT_TERMS)]
    assert len(parts) == len(list(term_classes(graph, node)))
    inside = tuple(choice for p in parts if (choice := choice_of(graph, p)) is not None)
    return Choice(owner, node, inside)


def written(graph: FrozenEGraph, node: ENode, own: dict[ClassId, Node]) -> Node | None:
    """A new node with the term's own parts where there are any, and what the rule made elsewhere."""

    def part(class_id: ClassId, above: frozenset[ClassId]) -> Node | None:
        if class_id in own:
            return own[class_id]
        if class_id in above:
            return None
        for n in graph.nodes[class_id]:
            try:
                return _read(graph, n, lambda c: _require(part(c, above | {class_id})))
            except _NoPart:
                continue
        return None

    try:
        return _read(graph, node, lambda c: _require(part(c, frozenset())))
    except _NoPart:
        return None


class _NoPart(Exception):
    pass


def _require(node: Node | None) -> Node:
    if node is None:
        raise _NoPart
    return node


@lru_cache(maxsize=100_000)
def to_expr(term: Node) -> Any:
    """A term of the e-graph as egglog's own."""
    return made(term.op, *(to_expr(c) if isinstance(c, Node) else c for c in term.children))
