"""Our best kernels of the bundled programs beside NumPy in the same run, and beside the best known by hand."""

from __future__ import annotations

from collections.abc import Callable

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


def peer(name: str, inputs: dict[str, np.ndarray]) -> Callable[[], object]:
    """What a user of NumPy would write."""
    if name == "dot":
        return lambda: np.dot(inputs["x"], inputs["y"])
    if name == "asum":
        return lambda: np.abs(inputs["x"]).sum()
    if name == "scal":
        return lambda: inputs["alpha"] * inputs["x"]
    if name == "gemv":
        return lambda: inputs["alpha"] * (inputs["A"] @ inputs["x"]) + inputs["beta"] * inputs["y"]
    if name == "j2d5pt":
        return lambda: jacobi(inputs["A"])
    raise ValueError(f"{name} has no peer here")


def jacobi(a: np.ndarray) -> np.ndarray:
    """The five-point stencil by slices."""
    padded = np.pad(a, 1, mode="edge")
    inner = padded[1:-1, 1:-1]
    around = padded[:-2, 1:-1] + padded[1:-1, :-2] + inner + padded[1:-1, 2:] + padded[2:, 1:-1]
    return np.float32(0.2) * around


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
        found = optimize(program, device=device, **extra)
        special = specialise(program, sizes)
        reference = references(special)
        with Runner(device) as runner:
            load_references(runner, reference)
            plans = {"best": found.ranked[0].plan, "naive": harness.naive_plan(special, device)}
            inputs = {key: np.asarray(value) for key, value in reference.floats.inputs.items()}
            call = peer(name, inputs)
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
