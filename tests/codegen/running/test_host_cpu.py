"""PoCL's record of a device whose CPU its LLVM does not know, made up in memory: the host may be a known one."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lift_egraph.codegen.running import host_cpu
from lift_egraph.codegen.running.host_cpu import largest_cache, most_lanes, name_host_cpu, pinned

WIDE = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx2", "fma", "bmi1", "bmi2", "f16c"}


class Record:
    """Pointers to texts, with what is no pointer between them."""

    def __init__(self, *texts: bytes, platform: str = "Portable Computing Language") -> None:
        self._texts = [ctypes.create_string_buffer(text) for text in texts]
        words = [7, *map(ctypes.addressof, self._texts), 2**64 - 1, 0]
        self._memory = (ctypes.c_uint64 * 256)(*words)
        self.device: Any = SimpleNamespace(
            platform=SimpleNamespace(name=platform), int_ptr=ctypes.addressof(self._memory)
        )

    def text(self, place: int) -> bytes:
        return ctypes.string_at(self._memory[place + 1])


@pytest.mark.parametrize(
    ("flags", "cpu"), [(WIDE, "skylake-avx512"), (WIDE - {"avx512vl"}, "haswell"), ({"sse2"}, None)]
)
def test_an_unknown_cpu_gets_the_name_of_pocls_library(
    monkeypatch: pytest.MonkeyPatch, flags: set[str], cpu: str | None
) -> None:
    monkeypatch.setattr(host_cpu, "_cpu_flags", lambda: flags)
    record = Record(b"pthread", b"x86_64-unknown-linux-gnu", b"generic", b"generic")
    assert name_host_cpu(record.device) == cpu
    named = (cpu or "generic").encode()
    assert [record.text(i) for i in range(4)] == [b"pthread", b"x86_64-unknown-linux-gnu", named, b"generic"]


@pytest.mark.parametrize(
    "record",
    [
        Record(b"x86_64-unknown-linux-gnu", b"znver3"),
        Record(b"pthread", b"generic"),
        Record(b"aarch64-unknown-linux-gnu", b"generic"),
        Record(b"x86_64-unknown-linux-gnu", b"generic", platform="Intel(R) OpenCL"),
    ],
    ids=["a known CPU", "no triple before it", "another architecture", "another implementation"],
)
def test_everything_else_is_left_alone(monkeypatch: pytest.MonkeyPatch, record: Record) -> None:
    monkeypatch.setattr(host_cpu, "_cpu_flags", lambda: WIDE)
    before = record.text(1)
    assert name_host_cpu(record.device) is None
    assert record.text(1) == before


def test_without_a_view_of_its_own_memory_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> tuple[int | None, bytes]:
        raise OSError("no /proc")

    monkeypatch.setattr(host_cpu, "_named", missing)
    assert name_host_cpu(Record(b"x86_64-", b"generic").device) is None


def test_this_hosts_flags_are_read() -> None:
    assert "sse2" in host_cpu._cpu_flags()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("cpu", "lanes"), [(b"znver3", 8), (b"skylake-avx512", 16), (b"cascadelake", 16)])
def test_vectors_are_those_of_the_cpu_that_code_is_made_for(cpu: bytes, lanes: int) -> None:
    record = Record(b"pthread", b"x86_64-unknown-linux-gnu", cpu)
    assert most_lanes(record.device, 16) == lanes
    assert most_lanes(record.device, 4) == 4


def test_another_implementation_knows_its_own_vectors() -> None:
    record = Record(b"x86_64-unknown-linux-gnu", b"znver3", platform="Intel(R) OpenCL")
    assert most_lanes(record.device, 16) == 16


def test_threads_stay_on_their_cores_unless_the_user_or_the_machine_says_otherwise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_cpu.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(host_cpu.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.delenv("POCL_AFFINITY", raising=False)
    assert pinned() == {"POCL_AFFINITY": "1"}
    monkeypatch.setenv("POCL_AFFINITY", "0")
    assert pinned() == {}
    monkeypatch.delenv("POCL_AFFINITY")
    monkeypatch.setattr(host_cpu.os, "sched_getaffinity", lambda _: {2, 3}, raising=False)
    assert pinned() == {}  # a core that this process may not use
    monkeypatch.delattr(host_cpu.os, "sched_getaffinity", raising=False)
    assert pinned() == {}


def test_the_hosts_largest_cache_counts_where_a_runtime_reports_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_cpu, "_CACHES", tmp_path)
    assert largest_cache(2 << 20) == 2 << 20  # nothing is known of the host's
    for index, size in enumerate(("48K", "2048K", "32768K", "unknown")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert largest_cache(2 << 20) == 32 << 20
    assert largest_cache(64 << 20) == 64 << 20
