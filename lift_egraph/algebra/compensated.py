"""Operators that keep what rounding loses: compensated sums. Without rounding that is 0, so that no law of numbers sees
it, and in another order it would be lost.

Source: Kahan, "Further remarks on reducing truncation errors", CACM 1965; Neumaier 1974.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lift_egraph.algebra.expressions import opened
from lift_egraph.algebra.linear import RING
from lift_egraph.algebra.normal_forms import NoNormalForm, polynomial
from lift_egraph.algebra.trials import COUNT, Counterexample, atoms, drawn, evaluate, shown
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import Scalar


@lru_cache(maxsize=1024)
def compensates(function: ir.Function) -> str | None:
    """Why an operator on floats keeps what rounding loses; None if it does not.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program(
    ...     "program p(xs: [f32]N) = reduceSeq("
    ...     "fun ((s, c), x) => let y = x - c in let t = s + y in (t, (t - s) - y), (0.0, 0.0), xs)"
    ... ).body
    >>> print(compensates(fold.operator).partition(",")[0])
    s + (x - c) - s - (x - c) is not 0.0 as it is rounded
    """
    op = opened(function)
    for part in dict.fromkeys(p for r in op.results for p in ir.subterms(r)) if op else ():
        if isinstance(part, ir.Call) and part.op in ("add", "sub") and _is_nothing(part):
            return f"{print_term(part)} is not 0.0 as it is rounded, {_lost(part)}: another order would lose that"
    return None


def _lost(term: ir.Call) -> str:
    """Values for which what is 0 without rounding is not, computed in doubles."""
    draw, names = np.random.default_rng(0), list(dict.fromkeys(atoms(term)))
    scope = {v: drawn(type_of(v), draw, fractions=True) for v in names}
    found = np.broadcast_to(evaluate(term, scope), COUNT)
    at = int(np.argmax(np.abs(found)))
    values = tuple((shown(v), scope[v][at].item()) for v in names if scope[v].ndim == 1)  # no arrays
    return str(Counterexample(values, found[at].item(), 0.0))


def _is_nothing(term: ir.Call) -> bool:
    """Whether a sum of floats is 0 without rounding, whatever its variables are."""
    t = type_of(term)
    if not isinstance(t, Scalar) or not t.is_float or not ir.free_variables(term):
        return False
    try:
        return not polynomial(RING, t, term)
    except NoNormalForm:
        return False
