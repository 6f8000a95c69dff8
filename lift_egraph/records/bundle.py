"""Bundles: the candidates of a search in one file, to be measured on a machine that has only NumPy and PyOpenCL.

A bundle is a ZIP archive that Python runs (``python BUNDLE``):

- ``__main__.py`` and the modules of ours that `lift_egraph.records.measure` needs;
- ``bundle.json``, `BundleFile`; for each candidate ``candidates/NNNN/kernel.cl``, ``launch.json`` and ``record.json``,
  the part of its record that is known beforehand;
- ``inputs/KIND/LEAF.npy``: the inputs; one that repeats a block of elements is that block alone;
- ``checks/KIND/LEAF/``: positions in a leaf of the result, the interpreter's values there, and their error bounds.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec
import numpy as np

import lift_egraph
from lift_egraph.codegen.plans.arrays import plan_texts
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.files import json_text, replacing
from lift_egraph.meaning.inputs import PERIOD
from lift_egraph.records.opened import BUNDLE, FORMAT
from lift_egraph.records.record import Part, Record, version_of

MODULES = (
    "errors.py",
    "records/__init__.py",
    "records/lines.py",
    "records/measure.py",
    "records/opened.py",
    "records/trial.py",
    "codegen/device_info.py",
    "codegen/running/__init__.py",
    "codegen/running/comparing.py",
    "codegen/running/facts.py",
    "codegen/running/host_cpu.py",
)
EMPTY = "__init__.py", "codegen/__init__.py"
MAIN = "import sys\n\nfrom lift_egraph.records.measure import main\n\nsys.exit(main(sys.argv[0]))\n"
KNOWN_LATER = (
    "format",
    "device",
    "versions",
    "host",
    "date",
    "validity",
    "reason",
    "samples",
    "runs",
    "median",
    "limit",
)


class BundleFile(Part, frozen=True):
    """``bundle.json``: how many candidates there are, the names of the sets of inputs, and the version that made it."""

    format: Literal[1]
    program: str
    count: int
    kinds: list[str]
    how: str
    version: str


@dataclass(frozen=True)
class Check:
    """Elements of a leaf of the result: their positions, row-major, their values, and their error bounds."""

    positions: np.ndarray
    values: np.ndarray
    bounds: np.ndarray


@dataclass(frozen=True)
class Content:
    """What a bundle holds: the candidates with their plans, and for each set of inputs the arrays of leaves by name."""

    program: str
    candidates: Sequence[tuple[Plan, Record]]
    inputs: Mapping[str, Mapping[str, np.ndarray]]
    checks: Mapping[str, Mapping[str, Check]]
    how: str


def write_bundle(path: Path, content: Content) -> None:
    """Write a bundle.

    Raises
    ------
    OutputProblem
        If it cannot be written; then what stood there still does.
    """
    root = Path(lift_egraph.__file__).parent
    head = BundleFile(
        FORMAT, content.program, len(content.candidates), list(content.inputs), content.how, version_of("lift-egraph")
    )
    with replacing(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", MAIN)
        for name in EMPTY:
            archive.writestr(f"lift_egraph/{name}", "")
        for name in MODULES:
            archive.writestr(f"lift_egraph/{name}", (root / name).read_text(encoding="utf-8"))
        archive.writestr(BUNDLE, json_text(head))
        for number, (plan, record) in enumerate(content.candidates):
            folder = f"candidates/{number:04}"
            for name, text in plan_texts(plan).items():
                archive.writestr(f"{folder}/{name}", text)
            stub = {name: value for name, value in msgspec.to_builtins(record).items() if name not in KNOWN_LATER}
            archive.writestr(f"{folder}/record.json", json_text(stub))
        for kind, leaves in content.inputs.items():
            for name, array in leaves.items():
                _write_array(archive, f"inputs/{kind}/{name}", shortened(array))
        for kind, checks in content.checks.items():
            for name, check in checks.items():
                for part, array in vars(check).items():
                    _write_array(archive, f"checks/{kind}/{name}/{part}", array)


def shortened(array: np.ndarray) -> np.ndarray:
    """An array, or the block that it repeats, where it is a large one that `lift_egraph.meaning.inputs` made."""
    flat = array.reshape(-1)
    if flat.size <= PERIOD or not np.array_equal(flat, np.resize(flat[:PERIOD], flat.shape)):
        return array
    return flat[:PERIOD]


def _write_array(archive: ZipFile, name: str, array: Any) -> None:
    memory = io.BytesIO()
    np.lib.format.write_array(memory, np.asanyarray(array), allow_pickle=False)
    archive.writestr(f"{name}.npy", memory.getvalue())
