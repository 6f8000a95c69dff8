"""What a device reaches: measured once, kept, and measured again where what was kept cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lift_egraph.codegen.running import roofline
from lift_egraph.codegen.running.roofline import Roofline, kept_roofline, measure_roofline
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.errors import RunProblem

POCL = find_device("Portable")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where figures are kept, and kernels that do little."""
    monkeypatch.setattr(roofline, "_path", lambda: tmp_path / "cache" / roofline.FILE)
    monkeypatch.setattr(roofline, "ELEMENTS", 1 << 16)
    monkeypatch.setattr(roofline, "STEPS", 1000)
    return tmp_path / "cache"


def test_it_is_measured_and_kept(folder: Path):
    assert kept_roofline(POCL) is None
    found = measure_roofline(POCL)
    assert 0.1 < found.gb_per_s < 10_000
    assert 0.1 < found.gflop_per_s < 100_000
    assert kept_roofline(POCL) == found
    for damaged in ("", "{", '{"format": 0, "devices": {}}', '{"format": 1, "devices": {"a": 1}}'):
        (folder / roofline.FILE).write_text(damaged)
        assert kept_roofline(POCL) is None


def test_it_need_not_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(roofline, "_most", lambda runner, plans: 2.0)
    folder.write_text("a file, where the folder should be")
    assert measure_roofline(POCL) == Roofline(2.0, 2.0)
    assert kept_roofline(POCL) is None


def test_what_others_load_takes_away_does_not_count(monkeypatch: pytest.MonkeyPatch):
    for most in (3.0, 2.0):
        monkeypatch.setattr(roofline, "_most", lambda runner, plans, most=most: most)
        assert measure_roofline(POCL) == kept_roofline(POCL) == Roofline(3.0, 3.0)


def test_a_device_on_which_nothing_runs_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        roofline, "_computing", lambda *_: [(roofline._plan("  no C;", 1 << 16, 1, roofline.Launch((1, 1, 1))), 1)]
    )
    with pytest.raises(RunProblem, match="roofline cannot be measured: the device's compiler refused"):
        measure_roofline(POCL)


def test_what_the_kernels_do_is_what_is_counted():
    """Each kernel at a small size: the operations and bytes that it is credited with, against what it computes."""
    length = 1 << 12
    with Runner(POCL) as runner:
        runner.load_inputs("x", {"x": roofline.np.ones(length, roofline.np.float32)})
        (copy, copied), (total, read) = roofline._moving(POCL, length)
        assert (runner.run(copy, "x") == 1).all()
        assert copied == 2 * 4 * length
        assert 4 * sum(runner.run(total, "x")) == read == 4 * length
        for plan, operations in roofline._computing(POCL, length):
            assert operations == 2.0 * plan.source.count("* m + c") * roofline.STEPS * _lanes(plan) * 8
            assert (runner.run(plan, "x") > 0).all()


def _lanes(plan: roofline.Plan) -> int:
    return plan.source.count("t.s")
