"""Files of extraction-gym, good and bad."""

from __future__ import annotations

import copy
import gzip
import json
import math
import re
from pathlib import Path

import pytest

from lift_egraph.errors import InputProblem
from lift_egraph.extract import gym
from lift_egraph.extract.dag import extract_dag
from lift_egraph.extract.gym import read_gym

GOOD = {
    "nodes": {
        "a": {"op": "+", "children": ["b", "c"], "eclass": "sum", "cost": 1},
        "b": {"op": "x", "children": [], "eclass": "x", "cost": 2.5},
        "c": {"op": "x", "children": [], "eclass": "x", "cost": 0.5, "subsumed": False},
    },
    "root_eclasses": ["sum", "sum"],
    "class_data": {"sum": {"type": "i32"}},
}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_a_file(tmp_path):
    graph = read_gym(write(tmp_path / "good.json", GOOD))
    assert graph.classes == ("sum", "x")
    assert graph.roots == (0,)
    assert graph.nodes[0] == ("a", "+", 0, (1, 1), 1.0)
    assert graph.members == ((0,), (1, 2))
    packed = tmp_path / "good.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert read_gym(packed) == graph
    found = extract_dag(graph).best[0]
    assert (found.dag_cost, found.tree_cost) == (1.5, 2.0)


def test_a_subsumed_node_is_not_extracted(tmp_path):
    content = copy.deepcopy(GOOD)
    content["nodes"]["c"]["subsumed"] = True
    graph = read_gym(write(tmp_path / "subsumed.json", content))
    assert graph.nodes[2].cost == math.inf
    assert extract_dag(graph).best[0].dag_cost == 3.5


def changed(*path: str, to: object = None) -> dict:
    """The good file with another value at a place, or without it."""
    content = copy.deepcopy(GOOD)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return content


BAD = {
    "nodes": (changed("nodes"), "describes no e-graph: Object missing required field `nodes`"),
    "roots": (changed("root_eclasses"), "missing required field `root_eclasses`"),
    "op": (changed("nodes", "a", "op"), "missing required field `op` - at `$.nodes[...]`"),
    "eclass": (changed("nodes", "a", "eclass"), "missing required field `eclass`"),
    "children": (changed("nodes", "a", "children"), "missing required field `children`"),
    "cost": (changed("nodes", "a", "cost"), "missing required field `cost`"),
    "text": (changed("nodes", "a", "cost", to="1"), "Expected `float`, got `str` - at `$.nodes[...].cost`"),
    "negative": (changed("nodes", "b", "cost", to=-2), "the node 'b' costs -2.0; a cost is a number of at least 0"),
    "child": (changed("nodes", "a", "children", to=["d"]), "the child 'd' of the node 'a' is no node"),
    "root": (changed("root_eclasses", to=["y"]), "the root 'y' is not the class of any node"),
    "no roots": (changed("root_eclasses", to=[]), "the e-graph has no root: root_eclasses is empty"),
    "no nodes": (changed("nodes", to={}), "the root 'sum' is not the class of any node"),
    "list": ([1, 2], "describes no e-graph: Expected `object`, got `array`"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_holds_no_e_graph(tmp_path, kind):
    content, message = BAD[kind]
    path = write(tmp_path / "bad.json", content)
    with pytest.raises(InputProblem) as caught:
        read_gym(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


TEXT = json.dumps(GOOD).encode()
BYTES = {
    "empty": (b"", "describes no e-graph: Input data was truncated"),
    "half": (TEXT[:100], "describes no e-graph: Input data was truncated"),
    "no JSON": (b"nodes: 3", "describes no e-graph: JSON is malformed"),
    "NaN": (TEXT.replace(b"2.5", b"NaN"), "describes no e-graph: JSON is malformed"),
    "infinity": (TEXT.replace(b"2.5", b"Infinity"), "describes no e-graph: JSON is malformed"),
    "beyond numbers together": (re.sub(rb"[0-9].5", b"1e308", TEXT), "costs is larger than any number of 64 bits"),
    "beyond numbers": (TEXT.replace(b"2.5", b"1e999"), "describes no e-graph: Number out of range"),
    "Latin 1": (TEXT.replace(b'"op": "x"', b'"op": "\xe9"'), "describes no e-graph: "),
    "deep": (b"[" * 100_000, "describes no e-graph: "),
    "cut gzip": (gzip.compress(TEXT)[:-20], "cannot read"),
    "bad gzip": (gzip.compress(TEXT)[:20] + b"\0" * 50, "cannot read"),
}


@pytest.mark.parametrize("kind", BYTES)
def test_a_file_that_is_no_json(tmp_path, kind):
    content, message = BYTES[kind]
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputProblem) as caught:
        read_gym(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_too_large(tmp_path, monkeypatch):
    with pytest.raises(InputProblem, match="No such file or directory"):
        read_gym(tmp_path / "none.json")
    with pytest.raises(InputProblem, match="Is a directory"):
        read_gym(tmp_path)
    monkeypatch.setattr(gym, "MOST_BYTES", 2**20)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(InputProblem, match="holds more than 1 MiB of text"):
        read_gym(bomb)
