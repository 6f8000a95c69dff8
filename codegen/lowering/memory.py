"""Where values live: address spaces and buffers.

Source: 000 §4.3.2 (address space inference, Algorithm 1). Tuples never exist in memory: a value of
pair type has one buffer per scalar leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import inf, prod

from lift_egraph.codegen.c_ast import Buffer
from lift_egraph.codegen.lowering.ownership import NOBODY, Owners
from lift_egraph.codegen.lowering.views import Cell, Memory
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.plans.kernel import PRIVATE_LIMIT
from lift_egraph.errors import NestingProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import DataType, Scalar, Vector, leaves, scalar_of, width_of

PRIVATE_CHOICE = 256  # elements of a private array that lowering chooses: more never fit into registers


def declared_space(term: ir.Expr) -> str | None:
    """The space that a term names for its result, or that follows from its parallel maps.

    ``toLocal`` at the end of a map's function places the whole result of the map. What a mapLcl makes is in local
    memory, or where its length is open in global: local memory has no room for that.
    """
    match term:
        case ir.ToMemory():
            return term.space
        case ir.MapLevel(level=level, function=function):
            inner = declared_space(ir.function_body(function).body)
            fits = largest_array(type_of(term)) < inf
            return inner or {"lcl": "local" if fits else "global", "glb": "global", "wrg": "global"}.get(level.kind)
        case ir.ReduceSub():
            return "local"
        case ir.Apply(function=function) | ir.Iterate(function=function):
            return declared_space(ir.function_body(function).body)
        case ir.Concat(first=first, second=second):
            return declared_space(first) or declared_space(second)
        case ir.Join() | ir.Split() | ir.Transpose() | ir.Scatter() | ir.AsScalar() | ir.AsVector() | ir.Map():
            return declared_space(term.array)
        case ir.Slice():
            return declared_space(term.array)
        case ir.ReduceSeq(operator=operator) | ir.ReduceRangeSeq(operator=operator):
            return _named_space(ir.function_body(operator).body) or _named_space(term.initial)
    return None


def _named_space(term: ir.Expr) -> str | None:
    """The space that a chain of maps ends in by name: accumulators stay private otherwise."""
    if isinstance(term, ir.ToMemory):
        return term.space
    if isinstance(term, ir.MapLevel):
        return _named_space(ir.function_body(term.function).body)
    return None


def memory(
    name: str,
    t: DataType,
    space: str,
    taken: set[str],
    *,
    width: int = 1,
    owners: Owners = NOBODY,
    threads: Mapping[int, int | None] | None = None,
    prefix: tuple[tuple[Nat, Nat], ...] = (),
    mutable: bool = True,
    origin: ir.Expr | None = None,
) -> Memory:
    """New buffers for a value: one per scalar leaf of its type.

    Parameters
    ----------
    width
        The lanes that a scalar leaf gets inside a vectorised function.
    space
        One of `lift_egraph.language.ir.SPACES`.
    owners, threads
        The mapLcl dimensions that share out the array's dimensions, and their work-items: in private
        memory a work-item keeps its own elements only.
    prefix
        Index and length of each parallel loop around memory that all its iterations need for themselves.
    origin
        The term whose value it is.

    Raises
    ------
    SizeProblem
        If its bytes are beyond 64-bit addresses.
    NestingProblem
        If it has more private elements than `PRIVATE_LIMIT`.
    """
    tiles = space if space in ir.TILE_SPACES else None
    space, cells = ir.address_space(space), []
    parts = list(leaves(t))
    for choices, sizes, leaf in parts:
        lanes = width_of(leaf) if isinstance(leaf, Vector) else width
        owned = _owned(owners.get(choices, ()), len(sizes), threads or {})
        if space != "private":
            owned = (None,) * len(sizes)
        shape: list[int | Nat] = []
        for size, owner in zip(sizes, owned, strict=True):
            number = _number(size, space, name, t)
            if owner is not None and threads and isinstance(number, int):
                number = -(-number // _work_items(threads[owner], owner, name, t))
            shape.append(number)
        element: Scalar | Vector = scalar_of(leaf)
        if space == "private":
            element = Vector(element, lanes) if lanes > 1 else element
        elif lanes > 1:
            shape.append(lanes)
        offset, inner = nat(0), prod(sizes, start=nat(1))
        for index, size in prefix:
            offset = offset * size + index
        shape = [_number(size, space, name, t) for _, size in prefix] + shape
        label = "_".join((name, *(str(c) for c in choices))) if len(parts) > 1 else name
        numbers = [n for n in shape if isinstance(n, int)]
        named = _array_name(label, numbers, taken) if space == "private" and shape else c_name(label, taken)
        buffer = Buffer(named, space, element, tuple(shape), mutable, tiles=tiles, origin=origin)
        if buffer.elements.constant is not None and buffer.bytes >= 1 << 63:
            raise SizeProblem(f"{name} : {t} has {buffer.length} elements: its bytes are beyond 64-bit addresses")
        if space == "private" and buffer.length > PRIVATE_LIMIT:
            raise NestingProblem(
                f"{name} : {t} needs {buffer.length} private elements a work-item, more than {PRIVATE_LIMIT}: "
                "split it into smaller blocks, or place it with toLocal or toGlobal"
            )
        cells.append(Cell(choices, buffer, sizes, owned, offset * inner, lanes if space != "private" else 1))
    return Memory(tuple(cells))


def largest_array(t: DataType) -> float:
    """The elements of the largest array in a value of a type; 0 if there is none, infinite if its length is open."""
    most = ([size.range[1] for size in sizes] for _, sizes, _ in leaves(t))
    counts = (inf if None in numbers else prod(n for n in numbers if n is not None) for numbers in most if numbers)
    return max(counts, default=0)


def _array_name(base: str, shape: list[int], taken: set[str]) -> str:
    """A name for an array whose elements may become variables (``acc_0_1``): those must be free too."""
    if prod(shape) > PRIVATE_LIMIT:
        return c_name(base, taken)
    while True:
        name = c_name(base, taken)
        elements = {"_".join((name, *map(str, place))) for place in product(*map(range, shape))}
        if not elements & taken:
            taken |= elements
            return name


def _owned(
    owners: tuple[int | None, ...], dimensions: int, threads: Mapping[int, int | None]
) -> tuple[int | None, ...]:
    """The owner of each dimension; a single work-item owns everything anyway."""
    known = (*owners, *(None,) * dimensions)[:dimensions]
    return tuple(None if owner is None or threads.get(owner) == 1 else owner for owner in known)


def _number(size: Nat, space: str, name: str, t: DataType) -> int | Nat:
    """The most that a length can be; in global memory it may be open."""
    number = size.range[1]
    if number is not None:
        return number
    if space == "global":
        return size
    open_sizes = ", ".join(sorted({v.name for v in size.variables}))
    which = f"{size} is open" if str(size) == open_sizes else f"{size} depends on {open_sizes}"
    raise SizeProblem(
        f"{name} : {t} lies in {space} memory, so its length must be a number, but {which}: "
        f"specialise {open_sizes}, split the array into blocks of a known length, or place it with toGlobal"
    )


def _work_items(count: int | None, owner: int, name: str, t: DataType) -> int:
    if count is None:
        raise NestingProblem(
            f"{name} : {t} lies in private memory, shared out over {ir.Level('lcl', owner).name}: how many elements a "
            "work-item keeps depends on the local size, so a kernel for any launch needs one "
            "(launch=Launch(global_size, local_size))"
        )
    return count
