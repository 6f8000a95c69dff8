"""In how many chunks long rows are taken on a device, and how long these are."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from lift_egraph.codegen.devices import Device, Gpu
from lift_egraph.workbench.changes.chunked import EVEN
from lift_egraph.workbench.planning.plan import LONG

RUN = 32  # the fewest elements of a chunk
SET = 512  # elements after which lines fall into the same set of a cache again


@dataclass(frozen=True)
class Rows:
    """How long rows are taken apart on a device."""

    device: Device

    def chunks(self, rows: int, length: int, in_lanes: bool) -> int | None:
        """The chunks of each of so many rows; None where there are rows enough, or they are too short.

        Parameters
        ----------
        in_lanes
            Whether lanes of vectors, or of a warp, have a chunk each; else neighbouring elements, so that only rows
            that take long need chunks.
        """
        device = self.device
        if not in_lanes and length < LONG:
            return None
        if not in_lanes and device.has_groups:
            return self.for_groups(rows, length)
        own = device.throughput.warp if isinstance(device.throughput, Gpu) else device.lanes
        lanes = own if in_lanes else 1
        if rows >= device.compute_units * max(lanes, 2):
            return None
        wanted = lanes * max(device.groups // rows, 1)
        if device.has_groups:
            wanted = min(wanted, max(isqrt(length) // lanes, 1) * lanes)
        while wanted > lanes and length // wanted < RUN:
            wanted -= lanes
        return wanted if length // wanted >= RUN else None

    def for_groups(self, rows: int, length: int) -> int | None:
        """The chunks of each row that groups share, where there are fewer rows than groups run at once: those of about
        as many as there are groups to begin with that leave the shortest rest to one work-item.

        A work-item has more, or fewer, elements of a chunk than there are items: plans tell these by their lengths.
        """
        items = self.device.group_sizes[0]
        wanted, in_steps = self.device.groups // rows, length // items
        if rows >= self.device.compute_units:
            return None
        counts = range(max(wanted // 2, 2), min(max(2 * wanted, 4), in_steps // 2) + 1)
        told_apart = (n for n in counts if in_steps // n != items)
        return min(told_apart, key=lambda n: (in_steps % n, abs(n - wanted)), default=None)

    def chunk(self, n: int, chunks: int, in_lanes: bool) -> int:
        """The length of so many chunks of n elements that are reduced: on a GPU what the items of a group divide."""
        items = 1 if in_lanes else self.device.group_sizes[0]
        return n // chunks // items * items if self.device.has_groups else chunk_of(n, chunks, in_lanes)

    def aside(self, rows: int, length: int) -> int | None:
        """The same where neighbouring elements of a chunk are folded beside each other, each for itself."""
        device = self.device
        if length < LONG or rows >= device.compute_units * max(device.lanes, 2):
            return None
        return max(device.groups // rows, 2)


def chunk_of(n: int, chunks: int, in_lanes: bool) -> int:
    """The length of so many chunks of n elements: what vectors divide, where the rest is short all the same.

    The lanes of a vector read chunks that do not begin in the same set of a cache's lines.
    """
    chunk = n // chunks
    if chunk <= EVEN * chunks:
        return chunk
    return chunk - EVEN if in_lanes and chunk % SET == 0 else chunk - chunk % EVEN
