"""Operators for rules that ask what `lift_egraph.algebra` finds: folds that act like monoids, and operations in other
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.cascades import cascade_of, tabulated_parts
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.kept import kept_of
from lift_egraph.algebra.places import distinct_places
from lift_egraph.algebra.recalled import recalling_of
from lift_egraph.algebra.steady import steady_of
from lift_egraph.algebra.tabulated import Tabulated, tabulated_of
from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import function_to_egg, known_operator, operator_to_egg, to_egg
from lift_egraph.egraph.rule_forms import Equation, Hole, Node
from lift_egraph.language import ir
from lift_egraph.language.build import abs_, add, equal, map_, max_, min_, scan_exclusive, select, zip_
from lift_egraph.language.check import codomain, type_of
from lift_egraph.language.functions import to_function
from lift_egraph.language.nat import nat
from lift_egraph.language.types import BOOL, I32, Array, DataType, Pair, Scalar
from lift_egraph.soundness.pattern_values import Operator, Rejected, Term
from lift_egraph.soundness.random_terms import OWN_LAWS, Choose, laws_on
from lift_egraph.soundness.unification import Made, Typing

FOUND = (
    *("acts", "steady", "combines", "recalls", "cascades", "kept_within", "kept_along", "tabulates"),
    *("tabulates_first", "built_in"),
    *("distributes", "distinct"),
)
Conditions = Iterable[Equation | Node]


def found_laws(
    conditions: Conditions, typing: Typing, choose: Choose, real: Scalar, sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Values for the variables in the conditions of a rule that ask for laws that are found; types are made theirs."""
    values: dict[str, Any] = {}
    for c in conditions:
        if isinstance(c, Node) and c.op in FOUND:
            names = [p.name for p in c.parts if isinstance(p, Hole)]
            if len(names) < len(c.parts):
                raise Rejected(f"{c} asks for a certain operator")
            if c.op == "distinct":
                values[names[0]] = _distinct(typing.concrete(typing.values[names[0]], sizes, lambda _: I32), choose)
                continue
            known = values.get(names[0]) if c.op == "acts" else None  # it may be a part of what was drawn before
            drawn = _acting(known.meaning, names, typing) if known else DRAWN[c.op](names, typing, choose, real)
            values |= zip(names, drawn, strict=True)
    return values


def _action(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """A fold's operator and its action."""
    (argument, state), (element, _) = typing.values[names[0]], typing.values[names[1]]
    alike = typing.find(state) == typing.find(element)
    outside = choose([ir.Input("k", real), ir.Literal(2, real)])
    argument, make = choose([(t, f) for t, f in _folds(real, outside) if not alike or t == Pair(real, real)])
    function = to_function(make, argument, "fold")
    for t, known in ((state, argument.first), (element, argument.second)):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield from _acting(function, names, typing)


def _acting(function: ir.Function, names: list[str], typing: Typing) -> Iterator[Term | Operator]:
    """A fold's operator, and how it acts."""
    found = action_of(function)
    if not isinstance(found, Action):
        raise AssertionError(f"no action was found: {found}")
    t, made = typing.values[names[2]], Made("concrete", (codomain(found.matrix),))
    if typing.find(t) != made:
        typing.equate(t, made)
    yield _term(function)
    yield _term(found.matrix)
    yield Operator(found.operator, operator_to_egg(found.operator), None)
    yield Term(found.one, to_egg(found.one))
    yield _term(found.act)


def _folds(t: Scalar, k: ir.Expr) -> list[tuple[Pair, Callable[..., Any]]]:
    """Types of arguments and functions of them that act like monoids, with some other value in them."""
    two = Pair(t, t)
    made: list[tuple[Pair, Callable[..., Any]]] = [
        (two, lambda s, x: s * 2 + x * k),
        (two, lambda s, x: x * s - k),
        (two, lambda s, x: min_(max_(s, x), k)),
        (two, lambda s, x: select(x < k, x + s, x)),
        (Pair(two, t), lambda s, x: ir.MakePair(s[1], s[0] + s[1] * x + k)),
        (Pair(two, t), lambda s, x: ir.MakePair(s[0] + x, max_(s[1], x))),
        (Pair(t, two), lambda s, x: x[0] * s + x[1]),
    ]
    if t.is_float:
        made += [
            (Pair(two, t), lambda s, x: ir.MakePair(max_(s[0], s[1] + x), max_(s[1] + x, k))),
            (two, lambda s, x: max_(min_(max_(x, -1), 1) * s + k, -2)),
            (two, lambda s, x: min_(abs_(x), 1) * min_(max_(s + k, -2), 3)),
        ]
    return made


def _steadiness(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """A fold's operator that multiplies by one matrix, and what that is."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    k, two = choose([ir.Input("k", real), ir.Literal(3, real)]), Pair(real, real)
    made: list[tuple[Pair, Callable[..., Any]]] = [
        (two, lambda s, x: s * 2 + x * k),
        (two, lambda s, x: x - k * s),
        (Pair(two, real), lambda s, x: ir.MakePair(s[1] + x * k, s[0] + s[1] * k)),
        (Pair(real, two), lambda s, x: x[0] * x[1] + s * k),
    ]
    if real.is_integer:
        made.insert(0, (two, lambda s, x: select((s & 1) == 1, (s >> 1) ^ 57, s >> 1) ^ x * k))
    alike = typing.find(state) == typing.find(element)
    argument, make = choose([m for m in made if m[0] == two] if alike else made)
    function = to_function(make, argument, "fold")
    found = steady_of(function)
    if found is None:
        raise AssertionError("the fold is not found to be steady")
    power = typing.values[names[2]]
    for t, known in ((state, argument.first), (element, argument.second), (power, type_of(found.power))):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield _term(function)
    yield Term(found.zero, to_egg(found.zero))
    yield Term(found.power, to_egg(found.power))
    yield Operator(found.operator, operator_to_egg(found.operator), None)
    yield Term(found.one, to_egg(found.one))
    yield _term(found.onward)


def _combination(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """A fold's operator, what it makes of each element, and what that is combined by."""
    state, element = typing.values[names[0]][1], typing.values[names[1]][0]
    k = choose([ir.Input("k", real), ir.Literal(2, real)])
    made: list[tuple[Pair, Callable[..., Any]]] = [
        (Pair(real, real), lambda s, x: select(k - x < s, k - x, s)),
        (Pair(real, Pair(real, real)), lambda s, x: max_(x[0] * k, min_(s, max_(x[0] * k, x[1])))),
        (Pair(Pair(real, real), real), lambda s, x: select(s[0] < x * x, ir.MakePair(x * x, k + x), s)),
    ]
    argument, make = choose(made[:1] if typing.find(state) == typing.find(element) else made)
    function = to_function(make, argument, "fold")
    found = combining_of(function)
    if found is None:
        raise AssertionError("the operator is not found to combine its arguments")
    for t, known in ((state, argument.first), (element, argument.second)):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield _term(function)
    yield _term(found.element)
    yield Operator(found.operator, operator_to_egg(found.operator), None)


def _recollection(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """A fold's operator that remembers the element before, and what it is without that."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    k, two = choose([ir.Input("k", real), ir.Literal(2, real)]), Pair(real, real)
    made: list[tuple[Pair, Callable[..., Any]]] = [
        (Pair(two, two), lambda s, x: ir.MakePair(_of(s, 0) * _of(x, 0) + _of(s, 1) * k, _of(x, 1))),
        (Pair(two, real), lambda s, x: ir.MakePair(x - k, _of(s, 1) * 2 + _of(s, 0))),
        (Pair(two, real), lambda s, x: ir.MakePair(select(_of(s, 1) < x, _of(s, 0) + k, _of(s, 0) * x), x)),
    ]
    alike = typing.find(state) == typing.find(element)
    argument, make = choose(made[:1] if alike else made)
    function = to_function(make, argument, "fold")
    found = recalling_of(function)
    if found is None:
        raise AssertionError("the fold is not found to remember the element before")
    for t, known in ((state, argument.first), (element, argument.second), (typing.values[names[1]][1], real)):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield from map(_term, (function, found.step, found.first, found.whole))


def _cascade(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """A fold's operator of which some components do without the others, in two."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    k, two = choose([ir.Input("k", real), ir.Literal(2, real)]), Pair(real, real)
    made: list[tuple[Pair, Callable[..., Any]]] = [
        (Pair(two, two), lambda s, x: ir.MakePair(_of(s, 0) * k + _of(x, 1), _of(s, 1) * _of(x, 0) + _of(s, 0))),
        (Pair(two, real), lambda s, x: ir.MakePair(max_(_of(s, 0), _of(s, 1) - x), _of(s, 1) * k + x)),
        (Pair(two, real), lambda s, x: ir.MakePair(_of(s, 0) + x, select(x < _of(s, 0), _of(s, 1) * 2, k))),
    ]
    argument, make = choose(made[:1] if typing.find(state) == typing.find(element) else made)
    function = to_function(make, argument, "fold")
    found = cascade_of(function)
    if found is None:
        raise AssertionError("no component is found to do without the other")
    of_first, of_rest = (typing.values[name][1] for name in names[1:3])
    for t, known in ((state, argument.first), (element, argument.second), (of_first, real), (of_rest, real)):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield from map(_term, (function, found.step, found.rest, found.first, found.others, found.whole))


def _bounded(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term]:
    """A fold's operator that keeps numbers between bounds from a value on, and what it is by these."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    t = choose([I32, real]) if real.is_float else I32
    own = t if typing.find(state) == typing.find(element) else real
    of_whole: list[Callable[..., Any]] = [
        lambda s, x: (s * 31 + select(x < 2, 5, 7)) % 97,
        lambda s, x: select(x < 0, 0, min_(s + 1, 9)),
        lambda s, x: max_(s - select(x < 1, 1, 2), 0),
    ]
    of_floats: list[Callable[..., Any]] = [
        lambda s, x: max_(s * abs_(x), x),
        lambda s, x: min_(abs_(x) + s * 2, 9),
        lambda s, x: max_(s - abs_(x), 0),
    ]
    function = to_function(choose(of_floats if t.is_float else of_whole), Pair(t, own), "fold")
    z = choose([ir.Literal(n, t) for n in (0, 9)])
    found = kept_of(function, z)
    if found is None:
        raise AssertionError("the fold is not found to stay between bounds")
    for other, known in ((state, t), (element, own)):
        if typing.find(other) != Made("concrete", (known,)):
            typing.equate(other, Made("concrete", (known,)))
    yield from map(_term, (function, found))
    yield Term(z, to_egg(z))


def _bounded_along(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term]:
    """A fold's operator and what makes elements with which it keeps whole numbers between bounds, and that by these."""
    element, state = typing.values[names[1]][0], typing.find(typing.values[names[0]][0]).parts[0]
    made: list[Callable[..., Any]] = [lambda s, x: (s * 31 + x) % 97, lambda s, x: min_(max_(s + x, 0), 9)]
    function = to_function(choose(made), Pair(I32, I32), "fold")
    given, z = to_function(lambda y: select(y < 2, 5, 7), real, "map"), choose([ir.Literal(n, I32) for n in (0, 9)])
    found = kept_of(function, z, given)
    if found is None:
        raise AssertionError("the fold is not found to stay between bounds")
    for t, known in ((state, I32), (typing.values[names[1]][1], I32), (element, real)):
        if typing.find(t) != Made("concrete", (known,)):
            typing.equate(t, Made("concrete", (known,)))
    yield from map(_term, (function, given, found))
    yield Term(z, to_egg(z))


def _table(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term]:
    """A fold's operator that has few states from a value on, over few elements, and its table of words."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    alike = typing.find(state) == typing.find(element)
    made: list[tuple[DataType, Callable[..., Any], ir.Expr]] = [
        (I32, lambda s, x: (s * 2 + min_(max_(x, -1), 2)) % 5, ir.Literal(3, I32)),
        (I32, lambda s, x: select(equal(s, 7), min_(max_(x, 0), 3), 7), ir.Literal(7, I32)),
        (I32, lambda s, x: (s + select(min_(max_(x, 0), 1) > 0, 5, 1)) % 13, ir.Literal(0, I32)),
        (
            Pair(BOOL, I32),
            lambda s, x: select(
                equal(min_(max_(x, 0), 3) > 1, _of(s, 0)),
                ir.MakePair(_of(s, 0), ir.Literal(0, I32)),
                select(
                    equal(_of(s, 1), 2),
                    ir.MakePair(~_of(s, 0), ir.Literal(0, I32)),
                    ir.MakePair(_of(s, 0), _of(s, 1) + 1),
                ),
            ),
            ir.MakePair(ir.Literal(False, BOOL), ir.Literal(0, I32)),
        ),
    ]
    t, make, z = choose(made[:3] if alike else made)
    function = to_function(make, Pair(t, I32), "fold")
    found = tabulated_of(function, z)
    if found is None:
        raise AssertionError("the fold is not found to have few states")
    for other, known in ((state, t), (element, I32)):
        if typing.find(other) != Made("concrete", (known,)):
            typing.equate(other, Made("concrete", (known,)))
    yield from (_term(function), Term(z, to_egg(z)), *_of_table(found, names[2:], typing))


def _table_of_first(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term]:
    """A fold's operator of which some components have few states without the others, and their table of words."""
    state, element = typing.find(typing.values[names[0]][0]).parts
    k = choose([ir.Input("k", real), ir.Literal(2, real)])
    made: list[Callable[..., Any]] = [
        lambda s, x: ir.MakePair(
            (_of(s, 0) * 2 + min_(max_(x, -1), 2)) % 5, _of(s, 1) + select(equal(_of(s, 0), x), k, 1)
        ),
        lambda s, x: ir.MakePair(
            (_of(s, 0) + select(min_(max_(x, 0), 1) > 0, 5, 1)) % 13, max_(_of(s, 1), select(_of(s, 0) > 9, k, 0))
        ),
        lambda s, x: ir.MakePair((_of(s, 0) + min_(max_(x, 0), 1)) % 7, _of(s, 1) * 2 + select(_of(s, 0) > 2, k, x)),
    ]
    t = Pair(I32, real)
    function, z = to_function(choose(made), Pair(t, I32), "fold"), ir.MakePair(ir.Literal(3, I32), ir.Literal(1, real))
    parts = tabulated_parts(function, z)
    if parts is None:
        raise AssertionError("no component is found to have few states")
    cascade, found, _ = parts
    for other, known in ((state, t), (element, I32), (typing.values[names[2]][1], real)):
        if typing.find(other) != Made("concrete", (known,)):
            typing.equate(other, Made("concrete", (known,)))
    functions = map(_term, (cascade.rest, cascade.others, cascade.whole))
    yield from (_term(function), Term(z, to_egg(z)), *functions, *_of_table(found, names[5:], typing))


def _of_table(found: Tabulated, names: Sequence[str], typing: Typing) -> Iterator[Term]:
    """A table's words, start and places, with its functions, as relations have it."""
    words, step, start, value, places, steps, chosen = (
        *(found.words, found.step, found.start, found.value),
        *(found.places, found.steps, found.found),
    )
    for name, e in zip((names[0], names[2], names[4]), (words, start, places), strict=True):
        t, known = typing.values[name], Made("concrete", (type_of(e),))
        if typing.find(t) != known:
            typing.equate(t, known)
    for part in (words, step, start, value, places, steps, chosen):
        yield _term(part) if isinstance(part, ir.Lambda) else Term(part, to_egg(part))


def _of(pair: ir.Expr, index: int) -> ir.Expr:
    return ir.Component(index, pair)


def _other_words(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Any]:
    """A built-in operation with its arguments in the other order."""
    typing.equate(typing.values[names[0]], Made("concrete", (real,)))
    law = choose([op for op in laws_on(real) if op not in OWN_LAWS])
    a, b = ir.Var("x", real), ir.Var("y", real)
    f = ir.Lambda(ir.PairBinder(a, b), ir.Call(law, (b, a)))
    yield Operator(f, sorts.Op.fn(function_to_egg(f)), law)
    yield law


def _distribution(names: list[str], typing: Typing, choose: Choose, real: Scalar) -> Iterator[Term | Operator]:
    """An operator that distributes over another, and what annihilates for it."""
    typing.equate(typing.values[names[0]], Made("concrete", (real,)))
    made: list[tuple[Callable[..., Any], Callable[..., Any], float]] = [
        (lambda a, b: a * b, lambda a, b: a + b, 0),
        (lambda a, b: a * (b + 1), lambda a, b: a - b, 0),
        (lambda a, b: a * b + a + b, lambda a, b: a + b + 1, -1),
    ]
    if real.is_float:
        made.append((lambda a, b: a + b, max_, -inf))
    times, plus, zero = choose(made)
    for make in (times, plus):
        f = to_function(make, Pair(real, real), "operator")
        assert isinstance(f, ir.Lambda)
        known = known_operator(f)
        yield Operator(f, operator_to_egg(f), None if known is None else known[0])
    z = ir.Literal(zero, real)
    yield Term(z, to_egg(z))


def _distinct(t: DataType, choose: Choose) -> Term:
    """Indices of which no two are one place: of elements that are kept, or that follow the positions."""
    if not isinstance(t, Array) or t.element != I32 or not t.size.constant:
        raise Rejected(f"{t} are no indices")
    n, keep, i = t.size.constant, ir.Input("keep", Array(t.size, BOOL)), ir.Var("i", I32)
    ones = map_(lambda k: select(k, 1, 0), keep)
    made = choose(
        (
            map_(lambda k, p: select(k, p, -1), zip_(keep, scan_exclusive(add, 0, ones))),
            ir.Generate(nat(n), ir.Lambda(i, n - 1 - i)),
            ir.Generate(nat(n), ir.Lambda(i, i * 2 - 1)),
        )
    )
    if distinct_places(made) is None:
        raise AssertionError("the places are not found to be distinct")
    return Term(made, to_egg(made))


DRAWN: dict[str, Callable[[list[str], Typing, Choose, Scalar], Iterator[Any]]] = {
    "acts": _action,
    "steady": _steadiness,
    "combines": _combination,
    "recalls": _recollection,
    "cascades": _cascade,
    "kept_within": _bounded,
    "kept_along": _bounded_along,
    "tabulates": _table,
    "tabulates_first": _table_of_first,
    "built_in": _other_words,
    "distributes": _distribution,
}


def facts_of(conditions: Conditions, value: Callable[[Any], Any]) -> Iterator[Any]:
    """The facts that the conditions ask for."""
    for c in conditions:
        if isinstance(c, Node) and c.op in FOUND:
            parts = [value(p) for p in c.parts]
            yield getattr(sorts, c.op)(*(p.egg if isinstance(p, Term | Operator) else p for p in parts))


def _term(function: ir.Function) -> Term:
    return Term(function, function_to_egg(function))
