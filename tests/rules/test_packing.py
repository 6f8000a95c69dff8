"""The rules that pack arrays and keep blocks in registers are sound, and their wrong twins are caught."""

from __future__ import annotations

import pytest
from egglog import eq, i64, rewrite

from lift_egraph.rule_checks import FIRE_RATE
from lift_egraph.sorts import Ex, Fn, P, Ty, V, map_, map_level, reduce_seq, split, to_memory, transpose, ty
from lift_egraph.soundness import check_rule
from rules import simplification
from rules.packing import packing_rules
from tests.rules.planting import Planted, Twin

twins = Planted()


@twins.plant("pack_blocks", "the packed blocks = the blocks, though transposed")
def packed_blocks_stay_transposed(xss: Ex, n: i64, m: i64, k: i64, t: Ty):
    chunks = map_(Fn.transpose(Ty.arr(n, Ty.arr(k, t))), split(n, xss))
    yield rewrite(split(n, xss)).to(to_memory("global", chunks), eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)))


@twins.plant("keep_block_in_private", "the copy of a square block = the block, though transposed")
def the_copy_is_transposed(f: Fn, z: Ex, xs: Ex, n: i64, t: Ty):
    element, row = V("$element", t), V("$row", Ty.arr(n, t))
    copy_row = map_level("seq", i64(0), Fn.lam(P.var(element), Ex(element)), Ex(row))
    yield rewrite(reduce_seq(f, z, xs)).to(
        map_level("seq", i64(0), Fn.lam(P.var(row), copy_row), to_memory("private", transpose(reduce_seq(f, z, xs)))),
        eq(Ty.arr(n, Ty.arr(n, t))).to(ty(z)),
    )


@pytest.mark.parametrize("rule", packing_rules, ids=lambda r: r.name)
def test_sound_and_not_vacuous(rule):
    report = check_rule(rule, 40, simplification=simplification)
    assert report.counterexample is None, str(report.counterexample)
    assert report.fire_rate >= FIRE_RATE, f"{rule.name} fires in {report.fired} of {report.examples} examples"


@pytest.mark.parametrize("twin", twins.twins, ids=lambda t: t.rule.name)
def test_a_wrong_twin_is_caught(twin: Twin):
    assert check_rule(twin.rule, 200, simplification=simplification).counterexample is not None


def test_every_rule_has_a_twin():
    assert {t.of for t in twins.twins} == {r.name for r in packing_rules}
