"""The rule book on the command line, and the check of a user's own rules."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import textwrap
import time
from pathlib import Path

import pytest

from lift_egraph.rules import all_rules
from tests.command import SOON, lift, marked, start
from tests.depth import in_turn

HEAD = """\
from __future__ import annotations

from lift_egraph.dsl import Ex, Fn, P, String, Ty, V, app, eq, i64, join, map_, rewrite, rule, slide, split, tile
from lift_egraph.dsl import transpose, ty
"""
GOOD = """
@rule("slide n n xs = split n xs,  n | length")
def slide_is_split(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(slide(n, n, xs)).to(split(n, xs), eq(Ty.arr(m, t)).to(ty(xs)), eq(m % n).to(i64(0)))
"""
WRONG = """
@rule("transpose xss = xss")
def forget(xss: Ex):
    yield rewrite(transpose(xss)).to(xss)
"""


def check(path: Path, text: str, *arguments: object):
    path.write_text(HEAD + text)
    return lift("rules", "check", path, "--examples", 10, "--jobs", 1, *arguments)


def test_list_and_show():
    names = [fact["name"] for fact in json.loads(lift("rules", "list", "--json").stdout)]
    assert names == [r.name for r in all_rules]
    shown = lift("rules", "show", "map_fusion").stdout
    assert shown.startswith("map_fusion: map f (map (λp. b) xs)")
    assert "source: 000 Listing 5.4" in shown
    assert "def map_fusion(" in shown


def test_an_unknown_rule_is_named():
    result = lift("rules", "show", "map_fussion")
    assert result.exit_code == 1
    assert "there is no rule 'map_fussion'; did you mean map_fusion?" in result.stderr
    assert "no such file" in lift("rules", "check", "missing.py").stderr


def test_our_rules_pass():
    result = lift("rules", "check", "map_fusion", "transpose_of_transpose", "--examples", 10)
    assert result.exit_code == 0, result.output
    assert "2 rules, 0 wrong" in result.stdout
    assert "map_fusion: no counterexample in 10 examples, 1 of 1 condition exercised" in result.stdout


def test_a_users_rule_passes(tmp_path):
    result = check(tmp_path / "mine.py", GOOD)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("passed slide_is_split: no counterexample in 10 examples")


def test_a_wrong_rule_fails_with_a_small_program(tmp_path):
    result = check(tmp_path / "mine.py", WRONG + GOOD)
    assert result.exit_code == 1
    assert f"{tmp_path / 'mine.py'}:6: forget is not sound: transpose xss = xss" in result.stdout
    assert "program example(a_f32_2_1: [[f32]2]1) =\n      transpose(a_f32_2_1)" in result.stdout
    assert "passed slide_is_split" in result.stdout
    assert "2 rules, 1 wrong" in result.stdout
    lines = textwrap.dedent(result.stdout.partition("the same again\n")[2].partition("\npassed")[0])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(lines, {})
    assert printed.getvalue().startswith("forget is not sound: transpose xss = xss\nprogram example(a_f32_2_1")


CAREFUL = """
@rule("split n (join xss) = xss,  n the length of its rows")
def rows(n: i64, m: i64, k: i64, xss: Ex, t: Ty):
    yield rewrite(split(n, join(xss))).to(xss, eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)), eq(n).to(k), m > 0)
"""


@in_turn(3)
def test_a_condition_that_no_program_breaks_is_named_and_fails_if_strict(tmp_path):
    found = check(tmp_path / "mine.py", CAREFUL)
    assert found.exit_code == 0, found.output
    assert "rows: no counterexample in 10 examples, 2 of 2 conditions exercised" in found.stdout
    unbroken = CAREFUL.replace("m > 0", "eq(fv(xss)).to(fv(xss))")
    found = check(tmp_path / "mine.py", "from lift_egraph.dsl import fv\n" + unbroken, "--strict")
    assert found.exit_code == 1
    assert "2 of 3 conditions exercised" in found.stdout
    assert "no program broke fv(xss) = fv(xss)" in found.stdout


@in_turn(3)
def test_mutants_show_what_the_check_sees(tmp_path):
    found = check(tmp_path / "mine.py", CAREFUL, "--mutate")
    assert "caught    rows: removed: n = k (a counterexample)" in found.stdout
    assert "redundant rows: removed: m > 0 (no program breaks the condition alone)" in found.stdout
    assert found.exit_code == 0, found.output


WARY = """
@rule("join (split n xs) = xs,  n > 1")
def rejoined(n: i64, xs: Ex):
    yield rewrite(join(split(n, xs))).to(xs, n > 1)
"""


@in_turn(2)
def test_what_is_open_says_what_to_do(tmp_path):
    outcomes = json.loads(check(tmp_path / "mine.py", WARY, "--mutate", "--json", "--examples", "3").stdout)
    assert {o["outcome"].partition(":")[0] for o in outcomes} == {"caught", "open"}
    found = check(tmp_path / "mine.py", WARY, "--mutate", "--examples", "3")
    assert "open      rejoined: removed: n > 1" in found.stdout
    assert '@rule(…, notes={"n > 1": "…"})' in found.stdout
    assert found.exit_code == 1


@in_turn(2)
def test_a_seed_reproduces(tmp_path):
    def found(seed: int) -> list[dict]:
        verdicts = json.loads(check(tmp_path / "mine.py", WRONG + GOOD, "--seed", seed, "--json").stdout)
        return [{k: v for k, v in verdict.items() if k != "seconds"} for verdict in verdicts]

    assert found(1) == found(1)


RULE = '@rule("a = a")\ndef odd'
BROKEN = {
    "no such module": ("import stencils\n", "mine.py:5: mine.py: ModuleNotFoundError"),
    "unknown name": ("from lift_egraph.dsl import Stencil\n", "mine.py:5: mine.py: ImportError: cannot import"),
    "an error": ("1 / 0\n", "mine.py:5: mine.py: ZeroDivisionError"),
    "an exit": ("raise SystemExit(3)\n", "mine.py:5: mine.py: SystemExit: 3"),
    "unknown sort": (RULE + "(xs: Array):\n    yield rewrite(transpose(xs)).to(xs)\n",
                     "mine.py:5: odd: unknown sort Array; the sorts are Ex, Fn,"),
    "unbound": (RULE + "(xs: Ex, ys: Ex):\n    yield rewrite(transpose(xs)).to(ys)\n",
                "mine.py:5: odd: ys on the right is bound neither on the left nor in a condition"),
    "a mistake": (RULE + "(xs: Ex):\n    yield rewrite(transpose(xs, xs)).to(xs)\n", "mine.py:7: odd: TypeError"),
    "changes nothing": (RULE + "(xs: Ex):\n    yield rewrite(transpose(xs)).to(transpose(xs))\n",
                        "mine.py:5: odd: it changes nothing: in all of 2 programs"),
    "never fires": (RULE + "(n: i64, m: i64, xs: Ex, t: Ty):\n    yield rewrite(split(n, xs)).to(slide(n, n, xs), "
                    "eq(Ty.arr(m, t)).to(ty(xs)), tile(n, m), n < m)\n",
                    "mine.py:5: odd: it never fires: in none of 2 programs"),
    "a text of any kind": (RULE + "(s: String, xs: Ex):\n    yield rewrite(Ex.input(s, Ty.scalar('f32'))).to(xs, "
                           "eq(xs).to(Ex.input(s, Ty.scalar('f32'))))\n", "mine.py:5: odd: "),
    "a name that nothing tells": (RULE + "(p: P, x: Ex, tag: String):\n    yield rewrite(app(Fn.lam(p, "
                                  "Ex(V.of(tag, p, 2))), x)).to(x)\n", "mine.py:5: odd: "),
    "no law": ("@rule\ndef odd(xs: Ex):\n    yield rewrite(transpose(transpose(xs))).to(xs)\n",
               "mine.py:5: odd: TypeError: odd: a rule needs its law in mathematics"),
    "no sort": (RULE + "(xs):\n    yield rewrite(transpose(transpose(xs))).to(xs)\n",
                "mine.py:5: odd: the parameter xs has no sort: xs: Ex; the sorts are"),
    "returned": (RULE + "(xs: Ex):\n    return rewrite(transpose(transpose(xs))).to(xs)\n",
                 "mine.py:5: odd: it yields no rewrite: yield rewrite(left).to(right)"),
    "half a rewrite": (RULE + "(xs: Ex):\n    yield rewrite(transpose(transpose(xs)))\n",
                       "mine.py:5: odd: a rewrite without its right-hand side: it is rewrite(left).to(right)"),
    "a term": (RULE + "(xs: Ex):\n    yield transpose(transpose(xs))\n",
               "mine.py:5: odd: it yields something else than a rewrite: yield rewrite(left).to(right)"),
    "a number": (RULE + "(xs: Ex):\n    yield 3\n", "mine.py:5: odd: it yields something else than a rewrite"),
    "no attribute": (RULE + "(xs: Ex):\n    yield xs.odd()\n", "mine.py:7: odd: AttributeError: "),
    "no rewrite": (RULE + "(xs: Ex):\n    return ()\n", "mine.py:5: odd: it yields no rewrite"),
}  # fmt: skip


BESIDE = "an error", "unknown sort", "a mistake", "changes nothing", "never fires"  # one that each part of us refuses


def test_broken_rules_are_named_with_their_lines_and_the_rest_is_checked(tmp_path):
    files = [tmp_path / kind / "mine.py" for kind in BROKEN]
    for file, (kind, (text, _)) in zip(files, BROKEN.items(), strict=True):
        file.parent.mkdir()
        file.write_text(HEAD + text + GOOD * (kind in BESIDE))
    result = lift("rules", "check", *files, "--examples", 2, "--jobs", 1)
    assert result.exit_code == 1
    assert [kind for kind, (_, message) in BROKEN.items() if f"/{kind}/{message}" not in result.stdout] == []
    assert result.stdout.count("passed slide_is_split") == len(BESIDE)
    assert "Traceback" not in result.output


LOOPS = {
    "a rule": """
@rule("splits for ever", phase="simplification")
def endless(n: i64, xs: Ex):
    yield rewrite(split(n, xs)).to(split(n, join(split(n + 1, xs))))
""",
    "its function": """
@rule("never done")
def endless(xs: Ex):
    while True:
        pass
    yield rewrite(transpose(xs)).to(xs)
""",
}


@in_turn(6)
@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS.keys())
def test_a_rule_that_loops_is_stopped_and_the_rest_is_checked(tmp_path, text):
    result = check(tmp_path / "mine.py", text + GOOD, "--limit", 1)
    assert result.exit_code == 1
    assert "endless: the check broke off: " in result.stdout
    assert "ran past its 1 s limit" in result.stdout
    assert "passed slide_is_split" in result.stdout


def test_text_that_is_no_python_or_no_rules(tmp_path):
    assert "mine.py:5: mine.py: SyntaxError" in check(tmp_path / "mine.py", "def (:\n").stdout
    assert "it defines no rules" in check(tmp_path / "mine.py", "").stdout


@pytest.mark.usefixtures("interruptible")
def test_interrupt():
    mark = f"rules-{os.getpid()}"
    process = start("-m", "lift_egraph", "rules", "check", "--examples", 5000, "--jobs", 1, MARK=mark)
    try:
        while len(marked(mark)) < 2 and process.poll() is None:  # until a child looks at rules
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SOON)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.strip() == "interrupted"
