"""Named functions with their laws and alternatives in Python, as `lift_egraph.language.definitions` reads them in text.

::

    @function(associative=True, neutral=0.0)
    def farther(a: "f32", b: "f32"):
        return select(abs_(a) >= abs_(b), a, b)

    @function
    def total(xs: "[f32]n"):
        return reduce_(add, 0.0, xs)

    @alternative(total, chunk=(16, 65537), where=["n > chunk"])
    def in_chunks(xs):
        return reduce_(add, 0.0, map_(total, split("chunk", xs)))

    @program(sizes={"N": 1048576}, laws=farther.laws, alternatives=[in_chunks])
    def sums(xs: "[f32]N"):
        return total(xs) + reduce_(farther, 0.0, xs)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.definitions import SIGNS, Definition, alternative_of, defined, law_of
from lift_egraph.language.grammar import Source, Tree, located, parsed
from lift_egraph.language.nat import Nat
from lift_egraph.language.programs import make_program, program
from lift_egraph.language.sizes import size_variables
from lift_egraph.language.type_text import any_size, read_size


def function(body: Callable[..., Any] | None = None, /, **laws: Any) -> Any:
    """Make a function with a name of a Python function whose annotations give the types of its parameters.

    Parameters
    ----------
    laws
        Laws of an operator (`lift_egraph.language.ir.LAWS`): True, or what the law is about. They are tried before
        they are believed, in the programs that have them.

    Returns
    -------
    Definition
        With `laws`, for `lift_egraph.language.build.program`.

    Raises
    ------
    TypeProblem, SizeProblem, SyntaxProblem
        As `program` does; if there is no such law, or it does not fit; if a size is the length of no parameter.

    Examples
    --------
    >>> from lift_egraph.language import build
    >>> @function(commutative=True, neutral=0.0)
    ... def farther(a: "f32", b: "f32"):
    ...     return build.select(build.abs_(a) >= build.abs_(b), a, b)
    >>> [law.name for law in farther.laws]
    ['commutative', 'neutral']
    """
    if body is None:
        return lambda f: function(f, **laws)
    made = defined(body.__name__, program(body))
    declared = (law_of(n, body.__name__, made, None if a is True else a, _place(body)) for n, a in laws.items())
    return replace(made, laws=tuple(declared))


def alternative(
    of: Definition | ir.Program, /, *, where: Iterable[str] = (), on: str | None = None, **tunables: tuple[int, int]
) -> Callable[[Callable[..., Any]], ir.Alternative]:
    """Make another algorithm for a function, or for a program, of a Python function of the same inputs.

    Parameters
    ----------
    where
        Comparisons of sizes under which it may be taken: ``"n > chunk"``.
    on
        The kind of device that it is for, ``cpu`` or ``gpu``; all by default.
    tunables
        Sizes that the search chooses: the least, and the first number that is too large.

    Raises
    ------
    TypeProblem, SizeProblem, SyntaxProblem
        If it computes something of another type, is the function itself, or a size is unused or has no values.

    Examples
    --------
    >>> from lift_egraph.language import build
    >>> @function
    ... def total(xs: "[f32]n"):
    ...     return build.reduce_(build.add, 0.0, xs)
    >>> @alternative(total, chunk=(16, 65537), where=["n > chunk"])
    ... def in_chunks(xs):
    ...     return build.reduce_(build.add, 0.0, build.map_(total, build.split("chunk", xs)))
    >>> in_chunks.name, in_chunks.tunables
    ('total_in_chunks', (('chunk', 16, 65537),))
    """
    source = of.program if isinstance(of, Definition) else replace(of, sizes=(), laws=(), alternatives=())
    for n in tunables:
        if n in {*size_variables(source), *(i.name for i in source.inputs)}:
            raise TypeProblem(f"{n!r} is a name of {source.name} already; choose another")
    guards = [parsed(Source(text, "<where>"), "expr", _guard) for text in where]

    def make(body: Callable[..., Any]) -> ir.Alternative:
        name, sizes = f"{source.name}_{body.__name__}", {*size_variables(source), *tunables}
        made = make_program(name, source.inputs, lambda: body(*source.inputs), sizes)
        chosen = [(n, low, high) for n, (low, high) in tunables.items()]
        return alternative_of(name, source, made.body, chosen, guards, on, _place(body))

    return make


def _guard(tree: Tree) -> tuple[str, Nat, Nat]:
    match tree:
        case Tree("infix", (sign, left, right)) if sign in SIGNS:
            return sign, read_size(left, any_size), read_size(right, any_size)
    with located(tree.place):
        raise TypeProblem(f"a guard compares two sizes by {', '.join(SIGNS)}")


def _place(body: Callable[..., Any]) -> str:
    code = body.__code__
    return f"{code.co_filename}:{code.co_firstlineno}:1"
