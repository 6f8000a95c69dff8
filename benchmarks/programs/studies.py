"""What programs from finance, networks and the study of epidemics and genomes compute, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np

A = np.ndarray
F = np.float32


def american_put(spot: A, strike: Any) -> A:
    value = np.maximum(strike - spot[:, None] * F(1.01) ** np.arange(-64, 65, 2, dtype=F), F(0))
    for _ in range(64):
        value = F(0.9999) * (F(0.49) * value[:, :-1] + F(0.51) * value[:, 1:])
    return value[:, 0]


def bond_value(coupon: A, rate: A) -> tuple[A, A]:
    years = np.arange(1, 31, dtype=np.float64)
    discount = (1 + rate)[:, None] ** -years
    flows = coupon[:, None] * discount
    flows[:, -1] += discount[:, -1]
    price = flows.sum(1)
    return price, flows @ years / price


def hamming_pairs(reads: A, refs: A) -> tuple[A, A]:
    distance = np.stack([(read != refs).sum(1) for read in reads])
    return distance.min(1), distance.argmin(1)


def image_entropy(pixels: A) -> Any:
    q = (np.bincount(pixels) / len(pixels)).astype(F)
    q = q[q > 0]
    return -(q * np.log(q)).sum()


def lstm_cell(x: A, h: A, c: A, w: A, b: A) -> tuple[A, A]:
    def sigmoid(v: A) -> A:
        return 1 / (1 + np.exp(-v))

    i, f, g, o = np.split(np.concatenate((x, h), 1) @ w.T + b, 4, 1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def order_queue(q: A) -> A:
    before = np.concatenate((np.zeros(1, q.dtype), np.maximum.accumulate(q)[:-1]))
    return np.where(q > before, q - before, 0)


def plain_loops(x: A) -> tuple[Any, A]:
    return x.sum(), np.maximum.accumulate(np.maximum(x, F(-1)))


def sir_grid(s: A, i: A, r: A, beta: Any) -> tuple[A, tuple[A, A]]:
    for _ in range(8):
        p = np.pad(i, 1, mode="edge")
        new = beta * s * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + i) / F(5)
        healed = F(0.1) * i
        s, i, r = s - new, i + new - healed, r + healed
    return s, (i, r)


STUDIES = {
    f.__name__: f
    for f in (american_put, bond_value, hamming_pairs, image_entropy, lstm_cell, order_queue, plain_loops, sir_grid)
}
