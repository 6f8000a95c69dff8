"""Rows of local arrays apart from each other, where neighbouring work-items would meet in one bank of the memory.

Local memory serves a word of each bank at a time. Work-items that write a tile by columns, one below the other, find
all their words in one bank if the rows are as long as there are banks; rows with a few unused elements at their end
spread them.

Source: 000 §5.3.1 stages tiles in local memory; the CUDA C++ Programming Guide on shared memory has the banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from lift_egraph.codegen.c_ast import Body, Buffer, Load
from lift_egraph.codegen.c_walk import data_in, loads, rewrite, stores, walk
from lift_egraph.codegen.devices import Gpu
from lift_egraph.codegen.lowering.views import ThreadVar
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import SCALAR_BYTES, scalar_of

WORD = 4  # bytes


def space_rows(
    body: Body, buffers: tuple[Buffer, ...], threads: Mapping[int, int | None], gpu: Gpu
) -> tuple[Body, tuple[Buffer, ...]]:
    """A kernel's body and its local arrays, with rows apart where that costs fewer rounds of the banks.

    Parameters
    ----------
    threads
        The number of work-items of a group in each dimension of mapLcl; None where only the launch says it.
    """
    banks = int(gpu.local_bytes_a_cycle) // WORD
    pointed = {name for part in walk(body) if isinstance(part, Load) for name in part.buffer.targets}
    warp = tuple(_lanes(threads, int(gpu.warp)))
    gaps: dict[str, _Gaps] = {}
    for buffer in buffers:
        words, rest = divmod(SCALAR_BYTES[scalar_of(buffer.element).name], WORD)
        if len(buffer.shape) < 2 or buffer.name in pointed or rest:
            continue
        accesses = {(a.index, a.width) for a in (*loads(body), *stores(body)) if a.buffer.name == buffer.name}
        row, wide = int(nat(buffer.shape[-1]).constant or 0), max((width for _, width in accesses), default=1)
        best, turn = sum(_rounds(index, width, words, warp, banks) for index, width in accesses), banks // words
        for every in (row, turn) if row and row % turn == 0 and row > turn else (row,) if row else ():
            spaced = _Gaps(every, wide)
            if all(_stays_in_row(index, width, every) for index, width in accesses):
                after = sum(_rounds(spaced.index(index), width, words, warp, banks) for index, width in accesses)
                if after < best:
                    best, gaps[buffer.name] = after, spaced
    apart = {b.name: gaps[b.name].buffer(b) for b in buffers if b.name in gaps}

    def moved(part: object) -> Load | None:
        if not isinstance(part, Load) or part.buffer.name not in apart:
            return None
        name = part.buffer.name
        return Load(apart[name], gaps[name].index(part.index), part.width)

    return rewrite(body, moved) if apart else body, tuple(apart.get(b.name, b) for b in buffers)


@dataclass(frozen=True)
class _Gaps:
    """So many unused elements, `wide`, after `every` so many others: after each row, or each round of the banks."""

    every: int
    wide: int

    def index(self, index: Nat) -> Nat:
        """Where an element lies then."""
        return index + self.wide * (index // self.every)

    def buffer(self, buffer: Buffer) -> Buffer:
        """An array with room for the gaps in its rows."""
        row = int(nat(buffer.shape[-1]).constant or 0)
        return replace(buffer, shape=(*buffer.shape[:-1], row + self.wide * (row // self.every)))


@lru_cache(1 << 12)  # points of a plan have much in common
def _stays_in_row(index: Nat, width: int, row: int) -> bool:
    """Whether an access is to neighbours of one row of a length, whose number is as simple as the index itself."""
    if data_in(index):
        return False
    number = index // row
    return number == (index + (width - 1)) // row and len(number.terms) <= len(index.terms)


def _lanes(threads: Mapping[int, int | None], warp: int) -> Iterator[tuple[int, int, int]]:
    """The indices of the work-items of the first warp in each dimension."""
    sizes = [threads.get(d, 1) or warp for d in range(3)]
    for lane in range(warp):
        indices: list[int] = []
        for size in sizes:
            lane, index = divmod(lane, size)
            indices.append(index)
        x, y, z = indices
        yield x, y, z


@lru_cache(1 << 12)
def _rounds(index: Nat, width: int, words: int, warp: tuple[tuple[int, int, int], ...], banks: int) -> int:
    """How many words of one bank a warp asks for at once, by elements of so many `words`.

    Vectors are served to a part of it after the other.
    """
    asked: set[int] = set()
    own = [v for v in index.variables if isinstance(v, ThreadVar) and v.name.startswith("lcl")]
    others = {v.name: v.low or 0 for v in index.variables}
    for lane in warp[: max(1, len(warp) // (width * words))]:
        first = words * index.evaluate({**others, **{v.name: lane[v.dimension] for v in own}})
        asked.update(range(first, first + width * words))
    return max(Counter(word % banks for word in asked).values())
