"""From a program to validated, timed kernels: the pipeline that joins all packages.

Each arrow of the way is one function, so that a notebook can stop at each and look:
`specialise` → `search` (phases of rules, extraction) → `compile_program` → `predict` →
`Runner.run` and `judge` → `Report`. How `optimize` divides its time between them is a `Budget`.
"""

from __future__ import annotations

from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.bundling import Bundled, bundle
from lift_egraph.workbench.candidates import Candidate, make_candidate
from lift_egraph.workbench.demands import data_bytes
from lift_egraph.workbench.explanation import CheckedStep, Explanation, explain_candidate, explain_way
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.kernel_files import require_writable, write, write_kernel
from lift_egraph.workbench.low_level import Validated, compile_low_level
from lift_egraph.workbench.measuring.evaluation import evaluate
from lift_egraph.workbench.phases import (
    Found,
    Leg,
    PhaseSummary,
    algorithmic_phase,
    lowering_phase,
    memory_phase,
    summarise,
)
from lift_egraph.workbench.pipeline import optimize, recall
from lift_egraph.workbench.planning.plan import Plan, Step
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.report import Report
from lift_egraph.workbench.validation.references import load_references, reference_of
from lift_egraph.workbench.way_file import read_way

__all__ = [
    "Budget", "Bundled", "Candidate", "CheckedStep", "Event", "Explanation", "Found", "Leg", "Listener",
    "PhaseSummary", "Plan", "Report", "Step", "Validated", "algorithmic_phase", "bundle", "compile_low_level",
    "data_bytes", "evaluate", "explain_candidate", "explain_way", "load_references", "lowering_phase",
    "make_candidate", "memory_phase", "optimize", "plans", "read_way", "recall", "reference_of", "require_writable",
    "search", "summarise", "write", "write_kernel",
]  # fmt: skip
