"""Reading a user's rule file so that one wrong rule does not hide the others.

The file runs statement by statement: one that fails becomes a problem with its line, and the next runs all the same.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from lift_egraph.egraph.rule import Rule
from lift_egraph.errors import InputProblem, RuleProblem


def load_rules(path: str | Path) -> tuple[tuple[Rule, ...], tuple[RuleProblem, ...]]:
    """The rules that a Python file defines, in order, and what went wrong in it.

    Rules that it imports are not its own. Modules beside it can be imported.

    Raises
    ------
    InputProblem
        If the file cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise InputProblem(f"{path} is no text in UTF-8: {problem.reason}") from None
    try:
        tree = ast.parse(text, filename=str(path))
    except SyntaxError as problem:
        return (), (RuleProblem(path.name, f"{path}:{problem.lineno or 1}", f"SyntaxError: {problem.msg}"),)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        problems = tuple(_run(tree, module, path))
    finally:
        sys.path.remove(str(path.resolve().parent))
    own = {id(r): r for r in vars(module).values() if isinstance(r, Rule) and r.body.__code__.co_filename == str(path)}
    rules = tuple(sorted(own.values(), key=lambda r: r.body.__code__.co_firstlineno))
    if not rules and not problems:
        problems = (RuleProblem(path.name, f"{path}:1", "it defines no rules: put @rule above a function"),)
    return rules, problems


def _run(tree: ast.Module, module: ModuleType, path: Path) -> Iterator[RuleProblem]:
    flags = 0
    lost: set[str] = set()
    for statement in _statements(tree):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            flags |= sum(getattr(__future__, alias.name).compiler_flag for alias in statement.names)
        code = compile(ast.Module([statement], []), str(path), "exec", flags, dont_inherit=True)
        try:
            exec(code, vars(module))
        except (Exception, SystemExit) as problem:  # anything that a user's file may raise
            known = isinstance(problem, NameError) and problem.name in lost
            lost |= _bound(statement)
            if not known:
                name = statement.name if isinstance(statement, ast.FunctionDef) else path.name
                place = f"{path}:{line_in(problem, path) or statement.lineno}"
                yield RuleProblem(name, place, f"{type(problem).__name__}: {problem}")


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a file; an import of several names is one statement for each."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
            for alias in statement.names:
                yield ast.copy_location(ast.ImportFrom(statement.module, [alias], statement.level), alias)
        else:
            yield statement


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement would have bound."""
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        found.add(statement.name)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        found |= {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    return found


def line_in(problem: BaseException, path: str | Path) -> int | None:
    """The line of a file at which an exception was raised, the innermost one."""
    found = None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
