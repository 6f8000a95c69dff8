"""Loops over places as loops over elements: ``generate(N, fun i => 2.0 * xs[i])`` as ``map(fun x => 2.0 * x, xs)``.

What is looked up at the place of a loop is an element of an array, or of a window of neighbours; of arrays of arrays
the axis that the loop goes along may be any. Then maps, zips, slides and transpositions say what a place only computes,
and rules and plans see products of matrices, sums of columns and stencils in what is written by indices.

Source: Feautrier, "Dataflow analysis of array and scalar references", 1991 (affine places of loops).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeVar

from lift_egraph.language import build, ir
from lift_egraph.language.binders import fresh_name, names_in, substitute, unique_names, with_parts
from lift_egraph.language.check import element_type, size_of, type_of
from lift_egraph.language.computed_places import Affine, Bounds, Place, affine, computed_place, difference, looked_up_in
from lift_egraph.language.guarded_places import choices, guarded, is_about_places, with_guards_inside, without_border
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import Nat, is_at_least, nat
from lift_egraph.language.types import I32, Array

T = TypeVar("T", bound=ir.Part)
MOST_TURNS = 2  # around an array
MOST_OUTSIDE = 1 << 16  # places before an array, or behind it, that a loop reads


def with_elements(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program with a map for each `generate` that looks up elements at its places alone, and with folds and maps
    over elements instead of places.

    Parameters
    ----------
    sizes
        Values for sizes, beside those of the program: only loops of at least one step are changed, and of arrays only
        few elements outside are read.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> dot = "reduce(add, 0.0, generate(K, fun k => A[i][k] * B[k][j]))"
    >>> loops = f"generate(M, fun i => generate(N, fun j => {dot}))"
    >>> mm = f"program mm(A: [[f32]K]M, B: [[f32]N]K) where M = 4, N = 5, K = 6 = {loops}"
    >>> print(print_term(with_elements(parse_program(mm)).body))
    map(fun a1 => map(fun b1 => reduce(add, 0.0, map(mul, zip(a1, b1))), transpose(B)), A)
    """
    if not any(isinstance(part, ir.Lookup) for part in ir.subterms(program.body)):
        return program
    named = _with_rows(unique_names(program.body))
    body = _Loops({**dict(program.sizes), **(sizes or {})}, names_in(named)).of(named)
    return program if body is named else replace(program, body=body)


@dataclass(frozen=True)
class _Read:
    """Where a loop reads an array: along which axis, each ``step`` places, and what it takes for elements outside,
    the nearest inside if it is no number, or those from the other end where it `wraps`.
    """

    array: ir.Expr
    axis: int
    step: int
    border: ir.Literal | None = None
    wraps: bool = False

    @property
    def along(self) -> ir.Expr:
        """The array with the axis before the others."""
        return _to_front(self.array, self.axis)


@dataclass
class _Loops:
    """Terms with their loops over places as loops over elements, for some sizes."""

    sizes: Mapping[str, int]
    taken: set[str]

    def of(self, term: T) -> T:
        """A term whose binders have names of their own, from the outermost loop to the innermost."""
        made = self._loop(term) if isinstance(term, ir.Expr) else None
        return ir.map_parts(term if made is None else made, self.of)  # pyright: ignore[reportReturnType]

    def _loop(self, term: ir.Expr) -> ir.Expr | None:
        match term:
            case ir.Generate(size=n, function=ir.Lambda(binder=ir.Var() as i, body=body)):
                found = self._elements(n, i, body)
                return found and _map_of(found)
            case ir.Map(function=ir.Lambda(binder=ir.Var() as i, body=body), array=xs) if n := _places(xs):
                found = self._elements(n, i, body)
                return found and _map_of(found)
            case ir.ReduceSeq(
                operator=ir.Lambda(binder=ir.PairBinder(first=a, second=ir.Var() as i), body=body), array=xs
            ) if n := _places(xs):
                found = self._elements(n, i, body, ir.bound_variables(a))
                return found and replace(
                    term, operator=ir.Lambda(ir.PairBinder(a, found[0]), found[1]), array=found[2]
                )
        return None

    def _elements(
        self, n: Nat, i: ir.Var, body: ir.Expr, beside: tuple[ir.Var, ...] = ()
    ) -> tuple[ir.Binder, ir.Expr, ir.Expr] | None:
        """The parameter, the body and the array of a loop over what is read at the places of another one.

        Parameters
        ----------
        beside
            What the loop binds beside the place: its accumulator.
        """
        if not self._has_steps(n):
            return None
        body = with_guards_inside(_read_across(body, i))
        bounds: dict[ir.Var, Nat | None] = dict.fromkeys(beside)
        bounds.update((v, steps if self._has_steps(steps) else None) for v, steps in _bounds(body))
        bounds[i] = n
        reads: dict[_Read, tuple[Nat, Nat]] = {}
        for found in _reads(body, i, bounds):
            read, offset = found.read, found.offset
            first, last = offset.ends(bounds)
            low, high = reads.get(read, (first, last))
            first, last = (low if is_at_least(first, low) else first), (high if is_at_least(high, last) else last)
            if not (is_at_least(low, first) and is_at_least(last, high)):
                return None  # which is the first, or the last one, depends on sizes
            reads[read] = first, last
        names: dict[_Read, ir.Var] = {}
        arrays: list[tuple[ir.Binder, ir.Expr]] = []
        twins = _padded_as_well(reads, n)
        for read, (first, last) in reads.items():
            if read in twins:
                continue
            array = self._windows(read, n, first, last)
            if array is None:
                return None
            of = read.array.name if isinstance(read.array, ir.Var | ir.Input) else "x"
            names[read] = ir.Var(fresh_name(of.lower(), self.taken), element_type(array))
            arrays.append((names[read], array))
        known = {read: (names[twin], reads[twin]) for read in reads if (twin := twins.get(read, read)) in names}
        made = _replaced(body, i, bounds, known)
        if not reads or any(i in ir.free_variables(p.indices) for p in ir.subterms(made) if isinstance(p, ir.Lookup)):
            return None
        if i in ir.free_variables(made):
            index = ir.Var(fresh_name("i", self.taken), I32)
            arrays.append((i, ir.Generate(n, ir.Lambda(index, index))))
        *others, (binder, array) = arrays
        for p, xs in reversed(others):
            binder, array = ir.PairBinder(p, binder), ir.Zip(xs, array)
        return binder, made, array

    def _windows(self, read: _Read, n: Nat, first: Nat, last: Nat) -> ir.Expr | None:
        """The windows that a loop reads of an array at its places, or the elements if each is of one; None where it is
        not known how many they are.
        """
        array = read.along
        m, end = size_of(array), (n - 1) * read.step + last + 1
        left, right = (nat(0) if is_at_least(a, b) else b - a for a, b in ((first, nat(0)), (m, end)))
        if not (self._is_few(left) and self._is_few(right)):
            return None
        if read.wraps and not all(is_at_least(nat(m.substitute(self.sizes)), amount) for amount in (left, right)):
            return None
        if left != nat(0) or right != nat(0):
            outside = "wrap" if read.wraps else "clamp" if read.border is None else "constant"
            border = ir.Boundary(outside, read.border)
            array = build.pad(left, right, border, array)
            first, last, m, end = first + left, last + left, m + left + right, end + left
        if first != nat(0) or end != m:
            array = ir.Slice(first, end - first, array)
        if first == last and read.step == 1:
            return array
        windows = ir.Slide(last - first + 1, nat(read.step), array)
        if first != last:
            return windows
        window = ir.Var("w", element_type(windows))
        return ir.Map(ir.Lambda(window, ir.At(nat(0), window)), windows)

    def _is_few(self, places: Nat) -> bool:
        """Whether an array may be padded by so many elements, of which some sizes may have none, but not these."""
        value = places.substitute(self.sizes).constant
        return places == nat(0) or (value is not None and 0 < value <= MOST_OUTSIDE)

    def _has_steps(self, n: Nat | None) -> bool:
        return n is not None and (n.substitute(self.sizes).constant or 0) >= 1


def _with_rows(term: T) -> T:
    """The term with rows of arrays and places, as in ``let row = xss[i] in b`` and ``let j = i + 1 in b``, in the place
    of their names.
    """
    term = ir.map_parts(term, _with_rows)
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        values = dict(_given(term.function.binder, term.argument))
        if set(values) == set(ir.bound_variables(term.function.binder)) and all(map(_is_short, values.values())):
            return substitute(term.function.body, values)
    return term


def _given(binder: ir.Binder, value: ir.Expr) -> Iterator[tuple[ir.Var, ir.Expr]]:
    if isinstance(binder, ir.Var):
        yield binder, value
    elif isinstance(value, ir.MakePair):
        yield from _given(binder.first, value.first)
        yield from _given(binder.second, value.second)


def _is_short(value: ir.Expr) -> bool:
    """Whether a value is a place, or a row that is read at such places."""
    if isinstance(type_of(value), Array):
        base, places = _chain(value)
        named = isinstance(base, ir.Var | ir.Input) and bool(places)
        return named and all(isinstance(place, Nat) or _is_short(place) for place in places)
    if isinstance(value, ir.Call) and value.op in ("min", "max", "mod", "select") and type_of(value) == I32:
        return all(map(_is_short, value.arguments))
    return (type_of(value) == I32 and affine(value) is not None) or is_about_places(value)


def _map_of(loop: tuple[ir.Binder, ir.Expr, ir.Expr]) -> ir.Expr:
    binder, body, xs = loop
    return xs if body == binder else ir.Map(ir.Lambda(binder, body), xs)


def _read_across(body: T, i: ir.Var) -> T:
    """The body of a loop, with ``map (λx. b) (transpose xss)[i]`` for ``map (λr. b[r[i]]) xss``, r not free in b."""
    body = ir.map_parts(body, lambda part: _read_across(part, i))
    match body:
        case ir.Map(function=ir.Lambda(binder=p, body=inner), array=xs):
            p, inner, xs = _columns(p, inner, xs, i)
            return body if xs is body.array else _map_of((p, inner, xs))  # pyright: ignore[reportReturnType]
        case ir.ReduceSeq(operator=ir.Lambda(binder=ir.PairBinder(first=a, second=p), body=inner), array=xs):
            p, inner, xs = _columns(p, inner, xs, i)
            step = ir.Lambda(ir.PairBinder(a, p), inner)
            return body if xs is body.array else replace(body, operator=step, array=xs)
    return body


def _columns(p: ir.Binder, body: ir.Expr, xs: ir.Expr, i: ir.Var) -> tuple[ir.Binder, ir.Expr, ir.Expr]:
    if isinstance(p, ir.PairBinder) and isinstance(xs, ir.Zip):
        first, body, left = _columns(p.first, body, xs.first, i)
        second, body, right = _columns(p.second, body, xs.second, i)
        if left is xs.first and right is xs.second:
            return p, body, xs
        return ir.PairBinder(first, second), body, ir.Zip(left, right)
    if not isinstance(p, ir.Var) or not isinstance(p.type, Array):
        return p, body, xs
    if not any(isinstance(part, ir.Var) and part == p for part in ir.subterms(body)):
        return p, body, xs
    one = ir.Var(p.name, p.type.element)
    made = with_parts(body, {looked_up_in(p, i): one})
    return (p, body, xs) if p in ir.free_variables(made) else (one, made, looked_up_in(ir.Transpose(xs), i))


def _places(xs: ir.Expr) -> Nat | None:
    """How many places an array counts, from 0 on, if it does no more."""
    match xs:
        case ir.Generate(size=n, function=ir.Lambda(binder=i, body=body)) if body == i:
            return n
    return None


def _bounds(body: ir.Expr) -> Iterator[tuple[ir.Var, Nat | None]]:
    """What is bound inside of a loop."""
    for part in ir.subterms(body):
        if isinstance(part, ir.Lambda):
            yield from ((v, None) for v in ir.bound_variables(part.binder))
    for part in ir.subterms(body):
        match part:
            case ir.Generate(size=n, function=ir.Lambda(binder=ir.Var() as k)):
                yield k, n
            case ir.Map(function=ir.Lambda(binder=ir.Var() as k), array=xs) if n := _places(xs):
                yield k, n
            case ir.ReduceSeq(
                operator=ir.Lambda(binder=ir.PairBinder(second=ir.Var() as k)), array=xs
            ) if n := _places(xs):
                yield k, n


def _chain(term: ir.Expr) -> tuple[ir.Expr, tuple[Place, ...]]:
    """An array, and at which place of each of its axes it is read, from outside."""
    match term:
        case ir.At(index=at, array=array):
            array, place = computed_place(term) or (array, at)
            base, places = _chain(array)
            return base, (*places, place)
    return term, ()


@dataclass(frozen=True)
class _Found:
    """An element that a loop reads: how far beside the loop's place, at which places of the other axes, and which
    conditions must hold; elsewhere it is the number that stands for elements outside.
    """

    read: _Read
    offset: Affine
    others: tuple[Place, ...]
    conditions: tuple[ir.Expr, ...] = ()

    @property
    def places(self) -> Iterator[ir.Expr]:
        """What is computed for it."""
        yield from (place for place in self.others if isinstance(place, ir.Expr))
        yield from self.conditions


def _read(term: ir.Part, i: ir.Var, bounds: Bounds) -> _Found | None:
    """Where a term reads an array at the place of a loop, also behind conditions that say that this is inside."""
    choice = guarded(term)
    if choice is None and (chosen := _of_choice(term)) is not None:
        found = _element(chosen[0], i, bounds)
        return None if found is None or chosen[1] in found.others else found
    found = _element(term if choice is None else choice.value, i, bounds)
    if choice is None or found is None or found.read.wraps or type_of(choice.value) != choice.otherwise.type:
        return found if choice is None else None
    read, length, n = found.read, size_of(found.read.along), bounds[i] or nat(1)
    (first, last), counts = found.offset.ends(bounds), dict(found.offset.counts)
    place = Affine(tuple(sorted({**counts, i: read.step}.items(), key=lambda item: item[0].name)), found.offset.start)
    inside = is_at_least(first, nat(0)), is_at_least(length, (n - 1) * read.step + last + 1)
    others = without_border(choice.conditions, place, length, inside, bounds)
    if others is None:
        return None
    return replace(found, read=replace(read, border=choice.otherwise), conditions=others)


def _element(term: ir.Part, i: ir.Var, bounds: Bounds) -> _Found | None:
    if not isinstance(term, ir.At):
        return None
    base, places = _chain(term)
    # what does not change in the loop is read before, and only the axes after that are turned
    outside = 0
    while outside < len(places) and not _variables(places[outside]) & {i, *bounds}:
        outside += 1
    array = reduce(looked_up_in, places[:outside], base)
    if ir.free_variables(base) & {i, *bounds} or not is_pure(base):
        return None
    rest = places[outside:]
    for axis, place in enumerate(rest):
        if isinstance(place, ir.Expr) and i in ir.free_variables(place):
            length = _length(array, axis)
            place, turned = _turned(place, i, length, bounds) or (place, False)
            wrapped = affine(place) if turned else _wrapped(place, length)
            sum_ = wrapped or affine(_within(place, length))
            step = 0 if sum_ is None else dict(sum_.counts).get(i, 0)
            if sum_ is None or step < 1:
                continue
            counts = tuple((v, times) for v, times in sum_.counts if v != i)
            if any(bounds.get(v) is None or times < 1 for v, times in counts):
                continue
            read = _Read(array, axis, step, wraps=wrapped is not None)
            return _Found(read, Affine(counts, sum_.start), (*rest[:axis], *rest[axis + 1 :]))
    return None


def _reads(body: ir.Part, i: ir.Var, bounds: Bounds) -> Iterator[_Found]:
    found = _read(body, i, bounds)
    if found is not None:
        yield found
    for part in found.places if found is not None else ir.parts(body):
        yield from _reads(part, i, bounds)


def _padded_as_well(reads: Mapping[_Read, tuple[Nat, Nat]], n: Nat) -> dict[_Read, _Read]:
    """Which reads of elements inside an array are as well of the same one with a border."""
    bordered = [read for read in reads if read.border is not None or read.wraps]
    twins = {replace(read, border=None, wraps=False): read for read in bordered}
    found: dict[_Read, _Read] = {}
    for read in set(twins) & set(reads):
        (first, last), (low, high) = reads[read], reads[twins[read]]
        inside = is_at_least(first, nat(0)) and is_at_least(size_of(read.along), (n - 1) * read.step + last + 1)
        if inside and is_at_least(first, low) and is_at_least(high, last):
            found[read] = twins[read]
    return found


def _replaced(
    body: T, i: ir.Var, bounds: Bounds, names: Mapping[_Read, tuple[ir.Var, tuple[Nat, Nat]]]
) -> T:
    found = _read(body, i, bounds)
    if found is None:
        return ir.map_parts(body, lambda part: _replaced(part, i, bounds, names))
    v, (first, last) = names[found.read]
    before = () if first == last else (found.offset.after(first),)
    inside = (p if isinstance(p, Nat) else _replaced(p, i, bounds, names) for p in found.others)
    element = reduce(looked_up_in, (*before, *inside), v)
    if found.conditions:
        hold = reduce(_both, (_replaced(c, i, bounds, names) for c in found.conditions))
        assert found.read.border is not None
        element = ir.Call("select", (hold, element, found.read.border))
    return element  # pyright: ignore[reportReturnType]


def _both(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Call("and", (a, b))


def _to_front(array: ir.Expr, axis: int) -> ir.Expr:
    if axis == 0:
        return array
    if axis > 1:
        row = ir.Var(f"r{axis}", element_type(array))
        array = ir.Map(ir.Lambda(row, _to_front(row, axis - 1)), array)
    return ir.Transpose(array)


def _length(array: ir.Expr, axis: int) -> Nat:
    t = type_of(array)
    for _ in range(axis):
        assert isinstance(t, Array)
        t = t.element
    assert isinstance(t, Array)
    return t.size


def _within(place: ir.Expr, length: Nat) -> ir.Expr:
    """A place without bounds that looking it up keeps anyway."""
    match place:
        case ir.Call(op="max", arguments=(e, ir.Literal(value=0)) | (ir.Literal(value=0), e)):
            return _within(e, length)
        case ir.Call(op="min", arguments=(a, b)):
            for e, bound in ((a, b), (b, a)):
                if (at := affine(bound)) is not None and not at.counts and at.start == length - 1:
                    return _within(e, length)
    return place


def _of_choice(term: ir.Part) -> tuple[ir.Expr, ir.Expr] | None:
    """For a choice of two elements of an array that at a chosen place, ``xs[if c then i else j]``, and the place."""
    match term:
        case ir.Call(op="select", arguments=(condition, ir.At() as first, ir.At() as second)):
            (base, places), (other, others) = _chain(first), _chain(second)
            apart = [k for k, pair in enumerate(zip(places, others, strict=False)) if pair[0] != pair[1]]
            if base != other or len(places) != len(others) or len(apart) != 1:
                return None
            (k,) = apart
            place = ir.Call("select", (condition, _expression(places[k]), _expression(others[k])))
            return reduce(looked_up_in, (*places[:k], place, *places[k + 1 :]), base), place
    return None


def _turned(place: ir.Expr, i: ir.Var, length: Nat, bounds: Bounds) -> tuple[ir.Expr, bool] | None:
    """The place of which another one is taken where it is outside, as ``i - 1`` of ``if i > 0 then i - 1 else N - 1``;
    and whether that is as far from the other end, else the nearest inside.
    """
    for conditions, near, other in choices(place):
        at, instead = affine(near), affine(other)
        if at is None or instead is None or [v for v, _ in at.counts] != [i] or not set(instead.counts) <= {*at.counts}:
            continue
        first, last = at.ends(bounds)
        inside = is_at_least(first, nat(0)), is_at_least(length, last + 1)
        if at.counts[0][1] < 1 or inside[0] == inside[1]:
            continue
        if without_border(conditions, at, length, inside, bounds) != ():
            continue
        outside, nearest, farthest = (last, length - 1, nat(0)) if inside[0] else (first, nat(0), length - 1)
        is_one = outside in (nat(-1), length)  # place outside, that of the first or of the last step
        there = instead.ends(bounds)[inside[0]] if is_one else instead.start
        if (is_one or not instead.counts) and there == nearest:
            return near, False
        around = difference(instead, at) == Affine((), nat(0) - length if inside[0] else length)
        if around or (is_one and there == farthest):
            return near, True
    return None


def _expression(place: Place) -> ir.Expr:
    if isinstance(place, Nat):
        return ir.SizeLiteral(place) if place.constant is None else ir.Literal(place.constant, I32)
    return place


def _wrapped(place: ir.Expr, length: Nat) -> Affine | None:
    """The place of which one is the rest by the length: as ``i + 1`` of ``(i + 1) % N``, and ``i - 1`` of
    ``(i + N - 1) % N``.
    """
    match place:
        case ir.Call(op="mod", arguments=(e, bound)) if affine(bound) == Affine((), length):
            sum_ = affine(e)
        case _:
            return None
    if sum_ is None or ((first := sum_.start.constant) is not None and first < 0):  # whose rest is negative
        return None
    # after turns it is not, as an array is at least as long as what is before it
    turned = (sum_.start - turns * length for turns in range(MOST_TURNS + 1))
    near = {start.constant: start for start in turned if start.constant is not None}
    return replace(sum_, start=near[min(near, key=abs)]) if near else None


def _variables(place: Place) -> frozenset[ir.Var]:
    return frozenset() if isinstance(place, Nat) else ir.free_variables(place)
