"""Generated kernels compute what the interpreter computes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lift_egraph.api import Runner, parse_program, random_inputs, run, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, NVIDIA
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.ranges import Range
from lift_egraph.language.types import I32, Array
from lift_egraph.meaning.values import leaves_of
from tests.codegen import low_level as low
from tests.codegen.opencl import in_one_build, needs_opencl, results, text_of
from tests.depth import in_turn

TEXT = """
program a_value_read_before_the_loop_that_follows(xs: [[f32]K]N) where N = 3, K = 4 =
  mapGlb(0,
    fun row =>
      let kept = toPrivate(mapSeq(fun x => x + 1.0, row)) in
      let first = at(0, kept) in reduceSeq(fun (acc, x) => acc + x * first, 0.0, kept) * first,
    xs)
program a_component_of_what_several_kernels_compute(xs: [f32]N) where N = 48 =
  map(fun (a, b) => b,
    let s = toGlobal(mapGlb(0, fun x => x + 1.0, xs)) in join(mapGlb(0, mapSeq(fun x => (x, x * 2.0)), split(4, s))))
program a_component_of_what_stands_behind_a_loop(xs: [f32]N) where N = 51 =
  map(fun (a, b) => b,
    concat(
      scanSeq(fun ((a, b), x) => (a + x, b * x), (0.0, 1.0), slice(0, 3, xs)),
      join(mapGlb(0, mapSeq(fun x => (x, x * 2.0)), split(4, slice(3, 48, xs))))))
program argmax(xs: [f32]N) where N = 37 =
  reduceSeq(
    fun (best, x) =>
      (
        select(get(1, x) > get(1, best), get(0, x), get(0, best)),
        select(get(1, x) > get(1, best), get(1, x), get(1, best))),
    (0, -1e+30),
    zip(generate(N, id), xs))
program integers(xs: [i32]N, ys: [i32]N) where N = 24 =
  mapGlb(0, fun (x, y) => (x / y, x % y, min(x, y), abs(x) - max(x, y)), zip(xs, ys))
program vector_integers(xs: [i32]N, ys: [i32]N) where N = 24 =
  join(
    mapGlb(0,
      fun chunk =>
        asScalar(mapSeq(vectorize(4, fun (x, y) => x / y + x % y * abs(y) - min(x, y)), asVector(4, chunk))),
      split(8, zip(xs, ys))))
program dots(xs: [f32]N, ys: [f32]N) where N = 16 =
  mapGlb(0, fun (x, y) => dot(x, y) - dot(y, y), zip(asVector(4, xs), asVector(4, ys)))
program dots_in_double_precision(xs: [f64]N, ys: [f64]N) where N = 16 =
  reduceSeq(fun (acc, p) => acc + dot(get(0, p), get(1, p)), 0.0f64, asVector(2, zip(xs, ys)))
program dots_of_equal_lanes(xs: [f32]N, ys: [f32]N) where N = 16 =
  mapGlb(0, fun (x, y) => dot(at(0, asVector(4, fill(4, x))), at(0, asVector(4, fill(4, y)))), zip(xs, ys))
program dots_in_the_lanes_of_vectors(xs: [f32]N, ys: [f32]N) where N = 64 =
  asScalar(
    mapSeq(
      vectorize(4, fun d => d + 1.0),
      asVector(4,
        generate(16, fun i => dot(at(0, lookup(fill(1, i), asVector(4, xs))), at(0, asVector(4, ys)))))))
program dots_of_padded_vectors(xs: [f32]N) where N = 16 =
  mapGlb(0, fun v => dot(v, v), asVector(4, pad(1, 3, constant(1.0), xs)))
program results_of_which_others_are_made(xs: [f32]N, ys: [f32]N) where N = 24 =
  let v = asScalar(mapGlb(0, vectorize(4, neg), asVector(4, xs))) in
  let w = join(mapGlb(0, fun (a, b) => mapSeq(add, zip(a, b)), zip(split(8, v), split(8, ys)))) in
  let s = reduceSeq(add, 0.0, toGlobal(mapGlb(0, id, w))) in
  (mapGlb(0, fun x => x * s, w), ((w, mapGlb(0, id, v)), (v, s)), gather(reverse, v))
program a_step_with_a_name(xs: [f32]N) where N = 24 =
  iterate(3, fun x => let y = mapGlb(0, fun x => x + 1.0, x) in y, xs)
program comparisons(xs: [f32]N, ys: [f32]N) where N = 16 =
  mapGlb(0, fun (x, y) => (x < y, x <= 0.0 && y > 0.0), zip(xs, ys))
program vector_select(xs: [f32]N, ys: [f32]N, flags: [bool]N) where N = 16 =
  asScalar(
    mapSeq(vectorize(8, fun (x, y, f) => select(x < y && f, x * 2.0, 1.0)), asVector(8, zip(xs, ys, flags))))
program parity_of_lanes(xs: [f32]N, flags: [bool]N, flag: bool) where N = 48 =
  let odd = mapSeq(vectorize(8, reduceSeq(fun (p, x, f) => p != ((x > 0.0) == (f != flag)), false)),
      asVector(8, transpose(split(8, zip(xs, flags))))) in
  (reduceSeq(ne, true, asScalar(odd)), mapSeq(fun v => v == flag, asScalar(odd)))
program lanes_as_numbers(xs: [f32]N) where N = 64 =
  let some = mapSeq(vectorize(8, reduceSeq(fun (p, x) => p || x > 0.5, false)), asVector(8, transpose(split(8, xs)))) in
  (reduceSeq(fun (n, p) => n + to_i32(p), 0, asScalar(some)),
    asScalar(mapSeq(vectorize(4, fun p => !p), asVector(4, asScalar(some)))))
program vector_flags(xs: [f32]N) where N = 16 =
  asScalar(mapSeq(vectorize(8, fun x => x < 0.25), asVector(8, xs)))
program vector_doubles(xs: [f64]N, limit: f64) where N = 16 =
  asScalar(mapSeq(vectorize(4, fun x => select(x < limit, to_f64(to_f32(x)), sqrt(abs(x)))), asVector(4, xs)))
program casts(xs: [f32]N) where N = 11 =
  mapGlb(0, fun x => to_f64(to_i32(x * 3.0)) * 0.1f64, xs)
program no_pad_slide(xs: [f32]N) where N = 13 =
  mapGlb(0, reduceSeq(add, 0.0), slide(3, 1, xs))
program reversed_and_scattered(xs: [f32]N) where N = 14 =
  scatter(i => (i + 3) % n, mapGlb(0, fun x => x * 2.0, gather(reverse, xs)))
program scattered_inside(xs: [f32]N) where N = 12 =
  join(mapGlb(0, fun c => mapSeq(id, scatter(reverse, mapSeq(fun x => x + 1.0, c))), split(4, xs)))
program generated(xs: [f32]N) where N = 9 =
  mapGlb(0, fun (x, i) => x * to_f32(i), zip(xs, generate(N, id)))
program generated_vectors(xs: [f32]N) where N = 16 =
  asScalar(mapSeq(vectorize(4, fun (x, i) => x * to_f32(i)), asVector(4, zip(xs, generate(N, id)))))
program looked_up(xs: [f32]N, places: [i32]M) where N = 9, M = 5 =
  mapGlb(0, fun x => x + 1.0, lookup(places, xs))
program looked_up_vectors(xs: [f32]N, places: [i32]M) where N = 16, M = 8 =
  asScalar(mapSeq(vectorize(4, fun x => x + 1.0), asVector(4, lookup(places, xs))))
program looked_up_by_lanes(xs: [f32]N, rows: [[i32]3]M) where N = 16, M = 8 =
  asScalar(
    mapGlb(0,
      vectorize(4, fun row =>
        reduceSeq(fun (a, p) => a + get(0, p) * to_f32(get(1, p)), xs[at(0, row)], zip(lookup(row, xs), row))),
      asVector(4, rows)))
program looked_up_in_rows_of_lanes(A: [[f32]5]N, places: [i32]N) where N = 16 =
  asScalar(mapGlb(0, vectorize(4, fun (row, i) => row[i] + row[2]), asVector(4, zip(A, places))))
program ends(xs: [f32]N) where N = 6 =
  (at(0, xs) + at(5, xs), at(2, xs))
program pairs_in_and_out(ps: [(f32, i32)]N) where N = 24 =
  mapGlb(0, fun (a, b) => (b, a + 1.0), ps)
program scalars_by_value(alpha: f32, pair: (i32, f32), xs: [f32]N) where N = 8 =
  mapGlb(0, fun x => alpha * x + to_f32(get(0, pair)) * get(1, pair), xs)
program normalised(xs: [f32]N) where N = 32 =
  let s = reduceSeq(add, 0.0, mapGlb(0, reduceSeq(fun (a, x) => a + abs(x), 0.0), split(8, xs))) in
  mapGlb(0, fun x => x / s, xs)
program two_steps(xs: [f32]N) where N = 32 =
  mapGlb(0, reduceSeq(add, 0.0), slide(5, 1, join(mapGlb(0, mapSeq(fun x => x * x), split(4, xs)))))
program sequential_only(xs: [f32]N) where N = 16 =
  mapSeq(fun x => x + 1.0, mapSeq(fun x => x * 3.0, xs))
program prefix_sums(xs: [f32]N) where N = 12 =
  mapGlb(0, reduceSeq(fun (acc, x) => mapSeq(fun a => a + x, gather(reverse, acc)), fill(3, 0.0)), split(4, xs))
program halved(xs: [f32]N) where N = 64 =
  join(mapGlb(0, iterate(3, fun (v: [f32]n) => mapSeq(reduceSeq(add, 0.0), split(2, v))), split(16, xs)))
program reversed_in_local(xs: [f32]N) where N = 64 =
  join(
    mapWrg(0, fun c => mapLcl(0, id, gather(reverse, toLocal(mapLcl(0, fun x => x + 1.0, c)))), split(16, xs)))
program partly_filled_groups(xs: [f32]N) where N = 60 =
  join(
    mapWrg(0,
      fun c =>
        let sums = toLocal(mapLcl(0, reduceSeq(add, 0.0), split(5, c))) in
        mapLcl(0, fun x => x + reduceSeq(add, 0.0, sums), c),
      split(20, xs)))
program local_vectors(xs: [f32]N) where N = 64 =
  join(
    mapWrg(0,
      fun c =>
        mapLcl(0,
          fun x => x + 1.0,
          gather(reverse, asScalar(toLocal(mapLcl(0, vectorize(4, fun x => x * 2.0), asVector(4, c)))))),
      split(16, xs)))
program transposed(A: [[f32]N]M) where M = 6, N = 10 =
  transpose(mapGlb(0, mapSeq(fun x => x * 2.0), A))
program layout_map_written(A: [[f32]N]M) where M = 6, N = 10 =
  map(gather(reverse), mapGlb(0, mapSeq(fun x => x * 2.0), A))
program layout_map_joined(A: [[f32]N]M) where M = 6, N = 10 =
  map(join, mapGlb(0, fun row => mapSeq(mapSeq(id), split(5, row)), A))
program words_of_c(float: [f32]N, kernel: f32) where N = 20 =
  mapGlb(0, fun double => let half = double * kernel in half * half, float)
program global_inside(xs: [f32]N) where N = 12 =
  join(mapGlb(0, fun c => mapSeq(id, gather(reverse, toGlobal(mapSeq(fun x => x * 2.0, c)))), split(4, xs)))
program running_pairs(A: [[f32]N]M) where M = 4, N = 12 =
  mapGlb(0, reduceSeq(fun (acc, x) => (get(0, acc) + x, max(get(1, acc), x)), (0.0, -1000.0)), A)
program array_of_pairs_accumulated(A: [[f32]N]M) where M = 4, N = 12 =
  mapSeq(id,
    reduceSeq(
      fun (acc, col) => mapSeq(fun (a, x) => (get(0, a) + x, get(1, a) * x), zip(acc, col)),
      fill(M, (0.0, 1.0)),
      transpose(A)))
program vector_pairs_reduced(xs: [f32]N, ys: [f32]N) where N = 32 =
  reduceSeq(
    fun (acc, xy) => (select(get(0, xy) > get(0, acc), get(0, xy), get(0, acc)), get(1, acc) + get(1, xy)),
    (-1000.0, 0.0),
    asScalar(
      mapSeq(
        vectorize(4,
          reduceSeq(
            fun (acc, xy) =>
              (select(get(0, xy) > get(0, acc), get(0, xy), get(0, acc)), get(1, acc) + get(1, xy)),
            (-1000.0, 0.0))),
        asVector(4, transpose(split(4, zip(xs, ys)))))))
program three_dimensions(A: [[[f32]N]M]L) where L = 3, M = 4, N = 5 =
  mapGlb(2, mapGlb(1, mapGlb(0, fun x => x * x)), A)
program one_element(xs: [f32]N) where N = 1 =
  mapGlb(0, fun x => x + 1.0, xs)
program iterated_three_to_one(xs: [f32]N) where N = 60 =
  join(
    mapWrg(0,
      fun c =>
        mapLcl(0, id,
          iterate(2,
            fun (v: [f32]n) => mapLcl(0, fun p => toLocal(reduceSeq(add, 0.0, p)), split(2, v)),
            mapLcl(0, fun x => toLocal(x * 2.0), c))),
      split(20, xs)))
program global_inside_group(xs: [f32]N) where N = 16 =
  join(
    mapWrg(0, fun c => mapLcl(0, id, gather(reverse, toGlobal(mapLcl(0, fun x => x + 1.0, c)))), split(8, xs)))
program used_twice(xs: [f32]N) where N = 16 =
  let s = mapGlb(0, fun x => x * x, xs) in (mapGlb(0, fun a => a + 1.0, gather(reverse, s)), at(3, s))
program two_reductions(xs: [f32]N) where N = 16 =
  reduceSeq(add, 0.0, mapGlb(0, reduceSeq(fun (a, x) => a + abs(x), 0.0), split(4, xs)))
  / reduceSeq(add, 0.0, mapGlb(0, reduceSeq(fun (a, x) => a + x * x, 0.0), split(4, xs)))
program computed_lookup(xs: [f32]N, places: [i32]M) where N = 8, M = 4 =
  mapGlb(0,
    fun w => at(0, w) - at(2, w),
    slide(3, 1, pad(1, 1, constant(7.0), lookup(mapSeq(fun i => i * 2 + 1, places), xs))))
program boxes(A: [[f32]N]M) where M = 6, N = 7 =
  mapGlb(1,
    mapGlb(0, fun w => reduceSeq(max, -1e9, join(w))),
    map(transpose,
      slide(3, 1,
        map(
          slide(3, 1),
          transpose(map(pad(1, 1, constant(2.0)), transpose(map(pad(1, 1, constant(2.0)), A))))))))
program vector_boxes(A: [[f32]N]M) where M = 6, N = 8 =
  mapGlb(0,
    fun row => asScalar(mapSeq(vectorize(4, fun w => reduceSeq(add, 0.0, join(w))), asVector(4, row))),
    map(transpose, slide(3, 1, map(slide(3, 1), pad(1, 1, mirror, map(pad(1, 1, mirror), A))))))
program all_small(xs: [f64]N, flags: [bool]N) where N = 12 =
  reduceSeq(fun (acc, x, f) => acc && (x < 1.5f64 || f), true, zip(xs, flags))
program shared_by_work_items(xs: [f32]N) where N = 24 =
  join(
    mapWrg(0,
      fun c => let h = toPrivate(mapLcl(0, fun x => x * 2.0, c)) in mapLcl(0, add, zip(h, c)),
      split(8, xs)))
program lets_in_lanes(xs: [f32]N) where N = 16 =
  asScalar(mapSeq(vectorize(8, fun x => let y = x * x in let z = y + x in z * z - y), asVector(8, xs)))
-- gathered lanes, read and written
program columns_in_lanes(A: [[f32]M]N) where M = 5, N = 6 =
  asScalar(mapSeq(vectorize(2, mapSeq(fun x => x + 1.0)), asVector(2, A)))
program accumulated_twice(A: [[f32]N]M) where M = 4, N = 6 =
  reduceSeq(
    fun (acc, row) => mapSeq(fun (a, x) => reduceSeq(fun (s, y) => s + y * x, a, row), zip(acc, row)),
    fill(N, 0.5),
    A)
"""
STENCIL = """
program padded(xs: [f32]N) =
  mapGlb(0, fun w => at(0, w) - at(2, w) * 2.0 + at(1, w), slide(3, 1, pad(1, 1, EDGE, xs)))
"""
VECTOR_STENCIL = """
program padded(xs: [f32]N) =
  asScalar(mapSeq(vectorize(4, fun (a, b, c) => a - 2.0 * b + c),
    asVector(4, zip(
      map(at(0), slide(5, 1, pad(2, 2, EDGE, xs))),
      map(at(1), slide(5, 1, pad(2, 2, EDGE, xs))),
      map(at(2), slide(5, 1, pad(2, 2, EDGE, xs)))))))
"""
# local arrays of 4, 6, … and 16 elements, in groups of 8
THAT_GROWS = """
program iterated_that_grows(xs: [f32]N) =
  mapWrg(0, fun c => join(mapLcl(0, mapSeq(id), split(2, iterate(6, fun (v: [f32]n) =>
    toLocal(mapLcl(0, fun x => x + 1.0, pad(1, 1, clamp, v))), c)))), split(4, xs))
"""
BATCH = 16  # plans of one build

PROGRAMS = {p.name: p for p in map(parse_program, re.split(r"\n(?=program)", TEXT.strip()))}
CASES: list[tuple[ir.Program, dict[str, int]]] = [
    *low.SMALL,
    (low.mm_naive(), {"M": 1, "K": 1, "N": 1}),
    (low.mm_blocked(1, 2), {"M": 3, "K": 1, "N": 2}),
    (low.j2d5pt(2, 8), {"M": 4, "N": 8}),
    (low.partial_dot(32, 3), {"N": 32}),
    *((made, dict(made.sizes)) for made in PROGRAMS.values()),
    *(
        (parse_program(text.replace("EDGE", edge)), {"N": n})
        for edge in ("clamp", "mirror", "wrap", "constant(0.5)")
        for text, n in ((STENCIL, 1), (STENCIL, 17), (VECTOR_STENCIL, 16), (VECTOR_STENCIL, 4))
    ),
]


def check(runner: Runner, special: ir.Program, plan: Plan) -> None:
    """The plan computes what the interpreter computes."""
    integers = [i.name for i in special.inputs if isinstance(i.type, Array) and i.type.element == I32]
    inputs = random_inputs(replace(special, ranges=tuple((name, Range(-6, 7)) for name in integers)), 7)
    for want, got in zip(leaves_of(run(special, inputs)), results(runner, plan, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5, err_msg=text_of(plan))


@cache
def plans(dialect: str, batch: int) -> list[Plan]:
    """Some of the cases' plans for a dialect, in one build."""
    chosen = list(enumerate(CASES))[batch * BATCH : (batch + 1) * BATCH]
    specials = [replace(specialise(made, sizes), name=f"{made.name}_{n}") for n, (made, sizes) in chosen]
    return in_one_build([compile_program(special, DEVICES[dialect]) for special in specials])


@in_turn(8)
@needs_opencl
@pytest.mark.timeout(120)
@pytest.mark.parametrize("dialect", ["pocl", "generic"])
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{p.name}-{'-'.join(map(str, s.values()))}" for p, s in CASES]
)
def test_agrees_with_the_interpreter(runner: Runner, another_runner: Runner, number: int, dialect: str) -> None:
    on = runner if dialect == "pocl" else another_runner
    check(on, specialise(*CASES[number]), plans(dialect, number // BATCH)[number % BATCH])


@needs_opencl
@pytest.mark.parametrize(
    ("made", "size"),
    [(low.partial_dot(16, 3), 64), (PROGRAMS["iterated_three_to_one"], 60), (parse_program(THAT_GROWS), 8)],
    ids=["halves", "short", "grows"],
)
def test_iterates_too_long_to_unroll_agree(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, made: ir.Program, size: int
) -> None:
    monkeypatch.setattr("lift_egraph.codegen.lowering.iterate.UNROLLED_TERMS", 0)
    special = specialise(made, {"N": size})
    check(runner, special, compile_program(special, DEVICES["pocl"]))


@pytest.mark.parametrize(
    ("name", "elements"),
    [("a_component_of_what_several_kernels_compute", 48), ("a_component_of_what_stands_behind_a_loop", 51)],
)
def test_all_work_items_move_what_others_have_computed(name: str, elements: int):
    kernels = low.plan_of(PROGRAMS[name], optimise=low.APART).kernels
    assert kernels[-1].launch.global_size == (elements, 1, 1)


def test_a_work_item_that_is_alone_asks_for_all_it_reads_at_once():
    sums = "toGlobal(mapGlb(0, reduceSeq(add, 0.0), split(256, x)))"
    program = parse_program(f"program s(x: [f32]65536) = reduceSeq(add, 0.0, {sums})")
    first, second = (kernel.source for kernel in compile_program(program, NVIDIA).kernels)
    assert "#pragma unroll 32\n" in first
    assert "#pragma unroll 256\n" in second


def test_a_work_item_that_is_alone_unrolls_many_long_loops_in_part():
    steps = " ".join(f"let s{i} = reduce(add, 0.0, map(fun v => v * {i}.5, a)) in" for i in range(20))
    text = f"reduceSeq(fun (a, i) => {steps} map(fun v => v * s0 + s19, a), x, generate(4, id))"
    (kernel, *_) = compile_program(naive_term(parse_program(f"program s(x: [f32]257) = {text}")), NVIDIA).kernels
    assert "#pragma unroll 257\n" not in kernel.source
    assert "#pragma unroll 32\n" in kernel.source
