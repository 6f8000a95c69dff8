"""Interactive exploration: one rule at one place, where rules match and almost match, and undo.

>>> from lift_egraph import rules
>>> from lift_egraph.language.syntax import parse_program
>>> program = parse_program("program p(xs: [f32]8) = map(sqrt, map(abs, xs))")
>>> explorer = Explorer(program, rules.all_rules)
>>> print(explorer.matches("map_fusion"))
map_fusion: map f (map (λp. b) xs) = map (λp. f b) xs,  p not free in f
[0] at the whole: map(sqrt, map(abs, xs))
    becomes map(fun x => let x1 = abs(x) in sqrt(x1), xs)
>>> print(explorer.near_misses("split_join")[0])
at the whole: needs that a size of chunks n is offered for arrays of length m, but none is for 8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Generic, TypeVar

from egglog.bindings import EggSmolError

from lift_egraph.derivation.places import NearMiss, View, matching_places, near_misses
from lift_egraph.derivation.steps import DEFINITIONS, Step, World
from lift_egraph.egraph.encoding import check_depth
from lift_egraph.egraph.exact_terms import Path, place_of
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.saturate import MARKS, Phase
from lift_egraph.errors import ExplorationProblem, RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.grammar import suggestion
from lift_egraph.language.syntax import print_term
from lift_egraph.soundness.rule_steps import array_lengths

SHOWN = 10  # how many near misses are printed


T = TypeVar("T")


class Listing(Sequence[T], Generic[T]):
    """A sequence that prints one item after the other."""

    def __init__(self, heading: str, items: Iterable[T]):
        self.heading, self._items = heading, tuple(items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __str__(self) -> str:
        lines = [self.heading]
        for number, item in enumerate(self._items):
            if number == SHOWN and len(self) > SHOWN + 1:
                lines.append(f"and {len(self) - SHOWN} more")
                break
            lines += item_lines(number, item)
        return "\n".join(lines if self._items else [*lines, "nowhere"])

    __repr__ = __str__


def item_lines(number: int, item: Any) -> list[str]:
    """A match or a near miss, as it is listed."""
    if isinstance(item, NearMiss):
        return [f"[{number}] at {item.place}: {item.part}", *(f"    {reason}" for reason in item.reasons)]
    return [f"[{number}] at {item.place}: {item.part}", f"    becomes {item.result}"]


At = int | str | Path | None


def _is_at(item: Step | NearMiss, at: At) -> bool:
    return at is None or at in (item.path, item.place)


class Explorer:
    """A term that is rewritten by hand, one rule at one place at a time.

    Parameters
    ----------
    program
        A program or term of concrete sizes.
    rules
        The rules that can be given by name. What the e-graph knows of functions such as ``λx. join x`` = ``join``
        is taken from them, too.
    tiles
        The sizes of chunks that rules may split by, for all arrays or for each length of an array.
    widths
        The widths of vectors that rules may introduce.
    staging
        The address spaces, ``local`` and ``private``, that binders of parallel maps are marked for.

    Raises
    ------
    LiftError
        If the term is not one for the e-graph: sizes that are open, nested too deeply.
    """

    def __init__(
        self,
        program: ir.Program | ir.Expr,
        rules: Iterable[Rule] = (),
        *,
        tiles: Sequence[int] | Mapping[int, tuple[int, ...]] = (),
        widths: Sequence[int] = (),
        staging: Sequence[str] = (),
    ):
        term = program.body if isinstance(program, ir.Program) else program
        check_depth(term)
        self._book = {rule.name: rule for rule in rules}
        self._tiles, self._widths = tiles, tuple(widths)
        if unknown := [space for space in staging if space not in MARKS]:
            raise ExplorationProblem(f"binders are marked for {' or '.join(MARKS)} memory, not for {unknown[0]}")
        self._staging = tuple(staging)
        self._world = self._world_for(term, None)
        self._start = self._world.encode(term)
        self._steps: list[Step] = []
        self._enter()

    # --- the present term ---

    @property
    def term(self) -> ir.Expr:
        """The present term."""
        return self._world.decode(self._node)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What led to the present term and was not undone."""
        return tuple(self._steps)

    def __str__(self) -> str:
        lines = [f"{number}. {step}" for number, step in enumerate(self._steps, 1)]
        return "\n".join([*lines, print_term(self.term)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    # --- where rules match ---

    def matches(self, rule: Rule | str) -> Listing[Step]:
        """Every application of a rule to the present term, outermost places first.

        Raises
        ------
        RuleProblem
            If the rule cannot be used at all.
        """
        rule = self._named(rule)
        found = self._known.get(rule)
        if found is None:
            places = matching_places(self._view, rule)
            try:
                steps = [s for s in self._world.applications(self._node, rule) if s.path in places]
            except EggSmolError as problem:
                raise RuleProblem(rule.name, rule.place, f"egglog refuses it: {problem}") from None
            heading = f"{rule.name}: {rule.law}"
            if rule.name in DEFINITIONS:
                heading += "  (the e-graph knows it everywhere: no step of its own)"
            order = {path: number for number, (path, _) in enumerate(self._node.places())}
            steps.sort(key=lambda step: (order[step.path], step.result))
            found = self._known[rule] = Listing(heading, {step.nodes: step for step in steps}.values())
        return found

    def near_misses(self, rule: Rule | str) -> Listing[NearMiss]:
        """Where a rule almost matches, the nearest first.

        First come the places where its left-hand side fits but conditions fail, then those where all of its
        left-hand side fits but one part.
        """
        rule = self._named(rule)
        return Listing(f"{rule.name} almost matches: {rule.law}", near_misses(self._view, rule))

    def applicable(self) -> dict[str, int]:
        """The rules, of those given, that match the present term, with the number of places where they do."""
        found = {name: len(matching_places(self._view, rule)) for name, rule in self._book.items()}
        return {name: count for name, count in found.items() if count and name not in DEFINITIONS}

    # --- steps ---

    def apply(self, rule: Rule | str, at: At = None) -> Step:
        """Apply a rule at one place.

        Parameters
        ----------
        at
            The number of the match in `matches`, or its place, as it is listed or as a path; it may be left out where
            there is only one match.

        Raises
        ------
        ExplorationProblem
            If the rule does not match there; the message says why not, if it almost does.
        """
        rule = self._named(rule)
        found = self.matches(rule)
        chosen = found[at : at + 1] if isinstance(at, int) and at >= 0 else [s for s in found if _is_at(s, at)]
        if len(chosen) == 1:
            self._steps.append(chosen[0])
            self._enter()
            return chosen[0]
        if chosen:
            options = "\n".join(line for n, s in enumerate(found) if s in chosen for line in item_lines(n, s))
            raise ExplorationProblem(f"{rule.name} matches in {len(chosen)} ways; say which by its number:\n{options}")
        raise ExplorationProblem(self._why_not(rule, at))

    def undo(self, steps: int = 1) -> tuple[Step, ...]:
        """Take back the last steps; they are returned, the last one first.

        Raises
        ------
        ExplorationProblem
            If there were not as many.
        """
        if not 1 <= steps <= len(self._steps):
            raise ExplorationProblem(
                f"{steps} steps cannot be undone, there were {len(self._steps)}" if self._steps else "nothing to undo"
            )
        undone = tuple(self._steps.pop() for _ in range(steps))
        self._enter()
        return undone

    # --- inside ---

    def _why_not(self, rule: Rule, at: At) -> str:
        count = len(self.matches(rule))
        if isinstance(at, int) and count:
            return f"{rule.name} has no match number {at}; there are {count}, from 0 on"
        anywhere = at is None or isinstance(at, int)
        if not anywhere and not any(at in (path, place_of(self._node, path)) for path, _ in self._node.places()):
            return f"there is no place {at} in the term; `matches` and `near_misses` list those of a rule"
        misses = [m for m in self.near_misses(rule) if anywhere or _is_at(m, at)]
        why = f"; it almost does {misses[0]}" if misses else ""
        return f"{rule.name} does not match {'anywhere' if anywhere else f'at {at}'}{why}"

    def _named(self, rule: Rule | str) -> Rule:
        if isinstance(rule, Rule):
            return rule
        if rule not in self._book:
            raise ExplorationProblem(f"there is no rule {rule!r}{suggestion(rule, self._book)}")
        return self._book[rule]

    def _enter(self) -> None:
        """Forget what was known of the last term; offer chunks for the lengths of the present one, and its operators'
        laws.
        """
        self._known: dict[Rule, Listing[Step]] = {}
        node = self._steps[-1].nodes[1] if self._steps else self._start
        term = self._world.decode(node)
        self._world = self._world_for(term, self._world)
        # laws are told of operators with the names that their binders have when they are read
        self._node = self._world.encode(term) if self._world.phase.operators else node
        self._seen: View | None = None

    def _world_for(self, term: ir.Expr, world: World | None) -> World:
        tiles = self._tiles
        if not isinstance(tiles, Mapping):
            tiles = {n: tuple(tiles) for n in sorted(array_lengths(term))} if tiles else {}
        definitions = tuple(r for r in self._book.values() if r.name in DEFINITIONS)
        phase = Phase("exploration", (), definitions, tiles, self._widths, staging=self._staging).about(term)
        return world if world is not None and world.phase == phase else World(phase)

    @property
    def _view(self) -> View:
        self._seen = self._seen or View(self._world, self._node)
        return self._seen


def survey(
    program: ir.Program,
    chosen: tuple[Rule, ...],
    files: tuple[FilePath, ...],
    book: tuple[Rule, ...],
    tiles: tuple[int, ...],
    widths: tuple[int, ...],
    staging: tuple[str, ...],
) -> list[dict[str, Any]]:
    """Where rules match a program and almost match, as plain data; files with rules are run for it.

    Parameters
    ----------
    book, tiles, widths, staging
        What `Explorer` should know.

    Raises
    ------
    LiftError
        If a rule cannot be used, or the program is none for the e-graph.
    """
    from lift_egraph.egraph.rule_files import load_rules

    for path in files:
        found, problems = load_rules(path)
        if problems:
            raise problems[0]
        chosen += found
    explorer = Explorer(program, book, tiles=tiles, widths=widths, staging=staging)
    return [
        {
            "rule": rule.name,
            "law": rule.law,
            "matches": [
                {"path": s.path, "place": s.place, "before": s.part, "after": s.result, "program": print_term(s.after)}
                for s in explorer.matches(rule)
            ],
            "near_misses": [
                {"path": m.path, "place": m.place, "part": m.part, "fits": m.fits, "reasons": m.reasons}
                for m in explorer.near_misses(rule)
            ],
        }
        for rule in chosen
    ]
