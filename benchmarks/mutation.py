"""What the check of rules can see: mutants of the rules of the book, and which of them it tells from the rule.

What is finished is kept, rule by rule in ``results/mutants.json`` and mutant by mutant in a journal: a run that was
broken off goes on, and after a change of the book only the rules that changed are done again. ``--again`` begins anew.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import harness
from rule_check import cpu_seconds

from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness import mutation_record as records
from lift_egraph.soundness.many_rules import EXAMPLES, JOBS, Verdict, check_rules
from lift_egraph.soundness.mutations import mutants_of

RECORD = harness.RESULTS / "mutants.json"
WORDS = ("caught", "redundant", "open")
Mutant = tuple[str, str, str]  # the fingerprint of a rule, the kind and the change


def main() -> None:
    parser = harness.options("mutation", __doc__ or "", has_device=False)
    parser.add_argument(
        "--examples", type=int, default=EXAMPLES, help="programs for each mutant (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=JOBS, help="rules whose mutants are checked at the same time (default: %(default)s)"
    )
    parser.add_argument("--rules", nargs="*", default=(), help="which rules; all if none is given")
    parser.add_argument("--record", type=Path, default=RECORD, help="the rows on file (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="do also what is finished again")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, not as a table")
    arguments = parser.parse_args()
    journal = arguments.record.with_suffix(".jsonl")
    chosen = tuple(r for r in all_rules if not arguments.rules or r.name in arguments.rules)
    rows = records.read(arguments.record)
    if arguments.again:
        journal.unlink(missing_ok=True)
    done = {name: row for name, row in rows.items() if not row.open}
    left = chosen if arguments.again else records.stale(chosen, done, arguments.examples)
    prints = {r.name: records.fingerprint(r) for r in left}
    counts = {r.name: len(mutants_of(r)) for r in left}
    caught = _caught(journal)
    found: dict[str, list[Verdict]] = defaultdict(list)
    used = cpu_seconds()
    with journal.open("a") as kept:
        for v in check_rules(
            (left,), simplification=simplification, examples=arguments.examples, jobs=arguments.jobs, mutate=True,
            caught=lambda name, kind, change: (prints[name], kind, change) in caught,
        ):  # fmt: skip
            found[v.name].append(v)
            if v.outcome.startswith("caught"):
                print(json.dumps((prints[v.name], v.kind, v.change)), file=kept, flush=True)
            if not arguments.json:
                print(f"{v.name}: {v.kind}: {v.change}: {v.outcome}", flush=True)
            if len(found[v.name]) == counts[v.name]:
                rule = next(r for r in left if r.name == v.name)
                rows[v.name] = records.row_of(rule, found[v.name], arguments.examples)
                records.write(arguments.record, rows)
    for rule in left:
        if not counts[rule.name]:
            rows[rule.name] = records.row_of(rule, (), arguments.examples)
    names = {r.name for r in all_rules}
    rows = {name: row for name, row in rows.items() if name in names}
    records.write(arguments.record, rows)
    if arguments.json:
        print(arguments.record.read_text())
        return
    _report(arguments.out, rows, f"{cpu_seconds() - used:.0f} s of processor time for {len(left)} rules in this run")


def _caught(journal: Path) -> set[Mutant]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return {tuple(json.loads(line)) for line in lines}


def _report(out: Path, rows: dict[str, records.MutantsOfRule], spent: str) -> None:
    families: dict[str, list[records.MutantsOfRule]] = defaultdict(list)
    for rule in all_rules:
        if rule.name in rows:
            families[rule.family].append(rows[rule.name])
    table: list[harness.Row] = [(family, *_counts(of)) for family, of in sorted(families.items())]
    table.append(("all", *_counts(list(rows.values()))))
    why = Counter(reason for row in rows.values() for reason in row.redundant.values())
    harness.report(
        out,
        f"Mutants of the rules at {min(row.examples for row in rows.values())} examples",
        ("family", "rules", "mutants", *WORDS),
        table,
        notes=(
            spent,
            "caught: a counterexample, or the mutant does not fire, or no program has its left-hand side",
            *(f"redundant, {count}: {reason}" for reason, count in why.most_common()),
            *(f"open: `{name}`, {mutant}" for name, row in rows.items() for mutant in row.open),
        ),
    )


def _counts(rows: list[records.MutantsOfRule]) -> tuple[int, ...]:
    caught, redundant, left = (
        sum(numbers) for numbers in zip(*((r.caught, len(r.redundant), len(r.open)) for r in rows), strict=True)
    )
    return len(rows), caught + redundant + left, caught, redundant, left


if __name__ == "__main__":
    main()
