"""Each knob of a budget, and each model, decides what it says. No device is needed: kernels are not run."""

from __future__ import annotations

import inspect
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from lift_egraph import programs
from lift_egraph.cli.main import optimize as command
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo, Timing
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.validate import Verdict
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.saturate import Limits, Phase, Saturation, run_phase
from lift_egraph.errors import BudgetProblem, ModelProblem, SizeProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import Extracted, best_terms
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.learned.strategies import ByFamily
from lift_egraph.process.child import Ended
from lift_egraph.workbench import Budget, Found, PhaseSummary, candidates, optimize, pipeline, search
from lift_egraph.workbench.budget import MOST_CROWDED, crowding
from lift_egraph.workbench.exploration import by_plans, by_rules
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.measuring import lanes
from lift_egraph.workbench.measuring.lanes import Clock, Lanes
from lift_egraph.workbench.planning.plan import PLANNED
from tests.codegen.devices.test_devices import INFO
from tests.depth import in_turn
from tests.in_process import Here

GPU = replace(INFO, kind="gpu", platform="NVIDIA CUDA")
BLOCKS = {"cpu_blocks": (4, 8), "gpu_blocks": (8, 4), "tiled_first": 1}
SMALL = Budget(seconds=20, limits=Limits(2, 5_000), **BLOCKS, seeds=3, lowered=3, staged=1, tuning_share=0.0)


@dataclass
class Seen:
    """What `optimize` did with a budget."""

    items: list[PhaseSummary | Found | Tunable] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    measured: list[Plan] = field(default_factory=list)

    @property
    def found(self) -> list[Found]:
        return [item for item in self.items if isinstance(item, Found)]

    def phases(self, name: str) -> int:
        return sum(isinstance(item, PhaseSummary) and item.name == name for item in self.items)

    def ends(self, name: str) -> int:
        return sum(f.way[-1].name == name for f in self.found)

    @property
    def restructured(self) -> list[Found]:
        return [f for f in self.found if f.way[0].name == "algorithmic" and f.way[0].iterations]

    @property
    def planned(self) -> list[Found]:
        return [f for f in self.found if f.way[0].name in PLANNED]

    @property
    def tilings(self) -> list[dict[int, tuple[int, ...]]]:
        return [dict(t) for t in dict.fromkeys(tuple(f.way[0].tiling.items()) for f in self.restructured)]


SATURATED: dict[tuple[ir.Expr, str], Saturation] = {}
REACHED: dict[tuple[ir.Expr, str], Any] = {}
EXTRACTED: dict[tuple[Any, ...], list[Extracted]] = {}
COMPILED: dict[tuple[str, str], Plan] = {}


def compiled(program: ir.Program, device: Device, *, term_text: str) -> Plan:
    """The kernels of a term, which are made once for all budgets."""
    key = term_text, device.name
    if key not in COMPILED:
        COMPILED[key] = compile_program(program, device, term_text=term_text)
    return COMPILED[key]


def remembered(term: ir.Expr, phase: Phase) -> Iterator[Saturation]:
    """The end of a phase, which is run once for all budgets."""
    rules = [rule.name for rule in phase.rules]
    key = term, f"{phase.name} {rules} {phase.tiles} {phase.widths} {phase.staging} {phase.limits}"
    if key not in SATURATED:
        *_, SATURATED[key] = run_phase(term, phase)
    yield SATURATED[key]


def reached(term: ir.Expr, stage: Stage) -> Iterator[Any]:
    """The end of a stage of a plan, which is searched once for all budgets."""
    key = term, f"{stage.sketch} {stage.weigh} {stage.phase.name} {stage.phase.tiles} {stage.phase.limits}"
    if key not in REACHED:
        *_, REACHED[key] = search_stage(term, stage)
    yield REACHED[key]


def extracted(graph: FrozenEGraph, *arguments: Any, **options: Any) -> list[Extracted]:
    """Terms of an e-graph, which are extracted once for all budgets."""
    key = id(graph), repr(arguments), repr(options)  # `SATURATED` keeps the e-graph
    if key not in EXTRACTED:
        EXTRACTED[key] = best_terms(graph, *arguments, **options)
    return EXTRACTED[key]


class Unhurried(Clock):
    """Stands still."""

    spent = 0.0  # pyright: ignore[reportAssignmentType]


@cache
def see(
    device: DeviceInfo = INFO,
    program: str = "asum",
    structural: StructuralCost = pipeline.STRUCTURAL,
    cost: PerformanceModel = predict,
    child: bool = False,
    **knobs: Any,
) -> Seen:
    """Optimise a small program, measuring after the search; in this process, if no `child` is."""
    seen = Seen()
    ticks: list[Callable[[], None]] = []

    def ends(spent: int) -> bool:
        """Whether the search, of which something waits, ends after so many seconds."""
        patch.setattr(Unhurried, "spent", float(spent))
        patch.setattr(pipeline.Race, "_has_more", True)
        try:
            ticks[0]()
        except Ended:
            return True
        return False

    class Listed(Here):
        def __init__(self, function, *arguments, time_limit, memory_limit, on_tick, child):
            seen.limits["memory"] = memory_limit
            ticks.append(on_tick)
            seen.items = list(function(*arguments))  # in this thread, which alone may use its e-graphs
            super().__init__(lambda: iter(seen.items))

        def begin(self):
            pass

        def signal(self, number):
            pass

    def reference(*_, seconds, **options):
        seen.limits["reference"] = seconds
        return SimpleNamespace(inputs={"": {}}, timed="", how="", check=lambda *_: Verdict(True, 0.0, 0.0, True, "", 1))

    def in_numpy(program, inputs, seconds):
        seen.limits["numpy"] = seconds

    def roofline(device, seconds):
        seen.limits["roofline"] = seconds

    def believed(laws, seconds):
        seen.limits["checks"] = seconds
        return []

    class Untouched:
        def __init__(self, device, time_limit):
            seen.limits["kernel"] = time_limit

        def load_inputs(self, *_):
            pass

        def close(self):
            pass

        signal = cancel = build = begin = load_inputs
        left = 1.0

        def in_turns(self, plans, *_, **options):
            seen.limits["turns"] = options["max_time"]
            return [(1.0,) for _ in plans]

        def measure(self, plan, name, **options):
            if "max_time" in options:  # else it is a trial, or the kernel that is timed beside others
                seen.limits |= options
                seen.measured.append(plan)
            return Timing(1.0, 1.0, 1, (1.0, 1.0))

    class Ordered(Lanes):
        def free(self, beside):
            seen.limits["lanes"] = self.count
            return not beside and not self.busy

    with pytest.MonkeyPatch.context() as patch:
        if not child:
            patch.setattr(pipeline, "Stream", Listed)
            patch.setattr(pipeline, "begun", lambda *_: nullcontext())
            for module in (inspect.getmodule(search), by_rules, by_plans):
                for name, known in (("run_phase", remembered), ("search_stage", reached), ("best_terms", extracted)):
                    if hasattr(module, name):
                        patch.setattr(module, name, known)
        patch.setattr(candidates, "compile_program", compiled)
        patch.setattr(pipeline, "believe", believed)
        patch.setattr("lift_egraph.workbench.budget.crowding", lambda: 1.0)
        patch.setattr(pipeline, "Lanes", Ordered)
        patch.setattr(pipeline, "WholeNumbers", lambda *_: None)
        patch.setattr(pipeline, "Clock", Unhurried)
        for module in (lanes, pipeline):
            patch.setattr(module, "Runner", Untouched)
        patch.setattr(pipeline, "reference_of", reference)
        patch.setattr(pipeline, "numpy_ms", in_numpy)
        patch.setattr(pipeline, "roofline", roofline)
        source = parse_program(program) if " " in program else programs.load(program)
        models = {"structural": structural, "cost": cost}
        sizes = {name: 64 if program == "asum" else 8 for name, _ in source.sizes}
        budget = replace(SMALL, **knobs)
        report = optimize(source, sizes, device=device, top=1, budget=budget, **models)
        if ticks:
            seen.limits["search"] = next((n for n in range(round(budget.seconds)) if ends(n)), budget.seconds)
    seen.measured = seen.measured[not report.no_baseline :]
    return seen


def layout(seen: Seen) -> int:
    kinds = (ir.Split, ir.Join, ir.Transpose, ir.Gather)
    return sum(isinstance(t, kinds) for f in seen.found for t in ir.subterms(f.way[0].term))


def length(plan: Plan) -> int:
    return len("".join(kernel.source for kernel in plan.kernels))


def longest(plan: Plan, device: Device) -> float:
    return -length(plan)


def alike(plan: Plan, device: Device) -> float:
    return 1.0


ENOUGH = {"cost": alike}  # nothing promises to be faster than the best


FEW: dict[str, Any] = {"cpu_blocks": (4,), "lowered": 1, "staged": 0}  # for knobs of what comes before
LEAST: dict[str, Any] = {**FEW, "plan_iterations": 1}
QUICK: dict[str, Any] = {**LEAST, "seeds": 1, "tiled_first": 0, "stages_share": 0}  # for knobs of what comes after
TUNED: dict[str, Any] = {"tuning_share": 1.0, "seeds": 1}
MM = {"program": "mm", "cpu_blocks": (4,), "copies": 30}
TWO = {"program": "program p(x: [f32]16) = let y = map(abs, x) in map(add, zip(y, gather(reverse, y)))", **LEAST}
HALVES = {
    "program": "program p(x: [f32]64) = reduce(add, 0.0, x) alternative p where c in 2..9 = "
    "reduce(add, 0.0, map(fun y => reduce(add, 0.0, y), split(c, x)))",
    "seeds": 1,
    **LEAST,
}
NORM = {"program": "program p(x: [f32]64) = let s = reduce(add, 0.0, x) in map(fun v => v / s, x)", "seeds": 1, **FEW}
# Knob, a value that asks for less of something, what that is, and where it shows.
KNOBS: list[tuple[str, Any, Callable[[Seen], float], dict[str, Any]]] = [
    ("seconds", 10, lambda s: s.limits["kernel"], {**QUICK, "least_kernel": 1}),
    ("seconds", 60, lambda s: len(s.measured), {**ENOUGH, "seconds": 180, "measured": 2, "measured_per_rank": 0}),
    ("reference_share", 0.1, lambda s: s.limits["reference"], {**QUICK, "seconds": 60}),
    ("least_reference", 1, lambda s: s.limits["reference"], {**QUICK, "seconds": 5}),
    ("numpy_share", 0.01, lambda s: s.limits["numpy"], QUICK),
    ("roofline_share", 0.01, lambda s: s.limits["roofline"], QUICK),
    ("checks_share", 0.01, lambda s: s.limits["checks"], QUICK),
    ("search_share", 0.1, lambda s: s.limits["search"], {**QUICK, "seconds": 60}),
    ("lanes", 1, lambda s: s.limits["lanes"], QUICK),
    ("kernel_share", 0.1, lambda s: s.limits["kernel"], {**QUICK, "seconds": 60}),
    ("least_kernel", 1, lambda s: s.limits["kernel"], {**QUICK, "seconds": 10}),
    ("most_kernel", 10, lambda s: s.limits["kernel"], {**QUICK, "seconds": 60}),
    ("copy_rate", 1e9, lambda s: s.limits["kernel"], QUICK),
    ("limits", Limits(1, 5_000), lambda s: max(f.way[0].iterations for f in s.restructured), {}),
    ("limits", Limits(2, 5_000, memory_mb=500), lambda s: s.limits["memory"], QUICK),
    ("cpu_blocks", (4,), lambda s: len(s.tilings), {}),
    ("gpu_blocks", (4,), lambda s: len(s.tilings), {"device": GPU}),
    ("long_array", 64, lambda s: len(s.tilings), {}),
    ("chunks_per_unit", 1, lambda s: -max(s.tilings[0][64]), {"long_array": 64}),
    ("tiled_first", 0, lambda s: s.items.index(s.restructured[0]), {"program": "mm", **LEAST}),
    ("widths", 1, lambda s: len(s.found[0].way[1].widths), {}),
    ("stage_iterations", 1, lambda s: max(f.way[0].iterations for f in s.found if f.way[0].name == "stages"), TWO),
    ("variants", 1, lambda s: s.phases("algorithmic"), TWO),
    ("versions", 1, lambda s: s.phases("alternatives"), HALVES),
    ("plan_iterations", 1, lambda s: len(s.planned), {}),
    ("tuning_share", 0, lambda s: sum(isinstance(item, Tunable) for item in s.items), {**FEW, **TUNED}),
    ("points", 0, lambda s: len(s.measured), {**FEW, **TUNED, "cost": alike}),
    ("stages_share", 0, lambda s: len(s.planned), NORM),
    ("stage_seeds", 1, lambda s: s.phases("lowering"), NORM),
    ("stage_terms", 1, lambda s: len(s.found), NORM),
    ("seeds", 1, lambda s: s.phases("lowering"), {}),
    ("seed_tries", 1, lambda s: s.phases("lowering"), {}),
    ("seeds_per_shape", 1, lambda s: s.phases("lowering"), {}),
    ("worst_seed", 1, lambda s: s.phases("lowering"), {}),
    ("plainness", 1.0, layout, {}),
    ("lowered", 1, lambda s: s.ends("lowering"), {}),
    ("lowered_tries", 1, lambda s: s.ends("lowering"), {"lowered": 30}),
    ("lowered_per_shape", 1, lambda s: s.ends("lowering"), {"lowered": 30}),
    ("staged", 0, lambda s: s.ends("memory"), {}),
    ("copies", 1, lambda s: s.ends("memory"), {}),
    ("copy_tries", 1, lambda s: s.ends("memory"), {**MM, "copies_per_shape": 5}),
    ("copies_per_shape", 1, lambda s: s.ends("memory"), {**MM, "copies_per_shape": 5}),
    ("patience", 0, lambda s: s.phases("lowering"), {"seeds": 12, "lowered": 1, "staged": 0}),
    ("measured", 2, lambda s: len(s.measured), {**ENOUGH, "measured_per_rank": 0}),
    ("measured_per_rank", 1, lambda s: len(s.measured), {**ENOUGH, "measured": 0, "measured_per_rank": 9}),
    ("long_source", 600, lambda s: length(s.measured[0]), {"cost": longest}),
    ("repeats", 1, lambda s: s.limits["repeats"], QUICK),
    ("timing_seconds", 0.01, lambda s: s.limits["min_time"], QUICK),
    ("timing_share", 0.01, lambda s: s.limits["max_time"], QUICK),
    ("turns_share", 0.01, lambda s: s.limits["turns"], QUICK),
    ("cut_off", 1, lambda s: s.limits["cut_off_ms"], QUICK),
]


@in_turn(8)
@pytest.mark.parametrize(("name", "value", "what", "where"), KNOBS, ids=[row[0] for row in KNOBS])
def test_each_knob_is_used(name: str, value: Any, what: Callable[[Seen], float], where: dict[str, Any]):
    assert what(see(**{**where, name: value})) < what(see(**where))


def test_a_naive_kernel_that_takes_long_to_build_goes_late():
    naive = "mapGlb(0, fun e => alpha * e, x)"
    is_naive = [naive in plan.source for plan in see(program="scal", long_source=1).measured]
    assert is_naive[-1]
    assert not any(naive in plan.source for plan in see(program="scal").measured)  # it was first, which these are not


def test_no_knob_is_left_out():
    assert {name for name, *_ in KNOBS} == {f.name for f in fields(Budget)}
    assert inspect.signature(command).parameters["budget"].default == Budget().seconds


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("seconds", float("nan"), "a number above 0"),
        ("seconds", "60", "a number above 0"),
        ("search_share", 30, "a number from 0 to 1"),
        ("worst_seed", 0.5, "a number of at least 1"),
        ("seeds", 0, "a whole number of at least 1"),
        ("seeds", 2.5, "a whole number of at least 1"),
        ("staged", -1, "a whole number of at least 0"),
        ("cpu_blocks", [4], "a tuple of whole numbers of at least 2"),
        ("limits", 60_000, "lift_egraph.egraph.saturate.Limits"),
    ],
)
def test_wrong_values_are_named(name: str, value: object, right: str):
    with pytest.raises(BudgetProblem, match=re.escape(f"the budget's {name} must be {right}, got {value!r}")):
        Budget(**{name: value})


def test_a_number_is_a_budget_of_seconds():
    with pytest.raises(BudgetProblem, match="seconds must be a number above 0, got 0"):
        optimize(programs.load("asum"), budget=0)


# --- models -------------------------------------------------------------------------------------------------


def slowest(plan: Plan, device: Device) -> float:
    return -float(predict(plan, device))


def test_a_performance_model_decides_the_order(monkeypatch: pytest.MonkeyPatch):
    """As long as nothing is learned from what was measured."""
    monkeypatch.setattr(ByFamily, "learn", lambda *_: None)
    plans = [see.__wrapped__(cost=model).measured for model in (predict, slowest)]
    fast, slow = ([float(predict(plan, describe(INFO))) for plan in order] for order in plans)
    assert fast == sorted(fast)
    assert slow == sorted(fast, reverse=True)
    assert len(set(fast)) > 1


def test_a_performance_model_may_leave_plans_out():
    def short(plan: Plan, device: Device) -> float:
        if length(plan) > 600:
            raise SizeProblem("too long for what was learned")
        return 1.0

    assert {length(plan) > 600 for plan in see(cost=short).measured} == {False}
    assert any(length(plan) > 600 for plan in see().measured)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (lambda plan, device: 1 / 0, "model <lambda> failed on asum: ZeroDivisionError: division by zero"),
        (lambda plan, device: float("nan"), "model <lambda> predicts nan ms for asum; a prediction is a finite number"),
        (lambda plan, device: None, "model <lambda> failed on asum: TypeError"),
    ],
)
def test_a_performance_model_that_fails(model: Any, text: str):
    with pytest.raises(ModelProblem, match=text):
        see(cost=model)


class NoVectors(StructuralCost):
    """Takes no vectors."""

    def rate(self, graph, owner, node, parts):
        return None if node.op == "Fn_vec" else super().rate(graph, owner, node, parts)


class Broken(StructuralCost):
    """Fails."""

    def rate(self, graph, owner, node, parts):
        raise KeyError(node.op)


class Locked(StructuralCost):
    """Cannot be pickled."""

    def __reduce__(self):
        return threading.Lock(), ()


@in_turn(3)
def test_a_structural_cost_decides_what_is_found():
    def vectors(structural: StructuralCost) -> int:
        plans = see(structural=structural, child=True, seeds=1).measured
        assert plans
        return sum("float4" in plan.source for plan in plans)

    assert vectors(NoVectors()) == 0 < vectors(StructuralCost())


def test_a_structural_cost_that_fails():
    with pytest.raises(ModelProblem, match=r"^the cost model Broken failed on a node \w+: KeyError: '\w+'$"):
        see(structural=Broken(), child=True)
    with pytest.raises(ModelProblem, match="the structural cost Locked cannot be sent to the process that searches"):
        see(structural=Locked())


def test_kernels_may_take_longer_where_others_wait_for_processors_too(monkeypatch: pytest.MonkeyPatch):
    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for load, times in ((12.0, 3.0), (1.0, 1.0), (900.0, MOST_CROWDED)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert crowding() == times
    monkeypatch.setattr(os, "getloadavg", unknown)
    assert crowding() == 1.0
