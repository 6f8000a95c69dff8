"""Programs that are made of functions: in Python, whose annotations are types, and by the readers of the text form."""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, overload

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import check_program
from lift_egraph.language.functions import RESERVED, as_expr, checked, opened
from lift_egraph.language.ir import Input
from lift_egraph.language.ranges import Values
from lift_egraph.language.sizes import require_size, size_variables
from lift_egraph.language.type_text import parse_annotation
from lift_egraph.language.types import Array, DataType, Pair, Scalar, size_names


@overload
def program(function: Callable[..., Any], /) -> ir.Program: ...
@overload
def program(
    *, sizes: Mapping[str, int] | None = None, laws: Iterable[ir.Law] = (), alternatives: Iterable[ir.Alternative] = ()
) -> Callable[[Callable[..., Any]], ir.Program]: ...
def program(
    function: Callable[..., Any] | None = None,
    /,
    *,
    sizes: Mapping[str, int] | None = None,
    laws: Iterable[ir.Law] = (),
    alternatives: Iterable[ir.Alternative] = (),
) -> Any:
    """Make a program of a function whose annotations give the types of its inputs.

    Parameters
    ----------
    function
        Its name names the program, its parameters the inputs. An annotation is a type or its text, which may go on
        with a range: ``"[f32]N in 0.1..10"``.
    sizes
        The default of each size variable.
    laws, alternatives
        What is declared of functions in it (`lift_egraph.language.declarations`).

    Raises
    ------
    TypeProblem, SizeProblem, SyntaxProblem
        If an annotation is missing or wrong, or the body does not type.

    Examples
    --------
    >>> from lift_egraph.language.build import map_, type_of
    >>> @program
    ... def double(xs: "[f32]N"):
    ...     return map_(lambda x: x + x, xs)
    >>> double.name, print(type_of(double.body))
    [f32]N
    ('double', None)
    """
    if not isinstance(sizes, Mapping | None):
        raise TypeProblem(f'the sizes of a program are given as {{"N": 1024}}, got {sizes!r}')
    if function is None:
        declared = {"laws": tuple(laws), "alternatives": tuple(alternatives)}
        return lambda f: replace(_program(f, sizes or {}), **declared)
    return _program(function, {})


def _program(function: Callable[..., Any], sizes: Mapping[str, int]) -> ir.Program:
    parameters = inspect.signature(function).parameters.values()
    annotations = {p.name: _annotation(p, function) for p in parameters}
    inputs = tuple(Input(name, t) for name, (t, _) in annotations.items())
    ranges = [(name, values) for name, (_, values) in annotations.items() if values is not None]
    made = make_program(function.__name__, inputs, lambda: function(*inputs), sizes, ranges)
    names = size_variables(made)
    for size, value in sizes.items():
        if size not in names:
            raise SizeProblem(f"{made.name} has no size {size!r}; it has {', '.join(names) or 'none'}")
        require_size(size, value, 1)
    return replace(made, sizes=tuple(sizes.items()))


def make_program(
    name: str,
    inputs: tuple[Input, ...],
    body: Callable[[], Any],
    sizes: Collection[str],
    ranges: Iterable[tuple[str, Values]] = (),
) -> ir.Program:
    """A checked program without defaults; the body is built with the inputs, their sizes and `sizes` in scope.

    Raises
    ------
    TypeProblem
        If the name of an input is a word of the language, or the body is not well-typed.
    """
    for item in inputs:
        if item.name in RESERVED:
            raise TypeProblem(f"{item.name} is a word of the language; choose another name for the input")
    with opened((i.name for i in inputs), {*sizes, *(n for i in inputs for n in size_names(i.type))}):
        made = ir.Program(name, inputs, checked(as_expr(body())), (), tuple(ranges))
    check_program(made)
    return made


def _annotation(parameter: inspect.Parameter, function: Callable[..., Any]) -> tuple[DataType, Values | None]:
    given = parameter.annotation
    if isinstance(given, Array | Pair | Scalar):
        return given, None
    if isinstance(given, str):
        text = literal_eval(given) if given[:1] in "'\"" else given
        known = getattr(function, "__globals__", {}).get(text)  # F32, where annotations are kept as text
        return (known, None) if isinstance(known, Array | Pair | Scalar) else parse_annotation(text)
    raise TypeProblem(f'the input {parameter.name} of {function.__name__} needs a type, such as "[f32]N"')
