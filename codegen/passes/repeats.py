"""Kernels that differ in their buffers only become one function that is launched several times.

The steps of an iterate over whole kernels read one temporary and write the other, in turns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lift_egraph.codegen.c_ast import Buffer, Load
from lift_egraph.codegen.c_walk import rewrite, walk
from lift_egraph.codegen.plans.kernel import Argument, Kernel


def share_texts(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels, where those with equal bodies have the name and text of the first of them."""
    if len(kernels) < 2:
        return kernels
    known: dict[Any, tuple[Kernel, list[str]]] = {}
    result = []
    for kernel in kernels:
        form, names = _canonical(kernel)
        first, first_names = known.setdefault(form, (kernel, names))
        new = dict(zip(first_names, names, strict=True))
        arguments = tuple(Argument(a.kind, new.get(a.name, a.name)) for a in first.arguments)
        result.append(replace(first, arguments=arguments, body=kernel.body))
    return result


def _canonical(kernel: Kernel) -> tuple[Any, list[str]]:
    """What two kernels with one text have in common, and the buffers of this one in order of appearance."""
    names: dict[str, str] = {}
    for part in walk(kernel.body):
        if isinstance(part, Load) and part.buffer.space == "global":
            names.setdefault(part.buffer.name, f"#{len(names)}")

    def change(part: Any) -> Any:
        if isinstance(part, Load) and part.buffer.space == "global":
            buffer = Buffer(names[part.buffer.name], "global", part.buffer.element)
            return Load(buffer, rewrite(part.index, change), part.width)
        return None

    return (rewrite(kernel.body, change), kernel.launch, kernel.global_size, kernel.local_bytes), list(names)
