"""The run of a benchmark: each program on each device, then each device's kernels on the others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lift_egraph.bench.comparison import compared
from lift_egraph.bench.folder import FORMAT, BenchRow, Crossing, Folder, PeerTime, kernel_name, key_of
from lift_egraph.bench.peers import peers
from lift_egraph.bench.timing import interleaved
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.plans.arrays import read_plan
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner, check_limits
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import LiftError, RunProblem
from lift_egraph.files import read_text
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.pretty import print_program
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.records.record import program_hash
from lift_egraph.workbench import Budget, Candidate, Event, Listener, Report, evaluate, load_references, write
from lift_egraph.workbench.candidates import make_candidate
from lift_egraph.workbench.demands import data_bytes
from lift_egraph.workbench.pipeline import optimize
from lift_egraph.workbench.validation.references import reference_of, room_for
from lift_egraph.workbench.validation.sampled import Sampled

SEED = 977  # of the inputs on which kernels and libraries are timed: no validation has seen them
POINTS = 15  # of a plan, for what its parameters are worth
Keep = Callable[[BenchRow | Crossing], None]


@dataclass(frozen=True)
class Bench:
    """What is measured, and how.

    Parameters
    ----------
    programs
        With the sizes that they are wanted at as defaults.
    folder
        Where results are kept; what it has already for the same budget is not measured again, but what failed is.
    others
        Folders of other machines, whose kernels are run here too.
    budget
        Seconds of each search.
    rounds
        Of timing.
    """

    programs: Sequence[ir.Program]
    devices: Sequence[DeviceInfo]
    folder: Folder
    others: Sequence[Folder] = ()
    budget: float = 25.0
    rounds: int = 5

    def run(self, keep: Keep, listen: Listener = lambda event: None) -> None:
        """Measure what is missing; each result is on the disk before it is handed to `keep`.

        Raises
        ------
        InputProblem, OutputProblem
            If a folder cannot be read or written to.
        """
        self.folder.keep()
        rows, crossings, _ = self.folder.read()
        known = {row.key for row in rows if not row.problem}
        wanted = [(source, device) for source in self.programs for device in self.devices]
        for number, (source, device) in enumerate(wanted):
            text = f"{number + 1} of {len(wanted)}: {source.name} on {device.name}"
            listen(Event("bench", text, number / len(wanted)))
            if (program_hash(specialise(source)), key_of(device), self.budget) not in known:
                self._kept(self.row(source, device, listen), keep)
        done = {crossing.key for crossing in crossings}
        for number, source in enumerate(self.programs):
            for device in self.devices:
                listen(Event("crossing", f"{source.name} on {device.name}", number / len(self.programs)))
                for crossing in self._crossings(source, device, done):
                    self._kept(crossing, keep)

    def _kept(self, item: BenchRow | Crossing, keep: Keep) -> None:
        self.folder.keep(item)
        keep(item)

    # --- a program on a device ----------------------------------------------------------------------------

    def row(self, source: ir.Program, device: DeviceInfo, listen: Listener) -> BenchRow:
        """What `optimize` finds for a program, beside a library."""
        special, began = specialise(source), time.perf_counter()
        row = partial(
            BenchRow, FORMAT, source.name, program_hash(special), dict(special.sizes), print_program(special), device,
            self.budget,
        )  # fmt: skip
        try:
            found = optimize(source, device=device, budget=self.budget, records="none", listen=listen)
        except LiftError as problem:
            return row(time.perf_counter() - began, problem=str(problem).partition("\n")[0])
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        seconds, best, facts = time.perf_counter() - began, found.best, dict[str, object]()
        assert best is not None
        name = kernel_name(source.name, program_hash(special), device)
        write(found, self.folder.kernel(name))
        listen(Event("beside", "timing it in turns with the naive kernel and libraries"))
        with suppress(LiftError):  # what was measured once stands
            facts |= self._beside(special, found, best, device)
        listen(Event("points", "timing other points of its plan"))
        with suppress(LiftError):
            facts |= self._points(source, special, found, device)
        facts = {"best_ms": best.measured_ms, "naive_ms": found.baseline_ms, **facts}
        p_value = found.p_value(found.runner_up) if found.runner_up else None
        phases = [leg.name for leg in best.way]
        return row(seconds, kernel=name, phases=phases, numbers=dict(found.numbers), p_value=p_value, **facts)  # pyright: ignore

    def _beside(self, special: ir.Program, found: Report, best: Candidate, device: DeviceInfo) -> dict[str, object]:
        """The times of the best kernel, the naive one and the peers, in turns."""
        inputs = random_inputs(special, SEED, "float")
        others = peers(special, device, {name: np.asarray(value) for name, value in inputs.items()})
        naive = {} if found.no_baseline or not found.candidates[0].valid else {"naive": found.candidates[0].plan}
        with Runner(device) as runner:
            runner.load_inputs("floats", inputs)
            times, beside = compared(runner, {"best": best.plan, **naive}, others, self.rounds)
        facts: dict[str, object] = {f"{what}_ms": ms for what, ms in times.items()}
        first = min((peer for peer in beside if peer.ms is not None), key=lambda peer: peer.ms or 0.0, default=None)
        if first is not None:
            return {**facts, "peers": beside, "library": _named(first), "library_ms": first.ms}
        if not others and found.numpy_ms is not None:
            return {**facts, "library": "the interpreter, in NumPy", "library_ms": found.numpy_ms}
        return {**facts, "peers": beside}

    def _points(self, source: ir.Program, special: ir.Program, found: Report, device: DeviceInfo) -> dict[str, object]:
        """The median time over points of the best one's plan."""
        drawn = found.drawn(POINTS)
        if not drawn:
            return {}
        description, times = describe(device), list[float]()
        with self._validating(source, special, device) as (runner, reference):
            for item in drawn:
                with suppress(LiftError):  # not for the code generator, or this device
                    lowered = replace(special, body=item.term)
                    made = make_candidate(lowered, item.cost, device, description, item.way)
                    check_limits(made.plan, device)
                    evaluate(made, runner, reference, Budget(self.budget))
                    times += [made.measured_ms] if made.measured_ms is not None else []
        return {"median_ms": statistics.median(times), "points": len(times)} if times else {}

    # --- kernels of other devices ---------------------------------------------------------------------------

    def _crossings(self, source: ir.Program, device: DeviceInfo, done: set[tuple[str, str, str]]) -> list[Crossing]:
        """Each other device's best kernel of a program on a device."""
        special = specialise(source)
        hashed = program_hash(special)
        known = [(folder, row) for folder in (self.folder, *self.others) for row in folder.read()[0]]
        of_program = [(folder, row) for folder, row in known if row.hash == hashed and row.kernel]
        own = next((r for f, r in of_program if f == self.folder and key_of(r.device) == key_of(device)), None)
        others = [(f, r) for f, r in of_program if key_of(r.device) != key_of(device)]
        missing = [(f, r) for f, r in others if own is not None and (r.kernel, own.kernel, key_of(device)) not in done]
        if own is None or not missing:
            return []
        made: list[Crossing] = []
        with self._validating(source, special, device) as (runner, reference):
            ours = read_kernel(self.folder, own.kernel)
            for folder, row in missing:
                crossing = partial(
                    Crossing, FORMAT, source.name, hashed, key_of(row.device), row.kernel, device, own.kernel
                )
                try:
                    term, plan = read_kernel(folder, row.kernel)
                    candidate = Candidate(term, plan, 0.0, 0.0)
                    evaluate(candidate, runner, reference, Budget(self.budget))
                    if not candidate.valid:
                        raise RunProblem(candidate.message)
                    plans = {"other": plan, "own": ours[1]}
                    times = interleaved(runner, plans, {}, self.rounds, reference.timed)
                    made.append(crossing(times["other"], times["own"]))
                except LiftError as problem:
                    made.append(crossing(None, own.best_ms, str(problem).partition("\n")[0]))
        return made

    @contextmanager
    def _validating(
        self, source: ir.Program, special: ir.Program, device: DeviceInfo
    ) -> Iterator[tuple[Runner, References | Sampled]]:
        """What kernels of a program are validated with."""
        budget = Budget(self.budget)
        compiled = partial(compile_program, device=describe(device).run_once)
        seconds = budget.reference_seconds
        reference = reference_of(source, special, room_for(special, device, 1), compiled, seconds=seconds)
        with Runner(device, time_limit=budget.kernel_seconds(data_bytes(special))) as runner:
            load_references(runner, reference)
            yield runner, reference


def _named(peer: PeerTime) -> str:
    return f"{peer.library}, {peer.how}" if peer.how else peer.library


def read_kernel(folder: Folder, name: str) -> tuple[ir.Program, Plan]:
    """A kept kernel and its low-level term.

    Raises
    ------
    InputProblem
        If the files are not there, or are damaged.
    """
    where = folder.kernel(name)
    plan = read_plan(where)
    assert isinstance(plan, Plan)  # `optimize` writes no other
    return parse_program(read_text(where / "lowered.lift"), "lowered.lift"), plan
