"""C identifiers: what may not be one, and fresh ones."""

from __future__ import annotations

import re

from lift_egraph.language.binders import fresh_name
from lift_egraph.language.types import WIDTHS

_TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double", "half")
_WORDS = re.findall(
    r"\w+",
    """
    auto bool break case const constant continue default do else enum extern false for global goto if inline
    kernel local private read_only register restrict return signed sizeof size_t static struct switch true
    typedef union unsigned void volatile while write_only read_write image2d_t sampler_t event_t pipe uniform
    min max clamp abs fabs sqrt rsqrt exp log sin cos tan tanh floor ceil pow fmin fmax mad fma dot cross length
    distance normalize select all any sign step mix degrees radians round trunc rint fmod hypot cbrt erf barrier
    isnan isinf half_exp NAN INFINITY HUGE_VAL M_PI NULL main printf index_min index_max index_floor_div
    index_floor_mod index_min_long index_max_long index_floor_div_long index_floor_mod_long
    acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi copysign cosh cospi erfc exp2 exp10 expm1 fdim
    fract frexp ilogb ldexp lgamma lgamma_r log2 log10 log1p logb maxmag minmag modf nan nextafter pown powr remainder
    remquo rootn sincos sinh sinpi tanpi tgamma abs_diff add_sat sub_sat hadd rhadd clz ctz mad24 mad_hi mad_sat mul24
    mul_hi rotate upsample popcount smoothstep isequal isnotequal isgreater isgreaterequal isless islessequal
    islessgreater isfinite isnormal isordered isunordered signbit bitselect shuffle shuffle2 prefetch mem_fence
    read_mem_fence write_mem_fence vec_step MAXFLOAT HUGE_VALF
    """,
)
_FAMILIES = re.compile(
    r"(get_(global|local|group|num|work|image)|convert|as|vload|vstore|native|half|fast|atom|atomic|async|wait_group|"
    r"read_image|write_image|work_group|sub_group)_\w+"
    r"|v(load|store)\d+"
    r"|(CLK|M|FP|FLT|DBL|HALF|CHAR|SCHAR|UCHAR|SHRT|USHRT|INT|UINT|LONG|ULONG|CL)_[A-Z0-9_]+"
    r"|\w+_(float|double|int|long)\d+|\w+\d+_u"  # functions and types that the printer defines
)

RESERVED = frozenset(_WORDS) | frozenset(_TYPES) | frozenset(f"{t}{w}" for t in _TYPES for w in (*WIDTHS, 3))


def c_name(base: str, taken: set[str]) -> str:
    """A C identifier like `base` that is neither reserved nor in `taken`; it is added to `taken`."""
    plain = re.sub(r"\W", "_", base).lstrip("_") or "x"
    if plain[0].isdigit():
        plain = f"x{plain}"
    if plain in RESERVED or _FAMILIES.fullmatch(plain):
        plain = f"{plain}_"
    return fresh_name(plain, taken)
