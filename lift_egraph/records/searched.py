"""The program that searches begin with, in place of the one that was written: records are of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lift_egraph.algebra.array_accumulators import with_tuples_for_arrays
from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.language import ir
from lift_egraph.language.accumulators_first import with_accumulators_first
from lift_egraph.language.columns import with_columns
from lift_egraph.language.elements import with_elements
from lift_egraph.language.folds_outside import with_folds_outside
from lift_egraph.language.generated_once import with_generated_once
from lift_egraph.language.lets_outside import with_lets_outside
from lift_egraph.language.looked_up import with_lookups
from lift_egraph.language.maps_together import with_maps_together
from lift_egraph.language.occurrences import keeps_alternatives


def as_searched(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program over elements instead of places, ranges of what is looked up and columns instead of rows, with folds
    of tuples instead of those of small arrays, the elements of folds between their bounds, and what is generated
    computed once; with its lets outside of patterns, and accumulators first. Alternatives stand for what is written: a
    change after which a function of theirs is not found is left out.

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
    at = dict(sizes or {})
    for change in _CHANGES:
        changed = change(program, at)
        program = changed if keeps_alternatives(program, changed, at) else program
    return program


_CHANGES: tuple[Callable[[ir.Program, Mapping[str, int]], ir.Program], ...] = (
    lambda program, sizes: with_lets_outside(program),
    lambda program, sizes: with_accumulators_first(program),
    with_elements,
    lambda program, sizes: with_lookups(program),
    lambda program, sizes: with_columns(program),
    with_folds_outside,
    lambda program, sizes: with_maps_together(program),
    with_tuples_for_arrays,
    with_ranges,
    lambda program, sizes: with_generated_once(program),
)
