"""For every rule, programs around a match of its left-hand side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import egglog
from hypothesis import strategies as st

from lift_egraph import ir
from lift_egraph.encoding import type_to_egg
from lift_egraph.nat import nat
from lift_egraph.rule import Rule
from lift_egraph.sorts import ACCUMULATOR, LANE, V
from lift_egraph.soundness import RuleChecker
from lift_egraph.types import F32, Array, Vector
from rules import simplification
from rules.interchange import map_reduce_interchange
from rules.opencl_memory import stage_local, stage_private
from rules.reduction import reduce_map_to_seq, reduce_to_seq
from rules.split_join import split_of_zip
from tests.rules.terms import ASSOCIATIVE, Context, Match, programs


@dataclass(frozen=True)
class Generator:
    """How to make programs in which a rule has something to do.

    Attributes
    ----------
    match
        An instance of the rule's left-hand side over the variables of a context.
    before
        Rules that turn the instance into what the rule matches.
    iterations
        How many iterations the rule needs.
    outer
        The name of the number that is bound around near misses: one that other rules leave behind, perhaps.
    """

    match: Match
    before: tuple[Rule, ...] = ()
    iterations: int = 1
    outer: str = "x"

    def examples(self) -> st.SearchStrategy[ir.Program]:
        """Programs in which the rule must fire."""
        return programs(self.match, careful=True)

    def near_misses(self) -> st.SearchStrategy[ir.Program]:
        """Programs in which it may fire, but must do no harm."""
        return programs(self.match, careful=False, outer=self.outer)

    def checker(self, rule: Rule, name: str) -> RuleChecker:
        """What checks a rule, or a wrong twin of it, with the other definitions unfolded."""
        others = [r for r in simplification if r.name != name]
        return RuleChecker(rule, simplification=others, before=self.before, facts=marks, iterations=self.iterations)


def marks(term: ir.Expr) -> Iterator[egglog.Expr]:
    """The facts that let each binder be staged in local and in private memory."""
    for part in ir.subterms(term):
        if isinstance(part, ir.Lambda):
            for v in ir.bound_variables(part.pattern):
                binder = V(v.name, type_to_egg(v.type))
                yield stage_local(binder)
                yield stage_private(binder)


PATTERNS = ("map", "reduce", "reduce", "join", "transpose", "split")


def divisor(c: Context, n: int) -> int:
    return c.one_of(*(d for d in range(1, n + 1) if n % d == 0))


def a_map(c: Context) -> ir.Expr:
    t = c.element()
    return ir.Map(c.function(t, c.element()), c.array(c.size(), t))


def a_map_to_vectorise(c: Context) -> ir.Expr:
    t = c.one_of(c.real, c.real, c.element())
    n = c.one_of(2, 4, 8) if c.careful else c.one_of(2, 3, 5, 6)
    return ir.Map(c.function(t, c.one_of(c.real, c.real, c.element())), c.array(n, t))


def map_of_map(c: Context) -> ir.Expr:
    t, u = c.element(), c.element()
    p = c.pattern(t)
    inner = ir.Map(ir.Lambda(p, c.bind(p).term(u)), c.array(c.size(), t))
    return ir.Map(c.without(p).function(u, c.element()), inner)


def map_of_pattern(*kinds: str) -> Match:
    def match(c: Context) -> ir.Expr:
        t = c.one_of(c.real, c.row())
        p = c.pattern(t)
        return ir.Map(ir.Lambda(p, a_pattern(c.bind(p), p, None, kinds)), c.array(c.size(), t))

    return match


def a_pattern(c: Context, p: ir.Pattern, argument: ir.Expr | None, kinds: tuple[str, ...]) -> ir.Expr:
    """A pattern applied to a given argument, or to any array; its function does not mention `p`."""
    kind = c.one_of(*kinds)
    t = argument.type if isinstance(argument, ir.Var) else None
    n, m = c.one_of(2, 3, 4), c.size()
    if isinstance(t, Array):
        n = t.size.constant or 1
        if isinstance(t.element, Array) != (kind in ("join", "transpose")):
            kind = "transpose" if isinstance(t.element, Array) else c.one_of("map", "reduce", "split")
    nested = kind in ("join", "transpose")
    array = argument or c.array(n, Array(nat(m), c.real) if nested else c.real)
    if kind == "map":
        return ir.Map(c.without(p).function(c.real, c.element()), array)
    if kind == "reduce":
        inner, start = c.split(p)
        return ir.Reduce(inner.operator(), start.number(1), array)
    if kind == "split":
        return ir.Split(nat(divisor(c, n)), array)
    return ir.Join(array) if kind == "join" else ir.Transpose(array)


def a_function_of_a_row(c: Context, kinds: tuple[str, ...]) -> tuple[ir.Lambda, Array]:
    """``λv. g v`` for a pattern g."""
    nested = c.one_of(*kinds) in ("join", "transpose")
    t = Array(nat(c.size()), c.row()) if nested else c.row()
    v = c.variable(t)
    return ir.Lambda(v, a_pattern(c.bind(v), v, v, kinds)), t


def applied_pattern(c: Context) -> ir.Expr:
    f, t = a_function_of_a_row(c, PATTERNS)
    return ir.Apply(f, c.term(t))


def named_pattern(*kinds: str) -> Match:
    def match(c: Context) -> ir.Expr:
        f, t = a_function_of_a_row(c, kinds)
        return ir.Map(f, c.array(c.size(), t)) if c.one_of(True, False) else ir.Apply(f, c.term(t))

    return match


def zip_of_maps(c: Context) -> ir.Expr:
    n, t, u = c.size(), c.element(), c.element()
    p = c.pattern(t)
    q = c.pattern(u, avoid=(p,))
    b = c.without(q).bind(p).term(c.element())
    second = c.without(p).bind(q).term(c.element())
    return ir.Zip(ir.Map(ir.Lambda(p, b), c.array(n, t)), ir.Map(ir.Lambda(q, second), c.array(n, u)))


def map_to_split(c: Context) -> ir.Expr:
    t = c.element()
    n = c.composite() if c.careful else c.one_of(4, 5, 6)
    return ir.Map(c.function(t, c.element()), c.array(n, t))


def split_of_map(c: Context) -> ir.Expr:
    n, t = c.composite(), c.element()
    return ir.Split(nat(divisor(c, n)), ir.Map(c.function(t, c.element()), c.array(n, t)))


def split_of_zipped(c: Context) -> ir.Expr:
    n = c.composite()
    return ir.Split(nat(divisor(c, n)), ir.Zip(c.array(n, c.element()), c.array(n, c.element())))


def reduction_by_law(c: Context) -> ir.Expr:
    op = c.one_of(*ASSOCIATIVE)
    n = c.composite() if c.careful else c.one_of(3, 4, 6)
    zero = c.neutral(op)
    if not c.careful:
        operator, zero = c.one_of(
            (c.known_operator(op), c.literal(2)), (c.odd_operator(), zero), (c.odd_operator(), zero)
        )
        return ir.Reduce(operator, zero, c.array(n, c.real))
    if c.one_of(True, True, False):
        return ir.Reduce(c.known_operator(op), zero, c.array(n, c.real))
    k = c.size()
    return ir.Reduce(c.lifted_operator(op, k), ir.Fill(nat(k), zero), c.array(n, Array(nat(k), c.real)))


def nested_maps(c: Context) -> ir.Expr:
    t, u = c.one_of(c.real, c.row()), c.one_of(c.real, c.row())
    p = c.pattern(t)
    q = c.pattern(u, avoid=(p,), always=c.one_of(True, False))
    strict = replace(c, careful=True)
    inside, outside = c.one_of((c, strict), (strict, c))
    b = c.bind(p, q).mentioning(p, q).term(c.element())
    inner = ir.Map(ir.Lambda(q, b), inside.bind(p).without(p).array(c.size(), u))
    return ir.Map(ir.Lambda(p, inner), outside.without(q).array(c.size(), t))


def nested_maps_over_zip(right: bool, broken: int | None = None) -> Match:
    def match(c: Context) -> ir.Expr:
        t, u, w, m = c.one_of(c.real, c.row()), c.one_of(c.real, c.row()), c.one_of(c.real, c.real, c.row()), c.size()
        p = c.pattern(t)
        q = c.pattern(u, avoid=(p,), always=True)
        v = c.variable(w, (p, q))
        outside, inside = c.bind(p).split(p, broken=broken)
        ws, ys = outside.array(m, u), c.bind(p).array(m, w)
        b = inside.bind(q, v).mentioning(q).term(c.element())
        pair = ir.PairPattern(q, v) if right else ir.PairPattern(v, q)
        inner = ir.Map(ir.Lambda(pair, b), ir.Zip(ws, ys) if right else ir.Zip(ys, ws))
        return ir.Map(ir.Lambda(p, inner), c.array(c.size(), t))

    return match


def map_of_reduction(c: Context) -> ir.Expr:
    t = c.one_of(c.real, c.row())
    p = c.pattern(t)
    inner, start = c.bind(p).split(p)
    operator = (inner.closed() if c.careful else inner).operator()
    body = ir.Reduce(operator, start.number(1), c.bind(p).array(c.size(), c.real))
    return ir.Map(ir.Lambda(p, body), c.array(c.size(), t))


def map_over_matrix(c: Context) -> ir.Expr:
    n, row = c.size(), c.row()
    v = c.variable(row)
    f = c.bind(v).without(v).function(c.real, c.element())
    return ir.Map(ir.Lambda(v, ir.Map(f, v)), c.array(n, row))


def reduction_of_map(c: Context) -> ir.Expr:
    t = c.element()
    p = c.pattern(t)
    mapped = ir.Map(ir.Lambda(p, c.bind(p).term(c.real)), c.array(c.size(), t))
    return ir.Reduce(c.without(p).operator(), c.number(1), mapped)


def a_reduction(c: Context) -> ir.Expr:
    return ir.Reduce(c.operator(), c.number(1), c.array(c.size(), c.real))


def known_reduction(c: Context) -> ir.Expr:
    return ir.Reduce(c.known_operator(c.one_of(*ASSOCIATIVE)), c.number(1), c.array(c.size(), c.real))


def odd_reduction(c: Context) -> ir.Expr:
    return ir.Reduce(c.odd_operator(), c.number(1), c.array(c.size(), c.real))


def lifted_reduction_of_map(c: Context) -> ir.Expr:
    k, t = c.size(), c.one_of(c.real, c.row())
    p = c.pattern(t)
    inner = c.bind(p)
    rows = ir.Map(ir.Lambda(p, ir.Map(inner.function(c.real, c.real), inner.array(k, c.real))), c.array(c.size(), t))
    op = c.one_of(*ASSOCIATIVE)
    return ir.Reduce(c.lifted_operator(op, k), ir.Fill(nat(k), c.neutral(op)), rows)


def loop_to_split(c: Context) -> ir.Expr:
    t = c.element()
    n = c.composite() if c.careful else c.one_of(3, 4, 6)
    a = c.variable(c.real)
    p = c.pattern(t, (a,), always=True)
    loop = ir.Lambda(ir.PairPattern(a, p), c.bind(a, p).number(2))
    return ir.ReduceSeq(loop, c.number(1), c.array(n, t))


def loop_over_map(broken: int | None = None) -> Match:
    def match(c: Context) -> ir.Expr:
        t, u = c.one_of(c.real, c.row()), c.element()
        q = c.pattern(t)
        a = c.variable(c.real, (q,) if c.careful else c.one_of((q,), (q,), ()))
        p = c.pattern(u, (a, q) if c.careful else (a,), always=True)
        outer, inner = c.split(q, a, broken=broken)
        body = outer.bind(a, p).number(2)
        second = inner.bind(q).term(u)
        return ir.ReduceSeq(
            ir.Lambda(ir.PairPattern(a, p), body), c.number(1), ir.Map(ir.Lambda(q, second), c.array(c.size(), t))
        )

    return match


def map_of_chunks(*kinds: str) -> Match:
    def match(c: Context) -> ir.Expr:
        t = c.row() if c.careful else c.one_of(c.row(), c.real)
        v = c.variable(t)
        level = ir.Level(c.one_of(*kinds), c.one_of(0, 1))
        return ir.MapLevel(level, ir.Lambda(v, c.bind(v).term(c.element())), c.array(c.size(), t))

    return match


def join_of_split(c: Context) -> ir.Expr:
    n = c.composite()
    return ir.Join(ir.Split(nat(divisor(c, n)), c.array(n, c.element())))


def split_of_join(c: Context) -> ir.Expr:
    n, m = c.size(), c.size()
    chunk = n if c.careful else divisor(c, n * m)
    return ir.Split(nat(chunk), ir.Join(c.array(m, Array(nat(n), c.element()))))


def scalars_of_vectors(c: Context) -> ir.Expr:
    width = c.one_of(2, 4)
    return ir.AsScalar(ir.AsVector(width, c.array(width * c.size(), c.element())))


def vectors_of_scalars(c: Context) -> ir.Expr:
    width = c.one_of(2, 4)
    other = width if c.careful else c.one_of(2, 4)
    return ir.AsVector(width, ir.AsScalar(ir.Input("vectors", Array(nat(4), Vector(F32, other)))))


def transpose_twice(c: Context) -> ir.Expr:
    return ir.Transpose(ir.Transpose(c.array(c.size(), Array(nat(c.size()), c.element()))))


def transpose_all_twice(c: Context) -> ir.Expr:
    def each(xs: ir.Expr, t: Array) -> ir.Expr:
        v = c.variable(t)
        return ir.Map(ir.Lambda(v, ir.Transpose(v)), xs)

    n, m = c.size(), c.size()
    matrix, turned = (Array(nat(a), Array(nat(b), c.real)) for a, b in ((n, m), (m, n)))
    return each(each(c.array(c.size(), matrix), matrix), turned)


def identity(c: Context) -> ir.Expr:
    t = c.one_of(c.real, c.real, c.row())
    v = c.variable(t)
    body = v if c.careful else c.one_of(*(x for x in c.bind(v).scope if x.type == t))
    return ir.Map(ir.Lambda(v, body), c.array(c.size(), t))


def part_of_pair(c: Context) -> ir.Expr:
    return ir.Component(c.one_of(0, 1), ir.MakePair(c.term(c.element()), c.term(c.element())))


GENERATORS: dict[str, Generator] = {
    # fusion
    "map_fusion": Generator(map_of_map),
    "zip_of_maps": Generator(zip_of_maps),
    "map_fission": Generator(map_of_pattern(*PATTERNS)),
    # split_join
    "split_join": Generator(map_to_split),
    "split_of_map": Generator(split_of_map),
    "split_of_zip": Generator(split_of_zipped),
    "zip_takes_names": Generator(split_of_zipped, (split_of_zip,)),
    # interchange
    "map_map_on_matrix": Generator(map_over_matrix),
    "map_map_interchange": Generator(nested_maps),
    "map_map_zip_right": Generator(nested_maps_over_zip(right=True)),
    "map_map_zip_left": Generator(nested_maps_over_zip(right=False)),
    "map_reduce_interchange": Generator(map_of_reduction),
    # reduction
    "partial_reduce": Generator(reduction_by_law),
    "partial_reduce_strided": Generator(reduction_by_law),
    "reduce_map_to_seq": Generator(reduction_of_map, outer=ACCUMULATOR),
    "reduce_to_seq": Generator(a_reduction),
    "split_reduce_seq": Generator(loop_to_split, iterations=2, outer=ACCUMULATOR),
    "reduce_seq_fusion": Generator(loop_over_map()),
    "combine_scalars": Generator(known_reduction, (reduce_to_seq,)),
    "combine_by_function": Generator(odd_reduction, (reduce_to_seq,)),
    "combine_lifted_with_map": Generator(lifted_reduction_of_map, (reduce_map_to_seq,), outer=LANE),
    "combine_lifted": Generator(map_of_reduction, (map_reduce_interchange, reduce_to_seq)),
    # vectors, levels and memory
    "vectorise_map": Generator(a_map_to_vectorise),
    "map_to_seq": Generator(a_map),
    "map_to_glb0": Generator(a_map),
    "map_to_glb1": Generator(a_map),
    "map_to_wrg0": Generator(a_map),
    "map_to_wrg1": Generator(a_map),
    "map_to_lcl0": Generator(a_map),
    "map_to_lcl1": Generator(a_map),
    "stage_in_local": Generator(map_of_chunks("wrg")),
    "stage_in_private": Generator(map_of_chunks("glb", "lcl")),
    # simplification
    "join_of_split": Generator(join_of_split),
    "split_of_join": Generator(split_of_join),
    "as_scalar_of_as_vector": Generator(scalars_of_vectors),
    "as_vector_of_as_scalar": Generator(vectors_of_scalars),
    "transpose_of_transpose": Generator(transpose_twice),
    "map_transpose_of_map_transpose": Generator(transpose_all_twice),
    "map_identity": Generator(identity),
    "component_of_pair": Generator(part_of_pair),
    "apply_pattern": Generator(applied_pattern),
    "eta": Generator(named_pattern(*PATTERNS)),
}
