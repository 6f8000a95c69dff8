"""What the first phase of the search makes of programs with several stages."""

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.baseline import naive_term
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided import sketch
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.layout import is_layout
from lift_egraph.language.nesting import check_nesting
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.additions import Additions
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.exploration.foreseen import ranked
from lift_egraph.workbench.exploration.search import _Search, search  # pyright: ignore[reportPrivateUsage]
from lift_egraph.workbench.exploration.stage_cut import cut
from lift_egraph.workbench.exploration.stages import (
    has_invariants,
    has_stages,
    joined,
    kept_bytes,
    of_others,
    rests,
    twins,
)
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.phases import Found, Leg, Start, invariants_phase, stages_phase
from lift_egraph.workbench.planning.plan import Plan, Step
from tests.depth import in_turn

ENOUGH = 10_000.0  # seconds: what is told of counts is told on a busy machine, too

# a program, and how many maps that compute are in its cheapest version
STAGES = {
    "an array used twice, in another order": (
        "program p(x: [f32]8) = let y = map(fun v => v * v, x) in map(add, zip(y, gather(reverse, y)))", 1),
    "two stencils": (
        """program p(x: [f32]8) = map(fun w => at(0, w) - at(2, w), slide(3, 1, pad(1, 1, mirror,
             map(fun w => at(0, w) + at(1, w), slide(2, 1, pad(0, 1, wrap, x))))))""", 1),
    "a row without its mean, and the sum of its squares": (
        """program p(X: [[f32]4]3) = map(fun row => let d = map(fun v => v - at(0, row), row) in
             let s = reduce(add, 0.0, map(fun v => v * v, d)) in map(fun v => v * s, d), X)""", 3),
    "a product that each row of the next one reads": (
        """program p(W: [[f32]4]4, x: [f32]4) =
             let h = map(fun row => reduce(add, 0.0, map(mul, zip(row, x))), W) in
             map(fun row => reduce(add, 0.0, map(mul, zip(row, h))), W)""", 4),
}  # fmt: skip


@pytest.mark.parametrize("what", STAGES)
def test_cheap_steps_are_computed_again_and_dear_ones_are_kept(what: str):
    text, maps = STAGES[what]
    program = parse_program(text)
    assert has_stages(program.body)
    *_, reached = run_phase(program.body, stages_phase(Limits(iterations=8)))
    found = best_terms(reached.graph, reached.root, StructuralCost(), 6, key=skeleton)
    computing = [t for t in ir.subterms(found[0].term) if isinstance(t, ir.Map) and not is_layout(t.function)]
    assert len(computing) == maps
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    assert all(np.array_equal(evaluate(f.term, inputs), expected) for f in found)


@pytest.mark.parametrize(
    "body", ["map(fun r => reduce(add, 0.0, map(mul, zip(r, x))), A)", "reduce(add, 0.0, map(abs, join(A)))"]
)
def test_a_nest_of_loops_is_one_stage(body: str):
    assert not has_stages(parse_program(f"program p(A: [[f32]4]4, x: [f32]4) = {body}").body)


def test_each_reduction_by_index_is_a_stage():
    program = parse_program(
        """program p(x: [i32]32 in 0..8) = let y = reduceByIndex(add, fill(8, 0), x, map(fun v => v + 1, x)) in
             reduceByIndex(max, fill(4, 0), map(fun v => v / 32, y), y)"""
    )
    parts = cut(program.body)
    assert parts is not None
    assert [type(stage) for stage in parts.stages.values()] == [ir.ReduceByIndex, ir.ReduceByIndex]
    assert alpha_equal(parts.joined(parts.stages), program.body)


def test_stages_that_compute_alike_are_searched_once():
    program = parse_program(
        """program p(x: [f32]8, y: [f32]8) =
             let f = fun a => map(fun w => w[0] + w[1], slide(2, 1, pad(0, 1, wrap, a))) in
             let g = fun (a, b) => map(mul, zip(a, b)) in
             map(add, zip(f(g(x, x)), map(sub, zip(f(g(x, y)), f(g(y, y))))))"""
    )
    parts = cut(program.body)
    assert parts is not None
    found = twins(parts)
    assert len(parts.stages) - len(found) == 5  # a square, another product, one stencil, and two sums
    for stage, (first, names) in found.items():
        leg = Leg("algorithmic", parts.stages[first], 0, "cpu")
        other = of_others(Found(1.0, parts.stages[first], (leg,)), names)
        assert alpha_equal(other.term, parts.stages[stage])
        assert alpha_equal(other.way[0].term, parts.stages[stage])


def test_a_stage_of_two_versions_of_a_program_is_searched_once(monkeypatch: pytest.MonkeyPatch):
    """Also where it reads another array there; of its plans the rest is followed."""
    versions = [
        parse_program(f"program p(x: [f32]64, y: [f32]64) = let a = map(exp, {array}) in scan(add, 0.0, a)")
        for array in ("x", "y")
    ]
    tried: list[tuple[str, str]] = []
    names = "lanes", "columns", "blocking", "packing"

    def follow(look: _Search, plan: Plan, start: Start, _: bool):
        (array,) = {t.name for t in ir.subterms(start[0]) if isinstance(t, ir.Input)}
        tried.append((plan.steps[0].name, array))
        yield look.naive(replace(versions[0], body=start[0]))

    made = [(Plan((Step(name, sketch.ANY, {}),), ()), False) for name in names]
    monkeypatch.setattr(_Search, "plans", lambda *_: iter(made))
    monkeypatch.setattr(_Search, "followed", follow)
    look = _Search(POCL, Budget(ENOUGH), StructuralCost(), ())
    for depth, version in ((0, versions[0]), (2, versions[1])):
        begun = look.begun(version, (version.body, ()))
        assert begun is not None
        for k in range(depth + 1):
            found = [item for item in begun.round(k) if isinstance(item, Found)]
        assert {t for t in ir.subterms(found[0].term) if isinstance(t, ir.Input)} == {version.inputs[depth // 2]}
    assert [name for name, array in tried if array in ("x", "y")] == list(names)


COSINE = """program p(X: [[f32]4]3, Y: [[f32]4]5) = map(fun x => map(fun y =>
    reduce(add, 0.0, map(mul, zip(x, y))) * (1.0 + reduce(add, 0.0, map(fun b => b * b, y))), Y), X)"""


def test_what_the_outer_loop_does_not_change_is_computed_before_it():
    program = parse_program(COSINE)
    assert has_invariants(program.body)
    *_, reached = run_phase(program.body, invariants_phase(Limits(iterations=8)))
    best, *_ = best_terms(reached.graph, reached.root, StructuralCost(), 4, key=skeleton)
    parts = cut(best.term)
    assert parts is not None
    assert [str(t.type) for t in parts.stages] == ["[f32]5", "[[f32]5]3"]
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(best.term, inputs), evaluate(program.body, inputs))


@pytest.mark.parametrize("text", [*(text for text, _ in STAGES.values()), COSINE.replace("b * b, y", "b * b, x")])
def test_loops_without_invariants(text: str):
    assert not has_invariants(parse_program(text).body)


CUT = """program p(A: [[f32]8]8) =
  let (m, s) = (reduce(max, 0.0, map(abs, join(A))), reduce(add, 0.0, map(abs, map(reduce(add, 0.0), A)))) in
  let y = map(fun r => let y = map(fun v => v - m, r) in map(fun v => v / s, y), A) in
  (m, map(map(fun w => at(0, w) * s), map(slide(2, 1), gather(reverse, y))))"""


def test_stages_are_programs_that_make_up_the_whole():
    program = parse_program(CUT)
    parts = cut(program.body)
    assert parts is not None
    alone = [parts.program(stage, program) for stage in parts.stages]
    assert len(alone) == 5
    assert all(not ir.free_variables(p.body) for p in alone)
    whole = parts.joined(parts.stages)
    assert alpha_equal(whole, program.body)
    naive = {stage: naive_term(p).body for stage, p in zip(parts.stages, alone, strict=True)}
    lowered = parts.joined(naive)
    check_nesting(lowered)
    inputs = random_inputs(program, 0, "integer")
    found, wanted = (leaves_of(evaluate(term, inputs)) for term in (lowered, program.body))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted, strict=True))
    assert cut(parse_program("program p(x: [f32]8) = map(abs, x)").body) is None
    let_inside = "map(add, let y = map(abs, x) in zip(y, gather(reverse, y)))"
    assert cut(parse_program(f"program p(x: [f32]8) = {let_inside}").body) is None


def test_a_loop_of_one_work_item_is_a_stage_beside_others():
    text = """program p(x: [f32]64) =
      let y = scanSeq(fun (s, v) => s * s * 0.1 + v, 0.0, map(abs, x)) in map(fun v => v * 2.0, y)"""
    parts = cut(parse_program(text).body)
    assert parts is not None
    assert [type(stage) for stage in parts.stages.values()] == [ir.ScanSeq, ir.Map]


ITERATED = """program p(A: [[f32]8]8, x: [f32]8) =
  map(abs, iterate(3, fun v =>
    let y = map(fun r => reduce(add, 0.0, map(mul, zip(r, v))), A) in
    let m = reduce(max, 0.0, map(abs, y)) in
    map(fun (e, w) => e - m * w, zip(y, gather(reverse, v))), x))"""


def test_stages_of_the_steps_of_an_iterate_run_so_often():
    program = parse_program(ITERATED)
    parts = cut(program.body)
    assert parts is not None
    assert sorted(parts.times.values()) == [1, 3, 3, 3]
    alone = {stage: parts.program(stage, program) for stage in parts.stages}
    assert not any(isinstance(t, ir.Iterate) or ir.free_variables(p.body) for p in alone.values() for t in [p.body])
    assert alpha_equal(parts.joined(parts.stages), program.body)
    lowered = parts.joined({stage: naive_term(p).body for stage, p in alone.items()})
    check_nesting(lowered)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(lowered, inputs), evaluate(program.body, inputs))


def test_a_phase_takes_several_stages_in_the_order_of_each():
    program = parse_program("program p(x: [f32]8) = let y = map(abs, x) in map(neg, y)")
    parts = cut(program.body)
    assert parts is not None

    def found(stage: ir.Input, *names: str) -> Found:
        return Found(
            1.0, parts.stages[stage], tuple(Leg(n, parts.stages[stage], i, "gpu") for i, n in enumerate(names))
        )

    first, second = parts.stages
    ways = {first: found(first, "groups", "tiling", "tree"), second: found(second, "tiling", "columns", "tree")}
    legs = joined(parts, ways, (program.body, ())).way
    assert [(leg.name, leg.iterations) for leg in legs] == [("groups", 0), ("tiling", 1), ("columns", 1), ("tree", 2)]


@pytest.mark.parametrize(
    ("body", "stages"),
    [
        ("iterate(2, map(abs), x)", 1),  # another program than its step
        ("iterate(1, map(abs), x)", None),
        ("iterate(2, fun (v: [f32]n) => map(fun p => at(0, p) + at(1, p), split(2, v)), x)", None),
    ],
)
def test_an_iterate_of_one_stage(body: str, stages: int | None):
    parts = cut(parse_program(f"program p(x: [f32]8) = {body}").body)
    assert (parts and len(parts.stages)) == stages


def test_a_long_fold_beside_larger_stages_is_no_rest_where_one_work_item_would_take_it():
    text = (
        "program p(x: [f32]40000, A: [[f32]4000]400) = let m = reduce(add, 0.0, x) in "
        "map(fun row => reduce(add, m, map(fun a => a * a, row)), A)"
    )
    parts = cut(parse_program(text).body)
    assert parts is not None
    (fold,) = rests(parts, POCL)
    assert isinstance(parts.stages[fold], ir.Reduce)
    assert rests(parts, NVIDIA) == []


def test_a_scan_begins_with_a_fold_of_the_same_in_its_own_stage():
    operator = "fun ((a, b), (c, d)) => (c * a, c * b + d)"
    pairs = "map(fun v => (v, v + 1), {})"
    text = (
        f"program p(x: [i32]64) = let s = scanExclusive({operator}, reduce({operator}, (1, 0), "
        f"{pairs.format('slice(0, 3, x)')}), {pairs.format('slice(3, 61, x)')}) in map(fun (a, b) => a - b, s)"
    )
    program = parse_program(text)
    parts = cut(program.body)
    assert parts is not None
    scan, _ = parts.stages.values()
    assert isinstance(scan, ir.ScanExclusive)
    assert isinstance(scan.initial, ir.Reduce)
    assert scan.initial.operator == scan.operator  # by its names, too: what is neutral for one is for the other
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(parts.joined(parts.stages), inputs), evaluate(program.body, inputs))


def test_lets_in_what_a_fold_begins_with_are_no_stages():
    text = (
        "program p(x: [f32]64) = let s = scan(max, let (a, b) = (0.5, 2.0) in a, x) in "
        "reduce(add, 0.0, map(fun (v, w) => v * w, zip(s, x)))"
    )
    parts = cut(parse_program(text).body)
    assert parts is not None
    assert len(parts.stages) == 2


@pytest.mark.parametrize(
    ("leads", "at_once", "later"),
    [(0, [0], ["as it is", 1, 2]), (1, [0, 1], ["as it is", 2]), (None, [0, 1, 2, "as it is"], [])],
    ids=["the first", "the second", "none"],
)
def test_no_plan_of_a_stage_is_followed_twice(
    monkeypatch: pytest.MonkeyPatch, leads: int | None, at_once: list[object], later: list[object]
):
    tried: list[object] = []
    stage = parse_program("program p(x: [f32]8) = map(abs, x)")
    found, plans = Found(0.0, stage.body, ()), [Plan((), (n,)) for n in range(3)]

    def follow(_: object, plan: Plan, *rest: object):
        tried.append(plan.widths[0])
        yield from [found] if plan.widths[0] == leads else []

    monkeypatch.setattr(_Search, "plans", lambda *_: ((plan, False) for plan in plans))
    monkeypatch.setattr(_Search, "followed", follow)
    monkeypatch.setattr(_Search, "as_it_is", lambda *_: tried.append("as it is") or iter(()))
    look = _Search(POCL, Budget(10), StructuralCost(), ())
    for found_by, expected in (look.at_once, at_once), (look.sparing.shallow, later):
        list(found_by(stage, float("inf")))
        assert tried == expected
        tried.clear()
    list(look.at_once(stage, float("-inf")))
    assert tried == ["as it is"]  # there was no time for plans


@in_turn(3)
def test_groups_compute_again_what_they_cannot_keep():
    text = """program p(X: [[f32]{0}]256) = map(fun x => let m = reduce(max, -9.0, x) in
      let e = map(fun v => exp(v - m), x) in let t = reduce(add, 0.0, e) in map(fun v => v / t, e), X)"""
    kept = [kept_bytes(parse_program(text.format(n)).body) for n in (1024, 50257)]
    assert kept == [4 * 1024, 4 * 50257]
    assert kept[0] <= NVIDIA.local_memory < kept[1]
    found = search(parse_program(text.format(50257)), NVIDIA, Budget(10), StructuralCost())
    ways = ([leg.name for leg in item.way] for item in found if isinstance(item, Found))
    assert next(way for way in ways if "groups" in way) == ["stages", "padding", "groups", "sharing"]


def test_stages_whose_lengths_nothing_divides_begin_in_parts():
    program = parse_program(
        """program p(A: [[f32]101]101, x: [f32]101) =
             let y = map(fun row => reduce(add, 0.0, map(mul, zip(row, x))), A) in
             let s = reduce(add, 0.0, y) in map(fun (a, b) => a + s * b, zip(x, y))"""
    )
    names: list[str] = []
    for item in search(program, POCL, Budget(10), StructuralCost()):
        if isinstance(item, Found) and any(leg.name == "lanes" for leg in item.way):
            break
        names += [] if isinstance(item, Found | Tunable) else [item.name]
    assert "remainders" in names
    assert not {"stages", "memory"} & {*names}  # they take seconds where there are many


def test_a_version_that_is_padded_has_plans_beside_one_in_parts():
    """What one version names, and two folds read, is computed twice in the other, whose length has a rest."""
    program = parse_program("""program p(P: [[f32]1800]500) =
      map(fun p => let r = map(fun (a, b) => log(b / a), zip(slice(0, 1799, p), slice(1, 1799, p))) in
        let m = reduce(add, 0.0, r) / 1799.0 in reduce(add, 0.0, map(fun x => (x - m) * (x - m), r)), P)""")
    found = (item for item in search(program, NVIDIA, Budget(10), StructuralCost()) if isinstance(item, Found))
    planned = next(item.way for item in found if item.way[-1].name not in ("lowering", "memory"))
    assert [leg.name for leg in planned] == ["padding", "sub_groups", "sharing"]


def test_stages_are_ranked_with_what_plans_lead_to_but_for_copies_in_other_memory():
    program = parse_program("program p(x: [f32]64) = map(abs, x)")
    term = parse_program("program p(x: [f32]64) = mapGlb(0, abs, x)").body
    assert isinstance(term, ir.MapLevel)
    terms = term, replace(term, level=ir.SEQ), replace(term, level=ir.Level("glb", 1))
    names = "vector_levels", "lowering", "memory"
    found = [Found(0.0, t, (Leg(name, t, 0, "cpu"),)) for t, name in zip(terms, names, strict=True)]
    assert {f.way[-1].name for f in ranked(program, found, POCL)} == {"vector_levels", "lowering"}


def test_a_stage_of_no_elements_is_ranked_as_well():
    stage = parse_program("program p(xs: [f32]0) = map(fun x => x * 2.0, xs)")
    terms = [parse_program(f"program p(xs: [f32]0) = {m}(fun x => x * 2.0, xs)").body for m in ("mapSeq", "mapGlb(0)")]
    found = [Found(1.0, term, (Leg("lowering", term, 1, "gpu"),)) for term in terms]
    assert ranked(stage, found, NVIDIA) == found


def test_other_terms_of_small_stages_come_last(monkeypatch: pytest.MonkeyPatch):
    program = parse_program("program p(x: [f32]4096, y: [f32]64) = (map(exp, x), map(abs, y))")

    def terms(look: _Search, alone: ir.Program, _: float):
        naive = look.naive(alone)
        assert isinstance(naive.term, ir.MapLevel)
        yield from (naive, replace(naive, term=replace(naive.term, level=ir.SEQ)))

    for name in ("at_once", "shallow", "restructured_stage"):
        monkeypatch.setattr(_Search, name, terms)
    begun = _Search(POCL, Budget(10), StructuralCost(), ()).begun(program, (program.body, ()))
    assert begun is not None
    counts = [sum(1 for item in begun.round(depth) if isinstance(item, Found)) for depth in range(4)]
    assert counts == [1, 1, 2, 3]  # the best of each stage, and then those with another term of one


def test_all_plans_of_the_users_are_put_together_before_others_are_followed(monkeypatch: pytest.MonkeyPatch):
    program = parse_program("program p(x: [f32]64, y: [f32]64) = (map(exp, x), map(abs, y))")
    levels = {"lanes": ir.Level("glb", 0), "columns": ir.SEQ, "blocking": ir.Level("glb", 1), "packing": ir.SEQ}
    tried: list[str] = []

    def follow(look: _Search, plan: Plan, start: Start, _: bool):
        tried.append(name := plan.steps[0].name)
        naive = look.naive(replace(program, body=start[0])).term
        assert isinstance(naive, ir.MapLevel)
        term = replace(naive, level=levels[name])
        yield Found(0.0, term, (Leg(name, term, 0, "cpu"),))

    made = [(Plan((Step(name, sketch.ANY, {}),), ()), name != "packing") for name in levels]  # others are the user's
    monkeypatch.setattr(_Search, "plans", lambda *_: iter(made))
    monkeypatch.setattr(_Search, "followed", follow)
    look = _Search(POCL, Budget(10, stages_share=0.0), StructuralCost(), (), additions=Additions(plans=lambda *_: ()))
    begun = look.begun(program, (program.body, ()))
    assert begun is not None
    ways = {frozenset(leg.name for leg in item.way) for item in begun.round(0) if isinstance(item, Found)}
    assert sorted(tried) == sorted(2 * ["lanes", "columns", "blocking"])
    assert {"lanes", "columns", "blocking"} < frozenset().union(*ways)
    assert len([way for way in ways if len(way) == 2]) >= 3  # each of one stage by each of the other
    list(begun.round(2))
    assert "packing" not in tried  # there is no time for ours


@pytest.mark.parametrize(("rows", "has_plans"), [(128, True), (131, True), (37, False)])
def test_products_of_several_stages_have_plans_where_blocks_divide_them_or_almost(rows: int, has_plans: bool):
    program = parse_program(
        f"""program p(A: [[f32]64]{rows}, B: [[f32]64]64, C: [[f32]64]64) =
             let times = fun (X, Y) => map(fun x => map(fun y => reduce(add, 0.0, map(mul, zip(x, y))), Y), X) in
             let X = times(A, B) in let s = map(fun x => reduce(max, 0.0, x), X) in (times(X, C), s)"""
    )
    begun = _Search(POCL, Budget(10), StructuralCost(), (8,)).begun(program, (program.body, ()))
    assert begun is not None
    assert begun.has_plans == has_plans
