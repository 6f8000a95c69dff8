"""From a low-level program, as somebody wrote it, to a validated kernel: no search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.run import Runner, check_limits
from lift_egraph.codegen.running.validate import Verdict
from lift_egraph.errors import RunProblem
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.pretty import print_program
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.demands import data_bytes, require_result
from lift_egraph.workbench.pipeline import found_device
from lift_egraph.workbench.validation.references import load_references, reference_of, room_for


@dataclass(frozen=True)
class Validated:
    """The kernels of a low-level program that gave the right results, and their time at the given sizes.

    `plan` has open sizes if some were asked for; `term` is the program that it was generated from.
    """

    term: ir.Program
    plan: Plan | OpenPlan
    sizes: dict[str, int]
    device: DeviceInfo
    verdict: Verdict
    milliseconds: float | None


def compile_low_level(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    open_sizes: Collection[str] = (),
    any_launch: bool = False,
    device: str | DeviceInfo | None = None,
    description: Device | None = None,
    seed: int = 0,
) -> Validated:
    """Generate the kernels of a low-level program, hold them against the interpreter, and time them.

    Parameters
    ----------
    program
        A program in which every pattern says how it runs.
    sizes
        Values of its size variables; the program's defaults for the rest.
    open_sizes
        Sizes to make arguments of the kernels. Their values in `sizes` serve the validation.
    any_launch
        Whether the kernels are to be right for other work-group sizes too (`lift_egraph.codegen.plans.kernel.Freedom`).
    device
        An index or a part of a device's name; see `lift_egraph.codegen.running.run.find_device`.
    description
        Of the device, where none of the built-in ones will do (`lift_egraph.codegen.devices.load_device`).
    seed
        Of the random inputs.

    Raises
    ------
    NestingProblem, SizeProblem, TypeProblem
        If no kernel can be generated from the program.
    DeviceProblem
        If there is no device, or the kernels ask more than it has.
    BuildProblem, RunProblem
        If they do not build or run; also if a result is wrong.
    """
    info, model = found_device(device, description)
    special = specialise(program, sizes)
    require_result(special)
    values = dict(special.sizes)
    if open_sizes:
        fixed = {name: value for name, value in values.items() if name not in open_sizes}
        term = specialise(program, fixed, keep=open_sizes)
        plan = compile_open(term, model, any_launch=any_launch, term_text=print_program(term))
        tried = plan.at({s.size: values[s.size] for s in plan.sizes})
    else:
        term = special
        plan = tried = compile_program(term, model, any_launch=any_launch, term_text=print_program(term))
    check_limits(tried, info)

    def at_sizes_of(small: ir.Program) -> Plan:
        if isinstance(plan, OpenPlan):
            return plan.at({s.size: dict(small.sizes)[s.size] for s in plan.sizes})
        return compile_program(small, model, any_launch=any_launch)

    reference = reference_of(
        program, special, room_for(special, info, 1), at_sizes_of, seed=seed, seconds=Budget().reference_seconds
    )
    with Runner(info, time_limit=Budget().kernel_seconds(data_bytes(special))) as runner:
        load_references(runner, reference)
        verdict = reference.check(special, tried, runner)
        if not verdict.valid:
            raise RunProblem(f"the kernel of {program.name} is wrong on {info}: {verdict.message}")
        milliseconds = runner.measure(tried, reference.timed).median_ms
    return Validated(term, plan, values, info, verdict, milliseconds)
