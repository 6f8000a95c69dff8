"""Indices as the views compose them have the value of those in normal form, also as C text."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

from hypothesis import given, strategies as st

from lift_egraph.codegen.lowering.plain_index import PlainNat, plain
from lift_egraph.codegen.text.index_text import IndexText
from lift_egraph.language.nat import Nat, NatVar, maximum, minimum, nat
from tests.codegen.c_index import evaluate_c

RANGES = {"i": (0, 3), "j": (1, 4), "k": (-2, 2)}
VARIABLES = {name: NatVar(name, low, high) for name, (low, high) in RANGES.items()}
EVERYWHERE = [
    dict(zip(RANGES, point, strict=True)) for point in product(*(range(low, high + 1) for low, high in RANGES.values()))
]
OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": lambda a, b: minimum(a, b) if isinstance(a, Nat) or isinstance(b, Nat) else min(a, b),
    "max": lambda a, b: maximum(a, b) if isinstance(a, Nat) or isinstance(b, Nat) else max(a, b),
}

# an expression is a name, a number, or (symbol, left, right)
numbers = st.integers(-4, 8)
divisors = st.integers(1, 6) | st.tuples(st.just("*"), st.integers(1, 3), st.just("j"))
expressions = st.recursive(
    numbers | st.sampled_from(sorted(RANGES)) | st.integers(1 << 15, 1 << 17),
    lambda inner: (
        st.tuples(st.sampled_from(("+", "-", "*", "min", "max")), inner, inner)
        | st.tuples(st.sampled_from("/%"), inner, divisors)
    ),
    max_leaves=7,
).filter(lambda expression: magnitude(expression) < 1 << 62)


def magnitude(expression: Any) -> int:
    """A bound of what an expression and its parts can become: 64 bits hold no more."""
    if isinstance(expression, tuple):
        left, right = magnitude(expression[1]), magnitude(expression[2])
        return left * right if expression[0] == "*" else left + right
    return 4 if isinstance(expression, str) else abs(expression)


def build(expression: Any, leaves: dict[str, Any]) -> Any:
    if isinstance(expression, tuple):
        symbol, left, right = expression
        return OPERATIONS[symbol](build(left, leaves), build(right, leaves))
    return leaves[expression] if isinstance(expression, str) else expression


def both(expression: Any) -> tuple[Nat, Nat]:
    """The expression in normal form, and as it is written."""
    normal = nat(build(expression, {n: nat(v) for n, v in VARIABLES.items()}))
    return normal, nat(build(expression, {n: plain(v) for n, v in VARIABLES.items()}))


@given(expressions)
def test_both_texts_have_the_value(expression: Any) -> None:
    normal, written = both(expression)
    assert written == normal
    assert hash(written) == hash(normal)
    for value in (normal, written):
        printer = IndexText(lambda data: "")
        text = printer(value)
        for point in EVERYWHERE:
            assert evaluate_c(text, printer.helpers, point) == build(expression, point)


@given(expressions, st.sampled_from(sorted(RANGES)), st.integers(1, 2))
def test_substitution_keeps_the_writing(expression: Any, name: str, step: int) -> None:
    normal, written = both(expression)
    change = {name: nat(step)}
    fixed = written.substitute(change)
    assert fixed == normal.substitute(change)
    assert name not in {v.name for v in fixed.mentioned}
    printer = IndexText(lambda data: "")
    text = printer(fixed)
    for point in EVERYWHERE:
        assert evaluate_c(text, printer.helpers, point) == build(expression, {**point, name: step})


@given(expressions, st.sampled_from(sorted(RANGES)))
def test_rebuilding_keeps_the_writing(expression: Any, name: str) -> None:
    normal, written = both(expression)
    new = nat(NatVar("new", 1, 2))
    rebuilt = written.rebuild(lambda atom: new if atom == VARIABLES[name] else None)
    assert rebuilt == normal.rebuild(lambda atom: new if atom == VARIABLES[name] else None)
    printer = IndexText(lambda data: "")
    text = printer(rebuilt)
    for point in EVERYWHERE:
        if point[name] in (1, 2):
            found = evaluate_c(text, printer.helpers, {**point, "new": point[name]})
            assert found == build(expression, point)


def test_the_writing_survives_what_it_passes_through() -> None:
    i, j = plain(VARIABLES["i"]), plain(VARIABLES["j"])
    index = (i * 8 + j * 2 + 3) // 4 % 2 - nat(0) + nat(0)
    assert IndexText(lambda data: "")(index) == "((i * 8 + j * 2 + 3) / 4) % 2"
    assert pickle.loads(pickle.dumps(index)).text() == index.text() == "((i * 8 + j * 2 + 3) / 4) % 2"
    assert isinstance(nat(index), PlainNat)
    assert type(nat(nat(VARIABLES["i"]))) is Nat  # not the plain leaf, though that is equal
    assert (i - i).mentioned == {VARIABLES["i"]}
    assert not (i - i).variables


def test_a_wide_part_is_computed_in_64_bits() -> None:
    """The value fits into 32 bits, but what it is computed from does not."""
    big = plain(NatVar("b", 0, 70000))
    index = big * 70000 // 70000
    assert index == big
    printer = IndexText(lambda data: "")
    assert printer(index) == "((long)b * 70000L) / 70000L"
    assert evaluate_c(printer(index), printer.helpers, {"b": 70000}) == 70000
