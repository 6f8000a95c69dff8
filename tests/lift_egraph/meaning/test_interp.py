"""The interpreter against independent NumPy code and against a slow interpreter on lists."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lift_egraph.api import random_inputs, type_of
from lift_egraph.errors import InputProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.syntax import parse_program, parse_term
from lift_egraph.language.types import F32, F64, Pair, Vector, array
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.folds import fold_form
from lift_egraph.meaning.interp import evaluate, interpret, run
from lift_egraph.soundness.counterexamples import same_bits
from lift_egraph.soundness.random_terms import operator_on
from tests.depth import depth, in_turn
from tests.lift_egraph.meaning import oracle
from tests.lift_egraph.meaning.terms import parsed
from tests.strategies import programs

XS = ir.Input("xs", array(F32, 6))
PRODUCT = "map(fun row => map(fun col => reduce(add, 0.0, map(mul, zip(row, col))), transpose(B)), A)"
# a matrix product whose accumulator is a row of {n}
OUTER_PRODUCTS = """
    mapGlb(0, fun row =>
      reduceSeq(fun (total, a, line) => toPrivate(mapSeq(fun (x, y) => x + a * y, zip(total, line))),
        fill({n}, 0.0), zip(row, B)), A)
"""
FIVE_POINT = """
    map(fun line => map(fun w =>
      0.2 * at(1, at(0, w)) + 0.2 * at(0, at(1, w)) + 0.2 * at(1, at(1, w)) + 0.2 * at(2, at(1, w))
        + 0.2 * at(1, at(2, w)), line),
      slide2d(3, 1, pad2d(1, 1, clamp, A)))
"""


def ramp(*sizes: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(sizes)), dtype=np.float32).reshape(sizes)


def result(text: str, **inputs: np.ndarray):
    return evaluate(parsed(text, inputs), inputs)


def check(text: str, expected: np.ndarray, **inputs: np.ndarray) -> None:
    term = parsed(text, inputs)
    value = evaluate(term, inputs)
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(np.asarray(interpret(term, inputs, {}, Plain(), budget=1)), expected)


@settings(max_examples=depth(75, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(low_level=True, whole=True), st.sampled_from((1, 100, 1 << 26)))
def test_random_programs_agree_with_lists(program, budget):
    inputs = random_inputs(program)
    value = interpret(program.body, inputs, {}, Plain(), budget)
    lists = {item.name: oracle.to_lists(item.type, inputs[item.name]) for item in program.inputs}
    assert oracle.to_lists(type_of(program.body), value) == oracle.listed(program.body, lists, {})


@pytest.mark.parametrize(
    ("element", "operator", "start"),
    [
        ("(f32, i32)", "fun ((a, b), (c, d)) => (a + c, b * d)", "(0.0, 1)"),  # by component
        ("(f32, i32)", "fun ((a, b), (c, d)) => if c > a then (c, d) else (a, b)", "(0.0, 1)"),
        ("f32", "fun (a, c) => a * 0.5 + c", "0.5"),
        ("[f32]3", "fun (a, b) => map(add, zip(a, b))", "fill(3, 0.5)"),
        ("[f32]2", "fun (a, b) => map(fun (x, y) => max(y, x), zip(a, b))", "fill(2, 0.5)"),
        ("[f32]2", "fun (a, b) => map(fun (x, y) => x + 2.0 * y, zip(a, b))", "fill(2, 0.5)"),
        ("[(f32, i32)]2", "fun (a, b) => map(fun ((x, i), (y, j)) => (x + y, max(i, j)), zip(a, b))",
         "fill(2, (0.5, 1))"),
    ],
)
def test_folds_by_index_of_any_operator_agree_with_lists(element, operator, start):
    text = f"""program f(indices: [[i32]N]M in -2..8, xs: [{element}]N) where N = 37, M = 3 =
      map(fun row => reduceByIndex({operator}, fill(5, {start}), row, xs), indices)"""
    program = specialise(parse_program(text))
    inputs = random_inputs(program)
    lists = {item.name: oracle.to_lists(item.type, inputs[item.name]) for item in program.inputs}
    assert oracle.to_lists(type_of(program.body), run(program, inputs)) == oracle.listed(program.body, lists, {})


def test_sums_of_arrays_by_index_are_bounded_in_any_order():
    text = """program f(xs: [[f32]16]2000, places: [i32]2000 in 0..100) =
      reduceByIndex(fun (a, b) => map(add, zip(a, b)), fill(100, fill(16, 0.0)), places, xs)"""
    inputs = random_inputs(parse_program(text), 0, "float")
    value, bound = evaluate_bounded(parse_program(text).body, inputs)
    backwards = np.zeros((100, 16), np.float32)
    np.add.at(backwards, np.asarray(inputs["places"])[::-1], np.asarray(inputs["xs"])[::-1])
    apart = np.abs(np.asarray(value, np.float64) - backwards)
    assert (apart <= np.asarray(bound)).all()
    assert (np.asarray(bound) < 0.01).all()


class TestPatterns:
    @pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
    def test_map_reduce(self, n):
        x = ramp(n)
        check("map(fun x => x * x, xs)", x * x, xs=x)
        check("reduce(add, 10.0, xs)", np.float32(10 + x.sum()), xs=x)
        check("reduceSeq(min, 3.0, xs)", np.float32(min([3, *x])), xs=x)
        check("mapGlb(0, fun x => x * x, xs)", x * x, xs=x)

    def test_zip_pairs_components(self):
        text, x = "map(fun (x, y) => (y, x + y), zip(xs, xs))", ramp(4)
        first, second = result(text, xs=x)
        np.testing.assert_array_equal(first, x)
        np.testing.assert_array_equal(second, 2 * x)
        check(f"map(fun p => get(1, p), {text})", second, xs=x)

    def test_shapes(self):
        x = ramp(6)
        rows = x.reshape(3, 2)
        check("split(2, xs)", rows, xs=x)
        check("join(xs)", x, xs=rows)
        check("join(transpose(xs))", rows.T.ravel(), xs=rows)
        check("transpose(xs)", rows.T, xs=rows)
        check("slide(3, 1, xs)", np.stack([x[i : i + 3] for i in range(4)]), xs=x)
        check("slide(4, 2, xs)", np.stack([x[:4], x[2:]]), xs=x)
        check("at(2, xs)", np.float32(3), xs=x)
        check("fill(2, xs)", np.tile(ramp(3), (2, 1)), xs=ramp(3))

    def test_index_functions(self):
        x = ramp(6)
        check("gather(reverse, xs)", x[::-1], xs=x)
        check("gather(i => i / 2, xs)", x[[0, 0, 1, 1, 2, 2]], xs=x)
        check("scatter(i => (i + 1) % n, xs)", np.roll(x, 1), xs=x)
        with pytest.raises(SizeProblem, match="leaves an array of length 6"):
            evaluate(ir.Gather(ir.IndexFunction("i", nat("i") + 1), XS), {"xs": x})

    @pytest.mark.parametrize(("kind", "mode"), [("clamp", "edge"), ("mirror", "symmetric"), ("wrap", "wrap")])
    def test_pad(self, kind, mode):
        check(f"pad(2, 3, {kind}, xs)", np.pad(ramp(4), (2, 3), mode), xs=ramp(4))
        check(f"pad(1, 2, {kind}, xs)", np.pad(ramp(3, 2), ((1, 2), (0, 0)), mode), xs=ramp(3, 2))

    def test_pad_constant(self):
        check("pad(2, 0, constant(7.0), xs)", np.float32([7, 7, 1, 2]), xs=ramp(2))
        check("map(pad(0, 1, constant(7.0)), xs)", np.float32([[1, 2, 7], [3, 4, 7]]), xs=ramp(2, 2))
        check("pad(1, 1, constant(7.0), xs)", np.float32([7, 7]), xs=ramp(0))

    def test_generate_and_lookup(self):
        numbers = "generate(5, fun i => i - 1)"
        check(numbers, np.arange(-1, 4, dtype=np.int32))
        check(f"lookup({numbers}, xs)", np.float32([1, 1, 2, 3, 3]), xs=ramp(3))  # clamped
        check(f"map(fun row => lookup({numbers}, row), xs)", ramp(2, 3)[:, [0, 0, 1, 2, 2]], xs=ramp(2, 3))

    def test_iterate_halves(self):
        halves = "iterate({}, fun (a: [f32]k) => map(reduce(add, 0.0), split(2, a)), xs)"
        check(halves.format(3), np.float32([36]), xs=ramp(8))
        check(halves.format(0), ramp(8), xs=ramp(8))

    def test_let_and_capture(self):
        check("let y = 2.0 in map(fun x => x * y, xs)", 2 * ramp(3), xs=ramp(3))
        x = ir.Var("x", F32)
        assert evaluate(ir.Call("add", (x, x)), {}, {"x": np.float32(3)}) == 6

    def test_invariant_bodies_are_repeated(self):
        check("map(fun y => xs, ys)", np.float32([[1, 2]] * 3), xs=ramp(2), ys=ramp(3))


class TestVectors:
    def test_as_vector_takes_the_outer_axis(self):
        x = ramp(4, 3)
        assert type_of(parsed("asVector(2, xs)", {"xs": x})) == array(Vector(F32, 2), 2, 3)
        check("asVector(2, xs)", x.reshape(2, 2, 3).transpose(0, 2, 1), xs=x)
        check("asScalar(asVector(2, xs))", x, xs=x)

    def test_vectorize(self):
        check("asScalar(map(vectorize(4, fun x => x * x), asVector(4, xs)))", ramp(8) ** 2, xs=ramp(8))
        threes = np.full(8, 3, np.float32)
        check("asScalar(map(vectorize(4, fun x => 3.0), asVector(4, xs)))", threes, xs=ramp(8))

    def test_vector_arithmetic_with_scalars(self):
        check("map(fun v => v * 3.0, asVector(2, xs))", 3 * ramp(2, 2), xs=ramp(4))

    @pytest.mark.parametrize("pattern", ["reduce", "reduceSeq"])
    def test_vectorized_operator(self, pattern):
        text = f"{pattern}(vectorize(2, add), at(0, asVector(2, fill(2, 0.0))), asVector(2, xs))"
        check(text, np.float32([9, 12]), xs=ramp(6))

    def test_pairs_of_vectors(self):
        check("asScalar(map(vectorize(2, mul), asVector(2, zip(xs, xs))))", ramp(4) ** 2, xs=ramp(4))


class TestFolds:
    @pytest.mark.parametrize("n", [0, 1, 5, 40, 1000])
    def test_general_operator_from_left_to_right(self, n):
        check("reduceSeq(sub, 1.0, xs)", np.float32(1 - ramp(n).sum()), xs=ramp(n))

    @pytest.mark.parametrize("n", [1, 5, 40, 1000])
    def test_reduce_seq_rounds_from_left_to_right(self, n):
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        expected = np.float32(0.5)
        for value in x:
            expected = expected + value * value
        check("reduceSeq(fun (x, y) => x + y * y, 0.5, xs)", expected, xs=x)

    @in_turn(8)
    @pytest.mark.parametrize("n", [0, 1, 5, 40, 150])
    @pytest.mark.parametrize("operator", ["add", "min", "sub"])
    def test_a_scan_holds_the_reductions_of_all_beginnings(self, n, operator):
        beginnings = []
        for i in range(1, n + 1):
            inputs = {"xs": ramp(i)}
            beginnings.append(oracle.listed(parsed(f"reduceSeq({operator}, 1.0, xs)", inputs), inputs, {}))
        for pattern in ("scan", "scanSeq"):
            check(f"{pattern}({operator}, 1.0, xs)", np.array(beginnings, np.float32), xs=ramp(n))
        for pattern in ("scanExclusive", "scanExclusiveSeq"):
            check(f"{pattern}({operator}, 1.0, xs)", np.array([1.0, *beginnings][:n], np.float32), xs=ramp(n))

    def test_an_exclusive_scan_of_pairs_in_rows(self):
        x = ramp(4, 30)
        both = "fun ((n, a), (m, b)) => (n + m, max(a, b))"
        rows = f"map(scanExclusive({both}, (0.0, 2.0)), map(map(fun x => (1.0, x)), xs))"
        most = np.maximum.accumulate(np.pad(x, [(0, 0), (1, 0)], constant_values=2.0), 1)[:, :-1]
        counts = np.broadcast_to(np.arange(30, dtype=np.float32), (4, 30))
        check(f"map(map(fun (n, a) => n * 1000.0 + a), {rows})", counts * 1000 + most, xs=x)

    @pytest.mark.parametrize("pattern", ["reduce", "reduceSeq"])
    def test_of_arrays_and_pairs(self, pattern):
        rows = f"{pattern}(fun (a, b) => map(add, zip(a, b)), fill(3, 0.0), xs)"
        check(rows, ramp(50, 3).sum(0), xs=ramp(50, 3))
        both = "fun (a, b) => (get(0, a) + get(0, b), max(get(1, a), get(1, b)))"
        total, largest = result(f"{pattern}({both}, (0.0, 0.0), zip(xs, xs))", xs=ramp(50))
        assert (total, largest) == (1275, 50)

    @pytest.mark.parametrize(
        "body", ["let (x, z) = (acc, y * y) in x + z", "let x = y in acc + x * x",
                 "let (x, z) = (acc, toPrivate(y * y)) in x + z"],
    )  # fmt: skip
    def test_forms_that_are_built_in_operations(self, body):
        """Fused operators are applied lambdas, perhaps with a let."""
        text = f"reduceSeq(fun (acc, y) => {body}, 0.0, xs)"
        assert fold_form(parsed(text, {"xs": ramp(50)}).operator)
        check(text, np.float32(42925), xs=ramp(50))

    def test_forms_of_whole_pairs_and_of_arrays(self):
        p = ir.Var("p", Pair(F32, F32))
        assert fold_form(ir.Lambda(p, ir.Apply(operator_on("add", F32), p))) == ("add", None)
        assert fold_form(operator_on("max", array(F32, 3))) == ("max", None)

    @pytest.mark.parametrize(
        "body", ["acc + acc", "acc + acc * y", "min(y, acc)", "let acc = 1.0 in acc + y", "let x = acc * 2.0 in x + y"]
    )
    def test_forms_that_are_not(self, body):
        text, inputs = f"reduceSeq(fun (acc, y) => {body}, 0.0, xs)", {"xs": ramp(5)}
        term = parsed(text, inputs)
        assert fold_form(term.operator) is None
        check(text, oracle.listed(term, {"xs": list(ramp(5))}, {}), xs=ramp(5))

    @pytest.mark.parametrize("n", [2, 40])
    @pytest.mark.parametrize("pattern", ["reduce", "reduceSeq"])
    def test_nan(self, pattern, n):
        x = ramp(n)
        x[1] = np.nan
        assert result(f"{pattern}(min, inf, xs)", xs=x) == 1
        assert np.isnan(result(f"{pattern}(min, first, xs)", xs=x, first=np.array(np.nan, np.float32)))
        assert np.isnan(result(f"{pattern}(add, 0.0, xs)", xs=x))

    @pytest.mark.parametrize("op", ["min", "max"])
    def test_extremes_are_those_of_the_scalar_operation(self, op):
        """Bit for bit, for NaNs and zeros of both signs, from the left."""
        generator, domain, meaning = np.random.default_rng(0), Plain(), OPERATIONS[op].meaning
        pool = np.array([0.0, -0.0, np.nan, 1.0, -1.0, -np.inf], np.float32)
        for _ in range(40):
            start, leaf = generator.choice(pool, (2, 3)), generator.choice(generator.choice(pool, 3), (2, 3, 50))
            steps = [start]
            for k in range(50):
                steps.append(np.asarray(meaning(steps[-1], leaf[..., k]), np.float32))
            assert same_bits(domain.fold(op, start, leaf, 2, True), steps[-1])
            assert same_bits(domain.fold(op, start, leaf, 2, False), steps[-1])
            assert same_bits(domain.scan(op, start, leaf, 2), np.stack(steps[1:], -1))
            places, expected = generator.integers(0, 4, 50), start.copy()
            for k in range(50):
                if places[k] < 3:
                    expected[:, places[k]] = meaning(expected[:, places[k]], leaf[:, 0, k])
            assert same_bits(domain.fold_by_index(op, start, leaf[:, 0], places), expected)

    def test_integers_and_booleans(self):
        check("reduce(add, 0, generate(100, id))", np.int32(4950))
        check("reduce(and, true, map(fun i => i < 99, generate(100, id)))", np.bool_(False))


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("scalar", [F32, F64])
def test_dot_of_the_vectors_of_rows(scalar, width):
    rng = np.random.default_rng(width)
    rows, weights = rng.uniform(-1, 1, (3, 8)), rng.uniform(-1, 1, width)
    dtype = NUMPY_TYPES[scalar.name]
    values = {"rows": rows.astype(dtype), "w": weights.astype(dtype)}
    term = parse_term(
        f"map(fun row => map(fun v => dot(v, at(0, asVector({width}, w))), asVector({width}, row)), rows)",
        {"rows": f"[[{scalar}]8]3", "w": f"[{scalar}]{width}"},
    )
    expected = np.einsum("rvl,l->rv", values["rows"].reshape(3, -1, width), values["w"])
    found = evaluate(term, values)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if scalar == F32 else 1e-13)
    lists = {i.name: oracle.to_lists(i.type, values[i.name]) for i in ir.subterms(term) if isinstance(i, ir.Input)}
    np.testing.assert_array_equal(found, oracle.listed(term, lists, {}))


class TestProblems:
    PROGRAM = parse_program("program double(xs: [f32]4) = map(fun x => x * x, xs)")

    def test_run(self):
        np.testing.assert_array_equal(run(self.PROGRAM, {"xs": ramp(4)}), ramp(4) ** 2)

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ({}, r"the input xs: \[f32\]4 is missing"),
            ({"xs": ramp(5)}, r"shape \(4,\) and type float32, got shape \(5,\)"),
            ({"xs": np.zeros(4)}, "type float32, got shape .* float64"),
            ({"xs": [1, 2, 3, 4]}, "got a list"),
            ({"xs": ramp(4), "zs": ramp(4)}, "no input 'zs'; it has xs"),
        ],
    )
    def test_inputs(self, inputs, message):
        with pytest.raises(InputProblem, match=message):
            run(self.PROGRAM, inputs)

    def test_pairs_of_arrays(self):
        first = parse_term("map(fun (x, i) => x, zs)", {"zs": "[(f32, i32)]3"})
        x, i = np.float32([1, 2, 3]), np.int32([4, 5, 6])
        np.testing.assert_array_equal(evaluate(first, {"zs": (x, i)}), x)
        with pytest.raises(InputProblem, match="is a pair of arrays, got a ndarray"):
            evaluate(first, {"zs": x})

    def test_ill_typed_terms(self):
        with pytest.raises(SizeProblem, match="a window of 7 does not fit"):
            evaluate(ir.Slide(nat(7), nat(1), XS), {"xs": ramp(6)})

    def test_open_sizes(self):
        with pytest.raises(SizeProblem, match="the size N is open"):
            evaluate(parse_term("map(abs, xs)", {"xs": "[f32]N"}), {"xs": ramp(4)})


@pytest.mark.parametrize(("m", "k", "n"), [(0, 2, 3), (1, 1, 1), (2, 0, 3), (5, 7, 3)])
def test_matrix_product(m, k, n):
    inputs = {"A": ramp(m, k), "B": ramp(k, n)}
    for text in (PRODUCT, OUTER_PRODUCTS.format(n=n)):
        check(text, inputs["A"] @ inputs["B"], **inputs)


def test_five_point_stencil():
    a = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    p, c = np.pad(a, 1, "edge"), np.float32(0.2)
    expected = c * p[:-2, 1:-1] + c * p[1:-1, :-2] + c * p[1:-1, 1:-1] + c * p[1:-1, 2:] + c * p[2:, 1:-1]
    check(FIVE_POINT, expected, A=a)


def test_large_programs(capsys):
    rng = np.random.default_rng(0)
    product = {name: rng.uniform(-1, 1, (384, 384)).astype(np.float32) for name in "AB"}
    dot = "reduce(add, 0.0, map(mul, zip(xs, xs)))"
    for name, text, inputs in (
        ("matrix product 384", PRODUCT, product),
        ("outer products 384", OUTER_PRODUCTS.format(n=384), product),
        ("dot product 2^18", dot, {"xs": rng.uniform(-1, 1, 1 << 18).astype(np.float32)}),
        ("five-point stencil 384", FIVE_POINT, {"A": rng.uniform(-1, 1, (384, 384)).astype(np.float32)}),
    ):
        term = parsed(text, inputs)
        start = time.perf_counter()
        value = evaluate(term, inputs)
        with capsys.disabled():
            print(f"\n{name}: {time.perf_counter() - start:.2f} s", end="")
        assert np.isfinite(value).all()
        if text is PRODUCT:
            np.testing.assert_allclose(value, product["A"] @ product["B"], rtol=0, atol=1e-3)
