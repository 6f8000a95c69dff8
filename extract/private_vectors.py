"""What a kernel does where its compiler keeps private places in vector registers, as LLVM does for CPUs.

Accumulators are single variables in a kernel's text. Where a vector is put together from them, and its lanes are stored
to them again, they are the lanes of one register, and nothing is moved.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from lift_egraph.extract.accesses import Region


def in_private_vectors(root: Region) -> Region:
    """The regions of a kernel with the places that are the lanes of a vector as that vector; it is one chain."""
    if not root.lane_of:
        return root
    held: defaultdict[str, int] = defaultdict(int)
    for place, size in root.held.items():
        held[root.lane_of.get(place, place)] += size
    chains: dict[str, list[str]] = {}
    for place, chain in root.chains.items():
        chains.setdefault(root.lane_of.get(place, place), chain)
    return replace(
        root,
        shuffles=root.shuffles - sum(place in root.lane_of for place in root.packing),
        held=dict(held),
        chains=chains,
        begun={root.lane_of.get(place, place) for place in root.begun},
        packing=[],
        lane_of={},
        children=[in_private_vectors(child) for child in root.children],
    )
