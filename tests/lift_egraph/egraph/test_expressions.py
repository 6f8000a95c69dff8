"""Expressions that are made directly are those that egglog makes."""

from __future__ import annotations

import pytest

from lift_egraph.egraph import sorts
from lift_egraph.egraph.expressions import made
from lift_egraph.egraph.orders import REVERSED
from lift_egraph.egraph.sorts import Ex, Fn, Op, P, Ty, V

F32 = Ty.scalar("f32")
XS = Ex.input("xs", Ty.arr(4, F32))
X = V("x", F32)


@pytest.mark.parametrize(
    ("op", "arguments", "expected"),
    [
        ("Ty_arr", (4, F32), Ty.arr(4, F32)),
        ("V___init__", ("x", F32), X),
        ("Fn_lam", (P.var(X), Ex(X)), Fn.lam(P.var(X), Ex(X))),
        ("Op_lift", (Op.scalar("add"),), Op.scalar("add").lift()),
        ("split", (2, XS), sorts.split(2, XS)),
        ("call2", ("add", XS, XS), sorts.call2("add", XS, XS)),
        ("gather", ("(i + 1) % n", XS), sorts.gather("(i + 1) % n", XS)),
        ("gather", (REVERSED, XS), sorts.gather(REVERSED, XS)),
    ],
)
def test_the_second_one_is_like_the_first(op, arguments, expected):
    for _ in range(2):
        assert made(op, *arguments).__egg_typed_expr__ == expected.__egg_typed_expr__
