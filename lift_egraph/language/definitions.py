"""Functions with a name: their sizes follow from what they are applied to, and they have laws and alternatives.

A definition is a program without defaults; where it is used stands what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from lift_egraph.errors import LiftError, SizeProblem, TypeProblem
from lift_egraph.language import functions, ir
from lift_egraph.language.binders import alpha_equal, fresh_name, substitute, unique_names, with_parts
from lift_egraph.language.check import check_program, domain, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import Nat, NatLike
from lift_egraph.language.ranges import Values
from lift_egraph.language.sizes import size_variables, sizes_in, solved, substitute_nats
from lift_egraph.language.tuples import component
from lift_egraph.language.types import Array, DataType, Pair, tuple_of

SIGNS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


@dataclass(frozen=True)
class Definition(functions.Typed):
    """A function that was given a name, and the laws that were declared of it."""

    program: ir.Program
    laws: tuple[ir.Law, ...] = ()

    def on(self, argument: DataType, where: str) -> ir.Lambda:
        """The function at the sizes that an argument of a type has."""
        given = self._body(argument, where)
        taken = set(functions.scope().names | functions.RESERVED)
        variables = [ir.Var(fresh_name(i.name, taken), i.type) for i in given.inputs]
        body = unique_names(with_parts(given.body, dict(zip(given.inputs, variables, strict=True))), taken)
        return ir.Lambda(_nested(variables, ir.PairBinder), body)

    def applied(self, argument: ir.Expr) -> ir.Expr:
        """What it computes; an argument that is computed, and read more than once, is computed once."""
        f = self.on(type_of(argument), f"an application of {self.program.name}")
        variables = ir.bound_variables(f.binder)
        parts = [*_components(argument, len(variables))]
        if all(is_pure(p) or _reads(f.body, v) <= 1 for p, v in zip(parts, variables, strict=True)):
            return functions.checked(substitute(f.body, dict(zip(variables, parts, strict=True))))
        return functions.checked(ir.Apply(f, argument))

    def _body(self, argument: DataType, where: str) -> ir.Program:
        name, inputs = self.program.name, self.program.inputs
        takes = _type_of_all(inputs)
        sizes: dict[str, Nat] = {}
        for wanted, got in sizes_in_types(takes, argument):
            if (found := solved(wanted, got)) is not None:
                sizes.setdefault(*found)
        at_sizes: tuple[ir.Input, ...] = substitute_nats(self.program.inputs, dict(sizes))
        if _type_of_all(at_sizes) != argument:
            raise TypeProblem(f"{where}: {name} takes {takes}, but is given {argument}")
        return ir.Program(name, at_sizes, substitute_nats(self.program.body, dict(sizes)))


def defined(name: str, made: ir.Program) -> Definition:
    """The definition of a function.

    Raises
    ------
    TypeProblem, SizeProblem
        If its name is a word of the language, or a size follows from the length of none of its parameters.
    """
    if name in functions.RESERVED:
        raise TypeProblem(f"{name!r} is a word of the language; choose another name")
    lengths = dict(filter(None, (solved(n, n) for i in made.inputs for n, _ in sizes_in_types(i.type, i.type))))
    for size in size_variables(made):
        if size not in lengths:
            raise SizeProblem(f"the size {size} of {name} follows from the length of none of its parameters")
    if made.ranges:
        raise TypeProblem(f"{name}: ranges are for the inputs of a program; a function takes all values")
    return Definition(made)


def law_of(name: str, called: str, operator: Any, about: Any = None, place: str = "") -> ir.Law:
    """A law that a user declares of an operator.

    Parameters
    ----------
    operator
        A `Definition` of two parameters, or a closed lambda.
    about
        A value, or for ``distributes`` an operator.

    Raises
    ------
    TypeProblem
        If there is no such law, or it does not fit the operator.
    """
    if name not in ir.LAWS:
        raise TypeProblem(f"there is no law {name!r}; the laws are {', '.join(ir.LAWS)}")
    f = _operator(called, operator)
    needs = {"neutral": "a value", "annihilating": "a value", "distributes": "another function"}.get(name)
    if (about is None) != (needs is None):
        wanted = f"{name} takes {needs}" if needs else f"{name} takes nothing"
        raise TypeProblem(f"{called}: {wanted} behind it")
    if name == "distributes":
        about = _operator("what it distributes over", about)
        if domain(about) != domain(f):
            raise TypeProblem(f"{called} works on {type_of(f.body)}, what it distributes over on {type_of(about.body)}")
    elif about is not None:
        about = functions.as_expr(about, type_of(f.body))
        if type_of(about) != type_of(f.body):
            raise TypeProblem(f"{called} works on {type_of(f.body)}, but {name} is a {type_of(about)}")
    return ir.Law(name, f, about, called, place)


def _operator(called: str, operator: Any) -> ir.Lambda:
    if isinstance(operator, Definition):
        types = [i.type for i in operator.program.inputs]
        operator = operator.on(tuple_of(*types), called) if len(types) == 2 else None
    t = domain(operator) if isinstance(operator, ir.Lambda) else None
    if not isinstance(t, Pair) or t.first != t.second or type_of(operator.body) != t.first:
        raise TypeProblem(f"{called} has a law, but is no operator: it takes two values of one type, and gives a third")
    if any(isinstance(p, ir.Input) for p in ir.subterms(operator)) or sizes_in(operator):
        raise TypeProblem(f"{called} has a law, so it may use its parameters alone")
    return operator


def meant_on(function: Any, definition: Definition) -> ir.Function:
    """A function without types of its own on what a definition takes."""
    return functions.to_function(function, _type_of_all(definition.program.inputs), definition.program.name)


def alternative_of(
    name: str,
    of: ir.Program,
    body: ir.Expr,
    tunables: Iterable[tuple[str, int, int]] = (),
    guards: Iterable[tuple[str, Nat, Nat]] = (),
    device: str | None = None,
    place: str = "",
) -> ir.Alternative:
    """Another algorithm for a function; the parameters are the attributes of `lift_egraph.language.ir.Alternative`.

    Raises
    ------
    TypeProblem, SizeProblem
        If it computes something of another type, is the function itself, or a tunable size is unused or has no values.
    """
    if device not in (None, *ir.DEVICE_KINDS):
        raise TypeProblem(f"an alternative is for a cpu or a gpu, not for {device!r}")
    made = ir.Alternative(name, of, body, tuple(tunables), tuple(guards), device, place)
    known = {*size_variables(of), *(n for n, *_ in made.tunables)}
    check_program(ir.Program(name, of.inputs, body))
    wanted, got = type_of(of.body), type_of(body)
    if _without_sizes(wanted) != _without_sizes(got):
        raise TypeProblem(f"{of.name} computes {wanted}, its alternative {got}")
    for size, low, high in made.tunables:
        if not 1 <= low < high:
            raise SizeProblem(f"the size {size} has no values from {low} on and below {high}")
        if size not in sizes_in(body):
            raise SizeProblem(f"nothing in the alternative has the size {size!r}")
    for n in sorted(sizes_in(body) | {v.name for _, *sides in made.guards for s in sides for v in s.variables}):
        if n not in known:
            raise SizeProblem(f"{n!r} is no size of {of.name}, nor one that is chosen: {n} in 1..1025")
    if alpha_equal(of.body, body):
        raise TypeProblem(f"the alternative is {of.name} itself")
    return made


def at_sizes(alternative: ir.Alternative, sizes: Mapping[str, int]) -> tuple[ir.Program, ir.Program] | None:
    """The function and its alternative at sizes, those that are chosen among them; None where it may not be taken.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> program = parse_program('''
    ...     program total(xs: [f32]N) = reduce(add, 0.0, xs)
    ...     alternative total where c in 2..9, N > c =
    ...       reduce(add, 0.0, map(fun chunk => reduce(add, 0.0, chunk), split(c, xs)))''')
    >>> [at_sizes(program.alternatives[0], {"N": 8, "c": c}) is not None for c in (3, 4, 8)]
    [False, True, False]
    """
    values: dict[str, NatLike] = {**sizes}
    try:
        if not all(SIGNS[sign](a.evaluate(sizes), b.evaluate(sizes)) for sign, a, b in alternative.guards):
            return None
        inputs, *bodies = substitute_nats((alternative.of.inputs, alternative.of.body, alternative.body), values)
        ranges = tuple((name, r.substitute(values)) for name, r in alternative.of.ranges)
        made = [ir.Program(alternative.of.name, inputs, body, (), ranges) for body in bodies]
        for one in made:
            check_program(one)
    except (LiftError, ZeroDivisionError):
        return None
    return made[0], made[1]


def tunables_of(named: Mapping[str, Values]) -> Iterator[tuple[str, int, int]]:
    """Tunable sizes from their ranges.

    Raises
    ------
    SizeProblem
        If a bound is no whole number.
    """
    for name, values in named.items():
        bounds = values.numbers
        if bounds is None or not all(isinstance(b, int) for b in bounds):
            raise SizeProblem(f"the size {name} is chosen from whole numbers, got {values}")
        yield name, int(bounds[0]), int(bounds[1])


def sizes_in_types(wanted: DataType, given: DataType) -> Iterator[tuple[Nat, Nat]]:
    """The lengths of arrays in a type, and those in another that stand there."""
    if isinstance(wanted, Array) and isinstance(given, Array):
        yield wanted.size, given.size
        yield from sizes_in_types(wanted.element, given.element)
    elif isinstance(wanted, Pair) and isinstance(given, Pair):
        yield from sizes_in_types(wanted.first, given.first)
        yield from sizes_in_types(wanted.second, given.second)


def _type_of_all(inputs: Sequence[ir.Input]) -> DataType:
    """The type of what a function of these parameters is applied to."""
    types = [i.type for i in inputs]
    return tuple_of(*types) if len(types) > 1 else types[0]


def _without_sizes(t: DataType) -> object:
    if isinstance(t, Array):
        return "array", _without_sizes(t.element)
    return (_without_sizes(t.first), _without_sizes(t.second)) if isinstance(t, Pair) else t


def _nested(leaves: list[Any], pair: Callable[[Any, Any], Any]) -> Any:
    *first, made = leaves
    for leaf in reversed(first):
        made = pair(leaf, made)
    return made


def _components(argument: ir.Expr, count: int) -> Iterator[ir.Expr]:
    """A tuple's components."""
    for _ in range(count - 1):
        yield component(0, argument)
        argument = component(1, argument)
    yield argument


def _reads(body: ir.Part, v: ir.Var, times: int = 1) -> int:
    """How often a variable is read, several times inside of a function."""
    if body == v:
        return times
    inner = 2 if isinstance(body, ir.Lambda) else times
    return sum(_reads(part, v, inner) for part in ir.parts(body))
