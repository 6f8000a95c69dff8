"""What cannot become a kernel is refused before it is built, and the message names the subterm and the limit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.api import Runner, find_device, specialise
from lift_egraph.codegen.c_walk import walk
from lift_egraph.codegen.devices import GENERIC, NVIDIA, POCL
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.codegen.running.opencl import build_report
from lift_egraph.errors import BuildProblem, DeviceProblem, LiftError, NestingProblem, SizeProblem
from lift_egraph.language.describe import describe
from tests.codegen import low_level as low
from tests.codegen.opencl import needs_opencl


def refusal(kind: type[LiftError], text: str, dialect=POCL, launch: Launch | None = None, **sizes: int) -> str:
    with pytest.raises(kind) as caught:
        low.plan_of(text, dialect, launch, **sizes)
    assert caught.value.subterm in str(caught.value)
    assert caught.value.subterm
    return str(caught.value)


M = "program p(m: [[f32]8]8) ="


@pytest.mark.parametrize(
    ("term", "says", "names"),
    [
        ("mapLcl(0, mapSeq(abs), m)", "mapLcl(0) must stand inside a mapWrg, but stands inside nothing",
         "mapLcl(0, mapSeq(abs), m) : [[f32]8]8"),
        ("mapGlb(1, fun r => mapLcl(0, abs, r), m)",
         "mapLcl(0) must stand inside a mapWrg, but stands inside mapGlb(1)", "mapLcl(0, abs, r) : [f32]8"),
        ("mapWrg(0, fun r => mapWrg(0, abs, r), m)", "mapWrg(0) stands inside another mapWrg(0)",
         "mapWrg(0, abs, r) : [f32]8"),
        ("mapWrg(0, fun r => mapGlb(1, abs, r), m)",
         "mapGlb and mapWrg must not be mixed: mapGlb(1) stands inside mapWrg(0)", "mapGlb(1, abs, r) : [f32]8"),
        ("mapGlb(0, fun r => mapGlb(0, abs, r), m)", "mapGlb(0) stands inside another mapGlb(0)",
         "mapGlb(0, abs, r) : [f32]8"),
        ("mapSeq(fun r => mapGlb(0, abs, r), m)", "mapGlb(0) must not stand inside mapSeq",
         "mapGlb(0, abs, r) : [f32]8"),
        ("mapWrg(0, fun r => reduceSeq(fun (s, x) => reduceSeq(add, s, mapWrg(1, abs, r)), 0.0, r), m)",
         "mapWrg(1) must not stand inside mapSeq inside mapWrg(0)", "mapWrg(1, abs, r) : [f32]8"),
    ],
)  # fmt: skip
def test_an_illegal_nesting_names_the_map(term: str, says: str, names: str) -> None:
    assert refusal(NestingProblem, f"{M} {term}") == f"{says}\n  in {names}"


def test_a_pattern_without_an_implementation_is_named() -> None:
    found = refusal(NestingProblem, f"{M} mapGlb(0, reduce(add, 0.0), m)")
    assert "reduce(add, 0.0, " in found
    assert "lower it to" in found
    found = refusal(NestingProblem, f"{M} mapGlb(0, fun r => map(fun x => x + 1.0, r), m)")
    assert "map(fun x => x + 1.0, r) : [f32]8" in found
    assert "map(map(abs), m) : [[f32]8]8" in refusal(NestingProblem, f"{M} map(map(abs), m)")


def test_steps_that_no_text_has_room_for_name_their_iterate() -> None:
    text = f"{M} iterate(1000000000, fun v => mapGlb(0, fun r => mapSeq(abs, r), v), m)"
    assert "1000000000 steps are too many" in refusal(SizeProblem, text)


def test_a_private_array_over_the_limit_names_its_term() -> None:
    term = "mapSeq(id, gather(reverse, toPrivate(mapSeq(abs, c))))"
    found = refusal(NestingProblem, f"program p(x: [f32]4096) = join(mapGlb(0, fun c => {term}, split(2048, x)))")
    assert "2048 private elements a work-item, more than 1024" in found
    assert found.endswith("in toPrivate(mapSeq(abs, c)) : [f32]2048")


def test_unrolling_over_the_limit_names_its_term() -> None:
    maps = " . ".join(["toPrivate(mapSeq(abs))"] * 9)
    alone = f"program p(x: [f32]4096) = join(mapGlb(0, fun c => ({maps})(c), split(512, x)))"
    assert "tmp[512]" in low.plan_of(alone).source  # with one item a group arrays may stay arrays
    in_groups = alone.replace("join(mapGlb(0, fun", "join(join(mapWrg(0, mapLcl(0, fun").replace(
        ", split", "), split(4, split"
    )
    found = refusal(NestingProblem, f"{in_groups}))")
    assert "unrolling private arrays makes more than 4096 statements" in found
    assert "in mapSeq(abs, " in found


def test_local_memory_over_the_limit_names_the_largest_part() -> None:
    with pytest.raises(DeviceProblem) as caught:
        low.plan_of(low.mm_tiled(96), GENERIC, M=96, K=96, N=96)
    found = str(caught.value)
    assert "needs 73728 bytes of local memory a group, generic has 32768" in found
    assert "the largest is tmp with 36864 bytes" in found
    assert "in toLocal(mapLcl(1, mapLcl(0, id), get(0, tiles))) : [[f32]96]96" in found


def test_local_memory_outside_a_group_names_its_term() -> None:
    text = "program p(x: [f32]8) = join(mapGlb(0, fun c => mapSeq(id, toLocal(mapSeq(abs, c))), split(4, x)))"
    found = refusal(NestingProblem, text)
    assert "local memory outside of mapWrg" in found
    assert "toLocal(mapSeq(abs, c)) : [f32]4" in found


def test_a_group_over_the_limit_names_the_map() -> None:
    launch = Launch((4096, 1, 1), (2048, 1, 1))
    found = refusal(DeviceProblem, f"{M} mapWrg(0, mapLcl(0, abs), m)", NVIDIA, launch)
    assert "a group of 2048 work-items is more than nvidia allows (1024)" in found
    assert "in mapWrg(0, mapLcl(0, abs), m) : [[f32]8]8" in found


def test_a_loop_beyond_the_index_type_names_the_map() -> None:
    found = refusal(SizeProblem, "program p(x: [[f32]65536]65536) = mapGlb(0, abs, join(x))")
    assert "a loop of 4294967296 steps is beyond the 32-bit index range" in found
    assert "in mapGlb(0, abs, join(x)) : [f32]4294967296" in found


def test_memory_beyond_the_index_type_names_its_term() -> None:
    text = "program p(x: [[[f32]N]N]N) where N = 4 = mapGlb(2, mapGlb(1, mapGlb(0, abs)), x)"
    with pytest.raises(SizeProblem, match=r"x : \[\[\[f32\]2097152\]2097152\]2097152 .* 64-bit"):
        low.plan_of(text, N=1 << 21)


# --- build failures -----------------------------------------------------------------------------------


def broken(plan: Plan) -> Plan:
    """The plan with a name that nobody declares in the innermost line."""
    source = plan.source.replace("acc_0_0 = acc_0_0 +", "acc_0_0 = nobody +")
    assert source != plan.source
    return replace(plan, source=source)


@needs_opencl
def test_a_build_failure_shows_the_line_and_its_subterm() -> None:
    plan = broken(low.plan_of(low.mm_tiled(4), M=8, K=12, N=16))
    inputs = {"A": np.zeros((8, 12), np.float32), "B": np.zeros((12, 16), np.float32)}
    with Runner(find_device()) as runner:
        runner.load_inputs("zeros", inputs)
        with pytest.raises(BuildProblem) as caught:
            runner.run(plan, "zeros")
    lines = str(caught.value).splitlines()
    (shown,) = [k for k, line in enumerate(lines) if "| " in line and "nobody" in line and ".cl:" not in line]
    number = int(lines[shown].split("|")[0])
    assert plan.source.splitlines()[number - 1] == lines[shown].split("| ", 1)[1]
    origin = "| from reduceSeq(fun (s, ab) => s + get(0, ab) * get(1, ab), c, zip(a_row, b_col)) : f32"
    assert lines[shown + 1].strip() == origin


def test_every_statement_knows_its_subterm() -> None:
    for program, sizes in (
        (low.mm_tiled(4), {"M": 8, "K": 12, "N": 16}),
        (low.mm_blocked(4, 8), {"M": 8, "K": 13, "N": 24}),
        (low.partial_dot(128, 6), {"N": 256}),
        (low.j2d5pt(2, 4), {"M": 8, "N": 16}),
    ):
        plan = low.plan_of(program, **sizes)
        lines = plan.source.splitlines()
        assert len(plan.origins.lines) == len(lines)
        start = next(k for k, line in enumerate(lines) if line.startswith("kernel void"))
        for number, line in enumerate(lines, 1):
            is_frame = number <= start + 1 or line == "}" or "barrier(" in line or "const int lcl_" in line
            assert (plan.origins.of(number) is None) == is_frame, line


def test_lines_are_described_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def described(term: object) -> str:
        asked.append(term)
        return "a subterm"

    monkeypatch.setattr("lift_egraph.codegen.compiler.describe", described)
    plan = low.plan_of(low.mm_tiled(4), M=8, K=12, N=16)
    assert not asked
    assert pickle.loads(pickle.dumps(plan)).origins.subterms == plan.origins.subterms
    assert set(plan.origins.subterms) == {"a subterm"}
    assert len(asked) == len(plan.origins.subterms)  # each once


def test_what_walks_find_of_a_kernel_is_not_sent_to_other_processes() -> None:
    plan = low.plan_of(low.mm_tiled(4), M=8, K=12, N=16)
    (kernel,) = plan.kernels
    before = len(list(walk(kernel.body)))
    copied = pickle.loads(pickle.dumps(kernel.body))
    assert not any({"_children", "_below"} & vars(statement).keys() for statement in copied)
    assert copied == kernel.body
    assert len(list(walk(copied))) == before


def test_a_build_report_without_origins_still_shows_the_line() -> None:
    assert build_report("a.cl:1:1: error", "x y").endswith("    1 | x y")


def test_long_terms_are_shortened() -> None:
    program = specialise(low.mm_tiled(4), {"M": 8, "K": 12, "N": 16})
    text = describe(program.body)
    assert len(text) < 140
    assert "…" in text
    assert "\n" not in text
