"""The programs that users might write, and their peers in NumPy, compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.programs.peers import PEERS
from lift_egraph.api import random_inputs, run, specialise
from lift_egraph.language.syntax import parse_file
from lift_egraph.meaning.values import leaves_of
from tests.depth import in_turn

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "programs").glob("*.lift"))
SMALL = {
    "american_put": {"options": 12},
    "autocorrelation": {"N": 71},
    "batch_norm": {},
    "bitonic_step": {},
    "bond_value": {"bonds": 12},
    "covariance": {},
    "double_integral": {"N": 12},
    "epidemic": {"P": 12},
    "fft_stage": {"N": 48, "half": 12},
    "group_means": {},
    "hash_floats": {},
    "hough": {"H": 12, "W": 12},
    "knapsack": {"ITEMS": 12},
    "layer_norm": {},
    "league": {"G": 12},
    "log_spectrum": {"N": 320},
    "mean_var": {},
    "minimizers": {"N": 60},
    "motion": {"H": 16, "W": 24},
    "newton_fractal": {},
    "pendulums": {"N": 12},
    "rk4": {"N": 12},
    "rms_rope": {"T": 12, "D": 24, "half": 12},
    "segment_means": {},
    "simpson": {"N": 12},
    "sta_lta": {"N": 230},
    "standardise": {},
    "stock_bands": {"stocks": 12, "days": 25},
    "threshold_mean": {},
}  # where a size is a number in NumPy, or does not go with the others


def test_each_has_a_peer():
    assert {f.stem for f in FILES} == set(PEERS)
    assert len(FILES) >= 60


@in_turn(8)
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_it_computes_what_its_peer_does(file: Path):
    program = parse_file(file)
    special = specialise(program, SMALL.get(file.stem, {name: min(size, 12) for name, size in program.sizes}))
    inputs = random_inputs(special, 0, "float")
    expected = leaves_of(PEERS[file.stem](*inputs.values()))
    for ours, theirs in zip(leaves_of(run(special, inputs)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
