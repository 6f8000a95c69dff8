"""What methods are made of: scikit-learn's estimators, which say how sure they are; trees also predict in less time."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import KNeighborsRegressor

from lift_egraph.learned.samples import Floats

Sure = tuple[Floats, Floats]
"""What is predicted, and the standard deviation of each."""


class Trees(ExtraTreesRegressor):
    """Extremely randomised trees that predict without scikit-learn's threads and checks of each tree.

    These take 20 times as long as the trees themselves where a search asks for one kernel after the other. What is
    predicted is the same.
    """

    @overload
    def predict(self, X: Floats, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: Floats, return_std: Literal[True]) -> Sure: ...
    def predict(self, X: Floats, return_std: bool = False) -> Floats | Sure:
        """The mean of all trees, and how far they are apart."""
        rows = np.asarray(X, dtype=np.float32)
        if return_std:
            every = np.array([tree.tree_.predict(rows)[:, 0] for tree in self.estimators_])
            return every.mean(axis=0), every.std(axis=0)
        total = np.zeros(len(rows))
        for tree in self.estimators_:
            total += tree.tree_.predict(rows)[:, 0]
        return total / len(self.estimators_)


class Neighbours(KNeighborsRegressor):
    """The mean of the nearest neighbours, and how far they are apart."""

    def predict(self, X: Floats, return_std: bool = False) -> Floats | Sure:
        """The mean of the neighbours of each row."""
        if not return_std:
            return super().predict(X)
        wanted: Any = self._y
        every = wanted[self.kneighbors(X, return_distance=False)]
        return every.mean(axis=1), every.std(axis=1)


class Logarithmic(TransformedTargetRegressor):
    """A regressor of logarithms. A standard deviation is that of the logarithm times what is predicted."""

    def __init__(self, regressor: Any = None) -> None:
        super().__init__(regressor, func=np.log, inverse_func=np.exp)

    def predict(self, X: Floats, return_std: bool = False, **_: object) -> Floats | Sure:
        """What the regressor predicts, not as a logarithm."""
        if not return_std:
            return super().predict(X)
        regressor: Any = self.regressor_
        mean, deviation = regressor.predict(X, return_std=True)
        return np.exp(mean), np.exp(mean) * deviation
