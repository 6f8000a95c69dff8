"""Python's search for circles of garbage, which waits while something is made that has none."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def drop_unused_e_graphs() -> None:
    """Frees the e-graphs of circles that nobody uses, before other threads run.

    Only the thread that made an e-graph can drop it: where another one finds it in its search, it stays, and Python
    says so on stderr.
    """
    if "egglog" in sys.modules:
        gc.collect()


def search_seldom() -> None:
    """Have this process look for garbage after 50,000 new objects, not after 700.

    While modules are imported, and told to an e-graph, nearly all that is made stays.
    """
    gc.set_threshold(50_000, 20, 20)


@contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """Makes the search for circles of objects that nobody uses wait, here or in a function that this decorates.

    A kernel's tree is some ten thousand small objects that point downwards alone. Python looks through them again and
    again while they are made, and at times through all else that lives, such as e-graphs: a third of the time that it
    takes to compile a kernel without text, and two thirds of an extraction, where all lives until the end. What is not
    used any more is still freed at once.

    Where several threads compile, the search goes on as soon as one of them is done.

    Examples
    --------
    >>> import gc
    >>> with no_search_for_garbage():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
