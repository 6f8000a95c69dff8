"""Automata of few states over few elements, and their tables of words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lift_egraph.algebra.cascades import tabulated_parts
from lift_egraph.algebra.tabulated import Tabulated, tabulated_of
from lift_egraph.algebra.within_ranges import with_ranges
from lift_egraph.language import ir
from lift_egraph.language.nat import nat
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import leaves_of

N = 96
FOLDS = {
    "a number in any way": "reduceSeq(fun (s, c) => (s * 3 + to_i32(c)) % 10, 3, cs)",
    "more than ten states": "reduceSeq(fun (s, c) => (s * 3 + to_i32(c)) % 16, 3, cs)",
    "states that are no neighbours": "reduceSeq(fun (s, c) => if s == 9 && c > 99 then -700 else 9, 9, cs)",
    "a pair": "reduceSeq(fun ((on, n), c) => if (c > 127) == on then (on, 0) else (if n == 2 then (!on, 0) else "
    "(on, n + 1)), (false, 0), cs)",
    "a table of the program's": "reduceSeq(fun (s, c) => min(max(next[s][to_i32(c)], 0), 9), 0, cs)",
    "elements from a range": "reduceSeq(fun (s, k) => (s + 2 * k + 8) % 7, 6, ks)",
    "elements beyond i32": "reduceSeq(fun (s, l) => (s * 3 + to_i32(l % 7i64)) % 5, 0, ls)",
    "elements up to the largest": "reduceSeq(fun (s, u) => (s * 3 + to_i32(u % 7u32)) % 5, 0, us)",
    "bytes as states": "reduceSeq(fun (s, c) => if c < s then 9u8 else (if c > 200 then 201u8 else s), 0u8, cs)",
}
OTHERS = {
    "too many states": "reduceSeq(fun (s, c) => (s + to_i32(c)) % 17, 0, cs)",
    "too many elements": "reduceSeq(fun (s, i) => (s + min(max(i, 0), 999)) % 7, 0, is)",
    "a float": "reduceSeq(fun (s, x) => if x > 0.5 then 1 - s else s, 0, xs)",
    "nobody knows where it begins": "reduceSeq(fun (s, c) => if c == 0 then 1 - s else s, is[0], cs)",
    "it may be any number": "reduceSeq(fun (s, c) => s + to_i32(c), 0, cs)",
}


def program_of(fold: str) -> ir.Program:
    inputs = "cs: [u8]96, ks: [i32]96 in -4..3, is: [i32]96, xs: [f32]96, next: [[i32]256]10"
    inputs += ", ls: [i64]96 in -5000000004..-4999999990, us: [u32]96 in 4294967040..4294967296"
    return with_ranges(parse_program(f"program p({inputs}) = {fold}"))


def inputs_of(seed: int, *, wild: bool = False) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    ks = draw.integers(-(2**31), 2**31, N) if wild else draw.integers(-4, 3, N)
    return {
        "cs": draw.integers(0, 256, N, dtype=np.uint8),
        "ks": ks.astype(np.int32),
        "ls": draw.integers(-5000000004, -4999999990, N),
        "us": draw.integers(4294967040, 4294967296, N, dtype=np.uint32),
        "is": draw.integers(0, 9, N, dtype=np.int32),
        "xs": draw.random(N, dtype=np.float32),
        "next": draw.integers(-2, 12, (10, 256), dtype=np.int32),
    }


def by_table(fold: ir.ReduceSeq, found: Tabulated) -> tuple[ir.Expr, ir.Expr]:
    """The fold by its table from where it begins, and from all states at once."""
    step, all_of = found.step, found.steps

    def folded(step: ir.Lambda, start: ir.Expr) -> ir.Expr:
        words, (own, x) = step.binder.first, (step.binder.second.first, step.binder.second.second)
        each = ir.Lambda(ir.PairBinder(own, x), step.body)
        return ir.Apply(ir.Lambda(words, ir.ReduceSeq(each, start, fold.array)), found.words)

    one = folded(step, found.start)
    among_all = ir.Apply(found.found, ir.MakePair(found.start, folded(all_of, found.places)))
    return ir.Apply(found.value, one), ir.Apply(found.value, among_all)


@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_is_one_by_its_table(name: str):
    fold = program_of(FOLDS[name]).body
    found = tabulated_of(fold.operator, fold.initial)
    assert found is not None
    for seed in range(6):
        inputs = inputs_of(seed, wild=seed % 2 == 1)
        wanted, *others = (list(leaves_of(evaluate(e, inputs))) for e in (fold, *by_table(fold, found)))
        assert all(made == wanted for made in others)


@pytest.mark.parametrize("name", OTHERS)
def test_other_folds_have_none(name: str):
    fold = program_of(OTHERS[name]).body
    assert tabulated_of(fold.operator, fold.initial) is None


@given(st.data())
def test_any_automaton_has_the_words_of_its_states(data: st.DataObject):
    """The table of next states in nested choices, from any state of it."""
    count, kinds = data.draw(st.integers(2, 16)), data.draw(st.integers(1, 4))
    after = [[data.draw(st.integers(0, count - 1)) for _ in range(kinds)] for _ in range(count)]
    of_state = [
        "".join(f"if c == {k} then {s} else (" for k, s in enumerate(row[:-1])) + str(row[-1]) + ")" * (kinds - 1)
        for row in after
    ]
    choices = "".join(f"if s == {n} then ({e}) else (" for n, e in enumerate(of_state[:-1])) + of_state[-1]
    start = data.draw(st.integers(0, count - 1))
    text = data.draw(st.lists(st.integers(0, kinds), min_size=1, max_size=40))
    program = parse_program(
        f"program p(cs: [u8]{len(text)}) = reduceSeq(fun (s, c) => {choices}{')' * (count - 1)}, {start}, cs)"
    )
    found = tabulated_of(program.body.operator, program.body.initial)
    state = start
    for c in text:
        state = after[state][min(c, kinds - 1)]
    reached = {start}
    for _ in range(count):
        reached |= {s for r in reached for s in after[r]}
    assert (found is not None) == (len(reached) > 1)
    for made in by_table(program.body, found) if found else ():
        assert int(evaluate(made, {"cs": np.array(text, np.uint8)})) == state


def test_what_is_beside_the_states_is_a_part_of_its_own():
    fold = program_of("reduceSeq(fun ((s, n), c) => ((s + to_i32(c)) % 5, n + select(s == 3, 1, 0)), (0, 0), cs)").body
    assert tabulated_of(fold.operator, fold.initial) is None
    parts = tabulated_parts(fold.operator, fold.initial)
    assert parts is not None
    assert print_term(parts[0].rest) == "fun (n, s, c) => n + select(s == 3, 1, 0)"
    assert isinstance(parts[1].words, ir.Map)
    assert parts[1].words.array.size == nat(256)


def test_elements_are_moved_between_the_bounds_of_an_input():
    fold = program_of(FOLDS["elements from a range"]).body
    assert print_term(fold.operator) == "fun (s, k) => (s + 2 * min(max(k, -4), 2) + 8) % 7"
    found = tabulated_of(fold.operator, fold.initial)
    assert found is not None
    assert isinstance(found.words, ir.Map)
    assert found.words.array.size == nat(7)
