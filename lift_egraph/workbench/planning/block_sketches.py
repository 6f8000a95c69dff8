"""Sketches of blocks of results of a product, which work-items keep in registers: rows of columns, summed in lanes."""

from __future__ import annotations

from lift_egraph.guided import sketch as sk


def block_of(tall: int, broad: int) -> sk.Sketch:
    """A block of `tall` rows and `broad` columns."""
    return sk.map_(sk.map_(length=broad), length=tall)


def sums_of(block: sk.Sketch, length: int) -> sk.Sketch:
    """A block as the sum of as many blocks of products."""
    return sk.reduce_(sk.ANY, sk.ANY, sk.map_(block, sk.zip_()), length=length)


def item_in_lanes(tall: int, broad: int, width: int, length: int) -> sk.Sketch:
    """The loop of a work-item over what its block sums up, whose rows are in vectors of a `width`."""
    row = sk.contains(sk.map_seq(sk.vectorize(width), length=broad // width))
    return sk.reduce_seq(sk.contains(sk.map_seq(row, length=tall)), length=length)
