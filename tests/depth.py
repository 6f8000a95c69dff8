"""How deep the tests look: every kind of mistake by default, many more examples with ``HYPOTHESIS_PROFILE=nightly``."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")


def depth(default: int, nightly: int) -> int:
    """How many examples to take."""
    return nightly if PROFILE == "nightly" else default
