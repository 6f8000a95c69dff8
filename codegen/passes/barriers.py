"""Barriers: where work-items of a group would otherwise race, and nowhere else.

A barrier stands between two steps that touch the same local (or temporary global) memory, at least
one of them writing, unless every work-item stays with its own elements, or the first one does all. A loop
whose last step races with its first step of the next round ends in a barrier.

Source: 000 §4.3.4. There barriers follow every mapLcl and are removed where they are not required;
here the same ones are found from the accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import inf

from lift_egraph.codegen.c_ast import AROUND, Barrier, Body, Buffer, For, If, Load, LookBack, Statement, Store
from lift_egraph.codegen.c_walk import loads, statements, stores, waits, walk, with_body
from lift_egraph.codegen.lowering.views import ThreadVar
from lift_egraph.errors import NestingProblem
from lift_egraph.language.describe import blame
from lift_egraph.language.nat import Nat, NatVar, nat, operations


@dataclass
class _Accesses:
    """What was read and written since the last barrier: by buffer, the first addresses and how many elements.

    `by_others` has the buffers that not only the first work-item of the group touched, `plain` those that were touched
    otherwise than by atomic operations, which do not race with each other.
    """

    reads: dict[str, set[tuple[Nat, int]]] = field(default_factory=dict)
    writes: dict[str, set[tuple[Nat, int]]] = field(default_factory=dict)
    by_others: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)

    def merge(self, other: _Accesses) -> None:
        for mine, theirs in ((self.reads, other.reads), (self.writes, other.writes)):
            for name, addresses in theirs.items():
                mine[name] = mine.get(name, set()) | addresses
        self.by_others |= other.by_others
        self.plain |= other.plain

    def copy(self) -> _Accesses:
        made = _Accesses()
        made.merge(self)
        return made

    def clear(self) -> None:
        self.reads, self.writes, self.by_others, self.plain = {}, {}, set(), set()


class _Placing:
    def __init__(self, shared: dict[str, str], threads: dict[int, float], extent: dict[int, float]) -> None:
        self.shared = shared  # buffer name -> space
        self.threads = threads  # dimension -> work-items, infinite where only the launch says how many
        self.extent = extent  # one more than the greatest index of any mapLcl, by dimension
        self.single: frozenset[int] = frozenset()  # dimensions of which a single work-item runs
        self.known: dict[tuple[frozenset[int], frozenset[tuple[Nat, int]]], bool] = {}  # by `own_elements`
        self.read: dict[tuple[int, bool, frozenset[int]], tuple[Statement, _Accesses]] = {}  # what has a number lives

    def accesses(self, item: Statement, through_pointers: bool) -> _Accesses:
        """What a statement accesses: asked for in each round of the loops around it, and found once."""
        key = id(item), through_pointers, self.single
        if key not in self.read:
            self.read[key] = item, self.accesses_of(item, through_pointers)
        return self.read[key][1]

    def accesses_of(self, item: Statement, through_pointers: bool) -> _Accesses:
        found = _Accesses()
        for target, places in ((found.reads, loads(item)), (found.writes, stores(item))):
            for place in places:
                for name in _names(place, through_pointers):
                    if name in self.shared:
                        target.setdefault(name, set()).add((_canonical(place.index), place.width))
        if not self.is_of_first_item(item):
            found.by_others = {*found.reads, *found.writes}
        plain = (place for s in statements(item) if isinstance(s, Store) and not s.by for place in stores(s))
        found.plain = {*found.reads, *(name for place in plain for name in _names(place, through_pointers))}
        return found

    def writes(self, item: Statement) -> bool:
        """Whether a statement writes to memory that work-items share."""
        return any(name in self.shared for place in stores(item) for name in _names(place, True))

    def is_of_first_item(self, item: Statement) -> bool:
        """Whether one work-item of the group does it all: the first in every dimension."""
        single = self.single
        while isinstance(item, For) and item.level.kind == "lcl" and item.most <= 1:
            single |= {item.level.dimension}
            if len(item.body) != 1:
                break
            (item,) = item.body
        return all(d in single for d, count in self.threads.items() if count > 1)

    def races(self, before: _Accesses, after: _Accesses) -> list[str]:
        """The buffers that two steps must not touch without a barrier between them."""
        found = []
        for name in self.shared:
            b_reads, b_writes = before.reads.get(name, set()), before.writes.get(name, set())
            a_reads, a_writes = after.reads.get(name, set()), after.writes.get(name, set())
            if not ((b_writes and (a_reads or a_writes)) or (b_reads and a_writes)):
                continue
            if name not in before.by_others | after.by_others or name not in before.plain | after.plain:
                continue
            key = self.single, frozenset(b_reads | b_writes | a_reads | a_writes)
            if key not in self.known:
                self.known[key] = self.own_elements(self.of_running(key[1]))
            if not self.known[key]:
                found.append(name)
        return found

    def of_running(self, accesses: Set[tuple[Nat, int]]) -> Set[tuple[Nat, int]]:
        """The accesses, where only the first work-item of some dimensions runs."""
        if not self.single:
            return accesses
        first = {_own_index(d).name: nat(0) for d in self.single}
        return {(address.substitute(first), width) for address, width in accesses}

    @property
    def running(self) -> dict[int, float]:
        """One more than the greatest index of mapLcl in each dimension of which several work-items run."""
        return {d: n for d, n in self.extent.items() if d not in self.single and self.threads.get(d, 1) > 1}

    def own_elements(self, accesses: Set[tuple[Nat, int]]) -> bool:
        """Whether each element is accessed by one work-item of a group only, in all rounds of all loops."""
        (first, _), *others = accesses
        widest = max(width for _, width in accesses)
        distances = [(address - first).constant for address, _ in others]
        apart = sorted({0, *(d for d in distances if d is not None)})
        if None not in distances:
            steps = {high - low for low, high in pairwise(apart)}
            if len(steps) < 2 and self.is_injective(first, widest, [(step, len(apart)) for step in steps]):
                return True
        return self.has_own_spans(accesses)

    def is_injective(self, address: Nat, width: int, others: Iterable[tuple[int, float]] = ()) -> bool:
        """Whether no two work-items or rounds have the same address (or ones nearer than `width`).

        `others` are distances at which there are more addresses, and how many.
        """
        if not all(_own_index(d) in address.variables for d in self.running):
            return False
        counts = {v: self.count_of(v) for v in address.variables if not _is_of_group(v)}
        address, counts = _in_digits(address, counts)
        digits = [*others]
        for variable, count in counts.items():
            slope = address.coefficient_of(variable)
            if count != 1:
                if slope is None or not slope.constant or count is None:
                    return False
                digits.append((abs(slope.constant), count))
        reach = width
        for slope, count in sorted(digits):
            if slope < reach:
                return False
            reach = slope * count
        return True

    def count_of(self, variable: NatVar) -> float | None:
        """How many values an index that starts at 0 has; None where nothing says it."""
        if variable.name.startswith("lcl "):
            return self.extent.get(int(variable.name[4:]), 1)
        return None if variable.low != 0 or variable.high is None else variable.high + 1

    def has_own_spans(self, accesses: Set[tuple[Nat, int]]) -> bool:
        """Whether each work-item stays within a range of addresses that no other one touches."""
        dimensions = list(self.running)
        kinds: set[tuple[Nat, ...]] = set()
        spans: list[tuple[int, int]] = []
        for address, width in accesses:
            slopes = [address.coefficient_of(_own_index(d)) or nat(0) for d in dimensions]
            rest = address
            for d, slope in zip(dimensions, slopes, strict=True):
                rest = rest - slope * nat(_own_index(d))
            group = nat(0)
            for variable in rest.variables:
                if _is_of_group(variable):
                    group = group + (rest.coefficient_of(variable) or nat(0)) * nat(variable)
            low, high = (rest - group).range
            if low is None or high is None or _tells_threads_apart(rest - group):
                return False
            kinds.add((group, *slopes))
            spans.append((low, high + width))
        if len(kinds) > 1:
            return False
        reach = max(end for _, end in spans) - min(start for start, _ in spans)
        slopes = next(iter(kinds))[1:]
        digits = [(slope.constant or 0, self.extent[d]) for d, slope in zip(dimensions, slopes, strict=True)]
        for slope, count in sorted(digits):
            if slope < reach:
                return False
            reach += slope * (count - 1)
        return True

    def spaces(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({self.shared[n] for n in names}, reverse=True))

    def place(self, body: Body, state: _Accesses, inside_lcl: bool) -> list[Statement]:
        """The body with barriers; `state` is what precedes it, and becomes what follows its last barrier."""
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Barrier):
                state.clear()
            elif isinstance(statement, LookBack):
                self.separate(state, self.accesses(statement, not inside_lcl), result)
                state.clear()  # it ends with one of its own
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
            state.clear()
        state.merge(step)

    def place_in_loop(self, loop: For, state: _Accesses, result: list[Statement], inside_lcl: bool) -> For:
        parallel, writes = loop.level.kind in ("lcl", "glb"), self.writes(loop)
        if parallel and not writes and not _barriers((loop,)):
            self.separate(state, self.accesses(loop, not inside_lcl), result)
            return loop
        if parallel:
            inner, outer = _Accesses(), self.single
            if loop.level.kind == "lcl" and loop.most <= 1:
                self.single |= {loop.level.dimension}
            body = self.place(loop.body, inner, True)
            self.single = outer
            if any(map(waits, body)) and (
                loop.threads is None or loop.most % loop.threads or not loop.count.constant
            ):
                many = f"{loop.threads} work-items" if loop.threads else "a local size that only the launch says"
                problem = NestingProblem(
                    f"work-items exchange data inside {loop.level.name} over {loop.count} elements, but with "
                    f"{many} not all of them run each step: a barrier there would hang"
                )
                raise blame(problem, loop.origin)
            self.separate(state, self.accesses(loop, not inside_lcl), result)
            return with_body(loop, body)
        names = self.races(state, self.accesses(loop, not inside_lcl))
        if names:  # once before the loop, rather than in each of its rounds
            result.append(Barrier(self.spaces(names)))
            state.clear()
        before = state.copy()
        body = self.place(loop.body, state, inside_lcl)
        if loop.trips > 1 and (writes or _barriers(body)):  # what only reads does not race with its next round
            again = state.copy()
            repeated = self.place(tuple(body), again, inside_lcl)
            if len(repeated) > len(body) or _barriers(repeated) > _barriers(body):
                names = self.shared
                body.append(Barrier(self.spaces(n for n in names if n in state.reads or n in state.writes)))
                state.clear()
        if loop.count.constant is None:
            state.merge(before)
        return with_body(loop, body)


def place_barriers(body: Body, threads: Mapping[int, int | None]) -> Body:
    """The kernel's body with the barriers it needs.

    Parameters
    ----------
    threads
        The number of work-items of a group in each dimension of mapLcl; None where only the launch says it.

    Raises
    ------
    NestingProblem
        Where a barrier would be needed in control flow that not all work-items of a group take.
    """
    has_maps = any(isinstance(s, For) and s.level.kind == "lcl" for s in walk(body))
    if not has_maps or all(count == 1 for count in threads.values()):
        return body
    written = {name for place in stores(body) for name in _names(place, True)}
    read = {name for place in loads(body) for name in _names(place, True)}
    spaces: dict[str, str] = {}
    for part in walk(body):
        if isinstance(part, Load) and part.buffer.space != "private":
            for name in (part.buffer.name, *part.buffer.targets):
                if part.buffer.targets or name in written & read:
                    spaces[name] = part.buffer.space
    counts = {d: inf if count is None else count for d, count in threads.items()}
    extent: dict[int, float] = {d: 1 if count is None else count for d, count in threads.items()}
    for part in walk(body):
        if isinstance(part, For) and part.level.kind == "lcl":
            extent[part.level.dimension] = max(extent.get(part.level.dimension, 1), part.most)
    return tuple(_Placing(spaces, counts, extent).place(body, _Accesses(), False))


def barriers_after_maps(body: Body) -> Body:
    """The kernel's body with a barrier after every mapLcl, necessary or not: the start of 000 §4.3.4.

    None stands in control flow that some work-items of a group may leave out; `place_barriers` adds those that
    the program needs at other places, such as between the rounds of a loop over work-groups.
    """
    return _after_maps(body, True)


def _after_maps(body: Body, is_uniform: bool) -> Body:
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, AROUND):
            inside = is_uniform and not isinstance(statement, If)
            if isinstance(statement, For):
                inside = inside and _is_taken_by_all(statement)
            statement = replace(statement, body=_after_maps(statement.body, inside))
        result.append(statement)
        if is_uniform and isinstance(statement, For) and statement.level.kind == "lcl":
            result.append(Barrier(("local", "global")))
    return tuple(result)


def _is_taken_by_all(loop: For) -> bool:
    """Whether all work-items of a group run the same steps of a loop."""
    if loop.level.kind in ("lcl", "glb"):
        return bool(loop.count.constant) and loop.threads is not None and loop.most % loop.threads == 0
    return not any(isinstance(v, ThreadVar) for v in loop.count.variables)


def _names(place: Load, through_pointers: bool) -> tuple[str, ...]:
    buffer: Buffer = place.buffer
    if buffer.space == "private":
        return ()
    return buffer.targets if buffer.targets and through_pointers else (buffer.name,)


def _barriers(body: Iterable[Statement]) -> int:
    return sum(isinstance(s, Barrier) for s in statements(tuple(body)))


def _own_index(dimension: int) -> NatVar:
    return NatVar(f"lcl {dimension}")


def _is_of_group(variable: NatVar) -> bool:
    """Whether a variable has one value for all work-items of a group, in the whole kernel."""
    return variable.name.startswith(("wrg_", "get_group_id("))


@lru_cache(maxsize=4096)
def _canonical(address: Nat) -> Nat:
    """The address with the index variables of all mapLcl of one dimension made equal."""
    values = {}
    for variable in address.variables:
        if isinstance(variable, ThreadVar):
            values[variable.name] = nat(_own_index(variable.dimension))
        elif variable.name.startswith("get_local_id("):
            values[variable.name] = nat(_own_index(int(variable.name[-2])))
    return address.substitute(values)


def _in_digits(address: Nat, counts: dict[NatVar, float | None]) -> tuple[Nat, dict[NatVar, float | None]]:
    """The address with `v` as ``n * quotient + rest`` where it is divided by n, and how many values each has."""
    parts = dict(counts)
    for divided, count in counts.items():
        variable: NatVar | None = divided
        while variable is not None and count is not None and (n := _divisor(address, variable)) and count % n == 0:
            quotient = NatVar(f"{variable.name} / {n}", 0, None if count == inf else int(count) // n - 1)
            rest = NatVar(f"{variable.name} % {n}", 0, n - 1)
            address = address.substitute({variable.name: n * nat(quotient) + nat(rest)})
            parts.pop(variable)
            parts |= {quotient: count / n, rest: n}
            variable, count = quotient, count / n
    return address, parts


def _divisor(value: Nat, variable: NatVar) -> int | None:
    """The smallest number by which the variable alone is divided somewhere in a value."""
    found = [
        n for op in operations(value) if op.symbol in "/%" and op.left == nat(variable) if (n := op.right.constant)
    ]
    return min(found, default=None)


def _tells_threads_apart(value: Nat) -> bool:
    return any(v.name.startswith(("lcl ", "wrg_")) for v in value.variables)
