"""Alternatives of functions: refused where they disagree, chosen level by level, and explained."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.alternatives import rule_at
from lift_egraph.egraph.rule_files import reference_to
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.errors import LiftError, RuleProblem
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import build, ir
from lift_egraph.language.check import specialise
from lift_egraph.language.declarations import alternative, function
from lift_egraph.language.syntax import parse_file, parse_program, print_term
from lift_egraph.language.types import F32
from lift_egraph.meaning.agreement import Comparer
from lift_egraph.records.searched import as_searched
from lift_egraph.soundness.alternatives import LEAST, check_alternative
from lift_egraph.workbench import Budget, Found, explain_way, search
from lift_egraph.workbench.additions import additions_of
from lift_egraph.workbench.exploration.spectrum import Version, kind_of, versions
from lift_egraph.workbench.phases import alternatives_phase, extended
from lift_egraph.workbench.way_file import phases_of, way_of
from tests.depth import in_turn
from tests.in_process import no_children
from tests.reaching import leads_to

TOTAL = "function total(xs: [f32]n) = reduce(add, 0.0, xs)\n"
CHUNKS = "alternative total where c in 2..65, n > c = reduce(add, 0.0, map(total, split(c, xs)))\n"
HALVES = "alternative total = total(map(add, zip(slice(0, n / 2, xs), slice(n / 2, n / 2, xs))))\n"
EVEN = HALVES.replace(" =", " where n % 2 == 0 =", 1)
ROWS = "program rows(A: [[f32]N]M) where M = 4, N = 64 = map(total, A)"
FEW = Budget(6, limits=Limits(2, 2_000), versions=4, variants=1, plan_iterations=2, seeds=1, lowered=1, staged=0)


def reached(program: ir.Program, version: Version) -> bool:
    """Whether the rules of a version lead there in an e-graph."""
    term, rules = version
    phase = extended(alternatives_phase(Limits(len(rules))), rules)
    return leads_to(program.body, phase, term)


def test_versions_are_those_of_the_e_graph_and_compute_the_same():
    source = parse_program(TOTAL + CHUNKS + EVEN + ROWS)
    program = specialise(source, {"M": 2, "N": 16})
    found = list(versions(program.body, source.alternatives))
    assert {kind_of(v) for v in found} >= {("total_1",), ("total_2",), ("total_1", "total_2"), ("total_2", "total_1")}
    comparer = Comparer(program)
    assert all(comparer.compare(program.body, term).equal for term, _ in found)
    assert all(reached(program, version) for version in found[::16])


@in_turn(3)
def test_the_search_tries_them_and_explains_what_it_took(tmp_path: Path):
    file = tmp_path / "rows.lift"
    text = TOTAL + CHUNKS + EVEN.replace("== 0", "== 0, on gpu") + ROWS
    file.write_text(text)
    source = parse_file(file)
    program = specialise(source)
    own = additions_of((), None, alternatives=source.alternatives)
    found = [f for f in search(program, POCL, FEW, StructuralCost(), own) if isinstance(f, Found)]
    taken = [f for f in found if f.way[0].name == "alternatives"]
    names = {rule.name.partition(" at ")[0] for f in taken for rule in f.way[0].rules}
    assert names == {"total_1"}  # the other one is for a gpu
    assert Comparer(program).compare(program.body, taken[0].term).equal

    (first,) = way_of(phases_of(program, taken[0].way[:1]))  # as a file of records has it
    file.write_text(f"{text}-- new")
    with pytest.raises(RuleProblem, match="it has changed since rules of it were used in a search"):
        _ = first.phase
    file.write_text(text)
    with no_children():
        explained = explain_way(program, (first,))
    assert explained.complete, str(explained)
    assert explained.sound
    assert f"1. alternatives phase: {first.rules[0].name}" in str(explained)
    assert pickle.loads(pickle.dumps(taken[0].way[0].rules)) == taken[0].way[0].rules


@in_turn(8)
@pytest.mark.parametrize(
    ("function", "alternative", "message"),
    [
        (TOTAL, HALVES, "at n = 3, for xs = "),
        (TOTAL, CHUNKS.replace("add, 0.0", "max, 0.0"), "total is "),
        (TOTAL, CHUNKS.replace("add, 0.0", "add, 1.0"), "and the alternative "),
        (TOTAL, CHUNKS.replace("n > c", "n > c, n < c"), "no sizes n, c were found"),
        (
            "function same(xs: [f32]n) = map(abs, xs)\n",
            "alternative same = gather(i => n - 1 - i, map(abs, xs))\n",
            "same is [",
        ),
        (
            "function clock(xs: [i32]n) = reduceSeq(fun (s, x) => (s + x) % 7, 0, xs)\n",  # of numbers below 0, too
            "alternative clock = reduce(add, 0, xs) % 7\n",
            "clock is ",
        ),
        (
            "function largest(xs: [f32]n) = reduce(max, -inf, xs)\n",  # where all are below 0
            "alternative largest where n > 40 = reduce(max, 0.0, xs)\n",
            "largest is -1, and the alternative 0",
        ),
        (
            "function clipped(xs: [f32]n) = map(fun x => min(x, 1000.0), xs)\n",  # of large numbers alone
            "alternative clipped = xs\n",
            "clipped is [",
        ),
        (
            "function grade(xs: [f32]n) = map(fun x => if x >= 77.0 then 1 else 0, xs)\n",  # of one number alone
            "alternative grade = map(fun x => if x > 77.0 then 1 else 0, xs)\n",
            "grade is [",
        ),
        (
            "function found(xs: [i32]n) = map(fun x => x * 0, xs)\n",
            "alternative found = map(fun x => if x == 77777 then 1 else 0, xs)\n",
            "found is [",
        ),
        (
            "function late(xs: [i32]n) = map(fun x => if x >= 2000000000 then 1 else 0, xs)\n",  # of any size
            "alternative late = map(fun x => if x > 2000000000 then 1 else 0, xs)\n",
            "late is [",
        ),
        (
            "function warm(xs: [f32]n) = map(fun x => if x >= 10.0 * 30.0 then 1 else 0, xs)\n",  # of a computed number
            "alternative warm = map(fun x => if x > 10.0 * 30.0 then 1 else 0, xs)\n",
            "warm is [",
        ),
        (TOTAL, "alternative total where n > 1 = if n == 37 then xs[0] else reduce(add, 0.0, xs)\n", "at n = 37, for"),
        (TOTAL, CHUNKS.replace("split(c, xs)))", "split(c, xs))) * (if c > 63 then 2.0 else 1.0)"), "at c = 64, n = "),
        (
            "function firsts(xs: [f32]n) = slice(0, 2, xs)\n",
            "alternative firsts = slice(0, 1, xs)\n",
            "firsts is a [f32]2, the alternative a [f32]1",
        ),
    ],
)
def test_what_disagrees_is_refused_with_a_counterexample(function: str, alternative: str, message: str):
    name, t = function.partition("(")[0].removeprefix("function "), "i32" if "i32" in function else "f32"
    (one,) = parse_program(f"{function}{alternative}program p(xs: [{t}]N) = {name}(xs)").alternatives
    with pytest.raises(RuleProblem) as caught:
        check_alternative(one)
    assert message in str(caught.value)


def test_sizes_that_a_guard_and_chunks_allow_are_found():
    (one,) = parse_program(
        f"{TOTAL}alternative total where n > 1000 = reduce(add, 0.0, map(fun c => reduce(add, 0.0, c), split(4, xs)))\n"
        "program p(xs: [f32]N) = total(xs)"
    ).alternatives
    assert check_alternative(one).sizes > 1


@pytest.mark.parametrize(
    ("function", "alternative"),
    [
        (
            "log(reduce(add, 0.0, map(exp, xs)))",  # too large for floats
            "let m = reduce(max, -inf, xs) in m + log(reduce(add, 0.0, map(fun x => exp(x - m), xs)))",
        ),
        (
            "let m = reduce(add, 0.0, xs) / n in reduce(add, 0.0, map(fun x => (x - m) * (x - m), xs)) / n",
            "let m = reduce(add, 0.0, xs) / n in reduce(add, 0.0, map(fun x => x * x, xs)) / n - m * m",
        ),
        ("to_i32(floor(reduce(max, 0.0, xs) * 0.1))", "to_i32(floor(reduce(max, 0.0, xs) / 10.0))"),
    ],
)
def test_rounding_and_overflow_of_large_numbers_are_no_disagreement(function: str, alternative: str):
    text = f"function f(xs: [f32]n) = {function}\nalternative f = {alternative}\nprogram p(xs: [f32]N) = f(xs)"
    (one,) = parse_program(text).alternatives
    assert check_alternative(one).enough


def test_ranges_of_a_program_hold_for_its_alternatives_which_stand_for_it_alone():
    """The absolute value of numbers above 0 is the number."""
    text = "program p(xs: [f32]N in 1..9) = map(abs, xs)\nalternative p = map(fun x => x + 0.0, xs)"
    (alternative,) = parse_program(text).alternatives
    assert check_alternative(alternative).sizes > 3
    other = specialise(parse_program("program q(xs: [f32]N, ys: [f32]N) where N = 4 = map(abs, ys)"))
    assert not list(versions(other.body, (alternative,)))
    itself = specialise(parse_program("program p(xs: [f32]N) where N = 4 = map(abs, xs)"))
    assert [reached(itself, version) for version in versions(itself.body, (alternative,))] == [True]


def test_alternatives_are_compared_until_their_time_is_over_and_at_a_few_sizes_at_least():
    text = "program p(xs: [f32]N) = map(abs, xs)\nalternative p = map(fun x => max(x, -x), xs)"
    (alternative,) = parse_program(text).alternatives
    told = check_alternative(alternative, seconds=0.0)
    assert (told.sizes, told.enough) == (LEAST, False)
    assert str(told).endswith(f"agrees with p at {LEAST} sizes only, of 16 that are wanted: there was no time for more")
    told = check_alternative(alternative)
    assert str(told).endswith(f"agrees with p at {told.sizes} sizes")
    assert additions_of((), None, alternatives=[alternative]).checks == (str(told),)


def test_what_a_function_reads_is_not_bound_inside_of_it():
    source = parse_program("""
        function scaled(xs: [f32]n, k: f32) = map(fun x => x * k, xs)
        alternative scaled = map(fun x => k * x, xs)
        program squares(xs: [f32]N) where N = 4 = map(fun x => x * x, xs)""")
    program = specialise(source)
    assert not list(versions(program.body, source.alternatives))
    rule = rule_at(source.alternatives[0], (("n", 4),))
    *_, last = run_phase(program.body, extended(alternatives_phase(Limits(3)), (rule,)))
    assert len(last.graph.nodes[last.root]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TOTAL}alternative totl = xs\n", "there is no function or program 'totl' above; did you mean 'total'?"),
        (f"{TOTAL}alternative total = xs\n", "total computes f32, its alternative [f32]n"),
        (f"{TOTAL}alternative total = total(xs)\n", "the alternative is total itself"),
        (f"{TOTAL}alternative total = reduce(add, 0.0, ys)\n", "unknown name 'ys'"),
        (f"{TOTAL}alternative total where c in 4..9 = xs[0]\n", "nothing in the alternative has the size 'c'"),
        (f"{TOTAL}{CHUNKS.replace('2..65', '9..9')}", "the size c has no values from 9 on and below 9"),
        (f"{TOTAL}{CHUNKS.replace('c', 'n')}", "'n' is a name of total already"),
        (f"{TOTAL}{EVEN.replace('n % 2 == 0', 'on tpu')}", "an alternative is for a cpu or a gpu, not for 'tpu'"),
        (f"{TOTAL}{EVEN.replace('n % 2 == 0', 'of gpu')}", "expected 'on', as in 'on gpu', found 'of'"),
        (f"{TOTAL}{EVEN.replace('n % 2 == 0', 'm > 3')}", "'m' is no known size"),
        (f"{TOTAL}{TOTAL}", "'total' is declared twice"),
        (TOTAL.replace("total", "rows"), "'rows' is declared twice"),
        (TOTAL.replace("xs", "map"), "'map' is a word of the language"),
        (TOTAL.replace("total", "map"), "'map' is a word of the language"),
        (TOTAL.replace("reduce(add, 0.0, xs)", "total(xs)"), "'total' is used in itself: there is no recursion"),
        (TOTAL.replace("[f32]n", "[f32](n / 2)"), "the size n of total follows from the length of none of its"),
        (TOTAL.replace("[f32]n", "[f32]n in 0..1"), "ranges are for the inputs of a program"),
        (TOTAL.replace("[f32]n", "[i32]n").replace("0.0", "0"), "rows takes [i32]n, but is given [f32]N"),
    ],
)
def test_what_is_wrong_with_functions_and_alternatives(text: str, message: str):
    head = TOTAL if "function total" not in text else ""
    with pytest.raises(LiftError) as caught:
        parse_program(head + text + ROWS)
    assert message.replace("rows takes", "total takes") in str(caught.value)
    assert "<text>:" in str(caught.value)


def test_sizes_follow_from_lengths_that_are_linear_in_them():
    source = parse_program("""
        function sums(starts: [i32](m + 1), xs: [i32]k) =
          map(fun w => reduceRange(add, 0, w[0], w[1], xs), slide(2, 1, starts))
        alternative sums where m > 1 =
          let before = concat(fill(1, 0), scan(add, 0, xs)) in
          map(fun w => if w[0] < w[1] then before[min(max(w[1], 0), k)] - before[min(max(w[0], 0), k)] else 0,
            slide(2, 1, starts))
        program p(starts: [i32](M + 1) in offsets(K), xs: [i32]K) where M = 5, K = 9 = map(abs, sums(starts, xs))""")
    (alternative,) = source.alternatives
    assert check_alternative(alternative).sizes > LEAST
    ((term, (rule,)),) = versions(specialise(source).body, source.alternatives)
    assert rule.name == "sums_1 at k = 9, m = 5"
    assert Comparer(specialise(source)).compare(specialise(source).body, term).equal


PEAK = "function peak(xs: [f32]n) = reduce(max, -inf, xs)\nalternative peak where n % 2 == 0 = " + (
    "peak(map(max, zip(slice(0, n / 2, xs), slice(n / 2, n / 2, xs))))\n"
)


def test_a_program_is_in_other_words_before_a_search_where_its_functions_still_stand():
    head = f"{PEAK}program p(A: [[f32]K]M) where M = 4, K = 128 = "
    source = parse_program(f"{head}map(fun row => map(fun x => x / peak(row), row), A)")
    searched = as_searched(source)
    assert print_term(searched.body) == (
        "map(fun row => let total = reduce(max, -inf, row) in map(fun x => x / total, row), A)"
    )
    assert list(versions(specialise(searched).body, source.alternatives))
    by_place = parse_program(f"{head}generate(M, fun i => peak(A[i]))")
    assert print_term(as_searched(by_place).body) == "map(reduce(max, -inf), A)"

    twice = "function twice(xs: [f32]n) = map(fun x => x + x, xs)\nalternative twice = map(fun x => 2.0 * x, xs)\n"
    kept = parse_program(f"{twice}program p(xs: [f32]N) where N = 128 = map(abs, twice(xs))")
    assert as_searched(kept).body == kept.body  # one map of both is none of these
    open_size = parse_program(f"{PEAK}program p(A: [[f32]K]M) = map(fun row => map(fun x => x / peak(row), row), A)")
    assert as_searched(open_size) is open_size


def test_python_says_the_same_as_text():
    @function(associative=True, neutral=0.0)
    def farther(a: F32, b: F32):  # pyright: ignore
        return build.select(build.abs_(a) >= build.abs_(b), a, b)

    @function
    def total(xs: "[f32]n"):  # pyright: ignore  # noqa: F722
        return build.reduce_(build.add, 0.0, xs)

    @alternative(total, c=(2, 65), where=["n > c"])
    def in_chunks(xs):
        return build.reduce_(build.add, 0.0, build.map_(total, build.split("c", xs)))

    @build.program(sizes={"N": 64}, laws=farther.laws, alternatives=[in_chunks])
    def p(xs: "[f32]N"):  # pyright: ignore  # noqa: F722
        return total(xs) + build.reduce_(farther, 0.0, xs)

    text = f"""function farther(a: f32, b: f32) where associative, neutral 0.0 = select(abs(a) >= abs(b), a, b)
        {TOTAL}{CHUNKS}program p(xs: [f32]N) where N = 64 = total(xs) + reduce(farther, 0.0, xs)"""
    read = parse_program(text)
    assert p == replace(read, alternatives=(replace(read.alternatives[0], name="total_in_chunks"),))
    rule = rule_at(in_chunks, (("c", 4), ("n", 64)))
    assert pickle.loads(pickle.dumps(rule)) == rule
    with pytest.raises(RuleProblem, match="a program gave it to the search"):
        reference_to(rule).load()
    with pytest.raises(LiftError, match="a guard compares two sizes by <, <=, >, >=, ==, !="):
        alternative(total, where=["n"])


def test_calls_stand_for_what_a_function_computes():
    read = parse_program("""
        function dot2(xs: [f32]n, ys: [f32]n) = reduce(add, 0.0, map(mul, zip(xs, ys)))
        function norm(xs: [f32]n) = sqrt(dot2(xs, xs))
        program p(A: [[f32]K]M, x: [f32]K) = map(fun row => dot2(row, x) / norm(map(abs, row)), A)""")
    assert print_term(read.body, 200) == (
        "map(fun row => reduce(add, 0.0, map(mul, zip(row, x))) / "
        "(let xs = map(abs, row) in sqrt(reduce(add, 0.0, map(mul, zip(xs, xs))))), A)"
    )
