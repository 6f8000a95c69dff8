"""What programs on packets, bytes, water, waves, wheels and words compute, in NumPy as users write it."""

from __future__ import annotations

from typing import Any

import numpy as np

A = np.ndarray


def fft16(re: A, im: A) -> tuple[A, A]:
    z = np.fft.fft(re + 1j * im)
    return z.real, z.imag


def flow_directions(z: A) -> tuple[A, A, Any]:
    h, w = z.shape
    p = np.pad(z, 1, constant_values=np.float32(1e9))
    ways = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    far = [np.float32(np.hypot(i - 1, j - 1)) for i, j in ways]
    falls = np.stack([(z - p[i : i + h, j : j + w]) / d for (i, j), d in zip(ways, far, strict=True)])
    dirs = np.where(falls.max(0) > 0, falls.argmax(0), -1)
    down, right = (np.array(k)[dirs] - 1 for k in zip(*ways, strict=True))
    target = ((np.arange(h)[:, None] + down) * w + np.arange(w) + right)[dirs >= 0]
    return dirs, np.bincount(target, minlength=h * w).reshape(h, w), (dirs < 0).sum()


def gears(teeth: A) -> tuple[A, Any, A]:
    each = np.gcd.reduce(teeth, axis=1)
    return each, np.gcd.reduce(each), teeth.max(1) // each


def gqa(q: A, k: A, v: A) -> A:
    shared = len(q) // len(k)
    scores = q @ np.repeat(k, shared, 0).swapaxes(1, 2) / np.float32(np.sqrt(q.shape[2]))
    e = np.exp(scores - scores.max(2, keepdims=True))
    return e / e.sum(2, keepdims=True) @ np.repeat(v, shared, 0)


def routes(packets: A, prefixes: A, lengths: A) -> tuple[A, A]:
    total = packets.sum(1)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    address = packets[:, 0].astype(np.uint32) << 16 | packets[:, 1].astype(np.uint32)
    mask = (0xFFFFFFFF << (32 - lengths.astype(np.int64))).astype(np.uint32)
    found = np.where((address[:, None] ^ prefixes) & mask == 0, lengths, -1)
    last = len(prefixes) - 1 - found[:, ::-1].argmax(1)
    return ~total & 0xFFFF, np.where(found.max(1) < 0, -1, last)


def token_bucket(gaps: A, sizes: A) -> tuple[A, A]:
    tokens, passed = np.full(len(gaps), 10, np.float32), np.zeros(gaps.shape, bool)
    for t in range(gaps.shape[1]):
        tokens = np.minimum(tokens + gaps[:, t], np.float32(10))
        passed[:, t] = tokens >= sizes[:, t]
        tokens -= np.where(passed[:, t], sizes[:, t], 0)
    return passed, passed.sum(1)


def varints(b: A) -> tuple[A, Any]:
    ends = b < 128
    group, begins = np.cumsum(ends) - ends, np.concatenate(([0], np.flatnonzero(ends) + 1))
    depth = np.minimum(np.arange(len(b)) - begins[group], 4)
    values = np.zeros(len(b), np.int64)
    np.add.at(values, group, (b & 127).astype(np.int64) << 7 * depth)
    values &= 0xFFFFFFFF
    values = (values >> 1) ^ -(values & 1)
    values[ends.sum() :] = 0
    return values.cumsum(), ends.sum()


STREAMS = {f.__name__: f for f in (fft16, flow_directions, gears, gqa, routes, token_bucket, varints)}
