"""A bundle, opened. Bundles take this module along."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lift_egraph.errors import InputProblem

FORMAT = 1
BUNDLE = "bundle.json"
_BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError, NotImplementedError)


class Bundle:
    """A bundle, opened; every byte of it is checked.

    Raises
    ------
    InputProblem
        If it cannot be read, is damaged, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as files:
                if BUNDLE not in files.namelist():
                    raise InputProblem(f"{path} is no bundle: it has no {BUNDLE}")
                if damaged := files.testzip():
                    raise InputProblem(f"{path} is damaged: the checksum of {damaged} is wrong")
            self.head = json.loads(self._read(BUNDLE))
            if self.head["format"] != FORMAT:
                raise InputProblem(f"{path} has the format {self.head['format']}, expected {FORMAT}: make it again")
            self.count = int(self.head["count"])
            self.stubs = [json.loads(self._read(f"{_folder(n)}/record.json")) for n in range(self.count)]
            self.points = [stub["point"] for stub in self.stubs]
        except FileNotFoundError:
            raise InputProblem(f"cannot read {path}: there is no such file") from None
        except OSError as problem:
            raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None
        except _BROKEN as problem:
            raise InputProblem(f"{path} is no bundle, or damaged: {problem}") from None

    def _read(self, name: str) -> bytes:
        with zipfile.ZipFile(self.path) as files:
            return files.read(name)

    def launch(self, number: int) -> dict[str, Any]:
        """The ``launch.json`` of a candidate."""
        return json.loads(self._read(f"{_folder(number)}/launch.json"))

    def source(self, number: int) -> str:
        """The kernels of a candidate."""
        return self._read(f"{_folder(number)}/kernel.cl").decode()

    def array(self, name: str) -> Any:
        """An array."""
        import numpy as np

        return np.load(io.BytesIO(self._read(f"{name}.npy")), allow_pickle=False)

    def checks(self, kind: str, leaf: str) -> Iterator[Any]:
        """For a leaf of the result: positions in it, the values there, and their error bounds."""
        for part in ("positions", "values", "bounds"):
            yield self.array(f"checks/{kind}/{leaf}/{part}")


def _folder(number: int) -> str:
    return f"candidates/{number:04}"


def leaf_name(place: Mapping[str, Any]) -> str:
    """The name of a leaf of an input or of the result in a bundle."""
    return ".".join((place["value"], *map(str, place["components"])))
