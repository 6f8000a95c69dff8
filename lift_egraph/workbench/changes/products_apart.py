"""Products of matrices out of functions of rows that do more: each is a stage of its own, for which there are plans.

In ``map(λx. let s = map(λy. x · y) ys in b) xs`` the rows s are a matrix, which a map of its own computes. What stands
before a product, such as the row that it multiplies, is named as well; so is the first of two products whose elements
are combined, as in a sum of them, for the second can read it, and what rows of products are folded to, such as the
smallest of distances. What is named of each x of a batch, ``map (λx. map (λy. b) x) xs``, is named of all. The terms
are built here as the rules of `lift_egraph.rules` name what maps compute; that they do is what the phase
``products_apart`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.algebra.laws import associative
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, fresh_name, names_in, with_part
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.workbench.changes.outside import in_maps
from lift_egraph.workbench.changes.views import is_view
from lift_egraph.workbench.planning.plan import Mapped, length_of, map_of, named_of_all, one_side, variables_of, zipped

LARGE = 1 << 22  # multiplications of a product that is worth a kernel beside another one's
FEW_ELEMENTS = 128  # of a matrix in a batch that is computed as it stands
MOST = 1 << 28  # products that are kept for the folds of their rows
FEW = 8  # elements of a row or a column, and products of a row, that are computed as they stand
MANY = 64  # products that get names
Variables = frozenset[ir.Var]


def with_products_apart(
    term: ir.Expr, large: int = LARGE, in_tiles: bool = False, at_once: int = MANY
) -> ir.Expr:
    """The term with a map for each product of matrices in a function of rows that names it, or what it needs, and for
    each `large` one whose elements are combined with those of another, or with elements of what is not the same for all
    rows; where products are computed `in_tiles`, each of which anything is made, or of which rows are folded. Of those
    that have no names the first get one, so many `at_once`.
    """
    taken, left = names_in(term), at_once

    def apart(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        match body:
            case ir.Apply(function=ir.Lambda()) if _has_product(body, variables_of(p)):
                return first_named(p, body, xs, apart, apart)
            case ir.Map(array=ir.Zip(first=ir.Map() as first, second=ir.Map() as second)) if all(
                length_of(xs) * _work(side, variables_of(p)) >= large for side in (first, second)
            ):
                one, other = (ir.Var(fresh_name("$side", taken), type_of(side)) for side in (first, second))
                sides = [apart(*one_side(p, side, xs)) for side in (first, second)]
                q, array = ir.PairBinder(other, ir.PairBinder(one, p)), ir.Zip(sides[1], ir.Zip(sides[0], xs))
                return map_of(*one_side(q, ir.Map(body.function, ir.Zip(one, other)), array))
        nonlocal left
        named = of_columns(p, body, length_of(xs)) if left else None
        if named is None:
            return of_batch(p, body, xs)
        left -= 1
        return apart(p, named, xs)

    def of_batch(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        """A map whose elements have rows of their own: what is named of each of them is named of all."""
        match body:
            case ir.Map(function=ir.Lambda(binder=q, body=b), array=ys) if is_pure(ys):
                return of_all(p, apart(q, b, ys), xs)
            case ir.Apply(function=ir.Lambda(), argument=view) if is_view(view):
                made = first_named(p, body, xs, map_of, of_batch)
                if isinstance(made.function.body, ir.Apply):  # pyright: ignore[reportAttributeAccessIssue]
                    return made
            case ir.Apply(function=ir.Lambda()) if _has_matrix(body):
                return first_named(p, body, xs, of_batch, of_batch)
        return map_of(p, body, xs)

    def of_all(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        return first_named(p, body, xs, map_of, of_all) if isinstance(body, ir.Apply) else map_of(p, body, xs)

    def first_named(p: ir.Binder, body: ir.Apply, xs: ir.Expr, named: Mapped, then: Mapped) -> ir.Apply:
        return named_of_all(p, body, xs, "$matrix", taken, named, then)

    def of_columns(p: ir.Binder, body: ir.Expr, rows: int) -> ir.Expr | None:
        """The first product of each row named, if a function of columns has several, or names it."""
        match body:
            case ir.Map(function=ir.Lambda(binder=r, body=ir.Map(array=ys) as of_column)) if in_tiles and is_pure(ys):
                match of_columns(p, of_column, rows * length_of(body)):
                    case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=products):
                        return named_columns(q, r, b, products, body.array)
            case ir.Map(function=ir.Lambda(binder=r, body=b)):
                name = fresh_name("$product", taken)
                is_large = rows * _work(body, variables_of(p)) >= large
                is_alone = isinstance(b, ir.Reduce) and not isinstance(body.array, ir.Zip)
                is_beside = isinstance(body.array, ir.Zip) and ir.free_variables(body.array) & variables_of(p)
                most = 0 if is_beside or (in_tiles and not is_alone) else 1
                of_row, of_column = _elements(r, body.array, variables_of(p))
                match _first_named(b, variables_of(p) | of_row, of_column, name, most) if is_large else b:
                    case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c):
                        if _has_product(map_of(*one_side(r, c, body.array)), variables_of(p)):
                            return named_columns(q, r, b, c, body.array)
            case ir.Reduce(array=ir.Map() | ir.Zip()):
                of_fold = (folded_apart(p, body, array, rows) for array in _made(body.array))
                return next((made for made in of_fold if made is not None), None)
            case ir.Call() if (fold := _first_total(body)) is not None:
                match of_columns(p, fold, rows):
                    case ir.Apply(function=ir.Lambda(binder=s, body=folded), argument=products):
                        return ir.Apply(ir.Lambda(s, with_part(body, fold, folded)), products)
        return None

    def folded_apart(p: ir.Binder, fold: ir.Reduce, array: ir.Map, rows: int) -> ir.Apply | None:
        """A fold of what is made of products, or of these beside other arrays, with what it is of by its name."""
        if rows * _work(array, variables_of(p)) < large:
            return None
        match of_columns(p, array, rows):
            case ir.Apply(function=ir.Lambda(binder=s, body=rest), argument=products):
                return ir.Apply(ir.Lambda(s, with_part(fold, array, rest)), products)
        is_alone = isinstance(array.function, ir.Lambda) and isinstance(array.function.body, ir.Reduce)
        if in_tiles and is_alone and rows * length_of(array) <= MOST:
            s = ir.Var(fresh_name("$folded", taken), type_of(array))
            return ir.Apply(ir.Lambda(s, with_part(fold, array, s)), array)
        return None

    def named_columns(q: ir.Binder, r: ir.Binder, body: ir.Expr, named: ir.Expr, ys: ir.Expr) -> ir.Apply:
        """A map over columns whose function names something, which another map names for all of them."""
        products = map_of(*one_side(r, named, ys))
        s = ir.Var(fresh_name("$products", taken), type_of(products))
        return ir.Apply(ir.Lambda(s, map_of(*one_side(ir.PairBinder(q, r), body, ir.Zip(s, ys)))), products)

    return in_maps(term, apart)


def products_in_steps(term: ir.Expr, in_tiles: bool, large: int = LARGE) -> Iterator[ir.Expr]:
    """The terms on the way to one with all products apart: a phase that names several has each in all places."""
    for _ in range(MANY):
        made = with_products_apart(term, large, in_tiles, at_once=1)
        if alpha_equal(made, term):
            return
        yield made
        term = made


def _first_named(body: ir.Expr, rows: Variables, columns: Variables, name: str, most: int) -> ir.Expr:
    """What a function of columns computes, with its first product in a let of its own, if a let or an operation has
    more than `most` of them.
    """

    def too_many(*terms: ir.Expr) -> bool:
        return sum(1 for term in terms for _ in _products(term, rows, columns)) > most

    match body:
        case ir.Apply(function=ir.Lambda(binder=ir.PairBinder(first=q, second=r), body=b), argument=ir.MakePair() as c):
            if too_many(c.first, c.second):
                return ir.Apply(ir.Lambda(q, ir.Apply(ir.Lambda(r, b), c.second)), c.first)
        case (ir.Call() as call) | ir.Apply(function=ir.Lambda(), argument=ir.Call() as call) if too_many(call):
            total = _first_total(call)
            if total is not None:
                v = ir.Var(name, type_of(total))
                named = with_part(call, total, v)
                rest = named if body is call else replace(body, argument=named)
                return ir.Apply(ir.Lambda(v, rest), total)
        case ir.Apply(function=ir.Lambda(binder=q, body=b) as f) if not too_many(body.argument):
            match _first_named(b, rows, columns, name, most):
                case ir.Apply(function=ir.Lambda(binder=v, body=rest), argument=ir.Reduce() as total) if (
                    ir.free_variables(total).isdisjoint(ir.bound_variables(q))
                ):
                    return ir.Apply(ir.Lambda(v, replace(body, function=replace(f, body=rest))), total)
    return body


def _made(array: ir.Expr) -> tuple[ir.Map, ...]:
    """What is computed of what a fold is of: all of it, or a side of it."""
    sides = (array.first, array.second) if isinstance(array, ir.Zip) else (array,)
    return tuple(side for side in sides if isinstance(side, ir.Map))


def _first_total(term: ir.Expr) -> ir.Expr | None:
    """The first reduction among the operands of operations, or of their operands."""
    if isinstance(term, ir.Reduce):
        return term
    operands = term.arguments if isinstance(term, ir.Call) and len(term.arguments) < 3 else ()
    return next((found for operand in operands if (found := _first_total(operand)) is not None), None)


def _has_product(body: ir.Expr, rows: Variables) -> bool:
    """Whether a function's body has a reduction of what it is given with the elements of another array."""
    return next(_products(body, rows, frozenset()), None) is not None


def _has_matrix(body: ir.Expr) -> bool:
    """Whether what is computed of each matrix of a batch has a product of matrices that is worth a kernel's part."""
    for t in ir.subterms(body):
        if isinstance(t, ir.Map) and isinstance(t.function, ir.Lambda):
            total = next(_products(t.function.body, variables_of(t.function.binder), frozenset()), None)
            if total is not None and length_of(t.array) * length_of(total.array) >= FEW_ELEMENTS:
                return True
    return False


def _work(of_columns: ir.Map, rows: Variables) -> int:
    """The multiplications of the first product in what is computed of each row."""
    found = next(_products(of_columns, rows, frozenset()), None)
    return 0 if found is None else length_of(of_columns) * length_of(found.array)


def _products(term: ir.Part, rows: Variables, columns: Variables) -> Iterator[ir.Reduce]:
    """The reductions that need both; `rows` are the variables that depend on a row, `columns` those that do not."""
    match term:
        case ir.Reduce() if length_of(term.array) >= FEW and associative(term.operator):
            free = ir.free_variables(term.array)
            if free & rows and free & columns:
                yield term
            return
        case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c):
            yield from _products(c, rows, columns)
            inside = (rows | variables_of(q), columns) if ir.free_variables(c) & rows else (rows, columns)
            yield from _products(b, *inside)
            return
        case ir.Map(function=ir.Lambda(binder=q, body=b), array=ys):
            yield from _products(ys, rows, columns)
            of_rows, of_columns = _elements(q, ys, rows)
            yield from _products(b, rows | of_rows, columns | (of_columns if length_of(ys) >= FEW else frozenset()))
            return
    for part in ir.parts(term):
        yield from _products(part, rows, columns)


def _elements(q: ir.Binder, ys: ir.Expr, rows: Variables) -> tuple[Variables, Variables]:
    """What a map binds to elements of arrays that depend on a row, and of those that do not."""
    of_rows = [own for own, part in zipped(q, ys) if ir.free_variables(part) & rows]
    return frozenset[ir.Var]().union(*of_rows), variables_of(q).difference(*of_rows)
