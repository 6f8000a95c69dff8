"""How well learned models predict programs that they have not seen, and how soon they lead to the best kernel.

Each program is left out in turn. By default the kernels are those that come with the package (`REMADE`); journals of
other kernels or devices can be named. With ``--transfer`` each bundled model predicts all devices' kernels.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import harness
import numpy as np
import numpy.typing as npt

from lift_egraph.bench.tables import Table, markdown
from lift_egraph.files import write_texts
from lift_egraph.learned.methods import DEFAULT, METHODS, Fitted, method_of
from lift_egraph.learned.model import bundled, read_samples
from lift_egraph.learned.replay import GOALS, LEAST_POINTS, Evaluation, Space, evaluate, left_out
from lift_egraph.learned.samples import Samples
from lift_egraph.learned.strategies import Confident, Greedy
from lift_egraph.learned.summary import Rows, accuracy, effort, redundancy

BATCH, ROUNDS = 1000, 5  # predictions at once, and how often they are timed
LEARNED = {"throughput": ("forest",), "residual": ("residual",), "both": ("forest", "residual")}
WEIGHTS = 0.0, 0.15, 0.3, 0.45, 0.6  # of the analytical prediction beside each of these
CONSTANTS = (0.0, 0.5, 1.0), (0.1, 0.3, 0.6), (0.3, 0.6), (0.15, 0.3)  # of `Confident`, in its order
REMADE = "the commands in lift_egraph/learned/models/README.md"


def table(title: str, rows: Rows, *notes: str) -> Table:
    """A table of rows that have the same keys."""
    return Table(title, list(rows[0]), [list(row.values()) for row in rows], notes)


def over_spaces(spaces: Sequence[Space], model: str) -> dict[str, str | int | float]:
    """The correlations of a model's predictions over all spaces: mean and least."""
    values, ranks = ([of(space, model) for space in spaces] for of in (Space.correlation, Space.rank_correlation))
    found: dict[str, str | int | float] = {"mean": float(np.mean(values)), "least": min(values)}
    return found | {"mean of ranks": float(np.mean(ranks)), "least of ranks": min(ranks)}


def spaces_of(held: Samples, fitted: Mapping[str, Fitted]) -> list[Space]:
    """The spaces of kernels, with what was learned predicts of them."""
    every = (held[held.spaces == name] for name in dict.fromkeys(held.spaces.tolist()))
    places = next(iter(fitted.values())).places_of
    return [
        Space(
            str(inside.spaces[0]),
            inside,
            {name: f.times(inside.features, inside.analytical) for name, f in fitted.items()},
            places(inside.features),
            {},
        )
        for inside in every
        if len(inside) >= LEAST_POINTS
    ]


def by_method(samples: Samples) -> Rows:
    """How well each method predicts, and the kernels until one has 90 % of the best throughput, by prediction alone."""
    spaces: list[Space] = []
    for held, fitted in left_out(samples, list(METHODS.values())):
        spaces += spaces_of(held, fitted)
    rows: Rows = []
    for name in METHODS:
        runs = [space.replay(name, Greedy()).runs(GOALS[0]) for space in spaces]
        row: dict[str, str | int | float] = {"method": name} | over_spaces(spaces, name)
        rows.append(
            row | {"median runs": float(np.median(runs)), "mean runs": float(np.mean(runs)), "worst": max(runs)}
        )
    return rows


Combined = dict[tuple[str, float], npt.NDArray[np.float64]]
"""Times, by what is learned, and by the weight of the analytical prediction."""


def combined(fitted: Mapping[str, Fitted], held: Samples) -> Combined:
    """What each combination of `LEARNED` and `WEIGHTS` predicts."""
    analytical = np.log(held.analytical)
    parts = {name: np.log(f.times(held.features, held.analytical)) for name, f in fitted.items()}
    learned = {name: np.mean([parts[part] for part in of], axis=0) for name, of in LEARNED.items()}
    return {(n, w): np.exp((1 - w) * t + w * analytical) for n, t in learned.items() for w in WEIGHTS}


def chosen_without(samples: Samples) -> Rows:
    """For each program, the combination that is best in the mean of all others, and how well that one predicts it.

    Where others are compared, neither they nor the program itself were learned from.
    """
    programs = np.array(samples.programs)
    names, methods = list(dict.fromkeys(samples.programs)), [METHODS["forest"], METHODS["residual"]]

    def found_of(left: Sequence[str]) -> dict[str, dict[tuple[str, float], float]]:
        fitted = {m.name: m.fit(samples[~np.isin(programs, left)]) for m in methods}
        held = {name: samples[programs == name] for name in left}
        return {
            name: {key: correlation(times, inside) for key, times in combined(fitted, inside).items()}
            for name, inside in held.items()
        }

    of_others: dict[str, list[dict[tuple[str, float], float]]] = {name: [] for name in names}
    for one, other in combinations(names, 2):
        found = found_of((one, other))
        of_others[one].append(found[other])
        of_others[other].append(found[one])
    rows: Rows = []
    for name, known in of_others.items():
        best = max(known[0], key=lambda key: np.mean([found[key] for found in known]))
        own = found_of((name,))[name][best]
        rows.append({"left out": name, "learned": best[0], "analytical weight": best[1], "correlation": own})
    values = [float(row["correlation"]) for row in rows]
    rows.append({"left out": "mean", "learned": "", "analytical weight": "", "correlation": float(np.mean(values))})
    rows.append({"left out": "least", "learned": "", "analytical weight": "", "correlation": min(values)})
    return rows


def confident_without(found: Evaluation, method: str) -> Rows:
    """For each program, the constants of `Confident` with the fewest kernels until 90 % in the mean of all others."""
    every = list(product(*CONSTANTS))
    runs = np.array([[s.replay(method, Confident(*of)).runs(GOALS[0]) for s in found.spaces] for of in every])
    rows: Rows = []
    programs = np.array([space.samples.programs[0] for space in found.spaces])
    for number, space in enumerate(found.spaces):
        best = int(np.argmin(runs[:, programs != programs[number]].mean(axis=1)))
        row: dict[str, str | int | float] = {"left out": space.name}
        row |= dict(zip(("boldness", "of family", "of place", "noise"), every[best], strict=True))
        rows.append(row | {"runs": int(runs[best, number])})
    values = [float(row["runs"]) for row in rows]
    for name, value in (("median", np.median(values)), ("mean", np.mean(values)), ("worst", max(values))):
        rows.append(dict.fromkeys(rows[0], "") | {"left out": name, "runs": float(value)})
    return rows


def correlation(times: npt.NDArray[np.float64], held: Samples) -> float:
    """Pearson's, of predicted and measured throughput, in the mean of a program's inputs."""
    spaces = [held.spaces == name for name in dict.fromkeys(held.spaces.tolist())]
    return float(np.mean([np.corrcoef(1 / times[s], 1 / held.seconds[s])[0, 1] for s in spaces if s.sum() > 1]))


def transfer(every: Sequence[Samples], method: str) -> Rows:
    """What models predict of a device's kernels that learned on it, and on each of the others."""
    spaces: dict[tuple[int, int], list[Space]] = {key: [] for key in product(range(len(every)), repeat=2)}
    names = dict.fromkeys(name for samples in every for name in samples.programs)
    for (at, source), name in product(enumerate(every), names):
        fitted = {method: method_of(method).fit(source[np.array(source.programs) != name])}
        for number, own in enumerate(every):
            if name in own.programs:
                spaces[number, at] += spaces_of(own[np.array(own.programs) == name], fitted)
    rows: Rows = []
    for (number, at), found in spaces.items():
        runs = [space.replay(method, Confident()).runs(GOALS[0]) for space in found]
        row: dict[str, str | int | float] = {"kernels of": _shown(every[number]), "learned from": _shown(every[at])}
        row |= over_spaces(found, method)
        row |= {"median runs": float(np.median(runs)), "mean runs": float(np.mean(runs)), "worst": max(runs)}
        rows.append(row)
    return rows


def _shown(samples: Samples) -> str:
    return f"{samples.device.platform}, {len(samples)} kernels"


def write_transfer(file: Path, method: str) -> None:
    """The table of all bundled models on all devices' kernels."""
    every = [read_samples([path]) for path in bundled().values()]
    made = table(
        "Learned models on another device",
        transfer(every, method),
        "each program was left out where models learned, too; runs: kernels until one has 90 % of the best, as "
        "predictions are corrected by what is measured",
        f"remade by: {REMADE}",
    )
    text = markdown([made], [samples.device for samples in every])
    write_texts(file.parent, {file.name: text})
    print(text)


def costs(samples: Samples) -> Rows:
    """Seconds to learn from all, and microseconds to predict one kernel of many."""
    batch = np.resize(samples.features, (BATCH, samples.features.shape[1])), np.resize(samples.analytical, BATCH)
    rows: Rows = []
    for name in METHODS:
        began = time.perf_counter()
        fitted = method_of(name).fit(samples)
        learned = time.perf_counter() - began
        times: list[float] = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            fitted.times(*batch)
            times.append(time.perf_counter() - began)
        rows.append({"method": name, "seconds to learn": learned, "µs a prediction": 1e6 * min(times) / BATCH})
    return rows


def main() -> None:
    parser = harness.options("learned_pocl", __doc__ or "", has_device=False)
    parser.add_argument("files", nargs="*", type=Path, help="journals, or a model (default: the bundled one of PoCL)")
    parser.add_argument("--method", default=DEFAULT, help="beside the published one (default: %(default)s)")
    parser.add_argument(
        "--transfer", action="store_true", help="only how well each bundled model predicts the others' kernels"
    )
    parser.add_argument("--note", action="append", default=[], help="a line to write below the first table")
    arguments = parser.parse_args()
    if arguments.transfer:
        write_transfer(arguments.out.with_name("transfer.md"), arguments.method)
        return
    samples = read_samples(arguments.files or [bundled()["pocl"]])
    found = evaluate(samples, arguments.method)
    worth = [{"feature": name, "redundancy": value} for name, value in list(redundancy(samples).items())[:15]]
    made = [
        table(
            f"Learned models on {samples.device.name}",
            [{"model": model} | over_spaces(found.spaces, model) for model in found.models],
            f"{len(samples)} kernels of {len(set(samples.programs))} programs; each program was left out in turn",
            "Pearson's correlation of predicted and measured throughput, and Spearman's of times; over programs and "
            "inputs",
            f"remade by: {REMADE}",
            *arguments.note,
        ),
        table("By program", accuracy(found)),
        table("Kernels until one has a part of the best throughput", effort(found), "random: the mean of 30 orders"),
        table(
            "Methods", by_method(samples), "runs: kernels until one has 90 % of the best, in the order of prediction"
        ),
        table(
            "Chosen without the program",
            chosen_without(samples),
            f"of {len(LEARNED) * len(WEIGHTS)} combinations of what is learned with the analytical prediction, the one "
            "with the best mean correlation on the other programs; each of these, and the program, left out",
        ),
        table(
            "Confidence chosen without the program",
            confident_without(found, arguments.method),
            "runs: kernels until one has 90 % of the best, by the model and strategy that optimize takes by default, "
            f"with those of {len(list(product(*CONSTANTS)))} choices of its constants that have the fewest in the mean "
            "of all other programs on this device",
        ),
        table("What they cost", costs(samples), f"predictions in batches of {BATCH}, on one core"),
        table("What features are worth", worth),
    ]
    write_texts(arguments.out.parent, {arguments.out.name: markdown(made, [samples.device])})
    print(markdown(made, [samples.device]))


if __name__ == "__main__":
    main()
