"""Reading a user's rule file so that one wrong rule does not hide the others, and finding a rule of it again.

The file runs statement by statement: one that fails becomes a problem with its line, and the next runs all the same.
It is run in child processes only: what stands for its rules elsewhere are their names (`RuleIn`).
"""

from __future__ import annotations
import __future__

import ast
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from lift_egraph.egraph.alternatives import AlternativeRule, rule_named
from lift_egraph.egraph.rule import Rule
from lift_egraph.errors import InputProblem, RuleProblem
from lift_egraph.files import read_text
from lift_egraph.language.ir import Alternative
from lift_egraph.language.syntax import parse_file


def load_rules(path: str | Path) -> tuple[tuple[Rule, ...], tuple[RuleProblem, ...]]:
    """The rules that a Python file defines, in order, and what went wrong in it.

    Rules that it imports are not its own. Modules beside it can be imported.

    Raises
    ------
    InputProblem
        If the file cannot be read.
    """
    path = Path(path)
    text = read_text(path)
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


@dataclass(frozen=True)
class RuleFile:
    """A file with rules, and the SHA-256 of what it said when it was given, in hexadecimal."""

    path: str
    digest: str

    @classmethod
    def at(cls, path: str | Path) -> RuleFile:
        """The file as it is now.

        Raises
        ------
        InputProblem
            If it cannot be read.
        """
        path = Path(path)
        if path.exists() and not path.is_file():  # a pipe has no end
            raise InputProblem(f"cannot read {path}: it is no file")
        try:
            return cls(str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest())
        except OSError as problem:
            raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None

    def rules(self) -> dict[str, Rule]:
        """Its rules by name; the file is run once in a process.

        Raises
        ------
        RuleProblem
            If it is gone or says something else by now, or something in it fails.
        """
        return _rules_in(self)


def rules_in(path: str | Path) -> dict[str, Rule]:
    """The rules of a file by name; it is run once in a process.

    Raises
    ------
    InputProblem
        If it cannot be read.
    RuleProblem
        If something in it fails.
    """
    return RuleFile.at(path).rules()


@cache
def _rules_in(file: RuleFile) -> dict[str, Rule]:
    _require_unchanged(file)
    rules, problems = load_rules(file.path)
    if problems:
        raise problems[0]
    return {r.name: r for r in rules}


@cache
def _alternatives_in(file: RuleFile) -> tuple[Alternative, ...]:
    _require_unchanged(file)
    return parse_file(file.path).alternatives


def _require_unchanged(file: RuleFile) -> None:
    name = Path(file.path).name
    try:
        now = RuleFile.at(file.path)
    except InputProblem as problem:
        raise RuleProblem(name, file.path, f"rules of it were used in a search, and it is gone: {problem}") from None
    if now != file:
        raise RuleProblem(
            name, file.path, "it has changed since rules of it were used in a search: put it back as it was"
        )


@dataclass(frozen=True)
class RuleIn:
    """A rule by its name and the file that it stands in; None for one that a program gave, and that is in no file."""

    name: str
    file: RuleFile | None

    def load(self) -> Rule:
        """The rule; its file is run in this process.

        Raises
        ------
        RuleProblem
            If it is not to be found as it was.
        """
        if self.file is None:
            raise RuleProblem(
                self.name, "in no file", "a program gave it to the search: its own `explain_candidate` knows the rule"
            )
        if Path(self.file.path).suffix == ".lift":
            found = rule_named(self.name, _alternatives_in(self.file))
        else:
            found = self.file.rules().get(self.name)
        if found is None:
            raise RuleProblem(self.name, self.file.path, "the file holds no rule of this name")
        return found


OwnRule = Rule | RuleIn
"""A rule that is in no phase by itself."""


def rule_of(own: OwnRule) -> Rule:
    """The rule itself."""
    return own.load() if isinstance(own, RuleIn) else own


def reference_to(rule: Rule) -> RuleIn:
    """Where a rule can be found again: in its file, unless that is the program that runs, or a cell of a notebook."""
    if isinstance(rule, AlternativeRule):
        return RuleIn(rule.name, RuleFile.at(rule.file) if rule.file else None)
    path = Path(rule.body.__code__.co_filename)
    is_program = rule.body.__module__ == "__main__"
    return RuleIn(rule.name, RuleFile.at(path) if path.is_file() and not is_program else None)
