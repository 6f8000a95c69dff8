"""An e-graph that is told rules once, and then holds one term after another, for a moment each.

What a term costs beside its rules is kept small: egglog's Python layer copies all declarations for every push and
builds a report with Python objects for every run, which takes longer than running a few rules on a small term. Its
commands are given to the compiled e-graph directly instead. These are not a stable interface, so every use of them
is here, behind a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import egglog
from egglog import bindings
from egglog import declarations as egg

from lift_egraph.egraph.frozen import FrozenEGraph, freeze

NOWHERE = bindings.RustSpan("", 0, 0)
ROOT = "root"


class Scratch:
    """An e-graph for one term at a time.

    Parameters
    ----------
    facts
        What holds beside every term.
    schedules
        What `Held.run` may run, by its place among these.

    Raises
    ------
    EggSmolError
        If egglog refuses a rule.

    Examples
    --------
    >>> from egglog import run
    >>> from lift_egraph.egraph.sorts import Ex, Ty, transpose
    >>> from lift_egraph.rules.simplification import transpose_of_transpose
    >>> scratch = Scratch((), (run(transpose_of_transpose.ruleset),))
    >>> xss = Ex.input("xss", Ty.arr(2, Ty.arr(3, Ty.scalar("f32"))))
    >>> with scratch.holding(transpose(transpose(xss))) as held:
    ...     print(held.freeze().node_count)
    ...     held.run(0)
    ...     print(held.freeze().class_count)
    3
    2
    """

    def __init__(self, facts: Iterable[Any], schedules: Iterable[egglog.Schedule]) -> None:
        self._graph = egglog.EGraph()
        if facts := tuple(facts):
            self._graph.register(*facts)
        self._schedules = []
        for schedule in schedules:
            self._graph.run(schedule)  # declares its rules
            self._schedules.append(self._graph._state.run_schedule_to_egg(schedule.schedule))

    @contextmanager
    def holding(self, term: egglog.Expr, facts: Iterable[Any] = ()) -> Iterator[Held]:
        """The e-graph with a term and facts about it, which it forgets at the end.

        Parameters
        ----------
        facts
            Relations that hold.
        """
        told: list[Any] = [bindings.Let(NOWHERE, f"${ROOT}", self._compiled(term))]  # may declare: before the push
        told += (bindings.Expr_(NOWHERE, self._compiled(fact)) for fact in facts)
        raw = self._graph._egraph
        raw.run_program(bindings.Push(1), *map(bindings.ActionCommand, told))
        try:
            yield Held(self._graph, self._schedules)
        finally:
            raw.run_program(bindings.Pop(NOWHERE, 1))

    def _compiled(self, expr: Any) -> Any:
        """An expression in the form that the compiled e-graph takes."""
        state = self._graph._state
        known: dict[int, Any] = {}

        def compiled(e: Any) -> Any:
            found = known.get(id(e))
            if found is None:
                found = known[id(e)] = made(e)
            return found

        def made(e: Any) -> Any:
            if isinstance(e, egg.CallDecl):
                try:
                    name, backwards = state.callable_ref_to_egg(e.callable)
                except KeyError:
                    self._graph._add_decls(expr)
                    name, backwards = state.callable_ref_to_egg(e.callable)
                assert not backwards
                return bindings.Call(NOWHERE, name, [compiled(a.expr) for a in e.args])
            assert isinstance(e, egg.LitDecl), e
            assert isinstance(e.value, str | int), e
            return bindings.Lit(
                NOWHERE, bindings.String(e.value) if isinstance(e.value, str) else bindings.Int(e.value)
            )

        return compiled(expr.__egg_typed_expr__.expr)


class Held:
    """The e-graph of a `Scratch` while it holds a term."""

    def __init__(self, graph: egglog.EGraph, schedules: list[Any]) -> None:
        self._graph, self._schedules = graph, schedules

    def run(self, *schedules: int) -> None:
        """Run schedules, by their places among those of the `Scratch`."""
        self._graph._egraph.run_program(*(self._schedules[s] for s in schedules))

    def freeze(self) -> FrozenEGraph:
        """The e-graph as it is now; the term's class is the root ``root``."""
        return freeze(self._graph, {ROOT: self._graph})  # pyright: ignore[reportArgumentType]  # by name alone
