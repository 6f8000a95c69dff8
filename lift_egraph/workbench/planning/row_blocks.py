"""Plans for rows times a vector on devices whose work-items do much work each: several rows at a time.

Each row of a block has partial sums in the lanes of a vector. What is loaded of the vector that all rows are multiplied
by serves the whole block, and as many sums do not wait for each other; work-items are fewer by as much.
What else is computed of the sum of a row, as `alpha * s + beta * y`, is a map of its own over those of a block.

Source: Goto and van de Geijn, "High-performance implementation of the level-3 BLAS", TOMS 2008, on register blocks;
the kernels of OpenBLAS for products of a matrix and a vector take four rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.types import array
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of, plan_of
from lift_egraph.workbench.planning.trees import in_strides


def row_blocks(nest: Nest, width: int, blocks: Iterable[int]) -> Iterator[Plan]:
    """Sums of products of each row with one vector, in vectors of a width, by the first of some blocks that fits."""
    if len(nest.maps) != 1 or isinstance(nest.maps[0], ir.Transpose) or _vector(nest) is None:
        return
    rows, own = length_of(nest.maps[0]), nest.length // width
    for block in [b for b in blocks if rows % b == 0 and b < rows and len({b, width, own, rows // b}) == 4][:1]:
        if nest.length % width == 0 and own > 1:  # sketches tell loops by their lengths
            yield plan_of(_in_blocks, nest, block=block, width=width)


def _vector(nest: Nest) -> ir.Expr | None:
    """What each row is multiplied by, the same for all; None where there is no such."""
    match nest.array:
        case ir.Map(array=ir.Zip(first=ir.Var() as row, second=vector)) if (
            row in nest.bound[0] and not ir.free_variables(vector) & nest.bound[0]
        ):
            return vector
    return None


def _in_blocks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial sums in vectors of a `width`, of a `block` of rows at a time."""
    block, width = numbers["block"], numbers["width"]
    rows, own = length_of(nest.maps[0]), nest.length // width

    def in_blocks(inner: sk.Sketch) -> sk.Sketch:
        """Blocks of rows, each of which ends with the sums of its lanes."""
        sums = sk.contains(sk.reduce_(sk.ANY, sk.ANY, inner, length=width))
        return sk.contains(sk.map_(sums, sk.split(block), length=rows // block))

    vector = _vector(nest)
    known = sk.input_(vector.name) if isinstance(vector, ir.Input) else sk.ANY
    share = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.zip_()), length=own)
    of_rows = sk.contains(sk.map_(sk.contains(share), length=block))
    by_lanes = sk.map_(of_rows, sk.zip_(sk.ANY, sk.transpose(sk.split(width, known))), length=width)
    together = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(length=block)), length=own)
    held = sk.contains(sk.of_type(array(nest.result, block), together))
    vectors = sk.as_scalar(sk.map_(sk.vectorize(width, held), sk.as_vector(width)))
    sums = sk.contains(sk.map_(sk.reduce_(length=width), length=block))
    apart = Step("blocking", sk.contains(sk.map_(sums, sk.split(block), length=rows // block)), {})
    steps = (
        in_strides(nest, width),
        Step("tiling", sk.contains(sk.map_(sk.contains(sk.map_(length=block)), sk.split(block))), {rows: (block,)}),
        *(() if nest.is_whole else (apart,)),
        Step("column_sums", in_blocks(by_lanes), {block: (block,)}),
        Step("blocking", in_blocks(sk.map_(held, length=width)), {}),
        Step("item_vectors", in_blocks(vectors), {}, (width,)),
    )
    return Plan(steps, ())
