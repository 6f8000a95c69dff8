"""Our best kernels of the bundled programs beside NumPy in the same run, and beside the best known by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import harness
import numpy as np

from lift_egraph.api import Runner, find_device, references, specialise
from lift_egraph.programs import load
from lift_egraph.workbench import load_references, optimize

ROUNDS = 5
# Milliseconds of the best known hand-written OpenCL kernel on PoCL at the programs' default sizes, on two cores
# of a machine with AVX-512 and 48 GB/s of read bandwidth. For asum it is the sum without absolute values, which
# reads the same memory.
BY_HAND = {"dot": 4.9, "asum": 1.44, "gemv": 1.47, "j2d5pt": 4.8}
HEADINGS = (
    "program", "sizes", "naive ms", "best ms", "NumPy ms", "NumPy / best", "by hand ms", "by hand / best", "tried",
)  # fmt: skip


def jacobi(A: np.ndarray) -> np.ndarray:
    """The five-point stencil by slices."""
    padded = np.pad(A, 1, mode="edge")
    inner = padded[1:-1, 1:-1]
    around = padded[:-2, 1:-1] + padded[1:-1, :-2] + inner + padded[1:-1, 2:] + padded[2:, 1:-1]
    return np.float32(0.2) * around


# what a user of NumPy would write, given the program's inputs by name
PEERS: dict[str, Callable[..., object]] = {
    "dot": lambda x, y: x.dot(y),
    "asum": lambda x: np.abs(x).sum(),
    "scal": lambda alpha, x: alpha * x,
    "gemv": lambda A, x, y, alpha, beta: alpha * (A @ x) + beta * y,
    "j2d5pt": jacobi,
}


def main() -> None:
    parser = harness.options("kernels", __doc__ or "")
    parser.add_argument("programs", nargs="*", default=["dot", "asum", "j2d5pt", "scal", "gemv"])
    parser.add_argument("--budget", type=float, help="seconds for each program, instead of the default")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    extra = {} if arguments.budget is None else {"budget": arguments.budget}
    rows = []
    for name in arguments.programs:
        program = load(name)
        sizes = dict(program.sizes)
        found = optimize(program, device=device, records="none", **extra)
        special = specialise(program, sizes)
        reference = references(special)
        with Runner(device) as runner:
            load_references(runner, reference)
            plans = {"best": found.ranked[0].plan, "naive": harness.naive_plan(special, device)}
            inputs = {key: np.asarray(value) for key, value in reference.floats.inputs.items()}
            call = partial(PEERS[name], **inputs)
            assert np.allclose(np.asarray(call()), np.asarray(reference.floats.value), rtol=1e-3, atol=1e-2)
            times = harness.interleaved(runner, plans, {"NumPy": call}, ROUNDS)
        best, hand = times["best"], BY_HAND.get(name) if "Portable" in device.platform else None
        compared = (times["NumPy"] / best, hand, hand / best if hand else None)
        shown = ", ".join(f"{key} = {value}" for key, value in sizes.items())
        tried = f"{len(found.valid)} valid, {len(found.rejected)} rejected"
        rows.append((name, shown, times["naive"], best, times["NumPy"], *compared, tried))
        print(*rows[-1], flush=True)
    harness.report(
        arguments.out,
        "Kernels found by optimize",
        HEADINGS,
        rows,
        notes=(
            f"naive, best and NumPy: medians of {ROUNDS} interleaved rounds in this run; kernels by the clock of the "
            "device, NumPy by the wall clock",
            "by hand: the best known hand-written kernel on PoCL, measured once on a machine of this class (two cores, "
            "AVX-512); for asum a sum without absolute values",
            "ratios above 1 mean that the kernel found is faster; tried: candidates validated",
        ),
        device=device,
    )


if __name__ == "__main__":
    main()
