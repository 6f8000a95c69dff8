"""Layers of networks, and matrices with what is made of them, as one writes them down: `optimize` beside torch.

On a GPU torch's calls are timed in CUDA graphs, without tensor cores, which round to fewer digits; elsewhere by the
wall clock, on the CPU.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import harness
import numpy as np

from lift_egraph.api import LiftError, Runner, find_device, optimize, parse_program, random_inputs, specialise
from lift_egraph.bench.in_torch import on_the_gpu
from lift_egraph.codegen.device_info import DeviceInfo

HEADINGS = ("program", "naive ms", "best ms", "torch ms", "torch / best", "kernels", "seconds", "way")
DOT = "reduce(add, 0.0, map(mul, zip({}, {})))"
PROGRAMS = {
    "product, odd": f"""program p(A: [[f32]1021]997, B: [[f32]1000]1021) =
      map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(B)), A)""",
    "product, 1000": f"""program p(A: [[f32]1000]1000, B: [[f32]1000]1000) =
      map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(B)), A)""",
    "products of a batch, odd": f"""program p(A: [[[f32]250]255]16, B: [[[f32]249]250]16) =
      map(fun (x, y) => map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(y)), x), zip(A, B))""",
    "gemm": f"""program p(A: [[f32]1024]1024, B: [[f32]1024]1024, C: [[f32]1024]1024, u: f32, v: f32) =
      map(fun (a, c) => map(fun (b, w) => u * {DOT.format("a", "b")} + v * w, zip(transpose(B), c)), zip(A, C))""",
    "linear, relu": f"""program p(X: [[f32]1024]1024, W: [[f32]1024]1024, u: [f32]1024) =
      map(fun x => map(fun (w, v) => max({DOT.format("x", "w")} + v, 0.0), zip(W, u)), X)""",
    "linear, relu, odd": f"""program p(X: [[f32]1021]997, W: [[f32]1021]1000, u: [f32]1000) =
      map(fun x => map(fun (w, v) => max({DOT.format("x", "w")} + v, 0.0), zip(W, u)), X)""",
    "two layers, gelu": f"""program p(
        X: [[f32]512]2048, V: [[f32]512]2048, a: [f32]2048, W: [[f32]2048]512, b: [f32]512) =
      let h = map(fun x => map(fun (v, c) => let s = {DOT.format("x", "v")} + c in
        0.5 * s * (1.0 + tanh(0.7978845608 * (s + 0.044715 * s * s * s))), zip(V, a)), X) in
      map(fun y => map(fun (w, c) => {DOT.format("y", "w")} + c, zip(W, b)), h)""",
    "two layers, relu, odd": f"""program p(X: [[f32]300]5000, V: [[f32]300]700, W: [[f32]700]100) =
      let h = map(fun x => map(fun v => max({DOT.format("x", "v")}, 0.0), V), X) in
      map(fun y => map(fun w => {DOT.format("y", "w")}, W), h)""",
    "layer norm, linear": """program p(X: [[f32]768]4096, g: [f32]768, W: [[f32]768]768, b: [f32]768) =
      let n = map(fun x => let m = reduce(add, 0.0, x) / 768.0 in let c = map(fun v => v - m, x) in
        let s = reduce(add, 0.0, map(fun v => v * v, c)) / 768.0 in
        map(fun (v, k) => v * rsqrt(s + 0.00001) * k, zip(c, g)), X) in
      map(fun x => map(fun (w, d) => reduce(add, d, map(mul, zip(x, w))), zip(W, b)), n)""",
    "attention": f"""program p(Q: [[f32]64]2048, K: [[f32]64]2048, V: [[f32]64]2048) =
      let S = map(fun q => map(fun k => {DOT.format("q", "k")} * 0.125, K), Q) in
      let P = map(fun s => let m = reduce(max, -3.4e38, s) in let e = map(fun v => exp(v - m), s) in
        let t = reduce(add, 0.0, e) in map(fun v => v / t, e), S) in
      map(fun p => map(fun v => {DOT.format("p", "v")}, transpose(V)), P)""",
    "convolution, bias, relu": """program p(X: [[[f32]56]56]64, F: [[[[f32]3]3]64]64, u: [f32]64) =
      map(fun (f, v) => map2d(fun w =>
          max(reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))) + v, 0.0),
        map(transpose, transpose(map(fun channel =>
          slide2d(3, 1, pad2d(1, 1, constant(0.0), channel)), X)))), zip(F, u))""",
    "distances": """program p(X: [[f32]64]2048, Y: [[f32]64]2048) =
      map(fun x => map(fun y => sqrt(reduce(add, 0.0, map(fun (a, b) => (a - b) * (a - b), zip(x, y)))), Y), X)""",
    "cosines, odd": f"""program p(X: [[f32]300]1500, Y: [[f32]300]1500) =
      let nx = map(fun x => sqrt(reduce(add, 0.0, map(fun v => v * v, x))), X) in
      let ny = map(fun y => sqrt(reduce(add, 0.0, map(fun v => v * v, y))), Y) in
      map(fun (x, a) => map(fun (y, b) => {DOT.format("x", "y")} / (a * b), zip(Y, ny)), zip(X, nx))""",
    "Gram matrix": f"""program p(A: [[f32]1000]3000) =
      map(fun x => map(fun y => {DOT.format("x", "y")}, transpose(A)), transpose(A))""",
    "matrix and vector, odd": f"""program p(A: [[f32]997]1021, x: [f32]997) =
      map(fun a => {DOT.format("a", "x")}, A)""",
    "largest of rows, odd": "program p(A: [[f32]4093]4001) = map(fun a => reduce(max, -3.4e38, a), A)",
}


def peers() -> dict[str, Callable[..., Any]]:
    """What torch does."""
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional

    def gelu(X: Any, V: Any, a: Any, W: Any, b: Any) -> Any:
        return torch.addmm(b, own.gelu(torch.addmm(a, X, V.T), approximate="tanh"), W.T)

    return {
        "product, odd": torch.mm,
        "product, 1000": torch.mm,
        "products of a batch, odd": torch.bmm,
        "gemm": lambda A, B, C, u, v: torch.addmm(C, A, B, alpha=0.5, beta=0.25),
        "linear, relu": lambda X, W, u: torch.relu(torch.addmm(u, X, W.T)),
        "linear, relu, odd": lambda X, W, u: torch.relu(torch.addmm(u, X, W.T)),
        "two layers, gelu": gelu,
        "two layers, relu, odd": lambda X, V, W: torch.relu(X @ V.T) @ W.T,
        "layer norm, linear": lambda X, g, W, b: own.linear(own.layer_norm(X, (X.shape[-1],), g), W, b),
        "attention": lambda Q, K, V: own.scaled_dot_product_attention(Q[None], K[None], V[None]),
        "convolution, bias, relu": lambda X, F, u: torch.relu(own.conv2d(X[None], F, u, padding=1)),
        "distances": torch.cdist,
        "cosines, odd": lambda X, Y: (X @ Y.T) / (X.norm(dim=1)[:, None] * Y.norm(dim=1)[None]),
        "Gram matrix": lambda A: A.T @ A,
        "matrix and vector, odd": torch.mv,
        "largest of rows, odd": lambda A: A.amax(1),
    }


def main() -> None:
    arguments = harness.options_of_searches("layers", __doc__ or "", budget=30.0, rounds=9)
    device, calls = find_device(arguments.device), peers()
    rows = []
    for name in arguments.names or PROGRAMS:
        rows.append(_row(name, calls[name], device, arguments.budget, arguments.rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    shares = [row[4] for row in rows if row[4] is not None]
    notes = (
        f"torch's time over that of the best: {statistics.geometric_mean(shares):.3g} in the geometric mean"
        if shares
        else "no program has a kernel",
        "kernels by the device's own clock, medians; torch by CUDA graphs of ten calls, or on the CPU",
    )
    harness.report(arguments.out, "Layers of networks beside torch", HEADINGS, rows, notes=notes, device=device)


def _row(name: str, call: Callable[..., Any], device: DeviceInfo, budget: float, rounds: int) -> list[Any]:
    program, began = specialise(parse_program(PROGRAMS[name]), {}), time.perf_counter()
    try:
        found = optimize(program, device=device, budget=budget, records="none")
    except LiftError as problem:
        return [f"{name}: {str(problem).splitlines()[0]}", *[None] * (len(HEADINGS) - 1)]
    seconds, best = time.perf_counter() - began, found.ranked[0]
    inputs = random_inputs(program, kind="float")
    plans = {"best": best.plan}
    if found.candidates[0].valid:
        plans["naive"] = found.candidates[0].plan
    with Runner(device) as runner:
        runner.load_inputs("floats", inputs)
        times = harness.interleaved(runner, plans, {}, rounds)
        torch_ms = _in_torch(call, inputs, rounds, device)
    way = ", ".join(dict.fromkeys(leg.name for leg in best.way))
    beside = torch_ms / times["best"]
    return [name, times.get("naive"), times["best"], torch_ms, beside, len(found.valid), seconds, way]


def _in_torch(call: Callable[..., Any], inputs: Mapping[str, Any], rounds: int, device: DeviceInfo) -> float:
    """Milliseconds of torch's call, where the device's kernels run."""
    if device.kind == "gpu":
        return on_the_gpu(lambda *given: lambda: call(*given), inputs, rounds)
    import torch  # pyright: ignore[reportMissingImports]

    given = [torch.from_numpy(np.ascontiguousarray(value)) for value in inputs.values()]
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        call(*given)
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times[1:])


if __name__ == "__main__":
    main()
