"""Pictures of an evaluation: what was predicted and measured, how fast the best is found, and where a model fails.

Source: 002, Figures 4 and 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lift_egraph.learned.replay import CHANCE, Evaluation
from lift_egraph.learned.samples import Samples
from lift_egraph.learned.summary import redundancy, so_far

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_RUNS, MOST_FEATURES = 30, 18  # that are shown
MARKERS, COLOURS = "o^sxD+", 10  # a program has another mark where colours begin anew


def draw(evaluation: Evaluation, samples: Samples, model: str) -> Figure:
    """Predicted against measured throughput, the best so far, what features are worth, and residuals by program.

    Parameters
    ----------
    model
        Of which predictions are shown.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 10), layout="constrained")
    axes = figure.subplots(2, 2)
    draw_scatter(axes[0, 0], evaluation, model)
    draw_so_far(axes[0, 1], evaluation)
    draw_worth(axes[1, 0], samples)
    draw_residuals(axes[1, 1], evaluation, model)
    return figure


def draw_scatter(axes: Axes, evaluation: Evaluation, model: str) -> None:
    """The throughput of each kernel beside the best of its program and input, as predicted and as measured."""
    for number, space in enumerate(evaluation.spaces):
        predicted = space.times[model].min() / space.times[model]
        marker = MARKERS[number // COLOURS % len(MARKERS)]
        look: dict[str, Any] = {"color": f"C{number % COLOURS}", "marker": marker, "s": 7, "alpha": 0.6}
        axes.scatter(predicted, space.samples.throughput, label=space.name, **look)
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    axes.set(
        xlabel=f"predicted throughput ({model})", ylabel="measured throughput", title="Each kernel beside the best"
    )
    axes.legend(fontsize=5, loc="upper left")


def draw_so_far(axes: Axes, evaluation: Evaluation) -> None:
    """The best throughput so far against kernels measured, for each strategy, in the mean of all spaces."""
    for contest in evaluation.contests:
        curve = so_far(evaluation, contest, MOST_RUNS)
        axes.plot(range(1, MOST_RUNS + 1), curve, label=contest, linestyle=":" if contest == CHANCE else "-")
    axes.set(xlabel="kernels measured", ylabel="best so far / best of all", title="How fast the best is found")
    axes.legend(fontsize=7, loc="lower right")


def draw_worth(axes: Axes, samples: Samples) -> None:
    """The features that say most about throughput."""
    worth = list(redundancy(samples).items())[:MOST_FEATURES][::-1]
    axes.barh([name for name, _ in worth], [value for _, value in worth])
    axes.tick_params("y", labelsize=7)
    axes.set(xlabel="redundancy of feature and throughput", title="What a feature is worth")


def draw_residuals(axes: Axes, evaluation: Evaluation, model: str) -> None:
    """How many times as long as predicted kernels take, by program and input, beside the median of these."""
    residuals = [np.log2(s.samples.seconds / s.times[model]) for s in evaluation.spaces]
    axes.boxplot([r - np.median(r) for r in residuals], orientation="horizontal", sym=".", widths=0.6)
    axes.set_yticks(range(1, len(residuals) + 1), [s.name for s in evaluation.spaces], fontsize=6)
    axes.set(xlabel="log₂ of measured / predicted time", title="Where it is wrong")
