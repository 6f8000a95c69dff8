"""The language of LIFT, its e-graph, and the workbench that joins all packages.

The rooms, from the ground up; import-linter sees to it that none imports what stands above it, or back in a circle:

- `language` and `process` (children that can be killed) know nothing but `errors`;
- `egraph` encodes and saturates, `meaning` interprets, `programs` are the bundled ones;
- `guided` searches in stages, `soundness` checks rules, `codegen` makes and runs kernels, and `dsl` is what rules are
  written with;
- `rules` is the rule book, `extract` chooses terms, `derivation` says why a term was found, `records` keeps what was
  measured;
- `workbench` joins them, and `cli` and `api` show it to people: scripts and notebooks import from `api`.

A room's modules are imported by their own names, so that a child process loads no more than it uses. For programs
that only use a kernel there is `lift_egraph.load`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lift_egraph.codegen.running.loaded import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """`load`, with PyOpenCL only where it is used."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lift_egraph.codegen.running.loaded import load

    return load
