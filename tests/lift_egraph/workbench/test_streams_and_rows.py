"""Programs of several stages on streams, uneven rows and graphs, beside loops in Python: interpreted, as they are
searched, and as kernels; at lengths of one element and at odd ones, on whole numbers of any size and on infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from lift_egraph.api import Runner, find_device, naive_term, parse_program, random_inputs, run, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.language import ir
from lift_egraph.meaning.values import Value, leaves_of
from lift_egraph.records.searched import as_searched
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn

A = np.ndarray
WRAPS = 1 << 32


def segmented_sums(flags: A, xs: A) -> A:
    made, total = np.empty(len(xs), np.int32), 0
    for i, (flag, x) in enumerate(zip(flags.tolist(), xs.tolist(), strict=True)):
        total = x if flag else total + x
        made[i] = np.uint32(total % WRAPS).view(np.int32)
    return made


def runs(xs: A) -> tuple[A, A, int]:
    values, counts, count = np.zeros(len(xs), np.int32), np.zeros(len(xs), np.int32), 0
    for i, x in enumerate(xs):
        count += i == 0 or x != xs[i - 1]
        values[count - 1] = x
        counts[count - 1] += 1
    return values, counts, count


def sorted_by_bit(keys: A, bit: A) -> A:
    return np.array(sorted(keys.tolist(), key=lambda k: k >> int(bit) & 1), np.uint32)


def line(ps: A, qs: A) -> A:
    made, total = np.empty(len(ps), np.int32), 1
    for i, (p, q) in enumerate(zip(ps.tolist(), qs.tolist(), strict=True)):
        total = (p * total + q) % WRAPS
        made[i] = np.uint32(total).view(np.int32)
    return made


def row_sums(starts: A, xs: A) -> A:
    ends = pairwise(starts.tolist())
    parts = [xs[max(low, 0) : max(high, 0)] if low < high else xs[:0] for low, high in ends]
    return np.array([part.sum(dtype=np.int32) for part in parts], np.int32)


def bands(starts: A, cols: A) -> tuple[int, A]:
    rows = [cols[low:high] for low, high in pairwise(starts)]
    widths = np.array([row.max() - row.min() if len(row) else 0 for row in rows], np.int32)
    return widths.max(), widths


def levels(sources: A, targets: A, level: A) -> tuple[A, int]:
    for _ in range(3):
        reached = np.minimum(level[sources] + 1, 1000)
        level = level.copy()
        np.minimum.at(level, targets, reached)
    return level, (level < 1000).sum()


def largest(places: A, xs: A) -> A:
    made = np.full(9, -np.inf, np.float32)
    for place, x in zip(places.tolist(), xs.tolist(), strict=True):
        if 0 <= place < len(made):
            made[place] = max(made[place], x)
    return made


def columns(text: A) -> tuple[A, A]:
    column, lengths, now, row = np.zeros(len(text), np.int32), np.zeros(len(text), np.int32), 0, 0
    for i, letter in enumerate(text):
        column[i] = now
        lengths[row] += letter != 10
        now, row = (0, row + 1) if letter == 10 else (now + 1, row)
    return column, lengths


def numbers(text: A) -> A:
    made, value = np.empty(len(text), np.int32), 0
    for i, letter in enumerate(text.tolist()):
        value = (value * 10 + letter) % WRAPS if letter < 10 else 0
        made[i] = np.uint32(value).view(np.int32)
    return made


def whole_numbers_packed(flags: A) -> A:
    return np.packbits(flags.reshape(-1, 32), axis=1, bitorder="little").view(np.uint32)[:, 0]


STREAM = ({"N": 1}, {"N": 2}, {"N": 67})
ROWS = ({"M": 1, "K": 1}, {"M": 5, "K": 3}, {"M": 37, "K": 101})
PROGRAMS: dict[Callable[..., Any], tuple[str, tuple[dict[str, int], ...]]] = {
    segmented_sums: ("""program kernel(global: [bool]N, float4: [i32]N) =
        map(fun (f, v) => v, scan(
          fun ((f1, v1), (f2, v2)) => (f1 || f2, if f2 then v2 else v1 + v2), (false, 0), zip(global, float4)))""",
        STREAM),
    runs: ("""program runs(xs: [i32]N in -1..1) =
        let start = generate(N, fun i => if i == 0 then 1 else (if xs[i] != xs[i - 1] then 1 else 0)) in
        let ids = map(fun v => v - 1, scan(add, 0, start)) in
        (reduceByIndex(fun (a, b) => b, fill(N, 0), ids, xs), reduceByIndex(add, fill(N, 0), ids, fill(N, 1)),
          ids[N - 1] + 1)""", STREAM),
    sorted_by_bit: ("""program radix(keys: [u32]N, bit: u32 in 0..32) =
        let zero = map(fun k => if bit_and(shift_right(k, bit), 1) == 0 then 1 else 0, keys) in
        let before = scanExclusive(add, 0, zero) in
        let total = reduce(add, 0, zero) in
        let places = generate(N, fun i => if zero[i] == 1 then before[i] else total + i - before[i]) in
        reduceByIndex(fun (a, b) => b, fill(N, 0u32), places, keys)""", STREAM),
    line: ("program local(p: [i32]N, s: [i32]N) = scanSeq(fun (c, (p, s)) => p * c + s, 1, zip(p, s))", STREAM),
    row_sums: ("""program sums(starts: [i32](M + 1) in -9..K + 9, xs: [i32]K) =
        map(fun w => reduceRange(add, 0, w[0], w[1], xs), slide(2, 1, starts))""", ROWS),
    bands: ("""program bands(starts: [i32](M + 1) in offsets(K), cols: [i32]K in 0..N) where N = 88 =
        let widths = map(
          fun w =>
            let (low, high) = reduceRange(fun ((a, b), (c, d)) => (min(a, c), max(b, d)), (2147483647, -2147483648),
              w[0], w[1], zip(cols, cols)) in
            if low > high then 0 else high - low,
          slide(2, 1, starts)) in
        (reduce(max, 0, widths), widths)""", ROWS),
    levels: ("""program levels(from: [i32]K in 0..M, to: [i32]K in 0..M, level: [i32]M in 0..1001) =
        let out = iterate(3, fun level =>
          reduceByIndex(min, level, to, map(fun v => min(v + 1, 1000), lookup(from, level))), level) in
        (out, reduce(add, 0, map(fun v => if v < 1000 then 1 else 0, out)))""", ROWS),
    largest: ("""program largest(places: [i32]N in -3..12, xs: [f32]N) =
        reduceByIndex(max, fill(9, -inf), places, xs)""", STREAM),
    columns: ("""program columns(private: [u8]N in 8..14) =
        let line = scanExclusive(add, 0, map(fun v => if v == 10 then 1 else 0, private)) in
        (scanExclusiveSeq(fun (c, v) => if v == 10 then 0 else c + 1, 0, private),
          reduceByIndex(add, fill(N, 0), line, map(fun v => if v == 10 then 0 else 1, private)))""", STREAM),
    numbers: ("""program numbers(t: [i32]N in 0..14) =
        scanSeq(fun (v, c) => if c < 10 then v * 10 + c else 0, 0, t)""", STREAM),
    whole_numbers_packed: ("""program packed(tid: [bool]N) =
        reduceByIndex(bit_or, fill(N / 32, 0u32), generate(N, fun i => i / 32),
          map(fun (f, i) => if f then shift_left(1u32, to_u32(i % 32)) else 0u32, zip(tid, generate(N, id))))""",
        ({"N": 32}, {"N": 96})),
}  # fmt: skip
CASES = [pytest.param(f, at, id=f"{f.__name__}-{at}") for f, (_, sizes) in PROGRAMS.items() for at in sizes]


def inputs_of(program: ir.Program) -> Iterator[dict[str, Value]]:
    yield random_inputs(program, 0, "any")
    given = random_inputs(program, 1)
    yield {name: _with_infinities(value) for name, value in given.items()}


def _with_infinities(value: Value) -> Value:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value.reshape(-1)[::3] = np.inf
    return value


def equal(found: Value, wanted: Any) -> bool:
    leaves = _flat(wanted)
    return all(np.array_equal(a, b) for a, b in zip(leaves_of(found), leaves, strict=True))


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize(("reference", "sizes"), CASES)
def test_they_mean_what_loops_compute(reference: Callable[..., Any], sizes: dict[str, int]):
    source = parse_program(PROGRAMS[reference][0])
    special, searched = specialise(source, sizes), specialise(as_searched(source, sizes), sizes)
    for inputs in inputs_of(special):
        wanted = reference(*inputs.values())
        assert equal(run(special, inputs), wanted)
        assert equal(run(searched, inputs), wanted)


@in_turn(4)
@needs_opencl
@pytest.mark.parametrize(("reference", "sizes"), CASES)
def test_their_kernels_compute_the_same(reference: Callable[..., Any], sizes: dict[str, int]):
    program = specialise(as_searched(parse_program(PROGRAMS[reference][0]), sizes), sizes)
    plan = compile_program(naive_term(program), POCL)
    with Runner(find_device("Portable")) as runner:
        for inputs in inputs_of(program):
            runner.load_inputs("inputs", inputs)
            assert equal(runner.run(plan, "inputs"), reference(*inputs.values()))
