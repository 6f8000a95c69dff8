"""Which memory a loop nest touches, and which level of the caches has to deliver it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from lift_egraph.caching import cached_property, kept_with
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Access, Region, analyse

LINE, PAGE = 64, 4096
_FREE = 0.9  # the part of a cache that a loop can count on
_CONTIGUOUS = 16 * PAGE  # of memory lies side by side in the machine's as a rule
_WAYS = 8  # lines, or pages, of the same set that a cache holds
_UNFORESEEN = 1.0  # lines of a walk that no prefetcher brings
_FOLLOWED = 8  # leaps that hardware prefetchers keep track of, from one page to another; inside of one, of all
_IN_ORDER = 2.0  # stores wait for one line after the other; loads, for several at once


class Touched(NamedTuple):
    """Lines (or pages) that accesses touch, apart by whether a prefetcher foresees them."""

    streamed: float = 0.0
    strided: float = 0.0

    @property
    def lines(self) -> float:
        return self.streamed + self.strided


@dataclass(frozen=True, eq=False)
class _Stream:
    """Accesses that differ only by constants: one buffer, equal strides (bytes) in the loops around, with their trips.

    Caches of all sizes ask it the same, also in other kernels: what it answers is kept.
    """

    strides: tuple[float, ...]
    trips: tuple[int, ...]
    starts: tuple[float, ...]
    width: int
    irregular: bool
    is_stored: bool
    known: dict[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)

    def extents(self, outside: int, grain: int) -> tuple[float, float, float]:
        """Runs of memory touched in the loops inside `outside` others: their number, length and distance."""
        if (found := self.known.get((outside, grain))) is None:
            found = self.known[outside, grain] = self._extents(outside, grain)
        return found

    def _extents(self, outside: int, grain: int) -> tuple[float, float, float]:
        moves = [(abs(s), n) for s, n in zip(self.strides[outside:], self.trips[outside:], strict=True) if s and n > 1]
        if len(self.starts) > 1:
            offsets = {start // grain for start in self.starts}
            if len(offsets) > 1:
                moves.append(((max(offsets) - min(offsets)) * grain / (len(offsets) - 1), len(offsets)))
        runs, length, distance = 1.0, float(self.width), 0.0
        for stride, count in sorted(moves):
            if self.irregular:
                runs *= count
            elif runs == 1 and stride <= max(length, grain):
                length += stride * (count - 1)
            elif not distance or stride * count > runs * distance:
                runs *= count if stride >= runs * distance else max(stride * count / (runs * distance), 1)
                distance = distance or stride
        return runs, length, distance

    def touched(self, outside: int, store_moves: float, grain: int) -> Touched:
        runs, length, _ = self.extents(outside, grain)
        count = runs * max(1.0, length / grain) * (store_moves if self.is_stored else 1.0)
        foreseen = self.foreseen
        return Touched(count * foreseen, count * (1 - foreseen))

    def touched_again(self, pressure: float, store_moves: float, grain: int) -> Touched:
        """In each step of a loop that asks a cache for so many times what it holds."""
        found = self.touched(len(self.trips), store_moves, grain)
        is_same = bool(self.strides) and abs(self.strides[-1]) < grain  # no prefetcher brings a line that was there
        if not is_same:
            return found
        lines = found.lines
        if self.is_stored:  # what is in between takes the line away
            lines = max(lines, self.visits(grain) * store_moves) * _IN_ORDER
        return Touched(strided=lines * (1 - 1 / pressure))

    def visits(self, grain: int) -> int:
        """How often one step turns to another line than that of the access before."""
        order = [start // grain for start in self.starts]
        return sum([one != other for one, other in pairwise((order[-1], *order))])

    @cached_property
    def lines(self) -> frozenset[int]:
        """The lines in which it begins."""
        return frozenset(int(start // LINE) for start in self.starts)

    @cached_property
    def foreseen(self) -> float:
        """The share of its lines that a prefetcher foresees."""
        return 0.0 if self.is_strided else max(0.0, 1 - _UNFORESEEN * LINE / self.walked)

    @property
    def is_strided(self) -> bool:
        """Whether the innermost loop that moves the address leaps out of a page, over more lines than a prefetcher
        follows.
        """
        inner = ((abs(s), n) for s, n in zip(reversed(self.strides), reversed(self.trips), strict=True) if s and n > 1)
        stride, count = next(inner, (0.0, 1))
        leaps = stride - LINE * len(self.lines) >= LINE and count > _FOLLOWED
        return self.irregular or (leaps and stride * count > PAGE)

    @property
    def walked(self) -> float:
        """Bytes that are walked over one after the other, beside the leaps that a prefetcher follows."""
        length = float(self.width)
        for s, n in zip(reversed(self.strides), reversed(self.trips), strict=True):
            stride = abs(s)
            if stride and n > 1 and stride <= max(length, LINE * len(self.lines)):
                length = max(length, stride * (n - 1) + length)
            elif stride and n > _FOLLOWED and stride * n > PAGE:
                break
            elif stride and stride * n <= PAGE:
                length = max(length, stride * (n - 1) + length)
        return max(length, LINE)

    def occupied(self, outside: int, grain: int = LINE) -> float:
        """Bytes of a cache that are taken."""
        runs, length, _ = self.extents(outside, grain)
        return runs * max(grain, length)

    def may_crowd(self, outside: int) -> bool:
        """Whether it asks for several lines that may meet in one set of some cache."""
        return len(self.lines) > 1 if self._stays(outside) else self.extents(outside, LINE)[0] > 1

    def crowded(self, outside: int, capacity: float) -> float:
        """How many times what a set of a cache holds is asked of one: strides of powers of two meet in few sets."""
        if not self._stays(outside):
            runs, _, distance = self.extents(outside, LINE)
            step = int(distance)
            return runs * min(step & -step, capacity / _WAYS, _CONTIGUOUS) / capacity if runs > 1 else 0.0
        way = min(int(capacity / _WAYS), _CONTIGUOUS)
        meeting = Counter(line % max(way // LINE, 1) for line in self.lines)
        most = max(meeting.values())
        return most * way / capacity if most > 1 else 0.0

    def _stays(self, outside: int) -> bool:
        return not any(s and n > 1 for s, n in zip(self.strides[outside:], self.trips[outside:], strict=True))


_stream = lru_cache(1 << 12)(_Stream)


@dataclass
class _Inside:
    """What a region and those inside it touch; `filled` is by the grain, and what `crowds` may do so in some cache."""

    own: list[_Stream]
    streams: list[_Stream]
    crowds: list[_Stream]
    filled: dict[int, float] = field(default_factory=dict)
    pressures: dict[tuple[float, int], float] = field(default_factory=dict)


class Footprint:
    """Lines touched in the regions of a kernel, for caches of any size.

    `store_moves` of its methods is how often a line is moved that is stored to: twice where caches fetch it first.
    """

    def __init__(self, root: Region, space: str = "global") -> None:
        self.root, self.space = root, space
        self._inside: dict[int, _Inside] = {}
        self._add(root)

    def _add(self, region: Region) -> list[_Stream]:
        own = list(_streams(region, self.space))
        streams = [*own, *(stream for child in region.children for stream in self._add(child))]
        depth = len(region.path)
        self._inside[id(region)] = _Inside(own, streams, [s for s in streams if s.may_crowd(depth)])
        return streams

    def pressure(self, region: Region, capacity: float, grain: int = LINE) -> float:
        """How many times what a cache holds one step of a region's loop touches; up to 1 it keeps all of that."""
        known = self._inside[id(region)].pressures
        if (found := known.get((capacity, grain))) is None:
            found = known[capacity, grain] = self._pressure(region, capacity, grain)
        return found

    def _pressure(self, region: Region, capacity: float, grain: int) -> float:
        depth, inside = len(region.path), self._inside[id(region)]
        if grain not in inside.filled:
            inside.filled[grain] = sum([s.occupied(depth, grain) for s in inside.streams])
        filled = inside.filled[grain] / (capacity * _FREE)
        if grain == PAGE or not inside.crowds:
            return filled
        # arrays begin in the same sets, and are walked side by side
        together: defaultdict[tuple[float, ...], float] = defaultdict(float)
        for s in inside.crowds:
            together[s.strides] += s.crowded(depth, capacity)
        return max(filled, *together.values())

    def size(self, store_moves: float = 1.0) -> float:
        """Bytes that the kernel touches."""
        return sum([s.touched(0, store_moves, LINE).lines for s in self._inside[id(self.root)].streams]) * LINE

    def fetched(self, capacity: float, grain: int = LINE, store_moves: float = 1.0) -> Touched:
        """The lines that come from beyond a cache of some bytes; with another grain, pages.

        While one step of a loop fits, what its steps share is fetched once; where it does not, each step
        fetches anew.
        """
        return self._fetched(self.root, capacity, grain, store_moves)

    def _fetched(self, region: Region, capacity: float, grain: int, moves: float) -> Touched:
        depth, inside = max(len(region.path) - 1, 0), self._inside[id(region)]
        pressure, streamed, strided = self.pressure(region, capacity, grain), 0.0, 0.0
        if pressure <= 1:
            for s in inside.streams:
                found = s.touched(depth, moves, grain)
                streamed, strided = streamed + found.streamed, strided + found.strided
            return Touched(streamed, strided)
        again = [s.touched_again(pressure, moves, grain) for s in inside.own]
        for found in (*again, *(self._fetched(child, capacity, grain, moves) for child in region.children)):
            streamed, strided = streamed + found.streamed, strided + found.strided
        return Touched(streamed * region.trips, strided * region.trips)


@kept_with
def footprint_of(kernel: Kernel) -> Footprint:
    """Of the regions of a kernel: found once, for estimates and features."""
    return Footprint(analyse(kernel))


def _streams(region: Region, space: str) -> Iterator[_Stream]:
    groups: defaultdict[object, list[Access]] = defaultdict(list)
    trips = tuple([loop.trips for loop in region.path])
    for access in region.accesses:
        if access.space == space:
            groups[access.kind, access.buffer, access.strides, access.irregular].append(access)
    for accesses in groups.values():
        first = accesses[0]
        size = first.element_bytes
        yield _stream(
            tuple([s * size for s in first.strides]),
            trips,
            tuple([start * size for access in accesses for start in access.starts]),
            max([access.bytes for access in accesses]),
            first.irregular,
            first.kind == "store",
        )
