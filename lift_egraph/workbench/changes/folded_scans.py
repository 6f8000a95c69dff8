"""Which folds of scans need no array of what these give, and are parallel as one fold of both.

The terms are built here as the rule `fold_of_scan` of `lift_egraph.rules.scans` builds them, after those that make
loops of reductions and scans; that they do is what the phase ``folded_scans`` shows.
"""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.algebra.cascades import acts_associatively, parts_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.types import DataType
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.outside import map_outside, parts_outside
from lift_egraph.workbench.planning.plan import length_of

SCANS = (*ir.SCANS, *ir.SCAN_LOOPS)
AFTER = (ir.Scan, ir.ScanSeq)  # whose values are those after each element


def with_folded_scans(term: ir.Expr, rows: Rows) -> ir.Expr | None:
    """The term with its folds of scans as folds of pairs, of what the scan is at and what is folded so far, where these
    are parallel: outside of all loops, and in functions of maps; None if there are none.

    What maps make for a scan or beside it is made in the fold, if that takes no loop. Of a zip of three, any may be
    scans. Folds of pairs are made where they act like monoids. Cascades are so on devices without groups, whose chunks
    keep no array of the scan either; where there are rows enough, each may be a loop.
    """
    made = _folded(term, rows, 1)
    return None if made is term else made


def _folded(term: ir.Expr, rows: Rows, around: int) -> ir.Expr:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    if isinstance(term, ir.Map) and isinstance(term.function, ir.Lambda):
        array, f = _folded(term.array, rows, around), term.function
        body = _folded(f.body, rows, around * length_of(term.array))
        return term if array is term.array and body is f.body else ir.Map(ir.Lambda(f.binder, body), array)
    made = map_outside(term, lambda inner: _folded(inner, rows, around))
    match made:
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as v, body=body), argument=argument):
            if isinstance(argument, SCANS) and _reads(body, v) == 1 == sum(t == v for t in ir.subterms(body)):
                inside = substitute(body, {v: argument})
                found = _folded(inside, rows, around)
                return made if found is inside else found
        case ir.Reduce() | ir.ReduceSeq():
            return _fold(made, rows, around)
    return made


def _reads(term: ir.Expr, v: ir.Var) -> int:
    """How often a variable is read outside of all loops."""
    return int(term == v) + sum(_reads(inner, v) for inner in parts_outside(term))


def _fold(term: ir.Reduce | ir.ReduceSeq, rows: Rows, around: int) -> ir.Expr:
    """A fold of a scan, beside another array or not, and of what a map makes of it, as one fold; else the same term."""
    function, array = _loop(term, "$acc"), term.array
    if isinstance(array, ir.Map):
        function, array = _after_map(function, array.function), array.array
    if function is None:
        return term
    function, array = _scan_first(*_without_map_beside(function, array), type_of(term.initial))
    sides = (array.first, array.second) if isinstance(array, ir.Zip) else (array,)
    found = next(((i, side) for i, side in enumerate(sides) if isinstance(side, SCANS)), None)
    if found is None or (step := _loop(found[1], "$state")) is None:
        return term
    place, scan = found
    if isinstance(scan.array, ir.Map) and is_pure(f := scan.array.function) and (fused := _after_map(step, f)):
        step, scan = fused, replace(scan, array=scan.array.array)
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
    made = _fold(fold, rows, around)  # of another scan, beside which it need not be parallel
    return ir.Component(1, made) if made is not fold or _is_parallel(fold, rows, around) else term


def _without_map_beside(function: ir.Lambda, array: ir.Expr) -> tuple[ir.Lambda, ir.Expr]:
    """A fold's function, where what a map beside a scan makes is made in it, and its array without that map."""
    match function.binder, array:
        case ir.PairBinder(acc, ir.PairBinder(p, q)), ir.Zip(ir.Map(f, xs), ys) if is_pure(f) and isinstance(ys, SCANS):
            x = ir.Var("$left", element_type(xs))
            made = ir.Apply(ir.Lambda(p, function.body), ir.Apply(f, x))
            return ir.Lambda(ir.PairBinder(acc, ir.PairBinder(x, q)), made), ir.Zip(xs, ys)
        case ir.PairBinder(acc, ir.PairBinder(p, q)), ir.Zip(xs, ir.Map(f, ys)) if is_pure(f) and isinstance(xs, SCANS):
            y = ir.Var("$right", element_type(ys))
            made = ir.Apply(ir.Lambda(q, function.body), ir.Apply(f, y))
            return ir.Lambda(ir.PairBinder(acc, ir.PairBinder(p, y)), made), ir.Zip(xs, ys)
    return function, array


def _scan_first(function: ir.Lambda, array: ir.Expr, t: DataType) -> tuple[ir.Lambda, ir.Expr]:
    """A fold's function and its array, in which a scan stands first of three, if there is one."""
    match array:
        case ir.Zip(first=xs, second=ir.Zip(first=ys, second=ws)) if not isinstance(xs, SCANS):
            if not isinstance(ys, SCANS) and not isinstance(ws, SCANS):
                return function, array
            scan, others = (ys, ws) if isinstance(ys, SCANS) else (ws, ys)
            names = [ir.Var(n, element_type(a)) for n, a in (("$state", scan), ("$x0", xs), ("$beside", others))]
            s, x, y = names
            acc = ir.Var("$total", t)
            inner = ir.MakePair(s, y) if isinstance(ys, SCANS) else ir.MakePair(y, s)
            body = ir.Apply(function, ir.MakePair(acc, ir.MakePair(x, inner)))
            binder = ir.PairBinder(acc, ir.PairBinder(s, ir.PairBinder(x, y)))
            return ir.Lambda(binder, body), ir.Zip(scan, ir.Zip(xs, others))
    return function, array


def _is_parallel(fold: ir.ReduceSeq, rows: Rows, around: int) -> bool:
    if acts_associatively(fold.operator) is not None:
        return True
    if rows.device.has_groups or not is_pure(fold.array) or parts_of(fold.operator) is None:
        return False
    return around == 1 or rows.chunks(around, length_of(fold.array), in_lanes=True) is None


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
