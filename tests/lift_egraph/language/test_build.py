"""Building terms in Python."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from lift_egraph.errors import LiftError, SizeProblem, SyntaxProblem, TypeProblem
from lift_egraph.language import build as b, ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.build import F32, F64, I32, Input, array
from lift_egraph.language.check import check_program, type_of
from lift_egraph.language.functions import PATTERN_NAMES
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.syntax import parse_term, print_term
from lift_egraph.programs import load

XS, YS, M = Input("xs", array(F32, 8)), Input("ys", array(F32, 8)), Input("m", array(F32, 8, 4))
ENVIRONMENT = (XS, YS, M)


def same(term: ir.Expr, text: str) -> bool:
    return alpha_equal(term, parse_term(text, ENVIRONMENT))


def test_a_program_reads_like_the_listing() -> None:
    @b.program(sizes={"M": 512, "K": 512, "N": 512})
    def mm(A: "[[f32]K]M", B: "[[f32]N]K") -> Any:  # pyright: ignore  # noqa: F722
        return b.map_(
            lambda row: b.map_(
                lambda col: b.reduce_(b.add, 0.0, b.map_(b.mul, b.zip_(row, col))), b.transpose(B)
            ),
            A,
        )  # fmt: skip

    bundled = load("mm")
    assert mm.inputs == bundled.inputs
    assert mm.sizes == bundled.sizes
    assert alpha_equal(mm.body, bundled.body)


def test_binders_have_the_names_of_the_parameters() -> None:
    term = b.map_(lambda left, right: left - right, b.zip_(XS, YS))
    assert print_term(b.map_(lambda left, right: right - left, b.zip_(XS, YS))) == (
        "map(fun (left, right) => right - left, zip(xs, ys))"
    )
    assert isinstance(term.function.binder, ir.PairBinder)
    assert print_term(b.map_(lambda map: map + 1.0, XS)) == "map(fun map1 => map1 + 1.0, xs)"


def test_an_inner_binder_captures_nothing() -> None:
    def add_to_all(x: ir.Expr) -> ir.Expr:
        return b.map_(lambda x: x, b.map_(lambda y: b.map_(lambda x, outer=x: x + outer, YS), XS))

    nested = b.map_(add_to_all, XS)
    assert same(nested, "map(fun p => map(id, map(fun y => map(fun q => q + p, ys), xs)), xs)")
    check_program(ir.Program("f", ENVIRONMENT, nested))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda x: x + 1, "x + 1.0"), (lambda x: 1 - x, "1.0 - x"), (lambda x: -x * abs(x), "-x * abs(x)"),
        (lambda x: x / 2.5, "x / 2.5"), (lambda x: 2 / x, "2.0 / x"), (lambda x: np.float32(2) * x, "2.0 * x"),
        (lambda x: b.select(x < 0, -1, x), "select(x < 0.0, -1.0, x)"), (lambda x: b.equal(x, 0), "x == 0.0"),
        (lambda x: b.to_i32(x) % 2, "to_i32(x) % 2"), (lambda x: b.and_(x <= 1, True), "x <= 1.0 && true"),
        (lambda x: b.max_(0, x), "max(0.0, x)"), (lambda x: x > 0, "x > 0.0"), (lambda x: x**2, "pow(x, 2.0)"),
        (lambda x: (x > 0) & ~(x > 1) | (x < -1), "x > 0.0 && !(x > 1.0) || x < -1.0"),
        (lambda x: b.to_i32(x) & 1, "bit_and(to_i32(x), 1)"), (lambda x: True ^ (x > 0), "true != (x > 0.0)"),
    ],
)  # fmt: skip
def test_operators(build: Any, text: str) -> None:
    assert same(b.map_(build, XS), f"map(fun x => {text}, xs)")


def test_numbers_take_the_type_of_the_term_beside_them() -> None:
    doubles = Input("d", array(F64, 4))
    assert type_of(b.map_(lambda d: 2 * d, doubles)) == array(F64, 4)
    assert type_of(b.reduce_(b.add, 0, doubles)) == F64
    assert type_of(b.fill(3, 1)) == array(I32, 3)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (b.map_(b.sqrt, XS), "map(sqrt, xs)"), (b.zip_(XS, YS, XS), "zip(xs, ys, xs)"),
        ((b.join @ b.map_(b.map_(b.abs_)) @ b.split(4))(XS), "join(map(map(abs), split(4, xs)))"),
        (
            (b.join @ b.map_wrg(0)(b.map_lcl(0)(b.abs_)) @ b.split(4))(XS),
            "join(mapWrg(0, mapLcl(0, abs), split(4, xs)))",
        ),
        (b.gather(lambda i: i // 2, XS), "gather(i => i / 2, xs)"), (b.gather(b.reverse, XS), "gather(reverse, xs)"),
        (b.scatter(lambda i, n: (i + 1) % n, XS), "scatter(i => (i + 1) % n, xs)"),
        (b.gather(b.stride(4), XS), "gather(stride(4), xs)"), (b.at(2, M), "at(2, m)"),
        (b.slide(3, 1, b.pad(1, 1, "clamp", XS)), "slide(3, 1, pad(1, 1, clamp, xs))"),
        (b.pad(1, 2, b.wrap, b.pad(1, 0, b.mirror, XS)), "pad(1, 2, wrap, pad(1, 0, mirror, xs))"),
        (b.pad(1, 0, b.constant(2), XS), "pad(1, 0, constant(2.0), xs)"),
        (
            b.iterate(2, lambda p: b.map_(b.at(0), b.split(2, p)), XS),
            "iterate(2, fun (p: [f32]n) => map(at(0), split(2, p)), xs)",
        ),
        (
            b.iterate(2, b.map_(b.at(0)) @ b.split(2), XS),
            "iterate(2, fun (p: [f32]n) => map(at(0), split(2, p)), xs)",
        ),
        (b.get(1, b.tuple_(1.0, 2, True)), "get(1, (1.0, 2, true))"),
        (b.rest(b.tuple_(1.0, 2, True)), "rest((1.0, 2, true))"),
        (b.generate(4, lambda i: i * i), "generate(4, fun i => i * i)"), (b.fill("N", 0.5), "fill(N, 0.5)"),
        (b.lookup(b.generate(4, b.id_), XS), "lookup(generate(4, id), xs)"),
        (b.let(b.at(0, XS), lambda x: x * x), "let x = at(0, xs) in x * x"),
        (b.map_seq(b.to_local(b.map_seq(b.id_)), M), "mapSeq(fun r => toLocal(mapSeq(id, r)), m)"),
        (b.to_global(b.map_glb(0, b.abs_, XS)), "toGlobal(mapGlb(0, abs, xs))"),
        (b.to_private(b.abs_)(b.at(0, XS)), "toPrivate(abs(at(0, xs)))"),
        (
            b.as_scalar(b.map_(b.vectorize(4, lambda x: x * x), b.as_vector(4, XS))),
            "asScalar(map(vectorize(4, fun x => x * x), asVector(4, xs)))",
        ),
        (b.reduce_seq(lambda acc, x: acc + x, b.literal(0.0), XS), "reduceSeq(add, 0.0, xs)"),
        (b.map2d(b.neg, M), "map(map(neg), m)"),
        (b.slide2d(3, 1, M), "map(transpose, slide(3, 1, map(slide(3, 1), m)))"),
        (
            b.pad(1, 0, b.constant((2, 0.5)), b.zip_(XS, XS)),
            "zip(pad(1, 0, constant(2.0), xs), pad(1, 0, constant(0.5), xs))",
        ),
        (
            b.pad(1, 0, b.constant(7), b.map_(lambda x: b.tuple_(-x, x), XS)),
            "let array = map(fun x => (-x, x), xs) in zip(pad(1, 0, constant(7.0), map(fun pair => get(0, pair), "
            "array)), pad(1, 0, constant(7.0), map(fun pair => get(1, pair), array)))",
        ),
        (b.pad2d(1, 1, "wrap", M), "pad(1, 1, wrap, map(pad(1, 1, wrap), m))"),
        (b.pad(1, 0, b.constant(0), M), "transpose(map(pad(1, 0, constant(0.0)), transpose(m)))"),
        (
            b.pad2d(1, 1, b.constant(0), M),
            "transpose(map(pad(1, 1, constant(0.0)), transpose(map(pad(1, 1, constant(0.0)), m))))",
        ),
        ((b.add @ b.id_)(b.tuple_(1.0, 2.0)), "let (a, b) = (1.0, 2.0) in a + b"),
    ],
)  # fmt: skip
def test_patterns(term: ir.Expr, text: str) -> None:
    assert same(term, text)


@pytest.mark.parametrize("length", [8, "N"])
def test_steps_that_keep_the_length_meet_arrays_of_it(length: int | str) -> None:
    xs, m = Input("xs", array(F32, length)), Input("m", array(F32, length, length))
    term = b.iterate(2, lambda p: b.map_(lambda row: b.reduce_(b.add, 0.0, b.map_(b.mul, b.zip_(row, p))), m), xs)
    assert type_of(term) == xs.type
    assert term.function.binder == ir.Var("p", xs.type)
    with pytest.raises(SizeProblem, match="zip needs arrays of one length"):
        b.iterate(2, lambda p: b.map_(b.add, b.zip_(p, b.split(2, p))), xs)


def test_the_size_of_an_iterate_is_new() -> None:
    xs = Input("xs", array(F32, "n"))
    term = b.iterate(1, lambda p: b.map_(lambda x: x + b.at(0, xs), p), xs)
    assert term.size == "n1"
    captured = Input("ks", array(F32, "n"))
    term = b.iterate(1, lambda p: b.map_(lambda x: x + b.at(0, captured), p), XS)
    assert term.size != "n"


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: b.map_(lambda x, y: x, XS), TypeProblem, "map: the function takes (x, y), but is given f32"),
        (lambda: b.map_(lambda x: x + True, XS), TypeProblem, "True is no value of the type f32"),
        (lambda: b.map_(lambda x: b.to_i32(x) + 1.5, XS), TypeProblem, "1 is an i32, 1.0 an f32"),
        (lambda: b.map_(max, b.zip_(XS, YS)), TypeProblem, "wrap it in a lambda"),
        (lambda: b.map_(lambda *xs: xs, XS), TypeProblem, "one or more named parameters"),
        (lambda: b.map_(lambda: 1.0, XS), TypeProblem, "one or more named parameters"),
        (lambda: b.map_(XS, XS), TypeProblem, "map takes a function there, got a value of the type [f32]8"),
        (lambda: b.map_(lambda x: x if x < 0 else -x, XS), TypeProblem, "select"),
        (lambda: b.map_(lambda x: x == x * 1.0, XS), TypeProblem, "here is False: Python's == and != say whether"),
        (lambda: b.map_(lambda x: 1.0 if x == 0.0 else x, XS), TypeProblem, "and not_equal(a, b), here with 0.0"),
        (lambda: b.map_(lambda x: b.select(x != 0.0, x, 1.0), XS), TypeProblem, "use equal(a, b) and not_equal(a, b)"),
        (lambda: b.map_(lambda x: None, XS), TypeProblem, "expected a term, a number or a tuple of them, got None"),
        (lambda: b.map_(lambda x: [x, x], XS), TypeProblem, "got a list; a tuple is (a, b)"),
        (lambda: b.map_(b.abs_, b.map_(b.abs_)), TypeProblem, "map takes 2 arguments (function, array), and has 1"),
        (lambda: b.split(True, XS), TypeProblem, "split takes a size there, got True"),
        (lambda: b.split(1.5, XS), TypeProblem, "split takes a size there, got 1.5"),
        (lambda: b.split(XS, XS), TypeProblem, "got a value of the type [f32]8"),
        (lambda: b.map_glb(3, b.abs_, XS), TypeProblem, "dimension 0, 1 or 2, not 3"),
        (lambda: b.as_vector("w", XS), TypeProblem, "takes a number there"),
        (lambda: b.gather(lambda i: 1.5, XS), TypeProblem, "returns an index, got 1.5"),
        (lambda: b.gather("reverse", XS), TypeProblem, "expected an index function, got 'reverse'; it is reverse"),
        (lambda: b.pad(1, 1, 7, XS), TypeProblem, "takes a boundary"),
        (lambda: b.split(3, XS), SizeProblem, "does not divide"),
        (lambda: b.zip_(XS, b.transpose(M)), SizeProblem, "zip needs arrays of one length, got 8 and 4"),
        (lambda: b.get(2, b.tuple_(1, 2)), TypeProblem, "outside a tuple of 2 components"),
        (lambda: b.literal(1e39), TypeProblem, "beyond the range of f32"),
        (lambda: b.literal(1 << 40), TypeProblem, "beyond the range of i32"),
        (b.join, TypeProblem, "join takes 1 argument"),
        (lambda: XS[8], SizeProblem, "at(8) is outside an array of length 8"),
        (lambda: XS[b.literal(1.0)], TypeProblem, "the index of an element is an i32 or a size, got f32"),
        (lambda: b.literal(1)[b.literal(1)], TypeProblem, "lookup works on an array, got i32"),
        (
            lambda: b.map_(b.vectorize(4, b.vectorize(2, b.abs_)), b.as_vector(4, XS)),
            TypeProblem,
            "expected vectors at the leaves",
        ),
    ],
)  # fmt: skip
def test_errors(build: Any, kind: type[LiftError], message: str) -> None:
    with pytest.raises(LiftError, match=re.escape(message)) as caught:
        build()
    assert type(caught.value) is kind


def test_elements_by_index() -> None:
    i = Input("i", I32)
    assert XS[i * 2] + XS[7] == parse_term("xs[i * 2] + xs[7]", (XS, i))
    assert XS[i] == b.at(0, b.lookup(b.fill(1, i), XS))


def test_python_and_numpy_on_terms() -> None:
    """What a user writes out of habit works, or the message says what to write."""
    made = b.map_(lambda x: np.exp(np.maximum(x, 0)) + np.float32(2) * x, XS)
    assert same(made, "map(fun x => exp(max(x, 0)) + 2 * x, xs)")
    assert same(b.map_(np.sqrt, XS), "map(sqrt, xs)")

    def difference(t: Any) -> ir.Expr:
        low, high, _ = t
        return high - low

    assert same(b.map_(difference, b.zip_(XS, YS, XS)), "map(fun t => get(1, t) - get(0, t), zip(xs, ys, xs))")
    assert same(b.map_(lambda t: t[-1] - t[0], b.zip_(XS, YS)), "map(fun t => get(1, t) - get(0, t), zip(xs, ys))")
    x = XS[0]
    assert np.float32(1) != x
    refused: list[tuple[Any, str]] = [
        (lambda: sum(XS), "reduce_(add, 0.0, xs)"), (lambda: list(XS), "map_(f, xs)"),
        (lambda: list(x), "cannot go through f32"), (lambda: len(XS), "its size is 8"), (lambda: len(x), "of type f32"),
        (lambda: XS @ YS, "reduce_(add, 0.0, map_(mul, zip_(xs, ys)))"), (lambda: np.dot(XS, YS), "map_(mul"),
        (lambda: np.sum(XS), "reduce_(add"), (lambda: np.exp(0.0 + XS), "use map"), (lambda: XS.sum, "reduce_(add"),
        (lambda: M.T, "transpose(xs)"), (lambda: 2 * math.exp(x), "exp(x) for math.exp(x)"),
        (lambda: x // 2, "floor(x / y)"), (lambda: np.clip(x, 0, 1), "write min_(max_(x, low), high)"),
        (lambda: int(x), "to_i32(x)"), (lambda: range(x), "nat('N')"), (lambda: round(x), "floor(x + 0.5)"),
        (lambda: ir.MakePair(x, x)[2], "one of 0 to 1, got 2"),
        (lambda: 1 if (x > 0) & (x < 1) else 0, "choose with select"), (lambda: not ~(x > 0), "a & b, a | b or ~a"),
        (lambda: b.map_(lambda x: x or 1.0, XS), "a condition has no value"),
        (lambda: 1.0 in XS, "equal(x, v)"), (lambda: np.cbrt(x), "NumPy's cbrt does not work on terms"),
        (lambda: np.sign(x), "terms; it is select(x > 0.0"),
    ]  # fmt: skip
    for build, message in refused:
        with pytest.raises(TypeProblem, match=re.escape(message)):
            build()
    assert not hasattr(XS, "shape")
    assert not hasattr(XS, "anything")


def test_programs_are_checked() -> None:
    with pytest.raises(TypeProblem, match="needs a type"):
        b.program(lambda x: x)
    with pytest.raises(SyntaxProblem, match="<type>:1:2: there is no type 'f31'"):

        @b.program
        def wrong(x: "[f31]N") -> Any:  # pyright: ignore  # noqa: F722
            return x

    with pytest.raises(SizeProblem, match="no size 'M'; it has N"):

        @b.program(sizes={"M": 3})
        def sized(x: "[f32]N") -> Any:  # pyright: ignore  # noqa: F722
            return x

    def sized_by_n(x: "[f32]N") -> Any:  # pyright: ignore  # noqa: F722
        return x

    for sizes, message in (([4], "the sizes of a program are given as"), ({"N": "4"}, "must be a whole number")):
        with pytest.raises((SizeProblem, TypeProblem), match=message):
            b.program(sizes=sizes)(sized_by_n)  # pyright: ignore

    leaked: list[ir.Expr] = []
    b.map_(lambda x: leaked.append(x) or x, XS)
    with pytest.raises(TypeProblem, match="unbound variables: x"):

        @b.program
        def leaking(y: F32) -> Any:  # pyright: ignore
            return leaked[0] + y


def test_every_word_of_the_text_form_is_reserved() -> None:
    assert b.BUILTINS.keys() == PATTERN_NAMES | OPERATIONS.keys()


def test_everything_listed_is_there() -> None:
    assert all(hasattr(b, name) for name in b.__all__)


@pytest.mark.parametrize(
    ("operator", "initial", "types"),
    [
        (lambda s, e: s + b.select(e > 0.0, 1, 0), 0, "i32"),
        (lambda s, e: s + e, 0, "f32"),
        (lambda s, e: s + e, 0.0, "f32"),
        (b.add, 0, "f32"),
        (lambda s, e: (s[0] + e, s[1] + 1), (0, 0), "(f32, i32)"),
        (lambda s, e: (s[0] + b.select(e > 0.0, 1, 0), s[1] + 1), (0, -1), "(i32, i32)"),
        (lambda s, e: (s[0] + b.to_f64(e), s[1]), (0, 0), None),  # nothing around is an f64
    ],
)
def test_whole_numbers_that_folds_begin_with_have_the_types_that_their_operators_need(
    operator: Any, initial: Any, types: str | None
):
    for fold in (b.reduce_seq, b.reduce_):
        xs = Input("xs", array(F32, 8))
        if types is None:
            with pytest.raises(TypeProblem):
                fold(operator, initial, xs)
        else:
            assert str(type_of(fold(operator, initial, xs))) == types
