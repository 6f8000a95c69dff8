"""What programs are compared with computes what they mean."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lift_egraph.bench import by_hand, in_numpy, in_scipy, peers
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn

# sizes that the texts by hand are for
BY_HAND = {
    "asum": {"N": 16384}, "dot": {"N": 16384}, "matvec": {"M": 64, "N": 48}, "jacobi5": {"M": 32, "N": 48},
    "j2d9pt": {"M": 32, "N": 48}, "gauss25": {"M": 32, "N": 48}, "laplace7": {"M": 8, "N": 32, "L": 48},
    "softmax_rows": {"M": 32, "N": 64}, "norm_rows": {"M": 32, "N": 64}, "conv_layer": {"C": 3, "O": 4},
    "scan": {"N": 4096}, "scan_f32": {"N": 4096}, "horner": {"N": 16384}, "mss": {"N": 1 << 18},
}  # fmt: skip


def small(name: str) -> ir.Program:
    """A program with sizes of a few elements."""
    program = peers.load(name)
    return specialise(program, {size: 6 for size, _ in program.sizes} | ({"B": 2} if name == "mm_batch" else {}))


def agree(name: str, program: ir.Program, inputs: dict[str, Any], found: object) -> None:
    """Check a result against the interpreter's."""
    right = [np.asarray(leaf) for leaf in leaves_of(evaluate(program.body, inputs))]
    results: Sequence[Any] = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(right, results, strict=True):
        np.testing.assert_allclose(ours.ravel(), np.ravel(theirs), rtol=2e-4, atol=2e-4, err_msg=name)


def test_which_library_a_program_has():
    for name in peers.names():
        assert peers.of(specialise(peers.load(name))) == name
    few = specialise(peers.load("mm"), {"M": 4, "N": 5, "K": 6})
    assert peers.of(few) == "mm"
    assert peers.of(specialise(parse_program("program mm(A: [f32]N) where N = 4 = map(fun v => v + 1.0, A)"))) is None
    other = "program mm(A: [[f32]K]M, B: [[f32]N]K) where M = 4, K = 4, N = 4 = A"
    assert peers.of(specialise(parse_program(other))) is None


def test_what_numpy_computes_is_what_the_programs_mean():
    for name in peers.names():
        program = small(name)
        inputs = random_inputs(program, 3, "float")
        found = in_numpy.CALLS[name](**{key: np.asarray(value) for key, value in inputs.items()})
        agree(name, program, inputs, found)


@pytest.mark.parametrize("library", peers.SCHEDULED)
def test_what_schedules_compute_is_what_the_programs_mean(library: str, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip(library.lower())
    if library == "Numba":  # as Python: compiling takes seconds
        import numba

        monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
        monkeypatch.delitem(sys.modules, "lift_egraph.bench.in_numba", raising=False)
    module = importlib.import_module(f"lift_egraph.bench.{peers.SCHEDULED[library]}")
    assert set(module.MAKERS) == set(peers.HELD_BY[library])
    for name, schedules in module.MAKERS.items():
        program = specialise(peers.load(name), BY_HAND[name]) if library == "Halide" else small(name)
        inputs = random_inputs(program, 3, "float")
        for how, make in list(schedules.items())[
            : 1 if library == "Halide" else None
        ]:  # its other one is for large sizes
            found = make({key: np.asarray(value) for key, value in inputs.items()})()
            agree(f"{name} {how}", program, inputs, found)


@needs_opencl
@in_turn(3)
def test_what_texts_by_hand_compute_is_what_the_programs_mean():
    device = find_device("Portable")
    assert set(BY_HAND) == set(by_hand.SHAPES)
    with Runner(device) as runner:
        for name, sizes in BY_HAND.items():
            program = specialise(peers.load(name), sizes)
            inputs = random_inputs(program, 3, "float")
            runner.load_inputs(name, inputs)
            how, plan = list(by_hand.plans(name, program, describe(device)).items())[-1]
            agree(f"{name} {how}", program, inputs, runner.run(plan, name))


def test_sizes_that_no_text_by_hand_is_for():
    few = specialise(peers.load("jacobi5"), {"M": 31, "N": 47})
    assert by_hand.plans("jacobi5", few, describe(find_device())) == {}


def test_a_library_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "lift_egraph.bench.in_scipy", None)
    program = specialise(peers.load("spmv"), {"M": 6, "N": 6, "K": 6})
    found = peers.peers(program, find_device(), random_inputs(program))
    (scipy,) = (peer for peer in found if peer.library == "SciPy")
    assert scipy.problem == "not installed: pip install 'lift-egraph[bench]'"
    assert scipy.make is None
    assert next(peer for peer in found if peer.library == "NumPy").make is not None
    assert in_scipy.MAKERS.keys() == set(peers.HELD_BY["SciPy"])


def test_a_program_of_a_user_has_no_peers():
    program = specialise(parse_program("program scale(x: [f32]N) where N = 4 = map(fun v => v + 1.0, x)"))
    assert peers.peers(program, find_device(), {}) == []
