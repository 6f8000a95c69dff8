"""Settings of all tests: Hypothesis profiles, chosen by ``HYPOTHESIS_PROFILE``, and what they share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True, print_blob=True, suppress_health_check=_QUIET
)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children of a process that ignores Ctrl-C, as a shell's background jobs do, would ignore it too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
