"""The text form of programs: reading ``*.lift`` and, with `lift_egraph.language.pretty`, printing it.

::

    -- Matrix multiplication (000, Listing 5.1)
    program mm(A: [[f32]K]M, B: [[f32]N]K) where M = 512, K = 512, N = 512 =
      map(fun row => map(fun col => reduce(add, 0.0, map(mul, zip(row, col))), transpose(B)), A)

Patterns have the thesis's names (``mapGlb(0, f, xs)``, ``toLocal(f)``); a pattern without its last
arguments is a function, and ``f . g`` composes. ``get(i, t)`` counts the components of a tuple of
any arity, ``rest(t)`` is all but the first. ``x: [f32]N in 0.1..10`` gives the range of an input
(`lift_egraph.language.ranges`). A size after ``where`` is ``N = 512``, or ``s = ?`` for one that has
no default and that the inputs' types don't mention. A size is a value too: ``sum / N``. What ``let``
binds may be a function: ``let f = fun d => 0.5 * d in map(f, xs)``. ``xs[i]`` is ``at(i, xs)`` for a
size, and for a computed index the element that `lookup` reads. A ``reduce``, ``scan`` or ``scanExclusive`` whose
accumulator has another type than the elements is a ``reduceSeq``, ``scanSeq`` or ``scanExclusiveSeq``. Types of
binders follow from what a function is applied to. Reading a text calls the functions of
`lift_egraph.language.build`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lift_egraph.errors import InputProblem, SizeProblem, TypeProblem
from lift_egraph.language import build, functions, ir
from lift_egraph.language.check import size_variables, type_of
from lift_egraph.language.definitions import Definition, alternative_of, defined, law_of, meant_on, tunables_of
from lift_egraph.language.grammar import SUFFIXES, Misplaced, Place, Source, Tree, located, read_text, suggestion
from lift_egraph.language.nat import ARITHMETIC, Nat, nat
from lift_egraph.language.pretty import print_iterate_body, print_program, print_term
from lift_egraph.language.ranges import Values, check_range
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.type_text import any_size, parse_type, read_range, read_size, read_type, size_infix
from lift_egraph.language.types import I32, DataType, Scalar, size_names
from lift_egraph.language.unapplied import Met

__all__ = [
    "parse_file", "parse_iterate_body", "parse_program", "parse_size", "parse_term", "parse_type", "print_iterate_body",
    "print_program", "print_term",
]  # fmt: skip

INFIX = {op.symbol: name for name, op in OPERATIONS.items() if op.symbol}


def parse_program(text: str, source: str = "<text>") -> ir.Program:
    """The program that a text denotes, checked.

    Parameters
    ----------
    text
        One program, with comments from ``--`` to the end of the line.
    source
        What messages call the text, a file name for example.

    Raises
    ------
    SyntaxProblem, TypeProblem, SizeProblem
        With line, column, the line and a caret.

    Examples
    --------
    >>> twice = parse_program("program twice(xs: [f32]N) where N = 8 = map(fun x => 2.0 * x, xs)")
    >>> twice.sizes
    (('N', 8),)
    """
    told = Source(text, source)
    return read_text(told, "program", lambda tree: _program(tree, told))


def parse_file(path: str | Path) -> ir.Program:
    """The program in a file; see `parse_program`.

    Raises
    ------
    InputProblem
        If the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputProblem(f"cannot read the program {path}: {reason}") from None
    return parse_program(text, str(path))


def parse_term(
    text: str, inputs: Mapping[str, DataType | str] | Sequence[ir.Input | ir.Var] = (), source: str = "<text>"
) -> ir.Expr:
    """The term that a text denotes, given the types of the names in it; any name may be a size.

    Raises
    ------
    SyntaxProblem, TypeProblem, SizeProblem
        With line, column, the line and a caret.

    Examples
    --------
    >>> print_term(parse_term("xs |> join", {"xs": "[[f32]4]N"}))
    Traceback (most recent call last):
        ...
    lift_egraph.errors.SyntaxProblem: <text>:1:4: '|' cannot stand here
      xs |> join
         ^
    >>> print_term(parse_term("(join . split(4))(xs)", {"xs": "[f32]16"}))
    'join(split(4, xs))'
    """
    if isinstance(inputs, Mapping):
        known = [ir.Input(name, parse_type(t) if isinstance(t, str) else t) for name, t in inputs.items()]
    else:
        known = list(inputs)

    def read(tree: Tree) -> ir.Expr:
        scope = _outer(known)
        with functions.opened(scope.values, scope.sizes):
            made = _value(tree, scope)
        scope.met.require_right()
        return made

    return read_text(Source(text, source), "expr", read)


def parse_size(text: str) -> Nat:
    """The size or index expression that a text denotes.

    >>> print(parse_size("i / 2 + N * 3"))
    3 * N + (i / 2)
    """
    return read_text(Source(text, "<size>"), "expr", lambda tree: read_size(tree, any_size))


def parse_iterate_body(text: str) -> tuple[str, ir.Lambda]:
    """The name of the size and the function that `lift_egraph.language.pretty.print_iterate_body` printed."""

    def read(tree: Tree) -> tuple[str, ir.Lambda]:
        context, function = tree.items
        node = {"input": ir.Input, "variable": ir.Var}
        sizes = _outer(()).size
        scope = _outer(node[c.kind](c.items[0], read_type(c.items[1], sizes)) for c in context)
        argument = read_type(function.items[0].items[1], sizes)
        with functions.opened(scope.values, scope.sizes):
            inner = scope.with_new_size(function.items[0])
            made = functions.to_function(_fun(function, inner), argument, "iterate")
        assert isinstance(made, ir.Lambda)
        return build.new_size(argument, scope.sizes) or "n", made

    return read_text(Source(text, "<iterate>"), "judgement", read)


# --- elaboration ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scope:
    """What the names in the text mean; with `any_size`, unknown names in sizes are sizes too."""

    values: Mapping[str, Any]  # terms, and local functions
    sizes: frozenset[str]
    any_size: bool = False
    met: Met = field(default_factory=Met)

    def size(self, name: str, place: Place) -> Nat:
        if not self.any_size and name not in self.sizes:
            meant = "is a value, not a size" if name in self.values else "is no known size"
            raise Misplaced(f"{name!r} {meant}{suggestion(name, self.sizes)}", place, SizeProblem)
        return nat(name)

    def with_new_size(self, pattern: Tree) -> _Scope:
        """The scope in ``fun (x: [t]n) =>``, where ``n`` may be a new name."""
        match pattern:
            case Tree("bind", (_, Tree("array_type", (_, Tree("name", (name,)))))):
                return replace(self, sizes=self.sizes | {name})
        return self


def _outer(known: Iterable[ir.Input | ir.Var]) -> _Scope:
    """The scope of a term by itself."""
    values = {item.name: item for item in known}
    sizes = frozenset(n for item in values.values() for n in size_names(item.type))
    return _Scope(values, sizes, any_size=True)


def _program(tree: Tree, source: Source) -> ir.Program:
    """The program of a text, with the laws and the alternatives that stand around it."""
    known: dict[str, Definition] = {}
    laws: list[ir.Law] = []
    alternatives: list[ir.Alternative] = []
    made: ir.Program | None = None
    for part in tree.items:
        if part.kind == "alternative":
            alternatives.append(_alternative(part, known, alternatives, source))
            continue
        if part.items[0] in known:
            raise Misplaced(f"{part.items[0]!r} is declared twice", part.place)
        found = _main(part, known) if part.kind == "main" else _function(part, known)
        made = found if part.kind == "main" else made
        with located(part.place):
            known[found.name] = Definition(found) if part.kind == "main" else defined(found.name, found)
        laws += [_law(law, known[found.name], known, source) for law in part.items[2] if law.kind == "law"]
    assert made is not None
    return replace(made, laws=tuple(laws), alternatives=tuple(alternatives))


@dataclass(frozen=True)
class _Itself:
    """What the name of a function means inside of it."""


def _scope_of(name: str, inputs: Iterable[ir.Input], sizes: Iterable[str], known: Mapping[str, Any]) -> _Scope:
    """The scope of a function's body; a name that is also one of a pattern, an input or a size means that."""
    sizes = frozenset(sizes)
    meant = {n: d for n, d in {name: _Itself(), **known}.items() if n not in {*build.BUILTINS, *sizes}}
    return _Scope({**meant, **{i.name: i for i in inputs}}, sizes)


def _inputs(trees: Sequence[Tree], known: Mapping[str, Any]) -> tuple[ir.Input, ...]:
    _distinct(trees)
    every = _Scope({}, frozenset(), any_size=True)
    for i in trees:
        if i.items[0] in known:
            raise Misplaced(f"{i.items[0]!r} is the name of a function above; choose another name", i.place)
    return tuple(ir.Input(_binder_name(i), read_type(i.items[1], every.size)) for i in trees)


def _main(tree: Tree, known: Mapping[str, Any]) -> ir.Program:
    name, inputs, sizes, body = tree.items
    _distinct(sizes)
    declared = _inputs(inputs, known)
    defaults = {s.items[0]: s.items[1].items[0] for s in sizes if s.items[1] is not None}
    in_types = frozenset(n for i in declared for n in size_names(i.type))
    scope = _scope_of(name, declared, in_types | {s.items[0] for s in sizes}, known)
    ranges = [(d.name, _range(d, i.items[2], scope)) for d, i in zip(declared, inputs, strict=True) if i.items[2]]
    made = build.make_program(name, declared, lambda: _value(body, scope), scope.sizes, ranges)
    scope.met.require_right()
    for size in sizes:
        _check_size(size, size_variables(made))
    return replace(made, sizes=tuple(defaults.items()))


def _function(tree: Tree, known: Mapping[str, Any]) -> ir.Program:
    name, inputs, _, body = tree.items
    declared = _inputs(inputs, known)
    scope = _scope_of(name, declared, {n for i in declared for n in size_names(i.type)}, known)
    ranges = [(d.name, _range(d, i.items[2], scope)) for d, i in zip(declared, inputs, strict=True) if i.items[2]]
    made = build.make_program(name, declared, lambda: _value(body, scope), scope.sizes, ranges)
    scope.met.require_right()
    return made


def _law(tree: Tree, definition: Definition, known: Mapping[str, Any], source: Source) -> ir.Law:
    name, about = tree.items
    if name not in ir.LAWS:
        raise Misplaced(f"there is no law {name!r}; the laws are {', '.join(ir.LAWS)}", tree.place)
    scope = _Scope(known, frozenset())
    with located(tree.place):
        read = _applicable if name == "distributes" else _operand
        meant = None if about is None else read(about, scope)
        if isinstance(meant, functions.Section):
            meant = meant_on(meant, definition)
        return law_of(name, definition.program.name, definition, meant, source.at(tree.place))


def _alternative(
    tree: Tree, known: Mapping[str, Definition], others: Sequence[ir.Alternative], source: Source
) -> ir.Alternative:
    name, demands, body = tree.items
    if name not in known:
        raise Misplaced(f"there is no function or program {name!r} above{suggestion(name, known)}", tree.place)
    of = known[name].program
    sizes = frozenset(size_variables(of))
    chosen = {d.items[0]: read_range(d.items[1], _Scope({}, sizes).size) for d in demands if d.kind == "tunable"}
    _distinct([d for d in demands if d.kind == "tunable"])
    for d in demands:
        if d.kind == "tunable" and d.items[0] in sizes | {i.name for i in of.inputs}:
            raise Misplaced(f"{d.items[0]!r} is a name of {name} already; choose another", d.place)
        if d.kind == "device" and d.items[0] != "on":
            raise Misplaced(f"expected 'on', as in 'on gpu', found {d.items[0]!r}", d.place)
    scope = _scope_of(name, of.inputs, {*sizes, *chosen}, known)
    guards = [_guard(d, scope) for d in demands if d.kind == "guard"]
    devices = [d.items[1] for d in demands if d.kind == "device"]
    if len(devices) > 1:
        raise Misplaced("an alternative is for one kind of device, or for all", tree.place)
    number = 1 + sum(other.of.name == name for other in others)
    with located(tree.place):
        made = build.make_program(name, of.inputs, lambda: _value(body, scope), scope.sizes)
        scope.met.require_right()
        device = devices[0] if devices else None
        facts = [*tunables_of(chosen)], guards, device, source.at(tree.place)
        return alternative_of(f"{name}_{number}", replace(of, sizes=()), made.body, *facts)


def _guard(tree: Tree, scope: _Scope) -> tuple[str, Nat, Nat]:
    sign, left, right = tree.items
    return sign, read_size(left, scope.size), read_size(right, scope.size)


def _range(item: ir.Input, tree: Tree, scope: _Scope) -> Values:
    found = read_range(tree, scope.size)
    try:
        check_range(item.name, item.type, found)
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), tree.place, type(problem)) from None
    return found


def _check_size(size: Tree, used: Collection[str]) -> None:
    name, value = size.items
    if name not in used:
        raise Misplaced(f"nothing has the size {name!r}{suggestion(name, used)}", size.place, SizeProblem)
    if value is None:
        return
    if not isinstance(value.items[0], int) or value.items[0] < 1:
        raise Misplaced(f"the size {name} must be a whole number of at least 1", value.place, SizeProblem)


def _distinct(named: Iterable[Tree]) -> None:
    seen: set[str] = set()
    for tree in named:
        if tree.items[0] in seen:
            raise Misplaced(f"{tree.items[0]!r} is declared twice", tree.place)
        seen.add(tree.items[0])


def _binder_name(tree: Tree) -> str:
    name = tree.items[0]
    if name in functions.RESERVED:
        raise Misplaced(f"{name!r} is a word of the language; choose another name", tree.place)
    return name


def _value(tree: Tree, scope: _Scope) -> ir.Expr:
    """The term that a tree denotes."""
    return _as_value(_meaning(tree, scope), tree.place)


def _as_value(meaning: Any, place: Place) -> ir.Expr:
    try:
        return functions.as_expr(meaning)
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), place, type(problem)) from None


def _meaning(tree: Tree, scope: _Scope) -> Any:
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
                return _infix(sign, _operand(left, scope), _operand(right, scope), tree.place)
            case Tree("fun", _):
                return _fun(tree, scope)
            case Tree("let", (pattern, value, body)):
                return _let(pattern, value, body, scope)
            case Tree("choice", parts):
                return functions.Section("select")(*(_operand(part, scope) for part in parts))
            case Tree("tuple", items):
                return build.tuple_(*(_value(i, scope) for i in items))
            case Tree("element", (array, index)):
                operand = _operand(index, scope)
                return functions.indexed(_value(array, scope), operand if (i := _whole(operand)) is None else i)
            case Tree("negate", (value,)):
                inner = _operand(value, scope)
                return -inner if isinstance(inner, Nat) else functions.Section("neg")(inner)
            case Tree("deny", (value,)):
                return functions.Section("not")(_operand(value, scope))
            case Tree("compose", (outer, inner)):
                return functions.Composition(_applicable(outer, scope), _applicable(inner, scope))
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), tree.place, type(problem)) from None
    raise Misplaced("an index function stands only in gather and scatter; a function is fun x => …", tree.place)


def _let(pattern: Tree, value: Tree, body: Tree, scope: _Scope) -> Any:
    """A shared value, or a local function: that is put in wherever its name stands, with the types it has there."""
    meaning = _value(value, scope) if pattern.kind != "bind" else _meaning(value, scope)
    if isinstance(meaning, ir.Expr | Nat):
        return build.let(meaning, _fun(Tree("fun", (pattern, body), pattern.place), scope))
    if pattern.items[1] is not None:
        raise Misplaced("a function has no type annotation: its parameters may", pattern.place)
    return _meaning(body, replace(scope, values={**scope.values, _binder_name(pattern): meaning}))


def _name(name: str, place: Place, scope: _Scope) -> Any:
    if isinstance(scope.values.get(name), _Itself):
        raise Misplaced(f"{name!r} is used in itself: there is no recursion, but its alternatives may use it", place)
    if name in scope.values:
        return scope.values[name]
    if name in build.BUILTINS:
        return build.BUILTINS[name]
    if name in scope.sizes:
        return nat(name)
    if name in SUFFIXES:
        return build.BUILTINS[f"to_{name}"]
    known = [*scope.values, *build.BUILTINS, *scope.sizes]
    raise Misplaced(f"unknown name {name!r}{suggestion(name, known)}", place)


def _operand(tree: Tree, scope: _Scope) -> Any:
    """The term, the size or the whole number without a type that a tree denotes: the last two take one from beside."""
    match tree:
        case Tree("number", (int() as number, None)) if not isinstance(number, bool):
            return number
    meaning = _meaning(tree, scope)
    return meaning if isinstance(meaning, Nat) else _as_value(meaning, tree.place)


def _infix(sign: str, left: Any, right: Any, place: Place) -> Any:
    """Sizes and whole numbers together are a size, whose division rounds down; else it is a scalar operation."""
    first, second = _whole(left), _whole(right)
    with_size = isinstance(left, Nat) or isinstance(right, Nat)
    if sign in ARITHMETIC and with_size and first is not None and second is not None:
        return size_infix(sign, first, second, place)
    return functions.Section(INFIX[sign])(left, right)


def _whole(operand: Any) -> Nat | None:
    """The size that an operand is, or may be read as."""
    if isinstance(operand, ir.Literal) and operand.type == I32:
        return nat(int(operand.value))
    return nat(operand) if isinstance(operand, int | Nat) else None


def _applicable(tree: Tree, scope: _Scope) -> Any:
    function = _meaning(tree, scope)
    if isinstance(function, Nat):
        function = functions.as_expr(function)
    if isinstance(function, ir.Expr):
        raise Misplaced(f"this is a value of the type {type_of(function)}, not a function", tree.place, TypeProblem)
    return function


def _call(callee: Tree, arguments: list[Tree], scope: _Scope) -> Any:
    function = _applicable(callee, scope)
    if isinstance(function, functions.PartialPattern):
        kinds = function.kinds[len(function.given) :]
        if 0 < len(arguments) <= len(kinds):
            for kind, argument in zip(kinds, arguments, strict=False):
                function = function(_argument(function, kind, argument, scope))
            return function
        return function(*arguments)  # says how many it takes
    if isinstance(function, functions.Section):
        return function(*(_operand(a, scope) for a in arguments))
    values = [_value(a, scope) for a in arguments]
    zips = function in build.ZIPS.values()
    if zips and len(values) >= 2:
        return function(*values)
    if zips or not values:
        raise TypeProblem(f"{callee.items[0]} takes two or more arrays" if zips else "a function takes an argument")
    return functions.apply(function, values[0] if len(values) == 1 else build.tuple_(*values))


def _argument(pattern: functions.PartialPattern, kind: str, tree: Tree, scope: _Scope) -> Any:
    if kind in ("size", "count"):
        return read_size(tree, scope.size)
    if kind == "index":
        return _index(tree, scope)
    if kind == "boundary":
        return _boundary(tree, scope)
    if kind == "value":  # what an operation starts with has the type of the elements
        is_start = any(isinstance(f, functions.Section) for f in pattern.given[-1:])
        return _operand(tree, scope) if is_start else _value(tree, scope)
    if pattern.name == "iterate" and tree.kind == "fun":
        return _fun(tree, scope.with_new_size(tree.items[0]))
    return _meaning(tree, scope) if kind == "any" else _applicable(tree, scope)


def _index(tree: Tree, scope: _Scope) -> ir.IndexFunction:
    match tree:
        case Tree("name", ("reverse",)):
            return build.reverse
        case Tree("call", (Tree("name", ("stride",)), step)):
            return build.stride(read_size(step, scope.size))
        case Tree("index", ("n", _)):
            raise Misplaced("n is the length of the array here; name the index differently", tree.place)
        case Tree("index", (name, body)):
            inner = replace(scope, sizes=scope.sizes | {name, "n"})
            return ir.IndexFunction(name, read_size(body, inner.size))
    hint = "elements at computed places are found by lookup(indices, xs)"
    raise Misplaced(f"expected an index function: i => …, reverse or stride(s); {hint}", tree.place)


def _boundary(tree: Tree, scope: _Scope) -> Any:
    match tree:
        case Tree("name", (name,)) if name in ir.BOUNDARIES and name != "constant":
            return name
        case Tree("call", (Tree("name", ("constant",)), value)):
            return build.constant(_operand(value, scope))
    hint = suggestion(tree.items[0], ir.BOUNDARIES) if tree.kind == "name" else ""
    raise Misplaced(f"expected a boundary: clamp, mirror, wrap or constant(value){hint}", tree.place)


def _fun(tree: Tree, scope: _Scope) -> functions.Abstraction:
    pattern, body = tree.items
    binders = list(_binders(pattern))
    _distinct(binders)
    names = [_binder_name(b) for b in binders]
    scope.met.meet(tree, _Reader(scope))

    def make(*variables: ir.Expr) -> ir.Expr:
        scope.met.apply(tree)
        values = {**scope.values, **dict(zip(names, variables, strict=True))}
        return _value(body, replace(scope, values=values))

    return functions.Abstraction(_pattern(pattern, scope), make)


@dataclass(frozen=True)
class _Reader:
    """Reads parts of a function that was not applied."""

    scope: _Scope

    def meaning(self, tree: Tree, values: Mapping[str, Any]) -> Any:
        inner = replace(self.scope, values={**self.scope.values, **values})
        with functions.opened(inner.values, inner.sizes):
            return _meaning(tree, inner)

    def value(self, tree: Tree, values: Mapping[str, Any]) -> ir.Expr:
        return _as_value(self.meaning(tree, values), tree.place)

    def names(self, pattern: Tree) -> functions.Names:
        return _pattern(pattern, self.scope)

    def trying(self) -> _Reader:
        return _Reader(replace(self.scope, met=Met()))


def _binders(pattern: Tree) -> Iterable[Tree]:
    if pattern.kind == "bind":
        yield pattern
    else:
        for entry in pattern.items:
            yield from _binders(entry)


def _pattern(tree: Tree, scope: _Scope) -> functions.Names:
    if tree.kind == "bind":
        name, annotation = tree.items
        return functions.Bind(name, None if annotation is None else read_type(annotation, scope.size))
    parts = [_pattern(entry, scope) for entry in tree.items]
    nested = parts.pop()
    while parts:
        nested = (parts.pop(), nested)
    return nested
