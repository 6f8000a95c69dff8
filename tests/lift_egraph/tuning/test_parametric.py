"""A term is derived at a few points, and is the one derived at any other, number for number."""

import pickle
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.rows.blocks import Blocks, in_local_memory
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.errors import SearchProblem, SizeProblem
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import build as b, ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.programs import load
from lift_egraph.tuning.demands import Demand, demands_of, space_of
from lift_egraph.tuning.parametric import Parametric, generalised
from lift_egraph.tuning.stand_ins import stand_ins
from lift_egraph.workbench.phases import lowering_phase
from lift_egraph.workbench.planning.plan import planned_phase
from lift_egraph.workbench.planning.plans import plans
from tests.depth import in_turn

SIZES, NUMBERS = ("M", "N", "K"), ("block", "width")
POINTS = stand_ins(SIZES, NUMBERS, widths=["width"])
MM = load("mm")
CPU = replace(POCL, vector_width=8)


@cache
def packed(point: tuple[tuple[str, int], ...]) -> ir.Expr:
    """The best low-level term that the plan of packed blocks leads to."""
    values = dict(point)
    program = specialise(MM, {name: values[name] for name in SIZES})
    first = specialise(MM, dict.fromkeys(SIZES, 64))
    recipe = next(p.recipe for p in plans(first.body, CPU) if len(p.steps) == 2 and p.recipe)
    assert recipe is not None
    plan, term = recipe.at(program.body, {name: values[name] for name in NUMBERS}), program.body
    for step in plan.steps:
        phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=12))
        *_, (reached, _) = search_stage(term, Stage(phase, step.sketch, step.weigh))
        assert reached.term is not None, reached.why_not
        term = reached.term
    *_, lowered = run_phase(term, lowering_phase(CPU, plan.widths, Limits()))
    model = StructuralCost().on(CPU)
    best, *_ = best_terms(lowered.graph, lowered.root, model, 1, key=skeleton, tries=60, per_shape=3, patience=200)
    return best.term


@cache
def product() -> Parametric[ir.Expr]:
    return generalised([packed(tuple(point.items())) for point in POINTS], SIZES, NUMBERS, POINTS)


def at(sizes: tuple[int, ...], **numbers: int) -> ir.Expr:
    return product().at(dict(zip(SIZES, sizes, strict=True)), numbers)


OTHERS = [((512, 512, 512), 4, 16), ((96, 480, 77), 6, 8), ((120, 352, 512), 5, 16)]


@in_turn(8)
@pytest.mark.parametrize(("sizes", "block", "width"), OTHERS)
def test_the_term_is_the_one_derived_at_other_sizes(sizes: tuple[int, ...], block: int, width: int):
    point = {**dict(zip(SIZES, sizes, strict=True)), "block": block, "width": width}
    assert alpha_equal(at(sizes, block=block, width=width), packed(tuple(point.items())))
    sent = pickle.loads(pickle.dumps(product()))  # a search sends it after it has tried its points
    assert sent.at(dict(zip(SIZES, sizes, strict=True)), {"block": block, "width": width}) == at(
        sizes, block=block, width=width
    )


@cache
def demands() -> tuple[Demand, ...]:
    programs = [
        replace(specialise(MM, {n: point[n] for n in SIZES}), body=packed(tuple(point.items()))) for point in POINTS
    ]
    return demands_of(programs, POINTS, CPU)


def test_what_is_computed_at_other_points_is_the_product():
    sizes = {"M": 24, "N": 48, "K": 5}
    program = specialise(MM, sizes)
    space = space_of(product(), demands(), sizes, CPU)
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    points = space.sample(30)
    assert len(points) >= 25
    for point in points:
        assert np.array_equal(evaluate(product().at(sizes, point), inputs), expected), point


def test_the_space_of_a_plan_is_what_divides_and_fits_registers():
    sizes = {"M": 1024, "N": 1024, "K": 512}
    space = space_of(product(), demands(), sizes, CPU)
    expected = [(b, w) for b in (2**k for k in range(11)) for w in (2, 4, 8, 16) if 4 * b * w <= 4 * 8 * 32 * 2]
    assert sorted(tuple(point.values()) for point in space) == sorted(expected)


@pytest.mark.parametrize(
    ("sizes", "numbers", "message"),
    [
        ((100, 64, 64), {"block": 8, "width": 4}, r"split\(8\) does not divide an array of length 100"),
        ((64, 100, 64), {"block": 8, "width": 8}, r"N / width is no whole number where N = 100, width = 8"),
        ((64, 64, 64), {"block": 8}, "width must be at least 1, and has no value"),
        ((64, 64, 64), {"block": 0, "width": 4}, "block must be at least 1, not 0"),
        ((1 << 31, 64, 64), {"block": 2, "width": 4}, "beyond the 32-bit index range"),
    ],
)
def test_points_at_which_there_is_no_term_are_refused(sizes: tuple[int, ...], numbers: dict[str, int], message: str):
    with pytest.raises(SizeProblem, match=message):
        at(sizes, **numbers)


# --- terms of builders: stencils, and products in local memory -------------------------------------


def stencil(point: Mapping[str, int]) -> ir.Expr:
    """Sums of windows of `size`, in overlapping tiles of `tile` of them."""
    n, size, tile = point["N"], point["size"], point["tile"]
    program = parse_program(
        f"""program p(x: [f32]{n}) = join(mapGlb(0, fun part => mapSeq(fun w => reduceSeq(add, 0.0, w),
              slide({size}, 1, part)), slide({tile + size - 1}, {tile}, pad({size // 2}, {size // 2}, clamp, x))))"""
    )
    return program.body


def test_sums_of_slide_and_pad_are_solved():
    points = [
        {"N": 7 * 11 * k, "tile": t, "size": s} for k, t, s in ((13, 7, 3), (17, 11, 5), (19, 77, 9), (23, 7, 13))
    ]
    made = generalised([*map(stencil, points)], ("N",), ("tile", "size"), points)
    assert {str(form) for form in made.forms} == {"1", "N", "size", "tile", "size + tile - 1", "size / 2 - 1 / 2"}
    for n, tile, size in ((1024, 32, 3), (60, 12, 7), (64, 64, 1)):
        point = {"N": n, "tile": tile, "size": size}
        assert alpha_equal(made.at({"N": n}, {"tile": tile, "size": size}), stencil(point))
    with pytest.raises(SizeProblem):
        made.at({"N": 1024}, {"tile": 30, "size": 3})


BLOCKS = tuple(f.name for f in fields(Blocks))


def blocked(point: Mapping[str, int]) -> ir.Program:
    program = in_local_memory(Blocks(**{name: point[name] for name in BLOCKS}))
    return specialise(program, {name: point[name] for name in "MNK"})


def of_blocks(m: int, n: int, k: int, **blocks: int) -> dict[str, int]:
    """A point at which a tile divides the sizes."""
    tile = Blocks(**blocks)
    return {"M": tile.tile_m * m, "N": tile.tile_n * n, "K": tile.depth * k, **blocks}


BLOCK_POINTS = [
    of_blocks(17, 19, 23, items_m=3, items_n=5, lines=28, vectors=11, width=8, depth=1560, line_width=4),
    of_blocks(11, 13, 17, items_m=5, items_n=7, lines=6, vectors=2, width=4, depth=140, line_width=2),
    of_blocks(29, 13, 19, items_m=7, items_n=3, lines=40, vectors=3, width=2, depth=42, line_width=8),
    of_blocks(5, 5, 5, items_m=2, items_n=4, lines=8, vectors=2, width=4, depth=16, line_width=4),
]


@cache
def in_tiles() -> tuple[Parametric[ir.Expr], tuple[Demand, ...]]:
    made = generalised([blocked(point).body for point in BLOCK_POINTS], tuple("MNK"), BLOCKS, BLOCK_POINTS)
    return made, demands_of([blocked(point) for point in BLOCK_POINTS], BLOCK_POINTS, NVIDIA)


def test_what_kernels_need_is_read_like_the_numbers_of_the_term():
    found = {(demand.kind, str(demand.form)) for demand in in_tiles()[1]}
    assert ("items", "items_m * items_n") in found
    assert ("local", "4 * depth * items_m * lines + 4 * depth * items_n * vectors * width") in found
    assert ("parts", "depth * lines / (items_n * width)") in found  # the shares of a tile that each item copies
    assert ("width", "line_width") in found


def test_the_totals_that_a_group_looks_back_at_divide_the_groups():
    text = "program p(xs: [i32]{n}) = lookBack({width}, fun x => (x, x), fun (a, b) => b, 7, fun (o, x) => o - x, xs)"
    points = [{"n": n, "width": width} for n, width in ((14, 2), (33, 3), (65, 5))]
    found = demands_of([parse_program(text.format(**point)) for point in points], points, NVIDIA)
    assert ("parts", "n / width") in {(demand.kind, str(demand.form)) for demand in found}


def test_how_tiles_follow_each_other_changes_no_limit_of_a_term_without_kernels(monkeypatch: pytest.MonkeyPatch):
    def compiled(program: ir.Program, device: Device) -> None:
        raise SizeProblem("too large for any device")

    monkeypatch.setattr("lift_egraph.tuning.demands.compile_program", compiled)
    text = "program p(xs: [[f32]{k}]{n}) = mapWrg(0, fun row => mapLcl(0, id, toLocalAhead(mapLcl(0, id, row))), xs)"
    points = [{"n": n, "k": k} for n, k in ((7, 6), (5, 11), (3, 13))]
    found = demands_of([parse_program(text.format(**point)) for point in points], points, NVIDIA)
    assert {(demand.kind, str(demand.form)) for demand in found} == {("items", "k"), ("local", "4 * k")}


def test_kernels_are_generated_at_all_points_of_a_space():
    made, asked = in_tiles()
    sizes = dict.fromkeys("MNK", 1024)
    space = space_of(made, asked, sizes, NVIDIA)
    known = {"items_m": 8, "items_n": 32, "lines": 8, "vectors": 1, "width": 4, "depth": 16, "line_width": 4}
    assert known in space
    assert made.at(sizes, known) == blocked({**sizes, **known}).body
    for point in space.sample(5):
        plan = compile_program(replace(blocked({**sizes, **known}), body=made.at(sizes, point)), NVIDIA)
        assert plan.kernels[0].local_bytes <= NVIDIA.local_memory
    too_large = {**known, "depth": 128}
    assert space.why_not(too_large) == "the bytes of local memory of a group must be at most 49152, and is 98304"


# --- what is no term with parameters -----------------------------------------------------------------


def refused(derive: Any, message: str) -> None:
    points = [{"N": 30 * k, "tile": t} for k, t in ((7, 3), (11, 5), (13, 2))]
    with pytest.raises(SearchProblem, match=message):
        generalised([*map(derive, points)], ("N",), ("tile",), points)


def test_terms_of_different_shapes_are_refused():
    def derive(point: Mapping[str, int]) -> ir.Expr:
        xs = b.Input("x", b.array(b.F32, point["N"]))
        return b.split(point["tile"], xs) if point["tile"] != 2 else b.split(2, b.gather(b.reverse, xs))

    refused(derive, "another term is derived at N = 390, tile = 2")


def test_numbers_that_follow_no_expression_are_refused():
    def derive(point: Mapping[str, int]) -> ir.Expr:
        chunk = {3: 2, 5: 6, 2: 1}[point["tile"]]
        return b.split(chunk, b.Input("x", b.array(b.F32, point["N"])))

    refused(derive, "no expression of N, tile is 2, 6, 1")


def test_two_points_confirm_nothing():
    points = [{"N": 77, "tile": 7, "size": 3}] * 2
    with pytest.raises(SearchProblem, match="confirmed at two others, not at 2 in all"):
        generalised([*map(stencil, points)], ("N",), ("tile", "size"), points)
