"""How good models and strategies are: leaving one program out, and measuring its kernels again in their order.

For each program a model is learned from all others, and predicts the kernels of this one at all its sizes. Strategies
are replayed: the time of what they choose is looked up.

Source: 002 §6 to §8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lift_egraph.caching import cached_property
from lift_egraph.errors import ModelProblem
from lift_egraph.learned.methods import DEFAULT, Fitted, Method, method_of
from lift_egraph.learned.samples import Floats, Samples, Told
from lift_egraph.learned.strategies import CORRECTED, AtRandom, ByFamily, Confident, Greedy, Point, Strategy

LEAST_POINTS = 10  # of a program and input: among fewer nothing can be chosen
DRAWS = 30  # random orders, of which the mean is taken
ANALYTICAL, CHANCE = "analytical", "random"  # what is no method of learning
GOALS = 0.9, 0.95  # parts of the best throughput


def correlated(first: Floats, second: Floats) -> float:
    """Pearson's correlation; 0 where one of both is the same everywhere, and so tells nothing of the other.

    >>> values = np.array([3.0, 5.0, 4.0])
    >>> round(correlated(2 * values, values), 9), correlated(np.ones(3), values)
    (1.0, 0.0)
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


@dataclass(frozen=True)
class Replayed:
    """The kernels of a space in the order in which a strategy chose them: their times, and the best time of all."""

    seconds: Floats
    best: float

    @cached_property
    def reached(self) -> Floats:
        """The best throughput so far, as a part of the best of all, after each kernel."""
        return self.best / np.minimum.accumulate(self.seconds)

    def runs(self, goal: float) -> int:
        """How many kernels it took to reach a part of the best throughput."""
        return int(np.argmax(self.reached >= goal)) + 1

    def kernel_seconds(self, goal: float) -> float:
        """How long these took."""
        return float(self.seconds[: self.runs(goal)].sum())


def replayed(strategy: Strategy, points: Sequence[Point], seconds: Floats) -> Replayed:
    """Let a strategy choose until it found the best kernel.

    Examples
    --------
    >>> points = [Point((), predicted) for predicted in (3.0, 1.0, 2.0)]
    >>> found = replayed(Greedy(), points, np.array([1.0, 4.0, 2.0]))
    >>> found.seconds.tolist(), found.reached.tolist(), found.runs(0.5)
    ([4.0, 2.0, 1.0], [0.25, 0.5, 1.0], 2)
    """
    waiting, left, order = list(range(len(points))), list(points), list[int]()
    best = int(np.argmin(seconds))
    while best not in order[-1:]:
        expected = strategy.expected(left)
        place = expected.index(min(expected))
        chosen, point = waiting.pop(place), left.pop(place)
        order.append(chosen)
        strategy.learn(point, seconds[chosen])
    return Replayed(seconds[order], float(seconds[best]))


@dataclass(frozen=True)
class Contest:
    """A strategy on the predictions of a model: the name of its method, or ``analytical``; or none, by chance."""

    name: str
    model: str
    make: Callable[[], Strategy]


def contests(method: str) -> tuple[Contest, ...]:
    """All that are compared, with a method of learning beside the published one."""
    return (
        Contest(ANALYTICAL, ANALYTICAL, Greedy),
        Contest("analytical by family", ANALYTICAL, CORRECTED),
        Contest("analytical, families first", ANALYTICAL, ByFamily),
        Contest("published", "published", Greedy),
        Contest(method, method, Greedy),
        Contest(f"{method} by family", method, CORRECTED),
        Contest(f"{method}, families first", method, ByFamily),
        Contest(f"{method} confident", method, Confident),
    )


@dataclass(frozen=True)
class Space:
    """What became of the kernels of one program and input, whose program the models had not seen.

    Attributes
    ----------
    samples
        The kernels.
    times
        What is expected of each, by the name of the model.
    places
        Where each stands among others.
    replays
        By the name of the contest; ``random`` has several.
    """

    name: str
    samples: Samples
    times: Mapping[str, Floats]
    places: Sequence[tuple[float, ...]]
    replays: Mapping[str, tuple[Replayed, ...]]

    def replay(self, model: str, strategy: Strategy) -> Replayed:
        """What a strategy chooses by the predictions of a model."""
        families = (tuple(text.split()) for text in self.samples.families)
        points = [Point(*of_one) for of_one in zip(families, self.times[model].tolist(), self.places, strict=True)]
        return replayed(strategy, points, self.samples.seconds)

    def correlation(self, model: str) -> float:
        """Pearson's, of predicted and measured throughput."""
        return correlated(1 / self.times[model], 1 / self.samples.seconds)

    def rank_correlation(self, model: str) -> float:
        """Spearman's, of predicted and measured times."""
        from scipy.stats import rankdata  # takes a second to import

        return correlated(rankdata(self.times[model]), rankdata(self.samples.seconds))

    def runs(self, contest: str, goal: float) -> float:
        """How many kernels it took to reach a part of the best throughput, in the mean of all replays."""
        return float(np.mean([r.runs(goal) for r in self.replays[contest]]))

    def kernel_seconds(self, contest: str, goal: float) -> float:
        """How long these took."""
        return float(np.mean([r.kernel_seconds(goal) for r in self.replays[contest]]))


@dataclass(frozen=True)
class Evaluation:
    """The spaces of all programs; `models` and `contests` are names, those of the latter with ``random``."""

    spaces: tuple[Space, ...]
    models: tuple[str, ...]
    contests: tuple[str, ...]


def evaluate(
    samples: Samples, method: str = DEFAULT, learned_from: Samples | None = None, told: Told | None = None
) -> Evaluation:
    """Leave each program out in turn.

    Parameters
    ----------
    learned_from
        What models learn from, where that is not these samples: those of another device. The program is left out there.
    told
        Is told of each program that was left out, and of how many there are.

    Raises
    ------
    ModelProblem
        If there are not two programs, or a method cannot learn from what is left.
    """
    if len(set(samples.programs)) < 2:
        raise ModelProblem(
            f"to leave one program out takes two at least, there is only {samples.programs[0]}: collect another"
        )
    entered = contests(method)
    names = tuple(dict.fromkeys(c.model for c in entered))
    methods = [method_of(n) for n in names if n != ANALYTICAL]
    spaces, programs = list[Space](), len(set(samples.programs))
    for number, (held, fitted) in enumerate(left_out(samples, methods, learned_from), 1):
        if told is not None:
            told(number, programs)
        spaces += _spaces(held, fitted, entered)
    if not spaces:
        raise ModelProblem(f"no program has {LEAST_POINTS} right kernels at one size: collect more points")
    return Evaluation(tuple(spaces), names, (CHANCE, *(c.name for c in entered)))


def left_out(
    samples: Samples, methods: Sequence[Method], learned_from: Samples | None = None
) -> Iterator[tuple[Samples, dict[str, Fitted]]]:
    """The kernels of each program, and what each method learned from those of all others, or of another device's.

    Raises
    ------
    ModelProblem
        If the others are too few to learn from.
    """
    source = learned_from or samples
    programs, there = np.array(samples.programs), np.array(source.programs)
    for program in dict.fromkeys(samples.programs):
        others = source[there != program]
        try:
            fitted = {m.name: m.fit(others) for m in methods}
        except ModelProblem as problem:
            raise ModelProblem(f"without {program}, which is left out: {problem}") from None
        yield samples[programs == program], fitted


def _spaces(held: Samples, fitted: Mapping[str, Fitted], entered: Sequence[Contest]) -> Iterator[Space]:
    for name in dict.fromkeys(held.spaces.tolist()):
        inside = held[held.spaces == name]
        if len(inside) < LEAST_POINTS:
            continue
        times = {ANALYTICAL: inside.analytical} | {
            m: f.times(inside.features, inside.analytical) for m, f in fitted.items()
        }
        places = next(iter(fitted.values())).places_of(inside.features)
        by_chance = tuple(
            replayed(AtRandom(seed), [Point((), 1.0)] * len(inside), inside.seconds) for seed in range(DRAWS)
        )
        space = Space(name, inside, times, places, {})
        replays = {c.name: (space.replay(c.model, c.make()),) for c in entered}
        yield replace(space, replays={CHANCE: by_chance, **replays})
