"""Files that are written whole or not at all, always as UTF-8, and read by their schema."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from lift_egraph.errors import InputProblem, OutputProblem

T = TypeVar("T")

LEAST_ROOM = 1 << 20  # bytes for temporary files, with less of which a failure is no kernel's


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to: it takes the place of `path` once it is complete. What is no regular file is written into.

    Raises
    ------
    OutputProblem
        If it cannot be written.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.part")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        try:
            with beside.open("wb") as file:
                yield file
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        raise OutputProblem(f"cannot write to {path}: {problem.strerror or problem}") from None


def require_writable_file(path: Path) -> None:
    """Check that `replacing` can write a file, before any long work.

    Raises
    ------
    OutputProblem
        If not.
    """
    if path.is_dir():
        raise OutputProblem(f"cannot write to {path}: it is a directory")
    if not path.absolute().parent.is_dir():
        raise OutputProblem(f"cannot write to {path}: there is no directory {path.parent}")
    if path.exists() and not path.is_file():
        return
    target = path.resolve()
    probe = target.with_name(f".{target.name}.part")
    try:
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise OutputProblem(f"cannot write to {path}: {problem.strerror or problem}") from None


def write_texts(directory: Path, texts: Mapping[str, str], stale: Collection[str] = ()) -> None:
    """Write files into a directory, in the order given: all beside their places first, then into them.

    Parameters
    ----------
    stale
        Files that are wrong beside any of the new ones: they go before the first takes its place.

    Raises
    ------
    OutputProblem
        If the directory cannot be made or written to. Where there is no room, what stood there still does.
    """
    parts = {directory / f".{name}.part": directory / name for name in texts}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        try:
            for part, text in zip(parts, texts.values(), strict=True):
                part.write_text(text, encoding="utf-8")
            for name in stale:
                (directory / name).unlink(missing_ok=True)
            for part, path in parts.items():
                part.replace(path)
        finally:
            for part in parts:
                part.unlink(missing_ok=True)
    except OSError as problem:
        raise OutputProblem(f"cannot write to {directory}: {problem.strerror or problem}") from None


def require_room() -> None:
    """Check that there is room for temporary files: where there is none, compilers fail in any way.

    Raises
    ------
    OutputProblem
        If the folder for them is full.
    """
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < LEAST_ROOM:
        raise OutputProblem(f"{folder} is full, so kernels cannot be built: make room, or let TMPDIR name another")


# --- reading ----------------------------------------------------------------------------------------------


class _Versioned(msgspec.Struct):
    format: int


def read_text(path: Path) -> str:
    """The text in a file, without the mark of bytes that some editors put first.

    Raises
    ------
    InputProblem
        If it cannot be read, or is no text in UTF-8: then with the line, and the column in characters.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        *lines, last = problem.object[: problem.start].decode("utf-8").split("\n")
        place, byte = f"{path}:{len(lines) + 1}:{len(last) + 1}", problem.object[problem.start]
        raise InputProblem(f"{place}: this is no text in UTF-8: 0x{byte:02x}, {problem.reason}") from None


def read_json(path: Path, schema: type[T], version: int) -> T:
    """What a JSON file of ours holds.

    Raises
    ------
    InputProblem
        If it cannot be read, has another version of the format, or does not follow the schema.
    """
    text = read_text(path)
    try:
        found = msgspec.json.decode(text, type=_Versioned).format
        if found != version:
            raise InputProblem(f"{path} has the format {found}, expected {version}: write it again")
        return msgspec.json.decode(text, type=schema)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise InputProblem(f"{path} does not follow its schema: {problem}") from None


def json_text(content: Any) -> str:
    """The text of a JSON file."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
