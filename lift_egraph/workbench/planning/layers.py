"""Plans for layers of convolutions on CPUs: a work-item sums some filters of a strip of windows, in registers.

Windows side by side are lanes of vectors, which overlapping windows read where they lie: in a copy with borders, if
there are any. In each step a few vectors and as many numbers of the filters serve all sums.

Source: Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures", SC 2018.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.types import array
from lift_egraph.workbench.planning.plan import SPARE, Nest, Plan, Step, length_of, plan_of
from lift_egraph.workbench.planning.products import product_of


def layers(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plan for a layer of convolutions, with as many sums for each number that is read as registers hold."""
    factors, rows, columns = product_of(nest), length_of(nest.rows), length_of(nest.maps[-1])
    if not (factors and factors.views and any(isinstance(part, ir.Slide) for part in _parts(nest))):
        return
    fitting: list[tuple[float, dict[str, int]]] = []
    for width in [w for w in device.widths if columns % w == 0]:
        parts, share = max(1, width // device.lanes), min(width / device.lanes, 1.0)
        for held in range(parts, device.registers - SPARE + 1, parts):
            for block in range(2, (device.registers - SPARE) // held + 1):
                vectors = held // parts
                divides = rows % block == 0 and block < rows and columns // width % vectors == 0
                if divides and vectors not in (width, block):  # sketches tell loops by their lengths
                    numbers = {"block": block, "vectors": vectors, "width": width}
                    fitting.append((share * block * held / (block + held), numbers))
    if fitting:
        yield plan_of(_in_strips, nest, (), **max(fitting, key=itemgetter(0))[1])


def _parts(nest: Nest) -> Iterator[ir.Part]:
    """What the views of the windows are made of."""
    for xs in nest.maps[1:]:
        yield from ir.subterms(xs)


def _in_strips(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Sums of a `block` of filters and of some `vectors` of a `width`."""
    block, vectors, width = (numbers[name] for name in ("block", "vectors", "width"))
    rows, columns, strip = length_of(nest.rows), length_of(nest.maps[-1]), vectors * width

    def in_strips(inner: sk.Sketch) -> sk.Sketch:
        return sk.map_(sk.contains(inner), sk.split(strip)) if strip < columns else inner

    def in_blocks(inner: sk.Sketch) -> sk.Sketch:
        each_row = sk.contains(sk.map_(sk.contains(inner)))
        return sk.contains(sk.map_(each_row, sk.split(block), length=rows // block))

    stored = Step("borders", sk.let(sk.to_memory("global"), sk.contains(sk.map_(length=rows))), {})
    element = sk.ANY if vectors > 1 else sk.map_(sk.map_(length=block))
    sum_of_block = sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length)
    of_block = sk.map_(sk.contains(sk.of_type(array(nest.result, block), sum_of_block)))
    blocking = Step("blocking", in_blocks(of_block), {rows: (block,)})
    tiling = Step("tiling", in_blocks(in_strips(of_block)), {columns: (strip,)})
    elements = sk.map_(sk.map_(length=vectors))
    sums = sk.of_type(array(nest.result, vectors, block), sk.reduce_(sk.ANY, sk.ANY, elements, length=nest.length))
    lanes = sk.map_(sk.contains(sums), sk.transpose(sk.split(width)), length=width)
    across = Step("columns", in_blocks(in_strips(lanes)), {strip: (vectors,)}, (width,))
    chosen = (
        (stored, any(isinstance(part, ir.Pad) for part in _parts(nest))),
        (blocking, True),
        (tiling, strip < columns),
        (across, vectors > 1),
    )
    return Plan(tuple(step for step, is_needed in chosen if is_needed), (width,))
