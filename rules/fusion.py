"""Fusing maps, and taking them apart again (fission). And how to write a rule: all that it takes is in this text.

A rule
------
A rule is a function that yields rewrites, under its law in mathematics; `map_fusion` below is a typical one.
``rewrite(left).to(right, *conditions)`` says: wherever a term has the form `left` and the conditions hold, `right` is
its equal. An e-graph holds equal terms side by side, so nothing is lost by applying a rule.

The parameters of the function are pattern variables, and their annotations are their sorts. All of these names are
imported from `lift_egraph.dsl`:

``Ex``
    A term: ``map_(f, xs)``, ``reduce_(op, z, xs)``, ``scan(op, z, xs)``, ``scan_exclusive(op, z, xs)``,
    ``zip_(xs, ys)``, ``split(n, xs)``, ``join(xss)``, ``transpose(xss)``, ``slide(size, step, xs)``,
    ``pad(left, right, boundary, xs)``, ``gather(order, xs)``, ``scatter(order, xs)``, ``iterate(n, f, xs)``,
    ``fill(n, x)``, ``at(index, xs)``, ``make_pair(a, b)``, ``component(0, ab)``, ``call1("abs", a)``,
    ``call2("add", a, b)``, ``Ex.literal("0.0", Ty.scalar("f32"))``; in lowered programs also
    ``map_level("glb", 0, f, xs)`` (or ``"wrg"``, ``"lcl"``, ``"seq"``), ``reduce_seq(f, z, xs)``,
    ``scan_seq(f, z, xs)``, ``to_memory("local", xs)``, ``as_vector(width, xs)``, ``as_scalar(xs)``. The variable `v` is
    the term ``Ex(v)``.
``Fn``
    A function: ``Fn.lam(p, b)`` is λp. b. A pattern as a function is ``Fn.map(n, f)``, of arrays of length n, or
    ``Fn.reduce(op, z, t)``, ``Fn.split(n, t)``, ``Fn.join(t)``, ``Fn.transpose(t)``, with the type t of its argument:
    ``map_(Fn.map(n, f), xss)`` is map (map f) xss. The e-graph knows that λx. map f x is such a function, too.
``P``, ``V``
    What a function binds: a variable, ``P.var(v)``, or a pair of patterns, ``P.pair(p, q)``. A new variable is
    ``V("$name", type)``; no program has names with a ``$``.
``Op``
    The operator of a ``reduce_`` or a scan: ``Op.scalar("add")``, ``Op.fn(f)``, or ``op.lift()``, which is op on the
    elements of two arrays.
``Ty``
    A type: ``Ty.scalar("f32")``, ``Ty.arr(n, t)``, ``Ty.pair(t, u)``.
``Order``
    Where the element at i comes from, for ``gather`` and ``scatter``: ``Order.reverse()``, ``Order.identity()``,
    ``Order.stride(s, m / s)`` in an array of length m, ``Order.shift(d, m)``, ``Order.then(r, q)``, which applies q to
    the index that r gives, ``Order.inverse(r)`` of a permutation, or a text such as ``"i / 2"``. An order has one of
    these forms if it does the same, however it is spelt.
``i64``, ``String``
    A length or another number, with ``+ - * / %`` (whole numbers), and a name, such as the boundary of ``pad``
    (``"clamp"``, ``"mirror"``, ``"wrap"``) or of a scalar operation.

Conditions
----------
Types and lengths: ``eq(Ty.arr(n, t)).to(ty(xs))`` finds the length n and the element type t of xs. Lengths are compared
by ``n < m`` and ``eq(m % n).to(i64(0))``. For what a rule chooses freely, the phase that runs it gives the choice:
``tile(m, n)`` holds for each n by which arrays of length m may be split, ``lane_width(w)`` for the lanes of vectors.
``*chunked(m, n)`` are all the conditions for chunks of n: ``tile(m, n)``, n divides m, and n is less.
What the types of a term imply need not be asked for: in ``map_(Fn.map(n, f), xss)`` the rows of xss have the length n.
A number that two conditions share makes the e-graph pair all arrays of that length, which can take longer than all
other rules together.

Names: a rule substitutes nothing. It uses a body as it stands, under the same binder, and ``app(Fn.lam(p, b), x)`` is
"let p = x in b". So it must see to it that no variable gets under a binder that is not its own, or away from its own:
``absent(p, e)`` says that no variable of p is free in the term e; `absent_in_function` and `absent_in_operator` say it
of functions and operators, ``fresh(v, e)`` of one variable. A condition can only ask about what the e-graph holds, so a
rule with a condition on a variable of its own first yields a rule that makes the variable wherever `left` is:
``egglog.rule(eq(e).to(left)).then(v)``, with ``e: Ex`` among the parameters; ``named(e, v, xs, form, ...)`` is all that
a rule yields that gives a part xs of a form the name v where it stands.

A rule that matches inside its own results goes on for ever: an array read backwards can be read backwards again. So
such a rule has the condition ``as_it_stands(xs)`` and yields ``seen(xs, ...)`` with the facts where it may rearrange an
array, and ``made(ys, ...)`` with those where ys is an array that it has rearranged; see `map_backwards`.

Operators: ``associative(op)``, ``commutative(op)``, ``identity(op, e)``, which is x ⊕ e = x, and ``neutral(op, z)``,
which min, max, and, or fulfil for any number z, as counting it again changes nothing; `lift_egraph.algebra` finds them.
``acts(f, m, op, one, act)``, ``combines(f, g, op)`` and ``built_in(op, name)`` are explained in ``rules/algebra.py``. A
rule that needs the first or the second says so, as floating-point results may change: ``@rule(law,
reassociates=True)``, ``commutes=True``.
What a rule does not say must be equal bit for bit: x + 0 = x takes ``signed_zero=True``, as -0 + 0 is 0, and x · 0 = 0
``nan_unsafe=True``, too, for NaN and infinities (`lift_egraph.egraph.rule.FLAGS`). ``notes={"n < m": why}`` says of a
condition that it keeps the rule from what is right but useless. ``source`` says where a rule is from, and ``phase``
when it is meant to run: ``"algorithmic"`` (if nothing is said), ``"lowering"``, ``"memory"``, or ``"simplification"``,
between all others until nothing changes: such a rule must make terms smaller.

An example
----------
A stencil maps a function over overlapping windows. This rule takes k windows at a time, which share a tile of the
array, as one needs for local memory; see `lift_egraph.rules.stencil` for more dimensions. It is a whole file,
``tiles.py``::

    from __future__ import annotations

    import egglog

    from lift_egraph.api import Macro, explain, parse_program, print_term, sketch, stage
    from lift_egraph.dsl import Ex, Fn, P, Ty, V, chunked, eq, fresh, i64, join, map_, rewrite, rule, slide, ty


    @rule(
        "map (λp. b) (slide n s xs) = join (map (λt. map (λp. b) (slide n s t)) (slide (n + (k - 1)·s) (k·s) xs)),  "
        "k | number of windows, t fresh"
    )
    def stencil_in_tiles(p: P, b: Ex, n: i64, s: i64, k: i64, a: i64, xs: Ex, t: Ty, e: Ex):
        m = (a - n) / s + 1  # the number of windows
        length = n + (k - 1) * s  # of a tile
        one = V("$tile", Ty.arr(length, t))
        left = map_(Fn.lam(p, b), slide(n, s, xs))
        where = (eq(Ty.arr(a, t)).to(ty(xs)), *chunked(m, k), 1 < k)
        yield egglog.rule(eq(e).to(left), *where).then(one)
        inside = map_(Fn.lam(p, b), slide(n, s, Ex(one)))
        yield rewrite(left).to(
            join(map_(Fn.lam(P.var(one), inside), slide(length, k * s, xs))), *where, fresh(one, b)
        )


    if __name__ == "__main__":
        program = parse_program(
            "program sums(xs: [f32]16) = map(fun w => reduce(add, 0.0, w), slide(3, 1, pad(1, 1, clamp, xs)))"
        )
        wanted = sketch.parse_nest("map 4 > map 4 > reduce 3")  # loops and their lengths, from outside to inside
        in_tiles = Macro("my tiling", "in tiles of 4", (stage("tile", (stencil_in_tiles,), wanted, tiles={16: (4,)}),))
        found = in_tiles(program.body)
        print(print_term(found.term))
        for derivation in explain(found):
            print(derivation)

Checking it
-----------
The check makes programs around the left-hand side, with types, lengths and bodies of all kinds that keep the
conditions, runs the rule alone in an e-graph, and compares what the interpreter makes of the program and of what the
rule put beside it. A rule that fires in under 95 % of its own programs fails as well, and for each condition there are
programs that break it and keep the others (``--strict`` fails where there are none; ``--mutate`` changes the rule in
all small ways, and shows which of the wrong ones no program tells from it). What passes is tried to be proved for all
sizes, where it moves, splits and joins arrays, whatever functions are mapped over them. Programs that are polynomials
run on whole 32-bit numbers too, bit for bit; the chance that a wrong rewrite of one escapes is said::

    $ lift-egraph rules check tiles.py --examples 20
    passed stencil_in_tiles: no counterexample in 20 examples, 5 of 5 conditions exercised; 8 as
    polynomials over i32, chance of an escape ...; proved; ... s
    1 rule, 0 wrong, 1 proved; ... s, seed 0

With ``chunked(a, k)``, the length of the array for the number of windows, tiles do not cover the array. The check finds
it, and shows a small program, its input, and both results::

    $ lift-egraph rules check wrong.py --examples 20
    WRONG  stencil_in_tiles: wrong after ...
        wrong.py:9: stencil_in_tiles is not sound: map (λp. b) (slide n s xs) = ...
        program example(a_f32_...: [f32]...) =
          ...
        becomes
          join(...
        for
          a_f32_... = [...]
        expected
          [...]
        found
          SizeProblem: slide: a window of ... does not fit into an array of length ...
    1 rule, 1 wrong, 0 proved; ... s, seed 0

Seeing it used
--------------
Guided search runs rules until a program satisfies a sketch; `explain` says which rule at which place led there, with
the part before and after. ``stage`` takes a name, rules of ours and yours, the sketch, and the facts for ``tile``: here
arrays of length 16 (that of the windows) may be split by 4. A `Macro` is a list of stages, each of which starts from
the program that the one before reached::

    $ python tiles.py
    join(
      map(
        fun tile => map(reduce(add, 0.0), slide(3, 1, tile)),
        slide(6, 4, pad(1, 1, clamp, xs))))
    tile, until map 4 > map 4 > reduce 3:
      1. stencil_in_tiles at the whole: map (λp. b) (slide n s xs) = join (...
           map(reduce(add, 0.0), slide(3, 1, pad(1, 1, clamp, xs)))
         = join(map(fun tile => map(reduce(add, 0.0), slide(3, 1, tile)), slide(6, 4, pad(1, 1, clamp, xs))))

A place is the way to it: ``map.f/reduce.xs`` is the array of a reduce in the function of a map. A sketch is a nest of
loops as here, or a pattern with sketches for its parts: ``sketch.map_(sketch.reduce_(), sketch.slide(3, 1))``.

A rule matches only what has its form. ``map_(Fn.map(n, f), slide(n, s, xs))`` is not in a program with
map (λw. reduce ⊕ z (map f w)) (slide n s xs), but an equal term has it after `map_fission`. So a stage also has the
rules that bring a program into form. If its sketch is not reached, ``found.term`` raises an error that names the part
of the sketch that nothing satisfies; a fact for ``tile`` may be missing. `lift_egraph.api.applications` lists what
one rule makes of a term at each place, without a sketch, and `lift-egraph rules matches` says where it almost matches
and why it fails there; `lift_egraph.rules.macros` has larger stages to start from.

In `optimize`
-------------
``lift-egraph optimize PROGRAM --rules FILE.py`` checks the rules of a file, and searches with them beside ours: those
of the phase ``algorithmic`` where it decides what stages keep in memory, and where it restructures with tiles,
``lowering`` and ``memory`` where we use such rules, and ``simplification`` in all phases. The plans of
`lift_egraph.workbench.planning.plans`, which cut loops, start from the best programs that these lead to. A rule that
has a part in the best kernel is a step of ``lift-egraph explain``, which finds it again in its file as long as that
stays as it was. In Python it is ``optimize(program, rules=[a_rule, "FILE.py"], plans=own_plans)``: `own_plans` is a
function from a stage and a device to `lift_egraph.workbench.Plan`, whose phases have your algorithmic rules, too.

A rule for the book goes into the file of its family and the tuple at its end, with a wrong twin in ``tests/rules``.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ELEMENT,
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    bvs,
    call1,
    call2,
    disjoint,
    eq,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    join,
    make_pair,
    map_,
    named,
    pty,
    reduce_,
    rewrite,
    rule,
    split,
    transpose,
    ty,
    zip_,
)


@rule("map f (map (λp. b) xs) = map (λp. f b) xs,  p not free in f", source="000 Listing 5.4")
def map_fusion(f: Fn, p: P, b: Ex, xs: Ex):
    yield rewrite(map_(f, map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, app(f, b)), xs), absent_in_function(p, f))


@rule("map f (map g xs) = map (λx. f (g x)) xs,  g a pattern, x fresh", source="000 Listing 5.4")
def map_fusion_of_pattern(e: Ex, f: Fn, g: Fn, xs: Ex, n: i64, m: i64, t: Ty):
    x = V(ELEMENT, t)
    element = eq(Ty.arr(m, t)).to(ty(xs))
    patterns = (
        (Fn.map(n, g), map_(g, Ex(x)), (fvf(g).not_contains(x),)),
        (Fn.split(n, t), split(n, Ex(x)), ()),
        (Fn.join(t), join(Ex(x)), ()),
        (Fn.transpose(t), transpose(Ex(x)), ()),
    )
    for pattern, applied, fresh_in_pattern in patterns:
        left = map_(f, map_(pattern, xs))
        yield egglog.rule(eq(e).to(left), element).then(x)
        yield rewrite(left).to(
            map_(Fn.lam(P.var(x), app(f, applied)), xs), element, fvf(f).not_contains(x), *fresh_in_pattern
        )


@rule("map (λp. g b) xs = map g (map (λp. b) xs),  g a pattern, p not free in g", source="000 Listing 5.22")
def map_fission(f: Fn, p: P, b: Ex, xs: Ex, op: Op, z: Ex, n: i64, t: Ty):
    def mapped(body: Ex) -> Ex:
        return map_(Fn.lam(p, body), xs)

    yield rewrite(mapped(join(b))).to(map_(Fn.join(t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(transpose(b))).to(map_(Fn.transpose(t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(split(n, b))).to(map_(Fn.split(n, t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(reduce_(op, z, b))).to(
        map_(Fn.reduce(op, z, t), mapped(b)), eq(t).to(ty(b)), absent(p, z), absent_in_operator(p, op)
    )
    yield rewrite(mapped(map_(f, b))).to(
        map_(Fn.map(n, f), mapped(b)), eq(Ty.arr(n, t)).to(ty(b)), absent_in_function(p, f)
    )


@rule(
    "zip (map (λp. b) xs) (map (λq. c) ys) = map (λ(p, q). (b, c)) (zip xs ys),  p not free in c, q not free in b, "
    "p and q disjoint",
    source="000 Listing 5.8",
)
def zip_of_maps(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys))).to(
        map_(Fn.lam(P.pair(p, q), make_pair(b, c)), zip_(xs, ys)), absent(p, c), absent(q, b), disjoint(p, q)
    )


@rule("zip (map (λp. b) xs) ys = map (λ(p, y). (b, y)) (zip xs ys),  y fresh", source="000 Listing 5.8, on one side")
def zip_of_map_left(e: Ex, p: P, b: Ex, xs: Ex, ys: Ex, n: i64, u: Ty):
    y = V(RIGHT, u)
    yield egglog.rule(eq(e).to(zip_(map_(Fn.lam(p, b), xs), ys)), eq(Ty.arr(n, u)).to(ty(ys))).then(y)
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), ys)).to(
        map_(Fn.lam(P.pair(p, P.var(y)), make_pair(b, Ex(y))), zip_(xs, ys)),
        eq(Ty.arr(n, u)).to(ty(ys)),
        fresh(y, b),
        bvs(p).not_contains(y),
    )


@rule("zip xs (map (λp. b) ys) = map (λ(x, p). (x, b)) (zip xs ys),  x fresh", source="000 Listing 5.8, on one side")
def zip_of_map_right(e: Ex, p: P, b: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    x = V(LEFT, t)
    yield egglog.rule(eq(e).to(zip_(xs, map_(Fn.lam(p, b), ys))), eq(Ty.arr(n, t)).to(ty(xs))).then(x)
    yield rewrite(zip_(xs, map_(Fn.lam(p, b), ys))).to(
        map_(Fn.lam(P.pair(P.var(x), p), make_pair(Ex(x), b)), zip_(xs, ys)),
        eq(Ty.arr(n, t)).to(ty(xs)),
        fresh(x, b),
        bvs(p).not_contains(x),
    )


@rule(
    "map (λ(q, r). b) (zip (map (λp. c) xs) ys) = map (λ(p, r). let q = c in b) (zip xs ys),  p not free in b, r not "
    "free in c, p and r disjoint",
    source="000 Listings 5.4 and 5.8: fusion with one side",
)
def map_fusion_of_side(p: P, q: P, r: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(P.pair(q, r), b), zip_(map_(Fn.lam(p, c), xs), ys))).to(
        map_(Fn.lam(P.pair(p, r), app(Fn.lam(q, b), c)), zip_(xs, ys)), absent(p, b), absent(r, c), disjoint(p, r)
    )


@rule("map (λp. let q = c in b) xs = map (λq. b) (map (λp. c) xs),  p not free in b", source="000 Listing 5.22")
def map_fission_of_let(p: P, f: Fn, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(f, c)), xs)).to(map_(f, map_(Fn.lam(p, c), xs)), absent_in_function(p, f))


@rule("map (λp. let q = c in b) xs = map (λ(q, p). b) (zip (map (λp. c) xs) xs),  p and q disjoint", source="new")
def map_fission_of_let_beside(p: P, q: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(Fn.lam(q, b), c)), xs)).to(
        map_(Fn.lam(P.pair(q, p), b), zip_(map_(Fn.lam(p, c), xs), xs)), disjoint(p, q)
    )


@rule(
    "map (λp. let q = c in b) xs = let s = map (λp. c) xs in map (λ(q, p). b) (zip s xs),  p and q disjoint, s fresh",
    source="new: what is computed of all elements is a stage of its own",
)
def map_of_let_named(e: Ex, p: P, q: P, b: Ex, c: Ex, xs: Ex, n: i64, t: Ty, u: Ty):
    left, where = map_(Fn.lam(p, app(Fn.lam(q, b), c)), xs), (eq(t).to(pty(q)), eq(Ty.arr(n, u)).to(ty(xs)))
    s = V.of("column", q, n)
    yield egglog.rule(eq(e).to(left), *where).then(s)  # the conditions need it to exist
    yield rewrite(left).to(
        app(Fn.lam(P.var(s), map_(Fn.lam(P.pair(q, p), b), zip_(Ex(s), xs))), map_(Fn.lam(p, c), xs)),
        *where,
        *(disjoint(p, q), fv(b).not_contains(s), fv(xs).not_contains(s)),
    )


@rule(
    "reduce ⊕ z (map g xs) = let v = map g xs in reduce ⊕ z v,  v fresh;  the same for either side of a zip",
    source="new: what is computed and then folded, by its name",
)
def name_mapped(e: Ex, g: Fn, op: Op, z: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    made, v = map_(g, xs), V("$made", Ty.arr(n, t))
    array = eq(Ty.arr(n, t)).to(ty(made))
    for form, unused in (
        (lambda a: reduce_(op, z, a), ()),
        (lambda a: reduce_(op, z, zip_(a, ys)), (fresh(v, ys),)),
        (lambda a: reduce_(op, z, zip_(ys, a)), (fresh(v, ys),)),
    ):
        yield from named(e, v, made, form, (array,), *unused, fresh(v, z), fvo(op).not_contains(v))


@rule(
    "map (λ(p, q). b) (zip xs ys) = map (λq. b) ys,  p not free in b;  the same for q and xs",
    source="new: Listing 5.8, where one side is not read",
)
def map_of_one_side(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    left = map_(Fn.lam(P.pair(p, q), b), zip_(xs, ys))
    yield rewrite(left).to(map_(Fn.lam(q, b), ys), absent(p, b))
    yield rewrite(left).to(map_(Fn.lam(p, b), xs), absent(q, b))


@rule(
    "map (λp. map f (zip (map g a) b)) xs = map (λ(s, p). map f (zip s b)) (zip (map (λp. map g a) xs) xs),  s fresh",
    source="new",
)
def map_fission_of_side(e: Ex, p: P, f: Fn, g: Fn, a: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    side = map_(g, a)
    left, rows = map_(Fn.lam(p, map_(f, zip_(side, b))), xs), eq(Ty.arr(n, t)).to(ty(side))
    s = V("$side", Ty.arr(n, t))
    yield egglog.rule(eq(e).to(left), rows).then(s)
    each = Fn.lam(P.pair(P.var(s), p), map_(f, zip_(Ex(s), b)))
    unused = fresh(s, b), fvf(f).not_contains(s), bvs(p).not_contains(s)
    yield rewrite(left).to(map_(each, zip_(map_(Fn.lam(p, side), xs), xs)), rows, *unused)


@rule(
    "map (λp. map f (zip a (map g b))) xs = map (λ(s, p). map f (zip a s)) (zip (map (λp. map g b) xs) xs),  s fresh",
    source="new",
)
def map_fission_of_second_side(e: Ex, p: P, f: Fn, g: Fn, a: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    side = map_(g, b)
    left, rows = map_(Fn.lam(p, map_(f, zip_(a, side))), xs), eq(Ty.arr(n, t)).to(ty(side))
    s = V("$second", Ty.arr(n, t))
    yield egglog.rule(eq(e).to(left), rows).then(s)
    each = Fn.lam(P.pair(P.var(s), p), map_(f, zip_(a, Ex(s))))
    unused = fresh(s, a), fvf(f).not_contains(s), bvs(p).not_contains(s)
    yield rewrite(left).to(map_(each, zip_(map_(Fn.lam(p, side), xs), xs)), rows, *unused)


@rule(
    "map (λp. let v = reduce ⊕ z a in b) xs = map (λ(s, p). let v = reduce ⊕ z s in b) (zip (map (λp. a) xs) xs),  s "
    "fresh",
    source="new",
)
def map_fission_of_reduced(e: Ex, p: P, v: V, op: Op, z: Ex, a: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    left = map_(Fn.lam(p, app(Fn.lam(P.var(v), b), reduce_(op, z, a))), xs)
    array, s = eq(Ty.arr(n, t)).to(ty(a)), V("$reduced", Ty.arr(n, t))
    yield egglog.rule(eq(e).to(left), array).then(s)  # the conditions need it to exist
    yield rewrite(left).to(
        map_(
            Fn.lam(P.pair(P.var(s), p), app(Fn.lam(P.var(v), b), reduce_(op, z, Ex(s)))),
            zip_(map_(Fn.lam(p, a), xs), xs),
        ),
        array,
        fresh(s, b),
        fresh(s, z),
        fvo(op).not_contains(s),
        bvs(p).not_contains(s),
    )


@rule("map (reduce ⊕ z) xss = map (λx. reduce ⊕ z x) xss,  x fresh", source="new: eta, from right to left")
def map_of_reduction(e: Ex, op: Op, z: Ex, xss: Ex, n: i64, t: Ty):
    x = V(ELEMENT, t)
    left, rows = map_(Fn.reduce(op, z, t), xss), eq(Ty.arr(n, t)).to(ty(xss))
    yield egglog.rule(eq(e).to(left), rows).then(x)
    yield rewrite(left).to(
        map_(Fn.lam(P.var(x), reduce_(op, z, Ex(x))), xss), rows, fresh(x, z), fvo(op).not_contains(x)
    )


@rule("g (reduce ⊕ z xs) a … = let x = reduce ⊕ z xs in g x a …,  g an operation, x fresh", source="new")
def let_reduction(e: Ex, name: String, op: Op, z: Ex, xs: Ex, a: Ex, t: Ty):
    total, x, second = reduce_(op, z, xs), V("$total", t), V("$second", t)
    forms = (
        (x, lambda r: call1(name, r), ()),
        (x, lambda r: call2(name, r, a), (fresh(x, a),)),
        (second, lambda r: call2(name, a, r), (fresh(second, a),)),  # the first operand may have been a reduction too
    )
    for x, form, unused in forms:
        yield from named(e, x, total, form, (eq(t).to(ty(total)),), *unused)


@rule("g (let p = c in b) a … = let p = c in g b a …,  g an operation, p not free in a", source="new")
def let_outwards(name: String, p: P, b: Ex, c: Ex, a: Ex):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(p, body), c)

    yield rewrite(call1(name, let(b))).to(let(call1(name, b)))
    yield rewrite(call2(name, let(b), a)).to(let(call2(name, b, a)), absent(p, a))
    yield rewrite(call2(name, a, let(b))).to(let(call2(name, a, b)), absent(p, a))


fusion_rules = (map_fusion, zip_of_maps)
zip_rules = (zip_of_map_left, zip_of_map_right)
side_fusion_rules = (map_fusion_of_side,)
let_rules = (map_fission_of_let,)
reduced_rules = (map_fission_of_reduced,)
named_rules = (map_of_let_named,)
pattern_fusion_rules = (map_fusion_of_pattern,)
fission_rules = (map_fission,)
reduction_rules = (map_of_reduction,)
second_side_rules = (map_fission_of_second_side,)
epilogue_rules = (let_reduction, let_outwards, map_fission_of_let_beside, map_of_one_side, map_fission_of_side)
