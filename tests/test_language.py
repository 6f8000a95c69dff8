"""What people write, from the text to a kernel's results: each piece of the language against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from lift_egraph.api import alpha_equal, naive_term, parse_program, print_program, random_inputs, run, specialise
from lift_egraph.language import ir
from lift_egraph.meaning.values import leaves_of
from tests.codegen.corpus.harness import Bench, Case
from tests.lift_egraph.egraph.test_sorts import there_and_back


def _elements(xs: Any, rows: Any, cols: Any, k: int) -> Any:
    return xs[cols] * xs[k + 1] + rows[cols].sum(1) + xs[0] - xs[9] + rows[cols, k]


def _compared(a: Any, b: Any) -> Any:
    rows = [list(zip(x, y, z, strict=True)) for x, (y, z) in (a, b)]
    pairs = list(zip(*rows, strict=True))
    chosen = [p if p > q else (q[0] + 1, *q[1:]) for p, q in pairs]
    flags = [np.array(f) for f in zip(*((p < q, p <= q, p == q, p != q) for p, q in pairs), strict=True)]
    x, y, z = map(np.array, zip(*chosen, strict=True))
    return (flags[0], (flags[1], (flags[2], flags[3]))), (x, (y, z))


def _integers(x: Any, y: Any, z: Any, w: Any) -> Any:
    toward_zero = [int(abs(v) // 3 * (-1 if v > 0 else 1)) for v in map(int, w * 5000000000)]
    found: Any = (np.fmod(w, 1000), (np.minimum(x, y), w.astype(np.uint8)))
    found = z // np.uint32(2**32 - 1), (np.array(toward_zero) + 64, found)
    return x * 3 + y, (x - y // 7, (-x % 5, (z * z // (x + np.uint32(1)), found)))


def _bits(a: Any, b: Any, c: Any) -> Any:
    """In whole numbers of any length: what is shifted out is lost, the sign stays, counts are modulo the width."""
    wide, n, counts = a.astype(np.int64), b.astype(np.int64), [int(v) % 32 for v in b]
    left = [(int(v) << k) & 0xFFFFFFFF for v, k in zip(wide, counts, strict=True)]
    right = [int(v) >> k for v, k in zip(wide, counts, strict=True)]
    bytes_ = [((int(v) << 3) & 0xFF) ^ (0xFF - int(v)) for v in c]
    signed = np.array(left, np.uint32).astype(np.int32)
    return signed, (np.array(right), (((wide & n) | 5) ^ ~n, (np.array(bytes_), np.bitwise_xor.reduce(a))))


def _chain(x: Any, length: int) -> Any:
    values = [x]
    for i in range(1, length):
        values.append(values[i - 1] * np.float32(0.5) + values[max(0, i - 2)])
    return values[-1]


# Inputs are drawn from the ranges: `inputs["x"]` is an array, or nested pairs of arrays.
EXAMPLES: dict[str, tuple[str, Callable[..., Any]]] = {
    "sizes as values": (
        "(A: [[f32]K]8) where K = 6 = zip(map(fun row => reduce(add, 0.0, row) / K, A), generate(8, fun i => i > K))",
        lambda A: (A.sum(1) / 6, np.arange(8) > 6),
    ),
    "a size that no input has": (
        "(a: f32) where W = 12 = generate(W, fun i => select(i == W - 1, a, to_f32(i) / W))",
        lambda a: np.where(np.arange(12) == 11, a, np.arange(12) / np.float32(12)),
    ),
    "a local function": (
        "(xs: [f32]8, ys: [i32]8) = let sq = fun v => v * v in let both = fun (a, b) => (sq(a), sq(b)) in "
        "let f = map(both) in f(zip(xs, ys))",
        lambda xs, ys: (xs * xs, ys * ys),
    ),
    "bits": (
        "(a: [i32]97 in -2000000000..2000000000, b: [i32]97 in -70..70, c: [u8]97 in 0..255) = let f = bit_xor in ("
        "map(shift_left, zip(a, b)), map(shift_right, zip(a, b)), "
        "map(fun (x, y) => f(bit_or(bit_and(x, y), 5), bit_not(y)), zip(a, b)), "
        "map(fun x => bit_xor(shift_left(x, 3), bit_not(x)), c), reduce(bit_xor, 0, a))",
        _bits,
    ),
    "elements by index": (
        "(xs: [f32]N in 1..9, A: [[f32]4]N, cols: [i32]8 in -2..12, k: i32 in 0..4) where N = 10 = "
        "map(fun c => xs[c] * xs[k + 1] + reduce(add, xs[0], A[c]) - xs[N - 1] + A[c][k], cols)",
        lambda xs, A, cols, k: _elements(xs, A, np.clip(cols, 0, 9), k),
    ),
    "tuples are compared and selected": (
        "(a: [(i32, (f32, i32))]64, b: [(i32, (f32, i32))]64) = map(fun (p, q) => "
        "((p < q, p <= q, p == q, p != q), select(p > q, p, (get(0, q) + 1, rest(q)))), zip(a, b))",
        _compared,
    ),
    "the place of the largest": (
        "(xs: [f32]N) where N = 100 = reduce(fun (p, q) => select(get(0, p) >= get(0, q), p, q), (-inf, 0), "
        "zip(xs, generate(N, id)))",
        lambda xs: (xs.max(), xs.argmax()),
    ),
    "the least and the greatest of tuples, with their places": (
        "(xs: [i32]N in 0..20) where N = 100 = let both = zip(xs, generate(N, id)) in "
        "(reduce(min, (99, N), both), reduce(fun (p, q) => max(q, p), (-1, -1), both))",
        lambda xs: ((xs.min(), xs.argmin()), (xs.max(), 99 - xs[::-1].argmax())),
    ),
    "a fold": (
        "(A: [[f32]6]16 in -2..2) = map(fun row => reduce(fun ((n, s), x) => "
        "(n + select(x > 0.0, 1, 0), s + x), (0, 0.0), row), A)",
        lambda A: ((A > 0).sum(1), A.sum(1)),
    ),
    "counts before": (
        "(xs: [[f32]9]4) = map(scanExclusive(fun (n, x) => n + select(x > 0.0, 1, 0), 0), xs)",
        lambda xs: (xs > 0).cumsum(1) - (xs > 0),
    ),
    "a running count": (
        "(xs: [[f32]9]4) = map(scan(fun (n, x) => n + select(x > 0.0, 1, 0), 0), xs)",
        lambda xs: (xs > 0).cumsum(1),
    ),
    "three dimensions": (
        "(A: [[[f32]5]4]3) = (map3d(fun w => w[0][1][2] + w[2][1][1], slide3d(3, 1, pad3d(1, 1, constant(0.5), A))), "
        "map3d(abs, pad3d(1, 0, wrap, A)))",
        lambda A: (
            np.pad(A, 1, constant_values=0.5)[:-2, 1:-1, 2:] + np.pad(A, 1, constant_values=0.5)[2:, 1:-1, 1:-1],
            np.abs(np.pad(A, [(1, 0)] * 3, mode="wrap")),
        ),
    ),
    "bytes and words": (
        "(x: [u8]N in 0..256, y: [u8]N in 0..256, z: [u32]N in 0..4294967296, w: [i64]N in -4294967296..4294967296) "
        "where N = 64 = map(fun (x, y, z, w) => (x * 3u8 + y, x - y / 7u8, -x % 5u8, z * z / (to_u32(x) + 1u32), "
        "z / 4294967295u32, w * 5000000000i64 / -3i64 + N, w % 1000i64, to_f32(select(x < y, x, y)), to_u8(w)), "
        "zip(x, y, z, w))",
        _integers,
    ),
    "sums of bytes": (
        "(x: [[u8]9]8 in 0..256) = "
        "map(fun row => (reduce(max, 0u8, row), reduce(fun (s, x) => s + to_u32(x), 0u32, row)), x)",
        lambda x: (x.max(1), x.sum(1, dtype=np.uint32)),
    ),
    "halves": (
        "(x: [f16]N in 0.25..4, k: f16 in 1..3, y: [f32]N) where N = 64 = "
        "(map(fun (x, y) => (sqrt(x * k) / 3.0f16 - to_f16(y), to_f32(x) * y), zip(x, y)), reduce(max, -inf16, x), "
        "pad(1, 1, constant(0.1f16), x))",
        lambda x, k, y: (
            (np.sqrt(x * k) / np.float16(3) - y.astype(np.float16), x.astype(np.float32) * y),
            (x.max(), np.pad(x, 1, constant_values=np.float16(0.1))),
        ),
    ),
    "one loop": ("(p: [f32]9, x: f32 in 0..1) = reduce(fun (s, a) => s * x + a, 0.0, p)", np.polyval),
    "a chain of lets": (
        "(xs: [f32]8 in 0..1) = map(fun x => let x0 = x in "
        + "".join(f"let x{i} = x{i - 1} * 0.5 + x{max(0, i - 2)} in " for i in range(1, 100))
        + "x99, xs)",
        lambda xs: _chain(xs, 100),
    ),
}


@cache
def program(name: str) -> ir.Program:
    return parse_program(f"program p{EXAMPLES[name][0]}")


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_printed_and_read_again(name: str) -> None:
    again = parse_program(text := print_program(program(name)))
    assert alpha_equal(again.body, program(name).body)
    assert print_program(again) == text


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_interpreter_agrees_with_numpy(name: str) -> None:
    special = specialise(program(name))
    inputs = random_inputs(special, kind="integer")  # so that some are equal
    found, expected = run(special, inputs), EXAMPLES[name][1](**inputs)
    for a, b in zip(leaves_of(found), leaves_of(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3 if a.dtype == np.float16 else 1e-5)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if "chain" not in name])
def test_the_e_graph_gives_it_back(name: str) -> None:
    term = specialise(program(name)).body
    assert alpha_equal(there_and_back(term), term)


def test_kernels_are_right(benches: Callable[[str], Bench]) -> None:
    cases = [Case.of(naive_term(specialise(program(name)))) for name in EXAMPLES]
    outcomes = dict(zip(EXAMPLES, benches("pocl").run(cases), strict=True))
    assert {name: o for name, o in outcomes.items() if o.kind != "right"} == {}
