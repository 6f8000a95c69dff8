"""A killable child process: what may hang, crash or eat the memory runs there.

`Stream` runs a generator and yields its messages as they come; `Stream.end` then says why they ended.
`Server` keeps a child alive that answers requests. `call` runs one function once.

The child is a fresh interpreter, never a fork, and never imports the parent's ``__main__``: this works
from a notebook, ``python -c``, pytest, or a script without a main guard. It sees the parent's ``sys.path``.
It has a session of its own, so that the terminal's Ctrl-C reaches the parent alone, which kills it.
When the parent dies, however it dies, the child ends too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Generic, Self, TypeVar

from lift_egraph.errors import RunProblem
from lift_egraph.process.child_process import Child, End, Ended
from lift_egraph.process.interrupts import heard, look

__all__ = ["End", "Ended", "Server", "Stream", "begun", "call"]

M = TypeVar("M")
R = TypeVar("R")

_START_LIMIT = 60.0  # seconds that a server's factory may take, or a child to hear its task


class Stream(Generic[M]):
    """The messages of a generator that runs in a child process.

    A `LiftError` of the child is raised here; every other way to end just ends the iteration, and `end`
    tells which. Leaving the loop, by ``break`` or by an exception (`KeyboardInterrupt`), kills the child.

    Parameters
    ----------
    function
        A generator function; it and its arguments are pickled (by value where they live in ``__main__``).
    time_limit
        Seconds from the start of the loop, however long its body takes for each message.
    memory_limit, address_limit, environment
        See `Child`.
    on_tick
        Called about every `TICK` seconds of waiting.
    child
        One that was `begun` before, with its limits.

    Examples
    --------
    >>> numbers = Stream(range, 3)
    >>> list(numbers), numbers.end.kind
    ([0, 1, 2], 'finished')
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        address_limit: int | None = None,
        on_tick: Callable[[], object] | None = None,
        environment: Mapping[str, str] | None = None,
        child: Child | None = None,
    ) -> None:
        self.end = End("interrupted", "was interrupted")
        self._task = ("stream", function, arguments)
        self._time_limit, self._on_tick = time_limit, on_tick
        self._memory_limit, self._address_limit, self._environment = memory_limit, address_limit, environment
        self._child = child

    def begin(self) -> None:
        """Start the child before the loop, whose time limit counts from its own start all the same."""
        if self._child is None or not self._child.kill.alive:
            self._child = Child(self._memory_limit, self._address_limit, self._environment)

    def signal(self, number: int) -> None:
        """Send a signal to the child from any thread: it may be stopped, continued or killed."""
        if self._child is not None:
            self._child.signal(number)

    def __iter__(self) -> Iterator[M]:
        self.begin()
        child = self._child
        assert child is not None
        within_limits = child.limits(self._time_limit, self._on_tick)

        def watch() -> None:
            look()
            within_limits()

        try:
            with heard():
                child.send(self._task, watch)
                while True:
                    kind, value = child.receive(watch)
                    if kind == "message":
                        yield value
                        continue
                    text = "finished" if kind == "finished" else str(value)
                    self.end = End("error" if kind == "raise" else kind, text, child.output())
                    if kind == "raise":
                        raise value
                    return
        except Ended as stop:
            self.end = stop.end
        finally:
            child.kill()


@contextmanager
def begun(ready: Callable[[], object], memory_limit: int | None = None) -> Iterator[Child]:
    """A child for a `Stream` that gets ready, by a function, while its parent finds out what it is to do.

    Where that fails it is killed.

    Examples
    --------
    >>> with begun(int) as child:
    ...     count = 3
    >>> list(Stream(range, count, child=child))
    [0, 1, 2]
    """
    child = Child(memory_limit)
    try:
        with suppress(Ended):  # the stream says so
            child.send(("ready", ready, ()), child.limits(_START_LIMIT))
        yield child
    except BaseException:
        child.kill()
        raise


class Server:
    """A child process that answers requests, and is started again after it crashed or hung.

    Parameters
    ----------
    factory
        Called with the arguments in each new child; returns the function that turns a request into a reply.
    memory_limit, environment
        See `Child`.

    Examples
    --------
    >>> import operator
    >>> with Server(operator.itemgetter, 0) as server:
    ...     server.request("abc", time_limit=10)
    'a'
    """

    def __init__(
        self,
        factory: Callable[..., Callable[[Any], Any]],
        *arguments: Any,
        memory_limit: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._task = ("server", factory, arguments)
        self._memory_limit, self._environment = memory_limit, environment
        self._child: Child | None = None
        self._is_started = False

    def begin(self) -> None:
        """Make sure that a child runs; a new one calls the factory while nobody waits for it."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = Child(memory_limit=self._memory_limit, environment=self._environment)
            self._is_started = False
            with suppress(Ended):  # whoever waits is told
                self._child.send(self._task, self._child.limits(_START_LIMIT))

    def start(self) -> bool:
        """Make sure that a child answers; true if it is a new one.

        Raises
        ------
        RunProblem
            When the factory hangs, crashes or fails; a `LiftError` of the factory is raised as it is.
        """
        self.begin()
        if self._is_started:
            return False
        self._is_started = True
        self._answer(_START_LIMIT)
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the child from any thread: it may be stopped, continued or killed."""
        child = self._child
        if child is not None:
            child.signal(number)

    def request(self, message: Any, time_limit: float | None = None) -> Any:
        """The child's reply to a message.

        Raises
        ------
        RunProblem
            When the child runs past the limit in seconds, uses too much memory, crashes, or raises
            anything but a `LiftError`; the next request meets a new child.
        LiftError
            As raised in the child, which goes on.
        """
        self.start()
        return self._answer(time_limit, message)

    def _answer(self, time_limit: float | None, *messages: Any) -> Any:
        """The reply to a message, or to the task that was sent when the child began."""
        child = self._child
        assert child is not None
        usable = False
        watch = child.limits(time_limit)
        try:
            for message in messages:
                child.send(message, watch)
            kind, value = child.receive(watch)
            usable = kind in ("message", "raise")
            if kind == "message":
                return value
            if kind == "raise":
                raise value
            raise RunProblem(str(End(kind, value, child.output())))
        except Ended as stop:
            raise RunProblem(str(stop.end)) from stop
        finally:
            if not usable:
                child.kill()

    def close(self) -> None:
        """Kill the child, if one runs."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def call(
    function: Callable[..., R],
    *arguments: Any,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> R:
    """The value of ``function(*arguments)``, computed in a child process.

    Parameters
    ----------
    time_limit
        In seconds.
    memory_limit
        In bytes.

    Raises
    ------
    RunProblem
        As `Server.request` does.

    Examples
    --------
    >>> call(max, 3, 5, time_limit=30)
    5
    """
    with Server(_caller, memory_limit=memory_limit, environment=environment) as server:
        return server.request((function, arguments), time_limit)


def _caller() -> Callable[[Any], Any]:
    return lambda task: task[0](*task[1])
