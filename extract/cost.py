"""The structural cost: what extraction minimises inside e-graphs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import PRIVATE_LIMIT
from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.kbest import Rating
from lift_egraph.extract.shapes import COMPUTATION, LAYOUT, Shape, is_open, nested, outer, together
from lift_egraph.language import ir
from lift_egraph.language.types import Array, DataType, Pair, Scalar, Vector


class Shaped(NamedTuple):
    """A `Rating` with such a shape."""

    cost: float
    shape: Shape
    layout: int = 0


Parts = tuple[Shaped, ...]
LAYOUT_NODES = frozenset(
    ("app", "transpose", "join", "split", "zip_", "slice_", "concat", "map_", "gather", "scatter", "slide", "pad",
     "as_vector", "as_scalar", "component", "make_pair", "Fn_map", "Fn_join", "Fn_transpose", "Fn_split", "Fn_zip")
)  # fmt: skip
RANGE = 16  # elements of a range whose ends are computed: rows of sparse matrices are short
CALLS = {  # all functions of floats; other operations cost 1
    "sqrt": 8, "rsqrt": 8, "div": 8, "exp": 16, "log": 16, "sin": 16, "cos": 16, "tan": 20, "tanh": 20, "pow": 30,
    "asin": 16, "acos": 16, "atan": 16, "atan2": 24, "sinh": 20, "cosh": 20, "erf": 20, "floor": 1, "ceil": 1, "dot": 4,
}  # fmt: skip
_SCOPE = 16  # patterns that only rearrange data, which an operation in the scope of a number's name counts as …
_NO_LOOP = 256  # … in expressions up to this cost: there are loops in others


def element_count(t: DataType | None) -> int:
    """The number of scalars or vectors in a value of a type; 1 for one that no analysis reached."""
    if isinstance(t, Array):
        return (t.size.constant or 1) * element_count(t.element)
    if isinstance(t, Pair):
        return element_count(t.first) + element_count(t.second)
    return 1


def _largest_part(t: DataType | None) -> int:
    """The elements of the largest array that holds a component of the values of a type."""
    if isinstance(t, Array):
        return (t.size.constant or 1) * _largest_part(t.element)
    return max(_largest_part(t.first), _largest_part(t.second)) if isinstance(t, Pair) else 1


def data_leaves(t: DataType) -> int:
    """The number of scalar or vector components that are loaded when a variable of this type is bound."""
    if isinstance(t, Array):
        return 0
    if isinstance(t, Pair):
        return data_leaves(t.first) + data_leaves(t.second)
    return 1


@dataclass(frozen=True)
class StructuralCost:
    """Operations, loads and stores counted bottom-up, weighted by trip counts.

    A load is charged where a variable of scalar or vector type is bound, so a value that is bound outside
    a loop and used inside is loaded once: register reuse shows. The cost of a parallel map is divided by
    the units that share it. Strides and caches are not visible here; the analytical model ranks by those.

    Parameters
    ----------
    units
        How many work-items run at once.
    items
        How many of these are in one group.
    registers
        How many scalars an accumulator may have before its updates are charged as memory traffic.
    private
        How many scalars or vectors the accumulator of a loop may have.
    lowered
        Whether only low-level terms may be extracted.
    load, store
        What an element of memory costs that is read or written, in additions; so are the others.
    materialise
        An element of an array that is computed, written and read again.
    overhead
        A turn of a loop, or an element of a map.
    launch
        A kernel.
    apart
        What each work-item of a group has for itself, so that no other can read it.
    shared_ranges
        Whether the lanes of vectors may share loops whose length is computed.
    alone
        Whether one work-item may compute a whole low-level term.
    """

    units: int = 1
    items: int = 1
    registers: int = 64
    private: int = 256
    lowered: bool = False
    load: float = 1.0
    store: float = 1.0
    materialise: float = 8.0
    overhead: float = 0.3
    launch: float = 5e4
    apart: float = 1.0
    shared_ranges: bool = False
    alone: bool = False

    def on(self, device: Device) -> StructuralCost:
        """The cost of low-level terms, with as many work-items at once as the device runs well."""
        items = min(device.group_sizes, default=1)
        return replace(self, units=device.compute_units * items, items=items, lowered=True)

    def accepts(self, shape: Hashable) -> bool:
        """Low-level terms must be parallel, unless one work-item may compute them; high-level ones may be anything."""
        assert isinstance(shape, Shape)
        return not self.lowered or (bool(self.alone or shape.levels or shape.host) and not is_open(shape))

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        """See `CostModel.rate`."""
        handler = _HANDLERS.get(node.op)
        if handler is None:
            rating = Rating(sum([p.cost for p in parts]), together(tuple([p.shape for p in parts]), LAYOUT))
        else:
            rating = handler(self, graph, owner, node, cast("Parts", parts))
            if rating is None:
                return None
        layout = sum([p.layout for p in parts]) + (node.op in LAYOUT_NODES)
        if node.op == "app":
            layout += _scope(graph, owner, node, parts[0].cost)
        return Rating(rating.cost, rating.shape, layout) if layout else rating

    def _intermediate(self, graph: FrozenEGraph, array: ClassId, shape: Shape) -> float:
        """The traffic of an array that is computed, written and read again."""
        t = graph.type_of(array)
        return self.materialise * element_count(t) if shape.computes and isinstance(t, Array) else 0.0

    def _length(self, graph: FrozenEGraph, array: ClassId) -> int:
        t = graph.type_of(array)
        return (t.size.constant or 1) if isinstance(t, Array) else 1

    def _bound(self, graph: FrozenEGraph, f: ClassId) -> float:
        t = graph.domain(f)
        return 0.0 if t is None else self.load * data_leaves(t)

    def _call(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating:
        cost = CALLS.get(str(node.children[0]), 1)
        return Rating(sum(p.cost for p in parts) + cost, together(tuple([p.shape for p in parts]), COMPUTATION))

    def _combine(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        if self.lowered:
            return None
        cost = sum(p.cost for p in parts) + element_count(graph.type_of(owner))
        return Rating(cost, together(tuple([p.shape for p in parts]), COMPUTATION))

    def _map(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        f, xs = parts
        if not f.shape.computes:
            return Rating(f.cost + xs.cost, xs.shape._replace(mapped=False))
        if self.lowered or f.shape.host:
            return None
        n = self._length(graph, node.classes[1])
        cost = n * self._iteration(graph, owner, node.classes[0], f)
        cost += self._intermediate(graph, node.classes[1], xs.shape)
        return Rating(xs.cost + cost, together((f.shape, xs.shape), LAYOUT)._replace(mapped=True))

    def _generate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        (f,) = parts
        if f.shape.levels or f.shape.host:
            return None
        each = self._iteration(graph, owner, node.classes[0], f) if f.shape.computes else f.cost
        return Rating(each * max(1, int(node.children[0])), f.shape)

    def _map_function(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        (f,) = parts
        if f.shape.computes and self.lowered:
            return None
        return Rating(f.cost * max(1, int(node.children[0])), f.shape)

    def _iteration(self, graph: FrozenEGraph, owner: ClassId, function: ClassId, f: Shaped) -> float:
        result = graph.type_of(owner)
        stores = data_leaves(result.element) if isinstance(result, Array) else 0
        return f.cost + self._bound(graph, function) + self.store * stores + self.overhead

    def _apply(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        f, x = parts
        cost = f.cost + x.cost + self._intermediate(graph, node.classes[1], x.shape)
        merged = together((f.shape, x.shape), LAYOUT)._replace(local=f.shape.local)
        if self.lowered and (x.shape.host or outer(x.shape.levels)):  # a kernel of its own computes the argument
            return _in_kernels(cost, merged)
        return Rating(cost, merged)

    def _reduce(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        if self.lowered:
            return None
        op, z, xs = parts
        n = self._length(graph, node.classes[2])
        size = element_count(graph.type_of(node.classes[1]))
        each = size * (1 + self.load) + op.cost + self.overhead + self._spill(size) + self._kept(node, size)
        extra = 0.0 if xs.shape.mapped else self._intermediate(graph, node.classes[2], xs.shape)
        return Rating(z.cost + xs.cost + n * each + extra, together((z.shape, xs.shape), self._blocked(size)))

    def _blocked(self, size: int) -> Shape:
        """The shape of a reduction with an accumulator of this many scalars."""
        return Shape(computes=True, block=min(size, self.registers + 1))

    def _spill(self, size: int) -> float:
        return 0.0 if size <= self.registers else size * (self.load + self.store)

    def _kept(self, node: ENode, size: int) -> float:
        """A scan stores its accumulator after each step."""
        return self.store * size if node.op.startswith("scan") else 0.0

    def _reduce_range(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        if self.lowered:
            return None
        op, z, low, high, xs = parts
        size = element_count(graph.type_of(owner))
        each = size * (1 + self.load) + op.cost + self.overhead + self._spill(size)
        extra = 0.0 if xs.shape.mapped else self._intermediate(graph, node.classes[4], xs.shape)
        cost = z.cost + low.cost + high.cost + xs.cost + self._range(graph, node) * each + extra
        return Rating(cost, together((z.shape, low.shape, high.shape, xs.shape), self._blocked(size)))

    def _reduce_range_seq(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        """A loop inside of a work-item."""
        f, *others = parts
        if any(p.shape.host or outer(p.shape.levels) for p in parts) or any(p.shape.levels for p in others):
            return None
        domain = graph.domain(node.classes[0])
        loads = self.load * data_leaves(domain.second) if isinstance(domain, Pair) else 0
        size = element_count(graph.type_of(owner))
        if self.lowered and size > self.private:
            return None
        each = f.cost + loads + self.overhead + self._spill(size)
        cost = sum(p.cost for p in others) + self._range(graph, node) * each
        cost += self._intermediate(graph, node.classes[4], others[-1].shape)
        own = LAYOUT if self.shared_ranges else Shape(width=1)
        return Rating(cost, together((*(p.shape for p in parts), own), self._blocked(size)))

    def _reduce_by_index(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        if self.lowered:
            return None
        op, z, places, xs = parts
        size = self._bin(graph, owner)
        each = size * (1 + 2 * self.load + self.store) + op.cost + self.overhead
        extra = sum(
            0.0 if p.shape.mapped else self._intermediate(graph, c, p.shape)
            for c, p in zip(node.classes[2:], (places, xs), strict=True)
        )
        cost = z.cost + places.cost + xs.cost + self._length(graph, node.classes[3]) * each + extra
        cost += self.store * element_count(graph.type_of(owner))
        return Rating(cost, together((z.shape, places.shape, xs.shape), COMPUTATION))

    def _reduce_by_index_seq(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        """A loop that updates memory."""
        place, f, z, xs = parts
        if any(p.shape.host or p.shape.levels for p in (place, f, z)):
            return None
        domain = graph.domain(node.classes[1])
        loads = self.load * data_leaves(domain.second) if isinstance(domain, Pair) else 0
        each = place.cost + f.cost + loads + self._bin(graph, owner) * (self.load + self.store) + self.overhead
        cost = z.cost + xs.cost + self._length(graph, node.classes[3]) * each
        cost += self.store * element_count(graph.type_of(owner))
        cost += self._intermediate(graph, node.classes[3], xs.shape)
        host = bool(outer(xs.shape.levels)) or xs.shape.host
        merged = together((place.shape, f.shape, z.shape, xs.shape, Shape(width=1)), COMPUTATION)
        return _in_kernels(cost + self.launch, merged) if host else Rating(cost, merged)

    def _reduce_by_index_glb(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        """A kernel that changes what another one wrote."""
        place, f, z, xs = parts
        shape = nested("glb", 0, together((place.shape, f.shape), COMPUTATION), xs.shape)
        if shape is None:
            return None
        domain = graph.domain(node.classes[1])
        loads = self.load * data_leaves(domain.second) if isinstance(domain, Pair) else 0
        each = place.cost + f.cost + loads + self._bin(graph, owner) * (self.load + self.store) + self.overhead
        steps = each * max(1.0, self._length(graph, node.classes[3]) / self.units) + self.launch
        first = self.store * element_count(graph.type_of(owner)) / self.units + self.launch
        return Rating(z.cost + xs.cost + first + steps, shape)

    def _look_back(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        """The groups of a kernel, and one that says of none of them that it has started."""
        first, op, z, second, xs = parts
        inside = together((first.shape, second.shape), COMPUTATION)
        shape = nested("wrg", 0, inside, xs.shape) if self.lowered else together((inside, xs.shape), COMPUTATION)
        if shape is None or op.shape.levels or z.shape.levels or z.shape.host:
            return None
        n, body = self._length(graph, node.classes[4]), first.cost + second.cost + 2 * op.cost + self.overhead
        return Rating(z.cost + xs.cost + body * max(1.0, n * self.items / self.units) + 2 * self.launch, shape)

    def _reduce_sub(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        """Steps of all items of a group at once, each twice as far as the one before; what they pass on they keep."""
        op, z, xs = parts
        inside = together((op.shape, z.shape), COMPUTATION)
        shape = nested("lcl", 0, inside, xs.shape) if self.lowered else inside
        if shape is None or op.shape.levels or z.shape.levels or z.shape.host:
            return None
        items, n = int(node.children[0]), self._length(graph, node.classes[2])
        each = items.bit_length() * (op.cost + 2 * self.load + self.overhead) * max(1.0, n / self.items)
        extra = self._intermediate(graph, node.classes[2], xs.shape) / self.items
        extra += 2 * self.apart if xs.shape.local else 0.0
        return Rating(z.cost + xs.cost + each + extra, together((shape, xs.shape), COMPUTATION))

    def _bin(self, graph: FrozenEGraph, owner: ClassId) -> int:
        """The scalars of one of the results of a fold by index."""
        t = graph.type_of(owner)
        return element_count(t.element) if isinstance(t, Array) else 1

    def _range(self, graph: FrozenEGraph, node: ENode) -> int:
        """The elements of a range whose ends are computed, which nobody knows."""
        return min(self._length(graph, node.classes[4]), RANGE)

    def _reduce_function(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        if self.lowered:
            return None
        op, z = parts
        domain, result = graph.domain(owner), graph.codomain(owner)
        n = (domain.size.constant or 1) if isinstance(domain, Array) else 1
        size = element_count(result)
        each = size * (1 + self.load) + op.cost + self.overhead + self._spill(size)
        return Rating(z.cost + n * each, self._blocked(size))

    def _map_level(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        f, xs = parts
        kind, dimension = str(node.children[0]), int(node.children[1])
        shape = nested(kind, dimension, f.shape, xs.shape)
        if shape is None:
            return None
        n = self._length(graph, node.classes[1])
        body = self._iteration(graph, owner, node.classes[0], f)
        if kind == "seq":
            cost = n * body + self._intermediate(graph, node.classes[1], xs.shape)
        else:
            shared = {"glb": self.units, "wrg": self.units / self.items, "lcl": self.items}[kind]
            cost = body * max(1.0, n / shared) + (self.launch if kind in ("glb", "wrg") and dimension == 0 else 0)
        if kind == "lcl":
            cost += self._intermediate(graph, node.classes[1], xs.shape) / self.items + self.apart
        return Rating(xs.cost + max(cost, body), shape)

    def _reduce_seq(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        f, z, xs = parts
        if f.shape.host or outer(f.shape.levels) or z.shape.levels:
            return None
        n = self._length(graph, node.classes[2])
        domain = graph.domain(node.classes[0])
        loads = self.load * data_leaves(domain.second) if isinstance(domain, Pair) else 0
        size = element_count(graph.type_of(node.classes[1]))
        if self.lowered and size > self.private:
            return None
        host = bool(outer(xs.shape.levels)) or xs.shape.host or z.shape.host  # it goes on from what kernels computed
        cost = z.cost + xs.cost + n * (f.cost + loads + self.overhead + self._spill(size) + self._kept(node, size))
        cost += self._intermediate(graph, node.classes[2], xs.shape)
        merged = together((f.shape, z.shape, xs.shape), self._blocked(size))
        return _in_kernels(cost + self.launch, merged) if host else Rating(cost, merged)

    def _vectorised(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        (f,) = parts
        if f.shape.levels or f.shape.host or f.shape.width or not f.shape.computes:
            return None
        return Rating(f.cost, f.shape._replace(width=int(node.children[0])))

    def _to_memory(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: Parts) -> Rating | None:
        (x,) = parts
        space = ir.address_space(str(node.children[0]))
        if space == "local" and (x.shape.host or outer(x.shape.levels)):
            return None
        in_items = is_open(x.shape)
        if self.lowered and space == "private" and not in_items and _largest_part(graph.type_of(owner)) > PRIVATE_LIMIT:
            return None
        shape = x.shape._replace(computes=True, mapped=False, staged=x.shape.staged | {space}, local=space == "local")
        return Rating(x.cost - (self.apart if space == "local" and in_items else 0), shape)


def _scope(graph: FrozenEGraph, owner: ClassId, node: ENode, operations: float) -> int:
    """What the scope of a number's name counts as layout, in an expression of that many operations.

    A let could stand at many places of a long expression, and none of them is another computation. Those that stand
    further in come first, and the others after different loops.
    """
    named = all(isinstance(graph.type_of(c), Scalar | Vector) for c in (owner, node.classes[1]))
    return round(_SCOPE * operations) if named and operations <= _NO_LOOP else 0


def _in_kernels(cost: float, shape: Shape) -> Rating | None:
    """What takes several kernels; None where no group is around what work-items share: none can be any more."""
    return None if is_open(shape) else Rating(cost, shape._replace(levels=frozenset(), host=True))


_HANDLERS = {
    **dict.fromkeys(("Ex___init__", "Ex_input", "Ex_literal", "Op_scalar"), lambda s, g, o, n, p: Rating(0.0, LAYOUT)),
    **dict.fromkeys(("Fn_lam", "Op_lift", "Op_fn"), lambda s, g, o, n, p: p[0]),
    **dict.fromkeys(("call1", "call2", "call3"), StructuralCost._call),
    "app": StructuralCost._apply,
    "combine": StructuralCost._combine,
    "map_": StructuralCost._map,
    "generate": StructuralCost._generate,
    "Fn_map": StructuralCost._map_function,
    "reduce_": StructuralCost._reduce,
    "Fn_reduce": StructuralCost._reduce_function,
    "map_level": StructuralCost._map_level,
    "reduce_seq": StructuralCost._reduce_seq,
    **dict.fromkeys(("scan", "scan_exclusive"), StructuralCost._reduce),
    **dict.fromkeys(("scan_seq", "scan_exclusive_seq"), StructuralCost._reduce_seq),
    "reduce_by_index": StructuralCost._reduce_by_index,
    "reduce_by_index_seq": StructuralCost._reduce_by_index_seq,
    "reduce_by_index_glb": StructuralCost._reduce_by_index_glb,
    "reduce_by_index_atomic": StructuralCost._reduce_by_index_glb,
    "reduce_range": StructuralCost._reduce_range,
    "reduce_range_seq": StructuralCost._reduce_range_seq,
    "look_back": StructuralCost._look_back,
    "reduce_sub": StructuralCost._reduce_sub,
    "Fn_vec": StructuralCost._vectorised,
    "to_memory": StructuralCost._to_memory,
}
