"""Kernels that have little to do, one after the other: on a CPU one work-item runs them as one kernel.

A launch takes longer than they do. What one of them writes the next one reads in the same thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lift_egraph.codegen.c_ast import Allocate, Body, Buffer, For
from lift_egraph.codegen.c_walk import statements
from lift_egraph.language import ir

if TYPE_CHECKING:
    from lift_egraph.codegen.lowering.launch import Threads

LITTLE = 4096  # steps of all work-items of a kernel that one of them runs in less time than a launch takes
FEW_ELEMENTS = 16  # of an array of such a kernel's own, which are variables in any case
LONG_TEXT = 256  # statements of kernels that are made one


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel before clean-up: its statements, local buffers and launch; or the `parts` that it runs one by one.

    `by_one` lowers the same for one work-item, if that may be worth it.
    """

    body: Body
    locals: tuple[Buffer, ...]
    threads: Threads
    by_one: Callable[[], LoweredKernel | None] | None = None
    parts: tuple[LoweredKernel, ...] = ()


def has_little(body: Body, threads: Threads) -> bool:
    """Whether one work-item runs all of a kernel in less time than a launch takes, or does so anyway."""
    items = 1
    for size in threads.global_size:
        items *= size.constant or LITTLE + 1
    return items == 1 or items * steps_of(body) <= LITTLE


def may_be_part(kernel: LoweredKernel) -> bool:
    """Whether a kernel of one work-item has no arrays of its own but those that are variables."""
    own = (s.buffer for s in statements(kernel.body) if isinstance(s, Allocate))
    return not kernel.locals and all(b.space == "private" and b.length <= FEW_ELEMENTS for b in own)


def serial(term: ir.Expr) -> ir.Expr:
    """A term with loops for its maps over work-items."""

    def change(part: ir.Part) -> ir.Part:
        part = ir.map_parts(part, change)
        return replace(part, level=ir.SEQ) if isinstance(part, ir.MapLevel) else part

    changed = change(term)
    assert isinstance(changed, ir.Expr)
    return changed


def together(kernels: Sequence[LoweredKernel]) -> list[LoweredKernel]:
    """The kernels, with neighbours that have little to do as one; steps of an iterate stay the same kernels."""
    lowered: dict[int, LoweredKernel | None] = {}
    known: dict[tuple[int, ...], LoweredKernel] = {}
    found: list[LoweredKernel] = []
    run: list[LoweredKernel] = []

    def by_one(kernel: LoweredKernel) -> LoweredKernel | None:
        if id(kernel) not in lowered:
            made = kernel.by_one() if kernel.by_one else None
            lowered[id(kernel)] = made if made and may_be_part(made) else None
        return lowered[id(kernel)]

    def close() -> None:
        parts = tuple(made for k in run if (made := by_one(k)))
        if len(parts) > 1:
            found.append(known.setdefault(tuple(map(id, run)), LoweredKernel((), (), parts[0].threads, parts=parts)))
        else:
            found.extend(run)
        run.clear()

    for at, kernel in enumerate(kernels):
        is_beside = any(k.by_one for k in (*kernels[max(at - 1, 0) : at], *kernels[at + 1 : at + 2]))
        made = by_one(kernel) if is_beside else None
        length = sum(1 for k in (*run, kernel) for _ in statements(k.body))
        if made is None or length > LONG_TEXT or any(k is kernel for k in run):
            close()
        if made is None:
            found.append(kernel)
        else:
            run.append(kernel)
    close()
    return found


def steps_of(body: Body) -> int:
    """The steps that one work-item runs, roughly, if there are as many as parallel maps have elements."""
    total = 0
    for statement in body:
        inner = getattr(statement, "body", None)
        is_shared_out = isinstance(statement, For) and statement.is_parallel and statement.threads is None
        steps = -(-statement.expected // (statement.threads or 1)) if isinstance(statement, For) else 1
        steps = 1 if is_shared_out else steps
        total += steps * steps_of(inner) if inner is not None else 1
    return total
