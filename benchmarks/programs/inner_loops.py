"""What programs compute whose loops are inside of maps, over time or for each place of a table, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F = np.float32


def cg_solve(half: A, b: A) -> A:
    whole = half + half.T + np.eye(len(b), dtype=F)
    x, r, p = np.zeros_like(b), b, b
    for _ in range(4):
        q, rr = whole @ p, r @ r
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        p = r + r @ r / rr * p
    return x


def hmm_forward(transitions: A, emissions: A, seen: A) -> A:
    alpha, total = np.full((len(seen), len(emissions)), F(0.2)), np.zeros(len(seen), F)
    for column in seen.T:
        alpha = (alpha @ transitions) * emissions[:, column].T
        scale = alpha.sum(1)
        alpha, total = alpha / scale[:, None], total + np.log(scale)
    return total


def log_spectrum(x: A) -> A:
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(128) / 128)).astype(F)
    spectrum = np.fft.rfft(windows(x, 128)[::64] * window, axis=1)
    return 10 * np.log10(spectrum.real**2 + spectrum.imag**2 + 1e-6)


def rk4(q: A, w: A) -> tuple[A, A]:
    def push(q: A, w: A) -> A:
        return -F(9.81) * np.sin(q) - F(0.1) * w

    h = F(0.01)
    for _ in range(50):
        k1 = push(q, w)
        w2 = w + h / 2 * k1
        k2 = push(q + h / 2 * w, w2)
        w3 = w + h / 2 * k2
        k3 = push(q + h / 2 * w2, w3)
        w4 = w + h * k3
        k4 = push(q + h * w3, w4)
        q, w = q + h / 6 * (w + 2 * w2 + 2 * w3 + w4), w + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return q, w


def rope_pairs(x: A) -> tuple[A, A]:
    steps, pairs = x.shape[:2]
    angles = np.arange(steps)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    c, s = np.cos(angles).astype(F), np.sin(angles).astype(F)
    return x[..., 0] * c - x[..., 1] * s, x[..., 0] * s + x[..., 1] * c


INNER_LOOPS: dict[str, Any] = {f.__name__: f for f in (cg_solve, hmm_forward, log_spectrum, rk4, rope_pairs)}
