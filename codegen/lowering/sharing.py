"""Memory that work-items share, or share out among themselves.

Private arrays keep the form in which a mapLcl makes them (see `ownership`). What every work-item of a group
computes alike is written to shared memory by one of them: by all it would be a race.

Source: 000 §4.3.2, §4.3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.lowering import ownership
from lift_egraph.codegen.lowering.launch import Threads, parallel_lengths
from lift_egraph.codegen.lowering.memory import memory
from lift_egraph.codegen.lowering.ownership import NOBODY, Owners
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.term_views import component, layout_view, write_step
from lift_egraph.codegen.lowering.views import Access, Component, OwnershipProblem, Pairs, View
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat
from lift_egraph.language.nesting import LOCAL
from lift_egraph.language.types import Array, DataType, Pair, Vector, is_data, leaves, width_of

GROUP_INDEX = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}


# --- allocation ---------------------------------------------------------------------------------------


def allocate(lowering: State, name: str, t: DataType, space: str, owners: Owners = NOBODY) -> View:
    """New memory for a value, declared where its space wants it.

    Raises
    ------
    NestingProblem
        If it is local memory, and there is no work-group.
    """
    named, space = space, ir.address_space(space)
    levels = {level for level, _, _ in lowering.loops}
    prefix: tuple[tuple[Nat, Nat], ...] = ()
    if space == "local":
        if not any(level.kind == "wrg" for level in levels) and LOCAL not in lowering.threads:
            raise NestingProblem(f"{name} : {t} is placed in local memory outside of mapWrg: there is no work-group")
        prefix = tuple((index, count) for level, index, count in lowering.loops if level.kind == "lcl")
    if space == "global":
        prefix = tuple((index, count) for level, index, count in lowering.loops if level != ir.SEQ)
        prefix += tuple(
            (nat(NatVar(f"{GROUP_INDEX[level.kind]}({level.dimension})", 0, number - 1)), nat(number))
            for level, number in _others(lowering, levels, f"{name} : {t}")
        )
    counts = {level.dimension: number for level, number in lowering.threads.items() if level.kind == "lcl"}
    width = lowering.width if not any(isinstance(leaf, Vector) for _, _, leaf in leaves(t)) else 1
    made = memory(
        name, t, named, lowering.taken, width=width, owners=owners, threads=counts, prefix=prefix, origin=lowering.term
    )
    for cell in made.cells:
        if space == "private":
            owned = {o for o in cell.owners if o is not None}
            lowering.homes[cell.buffer.name] = frozenset(owned | lowering.work_items())
            lowering.owned[cell.buffer.name] = frozenset(owned)
            lowering.emit(c_ast.Allocate(cell.buffer))
        else:
            (lowering.locals if space == "local" else lowering.temporaries).append(cell.buffer)
    return made


def allocate_for(lowering: State, name: str, term: ir.Expr, space: str) -> View:
    """New memory for the value of a term; private memory in the form in which a mapLcl makes it."""
    if space != "private" or not ownership.is_shared_out(term):
        return allocate(lowering, name, type_of(term), space)
    match term:
        case ir.Zip(first=first, second=second) | ir.MakePair(first=first, second=second):
            return Pairs(allocate_for(lowering, name, first, space), allocate_for(lowering, name, second, space))
        case ir.Join() | ir.Split() | ir.Transpose() | ir.AsScalar() | ir.AsVector():
            return layout_view(term, [allocate_for(lowering, name, term.array, space)])
        case ir.ToMemory(value=value):
            return allocate_for(lowering, name, value, space)
        case ir.Apply(function=function) | ir.ReduceSeq(operator=function) | ir.ReduceRangeSeq(operator=function):
            return allocate_for(lowering, name, ir.function_body(function).body, space)
    return allocate(lowering, name, type_of(term), space, ownership.owners_of(term))


# --- copies ---------------------------------------------------------------------------------------------


def copy_for(lowering: State, term: ir.Expr, source: View, acceptor: View) -> None:
    """Copies a value of the term's type; the work-items that make the parts of the term copy those parts."""
    if not ownership.is_shared_out(term):
        copy(lowering, source, acceptor, type_of(term))
        return
    match term:
        case ir.Zip(first=first, second=second) | ir.MakePair(first=first, second=second):
            copy_for(lowering, first, component(0, source), Component(0, acceptor))
            copy_for(lowering, second, component(1, source), Component(1, acceptor))
            return
        case ir.ToMemory(value=value):
            copy_for(lowering, value, source, acceptor)
            return
        case ir.Apply(function=function) | ir.ReduceSeq(operator=function) | ir.ReduceRangeSeq(operator=function):
            copy_for(lowering, ir.function_body(function).body, source, acceptor)
            return
        case ir.Join() | ir.Split() | ir.Transpose() | ir.Scatter() | ir.AsScalar() | ir.AsVector():
            from_, to = write_step(term, source), write_step(term, acceptor)
            assert from_ is not None
            assert to is not None
            copy_for(lowering, term.array, from_[1], to[1])
            return
    copy(lowering, source, acceptor, type_of(term), ownership.owners_of(term))


def copy(lowering: State, source: View, acceptor: View, t: DataType, owners: Owners = NOBODY) -> None:
    """Copies a value, element by element; dimensions owned by a mapLcl are copied by it."""
    if isinstance(t, Array):
        owner = {ownership.outermost(owners, choices) for choices, _, _ in leaves(t)}
        if isinstance(t.element, Pair) and (len(owner) > 1 or not is_data(t.element)):
            for k, part in enumerate((t.element.first, t.element.second)):
                inner = ownership.of_component(owners, k)
                copy(lowering, component(k, source), Component(k, acceptor), Array(t.size, part), inner)
            return
        (dimension,) = owner
        level = ir.SEQ if dimension is None else ir.Level("lcl", dimension)
        with lowering.loop(t.size, level) as index:
            copy(lowering, Access(index, source), Access(index, acceptor), t.element, ownership.of_elements(owners))
    elif is_data(t):
        store_data(lowering, source, acceptor, t)
    else:
        assert isinstance(t, Pair)
        copy(lowering, component(0, source), Component(0, acceptor), t.first, ownership.of_component(owners, 0))
        copy(lowering, component(1, source), Component(1, acceptor), t.second, ownership.of_component(owners, 1))


# --- stores ---------------------------------------------------------------------------------------------


def store_data(lowering: State, source: View, acceptor: View, t: DataType) -> None:
    """Writes scalars and tuples of them: what a write would change is read before it."""
    written: set[str] = set()
    writes: list[tuple[c_ast.CExpr, c_ast.CExpr]] = []
    for choices, _, _ in leaves(t):
        place, value = acceptor.resolve((), choices), source.resolve((), choices)
        if place == value:
            continue
        if any(written.intersection(_memory_of(load)) for load in c_walk.loads(value)):
            value = lowering.name("next", value)
        written.update(name for part in c_walk.walk(place) if isinstance(part, c_ast.Load) for name in _memory_of(part))
        writes.append((place, value))
    for place, value in writes:
        store(lowering, place, value)


def _memory_of(place: c_ast.Load) -> tuple[str, ...]:
    """The names of the buffers that an access may touch."""
    return (place.buffer.name, *place.buffer.targets)


def store(lowering: State, place: c_ast.CExpr, value: c_ast.CExpr) -> None:
    """Writes a scalar or vector; lanes that are not adjacent are written one by one.

    Raises
    ------
    NestingProblem
        If nothing can be written through the layout of the place.
    """
    if place == value:
        return
    if isinstance(place, c_ast.Load | c_ast.Lane):
        target = place.vector if isinstance(place, c_ast.Lane) else place
        assert isinstance(target, c_ast.Load)
        if target.buffer.space == "private":
            check_private(lowering, target)
            lowering.emit(c_ast.Store(place, value))
        else:
            streamed = lowering.streams and target.buffer.space == "global"
            lowering.emit(by_one(lowering, target, c_ast.Store(place, value, streamed, origin=lowering.term)))
    elif isinstance(place, c_ast.Choose):
        _store_where(lowering, place, value)
    elif isinstance(place, c_ast.Nowhere):
        return
    elif isinstance(place, c_ast.Pack) and len(place.items) > 1:
        if width_of(value.type) > 1 and not isinstance(value, c_ast.Name):
            value = lowering.name("lanes", value)
        for number, item in enumerate(place.items):
            store(lowering, item, c_ast.lane_of(value, nat(number)))
    else:
        raise NestingProblem(f"a value cannot be written through this layout: {type(place).__name__}")


def _store_where(lowering: State, place: c_ast.Choose, value: c_ast.CExpr) -> None:
    """Writes to the first place where all conditions hold, to the second one else."""
    value = value if isinstance(value, c_ast.Name | c_ast.Const) else lowering.name("kept", value)
    needed = tuple(c for c in place.conditions if not is_at_least(c, 0))
    _store_if(lowering, needed, place.inside, value)
    for k, condition in enumerate(needed):
        _store_if(lowering, (*needed[:k], -1 - condition), place.outside, value)


def _store_if(lowering: State, conditions: tuple[Nat, ...], place: c_ast.CExpr, value: c_ast.CExpr) -> None:
    conditions = tuple(c for c in conditions if not is_at_least(c, 0))
    if any(is_at_least(-1 - c, 0) for c in conditions):
        return
    with lowering.block() as body:
        store(lowering, place, value)
    for statement in [c_ast.If(conditions, tuple(body))] if conditions and body else body:
        lowering.emit(statement)


# --- who writes -----------------------------------------------------------------------------------------


def idle_levels(threads: Threads) -> dict[ir.Level, int]:
    """The dimensions of a launch that no map of the kernel uses: what runs there must not do the work twice."""
    if not threads.counts:
        return {}
    local, items = threads.local_size or (1, 1, 1), [n.constant or 1 for n in threads.global_size]
    if any(level.kind == "glb" for level in threads.counts):
        sizes = {ir.Level("glb", d): items[d] for d in range(3)}
    else:
        sizes = {ir.Level("wrg", d): items[d] // local[d] for d in range(3)}
        sizes |= {ir.Level("lcl", d): local[d] for d in range(3)}
    return {level: number for level, number in sizes.items() if number > 1 and level not in threads.counts}


@contextmanager
def by_first_items(lowering: State, part: ir.Expr) -> Iterator[None]:
    """Only the first work-items compute a part of an array, along dimensions that it has no map for: no other one would
    store what it computes. Where work-items of a group meet, all of them do.
    """
    here, used = {level for level, _, _ in lowering.loops}, parallel_lengths(part)
    levels = [level for level, n in lowering.threads.items() if n != 1 and level not in here and level not in used]
    if is_pure(part) or any(level.kind != "glb" for level in lowering.threads) or not levels:
        yield
        return
    lowering.loops += [(level, nat(0), nat(1)) for level in levels]
    with lowering.block() as body:
        yield
    statements = tuple(body)
    for level in reversed(levels):
        lowering.loops.pop()
        statements = (_first(level, lowering, statements),)
    for statement in statements if body else ():
        lowering.emit(statement)


def _first(level: ir.Level, lowering: State, body: tuple[c_ast.Statement, ...]) -> c_ast.Statement:
    """What only the first work-item, or group, of a level does."""
    variable = NatVar(f"first_{level.kind}_{level.dimension}", 0, 0)
    return c_ast.For(variable, nat(1), level, lowering.threads[level], body, origin=lowering.term)


def _others(lowering: State, here: set[ir.Level], what: str) -> Iterator[tuple[ir.Level, int]]:
    """The groups, or work-items of a mapGlb, that run outside of any loop over them, with their number."""
    for level, number in lowering.threads.items():
        if level.kind == "lcl" or number == 1 or level in here:
            continue
        if number is None:
            raise NestingProblem(
                f"{what} lies in global memory, and each work-item or group outside of {level.name} needs its own: "
                "their number must be known, so specialise the sizes and leave the launch to the compiler"
            )
        yield level, number


def check_private(lowering: State, place: c_ast.Load) -> None:
    """A private array is written as a whole by each work-item, or each writes the elements that it owns."""
    home = lowering.homes.get(place.buffer.name)
    if home is None:
        return
    for dimension in lowering.work_items() - home:
        if lowering.threads[ir.Level("lcl", dimension)] != 1:
            raise OwnershipProblem.of(
                place.buffer.name,
                f"{place.buffer.name} lies in private memory, but its elements are made by different work-items of "
                f"{ir.Level('lcl', dimension).name}; keep it in local memory",
            )


def by_one(lowering: State, place: c_ast.Load, store: c_ast.Statement) -> c_ast.Statement:
    """The store, guarded where all work-items of a group (or other groups) would do it alike."""
    is_temporary = any(b.name == place.buffer.name for b in lowering.temporaries)
    here = {level for level, _, _ in lowering.loops}
    for level, number in lowering.threads.items():
        if level in here or number == 1:
            continue
        if level.kind != "lcl" and (place.buffer.space == "local" or is_temporary):
            continue  # each group, or work-item of a mapGlb, has its own
        store = _first(level, lowering, (store,))
    return store
