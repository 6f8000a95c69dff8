"""The bundled stencils and what they are compared with: the same in NumPy, at small sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.api import evaluate, random_inputs, specialise

Inputs = Mapping[str, Any]


def around(grid: np.ndarray) -> np.ndarray:
    """The three times three neighbours of each point, as [row offset, column offset, row, column]."""
    padded = np.pad(grid.astype(np.float64), 1, mode="edge")
    rows, columns = grid.shape
    return np.array([[padded[i : i + rows, j : j + columns] for j in range(3)] for i in range(3)])


def windows(grid: np.ndarray, reach: int) -> np.ndarray:
    """The windows around each point, as [row, column, row offset, column offset]."""
    padded = np.pad(grid.astype(np.float64), reach, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, (2 * reach + 1, 2 * reach + 1))


def stencil2d(given: Inputs) -> np.ndarray:
    a = around(given["A"])
    cross, corners = a[0, 1] + a[1, 0] + a[1, 2] + a[2, 1], a[0, 0] + a[0, 2] + a[2, 0] + a[2, 2]
    return given["centre"] * a[1, 1] + given["cardinal"] * cross + given["diagonal"] * corners


def srad1(given: Inputs) -> np.ndarray:
    j, q = around(given["J"]), float(given["q"])
    changes = np.array([j[0, 1], j[2, 1], j[1, 0], j[1, 2]]) - j[1, 1]
    g, l = (changes**2).sum(0) / j[1, 1] ** 2, changes.sum(0) / j[1, 1]  # noqa: E741
    spread = (0.5 * g - l**2 / 16) / (1 + 0.25 * l) ** 2
    return np.clip(1 / (1 + (spread - q) / (q * (1 + q))), 0, 1)


def srad2(given: Inputs) -> np.ndarray:
    j, c = around(given["J"]), around(given["C"])
    flow = c[1, 1] * (j[0, 1] + j[1, 0] - 2 * j[1, 1]) + c[2, 1] * (j[2, 1] - j[1, 1]) + c[1, 2] * (j[1, 2] - j[1, 1])
    return j[1, 1] + 0.25 * given["rate"] * flow


def hotspot2d(given: Inputs) -> np.ndarray:
    t = around(given["T"])
    vertical, horizontal = t[0, 1] + t[2, 1] - 2 * t[1, 1], t[1, 0] + t[1, 2] - 2 * t[1, 1]
    change = given["P"] + given["ry"] * vertical + given["rx"] * horizontal + given["rz"] * (80 - t[1, 1])
    return t[1, 1] + given["step"] * change


def gradient(given: Inputs) -> np.ndarray:
    a = around(given["A"])
    return (0.0001 + sum((a[1, 1] - a[at]) ** 2 for at in ((0, 1), (1, 0), (1, 2), (2, 1)))) ** -0.5


def nbody(given: Inputs) -> np.ndarray:
    places = np.array([given[name] for name in ("xs", "ys", "zs")], np.float64)
    apart = places[:, None, :] - places[:, :, None]
    return (given["m"] * apart[0] * ((apart**2).sum(0) + 0.01) ** -1.5).sum(1)


IN_NUMPY: dict[str, Callable[[Inputs], np.ndarray]] = {
    "stencil2d": stencil2d,
    "srad1": srad1,
    "srad2": srad2,
    "hotspot2d": hotspot2d,
    "gradient": gradient,
    "j2d9pt": lambda given: around(given["A"]).mean((0, 1)),
    "gaussian": lambda given: windows(given["A"], 2).reshape(*given["A"].shape, 25) @ given["W"],
    "convolution": lambda given: np.tensordot(windows(given["A"], 8), given["W"], 2),
    "nbody": nbody,
}


@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_bundled_program_computes_what_it_says(name: str):
    source = programs.load(name)
    program = specialise(source, {size: 12 + 4 * k for k, (size, _) in enumerate(source.sizes)})
    given = random_inputs(program, 0, "float")
    np.testing.assert_allclose(evaluate(program.body, given), IN_NUMPY[name](given), rtol=2e-5, atol=2e-5)
