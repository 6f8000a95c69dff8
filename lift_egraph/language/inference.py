"""Typing a pattern by its signature, in any domain of types.

The checker types terms with types and sizes as they are, the e-graph with variables of its rules, the check of rules
with types that are still open: each is a domain (`Types`), and `result_type` is what they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from lift_egraph.language import signature as sig

T = TypeVar("T")
S = TypeVar("S")


class Makes(Protocol[T, S]):
    """Types and sizes that can be put together."""

    def scalar(self, name: str) -> T: ...
    def array(self, size: S, element: T) -> T: ...
    def pair(self, first: T, second: T) -> T: ...
    def lanes(self, width: S, t: T) -> T: ...
    def number(self, value: int) -> S: ...
    def arithmetic(self, sign: str, left: S, right: S) -> S: ...


class Types(Makes[T, S], Protocol[T, S]):
    """Types and sizes that can also be taken apart and compared; what fails raises `Misfit`, or an error of its own."""

    def parts_of_array(self, t: T) -> tuple[S, T]: ...
    def parts_of_pair(self, t: T) -> tuple[T, T]: ...
    def parts_of_lanes(self, t: T) -> tuple[S, T]: ...
    def equate(self, a: T, b: T) -> None: ...
    def equate_sizes(self, a: S, b: S) -> None: ...
    def apply(self, function: Any, argument: T, parameter: sig.Parameter) -> T: ...
    def require(self, condition: sig.Condition, left: S, right: S) -> None: ...


class Misfit(Exception):
    """An argument does not have the form of its parameter, or a condition does not hold."""

    parameter: sig.Parameter | None = None
    condition: sig.Condition | None = None
    names: Mapping[str, Any]


def made_size(size: sig.Size, names: Mapping[str, Any], types: Makes[T, S]) -> S:
    """The size that a form denotes, with values of the names in it."""
    if isinstance(size, str):
        return names[size]
    if isinstance(size, int):
        return types.number(size)
    sign, left, right = size
    return types.arithmetic(sign, made_size(left, names, types), made_size(right, names, types))


def made_type(form: sig.Form, names: Mapping[str, Any], types: Makes[T, S]) -> T:
    """The type that a form denotes, with values of the names in it."""
    if isinstance(form, sig.TypeVariable):
        return names[form.name]
    if isinstance(form, sig.ArrayForm):
        return types.array(made_size(form.size, names, types), made_type(form.element, names, types))
    if isinstance(form, sig.PairForm):
        return types.pair(made_type(form.first, names, types), made_type(form.second, names, types))
    if isinstance(form, sig.LanesForm):
        return types.lanes(made_size(form.width, names, types), made_type(form.element, names, types))
    return types.scalar(form.name)


def fit(form: sig.Form, t: T, names: dict[str, Any], types: Types[T, S]) -> None:
    """Take a type apart as its form says; names without a value get theirs."""
    if isinstance(form, sig.TypeVariable):
        if form.name in names:
            types.equate(names[form.name], t)
        else:
            names[form.name] = t
    elif isinstance(form, sig.ArrayForm):
        size, element = types.parts_of_array(t)
        _fit_size(form.size, size, names, types)
        fit(form.element, element, names, types)
    elif isinstance(form, sig.PairForm):
        first, second = types.parts_of_pair(t)
        fit(form.first, first, names, types)
        fit(form.second, second, names, types)
    elif isinstance(form, sig.LanesForm):
        width, element = types.parts_of_lanes(t)
        _fit_size(form.width, width, names, types)
        fit(form.element, element, names, types)
    else:
        types.equate(types.scalar(form.name), t)


def _fit_size(form: sig.Size, size: S, names: dict[str, Any], types: Types[Any, S]) -> None:
    if isinstance(form, str) and form not in names:
        names[form] = size
    else:
        types.equate_sizes(made_size(form, names, types), size)


def result_type(signature: sig.Signature, arguments: Iterable[Any], types: Types[T, S]) -> T:
    """The type of a pattern.

    Parameters
    ----------
    arguments
        For each parameter: the type of a term, a size (of the kinds that are sizes), a function as `types` knows it.

    Raises
    ------
    Misfit
        Or what `types` raises, where arguments do not fit; it holds the parameter and the values of names so far.
    """
    names: dict[str, Any] = {}
    given = dict(zip((p.name for p in signature.parameters), arguments, strict=True))
    parameter: sig.Parameter | None = None
    try:
        for parameter in signature.parameters:
            if parameter.form is None:
                names[parameter.name] = given[parameter.name]
        for parameter in signature.terms:
            fit(parameter.form, given[parameter.name], names, types)  # pyright: ignore[reportArgumentType]
        for parameter in signature.functions:
            form = parameter.form
            assert isinstance(form, sig.FunctionForm)
            argument = made_type(form.argument, names, types)
            fit(form.result, types.apply(given[parameter.name], argument, parameter), names, types)
        parameter = None
        for c in signature.conditions:
            types.require(c, made_size(c.left, names, types), made_size(c.right, names, types))
        return made_type(signature.result, names, types)
    except Misfit as misfit:
        misfit.parameter, misfit.names = parameter, names
        raise
