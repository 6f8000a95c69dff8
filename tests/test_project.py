from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from benchmarks.planted_faults import FAULTS, file_of
from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import DeviceProblem
from tests.depth import in_turn

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
USE, CHANGE = "python -m pip install . && lift-egraph optimize mm", "python -m pip install -e '.[test]' && pytest"
FOLDERS = ("lift_egraph", "rules", "extract", "codegen")


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


def build(kind: str, source: Path, target: Path) -> Path:
    """The file that setuptools makes of a source tree: an sdist or a wheel."""
    code = f"import sys, setuptools.build_meta as made; print(made.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(target)]
    printed = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True).stdout
    return target / printed.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is made of the sdist, as a package index has both."""
    pytest.importorskip("setuptools", minversion="77", reason="the project needs setuptools 77 or newer")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in FOLDERS:
        copytree(ROOT / name, source / name, symlinks=True, ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    with tarfile.open(build("sdist", source, folder)) as sdist:
        sdist.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("lift_egraph-*") if path.is_dir())
    return build("wheel", unpacked, folder)


def test_the_wheel_holds_all_files_under_one_name(wheel: Path):
    expected = {f"lift_egraph/{f.relative_to(ROOT)}" for name in FOLDERS[1:] for f in (ROOT / name).rglob("*.*")}
    expected |= {str(f.relative_to(ROOT)) for f in (ROOT / "lift_egraph").rglob("*.*")}
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == {name for name in expected if "__pycache__" not in name}


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # what is installed is what is tested
HOSTILE = "raise SystemExit(f'a file of the user was imported: {__file__}')\n"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The command of an installed wheel, and a folder whose files have the names of packages."""
    pytest.importorskip("pip", reason="pip is not installed")
    home = tmp_path_factory.mktemp("home")
    venv.create(home / "venv", symlinks=True)
    python = home / "venv/bin/python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--no-compile", str(wheel)], check=True, env=ENVIRONMENT)  # what is imported is compiled
    (packages,) = (home / "venv/lib").glob("python*/site-packages")
    dependencies = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies))
    (home / "work/extract").mkdir(parents=True)
    for name in ("rules.py", "extract/__init__.py", "codegen.py", "json.py"):
        (home / "work" / name).write_text(HOSTILE)
    return home / "venv/bin/lift-egraph", home / "work"


def lift(installed: tuple[Path, Path], *arguments: str) -> str:
    command, folder = installed
    result = subprocess.run(
        [command, *arguments], cwd=folder, env=ENVIRONMENT, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@in_turn(3)
def test_it_is_installed_beside_files_of_the_same_names(installed: tuple[Path, Path]):
    few = "--examples", "3", "--jobs", "1"
    assert "2 rules, 0 wrong" in lift(installed, "rules", "check", "split_join", "map_fusion", *few)


@in_turn(3)
def test_it_searches_beside_files_of_the_same_names(installed: tuple[Path, Path]):
    try:
        find_device()
    except DeviceProblem as problem:
        pytest.skip(str(problem))
    printed = lift(installed, "optimize", "asum", "--size", "N=4096", "--budget", "4", "--out", "out")
    assert "Valid: " in printed
    assert (installed[1] / "out/kernel.cl").exists()


@pytest.mark.parametrize(
    "module", ["lift_egraph.codegen.running.run", "lift_egraph.codegen.plans.arrays", "lift_egraph.process.child"]
)
def test_running_kernels_needs_neither_egglog_nor_pyopencl_in_the_parent(module):
    code = f"import sys, {module}; print({{'egglog', 'pyopencl'}} & {{*sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_every_fault_can_be_planted(fault):
    """Who changes the text that a fault replaces also changes the fault."""
    assert file_of(fault).suffix == ".py"
