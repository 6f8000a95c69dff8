"""The programs that users might write, and their peers in NumPy, compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.programs.peers import PEERS
from lift_egraph.api import random_inputs, run, specialise
from lift_egraph.language.syntax import parse_file
from lift_egraph.meaning.values import leaves_of

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "programs").glob("*.lift"))
FIXED = {
    "batch_norm",
    "bitonic_step",
    "covariance",
    "group_means",
    "hash_floats",
    "layer_norm",
    "mean_var",
    "standardise",
    "threshold_mean",
}  # a size is a number


def test_each_has_a_peer():
    assert {f.stem for f in FILES} == set(PEERS)
    assert len(FILES) >= 60


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_it_computes_what_its_peer_does(file: Path):
    program = parse_file(file)
    small = {} if file.stem in FIXED else {name: min(size, 12) for name, size in program.sizes}
    special = specialise(program, small)
    inputs = random_inputs(special, 0, "float")
    expected = leaves_of(PEERS[file.stem](*inputs.values()))
    for ours, theirs in zip(leaves_of(run(special, inputs)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
