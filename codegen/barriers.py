"""Barriers: where work-items of a group would otherwise race, and nowhere else.

A barrier stands between two steps that touch the same local (or temporary global) memory, at least
one of them writing, unless every work-item stays with its own elements. A loop whose last step races
with its first step of the next round ends in a barrier.

Source: 000 §4.3.4. There barriers follow every mapLcl and are removed where they are not required;
here the same ones are found from the accesses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from codegen.c_ast import Barrier, Body, Buffer, For, Load, Statement, loads, stores, walk
from codegen.views import ThreadVar
from lift_egraph.errors import NestingProblem
from lift_egraph.nat import Nat, NatVar, nat


@dataclass
class _Accesses:
    """What was read and written since the last barrier: the addresses by buffer."""

    reads: dict[str, set[Nat]] = field(default_factory=dict)
    writes: dict[str, set[Nat]] = field(default_factory=dict)

    def merge(self, other: _Accesses) -> None:
        for mine, theirs in ((self.reads, other.reads), (self.writes, other.writes)):
            for name, addresses in theirs.items():
                mine[name] = mine.get(name, set()) | addresses

    def copy(self) -> _Accesses:
        made = _Accesses()
        made.merge(self)
        return made


class _Placing:
    def __init__(self, shared: dict[str, str], threads: dict[int, int]) -> None:
        self.shared = shared  # buffer name -> space
        self.threads = threads

    def accesses(self, item: Statement, through_pointers: bool) -> _Accesses:
        found = _Accesses()
        for target, places in ((found.reads, loads(item)), (found.writes, stores(item))):
            for place in places:
                for name in _names(place, through_pointers):
                    if name in self.shared:
                        target.setdefault(name, set()).add(_canonical(place.index))
        return found

    def races(self, before: _Accesses, after: _Accesses) -> list[str]:
        """The buffers that two steps must not touch without a barrier between them."""
        found = []
        for name in self.shared:
            b_reads, b_writes = before.reads.get(name, set()), before.writes.get(name, set())
            a_reads, a_writes = after.reads.get(name, set()), after.writes.get(name, set())
            if not ((b_writes and (a_reads or a_writes)) or (b_reads and a_writes)):
                continue
            addresses = b_reads | b_writes | a_reads | a_writes
            if len(addresses) > 1 or not self.own_element(next(iter(addresses))):
                found.append(name)
        return found

    def own_element(self, address: Nat) -> bool:
        """Whether different work-items of a group always have different addresses."""
        reach = 1
        slopes = []
        for dimension, count in self.threads.items():
            slope = address.coefficient_of(_own_index(dimension))
            if count > 1:
                if slope is None or not slope.constant:
                    return False
                slopes.append((abs(slope.constant), count))
        for slope, count in sorted(slopes):
            if slope < reach:
                return False
            reach = slope * count
        return all(v.name.startswith(("lcl ", "wrg_")) for v in address.variables)

    def spaces(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({self.shared[n] for n in names}, reverse=True))

    def place(self, body: Body, state: _Accesses, inside_lcl: bool) -> list[Statement]:
        """The body with barriers; `state` is what precedes it, and becomes what follows its last barrier."""
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Barrier):
                state.reads, state.writes = {}, {}
            elif isinstance(statement, For):
                statement = self.place_in_loop(statement, state, result, inside_lcl)
            else:
                self.separate(state, self.accesses(statement, not inside_lcl), result)
            result.append(statement)
        return result

    def separate(self, state: _Accesses, step: _Accesses, result: list[Statement]) -> None:
        """Adds a barrier where the step races with what precedes it."""
        names = self.races(state, step)
        if names:
            result.append(Barrier(self.spaces(names)))
            state.reads, state.writes = {}, {}
        state.merge(step)

    def place_in_loop(self, loop: For, state: _Accesses, result: list[Statement], inside_lcl: bool) -> For:
        parallel = loop.level.kind in ("lcl", "glb")
        if parallel:
            inner = _Accesses()
            body = self.place(loop.body, inner, True)
            if any(isinstance(s, Barrier) for s in walk(tuple(body))) and (
                loop.most % loop.threads or not loop.count.constant
            ):
                raise NestingProblem(
                    f"work-items exchange data inside {loop.level.name} over {loop.count} elements, but with "
                    f"{loop.threads} work-items not all of them run each step: a barrier there would hang"
                )
            self.separate(state, self.accesses(loop, not inside_lcl), result)
            return replace(loop, body=tuple(body))
        names = self.races(state, self.accesses(loop, not inside_lcl))
        if names:  # once before the loop, rather than in each of its rounds
            result.append(Barrier(self.spaces(names)))
            state.reads, state.writes = {}, {}
        before = state.copy()
        body = self.place(loop.body, state, inside_lcl)
        if loop.trips > 1:
            again = state.copy()
            repeated = self.place(tuple(body), again, inside_lcl)
            if len(repeated) > len(body) or _barriers(repeated) > _barriers(body):
                names = self.shared
                body.append(Barrier(self.spaces(n for n in names if n in state.reads or n in state.writes)))
                state.reads, state.writes = {}, {}
        if loop.count.constant is None:
            state.merge(before)
        return replace(loop, body=tuple(body))


def place_barriers(body: Body, threads: dict[int, int]) -> Body:
    """The kernel's body with the barriers it needs.

    Parameters
    ----------
    threads
        The number of work-items of a group in each dimension of mapLcl.

    Raises
    ------
    NestingProblem
        Where a barrier would be needed in control flow that not all work-items of a group take.
    """
    if not any(isinstance(s, For) and s.level.kind == "lcl" for s in walk(body)):
        return body
    written = {name for place in stores(body) for name in _names(place, True)}
    read = {name for place in loads(body) for name in _names(place, True)}
    spaces: dict[str, str] = {}
    for part in walk(body):
        if isinstance(part, Load) and part.buffer.space != "private":
            for name in (part.buffer.name, *part.buffer.targets):
                if part.buffer.targets or name in written & read:
                    spaces[name] = part.buffer.space
    return tuple(_Placing(spaces, threads).place(body, _Accesses(), False))


def _names(place: Load, through_pointers: bool) -> tuple[str, ...]:
    buffer: Buffer = place.buffer
    if buffer.space == "private":
        return ()
    return buffer.targets if buffer.targets and through_pointers else (buffer.name,)


def _barriers(body: Iterable[Statement]) -> int:
    return sum(isinstance(s, Barrier) for s in walk(tuple(body)))


def _own_index(dimension: int) -> NatVar:
    return NatVar(f"lcl {dimension}")


def _canonical(address: Nat) -> Nat:
    """The address with the index variables of all mapLcl of one dimension made equal."""
    values = {}
    for variable in address.variables:
        if isinstance(variable, ThreadVar):
            values[variable.name] = nat(_own_index(variable.dimension))
        elif variable.name.startswith("get_local_id("):
            values[variable.name] = nat(_own_index(int(variable.name[-2])))
    return address.substitute(values)
