"""A program cut into its stages, each a program of its own, and put together again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lift_egraph.egraph.encoding import known_operator
from lift_egraph.extract.baseline import computes
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, unique_names
from lift_egraph.language.check import codomain, domain, type_of
from lift_egraph.language.layout import is_pure

T = TypeVar("T", bound=ir.Part)
LET = "let "  # before the names of variables that lets bind: no binder inside of a stage is called so


@dataclass
class Cut:
    """A term whose stages are inputs of each other and of `rest`, as the variables of its lets are.

    `variables` says for which variable such an input stands, `slices` for which part of an input, `iterates` for which
    iterate, whose step only leads from stages to stages too, and `times` how often a stage runs: once in each step.
    """

    rest: ir.Expr
    stages: dict[ir.Input, ir.Expr] = field(default_factory=dict)
    variables: dict[ir.Input, ir.Var] = field(default_factory=dict)
    slices: dict[ir.Input, ir.Expr] = field(default_factory=dict)
    iterates: dict[ir.Input, ir.Iterate] = field(default_factory=dict)
    times: dict[ir.Input, int] = field(default_factory=dict)

    def program(self, stage: ir.Input, whole: ir.Program) -> ir.Program:
        """What one stage computes."""
        body = self.stages[stage]
        used = {t: None for t in ir.subterms(body) if isinstance(t, ir.Input)}
        return replace(whole, inputs=tuple(used), body=body)

    def joined(self, stages: Mapping[ir.Input, ir.Expr]) -> ir.Expr:
        """The whole term, with these terms for its stages."""
        term = _filled(self.rest, {**stages, **self.variables, **self.slices, **self.iterates})
        return unique_names(term, base=lambda name: name.removeprefix(LET))


def cut(term: ir.Expr) -> Cut | None:
    """The stages of a term outside of all its loops; None if there is one alone, or something else computes.

    The steps of iterates that keep the length are no such loops: each stage of theirs is a kernel.

    A let inside of a stage, in ``map(f, let y = e in b)``, cannot be cut: other stages would mention its variable.
    """
    made = Cut(term)
    made.rest = _cut(unique_names(term), made)
    if any(_has_let(body) for body in made.stages.values()):
        return None
    made.stages = {stage: _without_slices(body, made) for stage, body in made.stages.items()}
    around = [part for t in made.iterates.values() for part in (ir.function_body(t.function).body, t.array)]
    several = len(made.stages) > 1 or any(times > 1 for times in made.times.values())
    return made if several and all(map(is_pure, (made.rest, *around))) else None


def _cut(term: ir.Expr, made: Cut, times: int = 1) -> ir.Expr:
    if is_pure(term):
        return term
    match term:
        case ir.Apply(function=ir.Lambda() as let):
            argument = _cut(term.argument, made, times)
            return ir.Apply(_cut_inside(let, made, times), argument)
        case ir.Iterate(function=ir.Lambda() as step) if term.times and domain(step) == codomain(step):
            array, function = _cut(term.array, made, times), _cut_inside(step, made, times * term.times)
            stands = ir.Input(f"iterate {len(made.iterates)}", type_of(term))
            made.iterates[stands] = ir.Iterate(term.times, term.size, function, array)
            return stands
        case ir.Map() if computes(term.function):
            body = replace(term, array=_cut(term.array, made, times))
        case ir.Reduce() | ir.Scan() | ir.ScanExclusive() | ir.ReduceSeq() | ir.ScanSeq() | ir.ScanExclusiveSeq():
            start = _cut_start(term.initial, term.operator, made, times)
            body = replace(term, initial=start, array=_cut_read(term.array, made, times))
        case ir.ReduceByIndex() | ir.ReduceByIndexGlb() | ir.ReduceByIndexAtomic():
            body = ir.map_parts(term, lambda p: _cut_read(p, made, times) if isinstance(p, ir.Expr) else p)
        case ir.Generate():
            body = term
        case _:
            return ir.map_parts(term, lambda p: _cut(p, made, times) if isinstance(p, ir.Expr) else p)
    stage = ir.Input(f"stage {len(made.stages)}", type_of(term))
    made.stages[stage], made.times[stage] = body, times
    return stage


def _cut_start(start: ir.Expr, operator: ir.Function, made: Cut, times: int) -> ir.Expr:
    """What a fold begins with: of a fold of the same, which has what its operator leaves as it is, the names too."""
    if isinstance(start, ir.Reduce) and known_operator(operator) is None and alpha_equal(start.operator, operator):
        return replace(start, operator=operator, array=_cut_read(start.array, made, times))
    return _cut(start, made, times)


def _cut_read(array: ir.Expr, made: Cut, times: int) -> ir.Expr:
    """What a fold reads, which computes it on the fly if no loop does."""
    if isinstance(array, ir.Map) and not ir.has_folds(array.function):
        return replace(array, array=_cut(array.array, made, times))
    return _cut(array, made, times)


def _cut_inside(function: ir.Lambda, made: Cut, times: int) -> ir.Lambda:
    """A let or the step of an iterate with its body cut: the variables are inputs there."""
    known: dict[ir.Expr, ir.Expr] = {}
    for v in ir.bound_variables(function.binder):
        known[v] = stands = ir.Input(LET + v.name, v.type)
        made.variables[stands] = ir.Var(LET + v.name, v.type)
    return ir.Lambda(_renamed(function.binder), _cut(_filled(function.body, known), made, times))


def _has_let(stage: ir.Expr) -> bool:
    lets = (t.function for t in ir.subterms(stage) if isinstance(t, ir.Apply) and isinstance(t.function, ir.Lambda))
    return any(v.name.startswith(LET) for let in lets for v in ir.bound_variables(let.binder))


def _without_slices(term: T, made: Cut) -> T:
    """A term in which inputs stand for parts of inputs: how they lie there does not concern a stage."""
    match term:
        case ir.Slice() | ir.Map(function=ir.Lambda(body=ir.Slice())) if is_pure(term) and not ir.free_variables(term):
            known = next((name for name, part in made.slices.items() if part == term), None)
            stands = known or ir.Input(f"part {len(made.slices)}", type_of(term))
            made.slices[stands] = term
            return stands  # pyright: ignore[reportReturnType]
    return ir.map_parts(term, lambda part: _without_slices(part, made))


def _renamed(binder: ir.Binder) -> ir.Binder:
    if isinstance(binder, ir.Var):
        return ir.Var(LET + binder.name, binder.type)
    return ir.PairBinder(_renamed(binder.first), _renamed(binder.second))


def _filled(term: ir.Expr, known: Mapping[ir.Expr, ir.Expr]) -> ir.Expr:
    """The term with inputs, or variables, replaced; in what replaces them too."""
    if term in known:
        return _filled(known[term], known)
    return ir.map_parts(term, lambda part: _filled(part, known))
