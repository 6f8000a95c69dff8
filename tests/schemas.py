"""The JSON Schemas of our files, as they are published; ``python -m tests.schemas`` writes them."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from lift_egraph.codegen.plans.launch_file import LaunchFile
from lift_egraph.files import json_text
from lift_egraph.records.record import Record
from lift_egraph.workbench.way_file import DerivationFile

SCHEMAS = {
    Path("codegen/launch.schema.json"): LaunchFile,
    Path("lift_egraph/workbench/derivation.schema.json"): DerivationFile,
    Path("lift_egraph/records/record.schema.json"): Record,
}


def schema_text(schema: type) -> str:
    found = _dedented(msgspec.json.schema(schema))
    return json_text({"$schema": "https://json-schema.org/draft/2020-12/schema", **found})


def _dedented(value: Any) -> Any:
    """The same with docstrings as Python has them from 3.13 on."""
    if isinstance(value, dict):
        return {
            key: cleandoc(part) if key == "description" and isinstance(part, str) else _dedented(part)
            for key, part in value.items()
        }
    return [*map(_dedented, value)] if isinstance(value, list) else value


if __name__ == "__main__":
    for path, schema in SCHEMAS.items():
        path.write_text(schema_text(schema), encoding="utf-8")
