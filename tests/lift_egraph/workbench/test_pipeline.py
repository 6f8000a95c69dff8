"""The pipeline from a program to validated kernels."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from lift_egraph import programs, rules as book, workbench
from lift_egraph.cli.show import show_report
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import NVIDIA, POCL, describe
from lift_egraph.codegen.plans.arrays import load_plan
from lift_egraph.codegen.running.roofline import Roofline
from lift_egraph.codegen.running.run import Runner, find_device, run_directory
from lift_egraph.codegen.running.validate import references
from lift_egraph.egraph.saturate import Limits
from lift_egraph.errors import InputProblem, SizeProblem, TypeProblem
from lift_egraph.extract.baseline import naive_term
from lift_egraph.extract.tiling import chunk_size, lengths, tilings, vector_widths
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.syntax import parse_program, print_program, print_term
from lift_egraph.meaning.interp import run
from lift_egraph.meaning.values import leaves_of
from lift_egraph.process.child import End
from lift_egraph.workbench import bundling, collection, pipeline
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import make_candidate
from lift_egraph.workbench.measuring.lanes import Clock, SearchEnd
from lift_egraph.workbench.measuring.race import Race
from lift_egraph.workbench.phases import Found, remainders_phase
from lift_egraph.workbench.report import Report
from tests.codegen.devices.test_devices import INFO
from tests.codegen.opencl import needs_opencl

SMALL = workbench.Budget(
    seconds=20, seeds=2, lowered=5, staged=1, measured=6, measured_per_rank=1,
    limits=Limits(iterations=2, nodes=5_000), cpu_blocks=(8,), lanes=1, timing_seconds=0.005, turns_share=0.0,
)  # fmt: skip
CPU = replace(POCL, compute_units=2, vector_width=16)
FILES = {"kernel.cl", "launch.json", "lowered.lift", "report.json", "derivation.json"}


@pytest.fixture(scope="module")
def report() -> workbench.Report:
    budget = replace(SMALL, seconds=40, seeds=1, lowered=4, measured=5, lanes=2, turns_share=0.02, tuning_share=0.02)
    return workbench.optimize(programs.load("mm"), {"M": 64, "N": 64, "K": 64}, budget=budget, top=5)


@needs_opencl
def test_mm_has_distinct_valid_candidates(report: workbench.Report):
    assert 3 <= len(report.ranked) <= 5  # all 5 where nothing else runs beside
    assert all(c.valid and c.measured_ms and c.max_error is not None for c in report.ranked)
    assert len({"".join(k.source for k in c.plan.kernels) for c in report.ranked}) == len(report.ranked)
    assert report.speedup is not None
    assert report.baseline_ms is not None
    assert report.ranked == sorted(report.ranked, key=lambda c: c.rank)


@needs_opencl
def test_lowered_terms_mean_what_the_program_means(report: workbench.Report):
    program = specialise(programs.load("mm"), {"M": 64, "N": 64, "K": 64})
    inputs = references(program).integers.inputs
    expected = run(program, inputs)
    for c in report.ranked:
        reread = parse_program(print_program(c.program))
        assert np.array_equal(run(reread, inputs), expected)
        assert type_of(reread.body) == type_of(program.body)


@needs_opencl
def test_written_kernel_runs_on_arrays(report: workbench.Report, tmp_path: Path):
    workbench.write(report, tmp_path / "mm")
    assert {p.name for p in (tmp_path / "mm").iterdir()} == FILES
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    product = run_directory(tmp_path / "mm", {"A": a, "B": b}, None)
    assert np.allclose(product, a @ b, atol=1e-3)
    assert load_plan(tmp_path / "mm").name == "mm"
    assert report.best is not None
    context = cl.create_some_context(interactive=False)
    best = report.best.load(cl.CommandQueue(context))
    assert np.allclose(best(A=a, B=b), product, atol=1e-3)


@needs_opencl
def test_a_hanging_kernel_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch):
    program = specialise(programs.load("scal"), {"N": 64})
    info = find_device()
    reference = references(program)
    good = workbench.make_candidate(naive_term(program), 0, info, describe(info))
    bad = workbench.make_candidate(naive_term(program), 0, info, describe(info))
    bad.plan = replace(bad.plan, source=bad.plan.source.replace("{\n", "{\n  for (volatile int z = 1; z;) {}\n", 1))
    with Runner(info, time_limit=0.5) as runner:
        workbench.load_references(runner, reference)
        workbench.evaluate(bad, runner, reference)
        runner.time_limit = 60
        workbench.evaluate(good, runner, reference)
    assert not bad.valid
    assert "limit" in bad.message
    assert good.valid


@needs_opencl
def test_the_search_goes_on_without_a_naive_kernel(monkeypatch: pytest.MonkeyPatch):
    unlowered = lambda program: program  # noqa: E731
    monkeypatch.setattr(pipeline, "naive_term", unlowered)
    budget = replace(SMALL, measured=1, seeds=1, limits=Limits(iterations=1, nodes=5_000))
    found = workbench.optimize(programs.load("scal"), {"N": 64}, budget=budget, top=1)
    assert found.best is not None
    assert found.speedup is None
    assert "map that computes is left" in found.no_baseline
    assert found.to_json()["baseline"] == {"measured_ms": None, "refused": found.no_baseline}


@needs_opencl
@pytest.mark.parametrize(
    "body",
    [
        "A",
        "transpose(A)",
        "(A[0][2], zip(A[0], gather(reverse, A[1])))",
        "let B = join(A) in (slide(3, 1, B), lookup(generate(3, fun i => i), B))",
        "iterate(3, fun B => gather(reverse, B), A)",
    ],
)
def test_what_is_only_rearranged_is_copied(runner: Runner, body: str):
    program = specialise(parse_program(f"program t(A: [[f32]N]M) where N = 5, M = 3 = {body}"))
    inputs = references(program).integers.inputs
    runner.load_inputs("inputs", inputs)
    found = runner.run(compile_program(naive_term(program), POCL), "inputs")
    for ours, theirs in zip(leaves_of(found), leaves_of(run(program, inputs)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["scal", "asum", "dot", "gemv", "mm", "j2d5pt", "scan"])
def test_naive_terms_mean_what_the_programs_mean(name: str):
    program = specialise(programs.load(name), {k: 12 for k, _ in programs.load(name).sizes})
    inputs = references(program).integers.inputs
    assert np.allclose(run(naive_term(program), inputs), run(program, inputs))


def test_tilings_offer_one_chunk_a_level():
    program = specialise(programs.load("dot"), {"N": 1 << 20})
    assert lengths(program) == (1 << 20,)
    first = tilings(program, CPU, (4, 8), long=1 << 16, chunks_per_unit=32)[0]
    assert first[1 << 20] == (chunk_size(1 << 20, 2 * 32),)
    assert vector_widths(program, CPU, 2) == (16, 8)
    assert chunk_size(7919, 4) is None


def test_rules_run_in_the_phases_they_name():
    limits, gpu = Limits(), NVIDIA
    phases = [
        workbench.algorithmic_phase({}, limits),
        workbench.lowering_phase(gpu, (4,), limits),
        workbench.memory_phase(("local", "private"), limits),
    ]
    for phase in phases:
        assert {r.phase for r in phase.rules} == {phase.name}
        assert {r.phase for r in phase.simplification} == {"simplification"}
    phases.append(remainders_phase({}, (), limits))
    used = {r.name for p in phases for r in (*p.rules, *p.simplification)}
    unguided = {r.name for r in book.all_rules} - {r.name for r in book.guided}
    assert unguided - used == {"split_reduce_seq"}  # the README says so
    fewer = workbench.lowering_phase(CPU, (4,), limits)
    assert not any(r.name.startswith(("map_to_wrg", "map_to_lcl")) for r in fewer.rules)


def test_what_the_code_generator_refuses_is_counted(capsys: pytest.CaptureFixture[str]):
    program = specialise(programs.load("scal"), {"N": 64})
    good, bad = naive_term(program), program  # nothing says how the latter runs
    info = replace(INFO, kind="cpu")
    first = make_candidate(good, 0.0, info, POCL)
    race = Race([], lambda found: make_candidate(replace(program, body=found.term), 0.0, info, POCL))
    inbox: SimpleQueue[object] = SimpleQueue()
    for message in (Found(1.0, bad.body, ()), SearchEnd(End("finished", "finished"))):
        inbox.put(message)
    lanes: Any = SimpleNamespace(busy=0, ended="", patience=None, interprets=False, working=nullcontext)
    race.run(inbox, lanes, Budget(5), Clock(5), 1, lambda event: None)
    report = Report(program, "a device", "", [], [first], 1, 0.0, refused=tuple(race.refused))
    (refused,) = report.to_json()["refused"]
    assert refused["lowered"] == print_term(bad.body)
    assert "lower it to" in refused["message"]
    show_report(report)
    assert "Refused by the code generator: 1.\n  1 × " in capsys.readouterr().out


@pytest.mark.parametrize(("share", "submitted"), [(2.0, 1), (0.5, 0)])
def test_a_naive_kernel_that_is_predicted_to_take_too_long_is_not_run(share: float, submitted: int):
    program = specialise(programs.load("scal"), {"N": 64})
    naive = make_candidate(naive_term(program), 0.0, replace(INFO, kind="cpu"), POCL)
    race = Race([naive], lambda found: naive, limit_ms=share * naive.predicted_ms)
    inbox: SimpleQueue[object] = SimpleQueue()
    inbox.put(SearchEnd(End("finished", "finished")))
    measured: list[object] = []
    lanes: Any = SimpleNamespace(busy=0, ended="", patience=None, interprets=False, working=nullcontext)
    lanes.free = lambda beside: True
    lanes.submit = lambda candidate, next_ones: measured.append(candidate)
    race.run(inbox, lanes, Budget(5), Clock(5), 1, lambda event: None)
    assert measured == [naive][:submitted]
    assert race.candidates == [naive]


@needs_opencl
def test_a_budget_that_is_over_at_once_still_yields_a_kernel():
    """The first kernel is measured all the same: it has the time that its own limit gives it."""
    report = at_once("scal", N=64)
    assert report.stop_reason == "time limit"
    assert [c.measured_ms is not None for c in report.ranked] == [True]


@needs_opencl
def test_predictions_take_the_bandwidth_that_was_measured(monkeypatch: pytest.MonkeyPatch):
    found, device = list[float](), replace(find_device(), cache=1 << 20)  # some machines have the data in a cache
    for gb_per_s in (10.0, 20.0):
        monkeypatch.setattr(pipeline, "kept_roofline", lambda info, most=gb_per_s: Roofline(100.0, most))
        found.append(at_once("scal", device, N=1 << 22).ranked[0].predicted_ms)
    assert found[0] > 1.5 * found[1]


def at_once(program: str, device: DeviceInfo | None = None, **sizes: int) -> Report:
    return workbench.optimize(programs.load(program), sizes, device=device, budget=replace(SMALL, seconds=1e-3))


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeProblem, match="optimize takes a program, got 'mm'"):
        workbench.optimize("mm")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sizes", [4], r"""sizes are given as {"N": 1024}, got [4]"""),
        ("sizes", {"N": 4.5}, "the size N must be a whole number, got 4.5"),
        ("sizes", {"N": 1 << 31}, "is beyond the 32-bit index range"),
        ("top", 0, "as top a whole number of at least 1, got 0"),
        ("seed", -1, "as seed a whole number of at least 0, got -1"),
        ("device", 1.5, "as device an index, a part of a name, or a description, got 1.5"),
        ("description", "my.toml", "as description what `load_device` reads of a file, got 'my.toml'"),
        ("cost", "learned", "as cost a model: a function of a plan and a device, got 'learned'"),
        ("strategy", "random", "what `lift_egraph.learned.strategies.strategy_of` makes of a name, got 'random'"),
        ("listen", 3, "as listen a function of an Event, got 3"),
    ],
)
def test_arguments_of_another_kind_are_refused_at_once(name: str, value: Any, message: str):
    with pytest.raises((InputProblem, SizeProblem), match=re.escape(message)):
        workbench.optimize(programs.load("scal"), **{name: value})


@needs_opencl
def test_a_description_alone_means_the_device_that_it_fits():
    device = find_device()
    own = replace(describe(device), named=device.name, launch_overhead=7.0)
    info, model = pipeline.found_device(own, None)
    assert info.platform == device.platform
    assert model.launch_overhead == 7.0
    with pytest.raises(InputProblem, match="a description is given twice, nvidia as the device beside pocl"):
        pipeline.found_device(NVIDIA, POCL)


def test_a_result_without_elements_is_not_measured():
    with pytest.raises(SizeProblem, match=r"p computes no elements: its result is \[f32\]0"):
        workbench.optimize(parse_program("program p(x: [f32]0) = map(abs, x)"))


@pytest.mark.parametrize("module", [bundling, collection, pipeline])
def test_every_search_begins_with_elements_and_tables_computed_once(module: Any, monkeypatch: pytest.MonkeyPatch):
    class Begun(Exception):
        pass

    def begun(program: ir.Program, sizes: object) -> ir.Program:
        raise Begun(print_term(program.body))

    monkeypatch.setattr(module, "specialise", begun)
    program = parse_program("""program waves(xs: [f32]8, ks: [i32]8) =
      let ys = map(abs, xs) in
      let zs = generate(8, fun i => ys[i / 2] + ys[7 - i]) in
      transpose(generate(8, fun i => map(fun x => zs[ks[i]] + x * zs[ks[i] / 2], xs)))""")
    searches = {
        bundling: lambda: bundling.bundle(program, {}, Path("none")),
        collection: lambda: collection.collect(program, journal="none", points=1),
        pipeline: lambda: pipeline.optimize(program),
    }
    with pytest.raises(Begun, match=r"(?s)generate\(8, id\).* ks\),\s*xs\)$"):
        searches[module]()
