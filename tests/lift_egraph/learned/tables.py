"""Samples for tests: none of them was measured. Their throughput is what two features say, and some noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_egraph.extract.features import NAMES
from lift_egraph.learned.samples import Samples
from tests.codegen.devices.test_devices import INFO

TELLING = "global_loads", "vector_width"  # the features that say how fast a kernel is


def samples(programs: int = 3, points: int = 25, seed: int = 0) -> Samples:
    """Kernels of programs of which each takes a hundred times as long as the one before."""
    draw, count = np.random.default_rng(seed), programs * points
    features = draw.uniform(1, 100, (count, len(NAMES)))
    loads, width = (features[:, NAMES.index(name)] for name in TELLING)
    number = np.repeat(np.arange(programs), points)
    return Samples(
        device=replace(INFO, kind="cpu"),
        versions={"lift-egraph": "1"},
        columns=NAMES,
        notes=(),
        programs=tuple(f"p{n}" for n in number),
        inputs=("N = 64",) * count,
        families=tuple("tiled" if n % 2 else "" for n in range(count)),
        features=features,
        analytical=draw.uniform(1e-3, 1, count),
        seconds=1e-3 * 100.0**number * loads / width * draw.uniform(0.95, 1.05, count),
    )
