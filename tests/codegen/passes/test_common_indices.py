"""Shared parts of indices: the same addresses, each part computed once, declared before it is used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lift_egraph.api import parse_program, specialise
from lift_egraph.codegen import c_ast as c, c_walk
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, NVIDIA, POCL
from lift_egraph.codegen.optimise import CONTROL
from lift_egraph.codegen.passes import in_order
from lift_egraph.codegen.passes.common_indices import in_full, share_indices
from lift_egraph.codegen.text.printer import Printer
from lift_egraph.language import ir
from lift_egraph.language.ir import SEQ
from lift_egraph.language.nat import Nat, NatVar, maximum, nat
from lift_egraph.language.types import F32
from tests.codegen import low_level as low
from tests.codegen.test_compiler import CASES
from tests.depth import in_turn

A, B, T = (c.Buffer(name, space, F32, (1024,)) for name, space in (("A", "global"), ("B", "global"), ("t", "local")))
OUTER, INNER, LANE = NatVar("i", 0, 7), NatVar("j", 0, 7), NatVar("l", 0, 7)
i, j, lane = nat(OUTER), nat(INNER), nat(LANE)


def move(target: c.Buffer, to: Nat, source: c.Buffer, index: Nat) -> c.Store:
    return c.Store(c.Load(target, to), c.Load(source, index))


def loop(variable: NatVar, *body: c.Statement, level: ir.Level = SEQ) -> c.For:
    return c.For(variable, nat(8), level, 1 if level == SEQ else 8, body)


def lines(body: c.Body) -> list[str]:
    return [line.text.strip() for line in Printer(POCL.emission).body(share_indices(body, set()), 0)]


def test_an_address_is_a_base_and_a_literal() -> None:
    body = (loop(OUTER, loop(INNER, move(B, 8 * i + j, A, 8 * i + j + 1), move(B, j, A, 8 * i + j + 2))),)
    assert lines(body)[2:5] == ["const int at = 8 * i + j;", "B[at] = A[at + 1];", "B[j] = A[at + 2];"]


def test_the_name_is_that_of_the_only_array() -> None:
    body = (loop(OUTER, loop(INNER, move(B, j, A, 8 * i + j), move(B, i, A, 8 * i + j + 3))),)
    assert lines(body)[2:5] == ["const int A_at = 8 * i + j;", "B[j] = A[A_at];", "B[i] = A[A_at + 3];"]


def test_what_does_not_depend_on_a_loop_stands_outside() -> None:
    base = 64 * i + 8 * lane
    body = (loop(OUTER, loop(INNER, move(B, j, A, base)), loop(INNER, move(B, j, A, base + 1))),)
    assert lines(body)[:3] == [
        "for (int i = 0; i < 8; i += 1) {",
        "const int A_at = 64 * i + 8 * l;",
        "for (int j = 0; j < 8; j += 1) {",
    ]


def test_nothing_lives_across_a_barrier() -> None:
    place = 8 * i + lane
    after = (move(B, place, T, place), move(B, place, T, place + 1))
    body = (loop(OUTER, move(T, place, A, place), c.Barrier(("local",)), *after),)
    found = lines(body)
    border = found.index("barrier(CLK_LOCAL_MEM_FENCE);")
    assert [k for k, line in enumerate(found) if line.startswith("const int")] == [1, border + 1]


def test_quotients_are_shared_and_the_inner_ones_come_first() -> None:
    place = (i + j) // 4
    body = (loop(OUTER, loop(INNER, move(B, place % 3, A, place % 3), move(B, maximum(place - 1, 0), A, place))),)
    found = lines(body)
    assert found[2] == "const int quotient = (i + j) / 4;"
    assert found[3] == "const int rest = (quotient >= 3 ? quotient - 3 : quotient);"
    assert found[4:6] == ["B[rest] = A[rest];", "B[index_max(quotient - 1, 0)] = A[quotient];"]


def test_one_use_is_not_shared_nor_is_one_name() -> None:
    body = (loop(OUTER, loop(INNER, move(B, i, A, 8 * i + j), move(B, i + 1, A, 8 * j + i))),)
    assert share_indices(body, set()) is body


# --- properties over the low-level terms of the other tests -------------------------------------------------


def bodies(monkeypatch: pytest.MonkeyPatch, program: ir.Program, dialect: str) -> list[tuple[c.Body, c.Body]]:
    """The bodies of a program's kernels before and after sharing."""
    seen: list[tuple[c.Body, c.Body]] = []

    def kept(body: c.Body, taken: set[str], *, sums_apart: bool) -> c.Body:
        seen.append((body, share_indices(body, taken, sums_apart=sums_apart)))
        return seen[-1][1]

    monkeypatch.setattr(in_order, "share_indices", kept)
    compile_program(program, DEVICES[dialect])
    return seen


def spelled_out(item: Any) -> Any:
    """A body without shared constants."""
    if isinstance(item, tuple):
        return tuple(spelled_out(s) for s in item if not isinstance(s, c.LetIndex))
    variables = {v for part in c_walk.walk(item) if isinstance(part, Nat) for v in part.variables}
    shared = {v.name: in_full(nat(v)) for v in variables if isinstance(v, c.SharedVar)}
    if isinstance(item, c.For | c.If | c.Block):
        changed = replace(item, body=spelled_out(item.body))
        return (
            replace(changed, conditions=c_walk.substitute(item.conditions, shared))
            if isinstance(item, c.If)
            else changed
        )
    return c_walk.substitute(item, shared)


def check_scopes(body: c.Body, known: frozenset[str]) -> None:
    """Every shared constant is declared before its uses, in a block around them."""
    for statement in body:
        own = (
            statement.conditions if isinstance(statement, c.If) else () if hasattr(statement, "body") else (statement,)
        )
        for part in c_walk.walk(own):
            if isinstance(part, Nat):
                assert {v.name for v in part.variables if isinstance(v, c.SharedVar)} <= known
        if isinstance(statement, c.LetIndex):
            known |= {statement.variable.name}
        if isinstance(statement, c.For | c.If | c.Block):
            check_scopes(statement.body, known)


@in_turn(8)
@pytest.mark.parametrize("dialect", ["pocl", "nvidia"])
@pytest.mark.parametrize(("made", "sizes"), CASES, ids=[f"{p.name}-{'-'.join(map(str, s.values()))}" for p, s in CASES])
def test_the_addresses_stay_the_same(monkeypatch, made: ir.Program, sizes: dict[str, int], dialect: str) -> None:
    for before, after in bodies(monkeypatch, specialise(made, sizes), dialect):
        assert spelled_out(after) == before
        check_scopes(after, frozenset())
        declared = [part.variable.name for part in c_walk.walk(after) if isinstance(part, c.LetIndex)]
        assert len(declared) == len(set(declared))


def test_alignment_is_seen_through_a_shared_constant() -> None:
    """Vector accesses at multiples of the width say so."""
    plan = compile_program(specialise(low.mm_blocked(4, 4), {"M": 8, "K": 8, "N": 16}), NVIDIA)
    assert "*(global float4 *)(result + result_at + 16)" in plan.source


def test_wide_constants_are_long() -> None:
    text = "program p(x: [[f32]65536]65536, y: [[f32]65536]65536) = mapGlb(1, mapGlb(0, add), map(zip, zip(x, y)))"
    program = parse_program(text.replace("map(zip, zip(x, y))", "map(fun (a, b) => zip(a, b), zip(x, y))"))
    source = compile_program(specialise(program, {}), POCL).source
    assert "const long at = " in source


def test_without_index_simplification_nothing_is_shared() -> None:
    plan = compile_program(specialise(low.mm_blocked(4, 4), {"M": 8, "K": 8, "N": 16}), POCL, optimise=CONTROL)
    assert "_at =" not in plan.source
