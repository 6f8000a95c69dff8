"""What other languages write, and what stands for it here: hints of messages."""

from __future__ import annotations

_SELECTION, _POWER = "a choice between values is if c then a else b", "a power is pow(a, b)"
NAMED = "a value is named by let x = e in, and compared by a == b"
FUNCTION = "a function is fun x => …"
_LENGTH, _INDICES = "the length of an array is a size, a value as any other", "indices are generate(N, fun i => i)"
_PART, _FOLD = "a part of an array is slice(start, length, xs)", "a fold is reduce(f, z, xs), also of several types"
_PAIRS, _EVERYWHERE = "it is map(f, zip(xs, ys))", "one value everywhere is fill(N, x)"
_BEST = "it is a reduce of zip(xs, generate(N, fun i => i)), whose operator compares the first components"
_DOT = "a sum of products is reduce(add, 0, map(mul, zip(xs, ys)))"
_PRODUCT = "it is map(fun row => map(fun col => reduce(add, 0, map(mul, zip(row, col))), transpose(B)), A)"
_CONCAT, _INFINITY = "it is concat(xs, ys)", "infinity is inf, of f64 inf64"
_RANDOM = "random numbers are inputs, or a hash of places, bit_xor(shift_right(a, 16), a) * 277803737u32"
_LETTER = "a text is an input of bytes, [u8]N, in which a is 97"
_PARTS = "windows of an array are slide(size, step, xs)"
_LOOPS = "map, reduce and iterate repeat things; a step of iterate that has nothing to do gives what it got"
_COUNTS = "what falls into the same place is counted by reduceByIndex(add, fill(bins, 0), places, ones)"
ELSEWHERE = {
    "?": _SELECTION, "^": f"{_POWER}, and of bits bit_xor(a, b)", "**": _POWER,
    "&": "it is a && b, and of bits bit_and(a, b)", "|": "it is a || b, and of bits bit_or(a, b)", "'": _LETTER,
    '"': _LETTER, "~": "of bits it is bit_not(a)", "<<": "it is shift_left(a, b)",
    ">>": "it is shift_right(a, b)", ";": "what a let binds ends with 'in'",
    "lambda": FUNCTION, "->": FUNCTION, "\\": FUNCTION, "or": "it is written a || b", "and": "it is written a && b",
    "not": "it is written !a, or not(a)", "#": "a comment begins with --", ":=": NAMED, "×": "a product is a * b",
    "//": "a comment begins with --, and the division of whole numbers is a / b", "elif": "it is else if",
    "for": _LOOPS, "while": _LOOPS, "<>": "it is a != b", "|>": "f of x is f(x)", "$": "f of x is f(x)",
    "{": "expressions stand in ( and )", "@": f"of matrices {_PRODUCT}", "return": "the last expression is the result",
}  # fmt: skip
# Names of other languages, which programs may give to values of theirs.
UNKNOWN = {
    "sum": "a sum is reduce(add, 0, xs)", "product": "a product is reduce(mul, 1, xs)",
    "prod": "a product is reduce(mul, 1, xs)", "mean": "a mean is reduce(add, 0, xs) / N",
    "maximum": "it is reduce(max, -inf, xs)", "minimum": "it is reduce(min, inf, xs)", "argmax": _BEST, "argmin": _BEST,
    "any": "it is reduce(or, false, xs)", "all": "it is reduce(and, true, xs)", "cumsum": "it is scan(add, 0, xs)",
    "cumprod": "it is scan(mul, 1, xs)", "fold": _FOLD, "foldl": _FOLD, "len": _LENGTH, "length": _LENGTH,
    "size": _LENGTH, "range": _INDICES, "iota": _INDICES, "arange": _INDICES, "zeros": _EVERYWHERE, "ones": _EVERYWHERE,
    "replicate": _EVERYWHERE, "repeat": _EVERYWHERE, "enumerate": "it is zip(xs, generate(N, fun i => i))",
    "zipWith": _PAIRS, "zip_with": _PAIRS, "map2": _PAIRS, "take": _PART, "drop": _PART, "tail": _PART,
    "head": "an element is xs[0]", "last": "an element is xs[N - 1]", "reverse": "it is gather(reverse, xs)",
    "roll": "it is gather(i => (i + 1) % n, xs)", "rotate": "it is gather(i => (i + 1) % n, xs)",
    "flatten": "the rows one after the other are join(xss)", "window": _PARTS, "windows": _PARTS,
    "histogram": _COUNTS, "bincount": _COUNTS,
    "filter": "places for what is kept are counted by scanExclusive, and filled by reduceByIndex",
    "sort": "a sort is steps of min and max, of pairs of elements", "round": "the nearest number is floor(x + 0.5)",
    "clamp": "it is min(max(x, low), high)", "clip": "it is min(max(x, low), high)",
    "sign": "it is select(x > 0.0, 1.0, select(x < 0.0, -1.0, 0.0))", "square": "it is x * x", "pi": "it is 3.14159265",
    "exp2": "a power is pow(2.0, x)", "arctan2": "it is atan2(y, x)", "arctan": "it is atan(x)",
    "arcsin": "it is asin(x)", "arccos": "it is acos(x)", "erfc": "it is 1.0 - erf(x)",
    "trunc": "a cast cuts off: to_i32(x)", "fmod": "the rest of floats is x - floor(x / y) * y",
    "gcd": "steps of iterate take a % b", "cbrt": "a power is pow(x, 1.0 / 3.0)", "matmul": _PRODUCT,
    "matvec": "it is map(fun row => reduce(add, 0, map(mul, zip(row, x))), A)",
    "softmax": "a map of exp(x - m), divided by its sum", "log1p": "it is log(1.0 + x)", "expm1": "it is exp(x) - 1.0",
    "inner": _DOT, "log2": "it is log(x) / log(2.0)", "log10": "it is log(x) / log(10.0)",
    "hypot": "it is sqrt(a * a + b * b)", "fma": "it is a * b + c", "isnan": "it is x != x", "nan": "it is 0.0 / 0.0",
    "sigmoid": "it is 1.0 / (1.0 + exp(-x))", "relu": "it is max(x, 0.0)",
    "int": "a cast is to_i32(x)", "float": "a cast is to_f32(x)", "double": "a cast is to_f64(x)",
    "to_int": "a cast is to_i32(x)", "to_float": "a cast is to_f32(x)", "True": "it is true", "False": "it is false",
    "inf32": _INFINITY, "infinity": _INFINITY, "INFINITY": _INFINITY, "random": _RANDOM, "rand": _RANDOM,
    "xor": "it is a != b, and of bits bit_xor(a, b)", "concatenate": _CONCAT, "append": _CONCAT,
    "outer": "it is map(fun a => map(fun b => a * b, ys), xs)",
    "norm": "it is sqrt(reduce(add, 0, map(fun x => x * x, xs)))", "absolute": "it is abs(x)",
    "power": "it is pow(a, b)", "unzip": "a component of each is map(get(0), xs)",
}  # fmt: skip
# Types of other languages.
TYPES = {
    "float": "f32", "double": "f64", "half": "f16", "int": "i32", "long": "i64", "i8": "i32", "i16": "i32",
    "short": "i32", "char": "u8", "byte": "u8", "uint8": "u8", "uint": "u32", "u16": "u32", "u64": "i64",
}  # fmt: skip
# Borders of other languages.
BORDERS = {
    "edge": "clamp", "nearest": "clamp", "replicate": "clamp", "repeat": "clamp", "symmetric": "mirror",
    "reflect": "mirror, which begins with the last element itself", "circular": "wrap", "periodic": "wrap",
    "zero": "constant(0)", "zeros": "constant(0)",
}  # fmt: skip
