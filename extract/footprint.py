"""Which memory a loop nest touches, and which level of the caches has to deliver it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from lift_egraph.extract.accesses import Access, Region

LINE, PAGE = 64, 4096
_FREE = 0.9  # the part of a cache that a loop can count on
_CONTIGUOUS = 16 * PAGE  # of memory lies side by side in the machine's as a rule
_WAYS = 8  # lines, or pages, of the same set that a cache holds
_UNFORESEEN = 1.0  # lines of a walk that no prefetcher brings
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


P = ParamSpec("P")
R = TypeVar("R")


def _kept(method: Callable[Concatenate[_Stream, P], R]) -> Callable[Concatenate[_Stream, P], R]:
    """The method, which computes the same once for a stream: caches of all sizes ask for it."""

    @wraps(method)
    def found(self: _Stream, *args: P.args, **kwargs: P.kwargs) -> R:
        known: dict[Hashable, R] = vars(self).setdefault(f"_{method.__name__}", {})
        if (key := (args, *kwargs.items())) not in known:
            known[key] = method(self, *args, **kwargs)
        return known[key]

    return found


@dataclass(frozen=True)
class _Stream:
    """Accesses that differ only by constants: one buffer, equal strides (bytes) in equally many loops."""

    strides: tuple[float, ...]
    starts: tuple[float, ...]
    width: int
    irregular: bool
    moves: float  # of a line, each time that it is touched

    @_kept
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

    @_kept
    def touched(self, trips: tuple[int, ...], outside: int, grain: int = LINE) -> Touched:
        runs, length, _ = self.extents(trips, outside, grain)
        count = runs * max(1.0, length / grain) * self.moves
        foreseen = 0.0 if self.is_strided(trips) else max(0.0, 1 - _UNFORESEEN * LINE / self.walked(trips))
        return Touched(count * foreseen, count * (1 - foreseen))

    def touched_again(self, trips: tuple[int, ...], pressure: float, grain: int = LINE) -> Touched:
        """In each step of a loop that asks a cache for so many times what it holds."""
        found = self.touched(trips, len(trips), grain)
        is_same = bool(self.strides) and abs(self.strides[-1]) < grain  # no prefetcher brings a line that was there
        return Touched(strided=found.lines * (1 - 1 / pressure)) if is_same else found

    def is_strided(self, trips: tuple[int, ...]) -> bool:
        """Whether the innermost loop that moves the address leaps, over more lines than a prefetcher follows."""
        inner = ((abs(s), n) for s, n in zip(reversed(self.strides), reversed(trips), strict=True) if s and n > 1)
        stride, count = next(inner, (0.0, 1))
        between = stride - LINE * len({start // LINE for start in self.starts})
        return self.irregular or (between >= LINE and count > _FOLLOWED)

    def walked(self, trips: tuple[int, ...]) -> float:
        """Bytes that are walked over one after the other, beside the leaps that a prefetcher follows."""
        length = float(self.width)
        for s, n in zip(reversed(self.strides), reversed(trips), strict=True):
            stride = abs(s)
            if stride and n > 1 and stride <= max(length, LINE * len({start // LINE for start in self.starts})):
                length = max(length, stride * (n - 1) + length)
            elif stride and n > _FOLLOWED:
                break
        return max(length, LINE)

    def occupied(self, trips: tuple[int, ...], outside: int, grain: int = LINE) -> float:
        """Bytes of a cache that are taken."""
        runs, length, _ = self.extents(trips, outside, grain)
        return runs * max(grain, length)

    def crowded(self, trips: tuple[int, ...], outside: int, capacity: float) -> float:
        """How many times what a set of a cache holds is asked of one: strides of powers of two meet in few sets."""
        if any(s and n > 1 for s, n in zip(self.strides[outside:], trips[outside:], strict=True)):
            runs, _, distance = self.extents(trips, outside, LINE)
            step = int(distance)
            return runs * min(step & -step, capacity / _WAYS, _CONTIGUOUS) / capacity if runs > 1 else 0.0
        way = min(int(capacity / _WAYS), _CONTIGUOUS)
        meeting = Counter(line % max(way // LINE, 1) for line in {int(start // LINE) for start in self.starts})
        most = max(meeting.values())
        return most * way / capacity if most > 1 else 0.0


class Footprint:
    """Lines touched in the regions of a kernel, for caches of any size.

    Parameters
    ----------
    store_moves
        How often a line is moved that is stored to: twice where caches fetch it first.
    """

    def __init__(self, root: Region, space: str = "global", store_moves: float = 1.0) -> None:
        self.root = root
        self._own = {id(region): _own(region, space, store_moves) for region, _ in root.walk()}
        self._inside: dict[int, list[tuple[_Stream, tuple[int, ...]]]] = {}
        self._pressures: dict[tuple[int, float, int], float] = {}

    def pressure(self, region: Region, capacity: float, grain: int = LINE) -> float:
        """How many times what a cache holds one step of a region's loop touches; up to 1 it keeps all of that."""
        key = id(region), capacity, grain
        if key not in self._pressures:
            self._pressures[key] = self._pressure(region, capacity, grain)
        return self._pressures[key]

    def _pressure(self, region: Region, capacity: float, grain: int) -> float:
        depth, streams = len(region.path), self._all(region)
        filled = sum(s.occupied(trips, depth, grain) for s, trips in streams) / (capacity * _FREE)
        if grain == PAGE:
            return filled
        # arrays begin in the same sets, and are walked side by side
        together: defaultdict[tuple[float, ...], float] = defaultdict(float)
        for s, trips in streams:
            together[s.strides] += s.crowded(trips, depth, capacity)
        return max(filled, *together.values(), 0.0)

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
        pressure = self.pressure(region, capacity, grain)
        if pressure <= 1:
            return sum((s.touched(trips, depth, grain) for s, trips in self._all(region)), Touched())
        own = sum((s.touched_again(trips, pressure, grain) for s, trips in self._own[id(region)]), Touched())
        return sum((self._fetched(child, capacity, grain) for child in region.children), own) * region.trips

    def _all(self, region: Region) -> list[tuple[_Stream, tuple[int, ...]]]:
        if id(region) not in self._inside:
            found = self._own[id(region)]
            for child in region.children:
                found = found + self._all(child)
            self._inside[id(region)] = found
        return self._inside[id(region)]


def _own(region: Region, space: str, moves: float) -> list[tuple[_Stream, tuple[int, ...]]]:
    """The streams of a region without those inside it, with the trips of the loops around."""
    trips = tuple(loop.trips for loop in region.path)
    return [(stream, trips) for stream in _streams(region, space, moves)]


def _streams(region: Region, space: str, moves: float) -> Iterator[_Stream]:
    groups: dict[object, list[Access]] = defaultdict(list)
    for access in region.accesses:
        if access.space == space:
            groups[access.kind, access.buffer, access.strides, access.irregular].append(access)
    for accesses in groups.values():
        first = accesses[0]
        size = first.element_bytes
        yield _Stream(
            tuple(s * size for s in first.strides),
            tuple(a.start * size for a in accesses),
            max(a.bytes for a in accesses),
            first.irregular,
            moves if first.kind == "store" else 1.0,
        )
