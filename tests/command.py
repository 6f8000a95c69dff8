"""The command line in this process, and other processes that run this code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

import pytest
from typer.testing import CliRunner

from lift_egraph.cli.main import app

SOON = 15.0  # seconds, on a busy machine: what ends by itself would take a minute
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}


def lift(*arguments: object):
    """What the command line does with arguments, in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def search_little(patch: pytest.MonkeyPatch) -> None:
    """Have the command line's searches end when all was tried, whatever its options say: seconds are used up."""
    from lift_egraph import workbench  # not above: children that begin with a file of tests import this one too
    from lift_egraph.api import Limits, optimize

    few = {"cpu_blocks": (4,), "variants": 1, "stage_iterations": 4, "plan_iterations": 1, "seeds": 1, "lowered": 2}
    few |= {"lanes": 1, "staged": 0, "measured": 1, "tuning_share": 0.0}
    shares = {"numpy_share": 0, "roofline_share": 0, "timing_share": 0.001, "turns_share": 0}
    whole = workbench.Budget(60, limits=Limits(2, 2_000), **few, **shares)
    patch.setattr(workbench, "optimize", lambda *given, **options: optimize(*given, **{**options, "budget": whole}))


def start(*arguments: object, **changes: str) -> subprocess.Popen[str]:
    """Python with arguments, in a process of its own, whose environment has some changes."""
    command = [sys.executable, *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**ENVIRONMENT, **changes}, **streams)


def marked(mark: str) -> list[int]:
    """The processes that have a text in their environment."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or is somebody else's
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def shown(pid: int) -> str:
    """What a process is, and what it does."""
    with suppress(OSError):  # it has just ended
        folder = Path(f"/proc/{pid}")
        state = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        return (
            f"{(folder / 'cmdline').read_text()[:200]!r}, state and parent {state}, in {(folder / 'wchan').read_text()}"
        )
    return f"{pid}, which has ended"


@contextmanager
def leaving_nobody(process: subprocess.Popen[str], mark: str) -> Iterator[None]:
    """At the end no process that has the mark of this one in its environment is left, or soon."""
    try:
        yield
        end = time.perf_counter() + 20
        while (left := marked(mark)) and time.perf_counter() < end:
            time.sleep(0.05)
        if left:
            raise AssertionError(f"still there: {[*map(shown, left)]}")
    finally:
        process.kill()
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)


def interrupted(process: subprocess.Popen[str], stream: str, line: str, pause: float = 0) -> tuple[str, str]:
    """What a process writes that gets Ctrl-C some seconds after such a line, and then ends soon."""
    try:
        assert any(line in shown for shown in getattr(process, stream))
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        shown, complaints = process.communicate(timeout=SOON)
    finally:
        process.kill()
    assert "Traceback" not in complaints
    return shown, complaints


@contextmanager
def ctrl_c(pause: float) -> Iterator[Callable[[], None]]:
    """What is called has this process get Ctrl-C some seconds later, at which what runs here ends soon."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = Timer(pause, interrupt)
    try:
        yield lambda: timer.start() if timer.ident is None else None
        assert sent, "it ended before"
        assert time.perf_counter() - sent[0] < SOON
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C went through")
    finally:
        timer.cancel()
