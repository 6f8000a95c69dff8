"""Child processes that begin with what they would import: most tests' children do little beside that.

A fresh interpreter imports it once and then forks, and what it forks runs `lift_egraph.process.child_main.main` as a
child of the library does, in a session of its own and with the same pipes, limits, environment, path and folder. The
tests of `lift_egraph.process`, and all processes that run the command, have children as users have them.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any

import pytest

from lift_egraph.process import child_main, child_process

FRESH = child_process.begin
"""How a child begins outside of tests: as an interpreter of its own."""

_MOST_BYTES = 1 << 20  # of one request: paths and an environment
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


@contextmanager
def warm_children() -> Iterator[None]:
    """Children are forks of one interpreter that has imported what they need."""
    if sys.platform != "linux":
        yield
        return
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1)  # this process is the parent of what its children leave behind
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", "-u", "-c", _START, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1"}
    warm = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    lock = threading.Lock()

    def begin(options: dict[str, Any], environment: Mapping[str, str], output: IO[bytes]) -> Fork:
        with lock:
            return Fork(ours, options, environment, output)

    with pytest.MonkeyPatch.context() as patch, ours:
        patch.setattr(child_process, "begin", begin)
        yield
    warm.wait(60)  # it may still import, on a busy machine


_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from tests.warm import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)


class Fork:
    """What `child_process.Child` asks of a `subprocess.Popen`, for a process that was forked elsewhere."""

    def __init__(
        self, server: socket.socket, options: dict[str, Any], environment: Mapping[str, str], output: IO[bytes]
    ) -> None:
        (requests, to_child), (from_child, replies) = os.pipe(), os.pipe()
        message = json.dumps([options, dict(environment), os.getcwd()]).encode()
        socket.send_fds(server, [message], [requests, replies, output.fileno()])
        os.close(requests)
        os.close(replies)
        self.stdin, self.stdout = os.fdopen(to_child, "wb", 0), os.fdopen(from_child, "rb", 0)
        self.pid = int(server.recv(100))
        self._code: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """The exit code as `subprocess.Popen` has it; None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self._wait(0 if end is None else os.WNOHANG)) is None:
            assert end is not None
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.005)
        return code

    def _wait(self, options: int) -> int | None:
        with self._lock:
            if self._code is None:
                pid, status = os.waitpid(self.pid, options)
                if pid:
                    self._code = os.waitstatus_to_exitcode(status)
            return self._code


def know_protocols() -> None:
    """Have `typing` find out once what a protocol asks for, as Python 3.12 does: egglog asks for each argument."""
    if sys.version_info < (3, 12):
        typing._get_protocol_attrs = cache(typing._get_protocol_attrs)  # pyright: ignore


def serve(number: int, parent: int) -> None:
    """Fork for each request that comes through a socket, until it is closed."""
    know_protocols()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inherited = {*os.environ}
    import_lazily()
    declare_rules()
    with socket.socket(fileno=number) as requests:
        while True:
            message, received, *_ = socket.recv_fds(requests, _MOST_BYTES, 3)
            if not message:
                return
            middle = os.fork()
            if not middle:
                _become_child(requests, message, received, parent, inherited)
            os.waitpid(middle, 0)
            for descriptor in received:
                os.close(descriptor)


def import_lazily() -> None:
    """Import what most children need, but egglog's native module."""
    gc.disable()
    later = sys.modules[_BINDINGS] = _Later(_BINDINGS)
    import lift_egraph.codegen.running.worker
    import lift_egraph.derivation.derive
    import lift_egraph.soundness.many_rules
    import lift_egraph.workbench.exploration.search  # noqa: F401

    assert sys.modules[_BINDINGS] is later
    gc.enable()
    gc.freeze()


def declare_rules() -> None:
    """Have egglog call the functions of all rules: a search would begin with it, for a third of a second."""
    from lift_egraph.egraph.analyses import settled
    from lift_egraph.egraph.encoding import operation_results, operator_laws
    from lift_egraph.rules import all_rules

    later = sys.modules[_BINDINGS]
    gc.disable()
    for declared in (settled(), *(rule.ruleset for rule in all_rules), *operation_results(), *operator_laws()):
        _ = declared.__egg_decls__
    assert sys.modules[_BINDINGS] is later
    gc.enable()
    gc.freeze()


_BINDINGS = "egglog.bindings"


class _Promised:
    """A value of a module that is not loaded yet."""

    def __init__(self, make: Callable[[types.ModuleType], Any]) -> None:
        self.make = make

    def __call__(self, *arguments: Any) -> _Promised:
        return _Promised(lambda loaded: self.make(loaded)(*arguments))


class _Later(types.ModuleType):
    """egglog's native module, which a fork loads when it first uses it.

    It begins a thread when it is loaded, and a fork has no thread but its own: it would wait for it for ever.
    """

    _pid = os.getpid()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if os.getpid() == self._pid:
            return _Promised(lambda loaded: getattr(loaded, name))
        self._load()
        return getattr(self, name)

    def _load(self) -> None:
        spec = importlib.machinery.PathFinder.find_spec(_BINDINGS, sys.modules["egglog"].__path__)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        vars(self).update(vars(loaded))
        for module in [*sys.modules.values()]:
            for name, value in [*vars(module).items()]:
                if isinstance(value, _Promised):
                    setattr(module, name, value.make(loaded))


def _become_child(
    requests: socket.socket, message: bytes, received: list[int], parent: int, inherited: set[str]
) -> None:
    """Do what a fresh interpreter does on its way to `child_main.main`, in a process of the parent's own."""
    if os.fork():
        os._exit(0)
    while os.getppid() != parent:  # soon: who forked it has ended
        time.sleep(0.0005)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options, environment, folder = json.loads(message)
    os.chdir(folder)
    for target, descriptor in enumerate(received):
        os.dup2(descriptor, target)
        os.close(descriptor)
    for name in inherited - environment.keys():  # what imports have set stays: PyOpenCL needs it
        os.environ.pop(name, None)
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.path[:] = options["path"]
    requests.send(str(os.getpid()).encode())
    requests.close()
    _end_with(lambda: child_main.main(options))


def _end_with(run: Callable[[], None]) -> None:
    """Run, and end the process as an interpreter ends."""
    code = 0
    try:
        run()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
