"""Scalar operations as C text, meaning exactly what `lift_egraph.language.scalar` says.

What C has no operator for becomes a small function that is printed once above the kernels.
"""

from __future__ import annotations

from math import isinf, isnan

import numpy as np

from lift_egraph.codegen.c_ast import CExpr, Choose, Load, Name, Operate, Passed
from lift_egraph.codegen.c_walk import data_in, walk
from lift_egraph.codegen.devices import Dialect
from lift_egraph.codegen.text import inline_math
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    SCALAR_BYTES,
    U8,
    U32,
    Scalar,
    Vector,
    scalar_of,
    width_of,
)

C_NAMES = {
    "f32": "float", "f64": "double", "i32": "int", "bool": "int", "i64": "long", "u32": "uint", "u8": "uchar",
    "f16": "float",  # halves are computed in single precision and rounded, so that no extension is needed
}  # fmt: skip
MEMORY_NAMES = {**C_NAMES, "bool": "uchar", "f16": "half"}
_MASKS = {"f64": "long", "i64": "long", "u8": "char"}  # the lanes of comparisons, where not int
_EXACT = ("neg", "abs", "min", "max", "floor", "ceil")
_BITS = {"f16": ("int", "0x7fffffff"), "f32": ("int", "0x7fffffff"), "f64": ("long", "0x7fffffffffffffffL")}
PRECEDENCE = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_COMPARES = {PRECEDENCE[symbol] for symbol in ("<", "==")}
_BIT_SYMBOLS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^", "bit_not": "~"}
_SYMBOLS = {**{op.name: op.symbol for op in OPERATIONS.values() if op.symbol}, **_BIT_SYMBOLS, "neg": "-"}
_SHIFTS = {"shift_left": "<<", "shift_right": ">>"}
# what OpenCL has for whole numbers of 32 bits in memory
_ATOMIC = {op: f"atomic_{op.removeprefix('bit_')}" for op in ("add", "min", "max", "bit_and", "bit_or", "bit_xor")}
_INDEX_BODIES = {
    "index_min": "a < b ? a : b",
    "index_max": "a < b ? b : a",
    "index_floor_div": "a / b - (a % b < 0)",
    "index_floor_mod": "(a % b + b) % b",
}  # b > 0
UNARY, POSTFIX, TERNARY = 11, 12, 0
_LITTLE = 16  # nodes of a condition that is computed without a branch
_LITTLE_KINDS = ("comparison", "logic", "arithmetic", "cast")
_HAS_HALVES = "#if defined(__F16C__) || defined(__aarch64__)  // the processor converts halves"


def _register_bytes(t: Scalar | Vector) -> int:
    return (4 if scalar_of(t) == F16 else SCALAR_BYTES[scalar_of(t).name]) * width_of(t)


def type_name(t: Scalar | Vector, names: dict[str, str] = C_NAMES) -> str:
    """The C type of a value (or, with `MEMORY_NAMES`, of an element in memory)."""
    lanes = width_of(t)
    return names[scalar_of(t).name] + (str(lanes) if lanes > 1 else "")


def literal(value: float | int | bool, t: Scalar) -> str:
    """A number that the C compiler reads back as exactly the same value."""
    if t == BOOL:
        return "1" if value else "0"
    if t.is_integer:
        if t == U8:
            return f"((uchar){int(value)})"  # beside a vector an int may not stand
        suffix = {"i64": "L", "u32": "u"}.get(t.name, "")
        least = -(1 << 8 * SCALAR_BYTES[t.name] - 1)
        return f"({least + 1}{suffix} - 1)" if int(value) == least else f"{int(value)}{suffix}"
    number = float(value)
    if isnan(number):
        return "NAN"
    if isinf(number):
        return "-INFINITY" if number < 0 else "INFINITY"
    if t == F16:
        number = float(np.float16(number))
    text = repr(number) if t == F64 else str(np.float32(number))
    if "." not in text and "e" not in text:
        text += ".0"
    return text if t == F64 else f"{text}f"


def broadcast(text: str, source: Scalar | Vector, target: Scalar | Vector) -> str:
    """The text of a value in the type of a target: a scalar is repeated in all lanes."""
    if width_of(source) == width_of(target):
        return text
    if scalar_of(source) == BOOL:
        return f"({type_name(target)})(-({text}))"  # a lane's true is -1
    return f"({type_name(target)})({text})"


def _is_little(value: CExpr) -> bool:
    """Whether a value is computed sooner than a branch around it is taken."""
    parts = walk((value,))
    return len(parts) <= _LITTLE and not any(
        isinstance(part, Choose | Passed)
        or (isinstance(part, Operate) and OPERATIONS[part.op].kind not in _LITTLE_KINDS)
        or (isinstance(part, Load) and data_in(part.index))
        for part in parts
    )


class ScalarText:
    """Prints operations; `helpers` collects the functions that the text needs, each behind those that it calls."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.helpers: dict[str, str] = {}

    def operation(self, item: Operate, arguments: list[tuple[str, int]]) -> tuple[str, int]:
        """The text of an operation on arguments given as text with precedence; its precedence."""
        text, level = self.in_registers(item, arguments)
        rounds = OPERATIONS[item.op].kind in ("arithmetic", "float") and item.op not in _EXACT
        if rounds and scalar_of(item.type) == F16:
            return f"{self.rounded(item.type)}({text})", POSTFIX
        return text, level

    def rounded(self, t: Scalar | Vector) -> str:
        """The name of the function that rounds a value, in single or double precision, to a half."""
        source, lanes = type_name(t), str(width_of(t)) if width_of(t) > 1 else ""
        name, result, half = f"half_of_{source}", f"float{lanes}", "(private half *)&bits"
        store, load = f"vstore_half{lanes}_rte", f"vload_half{lanes}"
        if not lanes and scalar_of(t) != F64:
            store, load = self.half_to("private"), self.half_from("private")
        self.helpers[name] = (
            f"static inline {result} {name}({source} a) {{ ushort{lanes} bits; {store}(a, 0, {half}); "
            f"return {load}(0, {half}); }}"
        )
        return name

    def half_from(self, space: str) -> str:
        """The name of the function of a place and a pointer that reads a half of a space as a float."""
        own = f"const ushort bits = (({space} const ushort *)p)[i]; return __builtin_load_halff((const half *)&bits);"
        takes = f"size_t i, {space} const half *p"
        return self._converting("vload_half", f"half_from_{space}", "float", takes, own, "return vload_half(i, p);")

    def half_to(self, space: str) -> str:
        """The name of the function of a float, a place and a pointer that rounds it to a half there."""
        own = f"ushort bits; __builtin_store_halff(a, (half *)&bits); (({space} ushort *)p)[i] = bits;"
        takes = f"float a, size_t i, {space} half *p"
        return self._converting("vstore_half_rte", f"half_to_{space}", "void", takes, own, "vstore_half_rte(a, i, p);")

    def _converting(self, built_in: str, name: str, result: str, takes: str, own: str, otherwise: str) -> str:
        """The name of the built-in function that converts halves, or of one of our own, where the device's is slow."""
        if not self.dialect.inline_halves:
            return built_in
        self.helpers[name] = (
            f"static inline {result} {name}({takes}) {{\n{_HAS_HALVES}\n  {own}\n#else\n  {otherwise}\n#endif\n}}"
        )
        return name

    def in_registers(self, item: Operate, arguments: list[tuple[str, int]]) -> tuple[str, int]:
        """The text of an operation in the types that registers have."""
        op, kind, symbol = item.op, OPERATIONS[item.op].kind, _SYMBOLS.get(item.op, "")
        texts = [text for text, _ in arguments]
        types = [a.type for a in item.arguments]
        operand = types[-1] if kind == "select" else max(types, key=width_of)
        wide = width_of(item.type) > 1
        scalar = scalar_of(operand)
        if kind == "comparison":
            text, level = self.infix(symbol, self.masks(item, arguments) if scalar == BOOL else arguments)
            return (
                (self.convert(text, "int", width_of(item.type)), POSTFIX)
                if wide and scalar.name in _MASKS
                else (text, level)
            )
        if kind == "logic":
            arguments = self.masks(item, arguments)
            if op == "not":
                return f"{'~' if wide else '!'}({arguments[0][0]})", UNARY
            both = wide or (self.dialect.few_branches and _is_little(item.arguments[1]))
            return self.infix(symbol[0] if both else symbol, arguments)  # lanes are masks: & and |
        if kind == "select":
            return self.select(item, texts), TERNARY
        if kind == "cast":
            return self.cast(texts[0], types[0], scalar_of(item.type)), POSTFIX
        has_helper = op in ("min", "max", "abs", *_SHIFTS) or (op in ("div", "mod") and scalar.is_integer)
        if symbol and not has_helper:
            text, level = self.infix(symbol, arguments) if len(arguments) == 2 else self.signed(symbol, arguments[0])
            return (f"(uchar)({text})", UNARY) if scalar == U8 and not wide else (text, level)  # else it is an int
        if kind == "lanes":
            return f"{op}({', '.join(texts)})", POSTFIX
        if op == "pow" and types[1] == I32:
            return f"{self.whole_power(item.type)}({broadcast(texts[0], types[0], item.type)}, {texts[1]})", POSTFIX
        if self.dialect.inline_math and (own := inline_math.function(item, self.dialect.math_bytes)):
            self.helpers |= own.texts
            given = [broadcast(texts[n], types[n], item.type) for n in own.arguments]
            return f"{own.name}({', '.join((*given, *own.numbers))})", POSTFIX
        texts = [broadcast(x, t, item.type) for x, t in zip(texts, types, strict=True)]
        if has_helper:
            return f"{self.helper(op, item.type)}({', '.join(texts)})", POSTFIX
        widest = self.dialect.math_bytes
        if _register_bytes(item.type) > widest:
            op = self.in_pieces(op, item.type, widest)
        return f"{op}({', '.join(texts)})", POSTFIX

    def masks(self, item: Operate, arguments: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Bools as they are combined: beside lanes, which are masks, a scalar is one too."""
        types = [a.type for a in item.arguments]
        texts = [broadcast(text, t, item.type) for (text, _), t in zip(arguments, types, strict=True)]
        return [(x, level if x == text else POSTFIX) for x, (text, level) in zip(texts, arguments, strict=True)]

    def in_pieces(self, op: str, t: Scalar | Vector, widest: int) -> str:
        """The name of the function that computes a built-in function on pieces of a vector that have `widest` bytes."""
        pieces, size = [""], _register_bytes(t)
        while size > widest:
            pieces, size = [f"{piece}.{half}" for piece in pieces for half in ("lo", "hi")], size // 2
        c_type, names = type_name(t), "ab"[: OPERATIONS[op].arity]
        results = ", ".join(f"{op}({', '.join(f'{n}{piece}' for n in names)})" for piece in pieces)
        name, parameters = f"{op}_{c_type}", ", ".join(f"{c_type} {n}" for n in names)
        self.helpers[name] = f"static inline {c_type} {name}({parameters}) {{ return ({c_type})({results}); }}"
        return name

    def closed(self, text: str, level: int, needed: int) -> str:
        return text if level > needed else f"({text})"

    def infix(self, symbol: str, arguments: list[tuple[str, int]]) -> tuple[str, int]:
        level = PRECEDENCE[symbol]
        warned = _COMPARES if symbol in "&^|" else ()  # of what compilers warn if it stands beside these without ( )
        left, right = (
            self.closed(text, own, own if own in warned else needed)
            for (text, own), needed in zip(arguments, (level - 1, level), strict=True)
        )
        return f"{left} {symbol} {right}", level

    def signed(self, sign: str, argument: tuple[str, int]) -> tuple[str, int]:
        return f"{sign}{self.closed(*argument, UNARY)}", UNARY

    def select(self, item: Operate, texts: list[str]) -> str:
        condition, *values = item.arguments
        mask = _MASKS.get(scalar_of(item.type).name)
        if width_of(condition.type) > 1 and mask is not None:
            texts[0] = self.convert(texts[0], mask, width_of(item.type))
        texts[1:] = [broadcast(x, v.type, item.type) for x, v in zip(texts[1:], values, strict=True)]
        return f"({texts[0]}) ? ({texts[1]}) : ({texts[2]})"

    def convert(self, text: str, element: str, lanes: int) -> str:
        """A vector with its lanes converted to a C type."""
        target = f"{element}{lanes}"
        return (
            f"__builtin_convertvector({text}, {target})"
            if self.dialect.plain_operators
            else f"convert_{target}({text})"
        )

    def cast(self, text: str, source: Scalar | Vector, to: Scalar) -> str:
        if to == F16:
            given = source if scalar_of(source) == F64 else Vector(F32, w) if (w := width_of(source)) > 1 else F32
            return f"{self.rounded(given)}({text if given == source else self.cast(text, source, F32)})"
        if width_of(source) == 1:
            return f"({C_NAMES[to.name]})({text})"
        mask = scalar_of(source) == BOOL
        return self.convert(f"-({text})" if mask else text, C_NAMES[to.name], width_of(source))

    def atomic(self, op: str, t: Scalar, space: str) -> str:
        """The name of the function that combines an element of global or local memory with a value; remembers its text.

        Where OpenCL has none for the type, what is there is exchanged for the result if nobody changed it meanwhile.
        """
        c_type, size = C_NAMES[t.name], SCALAR_BYTES[t.name]
        own = _ATOMIC.get(op) if t in (I32, U32) else None
        name = f"{'local_' * (space == 'local')}atomic_{op}_{c_type}"
        if self.dialect.inline_ptx and op == "add" and t in (F32, F64):
            kind = "f" if size == 4 else "d"
            where = "shared" if space == "local" else space
            text = f'asm volatile("red.{where}.add.f{8 * size} [%0], %1;" :: "l"(p), "{kind}"(b) : "memory");'
        elif own:
            text = f"{own}(p, b);"
        else:
            bits, exchange = ("int", "atomic_cmpxchg") if size == 4 else ("long", "atom_cmpxchg")
            made, _ = self.operation(Operate(op, (Name("a", t), Name("b", t)), t), [("a", POSTFIX), ("b", POSTFIX)])
            text = (
                f"volatile {space} {bits} *at = (volatile {space} {bits} *)p; {bits} was, seen = *at; "
                f"do {{ was = seen; const {c_type} a = as_{c_type}(was); const {bits} next = as_{bits}({made}); "
                f"if (next == was) break; seen = {exchange}(at, was, next); }} while (seen != was);"
            )
        self.helpers[name] = f"static inline void {name}(volatile {space} {c_type} *p, {c_type} b) {{ {text} }}"
        return name

    def whole_power(self, t: Scalar | Vector) -> str:
        """The name of the function for powers by whole numbers, which squares."""
        c_type = type_name(t)
        name = f"power_{c_type}"
        self.helpers[name] = (
            f"static inline {c_type} {name}({c_type} a, int n) {{\n  {c_type} made = ({c_type})(1);\n"
            "  for (int left = n < 0 ? -n : n; left > 0; left >>= 1) {\n"
            "    if (left & 1) made *= a;\n    a *= a;\n  }\n"
            f"  return n < 0 ? ({c_type})(1) / made : made;\n}}"
        )
        return name

    def helper(self, op: str, t: Scalar | Vector) -> str:
        """The name of the function for an operation on a type; remembers its text."""
        c_type, scalar = type_name(t), scalar_of(t)
        name = f"{op}_{c_type}"
        mask, bits = _BITS.get(scalar.name, ("", ""))
        lanes = str(width_of(t)) if width_of(t) > 1 else ""
        if op in ("min", "max"):
            body = "b < a ? b : a" if op == "min" else "a < b ? b : a"
        elif op == "abs" and scalar.is_integer:
            body = "a" if scalar in (U32, U8) else "a < 0 ? -a : a"
        elif op == "abs" and self.dialect.plain_operators:
            body = f"as_{c_type}(as_{mask}{lanes}(a) & {bits})"
        elif op == "abs":
            body = "fabs(a)"
        elif op in _SHIFTS:
            body = f"a {_SHIFTS[op]} (b & ({c_type})({8 * SCALAR_BYTES[scalar.name] - 1}))"
        else:
            one, zero = f"({c_type})(1)", f"({c_type})(0)"
            any_ = "|" if lanes else "||"
            symbol = OPERATIONS[op].symbol
            if scalar in (U32, U8):
                is_special, special = f"(b == {zero})", zero
            else:
                is_special = f"((b == 0) {any_} (b == -1))"
                special = zero if op == "mod" else f"(b == 0 ? {zero} : {zero} - a)"
            body = f"{is_special} ? {special} : a {symbol} ({is_special} ? {one} : b)"
        parameters = f"{c_type} a" + (f", {c_type} b" if OPERATIONS[op].arity == 2 else "")
        self.helpers[name] = f"static inline {c_type} {name}({parameters}) {{ return {body}; }}"
        return name


def index_helpers(names: set[str]) -> list[str]:
    """The functions that index expressions use."""
    return [
        f"static inline {t} {name}({t} a, {t} b) {{ return {_INDEX_BODIES[base]}; }}"
        for name in sorted(names)
        for base, t in [(name.removesuffix("_long"), "long" if name.endswith("_long") else "int")]
    ]
