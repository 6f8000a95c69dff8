"""From a low-level program to a plan: lowering, clean-up, barriers, text."""

from __future__ import annotations

from math import prod

from codegen.barriers import barriers_after_maps, place_barriers
from codegen.c_ast import Body, Buffer, For, Load, Name, walk
from codegen.common_indices import share_indices
from codegen.dialect import Dialect
from codegen.host import Host, LoweredKernel, lower_program
from codegen.kernel import Argument, BufferInfo, Kernel, Launch, Origins, Plan, ScalarInfo
from codegen.names import c_name
from codegen.optimise import ALL, Optimisations
from codegen.printer import Line, Printer
from codegen.repeats import share_texts
from codegen.sines import pair_sines
from codegen.steps import stepped
from codegen.tidy import inline_constants, mark_short_loops, sink_constants, unroll
from codegen.views import Memory
from lift_egraph import ir
from lift_egraph.check import type_of
from lift_egraph.describe import blame, describe
from lift_egraph.errors import DeviceProblem
from lift_egraph.nat import Nat
from lift_egraph.types import DataType, Vector, leaves, scalar_of, width_of

_MUCH_WORK = 256  # steps of a work-item's loops from which it gets a group of its own on a CPU …
_FEW_ITEMS = 1 << 14  # … unless there are more work-items than this


def compile_program(
    program: ir.Program,
    dialect: Dialect,
    *,
    launch: Launch | None = None,
    term_text: str | None = None,
    optimise: Optimisations = ALL,
) -> Plan:
    """The OpenCL kernels of a low-level program at concrete sizes.

    Parameters
    ----------
    launch
        Launch sizes for the kernels with parallel maps, instead of the inferred ones.
    term_text
        The program as text, for the comment above the kernels.
    optimise
        Which optimisations are on: all, but for ablations.

    Raises
    ------
    NestingProblem
        If the term is not low-level, or breaks OpenCL's thread hierarchy or memory rules.
    DeviceProblem
        If a kernel exceeds a limit of the device.
    """
    host, result = lower_program(program, dialect, launch, optimise)
    printer = Printer(dialect, optimise)
    base = c_name(program.name, set(host.taken))
    kernels: list[Kernel] = []
    texts: list[list[Line]] = []
    for number, lowered in enumerate(host.kernels):
        name = base if len(host.kernels) == 1 else f"{base}_{number + 1}"
        kernel, made = _finish(name, lowered, host, result, dialect, printer, launch)
        kernels.append(kernel)
        texts.append(made)
    kernels = share_texts(kernels)
    shared: dict[str, list[Line]] = {}
    for kernel, made in zip(kernels, texts, strict=True):
        shared.setdefault(kernel.name, made)
    lines = [line for made in shared.values() for line in (*made, Line(""))]
    header = _header(program, dialect, kernels, term_text)
    before = f"{header}\n{printer.preamble()}"
    lines = [*(Line(text) for text in before.split("\n")[:-1]), *lines[:-1]]
    return Plan(
        program.name,
        dialect.name,
        _text(lines),
        tuple(kernels),
        _buffers(program, host, result),
        tuple(ScalarInfo(s.name, scalar_of(s.type).name, value, path) for value, path, s in host.scalars),
        dialect.options,
        _origins(lines),
    )


def _text(lines: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _origins(lines: list[Line]) -> Origins:
    """The table of where lines come from, each subterm described once."""
    numbers: dict[int, int] = {}
    texts: dict[str, int] = {}
    for line in lines:
        if line.origin is not None and id(line.origin) not in numbers:
            numbers[id(line.origin)] = texts.setdefault(describe(line.origin), len(texts))
    return Origins(tuple(texts), tuple(None if x.origin is None else numbers[id(x.origin)] for x in lines))


def _finish(
    name: str,
    lowered: LoweredKernel,
    host: Host,
    result: Memory,
    dialect: Dialect,
    printer: Printer,
    wanted: Launch | None,
) -> tuple[Kernel, list[Line]]:
    body = lowered.body if host.optimise.barriers else barriers_after_maps(lowered.body)
    local_counts = {level.dimension: n for level, n in lowered.threads.items() if level.kind == "lcl"}
    body = unroll(place_barriers(body, local_counts), named_arrays=dialect.named_arrays)
    body = mark_short_loops(sink_constants(inline_constants(body)))
    local_bytes = sum(b.bytes for b in lowered.locals)
    if local_bytes > dialect.local_bytes:
        largest = max(lowered.locals, key=lambda b: b.bytes)
        problem = DeviceProblem(
            f"{name} needs {local_bytes} bytes of local memory a group, {dialect.name} has {dialect.local_bytes}: "
            f"use smaller tiles; the largest is {largest.name} with {largest.bytes} bytes"
        )
        raise blame(problem, largest.origin)
    launch = lowered.launch
    few = prod(launch.global_size) <= _FEW_ITEMS
    if wanted is None and launch.local_size is None and few and _work(body) >= _MUCH_WORK:
        launch = Launch(launch.global_size, (1, 1, 1))
    used = {part.buffer.name for part in walk(body) if isinstance(part, Load) and part.buffer.space == "global"}
    named = {part.name for part in walk(body) if isinstance(part, Name)}
    every = [b for _, _, b in host.inputs] + host.temporaries + [c.buffer for c in result.cells]
    buffers = [b for b in every if b.name in used]
    scalars = [s for _, _, s in host.scalars if s.name in named]
    arguments = [Argument("buffer", b.name) for b in buffers] + [Argument("scalar", s.name) for s in scalars]
    printed = body
    if host.optimise.indices:
        printed = share_indices(stepped(body), host.taken, sums_apart=dialect.sums_apart)
    if dialect.sincos:
        printed = pair_sines(printed, host.taken)
    lines = printer.kernel(name, buffers, scalars, list(lowered.locals), printed, launch)
    return Kernel(name, _text(lines), tuple(arguments), launch, local_bytes, body), lines


def _work(body: Body) -> int:
    """The steps that one work-item runs, roughly."""
    total = 0
    for statement in body:
        inner = getattr(statement, "body", None)
        steps = statement.trips if isinstance(statement, For) else 1
        total += steps * _work(inner) if inner is not None else 1
    return total


def _buffers(program: ir.Program, host: Host, result: Memory) -> tuple[BufferInfo, ...]:
    def info(buffer: Buffer, role: str, value: str, path: tuple[int, ...], t: DataType) -> BufferInfo:
        shapes = {components: _shape(sizes, leaf) for components, sizes, leaf in leaves(t)}
        return BufferInfo(
            buffer.name, role, scalar_of(buffer.element).name, buffer.length, value, path, shapes.get(path, ())
        )

    types = {i.name: i.type for i in program.inputs}
    inputs = [info(b, "input", value, path, types[value]) for value, path, b in host.inputs]
    outputs = [info(c.buffer, "output", "result", c.choices, type_of(program.body)) for c in result.cells]
    temporaries = [BufferInfo(b.name, "temporary", scalar_of(b.element).name, b.length) for b in host.temporaries]
    return (*inputs, *temporaries, *outputs)


def _shape(sizes: tuple[Nat, ...], leaf: DataType) -> tuple[int, ...]:
    lanes = (width_of(leaf),) if isinstance(leaf, Vector) else ()
    return (*(s.evaluate({}) for s in sizes), *lanes)


def _header(program: ir.Program, dialect: Dialect, kernels: list[Kernel], term_text: str | None) -> str:
    lines = [f"// {program.name}, generated by lift-egraph for {dialect.name}"]
    if term_text:
        lines += ["//", *(f"//   {line}" for line in term_text.splitlines()), "//"]
    for kernel in kernels:
        local = kernel.launch.local_size
        group = f"groups of {' x '.join(map(str, local))}" if local else "groups as the device likes"
        lines.append(f"// {kernel.name}: {' x '.join(map(str, kernel.launch.global_size))} work-items, {group}")
    return "\n".join(lines) + "\n"
