"""Validation beyond the interpreter's reach: sampled elements, a small size of the same plan, another kernel's result.

At the wanted size single elements are interpreted, and the whole result is held against that of the first kernel that
was right, as a rule the naive one; where they differ most, elements are interpreted again. At a small size of the same
plan (`small_sizes` beside this) the whole result is compared with the interpreter's. Where no element has an error
bound at either size, the first right kernel gives all samples as the program says them, bit for bit.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import (
    Reference,
    References,
    Verdict,
    compare,
    judge,
    quickly,
    references,
    signs_of,
)
from lift_egraph.errors import LiftError, TimeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import Array, leaves, scalar_of
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.in_order import evaluate_in_order, evaluate_plainly, in_words
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.samples import Meaning, Place, Samples, at_place, evaluated, leaf_at, picks, taken_from
from lift_egraph.meaning.time_limit import require_time, within
from lift_egraph.meaning.values import Value, leaves_of
from lift_egraph.meaning.workload import effort, repetitions
from lift_egraph.workbench.validation.differences import Difference, differences
from lift_egraph.workbench.validation.few_steps import STEPS, steps_of, turns_of, with_few_steps, with_few_turns
from lift_egraph.workbench.validation.interpreting import Interpreting
from lift_egraph.workbench.validation.small_sizes import FEWEST, LEAST, MOST_EFFORT, Twin, twin

KINDS = ("integers", "floats")
TOO_LONG = "as it would take too long for all"
MOST_SAMPLES = 256
LOOKED_AT = 8  # elements that are interpreted where two results differ most …
PATIENCE = 3  # … one at least, unless all of these, of all kernels, take so many times the seconds for all samples
FOR_SMALL = 3.0  # seconds that finding small sizes of a plan may take, if samples may not take more
LATE = 2  # times the seconds for all samples that the first may take, if another set of inputs has any
DRAWN = 1 << 12  # elements of an input that show whether all are whole numbers
ROUNDED = 1e-3  # of a result's largest element: how far another order of rounding may take it without a bound …
A_STEP = 2.0**-27  # … and for each step of longer sums, an eighth of what rounding to f32 takes at most
RATE = 2.5e-8  # seconds to interpret, with its bound, an element that is made one by one
EXACT_SUMS = 1 << 18, 1 << 21  # terms of which sums of whole numbers to 3, and of ones, are exact as a rule


@dataclass
class _Set:
    """A set of inputs, samples of the program's result on it, and the result of the first kernel that was right.

    `plain` are samples in the program's own types and order, for where no bound is known.
    `known` has the elements that were interpreted since, one at a time; whether the program `rounds` also whole numbers
    is known beforehand.
    """

    inputs: Mapping[str, Value]
    samples: Samples | None
    rounds: bool
    result: Value | None = None
    plain: Samples | None = None
    known: dict[ir.Expr, tuple[Value, Value]] = field(default_factory=dict)
    looking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_whole(self) -> bool:
        """Whether arithmetic on the inputs is exact as a rule: a range may have no whole numbers to draw from."""
        if self.rounds:
            return False
        drawn = (leaf.reshape(-1)[:DRAWN] for value in self.inputs.values() for leaf in leaves_of(value))
        return all(np.array_equal(part, np.rint(part)) for part in drawn if part.dtype != np.bool_)

    def recall(self, elements: Iterable[tuple[ir.Expr, Sequence[int], Sequence[int], Value]]) -> None:
        """Know those of some elements that are samples: terms, with their paths and indices in the result."""
        if self.samples is None:
            return
        paths = [path for path, *_ in leaves(self.samples.type)]
        trees = self.samples.places, self.samples.value, self.samples.bound
        of_leaf = zip(*map(leaves_of, trees), strict=True)
        sampled = dict(zip(paths, of_leaf, strict=True))
        for term, path, indices, _ in elements:
            places, value, bound = sampled[tuple(path)]
            if term in self.known or places.shape[1] != len(indices):
                continue
            same = np.flatnonzero((places == np.array(indices, np.intp)).all(axis=1))
            if same.size:
                self.known[term] = np.asarray(value[same[0]]), np.asarray(bound[same[0]])


@dataclass
class Sampled:
    """What the kernels of a program are held against at sizes that are too much to interpret.

    Parameters
    ----------
    source
        The program with open sizes.
    program
        The same at the wanted sizes.
    compiled
        Makes the kernels of a low-level term at small sizes.
    seconds
        How long elements may be interpreted, all in all.
    kinds
        The sets of inputs: both, or one where memory is short. Kernels are timed on the last.
    why
        The whole result is not compared with the interpreter's.
    exact
        Whether results must agree bit for bit where all devices compute the same.
    whole
        What the interpreter made of the program, if it did: samples are taken from that.

    Attributes
    ----------
    least
        Of the small sizes.
    looked
        The seconds in which elements were interpreted where results differ.
    slower
        How many times longer than expected one took.
    too_long
        Programs at small sizes that were not interpreted in time.
    is_late
        Whether no element was interpreted in time, but one could be.
    interpreting
        Whether something is interpreted for a kernel at the moment.
    """

    source: ir.Program
    program: ir.Program
    compiled: Callable[[ir.Program], Plan]
    seed: int
    seconds: float
    kinds: tuple[str, ...] = KINDS
    why: str = TOO_LONG
    exact: bool = False
    whole: References | None = None
    sets: dict[str, _Set] = field(init=False)
    places: list[tuple[ir.Expr, Place]] = field(init=False)
    small: dict[ir.Program, References] = field(default_factory=dict)
    loaded: set[tuple[int, str]] = field(default_factory=set)
    least: int = field(default=LEAST, init=False)
    looked: float = field(default=0.0, init=False)
    slower: float = field(default=1.0, init=False)
    too_long: set[ir.Program] = field(default_factory=set, init=False)
    is_late: bool = field(default=False, init=False)
    interpreting: Interpreting = field(default_factory=Interpreting, init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        pick = picks(self.seed)
        places = [at_place(self.program.body, pick(which)) for which in range(MOST_SAMPLES)]
        distinct = {str([p.tolist() for p in leaves_of(place)]): (term, place) for term, place in places}
        self.places = list(distinct.values())
        self.sets, left = {}, self.seconds
        cost, rounds = RATE * effort(places[0][0]), _rounds(self.program.body)
        if self.whole:
            for kind, made in zip(self.kinds, (self.whole.integers, self.whole.floats), strict=True):
                samples = taken_from(self.places, made.value, made.bound)
                self.sets[kind] = _Set(made.inputs, samples, rounds)
            return
        for kind in self.kinds:
            inputs = self._inputs(kind)
            share = left if kind == self.kinds[-1] else left / 2
            samples = None
            if cost <= left:
                with suppress(TimeProblem), within(LATE * share):
                    samples = evaluated(self.places, inputs, share, meaning=self.meaning)
            left -= max(cost, share)
            self.sets[kind] = _Set(inputs, samples, rounds)
        self.is_late = cost <= self.seconds and not any(made.samples for made in self.sets.values())

    @property
    def inputs(self) -> dict[str, Mapping[str, Value]]:
        """The sets of inputs, by their names."""
        return {kind: made.inputs for kind, made in self.sets.items()}

    @property
    def timed(self) -> str:
        """The set of inputs on which kernels are timed."""
        return self.kinds[-1]

    @property
    def how(self) -> str:
        """What is compared, in a sentence."""
        counts = [len(next(leaves_of(s.samples.value))) if s.samples else 0 for s in self.sets.values()]
        counted = zip(self.kinds, counts, strict=True)
        kinds = " and ".join(f"{count or 'no'} elements on {kind}" for kind, count in counted)
        return (
            f"{kinds} were compared with the interpreter's, {self.why}; the whole result with "
            "that of the first right kernel; at small sizes of each plan the whole result with the interpreter's"
            f"{in_words(self.program.body) if self.exact else ''}"
        )

    @property
    def meaning(self) -> Meaning:
        """The values of elements, and their bounds."""
        return evaluate_in_order if self.exact else evaluate_bounded

    def check(self, lowered: ir.Program, plan: Plan, runner: Runner) -> Verdict:
        """Run the plan of a low-level program, small and at the wanted sizes, and compare what can be compared."""
        known = self.sets[self.timed].samples
        verdicts = [self._small(lowered, runner)]
        results: dict[str, Value] = {}
        for kind in self.kinds:
            if verdicts[-1].valid:
                results[kind] = runner.run(plan, kind)
                verdicts.append(self._large(kind, results[kind]))
        if verdicts[-1].valid and not any(v.compared for v in verdicts) and self._has_late_samples(known):
            verdicts.append(self._large(self.timed, results[self.timed]))
        is_compared = any(v.compared for v in verdicts)
        valid = verdicts[-1].valid and is_compared
        if valid:
            with self.lock:
                for kind, made in self.sets.items():
                    made.result = results[kind] if made.result is None else made.result
        worst = max(verdicts, key=lambda v: v.max_error)
        return Verdict(
            valid=valid,
            max_error=worst.max_error,
            error_bound=worst.error_bound,
            bitwise=all(v.bitwise for v in verdicts),
            message="; ".join(v.message for v in (verdicts if verdicts[-1].valid else verdicts[-1:])),
            compared=sum(v.compared for v in verdicts),
            is_open=verdicts[-1].valid and not is_compared,
        )

    def _has_late_samples(self, known: Samples | None) -> bool:
        """Whether there are others than those that were known, as an element is interpreted however long it takes: late
        is better than never, where a kernel could not be compared at all. Another lane may have done so meanwhile.
        """
        with self.lock:
            last = self.sets[self.timed]
            if self.is_late:
                self.is_late = False
                last.samples = evaluated(self.places, last.inputs, 0.0, meaning=self.meaning)
            return last.samples is not known

    def _inputs(self, kind: str) -> dict[str, Value]:
        if kind == "floats":
            return random_inputs(self.program, self.seed, "float")
        terms, (small, ones) = _longest_sum(self.program.body), EXACT_SUMS
        made = random_inputs(self.program, self.seed, "integer")
        return made if terms <= small else signs_of(self.program, made, min(1.0, ones / terms), self.seed)

    def _small(self, lowered: ir.Program, runner: Runner) -> Verdict:
        """The verdict on the plan at small sizes; a valid one of nothing where there is none."""
        found = plan = None
        try:
            with within(max(self.seconds, FOR_SMALL)), self.interpreting.counted():
                found = self._twin(lowered)
                plan = found and self._twins_plan(found)
        except TimeProblem:
            require_time()
        if not found or not plan:
            return Verdict(True, 0.0, 0.0, True, "no small sizes of this plan were found", 0)
        reference, shown = self.small[found.program], found.where
        for kind, inputs in reference.inputs.items():
            if (id(runner), name := f"{kind} at {shown}") not in self.loaded:
                runner.load_inputs(name, inputs)
                self.loaded.add((id(runner), name))

        def judged(optimised: bool) -> Verdict:
            names = [f"{kind} at {shown}" for kind in reference.inputs]
            return judge(reference, *[runner.run(plan, name, optimised=optimised) for name in names])

        verdict = quickly(judged, lambda verdict: verdict.valid)
        is_right = verdict.valid or not verdict.compared  # where nothing has a bound, the wanted sizes decide
        return replace(verdict, valid=is_right, message=f"the same plan at {shown}: {verdict.message}")

    def _twin(self, lowered: ir.Program) -> Twin | None:
        """The program and the term at small sizes: if errors have no finite bound there, at the smallest, or with few
        turns of their loops and steps of their iterates.
        """
        found = twin(self.source, dict(self.program.sizes), lowered, self.least)
        if self.least > FEWEST and not (found and self._is_bounded(found.program)):
            fewer = twin(self.source, dict(self.program.sizes), lowered, FEWEST)
            if fewer and self._is_bounded(fewer.program):
                self.least = FEWEST
                return fewer
            return self._with_few_turns(found or Twin(self.program, lowered)) or found
        return found

    def _with_few_turns(self, found: Twin) -> Twin | None:
        """Both with as many turns of their loops and steps of their iterates as errors have bounds after, if both have
        the same.
        """
        turns, others = ((sorted(turns_of(b)), sorted(steps_of(b))) for b in (found.program.body, found.lowered.body))
        if turns == ([], []) or turns != others:
            return None
        for most in STEPS:
            program, lowered = (
                replace(p, body=with_few_steps(with_few_turns(p.body, most), most))
                for p in (found.program, found.lowered)
            )
            is_short = program != found.program and effort(program.body) <= MOST_EFFORT
            if is_short and self._is_bounded(program):
                return Twin(program, lowered, most)
        return None

    def _is_bounded(self, program: ir.Program) -> bool:
        """Whether the errors of all results at small sizes have bounds."""
        try:
            return self._at_small(program).bounded
        except LiftError:  # not for these sizes, which nobody asked for
            require_time()
            return False

    def _at_small(self, program: ir.Program) -> References:
        """What the interpreter makes of the program at small sizes."""
        with self.lock:
            if program in self.too_long:
                raise TimeProblem("the program takes too long to interpret at these sizes")
            if program not in self.small:
                try:
                    with within(max(self.seconds, FOR_SMALL) / 2):
                        self.small[program] = references(program, self.seed, exact=self.exact)
                except TimeProblem:
                    require_time()
                    self.too_long.add(program)
                    raise
            return self.small[program]

    def _twins_plan(self, found: Twin) -> Plan | None:
        """The plan at small sizes, if the interpreter says that its term means what the program means there."""
        try:
            reference = self._at_small(found.program)
            value = evaluate(found.lowered.body, reference.integers.inputs)
            if compare(reference.type, reference.integers, value).wrong:
                return None
            return self.compiled(found.lowered)
        except LiftError:  # not for these sizes, which nobody asked for
            require_time()
            return None

    def _large(self, kind: str, result: Value) -> Verdict:
        """The verdict on a result at the wanted sizes."""
        made = self.sets[kind]
        messages, errors, compared = [], (0.0, 0.0), 0
        if made.samples is not None:
            samples = made.samples
            count = len(next(leaves_of(samples.value)))
            sampled = Reference({}, samples.value, samples.bound)
            found = compare(Array(nat(count), samples.type), sampled, samples.taken(result))
            errors = found.max_error, found.bound
            messages.append(f"of samples, {found.message}")
            compared = found.elements - found.unbounded
            if found.wrong:
                return Verdict(False, *errors, False, f"on {kind}: {_placed(found.message, samples)}", compared)
            if not compared and made.result is None and (compared := self._agreeing(made, result)):
                messages.append(f"{compared} of them as the program says it, bit for bit")
        else:
            messages.append("no element was interpreted: that takes too long")
        bitwise = made.samples is not None and not any(b.any() for b in leaves_of(made.samples.bound))
        if made.result is not None:
            found = differences(type_of(self.program.body), result, made.result, LOOKED_AT)
            problem, text = self._judge(found, kind, compared > 0)
            if problem:
                return Verdict(False, *errors, False, f"on {kind}: {problem}", compared)
            messages.append(text)
            if kind == "integers":  # what is rounded agrees here too, or it would be a problem
                compared = compared or (found.equal if made.is_whole else found.elements)
        return Verdict(True, *errors, bitwise, f"on {kind}: {', '.join(messages)}", compared)

    def _agreeing(self, made: _Set, result: Value) -> int:
        """How many samples a result without bounds has bit for bit as the program says it: all or none."""
        try:
            with made.looking:
                if made.plain is None:
                    made.plain = self._plainly(made)
        except TimeProblem:
            require_time()
            return 0
        plain, count = made.plain, len(next(leaves_of(made.plain.value)))
        found = compare(Array(nat(count), plain.type), Reference({}, plain.value, plain.bound), plain.taken(result))
        return 0 if found.wrong else found.elements

    def _plainly(self, made: _Set) -> Samples:
        """Samples in the program's own types and order."""
        seconds = self.seconds / len(self.kinds)
        if self.whole is None:
            return evaluated(self.places, made.inputs, seconds, meaning=evaluate_plainly)
        return taken_from(self.places, *evaluate_plainly(self.program.body, made.inputs))

    def _judge(self, found: Difference, kind: str, has_compared: bool) -> tuple[str, str]:
        """What is wrong where two results differ most, and else what was compared; samples may have been before."""
        text = f"{found.equal} of all {found.elements} elements as the first right kernel's"
        if not found.places:
            return "", text
        places = [(leaf_at(self.program.body, path, at), path, at, output) for path, at, output in found.places]
        made = self.sets[kind]
        with made.looking:  # another kernel may differ in the same places
            made.recall(places)
            cost = RATE * effort(places[0][0]) * self.slower
            if places[0][0] not in made.known and self.looked + cost > PATIENCE * self.seconds:
                return self._unlike(found, kind, "too long to interpret", text)
            places = places[: max(1, int(self.seconds / cost))]
            for term, *_ in places:
                if term not in made.known:
                    made.known[term] = self._looked_at(term, made.inputs)
        bounded = 0
        for term, path, indices, output in places:
            verdict = compare(type_of(term), Reference({}, *made.known[term]), output)
            if verdict.wrong:
                return verdict.first_wrong.replace("output", _name(path, indices), 1), ""
            bounded += not verdict.unbounded
        if not bounded and not has_compared:
            return self._unlike(found, kind, "no error bound is known", text)
        return "", f"{text}, {bounded} of the others, which differ most, within the error bound"

    def _unlike(self, found: Difference, kind: str, why: str, text: str) -> tuple[str, str]:
        """The same for a difference that the interpreter says nothing of: rounding explains small ones at most."""
        problem = f"differs by {found.largest:.3g} from the first right kernel's result: {why}"
        if kind == "integers" and (self.sets[kind].is_whole or found.largest > self._rounded(kind)):
            return problem, ""
        return "", f"{text}; it {problem}"

    def _rounded(self, kind: str) -> float:
        """How far another order of rounding may take the first right kernel's result, by its largest element."""
        found = map(np.asarray, leaves_of(self.sets[kind].result))
        largest = max(float(np.max(np.abs(leaf[np.isfinite(leaf)]), initial=0.0)) for leaf in found)
        return another_order(self.program.body) * largest

    def _looked_at(self, term: ir.Expr, inputs: Mapping[str, Value]) -> tuple[Value, Value]:
        """The value of one element, and its bound; how long that took counts."""
        began = time.perf_counter()
        with self.interpreting.counted():
            found = self.meaning(term, inputs, None)
        took = time.perf_counter() - began
        with self.lock:
            self.looked += took
            self.slower = max(self.slower, took / (RATE * effort(term)))
        return found


def _name(path: Sequence[int], indices: Sequence[int]) -> str:
    return "output" + "".join(f".{i}" for i in path) + (f"[{', '.join(map(str, indices))}]" if indices else "")


def _placed(message: str, samples: Samples) -> str:
    """A message about a sample, with its place in the result for its number."""

    def place(found: re.Match[str]) -> str:
        path = tuple(int(i) for i in found[1].split(".")[1:])
        places = dict(zip((at for at, *_ in leaves(samples.type)), leaves_of(samples.places), strict=True))
        lane = [int(i) for i in found[3].split(", ")[1:]]
        return _name(path, [*places[path][int(found[2])].tolist(), *lane])

    return re.sub(r"^output((?:\.\d)*)\[(\d+)((?:, \d+)*)\]", place, message)


def _rounds(term: ir.Part) -> bool:
    """Whether floats that are computed of whole numbers are no whole numbers as a rule."""
    for part in ir.subterms(term):
        match part:
            case ir.Literal(value=float() as value) if isfinite(value) and not value.is_integer():
                return True
            case ir.Call(op=op, arguments=(a, *_)) if op == "div" and scalar_of(type_of(a)).is_float:
                return True
            case ir.Call(op=op) if OPERATIONS[op].kind == "float" and op not in ("floor", "ceil"):
                return True
            case _:
                pass
    return False


def another_order(term: ir.Expr) -> float:
    """How far another order of rounding may take a result, where no bound is known: a part of its largest element."""
    return max(ROUNDED, A_STEP * _longest_sum(term))


def _longest_sum(term: ir.Part) -> int:
    """How many terms the longest reduction has, with those inside it."""
    inside = max((_longest_sum(part) for part in ir.parts(term)), default=1)
    return inside * repetitions(term) if isinstance(term, ir.FOLDS) else inside
