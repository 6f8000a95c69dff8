"""One work-item's program: a low-level term becomes loops, variables and stores.

`produce` writes the value of a term into a view, `consume` gives a view of it; only what no view can
express is computed into memory of its own. Nothing here knows several kernels: see `host`.

Source: 000 §4.3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from math import prod
from typing import Concatenate, ParamSpec, TypeVar, Union

from lift_egraph.codegen.c_ast import CExpr, Const, IndexValue, Load, Name, Operate, computed_index, known_index
from lift_egraph.codegen.c_walk import loads
from lift_egraph.codegen.lowering import term_views
from lift_egraph.codegen.lowering.accumulators import bind_step, update_accumulator
from lift_egraph.codegen.lowering.by_index import reduce_by_index
from lift_egraph.codegen.lowering.iterate import double_buffered, runs_in_local_memory, step_by_step
from lift_egraph.codegen.lowering.look_back import look_back
from lift_egraph.codegen.lowering.memory import declared_space, largest_array
from lift_egraph.codegen.lowering.ownership import is_shared_out
from lift_egraph.codegen.lowering.sharing import allocate_for, by_first_items, copy, copy_for
from lift_egraph.codegen.lowering.state import State
from lift_egraph.codegen.lowering.sub_groups import of_sub_groups, reduce_sub
from lift_egraph.codegen.lowering.term_views import Environment, Mapped
from lift_egraph.codegen.lowering.views import Access, Component, Pairs, Repeat, Shifted, Value, View
from lift_egraph.errors import NestingProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.describe import blame, describe
from lift_egraph.language.layout import is_layout, is_pure
from lift_egraph.language.nat import Nat, maximum, nat
from lift_egraph.language.nesting import is_parallel
from lift_egraph.language.sizes import number_of
from lift_egraph.language.types import F16, I32, Array, DataType, Pair, is_data, leaves

P = ParamSpec("P")
R = TypeVar("R")
Loop = Union[ir.ReduceSeq, ir.ScanSeq, ir.ScanExclusiveSeq, ir.ReduceRangeSeq]


def _of_term(method: Callable[Concatenate[Lowering, ir.Expr, P], R]) -> Callable[Concatenate[Lowering, ir.Expr, P], R]:
    """What the method emits for a term comes from that term; so does what it finds wrong."""

    @wraps(method)
    def tracked(self: Lowering, term: ir.Expr, *args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(term, ir.Var | ir.Input | ir.Literal | ir.SizeLiteral):
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
class Lowering(State):
    """Lowers the terms of one kernel."""

    # --- memory ---------------------------------------------------------------------------------

    def allocate_default(self, name: str, term: ir.Expr, maker: ir.Expr, space: str | None) -> View:
        """Memory in a space, or where none is named in private memory.

        Where that was tried in vain it is local memory, and for what does not fit there a work-item's part of global.
        """
        if space is not None or maker in self.shared:
            return allocate_for(self, name, term, space or "local")
        if not is_shared_out(term) and self.width * largest_array(type_of(term)) > self.most_private:
            return allocate_for(self, name, term, "global")
        known = set(self.homes)
        made = allocate_for(self, name, term, "private")
        self.makers |= dict.fromkeys(self.homes.keys() - known, maker)
        return made

    def bind(self, pattern: ir.Binder, view: View, lasting: bool = False) -> None:
        """Binds the variables of a pattern; scalars are read once, into constant variables.

        Those in private memory are there already, and so are places that are read there: only `lasting` ones are read
        before it is written again.
        """
        if isinstance(pattern, ir.PairBinder):
            self.bind(pattern.first, term_views.component(0, view), lasting)
            self.bind(pattern.second, term_views.component(1, view), lasting)
        else:
            self.environment[pattern] = self.named(pattern.name, view, pattern.type, lasting)

    def named(self, name: str, view: View, t: DataType, lasting: bool = False) -> View:
        """The same value with its scalars in constant variables."""
        if isinstance(t, Pair):
            return Pairs(
                self.named(f"{name}_0", term_views.component(0, view), t.first, lasting),
                self.named(f"{name}_1", term_views.component(1, view), t.second, lasting),
            )
        if isinstance(t, Array):
            return view
        value = view.resolve((), ())
        known = isinstance(value, Name | Const | IndexValue) and not (lasting and any(loads(value)))
        if known or (isinstance(value, Load) and value.buffer.space == "private" and not lasting):
            return Value(value)
        return Value(self.name(name, value))

    # --- reading --------------------------------------------------------------------------------

    @_of_term
    def consume(self, term: ir.Expr) -> View:
        """A view of a term's value; computes into new memory what no view can express.

        Raises
        ------
        NestingProblem
            If nothing says how a map in it runs.
        """
        match term:
            case ir.Var() | ir.Input():
                return self.environment[term]
            case ir.Literal(value=value, type=type):
                return Value(Const(value, type))
            case ir.SizeLiteral(size=size):
                return Value(IndexValue(size))
            case ir.Call(arguments=arguments):
                return Value(self.operate(term, tuple(self.consume(a).resolve((), ()) for a in arguments)))
            case ir.Apply(function=function, argument=argument):
                lambda_ = ir.function_body(function)
                self.bind(lambda_.binder, self.consume(argument))
                with self.lanes(function):
                    return self.consume(lambda_.body)
            case ir.ToMemory(space=space, value=value):
                if is_data(type_of(term)) and space == "private":
                    return self.named("value", self.consume(value), type_of(term))
                return self.materialise(value, space)
            case ir.ReduceSeq() | ir.ReduceRangeSeq():
                return self.reduce(term, None)
            case ir.Map(function=function, array=array):
                if not is_layout(function):
                    if term_views.write_step(term, Value(Const(0, I32))) is not None:
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
            case ir.ReduceSub():
                return of_sub_groups(self, term)
            case (
                ir.MapLevel()
                | ir.ScanSeq()
                | ir.ScanExclusiveSeq()
                | ir.ReduceByIndexSeq()
                | ir.ReduceByIndexGlb()
                | ir.ReduceByIndexAtomic()
                | ir.LookBack()
                | ir.Scatter()
                | ir.Generate()
            ):
                return self.materialise(term, declared_space(term))
        return term_views.layout_view(term, [self.consume(p) for p in ir.parts(term) if isinstance(p, ir.Expr)])

    def operate(self, term: ir.Call, arguments: tuple[CExpr, ...]) -> CExpr:
        """A scalar operation; a small whole power is a product, for the function takes a hundred times as long."""
        match term:
            case ir.Call("pow", (_, ir.Literal(value=2 | 3 | 4 as power, type=type))) if type != F16:
                base = arguments[0] if isinstance(arguments[0], Name) else self.name("base", arguments[0])
                square = Operate("mul", (base, base), base.type)
                return square if power == 2 else Operate("mul", (square, base if power == 3 else square), base.type)
        return term_views.operate(term, arguments)

    def snapshot(self, function: ir.Function) -> Environment:
        """The views that a function's free variables and inputs have now."""
        free = ir.free_variables(function)
        return {v: view for v, view in self.environment.items() if isinstance(v, ir.Input) or v in free}

    def materialise(self, term: ir.Expr, space: str | None) -> View:
        """Computes a term into new memory; without a space, private memory where that can hold it.

        Raises
        ------
        NestingProblem
            If other work-groups would read what one computes.
        """
        for part in ir.subterms(term) if is_parallel(term) else ():
            if isinstance(part, (*ir.AT_ONCE, ir.LookBack)) or (
                isinstance(part, ir.MapLevel) and part.level.kind in ("glb", "wrg")
            ):
                raise NestingProblem(
                    f"the result of {ir.name_of(part)} is read in the kernel that computes it ({describe(part)}), but "
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
            self.bind(lambda_.binder, self.consume(term.argument))
            with self.lanes(term.function):
                self.produce(lambda_.body, acceptor)
            return
        if is_pure(term):
            copy(self, self.consume(term), acceptor, t)
            return
        if isinstance(term, ir.MapLevel):
            self.map(term, acceptor)
        elif isinstance(term, ir.REDUCTION_LOOPS):
            self.reduce(term, acceptor)
        elif isinstance(term, ir.SCAN_LOOPS):
            self.scan(term, acceptor)
        elif isinstance(term, ir.INDEX_LOOPS):
            reduce_by_index(self, term, acceptor)
        elif isinstance(term, ir.LookBack):
            look_back(self, term, acceptor)
        elif isinstance(term, ir.ReduceSub):
            reduce_sub(self, term, acceptor)
        elif isinstance(term, ir.Zip | ir.MakePair):
            self.produce(term.first, Component(0, acceptor))
            self.produce(term.second, Component(1, acceptor))
        elif isinstance(term, ir.Concat):
            with by_first_items(self, term.first):
                self.produce(term.first, acceptor)
            with by_first_items(self, term.second):
                self.produce(term.second, Shifted(size_of(term.first), acceptor))
        elif isinstance(term, ir.Generate):
            lambda_ = ir.function_body(term.function)
            with self.loop(term.size) as index:
                self.bind(lambda_.binder, Value(IndexValue(index)))
                self.produce(lambda_.body, Access(index, acceptor))
        elif isinstance(term, ir.ToMemory):
            inside_lcl = any(level.kind == "lcl" for level, _, _ in self.loops)
            if term.address_space == acceptor.space or is_data(t) or (term.address_space == "local" and inside_lcl):
                outer, self.streams = self.streams, self.streams or term.space == "stream"
                self.produce(term.value, acceptor)
                self.streams = outer
            else:
                copy_for(self, term.value, self.materialise(term.value, term.space), acceptor)
        elif isinstance(term, ir.Iterate):
            copy(self, self.iterate(term), acceptor, t)
        elif (step := term_views.write_step(term, acceptor)) is not None:
            self.produce(*step)
        else:
            copy(self, self.consume(term), acceptor, t)

    def map(self, term: ir.MapLevel, acceptor: View) -> None:
        """``for i: acceptor[i] = f(array[i])``.

        Raises
        ------
        NestingProblem
            If no threads are launched for its level.
        """
        level, lambda_ = term.level, ir.function_body(term.function)
        if level.kind != "seq" and level not in self.threads:
            raise NestingProblem(f"{level.name} stands where no threads are launched for it: {describe(term)}")
        array = self.consume(term.array)
        with self.loop(size_of(term.array), level) as index:
            self.bind(lambda_.binder, Access(index, array))
            with self.lanes(term.function):
                self.produce(lambda_.body, Access(index, acceptor))

    def reduce(self, term: ir.ReduceSeq | ir.ReduceRangeSeq, acceptor: View | None) -> View:
        """Accumulates in private memory, or in the acceptor if it is private already."""
        target = acceptor
        if target is None or target.space != "private":
            target = self.allocate_default(_accumulator_name(term), term, term, declared_space(term))
        if is_pure(term.initial):
            copy_for(self, term, self.consume(term.initial), target)
        else:
            self.produce(term.initial, target)
        if size_of(term.array).constant != 0:
            with self.steps(term, target) as (_, update):
                update()
        if acceptor is not None and acceptor is not target:
            copy_for(self, term, target, acceptor)
        return target

    def scan(self, term: ir.ScanSeq | ir.ScanExclusiveSeq, acceptor: View) -> None:
        """As `reduce`; the accumulator is written after each step, or before it."""
        start = term.initial
        target = self.allocate_default(_accumulator_name(term), start, term, None)
        self.produce(start, target)
        with self.steps(term, target) as (index, update):
            if isinstance(term, ir.ScanSeq):
                update()
            copy(self, target, Access(index, acceptor), type_of(start))
            if not isinstance(term, ir.ScanSeq):
                update()

    @contextmanager
    def steps(self, term: Loop, target: View) -> Iterator[tuple[Nat, Callable[[], None]]]:
        """The loop of a fold of a whole array, over elements of which there is at least one, or of a range; yields the
        index and what makes a step.
        """
        lambda_, array = ir.function_body(term.operator), self.consume(term.array)
        first, count, likely = self.range_of(term) if isinstance(term, ir.ReduceRangeSeq) else _whole(term)
        with self.loop(count, likely=likely) as index:
            accumulator = bind_step(self, lambda_.binder, target, Access(first + index, array))

            def update() -> None:
                with self.lanes(term.operator):
                    update_accumulator(self, lambda_.body, accumulator, target, term)

            yield index, update

    def range_of(self, term: ir.ReduceRangeSeq) -> tuple[Nat, Nat, int]:
        """The first index of a range, kept in the array, its length, and a guess of that: what all loops around it have
        together may be the array, unless each goes from its beginning or to its end, and so has half of it.
        """
        size = size_of(term.array)
        low, high = (computed_index(self.consume(end).resolve((), ()), size + 1) for end in (term.low, term.high))
        first = known_index(self.name("start", IndexValue(low)), size)
        count = known_index(self.name("count", IndexValue(maximum(high - first, 0))), size)
        around = prod(length.range[1] or 1 for _, _, length in self.loops)
        if number_of(term.low) == 0 or number_of(term.high) == size.constant is not None:
            around = min(around, 2)
        return first, count, max(1, -(-(size.range[1] or 1) // around))

    def iterate(self, term: ir.Iterate) -> View:
        """Repeats a function: in local memory with two buffers, else step by step."""
        return double_buffered(self, term) if runs_in_local_memory(term) else step_by_step(self, term)


def _whole(term: Loop) -> tuple[Nat, Nat, None]:
    return nat(0), size_of(term.array), None


def _accumulator_name(term: Loop) -> str:
    pattern = ir.function_body(term.operator).binder
    first = pattern.first if isinstance(pattern, ir.PairBinder) else pattern
    return first.name if isinstance(first, ir.Var) else "acc"


def _is_empty(t: DataType) -> bool:
    """Whether values of a type have no element: nothing is computed for them, and index functions have no range."""
    return all(any(size.constant == 0 for size in sizes) for _, sizes, _ in leaves(t))
