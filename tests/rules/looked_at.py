"""Which rules the slow tests look at: every night all; else those that changed since the table of mutants was made, and
one in sixteen of the others, another each day, from which nothing but a change of what all rules stand on can differ.
"""

from __future__ import annotations

from pathlib import Path

from lift_egraph.rules import all_rules
from lift_egraph.soundness.mutation_record import read, stale
from tests.depth import TURN, depth

RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "mutants.json"
ONE_IN = 1 if TURN is None else depth(16, 1)
LOOKED_AT = frozenset(r.name for r in (*all_rules[(TURN or 0) % ONE_IN :: ONE_IN], *stale(all_rules, read(RECORD))))
