"""Layers of networks, and matrices and tables with what is made of them, as one writes them down: `optimize` beside
torch.

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

from lift_egraph.api import (
    LiftError,
    Runner,
    describe,
    find_device,
    optimize,
    parse_program,
    random_inputs,
    specialise,
)  # fmt: skip
from lift_egraph.bench.in_torch import on_the_gpu
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo

HEADINGS = ("program", "naive ms", "best ms", "launches", "torch ms", "torch / best", "kernels", "seconds", "way")
DOT = "reduce(add, 0.0, map(mul, zip({}, {})))"
SOFTMAX = """fun {0} => let m = reduce(max, -3.4e38, {0}) in let e = map(fun v => exp(v - m), {0}) in
        let t = reduce(add, 0.0, e) in map(fun v => v / t, e)"""
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
    "convolution of a batch, bias": """program p(X: [[[[f32]30]30]32]16, F: [[[[f32]3]3]32]64, u: [f32]64) =
      map(fun image =>
        let windows = map(transpose, transpose(map(fun channel => slide2d(3, 1, channel), image))) in
        map(fun (f, v) => map2d(fun w => v + reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))),
          windows), zip(F, u)), X)""",
    "first layer of a batch, stride 2": """program p(X: [[[[f32]224]224]3]8, F: [[[[f32]7]7]3]64) =
      map(fun image => map(fun f => map2d(fun w => reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))),
        map(transpose, transpose(map(fun channel => slide2d(7, 2, pad2d(3, 2, constant(0.0), channel)), image)))),
        F), X)""",
    "convolution, channels last": """program p(X: [[[[f32]32]34]34]16, F: [[[[f32]32]3]3]64) =
      map(fun image => map2d(fun w => map(fun f =>
        reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))), F), slide2d(3, 1, image)), X)""",
    "convolution of signals, bias, odd": """program p(X: [[[f32]1003]32]16, F: [[[f32]5]32]64, u: [f32]64) =
      map(fun signal => map(fun (f, v) => map(fun w =>
        v + reduce(add, 0.0, map(mul, zip(join(w), join(f)))),
        map(transpose, slide(5, 1, transpose(signal)))), zip(F, u)), X)""",
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
    "one input, two layers, softmax": f"""program p(
        x: [f32]1000, V: [[f32]1000]3000, a: [f32]3000, W: [[f32]3000]10, b: [f32]10) =
      let h = map(fun (v, c) => max({DOT.format("v", "x")} + c, 0.0), zip(V, a)) in
      let z = map(fun (w, c) => {DOT.format("w", "h")} + c, zip(W, b)) in
      let m = reduce(max, -3.4e38, z) in let e = map(fun v => exp(v - m), z) in
      let t = reduce(add, 0.0, e) in map(fun v => v / t, e)""",
    "small product, long sums, bias, relu": f"""program p(A: [[f32]5000]100, B: [[f32]96]5000, u: [f32]96) =
      map(fun a => map(fun (b, c) => max({DOT.format("a", "b")} + c, 0.0), zip(transpose(B), u)), A)""",
    "product of tall matrices": f"""program p(A: [[f32]64]100003, B: [[f32]48]100003) =
      map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(B)), transpose(A))""",
    "Gram matrix of 200 rows": f"""program p(A: [[f32]3001]200) =
      map(fun a => map(fun b => {DOT.format("a", "b")} / 3001.0, A), A)""",
    "covariances of columns": f"""program p(X: [[f32]77]30011) =
      let centred = map(fun c => let m = reduce(add, 0.0, c) / 30011.0 in map(fun x => x - m, c), transpose(X)) in
      map(fun a => map(fun b => {DOT.format("a", "b")} / 30010.0, centred), centred)""",
    "products of 16 columns": f"""program p(X: [[f32]16]1000003) =
      map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(X)), transpose(X))""",
    "products of 10 columns": f"""program p(X: [[f32]10]1000003) =
      map(fun a => map(fun b => {DOT.format("a", "b")}, transpose(X)), transpose(X))""",
    "covariances of 7 columns": f"""program p(X: [[f32]7]1000003) =
      let centred = map(fun c => let m = reduce(add, 0.0, c) / 1000003.0 in map(fun x => x - m, c), transpose(X)) in
      map(fun a => map(fun b => {DOT.format("a", "b")} / 1000002.0, centred), centred)""",
    "means of 10 columns": "program p(X: [[f32]10]1000003) = "
    "map(fun c => reduce(add, 0.0, c) / 1000003.0, transpose(X))",
    "scores of 7 columns": """program p(X: [[f32]7]1000003) = transpose(map(fun c =>
      let m = reduce(add, 0.0, c) / 1000003.0 in
      let v = reduce(add, 0.0, map(fun x => (x - m) * (x - m), c)) / 1000002.0 in
      map(fun x => (x - m) * rsqrt(v), c), transpose(X)))""",
    "gated unit": f"""program p(X: [[f32]256]64, H: [[f32]512]64,
        W: [[f32]256]512, U: [[f32]512]512, V: [[f32]256]512, R: [[f32]512]512) =
      map(fun (x, h) => map(fun (((w, u), (v, r)), q) =>
        let z = 1.0 / (1.0 + exp(0.0 - {DOT.format("x", "w")} - {DOT.format("h", "u")})) in
        let c = tanh({DOT.format("x", "v")} + {DOT.format("h", "r")}) in
        z * q + (1.0 - z) * c, zip(zip(zip(W, U), zip(V, R)), h)), zip(X, H))""",
    "nearest with its number": f"""program p(X: [[f32]100]3001, Y: [[f32]100]2999) =
      map(fun x => reduce(fun ((p, i), (q, j)) => if q > p then (q, j) else (p, i), (-3.4e38, 0),
        zip(map(fun y => {DOT.format("x", "y")}, Y), generate(2999, fun i => i))), X)""",
    "means of columns": "program p(X: [[f32]77]30011) = map(fun c => reduce(add, 0.0, c) / 30011.0, transpose(X))",
    "gradient of least squares": f"""program p(X: [[f32]129]20011, w: [f32]129, y: [f32]20011) =
      let r = map(fun (x, t) => {DOT.format("x", "w")} - t, zip(X, y)) in
      map(fun c => {DOT.format("c", "r")}, transpose(X))""",
    "norm of a difference": """program p(A: [[f32]2003]3001, B: [[f32]2003]3001) =
      sqrt(reduce(add, 0.0, map(fun (a, b) => reduce(add, 0.0, map(fun (u, v) => (u - v) * (u - v), zip(a, b))),
        zip(A, B))))""",
    "bilinear form": f"""program p(A: [[f32]2003]3001, x: [f32]3001, y: [f32]2003) =
      reduce(add, 0.0, map(fun (a, u) => u * {DOT.format("a", "y")}, zip(A, x)))""",
    "softmax of 3000 numbers": f"program p(x: [f32]3000) = ({SOFTMAX.format('s')})(x)",
    "standard scores of 20001 numbers": """program p(x: [f32]20001) =
      let m = reduce(add, 0.0, x) / 20001.0 in
      let v = reduce(add, 0.0, map(fun a => (a - m) * (a - m), x)) / 20000.0 in map(fun a => (a - m) * rsqrt(v), x)""",
    "correlation of two series": """program p(x: [f32]10007, y: [f32]10007) =
      let a = reduce(add, 0.0, x) / 10007.0 in let b = reduce(add, 0.0, y) / 10007.0 in
      let c = reduce(add, 0.0, map(fun (s, t) => (s - a) * (t - b), zip(x, y))) in
      let p = reduce(add, 0.0, map(fun s => (s - a) * (s - a), x)) in
      let q = reduce(add, 0.0, map(fun t => (t - b) * (t - b), y)) in c * rsqrt(p * q)""",
    "step of a power iteration": f"""program p(A: [[f32]3000]3000, x: [f32]3000) =
      let y = map(fun a => {DOT.format("a", "x")}, A) in
      let n = sqrt(reduce(add, 0.0, map(fun v => v * v, y))) in map(fun v => v / n, y)""",
    "softmax, rows of 77": f"program p(X: [[f32]77]100000) = map({SOFTMAX.format('s')}, X)",
    "softmax, rows of 200, masked, of a batch": f"""program p(X: [[[f32]200]200]64, M: [[f32]200]200) =
      map(fun rows => map(fun (s, q) => let z = map(fun (a, k) => a * 0.125 + k, zip(s, q)) in
        ({SOFTMAX.format("w")})(z), zip(rows, M)), X)""",
    "softmax, rows of 100, of heads of a batch": f"""program p(X: [[[[f32]100]100]8]16) =
      map(fun heads => map(fun rows => map({SOFTMAX.format("s")}, rows), heads), X)""",
    "log softmax, rows of 40": """program p(X: [[f32]40]150000) = map(fun s => let m = reduce(max, -3.4e38, s) in
      let t = log(reduce(add, 0.0, map(fun z => exp(z - m), s))) in map(fun z => z - m - t, s), X)""",
    "layer norm of a sum, of a batch": """program p(
        X: [[[f32]768]128]32, Y: [[[f32]768]128]32, g: [f32]768, b: [f32]768) =
      map(fun (xs, ys) => map(fun (x, y) => let r = map(add, zip(x, y)) in let m = reduce(add, 0.0, r) / 768.0 in
        let v = reduce(add, 0.0, map(fun u => (u - m) * (u - m), r)) / 768.0 in
        map(fun (u, (k, c)) => (u - m) * rsqrt(v + 0.00001) * k + c, zip(r, zip(g, b))), zip(xs, ys)), zip(X, Y))""",
    "layer norm, rows of 100": """program p(X: [[f32]100]100000, g: [f32]100, b: [f32]100) =
      map(fun r => let m = reduce(add, 0.0, r) / 100.0 in
        let v = reduce(add, 0.0, map(fun u => (u - m) * (u - m), r)) / 100.0 in
        map(fun (u, (k, c)) => (u - m) * rsqrt(v + 0.00001) * k + c, zip(r, zip(g, b))), X)""",
    "root mean square norm, rows of 300": """program p(X: [[f32]300]30001, g: [f32]300) =
      map(fun r => let q = rsqrt(reduce(add, 0.0, map(fun x => x * x, r)) / 300.0 + 0.000001) in
        map(fun (x, k) => x * q * k, zip(r, g)), X)""",
    "distances to one row of 300": """program p(X: [[f32]300]30001, c: [f32]300) =
      map(fun r => sqrt(reduce(add, 0.0, map(fun (a, b) => (a - b) * (a - b), zip(r, c)))), X)""",
}


def peers() -> dict[str, Callable[..., Any]]:
    """What torch does."""
    import torch  # pyright: ignore[reportMissingImports]

    own = torch.nn.functional

    def gelu(X: Any, V: Any, a: Any, W: Any, b: Any) -> Any:
        return torch.addmm(b, own.gelu(torch.addmm(a, X, V.T), approximate="tanh"), W.T)

    def covariances(X: Any) -> Any:
        centred = X - X.mean(0)
        return centred.T @ centred / (len(X) - 1)

    def correlation(x: Any, y: Any) -> Any:
        a, b = x - x.mean(), y - y.mean()
        return (a * b).sum() / torch.sqrt((a * a).sum() * (b * b).sum())

    def gated(X: Any, H: Any, W: Any, U: Any, V: Any, R: Any) -> Any:
        z = torch.sigmoid(X @ W.T + H @ U.T)
        return z * H + (1 - z) * torch.tanh(X @ V.T + H @ R.T)

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
        "convolution of a batch, bias": own.conv2d,
        "first layer of a batch, stride 2": lambda X, F: own.conv2d(own.pad(X, (3, 2, 3, 2)), F, stride=2),
        "convolution, channels last": lambda X, F: own.conv2d(X.permute(0, 3, 1, 2), F.permute(0, 3, 1, 2)),
        "convolution of signals, bias, odd": own.conv1d,
        "distances": torch.cdist,
        "cosines, odd": lambda X, Y: (X @ Y.T) / (X.norm(dim=1)[:, None] * Y.norm(dim=1)[None]),
        "Gram matrix": lambda A: A.T @ A,
        "matrix and vector, odd": torch.mv,
        "largest of rows, odd": lambda A: A.amax(1),
        "one input, two layers, softmax": lambda x, V, a, W, b: torch.softmax(W @ torch.relu(V @ x + a) + b, 0),
        "small product, long sums, bias, relu": lambda A, B, u: torch.relu(torch.addmm(u, A, B)),
        "product of tall matrices": lambda A, B: A.T @ B,
        "Gram matrix of 200 rows": lambda A: A @ A.T / A.shape[1],
        "covariances of columns": covariances,
        "products of 16 columns": lambda X: X.T @ X,
        "products of 10 columns": lambda X: X.T @ X,
        "covariances of 7 columns": covariances,
        "means of 10 columns": lambda X: X.mean(0),
        "scores of 7 columns": lambda X: (X - X.mean(0)) / X.std(0),
        "gated unit": gated,
        "nearest with its number": lambda X, Y: (X @ Y.T).max(1),
        "means of columns": lambda X: X.mean(0),
        "gradient of least squares": lambda X, w, y: X.T @ (X @ w - y),
        "norm of a difference": torch.dist,
        "bilinear form": lambda A, x, y: x @ (A @ y),
        "softmax of 3000 numbers": lambda x: torch.softmax(x, -1),
        "standard scores of 20001 numbers": lambda x: (x - x.mean()) / x.std(),
        "correlation of two series": correlation,
        "step of a power iteration": lambda A, x: own.normalize(A @ x, dim=0),
        "softmax, rows of 77": lambda X: torch.softmax(X, -1),
        "softmax, rows of 200, masked, of a batch": lambda X, M: torch.softmax(X * 0.125 + M, -1),
        "softmax, rows of 100, of heads of a batch": lambda X: torch.softmax(X, -1),
        "log softmax, rows of 40": lambda X: torch.log_softmax(X, -1),
        "layer norm of a sum, of a batch": lambda X, Y, g, b: own.layer_norm(X + Y, (X.shape[-1],), g, b),
        "layer norm, rows of 100": lambda X, g, b: own.layer_norm(X, (X.shape[-1],), g, b),
        "root mean square norm, rows of 300": lambda X, g: own.rms_norm(X, (X.shape[-1],), g, 1e-6),
        "distances to one row of 300": lambda X, c: torch.linalg.vector_norm(X - c, dim=1),
    }


def main() -> None:
    arguments = harness.options_of_searches("layers", __doc__ or "", budget=30.0, rounds=9)
    device, calls = find_device(arguments.device), peers()
    rows = []
    for name in arguments.names or PROGRAMS:
        rows.append(_row(name, calls[name], device, arguments.budget, arguments.rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    shares = [row[5] for row in rows if row[5] is not None]
    with Runner(device) as runner:
        launch = _launch(runner, arguments.rounds)
    notes = (
        f"torch's time over that of the best: {statistics.geometric_mean(shares):.3g} in the geometric mean"
        if shares
        else "no program has a kernel",
        "kernels by the device's own clock, medians; torch by CUDA graphs of ten calls, or on the CPU",
        f"launches of the best; one that adds 1 to 256 numbers takes {launch:.3g} ms by the same clock",
    )
    title = "Layers of networks and statistics of tables beside torch"
    harness.report(arguments.out, title, HEADINGS, rows, notes=notes, device=device)


def _launch(runner: Runner, rounds: int) -> float:
    """Milliseconds of a kernel that has nothing to do."""
    least = parse_program("program least(x: [f32]256) = mapGlb(0, fun v => v + 1.0, x)")
    runner.load_inputs("least", random_inputs(least, kind="float"))
    plan = compile_program(least, describe(runner.device))
    return harness.interleaved(runner, {"least": plan}, {}, rounds, "least")["least"]


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
    beside, way = torch_ms / times["best"], harness.way_in_words(best)
    launches = len(best.plan.kernels)
    return [name, times.get("naive"), times["best"], launches, torch_ms, beside, len(found.valid), seconds, way]


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
