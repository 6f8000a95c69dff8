"""What programs from leagues, maps, seismic surveys, images and accounts compute, in NumPy as users write it."""

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


SURVEYS = {
    f.__name__: f
    for f in (
        *(connected, haversine, league, median3, nmo_stack, pi_xorshift),
        *(ragged_drawdowns, tridiagonal_sweep),
    )
}
