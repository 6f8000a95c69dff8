"""What programs from learning, statistics, finance, geometry and ciphers compute, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np

A = np.ndarray
F, U = np.float32, np.uint32


def _softmax(x: A) -> A:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention_block(q: A, k: A, v: A) -> A:
    return _softmax(q @ k.transpose(0, 2, 1) * F(0.2041)) @ v


def bilateral(image: A) -> A:
    p, (m, n) = np.pad(image, 2, mode="edge"), image.shape
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for i in range(5):
        for j in range(5):
            v = p[i : i + m, j : j + n]
            k = np.exp(F(-8) * (v - image) ** 2)
            total, weights = total + k * v, weights + k
    return total / weights


def ce_gradient(logits: A, label: A) -> A:
    p = _softmax(logits)
    p[np.arange(len(label)), label] -= 1
    return p / F(len(label))


def chi_square(table: A) -> Any:
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return ((table - expected) ** 2 / expected).sum()


def correlation(table: A) -> A:
    return np.corrcoef(table.T)


def greeks(s: A, k: A, vol: A) -> tuple[A, tuple[A, A]]:
    root = np.sqrt(0.5)
    d = (np.log(s / k) + (0.03 + 0.5 * vol * vol) * 0.5) / (vol * root)
    density, far = 0.39894228 * np.exp(-0.5 * d * d), np.abs(d)
    t = 1 / (1 + 0.2316419 * far)
    terms = 0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    above = 1 - density * t * terms
    return np.where(d < 0, 1 - above, above), (density / (s * vol * root), s * density * root)


def jaccard(sets: A) -> A:
    both, either = (np.bitwise_count(op(sets[:, None], sets)).sum(2) for op in (np.bitwise_and, np.bitwise_or))
    return both / np.maximum(either, 1)


def knn_vote(query: A, data: A, label: A) -> A:
    return label[((query[:, None] - data) ** 2).sum(2).argmin(1)]


def point_in_polygon(px: A, py: A, vx: A, vy: A) -> A:
    x, y, wx, wy = px[:, None], py[:, None], np.roll(vx, -1), np.roll(vy, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        crosses = ((vy > y) != (wy > y)) & (x < (wx - vx) * (y - vy) / (wy - vy) + vx)
    return np.logical_xor.reduce(crosses, axis=1)


def xtea(blocks: tuple[A, A], key: A) -> tuple[A, A]:
    (v, w), total = blocks, U(0)
    with np.errstate(over="ignore"):
        for _ in range(32):
            v = v + ((((w << U(4)) ^ (w >> U(5))) + w) ^ (total + key[total & U(3)]))
            total = total + U(2654435769)
            w = w + ((((v << U(4)) ^ (v >> U(5))) + v) ^ (total + key[total >> U(11) & U(3)]))
    return v, w


FIELDS = {
    f.__name__: f
    for f in (
        *(attention_block, bilateral, ce_gradient, chi_square, correlation, greeks, jaccard, knn_vote),
        *(point_in_polygon, xtea),
    )
}
