"""Generated arrays that are looked up several times are computed once."""

import numpy as np

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.generated_once import with_generated_once
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import run


def butterflies(stages: int) -> ir.Program:
    """A chain of stages that each look two elements of the one before up."""
    halves = [2**stage for stage in range(stages)]
    lets = "".join(f"let z = generate(16, fun i => z[i - i % {2 * h}] + z[i % 16] * z[i + {h}]) in " for h in halves)
    return specialise(parse_program(f"program waves(xs: [[f32]16]3) = map(fun row => let z = row in {lets} z, xs)"))


def text_of(stages: int) -> str:
    return compile_program(naive_term(with_generated_once(butterflies(stages))), POCL).source


def test_kernels_of_chains_grow_by_the_stage():
    two, three, four, six = (len(text_of(stages)) for stages in (2, 3, 4, 6))
    assert six - four < 3 * (three - two)
    assert six < 12_000


def test_the_meaning_stays():
    waves = butterflies(3)
    xs = np.arange(48, dtype=np.float32).reshape(3, 16) % 5
    assert np.array_equal(run(with_generated_once(waves), {"xs": xs}), run(waves, {"xs": xs}))


def test_what_is_read_once_or_looks_nothing_up_stays():
    for body in (
        "let t = generate(N, fun i => sqrt(2.0 * to_f32(i))) in map(fun k => t[k] + t[k + 1], ks)",
        "let t = generate(N, fun i => xs[i / 2] * 2.0) in map(fun k => t[k] + t[k + 1], ks)",  # of an input: no chain
        "let ys = map(abs, xs) in let t = generate(N, fun i => ys[i / 2] * 2.0) in map(fun k => t[k], ks)",
    ):
        program = parse_program(f"program reads(xs: [f32]N, ks: [i32]N) where N = 8 = {body}")
        assert with_generated_once(program) is program
