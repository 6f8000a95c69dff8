"""Features of plans: how many a second, and whether they are what instrumented kernels count, over random terms.

The terms are those of ``tests/codegen/corpus``. Each kernel's text is rewritten so that every access, barrier, loop
body and branch reports itself, and runs on PoCL, also where it is made for another device. What data decides cannot be
known before the run: terms in which it does are counted, and not compared.

The rates are those of one core, over what a search finds, and points of its plans; also from a term with parameters to
a table of its points' features. How many kinds of trees the kernels of points have, numbers aside, says how many of
them could share what is found out about one.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import harness

sys.path.insert(0, str(Path(__file__).parents[1]))

from lift_egraph.api import LiftError, StructuralCost, programs, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.cache_lines import warp_and_line
from lift_egraph.extract.features import feature_table
from lift_egraph.language import ir
from lift_egraph.language.nat import NatVar
from lift_egraph.tuning.space import Point
from lift_egraph.workbench import Budget
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.phases import Found
from tests.codegen.corpus.programs import numbered
from tests.extract.agreement import differences, pocl, unknown
from tests.extract.instrumented import run

KINDS = ("pocl", "nvidia")
BATCH = 16  # plans of one build
PROGRAMS = ("mm", "gemv", "j2d5pt", "nbody", "dot")
SIZE, POINTS, TERMS = 1024, 20, 30  # of each length; points of a plan; terms of a program
MOST_POINTS = 500  # of the plan with the most of a program


def main() -> None:
    parser = harness.options("features", __doc__ or "", has_device=False)
    parser.add_argument("--count", type=int, default=300, help="terms that are compared (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search for the rates (0: none)")
    arguments = parser.parse_args()
    rows: list[harness.Row] = []
    wrong: list[str] = []
    for kind in KINDS:
        outcomes = Counter[str]()
        for outcome, found in compared(DEVICES[kind], arguments.count, arguments.first):
            outcomes[outcome] += 1
            wrong += found
        numbers = [outcomes[outcome] for outcome in ("equal", "different", "lines by data", "all by data", "refused")]
        rows.append((f"random terms, {kind}", *numbers, *[None] * 8))
        print(rows[-1], flush=True)
    for kind in KINDS if arguments.seconds else ():
        for name in PROGRAMS:
            terms, tunables = found_terms(name, DEVICES[kind], arguments.seconds)
            of_points = points_rates(tunables, DEVICES[kind])
            rows.append((f"{name}, {kind}", *[None] * 5, *rates(terms, DEVICES[kind]), *of_points))
            print(rows[-1], flush=True)
    print("\n".join(wrong))
    harness.report(
        arguments.out,
        "Features: agreement with instrumented kernels, and rates",
        (
            *("", "equal", "different", "lines by data", "all by data", "refused"),
            *("terms", "compiled/s", "features/s", "estimates/s"),
            *("points", "kinds of trees", "points/s", "features of points/s"),
        ),
        rows,
        notes=(
            "equal: all of Table 6.1; lines by data: all but lines are equal, for what a kernel reads says where it "
            "reads; all by data: not compared, as such data also decides what is done",
            f"rates of one core's time, for terms of searches at lengths of {SIZE}, no two alike: from a term to its "
            "plan without text, from that to its features, and to the analytical estimate",
            f"points: of the plan that has most, up to {MOST_POINTS}; points/s: from its term to features; features of "
            "points/s: from their plans",
        ),
    )


def compared(device: Device, count: int, first: int) -> Iterator[tuple[str, list[str]]]:
    """What becomes of random terms, as many of which are compared; and what is different."""
    context, waiting, done, number = pocl(), list[Plan](), 0, first
    while done < count:
        try:
            plan = compile_program(numbered(number), device)
        except LiftError:
            yield "refused", []
        else:
            if (by_data := unknown(plan)) == "all":
                yield "all by data", []
            elif by_data != "empty":
                waiting.append(plan)
        number += 1
        if len(waiting) == min(BATCH, count - done):
            for each, counts in zip(waiting, run(context, waiting, *warp_and_line(device)), strict=True):
                found = differences(each, device, counts)
                yield "different" if found else "lines by data" if unknown(each) else "equal", found
            done, waiting = done + len(waiting), []


def found_terms(name: str, device: Device, seconds: float) -> tuple[list[ir.Program], list[Tunable]]:
    """Low-level terms that a search finds and points of its plans, no two alike, and the plans with parameters."""
    program = programs.load(name)
    source = ir.Program(program.name, program.inputs, program.body)
    special = specialise(program, {size: SIZE for size, _ in program.sizes})
    began, found, tunables = time.perf_counter(), list[ir.Program](), list[Tunable]()
    for item in search(special, device, Budget(seconds), StructuralCost(), source=source):
        if isinstance(item, Found):
            found.append(replace(special, body=item.term))
        if isinstance(item, Tunable):
            try:
                points = item.space(device).sample(POINTS)
                found += [item.term(point) for point in points]
            except LiftError:  # nothing bounds a parameter, or the space does not know what the term asks for
                continue
            tunables.append(item)
        found = list(dict.fromkeys(found))
        if (len(found) >= TERMS and tunables) or time.perf_counter() - began > seconds:
            break
    return found[:TERMS], tunables


def points_rates(
    tunables: list[Tunable], device: Device
) -> tuple[int, int, float, float] | tuple[None, None, None, None]:
    """Points of the plan that has most, the kinds of trees that their kernels have, and how many points a second: from
    their terms to features, and from their plans.
    """
    if not tunables:
        return None, None, None, None
    tunable = max(tunables, key=lambda t: t.space(device).count)
    points = tunable.space(device).sample(MOST_POINTS)
    began = _begin()
    table = feature_table(plans_of(terms_at(points, tunable), device), device)
    both = time.process_time() - began
    plans = list(plans_of(terms_at(points, tunable), device))
    began = _begin()
    feature_table(plans, device)
    describing = time.process_time() - began
    trees = {tuple(tree(kernel.body) for kernel in plan.kernels) for plan in plans}
    return len(table), len(trees), len(table) / both, len(table) / describing


def terms_at(points: Iterable[Point], tunable: Tunable) -> Iterator[ir.Program]:
    """The terms at points, but for those of which the space does not know that there is none."""
    for point in points:
        with suppress(LiftError):
            yield tunable.term(point)


def tree(part: Any) -> Hashable:
    """What a tree of statements is but for its numbers."""
    if isinstance(part, tuple):
        return tuple(map(tree, part))
    if isinstance(part, int) or not is_dataclass(part):
        return "number" if isinstance(part, int) else str(part)
    if isinstance(part, ir.Expr | NatVar):
        return type(part).__name__
    return type(part).__name__, *(tree(getattr(part, f.name)) for f in fields(part))


def rates(terms: list[ir.Program], device: Device) -> tuple[int, float, float, float]:
    """How many terms there are, and how many are compiled, described by features and estimated in a second.

    What is found out about a plan is kept with it, so features and estimates have plans of their own.
    """
    began = _begin()
    plans = list(plans_of(terms, device))
    times = [(time.process_time() - began) * len(plans) / len(terms)]
    again = list(plans_of(terms, device))
    for work in (lambda: feature_table(plans, device), lambda: [predict(plan, device) for plan in again]):
        began = _begin()
        work()
        times.append(time.process_time() - began)
    compiled, described, estimated = (len(plans) / seconds for seconds in times)
    return len(plans), compiled, described, estimated


def plans_of(terms: Iterable[ir.Program], device: Device) -> Iterator[Plan]:
    """The plans of terms, each made when it is asked for: a table of their features keeps none of them."""
    for term in terms:
        with suppress(LiftError):  # as in a search, some fit no device
            yield compile_program(term, device, with_text=False)


def _begin() -> float:
    """The time of this process, once what others made is looked through for garbage: a search leaves e-graphs."""
    gc.collect()
    return time.process_time()


if __name__ == "__main__":
    main()
