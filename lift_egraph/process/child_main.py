"""The child's side of `lift_egraph.process.child`: what runs in the child's interpreter, and the form of messages."""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lift_egraph.errors import LiftError
from lift_egraph.garbage import search_seldom

TICK = 0.05
"""Seconds between two looks at the limits."""

MEMORY_EXIT = 86
"""The exit code of a child that finds itself over its memory limit."""

_FAILED = object()


# --- messages: a count, the lengths, then the pickle and its out-of-band buffers ----------------------


def send_message(write: Callable[[memoryview], None], message: Any, dumps: Callable[..., bytes]) -> None:
    """Write a message, pickled by `dumps`; arrays in it are written from where they lie."""
    buffers: list[memoryview] = []
    payload = dumps(message, protocol=5, buffer_callback=lambda b: buffers.append(b.raw()))
    pieces = [memoryview(payload), *buffers]
    write(memoryview(struct.pack(f"<Q{len(pieces)}Q", len(pieces), *(p.nbytes for p in pieces))))
    for piece in pieces:
        write(piece)


def receive_message(read_into: Callable[[memoryview], None]) -> Any:
    """The next message; `read_into` fills the memory that it is given."""

    def read(size: int) -> bytearray:
        data = bytearray(size)
        read_into(memoryview(data))
        return data

    (count,) = struct.unpack("<Q", read(8))
    payload, *buffers = [read(n) for n in struct.unpack(f"<{count}Q", read(8 * count))]
    return pickle.loads(payload, buffers=buffers)


# --- the child --------------------------------------------------------------------------------------


def main(options: dict[str, Any]) -> None:
    """Run the task that comes first on standard input: a stream of messages, or a server's replies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    search_seldom()
    # What the child prints must not mix with its messages, and it has no input but its requests.
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    _limit_itself(options, requests)

    def write(data: memoryview) -> None:
        while data:
            data = data[os.write(replies, data) :]

    def read_into(view: memoryview) -> None:
        while view:
            count = os.readv(requests, [view])
            if not count:
                os._exit(0)
            view = view[count:]

    def send(kind: str, value: Any) -> None:
        send_message(write, (kind, value), pickle.dumps)

    def attempt(compute: Callable[[], Any]) -> Any:
        """The value of one step; its exception is the answer instead (the child's border: it takes them all)."""
        try:
            value = compute()
        except LiftError as error:
            send("raise", _portable(error))
        except MemoryError:
            send("memory", "ran out of memory")
        except BaseException as error:  # egglog's panics are no Exception
            sys.excepthook(type(error), error, error.__traceback__)
            send("error", f"{type(error).__name__}: {error}")
        else:
            return value
        return _FAILED

    def receive() -> Any:
        kind, function, arguments = receive_message(read_into)
        if kind != "ready":
            return kind, function, arguments
        function(*arguments)
        return receive()

    task = attempt(receive)
    if task is _FAILED:
        return
    kind, function, arguments = task
    value = attempt(lambda: function(*arguments))
    if value is _FAILED:
        return
    if kind == "stream":

        def produce() -> None:
            for message in value:
                send("message", message)
            send("finished", None)

        attempt(produce)
        return
    send("message", None)
    while True:
        attempt(lambda: send("message", value(receive_message(read_into))))


def _portable(error: LiftError) -> LiftError:
    """The error, or a plain one with its text if it does not survive pickling."""
    try:
        return pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PicklingError):
        return LiftError(str(error))


def _limit_itself(options: dict[str, Any], requests: int) -> None:
    """Set the address space limit, and make the parent's death, a closed pipe, the end of this process."""
    if options["address_limit"] is not None:
        resource.setrlimit(resource.RLIMIT_AS, (options["address_limit"], options["address_limit"]))
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    with suppress(OSError):  # without room for it this process is never stopped
        os.close(os.open(options["armed"], os.O_CREAT))
    memory_limit = None if os.path.exists("/proc/self/statm") else options["memory_limit"]

    def look() -> None:
        hang_up = select.poll()
        hang_up.register(requests, 0)
        while not hang_up.poll(None if memory_limit is None else 1000 * TICK):
            unit = 1 if sys.platform == "darwin" else 1024
            if memory_limit is not None and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > memory_limit:
                os._exit(MEMORY_EXIT)
        os._exit(0)

    threading.Thread(target=look, daemon=True).start()
