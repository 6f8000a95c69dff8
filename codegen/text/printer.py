"""OpenCL C text of kernels.

Control flow is simplified from the launch: a parallel loop over exactly as many indices as there are
work-items is no loop, over fewer it is an ``if``.

Source: 000 §4.3.5 (control flow simplification).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.devices import Dialect
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.passes.common_indices import in_full
from lift_egraph.codegen.passes.groups import whole_groups
from lift_egraph.codegen.passes.steps import in_single_steps
from lift_egraph.codegen.passes.unrolling import ASKED_LIMIT, SERIAL_LIMIT, Stays, as_asked, nothing_stays, pragma
from lift_egraph.codegen.plans.kernel import NON_TEMPORAL
from lift_egraph.codegen.text.index_text import IndexText
from lift_egraph.codegen.text.look_back import look_back, states_of, ticket
from lift_egraph.codegen.text.scalar_text import (
    C_NAMES,
    MEMORY_NAMES,
    POSTFIX,
    TERNARY,
    UNARY,
    ScalarText,
    broadcast,
    index_helpers,
    literal,
    type_name,
)
from lift_egraph.codegen.text.sub_groups import asked, of_first, passed_on
from lift_egraph.errors import NestingProblem
from lift_egraph.language.describe import blame
from lift_egraph.language.ir import Expr
from lift_egraph.language.nat import Nat, divides, is_at_least, nat
from lift_egraph.language.types import BOOL, F16, F64, SCALAR_BYTES, Vector, scalar_of

MOST_TWICE = 16  # lines that are written for whole groups, and again for the last one
_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}
_ALL = {"glb": "get_global_size", "wrg": "get_num_groups", "lcl": "get_local_size"}
_LANES = "0123456789abcdef"


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
        self.scalars = ScalarText(dialect)
        self.index = IndexText(lambda value: self.expression(value)[0], few_divisions=dialect.few_branches)
        self.vectors: set[Vector] = set()
        self.uses_f64 = self.packs = False
        self.reread: frozenset[str] = frozenset()  # global memory that the kernel writes and reads
        self.indexed: frozenset[str] = frozenset()  # private arrays with an index that unrolling makes no number
        self.shares_groups = self.is_alone = False
        self.group: tuple[int, int, int] | None = None
        self.unrolls = True  # its long loops: that makes no text that is too long
        self.stays: Stays = nothing_stays

    # --- expressions ----------------------------------------------------------------------------

    def text(self, value: c_ast.CExpr) -> str:
        return self.expression(value)[0]

    def expression(self, value: c_ast.CExpr) -> tuple[str, int]:
        """The text of a value, and how strongly it binds."""
        self.uses_f64 |= scalar_of(value.type) == F64
        match value:
            case c_ast.Name(name=name):
                return name, POSTFIX
            case c_ast.Const(value=number, type=t):
                text = literal(number, scalar_of(t))
                return (broadcast(text, scalar_of(t), t), POSTFIX if text[0] != "-" else UNARY)
            case c_ast.IndexValue(value=index):
                return self.index.atomic(index), POSTFIX
            case c_ast.Load():
                return self.load(value)
            case c_ast.Lane():
                text = self.lane(value)
                return (f"({text} != 0)" if value.type == BOOL else text), POSTFIX  # a lane's true is -1
            case c_ast.Pack(items=items, type=t):
                return f"({type_name(t)})({', '.join(self.lane_value(i) for i in items)})", POSTFIX
            case c_ast.Operate():
                return self.scalars.operation(value, [self.expression(a) for a in value.arguments])
            case c_ast.Passed(value=passed, by=by):
                pass_on, places = (of_first, "") if by is None else (passed_on, f", {by}")
                name = pass_on(self.scalars.helpers, self.dialect, scalar_of(passed.type))
                return f"{name}({self.text(passed)}{places})", POSTFIX
            case c_ast.Choose(conditions=conditions, inside=inside, outside=outside):
                test = " && ".join(self.index.condition(c) for c in conditions)
                parts = [broadcast(self.text(v), v.type, value.type) for v in (inside, outside)]
                return f"({test}) ? ({parts[0]}) : ({parts[1]})", TERNARY
        raise NotImplementedError(type(value).__name__)

    def lane(self, place: c_ast.Lane) -> str:
        """A lane as it stands in its vector."""
        return f"{self.closed(place.vector)}.s{_lane(place.lane.constant)}"

    def lane_value(self, item: c_ast.CExpr) -> str:
        """A scalar as a lane."""
        return f"-({self.text(item)})" if item.type == BOOL else self.text(item)

    def closed(self, value: c_ast.CExpr) -> str:
        text, level = self.expression(value)
        return text if level >= POSTFIX else f"({text})"

    def load(self, value: c_ast.Load) -> tuple[str, int]:
        buffer = value.buffer
        if buffer.space == "private":
            return self.chosen_element(value) if self.is_chosen(value) else self.variable(value), POSTFIX
        if scalar_of(buffer.element) == F16:
            if value.width > 1:
                return f"vload_half{value.width}(0, {self.address(value)})", POSTFIX
            load = self.scalars.half_from(buffer.space)
            return f"{load}({self.index(value.index)}, {self.halves(buffer)})", POSTFIX
        if value.width == 1:
            text = self.element(value)
            return (f"({text} != 0)" if buffer.element == BOOL else text), POSTFIX
        t = Vector(scalar_of(buffer.element), value.width)
        if self.dialect.vector_access == "vload":
            text = f"vload{value.width}(0, {self.address(value)})"
        else:
            text = f"*({self.pointer(value, t, const=True)})({self.address(value)})"
        if scalar_of(t) == BOOL:
            return f"({self.scalars.convert(text, 'int', value.width)} != 0)", POSTFIX
        return text, POSTFIX if self.dialect.vector_access == "vload" else UNARY

    def element(self, place: c_ast.Load) -> str:
        """One element of global or local memory."""
        own = next((v for v in place.index.variables if v.name == "lcl_0"), None)
        rest = place.index - nat(own) if own else place.index
        if self.dialect.sums_apart and place.buffer.space == "local" and own and own not in rest.variables:
            base = self.index(rest)
            return f"{place.buffer.name}[lcl_0]" if base == "0" else f"({place.buffer.name} + {base})[lcl_0]"
        return f"{place.buffer.name}[{self.index(place.index)}]"

    def address(self, value: c_ast.Load) -> str:
        index, name = self.index(value.index), self.halves(value.buffer)
        return name if index == "0" else f"{name} + {index}"

    def halves(self, buffer: c_ast.Buffer) -> str:
        """The name of memory; of halves as a pointer to them, for memory of the work-group is declared without them."""
        if scalar_of(buffer.element) != F16 or (buffer.space == "global" and buffer.name not in self.reread):
            return buffer.name
        return f"(({buffer.space} half *){buffer.name})"

    def pointer(self, place: c_ast.Load, t: Vector, const: bool) -> str:
        volatile = "volatile " * (place.buffer.name in self.reread)
        kind = f"{volatile}{place.buffer.space} {'const ' * const}{type_name(t, MEMORY_NAMES)}"
        if self.dialect.aligned_vectors and divides(t.width, in_single_steps(in_full(place.index))):
            return f"{kind} *"
        self.vectors.add(t)
        return f"{kind}_u *"

    def variable(self, value: c_ast.Load) -> str:
        """The variable for an element of a private array.

        Raises
        ------
        NestingProblem
            If no unrolling makes a number of its index.
        """
        buffer = value.buffer
        number = value.index.constant if buffer.shape else 0
        if not self.is_named(buffer):
            return f"{buffer.name}[{self.index(value.index)}]"
        if number is None:
            raise NestingProblem(
                f"the private array {buffer.name} is written at {value.index}, which no unrolling makes a number: "
                "place it with toLocal or toGlobal"
            )
        return _element_name(buffer.name, buffer.shape, number)

    def is_chosen(self, place: c_ast.Load) -> bool:
        """Whether an element of a private array, at an index that is not known before the run, is one of variables."""
        buffer = place.buffer
        is_private = buffer.space == "private" and bool(buffer.shape)
        return is_private and place.index.constant is None and self.is_named(buffer)

    def chosen_stores(self, place: c_ast.Load, value: c_ast.CExpr) -> Iterator[str]:
        """The statements that write such an element."""
        index, text = self.index.atomic(place.index), broadcast(self.text(value), value.type, place.type)
        for k in range(place.buffer.length):
            name = _element_name(place.buffer.name, place.buffer.shape, k)
            yield f"{name} = ({index} == {k}) ? ({text}) : ({name})"

    def chosen_element(self, value: c_ast.Load) -> str:
        """The element of a private array at an index that is not known before the run, chosen among its variables."""
        index, last = self.index.atomic(value.index), value.buffer.length - 1
        names = [_element_name(value.buffer.name, value.buffer.shape, k) for k in range(last + 1)]
        return "(" + "".join(f"{index} == {k} ? {name} : " for k, name in enumerate(names[:-1])) + names[-1] + ")"

    def is_named(self, buffer: c_ast.Buffer) -> bool:
        """Whether the elements of a private array are variables of their own."""
        can_stay = (self.dialect.indexed_private and buffer.name in self.indexed) or self.stays(buffer)
        return not buffer.shape or (self.dialect.named_arrays and not can_stay)

    # --- statements -----------------------------------------------------------------------------

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
                if self.is_named(statement.buffer):
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
                return self.loop(statement, depth)
            case c_ast.If(conditions=conditions, body=body):
                test = " && ".join(self.index.condition(c) for c in conditions)
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
                return [f"const {type_name(value.type)} {name} = {self.text(value)}"]
            case c_ast.SinCos(sine=sine, cosine=cosine, value=value):
                kind = type_name(value.type)
                return [f"{kind} {cosine}", f"const {kind} {sine} = sincos({self.text(value)}, &{cosine})"]
            case c_ast.Allocate(buffer=buffer):
                return [self.declaration(buffer)]
            case c_ast.Store(place=place, value=value, by=by) if by:
                assert isinstance(place, c_ast.Load)
                added = broadcast(self.text(value), value.type, place.type)
                self.packs |= SCALAR_BYTES[scalar_of(place.type).name] == 8
                combine = self.scalars.atomic(by, scalar_of(place.type), place.buffer.space)
                return [f"{combine}({self.address(place)}, {added})"]
            case c_ast.Store(place=c_ast.Load() as place, value=value) if self.is_chosen(place):
                return [*self.chosen_stores(place, value)]
            case c_ast.Store(place=place, value=value, streamed=streamed):
                return [self.store(place, value, streamed)]
            case c_ast.Barrier(spaces=spaces):
                return [f"barrier({' | '.join(f'CLK_{s.upper()}_MEM_FENCE' for s in spaces)})"]
            case c_ast.SetIndex(variable=variable, value=value, declare=declare):
                return [f"{'int ' * declare}{variable.name} = {self.index(value)}"]
            case c_ast.LetIndex(variable=variable, value=value):
                return [f"const {'int' if self.index.fits(value) else 'long'} {variable.name} = {self.index(value)}"]
            case c_ast.Point(read=read, write=write, first=first, second=second):
                kind = f"{read.space} {type_name(read.element, MEMORY_NAMES)} *"
                return [f"{kind}{read.name} = {self.halves(first)}", f"{kind}{write.name} = {self.halves(second)}"]
            case c_ast.Swap(read=read, write=write, first=first, second=second):
                return [
                    f"{read.name} = {write.name}",
                    f"{write.name} = ({write.name} == {self.halves(first)}) ? {self.halves(second)} : "
                    f"{self.halves(first)}",
                ]
        raise NotImplementedError(type(statement).__name__)

    def declaration(self, buffer: c_ast.Buffer) -> str:
        kind = type_name(buffer.element, C_NAMES if buffer.space == "private" else MEMORY_NAMES)
        if buffer.space == "private" and self.is_named(buffer):
            return f"{kind} {', '.join(_element_name(buffer.name, buffer.shape, k) for k in range(buffer.length))}"
        if kind == "half":
            kind = "ushort"  # only pointers to halves need no extension
        aligned = " __attribute__((aligned(64)))" if self.dialect.aligned_vectors and buffer.space == "local" else ""
        return f"{kind} {buffer.name}[{max(buffer.length, 1)}]{aligned}"  # C has no empty arrays

    def store(self, place: c_ast.CExpr, value: c_ast.CExpr, streamed: bool = False) -> str:
        if isinstance(place, c_ast.Lane):
            return f"{self.lane(place)} = {self.lane_value(value)}"
        text = broadcast(self.text(value), value.type, place.type)
        assert isinstance(place, c_ast.Load)
        if place.buffer.space == "private":
            return f"{self.variable(place)} = {text}"
        if scalar_of(place.buffer.element) == F16:
            if place.width > 1:
                return f"vstore_half{place.width}_rte({text}, 0, {self.address(place)})"
            store = self.scalars.half_to(place.buffer.space)
            return f"{store}({text}, {self.index(place.index)}, {self.halves(place.buffer)})"
        if place.width == 1:
            return f"{self.element(place)} = {text}"
        t = Vector(scalar_of(place.buffer.element), place.width)
        if scalar_of(t) == BOOL:
            text = self.scalars.convert(f"({text}) & 1", "uchar", t.width)
        if streamed:
            pointer = f"({place.buffer.space} {type_name(t, MEMORY_NAMES)} *)({self.address(place)})"
            return f"{NON_TEMPORAL}({text}, {pointer})"
        if self.dialect.vector_access == "vload":
            return f"vstore{place.width}({text}, 0, {self.address(place)})"
        return f"*({self.pointer(place, t, const=False)})({self.address(place)}) = {text}"

    def loop(self, loop: c_ast.For, depth: int) -> list[Line]:
        name, count = loop.variable.name, loop.count
        if not loop.is_parallel:
            asks = loop.pragma or self.unrolls
            asked = pragma(loop, self.dialect, self.shares_groups, self.is_alone) if asks else None
            unroll = [Line("  " * depth + asked, loop.origin)] if asked else []
            head = f"for (int {name} = 0; {name} < {self.index(count * loop.step)}; {name} += {loop.step}) {{"
            return unroll + _enclosed(head, self.body(loop.body, depth + 1), depth, loop.origin)
        d = loop.level.dimension
        own, every = f"{_OWN[loop.level.kind]}({d})", f"{_ALL[loop.level.kind]}({d})"
        simplify = self.optimise.control_flow
        is_whole = simplify and loop.threads is not None and count == nat(loop.threads)
        inside, taken = depth if is_whole else depth + 1, list[Line]()
        if loop.ticket:
            counter, place = map(self.text, loop.ticket)
            own = place
            taken = [Line("  " * depth + text, loop.origin) for text in ticket(counter, place)]
        inner = self.body(loop.body, inside)
        if simplify and loop.threads is not None and is_at_least(loop.threads, count):
            uses = loop.variable.high != 0
            if uses and loop.level.kind != "lcl":  # those of mapLcl are shared, at the top of the kernel
                inner = [Line(f"{'  ' * inside}const int {name} = {own};", loop.origin), *inner]
            may = self.dialect.groups_apart and loop.level.kind == "glb" and len(inner) <= MOST_TWICE
            apart = whole_groups(loop, self.group[d] if self.group else 0) if may else None
            guard = "" if is_whole else f"if ({own} < {self.index(count)}) {{"
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
        head = f"for (int {name} = {own}; {name} < {self.index(count)}; {name} += {every}) {{"
        return _enclosed(head, inner, depth, loop.origin)

    # --- kernels --------------------------------------------------------------------------------

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
        self.stays = stays
        self.group, self.shares_groups = group, prod(group or (1,)) > 1
        self.is_alone = not any(isinstance(part, c_ast.For) and part.is_parallel for part in c_walk.statements(body))
        if self.dialect.unroll_long:
            self.is_alone = self.is_alone and as_asked(body, self.dialect, is_alone=True) <= SERIAL_LIMIT
            self.unrolls = as_asked(body, self.dialect) <= ASKED_LIMIT
        parts = c_walk.walk(body)
        self.indexed = frozenset(
            part.buffer.name
            for part in parts
            if isinstance(part, c_ast.Load) and part.buffer.space == "private" and part.index.constant is None
        )
        parameters = []
        shared_states = {load.buffer.name for load in states_of(body)}
        written = {place.buffer.name for place in c_walk.stores(body)}
        volatile = self.dialect.volatile_rereads and (group is None or self.shares_groups)
        self.reread = _read_again(body) if volatile else frozenset()
        for buffer in buffers:
            self.uses_f64 |= scalar_of(buffer.element) == F64
            kind = type_name(buffer.element, MEMORY_NAMES)
            qualifier = "" if buffer.name in written | shared_states else "const "
            volatile = "volatile " * (buffer.name in self.reread)
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
        lines = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if self.uses_f64 else []
        if self.packs:
            lines.append("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable")
        if not self.dialect.contracts:
            lines.append("#pragma OPENCL FP_CONTRACT OFF")
        if self.dialect.plain_operators and self.scalars.helpers:
            lines.append('#pragma clang diagnostic ignored "-Wpsabi"  // the functions are inlined')
        names = {(type_name(t, MEMORY_NAMES), type_name(t.scalar, MEMORY_NAMES)) for t in self.vectors}
        for c_type, element in sorted(names):
            lines.append(f"typedef {c_type} __attribute__((aligned(sizeof({element})))) {c_type}_u;")
        lines += index_helpers(self.index.helpers)
        lines += self.scalars.helpers.values()
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


@lru_cache(1 << 14)
def _element_name(array: str, shape: tuple[int | Nat, ...], number: int) -> str:
    """``acc_0_1`` for element (0, 1) of a private array."""
    digits = []
    for size in reversed(shape):
        assert isinstance(size, int), "memory() has refused it"
        digits.append(str(number % size))
        number //= size
    return "_".join([array, *reversed(digits)])


def _lane(number: int | None) -> str:
    if number is None:
        raise NestingProblem(
            "a component of a vector is chosen by a loop that is not unrolled: use asScalar in a mapSeq"
        )
    return _LANES[number]
