"""Text laid out in lines: groups that stay on one line where they fit, and are broken where not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Line:
    """A line break in a broken group, `flat` in one that fits."""

    flat: str = " "


@dataclass(frozen=True)
class Nest:
    """Lines of a document indented two further."""

    inner: Document


@dataclass(frozen=True)
class Group:
    """A document that is laid out on one line if it fits."""

    inner: Document


Document = Union[str, Line, Nest, Group, tuple["Document", ...]]
SPACE, NOTHING = Line(), Line("")
Item = tuple[int, bool, Document]


def separated(parts: Iterable[Document]) -> Document:
    """Parts with commas between them, each on its own line where they do not fit on one."""
    laid: list[Document] = []
    for part in parts:
        laid += [",", SPACE, part] if laid else [part]
    return tuple(laid)


def lay_out(document: Document, width: int) -> str:
    """The text of a document, with lines of at most `width` characters where that is possible.

    >>> print(lay_out(Group(("f(", Nest((NOTHING, separated(["first", "second"]))), ")")), 10))
    f(
      first,
      second)
    """
    text: list[str] = []
    column = 0
    stack: list[Item] = [(0, False, document)]
    while stack:
        indent, flat, item = stack.pop()
        if isinstance(item, str):
            text.append(item)
            column += len(item)
        elif isinstance(item, Line):
            if flat:
                text.append(item.flat)
                column += len(item.flat)
            else:
                text.append("\n" + " " * indent)
                column = indent
        elif isinstance(item, Nest):
            stack.append((indent + 2, flat, item.inner))
        elif isinstance(item, Group):
            fits = flat or _fits(item.inner, width - column, stack)
            stack.append((indent, fits, item.inner))
        else:
            stack.extend((indent, flat, part) for part in reversed(item))
    return "\n".join(line.rstrip() for line in "".join(text).split("\n"))


def _fits(document: Document, room: int, after: list[Item]) -> bool:
    """Whether the document on one line, and what follows it up to the next line break, fit."""
    pending: list[tuple[bool, Document]] = [(True, document)]
    rest = len(after)
    while room >= 0:
        if not pending:
            if not rest:
                return True
            rest -= 1
            pending.append(after[rest][1:])
            continue
        flat, item = pending.pop()
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, Line):
            if not flat:
                return True
            room -= len(item.flat)
        elif isinstance(item, Nest | Group):
            pending.append((flat, item.inner))
        else:
            pending.extend((flat, part) for part in reversed(item))
    return False
