"""What stages a program has, which of them are small, and the whole that their terms make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from math import inf

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import merged
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import LAYOUT, is_pure
from lift_egraph.language.types import Array, bytes_of
from lift_egraph.meaning.flops import operations
from lift_egraph.meaning.workload import effort
from lift_egraph.workbench.exploration.stage_cut import Cut
from lift_egraph.workbench.phases import Found, Leg, Start
from lift_egraph.workbench.planning.plan import length_of, variables_of

SERIAL = 1 << 10  # elements of a fold that one work-item of a GPU does not take alone
LARGEST_REST = 0.1  # of the operations of the largest stage: what computes more is searched like that
Names = Mapping[ir.Expr, ir.Expr]  # the arrays that others stand for


def has_stages(term: ir.Expr) -> bool:
    """Whether an array is computed and then read, by more than a reduction that computes it on the fly."""
    readers = (*LAYOUT, ir.Map, ir.Scatter, ir.Apply)
    read = (p for t in ir.subterms(term) if isinstance(t, readers) for p in ir.parts(t) if isinstance(p, ir.Expr))
    return any(not is_pure(p) and isinstance(type_of(p), Array) for p in read)


def has_invariants(term: ir.Expr) -> bool:
    """Whether there is a reduction inside of two maps that the outer one does not change."""
    for changing, body in _maps(term):
        for own, inner in _maps(body):
            read = (ir.free_variables(t) for t in ir.subterms(inner) if isinstance(t, ir.Reduce))
            if any(own & free and not changing & free for free in read):
                return True
    return False


def kept_bytes(term: ir.Expr) -> int:
    """The most bytes of an array that a map computes for one element, and binds: a group keeps it in local memory."""
    lets = (t for _, body in _maps(term) for t in ir.subterms(body) if isinstance(t, ir.Apply))
    types = (type_of(let.argument) for let in lets if not is_pure(let.argument))
    return max((bytes_of(t) for t in types if isinstance(t, Array)), default=0)


def _maps(term: ir.Expr) -> Iterator[tuple[frozenset[ir.Var], ir.Expr]]:
    """What each map in a term binds, and what it computes."""
    for t in ir.subterms(term):
        if isinstance(t, ir.Map) and isinstance(t.function, ir.Lambda):
            yield variables_of(t.function.binder), t.function.body


def rests(parts: Cut, device: Device) -> list[ir.Input]:
    """The stages that compute little, beside the one that computes most, and take little time as loops too.

    One work-item of a GPU folds a thousand elements while all others do millions of operations.
    """
    count = operations if any(map(operations, parts.stages.values())) else effort
    counts = {stage: parts.times[stage] * count(body) for stage, body in parts.stages.items()}
    long = {stage for stage, body in parts.stages.items() if device.has_groups and _is_long_fold(body)}
    little = LARGEST_REST * max(counts.values())
    return [stage for stage, count in counts.items() if count < little and stage not in long]


def _is_long_fold(body: ir.Expr) -> bool:
    return isinstance(body, ir.FOLDS) and not isinstance(body, ir.AT_ONCE) and length_of(body.array) >= SERIAL


def twins(parts: Cut) -> dict[ir.Input, tuple[ir.Input, Names]]:
    """The stages that compute what one before them computes, of other arrays, with that and the names of these."""
    known: dict[object, tuple[ir.Input, Names]] = {}
    made: dict[ir.Input, tuple[ir.Input, Names]] = {}
    for stage, body in parts.stages.items():
        general, inputs = in_general(body)
        first, others = known.setdefault((general, parts.times[stage]), (stage, inputs))
        if first != stage:
            made[stage] = first, {others[name]: array for name, array in inputs.items()}
    return made


def in_general(body: ir.Expr) -> tuple[object, Names]:
    """What a stage computes, whatever its arrays and variables are called, and which array each name stands for."""
    arrays = dict.fromkeys(t for t in ir.subterms(body) if isinstance(t, ir.Input))
    names: Names = {array: ir.Input(f"input {i}", array.type) for i, array in enumerate(arrays)}
    return canonical(with_parts(body, names)), {name: array for array, name in names.items()}


def of_others(found: Found, names: Names) -> Found:
    """What was found for a stage, for one that is alike."""
    way = tuple(replace(leg, term=with_parts(leg.term, names)) for leg in found.way)
    return replace(found, term=with_parts(found.term, names), way=way)


def _at_once(ways: Mapping[ir.Input, tuple[Leg, ...]]) -> list[dict[ir.Input, Leg]]:
    """The legs of all stages, in the order of each: one phase takes several stages where their ways have it."""
    made: list[dict[ir.Input, Leg]] = []
    for stage, way in ways.items():
        known, names = [next(iter(legs.values())).name for legs in made], [leg.name for leg in way]
        both: list[dict[ir.Input, Leg]] = []
        for tag, a, b, c, d in SequenceMatcher(None, known, names, autojunk=False).get_opcodes():
            if tag == "equal":
                both += [{**legs, stage: leg} for legs, leg in zip(made[a:b], way[c:d], strict=True)]
            else:
                both += [*made[a:b], *({stage: leg} for leg in way[c:d])]
        made = both
    return made


def joined(parts: Cut, chosen: Mapping[ir.Input, Found], start: Start) -> Found:
    """What was found for each stage as one term, and the phases that lead there: each takes all stages as far as it did
    one.
    """
    terms, legs = dict(parts.stages), list(start[1])
    for of_stages in _at_once({stage: found.way for stage, found in chosen.items()}):
        terms |= {stage: leg.term for stage, leg in of_stages.items()}
        tiling = merged(*(leg.tiling for leg in of_stages.values()))
        widths = dict.fromkeys(w for leg in of_stages.values() for w in leg.widths)
        rules = dict.fromkeys(rule for leg in of_stages.values() for rule in leg.rules)
        iterations = max(leg.iterations for leg in of_stages.values())
        first, term = next(iter(of_stages.values())), parts.joined(terms)
        facts = {"tiling": tiling, "widths": tuple(widths), "rules": tuple(rules)}
        legs.append(replace(first, term=term, iterations=iterations, **facts))
    return Found(sum(f.cost for f in chosen.values() if f.cost < inf), legs[-1].term, tuple(legs))
