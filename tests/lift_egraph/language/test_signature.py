"""Signatures: how they are read, and that every part of the project that knows patterns knows them all, alike."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

from lift_egraph.api import LiftError, StructuralCost, alpha_equal, best_terms, judge, naive_term, references
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import analyses
from lift_egraph.egraph.encoding import check_depth, encoded, function_to_egg, operator_to_egg, to_egg, type_to_egg
from lift_egraph.egraph.exact_terms import place_of, read_only_member
from lift_egraph.egraph.frozen import DROPPED, FrozenEGraph
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.members import MemberSampler
from lift_egraph.egraph.pattern_nodes import CONSTANTS, KINDS, PATTERN_NODES
from lift_egraph.egraph.picture import to_networkx
from lift_egraph.egraph.read_back import from_egg, open_function, open_term
from lift_egraph.egraph.rule import together
from lift_egraph.egraph.rule_forms import read_term
from lift_egraph.egraph.scratch import Schedule, Scratch
from lift_egraph.guided.readings import Forms
from lift_egraph.language import ir, signature as sig
from lift_egraph.language.check import CONCRETE, codomain, domain, type_of
from lift_egraph.language.inference import made_type
from lift_egraph.language.misfits import CONDITIONS
from lift_egraph.language.nat import nat
from lift_egraph.language.nesting import GROUPS, LOCAL, OWN_LEVELS, check_nesting
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.language.types import F32, I32, Array, DataType, Pair
from lift_egraph.meaning.elements import element
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate, run
from lift_egraph.meaning.values import leaves_of
from lift_egraph.meaning.workload import workload
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.soundness.pattern_types import type_of_pattern
from tests.depth import depth, in_turn
from tests.strategies import programs

SLIDE = ir.Slide.signature


def test_a_signature_is_read() -> None:
    assert [(p.name, p.kind) for p in SLIDE.parameters] == [("size", "nat"), ("step", "nat"), ("array", "")]
    t = sig.TypeVariable("t")
    assert SLIDE.parameters[2].form == sig.ArrayForm("m", t)
    assert SLIDE.result == sig.ArrayForm(("+", ("/", ("-", "m", "size"), "step"), 1), sig.ArrayForm("size", t))
    assert SLIDE.conditions[3] == sig.Condition("step", "|", ("-", "m", "size"))
    assert ir.Generate.signature.parameters[1].form == sig.FunctionForm(I32, t)
    assert ir.Reduce.signature.parameters[0].form == sig.FunctionForm(sig.PairForm(t, t), t)
    assert [p.is_operator for node in (ir.Reduce, ir.ReduceSeq) for p in node.signature.parts] == [True] + [False] * 5


@pytest.mark.parametrize(
    "line", ["size: nat", "array: [t]n", "array [t]n -> t", "array: [t -> t", "array: [t]n -> t t"]
)
def test_a_wrong_signature_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)):
        _ = sig.Signature("wrong", line).parameters


# --- an example of every pattern, made of nothing but its signature --------------------------------------

SIZES = {"m": 8, "n": 4, "w": 2}
STATIC: dict[str, Any] = {
    "nat": nat(2), "offset": nat(1), "count": 2, "width": 2, "level": ir.Level("glb", 0), "space": "private",
    "boundary": ir.Boundary("clamp"), "indices": ir.IndexFunction("i", nat("n") - 1 - nat("i")), "name": "n",
}  # fmt: skip


def example(node: type[ir.Expr]) -> ir.Expr:
    """A term of the pattern on inputs; its functions give inputs, its operators their first argument."""
    signature = node.signature
    names: dict[str, Any] = dict.fromkeys(signature.type_variables, F32) | SIZES
    names |= {p.name: STATIC[p.kind] for p in signature.parameters if p.form is None}
    return node(*(_argument(p, names) for p in signature.parameters))


def _argument(p: sig.Parameter, names: dict[str, Any]) -> Any:
    if p.form is None:
        return STATIC[p.kind]
    if not isinstance(p.form, sig.FunctionForm):
        return ir.Input(p.name, made_type(p.form, names, CONCRETE))
    argument, result = (made_type(form, names, CONCRETE) for form in (p.form.argument, p.form.result))
    pattern, first = _bound(argument)
    return ir.Lambda(pattern, first if type_of(first) == result else ir.Input("result", result))


def _bound(t: DataType) -> tuple[ir.Binder, ir.Expr]:
    if isinstance(t, Pair):
        (first, value), (second, _) = _bound(t.first), _bound(t.second)
        renamed = ir.Var("second", t.second) if isinstance(second, ir.Var) else second
        return ir.PairBinder(first, renamed), value
    variable = ir.Var("first", t)
    return variable, variable


def program_of(term: ir.Expr) -> ir.Program:
    inputs = {i.name: i for i in ir.subterms(term) if isinstance(i, ir.Input)}
    return ir.Program("example", tuple(inputs.values()), term)


@cache
def analysing() -> tuple[Scratch, Schedule]:
    """An e-graph for one term after the other, and what it finds out about each."""
    scratch = Scratch()
    return scratch, scratch.compiled(together(analyses).saturate())


@cache
def frozen(term: ir.Expr) -> FrozenEGraph:
    scratch, analysis = analysing()
    with scratch.holding(to_egg(term)) as held:
        held.run(analysis)
        return held.freeze(facts=DROPPED)


# --- what knows patterns: each takes the example, and fails where it does not know the pattern ------------


def checks(term: ir.Expr) -> None:
    type_of(term)
    assert len(CONDITIONS.get(type(term), ())) == len(term.signature.conditions)


def fields(term: ir.Expr) -> None:
    known = dataclasses.fields(term)  # pyright: ignore[reportArgumentType]
    given = [f.name for f in known if f.default is dataclasses.MISSING]
    assert given == [p.name for p in term.signature.parameters]


def text(term: ir.Expr) -> None:
    program = program_of(term)
    assert alpha_equal(parse_program(print_program(program)).body, term)


def interpreter(term: ir.Expr) -> None:
    program = program_of(term)
    reference = references(program)
    found = [run(program, inputs.inputs) for inputs in (reference.integers, reference.floats)]
    assert judge(reference, *found).valid


def single_elements(term: ir.Expr) -> None:
    t = type_of(term)
    if isinstance(t, Array):
        inputs = random_inputs(program_of(term), kind="integer")
        last = (t.size.constant or 0) - 1
        whole, one = (next(leaves_of(evaluate(t, inputs))) for t in (term, element(term, last)))
        assert equal_values(whole[last], one)


def workloads(term: ir.Expr) -> None:
    assert workload(term) >= 0


def hierarchy(term: ir.Expr) -> None:
    check_nesting(in_group(term))


def in_group(term: ir.Expr) -> ir.Expr:
    """A term where it may stand: one of the items of a group, in a group."""
    if OWN_LEVELS.get(type(term)) != LOCAL:
        return term
    return ir.MapLevel(GROUPS, ir.Lambda(ir.Var("group", F32), term), ir.Input("groups", Array(nat(3), F32)))


def encoding(term: ir.Expr) -> None:
    graph = frozen(term)
    choice = MemberSampler(graph).sample(graph.roots["root"], random.Random(0))
    assert choice is not None
    assert alpha_equal(from_egg(graph, choice), term) or isinstance(term, ir.Iterate)


def egraph_types(term: ir.Expr) -> None:
    graph = frozen(term)
    assert graph.type_of(graph.roots["root"]) == type_of(term)


def egraph_names(term: ir.Expr) -> None:
    graph = frozen(term)
    assert graph.facts["fv"][graph.roots["root"],] == frozenset()


def finding(term: ir.Expr) -> None:
    graph = frozen(term)
    assert locate(graph, graph.roots["root"], term) is not None


def sketches(term: ir.Expr) -> None:
    graph = frozen(term)
    assert graph.roots["root"] in {owner for owner, _ in Forms(graph).called(ir.name_of(term))}


def rule_check(term: ir.Expr) -> None:
    assert type_of_pattern(read_term(to_egg(term))) == type_of(term)


def places(term: ir.Expr) -> None:
    graph = frozen(term)
    node = read_only_member(graph, graph.roots["root"])
    stem = re.sub(r"\W", "", ir.name_of(term))
    for path, _ in node.places():
        assert not path or place_of(node, path).startswith(stem)


def pictures(term: ir.Expr) -> None:
    graph = frozen(term)
    labels = {data["label"] for _, data in to_networkx(graph, graph.roots["root"]).nodes(data=True)}
    assert any(label.startswith(ir.name_of(term)) for label in labels)


def extraction(term: ir.Expr) -> None:
    graph = frozen(term)
    assert best_terms(graph, graph.roots["root"], StructuralCost(), 1)


def code_generator(term: ir.Expr) -> None:
    """Beside a map, for some patterns alone compute nothing."""
    x = ir.Var("x", F32)
    doubled = ir.Map(ir.Lambda(x, x * 2.0), ir.Input("xs", Array(nat(4), F32)))
    device = NVIDIA if isinstance(term, ir.ReduceSub) else POCL  # which has no sub-groups
    assert compile_program(naive_term(program_of(ir.MakePair(doubled, in_group(term)))), device).kernels


Engine = Callable[[ir.Expr], None]
ENGINES: tuple[Engine, ...] = (
    fields, checks, text, interpreter, single_elements, workloads, hierarchy, encoding, egraph_types, egraph_names,
    finding, sketches, rule_check, places, pictures, extraction, code_generator,
)  # fmt: skip


def unknown(engine: Engine, term: ir.Expr) -> str | None:
    """Why an engine does not know the pattern of a term, or None if it does."""
    try:
        engine(term)
    except (LiftError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as problem:
        return f"{engine.__name__} does not know {ir.name_of(term)}: {type(problem).__name__}: {problem}"
    return None


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
def test_every_pattern_is_known(engine: Engine) -> None:
    problems = [problem for node in ir.SIGNED if (problem := unknown(engine, example(node)))]
    assert not problems, "\n".join(problems)


@ir.pattern("mystery", "array: [t]n -> [t]n")
class Mystery(ir.Expr):
    array: ir.Expr


@pytest.mark.parametrize("engine", [interpreter, text, encoding, code_generator])
def test_an_engine_that_does_not_know_a_pattern_is_named(engine: Engine) -> None:
    assert f"{engine.__name__} does not know mystery" in str(unknown(engine, example(Mystery)))


def test_an_operation_of_the_egraph_has_the_parts_of_its_pattern() -> None:
    """In their order, numbers and texts first."""
    parts = {True: "Op", False: "Fn"}
    for node in PATTERN_NODES.values():
        declared = getattr(sorts, node.name).__egg_decls__.get_callable_decl(getattr(sorts, node.name).__egg_ref__)
        expected = [s for p in node.signature.parameters if p.form is None for s in KINDS[p.kind].sorts]
        expected += [parts[p.is_operator] if p.is_function else "Ex" for p in node.signature.parts]
        assert [t.ident.name for t in declared.signature.arg_types] == expected, node.name


# --- one type system ---------------------------------------------------------------------------------------


def assert_types_agree(term: ir.Expr) -> None:
    """The checker, the e-graph and the rule check give every part of a term the same type."""
    assert type_of_pattern(read_term(to_egg(term))) == type_of(term)
    graph = frozen(term)
    sampler = MemberSampler(graph)
    for owner, sort in graph.sorts.items():  # no rule ran: each class has one member
        if sort not in ("Ex", "Fn"):
            continue
        choice = sampler.sample(owner, random.Random(0))
        assert choice is not None
        if sort == "Ex":
            part = open_term(graph, choice)
            assert graph.type_of(owner) == type_of(part)
        else:
            function = open_function(graph, choice)
            assert (graph.domain(owner), graph.codomain(owner)) == (domain(function), codomain(function))


@settings(max_examples=depth(25, 1000))
@given(programs(low_level=True, steps=4))
def test_all_engines_give_the_same_types(program: ir.Program) -> None:
    try:
        check_depth(program.body)
    except LiftError:
        return
    assert_types_agree(program.body)


def constant_of(name: str, term: Any) -> sorts.Fn:
    """The function that a pattern is without its array, or for zip without both."""
    if isinstance(term, ir.Map):
        return sorts.Fn.map(4, function_to_egg(term.function))
    t = type_to_egg(type_of(argument_of(term)))
    if isinstance(term, ir.Reduce):
        return sorts.Fn.reduce(operator_to_egg(term.operator), to_egg(term.initial), t)
    numbers = [2] if isinstance(term, ir.Split) else []
    return getattr(sorts.Fn, name.removeprefix("Fn_"))(*numbers, t)


def argument_of(term: Any) -> ir.Expr:
    return ir.MakePair(term.first, term.second) if isinstance(term, ir.Zip) else term.array


@in_turn(6)
@pytest.mark.parametrize("name", CONSTANTS)
def test_functions_without_a_name_for_their_argument_have_the_type_of_their_pattern(name: str) -> None:
    term = example(CONSTANTS[name].node)  # pyright: ignore[reportArgumentType]
    applied = sorts.app(constant_of(name, term), to_egg(argument_of(term)))
    graph = frozen(
        encoded(ir.Apply(ir.Lambda(ir.Var("x", type_of(argument_of(term))), term), argument_of(term)), applied)
    )
    assert graph.type_of(graph.roots["root"]) == type_of(term)
    assert type_of_pattern(read_term(applied)) == type_of(term)
