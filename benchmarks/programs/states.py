"""What programs that iterate numbers, tuples and several arrays compute, in NumPy as users write it; and angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

A = np.ndarray
F = np.float32


def cg_arrays(b: A) -> tuple[A, A]:
    x, r, p = np.zeros_like(b), b, b
    for _ in range(8):
        padded = np.pad(p, 1)
        product = 4 * p - padded[:-2] - padded[2:]
        alpha = (r @ r) / (p @ product)
        x, s = x + alpha * p, r - alpha * product
        r, p = s, s + (s @ s) / (r @ r) * p
    return x, r


def chacha(a: A, b: A, c: A, d: A) -> tuple[A, tuple[A, tuple[A, A]]]:
    def rot(v: A, n: int) -> A:
        return v << np.uint32(n) | v >> np.uint32(32 - n)

    for _ in range(8):
        for turns in ((16, 12), (8, 7)):
            a = a + b
            d = rot(d ^ a, turns[0])
            c = c + d
            b = rot(b ^ c, turns[1])
    return a, (b, (c, d))


def gelu_erf(x: A, w: A, bias: A) -> A:
    v = x @ w.T + bias
    return F(0.5) * v * (1 + np.vectorize(math.erf)(v / np.sqrt(F(2))))


def newton_steps(x: A) -> tuple[A, A]:
    y, n = x.copy(), np.zeros(len(x), np.int32)
    for _ in range(12):
        z = 0.5 * (y + x / y)
        goes_on = np.abs(z - y) > 1e-6
        y, n = np.where(goes_on, z, y), n + goes_on
    return y, n


def orientations(img: A) -> Any:
    p = np.pad(img, 1, mode="edge")
    gx, gy = p[1:-1, 2:] - p[1:-1, :-2], p[2:, 1:-1] - p[:-2, 1:-1]
    bins = np.floor((np.arctan2(gy, gx) + F(3.1415927)) * F(2.8647)).astype(int)
    return np.bincount(bins.ravel(), np.hypot(gx, gy).ravel(), 18)


STATES = {f.__name__: f for f in (cg_arrays, chacha, gelu_erf, newton_steps, orientations)}
