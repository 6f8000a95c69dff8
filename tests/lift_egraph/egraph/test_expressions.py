"""Expressions that are made directly are those that egglog makes."""

from __future__ import annotations

from typing import Any

import egglog
import pytest
from egglog import declarations as egg, i64

from lift_egraph.egraph import sorts
from lift_egraph.egraph.expressions import _RESULTS, direct_calls, made
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


def _expressions() -> list[Any]:
    n, x, xs = egglog.var("n", i64), egglog.var("x", V), egglog.var("xs", Ex)
    whole = sorts.map_(Fn.map(n % 4, Fn.lam(P.var(x), Ex(x))), xs)
    names = sorts.fv(whole) - sorts.bvs(P.var(x))
    return [whole, sorts.gather("(i + 1) % n", whole), names, Op.scalar("add").lift()]


def test_direct_calls_make_what_egglog_makes():
    expected = _expressions()
    for _ in range(2):
        with direct_calls():
            found = _expressions()
        assert [e.__egg_typed_expr__ for e in found] == [e.__egg_typed_expr__ for e in expected]
    known = {name for ref, *_ in _RESULTS for name in (ref.ident.name, getattr(ref, "method_name", ""))}
    assert {"map_", "lam", "__sub__", "__mod__", "lift"} <= known


def test_what_is_not_among_the_sorts_keeps_its_declarations():
    @egglog.function
    def own(xs: Ex) -> Ex: ...

    for _ in range(2):
        with direct_calls():
            whole = sorts.join(own(XS))
        declared = whole.__egg_decls__._functions  # pyright: ignore[reportAttributeAccessIssue]
        assert egg.Ident("own", __name__) in declared
