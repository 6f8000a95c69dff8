"""``lift-egraph check``: a program before any search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import lift

MIXED = """
function log_sum(a: f32, b: f32) where associative, commutative, neutral -inf = log(exp(a) + exp(b))
program mixed(xs: [f32]N in 1..2, k: f32) where N = 1001 =
  (reduce(log_sum, -inf, xs), reduceSeq(fun (s, x) => k * s + x, 0.0, xs), reduceSeq(fun (s, x) => s * s + x, 0.0, xs))
"""


def written(folder: Path, text: str) -> str:
    (folder / "given.lift").write_text(text)
    return str(folder / "given.lift")


def test_it_says_types_laws_and_which_folds_stay_loops(tmp_path: Path):
    result = lift("check", written(tmp_path, MIXED), "--size", "N=7")
    assert result.exit_code == 0, result.stderr
    head, types, *known = result.stdout.splitlines()
    assert head == "mixed(xs: [f32]7 in 1..2, k: f32)"
    assert types == "result: (f32, f32, f32)"
    assert any("is associative: both sides are equal, as was declared" in line for line in known)
    assert any("s * k + x multiplies the accumulator by a matrix" in line for line in known)
    loops = [line for line in known if "stays a loop" in line]
    assert len(loops) == 1
    assert "s1 * s1 multiplies the accumulator with itself" in loops[0]
    assert any(line.startswith("log_sum is associative on ") for line in known)


def test_it_is_json_too(tmp_path: Path):
    result = lift("check", written(tmp_path, MIXED), "--json")
    made = json.loads(result.stdout)
    assert made["program"].startswith("mixed(xs: [f32]1001")
    assert made["result"] == "(f32, f32, f32)"
    assert len(made["loops"]) == 1
    assert made["laws"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program p(xs: [f32]4) = reduce(add, 0, ys)", "unknown name 'ys'; did you mean 'xs'?"),
        ("function f(a: f32, b: f32) where associative = a - b\nprogram p(xs: [f32]4) = reduce(f, 0, xs)",
         "f: it is not associative"),
        ("function t(xs: [f32]n) = reduce(add, 0.0, xs)\nalternative t = at(0, xs)\nprogram p(xs: [f32]4) = t(xs)",
         "alternative"),
        ("program p(xs: [f32]N) where N = 5 = split(2, xs)", "2"),
    ],
    ids=["a name", "a law", "an alternative", "a size"],
)  # fmt: skip
def test_what_is_wrong_is_an_error(tmp_path: Path, text: str, message: str):
    result = lift("check", written(tmp_path, text))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
