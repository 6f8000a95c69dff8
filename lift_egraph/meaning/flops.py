"""How many floating-point operations a program has."""

from __future__ import annotations

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
    return 0 if any(isinstance(t, ir.RANGE_FOLDS) for t in ir.subterms(term)) else _operations(term)


@lru_cache(maxsize=1024)
def _operations(term: ir.Part) -> int:
    if isinstance(term, ir.Vectorize):
        return term.width * _operations(term.function)
    if isinstance(term, ir.Iterate):
        return _operations(term.array) + term.times * _operations(iterate_step(term, size_of(term.array)))
    count = 0
    for part in ir.parts(term):
        count += _operations(part) * (repetitions(term) if isinstance(part, ir.Lambda | ir.Vectorize) else 1)
    if isinstance(term, ir.Call) and OPERATIONS[term.op].kind in ("arithmetic", "float", "lanes"):
        result = type_of(term.arguments[0])
        per_lane = 2 if OPERATIONS[term.op].kind == "lanes" else 1
        count += per_lane * width_of(result) if scalar_of(result).is_float else 0
    return count
