"""Between the values of a program and the arrays of a plan, and plans on disk.

A value lies in one array per scalar leaf of its type (arrays of pairs are kept as pairs of arrays).
A directory holds a plan as ``kernel.cl`` and ``launch.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_egraph.codegen.plans.kernel import FORMAT, BufferInfo, Plan, ScalarInfo
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.errors import InputProblem, OutputProblem, SyntaxProblem
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import SCALAR_BYTES
from lift_egraph.meaning.values import Value


def byte_size(buffer: BufferInfo) -> int:
    """The size of a buffer in bytes."""
    return buffer.length * SCALAR_BYTES[buffer.element]


def split_inputs(plan: Plan, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a plan, by the names of its buffers and scalars, from the values of its program's inputs.

    Parameters
    ----------
    inputs
        For each input an array, a number, or for pairs a tuple of two.

    Raises
    ------
    InputProblem
        For a missing or unknown input, or one of the wrong shape or element type.
    """
    places = (*plan.inputs, *plan.scalars)
    names = list(dict.fromkeys(p.value for p in places))
    for name in inputs:
        if name not in names:
            raise InputProblem(f"{plan.name} uses no input {name!r}; it uses {', '.join(names) or 'none'}")
    for name in names:
        if name not in inputs:
            raise InputProblem(f"the input {name} of {plan.name} is missing")
    return {p.name: _array(p, inputs[p.value]) for p in places}


def _array(place: BufferInfo | ScalarInfo, value: Any) -> np.ndarray:
    where = f"the input {place.value}" + "".join(f", component {c}" for c in place.components)
    for component in place.components:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise InputProblem(f"{where}: expected a tuple of two values, got {type(value).__name__}")
        value = value[component]
    array, dtype = np.asarray(value), np.dtype(NUMPY_TYPES[place.element])
    is_number = isinstance(value, bool | int | float)
    if array.dtype != dtype and not (is_number and np.can_cast(array.dtype, dtype, "same_kind")):
        raise InputProblem(f"{where} must have elements of type {dtype} ({place.element}), got {array.dtype}")
    shape = _shape(place) if isinstance(place, BufferInfo) else ()
    if array.shape != shape:
        raise InputProblem(f"{where} must have the shape {shape}, got the shape {array.shape}")
    return np.ascontiguousarray(array, dtype).reshape(array.shape)


def join_outputs(plan: Plan, outputs: Mapping[str, np.ndarray]) -> Value:
    """The value of the program, an array or a nested tuple of two, from its output arrays."""

    def value(buffers: Sequence[BufferInfo], depth: int) -> Value:
        if len(buffers) == 1 and len(buffers[0].components) == depth:
            return outputs[buffers[0].name].reshape(_shape(buffers[0]))
        first, second = ([b for b in buffers if b.components[depth] == component] for component in (0, 1))
        return value(first, depth + 1), value(second, depth + 1)

    return value(plan.outputs, 0)


def _shape(buffer: BufferInfo) -> tuple[int, ...]:
    """The shape of a buffer's array; a buffer without one is flat."""
    return buffer.shape or (() if buffer.length == 1 else (buffer.length,))


def save_plan(plan: Plan | OpenPlan, directory: Path | str) -> None:
    """Write ``kernel.cl`` and ``launch.json`` into a directory.

    Raises
    ------
    OutputProblem
        When the directory cannot be made or written to.
    """
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "kernel.cl").write_text(plan.source)
        (directory / "launch.json").write_text(json.dumps(plan.to_json(), indent=2) + "\n")
    except OSError as error:
        raise OutputProblem(f"cannot write to {directory}: {error.strerror}") from None


def load_plan(directory: Path | str, sizes: Mapping[str, int] | None = None) -> Plan:
    """The plan in a directory of ``kernel.cl`` and ``launch.json``, at given sizes where they are open.

    Raises
    ------
    InputProblem
        When a file is missing or is no launch description.
    SizeProblem
        When the sizes are not right.
    """
    plan = read_plan(directory)
    return plan.at(sizes or {}) if isinstance(plan, OpenPlan) else plan


def read_plan(directory: Path | str) -> Plan | OpenPlan:
    """The plan in a directory, with its sizes open if they are arguments of the kernels without a value.

    Raises
    ------
    InputProblem
        When a file is missing or is no launch description.
    """
    directory = Path(directory)
    where = directory / "launch.json"
    try:
        source = (directory / "kernel.cl").read_text()
        content = json.loads(where.read_text())
    except OSError as error:
        raise InputProblem(f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise InputProblem(f"{directory} holds no kernel: {error}") from None
    try:
        if content["format"] != FORMAT:
            raise InputProblem(f"{where} has the format {content['format']}, expected {FORMAT}")
        is_open = any("value" not in s for s in content["sizes"])
        plan = OpenPlan.from_json(content, source) if is_open else Plan.from_json(content, source)
        _check(plan)
    except KeyError as error:
        raise InputProblem(f"{where} is no launch description: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, SyntaxProblem) as error:
        raise InputProblem(f"{where} is no launch description: {error}") from None
    return plan


def _check(plan: Plan | OpenPlan) -> None:
    """Raise `ValueError` for a plan, read from a file, that contradicts itself."""
    if not plan.outputs:
        raise ValueError("it has no output")
    for buffer in plan.buffers:
        if buffer.role not in ("input", "output", "temporary"):
            raise ValueError(f"the buffer {buffer.name} has the unknown role {buffer.role!r}")
    for place in (*plan.buffers, *plan.scalars):
        if place.element not in NUMPY_TYPES:
            raise ValueError(f"{place.name} has the unknown element type {place.element!r}")
    known = {"buffer": {b.name for b in plan.buffers}, "scalar": {s.name for s in plan.scalars}}
    known["size"] = {s.name for s in plan.sizes}
    for kernel in plan.kernels:
        for argument in kernel.arguments:
            if argument.name not in known.get(argument.kind, ()):
                raise ValueError(f"the kernel {kernel.name} takes the {argument.kind} {argument.name}, which it lacks")
