"""Every engine holds the whole table of scalar operations: who adds one finds here what else must know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import product
from typing import Any

import egglog
import numpy as np
import pytest

from lift_egraph.api import evaluate, random_inputs, type_of
from lift_egraph.codegen.c_ast import Const, Name, Operate
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES
from lift_egraph.codegen.text.scalar_text import ScalarText
from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import analyses
from lift_egraph.egraph.encoding import new_graph, to_egg
from lift_egraph.egraph.frozen import freeze
from lift_egraph.egraph.rule import rule, together
from lift_egraph.egraph.sorts import Ex
from lift_egraph.errors import LiftError, TypeProblem
from lift_egraph.extract import analytical_cpu, analytical_gpu, cost
from lift_egraph.language import build as b, ir
from lift_egraph.language.functions import Section
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS, ScalarOp, result_type
from lift_egraph.language.syntax import parse_term, print_term
from lift_egraph.language.types import BOOL, F16, F32, F64, I32, I64, U8, U32, DataType, Vector, scalar_of, width_of
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.values import leaves_of
from lift_egraph.soundness.instances import Instances
from tests.codegen.opencl import as_pocl_likes
from tests.depth import in_turn

SCALARS = (F32, F64, I32, BOOL, I64, U32, U8, F16)
ARGUMENTS: tuple[DataType, ...] = (*SCALARS, *(Vector(s, 4) for s in SCALARS))


def calls(op: ScalarOp, arguments: Callable[[str, DataType], ir.Expr] = ir.Input) -> Iterator[ir.Call]:
    """The operation on every mixture of scalars and vectors that the checker allows."""
    for types in product(ARGUMENTS, repeat=op.arity):
        try:
            result_type(op.name, types)
        except TypeProblem:
            continue
        yield ir.Call(op.name, tuple(arguments(f"{name}_{t}", t) for name, t in zip("abc", types, strict=False)))


def values_for(term: ir.Expr) -> dict[str, Any]:
    inputs = {t.name: t for t in ir.subterms(term) if isinstance(t, ir.Input)}
    return random_inputs(ir.Program("call", tuple(inputs.values()), term))


def checker(op: ScalarOp) -> None:
    assert list(calls(op)), "no arguments fit"


def builder(op: ScalarOp) -> None:
    names = {name for name, value in vars(b).items() if value == Section(op.name)}
    assert names & set(b.__all__), f"{b.__name__} has no function for it"


def text_form(op: ScalarOp) -> None:
    for term in calls(op):
        types = {t.name: str(t.type) for t in ir.subterms(term) if isinstance(t, ir.Input)}
        assert parse_term(print_term(term), types) == term


def interpreter(op: ScalarOp) -> None:
    for term in calls(op):
        values = values_for(term)
        found = evaluate(term, values)
        assert found.dtype == NUMPY_TYPES[scalar_of(type_of(term)).name]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, op.meaning(*(values[a.name] for a in term.arguments)))


def error_bounds(op: ScalarOp) -> None:
    def rounded(name: str, t: DataType) -> ir.Expr:
        x = ir.Input(name, t)
        return x / 3.0 if scalar_of(t).is_float else x

    for term in calls(op, rounded):
        values = values_for(term)
        exact, bound = evaluate_bounded(term, values)
        found = evaluate(term, values)
        with np.errstate(invalid="ignore"):
            near = np.abs(np.subtract(found, exact, dtype=np.float64)) <= bound
        assert np.all(near | (found == exact) | (np.isnan(found) & np.isnan(exact)))


@cache
def types_in_the_e_graph() -> dict[ir.Call, DataType | None]:
    graph = new_graph()
    terms = [term for op in OPERATIONS.values() for term in calls(op)]
    roots: dict[str, egglog.Expr] = {f"root_{n}": graph.let(f"root_{n}", to_egg(term)) for n, term in enumerate(terms)}
    graph.run(together(analyses).saturate())
    frozen = freeze(graph, roots)
    return {term: frozen.type_of(frozen.roots[root]) for term, root in zip(terms, roots, strict=True)}


def e_graph(op: ScalarOp) -> None:
    found = types_in_the_e_graph()
    for term in calls(op):
        assert found[term] == type_of(term), term


def rule_check(op: ScalarOp) -> None:
    @rule(f"{op.name} is itself")
    def same(x: Ex, y: Ex, z: Ex):
        call = (sorts.call1, sorts.call2, sorts.call3)[op.arity - 1](op.name, *(x, y, z)[: op.arity])
        yield egglog.rewrite(call).to(call)

    Instances(same).draw("0")


def c_text(op: ScalarOp) -> None:
    for device in DEVICES.values():
        for term in calls(op):
            arguments = tuple(Const(0, a.type) for a in term.arguments)
            ScalarText(device.emission).operation(Operate(op.name, arguments, type_of(term)), [("x", 12)] * op.arity)


def costs(op: ScalarOp) -> None:
    """A function of floats has no usual cost; what else has none of its own has the default."""
    on_cpus = analytical_cpu._COST | analytical_cpu._CALL
    known = {"cost": cost.CALLS, "analytical_gpu": analytical_gpu._COST, "analytical_cpu": on_cpus}
    lacking = [name for name, table in known.items() if op.kind == "float" and op.name not in table]
    assert not lacking, f"{', '.join(lacking)} must say what it costs"


ENGINES = (checker, builder, text_form, interpreter, error_bounds, e_graph, rule_check, c_text, costs)


def unknown(engine: Callable[[ScalarOp], None], op: ScalarOp) -> str | None:
    """Why an engine does not know an operation, or None if it does."""
    try:
        engine(op)
    except (KeyError, LiftError, AssertionError) as problem:
        return f"{engine.__name__} does not know {op.name}: {problem!r}"
    return None


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
def test_every_engine_knows_every_operation(engine: Callable[[ScalarOp], None]) -> None:
    problems = [problem for op in OPERATIONS.values() if (problem := unknown(engine, op))]
    assert not problems, "\n".join(problems)


def test_comparisons_stand_in_parentheses_beside_bits() -> None:
    """Compilers warn of ``a & b >= c``, and users see that."""
    mask, text = Vector(BOOL, 4), ScalarText(DEVICES["pocl"].emission)
    parts = [("a", 12), text.infix(">=", [("b", 12), ("c", 12)])]
    names = (Name("m", mask), Name("n", mask))
    assert text.operation(Operate("and", names, mask), parts)[0] == "a & (b >= c)"
    assert text.infix("&&", parts)[0] == "a && b >= c"


def nested(make: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    return reduce(lambda rest, part: make(part, rest), reversed(parts))


@in_turn(6)
@pytest.mark.parametrize("dialect", ["pocl", "generic"])
@pytest.mark.parametrize("kind", dict.fromkeys(op.kind for op in OPERATIONS.values()))
def test_kernels_compute_what_the_interpreter_does(queue: Any, kind: str, dialect: str) -> None:
    """On arrays of scalars and vectors, with many operations in one kernel."""
    from lift_egraph.codegen.running.loaded import LoadedKernel

    terms = [term for op in OPERATIONS.values() if op.kind == kind for term in calls(op, ir.Var)]
    for some in (terms[n : n + 60] for n in range(0, len(terms), 60)):
        variables = list(dict.fromkeys(v for term in some for v in term.arguments))
        widths = [width_of(v.type) for v in variables]
        inputs = [ir.Input(v.name, b.array(scalar_of(v.type), 2 * w)) for v, w in zip(variables, widths, strict=True)]
        arrays = [xs if w == 1 else b.as_vector(w, xs) for xs, w in zip(inputs, widths, strict=True)]
        function = ir.Lambda(nested(ir.PairBinder, variables), nested(ir.MakePair, some))
        program = ir.Program("calls", tuple(inputs), ir.MapLevel(ir.Level("glb", 0), function, nested(ir.Zip, arrays)))
        values = random_inputs(program)
        plan = as_pocl_likes(compile_program(program, DEVICES[dialect]))
        found, wanted = LoadedKernel(plan, queue)(**values), evaluate(program.body, values)
        for term, got, want in zip(some, leaves_of(found), leaves_of(wanted), strict=True):
            close = 1e-3 if want.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(got, want, rtol=close, err_msg=print_term(term))
