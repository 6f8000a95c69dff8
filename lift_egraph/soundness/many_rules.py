"""Checking many rules: in child processes with limits, so that one that hangs or crashes costs only itself."""

from __future__ import annotations

import gc
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_edits import rewrites
from lift_egraph.errors import InputProblem, LiftError, RuleProblem, RunProblem
from lift_egraph.garbage import drop_unused_e_graphs
from lift_egraph.process.child import Server
from lift_egraph.soundness.batches import BATCH, next_batch

EXAMPLES = 200  # programs for each rule
CAUGHT_BEFORE = "it was caught before"
FEW_ATTEMPTS = 80  # to make a program that a mutant applies to: more than a clash of names gets
FIRST = 4  # examples of a mutant, which is given up if it fires in none
BATCH_SECONDS = 30.0  # a batch takes about half a second
SHRINK_SECONDS = 60.0
PROOF_SECONDS = 60.0
MEMORY = 2 << 30  # bytes of a child process
GARBAGE = 2_000_000  # objects of a child, after which it looks for those that are in nobody's use: terms by the
# thousand live as long as their e-graph, and a third of the time went to looking through them again and again
JOBS = min(os.cpu_count() or 1, 4)


@dataclass(frozen=True)
class Verdict:
    """What the check of one rule found.

    Attributes
    ----------
    name, law, place
        The rule, and the file and line where it is defined.
    examples, fired, changed
        How many programs were made around its left-hand side, in how many it fired, and in how many of these the two
        sides were not equal already.
    exercised, unexercised
        The conditions of the rule, as text: those that some program broke, keeping the others, and those that none did.
    whole, chance
        In how many examples a rewritten term was also right bit for bit with i32 for f32, on random 32-bit numbers, and
        the chance at the most that one that computes other polynomials passes, unless it is wrong by multiples of 256
        alone.
    seconds
        How long it took.
    counterexample
        A program that the rule gets wrong, with inputs and both results, as text.
    kind, change
        For a mutant of the rule, what was changed; empty for the rule itself.
    proved
        Whether the rule is proved for all sizes (`lift_egraph.soundness.proofs`); None if that was not tried.
    unproved
        Why it is not proved.
    redundant
        For a mutant in which the check found nothing wrong: why it is no less right than the rule.
    noted
        For a mutant that its rule notes to be right: what the note says.
    problem
        Why the rule could not be checked, or that it, or one of its rewrites, does too little to mean anything.
    """

    name: str
    law: str
    place: str
    examples: int = 0
    fired: int = 0
    changed: int = 0
    exercised: tuple[str, ...] = ()
    unexercised: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    whole: int = 0
    chance: float = 0.0
    seconds: float = 0.0
    counterexample: str | None = None
    problem: str | None = None
    kind: str = ""
    change: str = ""
    redundant: str | None = None
    proved: bool | None = None
    unproved: str = ""
    noted: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the check found nothing wrong."""
        return self.counterexample is None and self.problem is None

    @property
    def outcome(self) -> str:
        """Of a mutant: whether it is ``caught``, ``redundant``, or ``open``, and how."""
        if self.counterexample is not None and self.noted is not None:
            return f"open: the rule notes it as right ({self.noted}), but a program gets another value"
        if self.counterexample is not None:
            return "caught: a counterexample"
        if self.problem is not None:
            return f"caught: {self.problem}"
        return "open" if self.redundant is None else f"redundant: {self.redundant}"

    @property
    def words(self) -> str:
        """What was seen, and no more than that."""
        if not self.examples:
            return "not run"
        found = "wrong after" if self.counterexample is not None else "no counterexample in"
        asked = len(self.exercised) + len(self.unexercised)
        conditions = f", {len(self.exercised)} of {_counted(asked, 'condition')} exercised" if asked else ""
        also = f"; {self.whole} as polynomials over i32, chance of an escape {self.chance:.1g}" if self.whole else ""
        return f"{found} {_counted(self.examples, 'example')}{conditions}{also}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@dataclass(frozen=True)
class _Known:
    """A rule that a child process holds: from which source, its place among its rules, and which mutant of it, which
    has one of so many rewrites.
    """

    source: int
    index: int
    verdict: Verdict
    saturates: bool
    mutant: int | None = None
    of: int = 1


Sources = Sequence[Path | tuple[Rule, ...]]


def check_rules(
    sources: Sources,
    *,
    simplification: tuple[Rule, ...] = (),
    examples: int = EXAMPLES,
    seed: int = 0,
    jobs: int = JOBS,
    seconds: float = BATCH_SECONDS,
    mutate: bool = False,
    kinds: Collection[str] = (),
    caught: Callable[[str, str, str], bool] = lambda name, kind, change: False,
    shrink: bool = True,
    listen: Callable[[Verdict], None] = lambda verdict: None,
) -> Iterator[Verdict]:
    """Check rules, and yield a verdict for each as it is known.

    Parameters
    ----------
    sources
        Files with rules, and tuples of rules. Files are run in child processes only.
    simplification
        Rules run to saturation before and after each rule.
    examples
        Programs per rule.
    seed
        Equal seeds give equal programs and inputs.
    jobs
        How many rules to check at the same time.
    seconds
        How long a batch of 20 examples may take.
    mutate
        Whether to check the mutants of each rule that passes (`lift_egraph.soundness.mutations`): those that pass too
        show what the check of the rule cannot see. Their counterexamples are not shrunk.
    kinds
        Which kinds of mutants; all by default.
    caught
        Which mutants, by the name of the rule, the kind and the change, are known to be caught: these are not checked.
    shrink
        Whether to look for smaller counterexamples.
    listen
        Called with the verdict so far, some examples at a time.

    Raises
    ------
    LiftError
        If a file cannot be read.
    """

    def new_server() -> Server:
        return Server(_Session, sources, simplification, seed, memory_limit=MEMORY)

    first = new_server()  # it lists the rules, and is the first to check them
    known: list[_Known] = []
    with ExitStack() as until_known:
        until_known.enter_context(first)
        for index, source in enumerate(sources):
            found, problems = _list(first, index, source)
            known += found
            yield from problems
        if known:
            until_known.pop_all()
    waiting: queue.SimpleQueue[_Known] = queue.SimpleQueue()
    for k in known:
        waiting.put(k)
    done: queue.SimpleQueue[tuple[str, Verdict | BaseException | None]] = queue.SimpleQueue()
    stop = threading.Event()

    def work(server: Server) -> None:
        try:
            with server:
                while not stop.is_set():
                    try:
                        rule = waiting.get_nowait()
                    except queue.Empty:
                        return
                    todo = (rule,)
                    if mutate:
                        *_, itself = _check(server, rule, examples, seconds, shrink, prove=False)
                        todo = _mutants(server, rule, kinds, seconds) if itself.passed else ()
                        if not itself.passed:  # what is wrong with its mutants would say nothing about its conditions
                            done.put(("verdict", itself))
                    for one in todo:
                        last = one.verdict
                        if mutate and caught(last.name, last.kind, last.change):
                            last = replace(last, problem=CAUGHT_BEFORE)
                        for so_far in _check(server, one, examples, seconds, shrink) if last.problem is None else ():
                            if stop.is_set():
                                return
                            last = so_far
                            done.put(("so far", last))
                        done.put(("verdict", last))
                    done.put(("end", None))
        except BaseException as problem:  # it belongs to the thread that waits for the verdicts
            done.put(("problem", problem))

    drop_unused_e_graphs()
    for number in range(min(jobs, len(known))):
        threading.Thread(target=work, args=(new_server() if number else first,), daemon=True).start()
    left = len(known)
    try:
        while left:
            try:
                word, found = done.get(timeout=0.1)  # Ctrl-C is heard between two waits
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
            elif word == "verdict":
                yield found
            else:
                listen(found)
    finally:
        stop.set()


def _list(server: Server, index: int, source: Path | tuple[Rule, ...]) -> tuple[list[_Known], list[Verdict]]:
    """What rules there are in a source; a file is read in a child process, as reading one runs it."""
    if not isinstance(source, Path):
        rules = [(Verdict(r.name, r.law, r.place), r.phase == "simplification") for r in source]
        problems: list[Verdict] = []
    else:
        try:
            rules, problems = server.request(("load", index), time_limit=BATCH_SECONDS)
        except RunProblem as problem:
            text = f"the file cannot be read as Python: it {problem}"
            return [], [Verdict(source.name, "", f"{source}:1", problem=text)]
    return [_Known(index, i, verdict, saturates) for i, (verdict, saturates) in enumerate(rules)], problems


def _mutants(server: Server, rule: _Known, kinds: Collection[str], seconds: float) -> Iterator[_Known]:
    """The mutants of a rule, those without a condition before those with another one; or why it cannot be read."""
    try:
        server.request(("load", rule.source), time_limit=BATCH_SECONDS)
        mutants = server.request(("mutants", rule.source, rule.index), time_limit=seconds)
    except RuleProblem as problem:
        yield replace(rule, verdict=replace(rule.verdict, problem=problem.text, place=problem.place))
        return
    for number, (kind, change, of) in enumerate(mutants):
        if not kinds or kind in kinds:
            yield replace(rule, verdict=replace(rule.verdict, kind=kind, change=change), mutant=number, of=of)


def _check(
    server: Server, rule: _Known, examples: int, seconds: float, shrink: bool, *, prove: bool = True
) -> Iterator[Verdict]:
    """Verdicts on one rule, each with more examples; the last one holds."""
    verdict = rule.verdict
    began = time.perf_counter()
    try:
        server.request(("load", rule.source), time_limit=BATCH_SECONDS)
        known = server.request(("begin", rule.source, rule.index, rule.mutant), time_limit=seconds)
        if known is not None:
            yield replace(verdict, redundant=known)
            return
        yield verdict
        if rule.of > 1:  # the others are as they were
            examples = max(examples // rule.of, BATCH)
        while verdict.examples < examples and verdict.counterexample is None:
            batch = next_batch(verdict.examples, examples - verdict.examples)
            if rule.mutant is not None and not verdict.examples:
                batch = min(batch, FIRST)
            seen = server.request(("run", batch), time_limit=seconds * max(batch / BATCH, 1))
            verdict = replace(verdict, **seen, seconds=time.perf_counter() - began)
            yield verdict
            if rule.mutant is not None and not verdict.fired:
                break
        if rule.mutant is not None:
            noted, why = server.request(("spared", verdict.counterexample is None), time_limit=seconds)
            verdict = replace(verdict, redundant=why, noted=noted)
        elif verdict.counterexample is not None and shrink:
            verdict = replace(verdict, counterexample=_shrunk(server, verdict.counterexample))
        elif prove:
            verdict = replace(verdict, **_proof(server))
    except RuleProblem as problem:
        verdict = replace(verdict, problem=problem.text, place=problem.place)
    except RunProblem as problem:
        how = "run to saturation, as its phase says, " if rule.saturates else ""
        verdict = replace(verdict, problem=f"the check broke off: {how}it {problem}")
    except LiftError as problem:
        verdict = replace(verdict, problem=str(problem))
    verdict = replace(verdict, seconds=time.perf_counter() - began)
    yield replace(verdict, problem=_too_little(verdict)) if verdict.passed else verdict


def _too_little(verdict: Verdict) -> str | None:
    """Why a check without a counterexample means nothing."""
    programs = f"{verdict.examples} programs made around its left-hand side"
    if not verdict.examples:
        return None
    if not verdict.fired:
        return f"it never fires: in none of {programs}"
    if verdict.silent:
        return f"its rewrite of {verdict.silent[0]} never fires"
    if verdict.fired < FIRE_RATE * verdict.examples:
        return (
            f"it fires in {verdict.fired} of {programs}, which is too rare to mean anything (at least {FIRE_RATE:.0%} "
            "are needed)"
        )
    if not verdict.changed:
        return f"it changes nothing: in all of {programs}, both sides are equal already"
    return None


def _proof(server: Server) -> dict[str, Any]:
    try:
        proof = server.request(("prove",), time_limit=PROOF_SECONDS)
    except InputProblem as problem:
        return {"unproved": str(problem)}
    except RunProblem:
        return {"proved": False, "unproved": f"it takes more than {PROOF_SECONDS:.0f} s"}
    return {"proved": proof.proved, "unproved": proof.text}


def _shrunk(server: Server, found: str) -> str:
    try:
        return server.request(("shrink",), time_limit=SHRINK_SECONDS)
    except RunProblem:  # a smaller program that hangs is no better
        return found


FIRE_RATE = 0.95  # the share of its own examples in which a rule must fire


class _Session:
    """The child's side: it holds the rules, and the check of one of them."""

    def __init__(self, sources: Sources, simplification: tuple[Rule, ...], seed: int) -> None:
        gc.disable()
        from lift_egraph.egraph.rule_files import load_rules
        from lift_egraph.soundness.instances import ATTEMPTS
        from lift_egraph.soundness.mutations import mutants_of
        from lift_egraph.soundness.proofs.table import proof_of
        from lift_egraph.soundness.redundancy import Redundancy
        from lift_egraph.soundness.rule_check import RuleCheck

        self.load_rules, self.new_check, self.mutants = load_rules, RuleCheck, cache(mutants_of)
        self.redundancy, self.attempts, self.proof = cache(Redundancy), ATTEMPTS, proof_of
        self.sources, self.simplification, self.seed = sources, simplification, seed
        self.rules: dict[int, tuple[tuple[Rule, ...], tuple[RuleProblem, ...]]] = {}
        self.check: Any = None

    def load(self, index: int) -> tuple[tuple[Rule, ...], tuple[RuleProblem, ...]]:
        """The rules of a source and what is wrong in it; a file is run once."""
        if index not in self.rules:
            source = self.sources[index]
            self.rules[index] = self.load_rules(source) if isinstance(source, Path) else (source, ())
        return self.rules[index]

    def __call__(self, request: tuple[Any, ...]) -> Any:
        if gc.get_count()[0] > GARBAGE:
            gc.collect()
        match request:
            case ("load", source):
                rules, problems = self.load(source)
                found = [(Verdict(r.name, r.law, r.place), r.phase == "simplification") for r in rules]
                return found, [Verdict(p.rule, "", p.place, problem=p.text) for p in problems]
            case ("mutants", source, index):
                found = self.load(source)[0][index]
                return [(m.kind, m.change, len(rewrites(found))) for m in self.mutants(found)]
            case ("begin", source, index, number):
                rule = self.load(source)[0][index]
                self.original, attempts, apart = rule, self.attempts, ()
                self.mutant = None if number is None else self.mutants(rule)[number]
                if self.mutant is not None:
                    if (known := self.redundancy(rule).known(self.mutant)) is not None:
                        return known
                    apart = self.redundancy(rule).apart(self.mutant)
                    rule, attempts = self.mutant.rule, FEW_ATTEMPTS
                self.check = self.new_check(
                    rule, simplification=self.simplification, seed=self.seed, attempts=attempts, apart=apart
                )
                return None
            case ("spared", passed):
                of = self.redundancy(self.original)
                assert self.mutant is not None
                return of.noted(self.mutant), of.why(self.mutant) if passed else None
            case ("prove",):
                return self.proof(self.original)
            case ("run", examples):
                report = self.check.run(examples)
                seen = ("examples", "fired", "changed", "exercised", "unexercised", "silent", "whole", "chance")
                wrong = None if report.counterexample is None else str(report.counterexample)
                return {**{name: getattr(report, name) for name in seen}, "counterexample": wrong}
            case _:
                return str(self.check.shrunk())
