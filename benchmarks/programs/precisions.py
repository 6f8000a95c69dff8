"""What programs of doubles, halves and bytes compute, and a flow whose stages are local functions, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

A = np.ndarray
F = np.float32


def channel_flow(f: A, omega: Any) -> tuple[A, tuple[A, A]]:
    rho = f.sum(0)

    def relaxed(g: A, w: float) -> A:
        return g + omega * (F(w) * rho - g)

    return relaxed(f[0], 2 / 3), (np.roll(relaxed(f[1], 1 / 6), 1), np.roll(relaxed(f[2], 1 / 6), -1))


def code_size(text: A) -> Any:
    counts = np.bincount(text, minlength=256)
    bits = np.ceil(np.log2(len(text) / np.maximum(counts, 1)) - 1e-9)
    return (counts * bits).sum().astype(np.int32)


def double_integral(rates: A) -> A:
    weight = np.array([1, *[4, 2] * 15, 4, 1])
    x = np.arange(33) / 32
    return (np.exp(-rates[:, None, None] * x * x[:, None]) @ weight @ weight) / (9 * 4 * 16 * 16)


def fading_attention(q: A, k: A, v: A, slope: Any) -> A:
    place = np.arange(len(q))
    distance = place[:, None] - place
    s = np.where(distance < 0, -np.inf, q @ k.T / np.sqrt(q.shape[1]) - slope * distance)
    e = np.exp(s - s.max(1, keepdims=True))
    return e @ v / e.sum(1, keepdims=True)


def half_gain(x: A) -> A:
    one, k = np.float16(1), np.float16(x.shape[1])
    return one / np.sqrt(k) * x + one / k


PRECISIONS = {f.__name__: f for f in (channel_flow, code_size, double_integral, fading_attention, half_gain)}
