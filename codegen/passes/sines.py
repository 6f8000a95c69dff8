"""Sine and cosine of one value, computed together.

Both share the reduction of their argument, which is most of the work: OpenCL's ``sincos`` does it once.
"""

from __future__ import annotations

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.names import c_name

_OPERATIONS = ("sin", "cos")


def pair_sines(body: c_ast.Body, taken: set[str]) -> c_ast.Body:
    """The body with a `SinCos` before the first use of sine or cosine where both of a value are needed.

    Only values of constants and of the program's inputs count: those do not change between the two uses.
    """
    if not any(map(c_walk.functions, body)):
        return body
    statements: list[c_ast.Statement] = [
        c_walk.with_body(s, pair_sines(s.body, taken)) if isinstance(s, c_ast.AROUND) else s
        for s in body
    ]
    for value in _in_both(statements):
        uses = [k for k, s in enumerate(statements) if any(_is_of(part, value) for part in _parts(s))]
        sine, cosine = c_ast.Name(c_name("sine", taken), value.type), c_ast.Name(c_name("cosine", taken), value.type)
        names = dict(zip(_OPERATIONS, (sine, cosine), strict=True))
        for k in uses:
            statements[k] = c_walk.rewrite(
                statements[k], lambda part, value=value, names=names: names[part.op] if _is_of(part, value) else None
            )
        statements.insert(uses[0], c_ast.SinCos(sine.name, cosine.name, value, origin=statements[uses[0]].origin))
    return tuple(statements)


def _parts(statement: c_ast.Statement) -> list[object]:
    return list(c_walk.walk(statement)) if isinstance(statement, c_ast.Let | c_ast.Store) else []


def _is_of(part: object, value: c_ast.CExpr) -> bool:
    return isinstance(part, c_ast.Operate) and part.op in _OPERATIONS and part.arguments == (value,)


def _in_both(statements: list[c_ast.Statement]) -> list[c_ast.CExpr]:
    """The values whose sine and cosine are both computed in these statements, in the order of their first use."""
    found: dict[c_ast.CExpr, set[str]] = {}
    for statement in statements:
        for part in _parts(statement):
            if isinstance(part, c_ast.Operate) and part.op in _OPERATIONS:
                found.setdefault(part.arguments[0], set()).add(part.op)
    return [v for v, ops in found.items() if len(ops) == 2 and not any(x.buffer.mutable for x in c_walk.loads(v))]
