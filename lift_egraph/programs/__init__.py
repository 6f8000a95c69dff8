"""The bundled programs, one ``*.lift`` file each; the first line of a file describes it."""

from __future__ import annotations

from importlib.resources import files

from lift_egraph.errors import InputProblem
from lift_egraph.language.grammar import suggestion
from lift_egraph.language.ir import Program
from lift_egraph.language.syntax import parse_program


def names() -> tuple[str, ...]:
    """The names of the bundled programs.

    >>> names()[:3]
    ('asum', 'bfs', 'convolution')
    """
    found = (f.name for f in files(__name__).iterdir() if f.name.endswith(".lift"))
    return tuple(sorted(name.removesuffix(".lift") for name in found))


def load(name: str) -> Program:
    """A bundled program.

    >>> load("dot").sizes
    (('N', 16777216),)

    Raises
    ------
    InputProblem
        If there is no program of this name.
    """
    return parse_program(text(name), f"{name}.lift")


def describe(name: str) -> str:
    """One line about a bundled program.

    >>> describe("mm")
    'Matrix multiplication: A * B (000, Listing 5.1)'

    Raises
    ------
    InputProblem
        If there is no program of this name.
    """
    return text(name).partition("\n")[0].removeprefix("--").strip()


def text(name: str) -> str:
    """The text of a bundled program.

    Raises
    ------
    InputProblem
        If there is no program of this name.
    """
    if name not in names():
        hint = suggestion(name, names())
        raise InputProblem(f"there is no bundled program {name!r}{hint}; there are {', '.join(names())}")
    return (files(__name__) / f"{name}.lift").read_text(encoding="utf-8")
