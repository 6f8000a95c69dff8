"""Functions as C text, where those of a device's compiler are slow.

PoCL 3.0 calls a function that is not inlined for each scalar, also where it is one instruction, and prepares sine and
cosine of the largest numbers in each lane. Those here are wrong by no more units in the last place than OpenCL allows
(4 for sine and cosine, 16 for powers, 3 for exp and log); sine, cosine and log call the compiler's own for arguments
that they are not made for. All but what is one instruction are of single precision; of powers whose base and exponent
are not known, logarithms are of double precision. Coefficients: those of SLEEF for sine, cosine and exp, of FreeBSD's
libm for log, and of the series of atanh for logarithms of double precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lift_egraph.codegen.c_ast import Const, Operate
from lift_egraph.language.types import F32, F64, scalar_of, width_of

LARGEST_EXPONENT = 8  # of powers: a larger one makes more of what the logarithm is wrong by
_BEYOND = 300.0  # powers of 2 by this are infinite, or 0
_ROUND = 12582912.0  # added and taken away again it leaves a whole number
_PI = (3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10)
_WAVE = """
  const {f} r = (((a - n * {p0}f) - n * {p1}f) - n * {p2}f) - n * {p3}f, s = r * r;
  const {f} made = r + s * r * (-0.166666597f + s * (0.00833307858f + s * (-0.000198106907f + s * 2.60831598e-06f)));
  const {f} found = as_{f}(as_{i}(made) ^ ({sign}));
  const {i} large = !(as_{f}(as_{i}(a) & 0x7fffffff) < 39000.0f);
  return {some}(large) ? (large ? {op}(a) : found) : found;"""
_TEXTS = {
    "sin": "const {f} n = (a * 0.318309886f + {round}f) - {round}f;" + _WAVE,
    "cos": "const {f} n = 2.0f * ((a * 0.318309886f - 0.5f + {round}f) - {round}f) + 1.0f;" + _WAVE,
    "exp": """const {f} b = a < -104.0f ? ({f})(-104.0f) : a, c = b > 89.0f ? ({f})(89.0f) : b;
  const {f} n = (c * 1.44269504f + {round}f) - {round}f, r = (c - n * 0.693145752f) - n * 1.42860677e-06f;
  const {f} u = 0.166666672f + r * (0.0416664854f + r * (0.00833336078f + r * (0.00139304355f + r * 0.000198527618f)));
  const {f} made = 1.0f + (r + r * r * (0.5f + r * u));
  const {i} by = {to_int}, half_of_it = by >> 1;
  return made * as_{f}((half_of_it + 127) << 23) * as_{f}((by - half_of_it + 127) << 23);""",
    "log": """if (!{normal}) return log(a);
  const {i} whole = (as_{i}(a) - 0x3f3504f3) >> 23;
  const {f} e = {to_float}, r = as_{f}(as_{i}(a) - (whole << 23)) - 1.0f, s = r / (2.0f + r), z = s * s, w = z * z;
  const {f} u = z * (0.666666627f + w * 0.284987867f) + w * (0.400009722f + w * 0.242790788f), h = 0.5f * r * r;
  return s * (h + u) + e * 9.05800061e-06f - h + r + e * 0.693138123f;""",
    "pow": """const {i} tiny = a < 1.17549435e-38f ? ({i})(23) : ({i})(0);
  const {f} b = a < 1.17549435e-38f ? a * 8388608.0f : a;
  const {i} up = (as_{i}(b) - 0x3f3504f3) >> 23, whole = up - tiny;
  const {f} e = {to_float}, m = as_{f}(as_{i}(b) - (up << 23)) - 1.0f, s = m / (2.0f + m), z = s * s, w = z * z;
  const {f} u = z * (0.666666627f + w * 0.284987867f) + w * (0.400009722f + w * 0.242790788f), h = 0.5f * m * m;
  const {f} rest = (s * (h + u) - h + m) * 1.44269504f;
  const {f} p = high * e, t = p < -280.0f ? ({f})(-280.0f) : p > 280.0f ? ({f})(280.0f) : p;
  const {f} k = (t + {round}f) - {round}f, q = (p - k) + (low * e + (high + low) * rest);
  const {f} d = (q + {round}f) - {round}f, r = (q - d) * 0.693147181f;
  const {f} v = 0.166666672f + r * (0.0416664854f + r * (0.00833336078f + r * (0.00139304355f + r * 0.000198527618f)));
  const {f} made = 1.0f + (r + r * r * (0.5f + r * v)), last = k + d;
  const {f} n = last < -252.0f ? ({f})(-252.0f) : last > 254.0f ? ({f})(254.0f) : last;
  const {i} by = {to_int}, half_of_it = by >> 1;
  const {f} found = made * as_{f}((half_of_it + 127) << 23) * as_{f}((by - half_of_it + 127) << 23);
  const {f} zero = ({f})(high > 0.0f ? 0.0f : INFINITY), most = ({f})(high > 0.0f ? INFINITY : 0.0f);
  const {f} at_end = a == 0.0f ? zero : a > 0.0f ? most : ({f})(NAN);
  return ((a > 0.0f) & (a <= 3.40282347e+38f)) ? found : at_end;""",
    "pow_of": """const {f} b = a < -most ? ({f})(-most) : a, c = b > most ? ({f})(most) : b;
  const {f} top = as_{f}(as_{i}(c) & ~0xfff), p = high * top;
  const {f} k = (p + {round}f) - {round}f, q = (p - k) + (high * (c - top) + low * c);
  const {f} d = (q + {round}f) - {round}f, r = (q - d) * 0.693147181f;
  const {f} v = 0.166666672f + r * (0.0416664854f + r * (0.00833336078f + r * (0.00139304355f + r * 0.000198527618f)));
  const {f} made = 1.0f + (r + r * r * (0.5f + r * v)), last = k + d;
  const {f} n = last < -252.0f ? ({f})(-252.0f) : last > 254.0f ? ({f})(254.0f) : last;
  const {i} by = {to_int}, half_of_it = by >> 1;
  return made * as_{f}((half_of_it + 127) << 23) * as_{f}((by - half_of_it + 127) << 23);""",
    "pow_by": """const {f} size = as_{f}(as_{i}(a) & 0x7fffffff), power = as_{f}(as_{i}(b) & 0x7fffffff);
  const {f} most = b > 3e38f ? ({f})(3e38f) : b < -3e38f ? ({f})(-3e38f) : b, by_it = a == 1.0f ? ({f})(0.0f) : most;
  const {i} tiny = size < 1.17549435e-38f ? ({i})(23) : ({i})(0);
  const {f} c = size < 1.17549435e-38f ? size * 8388608.0f : size;
  const {i} up = (as_{i}(c) - 0x3f3504f3) >> 23, whole = up - tiny;
  const {f} fraction = as_{f}(as_{i}(c) - (up << 23));
  const {d} m = {to_double}, s = (m - 1.0) / (m + 1.0), z = s * s;
  const {d} u = 0.5770780163555853 + z * (0.4121985831111324 + z * (0.3205988979753252 + z * 0.2623081892525388));
  const {d} logarithm = {whole_as_double} + s * (2.8853900817779268 + z * (0.9617966939259756 + z * u));
  const {d} p = logarithm * {power_as_double}, t = p < -200.0 ? ({d})(-200.0) : p > 200.0 ? ({d})(200.0) : p;
  const {d} n = (t + 6755399441055744.0) - 6755399441055744.0, left = t - n;
  const {f} r = {left_as_float} * 0.693147181f;
  const {f} v = 0.166666672f + r * (0.0416664854f + r * (0.00833336078f + r * (0.00139304355f + r * 0.000198527618f)));
  const {f} made = 1.0f + (r + r * r * (0.5f + r * v));
  const {i} by = {to_int}, half_of_it = by >> 1;
  const {f} found = made * as_{f}((half_of_it + 127) << 23) * as_{f}((by - half_of_it + 127) << 23);
  const {f} small = power < 16777216.0f ? power : ({f})(0.0f);
  const {i} near = {small_to_int}, is_whole = {near_to_float} == small, is_odd = is_whole & ((near & 1) != 0);
  const {f} at_end = ((size == 0.0f) == (as_{i}(b) < 0)) ? ({f})(INFINITY) : ({f})(0.0f);
  const {f} sized = (((size == 0.0f) | (size == INFINITY)) & (power > 0.0f)) ? at_end : found;
  const {f} turned = ((as_{i}(a) < 0) & is_odd) ? -sized : sized;
  const {i} is_none = ((a < 0.0f) & !is_whole & (size != INFINITY)) | ((a != a) & (power > 0.0f));
  return is_none ? ({f})(NAN) : turned;""",
}  # of powers the product of the first bits of the binary logarithm and of the exponent is exact, or of doubles
_LANES = ("sin", "cos", "pow")  # of which lanes are slow, too
_INSTRUCTIONS = {"floor": "floor", "ceil": "ceil", "sqrt": "sqrt", "rsqrt": "sqrt"}  # by what clang calls them
_NUMBERS = {"pow": ("high", "low"), "pow_of": ("high", "low", "most")}  # what is known of powers
_ARGUMENTS = {"pow_by": ("a", "b")}


@dataclass(frozen=True)
class Function:
    """A function: its name, the texts of what it needs and its own, what else it is given, and its arguments."""

    name: str
    texts: dict[str, str]
    numbers: tuple[str, ...] = ()
    arguments: tuple[int, ...] = (0,)


def function(item: Operate, widest: int) -> Function | None:
    """The function for an operation, if there is one; wider lanes than `widest` bytes are computed in halves."""
    op, t = item.op, item.type
    lanes = width_of(t)
    if op in _INSTRUCTIONS and scalar_of(t) in (F32, F64):
        return _instruction(op, *(("float", "f") if scalar_of(t) == F32 else ("double", "")), lanes)
    if op not in _TEXTS or scalar_of(t) != F32 or (lanes > 1 and op not in _LANES):
        return None
    if op != "pow":
        return Function(_name(op, lanes), _texts(op, lanes, widest))
    if any(scalar_of(a.type) != F32 for a in item.arguments):
        return None
    base, exponent = (np.float32(a.value) if isinstance(a, Const) else None for a in item.arguments)
    if exponent is not None and abs(exponent) <= LARGEST_EXPONENT and not exponent.is_integer():
        return Function(_name(op, lanes), _texts(op, lanes, widest), tuple(map(_number, _parts(exponent))))
    if base is not None and exponent is None and np.finfo(np.float32).tiny <= base < np.inf and base != 1:
        power = np.log2(np.float64(base))
        numbers = (*_parts(power), np.float32(_BEYOND / abs(power)))
        return Function(_name("pow_of", lanes), _texts("pow_of", lanes, widest), tuple(map(_number, numbers)), (1,))
    return Function(_name("pow_by", lanes), _texts("pow_by", lanes, widest), arguments=(0, 1))


def _instruction(op: str, scalar: str, suffix: str, lanes: int) -> Function:
    """What is one instruction, as clang knows it: lanes that are written one by one are one again."""
    one, c_type = f"__builtin_{_INSTRUCTIONS[op]}{suffix}", _type_name(scalar, lanes)
    each = ", ".join(f"{one}(a.s{lane:x})" for lane in range(lanes))
    made = f"({c_type})({each})" if lanes > 1 else f"{one}(a)"
    name = f"own_{op}_{c_type}"
    text = f"static inline {c_type} {name}({c_type} a) {{ return {f'1.0{suffix} / ' * (op == 'rsqrt')}{made}; }}"
    return Function(name, {name: text})


def _parts(number: np.floating) -> tuple[np.float32, np.float32]:
    """The first 12 bits of a number, and what is left of it."""
    high = (np.float32(number).view(np.int32) & np.int32(~0xFFF)).view(np.float32)
    return high, np.float32(number - high)


def _name(op: str, lanes: int) -> str:
    return f"own_{op}_{_type_name('float', lanes)}"


def _texts(op: str, lanes: int, widest: int) -> dict[str, str]:
    f, i, d = _type_name("float", lanes), _type_name("int", lanes), _type_name("double", lanes)
    own, others = _ARGUMENTS.get(op, ("a",)), _NUMBERS.get(op, ())
    given = ", ".join([*(f"{f} {name}" for name in own), *(f"float {name}" for name in others)])
    head = f"static inline {f} own_{op}_{f}({given}) {{\n"
    if 4 * lanes > widest:
        half = _name(op, lanes // 2)
        calls = (f"{half}({', '.join((*(f'{name}.{side}' for name in own), *others))})" for side in ("lo", "hi"))
        whole = f"{head}  return ({f})({', '.join(calls)});\n}}"
        return {**_texts(op, lanes // 2, widest), _name(op, lanes): whole}
    numbers = [part / 2 if op == "cos" else part for part in _PI]
    body = _TEXTS[op].format(
        f=f,
        i=i,
        d=d,
        op=op,
        round=_ROUND,
        some="any" if lanes > 1 else "",
        sign=f"(~{_as('n', i)} & 2) << 30" if op == "cos" else f"{_as('n', i)} << 31",
        normal="((a >= 1.17549435e-38f) & (a <= 3.40282347e+38f))",
        to_int=_as("n", i),
        to_float=_as("whole", f),
        to_double=_as("fraction", d),
        whole_as_double=_as("whole", d),
        power_as_double=_as("by_it", d),
        left_as_float=_as("left", f),
        small_to_int=_as("small", i),
        near_to_float=_as("near", f),
        **{f"p{k}": _number(np.float32(part)).rstrip("f") for k, part in enumerate(numbers)},
    )
    return {_name(op, lanes): f"{head}  {body}\n}}"}


def _as(name: str, c_type: str) -> str:
    is_vector = c_type[-1].isdigit()
    return f"__builtin_convertvector({name}, {c_type})" if is_vector else f"({c_type})({name})"


def _type_name(scalar: str, lanes: int) -> str:
    return f"{scalar}{lanes}" if lanes > 1 else scalar


def _number(value: np.float32) -> str:
    text = str(np.float32(value))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
