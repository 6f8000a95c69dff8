"""Python's operators on terms: ``x * y + 1.0`` builds calls of scalar operations, ``xs[i]`` reads an element.

``==`` stays structural equality; the operation is the function `lift_egraph.language.build.equal`. A number beside a
term becomes a literal of the term's type, NumPy's functions of scalars are operations, and a tuple may be taken apart:
``low, high = t``, or ``t[0]``. What else Python and NumPy know of arrays is refused, with what to write. The nodes know
nothing that is built on them, so `lift_egraph.language.ir.Expr` gets its operators here, when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from lift_egraph.errors import TypeProblem
from lift_egraph.language.check import type_of
from lift_egraph.language.functions import indexed, scalar_call
from lift_egraph.language.ir import Expr, Input, Var
from lift_egraph.language.nat import Nat
from lift_egraph.language.other_words import UNKNOWN
from lift_egraph.language.scalar import OF_BOOLS, OPERATIONS
from lift_egraph.language.tuples import components
from lift_egraph.language.types import BOOL, Array, Pair, Scalar

ELEMENTS = "map_(f, xs) for what is done with each element, reduce_(add, 0.0, xs) for their sum"
LAID_OUT = "the patterns say how arrays are laid out: split, join, transpose, slice_"
NUMPY = {
    "absolute": "abs", "add": "add", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2",
    "bitwise_and": "bit_and", "bitwise_or": "bit_or", "bitwise_xor": "bit_xor", "ceil": "ceil", "cos": "cos",
    "cosh": "cosh", "divide": "div", "exp": "exp", "fabs": "abs", "floor": "floor", "greater": "gt",
    "greater_equal": "ge", "left_shift": "shift_left", "less": "lt", "less_equal": "le", "log": "log",
    "logical_and": "and", "logical_not": "not", "logical_or": "or", "maximum": "max", "minimum": "min",
    "multiply": "mul", "negative": "neg", "power": "pow", "remainder": "mod", "right_shift": "shift_right",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "subtract": "sub", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
OF_ARRAYS = {
    "sum": "reduce_(add, 0.0, xs)",
    "mean": "reduce_(add, 0.0, xs) / nat('N')",
    "max": "reduce_(max_, -inf, xs)",
    "min": "reduce_(min_, inf, xs)",
    "dot": "reduce_(add, 0.0, map_(mul, zip_(xs, ys)))",
    "T": "transpose(xs)",
    "astype": "map_(to_f32, xs)",
    "reshape": LAID_OUT,
    "flatten": "join(xs)",
    "shape": "the sizes of its type: nat('N')",
    "where": "select(c, a, b)",
    "clip": "min_(max_(x, low), high)",
}  # what NumPy's arrays have, and terms have not
DOT = f"{OF_ARRAYS['dot']} of vectors"
CUT = "x / y, which is cut off on integers, or floor(x / y)"
NO_NUMBERS = {
    "float": ("a number", "to_f32(x) as a cast, and exp(x) for math.exp(x)"),
    "int": ("a whole number", "to_i32(x)"),
    "index": ("a whole number", "a size there: nat('N'); an element at a computed place is xs[i]"),
    "round": ("round", "floor(x + 0.5)"),
    "floor": ("math.floor", "floor(x)"),
    "ceil": ("math.ceil", "ceil(x)"),
    "floordiv": ("//", CUT),
    "rfloordiv": ("//", CUT),
    "divmod": ("divmod", "x / y and x % y"),
    "contains": ("in", "reduce_(or_, literal(False), map_(lambda x: equal(x, v), xs))"),
    "matmul": ("@", DOT),
    "rmatmul": ("@", DOT),
}  # what Python asks of numbers and arrays


class NoAttribute(TypeProblem, AttributeError):
    """What terms have not, though NumPy's arrays have it."""


def _truth(self: Expr) -> bool:
    """Terms are true, but for conditions and variables of scalars: those have no value while the term is built."""
    if (isinstance(self, Var | Input) and isinstance(self.type, Scalar)) or type_of(self) == BOOL:
        raise TypeProblem(
            "a condition has no value while a term is built; choose with select, min_ or max_, and write a & b, a | b "
            "or ~a of conditions"
        )
    return True


def _elements(self: Expr) -> Iterator[Expr]:
    """The components of a tuple, so that Python takes it apart."""
    t = type_of(self)
    if not isinstance(t, Pair):
        raise TypeProblem(f"Python cannot go through {t} while a term is built; write {ELEMENTS}")
    return components(self)


def item(value: Expr, index: Any) -> Expr:
    """An element of an array, or a component of a tuple.

    Raises
    ------
    TypeProblem
        If a tuple has no such component.
    """
    if not isinstance(type_of(value), Pair):
        return indexed(value, index)
    parts = [*components(value)]
    place = index.constant if isinstance(index, Nat) else index
    if isinstance(place, bool) or not isinstance(place, int) or not -len(parts) <= place < len(parts):
        given = f"a value of the type {type_of(index)}" if isinstance(index, Expr) else index
        raise TypeProblem(f"a component of {type_of(value)} is one of 0 to {len(parts) - 1}, got {given}")
    return parts[place]


def _length(self: Expr) -> NoReturn:
    t = type_of(self)
    known = f"its size is {t.size}, as a term nat({str(t.size)!r})" if isinstance(t, Array) else f"this is of type {t}"
    raise TypeProblem(f"len() has no value while a term is built; {known}")


def _no_number(what: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise TypeProblem(f"Python asks for {what}, but a term has no value while it is built; write {instead}")

    return refuse


def _missing(self: Expr, name: str) -> NoReturn:
    """An attribute that a term has not."""
    if name not in OF_ARRAYS:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    raise NoAttribute(f"a term has no .{name}; write {OF_ARRAYS[name]}")


def _by_numpy(self: Expr, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
    """NumPy's functions of scalars are operations; terms are compared as by ``==``."""
    name = ufunc.__name__
    if method == "__call__" and name in NUMPY:
        return scalar_call(NUMPY[name], *inputs)
    if method == "__call__" and name in ("equal", "not_equal"):
        return name == "not_equal"  # no number of NumPy's is written like a term
    called = name if method == "__call__" else f"{name}.{method}"
    instead = f"write {OF_ARRAYS['sum'] if called == 'add.reduce' else ELEMENTS}"
    raise TypeProblem(f"NumPy's {called} does not work on terms; {UNKNOWN.get(called, instead)}")


def _of_numpy(self: Expr, function: Any, *_: Any) -> NoReturn:
    name = function.__name__
    raise TypeProblem(f"NumPy's {name} does not work on terms; write {OF_ARRAYS.get(name, ELEMENTS)}")


def _called(op: str, *terms: Any) -> Expr:
    """An operation by its sign; the signs of bits are those of bools, too."""
    known = next(term for term in terms if isinstance(term, Expr))
    return scalar_call(OF_BOOLS[op] if op in OF_BOOLS and type_of(known) == BOOL else op, *terms)


for _op in OPERATIONS.values():
    if _op.python:
        setattr(Expr, f"__{_op.python}__", lambda *terms, op=_op.name: _called(op, *terms))
        if _op.arity == 2 and _op.kind != "comparison":  # Python turns a comparison around
            setattr(Expr, f"__r{_op.python}__", lambda term, other, op=_op.name: _called(op, other, term))
for _name, _told in NO_NUMBERS.items():
    setattr(Expr, f"__{_name}__", _no_number(*_told))
Expr.__bool__ = _truth  # pyright: ignore[reportAttributeAccessIssue]  # arrays are true
Expr.__getitem__ = item
Expr.__iter__ = _elements
Expr.__len__ = _length
Expr.__getattr__ = _missing
Expr.__array_ufunc__ = _by_numpy
Expr.__array_function__ = _of_numpy
