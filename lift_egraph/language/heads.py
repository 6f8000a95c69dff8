"""The heads of programs: inputs with their ranges, sizes, functions with their laws, and alternatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import build, functions, ir
from lift_egraph.language.definitions import Definition, alternative_of, defined, law_of, meant_on, tunables_of
from lift_egraph.language.elaboration import function_of, operand_of, whole_body_of
from lift_egraph.language.grammar import Misplaced, Source, Tree, located, parsed, suggestion
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.parameters import binder_name, require_distinct
from lift_egraph.language.programs import make_program
from lift_egraph.language.ranges import Values, check_range
from lift_egraph.language.scopes import Itself, Scope
from lift_egraph.language.sizes import size_variables
from lift_egraph.language.type_text import read_range, read_size, read_type
from lift_egraph.language.types import size_names, substitute_sizes

NONE: Mapping[str, int] = {}


@dataclass(frozen=True)
class Reading:
    """A text that is read once more, at sizes."""

    source: Source

    def __call__(self, sizes: dict[str, int]) -> ir.Program:
        return parsed(self.source, "program", lambda tree: program_of(tree, self.source, sizes))


def program_of(tree: Tree, source: Source, at: Mapping[str, int] | None = None) -> ir.Program:
    """The program of a text, with the laws and the alternatives that stand around it; at sizes, without the latter."""
    known: dict[str, Definition] = {}
    laws: list[ir.Law] = []
    alternatives: list[ir.Alternative] = []
    made: ir.Program | None = None
    for part in tree.items:
        if part.kind == "alternative":
            if at is not None:
                continue
            alternatives.append(_alternative(part, known, alternatives, source))
            continue
        if part.items[0] in known:
            raise Misplaced(f"{part.items[0]!r} is declared twice", part.place)
        found = _main(part, known, at or {}) if part.kind == "main" else _function(part, known)
        made = found if part.kind == "main" else made
        with located(part.place):
            known[found.name] = Definition(found) if part.kind == "main" else defined(found.name, found)
        laws += [_law(law, known[found.name], known, source) for law in part.items[2] if law.kind == "law"]
    assert made is not None
    return replace(made, laws=tuple(laws), alternatives=tuple(alternatives), read_at=Reading(source))


def _scope_of(
    name: str, inputs: Iterable[ir.Input], sizes: Iterable[str], known: Mapping[str, Any], at: Mapping[str, int] = NONE
) -> Scope:
    """The scope of a function's body; a name that is also one of a pattern, an input or a size means that."""
    sizes = frozenset(sizes)
    itself = Itself(", but its alternatives may use it")
    meant = {n: d for n, d in {name: itself, **known}.items() if n not in {*build.BUILTINS, *sizes}}
    return Scope({**meant, **{i.name: i for i in inputs}, **{n: nat(v) for n, v in at.items()}}, sizes)


def _inputs(trees: Sequence[Tree], known: Mapping[str, Any]) -> tuple[ir.Input, ...]:
    require_distinct(trees)
    every = Scope({}, frozenset(), any_size=True)
    for i in trees:
        if i.items[0] in known:
            raise Misplaced(f"{i.items[0]!r} is the name of a function above; choose another name", i.place)
    return tuple(ir.Input(binder_name(i), read_type(i.items[1], every.size)) for i in trees)


def _main(tree: Tree, known: Mapping[str, Any], at: Mapping[str, int]) -> ir.Program:
    name, inputs, sizes, body = tree.items
    require_distinct(sizes)
    declared = _inputs(inputs, known)
    for i in inputs:
        if i.items[0] in {n for d in declared for n in size_names(d.type)} | {s.items[0] for s in sizes}:
            hint = "choose another name for one of them, or leave the input out, as sizes are values"
            raise Misplaced(f"{i.items[0]!r} is the name of a size; {hint}", i.place)
    defaults = {s.items[0]: s.items[1].items[0] for s in sizes if s.items[1] is not None}
    in_types = frozenset(n for i in declared for n in size_names(i.type))
    declared = tuple(ir.Input(i.name, substitute_sizes(i.type, dict(at))) for i in declared)
    scope = _scope_of(name, declared, in_types | {s.items[0] for s in sizes}, known, at)
    ranges = [(d.name, _range(d, i.items[2], scope)) for d, i in zip(declared, inputs, strict=True) if i.items[2]]
    made = make_program(name, declared, lambda: whole_body_of(body, scope), scope.sizes, ranges)
    for size in sizes if not at else ():
        _check_size(size, size_variables(made))
    return replace(made, sizes=tuple(defaults.items()))


def _function(tree: Tree, known: Mapping[str, Any]) -> ir.Program:
    name, inputs, _, body = tree.items
    declared = _inputs(inputs, known)
    scope = _scope_of(name, declared, {n for i in declared for n in size_names(i.type)}, known)
    ranges = [(d.name, _range(d, i.items[2], scope)) for d, i in zip(declared, inputs, strict=True) if i.items[2]]
    return make_program(name, declared, lambda: whole_body_of(body, scope), scope.sizes, ranges)


def _law(tree: Tree, definition: Definition, known: Mapping[str, Any], source: Source) -> ir.Law:
    name, about = tree.items
    if name not in ir.LAWS:
        raise Misplaced(f"there is no law {name!r}; the laws are {', '.join(ir.LAWS)}", tree.place)
    scope = Scope(known, frozenset())
    with located(tree.place):
        read = function_of if name == "distributes" else operand_of
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
    chosen = {d.items[0]: read_range(d.items[1], Scope({}, sizes).size) for d in demands if d.kind == "tunable"}
    require_distinct([d for d in demands if d.kind == "tunable"])
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
        made = make_program(name, of.inputs, lambda: whole_body_of(body, scope), scope.sizes)
        device = devices[0] if devices else None
        facts = [*tunables_of(chosen)], guards, device, source.at(tree.place)
        return alternative_of(f"{name}_{number}", replace(of, sizes=()), made.body, *facts)


def _guard(tree: Tree, scope: Scope) -> tuple[str, Nat, Nat]:
    sign, left, right = tree.items
    return sign, read_size(left, scope.size), read_size(right, scope.size)


def _range(item: ir.Input, tree: Tree, scope: Scope) -> Values:
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
        hint = f"; a number with a point is named by let {name} = {value.items[0]} in"
        hint = hint if isinstance(value.items[0], float) else ""
        raise Misplaced(f"the size {name} must be a whole number of at least 1{hint}", value.place, SizeProblem)
