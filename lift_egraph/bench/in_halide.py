"""The programs that libraries are made for, in Halide: with a schedule by hand, and by an autoscheduler.

Arrays of Halide have their innermost dimension first. A pipeline is compiled when it is made.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import halide as hl
import numpy as np

Scheduled = tuple[Any, Any]
"""The last function of a pipeline, and what schedules it by hand."""

LANES = 16


def _variables() -> tuple[Any, ...]:
    return tuple(map(hl.Var, "xyzw"))


def _edge(array: Any) -> Any:
    return hl.BoundaryConditions.repeat_edge(array)


def _in_rows(out: Any, x: Any, y: Any, rows: int) -> None:
    """Bands of rows for each core, each of them in vectors."""
    out.vectorize(x, LANES).parallel(y, rows)


def _folded_in_lanes(folds: Iterable[Any], r: Any, out: Any, y: Any) -> None:
    """Each fold of a row over partial results in vectors, where the row is used."""
    for folded in folds:
        inner, outer, v = hl.RVar("inner"), hl.RVar("outer"), hl.Var("v")
        parts = folded.update().split(r.x, outer, inner, 4 * LANES).rfactor(inner, v)
        folded.compute_at(out, y).update().atomic().vectorize(inner)
        parts.compute_at(out, y).vectorize(v).update().vectorize(v)


def _jacobi(A: Any) -> Scheduled:
    x, y, *_ = _variables()
    a, out = _edge(A), hl.Func("jacobi5")
    out[x, y] = hl.f32(0.2) * (a[x, y - 1] + a[x - 1, y] + a[x, y] + a[x + 1, y] + a[x, y + 1])
    return out, partial(_in_rows, out, x, y, 32)


def _box(A: Any) -> Scheduled:
    x, y, *_ = _variables()
    a, out = _edge(A), hl.Func("j2d9pt")
    out[x, y] = sum((a[x + i, y + j] for j in (-1, 0, 1) for i in (-1, 0, 1)), hl.f32(0)) / hl.f32(9)
    return out, partial(_in_rows, out, x, y, 32)


def _gauss(A: Any, W: Any) -> Scheduled:
    x, y, *_ = _variables()
    a, out = _edge(A), hl.Func("gauss25")
    out[x, y] = sum((W[5 * j + i] * a[x + i - 2, y + j - 2] for j in range(5) for i in range(5)), hl.f32(0))
    return out, partial(_in_rows, out, x, y, 32)


def _laplace(A: Any) -> Scheduled:
    x, y, z, *_ = _variables()
    a, out = _edge(A), hl.Func("laplace7")
    around = a[x, y, z - 1] + a[x, y, z + 1] + a[x, y - 1, z] + a[x, y + 1, z] + a[x - 1, y, z] + a[x + 1, y, z]
    out[x, y, z] = around - hl.f32(6) * a[x, y, z]
    return out, lambda: out.vectorize(x, LANES).parallel(z, 8)


def _convolved(X: Any, F: Any) -> Scheduled:
    x, y, o, _ = _variables()
    height, width = X.dim(1).extent(), X.dim(0).extent()
    padded, summed, out = hl.Func("padded"), hl.Func("summed"), hl.Func("conv_layer")
    c = hl.Var("c")
    inside = hl.BoundaryConditions.constant_exterior(X, hl.f32(0))
    padded[x, y, c] = inside[x, y, c]
    r = hl.RDom([(0, 3), (0, 3), (0, X.dim(2).extent())])
    summed[x, y, o] = hl.f32(0)
    summed[x, y, o] += F[r[0], r[1], r[2], o] * padded[x + r[0] - 1, y + r[1] - 1, r[2]]
    out[x, y, o] = summed[x, y, o]

    def by_hand() -> None:
        rest = hl.Var("rest")
        out.bound(x, 0, width).bound(y, 0, height)
        out.split(o, o, rest, 4).reorder(x, rest, y, o).vectorize(x, 8).unroll(x).unroll(rest).parallel(o)
        summed.compute_at(out, y).vectorize(x, 8).unroll(x).unroll(o)
        summed.update().reorder(x, o, r[0], r[1], r[2]).vectorize(x, 8).unroll(x).unroll(o).unroll(r[0])
        padded.compute_root().vectorize(x, 8).parallel(c)

    return out, by_hand


def _softmax(X: Any) -> Scheduled:
    x, y, *_ = _variables()
    r = hl.RDom([(0, X.dim(0).extent())])
    top, e, total, out = (hl.Func(name) for name in ("top", "e", "total", "softmax_rows"))
    top[y] = hl.f32(-np.inf)
    top[y] = hl.max(top[y], X[r.x, y])
    e[x, y] = hl.fast_exp(X[x, y] - top[y])
    total[y] = hl.f32(0)
    total[y] += e[r.x, y]
    out[x, y] = e[x, y] / total[y]

    def by_hand() -> None:
        out.vectorize(x, LANES).parallel(y, 32)
        e.compute_at(out, y).vectorize(x, LANES)
        _folded_in_lanes((top, total), r, out, y)

    return out, by_hand


def _norm(X: Any, g: Any, b: Any) -> Scheduled:
    x, y, *_ = _variables()
    n = X.dim(0).extent()
    r = hl.RDom([(0, n)])
    total, squares, scale, out = (hl.Func(name) for name in ("total", "squares", "scale", "norm_rows"))
    total[y] = hl.f32(0)
    total[y] += X[r.x, y]
    mean = total[y] / hl.f32(n)
    squares[y] = hl.f32(0)
    squares[y] += (X[r.x, y] - mean) * (X[r.x, y] - mean)
    scale[y] = hl.f32(1) / hl.sqrt(squares[y] / hl.f32(n) + hl.f32(1e-5))
    out[x, y] = (X[x, y] - mean) * scale[y] * g[x] + b[x]

    def by_hand() -> None:
        out.vectorize(x, LANES).parallel(y, 32)
        scale.compute_at(out, y)
        _folded_in_lanes((total, squares), r, out, y)

    return out, by_hand


PIPELINES: dict[str, Callable[..., Scheduled]] = {
    "jacobi5": _jacobi,
    "j2d9pt": _box,
    "gauss25": _gauss,
    "laplace7": _laplace,
    "conv_layer": _convolved,
    "softmax_rows": _softmax,
    "norm_rows": _norm,
}


@cache
def _loaded() -> None:
    (plugin,) = Path(hl.__path__[0]).glob("lib*/*autoschedule_mullapudi2016.*")
    hl.load_plugin(str(plugin))


def _by_hand(name: str, inputs: Mapping[str, Any]) -> Callable[[], object]:
    out, schedule = PIPELINES[name](*_buffers(inputs))
    schedule()
    return _compiled(out, out, _shape(name, inputs))


def _automatic(name: str, inputs: Mapping[str, Any]) -> Callable[[], object]:
    """By Mullapudi2016, for this machine's cores and caches."""
    _loaded()
    out, _ = PIPELINES[name](*_buffers(inputs))
    shape = _shape(name, inputs)
    for variable, extent in zip(out.args(), reversed(shape), strict=True):
        out.set_estimate(variable, 0, extent)
    pipeline = hl.Pipeline(out)
    sizes = {"parallelism": str(_cores()), "last_level_cache_size": str(1 << 24), "balance": "40"}
    pipeline.apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams("Mullapudi2016", sizes))
    return _compiled(pipeline, out, shape)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _buffers(inputs: Mapping[str, Any]) -> list[Any]:
    return [hl.Buffer(np.ascontiguousarray(value)) for value in inputs.values()]


def _shape(name: str, inputs: Mapping[str, Any]) -> tuple[int, ...]:
    first, *others = inputs.values()
    return (len(others[0]), *first.shape[1:]) if name == "conv_layer" else first.shape


def _compiled(pipeline: Any, out: Any, shape: tuple[int, ...]) -> Callable[[], object]:
    made = np.empty(shape, np.float32)
    result = hl.Buffer(made)
    pipeline.compile_jit()

    def call() -> object:
        try:
            pipeline.realize(result)
        except hl.HalideError as problem:  # it is no RuntimeError
            raise RuntimeError(str(problem)) from None
        return made

    return call


MAKERS = {name: {"by hand": partial(_by_hand, name), "Mullapudi2016": partial(_automatic, name)} for name in PIPELINES}
"""For each program the schedules: from its inputs to a call."""
