"""A method as one scikit-learn estimator, for cross-validation, searches for parameters and pipelines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError

from lift_egraph.errors import ModelProblem
from lift_egraph.learned.estimators import Sure
from lift_egraph.learned.methods import DEFAULT, Fitted, method_of
from lift_egraph.learned.replay import correlated
from lift_egraph.learned.samples import TABLE, Floats, beside_median


class ThroughputRegressor(RegressorMixin, BaseEstimator):
    """The throughput of kernels, by one of `lift_egraph.learned.methods.METHODS`: an estimator like scikit-learn's.

    What it predicts is a part of the best throughput of a program and input, times a number that is the same for all
    kernels of these: methods that take the analytical prediction in say only which kernels are faster, and how much.

    Parameters
    ----------
    method
        The name of the method.

    Examples
    --------
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
    >>> from lift_egraph.learned.model import bundled, load_model
    >>> samples = load_model(bundled()["nvidia"]).samples
    >>> X, y = samples.table, samples.throughput
    >>> scores = cross_val_score(
    ...     ThroughputRegressor("published"), X, y, groups=samples.programs, cv=LeaveOneGroupOut()
    ... )
    >>> len(scores) == len({*samples.programs}), bool(scores.mean() > 0.2)
    (True, True)
    """

    def __init__(self, method: str = DEFAULT) -> None:
        self.method = method

    def fit(self, X: Floats, y: Floats, spaces: npt.ArrayLike | None = None) -> ThroughputRegressor:
        """Learn.

        Parameters
        ----------
        X
            Rows as `lift_egraph.learned.samples.Samples.table` has them: features, and the analytical prediction.
        y
            The throughput of each kernel beside the best of its program and input.
        spaces
            What tells the program and input of each; without it all are taken for kernels of one.

        Raises
        ------
        ModelProblem
            If there is no such method, the rows are others or too few, or no feature tells any from another.
        """
        rows, throughput = _checked(X), np.asarray(y, dtype=np.float64)
        if throughput.shape != rows.shape[:1] or not (np.isfinite(throughput) & (throughput > 0)).all():
            raise ModelProblem(f"the throughput of {len(rows)} kernels must be as many finite numbers above 0")
        names = np.asarray([""] * len(rows) if spaces is None else spaces).astype(str)
        beside_predicted = beside_median(rows[:, -1] * throughput, names)
        self.fitted_ = method_of(self.method).fit_rows(rows[:, :-1], throughput, beside_predicted)
        self.n_features_in_ = rows.shape[1]
        return self

    def predict(self, X: Floats, return_std: bool = False) -> Floats | Sure:
        """The throughput of kernels; and the standard deviation of each, by how far the parts of the model are apart.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing was learned.
        ModelProblem
            If the rows are others.
        """
        rows = _checked(X)
        found = 1 / self._learned.times(rows[:, :-1], rows[:, -1])
        return (found, found * self._learned.spread(rows[:, :-1])) if return_std else found

    def score(self, X: Floats, y: Floats, sample_weight: None = None) -> float:
        """Pearson's correlation of what is predicted and measured, of kernels of one program and input."""
        return correlated(np.asarray(self.predict(X)), np.asarray(y, dtype=np.float64))

    @property
    def _learned(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise NotFittedError("nothing was learned yet: call fit first")
        return self.fitted_


def _checked(X: npt.ArrayLike) -> Floats:
    """Rows of a table.

    Raises
    ------
    ModelProblem
        If they are not.
    """
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(TABLE):
        raise ModelProblem(
            f"a table has the {len(TABLE)} columns of lift_egraph.learned.samples.TABLE, not the shape {rows.shape}"
        )
    if not np.isfinite(rows).all() or not (rows[:, -1] > 0).all():
        raise ModelProblem("features must be finite numbers, and analytical predictions above 0 as well")
    return rows
