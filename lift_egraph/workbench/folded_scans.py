"""Which folds of scans need no array of what these give, and are parallel as one fold of both.

The terms are built here as the rule `fold_of_scan` of `lift_egraph.rules.scans` builds them, after those that make
loops of reductions and scans; that they do is what the phase ``folded_scans`` shows.
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.algebra.cascades import acts_associatively, parts_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import element_type, type_of
from lift_egraph.workbench.outside import parts_outside

T = TypeVar("T", bound=ir.Part)
SCANS = (*ir.SCANS, *ir.SCAN_LOOPS)
AFTER = (ir.Scan, ir.ScanSeq)  # whose values are those after each element


def with_folded_scans(term: ir.Expr) -> ir.Expr | None:
    """The term with its folds of scans as folds of pairs, of what the scan is at and what is folded so far, where these
    are reductions by an associative operator, or cascades; None if there are none.
    """
    made = _folded(term)
    return None if made is term else made


def _folded(term: T) -> T:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    made = ir.map_parts(term, _folded)
    match made:
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as v, body=body), argument=argument):
            if isinstance(argument, SCANS) and _reads(body, v) == 1 == sum(t == v for t in ir.subterms(body)):
                inside = substitute(body, {v: argument})
                found = _folded(inside)
                return made if found is inside else found  # pyright: ignore[reportReturnType]
        case ir.Reduce() | ir.ReduceSeq():
            return _fold(made)  # pyright: ignore[reportReturnType]
    return made


def _reads(term: ir.Expr, v: ir.Var) -> int:
    """How often a variable is read outside of all loops."""
    return int(term == v) + sum(_reads(inner, v) for inner in parts_outside(term))


def _fold(term: ir.Reduce | ir.ReduceSeq) -> ir.Expr:
    """A fold of a scan, beside another array or not, and of what a map makes of it, as one fold; else the same term."""
    function, array = _loop(term, "$acc"), term.array
    if isinstance(array, ir.Map):
        function, array = _after_map(function, array.function), array.array
    sides = (array.first, array.second) if isinstance(array, ir.Zip) else (array,)
    place = next((i for i, side in enumerate(sides) if isinstance(side, SCANS)), None)
    scan = sides[place] if place is not None else None
    step = _loop(scan, "$state") if isinstance(scan, SCANS) else None
    if function is None or step is None or not isinstance(scan, SCANS):
        return term
    now = ir.Var("$next", type_of(scan.initial))
    s, acc = ir.Var("$state", type_of(scan.initial)), ir.Var("$total", type_of(term.initial))
    xs = tuple(scan.array if i == place else side for i, side in enumerate(sides))
    names = tuple(ir.Var(f"$x{i}", element_type(side)) for i, side in enumerate(xs))
    after = ir.Apply(step, ir.MakePair(s, names[place]))

    def folded(value: ir.Var) -> ir.Expr:
        element = [value if i == place else name for i, name in enumerate(names)]
        return ir.Apply(function, ir.MakePair(acc, element[0] if len(element) == 1 else ir.MakePair(*element)))

    if isinstance(scan, AFTER):
        both = ir.Apply(ir.Lambda(now, ir.MakePair(now, folded(now))), after)
    else:
        both = ir.MakePair(after, folded(s))
    binder = names[0] if len(names) == 1 else ir.PairBinder(*names)
    fold = ir.ReduceSeq(
        ir.Lambda(ir.PairBinder(ir.PairBinder(s, acc), binder), both),
        ir.MakePair(scan.initial, term.initial),
        xs[0] if len(xs) == 1 else ir.Zip(*xs),
    )
    is_parallel = acts_associatively(fold.operator) is not None or parts_of(fold.operator) is not None
    return ir.Component(1, _fold(fold)) if is_parallel else term


def _loop(fold: ir.WholeFold, name: str) -> ir.Lambda | None:
    """The function of a fold as a loop."""
    f = fold.operator
    if not isinstance(fold, ir.Reduce | ir.Scan | ir.ScanExclusive):
        return f if isinstance(f, ir.Lambda) else None
    a, b = ir.Var(name, type_of(fold.initial)), ir.Var("$element", type_of(fold.initial))
    known = known_operator(f)
    if known is None:
        return ir.Lambda(ir.PairBinder(a, b), ir.Apply(f, ir.MakePair(a, b)))
    return None if known[1] else ir.Lambda(ir.PairBinder(a, b), ir.Call(known[0], (a, b)))


def _after_map(f: ir.Lambda | None, mapped: ir.Function) -> ir.Lambda | None:
    """The function of a fold, of elements as a map makes them."""
    match f, mapped:
        case ir.Lambda(binder=ir.PairBinder(first=acc, second=x), body=body), ir.Lambda(binder=p, body=element):
            return ir.Lambda(ir.PairBinder(acc, p), ir.Apply(ir.Lambda(x, body), element))
    return None
