"""How many wrong rules the check of rules catches, of a set that was written without sight of how it makes programs.

The rules are those of ``benchmarks/wrong_rules``, one file a family: each law is nearly right, as one might believe it.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import harness

from lift_egraph.rules import simplification
from lift_egraph.soundness.many_rules import EXAMPLES, JOBS, Verdict, check_rules

FOLDER = Path(__file__).parent / "wrong_rules"
SEEDS = (0, 1, 2)


def main() -> None:
    parser = harness.options("check_power", __doc__ or "", has_device=False)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="programs for each rule (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="seeds of the programs")
    parser.add_argument("--jobs", type=int, default=JOBS, help="rules checked at the same time (default: %(default)s)")
    arguments = parser.parse_args()
    files = tuple(sorted(FOLDER.glob("*.py")))
    found: dict[int, list[Verdict]] = defaultdict(list)
    for seed in arguments.seeds:
        for verdict in check_rules(
            files, simplification=simplification, examples=arguments.examples, seed=seed, jobs=arguments.jobs,
            shrink=False,
        ):  # fmt: skip
            found[seed].append(verdict)
            print(f"seed {seed}: {verdict.name}: {_outcome(verdict)}", flush=True)
    rows: list[harness.Row] = []
    for file in (*files, None):
        of = {seed: [v for v in verdicts if file in (None, _file(v))] for seed, verdicts in found.items()}
        count = max(len(verdicts) for verdicts in of.values())
        rows.append((file.stem if file else "all", count, *(sum(not v.passed for v in vs) for vs in of.values())))
    missed = [f"seed {seed}: `{v.name}` escapes: {v.law}" for seed, vs in found.items() for v in vs if v.passed]
    late = sorted((v.examples for vs in found.values() for v in vs if v.counterexample is not None), reverse=True)
    refused = {v.name: v.problem for vs in found.values() for v in vs if v.problem is not None}
    harness.report(
        arguments.out,
        f"Wrong rules caught at {arguments.examples} examples",
        ("family", "wrong rules", *(f"seed {seed}" for seed in found)),
        rows,
        notes=(
            *missed,
            f"half of the counterexamples are among the first {late[len(late) // 2]} programs of a rule; the latest "
            f"are the programs {', '.join(map(str, late[:5]))}",
            *(f"`{name}` is caught without a counterexample: {problem}" for name, problem in refused.items()),
        ),
    )


def _file(verdict: Verdict) -> Path:
    return Path(verdict.place.rpartition(":")[0])


def _outcome(v: Verdict) -> str:
    if v.counterexample is not None:
        return f"wrong after {v.examples} programs"
    return v.problem or "ESCAPES"


if __name__ == "__main__":
    main()
