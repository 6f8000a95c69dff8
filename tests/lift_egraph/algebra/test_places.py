"""Places that are distinct are found so; such that may not be, are not."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.algebra.places import distinct_in, distinct_places, doubtful_in
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.index_folds import without_repeats
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.placed import with_atomics, with_distinct_places
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

SCAN = "scanExclusive(add, 0, map(fun x => select(x > 0.5, 1, 0), xs))"
ZIPPED = f"zip(xs, {SCAN})"
RUNS = "concat(fill(1, 1), map(fun w => select(w[0] != w[1], 1, 0), slide(2, 1, xs)))"
DISTINCT = {
    "kept": f"map(fun (x, p) => select(x > 0.5, p, -1), {ZIPPED})",
    "shifted": f"map(fun (x, p) => select(x > 0.5, p + 3, -2), {ZIPPED})",
    "less are kept": f"map(fun (x, p) => select(x > 0.5 && x < 0.7, p, -1), {ZIPPED})",
    "by its count": "let k = map(fun x => select(x > 0.5, 1, 0), xs) in "
    "map(fun (k, p) => select(k == 1, p, -1), zip(k, scanExclusive(add, 0, k)))",
    "inclusive": "let k = map(fun x => to_i32(x > 0.5), xs) in "
    "map(fun (k, p) => select(k > 0, p - 1, -1), zip(k, scan(add, 0, k)))",
    "two of each": "let k = map(fun x => select(x > 0.5, 2, 0), xs) in "
    "map(fun (k, p) => select(k > 0, p + 1, -1), zip(k, scanExclusive(add, 0, k)))",
    "runs": f"let k = {RUNS} in map(fun (k, p) => select(k == 1, p, -1), zip(k, scanExclusive(add, 0, k)))",
    "reversed": "generate(12, fun i => 11 - i)",
    "every third": "generate(12, fun i => 3 * i + 1)",
}
DOUBTFUL = {
    "others are kept": f"map(fun (x, p) => select(x > 0.4, p, -1), {ZIPPED})",
    "all are kept": f"map(fun (x, p) => p, {ZIPPED})",
    "a place for the rest": f"map(fun (x, p) => select(x > 0.5, p, 0), {ZIPPED})",
    "inclusive and exclusive": "let k = map(fun x => to_i32(x > 0.5), xs) in "
    "map(fun (x, (p, q)) => select(x > 0.5, select(x > 0.7, p, q), -1), "
    "zip(xs, zip(scan(add, 0, k), scanExclusive(add, 0, k))))",
    "different steps": f"map(fun (x, p) => select(x > 0.5, select(x > 0.7, p, p + 1), -1), {ZIPPED})",
    "counted down": "let k = map(fun x => select(x > 0.5, 1, -1), xs) in "
    "map(fun (x, p) => select(x > 0.5, p, -1), zip(xs, scanExclusive(add, 0, k)))",
    "by max": f"map(fun (x, p) => select(x > 0.5, p, -1), {ZIPPED.replace('add', 'max')})",
    "of other elements": f"map(fun (x, p) => select(x > 0.5, p, -1), zip(gather(reverse, xs), {SCAN}))",
    "halves": "generate(12, fun i => i / 2)",
    "wrapped": "generate(12, fun i => i * 1073741824)",
    "constant": "generate(12, fun i => 5)",
    "data": "map(fun x => to_i32(x), xs)",
}


def places(body: str) -> ir.Program:
    return parse_program(f"program p(xs: [f32]12 in 0..1) = reduceByIndex(add, fill(9, 1.0), {body}, map(abs, xs))")


@in_turn(8)
@pytest.mark.parametrize("name", DISTINCT)
def test_distinct_places_are_found_and_lead_to_work_items(name: str):
    program = places(DISTINCT[name])
    (why,) = distinct_in(program.body).values()
    assert why
    for device in (POCL, NVIDIA):
        made = with_distinct_places(program.body)
        assert made is not None
        leg = Leg("distinct_places", made, 8, device.mapping)
        assert leads_to(program.body, leg.phase, made)
        inputs = random_inputs(program, 0, "float")
        assert equal_values(evaluate(program.body, inputs), evaluate(made, inputs))


@pytest.mark.parametrize("name", DOUBTFUL)
def test_places_that_may_be_one_are_none(name: str):
    program = places(DOUBTFUL[name])
    assert distinct_in(program.body) == {}
    assert with_distinct_places(program.body) is None


@pytest.mark.parametrize(
    "body",
    [
        "reduceByIndex(add, fill(9, 1.0), is, xs)",
        "reduceByIndex(max, fill(9, 1.0), map(fun i => i + 1, is), map(abs, xs))",
        "let a = reduceByIndex(min, fill(9, 1.0), is, map(abs, xs)) in map(fun y => y + a[0], a)",
        "reduceByIndex(bit_xor, fill(9, 1), map(fun i => i / 2, is), is)",
        "reduceByIndex(fun ((a, b), (x, y)) => (a + x, max(b, y)), fill(9, (0.0, 1.0)), is, map(fun x => (1.0, x), "
        "xs))",
        "reduceByIndex(fun ((a, b, c), (x, y, z)) => (a + x, b + y, min(c, z)), fill(9, (0, 0.0, 0)), is, zip(is, "
        "xs, is))",
        "reduceByIndex(fun (a, b) => map(add, zip(a, b)), fill(9, fill(1, 1.0)), is, split(1, xs))",
        "reduceByIndex(fun (a, b) => map(fun (x, y) => max(x, y), zip(a, b)), fill(9, fill(3, 0.5)), map(fun i => "
        "i + 1, is), map(fun x => map(fun i => x, generate(3, id)), xs))",
        "iterate(2, fun (d: [f32]n) => reduceByIndex(min, d, is, map(fun (i, x) => d[i] + x, zip(is, xs))), "
        "fill(9, 1.0))",
        "let x = xs[2] in let place = is[3] in reduceByIndex(add, fill(9, 0.0), map(fun i => i + place, is), "
        "map(fun y => y * x, xs))",
    ],
)
def test_elements_are_combined_in_memory_where_devices_can(body: str):
    program = parse_program(f"program p(is: [i32]12 in -1..9, xs: [f32]12) = {body}")
    made = with_atomics(program.body)
    assert any(isinstance(t, ir.ReduceByIndexAtomic) for t in ir.subterms(made))
    leg = Leg("atomic_places", made, 9, NVIDIA.mapping)
    assert leads_to(program.body, leg.phase, made)
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(made, inputs))


HISTOGRAM = "reduceByIndex(add, fill(9, 1.0), {}, {})"


@pytest.mark.parametrize(
    ("body", "folds"),
    [
        (HISTOGRAM.format("is", "row"), 1),
        (f"map(fun (s, y) => s * y, zip({HISTOGRAM.format('is', 'row')}, zs))", 1),
        (f"let s = {HISTOGRAM.format('map(to_i32, row)', 'row')} in map(fun y => y + s[0], s)", 1),
        (f"({HISTOGRAM.format('is', 'map(abs, row)')}, map(abs, {HISTOGRAM.format('is', 'row')}))", 1),
        (f"map(add, zip({HISTOGRAM.format('is', 'row')}, {HISTOGRAM.format('map(to_i32, row)', 'row')}))", 2),
        (HISTOGRAM.format("map(to_i32, row)", "map(abs, row)"), 1),
    ],
)
def test_elements_of_a_few_long_rows_are_combined_in_memory_at_once(body: str, folds: int):
    text = "program p(is: [i32]{0} in -1..11, xss: [[f32]{0}]3, zs: [f32]9) = map(fun row => {1}, xss)"
    long, short = (parse_program(text.format(length, body)) for length in (20_000, 6))
    assert with_atomics(long.body, 2) == long.body
    assert with_atomics(short.body, 3) == short.body
    made = with_atomics(long.body, 3)
    assert sum(isinstance(t, ir.ReduceByIndexAtomic) for t in ir.subterms(made)) == folds
    leg = Leg("atomic_places", made, 9, NVIDIA.mapping)
    assert leads_to(long.body, leg.phase, made)
    inputs = random_inputs(long, 0, "integer")
    assert equal_values(evaluate(long.body, inputs), evaluate(made, inputs))


@pytest.mark.parametrize(
    ("place", "stays"),
    [("map(to_i32, {})", False), ("map(fun x => reduce(add, to_i32(x), generate(5, id)), {})", True)],
    ids=["calculated", "folded"],
)
def test_places_that_are_calculated_need_no_array(place: str, stays: bool):
    one = f"reduceByIndex(add, fill(9, 1.0), {place.format('xs')}, xs)"
    few = f"map(fun row => reduceByIndex(add, fill(9, 1.0), {place.format('row')}, row), split(20000, ys))"
    program = parse_program(f"program p(xs: [f32]12, ys: [f32]60000) = ({one}, {few})")
    made = with_atomics(program.body, 3)
    folds = [t for t in ir.subterms(made) if isinstance(t, ir.ReduceByIndexAtomic)]
    computed = [t for fold in folds for t in ir.subterms(fold.array) if isinstance(t, ir.Call | ir.Reduce)]
    assert len(folds) == 2
    assert bool(computed) == stays


@pytest.mark.parametrize(
    "body",
    [
        "reduceByIndex(fun (a, x) => x, fill(9, 1.0), is, xs)",
        "reduceByIndex(fun (a, x) => a - x, fill(9, 1.0), is, xs)",
        "map(fun row => reduceByIndex(add, fill(9, 1.0), fill(4, 2), row), split(4, xs))",
        "reduceByIndex(fun ((a, b), (x, y)) => (a + y, b + x), fill(9, (0.0, 0.0)), is, zip(xs, xs))",
        "reduceByIndex(fun ((a, b), (x, y)) => (a + x, b - y), fill(9, (0.0, 0.0)), is, zip(xs, xs))",
        "reduceByIndex(and, fill(9, true), is, map(fun x => x > 0.5, xs))",
    ],
)
def test_elements_that_no_device_combines_in_memory_are_left(body: str):
    program = parse_program(f"program p(is: [i32]12, xs: [f32]12) = {body}")
    assert with_atomics(program.body) == program.body


def test_a_variable_of_two_lets_stands_for_neither():
    text = "let k = map(fun x => select(x > 0.5, 1, 0), xs) in reduceByIndex(add, fill(9, 1.0), {}, xs)"
    kept = "map(fun (k, p) => select(k == 1, p, -1), zip(k, scanExclusive(add, 0, k)))"
    body = parse_program(f"program p(xs: [f32]12) = {text.format(kept)}").body
    assert distinct_in(body)
    other = parse_program(f"program p(xs: [f32]12) = {text.format(kept).replace('1, 0)', '2, 3)')}").body
    assert distinct_in(ir.MakePair(body, other)) == {}


def test_of_elements_with_one_place_the_first_counts():
    given = np.array([[3, 1, 3, -1, 1], [0, 0, 0, 2, 2]], np.int32)
    assert without_repeats(given, 1).tolist() == [[3, 1, -1, -1, -1], [0, -1, -1, 2, -1]]
    assert without_repeats(given.T, 0).T.tolist() == without_repeats(given, 1).tolist()


def test_what_a_low_level_program_leaves_open_is_said():
    text = (
        "program p(xs: [f32]8, is: [i32]8) = reduceByIndexGlb(fun (i, x) => {}, fun (a, (i, x)) => x, xs, zip({}, xs))"
    )
    assert doubtful_in(parse_program(text.format("i", "is")).body)
    assert not doubtful_in(parse_program(text.format("7 - i", "generate(8, id)")).body)
    assert distinct_places(parse_program("program p(is: [i32]8) = is").body) is None
