"""What a search does to a program before it follows plans: folds become reductions, siblings one map, long rows chunks.

A change knows the term that it leads to, and the phase of rules that leads there; it is made where the phase does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.saturate import Limits, Phase, run_phase
from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.workbench.changes.actions import with_actions
from lift_egraph.workbench.changes.automata import table_steps
from lift_egraph.workbench.changes.bounded import with_bounds
from lift_egraph.workbench.changes.cascades import cascade_steps
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.folded_scans import with_folded_scans
from lift_egraph.workbench.changes.joined_folds import with_joined_folds
from lift_egraph.workbench.changes.joined_sums import with_joined_sums
from lift_egraph.workbench.changes.large_apart import LargeApart
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.changes.one_row import with_one_row
from lift_egraph.workbench.changes.padding import Padding
from lift_egraph.workbench.changes.placed import with_atomics, with_distinct_places
from lift_egraph.workbench.changes.prefixes import with_scanned_prefixes
from lift_egraph.workbench.changes.products_apart import products_in_steps
from lift_egraph.workbench.changes.recalled import with_recalled
from lift_egraph.workbench.changes.siblings import siblings_together
from lift_egraph.workbench.changes.sliced_products import sliced_products
from lift_egraph.workbench.changes.tabled import with_tables
from lift_egraph.workbench.changes.views import with_matrices_as_stored, with_views
from lift_egraph.workbench.phases import Leg, PhaseSummary, Start, summarise
from lift_egraph.workbench.planning.plan import planned_phase

MOST_STEPS = 16  # iterations until lengths are in parts

Goal = tuple[str, Tiling, ir.Expr]  # the name of a phase, the lengths of parts, and the term that it leads to
Way = tuple[Goal, ...]  # one after the other; what stands between is no start


@dataclass(frozen=True)
class Changes:
    """The changes of a program for a device.

    Parameters
    ----------
    limits
        Of a phase.
    taking
        Which rules of a phase take part.
    """

    device: Device
    limits: Limits
    taking: Callable[[Phase], Phase]

    def of(self, start: Start) -> Iterator[tuple[PhaseSummary, Start]]:
        """The start as it is best begun with: each change of it, and what it is then."""
        for change in self._all():
            for way in change(start[0]):
                made = self._followed(way, start)
                if made is None:
                    break
                yield from made
                start = made[-1][1]

    def of_products(self, term: ir.Expr) -> bool:
        """Whether products have plans only when they are apart, or padded."""
        return any(next(change(term), None) for change in (self._sliced_products, self._products_apart, self._padding))

    def _all(self) -> tuple[Callable[[ir.Expr], Iterator[Way]], ...]:
        """One after the other; each has several ways, one after the other, too."""
        rows, few = Rows(self.device), 0 if self.device.has_groups else self.device.lanes
        return (
            _once("inlining", with_views),
            _once("distinct_places", with_distinct_places),
            _once("atomic_places", self._atomic_places),
            _once("algebra", with_scanned_prefixes),
            _once("joined_sums", with_joined_folds),
            _once("folded_scans", lambda term: with_folded_scans(term, rows)),
            lambda term: (((step.phase, step.tiling, step.term),) for step in table_steps(term, rows)),
            _once("algebra", lambda term: with_bounds(term, rows)),
            _once("algebra", with_recalled),
            _once("joined_sums", with_joined_sums),
            lambda term: (((step.phase, step.tiling, step.term),) for step in cascade_steps(term, rows)),
            _once("algebra", lambda term: with_actions(term, rows)),
            lambda term: ((("tables", {}, made),) for made in with_tables(term)),
            lambda term: ((("siblings", {}, made),) for made in siblings_together(term, few)),
            self._sliced_products,
            self._products_apart,
            self._sliced_products,
            _once("large_apart", self._large_apart),
            _once("rows_apart", LongRows(rows).apart),
            _once("inlining", with_matrices_as_stored),
            self._one_row,
            self._padding,
            self._long_rows,
        )

    def _atomic_places(self, term: ir.Expr) -> ir.Expr | None:
        return with_atomics(term, self.device.compute_units) if self.device.emission.atomics else None

    def _products_apart(self, term: ir.Expr) -> Iterator[Way]:
        return ((("products_apart", {}, made),) for made in products_in_steps(term, self.device.has_groups))

    def _sliced_products(self, term: ir.Expr) -> Iterator[Way]:
        """Of the products that stand alone with what is made of their sums, and then of those that are apart."""
        way = tuple(sliced_products(term, self.device.compute_units)) if self.device.has_groups else ()
        return iter([way] if way else [])

    def _large_apart(self, term: ir.Expr) -> ir.Expr:
        return LargeApart(self.device).term(term) if self.device.has_groups else term

    def _one_row(self, term: ir.Expr) -> Iterator[Way]:
        made = with_one_row(term, self.device.local_memory) if self.device.has_groups else []
        if made:
            yield (*(("naming", {}, named) for named in made[:-1]), ("one_row", {}, made[-1]))

    def _padding(self, term: ir.Expr) -> Iterator[Way]:
        plan = Padding(self.device)
        made = plan.term(term) if self.device.has_groups else term
        if plan.tiling:
            yield (("padding", plan.tiling, made),)

    def _long_rows(self, term: ir.Expr) -> Iterator[Way]:
        plan = LongRows(Rows(self.device))
        made = plan.in_chunks(term)
        if plan.tiling:
            yield (("long_rows", plan.tiling, made),)

    def _followed(self, way: Way, start: Start) -> list[tuple[PhaseSummary, Start]] | None:
        made: list[tuple[PhaseSummary, Start]] = []
        for goal in way:
            found = self._reached(goal, made[-1][1] if made else start)
            if found is None:
                return None
            made.append(found)
        return made

    def _reached(self, goal: Goal, start: Start) -> tuple[PhaseSummary, Start] | None:
        name, tiling, term = goal
        phase = self.taking(planned_phase(name, tiling, (), self.limits))
        return reached_by(phase, start, Leg(name, term, 0, self.device.mapping, tiling))


def reached_by(phase: Phase, start: Start, leg: Leg) -> tuple[PhaseSummary, Start] | None:
    """The term of a leg as another start, if a phase leads there: the leg gets as many steps as that takes."""
    began = time.perf_counter()
    first, then = (leg.term, start[0]) if leg.is_backwards else (start[0], leg.term)
    for reached in run_phase(first, phase):
        if locate(reached.graph, reached.root, then) is not None:
            way = (*start[1], replace(leg, iterations=len(reached.iterations)))
            return summarise(reached, time.perf_counter() - began), (leg.term, way)
    return None


def _once(phase: str, change: Callable[[ir.Expr], ir.Expr | None]) -> Callable[[ir.Expr], Iterator[Way]]:
    """A change of one step, if there is anything to change."""

    def ways(term: ir.Expr) -> Iterator[Way]:
        made = change(term)
        if made is not None and not alpha_equal(made, term):
            yield ((phase, {}, made),)

    return ways
