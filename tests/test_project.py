import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks.planted_faults import FAULTS, file_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
USE, CHANGE = "python -m pip install . && lift-egraph optimize mm", "python -m pip install -e '.[test]' && pytest"


def test_the_readme_has_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert USE in lines
    assert CHANGE in lines
    assert len(lines) <= 150


def test_ci_runs_the_test_command_last():
    script = (ROOT / ".ci/run").read_text()
    assert script.startswith("#!/usr/bin/env bash")
    assert script.rstrip().endswith("pytest")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_every_data_file_is_packaged():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    packages = [ROOT / name.replace(".", "/") for name in PROJECT["tool"]["setuptools"]["packages"]]
    for package in packages:
        files = {f for f in package.iterdir() if f.is_file() and f.suffix not in (".py", ".pyc")}
        assert files == {f for pattern in patterns for f in package.glob(pattern)}
    assert [p for p in packages if p.parent == ROOT and not (p / "py.typed").exists()] == []
    assert list((ROOT / "lift_egraph/programs").glob("*.lift"))


def test_every_package_is_listed():
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    top = {name.split(".")[0] for name in listed}
    found = {".".join(f.parent.relative_to(ROOT).parts) for name in top for f in (ROOT / name).rglob("*.py")}
    assert found <= listed


@pytest.mark.parametrize(
    "module", ["lift_egraph.codegen.running.run", "lift_egraph.codegen.plans.arrays", "lift_egraph.process.child"]
)
def test_running_kernels_needs_no_egglog(module):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}; print('egglog' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_every_fault_can_be_planted(fault):
    """Who changes the text that a fault replaces also changes the fault."""
    assert file_of(fault).suffix == ".py"
