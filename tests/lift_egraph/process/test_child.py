import os
import signal
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lift_egraph.errors import RunProblem, SizeProblem
from lift_egraph.process import child_process
from lift_egraph.process.child import Server, Stream, begun, call
from tests.command import SOON, start
from tests.lift_egraph.process.tasks import (
    MEBIBYTE,
    allocate,
    count_slowly,
    die_of,
    eat_memory,
    fail_to_start,
    fail_with,
    folder_maker,
    ignore_interrupts,
    leave,
    numbered_server,
    own_pids,
    read_null,
    starter,
    yield_unpicklable,
)
from tests.warm import FRESH


@pytest.fixture(autouse=True)
def fresh_children(monkeypatch):
    """Children as users have them."""
    monkeypatch.setattr(child_process, "begin", FRESH)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid, seconds=SOON):
    stop = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < stop:
        time.sleep(0.02)
    return not is_running(pid)


def test_memory_is_looked_at_without_a_file_that_ctrl_c_could_leave_open(monkeypatch):
    monkeypatch.setattr("builtins.open", pytest.fail)
    assert child_process.resident_bytes() > MEBIBYTE
    assert child_process.resident_bytes(1 << 30) == 0


class TestStream:
    def test_a_finished_stream(self):
        stream = Stream(range, 5)
        assert list(stream) == [0, 1, 2, 3, 4]
        assert stream.end.kind == "finished"

    def test_the_time_limit_keeps_earlier_messages(self):
        stream = Stream(count_slowly, 0.1, time_limit=2.0)
        started = time.monotonic()
        messages = list(stream)
        assert time.monotonic() - started < SOON
        assert messages == list(range(len(messages)))
        assert len(messages) >= 2
        assert stream.end.kind == "time"
        assert str(stream.end) == "ran past its 2 s limit"

    def test_the_memory_limit(self):
        stream = Stream(eat_memory, memory_limit=300 * MEBIBYTE, time_limit=60)
        assert list(stream) == ["started"]
        assert stream.end.kind == "memory"
        assert "300 MiB" in stream.end.text

    @pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is kept on Linux alone")
    def test_the_address_limit(self):
        stream = Stream(allocate, 2**33, address_limit=2**32)
        assert list(stream) == []
        assert stream.end.kind == "memory"

    @pytest.mark.parametrize(
        ("function", "arguments", "text"),
        [
            (read_null, (), "crashed with SIGSEGV"),
            (die_of, (signal.SIGABRT,), "crashed with SIGABRT"),
            (die_of, (signal.SIGKILL,), "crashed with SIGKILL"),
            (leave, (3,), "ended with exit code 3"),
            (leave, (0,), "ended with exit code 0"),
        ],
    )
    def test_crashes(self, function, arguments, text):
        stream = Stream(function, *arguments)
        assert list(stream) == ["before"]
        assert stream.end.kind == "crashed"
        assert stream.end.text == text
        assert function is not leave or stream.end.output == "the last words"

    def test_a_lift_error_is_raised_again(self):
        messages = []
        stream = Stream(fail_with, SizeProblem("7 does not divide 12"))
        with pytest.raises(SizeProblem, match="7 does not divide 12"):
            messages.extend(stream)
        assert stream.end.kind == "error"

    @pytest.mark.parametrize("error", [ValueError("a defect"), SystemExit(2), KeyboardInterrupt()])
    def test_another_exception_is_an_end(self, error):
        stream = Stream(fail_with, error)
        assert list(stream) == ["before"]
        assert stream.end.kind == "error"
        assert stream.end.text.startswith(type(error).__name__)
        assert "in fail_with" in stream.end.output

    def test_a_message_that_cannot_be_pickled(self):
        stream = Stream(yield_unpicklable)
        assert list(stream) == []
        assert stream.end.kind == "error"

    def test_leaving_the_loop_kills_the_child(self):
        stream = Stream(ignore_interrupts)
        pid = next(iter(stream))
        assert not is_running(pid)
        assert stream.end.kind == "interrupted"

    def test_on_tick(self):
        ticks = []
        list(Stream(count_slowly, 0.5, time_limit=1.0, on_tick=lambda: ticks.append(1)))
        assert len(ticks) >= 5

    def test_a_large_array_of_any_order_arrives_writable(self):
        array = np.arange(3 * MEBIBYTE, dtype=np.float64).reshape(1024, -1)
        for sent in (array, array.T, array[::2]):
            (received,) = Stream(list, [sent])
            np.testing.assert_array_equal(received, sent)
            received[0] = 0

    def test_an_empty_array(self):
        (received,) = Stream(list, [np.zeros((0, 3))])
        assert received.shape == (0, 3)


class TestServer:
    @pytest.fixture
    def server(self):
        with Server(numbered_server) as server:
            yield server

    def test_it_keeps_its_state(self, server):
        assert [server.request("a"), server.request("b")] == [(1, "a"), (2, "b")]

    def test_a_hang_ends_at_the_limit_and_the_next_request_starts_again(self, server):
        server.request("a")
        started = time.monotonic()
        with pytest.raises(RunProblem, match=r"ran past its 0.5 s limit"):
            server.request("hang", time_limit=0.5)
        assert time.monotonic() - started < SOON
        assert server.request("b") == (1, "b")

    @pytest.mark.parametrize(("what", "says"), [("crash", "crashed with SIGSEGV"), ("break", "ValueError: a defect")])
    def test_a_crash_and_another_exception_end_the_child(self, server, what, says):
        with pytest.raises(RunProblem, match=says):
            server.request(what)
        assert server.request("b") == (1, "b")

    def test_a_lift_error_leaves_the_child_alive(self, server):
        with pytest.raises(SizeProblem, match="too large"):
            server.request("refuse")
        assert server.request("b") == (2, "b")

    def test_the_child_ignores_an_interrupt(self, server):
        assert server.request("interrupt") == (1, "interrupt")

    def test_start_tells_whether_the_child_is_new(self, server):
        assert [server.start(), server.start()] == [True, False]

    def test_a_server_that_was_begun_is_new_once(self, server):
        server.begin()
        pid = server._child.pid
        assert [server.start(), server.start(), server._child.pid] == [True, False, pid]
        assert server.request("a") == (1, "a")

    def test_a_child_killed_between_requests_is_replaced(self, server):
        server.request("a")
        child = server._child
        os.kill(child.pid, signal.SIGKILL)
        child._process.wait()
        assert server.start()

    def test_a_factory_that_fails(self):
        with Server(fail_to_start) as server, pytest.raises(SizeProblem, match="no such thing"):
            server.request("a")

    def test_close_leaves_no_process(self, server):
        server.start()
        pid = server._child.pid
        server.close()
        assert not is_running(pid)

    def test_a_forgotten_server_leaves_no_process(self):
        server = Server(numbered_server)
        server.start()
        pid = server._child.pid
        del server
        assert not is_running(pid)


def test_a_child_gets_ready_before_it_knows_its_task(tmp_path):
    with begun(partial(Path.touch, tmp_path / "ready")) as child:
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
    assert list(Stream(own_pids, child=child)) == [child.pid]


def test_a_child_that_cannot_get_ready_ends_its_stream():
    with begun(partial(os._exit, 3)) as child:
        pass
    failed = Stream(range, 3, child=child)
    assert (list(failed), failed.end.text) == ([], "ended with exit code 3")


def test_a_child_that_gets_ready_ends_with_what_its_parent_does_meanwhile():
    with pytest.raises(SizeProblem), begun(int) as child:
        raise SizeProblem("no such thing")
    assert not is_running(child.pid)


def test_call_sees_the_environment():
    assert call(os.getenv, "LIFT_TEST", environment={"LIFT_TEST": "yes"}) == "yes"


# --- parents of other kinds, each in a process of its own ------------------------------------------------


def start_parent(text):
    return start("-c", textwrap.dedent(text))


@pytest.mark.parametrize("as_script", [False, True])
def test_a_parent_without_a_main_guard(as_script, tmp_path):
    text = """
        from lift_egraph.process.child import Stream
        def squares(count):
            yield from (i * i for i in range(count))
        print(list(Stream(squares, 4)))
    """
    if as_script:
        (tmp_path / "script.py").write_text(textwrap.dedent(text))
        parent = start(tmp_path / "script.py")
    else:
        parent = start_parent(text)
    assert parent.communicate(timeout=60)[0] == "[0, 1, 4, 9]\n"


LONG_PARENT = """
    import tests.lift_egraph.process.tasks as t
    from lift_egraph.process.child import Stream
    try:
        for pid in Stream(t.ignore_interrupts):
            print(pid, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_reaches_the_parent_at_once():
    parent = start_parent(LONG_PARENT)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGINT)
    assert parent.communicate(timeout=SOON)[0] == "interrupted\n"
    assert not is_running(pid)


def test_the_child_of_a_killed_parent_dies():
    parent = start_parent(LONG_PARENT)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=SOON)
    assert wait_until_gone(pid)


def test_the_child_of_another_thread_outlives_that_thread_but_not_the_parent():
    parent = start_parent(
        """
        import sys, threading, time
        import tests.lift_egraph.process.tasks as t
        from lift_egraph.process.child import Server
        server = Server(t.numbered_server)
        thread = threading.Thread(target=server.start)
        thread.start(); thread.join()
        time.sleep(0.3)
        print(server._child.pid, server.request("a", 10)[0], flush=True)
        time.sleep(100)
        """
    )
    pid, requests = parent.stdout.readline().split()
    assert requests == "1"
    parent.kill()
    parent.communicate(timeout=SOON)
    assert wait_until_gone(int(pid))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("thread.start(); thread.join()", id="when it has started"),
        pytest.param(
            "thread.daemon = True; thread.start()\n        while server._child is None: time.sleep(0.0005)",
            id="while it starts",
        ),
    ],
)
def test_a_stopped_child_of_another_thread_dies_with_the_parent(start: str):
    parent = start_parent(
        f"""
        import signal, threading, time
        import tests.lift_egraph.process.tasks as t
        from lift_egraph.process.child import Server
        server = Server(t.numbered_server)
        thread = threading.Thread(target=server.start)
        {start}
        server.signal(signal.SIGSTOP)
        print(server._child.pid, flush=True)
        time.sleep(100)
        """
    )
    pid = int(parent.stdout.readline())
    try:
        parent.kill()
        parent.communicate(timeout=SOON)
        assert wait_until_gone(pid)
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_what_a_stopped_child_started_ends():
    """It would stay for ever if its own parent dies meanwhile."""
    with Server(starter) as server:
        pid = server.request("sleep 0.3")
        server.signal(signal.SIGSTOP)
        assert wait_until_gone(pid)
        server.signal(signal.SIGCONT)


def test_a_forked_process_may_start_children_in_a_thread():
    parent = start_parent(
        """
        import os, threading
        from lift_egraph.process.child import call
        def work():
            print(call(max, 3, 5, time_limit=30), flush=True)
        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start(); thread.join(30)
            if _ == 0 and os.fork():
                os.wait()
                break
        """
    )
    assert parent.communicate(timeout=60)[0] == "5\n5\n"


def test_a_childs_temporary_folder_goes_with_it():
    with Server(folder_maker) as server:
        folder = Path(server.request("file"))
        assert {path.name for path in folder.iterdir()} == {"armed", "file"}
    assert not folder.exists()
