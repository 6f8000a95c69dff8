"""Local arrays in one place: those that are needed one after the other, if their tiles follow each other alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from lift_egraph.codegen.c_ast import Buffer, For, Load, Store
from lift_egraph.codegen.lowering.views import ThreadVar
from lift_egraph.codegen.passes.local_places import in_one_place
from lift_egraph.language import ir
from lift_egraph.language.nat import nat
from lift_egraph.language.types import F32

ITEMS = 1024
A, OUT = (Buffer(name, "global", F32, (ITEMS,)) for name in ("A", "out"))
FIRST, BETWEEN, LAST = (Buffer(name, "local", F32, (ITEMS,)) for name in ("first", "between", "last"))


def reverse(number: int, to: Buffer, of: Buffer) -> For:
    """Each work-item of a group writes what another one has of an array."""
    i = ThreadVar(f"lcl_{number}", 0, ITEMS - 1, dimension=0)
    return For(i, nat(ITEMS), ir.Level("lcl", 0), ITEMS, (Store(Load(to, nat(i)), Load(of, ITEMS - 1 - nat(i))),))


@pytest.mark.parametrize(("ways", "left"), [((None, None), 2), (("localTwice",) * 2, 2), ((None, "localTwice"), 3)])
def test_arrays_that_are_needed_one_after_the_other_have_one_place(ways: tuple[str | None, ...], left: int):
    first, last = (replace(array, tiles=way) for array, way in zip((FIRST, LAST), ways, strict=True))
    steps = (A, first, BETWEEN, last, OUT)
    body = tuple(reverse(n, to, of) for n, (of, to) in enumerate(pairwise(steps)))
    _, kept = in_one_place(body, (first, BETWEEN, last), {0: ITEMS})
    assert len(kept) == left
