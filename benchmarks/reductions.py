"""Folds that are no reductions as they stand: what `optimize` makes of them beside sequential C in the same run.

Source of the folds: 003 §4 and §7; Sato and Iwasaki, "Automatic parallelization via matrix multiplication", PLDI 2011.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import harness
import numpy as np

from lift_egraph.api import Program, Runner, find_device, parse_program, specialise
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.values import leaves_of
from lift_egraph.programs import load
from lift_egraph.workbench import optimize

ROUNDS = 9
ROUNDED = 0.05  # a sum of 2^24 floats one after the other, as C has it, is wrong by 2 %
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
HEADINGS = ("fold", "N", "naive ms", "best ms", "C ms", "C / best", "GB/s", "found in")


@dataclass(frozen=True)
class Fold:
    """A fold of an array xs, and the same in C: variables, a step for the element x, and the results."""

    program: Program
    variables: str
    step: str
    results: str


def fold(name: str, body: str, variables: str, step: str, results: str, element: str = "f32") -> Fold:
    text = f"program {name}(xs: [{element}]N) where N = 16777216 = reduceSeq({body}, xs)"
    return Fold(parse_program(text), variables, step, results)


FOLDS = (
    Fold(load("horner"), "float s = 0", "s = s * k + x", "s"),
    Fold(
        load("mss"),
        "float m = -INFINITY, h = -INFINITY",
        "h = h + x > x ? h + x : x; m = m > h ? m : h",
        "m, h",
    ),
    fold(
        "largest_prefix",
        "fun ((m, s), x) => (max(m, s + x), s + x), (-inf, 0.0)",
        "float m = -INFINITY, s = 0",
        "s = s + x; m = m > s ? m : s",
        "m, s",
    ),
    fold(
        "moments",
        "fun ((s, q), x) => (s + x, q + x * x), (0.0, 0.0)",
        "float s = 0, q = 0",
        "s += x; q += x * x",
        "s, q",
    ),
    fold(
        "longest_run",
        "fun ((c, b), x) => let d = select(x > 0.0, c + 1.0, 0.0) in (d, max(b, d)), (0.0, 0.0)",
        "float c = 0, b = 0",
        "c = x > 0 ? c + 1 : 0; b = b > c ? b : c",
        "c, b",
    ),
    fold("hash", "fun (s, x) => s * 31 + x, 7", "int s = 7", "s = (int)((unsigned)s * 31u + (unsigned)x)", "s", "i32"),
    fold(
        "recurrence",
        "fun (s, x) => select(x > 0.0, 0.5 * s + x, s), 1.0",
        "float s = 1",
        "s = x > 0 ? 0.5f * s + x : s",
        "s",
    ),
)  # fmt: skip


def in_c(fold: Fold, folder: Path) -> Callable[..., np.ndarray]:
    """The fold as a sequential loop, compiled by cc."""
    (xs, *scalars) = fold.program.inputs
    t = "int" if str(xs.type).startswith("[i32]") else "float"
    arguments = "".join(f", float {i.name}" for i in scalars)
    results = "".join(f" out[{n}] = {r};" for n, r in enumerate(fold.results.split(", ")))
    text = f"""#include <math.h>
void fold(const {t} *xs, long n, {t} *out{arguments}) {{
  {fold.variables};
  for (long i = 0; i < n; i++) {{ {t} x = xs[i]; {fold.step}; }}
 {results}
}}
"""
    source, library = folder / f"{fold.program.name}.c", folder / f"{fold.program.name}.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run([shutil.which("cc") or "cc", *FLAGS, "-o", str(library), str(source)], check=True)
    function, count = ctypes.CDLL(str(library)).fold, fold.results.count(",") + 1
    dtype = np.int32 if t == "int" else np.float32

    def run(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        out, array = np.empty(count, dtype), inputs["xs"]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (array, out)]
        others = [ctypes.c_float(float(inputs[i.name])) for i in scalars]
        function(pointers[0], ctypes.c_long(len(array)), pointers[1], *others)
        return out

    return run


def main() -> None:
    parser = harness.options("reductions", __doc__ or "")
    parser.add_argument("folds", nargs="*", default=[f.program.name for f in FOLDS])
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each fold (default: %(default)s)")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in (f for f in FOLDS if f.program.name in arguments.folds):
            found = optimize(case.program, device=device, budget=arguments.budget, records="none")
            special = specialise(case.program)
            inputs = {k: np.asarray(v) for k, v in random_inputs(special, 0, "float").items()}
            sequential = in_c(case, Path(folder))
            plans = {"best": found.ranked[0].plan, "naive": harness.naive_plan(special, device)}
            with Runner(device) as runner:
                runner.load_inputs("inputs", inputs)
                ours = np.array([leaf[()] for leaf in leaves_of(runner.run(plans["best"], "inputs"))])
                assert np.allclose(ours, sequential(inputs), rtol=ROUNDED, atol=ROUNDED), (ours, sequential(inputs))
                runner.load_inputs("floats", inputs)
                times = harness.interleaved(runner, plans, {"C": lambda c=sequential, i=inputs: c(i)}, ROUNDS)
            size = dict(case.program.sizes)["N"]
            phases = harness.way_in_words(found.ranked[0])
            rate = inputs["xs"].nbytes / times["best"] * 1e-6
            ratio = times["C"] / times["best"]
            rows.append((case.program.name, size, times["naive"], times["best"], times["C"], ratio, rate, phases))
            print(*rows[-1], flush=True)
    harness.report(
        arguments.out,
        "Folds that are no reductions as they stand",
        HEADINGS,
        rows,
        notes=(
            f"C: one loop, cc {' '.join(FLAGS)}; medians of {ROUNDS} interleaved rounds in this run, kernels by the "
            "clock of the device, C by the wall clock",
            "ratios above 1 mean that the kernel found is faster; GB/s of its input",
        ),
        device=device,
    )


if __name__ == "__main__":
    main()
