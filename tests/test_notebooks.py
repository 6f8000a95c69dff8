"""Every notebook runs from its first cell to its last; what it states is asserted in its cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import DeviceProblem
from tests.depth import in_turn

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DAILY = ("04_learned_model", "05_reductions")  # what they say of models and kernels is tested nowhere else
LONGEST = 120  # seconds for one cell
# Children share what they import, as in other tests.
WARM = """
import atexit
from tests.warm import warm_children

warm = warm_children()
warm.__enter__()
atexit.register(warm.__exit__, None, None, None)
"""
# Models that are worse than users' take a part of the time to learn, and what cells assert of them holds as well.
FEW_TREES = """
from lift_egraph.learned import methods

methods.TREES = 2
"""
RESET = """
import sys

if "matplotlib.pyplot" in sys.modules:
    sys.modules["matplotlib.pyplot"].close("all")
get_ipython().reset(new_session=False)
"""


@pytest.fixture(scope="module", autouse=True)
def device() -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    try:
        find_device()
    except DeviceProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """A client with one kernel for all notebooks, which imports once; each notebook begins with no names of others."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    from nbformat.v4 import new_code_cell, new_notebook

    first = new_notebook(cells=[new_code_cell(WARM), new_code_cell(FEW_TREES)])
    resources = {"metadata": {"path": str(ROOT)}}
    client = nbclient.NotebookClient(first, timeout=LONGEST, kernel_name="python3", resources=resources)
    with client.setup_kernel():
        client.execute(cleanup_kc=False)
        yield client


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} > {"01_tour"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path: Path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert cells
    assert all(not c.outputs and c.execution_count is None for c in cells)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.stem in DAILY else in_turn(3)) for path in NOTEBOOKS],
)
def test_it_runs(path: Path, kernel: Any):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(RESET))
    kernel.nb = notebook
    kernel.execute(cleanup_kc=False)  # raises where a cell does
    assert any("assert " in c.source for c in notebook.cells)
    outputs = [output for c in notebook.cells if c.cell_type == "code" for output in c.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
