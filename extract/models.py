"""What `optimize` minimises: the protocols of its models. Costs of e-nodes are `lift_egraph.egraph.kbest.CostModel`."""

from __future__ import annotations

from typing import Protocol, SupportsFloat

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.egraph.kbest import CostModel


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

    With ``optimize(program, cost=shortest)`` kernels with little text are measured first.
    """

    def __call__(self, plan: Plan, device: Device, /) -> SupportsFloat:
        """Milliseconds, launches included; a number that is not finite is an error."""
        ...
