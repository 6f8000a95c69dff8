"""Which chunk sizes to offer a search: a few tilings, each with one size a level.

Every chunk size offered multiplies the e-graph, so a tiling offers one per length, and several
tilings are tried one after the other.
"""

from __future__ import annotations

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array

Tiling = dict[int, tuple[int, ...]]


def merged(*tilings: Tiling) -> Tiling:
    """The chunk sizes of all, each once.

    >>> merged({64: (8,)}, {64: (4, 8), 32: (2,)})
    {64: (8, 4), 32: (2,)}
    """
    found: Tiling = {}
    for tiling in tilings:
        for n, sizes in tiling.items():
            found[n] = tuple(dict.fromkeys((*found.get(n, ()), *sizes)))
    return found


def lengths(program: ir.Program) -> tuple[int, ...]:
    """The lengths of all arrays that a program at concrete sizes maps, reduces or takes as input."""
    found: set[int] = set()

    def add(t: object) -> None:
        while isinstance(t, Array):
            if t.size.constant is not None:
                found.add(t.size.constant)
            t = t.element

    for item in program.inputs:
        add(item.type)
    for term in ir.subterms(program.body):
        if isinstance(term, ir.Map | ir.Reduce):
            array = type_of(term.array)
            if isinstance(array, Array):
                found.add(array.size.constant or 0)
    return tuple(sorted(found - {0}))


def tilings(
    program: ir.Program, device: Device, blocks: tuple[int, ...], long: int, chunks_per_unit: int
) -> list[Tiling]:
    """The tilings to try for a program on a device, the most promising first.

    Parameters
    ----------
    blocks
        Chunk sizes for short arrays, one for each tiling.
    long
        The length from which arrays are first cut into one chunk a work-item.
    chunks_per_unit
        How many such chunks for each compute unit.
    """
    made: list[Tiling] = []
    for block in blocks:
        tiling: Tiling = {}
        for n in lengths(program):
            if n >= long:
                chunk = chunk_size(n, device.compute_units * chunks_per_unit)
                if chunk is not None:
                    tiling[n] = (chunk,)
                    inner = lane_block(chunk, block)
                    if inner is not None:
                        tiling[chunk] = (inner,)
            elif n > block and n % block == 0:
                tiling[n] = (block,)
        if tiling not in made:
            made.append(tiling)
    return made


def chunk_size(n: int, parts: int) -> int | None:
    """The chunk that divides `n` into about `parts` pieces, a multiple of 16 if there is one."""
    wanted = max(2, n // parts)
    divisors = [d for d in range(wanted, max(1, wanted // 4), -1) if n % d == 0 and d < n]
    return next((d for d in divisors if d % 16 == 0), divisors[0] if divisors else None)


def lane_block(chunk: int, block: int) -> int | None:
    """How many interleaved partial results to keep while reducing a chunk: at least a vector's lanes."""
    lanes = max(16, 2 * block)
    return lanes if chunk > lanes and chunk % lanes == 0 else None


def vector_widths(program: ir.Program, device: Device, count: int) -> tuple[int, ...]:
    """The `count` widths of vectors most worth introducing: the device's own and less, where some length allows it."""
    most = max(device.vector_width, 4)
    fitting = [w for w in (16, 8, 4, 2) if w <= most and any(n % w == 0 for n in lengths(program))]
    return tuple(fitting[:count])
