"""How many operations a program has: of floats, and all."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of, type_of
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import scalar_of, width_of
from lift_egraph.meaning.workload import repetitions


def operations(term: ir.Part) -> int:
    """The floating-point operations of a term as it is written, at concrete sizes; 0 where its data say how many.

    Examples
    --------
    >>> from lift_egraph import programs
    >>> from lift_egraph.language.check import specialise
    >>> operations(specialise(programs.load("mm"), {"M": 4, "N": 5, "K": 6}).body) == 2 * 4 * 5 * 6
    True
    """
    return 0 if _has_ranges(term) else _counted(term, _of_floats)


def scalar_operations(term: ir.Part) -> int:
    """All operations on scalars, of places and conditions too: about what it takes to interpret them; 0 as above.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> scalar_operations(parse_program("program f(x: [f32]8) = generate(8, fun i => x[7 - i] + x[i])").body)
    16
    """
    return 0 if _has_ranges(term) else _counted(term, _of_all)


def _has_ranges(term: ir.Part) -> bool:
    return any(isinstance(t, ir.RANGE_FOLDS) for t in ir.subterms(term))


def _of_floats(call: ir.Call) -> int:
    kind, result = OPERATIONS[call.op].kind, type_of(call.arguments[0])
    if kind not in ("arithmetic", "float", "lanes") or not scalar_of(result).is_float:
        return 0
    return (2 if kind == "lanes" else 1) * width_of(result)


def _of_all(call: ir.Call) -> int:
    return width_of(type_of(call.arguments[-1]))


@lru_cache(maxsize=1024)
def _counted(term: ir.Part, of_call: Callable[[ir.Call], int]) -> int:
    if isinstance(term, ir.Vectorize):
        return term.width * _counted(term.function, of_call)
    if isinstance(term, ir.Iterate):
        step = iterate_step(term, size_of(term.array))
        return _counted(term.array, of_call) + term.times * _counted(step, of_call)
    count = of_call(term) if isinstance(term, ir.Call) else 0
    for part in ir.parts(term):
        count += _counted(part, of_call) * (repetitions(term) if isinstance(part, ir.Lambda | ir.Vectorize) else 1)
    return count
