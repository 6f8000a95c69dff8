"""Types, sizes and well-formedness of terms.

Source: 000 §2.4.2 (types of the patterns), §4.3.1 (type analysis).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.index_arrays import index_values
from lift_egraph.language.inference import Misfit, result_type
from lift_egraph.language.misfits import CONDITIONS, MISFITS
from lift_egraph.language.nat import ARITHMETIC, Nat, NatLike, NatVar, divides, may_be_equal, nat
from lift_egraph.language.ranges import check_range
from lift_egraph.language.scalar import result_type as result_type_of_call
from lift_egraph.language.signature import ArrayForm, Condition, Parameter
from lift_egraph.language.sizes import require_size, size_variables, substitute_nats
from lift_egraph.language.types import I32, U8, Array, DataType, Pair, Scalar, lanes, leaves, without_lanes

MOST_INDICES = 1 << 24  # of an index function, up to which all are tried
MOST_STEPS = 10_000  # of an iterate whose length changes, or that becomes a kernel for each step


def type_of(term: ir.Expr) -> DataType:
    """The type of a term (computed once per node).

    Raises
    ------
    TypeProblem, SizeProblem
        Where parts do not fit; the message shows the pattern and the types that met.
    """
    known = term.__dict__.get("_type")
    if known is None:
        known = term.__dict__["_type"] = _TYPING[type(term)](term)
    return known


def binder_type(pattern: ir.Binder) -> DataType:
    """The type of the values that a binding pattern takes apart."""
    if isinstance(pattern, ir.Var):
        return pattern.type
    return Pair(binder_type(pattern.first), binder_type(pattern.second))


def result_of(function: ir.Function, argument: DataType, where: str) -> DataType:
    """The type of a function applied to an argument of a type; `where` names the pattern for errors.

    Raises
    ------
    TypeProblem
        If the function does not take such an argument.
    """
    if isinstance(function, ir.Vectorize):
        width, scalar_argument = without_lanes(argument)
        if width != function.width:
            raise TypeProblem(
                f"{where}: vectorize({function.width}) is applied to vectors of {width} lanes, {argument}"
            )
        return lanes(width, result_of(function.function, scalar_argument, where))
    expected = binder_type(function.binder)
    if expected != argument:
        raise TypeProblem(f"{where}: the function takes {expected}, but is given {argument}")
    return type_of(function.body)


def domain(function: ir.Function) -> DataType:
    """The type of a function's argument."""
    if isinstance(function, ir.Vectorize):
        return lanes(function.width, binder_type(function.function.binder))
    return binder_type(function.binder)


def codomain(function: ir.Function) -> DataType:
    """The type of a function's result."""
    return result_of(function, domain(function), "function")


def size_of(array: ir.Expr) -> Nat:
    """The length of an array term."""
    return array_type(array, "a length").size


def inner_size(array: ir.Expr) -> Nat:
    """The length of the arrays in an array of arrays.

    Raises
    ------
    TypeProblem
        If it is no array of arrays.
    """
    t = array_type(array, "a length").element
    if not isinstance(t, Array):
        raise TypeProblem(f"a length works on an array of arrays, got {type_of(array)}")
    return t.size


def array_type(term: ir.Expr, where: str) -> Array:
    """The type of an array term; `where` names the pattern for errors.

    Raises
    ------
    TypeProblem
        If it is no array.
    """
    t = type_of(term)
    if not isinstance(t, Array):
        raise _no_array(where, t)
    return t


def element_type(array: ir.Expr) -> DataType:
    """The type of an array's elements."""
    return array_type(array, "an element").element


def _no_array(where: str, t: DataType) -> TypeProblem:
    hint = "; a component of a tuple is get(0, t)" if isinstance(t, Pair) else ""
    if where == "lookup" and t in (I32, U8):
        hint = "; an element at a computed place is xs[i]"
    return TypeProblem(f"{where} works on an array, got {t}{hint}")


# --- patterns, by their signatures ---------------------------------------------------------------


class _Concrete:
    """Types and sizes as they are: the domain in which terms are typed (`lift_egraph.language.inference.Types`)."""

    def scalar(self, name: str) -> DataType:
        return Scalar(name)

    def array(self, size: NatLike, element: DataType) -> DataType:
        return Array(nat(size), element)

    def pair(self, first: DataType, second: DataType) -> DataType:
        return Pair(first, second)

    def number(self, value: int) -> NatLike:
        return value

    def lanes(self, width: NatLike, t: DataType) -> DataType:
        return lanes(width if isinstance(width, int) else nat(width).evaluate({}), t)

    def arithmetic(self, sign: str, left: NatLike, right: NatLike) -> NatLike:
        return ARITHMETIC[sign](nat(left), nat(right))

    def parts_of_array(self, t: DataType) -> tuple[NatLike, DataType]:
        if not isinstance(t, Array):
            raise Misfit
        return t.size, t.element

    def parts_of_pair(self, t: DataType) -> tuple[DataType, DataType]:
        if not isinstance(t, Pair):
            raise Misfit
        return t.first, t.second

    def parts_of_lanes(self, t: DataType) -> tuple[NatLike, DataType]:
        return without_lanes(t)

    def equate(self, a: DataType, b: DataType) -> None:
        if a == b:
            return
        if isinstance(a, Array) and isinstance(b, Array):
            self.equate_sizes(a.size, b.size)
            self.equate(a.element, b.element)
        elif isinstance(a, Pair) and isinstance(b, Pair):
            self.equate(a.first, b.first)
            self.equate(a.second, b.second)
        else:
            raise Misfit

    def equate_sizes(self, a: NatLike, b: NatLike) -> None:
        """Open sizes must not be known to differ: whether 4 divides ``n`` in ``4 * (n / 4)`` shows at its value."""
        if nat(a) != nat(b) and not may_be_equal(a, b):
            raise Misfit

    def apply(self, function: tuple[ir.Function, str], argument: DataType, parameter: Parameter) -> DataType:
        return result_of(function[0], argument, function[1])

    def require(self, condition: Condition, left: NatLike, right: NatLike) -> None:
        """A condition must not be known to fail."""
        left, right = nat(left), nat(right)
        if condition.relation == "|":
            fails = divides(left, right) is False
        else:
            low, high = (right, left) if condition.relation == ">" else (left, right)
            spare = (high - low).constant
            fails = spare is not None and spare < (condition.relation != "<=")
        if fails:
            misfit = Misfit()
            misfit.condition = condition
            raise misfit


CONCRETE = _Concrete()


class _Noting(_Concrete):
    """Keeps the pairs of sizes that only have to be equal."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Nat, Nat]] = []

    def equate_sizes(self, a: NatLike, b: NatLike) -> None:
        super().equate_sizes(a, b)
        if nat(a) != nat(b):
            self.pairs.append((nat(a), nat(b)))


def open_equalities(term: ir.Expr) -> list[tuple[Nat, Nat]]:
    """The sizes that a pattern takes for equal, and that are so where what divides them does."""
    noting = _Noting()
    if _TYPING[type(term)] is _signed:
        arguments = [_argument(getattr(term, p.name), ir.name_of(term)) for p in term.signature.parameters]
        result_type(term.signature, arguments, noting)
    return noting.pairs


def _signed(term: ir.Expr) -> DataType:
    """The type of a pattern by its signature, and what else it demands."""
    where = ir.name_of(term)
    arguments = [_argument(getattr(term, p.name), where) for p in term.signature.parameters]
    try:
        result = result_type(term.signature, arguments, CONCRETE)
    except Misfit as misfit:
        raise _problem(term, misfit) from None
    demand = _DEMANDS.get(type(term))
    if demand is not None:
        demand(term)
    return result


def _argument(value: Any, where: str) -> Any:
    if isinstance(value, ir.Expr):
        return type_of(value)
    return (value, where) if isinstance(value, ir.Lambda | ir.Vectorize) else value


def _problem(term: ir.Expr, misfit: Misfit) -> TypeProblem | SizeProblem:
    """What is wrong with a term whose arguments do not fit its signature."""
    where, types = ir.name_of(term), {p.name: _shown(getattr(term, p.name)) for p in term.signature.parameters}
    names = {**misfit.names, **types}
    if misfit.condition is not None:
        message = CONDITIONS[type(term)][term.signature.conditions.index(misfit.condition)].format(**names)
        return SizeProblem(message + _fitting_part(term))
    parameter = misfit.parameter
    assert parameter is not None
    found, by_hand = getattr(term, parameter.name), MISFITS.get((type(term), parameter.name))
    if not isinstance(found, ir.Expr):
        message = f"{where}: the operator returns {codomain(found)}, but the accumulator starts as {names['initial']}"
        return TypeProblem(message)
    t = type_of(found)
    if isinstance(parameter.form, ArrayForm) and not isinstance(t, Array):
        return _no_array(where, t)
    if by_hand is not None:
        kind, message = by_hand
        return kind(message.format(**names))
    if isinstance(term, ir.FOLDS):
        element, start = names["array"].element, names["initial"]
        return TypeProblem(f"{where} combines elements of one type, got {start} and {element}; use {where}Seq")
    return TypeProblem(f"{where} works on an array of arrays, got {t}")


def _fitting_part(term: ir.Expr) -> str:
    """How much of an array chunks or windows do fit, where the numbers are known and they fit some of it."""
    match term:
        case ir.Split(chunk=size):
            step = size
        case ir.Slide(size=size, step=step):
            pass
        case _:
            return ""
    length, first, each = size_of(term.array).constant, size.constant, step.constant
    if length is None or not first or not each or length < first:
        return ""
    fitting = (length - first) // each * each + first
    return f"; it fits the first {fitting}: slice(0, {fitting}, xs)" if fitting < length else ""


def _shown(value: Any) -> Any:
    return type_of(value) if isinstance(value, ir.Expr) else value


# --- what no signature says -----------------------------------------------------------------------


def _component(term: ir.Component) -> DataType:
    t = type_of(term.pair)
    if not isinstance(t, Pair):
        raise TypeProblem(f"get works on a tuple, got {t}")
    if term.index not in (0, 1):
        raise TypeProblem(f"a pair has the components 0 and 1, not {term.index}")
    return t.second if term.index else t.first


def _gather(term: ir.Gather) -> None:
    function, size = term.indices, size_of(term.array)
    n = size.constant
    if n and is_tried(function, size):
        low, high = function.body.substitute({function.variable: nat(NatVar("i", 0, n - 1)), "n": nat(n)}).range
        if low is None or high is None or low < 0 or high >= n:
            index_values(function, n, "gather")


def _scatter(term: ir.Scatter) -> None:
    function, size = term.indices, size_of(term.array)
    n = size.constant
    if n is not None and is_tried(function, size):
        targets = index_values(function, n, "scatter")
        if np.bincount(targets, minlength=n).max(initial=1) > 1:
            raise SizeProblem(f"scatter({function.variable} -> {function.body}) is no permutation of {n} elements")


def is_tried(function: ir.IndexFunction, size: Nat) -> bool:
    """Whether all indices of a function on an array of a length are tried as soon as the term is typed."""
    is_closed = {v.name for v in function.body.variables} <= {function.variable, "n"}
    return is_closed and size.constant is not None and size.constant <= MOST_INDICES


def apply_index(function: ir.IndexFunction, index: NatLike, size: NatLike) -> Any:
    """An index function at an index; ``n`` in it stands for the length of the array.

    Returns an ``int`` for integers, a `Nat` otherwise.
    """
    result = function.body.substitute({function.variable: nat(index), "n": nat(size)})
    return result.constant if isinstance(index, int) and result.constant is not None else result


def _pad(term: ir.Pad) -> None:
    t = array_type(term.array, "pad")
    kind, value = term.boundary.kind, term.boundary.value
    if kind not in ir.BOUNDARIES:
        raise TypeProblem(f"pad: unknown boundary {kind!r}; known are {', '.join(ir.BOUNDARIES)}")
    if kind == "constant" and (value is None or type_of(value) != t.element):
        raise TypeProblem(f"pad(constant) needs a value of the element type {t.element}")
    least = {"constant": 0, "clamp": 1}  # elements that must be there to pad from
    for amount in (term.left, term.right):
        needed = least.get(kind, max(1, amount.constant or 0))
        if t.size.constant is not None and t.size.constant < needed:
            raise SizeProblem(f"pad({kind}) by {amount} needs an array of length {needed} or more, got {t.size}")


def _iterate(term: ir.Iterate) -> DataType:
    t = array_type(term.array, "iterate")
    if term.times < 0:
        raise SizeProblem(f"iterate: the count must not be negative, got {term.times}")
    if term.count is not None:
        return _counted(term, term.count, t)
    for _ in range(min(term.times, MOST_STEPS)):
        step = iterate_step(term, t.size)
        result = result_of(step, t, "iterate")
        if not isinstance(result, Array) or result.element != t.element:
            raise TypeProblem(f"iterate: the function must keep the element type, it turns {t} into {result}")
        if result == t:
            return t
        t = result
    if term.times > MOST_STEPS:
        raise SizeProblem(
            f"iterate: the length still changes after {MOST_STEPS} of {term.times} steps, it is {t.size} then; "
            "more steps are possible only where it no longer does"
        )
    return t


def _counted(term: ir.Iterate, count: Nat, t: Array) -> DataType:
    """The type of an iterate that runs as often as a size says: all steps change the length by as much."""
    step = result_of(iterate_step(term, t.size), t, "iterate")
    if step == t:
        return t
    before, after = domain(term.function), codomain(term.function)
    if isinstance(before, Array) and isinstance(after, Array) and t.element == after.element == before.element:
        change = after.size - before.size
        if term.size not in {v.name for v in change.variables}:
            return Array(t.size + change * count, t.element)
    raise SizeProblem(
        "iterate: where the length does not change by as much in each step, it takes a number of times, "
        f"not the size {count}"
    )


def iterate_step(term: ir.Iterate, size: Nat) -> ir.Lambda:
    """The body of an iterate for a given length of its argument."""
    return substitute_nats(term.function, {term.size: size})


def iterate_steps(term: ir.Iterate) -> Iterator[ir.Lambda]:
    """The body of an iterate at the length of each step's argument.

    Raises
    ------
    SizeProblem
        If there are more steps than `MOST_STEPS`.
    """
    if term.times > MOST_STEPS:
        raise SizeProblem(f"iterate: {term.times} steps are too many to generate code for each; at most {MOST_STEPS}")
    size, known = size_of(term.array), dict[Nat, ir.Lambda]()
    for _ in range(term.times):
        step = known[size] = known.get(size) or iterate_step(term, size)
        yield step
        size = size_of(step.body)


def _to_memory(term: ir.ToMemory) -> None:
    if term.space not in ir.SPACES:
        raise TypeProblem(f"unknown address space {term.space!r}; known are {', '.join(ir.SPACES)}")


_DEMANDS: dict[type, Any] = {ir.Gather: _gather, ir.Scatter: _scatter, ir.Pad: _pad, ir.ToMemory: _to_memory}
_TYPING: dict[type, Any] = {
    ir.Var: lambda e: e.type,
    ir.Input: lambda e: e.type,
    ir.Literal: lambda e: e.type,
    ir.SizeLiteral: lambda _: I32,
    ir.Call: lambda term: result_type_of_call(term.op, tuple(type_of(a) for a in term.arguments)),
    ir.Component: _component,
    **dict.fromkeys(ir.SIGNED, _signed),
    ir.Iterate: _iterate,
}


def specialise(program: ir.Program, sizes: dict[str, int] | None = None, *, keep: Collection[str] = ()) -> ir.Program:
    """The program at concrete sizes: the given ones, else its defaults; those in `keep` stay open.

    Raises
    ------
    SizeProblem
        For an unknown size name, a size that is no whole number, below 0 or missing, or sizes that a pattern
        cannot divide.
    """
    every = size_variables(program)
    for name in keep:
        if name not in every:
            raise SizeProblem(f"{program.name} has no size {name!r}; it has {', '.join(every) or 'none'}")
    names = tuple(n for n in every if n not in keep)
    defaults = {n: v for n, v in program.sizes if n in names}  # one at concrete sizes says which they are
    chosen = {**defaults, **(sizes or {})}
    for name, value in chosen.items():
        if name not in names:
            raise SizeProblem(f"{program.name} has no size {name!r}; it has {', '.join(names) or 'none'}")
        require_size(name, value)
    chosen = {name: int(value) for name, value in chosen.items()}
    missing = [n for n in names if n not in chosen]
    if missing:
        raise SizeProblem(f"{program.name} needs a value for the size {', '.join(missing)} (--size {missing[0]}=…)")
    values: dict[str, NatLike] = {n: chosen[n] for n in names}
    inputs = tuple(substitute_nats(i, values) for i in program.inputs)
    kept = tuple((n, v) for n, v in program.sizes if n not in names)
    body = substitute_nats(program.body, values)
    for t in ir.subterms(body) if keep else ():
        if isinstance(t, ir.Iterate) and t.count is not None:
            raise SizeProblem(f"iterate: how often something is done must be known, so {t.count} cannot stay open")
    ranges = tuple((name, r.substitute(values)) for name, r in program.ranges)
    special = ir.Program(program.name, inputs, body, (*((n, chosen[n]) for n in names), *kept), ranges, program.laws)
    try:
        check_program(special)
    except (SizeProblem, TypeProblem) as problem:
        told: Exception = problem
        try:
            if program.read_at is not None and not keep:
                program.read_at(chosen)
        except (SizeProblem, TypeProblem) as placed:
            told = placed
        shown = ", ".join(f"{n} = {chosen[n]}" for n in names)
        raise type(problem)(f"{program.name} at {shown}: {told}") from None
    return special


def check_program(program: ir.Program) -> DataType:
    """The type of a program's result, after checking that it is closed and well-typed, and its ranges possible.

    Raises
    ------
    TypeProblem
        If a variable is unbound, an input undeclared, or a part of it does not fit another.
    SizeProblem
        If the length of an input is negative.
    """
    loose = ir.free_variables(program.body)
    if loose:
        raise TypeProblem(f"{program.name} uses unbound variables: {', '.join(sorted(v.name for v in loose))}")
    known = set(program.inputs)
    types = {item.name: item.type for item in program.inputs}
    for item in program.inputs:
        if any(size.constant is not None and size.constant < 0 for _, sizes, _ in leaves(item.type) for size in sizes):
            raise SizeProblem(f"the length of an array must not be negative, got {item.name}: {item.type}")
    for name, values in program.ranges:
        check_range(name, types[name], values)
    for term in ir.subterms(program.body):
        if isinstance(term, ir.Input) and term not in known:
            raise TypeProblem(f"{program.name} uses the input {term.name}: {term.type}, which it does not declare")
    return type_of(program.body)
