"""Laws that users declare: refused where they do not hold, else believed, in kernels and explanations."""

from __future__ import annotations

import pytest

from lift_egraph.algebra import declared, laws
from lift_egraph.algebra.actions import action_of
from lift_egraph.algebra.declared import believe
from lift_egraph.algebra.own_semirings import own_semirings
from lift_egraph.egraph.operators import facts_of, reasons, uses_in
from lift_egraph.egraph.saturate import Limits, Phase
from lift_egraph.errors import LiftError, RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.language.types import BOOL
from lift_egraph.records.record import program_hash
from lift_egraph.records.searched import as_searched
from lift_egraph.rules import partial_reduce
from lift_egraph.workbench import explain_way
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.phases import Leg
from tests.in_process import no_children
from tests.reaching import leads_to

FARTHER = "function farther(a: f32, b: f32) where associative, neutral 0.0 = select(abs(a) >= abs(b), a, b)\n"
LOG_SUM = "function log_sum(a: f32, b: f32) where associative, neutral -inf = log(exp(a) + exp(b))\n"
FARTHEST = f"{FARTHER}program p(xs: [f32]N) where N = 8 = reduce(farther, 0.0, xs)"


@pytest.fixture(autouse=True)
def nothing_is_believed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(declared, "_BELIEVED", {})


def test_what_is_declared_holds_where_no_proof_is_found():
    program = specialise(parse_program(f"{LOG_SUM}program p(xs: [f32]N) where N = 8 = reduce(log_sum, -inf, xs)"))
    (use,) = uses_in(program.body)
    assert laws.associative(use.operator) is laws.neutral(use.operator, use.initial) is None
    unknown = facts_of(use)
    believe(program.laws)
    assert laws.associative(use.operator)
    assert laws.commutative(use.operator) is None
    assert len(facts_of(use)) == len(unknown) + 3
    assert "associative: both sides are equal, as was declared and tried on random values" in reasons(use)[0]

    goal = parse_program(
        f"{LOG_SUM}program q(xs: [f32]8) = reduce(log_sum, -inf, map(fun c => reduce(log_sum, -inf, c), split(4, xs)))"
    )
    phase = Phase("p", (partial_reduce,), (), {8: (4,)}, limits=Limits(2))
    assert leads_to(program.body, phase, goal.body)


def test_a_law_is_known_by_what_the_operator_computes():
    believe(parse_program(FARTHEST).laws)
    other = parse_program("""program p(xs: [f32]N) =
        reduce(fun (x, y) => let s = fun v => abs(v) in let far = s(x) >= s(y) in select(far, x, y), 0.0, xs)""")
    assert isinstance(other.body, ir.Reduce)
    assert laws.associative(other.body.operator)


def test_it_is_so_known_in_the_words_that_searches_begin_with():
    smooth = "max(b, a) + log(1.0 + exp(-abs(b - a)))"
    program = parse_program(f"""
        function smooth(a: f32, b: f32) where associative, commutative, neutral -inf = {smooth}
        function plus(a: f32, b: f32) where neutral 0.0, annihilating -inf, distributes smooth = b + a
        program p(xs: [(f32, f32)]N) where N = 8 =
          (reduce(smooth, -inf, map(get(0), xs)), reduce(fun (s, (k, c)) => smooth(c, plus(k, s)), 0.0, xs))""")
    believe(program.laws)
    assert not list(refusals(as_searched(program).body))


@pytest.mark.parametrize(
    ("law", "body", "message"),
    [
        ("associative", "a - b", "op: it is not associative, f(f(a, b), c) = f(a, f(b, c)): for a = "),
        ("associative", "a + b + 0.000001 * a * a * b", "it is not associative"),
        ("associative", "a * b / (a + b)", "they are nan and "),
        ("associative", "floor(a * 0.5 + b * 0.5)", "it is not associative"),
        ("associative", "max(min(a + b, 100.0), -100.0)", "it is not associative"),  # of large numbers alone
        ("associative", "min(a + b, 100.0 * 150.0)", "it is not associative"),  # of a number that none is by itself
        ("idempotent", "if a < 5000.0 then max(a, b) else a + b", "it is not idempotent"),
        ("commutative", "a - b", "it is not commutative, f(a, b) = f(b, a)"),
        ("idempotent", "a + b", "it is not idempotent, f(a, a) = a: for a = "),
        ("neutral 1.0", "a + b", "it is not so that 1.0 is neutral, f(1.0, a) = a = f(a, 1.0)"),
        ("neutral 0.0", "a - b", "it is not so that 0.0 is neutral"),
        ("annihilating 1.0", "a * b", "it is not so that 1.0 annihilates"),
        ("distributes max", "a * b", "it is not distributive, f(a, g(b, c)) = g(f(a, b), f(a, c))"),
        ("associative", "log(0.0 - 1.0 - a * a) + b", "on most values that it was tried on neither side is a finite"),
    ],
)
def test_what_does_not_hold_is_refused_with_values(law: str, body: str, message: str):
    program = parse_program(
        f"function op(a: f32, b: f32) where {law} = {body}\nprogram p(x: f32) = op(x, x)", "mine.lift"
    )
    with pytest.raises(RuleProblem) as caught:
        believe(program.laws)
    assert str(caught.value).startswith("mine.lift:1:")
    assert message in str(caught.value)
    assert not declared.believed()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("f(a: f32, b: f32) where asociative = a", "there is no law 'asociative'; the laws are associative, commut"),
        ("f(a: f32) where associative = a", "f has a law, but is no operator: it takes two values of one type"),
        ("f(a: f32, b: i32) where associative = a", "f has a law, but is no operator"),
        ("f(a: f32, b: f32) where neutral = a", "f: neutral takes a value behind it"),
        ("f(a: f32, b: f32) where associative 1.0 = a", "f: associative takes nothing behind it"),
        ("f(a: f32, b: f32) where neutral true = a", "f works on f32, but neutral is a bool"),
        ("f(a: f32, b: f32) where distributes 1.0 = a", "this is a value of the type f32, not a function"),
        ("f(a: f32, b: f32) where distributes g = a", "unknown name 'g'"),
    ],
)
def test_what_is_wrong_with_declarations(head: str, message: str):
    with pytest.raises(LiftError) as caught:
        parse_program(f"function {head}\nprogram p(x: f32) = x")
    assert message in str(caught.value)
    assert "<text>:1:" in str(caught.value)


FIELD = """function either(a: bool, b: bool) where associative, commutative, neutral false = (a || b) && not(a && b)
    function both(a: bool, b: bool) where neutral true, annihilating false, distributes either = a && b
    program p(xs: [(bool, bool)]N) where N = 9 = reduceSeq(fun (s, (k, c)) => either(both(k, s), c), true, xs)"""


GCD = """function gcd(a: i32, b: i32) where {law} =
  let (x, y) = iterate({steps}, fun (x, y) => if y == 0 then (x, 0) else (y, x % y), (a, b)) in abs(x)
program p(xs: [i32]N) where N = 8 = reduce(gcd, 0, xs)"""


def test_loops_on_tuples_are_tried_by_their_steps():
    (trial,) = believe(parse_program(GCD.format(law="associative", steps=48)).laws)
    assert str(trial) == "gcd is associative on 1536 values"
    with pytest.raises(RuleProblem, match=r"so that 0 is neutral, .*: for a = -\d they are \d and -\d"):
        believe(parse_program(GCD.format(law="neutral 0", steps=48)).laws)


def test_of_what_cannot_be_tried_nothing_is_said():
    with pytest.raises(RuleProblem, match=r"whether it is associative, .* is not known: it has a loop"):
        believe(parse_program(GCD.format(law="associative", steps=65)).laws)


def test_folds_are_linear_over_semirings_that_are_declared():
    program = specialise(parse_program(FIELD))
    assert isinstance(program.body, ir.ReduceSeq)
    assert "over" not in str(action_of(program.body.operator))  # a table of two states
    believe(program.laws)
    term = with_actions(program.body)
    assert term is not None
    (product,) = (t for t in ir.subterms(term) if isinstance(t, ir.Reduce))
    assert laws.associative(product.operator)
    with no_children():
        found = explain_way(program, (Leg("algebra", term, 1, "cpu"),))
    assert found.complete, str(found)
    assert found.sound
    assert "s is linear in the accumulator over (either, both)" in str(found)


@pytest.mark.parametrize("missing", ["neutral true, ", ", neutral false"])
def test_without_a_neutral_element_there_is_no_semiring(missing: str):
    program = parse_program(FIELD.replace(missing, ""))
    believe(program.laws)
    assert not [*own_semirings(BOOL)]


def test_that_one_operator_distributes_over_the_other_is_found():
    program = parse_program(FIELD.replace(", distributes either", ""))
    believe(program.laws)
    assert [str(found) for found in own_semirings(BOOL)] == ["(either, both)"]


def test_operators_of_which_none_distributes_over_the_other_are_no_semiring():
    alike = FIELD.replace(", annihilating false, distributes either = a && b", " = (a && b) || not(a || b)")
    believe(parse_program(alike).laws)
    assert not [*own_semirings(BOOL)]


@pytest.mark.parametrize(
    ("plus", "times"),
    [
        ("let s = a + b in select(s < a, 4294967295u32, s)", "neutral 4294967295u32, distributes plus = min(a, b)"),
        ("max(a, b)", "neutral 0u32, distributes plus = a + b"),  # sums wrap around
        ("a + b", "neutral 1u32, distributes plus = a * b % 97u32"),
    ],
)
def test_what_is_no_semiring_is_refused(plus: str, times: str):
    program = parse_program(f"""function plus(a: u32, b: u32) where associative, commutative, neutral 0u32 = {plus}
        function times(a: u32, b: u32) where {times}
        program p(xs: [u32]N) = reduce(plus, 0u32, xs)""")
    with pytest.raises(RuleProblem, match=r"times: it is not (distributive|so that 1u32 is neutral)"):
        believe(program.laws)


def test_declarations_survive_printing_and_are_no_part_of_what_a_program_is_known_by():
    text = f"""{FARTHER}
        function plus(p: (f32, f32), q: (f32, f32)) where associative, neutral (0.0, 0.0) =
          (get(0, p) + get(0, q), rest(p) + rest(q))
        function times(a: f32, b: f32) where distributes add, distributes farther = a * b
        program p(plus: [f32]8) = reduce(farther, 0.0, plus)"""
    assert "'plus' is the name of a function above" in _problem(text)
    program = parse_program(text.replace("plus:", "xs:").replace(", plus)", ", xs)"))
    again = parse_program(print_program(program))
    assert again.body == program.body
    assert [_known(law) for law in again.laws] == [_known(law) for law in program.laws]
    bare = parse_program(print_program(program).partition("program")[2].join(("program", "")))
    assert program_hash(bare) == program_hash(program)
    believe(program.laws)


def _known(law: ir.Law) -> tuple[object, ...]:
    return law.name, canonical(law.operator), law.about if law.about is None else canonical(law.about)


def _problem(text: str) -> str:
    with pytest.raises(LiftError) as caught:
        parse_program(text)
    return str(caught.value)


def test_laws_are_tried_on_the_numbers_that_an_operator_mentions():
    text = """function plus(a: i32, b: i32) where associative = if a == 1000 && b == 1001 then 7 else a + b
        program p(xs: [i32]N) = reduce(plus, 0, xs)"""
    with pytest.raises(RuleProblem, match="it is not associative"):
        believe(parse_program(text).laws)


def test_laws_are_tried_until_their_time_is_over_and_on_whole_numbers_and_fractions_at_least():
    text = """function plus(a: f32, b: f32) where associative, commutative = a + b + 0.0
        program p(xs: [f32]N) = reduce(plus, 0.0, xs)"""
    assert [str(trial) for trial in believe(parse_program(text.replace("plus", "f")).laws, seconds=0.0)] == [
        f"f is {law} on 512 values only, of 1536 that are wanted: there was no time for more"
        for law in ("associative", "commutative")
    ]
    assert believe(parse_program(text).laws) == []  # what an operator computes is what its laws are known by
