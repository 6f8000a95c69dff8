"""What programs from leagues, maps, seismic surveys, images, accounts, speech and games compute, in NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F, U = np.float32, np.uint32


def connected(mask: A) -> A:
    none = np.iinfo(np.int32).max
    labels = np.where(mask, np.arange(mask.size, dtype=np.int32).reshape(mask.shape), none)
    for _ in range(6):
        p = np.pad(labels, 1, constant_values=none)
        around = [p[:-2, 1:-1], p[2:, 1:-1], labels, p[1:-1, :-2], p[1:-1, 2:]]
        labels = np.where(mask, np.minimum.reduce(around), none)
    return labels


def haversine(lat1: A, lon1: A, lat2: A, lon2: A) -> A:
    s, t = np.sin((lat2 - lat1[:, None]) / 2), np.sin((lon2 - lon1[:, None]) / 2)
    h = s * s + np.cos(lat1)[:, None] * np.cos(lat2) * t * t
    return (12742 * np.sqrt(np.minimum(h, 1))).min(1)


def league(home: A, away: A, hg: A, ag: A) -> tuple[A, tuple[A, A]]:
    hp, ap = np.where(hg > ag, 3, np.where(hg == ag, 1, 0)), np.where(ag > hg, 3, np.where(hg == ag, 1, 0))
    teams = np.concatenate((home, away))
    points, scored, against = (
        np.bincount(teams, np.concatenate(pair), 20) for pair in ((hp, ap), (hg, ag), (ag, hg))
    )
    return points, (scored, against)


def median3(image: A) -> A:
    around = windows(np.pad(image, 1, mode="symmetric"), (3, 3))
    return np.median(around.reshape(*image.shape, 9), axis=-1)


def nmo_stack(traces: A, offset: A, velocity: A) -> A:
    receivers, samples = traces.shape
    t0, p = (F(0.004) * np.arange(samples, dtype=F))[:, None], offset / velocity[:, None]
    k = np.sqrt(t0 * t0 + p * p) / F(0.004)
    n = k.astype(np.int32)
    w, m, r = k - n, np.clip(n, 0, samples - 2), np.arange(receivers)
    moved = (1 - w) * traces[r, m] + w * traces[r, m + 1]
    return np.where(n + 1 < samples, moved, F(0)).sum(1) / receivers


def pi_xorshift(seeds: A) -> Any:
    def step(a: A) -> A:
        a = a ^ (a << U(13))
        a = a ^ (a >> U(17))
        return a ^ (a << U(5))

    s, hits = seeds, np.zeros(len(seeds), np.int32)
    for _ in range(16):
        first = step(s)
        s = step(first)
        x, y = ((r >> U(8)).astype(F) / F(1 << 24) for r in (first, s))
        hits += x * x + y * y < 1
    return 4 * hits.sum() / (16 * len(seeds))


def ragged_drawdowns(begin: A, prices: A) -> tuple[A, tuple[A, A]]:
    made = []
    for first, last in pairwise(begin):
        part = prices[first:last]
        n = max(len(part), 1)
        mean, drops = part.sum() / n, np.maximum.accumulate(part) - part
        made.append((mean, np.sqrt(max((part * part).sum() / n - mean * mean, 0)), drops.max(initial=0)))
    mean, spread, drop = np.transpose(made)
    return mean, (spread, drop)


def tridiagonal_sweep(lower: A, diag: A, upper: A, rhs: A) -> tuple[A, A]:
    c, d = np.empty_like(upper), np.empty_like(rhs)
    c0, d0 = np.zeros(len(lower)), np.zeros(len(lower))
    for j in range(lower.shape[1]):
        w = diag[:, j] - lower[:, j] * c0
        c0, d0 = upper[:, j] / w, (rhs[:, j] - lower[:, j] * d0) / w
        c[:, j], d[:, j] = c0, d0
    return c, d


def ctc_greedy(logits: A) -> tuple[A, A]:
    best = logits.argmax(-1)
    keep = (best != 0) & (best != np.pad(best, ((0, 0), (1, 0)))[:, :-1])
    words = np.zeros(best.shape, np.int32)
    rows, frames = np.nonzero(keep)
    words[rows, (keep.cumsum(1) - 1)[rows, frames]] = best[rows, frames]
    return words, keep.sum(1)


def dct8x8(image: A, table: A) -> A:
    k = np.arange(8)[:, None]
    basis = (np.where(k == 0, 0.35355339, 0.5) * np.cos(np.pi * (2 * k.T + 1) * k / 16)).astype(F)
    blocks = image.reshape(image.shape[0] // 8, 8, -1, 8).transpose(0, 2, 1, 3)
    return basis @ blocks @ basis.T / table


def forest_inference(x: A, feature: A, threshold: A, leaf: A) -> A:
    made, rows = np.zeros(len(x), F), np.arange(len(x))
    for features, thresholds, leaves in zip(feature, threshold, leaf, strict=True):
        node = np.zeros(len(x), np.int32)
        for _ in range(6):
            node = 2 * node + np.where(x[rows, features[node]] > thresholds[node], 2, 1)
        made += leaves[node - 63]
    return made / F(len(feature))


def phred_filter(quality: A) -> tuple[A, Any]:
    errors = np.power(F(10), -quality.astype(F) / F(10)).sum(1)
    return errors, np.sum(errors < 3)


def _passed(*row: A) -> list[A]:
    made = [*row]
    for i in range(3):
        empty = made[i] == 0
        made[i], made[i + 1] = np.where(empty, made[i + 1], made[i]), np.where(empty, 0, made[i + 1])
    return made


def slide_2048(rows: Any) -> Any:
    a, (b, (c, d)) = rows
    a, b, c, d = _passed(*_passed(*_passed(a, b, c, d)))
    ab = (a != 0) & (a == b)
    bc = ~ab & (b != 0) & (b == c)
    cd = ~bc & (c != 0) & (c == d)
    score = sum(np.where(same, 1 << (v + 1), 0) for same, v in ((ab, a), (bc, b), (cd, c)))
    left = np.where(ab, a + 1, a), np.where(ab, 0, np.where(bc, b + 1, b))
    p, q, r, s = _passed(*_passed(*left, np.where(bc, 0, np.where(cd, c + 1, c)), np.where(cd, 0, d)))
    return p, (q, (r, (s, score)))


SURVEYS = {
    f.__name__: f
    for f in (
        *(connected, haversine, league, median3, nmo_stack, pi_xorshift),
        *(ragged_drawdowns, tridiagonal_sweep, ctc_greedy, dct8x8, forest_inference, phred_filter, slide_2048),
    )
}
