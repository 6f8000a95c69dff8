"""Views and vector accesses: which address each path leads to."""

from __future__ import annotations

import pytest

from lift_egraph.codegen.c_ast import Choose, IndexValue, Load, Name, Nowhere, Operate, Pack, computed_index
from lift_egraph.codegen.c_walk import substitute_index
from lift_egraph.codegen.lowering.in_place import updates_in_place
from lift_egraph.codegen.lowering.lanes import widen
from lift_egraph.codegen.lowering.memory import declared_space, memory
from lift_egraph.codegen.lowering.ownership import owners_of
from lift_egraph.codegen.lowering.views import (
    Access,
    AsScalar,
    AsVector,
    Concat,
    Join,
    Pad,
    Shifted,
    Slide,
    Split,
    Transpose,
    Trimmed,
)
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.text.index_text import IndexText
from lift_egraph.codegen.text.scalar_text import literal
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.build import Input, gather, map_lcl, map_seq, reverse, to_local, transpose, zip_
from lift_egraph.language.nat import NatVar, nat
from lift_egraph.language.types import F32, F64, I32, array

i, j = NatVar("i", 0, 7), NatVar("j", 0, 3)
ARRAY = memory("a", array(F32, 32), "global", set())
MATRIX = memory("m", array(F32, 8, 4), "global", set())


def address(view, *indices) -> str:
    found = view.resolve(tuple(nat(x) for x in indices), ())
    assert isinstance(found, Load)
    return str(found.index)


def test_layout_views_compose_to_simple_indices() -> None:
    assert address(MATRIX, i, j) == "4 * i + j"
    assert address(Transpose(MATRIX), j, i) == "4 * i + j"
    assert address(Split(nat(4), ARRAY), i, j) == "4 * i + j"
    assert address(Join(nat(4), Split(nat(4), ARRAY)), nat(i) * 4 + nat(j)) == "4 * i + j"
    assert address(Slide(nat(1), ARRAY), i, j) == "i + j"


def test_adjacent_lanes_are_one_load_and_strided_ones_are_gathered() -> None:
    whole = AsVector(4, ARRAY).resolve((nat(i),), ())
    assert isinstance(whole, Load)
    assert (whole.width, str(whole.index)) == (4, "4 * i")
    column = AsVector(4, Join(nat(8), Transpose(MATRIX))).resolve((nat(0),), ())
    assert isinstance(column, Pack)
    assert [str(x.index) for x in column.items if isinstance(x, Load)] == ["0", "4", "8", "12"]


def test_parts_of_arrays_are_shifted_and_what_is_not_kept_has_no_place() -> None:
    assert address(Shifted(nat(5), ARRAY), i) == "i + 5"
    both = Concat(nat(8), ARRAY, Shifted(nat(8), ARRAY))
    assert address(both, i) == "i"
    assert address(both, nat(i) + 8) == "i + 8"
    either = both.resolve((nat(i) + 4,), ())
    assert isinstance(either, Choose)
    assert [str(c) for c in either.conditions] == ["-i + 3"]
    assert address(Trimmed(nat(4), nat(32), ARRAY), nat(i) + 4) == "i"
    kept = Trimmed(nat(4), nat(2), ARRAY).resolve((nat(i),), ())
    assert isinstance(kept, Choose)
    assert [str(c) for c in kept.conditions] == ["i - 4", "-i + 5"]
    assert isinstance(kept.outside, Nowhere)


def test_a_lane_of_a_vector_load_is_a_scalar_load() -> None:
    assert address(AsScalar(4, AsVector(4, ARRAY)), nat(i) * 4 + nat(j)) == "4 * i + j"


def test_edges_get_a_slow_path() -> None:
    padded = Pad(nat(1), nat(32), ir.Boundary("clamp"), ARRAY)
    found = AsVector(4, padded).resolve((nat(i),), ())
    assert isinstance(found, Choose)
    assert isinstance(found.inside, Load)
    assert [str(c) for c in found.conditions] == ["4 * i - 1"]
    wrapped = AsVector(4, Pad(nat(1), nat(32), ir.Boundary("wrap"), ARRAY)).resolve((nat(i),), ())
    assert isinstance(wrapped, Choose)
    assert isinstance(wrapped.inside, Load)


def test_indices_widen_to_ramps_and_uniform_values_stay() -> None:
    lane = NatVar("lane", 0, 3)
    assert widen(Name("x", F32), lane, 4) == Name("x", F32)
    ramp = widen(IndexValue(nat(i) + nat(lane)), lane, 4)
    assert isinstance(ramp, Operate)
    assert str(ramp.type) == "i32x4"


def test_vectors_of_vectors_of_scalars_keep_their_lanes_apart() -> None:
    rows = memory("m", array(I32, 2, 2), "global", set())
    pairs = AsVector(2, rows)  # [[i32x2]2]1: a vector of the rows, for each column
    wide = AsVector(4, AsScalar(2, Access(nat(0), pairs)))
    resolved = wide.resolve((nat(0),), ())
    assert isinstance(resolved, Pack)
    assert [item.index for item in resolved.items if isinstance(item, Load)] == [nat(k) for k in (0, 2, 1, 3)]


def test_private_memory_of_a_group_keeps_to_its_owner() -> None:
    shared = memory("acc", array(F32, 8), "private", set(), owners={(): (0,)}, threads={0: 8})
    assert shared.cells[0].buffer.length == 1
    with pytest.raises(NestingProblem, match="another work-item"):
        shared.resolve((nat(i),), ())


def test_spaces_and_owners_follow_the_maps() -> None:
    rows = Input("A", array(F32, 8, 4))
    copied = map_lcl(1, lambda row: to_local(map_lcl(0, lambda x: x, row)), rows)
    assert declared_space(copied) == "local"
    assert owners_of(copied) == {(): (1, 0)}
    assert owners_of(transpose(copied)) == {(): (0, 1)}
    assert declared_space(map_seq(lambda row: map_seq(lambda x: x, row), rows)) is None


def test_in_place_updates_read_their_own_element_only() -> None:
    acc, xs = ir.Var("acc", array(F32, 4)), Input("xs", array(F32, 4))
    assert updates_in_place(map_seq(lambda a, x: a + x, zip_(acc, xs)), acc)
    assert not updates_in_place(map_seq(lambda a, x: a + x, zip_(gather(reverse, acc), xs)), acc)


def test_data_dependent_indices_follow_substitution() -> None:
    index = computed_index(Load(ARRAY.cells[0].buffer, nat(i)), nat(10))
    (variable,) = substitute_index(index, {"i": nat(3)}).variables
    assert variable.range() == (0, 9)
    assert variable != next(iter(index.variables))


def test_division_of_negative_numbers_is_floored_in_the_text() -> None:
    text = IndexText(lambda value: "?")
    assert text(nat(i) // 3) == "i / 3"
    assert text((nat(i) - 5) // 3) != "(i - 5) / 3"
    values = {v: eval(text((nat(i) - 5) // 3).replace("/", "//"), {"i": v}) for v in range(8)}
    assert values == {v: (v - 5) // 3 for v in range(8)}


def test_numbers_read_back_exactly() -> None:
    assert literal(0.1, F32) == "0.1f"
    assert literal(1e-30, F32) == "1e-30f"
    assert literal(float("-inf"), F32) == "-INFINITY"
    assert literal(2.0, F64) == "2.0"
    assert literal(-(2**31), I32) == "(-2147483647 - 1)"


def test_names_are_legal_in_c() -> None:
    taken: set[str] = set()
    assert [c_name(n, taken) for n in ("x", "x", "float", "x'", "7up")] == ["x", "x1", "float_", "x_", "x7up_"]
    known = (
        "atan2", "get_global_id", "vload4", "convert_int", "CLK_LOCAL_MEM_FENCE", "FLT_MAX", "image1d_t", "cl_khr_fp64",
        "image2d_depth_t", "generic", "ATOMIC_FLAG_INIT", "kernel_exec", "NAN", "linux", "float3", "abs_float8",
        "max_int", "shift_left_uint", "own_exp_float", "power_double", "half_of_float4", "index_min", "index_max_long",
    )  # fmt: skip
    assert [c_name(n, taken) for n in known] == [f"{n}_" for n in known]
    ordinary = ["get", "M_i", "rows_M", "fastest", "N", "acc1", "glb_0", "row_sum", "BM", "float_"]
    assert [c_name(n, taken) for n in ordinary] == [*ordinary[:-1], "float_1"]
    assert [c_name(n, taken) for n in ("ﬁ", "größe", "ﬁ")] == ["x2", "gr__e_", "x3"]
