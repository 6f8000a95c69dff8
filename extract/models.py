"""What a search minimises: the protocols of its models.

A cost model rates one node of an e-graph from the ratings of its parts; it must never rate a node below a part,
so that best-first search is exact. A rating also carries a *shape*, a summary of what is inside that
decides legality: two members of a class with different shapes are kept apart.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol, SupportsFloat

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.extract.devices import Device


class Rating(NamedTuple):
    """The cost of a member of a class, and the summary that decides where it may stand.

    `layout` counts the patterns in it that only rearrange data. They are free when it runs, but of two
    members that compute the same the plainer one should come first, and the others long after.
    """

    cost: float
    shape: Hashable
    layout: int = 0


class CostModel(Protocol):
    """Rates nodes bottom-up."""

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        """The rating of a node, or None if it may not be extracted with these parts."""
        ...

    def accepts(self, shape: Hashable) -> bool:
        """Whether a whole term of this shape is legal."""
        ...


class StructuralModel(CostModel, Protocol):
    """What `optimize` minimises in e-graphs: itself among high-level terms.

    The search runs in a child process, so a model must survive cloudpickle; a class of your own, also one in
    ``__main__``, does, unless it holds open files, locks or devices.
    """

    def on(self, device: Device) -> CostModel:
        """What to minimise among low-level terms for a device; it must accept no others."""
        ...


class PerformanceModel(Protocol):
    """Predicts the time of a plan before it is built; any function or object that can be called so is one.

    `optimize` calls it in its own process. A plan for which it raises a `LiftError` is left out; the naive one must
    not be.

    Examples
    --------
    >>> def shortest(plan: Plan, device: Device) -> float:
    ...     return len(plan.source)

    With ``optimize(program, performance=shortest)`` kernels with little text are measured first.
    """

    def __call__(self, plan: Plan, device: Device, /) -> SupportsFloat:
        """Milliseconds, launches included; a number that is not finite is an error."""
        ...
