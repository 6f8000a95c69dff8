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
        "conv_layer": lambda X, F: own.conv2d(X[None], F, padding=1),
        "softmax_rows": lambda X: torch.softmax(X, -1),
        "norm_rows": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
    }
    copies = ("jacobi5", "j2d9pt", "gauss25", "laplace7")
    return {
        **{name: ("", partial(partial, call)) for name, call in calls.items()},
        **dict.fromkeys(copies, ("a copy", lambda A, *_: A.clone)),
        "spmv": ("CSR", _spmv),
    }


def _spmv(offsets: Any, cols: Any, values: Any, x: Any) -> Callable[[], object]:
    import torch  # pyright: ignore[reportMissingImports]

    matrix = torch.sparse_csr_tensor(offsets, cols, values, (len(offsets) - 1, len(x)))
    return lambda: matrix @ x


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
