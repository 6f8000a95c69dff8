"""What the check of rules can see: mutants of the rules of the book, and which of them it tells from the rule."""

from __future__ import annotations

import time
from collections import Counter

import harness

from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.many_rules import EXAMPLES, JOBS, Verdict, check_rules

WORDS = ("caught", "redundant", "open")


def main() -> None:
    parser = harness.options("mutation", __doc__ or "", has_device=False)
    parser.add_argument(
        "--examples", type=int, default=EXAMPLES, help="programs for each mutant (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=JOBS, help="mutants checked at the same time (default: %(default)s)"
    )
    parser.add_argument("--kinds", nargs="*", default=(), help="which kinds of mutants; all if none is given")
    parser.add_argument("--rules", nargs="*", default=(), help="which rules; all if none is given")
    arguments = parser.parse_args()
    chosen = tuple(r for r in all_rules if not arguments.rules or r.name in arguments.rules)
    began = time.perf_counter()
    found: list[Verdict] = []
    for verdict in check_rules(
        (chosen,), simplification=simplification, examples=arguments.examples, jobs=arguments.jobs, mutate=True,
        kinds=arguments.kinds,
    ):  # fmt: skip
        found.append(verdict)
        print(f"{verdict.name}: {verdict.kind}: {verdict.change}: {verdict.outcome}", flush=True)
    kinds = sorted({v.kind for v in found})
    rows: list[harness.Row] = [(kind, *_counts([v for v in found if v.kind == kind])) for kind in kinds]
    rows.append((f"all of {len({v.name for v in found})} rules", *_counts(found)))
    left = [f"open: `{v.name}`, {v.kind}: `{v.change}`" for v in found if v.outcome == "open"]
    harness.report(
        arguments.out,
        f"Mutants of the rules at {arguments.examples} examples",
        ("kind", "mutants", *WORDS),
        rows,
        notes=(
            f"{time.perf_counter() - began:.0f} s by the clock with {arguments.jobs} mutants at a time",
            "caught: a counterexample, or the mutant does not fire, or no program has its left-hand side",
            "redundant: the check finds nothing wrong, and no program was found that breaks the condition alone",
            *left,
        ),
    )


def _counts(verdicts: list[Verdict]) -> tuple[int, ...]:
    words = Counter(v.outcome.partition(":")[0] for v in verdicts)
    return len(verdicts), *(words[word] for word in WORDS)


if __name__ == "__main__":
    main()
