"""What programs from many trades compute, from seismology to card games, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F = np.float32


def adler(text: A) -> A:
    n, wide = text.shape[1], text.astype(np.int64)
    a, b = (1 + wide.sum(1)) % 65521, (n + (wide * np.arange(n, 0, -1)).sum(1)) % 65521
    return (b * 65536 + a).astype(np.uint32).astype(np.int32)


def chess(boards: A, worth: A) -> tuple[A, A]:
    value = worth[np.abs(boards)]
    free = (boards[:, :-1] == 1) & (boards[:, 1:] == 0)
    return np.where(boards < 0, -value, value).sum((1, 2)), free.sum((1, 2))


def cooccurrence(image: A) -> A:
    return np.bincount((16 * image[:, :-1] + image[:, 1:]).ravel(), minlength=256).reshape(16, 16)


def despike(x: A, most: Any) -> A:
    a, b, c = windows(np.pad(x, 1, mode="edge"), len(x))
    median = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    return np.where(np.abs(x - median) > most, median, x)


def drum(u: A, before: A, c: Any) -> A:
    for _ in range(12):
        p = np.pad(u, 1)
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        u, before = 2 * u - before + c * (around - 4 * u), u
    return u


def epidemic(beta: A, gamma: A) -> tuple[A, tuple[A, A]]:
    s, i, r = (np.full_like(beta, part) for part in (0.99, 0.01, 0))
    for _ in range(90):
        new, healed = beta * s * i, gamma * i
        s, i, r = s - new, i + new - healed, r + healed
    return s, (i, r)


def fft_stage(re: A, im: A, wr: A, wi: A) -> tuple[A, A]:
    z = (re + 1j * im).reshape(-1, 2, len(wr))
    turned = z[:, 1] * (wr + 1j * wi)
    made = np.concatenate((z[:, 0] + turned, z[:, 0] - turned), 1)
    return made.real, made.imag


def fir_decimate(x: A, taps: A) -> A:
    return windows(x, len(taps))[::4] @ taps


def gru_step(x: A, h: A, wz: A, uz: A, wn: A, un: A) -> A:
    z, n = 1 / (1 + np.exp(-(x @ wz.T + h @ uz.T))), np.tanh(x @ wn.T + h @ un.T)
    return (1 - z) * n + z * h


def heads(q: A, k: A, v: A) -> A:
    scores = q @ k.transpose(0, 2, 1) / F(q.shape[2] ** 0.5)
    e = np.exp(scores - scores.max(2, keepdims=True))
    return (e / e.sum(2, keepdims=True)) @ v


def interest_f64(start: A, rate: A, pay: A) -> A:
    made = []
    for r in rate:
        start = start * (1 + r) + pay
        made.append(start)
    return np.stack(made, 1)


def kalman(seen: A, q: Any, r: Any) -> A:
    x, p, made = np.zeros(len(seen), F), F(1), np.empty_like(seen)
    for t, z in enumerate(seen.T):
        gain = (p + q) / (p + q + r)
        x, p = x + gain * (z - x), (1 - gain) * (p + q)
        made[:, t] = x
    return made


def knitting(pattern: A) -> tuple[A, Any]:
    return np.bincount(pattern.ravel(), minlength=6), (np.diff(pattern) != 0).sum(1).max()


def life_table(q: A) -> tuple[A, A]:
    alive = np.cumprod(1 - q, 1)
    return alive, alive.sum(1) + F(0.5)


def lu_step(a: A) -> tuple[A, A]:
    factors = a[1:, 0] / a[0, 0]
    return factors, a[1:, 1:] - factors[:, None] * a[0, 1:]


def markov(p: A, chances: A) -> A:
    for _ in range(10):
        p = p @ chances
    return p


def morphology(image: A) -> A:
    def over(extreme: Any) -> A:
        p, (m, n) = np.pad(image, 2, mode="edge"), image.shape
        rows = extreme.reduce([p[:, j : j + n] for j in range(5)])
        return extreme.reduce([rows[i : i + m] for i in range(5)])

    return over(np.maximum) - over(np.minimum)


def nearest_three(queries: A, points: A) -> tuple[A, tuple[A, A]]:
    apart = (queries * queries).sum(1)[:, None] + (points * points).sum(1) - 2 * queries @ points.T
    a, b, c = np.sort(np.partition(apart, 2, 1)[:, :3], 1).T
    return a, (b, c)


def orbits(pos: tuple[A, A], vel: tuple[A, A], dt: Any) -> tuple[tuple[A, A], tuple[A, A]]:
    (x, y), (u, v) = pos, vel
    for _ in range(40):
        r2 = x * x + y * y + 0.5
        k = dt / (r2 * np.sqrt(r2))
        u, v = u - k * x, v - k * y
        x, y = x + dt * u, y + dt * v
    return (x, y), (u, v)


def poker(hands: A) -> A:
    suits, ranks = hands // 13, hands % 13
    pairs = (ranks[:, :, None] == ranks[:, None, :]).sum((1, 2))
    return np.where((suits == suits[:, :1]).all(1), 100, (pairs - 5) // 2)


def poly_points(c: A, x: A) -> tuple[A, A]:
    p, d = np.zeros_like(x), np.zeros_like(x)
    for k in c:
        p, d = p * x + k, d * x + p
    return p, d


def pyramid(image: A) -> tuple[A, A]:
    def halved(a: A) -> A:
        return (a[::2, ::2] + a[::2, 1::2] + a[1::2, ::2] + a[1::2, 1::2]) / 4

    one = halved(image)
    return one, halved(one)


def ray_boxes(directions: Any, lows: Any, sizes: A) -> tuple[A, A]:
    (dx, (dy, dz)), (lx, (ly, lz)), near, far = directions, lows, F(0), F(np.inf)
    for d, low in ((dx, lx), (dy, ly), (dz, lz)):
        a, b = low / d[:, None], (low + sizes) / d[:, None]
        near, far = np.maximum(near, np.minimum(a, b)), np.minimum(far, np.maximum(a, b))
    hit = near <= far
    return np.where(hit, near, np.inf).min(1), hit.sum(1)


def rms_rope(x: A, gain: A, angle: A) -> A:
    y = x / np.sqrt((x * x).mean(1, keepdims=True) + F(1e-5)) * gain
    low, high = np.split(y, 2, axis=1)
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate((low * c - high * s, low * s + high * c), 1)


def smith_waterman(before: A, b: A, a: Any) -> A:
    fresh = np.maximum(0, np.maximum(before[:-1] + np.where(b == a, np.int32(3), np.int32(-3)), before[1:] - 2))
    place = 2 * np.arange(len(b), dtype=np.int32)
    return np.maximum.accumulate(fresh + place) - place


def solve3(matrices: A, b: A) -> tuple[A, tuple[A, A]]:
    def det(x: A, y: A, z: A) -> A:
        return (x * np.cross(y, z)).sum(1)

    x, y, z = (matrices[:, :, i] for i in range(3))
    d = det(x, y, z) + 10
    return det(b, y, z) / d, (det(x, b, z) / d, det(x, y, b) / d)


def spectrogram_peak(x: A, re: A, im: A) -> tuple[A, A]:
    frames = windows(x, re.shape[1])[::64]
    power = (frames @ re.T) ** 2 + (frames @ im.T) ** 2
    return power.max(1), power.argmax(1)


def sta_lta(trace: A) -> A:
    s, n = 20, 200
    sums, ends = np.append(0, np.cumsum((trace * trace).astype(np.float64))), np.arange(n, len(trace) + 1)
    return (sums[ends] - sums[ends - s]) / s / ((sums[ends] - sums[ends - n]) / n + 1e-6)


def stock_bands(price: A) -> tuple[A, tuple[A, A]]:
    w = windows(price, 20, 1)
    m, s = w.mean(2), w.std(2)
    return m - 2 * s, (m, m + 2 * s)


def tax(income: A, limit: A, rate: A) -> A:
    return sum(np.maximum(income - f, 0) * r for f, r in zip(limit, rate, strict=True))  # pyright: ignore


def tide_table(t: A, amp: A, speed: A, phase: A) -> tuple[A, Any]:
    height = np.zeros_like(t)
    for a, s, p in zip(amp, speed, phase, strict=True):
        height += a * np.cos(s * t - p)
    return height, np.count_nonzero((height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:]))


def traffic(cars: A) -> A:
    for _ in range(30):
        cars = np.where(cars == 0, np.roll(cars, 1), np.roll(cars, -1))
    return cars


def upsample(image: A) -> A:
    p, (m, n) = np.pad(image.repeat(2, 0).repeat(2, 1), 1, mode="symmetric"), image.shape
    return sum(p[i : i + 2 * m, j : j + 2 * n] for i in range(3) for j in range(3)) / F(9)  # pyright: ignore


def viterbi(score: A, trans: A, seen: A) -> tuple[A, A]:
    best, source = np.full_like(score, -np.inf), np.full(score.shape, -1, np.int32)
    for i in range(score.shape[1]):
        reached = score[:, i, None] + trans[i]
        source, best = np.where(reached > best, np.int32(i), source), np.maximum(best, reached)
    return best + seen, source


TRADES = {
    f.__name__: f
    for f in (
        *(adler, chess, cooccurrence, despike, drum, epidemic, fft_stage, fir_decimate, gru_step, heads, interest_f64),
        *(kalman, knitting, life_table, lu_step, markov, morphology, nearest_three, orbits, poker, poly_points),
        *(pyramid, ray_boxes, rms_rope, smith_waterman, solve3, spectrogram_peak, sta_lta, stock_bands, tax),
        *(tide_table, traffic, upsample, viterbi),
    )
}
