"""Constants that are used once go where they are used; those that nobody uses go."""

from __future__ import annotations

from lift_egraph.codegen.c_ast import Buffer, Const, For, Let, Load, Name, Operate, Statement, Store
from lift_egraph.codegen.passes.tidy import inline_constants
from lift_egraph.language.ir import SEQ
from lift_egraph.language.nat import NatVar, nat
from lift_egraph.language.types import F32

PLACE = Load(Buffer("out", "global", F32, (8,)), nat(0))
ONE = Const(1.0, F32)


def name(text: str) -> Name:
    return Name(text, F32)


def doubled(text: str) -> Operate:
    return Operate("add", (name(text), name(text)), F32)


def test_a_constant_used_once_goes_through_other_constants() -> None:
    body = (Let("a", PLACE), Let("b", ONE), Store(PLACE, Operate("add", (name("a"), doubled("b")), F32)))
    assert inline_constants(body) == (Let("b", ONE), Store(PLACE, Operate("add", (PLACE, doubled("b")), F32)))


def test_a_constant_stays_before_a_write_and_before_a_loop() -> None:
    for between in (Store(PLACE, ONE), For(NatVar("i", 0, 3), nat(4), SEQ, 1, (Store(PLACE, name("a")),))):
        uses = Store(PLACE, ONE if isinstance(between, For) else name("a"))
        body: tuple[Statement, ...] = (Let("a", PLACE), between, uses)
        assert inline_constants(body) == body


def test_what_only_unused_constants_use_is_unused() -> None:
    chain = [Let("x0", ONE), *(Let(f"x{k}", doubled(f"x{k - 1}")) for k in range(1, 3000))]
    assert inline_constants((*chain, Store(PLACE, ONE))) == (Store(PLACE, ONE),)
