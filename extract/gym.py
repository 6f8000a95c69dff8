"""An e-graph whose nodes have costs, as plain data, and the files of extraction-gym that hold one.

The format is that of egraph-serialize, https://github.com/egraphs-good/egraph-serialize, which egg, egglog and
extraction-gym share: ``nodes`` by name with ``op``, ``children`` (names of nodes, whose classes are meant), ``eclass``
and ``cost``; ``root_eclasses``. What else a file holds is not read, but that a node marked ``subsumed`` may not be
extracted.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from lift_egraph.caching import cached_property
from lift_egraph.errors import InputProblem

MOST_BYTES = 2**28  # of JSON text, unpacked; the largest file of extraction-gym has a fifth of it


class PricedNode(NamedTuple):
    """A node with what it costs by itself.

    Attributes
    ----------
    name
        What a file calls it.
    op
        Its operator.
    owner
        The class that it is in.
    children
        The classes that it is applied to, in order; one may occur several times.
    cost
        At least 0; a node of infinite cost may not be extracted.
    """

    name: str
    op: str
    owner: int
    children: tuple[int, ...]
    cost: float


@dataclass(frozen=True)
class PricedGraph:
    """An e-graph whose nodes have costs; classes are numbered, and `classes` has their names.

    Raises
    ------
    InputProblem
        If it has no root, a cost is negative or NaN, costs add up to infinity, or a number of a class is out of range.

    Examples
    --------
    The number 6 as ``2 * 3``, or as ``3 + 3`` with 3 counted once:

    >>> six = (PricedNode("a", "*", 0, (1, 2), 4.0), PricedNode("b", "+", 0, (2, 2), 1.0))
    >>> graph = PricedGraph((*six, PricedNode("c", "2", 1, (), 1.0), PricedNode("d", "3", 2, (), 1.0)), "623", (0,))
    >>> graph.members
    ((0, 1), (2,), (3,))
    """

    nodes: tuple[PricedNode, ...]
    classes: tuple[str, ...] | str
    roots: tuple[int, ...]

    def __post_init__(self) -> None:
        count = len(self.classes)
        if not self.roots:
            raise InputProblem("the e-graph has no root")
        for node in self.nodes:
            if not node.cost >= 0:
                raise InputProblem(f"the node {node.name} costs {node.cost}; a cost is a number of at least 0")
            if not all(0 <= c < count for c in (node.owner, *node.children)):
                raise InputProblem(f"the node {node.name} names a class that is not among the {count} classes")
        if not all(0 <= r < count for r in self.roots):
            raise InputProblem(f"a root is not among the {count} classes")
        if sum(node.cost for node in self.nodes if node.cost < math.inf) == math.inf:
            raise InputProblem("the sum of the nodes' costs is larger than any number of 64 bits")

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the nodes of each class."""
        found: list[list[int]] = [[] for _ in self.classes]
        for i, node in enumerate(self.nodes):
            found[node.owner].append(i)
        return tuple(map(tuple, found))


Allowed = Callable[[PricedNode], bool]


def extractable(graph: PricedGraph, allowed: Allowed | None) -> list[bool]:
    """Which nodes an extractor may choose: those of finite cost, of which `allowed` holds."""
    return [n.cost < math.inf and (allowed is None or allowed(n)) for n in graph.nodes]


class _Node(msgspec.Struct):
    op: str
    children: list[str]
    eclass: str
    cost: float
    subsumed: bool = False


class _File(msgspec.Struct):
    nodes: dict[str, _Node]
    root_eclasses: list[str]


def read_gym(path: Path) -> PricedGraph:
    """The e-graph in a file of extraction-gym, ``.json`` or ``.json.gz``.

    Raises
    ------
    InputProblem
        If the file cannot be read, is too large, no JSON, lacks a field, or describes no e-graph.
    """
    try:
        found = msgspec.json.decode(_unpacked(path), type=_File)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise InputProblem(f"{path} describes no e-graph: {problem}") from None
    classes: dict[str, int] = {}
    for node in found.nodes.values():
        classes.setdefault(node.eclass, len(classes))
    owners = {name: classes[node.eclass] for name, node in found.nodes.items()}
    nodes = []
    for name, node in found.nodes.items():
        unknown = next((child for child in node.children if child not in owners), None)
        if unknown is not None:
            raise InputProblem(f"{path}: the child {unknown!r} of the node {name!r} is no node")
        cost = math.inf if node.subsumed else node.cost
        if not node.cost >= 0:
            raise InputProblem(f"{path}: the node {name!r} costs {node.cost}; a cost is a number of at least 0")
        nodes.append(PricedNode(name, node.op, owners[name], tuple([owners[c] for c in node.children]), cost))
    for root in found.root_eclasses:
        if root not in classes:
            raise InputProblem(f"{path}: the root {root!r} is not the class of any node")
    if not found.root_eclasses:
        raise InputProblem(f"{path}: the e-graph has no root: root_eclasses is empty")
    roots = dict.fromkeys(classes[root] for root in found.root_eclasses)
    try:
        return PricedGraph(tuple(nodes), tuple(classes), tuple(roots))
    except InputProblem as problem:
        raise InputProblem(f"{path}: {problem}") from None


def _unpacked(path: Path) -> bytes:
    """The bytes of a file; one that gzip packed is known by its first two."""
    try:
        with path.open("rb") as file:
            is_packed = file.peek(2)[:2] == b"\x1f\x8b"
            found = (gzip.GzipFile(fileobj=file) if is_packed else file).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise InputProblem(f"cannot read {path}: {why}") from None
    if len(found) > MOST_BYTES:
        raise InputProblem(f"{path} holds more than {MOST_BYTES >> 20} MiB of text")
    return found
