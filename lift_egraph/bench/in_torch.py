"""The programs that libraries are made for, as a user of torch writes them on a GPU.

Stencils have no call there: a copy of their input stands beside them, as nothing reads and writes an array faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lift_egraph.bench.in_numpy import CALLS

Make = Callable[..., Callable[[], object]]


def torch_makers() -> dict[str, tuple[str, Make]]:
    """For each program what torch does, if that is not all of it, and how its call is made of the inputs on the GPU.

    The sum is without absolute values, which would go to memory first.

    Raises
    ------
    ImportError
        If torch is not installed.
    """
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional
    calls: dict[str, Callable[..., object]] = {
        **{name: CALLS[name] for name in ("mm", "mm_batch", "matvec", "vecmat", "mm_tn", "mm_nt", "dgemm")},
        "asum": lambda x: x.sum(),
        "dot": torch.dot,
        "scan": lambda xs: xs.cumsum(0, dtype=xs.dtype),
        "scan_f32": lambda xs: xs.cumsum(0),
        "conv_layer": lambda X, F: own.conv2d(X[None], F, padding=1),
        "softmax_rows": lambda X: torch.softmax(X, -1),
        "norm_rows": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
    }
    copies = ("jacobi5", "j2d9pt", "gauss25", "laplace7")
    return {
        **{name: ("", partial(partial, call)) for name, call in calls.items()},
        **dict.fromkeys(copies, ("a copy", lambda A, *_: A.clone)),
        "spmv": ("CSR", _spmv),
        "kmeans": ("sums as a product", _kmeans),
        "bfs": ("edge by edge", _bfs),
    }


def _spmv(offsets: Any, cols: Any, values: Any, x: Any) -> Callable[[], object]:
    import torch  # pyright: ignore[reportMissingImports]

    matrix = torch.sparse_csr_tensor(offsets, cols, values, (len(offsets) - 1, len(x)))
    return lambda: matrix @ x


def _kmeans(points: Any, centres: Any) -> Callable[[], object]:
    """Distances by a product of matrices, sums by one with a row of ones and zeros for each point."""
    import torch  # pyright: ignore[reportMissingImports]

    numbers = torch.arange(len(centres), device=points.device)

    def step() -> tuple[Any, Any]:
        far = (centres * centres).sum(1)[:, None] - 2 * (centres @ points)
        nearest = far.argmin(0)
        ones = (nearest[:, None] == numbers).to(points.dtype)
        return nearest.to(torch.int32), points @ ones / ones.sum(0).clamp(min=1)

    return step


def _bfs(offsets: Any, neighbours: Any, source: Any) -> Callable[[], object]:
    """The least distance of all edges of a vertex, by atomics; which vertex an edge is of is known beforehand."""
    import torch  # pyright: ignore[reportMissingImports]

    count = len(offsets) - 1
    vertex = torch.repeat_interleave(torch.arange(count, device=offsets.device), (offsets[1:] - offsets[:-1]).long())
    first, places = torch.full((count,), 1000000, dtype=torch.int32, device=offsets.device), neighbours.long()
    first[int(source)] = 0
    reached = places[int(offsets[0]) : int(offsets[-1])]

    def steps() -> Any:
        distance = first
        for _ in range(10):
            distance = distance.scatter_reduce(0, vertex, 1 + distance[reached], "amin")
        return distance

    return steps


def on_the_gpu(make: Make, inputs: Mapping[str, Any], rounds: int) -> float:
    """Milliseconds of a call in torch, by CUDA graphs of ten calls: without launches."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    call = make(*(torch.from_numpy(np.ascontiguousarray(value)).cuda() for value in inputs.values()))
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)
