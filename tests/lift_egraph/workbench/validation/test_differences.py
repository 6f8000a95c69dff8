"""Where results differ most is found, slice by slice, as in one piece."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lift_egraph.language.types import F32, I32, array
from lift_egraph.workbench.validation.differences import differences


@pytest.mark.parametrize("size", [1, 3, 100])
def test_slices_find_what_the_whole_has(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules[differences.__module__], "SLICE", size)
    draw = np.random.default_rng(0)
    for length in range(1, 30):
        one, other = (draw.integers(0, 4, length).astype(np.float32) for _ in range(2))
        for result in (one, other):
            result[draw.random(length) < 0.1] = np.nan
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        error = np.where(same, 0.0, np.nan_to_num(np.abs(one - other), nan=np.inf))
        found = differences(array(F32, length), one, other, 3)
        assert found.equal == np.count_nonzero(same)
        assert found.elements == length
        assert found.largest == error.max()
        assert sorted(error[at] for _, (at,), _ in found.places) == sorted(np.sort(error[error > 0])[::-1][:3])


def test_differences_of_integers_do_not_wrap():
    one, other = np.array([2**31 - 1, 5], np.int32), np.array([-(2**31), 5], np.int32)
    found = differences(array(I32, 2), one, other, 1)
    assert (found.equal, found.largest) == (1, 2.0**32 - 1)
