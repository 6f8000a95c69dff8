"""Parts of terms as people read them: with plain names, and with operators between what they combine, as in laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lift_egraph.egraph.exact_terms import Node, choice_of
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.read_back import read_part
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, fresh_name, stem, substitute, unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import print_term

ONE_LINE = 1 << 30
SHORT = 30  # characters that are not left out


def part_of(graph: FrozenEGraph, part: Node) -> ir.Part | str:
    """A part of a term that an e-graph holds, as laws write it, with plain names.

    Text are an operator alone, which has no form, and an operator that combines two terms, as in ``a ⊕ b``.
    """
    choice = choice_of(graph, part)
    assert choice is not None
    try:
        term = _plainly_named(read_part(graph, choice))
    except LiftError:  # only the reduction around an operator has a form
        return part.op
    match term:
        case ir.Apply(function=f, argument=ir.MakePair(first=a, second=b)) if part.op == "combine":
            operator, left, right = _operator_text(part.children[0], f), _operand(a), _operand(b)
            return f"{left} ⊕ {right}, with ⊕ = {operator}"
    return _with_operators(term)


def _operator_text(operator: Node | int | str, function: ir.Function) -> str:
    """An operator by its name, or as the function that it is."""
    lifts = ""
    while isinstance(operator, Node) and operator.op == "Op_lift":
        lifts, operator = f"{lifts}lift ", operator.children[0]
    if isinstance(operator, Node) and operator.op == "Op_scalar":
        return f"{lifts}{operator.children[0]}"
    return print_term(function, ONE_LINE)


def _operand(term: ir.Expr) -> str:
    text = print_term(_with_operators(term), ONE_LINE)
    return text if isinstance(term, ir.Var | ir.Input | ir.Literal) else f"({text})"


def _with_operators(term: Any) -> Any:
    """A term in which operators stand between what they combine, as in laws, and not in a let of a pair."""
    inside = ir.map_parts(term, _with_operators)
    match inside:
        case ir.Apply(
            function=ir.Lambda(binder=ir.PairBinder(first=a, second=b), body=body),
            argument=ir.MakePair(first=x, second=y),
        ):
            match body:
                case ir.Call(op=op, arguments=arguments) if arguments == (a, b):
                    return ir.Call(op, (x, y))
                case ir.Map(function=f, array=ir.Zip(first=c, second=d)) if (c, d) == (a, b):
                    return inside if {a, b} & ir.free_variables(f) else ir.Map(f, ir.Zip(x, y))
    return inside


def part_text(graph: FrozenEGraph, part: Node) -> str:
    """A part of a term on one line; `graph` holds the part."""
    return text_of(part_of(graph, part))


def text_of(part: ir.Part | str, width: int = ONE_LINE) -> str:
    """A part of a step as text."""
    return part if isinstance(part, str) else print_term(part, width, as_laws=True)


def abridged(before: ir.Part | str, after: ir.Part | str, width: int) -> tuple[str, str]:
    """Both parts of a step as text. Where they do not fit into a line, what is long and in both is written as ``…``.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> text = "map(fun a => sqrt(a * a + 1.0) * sqrt(a * a + 2.0), {})"
    >>> before, after = (
    ...     parse_program(f"program p(xs: [f32]8) = {text.format(array)}").body
    ...     for array in ("join(split(4, xs))", "xs")
    ... )
    >>> for part in abridged(before, after, 60):
    ...     print(part)
    map(fun a => …, join(split(4, xs)))
    map(fun a => …, xs)
    """
    texts = text_of(before, width), text_of(after, width)
    if isinstance(before, str) or isinstance(after, str) or "\n" not in "".join(texts):
        return texts
    shared = {canonical(p) for p in _long(before)}.intersection(canonical(p) for p in _long(after))
    numbers: dict[ir.Part, int] = {}

    def cut(part: Any) -> Any:
        key = canonical(part)
        if key not in shared:
            return ir.map_parts(part, cut)
        inside = part.body if isinstance(part, ir.Lambda) else part
        left_out = ir.Input(f"…{numbers.setdefault(key, len(numbers)) or ''}", type_of(inside))
        return replace(part, body=left_out) if isinstance(part, ir.Lambda) else left_out

    return text_of(ir.map_parts(before, cut), width), text_of(ir.map_parts(after, cut), width)


def _long(part: ir.Part) -> Iterator[ir.Part]:
    """What is in a part and takes some space to write."""
    for inside in ir.subterms(part):
        if inside is not part and isinstance(inside, ir.Expr | ir.Lambda):
            shown = inside.body if isinstance(inside, ir.Lambda) else inside
            if len(text_of(shown)) > SHORT:
                yield inside


def _plainly_named(part: ir.Part) -> ir.Expr:
    """A part, or the body of a function, with the numbers of classes taken off the names of its variables."""
    term = part if isinstance(part, ir.Expr) else ir.function_body(part).body  # pyright: ignore[reportArgumentType]
    taken = {p.name for p in ir.subterms(term) if isinstance(p, ir.Input)}
    free = sorted(ir.free_variables(term), key=lambda v: v.name)
    named = {v: ir.Var(fresh_name(stem(v.name), taken), v.type) for v in free}
    return unique_names(substitute(term, dict(named)), taken, stem)
