"""A kernel beside its peers: which of their schedules counts, and what is said of those that are wrong."""

from __future__ import annotations

import time

import numpy as np

from lift_egraph.bench.comparison import compared
from lift_egraph.bench.folder import BenchRow, PeerTime
from lift_egraph.bench.peers import Peer
from lift_egraph.bench.report import tables
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from tests.codegen.opencl import needs_opencl

TEXT = "program scale(x: [f32]N) where N = 64 = mapGlb(0, fun v => v * 2.0, x)"


def slow(result: np.ndarray) -> np.ndarray:
    time.sleep(0.01)
    return result


def no_room() -> np.ndarray:
    raise RuntimeError("no room\nat all")


@needs_opencl
def test_the_best_right_schedule_of_each_counts():
    program, device = specialise(parse_program(TEXT)), find_device("Portable")
    x = np.arange(64, dtype=np.float32)
    plan = compile_program(program, device=describe(device))
    others = [
        Peer("A", "slow", make=lambda: lambda: slow(2 * x)),
        Peer("A", "fast", make=lambda: lambda: 2 * x),
        Peer("A", "wrong", make=lambda: lambda: 3 * x),
        Peer("B", "wrong", make=lambda: lambda: 3 * x),
        Peer("C", "big", make=lambda: no_room),
        Peer("D", "short", make=lambda: lambda: x[:1]),
        Peer("E", problem="not installed: pip install e"),
        Peer("by hand", "same", plan=plan),
        Peer("clocked", milliseconds=lambda rounds: 7.0 * rounds),
    ]
    with Runner(device) as runner:
        runner.load_inputs("floats", {"x": x})
        times, found = compared(runner, {"best": plan}, others, 1)
    by_name = {peer.library: peer for peer in found}
    assert set(times) == {"best"}
    assert (by_name["A"].how, by_name["by hand"].how, by_name["clocked"].ms) == ("fast", "same", 7.0)
    assert all(by_name[name].ms is not None for name in ("A", "by hand"))
    assert by_name["B"] == PeerTime("B", problem="wrong: a wrong result: 63 of 64 elements differ")
    assert by_name["C"] == PeerTime("C", problem="big: no room")
    assert by_name["D"] == PeerTime("D", problem="short: 1 elements, not 64")
    assert by_name["E"] == PeerTime("E", problem="not installed: pip install e")


def test_all_peers_have_a_table():
    device = find_device()
    beside = [PeerTime("NumPy", ms=2.0), PeerTime("Numba", "rows", 1.5), PeerTime("Halide", problem="not installed")]
    row = BenchRow(1, "scale", "h", {"N": 64}, TEXT, device, 1.0, 2.0, best_ms=1.0, peers=beside)
    plain = BenchRow(1, "other", "g", {"N": 64}, TEXT, device, 1.0, 2.0, best_ms=1.0)
    _, found = tables([row, plain], [])
    text = found.markdown()
    assert "| program | sizes | best ms | NumPy | Numba | Halide |" in text
    assert "| scale | N = 64 | 1 | 2 | 1.5 rows | – |" in text
    assert "| other | N = 64 | 1 | – | – | – |" in text
    assert "Halide: not installed (scale)" in text
