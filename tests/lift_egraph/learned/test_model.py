"""Models as files: what comes back is what was written, and nothing else is taken for a model."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from lift_egraph.cli.learned import performance_of
from lift_egraph.codegen.devices import POCL
from lift_egraph.errors import InputProblem, ModelProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.learned import model as models
from lift_egraph.learned.methods import LEAST, METHODS
from lift_egraph.learned.model import Head, Model, bundled, load_model, nearest, read_samples, records_in
from lift_egraph.learned.samples import chosen_of
from tests.codegen import low_level as low
from tests.codegen.devices.test_devices import INFO
from tests.lift_egraph.learned.tables import samples


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    Model(samples(), "published").save(path)
    return path


def test_a_model_comes_back(file: Path):
    written, read = Model(samples(), "published"), load_model(file)
    assert read.method == "published"
    for name in ("features", "analytical", "seconds"):
        assert (getattr(read.samples, name) == getattr(written.samples, name)).all()
    for name in ("programs", "inputs", "families", "device", "versions", "columns"):
        assert getattr(read.samples, name) == getattr(written.samples, name)
    others = samples(seed=1)
    given = others.features, others.analytical
    assert (read.fitted.times(*given) == written.fitted.times(*given)).all()
    assert len(read_samples([file])) == len(written.samples)


def array(data: bytes) -> bytes:
    """One array, as NumPy writes it."""
    held = io.BytesIO()
    np.save(held, np.ones(3))
    return held.getvalue()


def rewritten(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """Arrays of a file changed, and written again."""

    def changed(data: bytes) -> bytes:
        arrays = dict(np.load(io.BytesIO(data)))
        change(arrays)
        held = io.BytesIO()
        np.savez(held, **arrays)
        return held.getvalue()

    return changed


def head(old: bytes, new: bytes) -> Callable[[dict[str, Any]], None]:
    def change(arrays: dict[str, Any]) -> None:
        assert old in arrays["head"].tobytes()
        arrays["head"] = np.frombuffer(arrays["head"].tobytes().replace(old, new), np.uint8)

    return change


def faster(arrays: dict[str, Any]) -> None:
    arrays["seconds"][0] /= 2


def words(arrays: dict[str, Any]) -> None:
    arrays["seconds"] = arrays["seconds"].astype(str)


def unnamed(arrays: dict[str, Any]) -> None:
    arrays["programs"][0] = 99


def signed(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """Arrays of a file changed, and written with the hash that they have then."""

    def change_and_sign(arrays: dict[str, Any]) -> None:
        change(arrays)
        known = msgspec.json.decode(arrays.pop("head").tobytes(), type=Head)
        named = structs.replace(known, hash=models._hash(known, arrays))
        arrays["head"] = np.frombuffer(msgspec.json.encode(named), np.uint8)

    return rewritten(change_and_sign)


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda data: b"", "is no model"),
        (lambda data: b"{}", "is no model"),
        (lambda data: pickle.dumps({"seconds": 1}), "is no model"),
        (lambda data: data[: len(data) // 2], "is no model"),
        (array, "is no model"),
        (rewritten(lambda arrays: arrays.pop("seconds")), "is no model"),
        (rewritten(lambda arrays: arrays.update(seconds=np.array([print, None], object))), "is no model"),
        (rewritten(lambda arrays: arrays.update(head=np.frombuffer(b"[]", np.uint8))), "is no model: its head"),
        (rewritten(head(b'"format":1', b'"format":2')), "is a model of the format 2, this version reads 1"),
        (rewritten(head(b'"method"', b'"how"')), "is no model: its head does not follow the schema"),
        (rewritten(head(b'"published"', b'"forest"')), "was changed after it was written"),
        (rewritten(faster), "was changed after it was written"),
        (signed(words), "is no model: its arrays are not what its head says"),
        (signed(unnamed), "is no model: its arrays are not what its head says"),
    ],
)
def test_what_is_no_model_or_was_changed_is_refused(file: Path, spoilt: Callable[[bytes], bytes], message: str):
    file.write_bytes(spoilt(file.read_bytes()))
    with pytest.raises(InputProblem, match=message) as refused:
        load_model(file)
    assert "allow_pickle" not in str(refused.value)  # NumPy says how to run what is in it


def test_whichever_byte_is_damaged_it_is_told(file: Path):
    """A flag in it may ask for encryption, or another compression: Python has other words for each."""
    data, draw, refused = file.read_bytes(), random.Random(0), 0
    marks = [at for at in range(len(data)) if data.startswith(b"PK", at)]
    places = [mark + offset for mark in marks for offset in range(30)] + draw.sample(range(len(data)), 200)
    for place in places:
        spoilt = bytearray(data)
        spoilt[place % len(data)] ^= 1 << draw.randrange(8)
        file.write_bytes(spoilt)
        try:
            load_model(file)  # what is damaged may say only when it was written
        except InputProblem:
            refused += 1
    assert refused > len(places) / 2


def test_what_is_left_of_a_model_is_no_journal(file: Path):
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(InputProblem, match=r"model.npz is no model, or damaged"):
        read_samples([file])


def test_files_that_are_not_there(tmp_path: Path, file: Path):
    with pytest.raises(InputProblem, match="cannot read"):
        load_model(tmp_path / "none.npz")
    with pytest.raises(InputProblem, match="there is no such file"):
        read_samples([tmp_path / "none.jsonl"])
    (tmp_path / "damaged.jsonl").write_text("lift-record 00000000 {}\n")
    with pytest.raises(ModelProblem, match=r"no record that can be read: .*1 damaged or unknown line left out"):
        read_samples([tmp_path / "damaged.jsonl"])
    with pytest.raises(ModelProblem, match="is a model, which stands alone"):
        read_samples([file, file])


def test_models_of_other_features_methods_or_devices_are_refused():
    table = samples()
    other = replace(table, columns=(*table.columns[:-1], "colour"))
    with pytest.raises(ModelProblem, match="colour"):
        Model(other, "forest")
    with pytest.raises(ModelProblem, match="there is no method 'oracle'"):
        Model(table, "oracle")
    with pytest.raises(ModelProblem, match=r"was trained on .*, not on Elsewhere / "):
        Model(table, "forest").require_device(replace(INFO, platform="Elsewhere"))
    Model(table, "forest").require_device(replace(table.device, driver_version="another"))


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_learned_from_is_refused(method: str):
    few = samples(1, LEAST - 1)
    with pytest.raises(ModelProblem, match=f"needs {LEAST} right kernels at least, there are {LEAST - 1}"):
        METHODS[method].fit(few)
    table = samples()
    alike = replace(table, features=np.ones_like(table.features))
    with pytest.raises(ModelProblem, match="features are the same for all 75 kernels"):
        METHODS[method].fit(alike)


def test_a_model_predicts_milliseconds_beside_the_first_plan_of_a_program():
    model = Model(samples(), "forest")
    naive, other = low.plan_of(low.scal(64, 4), N=256), low.plan_of(low.j2d5pt(4, 4), M=16, N=16)
    assert model(naive, POCL) == pytest.approx(float(predict(naive, POCL)))
    assert model(naive, POCL) == model(naive, POCL)
    assert model(other, POCL) == pytest.approx(float(predict(other, POCL)))


def test_there_is_a_bundled_model_for_each_cpu():
    assert bundled()
    assert nearest(replace(INFO, kind="cpu")).samples.device.kind == "cpu"
    with pytest.raises(ModelProblem, match="no learned model for a device of the kind other"):
        nearest(replace(INFO, kind="other"))


def test_journals_come_with_models():
    """Each bundled journal has the kernels that the model beside it was learned from."""
    found = {path: path.with_name(path.stem + ".jsonl.xz") for path in bundled().values()}
    journals = {path: journal for path, journal in found.items() if journal.exists()}
    assert journals
    for path, journal in journals.items():
        records, notes = records_in([journal])
        chosen, model = chosen_of(records), load_model(path)
        assert not notes
        assert not chosen.notes
        assert {*model.samples.seconds} <= {min(r.samples) for r in chosen.records}
        assert 0.9 * len(chosen.records) < len(model.samples) <= len(chosen.records)
        assert (chosen.last.device, chosen.last.versions) == (model.samples.device, model.samples.versions)
    assert sum(f.stat().st_size for f in (*found, *journals.values())) < 5 << 20


def test_of_the_bundled_models_the_nearest_alone_is_read(monkeypatch: pytest.MonkeyPatch):
    read = list[Path]()
    monkeypatch.setattr(models, "load_model", lambda path: read.append(path) or load_model(path))
    for kind in ("cpu", "gpu"):
        assert nearest(replace(INFO, kind=kind)).samples.device.kind == kind
    assert len(read) == 2


def test_a_model_from_the_command_line_is_learned_before_the_clock_runs(file: Path, monkeypatch: pytest.MonkeyPatch):
    own = load_model(file).samples.device
    monkeypatch.setattr("lift_egraph.codegen.running.run.find_device", lambda device, description: own)
    assert "fitted" in vars(performance_of(str(file), None, None))
