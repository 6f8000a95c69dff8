"""Plans are read off the loops of a stage, and the small rules reach what they want."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, NVIDIA, POCL, Device, load_device
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.egraph.saturate import Limits, Saturation, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import F32, I32, Array, DataType, Pair, Vector, array
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.records.record import PHASES
from lift_egraph.records.searched import as_searched
from lift_egraph.workbench.exploration.by_plans import PLAN_NODES
from lift_egraph.workbench.phases import lowering_phase, sharing_phase
from lift_egraph.workbench.planning.index_plans import chunk_for_results
from lift_egraph.workbench.planning.plan import PLANNED, Plan, length_of, nests, planned_phase
from lift_egraph.workbench.planning.plans import plans
from tests.depth import in_turn

CPU = replace(POCL, vector_width=4, compute_units=2)
IN_VECTORS = ("tiling blocking vector_levels", "packing tiling blocking vector_levels")
ROWS_IN_LANES = "groups tiling column_sums blocking item_vectors"
# a stage, the phases of the plans for it, and what the accumulator of the first one's innermost loop is
STAGES = {
    "rows times columns": (
        """program p(A: [[f32]8]12, B: [[f32]16]8) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), A)""",
        [*IN_VECTORS, *["blocking", "packing blocking"] * 2], None),
    "rows times rows, and what follows the sum": (
        """program p(A: [[f32]8]12, B: [[f32]8]16, c: [f32]16) =
             map(fun a => map(fun (b, s) => max(0.0, reduce(add, 0.0, map(mul, zip(a, b))) + s), zip(B, c)), A)""",
        ["packing blocking", "blocking"] * 2, array(F32, 6)),
    "columns times columns": (
        """program p(A: [[f32]16]8, B: [[f32]16]8) =
             map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(B)), transpose(A))""",
        ["packing row_packing blocking", *IN_VECTORS, *["blocking", "packing blocking"] * 2], array(F32, 4)),
    "squares that are all alike": (
        """program p(A: [[[f32]16]16]3, B: [[[f32]16]16]3) =
             map(fun (x, y) => map(fun a => map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), transpose(y)), x),
                 zip(A, B))""",
        [IN_VECTORS[0], *["blocking", "packing blocking"] * 2], None),
    "a matrix times a vector": (
        "program p(A: [[f32]32]6, x: [f32]32) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)",
        [ROWS_IN_LANES, "lanes"], array(F32, 3)),
    "a matrix times a vector, and what follows the sum": (
        """program p(A: [[f32]32]6, x: [f32]32, y: [f32]6, s: f32) =
             map(fun (a, b) => s * reduce(add, 0.0, map(mul, zip(a, x))) + b, zip(A, y))""",
        ["groups tiling blocking column_sums blocking item_vectors", "lanes"], array(F32, 3)),
    "a transposed matrix times a vector": (
        "program p(A: [[f32]128]7, x: [f32]7) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), transpose(A))",
        ["columns"], array(F32, 8)),
    "a transposed matrix with long rows times a vector": (
        "program p(A: [[f32]512]16, x: [f32]16) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), transpose(A))",
        ["columns", "rows_at_a_time columns", "lanes"], array(F32, 8)),
    "the sums of columns": (
        "program p(A: [[f32]128]7) = map(fun a => reduce(add, 0.0, a), transpose(A))", ["columns"], array(F32, 8)),
    "the means of what is computed of columns": (
        "program p(A: [[f32]128]7) = map(fun a => reduce(add, 0.0, map(fun x => x * x, a)) / 7.0, transpose(A))",
        ["columns"], array(F32, 8)),
    "the sum of a long array": ("program p(x: [f32]32768) = reduce(add, 0.0, map(abs, x))", ["lanes"] * 2, F32),
    "a long scan": (
        "program p(x: [f32]32768, z: f32) = scan(max, z, x)", [*["scans lanes scan_blocks"] * 2, "scans lanes"], F32),
    "a long scan of what is computed": (
        "program p(x: [i32]32768, y: [i32]32768) = scan(add, 7, map(mul, zip(x, y)))",
        [*["scans lanes scan_blocks"] * 2, "scans lanes"], I32),
    "what stands before each element": (
        "program p(x: [f32]32768) = scanExclusive(add, 1.0, x)", ["scans lanes"], F32),
    "a scan of each row": (
        "program p(A: [[f32]64]4) = map(fun row => scan(add, row[0], map(abs, row)), A)", ["scan_blocks"] * 2, None),
    "scans of few elements, and of columns": (
        "program p(x: [f32]31, A: [[f32]64]64) = (scan(add, 0.0, x), map(scan(add, 0.0), transpose(A)))", [], None),
    "a reduction whose order matters": (
        """program p(xs: [f32]32768) =
             reduce(fun ((a, b), (c, d)) => (a + c, max(b + c, d)), (0.0, -inf), map(fun x => (x, x), xs))""",
        ["lanes", "lanes"], Pair(F32, F32)),
    "the same of few": (
        """program p(xs: [f32]512) =
             reduce(fun ((a, b), (c, d)) => (a + c, max(b + c, d)), (0.0, -inf), map(fun x => (x, x), xs))""",
        ["lanes", "lanes"], Pair(F32, F32)),
    "no law is known": ("program p(x: [f32]32768) = reduce(fun (a, b) => a - b, 0.0, x)", [], None),
    "no reduction": ("program p(x: [f32]32) = map(abs, x)", [], None),
    "lengths that nothing divides": (
        "program p(A: [[f32]7]7, x: [f32]7) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)", [], None),
}  # fmt: skip


@in_turn(8)
@pytest.mark.parametrize("what", STAGES)
def test_plans_are_reached_and_compute_the_same(what: str):
    text, phases, accumulator = STAGES[what]
    program = parse_program(text)
    made = list(plans(program.body, CPU))
    assert [" ".join(step.name for step in plan.steps) for plan in made] == phases
    inputs = random_inputs(program, 0, "integer")
    expected = evaluate(program.body, inputs)
    for number, plan in enumerate(made):
        term = program.body
        for step in plan.steps:
            phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=12, nodes=PLAN_NODES))
            *_, (reached, _) = search_stage(term, Stage(phase, step.sketch, step.weigh))
            assert reached.term is not None, f"{step.name}: {reached.why_not}"
            term = reached.term
        assert np.array_equal(evaluate(term, inputs), expected)
        if number == 0 and accumulator is not None:
            assert accumulator in accumulators(term)


OTHERS = {  # what is no product whose columns are packed, and whether its results are in blocks
    "windows": (
        """program p(x: [[f32]128]128, w: f32) =
             map2d(fun t => w * reduce(add, 0.0, join(t)), slide2d(3, 1, pad2d(1, 1, clamp, x)))""", False),
    "products that are folded": (
        """program p(A: [[f32]64]256, B: [[f32]64]256) =
             map(fun a => reduce(min, inf, map(fun b => reduce(add, 0.0, map(mul, zip(a, b))), B)), A)""", False),
    "products beside what is named of a row": (
        """program p(A: [[f32]64]256, B: [[f32]64]256) =
             map(fun a => let s = reduce(max, 0.0, a) in map(fun b => reduce(add, s, map(mul, zip(a, b))), B), A)""",
        True),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("device", [NVIDIA, POCL])
def test_no_plan_packs_columns_where_no_rule_does(what: str, device: Device):
    text, in_blocks = OTHERS[what]
    phases = [step.name for plan in plans(parse_program(text).body, device) for step in plan.steps]
    assert "packing" not in phases
    assert ("block_registers" in phases or "vector_levels" in phases) is in_blocks


def reached(program: ir.Program, plan: Plan) -> ir.Expr:
    """The high-level term that a plan leads to."""
    term = program.body
    for step in plan.steps:
        phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=20))
        *_, (found, _) = search_stage(term, Stage(phase, step.sketch, step.weigh))
        assert found.term is not None, found.why_not
        term = found.term
    return term


def last(states: Iterator[Saturation]) -> Saturation:
    *_, state = states
    return state


def accumulators(term: ir.Expr) -> list[DataType]:
    return [type_of(t.initial) for t in ir.subterms(term) if isinstance(t, ir.Reduce)]


def test_levels_say_which_plans_there_are(tmp_path):
    program = parse_program("program p(x: [f32]65536) = reduce(add, 0.0, map(abs, x))")
    file = tmp_path / "shares.toml"
    file.write_text('like = "intel"\n[[levels]]\nname = "group"\nworkers = [256, 64]\npartition = "strided"')
    shares = load_device(file)
    shared = {"groups", "sub_groups"}
    for device, phases in ((INTEL, {"lanes"}), (shares, shared), (NVIDIA, shared)):
        assert {step.name for plan in plans(program.body, device) for step in plan.steps} == phases
    rules = [{r.name for r in lowering_phase(d, (), Limits()).rules} for d in (INTEL, shares)]
    assert "map_to_lcl0" not in rules[0]
    assert "map_to_lcl0" in rules[1]


def test_a_block_is_one_of_rows_although_columns_are_as_many():
    program = parse_program(STAGES["squares that are all alike"][0])
    (_, plan, *_) = plans(program.body, CPU)
    (step,) = plan.steps
    phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=12))
    *_, (reached, _) = search_stage(program.body, Stage(phase, step.sketch, step.weigh))
    assert reached.term is not None
    split = [t.array for t in ir.subterms(reached.term) if isinstance(t, ir.Split)]
    assert split
    assert all(isinstance(array, ir.Var) for array in split)  # columns would be those of a transposition


@pytest.mark.parametrize(
    ("places", "elements"),
    [("map(fun v => to_i32(4.0 * v), x)", "map(fun v => 1, x)"), ("map(fun v => to_i32(4.0 * v), x)", "ones"),
     ("is", "map(fun v => 1, x)"), ("is", "ones")],
)  # fmt: skip
def test_each_chunk_of_a_histogram_computes_what_it_counts(places: str, elements: str):
    """An array of all places or elements would be made by one loop, or need a kernel of its own."""
    program = parse_program(
        f"""program p(x: [f32]32768 in 0..1, is: [i32]32768 in 0..4, ones: [i32]32768) =
              reduceByIndex(add, fill(4, 0), {places}, {elements})"""
    )
    (plan,) = plans(program.body, CPU)
    term = reached(program, plan)
    (chunk,) = (t for t in ir.subterms(term) if isinstance(t, ir.ReduceByIndex))
    computes = [isinstance(a, ir.Map) for a in (chunk.indices, chunk.array)]
    assert computes == [elements != "ones" and places != "is", elements != "ones"]
    inputs = random_inputs(program, 0, "float")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))


@pytest.mark.parametrize(("results", "chunks"), [(512, 16), (3000, 2), (20_000, None)])
def test_a_histogram_has_as_many_chunks_as_are_worth_bins_of_their_own(results: int, chunks: int | None):
    program = parse_program(
        f"program p(x: [i32]32768 in 0..{results}) = reduceByIndex(add, fill({results}, 0), x, map(fun v => 1, x))"
    )
    assert chunk_for_results(32768, results, CPU) == (chunks and 32768 // chunks)
    assert len([*plans(program.body, CPU)]) == (chunks is not None)


def test_rows_of_uneven_length_are_taken_one_after_the_other():
    program = parse_program(
        """program p(offsets: [i32]2049 in offsets(100), xs: [f32]100) =
             map(fun w => reduceRange(add, 0.0, w[0], w[1], map(abs, xs)), slide(2, 1, offsets))"""
    )
    (plan,) = plans(program.body, CPU)
    term = reached(program, plan)
    saturation = last(run_phase(term, lowering_phase(CPU, (4,), Limits())))
    found = best_terms(saturation.graph, saturation.root, StructuralCost().on(CPU), 2, key=skeleton, tries=40)
    assert found
    assert not any(isinstance(t, ir.Vectorize) for f in found for t in ir.subterms(f.term))
    loops = [[str(t.level.kind) for t in ir.subterms(f.term) if isinstance(t, ir.MapLevel)] for f in found]
    assert ["glb", "seq"] in loops
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(found[0].term, inputs), evaluate(program.body, inputs))


ROW_SUMS = {
    "a sum for each column": """map(fun column => reduceRange(add, 0.0, w[0], w[1],
        map(fun (v, x) => v * x, zip(values, lookup(cols, column)))), transpose(B))""",
    "a sum of rows": """reduceRange(fun (a, b) => map(add, zip(a, b)), fill(F, 0.0), w[0], w[1],
        map(fun (v, row) => map(fun x => v * x, row), zip(values, lookup(cols, B))))""",
    "the largest of each column":
        "map(fun column => reduceRange(max, -inf, w[0], w[1], lookup(cols, column)), transpose(B))",
    "by indices": """generate(F, fun f =>
        reduceRange(add, 0.0, w[0], w[1], generate(K, fun p => values[p] * B[cols[p]][f])))""",
}  # fmt: skip


@pytest.mark.parametrize("row", ROW_SUMS.values(), ids=ROW_SUMS)
@pytest.mark.parametrize("columns", [5, 8, 16, 160])
def test_rows_of_uneven_length_take_each_element_once_for_a_block_of_columns(row: str, columns: int):
    sizes = {"M": 2048, "K": 5000, "N": 64, "F": columns}
    written = parse_program(
        f"""program spmm(offsets: [i32](M + 1) in offsets(K), cols: [i32]K in 0..N, values: [f32]K, B: [[f32]F]N) =
            map(fun w => {row}, slide(2, 1, offsets))"""
    )
    program = specialise(as_searched(written, sizes), sizes)
    plan, in_chunks = plans(program.body, CPU)
    assert [step.name for step in in_chunks.steps] == ["rows"]
    term = reached(program, plan)
    (loop,) = (t for t in ir.subterms(term) if isinstance(t, ir.ReduceRangeSeq))
    results = type_of(loop)
    assert isinstance(results, Array)
    assert isinstance(results.element, Vector) == (columns != 5)
    width = results.element.width if isinstance(results.element, Vector) else 1
    assert columns % (length_of(loop) * width) == 0
    assert not any(isinstance(t, ir.MapLevel) for t in ir.subterms(loop.array))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))


def test_columns_that_no_cache_holds_are_in_tiles():
    program = parse_program(STAGES["rows times columns"][0])
    levels = (replace(level, caches=(256, 512)) if level.name == "group" else level for level in CPU.levels)
    small = replace(CPU, cache=1024, levels=tuple(levels))
    plan, *others = plans(program.body, small)
    assert [step.name for step in plan.steps] == ["packing", "tiling", "blocking"]
    assert others == list(plans(program.body, CPU))
    term = reached(program, plan)
    loops = [t for t in ir.subterms(term) if isinstance(t, ir.Map) and isinstance(t.array, ir.Split)]
    columns, rows = (next(t for t in loops if t.array.chunk == nat(n)) for n in (8, 6))
    assert rows in ir.subterms(columns)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))


def test_all_reductions_of_a_row_are_in_lanes():
    program = parse_program(
        """program p(A: [[f32]32]7) = map(fun row => let top = reduce(max, 0.0, row) in
             reduce(add, 0.0, map(fun v => v - top, row)), A)"""
    )
    (plan,) = plans(program.body, CPU)
    (step,) = plan.steps
    phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=12))
    *_, (reached, _) = search_stage(program.body, Stage(phase, step.sketch, step.weigh))
    assert reached.term is not None
    lengths = [type_of(t.array) for t in ir.subterms(reached.term) if isinstance(t, ir.Reduce)]
    assert sorted(str(t) for t in lengths) == sorted(["[f32]4", "[f32]8"] * 2)


def test_the_lanes_of_every_reduction_of_a_row_lie_side_by_side():
    program = parse_program(
        """program p(A: [[f32]32]7) = map(fun row => let top = reduce(max, -inf, row) in
             let e = map(fun v => exp(v - top), row) in let s = reduce(add, 0.0, e) in map(fun v => v / s, e), A)"""
    )
    term = reached(program, next(plans(program.body, CPU)))
    chunks = [t for t in ir.subterms(term) if isinstance(t, ir.Split)]
    beside = [t.array for t in ir.subterms(term) if isinstance(t, ir.Transpose) and isinstance(t.array, ir.Split)]
    assert len(chunks) == len(beside) == 2


def test_rows_that_caches_hold_are_added_up_in_several_vectors_at_first():
    program = parse_program(
        """program p(A: [[f32]128]7) = map(fun row => let m = reduce(add, 0.0, row) / 128.0 in
             reduce(add, 0.0, map(fun v => (v - m) * (v - m), row)), A)"""
    )
    first, second = plans(program.body, CPU)
    chains = [
        [str(t.chunk) for t in ir.subterms(reached(program, p)) if isinstance(t, ir.Split)] for p in (first, second)
    ]
    width = str(max(CPU.widths))
    assert sorted(chains[0]) == sorted(["4", "4", width, width])
    assert chains[1] == [width, width]


ON_A_GPU = {
    "a long sum": ("program p(x: [f32]65536) = reduce(add, 0.0, map(abs, x))", 64),
    "a matrix times a vector": (
        "program p(A: [[f32]1024]3, x: [f32]1024) = map(fun a => reduce(add, 0.0, map(mul, zip(a, x))), A)", 256),
    "rows with two reductions": (
        """program p(A: [[f32]512]3) = map(fun row => let top = reduce(max, -inf, row) in
             let e = map(fun v => exp(v - top), row) in let s = reduce(add, 0.0, e) in map(fun v => v / s, e), A)""",
        256),
}  # fmt: skip


@pytest.mark.parametrize("what", ON_A_GPU)
def test_a_group_shares_a_reduction_on_a_gpu(what: str):
    text, items = ON_A_GPU[what]
    program = parse_program(text)
    plan = next(plans(program.body, NVIDIA))
    assert plan.lowered_by == "sharing"
    saturation = last(run_phase(reached(program, plan), sharing_phase((), Limits())))
    model = StructuralCost().on(NVIDIA)
    best, *_ = best_terms(
        saturation.graph, saturation.root, model, 1, key=skeleton, tries=60, per_shape=3, patience=200
    )
    levels = {str(t.level.kind) for t in ir.subterms(best.term) if isinstance(t, ir.MapLevel)}
    assert levels == {"wrg", "lcl"}
    compiled = compile_program(replace(program, body=best.term), NVIDIA)
    assert compiled.kernels[0].launch.local_size is not None
    assert compiled.kernels[0].launch.local_size[0] >= items
    inputs = random_inputs(program, 0, "integer")
    assert np.allclose(evaluate(best.term, inputs), evaluate(program.body, inputs), rtol=1e-5)


@pytest.mark.parametrize("length", [1 << 24, 1 << 26])
def test_long_sums_have_plans_with_more_groups_too(length: int):
    program = parse_program(f"program p(x: [f32]{length}) = reduce(add, 0.0, x)")
    found = {tuple(plan.steps[0].tiling.items())[:2] for plan in plans(program.body, NVIDIA) if plan.steps}
    chunk = length // 512
    assert ((length, (chunk,)), (chunk, (256,))) in found


@in_turn(6)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("map(fun a => reduce(max, -inf, a), transpose(A))", id="maxima"),
        pytest.param("map(fun a => reduce(add, 0.0, map(mul, zip(a, x))) / 2.0, transpose(A))", id="products"),
    ],
)
def test_several_items_of_a_group_share_each_column(text: str):
    program = parse_program(f"program p(A: [[f32]128]256, x: [f32]256) = {text}")
    plan, *_ = plans(program.body, NVIDIA)
    assert plan.lowered_by is None
    term = reached(program, plan)
    compiled = compile_program(replace(program, body=term), replace(NVIDIA, emission=POCL.emission))
    assert compiled.kernels[0].launch.local_size == (32, 32, 1)
    assert re.search(r"A\[[^]]*\+ lcl_0 \+ 128 \* lcl_1", compiled.source)  # neighbours read neighbouring columns
    inputs = random_inputs(program, 0, "integer")
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(compiled, "inputs"), evaluate(program.body, inputs))


def test_columns_that_make_no_two_groups_are_not_shared():
    program = parse_program("program p(A: [[f32]32]1024) = map(fun a => reduce(add, 0.0, a), transpose(A))")
    assert not list(plans(program.body, NVIDIA))


def test_vectors_are_no_wider_than_the_language_has_them():
    wide = replace(POCL, vector_width=16, throughput=replace(POCL.throughput, most_lanes=16))
    for text, *_ in STAGES.values():
        assert all(w <= 16 for plan in plans(parse_program(text).body, wide) for w in plan.widths)


def test_a_nest_knows_the_maps_around_a_reduction():
    program = parse_program(STAGES["rows times rows, and what follows the sum"][0])
    (nest,) = nests(program.body)
    assert nest.maps[0] == program.inputs[0]
    assert isinstance(nest.maps[1], ir.Zip)
    assert (nest.length, nest.result, nest.reads_map) == (8, F32, True)
    assert nest.repeats


@pytest.mark.parametrize(
    ("body", "has_blocks"),
    [
        ("map(fun a => map(fun w => reduce(add, 0.0, w), slide(9, 1, a)), A)", False),
        ("map(fun rows => map(fun column => reduce(max, 0.0, column), transpose(rows)), slide(9, 1, A))", False),
        ("map(fun a => map(fun b => reduce(add, 0.0, map(fun x => x * x, b)) * reduce(add, 0.0, a) "
         "* reduce(add, 0.0, map(mul, zip(a, b))), B), A)", True),
    ],
    ids=["windows of rows", "windows of columns", "norms beside a product"],
)  # fmt: skip
def test_only_rows_that_share_columns_are_in_blocks(body: str, has_blocks: bool):
    term = parse_program(f"program p(A: [[f32]24]24, B: [[f32]24]16) = {body}").body
    found = [step.name for plan in plans(term, CPU) for step in plan.steps]
    assert ("blocking" in found) == has_blocks


@pytest.mark.parametrize(
    ("body", "repeats"),
    [
        ("map(fun m => map(fun (row, w) => reduce(add, 0.0, row), zip(m, X)), A)", False),
        ("map(fun m => map(fun (row, w) => reduce(add, 0.0, map(mul, zip(row, w))), zip(m, X)), A)", True),
        ("map(fun m => map(fun w => reduce(add, 0.0, map(mul, zip(m[0], w))), X), A)", True),
    ],
    ids=["rows beside others", "products with others", "a product"],
)
def test_rows_of_several_maps_that_are_no_product_have_lanes_first(body: str, repeats: bool):
    program = parse_program(f"program p(A: [[[f32]32]8]8, X: [[f32]32]8) = {body}")
    (nest,) = nests(program.body)
    assert nest.repeats == repeats
    assert (next(plans(program.body, CPU)).steps[0].name == "lanes") == (not repeats)


def test_the_rows_of_a_block_share_what_they_are_multiplied_with():
    """Of a convolution the filters: each row of windows is another."""
    program = parse_program(
        """program p(X: [[f32]10]9, F: [[[f32]3]3]4) = map(fun f =>
             map2d(fun w => reduce(add, 0.0, map(mul, zip(join(w), join(f)))), slide2d(3, 1, X)), F)"""
    )
    (nest,) = nests(program.body)
    assert nest.rows == program.inputs[1]
    blocks = {size for plan in plans(program.body, CPU) for step in plan.steps for size in step.tiling}
    assert blocks == {4}


def test_every_phase_of_plans_can_be_recorded():
    assert PLANNED.keys() <= set(PHASES)
