"""What a change makes of a program does not depend on what the program calls things: none of its names captures any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice

import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, names_in, unique_names
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench.changes.remainders import WithRests, chunk_for, vector_of
from lift_egraph.workbench.changes.steps import Changes

N = 100003
HEAD = f"program p(x: [f32]{N}, A: [[f32]{N}]2, B: [[f32]100]3000, C: [[f32]90]100, k: f32) = let m = k * k in "
PROGRAMS = {
    "a scan in chunks": "scan(fun (a, v) => min(max(a + v, m), 5.0), 0.0, x)",
    "a fold in chunks": "reduceSeq(fun (a, v) => a * m + v, m, x)",
    "folds of rows": "map(fun r => reduceSeq(fun (a, v) => v * m + a * k, 0.0, r), A)",
    "siblings": "reduce(add, 0.0, map(fun v => v * m, x)) / reduce(max, m, x)",
    "one row": "let t = reduce(add, 0.0, map(fun v => v * m, x)) in map(fun v => v / t + m, x)",
    "a cascade": "reduceSeq(fun ((a, b), v) => (a + v * m, b + a * v), (0.0, m), x)",
    "a fold of a scan": "reduce(max, m, scan(fun (a, v) => max(a + v, m), 0.0, x))",
    "rests": "map(fun v => v * m, scan(add, m, map(fun v => v + m, x)))",
    "a product": "map(fun r => map(fun c => m * reduce(add, 0.0, map(mul, zip(r, c))), transpose(C)), B)",
    "centred rows": "map(fun r => let t = reduce(add, m, r) in map(fun v => (v - t) * m, r), A)",
}


def changes(device: Device) -> Iterator[Callable[[ir.Expr], list[ir.Expr]]]:
    """What makes another term of one, in the order of a search."""
    for change in Changes(device, Limits(1), lambda phase: phase)._all():  # pyright: ignore[reportPrivateUsage]
        yield lambda term, change=change: [goal for way in change(term) for _, _, goal in way]
    yield lambda term: [WithRests(chunk_for(device, 1 << 12, 8), vector_of(device)).term(term)]


def renamed(term: ir.Expr, names: Sequence[str], first: int) -> ir.Expr:
    """The term with these names for what it binds, in turn from one on."""
    new = islice(cycle(names), first, None)
    return unique_names(term, base=lambda name: next(new))


@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda device: device.name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_the_names_of_its_changes_has_the_same_changes(name: str, device: Device):
    term = parse_program(HEAD + PROGRAMS[name]).body
    for change in changes(device):
        goals = change(term)
        made = set[str]().union(*map(names_in, goals)) - names_in(term)
        own = sorted(name for name in made if not name.startswith("$"))  # what begins so is in no program's text
        for first in range(len(own)):
            others = change(renamed(term, own, first))
            assert list(map(alpha_equal, goals, others)) == [True] * len(goals) == [True] * len(others)
        term = goals[-1] if goals else term
