"""The meaning of every node, as a NumPy interpreter.

Evaluation is batched: the body of a map is evaluated once for all elements. A leaf of a value inside
``d`` maps has ``d`` leading *batch* axes, then the axes of the value's own arrays, then, for vectors,
an axis of lanes. A map makes the first own axis of its argument the innermost batch axis; a value from
outside gets a batch axis of length 1 there, which broadcasts. Maps whose temporary arrays would pass a
budget are evaluated in slices.

Source: 000 §2.4.2 (semantics of the patterns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from lift_egraph.errors import InputProblem, SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, type_of
from lift_egraph.language.index_arrays import boundary, index_values, number
from lift_egraph.language.nat import nat
from lift_egraph.language.plain import plain_look_back, plain_reduce_sub
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import I32, DataType, Scalar, Vector, leaves, scalar_of
from lift_egraph.meaning.contractions import product_of
from lift_egraph.meaning.domains import Domain, Plain
from lift_egraph.meaning.folds import Operations, fold_form, keeps_last
from lift_egraph.meaning.grouped import ByIndex
from lift_egraph.meaning.index_folds import IndexFold, by_rank, of_elements, without_repeats
from lift_egraph.meaning.range_folds import fold_of_range
from lift_egraph.meaning.scopes import Scope
from lift_egraph.meaning.shortcuts import states_of, sum_of_products
from lift_egraph.meaning.time_limit import end_of_time, require_time
from lift_egraph.meaning.values import (
    Tree,
    Value,
    at,
    checked,
    first_leaf,
    gathered,
    leaves_of,
    map_leaves,
    merge,
    split,
    widen,
    with_axes,
    zip_leaves,
)
from lift_egraph.meaning.workload import effort, workload

BUDGET = 64 << 20  # bytes of temporary arrays
WORTH_SHARING = 1e5  # elements that are made for a term whose value is kept


def evaluate(term: ir.Expr, inputs: Mapping[str, Value], variables: Mapping[str, Value] | None = None) -> Value:
    """The value of a term of concrete sizes.

    Parameters
    ----------
    inputs
        A value for each input of the term: an array of the type's shape (and lanes) and element type; for
        an array of pairs, a pair of arrays.
    variables
        A value for each free variable of the term.

    Raises
    ------
    InputProblem
        If a value is missing, or has the wrong shape or element type.
    SizeProblem, TypeProblem
        If a size is open, an index is outside its array, or the term is ill-typed.

    Examples
    --------
    >>> from lift_egraph.language.types import F32, array
    >>> x = ir.Var("x", F32)
    >>> double = ir.Lambda(x, ir.Call("add", (x, x)))
    >>> evaluate(ir.Map(double, ir.Input("xs", array(F32, 3))), {"xs": np.float32([1, 2, 3])})
    array([2., 4., 6.], dtype=float32)
    """
    return map_leaves(lambda leaf: np.asarray(leaf, order="C"), interpret(term, inputs, variables or {}, Plain()))


def run(program: ir.Program, inputs: Mapping[str, Value]) -> Value:
    """The result of a program at concrete sizes (see `check.specialise`).

    Raises
    ------
    InputProblem
        If an input is missing or unknown, has the wrong shape or element type, is no offsets where it should be, or has
        numbers outside of their range.
    SizeProblem
        If a size is open, or an index is outside its array.
    """
    names = [i.name for i in program.inputs]
    for name in inputs:
        if name not in names:
            raise InputProblem(f"{program.name} has no input {name!r}; it has {', '.join(names) or 'none'}")
    for item in program.inputs:
        checked("input", item.name, item.type, inputs)
    for name, values in program.ranges:
        for problem in filter(None, map(values.problem, leaves_of(inputs[name]))):
            raise InputProblem(f"the input {name} of {program.name}: {problem}")
    return evaluate(program.body, inputs)


def interpret(
    term: ir.Expr,
    inputs: Mapping[str, Value],
    variables: Mapping[str, Value],
    domain: Domain,
    budget: int = BUDGET,
    shared: dict[ir.Expr, Tree] | None = None,
) -> Tree:
    """The value of a term in any domain: a leaf of the domain, or a pair of trees.

    Parameters
    ----------
    inputs, variables
        The values of the inputs, and of the variables that are free in the term, by name.
    budget
        How many bytes temporary arrays may have.
    shared
        Keeps the values of closed terms that take long, for other terms on the same inputs.

    Raises
    ------
    TimeProblem
        If it is over its time (`lift_egraph.meaning.time_limit`).
    """
    type_of(term)  # raises where the term is ill-typed
    interpreter = _Interpreter(domain, inputs, budget, shared)
    values = {
        v: (0, interpreter.lift(v.type, checked("variable", v.name, v.type, variables)))
        for v in sorted(ir.free_variables(term), key=str)
    }
    with np.errstate(all="ignore"):
        return interpreter.value(term, Scope(values, ()))


class _Interpreter:
    def __init__(
        self, domain: Domain, inputs: Mapping[str, Value], budget: int, shared: dict[ir.Expr, Tree] | None = None
    ):
        self.domain = domain
        self.inputs = inputs
        self.budget = budget
        self.shared = shared
        self.end = end_of_time()
        self.lifted: dict[ir.Input, Tree] = {}
        self.steps: dict[tuple[ir.Iterate, int], ir.Lambda] = {}

    def value(self, term: ir.Expr, scope: Scope) -> Tree:
        require_time(self.end)
        if self.shared is None or ir.free_variables(term) or effort(term) < WORTH_SHARING:
            return _MEANING[type(term)](self, term, scope)
        if term not in self.shared:
            self.shared[term] = _MEANING[type(term)](self, term, Scope({}, ()))
        return self.each(lambda a: with_axes(a, 0, scope.depth), self.shared[term])

    def each(self, change: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree:
        return map_leaves(lambda leaf: self.domain.each(change, leaf), tree)

    def length(self, tree: Tree, axis: int) -> int:
        return self.domain.array(first_leaf(tree)).shape[axis]

    def lift(self, t: DataType, value: Value) -> Tree:
        scalars = iter([scalar_of(leaf) for _, _, leaf in leaves(t)])
        return map_leaves(lambda array: self.domain.exact(array, next(scalars)), value)

    def apply(self, function: ir.Function, argument: Tree, scope: Scope) -> Tree:
        if isinstance(function, ir.Lambda):
            return self.value(function.body, scope.bind(function.binder, argument))
        depth, width = scope.depth, function.width
        lanes_as_batch = self.each(lambda a: np.moveaxis(a, -1, depth), argument)
        result = self.apply(function.function, lanes_as_batch, scope.deeper(width))
        return self.each(lambda a: np.moveaxis(widen(a, depth, width), depth, -1), result)

    def map(self, function: ir.Function, array: Tree, scope: Scope) -> Tree:
        depth, size = scope.depth, self.length(array, scope.depth)
        work = workload(function) * self.domain.bytes_per_element * prod(scope.batch)
        step = size if work * size <= self.budget else max(1, self.budget // work)

        def body(part: Tree, count: int) -> Tree:
            return self.each(lambda a: widen(a, depth, count), self.apply(function, part, scope.deeper(count)))

        if step == size:
            return body(array, size)
        whole: Tree = None
        for start in range(0, size, step):
            count = min(step, size - start)
            index = at(depth, slice(start, start + count))
            part = body(self.each(lambda a, index=index: a[index], array), count)
            whole = zip_leaves(lambda w, p, start=start: self.domain.place(w, p, depth, start, size), whole, part)
        return whole

    def step(self, term: ir.Iterate, size: int) -> ir.Lambda:
        if (term, size) not in self.steps:
            self.steps[term, size] = iterate_step(term, nat(size))
        return self.steps[term, size]

    # --- leaves of terms ----------------------------------------------------------------------------

    def variable(self, term: ir.Var, scope: Scope) -> Tree:
        depth, tree = scope.values[term]
        return self.each(lambda a: with_axes(a, depth, scope.depth - depth), tree) if depth < scope.depth else tree

    def input(self, term: ir.Input, scope: Scope) -> Tree:
        if term not in self.lifted:
            self.lifted[term] = self.lift(term.type, checked("input", term.name, term.type, self.inputs))
        return self.each(lambda a: with_axes(a, 0, scope.depth), self.lifted[term])

    def literal(self, term: ir.Literal, scope: Scope) -> Tree:
        array = np.full((1,) * scope.depth, term.value, NUMPY_TYPES[term.type.name])
        return self.domain.exact(array, term.type)

    def size(self, term: ir.SizeLiteral, scope: Scope) -> Tree:
        return self.literal(ir.Literal(number(term.size, "a size"), I32), scope)

    # --- scalars, pairs, functions ------------------------------------------------------------------

    def call(self, term: ir.Call, scope: Scope) -> Tree:
        result = type_of(term)
        arguments = []
        for argument in term.arguments:
            leaf = self.value(argument, scope)
            if isinstance(result, Vector) and not isinstance(type_of(argument), Vector):
                leaf = self.domain.each(lambda a: a[..., None], leaf)
            arguments.append(leaf)
        return self.domain.call(term.op, scalar_of(result), arguments)

    def make_pair(self, term: ir.MakePair | ir.Zip, scope: Scope) -> Tree:
        return self.value(term.first, scope), self.value(term.second, scope)

    def component(self, term: ir.Component, scope: Scope) -> Tree:
        return self.value(term.pair, scope)[term.index]

    def application(self, term: ir.Apply, scope: Scope) -> Tree:
        return self.apply(term.function, self.value(term.argument, scope), scope)

    # --- patterns that compute ----------------------------------------------------------------------

    def mapping(self, term: ir.Map | ir.MapLevel, scope: Scope) -> Tree:
        return self.map(term.function, self.value(term.array, scope), scope)

    def reduction(self, term: ir.Reduce | ir.ReduceSeq, scope: Scope) -> Tree:
        product = product_of(term)
        if product:
            return sum_of_products(self, self.value(term.initial, scope), *product, scope)
        start, array = self.value(term.initial, scope), self.value(term.array, scope)
        depth, ordered = scope.depth, isinstance(term, ir.ReduceSeq)
        size = self.length(array, depth)
        form = fold_form(term.operator)
        if size and form and (ordered or form[1] is None):
            operations, function = form
            return self.fold(operations, start, self.map(function, array, scope) if function else array, depth, ordered)
        if (states := states_of(self, term.operator, start, array, scope)) is not None:
            return states[-1][1]
        for index in range(size):
            element = self.each(lambda a, index=index: a[at(depth, index)], array)
            start = self.step_of(term.operator, start, element, scope)
        return start

    def step_of(self, operator: ir.Function, before: Tree, element: Tree, scope: Scope) -> Tree:
        """The accumulator of a fold after an element."""
        if all(self.domain.array(leaf).ndim <= scope.depth for leaf in leaves_of(before)):
            before = self.domain.sources(before)
        return map_leaves(self.domain.settled, self.apply(operator, (before, element), scope))

    def fold(self, operations: Operations, start: Tree, array: Tree, axis: int, ordered: bool) -> Tree:
        if isinstance(operations, tuple):
            return tuple(self.fold(operations[i], start[i], array[i], axis, ordered) for i in range(2))
        return self.domain.fold(operations, start, array, axis, ordered)

    def scan(self, term: ir.Scan | ir.ScanExclusive | ir.ScanSeq | ir.ScanExclusiveSeq, scope: Scope) -> Tree:
        start, array = self.value(term.initial, scope), self.value(term.array, scope)
        depth, ordered = scope.depth, isinstance(term, ir.SCAN_LOOPS)
        if not isinstance(term, ir.ScanExclusive | ir.ScanExclusiveSeq):
            return self.prefixes(term.operator, start, array, scope, ordered)
        size = self.length(array, depth)
        first = self.each(lambda a: with_axes(a, depth, 1), start)
        before = self.each(lambda a: a[at(depth, slice(0, -1))], array)
        after = self.prefixes(term.operator, start, before, scope, ordered)
        whole = zip_leaves(lambda *leaves: self.domain.concatenate(leaves, depth), first, after)
        return self.each(lambda a: a[at(depth, slice(0, size))], whole)

    def prefixes(self, operator: ir.Function, start: Tree, array: Tree, scope: Scope, ordered: bool) -> Tree:
        """The accumulator after each element."""
        depth = scope.depth
        size = self.length(array, depth)
        operation, function = fold_form(operator) or (None, None)
        if size and isinstance(operation, str) and (ordered or function is None):
            mapped = self.map(function, array, scope) if function else array
            return self.domain.scan(operation, start, mapped, depth)
        if (states := states_of(self, operator, start, array, scope)) is not None:
            return zip_leaves(lambda *leaves: self.domain.concatenate(leaves, depth), *(whole for whole, _ in states))
        values = []
        for index in range(size):
            element = self.each(lambda a, index=index: a[at(depth, index)], array)
            start = self.step_of(operator, start, element, scope)
            values.append(start)
        rows = [self.each(lambda a: with_axes(a, depth, 1), v) for v in values or [start]]
        whole = zip_leaves(lambda *leaves: self.domain.concatenate(leaves, depth), *rows)
        return whole if size else self.each(lambda a: a[at(depth, slice(0, 0))], whole)

    def look_back(self, term: ir.LookBack, scope: Scope) -> Tree:
        return self.value(plain_look_back(term), scope)

    def reduce_sub(self, term: ir.ReduceSub, scope: Scope) -> Tree:
        return self.value(plain_reduce_sub(term), scope)

    def range_fold(self, term: ir.ReduceRange | ir.ReduceRangeSeq, scope: Scope) -> Tree:
        return fold_of_range(self, term, scope)

    def index_fold(self, term: IndexFold, scope: Scope) -> Tree:
        start, array, depth = self.value(term.initial, scope), self.value(term.array, scope), scope.depth
        is_loop = isinstance(term, ir.INDEX_LOOPS)
        indices = self.map(term.place, array, scope) if is_loop else self.value(term.indices, scope)
        inner = of_elements(term.operator)
        places, form = self.domain.array(indices), fold_form(inner or term.operator)
        if isinstance(term, ir.ReduceByIndexGlb):
            places = without_repeats(places, depth)
        if isinstance(term, ir.ReduceByIndexAtomic):  # any order would do: not that of the loop
            backwards = at(depth, slice(None, None, -1))
            places, array = places[backwards], self.each(lambda a: a[backwards], array)
        axes = {len(sizes) if isinstance(leaf, Scalar) else 0 for _, sizes, leaf in leaves(type_of(term.initial))}
        if form and inner and axes == {2} and form[1] is None:  # of arrays each element by itself, as those of a batch
            start, array = (self.each(lambda a: a.swapaxes(depth, depth + 1), tree) for tree in (start, array))
            whole = self.fold_by_index(form[0], start, array, np.expand_dims(places, depth))
            whole = self.each(lambda a: a.swapaxes(depth, depth + 1), whole)
        elif form and not inner and axes == {1}:
            elements = self.map(form[1], array, scope) if form[1] else array
            whole = self.fold_by_index(form[0], start, elements, places)
        elif keeps_last(term.operator):
            sources = ByIndex(places, self.length(start, depth)).sources()
            both = zip_leaves(lambda *leaves: self.domain.concatenate(leaves, depth), start, array)
            whole = self.each(lambda a: gathered(a, depth, sources), both)
        else:
            whole = by_rank(self, term, start, array, places, scope)
        doubt = self.each(lambda a: a.max(depth, initial=0), indices)
        return map_leaves(lambda leaf: self.domain.picked(leaf, doubt), whole)

    def fold_by_index(self, operations: Operations, start: Tree, array: Tree, places: np.ndarray) -> Tree:
        if isinstance(operations, tuple):
            return tuple(self.fold_by_index(operations[i], start[i], array[i], places) for i in range(2))
        return self.domain.fold_by_index(operations, start, array, places)

    def iterate(self, term: ir.Iterate, scope: Scope) -> Tree:
        array = self.value(term.array, scope)
        for _ in range(term.times):
            array = self.apply(self.step(term, self.length(array, scope.depth)), array, scope)
        return array

    def generate(self, term: ir.Generate, scope: Scope) -> Tree:
        numbers = np.arange(number(term.size, "generate"), dtype=np.int32)
        numbers = with_axes(numbers, 0, scope.depth)
        return self.map(term.function, self.domain.exact(numbers, I32), scope)

    # --- patterns that move data --------------------------------------------------------------------

    def split(self, term: ir.Split, scope: Scope) -> Tree:
        chunk = number(term.chunk, "split")
        return self.each(lambda a: split(a, scope.depth, chunk), self.value(term.array, scope))

    def join(self, term: ir.Join, scope: Scope) -> Tree:
        return self.each(lambda a: merge(a, scope.depth), self.value(term.array, scope))

    def slice(self, term: ir.Slice, scope: Scope) -> Tree:
        start, length = number(term.start, "slice"), number(term.length, "slice")
        index = at(scope.depth, slice(start, start + length))
        return self.each(lambda a: a[index], self.value(term.array, scope))

    def concat(self, term: ir.Concat, scope: Scope) -> Tree:
        trees = self.value(term.first, scope), self.value(term.second, scope)
        return zip_leaves(lambda *leaves: self.domain.concatenate(leaves, scope.depth), *trees)

    def transpose(self, term: ir.Transpose, scope: Scope) -> Tree:
        axis = scope.depth
        return self.each(lambda a: a.swapaxes(axis, axis + 1), self.value(term.array, scope))

    def gather(self, term: ir.Gather, scope: Scope) -> Tree:
        array = self.value(term.array, scope)
        indices = index_values(term.indices, self.length(array, scope.depth), "gather")
        return self.each(lambda a: a.take(indices, scope.depth), array)

    def scatter(self, term: ir.Scatter, scope: Scope) -> Tree:
        array = self.value(term.array, scope)
        size = self.length(array, scope.depth)
        indices = index_values(term.indices, size, "scatter")
        sources = np.full(size, -1)
        sources[indices] = np.arange(size)
        if (sources < 0).any():
            body = f"{term.indices.variable} -> {term.indices.body}"
            raise SizeProblem(f"scatter({body}) is no permutation of {size} elements")
        return self.each(lambda a: a.take(sources, scope.depth), array)

    def slide(self, term: ir.Slide, scope: Scope) -> Tree:
        axis, size, step = scope.depth, number(term.size, "slide"), number(term.step, "slide")

        def change(a: np.ndarray) -> np.ndarray:
            count = (a.shape[axis] - size) // step + 1
            shape = (*a.shape[:axis], count, size, *a.shape[axis + 1 :])
            strides = (*a.strides[:axis], step * a.strides[axis], *a.strides[axis:])
            return np.lib.stride_tricks.as_strided(a, shape, strides, writeable=False)

        return self.each(change, self.value(term.array, scope))

    def pad(self, term: ir.Pad, scope: Scope) -> Tree:
        axis, array = scope.depth, self.value(term.array, scope)
        size, left, right = self.length(array, axis), number(term.left, "pad"), number(term.right, "pad")
        if term.boundary.kind == "constant":
            literal = term.boundary.value
            if literal is None:
                raise TypeProblem("pad(constant) needs a value")
            outside = self.literal(literal, scope)
            before, after = (
                self.domain.each(lambda a, k=k: widen(a[..., None], axis, k), outside) for k in (left, right)
            )
            return self.domain.concatenate([before, array, after], axis)
        sources = boundary(term.boundary.kind, np.r_[-left:0, size : size + right], size)
        return map_leaves(
            lambda leaf: self.domain.concatenate(
                [
                    self.domain.each(lambda a: a.take(sources[:left], axis), leaf),
                    leaf,
                    self.domain.each(lambda a: a.take(sources[left:], axis), leaf),
                ],
                axis,
            ),
            array,
        )

    def choose(self, term: ir.At, scope: Scope) -> Tree:
        array, index = self.value(term.array, scope), number(term.index, "at")
        size = self.length(array, scope.depth)
        if not 0 <= index < size:
            raise SizeProblem(f"at({index}) is outside an array of length {size}")
        return self.each(lambda a: a[at(scope.depth, index)], array)

    def fill(self, term: ir.Fill, scope: Scope) -> Tree:
        axis, size = scope.depth, number(term.size, "fill")
        return self.each(lambda a: widen(with_axes(a, axis, 1), axis, size), self.value(term.value, scope))

    def lookup(self, term: ir.Lookup, scope: Scope) -> Tree:
        return self.looked_up(self.value(term.indices, scope), self.value(term.array, scope), scope.depth)

    def looked_up(self, indices: Tree, array: Tree, axis: int) -> Tree:
        size, wanted = self.length(array, axis), self.domain.array(indices)
        if size == 0 and wanted.size:
            raise SizeProblem("lookup in an array of length 0")
        wanted = np.clip(wanted, 0, max(size - 1, 0))

        def picked(leaf: Tree) -> Tree:
            return self.domain.picked(self.domain.each(lambda a: gathered(a, axis, wanted), leaf), indices)

        return map_leaves(picked, array)

    def as_vector(self, term: ir.AsVector, scope: Scope) -> Tree:
        axis, width = scope.depth, term.width
        return self.each(lambda a: np.moveaxis(split(a, axis, width), axis + 1, -1), self.value(term.array, scope))

    def as_scalar(self, term: ir.AsScalar, scope: Scope) -> Tree:
        axis = scope.depth
        return self.each(lambda a: merge(np.moveaxis(a, -1, axis + 1), axis), self.value(term.array, scope))


_MEANING: dict[type, Callable[[_Interpreter, Any, Scope], Tree]] = {
    ir.Var: _Interpreter.variable,
    ir.Input: _Interpreter.input,
    ir.Literal: _Interpreter.literal,
    ir.SizeLiteral: _Interpreter.size,
    ir.Call: _Interpreter.call,
    ir.MakePair: _Interpreter.make_pair,
    ir.Component: _Interpreter.component,
    ir.Apply: _Interpreter.application,
    ir.Map: _Interpreter.mapping,
    ir.MapLevel: _Interpreter.mapping,
    ir.Reduce: _Interpreter.reduction,
    ir.ReduceSeq: _Interpreter.reduction,
    **dict.fromkeys((*ir.SCANS, *ir.SCAN_LOOPS), _Interpreter.scan),
    ir.LookBack: _Interpreter.look_back,
    ir.ReduceSub: _Interpreter.reduce_sub,
    **dict.fromkeys(ir.RANGE_FOLDS, _Interpreter.range_fold),
    **dict.fromkeys(ir.INDEX_FOLDS, _Interpreter.index_fold),
    ir.Zip: _Interpreter.make_pair,
    ir.Split: _Interpreter.split,
    ir.Join: _Interpreter.join,
    ir.Slice: _Interpreter.slice,
    ir.Concat: _Interpreter.concat,
    ir.Transpose: _Interpreter.transpose,
    ir.Gather: _Interpreter.gather,
    ir.Scatter: _Interpreter.scatter,
    ir.Slide: _Interpreter.slide,
    ir.Pad: _Interpreter.pad,
    ir.Iterate: _Interpreter.iterate,
    ir.At: _Interpreter.choose,
    ir.Generate: _Interpreter.generate,
    ir.Fill: _Interpreter.fill,
    ir.Lookup: _Interpreter.lookup,
    ir.ToMemory: lambda interpreter, term, scope: interpreter.value(term.value, scope),
    ir.AsVector: _Interpreter.as_vector,
    ir.AsScalar: _Interpreter.as_scalar,
}
