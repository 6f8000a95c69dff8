"""What the programs of several stages, and those of fields and layers, compute, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F = np.float32


def adam(w: A, g: A, m: A, v: A, t: Any) -> tuple[A, tuple[A, A]]:
    m, v = F(0.9) * m + F(0.1) * g, F(0.999) * v + F(0.001) * g * g
    step = (m / (1 - F(0.9) ** t)) / (np.sqrt(v / (1 - F(0.999) ** t)) + F(1e-8))
    return w - F(0.001) * step, (m, v)


def attention_masked(q: A, k: A, v: A) -> A:
    s = q @ k.T / F(8)
    s[np.triu_indices(len(s), 1)] = -np.inf
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ v


def bilinear(image: A) -> A:
    y, x = (np.arange(5 * n // 2, dtype=F) * F(0.4) for n in image.shape)
    (y0, x0), (m, n) = (v.astype(int) for v in (y, x)), image.shape
    y1, x1, fy, fx = np.minimum(y0 + 1, m - 1), np.minimum(x0 + 1, n - 1), (y - y0)[:, None], x - x0
    y0, x0 = np.minimum(y0, m - 1)[:, None], np.minimum(x0, n - 1)
    top, bottom = (image[r, x0] * (1 - fx) + image[r, x1] * fx for r in (y0, y1[:, None]))
    return top * (1 - fy) + bottom * fy


def cosine_top1(q: A, docs: A) -> tuple[Any, Any]:
    similar = docs @ q / (np.sqrt(q @ q) * np.sqrt((docs * docs).sum(1)) + F(1e-6))
    return similar.max(), similar.argmax()


def covariance_columns(X: A) -> A:
    centred = X - X.mean(0)
    return centred.T @ centred / F(len(X) - 1)


def depthwise(x: A, w: A) -> A:
    p, (_, m, n) = np.pad(x, ((0, 0), (1, 1), (1, 1))), x.shape
    return sum(p[:, i : i + m, j : j + n] * w[:, i, j, None, None] for i in range(3) for j in range(3))  # pyright: ignore


def depthwise_separable(x: A, dw: A, pw: A) -> A:
    return np.maximum(np.tensordot(pw, depthwise(x, dw), 1), 0)


def edit_row(before: A, b: A, a: Any) -> A:
    candidates = np.minimum(before[1:] + 1, before[:-1] + (b != a))
    at = np.arange(len(before), dtype=np.int32)
    return np.minimum.accumulate(np.concatenate((before[:1] + 1, candidates)) - at) + at


def equalise(image: A) -> A:
    counts = np.bincount(image.ravel(), minlength=256).cumsum(dtype=np.int32)
    return (counts * np.int32(255) // np.int32(image.size)).astype(np.int32)[image]


def fdtd(ez: A, hx: A, hy: A) -> tuple[A, tuple[A, A]]:
    z = np.pad(ez, ((0, 1), (0, 1)))
    hx = hx - F(0.5) * (z[1:, :-1] - z[:-1, :-1])
    hy = hy + F(0.5) * (z[:-1, 1:] - z[:-1, :-1])
    curl = np.diff(np.pad(hy, ((0, 0), (1, 0))), axis=1) - np.diff(np.pad(hx, ((1, 0), (0, 0))), axis=0)
    return ez + F(0.5) * curl, (hx, hy)


def gray_scott(u: A, v: A, feed: Any, kill: Any) -> tuple[A, A]:
    def laplacian(a: A) -> A:
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    r = u * v * v
    return u + F(0.16) * laplacian(u) - r + feed * (1 - u), v + F(0.08) * laplacian(v) + r - (feed + kill) * v


def group_norm(x: A, gamma: A, beta: A) -> A:
    groups = x.reshape(len(x), -1, 4 * x.shape[2])
    scaled = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + F(1e-5))
    return scaled.reshape(x.shape) * gamma[:, None] + beta[:, None]


def haar2d(image: A) -> A:
    def step(a: A) -> A:
        return np.concatenate(((a[:, ::2] + a[:, 1::2]) / 2, (a[:, ::2] - a[:, 1::2]) / 2), axis=1)

    return step(step(image).T).T


def harris(image: A) -> A:
    def around(a: A) -> list[list[A]]:
        p, (m, n) = np.pad(a, 1, mode="symmetric"), a.shape
        return [[p[i : i + m, j : j + n] for j in range(3)] for i in range(3)]

    w = around(image.astype(F) / F(255))
    gx = w[0][2] + 2 * w[1][2] + w[2][2] - w[0][0] - 2 * w[1][0] - w[2][0]
    gy = w[2][0] + 2 * w[2][1] + w[2][2] - w[0][0] - 2 * w[0][1] - w[0][2]
    x, y, z = (sum(map(sum, around(p))) for p in (gx * gx, gx * gy, gy * gy))
    return x * z - y * y - F(0.04) * (x + z) * (x + z)  # pyright: ignore


def ising(spin: A, random: A, beta: Any) -> A:
    s = 2 * spin - 1
    energy = s * (np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1))
    y, x = np.indices(spin.shape)
    return np.where(((x + y) % 2 == 0) & (random < np.exp(-2 * beta * energy.astype(F))), 1 - spin, spin)


def matrix_chain(a: A, b: A, c: A) -> A:
    return a @ b @ c


def monte_carlo(z: A, start: Any, strike: Any) -> tuple[Any, Any]:
    means = (start * np.exp((F(0.0001) + F(0.02) * z).cumsum(1))).mean(1)
    payoff = np.maximum(means - strike, 0)
    return payoff.mean(), payoff.std(ddof=1)


def mse_grad(x: A, y: A, w: A) -> A:
    return 2 * (x.T @ (x @ w - y)) / F(len(y))


def shallow_water(h: A, u: A, v: A, k: Any) -> tuple[A, tuple[A, A]]:
    i = slice(1, -1)
    north, south, west, east = (slice(None, -2), i), (slice(2, None), i), (i, slice(None, -2)), (i, slice(2, None))
    (hn, un, vn), (hs, us, vs), (hw, uw, vw), (he, ue, ve) = (
        tuple(a[side] for a in (h, u, v)) for side in (north, south, west, east)
    )
    q, g = F(0.25), F(4.9)
    across = ue * ue / he + g * he * he - uw * uw / hw - g * hw * hw + us * vs / hs - un * vn / hn
    down = ue * ve / he - uw * vw / hw + vs * vs / hs + g * hs * hs - vn * vn / hn - g * hn * hn
    new_h = q * (hn + hs + hw + he) - k * (ue - uw + vs - vn)
    return new_h, (q * (un + us + uw + ue) - k * across, q * (vn + vs + vw + ve) - k * down)


def sharpe(prices: A) -> tuple[A, A]:
    r = np.log(prices[:, 1:] / prices[:, :-1])
    drawdown = (prices / np.maximum.accumulate(prices, axis=1) - 1).min(1)
    return r.mean(1) / r.std(1, ddof=1) * F(252**0.5), np.minimum(drawdown, 0)


def stft(x: A, window: A, re: A, im: A) -> A:
    frames = windows(x, len(window))[:: len(window) // 2] * window
    return np.hypot(frames @ re.T, frames @ im.T)


def strided_conv(image: A, filters: A) -> A:
    return np.einsum("cyxij,fcij->fyx", windows(image, (5, 5), (1, 2))[:, ::2, ::2], filters, optimize=True)


PIPELINES = {
    f.__name__: f
    for f in (
        *(adam, attention_masked, depthwise, edit_row, fdtd, gray_scott, group_norm, harris, ising, monte_carlo),
        *(mse_grad, shallow_water, stft, strided_conv, bilinear, cosine_top1, covariance_columns, depthwise_separable),
        *(equalise, haar2d, matrix_chain, sharpe),
    )
}
