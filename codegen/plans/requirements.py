"""What the patterns of a program with open sizes ask of them: that a split divides, that a window fits.

At concrete sizes the type checker says the same (`lift_egraph.language.check`), but for arrays without elements: of
the offsets of a matrix that has no rows, there is one, and no window of two.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.plans.index_functions import indices_permute, indices_stay_within
from lift_egraph.codegen.plans.open_plan import Requirement
from lift_egraph.language import ir
from lift_egraph.language.check import is_tried, iterate_steps, open_equalities, size_of
from lift_egraph.language.nat import Nat


def requirements_of(term: ir.Part) -> list[Requirement]:
    """The requirements of all patterns in a term that its sizes do not fulfil by themselves, each once."""
    found: dict[tuple[Nat, int | None, int | None], Requirement] = {}
    for r in _all(term):
        if r.expression.constant is None and not _holds(r):
            found.setdefault((r.expression, r.low, r.high), r)
    return list(found.values())


def _holds(r: Requirement) -> bool:
    low, high = r.expression.range
    return (r.low is None or (low is not None and low >= r.low)) and (
        r.high is None or (high is not None and high <= r.high)
    )


def _all(term: ir.Part) -> Iterator[Requirement]:
    for part in ir.parts(term):
        if isinstance(term, ir.Iterate) and part is term.function:
            for step in iterate_steps(term):
                yield from _all(step)
        else:
            yield from _all(part)
    if isinstance(term, ir.Expr):
        yield from _of(term)
        for a, b in open_equalities(term):
            yield Requirement(a - b, 0, 0, f"{ir.name_of(term)} needs {a} and {b} to be equal")


def _of(term: ir.Expr) -> Iterator[Requirement]:
    match term:
        case ir.SizeLiteral(size=size):
            yield Requirement(size, -(1 << 31), (1 << 31) - 1, f"{size} as a value is beyond the range of i32")
        case ir.Split(chunk=chunk, array=array):
            yield Requirement(chunk, 1, None, f"split({chunk}): the chunk size must be at least 1")
            n = size_of(array)
            yield Requirement(n % chunk, 0, 0, f"split({chunk}) does not divide an array of length {n}")
        case ir.Slice(start=start, length=length, array=array):
            n = size_of(array)
            yield Requirement(start, 0, None, f"slice: the start must not be negative, got {start}")
            yield Requirement(length, 1, None, f"slice: the length must be at least 1, got {length}")
            text = f"slice({start}, {length}) does not fit into an array of length {n}"
            yield Requirement(n - start - length, 0, None, text)
        case ir.AsVector(width=width, array=array):
            n = size_of(array)
            yield Requirement(n % width, 0, 0, f"asVector({width}) does not divide an array of length {n}")
        case ir.Slide(size=size, step=step, array=array):
            n = size_of(array)
            yield Requirement(size, 1, None, f"slide({size}, {step}): the window size must be at least 1")
            yield Requirement(step, 1, None, f"slide({size}, {step}): the step must be at least 1")
            text = f"slide: a window of {size} does not fit into an array of length {n}"
            yield Requirement(n - size + step, 0, None, text)  # a step less, and there are no windows
            text = f"slide({size}, {step}) does not tile an array of length {n} exactly"
            yield Requirement((n - size) % step, 0, 0, text)
        case ir.Pad(left=left, right=right, boundary=boundary, array=array):
            n, kind = size_of(array), boundary.kind
            for amount in (left, right):
                yield Requirement(amount, 0, None, f"pad({kind}): {amount} must not be negative")
                if kind == "clamp":
                    yield Requirement(n, 1, None, f"pad(clamp) needs an array of length 1 or more, not {n}")
                elif kind != "constant":
                    yield Requirement(n, 1, None, f"pad({kind}) needs an array of length 1 or more, not {n}")
                    text = f"pad({kind}) by {amount} needs an array as long at least, not {n}"
                    yield Requirement(n - amount, 0, None, text)
        case ir.Gather(indices=indices, array=array) | ir.Scatter(indices=indices, array=array):
            n = size_of(array)
            if not is_tried(indices, n):
                yield from indices_stay_within(indices, n)
                if isinstance(term, ir.Scatter):
                    yield from indices_permute(indices, n)
        case ir.At(index=index, array=array):
            n = size_of(array)
            yield Requirement(index, 0, None, f"at({index}): an index must not be negative")
            yield Requirement(n - 1 - index, 0, None, f"at({index}) is outside an array of length {n}")
