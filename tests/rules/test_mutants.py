"""No small change of a rule passes unseen, unless it is as right: of the rules that changed since the table was made.

The table is that of ``python benchmarks/mutation.py``, which goes on with what changed; nightly tests make all of it.
"""

from __future__ import annotations

import pytest

from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.many_rules import EXAMPLES, check_rules
from lift_egraph.soundness.mutation_record import read, stale
from tests.depth import PROFILE
from tests.rules.looked_at import RECORD


def test_the_table_has_all_rules_and_no_mutant_is_open():
    record = read(RECORD)
    assert {r.name for r in all_rules} == record.keys()
    assert sum(row.caught for row in record.values()) > 4000
    assert all(row.examples >= EXAMPLES for row in record.values())
    assert not {name: row.open for name, row in record.items() if row.open}


@pytest.mark.timeout(7200)
def test_no_mutant_of_a_changed_rule_is_open():
    every_night = PROFILE == "nightly"
    changed = all_rules if every_night else stale(all_rules, read(RECORD))
    verdicts = check_rules((tuple(changed),), simplification=simplification, mutate=True) if changed else ()
    left = [f"{v.name}: {v.kind}: {v.change}: {v.outcome}" for v in verdicts if v.outcome.startswith("open")]
    assert not left, "\n".join([*left, "widen the check, drop the condition, or note on the rule why it is as right"])
