"""Runs programs of the corpus by number: ``python -m tests.codegen.corpus 17 42 --on oclgrind``."""

from __future__ import annotations

import argparse
import sys

from lift_egraph.api import LiftError, print_program
from lift_egraph.codegen.compiler import compile_program
from tests.codegen.corpus.devices import PLATFORMS, missing
from tests.codegen.corpus.harness import Bench, Case
from tests.codegen.corpus.programs import numbered


def main() -> int:
    """The number of programs with wrong results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="+", type=int)
    parser.add_argument("--on", choices=PLATFORMS, action="append", help="default: all that are installed")
    parser.add_argument("--open", action="store_true", help="sizes are arguments of the kernels, where they can be")
    wanted = parser.parse_args()
    cases = [Case.of(numbered(n)) for n in wanted.numbers]
    wrong = 0
    for name in wanted.on or [name for name in PLATFORMS if not missing(name)]:
        with Bench(name) as bench:
            for case, outcome in zip(cases, bench.run(cases, with_open_sizes=wanted.open), strict=True):
                print(f"{case.program.name} on {name}: {outcome.kind}: {outcome.message}")
                if outcome.kind == "wrong":
                    wrong += 1
                    print(print_program(case.program))
                    try:
                        plan = bench.open_plan(case.program) if wanted.open else None
                        print((plan or compile_program(case.program, bench.device)).source)
                    except LiftError as problem:
                        print(problem)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
