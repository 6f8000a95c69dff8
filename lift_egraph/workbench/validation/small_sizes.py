"""The same plan at small sizes: what the interpreter can check whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.grammar import Source
from lift_egraph.language.heads import Reading
from lift_egraph.language.nat import Nat
from lift_egraph.language.pretty import print_program
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import Array, DataType, Pair, leaves
from lift_egraph.meaning.time_limit import require_time
from lift_egraph.meaning.workload import effort
from lift_egraph.workbench.validation.small_numbers import LARGE, TURNS, Numbers, numbers_of, replacements, smaller

MOST_EFFORT = 8e6  # of the small program: 0.2 seconds
LEAST = 12  # of a small size …
FEWEST = 2  # … and of one at which errors do not grow until no bound of them is finite
WHOLE = r"(?<![\w.])(?<!e[+-]){}(?![\w.])"  # 90.0 is no size, nor are parts of 3e+38
NUMBER = re.compile(WHOLE.format(r"\d+"))
TRIES = 200  # terms that are read for one plan
WIDEST = 16  # elements of a vector: what no sizes may be called


@dataclass(frozen=True)
class Twin:
    """A program and a low-level term of it, both at small sizes, or with so many turns of their loops at most."""

    program: ir.Program
    lowered: ir.Program
    turns: int | None = None

    @property
    def where(self) -> str:
        """Its sizes and turns, in words."""
        sizes = [f"{name} = {size}" for name, size in self.program.sizes]
        return ", ".join([*sizes, *([f"{self.turns} turns of each loop"] if self.turns else [])])


def twin(
    source: ir.Program, sizes: Mapping[str, int], lowered: ir.Program, least: int = LEAST
) -> Twin | None:
    """A low-level term that differs from another in its sizes only, and those small, but with all its numbers.

    The numbers of the term (tiles, vector widths, windows) say which sizes it has; those that are a size of the program
    themselves become the small one. Long chunks of a size become chunks of the small one, as many or fewer, and what
    remains behind them stays as it is. Sizes that are equal stay equal.

    Parameters
    ----------
    source
        The program with open sizes.
    sizes
        Of the program that `lowered` comes from.
    least
        Of a small size.

    Returns
    -------
    Twin or None
        None where no smaller sizes were found. Whether both mean the same, only the interpreter says.

    Raises
    ------
    TimeProblem
        If the time for interpreting is over.

    Examples
    --------
    >>> source = parse_program("program f(x: [f32]N) where N = 1000000 = map(abs, x)")
    >>> lowered = parse_program("program f(x: [f32]1000000) = join(mapGlb(0, mapSeq(abs), split(16, x)))")
    >>> dict(twin(source, {"N": 1000000}, lowered).program.sizes)
    {'N': 48}
    """
    found = _twin(source, sizes, lowered, least)
    if found is None and (opened := with_open_lengths(source)) is not None:
        return _twin(opened, {**dict(opened.sizes), **sizes}, lowered, least)
    return found


@lru_cache(64)
def with_open_lengths(program: ir.Program) -> ir.Program | None:
    """A program with names, whose values it gives, for the lengths of inputs, and of what it generates, that it says in
    numbers, from `LEAST` on, but for those that it needs to be these very numbers; None where no length is open then.

    Examples
    --------
    >>> with_open_lengths(parse_program("program f(x: [f32]1000) = map(abs, x)")).sizes
    (('length1000', 1000),)
    """
    sizes = [size for i in program.inputs for _, sizes, _ in leaves(i.type) for size in sizes]
    sizes += [part.size for part in ir.subterms(program.body) if isinstance(part, ir.Generate | ir.Fill)]
    opened = None
    for n in sorted({n for size in sizes if (n := size.constant) and n >= LEAST}, reverse=True):
        opened = _with_open_length(opened or program, n) or opened
    return opened


def _with_open_length(program: ir.Program, length: int) -> ir.Program | None:
    name, number = f"length{length}", re.compile(WHOLE.format(length))
    head, equals, body = print_program(replace(program, sizes=(), laws=())).partition("=\n")
    sizes = (*program.sizes, (name, length))
    opened = f"{number.sub(name, head)}where {', '.join(f'{n} = {size}' for n, size in sizes)} {equals}"
    for text in (opened + number.sub(name, body), opened + body):
        try:
            made = replace(parse_program(text), laws=program.laws)
            if name not in head + body and alpha_equal(specialise(made, {}).body, specialise(program, {}).body):
                return made
        except LiftError:
            continue
    return None


def _twin(source: ir.Program, sizes: Mapping[str, int], lowered: ir.Program, least: int) -> Twin | None:
    chosen, tries = dict(sizes), iter(range(TRIES))
    numbers, text = numbers_of(lowered.body), _text_of(source, lowered)
    best: Twin | None = None
    for value in sorted(set(sizes.values()), reverse=True):
        names = [name for name, v in sizes.items() if v == value]
        others = sum({v for v in chosen.values() if v < min(value, LARGE)})
        working: list[tuple[int, Twin]] = []
        for small, _ in zip(smaller(value, numbers, others, least), tries, strict=False):
            at_small = {**chosen, **dict.fromkeys(names, small)}
            require_time()
            made = _at(source, at_small, sizes, text, numbers)
            if made is not None:
                working.append((small, made))
            if len(working) == TURNS:
                break
        if working:
            fitting = [w for w in working if effort(w[1].program.body) <= MOST_EFFORT] or working[:1]
            small, best = fitting[-1]
            chosen.update(dict.fromkeys(names, small))
    return best if best is not None and effort(best.program.body) <= MOST_EFFORT else None


class _Text:
    """A low-level term as text, in which numbers that may be others are names: it is read once, and made with many."""

    def __init__(self, source: ir.Program, lowered: ir.Program) -> None:
        text = print_program(replace(lowered, inputs=source.inputs, sizes=(), laws=()))
        self._head, _, self._body = text.partition("=\n")
        self.numbers = frozenset(int(word) for word in NUMBER.findall(self._body))
        self._prefix = "number"
        while self._prefix in text:
            self._prefix += "_"
        self._open = self._with({n: f"{self._prefix}{n}" for n in self.numbers if n > WIDEST})
        self._made: dict[tuple[object, ...], ir.Expr | None] = {}

    def _with(self, names: Mapping[int, str]) -> Reading:
        body = NUMBER.sub(lambda m: names.get(int(m[0]), m[0]), self._body)
        return Reading(Source(f"{self._head}=\n{body}", "<text>"))

    def at(self, sizes: Mapping[str, int], others: Mapping[int, int]) -> ir.Expr | None:
        """The term at sizes, with other numbers in the places of some; None if it is none."""
        changed = {n: others[n] for n in self.numbers if others.get(n, n) != n}
        key = *sizes.items(), *sorted(changed.items())
        if key not in self._made:
            self._made[key] = None
            with suppress(LiftError):
                self._made[key] = self._at(sizes, changed)
        return self._made[key]

    def _at(self, sizes: Mapping[str, int], changed: Mapping[int, int]) -> ir.Expr:
        if any(n <= WIDEST for n in changed):
            return self._with({n: str(other) for n, other in changed.items()})(dict(sizes)).body
        named = {f"{self._prefix}{n}": changed.get(n, n) for n in self.numbers if n > WIDEST}
        return self._open({**sizes, **named}).body


def _at(
    source: ir.Program, small: dict[str, int], sizes: Mapping[str, int], text: _Text, numbers: Numbers
) -> Twin | None:
    try:
        program = specialise(source, small)
    except LiftError:
        return None
    derived = _derived(source.body, sizes, small)
    for others in replacements(text.numbers, derived, sizes, small, numbers):
        body = text.at(small, others)
        if body is not None and type_of(body) == type_of(program.body):
            return Twin(program, replace(program, body=body))
    return None


@lru_cache(8)
def _text_of(source: ir.Program, lowered: ir.Program) -> _Text:
    """It is kept: where no small sizes are found, smaller ones are looked for."""
    return _Text(source, lowered)


def _derived(body: ir.Expr, sizes: Mapping[str, int], small: Mapping[str, int]) -> dict[int, int]:
    """The numbers that sizes of the program make, such as ``2 * N`` and ``N - 1``, and what stands for them."""
    found: dict[int, set[int]] = {}
    for size in {size for part in ir.subterms(body) for size in _sizes_of(part) if size.variables}:
        before, after = (size.substitute(dict(chosen)).constant for chosen in (sizes, small))
        if before is not None and after is not None:
            found.setdefault(before, set()).add(after)
    return {before: after.pop() for before, after in found.items() if len(after) == 1}


def _sizes_of(part: ir.Part) -> Iterator[Nat]:
    """Of a node: its own sizes, and the lengths of its value."""
    yield from (value for name in part.__dataclass_fields__ if isinstance(value := getattr(part, name), Nat))  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(part, ir.Expr):
        todo: list[DataType] = [type_of(part)]
        while todo:
            match todo.pop():
                case Array(element=element, size=size):
                    todo.append(element)
                    yield size
                case Pair(first=first, second=second):
                    todo += [first, second]
                case _:
                    pass
