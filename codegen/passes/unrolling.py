"""Which loops are unrolled: here where an index must be a number, else by the device's compiler, which is asked to.

Source: 000 §4.3.5 (private memory arrays, vector component access).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeGuard

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.devices import Dialect
from lift_egraph.errors import NestingProblem
from lift_egraph.language.describe import blame
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat
from lift_egraph.language.types import Vector

UNROLL_LIMIT = 4096  # statements that one kernel may unroll to
SHORT_LOOP = 8  # steps up to which a device's compiler is asked to unroll an innermost loop …
SHORT_NEST = 32  # … or any loop, if that makes …
SHORT_BODY = 160  # … no more statements than this …
AT_ONCE = 64  # steps that are copied before they are counted
FULL = 2  # times as many statements as long loops are unrolled to fill the place for instructions by themselves
ASKED_LIMIT = 16_384  # statements of a GPU's kernel up to which its long loops are unrolled
SERIAL_LIMIT = 4096  # … and, of a kernel of one work-item, up to which they are unrolled wholly: conjugate gradients
# with 257 unknowns, some twenty such loops, ran past 20 s with NVIDIA's compiler
FUNCTION = 8  # statements that one of a float counts for
OWN_STEPS = 64  # of loops that a CPU's compiler unrolls by itself
IN_BLOCK = 4  # vectors of sums from which a loop adds up a block of results in registers …
UNROLLED_BLOCK = 256  # … and statements that it is unrolled to at most
LONG_TEXT = 1024  # statements of a body that make a long text: PoCL took 80 s for attention with 97 scores a work-item


class UnrollingProblem(NestingProblem):
    """A kernel unrolls to too many statements."""


Stays = Callable[[c_ast.Buffer], bool]


def nothing_stays(buffer: c_ast.Buffer) -> bool:
    """No private array stays an array."""
    return False


def unroll(
    body: c_ast.Body, *, named_arrays: bool, stays: Stays = nothing_stays, limit: int = UNROLL_LIMIT
) -> c_ast.Body:
    """Unrolls the loops whose index selects a named variable or a vector's component.

    With `named_arrays` every private array becomes variables; without, such loops keep their form and
    ask the device's compiler to unroll. What `stays` is an array in any case.

    Raises
    ------
    UnrollingProblem
        If that makes a kernel of more statements than the limit.
    """
    budget = [limit]
    ways = _Ways(named_arrays, stays)
    return tuple(s for statement in body for s in _unroll(statement, ways, budget))


class _Ways(NamedTuple):
    """Which private arrays become variables, and which stay arrays whatever the device."""

    named: bool
    stays: Stays

    def selects_from(self, buffer: c_ast.Buffer) -> bool:
        """Whether an array becomes variables."""
        return self.named and buffer.space == "private" and not self.stays(buffer)


class Extent(NamedTuple):
    """How many statements `unroll` makes: at least and at most; and at least `by_itself` of what it makes."""

    least: int
    most: int
    by_itself: int

    def times(self, steps: int) -> Extent:
        """That of several steps."""
        return Extent(*(steps * number for number in self))


def extent(body: c_ast.Body, *, named_arrays: bool, stays: Stays = nothing_stays) -> Extent | None:
    """What `unroll` makes of a body, without a copy of any step; None where the length of a loop is not known.

    The index of an inner loop may vanish from what it selects where that of an outer one is known, as ``i`` from
    ``i * j`` where ``j`` is 0. Where that could be, a loop counts as unrolled, and as not.
    """
    return _extent(body, _Ways(named_arrays, stays))


def _extent(body: c_ast.Body, ways: _Ways) -> Extent | None:
    least = most = own = 0
    for statement in body:
        found: Extent | None = Extent(1, 1, 1)
        if isinstance(statement, c_ast.For):
            found = _extent_of_loop(statement, ways)
        elif isinstance(statement, c_ast.If | c_ast.Block):
            found = _extent(statement.body, ways)
        if found is None:
            return None
        least, most, own = least + found.least, most + found.most, own + found.by_itself
    return Extent(least, most, own)


def _extent_of_loop(loop: c_ast.For, ways: _Ways) -> Extent | None:
    count = loop.count.constant
    if count == 0:
        return Extent(0, 0, 0)
    if (step := _extent(loop.body, ways)) is None:
        return None
    if is_grid(loop) or not _selects(loop.body, loop.variable, ways):
        if count is None:  # it may be 0, once the index of a loop around it is known
            return Extent(0, step.most, 0)
        unrolls = loop.trips <= OWN_STEPS or _stays_selected(loop.body, loop.variable, ways._replace(named=True))
        return step._replace(by_itself=step.by_itself * (loop.trips if unrolls else 1))
    if count is None or loop.threads is None:
        return None
    every = step.times(loop.trips)
    return every if _stays_selected(loop.body, loop.variable, ways) else step._replace(most=every.most)


def _stays_selected(body: c_ast.Body, variable: NatVar, ways: _Ways) -> bool:
    """Whether a variable selects something, whatever the variables of loops around it are.

    A lane of a vector is left out: once it is known which, only this may be left of the vector.
    """
    ahead: list[object] = list(body)
    while ahead:
        part = ahead.pop()
        if variable.name not in c_walk.mentioned(part):
            continue
        if isinstance(part, c_ast.Lane):
            if _is_apart(part.lane, variable):
                return True
        elif isinstance(part, c_ast.Load):
            if ways.selects_from(part.buffer) and _is_apart(part.index, variable):
                return True
        else:
            ahead += c_walk.children(part) if not isinstance(part, Nat) else ()
    return False


def _is_apart(index: Nat, variable: NatVar) -> bool:
    """Whether a variable stands in a term of its own, and in no other."""
    terms = [monomial for monomial, _ in index.terms if any(variable in nat(atom).variables for atom in monomial)]
    return terms == [(variable,)]


def _unroll(statement: c_ast.Statement, ways: _Ways, budget: list[int]) -> list[c_ast.Statement]:
    if isinstance(statement, c_ast.If | c_ast.Block):
        return [c_walk.with_body(statement, [s for b in statement.body for s in _unroll(b, ways, budget)])]
    if not isinstance(statement, c_ast.For):
        budget[0] -= 1
        if budget[0] < 0:
            raise UnrollingProblem(
                f"unrolling private arrays makes more than {UNROLL_LIMIT} statements: use smaller register blocks"
            )
        return [statement]
    if statement.count.constant == 0:
        return []  # it never runs, and its indices lie in no array
    if is_grid(statement) or not _selects(statement.body, statement.variable, ways):
        made = c_walk.with_body(statement, [s for b in statement.body for s in _unroll(b, ways, budget)])
        asked = _selects(statement.body, statement.variable, ways._replace(named=True))
        return [made if made.pragma == asked else replace(made, pragma=asked)]
    try:
        return _copies(statement, ways, budget)
    except NestingProblem as problem:
        raise blame(problem, statement.origin) from None


def is_grid(loop: c_ast.For) -> bool:
    """Whether no unrolling makes the index of a loop a number."""
    return loop.level.kind in ("glb", "wrg") and loop.threads != 1


def _copies(statement: c_ast.For, ways: _Ways, budget: list[int]) -> list[c_ast.Statement]:
    """The steps of a loop, one after the other."""
    count, threads = statement.count.constant, statement.threads
    if count is None:
        is_computed = any(isinstance(v, c_ast.Computed) for v in statement.count.variables)
        steps = "a computed number of" if is_computed else statement.count
        raise NestingProblem(
            f"a loop of {steps} steps selects from private memory or vector components, so its length must "
            "be a number: specialise the size, or split the array into blocks of a known length"
        )
    if threads is None:
        raise NestingProblem(
            f"{statement.level.name} selects from private memory or vector components: a kernel for any launch needs "
            "a local size here (launch=Launch(global_size, local_size))"
        )
    own = nat(NatVar(f"get_local_id({statement.level.dimension})", 0, threads - 1)) if threads > 1 else nat(0)
    result: list[c_ast.Statement] = []
    for index, step in _steps(statement, own):
        copy: c_ast.Body = tuple([s for b in step for s in _unroll(b, ways, budget)])
        if statement.is_parallel and not is_at_least(guard := count - 1 - index, 0):
            result.append(c_ast.If((guard,), copy, origin=statement.origin))
        elif declares(copy):
            result.append(c_ast.Block(copy, origin=statement.origin))
        else:
            result += copy
    return result


def _steps(loop: c_ast.For, own: Nat) -> Iterator[tuple[Nat, c_ast.Body]]:
    """The index and the body of each step that a work-item runs; `own` is its first index."""
    for first in range(0, loop.trips, AT_ONCE):
        steps = range(first, min(first + AT_ONCE, loop.trips))
        indices = [own + (loop.threads or 1) * step for step in steps]
        yield from zip(indices, c_walk.copies(loop.body, loop.variable.name, indices), strict=True)


def declares(body: c_ast.Body) -> bool:
    """Whether statements declare a name in the scope around them: parallel loops may be printed without braces."""
    return any(
        isinstance(s, c_ast.Let | c_ast.Allocate)
        or (isinstance(s, c_ast.For) and s.is_parallel and (s.level.kind != "lcl" or declares(s.body)))
        for s in body
    )


def mark_short_loops(body: c_ast.Body) -> c_ast.Body:
    """Asks the device's compiler to unroll sequential loops of few steps, or of few statements in all.

    Compilers for CPUs turn a group into a loop over its work-items and vectorise that: a loop left inside is in
    the way (the partial dot product of Listing 2.4 is 2.5 times slower on PoCL, a convolution 2 times). What makes a
    long text is not unrolled.
    """
    return _marked_body(body)[0]


def _marked_body(body: c_ast.Body) -> tuple[c_ast.Body, int]:
    """A body with its short loops marked, and its statements with the loops unrolled that ask for it."""
    marked, total = list[c_ast.Statement](), 0
    for statement in body:
        length = 1
        if isinstance(statement, c_ast.AROUND):
            inside, length = _marked_body(statement.body)
            statement = _marked(c_walk.with_body(statement, inside))
            length *= _times_asked(statement) if isinstance(statement, c_ast.For) else 1
        marked.append(statement)
        total += length
    return (tuple(marked), total) if total <= LONG_TEXT else (body, _counted(body, _times_asked))


def _times_asked(loop: c_ast.For) -> int:
    return loop.most if loop.pragma else 1


def as_asked(body: c_ast.Body, dialect: Dialect, is_alone: bool = False) -> int:
    """The statements of a body with its loops unrolled as the device's compiler is asked to."""

    def times(loop: c_ast.For) -> int:
        if loop.pragma:
            return loop.most
        return _long_factor(loop, dialect, is_alone) if dialect.unroll_long else 1

    return _counted(body, times, lambda statement: 1 + FUNCTION * c_walk.functions(statement))


def by_itself(body: c_ast.Body) -> int:
    """The statements of a body with those loops unrolled that a device's compiler unrolls without being asked to."""
    return _counted(body, lambda loop: loop.trips if loop.pragma or loop.trips <= OWN_STEPS else 1)


def _counted(
    body: c_ast.Body, times: Callable[[c_ast.For], int], weight: Callable[[c_ast.Statement], int] = lambda statement: 1
) -> int:
    """The statements of a body, those of a loop some times, each by its weight."""
    return sum(
        _counted(s.body, times, weight) * (times(s) if isinstance(s, c_ast.For) else 1)
        if isinstance(s, c_ast.AROUND)
        else weight(s)
        for s in body
    )


def _marked(statement: c_ast.For | c_ast.If | c_ast.Block) -> c_ast.Statement:
    if not isinstance(statement, c_ast.For) or statement.is_parallel or statement.count.constant is None:
        return statement
    count, length = statement.count.constant, _length(statement.body)
    short = count <= SHORT_LOOP and length is not None and not any(_stays(part) for part in c_walk.walk(statement.body))
    nest = count <= SHORT_NEST and length is not None and count * length <= SHORT_BODY
    return statement if statement.pragma or not (short or nest) else replace(statement, pragma=True)


def _stays(part: object) -> bool:
    return isinstance(part, c_ast.For) and not (part.is_parallel and part.trips == 1)


def _length(body: c_ast.Body) -> int | None:
    """The statements of a body with its loops unrolled; None where a loop stays, or a barrier is inside."""
    total = 0
    for statement in body:
        inner = _length(statement.body) if isinstance(statement, c_ast.AROUND) else 0
        if inner is None or isinstance(statement, c_ast.Barrier):
            return None
        if isinstance(statement, c_ast.For) and _stays(statement):
            if not statement.pragma or statement.count.constant is None:
                return None
            inner *= statement.count.constant
        total += inner + isinstance(statement, c_ast.Store | c_ast.SetIndex | c_ast.Swap)
    return total


def _selects(body: c_ast.Body, variable: NatVar, ways: _Ways) -> bool:
    for part in c_walk.mentioning(body, variable):
        if isinstance(part, c_ast.Lane) and variable in part.lane.variables:
            return True
        if isinstance(part, c_ast.Load) and ways.selects_from(part.buffer) and variable in part.index.variables:
            return True
    return False


def pragma(loop: c_ast.For, dialect: Dialect, shares_groups: bool, is_alone: bool = False) -> str | None:
    """What asks the device's compiler to unroll a loop, if anything.

    Parameters
    ----------
    shares_groups
        Whether the work-groups of the kernel have several work-items.
    is_alone
        Whether the kernel has one work-item: while it waits for memory, there is no other to go on with.
    """
    if loop.pragma:
        return "#pragma unroll"
    by = dialect.unroll_by
    if dialect.unroll_long:
        by = _long_factor(loop, dialect, is_alone)
        return f"#pragma unroll {by}" if by > 1 else None
    innermost = not any(isinstance(s, c_ast.For | c_ast.Barrier) for s in c_walk.statements(loop.body))
    fits = innermost and (shares_groups or (adds_up_a_block(loop) and by * _statements(loop.body) <= UNROLLED_BLOCK))
    return f"#pragma unroll {by}" if by and fits and loop.trips > by else None


def adds_up_a_block(loop: c_ast.For) -> bool:
    """Whether a loop adds to several vectors in registers: no compiler need make vectors of it, or of work-items."""
    if loop.is_parallel:
        return False
    sums = {
        s.place
        for s in c_walk.statements(loop.body)
        if isinstance(s, c_ast.Store) and _is_private_vector(s.place) and s.place in c_walk.loads(s.value)
    }
    return len(sums) >= IN_BLOCK


def _is_private_vector(place: c_ast.CExpr) -> TypeGuard[c_ast.Load]:
    return isinstance(place, c_ast.Load) and place.buffer.space == "private" and isinstance(place.type, Vector)


def _long_factor(loop: c_ast.For, dialect: Dialect, is_alone: bool = False) -> int:
    """By how much a loop is unrolled where the dialect unrolls long loops; 1: not."""
    if loop.is_parallel:
        return 1
    inner = [s for s in c_walk.statements(loop.body) if isinstance(s, c_ast.For) and not s.pragma and s.trips > 1]
    if any(_long_factor(part, dialect) < part.trips for part in inner):
        return 1
    if any(
        isinstance(v, c_ast.Computed)
        for part in c_walk.walk(loop.body)
        if isinstance(part, Nat)
        for v in part.variables
    ):
        return 1
    by, length = dialect.unroll_by, max(_statements(loop.body), 1)
    most = dialect.unroll_long // length
    if length > FULL * dialect.unroll_long:
        return 1
    if loop.trips <= (most if is_alone else max(min(most, 8 * by), 2 * by)):
        return loop.trips
    factor = 4 * by if most >= 4 * by else 2 * by if most >= 2 * by else by
    return factor if loop.trips >= factor else 1


def _statements(body: c_ast.Body) -> int:
    """The statements that one round of a loop's body runs."""
    return _counted(body, lambda loop: loop.trips)
