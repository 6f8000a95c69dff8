"""What all commands have in common, in every version of Typer that the project allows."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import unwrap
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import pytest
import typer
from typer.main import get_command
from typer.models import OptionInfo

from lift_egraph.cli.main import app
from tests.command import lift


def built(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """All commands below a group, by their names, as Typer makes them."""
    for name, command in group.commands.items():
        yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from built(command, *path, name)


def written(group: typer.Typer) -> Iterator[Any]:
    """The functions of all commands, as they are written."""
    yield from (unwrap(command.callback) for command in group.registered_commands if command.callback)
    for below in group.registered_groups:
        yield from written(below.typer_instance)


COMMANDS = dict(built(get_command(app)))


def test_all_commands_are_looked_at():
    assert COMMANDS.keys() >= {"optimize", "collect", "rules check", "records export"}
    assert len([*written(app)]) == len([name for name, command in COMMANDS.items() if not hasattr(command, "commands")])


@pytest.mark.parametrize("name", COMMANDS)
def test_its_options_are_lower_case(name: str):
    names = [option for parameter in COMMANDS[name].params for option in parameter.opts if option.startswith("-")]
    assert names == [option.lower() for option in names]


@pytest.mark.parametrize("name", COMMANDS)
def test_it_has_help(name: str):
    shown = lift(*name.split(), "--help")
    assert shown.exit_code == 0, shown.output
    assert f"Usage: root {name} [OPTIONS]" in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_its_help_fills_the_lines(name: str, monkeypatch: pytest.MonkeyPatch):
    """Whatever the width of the terminal: line breaks within a paragraph of the source are none of the help's."""
    monkeypatch.setenv("COLUMNS", "70")
    told = [line.strip() for line in lift(*name.split(), "--help").stdout.partition("╭")[0].splitlines()]
    short = [line for line, below in pairwise(told) if line and below and len(line) + 1 + len(below.split()[0]) < 68]
    assert short == []


@pytest.mark.parametrize("function", [*written(app)], ids=lambda function: function.__name__)
def test_no_placeholder_could_be_taken_for_a_name(function: Any):
    """Typer 0.27 called an option --SECONDS that was written as ``seconds`` with the placeholder SECONDS."""
    for name, hint in get_type_hints(function, include_extras=True).items():
        for option in get_args(hint)[1:]:
            if isinstance(option, OptionInfo) and option.metavar and option.metavar.lower() == name:
                given = option.default, *(option.param_decls or ())  # the first name is where a default may stand
                assert f"--{name}" in given
