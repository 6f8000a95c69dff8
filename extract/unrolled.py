"""What one step of a loop does with all steps of the loops in it that a compiler unrolls: these are no loops then."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lift_egraph.extract.accesses import Access, Region

MOST_UNROLLED = 256  # operations of one step: LLVM unrolls no more by itself


def in_one_step(region: Region) -> Region | None:
    """The region without inner loops; none if some of them stay, or too much would be in one step."""
    return _whole(region) if _operations(region) <= MOST_UNROLLED else None


def _operations(region: Region) -> float:
    """Those of one step; without end where a loop stays."""
    done = float(region.operated)
    for child in region.children:
        if child.loop is None or not child.loop.is_unrolled:
            return float("inf")
        done += child.trips * _operations(child)
    return done


def _whole(region: Region) -> Region:
    operations, accesses, held, begun = Counter(region.operations), [*region.accesses], {**region.held}, {*region.begun}
    chains = {place: [*chain] for place, chain in region.chains.items()}
    shuffles, index_work, bent = region.shuffles, region.index_work, region.bent
    for child in map(_whole, region.children):
        times = child.trips
        operations.update({operated: times * number for operated, number in child.operations.items()})
        accesses += [_in_steps(access, times) for access in child.accesses]
        for place, chain in child.chains.items():
            chains.setdefault(place, []).extend(chain if place in child.begun else times * chain)
        begun |= child.begun.difference(held)
        held |= child.held
        shuffles, index_work = shuffles + times * child.shuffles, index_work + times * child.index_work
        bent |= child.bent
    return replace(
        region,
        operations=operations,
        accesses=accesses,
        order=[],
        shuffles=shuffles,
        index_work=index_work,
        bent=bent,
        chains=chains,
        begun=begun,
        held=held,
        children=[],
    )


def _in_steps(access: Access, times: int) -> Access:
    """The accesses of all steps of the innermost loop around them."""
    *strides, own = access.strides
    starts = [start + own * step for start in access.starts for step in range(times)]
    return access._replace(strides=tuple(strides), starts=starts)
