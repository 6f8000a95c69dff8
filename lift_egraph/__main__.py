"""The command ``lift-egraph``, also ``python -m lift_egraph``.

It is clean also when it is interrupted while it is loaded, when nobody takes its output, and in any locale.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path

from lift_egraph.garbage import search_seldom


def main() -> None:
    """Run the command line."""
    _open_streams()
    search_seldom()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was found is shown as after Ctrl-C
    try:
        from lift_egraph.cli.main import app

        try:
            app(prog_name="lift-egraph", obj=_began())
        finally:
            sys.stdout.flush()
            gc.freeze()  # Python would look through millions of terms before it ends: 5 s after 300 candidates
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as problem:  # all others are errors of ours by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        if not isinstance(problem, BrokenPipeError):
            print(f"error: {problem.filename or 'standard output'}: {problem.strerror}", file=sys.stderr)
        sys.exit(1)


def _began() -> float | None:
    """When this process began, by `time.perf_counter`: on a busy machine that is seconds ago; None if unknown."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
        ticks = int(stat.rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return None
    return time.perf_counter() - age


def _open_streams() -> None:
    """Let the standard streams be there, and write UTF-8 as our files do."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:  # it was closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, open(number, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main()
