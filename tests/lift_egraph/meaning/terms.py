"""Terms from texts whose names are arrays at hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_term
from lift_egraph.language.types import Scalar, array

_SCALARS = {np.dtype(numpy_type): Scalar(name) for name, numpy_type in NUMPY_TYPES.items()}


def parsed(text: str, values: Mapping[str, np.ndarray]) -> ir.Expr:
    """The term of a text on inputs of the values' types."""
    return parse_term(text, {name: array(_SCALARS[value.dtype], *value.shape) for name, value in values.items()})
