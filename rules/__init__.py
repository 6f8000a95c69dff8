"""The rule book: every rule of lift-egraph, one module a family, in explicit tuples.

`stages`, `remainders`, `algorithmic`, `lowering` and `simplification` are what unguided search uses; the other
collections are for guided search, where a phase names the few that it needs. `lets_kept` is `simplification` without
the rule that computes what a let binds where it is used: some look for lets.
"""

from __future__ import annotations

from lift_egraph.dsl import Rule
from lift_egraph.rules.algebra import algebra_rules, chunked_action_rules
from lift_egraph.rules.automata import chunked_table_fold_rules, table_fold_rules
from lift_egraph.rules.by_index import atomic_index_rules, chunked_index_rules, distinct_index_rules
from lift_egraph.rules.cascades import cascade_rules, chunked_cascade_rules
from lift_egraph.rules.fusion import (
    epilogue_rules,
    fission_rules,
    fusion_rules,
    let_outwards,
    let_reduction,
    let_rules,
    map_fission,
    map_fission_of_let_beside,
    map_fission_of_side,
    map_fusion,
    map_fusion_of_pattern,
    map_fusion_of_side,
    map_of_one_side,
    name_mapped,
    named_rules,
    pattern_fusion_rules,
    reduced_rules,
    reduction_rules,
    second_side_rules,
    side_fusion_rules,
    zip_rules,
)
from lift_egraph.rules.interchange import (
    interchange_rules,
    lifted_rules,
    loop_interchange_rules,
    map_loop_interchange,
    map_loop_interchange_rows,
    map_loop_interchange_zip,
    map_map_interchange,
    map_map_of_sides,
    map_map_zip_left,
    map_map_zip_right,
    map_reduce_interchange,
    matrix_rules,
    outer_zip_rules,
    range_column_rules,
)
from lift_egraph.rules.iteration import iteration_rules
from lift_egraph.rules.look_back import chunk_staging_rules, look_back_rules, look_back_run_rules
from lift_egraph.rules.movement import (
    chunk_rules,
    join_of_zips,
    map_map_of_transpose,
    map_of_join,
    map_of_nested_zip,
    movement_rules,
    order_rules,
    pad_of_map,
    pad_of_transpose,
    pad_of_zip,
    reordering_rules,
    reordering_simplification,
    slide_of_map,
    transpose_of_map_map,
    transpose_of_split_rows,
    transpose_of_zips,
    zip_movement_rules,
)
from lift_egraph.rules.opencl_memory import (
    block_rows_rules,
    block_rules,
    column_tile_rules,
    copy_columns,
    hold_vectors,
    item_fold_rules,
    item_side_rules,
    let_in_global,
    let_in_private,
    loop_tile_rules,
    memory_rules,
    register_rules,
    result_rules,
    round_rules,
    row_tile_rules,
    shared_rules,
    stage_first_tile,
    stage_second_tile,
    stream_rules,
    tile_copy_rules,
    turn_rules,
)
from lift_egraph.rules.opencl_parallel import (
    global_rules,
    group_rules,
    map_to_glb2,
    map_to_lcl0,
    map_to_lcl2,
    map_to_seq,
    map_to_wrg0,
    map_to_wrg1,
    map_to_wrg2,
    third_dimension_rules,
)
from lift_egraph.rules.opencl_vector import half_rules, loop_vector_rules, vector_rules, vectorise_zip, wide_rules
from lift_egraph.rules.packing import pack_columns, pack_vectors, packing_rules, store_padded
from lift_egraph.rules.partition import (
    coarsening_rules,
    interleaved_rules,
    interleaving_rules,
    one_item_rules,
    partial_reduce_rules,
    strided_rules,
)
from lift_egraph.rules.prefixes import prefix_rules
from lift_egraph.rules.ranges import range_map_rules
from lift_egraph.rules.reduction import (
    combine_lifted_with_map,
    fold_of_rows,
    loop_rules,
    operator_rules,
    pair_loop_rules,
    partial_reduce,
    partial_reduce_strided,
    reduce_map_to_seq,
    reduce_of_reductions,
    reduce_of_rows,
    reduce_seq_fusion,
    reduce_seq_fusion_beside,
    reduce_to_seq,
    split_reduce_seq,
    split_reduce_seq_zip,
    splitting_rules,
)
from lift_egraph.rules.remainders import (
    first_rest_rules,
    map_with_rest,
    padding_rules,
    reduce_with_rest,
    remainder_rules,
    rest_in_vector,
    scan_with_rest,
    slice_of_map,
    slice_of_slice,
    slice_of_zip,
    slice_outwards,
    transpose_outwards,
)
from lift_egraph.rules.rows import let_out_of_pair, map_of_operands, map_of_pair, name_reduction, row_rules
from lift_egraph.rules.scans import (
    chunked_scan_rules,
    folded_scan_rules,
    group_scan_rules,
    named_chunk_rules,
    read_scan_rules,
    scan_block_rules,
    scan_rules,
    scan_seq_fusion,
    scan_to_seq,
    sweep_rules,
)
from lift_egraph.rules.siblings import apart_rules, reduction_outwards, sibling_rules
from lift_egraph.rules.simplification import let_used_once, simplification_rules
from lift_egraph.rules.split_join import (
    one_chunk_rules,
    split_join as split_and_join,
    split_join_rules,
    split_of_map,
    split_of_zip,
    zip_takes_names,
)
from lift_egraph.rules.stages import (
    element_rules,
    generate_rules,
    inlining_rules,
    invariant_rules,
    let_simplification,
    one_row_rules,
)
from lift_egraph.rules.stencil import slide_tiling, slide_tiling_2d, stencil_rules, stencil_simplification
from lift_egraph.rules.stencil_steps import (
    boundary_rules,
    let_of_side,
    pad_of_pad,
    pad_rows_of_pad,
    side_rules,
    step_rest_rules,
    step_rules,
)
from lift_egraph.rules.sub_groups import reduce_by_sub_groups, sub_group_rules
from lift_egraph.rules.tables import let_past_let, table_rules
from lift_egraph.rules.trees import (
    let_of_one,
    map_of_one,
    map_of_one_row,
    reduce_in_one_chunk,
    reduce_of_one,
    tree_rules,
)
from lift_egraph.rules.views import (
    let_out_of_argument,
    let_out_of_array,
    let_out_of_map,
    let_out_of_transpose,
    name_joined,
    turned_rules,
    view_rules,
)

simplification: tuple[Rule, ...] = simplification_rules + operator_rules
lets_kept: tuple[Rule, ...] = tuple(r for r in simplification if r is not let_used_once)
algorithmic: tuple[Rule, ...] = (
    fusion_rules + fission_rules + split_join_rules + splitting_rules + interchange_rules + matrix_rules
)
lowering: tuple[Rule, ...] = (
    *generate_rules,
    *loop_rules,
    split_reduce_seq,
    *vector_rules,
    *global_rules,
    *group_rules,
    *memory_rules,
)
stages: tuple[Rule, ...] = (
    *inlining_rules, *element_rules, *movement_rules, *fusion_rules, *zip_rules, *pattern_fusion_rules
)  # fmt: skip
invariants: tuple[Rule, ...] = (*epilogue_rules, *invariant_rules)
remainders: tuple[Rule, ...] = remainder_rules + generate_rules
algebra: tuple[Rule, ...] = (
    *(*algebra_rules, *cascade_rules, *table_fold_rules), *prefix_rules, *apart_rules, *let_simplification
)  # fmt: skip
joined_sums: tuple[Rule, ...] = (reduce_of_reductions, fold_of_rows, reduce_of_rows, join_of_zips)
_inlined: tuple[Rule, ...] = (*inlining_rules, *let_simplification)
inlining: tuple[Rule, ...] = (*_inlined, *turned_rules)
naming: tuple[Rule, ...] = _inlined
one_row: tuple[Rule, ...] = one_row_rules
folded_scans: tuple[Rule, ...] = (
    *(*folded_scan_rules, reduce_map_to_seq, reduce_to_seq, reduce_seq_fusion, reduce_seq_fusion_beside),
    *(scan_to_seq, scan_seq_fusion),
    *_inlined,
)
distinct_places: tuple[Rule, ...] = distinct_index_rules
atomic_places: tuple[Rule, ...] = atomic_index_rules + named_rules
siblings: tuple[Rule, ...] = (
    *sibling_rules, name_reduction, let_out_of_pair, let_reduction, let_outwards
)  # fmt: skip
products_apart: tuple[Rule, ...] = (
    *(*named_rules, map_of_one_side, map_fission_of_side, *second_side_rules, *apart_rules),
    *(let_reduction, let_outwards, let_out_of_pair, let_out_of_array, name_mapped, reduction_outwards),
)  # fmt: skip
padding: tuple[Rule, ...] = (
    *(*padding_rules, pad_of_map, pad_of_transpose, pad_of_zip, slice_outwards, transpose_outwards, let_out_of_array),
    *(let_out_of_map, *let_rules, *epilogue_rules),
)
tables: tuple[Rule, ...] = (
    *(*table_rules, *named_rules, map_of_one_side, *generate_rules),
    *(let_outwards, let_out_of_pair, let_out_of_array, let_out_of_map),
)
large_apart: tuple[Rule, ...] = (
    *(*named_rules, name_joined, let_out_of_array, let_outwards),
    *(map_of_one_side, map_fission_of_side, *second_side_rules),
)
rows_apart: tuple[Rule, ...] = (
    *(map_of_pair, map_of_operands, let_out_of_array, let_outwards, *named_rules),
    *(map_of_nested_zip, map_map_of_sides, *read_scan_rules, let_past_let),
)
long_rows: tuple[Rule, ...] = (
    *(name_reduction, let_out_of_pair, let_out_of_array, let_reduction, let_outwards, map_fission, *reduced_rules),
    *(map_fission_of_side, partial_reduce, reduce_with_rest, slice_of_map, slice_of_zip, slice_of_slice, split_of_map),
    *(*pattern_fusion_rules, *chunked_action_rules, *chunked_scan_rules, scan_with_rest, *first_rest_rules),
    *(*named_rules, *named_chunk_rules, *chunked_cascade_rules, *chunked_table_fold_rules),
)
blocking: tuple[Rule, ...] = (split_and_join, *interchange_rules, *fission_rules, *let_rules, *epilogue_rules)
tiling: tuple[Rule, ...] = (split_and_join, *fission_rules, map_map_interchange)
slices: tuple[Rule, ...] = (
    *(map_map_zip_left, map_map_zip_right, map_map_of_sides, *matrix_rules, transpose_of_split_rows, *fission_rules),
    *(let_reduction, let_outwards, let_out_of_argument, *reduced_rules, map_of_one_side),
)
slice_levels: tuple[Rule, ...] = (
    *(*pattern_fusion_rules, *reduction_rules, split_and_join, reduce_to_seq),
    *(map_to_seq, *group_rules, map_to_lcl2, *vector_rules, *shared_rules),
)
rows: tuple[Rule, ...] = (split_and_join, *fission_rules, *matrix_rules)
rows_of_steps: tuple[Rule, ...] = (*(slide_of_map, pad_of_map, pad_rows_of_pad, map_fusion, map_fusion_of_pattern),)
stencil_steps: tuple[Rule, ...] = (
    *(slide_tiling, *step_rules, *step_rest_rules, map_of_join, map_fusion, map_fusion_of_side, let_out_of_pair),
)
step_tiles: tuple[Rule, ...] = (slide_tiling_2d, pad_of_pad, pad_of_map, pad_rows_of_pad)
tiles_of_steps: tuple[Rule, ...] = (
    *(let_of_side, let_out_of_pair, map_of_join, map_map_of_transpose),
    *(map_fusion, map_fusion_of_side, map_fusion_of_pattern, *fission_rules),
)
step_levels: tuple[Rule, ...] = (
    map_to_seq,
    *group_rules,
    *loop_rules,
    *vector_rules,
    *shared_rules,
    map_with_rest,
    rest_in_vector,
)
window_tiles: tuple[Rule, ...] = (slide_tiling, map_of_join, map_fusion)
window_levels: tuple[Rule, ...] = (*loop_rules, *group_rules)
window_copies: tuple[Rule, ...] = (*block_rules, *round_rules, copy_columns)
loops: tuple[Rule, ...] = (
    *(reduce_map_to_seq, combine_lifted_with_map, split_reduce_seq_zip, map_loop_interchange_zip),
    *fission_rules,
)
views: tuple[Rule, ...] = (*chunk_rules, *interleaved_rules, split_of_map, reduce_seq_fusion_beside, *fission_rules)
interleaving: tuple[Rule, ...] = (*interleaving_rules, *fission_rules)
levels: tuple[Rule, ...] = (map_to_seq, *group_rules, map_to_wrg2, *vector_rules)
first_tile: tuple[Rule, ...] = (stage_first_tile, *tile_copy_rules)
second_tile: tuple[Rule, ...] = (stage_second_tile, *tile_copy_rules)
registers: tuple[Rule, ...] = register_rules
block_levels: tuple[Rule, ...] = (*levels, reduce_map_to_seq, combine_lifted_with_map)
vector_levels: tuple[Rule, ...] = (
    *(*global_rules, map_to_glb2, *vector_rules, *loop_vector_rules),
    *(reduce_map_to_seq, combine_lifted_with_map),
)
item_loops: tuple[Rule, ...] = (
    *(split_of_zip, zip_takes_names, map_fusion, map_fission_of_let_beside, map_of_one_side),
    *(split_reduce_seq, map_loop_interchange),
)
row_sums: tuple[Rule, ...] = (
    *(let_reduction, let_outwards, *reduced_rules, *fission_rules, *reduction_rules),
    *(split_of_zip, zip_takes_names, *zip_movement_rules, map_fusion, *one_chunk_rules),
)
column_sums: tuple[Rule, ...] = (
    *(map_reduce_interchange, map_map_zip_left, *fission_rules, split_of_zip, zip_takes_names),
    *(transpose_of_zips, map_fusion, *one_chunk_rules),
)
range_columns: tuple[Rule, ...] = (
    *range_column_rules, map_map_zip_left, map_map_zip_right, split_and_join, *fission_rules
)  # fmt: skip
range_column_levels: tuple[Rule, ...] = (
    *global_rules, *vector_rules, *loop_vector_rules, *loop_rules, *range_map_rules
)  # fmt: skip
row_loops: tuple[Rule, ...] = (*loops, map_loop_interchange_rows, transpose_of_zips, reduce_seq_fusion)
row_tile: tuple[Rule, ...] = (stage_second_tile, copy_columns, *row_tile_rules)
tree: tuple[Rule, ...] = (partial_reduce_strided, reduce_of_one, let_of_one)
tree_levels: tuple[Rule, ...] = (*loop_rules, *group_rules, *shared_rules, map_of_one)
column_levels: tuple[Rule, ...] = (
    *(*loop_rules, *group_rules, *shared_rules, map_of_one_row, *lifted_rules, *reduction_rules),
)
column_tile: tuple[Rule, ...] = (stage_second_tile, copy_columns, *column_tile_rules)
loop_tile: tuple[Rule, ...] = loop_tile_rules
item_vectors: tuple[Rule, ...] = (*vector_rules, vectorise_zip, *loop_vector_rules)
vector_tile: tuple[Rule, ...] = (*loop_tile_rules, *one_item_rules)
block_registers: tuple[Rule, ...] = (hold_vectors, *block_rows_rules)
matrices: tuple[Rule, ...] = (*view_rules, *fission_rules, *let_rules, map_map_interchange)
group_folds: tuple[Rule, ...] = (
    *(*chunked_scan_rules, *group_scan_rules, partial_reduce, reduce_in_one_chunk, split_of_map),
    *(*pattern_fusion_rules, *reduction_rules),
)
sub_group_folds: tuple[Rule, ...] = (*group_folds, reduce_by_sub_groups)
group_sweeps: tuple[Rule, ...] = (*group_folds, *sweep_rules)
group_fold_levels: tuple[Rule, ...] = (*loop_rules, *group_rules, *shared_rules, *result_rules, let_in_global)
item_folds: tuple[Rule, ...] = item_fold_rules
item_sides: tuple[Rule, ...] = (*item_fold_rules, *item_side_rules)
look_back: tuple[Rule, ...] = (*look_back_rules, *chunked_scan_rules, *group_scan_rules)
look_back_runs: tuple[Rule, ...] = look_back_run_rules
look_back_levels: tuple[Rule, ...] = (*group_fold_levels, *vector_rules)
chunk_staging: tuple[Rule, ...] = (*chunk_staging_rules, *item_fold_rules, *round_rules)
packing: tuple[Rule, ...] = (pack_vectors,)
borders: tuple[Rule, ...] = (store_padded, let_out_of_array, let_out_of_transpose, let_out_of_map)
row_packing: tuple[Rule, ...] = (pack_columns,)
columns: tuple[Rule, ...] = (*blocking, *strided_rules, transpose_of_map_map)
rows_at_a_time: tuple[Rule, ...] = (
    *(partial_reduce, split_of_map, split_of_zip, zip_takes_names, map_fusion), *reduction_rules, *pattern_fusion_rules
)  # fmt: skip
gpu_rules: tuple[Rule, ...] = (*group_rules, map_to_glb2)
_in_parts: tuple[Rule, ...] = (
    *splitting_rules, *reduction_rules, split_of_map, transpose_of_map_map, *pattern_fusion_rules
)  # fmt: skip
lanes: tuple[Rule, ...] = (*_in_parts, *vector_rules)
groups: tuple[Rule, ...] = (*fusion_rules, *_in_parts)
sub_groups: tuple[Rule, ...] = (*groups, reduce_by_sub_groups)
sub_group_tree: tuple[Rule, ...] = (*sub_group_rules, let_of_one)
row_lanes: tuple[Rule, ...] = sub_group_rules
row_lane_levels: tuple[Rule, ...] = (map_to_seq, *loop_rules, *group_rules, map_to_wrg2, let_in_private)
sharing: tuple[Rule, ...] = (map_to_seq, map_to_wrg0, map_to_wrg1, map_to_lcl0, *shared_rules)
sharing_columns: tuple[Rule, ...] = (*loop_rules, *group_rules, map_to_lcl2, *shared_rules)
streams: tuple[Rule, ...] = stream_rules
halves: tuple[Rule, ...] = half_rules
turns: tuple[Rule, ...] = turn_rules
guided: tuple[Rule, ...] = (
    *inlining_rules,
    *invariant_rules,
    *element_rules,
    *let_simplification,
    *one_row_rules,
    *zip_rules,
    *let_rules,
    *epilogue_rules,
    *reduction_rules,
    *pattern_fusion_rules,
    *iteration_rules,
    *movement_rules,
    *reordering_rules,
    *reordering_simplification,
    *order_rules,
    *strided_rules,
    *interleaving_rules,
    *interleaved_rules,
    *partial_reduce_rules,
    *outer_zip_rules,
    *lifted_rules,
    *(*range_column_rules, *range_map_rules),
    *stencil_rules,
    *stencil_simplification,
    *loop_interchange_rules,
    *pair_loop_rules,
    *chunk_rules,
    *coarsening_rules,
    *one_item_rules,
    *wide_rules,
    *loop_vector_rules,
    *third_dimension_rules,
    *block_rules,
    *round_rules,
    *result_rules,
    *stream_rules,
    *half_rules,
    *turn_rules,
    *shared_rules,
    let_in_private,
    *(
        stage_first_tile,
        stage_second_tile,
        *tile_copy_rules,
        *register_rules,
        *block_rows_rules,
        *loop_tile_rules,
        *row_tile_rules,
        *column_tile_rules,
    ),
    *packing_rules,
    *turned_rules,
    *view_rules,
    *tree_rules,
    *one_chunk_rules,
    *(*zip_movement_rules, *joined_sums),
    *reduced_rules,
    *(*named_rules, *named_chunk_rules, *first_rest_rules),
    *padding_rules,
    *(*chunked_scan_rules, *group_scan_rules, *scan_block_rules, *scan_rules, *read_scan_rules),
    *(*item_fold_rules, *item_side_rules),
    *(*folded_scan_rules, *prefix_rules, *sweep_rules),
    *(*look_back_rules, *look_back_run_rules, *chunk_staging_rules, *sub_group_rules),
    *(*chunked_index_rules, *distinct_index_rules, *atomic_index_rules),
    *(*algebra_rules, *chunked_action_rules, *cascade_rules, *chunked_cascade_rules, *row_rules, *sibling_rules),
    *(*table_fold_rules, *chunked_table_fold_rules),
    *(*apart_rules, *second_side_rules, name_mapped, *table_rules),
    *(*side_fusion_rules, *step_rules, *step_rest_rules, *side_rules, *boundary_rules),
)
all_rules: tuple[Rule, ...] = algorithmic + lowering + simplification + remainder_rules + guided
