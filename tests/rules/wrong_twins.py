"""For every rule, wrong versions of it; the harness must catch each."""

from __future__ import annotations

from tests.rules import wrong_algorithmic, wrong_guided, wrong_lowering, wrong_packing
from tests.rules.planting import Twin

MODULES = (wrong_algorithmic, wrong_lowering, wrong_guided, wrong_packing)
TWINS: tuple[Twin, ...] = tuple(twin for module in MODULES for twin in module.twins.twins)
