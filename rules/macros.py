"""Macro rules: optimisations as named compositions of phases and sketches.

A macro rule names the few small rules that an optimisation needs and sketches the program that it leads to. It
never rewrites by itself: the program that it yields was derived by the small rules in an e-graph, so it is as
right as they are, and it applies wherever they find a way to the sketch. Macros compose with ``+``.

>>> both = tiling((64, 32), (8, 4)) + reduce_outwards((64, 32), (8, 4), 16)
>>> print(both)
tiling, then reduce outwards: map (map f) in blocks, the sum of blocks outermost
>>> print(both.stages[0].sketch)
contains(join(map 8 (map (join, transpose(map 8 (map 8 (map 4)))))))

Source: 000 §5.5 and §7.2.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lift_egraph.dsl import Rule
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.errors import SizeProblem
from lift_egraph.guided.matcher import Weigh, term_size
from lift_egraph.guided.sketch import (
    ANY,
    Contains,
    PatternSketch,
    Sketch,
    as_scalar,
    as_vector,
    call,
    join,
    map_,
    map_level,
    nest,
    reduce_,
    slide,
    split,
    to_memory,
    transpose,
    vectorize,
    zip_,
)
from lift_egraph.guided.stages import Guided, Reached, Stage, guide
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.rules.fusion import map_fission, map_fusion, map_fusion_of_pattern
from lift_egraph.rules.interchange import interchange_rules, map_map_interchange, map_map_on_matrix
from lift_egraph.rules.movement import map_map_of_transpose, map_of_join, slide_of_map, slide_of_transpose
from lift_egraph.rules.opencl_memory import stage_block_in_local, stage_in_local
from lift_egraph.rules.opencl_parallel import map_to_lcl0, map_to_lcl1, map_to_seq, map_to_wrg0, map_to_wrg1
from lift_egraph.rules.opencl_vector import vectorise_map
from lift_egraph.rules.reduction import loop_rules, operator_rules, partial_reduce
from lift_egraph.rules.simplification import simplification_rules
from lift_egraph.rules.split_join import split_join, split_of_map, split_of_zip, zip_takes_names
from lift_egraph.rules.stencil import apply_slide, map_of_slide, slide_tiling

SIMPLIFICATION = simplification_rules + operator_rules
LIMITS = Limits(iterations=10, nodes=100_000, seconds=30.0)


@dataclass(frozen=True)
class Macro:
    """A named composition of phases and sketches.

    Attributes
    ----------
    law
        What it does, in mathematics or a phrase.
    stages
        The phases, each with the sketch that ends it.
    """

    name: str
    law: str
    stages: tuple[Stage, ...]

    def __add__(self, other: Macro) -> Macro:
        """This macro, then the other on its result."""
        return Macro(f"{self.name}, then {other.name}", f"{self.law}, {other.law}", self.stages + other.stages)

    def __call__(self, term: ir.Expr, *, on_iteration: Callable[[Reached], None] = lambda reached: None) -> Guided:
        """The stages on a term of concrete sizes; the result says whether the last sketch was reached."""
        return guide(term, self.stages, on_iteration=on_iteration)

    def __str__(self) -> str:
        return f"{self.name}: {self.law}"


def stage(
    name: str,
    rules: tuple[Rule, ...],
    sketch: Sketch,
    *,
    tiles: dict[int, tuple[int, ...]] | None = None,
    widths: tuple[int, ...] = (),
    staging: tuple[str, ...] = (),
    limits: Limits = LIMITS,
    weigh: Weigh = term_size,
) -> Stage:
    """A stage with the usual simplification and limits.

    Parameters
    ----------
    name, rules, tiles, widths, staging, limits
        Those of its `lift_egraph.egraph.saturate.Phase`.
    sketch
        What ends it.
    weigh
        Which term that satisfies the sketch the next stage starts from: the cheapest by this.
    """
    return Stage(Phase(name, rules, SIMPLIFICATION, tiles or {}, widths, limits, staging), sketch, weigh)


# --- tiling and register blocking ------------------------------------------------------------------------

SPLITTING = (split_join, map_fission, map_map_interchange)


def untiled(
    counts: tuple[int, int],
    block: Sketch,
    *,
    outer: Callable[..., PatternSketch] = map_,
    inner: Callable[..., PatternSketch] = map_,
) -> Sketch:
    """A matrix put together from blocks: ``join (map (map join ∘ transpose ∘ map block) …)``."""
    return join(outer(map_(join(), transpose(inner(block, length=counts[1]))), length=counts[0]))


def tiling(sizes: tuple[int, int], tile: tuple[int, int]) -> Macro:
    """Two nested maps in blocks of rows and columns (000 §5.5.2).

    The sketch: rows of blocks joined, each of them blocks joined side by side, each two maps of a block's lengths.

    Parameters
    ----------
    sizes, tile
        The lengths of the outer and of the inner map, and of a block in each.
    """
    sketch = _blocks(sizes, tile, ANY)
    tiles = chunk_facts(sizes, tile)
    return Macro("tiling", "map (map f) in blocks", (stage("tile", SPLITTING, Contains(sketch), tiles=tiles),))


def tiling_on_grid(lengths: tuple[int, ...], tile: int, body: Sketch) -> Macro:
    """Maps over all dimensions of one array in blocks, for any number of dimensions (000 Figure 5.10 has two).

    First every map is split; then each dimension's loop over blocks moves outwards past the loops inside the
    blocks of those before it, one sketch for each dimension but the first.

    Parameters
    ----------
    lengths, tile
        The lengths of the array from outside to inside, and the one of a block in each dimension.
    body
        What the innermost map computes.
    """
    tiles = chunk_facts(lengths, (tile,) * len(lengths))
    counts = [n // tile for n in lengths]

    def loops(order: list[int]) -> Sketch:
        return nest(*(map_(length=n) for n in order), body)

    order = [n for count in counts for n in (count, tile)]
    stages = [stage("split", (split_join,), loops(order), tiles=tiles)]
    for done in range(1, len(counts)):
        order = [*counts[: done + 1], *(tile,) * (done + 1), *order[2 * done + 2 :]]
        stages.append(stage("reorder", (map_fission, map_map_on_matrix), loops(order)))
    return Macro("tiling", f"map f over {len(lengths)} dimensions in blocks", tuple(stages))


def reduce_outwards(sizes: tuple[int, int], tile: tuple[int, int], length: int) -> Macro:
    """In each block of a tiled product of rows and columns, the sum comes out of the maps (000 Figure 5.11).

    Then every element of a block's row and column is used for a whole block of partial results: two-dimensional
    register blocking. The sketch: blocks put together as in `tiling`, each a sum over the whole length of blocks of
    products.

    Parameters
    ----------
    sizes, tile
        The numbers of rows and columns, of all and of a block.
    length
        That of a row and of a column, which is summed over.
    """
    rows, columns = tile
    update = reduce_(ANY, ANY, map_(map_(map_(length=columns), length=rows), zip_()), length=length)
    sketch = Contains(untiled(_counts(sizes, tile), update))
    return Macro("reduce outwards", "the sum of blocks outermost", (stage("reorder", interchange_rules, sketch),))


def register_blocking_2d(sizes: tuple[int, int], tile: tuple[int, int], length: int) -> Macro:
    """Blocks of rows times blocks of columns, each of their elements read once a step (000 Figure 5.5c)."""
    return tiling(sizes, tile) + reduce_outwards(sizes, tile, length)


def register_blocking_1d(rows: int, block: int, length: int) -> Macro:
    """Blocks of rows: each element of a column is used for a whole block (000 Figure 5.5b).

    The first sketch: blocks of rows joined, each a map of the block's length with a sum inside. The second: the sum
    outside, of maps of the block's length.
    """
    update = reduce_(ANY, ANY, map_(map_(length=block), zip_()), length=length)
    blocked = join(map_(Contains(map_(map_(reduce_(length=length), length=block))), split(block), length=rows // block))
    reused = join(map_(Contains(map_(update)), split(block), length=rows // block))
    return Macro(
        "1D register blocking",
        "map (λr. map (λc. reduce …)) with a block of r for each element of c",
        (
            stage("tile", SPLITTING, Contains(blocked), tiles=chunk_facts((rows,), (block,))),
            stage("reorder", interchange_rules, Contains(reused)),
        ),
    )


def split_reduction(sizes: tuple[int, int], tile: tuple[int, int], length: int, chunk: int) -> Macro:
    """Tiling, with the sum in chunks: the tiles of both matrices in 000 Listing 5.23.

    The sketch: blocks put together as in `tiling`, whose elements are sums of the sums of chunks of products.
    """
    inner = reduce_(ANY, ANY, map_(call("mul"), zip_()), length=chunk)
    body = reduce_(ANY, ANY, map_(inner, zip_()), length=length // chunk)
    sketch = _blocks(sizes, tile, body)
    rules = (*SPLITTING, partial_reduce, split_of_map, split_of_zip, zip_takes_names, map_fusion)
    tiles = chunk_facts((*sizes, length), (*tile, chunk))
    return Macro("tiling with chunks", "map (map f) in blocks", (stage("split", rules, Contains(sketch), tiles=tiles),))


# --- vectors and memory ----------------------------------------------------------------------------------


def vectorised_loads(width: int) -> Macro:
    """A map reads vectors of consecutive elements (000 §5.4.3).

    The sketch: somewhere a vectorised map over an array as vectors, and back to scalars.
    """
    sketch = Contains(as_scalar(map_(vectorize(width), as_vector(width))))
    return Macro(
        "vectorised loads",
        "map f = asScalar ∘ map (vectorize w f) ∘ asVector w",
        (stage("vectorise", (vectorise_map,), sketch, widths=(width,)),),
    )


def local_memory_staging(chunk: int, length: int) -> Macro:
    """Work-groups of one chunk each, which first copy it to local memory (000 §5.3.1).

    The first sketch: work-groups over chunks, with work-items inside. The second: a work-group with a copy to local
    memory by its work-items.
    """
    rules = (split_join, map_to_wrg0, map_to_lcl0, map_to_seq)
    groups = map_level("mapWrg(0)", Contains(map_level("mapLcl(0)", length=chunk)), split(chunk))
    staged = map_level("mapWrg(0)", Contains(to_memory("local", map_level("mapLcl(0)", length=chunk))))
    return Macro(
        "local-memory staging",
        "map f = join ∘ mapWrg (λc. let c = toLocal (mapLcl id c) in mapLcl f c) ∘ split n",
        (
            stage("map to groups", rules, Contains(groups), tiles=chunk_facts((length,), (chunk,))),
            stage("stage", (stage_in_local,), Contains(staged), staging=("local",)),
        ),
    )


def overlapped_tiling(windows: int, tile: int, size: int, step: int = 1) -> Macro:
    """A stencil in overlapping tiles, each with all that its windows read.

    The sketch: tiles joined, each a map over the windows of a tile, the tiles being windows of the array themselves.

    Parameters
    ----------
    windows, tile
        The number of windows, and of those in a tile.
    size, step
        Of a window.
    """
    within = map_(ANY, slide(size, step), length=tile)
    sketch = join(map_(within, slide(size + (tile - 1) * step, tile * step), length=windows // tile))
    rules = (slide_tiling, map_of_join, map_fusion)
    return Macro(
        "overlapped tiling",
        "map f ∘ slide n s = join ∘ map (map f ∘ slide n s) ∘ slide (n + (k - 1)·s) (k·s)",
        (stage("tile", rules, Contains(sketch), tiles=chunk_facts((windows,), (tile,))),),
    )


def overlapped_tiling_2d(windows: tuple[int, int], tile: tuple[int, int], size: int, step: int = 1) -> Macro:
    """A stencil over a matrix in overlapping tiles, by the rule for one dimension (`slide_tiling`) twice.

    First the rows: the windows over the matrix become those over bands of rows. Then each band is turned, so that the
    windows over its columns come outermost: the sketch is a band whose windows are those over its transposition, and
    that are transposed back. Then the columns: a band's windows become those over its tiles.

    Parameters
    ----------
    windows, tile
        The numbers of rows and columns of windows, and of those in a tile.
    size, step
        Of a window, in both dimensions.
    """
    (rows, columns), (high, wide) = windows, tile
    bands, tiles = chunk_facts((rows,), (high,)), chunk_facts((columns,), (wide,))
    over_bands = slide(size + (high - 1) * step, high * step)
    over_tiles = slide(size + (wide - 1) * step, wide * step)
    in_bands = map_(ANY, map_(transpose(), slide(size, step, map_(slide(size, step))), length=high))
    turned = map_(map_(ANY, length=high), map_(slide(size, step), map_(transpose(), slide(size, step))))
    in_tiles = Contains(replace(turned, length=wide))
    turned = replace(turned, length=columns)
    tiled = join(map_(in_tiles, transpose(map_(over_tiles)), length=columns // wide))

    def result(band: Sketch) -> Sketch:
        return join(map_(band, over_bands, length=rows // high))

    fusion = (map_of_join, map_fusion, map_fusion_of_pattern, apply_slide)
    turning = (map_of_slide, slide_of_transpose, map_map_of_transpose)
    return Macro(
        "overlapped tiling in 2D",
        "map2d f ∘ slide2d n s = untile2d ∘ map2d (map2d f ∘ slide2d n s) ∘ slide2d (n + (k - 1)·s) (k·s)",
        (
            stage("tile rows", (slide_tiling, slide_of_map, *fusion), result(in_bands), tiles=bands),
            stage("turn", turning, result(transpose(turned))),
            stage("tile columns", (slide_tiling, slide_of_transpose, *fusion), result(transpose(tiled)), tiles=tiles),
        ),
    )


def local_tiles(dimensions: int, body: Sketch = ANY) -> Macro:
    """An overlapped tiling on work-groups, each of which first copies its tile to local memory (000 §5.3.1).

    First everything is lowered: tiles to work-groups, windows to work-items, and what is inside to loops. Then the
    sketch is a work-group that contains a copy to local memory by all its work-items.

    Parameters
    ----------
    dimensions
        How many dimensions are tiled, 1 or 2: what `overlapped_tiling` or `overlapped_tiling_2d` made.
    body
        What a work-item computes of a window.
    """
    if dimensions == 1:
        levels: tuple[Rule, ...] = (map_to_wrg0, map_to_lcl0)
        mapped = join(map_level("mapWrg(0)", map_level("mapLcl(0)", body)))
        copying, copy = stage_in_local, map_level("mapLcl(0)")
    else:
        levels = (map_to_wrg0, map_to_wrg1, map_to_lcl0, map_to_lcl1)
        block = map_level("mapLcl(0)", map_level("mapLcl(1)", body))
        mapped = join(map_level("mapWrg(1)", transpose(join(map_level("mapWrg(0)", Contains(block))))))
        copying, copy = stage_block_in_local, map_level("mapLcl(1)", map_level("mapLcl(0)"))
    copied = Contains(map_level("mapWrg(0)", Contains(to_memory("local", copy))))
    return Macro(
        "tiles in local memory",
        "map f = mapWrg (λt. let t = toLocal (mapLcl id t) in mapLcl f t)",
        (
            stage("map to groups", (*levels, map_to_seq, *loop_rules), mapped, weigh=lowered),
            stage("copy", (copying,), copied, staging=("local",)),
        ),
    )


def chunk_facts(sizes: tuple[int, ...], tile: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """The facts that let arrays of these lengths be split.

    Raises
    ------
    SizeProblem
        If a length is no multiple of its chunk.
    """
    found: dict[int, tuple[int, ...]] = {}
    for size, chunk in zip(sizes, tile, strict=True):
        if chunk < 1 or size % chunk:
            raise SizeProblem(f"blocks of {chunk} do not divide a length of {size}")
        if chunk not in found.get(size, ()):
            found[size] = (*found.get(size, ()), chunk)
    return found


def _counts(sizes: tuple[int, int], tile: tuple[int, int]) -> tuple[int, int]:
    chunk_facts(sizes, tile)
    return sizes[0] // tile[0], sizes[1] // tile[1]


def _blocks(sizes: tuple[int, int], tile: tuple[int, int], body: Sketch) -> Sketch:
    return untiled(_counts(sizes, tile), map_(map_(body, length=tile[1]), length=tile[0]))
