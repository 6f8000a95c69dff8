"""What became of the mutants of rules, on file: a row for each rule, which holds as long as the rule stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import forms, shown
from lift_egraph.soundness.many_rules import Verdict


class MutantsOfRule(msgspec.Struct, frozen=True):
    """The mutants of a rule.

    Attributes
    ----------
    fingerprint
        Of the rule (`fingerprint`).
    examples
        How many programs were made for the rule.
    caught
        How many mutants the check caught.
    redundant
        Those that are as right as the rule, and why.
    open
        Those that no example needs and no note explains.
    """

    fingerprint: str
    examples: int
    caught: int
    redundant: dict[str, str]
    open: list[str]


Record = Mapping[str, MutantsOfRule]


def fingerprint(rule: Rule) -> str:
    """A text that changes with what a rule rewrites, on what conditions, with its flags and its notes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from lift_egraph.rules.fusion import map_fusion
    >>> fingerprint(map_fusion) == fingerprint(replace(map_fusion, law="in other words"))
    True
    >>> fingerprint(map_fusion) == fingerprint(replace(map_fusion, reassociates=True))
    False
    """
    parts = [f"{rule.phase} {rule.reassociates} {rule.commutes} {rule.notes}"]
    for form in forms(rule):
        parts += [shown(form.left), shown(form.right), *map(shown, (*form.conditions, *form.claims))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def row_of(rule: Rule, verdicts: Iterable[Verdict], examples: int) -> MutantsOfRule:
    """The row of a rule, from what the check of its mutants found."""
    redundant: dict[str, str] = {}
    left: list[str] = []
    caught = 0
    for v in verdicts:
        word, _, why = v.outcome.partition(": ")
        name = f"{v.kind}: {v.change}"
        if word == "redundant":
            redundant[name] = why
        elif word == "open":
            left.append(f"{name}: {why}" if why else name)
        else:
            caught += 1
    return MutantsOfRule(fingerprint(rule), examples, caught, dict(sorted(redundant.items())), sorted(left))


def read(path: Path) -> dict[str, MutantsOfRule]:
    """The rows on file; none if there is no such file."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, MutantsOfRule]) if path.exists() else {}


def write(path: Path, record: Record) -> None:
    """Write the rows, those of the rules in order of their names."""
    encoded = msgspec.json.encode({name: record[name] for name in sorted(record)})
    path.write_bytes(msgspec.json.format(encoded, indent=1) + b"\n")


def stale(rules: Iterable[Rule], record: Record, examples: int = 0) -> tuple[Rule, ...]:
    """The rules that have no row, or changed since, or were checked with fewer examples."""
    known = {name: row.fingerprint for name, row in record.items() if row.examples >= examples}
    return tuple(r for r in rules if known.get(r.name) != fingerprint(r))
