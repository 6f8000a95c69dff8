"""An e-graph that is told rules once, and then holds one term after another, for a moment each.

What a term costs beside its rules is kept small: egglog's Python layer copies all declarations for every push and
builds a report with Python objects for every run, which takes longer than running a few rules on a small term. Its
commands are given to the compiled e-graph directly instead. These are not a stable interface, so every use of them
is here, behind a test. The rules of the analyses, which most e-graphs need, it translates once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import egglog
from egglog import bindings, declarations as egg

from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import empty_graph, operation_results, operator_laws
from lift_egraph.egraph.exact_terms import Node, to_expr
from lift_egraph.egraph.frozen import PREFIX, FrozenEGraph, freeze

NOWHERE = bindings.RustSpan("", 0, 0)
ROOT = "root"
Schedule = Any  # what `Scratch.compiled` makes of an ``egglog.Schedule``


class _Recorder:
    """Stands for a compiled e-graph, and keeps the commands that it is given."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.commands: list[Any] = []

    def run_program(self, *commands: Any, **trace: Any) -> list[Any]:
        self.commands += commands
        return self._graph.run_program(*commands, **trace)


@cache
def _told() -> tuple[Any, tuple[Any, ...], list[egglog.EGraph]]:
    """What egglog's Python layer knows of an e-graph that was told the laws of operators and the analyses, the commands
    that told it, and the e-graph itself, for whoever comes first.
    """
    graph = empty_graph()
    raw = graph._egraph
    recorder = graph._state.egraph = _Recorder(raw)  # pyright: ignore[reportAttributeAccessIssue]
    graph.register(*operation_results(), *operator_laws())
    schedule = settled()
    graph._add_decls(schedule)
    graph._state.run_schedule_to_egg(schedule.schedule)
    graph._state.egraph = raw
    return graph._state.copy(), tuple(recorder.commands), [graph]


def _knowing_graph() -> egglog.EGraph:
    """An e-graph with the laws of operators and the rules of the analyses."""
    state, commands, unused = _told()
    if unused:
        return unused.pop()
    graph = empty_graph()
    raw = graph._egraph
    raw.run_program(*commands)
    graph._state = state.copy()
    graph._state.egraph = raw
    return graph


class Scratch:
    """An e-graph for one term at a time.

    Parameters
    ----------
    facts
        What holds beside every term, and the laws of operators.

    Raises
    ------
    EggSmolError
        If egglog refuses a rule.

    Examples
    --------
    >>> from egglog import run
    >>> from lift_egraph.egraph.sorts import Ex, Ty, transpose
    >>> from lift_egraph.rules.simplification import transpose_of_transpose
    >>> scratch = Scratch()
    >>> step = scratch.compiled(run(transpose_of_transpose.ruleset))
    >>> xss = Ex.input("xss", Ty.arr(2, Ty.arr(3, Ty.scalar("f32"))))
    >>> with scratch.holding(transpose(transpose(xss))) as held:
    ...     before = held.freeze().class_count
    ...     _ = held.run(step)
    ...     print(before - held.freeze().class_count)
    1
    """

    def __init__(self, facts: Iterable[Any] = ()) -> None:
        self._graph = _knowing_graph()
        self._declared: set[str] = set()
        self._nodes: dict[Node, Any] = {}  # terms that differ in one place have most parts in common
        self._holding = False
        if told := tuple(facts):
            self._graph.register(*told)

    def compiled(self, schedule: egglog.Schedule) -> Schedule:
        """A schedule in the form that `Held.run` takes; while a term is held, its rules would be forgotten with it."""
        return self.compiled_apart([schedule])[0]

    def compiled_apart(self, schedules: Sequence[egglog.Schedule]) -> list[Schedule]:
        """As `compiled`, of several schedules, which takes less time than one after the other."""
        assert not self._holding
        self._graph.run(egglog.seq(*schedules))  # declares their rules
        return [self._graph._state.run_schedule_to_egg(s.schedule) for s in schedules]

    @contextmanager
    def holding(self, term: egglog.Expr | Node, facts: Iterable[Any] = ()) -> Iterator[Held]:
        """The e-graph with a term and facts about it, which it forgets at the end.

        Parameters
        ----------
        facts
            Relations that hold, and unions.
        """
        held = self.hold(term, facts)
        try:
            yield held
        finally:
            self.forget()

    def hold(self, term: egglog.Expr | Node, facts: Iterable[Any] = ()) -> Held:
        """As `holding`, until it is told to `forget` the term."""
        assert not self._holding
        told: list[Any] = [bindings.Let(NOWHERE, f"${ROOT}", self._term(term))]  # may declare: before the push
        told += map(self._action, facts)
        self._graph._egraph.run_program(bindings.Push(1), *map(bindings.ActionCommand, told))
        self._holding = True
        return Held(self._graph)

    def forget(self) -> None:
        """Forget the term that is held, and all that was found of it."""
        self._holding = False
        self._graph._egraph.run_program(bindings.Pop(NOWHERE, 1))

    def _action(self, fact: Any) -> Any:
        decl = getattr(fact, "action", None)
        if isinstance(decl, egg.UnionDecl):
            return bindings.Union(NOWHERE, *(self._expression(side, fact) for side in (decl.lhs, decl.rhs)))
        return bindings.Expr_(NOWHERE, self._term(fact))

    def _term(self, term: Any) -> Any:
        return self._node(term) if isinstance(term, Node) else self._compiled(term)

    def _node(self, node: Node) -> Any:
        """A term with the e-graph's own names; only operators that are new to it go through egglog's Python layer."""
        made = self._nodes.get(node)
        if made is None:
            if node.op not in self._declared:
                self._compiled(to_expr(node))
                self._declared.update(part.op for part in node.parts())
            children = [self._node(c) if isinstance(c, Node) else _literal(c) for c in node.children]
            made = self._nodes[node] = bindings.Call(NOWHERE, PREFIX + node.op, children)
        return made

    def _compiled(self, expr: Any) -> Any:
        """An expression in the form that the compiled e-graph takes."""
        return self._expression(expr.__egg_typed_expr__.expr, expr)

    def _expression(self, expression: Any, declared: Any) -> Any:
        """An expression whose operators something else declares."""
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
                    self._graph._add_decls(declared)
                    name, backwards = state.callable_ref_to_egg(e.callable)
                assert not backwards
                return bindings.Call(NOWHERE, name, [compiled(a.expr) for a in e.args])
            assert isinstance(e, egg.LitDecl), e
            assert isinstance(e.value, str | int), e
            return _literal(e.value)

        return compiled(expression)


def _literal(value: str | int) -> Any:
    return bindings.Lit(NOWHERE, bindings.String(value) if isinstance(value, str) else bindings.Int(value))


class Held:
    """The e-graph of a `Scratch` while it holds a term."""

    def __init__(self, graph: egglog.EGraph) -> None:
        self._graph = graph

    def run(self, *schedules: Schedule) -> Iterator[tuple[Any, int]]:
        """Run schedules that the `Scratch` has compiled; the matches of each rule's declaration, if anybody asks."""
        return (match for ran in self.runs(*schedules) for match in ran)

    def runs(self, *schedules: Schedule) -> Iterator[Iterator[tuple[Any, int]]]:
        """As `run`, with the matches in each schedule by themselves."""
        outputs: Any = self._graph._egraph.run_program(*schedules)
        declarations = self._graph._state.rule_name_to_command_decl
        return (((declarations[n], c) for n, c in o.report.num_matches_per_rule.items()) for o in outputs)

    @contextmanager
    def trial(self) -> Iterator[Held]:
        """What is run meanwhile is forgotten at the end."""
        raw = self._graph._egraph
        raw.run_program(bindings.Push(1))
        try:
            yield self
        finally:
            raw.run_program(bindings.Pop(NOWHERE, 1))

    def freeze(self, *, facts: bool = False) -> FrozenEGraph:
        """The e-graph as it is now; the term's class is the root ``root``.

        Parameters
        ----------
        facts
            Whether to read also what conditions of rules ask for.
        """
        return freeze(self._graph, {ROOT}, facts=facts)
