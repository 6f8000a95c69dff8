"""Sizes as values: in scalar expressions of every type, in functions of iterates, and as arguments of kernels."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_open
from lift_egraph.codegen.devices import POCL
from lift_egraph.errors import LiftError, SizeProblem
from lift_egraph.language import build as b, ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.language.types import F32
from lift_egraph.meaning.interp import run
from lift_egraph.meaning.values import leaves_of


def test_a_size_takes_the_type_beside_it() -> None:
    text = """program f(A: [[f32]K]N, x: f64) where N = 2, K = 4 =
      (map(fun row => reduce(add, 0.0, row) / (K - 1), A),
       generate(N, fun i => select(i == N - 1, -N, i * (N / 2))), x * K, N)"""
    program = parse_program(text)
    assert parse_program(print_program(program)) == program
    inputs = {"A": np.float32([[1, 2, 3, 3], [6, 6, 6, 6]]), "x": np.float64(0.5)}
    means, (numbers, (scaled, size)) = run(specialise(program, {}), inputs)
    assert (means.tolist(), numbers.tolist(), scaled, size) == ([3, 8], [0, -2], 2.0, 2)


def test_a_whole_number_takes_the_type_beside_it() -> None:
    text = """program f(x: [f32]N, b: [u8]N, k: [i64]N) where N = 2 =
      (map(fun v => max(0, 2 * v - 1) / 4 + sqrt(N + 2) + exp(0), x), map(fun v => min(v + 1, 255), b),
       map(fun v => v - 3000000000, k), reduce(max, 0, x), reduce(fun (n, v) => n + select(v > 0, 1, 0), 0, x),
       map(fun w => w[0] + w[1], slide(2, 1, pad(1, 0, constant(7), x))), 7 / 2)"""
    program = parse_program(text)
    assert parse_program(print_program(program)) == program
    inputs = {"x": np.float32([-1, 2.5]), "b": np.uint8([7, 254]), "k": np.int64([1, 2])}
    floats, (small, (large, (most, (count, (padded, quotient))))) = run(specialise(program, {}), inputs)
    assert (floats.tolist(), small.tolist(), large.tolist()) == ([3, 4], [8, 255], [-2999999999, -2999999998])
    assert (most, count, padded.tolist(), quotient) == (2.5, 1, [6, 1.5], 3)
    with pytest.raises(LiftError, match="256 is beyond the range of u8"):
        parse_program("program f(b: u8) = b + 256")


def test_a_number_with_a_point_takes_the_type_of_floats_beside_it() -> None:
    text = """program f(x: [f64]N) where N = 2 =
      let h = 0.1 in (map(fun v => -h * v + max(0.3, v / 0.7), x), reduce(min, inf, x), map(fun v => h * f32(v), x))"""
    program = parse_program(text)
    assert parse_program(print_program(program)) == program
    x = np.float64([0.1, 2.5])
    doubles, (least, floats) = run(specialise(program, {}), {"x": x})
    assert (doubles.tolist(), least) == ((-0.1 * x + np.maximum(0.3, x / 0.7)).tolist(), 0.1)
    assert floats.tolist() == (np.float32(0.1) * np.float32(x)).tolist()
    with pytest.raises(LiftError, match="got f32, i32; cast with to_f32"):
        parse_program("program f(k: i32) = 0.5 * k")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("reduce(fun (a, v) => a + v * v, 0.0, x)", "reduce(fun (a, v) => a + v * v, 0.0f64, x)"),
        (
            "scanSeq(fun ((a, n), v) => (a + v, n * 0.5), (0.0, 1.0), x)",
            "scanSeq(fun ((a, n), v) => (a + v, n * 0.5f64), (0.0f64, 1f64), x)",
        ),
        (
            "reduceSeq(fun (((a, b, c), (d, e, f)), v) => ((a + v, b * v, c - v), (a * v, b + v, c * v)), "
            "((0, 1, 0), (2, 0, 1)), x)",
            "reduceSeq(fun (((a, b, c), (d, e, f)), v) => ((a + v, b * v, c - v), (a * v, b + v, c * v)), "
            "((0f64, 1f64, 0f64), (2f64, 0f64, 1f64)), x)",
        ),
        ("reduceByIndex(add, fill(4, 0.0), k, x)", "reduceByIndex(add, fill(4, 0.0f64), k, x)"),
        ("reduceSeq(fun (a, v) => a + f32(v), 0.0, x)", "reduceSeq(fun (a, v) => a + f32(v), 0f32, x)"),
    ],
)
def test_numbers_that_a_fold_starts_from_are_doubles_where_its_function_needs_them(written: str, meant: str) -> None:
    head = "program f(x: [f64]N, k: [i32]N) where N = 8 = "
    assert alpha_equal(parse_program(head + written).body, parse_program(head + meant).body)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("reduceSeq(fun (a, v) => a + v * v, 0, x)", "reduceSeq(fun (a, v) => a + v * v, 0f32, x)"),
        ("scanSeq(fun (a, v) => max(a, v), -1, x)", "scanSeq(fun (a, v) => max(a, v), -1f32, x)"),
        (
            "reduceSeq(fun ((a, n), v) => (a + v, n + 1), (0, 0), x)",
            "reduceSeq(fun ((a, n), v) => (a + v, n + 1), (0f32, 0), x)",
        ),
        (
            "reduceSeq(fun ((a, b), v) => (a * v, b + f64(v)), (1, 0.0), x)",
            "reduceSeq(fun ((a, b), v) => (a * v, b + f64(v)), (1f32, 0f64), x)",
        ),
        ("reduce(fun (a, b) => a + b, 0, k)", "reduce(fun (a, b) => a + b, 0i64, k)"),
        ("reduceByIndex(add, fill(4, 0), lookup(map(to_i32, k), fill(9, 1)), x)",
         "reduceByIndex(add, fill(4, 0f32), lookup(map(to_i32, k), fill(9, 1)), x)"),
        ("concat(fill(1, 0), x)", "concat(fill(1, 0f32), x)"),
        ("concat(slice(0, 2, x), fill(2, 0))", "concat(slice(0, 2, x), fill(2, 0f32))"),
    ],
)  # fmt: skip
def test_whole_numbers_that_a_pattern_starts_from_have_the_types_that_its_function_needs(
    written: str, meant: str
) -> None:
    """No more of them than need be: a count beside a sum of floats stays whole."""
    head = "program f(x: [f32]N, k: [i64]N) where N = 8 = "
    assert alpha_equal(parse_program(head + written).body, parse_program(head + meant).body)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("v + (if v > 0 then 1 else 0)", "v + (if v > 0 then 1f64 else 0f64)"),
        ("max(v, if v > 0 then -1 else 0.5)", "max(v, if v > 0 then -1f64 else 0.5f64)"),
        ("if v > 9 then v else if v > 0 then 1 else 0", "if v > 9 then v else if v > 0 then 1f64 else 0f64"),
        ("(1 + 2 * 3) * v - 3.0 / 2", "(1f64 + 2f64 * 3f64) * v - 3f64 / 2f64"),
        ("v * sqrt(2) + pow(2, 0.5)", "v * sqrt(2f64) + pow(2f64, 0.5f64)"),
        ("v / sqrt(N) + (0.5 - 1.0 / N)", "v / sqrt(f64(N)) + (0.5f64 - 1f64 / f64(N))"),
        (
            "v / max(N - 1, 1) + (if v > 0 then N / 2 else 1)",
            "v / max(f64(N - 1), 1f64) + (if v > 0 then f64(N / 2) else 1f64)",
        ),
        ("v / (9 * 4 * N * N) + (2 * 3 - N) * v", "v / f64(36 * N * N) + f64(6 - N) * v"),
        (
            "let (s, n) = if v > 0 then (v, 1) else (0, 0) in if n > 0 then s else 0",
            "let (s, n) = if v > 0 then (v, 1) else (0f64, 0) in if n > 0 then s else 0f64",
        ),
        (
            "let (s, t) = if v > 0 then (v, 1 + 1) else if v > 1 then (0, -v) else (2, 3) in s * t",
            "let (s, t) = if v > 0 then (v, 1f64 + 1f64) else if v > 1 then (0f64, -v) else (2f64, 3f64) in s * t",
        ),
    ],
)
def test_what_is_made_of_numbers_takes_the_type_beside_it(written: str, meant: str) -> None:
    texts = [f"program f(x: [f64]N) where N = 8 = map(fun v => {body}, x)" for body in (written, meant)]
    first, second = (parse_program(text).body for text in texts)
    assert alpha_equal(first, second)
    with pytest.raises(LiftError, match="1:51: add needs arguments of one type, got i32, f32"):
        parse_program("program f(x: [i32]N) where N = 8 = map(fun v => v + (if v > 0 then 0.5 else 1.5), x)")


@pytest.mark.parametrize(
    ("element", "cast", "value"),
    [("u32", "u32(2891336453)", 2891336453), ("i64", "i64(-3000000000)", -3000000000),
     ("f64", "f64(123456789012)", 123456789012.0), ("f32", "f32(3000000000)", 3e9)],
)  # fmt: skip
def test_a_number_that_no_i32_is_may_be_cast(element: str, cast: str, value: float) -> None:
    text = f"program p(xs: [{element}]3) = map(fun x => x + {cast}, xs)"
    body = parse_program(text).body
    assert isinstance(body, ir.Map)
    assert [t.value for t in ir.subterms(body) if isinstance(t, ir.Literal)] == [value]
    assert type_of(body) == type_of(body.array)


def test_what_the_type_that_it_is_cast_to_cannot_hold_is_told() -> None:
    with pytest.raises(LiftError, match="5000000000 is beyond the range of u32"):
        parse_program("program p(xs: [u32]3) = map(fun x => x + u32(5000000000), xs)")


def test_numbers_with_a_point_are_halves_where_a_program_of_halves_would_not_fit_else() -> None:
    head, body = "program f(x: [f16]N) where N = 8 = let s = ", " in map(fun v => s * v, x)"
    first, second = (parse_program(head + s + body).body for s in ("1.0 / N", "1f16 / f16(N)"))
    assert alpha_equal(first, second)


def test_a_quotient_of_whole_numbers_stays_one() -> None:
    with pytest.raises(LiftError, match="1:57: mul needs arguments of one type, got i32, f64"):
        parse_program("program f(x: [f64]N) where N = 8 = map(fun v => (1 / 2) * v, x)")
    with pytest.raises(LiftError, match="mul needs arguments of one type, got f32, i32"):
        parse_program("program f(x: [i32]N) where N = 8 = map(fun v => 2 * 3.14 * v, x)")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("let f = fun (a, x) => a * x in map(fun v => f(2, v), x)", "map(fun v => 2f32 * v, x)"),
        ("let f = fun (n, w) => shift_left(w, n) + n in map(fun w => f(7, w), u)",
         "map(fun w => shift_left(w, 7u32) + 7u32, u)"),
        ("let f = fun (a: f32, x) => a * x in map(fun v => f(-2, v), x)", "map(fun v => -2f32 * v, x)"),
        ("let f = fun (xs, n) => reduce(add, 0.0, xs) / n in f(x, N)", "reduce(add, 0.0, x) / N"),
        ("let f = fun (op, x, n) => op(x, n) in map(fun v => f(fun (a, b) => a * b, v, 3), x)",
         "map(fun v => let y = v in y * 3f32, x)"),
        ("map(fun w => g(w, 7), u)", "map(fun w => shift_left(w, 7u32), u)"),
        ("map(fun w => bit_and(w, 0xFF00ff) - 0xau32, u)", "map(fun w => bit_and(w, 16711935u32) - 10u32, u)"),
    ],
)  # fmt: skip
def test_numbers_that_a_function_is_given_have_the_types_that_it_needs(written: str, meant: str) -> None:
    head = "function g(v: u32, n: u32) = shift_left(v, n)\nprogram f(x: [f32]N, u: [u32]N) where N = 8 = "
    inputs = {"x": np.arange(-2.5, 5, dtype=np.float32), "u": np.arange(8, dtype=np.uint32)}
    first, second = (run(specialise(parse_program(head + text)), inputs) for text in (written, meant))
    assert first.dtype == second.dtype
    np.testing.assert_array_equal(first, second)


def test_what_a_function_needs_of_a_number_it_may_not_have() -> None:
    head = "program f(x: [f32]N, u: [u32]N) where N = 8 = "
    with pytest.raises(LiftError, match="1:71: mul needs arguments of one type, got f32, i32"):
        parse_program(head + "let f = fun (a, v) => a * v in map(fun k => f(1.5, k), generate(N, id))")
    with pytest.raises(LiftError, match="g takes \\(u32, u32\\), but is given \\(u32, f32\\)"):
        parse_program("function g(v: u32, n: u32) = v + n\n" + head + "map(fun w => g(w, 1.0), u)")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a", "map(add, zip(x, map(fun v => a * v, x)))"),
        ("2.0", "map(add, zip(x, map(fun v => 2.0 * v, x)))"),
        ("x[0]", "let w = x[0] in map(add, zip(x, map(fun v => w * v, x)))"),
    ],
)
def test_no_let_stands_between_the_stages_that_local_functions_are(given: str, meant: str) -> None:
    head = "program f(x: [f32]N, a: f32) where N = 8 = "
    written = f"let scaled = fun w => map(fun v => w * v, x) in map(add, zip(x, scaled({given})))"
    assert alpha_equal(parse_program(head + written).body, parse_program(head + meant).body)


def test_a_component_of_a_tuple_is_written_as_an_element() -> None:
    head = "program f(x: [(f32, i32, f32)]N) where N = 8 = "
    written, meant = "map(fun t => t[0] * t[2], x)", "map(fun t => get(0, t) * get(2, t), x)"
    assert alpha_equal(parse_program(head + written).body, parse_program(head + meant).body)
    with pytest.raises(LiftError, match=r"a component of \(f32, i32, f32\) is one of 0 to 2, got 3"):
        parse_program(head + "map(fun t => t[3], x)")
    with pytest.raises(LiftError, match="is one of 0 to 2, got a value of the type i32"):
        parse_program(head + "map(fun t => t[t[1]], x)")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("let s = 1.0 / sqrt(2.0) in map(fun v => s * v, x)", "let s = 1.0f64 / sqrt(2f64) in map(fun v => s * v, x)"),
        ("let s = 1.0 / N in map(fun v => s * v, x)", "let s = 1.0f64 / N in map(fun v => s * v, x)"),
        (
            "map(fun (v, w) => v * w, zip(x, map(fun v => if v > 0 then 1.0 else 0.0, x)))",
            "map(fun (v, w) => v * w, zip(x, map(fun v => if v > 0 then 1.0f64 else 0f64, x)))",
        ),
    ],
)
def test_numbers_are_doubles_where_they_would_not_fit_else(written: str, meant: str) -> None:
    head = "program f(x: [f64]N) where N = 8 = "
    assert alpha_equal(parse_program(head + written).body, parse_program(head + meant).body)


def test_what_fits_with_neither_is_refused_as_it_was_written() -> None:
    with pytest.raises(LiftError, match="1:68: mul needs arguments of one type, got f64, f32"):
        parse_program("program f(x: [f64]N, y: f32) = let s = 1.0 / 3.0 in map(fun v => v * s * y, x)")


def test_a_let_names_a_size() -> None:
    """And a whole number, which takes the type beside it; an index function has names of its own."""
    text = """program f(x: [f32]N) where N = 12 =
      let k = 3 in let half = N / 2 in
      (map(fun c => reduce(add, k, c) / half, split(half, iterate(k, fun y => map(fun v => v * k, y), x))),
       gather(k => n - 1 - k, slice(0, k, x)))"""
    plain = """program f(x: [f32]N) where N = 12 =
      (map(fun c => reduce(add, 3, c) / (N / 2), split(N / 2, iterate(3, fun y => map(fun v => v * 3, y), x))),
       gather(i => n - 1 - i, slice(0, 3, x)))"""
    assert alpha_equal(specialise(parse_program(text)).body, specialise(parse_program(plain)).body)


def test_a_size_says_how_often_something_is_done() -> None:
    text = "program f(x: [f32]N) where N = 12, steps = 3 = iterate(2 * steps - 1, map(abs), x)"
    program = parse_program(text)
    assert alpha_equal(parse_program(print_program(program)).body, program.body)
    assert [specialise(program, sizes).body.times for sizes in ({}, {"steps": 4})] == [5, 7]
    with pytest.raises(LiftError, match="so 2 \\* steps - 1 cannot stay open"):
        specialise(program, keep=("steps",))
    with pytest.raises(LiftError, match="it takes a number of times, not the size N"):
        parse_program("program f(x: [f32]N) = iterate(N, fun (y: [f32]n) => slice(0, n / 2, y), x)")


def test_each_of_so_many_steps_may_change_the_length_by_as_much() -> None:
    text = """program tree(x: [f32](steps + 1)) where steps = 3 =
  iterate(steps, fun y => map(fun w => w[0] + w[1], slide(2, 1, y)), x)[0]"""
    tree = specialise(parse_program(text))
    assert run(tree, {"x": np.float32([1, 10, 100, 1000])}) == 1 + 3 * 10 + 3 * 100 + 1000
    with pytest.raises(LiftError, match="at\\(1\\) is outside an array of length 1"):
        parse_program(text.replace('[0]"', "").replace("x)[0]", "x)[1]"))


def test_what_does_not_fit_at_sizes_has_its_place() -> None:
    text = """function halves(xs: [f32]n) = join(split(2, xs))
program f(x: [f32]N, y: [f32]K) where N = 10, K = 10, W = 3 =
  let y = gather(i => (i + n - 1) % n, y) in
  (map(fun w => w[W - 1], slide(W, 1, x)),
    join(split(5, y)), halves(x))"""
    program = pickle.loads(pickle.dumps(parse_program(text, "f.lift")))
    assert program == parse_program(text)
    for sizes, place, message in (
        ({"W": 11}, "4:27", "slide: a window of 11 does not fit into an array of length 10"),
        ({"K": 9}, "5:10", "split(5) does not divide an array of length 9"),
        ({"N": 7}, "5:24", "split(2) does not divide an array of length 7"),
    ):
        with pytest.raises(SizeProblem) as caught:
            specialise(program, sizes)
        first, line, caret = str(caught.value).split("\n")
        assert first.startswith("f at ")
        assert f": f.lift:{place}: {message}" in first
        row, column = map(int, place.split(":"))
        assert line == "  " + text.split("\n")[row - 1]
        assert caret.index("^") == column + 1


def test_python_writes_the_term_first() -> None:
    @b.program(sizes={"W": 4})
    def ramp(a: F32):  # pyright: ignore
        return b.generate("W", lambda i: b.to_f32(i) * a / (nat("W") - 1))

    assert ramp == parse_program("program ramp(a: f32) where W = 4 = generate(W, fun i => to_f32(i) * a / (W - 1))")
    with pytest.raises(SizeProblem, match="beside a size, a term stands first"):
        nat("W") * ramp.inputs[0]  # pyright: ignore


def test_a_size_that_no_input_has() -> None:
    program = parse_program("program f(a: f32 in 0..V) where W = ?, V = 7 = generate(W, fun i => a)")
    assert print_program(program, 200).startswith("program f(a: f32 in 0..V) where V = 7, W = ? =\n")
    assert specialise(program, {"W": 3}).sizes == (("V", 7), ("W", 3))
    with pytest.raises(LiftError, match="f needs a value for the size W"):
        specialise(program)
    with pytest.raises(LiftError, match=re.escape("<text>:1:25: nothing has the size 'W'")):
        parse_program("program f(a: f32) where W = ? = a")


def test_the_size_of_an_iterate() -> None:
    program = parse_program(
        "program f(xs: [f32]8) = iterate(3, fun (h: [f32]n) => map(fun p => at(0, p) + at(1, p) * n, split(2, h)), xs)"
    )
    assert parse_program(print_program(program)) == program
    expected = np.ones(8, np.float32)
    while len(expected) > 1:
        expected = expected[::2] + len(expected) * expected[1::2]
    assert run(program, {"xs": np.ones(8, np.float32)}).tolist() == expected.tolist()


def test_names_of_binders_keep_away_from_sizes() -> None:
    xs = ir.Input("xs", b.array(F32, "N"))
    term = b.map_(lambda N: N + nat("N"), xs)
    program = ir.Program("f", (xs,), term)
    assert print_program(program) == "program f(xs: [f32]N) =\n  map(fun N1 => N1 + to_f32(N), xs)\n"


def test_a_value_beyond_i32() -> None:
    program = parse_program("program f(xs: [f32]N) = map(fun x => x / (N * N), xs)")
    with pytest.raises(SizeProblem, match="4294967296 as a value is beyond the range of i32"):
        specialise(program, {"N": 65536})
    opened = parse_program("program f(xs: [f32]N) = mapGlb(0, fun x => x / (N * N), xs)")
    plan = compile_open(specialise(opened, keep=["N"]), POCL)
    assert "/ (float)" in plan.source
    with pytest.raises(SizeProblem, match=re.escape("N * N as a value is beyond the range of i32")):
        plan.at({"N": 65536})


def interpreted_alike(head: str, written: str, meant: str) -> None:
    inputs = {"x": np.float32([0.5, 4, 9, 2]), "y": np.float32([1, -2, 3, -4]), "k": np.uint8([3, 0, 9])}
    first, second = (specialise(parse_program(f"{head} = {text}")) for text in (written, meant))
    assert type_of(first.body) == type_of(second.body)
    assert alpha_equal(parse_program(print_program(first)).body, first.body)
    for ours, theirs in zip(leaves_of(run(first, inputs)), leaves_of(run(second, inputs)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("map(fun a => iterate(3, fun y => 0.5 * (y + a / y), a), x)",
         "map(fun a => iterate(3, map(fun y => 0.5 * (y + a / y)), fill(1, a))[0], x)"),
        ("map(fun a => iterate(3, fun (y, n) => (y * a, n + 1), (1, 0)), x)", "map(fun a => (1.0 * a * a * a, 3), x)"),
        ("iterate(2, fun (v: [f32]n) => map(fun (a, b) => a + b / n, zip(v, y)), x)",
         "iterate(2, fun v => map(fun (a, b) => a + b / N, zip(v, y)), x)"),
        ("iterate(N, fun y => y + x[0], 0)", "x[0] + x[0] + x[0] + x[0]"),
        ("iterate(0, fun y => y + x[0], 7.5)", "7.5"),
        ("iterate(2, fun (u, v) => (v, map(add, zip(u, v))), (x, y))",
         "let s = map(add, zip(x, y)) in (s, map(add, zip(y, s)))"),
        ("let (u, v, w) = iterate(2, fun (u, v, w) => (v, w, u), (x, y, fill(N, 2))) in (u, v, w)",
         "(fill(N, 2.0), x, y)"),
        ("iterate(2, fun (u, s) => (map(fun a => a + s, u), s * 2), (x, 1.0))", "(map(fun a => a + 1 + 2, x), 4.0)"),
        ("let both = (x, y) in iterate(1, fun (u, v) => let w = map(neg, v) in (w, u), both)", "(map(neg, y), x)"),
    ],
)  # fmt: skip
def test_what_is_iterated_may_be_a_number_or_a_tuple(written: str, meant: str) -> None:
    interpreted_alike("program f(x: [f32]N, y: [f32]N, k: [u8]3) where N = 4", written, meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("map(zip, zip(split(2, x), split(2, y)))", "split(2, zip(x, y))"),
        ("map(zip, zip(split(2, x), split(2, y), split(2, x)))", "split(2, zip(x, y, x))"),
        ("map(concat, zip(split(2, x), split(2, y)))",
         "map(fun (a, b) => concat(a, b), zip(split(2, x), split(2, y)))"),
        ("map(reduce(add), zip(y, fill(N, x)))", "map(fun a => reduce(add, a, x), y)"),
        ("map(join . concat, zip(split(2, split(1, x)), split(2, split(1, y))))",
         "map(fun (a, b) => concat(a, b), zip(split(2, x), split(2, y)))"),
    ],
)  # fmt: skip
def test_a_tuple_gives_a_pattern_all_the_values_that_it_takes(written: str, meant: str) -> None:
    interpreted_alike("program f(x: [f32]N, y: [f32]N, k: [u8]3) where N = 4", written, meant)


def test_a_value_that_is_no_tuple_gives_a_pattern_too_few() -> None:
    head = "program f(x: [[f32]N]N) where N = 4 = "
    with pytest.raises(LiftError, match=r"map: zip takes 2 values or more, but is given \[f32\]N"):
        parse_program(head + "map(zip, x)")
    with pytest.raises(LiftError, match=r"concat takes 2 arguments \(first, second\), and has 1"):
        parse_program(head + "map(concat, x)")


def test_what_is_iterated_keeps_its_type() -> None:
    head = "program f(x: [f32]N) where N = 4 = "
    with pytest.raises(LiftError, match="1:36: iterate: the function must keep the type, it turns f32 into bool"):
        parse_program(head + "iterate(3, fun y => y > x[0], x[0])")
    with pytest.raises(LiftError, match=r"the function must keep the type, it turns \(\[f32\]N, \[f32\]N\) into"):
        parse_program(head + "iterate(3, fun (u, v) => u, (x, x))")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("if x[0] > 0 then x else y", "map(fun (a, b) => select(x[0] > 0, a, b), zip(x, y))"),
        ("if reduce(add, 0, x) > 0 then split(2, x) else split(2, y)", "split(2, x)"),
        ("if x[0] > 9 then zip(x, y) else zip(y, x)", "zip(y, x)"),
        ("map(fun i => x[i], k)", "lookup(map(to_i32, k), x)"),
        ("lookup(k, x)", "lookup(map(to_i32, k), x)"),
        ("reduceByIndex(add, x, k, fill(3, 1.0))", "reduceByIndex(add, x, map(to_i32, k), fill(3, 1.0))"),
    ],
)
def test_arrays_are_chosen_and_small_numbers_are_indices(written: str, meant: str) -> None:
    interpreted_alike("program f(x: [f32]N, y: [f32]N, k: [u8]3) where N = 4", written, meant)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("= x[-1]", r"at\(-1\) is outside an array of length N; the last element is at N - 1"),
        ("= x[to_i64(0)]", "the index of an element is an i32 or a size, got i64; cast with to_i32"),
        ("where half = N / 2 = x", "found 'N'; a size that others make is a value: let half = N / 2 in"),
        ("= if x[0] > 0 then x else slice(0, 2, x)", r"between values of one type, got \[f32\]N and \[f32\]2"),
    ],
)
def test_messages_about_elements_and_sizes(written: str, message: str) -> None:
    with pytest.raises(LiftError, match=message):
        parse_program(f"program f(x: [f32]N) {written}")
