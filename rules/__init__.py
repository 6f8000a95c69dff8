"""The rule book: every rule of lift-egraph, one module a family, in explicit tuples."""

from __future__ import annotations

from lift_egraph.rule import Rule
from rules.fusion import fission_rules, fusion_rules
from rules.interchange import interchange_rules, matrix_rules
from rules.opencl_memory import memory_rules
from rules.opencl_parallel import global_rules, group_rules
from rules.opencl_vector import vector_rules
from rules.reduction import loop_rules, operator_rules, split_reduce_seq, splitting_rules
from rules.simplification import simplification_rules
from rules.split_join import split_join_rules

simplification: tuple[Rule, ...] = simplification_rules + operator_rules
algorithmic: tuple[Rule, ...] = (
    fusion_rules + fission_rules + split_join_rules + splitting_rules + interchange_rules + matrix_rules
)
lowering: tuple[Rule, ...] = (
    *loop_rules,
    split_reduce_seq,
    *vector_rules,
    *global_rules,
    *group_rules,
    *memory_rules,
)
all_rules: tuple[Rule, ...] = algorithmic + lowering + simplification
