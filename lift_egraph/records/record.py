"""What a record holds: one kernel of one program on one device, how it came about, and what became of it.

`record.schema.json` is its schema for other programs, as JSON Schema. A journal has one a line (`lines`).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.pretty import print_program

FORMAT = 1
MOST_SAMPLES = 50  # of the runs of a kernel: a short one runs thousands of times

Count = Annotated[int, Meta(ge=1, lt=2**31)]
Seconds = Annotated[float, Meta(ge=0)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Sizes = tuple[Count, Count, Count]
Validity = Literal["valid", "wrong", "failed to build", "refused", "crashed", "too slow"]


PHASES = (
    *("alternatives", "stages", "invariants", "remainders", "algebra", "joined_sums"),
    *("packing", "row_packing", "borders", "tiling"),
    *("items", "blocking", "rows_at_a_time", "columns", "rows", "lanes", "groups", "loops", "scans", "scan_blocks"),
    *(
        "index_chunks",
        "interleaving",
        "views",
        "levels",
        "first_tile",
        "second_tile",
        "registers",
        "sharing_columns",
        "matrices",
        "slices",
        "slice_levels",
    ),
    *("item_loops", "loop_tile", "block_levels", "block_registers", "row_sums", "row_loops", "row_tile", "tree"),
    *("tree_levels", "column_sums", "column_levels", "column_tile", "window_tiles", "window_levels", "window_copies"),
    *("item_vectors", "vector_tile", "group_folds", "group_fold_levels", "item_folds", "distinct_places", "siblings"),
    *("atomic_places", "look_back", "look_back_levels", "chunk_staging", "vector_levels", "folded_scans"),
    *("sub_groups", "sub_group_folds", "group_sweeps", "sub_group_tree", "row_lanes", "row_lane_levels"),
    *("look_back_runs", "item_sides", "range_columns", "range_column_levels"),
    *("rows_of_steps", "stencil_steps", "step_tiles", "tiles_of_steps", "step_levels", "padding"),
    *("tables", "products_apart", "large_apart", "rows_apart", "long_rows", "algorithmic", "lowering", "sharing"),
    *("memory", "streams", "halves", "turns", "inlining", "naming", "one_row"),
)
"""What a phase of a way may be called; those of plans are in `lift_egraph.workbench.planning.plan.PLANNED`, too."""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a record: every field must be there, and no other."""


class RulePart(Part, frozen=True):
    """A rule of the user's: its name, its file, and the SHA-256 of what that said.

    Null stands for the file of a rule of the book, and of one that a program gave.
    """

    name: str
    file: str | None
    hash: Sha256 | None


class PhasePart(Part, frozen=True, omit_defaults=True):
    """A phase of the search on the way to a term, and the program that was taken from it, as text.

    Attributes
    ----------
    rules
        Those of the user's that ran beside the phase's own; left out where there are none.
    exact
        Whether rules that change results of floats took no part; left out where they did.
    """

    phase: Annotated[str, Meta(pattern=f"^({'|'.join(PHASES)})$")]
    iterations: Annotated[int, Meta(ge=0, lt=2**31)]
    device_kind: Annotated[str, Meta(pattern="^(cpu|gpu|other)$")]
    tiling: list[tuple[Count, list[Count]]]
    widths: list[Count]
    spaces: list[Annotated[str, Meta(pattern="^(local|private)$")]]
    term: str
    rules: list[RulePart] = field(default_factory=list)
    exact: bool = False


class ProgramPart(Part, frozen=True):
    """The program at its sizes: `hash` is that of `program_hash`, `text` what it says."""

    name: str
    hash: Sha256
    sizes: dict[str, int]
    text: str


class LaunchPart(Part, frozen=True):
    """A kernel, and how many work-items run it; a local size of null is left to the device."""

    kernel: str
    global_size: Sizes
    local_size: Sizes | None


class Record(Part, frozen=True):
    """A kernel that was measured, or tried in vain; times are in seconds.

    Attributes
    ----------
    term
        The low-level program as text: with the description of the device it is compiled again without a search.
    point
        What the kernels are known by: `point_of`.
    phases
        The way from the program to the term. None is known for kernels that are not from a search.
    predicted
        Of the performance model.
    description
        The name of the device's description that the kernels were written for.
    versions
        Of the packages: ``lift-egraph``, ``pyopencl``, ``numpy``, ``python``.
    date
        When it was measured, in UTC (ISO 8601).
    reason
        How its results were compared, or what is wrong with it.
    samples, runs, median
        Times of single runs, in their order: of `runs` at most 50, evenly spread. None if it was not timed.
    limit
        How long it was given for its build and run.
    """

    format: Literal[1]
    program: ProgramPart
    term: str
    point: Sha256
    launches: list[LaunchPart]
    phases: list[PhasePart]
    predicted: float
    device: DeviceInfo
    description: str
    versions: dict[str, str]
    host: str
    date: str
    validity: Validity
    reason: str
    samples: list[Seconds]
    runs: Annotated[int, Meta(ge=0)]
    median: Seconds | None
    limit: Seconds

    @property
    def exact(self) -> bool:
        """Whether its kernels keep each bit of floats: no phase had a rule that does not."""
        return bool(self.phases) and all(part.exact for part in self.phases)


def program_hash(program: ir.Program) -> str:
    """What a program at concrete sizes is known by, whatever its own name, its binders' and its sizes' are.

    Its inputs count with their names, types and ranges.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> first = parse_program("program f(x: [f32]8) = map(fun a => a + 1.0, x)")
    >>> same, other = parse_program("program g(x: [f32]8) = map(fun b=>b+1.0, x)"), replace(first, body=first.inputs[0])
    >>> program_hash(first) == program_hash(same), program_hash(first) == program_hash(other)
    (True, False)
    """
    nameless = replace(program, name="p", sizes=(), body=canonical(program.body), laws=())
    return _sha256(print_program(nameless, width=1 << 30))


def point_of(term: ir.Program, plan: Plan) -> str:
    """What the kernels of a low-level program are known by, however they spell its binders.

    That is the program, the description of the device that they were written for, and how they are built and launched.
    """
    launches = (f"{k.launch.global_size} {k.launch.local_size}" for k in plan.kernels)
    return _sha256("\n".join((program_hash(term), plan.dialect, *launches, *plan.options)))


def launches_of(plan: Plan) -> list[LaunchPart]:
    """How the kernels of a plan are launched."""
    return [LaunchPart(k.name, k.launch.global_size, k.launch.local_size) for k in plan.kernels]


def thinned(times: tuple[float, ...]) -> list[float]:
    """Times as `Record.samples` has them.

    >>> thinned((1.0, 2.0, 3.0)), len(thinned(tuple(map(float, range(10_000)))))
    ([1.0, 2.0, 3.0], 50)
    """
    count = min(MOST_SAMPLES, len(times))
    return [times[i * len(times) // count] for i in range(count)]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def version_of(package: str) -> str:
    """The version of a package, or that there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
