"""Records for tests: none of them was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import strategies as st

from lift_egraph.codegen.devices import POCL
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.records.record import Record
from lift_egraph.workbench.candidates import Candidate, make_candidate
from lift_egraph.workbench.phases import naive_leg
from lift_egraph.workbench.recording import Recording
from tests.codegen.devices.test_devices import INFO

DEVICE = replace(INFO, kind="cpu")
SOURCE = parse_program("program scale(x: [f32]N) where N = 64 = map(fun v => v * 2.0, x)")
PROGRAM = specialise(SOURCE)


def candidate(**fields: Any) -> Candidate:
    """The naive kernel of a program, as if it had been measured."""
    term = naive_term(PROGRAM)
    made = make_candidate(term, 0.0, DEVICE, POCL, (naive_leg(term.body, "cpu"),))
    facts = {"valid": True, "message": "all equal", "measured_ms": 2.0, "times_ms": (1.0, 2.0, 3.0), "limit": 5.0}
    for name, value in {**facts, **fields}.items():
        setattr(made, name, value)
    return made


def record(**fields: Any) -> Record:
    """A record of that kernel with some fields changed."""
    return msgspec.structs.replace(Recording(None, PROGRAM, DEVICE, POCL).record_of(candidate()), **fields)


RECORD = record()
records = st.builds(
    record,
    term=st.text(),
    reason=st.text(),
    host=st.text(max_size=5),
    validity=st.sampled_from(["valid", "wrong", "crashed"]),
    samples=st.lists(st.floats(0, 10), max_size=3),
    median=st.none() | st.floats(0, 10),
)
