"""What a row of the table is: one program in low-level LIFT, beside a kernel written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_egraph.api import random_inputs, specialise, type_of
from lift_egraph.bench.hand import ByHand, HandKernel, plan_of
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import build as b, ir
from lift_egraph.language.functions import to_function
from lift_egraph.language.types import Array, without_lanes

Sizes = Mapping[str, int]
"""What a row's size variables are: name to number."""

HERE = Path(__file__).parent
GROUP = 256  # work-items of a group on a GPU, where neighbours share nothing


@dataclass(frozen=True, eq=False)
class Row:
    """One row of Table 4.2.

    Attributes
    ----------
    optimisations
        Those that both sides encode, in the words of the table.
    sizes
        ``small`` and ``large`` (the sizes of the thesis), ``check`` (for the comparison with the interpreter),
        and where the thesis's size takes minutes on a CPU ``small_cpu`` or ``large_cpu``.
    term
        From the name of a dialect to the low-level program.
    plain
        From the name of a dialect to the program as a user writes it, over the same inputs.
    hand
        From the name of a dialect and sizes to the text written by hand, over the same buffers.
    inputs
        From the program, a seed and the kind of numbers (``float`` or ``integer``) to its inputs.
    """

    name: str
    title: str
    source: str
    optimisations: tuple[str, ...]
    sizes: Mapping[str, Sizes]
    term: Callable[[str], ir.Program]
    plain: Callable[[str], ir.Program]
    hand: Callable[[str, Sizes], ByHand]
    inputs: Callable[[ir.Program, int, Any], dict[str, Any]] = random_inputs

    def program(self, dialect: str, sizes: Sizes) -> ir.Program:
        """The low-level program at these sizes."""
        return specialise(self.term(dialect), dict(sizes))

    def plain_program(self, dialect: str, sizes: Sizes) -> ir.Program:
        """The plain program at these sizes."""
        return specialise(self.plain(dialect), dict(sizes))

    def by_hand(self, dialect: str, sizes: Sizes) -> Plan:
        """The plan of the text written by hand."""
        hand = self.hand(dialect, sizes)
        text = (HERE / hand.text).read_text(encoding="utf-8")
        return plan_of(self.program(dialect, sizes), DEVICES[dialect], hand, text)

    def sizes_on(self, dialect: str, which: str) -> Sizes:
        """The sizes to use on a device of a dialect."""
        special = None if on_gpu(dialect) else self.sizes.get(f"{which}_cpu")
        return self.sizes[which] if special is None else special


def on_gpu(dialect: str) -> bool:
    """Whether a dialect's devices are GPUs: parameters such as the work-group differ between them and CPUs."""
    return dialect == "nvidia"


def one_kernel(
    dialect: str, name: str, arguments: tuple[str, ...], n: int, chunk: int, defines: Mapping[str, int | float | str]
) -> ByHand:
    """A work-item for each of n elements, in groups of 256, on a GPU; on a CPU one for each chunk of elements."""
    if on_gpu(dialect):
        kernel = HandKernel(name, arguments, (-(-n // GROUP) * GROUP,), (GROUP,))
        return ByHand(f"{name}_gpu.cl", (kernel,), {**defines, "N": n, "GROUP": GROUP})
    kernel = HandKernel(name, arguments, (n // chunk,), (1,))
    return ByHand(f"{name}_cpu.cl", (kernel,), {**defines, "N": n, "CHUNK": chunk})


# --- words that the rows' terms share -------------------------------------------------------------------


def map_vectors(width: int, function: Any, xs: ir.Expr) -> ir.Expr:
    """``mapSeq(vectorize(width, f), xs)``; without a vector for a width of 1."""
    if width == 1:
        return b.map_seq(function, xs)
    t = type_of(xs)
    assert isinstance(t, Array)
    _, lane = without_lanes(t.element)
    return b.map_seq(ir.Vectorize(width, to_function(function, lane, "vectorize")), xs)


def lane(number: int, vector: ir.Expr) -> ir.Expr:
    """One component of a vector."""
    return b.at(number, b.as_scalar(b.fill(1, vector)))


def vector_of(*components: ir.Expr) -> ir.Expr:
    """The vector of some scalars."""

    def component(index: ir.Expr) -> ir.Expr:
        chosen = components[-1]
        for number, value in reversed(list(enumerate(components[:-1]))):
            chosen = b.select(b.equal(index, number), value, chosen)
        return chosen

    return b.at(0, b.as_vector(len(components), b.generate(len(components), component)))


def repeated(width: int, value: float) -> ir.Expr:
    """A vector with the same number in all lanes; the number, for a width of 1."""
    return b.literal(value) if width == 1 else b.at(0, b.as_vector(width, b.fill(width, value)))


def lanes(vector: ir.Expr, count: int = 4) -> tuple[ir.Expr, ...]:
    """The components of a vector."""
    return tuple(lane(k, vector) for k in range(count))


def parts(count: int, value: ir.Expr) -> tuple[ir.Expr, ...]:
    """The components of a tuple."""
    return tuple(b.get(k, value) for k in range(count))


def halves(xs: ir.Expr) -> ir.Expr:
    """Each element of the first half of an array in a pair with its counterpart in the second."""
    return b.split(2, b.gather(lambda i, n: i // 2 + (n // 2) * (i % 2), xs))


def in_vectors(width: int, length: int, function: Any, xs: ir.Expr) -> ir.Expr:
    """A work-item for each chunk of an array; it calls the function with vector after vector."""
    return b.join(
        b.map_glb(0, lambda chunk: b.as_scalar(b.map_seq(function, b.as_vector(width, chunk))), b.split(length, xs))
    )
