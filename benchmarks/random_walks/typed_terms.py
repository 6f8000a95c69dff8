"""Terms with the nodes and names of the e-graph, typed, equal ones being one object.

What is known of a term (its type, its free names, what rules find in it) is computed once, and two terms share all
equal parts. `Terms.frozen` shows many terms as an e-graph, so that whatever reads e-graphs reads them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union

from lift_egraph.egraph.frozen import ANALYSES, Choice, ClassId, ENode, FrozenEGraph, from_egg, term_classes
from lift_egraph.egraph.saturate import ROOT
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.scalar import OPERATIONS

NAMING = ("Ty", "V", "P")  # sorts that hold no places for rules

Value = Union["Term", int, str]


class Term:
    """A node of the e-graph's language with its parts.

    Attributes
    ----------
    type
        Of a term, name or pattern; domain and codomain of a function.
    free
        The names free in a term, function or operator; those bound by a pattern.
    size
        The number of terms, functions and operators in it.
    matches, counts, normal
        What `random_walks.term_rewriting` found: where rules match in it, and what it is when simplified.
    """

    __slots__ = ("children", "counts", "free", "matches", "normal", "op", "parts", "size", "sort", "type")

    def __init__(self, op: str, children: tuple[Value, ...]) -> None:
        self.op, self.children = op, children
        head = op.partition("_")[0]
        self.sort = head if head in ("Ty", "V", "P", "Op", "Fn") else "Ex"
        self.parts = tuple(c for c in children if isinstance(c, Term) and c.sort not in NAMING)
        self.size = 1 + sum(p.size for p in self.parts)
        self.matches: list[tuple[Any, ...]] | None = None
        self.counts: dict[int, int] | None = None
        self.normal: Term | None = None
        self.type: Any = None
        self.free: frozenset[Term] = frozenset()

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.children))})"


class Terms:
    """All terms of one search, each once."""

    def __init__(self) -> None:
        self._terms: dict[tuple[str, tuple[Value, ...]], Term] = {}

    def make(self, op: str, *children: Value) -> Term:
        """The term of an operator and its parts.

        Raises
        ------
        TypeProblem
            If the parts do not fit.
        """
        if op == "Ty_lanes":
            return self.lanes(*children)  # pyright: ignore[reportArgumentType]
        key = (op, children)
        known = self._terms.get(key)
        if known is None:
            known = Term(op, children)
            try:
                known.type = _TYPES[op](self, *children) if op in _TYPES else None
            except (AttributeError, IndexError, TypeError, ZeroDivisionError):
                raise TypeProblem(f"the parts of {op} do not fit") from None
            known.free = _free(known)
            self._terms[key] = known
        return known

    def decode(self, term: Term) -> ir.Expr:
        """The meaning of a term."""
        return read_member(self.frozen((term,)), 0)

    def frozen(self, terms: Iterable[Term]) -> FrozenEGraph:
        """Terms that are equal, as an e-graph in which they are the members of the class ``root``."""
        ids: dict[Term, int] = {}
        nodes: dict[int, list[ENode]] = {0: []}
        sorts = {0: "Ex"}
        analyses: dict[str, dict[int, int]] = {name: {} for name in ANALYSES}

        def written(t: Term) -> ENode:
            children = tuple(class_of(c) if isinstance(c, Term) else c for c in t.children)
            classes = tuple(c for c, given in zip(children, t.children, strict=True) if isinstance(given, Term))
            return ENode(t.op, children, classes)  # pyright: ignore[reportArgumentType]

        def class_of(t: Term) -> int:
            known = ids.get(t)
            if known is None:
                node = written(t)
                known = ids[t] = len(ids) + 1
                nodes[known], sorts[known] = [node], t.sort
                if t.sort == "Fn":
                    analyses["dom"][known], analyses["cod"][known] = map(class_of, t.type)
                elif t.type is not None:
                    analyses[{"Ex": "ty", "V": "vty", "P": "pty"}[t.sort]][known] = class_of(t.type)
            return known

        for term in terms:
            nodes[0].append(written(term))
            analyses["ty"][0] = class_of(term.type)
        return FrozenEGraph(nodes, sorts, analyses, {ROOT: 0}, sum(map(len, nodes.values())))

    def forget(self) -> None:
        """Drop all terms, to free their memory; none of them may be used any more."""
        self._terms.clear()

    # --- types ---

    def array(self, size: int, element: Any) -> Term:
        """The type of an array."""
        return self.make("Ty_arr", size, element)

    def pair(self, first: Any, second: Any) -> Term:
        """The type of a pair."""
        return self.make("Ty_pair", first, second)

    def lanes(self, width: int, t: Term) -> Term:
        """The type with vectors of a width at its leaves."""
        match t.op:
            case "Ty_scalar":
                return self.make("Ty_vec", t.children[0], width)
            case "Ty_pair":
                return self.make("Ty_pair", *(self.lanes(width, c) for c in t.children))  # pyright: ignore
            case "Ty_arr":
                return self.make("Ty_arr", t.children[0], self.lanes(width, t.children[1]))  # pyright: ignore
        raise TypeProblem("vectors do not nest")

    def without_lanes(self, t: Any) -> tuple[int, Term] | None:
        """The width of the vectors at the leaves of a type, and the type of one lane; None if there are none."""
        match t.op:
            case "Ty_vec":
                return t.children[1], self.make("Ty_scalar", t.children[0])
            case "Ty_arr":
                inner = self.without_lanes(t.children[1])
                return None if inner is None else (inner[0], self.array(t.children[0], inner[1]))
            case "Ty_pair":
                first, second = map(self.without_lanes, t.children)
                if first is not None and second is not None and first[0] == second[0]:
                    return first[0], self.pair(first[1], second[1])
        return None

    def as_scalar(self, x: Term) -> Term:
        """The type of an array of vectors as an array of their lanes."""
        n, element = _array(x.type)
        bare = self.without_lanes(element)
        if bare is None:
            raise TypeProblem("no vectors")
        return self.array(n * bare[0], bare[1])


def read_member(graph: FrozenEGraph, number: int) -> ir.Expr:
    """One of the terms of an e-graph that `Terms.frozen` made, by its number."""

    def choice(owner: ClassId, node: ENode) -> Choice:
        parts = (choice(c, graph.nodes[c][0]) for c in term_classes(graph, node))
        return Choice(owner, node, tuple(parts))

    root = graph.roots[ROOT]
    return from_egg(graph, choice(root, graph.nodes[root][number]))


def _free(t: Term) -> frozenset[Term]:
    match t.op:
        case "Ex___init__" | "P_var":
            return frozenset(t.children)  # pyright: ignore[reportReturnType]
        case "Fn_lam":
            return t.children[1].free - t.children[0].free  # pyright: ignore
        case "P_pair":
            return t.children[0].free | t.children[1].free  # pyright: ignore
    return frozenset[Term]().union(*(p.free for p in t.parts))


def _array(t: Any) -> tuple[int, Any]:
    """The length and the type of the elements of an array."""
    if t.op != "Ty_arr":
        raise TypeProblem(f"{t} is no array")
    return t.children


def _split(r: Terms, n: int, t: Any) -> Term:
    length, element = _array(t)
    if length % n:
        raise TypeProblem(f"{n} does not divide {length}")
    return r.array(length // n, r.array(n, element))


def _join(r: Terms, t: Any) -> Term:
    m, row = _array(t)
    n, element = _array(row)
    return r.array(m * n, element)


def _transposed(r: Terms, t: Any) -> Term:
    m, row = _array(t)
    n, element = _array(row)
    return r.array(n, r.array(m, element))


def _zipped(r: Terms, a: Any, b: Any) -> Term:
    (n, first), (m, second) = _array(a), _array(b)
    if n != m:
        raise TypeProblem(f"zip of {n} and {m} elements")
    return r.array(n, r.pair(first, second))


def _mapped(r: Terms, f: Term, x: Term) -> Term:
    n, element = _array(x.type)
    if f.type[0] is not element:
        raise TypeProblem(f"a function on {f.type[0]} is mapped over {element}")
    return r.array(n, f.type[1])


def _applied(r: Terms, f: Term, x: Term) -> Any:
    if f.type[0] is not x.type:
        raise TypeProblem(f"a function on {f.type[0]} is applied to {x.type}")
    return f.type[1]


def _called(r: Terms, op: str, *arguments: Term) -> Any:
    known, types = OPERATIONS[op], [a.type for a in arguments]
    scalar = r.make("Ty_scalar", known.result.name if known.result else types[-1].children[0])
    widths = [] if known.kind == "lanes" else [t.children[1] for t in types if t.op == "Ty_vec"]
    return r.lanes(widths[0], scalar) if widths else scalar


def _windows(r: Terms, size: int, step: int, x: Term) -> Term:
    n, element = _array(x.type)
    return r.array((n - size) // step + 1, r.array(size, element))


def _padded(r: Terms, left: int, right: int, x: Term) -> Term:
    n, element = _array(x.type)
    return r.array(left + n + right, element)


def _vectors(r: Terms, w: int, x: Term) -> Term:
    n, element = _array(x.type)
    if n % w:
        raise TypeProblem(f"{w} does not divide {n}")
    return r.array(n // w, r.lanes(w, element))


_TYPES: dict[str, Callable[..., Any]] = {
    "V___init__": lambda r, name, t: t,
    "V_of": lambda r, tag, p, n: r.array(n, p.type),
    "P_var": lambda r, v: v.type,
    "P_pair": lambda r, a, b: r.pair(a.type, b.type),
    "Fn_lam": lambda r, p, b: (p.type, b.type),
    "Fn_vec": lambda r, n, f: (r.lanes(n, f.type[0]), r.lanes(n, f.type[1])),
    "Fn_join": lambda r, t: (t, _join(r, t)),
    "Fn_transpose": lambda r, t: (t, _transposed(r, t)),
    "Fn_zip": lambda r, t: (t, _zipped(r, *t.children)),
    "Fn_split": lambda r, n, t: (t, _split(r, n, t)),
    "Fn_map": lambda r, n, f: (r.array(n, f.type[0]), r.array(n, f.type[1])),
    "Fn_reduce": lambda r, op, z, t: (t, z.type),
    "Ex___init__": lambda r, v: v.type,
    "Ex_input": lambda r, name, t: t,
    "Ex_literal": lambda r, text, t: t,
    "call1": _called,
    "call2": _called,
    "call3": _called,
    "make_pair": lambda r, a, b: r.pair(a.type, b.type),
    "component": lambda r, i, a: a.type.children[i],
    "app": _applied,
    "combine": lambda r, op, a, b: a.type,
    "map_": _mapped,
    "map_level": lambda r, kind, d, f, x: _mapped(r, f, x),
    "reduce_": lambda r, op, z, x: z.type,
    "reduce_seq": lambda r, f, z, x: z.type,
    "zip_": lambda r, a, b: _zipped(r, a.type, b.type),
    "split": lambda r, n, x: _split(r, n, x.type),
    "join": lambda r, x: _join(r, x.type),
    "transpose": lambda r, x: _transposed(r, x.type),
    "gather": lambda r, indices, x: x.type,
    "scatter": lambda r, indices, x: x.type,
    "slide": _windows,
    "pad": lambda r, left, right, boundary, x: _padded(r, left, right, x),
    "pad_constant": lambda r, left, right, value, x: _padded(r, left, right, x),
    "iterate": lambda r, times, f, x: x.type,
    "iterate_text": lambda r, times, body, t, x: t,
    "at": lambda r, index, x: _array(x.type)[1],
    "generate": lambda r, n, f: r.array(n, f.type[1]),
    "fill": lambda r, n, z: r.array(n, z.type),
    "lookup": lambda r, indices, x: r.array(_array(indices.type)[0], _array(x.type)[1]),
    "to_memory": lambda r, space, x: x.type,
    "as_vector": _vectors,
    "as_scalar": Terms.as_scalar,
}
