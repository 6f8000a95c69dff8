"""What children do in tests: this file imports little, as each child begins with it."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lift_egraph.errors import SizeProblem

MEBIBYTE = 2**20


def own_pids():
    yield os.getpid()


def count_slowly(pause):
    number = 0
    while True:
        yield number
        number += 1
        time.sleep(pause)


def eat_memory():
    import numpy as np

    yield "started"
    hoard = []
    while True:
        hoard.append(np.ones(MEBIBYTE))
        time.sleep(0.002)


def allocate(size):
    yield len(bytearray(size))


def die_of(signal_number):
    yield "before"
    os.kill(os.getpid(), signal_number)


def read_null():
    yield "before"
    ctypes.string_at(0)


def leave(code):
    yield "before"
    print("the last words", flush=True)
    os._exit(code)


def fail_with(error):
    yield "before"
    raise error


def yield_unpicklable():
    yield lambda: None


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield os.getpid()
    while True:
        time.sleep(10)


def numbered_server():
    requests = 0

    def handle(message):
        nonlocal requests
        requests += 1
        match message:
            case "hang":
                time.sleep(1000)
            case "crash":
                ctypes.string_at(0)
            case "refuse":
                raise SizeProblem("too large")
            case "break":
                raise ValueError("a defect")
            case "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
        return requests, message

    return handle


def fail_to_start():
    raise SizeProblem("no such thing")


def starter():
    return lambda command: subprocess.Popen(command.split()).pid


def folder_maker():
    def make(name):
        Path(tempfile.gettempdir(), name).touch()
        return tempfile.gettempdir()

    return make
