"""Models as files: the samples that a model was learned from, and how. Whoever reads one learns it again.

That takes a second, needs no pickle, and works with every version of scikit-learn. A file is an ``.npz`` of plain
arrays with a head in JSON; it is known by the SHA-256 of both, so what was changed is refused. Nothing in it is run.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from lift_egraph.caching import cached_property, kept_with
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import InputProblem, ModelProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.features import NAMES
from lift_egraph.files import replacing
from lift_egraph.learned.samples import Floats, Samples, Told, row_of, samples_of
from lift_egraph.records.journal import Journal
from lift_egraph.records.known import same_device
from lift_egraph.records.record import Record

if TYPE_CHECKING:
    from lift_egraph.learned.methods import Fitted

FORMAT = 1
HEAD = "head"
ARCHIVE = b"PK\x03\x04"  # how an ``.npz`` begins
ARRAYS = ("features", "analytical", "seconds")
TEXTS = ("programs", "inputs", "families")
DAMAGES = ValueError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error
"""What reading an archive raises that is none: a single byte may ask for encryption or another compression."""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file says beside its arrays; each kernel has a number into each list of texts."""

    format: Literal[1]
    method: str
    device: DeviceInfo
    versions: dict[str, str]
    columns: tuple[str, ...]
    texts: dict[str, list[str]]
    hash: str


@kept_with
def _rows(plan: Plan) -> dict[Device, Floats]:
    return {}


def _row(plan: Plan, device: Device) -> Floats:
    """The features of a plan, computed once for what is expected of it and for where it stands."""
    known = _rows(plan)
    if device not in known:
        known[device] = row_of(plan, device)
    return known[device]


@dataclass(frozen=True)
class Model:
    """A performance model that was learned from records: `lift_egraph.extract.models.PerformanceModel`.

    It predicts how long a kernel takes beside others of its program. That becomes milliseconds by the analytical
    prediction for the first plan of a program that it is asked for: in `optimize` that is the naive one.

    Parameters
    ----------
    method
        The name of the way that it was learned: one of `lift_egraph.learned.methods.METHODS`.

    Raises
    ------
    ModelProblem
        If there is no such method, or the samples have other features than this version takes.
    """

    samples: Samples
    method: str
    _unit_ms: dict[Hashable, float] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        from lift_egraph.learned.methods import method_of

        method_of(self.method)
        if self.samples.columns != NAMES:
            other = sorted({*self.samples.columns} ^ {*NAMES})
            raise ModelProblem(
                f"it has other features than this version takes ({', '.join(other) or 'in another order'}): "
                "train it again"
            )

    @cached_property
    def fitted(self) -> Fitted:
        """What was learned."""
        from lift_egraph.learned.methods import method_of

        return method_of(self.method).fit(self.samples)

    def __call__(self, plan: Plan, device: Device) -> float:
        """The milliseconds of a plan, launches included."""
        analytical = float(predict(plan, device))
        times = float(self.fitted.times(_row(plan, device)[None], np.array([analytical]))[0])
        of_program = plan.name, plan.inputs, plan.outputs, plan.scalars
        return times * self._unit_ms.setdefault(of_program, analytical / times)

    def place(self, plan: Plan, device: Device) -> tuple[float, ...]:
        """Where a plan stands among others, for `lift_egraph.learned.strategies.Point`."""
        return self.fitted.places_of(_row(plan, device)[None])[0]

    def require_device(self, device: DeviceInfo) -> None:
        """Check that it was learned on a device of this make.

        Raises
        ------
        ModelProblem
            If not.
        """
        own = self.samples.device
        if not same_device(own, device):
            raise ModelProblem(
                f"the model was trained on {own.platform} / {own.name}, not on {device.platform} / {device.name}: "
                "`lift-egraph collect` and `train` make one for this device"
            )

    def save(self, path: Path) -> None:
        """Write the model to a file.

        Raises
        ------
        OutputProblem
            If it cannot be written.
        """
        s = self.samples
        texts = {name: np.unique(np.array(getattr(s, name)), return_inverse=True) for name in TEXTS}
        arrays: dict[str, np.ndarray] = {name: getattr(s, name) for name in ARRAYS}
        arrays |= {name: numbers.astype(np.uint16) for name, (_, numbers) in texts.items()}
        known = {name: [str(text) for text in found] for name, (found, _) in texts.items()}
        head = Head(FORMAT, self.method, s.device, s.versions, s.columns, known, "")
        head = msgspec.structs.replace(head, hash=_hash(head, arrays))
        held = io.BytesIO()
        arrays[HEAD] = np.frombuffer(msgspec.json.encode(head), np.uint8)
        np.savez_compressed(held, **arrays)  # pyright: ignore[reportArgumentType]
        with replacing(path) as file:
            file.write(held.getvalue())


def load_model(path: Path) -> Model:
    """The model in a file.

    Raises
    ------
    InputProblem
        If it cannot be read, is no model, has another format, or was changed.
    ModelProblem
        If it has other features than this version takes, or samples that are none.
    """
    wanted = {HEAD, *ARRAYS, *TEXTS}
    try:
        if path.exists() and not is_model(path):  # NumPy also loads other kinds of files
            raise InputProblem(f"{path} is no model: `lift-egraph train` writes one")
        with io.BytesIO(path.read_bytes()) as data, np.load(data, allow_pickle=False) as file:
            if {*file.files} != wanted:
                raise InputProblem(f"{path} is no model: `lift-egraph train` writes one")
            arrays: dict[str, Any] = {name: file[name] for name in file.files}
        head = _head_of(path, arrays.pop(HEAD))
    except OSError as problem:
        raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None
    except DAMAGES:  # what NumPy says of it is how to load it unsafely
        raise InputProblem(f"{path} is no model, or damaged: `lift-egraph train` writes one") from None
    if _hash(head, arrays) != head.hash:
        raise InputProblem(f"{path} was changed after it was written: its content does not have the hash that it names")
    try:
        texts: dict[str, Any] = {name: tuple(head.texts[name][number] for number in arrays.pop(name)) for name in TEXTS}
        arrays = {name: array.astype(np.float64, casting="safe") for name, array in arrays.items()}
    except (LookupError, TypeError) as problem:  # NumPy's and Python's words for what is not there, or is no number
        raise InputProblem(f"{path} is no model: its arrays are not what its head says ({problem})") from None
    return Model(Samples(head.device, head.versions, head.columns, (), **texts, **arrays), head.method)


def bundled() -> dict[str, Path]:
    """The models that come with the package, by the name of the description of their device."""
    found = Path(__file__).with_name("models").glob("*.npz")
    return {path.stem: path for path in sorted(found)}


def nearest(device: DeviceInfo) -> Model:
    """The bundled model of a device of this make, else of one with the same description, else of the same kind.

    What differs is corrected as kernels are measured (`lift_egraph.learned.strategies`).

    Raises
    ------
    ModelProblem
        If there is none of the kind.
    """
    devices = {path: _device_in(path) for path in bundled().values()}
    alike = [path for path, own in devices.items() if own.kind == device.kind]
    if not alike:
        kinds = ", ".join(sorted({own.kind for own in devices.values()})) or "none"
        raise ModelProblem(
            f"there is no learned model for a device of the kind {device.kind} (there are for {kinds}): "
            "`lift-egraph collect` and `train` make one"
        )

    def likeness(path: Path) -> tuple[bool, bool]:
        own = devices[path]
        return same_device(own, device), describe(own).name == describe(device).name

    return load_model(max(alike, key=likeness))


def _device_in(path: Path) -> DeviceInfo:
    """The device of a model, without its samples."""
    with np.load(path, allow_pickle=False) as file:
        return _head_of(path, file[HEAD]).device


def read_samples(
    files: Sequence[Path],
    device: str | None = None,
    description: Device | None = None,
    told: Told | None = None,
) -> Samples:
    """The samples in journals, or in one model, which has them as they were described when it was trained.

    Parameters
    ----------
    device, description, told
        As for `lift_egraph.learned.samples.samples_of`.

    Raises
    ------
    InputProblem
        If a file cannot be read, or is neither.
    ModelProblem
        As `samples_of` raises it; or if there is a model beside other files.
    """
    models = [path for path in files if is_model(path)]
    if models and len(files) > 1:
        raise ModelProblem(f"{models[0]} is a model, which stands alone: give journals, or one model")
    if models:
        return load_model(models[0]).samples
    records, notes = records_in(files)
    if notes and not records:
        raise ModelProblem(f"there is no record that can be read: {'; '.join(notes)}")
    found = samples_of(records, device, description, told)
    return replace(found, notes=(*notes, *found.notes))


def is_model(path: Path) -> bool:
    """Whether a file looks like a model, also a damaged one, and not like a journal.

    Raises
    ------
    InputProblem
        If it cannot be read.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(ARCHIVE)) == ARCHIVE
    except OSError as problem:
        raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None


def records_in(files: Sequence[Path]) -> tuple[list[Record], tuple[str, ...]]:
    """The records in journals, compressed ones too, in their order; and what was left out, in words.

    Raises
    ------
    InputProblem
        If a file is not there, cannot be read, or is no journal.
    ModelProblem
        If one is a model.
    """
    records, notes = list[Record](), list[str]()
    for path in files:
        if not path.exists():
            raise InputProblem(f"cannot read {path}: there is no such file")
        if is_model(path):
            raise ModelProblem(f"{path} is a model, which has no records: give journals")
        contents = Journal(path).read()
        records += contents.records
        notes += [f"{path}: {note}" for note in contents.notes]
    return records, tuple(notes)


def _head_of(path: Path, data: np.ndarray) -> Head:
    try:
        version = msgspec.json.decode(data.tobytes()).get("format")
        if version != FORMAT:
            raise InputProblem(
                f"{path} is a model of the format {version}, this version reads {FORMAT}: train it again"
            )
        return msgspec.json.decode(data.tobytes(), type=Head)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, AttributeError) as problem:
        raise InputProblem(f"{path} is no model: its head does not follow the schema ({problem})") from None


def _hash(head: Head, arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of all but the hash."""
    found = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(head, hash=""), order="sorted"))
    for name in (*ARRAYS, *TEXTS):
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
