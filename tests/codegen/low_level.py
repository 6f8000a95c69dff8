"""Low-level terms in the shapes that devices like, and their plans, for the tests of code generation."""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.api import parse_program, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL, Device
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.language import ir

APART = Optimisations(launches=False)


def plan_of(
    made: ir.Program | str,
    device: Device = POCL,
    launch: Launch | None = None,
    optimise: Optimisations = ALL,
    **sizes: int,
) -> Plan:
    """The plan of a program, or of its text, at some sizes."""
    program = parse_program(made) if isinstance(made, str) else made
    return compile_program(specialise(program, sizes), device, launch=launch, optimise=optimise)


def with_caches(device: Device, size: int) -> Device:
    """The device as one unit, whose own caches hold so many bytes."""
    levels = (
        replace(level, caches=(*level.caches[:-1], size)) if level.name == "group" else level for level in device.levels
    )
    return replace(device, compute_units=1, levels=tuple(levels))


def mm_naive() -> ir.Program:
    """One work-item per element."""
    return parse_program("""
        program mm(A: [[f32]K]M, B: [[f32]N]K) =
          mapGlb(0, fun row => mapGlb(1, fun col =>
            reduceSeq(fun (acc, ab) => acc + get(0, ab) * get(1, ab), 0.0, zip(row, col)), transpose(B)), A)
    """)


def mm_blocked(rows: int = 8, width: int = 16) -> ir.Program:
    """Register blocks of some rows by one vector of columns."""
    return parse_program(f"""
        program mm(A: [[f32]K]M, B: [[f32]N]K) =
          join(mapGlb(0, fun block =>
            transpose(asScalar(mapSeq(
              vectorize({width}, fun col =>
                reduceSeq(
                  fun (acc, ab) => mapSeq(fun (c, a) => c + a * get(1, ab), zip(acc, get(0, ab))),
                  fill({rows}, 0.0),
                  zip(transpose(block), col))),
              asVector({width}, transpose(B))))),
            split({rows}, A)))
    """)


def mm_tiled(tile: int = 16) -> ir.Program:
    """Square tiles in local memory; each work-item keeps one element in a register."""
    return parse_program(f"""
        program mm(A: [[f32]K]M, B: [[f32]N]K) =
          join(map(fun r => map(join, transpose(r)),
            mapWrg(1, fun a => mapWrg(0, fun b =>
              mapLcl(1, mapLcl(0, id),
                reduceSeq(
                  fun (acc, tiles) =>
                    let a_local = toLocal(mapLcl(1, mapLcl(0, id), get(0, tiles))) in
                    let b_local = toLocal(mapLcl(1, mapLcl(0, id), get(1, tiles))) in
                    mapLcl(1, fun (acc_row, a_row) =>
                      mapLcl(0, fun (c, b_col) =>
                        reduceSeq(fun (s, ab) => s + get(0, ab) * get(1, ab), c, zip(a_row, b_col)),
                        zip(acc_row, transpose(b_local))),
                      zip(acc, a_local)),
                  fill({tile}, fill({tile}, 0.0)),
                  zip(a, b))),
              transpose(map(transpose, split({tile}, map(split({tile}), B))))),
              map(transpose, split({tile}, map(split({tile}), A))))))
    """)


def sum_of(function: str, width: int, chunk: str) -> str:
    """The sum of a function over a chunk, in vector lanes first."""
    return f"""
        reduceSeq(add, 0.0, asScalar(mapSeq(
          vectorize({width}, reduceSeq(fun (acc, x) => acc + {function}, 0.0)),
          asVector({width}, transpose(split({width}, {chunk}))))))
    """


def dot(chunk: int = 65536, width: int = 16) -> ir.Program:
    """Contiguous chunks, then one work-item for the partial sums."""
    return parse_program(f"""
        program dot(xs: [f32]N, ys: [f32]N) = reduceSeq(add, 0.0,
          mapGlb(0, fun c => {sum_of("get(0, x) * get(1, x)", width, "c")}, split({chunk}, zip(xs, ys))))
    """)


def asum(chunk: int = 65536, width: int = 16) -> ir.Program:
    """The same with absolute values."""
    return parse_program(f"""
        program asum(xs: [f32]N) = reduceSeq(add, 0.0,
          mapGlb(0, fun c => {sum_of("abs(x)", width, "c")}, split({chunk}, xs)))
    """)


def scal(chunk: int = 65536, width: int = 16) -> ir.Program:
    """A scaled vector, in chunks."""
    return parse_program(f"""
        program scal(alpha: f32, xs: [f32]N) = join(
          mapGlb(0, fun piece => asScalar(mapSeq(vectorize({width}, fun x => alpha * x), asVector({width}, piece))),
            split({chunk}, xs)))
    """)


def gemv(width: int = 16) -> ir.Program:
    """A dot product per row, in vector lanes."""
    return parse_program(f"""
        program gemv(A: [[f32]K]M, x: [f32]K) =
          mapGlb(0, fun row => {sum_of("get(0, x) * get(1, x)", width, "zip(row, x)")}, A)
    """)


def j2d5pt(rows: int = 16, width: int = 16) -> ir.Program:
    """A five-point stencil: blocks of rows, vectors along x, the edges clamped."""
    return parse_program(f"""
        program j2d5pt(A: [[f32]N]M) =
          join(mapGlb(0,
            mapSeq(fun window =>
              asScalar(mapSeq(
                vectorize({width}, fun (up, left, mid, right, down) => (up + left + mid + right + down) * 0.2),
                asVector({width}, zip(
                  map(at(1), slide(3, 1, at(0, window))),
                  map(at(0), slide(3, 1, at(1, window))),
                  map(at(1), slide(3, 1, at(1, window))),
                  map(at(2), slide(3, 1, at(1, window))),
                  map(at(1), slide(3, 1, at(2, window)))))))),
            split({rows}, slide(3, 1, pad(1, 1, clamp, map(pad(1, 1, clamp), A))))))
    """)


def partial_dot(group: int = 128, times: int = 6) -> ir.Program:
    """Listing 4.5: products, then a tree of sums in local memory."""

    def in_pairs(step: str, xs: str) -> str:
        one = f"toLocal(mapSeq(id, fill(1, reduceSeq({step}, 0.0, pair))))"
        return f"join(mapLcl(0, fun pair => {one}, split(2, {xs})))"

    products = in_pairs("fun (acc, ab) => acc + get(0, ab) * get(1, ab)", "chunk")
    return parse_program(f"""
        program partialDot(xs: [f32]N, ys: [f32]N) =
          join(mapWrg(0, fun chunk =>
            join(toGlobal(mapLcl(0, mapSeq(id), split(1,
              iterate({times}, fun (values: [f32]n) => {in_pairs("add", "values")}, {products}))))),
            split({group}, zip(xs, ys))))
    """)


def prefetched(width: int = 4) -> ir.Program:
    """Each element copied to registers before it is used twice."""
    return parse_program(f"""
        program squares(xs: [f32]N) =
          join(mapGlb(0, fun piece => let held = toPrivate(mapSeq(id, piece)) in mapSeq(mul, zip(held, held)),
            split({width}, xs)))
    """)


SMALL: list[tuple[ir.Program, dict[str, int]]] = [
    (mm_naive(), {"M": 7, "K": 5, "N": 3}),
    (mm_blocked(4, 8), {"M": 8, "K": 13, "N": 24}),
    (mm_tiled(4), {"M": 8, "K": 12, "N": 16}),
    (dot(64, 8), {"N": 256}),
    (asum(32, 8), {"N": 96}),
    (scal(32, 4), {"N": 96}),
    (gemv(4), {"M": 5, "K": 64}),
    (j2d5pt(4, 4), {"M": 8, "N": 12}),
    (partial_dot(128, 6), {"N": 256}),
    (prefetched(4), {"N": 12}),
]
