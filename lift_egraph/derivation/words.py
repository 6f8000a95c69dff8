"""Patterns and conditions of rules in words, with what stands for their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lift_egraph.derivation.fits import NAMES, Condition
from lift_egraph.egraph.orders import WORDS as ORDERS
from lift_egraph.egraph.pattern_nodes import PATTERN_NODES, name_in_language
from lift_egraph.egraph.rule_forms import Constant, Equation, Hole, Node, Pattern, subpatterns

Show = Callable[[Any, str], str]  # a value and its sort, as text

_INFIX = {
    "i64___add__": "+", "i64___sub__": "-", "i64___mul__": "·", "i64___truediv__": "/", "i64___floordiv__": "/",
    "i64___mod__": "mod", "i64___lt__": "<", "i64___le__": "≤", "i64___gt__": ">", "i64___ge__": "≥", "!=": "≠",
    "Set___sub__": "without", "Set___or__": "and", "Set___and__": "in both",
}  # fmt: skip
_CONSTANTS = {
    "Fn_join": "join", "Fn_transpose": "transpose", "Fn_zip": "zip", "Fn_split": "split {0}", "Fn_map": "map {1}",
    "Fn_reduce": "reduce {0} {1}", "Fn_vec": "vectorize({0}, {1})", "Fn_lam": "λ{0}. {1}", "P_var": "{0}",
    "P_pair": "({0}, {1})", "Ex___init__": "{0}", "V___init__": "{0}", "V_of": "{0}", "Op_scalar": "{0}",
    **ORDERS,
    "Op_fn": "{0}", "Op_lift": "lift {0}", "Ty_scalar": "{0}", "Ty_vec": "<{1} x {0}>", "Ty_arr": "[{1}]{0}",
    "Ty_pair": "({0}, {1})", "Ty_lanes": "{0} lanes of {1}", "Ex_input": "{0}", "Ex_literal": "{0}",
    "ty": "the type of {0}", "vty": "the type of {0}", "pty": "the type of {0}",
    "cod": "the codomain of {0}", "fv": "the free variables of {0}", "fvf": "the free variables of {0}",
    "fvo": "the free variables of {0}", "bvs": "the variables of {0}", "Set_remove": "{0} without {1}",
    "Set_insert": "{0} and {1}", "Set_empty": "no names", "Set_contains": "{1} is among {0}",
    "Set_not_contains": "{1} is not among {0}",
}  # fmt: skip
_NUMERIC = ("i64___mod__", "i64___lt__", "i64___le__", "i64___gt__", "i64___ge__", "!=")
_TYPES = ("ty", "vty", "pty", "cod")
_LEVELS = {"seq": "mapSeq", "glb": "mapGlb", "wrg": "mapWrg", "lcl": "mapLcl"}


def pattern_text(pattern: Pattern) -> str:
    """A pattern in the notation of laws.

    >>> from lift_egraph.egraph.rule_forms import forms
    >>> from lift_egraph.rules.fusion import map_fusion
    >>> print(pattern_text(forms(map_fusion)[0].left))
    map(f, map(λp. b, xs))
    """
    if not isinstance(pattern, Node):
        return str(pattern)
    parts = [pattern_text(p) for p in pattern.parts]
    if pattern.op in _CONSTANTS:
        return _CONSTANTS[pattern.op].format(*(p.lstrip("$") for p in parts))
    if pattern.op in _INFIX:
        inner = [
            f"({p})" if isinstance(q, Node) and q.op in _INFIX else p for p, q in zip(parts, pattern.parts, strict=True)
        ]
        return f" {_INFIX[pattern.op]} ".join(inner)
    known, name = PATTERN_NODES.get(pattern.op), pattern.op
    if pattern.op.startswith("call"):
        name, *parts = parts
    elif pattern.op == "map_level":
        kind, dimension, *parts = parts
        name = _LEVELS.get(kind, kind) + ("" if kind == "seq" else f"({dimension})")
    elif known is not None:
        name = name_in_language(known, parts)
        parts = parts[1:] if pattern.op == "to_memory" else parts
    return f"{'' if name == 'tuple' else name}({', '.join(parts)})"


def condition_text(condition: Condition) -> str:
    """A condition in words."""
    if not isinstance(condition, Equation):
        p = [pattern_text(part) for part in condition.parts]
        match condition.op:
            case "tile":
                return f"a size of chunks {p[1]} is offered for arrays of length {p[0]}"
            case "lane_width":
                return f"a width of vectors {p[0]} is offered"
            case "associative" | "commutative":
                return f"{p[0]} is {condition.op}"
            case "identity":
                return f"{p[1]} is a right identity of {p[0]}"
            case "neutral":
                return f"{p[1]} is neutral for {p[0]}"
            case "built_in":
                return f"{p[0]} is {p[1]}"
            case "distributes":
                return f"{p[0]} distributes over {p[1]}, and {p[2]} annihilates for it"
            case "acts":
                return f"{p[0]} (s, x) = {p[4]} ({p[1]} x, s), an action of the monoid of {p[2]} and {p[3]}"
            case "steady":
                return f"{p[0]} (s, x) = {p[5]} ({p[2]}, (s, {p[0]} ({p[1]}, x))), and so for more elements by {p[3]}"
            case "combines":
                return f"{p[0]} (s, x) = {p[2]} (s, {p[1]} x)"
            case "recalls":
                return f"{p[0]} (s, x) = {p[3]} ({p[2]} (s, x), x), and {p[2]} ({p[3]} (k, y), x) = {p[1]} (k, (y, x))"
            case "kept_within":
                return f"{p[0]} (s, x) = {p[1]} (s, x) for each s that folds from {p[2]} give"
            case "kept_along":
                return f"{p[0]} (s, {p[1]} x) = {p[2]} (s, {p[1]} x) for each s that folds of such from {p[3]} give"
            case "cascades":
                folded = f"{p[0]} ({p[5]} (s, t), x) = {p[5]} ({p[1]} (s, x), {p[2]} (t, (s, x)))"
                return f"{folded}, and {p[5]} ({p[3]} z, {p[4]} z) = z"
            case "tabulates":
                return f"{p[5]} ({p[3]} ({p[2]}, (p, x))) = {p[0]} ({p[5]} p, x) for the places p of few states"
            case "tabulates_first":
                state = f"({p[8]} ({p[6]} ({p[5]}, (p, x))), {p[2]} (t, ({p[8]} p, x)))"
                return f"{p[0]} ({p[4]} ({p[8]} p, t), x) = {p[4]} {state} for the places p of few states"
            case "distinct":
                return f"no two of {p[0]} are one place"
            case "scalar_like":
                return f"{p[0]} has no vectors"
            case "stage_local" | "stage_private":
                return f"{p[0]} is marked for {condition.op.removeprefix('stage_')} memory"
            case "Set_not_contains" if isinstance(names := condition.parts[0], Node) and names.op in NAMES[:-1]:
                return f"{p[1]} is not free in {pattern_text(names.parts[0])}"
            case _:
                return pattern_text(condition)
    left, right = condition.left, condition.right
    if (both := _disjoint(condition)) is not None:
        names, bound = both
        if names.op == "bvs":
            return f"{pattern_text(names.parts[0])} and {pattern_text(bound.parts[0])} share no variable"
        return f"no variable of {pattern_text(bound.parts[0])} is free in {pattern_text(names.parts[0])}"
    if isinstance(left, Node) and left.op == "i64___mod__" and right == Constant(0):
        return f"{pattern_text(left.parts[1])} divides {pattern_text(left.parts[0])}"
    if isinstance(right, Node) and right.op in _TYPES:
        left, right = right, left
    return f"{pattern_text(left)} is {pattern_text(right)}"


def failure_text(condition: Condition, values: dict[str, Any], value: Callable[[Pattern], Any], show: Show) -> str:
    """A condition that does not hold, with what makes it fail.

    Parameters
    ----------
    value
        Gives what a pattern stands for, or None.
    """
    *first, last = _reasons(condition, values, value, show)
    reasons = f"{', '.join(first)} and {last}" if first else last
    return f"needs that {condition_text(condition)}, but {reasons}"


def _reasons(
    condition: Condition, values: dict[str, Any], value: Callable[[Pattern], Any], show: Show
) -> Iterator[str]:
    if isinstance(condition, Equation):
        if (both := _disjoint(condition)) is not None:
            names, bound = both
            shared = sorted(show(v, "V") for v in value(names) & value(bound))
            if names.op == "bvs":
                yield f"both bind {' and '.join(shared)}"
            else:
                holder = names.parts[0]
                there = show(value(holder), "" if isinstance(holder, Constant) else holder.sort)
                yield f"{' and '.join(shared)} {'is' if len(shared) == 1 else 'are'} free in {there}"
            return
        for side in (condition.left, condition.right):
            if isinstance(side, Node) and side.op in _TYPES:
                found = value(side)
                yield "it has none" if found is None else f"it is {show(found, 'Ty')}"
                return
    elif condition.op == "tile" and value(condition.parts[1]) is None:
        yield f"none is for {show(value(condition.parts[0]), 'i64')}"
        return
    elif condition.op == "lane_width" and value(condition.parts[0]) is None:
        yield "none is"
        return
    sides = (condition.left, condition.right) if isinstance(condition, Equation) else (condition,)
    if isinstance(sides[0], Node) and sides[0].op in _NUMERIC:
        for side in dict.fromkeys(sides[0].parts):
            if not isinstance(side, Constant):
                yield f"{pattern_text(side)} = {value(side)}"
        return
    found: dict[str, str] = {}
    for side in sides:
        for hole in subpatterns(side):
            if isinstance(hole, Hole) and hole.name in values:
                found[hole.name] = show(values[hole.name], hole.sort)
    yield from (f"{name} = {text}" for name, text in found.items())


def _disjoint(condition: Equation) -> tuple[Node, Node] | None:
    """For the condition that two sets of names share none: both."""
    left = condition.left
    if isinstance(left, Node) and left.op == "Set___sub__" and left.parts[0] == condition.right:
        names, bound = left.parts
        if isinstance(names, Node) and isinstance(bound, Node) and {names.op, bound.op} <= set(NAMES):
            return names, bound
    return None
