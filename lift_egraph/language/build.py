"""Building programs in Python, in the manner of the thesis's listings.

>>> @program(sizes=dict(M=512, K=512, N=512))
... def mm(A: "[[f32]K]M", B: "[[f32]N]K"):
...     return map_(lambda row: map_(lambda col: reduce_(add, 0.0, map_(mul, zip_(row, col))), transpose(B)), A)
>>> print(type_of(mm.body))
[[f32]N]M

A pattern called without its last arguments is a function, and ``@`` composes functions:

>>> chunks = map_(map_(lambda x: x + 1.0)) @ split(4)
>>> print(type_of(chunks(Input("xs", array(F32, 12)))))
[[f32]4]3

Functions of two or more parameters take tuples apart. Binders are named after the parameters and
typed at once, so a type error is raised where the term is built:

>>> map_(lambda a, b: a * b, Input("xs", array(F32, 12)))
Traceback (most recent call last):
    ...
lift_egraph.errors.TypeProblem: map: the function takes (a, b), but is given f32

Source: 000 §2.4.2; the stencil patterns in two and three dimensions are the compositions of Lift's stencil work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf
from typing import Any

from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name
from lift_egraph.language.check import array_type, codomain, domain, type_of
from lift_egraph.language.functions import (
    RESERVED,
    Abstraction,
    Bind,
    Identity,
    PartialPattern,
    Section,
    Stored,
    Vectorized,
    apply,
    as_expr,
    checked,
    is_function,
    literal,
    opened,
    scope,
    to_function,
)
from lift_egraph.language.index_functions import (
    BoundaryLike,
    boundary,
    clamp,
    constant,
    index_function,
    mirror,
    reverse,
    stride,
    wrap,
)
from lift_egraph.language.ir import Input
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.programs import program
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.signature import Parameter
from lift_egraph.language.sizes import substitute_nats
from lift_egraph.language.tuples import component
from lift_egraph.language.types import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    U8,
    U32,
    Array,
    DataType,
    Pair,
    Scalar,
    array,
    leaves,
    scalar_of,
    size_names,
    tuple_components,
)

__all__ = [
    "BOOL", "F16", "F32", "F64", "I32", "I64", "U8", "U32", "Input", "abs_", "acos", "add", "and_", "array",
    "as_scalar", "as_vector", "asin", "at", "atan", "atan2", "bit_and", "bit_not", "bit_or", "bit_xor", "ceil", "clamp",
    "concat", "constant", "cos", "cosh", "div", "dot", "equal", "erf", "exp", "fill", "floor", "gather", "ge",
    "generate", "get", "gt", "id_", "inf", "iterate", "join", "le", "let", "literal", "log", "look_back", "lookup",
    "lt", "map2d", "map3d", "map_", "map_glb", "map_lcl", "map_seq", "map_wrg", "max_", "min_", "mirror", "mod", "mul",
    "neg", "not_", "not_equal", "or_", "pad", "pad2d", "pad3d", "pow_", "program", "reduce_", "reduce_by_index",
    "reduce_by_index_atomic", "reduce_by_index_glb", "reduce_by_index_seq", "reduce_range", "reduce_range_seq",
    "reduce_seq", "reduce_sub", "rest", "reverse", "rsqrt", "scan", "scan_exclusive", "scan_exclusive_seq", "scan_seq",
    "scatter", "select", "shift_left", "shift_right", "sin", "sinh", "slice_", "slide", "slide2d", "slide3d", "split",
    "sqrt", "stride", "sub", "tan", "tanh", "to_f16", "to_f32", "to_f64", "to_global", "to_i32", "to_i64", "to_local",
    "to_private", "to_u8", "to_u32", "transpose", "tuple_", "type_of", "vectorize", "wrap", "zip2d", "zip3d", "zip_",
]  # fmt: skip

MOST_WAYS = 24  # to give types to the numbers that a fold begins with

# --- scalar operations: applied to terms, or functions by themselves ---------------------------------

add, sub, mul, div, mod, neg, abs_ = (Section(op) for op in ("add", "sub", "mul", "div", "mod", "neg", "abs"))
min_, max_, sqrt, rsqrt, exp, log = (Section(op) for op in ("min", "max", "sqrt", "rsqrt", "exp", "log"))
sin, cos, tan, tanh, floor, ceil = (Section(op) for op in ("sin", "cos", "tan", "tanh", "floor", "ceil"))
asin, acos, atan, atan2 = (Section(op) for op in ("asin", "acos", "atan", "atan2"))
sinh, cosh, erf = (Section(op) for op in ("sinh", "cosh", "erf"))
pow_, lt, le, gt, ge, equal = (Section(op) for op in ("pow", "lt", "le", "gt", "ge", "eq"))
not_equal, and_, or_, not_, select = (Section(op) for op in ("ne", "and", "or", "not", "select"))
to_f32, to_f64, to_i32, to_i64 = (Section(op) for op in ("to_f32", "to_f64", "to_i32", "to_i64"))
to_u32, to_u8, to_f16, dot = (Section(op) for op in ("to_u32", "to_u8", "to_f16", "dot"))
bit_and, bit_or, bit_xor, bit_not = (Section(op) for op in ("bit_and", "bit_or", "bit_xor", "bit_not"))
shift_left, shift_right = Section("shift_left"), Section("shift_right")
id_ = Identity()


# --- patterns -------------------------------------------------------------------------------------------


def _map(function: Any, xs: Any) -> ir.Expr:
    xs = as_expr(xs)
    return ir.Map(to_function(function, array_type(xs, "map").element, "map"), xs)


def _map_level(kind: str, name: str) -> Callable[..., ir.Expr]:
    def make(dimension: int, function: Any, xs: Any) -> ir.Expr:
        xs = as_expr(xs)
        where = name if kind == "seq" else f"{name}({dimension})"
        if dimension not in (0, 1, 2):
            raise TypeProblem(f"{name} takes a dimension 0, 1 or 2, not {dimension}")
        return ir.MapLevel(ir.Level(kind, dimension), to_function(function, array_type(xs, where).element, where), xs)

    return make


def _fold(node: Any) -> Callable[..., ir.Expr]:
    """Where the accumulator has another type than the elements, one comes after the other."""
    where = node.signature.name
    other = ir.LOOP_OF.get(node) or node

    def make(operator: Any, initial: Any, xs: Any) -> ir.Expr:
        xs = as_expr(xs)
        element = array_type(xs, where).element
        start, function = _begun(operator, initial, element, where)
        made = node if type_of(start) == element else other
        return made(function, start, xs)

    return make


def _begun(operator: Any, initial: Any, element: DataType, where: str) -> tuple[ir.Expr, ir.Function]:
    """What a fold begins with, and its operator: whole numbers have the types that the operator needs, as few as do
    others than i32. Those of a named operation are elements.
    """
    count = 0 if isinstance(operator, Section) else _whole_numbers(initial)
    own = [scalar_of(t) for _, _, t in leaves(element)]
    types = [I32, *dict.fromkeys(t for t in (*own, F32) if t not in (I32, BOOL))]
    ways = sorted(product(types, repeat=count), key=lambda way: sum(t != I32 for t in way)) if count <= 4 else []
    for way in ways[:MOST_WAYS] if count else []:
        with suppress(TypeProblem):
            start = as_expr(_with_types(initial, iter(way)), element)
            function = to_function(operator, Pair(type_of(start), element), where)
            if codomain(function) == type_of(start):
                return start, function
    start = as_expr(initial, element)
    return start, to_function(operator, Pair(type_of(start), element), where)


def _whole_numbers(value: Any) -> int:
    """How many numbers without a point or a type are in a tuple, or a number by itself."""
    if isinstance(value, tuple):
        return sum(map(_whole_numbers, value))
    return int(isinstance(value, int) and not isinstance(value, bool))


def _with_types(value: Any, types: Iterator[Scalar]) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_types(v, types) for v in value)
    return literal(value, next(types)) if _whole_numbers(value) else value


def _fold_range(node: Any) -> Callable[..., ir.Expr]:
    where = node.signature.name

    def make(operator: Any, initial: Any, low: Any, high: Any, xs: Any) -> ir.Expr:
        xs = as_expr(xs)
        element = array_type(xs, where).element
        start, folded = _begun(operator, initial, element, where)
        made = node if type_of(start) == element else ir.ReduceRangeSeq
        return made(folded, start, as_expr(low, I32), as_expr(high, I32), xs)

    return make


def _indices(places: Any) -> ir.Expr:
    """Places in an array; bytes are places too."""
    t = type_of(places := as_expr(places))
    return _map(Section("to_i32"), places) if isinstance(t, Array) and t.element == U8 else places


def _reduce_by_index(operator: Any, initial: Any, indices: Any, xs: Any) -> ir.Expr:
    start, xs = as_expr(initial), as_expr(xs)
    bin_, element = (array_type(a, "reduceByIndex").element for a in (start, xs))
    return ir.ReduceByIndex(to_function(operator, Pair(bin_, element), "reduceByIndex"), start, _indices(indices), xs)


def _loop_by_index(node: type[ir.IndexLoop]) -> Callable[..., ir.Expr]:
    def make(place: Any, operator: Any, initial: Any, xs: Any) -> ir.Expr:
        start, xs, name = as_expr(initial), as_expr(xs), node.signature.name
        bin_, element = (array_type(a, name).element for a in (start, xs))
        return node(to_function(place, element, name), to_function(operator, Pair(bin_, element), name), start, xs)

    return make


def _look_back(width: Nat, first: Any, operator: Any, initial: Any, second: Any, xs: Any) -> ir.Expr:
    xs = as_expr(xs)
    before = to_function(first, array_type(xs, "lookBack").element, "lookBack")
    made = codomain(before)
    if not isinstance(made, Pair):
        raise TypeProblem(f"the first function of lookBack gives a total and what is kept, not {made}")
    total, kept = made.first, made.second
    combined = to_function(operator, Pair(total, total), "lookBack")
    after = to_function(second, Pair(total, kept), "lookBack")
    return ir.LookBack(width, before, combined, as_expr(initial, total), after, xs)


def _reduce_sub(items: Nat, operator: Any, initial: Any, xs: Any) -> ir.Expr:
    xs = as_expr(xs)
    element = array_type(xs, "reduceSub").element
    combined = to_function(operator, Pair(element, element), "reduceSub")
    return ir.ReduceSub(items, combined, as_expr(initial, element), xs)


def _pad(left: Nat, right: Nat, edge: BoundaryLike, xs: Any) -> ir.Expr:
    xs = as_expr(xs)
    depth, element = 0, array_type(xs, "pad").element
    while isinstance(element, Array) and _is_number(edge):
        depth, element = depth + 1, element.element
    if depth == 0 and isinstance(element, Pair) and isinstance(edge, constant):
        return _pad_pairs(left, right, edge.value, xs)
    if depth == 0:
        return ir.Pad(left, right, boundary(edge, element), xs)
    # beside numbers only stands a number: the dimension goes inside of all others, and back
    for outer in range(depth):
        xs = _inside(outer, transpose)(xs)
    xs = _inside(depth, pad(left, right, edge))(xs)
    for outer in reversed(range(depth)):
        xs = _inside(outer, transpose)(xs)
    return xs


def _pad_pairs(left: Nat, right: Nat, value: Any, xs: ir.Expr) -> ir.Expr:
    """Each component of an array of tuples padded by itself: constants are numbers."""
    if not is_pure(xs):
        return let(xs, lambda array: _pad_pairs(left, right, value, array))
    match value:
        case ir.MakePair(first=first, second=second):
            values = first, second
        case (first, *others) if others:
            values = first, others[0] if len(others) == 1 else tuple(others)
        case _:
            values = value, value
    parts = (xs.first, xs.second) if isinstance(xs, ir.Zip) else (map_(partial(ir.Component, n), xs) for n in (0, 1))
    return zip_(*(pad(left, right, constant(v), part) for v, part in zip(values, parts, strict=True)))


def _is_number(edge: BoundaryLike) -> bool:
    return isinstance(edge, constant) or (isinstance(edge, ir.Boundary) and edge.kind == "constant")


def _iterate(times: int | Nat, function: Any, xs: Any) -> ir.Expr:
    """A step that keeps the length is one of arrays of this length, which may so meet others of it.

    Several arrays of one length are one of tuples; of what else is no array, the steps are those of a loop.
    """
    xs = as_expr(xs)
    t = type_of(xs)
    if isinstance(t, Pair) and _of_one_length(t):
        state = _iterate(times, Abstraction(Bind("state"), partial(_zipped_step, function, t)), _at_end(_zipped, xs))
        return apply(Abstraction(Bind("state"), partial(_unzipped, t)), state)
    if isinstance(t, Scalar | Pair):
        return xs if times == 0 else _looped(nat(times), function, xs)
    number, count = (1, times) if isinstance(times, Nat) else (times, None)
    return replace(_iterated(0, function, xs), times=number, count=count)


def _of_one_length(t: DataType) -> bool:
    lengths = {part.size if isinstance(part, Array) else None for part in tuple_components(t)}
    return len(lengths) == 1 and None not in lengths


def _zipped_step(function: Any, t: DataType, state: ir.Expr) -> ir.Expr:
    step = _kept(function, t)
    return checked(ir.Apply(ir.Lambda(step.binder, _at_end(_zipped, step.body)), _unzipped(t, state)))


def _at_end(made: Callable[[ir.Expr], ir.Expr], value: ir.Expr) -> ir.Expr:
    """What is made of a value, behind the lets that it has around it."""
    if isinstance(value, ir.Apply) and isinstance(value.function, ir.Lambda):
        return ir.Apply(replace(value.function, body=_at_end(made, value.function.body)), value.argument)
    if isinstance(value, ir.MakePair) or is_pure(value):
        return made(value)
    return apply(Abstraction(Bind("state"), made), value)


def _zipped(arrays: ir.Expr) -> ir.Expr:
    if not isinstance(type_of(arrays), Pair):
        return arrays
    return ir.Zip(component(0, arrays), _zipped(component(1, arrays)))


def _unzipped(t: DataType, array: ir.Expr) -> ir.Expr:
    """An array of tuples as a tuple of arrays."""
    return tuple_(*(_map(get(place), array) for place in range(len(tuple_components(t)))))


def _kept(function: Any, t: DataType) -> ir.Lambda:
    step = _step(function, t)
    if codomain(step) != t:
        raise TypeProblem(f"iterate: the function must keep the type, it turns {t} into {codomain(step)}")
    return step


def _looped(times: Nat, function: Any, start: ir.Expr) -> ir.Expr:
    step = _kept(function, type_of(start))
    taken = {*scope().names, *RESERVED, *(v.name for v in ir.bound_variables(step.binder))}
    counted = ir.PairBinder(step.binder, ir.Var(fresh_name("step", taken), I32))
    return ir.ReduceSeq(ir.Lambda(counted, step.body), start, generate(times, id_))


def _iterated(times: int, function: Any, xs: ir.Expr) -> ir.Iterate:
    t = array_type(xs, "iterate")
    declared = getattr(function.names, "type", None) if isinstance(function, Abstraction) else None
    known = scope().sizes | {v.name for v in t.size.variables}
    taken, named = set(known), new_size(declared, known)
    if named is None:
        body = _step(function, declared or t)
        if declared is not None or codomain(body) == t:
            return ir.Iterate(times, fresh_name("n", taken | _sizes_around(body)), body, xs)
    while True:
        size = named or fresh_name("n", taken)
        with opened(sizes=(size,)):
            body = _step(function, Array(nat(size), t.element))
        if codomain(body) == domain(body):
            body = substitute_nats(body, {size: t.size})
        if named or size not in _sizes_around(body):
            return ir.Iterate(times, size, body, xs)
        taken |= _sizes_around(body)


def _step(function: Any, argument: DataType) -> ir.Lambda:
    body = to_function(function, argument, "iterate")
    if not isinstance(body, ir.Lambda):
        raise TypeProblem("iterate takes a function on arrays, not a vectorised one")
    return body


def new_size(declared: DataType | None, known: frozenset[str]) -> str | None:
    """The ``n`` of ``fun (x: [t]n) => …``, unless it is a size already (then the length is fixed)."""
    if not isinstance(declared, Array) or len(declared.size.variables) != 1:
        return None
    (variable,) = declared.size.variables
    return variable.name if declared.size == nat(variable) and variable.name not in known else None


def _sizes_around(function: ir.Lambda) -> set[str]:
    """The sizes in the types of inputs and of outer variables that the function uses."""
    outer = set(ir.free_variables(function)) | {p for p in ir.subterms(function) if isinstance(p, Input)}
    return {name for item in outer for name in size_names(item.type)}


def _get(index: int, term: Any) -> ir.Expr:
    term = as_expr(term)
    count = len(tuple_components(type_of(term)))
    if count < 2:
        raise TypeProblem(f"get works on a tuple, got {type_of(term)}")
    if not 0 <= index < count:
        raise TypeProblem(f"get({index}) is outside a tuple of {count} components, {type_of(term)}")
    for _ in range(index):
        term = ir.Component(1, term)
    return ir.Component(0, term) if index < count - 1 else term


def _to_memory(space: str) -> Callable[[Any], Any]:
    return lambda what: Stored(space, what) if is_function(what) else ir.ToMemory(space, as_expr(what))


def _inside(depth: int, function: Any) -> Any:
    """A function on what is inside of some dimensions of an array."""
    return function if depth == 0 else map_(_inside(depth - 1, function))


def _pad_nd(dimensions: int, left: Nat, right: Nat, edge: BoundaryLike, array: Any) -> ir.Expr:
    for dimension in reversed(range(dimensions)):
        array = _inside(dimension, pad(left, right, edge))(array)
    return array


def _slide_nd(dimensions: int, size: Nat, step: Nat, array: Any) -> ir.Expr:
    if dimensions == 1:
        return slide(size, step, array)
    array = slide(size, step, map_(lambda part: _slide_nd(dimensions - 1, size, step, part), array))
    for depth in range(1, dimensions):  # the window's outermost dimension goes inside of all numbers of windows
        array = _inside(depth, transpose)(array)
    return array


_KINDS = {"nat": "size", "offset": "size", "width": "count", "indices": "index"}


def _pattern(node: type[ir.Expr], make: Callable[..., ir.Expr] | None = None) -> PartialPattern:
    """A pattern by its signature; `make` puts it together where arguments depend on each other."""
    kinds = ["function" if p.is_function else "value" if p.form else _KINDS.get(p.kind, p.kind) for p in _given(node)]
    called = tuple(p.name for p in _given(node))
    return PartialPattern(node.signature.name, tuple(kinds), make or _node(node), called=called)


def _given(node: type[ir.Expr]) -> list[Parameter]:
    return [p for p in node.signature.parameters if p.kind != "name"]


def _node(node: type[ir.Expr]) -> Callable[..., ir.Expr]:
    def make(*arguments: Any) -> ir.Expr:
        values = zip(_given(node), arguments, strict=True)
        return node(*(index_function(v) if p.kind == "indices" else as_expr(v) if p.form else v for p, v in values))

    return make


map_ = _pattern(ir.Map, _map)
reduce_ = _pattern(ir.Reduce, _fold(ir.Reduce))
scan = _pattern(ir.Scan, _fold(ir.Scan))
scan_exclusive = _pattern(ir.ScanExclusive, _fold(ir.ScanExclusive))
reduce_range = _pattern(ir.ReduceRange, _fold_range(ir.ReduceRange))
reduce_by_index = _pattern(ir.ReduceByIndex, _reduce_by_index)
split = _pattern(ir.Split)
join = _pattern(ir.Join)
slice_ = _pattern(ir.Slice)
concat = _pattern(ir.Concat)
transpose = _pattern(ir.Transpose)
gather = _pattern(ir.Gather)
scatter = _pattern(ir.Scatter)
slide = _pattern(ir.Slide)
pad = _pattern(ir.Pad, _pad)
iterate = _pattern(ir.Iterate, _iterate)
get = PartialPattern("get", ("count", "value"), _get)
rest = PartialPattern("rest", ("value",), lambda t: ir.Component(1, as_expr(t)))
at = _pattern(ir.At)
generate = _pattern(ir.Generate, lambda size, f: ir.Generate(size, to_function(f, I32, "generate")))
fill = _pattern(ir.Fill)
lookup = _pattern(ir.Lookup, lambda indices, xs: ir.Lookup(_indices(indices), as_expr(xs)))
map_glb = PartialPattern("mapGlb", ("count", "function", "value"), _map_level("glb", "mapGlb"))
map_wrg = PartialPattern("mapWrg", ("count", "function", "value"), _map_level("wrg", "mapWrg"))
map_lcl = PartialPattern("mapLcl", ("count", "function", "value"), _map_level("lcl", "mapLcl"))
map_seq = PartialPattern("mapSeq", ("function", "value"), lambda f, xs: _map_level("seq", "mapSeq")(0, f, xs))
reduce_seq = _pattern(ir.ReduceSeq, _fold(ir.ReduceSeq))
scan_seq = _pattern(ir.ScanSeq, _fold(ir.ScanSeq))
scan_exclusive_seq = _pattern(ir.ScanExclusiveSeq, _fold(ir.ScanExclusiveSeq))
look_back = _pattern(ir.LookBack, _look_back)
reduce_sub = _pattern(ir.ReduceSub, _reduce_sub)
reduce_range_seq = _pattern(ir.ReduceRangeSeq, _fold_range(ir.ReduceRangeSeq))
reduce_by_index_seq = _pattern(ir.ReduceByIndexSeq, _loop_by_index(ir.ReduceByIndexSeq))
reduce_by_index_glb = _pattern(ir.ReduceByIndexGlb, _loop_by_index(ir.ReduceByIndexGlb))
reduce_by_index_atomic = _pattern(ir.ReduceByIndexAtomic, _loop_by_index(ir.ReduceByIndexAtomic))
to_global = PartialPattern("toGlobal", ("any",), _to_memory("global"))
to_stream = PartialPattern("toStream", ("any",), _to_memory("stream"))
to_local = PartialPattern("toLocal", ("any",), _to_memory("local"))
to_local_once, to_local_ahead, to_local_twice = (
    PartialPattern(ir.memory_name(space), ("any",), _to_memory(space)) for space in ir.TILE_SPACES
)
to_private = PartialPattern("toPrivate", ("any",), _to_memory("private"))
as_vector = _pattern(ir.AsVector)
as_scalar = _pattern(ir.AsScalar)
vectorize = PartialPattern("vectorize", ("count", "function"), Vectorized)
map2d, map3d = (
    PartialPattern(f"map{d}d", ("function", "value"), lambda f, array, d=d: _inside(d, f)(array)) for d in (2, 3)
)
pad2d, pad3d = (PartialPattern(f"pad{d}d", ("size", "size", "boundary", "value"), partial(_pad_nd, d)) for d in (2, 3))
slide2d, slide3d = (PartialPattern(f"slide{d}d", ("size", "size", "value"), partial(_slide_nd, d)) for d in (2, 3))


def zip_(first: Any, second: Any, *others: Any) -> ir.Expr:
    """Two or more arrays of one length as an array of (right-nested) tuples."""
    return _zip_nd(1, first, second, *others)


def zip2d(first: Any, second: Any, *others: Any) -> ir.Expr:
    """Two or more arrays of two dimensions as one of (right-nested) tuples."""
    return _zip_nd(2, first, second, *others)


def zip3d(first: Any, second: Any, *others: Any) -> ir.Expr:
    """Two or more arrays of three dimensions as one of (right-nested) tuples."""
    return _zip_nd(3, first, second, *others)


def _zip_nd(dimensions: int, first: Any, second: Any, *others: Any) -> ir.Expr:
    tail = _zip_nd(dimensions, second, *others) if others else second
    array = checked(ir.Zip(as_expr(first), as_expr(tail)))
    for depth in range(1, dimensions):
        array = _inside(depth, lambda pair: zip_(ir.Component(0, pair), ir.Component(1, pair)))(array)
    return array


ZIPS = {"zip": zip_, "zip2d": zip2d, "zip3d": zip3d}


def tuple_(first: Any, second: Any, *others: Any) -> ir.Expr:
    """Two or more values together, nested to the right."""
    return checked(as_expr((first, second, *others)))


def let(value: Any, body: Any) -> ir.Expr:
    """``let x = value in body(x)``: the value is computed once.

    >>> print(type_of(let(literal(2.0), lambda x: x * x)))
    f32
    """
    value = as_expr(value)
    return checked(ir.Apply(to_function(body, type_of(value), "let"), value))


BUILTINS: dict[str, Any] = {
    **{
        p.name: p
        for p in (
            map_, map2d, map3d, reduce_, scan, scan_exclusive, scan_exclusive_seq, scan_seq, look_back, reduce_sub,
            reduce_range, reduce_by_index, reduce_by_index_seq, reduce_by_index_glb, reduce_by_index_atomic, split,
            join, slice_, concat, transpose, gather, scatter, slide, slide2d, slide3d, pad, pad2d, pad3d, iterate, get,
            rest, at, generate, fill, lookup, map_glb, map_wrg, map_lcl, map_seq, reduce_seq, reduce_range_seq,
            to_global, to_stream, to_local, to_local_once, to_local_ahead, to_local_twice, to_private, as_vector,
            as_scalar, vectorize,
        )
    },
    **ZIPS,
    "id": id_,
    **{op: Section(op) for op in OPERATIONS},
}  # fmt: skip
