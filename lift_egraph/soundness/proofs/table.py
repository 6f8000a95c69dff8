"""Which rules of the book are proved, and why the others are not: kept in ``proved.toml``, as proofs take time.

Each entry holds a fingerprint of the rule's rewrites and conditions: of a rule that was changed since, nothing is
known. ``python -m tests.proofs`` remakes the table, and tests hold it to what `prove_rule` says.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import forms
from lift_egraph.soundness.proofs.prove import Proof, prove_rule

FILE = "proved.toml"


def known_proof(rule: Rule) -> Proof | None:
    """What the table says of a rule; None for a rule that it does not hold as it is."""
    entry = _entries().get(rule.name)
    if entry is None or entry["rule"] != fingerprint(rule):
        return None
    return Proof("reason" not in entry, entry.get("reason", ""), entry.get("counterexample", ""))


def proof_of(rule: Rule) -> Proof:
    """What the table says of a rule, or a new proof.

    Raises
    ------
    InputProblem
        If a new one is needed, and z3 is not installed.
    """
    return known_proof(rule) or prove_rule(rule)


def fingerprint(rule: Rule) -> str:
    """A short text that differs for rules with different rewrites or conditions."""
    text = "\n".join(f"{f.left} => {f.right} if {f.conditions} claims {f.claims}" for f in forms(rule))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table_text(proofs: Iterable[tuple[Rule, Proof]]) -> str:
    """The table with these proofs, in the order of the names of the rules."""
    lines = ["# Made by `python -m tests.proofs`: proofs of the rules of the book."]
    for rule, proof in sorted(proofs, key=lambda p: p[0].name):
        entry = {"rule": fingerprint(rule)}
        if not proof.proved:
            entry |= {"reason": proof.reason, "counterexample": proof.counterexample}
        inside = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items() if value)
        lines.append(f"{rule.name} = {{ {inside} }}")
    return "\n".join(lines) + "\n"


@cache
def _entries() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files("lift_egraph.soundness.proofs").joinpath(FILE).read_text("utf-8"))
