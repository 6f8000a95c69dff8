"""Random high-level programs of several stages: how many get a naive kernel, and whether its results are right.

The programs are those of ``tests/pipelines.py``, with lets, values used several times, other orders, in one to three
dimensions. Each is compiled as `optimize` compiles its baseline, and run on integers and floats against the
interpreter. With `--budget` each is optimised for so many seconds, and its best kernel run on inputs of another seed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import harness
from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from lift_egraph.api import LiftError, judge, optimize, print_program, references
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.run import Runner, check_limits, find_device
from lift_egraph.extract.baseline import computes
from lift_egraph.language import ir
from tests.pipelines import pipelines

RIGHT = "right"


def main() -> None:
    parser = harness.options("random_programs", __doc__ or "")
    parser.add_argument("--count", type=int, default=1000, help="how many programs (default: %(default)s)")
    parser.add_argument("--stages", type=int, default=5, help="of a program, at most (default: %(default)s)")
    parser.add_argument("--scale", type=int, default=1, help="of the lengths, which are 1 to 12 (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the programs (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3600, help="after which no more are begun")
    parser.add_argument("--budget", type=float, help="seconds for optimising each (default: its naive kernel only)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    device, began = find_device(arguments.device), time.perf_counter()
    outcomes: Counter[str] = Counter()
    stages: Counter[int] = Counter()
    with Runner(device) as runner:
        for program in programs(arguments.count, arguments.stages, arguments.scale, arguments.seed):
            if time.perf_counter() - began > arguments.seconds:
                break
            kernels, outcome = tried(program, device, runner, arguments.budget, arguments.seed)
            stages[min(kernels, 5)] += 1
            outcomes[outcome.split("\n")[0]] += 1
            if outcome != RIGHT:
                print(f"{outcome}\n{print_program(program)}", flush=True)
    total = sum(outcomes.values())
    rows: list[harness.Row] = [(outcome, count) for outcome, count in outcomes.most_common()]
    rows += [
        (f"of {number}{' or more' * (number == 5)} kernels", stages[number]) for number in sorted(stages) if number
    ]
    title = f"{total} random programs, {'optimised' if arguments.budget else 'their naive kernels'}"
    harness.report(arguments.out, title, ("outcome", "programs"), rows, device=device)


def programs(count: int, stages: int, scale: int, seed: int) -> Iterator[ir.Program]:
    """Programs with something to compute."""
    found: list[ir.Program] = []

    @seeded(seed)
    @settings(
        max_examples=2 * count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(pipelines(stages, scale))
    def collect(program: ir.Program) -> None:
        if computes(program.body) and len(found) < count:
            found.append(program)

    collect()
    yield from found


def tried(program: ir.Program, device: DeviceInfo, runner: Runner, budget: float | None, seed: int) -> tuple[int, str]:
    """The number of kernels of a program, and what became of them."""
    try:
        if budget is None:
            plan = harness.naive_plan(program, device)
            check_limits(plan, device)
        else:
            best = optimize(program, device=device, budget=budget, seed=seed, records="none").best
            assert best is not None
            plan = best.plan
        reference = references(program, seed + 1)
        runner.load_inputs("integers", reference.integers.inputs)
        runner.load_inputs("floats", reference.floats.inputs)
        verdict = judge(reference, runner.run(plan, "integers"), runner.run(plan, "floats"))
    except LiftError as problem:
        return 0, f"{type(problem).__name__}: {problem}"
    return len(plan.kernels), RIGHT if verdict.valid else f"WRONG: {verdict.message}"


if __name__ == "__main__":
    main()
