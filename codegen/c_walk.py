"""Ways through the C-like tree: what is in it, and trees with other parts in place of some.

A tree is gone through by many passes, which ask the same of most statements: what is found is kept with its node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import is_
from typing import Any, TypeVar

from lift_egraph.caching import field_names
from lift_egraph.codegen.c_ast import (
    AROUND,
    Barrier,
    Block,
    CExpr,
    Computed,
    For,
    If,
    Lane,
    Load,
    Name,
    Operate,
    Statement,
    Store,
    lane_of,
)
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import F64, scalar_of

Around = TypeVar("Around", bound=For | If | Block)
Node = TypeVar("Node", bound=CExpr | Statement)

OF_DOUBLES = 8  # functions of floats that one of doubles is like, in instructions
_NONE = frozenset[str]()
_NAMED = "name", "sine", "cosine", "variable", "buffer", "read", "write"  # fields with what has a name
_HOLDS_NODES = re.compile(r"\b(CExpr|Nat|Body|Statement)\b")  # the types of fields


@cache
def _part_names(node_type: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(node_type) if _HOLDS_NODES.search(str(f.type)))


def children(item: Any) -> tuple[Any, ...]:
    """The direct sub-expressions, sub-statements and index expressions of a node (found once per node).

    Those of an index expression are the data that it reads.
    """
    known = item.__dict__.get("_children")
    if known is None:
        if isinstance(item, Nat):
            known = tuple([v.value for v in data_in(item)])
        else:
            found: list[Any] = []
            for name in _part_names(type(item)):
                value = getattr(item, name)
                if isinstance(value, tuple):
                    found += value
                else:
                    found.append(value)
            known = tuple(found)
        item.__dict__["_children"] = known
    return known


def data_in(index: Nat) -> tuple[Computed, ...]:
    """The data that an index expression reads (found once per expression)."""
    known = index.__dict__.get("_data")
    if known is None:
        known = index.__dict__["_data"] = tuple(v for v in index.mentioned if isinstance(v, Computed))
    return known


def mentioned(item: Any) -> frozenset[str]:
    """The names of the index variables in a node, also in the data that its indices read (found once per node)."""
    known = item.__dict__.get("_mentioned")
    if known is None:
        known = frozenset([v.name for v in item.mentioned]) if isinstance(item, Nat) else _NONE
        for part in children(item):
            found = mentioned(part)
            if not found <= known:  # most nodes mention what one of their parts does: they share a set
                known = found if known <= found else known | found
        item.__dict__["_mentioned"] = known
    return known


def walk(item: Any) -> Sequence[Any]:
    """A node, or a body, with everything below it (found once per statement).

    Index expressions are entered where they read data.
    """
    found: list[Any] = []
    ahead = list(reversed(item)) if isinstance(item, tuple) else [item]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Statement):
            known = node.__dict__.get("_walk")
            if known is None:
                known = node.__dict__["_walk"] = (node, *walk(children(node)))
            found += known
        else:
            found.append(node)
            below = node.__dict__.get("_children")
            if below is None:
                below = children(node)
            if below:
                ahead.extend(reversed(below))
    return found


def mentioning(item: Any, variable: NatVar) -> Iterator[Any]:
    """The nodes of `walk` that mention an index variable, themselves or in what is below them."""
    ahead = list(reversed(item)) if isinstance(item, tuple) else [item]
    name = variable.name
    while ahead:
        node = ahead.pop()
        known = node.__dict__.get("_mentioned")
        if name in (mentioned(node) if known is None else known):
            yield node
            if below := children(node):
                ahead.extend(reversed(below))


def statements(item: Any) -> Iterator[Statement]:
    """The statements of a body, or a statement, with those inside them: `walk` without what they compute."""
    ahead = list(reversed(item)) if isinstance(item, tuple) else [item]
    while ahead:
        statement = ahead.pop()
        if isinstance(statement, Statement):
            yield statement
            if isinstance(statement, AROUND):
                ahead.extend(reversed(statement.body))


def known_names(item: Any) -> set[str]:
    """The names of all constants, variables and arrays that a node declares or uses."""
    found = set[str]()
    for part in walk(item):
        for attribute in _naming(type(part)):
            own = getattr(part, attribute)
            found.add(own if isinstance(own, str) else own.name)
    return found


@cache
def _naming(node_type: type) -> tuple[str, ...]:
    """The fields of a node with what has a name."""
    return tuple(name for name in field_names(node_type) if name in _NAMED)


def loads(item: Any) -> Sequence[Load]:
    """The loads that evaluating a node performs (found once per statement): places of stores do not count."""
    if isinstance(item, tuple):
        return [load for part in item for load in loads(part)]
    if not isinstance(item, Statement):
        return [part for part in walk(item) if isinstance(part, Load)]
    known = item.__dict__.get("_loads")
    if known is None:
        parts = children(item)
        if isinstance(item, Store):
            below = children(item.place)
            parts = (item.value, *(i for part in below for i in ((part,) if isinstance(part, Nat) else children(part))))
        known = item.__dict__["_loads"] = tuple(loads(parts))
    return known


def names(item: Any) -> Sequence[str]:
    """The constants and by-value arguments that a node uses, each as often as it does (found once per node)."""
    if isinstance(item, tuple):
        return [name for part in item for name in names(part)]
    if isinstance(item, Name):
        return (item.name,)
    known = item.__dict__.get("_names")
    if known is None:
        known = item.__dict__["_names"] = tuple([name for part in children(item) for name in names(part)])
    return known


def buffers(item: Any) -> frozenset[str]:
    """The names of the arrays in global memory that a node reads or writes (found once per node)."""
    if isinstance(item, tuple):
        return frozenset[str]().union(*map(buffers, item))
    known = item.__dict__.get("_buffers")
    if known is None:
        below = children(item)
        own = {item.buffer.name} if isinstance(item, Load) and item.buffer.space == "global" else ()
        known = item.__dict__["_buffers"] = frozenset(own).union(*map(buffers, below)) if below or own else _NONE
    return known


def functions(item: Any) -> int:
    """How many functions of floats a node calls (found once per node); one of doubles counts for `OF_DOUBLES`."""
    known = item.__dict__.get("_functions")
    if known is None:
        own = 0
        if isinstance(item, Operate) and OPERATIONS[item.op].kind == "float":
            own = OF_DOUBLES if scalar_of(item.type) == F64 else 1
        known = item.__dict__["_functions"] = own + sum(map(functions, children(item)))
    return known


def waits(statement: Statement) -> bool:
    """Whether a statement is a barrier, or one stands in it (found once per statement)."""
    if not isinstance(statement, AROUND):
        return isinstance(statement, Barrier)
    known = statement.__dict__.get("_waits")
    if known is None:
        known = statement.__dict__["_waits"] = any(map(waits, statement.body))
    return known


def stores(item: Any) -> Sequence[Load]:
    """The places that running a node writes, as loads (found once per statement)."""
    if isinstance(item, tuple):
        return [place for part in item for place in stores(part)]
    if not isinstance(item, AROUND):
        return (_place(item),) if isinstance(item, Store) else ()
    known = item.__dict__.get("_stores")
    if known is None:
        known = item.__dict__["_stores"] = tuple(stores(item.body))
    return known


def _place(store: Store) -> Load:
    place = store.place.vector if isinstance(store.place, Lane) else store.place
    assert isinstance(place, Load)
    return place


def depends(item: Any, variable: NatVar) -> bool:
    """Whether a node mentions an index variable."""
    return any(isinstance(part, Nat) and variable in part.variables for part in mentioning(item, variable))


def substitute_index(value: Nat, values: Mapping[str, Nat]) -> Nat:
    """An index expression with variables replaced, also inside the data it reads."""
    if not data_in(value):
        return value.substitute(values)

    def new(atom: Any) -> Nat | None:
        if isinstance(atom, Computed):
            return atom.of(substitute(atom.value, values))
        return values.get(atom.name) if isinstance(atom, NatVar) else None

    return value.rebuild(new)


def substitute(item: Any, values: Mapping[str, Nat]) -> Any:
    """A node, or a body, with index variables replaced by name."""
    names, done = values.keys(), dict[Nat, Nat]()

    def change(part: Any) -> Any:
        if names.isdisjoint(mentioned(part)):
            return part
        if not isinstance(part, Nat):
            return None
        if type(part) is not Nat:  # as it was written, it is more than what it is equal to
            return substitute_index(part, values)
        if (new := done.get(part)) is None:
            new = done[part] = substitute_index(part, values)
        return new

    return rewrite(item, change)


def copies(body: tuple[Node, ...], name: str, values: Sequence[Nat]) -> list[tuple[Node, ...]]:
    """A body, or some values, for each value of an index variable, as `substitute` makes it: all at once, for they are
    much alike.
    """
    done = dict[Nat, list[Nat]]()
    apart = [(value - values[0]).constant for value in values[1:]]
    # what an index reads may vanish with the variable; else copies use the same names
    uses_same = not any(isinstance(part, Nat) and data_in(part) for part in walk(body))

    def made(part: Any) -> Sequence[Any] | None:
        """What a node becomes in each of them; None where it stays."""
        if name not in mentioned(part):
            return None
        if isinstance(part, Nat):
            if type(part) is not Nat:
                return [substitute_index(part, {name: value}) for value in values]
            if part not in done:
                done[part] = _at_each(part, name, values, apart)
            return done[part]
        changed: dict[str, Sequence[Any]] = {}
        for field in _part_names(type(part)):
            old = getattr(part, field)
            new = together(old) if isinstance(old, tuple) else made(old)
            if new is not None:
                changed[field] = new
        if isinstance(part, Lane):
            vectors, lanes = (changed.get(field, [getattr(part, field)] * len(values)) for field in ("vector", "lane"))
            return list(map(lane_of, vectors, lanes))
        kept = {field: vars(part)[field] for field in field_names(type(part))}
        if uses_same:
            kept |= {"_names": names(part), "_buffers": buffers(part), "_functions": functions(part)}
        every = zip(*changed.values(), strict=True)
        return [_made(type(part), {**kept, **dict(zip(changed, each, strict=True))}) for each in every]

    def together(parts: tuple[Any, ...]) -> Sequence[tuple[Any, ...]] | None:
        each = [made(part) for part in parts]
        if all(new is None for new in each):
            return None
        every = ([part] * len(values) if new is None else new for part, new in zip(parts, each, strict=True))
        return list(zip(*every, strict=True))

    return list(together(body) or [body] * len(values))


def _at_each(index: Nat, name: str, values: Sequence[Nat], apart: Sequence[int | None]) -> list[Nat]:
    """An index at each value of a variable, which are so far from the first; where it is linear, so are these."""
    first = substitute_index(index, {name: values[0]})
    slope = None if data_in(index) else _slope(index, name)
    if slope is None or None in apart:
        return [first, *(substitute_index(index, {name: value}) for value in values[1:])]
    made = [first.plus(slope * distance) for distance in apart if distance is not None]
    if type(first) is Nat:  # with another number it mentions the same
        for other in made:
            other.__dict__.update(_mentioned=mentioned(first), _data=(), _children=())
    return [first, *made]


def _slope(index: Nat, name: str) -> int | None:
    """By how much an index grows with a variable; None if it is not linear."""
    found = 0
    for monomial, coefficient in index.terms:
        own = [atom for atom in monomial if any(v.name == name for v in nat(atom).variables)]
        if own:
            if len(monomial) > 1 or not isinstance(own[0], NatVar):
                return None
            found += coefficient
    return found


def with_body(statement: Around, body: Sequence[Statement]) -> Around:
    """The statement with another body; the same, with all that is known of it, if nothing in it is another."""
    if len(body) == len(statement.body) and all(map(is_, body, statement.body)):
        return statement
    return _with(statement, {"body": tuple(body)})


def rewrite(item: Any, change: Callable[[Any], Any]) -> Any:
    """A node or body rebuilt top-down: `change` gives a replacement for a node, or None to go into it."""
    if isinstance(item, tuple):
        return tuple([rewrite(part, change) for part in item])
    new = change(item)
    if new is not None:
        return new
    if isinstance(item, Nat):
        return item.rebuild(lambda atom: _rewrite_data(atom, change)) if data_in(item) else item
    updates: dict[str, Any] = {}
    for name in _part_names(type(item)):
        old = getattr(item, name)
        if isinstance(old, tuple):
            fresh = tuple([rewrite(part, change) for part in old])
            if all(map(is_, fresh, old)):
                continue
        else:
            fresh = rewrite(old, change)
        if fresh is not old:
            updates[name] = fresh
    if isinstance(item, Lane) and updates:
        return lane_of(updates.get("vector", item.vector), updates.get("lane", item.lane))
    return _with(item, updates) if updates else item


def _with(item: Any, updates: dict[str, Any]) -> Any:
    """`dataclasses.replace`, without a call of the constructor: no node computes anything there."""
    known = vars(item)
    return _made(type(item), {**{name: known[name] for name in field_names(type(item))}, **updates})


def _made(kind: type, known: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", known)
    return made


def _rewrite_data(atom: Any, change: Callable[[Any], Any]) -> Nat | None:
    if not isinstance(atom, Computed):
        return None
    return atom.of(rewrite(atom.value, change))
