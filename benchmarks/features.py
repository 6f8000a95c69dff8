"""Features of plans: how many a second, and whether they are what instrumented kernels count, over random terms.

The terms are those of ``tests/codegen/corpus``. Each kernel's text is rewritten so that every access, barrier, loop
body and branch reports itself, and runs on PoCL, also where it is made for another device. What data decides cannot be
known before the run: terms in which it does are counted, and not compared.

The rates are those of one core, over what a search finds, and points of its plans.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import harness

sys.path.insert(0, str(Path(__file__).parents[1]))

from lift_egraph.api import LiftError, StructuralCost, programs, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.cache_lines import warp_and_line
from lift_egraph.extract.features import features
from lift_egraph.language import ir
from lift_egraph.workbench import Budget
from lift_egraph.workbench.phases import Found
from lift_egraph.workbench.search import search
from lift_egraph.workbench.tuned import Tunable
from tests.codegen.corpus.programs import numbered
from tests.extract.agreement import differences, pocl, unknown
from tests.extract.instrumented import run

KINDS = ("pocl", "nvidia")
BATCH = 16  # plans of one build
PROGRAMS = ("mm", "gemv", "j2d5pt")
SIZE, POINTS, TERMS = 1024, 20, 30  # of each length; points of a plan; terms of a program
Term = tuple[str, ir.Program]


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
        rows.append((f"random terms, {kind}", *numbers, *[None] * 4))
        print(rows[-1], flush=True)
    for kind in KINDS if arguments.seconds else ():
        for name in PROGRAMS:
            terms = list(found_terms(name, DEVICES[kind], arguments.seconds))
            rows.append((f"{name}, {kind}", *[None] * 5, *rates([term for _, term in terms], DEVICES[kind])))
            print(rows[-1], flush=True)
    print("\n".join(wrong))
    harness.report(
        arguments.out,
        "Features: agreement with instrumented kernels, and rates",
        (
            *("", "equal", "different", "lines by data", "all by data", "refused"),
            *("terms", "compiled/s", "features/s", "estimates/s"),
        ),
        rows,
        notes=(
            "equal: all of Table 6.1; lines by data: all but lines are equal, for what a kernel reads says where it "
            "reads; all by data: not compared, as such data also decides what is done",
            f"rates of one core's time, for terms of searches at lengths of {SIZE}: from a term to its plan without "
            "text, from that to its features, and to the analytical estimate",
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


def found_terms(name: str, device: Device, seconds: float) -> Iterator[Term]:
    """Low-level terms that a search finds, and points of its plans."""
    program = programs.load(name)
    source = ir.Program(program.name, program.inputs, program.body)
    special = specialise(program, {size: SIZE for size, _ in program.sizes})
    began, number = time.perf_counter(), 0
    for item in search(special, device, Budget(seconds), StructuralCost(), source=source):
        terms = [item.term] if isinstance(item, Found) else []
        if isinstance(item, Tunable):
            try:
                points = item.space(device).sample(POINTS)
                terms = [item.parametric.at(item.sizes, point)[0] for point in points]
            except LiftError:  # nothing bounds a parameter, or the space does not know what the term asks for
                continue
        for term in terms:
            yield name, replace(special, body=term)
        number += len(terms)
        if number >= TERMS or time.perf_counter() - began > seconds:
            return


def rates(terms: list[ir.Program], device: Device) -> tuple[int, float, float, float]:
    """How many terms there are, and how many are compiled, described by features and estimated in a second."""
    plans: list[Plan] = []
    began = time.process_time()
    for term in terms:
        try:
            plans.append(compile_program(term, device, with_text=False))
        except LiftError:  # as in a search, some fit no device
            continue
    times = [(time.process_time() - began) * len(plans) / len(terms)]
    for work in (features, predict):
        began = time.process_time()
        for plan in plans:
            work(plan, device)
        times.append(time.process_time() - began)
    compiled, described, estimated = (len(plans) / seconds for seconds in times)
    return len(plans), compiled, described, estimated


if __name__ == "__main__":
    main()
