"""OpenCL C text of values, and of the places in memory that they are read from and written to."""

from __future__ import annotations

from functools import lru_cache

from lift_egraph.codegen import c_ast
from lift_egraph.codegen.devices import Dialect
from lift_egraph.codegen.passes.common_indices import in_full
from lift_egraph.codegen.passes.steps import in_single_steps
from lift_egraph.codegen.passes.unrolling import Stays, nothing_stays
from lift_egraph.codegen.text.index_text import IndexText
from lift_egraph.codegen.text.scalar_text import (
    MEMORY_NAMES,
    POSTFIX,
    TERNARY,
    UNARY,
    ScalarText,
    broadcast,
    literal,
    type_name,
)
from lift_egraph.codegen.text.sub_groups import of_first, passed_on
from lift_egraph.errors import NestingProblem
from lift_egraph.language.nat import Nat, divides, nat
from lift_egraph.language.types import BOOL, F16, F64, Vector, scalar_of

_LANES = "0123456789abcdef"


class ValueText:
    """Writes the values of one program; collects the helper functions and types that they need.

    Attributes
    ----------
    scalars, index
        What writes scalar operations, and indices.
    vectors
        Those that stand in memory at no multiple of their size.
    uses_f64
        Whether there are doubles.
    reread
        The global memory that the kernel writes and reads, if its reads are to be of memory each time.
    indexed
        The private arrays of the kernel with an index that unrolling makes no number.
    stays
        Which private arrays of the kernel are no variables.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.scalars = ScalarText(dialect)
        self.index = IndexText(lambda value: self.expression(value)[0], few_divisions=dialect.few_branches)
        self.vectors: set[Vector] = set()
        self.uses_f64 = False
        self.reread: frozenset[str] = frozenset()
        self.indexed: frozenset[str] = frozenset()
        self.stays: Stays = nothing_stays

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
        return element_name(buffer.name, buffer.shape, number)

    def is_chosen(self, place: c_ast.Load) -> bool:
        """Whether an element of a private array, at an index that is not known before the run, is one of variables."""
        buffer = place.buffer
        is_private = buffer.space == "private" and bool(buffer.shape)
        return is_private and place.index.constant is None and self.is_named(buffer)

    def chosen_element(self, value: c_ast.Load) -> str:
        """The element of a private array at an index that is not known before the run, chosen among its variables."""
        index, last = self.index.atomic(value.index), value.buffer.length - 1
        names = [element_name(value.buffer.name, value.buffer.shape, k) for k in range(last + 1)]
        return "(" + "".join(f"{index} == {k} ? {name} : " for k, name in enumerate(names[:-1])) + names[-1] + ")"

    def is_named(self, buffer: c_ast.Buffer) -> bool:
        """Whether the elements of a private array are variables of their own."""
        can_stay = (self.dialect.indexed_private and buffer.name in self.indexed) or self.stays(buffer)
        return not buffer.shape or (self.dialect.named_arrays and not can_stay)


@lru_cache(1 << 14)
def element_name(array: str, shape: tuple[int | Nat, ...], number: int) -> str:
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
