"""Expressions of egglog made directly, from what it made of the first with the same operation.

egglog's Python layer solves for types and copies all declarations in every call, which takes longer than a rule needs
for a small term. Its declarations are no stable interface, so this stands here, behind a test.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from egglog import declarations as egg
from egglog.runtime import RuntimeExpr

from lift_egraph.egraph import sorts

_SORTS = {name: getattr(sorts, name) for name in ("Ty", "V", "P", "Op", "Fn", "Ex", "Order")}


class _Made(NamedTuple):
    """What all expressions of an operation have in common."""

    result: Any
    callable: Any
    arguments: tuple[Any, ...]


_KNOWN: dict[str, _Made] = {}


def made(op: str, *arguments: Any) -> Any:
    """An operation of the e-graph, by its name there, applied to expressions, numbers and texts.

    Examples
    --------
    >>> made("Ty_arr", 2, made("Ty_scalar", "f32"))
    Ty.arr(2, Ty.scalar("f32"))
    """
    known = _KNOWN.get(op)
    if known is None:
        whole = _called(op, arguments)
        typed = whole.__egg_typed_expr__
        assert not typed.expr.bound_tp_params
        _KNOWN[op] = _Made(typed.tp, typed.expr.callable, tuple(a.tp for a in typed.expr.args))
        return whole
    parts = tuple([_argument(t, a) for t, a in zip(known.arguments, arguments, strict=True)])
    whole = egg.TypedExprDecl(known.result, egg.CallDecl(known.callable, parts))
    return RuntimeExpr.__from_values__(_declarations(), whole)


def _argument(t: Any, value: Any) -> Any:
    if isinstance(value, RuntimeExpr):
        return value.__egg_typed_expr__
    if t.ident.name == "Order":
        return sorts.to_order(value).__egg_typed_expr__  # pyright: ignore[reportAttributeAccessIssue]
    return egg.TypedExprDecl(t, egg.LitDecl(value))


def _called(op: str, arguments: tuple[Any, ...]) -> Any:
    sort, _, method = op.partition("_")
    if sort not in _SORTS or not method:
        return getattr(sorts, op)(*arguments)
    if method == "__init__":
        return _SORTS[sort](*arguments)
    if op == "Op_lift":
        return arguments[0].lift()
    return getattr(_SORTS[sort], method)(*arguments)


@cache
def _declarations() -> Any:
    """All that egglog knows of the sorts and operations."""
    known = (v for v in vars(sorts).values() if hasattr(v, "__egg_decls__") and not isinstance(v, RuntimeExpr))
    return egg.Declarations.create(*known)
