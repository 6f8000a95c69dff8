"""Every engine holds the whole table of scalar operations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import egglog
import pytest

from lift_egraph.egraph.analyses import analyses
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import freeze
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import OPERATIONS, ScalarOp, result_type
from lift_egraph.language.types import BOOL, F32, F64, I32, DataType, Vector

SCALARS = (F32, F64, I32, BOOL)
ARGUMENTS: tuple[DataType, ...] = (*SCALARS, *(Vector(s, 4) for s in SCALARS))


def calls(op: ScalarOp) -> Iterator[ir.Call]:
    """The operation on every mixture of scalars and vectors that the checker allows."""
    for types in product(ARGUMENTS, repeat=op.arity):
        try:
            result_type(op.name, types)
        except TypeProblem:
            continue
        yield ir.Call(op.name, tuple(ir.Input(f"{name}_{t}", t) for name, t in zip("abc", types, strict=False)))


@cache
def types_in_the_e_graph() -> dict[ir.Call, DataType | None]:
    graph = egglog.EGraph()
    terms = [term for op in OPERATIONS.values() for term in calls(op)]
    roots = {f"root_{n}": graph.let(f"root_{n}", to_egg(term)) for n, term in enumerate(terms)}
    graph.run(egglog.unstable_combine_rulesets(*analyses).saturate())
    frozen = freeze(graph, roots)
    return {term: frozen.type_of(frozen.roots[root]) for term, root in zip(terms, roots, strict=True)}


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)
def test_the_e_graph_types_calls_as_the_checker_does(op: ScalarOp) -> None:
    found = types_in_the_e_graph()
    wanted = {term: type_of(term) for term in calls(op)}
    assert wanted
    assert {str(term): found[term] for term in wanted} == {str(term): t for term, t in wanted.items()}
