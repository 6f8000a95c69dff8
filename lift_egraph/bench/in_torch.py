"""The programs that libraries are made for, as a user of torch writes them on a GPU."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from lift_egraph.bench.in_numpy import CALLS, Call


def torch_calls() -> dict[str, Call]:
    """Calls that take a program's inputs in order. The sum is without absolute values, which would go to memory first.

    Raises
    ------
    ImportError
        If torch is not installed.
    """
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional
    return {
        **{name: CALLS[name] for name in ("mm", "mm_batch", "matvec", "vecmat", "mm_tn", "mm_nt")},
        "asum": lambda x: x.sum(),
        "dot": torch.dot,
        "scan": lambda xs: xs.cumsum(0, dtype=xs.dtype),
        "conv_layer": lambda X, F: own.conv2d(X[None], F, padding=1),
        "softmax_rows": lambda X: torch.softmax(X, -1),
        "norm_rows": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
    }


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
