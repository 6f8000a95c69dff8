"""How models are learned: as published, and better ones, as scikit-learn estimators.

All learn, from the features of a kernel, its throughput beside the best kernel of the same program and input. So what
programs have in common is learned, and nothing of how long any of them takes. What is learned fails for programs unlike
all others; there the analytical model still holds. So the method that is used by default takes a mean of three: what is
learned of throughput, what is learned of how wrong the analytical model is, and this model itself. How much each counts
was chosen for all devices alike; `benchmarks/learned.py` chooses it for each program by the others, too.

Source: 002 §5 and §6: principal components with 95 % of the variance, and the 5 nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lift_egraph.errors import ModelProblem
from lift_egraph.extract.features import NAMES, PUBLISHED
from lift_egraph.learned.samples import Floats, Samples

if TYPE_CHECKING:  # to import scikit-learn takes a second: what it is called for imports it
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

VARIANCE, NEIGHBOURS = 0.95, 5
TREES, LEAF, FEATURES = 80, 3, 0.4  # how many trees, kernels in a leaf, and features that are tried for a split
SMOOTH, NOISE = 5.0, 0.1  # over which distance kernels are alike, and the variance of what features do not tell
LEAST = 20  # kernels to learn from
LEAST_THROUGHPUT = 1e-4  # what is slower is not told apart


def published() -> Pipeline:
    """Standardised features, their principal components, and the mean of the nearest neighbours."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from lift_egraph.learned.estimators import Neighbours

    return make_pipeline(StandardScaler(), PCA(VARIANCE), Neighbours(NEIGHBOURS))


def forest() -> Pipeline:
    """Extremely randomised trees, on logarithms of throughput."""
    from sklearn.pipeline import make_pipeline

    from lift_egraph.learned.estimators import Logarithmic, Trees

    trees = Trees(TREES, min_samples_leaf=LEAF, max_features=FEATURES, random_state=0, n_jobs=-1)
    return make_pipeline(Logarithmic(trees))


def gaussian() -> Pipeline:
    """A Gaussian process on logarithms of throughput; of large features, on their logarithms, too."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.pipeline import make_pipeline

    from lift_egraph.learned.estimators import Logarithmic

    kernel = RBF(SMOOTH, "fixed") + WhiteKernel(NOISE, "fixed")
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    return make_pipeline(*_unit_variance(), Logarithmic(process))


def _unit_variance() -> tuple[FunctionTransformer, StandardScaler]:
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    return FunctionTransformer(np.arcsinh), StandardScaler()


@dataclass(frozen=True)
class Method:
    """A way to learn throughput from the features in some columns.

    Attributes
    ----------
    residual
        Whether it learns how wrong the analytical prediction is, instead of the throughput.
    analytical
        The weight of the analytical prediction beside what was learned, in the geometric mean of both.
    parts
        Methods of which the geometric mean is taken in the place of one that is made.
    """

    name: str
    make: Callable[[], Pipeline]
    columns: tuple[str, ...] = NAMES
    residual: bool = False
    analytical: float = 0.0
    parts: tuple[Method, ...] = ()

    def fit(self, samples: Samples) -> Fitted:
        """Learn from samples.

        Raises
        ------
        ModelProblem
            If there are too few of them, or no feature tells any from another.
        """
        return self.fit_rows(samples.taking(NAMES), samples.throughput, samples.beside_predicted)

    def fit_rows(self, features: Floats, throughput: Floats, beside_predicted: Floats) -> Fitted:
        """Learn from the features of `NAMES`, and what `lift_egraph.learned.samples.Samples` has of the same names.

        Raises
        ------
        ModelProblem
            As `fit` does.
        """
        from sklearn.pipeline import make_pipeline

        if len(features) < LEAST:
            raise ModelProblem(
                f"a model needs {LEAST} right kernels at least, there are {len(features)}: collect more points"
            )
        learned = tuple(
            part._learned(features, beside_predicted if part.residual else throughput) for part in self.parts or (self,)
        )
        return Fitted(self, learned, make_pipeline(*_unit_variance()).fit(features))

    def _learned(self, features: Floats, wanted: Floats) -> Pipeline:
        rows = self._rows(features)
        if (rows == rows[0]).all():
            raise ModelProblem(
                f"all {len(self.columns)} features are the same for all {len(rows)} kernels: nothing can be learned"
            )
        return self.make().fit(rows, wanted)

    def _rows(self, features: Floats) -> Floats:
        return features[:, [NAMES.index(name) for name in self.columns]]

    def _times(self, estimator: Pipeline, features: Floats, analytical: Floats) -> Floats:
        times = 1 / np.maximum(estimator.predict(self._rows(features)), LEAST_THROUGHPUT)
        return times * analytical if self.residual else times

    def _spread(self, estimator: Pipeline, features: Floats) -> Floats:
        mean, deviation = estimator.predict(self._rows(features), return_std=True)
        return deviation / np.maximum(mean, LEAST_THROUGHPUT)


@dataclass(frozen=True)
class Fitted:
    """A method with what it learned, each part by itself; `places` brings features to unit variance."""

    method: Method
    estimators: tuple[Pipeline, ...]
    places: Pipeline

    def times(self, features: Floats, analytical: Floats) -> Floats:
        """How long each kernel takes, as a multiple of a time that is the same for all of a program and input.

        Parameters
        ----------
        features
            Those of `lift_egraph.extract.features.NAMES`, as [kernels, features].
        analytical
            The times that the analytical model predicts, in any unit.
        """
        parts = self.method.parts or (self.method,)
        logarithms = [
            np.log(part._times(estimator, features, analytical))
            for part, estimator in zip(parts, self.estimators, strict=True)
        ]
        learned, weight = np.exp(np.mean(logarithms, axis=0)), self.method.analytical
        return learned ** (1 - weight) * analytical**weight

    def spread(self, features: Floats) -> Floats:
        """The standard deviation of the logarithm of each time: how far trees or neighbours are apart, or what a
        Gaussian process says. What parts have in common is not known, so it is the mean of theirs; the analytical
        prediction counts as sure.
        """
        parts = self.method.parts or (self.method,)
        every = [part._spread(learned, features) for part, learned in zip(parts, self.estimators, strict=True)]
        return np.mean(every, axis=0) * (1 - self.method.analytical)

    def places_of(self, features: Floats) -> list[tuple[float, ...]]:
        """Where each kernel stands, for `lift_egraph.learned.strategies.Point`."""
        return [tuple(place) for place in self.places.transform(features).tolist()]


_FOREST, _GAUSSIAN = Method("forest", forest), Method("gaussian", gaussian)
_RESIDUAL = Method("residual", forest, residual=True)
METHODS = {
    m.name: m
    for m in (
        Method("blended", forest, analytical=0.3, parts=(_FOREST, _RESIDUAL)),
        Method("even", forest, analytical=0.5),
        _RESIDUAL,
        _FOREST,
        _GAUSSIAN,
        Method("published", published, PUBLISHED),
    )
}
DEFAULT = "blended"


def method_of(name: str) -> Method:
    """The method of a name.

    Raises
    ------
    ModelProblem
        If there is none.
    """
    if name not in METHODS:
        raise ModelProblem(f"there is no method {name!r} to learn a model; there are {', '.join(METHODS)}")
    return METHODS[name]
