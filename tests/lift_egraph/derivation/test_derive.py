"""Derivations: chains of single-rule steps, each of which replays and keeps the result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph.api import alpha_equal, equal_values, evaluate, parse_program, programs, rules, specialise
from lift_egraph.codegen.devices import POCL
from lift_egraph.derivation.derive import Derivation, Step, derive, explain, explain_stage, replay
from lift_egraph.derivation.parts import abridged
from lift_egraph.derivation.steps import World, applications
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.operators import uses_in
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.saturate import Limits, Phase, run_phase
from lift_egraph.egraph.scratch import Scratch
from lift_egraph.errors import SearchProblem
from lift_egraph.guided.sketch import ANY, call, map_seq, nest, reduce_seq
from lift_egraph.guided.stages import Guided, guide
from lift_egraph.language import ir
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.rules.macros import Macro, register_blocking_2d, stage, vectorised_loads
from lift_egraph.rules.simplification import apply_pattern, join_of_split, transpose_of_transpose
from lift_egraph.rules.stages import generate_by_map
from lift_egraph.workbench.changes.cascades import cascade_steps
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.planning.plan import planned_phase
from tests.depth import in_turn

pytestmark = pytest.mark.usefixtures("in_process")

MM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})
LOWER = stage(
    "lower",
    (*rules.reduction.loop_rules, rules.opencl_parallel.map_to_seq),
    nest(map_seq(), map_seq(), reduce_seq(), map_seq(), map_seq(), call("add", ANY, call("mul"))),
)
BLOCKED = register_blocking_2d((8, 8), (4, 4), 8) + Macro("lower", "loops", (LOWER,))


@pytest.fixture(scope="module")
def blocked() -> tuple[Guided, list[Derivation]]:
    found = BLOCKED(MM.body)
    return found, list(explain(found))


def test_every_stage_is_a_chain_from_its_seed_to_its_term(blocked: tuple[Guided, list[Derivation]]):
    found, derivations = blocked
    seed: ir.Expr = MM.body
    for stage_, derivation in zip(found.stages, derivations, strict=True):
        now = seed
        for step in derivation.steps:
            assert alpha_equal(step.before, now)
            assert not alpha_equal(step.before, step.after)
            now = step.after
        assert stage_.term is not None
        assert alpha_equal(now, stage_.term)
        seed = stage_.term


def test_every_step_replays_and_keeps_the_result(blocked: tuple[Guided, list[Derivation]]):
    inputs = random_inputs(MM, 0, "integer")
    expected = evaluate(MM.body, inputs)
    for derivation in blocked[1]:
        for step in derivation.steps:
            assert replay(step, derivation.phase), step
            assert equal_values(evaluate(step.after, inputs), expected), step


def test_a_step_of_another_rule_or_at_another_place_does_not_replay(blocked: tuple[Guided, list[Derivation]]):
    derivation = blocked[1][0]
    first, second, *_ = derivation.steps
    phase = derivation.phase
    assert not replay(replace(first, rule=rules.fusion.map_fission), phase)
    assert not replay(replace(first, path=second.path), phase)
    assert not replay(replace(first, after=second.after), phase)


def test_the_tiling_macro_is_two_splits_a_fission_and_an_interchange(blocked: tuple[Guided, list[Derivation]]):
    names = [step.rule.name for step in blocked[1][0].steps]
    assert sorted(names) == ["map_fission", "map_map_interchange", "split_join", "split_join"]
    text = str(blocked[1][0])
    assert "1. split_join at the whole: map (λp. b) xs = join" in text
    assert "= join(map(map(fun row =>" in text


def test_a_rule_that_is_needed_twice_gives_two_steps():
    program = parse_program("program twice(xs: [f32]8, ys: [f32]8) = (map(abs, xs), map(abs, ys))")
    found = guide(program.body, (vectorised_loads(4).stages[0],))
    (derivation,) = explain(found)
    assert [s.rule.name for s in derivation.steps] == ["vectorise_map"]
    lowered: tuple[Rule, ...] = (rules.opencl_parallel.map_to_seq,)
    both = stage("lower", lowered, ANY)
    sketch = replace(both, sketch=call("tuple", map_seq(), map_seq()))
    (derivation,) = explain(guide(program.body, (sketch,)))
    assert [(s.rule.name, s.path) for s in derivation.steps] == [("map_to_seq", (0,)), ("map_to_seq", (1,))]


def test_one_application_goes_before_many_of_another_rule():
    # a chunk may be bound by the name that its array has outside: with it an e-graph has the maps apart everywhere
    apart, whole = (
        parse_program(f"program p(A: [[[f32]3]4]16) = join(map(fun xs => {rows}, split(8, A)))").body
        for rows in (
            "join(map(fun ys => map(map(reduce(add, 0.0)), map(map(map(abs)), ys)), split(8, xs)))",
            "map(fun a => map(fun b => reduce(add, 0.0, map(abs, b)), a), xs)",
        )
    )
    needed = (*rules.fission_rules, *rules.one_chunk_rules)
    phase = Phase("rows", needed, rules.lets_kept, {8: (8,)}, limits=Limits(iterations=4))
    found = list(derive(whole, apart, phase))
    steps = [item.rule.name for item in found if isinstance(item, Step)]
    assert steps == ["map_fission", "map_in_one_chunk", "map_fission"]
    assert not any("reordering" in item for item in found if isinstance(item, str))


@in_turn(2)
def test_what_is_left_out_in_two_places_is_not_put_in_at_others_first() -> None:
    """A rule that leaves out what is bound and not used also puts that in wherever there is such a name."""
    step = "let k = min(max(c, 0), 3) + select(x > 0.2, 1, -1) in (k, select(k == 3, true, select(k == 0, false, on)))"
    program = parse_program(f"program p(xs: [f32]16) = scanSeq(fun ((c, on), x) => {step}, (0, false), xs)")
    (cascade,) = cascade_steps(program.body, Rows(POCL), least=2)
    phase = planned_phase(cascade.phase, cascade.tiling, (), Limits())
    steps = [item.rule.name for item in derive(program.body, cascade.term, phase) if isinstance(item, Step)]
    assert steps.count("let_unused") == 2
    assert steps[0] == "scan_of_cascade"


def test_what_stands_twice_is_rewritten_where_the_term_has_it_otherwise() -> None:
    """An e-graph does the same to both, so that a step leads on from either place; one can't be taken back."""
    row = "fun x => reduce(max, 0.0, map(reduce(max, 0.0), transpose(split(4, x))))"
    lanes = f"asScalar(map(vectorize(4, {row}), asVector(4, transpose(split(4, xs)))))"
    twice, once = (
        parse_program(f"program p(xs: [f32]64) = (reduce(max, 0.0, xs), reduce(max, 0.0, {second}))").body
        for second in ("xs", lanes)
    )
    phase = planned_phase("lanes", {64: (4,), 16: (4,)}, (4,), Limits(iterations=4))
    steps = [item for item in derive(twice, once, phase) if isinstance(item, Step)]
    assert [step.path[0] for step in steps] == [1, 1, 1]


def test_a_term_that_the_stage_does_not_reach_is_refused(blocked: tuple[Guided, list[Derivation]]):
    found = blocked[0]
    with pytest.raises(SearchProblem, match="does not reach the term"):
        explain_stage(MM.body, replace(found.stages[0], term=found.term))
    with pytest.raises(SearchProblem, match="reached no term"):
        explain_stage(MM.body, replace(found.stages[0], term=None))


FUSED = parse_program("program p(xs: [f32]8) = map(fun x => let x1 = abs(x) in sqrt(x1), xs)").body
NESTED = parse_program("program p(xs: [f32]8) = map(sqrt, map(abs, join(split(2, xs))))").body


def test_maps_that_are_fused_meet_the_map_of_the_nested_expression_after_one_iteration():
    apart = parse_program("program p(xs: [f32]8) = map(fun y => 2.0 * sqrt(y) + 1.0, map(fun z => abs(z), xs))").body
    nested = parse_program("program p(xs: [f32]8) = map(fun x => 2.0 * sqrt(abs(x)) + 1.0, xs)").body
    phase = Phase("fuse", (rules.fusion.map_fusion,), rules.simplification, limits=Limits(iterations=1))
    steps = [step for step in derive(apart, nested, phase) if isinstance(step, Step)]
    names = [step.rule.name for step in steps]
    assert names.count("map_fusion") == 1
    assert names.count("let_used_once") == 3  # past +, * and sqrt
    assert alpha_equal(steps[-1].after, nested)


def test_what_is_used_twice_is_not_computed_twice():
    twice = parse_program("program p(xs: [f32]8) = map(fun y => y * y, map(abs, xs))").body
    phase = Phase("fuse", (rules.fusion.map_fusion,), rules.simplification, limits=Limits(iterations=3))
    *_, done = run_phase(twice, phase)
    doubled = parse_program("program p(xs: [f32]8) = map(fun x => abs(x) * abs(x), xs)").body
    assert locate(done.graph, done.root, doubled) is None


def test_steps_write_operators_as_laws_do():
    loops = (rules.reduction.reduce_to_seq,)
    summed = parse_program("program p(xs: [f32]8) = reduce(add, 0.0, xs)").body
    loop = parse_program("program p(xs: [f32]8) = reduceSeq(fun (s, x) => s + x, 0.0, xs)").body
    first, second = (s for s in derive(summed, loop, Phase("loop", loops, rules.simplification)) if isinstance(s, Step))
    assert (first.rule.name, first.result) == ("reduce_to_seq", "reduceSeq(add, 0.0, xs)")
    assert (second.rule.name, second.part) == ("combine_scalars", "acc ⊕ x, with ⊕ = add")
    assert second.result == "acc + x"


def test_a_world_tells_which_rules_match_on_the_way():
    fusion, square = rules.fusion.map_fusion, transpose_of_transpose
    world = World(Phase("fuse", (fusion, square), rules.simplification))
    start = world.encode(NESTED)
    assert world.matching(start, (square, fusion, fusion), FUSED) == [False, True, False]
    assert world.matching_together(start, (square, fusion), 2, FUSED) == [False, True]
    assert world.matching(start, (square,), FUSED) is None
    assert world.matching_together(start, (square,), 2, FUSED) is None


def test_a_world_writes_terms_as_they_are_whatever_rules_made_of_its_facts():
    step = "fun (s, x) => reduceSeq(fun (c, i) => bit_xor(shift_left(c, 1), i), bit_xor(s, x), generate(8, fun i => i))"
    body = parse_program(f"program p(xs: [i32]8) = reduceSeq({step}, 0, xs)").body
    world = World(Phase("maps", (generate_by_map,), rules.simplification, operators=uses_in(body)))
    before = world.encode(body)
    world.learn((generate_by_map,))
    assert world.encode(body) == before


def test_a_world_tells_which_rules_simplify():
    world = World(Phase("simplify", (), rules.simplification))
    start = world.encode(NESTED)
    (found,) = world.simplifying(start)
    assert found is join_of_split
    ((_, after),) = world.apply(start, found.ruleset, False)
    assert world.simplifying(after) == []


def test_a_detour_that_only_spells_a_part_otherwise_is_left_out():
    # fission and fusion make a let of the part, which they need not to reach the rest
    spelled = parse_program(
        "program p(A: [[f32]16]8) = map(fun row => join(let x = split(4, map(sqrt, row)) in map(map(abs), x)), A)"
    ).body
    whole = parse_program("program p(A: [[f32]16]8) = map(fun row => map(abs, map(sqrt, row)), A)").body
    needed = (*rules.fission_rules, rules.split_join.split_join, rules.fusion.map_fusion)
    found = [*derive(whole, spelled, Phase("rows", needed, rules.simplification, {16: (4,)}, limits=Limits(6)))]
    steps = [item for item in found if isinstance(item, Step)]
    assert [s.rule.name for s in steps] == ["split_join", "apply_pattern"]
    assert [s.backwards for s in steps] == [False, True]


def test_a_step_shows_what_it_changes_as_its_law_does():
    inner = "select(a > 0.0, sqrt(a + 1.0), a * a + 3.0)"
    program = parse_program(f"program p(xs: [f32]64) = map(fun x => x + 1.0, map(fun a => {inner}, xs))")
    (fused,) = applications(program.body, rules.fusion.map_fusion)
    assert abridged(*fused.parts, 60) == (
        "map(fun x => x + 1.0, map(fun a => …, xs))",
        "map(fun a => let x = … in x + 1.0, xs)",
    )
    nested = parse_program("program p(xs: [[f32]4]8) = map(fun x => let y = map(abs, x) in reduce(add, 0.0, y), xs)")
    (step,) = applications(nested.body, apply_pattern, Phase("lets", (), rules.simplification))
    assert step.part == "reduce(add, 0.0)(map(abs, x))"
    assert step.result == "reduce(add, 0.0, map(abs, x))"


def test_a_term_is_put_into_the_e_graph_once_for_all_schedules_that_begin_with_it(monkeypatch: pytest.MonkeyPatch):
    term, target = (
        parse_program(f"program p(xs: [f32]8) = {body}").body
        for body in ("map(sqrt, join(split(4, join(split(2, xs)))))", "map(sqrt, xs)")
    )
    terms, hold = [], Scratch._hold  # pyright: ignore[reportPrivateUsage]

    def holding(scratch: Scratch, *told):
        terms.append(told)
        return hold(scratch, *told)

    world = World(Phase("joined", (join_of_split,), ()))
    start = world.encode(term)
    monkeypatch.setattr(Scratch, "_hold", holding)
    world.learn([join_of_split])
    world.begin(start)
    assert world.reaches(start, [join_of_split], target)
    assert not world.reaches(start, [], target)
    assert world.matching_together(start, [join_of_split], 2, target) == [True]
    assert len(terms) == 1
