"""Which memory a loop nest touches, and which level of the caches has to deliver it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lift_egraph.extract.accesses import Access, Region

LINE, PAGE = 64, 4096
_SETS = 64  # neighbouring lines, or pages, are surely in different sets up to this number
_FOLLOWED = 8  # leaps that hardware prefetchers keep track of


@dataclass(frozen=True)
class Touched:
    """Lines (or pages) that accesses touch, apart by whether a prefetcher foresees them."""

    streamed: float = 0.0
    strided: float = 0.0

    @property
    def lines(self) -> float:
        return self.streamed + self.strided

    def __add__(self, other: Touched) -> Touched:
        return Touched(self.streamed + other.streamed, self.strided + other.strided)

    def __mul__(self, times: float) -> Touched:
        return Touched(self.streamed * times, self.strided * times)


@dataclass(frozen=True)
class _Stream:
    """Accesses that differ only by constants: one buffer, equal strides (bytes) in equally many loops."""

    strides: tuple[float, ...]
    starts: tuple[float, ...]
    width: int
    irregular: bool

    def extents(self, trips: tuple[int, ...], outside: int, grain: int) -> tuple[float, float, float]:
        """Runs of memory touched in the loops inside `outside` others: their number, length and distance."""
        moves = [(abs(s), n) for s, n in zip(self.strides, trips, strict=True)][outside:]
        offsets = sorted({start // grain for start in self.starts})
        if len(offsets) > 1:
            moves.append(((offsets[-1] - offsets[0]) * grain / (len(offsets) - 1), len(offsets)))
        runs, length, distance = 1.0, float(self.width), 0.0
        for stride, count in sorted(m for m in moves if m[0] > 0 and m[1] > 1):
            if self.irregular:
                runs *= count
            elif runs == 1 and stride <= max(length, grain):
                length += stride * (count - 1)
            elif not distance or stride * count > runs * distance:
                runs *= count if stride >= runs * distance else max(stride * count / (runs * distance), 1)
                distance = distance or stride
        return runs, length, distance

    def touched(self, trips: tuple[int, ...], outside: int, grain: int = LINE) -> Touched:
        runs, length, _ = self.extents(trips, outside, grain)
        count = runs * max(1.0, length / grain)
        return Touched(strided=count) if self.is_strided(trips) else Touched(streamed=count)

    def is_strided(self, trips: tuple[int, ...]) -> bool:
        """Whether the innermost loop that moves the address leaps, over more lines than a prefetcher follows."""
        inner = ((abs(s), n) for s, n in zip(reversed(self.strides), reversed(trips), strict=True) if s and n > 1)
        stride, count = next(inner, (0.0, 1))
        return self.irregular or (stride >= 2 * LINE and count > _FOLLOWED)

    def occupied(self, trips: tuple[int, ...], outside: int, grain: int = LINE) -> float:
        """Bytes of a cache that are taken; strides by powers of two use only a part of its sets."""
        runs, length, distance = self.extents(trips, outside, grain)
        size = runs * max(grain, length)
        step = int(distance)
        return max(size, runs * min(step & -step, _SETS * grain))


class Footprint:
    """Lines touched in the regions of a kernel, for caches of any size."""

    def __init__(self, root: Region, space: str = "global") -> None:
        self.root = root
        self._streams = {id(region): list(_streams(region, space)) for region, _ in root.walk()}
        self._inside: dict[int, list[tuple[_Stream, tuple[int, ...]]]] = {}

    def occupied(self, region: Region, grain: int = LINE) -> float:
        """Bytes that one step of a region's loop keeps in a cache."""
        depth = len(region.path)
        return sum(s.occupied(trips, depth, grain) for s, trips in self._all(region))

    def size(self) -> float:
        """Bytes that the kernel touches."""
        return sum(s.touched(trips, 0).lines for s, trips in self._all(self.root)) * LINE

    def fetched(self, capacity: float, grain: int = LINE) -> Touched:
        """The lines that come from beyond a cache of some bytes; with another grain, pages.

        While one step of a loop fits, what its steps share is fetched once; where it does not, each step
        fetches anew.
        """
        return self._fetched(self.root, capacity, grain)

    def _fetched(self, region: Region, capacity: float, grain: int) -> Touched:
        depth = max(len(region.path) - 1, 0)
        if self.occupied(region, grain) <= capacity:
            return sum((s.touched(trips, depth, grain) for s, trips in self._all(region)), Touched())
        own = sum((s.touched(trips, len(trips), grain) for s, trips in self._own(region)), Touched())
        return sum((self._fetched(child, capacity, grain) for child in region.children), own) * region.trips

    def _own(self, region: Region) -> list[tuple[_Stream, tuple[int, ...]]]:
        trips = tuple(loop.trips for loop in region.path)
        return [(stream, trips) for stream in self._streams[id(region)]]

    def _all(self, region: Region) -> list[tuple[_Stream, tuple[int, ...]]]:
        if id(region) not in self._inside:
            found = self._own(region)
            for child in region.children:
                found = found + self._all(child)
            self._inside[id(region)] = found
        return self._inside[id(region)]


def _streams(region: Region, space: str) -> Iterator[_Stream]:
    groups: dict[object, list[Access]] = defaultdict(list)
    for access in region.accesses:
        if access.space == space:
            groups[access.buffer, access.strides, access.irregular].append(access)
    for accesses in groups.values():
        first = accesses[0]
        size = first.element_bytes
        yield _Stream(
            tuple(s * size for s in first.strides),
            tuple(a.start * size for a in accesses),
            max(a.bytes for a in accesses),
            first.irregular,
        )
