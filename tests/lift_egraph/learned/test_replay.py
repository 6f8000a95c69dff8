"""Leaving programs out, and replaying strategies, on tables whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.errors import ModelProblem
from lift_egraph.extract.features import NAMES
from lift_egraph.learned.methods import METHODS
from lift_egraph.learned.pictures import draw, draw_scatter
from lift_egraph.learned.replay import contests, evaluate, left_out, replayed
from lift_egraph.learned.strategies import AtRandom, Confident, Greedy, Point
from lift_egraph.learned.summary import accuracy, effort, redundancy, so_far
from tests.depth import in_turn
from tests.lift_egraph.learned.tables import TELLING, samples


@pytest.fixture(scope="module")
def found():
    return evaluate(samples(points=40), "forest")


def test_what_features_tell_is_learned_for_programs_that_were_not_seen(found):
    for row in accuracy(found):
        assert row["forest"] > 0.5
        assert row["forest, ranks"] > 0.6
        assert abs(row["analytical"]) < 0.5  # it is noise


def test_a_model_reaches_the_best_sooner_than_chance(found):
    by_name = {(row["goal"], row["strategy"]): row for row in effort(found)}
    assert {strategy for _, strategy in by_name} == {"random", *(c.name for c in contests("forest"))}
    chance, forest = by_name["90% of the best", "random"], by_name["90% of the best", "forest"]
    assert chance["fewer runs"] == chance["less kernel time"] == 1.0
    assert forest["mean"] < chance["mean"] / 2
    assert forest["less kernel time"] > 2
    assert so_far(found, "forest", 30)[-1] == 1.0
    assert (np.diff(so_far(found, "random", 30)) >= 0).all()


def test_of_kernels_that_take_the_same_time_nothing_can_be_told():
    """Their correlation was no number, and what a feature is worth a division by 0."""
    alike = replace(samples(), seconds=np.full(75, 1e-3))
    assert set(redundancy(replace(alike, features=np.ones_like(alike.features))).values()) == {0.0}
    found = evaluate(alike, "forest")
    rows = accuracy(found)
    assert {row[model] for row in rows for model in ("analytical", "forest", "forest, ranks")} == {0.0}
    assert {row["mean"] for row in effort(found)} == {1.0}
    draw(found, alike, "forest")


def test_nothing_of_a_program_is_learned_before_it_is_predicted():
    table = samples()
    first = next(left_out(table, [METHODS["forest"]]))
    strange = replace(table, seconds=np.where(np.array(table.programs) == "p0", table.seconds[::-1], table.seconds))
    again = next(left_out(strange, [METHODS["forest"]]))
    assert set(first[0].programs) == {"p0"}
    given = first[0].features, first[0].analytical
    assert (first[1]["forest"].times(*given) == again[1]["forest"].times(*given)).all()


def test_the_features_that_tell_most_are_worth_most():
    assert set(list(redundancy(samples(4, 100)))[:2]) == set(TELLING)


@in_turn(3)
def test_one_program_or_few_kernels_cannot_be_left_out():
    with pytest.raises(ModelProblem, match="there is only p0"):
        evaluate(samples(1))
    with pytest.raises(ModelProblem, match="no program has 10 right kernels"):
        evaluate(samples(8, 5))
    with pytest.raises(ModelProblem, match="without p0, which is left out: a model needs 20 right kernels"):
        evaluate(samples(2, 15))


def test_chance_finds_the_best_in_the_mean_after_half_of_all():
    seconds = np.arange(1.0, 22.0)
    points = [Point((), 1.0)] * 21
    runs = [replayed(AtRandom(seed), points, seconds).runs(1.0) for seed in range(300)]
    assert abs(np.mean(runs) - 11) < 1.2
    assert len({*runs}) == 21


def test_confidence_leaves_a_family_that_disappoints_and_looks_where_nothing_is_known():
    """Ten kernels of one place are predicted best, and are not; the best is elsewhere."""
    near = [Point(("near",), 1.0 + 0.01 * n, (0.0, 0.0)) for n in range(10)]
    far = [Point(("far",), 1.5, (5.0, 5.0))]
    seconds = np.array([4.0] * 10 + [1.0])
    assert replayed(Greedy(), near + far, seconds).runs(1.0) == 11
    assert replayed(Confident(), near + far, seconds).runs(1.0) == 2


def test_confidence_learns_what_neighbours_have_in_common():
    places = np.linspace(-3, 3, 40)
    seconds = np.exp(2 * np.abs(places - 1.5))
    points = [Point((), 1.0, (float(x),)) for x in places]
    assert replayed(Confident(), points, seconds).runs(0.9) < 15


def test_confidence_takes_measurements_in_one_by_one_as_all_at_once():
    """Also for kernels that are found in between: what is kept of earlier steps is what the whole process says."""
    draw = np.random.default_rng(0)
    points = [Point((name,), draw.uniform(1, 9), tuple(draw.normal(size=3))) for name in "aabbc" * 6]
    seconds = draw.uniform(1, 9, 30)
    step_by_step, at_once = Confident(), Confident()
    for number in range(12):
        step_by_step.expected(points[: 13 + number])
        step_by_step.learn(points[number], seconds[number])
    for number in reversed(range(12)):
        at_once.learn(points[number], seconds[number])
    assert np.allclose(step_by_step.expected(points), at_once.expected(points), rtol=1e-9)

    def covariance(some):
        apart = np.array([[np.mean(np.subtract(p.place, q.place) ** 2) for q in points[:12]] for p in some])
        same = np.array([[p.family == q.family for q in points[:12]] for p in some])
        return 2.0**2 + 0.6**2 * same + 0.3**2 * np.exp(-apart / 2)

    errors = np.log(seconds[:12] / [p.predicted for p in points[:12]])
    weights = np.linalg.solve(covariance(points[:12]) + 0.3**2 * np.eye(12), covariance(points).T)
    deviation = np.sqrt(2.0**2 + 0.6**2 + 0.3**2 - (covariance(points) * weights.T).sum(axis=1))
    wanted = [p.predicted for p in points] * np.exp(errors @ weights - deviation)
    assert np.allclose(at_once.expected(points), wanted, rtol=1e-9)


def test_trees_predict_what_scikit_learn_predicts_without_its_threads(monkeypatch):
    from sklearn.ensemble import ExtraTreesRegressor  # not while tests are collected

    table = samples()
    fitted = METHODS["forest"].fit(table)
    trees = fitted.estimators[0][-1].regressor_
    expected = ExtraTreesRegressor.predict(trees.set_params(n_jobs=1), table.features)  # threads add in any order
    monkeypatch.setattr("sklearn.ensemble._forest.Parallel", None)
    assert (trees.predict(table.features) == expected).all()


def test_pictures_show_all_strategies_and_programs(found):
    figure = draw(found, samples(), "forest")
    scatter, curves, worth, residuals = figure.axes
    assert {line.get_label() for line in curves.get_lines()} == set(found.contests)
    assert len(scatter.collections) == len(found.spaces)
    assert [label.get_text() for label in residuals.get_yticklabels()] == [s.name for s in found.spaces]
    assert {label.get_text() for label in worth.get_yticklabels()} <= set(NAMES)


def test_what_is_learned_is_blended_with_the_analytical_prediction():
    table = samples()
    forest, residual, blended = (
        METHODS[name].fit(table).times(table.features, table.analytical) for name in ("forest", "residual", "blended")
    )
    np.testing.assert_allclose(blended, (forest * residual) ** 0.35 * table.analytical**0.3)


def test_what_the_analytical_model_says_wrongly_is_learned():
    """It is wrong by what one feature says: a model of that is right, however long kernels take."""
    table = samples(4)
    width = table.taking(["vector_width"])[:, 0]
    table = replace(table, seconds=table.analytical / width * np.repeat([1.0, 10.0, 100.0, 1000.0], 25))
    spreads = [
        {name: np.std(np.log(m.times(held.features, held.analytical) / held.seconds)) for name, m in fitted.items()}
        for held, fitted in left_out(table, [METHODS["residual"], METHODS["forest"]])
    ]
    wrong = {name: np.mean([spread[name] for spread in spreads]) for name in spreads[0]}
    assert wrong["residual"] < wrong["forest"] / 2


@in_turn(3)
def test_models_of_another_device_are_tried_on_this_one():
    """Its times are the same, in another unit, so they transfer as they are; the program is left out there, too."""
    table = samples(points=40)
    other = replace(table, device=replace(table.device, name="abacus 2"), seconds=8 * table.seconds)
    native, moved = evaluate(table, "forest"), evaluate(table, "forest", learned_from=other)
    for own, same in zip(native.spaces, moved.spaces, strict=True):
        np.testing.assert_allclose(own.times["forest"], same.times["forest"])
    unlike = replace(other, seconds=other.seconds[::-1])
    assert evaluate(table, "forest", learned_from=unlike).spaces[0].correlation("forest") < 0.5


def test_programs_are_told_apart_where_there_are_more_than_colours(found):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    draw_scatter(axes, replace(found, spaces=found.spaces * 5), "forest")
    looks = {(each.get_facecolor().tobytes(), each.get_paths()[0].vertices.tobytes()) for each in axes.collections}
    assert len(looks) == 5 * len(found.spaces) == 15
