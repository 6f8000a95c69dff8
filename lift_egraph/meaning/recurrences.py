"""Long folds by operators that are no built-in operation, such as Horner's rule: one step after the other, but fast.

The states of such a fold are found by a Python function made for its operator, a step at a time. What it says is only a
guess: the operator itself is then evaluated on all states at once, and must lead from each to the next. So the
interpreter's meaning of the operator is what counts, and each step costs a microsecond instead of a walk over the term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from types import CodeType
from typing import Any

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import F64, DataType, Pair, Scalar
from lift_egraph.meaning.folds import opened
from lift_egraph.meaning.values import Tree, leaves_of, map_leaves, zip_leaves

Name = Tree  # of the variables that hold a value's leaves

LONG = 200  # steps of a fold whose states are guessed
MOST_LINES = 4000  # of a step
SHIFTS = {"shift_left": "<<", "shift_right": ">>"}  # by a literal
# what is written for an operation; for others, its meaning is called
TEXTS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}", "abs": "abs({0})",
    "min": "{1} if {1} < {0} else {0}", "max": "{1} if {0} < {1} else {0}", "select": "{1} if {0} else {2}",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "bit_and": "{0} & {1}", "bit_or": "{0} | {1}", "bit_xor": "{0} ^ {1}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "and": "{0} and {1}", "or": "{0} or {1}", "not": "not {0}",
}  # fmt: skip


@dataclass
class Steps:
    """A function for the steps of a fold.

    Attributes
    ----------
    operator, element
        With pairs taken apart, and what it calls an element.
    columns
        The parts of the operator that need no accumulator, in the scope of the lets around them: their values are the
        arguments of each step.
    """

    operator: ir.Lambda
    element: ir.Binder
    columns: list[tuple[tuple[ir.Apply, ...], ir.Expr]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """How often a step calls what an operation means."""
        return sum(" = t" in line for line in self.lines)

    def states(self, start: Tree, columns: Sequence[np.ndarray]) -> Tree:
        """The states after each step, of scalars `start` and a row of each column."""
        names = [f"a{i}" for i, _ in enumerate(leaves_of(start))]
        elements = [f"e{i}" for i, _ in enumerate(columns)]
        text = [
            f"def run({', '.join(names + elements)}):",
            *(f"  {name}s = []" for name in names),
            f"  for {', '.join(f'x{i}' for i, _ in enumerate(columns))}, in zip({', '.join(elements)}):",
            *(f"    {line}" for line in self.lines),
            *(f"    {name}s.append({name})" for name in names),
            f"  return {', '.join(f'{name}s' for name in names)},",
        ]
        scope = dict(self.constants)
        exec(_compiled("\n".join(text)), scope)
        found = iter(scope["run"](*(_plain(leaf) for leaf in leaves_of(start)), *map(_numbers, columns)))
        return map_leaves(lambda first: np.array(next(found), first.dtype), start)


def _plain(number: np.ndarray) -> Any:
    """A number as a step computes with it: doubles are Python's own, which are the same and take half as long."""
    return number.item() if number.dtype == np.float64 else number[()]


def _numbers(column: np.ndarray) -> Iterable[Any]:
    """The numbers of a column; one for all is kept once."""
    if column.size and column.strides == (0,):
        return repeat(_plain(column[0]), column.size)
    return column.tolist() if column.dtype == np.float64 else list(column)


@lru_cache(maxsize=64)
def _compiled(text: str) -> CodeType:
    """A function's text, once: what loops inside of a step are written out as takes longer to read than to run."""
    return compile(text, "<steps>", "exec")


def led_to(start: Tree, states: Tree) -> Tree:
    """The states before each step, along the last axis."""

    def shifted(first: np.ndarray, after: np.ndarray) -> np.ndarray:
        whole = np.broadcast_to(first[..., None], (*after.shape[:-1], 1))
        return np.concatenate([whole, after[..., :-1]], -1)

    return zip_leaves(shifted, start, states)


def checked(start: Tree, states: Tree, apply: Callable[[Tree], Tree]) -> Tree | None:
    """The states if each is exactly what the operator makes of the one before; None if not."""
    after = apply(led_to(start, states))
    same = zip_leaves(lambda a, b: bool(((a == b) | ((a != a) & (b != b))).all()), after, states)
    return states if all(leaves_of(same)) else None


class _Unknown(Exception):
    """The operator has a part that no text is made for."""


def steps_of(operator: ir.Function, doubles: bool) -> Steps | None:
    """The steps of a fold by an operator on scalars and tuples of them; None for other operators.

    Parameters
    ----------
    doubles
        Whether floats are computed in double precision, whatever their type.
    """
    if not isinstance(operator, ir.Lambda):
        return None
    function = opened(operator)
    if not isinstance(function.binder, ir.PairBinder) or not _is_scalar(type_of(function.body)):
        return None
    steps = Steps(function, function.binder.second)
    text = _Text(steps, doubles)
    try:
        result = text.value(function.body, text.bound(function.binder.first), ())
        names = [f"a{i}" for i, _ in enumerate(leaves_of(result))]
        steps.lines.append(f"{', '.join(names)}, = {', '.join(leaves_of(result))},")
    except _Unknown:
        return None
    return steps if steps.columns else None


class _Text:
    """Writes the body of an operator as assignments."""

    def __init__(self, steps: Steps, doubles: bool) -> None:
        self.steps, self.doubles, self.count = steps, doubles, 0
        self.shifts = set[str]()  # literals that are less than the bits of their type

    def bound(self, binder: ir.Binder) -> dict[ir.Var, Name]:
        """The names of the accumulator's parts."""
        numbers = iter(range(99))

        def visit(part: ir.Binder | DataType) -> Name:
            if isinstance(part, ir.PairBinder | Pair):
                return visit(part.first), visit(part.second)
            if isinstance(part, ir.Var):
                found[part] = visit(part.type)
                return found[part]
            return f"a{next(numbers)}"

        found: dict[ir.Var, Name] = {}
        visit(binder)
        return found

    def value(self, term: ir.Expr, names: dict[ir.Var, Name], lets: tuple[ir.Apply, ...]) -> Name:
        if not names.keys() & ir.free_variables(term) and not isinstance(term, ir.MakePair):
            return self.column(term, lets)
        match term:
            case ir.Var():
                return names[term]
            case ir.MakePair(first=a, second=b):
                return self.value(a, names, lets), self.value(b, names, lets)
            case ir.Component(index=i, pair=pair):
                found = self.value(pair, names, lets)
                return found[i]
            case ir.ToMemory(value=inner):
                return self.value(inner, names, lets)
            case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
                if not names.keys() & ir.free_variables(argument):
                    hidden = ir.bound_variables(binder)
                    return self.value(body, {v: n for v, n in names.items() if v not in hidden}, (*lets, term))
                inner = dict(names)
                _bind(inner, binder, self.value(argument, names, lets))
                return self.value(body, inner, lets)
            case ir.Call(op=op, arguments=arguments) if isinstance(t := type_of(term), Scalar):
                return self.assigned(op, t, [self.value(x, names, lets) for x in arguments])
            case ir.ReduceSeq(operator=ir.Lambda() as operator, array=ir.Generate() as numbers):
                return self.unrolled(operator, self.value(term.initial, names, lets), numbers, names, lets)
        raise _Unknown

    def unrolled(
        self,
        operator: ir.Lambda,
        made: Name,
        numbers: ir.Generate,
        names: dict[ir.Var, Name],
        lets: tuple[ir.Apply, ...],
    ) -> Name:
        """The steps of a loop inside of a step, over what follows from their numbers, one after the other."""
        place, length = numbers.function, numbers.size.constant
        if not isinstance(operator.binder, ir.PairBinder) or not isinstance(place, ir.Lambda) or not length:
            raise _Unknown
        for i in range(length):
            self.steps.constants[f"p{i}"] = np.int32(i)
            inner = dict(names)
            _bind(inner, place.binder, f"p{i}")
            element = self.value(place.body, inner, lets)
            _bind(inner, operator.binder.first, made)
            _bind(inner, operator.binder.second, element)
            made = self.value(operator.body, inner, lets)
            if len(self.steps.lines) > MOST_LINES:
                raise _Unknown
        return made

    def column(self, term: ir.Expr, lets: tuple[ir.Apply, ...]) -> Name:
        """An argument for each leaf of a part without the accumulator."""
        t = type_of(term)
        if isinstance(t, Pair):
            return self.column(ir.Component(0, term), lets), self.column(ir.Component(1, term), lets)
        if not isinstance(t, Scalar):
            raise _Unknown
        if (lets, term) not in self.steps.columns:
            self.steps.columns.append((lets, term))
        name = f"x{self.steps.columns.index((lets, term))}"
        if (
            isinstance(term, ir.Literal)
            and t.is_integer
            and 0 <= term.value < 8 * np.dtype(NUMPY_TYPES[t.name]).itemsize
        ):
            self.shifts.add(name)
        return name

    def assigned(self, op: str, t: Scalar, arguments: list[str]) -> str:
        name = f"v{self.count}"
        self.count += 1
        if op in TEXTS:
            text = TEXTS[op].format(*arguments)
        elif op in SHIFTS and arguments[1] in self.shifts:
            text = f"{arguments[0]} {SHIFTS[op]} {arguments[1]}"
        else:
            dtype = float if t == F64 or (self.doubles and t.is_float) else NUMPY_TYPES[t.name]
            meaning = np.divide if op == "div" and t.is_float else OPERATIONS[op].meaning  # Python's own refuses zeros
            self.steps.constants |= {f"m{name}": meaning, f"t{name}": dtype}
            text = f"t{name}(m{name}({', '.join(arguments)}))"
            if op == "div" and t.is_float:  # the meaning of a quotient takes ten times as long
                text = f"{arguments[0]} / {arguments[1]} if {arguments[1]} else {text}"
            elif op in ("div", "mod"):  # of what is not negative, Python's own are the same
                sign = "//" if op == "div" else "%"
                text = f"{arguments[0]} {sign} {arguments[1]} if {arguments[0]} >= 0 < {arguments[1]} else {text}"
        self.steps.lines.append(f"{name} = {text}")
        return name


def _bind(names: dict[ir.Var, Name], binder: ir.Binder, value: Name) -> None:
    if isinstance(binder, ir.Var):
        names[binder] = value
    else:
        _bind(names, binder.first, value[0])
        _bind(names, binder.second, value[1])


def _is_scalar(t: DataType) -> bool:
    return _is_scalar(t.first) and _is_scalar(t.second) if isinstance(t, Pair) else isinstance(t, Scalar)
