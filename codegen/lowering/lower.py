"""One work-item's program: a low-level term becomes loops, variables and stores.

`produce` writes the value of a term into a view, `consume` gives a view of it; only what no view can
express is computed into memory of its own. Nothing here knows several kernels: see `host`.

Source: 000 §4.3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from lift_egraph.codegen.c_ast import (
    Allocate,
    Buffer,
    CExpr,
    Const,
    For,
    IndexValue,
    Lane,
    Let,
    Load,
    Name,
    Pack,
    Statement,
    Store,
    lane_of,
    loads,
    substitute,
    walk,
)
from lift_egraph.codegen.lowering.in_place import updates_in_place
from lift_egraph.codegen.lowering.iterate import double_buffered, runs_in_local_memory, step_by_step
from lift_egraph.codegen.lowering.memory import declared_space
from lift_egraph.codegen.lowering.ownership import NOBODY
from lift_egraph.codegen.lowering.plain_index import plain
from lift_egraph.codegen.lowering.sharing import (
    allocate_for,
    append,
    by_one,
    check_private,
    check_reads,
    copy,
    copy_for,
)
from lift_egraph.codegen.lowering.term_views import (
    Environment,
    Mapped,
    component,
    is_layout,
    is_pure,
    layout_view,
    operate,
    write_step,
)
from lift_egraph.codegen.lowering.views import Access, Component, Pairs, Repeat, ThreadVar, Value, View
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.plans.kernel import LARGEST_LAUNCH
from lift_egraph.errors import NestingProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.describe import blame, describe
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.types import I32, Array, DataType, Pair, is_data, leaves, width_of

_LOOP_NAMES = "ijkmn"

P = ParamSpec("P")
R = TypeVar("R")


def _of_term(
    method: Callable[Concatenate[Lowering, ir.Expr, P], R],
) -> Callable[Concatenate[Lowering, ir.Expr, P], R]:
    """What the method emits for a term comes from that term; so does what it finds wrong."""

    @wraps(method)
    def tracked(self: Lowering, term: ir.Expr, *args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(term, ir.Var | ir.Input | ir.Literal):
            return method(self, term, *args, **kwargs)
        outer, self.term = self.term, term
        try:
            return method(self, term, *args, **kwargs)
        except (NestingProblem, SizeProblem) as problem:
            raise blame(problem, term) from None
        finally:
            self.term = outer

    return tracked


@dataclass
class Lowering:
    """The state of lowering one kernel.

    `threads` gives the number of work-items or groups of each parallel level (None: known at the launch only);
    `taken` the names in use; `term` the term in hand, from which new statements come.
    `homes` are the dimensions of mapLcl that each private array belongs to, `owned` those that share it out,
    `makers` the terms for which private memory was chosen though they do not ask for it, `shared` those that
    need local memory instead.
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
        """Everything computed inside a vectorised function has `width` lanes."""
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
    def loop(self, count: Nat, level: ir.Level = ir.SEQ) -> Iterator[Nat]:
        """A loop over ``0 … count - 1``; yields the index."""
        most = count.range[1]
        top = None if most is None else max(most - 1, 0)
        below = count if most is None else None
        if most is not None and most >= 1 << 31:
            raise SizeProblem(f"a loop of {count} steps is beyond the 32-bit index range")
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
            self.emit(For(variable, count, level, threads, inner))

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
            check_reads(self, statement)
        append(self.statements, replace(statement, origin=self.term) if statement.origin is None else statement)

    # --- memory ---------------------------------------------------------------------------------

    def allocate_default(self, name: str, term: ir.Expr, maker: ir.Expr, space: str | None) -> View:
        """Memory in a space, or where none is named in private memory: local memory if that was tried in vain."""
        if space is not None or maker in self.shared:
            return allocate_for(self, name, term, space or "local")
        known = set(self.homes)
        made = allocate_for(self, name, term, "private")
        self.makers |= dict.fromkeys(self.homes.keys() - known, maker)
        return made

    def emit_allocation(self, buffer: Buffer) -> None:
        self.emit(Allocate(buffer))

    def store(self, place: CExpr, value: CExpr) -> None:
        """Writes a scalar or vector; lanes that are not adjacent are written one by one."""
        if place == value:
            return
        if isinstance(place, Load | Lane):
            target = place.vector if isinstance(place, Lane) else place
            assert isinstance(target, Load)
            if target.buffer.space == "private":
                check_private(self, target)
                self.emit(Store(place, value))
            else:
                self.emit(by_one(self, target, Store(place, value, origin=self.term)))
        elif isinstance(place, Pack) and len(place.items) > 1:
            if width_of(value.type) > 1 and not isinstance(value, Name):
                value = self.name("lanes", value)
            for number, item in enumerate(place.items):
                self.store(item, lane_of(value, nat(number)))
        else:
            raise NestingProblem(f"a value cannot be written through this layout: {type(place).__name__}")

    def name(self, base: str, value: CExpr) -> Name:
        """Binds a value to a constant variable."""
        made = c_name(base, self.taken)
        self.emit(Let(made, value))
        return Name(made, value.type)

    def copy(self, source: View, acceptor: View, t: DataType) -> None:
        """Copies a value, element by element."""
        copy(self, source, acceptor, t, NOBODY)

    def store_data(self, source: View, acceptor: View, t: DataType) -> None:
        """Writes scalars and tuples of them: what a write would change is read before it."""
        written: set[str] = set()
        writes: list[tuple[CExpr, CExpr]] = []
        for choices, _, _ in leaves(t):
            place, value = acceptor.resolve((), choices), source.resolve((), choices)
            if place == value:
                continue
            if any(written.intersection(_memory_of(load)) for load in loads(value)):
                value = self.name("next", value)
            written.update(name for part in walk(place) if isinstance(part, Load) for name in _memory_of(part))
            writes.append((place, value))
        for place, value in writes:
            self.store(place, value)

    def bind(self, pattern: ir.Pattern, view: View) -> None:
        """Binds the variables of a pattern; scalars are read once, into constant variables."""
        if isinstance(pattern, ir.PairPattern):
            self.bind(pattern.first, component(0, view))
            self.bind(pattern.second, component(1, view))
        else:
            self.environment[pattern] = self.named(pattern.name, view, pattern.type)

    def named(self, name: str, view: View, t: DataType) -> View:
        """The same value with its scalars in constant variables."""
        if isinstance(t, Pair):
            return Pairs(
                self.named(f"{name}_0", component(0, view), t.first),
                self.named(f"{name}_1", component(1, view), t.second),
            )
        if isinstance(t, Array):
            return view
        value = view.resolve((), ())
        known = isinstance(value, Name | Const | IndexValue)
        if known or (isinstance(value, Load) and value.buffer.space == "private"):
            return Value(value)
        return Value(self.name(name, value))

    # --- reading --------------------------------------------------------------------------------

    @_of_term
    def consume(self, term: ir.Expr) -> View:
        """A view of a term's value; computes into new memory what no view can express."""
        match term:
            case ir.Var() | ir.Input():
                return self.environment[term]
            case ir.Literal(value=value, type=type):
                return Value(Const(value, type))
            case ir.Call(arguments=arguments):
                return Value(operate(term, tuple(self.consume(a).resolve((), ()) for a in arguments)))
            case ir.Apply(function=function, argument=argument):
                lambda_ = ir.function_body(function)
                self.bind(lambda_.pattern, self.consume(argument))
                with self.lanes(function):
                    return self.consume(lambda_.body)
            case ir.ToMemory(space=space, value=value):
                if is_data(type_of(term)) and space == "private":
                    return self.named("value", self.consume(value), type_of(term))
                return self.materialise(value, space)
            case ir.ReduceSeq():
                return self.reduce(term, None)
            case ir.Map(function=function, array=array):
                if not is_layout(function):
                    if write_step(term, Value(Const(0, I32))) is not None:
                        return self.materialise(term, declared_space(term))
                    raise NestingProblem(
                        f"a map that computes is left in the low-level term ({describe(term)}): "
                        "lower it to mapGlb, mapWrg, mapLcl or mapSeq"
                    )
                return Mapped(ir.function_body(function), self.snapshot(function), self.consume(array))
            case ir.Generate(function=function) if is_pure(function):
                return Mapped(ir.function_body(function), self.snapshot(function), None)
            case ir.Fill(value=value):
                return Repeat(self.named("value", self.consume(value), type_of(value)))
            case ir.Iterate():
                return self.iterate(term)
            case ir.MapLevel() | ir.Scatter() | ir.Generate():
                return self.materialise(term, declared_space(term))
        return layout_view(term, [self.consume(p) for p in ir.parts(term) if isinstance(p, ir.Expr)])

    def snapshot(self, function: ir.Function) -> Environment:
        """The views that a function's free variables and inputs have now."""
        free = ir.free_variables(function)
        return {v: view for v, view in self.environment.items() if isinstance(v, ir.Input) or v in free}

    def materialise(self, term: ir.Expr, space: str | None) -> View:
        """Computes a term into new memory; without a space, private memory where that can hold it."""
        for part in ir.subterms(term):
            if isinstance(part, ir.MapLevel) and part.level.kind in ("glb", "wrg"):
                raise NestingProblem(
                    f"the result of {part.level.name} is read in the kernel that computes it ({describe(part)}), but "
                    "OpenCL does not synchronise work-groups: only a step after the whole kernel can read it"
                )
        made = self.allocate_default("tmp", term, term, space)
        self.produce(term, made)
        return made

    # --- writing --------------------------------------------------------------------------------

    @_of_term
    def produce(self, term: ir.Expr, acceptor: View) -> None:
        """Computes a term's value into the place that the acceptor describes."""
        t = type_of(term)
        if _is_empty(t):
            return
        if isinstance(term, ir.Apply):
            lambda_ = ir.function_body(term.function)
            self.bind(lambda_.pattern, self.consume(term.argument))
            with self.lanes(term.function):
                self.produce(lambda_.body, acceptor)
            return
        if is_pure(term):
            self.copy(self.consume(term), acceptor, t)
            return
        if isinstance(term, ir.MapLevel):
            self.map(term, acceptor)
        elif isinstance(term, ir.ReduceSeq):
            self.reduce(term, acceptor)
        elif isinstance(term, ir.Zip | ir.MakePair):
            self.produce(term.first, Component(0, acceptor))
            self.produce(term.second, Component(1, acceptor))
        elif isinstance(term, ir.Generate):
            lambda_ = ir.function_body(term.function)
            with self.loop(term.size) as index:
                self.bind(lambda_.pattern, Value(IndexValue(index)))
                self.produce(lambda_.body, Access(index, acceptor))
        elif isinstance(term, ir.ToMemory):
            inside_lcl = any(level.kind == "lcl" for level, _, _ in self.loops)
            if term.space == acceptor.space or is_data(t) or (term.space == "local" and inside_lcl):
                self.produce(term.value, acceptor)
            else:
                copy_for(self, term.value, self.materialise(term.value, term.space), acceptor)
        elif isinstance(term, ir.Iterate):
            self.copy(self.iterate(term), acceptor, t)
        elif (step := write_step(term, acceptor)) is not None:
            self.produce(*step)
        else:
            self.copy(self.consume(term), acceptor, t)

    def map(self, term: ir.MapLevel, acceptor: View) -> None:
        """``for i: acceptor[i] = f(array[i])``."""
        level, lambda_ = term.level, ir.function_body(term.function)
        if level.kind != "seq" and level not in self.threads:
            raise NestingProblem(f"{level.name} stands where no threads are launched for it: {describe(term)}")
        array = self.consume(term.array)
        with self.loop(size_of(term.array), level) as index:
            self.bind(lambda_.pattern, Access(index, array))
            with self.lanes(term.function):
                self.produce(lambda_.body, Access(index, acceptor))

    def reduce(self, term: ir.ReduceSeq, acceptor: View | None) -> View:
        """Accumulates in private memory, or in the acceptor if it is private already."""
        lambda_ = ir.function_body(term.operator)
        pattern = lambda_.pattern
        target = acceptor
        if target is None or target.space != "private":
            first = pattern.first if isinstance(pattern, ir.PairPattern) else pattern
            name = first.name if isinstance(first, ir.Var) else "acc"
            target = self.allocate_default(name, term, term, declared_space(term))
        if is_pure(term.initial):
            copy_for(self, term, self.consume(term.initial), target)
        else:
            self.produce(term.initial, target)
        if size_of(term.array).constant != 0:
            self.steps(term, target)
        if acceptor is not None and acceptor is not target:
            copy_for(self, term, target, acceptor)
        return target

    def steps(self, term: ir.ReduceSeq, target: View) -> None:
        """The loop of a reduction, over elements of which there is at least one."""
        t, lambda_ = type_of(term), ir.function_body(term.operator)
        pattern = lambda_.pattern
        array = self.consume(term.array)
        with self.loop(size_of(term.array)) as index:
            element = Access(index, array)
            if isinstance(pattern, ir.PairPattern):
                self.bind_accumulator(pattern.first, target)
                self.bind(pattern.second, element)
            else:
                self.environment[pattern] = Pairs(target, element)
            accumulator = pattern.first if isinstance(pattern, ir.PairPattern) else pattern
            with self.lanes(term.operator):
                self.update(lambda_.body, accumulator, target, t, term)

    def bind_accumulator(self, pattern: ir.Pattern, view: View) -> None:
        """Binds the old value without reading it: it is the memory that the step updates."""
        if isinstance(pattern, ir.PairPattern):
            self.bind_accumulator(pattern.first, component(0, view))
            self.bind_accumulator(pattern.second, component(1, view))
        else:
            self.environment[pattern] = view

    def update(self, body: ir.Expr, pattern: ir.Pattern, target: View, t: DataType, maker: ir.Expr) -> None:
        """One step of a reduction: the new value takes the place of the old one."""
        if is_data(t) and not isinstance(body, ir.ReduceSeq):
            self.store_data(self.consume(body), target, t)
        elif updates_in_place(body, pattern):
            self.produce(body, target)
        else:
            space = target.space or "private"
            spare = self.allocate_default("next", body, maker, None if space == "private" else space)
            self.produce(body, spare)
            copy_for(self, body, spare, target)

    def iterate(self, term: ir.Iterate) -> View:
        """Repeats a function: in local memory with two buffers, else step by step."""
        return double_buffered(self, term) if runs_in_local_memory(term) else step_by_step(self, term)


def _memory_of(place: Load) -> tuple[str, ...]:
    """The names of the buffers that an access may touch."""
    return (place.buffer.name, *place.buffer.targets)


def _is_empty(t: DataType) -> bool:
    """Whether values of a type have no element: nothing is computed for them, and index functions have no range."""
    return all(any(size.constant == 0 for size in sizes) for _, sizes, _ in leaves(t))
