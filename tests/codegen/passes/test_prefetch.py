"""Loops over tiles read the next tile ahead: what they compute stays the same, and other loops stay as they are."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.passes import prefetch
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.depth import in_turn

COPY = "toLocal(mapSeq(mapLcl(0, id), tile))"
AHEAD = re.compile(r"\bahead\w* = ")


def sums(copy: str = COPY, length: int = 40, columns: int = 8) -> ir.Program:
    """Sums of rows by groups, in tiles of some columns; each item sums up what another one has copied."""
    return parse_program(
        f"""program sums(A: [[f32]{length}]64) =
              join(mapWrg(0, fun rows =>
                mapLcl(0, id, reduceSeq(
                  fun (sums, tile) =>
                    let near = {copy} in
                    mapLcl(0, fun (s, line) => s + reduceSeq(add, 0.0, line),
                           zip(sums, gather(reverse, transpose(near)))),
                  fill(16, 0.0), split({columns}, transpose(rows)))),
                split(16, A)))"""
    )


def test_the_next_tile_is_read_before_the_work_on_this_one():
    text = compile_program(sums(), NVIDIA).source
    before, loop = text.split("for (int i = 0; i < 5", 1)
    assert len(AHEAD.findall(before)) == 8
    stored, work = loop.split("barrier(", 1)
    assert not AHEAD.findall(stored)
    assert stored.count("tmp[") == 8
    assert len(AHEAD.findall(work)) == 8
    assert work.index("ahead_7 = ") < work.index("for (int j1")


def test_large_blocks_have_two_places_for_tiles_and_a_barrier_less(monkeypatch: pytest.MonkeyPatch):
    single = compile_program(sums(), NVIDIA)
    monkeypatch.setattr(prefetch, "LEAST_IN_TURN", 1)
    both = compile_program(sums(), NVIDIA)
    assert [k.local_bytes for k in both.kernels] == [2 * k.local_bytes for k in single.kernels]
    loops = [plan.source.split("for (int i = 0; i < 5", 1)[1] for plan in (single, both)]
    assert [loop.count("barrier(") for loop in loops] == [2, 1]
    assert not [k for k in compile_program(sums(), replace(NVIDIA, local_memory=1500)).kernels if k.local_bytes > 1500]


@in_turn(6)
@pytest.mark.parametrize("space", ["toLocalAhead", "toLocalTwice"])
@pytest.mark.parametrize("length", [16, 40])
def test_it_computes_the_same(length: int, space: str):
    assert computed(sums(staged(space), length=length))


def staged(space: str) -> str:
    return COPY.replace("toLocal", space)


def test_a_term_says_how_tiles_follow_each_other(monkeypatch: pytest.MonkeyPatch):
    """Whatever the code generator would do for them."""
    for least_in_turn, kept in ((1, 48), (128, 0)):
        monkeypatch.setattr(prefetch, "LEAST_IN_TURN", least_in_turn)
        monkeypatch.setattr(prefetch, "MOST_KEPT", kept)
        for device in (NVIDIA, POCL):
            once = compile_program(sums(staged("toLocalOnce")), device)
            assert not AHEAD.search(once.source)
            for space, barriers, places in (("toLocalAhead", 2, 1), ("toLocalTwice", 1, 2)):
                plan = compile_program(sums(staged(space)), device)
                before, loop = plan.source.split("for (int i = 0; i < 5", 1)
                assert AHEAD.search(before)
                assert loop.count("barrier(") == barriers
                assert plan.kernels[0].local_bytes == places * once.kernels[0].local_bytes


def test_tiles_of_one_loop_follow_each_other_alike():
    """Where one says nothing it goes with the others; where they differ, the code generator decides for all."""

    def both(one: str, other: str) -> str:
        program = f"""program sums(A: [[f32]40]64) =
          join(mapWrg(0, fun rows =>
            mapLcl(0, id, reduceSeq(
              fun (sums, tile) =>
                let near = {staged(one)} in
                let far = {staged(other)} in
                mapLcl(0, fun (s, (line, other)) => s + reduceSeq(add, 0.0, line) * reduceSeq(max, 0.0, other),
                       zip(sums, zip(gather(reverse, transpose(near)), transpose(far)))),
              fill(16, 0.0), split(8, transpose(rows)))),
            split(16, A)))"""
        return re.sub(r"/\*.*?\*/", "", compile_program(parse_program(program), NVIDIA).source, flags=re.DOTALL)

    assert both("toLocal", "toLocalOnce") == both("toLocalOnce", "toLocalOnce")
    assert both("toLocalOnce", "toLocalTwice") == both("toLocal", "toLocal") != both("toLocal", "toLocalOnce")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(sums(length=8), id="one tile"),
        pytest.param(sums("tile"), id="no copy"),
        pytest.param(sums(length=128, columns=64), id="more than registers hold"),
    ],
)
def test_other_loops_stay(program: ir.Program):
    assert not AHEAD.search(compile_program(program, NVIDIA).source)


def test_what_lies_outside_of_an_array_is_not_read_ahead():
    """Elements beside the array are constants: only the condition keeps them from being read, and goes ahead, too."""
    padded = parse_program(
        """program sums(A: [[f32]38]64) =
             join(mapWrg(0, fun rows =>
               mapLcl(0, id, reduceSeq(
                 fun (sums, tile) =>
                   let near = toLocal(mapSeq(mapLcl(0, id), tile)) in
                   mapLcl(0, fun (s, line) => s + reduceSeq(add, 0.0, line),
                          zip(sums, gather(reverse, transpose(near)))),
                 fill(16, 0.0), split(8, transpose(map(pad(1, 1, constant(0.0)), rows))))),
               split(16, A)))"""
    )
    text = compile_program(padded, NVIDIA).source
    ahead = [line for line in text.splitlines() if AHEAD.search(line)]
    assert len(ahead) == 2 * 8
    assert all(re.search(r"ahead_\d = \(.*\) \? \(A\[.*\]\) : \(0\.0f\);", line) for line in ahead)
    assert computed(padded)


def computed(program: ir.Program) -> bool:
    """Whether it is right on PoCL, read ahead."""
    plan = compile_program(program, replace(POCL, emission=replace(POCL.emission, reads_ahead=True)))
    assert AHEAD.search(plan.source)
    inputs = random_inputs(program, 0, "integer")
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        return np.array_equal(runner.run(plan, "inputs"), evaluate(program.body, inputs))


def test_what_is_computed_on_the_way_is_computed_when_it_is_stored():
    text = compile_program(sums("toLocal(mapSeq(mapLcl(0, fun v => v * 2.0), tile))"), NVIDIA).source
    assert not re.search(r"ahead_0 = .*2\.0f", text)
    assert re.search(r"tmp\[lcl_0\] = ahead_0 \* 2\.0f", text)


def test_nothing_is_read_ahead_beside_many_results():
    def text(results: int) -> str:
        program = f"""program sums(A: [[f32]40]{2 * results}) =
          join(mapWrg(0, fun rows =>
            join(mapLcl(0, mapSeq(id), reduceSeq(
              fun (sums, tile) =>
                let near = {COPY} in
                mapLcl(0, fun (own, lines) => mapSeq(fun (s, line) => s + reduceSeq(add, 0.0, line), zip(own, lines)),
                       zip(sums, split({results}, transpose(near)))),
              mapLcl(0, fun own => mapSeq(id, own), split({results}, fill({2 * results}, 0.0))),
              split(8, transpose(rows))))),
            split({2 * results}, A)))"""
        return compile_program(parse_program(program), NVIDIA).source

    assert AHEAD.search(text(32))
    assert not AHEAD.search(text(64))
