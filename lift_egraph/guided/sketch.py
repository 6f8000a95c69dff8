"""Sketches: programs with holes, which say what to look for and leave open how it is written.

>>> print(nest(map_(length=32), map_(length=32), reduce_seq(length=1024), call("add", ANY, call("mul"))))
map 32 > map 32 > reduceSeq 1024 > add(?, mul)

A `nest` is the usual sketch: loops from the outside in, with anything between and around them. The same in
full, with `contains`, which any term satisfies that has a satisfying part somewhere:

>>> print(contains(map_(join(), transpose(), length=32)))
contains(map 32 (join, transpose))

Where a function is expected, a sketch describes its body: ``map_(join())`` is ``map(join)`` as well as
``map(fun x => join(…))``, and ``reduce_(call("add"))`` a sum. `lift_egraph.guided.matcher` finds the cheapest terms
of an e-graph that satisfy a sketch.

Source: Koehler et al., "Guided equality saturation", POPL 2024.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Union

from lift_egraph.caching import hashed_once
from lift_egraph.errors import SyntaxProblem
from lift_egraph.language import ir
from lift_egraph.language.signature import Signature
from lift_egraph.language.type_text import parse_type
from lift_egraph.language.types import DataType


@dataclass(frozen=True)
class Hole:
    """Satisfied by every term."""

    def __str__(self) -> str:
        return "?"


@hashed_once
@dataclass(frozen=True)
class PatternSketch:
    """A pattern of the language with sketches for its parts.

    Attributes
    ----------
    name
        What the language calls it: ``map``, ``mapGlb(0)``, ``reduceSeq``, ``split``, ``toLocal``, ``add``, …
    parts
        Sketches for its functions and arguments, from left to right.
    numbers
        Its numbers, such as the chunk of ``split``, from left to right; None stands for any.
    length
        The length of the array that is mapped or reduced, or None for any.
    """

    name: str
    parts: tuple[Sketch, ...] = ()
    numbers: tuple[int | None, ...] = ()
    length: int | None = None

    def __str__(self) -> str:
        head = self.name + "".join(f" {n}" for n in (*self.numbers, self.length) if n is not None)
        shown = [str(p) for p in self.parts]
        while shown and shown[-1] == "?":
            shown.pop()
        if not shown:
            return head
        return head + (f" ({', '.join(shown)})" if self.name in LOOPS else f"({', '.join(shown)})")


@hashed_once
@dataclass(frozen=True)
class Contains:
    """Satisfied by a term with a part, or as a whole, that satisfies the sketch inside."""

    inner: Sketch

    def __str__(self) -> str:
        return _path(self) or f"contains({self.inner})"


@hashed_once
@dataclass(frozen=True)
class OneOf:
    """Satisfied by a term that satisfies one of several sketches."""

    alternatives: tuple[Sketch, ...]

    def __str__(self) -> str:
        return " | ".join(str(a) for a in self.alternatives)


@hashed_once
@dataclass(frozen=True)
class OfType:
    """Satisfied by a term, or a function whose result is, of a type that satisfies the sketch inside."""

    type: DataType
    inner: Sketch

    def __str__(self) -> str:
        return f"({self.inner}: {self.type})"


@hashed_once
@dataclass(frozen=True)
class Named:
    """The sketch inside; a match says which term stands for it."""

    name: str
    inner: Sketch

    def __str__(self) -> str:
        return self.name if self.inner == ANY else f"{self.name} as {self.inner}"


Sketch = Union[Hole, PatternSketch, Contains, OneOf, OfType, Named]
MapSketch = Callable[..., PatternSketch]
"""A sketch of a map at some level, of its function and array: `map_`, `map_seq` and the like."""
ANY = Hole()


def subsketches(sketch: Sketch) -> Iterator[Sketch]:
    """The sketch and everything in it, innermost first."""
    for part in parts(sketch):
        yield from subsketches(part)
    yield sketch


def parts(sketch: Sketch) -> tuple[Sketch, ...]:
    """The direct parts of a sketch."""
    if isinstance(sketch, Hole):
        return ()
    if isinstance(sketch, PatternSketch):
        return sketch.parts
    return sketch.alternatives if isinstance(sketch, OneOf) else (sketch.inner,)


# --- writing sketches ----------------------------------------------------------------------------------


def contains(sketch: Sketch) -> Contains:
    """What has a part that satisfies the sketch."""
    return Contains(sketch)


def one_of(*sketches: Sketch) -> OneOf:
    """What satisfies one of the sketches."""
    return OneOf(sketches)


def of_type(text: str | DataType, sketch: Sketch = ANY) -> OfType:
    """What has a type, given as a value or in the language's notation, with concrete sizes.

    >>> print(of_type("[[f32]4]8", transpose()))
    (transpose: [[f32]4]8)
    """
    return OfType(parse_type(text) if isinstance(text, str) else text, sketch)


def named(name: str, sketch: Sketch = ANY) -> Named:
    """A sketch with a name, under which a match keeps the term that stands for it."""
    return Named(name, sketch)


def nest(*steps: Sketch) -> Contains:
    """Loops from the outside in: each step has the next one somewhere in its body.

    That is its function, but for ``reduce`` its array, whose elements it computes on the way.

    Raises
    ------
    SyntaxProblem
        If a step but the last is no loop, or has a body of its own.
    """
    *outer, inner = steps
    for step in reversed(outer):
        if not isinstance(step, PatternSketch) or step.name not in LOOPS or step.parts[_body(step)] != ANY:
            raise SyntaxProblem(f"only loops without a body of their own have a nest inside, not {step}")
        at = _body(step)
        inner = replace(step, parts=(*step.parts[:at], Contains(inner), *step.parts[at + 1 :]))
    return Contains(inner)


def _body(loop: PatternSketch) -> int:
    """The part that a nest goes on in: the function, but where that is an operator, the array."""
    signature = _signature(loop.name)
    return signature.loop or 0 if signature.functions[0].is_operator else 0


def _signature(loop: str) -> Signature:
    return _SIGNATURES.get(loop, ir.MapLevel.signature)


def map_(function: Sketch = ANY, array: Sketch = ANY, *, length: int | None = None) -> PatternSketch:
    """``map`` over an array, of a certain length if one is given."""
    return PatternSketch("map", (function, array), (), length)


def map_level(name: str, function: Sketch = ANY, array: Sketch = ANY, *, length: int | None = None) -> PatternSketch:
    """``mapSeq``, ``mapGlb(0)``, ``mapWrg(1)``, …; ``mapPar`` is any of the parallel ones."""
    return PatternSketch(_known(name, LOOPS), (function, array), (), length)


def map_seq(function: Sketch = ANY, array: Sketch = ANY, *, length: int | None = None) -> PatternSketch:
    """``mapSeq``."""
    return map_level("mapSeq", function, array, length=length)


def reduce_(
    operator: Sketch = ANY, initial: Sketch = ANY, array: Sketch = ANY, *, length: int | None = None
) -> PatternSketch:
    """``reduce``."""
    return PatternSketch("reduce", (operator, initial, array), (), length)


def reduce_seq(
    function: Sketch = ANY, initial: Sketch = ANY, array: Sketch = ANY, *, length: int | None = None
) -> PatternSketch:
    """``reduceSeq``."""
    return PatternSketch("reduceSeq", (function, initial, array), (), length)


def reduce_sub(items: int | None = None, array: Sketch = ANY, *, length: int | None = None) -> PatternSketch:
    """``reduceSub``, of so many work-items."""
    return PatternSketch("reduceSub", (ANY, ANY, array), (items,), length)


def vectorize(width: int | None = None, function: Sketch = ANY) -> PatternSketch:
    """A function applied to all lanes of vectors."""
    return PatternSketch("vectorize", (function,), (width,))


def split(chunk: int | None = None, array: Sketch = ANY) -> PatternSketch:
    """``split`` into chunks of a length."""
    return PatternSketch("split", (array,), (chunk,))


def slide(size: int | None = None, step: int | None = None, array: Sketch = ANY) -> PatternSketch:
    """``slide``."""
    return PatternSketch("slide", (array,), (size, step))


def join(array: Sketch = ANY) -> PatternSketch:
    """``join``."""
    return PatternSketch("join", (array,))


def transpose(array: Sketch = ANY) -> PatternSketch:
    """``transpose``."""
    return PatternSketch("transpose", (array,))


def zip_(first: Sketch = ANY, second: Sketch = ANY) -> PatternSketch:
    """``zip``."""
    return PatternSketch("zip", (first, second))


def at(index: int | None = None, array: Sketch = ANY) -> PatternSketch:
    """``at``: one element."""
    return PatternSketch("at", (array,), (index,))


def as_vector(width: int | None = None, array: Sketch = ANY) -> PatternSketch:
    """``asVector``."""
    return PatternSketch("asVector", (array,), (width,))


def as_scalar(array: Sketch = ANY) -> PatternSketch:
    """``asScalar``."""
    return PatternSketch("asScalar", (array,))


def to_memory(space: str, value: Sketch = ANY) -> PatternSketch:
    """``toGlobal``, ``toStream``, ``toLocal``, ``toPrivate``, …"""
    return PatternSketch(_known(ir.memory_name(space), tuple(map(ir.memory_name, ir.SPACES))), (value,))


def call(op: str, *arguments: Sketch) -> PatternSketch:
    """A scalar operation: ``add``, ``mul``, …; without arguments, on any."""
    return PatternSketch(op, arguments)


def let(value: Sketch = ANY, body: Sketch = ANY) -> PatternSketch:
    """``let``, or a function that is applied: what is bound, and where."""
    return PatternSketch("let", (body, value))


def input_(name: str) -> PatternSketch:
    """An input of the program."""
    return PatternSketch(f"input {name}")


def variable() -> PatternSketch:
    """What a function, or a ``let``, binds."""
    return PatternSketch("variable")


# --- text ----------------------------------------------------------------------------------------------

_SIGNATURES = {node.signature.name: node.signature for node in ir.PATTERNS if node.signature.loop is not None}
LOOPS = (
    *(name for name in _SIGNATURES if name != ir.MapLevel.signature.name),
    *("mapSeq", "mapPar"),
    *(f"map{kind}({d})" for kind in ("Glb", "Wrg", "Lcl") for d in (0, 1, 2)),
)
_STEP = re.compile(r"\s*([A-Za-z_]\w*(?:\([012]\))?)(?:\s+(\d+))?\s*")


def parse_nest(text: str) -> Contains:
    """The nest that a text writes from the outside in.

    >>> parse_nest("map 32 > mapGlb(0) > reduceSeq 1024 > mul") == nest(
    ...     map_(length=32), map_level("mapGlb(0)"), reduce_seq(length=1024), call("mul"))
    True

    Raises
    ------
    SyntaxProblem
        If a step is no loop, or the last one neither a loop nor an operation.
    """
    from lift_egraph.language.scalar import OPERATIONS

    steps: list[Sketch] = []
    pieces = text.split(">")
    for number, piece in enumerate(pieces, 1):
        found = _STEP.fullmatch(piece)
        if found is None:
            raise SyntaxProblem(f"step {number} of the sketch, {piece.strip()!r}, is not like map, map 32 or mapGlb(0)")
        name, length = found[1], None if found[2] is None else int(found[2])
        if number == len(pieces) and name in OPERATIONS and length is None:
            steps.append(call(name))
            continue
        known = _known(_known(name, (*LOOPS, *OPERATIONS)), LOOPS)
        steps.append(PatternSketch(known, (ANY,) * len(_signature(known).parts), (), length))
    return nest(*steps)


def _known(name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"meant {near[0]}?" if near else f"known are {', '.join(names)}"
        raise SyntaxProblem(f"unknown pattern {name!r} in a sketch; {hint}")
    return name


def _path(sketch: Contains) -> str | None:
    """A nest of at least two steps as a path."""
    steps: list[str] = []
    inner: Sketch = sketch
    while isinstance(inner, Contains):
        inner = inner.inner
        if isinstance(inner, PatternSketch) and inner.name in LOOPS and isinstance(inner.parts[_body(inner)], Contains):
            body = inner.parts[_body(inner)]
            if sum(p != ANY for p in inner.parts) > 1:
                return None
            steps.append(str(replace(inner, parts=())))
            inner = body
    steps.append(str(inner))
    return " > ".join(steps) if len(steps) > 1 else None
