"""What tests of code generation share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lift_egraph.codegen.running.run import Runner, find_device


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(find_device("Portable")) as made:
        yield made
