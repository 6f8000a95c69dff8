"""The programs that libraries are made for, in SciPy: sparse matrices and graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csgraph, csr_array

FAR = 1000000


def _spmv(inputs: Mapping[str, Any]) -> Callable[[], object]:
    x = inputs["x"]
    matrix: Any = csr_array(
        (inputs["values"], inputs["cols"], inputs["offsets"]), shape=(len(inputs["offsets"]) - 1, len(x))
    )
    return lambda: matrix @ x


def _bfs(inputs: Mapping[str, Any]) -> Callable[[], object]:
    """Up to ten steps along edges that are turned round: the program's vertices look at their neighbours."""
    offsets, neighbours = inputs["offsets"], inputs["neighbours"]
    n = len(offsets) - 1
    edges = csr_array((np.ones(len(neighbours), np.int8), neighbours, offsets), shape=(n, n))
    graph = csr_array(edges.T)
    source = int(inputs["source"])

    def call() -> object:
        found = csgraph.dijkstra(graph, indices=source, unweighted=True, limit=10)
        return np.where(np.isinf(found), FAR, found).astype(np.int32)

    return call


MAKERS = {"spmv": {"CSR": _spmv}, "bfs": {"dijkstra": _bfs}}
"""For each program: from its inputs to a call."""
