"""Counts what kernels do while they run: each access, barrier, loop body and branch in their text reports itself.

The text that the device gets is rewritten, so nothing here knows the trees that features are counted in.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import pyopencl as cl

from lift_egraph.codegen.plans.arrays import byte_size
from lift_egraph.codegen.plans.kernel import Kernel, Launch, Plan
from lift_egraph.codegen.running.opencl import build, memory_of, passed
from lift_egraph.language.scalar import NUMPY_TYPES
from tests.codegen.corpus.harness import merged

_IF, _FOR, _BARRIER, _LOCAL, _CURSOR, _SIZES = range(6)  # slots of a work-item: six sizes, those of loops, of accesses
_FIRST_LOOP = _SIZES + 6
_RECORD = 4  # numbers: site, steps of the loops around, address, bytes
_ITEM = "((get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0))"
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CAST = re.compile(r"\*\((?:volatile )?(global|local) (?:const )?([a-z]+)(\d*)(?:_u)? \*\)\(")
_VECTOR = re.compile(r"\bv(load|store)(_half)?(\d*)(?:_rte)?\(")
_PARAMETER = re.compile(r"(?:volatile )?global (?:const )?\w+ \*(?:restrict )?(\w+)")
_ARRAY = re.compile(r"\s*local \w+ (\w+)\[")
_POINTER = re.compile(r"\s*(global|local) \w+ \*(\w+) = ")


@dataclass(frozen=True)
class Site:
    """A place in the text that loads or stores."""

    kind: str
    space: str


@dataclass
class Instrumented:
    """A kernel whose events are counted, in `slots` numbers of each work-item."""

    kernel: Kernel
    source: str
    slots: int
    loops: int
    sites: dict[int, Site]


@dataclass
class Counts:
    """What the work-items of a plan did, in all: events by their features' names, and lines as (touched, times).

    `sizes` are the global and local ones of the kernel with the most accesses.
    """

    items: int = 0
    sizes: tuple[int, ...] = ()
    accesses: int = -1
    local_memory: int = 0
    events: Counter[str] = field(default_factory=Counter)
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)


def instrumented(kernel: Kernel) -> Instrumented:
    """A kernel that counts; it takes two more arguments, the counts of each item and a trace of addresses."""
    return _Rewriting(kernel).made()


class _Rewriting:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.spaces: dict[str, str] = {}
        self.sites: dict[int, Site] = {}
        self.loops = kernel.source.count("for (")
        self.around: list[int | None] = []  # the slot of each open block's loop
        self.entered = 0

    def made(self) -> Instrumented:
        lines = [text for line in self.kernel.source.split("\n") for text in self.line(line)]
        slots = self.first_site + len(self.sites)
        source = "\n".join(lines).replace("SLOTS_", str(slots))
        return Instrumented(self.kernel, source, slots, self.loops, self.sites)

    @property
    def first_site(self) -> int:
        return _FIRST_LOOP + self.loops

    def line(self, line: str) -> Iterator[str]:
        start = line.lstrip()
        if start.startswith("kernel void"):
            self.spaces |= dict.fromkeys(_PARAMETER.findall(line), "global")
            assert line.endswith(") {")
            comma = "" if line.endswith("() {") else ", "
            yield line[:-3] + f"{comma}global volatile uint *counts_, global long *trace_, const uint room_) {{"
            yield f"  global volatile uint *own_ = counts_ + {_ITEM} * SLOTS_;"
            for d in range(3):
                yield f"  own_[{_SIZES + d}] = get_global_size({d}); own_[{_SIZES + 3 + d}] = get_local_size({d});"
        elif array := _ARRAY.match(line):
            self.spaces[array[1]] = "local"
            yield line
            yield f"  own_[{_LOCAL}] += sizeof({array[1]});"
        elif start.startswith("for ("):
            slot = _FIRST_LOOP + self.entered
            self.entered += 1
            self.around.append(slot)
            yield f"own_[{slot}] = 0;"
            yield line
            yield f"own_[{slot}]++; own_[{_FOR}]++;"
        elif start.startswith("if ("):
            self.around.append(None)
            yield f"own_[{_IF}]++;"
            yield self.statement(line)
        elif start == "{":
            self.around.append(None)
            yield line
        elif start == "}":
            if self.around:
                self.around.pop()
            yield line
        elif start.startswith("barrier("):
            yield f"own_[{_BARRIER}]++;"
            yield line
        elif pointer := _POINTER.match(line):
            self.spaces[pointer[2]] = pointer[1]
            yield line
        elif not start.startswith("#pragma"):
            yield self.statement(line)

    def statement(self, line: str) -> str:
        """A line whose accesses report themselves."""
        indent = len(line) - len(line.lstrip())
        return line[:indent] + self.rewritten(line[indent:], is_statement=True)

    def rewritten(self, text: str, is_statement: bool = False) -> str:
        made, at = "", 0
        while at < len(text):
            found = self.access_at(text, at, is_statement and at == 0)
            if found:
                replaced, at = found
                made += replaced
            else:
                made += text[at]
                at += 1
        return made

    def access_at(self, text: str, at: int, may_be_place: bool) -> tuple[str, int] | None:
        """What replaces an access that begins here, and where it ends."""
        if cast := _CAST.match(text, at):
            end = _closing(text, cast.end() - 1)
            kind = "store" if may_be_place and text.startswith(" = ", end) else "load"
            address = self.reporting(self.rewritten(text[cast.end() : end - 1]), kind, cast[1], int(cast[3] or 1))
            return text[at : cast.end() - 1] + f"({address})", end
        is_word = at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_.")
        if not is_word and (vector := _VECTOR.match(text, at)):
            end = _closing(text, vector.end() - 1)
            *values, offset, address = _arguments(text[vector.end() : end - 1])
            space = next(s for name, s in self.spaces.items() if re.search(rf"\b{name}\b", address))
            pointer = address if offset == "0" else f"{address} + ({offset})"
            reporting = self.reporting(self.rewritten(pointer), vector[1], space, int(vector[3] or 1))
            parts = [*(self.rewritten(v) for v in values), "0", reporting]
            return f"{vector[0]}{', '.join(parts)})", end
        name = re.compile(r"\w+").match(text, at)
        if not is_word and name and name[0] in self.spaces and text.startswith("[", name.end()):
            return self.element(text, at, name.end(), name[0], may_be_place)
        if text[at] == "(":
            end = _closing(text, at)
            name = re.compile(r"\w+").match(text, at + 1)
            if text.startswith("[", end) and name and name[0] in self.spaces:
                return self.element(text, at, end, name[0], may_be_place)
        return None

    def element(self, text: str, at: int, bracket: int, name: str, may_be_place: bool) -> tuple[str, int]:
        end = _closing(text, bracket)
        kind = "store" if may_be_place and text.startswith(" = ", end) else "load"
        base, index = text[at:bracket], self.rewritten(text[bracket + 1 : end - 1])
        return f"(*{self.reporting(f'&{base}[{index}]', kind, self.spaces[name], 1)})", end

    def reporting(self, pointer: str, kind: str, space: str, lanes: int) -> str:
        """A pointer that reports its use."""
        slot = self.first_site + len(self.sites)
        self.sites[slot] = Site(kind, space)
        steps = "0L"
        for loop in self.around:
            if loop is not None:
                steps = f"({steps} * 1000003L + own_[{loop}])"
        record = ""
        if space == "global":
            record = (
                f"if (room_) {{ global long *to_ = trace_ + ({_ITEM} * room_ + own_[{_CURSOR}]) * {_RECORD}; "
                f"to_[0] = {slot}; to_[1] = {steps}; to_[2] = (long)p_; to_[3] = sizeof(*p_) * {lanes}; }} "
                f"own_[{_CURSOR}]++; "
            )
        return f"({{ __auto_type p_ = {pointer}; own_[{slot}]++; {record}p_; }})"


def _closing(text: str, at: int) -> int:
    """Where the bracket that opens at a place is closed: behind it."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in _CLOSING) - (text[k] in _CLOSING.values())
        if depth == 0:
            return k + 1
    raise ValueError(f"no bracket closes: {text[at:]}")


def _arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _CLOSING) - (letter in _CLOSING.values())
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


# --- runs -----------------------------------------------------------------------------------------


def run(context: cl.Context, plans: Sequence[Plan], warp: int, line: int) -> Iterator[Counts]:
    """The counts of plans whose kernels have different names, in one build; their inputs are zeros."""
    made = {k.name: instrumented(k) for plan in plans for k in plan.kernels}
    counting = [replace(p, kernels=tuple(replace(k, source=made[k.name].source) for k in p.kernels)) for p in plans]
    preambles = [replace(plan, source=plan.source) for plan in plans]
    source = _with_preambles(preambles, [m.source for m in made.values()])
    options = tuple(dict.fromkeys(option for plan in plans for option in plan.options))
    program = build(context, replace(counting[0], source=source, options=(*options, "-cl-opt-disable")))
    queue = cl.CommandQueue(context)
    for plan in plans:
        yield _counts(queue, program, plan, made, warp, line)


def _with_preambles(plans: Sequence[Plan], kernels: Sequence[str]) -> str:
    whole = merged(plans)
    first = re.search(r"^(__attribute__\(\(reqd|kernel void)", whole, re.MULTILINE)
    assert first
    return "\n".join((whole[: first.start()], *kernels))


def _counts(
    queue: cl.CommandQueue, program: cl.Program, plan: Plan, made: dict[str, Instrumented], warp: int, line: int
) -> Counts:
    flags = cl.mem_flags.READ_WRITE
    values = {b.name: cl.Buffer(queue.context, flags, memory_of(byte_size(b))) for b in plan.buffers}
    for buffer in values.values():
        cl.enqueue_fill_buffer(queue, buffer, np.uint8(0), 0, buffer.size)
    values |= {s.name: passed(NUMPY_TYPES[s.element](0)) for s in plan.scalars}
    values |= {s.name: np.int32(s.value) for s in plan.sizes}
    found = Counts()
    lines: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for kernel in plan.kernels:
        counting = made[kernel.name]
        arguments = [values[a.name] for a in kernel.arguments]
        items = prod(kernel.launch.global_size)
        counts, _ = _run(queue, program, kernel, counting, arguments, 0)
        room = int(counts[:, _CURSOR].max())
        again, trace = _run(queue, program, kernel, counting, arguments, room)
        assert np.array_equal(counts, again)
        found.items += items
        found.local_memory = max(found.local_memory, int(counts[:, _LOCAL].max()))
        totals = counts.sum(axis=0)
        found.events.update(ifs=int(totals[_IF]), for_bodies=int(totals[_FOR]), barriers=int(totals[_BARRIER]))
        accesses = int(totals[_FIRST_LOOP + counting.loops :].sum())
        if accesses > found.accesses:
            found.accesses, found.sizes = accesses, tuple(counts[0, _SIZES:_FIRST_LOOP].tolist())
        for slot, site in counting.sites.items():
            found.events[f"{site.space}_{site.kind}s"] += int(totals[slot])
        for kind, touched in _lines(trace, counts[:, _CURSOR], counting.sites, kernel.launch, warp, line):
            lines[kind][0] += touched
            lines[kind][1] += 1
    found.lines = {kind: (touched, times) for kind, (touched, times) in lines.items()}
    return found


def _run(
    queue: cl.CommandQueue, program: cl.Program, kernel: Kernel, made: Instrumented, arguments: list[object], room: int
) -> tuple[np.ndarray, np.ndarray]:
    items = prod(kernel.launch.global_size)
    counts = np.zeros((items, made.slots), np.uint32)
    trace = np.zeros((items, max(room, 1), _RECORD), np.int64)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    on_device = [cl.Buffer(queue.context, flags, hostbuf=a) for a in (counts, trace)]
    ready = cl.Kernel(program, kernel.name)
    ready.set_args(*arguments, *on_device, np.uint32(room))
    cl.enqueue_nd_range_kernel(queue, ready, kernel.launch.global_size, kernel.launch.local_size)
    for host, buffer in zip((counts, trace), on_device, strict=True):
        cl.enqueue_copy(queue, host, buffer)
    queue.finish()
    return counts, trace


def _lines(
    trace: np.ndarray, lengths: np.ndarray, sites: dict[int, Site], launch: Launch, warp: int, line: int
) -> Iterator[tuple[str, int]]:
    """For each access of a warp in a step of its loops: ``load`` or ``store``, and the lines that it touches."""
    together: defaultdict[tuple[object, ...], list[tuple[int, int, int]]] = defaultdict(list)
    for item, records in enumerate(trace):
        group, own = _place(item, launch)
        for site, steps, address, size in records[: lengths[item]].tolist():
            together[group, own // warp, site, steps].append((own, address, size))
    for (_, _, site, _), accesses in together.items():
        first = min(accesses)[1]
        touched = {k for _, a, size in accesses for k in range((a - first) // line, (a - first + size - 1) // line + 1)}
        yield sites[site].kind, len(touched)


def _place(item: int, launch: Launch) -> tuple[tuple[int, ...], int]:
    """The group of a work-item, and its number in it."""
    x, y, _ = launch.global_size
    place = item % x, item // x % y, item // (x * y)
    local = launch.local_size or launch.global_size
    (i, j, k), (a, b, _) = (p % n for p, n in zip(place, local, strict=True)), local
    return tuple(p // n for p, n in zip(place, local, strict=True)), (k * b + j) * a + i
