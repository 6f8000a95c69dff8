"""How patterns stand in the e-graph: an operation applied to numbers and texts, then to terms and functions.

An operation follows from the signature of its pattern. It is named like the pattern, in Python's spelling, and its
parameters are those of the signature in their order: what is no term becomes numbers and texts, an operator
``(t, t) -> t`` is of sort ``Op``, any other function of sort ``Fn``. By hand stand here only those that one
pattern has two of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

from lift_egraph.caching import cached_property
from lift_egraph.egraph.orders import KnownOrder, order_form, read_order
from lift_egraph.egraph.steps import fewer_steps, lengths, one_more_step
from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of, type_of
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.signature import Parameter, Signature

Number = Union[int, str, KnownOrder]
SHADOWED = ("map", "reduce", "zip", "slice")  # names of Python's own: the operation has an underscore more
SPELT = {"tuple": "make_pair", "let": "app"}


def concrete_size(size: Nat) -> int:
    """A size as a number.

    Raises
    ------
    SizeProblem
        If the size is symbolic: specialise the program first.
    """
    value = size.constant
    if value is None:
        raise SizeProblem(f"the e-graph needs concrete sizes, got {size}: specialise the program first")
    return value


class Kind(NamedTuple):
    """How a parameter that is no term stands in the e-graph: the sorts of its numbers and texts, and both ways."""

    sorts: tuple[str, ...]
    write: Callable[[Any], tuple[Number, ...]]
    read: Callable[..., Any]


_SIZE = Kind(("i64",), lambda n: (concrete_size(n),), nat)
_COUNT = Kind(("i64",), lambda n: (n,), int)
KINDS: dict[str, Kind] = {
    "nat": _SIZE,
    "offset": _SIZE,
    "count": _COUNT,
    "width": _COUNT,
    "level": Kind(("String", "i64"), lambda v: (v.kind, v.dimension), lambda k, d: ir.Level(k, 0 if k == "seq" else d)),
    "space": Kind(("String",), lambda s: (s,), str),
    "boundary": Kind(("String",), lambda b: (b.kind,), ir.Boundary),
    "indices": Kind(("Order",), lambda f: (str(f.body),), read_order),
    "name": Kind((), lambda _: (), lambda: "n"),
}


@dataclass(frozen=True)
class PatternNode:
    """An operation of the e-graph that is a pattern of the language.

    Attributes
    ----------
    name
        What `lift_egraph.egraph.sorts` calls it.
    signature
        Its parameters: those of the pattern, but where a pattern has two operations.
    node
        Makes the pattern of the values of its parameters.
    """

    name: str
    signature: Signature
    node: Callable[..., ir.Expr]

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The sorts of its numbers and texts."""
        return tuple(s for p in self.signature.parameters if p.form is None for s in KINDS[p.kind].sorts)

    @cached_property
    def _places_of_sizes(self) -> tuple[int, ...]:
        kinds = [KINDS[p.kind] for p in self.signature.parameters if p.form is None for _ in KINDS[p.kind].sorts]
        return tuple(place for place, kind in enumerate(kinds) if kind.sorts == ("i64",))

    @cached_property
    def has_names(self) -> bool:
        """Whether it has several names, by its level or space."""
        return any(p.kind in ("level", "space") for p in self.signature.parameters)

    def sizes(self, children: Sequence[Any]) -> tuple[int, ...]:
        """Those of its children that are sizes, counts or widths."""
        return tuple([int(children[place]) for place in self._places_of_sizes if place < len(children)])

    def term(self, numbers: tuple[Any, ...], parts: tuple[Any, ...]) -> ir.Expr:
        """The pattern with these numbers and texts, terms and functions."""
        numbers_left, parts_left, values = iter(numbers), iter(parts), []
        for p in self.signature.parameters:
            if p.form is not None:
                values.append(next(parts_left))
            else:
                kind = KINDS[p.kind]
                values.append(kind.read(*(next(numbers_left) for _ in kind.sorts)))
        return self.node(*values)


class Form(NamedTuple):
    """A term as an operation applied to numbers, texts and orders, and to terms and functions."""

    op: str
    numbers: tuple[Number, ...]
    parts: tuple[ir.Part, ...]


def form_of(term: ir.Expr) -> Form | None:
    """How a term stands in the e-graph.

    None for variables, inputs and literals. An iterate that changes the length of its array is the last of its steps,
    applied to the iterate that has one step less.

    Raises
    ------
    SizeProblem
        If a size is symbolic.
    """
    if isinstance(term, ir.Call):
        return Form(f"call{len(term.arguments)}", (term.op,), term.arguments)
    if isinstance(term, ir.Component):
        return Form("component", (term.index,), (term.pair,))
    if isinstance(term, ir.Var | ir.Input | ir.Literal):
        return None
    if isinstance(term, ir.Pad) and term.boundary.value is not None:
        return Form(
            PAD_CONSTANT.name, (concrete_size(term.left), concrete_size(term.right)), (term.boundary.value, term.array)
        )
    if isinstance(term, ir.Iterate):
        return _form_of_iterate(term)
    numbers: list[Number] = []
    parts: list[ir.Part] = []
    for p in term.signature.parameters:
        value = getattr(term, p.name)
        if isinstance(value, ir.IndexFunction):
            numbers.append(order_form(value, size_of(term.array)))  # pyright: ignore[reportAttributeAccessIssue]
        elif p.form is None:
            numbers += KINDS[p.kind].write(value)
        else:
            parts.append(value)
    return Form(_NAMES[type(term)], tuple(numbers), tuple(parts))


def _form_of_iterate(term: ir.Iterate) -> Form:
    if not term.times:
        v = ir.Var("xs", type_of(term.array))
        return Form("iterate", (0,), (ir.Lambda(v, v), term.array))
    known = lengths(term)
    changing = len(known) - 1
    if changing < term.times:
        step = iterate_step(term, known[-1])
        return Form("iterate", (term.times - changing,), (step, fewer_steps(term, changing)))
    return Form(ITERATE_STEP.name, (), (iterate_step(term, known[-2]), fewer_steps(term, changing - 1)))


class NoLiteral(TypeProblem):
    """A term that equals a literal stands where the language has literals alone."""


def _padded(left: Nat, right: Nat, value: ir.Expr, array: ir.Expr) -> ir.Expr:
    if not isinstance(value, ir.Literal):
        raise NoLiteral("the value of pad is no literal")
    return ir.Pad(left, right, ir.Boundary("constant", value), array)


def operation_name(name: str) -> str:
    """The operation of a pattern by the pattern's name.

    >>> operation_name("asVector"), operation_name("map")
    ('as_vector', 'map_')
    """
    snake = re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
    return f"{snake}_" if name in SHADOWED else SPELT.get(name, snake)


PAD_CONSTANT = PatternNode(
    "pad_constant",
    Signature(
        "pad", "left: offset, right: offset, value: t, array: [t]m -> [t](left + m + right)", "0 <= left, 0 <= right"
    ),
    _padded,
)
ITERATE_STEP = PatternNode(
    "iterate_step", Signature("iterate", "function: [t]m -> [t]n, array: [t]m -> [t]n", ""), one_more_step
)
_NAMES: dict[type[ir.Expr], str] = {node: operation_name(node.signature.name) for node in ir.SIGNED}
PATTERN_NODES: dict[str, PatternNode] = {
    **{name: PatternNode(name, node.signature, node) for node, name in _NAMES.items()},
    PAD_CONSTANT.name: PAD_CONSTANT,
    ITERATE_STEP.name: ITERATE_STEP,
}
# functions without a name for their argument: a pattern that lacks its array, for zip the pair of its arrays
CONSTANTS: dict[str, PatternNode] = {
    f"Fn_{name.rstrip('_')}": PATTERN_NODES[name] for name in ("join", "transpose", "zip_", "split", "map_", "reduce_")
}


def pattern_node(op: str) -> PatternNode | None:
    """The pattern that an operation is, with or without a name for its argument; None for what is no pattern."""
    return PATTERN_NODES.get(op) or CONSTANTS.get(op)


def name_in_language(node: PatternNode, children: Sequence[Any]) -> str:
    """What the language calls an operation with these children: ``split``, ``mapGlb(0)``, ``toLocal``, …"""
    if not node.has_names:
        return node.signature.name
    for p in node.signature.parameters:
        if p.kind == "level":
            return KINDS[p.kind].read(*children[:2]).name
        if p.kind == "space":
            return ir.memory_name(str(children[0]))
    return node.signature.name


def place_name(parameter: Parameter) -> str:
    """What explanations call a part of a pattern."""
    if parameter.is_function:
        return "op" if parameter.is_operator else "f"
    short = {"initial": "z", "array": "xs", "argument": "x", "first": "1", "second": "2"}
    return short.get(parameter.name, parameter.name)
