"""The program that searches begin with, in place of the one that was written: records are of its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.language import ir
from lift_egraph.language.accumulators_first import with_accumulators_first
from lift_egraph.language.columns import with_columns
from lift_egraph.language.elements import with_elements
from lift_egraph.language.folds_outside import with_folds_outside
from lift_egraph.language.generated_once import with_generated_once
from lift_egraph.language.lets_outside import with_lets_outside
from lift_egraph.language.maps_together import with_maps_together


def as_searched(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program over elements instead of places and columns instead of rows, with the elements of folds between their
    bounds, and with what is generated computed once; with its lets outside of patterns, and accumulators first.

    What measures kernels or asks records of them begins here, so that all know the program by one hash
    (`lift_egraph.records.record.program_hash`).

    Parameters
    ----------
    program
        With open sizes; they stay open.
    sizes
        Values for them, beside those of the program: the result is for these sizes.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> clock = parse_program("program clock(xs: [i32]N in 0..60) = reduceSeq(fun (s, x) => (s + x) % 12, 0, xs)")
    >>> print_term(as_searched(clock).body.array)
    'map(fun e0 => min(max(e0, 0), 59), xs)'
    """
    written = with_accumulators_first(with_lets_outside(program))
    apart = with_folds_outside(with_columns(with_elements(written, sizes)), sizes)
    return with_generated_once(with_ranges(with_maps_together(apart), sizes))
