"""For every rule, wrong versions of it; the harness must catch each."""

from __future__ import annotations

from tests.rules import wrong_algorithmic, wrong_guided, wrong_lowering
from tests.rules.planting import Twin

TWINS: tuple[Twin, ...] = (*wrong_algorithmic.twins.twins, *wrong_lowering.twins.twins, *wrong_guided.twins.twins)
