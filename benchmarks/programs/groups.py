"""What programs that add up rows and values by group compute, and a step of a network with two weights, in NumPy."""

from __future__ import annotations

import numpy as np

A = np.ndarray


def graph_messages(x: A, src: A, dst: A, w: A, weights: A) -> A:
    sums = np.zeros_like(x)
    np.add.at(sums, dst, w[:, None] * x[src])
    return np.maximum(sums @ weights.T, 0)


def rain_grid(lat: A, lon: A, rain: A) -> tuple[A, A]:
    cell = np.floor(lat + 90).astype(np.int32) * 360 + np.floor(lon + 180).astype(np.int32)
    grid = np.bincount(cell, rain, 180 * 360).astype(np.float32)
    return grid.reshape(180, 360), grid.max()


def segment_means(x: A, group: A) -> A:
    groups = 101
    sums = np.stack([np.bincount(group, column, groups) for column in x.T], 1)
    return sums / np.maximum(np.bincount(group, minlength=groups), 1)[:, None]


def channel_histograms(image: A) -> A:
    return np.stack([np.bincount(channel, minlength=256) for channel in image.T])


def lstm_two_weights(x: A, h: A, c: A, w: A, u: A, b: A) -> tuple[A, A]:
    i, f, g, o = np.split(x @ w.T + h @ u.T + b, 4, 1)
    cn = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    return np.tanh(cn) / (1 + np.exp(-o)), cn


GROUPS = {f.__name__: f for f in (channel_histograms, graph_messages, lstm_two_weights, rain_grid, segment_means)}
