"""The language's page: what it shows is read, and it shows all of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lift_egraph import language
from lift_egraph.language import build, functions, grammar, ir
from lift_egraph.language.elaboration import INFIX
from lift_egraph.language.grammar import Source, Tree, parse_tree
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import SCALAR_BYTES, WIDTHS

PAGE = Path(language.__file__).with_name("README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```lift\n(.*?)```", PAGE, re.DOTALL)
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
SPANS = [s for row in ROWS for s in re.findall(r"`([^`]+)`", row.replace(r"\|", "|").split(" | ")[0])]
SPANS += re.findall(r"`([a-z]+[23]d\([^`]*)`", PAGE)
INTERNAL = {"annotation"}  # not of programs
KINDS = {"constant": "number", "tuple_pattern": "pattern"}  # what a rule of the grammar makes, where not itself


def trees() -> Iterator[Any]:
    """The trees of all programs and examples on the page, each with all below it."""
    pending: list[Any] = [parse_tree(Source(p, "page"), "program") for p in PROGRAMS]
    types = [s for s in SPANS if re.match(r"\[|\(f32|[fiu]\d|bool", s)]
    pending += [parse_tree(Source(s, "page"), "type") for s in types]
    pending += [parse_tree(Source(s, "page"), "expr") for s in SPANS if s not in types]
    while pending:
        item = pending.pop()
        if isinstance(item, Tree):
            yield item
            pending += item.items
        elif isinstance(item, tuple):
            pending += item


@pytest.mark.parametrize("text", PROGRAMS, ids=lambda text: text.partition("(")[0].split()[-1])
def test_its_programs_are_right(text: str) -> None:
    parse_program(text)


def test_it_shows_all_of_the_grammar() -> None:
    rules = {name for name in vars(grammar._Trees) if not name.startswith("_")} - INTERNAL
    assert {KINDS.get(rule, rule) for rule in rules} - {tree.kind for tree in trees()} == set()


def test_it_names_every_operation_pattern_and_type() -> None:
    names = {tree.items[0] for tree in trees() if tree.kind in ("name", "named_type")}
    wanted = {*build.BUILTINS, *functions.PATTERN_NAMES, *OPERATIONS, *SCALAR_BYTES, *ir.BOUNDARIES}
    assert wanted | {"reverse", "stride"} <= names
    assert INFIX.keys() - {tree.items[0] for tree in trees() if tree.kind == "infix"} == set()
    words = set(re.findall(r"\w+", " ".join((*PROGRAMS, *SPANS))))
    assert functions.KEYWORDS - words == set()
    assert f"{', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]}" in PAGE


@pytest.mark.parametrize("node", ir.PATTERNS, ids=lambda node: node.__name__)
def test_types_are_the_signatures(node: type[ir.Expr]) -> None:
    assert any(f"`{node.signature.line}`" in row for row in ROWS)


def test_the_example_in_python() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {**vars(build), "nat": nat}
    exec(text, names)
    body = "map(fun row => reduce(add, 0.0, row) / K, A)"
    assert names["mean"] == parse_program(f"program mean(A: [[f32]K]N in 0..1) where N = 4096, K = 256 = {body}")
