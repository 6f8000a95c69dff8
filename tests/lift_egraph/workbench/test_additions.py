"""A user's own rules and plans: checked, taking part in the search, and found again in an explanation."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lift_egraph.api import Limits, StructuralCost, optimize, parse_program, print_term, sketch, specialise
from lift_egraph.codegen.devices import POCL, Device
from lift_egraph.dsl import Ex, Rule, call1, call2, rewrite, rule
from lift_egraph.egraph.rule import PHASES
from lift_egraph.errors import InputProblem, ModelProblem, RuleProblem
from lift_egraph.files import json_text
from lift_egraph.language import ir
from lift_egraph.rules import split_reduce_seq
from lift_egraph.soundness.many_rules import Verdict
from lift_egraph.workbench import (
    Budget,
    Found,
    Leg,
    PhaseSummary,
    Plan,
    Step,
    additions,
    explain_way,
    plans,
    read_way,
    search,
)
from lift_egraph.workbench.additions import ROLES, Additions, Plans, additions_of
from lift_egraph.workbench.planning.plan import PLANNED
from lift_egraph.workbench.way_file import phases_of, way_of
from tests.codegen.opencl import needs_opencl
from tests.command import lift, search_little
from tests.depth import in_turn
from tests.in_process import no_children

CPU = replace(POCL, compute_units=2, vector_width=4)
FAST = Budget(limits=Limits(iterations=2, nodes=5_000), cpu_blocks=(4,), seeds=2, lowered=2, staged=1)
HEAD = """\
from __future__ import annotations

from lift_egraph.dsl import Ex, Fn, Op, P, Ty, absent, call1, call2, map_, reduce_, rewrite, rule

"""
FACTOR = """
@rule("reduce (+) 0 (map (λp. c · b) xs) = c · reduce (+) 0 (map (λp. b) xs),  p not free in c", reassociates=True)
def factor_out(p: P, b: Ex, c: Ex, xs: Ex):
    def total(body: Ex) -> Ex:
        return reduce_(Op.scalar("add"), Ex.literal("0.0", Ty.scalar("f32")), map_(Fn.lam(p, body), xs))

    for product in (call2("mul", c, b), call2("mul", b, c)):
        yield rewrite(total(product)).to(call2("mul", c, total(b)), absent(p, c))
"""
WRONG = """
@rule("abs a = a")
def odd(a: Ex):
    yield rewrite(call1("abs", a)).to(a)
"""
PRODUCTS = """
program products(x: [f32]2048, y: [f32]2048) =
  reduce(add, 0.0, map(fun a => reduce(add, 0.0, map(fun b => a * b, y)), x))
"""
LARGEST = specialise(parse_program("program largest(x: [f32]64) = map(fun a => max(a, -a), x)"))


def written(path: Path, text: str) -> Path:
    path.write_text(HEAD + text)
    return path


@needs_opencl
@in_turn(3)
def test_from_a_rule_in_a_file_to_the_steps_of_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The sum of all products of two vectors' elements is the product of two sums: only the user's rule knows it."""
    search_little(monkeypatch)
    program, rules, out = tmp_path / "products.lift", written(tmp_path / "mine.py", FACTOR), tmp_path / "out"
    program.write_text(PRODUCTS)
    result = lift("optimize", program, "--rules", rules, "--unchecked", "--out", out)
    assert result.exit_code == 0, result.stderr
    lowered = (out / "lowered.lift").read_text()
    assert lowered.count(" * ") == 1, lowered
    assert re.search(r"[)y]\s+\* reduceSeq\(add, 0\.0,", lowered), lowered

    result = lift("explain", out, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["complete"]
    assert found["sound"]
    steps = [step for phase in found["phases"] for step in phase["steps"] if step["rule"] == "factor_out"]
    assert [step["before"] for step in steps] == [
        "reduce(add, 0.0, map(fun b1 => a * b1, y))",
        "reduce(add, 0.0, map(fun a1 => a1 * reduce(add, 0.0, y), x))",
    ]
    assert steps[0]["law"].startswith("reduce (+) 0 (map (λp. c · b) xs) = ")

    for change, message in (
        (
            lambda: rules.write_text(rules.read_text() + "# new"),
            "it has changed since rules of it were used in a search",
        ),
        (rules.unlink, "rules of it were used in a search, and it is gone: cannot read"),
    ):
        change()
        (_, (first, *_)) = read_way(out)
        with pytest.raises(RuleProblem, match=f"^{rules}: mine.py: {message}"):
            _ = first.phase


def found_with(own: Additions, program: ir.Program = LARGEST) -> Iterator[Found]:
    """What a search in this process finds of it."""
    return (item for item in search(program, CPU, FAST, StructuralCost(), own) if isinstance(item, Found))


def absolute(phase: str) -> Rule:
    """A rule of one of the phases, that the search for `LARGEST` has use for."""

    @rule("max a (-a) = abs a", phase=phase)
    def max_is_abs(a: Ex):
        yield rewrite(call2("max", a, call1("neg", a))).to(call1("abs", a))

    return max_is_abs


def test_without_a_rule_it_is_not_found():
    assert not any("abs" in print_term(f.term) for f in found_with(Additions()))


@in_turn(6)
@pytest.mark.parametrize("phase", PHASES)
def test_a_rule_takes_part_in_the_phases_that_its_own_says(phase: str):
    mine = absolute(phase)
    way = next(f.way for f in found_with(Additions(rules=(mine,))) if "abs" in print_term(f.term))
    assert next(leg.name for leg in way if "abs" in print_term(leg.term)) == {
        "algorithmic": "stages", "lowering": "lowering", "memory": "memory", "simplification": "lowering"
    }[phase]  # fmt: skip
    for leg in way:
        takes_part = phase in ("simplification", ROLES[leg.name]) and leg.iterations > 0
        assert leg.rules == ((mine,) if takes_part else ())
        assert (mine in (*leg.phase.rules, *leg.phase.simplification)) == takes_part
    with no_children():
        explained = explain_way(LARGEST, way)
    assert explained.complete
    assert explained.sound
    assert mine in [checked.step.rule for checked in explained.steps]


@in_turn(3)
def test_a_rule_is_used_in_a_stage_of_several():
    program = specialise(
        parse_program("""
        program spread(x: [f32]64) =
          let s = reduce(add, 0.0, map(fun a => max(a, -a), x)) in map(fun a => max(a, -a) / s, x)
        """)
    )
    mine = absolute("algorithmic")
    found = next(f for f in found_with(Additions(rules=(mine,)), program) if "max" not in print_term(f.term))
    with no_children():
        explained = explain_way(program, found.way)
    assert explained.complete
    assert [c.step.rule for c in explained.steps].count(mine) == 2


@needs_opencl
def test_a_rule_that_is_not_sound_is_refused(tmp_path: Path):
    mine = written(tmp_path / "mine.py", WRONG)
    with pytest.raises(RuleProblem, match=rf"^{mine}:6: odd: it is not sound: abs a = a\n(.|\n)*expected\n"):
        optimize(ASUM, rules=mine)
    assert additions_of([mine], None, examples=0).files


def test_rules_with_the_name_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    mine = written(tmp_path / "mine.py", WRONG)

    def checked(*names: str) -> Callable[..., Iterator[Verdict]]:
        def check_rules(*_: object, listen: Callable[[Verdict], None], **options: object) -> Iterator[Verdict]:
            for number, name in enumerate(names):
                verdict = Verdict(name, "law", f"mine.py:{number}", 20, 20)
                listen(verdict)
                yield verdict

        return check_rules

    monkeypatch.setattr(additions, "check_rules", checked("odd", "map_fusion"))
    with pytest.raises(RuleProblem, match=r"^mine.py:1: map_fusion: a rule of ours has the same name: change it$"):
        additions_of([mine], None)
    monkeypatch.setattr(additions, "check_rules", checked("odd", "even", "odd"))
    with pytest.raises(RuleProblem, match=r"^mine.py:2: odd: another rule, at mine.py:0, has the same name"):
        additions_of([mine], None)


def test_what_is_no_file_with_rules(tmp_path: Path):
    result = lift("optimize", "asum", "--rules", tmp_path / "none.py")
    assert result.exit_code == 1
    assert f"error: cannot read {tmp_path}/none.py: No such file" in result.stderr
    with pytest.raises(InputProblem, match="it is no file"):
        additions_of([tmp_path], None)
    with pytest.raises(InputProblem, match=r"^3 is no rule, and no file with rules$"):
        additions_of([3], None)  # pyright: ignore[reportArgumentType]


def test_a_rule_that_a_program_gives(monkeypatch: pytest.MonkeyPatch):
    """It is known where the program runs; of the book's, which are believed, the name is enough anywhere."""
    mine = absolute("algorithmic")
    assert additions_of([split_reduce_seq] * 2, None) == additions_of(split_reduce_seq, None)
    leg = Leg("algorithmic", LARGEST.body, 1, "cpu", rules=(mine, split_reduce_seq))
    (part,) = phases_of(LARGEST, (leg,))
    assert "rules" not in json_text(phases_of(LARGEST, (replace(leg, rules=()),)))
    assert [(r.name, r.file) for r in part.rules] == [("max_is_abs", __file__), ("split_reduce_seq", None)]
    monkeypatch.setattr(mine.body, "__module__", "__main__")
    (read,) = way_of(phases_of(LARGEST, (leg,)))
    assert read.rules[1] == split_reduce_seq
    with pytest.raises(RuleProblem, match="max_is_abs: a program gave it to the search"):
        _ = read.phase


# --- plans --------------------------------------------------------------------------------------------------


ASUM = specialise(parse_program("program asum(x: [f32]64) = reduce(add, 0.0, map(abs, x))"))


def narrow(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Our plans for vectors of half the width."""
    yield from plans(term, replace(device, vector_width=device.vector_width // 4))


def planned(own: Plans | None) -> list[Any]:
    return list(search(ASUM, CPU, FAST, StructuralCost(), Additions(plans=own)))


@in_turn(2)
def test_a_plan_is_tried_beside_ours():
    def first_widths(own: Plans | None) -> list[tuple[int, ...]]:
        found = [item for item in planned(own) if isinstance(item, Found) and item.way[0].name == "lanes"]
        return list(dict.fromkeys(f.way[0].widths for f in found))

    assert first_widths(None) == [(8,)]
    assert first_widths(narrow) == [(2,), (8,)]


def test_a_plan_is_written_as_its_page_says():
    page = inspect.getdoc(inspect.getmodule(plans)) or ""
    example = textwrap.dedent(page.partition("8 lanes::\n")[2].partition("\nThe report")[0])
    scope: dict[str, Any] = {}
    exec(example, scope)
    program = specialise(parse_program("program p(x: [f32]65536) = map(abs, x)"))
    found = search(program, CPU, FAST, StructuralCost(), Additions(plans=scope["in_chunks"]))
    own = next(f for f in found if isinstance(f, Found) and f.way[0].name == "tiling")
    assert own.way[0].tiling == {65536: (64,)}


def test_a_plan_has_the_users_rules():
    def own(term: ir.Expr, device: Device) -> Iterator[Plan]:
        yield Plan((Step("blocking", sketch.contains(sketch.call("abs")), {}),), ())

    mine = absolute("algorithmic")
    found = found_with(Additions(rules=(mine,), plans=own))
    leg = next(f.way[0] for f in found if f.way[0].name == "blocking")
    assert leg.rules == (mine,)
    assert print_term(leg.term) == "map(abs, x)"


def test_a_plan_that_leads_nowhere_says_why():
    def own(term: ir.Expr, device: Device) -> Iterator[Plan]:
        yield Plan((Step("lanes", sketch.contains(sketch.map_(length=7)), {}),), ())

    reasons = [item.why_not for item in planned(own) if isinstance(item, PhaseSummary) and item.name == "lanes"]
    assert "its sketch is not satisfied: " in reasons[0]


def test_a_plan_of_ours_that_lacks_a_rule_names_it(monkeypatch: pytest.MonkeyPatch):
    lanes = tuple(rule for rule in PLANNED["lanes"] if rule.name != "partial_reduce_strided")
    monkeypatch.setitem(PLANNED, "lanes", lanes)
    reasons = [item.why_not for item in planned(None) if isinstance(item, PhaseSummary) and item.name == "lanes"]
    assert "its sketch is not satisfied: no term in the e-graph satisfies transpose(split 8)" in reasons[0]
    assert "partial_reduce_strided" in reasons[0].partition("; of other rules ")[2]


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (lambda term, device: 1 // 0, "the function <lambda> for plans failed: ZeroDivisionError"),
        (lambda term, device: [3], "the function <lambda> for plans yields 3, which is no lift_egraph.workbench.Plan"),
        (lambda term, device: [Plan((Step("memory", sketch.ANY, {}),), ())], "there is no phase 'memory'; known are "),
    ],
)
def test_a_function_for_plans_that_fails(own: Plans, text: str):
    with pytest.raises(ModelProblem, match=text):
        planned(own)


def test_a_function_for_plans_that_cannot_be_sent():
    class Locked:
        def __reduce__(self):
            raise TypeError("no")

    with pytest.raises(ModelProblem, match="the function for plans cannot be sent to the process that searches"):
        optimize(ASUM, plans=Locked())  # pyright: ignore[reportArgumentType]
