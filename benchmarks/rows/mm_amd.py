"""Matrix multiplication in CLBlast's way for AMD: register blocks and vectors, no local memory."""

from __future__ import annotations

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir

from .blocks import Blocks, in_registers
from .row import HandKernel, Row, Sizes, on_gpu, plan_by_hand


def blocks_of(dialect: str) -> Blocks:
    """Blocks of 8 x 8 on a GPU, of 8 x 32 on a CPU."""
    return Blocks(16, 16, 8, 2, 4, 1, 4) if on_gpu(dialect) else Blocks(4, 4, 8, 2, 16, 1, 1)


def term(dialect: str, sizes: Sizes) -> ir.Program:
    """Register blocks."""
    return in_registers(blocks_of(dialect), sizes)


def by_hand(dialect: str, sizes: Sizes) -> Plan:
    """The same by hand."""
    blocks = blocks_of(dialect)
    size = (sizes["N"] // blocks.tile_n * blocks.items_n, sizes["M"] // blocks.tile_m * blocks.items_m)
    kernel = HandKernel("mm", ("A", "B", "result"), size, (blocks.items_n, blocks.items_m))
    text = "mm_amd_gpu.cl" if on_gpu(dialect) else "mm_amd_cpu.cl"
    return plan_by_hand(term(dialect, sizes), dialect, text, (kernel,), defines={**blocks.defines, **sizes})


ROW = Row(
    "mm_amd",
    "MM, AMD",
    "CLBlast",
    ("private memory", "vectorisation", "coalescing", "2D"),
    {
        "small": {"M": 1024, "K": 1024, "N": 1024},
        "large": {"M": 4096, "K": 4096, "N": 4096},
        "large_cpu": {"M": 2048, "K": 2048, "N": 2048},
        "check": {"M": 128, "K": 128, "N": 256},
    },
    term,
    by_hand,
)
