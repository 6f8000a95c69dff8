"""A frozen e-graph that grows, for rules on single terms: every class is one term.

Nothing is merged in it, so that equal terms are one class, and what is known of a term (its type, its free names,
where rules match in it) is computed once. Types are those of `lift_egraph.language.check`. A function that only applies
a pattern, ``λv. join v``, has the node of ``join`` beside its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lift_egraph.derivation.fits import RuleMatcher, Values
from lift_egraph.egraph import frozen, read_back
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import ANALYSES, ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.members import TERMS
from lift_egraph.egraph.pattern_nodes import concrete_size
from lift_egraph.egraph.read_back import Choice
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import CLASSES, Form, Node, forms, read_term
from lift_egraph.egraph.scratch import ROOT
from lift_egraph.errors import LiftError, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import codomain, domain, type_of
from lift_egraph.language.types import Array, DataType, Scalar, Vector, lanes, leaves, without_lanes

NAMES = {"Ex": "fv", "Fn": "fvf", "Op": "fvo", "P": "bvs"}  # the analysis of the names in a class, by sort
TYPES = {"Ex": "ty", "V": "vty", "P": "pty"}


class Terms(RuleMatcher):
    """The terms of one search.

    Parameters
    ----------
    facts
        What conditions of rules ask for: relations of egglog.
    definitions
        Rules that say which functions are patterns.
    """

    def __init__(self, facts: Iterable[Any] = (), definitions: Iterable[Rule] = ()) -> None:
        names: dict[str, Any] = {name: {} for name in NAMES.values()}
        super().__init__(FrozenEGraph({}, {}, {name: {} for name in ANALYSES}, {}, 0, names))
        self.sizes: dict[ClassId, int] = {}  # how many terms, functions and operators a term has
        self._fresh = itertools.count()
        self._domains: dict[ClassId, ClassId] = {}  # the types of the arguments of functions
        self._signatures: dict[tuple[Any, ...], tuple[ClassId, ...]] = {}
        self._definitions = [form for rule in definitions for form in forms(rule)]
        for fact in facts:
            relation = read_term(fact)
            assert isinstance(relation, Node)
            self._know(relation.op, *(self.value(part, {}) for part in relation.parts))

    def encode(self, term: ir.Expr) -> ClassId:
        """A term of concrete sizes."""
        return self.value(read_term(to_egg(term)), {})

    def decode(self, term: ClassId) -> ir.Expr:
        """The meaning of a term."""
        return read_back.from_egg(self.graph, first_member(self.graph, term))

    def parts(self, term: ClassId) -> tuple[ClassId, ...]:
        """The terms, functions and operators right below a term."""
        return tuple(frozen.term_classes(self.graph, self.graph.nodes[term][0]))

    def free(self, term: ClassId) -> frozenset[ClassId]:
        """The names that are free in a term, function or operator; those that a pattern binds."""
        return self.graph.facts[NAMES[self.graph.sorts[term]]][(term,)]

    def solutions(self, form: Form, term: ClassId) -> Iterator[Values]:
        """The values with which a rewrite matches a term."""
        for fit in self.fits(form, term, failing=False):
            assert not fit.undecided, f"{fit.undecided} cannot be judged on single terms"
            yield fit.values

    def showing(self, terms: Sequence[ClassId]) -> FrozenEGraph:
        """The e-graph with terms of one type as the members of one more class, ``root``."""
        graph, root = self.graph, next(self._fresh)
        types = graph.analyses["ty"]
        return replace(
            graph,
            nodes={**graph.nodes, root: [graph.nodes[t][0] for t in terms]},
            sorts={**graph.sorts, root: "Ex"},
            analyses={**graph.analyses, "ty": {**types, root: types[terms[0]]}},
            roots={ROOT: root},
        )

    # --- making terms ---

    def held(self, pattern: Node, parts: tuple[Any, ...]) -> ClassId:
        """The term of an operator and its parts, made now if there is none."""
        classes = (p for p, q in zip(parts, pattern.parts, strict=True) if getattr(q, "sort", None) in CLASSES)
        return self._make(ENode(pattern.op, parts, tuple(classes)))

    def rebuilt(self, term: ClassId, parts: Sequence[ClassId]) -> ClassId:
        """The term with other parts."""
        node, rest = self.graph.nodes[term][0], iter(parts)
        classes = (next(rest) if self.graph.sorts[c] in TERMS else c for c in node.classes)
        return self._put(node.op, _numbers(node), *classes)

    def _put(self, op: str, numbers: tuple[Any, ...], *classes: ClassId) -> ClassId:
        return self._make(ENode(op, (*numbers, *classes), classes))

    def _make(self, node: ENode) -> ClassId:
        """The class of a node.

        Raises
        ------
        LiftError
            If its parts do not fit.
        """
        key = node.op, node.children
        known = self._owners.get(key)
        if known is None and node.op == "Ty_lanes":
            return self._type(lanes(int(node.children[0]), self.graph.type_at(node.classes[0])))
        if known is None:
            graph, known, head = self.graph, next(self._fresh), node.op.partition("_")[0]
            graph.nodes[known], graph.sorts[known] = [node], head if head in CLASSES else "Ex"
            try:
                self._learn_type(known) if head == "Ty" else self._learn(known, node)
            except LiftError:
                for table in (graph.nodes, graph.sorts, self._domains, *graph.analyses.values()):
                    table.pop(known, None)
                raise
            self._owners[key] = known
        return known

    def _know(self, fact: str, *row: Any) -> None:
        self.graph.facts.setdefault(fact, {})[row] = frozenset()

    def _learn(self, made: ClassId, node: ENode) -> None:
        """What is known of a name, a pattern, a term, a function or an operator."""
        graph, sort, parts = self.graph, self.graph.sorts[made], self.parts(made)
        if sort == "Fn":
            self._domains[made], graph.analyses["cod"][made] = self._function_types(made, node)
        elif sort not in ("Op", "Order"):
            graph.analyses[TYPES[sort]][made] = self._type_of(made, node)
        if sort in NAMES:
            graph.facts[NAMES[sort]][(made,)] = self._names(node, parts)
        self.sizes[made] = 1 + sum(self.sizes[p] for p in parts)
        if node.op == "Op_lift":
            for law in ("associative", "commutative"):
                if parts in graph.facts[law]:
                    self._know(law, made)
        if node.op == "fill":
            for op in [op for op, start in graph.facts["neutral"] if start == parts[0]]:
                self._know("neutral", self._put("Op_lift", (), int(op)), made)
        for form in self._definitions if sort == "Fn" else ():
            graph.nodes[made] += (graph.nodes[self.value(form.right, v)][0] for v in self.solutions(form, made))

    def _names(self, node: ENode, parts: tuple[ClassId, ...]) -> frozenset[ClassId]:
        if node.op in ("Ex___init__", "P_var"):
            return frozenset(node.classes)
        if node.op == "Fn_lam":
            return self.free(node.classes[1]) - self.free(node.classes[0])
        return frozenset[ClassId]().union(*map(self.free, node.classes if node.op == "P_pair" else parts))

    # --- types ---

    def _type(self, t: DataType) -> ClassId:
        """The class of a type."""
        if isinstance(t, Scalar):
            return self._put("Ty_scalar", (t.name,))
        if isinstance(t, Vector):
            return self._put("Ty_vec", (t.scalar.name, t.width))
        if isinstance(t, Array):
            return self._put("Ty_arr", (concrete_size(t.size),), self._type(t.element))
        return self._put("Ty_pair", (), self._type(t.first), self._type(t.second))

    def _learn_type(self, made: ClassId) -> None:
        """Whether a type is one of scalars, or its other spelling if it is one of vectors."""
        t = self.graph.type_at(made)
        if all(isinstance(leaf, Scalar) for _, _, leaf in leaves(t)):
            self._know("scalar_like", made)
        with suppress(TypeProblem):  # it has scalars, or vectors of several widths
            width, bare = without_lanes(t)
            lane = self._type(bare)
            self._owners["Ty_lanes", (width, lane)] = made
            self.graph.nodes[made].append(ENode("Ty_lanes", (width, lane), (lane,)))

    def _type_of(self, made: ClassId, node: ENode) -> ClassId:
        known = self.graph.analyses
        match node.op:
            case "Ex_input" | "Ex_literal" | "V___init__":
                return node.classes[0]
            case "Ex___init__" | "P_var":
                return known["vty"][node.classes[0]]
            case "P_pair":
                return self._put("Ty_pair", (), *(known["pty"][c] for c in node.classes))
            case "V_of":
                return self._put("Ty_arr", node.children[2:], known["pty"][node.classes[0]])
            case "combine":
                return known["ty"][node.classes[1]]
        return self._signature(made, node)[0]

    def _function_types(self, made: ClassId, node: ENode) -> tuple[ClassId, ...]:
        known = self.graph.analyses
        if node.op == "Fn_lam":
            return known["pty"][node.classes[0]], known["ty"][node.classes[1]]
        if node.op == "Fn_map":
            self._domains[made] = self._put("Ty_arr", _numbers(node), self._domains[node.classes[0]])
        elif node.op != "Fn_vec":
            self._domains[made] = node.classes[-1]
        return self._signature(made, node)

    def _signature(self, made: ClassId, node: ENode) -> tuple[ClassId, ...]:
        """The type of a term, or those of the argument and the result of a function.

        They depend on the types of its parts alone, so that a small term with such parts has the same.
        """
        types, codomains = (self.graph.analyses[name] for name in ("ty", "cod"))
        known = (types.get(c, (self._domains.get(c), codomains.get(c, c))) for c in node.classes)
        key = node.op, _numbers(node), *known
        if key not in self._signatures:
            parts = (first_member(self.graph, self._stand_in(p)) for p in self.parts(made))
            small = Choice(made, node, tuple(parts))
            if self.graph.sorts[made] == "Fn":
                function = read_back.open_function(self.graph, small)
                self._signatures[key] = self._type(domain(function)), self._type(codomain(function))
            else:
                self._signatures[key] = (self._type(type_of(read_back.open_term(self.graph, small))),)
        return self._signatures[key]

    def _stand_in(self, part: ClassId) -> ClassId:
        """A variable of the type of a term, or a function between variables; a literal and an operator as it is."""
        known, node = self.graph.analyses, self.graph.nodes[part][0]
        if node.op == "Ex_literal" or self.graph.sorts[part] == "Op":
            return part
        if self.graph.sorts[part] == "Ex":
            return self._put("Ex___init__", (), self._variable(known["ty"][part]))
        pattern = self._put("P_var", (), self._variable(self._domains[part]))
        return self._put("Fn_lam", (), pattern, self._put("Ex___init__", (), self._variable(known["cod"][part])))

    def _variable(self, t: ClassId) -> ClassId:
        return self._put("V___init__", ("$typed",), t)


def first_member(graph: FrozenEGraph, term: ClassId) -> Choice:
    """A term as a choice of nodes."""
    node = graph.nodes[term][0]
    return Choice(term, node, tuple(first_member(graph, c) for c in frozen.term_classes(graph, node)))


def _numbers(node: ENode) -> tuple[Any, ...]:
    """The numbers and texts of a node, which come before its classes in every operator but ``V_of``."""
    return node.children[: len(node.children) - len(node.classes)]
