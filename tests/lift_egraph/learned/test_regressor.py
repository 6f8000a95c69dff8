"""Methods as estimators: scikit-learn's own tools take them, and they say how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from lift_egraph.errors import ModelProblem
from lift_egraph.extract.features import NAMES
from lift_egraph.learned.methods import METHODS, forest, gaussian, published
from lift_egraph.learned.regressor import ThroughputRegressor
from lift_egraph.learned.samples import TABLE
from tests.lift_egraph.learned.tables import samples

KNOWN, OTHER = samples(), samples(seed=1)


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_predicts_as_its_method_does(method: str):
    learned = METHODS[method].fit(KNOWN)
    estimator = ThroughputRegressor(method).fit(KNOWN.table, KNOWN.throughput, KNOWN.spaces)
    found, deviation = estimator.predict(OTHER.table, return_std=True)
    as_parts = 1 / learned.times(OTHER.features, OTHER.analytical)
    assert found == pytest.approx(as_parts, rel=0.1)  # trees that learn a residual split at the last digit
    assert (found == estimator.predict(OTHER.table)).all()
    assert deviation.shape == found.shape
    assert (np.isfinite(deviation) & (deviation > 0)).all()
    assert deviation == pytest.approx(as_parts * learned.spread(OTHER.features), rel=0.5)


@pytest.mark.parametrize("make", [forest, gaussian, published])
def test_what_methods_are_made_of_says_how_sure_it_is(make: Any):
    """Of what lies far from all that is known a Gaussian process knows less."""
    pipeline = clone(make()).fit(KNOWN.features, KNOWN.throughput)
    found, deviation = pipeline.predict(KNOWN.features, return_std=True)
    assert found == pytest.approx(pipeline.predict(KNOWN.features))
    assert (deviation >= 0).all()
    if make is gaussian:
        far_mean, far = pipeline.predict(1e6 * KNOWN.features, return_std=True)
        assert (deviation / found).max() < (far / far_mean).min()


def test_the_tools_of_scikit_learn_take_an_estimator():
    estimator = ThroughputRegressor("forest")
    assert clone(estimator).get_params() == {"method": "forest"}
    table, wanted, groups = KNOWN.table, KNOWN.throughput, np.array(KNOWN.programs)
    whole = make_pipeline(FunctionTransformer(), estimator)
    given: dict[str, Any] = {"groups": groups, "cv": LeaveOneGroupOut()}
    scores = cross_val_score(whole, table, wanted, params={"throughputregressor__spaces": KNOWN.spaces}, **given)
    assert len(scores) == 3
    assert scores.min() > 0.5
    search = GridSearchCV(ThroughputRegressor(), {"method": ["published", "forest"]}, cv=LeaveOneGroupOut())
    search.fit(table, wanted, groups=groups)
    assert search.best_params_ == {"method": "forest"}
    assert search.best_estimator_.n_features_in_ == len(TABLE) == len(NAMES) + 1


def test_what_cannot_be_learned_from_or_predicted_is_refused():
    estimator = ThroughputRegressor()
    with pytest.raises(NotFittedError, match="call fit first"):
        estimator.predict(KNOWN.table)
    with pytest.raises(ModelProblem, match="a table has the"):
        estimator.fit(KNOWN.features, KNOWN.throughput)
    with pytest.raises(ModelProblem, match="must be finite numbers"):
        estimator.fit(np.full_like(KNOWN.table, np.nan), KNOWN.throughput)
    with pytest.raises(ModelProblem, match="as many finite numbers above 0"):
        estimator.fit(KNOWN.table, KNOWN.throughput * np.nan)
    with pytest.raises(ModelProblem, match="needs 20 right kernels at least, there are 3"):
        estimator.fit(KNOWN.table[:3], KNOWN.throughput[:3])
    with pytest.raises(ModelProblem, match="there is no method 'oracle'"):
        ThroughputRegressor("oracle").fit(KNOWN.table, KNOWN.throughput)
    alike = estimator.fit(KNOWN.table, KNOWN.throughput)
    assert alike.score(KNOWN.table, np.ones(len(KNOWN))) == 0.0
