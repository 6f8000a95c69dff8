"""Whether a kernel's results are right.

A kernel is run on two sets of inputs. On small integers most programs are exact in every order of
evaluation, and the results must agree bit for bit; on floats they must lie within the error bound of
`lift_egraph.meaning.bounds`. Elements on which the exact comparison is not possible, because the program divides or
its sums grow too large, are held against the bound on both sets. Kernels that are to be exact must agree bit for bit on
floats, too (`lift_egraph.meaning.in_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.comparing import element_errors
from lift_egraph.codegen.running.run import Runner
from lift_egraph.errors import BuildProblem, DeviceProblem, RunProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import DataType, leaves, scalar_of
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.in_order import evaluate_in_order, in_words
from lift_egraph.meaning.inputs import random_inputs, repeated
from lift_egraph.meaning.values import Value, leaves_of, map_leaves

R = TypeVar("R")

UNBOUNDED = "they have no finite error bound"
_SLICE = 1 << 16  # elements compared at a time: what is worked out of them stays in a cache
_PERIOD = 2**24 - 17  # elements after which what is kept of a larger input repeats itself; `inputs.PERIOD` is another


@dataclass(frozen=True)
class Reference:
    """One set of inputs with the value of the program, and the error bound of each element (0: exact)."""

    inputs: Mapping[str, Value]
    value: Value
    bound: Value

    @property
    def bounded(self) -> bool:
        """Whether any element can be compared."""
        return any(bool(np.isfinite(bound).any()) for bound in leaves_of(self.bound))


@dataclass(frozen=True)
class References:
    """What the results of a program on small integers and on floats are compared with.

    Attributes
    ----------
    exactly
        What is asked of floats beyond an error bound, in words; empty where nothing is.
    """

    type: DataType
    integers: Reference
    floats: Reference
    exactly: str = field(default="", kw_only=True)

    timed = "floats"  # the set of inputs on which kernels are timed

    @property
    def how(self) -> str:
        """What is compared, in a sentence."""
        return f"the whole result was compared with the interpreter's, on two sets of inputs{self.exactly}"

    @property
    def inputs(self) -> dict[str, Mapping[str, Value]]:
        """The sets of inputs, by their names."""
        return {"integers": self.integers.inputs, "floats": self.floats.inputs}

    @property
    def bounded(self) -> bool:
        """Whether some element of each component can be compared, in one set at least."""
        bounds = zip(leaves_of(self.integers.bound), leaves_of(self.floats.bound), strict=True)
        known = [any(bool(np.isfinite(b).any()) for b in both) for both in bounds if both[0].size]
        return bool(known) and all(known)

    def check(self, lowered: ir.Program, plan: Plan, runner: Runner) -> Verdict:
        """Run the plan of a low-level program on both sets of inputs, and compare with the interpreter's results."""
        return judge(self, runner.run(plan, "integers"), runner.run(plan, "floats"))


@dataclass(frozen=True)
class Verdict:
    """The outcome of a validation.

    Attributes
    ----------
    valid
        Whether every element that can be compared is right, and at least one could be.
    max_error
        The largest absolute difference to the reference in both sets of results; infinite where a result
        is non-finite and the reference is not, or the other way round.
    error_bound
        The bound at the element with the largest error.
    bitwise
        Whether all results on integer-valued inputs were compared bit for bit and agree (0 and -0 are equal).
    message
        One line that says what was compared, and where the first wrong element is.
    compared
        How many elements were compared with the interpreter's, on all sets of inputs; where it can tell none, with
        those of a kernel that is right.
    is_open
        Whether it is not valid only because there was nothing yet to compare with.
    """

    valid: bool
    max_error: float
    error_bound: float
    bitwise: bool
    message: str
    compared: int
    is_open: bool = False


@dataclass(frozen=True)
class Comparison:
    """The comparison of one set of results; counts are of elements."""

    elements: int
    wrong: int
    exact: int  # compared bit for bit
    unbounded: int  # not compared
    max_error: float
    worst_ratio: float  # of error to bound
    bound: float  # where the error is largest
    first_wrong: str

    @property
    def message(self) -> str:
        if self.first_wrong:
            return f"{self.first_wrong}; {self.wrong} of {self.elements} elements are wrong"
        inexact = self.elements - self.exact - self.unbounded
        texts = []
        if self.exact or not self.elements:
            texts.append(f"{self.exact} of {self.elements} elements equal bit for bit")
        if inexact:
            texts.append(
                f"{inexact} of {self.elements} elements, whose arithmetic is inexact, within {self.worst_ratio:.1%} "
                f"of the error bound (largest error {self.max_error:.3g})"
            )
        if self.unbounded:
            texts.append(f"{self.unbounded} of {self.elements} elements not compared: {UNBOUNDED}")
        return ", ".join(texts)


def references(program: ir.Program, seed: int = 0, *, exact: bool = False) -> References:
    """Random inputs for a program at concrete sizes, and what it makes of them.

    There are two sets: whole numbers, few enough for sums of floats to be exact, and floats with error bounds.

    Parameters
    ----------
    seed
        Of the inputs: equal seeds give equal ones.
    exact
        Whether results must agree bit for bit where all devices compute the same.

    Raises
    ------
    SizeProblem
        If a size is open.
    """
    float_inputs = random_inputs(program, seed, "float")
    made = references_for(program, random_inputs(program, seed, "integer"), float_inputs, exact=exact)
    if all(not bound.any() for bound in leaves_of(made.integers.bound)):
        return made
    signs = signs_of(program, made.integers.inputs)
    integers = Reference(signs, *evaluate_bounded(program.body, signs))
    fewer = sum(map(np.count_nonzero, leaves_of(integers.bound))) < sum(
        map(np.count_nonzero, leaves_of(made.integers.bound))
    )
    return replace(made, integers=integers) if fewer else made


def signs_of(program: ir.Program, inputs: Mapping[str, Value], density: float = 1.0, seed: int = 0) -> dict[str, Value]:
    """Inputs with floats replaced by -1, 0 or 1, and by 0 where they are not drawn with that density.

    Sums of many terms leave the range in which floats are exact: smaller integers, and fewer, reach further. Other
    elements stay (they may be indices), and inputs with a range.
    """
    generator = np.random.default_rng(seed)

    def sign(x: np.ndarray) -> np.ndarray:
        if not np.issubdtype(np.asarray(x).dtype, np.floating):
            return x
        if density == 1:
            return np.sign(x)
        kept = generator.random(min(x.size, _PERIOD), np.float32) < density
        return np.sign(x) * repeated(kept, x.shape)

    ranged = {name for name, _ in program.ranges}
    return {name: v if name in ranged else map_leaves(sign, v) for name, v in inputs.items()}


def references_for(
    program: ir.Program, integer_inputs: Mapping[str, Value], float_inputs: Mapping[str, Value], *, exact: bool = False
) -> References:
    """What a program at concrete sizes makes of two given sets of inputs."""
    meaning, exactly = (evaluate_in_order, in_words(program.body)) if exact else (evaluate_bounded, "")
    integers = Reference(integer_inputs, *meaning(program.body, integer_inputs))
    floats = Reference(float_inputs, *meaning(program.body, float_inputs))
    return References(type_of(program.body), integers, floats, exactly=exactly)


def judge(reference: References, integer_outputs: Value, float_outputs: Value) -> Verdict:
    """Compare the results of a kernel on both sets of inputs with the reference.

    Outputs are arrays of the result's shape (and lanes) and element type; pairs for an array of pairs.

    Returns
    -------
    Verdict
        Valid if no element is wrong and some could be compared. Outputs of another shape or type are wrong.
    """
    on_integers = compare(reference.type, reference.integers, integer_outputs)
    on_floats = compare(reference.type, reference.floats, float_outputs)
    worst = max(on_floats, on_integers, key=lambda c: c.max_error)
    compared = on_integers.elements + on_floats.elements - on_integers.unbounded - on_floats.unbounded
    empty = on_integers.elements + on_floats.elements == 0
    return Verdict(
        valid=not on_integers.wrong and not on_floats.wrong and (compared > 0 or empty),
        max_error=worst.max_error,
        error_bound=worst.bound,
        bitwise=on_integers.exact == on_integers.elements and not on_integers.wrong,
        message=f"on integers: {on_integers.message}; on floats: {on_floats.message}",
        compared=compared,
    )


def quickly(judged: Callable[[bool], R], is_right: Callable[[R], bool]) -> R:
    """What is found of a plan at small sizes, built without the device's optimisations if that is right.

    At small sizes its compiler may unroll every loop, and take hundreds of times as long as without. What is wrong so
    is the kernel's fault only if it is wrong with them, too.

    Parameters
    ----------
    judged
        Runs the plan, optimised or not, and says what is found.
    """
    with suppress(BuildProblem, DeviceProblem, RunProblem):
        if is_right(found := judged(False)):
            return found
    return judged(True)


def compare(t: DataType, reference: Reference, outputs: Value) -> Comparison:
    """Compare one set of results of type `t` with its reference."""
    found = [
        _compare_leaf("output" + "".join(f".{i}" for i in path), leaf, value, bound, _component(outputs, path))
        for (path, _, leaf), value, bound in zip(
            leaves(t), leaves_of(reference.value), leaves_of(reference.bound), strict=True
        )
    ]
    return _total(found)


def _total(found: list[Comparison]) -> Comparison:
    """One comparison of several."""
    return Comparison(
        elements=sum(c.elements for c in found),
        wrong=sum(c.wrong for c in found),
        exact=sum(c.exact for c in found),
        unbounded=sum(c.unbounded for c in found),
        max_error=max(c.max_error for c in found),
        worst_ratio=max(c.worst_ratio for c in found),
        bound=max(found, key=lambda c: c.max_error).bound,
        first_wrong=next((c.first_wrong for c in found if c.first_wrong), ""),
    )


def _compare_leaf(name: str, leaf: DataType, value: np.ndarray, bound: np.ndarray, output: Any) -> Comparison:
    dtype = np.dtype(NUMPY_TYPES[scalar_of(leaf).name])
    given = np.asarray(output) if isinstance(output, np.ndarray | np.generic) else None
    if given is None or given.shape != value.shape or given.dtype != dtype:
        shown = f"a {type(output).__name__}" if given is None else f"{given.dtype} of shape {given.shape}"
        first_wrong = f"{name} is {shown}, not {dtype} of shape {value.shape}"
        return Comparison(value.size, value.size, 0, 0, np.inf, np.inf, 0.0, first_wrong)
    if not value.size:
        return Comparison(0, 0, 0, 0, 0.0, 0.0, 0.0, "")
    parts = [_compare_slice(name, value.shape, start, given, value, bound) for start in range(0, value.size, _SLICE)]
    return _total(parts)


def _compare_slice(
    name: str, shape: tuple[int, ...], start: int, given: np.ndarray, value: np.ndarray, bound: np.ndarray
) -> Comparison:
    """The comparison of one run of elements, so that large results need little memory."""
    output, wanted, allowed = (a.reshape(-1)[start : start + _SLICE] for a in (given, value, bound))
    error, failed = element_errors(output, wanted, allowed)
    first_wrong = ""
    if failed.any():
        at = int(failed.argmax())
        where = np.unravel_index(start + at, shape)
        place = f"{name}[{', '.join(str(i) for i in where)}]" if where else name
        within = f" within {allowed[at]:.3g}" if allowed[at] else ""
        first_wrong = f"{place} is {output[at]}, not {wanted[at]}{within}"
    largest, exact = int(error.argmax()), int(np.count_nonzero(allowed == 0))
    beyond = np.where(error > 0, np.inf, 0.0)  # any error is, where none is allowed
    ratios = beyond if exact == wanted.size else np.divide(error, allowed, out=beyond, where=allowed > 0)
    return Comparison(
        elements=wanted.size,
        wrong=int(np.count_nonzero(failed)),
        exact=exact,
        unbounded=int(np.count_nonzero(np.isinf(allowed))),
        max_error=float(error[largest]),
        worst_ratio=float(ratios.max()),
        bound=float(allowed[largest]),
        first_wrong=first_wrong,
    )


def _component(value: Value, path: tuple[int, ...]) -> Value | None:
    for index in path:
        if not isinstance(value, tuple) or len(value) != 2:
            return None
        value = value[index]
    return value
