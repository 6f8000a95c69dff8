"""Mapping maps to OpenCL's thread hierarchy. Which nestings are legal is decided at extraction."""

from __future__ import annotations

from lift_egraph.dsl import Ex, Fn, map_, map_level, rewrite, rule


@rule("map f = mapSeq f", source="000 Figure 2.10a", phase="lowering")
def map_to_seq(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("seq", 0, f, xs))


@rule("map f = mapGlb(0) f", source="000 Figure 2.10a", phase="lowering")
def map_to_glb0(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("glb", 0, f, xs))


@rule("map f = mapGlb(1) f", source="000 Figure 2.10a", phase="lowering")
def map_to_glb1(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("glb", 1, f, xs))


@rule("map f = mapWrg(0) f", source="000 Figure 2.10a", phase="lowering")
def map_to_wrg0(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("wrg", 0, f, xs))


@rule("map f = mapWrg(1) f", source="000 Figure 2.10a", phase="lowering")
def map_to_wrg1(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("wrg", 1, f, xs))


@rule("map f = mapLcl(0) f", source="000 Figure 2.10a", phase="lowering")
def map_to_lcl0(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("lcl", 0, f, xs))


@rule("map f = mapLcl(1) f", source="000 Figure 2.10a", phase="lowering")
def map_to_lcl1(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("lcl", 1, f, xs))


@rule("map f = mapGlb(2) f", source="000 Figure 2.10a", phase="lowering")
def map_to_glb2(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("glb", 2, f, xs))


@rule("map f = mapWrg(2) f", source="000 Figure 2.10a", phase="lowering")
def map_to_wrg2(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("wrg", 2, f, xs))


@rule("map f = mapLcl(2) f", source="000 Figure 2.10a", phase="lowering")
def map_to_lcl2(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("lcl", 2, f, xs))


global_rules = (map_to_seq, map_to_glb0, map_to_glb1)
group_rules = (map_to_wrg0, map_to_wrg1, map_to_lcl0, map_to_lcl1)
third_dimension_rules = (map_to_glb2, map_to_wrg2, map_to_lcl2)
