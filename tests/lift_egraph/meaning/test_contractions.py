"""Sums of products by matrix products, against the same sums made product by product."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.meaning import contractions
from lift_egraph.meaning.bounds import BoundedDomain, evaluate_bounded
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.interp import evaluate, interpret
from lift_egraph.meaning.workload import effort, workload
from tests.lift_egraph.meaning.terms import parsed

DOT = "reduce(add, 0.5, map(mul, zip({}, {})))"
PRODUCT = f"map(fun row => map(fun col => {DOT.format('row', 'col')}, transpose(B)), A)"
ROWS = f"map(fun (a, b) => {DOT.format('a', 'b')}, zip(A, transpose(B)))"
VECTOR = "map(fun row => reduce(add, 0.0, map(fun (a, b) => let c = b + 1.0 in 2.0 * a * c, zip(row, at(1, A)))), A)"
WINDOWS = """
    map(fun w => reduce(add, 0.0, map(fun (a, b) => a * (b / 3.0), zip(w, at(0, slide(40, 1, at(0, A)))))),
      slide(40, 1, at(1, A)))
"""
SHAPE = (50, 50)


def inputs(kind: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {name: rng.normal(size=SHAPE).astype(np.float32) for name in "AB"}
    if kind == "integers":
        return {name: np.rint(2 * a) for name, a in made.items()}
    if kind == "mixed":  # rows with whole numbers, with quarters, with what no order of summation keeps
        made["A"][:20] = np.rint(made["A"][:20])
        made["A"][10:15] /= 4
        made["A"][15] = 2.0**25
        made["B"] = np.rint(made["B"])
    return made


@pytest.mark.parametrize("kind", ["integers", "floats", "mixed"])
@pytest.mark.parametrize("text", [PRODUCT, ROWS, VECTOR, WINDOWS])
def test_matrix_products_and_plain_ones_agree(text: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    values = inputs(kind)
    term = parsed(text, values)
    results = []
    for least, block in ((contractions.LEAST, 1 << 20), (1, 1000), (1 << 40, 1)):
        monkeypatch.setattr(contractions, "LEAST", least)
        monkeypatch.setattr(contractions, "BLOCK", block)
        results.append((evaluate(term, values), *evaluate_bounded(term, values)))
    *_, (single, value, bound) = results
    if kind != "mixed":
        assert (bound > 0).mean() == float(kind == "floats" or text == WINDOWS)
    for fast, fast_value, fast_bound in results[:-1]:
        assert np.array_equal(fast_bound == 0, bound == 0)
        np.testing.assert_allclose(fast_value, value, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(fast_bound, bound, rtol=0.02)
        assert fast.dtype == np.float32
        for one in (fast, single):
            assert (np.abs(one - value) <= bound).all()


def test_what_is_not_finite_is_not_lost():
    values = inputs("floats")
    values["A"][3, 4], values["B"][4, 5], values["A"][7, 0] = np.inf, 0, np.nan
    values["A"][9], values["B"][:, 9] = 1e38, 1e38
    term = parsed(PRODUCT, values)
    value, bound = evaluate_bounded(term, values)
    assert np.isnan(value[3, 5])
    assert bound[3, 5] == 0
    assert np.isnan(value[7]).all()
    assert np.isinf(value[9, 9] + bound[9, 9])
    assert np.isnan(evaluate(term, values)[3, 5])


def test_products_that_are_not_worth_a_call_are_made_in_slices():
    values = inputs("floats")
    term = parsed(PRODUCT, values)
    for domain in (Plain(), BoundedDomain()):
        domain.contract = lambda start, a, b: None
        whole, sliced = (interpret(term, values, {}, domain, budget) for budget in (1 << 26, 1000))
        np.testing.assert_allclose(domain.array(sliced), domain.array(whole), rtol=1e-5)


def test_a_factor_is_counted_once_for_all_that_share_it():
    values = inputs("floats")
    n = SHAPE[0]
    assert workload(parsed(PRODUCT, values)) == n * n
    assert effort(parsed(PRODUCT, values)) == pytest.approx(n * n + 2 * n * n + n**3 / 100)
