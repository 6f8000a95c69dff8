"""The text form: round trips, and errors that point to their place."""

from __future__ import annotations

import pytest
from hypothesis import given

from lift_egraph.errors import InputProblem, LiftError, SizeProblem, SyntaxProblem, TypeProblem
from lift_egraph.language import ir, syntax
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.build import F32, F64, I32, array
from lift_egraph.language.check import type_of
from lift_egraph.language.grammar import SHOWN
from lift_egraph.language.nat import nat
from lift_egraph.programs import describe, load, names
from tests.strategies import programs

# --- round trips ------------------------------------------------------------------------------------------


def assert_round_trip(program: ir.Program) -> None:
    for width in (88, 20):
        text = syntax.print_program(program, width)
        again = syntax.parse_program(text)
        assert again.inputs == program.inputs
        assert again.sizes == program.sizes
        assert alpha_equal(again.body, program.body), text
        assert syntax.print_program(again, width) == text


@given(programs() | programs(low_level=True))
def test_programs_survive_printing(program: ir.Program) -> None:
    assert_round_trip(program)


@pytest.mark.parametrize("name", names())
def test_bundled_programs_survive_printing(name: str) -> None:
    assert_round_trip(load(name))
    assert describe(name)


ENVIRONMENT = {
    "x": "f32", "d": "f64", "i": "i32", "c": "bool", "xs": "[f32]16", "vs": "[f32x4]4", "m": "[[f32]4]8",
    "ks": "[i32]3", "t": "(f32, i32, [f32]4)", "ys": "[f32]N", "zs": "[f32](4 * N)",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "1.0", "1.5f64", "-2", "inf", "-inf64", "true", "1e+20", "x - (x - x)", "x - x - x", "x * (x + x) / x", "-(-x)",
        "neg(-1.0)", "-x * -1.0", "-(x + x)", "x < x + x && c || c", "(c || c) && c", "x + x == x",
        "(x, i, c)", "((x, i), c)", "get(0, t)", "get(1, t)", "get(2, t)", "rest(t)", "get(1, rest(t))", "i % 3 / 2",
        "let y = x + x in y * y", "(let y = x in y) + x", "map(abs, xs)", "map(id, xs)", "map(transpose, split(2, m))",
        "map(fun y => y + x, xs)", "reduce(add, 0.0, xs)", "zip(xs, xs, xs)",
        "map(fun (a, b) => b + a, zip(xs, xs))", "gather(reverse, xs)", "gather(j => (j / 2) + 1, xs)",
        "scatter(j => (j + 3) % n, xs)", "slide(3, 1, xs)", "pad(1, 2, wrap, xs)", "pad(1, 1, constant(0.5), xs)",
        "iterate(3, fun (p: [f32]16) => map(fun a => a + a, p), xs)", "iterate(2, fun (p: [f32]16) => p, xs)",
        "iterate(2, fun (p: [f32]k) => map(at(0), split(2, p)), xs)", "at(3, xs)", "generate(4, fun k => k * k)",
        "fill(N / 2, x)", "lookup(ks, xs)", "mapGlb(1, sqrt, xs)", "mapSeq(mapLcl(0, abs), m)",
        "reduceSeq(fun (acc, a) => acc + to_i32(a), 0, xs)", "toLocal(toPrivate(x))", "asVector(4, xs)", "asScalar(vs)",
        "toLocalOnce(toLocalAhead(x))",
        "map(vectorize(4, fun a => a * a), vs)", "map(vectorize(2, mul), zip(asVector(2, xs), asVector(2, xs)))",
        "map(dot, zip(vs, vs))", "dot(at(0, vs), at(1, vs)) * x", "map(fun (a, b) => dot(b, a) + x, zip(vs, vs))",
        "at(0, map(fun v => vectorize(4, abs)(v), vs))", "select(c, x, -x)", "to_f64(x) + d", "split(N, zs)",
        "split(min(N, 4), zs)", "join(split(4, zs))", "map(reduceSeq(add, x), m)", "map(fun r => zip(r, r), m)",
    ],
)  # fmt: skip
def test_each_form_survives_printing(text: str) -> None:
    term = syntax.parse_term(text, ENVIRONMENT)
    printed = syntax.print_term(term)
    assert printed == text.replace("get(1, rest(t))", "get(2, t)")
    assert alpha_equal(syntax.parse_term(printed, ENVIRONMENT), term)


@pytest.mark.parametrize(
    ("sugared", "plain"),
    [
        ("(join . map(map(abs)) . split(4))(xs)", "join(map(map(abs), split(4, xs)))"),
        ("(join ∘ split(4))(xs)", "join(split(4, xs))"),
        ("mapWrg(0)(abs)(xs)", "mapWrg(0, abs, xs)"),
        ("toLocal(mapSeq(abs))(xs)", "toLocal(mapSeq(abs, xs))"),
        ("(fun a => a + a)(x)", "let a = x in a + a"),
        ("(fun (a, b) => a + b)(x, x)", "let (a, b) = (x, x) in a + b"),
        ("(abs . neg)(x)", "abs(-x)"),
        ("let (_, (a, _)) = (x, (x, x)) in a", "let (x1, a, x2) = (x, x, x) in a"),
        ("!c == !(x < x)", "not(c) == not(x < x)"),
        ("map(fun (a: f32) => a + 1.0, xs)", "map(fun a => a + 1.0, xs)"),
        ("gather(stride(4), xs)", "gather(i => 4 * (i % (n / 4)) + (i / (n / 4)), xs)"),
        ("x -- the rest is a comment", "x"),
        ("iterate(1, map(abs), xs)", "iterate(1, fun (x: [f32]16) => map(abs, x), xs)"),
        ("iterate(1, fun (p: [f32]n) => map(abs, p), xs)", "iterate(1, fun (p: [f32]16) => map(abs, p), xs)"),
        ("map(toLocal . abs, xs)", "map(fun x1 => toLocal(abs(x1)), xs)"),
        ("map(fun map1 => map1, xs)", "map(id, xs)"),
        ("if c then x else if x < 0 then 1 else f32(i32(x))", "select(c, x, select(x < 0.0, 1.0, to_f32(to_i32(x))))"),
        ("zip2d(m, m)", "map(fun pair => zip(get(0, pair), get(1, pair)), zip(m, m))"),
        ("slide2d(3, 1, m)", "map(transpose, slide(3, 1, map(slide(3, 1), m)))"),
    ],
)
def test_sugar(sugared: str, plain: str) -> None:
    assert syntax.print_term(syntax.parse_term(sugared, ENVIRONMENT)) == plain


def test_literals_have_the_type_of_their_suffix() -> None:
    types = {
        text: type_of(syntax.parse_term(text)) for text in ("1.0", "1", "1.0f64", "3.0f32", "3i32", "3f64", "inf64")
    }
    assert types == {"1.0": F32, "1": I32, "1.0f64": F64, "3.0f32": F32, "3i32": I32, "3f64": F64, "inf64": F64}


def test_names_that_shadow_are_printed_apart() -> None:
    x32, x = ir.Var("x", F32), ir.Input("x", array(F32, 4))
    inner = ir.Map(ir.Lambda(x32, ir.Call("add", (x32, ir.At(nat(0), x)))), x)
    printed = syntax.print_term(inner)
    assert printed == "map(fun x1 => x1 + at(0, x), x)"
    assert alpha_equal(syntax.parse_term(printed, {"x": "[f32]4"}), inner)


def test_a_boundary_without_its_value_is_not_what_is_meant() -> None:
    with pytest.raises(SyntaxProblem, match=r"1:11: expected a boundary: clamp, mirror, wrap or constant\(value\)\n"):
        syntax.parse_term("pad(1, 1, constant, xs)", {"xs": "[f32]4"})


def test_a_long_program_is_broken_into_lines() -> None:
    text = syntax.print_program(load("mm"), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.startswith("program mm(A: [[f32]K]M, B: [[f32]N]K)\n  where M = 512, K = 512, N = 512 =\n")


def test_open_parameters_are_declared_after_where() -> None:
    program = syntax.parse_program("program f(xs: [f32]N) where N = 8, s = ? = join(split(s, xs))")
    assert_round_trip(program)
    assert program.sizes == (("N", 8),)


# --- errors -------------------------------------------------------------------------------------------------

HEAD = "program f(x: f32, xs: [f32]8, ys: [f32]N, m: [[f32]4]8) where N = 4 =\n  "


@pytest.mark.parametrize(
    ("body", "column", "kind", "message"),
    [
        ("mpa(abs, xs)", 3, SyntaxProblem, "unknown name 'mpa'; did you mean 'map'?"),
        ("map(abs, sx)", 12, SyntaxProblem, "unknown name 'sx'; did you mean 'xs'?"),
        ("map(abs, xs", 14, SyntaxProblem, "but the text ends"),
        ("map(abs, xs))", 15, SyntaxProblem, "found ')'"),
        ("map(, xs)", 7, SyntaxProblem, "expected an expression or ')', found ','"),
        ("reduce(+, 0.0, xs)", 10, SyntaxProblem, "found '+'; the operation by itself is add"),
        ("reduce(*, 1.0, xs)", 10, SyntaxProblem, "found '*'; the operation by itself is mul"),
        ("map(fun (_, _) => _, zip(xs, xs))", 21, SyntaxProblem, "unknown name '_'"),
        ("x $ x", 5, SyntaxProblem, "'$' cannot stand here"),
        ("fun => x", 7, SyntaxProblem, "expected '(' or a name, found '=>'"),
        ("map(fun in => in, xs)", 11, SyntaxProblem, "found 'in'; 'in' is a word of the language; choose another name"),
        ("let y x in y", 9, SyntaxProblem, "expected '=', found 'x'"),
        ("x x", 5, SyntaxProblem, "expected an operator"),
        ("map(fun map => map, xs)", 11, SyntaxProblem, "'map' is a word of the language"),
        ("map(fun (a, a) => a, zip(xs, xs))", 15, SyntaxProblem, "'a' is declared twice"),
        ("gather(n => n, xs)", 10, SyntaxProblem, "n is the length"),
        ("gather(x, xs)", 10, SyntaxProblem, "expected an index function"),
        ("map(True, xs)", 7, SyntaxProblem, "unknown name 'True'; it is true"),
        ("m @ m", 5, SyntaxProblem, "'@' cannot stand here; of matrices it is map(fun row =>"),
        ("return x", 3, SyntaxProblem, "'return' cannot stand here"),
        ("pad(1, 1, clmp, xs)", 13, SyntaxProblem, "did you mean 'clamp'?"),
        ("pad(1, 1, edge, xs)", 13, SyntaxProblem, "it is clamp"),
        ("x <> 0", 5, SyntaxProblem, "'<>' cannot stand here; it is a != b"),
        ("while x > 0 do x", 3, SyntaxProblem, "'while' cannot stand here; map, reduce and iterate repeat things"),
        ("i => i", 3, SyntaxProblem, "an index function stands only in gather and scatter"),
        ("1.5i32", 3, SyntaxProblem, "1.5 is no whole number"),
        ("9" * 500, 3, SyntaxProblem, "too long"),
        ("split(1.5, xs)", 9, SyntaxProblem, "expected a size"),
        ("split(4 / 0, xs)", 11, SyntaxProblem, "divided by zero"),
        ("map(fun (a: f23) => a, xs)", 15, SyntaxProblem, "there is no type 'f23'"),
        ("3000000000", 3, TypeProblem, "beyond the range of i32"),
        ("1e60", 3, TypeProblem, "beyond the range of f32"),
        ("map(fun a => a + to_i32(a), xs)", 18, TypeProblem, "got f32, i32; cast with to_f32; 1 is an i32, 1.0 an f32"),
        ("reduce(fun (a, b) => a + b, 0i32, xs)", 26, TypeProblem, "got i32, f32; cast with to_f32; 1 is an i32"),
        ("concat(xs, fill(2, 0i32))", 3, TypeProblem, "concat needs arrays of elements of one type, got [f32]8 and"),
        ("x ** 2", 5, SyntaxProblem, "'**' cannot stand here; a power is pow(a, b)"),
        ("x ^ 2", 5, SyntaxProblem, "'^' cannot stand here; a power is pow(a, b)"),
        ("if x > 0 then x", 18, SyntaxProblem, "expected 'else', but the text ends"),
        ("x & 2", 5, SyntaxProblem, "'&' cannot stand here; it is a && b, and of bits bit_and(a, b)"),
        ("x >> 2", 5, SyntaxProblem, "'>>' cannot stand here; it is shift_right(a, b)"),
        ("x > 0 ? x : 0", 9, SyntaxProblem, "'?' cannot stand here; a choice"),
        ("let t = (x, x) in at(0, t)", 21, TypeProblem, "got (f32, f32); a component of a tuple is get(0, t)"),
        ("x > 0 or x < 1", 9, SyntaxProblem, "'or' cannot stand here; it is written a || b"),
        ("map(fun a => not a, xs)", 16, SyntaxProblem, "'not' cannot stand here; it is written !a, or not(a)"),
        ("sum(xs)", 3, SyntaxProblem, "unknown name 'sum'; a sum is reduce(add, 0, xs)"),
        ("reduce(fun a b => a + b, 0, xs)", 16, SyntaxProblem, "found 'b'; several parameters are fun (x, y)"),
        ("map(fun v, w => v, xs)", 12, SyntaxProblem, "found ','; several parameters are fun (x, y)"),
        ("X(1)", 3, SyntaxProblem, "unknown name 'X'; did you mean 'x'?"),
        ("lookup(xs, xs)", 3, TypeProblem, "the indices are i32, got f32; a cast is to_i32(x)"),
        ("gather(i, xs)", 10, SyntaxProblem, "elements at computed places are found by lookup(indices, xs)"),
        ("let f = fun (g, a) => g(a) in f(fun z => z)", 33, TypeProblem, "the function takes (g, a), of which"),
        ("let f = fun ((a, b), c) => a in f(abs, x)", 35, TypeProblem, "the function takes ((a, b), c), of which"),
        ("let f = fun g => g(1.0) in f(x)", 20, TypeProblem, "this is a value of the type f32, not a function"),
        ("xs[0:1]", 7, SyntaxProblem, "found ':'; a part of an array is slice(start, length, xs)"),
        ("xs[0..3]", 7, SyntaxProblem, "found '..'; a part of an array is slice(start, length, xs)"),
        ("x if x > 0 else 1", 5, SyntaxProblem, "found 'if'; a choice between values is if c then a else b"),
        ("map(fun v => if v > 0 then v, xs)", 31, SyntaxProblem, "found ','; a choice between values is if c then"),
        ("x * 2.5f", 7, SyntaxProblem, "'2.5f' is no number; numbers are 2, 0x2F, 2.0 or 1e-3, and with their type"),
        ("bit_and(1, 0xfg)", 14, SyntaxProblem, "'0xfg' is no number"),
        ("0x1ffffffff", 3, TypeProblem, "8589934591 is beyond the range of i32"),
        ("x * 1e400", 7, SyntaxProblem, "1e400 is beyond the range of f64; infinity is inf"),
        ("map(abs) xs", 12, SyntaxProblem, "found 'xs'; f of x is f(x)"),
        ("x > 0 && x", 9, TypeProblem, "got bool, f32; a condition of a number is x != 0"),
        ("!x", 3, TypeProblem, "not works on bools, got f32; a condition of a number is x != 0"),
        ("lookup(2, xs)", 3, TypeProblem, "lookup works on an array, got i32; an element at a computed place is xs[i]"),
        ("map(fun v => 'a', xs)", 16, SyntaxProblem, "cannot stand here; a text is an input of bytes, [u8]N"),
        ("0 < x < 1", 9, SyntaxProblem, "found '<'; a value between two is 0 < x && x < 1"),
        ("slide(2, xs)", 12, SizeProblem, "not a size; slide takes 3 arguments (size, step, array)"),
        ("pad(1, clamp, xs)", 10, SizeProblem, "'clamp' is no known size; pad takes 4 arguments (left, right, bound"),
        ("x * 5.", 9, SyntaxProblem, "expected an expression, but the text ends; a number with a point is 5.0"),
        ("5. - x", 3, TypeProblem, "not a function; a number with a point is 5.0"),
        ("let y = x z", 13, SyntaxProblem, "found 'z'; what a let binds ends with 'in'"),
        ("x + .5", 7, SyntaxProblem, "found '.'; a number is 0.5"),
        ("x // 2", 5, SyntaxProblem, "'//' cannot stand here; a comment begins with --"),
        ("y := x", 5, SyntaxProblem, "':=' cannot stand here; a value is named by let x = e in"),
        ("map(fun v => v = x, xs)", 18, SyntaxProblem, "found '='; a value is named by let x = e in, and compared by"),
        ("zip([1, 2], xs)", 7, SyntaxProblem, "found '['; arrays are inputs, or made by generate"),
        ("map(\\v -> v, xs)", 7, SyntaxProblem, "cannot stand here; a function is fun x => …"),
        ("clamp(x, 0, 1)", 3, SyntaxProblem, "unknown name 'clamp'; it is min(max(x, low), high)"),
        ("let mean = x in mean mean", 24, SyntaxProblem, "expected an operator"),
        ("if x > 0 then x elif x < 1 then 2 else 3", 19, SyntaxProblem, "'elif' cannot stand here; it is else if"),
        ("x + if x > 0 then x else 0", 7, SyntaxProblem, "begins with if stands in parentheses"),
        ("map(fun v -> v, xs)", 13, SyntaxProblem, "'->' cannot stand here; a function is fun x => …"),
        ("map(v -> v, xs)", 9, SyntaxProblem, "'->' cannot stand here; a function is fun x => …"),
        ("map(fun v: v, xs)", 12, SyntaxProblem, "found ':'; a function is fun x => …"),
        ("if x > 0 then xs else slice(0, 3, xs)", 3, TypeProblem, "between values of one type, got [f32]8 and [f32]3"),
        ("xs |> map(abs)", 6, SyntaxProblem, "'|>' cannot stand here; f of x is f(x)"),
        ("x % 2.0", 5, TypeProblem, "the rest of floats is x - floor(x / y) * y"),
        ("reduce(add, 0, map(fun v => v > 0, xs))", 3, TypeProblem, "select(c, 1, 0) makes numbers of bools"),
        ("xs[0, 1]", 7, SyntaxProblem, "found ','; arrays of arrays are [[f32]M]N, their elements"),
        ("map(abs)", 3, TypeProblem, "got a function; map takes 2 arguments (function, array), and has 1"),
        ("abs", 3, TypeProblem, "expected a value, got a function"),
        ("map(xs, xs)", 7, TypeProblem, "this is a value of the type [f32]8, not a function"),
        ("map(abs, x)", 3, TypeProblem, "map works on an array, got f32"),
        ("map(fun (a, b) => a, xs)", 3, TypeProblem, "map: the function takes (a, b), but is given f32"),
        ("map(fun (a: i32) => a, xs)", 3, TypeProblem, "a is declared as i32, but is given f32"),
        ("(x, x) + (x, x)", 10, TypeProblem, "add works on scalars, got (f32, f32), (f32, f32)"),
        ("map(fun (a, b) => a + b, zip(xs, xs, xs))", 23, TypeProblem, "fun (a, b) => … takes (f32, f32) apart"),
        ("(x, x) < (x, true)", 10, TypeProblem, "lt needs arguments of one type, got (f32, f32), (f32, bool)"),
        ("select(x, (x, x), (x, x))", 3, TypeProblem, "the condition of select is a bool, got f32"),
        ("x + map(transpose, xs)", 7, TypeProblem, "transpose works on an array, got f32"),
        ("split(4)", 3, TypeProblem, "split takes 2 arguments (chunk, array), and has 1"),
        ("join(xs, xs)", 3, TypeProblem, "join takes 1 argument (array), not 2"),
        ("zip(xs)", 3, TypeProblem, "zip takes two or more arrays"),
        ("get(2, (x, x))", 3, TypeProblem, "get(2) is outside a tuple of 2 components"),
        ("mapGlb(3, abs, xs)", 3, TypeProblem, "dimension 0, 1 or 2, not 3"),
        ("x(x)", 3, TypeProblem, "not a function"),
        ("map(fun t => t.0 * t.1, zip(xs, xs))", 16, TypeProblem, "the components of a tuple t are t[0], t[1], …"),
        ("split(3, xs)", 3, SizeProblem, "split(3) does not divide an array of length 8"),
        ("split(K, xs)", 9, SizeProblem, "'K' is no known size"),
        ("split(x, xs)", 9, SizeProblem, "'x' is a value of the type f32, not a size"),
        ("zip(xs, ys)", 3, SizeProblem, "zip needs arrays of one length, got 8 and N"),
        ("at(8, xs)", 3, SizeProblem, "at(8) is outside an array of length 8"),
    ],
)  # fmt: skip
def test_errors_point_to_their_place(body: str, column: int, kind: type[LiftError], message: str) -> None:
    with pytest.raises(LiftError) as caught:
        syntax.parse_program(HEAD + body, "f.lift")
    first, line, caret = str(caught.value).split("\n")
    assert first.startswith(f"f.lift:2:{column}: ")
    assert message in first
    assert f"    {body}".startswith(line.removesuffix("…"))
    assert caret == " " * (column + 1) + "^"
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected 'program', but the text ends"),
        ("map(abs, xs)", "1:1", "expected 'program', found 'map'; a program is program f(x: [f32]N) = …"),
        ("program f(x: [f32]N) where N = 4 let y = x in y", "1:34", "= stands before what a program gives"),
        ("program f(x: [f32]N) where N = 4, M = 2 * N = x", "1:41", "found '*'; a size that others make is a value"),
        ("program f(x: [f32][N]) = x", "1:19", "found '['; arrays are [f32]N, arrays of arrays [[f32]M]N"),
        ("program f(x: f32) where N = 4 = x", "1:25", "nothing has the size 'N'"),
        ("program f(x: [f32]N) where N = 0 = x", "1:32", "at least 1"),
        ("program f(x: [f32]N) where N = 4, h = 0.5 = map(fun v => h * v, x)", "1:39", "named by let h = 0.5 in"),
        ("program f(x: f32, x: f32) = x", "1:19", "'x' is declared twice"),
        ("program f(N: i32, x: [f32]N) = x", "1:11", "'N' is the name of a size; choose another name for one of them"),
        ("program f(x: f32[N]) = x", "1:17", "found '['; an array is [f32]N"),
        ("program f(x: [[f32; N]; M]) = x", "1:19", "';' cannot stand here; an array is [f32]N"),
        ("program f(map: f32) = map", "1:11", "'map' is a word of the language"),
        ("program f(x: [f32](0 - 1)) = x", "1:22", "must not be negative"),
        ("program f(x: f33) = x", "1:14", "did you mean 'f32'?"),
        ("program f(x, y: [f32]N) = x", "1:12", "found ','; each input has its type: x: [f32]N, y: [f32]N"),
        ("program f(x: f32) = x where N = 1", "1:23", "where and sizes stand in front of the ="),
        ("program f(x: f32) = x program g(x: f32) = x", "1:23", "a text has one program"),
        ("program f(x: f32) = g(x) function g(x: f32) = x", "1:26", "found 'function'; functions stand above the"),
        ("program f(x: f32, k: i32) = fill(k, x)", "1:34", "not a size, which is known before: where k = ?;"),
        ("-- one\n\tprogram f(x: f32) =\n\t\ty", "3:3", "unknown name 'y'"),
    ],
)
def test_errors_in_the_head(text: str, place: str, message: str) -> None:
    with pytest.raises(LiftError) as caught:
        syntax.parse_program(text)
    assert str(caught.value).startswith(f"<text>:{place}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("let f = fun (v: [f32]n) => v[0] / n in f(slice(0, 3, xs))", "let v = slice(0, 3, xs) in v[0] / 3"),
        ("map(fun (w: [f32]k) => w[k - 1], split(2, xs))", "map(fun w => w[1], split(2, xs))"),
        ("let n = 2 in map(fun (w: [f32]n) => w[n - 1], split(2, xs))", "map(fun w => w[1], split(2, xs))"),
        ("let f = fun (m: [[f32]c]r) => generate(r, fun i => c) in f(split(2, xs))",
         "let m = split(2, xs) in generate(N / 2, fun i => 2)"),
        ("let half = fun (k, v) => slice(0, k, v) in (half(2, xs), half(N / 2, xs))",
         "(slice(0, 2, xs), slice(0, N / 2, xs))"),
    ],
)  # fmt: skip
def test_lengths_in_annotations_of_local_functions_are_sizes(written: str, plain: str) -> None:
    head = "program f(xs: [f32]N) where N = 4 = "
    assert syntax.parse_program(head + written).body == syntax.parse_program(head + plain).body


@pytest.mark.parametrize(
    "applied", ["fun (v: [i32]n) => 1.0 in f(xs)", "fun (v: [f32]n, w: [f32]n) => 1.0 in f(xs, slice(0, 3, xs))"]
)
def test_annotations_of_local_functions_are_compared(applied: str) -> None:
    with pytest.raises(TypeProblem, match=r"is declared as \[.32\]n, but is given \[f32\]"):
        syntax.parse_program(f"program f(xs: [f32]N) where N = 4 = let f = {applied}")


def test_the_caret_follows_tabs() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        syntax.parse_program("program f() =\n\t\ty")
    assert str(caught.value).endswith("\n  \t\ty\n  \t\t^")


@pytest.mark.parametrize(
    "deep",
    ["abs(" * 500 + "x" + ")" * 500, "x" + " + x" * 5000, "let y = x in " * 1001 + "x", "- " * 1000 + "x",
     "get(0, " * 300 + "x" + ")" * 300, "map(fun a => " * 300],
)  # fmt: skip
def test_absurd_depth_is_a_clear_error(deep: str) -> None:
    with pytest.raises(SyntaxProblem):
        syntax.parse_program(f"program f(x: f32) = {deep}")


@pytest.mark.parametrize("level", ["abs(", "let y = x in abs(", "map(fun a => "])
def test_the_deepest_allowed_nesting_works(level: str) -> None:
    depth = 60
    t = "[" * depth + "f32" + "]2" * depth if "map" in level else "f32"
    inner, close = ("a", f", {{}}{')'}") if "map" in level else ("x", ")")
    text = inner
    for k in reversed(range(depth)):
        text = level + text + (close.format("a" if k else "x") if "map" in level else close)
    program = syntax.parse_program(f"program f(x: {t}) = {text}")
    assert_round_trip(program)


def test_lets_are_no_depth() -> None:
    lets = "".join(f"let x{i + 1} = x{i} + x0 in " for i in range(300))
    assert_round_trip(syntax.parse_program(f"program f(x0: f32) = {lets}x300"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("zip(f(xs), f(ys))", "zip(map(abs, xs), map(abs, ys))"),
        (
            "zip(f(f(xs)), f(g(ys)))",
            """let a = map(abs, xs) in let b = map(fun a => a * 2.0, ys) in
             zip(map(abs, a), map(abs, b))""",
        ),
        (
            "h(f(xs), f(f(ys)))",
            """let c = map(abs, ys) in let a = map(abs, xs) in let b = map(abs, c) in
             map(fun (p, q) => p + q, zip(a, b))""",
        ),
        (
            "map(fun a => h(f(fill(8, a)), xs), ys)",
            """map(fun a => let c = fill(8, a) in let d = map(abs, c) in
             map(fun (p, q) => p + q, zip(d, xs)), ys)""",
        ),
        (
            "let y = g(f(f(xs))) in h(y, y)",
            """let a = map(abs, xs) in let b = map(abs, a) in
             let y = map(fun a => a * 2.0, b) in map(fun (p, q) => p + q, zip(y, y))""",
        ),
        ("k(abs, f(f(xs)))", "let a = map(abs, xs) in let b = map(abs, a) in map(abs, b)"),
    ],
)
def test_arrays_that_local_functions_are_applied_to_are_named_around_it_all(body: str, expected: str) -> None:
    head = "program p(xs: [f32]8, ys: [f32]8) = "
    functions = """let f = fun a => map(abs, a) in let g = fun b => map(fun a => a * 2.0, b) in
        let h = fun (a, b) => map(fun (p, q) => p + q, zip(a, b)) in let k = fun (e, a) => map(e, a) in """
    assert alpha_equal(syntax.parse_program(head + functions + body).body, syntax.parse_program(head + expected).body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("let f = abs in map(f, xs)", "map(abs, xs)"),
        ("let f = map(map(abs)) . split(2) in f(xs)", "map(map(abs), split(2, xs))"),
        ("let f = fun p => p in (f(xs), f(x))", "(let p = xs in p, let p = x in p)"),
        ("let y = x in let f = fun x => x * y in map(f, xs)", "let y = x in map(fun x1 => x1 * y, xs)"),
        (
            "let f = fun (g, a) => g(a) + g(x) in map(fun e => f(fun y => y * e, 2.0), xs)",
            "map(fun e => let (a: f32) = 2.0 in (let y = a in y * e) + (let y = x in y * e), xs)",
        ),
        (
            "let f = fun (a, g) => reduce(g, a, xs) in f(0.0, add) + f(x, max)",
            "(let (a: f32) = 0.0 in reduce(add, a, xs)) + (let a = x in reduce(max, a, xs))",
        ),
        ("let f = fun g => map(g, xs) in f(abs)", "map(abs, xs)"),
        ("map(let f = fun e => e * x in f . f, xs)", "map(fun e => let e1 = e * x in e1 * x, xs)"),
    ],
)
def test_local_functions(body: str, expected: str) -> None:
    inputs = {"x": "f32", "xs": "[f32]8"}
    assert alpha_equal(syntax.parse_term(body, inputs), syntax.parse_term(expected, inputs))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("let f = fun a => f(a) in f(x)", "'f' is used in itself: there is no recursion; iterate and reduceSeq"),
        ("let (f, g) = abs in f(x)", "expected a value, got a function"),
        ("let f = fun a => a in f + x", "expected a value, got a function"),
        ("let f = fun a => transpose(a) in f(x)", "transpose works on an array, got f32"),
        ("let map = fun a => a in map(x)", "'map' is a word of the language"),
    ],
)
def test_what_is_no_local_function(body: str, message: str) -> None:
    with pytest.raises(LiftError, match=message):
        syntax.parse_term(body, {"x": "f32"})


UNUSED = [
    ("fun (a: f32) => a + true", "add needs arguments of one type, got f32, bool", 27),
    ("fun a => a + true", "add needs arguments of one type, got f32, bool", 20),
    ("fun a => -(a && true) + a", "and needs arguments of one type, got f32, bool", 22),
    ("fun a => nothing(a)", "unknown name 'nothing'", 18),
    ("fun a => map(fun b => b * nothing, a)", "unknown name 'nothing'", 35),
    ("fun a => (a, transpose(x))", "transpose works on an array, got f32", 22),
    ("fun a => let b = split(3, xs) in zip(a, b)", "split(3) does not divide an array of length 8", 26),
    ("fun a => let (b, c) = a in b + d", "unknown name 'd'", 40),
    ("map(fun a => a + true)", "add needs arguments of one type, got f32, bool", 24),
    ("abs . (fun a => nothing)", "unknown name 'nothing'", 25),
    ("fun (a: f32) => let g = fun b => nothing in a", "unknown name 'nothing'", 42),
    ("fun (a: [f32](2 * M)) => a", "'M' is no known size", 27),
]


@pytest.mark.parametrize(("function", "message", "column"), UNUSED, ids=[row[0] for row in UNUSED])
def test_a_local_function_that_is_not_used_is_checked(function: str, message: str, column: int) -> None:
    with pytest.raises(LiftError) as caught:
        syntax.parse_program(f"program p(x: f32, xs: [f32]8) =\nlet f = {function} in x")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"<text>:2:{column}: ")


@pytest.mark.parametrize(
    "function",
    [
        "fun a => a + a * 2.0", "fun a => a && true", "fun a => a % 2", "fun (a, b) => a * b", "fun a => -a",
        "fun a => map(fun b => b + x, a)", "fun a => map(fun a => a + 1.0, a)", "fun a => let a = 2 in a + 1",
        "fun a => get(0, a) + x", "fun a => split(4, a)", "fun a => gather(i => n - 1 - i, a)",
        "fun a => pad(1, 1, clamp, a)", "map(fun a => a)", "fun (a: [f32]N) => reduce(add, 0.0, a)",
        "fun a => let y = x in a + y", "fun a => let g = abs in g(a)", "fun (a, b, c) => a * b * c",
        "fun a => a[N - 1]", "fun a => iterate(2, fun (b: [f32]m) => b, a)", "fun a => slice(1, 3, a)",
        "fun a => a < a", "abs . abs",
    ],
)  # fmt: skip
def test_a_local_function_that_is_not_used_may_be_right(function: str) -> None:
    text = f"program p(x: f32, xs: [f32]N) where N = 8 = let f = {function} in x"
    assert syntax.parse_program(text).body == ir.Input("x", F32)


def test_many_parentheses_are_no_depth() -> None:
    assert syntax.parse_term("(" * 10000 + "x" + ")" * 10000, {"x": "f32"}) == ir.Input("x", F32)


def test_messages_show_the_part_of_a_long_line_around_the_place() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        syntax.parse_term("x" + " + x" * 100 + "\0$" + " + x" * 100, {"x": "f32"})
    _, line, caret = str(caught.value).split("\n")
    assert len(line) <= 2 + 2 * SHOWN
    assert line[caret.index("^") :].startswith("\N{REPLACEMENT CHARACTER}$ + x")
    assert (line[2], line[-1]) == ("…", "…")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputProblem, match=r"cannot read no/such/file\.lift"):
        syntax.parse_file("no/such/file.lift")


def test_an_unknown_bundled_program() -> None:
    with pytest.raises(InputProblem, match="did you mean 'gemv'"):
        load("gevm")
