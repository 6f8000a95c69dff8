"""The legality of low-level terms: OpenCL's thread hierarchy.

Source: 000 §2.2 (thread hierarchy), §2.4.2.2 (parallel patterns).
"""

from __future__ import annotations

from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.describe import blame
from lift_egraph.language.lane_ranges import differing_ranges

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


def is_parallel(term: ir.Part) -> bool:
    """Whether a parallel map stands anywhere in a term (found once per node)."""
    known = term.__dict__.get("_parallel")
    if known is None:
        own = type(term) in OWN_LEVELS or (isinstance(term, ir.MapLevel) and term.level.kind != "seq")
        known = term.__dict__["_parallel"] = own or any(map(is_parallel, ir.parts(term)))
    return known


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
