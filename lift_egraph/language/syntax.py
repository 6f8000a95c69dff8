"""The text form of programs: reading ``*.lift`` and, with `lift_egraph.language.pretty`, printing it.

::

    -- Matrix multiplication (000, Listing 5.1)
    program mm(A: [[f32]K]M, B: [[f32]N]K) where M = 512, K = 512, N = 512 =
      map(fun row => map(fun col => reduce(add, 0.0, map(mul, zip(row, col))), transpose(B)), A)

Patterns have the thesis's names (``mapGlb(0, f, xs)``, ``toLocal(f)``); a pattern without its last
arguments is a function, and ``f . g`` composes. ``get(i, t)`` counts the components of a tuple of
any arity, ``rest(t)`` is all but the first. ``x: [f32]N in 0.1..10`` gives the range of an input
(`lift_egraph.language.ranges`). A size after ``where`` is ``N = 512``, or ``s = ?`` for one that has
no default and that the inputs' types don't mention. A size is a value too: ``sum / N``. What ``let``
binds may be a function: ``let f = fun d => 0.5 * d in map(f, xs)``. ``xs[i]`` is ``at(i, xs)`` for a
size, and for a computed index the element that `lookup` reads. A ``reduce``, ``scan`` or ``scanExclusive`` whose
accumulator has another type than the elements is a ``reduceSeq``, ``scanSeq`` or ``scanExclusiveSeq``. Types of
binders follow from what a function is applied to. Reading a text calls the functions of
`lift_egraph.language.build`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lift_egraph.files import read_text
from lift_egraph.language import functions, ir
from lift_egraph.language.elaboration import value_of
from lift_egraph.language.grammar import Source, Tree, parsed
from lift_egraph.language.heads import program_of
from lift_egraph.language.nat import Nat
from lift_egraph.language.pretty import print_program, print_term
from lift_egraph.language.scopes import outer_scope
from lift_egraph.language.type_text import any_size, parse_type, read_size
from lift_egraph.language.types import DataType

__all__ = ["parse_file", "parse_program", "parse_size", "parse_term", "parse_type", "print_program", "print_term"]


def parse_program(text: str, source: str = "<text>") -> ir.Program:
    """The program that a text denotes, checked.

    Parameters
    ----------
    text
        One program, with comments from ``--`` to the end of the line.
    source
        What messages call the text, a file name for example.

    Raises
    ------
    SyntaxProblem, TypeProblem, SizeProblem
        With line, column, the line and a caret.

    Examples
    --------
    >>> twice = parse_program("program twice(xs: [f32]N) where N = 8 = map(fun x => 2.0 * x, xs)")
    >>> twice.sizes
    (('N', 8),)
    """
    told = Source(text, source)
    return parsed(told, "program", lambda tree: program_of(tree, told))


def parse_file(path: str | Path) -> ir.Program:
    """The program in a file; see `parse_program`.

    Raises
    ------
    InputProblem
        If the file cannot be read.
    """
    return parse_program(read_text(Path(path)), str(path))


def parse_term(
    text: str, inputs: Mapping[str, DataType | str] | Sequence[ir.Input | ir.Var] = (), source: str = "<text>"
) -> ir.Expr:
    """The term that a text denotes, given the types of the names in it; any name may be a size.

    Raises
    ------
    SyntaxProblem, TypeProblem, SizeProblem
        With line, column, the line and a caret.

    Examples
    --------
    >>> print_term(parse_term("xs |> join", {"xs": "[[f32]4]N"}))
    Traceback (most recent call last):
        ...
    lift_egraph.errors.SyntaxProblem: <text>:1:4: '|>' cannot stand here; f of x is f(x)
      xs |> join
         ^
    >>> print_term(parse_term("(join . split(4))(xs)", {"xs": "[f32]16"}))
    'join(split(4, xs))'
    """
    if isinstance(inputs, Mapping):
        known = [ir.Input(name, parse_type(t) if isinstance(t, str) else t) for name, t in inputs.items()]
    else:
        known = list(inputs)

    def read(tree: Tree) -> ir.Expr:
        scope = outer_scope(known)
        with functions.opened(scope.values, scope.sizes):
            made = value_of(tree, scope)
        scope.met.require_right()
        return made

    return parsed(Source(text, source), "expr", read)


def parse_size(text: str) -> Nat:
    """The size or index expression that a text denotes.

    >>> print(parse_size("i / 2 + N * 3"))
    3 * N + (i / 2)
    """
    return parsed(Source(text, "<size>"), "expr", lambda tree: read_size(tree, any_size))
