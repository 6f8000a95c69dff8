"""A worker that another test left is as good as new, and one that failed is left to nobody."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.errors import RunProblem
from lift_egraph.language.syntax import parse_program
from tests.kept import Kept

PROGRAM = parse_program("program doubled(xs: [f32]8) = mapGlb(0, fun x => x + x, xs)")


def worker_of(runner: Runner) -> int:
    """The process that a runner has."""
    server = runner._server
    assert isinstance(server, Kept)
    assert server._child is not None
    return server._child.pid


def test_a_worker_begins_anew_for_the_next_and_is_left_to_nobody_once_it_failed():
    device = find_device("Portable")
    plan = compile_program(PROGRAM, describe(device))
    workers: list[int] = []
    for start in range(2):
        with Runner(device) as runner:
            xs = np.arange(start, start + 8, dtype=np.float32)
            runner.load_inputs("xs", {"xs": xs})
            np.testing.assert_array_equal(runner.run(plan, "xs"), xs + xs)
            workers.append(worker_of(runner))
    with Runner(device) as runner:
        runner._send("", {})
        workers.append(worker_of(runner))
        with pytest.raises(RunProblem, match="KeyError"):  # it knows nothing of the inputs of others
            runner._server.request(("run", plan, "xs"))
    with Runner(device) as runner:
        runner._send("", {})
        assert worker_of(runner) != workers[2]
    assert len(set(workers)) == 1
