"""What `optimize` finds for the work that libraries are made for, beside these libraries in the same run.

NumPy is the peer on a CPU; on an NVIDIA GPU it is torch, where that is installed, by CUDA graphs of ten calls.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
from kernels import jacobi
from numpy.lib.stride_tricks import sliding_window_view as windows
from programs.peers import PEERS

from lift_egraph.api import LiftError, Runner, find_device, optimize, random_inputs, specialise
from lift_egraph.language.syntax import parse_file

FOLDER = Path(__file__).with_name("libraries")
SEED = 977
HEADINGS = ("program", "sizes", "naive ms", "best ms", "library ms", "library / best", "found in", "seconds")
A = np.ndarray


def _gauss(A: A, W: A) -> A:
    p, (m, n) = np.pad(A, 2, mode="edge"), A.shape
    return sum(W[5 * i + j] * p[i : i + m, j : j + n] for i in range(5) for j in range(5))  # pyright: ignore


def _convolved(X: A, F: A) -> A:
    patches = windows(np.pad(X, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2)).transpose(0, 3, 4, 1, 2)
    (channels, height, width), filters = X.shape, len(F)
    return (F.reshape(filters, -1) @ patches.reshape(9 * channels, -1)).reshape(filters, height, width)


def _softmax(X: A) -> A:
    return PEERS["softmax_rows"](X)


NUMPY: dict[str, Callable[..., Any]] = {
    "mm": lambda A, B: A @ B,
    "mm_tn": lambda A, B: A.T @ B,
    "mm_nt": lambda A, B: A @ B.T,
    "mm_batch": lambda A, C: A @ C,
    "matvec": lambda A, x: A @ x,
    "vecmat": lambda A, x: A.T @ x,
    "asum": lambda x: np.abs(x).sum(),
    "dot": lambda x, y: x.dot(y),
    "jacobi5": jacobi,
    "gauss25": _gauss,
    "conv_layer": _convolved,
    "softmax_rows": _softmax,
    "norm_rows": lambda X, g, b: PEERS["layer_norm"](X) * g + b,
}


def torch_calls() -> dict[str, Callable[..., Any]]:
    """The same in torch, on the GPU. The sum is without absolute values, which torch would write to memory first."""
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional
    return {
        **{name: NUMPY[name] for name in ("mm", "mm_batch", "matvec", "vecmat", "mm_tn", "mm_nt")},
        "asum": lambda x: x.sum(),
        "dot": torch.dot,
        "conv_layer": lambda X, F: own.conv2d(X[None], F, padding=1),
        "softmax_rows": lambda X: torch.softmax(X, -1),
        "norm_rows": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
    }


def on_the_gpu(call: Callable[..., Any], inputs: Mapping[str, Any], rounds: int) -> float:
    """Milliseconds of a call in torch, without launches."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    given = {name: torch.from_numpy(np.ascontiguousarray(value)).cuda() for name, value in inputs.items()}
    for _ in range(3):
        call(*given.values())
    torch.cuda.synchronize()
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for _ in range(10):
            call(*given.values())
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)


def main() -> None:
    parser = harness.options("libraries", __doc__ or "")
    parser.add_argument("names", nargs="*", help="of programs, also with sizes, as mm:M=2048,K=2048; all by default")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of timing (default: %(default)s)")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    gpu = torch_calls() if device.kind == "gpu" else None
    rows: list[harness.Row] = []
    for wanted in arguments.names or sorted(NUMPY):
        name, _, given = wanted.partition(":")
        program = parse_file(FOLDER / f"{name}.lift")
        other = {size: int(number) for size, _, number in (one.partition("=") for one in given.split(",") if one)}
        program = replace(program, sizes=tuple((size, other.get(size, number)) for size, number in program.sizes))
        sizes = ", ".join(f"{size} = {number}" for size, number in program.sizes)
        began = time.perf_counter()
        try:
            found = optimize(program, device=device, budget=arguments.budget, records="none")
        except LiftError as problem:
            rows.append((name, sizes, None, None, None, None, str(problem).splitlines()[0], None))
            continue
        seconds = time.perf_counter() - began
        assert found.best is not None
        inputs = {key: np.asarray(value) for key, value in random_inputs(specialise(program), SEED, "float").items()}
        peers = {} if gpu is not None else {"library": partial(NUMPY[name], **inputs)}
        naive = {} if found.no_baseline or not found.candidates[0].valid else {"naive": found.candidates[0].plan}
        with Runner(device) as runner:
            runner.load_inputs("floats", inputs)
            times = harness.interleaved(runner, {"best": found.best.plan, **naive}, peers, arguments.rounds)
        if gpu is not None and name in gpu:
            times["library"] = on_the_gpu(gpu[name], inputs, arguments.rounds)
        best, library = times["best"], times.get("library")
        how = ", ".join(dict.fromkeys(leg.name for leg in found.best.way))
        rows.append((name, sizes, times.get("naive"), best, library, library and library / best, how, seconds))
        print(*rows[-1], file=sys.stderr, flush=True)
    notes = (
        "library: NumPy by the wall clock on a CPU; on a GPU torch, by CUDA graphs of ten calls",
        "kernels by the device's own clock; medians of interleaved rounds; above 1, ours is faster",
        "found in: the phases that led to the best kernel",
    )
    harness.report(arguments.out, "Beside libraries", HEADINGS, rows, notes=notes, device=device)


if __name__ == "__main__":
    main()
