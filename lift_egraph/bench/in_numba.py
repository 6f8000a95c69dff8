"""The programs that libraries are made for, in Numba: loops over cores, with float arithmetic that may be reordered.

Each function writes to arrays that are there before, as a kernel does. Stencils take rows as slices and treat borders
apart, so that the loops inside become vectors. `MAKERS` has the schedules of each program; the best of them counts.
"""

# pyright: basic, reportMissingImports=false, reportGeneralTypeIssues=false
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba import prange

FAR = 1000000
_loops = numba.njit(parallel=True, fastmath=True)
_plain = numba.njit(fastmath=True)
_ordered, _ordered_loops = numba.njit, numba.njit(parallel=True)  # with infinities


@_loops
def _asum(x, out):
    total = np.float32(0)
    for i in prange(len(x)):
        total += abs(x[i])
    out[0] = total


@_loops
def _dot(x, y, out):
    total = np.float32(0)
    for i in prange(len(x)):
        total += x[i] * y[i]
    out[0] = total


@_loops
def _matvec(A, x, out):
    for i in prange(A.shape[0]):
        row, total = A[i], np.float32(0)
        for j in range(len(x)):
            total += row[j] * x[j]
        out[i] = total


@_loops
def _jacobi_rows(A, out):
    m, n = A.shape
    fifth = np.float32(0.2)
    for i in prange(m):
        above = A[max(i - 1, 0)]
        row = A[i]
        below = A[min(i + 1, m - 1)]
        made = out[i]
        for j in range(n - 2):
            made[j + 1] = fifth * (above[j + 1] + row[j] + row[j + 1] + row[j + 2] + below[j + 1])
        made[0] = fifth * (above[0] + row[0] + row[0] + row[1] + below[0])
        made[n - 1] = fifth * (above[n - 1] + row[n - 2] + row[n - 1] + row[n - 1] + below[n - 1])


@_loops
def _box_rows(A, out):
    m, n = A.shape
    ninth = np.float32(1 / 9)
    for i in prange(m):
        a, b, c, made = A[max(i - 1, 0)], A[i], A[min(i + 1, m - 1)], out[i]
        for j in (0, n - 1):
            l, r = max(j - 1, 0), min(j + 1, n - 1)  # noqa: E741
            made[j] = ninth * (a[l] + a[j] + a[r] + b[l] + b[j] + b[r] + c[l] + c[j] + c[r])
        for j in range(n - 2):
            above, below = a[j] + a[j + 1] + a[j + 2], c[j] + c[j + 1] + c[j + 2]
            made[j + 1] = ninth * (above + b[j] + b[j + 1] + b[j + 2] + below)


@_plain
def _gauss_border(A, W, i, j):
    m, n = A.shape
    total = np.float32(0)
    for r in range(5):
        for k in range(5):
            total += W[5 * r + k] * A[min(max(i + r - 2, 0), m - 1), min(max(j + k - 2, 0), n - 1)]
    return total


@_loops
def _gauss_rows(A, W, out):
    m, n = A.shape
    for i in prange(m):
        a, b, c = A[max(i - 2, 0)], A[max(i - 1, 0)], A[i]
        d, e, made = A[min(i + 1, m - 1)], A[min(i + 2, m - 1)], out[i]
        f0, f1, f2, f3, f4, g0, g1, g2, g3, g4 = W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8], W[9]
        h0, h1, h2, h3, h4, k0, k1, k2, k3, k4 = W[10], W[11], W[12], W[13], W[14], W[15], W[16], W[17], W[18], W[19]
        l0, l1, l2, l3, l4 = W[20], W[21], W[22], W[23], W[24]
        for j in range(n - 4):
            total = f0 * a[j] + f1 * a[j + 1] + f2 * a[j + 2] + f3 * a[j + 3] + f4 * a[j + 4]
            total += g0 * b[j] + g1 * b[j + 1] + g2 * b[j + 2] + g3 * b[j + 3] + g4 * b[j + 4]
            total += h0 * c[j] + h1 * c[j + 1] + h2 * c[j + 2] + h3 * c[j + 3] + h4 * c[j + 4]
            total += k0 * d[j] + k1 * d[j + 1] + k2 * d[j + 2] + k3 * d[j + 3] + k4 * d[j + 4]
            made[j + 2] = total + l0 * e[j] + l1 * e[j + 1] + l2 * e[j + 2] + l3 * e[j + 3] + l4 * e[j + 4]
        for j in (0, 1, n - 2, n - 1):
            made[j] = _gauss_border(A, W, i, j)


@_loops
def _gauss_passes(A, W, out):
    """One pass over the row for each of the five rows around it: its sums stay in the cache."""
    m, n = A.shape
    for i in prange(m):
        made = out[i]
        made[:] = 0
        for r in range(5):
            row = A[min(max(i + r - 2, 0), m - 1)]
            v0, v1, v2, v3, v4 = W[5 * r], W[5 * r + 1], W[5 * r + 2], W[5 * r + 3], W[5 * r + 4]
            for j in range(n - 4):
                made[j + 2] += v0 * row[j] + v1 * row[j + 1] + v2 * row[j + 2] + v3 * row[j + 3] + v4 * row[j + 4]
        for j in (0, 1, n - 2, n - 1):
            made[j] = _gauss_border(A, W, i, j)


@_plain
def _laplace_row(A, i, j, made):
    m, n, k = A.shape
    six, row = np.float32(6), A[i, j]
    up, down, left, right = A[max(i - 1, 0), j], A[min(i + 1, m - 1), j], A[i, max(j - 1, 0)], A[i, min(j + 1, n - 1)]
    for l in (0, k - 1):  # noqa: E741
        made[l] = up[l] + down[l] + left[l] + right[l] + row[max(l - 1, 0)] + row[min(l + 1, k - 1)] - six * row[l]
    for l in range(k - 2):  # noqa: E741
        around = up[l + 1] + down[l + 1] + left[l + 1] + right[l + 1] + row[l] + row[l + 2]
        made[l + 1] = around - six * row[l + 1]


@_loops
def _laplace_planes(A, out):
    for i in prange(A.shape[0]):
        for j in range(A.shape[1]):
            _laplace_row(A, i, j, out[i, j])


@_loops
def _laplace_blocks(A, out):
    """Blocks of 32 rows of all planes: rows of the plane before are in the cache."""
    m, n, _ = A.shape
    for block in prange((n + 31) // 32):
        for i in range(m):
            for j in range(32 * block, min(32 * block + 32, n)):
                _laplace_row(A, i, j, out[i, j])


@_loops
def _softmax(X, out):
    for i in prange(X.shape[0]):
        row, made = X[i], out[i]
        top, total = row[0], np.float32(0)
        for j in range(len(row)):
            top = max(top, row[j])
        for j in range(len(row)):
            made[j] = np.exp(row[j] - top)
            total += made[j]
        scale = np.float32(1) / total
        for j in range(len(row)):
            made[j] *= scale


@_loops
def _norm(X, g, b, out):
    n = X.shape[1]
    for i in prange(X.shape[0]):
        row, made = X[i], out[i]
        total, squares = np.float32(0), np.float32(0)
        for j in range(n):
            total += row[j]
        mean = total / np.float32(n)
        for j in range(n):
            squares += (row[j] - mean) * (row[j] - mean)
        scale = np.float32(1) / np.sqrt(squares / np.float32(n) + np.float32(1e-5))
        for j in range(n):
            made[j] = (row[j] - mean) * scale * g[j] + b[j]


@_loops
def _convolved(X, F, padded, out):
    channels, height, width = X.shape
    for c in prange(channels):
        padded[c, 1 : height + 1, 1 : width + 1] = X[c]
    for o in prange(F.shape[0]):
        made = out[o]
        made[:] = 0
        for c in range(channels):
            w = F[o, c]
            p, q, r, s, t, u, v, y, z = w[0, 0], w[0, 1], w[0, 2], w[1, 0], w[1, 1], w[1, 2], w[2, 0], w[2, 1], w[2, 2]
            for i in range(height):
                a, b, d, row = padded[c, i], padded[c, i + 1], padded[c, i + 2], made[i]
                for j in range(width):
                    above = p * a[j] + q * a[j + 1] + r * a[j + 2]
                    here = s * b[j] + t * b[j + 1] + u * b[j + 2]
                    row[j] += above + here + v * d[j] + y * d[j + 1] + z * d[j + 2]


@_plain
def _scan_once(xs, out):
    total = xs[0] - xs[0]
    for i in range(len(xs)):
        total += xs[i]
        out[i] = total


@_loops
def _scan_chunks(xs, sums, out):
    chunk = (len(xs) + len(sums) - 1) // len(sums)
    for k in prange(len(sums)):
        sums[k] = xs[k * chunk : (k + 1) * chunk].sum()
    for k in prange(len(sums)):
        total = sums[:k].sum()
        for i in range(k * chunk, min((k + 1) * chunk, len(xs))):
            total += xs[i]
            out[i] = total


@_plain
def _horner_once(xs, k, out):
    total = np.float32(0)
    for x in xs:
        total = total * k + x
    out[0] = total


@_loops
def _horner_chunks(xs, k, sums, out):
    chunk = (len(xs) + len(sums) - 1) // len(sums)
    for part in prange(len(sums)):
        total = np.float32(0)
        for i in range(part * chunk, min((part + 1) * chunk, len(xs))):
            total = total * k + xs[i]
        sums[part] = total
    total = np.float32(0)
    for part in range(len(sums)):
        total = total * k ** max(min((part + 1) * chunk, len(xs)) - part * chunk, 0) + sums[part]
    out[0] = total


@_ordered
def _mss_once(xs, best, here):
    largest = ends = np.float32(-np.inf)
    for x in xs:
        ends = max(ends + x, x)
        largest = max(largest, ends)
    best[0], here[0] = largest, ends


@_ordered_loops
def _mss_chunks(xs, states, best, here):
    chunk = (len(xs) + len(states) - 1) // len(states)
    for part in prange(len(states)):
        whole = np.float32(0)
        first = last = anywhere = np.float32(-np.inf)
        for i in range(part * chunk, min((part + 1) * chunk, len(xs))):
            last = max(last + xs[i], xs[i])
            anywhere = max(anywhere, last)
            whole += xs[i]
            first = max(first, whole)
        states[part, 0], states[part, 1], states[part, 2], states[part, 3] = whole, first, last, anywhere
    largest = ends = np.float32(-np.inf)
    for part in range(len(states)):
        largest = max(largest, states[part, 3], ends + states[part, 1])
        ends = max(states[part, 2], ends + states[part, 0])
    best[0], here[0] = largest, ends


@_loops
def _spmv(offsets, cols, values, x, out):
    for i in prange(len(out)):
        total = np.float32(0)
        for k in range(offsets[i], offsets[i + 1]):
            total += values[k] * x[cols[k]]
        out[i] = total


@_loops
def _kmeans(points, centres, nearest, sums, counts, means):
    d, n = points.shape
    k, chunks = len(centres), len(sums)
    chunk = (n + chunks - 1) // chunks
    for part in prange(chunks):
        sums[part] = 0
        counts[part] = 0
        for begin in range(part * chunk, min((part + 1) * chunk, n), 1024):
            end = min(begin + 1024, (part + 1) * chunk, n)
            best, far = np.full(end - begin, np.float32(np.inf)), np.empty(end - begin, np.float32)
            for c in range(k):
                far[:] = 0
                for f in range(d):
                    row, at = points[f, begin:end], centres[c, f]
                    for i in range(end - begin):
                        far[i] += (row[i] - at) * (row[i] - at)
                for i in range(end - begin):
                    if far[i] < best[i]:
                        best[i] = far[i]
                        nearest[begin + i] = c
            for i in range(begin, end):
                counts[part, nearest[i]] += 1
            for f in range(d):
                for i in range(begin, end):
                    sums[part, f, nearest[i]] += points[f, i]
    for c in range(k):
        many = max(counts[:, c].sum(), 1)
        for f in range(d):
            means[f, c] = sums[:, f, c].sum() / np.float32(many)


@_loops
def _bfs(offsets, neighbours, source, old, new):
    n = len(old)
    for i in prange(n):
        old[i] = FAR
    old[source] = 0
    for _ in range(10):
        for i in prange(n):
            best = old[i] - 1
            for k in range(offsets[i], offsets[i + 1]):
                best = min(best, old[neighbours[k]])
            new[i] = best + 1
        old, new = new, old


Make = Callable[[Mapping[str, Any]], Callable[[], object]]


def _into(function: Callable[..., Any], room: Callable[..., Any], result: Callable[..., Any] | None = None) -> Make:
    """Calls of a function that writes to arrays; `room` makes these from the inputs, `result` picks among them."""

    def make(inputs: Mapping[str, Any]) -> Callable[[], object]:
        given = [np.ascontiguousarray(value) if np.ndim(value) else value for value in inputs.values()]
        made = room(*given)
        made = made if isinstance(made, tuple) else (made,)
        value = made[-1] if result is None else result(*made)

        def call() -> object:
            function(*given, *made)
            return value

        return call

    return make


def _one(*arrays: Any) -> Any:
    return np.empty(1, np.float32)


def _parts(*_: Any) -> Any:
    return np.empty(2 * numba.get_num_threads(), np.float32), np.empty(1, np.float32)


def _both(*made: Any) -> Any:
    return made[-2:]


def _like(array: Any, *_: Any) -> Any:
    return np.empty_like(array)


def _places(X: Any, F: Any) -> Any:
    channels, height, width = X.shape
    return np.zeros((channels, height + 2, width + 2), X.dtype), np.empty((len(F), height, width), X.dtype)


def _of_means(points: Any, centres: Any) -> Any:
    (d, n), k, parts = points.shape, len(centres), 2 * numba.get_num_threads()
    sums, counts = np.empty((parts, d, k), np.float32), np.empty((parts, k), np.int32)
    return np.empty(n, np.int32), sums, counts, np.empty((d, k), np.float32)


def _distances(offsets: Any, *_: Any) -> Any:
    return np.empty(len(offsets) - 1, np.int32), np.empty(len(offsets) - 1, np.int32)


_SCANS: dict[str, Make] = {
    "in order": _into(_scan_once, _like),
    "chunks": _into(_scan_chunks, lambda xs: (np.empty(2 * numba.get_num_threads(), xs.dtype), np.empty_like(xs))),
}
MAKERS: dict[str, dict[str, Make]] = {
    "asum": {"chunks": _into(_asum, _one)},
    "dot": {"chunks": _into(_dot, _one)},
    "matvec": {"rows": _into(_matvec, lambda A, x: np.empty(len(A), A.dtype))},
    "jacobi5": {"rows": _into(_jacobi_rows, _like)},
    "j2d9pt": {"rows": _into(_box_rows, _like)},
    "gauss25": {"rows": _into(_gauss_rows, _like), "passes": _into(_gauss_passes, _like)},
    "laplace7": {"planes": _into(_laplace_planes, _like), "blocks": _into(_laplace_blocks, _like)},
    "softmax_rows": {"rows": _into(_softmax, _like)},
    "norm_rows": {"rows": _into(_norm, _like)},
    "conv_layer": {"filters": _into(_convolved, _places)},
    "scan": _SCANS,
    "scan_f32": _SCANS,
    "horner": {"in order": _into(_horner_once, _one), "chunks": _into(_horner_chunks, _parts)},
    "mss": {
        "in order": _into(_mss_once, lambda xs: (_one(), _one()), _both),
        "chunks": _into(_mss_chunks, lambda xs: (np.empty((len(_parts()[0]), 4), np.float32), _one(), _one()), _both),
    },
    "spmv": {"rows": _into(_spmv, lambda offsets, *_: np.empty(len(offsets) - 1, np.float32))},
    "kmeans": {"chunks": _into(_kmeans, _of_means, lambda nearest, sums, counts, means: (nearest, means))},
    "bfs": {"vertices": _into(_bfs, _distances, lambda old, new: old)},
}
"""For each program the schedules: from its inputs, in the order of the program, to a call."""
