"""Between the values of a program and the arrays of a plan, and plans on disk.

A value lies in one array per scalar leaf of its type (arrays of pairs are kept as pairs of arrays).
A directory holds a plan as ``kernel.cl`` and ``launch.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lift_egraph.codegen.plans.kernel import BufferInfo, Plan, ScalarInfo
from lift_egraph.codegen.plans.launch_file import FORMAT, LaunchFile, launch_of, plan_of, sha256
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.errors import InputProblem, LiftError
from lift_egraph.files import json_text, read_json, read_text, write_texts
from lift_egraph.language.nat import nat
from lift_egraph.language.ranges import Offsets, Range
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
    require_names(plan, inputs)
    return {p.name: array_of(p, component_of(p, inputs[p.value])) for p in places}


def require_names(plan: Plan | OpenPlan, inputs: Mapping[str, Any]) -> None:
    """Check that there are all inputs of a plan, and no others.

    Raises
    ------
    InputProblem
        If one is missing, or unknown.
    """
    names = list(dict.fromkeys(p.value for p in (*plan.inputs, *plan.scalars)))
    for name in inputs:
        if name not in names:
            raise InputProblem(f"{plan.name} uses no input {name!r}; it uses {', '.join(names) or 'none'}")
    for name in names:
        if name not in inputs:
            raise InputProblem(f"the input {name} of {plan.name} is missing")


def component_of(place: BufferInfo | ScalarInfo, value: Any) -> Any:
    """The part of an input's value, or of the place for a result, that a leaf is.

    Raises
    ------
    InputProblem
        If the value is no tuple of tuples as the leaf's type says.
    """
    for component in place.components:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise InputProblem(f"{shown(place)}: expected a tuple of two values, got {type(value).__name__}")
        value = value[component]
    return value


def shown(place: BufferInfo | ScalarInfo) -> str:
    """A leaf in messages."""
    what = "the result" if isinstance(place, BufferInfo) and place.role == "output" else f"the input {place.value}"
    return what + "".join(f", component {c}" for c in place.components)


def require_form(place: BufferInfo | ScalarInfo, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Check that an array has the element type and shape of a leaf.

    Raises
    ------
    InputProblem
        If it has not.
    """
    wanted = np.dtype(NUMPY_TYPES[place.element])
    if dtype != wanted:
        raise InputProblem(f"{shown(place)} must have elements of type {wanted} ({place.element}), got {dtype}")
    if shape != shape_of(place):
        raise InputProblem(f"{shown(place)} must have the shape {shape_of(place)}, got the shape {shape}")


def array_of(place: BufferInfo | ScalarInfo, value: Any) -> np.ndarray:
    """A leaf as a contiguous array of its element type; a number of Python's may be of any that holds it.

    Raises
    ------
    InputProblem
        If it is of another type or shape, no offsets where the program takes offsets, or has numbers outside of their
        range.
    """
    array, dtype = np.asarray(value), np.dtype(NUMPY_TYPES[place.element])
    is_number = isinstance(value, bool | int | float)
    if is_number and dtype.kind in "iuf" and (dtype.kind == "f" or isinstance(value, int)):
        most = float(np.finfo(dtype).max) if dtype.kind == "f" else int(np.iinfo(dtype).max)
        least = -most if dtype.kind == "f" else int(np.iinfo(dtype).min)
        if not (least <= value <= most or value in (np.inf, -np.inf) or value != value):
            raise InputProblem(f"{shown(place)}: {value} is beyond the range of {place.element}")
        array = array.astype(dtype)
    is_castable = is_number and np.can_cast(array.dtype, dtype, "same_kind")
    require_form(place, dtype if is_castable else array.dtype, array.shape)
    array = np.ascontiguousarray(array, dtype).reshape(array.shape)
    if problem := _problem(place, array):
        raise InputProblem(f"{shown(place)}: {problem}")
    return array


def _problem(place: BufferInfo | ScalarInfo, array: np.ndarray) -> str | None:
    if isinstance(place, BufferInfo) and place.offsets is not None:
        return Offsets(nat(place.offsets)).problem(array)
    return None if place.low is None or place.high is None else Range(place.low, place.high).problem(array)


def join_outputs(plan: Plan, outputs: Mapping[str, np.ndarray]) -> Value:
    """The value of the program, an array or a nested tuple of two, from its output arrays."""

    def value(buffers: Sequence[BufferInfo], depth: int) -> Value:
        if len(buffers) == 1 and len(buffers[0].components) == depth:
            array, shape = outputs[buffers[0].name], shape_of(buffers[0])
            return array if array.shape == shape else array.reshape(shape)
        first, second = ([b for b in buffers if b.components[depth] == component] for component in (0, 1))
        return value(first, depth + 1), value(second, depth + 1)

    return value(plan.outputs, 0)


def shape_of(place: BufferInfo | ScalarInfo) -> tuple[int, ...]:
    """The shape of a leaf's array; a buffer without one is flat."""
    if isinstance(place, ScalarInfo):
        return ()
    return place.shape or (() if place.length == 1 else (place.length,))


def save_plan(plan: Plan | OpenPlan, directory: Path | str) -> None:
    """Write ``kernel.cl`` and ``launch.json`` into a directory.

    Raises
    ------
    OutputProblem
        When the directory cannot be made or written to.
    """
    write_texts(Path(directory), plan_texts(plan))


def plan_texts(plan: Plan | OpenPlan) -> dict[str, str]:
    """The files of a plan: their texts by their names."""
    return {"kernel.cl": plan.source, "launch.json": json_text(launch_of(plan))}


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
    where, text = directory / "launch.json", directory / "kernel.cl"
    source = read_text(text)
    content = read_json(where, LaunchFile, FORMAT)
    if content.kernel_sha256 != sha256(source):
        raise InputProblem(
            f"{where} was not written for {text}: compile the kernel again; if you changed its text on purpose, write "
            f"{sha256(source)} for kernel_sha256"
        )
    try:
        return plan_of(content, source)
    except (ValueError, LiftError) as error:
        raise InputProblem(f"{where} is no launch description: {error}") from None
