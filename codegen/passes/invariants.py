"""A loop inside of another one that computes the same in each of its steps is run before it, once.

Compilers move single values out of loops, but not whole loops. The norm of a row that each element of the row is
divided by, the mean in a function that is called for each element: written where they are used, they would make a
linear kernel a quadratic one.

Source: new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lift_egraph.codegen import c_ast, c_walk

_KNOWN = (c_ast.Let, c_ast.Allocate, c_ast.Store, c_ast.For, c_ast.If, c_ast.Block)


def move_invariants(body: c_ast.Body) -> c_ast.Body:
    """Moves loops out of the sequential loops around them, as far as they do not depend on these.

    What such a loop needs, and what is computed from it alone, goes along. Nothing leaves a condition, a parallel
    loop, or a loop with barriers or pointers that change.
    """
    result: list[c_ast.Statement] = []
    for statement in body:
        if isinstance(statement, c_ast.AROUND):
            statement = c_walk.with_body(statement, move_invariants(statement.body))
        if isinstance(statement, c_ast.For):
            moved = _invariant(statement)
            result += moved
            kept = {id(s) for s in moved}
            statement = c_walk.with_body(statement, [s for s in statement.body if id(s) not in kept])
        result.append(statement)
    return tuple(result)


@dataclass(frozen=True)
class _Effects:
    """What a statement defines, reads and writes for the statements around it: the names of constants and buffers."""

    defines: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]

    @staticmethod
    def of(statement: c_ast.Statement) -> _Effects:
        defines: set[str] = set()
        reads: set[str] = set()
        writes = {name for place in c_walk.stores(statement) for name in (place.buffer.name, *place.buffer.targets)}
        for part in c_walk.walk(statement):
            if isinstance(part, c_ast.Let):
                defines.add(part.name)
            elif isinstance(part, c_ast.Allocate):
                defines.add(part.buffer.name)
            elif isinstance(part, c_ast.Name):
                reads.add(part.name)
        reads |= {name for load in c_walk.loads(statement) for name in (load.buffer.name, *load.buffer.targets)}
        if isinstance(statement, c_ast.Let | c_ast.Allocate):
            return _Effects(frozenset(defines), frozenset(reads), frozenset(writes))
        return _Effects(frozenset(), frozenset(reads - defines), frozenset(writes - defines))


def _invariant(loop: c_ast.For) -> list[c_ast.Statement]:
    """The statements of a loop that do the same in each step, if there is a loop among them."""
    least = loop.count.range[0]
    if loop.is_parallel or least is None or least < 1 or not any(isinstance(s, c_ast.For) for s in loop.body):
        return []
    if any(isinstance(part, c_ast.Statement) and not isinstance(part, _KNOWN) for part in c_walk.statements(loop.body)):
        return []
    effects = [_Effects.of(s) for s in loop.body]
    carried = _carried(effects)
    chosen = {k for k, s in enumerate(loop.body) if _may_move(s, loop) and not effects[k].writes & carried}
    while True:
        others = [e for k, e in enumerate(effects) if k not in chosen]
        changing = frozenset[str]().union(*(e.defines | e.writes for e in others))
        depend = {k for k in chosen if (effects[k].defines | effects[k].reads | effects[k].writes) & changing}
        if not depend:
            break
        chosen -= depend
    found = [loop.body[k] for k in sorted(chosen)]
    return found if _loops(found) else []


def _carried(effects: list[_Effects]) -> set[str]:
    """The buffers from outside of a loop that a step may read as the one before left them."""
    found = set[str]()
    for name in frozenset[str]().union(*(e.writes for e in effects)):
        written = max(k for k, e in enumerate(effects) if name in e.writes)
        read = min((k for k, e in enumerate(effects) if name in e.reads), default=len(effects))
        if read <= written and not any(name in e.defines for e in effects):
            found.add(name)
    return found


def _may_move(statement: c_ast.Statement, loop: c_ast.For) -> bool:
    is_parallel = any(isinstance(part, c_ast.For) and part.is_parallel for part in c_walk.statements(statement))
    return not is_parallel and not c_walk.depends(statement, loop.variable)


def _loops(statements: Iterable[c_ast.Statement]) -> bool:
    return any(isinstance(s, c_ast.For) for s in statements)
