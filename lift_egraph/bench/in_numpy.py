"""The programs that libraries are made for, as a user of NumPy writes them. Calls take inputs by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
Call = Callable[..., Any]


def _jacobi(A: A) -> A:
    p, c = np.pad(A, 1, mode="edge"), slice(1, -1)
    return np.float32(0.2) * (p[:-2, c] + p[c, :-2] + p[c, c] + p[c, 2:] + p[2:, c])


def _box(A: A) -> A:
    p, (m, n) = np.pad(A, 1, mode="edge"), A.shape
    return sum(p[i : i + m, j : j + n] for i in range(3) for j in range(3)) / np.float32(9)  # pyright: ignore


def _laplace(A: A) -> A:
    p, c = np.pad(A, 1, mode="edge"), slice(1, -1)
    return p[2:, c, c] + p[:-2, c, c] + p[c, 2:, c] + p[c, :-2, c] + p[c, c, 2:] + p[c, c, :-2] - np.float32(6) * A


def _gauss(A: A, W: A) -> A:
    p, (m, n) = np.pad(A, 2, mode="edge"), A.shape
    return sum(W[5 * i + j] * p[i : i + m, j : j + n] for i in range(5) for j in range(5))  # pyright: ignore


def _convolved(X: A, F: A) -> A:
    patches = windows(np.pad(X, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2)).transpose(0, 3, 4, 1, 2)
    (channels, height, width), filters = X.shape, len(F)
    return (F.reshape(filters, -1) @ patches.reshape(9 * channels, -1)).reshape(filters, height, width)


def _softmax(X: A) -> A:
    e = np.exp(X - X.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _norm(X: A, g: A, b: A) -> A:
    return (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + np.float32(1e-5)) * g + b


def _horner(xs: A, k: Any) -> A:
    return np.asarray(xs @ np.float64(k) ** np.arange(len(xs) - 1, -1, -1), np.float32)


def _mss(xs: A) -> tuple[A, A]:
    after = np.cumsum(xs, dtype=np.float64)  # the sums of all that begin first
    least = np.minimum.accumulate(np.concatenate(([0.0], after[:-1])))
    found = (after - least).max(), after[-1] - least[-1]
    return np.asarray(found[0], np.float32), np.asarray(found[1], np.float32)


def _spmv(offsets: A, cols: A, values: A, x: A) -> A:
    products, lengths = values * x[cols], np.diff(offsets)
    sums = np.add.reduceat(np.append(products, np.float32(0)), np.minimum(offsets[:-1], len(products)))
    return np.where(lengths > 0, sums, np.float32(0))


def _kmeans(points: A, centres: A) -> tuple[A, A]:
    far = (centres * centres).sum(1)[:, None] - 2 * (centres @ points)  # and the squares of points, equal for all
    nearest = far.argmin(0).astype(np.int32)
    k = len(centres)
    sums = [np.bincount(nearest, weights=feature, minlength=k) for feature in points]
    return nearest, (np.array(sums) / np.maximum(np.bincount(nearest, minlength=k), 1)).astype(np.float32)


def _bfs(offsets: A, neighbours: A, source: Any) -> A:
    distance, far = np.full(len(offsets) - 1, 1000000, np.int32), np.int32(1000000)
    distance[source] = 0
    starts, empty = np.minimum(offsets[:-1], len(neighbours)), np.diff(offsets) == 0
    for _ in range(10):
        least = np.minimum.reduceat(np.append(distance[neighbours], far), starts)
        distance = np.minimum(distance, 1 + np.where(empty, far, least))
    return distance


CALLS: dict[str, Call] = {
    "mm": lambda A, B: A @ B,
    "mm_tn": lambda A, B: A.T @ B,
    "mm_nt": lambda A, B: A @ B.T,
    "dgemm": lambda A, B: A @ B.T,
    "mm_batch": lambda A, C: A @ C,
    "matvec": lambda A, x: A @ x,
    "vecmat": lambda A, x: A.T @ x,
    "asum": lambda x: np.abs(x).sum(),
    "dot": lambda x, y: x.dot(y),
    "scan": lambda xs: xs.cumsum(dtype=xs.dtype),
    "scan_f32": lambda xs: xs.cumsum(dtype=xs.dtype),
    "jacobi5": _jacobi,
    "gauss25": _gauss,
    "j2d9pt": _box,
    "laplace7": _laplace,
    "conv_layer": _convolved,
    "softmax_rows": _softmax,
    "norm_rows": _norm,
    "horner": _horner,
    "mss": _mss,
    "spmv": _spmv,
    "kmeans": _kmeans,
    "bfs": _bfs,
}
