"""The programs that libraries are made for, in OpenCL C as an expert writes it for a CPU.

The texts in this folder's ``by_hand`` have the shapes that were the fastest by hand: vectors of 16 floats that may
begin anywhere, a work-item for many whole rows or a long chunk, no local memory. `SHAPES` has for each program what was
worth a comparison; the best of them counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from lift_egraph.bench.hand import ByHand, HandKernel, plan_of
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir

Sizes = Mapping[str, int]
Shape = Callable[[Sizes], ByHand | None]
"""From sizes to a text; None where the text is not for these sizes."""

ONE = (1,)


def _sums(name: str, inputs: tuple[str, ...], items: int) -> Shape:
    def shape(sizes: Sizes) -> ByHand | None:
        if sizes["N"] % (64 * items):
            return None
        kernels = (
            HandKernel(name, (*inputs, "partial"), (items,), ONE),
            HandKernel("combined", ("partial", "result"), ONE, ONE),
        )
        return ByHand("sums", kernels, {"N": sizes["N"], "ITEMS": items}, {"partial": items})

    return shape


def _rows(text: str, name: str, inputs: tuple[str, ...], rows: int, stream: int, wide: int = 16) -> Shape:
    """A work-item for some rows, of a matrix or of the planes of a cube."""

    def shape(sizes: Sizes) -> ByHand | None:
        lines, length = (sizes["N"], sizes["L"]) if "L" in sizes else (sizes["M"], sizes["N"])
        if lines % rows or length % wide or length < 32:
            return None
        items = (lines // rows, sizes["M"]) if "L" in sizes else (lines // rows,)
        kernel = HandKernel(name, (*inputs, "result"), items, (1, 1))
        return ByHand(text, (kernel,), {**sizes, "ROWS": rows, "STREAM": stream})

    return shape


def _convolved(sizes: Sizes) -> ByHand | None:
    channels, filters = sizes["C"], sizes["O"]
    if filters % 2:
        return None
    kernels = (
        HandKernel("bordered", ("X", "padded"), (channels,), ONE),
        HandKernel("convolved", ("padded", "F", "result"), (filters // 2,), ONE),
    )
    return ByHand("convolution", kernels, {"C": channels}, {"padded": channels * 58 * 64})


def _scan(chunks: int, element: str, spelled: str) -> Shape:
    def shape(sizes: Sizes) -> ByHand | None:
        if sizes["N"] % (32 * chunks):
            return None
        kernels = (
            HandKernel("sums", ("xs", "partial"), (chunks,), ONE),
            HandKernel("scanned", ("xs", "partial", "result"), (chunks,), ONE),
        )
        defines = {"N": sizes["N"], "CHUNKS": chunks, "T": spelled}
        return ByHand("scan", kernels, defines, {"partial": chunks}, element)

    return shape


def _fold(name: str, scalars: tuple[str, ...], results: tuple[str, ...], kept: int, chunks: int, run: int) -> Shape:
    """A chunk each for work-items, of which so many numbers are `kept`; lanes have runs of neighbours, if any."""

    def shape(sizes: Sizes) -> ByHand | None:
        if sizes["N"] % (chunks * 16 * max(run, 4)):
            return None
        kernels = (
            HandKernel(name, ("xs", *scalars, "partial"), (chunks,), ONE),
            HandKernel(f"{name}_of_chunks", (*scalars, "partial", *results), ONE, ONE),
        )
        return ByHand("folds", kernels, {"N": sizes["N"], "CHUNKS": chunks, "RUN": run}, {"partial": kept * chunks})

    return shape


def _stencils(name: str, inputs: tuple[str, ...] = ("A",)) -> dict[str, Shape]:
    shapes = {f"{n} rows": _rows("stencils", name, inputs, n, 0) for n in (4, 32)}
    return shapes | {f"{n} rows, streamed": _rows("stencils", name, inputs, n, 1) for n in (4, 32)}


SHAPES: dict[str, dict[str, Shape]] = {
    "asum": {f"{n} chunks": _sums("asum", ("x",), n) for n in (16, 256)},
    "dot": {f"{n} chunks": _sums("dots", ("x", "y"), n) for n in (16, 256)},
    "matvec": {f"{n} rows": _rows("rows", "matvec", ("A", "x"), n, 0) for n in (4, 64)},
    "jacobi5": _stencils("jacobi5"),
    "j2d9pt": _stencils("j2d9pt"),
    "gauss25": _stencils("gauss25", ("A", "W")),
    "laplace7": _stencils("laplace7"),
    "softmax_rows": {"16 rows": _rows("rows", "softmax_rows", ("X",), 16, 0)},
    "norm_rows": {
        "16 rows": _rows("rows", "norm_rows", ("X", "g", "b"), 16, 0, 64),
        "16 rows, streamed": _rows("rows", "norm_rows", ("X", "g", "b"), 16, 1, 64),
    },
    "conv_layer": {"two filters": _convolved},
    "scan": {"64 chunks": _scan(64, "i32", "int")},
    "scan_f32": {"64 chunks": _scan(64, "f32", "float")},
    "horner": {f"{n} chunks": _fold("horner", ("k",), ("result",), 1, n, 0) for n in (16, 256)},
    "mss": {
        f"64 chunks, runs of {n}": _fold("mss", (), ("result_0", "result_1"), 4, 64, n) for n in (32, 64, 256)
    },
}


@cache
def text_of(name: str) -> str:
    """A text, below what all of them share."""
    folder = files("lift_egraph.bench") / "by_hand"
    return "".join((folder / f"{part}.cl").read_text(encoding="utf-8") for part in ("wide", name))


def plans(name: str, program: ir.Program, device: Device) -> dict[str, Plan]:
    """The plans of a program at concrete sizes, on a CPU, by what tells them apart."""
    sizes = dict(program.sizes)
    made = {label: shape(sizes) for label, shape in SHAPES.get(name, {}).items()}
    return {label: plan_of(program, device, hand, text_of(hand.text)) for label, hand in made.items() if hand}
