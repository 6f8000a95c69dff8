"""What runs kernels is tested with workers as users have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lift_egraph.codegen.running import run
from lift_egraph.process.child import Server


@pytest.fixture(scope="module", autouse=True)
def _workers_of_their_own() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Server", Server)
        yield
