"""For every rule, wrong versions of it, as one might write them by mistake; the check must catch each."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lift_egraph.egraph import sorts
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.rules import all_rules

RULES = {r.name: r for r in all_rules}


@dataclass(frozen=True)
class Twin:
    """A rule with texts of its function replaced, ``right → wrong``; after ``helper:`` a text of its module."""

    of: str
    mistake: str
    changes: tuple[str, ...]

    @cached_property
    def rule(self) -> Rule:
        """The wrong rule, whose law is the mistake."""
        right = RULES[self.of].body
        module = sys.modules[right.__module__]
        source, part = inspect.getsource(module), inspect.getsource(right)
        for change in self.changes:
            text, _, instead = (side.strip() for side in change.removeprefix("helper:").partition("→"))
            if change.startswith("helper:"):
                assert source.count(text) == 1, f"{self.of}: {text} does not stand once in its module"
                source = source.replace(text, instead)
            else:
                assert text in part, f"{self.of}: {text} is not in it"
                wrong = part.replace(text, instead)
                source, part = source.replace(part, wrong), wrong
        made: dict[str, Any] = {**vars(sorts), "__name__": __name__}
        exec(compile(source, str(module.__file__), "exec"), made)
        return rule(self.mistake)(made[self.of].body)


def twin(of: str, mistake: str, *changes: str) -> Twin:
    """A wrong version of the rule `of`."""
    return Twin(of, mistake, changes)


NOT_ASSOCIATIVE = ("associative(op), →", "neutral(op, z), →")
ANY_OPERATOR = (*NOT_ASSOCIATIVE, "commutative(op), →")
WITH_REST = "*in_chunks(p, b, xs, t, n, m) → eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), n < m, eq(t).to(pty(p))"
LEVELS = ("seq", *(f"{kind}{dimension}" for kind in ("glb", "wrg", "lcl") for dimension in range(3)))

TWINS = (
    # --- fusion
    twin("map_fusion", "p may be free in f", ", absent_in_function(p, f) →"),
    twin("map_fusion", "the functions are composed in the other order",
         "map_(f, map_(Fn.lam(p, b), xs)) → map_(Fn.lam(p, b), map_(f, xs))"),
    twin("map_fission", "p may be free in f", ", absent_in_function(p, f) →"),
    twin("map_fission", "p may be free in the operator", ", absent_in_operator(p, op) →", "(op, z → (Op.fn(f), z"),
    twin("map_fission", "a transposition is lost", "map_(Fn.transpose(t), mapped(b)) → mapped(b)"),
    twin("zip_of_maps", "the variables of one function may be free in the other",
         ", absent(p, c), absent(q, b), disjoint(p, q) →"),
    twin("zip_of_map_left", "y may be free in b", "fresh(y, b), →"),
    twin("zip_of_map_right", "the components are swapped", "make_pair(Ex(x), b) → make_pair(b, Ex(x))"),
    twin("map_fission_of_let", "p may be free in the function", ", absent_in_function(p, f) →"),
    twin("map_fission_of_let_beside", "the pairs are in the other order", "P.pair(q, p) → P.pair(p, q)"),
    twin("map_of_one_side", "p may be free in b", ", absent(p, b) →"),
    twin("map_fission_of_side", "the side is read backwards",
         'zip_(map_(Fn.lam(p, side), xs), xs) → zip_(gather("n - 1 - i", map_(Fn.lam(p, side), xs)), xs)'),
    twin("map_of_reduction", "x is read backwards",
         'reduce_(op, z, Ex(x)) → reduce_(op, z, gather("n - 1 - i", Ex(x)))'),
    twin("let_reduction", "x is where the sum begins", "form(Ex(x))), total) → form(Ex(x))), z)"),
    twin("let_outwards", "the arguments change places", "let(call2(name, a, b)) → let(call2(name, b, a))"),
    twin("map_fusion_of_pattern", "x may be free in f", "fvf(f).not_contains(x), →"),
    # --- stages
    twin("let_unused", "p may be free in b", ", absent(p, b) →"),
    twin("let_inwards", "the second part is left as it is", "to(g(let(a), let(b)) → to(g(let(a), b)"),
    twin("let_inwards", "lets are moved into the first part only", "let(a), let(b), let(d) → let(a), b, d"),
    twin("let_into_function", "p may be free in c, and bind v again", "is_array, *binds_another → is_array"),
    twin("let_into_function", "v may be free in f", ", fvf(f).not_contains(v) →"),
    twin("let_into_function", "v may be free in the operator", ", fvo(op).not_contains(v) →"),
    twin("side_outwards", "p may be free in the side", "rows, absent(p, side), *unused → rows, *unused"),
    twin("side_outwards", "the side is read backwards",
         'zip_(Ex(s), b)) → zip_(gather("n - 1 - i", Ex(s)), b))'),
    twin("gather_of_map", "the order is applied twice", "map_(f, gather(r, xs)) → map_(f, gather(r, gather(r, xs)))"),
    twin("at_of_map", "another element", "at(n, xs))) → at(i64(0), xs)))"),
    twin("generate_by_map", "the elements are reversed",
         "map_(f, generate(n → map_(f, gather(\"n - 1 - i\", generate(n",
         "Ex(i))))) → Ex(i))))))"),
    twin("let_in_global", "the copy is reversed", '"global", xs → "global", gather("n - 1 - i", xs)'),
    # --- iteration
    twin("iterate_decomposition", "one iteration too many", "iterate(n - 1, → iterate(n,"),
    twin("iterate_composition", "the counts are multiplied", "i + j → i * j"),
    twin("iterate_composition", "the functions may differ", "iterate(j, f → iterate(j, g", "f: Fn → f: Fn, g: Fn"),
    twin("iterate_once", "no iteration applies f as well", ".to(xs) → .to(app(f, xs))"),
    # --- split join
    twin("split_join", "n need not divide the length", WITH_REST),
    twin("split_join", "the chunks are transposed: a strided partition without its inverse",
         "split(n, xs) → transpose(split(m / n, xs))"),
    twin("split_join", "the name of the chunk is that of another row", 'V.of("chunk", p, n) → V("x", Ty.arr(n, t))'),
    twin("split_of_map", "the function is mapped over the chunks, not over their elements",
         "map_(Fn.map(n, f), split(n, xs)) → map_(f, split(n, xs))"),
    twin("split_of_map", "the function is lost", "map_(Fn.map(n, f), split(n, xs)) → split(n, xs)"),
    twin("split_of_zip", "the second array is the first", "split(n, ys) → split(n, xs)"),
    twin("zip_takes_names", "the parts are zipped in the other order", "Ex(left), Ex(right) → Ex(right), Ex(left)"),
    # --- interchange
    twin("map_map_on_matrix", "the outer transposition is missing", "transpose(map_ → (map_"),
    twin("map_map_interchange", "p may be free in ys", "absent(p, ys), →"),
    twin("map_map_interchange", "q may be free in xs", "absent(q, xs), →"),
    twin("map_map_interchange", "p and q may be one variable", ", disjoint(p, q) →"),
    twin("map_map_interchange", "the transposition is missing", "transpose(map_ → (map_"),
    twin("map_map_zip_right", "p may be free in b", "absent(p, b), →"),
    twin("map_map_zip_right", "the columns are not transposed", "transpose(map_(Fn.lam(p, ys) → (map_(Fn.lam(p, ys)"),
    twin("map_map_zip_left", "p may be free in ws", "absent(p, ws), →"),
    twin("map_map_zip_left", "the result is not transposed", "transpose(map_(Fn.lam(P → (map_(Fn.lam(P"),
    twin("map_reduce_interchange", "p may be free in z", "absent(p, z), →"),
    twin("map_reduce_interchange", "p may be free in the operator", "absent_in_operator(p, op), →"),
    twin("map_reduce_interchange", "the transposition is missing", "transpose(map_ → (map_"),
    twin("reduce_of_lifted", "the transposition is missing",
         "transpose(xss)) → xss)", ".to(ty(xss)) → .to(ty(xss)), eq(m).to(n)"),
    twin("map_map_zip_outside", "the row may be free in b", "fv(b).not_contains(r), →"),
    twin("map_loop_interchange", "p may be free in ys", "absent(p, ys), →"),
    twin("map_loop_interchange_rows", "p may be free in z", "absent(p, z), →"),
    twin("map_loop_interchange_zip", "p may be free in z", "absent(p, z), →"),
    twin("map_loop_interchange_zip", "p may be free in ys", "absent(p, ys), →"),
    # --- reduction
    twin("partial_reduce", "⊕ need not be associative", *NOT_ASSOCIATIVE),
    twin("partial_reduce", "z need not be neutral", "neutral(op, z), →"),
    twin("partial_reduce", "n need not divide the length", "*chunked(m, n) → tile(m, n), n < m"),
    twin("partial_reduce_strided", "⊕ need not be commutative or associative", *ANY_OPERATOR),
    twin("partial_reduce_strided", "the parts have the length n, not length / n", "Ty.arr(m / n, t) → Ty.arr(n, t)"),
    twin("reduce_map_to_seq", "acc may be free in b", "fresh(acc, b), →"),
    twin("reduce_map_to_seq", "p may be free in the operator", "absent_in_operator(p, op), →"),
    twin("reduce_map_to_seq", "the accumulator stands on the right", "op, Ex(acc), b → op, b, Ex(acc)"),
    twin("reduce_to_seq", "from right to left", "op, Ex(acc), Ex(x) → op, Ex(x), Ex(acc)"),
    twin("split_reduce_seq", "every chunk starts from z", "Ex(acc), Ex(chunk) → z, Ex(chunk)"),
    twin("split_reduce_seq", "acc may be free in the operator",
         "eq(fvf(loop)).to(fvf(loop).remove(acc).remove(chunk)), →"),
    twin("split_reduce_seq_zip", "every chunk starts from z", "Ex(acc), zip_(Ex(left) → z, zip_(Ex(left)"),
    twin("split_reduce_seq_zip", "the loop may use acc, c and d",
         "eq(fvf(loop)).to(fvf(loop).remove(acc).remove(left).remove(right)), →"),
    twin("reduce_seq_fusion", "q may be free in b", "absent(q, b), →"),
    twin("reduce_seq_fusion_beside", "q may be free in f", "absent_in_function(q, f), →"),
    twin("reduce_seq_fusion_beside", "x may be free in b", "(fv(b) - bvs(p)).not_contains(x), →"),
    twin("reduce_seq_fusion", "acc may be free in c", "absent(a, c), →"),
    twin("scan_to_seq", "from right to left", "op, Ex(acc), Ex(x) → op, Ex(x), Ex(acc)"),
    twin("scan_to_seq", "it starts with an element", "Ex(acc), Ex(x))), z, xs → Ex(acc), Ex(x))), at(0, xs), xs"),
    twin("scan_seq_fusion", "q may be free in b", "absent(q, b), →"),
    twin("scan_to_seq", "an exclusive scan holds its element",
         "scan_exclusive, scan_exclusive_seq → scan_exclusive, scan_seq"),
    twin("scan_seq_fusion", "acc may be free in c", "absent(a, c), →"),
    twin("reduce_range_to_seq", "from right to left", "op, Ex(acc), Ex(x) → op, Ex(x), Ex(acc)"),
    twin("reduce_range_to_seq", "the ends are exchanged", "Ex(x))), z, low, high → Ex(x))), z, high, low"),
    twin("reduce_range_seq_fusion", "q may be free in b", "absent(q, b), →"),
    twin("reduce_range_seq_fusion", "acc may be free in c", "absent(a, c), →"),
    twin("reduce_by_index_to_seq", "from right to left",
         "helper:combine(op, Ex(acc), _apply(g, Ex(x))) → combine(op, _apply(g, Ex(x)), Ex(acc))"),
    twin("reduce_by_index_map_to_seq", "the function is left out",
         "helper:combine(op, Ex(acc), _apply(g, Ex(x))) → combine(op, Ex(acc), Ex(x))"),
    twin("reduce_by_index_maps_to_seq", "names may be free in the functions",
         "helper:for free in (*functions, fvo(op)) → for free in (fvo(op),)"),
    twin("reduce_by_index_in_chunks", "each chunk starts from where all do", "helper:fill(k, e), → zs,"),
    twin("reduce_by_index_in_chunks", "any operator", "helper:associative(op), →", "helper:identity(op, e), →"),
    twin("reduce_by_index_of_map_in_chunks", "any value for the identity", "helper:identity(op, e), →"),
    twin("reduce_by_index_of_maps_in_chunks", "the first start is left out",
         "helper:Ex(start), Ex(every) → e, Ex(every)"),
    twin("reduce_by_index_to_glb", "any places", "given = (distinct(places),) → given = ()"),
    twin("at_once_fusion", "names may be free in the function", "for free in (fvf(g), fvf(h)) → for free in (fvf(g),)"),
    twin("left_out_behind", "the first place is taken for none", 'call2("ge", Ex(p) → call2("gt", Ex(p)'),
    # --- scans
    twin("scan_with_rest", "the others start from z", "reduced(z, first) → z"),
    twin("scan_with_rest", "the rest is read twice", "slice_(r, n - r, xs) → slice_(0, n - r, xs)"),
    twin("scan_in_chunks", "a chunk starts from its own total", "scan_exclusive(op, z, totals) → scan(op, z, totals)"),
    twin("scan_in_chunks", "what it starts from is lost",
         "scan_exclusive(op, z, totals) → scan_exclusive(op, e, totals)"),
    twin("scan_in_chunks", "each total counts z", "reduce_(op, e, own) → reduce_(op, z, own)"),
    twin("scan_in_chunks", "a name of its own may be free in f", "*unused, →"),
    twin("scan_then_combine", "the total is the first element", "at(n - 1, Ex(chunk)) → at(0, Ex(chunk))"),
    twin("scan_then_combine", "each chunk counts z", "scan(op, e, Ex(chunk)) → scan(op, z, Ex(chunk))"),
    twin("scan_then_combine", "totals stand for what is before", "scan_exclusive(op, z, totals) → scan(op, z, totals)"),
    twin("scan_in_blocks", "a block goes on from the first element", "at(n - 1, Ex(block)) → at(0, Ex(block))"),
    twin("scan_in_blocks", "each block counts z",
         "scan(op, e, elements(Ex(chunk))) → scan(op, z, elements(Ex(chunk)))"),
    twin("scan_in_blocks", "a name of its own may be free in f", "*unused, →"),
    twin("name_scanned", "what is kept is reversed",
         'Ex(totals))), scanned → Ex(totals))), gather("n - 1 - i", scanned)'),
    twin("name_scanned", "the name may be free in z", "fv(z).not_contains(totals), →"),
    twin("scan_in_one_chunk", "it counts the element", "scanned(op, z, Ex(chunk)) → scan(op, z, Ex(chunk))"),
    twin("last_of_scan", "of any element", ", eq(i + 1).to(n) →"),
    twin("at_of_scan", "only of that element", "slice_(0, i + 1, xs) → slice_(i, 1, xs)"),
    twin("scan_by_exclusive", "the element stands on the left", "op, Ex(acc), Ex(x) → op, Ex(x), Ex(acc)"),
    twin("scan_by_exclusive", "the element counts twice", "scan_exclusive(op, z, xs), xs → scan(op, z, xs), xs"),
    twin("exclusive_by_shift", "the first is dropped", "slice_(0, n - 1, scan → slice_(1, n - 1, scan"),
    twin("map_scan_interchange", "p may be free in z", "absent(p, z), →"),
    twin("map_scan_interchange", "p may be free in the operator", "absent_in_operator(p, op), →"),
    twin("combine_scalars", "every operator is an addition", 'call2(s, a, b) → call2("add", a, b)'),
    twin("combine_by_function", "the arguments are swapped", "make_pair(a, b) → make_pair(b, a)"),
    twin("combine_lifted_with_map", "c may be free in b", "fresh(acc, b), →"),
    twin("combine_lifted_with_map", "the array is combined with itself", "op, Ex(acc), b → op, b, b"),
    twin("combine_lifted", "the elements are combined in the other order", "op, Ex(x), Ex(y) → op, Ex(y), Ex(x)"),
    # --- movement
    twin("transpose_of_split_rows", "the chunks are those of the rows",
         "split(n, transpose(xss)) → split(n, xss)", ".to(ty(xss)) → .to(ty(xss)), eq(a).to(b)"),
    twin("transpose_of_transposed_chunks", "the rows are split, not the columns",
         "Ty.arr(a, t)), transpose(xss)) → Ty.arr(a, t)), xss)", ".to(ty(xss)) → .to(ty(xss)), eq(a).to(b)"),
    twin("map_of_join", "the function is mapped over the rows", "Fn.map(n, f) → f"),
    twin("map_map_of_transpose", "the transposition is lost", "transpose(map_ → (map_"),
    twin("transpose_of_map_map", "the function is lost", "map_(Fn.map(m, f), transpose(xss)) → transpose(xss)"),
    twin("split_of_split", "the chunks are split by k", "Fn.split(n, → Fn.split(k,"),
    twin(
        "join_of_join",
        "columns are joined",
        "Fn.join(Ty.arr(m, Ty.arr(n, t))), xsss → "
        "Fn.join(Ty.arr(n, Ty.arr(m, t))), map_(Fn.transpose(Ty.arr(m, Ty.arr(n, t))), xsss)",
    ),
    twin("slide_of_map", "the function is lost", "map_(Fn.map(n, f), slide(n, s, xs)) → slide(n, s, xs)"),
    twin("slide_of_transpose", "the windows are not transposed",
         "map_(Fn.transpose(Ty.arr(a, Ty.arr(n, t))), transpose(windows)) → transpose(windows)"),
    twin("pad_of_map", "the two sides are swapped", "before, after, boundary, xs → after, before, boundary, xs"),
    twin("map_backwards", "the result is not put back in order", "scatter(backwards, map_ → (map_"),
    twin("map_strided", "the wrong stride",
         "scatter(order → scatter(Order.stride(m / s, s)"),
    twin("reorder_and_back", "the orders may differ",
         "scatter(r, xs) → scatter(q, xs)", "r: Order → r: Order, q: Order"),
    twin("gather_in_order", "any order", "Order.identity() → Order.reverse()"),
    twin("gather_of_gather", "the orders change places", "Order.then(r, q) → Order.then(q, r)"),
    twin("scatter_by_gather", "the order is not undone", "Order.inverse(r) → r"),
    # --- partition
    twin("split_join_strided", "the result is not transposed back", "join(transpose(map_ → join((map_"),
    twin("thread_coarsening", "n need not divide the length", WITH_REST),
    twin("one_item", "the chunk is reversed", 'split(n, xs) → split(n, gather("n - 1 - i", xs))'),
    twin("thread_coarsening_strided", "the elements are read in order and written with a stride",
         "transpose(split(m / n, xs)) → split(n, xs)"),
    twin("reduce_reordered", "⊕ need not commute", *ANY_OPERATOR),
    twin("partial_reduce_in_parts", "the parts are transposed",
         "join(map_ → join(transpose(map_", "split(k * n, xs)))) → split(k * n, xs)))))"),
    twin("partial_reduce_to_one", "of any number of chunks",
         "fill(1, → fill(m / n,", "eq(Ty.arr(n, t)) → eq(Ty.arr(m, t))", "n: i64 → n: i64, m: i64"),
    twin("partial_reduce_in_steps", "z may be anything", "neutral(op, z), →"),
    # --- stencils
    twin("slide_tiling", "the tiles overlap too little", "helper: size + (k - 1) * step → size + (k - 1) * step - 1"),
    twin("slide_tiling", "k need not divide the number of windows", "*chunked(count, k) → tile(count, k), k < count"),
    twin("slide_of_step", "tiles are read at their own places",
         "read_inside(n, s, k, d, u) → read_inside(n, s, i64(0), n + s * d, u)"),
    twin("slide_of_step", "a tile may have nothing of the result", "n > k, →", "(count - 1) * s < k + d, →"),
    twin("slide_of_step_constant", "the value stands at one more place",
         "read_with(z, n, s, k, d → read_with(z, n, s, k + 1, d"),
    twin("let_of_side", "v may be free in the other side", ", fresh(v, ys) →"),
    twin("map_fusion_of_side", "r may be free in c", ", absent(r, c) →"),
    twin("pad_of_pad", "the ends are exchanged", "padded(k + m, r + n, xs) → padded(r + n, k + m, xs)"),
    twin("pad_rows_of_pad", "rows and columns are exchanged",
         "wide(w, padded_rows(k, r, z, xss, column)) → padded_rows(m, n, z, xss, column)"),
    twin("windows_of_padded", "the last are kept", "slice_(0, c, → slice_(h - c % h, c,"),
    twin("slide_tiling_2d", "rows and columns of tiles are exchanged",
         "helper: windows(length, k * step, grid) → windows(length, k * step, grid).transpose(0)"),
    twin("slide_tiling_3d", "the windows of a tile are taken in another order",
         "helper: found.join(done)\n    return found.term → found.join(done)\n    return found.transpose(1).term"),
    twin("map_of_slide", "the windows are not transposed",
         "map_(Fn.transpose(Ty.arr(n, Ty.arr(a, t))), slide(n, s, transpose(xss))) → slide(n, s, transpose(xss))"),
    twin("map_map_of_slide", "the function is mapped over the windows",
         "slide(n, s, map_(f, xs)) → map_(f, slide(n, s, xs))"),
    twin("stencil_fusion", "the inner windows are taken one apart", "length, s * r, xs → length, s, xs"),
    twin("apply_slide", "the step may be any", ".to(slide(n, s, xs)) → .to(slide(n, 1, xs))"),
    # --- vectors
    twin("vectorise_map", "w need not divide the length", "eq(n % w).to(i64(0)), →"),
    twin("vectorise_map", "the function is not vectorised", "Fn.vec(w, Fn.lam(p, b)) → Fn.lam(p, b)"),
    twin("vectorise_zip", "only one side is vectorised", "as_vector(w, ys) → as_vector(w, xs)"),
    twin("vectorise_loop", "what is beside is reversed",
         'zip_(Ex(vectors), as_vector(w, xs)) → zip_(Ex(vectors), as_vector(w, gather("n - 1 - i", xs)))'),
    twin("vectorise_loop", "the old results may be free in what is beside", "fv(xs).not_contains(a), →"),
    twin("vectorise_reduce", "z may be anything: it is counted once for every lane", "neutral(op, z), →"),
    twin("reduce_by_vectors", "z may be anything: it is counted once for every vector", "neutral(op, z), →"),
    twin("reduce_by_dot", "the right factor is the left one", "Ex(left), Ex(right) → Ex(left), Ex(left)"),
    # --- threads and memory
    *(
        twin(
            f"map_to_{level}",
            "the elements are taken in the wrong order",
            'dimension, f, xs → dimension, f, gather("n - 1 - i", xs)',
        )
        for level in LEVELS
    ),
    twin("stage_in_local", "the copy is reversed", 'Ex(v))) → gather("n - 1 - i", Ex(v))))'),
    twin("stage_in_local", "v need not be an array", "eq(Ty.arr(n, t)) → eq(t)"),
    twin("stage_in_private", "the copy is reversed", 'Ex(v))) → gather("n - 1 - i", Ex(v))))'),
    twin("stage_block_in_local", "the copy is transposed",
         "copy_row), Ex(v) → copy_row), transpose(Ex(v))", "(m, t → (n, t"),
    twin("stage_first_tile", "the rows of the copy are reversed",
         '_by_items(Ex(v), n, t) → _by_items(gather("n - 1 - i", Ex(v)), n, t)'),
    twin("stage_second_tile", "the rows of the copy are reversed",
         '_by_items(Ex(w), n, t) → _by_items(gather("n - 1 - i", Ex(w)), n, t)'),
    twin("copy_in_rounds", "the elements are taken by columns", "join(xss) → join(transpose(xss))"),
    twin("items_in_rounds", "the rounds are transposed",
         'join(map_level("seq", 0, → join(transpose(map_level("seq", 0,', "split(n, xs))) → split(n, xs))))"),
    twin("items_in_rounds", "n need not divide the length", "*chunked(m, n) → tile(m, n), n < m"),
    twin("copy_columns", "the copy is not transposed back",
         "transpose(_by_items(transpose(xss), m, t)) → _by_items(transpose(xss), m, t)",
         ".to(ty(xss)) → .to(ty(xss)), eq(m).to(n)"),
    twin("hold_vectors", "the elements are reversed", 'n, Ex(array) → n, gather("n - 1 - i", Ex(array))'),
    twin("hold_folded", "the elements are reversed", 'as_vector(w, xs) → as_vector(w, gather("n - 1 - i", xs))'),
    twin("write_scan", "the elements are reversed", 'as_vector(w, own) → as_vector(w, gather("n - 1 - i", own))'),
    twin("write_blocks", "each block is reversed", 'Ex(block), w → gather("n - 1 - i", Ex(block)), w'),
    twin("write_block", "the rows are reversed",
         '_rows_in_vectors(reduce_seq(f, z, xs) → _rows_in_vectors(gather("n - 1 - i", reduce_seq(f, z, xs))'),
    twin("stage_tile", "the copy is reversed", 'Ex(v))) → gather("n - 1 - i", Ex(v))))'),
    twin("hold_items", "a may be free in xs", "absent(a, xs), →"),
    twin("hold_items", "the copy is reversed", "Ex(item)), xs)) → Ex(item)), gather(\"n - 1 - i\", xs)))"),
    twin("stage_row", "the copy is reversed", 'Ex(v))) → gather("n - 1 - i", Ex(v))))'),
    twin("meet_in_local", "the lines are reversed",
         '_by_items(reduce_seq(f, z, xs), n, t) → _by_items(gather("n - 1 - i", reduce_seq(f, z, xs)), n, t)'),
    twin("reduce_of_one", "z need not be neutral", "associative(op), neutral(op, z) → associative(op)"),
    twin("reduce_in_one_chunk", "the elements are reversed",
         'reduce_(op, z, Ex(chunk)) → reduce_(op, z, gather("n - 1 - i", Ex(chunk)))'),
    twin("let_of_one", "there may be several elements",
         "Ty.arr(ONE, t) → Ty.arr(i64(2), t)", "at(FIRST, map_ → at(ONE, map_"),
    twin("map_of_one", "there may be several elements", "Ty.arr(ONE, t) → Ty.arr(i64(2), t)"),
    twin("map_of_one_row", "there may be several rows", "Ty.arr(ONE, Ty.arr(n, t)) → Ty.arr(i64(2), Ty.arr(n, t))"),
    twin("transpose_of_zips", "the columns change places", "zip_(Ex(left), Ex(right)) → zip_(Ex(right), Ex(left))",
         ".to(ty(c)), → .to(ty(c)), eq(t).to(u),"),
    twin("transpose_of_zips", "p may be free in c", "absent(p, c), →"),
    twin("map_of_nested_zip", "the last two arrays change places", "zip_(zip_(xs, ys), zs) → zip_(zip_(xs, zs), ys)"),
    twin("map_fission_of_reduced", "s is reduced twice",
         'reduce_(op, z, Ex(s)) → reduce_(op, reduce_(op, z, Ex(s)), Ex(s))'),
    twin("map_in_one_chunk", "the chunk is reversed", 'split(n, xs) → split(n, gather("n - 1 - i", xs))'),
    twin("name_joined", "the sides change places", "zip_(*beside(Ex(v), ys)) → zip_(*beside(ys, Ex(v)))"),
    twin("let_out_of_array", "p may be free in f", ", absent_in_function(p, f) →"),
    twin("let_out_of_map", "p may be free in c", "absent(p, c), →"),
    twin("maps_as_one", "the rows of a square matrix are taken as columns",
         "map_(f, join(xss)) → map_(f, join(transpose(xss)))", "(m, Ty.arr(n, t)) → (n, Ty.arr(n, t))"),
    twin("result_in_global", "the result is reversed on its way",
         '"global", map_level(kind, d, f, xs) → "global", gather("n - 1 - i", map_level(kind, d, f, xs))'),
    twin("result_as_stream", "the result is reversed on its way",
         '"stream", map_level("glb", d, f, xs) → "stream", gather("n - 1 - i", map_level("glb", d, f, xs))'),
    twin("result_in_local", "the result is reversed on its way",
         '"local", map_level("lcl", d, f, xs) → "local", gather("n - 1 - i", map_level("lcl", d, f, xs))'),
    twin("pack_transposed", "the copy is packed in the order of the original",
         "packed(transpose(xss) → packed((xss)", "(n, t → (m, t"),
    twin("pack_chunks", "the chunks are packed in columns",
         "packed(split(k, xs) → packed(transpose(split(k, xs))", ".to(ty(xs)) → .to(ty(xs)), eq(m).to(k * k)"),
    twin("pack_blocks", "the packed blocks = the blocks, though transposed",
         "map_(Fn.transpose(Ty.arr(k, Ty.arr(n, t))), copied) → copied"),
    twin("pack_columns", "the columns are packed backwards",
         "as_vector(w, transpose(xss)) → as_vector(w, gather(\"n - 1 - i\", transpose(xss)))"),
    twin("pack_vectors", "the panels are packed backwards",
         'as_vector(w, xss))) → gather("n - 1 - i", as_vector(w, xss))))'),
    twin("keep_block_in_private", "the copy of a square block = the block, though transposed",
         '"private", reduce_seq(f, z, xs) → "private", transpose(reduce_seq(f, z, xs))',
         "Ty.arr(m, Ty.arr(n, t)) → Ty.arr(n, Ty.arr(n, t))"),
    # --- rows
    twin("map_of_pair", "the components change places",
         "zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(p, c), xs)) → zip_(map_(Fn.lam(p, c), xs), map_(Fn.lam(p, b), xs))"),
    twin("map_of_operands", "the operands change places",
         "call2(name, Ex(left), Ex(right)) → call2(name, Ex(right), Ex(left))",
         "eq(u).to(ty(c)) → eq(t).to(ty(c)), eq(t).to(u)"),
    twin("name_reduction", "x is where the sum begins", "form(Ex(x))), total) → form(Ex(x))), z)"),
    twin("let_out_of_pair", "p may be free in a", "to(let(make_pair(b, a)), absent(p, a)) → to(let(make_pair(b, a)))"),
    twin("let_out_of_pair", "p may be free in f", ", absent_in_function(p, f) →"),
    # --- remainders
    twin("map_with_rest", "the rest begins one element early", "slice_(m, n % k, xs) → slice_(m - 1, n % k, xs)"),
    twin("reduce_with_rest", "the rest is folded first",
         "reduce_(op, z, slice_(0, m, xs)), slice_(m, n % k, xs) → "
         "reduce_(op, z, slice_(m, n % k, xs)), slice_(0, m, xs)"),
    twin("reduce_by_index_with_rest", "the rest is combined with the first indices",
         "first, slice_(m, n % k, places) → first, slice_(0, n % k, places)"),
    twin("map_of_named", "v may be free in f", ", fvf(f).not_contains(v) →"),
    twin("rest_in_vector", "the first elements are kept", "slice_(w - r, r, map_ → slice_(0, r, map_"),
    twin("concat_outwards", "the parts are exchanged",
         "map_(Fn.lam(p, b), xs)), transpose(map_(Fn.lam(p, c), xs)) → "
         "map_(Fn.lam(p, c), xs)), transpose(map_(Fn.lam(p, b), xs))"),
    twin("slice_outwards", "another part", "transpose(slice_(s, r, → transpose(slice_(0, r,"),
    twin("transpose_outwards", "the transposition is lost",
         "map_(Fn.transpose(t), map_(Fn.lam(p, b), xs)) → map_(Fn.lam(p, b), xs)"),
    twin("slice_of_map", "another part", "map_(f, slice_(s, r, xs))) → map_(f, slice_(0, r, xs)))"),
    twin("slice_of_zip", "another part of the second", "slice_(s, r, ys)) → slice_(0, r, ys))"),
    twin("slice_of_transpose", "another part", "slice_(s, r, Ex(row)) → slice_(0, r, Ex(row))"),
    twin("slice_of_slice", "the first start is forgotten", "slice_(a + s, r, xs) → slice_(s, r, xs)"),
    twin("map_of_padded", "the padding is kept", "slice_(0, n, map_ → slice_(k - n % k, n, map_"),
    twin("reduce_of_padded", "any number will do", "neutral(op, z), →"),
    # --- simplification
    twin("join_of_split", "a transposition between them is ignored", ".to(xs) → .to(join(transpose(split(n, xs))))"),
    twin("split_of_join", "the rows may have any length", ", eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xs)) →"),
    twin("as_scalar_of_as_vector", "the lanes are reversed", '.to(xs) → .to(gather("n - 1 - i", xs))'),
    twin("as_vector_of_as_scalar", "any number of lanes will do", ", eq(Ty.arr(m, Ty.lanes(n, t))).to(ty(xs)) →"),
    twin("transpose_of_transpose", "one transposition is dropped", ".to(xs) → .to(transpose(xs))"),
    twin("map_transpose_of_map_transpose", "one transposition is dropped", ".to(xs) → .to(map_(Fn.transpose(u), xs))"),
    twin("map_identity", "the body may be another variable", "Ex(v) → Ex(w)", "v: V → v: V, w: V"),
    twin("component_of_pair", "the components are swapped", ".to(a) → .to(b)"),
    twin("apply_pattern", "transpose and join do nothing, split splits by one more",
         ".to(join(x)) → .to(x)", ".to(transpose(x)) → .to(x)", "split(n, x) → split(n + 1, x)"),
    twin("eta", "v may be free in the function", ", fvf(f).not_contains(v) →"),
    twin("eta", "v may be free in z", ", fv(z).not_contains(v) →"),
    twin("eta", "v may be free in the operator", ", fvo(op).not_contains(v) →"),
    twin("let_used_once", "v may be free in another argument", ", fv(b).not_contains(v) →"),
    twin("let_used_once", "the arguments of an operation are exchanged", "g(let(a), b), → g(b, let(a)),"),
    # --- algebra
    twin("fold_by_action", "the elements act twice",
         "app(act, make_pair(reduce_(op, one, map_(m, xs)), z)) → app(act, make_pair(reduce_(op, one, map_(m, xs)), "
         "app(act, make_pair(reduce_(op, one, map_(m, xs)), z))))"),
    twin("scan_by_action_in_chunks", "a chunk starts from its own end",
         "scan_exclusive(op, one, totals) → scan(op, one, totals)"),
    twin("scan_by_action_in_chunks", "all chunks start from z", "app(act, make_pair(Ex(p), z)) → z"),
    twin("scan_by_action", "each element acts alone", "scanned(op, one, map_(m, xs)) → map_(m, xs)"),
    twin("scan_by_action", "p may be free in z", "fresh(p, z), →"),
    twin("fold_of_mapped", "the elements stay as they are", "map_(g, xs) → xs"),
    twin("scan_of_mapped", "the elements are mapped twice", "map_(g, xs) → map_(g, map_(g, xs))"),
    twin("built_in_operator", "another operation", "Op.scalar(s) → Op.scalar(\"sub\")"),
)  # fmt: skip
