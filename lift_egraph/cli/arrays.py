"""The arrays and numbers that `run` reads and writes."""

from __future__ import annotations

import tokenize
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lift_egraph.codegen.plans.kernel import BufferInfo, Plan, ScalarInfo
from lift_egraph.codegen.plans.open_plan import OpenBuffer, OpenPlan
from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.files import replacing, require_writable_file
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar

# What NumPy raises for files that hold no array: it reads the header as an expression of Python.
_NO_HEADER = (
    ValueError, TypeError, LookupError, OverflowError, MemoryError, SyntaxError, RecursionError, tokenize.TokenError,
)  # fmt: skip


def input_value(plan: Plan | OpenPlan, name: str, texts: list[str]) -> Any:
    """The value of an input from the texts for its leaves; None for one that the plan does not have."""
    places = [p for p in (*plan.inputs, *plan.scalars) if p.value == name]
    places.sort(key=lambda p: p.components)
    if not places:
        return None
    if len(texts) != len(places):
        raise InputProblem(f"the input {name} has {len(places)} array(s), each needs an --input; got {len(texts)}")
    return _nest([(p.components, _leaf_value(p, t)) for p, t in zip(places, texts, strict=True)])


def _nest(found: list[tuple[tuple[int, ...], Any]]) -> Any:
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    first, second = ([(path[1:], value) for path, value in found if path[0] == side] for side in (0, 1))
    return _nest(first), _nest(second)


def _leaf_value(place: BufferInfo | OpenBuffer | ScalarInfo, text: str) -> Any:
    if isinstance(place, ScalarInfo) and not text.endswith(".npy"):
        return _scalar(place, text)
    return _load(text)


def _scalar(place: ScalarInfo, text: str) -> Any:
    """The number that a text denotes, in the element type of a scalar input."""
    is_whole = Scalar(place.element).is_integer
    reads = {"bool": lambda t: {"true": 1, "false": 0, "1": 1, "0": 0}[t]}
    try:
        with np.errstate(over="raise"):
            return NUMPY_TYPES[place.element](reads.get(place.element, int if is_whole else float)(text))
    except (KeyError, ValueError, OverflowError, FloatingPointError):
        raise InputProblem(f"the input {place.value}: {text!r} is no {place.element} number and no .npy file") from None


def _load(text: str) -> np.ndarray:
    """The array in a file, mapped; nothing is unpickled, and no memory is taken before its shape is known."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's parser, about a header that is none
            return np.lib.format.open_memmap(text, mode="r")
    except OSError as problem:
        raise InputProblem(f"cannot read {text}: {problem.strerror or problem}") from None
    except _NO_HEADER as problem:
        raise InputProblem(f"{text} is not a .npy file with an array of numbers: {problem}") from None


def check_outputs(paths: list[Path]) -> None:
    """Raise an `OutputProblem` for paths that cannot be written, before any work is done."""
    for path in paths:
        require_writable_file(path)
    own = [path.resolve() for path in paths if path.is_file() or not path.exists()]
    if len(set(own)) < len(own):
        raise OutputProblem("each --output needs a file of its own")


def save(path: Path, array: np.ndarray) -> None:
    with replacing(path) as file:
        plain: Any = SimpleNamespace(write=file.write)  # NumPy asks a file for its place, which a pipe does not have
        np.lib.format.write_array(plain, array, allow_pickle=False)
