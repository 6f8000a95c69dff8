"""Whether rules lead from a term to another one, which is looked for as a search looks for it."""

from __future__ import annotations

from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.saturate import Phase, run_phase
from lift_egraph.language import ir


def leads_to(term: ir.Expr, phase: Phase, goal: ir.Expr) -> bool:
    """Whether a phase leads to a goal: it ends there, for what it finds afterwards may take a hundred times as long."""
    return any(locate(state.graph, state.root, goal) is not None for state in run_phase(term, phase))
