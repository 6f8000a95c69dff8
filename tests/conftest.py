"""Settings of all tests: Hypothesis profiles, chosen by ``HYPOTHESIS_PROFILE``, which tests run, what they share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from lift_egraph.garbage import search_seldom
from tests.cost import Cost, room_of, shown
from tests.depth import PROFILE, left_out, names_tests, waiting
from tests.warm import know_protocols, warm_children

# A process that begins workers runs no test: what tests need is imported where they are run.
if TYPE_CHECKING:
    from lift_egraph.codegen.running.run import Runner
    from tests.codegen.corpus.harness import Bench

collect_ignore = ["forked.py"]  # to import it makes a process one that forks

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of workers and children: its threads wait busily
os.environ["LIFT_EGRAPH_RECORDS"] = "none"  # tests neither write into the user's journal nor start from it

settings.register_profile("dev", deadline=None, max_examples=30, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", deadline=None, max_examples=30, derandomize=True, print_blob=True, suppress_health_check=_QUIET
)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=_QUIET)
settings.load_profile(PROFILE)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each child process compiles all that it imports, again
sys.dont_write_bytecode = False  # and each worker all tests: a third of the time of collecting

know_protocols()

gc.disable()  # while tests are collected, which makes much that stays

_COST = Cost()
_SPENT, _LEFT_OUT = pytest.StashKey[Counter[str]](), pytest.StashKey[int]()  # of all workers, and by each of them


class _Examples:
    """For files outside of this folder too, unlike a hook of it."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Files without examples are not looked through for them, which takes an eighth of the time of collecting."""
        found = yield
        if file_path.suffix == ".py" and ">>> " not in file_path.read_text(encoding="utf-8"):
            return [collector for collector in found if not isinstance(collector, DoctestModule)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Examples())
    config.addinivalue_line("markers", "in_turn(one_in): see tests.depth.in_turn")
    config.stash[_SPENT], config.stash[_LEFT_OUT] = Counter(), 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Members of long lists take turns."""
    if not names_tests(config.args):
        others = waiting(items)
        config.stash[_LEFT_OUT] = len(others)
        config.hook.pytest_deselected(items=others)
        chosen = {*items} - {*others}
        items[:] = [item for item in items if item in chosen]
    gc.enable()
    gc.freeze()  # modules and tests stay: to look through them for garbage takes a tenth of the time
    search_seldom()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    _COST.enter(room_of(item.nodeid))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that ran tests tells what it spent; one that began workers is their parent, so what they spent counts
    for it, too.
    """
    if _COST.seconds:
        _COST.enter("")
    told = getattr(session.config, "workeroutput", {})
    told["seconds"], told["left out"] = dict(_COST.seconds), session.config.stash[_LEFT_OUT]
    _add(session.config, told)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _add(node.config, getattr(node, "workeroutput", {}))


def _add(config: pytest.Config, told: dict[str, Any]) -> None:
    config.stash[_SPENT].update(told.get("seconds", {}))
    config.stash[_LEFT_OUT] = max(config.stash[_LEFT_OUT], told.get("left out", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if number := config.stash[_LEFT_OUT]:
        terminalreporter.write_line(left_out(number))
    terminalreporter.write_line(shown(config.stash[_SPENT]))


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Fixtures and tests see one environment, for which the devices are asked once, not one that names the test."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


pytest_pyfunc_call = pytest_fixture_setup


@pytest.fixture(scope="session", autouse=True)
def _warm() -> Iterator[None]:
    """See `warm_children` and `kept_workers`; e-graphs that were told rules stay for other tests."""
    from lift_egraph.egraph import saturate
    from lift_egraph.soundness import rule_checker
    from lift_egraph.workbench import pipeline
    from tests.kept import kept_workers

    with warm_children(), kept_workers(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(saturate, "_MOST_IDLE", 100)
        patch.setattr(rule_checker, "MOST_KEPT", 50)
        patch.setattr(pipeline, "drop_unused_e_graphs", _drop_unused_e_graphs)
        yield


def _drop_unused_e_graphs() -> None:
    """What is left stays: each search would look through all that tests before it keep."""
    from lift_egraph.garbage import drop_unused_e_graphs

    drop_unused_e_graphs()
    gc.freeze()


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """See `no_children`."""
    from tests.in_process import no_children

    with no_children():
        yield


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    """A runner on PoCL, one for all tests of a process: the first build of a new one takes half a second."""
    from lift_egraph.codegen.running.run import Runner, find_device

    with Runner(find_device("Portable")) as made:
        yield made


@pytest.fixture(scope="session")
def another_runner(runner: Runner) -> Iterator[Runner]:
    """A runner on Intel's implementation, for kernels that any device takes; on PoCL where that is missing."""
    from lift_egraph.codegen.running.run import Runner
    from tests.codegen.corpus.devices import environment, found, missing

    if missing("intel"):
        yield runner
        return
    with Runner(found()["intel"], environment=environment()) as made:
        yield made


@pytest.fixture(scope="session")
def queue() -> Any:
    """A queue of PyOpenCL on PoCL, in this process."""
    cl = pytest.importorskip("pyopencl", reason="PyOpenCL is not installed")
    for platform in cl.get_platforms():
        if platform.name == "Portable Computing Language":
            return cl.CommandQueue(cl.Context(platform.get_devices()))
    pytest.skip("there is no PoCL")


@pytest.fixture(scope="session")
def benches() -> Iterator[Callable[[str], Bench]]:
    """Gives the OpenCL implementation of a name, and skips the test where it is missing."""
    from tests.codegen.corpus.harness import bench_on

    with ExitStack() as opened:
        yield cache(lambda name: opened.enter_context(bench_on(name)))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children of a process that ignores Ctrl-C, as a shell's background jobs do, would ignore it too.

    What Hypothesis asks to be told of each search for garbage waits: Ctrl-C that arrives there is an error of its own.
    Where it arrives in what Python calls when an object is gone, Python says so, and goes on: that is no error.
    """
    before, told = signal.signal(signal.SIGINT, signal.default_int_handler), gc.callbacks[:]
    hook = sys.unraisablehook
    gc.callbacks.clear()
    sys.unraisablehook = lambda what: None if what.exc_type is KeyboardInterrupt else hook(what)
    yield
    gc.callbacks[:], sys.unraisablehook = told, hook
    signal.signal(signal.SIGINT, before)
