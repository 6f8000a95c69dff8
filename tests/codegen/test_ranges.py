"""Folds of ranges, such as the rows of a sparse matrix, and by index, against NumPy; offsets that are none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lift_egraph import programs
from lift_egraph.api import (
    LiftError,
    Limits,
    Phase,
    Runner,
    equal_values,
    evaluate,
    naive_term,
    parse_program,
    random_inputs,
    rules,
    run,
    run_phase,
    specialise,
    type_of,
)
from lift_egraph.codegen.c_ast import For
from lift_egraph.codegen.c_walk import statements
from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.plans.arrays import load_plan, save_plan
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.egraph.locate import locate
from lift_egraph.language import ir
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.values import leaves_of
from tests.depth import in_turn
from tests.lift_egraph.meaning import oracle

SIZES = {"M": 20, "N": 30, "K": 70}
ROWS = "program p(ends: [i32]21, xs: [f32]70, ys: [i32]70) = map(fun w => {}, slide(2, 1, ends))"
FOLDS = (
    "reduceRange(max, -inf, w[0], w[1], xs)",
    "reduceRangeSeq(fun (a, (x, y)) => a * 0.5 - select(y > 1, x, 1.0), 0.5, w[0], w[1], zip(xs, ys))",
    "reduceRangeSeq(fun ((a, n), x) => (max(a, x), n + 1), (0.0, 0), 3, w[1], xs)",
    "reduceRange(fun (a, b) => map(add, zip(a, b)), fill(3, 1.0), w[0], w[1], slide(3, 1, pad(1, 1, clamp, xs)))",
    "reduceRange(add, 0, w[0], w[1], join(map(scan(add, 0), split(7, ys))))",
    "reduceRange(add, 0, w[0], 12, map(fun y => reduceRange(add, 0, y, 3, ys), ys))",
)


def test_rows_of_a_sparse_matrix() -> None:
    program = specialise(programs.load("spmv"), SIZES)
    inputs = random_inputs(program, 1, "integer")
    starts, cols, values, x = (np.asarray(inputs[i.name]) for i in program.inputs)
    assert starts[0] == 0
    assert starts[-1] == 70
    lengths = np.diff(starts)
    assert lengths.min() >= 0
    assert len(set(lengths.tolist())) > 3
    rows = [np.dot(values[a:b], x[cols[a:b]]) for a, b in pairwise(starts)]
    assert equal_values(evaluate(program.body, inputs), np.float32(rows))


@in_turn(8)
@pytest.mark.parametrize("fold", FOLDS)
def test_kernels_keep_ranges_in_the_array(fold: str, runner: Runner) -> None:
    program = specialise(parse_program(ROWS.format(fold)))
    inputs = random_inputs(program, 2, "integer")
    inputs["ends"] = np.random.default_rng(0).integers(-9, 80, 21).astype(np.int32)
    plan = compile_program(naive_term(program), POCL)
    runner.load_inputs("inputs", inputs)
    assert equal_values(runner.run(plan, "inputs"), evaluate(program.body, inputs))


def test_neighbours_that_fold_ranges_of_what_they_compute_are_one_kernel(runner: Runner) -> None:
    each = "map(fun i => reduceRange(add, 0, i, i + 3, join(map(scan(add, 0), {}))), ends)"
    both = f"({each.format('x')}, {each.format('transpose(x)')})"
    program = parse_program(f"program p(ends: [i32]5, x: [[i32]2]2) = {both}")
    plan = compile_program(naive_term(program), POCL)
    assert len(plan.kernels) == 1
    inputs = random_inputs(program, 2, "integer")
    runner.load_inputs("inputs", inputs)
    assert equal_values(runner.run(plan, "inputs"), evaluate(program.body, inputs))


def test_a_group_keeps_no_array_for_a_loop_of_a_computed_length() -> None:
    folded = "reduceRangeSeq(add, 0.0, 0, i, toPrivate(mapSeq(abs, c)))"
    each = f"mapWrg(0, fun c => mapLcl(0, fun i => {folded}, generate(8, id)), split(8, x))"
    with pytest.raises(LiftError, match="a loop of a computed number of steps selects from private memory"):
        compile_program(parse_program(f"program p(x: [f32]64) = join({each})"), POCL)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 1, "element 0 is 1, but offsets begin with 0 and end with 70"),
        (20, 71, "element 20 is 71, but offsets begin with 0 and end with 70"),
        (7, 69, "element 8 is"),
        (3, -5, "element 3 is -5, less than"),
    ],
)
def test_what_are_no_offsets_is_refused(place: int, value: int, message: str, runner: Runner, tmp_path: Path) -> None:
    program = programs.load("spmv")
    special = specialise(program, SIZES)
    inputs = random_inputs(special, 1)
    inputs["offsets"][place] = value  # pyright: ignore
    with pytest.raises(LiftError, match=re.escape(message)):
        run(special, inputs)
    runner.load_inputs("inputs", inputs)
    for naive, sizes in ((naive_term(special), {}), (naive_term(replace(program, sizes=())), SIZES)):
        save_plan(compile_open(naive, POCL, any_launch=True), tmp_path)
        plan = load_plan(tmp_path, sizes)
        with pytest.raises(LiftError, match=f"the input offsets: {re.escape(message)}"):
            runner.run(plan, "inputs")


RANGED = (
    "program p(xs: [[(i32, i32)]5]N in -3..N, ys: [f32]N in 0.1..0.7, k: f32 in 0..1, i: i32 in 0..N, "
    "q: (f64, f64) in -1..1, h: f16 in 0..2, v: [f32x4]2 in 0..9) = "
    "(map(map(fun (x, y) => x - y), xs), map(fun y => y * k, ys), i, q, h, map(fun u => u + u, v))"
)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("xs, component 1", (1, 3), -4, "element 1, 3 is -4, outside of the range -3..20"),
        ("xs, component 1", (1, 3), 20, "element 1, 3 is 20, outside of the range -3..20"),
        ("ys", 7, 0.0, "element 7 is 0.0, outside of the range 0.1..0.7"),
        ("ys", 19, np.nan, "element 19 is nan, outside of the range 0.1..0.7"),
        ("ys", 0, np.nextafter(np.float32(0.7), np.float32(1)), "element 0 is 0.7"),
        ("k", (), np.nextafter(np.float32(1), np.float32(2)), "it is 1.000000"),
        ("k", (), -np.finfo(np.float32).smallest_subnormal, "it is -1"),
        ("k", (), np.nan, "it is nan, outside of the range 0..1"),
        ("i", (), 20, "it is 20, outside of the range 0..20"),
        ("q, component 1", (), np.inf, "it is inf, outside of the range -1..1"),
        ("h", (), 2.002, "it is 2.00"),
        ("v", (1, 2), -1.0, "element 1, 2 is -1.0, outside of the range 0..9"),
    ],
)
def test_numbers_outside_of_their_range_are_refused(
    name: str, place: object, value: float, message: str, runner: Runner, tmp_path: Path
) -> None:
    program = parse_program(RANGED)
    special = specialise(program, {"N": 20})
    inputs = random_inputs(special, 1)
    leaves = {"xs, component 1": inputs["xs"][1], "q, component 1": inputs["q"][1]}
    leaf = np.asarray(leaves.get(name, inputs.get(name)))
    leaf[place] = value  # pyright: ignore
    leaves |= {"q, component 1": leaf} if name == "q, component 1" else {name: leaf}
    inputs |= {"q": (inputs["q"][0], leaf)} if name == "q, component 1" else {}
    inputs |= {name: leaf} if name in inputs else {}
    with pytest.raises(LiftError, match=re.escape(message)):
        run(special, inputs)
    runner.load_inputs("inputs", inputs)
    for naive, sizes in ((naive_term(special), {}), (naive_term(program), {"N": 20})):
        save_plan(compile_open(naive, POCL, any_launch=True), tmp_path)
        plan = load_plan(tmp_path, sizes)
        with pytest.raises(LiftError, match=f"the input {name}: {re.escape(message)}"):
            runner.run(plan, "inputs")


def test_floats_may_be_both_ends_of_their_range(runner: Runner, tmp_path: Path) -> None:
    program = specialise(parse_program(RANGED), {"N": 20})
    inputs = random_inputs(program, 1)
    ys, one = np.asarray(inputs["ys"]), np.float32(1)
    ys[:3] = np.float32(0.1), np.float32(0.7), 0.5
    v = np.full((2, 4), np.float32(-0.0))
    inputs |= {"k": one, "q": (np.float64(-1), np.float64(1)), "h": np.float16(2), "v": v}
    runner.load_inputs("inputs", inputs)
    save_plan(compile_open(naive_term(program), POCL), tmp_path)
    found = runner.run(load_plan(tmp_path), "inputs")
    assert all(map(equal_values, leaves_of(found), leaves_of(run(program, inputs))))


@pytest.mark.parametrize(
    ("ends", "array", "likely"),
    [("i, N", "generate(N, fun i => i)", 32), ("0, i + 1", "generate(N, fun i => i)", 32), ("i, i + 3", "is", 1)],
    ids=["tails", "prefixes", "others"],
)
def test_half_of_an_array_is_expected_of_its_prefixes_and_tails(ends: str, array: str, likely: int) -> None:
    """And of all other ranges together one array: that of rows of a sparse matrix."""
    text = f"mapGlb(0, fun i => reduceRangeSeq(fun (a, x) => a * x, 1.0, {ends}, xs), {array})"
    program = specialise(parse_program(f"program p(xs: [f32]N, is: [i32]N) where N = 64 = {text}"))
    (kernel,) = compile_program(program, POCL, with_text=False).kernels
    assert [s.likely for s in statements(kernel.body) if isinstance(s, For) and s.likely is not None] == [likely]


def test_operators_of_ranges_are_read_from_left_to_right() -> None:
    given = parse_program("program p(xs: [f32]9) = reduceRange(fun (a, b) => a - b, 1.0, 2, 5, xs)")
    assert isinstance(given.body, ir.ReduceRange)
    assert run(given, {"xs": np.arange(9, dtype=np.float32)}) == 1 - 2 - 3 - 4


def nearest_means(points: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nearest = ((points.T[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
    members = np.arange(len(centres))[:, None] == nearest
    return nearest, points @ members.T / np.maximum(members.sum(1), 1)


def distances(offsets: np.ndarray, neighbours: np.ndarray, source: np.ndarray) -> np.ndarray:
    found = np.full(len(offsets) - 1, 1000000)
    found[source] = 0
    for _ in range(10):
        around = [found[neighbours[a:b]].min(initial=1000000) for a, b in pairwise(offsets)]
        found = np.minimum(found, 1 + np.array(around))
    return found


BUNDLED: dict[str, tuple[dict[str, int], Callable[..., Any]]] = {
    "histogram": ({"N": 900}, lambda x: np.histogram(x, 256, (0, 1))[0]),
    "kmeans": ({"N": 60, "D": 3, "K": 4}, nearest_means),
    "bfs": ({"V": 40, "E": 90}, distances),
}


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_programs_and_their_naive_kernels(name: str, runner: Runner) -> None:
    sizes, expected = BUNDLED[name]
    program = specialise(programs.load(name), sizes)
    inputs = random_inputs(program, 4)
    value, made = evaluate(program.body, inputs), expected(**inputs)
    runner.load_inputs("inputs", inputs)
    found = runner.run(compile_program(naive_term(program), POCL), "inputs")
    for leaf, kernel, wanted in zip(*map(leaves_of, (value, found, made)), strict=True):
        np.testing.assert_allclose(leaf, wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kernel, wanted, rtol=1e-4, atol=1e-5)


BINS = (
    "map(fun r => reduceByIndex(fun (a, b) => b, fill(7, (0.0, 5)), is, map(fun x => (r[0], 1), xs)), split(30, xs))",
    "reduceByIndex(fun (a, b) => b, fill(7, fill(2, 0.5)), is, slide(2, 1, pad(0, 1, clamp, xs)))",
    "reduceByIndex(max, fill(7, -5), is, map(fun x => to_i32(x), xs))",
    "map(fun row => reduceByIndex(add, zs, is, map(fun x => x * row[0], xs)), split(12, xs))",
    "reduceByIndexSeq(fun (i, x) => i + 1, fun ((n, m), (i, x)) => (n + 1, max(m, x)), fill(6, (0, 0.0)), zip(is, xs))",
    "reduceByIndex(fun (a, b) => map(add, zip(a, b)), fill(6, fill(2, 0.0)), is, slide(2, 1, pad(0, 1, clamp, xs)))",
    "map(fun row => reduceByIndexSeq(fun x => to_i32(x), fun (a, x) => x - a * 2.0, zs, row), split(12, xs))",
)


@in_turn(6)
@pytest.mark.parametrize("body", BINS)
def test_folds_by_index_leave_out_what_is_outside(body: str, runner: Runner) -> None:
    program = specialise(parse_program(f"program p(is: [i32]60 in -2..9, xs: [f32]60, zs: [f32]4) = {body}"))
    inputs = random_inputs(program, 3, "integer")
    lists = {item.name: oracle.to_lists(item.type, inputs[item.name]) for item in program.inputs}
    value = evaluate(program.body, inputs)
    assert oracle.to_lists(type_of(program.body), value) == oracle.listed(program.body, lists, {})
    rounded = random_inputs(program, 5)
    reference, bound = (leaves_of(tree) for tree in evaluate_bounded(program.body, rounded))
    for exact, error, leaf in zip(reference, bound, leaves_of(evaluate(program.body, rounded)), strict=True):
        assert (np.abs(leaf - exact) <= error).all()
    runner.load_inputs("inputs", inputs)
    assert equal_values(runner.run(compile_program(naive_term(program), POCL), "inputs"), value)


WITH_BINS = replace(POCL, compute_units=1, emission=replace(POCL.emission, groups_of_256=True, bins=64))


@in_turn(8)
@pytest.mark.parametrize("device", [POCL, WITH_BINS], ids=["all at once", "groups first"])
@pytest.mark.parametrize(
    ("op", "element"),
    [("add", "i32"), ("add", "f32"), ("max", "f32"), ("bit_xor", "u32"), ("min", "i64"), ("mul", "f64")],
)
def test_work_items_combine_elements_in_memory(op: str, element: str, device: Device, runner: Runner) -> None:
    program = parse_program(
        f"program p(zs: [{element}]7, is: [i32]5003 in -2..9, xs: [{element}]5003) = "
        f"reduceByIndexAtomic(fun (i, x) => i, fun (acc, (i, x)) => {op}(acc, x), zs, zip(is, xs))"
    )
    inputs = random_inputs(program, 3, "integer")
    runner.load_inputs("atomic", inputs)
    plan = compile_program(program, device)
    assert ("local" in plan.source) is (device is WITH_BINS)
    found = np.asarray(runner.run(plan, "atomic"))
    assert np.allclose(found, np.asarray(run(program, inputs)), rtol=1e-3, equal_nan=True)
    start, places, xs = (np.asarray(inputs[i.name]) for i in program.inputs)
    counted = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "bit_xor": np.bitwise_xor}[op]
    wanted, inside = start.copy(), (places >= 0) & (places < 7)
    counted.at(wanted, places[inside], xs[inside])
    assert np.allclose(found, wanted, rtol=1e-3, equal_nan=True)


@pytest.mark.parametrize(
    ("results", "elements", "launch"), [(9, 5003, None), (8, 31, None), (7, 5003, Launch((64, 2, 1), (32, 1, 1)))]
)
def test_groups_have_results_of_their_own_where_these_are_few(
    results: int, elements: int, launch: Launch | None, runner: Runner
) -> None:
    """Not where local memory shall not hold them, where combining them is all the work, or with another launch."""
    program = parse_program(
        f"program p(zs: [i64]{results}, is: [i32]{elements} in 0..{results}) = "
        "reduceByIndexAtomic(fun i => i, fun (acc, i) => acc + to_i64(1), zs, is)"
    )
    plan = compile_program(program, WITH_BINS, launch=launch)
    assert "local" not in plan.source
    inputs = random_inputs(program, 3, "integer")
    runner.load_inputs("atomic", inputs)
    counts = np.bincount(np.asarray(inputs["is"]), minlength=results)
    assert np.array_equal(np.asarray(runner.run(plan, "atomic")), np.asarray(inputs["zs"]) + counts)


@pytest.mark.parametrize("step", ["acc - x", "x", "acc + acc", "acc + x * acc"])
def test_what_no_device_combines_in_memory_is_refused(step: str) -> None:
    program = parse_program(
        "program p(zs: [f32]7, is: [i32]9, xs: [f32]9) = "
        f"reduceByIndexAtomic(fun (i, x) => i, fun (acc, (i, x)) => {step}, zs, zip(is, xs))"
    )
    with pytest.raises(LiftError, match="reduceByIndexAtomic: a result of type f32 and an element are combined"):
        compile_program(program, POCL)


@pytest.mark.parametrize("step", ["acc + x", "let (a, y) = (acc, let j = i in x) in let k = i + 1 in y + a"])
def test_sums_of_floats_in_memory_are_one_instruction_of_ptx(step: str) -> None:
    program = parse_program(
        "program p(zs: [f32]7, is: [i32]9, xs: [f32]9) = "
        f"reduceByIndexAtomic(fun (i, x) => i, fun (acc, (i, x)) => {step}, zs, zip(is, xs))"
    )
    assert "red.global.add.f32" in compile_program(program, NVIDIA).source
    assert "atomic_cmpxchg" in compile_program(program, POCL).source


def test_chunks_have_results_of_their_own() -> None:
    head = "program p(is: [i32]24, xs: [f32]24, zs: [f32]5)"
    program = parse_program(f"{head} = reduceByIndex(add, zs, is, map(fun x => x * x, xs))")
    chosen = tuple(r for r in rules.all_rules if r.name == "reduce_by_index_of_map_in_chunks")
    phase = Phase("one", chosen, rules.simplification, {24: (6,)}, (), Limits(iterations=2))
    *_, reached = run_phase(program.body, phase)
    wanted = parse_program(
        f"{head} = map(fun (z, c) => reduce(add, z, c), zip(zs, transpose(map(fun (i, x) => reduceByIndex(add, "
        "fill(5, 0.0), i, map(fun x => x * x, x)), zip(split(6, is), split(6, xs))))))"
    )
    assert locate(reached.graph, reached.root, wanted.body) is not None
