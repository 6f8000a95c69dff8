"""What a device is to code generation and to the cost models: how text is spelled for it, limits, and figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices.levels import Level, LevelName
from lift_egraph.language.types import WIDTHS, Scalar, Vector, bytes_of

_VECTOR_REGISTERS, _SPILLED = 32, 2  # of a CPU's work-item, and how many times these its private memory may take
REGISTER = 4  # bytes of one of a GPU's work-item
_CORRECTLY_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
_INEXACT = (
    *("-cl-mad-enable", "-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations", "-cl-no-signed-zeros"),
    *("-cl-finite-math-only", "-cl-denorms-are-zero", "-cl-single-precision-constant"),
)


@cache
def registers_of(t: Scalar | Vector) -> int:
    """How many of them a value takes."""
    return -(-bytes_of(t) // REGISTER)


@dataclass(frozen=True)
class Dialect:
    """How one tree is spelled for a device's compiler; others than PoCL's treat both spellings of most things alike.

    Parameters
    ----------
    vector_access
        ``cast``: through a pointer to an unaligned vector type; ``vload``: by ``vload16`` and ``vstore16``.
    plain_operators
        Spell abs and conversions without built-in functions.
    math_bytes
        The widest vector that built-in functions such as exp take; wider ones are computed in pieces. (On CPUs
        that its LLVM does not know, PoCL's functions on 64-byte vectors crash.)
    named_arrays
        Private arrays become named variables; without, they stay arrays under ``#pragma unroll``.
    indexed_private
        Whether private arrays may be read at an index that is known at run time only; without, the element is chosen
        among variables. (PoCL 3.0 loses what groups of several work-items write to such arrays.)
    aligned_vectors
        Global memory starts at a multiple of the widest vector, so accesses whose index is a multiple of
        the width say so: the device then moves them in one piece. Overlapping windows are put together of such
        vectors (`lift_egraph.codegen.passes.aligned`; on an H200 a stencil of 25 points takes half the time).
    unroll_by
        By how much innermost loops are unrolled in kernels with work-groups; 0: not. PoCL runs each step of other
        such loops for all work-items of the group before the next, with their private variables in memory (matrix
        multiplication in tiles is then 4 times slower). So are, in all kernels, loops that add up blocks of results
        in vectors (matrix products of doubles take 0.92 of the processor time on PoCL, 0.88 to 0.94 on Intel's).
    sums_apart
        Local memory is read at ``(tile + rest)[lcl_0]``, and addresses of vectors and of local memory have no named
        part. PoCL adds 32-bit sums up before it widens them, and keeps what is needed behind a barrier in memory: it
        no longer knows what lies next to each other (a convolution is 1.6 times slower, matrix multiplication 1.2).
    unroll_long
        Statements to which long loops are unrolled, in kernels without groups and with barriers or short loops
        inside too: by `unroll_by` at the least, and by four times that or wholly at the most; 0: not. On an H100 the
        loads of several steps are then under way together (matrix multiplication in tiles 1.3 times, an N-body step
        1.4 times as fast). Not so where the loads go to places that are read from memory (molecular dynamics).
    sincos
        Sine and cosine of one value are computed together (1.4 times as fast on an H100).
    inline_math
        Sine, cosine and powers of ``f32``, exp and log of scalars, and roots and whole parts are spelled out
        (`lift_egraph.codegen.text.inline_math`): PoCL's take 4 times as long in lanes, and 4 to 20 times alone; a
        power whose base and exponent are not known 6 times in lanes, and 300 times alone.
    inline_halves
        Scalar halves are converted by functions of clang, of which an instruction comes where the processor has one.
    few_branches
        Both sides of a condition are computed where the second is little work: compilers make no vectors around what is
        read behind a branch.
    volatile_rereads
        Global memory that a kernel writes and reads again is volatile where work-groups may have several work-items:
        PoCL 3.0 reads some of it before it is written.
    reads_ahead
        Loops over tiles in local memory read the next tile into registers while they work on one.
    to_and_fro
        Large blocks of results are updated row by row, every second row backwards
        (`lift_egraph.codegen.passes.serpentine`).
    borders_apart
        Loops along the border of a padded array choose what to read in their first and last steps alone: on Intel's
        runtime a stencil of 25 points takes less than half the time.
    streams
        A ``toStream`` that is longer than the units' own caches is written around them, by a built-in function of Clang
        (`lift_egraph.codegen.passes.streaming`); buffers then begin at a multiple of 64 bytes.
    transposes
        Lanes that go along rows side by side read squares of them, which are transposed in registers
        (`lift_egraph.codegen.passes.transposed`), and rows that they go along often are copied once (`lane_copies`).
    loops_together
        Loops that count alike, whose sums do not need each other, become one (`lift_egraph.codegen.passes.together`).
    reciprocals
        Loops divide by what is the same in each of their steps by multiplying with its reciprocal
        (`lift_egraph.codegen.passes.quotients`), where floats may differ from those of the division and no kernel
        takes whole parts of floats, or compares them.
    rows_in_results
        Rows of which a result is computed element by element are kept there, not in private memory
        (`lift_egraph.codegen.passes.rows_in_results`), unless it is written around the caches.
    whole_vectors
        Private arrays of numbers that are read and written as whole vectors alone are arrays of vectors
        (`lift_egraph.codegen.passes.whole_vectors`).
    atomics
        Reductions by index outside of all loops combine their elements in memory, with a work-item for each, by
        atomic operations; on a CPU the results of chunks are as fast (`lift_egraph.workbench.changes.placed`).
    bins
        Bytes of local memory at most for results of their own that groups combine their elements with first, by atomic
        operations; what they have is then combined with all results.
    exchange
        How the work-items of a sub-group pass values to each other: by PTX (``ptx``), by the extensions of Intel and
        Khronos (``intel``), or ``none``. The level `sub_group` says how many there are.
    inline_ptx
        The compiler takes PTX between its lines: a sum of floats in memory is then one instruction.
    groups_apart
        The groups of a mapGlb whose work-items all have something to do, at no border of what they read, ask that once
        each, and not each of their items: PoCL makes vectors of their loops (a map of exp takes a third of the time).
    in_one_dimension
        Kernels whose groups have one work-item each are launched in one dimension, so that groups which are neighbours
        in the first one, and read the same vectors, come after each other: Intel's runtime shares out several
        dimensions in another order.
    groups_of_256
        Kernels of mapGlb run in groups of 256 work-items; else in one item a group where each does much work, and in
        groups of the device's choice where not, unless it would find small ones only.
    contracts
        A product and a sum may become one operation, which rounds once.
    options
        What the device's compiler is given.
    """

    vector_access: Literal["cast", "vload"] = "vload"
    plain_operators: bool = False
    math_bytes: int = 128
    named_arrays: bool = True
    indexed_private: bool = True
    aligned_vectors: bool = False
    unroll_by: int = 0
    sums_apart: bool = False
    unroll_long: int = 0
    sincos: bool = False
    inline_math: bool = False
    inline_halves: bool = False
    few_branches: bool = False
    volatile_rereads: bool = False
    reads_ahead: bool = False
    to_and_fro: bool = False
    borders_apart: bool = False
    streams: bool = False
    transposes: bool = False
    loops_together: bool = False
    reciprocals: bool = False
    rows_in_results: bool = False
    whole_vectors: bool = False
    groups_apart: bool = False
    atomics: bool = False
    bins: int = 0
    exchange: Literal["none", "ptx", "intel"] = "none"
    inline_ptx: bool = False
    in_one_dimension: bool = False
    groups_of_256: bool = False
    contracts: bool = True
    options: tuple[str, ...] = ("-cl-mad-enable",)

    @property
    def exact(self) -> Dialect:
        """The same, for kernels whose operations on floats each round as IEEE 754 says."""
        options = (*(option for option in self.options if option not in _INEXACT), _CORRECTLY_ROUNDED)
        return replace(self, contracts=False, inline_math=False, reciprocals=False, options=options)


@dataclass(frozen=True)
class Cpu:
    """What the cost model counts with where a compute unit runs a work-group as a loop, one work-item after the other.

    Parameters
    ----------
    most_lanes
        Lanes of ``f32`` that the runtime's compiler uses, where the device has more.
    group_ns
        Nanoseconds to start a group.
    barrier_cycles
        Cycles of each work-item that comes to a barrier.
    calls_functions
        Mathematical functions are calls; else the compiler inlines them. Loops with them do not become vectors.
    vectorises_items
        The compiler lets neighbouring work-items share vectors.
    gathers_items
        It gathers and scatters these vectors lane by lane, also where their lanes lie side by side.
    joins_scalars
        The compiler keeps private variables in one vector register where vectors are put together from them.
    reassociates
        The compiler makes vectors of loops that add up floats, though they are then added in another order.
    """

    group_ns: float
    barrier_cycles: float
    calls_functions: bool
    vectorises_items: bool
    most_lanes: int = 16
    gathers_items: bool = False
    joins_scalars: bool = False
    reassociates: bool = False

    def own_lanes(self, vector_width: int) -> int:
        """Lanes of ``f32`` in the registers that the compiler uses."""
        return min(vector_width, self.most_lanes)


@dataclass(frozen=True)
class Gpu:
    """What the cost model counts with where a compute unit runs several groups at once, in warps.

    Parameters
    ----------
    warp
        Work-items that run in lock-step and whose neighbouring accesses are merged.
    lanes
        Fused multiply-adds of ``f32`` that a unit does in a cycle.
    resident_items
        Work-items that a unit holds at once, at the most.
    local_bytes_a_cycle
        Bytes of local memory that a unit reads in a cycle.
    l1_line
        Bytes of a line of a unit's own cache.
    sector, sectors_a_cycle
        Bytes that memory is moved in, and how many of these pieces a cycle brings from the cache.
    l2_bandwidth
        That of the cache that all units share, over that of global memory.
    memory_latency
        Nanoseconds.
    barrier_cycles
        Cycles of a group at a barrier.
    """

    warp: int
    lanes: int
    resident_items: int
    local_bytes_a_cycle: int
    l1_line: int
    sector: int
    sectors_a_cycle: int
    l2_bandwidth: float
    memory_latency: float
    barrier_cycles: float

    def own_lanes(self, vector_width: int) -> int:
        """Work-items are the lanes."""
        return vector_width


@dataclass(frozen=True)
class Device:
    """A device, or a family of them. OpenCL reports no throughput: the figures rank candidates, they predict no times.

    Parameters
    ----------
    name
        The file's that describes it.
    platform, named
        OpenCL's name of the platform, and a part of the device's name; empty where any will do.
    kind
        A ``cpu`` runs a work-group as a loop on one core, a ``gpu`` in lock-step warps; accelerators count as such.
    compute_units, clock_mhz, cache
        As OpenCL reports, or where it reports 0 as described. The cache is the largest, in bytes: as described, too,
        where a runtime reports a unit's own.
    vector_width
        Lanes of ``f32`` in one hardware vector register, as OpenCL reports; 1 where work-items are the lanes.
    max_work_group, local_memory
        Work-items, and bytes of local memory, that a group may have; less where OpenCL reports less.
    fixed_local
        Bytes of local arrays of fixed sizes that a group may have, where these are more than OpenCL reports; else 0.
    launch_overhead
        Microseconds for one kernel launch.
    local_memory_is_cheap
        Whether staging data in local memory can pay off. On PoCL a barrier splits the work-item loop.
    groups_progress
        Whether a group that has started goes on, to its end, while others that have started wait for it.
    built_together
        How many kernels its compiler is given at once, while a search waits for it.
    emission
        How kernels are spelled.
    throughput
        What the cost model of its kind counts with.
    levels
        Who works on it, from the grid on, with which memory: which parallel maps there are, and how many workers are
        worth trying.
    variants
        Descriptions that count instead; the first that fits.
    """

    name: str
    kind: Literal["cpu", "gpu"]
    compute_units: int
    clock_mhz: int
    vector_width: int
    cache: int
    max_work_group: int
    local_memory: int
    launch_overhead: float
    local_memory_is_cheap: bool
    throughput: Cpu | Gpu
    levels: tuple[Level, ...]
    platform: str = ""
    named: str = ""
    fixed_local: int = 0
    groups_progress: bool = False
    built_together: int = 1
    emission: Dialect = field(default_factory=Dialect)
    variants: tuple[Device, ...] = ()

    def level(self, name: LevelName) -> Level:
        """One of its levels."""
        return next(level for level in self.levels if level.name == name)

    @property
    def groups(self) -> int:
        """Groups that are worth trying on all of it."""
        return self.compute_units * int(self.level("grid").workers[0])

    @property
    def most_local(self) -> int:
        """Bytes of local arrays that a group of a kernel may have: more than are worth taking where groups wait."""
        return max(self.local_memory, min(self.fixed_local, self.level("group").local_memory))

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Work-items of a group that are worth trying, as far as a group may have so many."""
        return tuple(int(n) for n in self.level("group").workers if n <= self.max_work_group)

    @property
    def exact(self) -> Device:
        """The same, for kernels whose operations on floats each round as IEEE 754 says."""
        return replace(self, emission=self.emission.exact)

    @property
    def run_once(self) -> Device:
        """The same, for kernels that are checked and not timed: what its compiler unrolls takes it seconds."""
        return replace(self, emission=replace(self.emission, unroll_by=0, unroll_long=0))

    @property
    def sub_group(self) -> int:
        """Work-items that pass values to each other without memory; 0 where none do."""
        together = (level for level in self.levels if level.name == "sub_group")
        return next((int(level.workers[0]) for level in together if self.emission.exchange != "none"), 0)

    @property
    def has_groups(self) -> bool:
        """Whether the work of a group is best shared by several work-items."""
        return max(self.group_sizes, default=1) > 1

    @property
    def mapping(self) -> Literal["cpu", "gpu"]:
        """Which parallel maps there are, as derivations name it: those of groups too (``gpu``), or of work-items."""
        return "gpu" if self.has_groups else "cpu"

    @property
    def lanes(self) -> int:
        """Lanes of ``f32`` in a hardware register that kernels use; 1 where work-items are the lanes."""
        return self.throughput.own_lanes(self.vector_width)

    @property
    def widths(self) -> tuple[int, ...]:
        """Elements of the vectors that are worth trying and that the language has, the best first."""
        return tuple(int(n * self.lanes) for n in self.level("vector").workers if 2 <= n * self.lanes <= WIDTHS[-1])

    @property
    def registers(self) -> int:
        """Registers of a work-item: x86 has twice as many where they have 16 lanes."""
        return self.level("item").registers or (32 if self.lanes >= 16 else 16)

    @property
    def private_bytes(self) -> int:
        """Private memory that a work-item may have: what is spilled stays near on a CPU, and goes far on a GPU."""
        known = self.level("item").registers
        return REGISTER * known if known else 4 * self.lanes * _VECTOR_REGISTERS * _SPILLED

    def resident(self, registers: int) -> int:
        """Work-items of so many registers that a unit holds at once."""
        return max(self.level("group").registers // registers, 1)

    @property
    def bandwidth(self) -> float:
        """GB/s between global memory and all compute units."""
        one, most = self.level("group").bandwidth, self.level("grid").bandwidth
        return min(most, one * self.compute_units) if one else most

    @property
    def caches(self) -> tuple[int, ...]:
        """Bytes of a compute unit's own caches, the nearest first."""
        return self.level("group").caches

    @property
    def own_caches(self) -> int:
        """Bytes that the compute units' own caches hold together."""
        return self.caches[-1] * self.compute_units

    def calibrated(self, gb_per_s: float) -> Device:
        """The same with the bandwidth that was measured between global memory and all units; a unit has its share of
        it, or what it is known to reach alone.
        """
        alone = self.level("group").bandwidth
        share = min(max(alone, gb_per_s / self.compute_units), gb_per_s) if alone else 0.0
        reached = {"grid": gb_per_s, "group": share}
        levels = (replace(level, bandwidth=reached.get(level.name, 0.0)) for level in self.levels)
        return replace(self, levels=tuple(levels))

    def fits(self, info: DeviceInfo) -> bool:
        """Whether it describes an OpenCL device."""
        kind = "cpu" if info.kind == "cpu" else "gpu"
        return kind == self.kind and self.platform in ("", info.platform) and self.named in info.name

    @property
    def whom(self) -> str:
        """Whom it fits, for messages."""
        facts = (f"platform {self.platform!r}" if self.platform else "", f"named {self.named!r}" if self.named else "")
        return ", ".join(fact for fact in (self.kind, *facts) if fact)

    def on(self, info: DeviceInfo) -> Device:
        """The description of one OpenCL device: with what OpenCL reports of it, and what its name says."""
        found = next((v for v in self.variants if v.fits(info)), self)
        return replace(
            found,
            variants=(),
            compute_units=info.compute_units,
            clock_mhz=info.clock_mhz or found.clock_mhz,
            vector_width=info.vector_width if found.kind == "cpu" else found.vector_width,
            cache=info.cache if info.cache > found.caches[-1] else found.cache,
            max_work_group=min(info.max_work_group, found.max_work_group),
            local_memory=min(info.local_memory, found.local_memory),
        )
