"""Names: substitution without capture, and equality up to names."""

from __future__ import annotations

import pytest
from hypothesis import given

from lift_egraph.language import ir
from lift_egraph.language.binders import (
    alpha_equal,
    canonical,
    fresh_name,
    names_in,
    substitute,
    unique_names,
    with_part,
    with_parts,
)
from lift_egraph.language.build import F32, I32, array, index_function
from lift_egraph.language.check import check_program, type_of
from lift_egraph.language.syntax import parse_term
from tests.strategies import programs

x, y, z = (ir.Var(name, F32) for name in "xyz")
XS = ir.Input("xs", array(F32, 8))


def _plus(a: ir.Expr, b: ir.Expr) -> ir.Call:
    return ir.Call("add", (a, b))


def test_fresh_names_count_up() -> None:
    taken = {"x", "x1"}
    assert [fresh_name("x", taken), fresh_name("x1", taken), fresh_name("y", taken)] == ["x2", "x3", "y"]
    assert taken == {"x", "x1", "x2", "x3", "y"}


@given(programs(low_level=True))
def test_unique_names_change_names_only(program: ir.Program) -> None:
    renamed = unique_names(program.body)
    assert alpha_equal(renamed, program.body)
    assert type_of(renamed) == type_of(program.body)
    bound = [v.name for p in ir.subterms(renamed) if isinstance(p, ir.Lambda) for v in ir.bound_variables(p.binder)]
    assert len(set(bound)) == len(bound)
    check_program(ir.Program("renamed", program.inputs, renamed))


@given(programs())
def test_canonical_is_canonical(program: ir.Program) -> None:
    assert canonical(canonical(program.body)) == canonical(program.body)
    assert canonical(unique_names(program.body)) == canonical(program.body)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("map(fun a => a + 1.0, xs)", "map(fun b => b + 1.0, xs)", True),
        ("map(fun a => a + 1.0, xs)", "map(fun b => 1.0 + b, xs)", False),
        ("map(fun (a, b) => a * b, zip(xs, xs))", "map(mul, zip(xs, xs))", True),
        ("map(fun (a, b) => b * a, zip(xs, xs))", "map(mul, zip(xs, xs))", False),
        ("map(fun p => get(0, p), zip(xs, xs))", "map(fun (a, b) => a, zip(xs, xs))", False),
        ("iterate(2, fun (p: [f32]n) => p, xs)", "iterate(2, fun (q: [f32]k) => q, xs)", True),
        ("gather(i => n - 1 - i, xs)", "gather(reverse, xs)", True),
        ("gather(i => i / 2, xs)", "gather(j => j / 3, xs)", False),
        ("map(fun a => map(fun b => a + b, xs), xs)", "map(fun b => map(fun a => b + a, xs), xs)", True),
        ("map(fun a => map(fun b => a + b, xs), xs)", "map(fun b => map(fun a => a + b, xs), xs)", False),
    ],
)
def test_equality_up_to_names(left: str, right: str, equal: bool) -> None:
    inputs = {"xs": "[f32]8"}
    assert alpha_equal(parse_term(left, inputs), parse_term(right, inputs)) is equal


def test_variables_of_one_name_and_two_types_differ() -> None:
    other = ir.Var("x", I32)
    assert substitute(_plus(x, ir.Call("to_f32", (other,))), {x: y}) == _plus(y, ir.Call("to_f32", (other,)))


def test_substitution_avoids_capture() -> None:
    inner = ir.Map(ir.Lambda(y, _plus(x, y)), XS)
    expected = ir.Map(ir.Lambda(z, _plus(y, z)), XS)
    result = substitute(inner, {x: y})
    assert alpha_equal(result, expected)
    assert ir.free_variables(result) == {y}


def test_a_part_that_stands_somewhere_is_replaced_there_alone() -> None:
    total, twin = (ir.Reduce(ir.Lambda(ir.PairBinder(x, y), _plus(x, y)), z, XS) for _ in range(2))
    in_function = ir.Map(ir.Lambda(x, _plus(x, total)), XS)
    assert with_part(_plus(total, _plus(total, twin)), total, y) == _plus(y, _plus(y, twin))
    assert with_part(in_function, total, y) is in_function


def test_all_parts_that_equal_some_are_replaced_also_in_functions() -> None:
    both = ir.Map(ir.Lambda(x, _plus(x, _plus(y, z))), ir.Map(ir.Lambda(x, _plus(x, y)), XS))
    made = with_parts(both, {_plus(x, y): _plus(y, x), _plus(y, z): x})
    assert made == ir.Map(ir.Lambda(x, _plus(x, x)), ir.Map(ir.Lambda(x, _plus(y, x)), XS))
    assert with_parts(both, {_plus(z, z): z}) is both


def test_substitution_stops_at_binders_and_keeps_what_is_closed() -> None:
    closed = ir.Map(ir.Lambda(x, _plus(x, x)), XS)
    assert substitute(closed, {x: y}) is closed
    assert substitute(_plus(x, y), {x: y, y: x}) == _plus(y, x)


def test_names_in() -> None:
    assert names_in(ir.Map(ir.Lambda(x, _plus(y, y)), XS)) == {"x", "y", "xs"}


def test_index_variables_are_names_too() -> None:
    left, right = (ir.Gather(index_function(f), XS) for f in (lambda i: i // 2, lambda k: k // 2))
    assert left != right
    assert alpha_equal(left, right)
