"""What programs from finance, networks, signals, and the study of genomes compute, in NumPy as users write it."""

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


def autocorrelation(x: A) -> A:
    c = x - x.mean()
    n = len(x) - 32
    r = np.array([c[:n] @ c[lag : lag + n] for lag in range(33)])
    return r / r[0]


def bond_value(coupon: A, rate: A) -> tuple[A, A]:
    years = np.arange(1, 31, dtype=np.float64)
    discount = (1 + rate)[:, None] ** -years
    flows = coupon[:, None] * discount
    flows[:, -1] += discount[:, -1]
    price = flows.sum(1)
    return price, flows @ years / price


def crank(u: A, r: Any) -> A:
    p, even = np.pad(u, 1), np.arange(len(u)) % 2 == 0
    rhs = u + r / 2 * (p[:-2] - 2 * u + p[2:])
    for chosen in (even, ~even):
        p = np.pad(u, 1)
        u = np.where(chosen, (rhs + r / 2 * (p[:-2] + p[2:])) / (1 + r), u)
    return u


def goertzel(blocks: A, coeff: A) -> A:
    s1, s2 = np.zeros((2, len(blocks), len(coeff)), F)
    for x in blocks.T:
        s1, s2 = x[:, None] + coeff * s1 - s2, s1
    return s1 * s1 + s2 * s2 - coeff * s1 * s2


def hamming_pairs(reads: A, refs: A) -> tuple[A, A]:
    distance = np.stack([(read != refs).sum(1) for read in reads])
    return distance.min(1), distance.argmin(1)


def image_entropy(pixels: A) -> Any:
    q = (np.bincount(pixels) / len(pixels)).astype(F)
    q = q[q > 0]
    return -(q * np.log(q)).sum()


def kmer_spectrum(dna: A) -> A:
    n, codes = len(dna) - 4, 0
    for i in range(5):
        codes = 4 * codes + dna[i : i + n].astype(np.int32)
    return np.bincount(codes, minlength=1024)


def lstm_cell(x: A, h: A, c: A, w: A, b: A) -> tuple[A, A]:
    def sigmoid(v: A) -> A:
        return 1 / (1 + np.exp(-v))

    i, f, g, o = np.split(np.concatenate((x, h), 1) @ w.T + b, 4, 1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def max_drawdown(returns: A) -> tuple[Any, Any]:
    wealth = np.cumprod(1 + returns)
    peak = np.maximum.accumulate(wealth)
    down = (peak - wealth) / peak
    return down.max(), down.argmax()


def order_queue(q: A) -> A:
    before = np.concatenate((np.zeros(1, q.dtype), np.maximum.accumulate(q)[:-1]))
    return np.where(q > before, q - before, 0)


def overlap_add(frames: A, window: A) -> A:
    half, made = len(window) // 2, frames * window
    result = np.zeros((len(frames) + 1) * half, F)
    result[:-half] = made[:, :half].ravel()
    result[half:] += made[:, half:].ravel()
    return result


def plain_loops(x: A) -> tuple[Any, A]:
    return x.sum(), np.maximum.accumulate(np.maximum(x, F(-1)))


def sir_grid(s: A, i: A, r: A, beta: Any) -> tuple[A, tuple[A, A]]:
    for _ in range(8):
        p = np.pad(i, 1, mode="edge")
        new = beta * s * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + i) / F(5)
        healed = F(0.1) * i
        s, i, r = s - new, i + new - healed, r + healed
    return s, (i, r)


def sph_density(pos: Any, h: Any, rest: Any) -> tuple[A, A]:
    x, (y, z) = pos
    apart = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 + (z[:, None] - z) ** 2
    density = (np.maximum(h * h - apart, 0) ** 3).sum(1)
    return density, np.maximum(0, 7 * (density - rest))


def word_lengths(text: A) -> A:
    blank, places = text <= 32, np.arange(len(text))
    run = places - np.maximum.accumulate(np.where(blank, places, -1))
    ends = np.append(blank[1:], True) & ~blank
    return np.bincount(np.minimum(run[ends], 31), minlength=32)


STUDIES = {
    f.__name__: f
    for f in (
        *(american_put, autocorrelation, bond_value, crank, goertzel, hamming_pairs, image_entropy, kmer_spectrum),
        *(lstm_cell, max_drawdown, order_queue, overlap_add, plain_loops, sir_grid, sph_density, word_lengths),
    )
}
