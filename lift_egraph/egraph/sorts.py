"""The language as egglog sorts, and the conditions that rules state about them.

Encoding: pointful terms with named binders that carry their type; fresh names are Skolem terms
derived from the pattern they replace, so one rule gives one name; a free-variable analysis guards
scope, so that no rule needs substitution. Sizes are concrete integers. Constant functions
(`Fn.join(t)` …) are indexed by the type of their argument: polymorphic ones would merge
instances of different sizes.

Terms that differ in the names of binders stay apart. One class for them would be one of a hundred classes less of mm
1024³ with all rules after 4 iterations, and 7 of a hundred with the algorithmic ones after 6; with slots for free
variables, too, 5 and 15 of a hundred: so many classes have cheapest members that are equal up to names.

`lift_egraph.egraph.analyses` computes types and scopes, `lift_egraph.egraph.encoding` turns terms into these sorts, and
`lift_egraph.egraph.read_back` makes terms of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Union

import egglog
from egglog import Set, String, StringLike, eq, function, i64, i64Like, relation, rewrite, set_
from egglog.egraph import FactLike

from lift_egraph.egraph.orders import KnownOrder, order_form, read_order
from lift_egraph.language.nat import nat


class Ty(egglog.Expr):
    """Types."""

    @classmethod
    def scalar(cls, name: StringLike) -> Ty: ...
    @classmethod
    def vec(cls, name: StringLike, width: i64Like) -> Ty: ...
    @classmethod
    def arr(cls, size: i64Like, element: Ty) -> Ty: ...
    @classmethod
    def pair(cls, first: Ty, second: Ty) -> Ty: ...
    @classmethod
    def lanes(cls, width: i64Like, t: Ty) -> Ty: ...


class V(egglog.Expr):
    """Binder names."""

    def __init__(self, name: StringLike, t: Ty) -> None: ...
    @classmethod
    def of(cls, tag: StringLike, pattern: P, index: i64Like) -> V: ...


class P(egglog.Expr):
    """Binding patterns."""

    @classmethod
    def var(cls, v: V) -> P: ...
    @classmethod
    def pair(cls, first: P, second: P) -> P: ...


class Op(egglog.Expr):
    """Binary operators of reductions."""

    @classmethod
    def scalar(cls, name: StringLike) -> Op: ...
    @classmethod
    def fn(cls, f: Fn) -> Op: ...
    def lift(self) -> Op: ...


class Fn(egglog.Expr):
    """Functions: lambdas, `vectorize`, and layout functions without a name for their argument."""

    @classmethod
    def lam(cls, p: P, body: Ex) -> Fn: ...
    @classmethod
    def vec(cls, width: i64Like, f: Fn) -> Fn: ...
    @classmethod
    def join(cls, t: Ty) -> Fn: ...
    @classmethod
    def transpose(cls, t: Ty) -> Fn: ...
    @classmethod
    def zip(cls, t: Ty) -> Fn: ...
    @classmethod
    def split(cls, n: i64Like, t: Ty) -> Fn: ...
    @classmethod
    def map(cls, n: i64Like, f: Fn) -> Fn: ...
    @classmethod
    def reduce(cls, op: Op, z: Ex, t: Ty) -> Fn: ...


class Ex(egglog.Expr):
    """Terms."""

    def __init__(self, v: V) -> None: ...
    @classmethod
    def input(cls, name: StringLike, t: Ty) -> Ex: ...
    @classmethod
    def literal(cls, text: StringLike, t: Ty) -> Ex: ...


class Order(egglog.Expr):
    """Orders of access, as index functions: where the element at i comes from.

    `stride` is i ↦ count · (i mod stride) + i / stride in an array of stride · count elements, `shift` is
    i ↦ (i + distance) mod length in one of that length, `of` an index function over i as text; `then` applies the
    second order to the index that the first gives. The inverse is one of a permutation.
    """

    @classmethod
    def identity(cls) -> Order: ...
    @classmethod
    def reverse(cls) -> Order: ...
    @classmethod
    def stride(cls, stride: i64Like, count: i64Like) -> Order: ...
    @classmethod
    def shift(cls, distance: i64Like, length: i64Like) -> Order: ...
    @classmethod
    def of(cls, text: StringLike) -> Order: ...
    @classmethod
    def then(cls, first: Order, second: Order) -> Order: ...
    @classmethod
    def inverse(cls, permutation: Order) -> Order: ...


def order_to_egg(order: KnownOrder) -> Order:
    """An order that was recognised."""
    arguments = (order_to_egg(a) if isinstance(a, KnownOrder) else a for a in order.arguments)
    return getattr(Order, order.op.removeprefix("Order_"))(*arguments)


def to_order(order: KnownOrder | str) -> Order:
    """An order, or an index function over i, and n for the length, as text."""
    return order_to_egg(order_form(read_order(order), nat("n")) if isinstance(order, str) else order)


OrderLike = Union[Order, KnownOrder, str]  # a text is an index function over i, and n for the length
egglog.converter(KnownOrder, Order, order_to_egg)
egglog.converter(String, Order, Order.of)
egglog.converter(str, Order, to_order)


@function
def call1(op: StringLike, a: Ex) -> Ex: ...
@function
def call2(op: StringLike, a: Ex, b: Ex) -> Ex: ...
@function
def call3(op: StringLike, a: Ex, b: Ex, c: Ex) -> Ex: ...
@function
def make_pair(a: Ex, b: Ex) -> Ex: ...
@function
def component(index: i64Like, a: Ex) -> Ex: ...
@function
def app(f: Fn, x: Ex) -> Ex: ...
@function
def combine(op: Op, a: Ex, b: Ex) -> Ex: ...
@function
def map_(f: Fn, x: Ex) -> Ex: ...
@function
def reduce_(op: Op, z: Ex, x: Ex) -> Ex: ...
@function
def scan(op: Op, z: Ex, x: Ex) -> Ex: ...
@function
def scan_exclusive(op: Op, z: Ex, x: Ex) -> Ex: ...
@function
def reduce_range(op: Op, z: Ex, low: Ex, high: Ex, x: Ex) -> Ex: ...
@function
def reduce_by_index(op: Op, z: Ex, indices: Ex, x: Ex) -> Ex: ...
@function
def zip_(a: Ex, b: Ex) -> Ex: ...
@function
def split(n: i64Like, x: Ex) -> Ex: ...
@function
def join(x: Ex) -> Ex: ...
@function
def slice_(start: i64Like, length: i64Like, x: Ex) -> Ex: ...
@function
def concat(a: Ex, b: Ex) -> Ex: ...
@function
def transpose(x: Ex) -> Ex: ...
@function
def gather(indices: OrderLike, x: Ex) -> Ex: ...
@function
def scatter(indices: OrderLike, x: Ex) -> Ex: ...
@function
def slide(size: i64Like, step: i64Like, x: Ex) -> Ex: ...
@function
def pad(left: i64Like, right: i64Like, boundary: StringLike, x: Ex) -> Ex: ...
@function
def pad_constant(left: i64Like, right: i64Like, value: Ex, x: Ex) -> Ex: ...
@function
def iterate(times: i64Like, f: Fn, x: Ex) -> Ex: ...
@function
def iterate_step(f: Fn, x: Ex) -> Ex: ...
@function
def at(index: i64Like, x: Ex) -> Ex: ...
@function
def generate(n: i64Like, f: Fn) -> Ex: ...
@function
def fill(n: i64Like, z: Ex) -> Ex: ...
@function
def lookup(indices: Ex, x: Ex) -> Ex: ...
@function
def map_level(kind: StringLike, dimension: i64Like, f: Fn, x: Ex) -> Ex: ...
@function
def reduce_seq(f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def scan_seq(f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def scan_exclusive_seq(f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def look_back(width: i64Like, first: Fn, op: Op, z: Ex, second: Fn, x: Ex) -> Ex: ...
@function
def reduce_sub(items: i64Like, op: Op, z: Ex, x: Ex) -> Ex: ...
@function
def reduce_range_seq(f: Fn, z: Ex, low: Ex, high: Ex, x: Ex) -> Ex: ...
@function
def reduce_by_index_seq(place: Fn, f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def reduce_by_index_glb(place: Fn, f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def reduce_by_index_atomic(place: Fn, f: Fn, z: Ex, x: Ex) -> Ex: ...
@function
def to_memory(space: StringLike, x: Ex) -> Ex: ...
@function
def as_vector(width: i64Like, x: Ex) -> Ex: ...
@function
def as_scalar(x: Ex) -> Ex: ...


# --- analyses -------------------------------------------------------------------------------------

Names = Set[V]


@function(merge=lambda old, new: old)
def ty(e: Ex) -> Ty: ...
@function(merge=lambda old, new: old)
def vty(v: V) -> Ty: ...
@function(merge=lambda old, new: old)
def pty(p: P) -> Ty: ...
@function(merge=lambda old, new: old)
def cod(f: Fn) -> Ty: ...
@function(merge=lambda old, new: old & new)
def fv(e: Ex) -> Names: ...
@function(merge=lambda old, new: old & new)
def fvf(f: Fn) -> Names: ...
@function(merge=lambda old, new: old & new)
def fvo(op: Op) -> Names: ...
@function(merge=lambda old, new: old)
def bvs(p: P) -> Names: ...
@function(merge=lambda old, new: old.max(new))
def rearranged(xs: Ex) -> i64: ...


keeps = relation("keeps", String)  # scalar operations whose result has the scalar of the last argument
gives = relation("gives", String, String)  # scalar operations whose result has a scalar of their own
tile = relation("tile", i64, i64)  # tile(N, n): arrays of length N may be split into chunks of n
lane_width = relation("lane_width", i64)  # widths of vectors that rules may introduce
associative = relation("associative", Op)
commutative = relation("commutative", Op)
identity = relation("identity", Op, Ex)  # x ⊕ e = x; it need not hold on the other side
neutral = relation("neutral", Op, Ex)  # also what may be counted again, as the operator is idempotent
distributes = relation("distributes", Op, Op, Ex)  # distributes(⊗, ⊕, z): (a ⊕ b) ⊗ c = a ⊗ c ⊕ b ⊗ c and z ⊗ c = z
built_in = relation("built_in", Op, String)  # an operator that is a scalar operation in other words
combines = relation("combines", Fn, Fn, Op)  # combines(f, g, op): f (s, x) = s ⊕ g x, with an associative ⊕
# acts(f, m, op, e, act): f (s, x) = act (m x, s), an action of the monoid of op and e
acts = relation("acts", Fn, Fn, Op, Ex, Fn)  # pyright: ignore[reportCallIssue]
# steady(f, e, p, op, one, on): f (s, x) = on (p, (s, f (e, x))); for n elements with pⁿ by op, from one
steady = relation("steady", Fn, Ex, Ex, Op, Ex, Fn)  # pyright: ignore[reportCallIssue]
# recalls(f, g, first, whole): f (s, x) = whole (first (s, x), x), first (whole (k, y), x) = g (k, (y, x))
recalls = relation("recalls", Fn, Fn, Fn, Fn)
# kept_within(f, g, z): f (s, x) = g (s, x) for each s that folds by f from z give, whatever the elements are
kept_within = relation("kept_within", Fn, Fn, Ex)
# kept_along(f, h, g, z): f (s, h x) = g (s, h x) for each s that folds by f of what h gives from z give, and all x
kept_along = relation("kept_along", Fn, Fn, Fn, Ex)
# tabulates(f, z, words, step, start, value, places, steps, found): from z on, value (step (words, (p, x))) =
# f (value p, x) for the places p of few states, and value start = z; steps does so for all places, found (p, ps) is
# one; no variable is free in them
tabulates = relation("tabulates", Fn, Ex, Ex, Fn, Ex, Fn, Ex, Fn, Fn)  # pyright: ignore[reportCallIssue]
# tabulates_first(f, z, h, others, whole, words, …, found): so for the first components alone, whole (value start,
# others z) = z, f (whole (value p, t), x) = whole (value (step (words, (p, x))), h (t, (value p, x)))
tabulates_first = relation("tabulates_first", Fn, Ex, Fn, Fn, Fn, Ex, Fn, Ex, Fn, Ex, Fn, Fn)  # pyright: ignore
# cascades(f, g, h, first, others, whole): whole (first z, others z) = z,
# f (whole (s, t), x) = whole (g (s, x), h (t, (s, x)))
cascades = relation("cascades", Fn, Fn, Fn, Fn, Fn, Fn)  # pyright: ignore[reportCallIssue]
distinct = relation("distinct", Ex)  # indices of which no two are one place
stage_local = relation("stage_local", V)  # binders whose array a work-group may copy to local memory
stage_private = relation("stage_private", V)  # binders whose array a work-item may copy to registers
scalar_like = relation("scalar_like", Ty)  # types without vectors at the leaves
without_floats = relation("without_floats", Ty)  # types whose leaves are whole numbers and bools
# where which rewrite of a rule matched (`lift_egraph.egraph.rule_edits.watched`)
matched = relation("matched", i64, Ex)
matched_function = relation("matched_function", i64, Fn)

EMPTY = Set[V].empty()
# the fixed names that rules introduce: no identifiers of the text form, so no binder of a program has them
ACCUMULATOR, ELEMENT = "$acc", "$x"
LANE, LEFT, RIGHT = "$lane", "$a", "$b"


def absent(p: P, e: Ex) -> egglog.Fact:
    """The capture condition: no variable of the pattern is free in the term."""
    return eq(fv(e) - bvs(p)).to(fv(e))


def absent_in_function(p: P, f: Fn) -> egglog.Fact:
    """The capture condition for a function: no variable of the pattern is free in it."""
    return eq(fvf(f) - bvs(p)).to(fvf(f))


def absent_in_operator(p: P, op: Op) -> egglog.Fact:
    """The capture condition for an operator: no variable of the pattern is free in it."""
    return eq(fvo(op) - bvs(p)).to(fvo(op))


def fresh(v: V, e: Ex) -> egglog.Fact:
    """The capture condition for a new name: it is not free in the term."""
    return fv(e).not_contains(v)


def disjoint(p: P, q: P) -> egglog.Fact:
    """The condition that two patterns share no variable, so that they may stand in one."""
    return eq(bvs(p) - bvs(q)).to(bvs(p))


def named(
    e: Ex, v: V, part: Ex, form: Callable[[Ex], Ex], where: Iterable[FactLike], *unused: FactLike
) -> Iterator[egglog.RewriteOrRule]:
    """What a rule yields for ``form(part) = let v = part in form(v)``.

    Parameters
    ----------
    where
        The conditions that say what the type of `v` is.
    unused
        The capture conditions: that `v` is not free in what is beside it.
    """
    yield egglog.rule(eq(e).to(form(part)), *where).then(v)  # the capture conditions need it to exist
    yield rewrite(form(part)).to(app(Fn.lam(P.var(v), form(Ex(v))), part), *where, *unused)


ONE_CHUNK = "one chunk is the whole array, and the rule would match its own result"
CHUNKS_OF_ONE = "what is taken one at a time is as it was, and the rule would match its own result"


def as_it_stands(xs: Ex) -> egglog.Fact:
    """The condition that no rule has made the array of another one to have it read otherwise: see `seen`.

    An operand that is no array is not as it stands where the rule has made it a name. It only steers: a rule without it
    is as sound, but rewrites its own results again and again.
    """
    return eq(rearranged(xs)).to(i64(0))


def seen(xs: Ex, *where: FactLike) -> egglog.RewriteOrRule:
    """What a rule with the condition `as_it_stands` yields for what it may rearrange."""
    return egglog.rule(*where).then(set_(rearranged(xs)).to(i64(0)))


def made(xs: Ex, *where: FactLike) -> egglog.RewriteOrRule:
    """What a rule with the condition `as_it_stands` yields for what it has rearranged.

    Both run in one iteration on a term that is new, so that the condition never holds for a rearranged one.
    """
    return egglog.rule(*where).then(set_(rearranged(xs)).to(i64(1)))


def chunked(m: i64, n: i64) -> tuple[FactLike, FactLike, FactLike]:
    """The conditions for chunks of n in arrays of length m: the phase offers n, n divides m, and there are several."""
    return tile(m, n), eq(m % n).to(i64(0)), n < m
