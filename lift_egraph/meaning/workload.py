"""How many array elements are made while a term is evaluated: what decides the slices of a map."""

from __future__ import annotations

from functools import lru_cache

from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of, type_of
from lift_egraph.language.index_arrays import number
from lift_egraph.language.types import Array, DataType, Pair, width_of

_MAKES_ARRAYS = (ir.Call, ir.Join, ir.AsScalar, ir.Gather, ir.Scatter, ir.Lookup, ir.Pad)


@lru_cache(maxsize=4096)
def workload(term: ir.Part) -> int:
    """The number of elements of all arrays made for one evaluation of a term or a function body.

    Nodes that only change the view of an array (transpose, split, slide, …) make none.

    Examples
    --------
    >>> from lift_egraph.language.types import F32, array
    >>> x, xs = ir.Var("x", F32), ir.Input("xs", array(F32, 8))
    >>> workload(ir.Map(ir.Lambda(x, ir.Call("mul", (x, x))), xs))
    8
    """
    if isinstance(term, ir.Vectorize):
        return term.width * workload(term.function)
    if isinstance(term, ir.Iterate):
        step = iterate_step(term, size_of(term.array))
        return workload(term.array) + max(term.times, 1) * workload(step)
    inside = 0
    for part in ir.parts(term):
        repeated = isinstance(part, ir.Lambda | ir.Vectorize)
        inside += workload(part) * (_repetitions(term) if repeated else 1)
    return inside + (_elements(type_of(term)) if isinstance(term, _MAKES_ARRAYS) else 0)


def _repetitions(term: ir.Part) -> int:
    """How often a pattern applies its function."""
    if isinstance(term, ir.Generate):
        return number(term.size, "generate")
    array = ir.array_of_loop(term)
    return 1 if array is None else number(size_of(array), "array")


def _elements(t: DataType) -> int:
    """The number of scalars in a value of a type."""
    if isinstance(t, Pair):
        return _elements(t.first) + _elements(t.second)
    return number(t.size, "array") * _elements(t.element) if isinstance(t, Array) else width_of(t)
