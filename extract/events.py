"""What the work-items of a kernel do, event by event: memory accesses, barriers, loop bodies, branches.

The tree that the kernel's text was printed from is walked once, with the domain of each statement; the size of that
says how often it runs in all.

Source: 000 §6.3.2.2 and Algorithm 4 (accesses), §6.3.3 and Algorithm 5 (branches and barriers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.iteration_domain import Axis, Domain, apart, is_data
from lift_egraph.language.nat import Nat, is_at_least, nat
from lift_egraph.language.types import SCALAR_BYTES, scalar_of, width_of

_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}
_LAZY = ("select", "and", "or")  # whether arguments after the first are computed, data decides


class MemoryAccess(NamedTuple):
    """A load or store of `bytes` in global or local memory.

    `address` says how it moves, in elements of `element_bytes`; accesses that begin elsewhere are alike.
    """

    kind: Literal["load", "store"]
    space: str
    buffer: str
    address: Nat
    element_bytes: int
    bytes: int
    domain: Domain


class Operation(NamedTuple):
    """An arithmetic operation on some lanes."""

    op: str
    lanes: int
    domain: Domain


@dataclass
class Events:
    """The events of a kernel: those alike once, with how many statements or expressions they stand for.

    Attributes
    ----------
    items
        Work-items of the launch.
    barriers, for_bodies, ifs
        The domains of barriers, of the bodies of loops, and around ``if`` statements (not in them: all that come to
        one count).
    decided_by_data
        Whether what the kernel reads decides what it does: then both sides of a choice by such data are counted.
    """

    items: int
    accesses: Counter[MemoryAccess] = field(default_factory=Counter)
    operations: Counter[Operation] = field(default_factory=Counter)
    barriers: Counter[Domain] = field(default_factory=Counter)
    for_bodies: Counter[Domain] = field(default_factory=Counter)
    ifs: Counter[Domain] = field(default_factory=Counter)
    decided_by_data: bool = False

    @property
    def addressed_by_data(self) -> bool:
        """Whether what the kernel reads says where in global memory it reads or writes."""
        return any(access.space == "global" and is_data(access.address) for access in self.accesses)


def events_of(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> Events:
    """The events of a kernel.

    Parameters
    ----------
    sizes
        Values of the sizes that the kernel takes as arguments, by their names in its text.
    """
    walk = _Walk(kernel, {name: nat(value) for name, value in (sizes or {}).items()})
    walk.body(kernel.body, walk.root)
    return walk.found


class _Walk:
    """Walks a kernel; `known` are the values of variables that are no indices."""

    def __init__(self, kernel: Kernel, known: dict[str, Nat]) -> None:
        x, y, z = kernel.launch.global_size
        local = kernel.launch.local_size
        kinds = {s.level.kind for s in c_walk.statements(kernel.body) if isinstance(s, c_ast.For)}
        if kinds & {"wrg", "lcl"} and local:
            counts = {("wrg", d): n // k for d, (n, k) in enumerate(zip((x, y, z), local, strict=True))}
            counts |= {("lcl", d): k for d, k in enumerate(local)}
        else:
            counts = {("glb", d): n for d, n in enumerate((x, y, z))}
        self.workers = counts
        self.root = Domain(tuple(Axis(f"{_OWN[k]}({d})", n, k, d, n) for (k, d), n in counts.items()))
        self.found = Events(x * y * z)
        self.known = known
        self.changes = _sets_lengths(kernel.body)

    # --- statements -------------------------------------------------------------------------------

    def body(self, body: c_ast.Body, domain: Domain) -> None:
        for statement in body:
            self.statement(statement, domain)

    def statement(self, statement: c_ast.Statement, domain: Domain) -> None:
        match statement:
            case c_ast.For():
                self.loop(statement, domain)
            case c_ast.If(conditions, body):
                self.found.ifs[domain] += 1
                self.body(body, domain.where(self.conditions(conditions, domain)))
            case c_ast.Block(body):
                self.body(body, domain)
            case c_ast.Let(_, value):
                self.value(value, domain)
            case c_ast.Store(place, value):
                self.value(value, domain)
                self.place(place, domain)
            case c_ast.Barrier():
                self.found.barriers[domain] += 1
            case c_ast.LookBack():
                self.value(statement.total, domain)
                self.place(statement.states, domain)
                self.value(statement.states, domain)
                self.found.barriers[domain] += statement.barriers
            case c_ast.SetIndex(variable, value, _):
                self.known[variable.name] = self.index(value)

    def loop(self, loop: c_ast.For, domain: Domain) -> None:
        count = self.index(loop.count)
        if self.changes and not loop.is_parallel and _sets_lengths(loop.body):
            # each step has its own lengths, as numbers
            for step in range(count.constant or 0):
                inside = domain.inside(Axis(loop.variable.name, 1))
                self.found.for_bodies[inside] += 1
                self.body(c_walk.substitute(loop.body, {loop.variable.name: nat(step)}), inside)
            return
        level, workers = loop.level, 1
        if loop.is_parallel:
            workers = self.workers[level.kind, level.dimension]
        self.found.decided_by_data |= is_data(count)
        length = count.constant
        if length is None:
            length = loop.likely or (count.range[1] if count.range[1] is not None else loop.most)
        own = f"{_OWN[level.kind]}({level.dimension})" if loop.is_parallel else ""
        axis = Axis(loop.variable.name, length, level.kind, level.dimension, workers, own)
        inside = domain.inside(axis)
        if count.constant is None:
            inside = inside.where((count - nat(loop.variable) - 1,))
        if loop.is_parallel and loop.threads is not None and is_at_least(loop.threads, loop.count):
            if loop.count != nat(loop.threads):
                self.found.ifs[domain] += 1
        else:
            self.found.for_bodies[inside] += 1
        self.body(loop.body, inside)

    def place(self, place: c_ast.CExpr, domain: Domain) -> None:
        whole = place.vector if isinstance(place, c_ast.Lane) else place
        if isinstance(whole, c_ast.Load):
            self.access("store", whole, domain)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, value: c_ast.CExpr, domain: Domain) -> None:
        match value:
            case c_ast.Load():
                self.access("load", value, domain)
            case c_ast.Operate(op, arguments, t):
                lanes = max(width_of(t), *(width_of(a.type) for a in arguments)) if arguments else width_of(t)
                self.found.operations[Operation(op, lanes, domain)] += 1
                for number, argument in enumerate(arguments):
                    self.value(argument, domain)
                    if op in _LAZY and number and any(map(_is_memory, c_walk.loads(argument))):
                        self.found.decided_by_data = True
            case c_ast.Choose(conditions, inside, outside):
                conditions = self.conditions(conditions, domain)
                self.value(inside, domain.where(conditions))
                self.value(outside, domain.except_where(conditions))
            case c_ast.IndexValue(index):
                self.data(self.index(index), domain)
            case _:
                for part in c_walk.children(value):
                    if isinstance(part, c_ast.CExpr):
                        self.value(part, domain)

    def access(self, kind: Literal["load", "store"], load: c_ast.Load, domain: Domain) -> None:
        buffer, index = load.buffer, self.index(load.index)
        self.data(index, domain)
        if _is_memory(load):
            size = SCALAR_BYTES[scalar_of(buffer.element).name]
            moving = Nat(apart(index.terms)[0])
            width = load.width * width_of(buffer.element)
            made = MemoryAccess(kind, buffer.space, buffer.name, moving, size, width * size, domain)
            self.found.accesses[made] += 1

    def conditions(self, conditions: tuple[Nat, ...], domain: Domain) -> tuple[Nat, ...]:
        found = tuple(map(self.index, conditions))
        for condition in found:
            self.data(condition, domain)
            self.found.decided_by_data |= is_data(condition)
        return found

    def data(self, index: Nat, domain: Domain) -> None:
        """The loads that an index needs."""
        for variable in c_walk.data_in(index):
            self.value(variable.value, domain)

    def index(self, index: Nat) -> Nat:
        return c_walk.substitute_index(index, self.known) if self.known else index


def _is_memory(load: c_ast.Load) -> bool:
    return load.buffer.space != "private"


def _sets_lengths(body: c_ast.Body) -> bool:
    """Whether statements set a variable on which lengths depend."""
    return any(isinstance(s, c_ast.SetIndex) for s in c_walk.statements(body))
