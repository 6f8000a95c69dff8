"""The interpreter against independent NumPy code and against a slow interpreter on lists."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lift_egraph.errors import InputProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.index_arrays import REVERSE
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_term
from lift_egraph.language.types import BOOL, F32, F64, I32, Pair, Vector, array, tuple_of
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.folds import fold_form
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, interpret, run
from lift_egraph.soundness.random_terms import operator_on
from tests.depth import depth
from tests.lift_egraph.meaning import oracle
from tests.strategies import programs

X, Y = ir.Var("x", F32), ir.Var("y", F32)
ADD, MUL, MIN, MAX = (ir.Lambda(ir.PairBinder(X, Y), ir.Call(op, (X, Y))) for op in ("add", "mul", "min", "max"))
SQUARE = ir.Lambda(X, ir.Call("mul", (X, X)))


def f32(value: float) -> ir.Literal:
    return ir.Literal(value, F32)


def xs(*sizes: int) -> ir.Input:
    return ir.Input("xs", array(F32, *sizes))


def data(*sizes: int, name: str = "xs") -> dict[str, np.ndarray]:
    return {name: np.arange(1, 1 + int(np.prod(sizes)), dtype=np.float32).reshape(sizes)}


def check(term: ir.Expr, inputs: dict, expected: np.ndarray) -> None:
    value = evaluate(term, inputs)
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(np.asarray(interpret(term, inputs, {}, Plain(), budget=1)), expected)


def matrix_product(m: int, k: int, n: int) -> ir.Expr:
    a, b = ir.Input("A", array(F32, m, k)), ir.Input("B", array(F32, k, n))
    row, col = ir.Var("row", array(F32, k)), ir.Var("col", array(F32, k))
    dot = ir.Reduce(ADD, f32(0.0), ir.Map(MUL, ir.Zip(row, col)))
    return ir.Map(ir.Lambda(row, ir.Map(ir.Lambda(col, dot), ir.Transpose(b))), a)


def outer_products(m: int, k: int, n: int) -> ir.Expr:
    """A matrix product whose accumulator is a row."""
    a, b = ir.Input("A", array(F32, m, k)), ir.Input("B", array(F32, k, n))
    row, total, line = ir.Var("row", array(F32, k)), ir.Var("total", array(F32, n)), ir.Var("line", array(F32, n))
    step = ir.Lambda(ir.PairBinder(X, Y), ir.Call("add", (X, ir.Call("mul", (ir.Var("a", F32), Y)))))
    body = ir.ToMemory("private", ir.MapLevel(ir.SEQ, step, ir.Zip(total, line)))
    operator = ir.Lambda(ir.PairBinder(total, ir.PairBinder(ir.Var("a", F32), line)), body)
    sums = ir.ReduceSeq(operator, ir.Fill(nat(n), f32(0.0)), ir.Zip(row, b))
    return ir.MapLevel(ir.Level("glb", 0), ir.Lambda(row, sums), a)


def five_point(n: int) -> ir.Expr:
    grid, row = ir.Input("A", array(F32, n, n)), ir.Var("row", array(F32, n))
    clamp = ir.Boundary("clamp")
    padded = ir.Pad(nat(1), nat(1), clamp, ir.Map(ir.Lambda(row, ir.Pad(nat(1), nat(1), clamp, row)), grid))
    wide, rows = ir.Var("wide", array(F32, n + 2)), ir.Var("rows", array(F32, 3, n, 3))
    slid = ir.Slide(nat(3), nat(1), ir.Map(ir.Lambda(wide, ir.Slide(nat(3), nat(1), wide)), padded))
    windows = ir.Map(ir.Lambda(rows, ir.Transpose(rows)), slid)
    window, line = ir.Var("window", array(F32, 3, 3)), ir.Var("line", array(F32, n, 3, 3))
    points = [ir.At(nat(j), ir.At(nat(i), window)) for i, j in ((0, 1), (1, 0), (1, 1), (1, 2), (2, 1))]
    total: ir.Expr = ir.Call("mul", (f32(0.2), points[0]))
    for point in points[1:]:
        total = ir.Call("add", (total, ir.Call("mul", (f32(0.2), point))))
    return ir.Map(ir.Lambda(line, ir.Map(ir.Lambda(window, total), line)), windows)


@settings(max_examples=depth(300, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(low_level=True, whole=True), st.sampled_from((1, 100, 1 << 26)))
def test_random_programs_agree_with_lists(program, budget):
    inputs = random_inputs(program)
    value = interpret(program.body, inputs, {}, Plain(), budget)
    lists = {item.name: oracle.to_lists(item.type, inputs[item.name]) for item in program.inputs}
    assert oracle.to_lists(type_of(program.body), value) == oracle.listed(program.body, lists, {})


class TestPatterns:
    @pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
    def test_map_reduce(self, n):
        x = data(n)["xs"]
        check(ir.Map(SQUARE, xs(n)), data(n), x * x)
        check(ir.Reduce(ADD, f32(10.0), xs(n)), data(n), np.float32(10 + x.sum()))
        check(ir.ReduceSeq(MIN, f32(3.0), xs(n)), data(n), np.float32(min([3, *x])))
        check(ir.MapLevel(ir.Level("glb", 0), SQUARE, xs(n)), data(n), x * x)

    def test_zip_pairs_components(self):
        term = ir.Map(ir.Lambda(ir.PairBinder(X, Y), ir.MakePair(Y, ir.Call("add", (X, Y)))), ir.Zip(xs(4), xs(4)))
        first, second = evaluate(term, data(4))
        np.testing.assert_array_equal(first, data(4)["xs"])
        np.testing.assert_array_equal(second, 2 * data(4)["xs"])
        pair = ir.Var("p", Pair(F32, F32))
        check(ir.Map(ir.Lambda(pair, ir.Component(1, pair)), term), data(4), second)

    def test_shapes(self):
        x = data(6)["xs"]
        check(ir.Split(nat(2), xs(6)), data(6), x.reshape(3, 2))
        check(ir.Join(xs(3, 2)), data(3, 2), x)
        check(ir.Join(ir.Transpose(xs(3, 2))), data(3, 2), x.reshape(3, 2).T.ravel())
        check(ir.Transpose(xs(3, 2)), data(3, 2), x.reshape(3, 2).T)
        check(ir.Slide(nat(3), nat(1), xs(6)), data(6), np.stack([x[i : i + 3] for i in range(4)]))
        check(ir.Slide(nat(4), nat(2), xs(6)), data(6), np.stack([x[:4], x[2:]]))
        check(ir.At(nat(2), xs(6)), data(6), np.float32(3))
        check(ir.Fill(nat(2), xs(3)), data(3), np.tile(data(3)["xs"], (2, 1)))

    def test_index_functions(self):
        x = data(6)["xs"]
        check(ir.Gather(REVERSE, xs(6)), data(6), x[::-1])
        check(ir.Gather(ir.IndexFunction("i", nat("i") // 2), xs(6)), data(6), x[[0, 0, 1, 1, 2, 2]])
        check(ir.Scatter(ir.IndexFunction("i", (nat("i") + 1) % nat("n")), xs(6)), data(6), np.roll(x, 1))
        with pytest.raises(SizeProblem, match="leaves an array of length 6"):
            evaluate(ir.Gather(ir.IndexFunction("i", nat("i") + 1), xs(6)), data(6))

    @pytest.mark.parametrize(("kind", "mode"), [("clamp", "edge"), ("mirror", "symmetric"), ("wrap", "wrap")])
    def test_pad(self, kind, mode):
        check(ir.Pad(nat(2), nat(3), ir.Boundary(kind), xs(4)), data(4), np.pad(data(4)["xs"], (2, 3), mode))
        rows = ir.Pad(nat(1), nat(2), ir.Boundary(kind), xs(3, 2))
        check(rows, data(3, 2), np.pad(data(3, 2)["xs"], ((1, 2), (0, 0)), mode))

    def test_pad_constant(self):
        boundary = ir.Boundary("constant", f32(7.0))
        check(ir.Pad(nat(2), nat(0), boundary, xs(2)), data(2), np.float32([7, 7, 1, 2]))
        row = ir.Var("row", array(F32, 2))
        check(
            ir.Map(ir.Lambda(row, ir.Pad(nat(0), nat(1), boundary, row)), xs(2, 2)),
            data(2, 2),
            np.float32([[1, 2, 7], [3, 4, 7]]),
        )
        check(ir.Pad(nat(1), nat(1), boundary, xs(0)), data(0), np.float32([7, 7]))

    def test_generate_and_lookup(self):
        i = ir.Var("i", I32)
        numbers = ir.Generate(nat(5), ir.Lambda(i, ir.Call("sub", (i, ir.Literal(1, I32)))))
        check(numbers, {}, np.arange(-1, 4, dtype=np.int32))
        check(ir.Lookup(numbers, xs(3)), data(3), np.float32([1, 1, 2, 3, 3]))  # clamped
        row = ir.Var("row", array(F32, 3))
        inside = ir.Map(ir.Lambda(row, ir.Lookup(numbers, row)), xs(2, 3))
        check(inside, data(2, 3), data(2, 3)["xs"][:, [0, 0, 1, 2, 2]])

    def test_iterate_halves(self):
        size = nat("k")
        argument, chunk = ir.Var("a", array(F32, size)), ir.Var("c", array(F32, 2))
        halves = ir.Map(ir.Lambda(chunk, ir.Reduce(ADD, f32(0.0), chunk)), ir.Split(nat(2), argument))
        check(ir.Iterate(3, "k", ir.Lambda(argument, halves), xs(8)), data(8), np.float32([36]))
        check(ir.Iterate(0, "k", ir.Lambda(argument, halves), xs(8)), data(8), data(8)["xs"])

    def test_let_and_capture(self):
        doubled = ir.Map(ir.Lambda(X, ir.Call("mul", (X, Y))), xs(3))
        check(ir.Apply(ir.Lambda(Y, doubled), f32(2.0)), data(3), 2 * data(3)["xs"])
        assert evaluate(ir.Call("add", (X, X)), {}, {"x": np.float32(3)}) == 6

    def test_invariant_bodies_are_repeated(self):
        check(
            ir.Map(ir.Lambda(Y, xs(2)), ir.Input("ys", array(F32, 3))),
            data(2) | data(3, name="ys"),
            np.float32([[1, 2]] * 3),
        )


class TestVectors:
    def test_as_vector_takes_the_outer_axis(self):
        x = data(4, 3)["xs"]
        vectors = ir.AsVector(2, xs(4, 3))
        assert type_of(vectors) == array(Vector(F32, 2), 2, 3)
        check(vectors, data(4, 3), x.reshape(2, 2, 3).transpose(0, 2, 1))
        check(ir.AsScalar(vectors), data(4, 3), x)

    def test_vectorize(self):
        doubled = ir.Map(ir.Vectorize(4, SQUARE), ir.AsVector(4, xs(8)))
        check(ir.AsScalar(doubled), data(8), data(8)["xs"] ** 2)
        constant = ir.Map(ir.Vectorize(4, ir.Lambda(X, f32(3.0))), ir.AsVector(4, xs(8)))
        check(ir.AsScalar(constant), data(8), np.full(8, 3, np.float32))

    def test_vector_arithmetic_with_scalars(self):
        v = ir.Var("v", Vector(F32, 2))
        term = ir.Map(ir.Lambda(v, ir.Call("mul", (v, f32(3.0)))), ir.AsVector(2, xs(4)))
        check(term, data(4), 3 * data(4)["xs"].reshape(2, 2))

    @pytest.mark.parametrize("pattern", [ir.Reduce, ir.ReduceSeq])
    def test_vectorized_operator(self, pattern):
        start = ir.At(nat(0), ir.AsVector(2, ir.Fill(nat(2), f32(0.0))))
        term = pattern(ir.Vectorize(2, ADD), start, ir.AsVector(2, xs(6)))
        check(term, data(6), np.float32([9, 12]))

    def test_pairs_of_vectors(self):
        zipped = ir.AsVector(2, ir.Zip(xs(4), xs(4)))
        product = ir.Map(ir.Vectorize(2, MUL), zipped)
        check(ir.AsScalar(product), data(4), data(4)["xs"] ** 2)


class TestFolds:
    @pytest.mark.parametrize("n", [0, 1, 5, 40, 1000])
    def test_general_operator_from_left_to_right(self, n):
        minus = ir.Lambda(ir.PairBinder(X, Y), ir.Call("sub", (X, Y)))
        check(ir.ReduceSeq(minus, f32(1.0), xs(n)), data(n), np.float32(1 - data(n)["xs"].sum()))

    @pytest.mark.parametrize("n", [1, 5, 40, 1000])
    def test_reduce_seq_rounds_from_left_to_right(self, n):
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        plus_square = ir.Lambda(ir.PairBinder(X, Y), ir.Call("add", (X, ir.Call("mul", (Y, Y)))))
        expected = np.float32(0.5)
        for value in x:
            expected = expected + value * value
        check(ir.ReduceSeq(plus_square, f32(0.5), xs(n)), {"xs": x}, expected)

    @pytest.mark.parametrize("n", [0, 1, 5, 40, 1000])
    @pytest.mark.parametrize("operator", [ADD, MIN, ir.Lambda(ir.PairBinder(X, Y), ir.Call("sub", (X, Y)))])
    def test_a_scan_holds_the_reductions_of_all_beginnings(self, n, operator):
        for pattern in (ir.Scan, ir.ScanSeq):
            beginnings = [oracle.listed(ir.ReduceSeq(operator, f32(1.0), xs(i + 1)), data(i + 1), {}) for i in range(n)]
            check(pattern(operator, f32(1.0), xs(n)), data(n), np.array(beginnings, np.float32))

    @pytest.mark.parametrize("pattern", [ir.Reduce, ir.ReduceSeq])
    def test_of_arrays_and_pairs(self, pattern):
        t = array(F32, 3)
        check(
            pattern(operator_on("add", t), ir.Fill(nat(3), f32(0.0)), xs(50, 3)),
            data(50, 3),
            data(50, 3)["xs"].sum(0),
        )
        p = ir.Var("p", tuple_of(Pair(F32, F32), Pair(F32, F32)))
        parts = [[ir.Component(j, ir.Component(i, p)) for i in range(2)] for j in range(2)]
        both = ir.Lambda(p, ir.MakePair(ir.Call("add", tuple(parts[0])), ir.Call("max", tuple(parts[1]))))
        total, largest = evaluate(pattern(both, ir.MakePair(f32(0.0), f32(0.0)), ir.Zip(xs(50), xs(50))), data(50))
        assert (total, largest) == (1275, 50)

    def test_forms_that_are_built_in_operations(self):
        """Fused operators are applied lambdas, perhaps with a let."""
        accumulator, t = ir.Var("acc", F32), array(F32, 3)
        fused = ir.Apply(ADD, ir.MakePair(accumulator, ir.Call("mul", (Y, Y))))
        with_let = ir.Apply(ir.Lambda(X, ir.Call("add", (accumulator, ir.Call("mul", (X, X))))), Y)
        vectorized = ir.Apply(ADD, ir.MakePair(accumulator, ir.ToMemory("private", ir.Call("mul", (Y, Y)))))
        for body in (fused, with_let, vectorized):
            operator = ir.Lambda(ir.PairBinder(accumulator, Y), body)
            assert fold_form(operator)
            check(ir.ReduceSeq(operator, f32(0.0), xs(50)), data(50), np.float32(42925))
        p = ir.Var("p", Pair(F32, F32))
        assert fold_form(ir.Lambda(p, ir.Apply(ADD, p))) == ("add", None)
        assert fold_form(operator_on("max", t)) == ("max", None)

    def test_forms_that_are_not(self):
        accumulator = ir.Var("acc", F32)
        for body in (
            ir.Call("add", (accumulator, accumulator)),
            ir.Call("add", (accumulator, ir.Call("mul", (accumulator, Y)))),
            ir.Call("min", (Y, accumulator)),
            ir.Apply(ir.Lambda(accumulator, ir.Call("add", (accumulator, Y))), f32(1.0)),
            ir.Apply(ir.Lambda(X, ir.Call("add", (X, Y))), ir.Call("mul", (accumulator, f32(2.0)))),
        ):
            operator = ir.Lambda(ir.PairBinder(accumulator, Y), body)
            assert fold_form(operator) is None
            listed = oracle.listed(ir.ReduceSeq(operator, f32(0.0), xs(5)), {"xs": list(data(5)["xs"])}, {})
            check(ir.ReduceSeq(operator, f32(0.0), xs(5)), data(5), listed)

    @pytest.mark.parametrize("n", [2, 40])
    @pytest.mark.parametrize("pattern", [ir.Reduce, ir.ReduceSeq])
    def test_nan(self, pattern, n):
        x = data(n)["xs"]
        x[1] = np.nan
        assert evaluate(pattern(MIN, f32(np.inf), xs(n)), {"xs": x}) == 1
        assert np.isnan(evaluate(pattern(MIN, f32(np.nan), xs(n)), {"xs": x}))
        assert np.isnan(evaluate(pattern(ADD, f32(0.0), xs(n)), {"xs": x}))

    def test_integers_and_booleans(self):
        i, j = ir.Var("i", I32), ir.Var("j", I32)
        add = ir.Lambda(ir.PairBinder(i, j), ir.Call("add", (i, j)))
        numbers = ir.Generate(nat(100), ir.Lambda(i, i))
        check(ir.Reduce(add, ir.Literal(0, I32), numbers), {}, np.int32(4950))
        p, q = ir.Var("p", BOOL), ir.Var("q", BOOL)
        both = ir.Lambda(ir.PairBinder(p, q), ir.Call("and", (p, q)))
        small = ir.Map(ir.Lambda(i, ir.Call("lt", (i, ir.Literal(99, I32)))), numbers)
        check(ir.Reduce(both, ir.Literal(True, BOOL), small), {}, np.bool_(False))


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
    def program(self, n: int = 4) -> ir.Program:
        return ir.Program("double", (xs(n),), ir.Map(SQUARE, xs(n)))

    def test_run(self):
        np.testing.assert_array_equal(run(self.program(), data(4)), data(4)["xs"] ** 2)

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ({}, r"the input xs: \[f32\]4 is missing"),
            (data(5), r"shape \(4,\) and type float32, got shape \(5,\)"),
            ({"xs": np.zeros(4)}, "type float32, got shape .* float64"),
            ({"xs": [1, 2, 3, 4]}, "got a list"),
            (data(4) | data(4, name="zs"), "no input 'zs'; it has xs"),
        ],
    )
    def test_inputs(self, inputs, message):
        with pytest.raises(InputProblem, match=message):
            run(self.program(), inputs)

    def test_pairs_of_arrays(self):
        zipped = ir.Input("zs", array(Pair(F32, I32), 3))
        x, i = np.float32([1, 2, 3]), np.int32([4, 5, 6])
        swapped = ir.Map(ir.Lambda(ir.PairBinder(X, ir.Var("i", I32)), X), zipped)
        np.testing.assert_array_equal(evaluate(swapped, {"zs": (x, i)}), x)
        with pytest.raises(InputProblem, match="is a pair of arrays, got a ndarray"):
            evaluate(swapped, {"zs": x})

    def test_ill_typed_terms(self):
        with pytest.raises(SizeProblem, match="a window of 3 does not fit"):
            evaluate(ir.Slide(nat(3), nat(1), xs(1)), data(1))

    def test_open_sizes(self):
        with pytest.raises(SizeProblem, match="the size N is open"):
            evaluate(ir.Map(SQUARE, ir.Input("xs", array(F32, "N"))), data(4))


@pytest.mark.parametrize(("m", "k", "n"), [(0, 2, 3), (1, 1, 1), (2, 0, 3), (5, 7, 3)])
def test_matrix_product(m, k, n):
    a, b = data(m, k)["xs"], data(k, n)["xs"]
    check(matrix_product(m, k, n), {"A": a, "B": b}, a @ b)
    check(outer_products(m, k, n), {"A": a, "B": b}, a @ b)


def test_five_point_stencil():
    a = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    p, c = np.pad(a, 1, "edge"), np.float32(0.2)
    expected = c * p[:-2, 1:-1] + c * p[1:-1, :-2] + c * p[1:-1, 1:-1] + c * p[1:-1, 2:] + c * p[2:, 1:-1]
    check(five_point(6), {"A": a}, expected)


def test_large_programs(capsys):
    rng = np.random.default_rng(0)
    product = {name: rng.uniform(-1, 1, (512, 512)).astype(np.float32) for name in "AB"}
    dot = ir.Reduce(ADD, f32(0.0), ir.Map(MUL, ir.Zip(xs(1 << 22), xs(1 << 22))))
    for name, term, inputs in (
        ("matrix product 512", matrix_product(512, 512, 512), product),
        ("outer products 512", outer_products(512, 512, 512), product),
        ("dot product 2^22", dot, {"xs": rng.uniform(-1, 1, 1 << 22).astype(np.float32)}),
        ("five-point stencil 1024", five_point(1024), {"A": rng.uniform(-1, 1, (1024, 1024)).astype(np.float32)}),
    ):
        start = time.perf_counter()
        value = evaluate(term, inputs)
        with capsys.disabled():
            print(f"\n{name}: {time.perf_counter() - start:.2f} s", end="")
        assert np.isfinite(value).all()
    np.testing.assert_allclose(
        evaluate(matrix_product(512, 512, 512), product), product["A"] @ product["B"], rtol=0, atol=1e-3
    )
