"""What a pattern is, said once and in one line: its parameters with their types, its sizes, where it is legal.

The signature of ``slide`` is ``size: nat, step: nat, array: [t]m -> [[t]size]((m - size) / step + 1)``, legal where
``size > 0``, ``step > 0``, ``size <= m`` and ``step | m - size``. ``[t]n`` is an array, ``(a, b)`` a pair, ``t·w`` a
type whose scalar leaves are vectors of w lanes, ``a -> b`` a function. Parameters that are no terms have a kind:

========== =======================================================================
nat        a size, at least 1
offset     a size or an index that may be 0
count      how often something is done
width      the lanes of a vector
level      a level of OpenCL's thread hierarchy
space      an address space
boundary   what lies outside a padded array
indices    an index function
name       the name of a size that is bound
========== =======================================================================

Whoever types terms does so by its signatures (`lift_egraph.language.inference`).

Source: 000 §2.4.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union

from lift_egraph.caching import cached_property
from lift_egraph.language.types import SCALAR_BYTES, Scalar

KINDS = ("nat", "offset", "count", "width", "level", "space", "boundary", "indices", "name")

# --- forms of types -------------------------------------------------------------------------------

Size = Union[int, str, tuple[str, "Size", "Size"]]  # a number, a name, or a sign with what stands around it


@dataclass(frozen=True)
class TypeVariable:
    """Any type, the same wherever the name stands."""

    name: str


@dataclass(frozen=True)
class ArrayForm:
    """``[element]size``."""

    size: Size
    element: Form


@dataclass(frozen=True)
class PairForm:
    """``(first, second)``."""

    first: Form
    second: Form


@dataclass(frozen=True)
class LanesForm:
    """``element·width``."""

    width: Size
    element: Form


@dataclass(frozen=True)
class FunctionForm:
    """``argument -> result``."""

    argument: Form
    result: Form

    @property
    def is_operator(self) -> bool:
        """Whether it combines two values of one type: ``(t, t) -> t``."""
        return self.argument == PairForm(self.result, self.result)


Form = Union[Scalar, TypeVariable, ArrayForm, PairForm, LanesForm]


@dataclass(frozen=True)
class Parameter:
    """A parameter: a term or function with the form of its type, or something else of a kind."""

    name: str
    form: Form | FunctionForm | None
    kind: str = ""

    @property
    def is_function(self) -> bool:
        return isinstance(self.form, FunctionForm)

    @property
    def is_operator(self) -> bool:
        return isinstance(self.form, FunctionForm) and self.form.is_operator


@dataclass(frozen=True)
class Condition:
    """``left relation right``; the relation is ``<``, ``<=``, ``>`` or ``|``, divides."""

    left: Size
    relation: str
    right: Size


@dataclass(frozen=True)
class Signature:
    """A pattern: what the language calls it, its parameters in the order of the node's fields, and its type.

    Parameters
    ----------
    name
        Its name in the text form; of patterns with a kind ``level`` or ``space``, which is part of the name, the
        stem.
    line
        Parameters and type.
    where
        The conditions under which it is legal, separated by commas.
    """

    name: str
    line: str
    where: str = ""

    @cached_property
    def _read(self) -> tuple[tuple[Parameter, ...], Form]:
        return _Reader(self.line).signature()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self._read[0]

    @property
    def result(self) -> Form:
        return self._read[1]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(_Reader(text).condition() for text in self.where.split(",") if text.strip())

    @cached_property
    def type_variables(self) -> frozenset[str]:
        """The names of types in it."""
        forms = [*(p.form for p in self.parts), self.result]
        return frozenset(f.name for form in forms for f in subforms(form) if isinstance(f, TypeVariable))

    @cached_property
    def sizes(self) -> frozenset[str]:
        """The names of sizes in it, its parameters among them."""
        forms = [*(p.form for p in self.parts), self.result]
        found = {
            f.size if isinstance(f, ArrayForm) else f.width
            for form in forms
            for f in subforms(form)
            if isinstance(f, ArrayForm | LanesForm)
        }
        found |= {side for c in self.conditions for side in (c.left, c.right)}
        return frozenset(name for size in found for name in size_names(size))

    @cached_property
    def terms(self) -> tuple[Parameter, ...]:
        """The parameters that are terms."""
        return tuple(p for p in self.parameters if p.form is not None and not p.is_function)

    @cached_property
    def functions(self) -> tuple[Parameter, ...]:
        """The parameters that are functions."""
        return tuple(p for p in self.parameters if p.is_function)

    @cached_property
    def loop(self) -> int | None:
        """Which of its parts is an array whose elements a function takes one by one; None for no loop."""
        for f in self.functions:
            assert isinstance(f.form, FunctionForm)
            inside = set() if isinstance(f.form.argument, ArrayForm) else set(subforms(f.form.argument))
            for i, p in reversed(list(enumerate(self.parts))):
                if isinstance(p.form, ArrayForm) and p.form.element in inside:
                    return i
        return None

    def combined_in(self, operator: Parameter) -> tuple[int, bool]:
        """Which of its parts says the type that an operator combines, and whether it is an array of such values."""
        assert isinstance(operator.form, FunctionForm)
        t, loop = operator.form.result, self.loop
        if loop is not None and getattr(self.parts[loop].form, "element", None) == t:
            return loop, True
        return next(i for i, p in enumerate(self.parts) if p.form == t), False

    @cached_property
    def parts(self) -> tuple[Parameter, ...]:
        """The parameters that are terms or functions."""
        return tuple(p for p in self.parameters if p.form is not None)


# --- reading --------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(\w+|->|<=|\S)")


class _Reader:
    """Reads a line by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, [*_TOKEN.findall(text), ""]

    def take(self, *wanted: str) -> str:
        if wanted and self.tokens[0] not in wanted:
            raise ValueError(f"expected {' or '.join(wanted)} before {' '.join(self.tokens)!r} in {self.text!r}")
        return self.tokens.pop(0)

    def signature(self) -> tuple[tuple[Parameter, ...], Form]:
        parameters = [self.parameter()]
        while self.tokens[0] == ",":
            self.take(",")
            parameters.append(self.parameter())
        last = parameters[-1]
        if not isinstance(last.form, FunctionForm):
            raise ValueError(f"{self.text!r} gives no type")
        # the last arrow leads to the type of the whole
        argument, result = _split_last(last.form)
        parameters[-1] = Parameter(last.name, argument)
        self.take("")
        return tuple(parameters), result

    def parameter(self) -> Parameter:
        name = self.take()
        self.take(":")
        if self.tokens[0] in KINDS:
            return Parameter(name, None, self.take())
        return Parameter(name, self.form())

    def condition(self) -> Condition:
        left, relation, right = self.sum(), self.take("<", "<=", ">", "|"), self.sum()
        self.take("")
        return Condition(left, relation, right)

    def form(self) -> Any:
        left = self.atom()
        if self.tokens[0] != "->":
            return left
        self.take()
        return FunctionForm(left, self.form())

    def atom(self) -> Form:
        token = self.take()
        if token == "[":
            element = self.form()
            self.take("]")
            return ArrayForm(self.factor(), element)
        if token == "(":
            first = self.form()
            self.take(",")
            second = self.form()
            self.take(")")
            return PairForm(first, second)
        if token in SCALAR_BYTES:
            return Scalar(token)
        if self.tokens[0] != "·":
            return TypeVariable(token)
        self.take()
        return LanesForm(self.factor(), TypeVariable(token))

    def sum(self) -> Size:
        return self.infix("+-", lambda: self.infix("*/", self.factor))

    def infix(self, signs: str, operand: Any) -> Size:
        left = operand()
        while self.tokens[0] and self.tokens[0] in signs:
            left = (self.take(), left, operand())
        return left

    def factor(self) -> Size:
        token = self.take()
        if token != "(":
            return int(token) if token.isdigit() else token
        inner = self.sum()
        self.take(")")
        return inner


def _split_last(form: FunctionForm) -> tuple[Any, Any]:
    if not isinstance(form.result, FunctionForm):
        return form.argument, form.result
    inner, last = _split_last(form.result)
    return FunctionForm(form.argument, inner), last


# --- walking ---------------------------------------------------------------------------------------


def subforms(form: Any) -> Iterator[Any]:
    """The form of a type or function and everything in it."""
    yield form
    for name in ("argument", "result", "first", "second", "element"):
        if hasattr(form, name):
            yield from subforms(getattr(form, name))


def size_names(size: Size) -> Iterator[str]:
    """The names in the form of a size."""
    if isinstance(size, str):
        yield size
    elif isinstance(size, tuple):
        yield from size_names(size[1])
        yield from size_names(size[2])
