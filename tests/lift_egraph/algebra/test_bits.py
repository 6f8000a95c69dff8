"""Folds of words of bits: which are taken in chunks, what these give, and why others stay loops."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from lift_egraph.algebra import laws
from lift_egraph.algebra.actions import Refusal, action_of
from lift_egraph.algebra.bits import word
from lift_egraph.algebra.expressions import opened
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.polynomials import multiplies_polynomials, product
from lift_egraph.algebra.steady import steady_of
from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import I32
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.changes.chunked import chunked_steadily
from tests.depth import in_turn

LENGTH = 21
STEPS = "generate(8, fun i => i)"
CRC = "bit_xor(shift_right(c, 1u32), bit_and(-bit_and(c, 1u32), 3988292384u32))"
WORDS = {
    "crc of bytes": (
        f"fun (s, x) => reduceSeq(fun (c, i) => {CRC}, bit_xor(s, to_u32(x)), {STEPS})", "u8", "4294967295u32",
    ),
    "crc by products": (
        "fun (s, x) => bit_xor(bit_xor(shift_right(s, 1u32), bit_and(s, 1u32) * 3988292384u32), to_u32(x))", "u8",
        "7u32",
    ),
    "crc of words, the first bit first": (
        "fun (s, x) => bit_xor(if s < 0 then bit_xor(shift_left(s, 1), 79764919) else shift_left(s, 1), x)", "i32",
        "-1",
    ),
    "crc of eight bits": (
        "fun (s, x) => reduceSeq(fun (c, i) => if bit_and(c, 128u8) != 0u8 then bit_xor(shift_left(c, 1u8), 7u8) else "
        f"shift_left(c, 1u8), bit_xor(s, x), {STEPS})", "u8", "0u8",
    ),
    "rotated": ("fun (s, x) => bit_xor(bit_or(shift_left(s, 5u32), shift_right(s, 27u32)), x)", "u32", "1u32"),
    "rotated by a sum": ("fun (s, x) => bit_xor(shift_left(s, 9u32) + shift_right(s, 23u32), x * x)", "u32", "1u32"),
    "the sign stays": ("fun (s, x) => bit_xor(shift_right(s, 3), select(x < 0, bit_not(x), 5))", "i32", "-9"),
    "beside an input": ("fun (s, x) => bit_xor(bit_xor(s, shift_left(s, 3u32)), k * x + k)", "u32", "1u32"),
    "long words": ("fun (s, x) => bit_xor(bit_xor(s, shift_left(s, 13i64)), x)", "i64", "1i64"),
    "beside a sum": (
        "fun ((s, n), x) => (bit_xor(bit_xor(s, shift_right(s, 1u32)), x), n + x)", "u32", "(0u32, 0u32)",
    ),
}  # fmt: skip
OTHERS = {
    "bits in common": "fun (s, x) => bit_xor(bit_or(s, shift_left(s, 1u32)), x)",
    "carries": "fun (s, x) => bit_xor(s + shift_left(s, 1u32), x)",
    "a product": "fun (s, x) => bit_xor(s, x) * 16777619u32",
    "masked by the element": "fun (s, x) => bit_xor(bit_and(s, x), shift_left(s, 1u32))",
    "shifted by the element": "fun (s, x) => bit_xor(shift_left(s, x), 1u32)",
    "shifted by itself": "fun (s, x) => bit_xor(shift_left(s, bit_and(s, 3u32)), x)",
    "asks for two bits": "fun (s, x) => bit_xor(select(bit_and(s, 3u32) == 1u32, 9u32, 0u32), shift_right(s, 1u32))",
    "chooses what it is": "fun (s, x) => select(bit_and(s, 1u32) == 1u32, shift_left(s, 1u32), shift_right(s, 1u32))",
    "chooses the element": "fun (s, x) => bit_xor(select(bit_and(s, 1u32) == 0u32, x, 0u32), shift_right(s, 1u32))",
    "a long loop": f"fun (s, x) => reduceSeq(fun (c, i) => {CRC}, bit_xor(s, x), generate(65, fun i => i))",
    "a loop over an array": "fun (s, x) => reduceSeq(fun (c, y) => bit_xor(shift_left(c, 1u32), y), bit_xor(s, x), us)",
    "larger than": "fun (s, x) => bit_xor(select(s > 9u32, 7u32, 0u32), bit_xor(shift_right(s, 1u32), x))",
    "two words": "fun ((s, t), x) => (bit_xor(t, shift_left(s, 1u32)), bit_xor(s, x))",
}


def fold(operator: str, element: str, start: str, length: int = LENGTH) -> ir.Program:
    return parse_program(f"program p(xs: [{element}]{length}, k: u32, us: [u32]9) = reduceSeq({operator}, {start}, xs)")


def inputs_of(program: ir.Program, seed: int = 0) -> dict[str, np.ndarray]:
    dtype = np.dtype(NUMPY_TYPES[program.inputs[0].type.element.name])
    return {"xs": np.frombuffer(np.random.default_rng(seed).bytes(LENGTH * dtype.itemsize), dtype), "k": np.uint32(77)}


@in_turn(8)
@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("chunk", [1, 7])
def test_folds_of_words_are_those_of_their_chunks(name: str, chunk: int):
    program = fold(*WORDS[name])
    assert list(refusals(program.body)) == []
    made = chunked_steadily(program.body, program.body.initial, program.body.array, chunk, 0)
    assert made is not None
    inputs = inputs_of(program)
    assert equal_values(evaluate(program.body, inputs), evaluate(in_lets(made.lets, made.result), inputs))


def test_a_checksum_is_that_of_others_and_its_polynomial_is_found():
    program = fold(*WORDS["crc of bytes"])
    inputs = inputs_of(program)
    assert int(evaluate(program.body, inputs)) ^ 0xFFFFFFFF == zlib.crc32(inputs["xs"].tobytes())
    assert word(opened(program.body.operator), [0]).modulus.value == 0x04C11DB7


@pytest.mark.parametrize("name", OTHERS)
def test_other_words_stay_loops(name: str):
    f = fold(OTHERS[name], "u32", "(0u32, 0u32)" if name == "two words" else "0u32").body.operator
    assert steady_of(f) is None
    with pytest.raises(NotLinear):
        word(opened(f), [0] if name != "two words" else [0, 1])
    assert isinstance(action_of(f), Refusal)


def test_only_products_of_polynomials_are_associative_as_such():
    found = steady_of(fold(*WORDS["rotated"]).body.operator)
    assert found is not None
    assert laws.associative(found.operator)
    assert laws.neutral(found.operator, found.one)
    assert not laws.neutral(found.operator, found.power)
    p, q = ir.Var("p", I32), ir.Var("q", I32)
    body = product(I32, ir.Literal(29, I32), p, q)
    assert multiplies_polynomials(ir.Lambda(ir.PairBinder(p, q), body))
    for other in (product(I32, ir.Literal(29, I32), p, p), ir.Call("add", (body, p))):
        assert not multiplies_polynomials(ir.Lambda(ir.PairBinder(p, q), other))
