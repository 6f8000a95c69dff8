"""Mapping maps to OpenCL's thread hierarchy. Which nestings are legal is decided at extraction."""

from __future__ import annotations

from lift_egraph.dsl import Ex, Fn, Rule, map_, map_level, rewrite, rule
from lift_egraph.language.ir import SEQ, Level


def _map_to(level: Level) -> Rule:
    def lowered(f: Fn, xs: Ex):
        yield rewrite(map_(f, xs)).to(map_level(level.kind, level.dimension, f, xs))

    lowered.__name__ = "map_to_seq" if level == SEQ else f"map_to_{level.kind}{level.dimension}"
    return rule(f"map f = {level.name} f", source="000 Figure 2.10a", phase="lowering")(lowered)


map_to_seq = _map_to(SEQ)
map_to_glb0, map_to_glb1, map_to_glb2 = (_map_to(Level("glb", d)) for d in range(3))
map_to_wrg0, map_to_wrg1, map_to_wrg2 = (_map_to(Level("wrg", d)) for d in range(3))
map_to_lcl0, map_to_lcl1, map_to_lcl2 = (_map_to(Level("lcl", d)) for d in range(3))

global_rules = (map_to_seq, map_to_glb0, map_to_glb1)
group_rules = (map_to_wrg0, map_to_wrg1, map_to_lcl0, map_to_lcl1)
third_dimension_rules = (map_to_glb2, map_to_wrg2, map_to_lcl2)
