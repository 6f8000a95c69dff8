"""Which rules made a low-level term, as far as the term itself shows it.

The e-graph keeps no derivations, so this reads traces: patterns in the result that the program does not
have, and the rule that introduces them.
"""

from __future__ import annotations

from collections import Counter

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array


def traces(term: ir.Expr) -> Counter[str]:
    """How often each pattern that a rule leaves behind occurs in a term, by the rule's name."""
    found: Counter[str] = Counter()
    for t in ir.subterms(term):
        match t:
            case ir.MapLevel(level=level):
                found[f"map_to_{level.kind}" + ("" if level.kind == "seq" else str(level.dimension))] += 1
            case ir.Vectorize():
                found["vectorise_map"] += 1
            case ir.ReduceSeq(operator=operator):
                fused = isinstance(operator, ir.Lambda) and not _is_plain(operator)
                found["reduce_map_to_seq" if fused else "reduce_to_seq"] += 1
                if isinstance(type_of(t.initial), Array):
                    found["map_reduce_interchange"] += 1
            case ir.Split():
                found["split_join"] += 1
            case ir.ToMemory(space="local"):
                found["stage_in_local"] += 1
            case ir.ToMemory(space="private"):
                found["stage_in_private"] += 1
            case ir.Apply():
                found["reduce_seq_fusion"] += 1
            case _:
                pass
    return found


def _is_plain(operator: ir.Lambda) -> bool:
    """Whether the loop body only combines the accumulator with the element."""
    body = operator.body
    return isinstance(body, ir.Call) and body.arguments == ir.bound_variables(operator.pattern)


def applied_rules(program: ir.Expr, lowered: ir.Expr) -> tuple[str, ...]:
    """The names of rules whose traces a low-level term shows beyond those in the program it came from."""
    before, after = traces(program), traces(lowered)
    named = [name for name, count in after.items() if count > before[name]]
    joins = sum(isinstance(t, ir.Join) for t in ir.subterms(lowered))
    if "split_join" in named and not joins:  # a split that is not joined again belongs to a reduction
        strided = any(isinstance(t, ir.Transpose) and isinstance(t.array, ir.Split) for t in ir.subterms(lowered))
        named[named.index("split_join")] = "partial_reduce_strided" if strided else "partial_reduce"
    return tuple(sorted(named))
