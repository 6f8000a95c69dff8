"""The audit of a whole e-graph: all members of a class must have one value.

A rule is checked alone; unions of two rules may be wrong although each rule is right on every program, where one
leaves behind what the other takes for granted: a name, or a fact. So members of every class of a saturated e-graph
are evaluated, open ones under equal values of their variables, and compared.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.read_back import Choice, open_function, open_term
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import load_rules
from lift_egraph.egraph.rule_forms import forms
from lift_egraph.egraph.saturate import Limits, Phase, run_phase
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.syntax import print_term
from lift_egraph.language.types import DataType
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value
from lift_egraph.soundness.counterexamples import equal_values, shown
from lift_egraph.soundness.rule_checker import WIDTHS
from lift_egraph.soundness.rule_steps import array_lengths

SLACK = 4  # how much deeper than its shallowest members the members of a class that are compared may be
EXACT = float(1 << 20)  # whole numbers beyond it may be rounded
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Disagreement:
    """Two members of a class with different values.

    Attributes
    ----------
    first, second
        The members, as text; functions as their application to an argument.
    values
        The inputs and variables of the two, by name.
    expected, found
        Their values; `found` is a message where the second has no value or another type.
    """

    class_id: ClassId
    first: str
    second: str
    values: dict[str, Value]
    expected: Value
    found: Value | str

    def __str__(self) -> str:
        given = "\n".join(f"  {name} = {shown(value)}" for name, value in self.values.items())
        return (
            f"two members of class {self.class_id} differ:\n  {self.first}\nand\n  {self.second}\nfor\n{given}\n"
            f"the first is\n  {shown(self.expected)}\nthe second\n  {shown(self.found)}"
        )


@dataclass(frozen=True)
class Audit:
    """How many classes and members were looked at, and the disagreements among them.

    Attributes
    ----------
    nodes
        How many nodes those classes have, each of which may be what one rule put there.
    """

    classes: int
    members: int
    disagreements: tuple[Disagreement, ...]
    nodes: int = 0


def audit(graph: FrozenEGraph, *, members: int | None = None, most: int = 5, seed: int = 0) -> Audit:
    """Evaluate members of every class of terms and functions, and compare them.

    Parameters
    ----------
    members
        How many members of each class to look at; each begins with another node of the class. By default one for
        each node, so that whatever a rule put into a class is compared with what was there.
    most
        After how many classes with a disagreement to stop.
    seed
        Equal seeds give equal samples and values.

    Returns
    -------
    Audit
        At most one disagreement for each class, small members first. Values are equal exactly, or up to rounding
        where they are no whole numbers.
    """
    sampler = MemberSampler(graph)
    found: list[Disagreement] = []
    classes = evaluated = nodes = 0
    for class_id in sampler.classes():
        if graph.sorts[class_id] not in ("Ex", "Fn"):
            continue
        rng = random.Random(f"{seed}/{class_id}")
        wanted = graph.type_of(class_id) if graph.sorts[class_id] == "Ex" else graph.codomain(class_id)
        terms = list(_terms(graph, class_id, sampler.spread(class_id, rng, members, SLACK), wanted))
        classes, evaluated, nodes = classes + 1, evaluated + len(terms), nodes + sampler.size(class_id)
        wrong = _compare(class_id, terms, seed)
        if wrong is not None:
            found.append(wrong)
            if len(found) >= most:
                break
    return Audit(classes, evaluated, tuple(found), nodes)


def audit_program(
    program: ir.Program,
    rules: tuple[Rule, ...],
    files: tuple[Path, ...],
    simplification: tuple[Rule, ...],
    limits: Limits,
    members: int | None = None,
    seed: int = 0,
) -> tuple[Audit, int, str]:
    """Saturate a program of concrete sizes with rules, also those in files, and audit the e-graph.

    Returns
    -------
    (audit, tuples, stop_reason)
        The audit, the size of the e-graph, and why it is no larger.

    Raises
    ------
    RuleProblem
        If a file, or a rule in it, cannot be used.
    """
    for path in files:
        found, problems = load_rules(path)
        for problem in problems:
            raise problem
        for rule in found:
            forms(rule)
        rules += found
    tiles = {n: tuple(d for d in range(2, n) if n % d == 0) for n in array_lengths(program.body)}
    phase = Phase("audit", rules, simplification, tiles, WIDTHS, limits)
    *_, last = run_phase(program.body, phase)
    return audit(last.graph, members=members, seed=seed), last.graph.tuples, last.stop_reason.value


def _terms(
    graph: FrozenEGraph, class_id: ClassId, choices: Iterator[Choice], wanted: DataType | None
) -> Iterator[tuple[ir.Expr, DataType]]:
    if wanted is None:
        return  # no analysis reached it: it is part of no term
    for choice in choices:
        if graph.sorts[class_id] == "Ex":
            yield open_term(graph, choice), wanted
        else:
            t = graph.domain(class_id)
            assert t is not None
            yield ir.Apply(open_function(graph, choice), ir.Input("argument", t)), wanted


def _compare(class_id: ClassId, terms: list[tuple[ir.Expr, DataType]], seed: int) -> Disagreement | None:
    known: tuple[ir.Expr, Value] | None = None
    for term, wanted in terms:
        inputs, variables = _environment(term, seed)
        value = _value(term, wanted, inputs, variables)
        if known is None:
            if isinstance(value, str):
                return Disagreement(
                    class_id, f"a term of the type {wanted}", print_term(term), inputs, np.array(0), value
                )
            known = term, value
        elif isinstance(value, str) or not _agree(known[1], value):
            first, variables_of_first = _environment(known[0], seed)
            given = {**first, **inputs, **variables_of_first, **variables}
            return Disagreement(class_id, print_term(known[0]), print_term(term), given, known[1], value)
    return None


def _environment(term: ir.Expr, seed: int) -> tuple[dict[str, Value], dict[str, Value]]:
    """Values for the inputs and free variables of a term, which depend on their names and types alone."""
    inputs = {p.name: p for p in ir.subterms(term) if isinstance(p, ir.Input)}
    variables = [ir.Input(v.name, v.type) for v in sorted(ir.free_variables(term), key=str)]

    def values(items: Any) -> dict[str, Value]:
        return {i.name: random_inputs(ir.Program("one", (i,), i), _seed(i, seed), "integer")[i.name] for i in items}

    return values(inputs[name] for name in sorted(inputs)), values(variables)


def _seed(item: ir.Input, seed: int) -> int:
    return seed + zlib.crc32(f"{item.name}: {item.type}".encode())


def _value(term: ir.Expr, wanted: DataType, inputs: dict[str, Value], variables: dict[str, Value]) -> Value | str:
    try:
        found = type_of(term)
        if found != wanted:
            return f"of the type {found}, in a class of the type {wanted}"
        return evaluate(term, inputs, variables)
    except LiftError as problem:
        return f"{type(problem).__name__}: {problem}"


def _agree(left: Value, right: Value) -> bool:
    if equal_values(left, right):
        return True
    if isinstance(left, tuple) or isinstance(right, tuple):
        both = isinstance(left, tuple) and isinstance(right, tuple)
        return both and all(_agree(a, b) for a, b in zip(left, right, strict=True))
    if left.dtype != right.dtype or left.shape != right.shape or left.dtype.kind != "f" or _is_exact(left):
        return False
    scale = np.max(np.abs(left[np.isfinite(left)]), initial=1.0)
    with np.errstate(all="ignore"):
        return np.allclose(left, right, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)


def _is_exact(value: np.ndarray) -> bool:
    finite = value[np.isfinite(value)]
    return bool(np.all(finite == np.round(finite)) and np.all(np.abs(finite) < EXACT))
