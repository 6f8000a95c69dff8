"""One child process, as its parent sees it: pipes, limits, and how it ended. `lift_egraph.process.child` is for use."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import IO, Any, Literal

import cloudpickle

from lift_egraph.errors import OutputProblem, RunProblem
from lift_egraph.process.child_main import MEMORY_EXIT, TICK, receive_message, send_message

_OUTPUT_LINES, _PIPE_BYTES = 8, 1 << 20
_ARMING = 10.0  # seconds in which a child has begun: an interpreter starts in a tenth of one
_START = (
    "import sys, json; options = json.loads(sys.argv[1]); sys.path[:] = options['path'];"
    "from lift_egraph.process.child_main import main; main(options)"
)


@dataclass(frozen=True)
class End:
    """Why a child ended.

    Attributes
    ----------
    kind
        ``error`` is an exception other than a `LiftError`; ``interrupted`` is Ctrl-C, or a consumer
        that stopped reading.
    text
        The same for people, such as ``crashed with SIGSEGV``.
    output
        The last lines that the child wrote to its standard output and error.
    """

    kind: Literal["finished", "time", "memory", "crashed", "interrupted", "error"]
    text: str
    output: str = ""

    def __str__(self) -> str:
        return f"{self.text}\n{self.output}" if self.output else self.text


class Ended(Exception):
    """The cause of a `RunProblem`: how the child ended."""

    def __init__(self, end: End) -> None:
        super().__init__(end.text)
        self.end = end


def begin(options: dict[str, Any], environment: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """A fresh interpreter in a session of its own, which runs `child_main.main`."""
    return subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", _START, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        bufsize=0,
        env=environment,
        start_new_session=True,
    )


class Child:
    """One child process, its two pipes and its limits.

    Parameters
    ----------
    memory_limit
        Bytes of resident memory; looked at every `TICK` seconds while the parent waits for the child.
    address_limit
        Bytes of address space, kept by the kernel: an allocation beyond it fails in the child.
    environment
        Variables to add to the child's environment.
    """

    def __init__(
        self,
        memory_limit: int | None = None,
        address_limit: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.memory_limit = memory_limit
        try:
            self._output = tempfile.TemporaryFile()  # noqa: SIM115
            self._folder = tempfile.mkdtemp(prefix="lift-egraph-")
        except OSError as problem:
            raise OutputProblem(f"cannot write to {tempfile.gettempdir()}: {problem.strerror or problem}") from None
        self._armed = os.path.join(self._folder, "armed")
        options = {
            "armed": self._armed,
            "path": [os.path.abspath(os.fspath(p)) for p in sys.path],
            "memory_limit": memory_limit,
            "address_limit": address_limit,
        }
        variables = {**os.environ, "TMPDIR": self._folder, **(environment or {})}
        self._process = _in_lasting_thread(partial(begin, options, variables, self._output))
        self._requests, self._replies = (f.fileno() for f in (self._process.stdin, self._process.stdout) if f)
        for fd in (self._requests, self._replies):
            os.set_blocking(fd, False)
            if sys.platform == "linux":
                with suppress(OSError):  # beyond the user's quota of pipe memory
                    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.kill = weakref.finalize(self, _destroy, self._process, self._output, self._folder)
        """Kills the process and what it started, and removes its temporary folder; does nothing the second time."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.kill.alive and self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal to the process, from any thread; nothing happens where it has ended.

        To be stopped it must be armed, so that this process's death ends it all the same. What it started itself is
        not stopped: nothing would end that.
        """
        if self.alive and (number != signal.SIGSTOP or self._is_armed()):
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if number == signal.SIGKILL else os.kill)(self._process.pid, number)

    def send(self, message: Any, watch: Callable[[], None]) -> None:
        """Send a message; `watch` is called at least every `TICK` seconds and may raise."""

        def write(data: memoryview) -> None:
            while data:
                try:
                    data = data[os.write(self._requests, data) :]
                except BlockingIOError:
                    self._wait(self._requests, selectors.EVENT_WRITE, watch)

        self._check_open()
        try:
            send_message(write, message, cloudpickle.dumps)
        except BrokenPipeError:
            raise Ended(self._crash()) from None

    def receive(self, watch: Callable[[], None]) -> Any:
        """The child's next message; `watch` is called at least every `TICK` seconds and may raise."""

        def read_into(view: memoryview) -> None:
            watch()
            while view:
                try:
                    count = os.readv(self._replies, [view])
                except BlockingIOError:
                    self._wait(self._replies, selectors.EVENT_READ, watch)
                    continue
                if not count:
                    raise Ended(self._crash())
                view = view[count:]

        self._check_open()
        return receive_message(read_into)

    def limits(self, time_limit: float | None, on_tick: Callable[[], object] | None = None) -> Callable[[], None]:
        """A `watch` function that ends the wait when the time, in seconds from now on, or the memory is used up."""
        started = looked = time.monotonic()

        def watch() -> None:
            nonlocal looked
            now = time.monotonic()
            if time_limit is not None and now - started > time_limit:
                raise Ended(End("time", f"ran past its {time_limit:.3g} s limit", self.output()))
            if now - looked >= TICK:
                looked = now
                if self.memory_limit is not None and resident_bytes(self.pid) > self.memory_limit:
                    raise Ended(self._over_memory())
                if on_tick is not None:
                    on_tick()

        return watch

    def output(self) -> str:
        """The last lines that the child wrote."""
        fd = self._output.fileno()
        size = os.fstat(fd).st_size
        tail = os.pread(fd, 4096, max(0, size - 4096)).decode(errors="replace")
        return "\n".join(tail.strip().splitlines()[-_OUTPUT_LINES:])

    def _is_armed(self) -> bool:
        """Whether this process's death ends the child, which begins with seeing to it."""
        end = time.monotonic() + _ARMING
        while not (made := os.path.exists(self._armed)) and self.alive and time.monotonic() < end:
            time.sleep(0.002)
        return made

    def _wait(self, fd: int, event: int, watch: Callable[[], None]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, event)
            watch()
            while not selector.select(TICK):
                watch()

    def _check_open(self) -> None:
        if not self.kill.alive:
            raise RunProblem("the child process was ended before")

    def _over_memory(self) -> End:
        assert self.memory_limit is not None
        return End("memory", f"used more than its {self.memory_limit / 2**20:.0f} MiB of memory", self.output())

    def _crash(self) -> End:
        """Its pipe is closed: the way it ended."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return End("crashed", "closed its pipe", self.output())
        output = self.output()
        if code == MEMORY_EXIT and self.memory_limit is not None:
            return self._over_memory()
        if code < 0:
            # A Rust allocation that fails aborts the process after this line.
            if -code == signal.SIGABRT and "memory allocation of" in output:
                return End("memory", "ran out of memory", output)
            return End("crashed", f"crashed with {signal.Signals(-code).name}", output)
        return End("crashed", f"ended with exit code {code}", output)


_starts: SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]] | None = None


def _in_lasting_thread(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """A process started by the main thread, or by one that lasts as long.

    The kernel's parent-death signal, which alone ends a stopped child, means the death of the *thread* that made it.
    """
    global _starts  # noqa: PLW0603
    if threading.current_thread() is threading.main_thread():
        return start()
    with _lock:
        if _starts is None:
            _starts = SimpleQueue()
            threading.Thread(target=_serve, args=(_starts,), name="starts children", daemon=True).start()
        starts = _starts
    made: Future[subprocess.Popen[bytes]] = Future()
    starts.put((start, made))
    return made.result()


def _serve(starts: SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]]) -> None:
    while True:
        start, made = starts.get()
        try:
            made.set_result(start())
        except Exception as problem:  # it is the caller's
            made.set_exception(problem)


_lock = threading.Lock()


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _starts, _lock
    _starts, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def _destroy(process: subprocess.Popen[bytes], output: Any, folder: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for file in (process.stdin, process.stdout, output):
        file.close()  # pyright: ignore[reportOptionalMemberAccess]
    shutil.rmtree(folder, ignore_errors=True)


def resident_bytes(pid: int | str = "self") -> int:
    """The resident memory of a process; 0 once it has ended, and without a ``/proc`` (the child looks itself there)."""
    try:
        # Python would complain of a file object if Ctrl-C came between its opening and the block that closes it
        number = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
        try:
            return int(os.read(number, 1000).split()[1]) * os.sysconf("SC_PAGE_SIZE")
        finally:
            os.close(number)
    except (OSError, IndexError):
        return 0
