"""What is foreseen of unrolling is what becomes of it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from lift_egraph.codegen.c_ast import Block, Body, Buffer, Const, For, If, Lane, Load, Name, Statement, Store
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.passes import private_arrays
from lift_egraph.codegen.passes.unrolling import by_itself, extent, unroll
from lift_egraph.language.ir import SEQ, Level
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F32, Vector

PRIVATE = Buffer("held", "private", F32, (256,))
GLOBAL = Buffer("out", "global", F32, (256,))


def indices(rng: random.Random, variables: list[NatVar]) -> Nat:
    i, j, k = (nat(variable) for variable in rng.choices(variables, k=3))
    return rng.choice((nat(3), i, 2 * i + j, i * j, j - i * j, (i + j) // 2, i * j + k, k % (i + 1)))


def statement(rng: random.Random, variables: list[NatVar], depth: int) -> Statement:
    kind = rng.choice(("for", "for", "for", "if", "block", "store")) if depth < 4 else "store"
    if kind == "store":
        place = Load(rng.choice((PRIVATE, GLOBAL)), indices(rng, variables))
        read = Load(rng.choice((PRIVATE, GLOBAL)), indices(rng, variables))
        vector = Lane(Name("v", Vector(F32, 4)), indices(rng, variables))
        return Store(place, rng.choice((read, vector, Const(0.0, F32))))
    if kind == "for":
        count = rng.choice((1, 2, 3, 70))
        variable = NatVar(f"i{depth}", 0, count - 1)
        inside = body(rng, [*variables, variable, variable], depth + 1)
        return For(variable, nat(count), SEQ, 1, inside, pragma=rng.random() < 0.2)
    inside = body(rng, variables, depth + 1)
    return Block(inside) if kind == "block" else If((indices(rng, variables),), inside)


def body(rng: random.Random, variables: list[NatVar], depth: int) -> Body:
    return tuple(statement(rng, variables, depth) for _ in range(rng.choice((1, 1, 2))))


def leaves(statements: Body) -> int:
    return sum(leaves(s.body) if isinstance(s, For | If | Block) else 1 for s in statements)


def test_what_is_foreseen_holds_for_random_nests() -> None:
    exact = several = compared = 0
    for seed in range(150):
        nest = body(random.Random(seed), [NatVar("n", 0, 9)], 0)
        foreseen = extent(nest, named_arrays=True)
        assert foreseen is not None
        if foreseen.most > 400:
            continue
        made = unroll(nest, named_arrays=True)
        assert foreseen.least <= leaves(made) <= foreseen.most
        assert foreseen.by_itself <= by_itself(made)
        compared += 1
        exact += foreseen.least == foreseen.most
        several += foreseen.least > leaves(nest)
    assert exact > 0.5 * compared > 37
    assert several > 20


def test_the_length_of_a_loop_that_is_not_known_is_not_foreseen() -> None:
    i = NatVar("i", 0)
    loop = For(i, nat("n"), SEQ, 1, (Store(Load(PRIVATE, nat(i)), Const(0.0, F32)),))
    assert extent((loop,), named_arrays=True) is None
    assert extent((replace(loop, count=nat(0)),), named_arrays=True) == (0, 0, 0)


def test_what_work_items_share_out_is_no_loop_that_a_compiler_unrolls() -> None:
    i, j = NatVar("i", 0, 15), NatVar("j", 0, 15)
    inner = For(j, nat(16), SEQ, 1, (Store(Load(GLOBAL, nat(j)), Const(0.0, F32)),))
    loop = For(i, nat(16), Level("lcl", 0), 16, (inner,))
    assert by_itself((loop,)) == by_itself((inner,)) == 16
    assert extent((loop,), named_arrays=True) == extent((inner,), named_arrays=True)
    assert by_itself((replace(loop, threads=4),)) == 4 * 16


@pytest.mark.parametrize(("rows", "again"), [(4, 1), (97, 2), (500, 2)])
def test_no_text_is_made_that_is_too_long(rows: int, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse_program(
        f"""program scores(Q: [[f32]31]4, K: [[f32]31]{rows}) =
              mapGlb(0, fun q =>
                let s = toPrivate(mapSeq(fun k => reduceSeq(fun (t, (a, b)) => t + a * b, 0.0, zip(q, k)), K)) in
                reduceSeq(fun (t, a) => t + exp(a), 0.0, s), Q)"""
    )  # fmt: skip
    runs: list[Body] = []

    def counted(body: Body, **options: Any) -> Body:
        runs.append(body)
        return unroll(body, **options)

    monkeypatch.setattr(private_arrays, "unroll", counted)
    foreseen = compile_program(program, POCL)
    assert len(runs) == 1
    monkeypatch.setattr(private_arrays, "extent", lambda *_, **__: None)
    assert compile_program(program, POCL) == foreseen
    assert len(runs) == 1 + again


def test_many_choices_among_variables_are_an_array() -> None:
    """An element at a computed place is chosen among all variables of its array, which is a text of as many cases."""
    for places, is_array in ((8, False), (70, True)):
        text = f"""program picked(rows: [[f32]16]9, ks: [i32]{places}) = mapGlb(0, fun xs =>
                     let ys = mapSeq(abs, xs) in
                     let zs = mapSeq(fun k => ys[k], ks) in
                     mapSeq(fun k => zs[k] + zs[k + 1], ks), rows)"""
        source = compile_program(parse_program(text), POCL).source
        assert ("tmp[" in source) == is_array
        assert len(source) < 12_000


@pytest.mark.parametrize(("element", "zero", "is_asked"), [("f32", "0.0", True), ("f64", "0.0f64", False)])
def test_many_functions_of_doubles_are_too_much_to_unroll(element: str, zero: str, is_asked: bool) -> None:
    """A compiler took more than 20 s for 33 times 33."""
    text = f"""program p(a: [{element}]64) = mapGlb(0, fun s => reduceSeq(fun (u, i) => u + reduceSeq(fun (v, j) =>
        v + exp(s * to_{element}(i * j)), {zero}, generate(33, id)), {zero}, generate(33, id)), a)"""
    (kernel,) = compile_program(parse_program(text), NVIDIA).kernels
    assert ("#pragma unroll" in kernel.source) == is_asked


def sums_of(rows: int, items: int) -> str:
    """A kernel whose work-items add up so many vectors each."""
    return f"""program p(A: [[f32]512]{rows * items}, B: [[f32]8]512) =
      mapGlb(0,
        fun chunk => transpose(asScalar(mapSeq(
          vectorize(8,
            fun col => reduceSeq(
              fun (acc, row, b) => mapSeq(fun (lane, a) => lane + a * b, zip(acc, row)),
              fill({rows}, 0.0),
              zip(transpose(chunk), col))),
          asVector(8, transpose(B))))),
        split({rows}, A))"""


@pytest.mark.parametrize(("rows", "unrolled"), [(2, False), (4, True), (8, True)])
def test_loops_that_add_up_blocks_of_vectors_are_unrolled(rows: int, unrolled: bool):
    (kernel,) = compile_program(parse_program(sums_of(rows, 64)), POCL).kernels
    assert ("#pragma unroll 4" in kernel.source) == unrolled


@pytest.mark.parametrize(("rows", "local"), [(2, None), (8, (1, 1, 1))])
def test_work_items_with_blocks_of_vectors_have_groups_of_their_own(rows: int, local: tuple[int, int, int] | None):
    (kernel,) = compile_program(parse_program(sums_of(rows, 1 << 15)), POCL).kernels
    assert kernel.launch.local_size == local
