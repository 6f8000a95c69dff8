"""`optimize` with and without other points of its plans, in turns: what the best kernels of both take, side by side."""

from __future__ import annotations

import statistics

import harness

from lift_egraph.api import Runner, find_device, parse_program, references, specialise
from lift_egraph.workbench import Budget, load_references, optimize

ROUNDS = 9
PROGRAMS = {
    "A·B": (
        """program p(A: [[f32]K]M, B: [[f32]N]K) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)""",
        [{"M": n, "N": n, "K": n} for n in (512, 1024, 720)],
    ),
    "A·Bᵀ": (
        """program p(A: [[f32]K]M, B: [[f32]K]N) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), B), A)""",
        [{"M": 512, "N": 512, "K": 512}],
    ),
    "A·x": (
        "program p(A: [[f32]K]M, x: [f32]K) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)",
        [{"M": 4096, "K": 4096}],
    ),
    "batch of A·B": (
        """program p(A: [[[f32]K]M]B, C: [[[f32]N]K]B) =
             map(fun (x, y) => map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(y)), x),
                 zip(A, C))""",
        [{"B": 16, "M": 192, "N": 192, "K": 192}],
    ),
}


def main() -> None:
    parser = harness.options("tuned", __doc__ or "")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of each search")
    parser.add_argument("--searches", type=int, default=3, help="of each kind, in turns")
    parser.add_argument("--only", help="of the programs, those whose names contain this")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    budgets = {"with": Budget(arguments.budget), "without": Budget(arguments.budget, tuning_share=0.0, points=0)}
    rows: list[harness.Row] = []
    for name, (text, every) in PROGRAMS.items():
        for sizes in every if (arguments.only or "") in name else ():
            source = parse_program(text)
            special = specialise(source, sizes)
            best: dict[str, list[tuple[str, object]]] = {kind: [] for kind in budgets}
            plans = {}
            for turn in range(arguments.searches):
                for kind, budget in budgets.items():
                    found = optimize(source, sizes, device=device, budget=budget, records="none", seed=turn)
                    plans[f"{kind} {turn}"] = found.ranked[0].plan
                    best[kind].append(("; ".join(map(str, found.ranked[0].way)), len(found.valid)))
            reference = references(special)
            with Runner(device) as runner:
                load_references(runner, reference)
                times = harness.interleaved(runner, plans, {}, ROUNDS)
            of = {k: [times[f"{k} {turn}"] for turn in range(arguments.searches)] for k in budgets}
            medians = {kind: statistics.median(ms) for kind, ms in of.items()}
            ways = "; ".join(f"{kind}: {way}" for kind, found in best.items() for way, _ in found[:1])
            shown = ", ".join(f"{n} = {v}" for n, v in sizes.items())
            counts = [statistics.median(n for _, n in best[kind]) for kind in budgets]
            rows.append((f"{name}, {shown}", medians["with"], medians["without"], medians["without"] / medians["with"],
                         min(of["without"]) / min(of["with"]), *counts, ways))  # fmt: skip
            print(rows[-1], of, flush=True)
    harness.report(
        arguments.out,
        f"Other points of plans: the best kernels of searches of {arguments.budget:g} s",
        ("", "with: ms", "without: ms", "×, medians", "×, least", "kernels with", "without", "ways"),
        rows,
        notes=(
            f"medians over {arguments.searches} searches of each kind, in turns; their best kernels timed again, "
            f"{ROUNDS} interleaved rounds",
        ),
        device=device,
    )


if __name__ == "__main__":
    main()
