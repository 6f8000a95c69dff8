"""The text of groups that look back over what the groups before them have published.

A state is a word of 64 bits, so that a flag and its value are read together: 0, nothing; 1, the total of a group; 2, of
all groups up to it. Its lower half is the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.text.scalar_text import type_name

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
    own, states, seen, last, k, near, far, at = s.names
    values = printer.values
    t = type_name(s.total.type)
    left, right, combined = (values.text(o) for o in s.operands)
    rest, offset, group = values.text(s.left), values.text(s.offset), values.index.atomic(s.group)
    steps = [line.text for line in printer.body(s.combine, 0)]

    def value(state: str) -> str:
        return f"as_{t}((uint){state})"

    def combine(first: str, second: str) -> list[str]:
        return [f"{left} = {first};", f"{right} = {second};", *steps]

    def publish(flag: str, what: str) -> str:
        return f"atom_xchg({states} + {group}, {flag} | as_uint({what}));"

    def fold(first: str, count: int, index: str) -> list[str]:
        """The states from one on, the nearest group's first, up to one that has all before it."""
        inside = [f"const ulong {far} = {seen}[{index}];", f"if ({near} < {PREFIX}) {{"]
        inside += ["  " + x for x in combine(value(far), value(near))]
        inside += [f"  {near} = ({far} >> 32 << 32) | as_uint({combined});", "}"]
        loop = ["#pragma unroll", f"for (int {at} = 1; {at} < {count}; {at}++) {{", *("  " + x for x in inside), "}"]
        return [f"ulong {near} = {seen}[{first}];", *(loop if count > 1 else [])]

    each = s.width // s.parts
    among = f"for (int {k} = get_local_id(0); {k} < {{}}; {k} += get_local_size(0)) {{{{"
    yield "{"
    yield f"  volatile global ulong *{states} = (volatile global ulong *)&{values.text(s.states)};"
    yield f"  local ulong *{seen} = (local ulong *)&{values.text(s.seen)};"
    yield f"  const {t} {own} = {values.text(s.total)};"
    yield f"  {FIRST_ITEM}"
    yield f"    {rest} = {group};"
    yield f"    if ({group} == 0) {{"
    yield f"      {offset} = {values.text(s.initial)};"
    yield from ("      " + x for x in combine(offset, own))
    yield f"      {publish(PREFIX, combined)}"
    yield "    } else {"
    yield f"      {publish(TOTAL, own)}"
    yield "    }"
    yield "  }"
    yield f"  {MEET}"
    yield f"  for (int {last} = {rest}; {last} > 0; {last} = {rest}) {{"
    yield f"    {among.format(s.width)}"
    yield f"      const int {at} = {last} - 1 - {k};"
    yield f"      ulong {near} = {PREFIX};"
    yield f"      if ({at} >= 0) do {{ {near} = {states}[{at}]; }} while ({near} < {TOTAL});"
    yield f"      {seen}[{k}] = {near};"
    yield "    }"
    yield f"    {MEET}"
    if s.parts > 1:
        yield f"    {among.format(s.parts)}"
        yield from ("      " + x for x in fold(f"{k} * {each}", each, f"{k} * {each} + {at}"))
        yield f"      {seen}[{s.width} + {k}] = {near};"
        yield "    }"
        yield f"    {MEET}"
    begin, count = (s.width, s.parts) if s.parts > 1 else (0, s.width)
    yield f"    {FIRST_ITEM}"
    yield from ("      " + x for x in fold(str(begin), count, f"{begin} + {at}"))
    yield f"      if ({last} < {group}) {{"
    yield from ("        " + x for x in combine(value(near), offset))
    yield f"        {offset} = {combined};"
    yield "      } else {"
    yield f"        {offset} = {value(near)};"
    yield "      }"
    yield f"      {rest} = {near} < {PREFIX} ? {last} - {s.width} : 0;"
    yield f"      if ({near} >= {PREFIX}) {{"
    yield from ("        " + x for x in combine(offset, own))
    yield f"        {publish(PREFIX, combined)}"
    yield "      }"
    yield "    }"
    yield f"    {MEET}"
    yield "  }"
    yield "}"
