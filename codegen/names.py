"""C identifiers: what may not be one, and fresh ones.

OpenCL C's keywords and functions are known, the macros, types and functions of its extensions and compilers are not;
but all of those have the form of one of some families (`cl_khr_fp64`, `image2d_depth_t`, `ATOMIC_FLAG_INIT`,
`intel_sub_group_shuffle`). A name is kept if it is of no such form, and gets an underscore behind it otherwise: nobody
else's names end like that.
"""

from __future__ import annotations

import re

from lift_egraph.language.binders import fresh_name

# Keywords and functions of one word, also of GNU C, and what the printer defines. With a number behind them they are
# other types and functions: float4, log2, vload8.
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    auto bool break case char complex const constant continue default do double else enum extern float for generic
    global goto half if imaginary inline int kernel local long private quad register restrict return short signed sizeof
    static struct switch true false typedef uchar uint ulong ushort union unsigned void volatile while
    pipe uniform event image sampler main printf asm typeof i386 linux unix NaN constexpr nullptr
    abs acos acosh acospi add all any as asin asinh asinpi atan atanh atanpi atom atomic barrier bitselect cbrt ceil
    clamp clz convert copysign cos cosh cospi cross ctz degrees distance dot erf erfc exp expm fabs fast fdim floor fma
    fmax fmin fmod fract frexp hadd hypot ilogb isequal isfinite isgreater isgreaterequal isinf isless islessequal
    islessgreater isnan isnormal isnotequal isordered isunordered ldexp length lgamma log logb mad max maxmag min minmag
    mix modf nan native nextafter normalize popcount pow pown powr prefetch radians remainder remquo rhadd rint rootn
    rotate round rsqrt select shuffle sign signbit sin sincos sinh sinpi smoothstep sqrt step tan tanh tanpi tgamma
    trunc upsample vload vloada vstore vstorea
    """,
    )
)

# First words, without a number behind them, of names with underscores: of OpenCL C and of extensions' authors.
_FIRST_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    abs add amd apple arm as async atan atom atomic bit bitfield capture char cl clang clk commit convert create ctz dbl
    dot double enqueue event ext fast float flt fp get half huge image img index int intel is kernel khr lgamma llvm
    long mad mem memory mul native ndrange nv nvidia ocl opencl packed pocl popcount prefetch qcom read release
    reserve retain sampler schar set short shrt shuffle spir spirv sub svm to uchar uint ulong ushort ushrt vec
    vload vloada vstore vstorea wait work write
    """,
    )
)
_PLAIN = re.compile(r"[A-Za-z]+\d*(_[A-Za-z]+\d*|_\d+)*")
# Functions and types that the printer defines.
_DEFINED = re.compile(r"\w+_(float|double|u?int|long|uchar)\d*|index_(min|max|floor_div|floor_mod)|\w+\d+_u")


def is_reserved(name: str) -> bool:
    """Whether an identifier may mean something to a compiler."""
    if name.endswith("_"):
        return False
    if not _PLAIN.fullmatch(name) or _DEFINED.fullmatch(name) or name.endswith("_t"):
        return True
    first, underscore, _ = name.partition("_")
    word, letters = first.rstrip("0123456789"), re.sub(r"[\d_]", "", name)
    if letters.isupper() and len(letters) > (1 if underscore else 2):
        return True  # as macros are
    return word.lower() in _FIRST_WORDS if underscore else first in _WORDS or word in _WORDS


def c_name(base: str, taken: set[str]) -> str:
    """A C identifier like `base` that is neither reserved nor in `taken`; it is added to `taken`."""
    plain = re.sub(r"\W", "_", base, flags=re.ASCII).lstrip("_") or "x"
    if plain[0].isdigit():
        plain = f"x{plain}"
    return fresh_name(f"{plain}_" if is_reserved(plain) else plain, taken)
