"""Polynomials among the programs of a rule's check, with i32 for f32, on random 32-bit numbers.

Over whole numbers that wrap they are computed exactly and in every order, so a rewritten term is right bit for bit or
not at all, whatever the flags of the rule, and the chance that another polynomial passes is known
(`lift_egraph.algebra.chances`). Where such programs stand it is a second witness beside floats.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from lift_egraph.algebra.chances import chance_of_zero
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.over_integers import (
    degree_of,
    fractions_in,
    is_polynomial,
    over_integers,
    random_integers,
    reads_floats,
)
from lift_egraph.meaning.values import Value
from lift_egraph.soundness.counterexamples import same_bits

BITS, COMMON = 32, 8  # of the numbers, and of a common divisor of all coefficients that is not noticed
LARGEST = 1e-3  # chance that is worth saying


@dataclass(frozen=True)
class Witness:
    """What a program and a rewritten term computed of whole numbers.

    Attributes
    ----------
    program, rewritten
        Both with i32 for f32.
    chance
        That a term passes that computes other polynomials of such degrees, unless it is wrong by multiples of 256
        alone; at most.
    """

    program: ir.Program
    rewritten: ir.Expr
    inputs: dict[str, Value]
    expected: Value
    found: Value
    chance: float

    @property
    def agrees(self) -> bool:
        return same_bits(self.expected, self.found)


def witness(program: ir.Program, rewritten: ir.Program, seed: int) -> Witness | None:
    """Compute a program of concrete sizes and what became of it over whole numbers.

    Parameters
    ----------
    rewritten
        It has the inputs of the program, and others that it must not depend on.

    Returns
    -------
    Witness
        None where either is no polynomial of f32, or of so high a degree that the chance may be large.
    """
    program = replace(program, body=unique_names(program.body))  # variables of two types may have one name
    if not (reads_floats(program) and is_polynomial(program.body) and is_polynomial(rewritten.body)):
        return None
    fractions = fractions_in(program.body)
    if not fractions_in(rewritten.body) <= fractions:
        return None
    draw = random.Random(seed)
    values = {number: draw.randrange(-(2**31), 2**31) for number in sorted(fractions)}
    given = random_inputs(rewritten, seed, "integer")
    try:
        degree = degree_of(program, given) | degree_of(rewritten, given)
        whole, other = over_integers(program, values), over_integers(rewritten, values)
        inputs = random_integers(rewritten, given, seed + 1)
        expected, found = evaluate(whole.body, inputs), evaluate(other.body, inputs)
    except LiftError:  # an index that is none, or what there is for floats alone
        return None
    chance = chance_of_zero(degree.total, degree.single, BITS - COMMON + 1)
    return Witness(whole, other.body, inputs, expected, found, chance) if chance < LARGEST else None
