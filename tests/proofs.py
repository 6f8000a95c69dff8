"""``python -m tests.proofs`` proves the rules that changed, and keeps what is found; with ``--all`` all, in minutes."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from lift_egraph.rules import all_rules
from lift_egraph.soundness import proofs
from lift_egraph.soundness.proofs.prove import prove_rule
from lift_egraph.soundness.proofs.table import FILE, proof_of, table_text

if __name__ == "__main__":
    prove = prove_rule if "--all" in sys.argv else proof_of
    found = [(rule, prove(rule)) for rule in all_rules]
    for rule, proof in found:
        if not proof.proved:
            print(f"{rule.name}: {proof}")
    Path(str(files(proofs).joinpath(FILE))).write_text(table_text(found), "utf-8")
    print(f"{sum(proof.proved for _, proof in found)} of {len(found)} rules are proved")
