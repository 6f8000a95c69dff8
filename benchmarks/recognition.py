"""Folds as users write them: which are recognised as reductions, and whether what comes of them is right.

Of the first 40, 26 can be taken apart, over a semiring or by an associative operator; 14 look as if they could, and
cannot, but for two of which one part can be taken apart, and then the other. They were written from the documents and
the page of the language, without sight of what recognises them; so were 67 more (`more_folds`), and then another 40,
with ranges (`fresh_folds`).

Source of some: 003 §4 and §7; Sato and Iwasaki, "Automatic parallelization via matrix multiplication", PLDI 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import fresh_folds
import harness
import more_folds
import numpy as np
from chunked import in_chunks

from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.api import Program, parse_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.changes.bounded import with_bounds
from lift_egraph.workbench.changes.cascades import cascade_steps
from lift_egraph.workbench.changes.chunked import FOLDS, chunked_by_action
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.recalled import with_recalled

LENGTH = 16
TRIALS = 20
ROUNDING = 1e-4  # relative; constants such as 0.1 are no whole numbers
HEADINGS = ("fold", "operator", "can be", "recognised", "right", "why not")

#  name, pattern, operator, initial value, array
PARALLEL = (
    ("balance of an account", "reduceSeq", "fun (s, (r, d)) => s * (1.0 + r) + d", "100.0", "zip(xs, ys)"),
    ("best prefix", "reduceSeq", "fun ((best, sum), x) => (max(best, sum + x), sum + x)", "(-inf, 0.0)", "xs"),
    (
        "worst segment", "reduceSeq",
        "fun ((worst, here), x) => let h = min(here + x, x) in (min(worst, h), h)", "(inf, inf)", "xs",
    ),
    ("largest by absolute value", "reduceSeq", "fun (m, x) => if abs(x) > m then abs(x) else m", "0.0", "xs"),
    ("count of positives", "reduceSeq", "fun (c, x) => if x > 0.0 then c + 1 else c", "0", "xs"),
    (
        "longest run", "reduceSeq",
        "fun ((best, run), x) => let r = (if x > 0.0 then run + 1.0 else 0.0) in (max(best, r), r)", "(0.0, 0.0)", "xs",
    ),
    ("string hash", "reduceSeq", "fun (h, c) => h * 33 + c", "5381", "is"),
    ("rabbits that come and go", "reduceSeq", "fun ((now, before), x) => (now + before + x, now)", "(1.0, 1.0)", "xs"),
    ("exponential average", "reduceSeq", "fun (s, x) => s + 0.1 * (x - s)", "0.0", "xs"),
    ("last positive value", "reduceSeq", "fun (s, x) => if x > 0.0 then x else s", "0.0", "xs"),
    ("odd number of positives", "reduceSeq", "fun (p, x) => (p && not(x > 0.0)) || (not(p) && x > 0.0)", "false", "xs"),
    ("count, sum, squares", "reduceSeq", "fun ((n, s, q), x) => (n + 1.0, s + x, q + x * x)", "(0.0, 0.0, 0.0)", "xs"),
    ("cheapest way", "reduceSeq", "fun (d, (w, start)) => min(d + w, start)", "inf", "zip(xs, ys)"),
    ("widest way", "reduceSeq", "fun (w, (x, y)) => max(min(w, x), y)", "inf", "zip(xs, ys)"),
    (
        "filter of second order", "reduceSeq",
        "fun ((y1, y2), x) => (1.6 * y1 - 0.8 * y2 + x, y1)", "(0.0, 0.0)", "xs",
    ),
    (
        "Viterbi, two states", "reduceSeq",
        "fun ((a, b), (x, y)) => (max(a - 0.1, b - 2.3) + x, max(a - 1.2, b - 0.4) + y)", "(0.0, 0.0)", "zip(xs, ys)",
    ),
    (
        "words begun", "reduceSeq",
        "fun ((words, inside), i) => (words + i * (1 - inside), i)", "(0, 0)",
        "map(fun x => if x > 0.0 then 1 else 0, xs)",
    ),
    ("depth of brackets", "reduceSeq", "fun ((depth, low), x) => (depth + x, min(low, depth + x))", "(0.0, 0.0)", "xs"),
    (
        "sum that starts anew", "reduceSeq",
        "fun (s, (x, y)) => if y < 0.0 then x else 0.5 * s + x", "0.0", "zip(xs, ys)",
    ),
    (
        "largest and where", "reduce",
        "fun ((v, i), (w, j)) => if w > v || (w == v && j < i) then (w, j) else (v, i)", "(-inf, 2147483647)",
        "zip(xs, is)",
    ),
    ("level of a tank", "reduceSeq", "fun (s, x) => min(max(s + x, 0.0), 10.0)", "5.0", "xs"),
    ("smallest and largest", "reduce", "fun ((a, b), (c, d)) => (min(a, c), max(b, d))", "(inf, -inf)", "zip(xs, xs)"),
    (
        "product of matrices", "reduce",
        "fun ((a, b, c, d), (e, f, g, h)) => (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)",
        "(1.0, 0.0, 0.0, 1.0)", "map(fun (x, y) => (x, y, 1.0, 0.5), zip(xs, ys))",
    ),
    (
        "last two letters seen", "reduceSeq",
        "fun ((a, b), x) => (x > 0.5, a && x < 0.0 || b)", "(false, false)", "xs",
    ),
    ("continued fraction", "reduceSeq", "fun (s, x) => x + 1.0 / (2.0 + s)", "1.0", "xs"),
    ("least pair", "reduce", "fun (p, q) => if q < p then q else p", "(2147483647, 2147483647)", "zip(is, is)"),
    ("largest product", "reduceSeq", "fun (s, x) => max(s * x, x)", "1.0", "xs"),
)  # fmt: skip
IN_PARTS = (
    (
        "running mean by Welford", "reduceSeq",
        "fun ((n, m), x) => (n + 1.0, m + (x - m) / (n + 1.0))", "(0.0, 0.0)", "xs",
    ),
    (
        "longest rising run", "reduceSeq",
        "fun ((best, run, last), x) => let r = (if x > last then run + 1.0 else 1.0) in (max(best, r), r, x)",
        "(0.0, 0.0, -inf)", "xs",
    ),
)  # fmt: skip
SEQUENTIAL = (
    ("square", "reduceSeq", "fun (s, x) => s * s * 0.1 + x", "0.0", "xs"),
    ("reflection at zero", "reduceSeq", "fun (s, x) => if s > 0.0 then s + x else x - s", "0.0", "xs"),
    ("phase", "reduceSeq", "fun (s, x) => sin(s) + x", "0.0", "xs"),
    ("length of a vector, step by step", "reduceSeq", "fun (s, x) => sqrt(s * s + x * x)", "0.0", "xs"),
    ("logistic map", "reduceSeq", "fun (s, x) => 3.7 * s * (1.0 - s) + 0.001 * x", "0.3", "xs"),
    ("halving of whole numbers", "reduceSeq", "fun (s, i) => (s + i) / 2", "100", "is"),
    ("check digit", "reduceSeq", "fun (s, i) => (s * 10 + i) % 97", "0", "is"),
    ("counter with a lid", "reduceSeq", "fun (s, i) => min(s + i, 10)", "0", "is"),
    ("fire at a threshold", "reduceSeq", "fun (s, x) => if s > 1.0 then 0.0 else s + x", "0.0", "xs"),
    ("largest plus itself", "reduceSeq", "fun (s, x) => max(s, x) + s", "0.0", "xs"),
    ("distance", "reduceSeq", "fun (s, x) => abs(s - x)", "0.0", "xs"),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a fold: why it stays a loop, if it does, else how many of the trials were right."""

    why: str
    right: int


def fold(pattern: str, operator: str, initial: str, array: str) -> Program:
    inputs = f"xs: [f32]{LENGTH}, ys: [f32]{LENGTH}, is: [i32]{LENGTH}"
    return parse_program(f"program fold({inputs}) = {pattern}({operator}, {initial}, {array})")


def outcome(program: Program) -> Outcome:
    """Whether a fold is recognised; then it is computed in chunks, and compared with the loop on whole numbers."""
    why = next(refusals(program.body), "")
    if why:
        return Outcome(why.partition("stays a loop: ")[2], 0)
    term = _or(with_bounds(program.body, Rows(POCL)), program.body)
    term = _or(with_recalled(term), term)
    for step in cascade_steps(term, Rows(POCL), least=2):
        term = step.term
    acted = with_actions(term)
    if acted is None and isinstance(term, FOLDS):  # of what acts no more is known
        made = chunked_by_action(term, term.initial, term.array, LENGTH // 4, 0)
        acted = made and in_lets(made.lets, made.result)
    chunked = in_chunks(_or(acted, term))
    right = 0
    for seed in range(TRIALS):
        inputs = random_inputs(program, seed, "integer")
        loop, made = (leaves_of(evaluate(t, inputs)) for t in (program.body, chunked))
        right += all(_agree(a, b) for a, b in zip(loop, made, strict=True))
    return Outcome("", right)


def _or(changed: ir.Expr | None, term: ir.Expr) -> ir.Expr:
    """What became of a term, or itself: conditions have no truth value by which ``or`` could tell."""
    return term if changed is None else changed


def _agree(loop: np.ndarray, made: np.ndarray) -> bool:
    """Whether values are equal up to rounding; where the loop divided zero by zero, the other need not have."""
    return bool(np.all(np.isclose(loop, made, rtol=ROUNDING) | np.isnan(loop)))


def rows() -> Iterator[harness.Row]:
    more, others = ([(f[0], "reduce", *f[1:]) for f in own] for own in (more_folds.PARALLEL, more_folds.SEQUENTIAL))
    for folds, can in ((PARALLEL, "yes"), (IN_PARTS, "in parts"), (SEQUENTIAL, "no"), (more, "yes"), (others, "no")):
        for name, pattern, operator, initial, array in folds:
            found = outcome(fold(pattern, operator, initial, array))
            yield (name, f"`{operator}`", can, *_shown(found))
    for folds, can in ((fresh_folds.PARALLEL, "yes"), (fresh_folds.SEQUENTIAL, "no")):
        for name, inputs, text in folds:
            found = outcome(with_ranges(parse_program(f"program fold({inputs}) = {text}")))
            yield (name, f"`{text}`", can, *_shown(found))


def _shown(found: Outcome) -> tuple[str, str, str]:
    if found.why:
        return "no", "", " ".join(found.why.split())
    return "yes", f"{found.right} of {TRIALS}", ""


def main() -> None:
    arguments = harness.options("recognition", __doc__ or "", has_device=False).parse_args()
    made = list(rows())
    first = len(PARALLEL) + len(IN_PARTS) + len(SEQUENTIAL)
    last = first + len(more_folds.PARALLEL) + len(more_folds.SEQUENTIAL)
    recognised, later, fresh = (
        [row[2] for row in own if row[3] == "yes"] for own in (made[:first], made[first:last], made[last:])
    )
    wrong = sum(row[3] == "yes" and row[4] != f"{TRIALS} of {TRIALS}" for row in made)
    harness.report(
        arguments.out,
        "Folds that are recognised as reductions",
        HEADINGS,
        made,
        notes=(
            f"{recognised.count('yes')} of the {len(PARALLEL)} that can be taken apart are recognised, "
            f"{recognised.count('in parts')} of the {len(IN_PARTS)} that can in parts, {recognised.count('no')} of the "
            f"{len(SEQUENTIAL)} others",
            f"of those written later, {later.count('yes')} of the {len(more_folds.PARALLEL)} that can be taken apart, "
            f"{later.count('no')} of the {len(more_folds.SEQUENTIAL)} others",
            f"of those with ranges, {fresh.count('yes')} of the {len(fresh_folds.PARALLEL)} that can be taken apart, "
            f"{fresh.count('no')} of the {len(fresh_folds.SEQUENTIAL)} others",
            f"{wrong} of all give wrong results in chunks",
            f"right: of {TRIALS} runs on random whole numbers, those whose results in chunks of {LENGTH} "
            "elements are those of the loop, up to rounding",
        ),
    )


if __name__ == "__main__":
    main()
