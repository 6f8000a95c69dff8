"""The lines of a journal: a tag, a checksum, the payload; appended under a lock, each whole or recognised as torn.

A line is ``lift-record 1c291ca3 {…}``: the CRC-32 of the payload as eight hexadecimal digits, and the payload, which
has no line break. A CRC-32 finds every flipped byte; it is no protection against somebody who means harm.

A journal that was compressed by xz is read as what it was made from; nothing is appended to it.

What is appended is written and synchronised to the disk (``fsync``) before the call returns, so neither a killed
process nor a power cut takes it back. This module needs the standard library alone: bundles take it along.
"""

from __future__ import annotations

import errno
import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TAG = b"lift-record "
DIGITS = 8
XZ = b"\xfd7zXZ\x00"  # how a compressed file begins
MOST = 1 << 30  # bytes of a journal that was compressed: a small file could else fill the memory


def line_of(payload: bytes) -> bytes:
    r"""A payload as a line.

    >>> line_of(b"{}")
    b'lift-record a3a6bf43 {}\n'
    """
    return b"%s%08x %s\n" % (TAG, zlib.crc32(payload), payload)


def payload_of(line: bytes) -> bytes | None:
    """The payload of a line without its break; None if it is not whole.

    >>> payload_of(b"lift-record a3a6bf43 {}"), payload_of(b"lift-record a3a6bf43 {"), payload_of(b"")
    (b'{}', None, None)
    """
    start = len(TAG) + DIGITS
    payload = line[start + 1 :]
    whole = line.startswith(TAG) and line[start : start + 1] == b" "
    return payload if whole and line[len(TAG) : start] == b"%08x" % zlib.crc32(payload) else None


def payloads(data: bytes) -> Iterator[bytes | None]:
    """The payload of each line of a journal, None for a damaged one. The last line may lack its break."""
    for line in (data[:-1] if data.endswith(b"\n") else data).split(b"\n") if data else ():
        yield payload_of(line)


def is_foreign(data: bytes) -> bool:
    """Whether a file is no journal at all, not even a damaged one: it begins otherwise, and has no line of ours.

    >>> is_foreign(b"# Notes"), is_foreign(b"lift-re"), is_foreign(b"")
    (True, False, False)
    """
    begun = data[: len(TAG)] == TAG[: len(data)]
    return not begun and not any(payload is not None for payload in payloads(data))


def read(path: Path) -> bytes:
    """What a journal holds while nobody appends to it.

    Raises
    ------
    OSError
        If it cannot be read, or is a device or a pipe, which may have no end; or is compressed, and damaged.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, os.strerror(errno.EISDIR) if path.is_dir() else "Not a regular file")
    with path.open("rb") as file:
        with suppress(OSError):  # a file system without locks: a line that is just written then looks torn
            fcntl.flock(file, fcntl.LOCK_SH)
        data = file.read()
    return expanded(data) if data.startswith(XZ) else data


def expanded(data: bytes) -> bytes:
    """What was compressed by xz.

    Raises
    ------
    OSError
        If it is damaged, or has more than `MOST` bytes.
    """
    import lzma

    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        found = decompressor.decompress(data, MOST)
    except lzma.LZMAError as problem:
        raise OSError(errno.EINVAL, f"what is compressed in it is damaged ({problem})") from None
    if not decompressor.eof:
        is_large = len(found) >= MOST
        why = f"there are more than {MOST >> 30} GiB in it" if is_large else "it is compressed, and ends too early"
        raise OSError(errno.EINVAL, why)
    return found


def append(path: Path, items: Iterable[bytes]) -> None:
    """Append payloads to a journal, which is made if it is not there. A torn line at its end is closed, and stays.

    Raises
    ------
    OSError
        If they cannot be written, or the journal is compressed: then none of them is there.
    """
    data = b"".join(map(line_of, items))
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = os.fstat(file).st_size
        if os.pread(file, len(XZ), 0) == XZ:
            raise OSError(errno.EINVAL, "it is compressed, and only read")
        if data and end and os.pread(file, 1, end - 1) != b"\n":
            data = b"\n" + data
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
            if not end:
                _keep_name(path)
        except BaseException:  # also Ctrl-C: nothing is left half written
            with suppress(OSError):
                os.ftruncate(file, end)
            raise
    finally:
        os.close(file)


def _keep_name(path: Path) -> None:
    """Let the name of a new file be on the disk too."""
    with suppress(OSError):  # some file systems refuse it
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
