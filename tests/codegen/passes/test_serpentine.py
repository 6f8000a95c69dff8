"""Blocks of results are updated to and fro, and only where the order of updates is free."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.c_ast import Block, Buffer, Lane, Let, Load, Name, Operate, Statement, Store
from lift_egraph.codegen.passes import serpentine
from lift_egraph.codegen.passes.serpentine import to_and_fro
from lift_egraph.language.nat import nat
from lift_egraph.language.types import F32, Vector

WIDE = Vector(F32, 2)
SUMS = Buffer("sums", "private", F32, (3, 2))
ROWS, COLUMNS = Buffer("rows", "private", F32, (3,)), Buffer("columns", "private", WIDE, (1,))


def row(number: int, reads: int = 0) -> Block:
    """Products of an element with the lanes of a vector, added to two sums; or to others, for what no order is free."""
    factor, both = Name(f"a{number}", F32), Load(COLUMNS, nat(0))
    product = Operate("mul", (factor, both), WIDE)
    stores = [
        Store(
            Load(SUMS, nat(2 * number + lane)),
            Operate("add", (Load(SUMS, nat(2 * number + lane - reads)), Lane(product, nat(lane))), F32),
        )
        for lane in range(2)
    ]
    return Block((Let(f"a{number}", Load(ROWS, nat(number))), Block(tuple(stores))))


def places(body: tuple[Statement, ...]) -> list[str]:
    return [str(s.place.index) for s in body if isinstance(s, Store) and isinstance(s.place, Load)]


def test_every_second_row_goes_backwards(monkeypatch: pytest.MonkeyPatch):
    body = (row(0), row(1), row(2))
    assert to_and_fro(body) == body  # few updates leave registers to choose from
    monkeypatch.setattr(serpentine, "LEAST", 6)
    made = to_and_fro(body)
    assert places(made) == ["0", "1", "3", "2", "4", "5"]
    assert made[2] == Store(
        Load(SUMS, nat(3)),
        Operate(
            "add",
            (
                Load(SUMS, nat(3)),
                Operate("mul", (Load(ROWS, nat(1)), Lane(Load(COLUMNS, nat(0)), nat(1))), F32),
            ),
            F32,
        ),
    )


def test_updates_that_read_each_other_stay_in_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serpentine, "LEAST", 4)
    body = (row(1), row(2, reads=1))
    assert to_and_fro(body) == body
    apart = (row(0), Store(Load(ROWS, nat(1)), Load(ROWS, nat(0))), row(1))
    assert to_and_fro(apart) == apart
