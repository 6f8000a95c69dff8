"""Rules applied to single terms, without an e-graph: matches at every place of a term, and the term after one.

Equal terms are one object (`random_walks.typed_terms`), so the matches in a term are found once, and a step costs no
more than the nodes above the place where it happens. A rule means what it means in the e-graph, read from it by
`lift_egraph.egraph.rule_forms`; a function that only applies a pattern, ``λv. join v``, matches as ``join`` too.
Binders are not marked for staging in memory, so the rules that ask for it match nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from random_walks.typed_terms import NAMING, Term, Terms

from lift_egraph.egraph.encoding import literal_text, to_egg
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Constant, Equation, Form, Hole, Node, Pattern, forms, read_term
from lift_egraph.egraph.saturate import Phase
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar
from lift_egraph.soundness.unification import ARITHMETIC, RELATIONS

MOST_NODES = 600  # of a simplified term

Match = tuple[int, Form, dict[str, Any]]  # the number of the rule, which of its rewrites, and the values of variables


class Unbound(Exception):
    """A pattern has a variable without a value."""


class Rewriting(Terms):
    """Terms, and the rules of a phase on them.

    Parameters
    ----------
    phase
        Its rules, tiles and vector widths; its simplification is applied after each step, as often as it can be.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program, print_term
    >>> from lift_egraph.rules.fusion import map_fusion
    >>> rewriting = Rewriting(Phase("fuse", (map_fusion,), ()))
    >>> term = rewriting.encode(parse_program("program p(xs: [f32]8) = map(abs, map(sqrt, xs))").body)
    >>> rewriting.counts(term)
    {0: 1}
    >>> print(print_term(rewriting.decode(rewriting.step(term, 0, 0))))
    map(fun x => let x1 = sqrt(x) in abs(x1), xs)
    """

    def __init__(self, phase: Phase) -> None:
        super().__init__()
        self.phase = phase
        self._rules = _by_operator(phase.rules)
        self._simplification = _by_operator(r for r in phase.simplification if r.name != "eta")
        self._tiles = [(n, c) for n, chunks in phase.tiles.items() for c in chunks]

    def encode(self, term: ir.Expr) -> Term:
        """A term of concrete sizes."""
        return self.normal(self.value(read_term(to_egg(term)), {}))

    # --- steps ---

    def counts(self, term: Term) -> dict[int, int]:
        """In how many places each rule of the phase matches, by the number of the rule."""
        if term.counts is None:
            found: dict[int, int] = {}
            for number, _, _ in self._matches(term):
                found[number] = found.get(number, 0) + 1
            for part in term.parts:
                for number, count in self.counts(part).items():
                    found[number] = found.get(number, 0) + count
            term.counts = found
        return term.counts

    def step(self, term: Term, rule: int, place: int) -> Term:
        """The term after one rule at one of the places where it matches, counted from the outermost, simplified.

        Raises
        ------
        TypeProblem
            If the result is ill-typed.
        """
        return self.normal(self._step(term, rule, place))

    def _step(self, term: Term, rule: int, place: int) -> Term:
        for number, form, values in self._matches(term):
            if number == rule:
                if place == 0:
                    return self.value(form.right, values)
                place -= 1
        children = list(term.children)
        for i, child in enumerate(children):
            if isinstance(child, Term) and child.sort not in NAMING:
                here = self.counts(child).get(rule, 0)
                if place < here:
                    children[i] = self._step(child, rule, place)
                    return self.make(term.op, *children)
                place -= here
        raise IndexError(f"rule {rule} has no such place")

    def normal(self, term: Term) -> Term:
        """The term simplified: from the inside to the outside, as often as a rule matches."""
        if term.sort in NAMING:
            return term
        if term.normal is None:
            inside = [self.normal(c) if isinstance(c, Term) else c for c in term.children]
            found = self.make(term.op, *inside)
            if found.normal is None:
                found.normal = self._simplified(found)
            term.normal = found.normal
        return term.normal

    def _simplified(self, term: Term) -> Term:
        if term.size > MOST_NODES:
            return term
        for _, form in self._simplification.get(term.op, ()):
            for values in self._solutions(form, term):
                changed = self.value(form.right, values)
                return term if changed is term else self.normal(changed)
        return term

    def _matches(self, term: Term) -> list[Match]:
        if term.matches is None:
            term.matches = [
                (number, form, values)
                for op in (term.op, *self._eta(term))
                for number, form in self._rules.get(op, ())
                for values in self._solutions(form, term)
            ]
        return term.matches

    def _solutions(self, form: Form, term: Term) -> Iterator[dict[str, Any]]:
        values: dict[str, Any] = {}
        if self._match(form.left, term, values):
            yield from self._conditions(form.conditions, values)

    # --- matching ---

    def _eta(self, f: Term) -> dict[str, Term]:
        """A function that only applies a pattern to its argument, as that pattern, by its operator."""
        if f.op != "Fn_lam" or f.children[0].op != "P_var":  # pyright: ignore[reportAttributeAccessIssue]
            return {}
        p, body = f.children
        assert isinstance(p, Term)
        assert isinstance(body, Term)
        v, t = p.children[0], p.type
        last = body.children[-1] if body.children else None
        if not isinstance(last, Term) or last.op != "Ex___init__" or last.children[0] is not v:
            return {}
        if any(v in part.free for part in body.parts[:-1]):
            return {}
        match body.op:
            case "join" | "transpose":
                return {f"Fn_{body.op}": self.make(f"Fn_{body.op}", t)}
            case "split":
                return {"Fn_split": self.make("Fn_split", body.children[0], t)}
            case "map_":
                return {"Fn_map": self.make("Fn_map", t.children[0], body.children[0])}
            case "reduce_":
                return {"Fn_reduce": self.make("Fn_reduce", body.children[0], body.children[1], t)}
        return {}

    def _match(self, p: Pattern, value: Any, values: dict[str, Any]) -> bool:
        if isinstance(p, Hole):
            known = values.setdefault(p.name, value)
            return known is value or known == value
        if isinstance(p, Constant):
            return p.value == value
        if p.op in ARITHMETIC:
            try:
                return self.value(p, values) == value
            except Unbound:
                return False
        if not isinstance(value, Term):
            return False
        if value.op != p.op:
            if p.op == "Ty_lanes":
                bare = self.without_lanes(value)
                return bare is not None and all(map(self._match, p.parts, bare, (values, values)))
            seen = self._eta(value).get(p.op)
            if seen is None:
                return False
            value = seen
        return all(self._match(part, child, values) for part, child in zip(p.parts, value.children, strict=True))

    def _conditions(self, rest: Sequence[Equation | Node], values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Every way to satisfy conditions, each taken up as soon as its variables have values."""
        if not rest:
            yield values
            return
        for i, c in enumerate(rest):
            try:
                found = list(self._condition(c, values))
            except Unbound:
                continue
            for more in found:
                yield from self._conditions((*rest[:i], *rest[i + 1 :]), more)
            return
        raise TypeProblem(f"the conditions {', '.join(map(str, rest))} have variables without a value")

    def _condition(self, c: Equation | Node, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if isinstance(c, Equation):
            left, right = self._known(c.left, values), self._known(c.right, values)
            if left is None and right is None:
                raise Unbound
            if left is not None and right is not None:
                if left == right:
                    yield values
                return
            open_side, value = (c.left, right) if left is None else (c.right, left)
            if isinstance(open_side, Node) and open_side.op in ARITHMETIC:
                raise Unbound
            more = dict(values)
            if self._match(open_side, value, more):
                yield more
        elif c.op in ("tile", "lane_width"):
            facts = self._tiles if c.op == "tile" else [(w,) for w in self.phase.widths]
            for fact in facts:
                more = dict(values)
                if all(map(self._match, c.parts, fact, (more,) * len(fact))):
                    yield more
        elif c.op in _FACTS:
            if _FACTS[c.op](*(self.value(p, values) for p in c.parts)):
                yield values
        else:
            raise TypeProblem(f"the condition {c.op} has no meaning on single terms")

    def _known(self, p: Pattern, values: dict[str, Any]) -> Any:
        try:
            return self.value(p, values)
        except Unbound:
            return None

    def value(self, p: Pattern, values: dict[str, Any]) -> Any:
        """What a pattern stands for: a term, a number, a text, a set of names.

        Raises
        ------
        Unbound
            If a variable has no value.
        TypeProblem
            If the term is ill-typed.
        """
        if isinstance(p, Hole):
            if p.name not in values:
                raise Unbound(p.name)
            return values[p.name]
        if isinstance(p, Constant):
            return p.value
        parts = [self.value(part, values) for part in p.parts]
        if p.op in ARITHMETIC:
            return ARITHMETIC[p.op](*parts)
        if p.op in _READINGS:
            return _READINGS[p.op](*parts)
        return self.make(p.op, *parts)


def _by_operator(rules: Iterable[Rule]) -> dict[str, list[tuple[int, Form]]]:
    """The rewrites of rules, with the number of the rule, by the operator that they match."""
    found: dict[str, list[tuple[int, Form]]] = {}
    for number, rule in enumerate(rules):
        for form in forms(rule):
            assert isinstance(form.left, Node)
            found.setdefault(form.left.op, []).append((number, form))
    return found


def _laws(op: Term) -> Any:
    while op.op == "Op_lift":
        op = op.parts[0]
    return LAWS.get(str(op.children[0])) if op.op == "Op_scalar" else None


def _neutral(op: Term, z: Term) -> bool:
    while op.op == "Op_lift" and z.op == "fill":
        op, z = op.parts[0], z.parts[0]
    if op.op != "Op_scalar" or z.op != "Ex_literal":
        return False
    text, t = z.children
    laws = LAWS.get(str(op.children[0]))
    scalar = t.children[0]  # pyright: ignore[reportAttributeAccessIssue]
    if laws is None or scalar not in laws.neutral:
        return False
    return literal_text(ir.Literal(laws.neutral[scalar], Scalar(scalar))) == text  # pyright: ignore


def _is_scalar_like(t: Any) -> bool:
    match t.op:
        case "Ty_arr":
            return _is_scalar_like(t.children[1])
        case "Ty_pair":
            return all(map(_is_scalar_like, t.children))
    return t.op == "Ty_scalar"


_FACTS: dict[str, Callable[..., bool]] = {
    **RELATIONS,
    "Set_contains": lambda names, v: v in names,
    "Set_not_contains": lambda names, v: v not in names,
    "associative": lambda op: (laws := _laws(op)) is not None and laws.associative,
    "commutative": lambda op: (laws := _laws(op)) is not None and laws.commutative,
    "neutral": _neutral,
    "scalar_like": _is_scalar_like,
    "stage_local": lambda v: False,
    "stage_private": lambda v: False,
}

_READINGS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("ty", "vty", "pty"), lambda t: t.type),
    "dom": lambda f: f.type[0],
    "cod": lambda f: f.type[1],
    **dict.fromkeys(("fv", "fvf", "fvo", "bvs"), lambda t: t.free),
    "Set_empty": frozenset,
    "Set_insert": lambda names, v: names | {v},
    "Set_remove": lambda names, v: names - {v},
    "Set___sub__": lambda a, b: a - b,
    "Set___or__": lambda a, b: a | b,
    "Set___and__": lambda a, b: a & b,
}
