"""OpenCL C text of kernels: their statements, around the values of `value_text`.

Control flow is simplified from the launch: a parallel loop over exactly as many indices as there are
work-items is no loop, over fewer it is an ``if``.

Source: 000 §4.3.5 (control flow simplification).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.devices import Dialect
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.passes.groups import whole_groups
from lift_egraph.codegen.passes.unrolling import ASKED_LIMIT, SERIAL_LIMIT, Stays, as_asked, nothing_stays, pragma
from lift_egraph.codegen.plans.kernel import NON_TEMPORAL
from lift_egraph.codegen.text.look_back import look_back, states_of, ticket
from lift_egraph.codegen.text.scalar_text import C_NAMES, MEMORY_NAMES, broadcast, index_helpers, type_name
from lift_egraph.codegen.text.sub_groups import asked
from lift_egraph.codegen.text.value_text import ValueText, element_name
from lift_egraph.errors import NestingProblem
from lift_egraph.language.describe import blame
from lift_egraph.language.ir import Expr
from lift_egraph.language.nat import Nat, is_at_least, nat
from lift_egraph.language.types import BOOL, F16, F64, SCALAR_BYTES, Vector, scalar_of

MOST_TWICE = 16  # lines that are written for whole groups, and again for the last one
_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}
_ALL = {"glb": "get_global_size", "wrg": "get_num_groups", "lcl": "get_local_size"}


class Line(NamedTuple):
    """A line of a kernel, and the LIFT subterm that it computes a part of."""

    text: str
    origin: Expr | None = None


def _enclosed(head: str, inner: list[Line], depth: int, origin: Expr | None) -> list[Line]:
    pad = "  " * depth
    return [Line(pad + head, origin), *inner, Line(f"{pad}}}", origin)]


class Printer:
    """Prints the kernels of one program; collects the helper functions and types that they need."""

    def __init__(self, dialect: Dialect, optimise: Optimisations = ALL, sub_group: int = 0) -> None:
        self.dialect = dialect
        self.sub_group = sub_group
        self.optimise = optimise
        self.values = ValueText(dialect)
        self.packs = False  # values into words of 64 bits that are exchanged in memory
        self.shares_groups = self.is_alone = False
        self.group: tuple[int, int, int] | None = None
        self.unrolls = True  # its long loops: that makes no text that is too long

    def body(self, body: Iterable[c_ast.Statement], depth: int) -> list[Line]:
        """The lines of statements; variables set right after their declaration are initialised by it.

        Raises
        ------
        NestingProblem
            If a statement has no text.
        """
        lines: list[Line] = []
        pending = _declared_late(body)[::-1]
        while pending:
            statement = pending.pop()
            if isinstance(statement, c_ast.Allocate):
                initial = []
                if self.values.is_named(statement.buffer):
                    initial = _initial_stores(statement.buffer, pending[: -statement.buffer.length - 1 : -1])
                if initial:
                    kind = type_name(statement.buffer.element)
                    lines += [Line(f"{'  ' * depth}{kind} {self.store(s.place, s.value)};", s.origin) for s in initial]
                    del pending[-len(initial) :]
                    continue
            try:
                lines += self.statement(statement, depth)
            except NestingProblem as problem:
                raise blame(problem, statement.origin) from None
        return lines

    def statement(self, statement: c_ast.Statement, depth: int) -> list[Line]:
        match statement:
            case c_ast.For():
                return self.parallel_loop(statement, depth) if statement.is_parallel else self.loop(statement, depth)
            case c_ast.If(conditions=conditions, body=body):
                test = " && ".join(self.values.index.condition(c) for c in conditions)
                return _enclosed(f"if ({test}) {{", self.body(body, depth + 1), depth, statement.origin)
            case c_ast.LookBack():
                self.packs = True
                return [Line("  " * depth + text, statement.origin) for text in look_back(self, statement)]
            case c_ast.Block(body=body):
                return _enclosed("{", self.body(body, depth + 1), depth, statement.origin)
        return [Line(f"{'  ' * depth}{text};", statement.origin) for text in self.simple_statement(statement)]

    def simple_statement(self, statement: c_ast.Statement) -> list[str]:
        """The text of a statement without a body, without semicolons."""
        match statement:
            case c_ast.Let(name=name, value=value):
                return [f"const {type_name(value.type)} {name} = {self.values.text(value)}"]
            case c_ast.SinCos(sine=sine, cosine=cosine, value=value):
                kind = type_name(value.type)
                return [f"{kind} {cosine}", f"const {kind} {sine} = sincos({self.values.text(value)}, &{cosine})"]
            case c_ast.Allocate(buffer=buffer):
                return [self.declaration(buffer)]
            case c_ast.Store(place=place, value=value, by=by) if by:
                assert isinstance(place, c_ast.Load)
                added = broadcast(self.values.text(value), value.type, place.type)
                self.packs |= SCALAR_BYTES[scalar_of(place.type).name] == 8
                combine = self.values.scalars.atomic(by, scalar_of(place.type), place.buffer.space)
                return [f"{combine}({self.values.address(place)}, {added})"]
            case c_ast.Store(place=c_ast.Load() as place, value=value) if self.values.is_chosen(place):
                return [*self.chosen_stores(place, value)]
            case c_ast.Store(place=place, value=value, streamed=streamed):
                return [self.store(place, value, streamed)]
            case c_ast.Barrier(spaces=spaces):
                return [f"barrier({' | '.join(f'CLK_{s.upper()}_MEM_FENCE' for s in spaces)})"]
            case c_ast.SetIndex(variable=variable, value=value, declare=declare):
                return [f"{'int ' * declare}{variable.name} = {self.values.index(value)}"]
            case c_ast.LetIndex(variable=variable, value=value):
                kind = "int" if self.values.index.fits(value) else "long"
                return [f"const {kind} {variable.name} = {self.values.index(value)}"]
            case c_ast.Point(read=read, write=write, first=first, second=second):
                kind = f"{read.space} {type_name(read.element, MEMORY_NAMES)} *"
                pairs = (read, first), (write, second)
                return [f"{kind}{pointer.name} = {self.values.halves(memory)}" for pointer, memory in pairs]
            case c_ast.Swap(read=read, write=write, first=first, second=second):
                return [
                    f"{read.name} = {write.name}",
                    f"{write.name} = ({write.name} == {self.values.halves(first)}) ? {self.values.halves(second)} : "
                    f"{self.values.halves(first)}",
                ]
        raise NotImplementedError(type(statement).__name__)

    def declaration(self, buffer: c_ast.Buffer) -> str:
        kind = type_name(buffer.element, C_NAMES if buffer.space == "private" else MEMORY_NAMES)
        if buffer.space == "private" and self.values.is_named(buffer):
            return f"{kind} {', '.join(element_name(buffer.name, buffer.shape, k) for k in range(buffer.length))}"
        if kind == "half":
            kind = "ushort"  # only pointers to halves need no extension
        aligned = " __attribute__((aligned(64)))" if self.dialect.aligned_vectors and buffer.space == "local" else ""
        return f"{kind} {buffer.name}[{max(buffer.length, 1)}]{aligned}"  # C has no empty arrays

    def store(self, place: c_ast.CExpr, value: c_ast.CExpr, streamed: bool = False) -> str:
        if isinstance(place, c_ast.Lane):
            return f"{self.values.lane(place)} = {self.values.lane_value(value)}"
        text = broadcast(self.values.text(value), value.type, place.type)
        assert isinstance(place, c_ast.Load)
        if place.buffer.space == "private":
            return f"{self.values.variable(place)} = {text}"
        if scalar_of(place.buffer.element) == F16:
            if place.width > 1:
                return f"vstore_half{place.width}_rte({text}, 0, {self.values.address(place)})"
            store = self.values.scalars.half_to(place.buffer.space)
            return f"{store}({text}, {self.values.index(place.index)}, {self.values.halves(place.buffer)})"
        if place.width == 1:
            return f"{self.values.element(place)} = {text}"
        t = Vector(scalar_of(place.buffer.element), place.width)
        if scalar_of(t) == BOOL:
            text = self.values.scalars.convert(f"({text}) & 1", "uchar", t.width)
        if streamed:
            pointer = f"({place.buffer.space} {type_name(t, MEMORY_NAMES)} *)({self.values.address(place)})"
            return f"{NON_TEMPORAL}({text}, {pointer})"
        if self.dialect.vector_access == "vload":
            return f"vstore{place.width}({text}, 0, {self.values.address(place)})"
        return f"*({self.values.pointer(place, t, const=False)})({self.values.address(place)}) = {text}"

    def chosen_stores(self, place: c_ast.Load, value: c_ast.CExpr) -> Iterator[str]:
        """The statements that write an element of a private array at an index that is not known before the run."""
        index, text = self.values.index.atomic(place.index), broadcast(self.values.text(value), value.type, place.type)
        for k in range(place.buffer.length):
            name = element_name(place.buffer.name, place.buffer.shape, k)
            yield f"{name} = ({index} == {k}) ? ({text}) : ({name})"

    def loop(self, loop: c_ast.For, depth: int) -> list[Line]:
        name, asks = loop.variable.name, loop.pragma or self.unrolls
        asked = pragma(loop, self.dialect, self.shares_groups, self.is_alone) if asks else None
        unroll = [Line("  " * depth + asked, loop.origin)] if asked else []
        end = self.values.index(loop.count * loop.step)
        head = f"for (int {name} = 0; {name} < {end}; {name} += {loop.step}) {{"
        return unroll + _enclosed(head, self.body(loop.body, depth + 1), depth, loop.origin)

    def parallel_loop(self, loop: c_ast.For, depth: int) -> list[Line]:
        """The lines of a loop over work-items or groups, which is none where there are as many as it has steps."""
        name, count, d = loop.variable.name, loop.count, loop.level.dimension
        own, every = f"{_OWN[loop.level.kind]}({d})", f"{_ALL[loop.level.kind]}({d})"
        simplify = self.optimise.control_flow
        is_whole = simplify and loop.threads is not None and count == nat(loop.threads)
        inside, taken = depth if is_whole else depth + 1, list[Line]()
        if loop.ticket:
            counter, place = map(self.values.text, loop.ticket)
            own = place
            taken = [Line("  " * depth + text, loop.origin) for text in ticket(counter, place)]
        inner = self.body(loop.body, inside)
        if simplify and loop.threads is not None and is_at_least(loop.threads, count):
            uses = loop.variable.high != 0
            if uses and loop.level.kind != "lcl":  # those of mapLcl are shared, at the top of the kernel
                inner = [Line(f"{'  ' * inside}const int {name} = {own};", loop.origin), *inner]
            may = self.dialect.groups_apart and loop.level.kind == "glb" and len(inner) <= MOST_TWICE
            apart = whole_groups(loop, self.group[d] if self.group else 0) if may else None
            guard = "" if is_whole else f"if ({own} < {self.values.index(count)}) {{"
            if apart is None:
                return taken + inner if is_whole else _enclosed(guard, inner, depth, loop.origin)
            body, first, last = apart
            number, alike = f"{_OWN['wrg']}({d})", self.body(body, depth + 1)
            asked = " && ".join([*[f"{number} >= {first}"] * (first > 0), f"{number} < {last}"])
            if uses:
                alike = [Line(f"{'  ' * (depth + 1)}const int {name} = {own};", loop.origin), *alike]
            if is_whole:
                inner = [line._replace(text="  " + line.text) for line in inner]
            branch = _enclosed(f"if ({asked}) {{", alike, depth, loop.origin)
            return [*branch[:-1], *_enclosed(f"}} else {guard or '{'}", inner, depth, loop.origin)]
        head = f"for (int {name} = {own}; {name} < {self.values.index(count)}; {name} += {every}) {{"
        return _enclosed(head, inner, depth, loop.origin)

    def kernel(
        self,
        name: str,
        buffers: list[c_ast.Buffer],
        scalars: list[c_ast.Name],
        sizes: list[str],
        locals_: list[c_ast.Buffer],
        body: c_ast.Body,
        group: tuple[int, int, int] | None,
        *,
        stays: Stays = nothing_stays,
    ) -> list[Line]:
        """The lines of one kernel; `sizes` are those it takes as arguments, `group` the local size it requires.

        Private arrays that `stays` are no variables.
        """
        self.values.stays = stays
        self.group, self.shares_groups = group, prod(group or (1,)) > 1
        self.is_alone = not any(isinstance(part, c_ast.For) and part.is_parallel for part in c_walk.statements(body))
        if self.dialect.unroll_long:
            self.is_alone = self.is_alone and as_asked(body, self.dialect, is_alone=True) <= SERIAL_LIMIT
            self.unrolls = as_asked(body, self.dialect) <= ASKED_LIMIT
        parts = c_walk.walk(body)
        self.values.indexed = frozenset(
            part.buffer.name
            for part in parts
            if isinstance(part, c_ast.Load) and part.buffer.space == "private" and part.index.constant is None
        )
        parameters = []
        shared_states = {load.buffer.name for load in states_of(body)}
        written = {place.buffer.name for place in c_walk.stores(body)}
        volatile = self.dialect.volatile_rereads and (group is None or self.shares_groups)
        self.values.reread = _read_again(body) if volatile else frozenset()
        for buffer in buffers:
            self.values.uses_f64 |= scalar_of(buffer.element) == F64
            kind = type_name(buffer.element, MEMORY_NAMES)
            qualifier = "" if buffer.name in written | shared_states else "const "
            volatile = "volatile " * (buffer.name in self.values.reread)
            parameters.append(f"{volatile}global {qualifier}{kind} *restrict {buffer.name}")
        parameters += [f"const {type_name(s.type)} {s.name}" for s in scalars]
        parameters += [f"const int {size}" for size in sizes]
        lines: list[Line] = []
        if group:
            lines.append(Line(f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))"))
        if any(isinstance(part, c_ast.Passed) for part in parts):
            lines += [Line(text) for text in asked(self.dialect, self.sub_group)]
        lines.append(Line(f"kernel void {name}({', '.join(parameters)}) {{"))
        lines += [Line(f"  local {self.declaration(b)};", b.origin) for b in locals_]
        shared = {s.level.dimension for s in c_walk.statements(body) if isinstance(s, c_ast.For) and _is_shared(s)}
        for d in sorted(shared) if self.optimise.control_flow else ():
            lines.append(Line(f"  const int lcl_{d} = get_local_id({d});"))
        return [*lines, *self.body(body, 1), Line("}")]

    def preamble(self) -> str:
        """The extensions, types and functions that the printed kernels need."""
        lines = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if self.values.uses_f64 else []
        if self.packs:
            lines.append("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable")
        if not self.dialect.contracts:
            lines.append("#pragma OPENCL FP_CONTRACT OFF")
        if self.dialect.plain_operators and self.values.scalars.helpers:
            lines.append('#pragma clang diagnostic ignored "-Wpsabi"  // the functions are inlined')
        names = {(type_name(t, MEMORY_NAMES), type_name(t.scalar, MEMORY_NAMES)) for t in self.values.vectors}
        for c_type, element in sorted(names):
            lines.append(f"typedef {c_type} __attribute__((aligned(sizeof({element})))) {c_type}_u;")
        lines += index_helpers(self.values.index.helpers)
        lines += self.values.scalars.helpers.values()
        return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")


def _read_again(body: c_ast.Body) -> frozenset[str]:
    """The global memory that a kernel both writes and reads, without what it reaches through pointers."""
    read = [part.buffer for part in c_walk.walk(body) if isinstance(part, c_ast.Load) and part.buffer.space == "global"]
    pointed = {name for buffer in read for name in (buffer.name, *buffer.targets) if buffer.targets}
    loaded = {place.buffer.name for place in c_walk.loads(body)}
    return frozenset({place.buffer.name for place in c_walk.stores(body)} & loaded & {b.name for b in read} - pointed)


def _declared_late(body: Iterable[c_ast.Statement]) -> list[c_ast.Statement]:
    """The statements with each declaration right before the first one that uses it."""
    result: list[c_ast.Statement] = []
    waiting: list[c_ast.Allocate] = []
    for statement in body:
        if isinstance(statement, c_ast.Allocate):
            waiting.append(statement)
            continue
        used = (
            {part.buffer.name for part in c_walk.walk(statement) if isinstance(part, c_ast.Load)} if waiting else set()
        )
        result += [a for a in waiting if a.buffer.name in used]
        waiting = [a for a in waiting if a.buffer.name not in used]
        result.append(statement)
    return result + waiting


def _initial_stores(buffer: c_ast.Buffer, following: list[c_ast.Statement]) -> list[c_ast.Store]:
    """The stores right after a declaration that set each of its variables once, in order."""
    found: list[c_ast.Store] = []
    for number, statement in enumerate(following):
        place = statement.place if isinstance(statement, c_ast.Store) else None
        if not isinstance(statement, c_ast.Store) or not isinstance(place, c_ast.Load) or place.buffer != buffer:
            return []
        if place.index != nat(number) or any(load.buffer == buffer for load in c_walk.loads(statement.value)):
            return []
        found.append(statement)
    return found if len(found) == buffer.length else []


def _is_shared(loop: c_ast.For) -> bool:
    return (
        loop.level.kind == "lcl"
        and loop.variable.name == f"lcl_{loop.level.dimension}"
        and any(
            isinstance(part, Nat) and loop.variable in part.mentioned
            for part in c_walk.mentioning(loop.body, loop.variable)
        )
    )
