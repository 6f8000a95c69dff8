"""Every notebook runs from its first cell to its last; what it states is asserted in its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import DeviceProblem

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST = 120  # seconds for one cell
# What the first cell of a notebook does that starts many children: they share what they import, as in other tests.
WARM = "from tests.warm import warm_children; warm = warm_children(); warm.__enter__()"
MANY_CHILDREN = {"01_tour"}  # in others they begin as users' do


@pytest.fixture(scope="module", autouse=True)
def device() -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    try:
        find_device()
    except DeviceProblem as problem:
        pytest.skip(str(problem))


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} > MANY_CHILDREN


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path: Path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert cells
    assert all(not c.outputs and c.execution_count is None for c in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    notebook = nbformat.read(path, as_version=4)
    if path.stem in MANY_CHILDREN:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(WARM))
    client = nbclient.NotebookClient(
        notebook, timeout=LONGEST, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute()  # raises where a cell does
    assert any("assert " in c.source for c in notebook.cells)
    outputs = [output for c in notebook.cells if c.cell_type == "code" for output in c.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
