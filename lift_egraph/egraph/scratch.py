"""An e-graph that is told rules once, and then holds one term after another, for a moment each.

What a term costs beside its rules is kept small: egglog's Python layer copies all declarations for every push and
builds a report with Python objects for every run, which takes longer than running a few rules on a small term. Its
commands are given to the compiled e-graph directly instead. These are not a stable interface, so every use of them
is here, behind a test. The rules of the analyses, which most e-graphs need, it translates once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, NamedTuple

import egglog
from egglog import bindings, declarations as egg

from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import empty_graph, operation_results, operator_laws
from lift_egraph.egraph.exact_terms import Node, to_expr
from lift_egraph.egraph.expressions import direct_calls
from lift_egraph.egraph.frozen import PREFIX, FrozenEGraph, freeze

NOWHERE = bindings.RustSpan("", 0, 0)
ROOT = "root"
NAMED = (f"{PREFIX}V___init__", f"{PREFIX}Ex_input")
Schedule = Any  # what `Scratch.compiled` makes of an ``egglog.Schedule``


class _Recorder:
    """Stands for a compiled e-graph, keeps the commands that it is given, and names no facts.

    egglog's Python layer binds each fact to a name. Each name is a table, and every push copies all tables.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.commands: list[Any] = []

    def run_program(self, *commands: Any, **trace: Any) -> list[Any]:
        nameless = [*map(_nameless, commands)]
        self.commands += nameless
        return self._graph.run_program(*nameless, **trace)


def _nameless(command: Any) -> Any:
    if isinstance(command, bindings.ActionCommand) and isinstance(command.action, bindings.Let):
        return bindings.ActionCommand(bindings.Expr_(NOWHERE, command.action.rhs))
    return command


@cache
def _told() -> tuple[Any, tuple[Any, ...], list[egglog.EGraph]]:
    """What egglog's Python layer knows of an e-graph that was told the laws of operators and the analyses, the commands
    that told it, and the e-graph itself, for whoever comes first.
    """
    graph = empty_graph()
    raw = graph._egraph
    recorder = graph._state.egraph = _Recorder(raw)  # pyright: ignore[reportAttributeAccessIssue]
    with direct_calls():
        graph.register(*operation_results(), *operator_laws())
        schedule = settled()
        graph._add_decls(schedule)
    graph._state.run_schedule_to_egg(schedule.schedule)
    state = graph._state
    state.egraph = raw
    known = state.expr_to_egg_cache
    state.expr_to_egg_cache = {e: made for e, made in known.items() if not isinstance(made, bindings.Var)}
    return state.copy(), tuple(recorder.commands), [graph]


def learn_analyses() -> None:
    """What a process does for its first e-graph alone."""
    _told()


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
            self._graph._egraph.run_program(*(bindings.ActionCommand(self._action(fact)) for fact in told))

    def compiled(self, schedule: egglog.Schedule) -> Schedule:
        """A schedule in the form that `Held.run` takes; while a term is held, its rules would be forgotten with it."""
        return self.compiled_apart([schedule])[0]

    def compiled_apart(self, schedules: Sequence[egglog.Schedule]) -> list[Schedule]:
        """As `compiled`, of several schedules, which takes less time than one after the other."""
        assert not self._holding
        with direct_calls():
            self._graph.run(egglog.seq(*schedules))  # declares their rules
        return [self._graph._state.run_schedule_to_egg(s.schedule) for s in schedules]

    def holding(self, term: egglog.Expr | Node, facts: Iterable[Any] = ()) -> AbstractContextManager[Held]:
        """The e-graph with a term and facts about it, which it forgets at the end.

        Parameters
        ----------
        facts
            Relations that hold, and unions.
        """
        return self._forgetting(self.hold(term, facts))

    def holding_all(
        self, terms: Mapping[str, tuple[Any, Iterable[Any]]], facts: Iterable[Any], shared: Container[str]
    ) -> AbstractContextManager[Held]:
        """As `holding`, with several terms side by side, each under a name and with facts about it.

        Parameters
        ----------
        terms
            All names are of one length and end in numbers. The variables and inputs of each term and its facts get
            names of their own (`suffix_of`): terms have little in common.
        facts
            What holds beside.
        shared
            The names that stay as they are.
        """
        told: list[Any] = []
        for root, (term, about) in terms.items():
            own = _OwnNames(suffix_of(root), shared)
            told.append(bindings.Let(NOWHERE, f"${root}", self._expression(term.__egg_typed_expr__.expr, term, own)))
            told += [self._action(fact, own) for fact in about]
        return self._forgetting(self._hold([*told, *map(self._action, facts)], terms.keys()))

    @contextmanager
    def _forgetting(self, held: Held) -> Iterator[Held]:
        try:
            yield held
        finally:
            self.forget()

    def hold(self, term: egglog.Expr | Node, facts: Iterable[Any] = ()) -> Held:
        """As `holding`, until it is told to `forget` the term."""
        return self._hold([bindings.Let(NOWHERE, f"${ROOT}", self._term(term)), *map(self._action, facts)], {ROOT})

    def _hold(self, told: Sequence[Any], roots: Container[str]) -> Held:
        """Make it hold what it is told; what is new to the e-graph was declared when that was made: before the push."""
        assert not self._holding
        self._graph._egraph.run_program(bindings.Push(1), *map(bindings.ActionCommand, told))
        self._holding = True
        return Held(self._graph, roots)

    def forget(self) -> None:
        """Forget what is held, and all that was found of it."""
        self._holding = False
        self._graph._egraph.run_program(bindings.Pop(NOWHERE, 1))

    def _action(self, fact: Any, own: _OwnNames | None = None) -> Any:
        decl = getattr(fact, "action", None)
        if isinstance(decl, egg.UnionDecl):
            return bindings.Union(NOWHERE, *(self._expression(side, fact, own) for side in (decl.lhs, decl.rhs)))
        return bindings.Expr_(NOWHERE, self._expression(fact.__egg_typed_expr__.expr, fact, own))

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

    def _expression(self, expression: Any, declared: Any, own: _OwnNames | None = None) -> Any:
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
                if own is not None and name in NAMED:
                    tag, of = (a.expr for a in e.args)
                    assert isinstance(tag, egg.LitDecl)
                    return bindings.Call(NOWHERE, name, [_literal(own(str(tag.value))), compiled(of)])
                return bindings.Call(NOWHERE, name, [compiled(a.expr) for a in e.args])
            assert isinstance(e, egg.LitDecl), e
            assert isinstance(e.value, str | int), e
            return _literal(e.value)

        return compiled(expression)


def suffix_of(root: str) -> str:
    """What names of one of several terms end in, so that they are its own.

    >>> suffix_of("root0012")
    '_0012'
    """
    return "_" + root[len(root.rstrip("0123456789")) :]


class _OwnNames(NamedTuple):
    """What variables and inputs of one of several terms are called."""

    suffix: str
    shared: Container[str]

    def __call__(self, name: str) -> str:
        return name if name in self.shared else name + self.suffix


def _literal(value: str | int) -> Any:
    return bindings.Lit(NOWHERE, bindings.String(value) if isinstance(value, str) else bindings.Int(value))


class Held:
    """The e-graph of a `Scratch` while it holds terms."""

    def __init__(self, graph: egglog.EGraph, roots: Container[str]) -> None:
        self._graph, self._roots = graph, roots

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

    def freeze(self, *, facts: Container[str] = ()) -> FrozenEGraph:
        """The e-graph as it is now; the class of a term is the root of its name, ``root`` if it was given none.

        Parameters
        ----------
        facts
            Which of what conditions of rules ask for to read also.
        """
        return freeze(self._graph, self._roots, facts=facts)
