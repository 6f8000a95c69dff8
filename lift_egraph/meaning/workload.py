"""How much is computed while a term is evaluated: what decides the slices of a map, and what is too much."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of, type_of
from lift_egraph.language.index_arrays import number
from lift_egraph.language.types import Array, DataType, Pair, width_of
from lift_egraph.meaning.contractions import factors, product_of
from lift_egraph.meaning.folds import fold_form, keeps_last
from lift_egraph.meaning.recurrences import LONG, steps_of

_MAKES_ARRAYS = (ir.Call, ir.Join, ir.AsScalar, ir.Concat, ir.Gather, ir.Scatter, ir.Lookup, ir.Pad, *ir.INDEX_FOLDS)
COPIED, MULTIPLIED, WALKED = 1.0, 0.01, 9.0  # the time of an element of a factor, a product and a step of a fold …
CALLED, VISITED = (
    80.0,
    300.0,
)  # of an operation in such a step whose meaning is called, and of a node that is walked over
RANGE = 10  # elements of a range whose ends are computed
SIDE_BY_SIDE = 256  # … of which so many take as long as any more

_Variables = frozenset[ir.Var]


@dataclass(frozen=True)
class _Work:
    """What one evaluation takes.

    Attributes
    ----------
    made
        Elements of all arrays that are made.
    spared
        Of these, those that are gone before others are made: of a step of a fold before the next.
    products
        Of matrix products.
    walked
        Steps of folds by operators that are no built-in operation, for each pair of components of the accumulator.
    slow
        The time beside that of steps for which no text is written.
    copied
        Elements of the factors of those, by the variables that they depend on: others repeat nothing.
    """

    made: int = 0
    spared: int = 0
    products: int = 0
    walked: int = 0
    slow: float = 0.0
    copied: tuple[tuple[_Variables, int], ...] = ()

    def __add__(self, other: _Work) -> _Work:
        if other is _NOTHING:
            return self
        if self is _NOTHING:
            return other
        copied = Counter(dict(self.copied))
        for variables, count in other.copied:
            copied[variables] += count
        return _Work(
            self.made + other.made,
            self.spared + other.spared,
            self.products + other.products,
            self.walked + other.walked,
            self.slow + other.slow,
            tuple(copied.items()),
        )

    def times(self, count: int, sources: dict[ir.Var, _Variables], side_by_side: bool = False) -> _Work:
        """So many evaluations, with variables bound to parts of terms that depend on others."""
        if self is _NOTHING:
            return self
        copied: Counter[_Variables] = Counter()
        for variables, elements in self.copied:
            outside = frozenset[ir.Var]().union(*(sources.get(v, {v}) for v in variables))
            copied[outside] += elements * (count if variables & sources.keys() else 1)
        turns = min(count, SIDE_BY_SIDE) if side_by_side else count
        slow = self.slow * (1 if side_by_side else count)
        made, spared, products = self.made * count, self.spared * count, self.products * count
        return _Work(made, spared, products, self.walked * turns, slow, tuple(copied.items()))


_NOTHING = _Work()


def workload(term: ir.Part) -> int:
    """The number of elements of all arrays made for one evaluation of a term or a function body, of a short fold in one
    of its steps.

    Nodes that only change the view of an array (transpose, split, slide, …) make none, and of a sum of products only
    the sum is made.

    Examples
    --------
    >>> from lift_egraph.language.types import F32, array
    >>> x, xs = ir.Var("x", F32), ir.Input("xs", array(F32, 8))
    >>> workload(ir.Map(ir.Lambda(x, ir.Call("mul", (x, x))), xs))
    8
    """
    work = _work(term)
    return work.made - work.spared


def effort(term: ir.Part) -> float:
    """The time of one evaluation of a term, in elements that are made one by one.

    Examples
    --------
    >>> from lift_egraph import programs
    >>> from lift_egraph.language.check import specialise
    >>> [f"{effort(specialise(programs.load(name)).body):.1e}" for name in ("dot", "gemv", "mm")]
    ['3.4e+07', '1.7e+07', '2.1e+06']
    """
    work = _work(term)
    copied = sum(count for _, count in work.copied)
    return work.made + COPIED * copied + MULTIPLIED * work.products + WALKED * work.walked + work.slow


@lru_cache(maxsize=4096)
def _work(term: ir.Part) -> _Work:
    if isinstance(term, ir.Var | ir.Input | ir.Literal):
        return _NOTHING
    if isinstance(term, ir.Vectorize):
        return _inside(term.function, term.width, {})
    if isinstance(term, ir.Iterate):
        step = iterate_step(term, size_of(term.array))
        return _work(term.array) + _inside(step, max(term.times, 1), {})
    if isinstance(term, ir.RANGE_FOLDS):
        return _work_of_range(term)
    if isinstance(term, ir.Reduce) and (summed := product_of(term)):
        return _work_of_products(term, *summed)
    total = _Work(_elements(type_of(term))) if isinstance(term, _MAKES_ARRAYS) else _NOTHING
    for part in ir.parts(term):
        if isinstance(part, ir.Lambda | ir.Vectorize):
            count, sources = repetitions(term), _sources(part, _argument(term))
            if (
                isinstance(term, ir.FOLDS)
                and part is term.operator
                and fold_form(part) is None
                and not keeps_last(part)
            ):
                slow = count * _slow(part) if count >= LONG else 0.0
                total += _Work(walked=count * _components(type_of(term.initial)) ** 2, slow=slow)
                if count < LONG and isinstance(term, ir.Reduce | ir.ReduceSeq):
                    step = _inside(part, 1, sources)
                    total += _Work(spared=(count - 1) * (step.made - step.spared))
            total += _inside(part, count, sources, not isinstance(term, ir.FOLDS))
        else:
            total += _work(part)
    return total


@lru_cache(maxsize=4096)
def _slow(operator: ir.Function) -> float:
    """The time of a step of a long fold, beside that of one that is a line of Python."""
    steps = steps_of(operator, doubles=False)
    return VISITED * _visits(operator) if steps is None else CALLED * steps.calls


def _visits(term: ir.Part) -> int:
    """How many nodes are walked over in one evaluation, those of loops in each turn."""
    turns = repetitions(term) if isinstance(term, ir.FOLDS) else 1
    return 1 + sum(_visits(p) * (turns if isinstance(p, ir.Lambda) else 1) for p in ir.parts(term))


def _inside(function: ir.Function, count: int, sources: dict[ir.Var, _Variables], side_by_side: bool = False) -> _Work:
    work = _work(function) if isinstance(function, ir.Vectorize) else _work(function.body)
    return work.times(count, sources, side_by_side)


def _work_of_products(term: ir.Reduce, function: ir.Lambda, array: ir.Expr) -> _Work:
    """Matrix products make nothing but their results."""
    size = number(size_of(array), "array")
    lets, product = factors(function)
    inside = _Work(products=1)
    for factor in ir.parts(product):
        inside += _work(factor) + _Work(copied=((ir.free_variables(factor), 1),))
    for let in reversed(lets):
        assert isinstance(let.function, ir.Lambda)
        inside = inside.times(1, _sources(let.function, let.argument)) + _work(let.argument)
    return inside.times(size, _sources(function, array)) + _work(term.initial) + _work(array) + _Work(1)


def _work_of_range(term: ir.ReduceRange | ir.ReduceRangeSeq) -> _Work:
    """Of what a range does not have, no element is computed."""
    count = repetitions(term)
    total = _inside(term.operator, count, _sources(term.operator, term.array)) + _Work(made=count, walked=count)
    for part in (term.initial, term.low, term.high):
        total += _work(part)
    arrays: list[ir.Expr] = [term.array]
    while arrays:
        array = arrays.pop()
        if isinstance(array, ir.Map):
            total += _inside(array.function, count, _sources(array.function, array.array)) + _Work(count)
            arrays.append(array.array)
        elif isinstance(array, ir.Zip):
            arrays += (array.first, array.second)
        elif isinstance(array, ir.Lookup):
            total += _work(array.array) + _Work(count)
            arrays.append(array.indices)
        else:
            total += _work(array)
    return total


def _argument(term: ir.Part) -> ir.Expr | None:
    """What a pattern's or a let's function is applied to, or to whose elements."""
    return term.argument if isinstance(term, ir.Apply) else ir.array_of_loop(term)


def _sources(function: ir.Function, argument: ir.Expr | None) -> dict[ir.Var, _Variables]:
    """The variables outside that each variable of a function's argument depends on."""
    if not isinstance(function, ir.Lambda) or argument is None:
        return {}
    found: dict[ir.Var, _Variables] = {}

    def visit(binder: ir.Binder, part: ir.Expr) -> None:
        if isinstance(binder, ir.Var):
            found[binder] = frozenset(ir.free_variables(part))
        elif isinstance(part, ir.Zip | ir.MakePair):
            visit(binder.first, part.first)
            visit(binder.second, part.second)
        else:
            visit(binder.first, part)
            visit(binder.second, part)

    visit(function.binder, argument)
    return found


def repetitions(term: ir.Part) -> int:
    """How often a pattern applies its function."""
    if isinstance(term, ir.Generate):
        return number(term.size, "generate")
    array = ir.array_of_loop(term)
    count = 1 if array is None else number(size_of(array), "array")
    if isinstance(term, ir.RANGE_FOLDS):
        low, high = ([int(end.value)] if isinstance(end, ir.Literal) else [] for end in (term.low, term.high))
        between = max(0, min([count, *high]) - max([0, *low]))
        if low and high:
            return between
        return max(1, between // 2) if low or high else min(count, RANGE)  # of a prefix half on average
    return count


def _components(t: DataType) -> int:
    """The components of an accumulator: an error of each may grow into one of each other."""
    return _components(t.first) + _components(t.second) if isinstance(t, Pair) else 1


def _elements(t: DataType) -> int:
    """The number of scalars in a value of a type."""
    if isinstance(t, Pair):
        return _elements(t.first) + _elements(t.second)
    return number(t.size, "array") * _elements(t.element) if isinstance(t, Array) else width_of(t)
