"""Matrix multiplication in CLBlast's ways: register blocks and vectors, for NVIDIA with tiles in local memory."""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from collections.abc import Callable

from lift_egraph.language import build as b, ir

from .blocks import Blocks, in_local_memory, in_registers
from .row import ByHand, HandKernel, Row, Sizes, on_gpu

SIZES = {
    "small": {"M": 1024, "K": 1024, "N": 1024},
    "large": {"M": 4096, "K": 4096, "N": 4096},
    "large_cpu": {"M": 2048, "K": 2048, "N": 2048},
    "check": {"M": 128, "K": 128, "N": 256},
}


def plain(dialect: str) -> ir.Program:
    """Columns of A times columns of B."""

    @b.program
    def mm(A: "[[f32]M]K", B: "[[f32]N]K"):
        def dot(of_a, of_b):
            return b.reduce_(b.add, 0.0, b.map_(b.mul, b.zip_(of_a, of_b)))

        return b.map_(lambda of_a: b.map_(lambda of_b: dot(of_a, of_b), b.transpose(B)), b.transpose(A))

    return mm


def row(
    vendor: str, optimisations: tuple[str, ...], gpu: Blocks, cpu: Blocks, made: Callable[[Blocks], ir.Program]
) -> Row:
    """The way for a vendor's devices: its blocks on a GPU and on a CPU."""

    def blocks_of(dialect: str) -> Blocks:
        return gpu if on_gpu(dialect) else cpu

    def by_hand(dialect: str, sizes: Sizes) -> ByHand:
        blocks = blocks_of(dialect)
        size = (sizes["N"] // blocks.tile_n * blocks.items_n, sizes["M"] // blocks.tile_m * blocks.items_m)
        kernel = HandKernel("mm", ("A", "B", "result"), size, (blocks.items_n, blocks.items_m))
        return ByHand(f"{name}_{'gpu' if on_gpu(dialect) else 'cpu'}.cl", (kernel,), {**blocks.defines, **sizes})

    name = f"mm_{vendor.lower()}"
    optimisations = (*optimisations, "private memory", "vectorisation", "coalescing", "2D")
    return Row(name, f"MM, {vendor}", "CLBlast", optimisations, SIZES, lambda d: made(blocks_of(d)), plain, by_hand)


AMD = row("AMD", (), Blocks(16, 16, 8, 2, 4, 1, 4), Blocks(4, 4, 8, 2, 16, 1, 1), in_registers)
NVIDIA = row("NVIDIA", ("local memory",), Blocks(16, 16, 8, 2, 4, 8, 4), Blocks(4, 4, 8, 2, 16, 64, 1), in_local_memory)
