"""The type of each pattern, and each way in which one can be wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from lift_egraph.errors import LiftError, NestingProblem, SizeProblem, TypeProblem
from lift_egraph.language import ir, types as ty
from lift_egraph.language.build import BOOL, F32, F64, I32, array
from lift_egraph.language.check import check_program, specialise, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.nesting import check_nesting
from lift_egraph.language.sizes import size_variables
from lift_egraph.language.syntax import parse_program, parse_term, parse_type
from tests.strategies import data_types, programs

INPUTS = {
    "x": "f32", "i": "i32", "c": "bool", "xs": "[f32]N", "ys": "[f32]M", "m": "[[f32]K]M", "a": "[f32]8",
    "ks": "[i32]3", "t": "(f32, i32, bool)", "v": "[f32x4]2", "ts": "[(f32, i32)]8",
}  # fmt: skip


def test_index_functions_of_nothing():
    empty, rotated = ir.Input("a", parse_type("[f32]0")), ir.IndexFunction("i", (nat("i") + 1) % nat("n"))
    assert type_of(ir.Gather(rotated, empty)) == type_of(ir.Scatter(rotated, empty)) == empty.type


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("x * 2.0", "f32"), ("x < 1.0", "bool"), ("to_i32(x)", "i32"), ("select(c, x, 0.0)", "f32"),
        ("(x, i, c)", "(f32, i32, bool)"), ("get(0, t)", "f32"), ("get(2, t)", "bool"), ("rest(t)", "(i32, bool)"),
        ("let y = x in y < x", "bool"), ("map(sqrt, xs)", "[f32]N"), ("map(fun r => reduce(add, 0.0, r), m)", "[f32]M"),
        ("reduce(max, -inf, xs)", "f32"), ("zip(a, ts)", "[(f32, f32, i32)]8"), ("split(4, xs)", "[[f32]4](N / 4)"),
        ("split(4, a)", "[[f32]4]2"), ("join(m)", "[f32](K * M)"), ("join(split(4, a))", "[f32]8"),
        ("transpose(m)", "[[f32]M]K"), ("gather(reverse, xs)", "[f32]N"), ("scatter(reverse, xs)", "[f32]N"),
        ("slide(3, 1, a)", "[[f32]3]6"), ("slide(3, 1, pad(1, 1, clamp, xs))", "[[f32]3]N"),
        ("slide(2, 2, a)", "[[f32]2]4"), ("pad(1, 2, mirror, xs)", "[f32](N + 3)"),
        ("iterate(2, fun (p: [f32]n) => map(at(0), split(2, p)), a)", "[f32]2"),
        ("iterate(0, fun p => p, a)", "[f32]8"), ("iterate(1000000000, map(abs), xs)", "[f32]N"),
        ("at(3, m)", "[f32]K"), ("generate(N, fun k => (k, x))", "[(i32, f32)]N"), ("fill(2, m)", "[[[f32]K]M]2"),
        ("lookup(ks, xs)", "[f32]3"), ("mapGlb(0, abs, xs)", "[f32]N"),
        ("reduceSeq(fun (s, e) => s + 1, 0, xs)", "i32"),
        ("toLocal(xs)", "[f32]N"), ("asVector(4, a)", "[f32x4]2"), ("asVector(2, ts)", "[(f32x2, i32x2)]4"),
        ("asScalar(v)", "[f32]8"), ("map(vectorize(4, sqrt), v)", "[f32x4]2"), ("at(0, v) * x", "f32x4"),
        ("map(vectorize(4, fun e => e < 0.0), v)", "[boolx4]2"), ("map(dot, zip(v, v))", "[f32]2"),
        ("dot(at(0, asVector(2, a)), at(1, asVector(2, a)))", "f32"),
    ],
)  # fmt: skip
def test_types(term: str, expected: str) -> None:
    assert type_of(parse_term(term, INPUTS)) == parse_type(expected)


x, a, m = ir.Input("x", F32), ir.Input("a", array(F32, 8)), ir.Input("m", array(F32, "M", "K"))
e, e2, q = ir.Var("e", F32), ir.Var("e2", F32), ir.Var("q", I32)
KEEP = ir.Lambda(e, e)


def lanes_of(width: int, scalar: ty.Scalar = F32) -> ir.Expr:
    return ir.Input("vector", ty.Vector(scalar, width))


@pytest.mark.parametrize(
    ("term", "kind", "message"),
    [
        (ir.Call("add", (x,)), TypeProblem, "add takes 2 arguments, not 1"),
        (ir.Call("plus", (x, x)), TypeProblem, "there is no scalar operation 'plus'"),
        (ir.Call("abs", (a,)), TypeProblem, "use map"),
        (ir.Call("dot", (x, x)), TypeProblem, "dot takes two vectors of one type, of 2 or 4 lanes, got f32, f32"),
        (ir.Call("dot", (a, a)), TypeProblem, "dot works on vectors, not on [f32]8; of arrays it is reduce(add, 0"),
        (ir.Call("add", (a, a)), TypeProblem, "add works on scalars, not on [f32]8; use map: map(add, zip(xs, ys))"),
        (ir.Call("max", (a,)), TypeProblem, "max takes 2 arguments, not 1; of an array it is reduce(max, z, xs)"),
        (ir.Call("dot", (lanes_of(4), x)), TypeProblem, "of 2 or 4 lanes, got f32x4, f32"),
        (ir.Call("dot", (lanes_of(2), lanes_of(4))), TypeProblem, "dot mixes vectors of 2 and 4 lanes"),
        (ir.Call("bit_xor", (x < x, x < x)), TypeProblem, "works on integers, got bool, bool; of bools it is ne"),
        (ir.Call("bit_not", (x,)), TypeProblem, "bit_not works on integers, got f32"),
        (ir.Call("dot", (lanes_of(8), lanes_of(8))), TypeProblem, "of 2 or 4 lanes, got f32x8, f32x8"),
        (ir.Call("dot", (lanes_of(4), lanes_of(4, F64))), TypeProblem, "of 2 or 4 lanes, got f32x4, f64x4"),
        (ir.Call("dot", (lanes_of(4, I32),) * 2), TypeProblem, "dot works on vectors of floats, got i32x4"),
        (ir.Component(0, x), TypeProblem, "get works on a tuple, got f32"),
        (ir.Component(2, ir.MakePair(x, x)), TypeProblem, "components 0 and 1, not 2"),
        (ir.Apply(ir.Lambda(q, q), x), TypeProblem, "let: the function takes i32, but is given f32"),
        (ir.Map(KEEP, x), TypeProblem, "map works on an array, got f32"),
        (ir.Map(ir.Lambda(q, q), a), TypeProblem, "map: the function takes i32, but is given f32"),
        (ir.Map(ir.Vectorize(4, KEEP), a), TypeProblem, "expected vectors at the leaves, got f32"),
        (ir.Map(ir.Vectorize(4, KEEP), ir.AsVector(2, a)), TypeProblem, "applied to vectors of 2 lanes"),
        (ir.Reduce(ir.Lambda(ir.PairBinder(e, q), e), x, a), TypeProblem, "reduce: the function takes (f32, i32)"),
        (ir.Reduce(ir.Lambda(ir.PairBinder(e, e2), x < x), x, a), TypeProblem, "the operator returns bool"),
        (ir.Zip(a, x), TypeProblem, "zip works on an array"),
        (ir.Zip(a, m), SizeProblem, "zip needs arrays of one length, got 8 and M"),
        (ir.Split(nat(3), a), SizeProblem, "split(3) does not divide an array of length 8"),
        (ir.Split(nat(0), a), SizeProblem, "the chunk size must be at least 1, got 0"),
        (ir.Join(a), TypeProblem, "join works on an array of arrays"),
        (ir.Transpose(a), TypeProblem, "transpose works on an array of arrays"),
        (ir.Scatter(ir.IndexFunction("i", nat("i") // 2), a), SizeProblem, "no permutation of 8 elements"),
        (ir.Gather(ir.IndexFunction("i", nat("i") + 1), a), SizeProblem, "leaves an array of length 8"),
        (ir.Gather(ir.IndexFunction("i", nat("i") - 1), a), SizeProblem, "leaves an array of length 8"),
        (ir.Slide(nat(9), nat(1), a), SizeProblem, "a window of 9 does not fit"),
        (
            ir.Slide(nat(3), nat(2), a),
            SizeProblem,
            "does not tile an array of length 8 exactly; it fits the first 7: slice(0, 7, xs)",
        ),
        (ir.Slide(nat(0), nat(1), a), SizeProblem, "the window size must be at least 1"),
        (ir.Pad(nat(-1), nat(0), ir.Boundary("clamp"), a), SizeProblem, "must not be negative"),
        (ir.Pad(nat(9), nat(0), ir.Boundary("mirror"), a), SizeProblem, "needs an array of length 9 or more"),
        (ir.Pad(nat(1), nat(0), ir.Boundary("zero"), a), TypeProblem, "unknown boundary 'zero'"),
        (ir.Pad(nat(1), nat(0), ir.Boundary("constant"), a), TypeProblem, "needs a value of the element type f32"),
        (ir.Iterate(-1, "n", KEEP, a), SizeProblem, "the count must not be negative"),
        (ir.Iterate(1, "n", ir.Lambda(ir.Var("p", array(F32, "n")), x), a), TypeProblem, "must keep the element type"),
        (ir.At(nat(8), a), SizeProblem, "at(8) is outside an array of length 8"),
        (ir.At(nat(-1), a), SizeProblem, "at(-1) is outside"),
        (ir.Generate(nat(4), KEEP), TypeProblem, "generate: the function takes f32, but is given i32"),
        (ir.Lookup(a, a), TypeProblem, "the indices are i32, got f32"),
        (ir.ToMemory("register", x), TypeProblem, "unknown address space 'register'"),
        (ir.AsVector(4, ir.AsVector(2, a)), TypeProblem, "vectors do not nest"),
        (ir.AsVector(3, ir.Input("b", array(F32, 9))), TypeProblem, "2, 4, 8 or 16 lanes, not 3"),
        (ir.AsVector(16, a), SizeProblem, "asVector(16) does not divide"),
        (ir.AsScalar(a), TypeProblem, "expected vectors at the leaves"),
    ],
)
def test_errors(term: ir.Expr, kind: type[LiftError], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        type_of(term)


def test_an_iterate_whose_length_always_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lift_egraph.language.check.MOST_STEPS", 10)
    text = "iterate({}, fun v => pad(1, 1, clamp, v), a)"
    assert type_of(parse_term(text.format(10), INPUTS)) == parse_type("[f32]28")
    with pytest.raises(SizeProblem, match="the length still changes after 10 of 11 steps, it is 28 then"):
        parse_term(text.format(11), INPUTS)


@given(programs(low_level=True))
def test_built_programs_check(program: ir.Program) -> None:
    assert check_program(program) == type_of(program.body)


@given(data_types())
def test_types_survive_printing(t: ty.DataType) -> None:
    assert parse_type(str(t)) == t
    assert ty.substitute_sizes(t, {"N": 3}) == t


@given(data_types())
def test_lanes_have_an_inverse(t: ty.DataType) -> None:
    assert ty.without_lanes(ty.lanes(4, t)) == (4, t)
    assert [leaf for _, _, leaf in ty.leaves(ty.lanes(4, t))] == [
        ty.Vector(ty.scalar_of(leaf), 4) for _, _, leaf in ty.leaves(t)
    ]


def test_tuples_nest_to_the_right() -> None:
    assert ty.tuple_of(F32, I32, BOOL) == ty.Pair(F32, ty.Pair(I32, BOOL))
    assert ty.tuple_components(ty.tuple_of(F32, I32, BOOL)) == (F32, I32, BOOL)
    with pytest.raises(TypeProblem, match="mixes vectors"):
        ty.without_lanes(ty.Pair(ty.Vector(F32, 2), ty.Vector(F64, 4)))


PROGRAM = parse_program("program f(m: [[f32]K]M) where M = 8 = map(split(4), m)")


def test_no_input_has_fewer_elements_than_none() -> None:
    windows = parse_program("program p(x: [(f32, [i32](N - 5))]N) where N = 3 = map(fun (a, b) => a, x)")
    assert specialise(windows, {"N": 5})
    with pytest.raises(SizeProblem, match=r"p at N = 3: .*the length of an array must not be negative, got x: \[\("):
        specialise(windows)


def test_specialise() -> None:
    assert size_variables(PROGRAM) == ("K", "M")
    special = specialise(PROGRAM, {"K": 12})
    assert str(type_of(special.body)) == "[[[f32]4]3]8"
    assert dict(special.sizes) == {"K": 12, "M": 8}


def test_a_program_at_concrete_sizes_is_specialised_to_itself() -> None:
    program = specialise(parse_program("program p(x: [f32]N) where N = 4 = map(fun v => v / N, x)"), {"N": 6})
    assert specialise(program) == program
    assert program.sizes == (("N", 6),)
    with pytest.raises(SizeProblem, match="no size 'N'; it has none"):
        specialise(program, {"N": 6})



@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, "needs a value for the size K"),
        ({"K": 6}, "split(4) does not divide an array of length 6"),
        ({"K": -1}, "must be at least 0"),
        ({"K": 4, "Q": 1}, "no size 'Q'; it has K, M"),
        ({"K": 1 << 31}, "32-bit index range"),
        ({"K": "8"}, "the size K must be a whole number, got '8'"),
        ({"K": 8.0}, "the size K must be a whole number, got 8.0"),
    ],
)
def test_specialise_errors(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(SizeProblem, match=re.escape(message)):
        specialise(PROGRAM, sizes)


def test_chunks_that_are_joined_again_fit_the_whole() -> None:
    """Lengths that are equal wherever a split divides are so until they have values; then they are compared."""
    joined = "zip(xs, join(map(map(abs), split(D, xs))))"
    program = parse_program(f"program p(xs: [f32]N) where N = 12, D = 4 = map(add, {joined})")
    assert type_of(specialise(program).body) == parse_type("[f32]12")
    with pytest.raises(SizeProblem, match=re.escape("split(5) does not divide an array of length 12")):
        specialise(program, {"D": 5})
    rows = parse_program("program q(xs: [[f32]N]3, ys: [[f32](2 * (N / 2))]3) = concat(xs, ys)")
    assert type_of(specialise(rows, {"N": 4}).body) == parse_type("[[f32]4]6")
    with pytest.raises(TypeProblem, match=re.escape("got [[f32]5]3 and [[f32]4]3")):
        specialise(rows, {"N": 5})
    with pytest.raises(SizeProblem, match=re.escape("got N and (N / 2) + (N / 3)")):
        parse_program("program r(xs: [f32]N, ys: [f32](N / 2 + N / 3)) = zip(xs, ys)")


def test_open_terms_are_no_programs() -> None:
    with pytest.raises(TypeProblem, match="unbound variables: e"):
        check_program(ir.Program("f", (), e))
    with pytest.raises(TypeProblem, match="which it does not declare"):
        check_program(ir.Program("f", (), x))


NESTING = {"m": "[[[f32]4]8]16", "v": "[f32x4]4"}


@pytest.mark.parametrize(
    "legal",
    ["mapGlb(0, map(map(abs)), m)", "mapWrg(0, mapLcl(0, mapSeq(abs)), m)", "mapGlb(1, mapGlb(0, mapSeq(abs)), m)",
     "mapWrg(1, mapWrg(0, mapLcl(0, abs)), m)", "mapGlb(0, mapSeq(mapSeq(abs)), m)",
     "mapGlb(0, mapSeq(fun r => mapSeq(vectorize(2, fun x => reduceRangeSeq(add, x, 0, 1, r)), asVector(2, r))), m)",
     "mapGlb(0, vectorize(2, fun r => reduceSeq(fun (a, (x, i)) => let k = i + 1 in "
     "reduceRangeSeq(add, a + x, i, k, at(0, r)), 0.0, zip(at(1, r), generate(4, fun i => i)))), asVector(2, m))"],
)  # fmt: skip
def test_legal_nesting(legal: str) -> None:
    check_nesting(parse_term(legal, NESTING))


@pytest.mark.parametrize(
    ("illegal", "message"),
    [
        ("mapWrg(0, mapLcl(0, mapWrg(1, abs)), m)", "mapWrg(1) must not stand inside mapLcl(0)"),
        (
            "mapGlb(0, mapSeq(fun r => let v = at(0, asVector(2, r)) in mapSeq(vectorize(2, fun x => x + dot(v, v)), "
            "asVector(2, r))), m)",
            "dot stands inside vectorize: vectors do not nest",
        ),
        (
            "mapGlb(0, mapSeq(fun r => mapSeq(vectorize(2, fun x => reduceRangeSeq(add, x, 0, to_i32(x), r)), "
            "asVector(2, r))), m)",
            "each lane would have a range, or places of results, of its own",
        ),
        (
            "mapGlb(0, vectorize(2, fun r => (let k = 1 in reduceRangeSeq(add, 0.0, 0, k, at(0, r))) + "
            "(let k = to_i32(at(0, at(0, r))) in reduceRangeSeq(add, 0.0, 0, k, at(1, r)))), asVector(2, m))",
            "each lane would have a range, or places of results, of its own",
        ),
        (
            "mapGlb(0, mapSeq(fun r => mapSeq(vectorize(2, fun x => at(0, reduceByIndexSeq(fun y => to_i32(y), add, "
            "fill(1, 0.0), generate(3, fun i => x)))), asVector(2, r))), m)",
            "each lane would have a range, or places of results, of its own",
        ),
    ],
)
def test_illegal_nesting(illegal: str, message: str) -> None:
    with pytest.raises(NestingProblem, match=re.escape(message)):
        check_nesting(parse_term(illegal, NESTING))
