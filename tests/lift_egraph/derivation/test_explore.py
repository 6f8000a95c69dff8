"""Exploration by hand: places where rules match and almost match, steps, undo."""

from __future__ import annotations

import json
import zlib

import pytest
from egglog import eq, i64, rewrite

from lift_egraph.api import Phase, alpha_equal, equal_values, evaluate, programs, random_inputs, rules, specialise
from lift_egraph.derivation import places
from lift_egraph.derivation.explore import Explorer
from lift_egraph.derivation.places import View, matching_places, near_misses
from lift_egraph.derivation.steps import DEFINITIONS, World, makes_names, replay
from lift_egraph.egraph.exact_terms import Node
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.egraph.rule_forms import forms
from lift_egraph.egraph.sorts import Ex, Ty, join, transpose, ty
from lift_egraph.errors import ExplorationProblem, RuleProblem, SizeProblem
from lift_egraph.language.syntax import parse_program, print_term
from lift_egraph.soundness.instances import Instances
from tests.command import lift
from tests.depth import in_turn

MM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})


def explorer(text: str, **offers) -> Explorer:
    return Explorer(parse_program(f"program p{text}"), rules.all_rules, **offers)


def by_hand() -> Explorer:
    return Explorer(MM, rules.all_rules, tiles=(4,))


@pytest.fixture(scope="module")
def fixed() -> Explorer:
    """One that no test takes a step with."""
    return by_hand()


def test_matches_are_places_with_what_the_rule_makes_there(fixed: Explorer):
    found = fixed.matches("split_join")
    assert [step.path for step in found] == [(), (0, 1), (0, 1, 0, 1, 2)]
    assert found[2].part == "map(mul, zip(row, col))"
    assert found[2].result == "join(map(map(mul), split(4, zip(row, col))))"
    assert "[2] at map.f/map.f/reduce.xs: map(mul, zip(row, col))\n    becomes join(map(map(mul)" in str(found)


def test_the_rules_that_match_are_counted_by_places(fixed: Explorer):
    counts = fixed.applicable()
    assert counts["split_join"] == 3
    for name in ("map_fission", "map_map_interchange", "partial_reduce", "map_fusion"):
        assert counts.get(name, 0) == len(fixed.matches(name))
    assert not set(DEFINITIONS) & set(counts)


def test_a_rule_is_read_once_for_all_places(fixed: Explorer, monkeypatch: pytest.MonkeyPatch):
    read = []
    monkeypatch.setattr(places, "forms", lambda chosen: read.append(chosen) or forms(chosen))
    assert len(fixed.near_misses("map_fusion")) > 1
    assert len(read) == 1


@in_turn(3)
def test_steps_keep_the_result_and_are_undone():
    hand = by_hand()
    inputs = random_inputs(MM, 0, "integer")
    expected = evaluate(MM.body, inputs)
    seen = [hand.term]
    for name, at in (("split_join", "map.f"), ("map_fission", 0), ("partial_reduce", None)):
        step = hand.apply(name, at)
        assert alpha_equal(step.before, seen[-1])
        assert alpha_equal(step.after, hand.term)
        assert not alpha_equal(step.after, step.before)
        assert equal_values(evaluate(hand.term, inputs), expected)
        assert replay(step, Phase("again", (), rules.simplification, {8: (4,)}))
        seen.append(hand.term)
    assert str(hand).startswith("1. split_join at map.f: map (λp. b) xs = join")
    assert str(hand).endswith(print_term(hand.term))
    assert [s.rule.name for s in hand.undo()] == ["partial_reduce"]
    assert hand.term == seen[2]
    assert [s.rule.name for s in hand.undo(2)] == ["map_fission", "split_join"]
    assert hand.term == seen[0]
    assert hand.steps == ()
    with pytest.raises(ExplorationProblem, match="nothing to undo"):
        hand.undo()


def test_chunks_are_offered_for_lengths_that_steps_made():
    hand = explorer("(xs: [f32]8) = map(abs, xs)", tiles=(2, 4))
    hand.apply("split_join", 1)
    assert "split(4" in print_term(hand.term)
    assert any("split(2, chunk)" in print_term(s.after) for s in hand.matches("split_join"))
    only_eight = explorer("(xs: [f32]8) = map(abs, xs)", tiles={8: (4,)})
    only_eight.apply("split_join")
    assert not only_eight.matches("split_join")


def test_what_rules_ask_of_operators_is_found_in_the_present_term():
    program = parse_program("program p(xs: [f32]8, k: f32) = reduceSeq(fun (s, x) => s * k + x, 0.0, xs)")
    hand = Explorer(program, rules.all_rules, tiles=(4,))
    assert not hand.matches("partial_reduce")
    hand.apply("fold_by_action")
    assert hand.matches("partial_reduce")  # by the product of matrices, which is new
    hand.undo()
    assert hand.matches("fold_by_action")


MISSES = {
    "divides": ("(xs: [f32]8) = map(abs, xs)", "split_join", (3,), "needs that n divides m, but m = 8 and n = 3"),
    "less": ("(xs: [f32]8) = map(abs, xs)", "split_join", (8,), "needs that n < m, but n = 8 and m = 8"),
    "windows": (
        "(xs: [f32]8) = slide(3, 1, xs)", "slide_tiling", (4,),
        "needs that k divides ((a - n) / s) + 1, but ((a - n) / s) + 1 = 6 and k = 4",
    ),
    "no chunk": (
        "(xs: [f32]8) = map(abs, xs)", "split_join", (),
        "needs that a size of chunks n is offered for arrays of length m, but none is for 8",
    ),
    "no width": (
        "(xs: [f32]8) = map(abs, xs)", "vectorise_map", (), "needs that a width of vectors w is offered, but none is",
    ),
    "law": (
        "(xs: [f32]8) = reduce(fun (a, b) => a - b, 0.0, xs)", "partial_reduce", (4,),
        "needs that op is associative, but op = fun (a, b) => a - b",
    ),
    "neutral": (
        "(xs: [f32]8) = reduce(add, 1.0, xs)", "partial_reduce", (4,),
        "needs that z is neutral for op, but op = add and z = 1.0",
    ),
    "type": (
        "(xs: [f32]8) = split(4, join(split(2, xs)))", "split_of_join", (),
        "needs that the type of xs is [[t]n]m, but it is [[f32]2]4",
    ),
    "free variable": (
        "(xss: [[f32]4]8) = map(fun xs => reduce(add, reduce(add, 1.0, xs), xs), xss)", "map_reduce_interchange", (),
        "needs that no variable of p is free in z, but xs is free in reduce(add, 1.0, xs)",
    ),
    "same names": (
        "(xs: [f32]8, ys: [f32]8) = zip(map(fun x => abs(x), xs), map(fun x => -x, ys))", "zip_of_maps", (),
        "needs that p and q share no variable, but both bind x",
    ),
    "mark": (
        "(xss: [[f32]4]8) = mapWrg(0, fun xs => mapLcl(0, abs, xs), xss)", "stage_in_local", (),
        "needs that v is marked for local memory, but v = xs",
    ),
    "shape": (
        "(xs: [f32]8) = map(sqrt, gather(reverse, map(abs, xs)))", "map_fusion", (),
        "expected map(λp. b, xs), found gather(reverse, map(abs, xs))",
    ),
    "level": ("(xs: [f32]8) = mapSeq(abs, xs)", "thread_coarsening", (4,), "expected glb or wrg or lcl, found seq"),
}  # fmt: skip


@in_turn(6)
@pytest.mark.parametrize("case", MISSES.values(), ids=MISSES.keys())
def test_near_misses_name_the_condition_that_fails(case):
    text, name, tiles, reason = case
    hand = explorer(text, tiles=tiles)
    assert not hand.matches(name)
    miss = hand.near_misses(name)[0]
    assert reason in miss.reasons
    assert miss.fits == reason.startswith("needs")


def test_where_conditions_fail_comes_before_other_shapes(fixed: Explorer):
    found = fixed.near_misses("map_fission")
    assert [(m.path, m.fits) for m in found] == [((), True), ((0, 1, 0, 1, 2), False)]
    assert str(found).startswith("map_fission almost matches: map (λp. g b) xs")


PROBLEMS = {
    "unknown rule": (("map_fussion", None), "there is no rule 'map_fussion'; did you mean 'map_fusion'?"),
    "no place": (("split_join", (7,)), r"there is no place \(7,\) in the term"),
    "no such pattern": (("split_join", "zip"), "there is no place zip in the term"),
    "no such number": (("split_join", 9), "split_join has no match number 9; there are 3, from 0 on"),
    "several": (("split_join", None), r"split_join matches in 3 ways; say which by its number:\n\[0\] at the whole: "),
    "near miss": (("map_fission", ()), r"at \(\); it almost does at the whole: needs that no variable of p"),
    "nowhere": (("iterate_once", None), "iterate_once does not match anywhere$"),
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_cannot_be_applied_is_refused_with_the_reason(fixed: Explorer, problem):
    (name, at), message = problem
    with pytest.raises(ExplorationProblem, match=message):
        fixed.apply(name, at)


def test_open_sizes_and_unknown_memory_are_refused():
    with pytest.raises(SizeProblem, match="specialise the program first"):
        Explorer(programs.load("mm"))
    with pytest.raises(ExplorationProblem, match="local or private memory, not for global"):
        Explorer(MM, staging=("global",))


def test_a_rule_of_ones_own_needs_no_name():
    @rule("transpose (transpose xs) = xs, for long ones")
    def twice(xs: Ex, n: i64, t: Ty):
        yield rewrite(transpose(transpose(xs))).to(xs, eq(Ty.arr(n, t)).to(ty(xs)), n > 5)

    @rule("ys from nowhere")
    def loose(xs: Ex, ys: Ex):
        yield rewrite(join(xs)).to(ys)

    hand = explorer("(xss: [[f32]4]8) = transpose(transpose(transpose(xss)))")
    assert [s.path for s in hand.matches(twice)] == [(0,)]
    assert [m.reasons for m in hand.near_misses(twice) if m.fits] == [("needs that n > 5, but n = 4",)]
    with pytest.raises(RuleProblem, match="ys on the right is bound neither"):
        hand.matches(loose)


def test_orders_of_rules_are_spelt_like_those_of_programs():
    hand = explorer("(xs: [f32]8) = gather(reverse, map(abs, xs))")
    hand.apply("map_backwards")
    hand.apply("reorder_and_back", "the whole")
    assert print_term(hand.term) == "map(abs, gather(reverse, xs))"


def test_marked_binders_are_staged():
    hand = explorer("(xss: [[f32]4]8) = mapWrg(0, fun xs => mapLcl(0, abs, xs), xss)", staging=("local",))
    hand.apply("stage_in_local")
    assert "toLocal(mapLcl(0, id, xs))" in print_term(hand.term)


# --- against the e-graph ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> World:
    """One that offers all divisors of small lengths as chunks, and one number that is none."""
    tiles = {n: tuple(d for d in range(1, n + 1) if n % d == 0 or d == 3) for n in range(2, 17)}
    definitions = tuple(r for r in rules.simplification if r.name in DEFINITIONS)
    return World(Phase("divisors", (), definitions, tiles, (2, 4)))


@in_turn(6)
@pytest.mark.parametrize(("careful", "some"), [(True, 14), (False, 18)], ids=["kept", "broken"])
def test_the_e_graph_fires_where_rules_match_and_nowhere_else(world: World, careful: bool, some: int):
    counts = []
    for chosen in rules.all_rules:  # what `map_of_reduction` says of a map, a definition says of its function
        if chosen.name in (*DEFINITIONS, "map_of_reduction") or zlib.crc32(chosen.name.encode()) % some:
            continue
        try:
            example, _ = Instances(chosen).draw(chosen.name, careful)
        except RuleProblem:
            continue  # its conditions cannot be broken
        counts.append(compare(world, chosen, world.encode(example.program.body)))
    fired, missed = map(sum, zip(*counts, strict=True))
    many, few = (fired, missed) if careful else (missed, fired)  # a condition is broken where they are not careful
    assert many > len(counts)
    assert few > 3


def compare(world: World, chosen: Rule, term: Node) -> tuple[int, int]:
    """Places where a rule matches against those where it fires, and how many almost match."""
    view = View(world, term)
    expected = matching_places(view, chosen)
    parts = {part for _, part in term.places()}
    made = world.apply(term, chosen.ruleset, makes_names(chosen))
    found = {path for path, after in made if path in expected or after.at(path) not in parts}  # both sides are equal
    assert expected <= found, (chosen.name, found, expected)
    for path in found - expected:  # a part that changed can make what is around it known, or match
        assert any(path == inner[: len(path)] for inner in expected), (chosen.name, path, expected)
    unmatched = {miss.path for miss in near_misses(view, chosen)} - expected
    assert not any(path in found for path in unmatched if not any(path == p[: len(path)] for p in expected))
    return len(expected), len(unmatched)


# --- on the command line ---------------------------------------------------------------------------------


def test_matches_on_the_command_line():
    result = lift("rules", "matches", "split_join", "mm", "--tile", 32, "--tile", 24, "--size", "M=64")
    assert result.exit_code == 0, result.output
    assert "matches at 3 places\n  the whole: map(fun row =>" in result.stdout
    assert "  map.f/map.f/reduce.xs: map(mul, zip(row, col))\n    becomes join(map(map(mul), split(32," in result.stdout
    assert "needs that n divides m, but m = 64 and n = 24" in result.stdout


def test_matches_as_json_for_a_file_of_rules(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\nfrom lift_egraph.dsl import Ex, rewrite, rule, transpose\n\n"
        '@rule("transpose (transpose xs) = xs")\ndef twice(xs: Ex):\n'
        "    yield rewrite(transpose(transpose(xs))).to(xs)\n"
    )
    (found,) = json.loads(lift("rules", "matches", path, "mm", "--json").stdout)
    assert found["rule"] == "twice"
    assert found["matches"] == []
    (miss,) = found["near_misses"]
    assert (miss["path"], miss["place"], miss["part"]) == ([0, 1, 1], "map.f/map.xs", "transpose(B)")
    assert (miss["fits"], miss["reasons"]) == (False, ["expected transpose(xs), found B"])


def test_an_unknown_rule_on_the_command_line():
    result = lift("rules", "matches", "split_joint", "mm")
    assert result.exit_code == 1
    assert "there is no rule 'split_joint'; did you mean split_join?" in result.stderr
