"""Which optimisations of the generated code are on: the switches of the thesis's ablation.

Without them the same kernel is printed in the way a compiler from terms to C would print it at first: a barrier
after each mapLcl, a loop for each pattern, indices as the views put them together. What is read, written,
vectorised and unrolled does not change, so that the levels differ in nothing else.

Source: 000 Figure 4.13.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Optimisations:
    """Switches, all on unless told otherwise; the last one in all levels of the figure.

    Parameters
    ----------
    barriers
        Barriers stand where work-items would otherwise race. Off: one follows each mapLcl, and more only where
        correctness asks for them. Also then none stands in control flow that some work-items of the group may
        leave out: a mapLcl inside a mapLcl whose elements the work-items don't share evenly gets none of its own,
        the one after the outer map serves both.
    control_flow
        A parallel map over as many elements as there are work-items is no loop, over fewer it is an ``if``, and a
        sequential loop of one step is no loop. Off: each is a ``for`` loop.
    indices
        Indices are printed in normal form. Off: as the views compose them. What depends on an index (vector
        accesses, unrolling, guards) is decided on the normal form in both cases.
    launches
        On CPUs neighbours that have little to do are one kernel of one work-item. Off: each is a kernel.
    """

    barriers: bool = True
    control_flow: bool = True
    indices: bool = True
    launches: bool = True


NONE = Optimisations(barriers=False, control_flow=False, indices=False)
CONTROL = Optimisations(indices=False)
ALL = Optimisations()

LEVELS = {"none": NONE, "barriers and control flow": CONTROL, "and index simplification": ALL}
"""The levels of Figure 4.13 by name, in its order."""
