"""What phases of rules find for a term: work-items share it, but for loops whose steps wait for each other."""

import numpy as np
import pytest

from lift_egraph.api import parse_program, references, run, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import ir
from lift_egraph.workbench import Budget
from lift_egraph.workbench.exploration.by_rules import ByRules
from lift_egraph.workbench.phases import Found

STEP = "fun ((h, c), x) => let g = map(fun row => x + reduce(add, 0.0, map(mul, zip(row, h))), A) in (g, h)"
LOOPS = {
    f"let (h, c) = reduceSeq({STEP}, (fill(4, 0.0), fill(4, 0.0)), xs) in h": True,
    "reduceSeq(fun (h, x) => map(fun row => x + reduce(add, 0.0, map(mul, zip(row, h))), A), fill(4, 0.0), xs)": True,
    "map(fun row => reduceSeq(fun (s, x) => 0.5 * s + x, 0.0, row), A)": False,
}


@pytest.mark.parametrize("written", LOOPS)
def test_loops_that_nothing_shares_out_are_found_in_one_work_item(written: str):
    program = specialise(parse_program(f"program p(xs: [f32]6, A: [[f32]4]4) = {written}"))
    look = ByRules(POCL, Budget(20), StructuralCost(), (4,))
    found = [item.term for item in look.as_it_is((program.body, ())) if isinstance(item, Found)]
    assert found
    inputs = references(program).integers.inputs
    for term in found:
        levels = {t.level.kind for t in ir.subterms(term) if isinstance(t, ir.MapLevel)} - {"seq"}
        assert not levels if LOOPS[written] else levels
        assert np.array_equal(run(ir.Program("p", program.inputs, term), inputs), run(program, inputs))
    assert compile_program(ir.Program("p", program.inputs, found[0]), POCL)
