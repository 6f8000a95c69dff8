"""Taking iterations apart. Where the length of the array changes, the e-graph holds each step by itself."""

from __future__ import annotations

from lift_egraph.dsl import Ex, Fn, app, i64, iterate, iterate_step, rewrite, rule


@rule(
    "iterate n f xs = iterate (n - 1) f (iterate 1 f xs),  n > 1",
    source="000 Figure 2.9a",
    notes={"n > 1 becomes n >= 1": "the rule would match its own result"},
)
def iterate_decomposition(n: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(n, f, xs)).to(iterate(n - 1, f, iterate(1, f, xs)), n > 1)


@rule("iterate i f (iterate j f xs) = iterate (i + j) f xs", source="000 Figure 2.9a")
def iterate_composition(i: i64, j: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(i, f, iterate(j, f, xs))).to(iterate(i + j, f, xs))


@rule("iterate 1 f xs = f xs,  iterate 0 f xs = xs")
def iterate_once(f: Fn, xs: Ex):
    for once in (iterate(1, f, xs), iterate_step(f, xs)):
        yield rewrite(once).to(app(f, xs))
    yield rewrite(iterate(0, f, xs)).to(xs)


iteration_rules = (iterate_decomposition, iterate_composition, iterate_once)
