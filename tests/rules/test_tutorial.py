"""What rules/fusion.py tells a reader to do works as it says: its file is checked, and its rule is seen in use."""

from __future__ import annotations

import doctest
import re
import runpy
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lift_egraph.cli.main import app
from lift_egraph.rules import fusion
from tests.depth import in_turn

BLOCKS = [textwrap.dedent(b) for b in re.findall(r"::\n\n((?: {4}.*\n|\n)+)", fusion.__doc__ or "")]
FILE, CHECK, CHECK_WRONG, RUN = BLOCKS
CONDITION, MISTAKE = "chunked(m, k)", "chunked(a, k)"


def shows(block: str, found: str) -> bool:
    """Whether a block of the text, a command and what it prints, shows what is printed, up to its ellipses."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(block.partition("\n")[2], found, flags)


@in_turn(6)
@pytest.mark.parametrize(
    ("name", "text", "block"), [("tiles.py", FILE, CHECK), ("wrong.py", FILE.replace(CONDITION, MISTAKE), CHECK_WRONG)]
)
def test_the_check_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, block: str):
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    command = block.partition("\n")[0].removeprefix("$ lift-egraph ").split()
    result = CliRunner().invoke(app, [*command, "--jobs", "1"])
    assert name in command
    assert result.exit_code == (name != "tiles.py"), result.output
    assert shows(block, result.stdout), result.stdout


@in_turn(3)
def test_the_example_is_seen_in_an_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert CONDITION in FILE
    (tmp_path / "tiles.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("tiles.py", run_name="__main__")
    printed = capsys.readouterr().out
    assert RUN.startswith("$ python tiles.py\n")
    assert shows(RUN, printed), printed
    assert "1. stencil_in_tiles at the whole: map (λp. b) (slide n s xs) = join" in printed
