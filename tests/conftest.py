"""Settings of all tests: Hypothesis profiles, chosen by ``HYPOTHESIS_PROFILE``."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", deadline=None, max_examples=200, derandomize=True, print_blob=True, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
