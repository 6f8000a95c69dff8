"""The state of lowering one kernel: loops around the place in hand, the statements so far, names in use.

What computes terms into it is in `lower`; what allocates, copies and stores in `sharing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lift_egraph.codegen.c_ast import Buffer, CExpr, For, Let, Name, Statement, Store
from lift_egraph.codegen.c_walk import loads, substitute
from lift_egraph.codegen.lowering.memory import PRIVATE_CHOICE
from lift_egraph.codegen.lowering.plain_index import plain
from lift_egraph.codegen.lowering.views import OwnershipProblem, ThreadVar, View
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.plans.kernel import LARGEST_LAUNCH
from lift_egraph.errors import NestingProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.types import DataType

_LOOP_NAMES = "ijkmn"


@dataclass
class State(ABC):
    """The state of lowering one kernel.

    `threads` gives the number of work-items or groups of each parallel level (None: known at the launch only);
    `taken` the names in use; `term` the term in hand, from which new statements come.
    `homes` are the dimensions of mapLcl that each private array belongs to, `owned` those that share it out,
    `makers` the terms for which private memory was chosen though they do not ask for it, `shared` those that
    need local memory instead. `most_private` are the scalars of an array up to which private memory is chosen.
    `streams`: what is written to global memory goes around the caches. `sub_group` are the work-items that pass values
    to each other.
    """

    environment: dict[ir.Var | ir.Input, View]
    threads: dict[ir.Level, int | None]
    taken: set[str]
    optimise: Optimisations = ALL
    width: int = 1
    term: ir.Expr | None = None
    statements: list[Statement] = field(default_factory=list)
    locals: list[Buffer] = field(default_factory=list)
    temporaries: list[Buffer] = field(default_factory=list)
    loops: list[tuple[ir.Level, Nat, Nat]] = field(default_factory=list)
    homes: dict[str, frozenset[int]] = field(default_factory=dict)
    owned: dict[str, frozenset[int]] = field(default_factory=dict)
    makers: dict[str, ir.Expr] = field(default_factory=dict)
    shared: frozenset[ir.Expr] = frozenset()
    most_private: int = PRIVATE_CHOICE
    streams: bool = False
    sub_group: int = 0

    # --- loops and scopes -----------------------------------------------------------------------

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Collects statements apart from the current ones."""
        outer, self.statements = self.statements, []
        try:
            yield self.statements
        finally:
            self.statements = outer

    @contextmanager
    def lanes(self, function: ir.Function) -> Iterator[None]:
        """Everything computed inside a vectorised function has `width` lanes.

        Raises
        ------
        NestingProblem
            If it stands in another one.
        """
        outer = self.width
        if isinstance(function, ir.Vectorize):
            if outer > 1:
                raise NestingProblem("vectorize stands inside another vectorize: vectors do not nest")
            self.width = function.width
        try:
            yield
        finally:
            self.width = outer

    @contextmanager
    def loop(
        self, count: Nat, level: ir.Level = ir.SEQ, likely: int | None = None, ticket: tuple[CExpr, ...] = ()
    ) -> Iterator[Nat]:
        """A loop over ``0 … count - 1``; yields the index. `likely` and `ticket` as in `For`.

        Raises
        ------
        SizeProblem
            If its steps are beyond the 32-bit index range.
        """
        most = count.range[1]
        top = None if most is None else max(most - 1, 0)
        below = count if most is None else None
        if most is not None and most >= 1 << 31:
            raise SizeProblem(f"a loop of {count} steps is beyond the 32-bit index range: split the array")
        if level.kind == "seq":
            if count.constant == 1 and self.optimise.control_flow:
                yield nat(0)
                return
            depth = sum(1 for loop in self.loops if loop[0] == ir.SEQ)
            variable = NatVar(c_name(_LOOP_NAMES[depth % len(_LOOP_NAMES)], self.taken), 0, top, below=below)
            threads = 1
        else:
            threads = self.threads[level]
            stride = LARGEST_LAUNCH if threads is None else threads
            if most is not None and most > stride and most + stride > 1 << 31:
                raise SizeProblem(
                    f"{count} steps of {level.name}, shared out by {'up to ' if threads is None else ''}{stride} "
                    "work-items or groups in a loop, are beyond the 32-bit index range"
                )
            variable = self.thread_variable(level, top, below, threads)
        # the one element of a mapLcl belongs to one work-item: its index is 0, but in private memory not any 0
        is_owned = level.kind == "lcl" and count.constant == 1 and threads != 1
        known = nat(0) if count.constant in (0, 1) and not is_owned else nat(variable)
        index = known if self.optimise.indices or count.constant in (0, 1) else plain(variable)
        self.loops.append((level, index, count))
        with self.block() as body:
            yield index
        self.loops.pop()
        if body:  # an accumulator that starts with what it holds already is not copied
            inner = substitute(tuple(body), {variable.name: nat(0)}) if is_owned else tuple(body)
            self.emit(For(variable, count, level, threads, inner, likely=likely, ticket=ticket))

    def thread_variable(self, level: ir.Level, top: int | None, below: Nat | None, threads: int | None) -> NatVar:
        """The index variable of a parallel loop; all mapLcl without a loop share one per dimension."""
        name = f"{level.kind}_{level.dimension}"
        if level.kind != "lcl":
            return NatVar(c_name(name, self.taken), 0, top, below=below)
        if threads is None or top is None or top >= threads:
            name = c_name(f"{name}_step", self.taken)
        return ThreadVar(name, 0, top, level.dimension, threads, below=below)

    def emit(self, statement: Statement) -> None:
        if isinstance(statement, Let | Store):
            self._check_reads(statement)
        _append(self.statements, replace(statement, origin=self.term) if statement.origin is None else statement)

    def name(self, base: str, value: CExpr) -> Name:
        """Binds a value to a constant variable."""
        made = c_name(base, self.taken)
        self.emit(Let(made, value))
        return Name(made, value.type)

    def work_items(self) -> set[int]:
        """The dimensions in which the work-items of a group do different things here."""
        return {level.dimension for level, _, _ in self.loops if level.kind == "lcl"}

    def _check_reads(self, statement: Statement) -> None:
        """Elements that are shared out among work-items are read inside a mapLcl of the same dimension only."""
        here = self.work_items()
        for place in loads(statement):
            for dimension in self.owned.get(place.buffer.name, frozenset()) - here:
                raise OwnershipProblem.of(
                    place.buffer.name,
                    f"{place.buffer.name} lies in private memory, shared out over {ir.Level('lcl', dimension).name}, "
                    "but is read outside of it; keep it in local memory",
                )

    # --- terms, in `lower` ----------------------------------------------------------------------

    @abstractmethod
    def consume(self, term: ir.Expr, /) -> View:
        """A view of a term's value."""

    @abstractmethod
    def produce(self, term: ir.Expr, /, acceptor: View) -> None:
        """Computes a term's value into the place that the acceptor describes."""

    @abstractmethod
    def bind(self, pattern: ir.Binder, view: View, lasting: bool = False) -> None:
        """Binds the variables of a pattern."""

    @abstractmethod
    def named(self, name: str, view: View, t: DataType, lasting: bool = False) -> View:
        """The same value with its scalars in constant variables."""

    @abstractmethod
    def allocate_default(self, name: str, term: ir.Expr, maker: ir.Expr, space: str | None) -> View:
        """Memory in a space, or where none is named in private memory."""

    @abstractmethod
    def materialise(self, term: ir.Expr, space: str | None) -> View:
        """Computes a term into new memory."""


def _is_guard(statement: Statement) -> bool:
    """Whether a statement is made by `sharing.by_one`."""
    return isinstance(statement, For) and statement.variable.name.startswith("first_") and statement.variable.high == 0


def _append(statements: list[Statement], statement: Statement) -> None:
    """Adds a statement; guards in a row become one, and a loop of guarded statements only is guarded as a whole."""
    if isinstance(statement, For) and not statement.is_parallel and len(statement.body) == 1:
        (inner,) = statement.body
        if isinstance(inner, For) and _is_guard(inner):
            _append(statements, replace(inner, body=(replace(statement, body=inner.body),)))
            return
    if statements and _is_guard(statement) and _is_guard(statements[-1]):
        last = statements[-1]
        assert isinstance(statement, For)
        assert isinstance(last, For)
        if (last.level, last.threads) == (statement.level, statement.threads):
            body = list(last.body)
            for inner in statement.body:
                _append(body, inner)
            statements[-1] = replace(last, body=tuple(body))
            return
    statements.append(statement)
