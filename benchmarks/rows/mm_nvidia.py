"""Matrix multiplication in CLBlast's way for NVIDIA: tiles in local memory, register blocks, vectors."""

from __future__ import annotations

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir

from .blocks import Blocks, in_local_memory
from .row import HandKernel, Row, Sizes, on_gpu, plan_by_hand


def blocks_of(dialect: str) -> Blocks:
    """Tiles of 128 x 128 on a GPU."""
    return Blocks(16, 16, 8, 2, 4, 8, 4) if on_gpu(dialect) else Blocks(4, 4, 8, 2, 16, 64, 1)


def term(dialect: str, sizes: Sizes) -> ir.Program:
    """Tiles in local memory."""
    return in_local_memory(blocks_of(dialect), sizes)


def by_hand(dialect: str, sizes: Sizes) -> Plan:
    """The same by hand."""
    blocks = blocks_of(dialect)
    size = (sizes["N"] // blocks.tile_n * blocks.items_n, sizes["M"] // blocks.tile_m * blocks.items_m)
    kernel = HandKernel("mm", ("A", "B", "result"), size, (blocks.items_n, blocks.items_m))
    text = "mm_nvidia_gpu.cl" if on_gpu(dialect) else "mm_nvidia_cpu.cl"
    return plan_by_hand(term(dialect, sizes), dialect, text, (kernel,), defines={**blocks.defines, **sizes})


ROW = Row(
    "mm_nvidia",
    "MM, NVIDIA",
    "CLBlast",
    ("local memory", "private memory", "vectorisation", "coalescing", "2D"),
    {
        "small": {"M": 1024, "K": 1024, "N": 1024},
        "large": {"M": 4096, "K": 4096, "N": 4096},
        "large_cpu": {"M": 2048, "K": 2048, "N": 2048},
        "check": {"M": 128, "K": 128, "N": 256},
    },
    term,
    by_hand,
)
