"""Elaboration of expressions: what the tree of one means, given what the names around it mean.

A tree denotes a term, a function, or a size; which of them it may be follows from where it stands. Terms are made by
the functions of `lift_egraph.language.build`, whose complaints get the place of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import build, functions, ir
from lift_egraph.language.binders import Let, in_lets, substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import Definition
from lift_egraph.language.grammar import SUFFIXES, Misplaced, Place, Tree, suggestion
from lift_egraph.language.nat import ARITHMETIC, Nat, nat
from lift_egraph.language.operators import item
from lift_egraph.language.other_words import BORDERS, UNKNOWN
from lift_egraph.language.parameters import (
    UNUSED,
    binder_name,
    binders_of,
    lengths_given,
    names_of,
    require_distinct,
    whole_lengths,
)
from lift_egraph.language.retyped import chosen_in, known, known_of_all, number_of, otherwise, with_points_in
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.scopes import Itself, Scope
from lift_egraph.language.type_text import read_size, size_infix
from lift_egraph.language.types import BOOL, F16, F64, I32, Array, DataType, Pair, Scalar, leaves, scalar_of
from lift_egraph.language.unapplied import Met

INFIX = {op.symbol: name for name, op in OPERATIONS.items() if op.symbol}


def value_of(tree: Tree, scope: Scope) -> ir.Expr:
    """The term that a tree denotes."""
    return _as_value(_meaning(tree, scope), tree.place)


def body_of(tree: Tree, scope: Scope) -> ir.Expr:
    """The term of a program's or a function's body.

    Arrays that local functions are applied to are named around it all, as users would who name each stage.
    """
    lets: list[Let] = []
    with functions.opened():
        made = value_of(tree, replace(scope, lets=lets))
    return functions.checked(in_lets(lets, made))


def whole_body_of(tree: Tree, scope: Scope) -> ir.Expr:
    """The body of a text that is right wherever it is read.

    Where its types do not fit, and inputs are doubles or halves, so are all numbers with a point and no type, if it
    fits so.
    """
    try:
        return _right_body(tree, scope)
    except (Misplaced, TypeProblem) as problem:
        if not isinstance(problem, Misplaced) or problem.kind is TypeProblem:
            inputs = [v.type for v in scope.values.values() if isinstance(v, ir.Input)]
            types = {scalar_of(leaf) for t in inputs for _, _, leaf in leaves(t)}
            for others in (with_points_in(tree, t) for t in (F64, F16) if t in types):
                try:
                    if others != tree:
                        return _right_body(others, replace(scope, met=Met()))
                except (Misplaced, TypeProblem, SizeProblem):
                    continue
        raise


def _right_body(tree: Tree, scope: Scope) -> ir.Expr:
    made = body_of(tree, scope)
    scope.met.require_right()
    return made


def _as_value(meaning: Any, place: Place) -> ir.Expr:
    try:
        return functions.as_expr(meaning)
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), place, type(problem)) from None


def _meaning(tree: Tree, scope: Scope) -> Any:
    """The term or the function that a tree denotes."""
    try:
        match tree:
            case Tree("call", (callee, *arguments)):
                return _call(callee, arguments, scope)
            case Tree("name", (name,)):
                return _name(name, tree.place, scope)
            case Tree("number", (value, type_name)):
                return functions.literal(value, None if type_name is None else Scalar(type_name))
            case Tree("infix", (sign, left, right)):
                return _fitting(lambda a, b: _infix(sign, a, b, tree.place), (left, right), scope)
            case Tree("fun", _):
                return abstraction_of(tree, scope)
            case Tree("let", (pattern, value, body)):
                return _let(pattern, value, body, scope)
            case Tree("choice", parts):
                return _fitting(functions.Section("select"), parts, scope)
            case Tree("tuple", items):
                return build.tuple_(*(value_of(i, scope) for i in items))
            case Tree("element", (array, index)):
                operand = operand_of(index, scope)
                return item(value_of(array, scope), operand if (i := _whole(operand)) is None else i)
            case Tree("negate", (value,)):
                inner = operand_of(value, scope)
                return -inner if isinstance(inner, Nat | float) else functions.Section("neg")(inner)
            case Tree("deny", (value,)):
                return functions.Section("not")(operand_of(value, scope))
            case Tree("compose", (outer, inner)):
                return functions.Composition(function_of(outer, scope), function_of(inner, scope))
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), tree.place, type(problem)) from None
    raise Misplaced("an index function stands only in gather and scatter; a function is fun x => …", tree.place)


def _let(pattern: Tree, value: Tree, body: Tree, scope: Scope) -> Any:
    """A shared value, or what is put in wherever its name stands, with the types it has there.

    That is a local function or, where its name has no type, a size or a number.
    """
    inside = _with_itself(binder_name(pattern), scope) if value.kind == "fun" and pattern.kind == "bind" else scope
    meaning = value_of(value, scope) if pattern.kind != "bind" else _meaning(value, inside)
    untyped = pattern.kind == "bind" and pattern.items[1] is None
    if untyped and (number := number_of(value)) is not None:
        meaning = number if isinstance(number, float) else nat(number)
    if isinstance(meaning, ir.Expr) or (isinstance(meaning, Nat | float) and not untyped):
        return build.let(meaning, abstraction_of(Tree("fun", (pattern, body), pattern.place), scope))
    if pattern.items[1] is not None:
        raise Misplaced("a function has no type annotation: its parameters may", pattern.place)
    return _meaning(body, replace(scope, values={**scope.values, binder_name(pattern): meaning}))


def _with_itself(name: str, scope: Scope) -> Scope:
    """The scope in a local function: its name is known there, if it means nothing else, so that a use is refused."""
    if name in scope.values or name in build.BUILTINS or name in scope.sizes:
        return scope
    return replace(scope, values={**scope.values, name: Itself("; iterate and reduceSeq repeat things")})


def _name(name: str, place: Place, scope: Scope) -> Any:
    if isinstance(scope.values.get(name), Itself):
        raise Misplaced(f"{name!r} is used in itself: there is no recursion{scope.values[name].instead}", place)
    if name in scope.values:
        return scope.values[name]
    if name in build.BUILTINS:
        return build.BUILTINS[name]
    if name in scope.sizes:
        return nat(name)
    if name in SUFFIXES:
        return build.BUILTINS[f"to_{name}"]
    known = [*scope.values, *build.BUILTINS, *scope.sizes]
    hint = f"; {UNKNOWN[name]}" if name in UNKNOWN else suggestion(name, known)
    raise Misplaced(f"unknown name {name!r}{hint}", place)


def operand_of(tree: Tree, scope: Scope) -> Any:
    """The term, the size or the number without a type that a tree denotes: the last two take one from beside."""
    if (number := number_of(tree)) is not None:
        return number
    meaning = _meaning(tree, scope)
    return meaning if isinstance(meaning, Nat | float) else _as_value(meaning, tree.place)


def _fitting(operation: Callable[..., Any], trees: Iterable[Tree], scope: Scope) -> Any:
    """An operation on operands; those made of numbers take the type of the others, if it fits not else."""
    trees = [*trees]
    operands = [operand_of(tree, scope) for tree in trees]
    try:
        return operation(*operands)
    except TypeProblem as problem:
        typed = [(t, type_of(o)) for o, t in zip(operands, trees, strict=True) if isinstance(o, ir.Expr)]
        known = known_of_all(((tree, t) for tree, t in typed if t != BOOL), scope.is_size)
        chosen = [chosen_in(tree, known, scope.is_size) for tree in trees]
        if chosen == trees:
            raise
        try:
            return operation(*(operand_of(tree, scope) for tree in chosen))
        except (Misplaced, TypeProblem):
            raise problem from None


def _infix(sign: str, left: Any, right: Any, place: Place) -> Any:
    """Sizes and whole numbers together are a size, whose division rounds down; else it is a scalar operation."""
    first, second = _whole(left), _whole(right)
    with_size = isinstance(left, Nat) or isinstance(right, Nat)
    if sign in ARITHMETIC and with_size and first is not None and second is not None:
        return size_infix(sign, first, second, place)
    return functions.Section(INFIX[sign])(left, right)


def _whole(operand: Any) -> Nat | None:
    """The size that an operand is, or may be read as; so may sums and products of whole numbers."""
    match operand:
        case ir.Literal(type=t) if t == I32:
            return nat(int(operand.value))
        case ir.Call(op=op, arguments=(left, right)) if OPERATIONS[op].symbol in ("+", "-", "*"):
            first, second = _whole(left), _whole(right)
            return None if first is None or second is None else ARITHMETIC[OPERATIONS[op].symbol](first, second)
        case int() | Nat():
            return nat(operand)
    return None


def function_of(tree: Tree, scope: Scope) -> Any:
    function = _meaning(tree, scope)
    if isinstance(function, Nat):
        function = functions.as_expr(function)
    if isinstance(function, ir.Expr):
        hint = f"; a number with a point is {tree.items[0]}.0" if isinstance(number_of(tree), int) else ""
        hint = "; the components of a tuple t are t[0], t[1], …" if isinstance(type_of(function), Pair) else hint
        message = f"this is a value of the type {type_of(function)}, not a function{hint}"
        raise Misplaced(message, tree.place, TypeProblem)
    return function


def _call(callee: Tree, arguments: list[Tree], scope: Scope) -> Any:
    function = function_of(callee, scope)
    if isinstance(function, functions.PartialPattern):
        kinds = function.kinds[len(function.given) :]
        if 0 < len(arguments) <= len(kinds):
            return _given(function, arguments, scope)
        return function(*arguments)  # says how many it takes
    if isinstance(function, functions.Section):
        return _fitting(function, arguments, scope)
    if isinstance(function, Definition):
        arguments = _typed_as(function, arguments, scope)
    meanings = [_meaning(a, scope) for a in arguments]
    if isinstance(function, functions.Abstraction) and arguments:
        return _called(function, [*zip(meanings, arguments, strict=True)], scope, callee.place)
    values = [_as_value(meaning, a.place) for meaning, a in zip(meanings, arguments, strict=True)]
    zips = function in build.ZIPS.values()
    if zips and len(values) >= 2:
        return function(*values)
    if zips or not values:
        raise TypeProblem(f"{callee.items[0]} takes two or more arrays" if zips else "a function takes an argument")
    return _applied(function, values[0] if len(values) == 1 else build.tuple_(*values), scope)


def _typed_as(definition: Definition, arguments: list[Tree], scope: Scope) -> list[Tree]:
    """The arguments of a function with a name, their numbers in the types of its parameters."""
    parameters = definition.program.inputs
    if len(arguments) != len(parameters):
        return arguments
    return [chosen_in(tree, known(p.type), scope.is_size) for tree, p in zip(arguments, parameters, strict=True)]


def _called(function: functions.Abstraction, given: list[tuple[Any, Tree]], scope: Scope, place: Place) -> ir.Expr:
    """A local function on values and functions.

    Where types or sizes do not fit so, numbers and sizes are put in wherever their names stand, as a let of them is.
    """
    count = len(scope.lets or ())
    try:
        if any(functions.is_function(meaning) for meaning, _ in given):
            return _with_functions(function, given, scope, place)
        values = [_as_value(meaning, tree.place) for meaning, tree in given]
        return _applied(function, values[0] if len(values) == 1 else build.tuple_(*values), scope)
    except (Misplaced, TypeProblem, SizeProblem) as problem:
        may_fit = not isinstance(problem, Misplaced) or problem.kind in (TypeProblem, SizeProblem)
        put_in = [(_Number(number) if (number := _number(*one)) is not None else one[0], one[1]) for one in given]
        if not may_fit or put_in == given:
            raise
        del (scope.lets or [])[count:]
        try:
            return _with_functions(function, put_in, scope, place)
        except (Misplaced, TypeProblem, SizeProblem):
            raise problem from None


@dataclass(frozen=True)
class _Number:
    """A number or a size that is put in."""

    value: Nat | float

    def on(self, names: functions.Names) -> Any:
        """What the parameter is."""
        declared = names.type if isinstance(names, functions.Bind) else None
        return self.value if declared is None else functions.as_expr(self.value, declared)


def _number(meaning: Any, tree: Tree) -> Nat | float | None:
    """The number without a type, or the size, that an argument is."""
    number = number_of(tree)
    if isinstance(number, int):
        return nat(number)
    return meaning if number is None and isinstance(meaning, Nat) else number


def _given(pattern: functions.PartialPattern, arguments: list[Tree], scope: Scope) -> Any:
    """A pattern with more of its arguments; numbers that it starts from have the types that its function needs."""
    count = len(scope.lets or ())
    try:
        return _complete(pattern, arguments, scope)
    except (Misplaced, TypeProblem) as problem:
        if isinstance(problem, Misplaced) and problem.kind is not TypeProblem:
            is_short = len(pattern.given) + len(arguments) < len(pattern.kinds)
            if is_short and problem.kind is SizeProblem and problem.place in [a.place for a in arguments]:
                raise Misplaced(f"{problem}; {pattern.takes}", problem.place, SizeProblem) from None
            if problem.kind is SizeProblem and (length := _length_of_steps(pattern, arguments, scope)):
                del (scope.lets or [])[count:]
                try:
                    return _complete(pattern, arguments, replace(scope, values={**scope.values, **length}))
                except (Misplaced, TypeProblem, SizeProblem):
                    raise problem from None
            raise
        named = [*zip(pattern.called[len(pattern.given) :] or repeat(""), arguments, strict=False)]
        all_start = pattern.name in ("concat", "iterate")
        starts = [place for place, (name, _) in enumerate(named) if name == "initial" or all_start]
        for place in starts:
            for other in otherwise(arguments[place], _types_in(scope)):
                try:
                    del (scope.lets or [])[count:]
                    return _complete(pattern, [*arguments[:place], other, *arguments[place + 1 :]], scope)
                except (Misplaced, TypeProblem, SizeProblem):
                    continue
        raise


def _length_of_steps(pattern: functions.PartialPattern, arguments: list[Tree], scope: Scope) -> dict[str, Nat]:
    """The name that each step of an iterate has for the length, as that of the array, where all steps may have this."""
    if pattern.name != "iterate" or len(pattern.given) + len(arguments) < len(pattern.kinds):
        return {}
    *_, function, array = (None, *arguments)
    if function is None or function.kind != "fun":
        return {}
    new = scope.with_new_size(function.items[0]).sizes - scope.sizes - scope.values.keys()
    t = type_of(value_of(array, replace(scope, lets=None)))
    return dict.fromkeys(new, t.size) if isinstance(t, Array) else {}


def _types_in(scope: Scope) -> set[Scalar]:
    values = (v for v in scope.values.values() if isinstance(v, ir.Expr))
    return {scalar_of(leaf) for v in values for _, _, leaf in leaves(type_of(v))}


def _complete(pattern: functions.PartialPattern, arguments: Iterable[Tree], scope: Scope) -> Any:
    made: Any = pattern
    for kind, argument in zip(pattern.kinds[len(pattern.given) :], arguments, strict=False):
        made = made(_argument(made, kind, argument, scope))
    return made


def _has_array(t: DataType) -> bool:
    return isinstance(t, Array) or (isinstance(t, Pair) and (_has_array(t.first) or _has_array(t.second)))


def _applied(function: Any, argument: ir.Expr, scope: Scope) -> ir.Expr:
    """What a function gives.

    Of a local one of arrays, or that gives some, what it is applied to is named around the body, where it has no name:
    a let between stages would keep them apart.
    """
    if scope.lets is None or not isinstance(function, functions.Abstraction):
        return functions.apply(function, argument)
    made = functions.to_function(function, type_of(argument), "application")
    assert isinstance(made, ir.Lambda)
    if not _has_array(type_of(argument)) and not _has_array(type_of(made.body)):
        return functions.checked(ir.Apply(made, argument))
    known = dict(_named(made.binder, argument, scope.lets))
    return functions.checked(substitute(made.body, known)) if known else made.body


def _named(binder: ir.Binder, argument: ir.Expr, lets: list[Let]) -> Iterator[tuple[ir.Var, ir.Expr]]:
    """The names that those of a binder stand for; what has no name is named by `lets`."""
    match binder, argument:
        case ir.Var(), ir.Var() | ir.Input() | ir.Literal() | ir.SizeLiteral():
            yield binder, argument
        case ir.PairBinder(first=a, second=b), ir.MakePair(first=x, second=y):
            yield from _named(a, x, lets)
            yield from _named(b, y, lets)
        case _:
            lets.append((binder, argument))
            functions.keep_open(v.name for v in ir.bound_variables(binder))


def _with_functions(
    function: functions.Abstraction, given: list[tuple[Any, Tree]], scope: Scope, place: Place
) -> ir.Expr:
    """A local function of functions: these are put in wherever their names stand, as numbers are; values are shared."""
    entries, names = list[functions.Names](), function.names
    while isinstance(names, tuple) and len(entries) < len(given) - 1:
        entries, names = [*entries, names[0]], names[1]
    entries.append(names)
    of_functions = [functions.is_function(meaning) or isinstance(meaning, _Number) for meaning, _ in given]
    given = [
        (m.on(entry) if isinstance(m, _Number) else m, t) for (m, t), entry in zip(given, entries, strict=False)
    ] + given[len(entries) :]
    bound = [functions.bound_names(entry) for entry in entries]
    parts = [*zip(given, of_functions, bound, strict=False)]
    if len(given) > len(entries) or any(is_one and len(names) > 1 for _, is_one, names in parts):
        takes = f"the function takes {functions.written(function.names)}"
        raise Misplaced(f"{takes}, of which functions and values are given one by one", place, TypeProblem)

    def body(*variables: ir.Expr) -> Any:
        left = iter(variables)
        known = ([meaning] if is_one else [next(left) for _ in names] for (meaning, _), is_one, names in parts)
        return function.body(*chain.from_iterable(known))

    places = [place for place, is_one in enumerate(of_functions) if not is_one]
    if not places:
        return body()
    values = [_as_value(meaning, tree.place) for meaning, tree in (given[place] for place in places)]
    shared = functions.Abstraction(functions.nested([entries[place] for place in places]), body)
    return _applied(shared, values[0] if len(values) == 1 else build.tuple_(*values), scope)


def _argument(pattern: functions.PartialPattern, kind: str, tree: Tree, scope: Scope) -> Any:
    if kind in ("size", "count"):
        return read_size(tree, scope.size)
    if kind == "index":
        return _index(tree, scope)
    if kind == "boundary":
        return _boundary(tree, scope)
    if kind == "value":  # what an operation starts with has the type of the elements
        is_start = any(isinstance(f, functions.Section) for f in pattern.given[-1:])
        return operand_of(tree, scope) if is_start else value_of(tree, scope)
    if pattern.name == "iterate" and tree.kind == "fun":
        return abstraction_of(tree, scope.with_new_size(tree.items[0]))
    return _meaning(tree, scope) if kind == "any" else function_of(tree, scope)


def _index(tree: Tree, scope: Scope) -> ir.IndexFunction:
    match tree:
        case Tree("name", ("reverse",)):
            return build.reverse
        case Tree("call", (Tree("name", ("stride",)), step)):
            return build.stride(read_size(step, scope.size))
        case Tree("index", ("n", _)):
            raise Misplaced("n is the length of the array here; name the index differently", tree.place)
        case Tree("index", (name, body)):
            outer = {n: v for n, v in scope.values.items() if n not in (name, "n") or not isinstance(v, Nat)}
            inner = replace(scope, values=outer, sizes=scope.sizes | {name, "n"})
            return ir.IndexFunction(name, read_size(body, inner.size))
    hint = "elements at computed places are found by lookup(indices, xs)"
    raise Misplaced(f"expected an index function: i => …, reverse or stride(s); {hint}", tree.place)


def _boundary(tree: Tree, scope: Scope) -> Any:
    match tree:
        case Tree("name", (name,)) if name in ir.BOUNDARIES and name != "constant":
            return name
        case Tree("call", (Tree("name", ("constant",)), value)):
            return build.constant(operand_of(value, scope))
    name = tree.items[0] if tree.kind == "name" else ""
    others = [b for b in ir.BOUNDARIES if b != name]  # constant stands with its value
    hint = f"; it is {BORDERS[name]}" if name in BORDERS else suggestion(name, others)
    raise Misplaced(f"expected a boundary: clamp, mirror, wrap or constant(value){hint}", tree.place)


def abstraction_of(tree: Tree, scope: Scope) -> functions.Abstraction:
    pattern, body = tree.items
    binders = list(binders_of(pattern))
    require_distinct(binders)
    names = [binder_name(b) for b in binders]
    found = {n for b in binders if b.items[1] is not None for n in whole_lengths(b.items[1])}
    new = frozenset() if scope.any_size else frozenset(found - scope.sizes - scope.values.keys())
    inside = replace(scope, sizes=scope.sizes | new)
    scope.met.meet(tree, _Reader(inside))

    def make(*variables: ir.Expr) -> ir.Expr:
        scope.met.apply(tree)
        values = {**scope.values, **dict(zip(names, variables, strict=True))}
        if names.count(UNUSED) > 1:
            del values[UNUSED]
        if new:
            values |= lengths_given(binders, variables, inside, new)
        return body_of(body, replace(scope, values=values))

    return functions.Abstraction(names_of(pattern, scope, new), make)


@dataclass(frozen=True)
class _Reader:
    """Reads parts of a function that was not applied."""

    scope: Scope

    def meaning(self, tree: Tree, values: Mapping[str, Any]) -> Any:
        inner = replace(self.scope, values={**self.scope.values, **values}, lets=None)
        with functions.opened(inner.values, inner.sizes):
            return _meaning(tree, inner)

    def value(self, tree: Tree, values: Mapping[str, Any]) -> ir.Expr:
        return _as_value(self.meaning(tree, values), tree.place)

    def names(self, pattern: Tree) -> functions.Names:
        return names_of(pattern, self.scope)

    def trying(self) -> _Reader:
        return _Reader(replace(self.scope, met=Met()))
