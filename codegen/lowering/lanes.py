"""Vector accesses from scalar ones: what the lanes of a short vector read, all at once.

A leaf of ``asVector(w, xs)`` is the scalar access to ``xs`` at the index ``i*w + lane``. Where that
address grows by one with the lane it is one vector load; where it does not change it is a scalar
for all lanes; otherwise the lanes are gathered one by one. Boundary handling disturbs the address
only at the edges of an array, so there a condition chooses between the vector load and the gather; or what
lies beyond the edge, where all lanes cross it at once: that of an array of a multiple of `w` elements.

Source: 000 §4.3.3 (asVector views), §4.3.5 (vector component access).
"""

from __future__ import annotations

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.errors import TypeProblem
from lift_egraph.language.nat import Nat, NatVar, Operation, divides, is_at_least, maximum, minimum, nat, operations
from lift_egraph.language.types import I32, Vector, scalar_of, width_of


def widen(value: c_ast.CExpr, lane: NatVar, width: int) -> c_ast.CExpr:
    """The vector whose lanes are `value` at ``lane = 0 … width - 1`` (a scalar where all lanes agree).

    Raises
    ------
    TypeProblem
        If the value is a vector already.
    """
    if not c_walk.depends(value, lane):
        return value
    if isinstance(value, c_ast.Lane) and value.lane == nat(lane) and width_of(value.vector.type) == width:
        return value.vector
    if width_of(value.type) > 1:
        raise TypeProblem(f"asVector({width}) is applied to vectors: vectors do not nest")
    if isinstance(value, c_ast.Load) and value.buffer.space != "private":
        return _wide_load(value, lane, width)
    if isinstance(value, c_ast.Choose):
        return _wide_choice(value, lane, width)
    if isinstance(value, c_ast.IndexValue):
        return _wide_index(value, lane, width)
    if isinstance(value, c_ast.Operate):
        if value.op == "select" and (decided := _decided_lanes(value, lane, width)) is not None:
            return decided
        if value.op == "dot":
            return _gather(value, lane, width)
        arguments = tuple(widen(a, lane, width) for a in value.arguments)
        return c_ast.Operate(value.op, arguments, Vector(scalar_of(value.type), width))
    return _gather(value, lane, width)


def _gather(value: c_ast.CExpr, lane: NatVar, width: int) -> c_ast.Pack:
    items = [item for (item,) in c_walk.copies((value,), lane.name, [nat(k) for k in range(width)])]
    return c_ast.Pack(tuple(items), Vector(scalar_of(value.type), width))


def _decided_lanes(value: c_ast.Operate, lane: NatVar, width: int) -> c_ast.Pack | None:
    """The lanes of a choice that each lane's number decides, such as the components of a vector of four scalars."""
    items: list[c_ast.CExpr] = []
    for k in range(width):
        item = c_walk.substitute(value, {lane.name: nat(k)})
        while isinstance(item, c_ast.Operate) and item.op == "select":
            condition, inside, outside = item.arguments
            if not isinstance(condition, c_ast.Operate) or condition.op != "eq":
                return None
            left, right = (_whole_number(a) for a in condition.arguments)
            if left is None or right is None:
                return None
            item = inside if left == right else outside
        items.append(item)
    return c_ast.Pack(tuple(items), Vector(scalar_of(value.type), width))


def _whole_number(value: c_ast.CExpr) -> int | None:
    if isinstance(value, c_ast.IndexValue):
        return value.value.constant
    return int(value.value) if isinstance(value, c_ast.Const) and value.type == I32 else None


def _slope(index: Nat, lane: NatVar) -> int | None:
    if any(isinstance(v, c_ast.Computed) and c_walk.depends(v.value, lane) for v in index.variables):
        return None
    slope = index.coefficient_of(lane)
    return None if slope is None else slope.constant


def _wide_load(value: c_ast.Load, lane: NatVar, width: int) -> c_ast.CExpr:
    if _slope(value.index, lane) == 1:
        return c_ast.Load(value.buffer, value.index.substitute({lane.name: 0}), width)
    if any(isinstance(v, c_ast.Computed) and c_walk.depends(v.value, lane) for v in value.index.variables):
        return _gather(value, lane, width)
    conditions: list[Nat] = []
    inner = _interior(value.index, lane, width, conditions)
    if inner is None or _slope(inner, lane) != 1:
        return _gather(value, lane, width)
    needed = tuple(dict.fromkeys(c for c in conditions if not is_at_least(c, 0)))
    if needed and (held := _held(value.index, lane, width)):
        last = c_ast.Load(value.buffer, held[0], width)
        return c_ast.Choose(needed, last, c_ast.Lane(last, nat(held[1])))
    whole = c_ast.Load(value.buffer, inner.substitute({lane.name: 0}), width)
    return c_ast.Choose(needed, whole, _gather(value, lane, width)) if needed else whole


def _smallest(value: Nat, lane: NatVar, width: int) -> Nat | None:
    """The least value of an expression over all lanes."""
    slope = _slope(value, lane)
    if slope is None:
        return None
    return value.substitute({lane.name: 0 if slope >= 0 else width - 1})


def _interior(index: Nat, lane: NatVar, width: int, conditions: list[Nat]) -> Nat | None:
    """The index as it is away from the edges of the arrays; what must hold for that goes to `conditions`."""
    failed = False

    def away_from_edges(atom: NatVar | Operation) -> Nat | None:
        nonlocal failed
        if isinstance(atom, NatVar) or not c_walk.depends(nat(atom), lane):
            return None
        left = atom.left.rebuild(away_from_edges)
        right = atom.right.rebuild(away_from_edges)
        if atom.symbol in ("min", "max"):
            if (_slope(left, lane) or 0) <= 0:
                left, right = right, left
            margin = _smallest(left - right if atom.symbol == "max" else right - left, lane, width)
            if margin is not None:
                conditions.append(margin)
                return left
        elif atom.symbol == "%":
            low, high = left.range
            first, last = _smallest(left, lane, width), _smallest(-left, lane, width)
            if low is not None and high is not None and first is not None and last is not None:
                turns = ((low + high) // 2) // right
                conditions.extend((first - turns * right, last + (turns + 1) * right - 1))
                return left - turns * right
        failed = True
        return left

    inner = index.rebuild(away_from_edges)
    return None if failed else inner


def _held(index: Nat, lane: NatVar, width: int) -> tuple[Nat, int] | None:
    """Where a vector begins that lies inside of an array, whose end holds all lanes at once, and which lane they all
    have beyond that end; None where they are not held so.
    """
    changing = [atom for atom in operations(index) if c_walk.depends(nat(atom), lane)]
    if len(changing) != 1 or changing[0].symbol not in ("min", "max"):
        return None
    (atom,) = changing
    moving, end = (atom.left, atom.right) if c_walk.depends(atom.left, lane) else (atom.right, atom.left)
    margin = moving - end if atom.symbol == "max" else end - moving
    if c_walk.depends(end, lane) or not _is_decided_at_once(margin, lane, width):
        return None
    hold, edge = (minimum, width - 1) if atom.symbol == "min" else (maximum, 0)
    inside = hold(moving.substitute({lane.name: 0}), end - edge)
    return index.rebuild(lambda other: inside if other == atom else None), edge


def _is_decided_at_once(condition: Nat, lane: NatVar, width: int) -> bool:
    """Whether a number is at least 0 for all lanes or for none."""
    least = _smallest(condition, lane, width)
    slope = _slope(condition, lane)
    return least is not None and slope in (-1, 1) and bool(divides(width, least))


def _wide_choice(value: c_ast.Choose, lane: NatVar, width: int) -> c_ast.CExpr:
    if not any(c_walk.depends(c, lane) for c in value.conditions):
        return c_ast.Choose(value.conditions, widen(value.inside, lane, width), widen(value.outside, lane, width))
    inside = widen(value.inside, lane, width)
    conditions = [_smallest(c, lane, width) for c in value.conditions]
    if isinstance(inside, c_ast.Pack) or any(c is None for c in conditions):
        return _gather(value, lane, width)
    needed = tuple(c for c in conditions if c is not None)
    changing = (c for c in value.conditions if c_walk.depends(c, lane))
    if all(_is_decided_at_once(c, lane, width) for c in changing):
        return c_ast.Choose(needed, inside, widen(value.outside, lane, width))
    if isinstance(inside, c_ast.Choose):
        needed, inside = tuple(dict.fromkeys(needed + inside.conditions)), inside.inside
    return c_ast.Choose(needed, inside, _gather(value, lane, width))


def _wide_index(value: c_ast.IndexValue, lane: NatVar, width: int) -> c_ast.CExpr:
    slope = _slope(value.value, lane)
    if slope is None:
        return _gather(value, lane, width)
    steps = c_ast.Pack(tuple(c_ast.IndexValue(nat(slope * k)) for k in range(width)), Vector(I32, width))
    first = c_ast.IndexValue(value.value.substitute({lane.name: 0}))
    return c_ast.Operate("add", (first, steps), Vector(I32, width))
