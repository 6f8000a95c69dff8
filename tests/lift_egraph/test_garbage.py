"""E-graphs that nobody uses are dropped by the thread that made them."""

from __future__ import annotations

import gc
import weakref

import egglog

from lift_egraph.garbage import drop_unused_e_graphs


class Holder:
    """Holds an e-graph, and itself."""

    def __init__(self):
        self.graph, self.itself = egglog.EGraph(), self


def test_unused_e_graphs_are_dropped_before_other_threads_look_for_garbage():
    gc.disable()
    try:
        holder = Holder()
        known = weakref.ref(holder)
        del holder
        assert known() is not None
        drop_unused_e_graphs()
        assert known() is None
    finally:
        gc.enable()
