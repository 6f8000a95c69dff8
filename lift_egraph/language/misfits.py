"""What is wrong where an argument of a pattern does not fit those before it, or a condition of its signature fails.

The names in the messages are those of the signature, and its parameters (the types of terms).
"""

from __future__ import annotations

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir

_INDICES = "the indices are i32, got {indices.element}; a cast is to_i32(x)"
MISFITS: dict[tuple[type, str], tuple[type[TypeProblem | SizeProblem], str]] = {
    (ir.Zip, "second"): (
        SizeProblem, "zip needs arrays of one length, got {first.size} and {second.size} ({first} and {second})"
    ),
    (ir.Concat, "second"): (TypeProblem, "concat needs arrays of elements of one type, got {first} and {second}"),
    (ir.Lookup, "indices"): (TypeProblem, "lookup: " + _INDICES),
    (ir.ReduceByIndex, "indices"): (TypeProblem, "reduceByIndex: " + _INDICES),
    (ir.ReduceByIndex, "array"): (
        TypeProblem, "reduceByIndex needs an index for each element, and elements like those it starts with; got "
        "{indices}, {array} and {initial}"
    ),
    **{
        (node, name): (TypeProblem, f"{node.signature.name}: the ends of the range are i32, got {{{name}}}")
        for node in ir.RANGE_FOLDS
        for name in ("low", "high")
    },
}  # fmt: skip
CONDITIONS: dict[type, tuple[str, ...]] = {
    ir.Split: (
        "split: the chunk size must be at least 1, got {chunk}",
        "split({chunk}) does not divide an array of length {m}",
    ),
    ir.Slice: (
        "slice: the start must not be negative, got {start}",
        "slice: the length must be at least 1, got {length}",
        "slice({start}, {length}) does not fit into an array of length {m}",
    ),
    ir.Slide: (
        "slide: the window size must be at least 1, got {size}",
        "slide: the step must be at least 1, got {step}",
        "slide: a window of {size} does not fit into an array of length {m}",
        "slide({size}, {step}) does not tile an array of length {m} exactly",
    ),
    ir.LookBack: ("lookBack: a group looks at one group before it at least, not at {width}",),
    ir.ReduceSub: (
        "reduceSub: at least one work-item has an element, not {items}",
        "reduceSub({items}) does not divide an array of length {m}",
    ),
    ir.Pad: ("pad: left must not be negative, got {left}", "pad: right must not be negative, got {right}"),
    ir.At: ("at({index}) is outside an array of length {m}",) * 2,
    ir.AsVector: (
        "asVector: a vector has at least 2 lanes, not {width}",
        "asVector({width}) does not divide an array of length {m}",
    ),
}
