"""Emission dialects: how one tree is spelled for the compilers of different devices.

Source: design/kernels.md. PoCL's built-in functions are real calls that spill vector registers, so
its dialect uses operators and pointer casts; other compilers treat both spellings alike.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """A row of the emission table.

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
        the width say so: the device then moves them in one piece.
    unroll_by
        By how much innermost loops are unrolled in kernels with work-groups; 0: not. PoCL runs each step of other
        such loops for all work-items of the group before the next, with their private variables in memory (matrix
        multiplication in tiles is then 4 times slower).
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
    volatile_rereads
        Global memory that a kernel writes and reads again is volatile where work-groups may have several work-items:
        PoCL 3.0 reads some of it before it is written.
    max_work_group
        The largest number of work-items in a group.
    group_items
        Work-items of a group for kernels of mapGlb; None: one item a group where each does much work,
        else the device's choice.
    local_bytes
        Local memory of a group, in bytes.
    """

    name: str
    vector_access: str = "vload"
    plain_operators: bool = False
    math_bytes: int | None = None
    named_arrays: bool = True
    indexed_private: bool = True
    aligned_vectors: bool = False
    unroll_by: int = 0
    sums_apart: bool = False
    unroll_long: int = 0
    sincos: bool = False
    volatile_rereads: bool = False
    max_work_group: int = 256
    group_items: int | None = None
    local_bytes: int = 32768
    options: tuple[str, ...] = ("-cl-mad-enable",)


GENERIC = Dialect("generic")
POCL = Dialect(
    "pocl",
    vector_access="cast",
    plain_operators=True,
    math_bytes=32,
    indexed_private=False,
    unroll_by=4,
    sums_apart=True,
    volatile_rereads=True,
    max_work_group=4096,
    local_bytes=2 << 20,
)
INTEL = Dialect("intel", vector_access="cast", unroll_by=4, max_work_group=8192, local_bytes=256 << 10)
NVIDIA = Dialect(
    "nvidia",
    vector_access="cast",
    aligned_vectors=True,
    unroll_by=8,
    unroll_long=512,
    sincos=True,
    max_work_group=1024,
    group_items=256,
    local_bytes=48 << 10,
)

DIALECTS = {d.name: d for d in (GENERIC, POCL, INTEL, NVIDIA)}
