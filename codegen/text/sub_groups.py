"""Functions by which the work-items of a sub-group pass values on: 32 bits at a time, whatever these mean.

NVIDIA's OpenCL C has no built-in functions for that, but takes PTX; the instruction waits for all of a warp.
"""

from __future__ import annotations

from lift_egraph.codegen.devices import Dialect
from lift_egraph.codegen.text.scalar_text import C_NAMES
from lift_egraph.language.types import SCALAR_BYTES, U8, Scalar

_ON = {
    "ptx": 'uint b; asm volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(b) : "r"(a), "r"(by)); '
    "return b;",
    "intel": "return sub_group_shuffle_down(a, by);",
}  # both of what the first item of some needs only: beyond the last item they differ
_FIRST = {
    "ptx": 'uint b; asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(b) : "r"(a)); return b;',
    "intel": "return sub_group_broadcast(a, 0);",
}


def passed_on(helpers: dict[str, str], dialect: Dialect, t: Scalar) -> str:
    """The name of the function that gives what the item some places on has; remembers its text among the others."""
    return _by_words(helpers, "passed", t, _ON[dialect.exchange], "by")


def of_first(helpers: dict[str, str], dialect: Dialect, t: Scalar) -> str:
    """The same of the function that gives what the first item has."""
    return _by_words(helpers, "first", t, _FIRST[dialect.exchange])


def _by_words(helpers: dict[str, str], verb: str, t: Scalar, body: str, *others: str) -> str:
    c_type, word = C_NAMES[t.name], f"{verb}_uint"
    name, given = f"{verb}_{c_type}", "(uint)a" if t == U8 else "as_uint(a)"
    parameters, arguments = "".join(f", uint {o}" for o in others), "".join(f", {o}" for o in others)
    helpers[word] = f"static inline uint {word}(uint a{parameters}) {{ {body} }}"
    if SCALAR_BYTES[t.name] == 8:
        words = ", ".join(f"{word}({half}{arguments})" for half in ("b.lo", "b.hi"))
        text = f"const uint2 b = as_uint2(a); return as_{c_type}((uint2)({words}));"
    else:
        text = f"return {f'({c_type})' if t == U8 else f'as_{c_type}'}({word}({given}{arguments}));"
    if name != word:
        helpers[name] = f"static inline {c_type} {name}({c_type} a{parameters}) {{ {text} }}"
    return name


def asked(dialect: Dialect, sub_group: int) -> list[str]:
    """What stands before a kernel whose work-items pass values on."""
    return [f"__attribute__((intel_reqd_sub_group_size({sub_group})))"] if dialect.exchange == "intel" else []
