"""The programs that libraries are made for, and how a user of NumPy or torch computes them.

Calls take a program's inputs by their names.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.records.record import program_hash

A = np.ndarray
Call = Callable[..., Any]


def _jacobi(A: A) -> A:
    p, c = np.pad(A, 1, mode="edge"), slice(1, -1)
    return np.float32(0.2) * (p[:-2, c] + p[c, :-2] + p[c, c] + p[c, 2:] + p[2:, c])


def _gauss(A: A, W: A) -> A:
    p, (m, n) = np.pad(A, 2, mode="edge"), A.shape
    return sum(W[5 * i + j] * p[i : i + m, j : j + n] for i in range(5) for j in range(5))  # pyright: ignore


def _convolved(X: A, F: A) -> A:
    patches = windows(np.pad(X, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2)).transpose(0, 3, 4, 1, 2)
    (channels, height, width), filters = X.shape, len(F)
    return (F.reshape(filters, -1) @ patches.reshape(9 * channels, -1)).reshape(filters, height, width)


def _softmax(X: A) -> A:
    e = np.exp(X - X.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _norm(X: A, g: A, b: A) -> A:
    return (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + np.float32(1e-5)) * g + b


NUMPY: dict[str, Call] = {
    "mm": lambda A, B: A @ B,
    "mm_tn": lambda A, B: A.T @ B,
    "mm_nt": lambda A, B: A @ B.T,
    "mm_batch": lambda A, C: A @ C,
    "matvec": lambda A, x: A @ x,
    "vecmat": lambda A, x: A.T @ x,
    "asum": lambda x: np.abs(x).sum(),
    "dot": lambda x, y: x.dot(y),
    "scan": lambda xs: xs.cumsum(dtype=xs.dtype),
    "jacobi5": _jacobi,
    "gauss25": _gauss,
    "conv_layer": _convolved,
    "softmax_rows": _softmax,
    "norm_rows": _norm,
}


def torch_calls() -> dict[str, Call]:
    """The same in torch, on the GPU. The sum is without absolute values, which torch would write to memory first."""
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional
    return {
        **{name: NUMPY[name] for name in ("mm", "mm_batch", "matvec", "vecmat", "mm_tn", "mm_nt")},
        "asum": lambda x: x.sum(),
        "dot": torch.dot,
        "scan": lambda xs: xs.cumsum(0, dtype=xs.dtype),
        "conv_layer": lambda X, F: own.conv2d(X[None], F, padding=1),
        "softmax_rows": lambda X: torch.softmax(X, -1),
        "norm_rows": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
    }


@cache
def names() -> tuple[str, ...]:
    """The names of these programs.

    >>> names()[:4]
    ('asum', 'conv_layer', 'dot', 'gauss25')
    """
    return tuple(sorted(NUMPY))


def load(name: str) -> ir.Program:
    """One of these programs."""
    text = (files("lift_egraph.bench") / "libraries" / f"{name}.lift").read_text(encoding="utf-8")
    return parse_program(text, f"{name}.lift")


def of(program: ir.Program) -> str | None:
    """Which of these a program at concrete sizes is; None if it is another one, whatever its name is."""
    if program.name not in NUMPY:
        return None
    try:
        own = specialise(load(program.name), dict(program.sizes))
    except LiftError:  # its sizes have other names
        return None
    return program.name if program_hash(own) == program_hash(replace(program, name=own.name)) else None


@dataclass(frozen=True)
class Peer:
    """What a program is compared with: a library's name, and how long its call takes if another clock is needed."""

    library: str
    call: Callable[[], object] | None = None
    milliseconds: Callable[[int], float] | None = None


def peer(program: ir.Program, device: DeviceInfo, inputs: Mapping[str, Any]) -> Peer | None:
    """The library for a program and a device: torch for an NVIDIA GPU, where it is installed; NumPy on a CPU."""
    name = of(program)
    if name is None:
        return None
    if device.kind == "cpu":
        return Peer("NumPy", call=partial(NUMPY[name], **inputs))
    try:
        calls = torch_calls()
    except ImportError:
        return None
    return Peer("torch", milliseconds=partial(on_the_gpu, calls[name], inputs)) if name in calls else None


def on_the_gpu(call: Call, inputs: Mapping[str, Any], rounds: int) -> float:
    """Milliseconds of a call in torch, by CUDA graphs of ten calls: without launches."""
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
