"""The levels of the ablation differ in the text of the kernels only, and all compute the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from lift_egraph.api import Runner, specialise
from lift_egraph.codegen.c_ast import Barrier, Buffer, For, Load, Store
from lift_egraph.codegen.c_walk import loads, stores, walk
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.optimise import ALL, CONTROL, LEVELS, NONE, Optimisations
from lift_egraph.codegen.passes.barriers import barriers_after_maps
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir
from lift_egraph.language.nat import NatVar, nat
from lift_egraph.language.types import F32
from tests.codegen import low_level as low
from tests.codegen.opencl import as_pocl_likes, in_one_build, needs_opencl
from tests.codegen.test_compiler import check
from tests.depth import in_turn

CONTROL_NAME = "barriers and control flow"
NAMES = [program.name for program, _ in low.SMALL]


def plan_of(program: ir.Program, sizes: dict[str, int], optimise: Optimisations, dialect: str = "pocl") -> Plan:
    return compile_program(specialise(program, sizes), DEVICES[dialect], optimise=optimise)


@cache
def plans(level: str, dialect: str) -> list[Plan]:
    """The plans of all terms, in one build."""
    return in_one_build(
        [plan_of(replace(p, name=f"{p.name}_{n}"), s, LEVELS[level], dialect) for n, (p, s) in enumerate(low.SMALL)]
    )


@in_turn(8)
@needs_opencl
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("level", "dialect"), [("none", "pocl"), ("none", "nvidia"), (CONTROL_NAME, "pocl")])
@pytest.mark.parametrize("number", range(len(low.SMALL)), ids=NAMES)
def test_every_level_agrees_with_the_interpreter(runner: Runner, number: int, level: str, dialect: str) -> None:
    plan = plans(level, dialect)[number]
    check(runner, specialise(*low.SMALL[number]), as_pocl_likes(plan) if level == "none" else plan)


@pytest.mark.parametrize(("program", "sizes"), low.SMALL, ids=NAMES)
def test_without_index_simplification_the_tree_is_the_same(program: ir.Program, sizes: dict[str, int]) -> None:
    """All that is decided from indices is decided alike: only the text differs."""
    simple, plain = plan_of(program, sizes, ALL), plan_of(program, sizes, CONTROL)
    assert [k.body for k in simple.kernels] == [k.body for k in plain.kernels]
    assert [k.launch for k in simple.kernels] == [k.launch for k in plain.kernels]
    assert simple.source != plain.source


@pytest.mark.parametrize(("program", "sizes"), low.SMALL, ids=NAMES)
def test_the_memory_traffic_is_the_same(program: ir.Program, sizes: dict[str, int]) -> None:
    def accesses(level: Optimisations) -> list[set[tuple[str, str, int]]]:
        return [
            {
                (what, p.buffer.name, p.width)
                for what, found in (("read", loads), ("write", stores))
                for p in found(k)
                if p.buffer.space != "private"  # registers have other names where loops run together
            }
            for k in (kernel.body for kernel in plan_of(program, sizes, level).kernels)
        ]

    assert accesses(NONE) == accesses(ALL)


def test_without_simplification_every_map_is_a_loop_and_ends_in_a_barrier() -> None:
    plan = plan_of(low.mm_tiled(4), {"M": 8, "K": 12, "N": 16}, NONE)
    source = plan.source
    assert "for (int wrg_0 = get_group_id(0); wrg_0 < 4; wrg_0 += get_num_groups(0)) {" in source
    assert "for (int lcl_0 = get_local_id(0); lcl_0 < 4; lcl_0 += get_local_size(0)) {" in source
    maps = source.count("= get_local_id(")
    assert maps == 10  # zeros, two copies, the products, the result; each has two dimensions
    assert source.count("barrier(") >= maps
    assert plan_of(low.mm_tiled(4), {"M": 8, "K": 12, "N": 16}, ALL).source.count("barrier(") == 2


def test_a_barrier_never_stands_where_work_items_diverge() -> None:
    """Three elements for two work-items: the inner maps get no barrier of their own."""
    lcl_1, lcl_0 = NatVar("a", 0, 2), NatVar("b", 0, 3)
    place = Load(Buffer("t", "local", F32, (12,)), 4 * nat(lcl_1) + nat(lcl_0))
    inner = For(lcl_0, nat(4), ir.Level("lcl", 0), 4, (Store(place, place),))
    uneven = For(lcl_1, nat(3), ir.Level("lcl", 1), 2, (inner,))
    (loop, barrier) = barriers_after_maps((uneven,))
    assert isinstance(barrier, Barrier)
    assert not any(isinstance(part, Barrier) for part in walk(loop))
    even = For(lcl_1, nat(4), ir.Level("lcl", 1), 2, (inner,))
    (loop, _) = barriers_after_maps((even,))
    assert any(isinstance(part, Barrier) for part in walk(loop))
