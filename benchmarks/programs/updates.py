"""What programs compute that change an array step by step, or look at squares of a picture twice, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

A = np.ndarray


def cache_hits(runs: A) -> A:
    count, every = np.zeros(len(runs), np.int32), np.arange(len(runs))
    lines = np.full((len(runs), 64), -1, np.int32)
    for addresses in runs.T:
        line, tag = addresses // 8 % 64, addresses // 512
        count += lines[every, line] == tag
        lines[every, line] = tag
    return count


def edit_distances(typed: A, meant: A) -> A:
    count, length = typed.shape
    row = np.tile(np.arange(length + 1, dtype=np.int32), (count, 1))
    for i in range(length):
        new = np.empty_like(row)
        new[:, 0] = i + 1
        cheaper = np.minimum(row[:, :-1] + (typed[:, i : i + 1] != meant), row[:, 1:] + 1)
        for j in range(length):
            new[:, j + 1] = np.minimum(new[:, j] + 1, cheaper[:, j])
        row = new
    return row[:, length]


def forward_substitution(lower: A, rhs: A) -> A:
    x = np.zeros_like(rhs)
    for i, row in enumerate(lower):
        x[:, i] = (rhs[:, i] - x[:, :i] @ row[:i]) / (row[i] + 1)
    return x


def gauss_jordan(matrices: A, rhs: A) -> A:
    return np.linalg.solve(matrices, rhs[..., None])[..., 0]


def knapsack(weights: A, values: A) -> A:
    best = np.zeros(5000, np.int32)
    for w, v in zip(weights, values, strict=True):
        new = best.copy()
        new[w:] = np.maximum(best[w:], best[:-w] + v)
        best = new
    return best


def _squares(image: A, take: Any, outside: int) -> A:
    m, n = image.shape
    p = np.pad(image, 2, constant_values=outside)
    rows = take.reduce([p[i : i + m] for i in range(5)])
    return take.reduce([rows[:, j : j + n] for j in range(5)])


def open_close(image: A) -> A:
    return image - _squares(_squares(image, np.minimum, 255), np.maximum, 0)


def sudoku_check(boards: A) -> tuple[A, A]:
    marks = 1 << boards.astype(np.int32)
    boxes = marks.reshape(-1, 3, 3, 3, 3).transpose(0, 1, 3, 2, 4).reshape(-1, 9, 9)
    groups = (marks, 2), (marks, 1), (boxes, 2)
    wrong = np.add.reduce([(np.bitwise_or.reduce(m, axis) != 1022).sum(1, dtype=np.int32) for m, axis in groups])
    return wrong == 0, wrong


UPDATES = {
    f.__name__: f
    for f in (cache_hits, edit_distances, forward_substitution, gauss_jordan, knapsack, open_close, sudoku_check)
}
