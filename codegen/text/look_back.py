"""The text of groups that look back over what the groups before them have published.

Each word of a state has 64 bits, so that a flag and a value are read together: 0, nothing; 1, the total of a group; 2,
of all groups up to it. The lower half is the value. Words of one state belong together where their flags are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.text.scalar_text import C_NAMES, type_name
from lift_egraph.language.types import SCALAR_BYTES, scalar_of

TOTAL, PREFIX = "(1ul << 32)", "(2ul << 32)"
FIRST_ITEM = "if (get_local_id(0) == 0) {"
MEET = "barrier(CLK_LOCAL_MEM_FENCE);"


def states_of(body: c_ast.Body) -> list[c_ast.Load]:
    """The places in global memory that groups tell each other something in."""
    found: list[Any] = [s.states for s in c_walk.statements(body) if isinstance(s, c_ast.LookBack)]
    found += [s.ticket[0] for s in c_walk.statements(body) if isinstance(s, c_ast.For) and s.ticket]
    return found


def ticket(counter: str, place: str) -> list[str]:
    """A group takes its number."""
    return [f"{FIRST_ITEM} {place} = atomic_inc((volatile global int *)&{counter}); }}", MEET]


def look_back(printer: Any, s: c_ast.LookBack) -> Iterator[str]:
    """The lines of it, from the publication of a total to what all work-items of the group know."""
    states, seen, last, k, at = s.names
    values, near, words = printer.values, s.near, len(s.near)
    types = [scalar_of(total.type).name for total in s.total]
    texts = [values.text(o) for o in s.operands]
    left, right, combined = (texts[n * len(types) : (n + 1) * len(types)] for n in range(3))
    rest, group = values.text(s.left), values.index.atomic(s.group)
    offset, initial = ([values.text(o) for o in part] for part in (s.offset, s.initial))
    steps = [line.text for line in printer.body(s.combine, 0)]
    first = near[0]  # its flag is that of the others, too

    def combine(a: Sequence[str], b: Sequence[str]) -> list[str]:
        operands = zip((*left, *right), (*a, *b), strict=True)
        return [*(f"{place} = {value};" for place, value in operands), *steps]

    def stands_before(what: Sequence[str]) -> list[str]:
        stores = (c_ast.Store(place, c_ast.Name(x, place.type)) for place, x in zip(s.offset, what, strict=True))
        return [f"{line};" for store in stores for line in printer.simple_statement(store)]

    def publish(flag: str, what: Sequence[str]) -> list[str]:
        made = enumerate(_words(types, what))
        return [f"atom_xchg({states} + {_place(group, words, j)}, {flag} | {word});" for j, word in made]

    def read(names: Sequence[str], array: str, index: str) -> list[str]:
        return [f"{name} = {array}[{_place(index, words, j)}];" for j, name in enumerate(names)]

    def fold(begin: str, count: int, index: str) -> list[str]:
        """The states from one on, the nearest group's first, up to one that has all before it."""
        inside = [f"const ulong {line}" for line in read(s.far, seen, index)]
        inside += [f"if ({first} < {PREFIX}) {{"]
        inside += ["  " + x for x in combine(_values(types, s.far), _values(types, near))]
        made = zip(near, s.far, _words(types, combined), strict=True)
        inside += [*(f"  {name} = ({far} >> 32 << 32) | {word};" for name, far, word in made), "}"]
        loop = ["#pragma unroll", f"for (int {at} = 1; {at} < {count}; {at}++) {{", *("  " + x for x in inside), "}"]
        return [*(f"ulong {line}" for line in read(near, seen, begin)), *(loop if count > 1 else [])]

    def keep(index: str) -> list[str]:
        return [f"{seen}[{_place(index, words, j)}] = {name};" for j, name in enumerate(near)]

    each = s.width // s.parts
    among = f"for (int {k} = get_local_id(0); {k} < {{}}; {k} += get_local_size(0)) {{{{"
    is_apart = "".join(f" || {name} >> 32 != {first} >> 32" for name in near[1:])
    yield "{"
    yield f"  volatile global ulong *{states} = (volatile global ulong *)&{values.text(s.states)};"
    yield f"  local ulong *{seen} = (local ulong *)&{values.text(s.seen)};"
    for total, own in zip(s.total, s.own, strict=True):
        yield f"  const {type_name(total.type)} {own} = {values.text(total)};"
    yield f"  {FIRST_ITEM}"
    yield f"    {rest} = {group};"
    yield f"    if ({group} == 0) {{"
    yield from ("      " + x for x in stands_before(initial))
    yield from ("      " + x for x in (*combine(offset, s.own), *publish(PREFIX, combined)))
    yield "    } else {"
    yield from ("      " + x for x in publish(TOTAL, s.own))
    yield "    }"
    yield "  }"
    yield f"  {MEET}"
    yield f"  for (int {last} = {rest}; {last} > 0; {last} = {rest}) {{"
    yield f"    {among.format(s.width)}"
    yield f"      const int {at} = {last} - 1 - {k};"
    yield from (f"      ulong {name} = {PREFIX};" for name in near)
    yield f"      if ({at} >= 0) do {{"
    yield from ("        " + x for x in read(near, states, at))
    yield f"      }} while ({first} < {TOTAL}{is_apart});"
    yield from ("      " + x for x in keep(k))
    yield "    }"
    yield f"    {MEET}"
    if s.parts > 1:
        yield f"    {among.format(s.parts)}"
        yield from ("      " + x for x in fold(f"({k} * {each})", each, f"({k} * {each} + {at})"))
        yield from ("      " + x for x in keep(f"({s.width} + {k})"))
        yield "    }"
        yield f"    {MEET}"
    begin, count = (s.width, s.parts) if s.parts > 1 else (0, s.width)
    yield f"    {FIRST_ITEM}"
    yield from ("      " + x for x in fold(str(begin), count, f"({begin} + {at})"))
    yield f"      if ({last} < {group}) {{"
    yield from ("        " + x for x in (*combine(_values(types, near), offset), *stands_before(combined)))
    yield "      } else {"
    yield from ("        " + x for x in stands_before(_values(types, near)))
    yield "      }"
    yield f"      {rest} = {first} < {PREFIX} ? {last} - {s.width} : 0;"
    yield f"      if ({first} >= {PREFIX}) {{"
    yield from ("        " + x for x in (*combine(offset, s.own), *publish(PREFIX, combined)))
    yield "      }"
    yield "    }"
    yield f"    {MEET}"
    yield "  }"
    yield "}"


def _place(index: str, words: int, word: int) -> str:
    return index if words == 1 else f"{index} * {words} + {word}"


def _words(types: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    """The words of 32 bits of some scalars, each as the lower half of one of 64."""
    for t, value in zip(types, values, strict=True):
        if SCALAR_BYTES[t] == 8:
            yield f"(ulong)(uint)as_ulong({value})"
            yield f"as_ulong({value}) >> 32"
        else:
            yield f"as_uint({value})" if C_NAMES[t] in ("float", "int", "uint") else f"(uint){value}"


def _values(types: Sequence[str], states: Sequence[str]) -> list[str]:
    """The scalars whose words are the lower halves of some."""
    words = (f"(uint){state}" for state in states)
    return [
        f"as_{C_NAMES[t]}((ulong){next(words)} | (ulong){next(words)} << 32)"
        if SCALAR_BYTES[t] == 8
        else f"as_{C_NAMES[t]}({next(words)})" if C_NAMES[t] in ("float", "int", "uint")
        else f"({C_NAMES[t]}){next(words)}"
        for t in types
    ]
