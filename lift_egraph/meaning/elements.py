"""Single elements of what a term computes, without the rest: so large programs can be sampled."""

from __future__ import annotations

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, in_lets, names_in, with_parts
from lift_egraph.language.check import apply_index, array_type, inner_size, size_of, type_of
from lift_egraph.language.index_arrays import boundary, number
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import I32

FEW = 64  # elements of an array that are computed one by one in the place of all


def element(array: ir.Expr, index: int) -> ir.Expr:
    """A term for one element of an array of concrete sizes; it computes no more of the array than it has to.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program, print_term
    >>> body = parse_program("program p(xs: [f32]64) = join(map(map(abs), split(8, xs)))").body
    >>> print(print_term(element(body, 10)))
    let x = at(1, split(8, xs)) in let x1 = at(2, x) in abs(x1)
    """
    match array:
        case ir.Map(function=f, array=xs) | ir.MapLevel(function=f, array=xs):
            return _applied(f, element(xs, index))
        case ir.Apply(function=ir.Lambda(binder=p, body=b), argument=x):
            read = element(b, index)
            found = _in_elements(p, x, read) if isinstance(p, ir.Var) and not is_pure(x) else None
            return ir.Apply(ir.Lambda(p, read), x) if found is None else found
        case ir.Join(array=xss):
            length = number(inner_size(xss), "join")
            return element(element(xss, index // length), index % length)
        case ir.Slice(start=start, array=xs):
            return element(xs, number(start, "slice") + index)
        case ir.Concat(first=xs, second=ys):
            length = number(size_of(xs), "concat")
            return element(xs, index) if index < length else element(ys, index - length)
        case ir.Transpose(array=xss):
            return _column(xss, index)
        case ir.At(index=chunk, array=ir.Split(chunk=n, array=xs)):
            return element(xs, number(chunk, "at") * number(n, "split") + index)
        case ir.At(index=window, array=ir.Slide(step=step, array=xs)):
            return element(xs, number(window, "at") * number(step, "slide") + index)
        case ir.Pad(left=left, array=xs) if 0 <= index - number(left, "pad") < number(size_of(xs), "pad"):
            return element(xs, index - number(left, "pad"))
        case ir.Pad(left=left, boundary=ir.Boundary(kind="clamp" | "mirror" | "wrap" as kind), array=xs):
            source = boundary(kind, np.array(index - number(left, "pad")), number(size_of(xs), "pad"))
            return element(xs, int(source))
        case ir.Gather(indices=indices, array=xs):
            return element(xs, number(nat(apply_index(indices, index, size_of(xs))), "gather"))
        case ir.AsScalar(array=ir.AsVector(array=xs)):
            return element(xs, index)
        case ir.AsScalar(
            array=ir.Map(function=ir.Vectorize(function=f), array=xs)
            | ir.MapLevel(function=ir.Vectorize(function=f), array=xs)
        ):  # each lane is computed by the function itself
            return _applied(f, element(ir.AsScalar(xs), index))
        case ir.AsScalar(array=ir.Zip(first=a, second=b)):
            return ir.MakePair(element(ir.AsScalar(a), index), element(ir.AsScalar(b), index))
        case ir.Zip(first=a, second=b):
            return ir.MakePair(element(a, index), element(b, index))
        case ir.ToMemory(value=xs):
            return element(xs, index)
        case ir.Generate(function=f):
            return _applied(f, ir.Literal(index, I32))
        case ir.Fill(value=x):
            return x
        case ir.Component(index=side, pair=ir.MakePair(first=a, second=b)):
            return element((a, b)[side], index)
    return ir.At(nat(index), array)


def _in_elements(v: ir.Var, array: ir.Expr, body: ir.Expr) -> ir.Expr | None:
    """A let of an array by the few elements of it that its body reads, if it reads no more and these need not all."""
    places = _places(v, body)
    if places is None or not 0 < len(places) <= FEW:
        return None
    made = {i: element(array, i) for i in sorted(places)}
    if any(isinstance(part, ir.At) and part.array == array for part in made.values()):
        return None
    taken = names_in(body) | names_in(array)
    names = {i: ir.Var(fresh_name(v.name, taken), type_of(part)) for i, part in made.items()}
    read = with_parts(body, {ir.At(nat(i), v): name for i, name in names.items()})
    return in_lets([(names[i], part) for i, part in made.items()], read)


def _places(v: ir.Var, term: ir.Part) -> set[int] | None:
    """The constant places at which a term reads an array; None if it reads it in another way, too."""
    if v not in ir.free_variables(term):
        return set()
    match term:
        case ir.At(index=i, array=array) if array == v:
            at = nat(i).constant
            return None if at is None else {at}
    found: set[int] = set()
    for part in ir.parts(term):
        inside = None if part == v else _places(v, part)
        if inside is None:
            return None
        found |= inside
    return found


def _applied(f: ir.Function, x: ir.Expr) -> ir.Expr:
    match f:
        case ir.Lambda(binder=ir.Var() as v, body=ir.At(index=i, array=array)) if array == v:
            return element(x, number(i, "at"))
        case ir.Lambda(binder=ir.Var() as v, body=body) if body == v:
            return x
    return ir.Apply(f, x)


def _column(xss: ir.Expr, index: int) -> ir.Expr:
    """The elements with one index of the rows of a matrix."""
    match xss:
        case ir.Transpose(array=inner):
            return element(inner, index)
        case ir.Map(function=ir.Lambda(binder=p, body=b), array=xs):
            return ir.Map(ir.Lambda(p, element(b, index)), xs)
        case ir.MapLevel(level=level, function=ir.Lambda(binder=p, body=b), array=xs):
            return ir.MapLevel(level, ir.Lambda(p, element(b, index)), xs)
    row = ir.Var("row", array_type(xss, "transpose").element)
    return ir.Map(ir.Lambda(row, ir.At(nat(index), row)), xss)
