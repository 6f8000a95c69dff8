"""What programs of colours, sounds, films and dynamics compute, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

A = np.ndarray
F = np.float32


def cielab(r: A, g: A, b: A) -> tuple[A, tuple[A, A]]:
    def linear(c: A) -> A:
        return np.where(c <= F(0.04045), c / F(12.92), ((c + F(0.055)) / F(1.055)) ** F(2.4))

    def root(t: A) -> A:
        return np.where(t > F(0.008856), t ** F(1 / 3), F(7.787) * t + F(16 / 116))

    r, g, b = linear(r), linear(g), linear(b)
    x = root((F(0.4124) * r + F(0.3576) * g + F(0.1805) * b) / F(0.95047))
    y = root(F(0.2126) * r + F(0.7152) * g + F(0.0722) * b)
    z = root((F(0.0193) * r + F(0.1192) * g + F(0.9505) * b) / F(1.08883))
    return 116 * y - 16, (500 * (x - y), 200 * (y - z))


def compressor(samples: A, attack: Any, release: Any) -> A:
    e, envelope = F(0), np.empty_like(samples)
    for i, a in enumerate(np.abs(samples)):
        e += (attack if a > e else release) * (a - e)
        envelope[i] = e
    return np.where(envelope > 0.5, samples * (F(0.5) / np.maximum(envelope, F(0.5))) ** F(0.75), samples)


def motion(now: A, before: A) -> tuple[A, A]:
    h, w = now.shape
    blocks = now.reshape(h // 8, 8, w // 8, 8).transpose(0, 2, 1, 3)
    shifted = windows(windows(before, (14, 14))[::8, ::8], (8, 8), axis=(2, 3))  # pyright: ignore
    sums = np.abs(shifted - blocks[:, :, None, None]).sum((-1, -2)).reshape(h // 8, w // 8, 49)
    return sums.min(-1), sums.argmin(-1)


def newton_fractal() -> A:
    r, c = np.mgrid[:200, :301].astype(F)
    x, y = 4 * c / 301 - 2, 3 * r / 200 - F(1.5)
    for _ in range(20):
        a, b = x * x - y * y, 2 * x * y
        d = a * a + b * b + F(1e-6)
        x, y = (2 * x + a / d) / 3, (2 * y - b / d) / 3
    return np.where(x > 0.5, 0, np.where(y > 0, 1, 2))


def pendulums(angle: A, speed: A) -> tuple[A, A]:
    def f(a: A, v: A) -> tuple[A, A]:
        return v, F(-9.81) * np.sin(a) - F(0.1) * v

    a, v, h = angle, speed, F(0.01)
    for _ in range(100):
        a1, v1 = f(a, v)
        a2, v2 = f(a + h / 2 * a1, v + h / 2 * v1)
        a3, v3 = f(a + h / 2 * a2, v + h / 2 * v2)
        a4, v4 = f(a + h * a3, v + h * v3)
        a, v = a + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return a, v


def simpson(a: A, b: A) -> A:
    def f(x: A) -> A:
        return np.exp(-x * x) * np.sin(3 * x)

    h, i = (b - a) / F(100), np.arange(1, 100)
    inner = np.where(i % 2, F(4), F(2)) * f(a[:, None] + h[:, None] * i.astype(F))
    return h / 3 * (f(a) + inner.sum(1) + f(b))


MOTIONS = {f.__name__: f for f in (cielab, compressor, motion, newton_fractal, pendulums, simpson)}
