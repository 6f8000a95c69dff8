"""What scripts and notebooks import; it stays here, whatever moves inside the package.

`build` makes programs, `sketch` says what guided search is to reach, `rules` is the rule book, `programs` are the
bundled programs, and `workbench` has the steps of `optimize` one by one. What rules are written with stands in
`lift_egraph.dsl`.
"""

from __future__ import annotations

from lift_egraph import programs, rules, workbench
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.codegen.running.validate import judge, references
from lift_egraph.derivation.derive import applications, explain, replay
from lift_egraph.derivation.explore import Explorer
from lift_egraph.egraph.growth import Growth
from lift_egraph.egraph.members import changes
from lift_egraph.egraph.picture import draw
from lift_egraph.egraph.rule_files import rules_in
from lift_egraph.egraph.saturate import Limits, Phase, run_phase
from lift_egraph.errors import ExplorationProblem, LiftError, SketchProblem
from lift_egraph.extract.baseline import naive_term
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.dag import extract_dag, extract_trees
from lift_egraph.extract.diverse import best_dags
from lift_egraph.extract.gym import read_gym
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.extract.shared import best_shared_terms
from lift_egraph.extract.tiling import tilings, vector_widths
from lift_egraph.guided import sketch
from lift_egraph.guided.matcher import Matcher, satisfying
from lift_egraph.guided.nearest import makers
from lift_egraph.guided.schedules import compare
from lift_egraph.guided.stages import guide
from lift_egraph.language import build
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.declarations import alternative, function
from lift_egraph.language.ir import Program
from lift_egraph.language.syntax import parse_program, print_program, print_term
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, run
from lift_egraph.rules.macros import Macro, reduce_outwards, stage, tiling
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.soundness.rule_check import check_rule, reproduce
from lift_egraph.workbench import optimize

__all__ = [
    "ExplorationProblem", "Explorer", "Growth", "LiftError", "Limits", "Macro", "Matcher", "Phase", "Program",
    "Runner", "SketchProblem", "StructuralCost", "alpha_equal", "alternative", "applications", "best_dags",
    "best_shared_terms", "best_terms", "build", "changes", "check_rule", "compare", "describe", "draw",
    "equal_values", "evaluate", "explain", "extract_dag", "extract_trees", "find_device", "function", "guide",
    "judge", "makers", "naive_term", "optimize", "parse_program", "print_program", "print_term", "programs",
    "random_inputs", "read_gym", "reduce_outwards", "references", "replay", "reproduce", "rules", "rules_in",
    "run", "run_phase", "satisfying", "skeleton", "sketch", "specialise", "stage", "tiling", "tilings", "type_of",
    "vector_widths", "workbench",
]  # fmt: skip
