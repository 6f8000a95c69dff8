"""What programs on pixels, molecules, markers, ledgers, recordings and DNA find, in NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F, U = np.float32, np.uint32


def hough(edge: A) -> A:
    y, x = np.nonzero(edge)
    t = F(0.0872664626) * np.arange(36, dtype=F)
    along = x[:, None].astype(F) * np.cos(t) + y[:, None].astype(F) * np.sin(t)
    r = np.floor(F(0.15625) * along + F(20)).astype(np.int32)
    votes = (np.arange(36) * 64 + r)[(r >= 0) & (r < 64)]
    return np.bincount(votes, minlength=36 * 64).reshape(36, 64)


def lucas_kanade(one: A, two: A) -> tuple[A, A]:
    p = np.pad(one, 1, mode="edge")
    x, y, t = F(0.5) * (p[1:-1, 2:] - p[1:-1, :-2]), F(0.5) * (p[2:, 1:-1] - p[:-2, 1:-1]), two - one
    xx, xy, yy, xt, yt = (windows(a * b, (5, 5)).sum((2, 3)) for a, b in ((x, x), (x, y), (y, y), (x, t), (y, t)))
    det = xx * yy - xy * xy + F(1)
    return (xy * yt - yy * xt) / det, (xy * xt - xx * yt) / det


def molecules(at0: Any, near: A) -> Any:
    places = np.stack((at0[0], *at0[1]), -1)
    d = places[:, None] - places[near]
    i2 = 1 / ((d * d).sum(-1) + F(0.5))
    i6 = i2 * i2 * i2
    x, y, z = np.einsum("nkd,nk->dn", d, i2 * i6 * (F(1.5) * i6 - 2))
    return x, (y, z)


def linkage(genotypes: A) -> A:
    g = genotypes.astype(F)
    centred = g - g.mean(1, keepdims=True)
    var, c = (centred * centred).sum(1), centred @ centred.T
    return c * c / np.outer(var, var)


def reversed_ledger(amount: A, time: A, zone: A) -> tuple[A, A]:
    return (F(0.5) * amount * amount - amount)[::-1].copy(), time[::-1].copy()


def window_energy(sound: A, marks: A) -> A:
    running = np.cumsum(sound.reshape(-1, 4, 4), -1).reshape(sound.shape)
    parts = [running[:, low:high].sum(1) for low, high in pairwise(marks)]
    return np.stack(parts, 1)


def minimizers(dna: A) -> A:
    h = np.zeros(len(dna) - 7, U)
    for k in range(8):
        h = h * U(4) + dna[k : k + len(h)]
    h = (h ^ (h >> U(16))) * U(0x85EBCA6B)
    h = (h ^ (h >> U(13))) * U(0xC2B2AE35)
    return windows(h ^ (h >> U(16)), 16).min(1)


FINDINGS = {
    f.__name__: f for f in (hough, linkage, lucas_kanade, minimizers, molecules, reversed_ledger, window_energy)
}
