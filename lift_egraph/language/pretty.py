"""Printing terms and programs in the text form that `lift_egraph.language.syntax` reads.

Printing chooses names that do not shadow others, writes ``let`` for applied lambdas and operators
by their names, and gives types only where reading cannot infer them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name
from lift_egraph.language.check import type_of
from lift_egraph.language.documents import NOTHING, SPACE, Document, Group, Line, Nest, lay_out, separated
from lift_egraph.language.functions import KEYWORDS, RESERVED
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.sizes import size_variables, substitute_nats
from lift_egraph.language.types import F32, I32, Pair, size_names

_UNARY, _ATOM = 6, 7


@dataclass(frozen=True)
class _Names:
    """The spelling of the variables in scope, and the names and sizes that are taken; whether applied patterns are
    written as such.
    """

    spelled: dict[ir.Var, str]
    taken: frozenset[str]
    sizes: frozenset[str]
    as_laws: bool = False


def print_term(term: ir.Part, width: int = 88, *, as_laws: bool = False) -> str:
    """A term or function as text.

    Parameters
    ----------
    width
        Characters of a line, if possible.
    as_laws
        Whether a pattern that is applied is written so, as laws do: ``split(4)(xs)`` for
        ``let x = xs in split(4, x)``. What is read back is then the pattern without the let.

    Examples
    --------
    >>> from lift_egraph.language.build import F32, Input, array, map_, let
    >>> xs = Input("xs", array(F32, "N"))
    >>> print(print_term(map_(lambda x: let(x + 1.0, lambda y: y * y), xs)))
    map(fun x => let y = x + 1.0 in y * y, xs)
    """
    names = replace(_outer(term), as_laws=as_laws)
    document = _term(term, names, 0) if isinstance(term, ir.Expr) else _function(term, names)
    return lay_out(document, width)


def print_program(program: ir.Program, width: int = 88) -> str:
    """A program as text that `lift_egraph.language.syntax.parse_program` reads.

    The operators that laws were declared of stand above it, alternatives do not. Lines have `width` characters at
    most, if possible.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> print(print_program(parse_program("program f(x: f32, n: [f32]N) where N = 4 = map(fun e=>x*e,n)")))
    program f(x: f32, n: [f32]N) where N = 4 =
      map(fun e => x * e, n)
    <BLANKLINE>
    """
    ranges = {name: f" in {values}" for name, values in program.ranges}
    inputs = separated(f"{i.name}: {i.type}{ranges.get(i.name, '')}" for i in program.inputs)
    head: list[Document] = [Group((f"program {program.name}(", Nest((NOTHING, inputs)), ")"))]
    open_in = size_variables(program)
    given = {name: value for name, value in program.sizes if name in open_in}  # the sizes of a special case are gone
    in_types = {n for i in program.inputs for n in size_names(i.type)}
    sizes = [f"{n} = {v}" for n, v in given.items()]
    sizes += [f"{n} = ?" for n in open_in if n not in given and n not in in_types]
    if sizes:
        head.append(Group(Nest((SPACE, f"where {', '.join(sizes)} ="))))
    else:
        head.append(" =")
    names = _outer(program.body)
    names = replace(names, taken=names.taken | {i.name for i in program.inputs}, sizes=names.sizes | set(open_in))
    declared = "".join(_declared(program.laws, names.taken | {program.name}, width))
    return declared + lay_out((*head, Nest((SPACE, _term(program.body, names, 0))), Line("")), width)


def _declared(laws: Iterable[ir.Law], taken: frozenset[str], width: int) -> Iterator[str]:
    """The functions that laws are of, and those that they mention."""
    clauses: dict[ir.Lambda, list[str]] = {}
    called: dict[ir.Lambda, str] = {}
    used = set(taken)
    for law in laws:
        about = law.about
        if isinstance(about, ir.Lambda) and about not in called and _section(about) is None:
            called[about], clauses[about] = fresh_name("f", used), []
        if law.operator not in called:
            called[law.operator], clauses[law.operator] = fresh_name(law.called, used), []
        if isinstance(about, ir.Lambda):
            shown = f" {called.get(about) or _section(about)}"
        else:
            text = "" if about is None else print_term(about, 1 << 30)
            shown = f" {text}" if isinstance(about, ir.Literal | ir.MakePair) else f" ({text})" if text else ""
        clauses[law.operator].append(f"{law.name}{shown}")
    for f, name in called.items():
        where = f" where {', '.join(clauses[f])}" if clauses[f] else ""
        _, inner = _binder(f, _Names({}, frozenset(used), frozenset()))
        parameters = ", ".join(f"{inner.spelled[v]}: {v.type}" for v in ir.bound_variables(f.binder))
        head = f"function {name}({parameters}){where} ="
        yield lay_out((Group((head, Nest((SPACE, _term(f.body, inner, 0))))), Line("")), width)


def _outer(term: ir.Part) -> _Names:
    free = ir.free_variables(term)
    known = [*free, *(p for p in ir.subterms(term) if isinstance(p, ir.Input))]
    sizes = frozenset(n for item in known for n in size_names(item.type))
    values = (v.name for p in ir.subterms(term) if isinstance(p, ir.SizeLiteral) for v in p.size.variables)
    return _Names({v: v.name for v in free}, frozenset((*(i.name for i in known), *values)) | RESERVED, sizes)


# --- terms --------------------------------------------------------------------------------------------


def _call(name: str, arguments: Iterable[Document]) -> Document:
    """``name(…)``; short first arguments stay beside the name."""
    later = list(arguments)
    first: list[str] = []
    while len(later) > 1 and isinstance(later[0], str):
        first.append(f"{later.pop(0)},")
    head = f"{name}({' '.join(first)}"
    return Group((head, Nest((SPACE if first else NOTHING, separated(later))), ")"))


def _parentheses(document: Document, needed: bool) -> Document:
    return ("(", document, ")") if needed else document


def _term(term: ir.Expr, names: _Names, level: int) -> Document:
    """The term as an operand of an operator of a level (0: anything may stand there)."""
    if isinstance(term, ir.Var):
        return names.spelled.get(term, term.name)
    if isinstance(term, ir.Input):
        return term.name
    if isinstance(term, ir.Literal):
        text = _literal(term)
        return _parentheses(text, level > _UNARY and text.startswith("-"))
    if isinstance(term, ir.SizeLiteral):
        return _parentheses(str(term.size), level > 0 and not term.size.is_atomic)
    if isinstance(term, ir.Call):
        return _scalar_call(term, names, level)
    if isinstance(term, ir.MakePair):
        return Group(("(", Nest((NOTHING, separated(_spine(ir.MakePair, term, names)))), ")"))
    if isinstance(term, ir.Component):
        return _component(term, names)
    if isinstance(term, ir.Apply):
        return _apply(term, names, level)
    match term:
        case ir.At(index=i, array=ir.Lookup(indices=ir.Fill(size=n, value=place), array=array)) if (i, n) == (
            nat(0),
            nat(1),
        ) and any(
            isinstance(part, ir.Var | ir.Input) for part in ir.subterms(place)
        ):  # a number or a size between the brackets is the index of an `at`
            return (_term(array, names, _ATOM), "[", _term(place, names, 0), "]")
    name, arguments = _printed(term, names)
    return _call(name, arguments)


def _literal(term: ir.Literal) -> str:
    if term.type.name == "bool":
        return str(bool(term.value)).lower()
    if term.type.is_integer:
        return f"{int(term.value)}{'' if term.type == I32 else term.type}"
    text = repr(float(term.value))
    if "inf" in text:
        return text + ("" if term.type == F32 else term.type.name[1:])
    return text + (term.type.name if term.type != F32 else "" if "." in text or "e" in text else "f32")


def _scalar_call(term: ir.Call, names: _Names, level: int) -> Document:
    op = OPERATIONS.get(term.op)
    if op is not None and op.symbol and len(term.arguments) == 2:
        left = _term(term.arguments[0], names, op.level + (op.kind == "comparison"))
        right = _term(term.arguments[1], names, op.level + 1)
        inner = Group((left, SPACE, f"{op.symbol} ", right))
        return _parentheses(inner, level > op.level)
    if term.op == "neg" and len(term.arguments) == 1 and not isinstance(term.arguments[0], ir.Literal):
        return _parentheses(("-", _term(term.arguments[0], names, _ATOM)), level > _UNARY)
    return _call(term.op, [_term(a, names, 0) for a in term.arguments])


def _spine(kind: type[ir.MakePair | ir.Zip], term: ir.Expr, names: _Names) -> list[Document]:
    parts: list[Document] = []
    while isinstance(term, kind):
        parts.append(_term(term.first, names, 0))
        term = term.second
    return [*parts, _term(term, names, 0)]


def _component(term: ir.Component, names: _Names) -> Document:
    if term.index == 1 and isinstance(type_of(term), Pair):
        return _call("rest", [_term(term.pair, names, 0)])
    index, inner = term.index, term.pair
    while isinstance(inner, ir.Component) and inner.index == 1:
        index, inner = index + 1, inner.pair
    return _call("get", [str(index), _term(inner, names, 0)])


def _apply(term: ir.Apply, names: _Names, level: int) -> Document:
    argument = _term(term.argument, names, 0)
    if isinstance(term.function, ir.Vectorize):
        return (_function(term.function, names), "(", argument, ")")
    short = _partial(term.function, names) if names.as_laws else None
    if short is not None:
        return Group((short, "(", Nest((NOTHING, argument)), ")"))
    pattern, inner = _binder(term.function, names)
    if isinstance(term.argument, ir.Literal | ir.SizeLiteral) and isinstance(term.function.binder, ir.Var):
        pattern = f"({pattern}: {term.function.binder.type})"  # else it would be put in wherever its name stands
    head = Group((f"let {pattern} =", Nest((SPACE, argument)), " in"))
    body = _term(term.function.body, inner, 0)
    return _parentheses(Group((head, SPACE, body)), level > 0)


# --- functions ------------------------------------------------------------------------------------------


def _function(function: Any, names: _Names) -> Document:
    if isinstance(function, ir.Vectorize):
        return _call("vectorize", [str(function.width), _function(function.function, names)])
    if isinstance(function.body, ir.Var) and function.body == function.binder:
        return "id"
    short = _section(function) or _partial(function, names)
    if short is not None:
        return short
    pattern, inner = _binder(function, names)
    return _fun(pattern, function.body, inner)


def _fun(pattern: str, body: ir.Expr, names: _Names) -> Document:
    return Group((f"fun {pattern} =>", Nest((SPACE, _term(body, names, 0)))))


def _section(function: ir.Lambda) -> str | None:
    """The operation that a lambda applies to its parameters as they come, if it does only that."""
    body = function.body
    if not isinstance(body, ir.Call) or body.op not in OPERATIONS or len(body.arguments) != OPERATIONS[body.op].arity:
        return None
    parameters = _components(function.binder)
    return body.op if parameters == body.arguments and len(set(parameters)) == len(parameters) else None


def _components(binder: ir.Binder) -> tuple[ir.Binder, ...]:
    return (binder.first, *_components(binder.second)) if isinstance(binder, ir.PairBinder) else (binder,)


def _partial(function: ir.Lambda, names: _Names) -> Document | None:
    """``split(4)`` for ``fun x => split(4, x)``."""
    body, parameter = function.body, function.binder
    if not isinstance(body, ir.PATTERNS) or getattr(body, "array", None) != parameter:
        return None
    if sum(parameter in ir.free_variables(part) for part in ir.parts(body)) > 1:
        return None
    name, arguments = _printed(body, names)
    return _call(name, arguments[:-1]) if len(arguments) > 1 else name


def _binder(function: ir.Lambda, names: _Names) -> tuple[str, _Names]:
    """The pattern of a lambda as text, and the names in its body."""
    taken = set(names.taken)
    spelled = dict(names.spelled)

    def bind(pattern: ir.Binder) -> str:
        if isinstance(pattern, ir.Var):
            spelled[pattern] = fresh_name(_identifier(pattern.name), taken)
            return spelled[pattern]
        return f"({', '.join(map(bind, _components(pattern)))})"

    text = bind(function.binder)
    return text, replace(names, spelled=spelled, taken=frozenset(taken))


def _identifier(name: str) -> str:
    """The name as one that text may have; none begins like `lift_egraph.language.functions.HIDDEN`."""
    name = re.sub(r"\W", "", name).lstrip("_")
    return name if name and not name[0].isdigit() else f"x{name}"


def _iterate_function(term: ir.Iterate, names: _Names) -> Document:
    """``fun (x: [t]n) => body`` with a size name that means nothing else."""
    function = term.function
    taken = set(names.sizes | KEYWORDS)
    size = fresh_name(_identifier(term.size), taken)
    if size != term.size:
        function = substitute_nats(function, {term.size: size})
    inner = replace(names, sizes=names.sizes | {size}, taken=names.taken | {size})
    if not isinstance(function.binder, ir.Var):
        return _function(function, inner)
    text, inner = _binder(function, inner)
    return _fun(f"({text}: {function.binder.type})", function.body, inner)


def _index_function(indices: ir.IndexFunction) -> str:
    sizes = {v.name for v in indices.body.variables} - {indices.variable}
    name = fresh_name(_identifier(indices.variable), sizes | KEYWORDS | {"n"})
    body = indices.body.substitute({indices.variable: nat(name)})
    return "reverse" if body == nat("n") - 1 - nat(name) else f"{name} => {body}"


def _boundary(boundary: ir.Boundary) -> str:
    return boundary.kind if boundary.value is None else f"{boundary.kind}({_literal(boundary.value)})"


# --- patterns: the name and the arguments of each ---------------------------------------------------------


def _printed(term: ir.Expr, names: _Names) -> tuple[str, list[Document]]:
    name = ir.name_of(term).partition("(")[0]
    if isinstance(term, ir.Zip):
        return name, _spine(ir.Zip, term, names)
    arguments: list[Document] = []
    for p in term.signature.parameters:
        value = getattr(term, p.name)
        if isinstance(value, ir.Level):
            arguments += [] if value == ir.SEQ else [str(value.dimension)]
        elif isinstance(term, ir.Iterate) and p.is_function:
            arguments.append(_iterate_function(term, names))
        elif isinstance(term, ir.Iterate) and p.kind == "count" and term.count is not None:
            arguments.append(_argument(term.count, names))
        elif p.kind not in ("space", "name"):
            arguments.append(_argument(value, names))
    return name, arguments


def _argument(value: Any, names: _Names) -> Document:
    if isinstance(value, ir.Expr):
        return _term(value, names, 0)
    if isinstance(value, ir.Lambda | ir.Vectorize):
        return _function(value, names)
    if isinstance(value, ir.IndexFunction):
        return _index_function(value)
    return _boundary(value) if isinstance(value, ir.Boundary) else str(value)
