"""What the work-items of a kernel do, event by event: memory accesses, barriers, loop bodies, branches.

The parts of the tree that the kernel's text was printed from are walked once, with the domain of each; the size of that
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
from lift_egraph.extract.basic_blocks import (
    BasicBlock,
    Choice,
    Compound,
    Parts,
    Reached,
    block_of,
    blocks_in,
    blocks_of,
)
from lift_egraph.extract.index_values import index_of, without_data
from lift_egraph.extract.iteration_domain import Axis, Domain, is_data
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat

_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}


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
    walk.parts(walk.blocks.parts, walk.root)
    return walk.found


class _Walk:
    """Walks a kernel; `known` are the values of variables that are no indices, and of those that count in steps.

    `named` are constants that only indices decide.
    """

    def __init__(self, kernel: Kernel, known: dict[str, Nat]) -> None:
        self.blocks = blocks_of(kernel)
        x, y, z = kernel.launch.global_size
        local = kernel.launch.local_size
        if self.blocks.kinds & {"wrg", "lcl"} and local:
            counts = {("wrg", d): n // k for d, (n, k) in enumerate(zip((x, y, z), local, strict=True))}
            counts |= {("lcl", d): k for d, k in enumerate(local)}
        else:
            counts = {("glb", d): n for d, n in enumerate((x, y, z))}
        self.workers = {("glb", d): n for d, n in enumerate((x, y, z))} | counts
        self.root = Domain(tuple(Axis(f"{_OWN[k]}({d})", n, k, d, n) for (k, d), n in counts.items()))
        self.found = Events(x * y * z)
        self.known = known
        self.named: dict[str, Nat] = {}

    # --- statements -------------------------------------------------------------------------------

    def parts(self, parts: Parts, domain: Domain) -> None:
        for part in parts:
            if isinstance(part, Compound):
                self.compound(part, domain)
            else:
                self.block(self.at_known(part), domain)

    def at_known(self, block: BasicBlock) -> BasicBlock:
        if self.known:
            block = block_of(c_walk.substitute(tuple(block.statements), self.known), self.named)
        for statement in block.statements:
            if isinstance(statement, c_ast.Let) and (value := index_of(statement.value, self.named)) is not None:
                self.named[statement.name] = value
        return block

    def compound(self, part: Compound, domain: Domain) -> None:
        match part.statement:
            case c_ast.For():
                self.loop(part.statement, part.parts, domain)
            case c_ast.If(conditions, _):
                self.found.ifs[domain] += 1
                self.parts(part.parts, domain.where(self.conditions(conditions, domain)))
            case c_ast.Block():
                self.parts(part.parts, domain)
            case c_ast.Barrier():
                self.found.barriers[domain] += 1
            case c_ast.LookBack(states) as look_back:
                published = [part for t in look_back.total for part in (c_ast.Store(states, t), c_ast.Let("", states))]
                self.block(self.at_known(block_of(published)), domain)
                self.found.barriers[domain] += look_back.barriers
            case c_ast.SetIndex(variable, value, _):
                self.known[variable.name] = self.index(value)
            case _:
                raise AssertionError(part.statement)

    def loop(self, loop: c_ast.For, parts: Parts, domain: Domain) -> None:
        count = self.index(loop.count)
        if self.blocks.sets_lengths and not loop.is_parallel and blocks_in(loop.body).sets_lengths:
            # each step has its own lengths, as numbers
            for step in range(count.constant or 0):
                inside = domain.inside(Axis(loop.variable.name, 1))
                self.found.for_bodies[inside] += 1
                body = c_walk.substitute(loop.body, {loop.variable.name: nat(step * loop.step)})
                self.parts(blocks_in(body).parts, inside)
            return
        level, workers = loop.level, 1
        if loop.is_parallel:
            workers = self.workers[level.kind, level.dimension]
        self.found.decided_by_data |= is_data(count)
        length = count.constant
        if length is None:
            likely = loop.likely if is_data(count) else 0
            length = likely or (count.range[1] if count.range[1] is not None else loop.most)
        own = f"{_OWN[level.kind]}({level.dimension})" if loop.is_parallel else ""
        if loop.step > 1:  # the axis counts the steps
            steps = NatVar(loop.variable.name, 0, max(length - 1, 0))
            self.known[loop.variable.name] = loop.step * nat(steps)
        axis = Axis(loop.variable.name, length, level.kind, level.dimension, workers, own)
        inside = domain.inside(axis)
        if count.constant is None:
            inside = inside.where((count - nat(loop.variable) - 1,))
        if loop.is_parallel and loop.threads is not None and is_at_least(loop.threads, loop.count):
            if loop.count != nat(loop.threads):
                self.found.ifs[domain] += 1
        else:
            self.found.for_bodies[inside] += 1
        self.parts(parts, inside)

    # --- what blocks do ---------------------------------------------------------------------------

    def block(self, block: BasicBlock, domain: Domain) -> None:
        found = self.found
        found.decided_by_data |= block.lazy
        for arithmetic, number in block.operations.items():
            found.operations[Operation(arithmetic.op, arithmetic.lanes, domain)] += number
        times = Counter(access[0] for access in block.accesses if not isinstance(access, Choice))
        for access in block.accesses:
            if isinstance(access, Choice):
                conditions = self.conditions(access.conditions, domain)
                self.block(access.inside, domain.where(conditions))
                self.block(access.outside, domain.except_where(conditions))
            elif (number := times.pop(access[0], 0)) and access[0].buffer.space != "private":
                found.accesses[self.made(access[0], domain)] += number
        if block.repeated is not None:
            self.block(block.repeated, domain)

    def conditions(self, conditions: tuple[Nat, ...], domain: Domain) -> tuple[Nat, ...]:
        found = tuple(map(self.index, conditions))
        for condition in found:
            self.found.decided_by_data |= is_data(condition)
            if data := c_walk.data_in(condition):
                self.block(block_of(c_ast.Let("", each.value) for each in data), domain)
        return found

    def index(self, index: Nat) -> Nat:
        return without_data(c_walk.substitute_index(index, self.known) if self.known else index, self.named)

    def made(self, reached: Reached, domain: Domain) -> MemoryAccess:
        buffer, size = reached.buffer, reached.element_bytes
        moving = without_data(reached.moving, self.named)
        return MemoryAccess(reached.kind, buffer.space, buffer.name, moving, size, reached.width * size, domain)
