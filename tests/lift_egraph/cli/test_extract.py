"""``lift-egraph extract``."""

from __future__ import annotations

import json
import random

import pytest

from tests.command import SOON, interrupted, lift, start

SMALL = {
    "nodes": {
        "a": {"op": "*", "children": ["c", "d"], "eclass": "6", "cost": 2},
        "b": {"op": "+", "children": ["d", "d"], "eclass": "6", "cost": 2},
        "c": {"op": "2", "children": [], "eclass": "2", "cost": 1},
        "d": {"op": "3", "children": [], "eclass": "3", "cost": 2},
    },
    "root_eclasses": ["6"],
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    return path


def test_the_best_dag(small):
    result = lift("extract", small)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "small.json: 4 nodes, 3 classes, 1 root"
    assert ["1", "4", "6", "2", "–"] in [line.split() for line in lines]
    assert "No extraction is cheaper than the first: proven." in lines
    assert lines[-1].startswith("Search ended: proven; ")


def test_trees_and_several(small):
    rows = [line.split() for line in lift("extract", small, "--cost", "tree", "--best=3").stdout.splitlines()]
    assert ["1", "5", "5", "3", "–"] in rows
    assert ["2", "4", "6", "2", "75.0", "%"] in rows
    assert ["Found", "2", "of", "the", "3", "asked", "for."] in rows
    rows = [line.split() for line in lift("extract", small, "--best=3", "--apart=0.7").stdout.splitlines()]
    assert ["2", "5", "5", "3", "75.0", "%"] in rows
    apart = lift("extract", small, "--best=2", "--apart=0.8", "--json")
    assert len(json.loads(apart.stdout)["extractions"]) == 1


def test_json_on_stdout_and_in_a_file(small, tmp_path):
    result = lift("extract", small, "--json", "--out", tmp_path / "out.json")
    found = json.loads(result.stdout)
    assert json.loads((tmp_path / "out.json").read_text()) == found
    (extraction,) = found["extractions"]
    assert extraction["nodes"] == [
        {"node": "d", "op": "3", "eclass": "3", "parts": []},
        {"node": "b", "op": "+", "eclass": "6", "parts": [0, 0]},
    ]
    assert (extraction["dag_cost"], extraction["tree_cost"], extraction["roots"]) == (4, 6, [1])
    assert (found["proven"], found["lower_bound"], found["measure"]) == (True, 4, "dag")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.json"], 1, "error: cannot read none.json: No such file or directory"),
        (["--seconds", "0"], 2, "is not a number of seconds above 0"),
        (["--seconds", "nan"], 2, "is not a number of seconds above 0"),
        (["--best", "0"], 2, "--best"),
        (["--cost", "area"], 2, "--cost"),
        (["--apart", "2"], 2, "--apart"),
        (["--out", "no/such/file"], 1, "error: cannot write to no/such/file: there is no directory no/such"),
        (["--out", "/"], 1, "error: cannot write to /: it is a directory"),
    ],
)
def test_what_it_refuses(small, arguments, code, message):
    given = arguments if arguments[0].endswith(".json") else [small, *arguments]
    result = lift("extract", *given)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_no_finite_term(small):
    small.write_text(json.dumps({**SMALL, "nodes": {"a": {**SMALL["nodes"]["a"], "children": ["a"]}}}))
    result = lift("extract", small)
    assert (result.exit_code, result.stdout) == (1, "")
    message, _, reason = result.stderr.partition(": each of its nodes leads back to it, ")
    assert message == "error: the class 6 has no finite term"
    assert reason == "or to one that may not be extracted\n"


def puzzle(count: int) -> dict:
    """A graph that takes long: each of many roots has nodes that share random classes with those of others."""
    order = random.Random(0)
    nodes = {f"leaf{i}": {"op": "leaf", "children": [], "eclass": f"l{i}", "cost": order.randint(50, 99)}
             for i in range(count)}  # fmt: skip
    for i in range(count):
        for j in range(6):
            children = [f"leaf{k}" for k in order.sample(range(count), 4)]
            nodes[f"{i}.{j}"] = {"op": "f", "children": children, "eclass": str(i), "cost": order.randint(1, 9)}
    return {"nodes": nodes, "root_eclasses": [str(i) for i in range(count)]}


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_shows_the_best_so_far(tmp_path):
    path = tmp_path / "puzzle.json"
    path.write_text(json.dumps(puzzle(60)))
    process = start("-m", "lift_egraph", "extract", path, "--seconds", "60")
    shown, _ = interrupted(process, "stderr", "found a DAG of cost", pause=0.3)
    assert process.returncode == 130
    assert "Every extraction costs at least" in shown
    assert "Search ended: interrupted" in shown


def test_the_time_limit_holds(tmp_path):
    path = tmp_path / "puzzle.json"
    path.write_text(json.dumps(puzzle(60)))
    found = json.loads(lift("extract", path, "--seconds", "1", "--json").stdout)
    assert found["ended"] == "out of time"
    assert found["seconds"] < SOON
    assert 0 < found["lower_bound"] < found["extractions"][0]["dag_cost"]
