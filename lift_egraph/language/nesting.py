"""The legality of low-level terms: OpenCL's thread hierarchy.

Source: 000 §2.2 (thread hierarchy), §2.4.2.2 (parallel patterns).
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.describe import blame

GLOBAL, GROUPS, LOCAL = (ir.Level(kind, 0) for kind in ("glb", "wrg", "lcl"))
OWN_LEVELS: dict[type[ir.Part], ir.Level] = {  # of patterns that are no maps: what runs each of their elements
    **dict.fromkeys(ir.AT_ONCE, GLOBAL), ir.LookBack: GROUPS, ir.ReduceSub: LOCAL
}  # fmt: skip


def check_nesting(term: ir.Part, above: tuple[ir.Level, ...] = ()) -> None:
    """Check the thread hierarchy of a low-level term.

    mapLcl stands inside a mapWrg: in a dimension of which there is none, there is one group. mapWrg and mapGlb stand
    inside no other map of their dimension, never in a sequential loop (but in an iterate of whole kernels), and nothing
    parallel and no dot stands inside a vectorised function; nor a range or places of results that differ from lane to
    lane.

    Raises
    ------
    NestingProblem
        Naming the offending pattern and what is around it.
    """
    if isinstance(term, ir.MapLevel):
        problem = _level_problem(term.level, above)
        if not problem and isinstance(term.function, ir.Vectorize) and is_parallel(term.function):
            problem = "a vectorised function runs in one work-item: no parallel map may stand inside it"
        if problem:
            raise blame(NestingProblem(problem), term)
        check_nesting(term.array, above)
        check_nesting(term.function, (*above, term.level))
        return
    own = OWN_LEVELS.get(type(term))
    if own and isinstance(term, ir.Expr) and (problem := _level_problem(own, above)):
        raise blame(NestingProblem(problem.replace(own.name, ir.name_of(term), 1)), term)
    if isinstance(term, ir.Vectorize):
        for part in ir.subterms(term):
            if isinstance(part, ir.Call) and part.op == "dot":
                raise blame(NestingProblem("dot stands inside vectorize: vectors do not nest"), part)
        for part in differing_ranges(term):
            raise blame(NestingProblem("each lane would have a range, or places of results, of its own"), part)
    if own:
        for part in ir.parts(term):
            check_nesting(part, above if isinstance(part, ir.Expr) else (*above, own))
        return
    if isinstance(term, ir.LOOPS):
        body = term.function if isinstance(term, ir.Iterate) else term.operator
        # the steps of an iterate outside of all maps are kernels of their own
        is_host = isinstance(term, ir.Iterate) and not above
        check_nesting(body, above if is_host else (*above, ir.SEQ))
        for part in ir.parts(term):
            if part is not body:
                check_nesting(part, above)
        return
    for part in ir.parts(term):
        check_nesting(part, above)


def has_shared_ranges(term: ir.Part) -> bool:
    """Whether no map in a term has ranges, or places of results, that differ from element to element."""
    maps = (part for part in ir.subterms(term) if isinstance(part, ir.Map | ir.MapLevel))
    return not any(any(differing_ranges(part.function)) for part in maps)


def differing_ranges(function: ir.Function) -> Iterator[ir.Part]:
    """Where the ends of a range, or the places of results, depend on what a function is applied to.

    Indices do not, nor elements of arrays that do not.
    """
    lambda_ = ir.function_body(function)
    yield from _differing(lambda_.body, frozenset(ir.bound_variables(lambda_.binder)))


def _differing(part: ir.Part, of_lanes: frozenset[ir.Var]) -> Iterator[ir.Part]:
    deciding: tuple[ir.Part, ...] = ()
    if isinstance(part, ir.ReduceRange | ir.ReduceRangeSeq):
        deciding = part.low, part.high
    elif isinstance(part, ir.INDEX_LOOPS):
        deciding = part.place, part.array
    if any(not ir.free_variables(d).isdisjoint(of_lanes) for d in deciding):
        yield part
    for inner in ir.parts(part):
        if isinstance(inner, ir.Lambda):
            bound = ir.bound_variables(inner.binder)
            alike = {v for v, source in _bound_in(part, inner) if ir.free_variables(source).isdisjoint(of_lanes)}
            yield from _differing(inner.body, of_lanes.difference(bound).union(v for v in bound if v not in alike))
        else:
            yield from _differing(inner, of_lanes)


def _bound_in(part: ir.Part, function: ir.Lambda) -> Iterator[tuple[ir.Var, ir.Part]]:
    """Variables of a pattern's function, with what they are, or are elements of."""
    pattern = function.binder
    match part:
        case ir.Apply(argument=source) | ir.Map(array=source) | ir.MapLevel(array=source):
            yield from bound_to(pattern, source)
        case ir.Generate() if isinstance(pattern, ir.Var):
            yield pattern, ir.SizeLiteral(part.size)
        case ir.ReduceSeq() | ir.ReduceRangeSeq() | ir.ScanSeq() | ir.ScanExclusiveSeq():
            if isinstance(pattern, ir.PairBinder):
                yield from bound_to(pattern.second, part.array)
        case _:
            return


def bound_to(pattern: ir.Binder, source: ir.Expr) -> Iterator[tuple[ir.Var, ir.Expr]]:
    """The variables of a pattern with what they stand for: the parts of a tuple, or elements of zipped arrays."""
    match pattern, source:
        case ir.Var(), _:
            yield pattern, source
        case ir.PairBinder(first=a, second=b), ir.Zip(first=x, second=y) | ir.MakePair(first=x, second=y):
            yield from bound_to(a, x)
            yield from bound_to(b, y)
        case _:
            for variable in ir.bound_variables(pattern):
                yield variable, source


def is_parallel(term: ir.Part) -> bool:
    """Whether a parallel map stands anywhere in a term."""
    return any(
        type(t) in OWN_LEVELS or (isinstance(t, ir.MapLevel) and t.level.kind != "seq")
        for t in ir.subterms(term)
    )


def _level_problem(level: ir.Level, above: tuple[ir.Level, ...]) -> str | None:
    around = " inside ".join(a.name for a in reversed(above)) or "nothing"
    if level.kind not in ir.LEVEL_KINDS or level.dimension not in (0, 1, 2):
        return f"unknown level {level}; the levels are mapGlb, mapWrg, mapLcl (dimensions 0 to 2) and mapSeq"
    if level.kind == "seq":
        return None
    if level in above:
        return f"{level.name} stands inside another {level.name}"
    kinds = {a.kind for a in above}
    if level.kind == "lcl":
        if "wrg" not in kinds:
            return f"{level.name} must stand inside a mapWrg, but stands inside {around}"
    elif "seq" in kinds or "lcl" in kinds:
        return f"{level.name} must not stand inside {around}"
    elif (level.kind == "glb" and "wrg" in kinds) or (level.kind == "wrg" and "glb" in kinds):
        return f"mapGlb and mapWrg must not be mixed: {level.name} stands inside {around}"
    return None
