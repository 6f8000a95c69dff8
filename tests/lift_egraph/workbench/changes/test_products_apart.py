"""Products of matrices in functions of rows that do more are stages of their own."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.products_apart import products_in_steps, with_products_apart
from lift_egraph.workbench.changes.steps import MOST_STEPS
from lift_egraph.workbench.phases import Leg
from lift_egraph.workbench.planning.plan import nests
from lift_egraph.workbench.planning.products import product_of
from tests.depth import in_turn
from tests.reaching import leads_to

HEAD = "program p(A: [[f32]16]9, B: [[f32]16]8, C: [[f32]16]8, w: [f32]16) = map(fun a => {}, A)"
PRODUCT = "reduce(add, 0.0, map(mul, zip({}, {})))"
BODIES = {
    "two of a row that is computed": (
        f"let f = map(mul, zip(a, w)) in map(fun (b, c) => let x = {PRODUCT.format('f', 'b')} in "
        f"let y = {PRODUCT.format('f', 'c')} in x * x + y * y, zip(B, C))",
        2,
    ),
    "two in a sum": (
        f"map(fun (b, c) => let v = {PRODUCT.format('a', 'b')} + {PRODUCT.format('a', 'c')} in v * v, zip(B, C))",
        2,
    ),
    "two in a pair": (
        f"map(fun (b, c) => let (x, y) = ({PRODUCT.format('a', 'b')}, {PRODUCT.format('a', 'c')}) in x * y, zip(B, C))",
        2,
    ),
    "two beside each other": (
        f"map(add, zip(map(fun b => {PRODUCT.format('a', 'b')}, B), map(fun c => {PRODUCT.format('a', 'c')}, C)))",
        2,
    ),
    "two of which each row has the largest": (
        f"reduce(max, 0.0, map(fun (b, c) => let x = {PRODUCT.format('a', 'b')} in "
        f"x * x + {PRODUCT.format('a', 'c')}, zip(B, C)))",
        2,
    ),
    "one before a sum of a row": (
        f"let s = map(fun b => {PRODUCT.format('a', 'b')}, B) in let t = reduce(add, 0.0, s) in map(fun v => v * t, s)",
        1,
    ),
}


BATCH = """program p(A: [[[f32]16]9]4, B: [[[f32]16]8]4, C: [[[f32]16]8]4) =
  map(fun (as, bs, cs) => let ct = transpose(cs) in {}, zip(A, B, C))"""
BATCHES = {
    "two in a batch, of matrices and of what the first gives": (
        f"map(fun a => let s = map(fun b => {PRODUCT.format('a', 'b')}, bs) in "
        f"map(fun c => {PRODUCT.format('s', 'c')}, ct), as)",
        2,
    ),
    "matrices of a batch by name": (
        f"let s = map(fun a => map(fun b => {PRODUCT.format('a', 'b')} * 0.5, bs), as) in "
        f"let e = map(fun r => let t = reduce(max, 0.0, r) in map(fun v => v - t, r), s) in "
        f"map(fun r => map(fun c => {PRODUCT.format('r', 'c')}, ct), e)",
        2,
    ),
    "one in a batch before a sum of each row": (
        f"map(fun a => let s = map(fun b => {PRODUCT.format('a', 'b')}, bs) in let t = reduce(add, 0.0, s) in "
        "map(fun v => v * t * ct[0][0], s), as)",
        1,
    ),
}
PROGRAMS = {name: (HEAD.format(body), count) for name, (body, count) in BODIES.items()}
PROGRAMS |= {name: (BATCH.format(body), count) for name, (body, count) in BATCHES.items()}


@in_turn(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_are_apart(name: str):
    text, count = PROGRAMS[name]
    program = parse_program(text)
    term = with_products_apart(program.body, large=1)
    found = [product for nest in nests(term) if (product := product_of(nest)) is not None]
    assert len(found) == count
    assert leads_to(program.body, Leg("products_apart", term, MOST_STEPS, POCL.mapping).phase, term)
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize(
    "body",
    [
        f"map(fun b => {PRODUCT.format('a', 'b')}, B)",
        "let t = reduce(add, 0.0, a) in map(fun v => v * t, a)",
        f"let t = {PRODUCT.format('a', 'w')} in map(fun v => v * t, a)",
        f"map(fun (b, c) => let x = {PRODUCT.format('c', 'b')} in x * a[0], zip(B, C))",
    ],
    ids=["a product alone", "no product", "a matrix times a vector", "a product without the rows"],
)
def test_what_has_none_is_left(body: str):
    program = parse_program(HEAD.format(body))
    assert alpha_equal(with_products_apart(program.body), program.body)


def test_a_batch_of_products_alone_is_left():
    program = parse_program(BATCH.format(f"map(fun a => map(fun b => {PRODUCT.format('a', 'b')}, bs), as)"))
    assert alpha_equal(with_products_apart(program.body), program.body)


def test_small_ones_that_are_combined_are_one_kernel():
    program = parse_program(HEAD.format(BODIES["two in a sum"][0]))
    *_, product = map(product_of, nests(with_products_apart(program.body)))
    assert product is None


def test_columns_that_depend_on_the_row_are_none():
    product = PRODUCT.format("a", "map(fun v => v * b[0], a)")
    program = parse_program(HEAD.format(f"let s = map(fun b => {product}, split(4, a)) in map(fun v => v * s[0], s)"))
    assert isinstance(with_products_apart(program.body), ir.Map)


DISTANCE = "reduce(add, 0.0, map(fun (x, y) => (x - y) * (x - y), zip(a, b)))"
IN_TILES = {
    "with a bias": f"program p(A: [[f32]16]9, B: [[f32]16]8, u: [f32]8) = "
    f"map(fun a => map(fun (b, v) => max({PRODUCT.format('a', 'b')} + v, 0.0), zip(B, u)), A)",
    "of which something is made": f"program p(A: [[f32]16]9, B: [[f32]16]8) = "
    f"map(fun a => map(fun b => sqrt({PRODUCT.format('b', 'a')}), B), A)",
    "a convolution with a bias": """program p(X: [[[f32]12]12]3, F: [[[[f32]3]3]3]4, u: [f32]4) =
      map(fun (f, v) => map2d(fun w =>
          max(reduce(add, 0.0, map(mul, zip(join(join(w)), join(join(f))))) + v, 0.0),
        map(transpose, transpose(map(fun channel => slide2d(3, 1, channel), X)))), zip(F, u))""",
    "of which each row has the smallest": f"program p(A: [[f32]16]9, B: [[f32]16]8) = "
    f"map(fun a => sqrt(reduce(min, 99.0, map(fun b => {DISTANCE}, B))) * a[0], A)",
    "of which each row has the smallest and its place": "program p(A: [[f32]16]9, B: [[f32]16]8) = map(fun a => "
    "reduce(fun ((d, i), (e, j)) => if e < d then (e, j) else (d, i), (99.0, 0), "
    f"zip(map(fun b => {DISTANCE}, B), generate(8, fun i => i))), A)",
    "of whose smallest the largest is wanted": f"program p(A: [[f32]16]9, B: [[f32]16]8) = "
    f"sqrt(reduce(max, 0.0, map(fun a => reduce(min, 99.0, map(fun b => {DISTANCE}, B)), A)))",
}


@pytest.mark.parametrize("what", IN_TILES)
def test_what_is_made_of_a_product_in_tiles_is_another_stage(what: str):
    program = parse_program(IN_TILES[what])
    assert alpha_equal(with_products_apart(program.body, large=1), program.body)
    term = with_products_apart(program.body, large=1, in_tiles=True)
    assert sum(product_of(nest) is not None for nest in nests(term)) == 1
    assert isinstance(term, ir.Apply)
    assert leads_to(program.body, Leg("products_apart", term, MOST_STEPS, NVIDIA.mapping).phase, term)
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@in_turn(3)
def test_products_of_several_lets_are_apart_one_after_the_other():
    """Names that stand before them stay, and those of another step are no names of these."""
    program = parse_program(
        f"""program gru(X: [[f32]16]9, H: [[f32]12]9, W: [[f32]16]8, U: [[f32]12]8, V: [[f32]16]8, R: [[f32]12]8) =
          map(fun (a, s) => map(fun ((w, u), (v, r)) =>
            let z = 1.0 / (1.0 + exp(0.0 - {PRODUCT.format('a', 'w')} - {PRODUCT.format('s', 'u')})) in
            let c = tanh({PRODUCT.format('a', 'v')} + {PRODUCT.format('s', 'r')}) in
            z * s[0] + (1.0 - z) * c, zip(zip(W, U), zip(V, R))), zip(X, H))"""
    )
    before = program.body
    for count, term in enumerate(products_in_steps(program.body, in_tiles=True, large=1), 1):
        assert sum(product_of(nest) is not None for nest in nests(term)) == count
        assert leads_to(before, Leg("products_apart", term, MOST_STEPS, POCL.mapping).phase, term)
        before = term
    assert sum(product_of(nest) is not None for nest in nests(before)) == 4
    inputs = random_inputs(program, 0)
    assert equal_values(evaluate(program.body, inputs), evaluate(before, inputs))
