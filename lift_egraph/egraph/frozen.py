"""An e-graph at rest: plain tables that can be sent between processes and searched; `read_back` makes terms of them.

egglog's `freeze` is not a stable interface, so every use of it is here, behind a test.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

from lift_egraph.egraph.orders import KnownOrder
from lift_egraph.egraph.pattern_nodes import CONSTANTS
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array, DataType, Pair, Scalar, Vector, lanes

if TYPE_CHECKING:
    import egglog

PREFIX = "lift_egraph_egraph_sorts_"
ANALYSES = ("ty", "vty", "pty", "cod")  # functions that are kept, but are no nodes
LANGUAGE = ("keeps", "gives")  # what is the same in every e-graph
DROPPED = (
    "fv",
    "fvf",
    "fvo",
    "bvs",
    "rearranged",
    "tile",
    "lane_width",
    "associative",
    "commutative",
    "identity",
    "neutral",
    "scalar_like",
    "without_floats",
    "stage_local",
    "stage_private",
    "built_in",
    "distributes",
    "acts",
    "steady",
    "combines",
    "recalls",
    "kept_within",
    "kept_along",
    "cascades",
    "tabulates",
    "tabulates_first",
    "distinct",
    "matched",
    "matched_function",
)

T = TypeVar("T")
ClassId = int
Child = Union[int, str]  # a class, or the value of a primitive argument


class ENode(NamedTuple):
    """An operator applied to classes; `primitive` marks the children that are numbers or strings."""

    op: str
    children: tuple[Child, ...]
    classes: tuple[ClassId, ...]  # those children that are classes, in order


@dataclass
class FrozenEGraph:
    """The nodes of every class, and the type of every term's class.

    Attributes
    ----------
    nodes
        The nodes of each class.
    sorts
        The sort (``Ex``, ``Fn``, ``Ty``, ``P``, ``V``, ``Op``, ``Order``) of each class.
    analyses
        For each analysis (``ty`` …), the class it gives for a class.
    roots
        The classes of the terms the e-graph was made from, by name.
    tuples
        The number of rows in all of egglog's tables, analyses included.
    facts
        What conditions of rules ask for, if wanted: for ``tile``, ``fv`` … the arguments for which it holds, and the
        names that it gives there.
    """

    nodes: dict[ClassId, list[ENode]]
    sorts: dict[ClassId, str]
    analyses: dict[str, dict[ClassId, ClassId]]
    roots: dict[str, ClassId]
    tuples: int
    facts: dict[str, dict[tuple[Child, ...], frozenset[ClassId]]] = field(default_factory=dict, repr=False)
    _types: dict[ClassId, DataType] = field(default_factory=dict, repr=False)
    _domains: dict[ClassId, DataType | None] = field(default_factory=dict, repr=False)

    @property
    def class_count(self) -> int:
        """The number of classes of terms and functions."""
        return sum(1 for s in self.sorts.values() if s in ("Ex", "Fn"))

    @property
    def node_count(self) -> int:
        """The number of nodes of terms and functions."""
        return sum(len(self.nodes[c]) for c, s in self.sorts.items() if s in ("Ex", "Fn"))

    # --- reading types, patterns and names ---

    def type_at(self, class_id: ClassId) -> DataType:
        """The type that a class of sort Ty denotes."""
        known = self._types.get(class_id)
        if known is None:
            known = self._types[class_id] = self._read_type(class_id, set())
        return known

    def _read_type(self, class_id: ClassId, above: set[ClassId]) -> DataType:
        if class_id in self._types:
            return self._types[class_id]
        inside = above | {class_id}
        for n in sorted(self.nodes[class_id], key=lambda n: n.op == "Ty_lanes"):
            if any(c in inside for c in n.classes):
                continue
            if n.op == "Ty_scalar":
                return Scalar(str(n.children[0]))
            if n.op == "Ty_vec":
                return Vector(Scalar(str(n.children[0])), int(n.children[1]))
            if n.op == "Ty_pair":
                return Pair(self._read_type(n.classes[0], inside), self._read_type(n.classes[1], inside))
            if n.op == "Ty_arr":
                return Array(nat(int(n.children[0])), self._read_type(n.classes[0], inside))
            return lanes(int(n.children[0]), self._read_type(n.classes[0], inside))
        raise TypeProblem(f"the e-graph holds no finite type for class {class_id}")

    def type_of(self, class_id: ClassId) -> DataType | None:
        """The type of a class of terms, or None if the analysis has not reached it."""
        known = self.analyses["ty"].get(class_id)
        return None if known is None else self.type_at(known)

    def domain(self, class_id: ClassId) -> DataType | None:
        """The argument type of a class of functions, which one of its nodes states: no table has it; or None."""
        if class_id not in self._domains:
            found = (self.own_domain(n) for n in self.nodes[class_id])
            self._domains[class_id] = next((t for t in found if t is not None), None)
        return self._domains[class_id]

    def codomain(self, class_id: ClassId) -> DataType | None:
        """The result type of a class of functions, or None."""
        known = self.analyses["cod"].get(class_id)
        return None if known is None else self.type_at(known)

    def own_domain(self, node: ENode) -> DataType | None:
        """The argument type that a function states itself, or None."""
        if node.op == "Fn_lam":
            known = self.analyses["pty"].get(node.classes[0])
            return None if known is None else self.type_at(known)
        if node.op in ("Fn_map", "Fn_vec"):
            number, element = int(node.children[0]), self.domain(node.classes[0])
            make = lanes if node.op == "Fn_vec" else lambda n, t: Array(nat(n), t)
            return None if element is None else make(number, element)
        return self.type_at(node.classes[-1]) if node.op in CONSTANTS else None

    def order(self, class_id: ClassId) -> KnownOrder:
        """The order that a class of sort Order denotes, in its shortest form."""
        found = self._read_order(class_id, frozenset())
        assert found is not None
        return found[1]

    def _read_order(self, class_id: ClassId, above: frozenset[ClassId]) -> tuple[int, KnownOrder] | None:
        inside, forms = above | {class_id}, []
        for n in self.nodes[class_id]:
            parts = [None if c in inside else self._read_order(c, inside) for c in n.classes]
            read = [p for p in parts if p is not None]
            if len(read) == len(parts):
                forms.append(
                    (1 + sum(size for size, _ in read), KnownOrder(n.op, tuple(p for _, p in read) or n.children))
                )
        return min(forms, key=lambda form: form[0], default=None)

    def variable(self, class_id: ClassId) -> ir.Var:
        """The binder that a class of sort V denotes; its name is unique to the class."""
        first = self.nodes[class_id][0]
        tag = str(first.children[0]).lstrip("$")
        return ir.Var(f"{tag}_{class_id}", self.type_at(self.analyses["vty"][class_id]))

    def pattern(self, class_id: ClassId) -> ir.Binder:
        """The binding pattern that a class of sort P denotes."""
        n = self.nodes[class_id][0]
        if n.op == "P_var":
            return self.variable(n.classes[0])
        return ir.PairBinder(self.pattern(n.classes[0]), self.pattern(n.classes[1]))


class _Known(dict[Any, T]):
    """What egglog's values stand for, each asked for once."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read

    def __missing__(self, value: Any) -> T:
        found = self[value] = self._read(value)
        return found


def freeze(graph: egglog.EGraph, roots: Container[str], *, facts: Container[str] = ()) -> FrozenEGraph:
    """Read an egglog e-graph into plain tables.

    Parameters
    ----------
    graph
        The e-graph.
    roots
        Names of terms made with ``graph.let``.
    facts
        Which of what conditions of rules ask for (`DROPPED`) to read also.
    """
    raw = graph._egraph  # the compiled e-graph: the public freeze is a thousand times slower
    state = raw.freeze()
    sorts: dict[ClassId, str] = {}
    nodes: dict[ClassId, list[ENode]] = {}
    analyses: dict[str, dict[ClassId, ClassId]] = {name: {} for name in ANALYSES}
    found_roots: dict[str, ClassId] = {}
    known_facts: dict[str, dict[tuple[Child, ...], frozenset[ClassId]]] = {}
    tuples = 0

    primitives: dict[str, _Known[Child]] = {"i64": _Known(raw.value_to_i64), "String": _Known(raw.value_to_string)}
    classes_of: dict[str, _Known[ClassId]] = {}

    def classes_in(sort: str) -> _Known[ClassId]:
        """The classes of a sort, by egglog's values."""
        if sort not in classes_of:
            name = sort.rpartition(".")[2]

            def number(_: Any) -> ClassId:
                new = len(sorts)
                sorts[new], nodes[new] = name, []
                return new

            classes_of[sort] = _Known(number)
        return classes_of[sort]

    def children_in(sort: str) -> Mapping[Any, Child]:
        return primitives[sort] if sort in primitives else classes_in(sort)

    for name, table in state.functions.items():
        if table.is_let_binding:
            bare = name.lstrip("$")
            if bare in roots:
                for row in table.rows:
                    found_roots[bare] = classes_in(table.output_sort)[row.output]
            continue
        if not name.startswith(PREFIX):
            continue
        op = name[len(PREFIX) :]
        if op in LANGUAGE:
            continue
        rows = table.rows
        tuples += len(rows)
        if op in DROPPED:
            if op in facts:
                element = table.output_sort.partition("[")[2].rstrip("]")  # of a set of names; a relation has none
                known_facts[op] = {
                    tuple(children_in(s)[v] for s, v in zip(table.input_sorts, row.inputs, strict=True)): frozenset(
                        classes_in(element)[name] for name in (raw.value_to_set(row.output) if element else ())
                    )
                    for row in rows
                }
            continue
        if op in ANALYSES:
            into, keys, values = analyses[op], classes_in(table.input_sorts[0]), classes_in(table.output_sort)
            for row in rows:
                into[keys[row.inputs[0]]] = values[row.output]
            continue
        columns = [children_in(s) for s in table.input_sorts]
        classes_at = [at for at, s in enumerate(table.input_sorts) if s not in primitives]
        owners = classes_in(table.output_sort)
        for row in rows:
            if row.subsumed:
                continue
            children = tuple([known[v] for known, v in zip(columns, row.inputs, strict=True)])
            classes = tuple([children[at] for at in classes_at])
            nodes[owners[row.output]].append(ENode(op, children, classes))  # pyright: ignore
    return FrozenEGraph(nodes, sorts, analyses, found_roots, tuples, known_facts)


def term_classes(graph: FrozenEGraph, n: ENode) -> Iterator[ClassId]:
    """The children of a node that are terms, functions or operators: those a choice must decide."""
    for c in n.classes:
        if graph.sorts[c] in ("Ex", "Fn", "Op"):
            yield c
