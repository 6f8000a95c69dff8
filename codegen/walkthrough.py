r"""One array access, from the LIFT term through its view to the index in the kernel.

`explain` shows how any variable of a program is read, and this text follows two reads with it. (It runs as a test.)

Listing 2.4: a partial dot product
----------------------------------
Each work-group takes 128 pairs of elements, each work-item adds up the products of two, and the sums are added in
local memory:

>>> from lift_egraph.language.check import specialise
>>> from lift_egraph.programs import load
>>> from lift_egraph.language.pretty import print_program
>>> program = specialise(load("partial_dot"), {"N": 1024})
>>> print(print_program(program))
program partial_dot(x: [f32]1024, y: [f32]1024) =
  join(
    mapWrg(0,
      fun x1 =>
        toGlobal(
          mapLcl(0, id,
            iterate(6,
              fun (part: [f32]n) =>
                toLocal(mapLcl(0, reduceSeq(add, 0.0), split(2, part))),
              toLocal(
                mapLcl(0,
                  reduceSeq(fun (acc, a, b) => acc + a * b, 0.0),
                  split(2, x1)))))),
      split(128, zip(x, y))))
<BLANKLINE>

The first access of its kernel is that of `a`, in the function of the inner reduceSeq. Lowering goes through the term
from the outside in, and each pattern on the way leaves a view around those of its argument: zip and split when their
arrays are consumed, an access when a mapWrg, mapLcl or reduceSeq binds one element of its array, a component when the
function takes the pair apart. So the view of `a` is the first component of element ``i`` of element ``lcl_0`` of …

To find the address, the views are asked from the top (000 Figure 4.5). Two stacks say what is wanted: array indices,
and tuple components. An access puts its index on the first, a component its number on the second; split takes two
indices off and puts one back; zip takes off a component and asks only that side; the memory makes the address. (Names
are made unique first: `a` has become `a1`.)

>>> print(explain(program, "a"))
a1 in reduceSeq(fun (acc, a1, b1) => acc + a1 * b1, 0.0, _x3) : f32
  component .0
  access [i]                                                          .0
  access [lcl_0]          [i]                                         .0
  split(2)                [lcl_0] [i]                                 .0
  access [wrg_0]          [lcl_0 * 2 + i]                             .0
  split(128)              [wrg_0] [lcl_0 * 2 + i]                     .0
  zip                     [wrg_0 * 128 + (lcl_0 * 2 + i)]             .0
  memory x                [wrg_0 * 128 + (lcl_0 * 2 + i)]
as composed    x[wrg_0 * 128 + (lcl_0 * 2 + i)]
in normal form x[i + 2 * lcl_0 + 128 * wrg_0]

From this point on nothing knows about split or zip: the index is an expression, here already as short as it gets,
and its normal form has the innermost variable first. That is what the kernel shows; since `x` and `y` are read at one
index, it has a name:

>>> from lift_egraph.codegen.compiler import compile_program
>>> source = compile_program(program, GENERIC).source.splitlines()
>>> start = next(n for n, line in enumerate(source) if "const int at" in line)
>>> print(*source[start - 3 : start + 4], sep="\n")
  float acc = 0.0f;
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {
    const int at = i + 2 * lcl_0 + 128 * wrg_0;
    acc = acc + x[at] * y[at];
  }
  tmp[lcl_0] = acc;

Without the optimisation of indices (`lift_egraph.codegen.optimise`) the kernel shows the index as composed:

>>> plain = compile_program(program, GENERIC, optimise=CONTROL).source
>>> print(*[line.strip() for line in plain.splitlines() if "x[" in line])
acc = acc + x[wrg_0 * 128 + (lcl_0 * 2 + i)] * y[wrg_0 * 128 + (lcl_0 * 2 + i)];

Listing 4.4: what is simplified, and why
----------------------------------------
A matrix is transposed by its indices alone: its elements in one row, in another order, split into rows again.

>>> from lift_egraph.language.syntax import parse_program
>>> transposed = parse_program(
...     "program transposed(x: [[f32]8]16) ="
...     "  mapWrg(0, mapLcl(0, fun e => e), split(16, gather(i => i / 16 + i % 16 * 8, join(x))))"
... )
>>> print(explain(transposed, "e"))
e in mapLcl(0, id, _x) : [f32]16
  access [lcl_0]
  access [wrg_0]          [lcl_0]
  split(16)               [wrg_0] [lcl_0]
  reorder(128)            [wrg_0 * 16 + lcl_0]
  join(8)                 [8 * ((wrg_0 * 16 + lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16]
  memory x                [(8 * ((wrg_0 * 16 + lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) / 8] [(8 * ((wrg_0 * 16 +
                 lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) % 8]
as composed    x[((8 * ((wrg_0 * 16 + lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) / 8) * 8 + (8 * ((wrg_0 * 16 +
                 lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) % 8]
  (wrg_0 * 16 + lcl_0) % 16 = lcl_0, as 0 <= lcl_0 < 16
  (wrg_0 * 16 + lcl_0) / 16 = wrg_0, as 0 <= lcl_0 < 16
  (8 * ((wrg_0 * 16 + lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) / 8 = lcl_0, as 0 <= wrg_0 < 8
  (8 * ((wrg_0 * 16 + lcl_0) % 16) + (wrg_0 * 16 + lcl_0) / 16) % 8 = wrg_0, as 0 <= wrg_0 < 8
in normal form x[8 * lcl_0 + wrg_0]

Each line before the last is one use of the rules 4.1 to 4.6 of the thesis: a quotient or rest disappears where the
range of a loop's variable says that what is left over is smaller than the divisor. The result is what one would write
by hand:

>>> source = compile_program(transposed, GENERIC).source.splitlines()
>>> print(*[line.strip() for line in source if "x[" in line])
result[lcl_0 + 16 * wrg_0] = x[8 * lcl_0 + wrg_0];
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from textwrap import fill
from typing import Any

from lift_egraph.codegen.c_ast import CExpr, Load
from lift_egraph.codegen.devices import GENERIC, Device
from lift_egraph.codegen.lowering.host import lower_program
from lift_egraph.codegen.lowering.lower import Lowering
from lift_egraph.codegen.lowering.plain_index import PlainNat, parts
from lift_egraph.codegen.lowering.term_views import component
from lift_egraph.codegen.lowering.views import Access, Choices, Component, Indices, Memory, Pairs, View
from lift_egraph.codegen.optimise import CONTROL
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.describe import describe
from lift_egraph.language.nat import Nat
from lift_egraph.language.types import is_data, leaves

_WIDTH = 116


@dataclass(frozen=True)
class Step:
    """A view that is asked, and the path that is left when it is asked: array indices and tuple components."""

    view: View
    indices: Indices
    choices: Choices

    def __str__(self) -> str:
        indices = " ".join(f"[{written(i)}]" for i in self.indices)
        return f"{name_of(self.view):24}{indices:44}{' '.join(f'.{c}' for c in self.choices)}".rstrip()


@dataclass(frozen=True)
class Read:
    """A scalar that a function takes from an array.

    Parameters
    ----------
    variable
        The name of the function's variable.
    term
        The subterm that applies the function.
    steps
        The views from the variable down to memory.
    place
        What the views lead to: usually a load.
    """

    variable: str
    term: ir.Expr | None
    steps: tuple[Step, ...]
    place: CExpr

    @property
    def index(self) -> Nat | None:
        """The index into memory, which knows how the views put it together."""
        return self.place.index if isinstance(self.place, Load) else None

    def __str__(self) -> str:
        lines = [f"{self.variable} in {describe(self.term)}" if self.term is not None else self.variable]
        lines += [f"  {step}" for step in self.steps]
        if isinstance(self.place, Load):
            buffer = self.place.buffer.name
            lines.append(f"as composed    {buffer}[{written(self.place.index)}]")
            lines += [f"  {line}" for line in dict.fromkeys(simplifications(self.place.index))]
            lines.append(f"in normal form {buffer}[{self.place.index}]")
        return "\n".join(fill(line, _WIDTH, subsequent_indent=" " * 17, break_long_words=False) for line in lines)


def reads(program: ir.Program, device: Device = GENERIC) -> list[Read]:
    """Every read of a scalar that the kernels of a low-level program at concrete sizes do through a variable."""
    found: list[Read] = []

    class Recording(Lowering):
        def bind(self, pattern: ir.Binder, view: View, lasting: bool = False) -> None:
            found.extend(_reads(pattern, view, self.term))
            super().bind(pattern, view, lasting)

    lower_program(program, device, None, CONTROL, Recording)
    return list({(read.variable, str(read.index)): read for read in found}.values())


def explain(program: ir.Program, variable: str, device: Device = GENERIC) -> str:
    """How a variable of a low-level program is read: its views, and its index before and after simplification.

    Variables of one name are told apart by numbers; without one it is the first of them.

    Raises
    ------
    LiftError
        If no function of the program reads such a variable from an array.
    """
    found = reads(program, device)
    for read in found:
        if read.variable.rstrip("0123456789") == variable.rstrip("0123456789") and read.variable.startswith(variable):
            return str(read)
    known = ", ".join(dict.fromkeys(read.variable for read in found))
    raise LiftError(f"no function reads {variable!r} from an array; there are {known}")


def written(index: Nat) -> str:
    """An index as the views put it together."""
    return index.text() if isinstance(index, PlainNat) else str(index)


def simplifications(index: Nat) -> Iterator[str]:
    """Each division, rest, minimum and maximum in an index, innermost first, with what it is equal to and why."""
    found = parts(index)
    if found is None:
        return
    symbol, left, right = found
    yield from simplifications(left)
    yield from simplifications(right)
    if symbol not in ("/", "%", "min", "max") or written(index) == str(index):
        return
    if symbol in "/%":
        yield f"{written(index)} = {index}, as 0 <= {left % right} < {right}"
    else:
        low, high = (left - right).range
        yield f"{written(index)} = {index}, as {low} <= {left - right} <= {high}"


def name_of(view: View) -> str:
    """The view's name and parameters."""
    if isinstance(view, Memory):
        return f"memory {view.cells[0].buffer.name}"
    if isinstance(view, Access):
        return f"access [{written(view.index)}]"
    if isinstance(view, Component):
        return f"component .{view.index}"
    values = [getattr(view, f.name) for f in fields(view)]  # pyright: ignore[reportArgumentType]
    own = ", ".join(str(v) for v in values if isinstance(v, Nat | int))
    name = "zip" if isinstance(view, Pairs) else type(view).__name__.lower()
    return f"{name}({own})" if own else name


def _reads(pattern: ir.Binder, view: View, term: ir.Expr | None) -> Iterator[Read]:
    if isinstance(pattern, ir.PairBinder):
        yield from _reads(pattern.first, component(0, view), term)
        yield from _reads(pattern.second, component(1, view), term)
    elif is_data(pattern.type) and view.space is not None:
        for choices, _, _ in leaves(pattern.type):
            log: list[Step] = []
            place = _Traced(view, log).resolve((), choices)
            yield Read(".".join((pattern.name, *map(str, choices))), term, tuple(log), place)


@dataclass(frozen=True)
class _Traced(View):
    """A view that notes what it is asked, as do those below it."""

    inner: View
    log: list[Step] = field(compare=False)

    @property
    def space(self) -> str | None:
        return self.inner.space

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        self.log.append(Step(self.inner, indices, choices))
        below: dict[str, Any] = {
            f.name: _Traced(value, self.log)
            for f in fields(self.inner)  # pyright: ignore[reportArgumentType]
            if isinstance(value := getattr(self.inner, f.name), View)
        }
        opened: Any = self.inner
        return replace(opened, **below).resolve(indices, choices)
