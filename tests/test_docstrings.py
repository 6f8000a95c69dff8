"""What public functions raise stands in their docstrings; a function whose name says it all needs none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lift_egraph import errors
from tests.depth import in_turn

ROOT = Path(__file__).parent.parent
ROOMS = [
    *(ROOT / name for name in ("codegen", "extract", "rules")),
    *(path for path in sorted((ROOT / "lift_egraph").iterdir()) if path.is_dir() and not path.is_symlink()),
]
ROOMS.remove(ROOT / "lift_egraph" / "cli")  # docstrings of commands are their help
PROBLEMS = {name for name, value in vars(errors).items() if isinstance(value, type)}


def public(body: list[ast.stmt], of: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The public functions and methods among statements, by their names."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield from public(statement.body, f"{of}{name}.")
            case ast.FunctionDef(name=name) if not name.startswith("_"):
                yield f"{of}{name}", statement


def raised(node: ast.AST) -> Iterator[str]:
    """The problems that statements raise themselves, but those of functions in them."""
    for part in ast.iter_child_nodes(node):
        match part:
            case ast.FunctionDef() | ast.Lambda():
                continue
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name in PROBLEMS:
                yield name
        yield from raised(part)


def missing(source: str) -> list[str]:
    """The public functions that have docstrings which do not name all that they raise."""
    functions = public(ast.parse(source).body) if "raise " in source else ()
    return [
        f"{name}: {problem}"
        for name, function in functions
        if (told := ast.get_docstring(function, clean=False))
        for problem in dict.fromkeys(raised(function))
        if problem not in told.partition("Raises\n")[2]
    ]


def test_a_docstring_that_does_not_say_it_is_found():
    body = "    raise TypeProblem('no')\n"
    assert missing(f'def f():\n    """It."""\n{body}') == ["f: TypeProblem"]
    assert missing(f'def f():\n    """It.\n\n    Raises\n    ------\n    TypeProblem\n    """\n{body}') == []
    assert missing(f'class A:\n  def _f():\n    """It."""\n{body}') == []


@in_turn(len(ROOMS))
@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_what_is_raised_is_told(room: Path):
    found = {path.name: missing(path.read_text(encoding="utf-8")) for path in room.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}
