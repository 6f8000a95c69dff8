"""What each program computes, in NumPy as its users write it: the peers of the kernels found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

from .borders import BORDERS
from .fields import FIELDS
from .findings import FINDINGS
from .groups import GROUPS
from .inner_loops import INNER_LOOPS
from .motions import MOTIONS
from .pipelines import PIPELINES
from .precisions import PRECISIONS
from .states import STATES
from .streams import STREAMS
from .studies import STUDIES
from .surveys import SURVEYS
from .trades import TRADES
from .updates import UPDATES

A = np.ndarray


def _edge(a: A, mode: Any = "edge") -> A:
    return np.pad(a, 1, mode=mode)


def _box(a: A) -> A:
    p = _edge(a)
    m, n = a.shape
    return sum(p[i : i + m, j : j + n] for i in range(3) for j in range(3)) / np.float32(9)  # pyright: ignore


def _thirds(a: A) -> A:
    p = np.concatenate((a[:1], a, a[-1:]))
    return np.float32(0.25) * p[:-2] + np.float32(0.5) * p[1:-1] + np.float32(0.25) * p[2:]


def _softmax(x: A) -> A:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _brackets(text: A) -> tuple[Any, tuple[Any, Any]]:
    depth = np.choose(text, (np.int32(1), np.int32(-1), np.int32(0))).cumsum(dtype=np.int32)
    return depth[-1], (max(depth.max(), 0), depth.min() >= 0 and depth[-1] == 0)


def _comment_letters(text: A) -> Any:
    """Where a state stays what it is does not matter; each place is in a comment that is still open there."""
    letters = text.astype(np.uint8).tobytes()
    found, place = 0, letters.find(b"/*")
    while place >= 0:
        end = letters.find(b"*/", place + 2)
        found += (len(letters) if end < 0 else end + 1) - (place + 1)
        place = letters.find(b"/*", end + 2) if end >= 0 else -1
    return found


def _thermostat(t: A) -> A:
    known = np.where(t < 18, 1, np.where(t >= 22, 0, -1))
    last = np.maximum.accumulate(np.where(known >= 0, np.arange(len(t)), -1))
    return (last >= 0) & (known[last] == 1)


def _rising_run(x: A) -> Any:
    breaks = np.concatenate(([0], np.flatnonzero(x[1:] <= x[:-1]) + 1, [len(x)]))
    return np.diff(breaks).max()


def _compaction(xs: A, threshold: Any) -> tuple[A, Any]:
    kept = xs[xs > threshold]
    return np.pad(kept, (0, len(xs) - len(kept))), len(kept)


def _run_starts(s: A) -> tuple[A, Any]:
    starts = np.flatnonzero(np.diff(s, prepend=s[0] - 1)).astype(np.int32)
    return np.pad(starts, (0, len(s) - len(starts))), len(starts)


def _argmax_so_far(x: A) -> tuple[A, A]:
    most = np.maximum.accumulate(x)
    is_new = x > np.concatenate(([-np.inf], most[:-1]))
    return most, np.maximum.accumulate(np.where(is_new, np.arange(len(x), dtype=np.int32), 0))


def _biquads(x: A) -> A:
    for _ in range(2):
        made, s, t = np.empty_like(x), 0.0, 0.0
        for i, v in enumerate(x.tolist()):
            made[i] = out = 0.2 * v + s
            s, t = 0.3 * v - 0.4 * out + t, 0.2 * v + 0.1 * out
        x = made
    return x


def _cross_entropy(logits: A, label: A) -> Any:
    most = logits.max(1)
    return (most + np.log(np.exp(logits - most[:, None]).sum(1)) - logits[np.arange(len(label)), label]).mean()


def _spmv_csr(offsets: A, cols: A, values: A, x: A) -> A:
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.bincount(rows, values * x[cols], len(offsets) - 1)


def _stencil_life(cells: A) -> A:
    p = np.pad(cells, 1)
    m, n = cells.shape
    around = sum(p[i : i + m, j : j + n] for i in range(3) for j in range(3)) - cells
    return np.where(around == 3, 1, np.where(around == 2, cells, 0)).astype(np.int32)


def _laplace3d(u: A) -> A:
    p, c = _edge(u), slice(1, -1)
    return p[2:, c, c] + p[:-2, c, c] + p[c, 2:, c] + p[c, :-2, c] + p[c, c, 2:] + p[c, c, :-2] - np.float32(6) * u


def _heat(u: A, k: Any) -> A:
    p, c = _edge(u), slice(1, -1)
    return u + k * (p[2:, c] + p[:-2, c] + p[c, 2:] + p[c, :-2] - np.float32(4) * u)


def _heat_steps(u: A, k: Any) -> A:
    for _ in range(50):
        u = _heat(u, k)
    return u


def _life_steps(cells: A) -> A:
    m, n = cells.shape
    for _ in range(30):
        p = _edge(cells, "wrap")
        around = sum(p[i : i + m, j : j + n] for i in range(3) for j in range(3)) - cells
        cells = np.where(around == 3, 1, np.where(around == 2, cells, 0)).astype(np.int32)
    return cells


def _pagerank(links: A, r: A) -> A:
    for _ in range(20):
        r = np.float32(0.15 / len(r)) + np.float32(0.85) * (links @ r)
    return r


def _power_iteration(a: A, x: A) -> A:
    for _ in range(20):
        x = a @ x
        x = x / np.sqrt((x * x).sum())
    return x


def _jacobi_dense(a: A, b: A, d: A, x: A) -> A:
    for _ in range(25):
        x = x + (b - a @ x) / d
    return x


def _grad(a: A) -> A:
    p, c = _edge(a), slice(1, -1)
    return np.hypot(p[c, 2:] - p[c, :-2], p[2:, c] - p[:-2, c])


def _sobel(a: A) -> A:
    p = _edge(_box(a))
    down = p[2:] - p[:-2]
    right = p[:, 2:] - p[:, :-2]
    gx = right[:-2] + 2 * right[1:-1] + right[2:]
    gy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return np.sqrt(gx * gx + gy * gy)


def _jacobi(x: A) -> A:
    for _ in range(8):
        p = _edge(x)
        x = np.float32(0.5) * (p[:-2] + p[2:])
    return x


def _black_scholes(s: A, x: A, t: A, r: Any, v: Any) -> A:
    def cnd(d: A) -> A:
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(np.float32(-1.5976) * d - np.float32(0.07056) * d * d * d))

    d = (np.log(s / x) + (r + v * v / 2) * t) / (v * np.sqrt(t))
    return s * cnd(d) - x * np.exp(-r * t) * cnd(d - v * np.sqrt(t))


def _nbody(xs: A, ys: A, m: A) -> A:
    dx, dy = xs[None] - xs[:, None], ys[None] - ys[:, None]
    d = dx * dx + dy * dy + np.float32(0.01)
    return (m * dx / np.sqrt(d * d * d)).sum(1)


def _mandelbrot(re: A, im: A) -> A:
    x, y = re[None], im[:, None]
    a = b = np.zeros((im.size, re.size), np.float32)
    for _ in range(6):
        a, b = np.clip(a * a - b * b + x, -2, 2), np.clip(2 * a * b + y, -2, 2)
    return a * a + b * b


def _horner(c: A, x: A) -> A:
    total = np.zeros_like(x)
    for number in c:
        total = total * x + number
    return total


def _along_rows(rows: A, state: Any, step: Callable[..., Any]) -> Any:
    """A fold of all rows at once, from left to right."""
    for column in np.moveaxis(rows, -1, 0):
        state = step(state, column)
    return state


def _level(rows: A, a: Any) -> A:
    return _along_rows(rows, np.zeros(rows.shape[:-1], rows.dtype), lambda s, x: s + a * (x - s))


def _channels(samples: A, a: A) -> tuple[Any, ...]:
    loud = np.abs(samples)
    changes = (samples[:, :-1] * samples[:, 1:] < 0).sum(1)
    return ((loud.max(1), loud.argmax(1)), (changes, _level(samples, a)))


def _segment_sums(rows: A) -> tuple[A, A]:
    def step(state: tuple[A, A], x: A) -> tuple[A, A]:
        ends = np.maximum(state[1] + x, x)
        return np.maximum(state[0], ends), ends

    start = np.full(len(rows), -np.inf, rows.dtype)
    return _along_rows(rows, (start, start), step)


def _smoothed(rows: A, alpha: A) -> A:
    made, state = np.empty_like(rows), np.zeros(len(rows), rows.dtype)
    for i, column in enumerate(rows.T):
        made[:, i] = state = state + alpha * (column - state)
    return made


def _longest_runs(rows: A) -> A:
    def step(state: tuple[A, A], x: A) -> tuple[A, A]:
        now = np.where(x > 0, state[1] + np.float32(1), np.float32(0))
        return np.maximum(state[0], now), now

    start = np.zeros(len(rows), rows.dtype)
    return _along_rows(rows, (start, start), step)[0]


def _interest(rates: A, payments: A) -> A:
    left = np.zeros(len(rates), rates.dtype)
    for rate, payment in zip(rates.T, payments.T, strict=True):
        left = rate * left + payment
    return left


def _decayed(signals: A, k: A) -> A:
    left = _along_rows(signals, np.zeros(signals.shape[:-1], signals.dtype), lambda s, x: s * k + x)
    return 2 * np.maximum(0, left - np.float32(0.5))


def _covariance(x: A) -> A:
    c = x - x.mean(0)
    return c.T @ c / np.float32(len(x) - 1)


def _distances(p: A, c: A) -> A:
    return ((p[:, None] - c[None]) ** 2).sum(-1)


def _leapfrog(x: A, v: A, f: A, dt: Any) -> tuple[A, A]:
    w = v + f * (dt / 2)
    return w, x + dt * w


def _segmented_sum(starts: A, xs: A) -> A:
    total = xs.cumsum(dtype=np.float64)
    begins = np.maximum.accumulate(np.where(starts > 0, np.arange(len(xs)), 0))
    return (total - (total - xs)[begins]).astype(np.float32)


def _bitonic(x: A) -> A:
    i = np.arange(len(x))
    other = x.reshape(-1, 2, 16)[:, ::-1].reshape(-1)
    return np.where((i % 32 < 16) == (i // 64 % 2 == 0), np.minimum(x, other), np.maximum(x, other))


def _dft(z: Any) -> tuple[A, A]:
    made = np.fft.fft(z[0] + 1j * z[1])
    return made.real, made.imag


def _lattice_boltzmann(f: A, omega: Any) -> Any:
    cx, cy = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1]), np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    weights = np.repeat([0.4444444, 0.1111111, 0.0277778], [1, 4, 4])
    rho = f.sum(-1, keepdims=True)
    ux, uy = (f * cx).sum(-1, keepdims=True) / rho, (f * cy).sum(-1, keepdims=True) / rho
    cu, squares = 3 * (cx * ux + cy * uy), ux * ux + uy * uy
    f = f + omega * (weights * rho * (1 + cu + 0.5 * cu * cu - 1.5 * squares) - f)
    moved = [np.roll(f[..., q], (y, x), (0, 1)) for q, (x, y) in enumerate(zip(cx, cy, strict=True))]
    made: Any = moved.pop()
    while moved:
        made = moved.pop(), made
    return made


def _hash_floats(seed: Any, n: int = 1000003) -> Any:
    x = np.arange(n, dtype=np.uint32) + np.uint32(seed)
    x = (x ^ (x >> 16)) * np.uint32(2146121005)
    x = (x ^ (x >> 15)) * np.uint32(2221713035)
    return ((x ^ (x >> 16)) >> 8).astype(np.float32).mean() / 16777216


def _queens(boards: A) -> A:
    columns = boards // 7 ** np.arange(7)[:, None] % 7
    rows = [(columns[j] - columns[i], j - i) for i in range(7) for j in range(i + 1, 7)]
    return np.all([(d != 0) & (np.abs(d) != apart) for d, apart in rows], axis=0)


def _group_means(group: A, value: A, groups: int = 101) -> A:
    counts = np.bincount(group, minlength=groups)
    return np.bincount(group, value, groups) / np.maximum(counts, 1)


def _nearest_sphere(rays: Any, spheres: Any) -> tuple[A, A]:
    d, (x, y, z, r) = np.stack((rays[0], *rays[1])), (spheres[0], spheres[1][0], *spheres[1][1])
    b = d.T @ np.stack((x, y, z))
    disc = b * b - (x * x + y * y + z * z - r * r) * (d * d).sum(0)[:, None]
    t = np.where(disc > 0, b - np.sqrt(np.abs(disc)), np.inf)
    nearest = t.argmin(1)
    best = t[np.arange(len(t)), nearest]
    return best, np.where(best < np.inf, nearest, -1)


def _csr_filter(offsets: A, cols: A, vals: A, eps: Any) -> tuple[Any, ...]:
    keep = np.abs(vals) > eps
    before, rest = np.concatenate(([0], np.cumsum(keep, dtype=np.int32))), len(vals) - int(keep.sum())
    return before[offsets], (np.pad(cols[keep], (0, rest)), (np.pad(vals[keep], (0, rest)), before[-1]))


def _run_lengths(s: A) -> tuple[Any, ...]:
    starts, count = _run_starts(s)
    lengths = np.diff(starts[:count], append=len(s)).astype(np.int32)
    behind = (0, len(s) - count)
    return starts, (np.pad(s[starts[:count]], behind), (np.pad(lengths, behind), count))


def _log_sum_exp(x: A) -> A:
    most = x.max(1)
    return most + np.log(np.exp(x - most[:, None]).sum(1))


def _peak_meter(x: A, fall: Any) -> A:
    made, level = np.empty_like(x), 0.0
    for i, v in enumerate(np.abs(x).tolist()):
        made[i] = level = max(v, level * float(fall))
    return made


def _resonator(x: A, c: Any) -> A:
    made, y, w = np.empty_like(x), 0.0, 0.0
    for i, v in enumerate(x.tolist()):
        made[i] = next_y = v + float(c) * y - 0.5 * w
        y, w = next_y, y
    return made


PEERS: dict[str, Callable[..., Any]] = {
    **BORDERS,
    **FIELDS,
    **FINDINGS,
    **INNER_LOOPS,
    **PIPELINES,
    **PRECISIONS,
    **GROUPS,
    **MOTIONS,
    **STATES,
    **STREAMS,
    **STUDIES,
    **SURVEYS,
    **TRADES,
    **UPDATES,
    "argmax_so_far": _argmax_so_far,
    "atax": lambda A, x: A.T @ (A @ x),
    "attention_scores": lambda Q, K: _softmax(Q @ K.T * np.float32(0.125)),
    "axpy": lambda a, x, y: a * x + y,
    "batch_norm": lambda X: (X - X.mean(0)) / np.sqrt(X.var(0) + np.float32(1e-5)),
    "best_trade": lambda price: max((price[1:] - np.minimum.accumulate(price)[:-1]).max(), 0),
    "bicg": lambda A, p, r: (A @ p, A.T @ r),
    "biquads": _biquads,
    "bitonic_step": _bitonic,
    "black_scholes": _black_scholes,
    "blur_sobel": _sobel,
    "box9": _box,
    "brackets": _brackets,
    "channels": _channels,
    "column_max": lambda A: A.max(0),
    "comment_letters": _comment_letters,
    "compaction": _compaction,
    "compaction_offsets": lambda xs, threshold: np.cumsum(xs > threshold, dtype=np.int32) - (xs > threshold),
    "conv5": lambda A, mask: np.einsum("ijkl,kl->ij", windows(A, (5, 5)), mask),
    "cosine": lambda X, Y: (X @ Y.T) / np.sqrt((X * X).sum(1)[:, None] * (Y * Y).sum(1)),
    "covariance": _covariance,
    "cross_entropy": _cross_entropy,
    "csr_filter": _csr_filter,
    "decay_batches": _decayed,
    "degree_counts": lambda known, src: np.bincount(
        np.minimum(known + np.bincount(src, minlength=len(known)), 63), minlength=64
    ),
    "dense_relu": lambda W, b, X: np.maximum(X @ W.T + b, 0),
    "dft": _dft,
    "distances": _distances,
    "downsample": lambda A: np.float32(0.25) * (A[::2, ::2] + A[::2, 1::2] + A[1::2, ::2] + A[1::2, 1::2]),
    "embedding_bags": lambda table, tokens: table[tokens].mean(1),
    "ema_channels": _smoothed,
    "energy": lambda m, vx, vy, vz: np.float32(0.5) * (m * (vx * vx + vy * vy + vz * vz)).sum(),
    "flip_blend": lambda A: np.float32(0.5) * (A + A[:, ::-1]),
    "gather_add": lambda table, places, y: table[places] + y,
    "gelu": lambda x: (
        np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))
    ),
    "gemvt": lambda A, x: A.T @ x,
    "ger": lambda alpha, x, y, A: A + alpha * np.outer(x, y),
    "gesummv": lambda A, B, x, alpha, beta: alpha * (A @ x) + beta * (B @ x),
    "grad_magnitude": _grad,
    "grey": lambda R, G, B: np.float32(0.299) * R + np.float32(0.587) * G + np.float32(0.114) * B,
    "group_means": _group_means,
    "haar": lambda x: ((x[::2] + x[1::2]) * np.float32(0.5), (x[::2] - x[1::2]) * np.float32(0.5)),
    "hash_floats": _hash_floats,
    "hash_rows": lambda texts: _along_rows(texts, np.full(len(texts), 7, np.int32), lambda h, c: h * np.int32(31) + c),
    "heat2d": _heat,
    "heat_steps": _heat_steps,
    "histogram256": lambda x: np.histogram(x, 256, (0, 1))[0],
    "histogram8": lambda x, low, high: ((x >= low[:, None]) & (x < high[:, None])).sum(1, dtype=np.int32),
    "histogram_offsets": lambda counts: np.cumsum(counts, dtype=np.int32) - counts,
    "horner": _horner,
    "interest_rows": _interest,
    "jacobi_dense": _jacobi_dense,
    "jacobi_steps": _jacobi,
    "laplace3d": _laplace3d,
    "last_largest": lambda x: len(x) - 1 - x[::-1].argmax(),
    "lattice_boltzmann": _lattice_boltzmann,
    "layer_norm": lambda X: (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + np.float32(1e-5)),
    "leapfrog": _leapfrog,
    "life": _stencil_life,
    "life_steps": _life_steps,
    "log_sum_exp_rows": _log_sum_exp,
    "longest_run_rows": _longest_runs,
    "longest_step": lambda A: np.abs(np.diff(A)).max(1),
    "mandelbrot": _mandelbrot,
    "maxpool": lambda A: np.maximum(np.maximum(A[::2, ::2], A[::2, 1::2]), np.maximum(A[1::2, ::2], A[1::2, 1::2])),
    "mean_var": lambda x: (x.mean(), x.var()),
    "min_plus": lambda A, B: (A[:, :, None] + B[None]).min(1),
    "mlp": lambda W, V, X: np.maximum(X @ W.T, 0) @ V.T,
    "mm_odd": lambda A, B: A @ B,
    "moments": lambda x: (x.sum(), ((x * x).sum(), (x * x * x).sum())),
    "moving_range": lambda price: windows(price, 10).max(1) - windows(price, 10).min(1),
    "nbody": _nbody,
    "nearest": lambda P, C: _distances(P, C).min(1),
    "nearest_sphere": _nearest_sphere,
    "normalise": lambda x: x / np.sqrt((x * x).sum()),
    "nrm2": lambda x: np.sqrt((x * x).sum()),
    "outer_trace": lambda A, B: (A * B.T).sum(),
    "pagerank": _pagerank,
    "palindrome_sum": lambda x: 4 * x * x[::-1],
    "peak_meter": _peak_meter,
    "polynomial_rows": lambda c, t: _along_rows(c, np.zeros(len(c), c.dtype), lambda s, k: s * t + k),
    "portfolio": lambda W, C: ((W @ C) * W).sum(1),
    "power_iteration": _power_iteration,
    "prefix_products": lambda rates: (1 + rates).cumprod(),
    "prefix_rows": lambda A: A.cumsum(1),
    "queens_masks": _queens,
    "residual": lambda W, X: np.maximum(X + X @ W.T, 0),
    "resonator": _resonator,
    "returns": lambda price: price[1:] / price[:-1] - 1,
    "rising_run": _rising_run,
    "run_lengths": _run_lengths,
    "run_starts": _run_starts,
    "running_balance": lambda opening, payments: opening + payments.cumsum(),
    "running_max": np.maximum.accumulate,
    "segment_sum_rows": _segment_sums,
    "segmented_sum": _segmented_sum,
    "separable": lambda A: _thirds(_thirds(A.T).T),
    "series_rows": lambda c, x: _along_rows(c, np.zeros(len(c), c.dtype), lambda s, k: s * x + k),
    "sign_changes": lambda x: np.count_nonzero(np.diff(np.sign(x[x != 0]))),
    "smooth3": lambda x: (_edge(x)[:-2] + x + _edge(x)[2:]) / np.float32(3),
    "smooth_twice": lambda x: _thirds(_thirds(x)),
    "smoothing_rows": _smoothed,
    "softmax": _softmax,
    "softmax_rows": _softmax,
    "spmv_csr": _spmv_csr,
    "spmv_ell": lambda values, cols, x: (values * x[cols]).sum(1),
    "spmv_twice": lambda values, cols, x: (values * (values * x[cols]).sum(1)[cols]).sum(1),
    "standard_scores": lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    "standardise": lambda x: (x - x.mean()) / x.std(),
    "stretch": lambda A: (A - A.min()) / (A.max() - A.min()),
    "summed_area": lambda A: A.cumsum(1).cumsum(0),
    "syrk": lambda A: A @ A.T,
    "thermostat": _thermostat,
    "threshold_mean": lambda A: np.where(A.mean() < A, np.float32(1), np.float32(0)),
    "turns": lambda x: np.count_nonzero(np.diff(x < 0, prepend=False)),
    "two_largest": lambda x: tuple(np.partition(x, len(x) - 2)[:-3:-1]),
    "two_mm": lambda A, B, C: (A @ B) @ C,
    "unsharp": lambda A, amount: A + amount * (A - _box(A)),
    "wave1d": lambda now, before, c: 2 * now - before + c * (np.pad(now, 1)[:-2] - 2 * now + np.pad(now, 1)[2:]),
    "welford_columns": lambda A: (A.mean(0), A.var(0, ddof=1)),
    "words": lambda text: np.count_nonzero((text[1:] != 32) & (text[:-1] == 32)) + int(text[0] != 32),
}
