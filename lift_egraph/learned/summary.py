"""What an evaluation says, as rows of tables; and what each feature is worth."""

from __future__ import annotations

from statistics import mean, median

import numpy as np

from lift_egraph.learned.replay import CHANCE, GOALS, Evaluation
from lift_egraph.learned.samples import Floats, Samples

BINS = 10  # of equal counts, into which features and throughput are put to count how often they go together

Rows = list[dict[str, str | int | float]]


def accuracy(evaluation: Evaluation) -> Rows:
    """For each program and input: Pearson's correlation of throughput and Spearman's of times, for each model."""
    rows: Rows = []
    for space in evaluation.spaces:
        row: dict[str, str | int | float] = {"program and input": space.name, "points": len(space.samples)}
        row |= {model: space.correlation(model) for model in evaluation.models}
        rows.append(row | {f"{model}, ranks": space.rank_correlation(model) for model in evaluation.models})
    return rows


def effort(evaluation: Evaluation) -> Rows:
    """For each contest and goal: the runs that it took, over all spaces, and how many times as many, and as much kernel
    time, random choice takes in the mean.
    """
    rows: Rows = []
    for goal in GOALS:
        by_chance = [s.kernel_seconds(CHANCE, goal) for s in evaluation.spaces]
        random_runs = [s.runs(CHANCE, goal) for s in evaluation.spaces]
        for contest in evaluation.contests:
            runs = [s.runs(contest, goal) for s in evaluation.spaces]
            seconds = [s.kernel_seconds(contest, goal) for s in evaluation.spaces]
            row: dict[str, str | int | float] = {"goal": f"{goal:.0%} of the best", "strategy": contest}
            row |= {"median": median(runs), "mean": mean(runs), "worst": max(runs)}
            row |= {"fewer runs": mean(random_runs) / mean(runs), "less kernel time": sum(by_chance) / sum(seconds)}
            rows.append(row)
    return rows


def redundancy(samples: Samples) -> dict[str, float]:
    """How much each feature says about the throughput beside the best of a program and input; the most first.

    The mutual information of the two, over the sum of their entropies; both are put into bins of equal counts.

    Source: 002 §7.1.
    """
    wanted = _binned(samples.throughput)
    found = {name: _redundancy(_binned(samples.taking([name])[:, 0]), wanted) for name in samples.columns}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def so_far(evaluation: Evaluation, contest: str, runs: int) -> Floats:
    """The best throughput so far, as a part of the best, after each run, in the mean of all spaces."""
    curves = [r.reached[:runs] for space in evaluation.spaces for r in space.replays[contest]]
    weights = [1 / len(space.replays[contest]) for space in evaluation.spaces for _ in space.replays[contest]]
    return np.average([np.pad(c, (0, runs - len(c)), constant_values=1.0) for c in curves], axis=0, weights=weights)


def _binned(values: Floats) -> np.ndarray:
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
    return np.searchsorted(edges, values, side="left")


def _redundancy(first: np.ndarray, second: np.ndarray) -> float:
    entropies = [_entropy(np.unique(values, return_counts=True)[1]) for values in (first, second)]
    together = _entropy(np.unique(np.stack([first, second]), axis=1, return_counts=True)[1])
    return (sum(entropies) - together) / sum(entropies) if sum(entropies) else 0.0


def _entropy(counts: np.ndarray) -> float:
    """Of values that occur so often, in bits."""
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
