"""Expressions of egglog made directly, from what it made of the first with the same operation.

egglog's Python layer solves for types and copies all declarations in every call, which takes longer than a rule needs
for a small term. Its declarations are no stable interface, so this stands here, behind a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from egglog import declarations as egg
from egglog.runtime import RuntimeExpr, RuntimeFunction

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


# --- calls of egglog's own functions ----------------------------------------------------------------

_CALL: Any = RuntimeFunction.__call__
_HAS_DECLARATIONS: Any = egg.HasDeclarations
_RESULTS: dict[Any, Any] = {}  # of calls, by the function and the sorts of the arguments


@contextmanager
def direct_calls() -> Iterator[None]:
    """Meanwhile what egglog's own functions are called with is made an expression directly, too.

    A rule's function calls dozens of them, which takes egglog's Python layer longer than the e-graph needs to learn the
    rule. Functions that are not among the sorts and their operations are called as ever.
    """
    _declarations()  # makes calls itself
    _replace(_direct_call, _Declaring)
    try:
        yield
    finally:
        _replace(_CALL, _HAS_DECLARATIONS)


def _replace(call: Any, has_declarations: Any) -> None:
    RuntimeFunction.__call__, egg.HasDeclarations = call, has_declarations


class _AllElse(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return not isinstance(instance, egg.Declarations)


class _Declaring(metaclass=_AllElse):
    """What has declarations, for whom only asks this of what has or is some: Python looks for each attribute."""


def _direct_call(function: Any, *arguments: Any, **options: Any) -> Any:
    bound = function.__egg_bound__
    given = (bound, *arguments) if isinstance(bound, RuntimeExpr) else arguments
    parts = tuple([_part(a) for a in given])
    if options or not all(parts):
        return _CALL(function, *arguments, **options)
    of = None if isinstance(bound, RuntimeExpr) else bound
    key = function.__egg_ref__, of, tuple([part.tp for part in parts])
    result = _RESULTS.get(key)
    if result is None:
        whole = _CALL(function, *arguments)
        if not _is_direct(whole, parts):
            return whole
        result = _RESULTS[key] = whole.__egg_typed_expr__
    call = egg.CallDecl(result.expr.callable, parts, result.expr.bound_tp_params)
    return RuntimeExpr.__from_values__(_declarations(), egg.TypedExprDecl(result.tp, call))


def _part(argument: Any) -> Any:
    """An argument as part of an expression that `_declarations` are enough for; None if they may not be."""
    if not isinstance(argument, RuntimeExpr):
        literal = _LITERALS.get(type(argument))
        return literal and egg.TypedExprDecl(literal, egg.LitDecl(argument))
    typed = argument.__egg_typed_expr__
    is_leaf = isinstance(typed.expr, egg.UnboundVarDecl | egg.LitDecl)
    return typed if is_leaf or argument.__egg_decls__ is _declarations() else None


_LITERALS = {kind: egg.JustTypeRef(egg.Ident.builtin(name)) for kind, name in ((int, "i64"), (str, "String"))}


def _is_direct(whole: Any, parts: tuple[Any, ...]) -> bool:
    """Whether a call made an expression of its arguments as they are, all of which is among the sorts."""
    if not isinstance(whole, RuntimeExpr) or getattr(whole.__egg_typed_expr__.expr, "args", None) != parts:
        return False
    own, known = whole.__egg_decls__, _declarations()
    return own._classes.keys() <= known._classes.keys() and own._functions.keys() <= known._functions.keys()
