"""From records to tables of features and times: what is left out, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import describe, load_device
from lift_egraph.errors import ModelProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.features import NAMES, features
from lift_egraph.language.syntax import parse_program
from lift_egraph.learned import samples as table
from lift_egraph.learned.model import read_samples
from lift_egraph.learned.samples import row_of, samples_of
from lift_egraph.records import lines
from tests.in_process import Here
from tests.lift_egraph.learned.tables import samples
from tests.lift_egraph.records.examples import DEVICE, RECORD, candidate, record

GPU = replace(DEVICE, platform="Some GPUs", name="GPU 1")


def test_a_record_becomes_a_row():
    made, device = candidate(), describe(DEVICE)
    found = samples_of([RECORD])
    assert (found.programs, found.inputs, found.families) == (("scale",), ("N = 64",), ("",))
    assert found.seconds.tolist() == [min(RECORD.samples)]
    assert found.features.tolist() == [[features(made.plan, device)[name] for name in NAMES]]
    assert found.analytical.tolist() == [pytest.approx(1e-3 * float(predict(made.plan, device)))]


def test_what_is_not_right_of_another_version_or_not_compiled_is_left_out_and_told():
    old = record(versions={**RECORD.versions, "lift-egraph": "0"}, point="1" * 64)
    wrong = record(validity="wrong", median=None, samples=[], point="2" * 64)
    odd = record(term="program scale(x: [f32]64) = map(fun v => v * 2.0, x)", point="3" * 64)
    slower = record(samples=[2.0, 3.0])
    found = samples_of([old, wrong, odd, slower, RECORD])
    assert len(found) == 1
    assert found.seconds.tolist() == [min(RECORD.samples)]
    assert [int(note.split()[0]) for note in found.notes] == [1, 2, 1]


def test_kernels_that_several_terms_lead_to_count_once_with_their_least_time():
    slower = record(point="1" * 64, term=RECORD.term.replace("map", "\n map"), samples=[2.0, 3.0])
    for records in ([slower, RECORD], [RECORD, slower]):
        found = samples_of(records)
        assert found.seconds.tolist() == [min(RECORD.samples)]
        assert found.notes == ("1 record left out: of kernels that another term leads to, too",)


@pytest.mark.parametrize(
    ("records", "device", "message"),
    [
        ([], None, "there is no record"),
        ([RECORD], "abacus", "no record is of a device 'abacus'"),
        ([RECORD, record(device=GPU)], None, "of several devices, choose one"),
        ([record(validity="wrong", median=None, samples=[])], None, "none of 1 records is of a right kernel"),
        ([record(samples=[0.0])], None, "none of 1 records"),
    ],
)
def test_records_that_make_no_table(records, device, message):
    with pytest.raises(ModelProblem, match=message):
        samples_of(records, device)


def test_one_of_several_devices_is_chosen_by_its_name():
    faster = msgspec.structs.replace(RECORD, samples=[1e-9])
    assert samples_of([faster, record(device=GPU)], "gpu 1").seconds[0] > 1e-9


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seconds", np.nan, "the measured time of the kernel 4 (of p0) is nan s"),
        ("seconds", 0.0, "must be a number from 1e-12 to 1e+15"),
        ("seconds", 5e-324, "the measured time of the kernel 4 (of p0) is 5e-324 s"),
        ("seconds", 1e300, "the measured time of the kernel 4 (of p0) is 1e+300 s"),
        ("analytical", np.inf, "the analytical prediction of the kernel 4"),
        ("features", np.nan, f"the feature {NAMES[0]} of the kernel 4 (of p0) is nan"),
    ],
)
def test_times_and_features_are_numbers(name, value, message):
    table = samples()
    changed = getattr(table, name).copy()
    changed[4] = value
    with pytest.raises(ModelProblem, match=re.escape(message)):
        replace(table, **{name: changed})


def test_tables_whose_parts_do_not_fit():
    table = samples()
    with pytest.raises(ModelProblem, match="the seconds of 75 kernels have the shape"):
        replace(table, seconds=table.seconds[1:])
    with pytest.raises(ModelProblem, match="75 kernels, 74 inputs and 75 families"):
        replace(table, inputs=table.inputs[1:])


def test_throughput_is_beside_the_best_of_a_program_and_input():
    table = samples()
    assert {space: table.throughput[table.spaces == space].max() for space in set(table.spaces)} == dict.fromkeys(
        ("p0, N = 64", "p1, N = 64", "p2, N = 64"), 1.0
    )
    assert 0 < table.throughput.min() < 0.1


@pytest.mark.parametrize("time", ["NaN", "1e999", "-1.0", '"fast"'])
def test_a_time_that_is_no_number_does_not_come_out_of_a_journal(time: str, tmp_path: Path):
    """Its record is left out, and told, though its line has the right checksum."""
    written = msgspec.json.encode(record(samples=[0.125])).replace(
        b'"samples":[0.125]', b'"samples":[%s]' % time.encode()
    )
    lines.append(tmp_path / "points.jsonl", [written, msgspec.json.encode(RECORD)])
    found = read_samples([tmp_path / "points.jsonl"])
    assert found.seconds.tolist() == [min(RECORD.samples)]
    assert [note.partition(": ")[2] for note in found.notes] == ["1 damaged or unknown line left out (1)"]


def test_shares_of_programs_make_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    other = msgspec.structs.replace(RECORD.program, hash="4" * 64)
    same = record(point="1" * 64, term=RECORD.term.replace("map", "\n map"), samples=[2.0, 3.0])
    odd = record(term="program scale(x: [f32]64) = map(fun v => v * 2.0, x)", point="3" * 64)
    records = [odd, record(program=other, point="2" * 64), RECORD, same]
    alone = samples_of(records)
    monkeypatch.setattr(table, "FEW", 1)
    monkeypatch.setattr(table, "JOBS", 2)
    monkeypatch.setattr(table, "Stream", Here)
    beside = samples_of(records)
    assert len(beside) == 2
    assert beside.notes == alone.notes
    assert beside.features.tolist() == alone.features.tolist()
    assert (beside.seconds.tolist(), beside.analytical.tolist()) == (alone.seconds.tolist(), alone.analytical.tolist())


def test_a_description_of_ones_own_says_what_is_predicted_of_a_term(tmp_path: Path):
    """As in `optimize` with it, to which the features must be what they were."""
    (tmp_path / "slow.toml").write_text('like = "pocl"\nlaunch_overhead = 9000.0\n')
    (tmp_path / "other.toml").write_text('like = "nvidia"\nnamed = "RTX"\n')
    own, other = (load_device(tmp_path / name) for name in ("slow.toml", "other.toml"))
    usual, found = samples_of([RECORD]), samples_of([RECORD], description=own)
    plan = compile_program(parse_program(RECORD.term), own.on(DEVICE))
    assert found.features.tolist() == [row_of(plan, own.on(DEVICE)).tolist()]
    assert usual.analytical[0] < 1e-3 < found.analytical[0]
    assert len(samples_of([RECORD, record(device=GPU)], description=own)) == 1  # the one that it fits
    with pytest.raises(ModelProblem, match=r"no record is of a device the description other \(.*RTX"):
        samples_of([RECORD], description=other)
