"""Small clean-ups of the tree: unrolling where it must be, constants used once or never.

Source: 000 §4.3.5 (private memory arrays, vector component access).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from lift_egraph.codegen.c_ast import (
    Allocate,
    Barrier,
    Block,
    Body,
    CExpr,
    For,
    If,
    Lane,
    Let,
    Load,
    Name,
    SetIndex,
    Statement,
    Store,
    Swap,
    loads,
    rewrite,
    substitute,
    walk,
)
from lift_egraph.errors import NestingProblem
from lift_egraph.language.describe import blame
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat

UNROLL_LIMIT = 4096  # statements that one kernel may unroll to
SHORT_LOOP = 8  # steps up to which a device's compiler is asked to unroll an innermost loop …
SHORT_NEST = 32  # … or any loop, if that makes …
SHORT_BODY = 160  # … no more statements than this


def unroll(body: Body, *, named_arrays: bool) -> Body:
    """Unrolls the loops whose index selects a named variable or a vector's component.

    With `named_arrays` every private array becomes variables; without, such loops keep their form and
    ask the device's compiler to unroll.

    Raises
    ------
    NestingProblem
        If that makes a kernel of more than `UNROLL_LIMIT` statements.
    """
    budget = [UNROLL_LIMIT]
    return tuple(s for statement in body for s in _unroll(statement, named_arrays, budget))


def _unroll(statement: Statement, named: bool, budget: list[int]) -> list[Statement]:
    if isinstance(statement, If | Block):
        return [replace(statement, body=tuple(s for b in statement.body for s in _unroll(b, named, budget)))]
    if not isinstance(statement, For):
        budget[0] -= 1
        if budget[0] < 0:
            raise NestingProblem(
                f"unrolling private arrays makes more than {UNROLL_LIMIT} statements: use smaller register blocks"
            )
        return [statement]
    if statement.count.constant == 0:
        return []  # it never runs, and its indices lie in no array
    is_grid = statement.level.kind in ("glb", "wrg") and statement.threads != 1  # no unrolling makes its index a number
    if is_grid or not _selects(statement.body, statement.variable, named):
        inner = tuple(s for b in statement.body for s in _unroll(b, named, budget))
        return [replace(statement, body=inner, pragma=_selects(statement.body, statement.variable, True))]
    try:
        return _copies(statement, named, budget)
    except NestingProblem as problem:
        raise blame(problem, statement.origin) from None


def _copies(statement: For, named: bool, budget: list[int]) -> list[Statement]:
    """The steps of a loop, one after the other."""
    count, threads = statement.count.constant, statement.threads
    if count is None:
        raise NestingProblem(
            f"a loop of {statement.count} steps selects from private memory or vector components, so its length must "
            "be a number: specialise the size, or split the array into blocks of a known length"
        )
    if threads is None:
        raise NestingProblem(
            f"{statement.level.name} selects from private memory or vector components: a kernel for any launch needs "
            "a local size here (launch=Launch(global_size, local_size))"
        )
    result: list[Statement] = []
    for step in range(statement.trips):
        index, guard = nat(step), None
        if statement.is_parallel:
            level = statement.level
            own = NatVar(f"get_local_id({level.dimension})", 0, threads - 1)
            index = own + nat(threads * step) if threads > 1 else nat(step)
            guard = count - 1 - index
        copy: Body = tuple(
            s for b in substitute(statement.body, {statement.variable.name: index}) for s in _unroll(b, named, budget)
        )
        if guard is not None and not is_at_least(guard, 0):
            result.append(If((guard,), copy, origin=statement.origin))
        elif _declares(copy):
            result.append(Block(copy, origin=statement.origin))
        else:
            result += copy
    return result


def _declares(body: Body) -> bool:
    """Whether statements declare a name in the scope around them: parallel loops may be printed without braces."""
    return any(
        isinstance(s, Let | Allocate)
        or (isinstance(s, For) and s.is_parallel and (s.level.kind != "lcl" or _declares(s.body)))
        for s in body
    )


def mark_short_loops(body: Body) -> Body:
    """Asks the device's compiler to unroll sequential loops of few steps, or of few statements in all.

    Compilers for CPUs turn a group into a loop over its work-items and vectorise that: a loop left inside is in
    the way (the partial dot product of Listing 2.4 is 2.5 times slower on PoCL, a convolution 2 times).
    """
    return tuple(_marked(statement) for statement in body)


def _marked(statement: Statement) -> Statement:
    if not isinstance(statement, For | If | Block):
        return statement
    statement = replace(statement, body=mark_short_loops(statement.body))
    if not isinstance(statement, For) or statement.is_parallel or statement.count.constant is None:
        return statement
    count, length = statement.count.constant, _length(statement.body)
    short = count <= SHORT_LOOP and length is not None and not any(_stays(part) for part in walk(statement.body))
    nest = count <= SHORT_NEST and length is not None and count * length <= SHORT_BODY
    return replace(statement, pragma=statement.pragma or short or nest)


def _stays(part: object) -> bool:
    return isinstance(part, For) and not (part.is_parallel and part.trips == 1)


def _length(body: Body) -> int | None:
    """The statements of a body with its loops unrolled; None where a loop stays, or a barrier is inside."""
    total = 0
    for statement in body:
        inner = _length(statement.body) if isinstance(statement, For | If | Block) else 0
        if inner is None or isinstance(statement, Barrier):
            return None
        if isinstance(statement, For) and _stays(statement):
            if not statement.pragma or statement.count.constant is None:
                return None
            inner *= statement.count.constant
        total += inner + isinstance(statement, Store | SetIndex | Swap)
    return total


def _selects(body: Body, variable: NatVar, named: bool) -> bool:
    for part in walk(body):
        if isinstance(part, Lane) and variable in part.lane.variables:
            return True
        if named and isinstance(part, Load) and part.buffer.space == "private" and variable in part.index.variables:
            return True
    return False


def inline_constants(body: Body) -> Body:
    """Drops constants that are never used, and puts those used once, right away, where they are used."""
    statements = [_inside(s) for s in body]
    uses = Counter(part.name for part in walk(tuple(statements)) if isinstance(part, Name))
    kept: list[Statement] = []  # what follows, the next statement last
    for statement in reversed(statements):
        if not isinstance(statement, Let):
            kept.append(statement)
        elif not uses[statement.name]:
            uses.subtract(part.name for part in walk(statement.value) if isinstance(part, Name))
        elif uses[statement.name] > 1 or not _put_in(statement, kept):
            kept.append(statement)
    return tuple(reversed(kept))


def _put_in(let: Let, following: list[Statement]) -> bool:
    """Puts a constant that is used once where it is used, if only other constants stand between."""
    for position in reversed(range(len(following))):
        statement = following[position]
        if isinstance(statement, For | If | Block):
            return False
        if _uses(statement, let.name):
            following[position] = rewrite(statement, _replacing(let.name, let.value))
            return True
        if not isinstance(statement, Let):
            return False
    return False


def sink_constants(body: Body) -> Body:
    """Moves a constant that a loop separates from its first use behind the loop.

    A value that is read from the program's inputs early and used late would hold registers in the loop between (on
    an H100 an N-body step with 16,384 bodies takes 1.37 ms, and 1.12 ms with its velocities read behind the loop).
    """
    statements = [replace(s, body=sink_constants(s.body)) if isinstance(s, For | If | Block) else s for s in body]
    for position in reversed(range(len(statements))):
        let = statements[position]
        if not isinstance(let, Let) or any(load.buffer.mutable for load in loads(let.value)):
            continue
        user = next((k for k in range(position + 1, len(statements)) if _uses(statements[k], let.name)), position)
        if any(isinstance(s, For) for s in statements[position + 1 : user]):
            del statements[position]
            statements.insert(user - 1, let)
    return tuple(statements)


def _inside(statement: Statement) -> Statement:
    if isinstance(statement, For | If | Block):
        inner = inline_constants(statement.body)
        if isinstance(statement, Block) and len(inner) == 1 and not _declares(inner):
            return inner[0]
        return replace(statement, body=inner)
    return statement


def _uses(statement: Statement, name: str) -> int:
    return sum(1 for part in walk(statement) if isinstance(part, Name) and part.name == name)


def _replacing(name: str, value: CExpr) -> Callable[[object], CExpr | Nat | None]:
    def change(part: object) -> CExpr | Nat | None:
        if isinstance(part, Name) and part.name == name:
            return value
        return None

    return change
